#include "explain/draw/print.h"
#include "support/columns.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

std::string tick(const Axis& axis, int number) {
  const std::string& text = axis.ticks[static_cast<std::size_t>(number)];
  return axis.name.empty() ? text : format("{}={}", axis.name, text);
}

// The grid with one text for each cell.
template <class Spell>
std::string table(const Grid& grid, Spell&& spell) {
  std::vector<std::vector<std::string>> lines(1);
  lines[0].emplace_back();
  for (int col = 0; col < col_count(grid); ++col) lines[0].push_back(tick(grid.cols, col));
  for (int row = 0; row < row_count(grid); ++row) {
    std::vector<std::string> line{tick(grid.rows, row)};
    for (int col = 0; col < col_count(grid); ++col) line.push_back(spell(cell_at(grid, row, col)));
    lines.push_back(std::move(line));
  }
  return align_columns(lines);
}

std::string detail_text(const Grid& grid, const Cell& cell) {
  if (cell.detail.empty()) return cell.label;
  return grid.detail_extends ? format("{}.{}", cell.label, cell.detail) : cell.detail;
}

std::string mark_text(const Cell& cell) {
  if (cell.mark.empty()) return "-";
  return cell.conflict ? cell.mark + "!" : cell.mark;
}

std::string grid_text(const Picture& picture, const Grid& grid) {
  std::string out = format("{}, {}\n\n", picture.title, grid.title);
  out += table(grid, [](const Cell& cell) { return cell.label; });
  if (!grid.detail_name.empty()) {
    out += format("\n{}\n\n", grid.detail_name);
    out += table(grid, [&](const Cell& cell) { return detail_text(grid, cell); });
  }
  if (!grid.mark_name.empty()) {
    out += format("\n{} (! in a bank conflict)\n\n", grid.mark_name) + table(grid, mark_text);
  }
  if (!grid.notes.empty()) out += "\n";
  for (const std::string& note : grid.notes) out += note + "\n";
  return out;
}

}  // namespace

std::string to_text(const Picture& picture) {
  return join(picture.grids, "\n", [&](const Grid& grid) { return grid_text(picture, grid); });
}

}  // namespace kiln::explain
