// The GPU's part of `kiln bench SUITE` besides the measured kernels: random inputs, and checks of
// results that are too large for the CPU to see in a second.
//
//   Result<BenchDevice> device = BenchDevice::open(gpu);        compiles bench_kernels.cuh
//   device->fill_normal(a, DType::kBF16, seed);
//   device->check(request)->sums.outside == 0     against fp64, and against the vendor's library
#pragma once

#include <optional>

#include "measure/bench_sample.h"
#include "reference/compare.h"
#include "runtime/gpu.h"

namespace kiln::measure {

// What a check is of: one product and its result. Addresses are in device memory; those of what
// there is not are 0.
struct CheckRequest {
  gemm::Problem problem;  // without its epilogue
  double scale = 1;       // of all of C
  runtime::cuda::DevicePtr a = 0;
  runtime::cuda::DevicePtr b = 0;
  runtime::cuda::DevicePtr c = 0;        // ours
  runtime::cuda::DevicePtr vendor = 0;   // the vendor's C
  runtime::cuda::DevicePtr a_scale = 0;  // f32 [cdiv(k, 128), m], or with rows of a_scale_step
  runtime::cuda::DevicePtr b_scale = 0;  // f32 [cdiv(n, 128), cdiv(k, 128)]
  std::int64_t a_scale_step = 0;         // 0: m
  reference::EinsumNumerics ours = {};
  reference::EinsumNumerics theirs = {};
  bool exact = false;      // every sum is exact: only C's rounding is allowed for
  std::uint64_t seed = 0;  // of the sample
};

struct ProductCheck {
  reference::Comparison sums;   // the sample, or all of C, against fp64
  reference::Comparison whole;  // all of C: finite, and against the vendor's when that is there
};

// The Euclidean norms of A's rows and B's columns: what all results of one product are compared by.
struct FactorNorms {
  runtime::DeviceBuffer a;
  runtime::DeviceBuffer b;
};

class BenchDevice {
 public:
  // `gpu` must outlive it. Errors: no NVRTC; what the driver says.
  static Result<BenchDevice> open(runtime::Gpu& gpu);

  // Fill with standard normal values, or integers whose sums of k products are exact. Neither
  // waits. Errors: what the driver says.
  [[nodiscard]] Result<void> fill_normal(runtime::DeviceBuffer& to, DType dtype,
                                         std::uint64_t seed);
  [[nodiscard]] Result<void> fill_integers(runtime::DeviceBuffer& to, DType dtype, std::int64_t k,
                                           std::uint64_t seed);
  // Fills with scale factors: f32 from 1/2 to 2, or 1 and 2 alone when they are to be `exact`.
  [[nodiscard]] Result<void> fill_scales(runtime::DeviceBuffer& to, bool exact, std::uint64_t seed);
  // Legal 2:4 metadata in bytes (kiln/sparse.h), the words that kernels read, and the dense matrix
  // of packed elements. A row of `k` elements of `dtype` has k / 8 bytes.
  [[nodiscard]] Result<void> fill_metadata(runtime::DeviceBuffer& to, std::uint64_t seed);
  [[nodiscard]] Result<void> pack_words(const runtime::DeviceBuffer& metadata,
                                        runtime::DeviceBuffer& words, DType dtype, std::int64_t k);
  [[nodiscard]] Result<void> expand(const runtime::DeviceBuffer& packed,
                                    const runtime::DeviceBuffer& metadata,
                                    runtime::DeviceBuffer& dense, DType dtype);

  // Checks a result, and waits. The first element outside has its coordinates and values. Errors:
  // what the driver says.
  [[nodiscard]] Result<ProductCheck> check(const CheckRequest& request);
  // The two halves of `check`, for those who compare many results of one product.
  [[nodiscard]] Result<reference::Comparison> check_sums(const CheckRequest& request);
  [[nodiscard]] Result<FactorNorms> norms(const CheckRequest& request);
  [[nodiscard]] Result<reference::Comparison> check_whole(const CheckRequest& request,
                                                          const FactorNorms& norms);

 private:
  BenchDevice(runtime::Gpu& gpu, runtime::DeviceModule module)
      : gpu_(&gpu), module_(std::move(module)) {}
  template <class... Values>
  Result<void> start(const char* kernel, std::int64_t threads, Values... values);
  template <class Start>
  Result<bench::Report> reported(Start&& start);
  Result<reference::Comparison> part_against_fp64(const CheckRequest& request,
                                                  const bench::Product& product,
                                                  const bench::Part& part);

  runtime::Gpu* gpu_;
  runtime::DeviceModule module_;
};

}  // namespace kiln::measure
