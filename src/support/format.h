// Text formatting for the whole of kiln: `format("{} of {}", 3, 4)`, checked at compile time.
//
// Only <fmt/core.h> is included here, so that a file which formats costs 0.3 s to compile and not
// 2; the formatting engine itself is compiled once, in format.cpp, and linked statically.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace kiln {

namespace detail {
std::string vformat(fmt::string_view text, fmt::format_args args);
}  // namespace detail

// An object and no function template: where an argument is a std::string, a call of a function
// would also find std::format, which standard libraries of C++20 have, and neither would be the
// better one.
struct Format {
  template <class... Args>
  [[nodiscard]] std::string operator()(fmt::format_string<Args...> text, Args&&... args) const {
    return detail::vformat(text, fmt::make_format_args(args...));
  }
};
inline constexpr Format format = {};

// "a, b, c" from any range, with `spell` turning one element into text.
template <class Range, class Spell>
[[nodiscard]] std::string join(const Range& range, std::string_view separator, Spell&& spell) {
  std::string out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += separator;
    first = false;
    out += spell(item);
  }
  return out;
}

}  // namespace kiln
