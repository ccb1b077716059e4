// The file's own CUDA that goes into the kernels' translation unit, in front of the kernels:
// `__device__` functions and `__cok__` blocks as they stand, what they include of the CUDA toolkit,
// and the macros that they and the texts inside kernels name. Internal to this folder.
#pragma once

#include <vector>

#include "ir/module.h"
#include "syntax/ast.h"

namespace kiln::sema {

[[nodiscard]] std::vector<ir::CudaPart> cuda_parts(const ast::Ast& ast, const Sources& sources,
                                                   const std::vector<ir::Function>& functions);

}  // namespace kiln::sema
