#include "runtime/run.h"

#include <algorithm>

#include "emit/cuda/emit.h"
#include "runtime/call.h"

namespace kiln::runtime {

namespace {

// Starts everything once and waits. The seconds between the events around it.
Result<double> timed(Gpu& gpu, Call& call) {
  Result<DeviceEvent> start = gpu.event();
  if (!start) return Unexpected{start.error()};
  Result<DeviceEvent> end = gpu.event();
  if (!end) return Unexpected{end.error()};
  if (auto began = start->record(); !began) return Unexpected{began.error()};
  if (auto ran = call.start(); !ran) return Unexpected{ran.error()};
  if (auto ended = end->record(); !ended) return Unexpected{ended.error()};
  if (auto waited = gpu.synchronize(); !waited) return Unexpected{waited.error()};
  return end->seconds_since(*start);
}

Result<double> median_of_repeats(Gpu& gpu, Call& call, int repeat, double first) {
  if (repeat <= 0) return first;
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const Result<double> one = timed(gpu, call);
    if (!one) return one;
    seconds.push_back(*one);
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace

Result<Cubin> compile_to_cubin_only(const ir::Module& module, const Sources& sources) {
  const std::string file_name =
      module.functions.empty() ? "kernel.cu" : file_name_of(module.functions[0]);
  const std::string text = emit::emit(module, sources, {.file_name = file_name});
  return compile(compile_request(text, *module.arch, file_name));
}

Result<GpuOutcome> run_call(Gpu& gpu, Call& call, ir::Arguments& arguments,
                            const GpuOptions& options) {
  if (auto copied = call.copy_in(); !copied) return Unexpected{copied.error()};
  if (auto prepared = call.prepare(options.steps_max); !prepared)
    return Unexpected{prepared.error()};
  const Result<double> first = timed(gpu, call);
  if (!first) return Unexpected{first.error()};
  GpuOutcome outcome;
  outcome.device = gpu.name();
  outcome.arch = &gpu.arch();
  outcome.launches = call.launches();
  if (auto copied = call.copy_out(arguments); !copied) return Unexpected{copied.error()};
  Result<std::vector<std::string>> overrun = call.overrun();
  if (!overrun) return Unexpected{overrun.error()};
  outcome.overrun = std::move(*overrun);
  const Result<double> median = median_of_repeats(gpu, call, options.repeat, *first);
  if (!median) return Unexpected{median.error()};
  outcome.kernel_seconds = *median;
  return outcome;
}

Result<GpuOutcome> run_on_gpu(const ir::Module& module, const ir::Function& function,
                              const Sources& sources, ir::Arguments& arguments,
                              const GpuOptions& options) {
  Result<Gpu> gpu = Gpu::open();
  if (!gpu) return Unexpected{gpu.error()};
  const Result<Kernels> kernels = load_kernels(*gpu, module, function, sources);
  if (!kernels) return Unexpected{kernels.error()};
  Call call(*gpu, kernels->module, module, function, arguments);
  Result<GpuOutcome> outcome = run_call(*gpu, call, arguments, options);
  if (!outcome) return outcome;
  outcome->nvrtc_version = kernels->nvrtc_version;
  outcome->emit_seconds = kernels->emit_seconds;
  outcome->compile_seconds = kernels->compile_seconds;
  outcome->load_seconds = kernels->load_seconds;
  outcome->cached = kernels->cached;
  outcome->cache_note = kernels->cache_note;
  return outcome;
}

}  // namespace kiln::runtime
