// How many steps a run takes, unless its caller says otherwise, before it is given up. What a step is depends on
// who runs: an instruction of a warp in the simulator, an operation of up to 32 instances in the reference, an
// operation of a host part that a GPU's launches come from. What ends by itself needs far fewer.
#pragma once

#include <cstdint>

namespace kiln {

inline constexpr std::uint64_t kStepsMax = 1'000'000'000;

}  // namespace kiln
