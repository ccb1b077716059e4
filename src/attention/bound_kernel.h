// A kernel of attention whose parameters are known by their names: compiled and loaded, for the shapes
// of one problem. Starting it is nothing but its launches.
//
//   const Signature signature{.problem = text(problem),
//                             .dimensions = {{"B", 2}, {"S", 4096}, ...},
//                             .tensors = {{"q", DType::kBF16, {2, 4096, 16, 128}, strides}, ...},
//                             .numbers = {"scale"}};
//   Result<BoundKernel, gemm::Failure> kernel = BoundKernel::make(device, choice, signature);
//   kernel->start({.addresses = ..., .numbers = ...}, workspace, stream);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gemm/library.h"
#include "runtime/call_plan.h"

namespace kiln::attention {

// What a kernel may be called with.
struct Signature {
  struct Tensor {
    std::string_view name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides = {};  // as CallPlan::Subject has them
  };
  std::string problem = {};  // for messages
  // Of tensors; and numbers that shapes may be made of.
  std::vector<std::pair<std::string_view, std::int64_t>> dimensions = {};
  std::vector<Tensor> tensors = {};
  std::span<const std::string_view> numbers = {};
};

class BoundKernel {
 public:
  // In the order of the signature's tensors, and of its numbers; numbers as CallPlan::Operands has them.
  struct Operands {
    std::span<const runtime::cuda::DevicePtr> addresses;
    std::span<const std::uint64_t> numbers;
  };

  // Compiles, on the device of this number. Errors: a kernel that has other parameters, or returns
  // something; no NVRTC; what the driver says.
  static Result<BoundKernel, gemm::Failure> make(int device, const gemm::Choice& choice,
                                                 const Signature& signature);

  [[nodiscard]] const gemm::LoadedKernel& loaded() const { return *kernel_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return call_->workspace_bytes(); }

  // Errors: what the driver says. Allocates nothing unless it fails.
  [[nodiscard]] Result<void> start(const Operands& operands, runtime::cuda::DevicePtr workspace,
                                   runtime::cuda::Stream stream) const;

 private:
  BoundKernel() = default;

  std::shared_ptr<const gemm::LoadedKernel> kernel_;
  std::unique_ptr<runtime::CallPlan> call_;
  std::vector<std::size_t>
      roles_;  // by parameter: which of the tensors, or of the numbers behind them
};

[[nodiscard]] Error does_not_fit(const std::string& problem, std::string reason);
[[nodiscard]] Error cannot_start(std::string reason);

// Errors: an address that is null, or no multiple of the unit.
[[nodiscard]] Result<void> check_address(std::string_view name, runtime::cuda::DevicePtr address,
                                         std::size_t unit);
// Errors: a scale that is not more than 0 or not finite.
[[nodiscard]] Result<void> check_scale(float scale);

}  // namespace kiln::attention
