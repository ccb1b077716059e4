// bench_values.cuh, bench_kernels.cuh and bench_problem.cuh as one text, for NVRTC.
#pragma once

namespace kiln::measure {

[[nodiscard]] const char* bench_kernels_text();

}  // namespace kiln::measure
