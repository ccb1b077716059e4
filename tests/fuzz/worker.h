// The process in which programs are tried, one after the other, and what it says about them.
//
// It is this same program, executed anew, so that its addresses are others than those of any other
// worker. It reads orders from its standard input and writes messages to its standard output, each
// a struct; its standard error is a file, whose last lines say what stopped it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "stages.h"

namespace kiln::fuzz {

inline constexpr std::uint64_t kFromFile = ~std::uint64_t{0};

struct Order {
  std::uint64_t index = 0;  // a mutant's number, or kFromFile: the program in `order.txt`
  std::uint64_t draw = 0;   // TryOptions::draw
};

struct Message {
  enum class Kind : std::uint8_t { kStage, kDone };
  Kind kind = Kind::kStage;
  Stage stage = Stage::kCheck;  // that begins; of kDone: that failed
  bool accepted = false;
  bool ran = false;
  std::uint32_t peak_mb = 0;  // of the process since it began
  std::uint64_t index = 0;
  std::array<std::uint64_t, kStageCount> hashes = {};
  char failure[160] = {};
};

struct WorkerOptions {
  std::span<const Program> seeds;
  std::uint64_t seed = 0;
  TryOptions stages;
  std::filesystem::path scratch;  // of this worker alone
  double seconds_max = 2;         // of CPU, for `check`; clock_factor for the others
};

// How much longer than `check` a stage may take. A run that nothing limits is cut short: its
// program may be one that never ends.
[[nodiscard]] inline double clock_factor(Stage stage) {
  const bool is_counted = stage == Stage::kExplain;  // up to a million trips of a loop without end
  return stage == Stage::kCheck || (is_unlimited(stage) && !is_counted) ? 1 : 5;
}

// Serves orders until its standard input ends. Gives the exit code.
int serve(const WorkerOptions& options);

// The resident memory above which a program counts as too large, and at which a worker is ended.
inline constexpr std::uint32_t kMemoryMaxMb = 500;
inline constexpr bool kSanitized = KILN_FUZZ_SANITIZED;

}  // namespace kiln::fuzz
