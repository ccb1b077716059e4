// The reference interpreter's state: memories, fragments, scalars, and the instances that run.
// Internal to this folder.
//
// Slots. A value is kept once for each instance of the level where it is defined. With S slots in a
// block and N instances at the level that runs now, instance i sees the slots
// [i*S/N, (i+1)*S/N) when N <= S, and slot i*S/N when N > S; writing in the latter case first
// splits the slots into N. So an accumulator that a block filled once becomes one accumulator for
// each of the groups that use it, and keeps its contents from one entry of the groups to the next.
#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/effects.h"
#include "reference/atomic.h"
#include "reference/interpreter.h"
#include "reference/number.h"
#include "reference/outputs.h"
#include "reference/regions.h"

namespace kiln::reference {

inline constexpr std::size_t kRankMax = 8;

struct SlotRange {
  std::size_t first = 0;
  std::size_t count = 1;

  bool operator==(const SlotRange&) const = default;
};
[[nodiscard]] SlotRange slots_of(std::size_t slots, std::size_t instance, std::size_t instances);

// A root view: `slots` copies of one dense row-major array.
struct Memory {
  bool live = false;
  bool split = false;   // local memory: one slot for each instance; else one for each block
  bool global = false;  // all blocks have it
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::array<std::int64_t, kRankMax> stride{};
  std::size_t elements = 0;
  std::size_t slots = 0;
  std::vector<double> values;
  std::vector<double> errors;  // empty while all are 0
  std::vector<double> rests;   // see Number; empty while all are 0
  // By element of a slot: those that atomic operations have updated since they were set.
  std::unordered_map<std::size_t, Updated> updates;
  std::vector<bool> written;  // by element, of an output while blocks are sampled; else empty

  void create(DType type, std::vector<std::int64_t> extents, std::size_t slot_count,
              Number initial);
  [[nodiscard]] Number get(std::size_t slot, std::size_t element) const;
  void set(std::size_t slot, std::size_t element, Number number);
  [[nodiscard]] std::size_t key(std::size_t slot, std::size_t element) const {
    return slot * elements + element;
  }
  // The slot that the instance reads.
  [[nodiscard]] std::size_t slot_of(std::size_t instance, std::size_t instances) const {
    return slots <= 1 ? 0 : slots_of(slots, instance, instances).first;
  }
  void grow(std::size_t slot_count);  // see "Slots"
  void forget();                      // nothing is known of any element
};

// An element of one of them.
struct MemoryPlace {
  std::size_t slot = 0;
  std::size_t element = 0;
};

// To the bit.
[[nodiscard]] bool unchanged(const Number& a, const Number& b);

// A window evaluated for one instance: coordinate c of root dimension d is inside while
// 0 <= origin[d] + c < limit[d].
struct Window {
  Memory* memory = nullptr;
  std::int64_t offset = 0;  // of the root in the memory, in elements
  bool open = false;        // nobody knows where it begins
  std::array<std::int64_t, kRankMax> stride{};
  std::size_t rank = 0;     // of the root
  std::size_t dropped = 0;  // leading root dimensions that the view does not have
  std::array<std::int64_t, kRankMax> origin{};
  std::array<std::int64_t, kRankMax> limit{};
  std::array<std::int64_t, kRankMax> shape{};  // of the view: rank - dropped entries

  // The element's index in the memory, or none when it is outside. `index` has rank - dropped
  // entries. An alias with strides of its own may also miss the memory.
  [[nodiscard]] std::optional<std::size_t> element(const std::int64_t* index) const;
  // How many elements from there on along the last dimension, at most `count`, are inside.
  [[nodiscard]] std::size_t elements_from(const std::int64_t* index, std::int64_t count) const;

  bool operator==(const Window&) const = default;
};

// A fragment: for each slot a rows x cols matrix of running sums.
struct Fragments {
  struct Slot {
    std::vector<double> value;
    std::vector<double> magnitude;       // sum of |a||b| so far, of the finite terms
    std::vector<double> error;           // what operands and the initial value brought along
    std::vector<double> lost;            // what the instructions' roundings may have lost
    std::vector<double> peak;            // the largest magnitude on the way
    std::int64_t steps = 0;              // accumulations since the last fill or load
    std::int64_t products = 0;           // per element, since then
    double roundoff = 0;                 // the largest of the instructions used
    double exact_integers = kUnbounded;  // the least of theirs
    double spread = 1;                   // products of one step, or steps of one scaled part
    bool integral = false;               // every term is an integer
    bool clean = false;                  // every error is 0

    // One of `steps` instructions' worth of rounding more: `before` was the sum, `added` the
    // magnitudes that they added.
    struct Rounding {
      double roundoff = 0;
      double floor = 0;  // where the sum is subnormal
      double steps = 1;
      double growth = 1;  // (1 + roundoff) ^ steps: they round what was lost as well
    };
    void round(std::size_t at, double before, double added, const Rounding& by) {
      const double largest = std::fabs(before) + added + error[at];
      if (!std::isfinite(largest)) return;
      lost[at] = (lost[at] + by.steps * (by.roundoff * largest + by.floor)) * by.growth;
      peak[at] = std::max(peak[at], largest + lost[at]);
    }
  };
  ir::FragType type;
  bool narrow_words = false;  // metadata in words: of 8-bit elements
  std::vector<Slot> slots;

  void grow(std::size_t slot_count);
  // Element `index` as a number of the fragment's type: the bound of design.md 6.
  [[nodiscard]] Number get(const Slot& slot, std::size_t index) const;
  // The part of a typical sum that one step's products are (Outcome::step_share).
  [[nodiscard]] static double step_share(const Slot& slot);
  // Whether bf16 holds every sum of products (Outcome::long_sums).
  [[nodiscard]] static bool is_short(const Slot& slot);
  void forget();
  // Replaces what the slot keeps as sums by values and errors of their own; the numbers stay.
  void settle(Slot& slot) const;
};

// The values of all variables, by VarId, of one instance after the other. A tile has thousands of elements, each of
// which is an instance: such a table keeps the rows of the instances that the tile belongs to, and for each element the
// few variables that are its own.
class VarTable {
 public:
  VarTable() = default;
  // Each row of the parent `times` times, one after the other, until they are set apart.
  [[nodiscard]] static VarTable repeated(const VarTable& parent, std::size_t times);

  [[nodiscard]] std::size_t size() const { return rows_; }
  // Valid until the next row of this table is asked for.
  [[nodiscard]] std::span<const std::int64_t> operator[](std::size_t row) const {
    return times_ == 1 ? std::span(values_).subspan(row * each_, each_) : shown(row);
  }
  void set(std::size_t row, ir::VarId var, std::int64_t value) {
    std::int64_t& to = times_ == 1 ? values_[row * each_ + var.index] : own(var)[row];
    to = value;
  }
  void reserve(std::size_t rows, std::size_t each) { values_.reserve(rows * each); }
  // Not a row of the table itself.
  void add(std::span<const std::int64_t> row) {
    each_ = row.size();
    values_.insert(values_.end(), row.begin(), row.end());
    ++rows_;
  }

 private:
  struct Column {
    ir::VarId var;
    std::vector<std::int64_t> values;  // by row
  };

  std::vector<std::int64_t>& own(ir::VarId var);
  [[nodiscard]] std::span<const std::int64_t> shown(std::size_t row) const;

  std::size_t rows_ = 0;
  std::size_t each_ = 0;
  std::size_t times_ = 1;  // that each row of values_ is there
  std::vector<std::int64_t> values_;
  std::vector<Column> own_;                  // of a table of repeated rows
  mutable std::vector<std::int64_t> shown_;  // the row that was asked for last
  mutable std::size_t shown_of_ = 0;         // the row of values_ that it began as
};

// The instances of the level that runs now.
struct Frame {
  VarTable vars;
  std::vector<std::uint8_t> active;  // by instance
  // By instance: out of the innermost loop's trip, or of the loop. Empty: nobody.
  enum class Out : std::uint8_t { kNo, kOfTrip, kOfLoop };
  std::vector<Out> out = {};
  std::size_t lanes = 1;  // of each unit, one after the other: instances of `: thread`

  [[nodiscard]] std::size_t count() const { return vars.size(); }
};

class Machine {
 public:
  Machine(const ir::Function& function, const ir::Arguments& arguments, const Numerics& numerics,
          const Limits& limits, bool in_parts);
  [[nodiscard]] Outcome run();
  // Whether a region's threads could go their ways in parts.
  [[nodiscard]] bool has_parts() const { return regions_.has_parts(); }

 private:
  using Coordinates = std::array<std::int64_t, kRankMax>;

  void load_parameters();
  void collect_outputs();
  void add_output(const OutputSlot& slot);
  void watch_output(ir::ValueId value);

  // interpreter.cpp: structure and scalars
  void run_region(ir::RegionId region, Frame& frame);
  void run_op(ir::OpId id, Frame& frame);
  void run_structure(ir::OpId id, Frame& frame);
  void run_jump(const ir::Op& op, Frame& frame);
  void run_move(ir::OpId id, Frame& frame);
  void run(const ir::Bind& op, Frame& frame);
  void run(const ir::Parallel& op, Frame& frame);
  // The child's instances: each of the parent's, times the extents, the last axis fastest. And its end.
  [[nodiscard]] Frame split_frame(const Frame& parent, const std::vector<ir::VarId>& vars,
                                  const std::vector<std::int64_t>& extents);
  void run(const ir::For& op, ir::OpId id, Frame& frame);
  void run(const ir::If& op, Frame& frame);
  void run(const ir::Loop& op, ir::OpId id, Frame& frame);
  void begin_phase();
  void leave(Frame::Out how, Frame& frame);
  void yield(Frame& frame);
  // Which of `wanted` are still on their way through the loops around them and the kernel.
  [[nodiscard]] std::vector<std::uint8_t> remaining(const std::vector<std::uint8_t>& wanted,
                                                    const Frame& frame) const;
  void run(const ir::Assert& op, ir::OpId id, Frame& frame);
  void run_launch(const ir::Parallel& op, Frame& frame);
  void run_scalar(const ir::Op& op, Frame& frame);
  [[nodiscard]] Number compute(const ir::Op& op, const Frame& frame, std::size_t instance);
  [[nodiscard]] Number scalar(ir::ValueId value, const Frame& frame, std::size_t instance) const;
  void set_cell(const ir::Set& op, Frame& frame);
  [[nodiscard]] std::vector<std::uint8_t> conditions(ir::ValueId value, const Frame& frame);

  // undecided.cpp
  [[nodiscard]] bool is_open(const ir::Expr& expr) const;
  [[nodiscard]] bool is_open(const std::vector<ir::Expr>& exprs) const;
  [[nodiscard]] std::vector<std::uint8_t> undecided(ir::ValueId value, const Frame& frame);
  void forget_touched(const ir::Touch& touch, const Frame& frame,
                      const std::vector<std::uint8_t>& instances,
                      const std::set<std::uint32_t>& set_inside);
  void forget_written(ir::RegionId region, const Frame& frame,
                      const std::vector<std::uint8_t>& instances);
  void forget_trips(ir::RegionId body, const Frame& frame, bool undecided);

  // limits.cpp. Whoever gives up sets `returned_`.
  void give_up(ir::OpId at, bool endless, std::string message);
  void spend(ir::OpId at, std::size_t instances);
  void note_change(ir::OpKind kind);
  // Adds what the operation costs for so many instances to the work, and tells how far it is.
  void count_work(ir::OpId at, std::size_t instances);
  // Whether a loop of so many trips fits what is left.
  [[nodiscard]] bool check_count(ir::OpId at, std::uint64_t trips);
  // What a loop without a count hands from trip to trip: cells from outside, and all else.
  struct Trip {
    std::vector<ir::ValueId> cells;
    std::vector<Number> numbers;  // theirs
    std::uint64_t changes = 0;
  };
  [[nodiscard]] Trip trip_of(ir::RegionId body) const;
  // Whether anything has changed since the last call.
  [[nodiscard]] bool moves_on(Trip& trip) const;
  [[nodiscard]] bool afford(ir::ValueId value, double bytes);

  // meeting.cpp: regions and events
  void run(const ir::Inthreads& op, Frame& frame);
  [[nodiscard]] bool frees_the_other(const ir::If& op) const;
  void run(const ir::Trigger& op, Frame& frame);
  void run(const ir::EventWait& op, ir::OpId id, Frame& frame);
  void join_before(ir::OpId id);
  void run(const ir::Barrier& op, ir::OpId id);
  void give_up_waiting();
  void meet_parts(ir::OpId id);
  void for_all_of(std::int64_t unit, ir::ValueId dst, ir::OpId id,
                  const std::function<void()>& move);
  [[nodiscard]] std::int64_t threads_each(const Frame& frame) const;
  [[nodiscard]] Frame masked(const Team& team, const Frame& frame) const;
  [[nodiscard]] std::vector<std::int64_t> as_if(const Frame& frame, std::size_t at,
                                                std::size_t other) const;
  [[nodiscard]] std::map<std::int64_t, Arrivals> arrivals(const ir::Trigger& op,
                                                          const Frame& frame) const;

  // memory.cpp and tiles.cpp: memory and the matrix unit
  void run(const ir::Alloc& op, ir::ValueId result, Frame& frame);
  void run(const ir::Copy& op, ir::OpId id, Frame& frame);
  void run(const ir::Write& op, Frame& frame);
  void run(const ir::Splat& op, ir::OpId id, Frame& frame);
  void run(const ir::Cuda& op, ir::OpId id, Frame& frame);           // undecided.cpp
  void run(const ir::Atomic& op, ir::ValueId result, Frame& frame);  // atomic.cpp
  [[nodiscard]] UpdateOrder order_of(const Memory& memory, const Frame& frame, std::size_t i) const;
  void update(Memory& memory, MemoryPlace place, const Update& update, const UpdateOrder& order);
  void run(const ir::Fill& op, Frame& frame);
  void run(const ir::Load& op, Frame& frame);
  void run(const ir::Mma& op, ir::OpId id, Frame& frame);
  void run(const ir::Store& op, Frame& frame);
  void run(const ir::Scale& op, Frame& frame);
  void run_tile_op(ir::OpId id, Frame& frame);
  void run(const ir::Apply& op, const Frame& frame);
  void run(const ir::Reduce& op, Frame& frame);
  void run(const ir::Scan& op, Frame& frame);
  void run(const ir::Vote& op, ir::ValueId result, Frame& frame);
  void run(const ir::Convert& op, Frame& frame);
  void run(const ir::Recast& op, Frame& frame);
  // The numbers of the source's rows (columns), one after the other: `act(target slot, line,
  // numbers)`.
  template <class Act>
  void each_line(ir::ValueId frag, ir::ValueId source, std::int64_t dimension, Frame& frame,
                 Act&& act);
  [[nodiscard]] bool tells_lanes_apart(ir::RegionId body) const;
  // What a unit's lanes do together is done once: runs `act(frame)` with the first lane of each
  // unit. With every lane where the lanes of a unit are not all active, or not all alike.
  template <class Act>
  void once_a_unit(const std::vector<ir::ValueId>& frags, Frame& frame, Act&& act);
  void run(const ir::SetElement& op, Frame& frame);
  // Notes what the sums that leave an accumulator say of a comparison.
  void observe(const Fragments::Slot& sums);
  [[nodiscard]] Number element(const ir::Element& op, const Frame& frame, std::size_t instance);
  struct HeldElement {
    Fragments::Slot* slot;
    std::size_t index;
  };
  [[nodiscard]] HeldElement held(ir::ValueId frag, const Frame& frame, std::size_t instance);
  [[nodiscard]] Number read(const ir::Read& op, const Frame& frame, std::size_t instance);
  // The number among the blocks in step of the one at a place in the cluster; none: there is none.
  [[nodiscard]] std::optional<std::size_t> block_in_cluster(
      const std::vector<ir::Expr>& block, std::span<const std::int64_t> vars) const;
  struct Sides {
    Window from;
    std::size_t from_slot = 0;
    Window to;
    SlotRange to_slots;

    bool operator==(const Sides&) const = default;
  };
  // With `added` the numbers are added to the elements, in that order among others.
  void copy_tile(const Sides& sides, const std::vector<std::int64_t>& permutation,
                 const std::optional<UpdateOrder>& added);
  [[nodiscard]] Window window(ir::ValueId view, std::span<const std::int64_t> vars);
  [[nodiscard]] std::vector<std::int64_t> extents(const ir::ViewType& type,
                                                  std::span<const std::int64_t> vars) const;
  // The slots of a local memory that the instance sees, split for writing where needed.
  [[nodiscard]] SlotRange writable(Memory& memory, std::size_t instance, const Frame& frame) const;

  const ir::Function& function_;
  const ir::Arguments& arguments_;
  const Numerics& numerics_;
  Outcome outcome_;
  bool returned_ = false;
  std::optional<Number> returned_number_;  // of a function that returns one
  const Limits& limits_;
  std::uint64_t steps_ = 0;
  std::vector<ir::ValueId> outputs_;                // what output_slots names
  std::map<ir::OpId, std::uint64_t> trips_inside_;  // by loop: least_trips, at least 1
  std::uint64_t changes_ = 0;
  std::uint64_t launches_ = 0;
  std::int64_t cluster_blocks_ = 1;         // of one, whether or not they run in step
  std::vector<std::int64_t> cluster_ = {};  // blocks along each of its axes
  std::size_t together_ = 1;                // blocks that run in step, since they meet
  std::uint64_t phase_ = 0;  // of the block: what it does in one comes behind all of the last one
  MemoryHold hold_;
  std::vector<double> charged_;  // bytes, by ValueId
  // Of tables that are no longer needed; they are large, and the system is slow to give memory.
  std::vector<std::uint8_t> yielded_;  // by instance of the finest level that has; empty: nobody
  // By ValueId.
  std::vector<Memory> memories_;
  std::vector<Fragments> fragments_;
  std::vector<std::vector<Number>> scalars_;  // scalars and cells
  std::vector<std::optional<ir::ResolvedView>> views_;
  std::set<std::uint32_t> lane_vars_;  // of `: thread`
  std::set<std::uint32_t> unit_vars_;  // of all within a block
  std::set<std::uint32_t> open_vars_;  // whose value is not known in some instance
  bool left_undecided_ = false;        // a loop or the kernel, by instances nobody can name
  ir::ValueId applied_;                // of the apply that runs, the tile it goes through
  Regions regions_;                    // last: its flows use all of the above
};

}  // namespace kiln::reference
