// Layouts read from text, at compile time or at run time.
//
//   constexpr Layout c = "((4,8),(2,2)):((32,1),(16,8))"_layout;
//   "(4,3)"_layout == "(4,3):(1,4)"_layout      // without strides: compact
//   parse_layout_text("(4,3):(1)", 9).error     // "shape and strides nest differently"
//   parse_swizzled_text("Swizzle<3,4,3> o (8,128):(128,1)", 32).swizzled    // a layout, then a swizzle
//
// Include kiln/layout.h, which has the whole algebra. src/layout/print.h writes text.
#pragma once

#include "kiln/layout/swizzle.h"
#include "kiln/layout/value.h"

namespace kiln {

// What parse_layout_text found. `error` is null on success, else a short sentence about the
// character at `position`.
struct LayoutText {
  Layout layout;
  const char* error = nullptr;
  int position = 0;
};

namespace detail {

// Reads one tree of numbers ("((4,8),2)") from text[position...] up to ':' or the end.
struct TreeReader {
  static constexpr Index kNumberMax = Index{1} << 48;
  static constexpr int kDepthMax = 8;

  const char* text;
  int length;
  int position = 0;
  const char* error = nullptr;

  KILN_HD constexpr bool at_end() const { return position >= length; }
  KILN_HD constexpr char peek() const { return at_end() ? '\0' : text[position]; }
  KILN_HD constexpr void skip_spaces() {
    while (peek() == ' ') ++position;
  }

  KILN_HD constexpr Index number() {
    const bool negative = peek() == '-';
    if (negative) ++position;
    if (peek() < '0' || peek() > '9') {
      error = "expected a number";
      return 0;
    }
    Index value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++position) {
      value = value * 10 + (peek() - '0');
      if (value > kNumberMax) {
        error = "a number above 2^48";
        return 0;
      }
    }
    return negative ? -value : value;
  }

  // Numbers land in `extents`; the brackets in `opens` and `closes`.
  KILN_HD constexpr Layout tree() {
    Layout out;
    int now = 0;
    int opens = 0;
    while (error == nullptr) {
      skip_spaces();
      if (peek() == '(') {
        ++position;
        ++opens;
        if (now + opens > kDepthMax) error = "brackets nested more than 8 deep";
        continue;
      }
      if (out.leaves == Layout::kLeavesMax) {
        error = "more than 16 leaves";
        break;
      }
      out.extents[out.leaves] = number();
      out.opens[out.leaves++] = static_cast<LeafDepth>(opens);
      now += opens;
      opens = 0;
      if (!after_leaf(out, now)) break;
    }
    return error == nullptr ? out : Layout{};
  }

 private:
  // Closing brackets and the comma after a leaf; true when another leaf must follow.
  KILN_HD constexpr bool after_leaf(Layout& out, int& now) {
    if (error != nullptr) return false;
    for (skip_spaces(); peek() == ')' && now > 0; skip_spaces()) {
      ++position;
      --now;
      ++out.closes[out.leaves - 1];
    }
    if (now == 0) return false;
    if (peek() != ',') {
      error = "expected `,` or `)`";
      return false;
    }
    ++position;
    return true;
  }
};

// Whether every count and index of the layout stays below 2^48, so that sums and products of two
// such numbers are far from overflow.
KILN_HD constexpr bool fits(const Layout& layout) {
  Index coordinates = 1;
  Index last = 0;
  for (int i = 0; i < layout.leaves; ++i) {
    const Index stride = magnitude(layout.strides[i]);
    if (layout.extents[i] > TreeReader::kNumberMax / coordinates) return false;
    coordinates *= layout.extents[i];
    if (stride > 0 && layout.extents[i] - 1 > (TreeReader::kNumberMax - last) / stride)
      return false;
    last += (layout.extents[i] - 1) * stride;
  }
  return true;
}

}  // namespace detail

// Reads "shape:stride", as in "((4,8),2):((32,1),16)", or "shape" alone for compact strides.
// Extents are at least 1, strides may be negative, and both must nest alike. Neither the size nor
// an index may pass 2^48.
[[nodiscard]] KILN_HD constexpr LayoutText parse_layout_text(const char* text, int length) {
  detail::TreeReader reader{text, length};
  Layout layout = reader.tree();
  for (int i = 0; i < layout.leaves && reader.error == nullptr; ++i) {
    if (layout.extents[i] < 1) reader.error = "an extent below 1";
  }
  if (reader.error != nullptr) return {{}, reader.error, reader.position};
  if (reader.at_end() && !detail::fits(layout)) return {{}, "a size above 2^48", 0};
  if (reader.at_end()) return {compact(layout), nullptr, reader.position};
  if (reader.peek() != ':') return {{}, "expected `:`", reader.position};
  ++reader.position;
  const Layout strides = reader.tree();
  if (reader.error != nullptr) return {{}, reader.error, reader.position};
  if (!reader.at_end()) return {{}, "text after the strides", reader.position};
  if (!congruent(layout, strides)) return {{}, "shape and strides nest differently", 0};
  for (int i = 0; i < layout.leaves; ++i) layout.strides[i] = strides.extents[i];
  if (!detail::fits(layout)) return {{}, "a size or an index above 2^48", 0};
  return {layout, nullptr, reader.position};
}

// What parse_swizzled_text found, as LayoutText.
struct SwizzledText {
  Swizzled swizzled;
  const char* error = nullptr;
  int position = 0;
};

namespace detail {

// Reads `expected`, character by character, if it is there.
KILN_HD constexpr bool skip(TreeReader& reader, const char* expected) {
  const int begin = reader.position;
  for (; *expected != '\0'; ++expected, ++reader.position) {
    if (reader.peek() == *expected) continue;
    reader.position = begin;
    return false;
  }
  return true;
}

// The numbers of "Swizzle<3,4,3> o ", of which "Swizzle<" has been read.
KILN_HD constexpr Swizzle read_swizzle(TreeReader& reader) {
  constexpr Index kBitMax = 48;
  const char* const kAfter[] = {",", ",", "> o "};
  Index numbers[3] = {};
  for (int i = 0; i < 3 && reader.error == nullptr; ++i) {
    numbers[i] = reader.number();
    if (reader.error == nullptr && !skip(reader, kAfter[i])) {
      reader.error = "expected `Swizzle<bits,base,shift> o `";
    }
  }
  const Index reach = magnitude(numbers[2]);
  if (reader.error != nullptr) return {};
  if (numbers[0] < 0 || numbers[1] < 0) reader.error = "a negative number of bits";
  if (reach < numbers[0]) reader.error = "a swizzle that shifts by less than its bits";
  if (numbers[0] + numbers[1] + reach > kBitMax) reader.error = "a swizzle above bit 48";
  if (reader.error != nullptr) return {};
  return {static_cast<int>(numbers[0]), static_cast<int>(numbers[1]), static_cast<int>(numbers[2])};
}

}  // namespace detail

// Reads a layout, with "Swizzle<bits,base,shift> o " before it if there is a swizzle.
[[nodiscard]] KILN_HD constexpr SwizzledText parse_swizzled_text(const char* text, int length) {
  detail::TreeReader reader{text, length};
  Swizzle swizzle;
  if (detail::skip(reader, "Swizzle<")) swizzle = detail::read_swizzle(reader);
  if (reader.error != nullptr) return {{}, reader.error, reader.position};
  const LayoutText rest = parse_layout_text(text + reader.position, length - reader.position);
  return {{swizzle, rest.layout}, rest.error, rest.position + reader.position};
}

namespace detail {
// Not constexpr: reaching it while a constant is computed is the compile error.
KILN_HD inline void layout_literal_does_not_parse() {}
}  // namespace detail

// "((4,8),2):((32,1),16)"_layout: a layout constant; text that does not parse does not compile.
KILN_HD consteval Layout operator""_layout(const char* text, decltype(sizeof(0)) length) {
  const LayoutText parsed = parse_layout_text(text, static_cast<int>(length));
  if (parsed.error != nullptr) detail::layout_literal_does_not_parse();
  return parsed.layout;
}

}  // namespace kiln
