// The smallest program with the same disagreement: statements are left out, bodies take the place
// of what encloses them, and conditional expressions become one of their sides.
#pragma once

#include "programs/evaluate.h"

namespace kiln::programs {

struct ShrinkOptions {
  EvaluateOptions evaluate;
  int tries_max = 400;
  int seconds_max = 20;  // of one try
};

// `sample` disagrees as `verdict` says.
[[nodiscard]] Sample shrink(Sample sample, const Verdict& verdict, const ShrinkOptions& options);

}  // namespace kiln::programs
