// What `print` says, and in which order it is shown.
//
//   print text="dst %_: %_\n" values=[%i, %v]      with 3 and 0.5:  dst 3: 0.5
//
// A `%_` in the text stands for the next of the values, and `%%` for a percent sign. Numbers look as
// C's printf writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"
#include "support/source.h"

namespace kiln::ir {

// How many values the text has room for.
[[nodiscard]] std::size_t places_in(std::string_view text);
// The text with `value(i)` in its i-th place and `percent` for each `%%`.
[[nodiscard]] std::string fill_in(std::string_view text, std::string_view percent,
                                  const std::function<std::string(std::size_t)>& value);

// The conversion of printf for a value of the type: "%d".
[[nodiscard]] std::string_view conversion(DType dtype);
// What it makes of a value: of `number` for floats, else of `integer`.
[[nodiscard]] std::string printed(DType dtype, std::int64_t integer, double number);

// What one thread printed at once.
struct Printed {
  Span span;               // of the statement
  std::int64_t phase = 0;  // counts launches and the stretches of the host part between them
  std::int64_t block = 0;
  std::int64_t thread = 0;
  std::string who;  // "thread 17 (warp 0) of block 3", "the host"
  std::string text;
};

// By phase, block and thread; what a thread prints keeps its order. A thread's texts up to the end
// of a line become one entry, without that end.
[[nodiscard]] std::vector<Printed> lines_in_order(std::vector<Printed> printed);

}  // namespace kiln::ir
