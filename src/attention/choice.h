// Which kernel, with which defines, computes a problem: the first row of a table that fits.
//
//   choose(problem, *find_arch("sm_90a"), 132)
//     =>  attention_sm90, {BLOCKS 132, CAUSAL true, D 128, DTYPE bf16, ...}
#pragma once

#include "attention/problem.h"
#include "gemm/choice.h"

namespace kiln::attention {

// A pure function of a normalised problem. Errors: no kernel serves it on this architecture; the
// reason says what is lacking.
[[nodiscard]] Result<gemm::Choice> choose(const Problem& problem, const target::Arch& arch,
                                          int multiprocessors);

}  // namespace kiln::attention
