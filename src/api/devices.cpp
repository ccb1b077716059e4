#include "api/devices.h"

#include "backends/device.h"
#include "emit/cuda/emit.h"
#include "runtime/nvrtc.h"
#include "support/hash.h"

namespace kiln::api {

namespace {

Unexpected<Failure> failed(kiln_status status, const Error& error) {
  return Unexpected{Failure{status, error}};
}

// Puts the calling thread's context back at the end of a scope.
class KeepContext {
 public:
  explicit KeepContext(const runtime::cuda::Api& api) : api_(api) {
    known_ = api.context_current(&context_) == runtime::cuda::kSuccess;
  }
  KeepContext(const KeepContext&) = delete;
  KeepContext& operator=(const KeepContext&) = delete;
  ~KeepContext() {
    if (known_) api_.context_set(context_);
  }

 private:
  const runtime::cuda::Api& api_;
  runtime::cuda::Context context_ = nullptr;
  bool known_ = false;
};

}  // namespace

Result<const runtime::cuda::Api*, Failure> Devices::driver() {
  auto api = driver_.find_or_make(0, []() -> Result<std::unique_ptr<runtime::cuda::Api>, Failure> {
    auto opened = runtime::cuda::open_api();
    if (!opened) return failed(KILN_NO_GPU, opened.error());
    auto started = opened->check(opened->init(0), "cannot start the CUDA driver");
    if (!started) return failed(KILN_NO_GPU, started.error());
    return std::make_unique<runtime::cuda::Api>(*opened);
  });
  if (!api) return Unexpected{api.error()};
  return *api;
}

Result<int, Failure> Devices::current() {
  const auto api = driver();
  if (!api) return Unexpected{api.error()};
  runtime::cuda::Device device = 0;
  if ((*api)->context_device(&device) != runtime::cuda::kSuccess) device = 0;
  return device;
}

Result<runtime::Gpu*, Failure> Devices::gpu(int number) {
  if (runtime::Gpu* found = gpus_.find(number)) return found;
  const auto api = driver();
  if (!api) return Unexpected{api.error()};
  const KeepContext keep(**api);
  return gpus_.find_or_make(number, [&]() -> Result<std::unique_ptr<runtime::Gpu>, Failure> {
    auto opened = backends::device().open(number);
    if (!opened) return failed(KILN_NO_GPU, opened.error());
    return std::make_unique<runtime::Gpu>(std::move(*opened));
  });
}

Result<const runtime::Kernels*, Failure> Devices::kernels(int number, const io::Program& program,
                                                          const ir::Function& function) {
  const auto gpu = this->gpu(number);
  if (!gpu) return Unexpected{gpu.error()};
  const std::string file = runtime::file_name_of(function);
  const std::string text = emit::emit(program.decided, program.sources, {.file_name = file});
  const std::string_view parts[] = {text, file};
  const Key key{number, digest_of_parts(parts).hex()};
  const auto made =
      kernels_.find_or_make(key, [&]() -> Result<std::unique_ptr<runtime::Kernels>, Failure> {
        const runtime::ContextScope scope((*gpu)->session());
        if (!scope.entered()) return failed(KILN_DEVICE, scope.entered().error());
        auto loaded = backends::device().load(**gpu, {.module = program.decided,
                                                      .function = function,
                                                      .sources = program.sources,
                                                      .interpreted = nullptr});
        if (loaded) return std::make_unique<runtime::Kernels>(std::move(*loaded));
        const bool has_compiler = runtime::find_nvrtc().has_value();
        return failed(has_compiler ? KILN_DEVICE : KILN_NO_COMPILER, loaded.error());
      });
  if (!made) return Unexpected{made.error()};
  return *made;
}

Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

}  // namespace kiln::api
