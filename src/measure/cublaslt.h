// One product of matrices as cuBLASLt does it: what ours is measured against.
//
//   MatrixProduct product{.m = 4096, .n = 4096, .k = 4096, .a = f16, .b = f16, .c = f16};
//   Result<VendorProduct> vendor = VendorProduct::prepare(gpu, product, buffers);
//   vendor->start(buffers[0]);          its fastest algorithm of those it proposes
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/gpu.h"
#include "support/dtype.h"

namespace kiln::measure {

// C[m, n] = scale * sum over k of A * B, all without gaps. C lies by rows. Sums are in f32, of f32
// factors in tf32.
struct MatrixProduct {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a = DType::kF16;
  DType b = DType::kF16;
  DType c = DType::kF16;
  // Along which index neighbours in memory lie: A is [m, k], else [k, m]; B is [n, k], else [k, n].
  bool a_along_k = true;
  bool b_along_k = true;
  // Of 8-bit floats: f32 [cdiv(k, 128), m] for 1 x 128 of A, [cdiv(n, 128), cdiv(k, 128)] for 128 x
  // 128 of B.
  bool block_scales = false;
  double scale = 1;
};

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

  // Block scales need version 12.9 and sm_90. Asks for algorithms, times each on `buffers` in turn
  // (at least one) and keeps the fastest. Errors: no cuBLASLt on this machine; types or shapes it
  // does not serve; what it reports.
  static Result<VendorProduct> prepare(runtime::Gpu& gpu, const MatrixProduct& product,
                                       std::span<const ProductBuffers> buffers);

  // Starts one product; does not wait for it.
  [[nodiscard]] Result<void> start(const ProductBuffers& buffers) const;

  [[nodiscard]] const std::string& library() const;  // "cuBLASLt 13.1.0"
  [[nodiscard]] int algorithms() const;              // how many were timed

 private:
  struct State;
  explicit VendorProduct(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kiln::measure
