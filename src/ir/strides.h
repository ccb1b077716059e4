// What lies behind a root view: a parameter, an Alloc, or an Alias of one with a shape of its own.
//
//   %0 = alloc : view<f16, shared, [4, 64]>      strides 64, 1
//   %1 = alias base=%0 : view<f16, shared, [256]>           1, in the memory of %0
//   %2 = alias base=%x offset=8 strides=[2*K, 1] : ...      2*K, 1, from element 8 of %x on
#pragma once

#include "ir/module.h"

namespace kiln::ir {

// The buffer whose memory the root's elements are in: the base of an Alias, else the root itself.
[[nodiscard]] ValueId storage_of(const Function& function, ValueId root);

// Whether the root's elements are in shared memory that is as large as the launch says: such a buffer
// has no layout but its rows, one behind the other, and threads reach it by pointers.
[[nodiscard]] bool is_sized_at_launch(const Function& function, ValueId root);

// The elements of that memory from one index to the next, by dimension of the root.
[[nodiscard]] std::vector<Expr> root_strides(const Function& function, ValueId root);

// The element of that memory (row-major) that the root begins at.
[[nodiscard]] Expr root_offset(const Function& function, ValueId root);

// Whether the last dimension's elements follow each other in memory.
[[nodiscard]] bool rows_are_dense(const Function& function, ValueId root);

}  // namespace kiln::ir
