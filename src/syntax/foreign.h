// What words of other languages are called here.
//
//   foreign_help("expf") == "here it is called `__exp`"      foreign_help("twice") == ""
#pragma once

#include <string>
#include <string_view>

namespace kiln::syntax {

// A help for a word of CUDA or C++ that is none of this language; empty for all others.
[[nodiscard]] std::string foreign_help(std::string_view word);

// A help for `float(x)` and `(float)x`.
[[nodiscard]] std::string conversion_help(std::string_view type);

}  // namespace kiln::syntax
