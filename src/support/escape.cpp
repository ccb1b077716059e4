#include "support/escape.h"

#include <algorithm>
#include <iterator>

#include "support/format.h"

namespace kiln {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
constexpr bool is_sorted(const Range (&ranges)[N]) {
  for (std::size_t i = 0; i < N; ++i) {
    if (ranges[i].first > ranges[i].last) return false;
    if (i > 0 && ranges[i - 1].last >= ranges[i].first) return false;
  }
  return true;
}

template <std::size_t N>
bool contains(const Range (&ranges)[N], char32_t code) {
  const auto* const after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](char32_t value, const Range& range) { return value < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

// Controls, what ends a line, what turns the direction, and what takes no room and has no sign of
// its own (Unicode's Default_Ignorable_Code_Point and Bidi_Control, and the blanks that are not).
constexpr Range kHidden[] = {
    {0x0000, 0x001f},     // C0
    {0x007f, 0x009f},     // DEL, C1
    {0x00ad, 0x00ad},     // soft hyphen
    {0x034f, 0x034f},     // combining grapheme joiner
    {0x061c, 0x061c},     // Arabic letter mark
    {0x115f, 0x1160},     // Hangul fillers
    {0x17b4, 0x17b5},     // Khmer inherent vowels
    {0x180b, 0x180f},     // Mongolian selectors
    {0x200b, 0x200f},     // zero width, directional marks
    {0x2028, 0x202e},     // separators of lines and paragraphs, embeddings and overrides
    {0x2060, 0x206f},     // word joiner, invisible operators, isolates
    {0x2800, 0x2800},     // the blank of Braille
    {0x3164, 0x3164},     // Hangul filler
    {0xfe00, 0xfe0f},     // variation selectors
    {0xfeff, 0xfeff},     // byte order mark
    {0xffa0, 0xffa0},     // Hangul filler
    {0xfff0, 0xfffb},     // interlinear annotation
    {0xfffe, 0xffff},     // no characters
    {0x1bca0, 0x1bca3},   // shorthand format controls
    {0x1d173, 0x1d17a},   // musical format controls
    {0xe0000, 0xe0fff},   // tags, more variation selectors
    {0xf0000, 0x10ffff},  // private use
};
static_assert(is_sorted(kHidden));

// Drawn over the character in front of them.
constexpr Range kCombining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x05bf, 0x05bf}, {0x05c1, 0x05c2},
    {0x05c4, 0x05c5}, {0x0610, 0x061a}, {0x064b, 0x065f}, {0x0670, 0x0670}, {0x06d6, 0x06dc},
    {0x06df, 0x06e4}, {0x06e7, 0x06e8}, {0x06ea, 0x06ed}, {0x0711, 0x0711}, {0x0730, 0x074a},
    {0x0816, 0x082d}, {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x20d0, 0x20ff}, {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe20, 0xfe2f},
};
static_assert(is_sorted(kCombining));

// Two columns (Unicode's East Asian Width W and F).
constexpr Range kWide[] = {
    {0x1100, 0x115e},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97c},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
    {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
    {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d},
    {0x1f54b, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4},
    {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
    {0x1f6d5, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7f0},
    {0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};
static_assert(is_sorted(kWide));

bool is_hidden(const Character& character) {
  return !character.valid || contains(kHidden, character.code);
}

// "\n", "\x1b", "\u202e", "\U000e0041".
std::string visible(const Character& character) {
  const auto code = static_cast<std::uint32_t>(character.code);
  if (character.valid && code == '\n') return "\\n";
  if (character.valid && code == '\t') return "\\t";
  if (!character.valid || code < 0x80) return format("\\x{:02x}", code);
  return code < 0x10000 ? format("\\u{:04x}", code) : format("\\U{:08x}", code);
}

std::string per_byte(std::string_view bytes, bool octal) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(c));
    // Three octal digits end by themselves; \x would take every hexadecimal digit that follows.
    out += octal ? format("\\{:03o}", byte) : format("\\x{:02x}", byte);
  }
  return out;
}

// A character to be written, and the one in front of it in the same text (0: none).
struct Written {
  std::string_view bytes;
  Character character;
  char before = 0;

  [[nodiscard]] std::string plain() const { return std::string(bytes); }
  [[nodiscard]] bool is(char c) const {
    return character.valid && character.code == static_cast<unsigned char>(c);
  }
};

std::string for_terminal(const Written& it) {
  return is_hidden(it.character) ? visible(it.character) : it.plain();
}

// No backslash, which would join the next line; no star, whatever the slash stands beside; no `??`
// of a trigraph.
std::string for_comment(const Written& it) {
  if (it.is('\\') || it.is('*') || (it.is('?') && it.before == '?')) {
    return per_byte(it.bytes, false);
  }
  return for_terminal(it);
}

std::string for_string(const Written& it) {
  if (it.is('"') || it.is('\\')) return "\\" + it.plain();
  if (it.is('?') && it.before == '?') return "\\?";
  if (it.is('\n')) return "\\n";
  return is_hidden(it.character) ? per_byte(it.bytes, true) : it.plain();
}

std::string for_ir_string(const Written& it) {
  if (it.is('"') || it.is('\\')) return "\\" + it.plain();
  return is_hidden(it.character) ? per_byte(it.bytes, false) : it.plain();
}

std::string for_markup(const Written& it) {
  if (it.is('&')) return "&amp;";
  if (it.is('<')) return "&lt;";
  if (it.is('>')) return "&gt;";
  if (it.is('"')) return "&quot;";
  if (it.is('\n') || it.is('\t')) return it.plain();
  return for_terminal(it);
}

std::string for_attribute(const Written& it) {
  if (it.is('\n')) return "&#10;";
  if (it.is('\t')) return "&#9;";
  return for_markup(it);
}

std::string for_latex(const Written& it) {
  if (it.is('\\')) return "\\textbackslash{}";
  if (it.is('~')) return "\\textasciitilde{}";
  if (it.is('^')) return "\\textasciicircum{}";
  if (it.is('<')) return "\\textless{}";
  if (it.is('>')) return "\\textgreater{}";
  if (it.bytes.find_first_of("&%$#_{}") == 0) return "\\" + it.plain();
  if (!is_hidden(it.character)) return it.plain();
  return "\\textbackslash{}" + visible(it.character).substr(1);
}

std::string spelled(Medium medium, const Written& it) {
  switch (medium) {
    case Medium::kTerminal: return for_terminal(it);
    case Medium::kComment: return for_comment(it);
    case Medium::kString: return for_string(it);
    case Medium::kIrString: return for_ir_string(it);
    case Medium::kMarkup: return for_markup(it);
    case Medium::kAttribute: return for_attribute(it);
    case Medium::kLatex: return for_latex(it);
  }
  return {};
}

// The bytes that a leading byte promises; 0: it leads nothing.
std::size_t promised(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

}  // namespace

// The Unicode Standard, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const Character invalid{.code = lead, .bytes = 1, .valid = false};
  const std::size_t bytes = promised(lead);
  if (bytes == 1) return {.code = lead};
  if (bytes == 0 || text.size() < bytes) return invalid;
  char32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80) return invalid;
    code = code << 6 | (byte & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return invalid;
  return {.code = code, .bytes = bytes};
}

std::size_t Character::columns() const {
  if (!valid || code < 0x300) return 1;
  if (contains(kCombining, code)) return 0;
  return contains(kWide, code) ? 2 : 1;
}

std::string escape_for(Medium medium, std::string_view text) {
  std::string out;
  out.reserve(text.size());
  char before = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    out += spelled(medium, {.bytes = bytes, .character = character, .before = before});
    before = bytes.back();
    text.remove_prefix(character.bytes);
  }
  return out;
}

std::string escape_lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += escape_for(Medium::kTerminal, text.substr(0, end));
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::size_t shown_columns(std::string_view escaped) {
  std::size_t columns = 0;
  while (!escaped.empty()) {
    const Character character = first_character(escaped);
    columns += character.columns();
    escaped.remove_prefix(character.bytes);
  }
  return columns;
}

}  // namespace kiln
