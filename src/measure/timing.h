// Timing kernels against each other: in batches, in turn, on buffers that the L2 cache has
// forgotten.
//
//   ours     1.00  1.02  0.99 ms      one batch each,
//   theirs   1.10  1.12  1.10 ms      turn and turn about
//   ratios   1.10  1.10  1.11         of neighbours: the chip's clock is the same for both
//   summary  ratio 1.10, spread 0.01
//
// Launches of the same kernel, which are not timed, stand before each batch: it begins neither with
// the instruction cache nor with the L2 and the clock that another kernel has left.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/gpu.h"

namespace kiln::measure {

// Starts one launch on a set of buffers; does not wait. Null is the default stream.
using Start = std::function<Result<void>(std::size_t set, runtime::cuda::Stream stream)>;

struct Contender {
  std::string name;  // for messages
  Start start;
};

// So many starts in a row, with buffers used in turn.
struct Batch {
  Start start = {};
  std::size_t sets = 1;     // set i % `sets` for start i, those before counted too
  std::int64_t starts = 0;  // that are timed
  // In front of them, and not timed: they bring the clock to where this kernel has it.
  std::int64_t before = 0;
  std::int64_t launches = 1;  // of one start: more where it is a graph

  [[nodiscard]] double seconds_of_one(double all) const {
    return all / static_cast<double>(starts) / static_cast<double>(launches);
  }
};

// Seconds of the starts that are timed, all together. Waits.
[[nodiscard]] Result<double> time_batch(runtime::Gpu& gpu, const Batch& batch);

struct BatchOptions {
  std::size_t sets = 2;  // of buffers, used in turn
  int repeats = 9;
  double batch_seconds = 0.02;
  std::int64_t launches_max = 50000;  // of a batch
  bool graphs = false;  // a start is a graph of launches, at most kGraphLaunches or one of each set
};
inline constexpr std::int64_t kGraphLaunches = 1024;

// A batch of each contender, as long as the options say; runs each at least once. Errors: what the
// driver says; with graphs, a contender that cannot be captured, by its name.
[[nodiscard]] Result<std::vector<Batch>> make_batches(runtime::Gpu& gpu,
                                                      const std::vector<Contender>& contenders,
                                                      const BatchOptions& options);

// Seconds of one launch, for each batch and repeat: [batch][repeat]. Every repeat has each batch once,
// in turns that begin with another one each time.
[[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turn(
    runtime::Gpu& gpu, const std::vector<Batch>& batches, int repeats);
[[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turn(
    runtime::Gpu& gpu, const std::vector<Contender>& contenders, const BatchOptions& options);

// The median of at least one value; the mean of the middle two when their number is even.
[[nodiscard]] double median(std::vector<double> values);
// The distance from the first quartile to the third; quartiles between two values are interpolated.
[[nodiscard]] double interquartile(std::vector<double> values);

struct Summary {
  double ours = 0;  // median seconds of a launch
  double theirs = 0;
  double ratio = 0;   // the median of theirs over ours: above 1 ours is faster
  double spread = 0;  // between the ratios' quartiles
};

// Sums up the times of two contenders, ours and theirs by repeat: both are of one length.
[[nodiscard]] Summary summarise(const std::vector<double>& ours, const std::vector<double>& theirs);

// How many sets of buffers of `bytes` each it takes until twice the L2 cache was touched: at least
// 2, and no more than what is sensible to make for tiny problems.
[[nodiscard]] std::size_t rotating_sets(std::int64_t bytes, std::int64_t l2_bytes);

}  // namespace kiln::measure
