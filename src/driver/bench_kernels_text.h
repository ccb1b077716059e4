// bench_values.cuh and bench_kernels.cuh as one text, for NVRTC.
#pragma once

namespace kiln::driver {

[[nodiscard]] const char* bench_kernels_text();

}  // namespace kiln::driver
