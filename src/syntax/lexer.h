// Characters to tokens, and the few facts about text that every scanner of a `.co` file shares.
//
//   Lexer lexer(sources, file, begin, end, &diags);
//   while (lexer.peek_directive() == nullptr) use(lexer.next());
//
// `group-4` is one token; the longest sign wins (`#+` before `#`); white space, comments and
// backslash-newlines only separate. Spans are physical.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "diag/diagnostics.h"
#include "support/source.h"
#include "syntax/token.h"

namespace kiln::syntax {

[[nodiscard]] constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
[[nodiscard]] constexpr bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

// The offset just past the comment, literal or name that begins at `at`. Whatever is unterminated
// ends at the end of the text (a string: at the end of its line) and sets `closed` to false.
struct Skip {
  std::size_t end = 0;
  bool closed = true;
};
[[nodiscard]] Skip skip_comment(std::string_view text, std::size_t at);     // at `//` or `/*`
[[nodiscard]] Skip skip_string(std::string_view text, std::size_t at);      // at `"` or `'`
[[nodiscard]] Skip skip_raw_string(std::string_view text, std::size_t at);  // at `R"`
[[nodiscard]] std::size_t skip_name(std::string_view text, std::size_t at);
[[nodiscard]] bool starts_comment(std::string_view text, std::size_t at);
[[nodiscard]] bool starts_raw_string(std::string_view text, std::size_t at);
// Length of a backslash-newline at `at`, else 0.
[[nodiscard]] std::size_t continuation_length(std::string_view text, std::size_t at);

// The first byte that makes this no text: a NUL, or one that is not UTF-8 outside comments.
[[nodiscard]] std::optional<std::size_t> find_binary_byte(std::string_view text);

// True when `R"` at `at` is followed by a short tag and a `(`.
[[nodiscard]] bool opens_raw_string(std::string_view text, std::size_t at);
// What ends the raw string that begins at `at`: `)tag"`.
[[nodiscard]] std::string raw_string_end(std::string_view text, std::size_t at);

class Lexer {
 public:
  // Lexes bytes [begin, end) of `file`. With `diags` null, mistakes only give kUnknown tokens.
  Lexer(const Sources& sources, FileId file, std::size_t begin, std::size_t end,
        Diagnostics* diags);

  // The next token; kEnd (again and again) at the end of the range.
  [[nodiscard]] Token next();
  // Skips white space and comments, then tells whether a `#` comes first on its line (`line_start`
  // of the token that follows).
  [[nodiscard]] bool at_line_start_hash();

  [[nodiscard]] std::size_t position() const { return position_; }
  void jump(std::size_t position);  // to the start of a line
  // A comment or a raw string without an end has swallowed the rest of the text.
  [[nodiscard]] bool swallowed_rest() const { return swallowed_rest_; }

 private:
  void skip_space();
  void skip_one_comment();
  Token take(TokenKind kind, std::size_t end);
  Token number();
  Token string();
  Token name();
  Token sign();
  Token unknown();
  void check_integer(const Token& token);

  std::string_view text_;  // up to `end`
  FileId file_;
  Diagnostics* diags_;
  std::size_t position_;
  bool line_start_;
  bool space_before_ = false;
  bool swallowed_rest_ = false;
  int errors_left_ = 20;  // a file of rubbish deserves no more
};

// The value of a well-formed kInteger token's digits; empty when it needs more than 64 bits.
[[nodiscard]] std::optional<std::uint64_t> integer_value(std::string_view text);

// The characters a kString token stands for. Unknown escapes are kept as written; the offset of the
// first one is put into `bad_escape`.
[[nodiscard]] std::string string_value(std::string_view text,
                                       std::optional<std::size_t>* bad_escape);

}  // namespace kiln::syntax
