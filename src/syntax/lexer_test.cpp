#include "syntax/lexer.h"

#include <gtest/gtest.h>

namespace kiln::syntax {
namespace {

std::vector<std::string> texts(const std::string& text) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", text);
  Lexer lexer(sources, file, 0, text.size(), &diags);
  std::vector<std::string> out;
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) {
    out.emplace_back(token.text);
  }
  EXPECT_EQ(diags.error_count(), 0U) << text;
  return out;
}

TEST(Lexer, TakesTheLongestSign) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("a#+b#b #- 1"), (Texts{"a", "#+", "b", "#", "b", "#-", "1"}));
  EXPECT_EQ(texts("x<->y<=z=>w"), (Texts{"x", "<->", "y", "<=", "z", "=>", "w"}));
  EXPECT_EQ(texts("? ?? ::"), (Texts{"?", "??", "::"}));
  EXPECT_EQ(texts("a[[b]]"), (Texts{"a", "[", "[", "b", "]", "]"}));
}

TEST(Lexer, Group4IsOneTokenOnlyWithoutBlanks) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("group-4 {"), (Texts{"group-4", "{"}));
  EXPECT_EQ(texts("group - 4"), (Texts{"group", "-", "4"}));
  EXPECT_EQ(texts("group-40"), (Texts{"group", "-", "40"}));
}

TEST(Lexer, NumbersAndMembers) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("1.5f 0x1Fu 1e-6f 3ull"), (Texts{"1.5f", "0x1Fu", "1e-6f", "3ull"}));
  EXPECT_EQ(texts("x(0).at"), (Texts{"x", "(", "0", ")", ".", "at"}));
  EXPECT_EQ(integer_value("18446744073709551615"), 18446744073709551615ULL);
  EXPECT_EQ(integer_value("18446744073709551616"), std::nullopt);
  EXPECT_EQ(integer_value("0xffULL"), 255U);
}

TEST(Lexer, SpacesAndCommentsOnlySeparate) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts("a/* b\n */c // d\n\\\ne"), (Texts{"a", "c", "e"}));
  EXPECT_EQ(texts("R\"x(a)\" /*)x\" b"), (Texts{"R\"x(a)\" /*)x\"", "b"}));
}

TEST(Lexer, StringValues) {
  EXPECT_EQ(string_value(R"("a\n\t\"\\")", nullptr), "a\n\t\"\\");
  EXPECT_EQ(string_value("R\"t(a\\n)t\"", nullptr), "a\\n");
  std::optional<std::size_t> bad;
  EXPECT_EQ(string_value(R"("x\q")", &bad), "x\\q");
  EXPECT_EQ(bad, 2U);
}

TEST(Lexer, LineStartsAndSpans) {
  Sources sources;
  const FileId file = sources.add("t.co", "a b\n  c");
  Lexer lexer(sources, file, 0, 7, nullptr);
  EXPECT_TRUE(lexer.next().line_start);
  EXPECT_FALSE(lexer.next().line_start);
  const Token c = lexer.next();
  EXPECT_TRUE(c.line_start);
  EXPECT_EQ(c.span.begin, 6U);
  EXPECT_EQ(c.span.end, 7U);
}

TEST(Lexer, BinaryBytesCountOutsideCommentsOnly) {
  EXPECT_EQ(find_binary_byte("a \xc3\xa9 b"), std::nullopt);
  EXPECT_EQ(find_binary_byte("a // \xff\n"), std::nullopt);
  EXPECT_EQ(find_binary_byte("a \xff // b"), 2U);
  EXPECT_EQ(find_binary_byte("\"\xff\""), 1U);
  EXPECT_EQ(find_binary_byte(std::string_view("a/*\0*/", 6)), 3U);
}

TEST(Lexer, RubbishIsOneUnknownTokenPerRun) {
  Sources sources;
  Diagnostics diags;
  const std::string text(1'000'000, '@');
  const FileId file = sources.add("t.co", text);
  Lexer lexer(sources, file, 0, text.size(), &diags);
  EXPECT_EQ(lexer.next().kind, TokenKind::kUnknown);
  EXPECT_EQ(lexer.next().kind, TokenKind::kEnd);
  ASSERT_EQ(diags.all().size(), 1U);
  EXPECT_LT(diags.all()[0].message.size(), 80U);
}

}  // namespace
}  // namespace kiln::syntax
