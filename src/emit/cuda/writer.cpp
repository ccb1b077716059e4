#include "emit/cuda/writer.h"

#include "emit/cuda/spell.h"
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
}

void Writer::close(std::string_view text) {
  --depth_;
  line(text);
}

void Writer::between(std::string_view text) {
  close(text);
  ++depth_;
}

}  // namespace kiln::emit
