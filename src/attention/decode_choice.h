// Which kernel, with which defines, computes a problem over a cache, and how many blocks share the
// keys of a sequence.
//
//   choose(problem, *find_arch("sm_90a"), 132)
//     =>  attention_decode_sm90, {CAUSAL false, D 128, DTYPE bf16, PAGED true, ...}, 8
#pragma once

#include "attention/decode_problem.h"
#include "gemm/choice.h"

namespace kiln::attention {

struct DecodeChoice {
  gemm::Choice kernel = {};
  std::int64_t splits = 1;
};

// "attention_decode_sm90 -D ..., splits=8"
[[nodiscard]] std::string text(const DecodeChoice& choice);

// A pure function of a normalised problem. Errors: no kernel serves it on this architecture; the
// reason says what is lacking.
[[nodiscard]] Result<DecodeChoice> choose(const DecodeProblem& problem, const target::Arch& arch,
                                          int multiprocessors);

}  // namespace kiln::attention
