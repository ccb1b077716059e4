// `kiln tune SUITE` and `kiln tune --problem ...`: which kernel of the library, cut how, is fastest
// for each problem; the answers go into a table that ships with it (gemm/tuned.h).
//
//   kiln tune llm -o kernels/tuned/sm_90a.json
//     M=4096,N=2112,K=7168, bf16 * bf16 -> bf16    152.1 us  815.6 TFLOP/s  1.080x  gemm_sm90 ...
//
// The table is written after each problem, so whoever is stopped has what was found.
#pragma once

#include <memory>

#include "gemm/space.h"
#include "gemm/tuned.h"
#include "io/console.h"
#include "measure/bench_suites.h"
#include "measure/options.h"
#include "measure/tune_rounds.h"

namespace kiln::measure {

// One way to compute a problem.
struct TuneCandidate {
  gemm::Choice choice;  // complete
  gemm::Defines tuned;  // of its defines those that do not follow from the problem
  double modelled = 0;  // seconds; 0: it is what the library does now
};

// What the library does now, and then the most promising, `keep` in all. Errors: the library has
// no kernel for the problem.
[[nodiscard]] Result<std::vector<TuneCandidate>> candidates_of(const gemm::Problem& problem,
                                                               const target::Arch& arch,
                                                               int multiprocessors,
                                                               std::size_t keep);

// Where candidates are measured: a GPU (tune_device.h), or a test's.
class TuneDevice {
 public:
  TuneDevice() = default;
  TuneDevice(const TuneDevice&) = delete;
  TuneDevice& operator=(const TuneDevice&) = delete;
  virtual ~TuneDevice() = default;

  [[nodiscard]] virtual const target::Arch& arch() const = 0;
  [[nodiscard]] virtual int multiprocessors() const = 0;
  // Makes inputs and compiles, on all cores; a candidate that does not compile is refused when it
  // is checked. Errors: what the driver says.
  [[nodiscard]] virtual Result<std::unique_ptr<TuneField>> open(
      const gemm::Problem& problem, const std::vector<TuneCandidate>& candidates) = 0;
};

// The problems of the options: a suite's, with --only and --shape, and those of --problem.
[[nodiscard]] Checked<std::vector<gemm::Problem>> tuned_cases(const TuneOptions& options,
                                                              Diagnostics& diags);

// "bf16,bf16,bf16 M=16,N=7168,K=2048", the types of A, B and C; a third word may be
// `tensor-scales` or `block-scales`.
[[nodiscard]] Checked<gemm::Problem> parse_problem(const std::string& text, Diagnostics& diags);

// The whole command on a device. Kinds of exits: a wrong result 1, something that could not be
// measured or written 3.
[[nodiscard]] io::Exit tune_library(const TuneOptions& options,
                                    const std::vector<gemm::Problem>& cases, TuneDevice& device,
                                    io::Console& console);

}  // namespace kiln::measure
