#include "diag/render.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "support/escape.h"
#include "support/json.h"

namespace kiln {

namespace {

constexpr std::size_t kColumnsMax = 160;  // of a source line that is shown
constexpr std::int64_t kTabWidth = 4;
constexpr std::size_t kWordMax = 200;  // bytes of a message without a blank
constexpr std::size_t kWordKept = 80;
constexpr std::size_t kTextMax = 2000;  // bytes of a message
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view severity_text(Severity severity) {
  switch (severity) {
    case Severity::kError: return "error";
    case Severity::kWarning: return "warning";
    case Severity::kNote: return "note";
  }
  return "";
}

std::string_view severity_colour(Severity severity) {
  switch (severity) {
    case Severity::kError: return "\x1b[1;31m";
    case Severity::kWarning: return "\x1b[1;33m";
    case Severity::kNote: return "\x1b[1;36m";
  }
  return "";
}

// One underlined place, on one line.
struct Mark {
  FileId file;
  std::int64_t line;
  std::int64_t column;  // from 0, physical, in bytes
  std::int64_t width;
  bool primary;
  std::string text;
};

// A line of the program, its tabs as spaces.
std::string shown_source(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t tab = std::min(text.find('\t'), text.size());
    out += shown(text.substr(0, tab));
    if (tab == text.size()) return out;
    out.append(kTabWidth, ' ');
    text.remove_prefix(tab + 1);
  }
}

// Columns that a part of a line takes: by character, not by byte of UTF-8.
std::size_t shown_width(std::string_view text) { return shown_columns(shown_source(text)); }

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The last place at or before `at` where a character begins: a byte that continues none is one.
std::size_t character_begin(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  for (std::size_t back = 1; back <= std::min<std::size_t>(at, 3); ++back) {
    if (continues_character(text[at - back])) continue;
    return first_character(text.substr(at - back)).bytes > back ? at - back : at;
  }
  return at;
}

bool is_word_end(char c) { return c == '`' || c == ',' || c == ')' || c == ';' || c == ':'; }

// A word too long to be read is cut, but not the "`," that follows a name.
void append_word(std::string& out, std::string_view word) {
  if (word.size() <= kWordMax) {
    out += word;
    return;
  }
  std::size_t tail = word.size();
  while (word.size() - tail < 3 && is_word_end(word[tail - 1])) --tail;
  out += word.substr(0, character_begin(word, kWordKept));
  out += "...";
  out += word.substr(tail);
}

// A message may quote the program, in which a name has any length.
std::string shortened(std::string_view text) {
  std::string out;
  while (!text.empty() && out.size() < kTextMax) {
    const std::size_t end = std::min(text.find(' '), text.size());
    append_word(out, text.substr(0, end));
    const std::size_t next = std::min(text.find_first_not_of(' ', end), text.size());
    out += text.substr(end, std::min(next - end, kWordMax));
    text.remove_prefix(next);
  }
  return text.empty() ? out : out + "...";
}

// A byte order mark takes no column.
std::uint32_t mark_size(const Sources& sources, FileId file, std::int64_t line) {
  const bool marked = line == 1 && sources.text(file).starts_with(kByteOrderMark);
  return marked ? static_cast<std::uint32_t>(kByteOrderMark.size()) : 0;
}

Place place_of(const Sources& sources, Span span) {
  Place place = sources.place(span);
  const std::int64_t line = sources.line_of(span.file, span.begin);
  const std::int64_t skipped = mark_size(sources, span.file, line);
  place.column = std::max<std::int64_t>(place.column - skipped, 1);
  return place;
}

std::string_view line_without_mark(const Sources& sources, FileId file, std::int64_t line) {
  const std::string_view text = sources.line_text(file, line);
  return text.substr(std::min<std::size_t>(text.size(), mark_size(sources, file, line)));
}

Mark mark_of(const Sources& sources, Span span, bool primary, std::string text) {
  const std::int64_t line = sources.line_of(span.file, span.begin);
  const std::int64_t line_begin =
      sources.line_begin(span.file, line) + mark_size(sources, span.file, line);
  const std::int64_t column = std::max<std::int64_t>(span.begin - line_begin, 0);
  const auto line_width =
      static_cast<std::int64_t>(line_without_mark(sources, span.file, line).size());
  const std::int64_t room = std::max<std::int64_t>(line_width - column, 1);
  const std::int64_t width = std::clamp<std::int64_t>(span.end - span.begin, 1, room);
  return {span.file, line, column, width, primary, std::move(text)};
}

std::vector<Mark> marks_of(const Diagnostic& diagnostic, const Sources& sources) {
  std::vector<Mark> marks;
  bool primary_explained = false;
  for (const Label& label : diagnostic.labels) {
    if (!label.span.valid()) continue;
    const bool primary = label.span == diagnostic.span;
    primary_explained = primary_explained || primary;
    marks.push_back(mark_of(sources, label.span, primary, label.text));
  }
  if (!primary_explained) marks.push_back(mark_of(sources, diagnostic.span, true, ""));
  // The file of the mistake first, whose name stands above.
  const auto order = [&](const Mark& mark) {
    return std::tuple(mark.file != diagnostic.span.file, mark.file.index, mark.line, mark.column);
  };
  std::stable_sort(marks.begin(), marks.end(),
                   [&](const Mark& a, const Mark& b) { return order(a) < order(b); });
  return marks;
}

struct Painter {
  bool colour;
  std::string_view accent;
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const {
    return colour ? format("{}{}\x1b[0m", code, text) : std::string(text);
  }
};

// The window of a long line that shows the mark.
std::size_t window_begin(std::string_view line, const Mark& mark) {
  if (line.size() <= kColumnsMax) return 0;
  const auto column = static_cast<std::size_t>(mark.column);
  return column < kColumnsMax / 2 ? 0 : column - kColumnsMax / 2;
}

// What every line of one diagnostic's snippets shares.
struct Canvas {
  const Sources& sources;
  const Painter& painter;
  std::size_t gutter;  // width of the line numbers

  [[nodiscard]] std::int64_t shown_line(const Mark& mark) const {
    return sources.place(mark.file, sources.line_begin(mark.file, mark.line)).line;
  }
};

void append_mark(std::string& out, const Canvas& canvas, const Mark& mark, bool repeat_line) {
  const Painter& painter = canvas.painter;
  const std::size_t gutter = canvas.gutter;
  const std::string_view line = line_without_mark(canvas.sources, mark.file, mark.line);
  const std::size_t begin = character_begin(line, window_begin(line, mark));
  const std::size_t end = character_begin(line, std::min(begin + kColumnsMax, line.size()));
  const std::string_view window = line.substr(begin, end - begin);
  if (!repeat_line) {
    out += painter.paint("\x1b[1;34m", format("{:>{}} |", canvas.shown_line(mark), gutter));
    out += format(" {}\n", shown_source(window));
  }
  const auto column = std::min(static_cast<std::size_t>(mark.column) - begin, window.size());
  const std::size_t first = character_begin(window, column);
  const std::size_t indent = shown_width(window.substr(0, first));
  const std::size_t behind = std::min(column + static_cast<std::size_t>(mark.width), window.size());
  const std::size_t width = shown_width(window.substr(first, behind - first));
  const std::string underline(std::max<std::size_t>(width, 1), mark.primary ? '^' : '-');
  const std::string text =
      mark.text.empty() ? underline : format("{} {}", underline, shown(shortened(mark.text)));
  out += painter.paint("\x1b[1;34m", format("{:>{}} |", "", gutter));
  out += format(" {}{}\n", std::string(indent, ' '),
                painter.paint(mark.primary ? painter.accent : "\x1b[1;34m", text));
}

void append_snippets(std::string& out, const Diagnostic& diagnostic, const Sources& sources,
                     const Painter& painter) {
  const std::vector<Mark> marks = marks_of(diagnostic, sources);
  const Place place = place_of(sources, diagnostic.span);
  Canvas canvas{sources, painter, 0};
  std::int64_t largest = 1;
  for (const Mark& mark : marks) largest = std::max(largest, canvas.shown_line(mark));
  canvas.gutter = format("{}", largest).size() + 1;
  const std::size_t gutter = canvas.gutter;
  const std::string bar = painter.paint("\x1b[1;34m", format("{:>{}} |", "", gutter));
  out += painter.paint("\x1b[1;34m", format("{:>{}}-->", "", gutter));
  out += format(" {}:{}:{}\n{}\n", shown(place.file), place.line, place.column, bar);
  const Mark* previous = nullptr;
  for (const Mark& mark : marks) {
    const bool same_file = previous == nullptr || previous->file == mark.file;
    if (!same_file) {
      out += format("{:>{}}::: {}\n", "", gutter, shown(sources.place(mark.file, 0).file));
    }
    const bool repeat = previous != nullptr && same_file && previous->line == mark.line;
    append_mark(out, canvas, mark, repeat);
    previous = &mark;
  }
  if (!diagnostic.notes.empty() || !diagnostic.help.empty()) out += bar + "\n";
}

std::string plural(std::size_t count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string render(const Diagnostic& diagnostic, const Sources& sources,
                   const RenderOptions& options) {
  const Painter painter{options.colour, severity_colour(diagnostic.severity)};
  std::string out =
      painter.paint(painter.accent,
                    format("{}[{}]", severity_text(diagnostic.severity), info(diagnostic.id).name));
  out += format(": {}\n", shown(shortened(diagnostic.message)));
  if (diagnostic.span.valid()) append_snippets(out, diagnostic, sources, painter);
  for (const std::string& note : diagnostic.notes) {
    out += format("  = note: {}\n", shown(shortened(note)));
  }
  if (!diagnostic.help.empty()) {
    out += format("  = help: {}\n", shown(shortened(diagnostic.help)));
  }
  return out;
}

std::string render_all(const Diagnostics& diagnostics, const Sources& sources,
                       const RenderOptions& options) {
  std::string out;
  std::size_t warnings = 0;
  std::size_t errors_shown = 0;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    out += render(diagnostic, sources, options) + "\n";
    if (diagnostic.severity == Severity::kWarning) ++warnings;
    if (diagnostic.severity == Severity::kError) ++errors_shown;
  }
  std::string count;
  if (diagnostics.has_errors()) count = plural(diagnostics.error_count(), "error");
  if (diagnostics.error_count() > errors_shown)
    count += format(" (the first {} shown)", errors_shown);
  if (warnings != 0) count += (count.empty() ? "" : ", ") + plural(warnings, "warning");
  if (!count.empty()) out += count + "\n";
  return out;
}

std::string render_json(const Diagnostics& diagnostics, const Sources& sources) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    const Place place =
        diagnostic.span.valid() ? place_of(sources, diagnostic.span) : Place{"", 0, 0};
    rows.push_back({{"id", info(diagnostic.id).name},
                    {"severity", severity_text(diagnostic.severity)},
                    {"file", place.file},
                    {"line", place.line},
                    {"column", place.column},
                    {"message", shortened(diagnostic.message)},
                    {"help", shortened(diagnostic.help)}});
  }
  return json_text(rows, 2) + "\n";
}

}  // namespace kiln
