// A call of a function on the GPU: worked out once, started as often as wanted.
//
//   Result<Kernels> kernels = load_kernels(gpu, module, function, sources);
//   Call call(gpu, kernels->module, module, function, arguments);
//   call.copy_in();  call.prepare();      buffers, tensor maps, parameters, grids
//   call.start();    call.start();        nothing but the launches
//   gpu.synchronize();  call.copy_out(arguments);
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "emit/cuda/launch_plan.h"
#include "ir/arguments.h"
#include "ir/module.h"
#include "runtime/cached_compile.h"
#include "runtime/gpu.h"
#include "runtime/host_program.h"
#include "runtime/launch.h"
#include "support/source.h"

namespace kiln::runtime {

// A module's kernels, on the GPU.
struct Kernels {
  DeviceModule module;
  std::string nvrtc_version;
  double emit_seconds = 0;
  double compile_seconds = 0;  // or of finding them in the cache
  double load_seconds = 0;
  bool cached = false;     // they were found, carried or in the compile cache
  bool kept = false;       // the cache has them now
  std::string cache_note;  // why it could not keep them; usually empty
};

// The name under which a function's CUDA is compiled.
[[nodiscard]] std::string file_name_of(const ir::Function& function);

// Machine code that the program carries (carried_code.h) comes first, where the driver takes it, then
// the compile cache, as the environment has it (cache_settings). Errors: no NVRTC; the
// module is for a newer architecture than the GPU's; what the driver says; what cache_settings
// says.
[[nodiscard]] Result<Kernels> load_kernels(Gpu& gpu, const ir::Module& module,
                                           const ir::Function& function, const Sources& sources,
                                           CacheUse use = CacheUse::kFindAndStore);

// How long it takes until a module's kernels are on the GPU, from the decided program.
struct LoadTimes {
  double cold = 0;             // compiled, whatever the cache has: CUDA text, NVRTC, loading
  std::optional<double> warm;  // found in the cache; none when that is off or cannot be written
};

// Errors: those of load_kernels.
[[nodiscard]] Result<LoadTimes> measure_loads(Gpu& gpu, const ir::Module& module,
                                              const ir::Function& function, const Sources& sources);

// The kernels of a CUDA text, from the compile cache where it has them. Errors: no NVRTC; what it or the driver says;
// what cache_settings says.
[[nodiscard]] Result<Kernels> load_text(Gpu& gpu, std::string text, std::string file_name);

// What load_kernels would compile on a GPU of the module's architecture, into the cache; needs no
// GPU. Errors: no NVRTC.
[[nodiscard]] Result<Compiled> warm_kernels(const ir::Module& module, const ir::Function& function,
                                            const Sources& sources, const Cache& cache);

class Call {
 public:
  // All of them must outlive the call. Of `arguments`, tensors are read by copy_in() alone.
  Call(Gpu& gpu, const DeviceModule& kernels, const ir::Module& module,
       const ir::Function& function, const ir::Arguments& arguments);

  // Makes the parameters' buffers. Those that are only written hold 0xFF bytes, and their tensors
  // need a type and a shape alone.
  [[nodiscard]] Result<void> copy_in();
  // In the place of copy_in(): the parameters' buffers are those of a call whose function has
  // parameters of the same types and shapes.
  void share(const Call& from);
  // What the function writes gets the contents back that copy_in() gave it.
  [[nodiscard]] Result<void> refill();
  // Runs the host part for its launches, which begin with start().
  [[nodiscard]] Result<void> prepare(std::uint64_t steps_max = kStepsMax);
  // Everything once, in order; does not wait. Buffers of the host part that have no initial value
  // hold 0xFF bytes the first time. Null is the default stream. Errors: what the driver says; on
  // another stream, a buffer that is filled from the host's memory.
  [[nodiscard]] Result<void> start(cuda::Stream stream = nullptr);
  // What the function writes and returns. Tensors of written parameters must have their bytes.
  [[nodiscard]] Result<void> copy_out(ir::Arguments& to) const;
  // Buffers around which a kernel wrote outside of its memory.
  [[nodiscard]] Result<std::vector<std::string>> overrun() const;

  [[nodiscard]] std::int64_t launches() const { return launches_; }  // of one start()
  // Of a parameter or a buffer of the host part; null when there is none.
  [[nodiscard]] const DeviceBuffer* buffer(ir::ValueId value) const;
  // After prepare(): what the function returns; invalid when nothing.
  [[nodiscard]] ir::ValueId returned() const { return host_.returned(); }
  // After prepare(): what the host part printed.
  [[nodiscard]] const std::vector<ir::Printed>& printed() const { return host_.printed(); }

 private:
  using ValueBytes = std::array<std::byte, kValueBytes>;

  struct Buffer {
    DeviceBuffer memory;
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape;
  };
  // A launch, and what its parameters point to.
  struct Prepared {
    Launch launch;
    std::vector<ValueBytes> values;
    std::vector<cuda::TensorMap> maps;
  };
  // A buffer of the host part comes into being; without bytes it has no initial value.
  struct Fill {
    std::shared_ptr<Buffer> buffer;
    std::vector<std::byte> bytes;
  };
  using Step = std::variant<Prepared, Fill>;

  Result<void> fill(std::size_t param, DeviceBuffer& memory) const;
  Result<void> allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                        std::optional<double> initial);
  Result<void> prepare_launch(ir::OpId op);
  Result<std::vector<cuda::TensorMap>> maps_of(const emit::LaunchPlan& plan) const;
  ValueBytes slot_value(const emit::ParamSlot& slot) const;
  Result<void> take(const Prepared& step, cuda::Stream stream);
  Result<void> take(const Fill& step, cuda::Stream stream);
  Result<void> copy_out_returned(ir::Arguments& to) const;

  Gpu& gpu_;
  const DeviceModule& kernels_;
  const ir::Function& function_;
  const ir::Arguments& arguments_;
  std::vector<emit::LaunchPlan> plans_;
  HostProgram host_;
  std::map<std::uint32_t, std::shared_ptr<Buffer>> buffers_;  // by index of the root's ValueId
  std::vector<std::shared_ptr<Buffer>> retired_;  // of another shape; launches still use them
  std::vector<Step> steps_;
  std::int64_t launches_ = 0;
  bool started_ = false;
};

}  // namespace kiln::runtime
