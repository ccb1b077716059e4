// How much longer a launch takes because its blocks are not alike: a causal mask, tiles that do not go up in blocks.
//
//   lengthened({1, 1, 1, 3}, {.sms = 2, .resident = 2, .alone = 10, .together = 20})
//       two SMs with two blocks each: {1, 1} ends at 20, {1, 3} at 20 for the first and at 40 for the one that is left
//       alone; four blocks of 1 end at 20                                                               => 2
//
// Blocks go in order to the SM with most room, and one that ends makes room for the next. Those of an SM go on at one
// pace: as many at a time as run there, so long each takes.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::explain {

// Cycles that a block of length 1 takes, by how many an SM has at a time.
struct Pace {
  std::int64_t sms = 1;
  std::int64_t resident = 1;  // at most
  double alone = 1;
  double together = 1;  // `resident` of them
};

// The time of blocks of these lengths over that of as many blocks of length 1.
[[nodiscard]] double lengthened(const std::vector<float>& lengths, const Pace& pace);

}  // namespace kiln::explain
