// A text that is one number and nothing else.
//
//   parse_number<int>("128") == 128       parse_number<int>("128 "), ("0x80"), ("1e9"): none
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace kiln {

// None where the text is of another form, or the number does not fit the type.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || read != end) return std::nullopt;
  return value;
}

}  // namespace kiln
