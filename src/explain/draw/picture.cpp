#include "explain/draw/picture.h"

#include "support/check.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

std::size_t place_of(const Grid& grid, int row, int col) {
  KILN_CHECK(row >= 0 && row < row_count(grid) && col >= 0 && col < col_count(grid),
             "cell ({}, {}) of a grid of {} x {}", row, col, row_count(grid), col_count(grid));
  return static_cast<std::size_t>(row) * grid.cols.ticks.size() + static_cast<std::size_t>(col);
}

std::vector<std::string> numbers(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace

const Cell& cell_at(const Grid& grid, int row, int col) {
  return grid.cells[place_of(grid, row, col)];
}

Cell& cell_at(Grid& grid, int row, int col) { return grid.cells[place_of(grid, row, col)]; }

Grid make_grid(std::string_view row_name, int rows, std::string_view col_name, int cols) {
  Grid grid;
  grid.rows = {std::string(row_name), numbers(rows)};
  grid.cols = {std::string(col_name), numbers(cols)};
  grid.cells.resize(grid.rows.ticks.size() * grid.cols.ticks.size());
  return grid;
}

std::string describe(const Cell& cell) {
  return join(cell.facts, ", ",
              [](const Fact& fact) { return format("{} {}", fact.name, fact.value); });
}

std::string thread_name(int lane) { return format("T{:02}", lane); }

}  // namespace kiln::explain
