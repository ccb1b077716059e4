// IR text as tokens.
//
//   %ma = load x=[1, -2]   ->   value "ma", punctuation "=", word "load", word "x", "=", "[", ...
//
// A word is a run of letters, digits, `_` and `.` (numbers and `16x16` are words too; the sign of
// an exponent belongs to its number). Comments run from `//` to the end of the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/source.h"

namespace kiln::ir {

enum class TokenKind : std::uint8_t {
  kWord,
  kValue,   // %name; the text is without the sign
  kSymbol,  // @name; likewise
  kString,  // the text is what stands between the quotes, escapes included
  kPunctuation,
  kBad,  // a character of no token, or a string without its end
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  Span span;
  bool first_of_line = false;
};

// The last token is always kEnd. The tokens point into `text`.
[[nodiscard]] std::vector<Token> lex(std::string_view text, FileId file);

}  // namespace kiln::ir
