#include "explain/draw/page.h"
#include "explain/draw/palette.h"
#include "explain/draw/print.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

// No fonts but the reader's own; the page is white so that it reads on any background.
constexpr std::string_view kStyle =
    "<style>text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',"
    "monospace;font-size:12px;fill:#1b1f24;text-anchor:middle}"
    ".h{font-size:16px;font-weight:700}.g{font-size:12px;font-weight:700}.h,.g,.n{text-anchor:"
    "start}"
    ".n{font-size:11px;fill:#4a525b}.t{fill:#4a525b;font-size:11px}.r{text-anchor:end}"
    ".d{font-size:9px;text-anchor:end}.m{font-size:9px;font-weight:700;text-anchor:start}"
    ".k{stroke:#fff;stroke-width:1}.a{fill:none;stroke:#1b1f24;stroke-width:2}"
    ".x{fill:none;stroke:#c1121f;stroke-width:2;stroke-dasharray:4 2}</style>\n";

std::string text_at(Point at, std::string_view kind, const std::string& text) {
  const std::string how = kind.empty() ? "" : format(" class=\"{}\"", kind);
  return format("<text x=\"{}\" y=\"{}\"{}>{}</text>", at.x, at.y, how, in_markup(text));
}

std::string rect_at(Point at, int width, int height, const std::string& how) {
  return format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>", at.x, at.y, width,
                height, how);
}

std::string fill_of(int colour) {
  return format("fill=\"#{}\"", colour < 0 ? "f4f5f7" : hex(colour));
}

std::string frame(Point at, int width, int height, bool conflict) {
  return rect_at({at.x + 2, at.y + 2}, width - 4, height - 4,
                 conflict ? "class=\"x\"" : "class=\"a\"");
}

std::string cell_svg(const Page& page, const Cell& cell, Point at) {
  const int middle = at.y + page.cell_height / 2 + 4;
  std::string out = format("<g><title>{}</title>", in_markup(describe(cell)));
  out += rect_at(at, page.cell_width, page.cell_height, "class=\"k\" " + fill_of(cell.colour));
  const bool alone = cell.detail.empty();
  out += text_at({at.x + page.cell_width / 2, alone ? middle : middle - 5}, "", cell.label);
  if (!alone) {
    const int inset = cell.mark.empty() ? 4 : 7;
    const Point corner{at.x + page.cell_width - inset, at.y + page.cell_height - inset};
    out += text_at(corner, "d", cell.detail);
  }
  if (!cell.mark.empty()) {
    out += frame(at, page.cell_width, page.cell_height, cell.conflict);
    out += text_at({at.x + 7, at.y + page.cell_height - 7}, "m", cell.mark);
  }
  return out + "</g>\n";
}

std::string grid_svg(const Page& page, const Box& box, const Grid& grid) {
  std::string out = text_at(box.title, "g", grid.title) + "\n";
  for (int col = 0; col < col_count(grid); ++col) {
    const int x = box.cells.x + col * page.cell_width + page.cell_width / 2;
    out += text_at({x, box.cells.y - 6}, "t", tick_text(grid.cols, col)) + "\n";
  }
  for (int row = 0; row < row_count(grid); ++row) {
    const int top = box.cells.y + row * page.cell_height;
    const Point tick{box.cells.x - 6, top + page.cell_height / 2 + 4};
    out += text_at(tick, "t r", tick_text(grid.rows, row)) + "\n";
    for (int col = 0; col < col_count(grid); ++col) {
      out += cell_svg(page, cell_at(grid, row, col), {box.cells.x + col * page.cell_width, top});
    }
  }
  Point note = box.notes;
  for (const std::string& line : grid.notes) {
    out += text_at(note, "n", line) + "\n";
    note.y += kNoteHeight;
  }
  return out;
}

std::string legend_svg(const LegendEntry& entry, Point at) {
  std::string out = rect_at(at, kSwatch, kSwatch, fill_of(entry.colour));
  if (entry.kind != LegendKind::kColour) {
    out += frame(at, kSwatch, kSwatch, entry.kind == LegendKind::kConflict);
  }
  return out + text_at({at.x + kSwatch + 6, at.y + kSwatch - 3}, "n", entry.text) + "\n";
}

}  // namespace

std::string to_svg(const Picture& picture) {
  const Page page = lay_out(picture);
  std::string out = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n",
      page.width, page.height);
  out += format("<title>{}</title>\n", in_markup(picture.title));
  out += kStyle;
  out += rect_at({0, 0}, page.width, page.height, "rx=\"8\" fill=\"#fff\"") + "\n";
  out += text_at(page.title, "h", picture.title) + "\n";
  for (std::size_t i = 0; i < picture.grids.size(); ++i) {
    out += grid_svg(page, page.boxes[i], picture.grids[i]);
  }
  for (std::size_t i = 0; i < picture.legend.size(); ++i) {
    out += legend_svg(picture.legend[i], page.legend[i]);
  }
  return out + "</svg>\n";
}

}  // namespace kiln::explain
