// Tokens: the words and signs a tile function is made of.
//
//   x += 16;   is   identifier x, kPlusEqual, integer 16, kSemicolon
//
// Text views point into Sources; every file must be added to Sources before it is lexed.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/source.h"

namespace kiln::syntax {

enum class TokenKind : std::uint8_t {
  kEnd,
  kIdentifier,
  kInteger,
  kFloat,
  kString,   // one literal, quotes included
  kGroup4,   // `group-4`
  kPragma,   // a whole `#pragma croq ...` line
  kUnknown,  // a character or literal the lexer has already complained about
#define KILN_PUNCTUATION(Name, text) k##Name,
#include "syntax/token.def"
};

// What an identifier spells; kNone for every other name.
enum class Word : std::uint8_t {
  kNone,
#define KILN_WORD(Name, text, kind) k##Name,
#include "syntax/token.def"
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Word word = Word::kNone;
  bool line_start = false;    // first on its physical line
  bool space_before = false;  // white space or a comment stands before it
  bool no_expand = false;     // came out of its own macro: never expanded again
  std::string_view text;
  Span span;        // where the user wrote it: for text of a macro, the macro's use
  Span definition;  // for text of a macro, its place in the `#define`; else invalid
};

[[nodiscard]] std::string_view spelling(TokenKind kind);  // "`;`", "a name", "an integer"...
[[nodiscard]] std::string_view spelling(Word word);
[[nodiscard]] Word word_from_text(std::string_view text);
// "1 argument", "2 arguments".
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);
// True for words and element types that can never be names.
[[nodiscard]] bool is_reserved(std::string_view text);

}  // namespace kiln::syntax
