// Is an attention that was measured right? Some rows of a few heads are computed in fp64; all of the
// result is finite.
#pragma once

#include "attention/problem.h"
#include "reference/compare.h"
#include "support/tensor.h"

namespace kiln::measure {

// Host copies of the tensors, without gaps; o and lse are what was computed.
struct AttentionTensors {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;
  Tensor lse;
};

// The problem is normalised, and q, k and v are finite. An element of o may be wrong by the rounding of
// the weights and of itself, one of lse by 2^-12.
[[nodiscard]] reference::Comparison check_attention(const attention::Problem& problem,
                                                    const AttentionTensors& tensors, float scale,
                                                    std::uint64_t seed);

}  // namespace kiln::measure
