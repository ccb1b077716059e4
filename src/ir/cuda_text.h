// The text of a `cuda` operation, and what of a kernel is in such texts.
//
//   fill_in_cuda("%_ = f(%_, %#);", passed, number)   ->   "c = f(x, n);"
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace kiln::ir {

// How many values of each kind the text has room for.
struct CudaPlaces {
  std::size_t passed = 0;
  std::size_t numbers = 0;
};
[[nodiscard]] CudaPlaces places_in_cuda(std::string_view text);

// The text with what stands in its places, each by its number among those of its kind.
using CudaPlace = std::function<std::string(std::size_t)>;
[[nodiscard]] std::string fill_in_cuda(std::string_view text, const CudaPlace& passed,
                                       const CudaPlace& number);

// `text` as a text without places.
[[nodiscard]] std::string without_places(std::string_view text);

// The first operation of the function whose CUDA only a GPU can run; invalid: there is none.
[[nodiscard]] OpId first_cuda_alone(const Function& function);

// The end of the comment, the string or the character of C++ that begins at `at`; `at` where none does.
[[nodiscard]] std::size_t end_of_aside(std::string_view text, std::size_t at);

// The names that stand in a text of C++: its words outside of comments and of strings, but for those
// that are members of something (`p.x`, `q->x`, `n::x`). Each once.
[[nodiscard]] std::vector<std::string> names_in_cpp(std::string_view text);

// Whether the text of C++ may give a variable of that name a new value: it assigns to it, takes its address,
// or has assembly. (What a function does with a reference is not looked for.)
[[nodiscard]] bool may_set_in_cpp(std::string_view text, std::string_view name);

}  // namespace kiln::ir
