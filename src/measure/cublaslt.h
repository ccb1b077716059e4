// One product of matrices as cuBLASLt does it: what ours is measured against.
//
//   gemm::Problem problem{.m = 4096, .n = 4096, .k = 4096, .a = f16, .b = f16, .c = f16};
//   Result<VendorProduct> vendor = VendorProduct::prepare(gpu, problem, 1, buffers);
//   vendor->start(buffers[0]);          its fastest algorithm of those it proposes
#pragma once

#include <memory>
#include <span>
#include <string>

#include "gemm/problem.h"
#include "runtime/gpu.h"

namespace kiln::measure {

struct ProductBuffers {
  runtime::cuda::DevicePtr a = 0;
  runtime::cuda::DevicePtr b = 0;
  runtime::cuda::DevicePtr c = 0;
  runtime::cuda::DevicePtr a_scale = 0;  // where the product has block scales
  runtime::cuda::DevicePtr b_scale = 0;
};

class VendorProduct {
 public:
  VendorProduct(VendorProduct&& other) noexcept;
  VendorProduct& operator=(VendorProduct&&) = delete;
  ~VendorProduct();

  // The problem's matrices have no gaps; A is dense, and C is `scale` times the product whatever
  // the epilogue says. Block scales need version 12.9 and sm_90. Asks for algorithms, times each on
  // `buffers` in turn (at least one) and keeps the fastest. Errors: no cuBLASLt on this machine;
  // types or shapes it does not serve; what it reports.
  static Result<VendorProduct> prepare(runtime::Gpu& gpu, const gemm::Problem& problem,
                                       double scale, std::span<const ProductBuffers> buffers);

  // Starts one product; does not wait for it. Null is the default stream.
  [[nodiscard]] Result<void> start(const ProductBuffers& buffers,
                                   runtime::cuda::Stream stream = nullptr) const;

  [[nodiscard]] const std::string& library() const;  // "cuBLASLt 13.1.0"
  [[nodiscard]] int algorithms() const;              // how many were timed

 private:
  struct State;
  explicit VendorProduct(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kiln::measure
