// Splits a file into its top-level regions, in order:
//
//   #include <cstdio>                          host text
//   __device__ float twice(float v) {...}      device text, from its `template<...>` on
//   __co__ void f(...) {...}                   a tile function, as expanded tokens
//   __cok__ {...}                              a kernel block
//   int main() {...}                           host text
//
// Comments, strings and dead preprocessor branches are respected everywhere. Host text made only of
// white space and comments is no region; host text of preprocessor lines only is one when the file
// has other host, device or kernel text (which needs its includes and macros), and none in a file
// of tile functions alone.
#pragma once

#include <variant>
#include <vector>

#include "diag/diagnostics.h"
#include "syntax/ast.h"
#include "syntax/preprocessor.h"
#include "syntax/token.h"

namespace kiln::syntax {

// A tile function before parsing. Its braces balance: a missing one has been reported and put in.
struct TileText {
  std::vector<Token> tokens;  // from `__co__` on, ended by kEnd
  Span span;
  bool unreadable = false;  // a macro failed: the tokens mean nothing
  bool has_errors = false;  // a mistake in it has been reported
};
using TextRegion = std::variant<TileText, ast::HostText, ast::DeviceText, ast::KernelBlock>;

struct SplitFile {
  std::vector<TextRegion> regions;
  std::vector<Token> pragmas;  // kPragma tokens outside tile functions
  std::vector<ast::Expansion> expansions;
};

[[nodiscard]] SplitFile split_regions(const Sources& sources, FileId file,
                                      Preprocessor& preprocessor, Diagnostics& diags);

}  // namespace kiln::syntax
