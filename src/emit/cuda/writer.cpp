#include "emit/cuda/writer.h"

#include <algorithm>

#include "emit/cuda/spell.h"
#include "ir/cuda_text.h"
#include "support/format.h"

namespace kiln::emit {

void Writer::at(const Place& place) {
  if (!line_directives_ || (place.line == line_ && place.file == file_)) return;
  text_ += format("#line {} {}\n", place.line, quoted(place.file));
  file_ = place.file;
  line_ = place.line;
}

void Writer::line(std::string_view text) {
  const bool directive = text.starts_with('#');
  if (!directive) text_.append(static_cast<std::size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
  if (line_ >= 0) ++line_;
}

void Writer::call(std::string_view function, const std::vector<std::string>& arguments) {
  constexpr std::size_t kColumns = 100;
  const std::string list = join(arguments, ", ", [](const std::string& text) { return text; });
  const std::string whole = format("{}({});", function, list);
  if (static_cast<std::size_t>(2 * depth_) + whole.size() <= kColumns) return line(whole);
  line(format("{}(", function));
  if (static_cast<std::size_t>(2 * depth_) + list.size() + 6 <= kColumns) {
    return line(format("    {});", list));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    line(format("    {}{}", arguments[i], i + 1 == arguments.size() ? ");" : ","));
  }
}

void Writer::open(std::string_view text) {
  line(text);
  ++depth_;
  open_block();
}

void Writer::close(std::string_view text) {
  --depth_;
  close_block();
  line(text);
}

bool Writer::is_open(Block block) const {
  return std::ranges::find(blocks_, block) != blocks_.end();
}

void Writer::close_block() {
  if (blocks_.size() > 1) blocks_.pop_back();
}

// A text of one line goes in where the lines around it do; of several, each stays where it is.
void Writer::splice(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto lines = std::ranges::count(text, '\n');
  if (lines == 0) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    line(text);
  } else {
    text_ += text;
    text_ += '\n';
    if (line_ >= 0) line_ += lines + 1;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = ir::end_of_aside(text, at);
    if (end == at && text[at] == '{') open_block();
    if (end == at && text[at] == '}') close_block();
    at = end == at ? at + 1 : end;
  }
}

void Writer::between(std::string_view text) {
  close(text);
  ++depth_;
  open_block();
}

}  // namespace kiln::emit
