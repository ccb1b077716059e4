// Runs cases of the layout algebra that come as lines of text, for comparison with another one.
//
//   composition<TAB>(6,2):(8,2)<TAB>(4,3):(3,1)      ->  ((2,2),3):((24,2),8)
//   complement<TAB>4:2<TAB>24                        ->  (2,3):(1,8)
//   slice<TAB>(8,4):(4,1)<TAB>2,_                    ->  (4):(1) 8
//
// One line out for each line in. `invalid` is the answer that there is none; a line that is no case
// ends the program with exit code 2. A tiler is written as the layout of its modes.
#include <charconv>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/layout.h"
#include "layout/print.h"

namespace kiln {
namespace {

using Words = std::vector<std::string_view>;

Words split(std::string_view line, char separator) {
  Words out;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(separator, begin), line.size());
    out.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

[[noreturn]] void refuse(std::string_view what) {
  std::cerr << "layout_cases: cannot read `" << what << "`\n";
  std::exit(2);
}

Layout layout_from(std::string_view text) {
  const Result<Layout> parsed = parse_layout(text);
  if (!parsed) refuse(text);
  return *parsed;
}

Index number_from(std::string_view text) {
  Index out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) refuse(text);
  return out;
}

// "2,_,5"
Coord coord_from(std::string_view text) {
  Coord out;
  for (const std::string_view word : split(text, ',')) {
    out.at[out.count++] = word == "_" ? kAll : number_from(word);
  }
  return out;
}

std::string slice_text(const Slice& part) {
  return to_text(part.layout) + " " + std::to_string(part.offset);
}

std::string coord_text(const Coord& coord) {
  std::string out;
  for (int i = 0; i < coord.count; ++i) out += (i > 0 ? "," : "") + std::to_string(coord.at[i]);
  return out;
}

struct Unary {
  std::string_view name;
  Layout (*apply)(const Layout&);
};
struct Binary {
  std::string_view name;
  Layout (*apply)(const Layout&, const Layout&);
};
struct ByMode {
  std::string_view name;
  Layout (*apply)(const Layout&, const Tiler&);
};

constexpr Unary kUnary[] = {
    {"same", [](const Layout& layout) { return layout; }},
    {"coalesce", [](const Layout& layout) { return coalesce(layout); }},
    {"filter", [](const Layout& layout) { return filter(layout); }},
    {"flatten", [](const Layout& layout) { return flatten(layout); }},
    {"right_inverse", [](const Layout& layout) { return right_inverse(layout); }},
    {"left_inverse", [](const Layout& layout) { return left_inverse(layout); }},
};

constexpr Binary kBinary[] = {
    {"coalesce", coalesce},
    {"composition", composition},
    {"logical_divide", logical_divide},
    {"zipped_divide", zipped_divide},
    {"tiled_divide", tiled_divide<Layout>},
    {"logical_product", logical_product},
    {"zipped_product", zipped_product},
    {"tiled_product", tiled_product<Layout>},
};

constexpr ByMode kByMode[] = {
    {"composition_by_mode", composition},
    {"logical_divide_by_mode", logical_divide},
    {"zipped_divide_by_mode", zipped_divide},
    {"tiled_divide_by_mode", tiled_divide<Tiler>},
    {"logical_product_by_mode", logical_product},
    {"zipped_product_by_mode", zipped_product},
    {"tiled_product_by_mode", tiled_product<Tiler>},
};

// The answer of an operation from layouts to a layout.
std::optional<Layout> answer_layout(std::string_view name, const Words& words) {
  const Layout first = layout_from(words[1]);
  if (words.size() == 2) {
    for (const Unary& row : kUnary) {
      if (row.name == name) return row.apply(first);
    }
    return {};
  }
  for (const Binary& row : kBinary) {
    if (row.name == name) return row.apply(first, layout_from(words[2]));
  }
  for (const ByMode& row : kByMode) {
    if (row.name == name) return row.apply(first, Tiler{layout_from(words[2])});
  }
  return {};
}

// The answer of the others, which take or give numbers.
std::string answer_other(std::string_view name, const Words& words) {
  if (name == "swizzle" && words.size() == 3) {
    const Coord bits = coord_from(words[1]);
    const Swizzle swizzle{static_cast<int>(bits.at[0]), static_cast<int>(bits.at[1]),
                          static_cast<int>(bits.at[2])};
    return std::to_string(swizzle(number_from(words[2])));
  }
  const Layout layout = layout_from(words[1]);
  if (name == "sizes" && words.size() == 2) {
    return coord_text(make_coord(rank(layout), size(layout), cosize(layout)));
  }
  if (words.size() != 3) refuse(name);
  if (name == "complement") return to_text(complement(layout, number_from(words[2])));
  if (name == "index") return std::to_string(layout(number_from(words[2])));
  if (name == "crd2idx") return std::to_string(crd2idx(coord_from(words[2]), layout));
  if (name == "idx2crd") return coord_text(idx2crd(number_from(words[2]), layout));
  if (name == "slice") return slice_text(slice(coord_from(words[2]), layout));
  refuse(name);
}

std::string answer(std::string_view line) {
  const Words words = split(line, '\t');
  if (words.size() < 2) refuse(line);
  const std::string_view name = words[0];
  const std::string_view others[] = {"swizzle", "sizes",   "complement", "index",
                                     "crd2idx", "idx2crd", "slice"};
  for (const std::string_view other : others) {
    if (other == name) return answer_other(name, words);
  }
  const std::optional<Layout> out = answer_layout(name, words);
  if (!out) refuse(name);
  return to_text(*out);
}

}  // namespace
}  // namespace kiln

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) std::cout << kiln::answer(line) << '\n';
  return 0;
}
