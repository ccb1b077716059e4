// Splits a file into its top-level regions, in order:
//
//   #include <cstdio>                          host text
//   __device__ float twice(float v) {...}      device text, from its `template<...>` on
//   __co__ void f(...) {...}                   a tile function, as expanded tokens; `template<...>`
//                                              belongs to it
//   __co_device__ void g(...) {...}            likewise: a function that tile functions call
//   constexpr int TILE = 64;                   a constant, likewise
//   __cok__ {...}                              a kernel block
//   int main() {...}                           host text
//
// Comments, strings and dead preprocessor branches are respected everywhere. Host text made only of
// white space and comments is no region; host text of preprocessor lines only is one when the file
// has other host, device or kernel text (which needs its includes and macros), and none in a file
// of tile functions alone. Included `.co` files hold functions, constants and directives, whose
// regions stand where the `#include` does.
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "diag/diagnostics.h"
#include "syntax/ast.h"
#include "syntax/preprocessor.h"
#include "syntax/token.h"

namespace kiln::syntax {

// What `-D` says of a template parameter.
struct BoundText {
  std::string name;
  std::vector<Token> tokens;  // ended by kEnd
};

// A tile function before parsing. Its braces balance: a missing one has been reported and put in.
struct TileText {
  enum class Kind : std::uint8_t { kKernel, kFunction, kConstant };
  Kind kind = Kind::kKernel;
  std::vector<Token> tokens;          // from `template` or `__co__` on, ended by kEnd
  std::vector<BoundText> bound = {};  // parameters of a kernel's template
  Span span = {};
  bool unreadable = false;  // a macro failed: the tokens mean nothing
  bool has_errors = false;  // a mistake in it has been reported
};
using TextRegion = std::variant<TileText, ast::HostText, ast::DeviceText, ast::KernelBlock>;

struct SplitFile {
  std::vector<TextRegion> regions;
  std::vector<Token> pragmas;  // kPragma tokens outside tile functions
  std::vector<ast::Expansion> expansions;
};

// Names that decide how text is read.
struct FileNames {
  std::set<std::string, std::less<>> functions;  // `f<4>(x)` calls one of them
  std::set<std::string, std::less<>> types;      // of `constexpr type T = ...`
};
[[nodiscard]] FileNames names_of(const SplitFile& split);

[[nodiscard]] SplitFile split_regions(const Sources& sources, FileId file,
                                      Preprocessor& preprocessor, Diagnostics& diags);

}  // namespace kiln::syntax
