// The simulator: runs a decided function on the CPU at the fidelity of the programming model.
//
//   sim::Options options;
//   options.schedules = 4;                      // schedule 0 and three random interleavings
//   Result<sim::Outcome> outcome = sim::run(module, function, arguments, options);
//   outcome->count(sim::ReportKind::kRace)      // 0 for a program whose barriers suffice
//   arguments.params[2].tensor                  // the output, as schedule 0 computed it
//
// Shared memory is bytes at real, swizzled addresses; fragments live in lanes' registers by their
// instructions' maps; every byte that can be written has a shadow that knows who touched it last
// and under which vector clock, so that a missing barrier is found in any order of execution.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/arguments.h"
#include "ir/module.h"
#include "ir/printed.h"
#include "sim/trace.h"
#include "support/memory_budget.h"
#include "support/result.h"
#include "support/steps.h"

namespace kiln::sim {

// How far a run has come.
struct Progress {
  std::int64_t schedule = 0;  // from 0
  std::int64_t schedules = 1;
  std::int64_t blocks_done = 0;  // of the launch (clusters, where it has some)
  std::int64_t blocks = 0;
  std::uint64_t steps = 0;  // of the schedule
};

// What a buffer, a register tile or a variable holds when `after` has been executed: by the first
// unit of the grid's first block that gets there, the first time; of a buffer in shared or global
// memory, when the last of its warps gets there for the first time.
struct DumpPoint {
  ir::ValueId value;
  ir::OpId after;
};

// What was held, as one table.
struct Dumped {
  struct Element {
    double value = 0;
    bool known = false;         // somebody has given it a value
    bool in_flight = false;     // by an asynchronous copy that nobody has waited for: not there yet
    std::int64_t address = -1;  // in the memory's space, in bytes; of registers: none
    std::int32_t thread = -1;   // of the block, that holds it; of memory: none
    std::int32_t number = -1;   // of the thread's elements of the tile
    std::int32_t holders = 0;   // threads that hold it
  };
  std::size_t point = 0;  // of Options::dumps
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape = {};
  std::vector<Element> elements = {};  // row-major
  std::uint32_t first_thread = 0;      // the unit: whose registers they are, or who got there first
  std::uint32_t threads = 0;
  bool pending = false;  // an asynchronous product, which nobody has waited for, still adds to it
};

struct Options {
  // How many orders of execution are tried. Schedule number i has the seed `seed + i`. Seed 0 runs
  // warps in turn, each to its next blocking point, and lands asynchronous copies as late as
  // possible; any other seed switches warps at random at every memory operation and lands copies at
  // random times. The same seed gives the same run.
  std::int64_t schedules = 1;
  std::uint64_t seed = 0;
  std::size_t reports_max = 20;     // distinct ones kept; the others are only counted
  std::size_t prints_max = 10'000;  // of what the program prints so much is kept
  bool checks = true;  // false: no shadow memory, hence no races and no uninitialised reads
  // For cost models. `by_operation` needs seed 0 and one schedule.
  bool by_operation = false;  // fill Outcome::by_operation
  // Run three blocks of each grid axis that has more than three: the first, the middle one, which
  // counts for all between the ends, and the last. Outputs are then incomplete.
  bool representative_blocks = false;
  // Compute nothing but what decides which instructions run and where they reach (ir/steering.h):
  // counts are the same, and outputs have no values. Not with `checks`.
  bool count_only = false;
  bool trace = false;                   // fill Outcome::traces; needs seed 0 and one schedule
  std::uint64_t steps_max = kStepsMax;  // of each schedule
  MemoryBudget* memory = nullptr;       // what the run may hold; null: no limit
  std::function<void(const Progress&)> progress = {};  // called now and then; may be empty
  std::vector<DumpPoint> dumps =
      {};                 // of schedule 0; of a launch in which there are any, blocks run
                          // one after the other
  std::size_t cores = 0;  // on which blocks run at the same time; 0: all that there are
};

enum class ReportKind : std::uint8_t {
  kRace,
  kDeadlock,
  kDivergence,  // a collective operation reached by part of its threads
  kUninitialised,
  kOutOfBounds,
  kMisaligned,
  kMulticast,  // of which the blocks of a cluster ask different tiles
  kAssertion,
  kDivisionByZero,
  kOverrun,     // an event whose phases run ahead of a waiter, or that gets too many arrivals
  kSteps,       // the limit on steps is reached; the run ends there
  kUnfinished,  // what a block begins and never ends: a copy on its way, a generation half arrived
};
[[nodiscard]] std::string_view name(ReportKind kind);  // "out-of-bounds"

struct Access {
  Span span;
  std::string what;  // "write of output_s[3, 4] by thread 17 (warp 0)"
};

struct Report {
  ReportKind kind = ReportKind::kRace;
  std::string message;
  std::vector<Access> accesses;     // the places concerned; of a race two, the later one last
  std::string missing;              // of a race, the missing edge: "no block barrier between them"
  std::string help;                 // one way out, legal where the accesses stand; may be empty
  std::uint64_t schedule_seed = 0;  // Options::seed that replays it in one schedule
  std::int64_t count = 0;           // how often it was seen
};

// What one run (the first schedule) did.
struct Counters {
  // Warp-wide issues by name: "m16n8k16.f16.f16", "ldmatrix.x4", "cp.async.16", "ld.global.2",
  // "st.shared.4", "barrier.block", "cp.async.wait"...
  std::map<std::string, std::int64_t> instructions;
  std::int64_t bank_conflicts = 0;     // shared memory wavefronts beyond one for each phase
  std::int64_t wavefronts_shared = 0;  // of requests and `ldmatrix`, with the conflicts
  std::int64_t requests_shared = 0;    // warp-wide accesses
  std::int64_t bytes_global_read = 0;
  std::int64_t bytes_global_written = 0;
  std::int64_t bytes_shared_read = 0;
  std::int64_t bytes_shared_written = 0;
  std::int64_t requests_global = 0;  // warp-wide accesses
  std::int64_t executions = 0;       // by warps; only of operations apart (Options::by_operation)
  std::int64_t sectors_global = 0;   // distinct 32-byte sectors of each request, summed
  std::int64_t lines_global = 0;     // distinct 128-byte lines; bulk copies have none

  void add(const Counters& other);
};

// One execution of a launch.
struct Launched {
  ir::OpId op;
  std::int64_t threads = 0;  // of a block
  std::int64_t blocks = 0;   // of the grid
  std::int64_t blocks_run = 0;
};

// Elements of an output that no operation has written.
struct Unwritten {
  std::size_t param = 0;
  std::int64_t count = 0;
  std::vector<bool> elements;  // row-major
};

struct Outcome {
  std::vector<Report> reports;
  std::int64_t reports_dropped = 0;  // sightings of reports past reports_max
  Counters counters;
  std::vector<Counters> by_operation;  // by OpId, their sum is `counters`; empty unless asked for
  std::vector<Launched> launches;      // of the first schedule, in order
  std::vector<Unwritten> unwritten;    // of the parameters that the function writes; schedule 0
  std::vector<ir::Printed> printed;    // by the program, in order; schedule 0
  std::int64_t prints_dropped = 0;     // past prints_max
  std::vector<Dumped> dumped;          // those of Options::dumps that were reached
  std::vector<BlockTrace> traces;      // of each launch the middle block (cluster), the first time
  double seconds = 0;
  std::int64_t blocks = 0;  // thread blocks run, in all schedules
  // The last report says why the run ended before the program did. Outputs are then incomplete,
  // and there is nothing about elements that were not written.
  bool gave_up = false;
  std::uint64_t steps = 0;  // instructions of warps, of the first schedule

  // Distinct reports of the kind.
  [[nodiscard]] std::int64_t count(ReportKind kind) const;
};

// Runs the host part of `function`: allocations, every launch in order, the return value. The
// module must have Form::kDecided and the caller has evaluated Function::checks and the grid
// limits. Tensors of `arguments` are updated in place and `returned` is filled, both from the first
// schedule. Errors: more memory than the budget has, arguments that do not fit the parameters.
Result<Outcome> run(const ir::Module& module, const ir::Function& function,
                    ir::Arguments& arguments, const Options& options);

}  // namespace kiln::sim
