#include "support/escape.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "support/format.h"

namespace kiln {
namespace {

constexpr Medium kMedia[] = {Medium::kTerminal, Medium::kComment, Medium::kString,
                             Medium::kIrString, Medium::kMarkup,  Medium::kAttribute,
                             Medium::kLatex};

// What other programs make of the texts, written without a look at escape.cpp.

// Nothing that a terminal obeys: strict UTF-8, no control character, no mark of direction.
bool is_harmless(std::string_view text, std::string_view allowed = "") {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      const bool control = lead < 0x20 || lead == 0x7f;
      if (control && allowed.find(text[i]) == std::string_view::npos) return false;
      ++i;
      continue;
    }
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || i + bytes > text.size()) return false;
    std::uint32_t code = lead & (0xffU >> (bytes + 1));
    for (std::size_t k = 1; k < bytes; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next < 0x80 || next > 0xbf) return false;
      code = code * 64 + (next - 0x80U);
    }
    const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    const bool directs = code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
                         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f);
    const bool tag = code >= 0xe0000 && code <= 0xe0fff;
    if (overlong || code < 0xa0 || (code >= 0xd800 && code <= 0xdfff)) return false;
    if (directs || tag || code == 0xfeff || code == 0xad || code > 0x10ffff) return false;
    i += bytes;
  }
  return true;
}

// The first three phases of translation: trigraphs, then lines that are joined.
std::string translated(std::string_view text) {
  const std::string_view from = "=/'()!<>-";
  const std::string_view to = "#\\^[]|{}~";
  std::string replaced;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t which =
        text.substr(i, 2) == "??" && i + 2 < text.size() ? from.find(text[i + 2]) : from.npos;
    replaced += which == from.npos ? text[i] : to[which];
    if (which != from.npos) i += 2;
  }
  std::string joined;
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    std::size_t end = i + 1;  // compilers pass over blanks between the backslash and the line's end
    while (end < replaced.size() && (replaced[end] == ' ' || replaced[end] == '\r')) ++end;
    if (replaced[i] == '\\' && end < replaced.size() && replaced[end] == '\n') {
      i = end;
    } else {
      joined += replaced[i];
    }
  }
  return joined;
}

// Whether both kinds of comment around `text` end where they were meant to.
bool stays_a_comment(std::string_view text) {
  const std::string line = translated(format("// {}\nint after;", text));
  if (line.find("int after;") != line.find('\n') + 1) return false;
  const std::string block = translated(format("/* {} */int after;", text));
  return block.find("*/", 2) == block.size() - std::string_view("*/int after;").size();
}

// The bytes of the C string whose text this is; nothing when it is no single string.
std::optional<std::string> decoded(std::string_view literal) {
  const std::string text = translated(literal);
  if (text.size() < 2 || text.front() != '"') return std::nullopt;
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1 == text.size() ? std::optional(out) : std::nullopt;
    if (text[i] == '\n' || text[i] == '\r' || text[i] == '\0') return std::nullopt;
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char next = ++i < text.size() ? text[i] : '\0';
    if (next >= '0' && next <= '7') {
      int value = 0;
      std::size_t digits = 0;
      while (digits < 3 && text[i] >= '0' && text[i] <= '7') {
        value = 8 * value + (text[i++] - '0');
        ++digits;
      }
      --i;
      out += static_cast<char>(value);
    } else if (next == 'n') {
      out += '\n';
    } else if (next == '"' || next == '\\' || next == '?') {
      out += next;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Of tile IR: \" \\ \xHH and nothing else.
std::optional<std::string> decoded_ir(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\n') return std::nullopt;
    if (text[i] != '\\') {
      out += text[i];
    } else if (text.substr(i + 1, 1) == "x" && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 2, 2)), nullptr, 16));
      i += 3;
    } else if (i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) {
      out += text[++i];
    } else {
      return std::nullopt;
    }
  }
  return out;
}

// No tag, no entity but the four, no end of an attribute.
bool stays_markup(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '>' || text[i] == '"') return false;
    if (text[i] != '&') continue;
    const std::string_view rest = text.substr(i);
    const bool known = rest.starts_with("&amp;") || rest.starts_with("&lt;") ||
                       rest.starts_with("&gt;") || rest.starts_with("&quot;") ||
                       rest.starts_with("&#10;") || rest.starts_with("&#9;");
    if (!known) return false;
  }
  return true;
}

// Braces in pairs, no comment, mathematics, argument or table, and only commands that we wrote.
bool stays_latex(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      const std::string_view rest = text.substr(i + 1);
      const bool sign = !rest.empty() && std::string_view("&%$#_{}").find(rest[0]) != rest.npos;
      const bool word = rest.starts_with("textbackslash{}") ||
                        rest.starts_with("textasciitilde{}") ||
                        rest.starts_with("textasciicircum{}") || rest.starts_with("textless{}") ||
                        rest.starts_with("textgreater{}");
      if (!sign && !word) return false;
      if (sign) ++i;
      continue;
    }
    if (std::string_view("&%$#_~^<>").find(text[i]) != std::string_view::npos) return false;
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth < 0) return false;
  }
  return depth == 0;
}

// Why an escaped text is not what it should be; "" when it is.
std::string fault(const std::string& text) {
  const auto in = [&](Medium medium) { return escape_for(medium, text); };
  for (const Medium medium : kMedia) {
    const bool lines = medium == Medium::kMarkup;
    if (!is_harmless(in(medium), lines ? "\n\t" : "")) {
      return format("not harmless in medium {}", static_cast<int>(medium));
    }
  }
  if (!is_harmless(escape_lines(text), "\n")) return "lines are not harmless";
  if (!stays_a_comment(in(Medium::kComment))) return "ends the comment";
  if (decoded("\"" + in(Medium::kString) + "\"") != text) return "another string";
  if (decoded_ir(in(Medium::kIrString)) != text) return "another string of IR";
  if (!stays_markup(in(Medium::kMarkup)) || !stays_markup(in(Medium::kAttribute))) return "markup";
  return stays_latex(in(Medium::kLatex)) ? "" : "latex";
}

std::string hex(std::string_view text) {
  return join(text, " ", [](char c) { return format("{:02x}", static_cast<unsigned char>(c)); });
}

TEST(Escape, EverySingleByteAndEveryPairOfBytes) {
  for (int a = 0; a < 256; ++a) {
    const std::string one(1, static_cast<char>(a));
    ASSERT_EQ(fault(one), "") << hex(one);
    for (int b = 0; b < 256; ++b) {
      const std::string two = one + static_cast<char>(b);
      ASSERT_EQ(fault(two), "") << hex(two);
    }
  }
}

// What ends something, or begins an escape, in every order and next to each other.
TEST(Escape, AllSequencesOfFourSpecialPieces) {
  const std::vector<std::string> pieces = {
      "\\", "\"", "*", "/", "?",    "\n",           " ",        "\r",   "<",    "&",
      "{",  "%",  "0", "x", "\x1b", "\xe2\x80\xae", "\xc2\x9b", "\xe2", "\x80", "\xc3\xa9"};
  for (const std::string& a : pieces) {
    for (const std::string& b : pieces) {
      for (const std::string& c : pieces) {
        for (const std::string& d : pieces) {
          const std::string text = a + b + c + d;
          ASSERT_EQ(fault(text), "") << hex(text);
        }
      }
    }
  }
}

TEST(Escape, RandomBytesAndRandomCharacters) {
  std::mt19937 random(1);
  const std::string_view special = "\\\"'*/?\n\r\t &<>{}$%#_^~0178abfnx\x1b\x7f";
  for (int round = 0; round < 40000; ++round) {
    std::string text;
    const std::size_t length = random() % 24;
    while (text.size() < length) {
      switch (random() % 4) {
        case 0: text += static_cast<char>(random() % 256); break;
        case 1: text += static_cast<char>(0xc0 + random() % 64); break;
        case 2: text += static_cast<char>(0x80 + random() % 64); break;
        default: text += special[random() % special.size()];
      }
    }
    ASSERT_EQ(fault(text), "") << hex(text);
  }
}

// Each code point by itself is kept or shown, and is one character of the right length.
TEST(Escape, EveryCodePoint) {
  for (std::uint32_t code = 0x80; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    std::string text;
    if (code >= 0x10000) {
      text += static_cast<char>(0xf0 | code >> 18);
      text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    } else if (code >= 0x800) {
      text += static_cast<char>(0xe0 | code >> 12);
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
    }
    if (code >= 0x800) text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
    const Character character = first_character(text);
    ASSERT_TRUE(character.valid && character.code == code && character.bytes == text.size())
        << code;
    const std::string terminal = shown(text);
    ASSERT_TRUE(is_harmless(terminal)) << code;
    const std::string escape =
        code < 0x10000 ? format("\\u{:04x}", code) : format("\\U{:08x}", code);
    ASSERT_TRUE(terminal == text || terminal == escape) << code;
  }
}

TEST(Escape, WhatIsPlainStaysAsItIs) {
  const std::string plain = "kernels/gemm-1 (größe, 行列, каша).co: `a + b` is 7, isn't it";
  for (const Medium medium : kMedia) EXPECT_EQ(escape_for(medium, plain), plain);
}

TEST(Escape, ExamplesOfEachMedium) {
  EXPECT_EQ(shown("\x1b[2J\xc2\x9b\xff\xe2\x80\xae\n"), "\\x1b[2J\\u009b\\xff\\u202e\\n");
  EXPECT_EQ(escape_for(Medium::kComment, "a*/b\\"), "a\\x2a/b\\x5c");
  EXPECT_EQ(escape_for(Medium::kString,
                       "\x1b"
                       "7\"\n?\?/"),
            "\\0337\\\"\\n?\\?/");
  EXPECT_EQ(escape_for(Medium::kIrString,
                       "\x1b"
                       "7\""),
            "\\x1b7\\\"");
  EXPECT_EQ(in_markup("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot;\n");
  EXPECT_EQ(in_attribute("a\nb"), "a&#10;b");
  EXPECT_EQ(escape_for(Medium::kLatex, "{50%}\x7f"), "\\{50\\%\\}\\textbackslash{}x7f");
  EXPECT_EQ(escape_lines("a\nb\r\n"), "a\nb\\x0d\n");
}

TEST(Escape, ColumnsOfAccentsAndWideCharacters) {
  EXPECT_EQ(shown_columns("abc"), 3U);
  EXPECT_EQ(shown_columns("e\xcc\x81"), 1U);  // e and a combining accent
  EXPECT_EQ(shown_columns("行列"), 4U);
  EXPECT_EQ(shown_columns("\xf0\x9f\x94\xa5"), 2U);  // fire
}

}  // namespace
}  // namespace kiln
