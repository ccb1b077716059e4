// bench_values.cuh, bench_kernels.cuh and bench_problem.cuh as one text, for NVRTC.
#pragma once

#include <cstdint>

namespace kiln::measure {

// At most so many blocks: the kernels stride over the rest.
inline constexpr std::int64_t kBlocksMost = 1 << 14;

[[nodiscard]] const char* bench_kernels_text();

}  // namespace kiln::measure
