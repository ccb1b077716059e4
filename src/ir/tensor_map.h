// What the hardware must know of a global buffer to move boxes of it: the operands of a tensor map
// (CUDA driver API, cuTensorMapEncodeTiled), built on the host before the launch.
//
//   copy bulk src=%t dst=%s box=[64, 64]     %t is a window of lhs[M, K] of f16, %s swizzled by 128
//     =>  lhs, extents [M, K], box [64, 64], swizzle 128; one map serves every copy that agrees
//
// Boxes are addressed by coordinates in the buffer. What lies outside the extents reads as zero and
// is not written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/module.h"

namespace kiln::ir {

// Whether a map can be of what the view is a window of: a buffer from its first element on, in rows
// that follow each other. Its dimensions may stand in another order, but for the last.
[[nodiscard]] bool is_mappable(const Function& function, ValueId root);

struct TensorMap {
  ValueId buffer;                 // in global memory
  std::vector<Expr> shape;        // as it is declared, or as an alias sees all of it
  std::vector<Expr> extents;      // by dimension of the shape, outermost first; launch-time values
  std::vector<std::int64_t> box;  // elements, by dimension of the shape; 1 where the view has none
  std::int64_t swizzle = 0;       // bytes of the shared tile's pattern: 0, 32, 64 or 128
  std::int64_t promotion = 0;     // as in Copy
  // Which dimension of the shape each dimension of the buffer is; empty: the same.
  std::vector<std::size_t> order = {};
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

// The map of a planned bulk copy (Form::kPlanned on). Its box has the shared side's dimensions; a
// shared swizzle of 16 (panels that are not XORed) is none for the hardware.
[[nodiscard]] TensorMap tensor_map_of(const Function& function, const Copy& copy);

// The map as the hardware has it: with the dimensions in the buffer's order.
[[nodiscard]] TensorMap in_buffer_order(TensorMap map);

// The limits of a window that are known before the launch, one for each dimension of its root: the
// least of several as a `min`.
[[nodiscard]] std::vector<Expr> launch_limits(const Function& function, const ResolvedView& view);

}  // namespace kiln::ir
