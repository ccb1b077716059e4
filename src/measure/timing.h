// Timing kernels against each other: in batches, in turn, on buffers that the L2 cache has
// forgotten.
//
//   ours     1.00  1.02  0.99 ms      one batch each,
//   theirs   1.10  1.12  1.10 ms      turn and turn about
//   ratios   1.10  1.10  1.11         of neighbours: the chip's clock is the same for both
//   summary  ratio 1.10, spread 0.01
#pragma once

#include <functional>
#include <vector>

#include "runtime/gpu.h"

namespace kiln::measure {

// Starts one launch on a set of buffers; does not wait.
using Start = std::function<Result<void>(std::size_t set)>;

// Seconds of so many launches in a row, all together; set i % `sets` for launch i. Waits.
[[nodiscard]] Result<double> time_batch(runtime::Gpu& gpu, const Start& start, std::size_t sets,
                                        std::int64_t launches);

struct BatchOptions {
  std::size_t sets = 2;  // of buffers, used in turn
  int repeats = 9;
  double batch_seconds = 0.02;
  std::int64_t launches_max = 50000;  // of a batch
};

// Seconds of one launch, for each contender and repeat: [contender][repeat]. Every repeat has one
// batch of each contender, in turns that begin with another one each time. One batch of each goes
// before and is not counted.
[[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turn(
    runtime::Gpu& gpu, const std::vector<Start>& contenders, const BatchOptions& options);

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
