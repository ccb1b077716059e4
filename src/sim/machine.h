// The state of a running block: its warps, its shared memory and its clocks.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ir/printed.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/shadow.h"
#include "sim/tally.h"
#include "target/descriptor.h"

namespace kiln::sim {

enum class WarpState : std::uint8_t { kReady, kWaiting, kFinished };

// One vector of an asynchronous copy on its way to shared memory.
struct AsyncVector {
  const std::byte* source = nullptr;
  std::int64_t address = 0;  // in shared memory
  std::uint8_t bytes = 0;
  std::uint8_t valid = 0;  // the rest become zero
  std::uint8_t lane = 0;
  bool moved = false;  // by registers, when the copy was started: waits count it all the same
};
// A box of a bulk copy on its way, in either direction. What it writes is settled when it lands.
struct BulkBox {
  std::uint32_t plan = 0;
  std::uint32_t box = 0;
  Coordinates origin = {};      // of the global window, by the buffer's dimension
  std::int64_t shared_row = 0;  // of the shared window, in the buffer
  std::int64_t shared_byte = 0;
  std::uint32_t block = 0;                  // of the cluster: whose shared memory
  std::uint32_t slot = 0;                   // a load: of that block's events
  std::uint32_t warp = 0;                   // a store: who started it
  std::int64_t group = 0;                   // a store: its number among the warp's
  std::uint32_t entry = TraceEntry::kNone;  // of the trace, that started it
  // A load: Warp::completed of who started it. Nobody knows of a load's end before it began.
  std::vector<Clock> completed = {};
};
// One slot of an event: an mbarrier.
struct EventSlot {
  std::int64_t completed = 0;  // generations (hardware phases) so far
  std::int64_t pending = 0;    // arrivals that the current one lacks
  std::int64_t bytes = 0;      // announced and not landed; may be below 0 for a while
  std::int64_t copies = 0;     // groups of threads' copies that have not landed
  // What the arrivals of the current generation knew (Warp::seen, `fenced`, `fenced_global` and
  // `completed` behind each other), and what those of all earlier ones had.
  std::vector<Clock> gathering;
  std::vector<Clock> released;
  LaneClocks gathering_lanes;  // of warps of which only some lanes arrived
  LaneClocks released_lanes;
  // By warp of the cluster: the last generation it has passed, plus 1, its clock then, and which of
  // its lanes.
  std::vector<std::int64_t> passed;
  std::vector<Clock> passed_at;
  std::vector<std::uint32_t> passed_lanes;
};
// What came before an asynchronous copy for some of the warp's lanes.
struct KnownAtIssue {
  std::uint32_t lanes = 0;
  std::vector<Clock> seen;
  LaneClocks of_lanes;
};
// What the lanes of a warp committed together.
struct AsyncGroup {
  std::uint32_t lanes = 0;  // whose copies have not been waited for
  std::uint16_t instruction = 0;
  std::vector<AsyncVector> vectors;
  const Buffer* source = nullptr;   // where known is not empty
  const std::byte* from = nullptr;  // within it, all that they read
  const std::byte* to = nullptr;
  std::vector<KnownAtIssue> known = {};
  std::uint32_t entry = TraceEntry::kNone;  // of the trace, that started it
};
// A group that generations of slots wait for, and its threads do not: a trigger waits for all that
// its threads have started and has not landed, also for an earlier trigger.
struct TrackedGroup {
  AsyncGroup group;
  std::uint32_t warp = 0;   // of the cluster
  std::uint32_t block = 0;  // whose slots they are
  std::vector<std::uint32_t> slots = {};
};

// An asynchronous mma between its issue and the wait for it, as one warp sees it: its share reads
// the operands at some moment in between.
struct Product {
  std::uint32_t plan = 0;
  std::uint32_t instruction = 0;
  std::uint32_t group = 0;
  bool done = false;
  bool adds = true;  // to what the accumulator holds
  target::MatrixDescriptor a;
  target::MatrixDescriptor b;
};

// The masks to go back to at the end of an `if`, `once` or loop.
struct Frame {
  std::uint32_t around = 0;     // active before it
  std::uint32_t otherwise = 0;  // of an if: the lanes of the else branch; of a loop: those that
                                // are done with the trip
  std::uint64_t changes = 0;    // of a loop without a count: Machine::changes at the trip's begin
};

// What some lanes of a warp know, and the others do not: those that have waited for an event alone.
struct LaneView {
  std::uint32_t lanes = 0;
  std::vector<Clock> clocks;  // as of Warp::seen
  LaneClocks of_lanes;
};

// One lane's knowledge.
struct Knowledge {
  const Clock* seen = nullptr;
  const Clock* fenced = nullptr;
  const Clock* fenced_global = nullptr;
  const Clock* completed = nullptr;
  const LaneClocks* lanes = nullptr;  // null when there are none
};

enum class Waiting : std::uint8_t { kBarrier, kEvent, kRegisters };

struct Warp {
  std::uint32_t index = 0;   // in its block
  std::uint32_t block = 0;   // in its cluster
  std::uint32_t number = 0;  // in the cluster
  std::uint32_t agent = 0;
  std::uint32_t exists = 0;  // lanes that have a thread
  std::uint32_t mask = 0;    // active ones
  std::uint32_t pc = 0;
  WarpState state = WarpState::kReady;
  Waiting waits = Waiting::kBarrier;  // kWaiting: for what
  BarrierPlan barrier;                // kBarrier
  std::uint32_t slot = 0;             // kEvent: of its block's
  std::int64_t phase = 0;             // kEvent: how many must have completed
  std::int64_t register_count = 0;    // of a thread
  Clock now = 0;                      // under which its lanes access memory
  // By agent, behind each other in Machine::clocks. Of the warp itself `seen` has the clock at
  // which its lanes last met: what they have done since they do not know of each other.
  Clock* seen = nullptr;
  Clock* fenced = nullptr;         // which of its writes to shared memory products may read
  Clock* fenced_global = nullptr;  // which of those to global memory bulk copies may touch
  Clock* completed = nullptr;      // which generations of events have been: by the agents of slots
  LaneClocks seen_of_lanes;
  std::vector<LaneView> views;  // of disjoint lanes, since the warp last met; usually none
  std::uint32_t group = 0;      // of products, open now
  Clock group_clock = 0;        // under which it reads
  std::vector<Frame> frames;
  std::vector<std::int64_t> vars;                  // var * 32 + lane
  std::vector<Scalar> values;                      // value * 32 + lane
  std::vector<std::int64_t> loop_upper;            // loop * 32 + lane
  std::uint64_t trips = 0;                         // of loops without a count
  std::vector<std::vector<std::int64_t>> carried;  // by such a loop: its cells at the trip's begin
  std::vector<std::uint32_t> cell_set;             // by value: lanes that have one
  std::vector<double> registers;                   // see FragmentPlan
  std::vector<bool> fragment_set;
  std::uint32_t holders = 0;   // in an apply: the lanes that it runs for, if all have come to it
  std::vector<bool> unfenced;  // by fragment: registers changed since the last fence
  std::vector<target::MatrixDescriptor> descriptors;  // by fragment, of those read in place
  std::vector<Product> products;                      // in flight, oldest first
  std::vector<std::byte> local;                       // lane * local_bytes + address
  std::vector<bool> local_set;
  std::vector<AsyncGroup> groups;     // oldest first
  std::vector<std::int64_t> awaited;  // by slot: generations that tracked waits have passed
  std::int64_t bulk_groups = 0;       // stores started
  Clock bulk_clock = 0;               // under which the next one reads and writes
  std::uint32_t bulk_lanes = 0;       // that have started stores
  OwnStores waited;                   // what those lanes know, and the others not yet
  std::vector<std::vector<AsyncVector>>
      spare;  // for groups to come, so that none is allocated twice

  [[nodiscard]] Scalar& value(std::uint32_t id, std::uint32_t lane) {
    return values[std::size_t{id} * kLanes + lane];
  }
  [[nodiscard]] std::int64_t& var(std::uint32_t id, std::uint32_t lane) {
    return vars[std::size_t{id} * kLanes + lane];
  }
  [[nodiscard]] std::uint32_t first_lane() const {
    return mask == 0 ? 0 : static_cast<std::uint32_t>(__builtin_ctz(mask));
  }
  [[nodiscard]] bool whole() const { return mask == exists; }
};

// Calls `visit(lane)` for each set bit.
template <class Visit>
void for_each_lane(std::uint32_t mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(__builtin_ctz(mask)));
}

// Of an address space.
struct ByteRange {
  std::int64_t address = 0;
  std::int64_t bytes = 0;
};

// Collects what is printed.
struct Printing {
  std::int64_t phase = 0;  // see ir::Printed
  std::size_t most = 0;    // so many are kept
  std::vector<ir::Printed> printed;
  std::int64_t dropped = 0;
};

// Collects what is held at DumpPoints: warps of one unit each add what they hold.
struct Dumping {
  std::vector<Dumped> dumped;
  std::vector<std::uint32_t> told;  // by Dumped: the unit's warps that have told theirs
};

class Tracer;
class Counting;

// What the blocks of a cluster ask by multicasts to one place: each fetches a part of what has to be one tile.
struct Multicasts {
  struct Asked {
    std::uint32_t block = 0;
    const Buffer* buffer = nullptr;
    Coordinates from = {};
    std::uint32_t slot = 0;
    [[nodiscard]] bool is_as(const Asked& other) const {
      return buffer == other.buffer && from == other.from && slot == other.slot;
    }
  };
  std::deque<Asked> asked;                // by the first block that came, from the oldest on
  std::uint64_t oldest = 0;               // that not all blocks have come to
  std::vector<std::uint64_t> times = {};  // by block: how often it has come
};

struct Machine {
  Machine(const ir::Function& f, const Program& p, Reporter& r, Tally& t, bool c)
      : function(f), program(p), reporter(r), tally(t), checks(c) {}

  const ir::Function& function;
  const Program& program;
  Reporter& reporter;
  Tally& tally;
  bool checks;

  // Schedules. Zero: warps in turn, copies land when waited for.
  std::uint64_t random_state = 0;
  bool random = false;

  // Limits. See limits.cpp.
  // Progress is told every so many steps. None left is a multiple of it too, so a step asks once.
  static constexpr std::uint64_t kStepsWatched = 1 << 18;
  std::uint64_t steps_max = 0;
  std::uint64_t steps_left = 0;
  std::uint64_t changes = 0;                 // counts what a later trip of a loop may see
  bool gave_up = false;                      // the run ends here, unfinished
  std::function<void(std::uint64_t)> watch;  // told the steps left, now and then; may be empty

  // The block.
  Agents agents;
  std::vector<std::vector<std::byte>> shared;           // by block of the cluster
  std::vector<std::unique_ptr<Shadow>> shared_shadows;  // by block; none without checks
  std::vector<Shadow*> global_shadows;                  // by Buffer::watched
  std::vector<Warp> warps;                              // of the cluster, block after block
  Tracer* tracer = nullptr;                             // of the block; usually none
  Printing* printing = nullptr;                         // where anybody reads it
  Dumping* dumping = nullptr;                           // where anybody asked for it
  Counting* counting = nullptr;                         // where only counts matter; usually none
  std::uint64_t votes = 0;                              // that warps have held there
  const Warp* running = nullptr;  // by run_warp; its counter is at what it executes
  std::vector<Clock> clocks;      // warp * knowledge() + agent, four times over
  std::vector<EventSlot> slots;   // block * agents.slots + slot
  std::deque<BulkBox> boxes;      // on their way, oldest first
  std::map<std::pair<const Buffer*, Coordinates>, Multicasts> multicasts;  // by where they go
  std::deque<TrackedGroup> tracked;                                        // the same
  std::int64_t registers_at_start = 0;                                     // of a thread
  std::vector<std::int64_t> free_registers;  // by block: given away, and not taken
  Era* era = nullptr;
  struct BlockStart {
    Clock clock;
    std::int64_t block;
  };
  std::vector<BlockStart> block_starts;     // of the launch's blocks so far
  std::vector<std::int64_t> block_numbers;  // by block of the cluster: its number in the grid
  std::vector<Clock> joined;                // scratch, as all below
  Request global_request;
  Request shared_request;
  std::vector<ByteRange> ranges;
  std::vector<ByteRange> global_ranges;
  std::vector<double> a_scratch;
  std::vector<double> b_scratch;
  std::vector<double> c_scratch;

  // How many clocks say what a warp knows.
  [[nodiscard]] std::size_t knowledge() const { return std::size_t{4} * agents.count(); }
  // Where among these those of Warp::completed begin.
  [[nodiscard]] std::size_t completions() const { return std::size_t{3} * agents.count(); }
  [[nodiscard]] EventSlot& slot(std::uint32_t block, std::uint32_t slot) {
    return slots[std::size_t{home(block, slot)} * agents.slots + slot];
  }
  // The block whose slot it is: of what all blocks share, the first.
  [[nodiscard]] std::uint32_t home(std::uint32_t block, std::uint32_t slot) const {
    return program.of_grid[slot] ? 0 : block;
  }
  [[nodiscard]] std::uint64_t next_random() {  // splitmix64
    std::uint64_t z = (random_state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  [[nodiscard]] Span span(std::size_t instruction) const {
    return function.ops[program.code[instruction].op].span;
  }
};

// --- what instructions do; one function for each code, in the file named

void execute_scalar(Machine& machine, Warp& warp, const ScalarPlan& plan);  // scalar.cpp
void execute_index(Machine& machine, Warp& warp, const IndexPlan& plan);
void execute_bind(Machine& machine, Warp& warp, const BindPlan& plan);
void execute_cell(Machine& machine, Warp& warp, const CellPlan& plan);
void execute_assert(Machine& machine, Warp& warp, const AssertPlan& plan);
void execute_print(Machine& machine, Warp& warp, const PrintPlan& plan);
void execute_dump(Machine& machine, Warp& warp, const DumpPlan& plan);              // dump.cpp
void execute_initialise(Machine& machine, Warp& warp, const InitialisePlan& plan);  // element.cpp
void execute_element(Machine& machine, Warp& warp, const ElementPlan& plan);
void execute_atomic(Machine& machine, Warp& warp, const AtomicPlan& plan);  // atomic.cpp
void execute_copy(Machine& machine, Warp& warp, const CopyPlan& plan);      // copy.cpp
void execute_copy_wait(Machine& machine, Warp& warp, std::int64_t pending);
// The slot's generation waits for what the warp's active lanes have started.
void track_copies(Machine& machine, Warp& warp, std::uint32_t slot);
void land_tracked(Machine& machine, std::size_t index);
void execute_splat(Machine& machine, Warp& warp, const SplatPlan& plan);  // splat.cpp
void execute_fill(Machine& machine, Warp& warp, const FillPlan& plan);    // matrix.cpp
void execute_load(Machine& machine, Warp& warp, const TilePlan& plan);
void execute_mma(Machine& machine, Warp& warp, const MmaPlan& plan);
void execute_store(Machine& machine, Warp& warp, const TilePlan& plan);
void execute_load_metadata(Machine& machine, Warp& warp, const MetadataPlan& plan);
void execute_scale(Machine& machine, Warp& warp, const ScalePlan& plan);
void execute_place(Warp& warp, const PlacePlan& plan);
void execute_reduce(Machine& machine, Warp& warp, const ReducePlan& plan);
void execute_vote(Machine& machine, Warp& warp, const VotePlan& plan);
void execute_scan(Machine& machine, Warp& warp, const ScanPlan& plan);
void execute_convert(Machine& machine, Warp& warp, const ConvertPlan& plan);
void execute_recast(Machine& machine, Warp& warp, const RecastPlan& plan);
void execute_register(Machine& machine, Warp& warp, const RegisterPlan& plan);
void execute_describe(Machine& machine, Warp& warp, const DescribePlan& plan);  // product.cpp
void execute_product(Machine& machine, Warp& warp, std::uint32_t plan);
void execute_mma_fence(Machine& machine, Warp& warp);
void execute_mma_commit(Machine& machine, Warp& warp);
void execute_mma_wait(Machine& machine, Warp& warp, std::int64_t pending);
void execute_proxy_fence(Machine& machine, Warp& warp, bool global);
void execute_trigger(Machine& machine, Warp& warp, const TriggerPlan& plan);  // event.cpp
// Whether the warp may go on; else it waits, and comes back to the instruction.
[[nodiscard]] bool execute_event_wait(Machine& machine, Warp& warp, const EventWaitPlan& plan);
// Completes the slot's generation if nothing is missing, and wakes who waits for it.
void settle(Machine& machine, std::uint32_t block, std::uint32_t slot);
void start_events(Machine& machine);
// What the block leaves behind at its end: generations begun, copies nobody waited for.
void check_events_at_end(Machine& machine);
// "`full[1]`", and what its current generation lacks.
[[nodiscard]] std::string slot_text(const Machine& machine, std::uint32_t slot);
[[nodiscard]] std::string lacks_text(const Machine& machine, std::uint32_t block,
                                     std::uint32_t slot);
// What the lanes of a warp know of each other and of others.  knowledge.cpp
[[nodiscard]] const LaneView* view_of(const Warp& warp, std::uint32_t lane);  // may be null
// What one lane knows.
[[nodiscard]] inline Knowledge knowledge_of(const Machine& machine, const Warp& warp,
                                            std::uint32_t lane) {
  const LaneView* view = warp.views.empty() ? nullptr : view_of(warp, lane);
  const Clock* seen = view == nullptr ? warp.seen : view->clocks.data();
  const LaneClocks& lanes = view == nullptr ? warp.seen_of_lanes : view->of_lanes;
  const std::size_t agents = machine.agents.count();
  return {seen, seen + agents, seen + 2 * agents, seen + 3 * agents,
          lanes.empty() ? nullptr : &lanes};
}
void add(LaneClocks& known, LaneClock more);
// The active lanes learn what the slot has released.
void take_over(const Machine& machine, Warp& warp, const EventSlot& slot);
// The active lanes learn that the slot's last generation has been completed.
void learn_completed(Machine& machine, Warp& warp, std::uint32_t slot);
// These active lanes say to the slot what they know and have done, under the clock before `now`.
void pass_on(const Machine& machine, const Warp& warp, std::uint32_t lanes, EventSlot& slot);
// The warp's lanes meet: what one knows or has done, all know.
void bring_together(const Machine& machine, Warp& warp);
// Calls `visit(seen)` for the clocks of the warp and those of lanes that know more.
template <class Visit>
void for_each_view(Warp& warp, Visit&& visit) {
  visit(warp.seen);
  for (LaneView& view : warp.views) visit(view.clocks.data());
}
void execute_bulk_copy(Machine& machine, Warp& warp, std::uint32_t plan);  // bulk.cpp
void execute_bulk_wait(Machine& machine, Warp& warp, const BulkWaitPlan& plan);
// Enters into clocks as of Warp::seen which bulk stores of the warp its lanes have waited for.
void tell_waits(const Machine& machine, const Warp& warp, Clock* clocks);
// The lanes of the warp have met: what some have waited for all know.
inline void share_waits(const Machine& machine, Warp& warp) {
  if (warp.bulk_lanes != 0) tell_waits(machine, warp, warp.seen);
}
// Lands box number `index` of those on their way.
void land_box(Machine& machine, std::size_t index);
// Of a warp's active lanes those that are elected: the first participant, or the first of each
// unit.
[[nodiscard]] std::uint32_t elected_lanes(const Warp& warp, const Participants& who,
                                          std::uint32_t unit);
// Reports illegal metadata for elements that are not zero (PTX ISA: the result is undefined).
// `elements`: A's of the instruction, as MmaExecutor::run_warp takes them.
void check_metadata(Machine& machine, const Warp& warp, const target::MmaExecutor& executor,
                    std::span<const double> elements, std::span<const std::uint32_t> metadata);
// The warp's registers of metadata for repetition `k`.
[[nodiscard]] std::array<std::uint32_t, kLanes> metadata_registers(const Machine& machine,
                                                                   const Warp& warp,
                                                                   std::uint32_t fragment,
                                                                   std::uint32_t k);
// How often the instructions of an operation are issued.  tally.h has the rest of the counts
inline void count_issues(Machine& machine, const MmaPlan& plan) {
  machine.tally.issue(plan.interned, static_cast<std::int64_t>(plan.steps.size()));
}
inline void count_issues(Machine& machine, const Warp& warp, const ProductPlan& plan) {
  constexpr std::uint32_t kWarpsPerUnit = 4;  // the instruction is the warpgroup's
  if (warp.index % kWarpsPerUnit == 0) machine.tally.issue(plan.interned, plan.repeats);
}
inline void count_issues(Machine& machine, const ReducePlan& plan) {
  const FragmentPlan& target = machine.program.fragments[plan.target];
  machine.tally.issue(plan.interned,
                      static_cast<std::int64_t>(plan.exchanges.size() * target.values));
}
inline void count_issues(Machine& machine, const ScanPlan& plan) {
  const std::size_t runs = plan.values.size() / plan.run;
  machine.tally.issue(plan.interned, static_cast<std::int64_t>(plan.exchanges.size() * runs));
}
inline void count_issues(Machine& machine, const ConvertPlan& plan) {
  machine.tally.issue(plan.interned, plan.quads.shuffles());
}
// Reports a fragment without values.
void check_filled(Machine& machine, const Warp& warp, std::uint32_t fragment);
// Reports when a product in flight uses the fragment's registers.
void check_idle(Machine& machine, const Warp& warp, std::uint32_t fragment);

// Limits on what runs; each may give up.  limits.cpp
[[nodiscard]] std::vector<std::uint32_t> carried_cells(const ir::Function& function,
                                                       ir::RegionId body);
// Whether the instruction leaves something behind that a later trip of a loop may see.
[[nodiscard]] bool hands_on(Code code);
void begin_trips(Machine& machine, Warp& warp, const ForeverPlan& plan);
void end_trips(Warp& warp);
void check_trip(Machine& machine, Warp& warp, const Instruction& at);
// On entry of a counted loop, its bounds set.
void check_count(Machine& machine, Warp& warp, const LoopPlan& plan, const Instruction& at);
void run_out_of_steps(Machine& machine, Warp& warp);
// Takes steps beside that of the instruction, for one that stands for many.
void spend(Machine& machine, std::uint64_t steps);

// Runs the warp until it blocks, finishes, or (random schedules) has touched memory. Host code
// stops at a launch or return, with the program counter past it.                     warp.cpp
void run_warp(Machine& machine, Warp& warp);

// Readies warps for a block: `host` has the values of captured scalars. scheduler.cpp
void start_block(Machine& machine, const Warp& host);
// Runs all warps to their end, or reports a deadlock.
void run_block(Machine& machine);

}  // namespace kiln::sim
