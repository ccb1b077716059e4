// Types and constants that a text of C++ declares at file level, for CUDA that names them.
//
//   struct Pair { float a, b; };   enum Mode { kAdd, kMul };   using Half = __half;   constexpr int kBias = 4;
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::ir {

struct CppDeclaration {
  std::vector<std::string> names;  // that it makes known
  std::size_t begin = 0;           // in the text
  std::size_t end = 0;
};

// In their order. Variables, functions, and what names the standard library or the host's namespace
// are none of them: a GPU has no use for those.
[[nodiscard]] std::vector<CppDeclaration> declarations_in_cpp(std::string_view text);

// All words of a text of C++, outside of comments and of strings.
[[nodiscard]] std::vector<std::string> words_in_cpp(std::string_view text);

}  // namespace kiln::ir
