// The plans of a process for products of matrices.
//
//   Result<const Plan*, Failure> plan = registry().plan(problem);
//   (*plan)->start(operands, workspace, stream);
#pragma once

#include "gemm/plan.h"
#include "gemm/plans.h"

namespace kiln::gemm {

[[nodiscard]] Plans<Problem, Plan>& registry();

}  // namespace kiln::gemm
