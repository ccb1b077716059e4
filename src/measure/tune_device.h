// Candidates of `kiln tune` for the library, measured on the machine's GPU.
//
//   auto device = TuneGpu::open(options.seed);
//   (*device)->open(problem, candidates)      inputs once, kernels on all cores
#pragma once

#include "measure/bench_device.h"
#include "measure/tune_library.h"

namespace kiln::measure {

class TuneGpu final : public TuneDevice {
 public:
  // Errors: no GPU, no NVRTC; what the driver says.
  static Result<std::unique_ptr<TuneGpu>> open(std::uint64_t seed);

  [[nodiscard]] const target::Arch& arch() const override { return gpu_.arch(); }
  [[nodiscard]] int multiprocessors() const override { return gpu_.multiprocessors(); }
  [[nodiscard]] Result<std::unique_ptr<TuneField>> open(
      const gemm::Problem& problem, const std::vector<TuneCandidate>& candidates) override;

 private:
  TuneGpu(runtime::Gpu gpu, std::uint64_t seed) : gpu_(std::move(gpu)), seed_(seed) {}
  runtime::Gpu gpu_;
  std::optional<BenchDevice> device_;
  std::uint64_t seed_;
};

}  // namespace kiln::measure
