// What a kernel's parameters mean, by their names (see recipe.h).
//
//   gemm(bf16 [M, K] a, bf16 [N, K] b, bf16 [M, N] c)  on 512 x 520 x 256, rows of C 1024 apart
//     =>  vars M 512, N 520, K 256;  c: role kC, shape [512, 520], strides [1024]
#pragma once

#include <optional>
#include <vector>

#include "gemm/recipe.h"

namespace kiln::gemm {

// A tensor parameter.
struct Bound {
  Role role = Role::kWorkspace;
  std::vector<std::int64_t> shape = {};    // as declared
  std::vector<std::int64_t> strides = {};  // of all dimensions but the last: where rows really are
};

struct Contract {
  std::vector<std::int64_t> vars;            // by VarId
  std::vector<std::optional<Bound>> params;  // by parameter; none for scalars
  ir::ValueId alpha;                         // invalid: there is none
  ir::ValueId beta;
  bool batched = false;  // the kernel has BATCH
};

// Errors: as make_recipe's, but for checks and geometry.
[[nodiscard]] Result<Contract> bind_contract(const ir::Function& function, const Problem& problem);

}  // namespace kiln::gemm
