#include "syntax/token.h"

#include <array>
#include <unordered_map>

#include "support/check.h"
#include "support/dtype.h"

namespace kiln::syntax {

namespace {

constexpr bool Reserved = true;
constexpr bool Free = false;

struct WordInfo {
  Word word;
  std::string_view text;
  bool reserved;
};
constexpr WordInfo kWords[] = {
#define KILN_WORD(Name, text, kind) {Word::k##Name, text, kind},
#include "syntax/token.def"
};

// In the order of TokenKind.
constexpr std::string_view kKinds[] = {
    "the end of the file", "a name",   "an integer",           "a number", "a string",
    "`group-4`",           "a pragma", "an unknown character",
#define KILN_PUNCTUATION(Name, text) "`" text "`",
#include "syntax/token.def"
};

const std::unordered_map<std::string_view, WordInfo>& words_by_text() {
  static const auto words = [] {
    std::unordered_map<std::string_view, WordInfo> map;
    for (const WordInfo& row : kWords) map.emplace(row.text, row);
    return map;
  }();
  return words;
}

}  // namespace

std::string_view spelling(TokenKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string_view spelling(Word word) {
  return word == Word::kNone ? std::string_view() : kWords[static_cast<std::size_t>(word) - 1].text;
}

Word word_from_text(std::string_view text) {
  const auto found = words_by_text().find(text);
  return found == words_by_text().end() ? Word::kNone : found->second.word;
}

std::string counted(std::size_t count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool is_reserved(std::string_view text) {
  const auto found = words_by_text().find(text);
  if (found != words_by_text().end()) return found->second.reserved;
  return dtype_from_name(text).has_value();
}

}  // namespace kiln::syntax
