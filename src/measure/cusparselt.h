// One product of a 2:4 sparse matrix and a dense one as cuSPARSELt does it.
//
//   auto vendor = SparseVendorProduct::prepare(gpu, problem, 1, buffers);     A dense, with its
//   zeros vendor->start(0);                                                      on the first
//   buffers
#pragma once

#include <memory>
#include <span>
#include <string>

#include "measure/cublaslt.h"

namespace kiln::measure {

class SparseVendorProduct {
 public:
  SparseVendorProduct(SparseVendorProduct&& other) noexcept;
  SparseVendorProduct& operator=(SparseVendorProduct&&) = delete;
  ~SparseVendorProduct();

  // Compresses each A, lets the library search its algorithms on the first buffers (at least one)
  // and keeps the one it finds fastest. Both factors lie along k. Errors: no cuSPARSELt on this
  // machine; types or shapes it does not serve; what it reports.
  static Result<SparseVendorProduct> prepare(runtime::Gpu& gpu, const gemm::Problem& problem,
                                             double scale, std::span<const ProductBuffers> buffers);

  // Takes A as it lies in these buffers now; starts after what was started before.
  [[nodiscard]] Result<void> compress(std::size_t set);
  // Starts the product on buffers[set]; does not wait for it. Null is the default stream.
  [[nodiscard]] Result<void> start(std::size_t set, runtime::cuda::Stream stream = nullptr) const;

  [[nodiscard]] const std::string& library() const;  // "cuSPARSELt 0.8.1"

 private:
  struct State;
  explicit SparseVendorProduct(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kiln::measure
