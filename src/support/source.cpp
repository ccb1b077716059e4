#include "support/source.h"

#include <algorithm>

namespace kiln {

Span cover(Span a, Span b) {
  if (a.file != b.file) return a;
  return {a.file, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

FileId Sources::add(std::string name, std::string text) {
  File file{
      .name = std::move(name), .text = std::move(text), .line_begins = {0}, .presumptions = {}};
  for (std::size_t i = 0; i < file.text.size(); ++i) {
    if (file.text[i] == '\n') file.line_begins.push_back(static_cast<std::uint32_t>(i + 1));
  }
  return files_.push(std::move(file));
}

std::string_view Sources::name(FileId file) const { return files_[file].name; }
std::string_view Sources::text(FileId file) const { return files_[file].text; }

std::string_view Sources::text(Span span) const {
  return std::string_view(files_[span.file].text).substr(span.begin, span.end - span.begin);
}

std::int64_t Sources::line_of(FileId file, std::uint32_t offset) const {
  const auto& begins = files_[file].line_begins;
  return std::upper_bound(begins.begin(), begins.end(), offset) - begins.begin();
}

std::uint32_t Sources::line_begin(FileId file, std::int64_t line) const {
  return files_[file].line_begins[static_cast<std::size_t>(line - 1)];
}

std::string_view Sources::line_text(FileId file, std::int64_t line) const {
  const File& f = files_[file];
  if (line < 1 || static_cast<std::size_t>(line) > f.line_begins.size()) return {};
  std::string_view rest = std::string_view(f.text).substr(line_begin(file, line));
  std::string_view text = rest.substr(0, rest.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

void Sources::presume(FileId file, std::int64_t after_line, std::int64_t presumed_line,
                      std::string name) {
  files_[file].presumptions.push_back({after_line, presumed_line, std::move(name)});
}

Place Sources::place(FileId file, std::uint32_t offset) const {
  const File& f = files_[file];
  const std::int64_t line = line_of(file, offset);
  Place place{f.name, line, static_cast<std::int64_t>(offset - line_begin(file, line)) + 1};
  for (const Presumption& p : f.presumptions) {
    if (line <= p.after_line) break;
    place.line = p.presumed_line + (line - p.after_line - 1);
    if (!p.name.empty()) place.file = p.name;
  }
  return place;
}

}  // namespace kiln
