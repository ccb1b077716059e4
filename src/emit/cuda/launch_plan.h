// What a launch needs besides the kernel's text: parameters, grid, block, shared memory. The
// emitted kernel, its host launcher and the runtime all follow this one plan.
//
//   matmul_wmma<<<{cdiv(M, 16), cdiv(N, 16)}, 32, 1536>>>(lhs, rhs, output, M, N, K)
//
// Bulk copies see their global buffers through tensor maps alone: those are parameters, encoded
// anew for each launch, and a buffer that nothing else touches is none.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/tensor_map.h"

namespace kiln::emit {

enum class SlotKind : std::uint8_t {
  kParam,   // the device pointer of a view parameter
  kAlloc,   // the device pointer of a buffer the host part allocates
  kVar,     // an integer variable's value
  kScalar,  // the value of a scalar, or what a host cell holds, at the launch
  kMap,     // a tensor map
};

struct ParamSlot {
  SlotKind kind = SlotKind::kVar;
  std::string name = {};      // the kernel's parameter
  DType dtype = DType::kS32;  // of the elements or of the value; never below 32 bits for a kVar
  bool written = false;       // pointers: the kernel writes through it
  ir::ValueId value = {};     // kParam, kAlloc, kScalar
  std::size_t param = 0;      // kParam: the function's parameter
  ir::VarId var = {};         // kVar
  std::size_t map = 0;        // kMap: in the plan's `maps`
};

// A tensor map of a launch and the pointer (kParam or kAlloc) to the buffer it is of.
struct MapPlan {
  ir::TensorMap map;
  ParamSlot array;
};

struct LaunchPlan {
  ir::OpId op = {};  // the Parallel
  std::string kernel_name;
  std::vector<ParamSlot> slots = {};
  std::vector<MapPlan> maps = {};          // each once
  std::vector<ir::Expr> grid = {};         // 1 to 3 extents, x first
  std::vector<std::int64_t> cluster = {};  // blocks by axis of the grid; empty: no clusters
  ir::Expr threads = 0;                    // of a block
  std::int64_t threads_max = 0;            // that a block has at most
  std::vector<std::int64_t> bounds = {};   // as the launch's (ir::Parallel), like those below
  std::int64_t registers_max = 0;
  ir::Expr shared_bytes = 0;    // of a block
  std::int64_t shared_max = 0;  // of a block at most, where the launch says how many
  bool opts_in = false;         // as the launch's (ir::Parallel)
  bool overlaps = false;        // as the launch's
  bool admits_next = false;     // as the launch's
  bool cooperative = false;     // as the launch's

  // Blocks of a cluster; 1 without clusters.
  [[nodiscard]] std::int64_t cluster_blocks() const;
};

// The plans of all launches of one function of the module, in order. Kernel names are unique in the
// module.
[[nodiscard]] std::vector<LaunchPlan> plan_launches(const ir::Module& module,
                                                    const ir::Function& function);

}  // namespace kiln::emit
