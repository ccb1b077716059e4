// Layouts as std::string: `to_text` writes what `parse_layout` reads.
//
//   to_text(composition(a, b))            "(4,(2,3)):(1,(8,16))"
//   parse_layout("(4,2):(1,8)")           the layout
//   parse_layout("(4,2):(1)")             an Error: shape and strides nest differently
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

// Reads "shape:stride" or "shape" (compact strides). The error's subject is the text.
[[nodiscard]] Result<Layout> parse_layout(std::string_view text);

}  // namespace kiln
