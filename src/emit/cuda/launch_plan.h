// What a launch needs besides the kernel's text: parameters, grid, block, shared memory. The
// emitted kernel, its host launcher and the runtime all follow this one plan.
//
//   matmul_wmma<<<{cdiv(M, 16), cdiv(N, 16)}, 32, 1536>>>(lhs, rhs, output, M, N, K)
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::emit {

enum class SlotKind : std::uint8_t {
  kParam,   // the device pointer of a view parameter
  kAlloc,   // the device pointer of a buffer the host part allocates
  kVar,     // an integer variable's value
  kScalar,  // the value of a scalar, or what a host cell holds, at the launch
};

struct ParamSlot {
  SlotKind kind = SlotKind::kVar;
  std::string name = {};      // the kernel's parameter
  DType dtype = DType::kS32;  // of the elements or of the value; never below 32 bits for a kVar
  bool written = false;       // pointers: the kernel writes through it
  ir::ValueId value = {};     // kParam, kAlloc, kScalar
  std::size_t param = 0;      // kParam: the function's parameter
  ir::VarId var = {};         // kVar
};

struct LaunchPlan {
  ir::OpId op = {};  // the Parallel
  std::string kernel_name;
  std::vector<ParamSlot> slots = {};
  std::vector<ir::Expr> grid = {};  // 1 to 3 extents, x first
  ir::Expr threads = 0;             // of a block
  std::int64_t shared_bytes = 0;
};

// The plans of all launches of one function of the module, in order. Kernel names are unique in the
// module.
[[nodiscard]] std::vector<LaunchPlan> plan_launches(const ir::Module& module,
                                                    const ir::Function& function);

}  // namespace kiln::emit
