// What one kernel uses: which operations matter, which variables, and what comes from outside.
//
//   %3 = index expr=16*block_m      used once, by a pure operation: not live on its own line
#pragma once

#include <vector>

#include "ir/module.h"

namespace kiln::emit {

struct KernelUses {
  std::vector<bool> live_ops;         // by OpId: has an effect or feeds an operation that has one
  std::vector<bool> inside;           // by OpId: belongs to the kernel
  std::vector<bool> vars;             // by VarId: some live operation's text may name it
  std::vector<int> value_uses;        // by ValueId: operands of live operations that name it
  std::vector<bool> written_roots;    // by ValueId: roots of views that live operations write
  std::vector<ir::OpId> bulk_copies;  // live, in program order
  std::vector<ir::VarId> outer_vars;  // used, defined outside, in order of their ids
  std::vector<ir::ValueId> outer_values;  // roots of views and scalars from outside, likewise
};
[[nodiscard]] KernelUses kernel_uses(const ir::Function& function, ir::OpId launch);

// Scalar operations whose spelling may stand where their result is used instead of in a statement:
// by ValueId. Reads of memory and cells move only past operations that change nothing.
[[nodiscard]] std::vector<bool> inlined_values(const ir::Function& function, ir::RegionId body,
                                               const KernelUses& uses);

}  // namespace kiln::emit
