// `kiln tune FILE.co --shape ... --over ...`: the fastest values of a file's macros for one
// problem.
//
//   combinations of --over, and of the file's attributes    200
//   legal, and fit the shape                                120     the others with their reasons, by diagnostic
//   by the cost model the best                               64     --keep
//   right, and measured in rounds                             1
//
// What the file itself has is the first candidate, which the others are compared with.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "io/assignments.h"
#include "io/attributes.h"
#include "io/console.h"
#include "io/program.h"
#include "ir/arguments.h"
#include "measure/options.h"
#include "measure/product.h"
#include "measure/tune_rounds.h"

namespace kiln::measure {

struct FileCandidate {
  std::vector<io::Assignment> values = {};            // of --over
  std::vector<io::AttributeSetting> attributes = {};  // that the file has otherwise
  std::unique_ptr<io::Program> program = {};          // compiled; null once it was dropped
  std::size_t kernel = 0;
  ir::Arguments arguments = {};         // dimensions, types and shapes; no contents
  std::string dropped = {};             // why; empty: it is in
  std::string message = {};             // the first mistake that was found
  std::optional<double> modelled = {};  // seconds

  [[nodiscard]] bool is_own() const { return values.empty() && attributes.empty(); }
  [[nodiscard]] const ir::Function& function() const { return program->decided.functions[kernel]; }
};

// "STAGES=2 TILE_N=64, [[pipeline(4)]] at line 9"; "the file's own" without any.
[[nodiscard]] std::string text(const FileCandidate& candidate);

// Seconds that a candidate takes by the model of `kiln explain`, for ranking: a few blocks are counted in the
// simulator, with sums cut short where they are long. None when the simulator cannot run it.
[[nodiscard]] std::optional<double> modelled_seconds(const FileCandidate& candidate,
                                                     const std::vector<io::Assignment>& shapes);

// What all candidates of one run compute.
struct TunedProblem {
  std::optional<reference::Einsum> einsum;  // --expect
  std::uint64_t seed = 0;
};

// Where candidates are measured: a GPU (tune_file_device.h), or a test's.
class TuneFileDevice {
 public:
  TuneFileDevice() = default;
  TuneFileDevice(const TuneFileDevice&) = delete;
  TuneFileDevice& operator=(const TuneFileDevice&) = delete;
  virtual ~TuneFileDevice() = default;

  // Makes inputs and compiles, on all cores. The candidates outlive the field. Errors: what the
  // driver says.
  [[nodiscard]] virtual Result<std::unique_ptr<TuneField>> open(
      const TunedProblem& problem, const std::vector<FileCandidate*>& candidates) = 0;
};
using OpenFileDevice = std::function<Result<std::unique_ptr<TuneFileDevice>>()>;

// The whole command; `open` is called once there is something to measure. Exits: nothing that can
// be measured or a wrong result 1, the command line 2, the environment 3.
[[nodiscard]] io::Exit tune_file(const TuneOptions& options, const OpenFileDevice& open,
                                 io::Console& console);

}  // namespace kiln::measure
