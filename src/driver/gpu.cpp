#include "runtime/gpu.h"
#include "driver/execute.h"
#include "runtime/run.h"

namespace kiln::driver {

Result<void> find_place(Place place) {
  if (place != Place::kGpu) return {};
  const Result<runtime::Gpu> gpu = runtime::Gpu::open();
  if (gpu) return {};
  return Unexpected{
      Error{"no GPU that kiln can use (`--on sim` runs without one)", {}, gpu.error().text()}};
}

Result<Execution> run_on_gpu(const io::Program& program, const ExecuteOptions& options,
                             ir::Arguments arguments) {
  const ir::Function& function = program.decided.functions[options.function];
  arguments.vars.resize(function.vars.size());
  auto outcome =
      runtime::run_on_gpu(program.decided, function, program.sources, arguments, {.repeat = 0});
  if (!outcome) return Unexpected{outcome.error()};
  Execution execution;
  execution.place = Place::kGpu;
  execution.arguments = std::move(arguments);
  execution.seconds = outcome->kernel_seconds;
  execution.gpu = GpuTimes{.emit_seconds = outcome->emit_seconds,
                           .compile_seconds = outcome->compile_seconds,
                           .load_seconds = outcome->load_seconds,
                           .kernel_seconds = outcome->kernel_seconds,
                           .cached = outcome->cached,
                           .cache_note = outcome->cache_note};
  execution.overrun = std::move(outcome->overrun);
  return execution;
}

}  // namespace kiln::driver
