// The prediction of one launch, from its counts and the trace of its middle block (explain/time).
#pragma once

#include <optional>

#include "explain/cost/cost.h"

namespace kiln::explain {

// `with_gains`: Prediction::bound and gains, which take most of the time. None for a launch without a trace, or whose blocks fit no SM. Needs all of `launch` but this.
[[nodiscard]] std::optional<Prediction> predict_launch(const LaunchCost& launch,
                                                       const ir::Function& function,
                                                       const sim::Outcome& outcome,
                                                       const target::Timing& timing,
                                                       bool with_gains = true);

}  // namespace kiln::explain
