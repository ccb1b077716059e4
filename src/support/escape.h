// Foreign text, written so that it stays what it is: the name of a file or of a `#line`, a word of
// the program, an option, bytes of a `.npy` file or of a JSON file. Whoever writes such text into
// a medium calls escape_for; nothing else in kiln escapes (support/json.h does it for JSON).
//
//   escape_for(Medium::kTerminal, "a\033[2J.co")          ==  a\x1b[2J.co          no command
//   escape_for(Medium::kComment, "a.co\nint x;*/")       ==  a.co\nint x;\x2a/    inside the comment
//   escape_for(Medium::kString, "say \"no\"\n")          ==  say \"no\"\n         between the quotes
//   escape_for(Medium::kMarkup, "a < b")                 ==  a &lt; b
//
// In every medium these are never written as themselves: control characters (also the upper ones,
// U+0080 to U+009F), bytes that are no UTF-8, separators of lines and paragraphs, and characters
// that nobody sees or that turn the direction of the text ("Trojan Source", CVE-2021-42574).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

enum class Medium : std::uint8_t {
  kTerminal,   // a line for people; a backslash of the text's own stays as it is
  kComment,    // of C++, `//` or `/* */`, inside one line
  kString,     // of C and C++, `"` excluded; reads back as the same bytes
  kIrString,   // of tile IR's text, likewise; its only escapes are \" \\ and \xHH
  kMarkup,     // text of HTML, SVG and XML; ends of lines and tabs stay
  kAttribute,  // between double quotes in markup
  kLatex,      // a word or a sentence in LaTeX
};

[[nodiscard]] std::string escape_for(Medium medium, std::string_view text);

[[nodiscard]] inline std::string shown(std::string_view text) {
  return escape_for(Medium::kTerminal, text);
}
[[nodiscard]] inline std::string in_markup(std::string_view text) {
  return escape_for(Medium::kMarkup, text);
}
[[nodiscard]] inline std::string in_attribute(std::string_view text) {
  return escape_for(Medium::kAttribute, text);
}

// For a terminal, several lines, whose ends stay: what another program said.
[[nodiscard]] std::string escape_lines(std::string_view text);

// The first character of a text that is not empty.
struct Character {
  char32_t code = 0;      // of an invalid one: its byte
  std::size_t bytes = 1;  // 1 to 4
  bool valid = true;      // as UTF-8

  // Columns on a terminal: 0 of an accent, 2 of most East Asian ones and of pictures.
  [[nodiscard]] std::size_t columns() const;
};
[[nodiscard]] Character first_character(std::string_view text);

// The columns that a line takes once it has been escaped for a terminal.
[[nodiscard]] std::size_t shown_columns(std::string_view escaped);

}  // namespace kiln
