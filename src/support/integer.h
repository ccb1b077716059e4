// Integer arithmetic that the language's `/` does not give.
//
//   ceil_div(100, 16) == 7        seven tiles of 16 cover 100 rows
#pragma once

#include <cstdint>

namespace kiln {

// The least whole number of `b`s that cover `a`; both positive, `a` may be 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace kiln
