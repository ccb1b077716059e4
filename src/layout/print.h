// Layouts as std::string: `to_text` writes what `parse_layout` reads.
//
//   to_text(composition(a, b))            "(4,(2,3)):(1,(8,16))"
//   parse_layout("(4,2):(1,8)")           the layout
//   parse_layout("(4,2):(1)")             an Error: shape and strides nest differently
//   layout_table("(2,3):(3,1)")           the indices as rows and columns
#pragma once

#include <string>
#include <string_view>

#include "kiln/layout.h"
#include "support/result.h"

namespace kiln {

// "shape:stride" without spaces; "invalid" for an invalid layout.
[[nodiscard]] std::string to_text(const Layout& layout);

// The halves of it: "(4,(2,3))" and "(1,(8,16))".
[[nodiscard]] std::string shape_to_text(const Layout& layout);
[[nodiscard]] std::string strides_to_text(const Layout& layout);

// "Swizzle<3,4,3>".
[[nodiscard]] std::string to_text(const Swizzle& swizzle);

// "Swizzle<3,4,3> o (8,128):(128,1)"; without a swizzle the layout alone.
[[nodiscard]] std::string to_text(const Swizzled& swizzled);

// "<128:1, (2,4):(1,8)>".
[[nodiscard]] std::string to_text(const Tiler& tiler);

// The indices as a table, mode 0 down and mode 1 across, with the coordinates around it; a layout
// of one mode is one column. Every line ends in a newline. For (2,3):(3,1):
//
//     0   1   2
//   +---+---+---+
// 0 | 0 | 1 | 2 |
//   +---+---+---+
// 1 | 3 | 4 | 5 |
//   +---+---+---+
//
// A layout of three modes or more, or an invalid one, has no table: the text is empty.
[[nodiscard]] std::string layout_table(const Swizzled& swizzled);

// Reads "shape:stride" or "shape" (compact strides). The error's subject is the text.
[[nodiscard]] Result<Layout> parse_layout(std::string_view text);

// Reads a layout with or without "Swizzle<bits,base,shift> o " before it.
[[nodiscard]] Result<Swizzled> parse_swizzled(std::string_view text);

}  // namespace kiln
