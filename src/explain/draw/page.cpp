#include "explain/draw/page.h"

#include <algorithm>

#include "support/format.h"

namespace kiln::explain {

namespace {

constexpr int kMargin = 20;
constexpr int kGap = 28;
constexpr int kTitleHeight = 34;      // of the page's
constexpr int kGridTitleHeight = 24;  // of a grid's
constexpr int kTicksHeight = 18;
constexpr int kLetter = 8;      // width of one in a cell or a tick
constexpr int kNoteLetter = 7;  // and of one in a title, a note or the legend
constexpr int kLegendHeight = 22;
constexpr int kLegendWidthMin = 460;

int text_width(const std::string& text, int letter) {
  return static_cast<int>(text.size()) * letter;
}

struct Extent {
  int width = 0;
  int height = 0;
};

int ticks_width(const Picture& picture) {
  int widest = 0;
  for (const Grid& grid : picture.grids) {
    for (int row = 0; row < row_count(grid); ++row) {
      widest = std::max(widest, text_width(tick_text(grid.rows, row), kLetter));
    }
  }
  return widest + kLetter;
}

Extent cell_extent(const Picture& picture) {
  Extent cell{32, 26};
  for (const Grid& grid : picture.grids) {
    for (int col = 0; col < col_count(grid); ++col) {
      cell.width = std::max(cell.width, text_width(tick_text(grid.cols, col), kLetter));
    }
    for (const Cell& one : grid.cells) {
      cell.width = std::max(cell.width, text_width(one.label, kLetter) + 10);
    }
    if (!grid.detail_name.empty()) cell.height = std::max(cell.height, 34);
    if (!grid.mark_name.empty()) cell = {std::max(cell.width, 56), 42};
  }
  return cell;
}

Extent grid_extent(const Grid& grid, const Page& page, int ticks) {
  Extent out{ticks + col_count(grid) * page.cell_width, 0};
  out.width = std::max(out.width, text_width(grid.title, kNoteLetter));
  for (const std::string& note : grid.notes) {
    out.width = std::max(out.width, text_width(note, kNoteLetter));
  }
  out.height = kGridTitleHeight + kTicksHeight + row_count(grid) * page.cell_height +
               static_cast<int>(grid.notes.size()) * kNoteHeight;
  return out;
}

// Where tracks of these sizes begin, from `start` on; the last entry is where they end. Empty
// tracks take no room.
std::vector<int> starts(const std::vector<int>& sizes, int start) {
  std::vector<int> out{start};
  for (const int size : sizes) out.push_back(out.back() + (size > 0 ? size + kGap : 0));
  return out;
}

void grow(std::vector<int>& sizes, int track, int size) {
  const auto at = static_cast<std::size_t>(track);
  if (sizes.size() <= at) sizes.resize(at + 1, 0);
  sizes[at] = std::max(sizes[at], size);
}

void place_legend(const Picture& picture, int top, Page& page) {
  int widest = 0;
  for (const LegendEntry& entry : picture.legend) {
    widest = std::max(widest, text_width(entry.text, kNoteLetter) + kSwatch + 2 * kLetter + 6);
  }
  const int room = std::max(page.width - 2 * kMargin, kLegendWidthMin);
  const int in_row = std::max(1, room / std::max(widest, 1));
  for (int i = 0; i < static_cast<int>(picture.legend.size()); ++i) {
    page.legend.push_back({kMargin + i % in_row * widest, top + i / in_row * kLegendHeight});
    page.width = std::max(page.width, page.legend.back().x + widest + kMargin);
    page.height = page.legend.back().y + kLegendHeight + kMargin / 2;
  }
}

}  // namespace

Page lay_out(const Picture& picture) {
  Page page;
  const Extent cell = cell_extent(picture);
  page.cell_width = cell.width;
  page.cell_height = cell.height;
  page.title = {kMargin, kMargin + 12};
  const int ticks = ticks_width(picture);
  std::vector<int> widths;
  std::vector<int> heights;
  for (const Grid& grid : picture.grids) {
    const Extent extent = grid_extent(grid, page, ticks);
    grow(widths, grid.place.col, extent.width);
    grow(heights, grid.place.row, extent.height);
  }
  const std::vector<int> lefts = starts(widths, kMargin);
  const std::vector<int> tops = starts(heights, kMargin + kTitleHeight - 6);
  for (const Grid& grid : picture.grids) {
    const int left = lefts[static_cast<std::size_t>(grid.place.col)];
    const int top = tops[static_cast<std::size_t>(grid.place.row)];
    Box box{{left, top + 12}, {left + ticks, top + kGridTitleHeight + kTicksHeight}, {left, 0}};
    box.notes.y = box.cells.y + row_count(grid) * page.cell_height + kNoteHeight;
    page.boxes.push_back(box);
  }
  page.width = std::max(lefts.back() - kGap + kMargin,
                        text_width(picture.title, 2 * kNoteLetter) + 2 * kMargin);
  page.height = tops.back() - kGap + kMargin;
  place_legend(picture, tops.back() - kGap + kMargin, page);
  return page;
}

std::string tick_text(const Axis& axis, int number) {
  const std::string& tick = axis.ticks[static_cast<std::size_t>(number)];
  return number == 0 && !axis.name.empty() ? format("{}={}", axis.name, tick) : tick;
}

}  // namespace kiln::explain
