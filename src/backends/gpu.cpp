// The row of the machine's GPU.
#include "backends/device.h"
#include "runtime/run.h"

namespace kiln::backends {

namespace {

constexpr Device kDevice{
    .open = [](int ordinal) { return runtime::Gpu::open(ordinal); },
    .load =
        [](runtime::Gpu& gpu, const Job& job) {
          return runtime::load_kernels(gpu, job.module, job.function, job.sources);
        },
    .measure_loads =
        [](runtime::Gpu& gpu, const Job& job) {
          return runtime::measure_loads(gpu, job.module, job.function, job.sources);
        },
    .compile = [](runtime::Gpu& gpu, const char* text,
                  const char* name) -> Result<runtime::DeviceModule> {
      auto kernels = runtime::load_text(gpu, text, name);
      if (!kernels) return Unexpected{kernels.error()};
      return std::move(kernels->module);
    },
    .warm =
        [](const Job& job, const runtime::Cache& cache) {
          return runtime::warm_kernels(job.module, job.function, job.sources, cache);
        },
};

class PreparedGpu final : public Prepared {
 public:
  PreparedGpu(const Job& job, runtime::Gpu gpu, runtime::Kernels kernels)
      : job_(job), gpu_(std::move(gpu)), kernels_(std::move(kernels)) {}

  Result<Execution> run(ir::Arguments arguments, const Limits& limits) override {
    arguments.vars.resize(job_.function.vars.size());
    runtime::Call call(gpu_, kernels_.module, job_.module, job_.function, arguments);
    auto outcome = runtime::run_call(gpu_, call, arguments, {.steps_max = limits.steps_max});
    if (!outcome) return Unexpected{outcome.error()};
    return Execution{.backend = &kGpu,
                     .arguments = std::move(arguments),
                     .seconds = outcome->kernel_seconds,
                     .times = Times{.emit_seconds = kernels_.emit_seconds,
                                    .compile_seconds = kernels_.compile_seconds,
                                    .load_seconds = kernels_.load_seconds,
                                    .kernel_seconds = outcome->kernel_seconds,
                                    .cached = kernels_.cached,
                                    .cache_note = kernels_.cache_note},
                     .printed = ir::lines_in_order(call.printed()),
                     .overrun = std::move(outcome->overrun)};
  }

 private:
  Job job_;
  runtime::Gpu gpu_;
  runtime::Kernels kernels_;
};

Result<std::unique_ptr<Prepared>> prepare(const Job& job) {
  auto gpu = kDevice.open(0);
  if (!gpu) return Unexpected{gpu.error()};
  auto kernels = kDevice.load(*gpu, job);
  if (!kernels) return Unexpected{kernels.error()};
  return std::unique_ptr<Prepared>(
      std::make_unique<PreparedGpu>(job, std::move(*gpu), std::move(*kernels)));
}

// An older program's instructions run on newer GPUs.
bool serves(const target::Arch& arch) {
  const target::Arch* machine = device_arch();
  return machine != nullptr && machine->capability >= arch.capability;
}

Result<void> find() {
  const Result<runtime::Gpu> gpu = kDevice.open(0);
  if (gpu) return {};
  return Unexpected{
      Error{"no GPU that kiln can use (`--on sim` runs without one)", {}, gpu.error().text()}};
}

}  // namespace

constinit const Backend kGpu{
    .name = "gpu",
    .preference = 2,
    .serves = serves,
    .find = find,
    .prepare = prepare,
    .runs_cuda = true,
    .reports = {.times = true, .overrun = true},
    .device = &kDevice,
};

const Device& device() { return *kGpu.device; }

Result<runtime::Gpu> open_device() {
  auto gpu = device().open(0);
  if (gpu) return gpu;
  return Unexpected{Error{"no GPU that kiln can use", {}, gpu.error().text()}};
}

const target::Arch* device_arch() {
  const Result<runtime::Gpu> gpu = device().open(0);
  return gpu ? &gpu->arch() : nullptr;
}

}  // namespace kiln::backends
