#include "gemm/library.h"

#include "backends/device.h"
#include "runtime/nvrtc.h"

namespace kiln::gemm {

FailureKind kind_of_making() {
  return runtime::find_nvrtc() ? FailureKind::kDevice : FailureKind::kNoCompiler;
}

Result<const runtime::cuda::Api*, Failure> Library::driver() {
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

Result<int, Failure> Library::current_device() {
  const auto api = driver();
  if (!api) return Unexpected{api.error()};
  runtime::cuda::Device device = 0;
  if ((*api)->context_device(&device) != runtime::cuda::kSuccess) device = 0;
  return device;
}

Result<runtime::Gpu*, Failure> Library::gpu(int device) {
  return gpus_.find_or_make(device, [&]() -> Result<std::unique_ptr<runtime::Gpu>, Failure> {
    auto opened = backends::device().open(device);
    if (!opened) return failed(FailureKind::kNoGpu, opened.error());
    return std::make_unique<runtime::Gpu>(std::move(*opened));
  });
}

Result<std::shared_ptr<const Program>, Failure> Library::program(int device,
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

Result<std::shared_ptr<const LoadedKernel>, Failure> Library::kernel(
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

Result<bool, Failure> Library::is_capturing(runtime::cuda::Stream stream) {
  const auto api = driver();
  if (!api) return Unexpected{api.error()};
  int capturing = 0;
  // An error here is the stream's, and the launch will report it.
  if ((*api)->stream_is_capturing(stream, &capturing) != runtime::cuda::kSuccess) return false;
  return capturing != 0;
}

Library& library() {
  static auto* const one = new Library;
  return *one;
}

}  // namespace kiln::gemm
