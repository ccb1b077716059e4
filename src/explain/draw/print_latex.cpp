#include <set>

#include "explain/draw/page.h"
#include "explain/draw/palette.h"
#include "explain/draw/print.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

// One pixel of the page is 0.75pt, and y grows downwards as there. \cell is x, y (of the upper left
// corner), colour, label, detail; \marked adds who touches it, in the style `touched` or
// `conflict`.
constexpr std::string_view kOpening =
    "\\documentclass[tikz,border=2pt]{standalone}\n"
    "\\usepackage[T1]{fontenc}\n"
    "\\usepackage{lmodern}\n";
constexpr std::string_view kCommands =
    "\\newcommand\\size[1]{\\fontsize{#1}{#1}\\selectfont}\n"
    "\\tikzset{big/.style={font=\\ttfamily\\size{9}, inner sep=0pt},\n"
    "  small/.style={font=\\ttfamily\\size{6.5}, inner sep=0pt, anchor=south east},\n"
    "  who/.style={font=\\ttfamily\\bfseries\\size{6.5}, inner sep=0pt, anchor=south west},\n"
    "  heading/.style={font=\\ttfamily\\bfseries\\size{#1}, inner sep=0pt, anchor=base west},\n"
    "  note/.style={font=\\ttfamily\\size{8}, inner sep=0pt, anchor=base west},\n"
    "  touched/.style={line width=1.5pt}, conflict/.style={line width=2pt, red!80!black, "
    "dashed}}\n";

std::string in_latex(std::string_view text) { return escape_for(Medium::kLatex, text); }

std::string colour_name(int colour) { return colour < 0 ? "blank" : format("c{}", colour); }

std::string colours(const Picture& picture) {
  std::set<int> used;
  for (const LegendEntry& entry : picture.legend) used.insert(entry.colour);
  for (const Grid& grid : picture.grids) {
    for (const Cell& cell : grid.cells) used.insert(cell.colour);
  }
  std::string out = "\\definecolor{blank}{HTML}{f4f5f7}\n";
  for (const int colour : used) {
    if (colour < 0) continue;
    out += format("\\definecolor{{{}}}{{HTML}}{{{}}}\n", colour_name(colour), hex(colour));
  }
  return out;
}

// The commands whose sizes depend on the page.
std::string cell_commands(const Page& page) {
  std::string out = format(
      "\\newcommand\\cell[5]{{\\filldraw[fill=#3, draw=white] (#1,#2) rectangle +({0},{1});\n"
      "  \\node[big] at (#1+{2},#2+{3}) {{#4}}; \\node[small] at (#1+{4},#2+{5}) {{#5}};}}\n",
      page.cell_width, page.cell_height, page.cell_width / 2, page.cell_height / 2 - 4,
      page.cell_width - 6, page.cell_height - 5);
  out += format(
      "\\newcommand\\marked[4]{{\\draw[#3] (#1+2,#2+2) rectangle +({},{});\n"
      "  \\node[who] at (#1+6,#2+{}) {{#4}};}}\n",
      page.cell_width - 4, page.cell_height - 4, page.cell_height - 5);
  return out;
}

std::string node(std::string_view style, Point at, const std::string& text) {
  return format("\\node[{}] at ({},{}) {{{}}};\n", style, at.x, at.y, in_latex(text));
}

std::string cell_latex(const Cell& cell, Point at) {
  std::string out = format("\\cell{{{}}}{{{}}}{{{}}}{{{}}}{{{}}}\n", at.x, at.y,
                           colour_name(cell.colour), in_latex(cell.label), in_latex(cell.detail));
  if (cell.mark.empty()) return out;
  return out + format("\\marked{{{}}}{{{}}}{{{}}}{{{}}}\n", at.x, at.y,
                      cell.conflict ? "conflict" : "touched", in_latex(cell.mark));
}

std::string grid_latex(const Page& page, const Box& box, const Grid& grid) {
  std::string out = node("heading=9", box.title, grid.title);
  for (int col = 0; col < col_count(grid); ++col) {
    const int x = box.cells.x + col * page.cell_width + page.cell_width / 2;
    out += node("note, anchor=base", {x, box.cells.y - 6}, tick_text(grid.cols, col));
  }
  for (int row = 0; row < row_count(grid); ++row) {
    const int top = box.cells.y + row * page.cell_height;
    const Point tick{box.cells.x - 6, top + page.cell_height / 2};
    out += node("note, anchor=east", tick, tick_text(grid.rows, row));
    for (int col = 0; col < col_count(grid); ++col) {
      out += cell_latex(cell_at(grid, row, col), {box.cells.x + col * page.cell_width, top});
    }
  }
  Point note = box.notes;
  for (const std::string& line : grid.notes) {
    out += node("note", note, line);
    note.y += kNoteHeight;
  }
  return out;
}

std::string_view swatch_style(LegendKind kind) {
  switch (kind) {
    case LegendKind::kColour: return "draw=white";
    case LegendKind::kMark: return "touched";
    case LegendKind::kConflict: break;
  }
  return "conflict";
}

std::string legend_latex(const LegendEntry& entry, Point at) {
  return format("\\filldraw[fill={}, {}] ({},{}) rectangle +({},{});\n", colour_name(entry.colour),
                swatch_style(entry.kind), at.x, at.y, kSwatch, kSwatch) +
         node("note", {at.x + kSwatch + 6, at.y + kSwatch - 3}, entry.text);
}

}  // namespace

std::string to_latex(const Picture& picture) {
  const Page page = lay_out(picture);
  std::string out = format("% {}\n", picture.title);
  out += kOpening;
  out += colours(picture);
  out += kCommands;
  out += cell_commands(page);
  out += "\\begin{document}\\frenchspacing\n\\begin{tikzpicture}[x=0.75pt, y=-0.75pt]\n";
  out += node("heading=12", page.title, picture.title);
  for (std::size_t i = 0; i < picture.grids.size(); ++i) {
    out += grid_latex(page, page.boxes[i], picture.grids[i]);
  }
  for (std::size_t i = 0; i < picture.legend.size(); ++i) {
    out += legend_latex(picture.legend[i], page.legend[i]);
  }
  return out + "\\end{tikzpicture}\n\\end{document}\n";
}

}  // namespace kiln::explain
