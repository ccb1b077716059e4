#include "gemm/registry.h"

#include "backends/device.h"
#include "runtime/nvrtc.h"

namespace kiln::gemm {

namespace {

Unexpected<Failure> failed(FailureKind kind, const Error& error) {
  return Unexpected{Failure{kind, error}};
}

// What kept a plan from being made, when it was not the problem.
FailureKind kind_of_making() {
  return runtime::find_nvrtc() ? FailureKind::kDevice : FailureKind::kNoCompiler;
}

}  // namespace

Result<const runtime::cuda::Api*, Failure> Registry::driver() {
  auto api = driver_.find_or_make(0, []() -> Result<std::unique_ptr<runtime::cuda::Api>, Failure> {
    auto opened = runtime::cuda::open_api();
    if (!opened) return failed(FailureKind::kNoGpu, opened.error());
    auto started = opened->check(opened->init(0), "cannot start the CUDA driver");
    if (!started) return failed(FailureKind::kNoGpu, started.error());
    return std::make_unique<runtime::cuda::Api>(*opened);
  });
  if (!api) return Unexpected{api.error()};
  return *api;
}

Result<Registry::Key, Failure> Registry::key_of(const Problem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return failed(FailureKind::kInvalid, whole.error());
  const auto api = driver();
  if (!api) return Unexpected{api.error()};
  runtime::cuda::Device device = 0;
  if ((*api)->context_device(&device) != runtime::cuda::kSuccess) device = 0;
  return Key{device, *whole};
}

Result<const Plan*, Failure> Registry::find(const Problem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  return plans_.find(*key);
}

Result<const Plan*, Failure> Registry::plan(const Problem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  auto plan = plans_.find_or_make(*key, [&] { return make(*key); });
  if (!plan) return Unexpected{plan.error()};
  return *plan;
}

Result<std::unique_ptr<Plan>, Failure> Registry::make(const Key& key) {
  const auto& [device, problem] = key;
  auto gpu = gpus_.find_or_make(
      device, [&, device = device]() -> Result<std::unique_ptr<runtime::Gpu>, Failure> {
        auto opened = backends::device().open(device);
        if (!opened) return failed(FailureKind::kNoGpu, opened.error());
        return std::make_unique<runtime::Gpu>(std::move(*opened));
      });
  if (!gpu) return Unexpected{gpu.error()};
  const auto choice = choose(problem, (*gpu)->arch(), (*gpu)->multiprocessors());
  if (!choice) return failed(FailureKind::kUnsupported, choice.error());
  const auto program = this->program(device, **gpu, *choice);
  if (!program) return Unexpected{program.error()};
  // Before NVRTC compiles it: a problem that the kernel does not fit is refused without.
  const auto recipe = make_recipe(**program, problem, (*gpu)->arch());
  if (!recipe) return failed(FailureKind::kUnsupported, recipe.error());
  const auto kernel = this->kernel(device, **gpu, *choice, *program);
  if (!kernel) return Unexpected{kernel.error()};
  auto plan = Plan::prepare(**gpu, problem, *choice, *kernel);
  if (!plan) return failed(kind_of_making(), plan.error());
  return std::move(*plan);
}

Result<std::shared_ptr<const Program>, Failure> Registry::program(int device,
                                                                  const runtime::Gpu& gpu,
                                                                  const Choice& choice) {
  using Held = std::shared_ptr<const Program>;
  const auto made = programs_.find_or_make(
      {device, text(choice)}, [&]() -> Result<std::unique_ptr<Held>, Failure> {
        auto compiled = compile(choice, gpu.arch());
        if (!compiled) return failed(FailureKind::kUnsupported, compiled.error());
        return std::make_unique<Held>(std::move(*compiled));
      });
  if (!made) return Unexpected{made.error()};
  return **made;
}

Result<std::shared_ptr<const LoadedKernel>, Failure> Registry::kernel(
    int device, runtime::Gpu& gpu, const Choice& choice, std::shared_ptr<const Program> program) {
  using Held = std::shared_ptr<const LoadedKernel>;
  const auto made = kernels_.find_or_make({device, text(choice)},
                                          [&]() -> Result<std::unique_ptr<Held>, Failure> {
                                            auto loaded = load_kernel(gpu, std::move(program));
                                            if (!loaded)
                                              return failed(kind_of_making(), loaded.error());
                                            return std::make_unique<Held>(std::move(*loaded));
                                          });
  if (!made) return Unexpected{made.error()};
  return **made;
}

Result<bool, Failure> Registry::is_capturing(runtime::cuda::Stream stream) {
  const auto api = driver();
  if (!api) return Unexpected{api.error()};
  int capturing = 0;
  // An error here is the stream's, and the launch will report it.
  if ((*api)->stream_is_capturing(stream, &capturing) != runtime::cuda::kSuccess) return false;
  return capturing != 0;
}

Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

}  // namespace kiln::gemm
