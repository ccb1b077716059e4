// Where everything of a picture stands on a page, in pixels: shared by the printers that draw.
//
//   const Page page = lay_out(picture);
//   page.boxes[0].cells      the upper left corner of cell (0, 0) of the first grid
//   page.boxes[0].cells.x + col * page.cell_width, ... + row * page.cell_height
//
// Grids of one Place::row start at one height, those of one Place::col at one left edge, and all
// cells have one size, so neighbours line up.
#pragma once

#include "explain/draw/picture.h"

namespace kiln::explain {

struct Point {
  int x = 0;
  int y = 0;
};

struct Box {
  Point title;  // baselines of texts
  Point cells;
  Point notes;
};

struct Page {
  int width = 0;
  int height = 0;
  int cell_width = 0;
  int cell_height = 0;
  Point title;
  std::vector<Box> boxes;     // as Picture::grids
  std::vector<Point> legend;  // of each swatch, as Picture::legend
};

inline constexpr int kNoteHeight = 17;
inline constexpr int kSwatch = 14;

[[nodiscard]] Page lay_out(const Picture& picture);

// The tick as drawn: the first one names its axis, "m=0", the others only count.
[[nodiscard]] std::string tick_text(const Axis& axis, int number);

}  // namespace kiln::explain
