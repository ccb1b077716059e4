#include "explain/draw/html_page.h"
#include "explain/draw/html_parts.h"
#include "explain/draw/page.h"
#include "explain/draw/palette.h"
#include "explain/draw/print.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

std::string colour_rules() {
  std::string out;
  for (int i = 0; i < kColours; ++i) out += format(".c{}{{background:#{}}}", i, hex(i));
  return out;
}

std::string classes(const Cell& cell) {
  std::string out = cell.colour < 0 ? "" : format("c{}", cell.colour);
  if (!cell.mark.empty()) out += cell.conflict ? " a x" : " a";
  return out;
}

std::string cell_html(const Cell& cell) {
  std::string out = format("<td class=\"{}\"", classes(cell));
  if (cell.owner >= 0) out += format(" data-o=\"{}\"", cell.owner);
  out += format(" title=\"{}\">{}", in_markup(describe(cell)), in_markup(cell.label));
  if (!cell.detail.empty()) out += format("<i>{}</i>", in_markup(cell.detail));
  if (!cell.mark.empty()) out += format("<b>{}</b>", in_markup(cell.mark));
  return out + "</td>";
}

std::string table_html(const Picture& picture, const Grid& grid) {
  const std::string name = in_markup(format("{}, {}", picture.title, grid.title));
  const std::string_view how = grid.mark_name.empty() ? "" : " class=\"marked\"";
  std::string out = format("<table{} aria-label=\"{}\">\n<thead><tr><td></td>", how, name);
  for (int col = 0; col < col_count(grid); ++col) {
    out += format("<th scope=\"col\">{}</th>", in_markup(tick_text(grid.cols, col)));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (int row = 0; row < row_count(grid); ++row) {
    out += format("<tr><th scope=\"row\">{}</th>", in_markup(tick_text(grid.rows, row)));
    for (int col = 0; col < col_count(grid); ++col) out += cell_html(cell_at(grid, row, col));
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string figure_html(const Picture& picture, const Grid& grid) {
  std::string out = format("<figure style=\"grid-area:{}/{}\">\n<figcaption>{}</figcaption>\n",
                           grid.place.row + 1, grid.place.col + 1, in_markup(grid.title));
  out += table_html(picture, grid);
  for (const std::string& note : grid.notes) {
    out += format("<p class=\"note\">{}</p>\n", in_markup(note));
  }
  return out + "</figure>\n";
}

std::string details_html(const Picture& picture, const Grid& grid) {
  return format("<details><summary>{}</summary>\n{}</details>\n", in_markup(grid.title),
                table_html(picture, grid));
}

std::string_view swatch_class(LegendKind kind) {
  switch (kind) {
    case LegendKind::kColour: return "";
    case LegendKind::kMark: return "a";
    case LegendKind::kConflict: break;
  }
  return "a x";
}

std::string legend_html(const Picture& picture) {
  std::string out = "<ul class=\"legend\" aria-label=\"legend\">\n";
  for (const LegendEntry& entry : picture.legend) {
    const std::string colour = entry.colour < 0 ? "" : format("c{} ", entry.colour);
    out += format("<li><span class=\"{}{}\"></span>{}</li>\n", colour, swatch_class(entry.kind),
                  in_markup(entry.text));
  }
  return out + "</ul>\n";
}

// Grids that repeat others fold away below.
std::string grids_html(const Picture& picture, std::string_view element) {
  std::string main;
  std::string folded;
  const bool only = picture.grids.front().secondary;  // then nothing is above to repeat
  for (const Grid& grid : picture.grids) {
    const bool fold = grid.secondary && !only;
    (fold ? folded : main) += fold ? details_html(picture, grid) : figure_html(picture, grid);
  }
  if (!folded.empty()) folded = "<section class=\"tables\">\n" + folded + "</section>\n";
  return format("<{0} class=\"grids\">\n{1}</{0}>\n{2}", element, main, folded);
}

}  // namespace

std::string page_head(const std::string& title) {
  std::string out = format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n",
      in_markup(title));
  out += kPageStyle;
  return out + colour_rules();
}

std::string search_form(const OwnerNames& owners) {
  const std::string range =
      owners.count == 0 ? "" : format("{0}00 to {0}{1:02}", owners.prefix, owners.count - 1);
  return format(
      "<form role=\"search\"><label for=\"owner\">Find a{} {}</label>\n"
      "<input id=\"owner\" autocomplete=\"off\" size=\"12\" placeholder=\"{}\">\n"
      "<button type=\"reset\">Clear</button></form>\n",
      owners.word == "index" ? "n" : "", owners.word, range);
}

std::string picture_html(const Picture& picture, std::string_view element) {
  return legend_html(picture) + grids_html(picture, element);
}

std::string to_html(const Picture& picture) {
  const std::string title = in_markup(picture.title);
  std::string out = page_head(picture.title);
  out +=
      format("\n</style>\n</head>\n<body data-word=\"{}\" data-prefix=\"{}\" data-count=\"{}\">\n",
             picture.owners.word, picture.owners.prefix, picture.owners.count);
  out += format("<header>\n<h1>{}</h1>\n{}</header>\n", title, search_form(picture.owners));
  out += picture_html(picture, "main");
  out += "<aside id=\"picked\" aria-live=\"polite\" hidden></aside>\n<script>\n";
  out += kPageScript;
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace kiln::explain
