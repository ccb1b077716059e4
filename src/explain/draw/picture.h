// A picture: grids of cells with everything decided (texts, owners, colours, marks), to be spelled
// by the printers of print.h.
//
//   const Picture picture = atom_picture(*find_mma("m16n8k16.f32.f16"), Operand::kC, {});
//   cell_at(picture.grids[0], 1, 3)
//       == {.label = "T05", .detail = "1", .owner = 5, .colour = 5,
//           .facts = {{"row", 1}, {"col", 3}, {"lane", 5}, {"value", 1}, {"register", 1}}}
//
// The builders are ownership.h (who owns which element) and memory.h (what lies in which bank).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/layout.h"

namespace kiln::explain {

// One number about a cell: a field in JSON, a part of the hover text elsewhere. Names are literals.
struct Fact {
  std::string_view name;
  Index value;

  friend bool operator==(const Fact&, const Fact&) = default;
};

struct Cell {
  std::string label = "-";  // "T05"
  std::string detail = {};  // smaller, beside it: "1", "b28"
  std::string mark = {};    // who touches it: "T03"; empty when the access leaves it out
  int owner = -1;           // cells of one owner are picked together; -1: nobody's
  int colour = -1;          // of palette.h; -1: blank
  bool conflict = false;    // its bank is asked for more than one word at a time
  std::vector<Fact> facts = {};
};

struct Axis {
  std::string name;                // "m"
  std::vector<std::string> ticks;  // "0", "1", ...
};

// A field of the JSON object, in order.
struct Property {
  std::string_view name;
  std::variant<Index, std::string> value;
};

// Where a grid stands on the page; grids of one row or column line up.
struct Place {
  int row = 0;
  int col = 0;
};

struct Grid {
  std::string title;  // "operand C: 16 x 8 of f32, 4 values a lane"
  Axis rows;
  Axis cols;
  std::vector<Cell> cells;       // by rows
  std::string detail_name = {};  // "lane.value": what label and detail are; empty: no details
  bool detail_extends = true;    // "T05" and "1" are read together, as "T05.1"
  std::string mark_name = {};    // what marks are; empty: no marks
  std::vector<std::string> notes = {};  // lines below
  std::vector<Property> properties = {};
  Place place = {};
  bool secondary = false;  // says again, in another order, what other grids say
};

enum class LegendKind : std::uint8_t { kColour, kMark, kConflict };

struct LegendEntry {
  LegendKind kind;
  int colour;
  std::string text;
};

// How the owners of all grids are called.
struct OwnerNames {
  std::string word = "thread";
  std::string prefix = "T";
  int count = 0;
};

struct Picture {
  std::string title;  // "m16n8k16.f32.f16"
  OwnerNames owners = {};
  std::vector<LegendEntry> legend = {};
  std::vector<Property> properties = {};
  std::string_view list_name = {};  // of the grids in JSON; empty: one grid, its fields at the top
  std::vector<Grid> grids = {};
};

// The most cells a grid may have: an accumulator of 64 x 256.
inline constexpr Index kCellsMax = 16384;

[[nodiscard]] inline int row_count(const Grid& grid) {
  return static_cast<int>(grid.rows.ticks.size());
}
[[nodiscard]] inline int col_count(const Grid& grid) {
  return static_cast<int>(grid.cols.ticks.size());
}
[[nodiscard]] const Cell& cell_at(const Grid& grid, int row, int col);
[[nodiscard]] Cell& cell_at(Grid& grid, int row, int col);

// An empty grid of rows x cols with numbered ticks.
[[nodiscard]] Grid make_grid(std::string_view row_name, int rows, std::string_view col_name,
                             int cols);

// "row 1, col 3, lane 5, value 1": a cell's facts as one line.
[[nodiscard]] std::string describe(const Cell& cell);

// "T05".
[[nodiscard]] std::string thread_name(int lane);

}  // namespace kiln::explain
