// A call of a function without the addresses of its tensors: worked out once for their shapes,
// started as often as wanted with other addresses and other numbers, on any stream, by any thread.
//
//   Result<std::unique_ptr<CallPlan>> plan =
//       CallPlan::make(gpu, kernels->module, {module, function, arguments});
//   plan->start({.places = addresses, .numbers = bits}, stream);     nothing but the launches
//
// What Call (call.h) keeps in buffers of its own is the caller's here: parameters, what the function
// returns, and one piece of memory in which the buffers of the host part lie.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emit/cuda/launch_plan.h"
#include "ir/arguments.h"
#include "ir/module.h"
#include "runtime/gpu.h"
#include "runtime/map_cache.h"
#include "runtime/tensor_map.h"
#include "support/steps.h"

namespace kiln::runtime {

// Bytes of which every tensor's address is a multiple: kernels move vectors of so many.
inline constexpr std::size_t kTensorUnit = 16;
// The same of a workspace.
inline constexpr std::size_t kWorkspaceUnit = 256;

// Which numbers among the parameters (by index) decide what is launched: a grid, a buffer's shape, a
// condition or a number that the host part computes. The others are only handed on to kernels.
[[nodiscard]] std::vector<bool> deciding_numbers(const ir::Module& module,
                                                 const ir::Function& function);

class CallPlan {
 public:
  // What a function is planned for. Only make() reads it. Tensors need a type and a shape alone.
  struct Subject {
    const ir::Module& module;
    const ir::Function& function;
    const ir::Arguments& arguments;
    std::uint64_t steps_max = kStepsMax;  // of the host part
    // By parameter: elements between neighbours along each dimension of a tensor but the last; empty,
    // there or for all: without gaps. Only of tensors that kernels see through tensor maps alone.
    std::span<const std::vector<std::int64_t>> strides = {};
  };
  // What one start has.
  struct Operands {
    // Device addresses by parameter (those of numbers do not count), then of what is returned, then
    // of the workspace.
    std::span<const cuda::DevicePtr> places;
    // By parameter: the bits of a number, as its type has them; integers in 64 bits.
    std::span<const std::uint64_t> numbers;
  };
  // What a function that returns something gives with these arguments.
  struct Returned {
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape = {};
    std::optional<double> number = {};  // it is this number, and no tensor
  };

  // `gpu` and `kernels` must outlive the plan. Errors: those of the host part (HostProgram::run), of
  // sized_launch and of tensor_map_arguments; a kernel with more parameters than a plan holds; a
  // tensor with strides that a kernel has by its address; what the driver says.
  static Result<std::unique_ptr<CallPlan>> make(const Gpu& gpu, const DeviceModule& kernels,
                                                const Subject& subject);

  // Of device memory at a multiple of kWorkspaceUnit. What it holds does not matter; starts that run
  // at the same time need one each.
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  [[nodiscard]] const std::optional<Returned>& returned() const { return returned_; }

  // Starts everything once, in order; does not wait. Neither allocates nor synchronises, may be
  // captured in a graph. Errors: what the driver says.
  [[nodiscard]] Result<void> start(const Operands& operands, cuda::Stream stream) const;

 private:
  // Memory that kernels get: a piece of what the caller gives.
  struct Buffer {
    std::string name;
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;  // as Subject has them
    std::size_t place = 0;              // in Operands::places
    std::size_t offset = 0;
  };
  enum class Source : std::uint8_t { kBits, kBuffer, kNumber, kMap };
  struct Slot {
    Source source = Source::kBits;
    std::uint64_t bits = 0;  // kBits
    std::size_t index = 0;   // of the buffer, the parameter or the map
  };
  struct Map {
    TensorMapArguments arguments;
    std::string name;
    std::size_t buffer = 0;
  };
  struct Kernel {
    Launch launch;
    std::vector<Slot> slots;
    std::vector<Map> maps;
    std::unique_ptr<MapCache> cache;  // null without maps
  };
  // Every element of a buffer gets the same value of `width` bytes.
  struct Fill {
    std::size_t buffer = 0;
    std::size_t count = 0;
    std::size_t width = 1;
    std::uint64_t bits = 0;
  };
  // The kernel works on a copy of the caller's tensor.
  struct CopyIn {
    std::size_t buffer = 0;
    std::size_t param = 0;
    std::size_t bytes = 0;
  };
  using Step = std::variant<Kernel, Fill, CopyIn>;
  struct Start;
  class Maker;

  CallPlan(const Gpu& gpu, const DeviceModule& kernels) : gpu_(gpu), kernels_(kernels) {}
  [[nodiscard]] cuda::DevicePtr address(std::size_t buffer, const Operands& operands) const;
  Result<void> take(const Kernel& step, const Start& start) const;
  Result<void> take(const Fill& step, const Start& start) const;
  Result<void> take(const CopyIn& step, const Start& start) const;
  Result<void> take_with_maps(const Kernel& step, const Start& start) const;
  Result<void> launch(const Kernel& step, const Start& start,
                      std::span<const cuda::TensorMap> maps) const;

  const Gpu& gpu_;
  const DeviceModule& kernels_;
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
  std::size_t workspace_bytes_ = 0;
  std::optional<Returned> returned_;
};

}  // namespace kiln::runtime
