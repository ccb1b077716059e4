// One measured problem, as a line of JSON and as a line of text.
//
//   BenchRow row{.suite = "dense", .kernel = "gemm", .m = 4096, ...};
//   to_json(row)            {"suite":"dense","kernel":"gemm","m":4096,...}      and a line's end
//   parse_rows(text)        the rows of such lines
//   summarise_rows(rows)    how many have a baseline, geometric mean and least of their ratios
//
// docs/cli.md has the keys. Lines of earlier versions, which lack some of them, are read too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace kiln::measure {

// Where and with what it was measured: the same for all rows of a run.
struct BenchMachine {
  std::string arch = {};    // what the kernel was compiled for
  std::string device = {};  // "NVIDIA H200"
  int clock_mhz = 0;        // the highest
  std::string driver = {};
  std::string toolkit = {};  // NVRTC's version
  std::string version = {};  // kiln's
  std::string commit = {};   // kiln's; empty when it was not built in a repository

  friend bool operator==(const BenchMachine&, const BenchMachine&) = default;
};

// One measured problem. A field is none, empty or 0 where its figure does not exist: no baseline,
// no check, a library that says no clocks.
struct BenchRow {
  std::string suite = {};
  std::string kernel = {};
  std::optional<std::int64_t> m = {};  // of a product of matrices
  std::optional<std::int64_t> n = {};
  std::optional<std::int64_t> k = {};
  std::string shape = {};
  std::string types = {};
  std::optional<double> flops = {};  // of what is no product of matrices: its sums of products
  std::optional<std::int64_t> bytes = {};  // of its tensors, each once
  std::optional<double> tflops = {};
  std::optional<double> baseline_tflops = {};
  std::optional<double> ratio = {};   // baseline's time over ours
  std::optional<double> spread = {};  // between the quartiles of the repeats' ratios
  std::string baseline = {};          // the library, by name and version
  std::optional<double> baseline_seconds = {};
  std::string baseline_sums = {};   // how it adds 8-bit floats: "fast" or "full"
  std::string dense_baseline = {};  // of a sparse problem: the library that does the dense one
  std::optional<double> dense_ratio = {};  // its time over ours
  double seconds = 0;
  std::int64_t repeats = 0;
  std::map<std::string, std::string> defines = {};  // the choice that was made for the problem
  double compile_seconds = 0;
  std::optional<double> warm_load_seconds = {};  // from the cache
  std::optional<double> worst = {};              // the largest error over its bound
  std::optional<double> sm_mhz = {};             // median of the clock while it was measured
  std::optional<double> power_watt = {};         // median of the power while it was measured
  bool graphs = false;                           // launches were started in CUDA graphs
  // With --power: of a launch, and of 1e12 operations.
  std::optional<double> joules = {};
  std::optional<double> baseline_joules = {};
  std::optional<double> joules_per_tflop = {};
  std::optional<double> baseline_joules_per_tflop = {};
  std::string energy_source = {};  // "counter", or "power" times time
  BenchMachine machine = {};

  friend bool operator==(const BenchRow&, const BenchRow&) = default;
};

// The row as one line of JSON, its end included.
[[nodiscard]] std::string to_json(const BenchRow& row);

// The rows of a file that has one in each line; empty lines are passed over. Errors: a line that is
// no JSON object or lacks `suite`; its number is in the reason.
[[nodiscard]] Result<std::vector<BenchRow>> parse_rows(const std::string& text,
                                                       const std::string& file_name);

// The row as one line of fixed columns for people, printed as soon as it is known.
[[nodiscard]] std::string to_text(const BenchRow& row);

struct RowSummary {
  std::int64_t measured = 0;
  std::int64_t compared = 0;  // those with a ratio; without any the rest is 0
  double geometric_mean = 0;
  double least = 0;
  std::string least_shape;
};
[[nodiscard]] RowSummary summarise_rows(const std::vector<BenchRow>& rows);

// "dense: 12 problems, geometric mean 1.012, least 0.953 (M=1024,N=1024,K=1024)".
[[nodiscard]] std::string to_text(const std::string& suite, const RowSummary& summary);

// 2 m n k, or `flops`, over the seconds of one launch; none when the row has neither.
[[nodiscard]] std::optional<double> tflops_of(const BenchRow& row, double seconds);

}  // namespace kiln::measure
