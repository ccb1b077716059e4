#include "explain/draw/ownership.h"

#include <algorithm>

#include "explain/draw/palette.h"
#include "layout/print.h"
#include "support/check.h"
#include "support/format.h"
#include "target/arch.h"

namespace kiln::explain {

namespace {

using target::Operand;

constexpr int kQuad = 4;

// A map from (lane, value) to row + rows * column, with what the page calls things.
struct TileMap {
  Layout tv;
  target::TileExtents tile;
  std::string row_name;
  std::string col_name;
  int bits = 0;  // of a value in 32-bit registers; 0: values are not in registers

  [[nodiscard]] int lanes() const { return static_cast<int>(size(tv, 0)); }
  [[nodiscard]] int values() const { return static_cast<int>(size(tv) / size(tv, 0)); }
  [[nodiscard]] int index(int lane, int value) const {
    return static_cast<int>(tv(lane + static_cast<Index>(lanes()) * value));
  }
};

void add_owner_facts(const TileMap& map, int lane, int value, Cell& cell) {
  cell.facts.push_back({"lane", lane});
  cell.facts.push_back({"value", value});
  if (map.bits == 0) return;
  // The first of them where a value takes two.
  cell.facts.push_back({"register", lane < 0 ? -1 : value * map.bits / target::kRegisterBits});
}

void give(const TileMap& map, int lane, int value, Cell& cell) {
  cell.label = thread_name(lane);
  cell.detail = std::to_string(value);
  cell.owner = lane;
  cell.colour = category_colour(lane);
  add_owner_facts(map, lane, value, cell);
}

// The tile, each element with its owner. `turned`: drawn with its columns downwards.
Grid tile_grid(const TileMap& map, bool turned) {
  const auto [rows, cols] = map.tile;
  Grid grid = turned ? make_grid(map.col_name, cols, map.row_name, rows)
                     : make_grid(map.row_name, rows, map.col_name, cols);
  const auto element = [&](int row, int col) -> Cell& {
    return turned ? cell_at(grid, col, row) : cell_at(grid, row, col);
  };
  std::vector<int> owners(grid.cells.size(), 0);
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < cols; ++col) element(row, col).facts = {{"row", row}, {"col", col}};
  }
  for (int lane = 0; lane < map.lanes(); ++lane) {
    for (int value = 0; value < map.values(); ++value) {
      const int index = map.index(lane, value);
      KILN_CHECK(index >= 0 && index < rows * cols, "element {} of {}", index, rows * cols);
      Cell& cell = element(index % rows, index / rows);
      const int before = owners[static_cast<std::size_t>(index)]++;
      if (before == 0) give(map, lane, value, cell);
      if (before > 0) cell.label = format("{}+{}", thread_name(cell.owner), before);
    }
  }
  for (Cell& cell : grid.cells) {
    if (cell.owner < 0) add_owner_facts(map, -1, -1, cell);
  }
  grid.detail_name = "lane.value";
  return grid;
}

// A row for each thread, a column for each value.
Grid table_grid(const TileMap& map) {
  Grid grid = make_grid("", map.lanes(), "v", map.values());
  for (int lane = 0; lane < map.lanes(); ++lane) {
    grid.rows.ticks[static_cast<std::size_t>(lane)] = thread_name(lane);
    for (int value = 0; value < map.values(); ++value) {
      const int index = map.index(lane, value);
      Cell& cell = cell_at(grid, lane, value);
      const int row = index % map.tile.rows;
      const int col = index / map.tile.rows;
      cell.label = format("{},{}", row, col);
      cell.owner = lane;
      cell.colour = category_colour(lane);
      cell.facts = {{"row", row}, {"col", col}};
      add_owner_facts(map, lane, value, cell);
    }
  }
  return grid;
}

std::vector<LegendEntry> thread_legend(int lanes) {
  std::vector<LegendEntry> out;
  for (int first = 0; first < std::min(lanes, target::kWarpLanes); first += kQuad) {
    const int last = std::min(first + kQuad, lanes) - 1;
    std::string text = format("{} to {}", thread_name(first), thread_name(last));
    if (lanes > target::kWarpLanes) text += " of each warp";
    out.push_back({LegendKind::kColour, category_colour(std::min(first + 1, last)), text});
  }
  return out;
}

std::string formula(const TileMap& map) {
  return format("(lane, value) -> {} + {} * {}: {}", map.row_name, map.tile.rows, map.col_name,
                to_text(map.tv));
}

// Appends the grid and the table of one map, as the options ask.
struct OwnershipPage {
  Picture& picture;
  const OwnershipOptions& options;

  void add(const TileMap& map, const std::string& what, const std::vector<Property>& properties,
           Place place, bool turned) const {
    if (options.grids) {
      Grid grid = tile_grid(map, turned);
      grid.title = what;
      grid.notes = {formula(map)};
      finish(std::move(grid), properties, place);
    }
    if (options.tables) {
      Grid table = table_grid(map);
      table.title = what + format("; ({},{}) of each thread's values", map.row_name, map.col_name);
      table.secondary = true;
      constexpr int kBelow = 2;
      finish(std::move(table), properties, {place.row + kBelow, place.col});
    }
  }

  void finish(Grid grid, const std::vector<Property>& properties, Place place) const {
    grid.properties = properties;
    grid.place = place;
    picture.grids.push_back(std::move(grid));
  }
};

TileMap operand_map(const target::Mma& mma, Operand operand) {
  const AxisNames names = axis_names(operand);
  return {target::map_of(mma, operand), target::extents(mma, operand), std::string(names.row),
          std::string(names.col), info(dtype_of(mma, operand)).bits};
}

// A left of C, B above it; the tables below, in order.
Place operand_place(Operand operand) {
  switch (operand) {
    case Operand::kA: return {1, 0};
    case Operand::kB: return {0, 1};
    case Operand::kC: break;
  }
  return {1, 1};
}

std::vector<Property> operand_properties(const target::Mma& mma, Operand operand) {
  const target::TileExtents tile = target::extents(mma, operand);
  return {{"atom", std::string(mma.name)},
          {"operand", std::string(target::name(operand))},
          {"dtype", std::string(name(target::dtype_of(mma, operand)))},
          {"rows", tile.rows},
          {"cols", tile.cols},
          {"values", target::values_of(mma, operand)},
          {"registers", target::registers_of(mma, operand)},
          {"layout", to_text(target::map_of(mma, operand))},
          {"lanes", mma.lanes}};
}

std::string operand_title(const target::Mma& mma, Operand operand) {
  const target::TileExtents tile = target::extents(mma, operand);
  return format("operand {}: {} x {} of {}, {} values a lane", target::name(operand), tile.rows,
                tile.cols, name(target::dtype_of(mma, operand)), target::values_of(mma, operand));
}

// Of an operand that no lane holds.
std::string in_shared_text(const target::Mma& mma, Operand operand) {
  const target::TileExtents tile = target::extents(mma.shape, operand);
  return format("operand {}: {} x {} of {}, read from shared memory where it lies",
                target::name(operand), tile.rows, tile.cols, name(target::dtype_of(mma, operand)));
}

// Below the last grid that everybody sees.
void add_note(Picture& picture, std::string text) {
  const auto shown = std::find_if(picture.grids.rbegin(), picture.grids.rend(),
                                  [](const Grid& grid) { return !grid.secondary; });
  Grid& grid = shown == picture.grids.rend() ? picture.grids.back() : *shown;
  grid.notes.push_back(std::move(text));
}

}  // namespace

AxisNames axis_names(Operand operand) {
  switch (operand) {
    case Operand::kA: return {"m", "k"};
    case Operand::kB: return {"n", "k"};
    case Operand::kC: break;
  }
  return {"m", "n"};
}

Picture atom_picture(const target::Mma& mma, std::optional<Operand> operand,
                     const OwnershipOptions& options) {
  KILN_CHECK(!operand || target::has_map(mma, *operand), "{} has no map of {}", mma.name,
             target::name(*operand));
  Picture picture{.title = std::string(mma.name)};
  picture.owners.count = mma.lanes;
  picture.legend = thread_legend(mma.lanes);
  const OwnershipPage page{picture, options};
  if (operand) {
    page.add(operand_map(mma, *operand), operand_title(mma, *operand),
             operand_properties(mma, *operand), {0, 0}, false);
  } else {
    picture.properties = {{"atom", std::string(mma.name)}};
    for (const Operand each : {Operand::kA, Operand::kB, Operand::kC}) {
      if (!target::has_map(mma, each)) continue;
      page.add(operand_map(mma, each), operand_title(mma, each), operand_properties(mma, each),
               operand_place(each), options.side_by_side && each == Operand::kB);
    }
    if (!target::has_map(mma, Operand::kB)) add_note(picture, in_shared_text(mma, Operand::kB));
  }
  if (picture.grids.size() > 1) picture.list_name = "operands";
  return picture;
}

Picture matrix_load_picture(const target::Copy& copy, const OwnershipOptions& options) {
  KILN_CHECK(copy.result_map.valid(), "{} has no map", copy.name);
  constexpr int kMatrix = 8;
  constexpr int kMatrixElements = kMatrix * kMatrix;
  const std::string layout = to_text(copy.result_map);
  Picture picture{.title = std::string(copy.name)};
  picture.owners.count = target::kWarpLanes;
  picture.legend = thread_legend(target::kWarpLanes);
  picture.list_name = "matrices";
  picture.properties = {{"copy", std::string(copy.name)}, {"layout", layout}};
  const OwnershipPage page{picture, options};
  for (int matrix = 0; matrix < copy.matrices; ++matrix) {
    TileMap map{copy.result_map, {kMatrix, kMatrix * copy.matrices}, "row", "col", 16};
    // The whole map on matrices side by side, and the part of it that is this one.
    Grid whole = tile_grid(map, false);
    Grid grid = make_grid("row", kMatrix, "col", kMatrix);
    for (int row = 0; row < kMatrix; ++row) {
      const auto lane = static_cast<int>(copy.address_map(row + kMatrix * matrix));
      grid.rows.ticks[static_cast<std::size_t>(row)] = format("{} @{}", row, thread_name(lane));
      for (int col = 0; col < kMatrix; ++col) {
        Cell& cell = cell_at(grid, row, col);
        cell = cell_at(whole, row, col + kMatrix * matrix);
        cell.facts[1] = {"col", col};
        cell.facts.insert(cell.facts.begin(), {"matrix", matrix});
        cell.facts.push_back({"address_lane", lane});
      }
    }
    grid.title =
        format("matrix {}: 8 x 8 of 16 bits, row @ the lane that gives its address", matrix);
    grid.detail_name = "lane.value";
    if (matrix == copy.matrices - 1) {
      grid.notes = {
          format("(lane, value) -> row + 8 * col + {} * matrix: {}", kMatrixElements, layout)};
    }
    page.finish(std::move(grid), {{"matrix", matrix}}, {matrix % 2, matrix / 2});
  }
  return picture;
}

Picture tile_picture(const Layout& tv, target::TileExtents tile, const OwnershipOptions& options) {
  const TileMap map{tv, tile, "m", "n"};
  Picture picture{.title = to_text(tv)};
  picture.owners.count = map.lanes();
  picture.legend = thread_legend(map.lanes());
  const std::string what = format("{} x {}, {} threads, {} value{} each", tile.rows, tile.cols,
                                  map.lanes(), map.values(), map.values() == 1 ? "" : "s");
  const std::vector<Property> properties = {{"layout", to_text(tv)},
                                            {"rows", tile.rows},
                                            {"cols", tile.cols},
                                            {"lanes", map.lanes()},
                                            {"values", map.values()}};
  OwnershipPage{picture, options}.add(map, what, properties, {0, 0}, false);
  if (picture.grids.size() > 1) picture.list_name = "grids";
  return picture;
}

}  // namespace kiln::explain
