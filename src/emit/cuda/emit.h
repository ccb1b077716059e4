// Decided tile IR as CUDA C++: one readable .cu text for a module.
//
//   copy src=%5 dst=%lhs_s way=gather grouped threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
// becomes
//   #line 12 "matmul.co"
//   kiln::copy_async<32, kiln::Guarded<0, 1>, kiln::Widths<16, 8, 4, 2>>(
//       lhs_s, kiln::window(lhs, {M, K}, {16 * block_m, 16 * iv_k}), thread);
//
// The emitter spells what the passes decided and decides nothing itself. The text needs only the
// device headers; nvcc and NVRTC both take it, and for nvcc it also holds a host launcher per
// kernel.
#pragma once

#include <string>

#include "ir/module.h"
#include "support/source.h"

namespace kiln::emit {

struct EmitOptions {
  std::string file_name = "kernel.cu";  // what the text calls itself in #line directives
  bool line_directives = true;          // point the CUDA compiler at the user's source
};

// The text, the same for the same module. The module must be decided (KILN_CHECK).
[[nodiscard]] std::string emit(const ir::Module& module, const Sources& sources,
                               const EmitOptions& options = {});

}  // namespace kiln::emit
