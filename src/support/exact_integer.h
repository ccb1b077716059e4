// A 64-bit integer as two doubles: the one nearest to it, and the rest.
//
//   split(2^53 + 1)  ==  {2^53, 1}          split(2^64 - 1)  ==  {2^64, -1}
//
// What computes in double keeps integers exact this way: value + rest is the integer.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln {

struct ExactInteger {
  double value = 0;
  double rest = 0;
};

[[nodiscard]] inline ExactInteger split(__int128 integer) {
  const auto value = static_cast<double>(integer);
  return {value, static_cast<double>(integer - static_cast<__int128>(value))};
}
[[nodiscard]] inline ExactInteger split(std::int64_t integer) {
  return split(static_cast<__int128>(integer));
}
[[nodiscard]] inline ExactInteger split(std::uint64_t integer) {
  return split(static_cast<__int128>(integer));
}

// The integer again; both parts must be integers of magnitudes below 2^126.
[[nodiscard]] inline __int128 joined(const ExactInteger& parts) {
  return static_cast<__int128>(parts.value) + static_cast<__int128>(parts.rest);
}

// A double that rounds to every narrower type as value + rest does: the one of the two doubles
// around it whose last bit is odd. By way of the nearest double it would be rounded twice.
[[nodiscard]] inline double to_odd(const ExactInteger& parts) {
  const bool odd = (std::bit_cast<std::uint64_t>(parts.value) & 1) != 0;
  if (parts.rest == 0 || odd) return parts.value;
  const double infinity = std::numeric_limits<double>::infinity();
  return std::nextafter(parts.value, parts.rest > 0 ? infinity : -infinity);
}

}  // namespace kiln
