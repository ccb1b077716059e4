// Is an attention that was computed right? Each element against fp64 and the bound of
// attention_exact.h, of all rows or of a sample; of a sample all elements are looked at for being
// finite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/attention_exact.h"
#include "reference/compare.h"

namespace kiln::measure {

struct AttentionFound {
  const char* name;  // "o", "lse", "dq", "dk", "dv"
  reference::Comparison result;
};

// The problem is normalised. With `sample` some rows of a few heads, which this number chooses: the
// first, the last and others. Two comparisons of a forward problem, three of gradients.
[[nodiscard]] std::vector<AttentionFound> check_attention(
    const attention::Problem& problem, const AttentionTensors& tensors,
    const AttentionNumerics& numerics, std::optional<std::uint64_t> sample = std::nullopt);

}  // namespace kiln::measure
