#include "target/atoms.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "layout/print.h"
#include "support/columns.h"
#include "support/format.h"
#include "target/mma.h"

namespace kiln::target {

namespace {

std::string tile_text(MmaShape tile) { return format("{}x{}x{}", tile.m, tile.n, tile.k); }

// The rows an architecture can execute; all of them for null.
std::vector<const Mma*> rows_for(const Arch* arch) {
  std::vector<const Mma*> out;
  for (const Mma& row : all_mmas()) {
    if (arch == nullptr || row.min_arch <= arch->capability) out.push_back(&row);
  }
  return out;
}

std::vector<std::string> tile_texts(const Mma& mma) {
  std::vector<std::string> out;
  for (const MmaShape& tile : mma.tiles) {
    if (tile != MmaShape{}) out.push_back(tile_text(tile));
  }
  if (mma.exchanged != MmaShape{}) out.push_back(tile_text(mma.exchanged));
  return out;
}

// ASCII always: names come from the tables.
std::string dump(const nlohmann::ordered_json& json) { return json.dump(2) + "\n"; }

nlohmann::ordered_json operand_json(const Mma& mma, Operand operand) {
  const TileExtents tile = extents(mma.shape, operand);
  return {{"dtype", name(dtype_of(mma, operand))},
          {"rows", tile.rows},
          {"cols", tile.cols},
          {"values", values_of(mma, operand)},
          {"registers", registers_of(mma, operand)},
          {"layout", to_text(map_of(mma, operand))}};
}

}  // namespace

std::string atoms_text(const Arch* arch) {
  std::vector<std::vector<std::string>> lines = {
      {"atom", "scope", "A", "B", "acc", "from", "values A B C", "cycles", "tiles M x N x K"}};
  for (const Mma* mma : rows_for(arch)) {
    lines.push_back({std::string(mma->name), std::string(name(mma->scope)),
                     std::string(name(mma->a)), std::string(name(mma->b)),
                     std::string(name(mma->acc)), format("sm_{}", mma->min_arch),
                     format("{} {} {}", values_of(*mma, Operand::kA), values_of(*mma, Operand::kB),
                            values_of(*mma, Operand::kC)),
                     format("{}", arch == nullptr ? issue_cycles(*mma) : issue_cycles(*mma, *arch)),
                     join(tile_texts(*mma), ", ", [](const std::string& text) { return text; })});
  }
  return align_columns(lines);
}

std::string atoms_json(const Arch* arch) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Mma* mma : rows_for(arch)) {
    out.push_back(
        {{"name", mma->name},
         {"scope", name(mma->scope)},
         {"shape", {{"m", mma->shape.m}, {"n", mma->shape.n}, {"k", mma->shape.k}}},
         {"acc", name(mma->acc)},
         {"lanes", mma->lanes},
         {"min_arch", mma->min_arch},
         {"ptx", mma->ptx},
         {"tiles", tile_texts(*mma)},
         {"issue_cycles", arch == nullptr ? issue_cycles(*mma) : issue_cycles(*mma, *arch)},
         {"acc_roundoff", mma->acc_roundoff},
         {"operands",
          {{"A", operand_json(*mma, Operand::kA)},
           {"B", operand_json(*mma, Operand::kB)},
           {"C", operand_json(*mma, Operand::kC)}}}});
  }
  return dump(out);
}

}  // namespace kiln::target
