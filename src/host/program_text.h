// A whole `.co` program as C++ for the host compiler.
//
//   __co__ auto scale(f32 [N] x, f32 by) {        inline choreo::spanned_data<float, 1> scale(const ...
//     ...                                    ->     (as many lines, so that every other line and
//   }                                                column of the file stays where it was)
//   int main() { scale(x.view(), 2); }            int main() { scale(x.view(), 2); }
//
// Host code is not touched. The text of the tile functions goes along as data: the program compiles
// them when it calls them (include/kiln/host/call.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "support/source.h"
#include "syntax/ast.h"

namespace kiln::host {

// An extent that the tile function must know when it is compiled.
struct Constant {
  std::string name;
  std::size_t tensor = 0;  // among the parameters that are tensors
  std::size_t dim = 0;
};

struct TileFunction {
  const ir::Function* function = nullptr;  // gives the types
  std::vector<Constant> constants = {};
};

// Where tile functions run; kAuto is decided when the program needs to know.
enum class On : std::uint8_t { kAuto, kSim, kGpu };

struct HostProgram {
  const Sources& sources;
  const ast::Ast& tree;
  std::string arch;
  On on = On::kAuto;
  std::vector<std::string> defines;  // -D
  std::vector<TileFunction> functions;
};

[[nodiscard]] std::string program_text(const HostProgram& program);

// Whether host code defines `main`.
[[nodiscard]] bool has_main(const ast::Ast& tree, const Sources& sources);

}  // namespace kiln::host
