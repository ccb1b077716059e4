// Names that an emitted program may not give to something of the user's: the one table of them.
//
//   nowhere:           is_reserved("for")   is_reserved("assert")   is_reserved("cudaSuccess")
//   not for a kernel:  is_global("sqrtf")   is_global("float4")     is_global("size_t")
//
// tests/compiles gives programs these names and others of its words.txt, and asks NVRTC; a name
// that the table lacks and that only nvcc refuses is found by tests/nvcc, where a program has it.
#pragma once

#include <string_view>

namespace kiln::emit {

// A keyword or a macro, which would change any text it stands in; or a name by which the emitted
// text means something else.
[[nodiscard]] bool is_reserved(std::string_view name);

// Something that the headers declare at global scope, where kernels are.
[[nodiscard]] bool is_global(std::string_view name);

}  // namespace kiln::emit
