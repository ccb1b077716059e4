// How the threads of a kernel are divided into consumers, which are its own, and a producer. Part of specialise.
#pragma once

#include <optional>

#include "ir/module.h"
#include "passes/copies_ahead.h"

namespace kiln::passes {

// How the kernel's threads are divided.
struct Division {
  ir::Level level = ir::Level::kGroup4;
  std::int64_t units = 1;  // consumers: so many warps or warpgroups
  [[nodiscard]] std::int64_t unit() const { return ir::threads_of(level); }
  [[nodiscard]] std::int64_t consumers() const { return units * unit(); }
};

// What the producer keeps, which computes places and no more.
inline constexpr std::int64_t kProducerRegisters = 40;

// What each consumer can have when the producer keeps few; 0: nothing is to be gained. Then the block has all of the
// multiprocessor's.
[[nodiscard]] std::int64_t consumer_registers(const target::Arch& arch, const ir::Parallel& launch,
                                              const Division& division);

// Divides the kernel; an obstacle where its program leaves no place for a producer, or the block has no room for more
// threads.
[[nodiscard]] std::optional<Obstacle> division_of(const ir::Module& module,
                                                  const ir::Function& function, ir::OpId launch,
                                                  Division& out);

}  // namespace kiln::passes
