#include "target/map.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "layout/print.h"
#include "support/format.h"

namespace kiln::target {

namespace {

GridNames grid_names(Operand operand) {
  switch (operand) {
    case Operand::kA: return {"m", "k"};
    case Operand::kB: return {"n", "k"};
    case Operand::kC: break;
  }
  return {"m", "n"};
}

std::string tile_text(MmaShape tile) { return format("{}x{}x{}", tile.m, tile.n, tile.k); }

std::string cell_text(const Owner& owner, bool show_values) {
  return show_values ? format("T{:02}.{}", owner.lane, owner.value) : format("T{:02}", owner.lane);
}

// The owner of each element of a rows x cols tile, by rows; elements nobody owns stay {-1, -1}.
std::vector<Owner> owners(const Layout& tv, int rows, int cols) {
  std::vector<Owner> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols),
                         Owner{-1, -1});
  const auto lanes = static_cast<int>(size(tv, 0));
  const auto values = static_cast<int>(size(tv, 1));
  for (int lane = 0; lane < lanes; ++lane) {
    for (int value = 0; value < values; ++value) {
      const auto index = static_cast<int>(tv(lane, value));
      const int place = index % rows * cols + index / rows;
      out[static_cast<std::size_t>(place)] = {lane, value};
    }
  }
  return out;
}

// Columns as wide as their widest cell, two spaces apart, no spaces at line ends.
std::string align(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()), 0);
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += line[i] + std::string(widths[i] - line[i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

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

std::string grid_text(const Layout& tv, int rows, int cols, const GridNames& names,
                      bool show_values) {
  const std::vector<Owner> owned = owners(tv, rows, cols);
  std::vector<std::vector<std::string>> lines(1);
  lines[0].emplace_back();
  for (int col = 0; col < cols; ++col) lines[0].push_back(format("{}={}", names.col, col));
  for (int row = 0; row < rows; ++row) {
    std::vector<std::string> line{format("{}={}", names.row, row)};
    for (int col = 0; col < cols; ++col) {
      const Owner& owner = owned[static_cast<std::size_t>(row * cols + col)];
      line.push_back(owner.lane < 0 ? "-" : cell_text(owner, show_values));
    }
    lines.push_back(std::move(line));
  }
  return align(lines);
}

std::string map_text(const Mma& mma, Operand operand) {
  const TileExtents tile = extents(mma.shape, operand);
  const Layout& map = map_of(mma, operand);
  const GridNames names = grid_names(operand);
  std::string out =
      format("{}, operand {}: {} x {} of {}, {} values a lane\n\n", mma.name, name(operand),
             tile.rows, tile.cols, name(dtype_of(mma, operand)), values_of(mma, operand));
  out += grid_text(map, tile.rows, tile.cols, names, false);
  out += "\nlane.value\n\n";
  out += grid_text(map, tile.rows, tile.cols, names, true);
  out += format("\n(lane, value) -> {} + {} * {}: {}\n", names.row, tile.rows, names.col,
                to_text(map));
  return out;
}

std::string map_json(const Mma& mma, Operand operand) {
  const TileExtents tile = extents(mma.shape, operand);
  const std::vector<Owner> owned = owners(map_of(mma, operand), tile.rows, tile.cols);
  const int per_register = values_of(mma, operand) / registers_of(mma, operand);
  nlohmann::ordered_json out = {{"atom", mma.name}, {"operand", name(operand)}};
  out.update(operand_json(mma, operand));
  out["lanes"] = mma.lanes;
  nlohmann::ordered_json elements = nlohmann::ordered_json::array();
  for (int row = 0; row < tile.rows; ++row) {
    nlohmann::ordered_json line = nlohmann::ordered_json::array();
    for (int col = 0; col < tile.cols; ++col) {
      const Owner& owner = owned[static_cast<std::size_t>(row * tile.cols + col)];
      line.push_back({{"row", row},
                      {"col", col},
                      {"lane", owner.lane},
                      {"value", owner.value},
                      {"register", owner.value / per_register}});
    }
    elements.push_back(std::move(line));
  }
  out["elements"] = std::move(elements);
  return dump(out);
}

std::string atoms_text(const Arch* arch) {
  std::vector<std::vector<std::string>> lines = {
      {"atom", "scope", "A", "B", "acc", "from", "values A B C", "cycles", "tiles M x N x K"}};
  for (const Mma* mma : rows_for(arch)) {
    lines.push_back({std::string(mma->name), std::string(name(mma->scope)),
                     std::string(name(mma->a)), std::string(name(mma->b)),
                     std::string(name(mma->acc)), format("sm_{}", mma->min_arch),
                     format("{} {} {}", values_of(*mma, Operand::kA), values_of(*mma, Operand::kB),
                            values_of(*mma, Operand::kC)),
                     format("{}", arch == nullptr ? mma->issue_cycles : issue_cycles(*mma, *arch)),
                     join(tile_texts(*mma), ", ", [](const std::string& text) { return text; })});
  }
  return align(lines);
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
         {"issue_cycles", arch == nullptr ? mma->issue_cycles : issue_cycles(*mma, *arch)},
         {"acc_roundoff", mma->acc_roundoff},
         {"operands",
          {{"A", operand_json(*mma, Operand::kA)},
           {"B", operand_json(*mma, Operand::kB)},
           {"C", operand_json(*mma, Operand::kC)}}}});
  }
  return dump(out);
}

}  // namespace kiln::target
