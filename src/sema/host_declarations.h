// Types and constants that a program declares between its functions: CUDA that names them has them too.
//
//   struct Pair { float a, b; };   enum Mode { kAdd, kMul };   using Half = __half;   constexpr int kBias = 4;
//
// Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "support/source.h"
#include "syntax/ast.h"

namespace kiln::sema {

struct HostDeclaration {
  std::vector<std::string> names;  // that it makes known
  std::string text;
  Span span;
};

// In the order of the file. Variables, functions, and what names the standard library or the host's
// namespace are none of them: a GPU has no use for those.
[[nodiscard]] std::vector<HostDeclaration> host_declarations(const ast::Ast& ast,
                                                             const Sources& sources);

// All words of a text of C++, outside of comments and of strings.
[[nodiscard]] std::vector<std::string> words_in_cpp(std::string_view text);

}  // namespace kiln::sema
