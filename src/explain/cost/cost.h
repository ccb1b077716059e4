// What a kernel costs on a GPU, worked out on the CPU: the numbers behind `kiln explain`.
//
//   sim::Outcome outcome = sim::run(module, function, arguments,
//                                   {.checks = false, .by_operation = true});
//   Explanation e = explain_kernel(module, function, arguments, outcome);
//   e.launches[0].mmas[0].issues          what the simulator counted for that statement
//   e.launches[0].occupancy.blocks        blocks an SM holds
//   e.launches[0].roofline.seconds()      no faster than this on arch.part
//
// Counts are the simulator's and nothing else's; times and occupancy follow from them by the
// columns of target::Arch. docs/explain.md says what each figure means and what is left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explain/cost/registers.h"
#include "explain/cost/work.h"
#include "explain/time/predict.h"
#include "ir/arguments.h"
#include "sim/sim.h"
#include "target/occupancy.h"

namespace kiln::explain {

// One `mma` statement.
struct MmaCost {
  Span span;
  const target::Mma* atom = nullptr;
  std::int64_t issues = 0;
  int cycles = 0;  // of each tensor core that takes part, for one issue
};

// One buffer of a block's shared memory.
struct SharedBuffer {
  Span span;
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
  std::int64_t address = 0;
  std::int64_t row_bytes = 0;
  std::int64_t swizzle = 0;  // bytes; 0: none
};

// One statement that touches memory.
struct AccessCost {
  Span span;
  std::string what;  // "copy lhs => lhs_s"
  sim::Counters counts;

  [[nodiscard]] std::int64_t wavefronts_ideal() const {
    return counts.wavefronts_shared - counts.bank_conflicts;
  }
  [[nodiscard]] std::int64_t bytes_global() const {
    return counts.bytes_global_read + counts.bytes_global_written;
  }
  // Sectors that so many bytes fill.
  [[nodiscard]] std::int64_t sectors_ideal() const;
};

// One statement that computes.
struct WorkCost {
  Span span;
  Work work;
};

enum class Bound : std::uint8_t { kTensor, kDram, kShared, kUnit, kIssue };
[[nodiscard]] std::string_view name(Bound bound);  // "tensor cores"

// The least times of each part alone, in seconds. The kernel is not faster than the longest.
struct Roofline {
  double tensor = 0;
  double dram = 0;           // each global buffer once
  double dram_uncached = 0;  // everything the blocks ask for, as if nothing was found in L2
  double shared = 0;
  std::array<double, target::kUnits.size()> units = {};  // by target::Unit
  double issue = 0;  // the instructions of warps that are counted, each taken once

  [[nodiscard]] Bound bound() const;
  [[nodiscard]] target::Unit slowest_unit() const;
  [[nodiscard]] double of(target::Unit unit) const { return units[static_cast<std::size_t>(unit)]; }
  // Where Bound::kUnit is the bound the unit's name, else the bound's.
  [[nodiscard]] std::string_view bound_name() const;
  [[nodiscard]] double seconds() const;
};

// How the blocks are spread over the SMs of the reference part.
struct Waves {
  std::int64_t per_wave = 0;  // blocks that run at once
  std::int64_t waves = 0;     // of all launches together
  std::int64_t last = 0;      // blocks of the last wave
};

struct LaunchCost {
  ir::OpId op;
  std::string name;
  Span span;
  std::int64_t times = 0;       // the launch was executed
  std::int64_t blocks = 0;      // in all executions
  std::int64_t blocks_run = 0;  // of them in the simulator
  std::int64_t threads = 0;     // of a block
  std::vector<MmaCost> mmas;
  std::vector<SharedBuffer> buffers;  // by address
  std::int64_t shared_bytes = 0;      // of a block
  std::vector<AccessCost> accesses;
  std::vector<WorkCost> works;
  Work work;             // of all of them
  sim::Counters counts;  // of the launch
  RegisterEstimate registers;
  target::Occupancy occupancy;
  Waves waves;
  double flops = 0;               // of matrix instructions: two for each multiply-add
  std::int64_t bytes_global = 0;  // that the blocks ask for
  std::int64_t bytes_once = 0;    // of the buffers touched, read and written counted apart
  std::int64_t bytes_read_once = 0;
  double bytes_from_dram = 0;  // read, by which tiles are worked on at once (reuse.h); 0: not known
  Roofline roofline;
  std::optional<Prediction> predicted;  // of launches that were traced

  // Flops for each byte that the blocks ask for; 0 without any.
  [[nodiscard]] double intensity() const;
};

// A launch as it would be with another attribute, and how long the kernel then takes by the model.
struct Trial {
  std::string attribute;  // "[[pipeline(4, producer)]]"
  Span span;              // in front of this statement
  double seconds = 0;
};

// How much is worked out: without Prediction::gains it takes a tenth of the time.
enum class Detail : std::uint8_t { kTime, kBounds };

// Registers of a thread that compiled kernels take, by LaunchCost::name.
using CompiledRegisters = std::map<std::string, int>;

// What is to be worked out, and from what beside counts.
struct Known {
  Detail detail = Detail::kBounds;
  CompiledRegisters registers = {};  // of a kernel that is not there they are estimated
};

struct Explanation {
  const target::Arch* arch = nullptr;
  std::string kernel;
  std::vector<std::pair<std::string, std::int64_t>> shape;
  bool shape_assumed = false;
  std::vector<LaunchCost> launches;  // in program order; those never executed are left out
  std::vector<Trial> trials;         // best first

  // The trial that pays most; null where none does.
  [[nodiscard]] const Trial* best() const;
  // Of all launches; none where one has no prediction.
  [[nodiscard]] std::optional<double> predicted_seconds() const;
};

// `outcome` has counts by operation, of the function of the decided module with these arguments.
[[nodiscard]] Explanation explain_kernel(const ir::Module& module, const ir::Function& function,
                                         const ir::Arguments& arguments,
                                         const sim::Outcome& outcome, const Known& known = {});

}  // namespace kiln::explain
