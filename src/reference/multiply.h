// Products of tiles in the reference interpreter: sums of products and what is known of their errors. Internal to this
// folder.
#pragma once

#include "reference/machine.h"

namespace kiln::reference {

using Rounding = Fragments::Slot::Rounding;

// Where a contraction's operand has its elements: value[outer * outer_stride + k * k_stride].
struct Operand {
  const Fragments::Slot& slot;
  std::size_t outer = 0;
  std::size_t depth = 0;
  std::size_t outer_stride = 0;
  std::size_t k_stride = 0;
  double smallest_normal = 0;  // of its type
};

[[nodiscard]] Operand operand_of(const Fragments& fragments, const Fragments::Slot& slot,
                                 ir::Major major);

// Which elements of A are kept.
struct Kept {
  const Fragments& metadata;
  const Fragments::Slot& slot;
  bool wide;  // A has elements of 32 bits
};

// c += a x b: an instruction's rounding for each element.
void multiply(Fragments::Slot& c, const Operand& a, const Operand& b, const Rounding& by);
// The same of an A that has only the elements that are kept.
void multiply_sparse(Fragments::Slot& c, const Operand& a, const Operand& b, const Kept& kept,
                     const Rounding& by);

}  // namespace kiln::reference
