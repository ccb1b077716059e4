#include "target/atoms.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "layout/print.h"
#include "support/check.h"
#include "support/columns.h"
#include "support/format.h"
#include "support/json.h"
#include "target/mma.h"

namespace kiln::target {

namespace {

std::string tile_text(MmaShape tile) { return format("{}x{}x{}", tile.m, tile.n, tile.k); }

// The rows an architecture can execute; all of them for null.
std::vector<const Mma*> rows_for(const Arch* arch) {
  std::vector<const Mma*> out;
  for (const Mma& row : all_mmas()) {
    if (arch == nullptr || arch->has(row.needs)) out.push_back(&row);
  }
  return out;
}

// Rows that differ in N alone stand together in the table.
bool same_but_n(const Mma& x, const Mma& y) {
  return x.reads_shared && y.reads_shared && x.a == y.a && x.b == y.b && x.acc == y.acc &&
         x.shape.m == y.shape.m && x.shape.k == y.shape.k && x.sparse == y.sparse;
}

// "8 to 32 by 8, 48 to 256 by 16", of ascending numbers.
std::string range_text(const std::vector<int>& numbers) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    const int step = i + 1 < numbers.size() ? numbers[i + 1] - numbers[i] : 0;
    while (last + 1 < numbers.size() && numbers[last + 1] - numbers[last] == step) ++last;
    runs.push_back(last == i ? format("{}", numbers[i])
                             : format("{} to {} by {}", numbers[i], numbers[last], step));
    i = last + 1;
  }
  return join(runs, ", ", [](const std::string& run) { return run; });
}

// The architecture that has the row first: "sm_90a".
const Arch& oldest(const Mma& mma) {
  const Arch* arch = oldest_arch({mma.needs});
  KILN_CHECK(arch != nullptr, "no architecture has {}", mma.name);
  return *arch;
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
std::string dump(const nlohmann::ordered_json& json) { return json_text(json, 2) + "\n"; }

nlohmann::ordered_json operand_json(const Mma& mma, Operand operand) {
  const TileExtents tile = extents(mma, operand);
  return {{"dtype", name(dtype_of(mma, operand))},
          {"rows", tile.rows},
          {"cols", tile.cols},
          {"values", values_of(mma, operand)},
          {"registers", registers_of(mma, operand)},
          {"layout", has_map(mma, operand) ? to_text(map_of(mma, operand)) : ""}};
}

}  // namespace

namespace {

std::vector<std::string> line_of(const Mma& mma, const Arch* arch) {
  return {std::string(mma.name),
          std::string(name(mma.scope)),
          std::string(name(mma.a)),
          std::string(name(mma.b)),
          std::string(name(mma.acc)),
          std::string(oldest(mma).name),
          format("{} {} {}", values_of(mma, Operand::kA), values_of(mma, Operand::kB),
                 values_of(mma, Operand::kC)),
          format("{}", arch == nullptr ? issue_cycles(mma) : issue_cycles(mma, *arch)),
          join(tile_texts(mma), ", ", [](const std::string& text) { return text; })};
}

// One line for rows first to last, which differ in N alone.
std::vector<std::string> line_of_family(std::span<const Mma* const> rows, const Arch* arch) {
  const Mma& first = *rows.front();
  std::vector<int> ns;
  for (const Mma* row : rows) ns.push_back(row->shape.n);
  std::vector<std::string> out = line_of(first, arch);
  const std::string exact = format("n{}k", first.shape.n);
  out[0].replace(out[0].find(exact), exact.size(), "nNk");
  const int cycles = arch == nullptr ? issue_cycles(first) : issue_cycles(first, *arch);
  out[6] = format("{} - N/{}", values_of(first, Operand::kA),
                  first.shape.n / values_of(first, Operand::kC));
  out[7] = format("N/{}", first.shape.n / cycles);
  out[8] = format("64xNx{} and multiples of K, N = {}", first.shape.k, range_text(ns));
  return out;
}

}  // namespace

std::string atoms_text(const Arch* arch) {
  std::vector<std::vector<std::string>> lines = {
      {"atom", "scope", "A", "B", "acc", "from", "values A B C", "cycles", "tiles M x N x K"}};
  const std::vector<const Mma*> rows = rows_for(arch);
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && same_but_n(*rows[i], *rows[end])) ++end;
    lines.push_back(end == i + 1 ? line_of(*rows[i], arch)
                                 : line_of_family(std::span(rows).subspan(i, end - i), arch));
    i = end;
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
         {"min_arch", oldest(*mma).capability},
         {"reads_shared", mma->reads_shared},
         {"transposes", mma->transposes},
         {"splits_k", mma->splits_k},
         {"sparse", mma->sparse},
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
