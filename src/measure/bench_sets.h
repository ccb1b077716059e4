// The buffers of one problem of a suite, several times over: so many sets that the launches have
// passed twice the L2 cache before they come back to the first.
//
//   auto sets = SuiteSets::make(gpu, device, problem, seed);        filled with normal values
//   plan->start(sets->operands(i), ...);  vendor->start(sets->vendor(i));
//   sets->fill_exactly(device, 0, seed);                            integers, for the exact check
#pragma once

#include <deque>
#include <optional>

#include "gemm/problem.h"
#include "measure/bench_device.h"
#include "measure/bench_suites.h"
#include "measure/cublaslt.h"

namespace kiln::measure {

// What all of C is multiplied by: a power of two where the problem has tensor scales, else 1.
[[nodiscard]] double scale_of(const gemm::Problem& problem);

class SuiteSets {
 public:
  // `gpu` must outlive it. Results hold NaNs. Errors: what the driver says, memory above all.
  static Result<SuiteSets> make(runtime::Gpu& gpu, BenchDevice& device,
                                const gemm::Problem& problem, std::uint64_t seed);

  [[nodiscard]] std::size_t count() const { return sets_.size(); }
  [[nodiscard]] gemm::Operands operands(std::size_t set) const;
  // With groups those of the first one.
  [[nodiscard]] std::vector<ProductBuffers> vendor() const;
  // What another group of the set has.
  [[nodiscard]] ProductBuffers vendor_of_group(std::size_t set, std::int64_t group) const;

  // New inputs for one set: integers, scales that are powers of two; results hold NaNs again.
  [[nodiscard]] Result<void> fill_exactly(BenchDevice& device, std::size_t set, std::uint64_t seed);
  // The set's result holds NaNs again.
  [[nodiscard]] Result<void> clear_result(std::size_t set);
  // What is to be checked of one set; `with_vendor`: its result is there.
  [[nodiscard]] CheckRequest request(std::size_t set, bool with_vendor) const;
  // The same of one group of a problem that has some; the vendor has other scales there.
  [[nodiscard]] CheckRequest request_of_group(std::size_t set, std::int64_t group) const;
  // The names of buffers around which something was written: of all sets, or of one.
  [[nodiscard]] Result<std::vector<std::string>> overrun() const;
  [[nodiscard]] Result<std::vector<std::string>> overrun(std::size_t set) const;

 private:
  struct Buffer {
    std::string_view name;
    runtime::DeviceBuffer memory;
  };
  struct Set {
    std::deque<Buffer> buffers;

    [[nodiscard]] runtime::DeviceBuffer& memory(std::string_view name);  // there is one
    // 0 where the problem has no such buffer.
    [[nodiscard]] runtime::cuda::DevicePtr address(std::string_view name) const;
  };

  explicit SuiteSets(const gemm::Problem& problem) : problem_(problem) {}
  Result<void> add(runtime::Gpu& gpu, BenchDevice& device, std::uint64_t seed);
  Result<void> fill(BenchDevice& device, Set& set, bool exactly, std::uint64_t seed) const;
  Result<void> fill_rows(runtime::DeviceBuffer& to) const;

  gemm::Problem problem_;
  std::deque<Set> sets_;
};

// The factor of a problem with tensor scales; a power of two, so that exact sums stay exact.
inline constexpr double kTensorScale = 0.25;

}  // namespace kiln::measure
