// A function of a decided module, run on the machine's GPU.
//
//   Result<GpuOutcome> outcome = run_on_gpu(module, module.functions[0], sources, arguments, {});
//   arguments.params[2].tensor          now holds what the kernel wrote
//   outcome->kernel_seconds             from events around the launches
#pragma once

#include <string>
#include <vector>

#include "ir/arguments.h"
#include "ir/module.h"
#include "runtime/call.h"
#include "runtime/gpu.h"
#include "runtime/nvrtc.h"
#include "support/source.h"

namespace kiln::runtime {

struct GpuOptions {
  // Times the function is run again after the first one, for kernel_seconds only: the results are
  // those of the first run.
  int repeat = 0;
  std::uint64_t steps_max = kStepsMax;  // of the host part
};

struct GpuOutcome {
  std::string device;
  const target::Arch* arch = nullptr;
  std::string nvrtc_version;
  double emit_seconds = 0;
  double compile_seconds = 0;
  double load_seconds = 0;
  bool cached = false;     // see Kernels
  std::string cache_note;  // see Kernels
  // All launches of one run: the median of the repetitions, or the first run's when there are none.
  double kernel_seconds = 0;
  std::int64_t launches = 0;  // of the first run
  // Buffers around which a kernel wrote outside of its memory. Must be empty.
  std::vector<std::string> overrun;
};

// `arguments` must fit the function: a tensor of the right type and shape for every view, every
// dimension set, every entry check passed. Outputs that the function only writes are filled with
// 0xFF bytes first, so that an element nobody wrote is seen. Errors: no GPU or NVRTC; the module is
// for a newer architecture than the GPU's; anything the driver reports.
[[nodiscard]] Result<GpuOutcome> run_on_gpu(const ir::Module& module, const ir::Function& function,
                                            const Sources& sources, ir::Arguments& arguments,
                                            const GpuOptions& options);

// The rest of run_on_gpu, where the call's kernels are loaded already: the outcome without what
// loading took. The call is of `arguments`.
[[nodiscard]] Result<GpuOutcome> run_call(Gpu& gpu, Call& call, ir::Arguments& arguments,
                                          const GpuOptions& options);

// Emits and compiles the module's kernels for its architecture; needs NVRTC but no GPU.
[[nodiscard]] Result<Cubin> compile_to_cubin_only(const ir::Module& module, const Sources& sources);

}  // namespace kiln::runtime
