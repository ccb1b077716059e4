// A launch as straight code: the structured operations flattened once, with everything the host
// knows folded in. A warp is then a program counter and registers, and can stop at any instruction.
//
//   for k < K { copy ...; barrier }   =>   0 loop (exit to 4)
//                                          1 copy
//                                          2 barrier
//                                          3 next (back to 1)
//
// Divergence is a mask of lanes: `if` and `loop` push the mask and the end pops it. `break` takes
// the lanes that get there out of the masks pushed since the loop's; no instruction runs without a
// lane.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "ir/arguments.h"
#include "ir/registers.h"
#include "sim/memory.h"
#include "sim/tally.h"
#include "target/execute.h"
#include "target/fragment.h"

namespace kiln::sim {

// What an instruction does: see code.def.
enum class Code : std::uint8_t {
#define KILN_CODE(Name, ...) k##Name,
#define KILN_JUMP(Name, ...) k##Name,
#include "sim/code.def"
#undef KILN_CODE
#undef KILN_JUMP
};

struct Instruction {
  Code code = Code::kStop;
  bool hands_on = true;    // leaves something behind that a later trip of a loop may see
  std::uint32_t plan = 0;  // index in the plans of its code
  // kIf, kElse, kOnce, kInthreads, kLoop, kLeave, kRejoin: where to go with no lane left; kNext,
  // kRepeat: back.
  std::uint32_t target = 0;
  ir::OpId op;
};

// A register's content: integers and bools as `i` (u64 by its bits), floats as `f`.
union Scalar {
  std::int64_t i;
  double f;
};

// Registers are numbered by ValueId, variables by VarId.
struct ScalarPlan {
  ir::OpKind kind = ir::OpKind::kConst;
  ir::UnaryKind unary = ir::UnaryKind::kNegate;
  ir::BinaryKind binary = ir::BinaryKind::kAdd;
  DType type = DType::kF32;     // of the result
  DType operand = DType::kF32;  // of the operands (kChoose: of the two choices)
  std::uint32_t result = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  Scalar constant = {0};
  bool uniform = false;
};
struct IndexPlan {
  IndexExpr expr;
  DType type = DType::kS32;
  std::uint32_t result = 0;
};
struct BindPlan {
  std::uint32_t var = 0;
  std::uint32_t value = 0;
};
struct CellPlan {
  std::uint32_t cell = 0;
  std::uint32_t value = 0;  // the result of a get, the operand of a set
  bool sets = false;
};
// Consecutive threads of a block.
struct Participants {
  std::uint32_t first = 0;
  std::uint32_t threads = 0;
};
// What executing an Alloc does to its contents.
struct InitialisePlan {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  const Buffer* buffer = nullptr;  // shared and local
  std::uint32_t fragment = kNone;
  std::uint32_t cell = kNone;
  std::uint32_t initial = kNone;  // the register with the value; kNone: uninitialised
  Participants who;               // shared
};
struct ElementPlan {
  View view;
  std::vector<IndexExpr> index;
  // Of the block at this place in the cluster; empty: of the warp's own. `cluster`: the blocks along
  // each of its axes, the first one's next to each other.
  std::vector<IndexExpr> block = {};
  std::vector<std::int64_t> cluster = {};
  std::uint32_t value = 0;
  bool writes = false;
};
struct AtomicPlan {
  ElementPlan element;  // its value: the result's
  target::Atomic kind = target::Atomic::kAdd;
  std::uint32_t value = 0;
  std::uint32_t compare = 0;  // kCas
  std::size_t interned = 0;   // its name in the tally
};
struct CopyPlan {
  View src;
  View dst;
  std::uint32_t unit = 0;  // threads that take part, 0: all from `first` on
  std::uint32_t first = 0;
  std::uint32_t threads = 0;  // by which vectors are dealt out
  ir::CopyWay way = ir::CopyWay::kVector;
  bool grouped = false;  // waits count it
  std::vector<std::int64_t> widths;
  std::uint32_t src_guarded = 0;  // bit d: dimension d may leave the source's base
  std::uint32_t dst_guarded = 0;
  std::uint32_t src_before = 0;  // bit d: it may begin before the source's base in dimension d
  std::uint32_t dst_before = 0;
  bool tile_is_dst = true;                     // whose shape is the tile's
  std::vector<std::int64_t> permutation = {};  // as in ir::Copy; vectors are single elements then
};
// Element i is written by thread i % threads of the unit.
struct SplatPlan {
  View view;
  std::uint32_t value = 0;
  std::uint32_t unit = 0;  // 0: the block
  std::uint32_t threads = 0;
  std::uint32_t first = 0;  // thread of the unit
  std::uint32_t guarded = 0;
  std::uint32_t before = 0;  // as in CopyPlan, like those below
};
// A fragment's registers in each warp: double at offset + lane * values + value. A tile that is
// read in place has none.
struct FragmentPlan {
  std::string name;
  DType dtype = DType::kF32;
  std::uint32_t offset = 0;
  std::uint32_t values = 0;
  const target::Mma* atom = nullptr;  // null: a tile that no instruction names
  std::uint32_t lanes = kLanes;       // of the unit
};
struct Place {
  std::int32_t row = 0;
  std::int32_t col = 0;
};
struct FillPlan {
  std::uint32_t fragment = 0;
  std::uint32_t value = 0;
};
// Load and Store. `places[value * lanes + lane]` is the element in the view of each register, by
// the lane's number in the unit; with a matrix instruction `places[matrix]` is where the matrix
// begins that the unit's first warp moves, and that of each further warp is `warp_step` on.
struct TilePlan {
  View view;
  std::uint32_t fragment = 0;
  std::uint32_t lanes = kLanes;  // of the unit: 32 or 128
  const target::Copy* instruction = nullptr;
  std::size_t interned = 0;  // name of the instruction in the tally
  // A negative row: the lane leaves it to another that holds the same, or there is nothing to move.
  std::vector<Place> places;
  Place warp_step;
  std::vector<std::uint16_t> result;  // [lane * values + value]: row + 8 * column + 64 * matrix
  std::uint32_t run = 1;
  std::uint32_t wide_run = 0;  // instead where rows are aligned to so many elements; 0: never
  std::uint32_t guarded = 0;
  std::uint32_t before = 0;
  // Of the fragment's values, what is moved: all by default.
  std::uint32_t first_value = 0;
  std::uint32_t values = 0;
};
struct MmaPlan {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t metadata = kNone;  // of a sparse instruction
  const target::MmaExecutor* executor = nullptr;
  std::size_t interned = 0;
  struct Step {  // first value of the atom in each fragment
    std::uint32_t a;
    std::uint32_t b;
    std::uint32_t c;
  };
  std::vector<Step> steps;
};
// Metadata of a sparse operand: a register for each repetition along K, made of four bytes or one
// word. places[(repetition * lanes + lane) * parts + part], by the lane's number in the unit.
struct MetadataPlan {
  View view;
  std::uint32_t fragment = 0;
  std::uint32_t lanes = kLanes;
  std::uint32_t parts = 4;  // 1: words
  std::uint32_t guarded = 0;
  std::uint32_t before = 0;
  std::vector<Place> places;
};
// A tile read in place: where it begins, and the distances of its descriptor.
struct DescribePlan {
  View view;
  std::uint32_t fragment = 0;
  std::int64_t leading = 0;
  std::int64_t stride = 0;
};
// One operand of an asynchronous mma.
struct ProductOperand {
  std::uint32_t fragment = 0;
  const Buffer* buffer = nullptr;   // where it is read in place; null: in registers
  DType dtype = DType::kF16;        // of its elements in memory
  bool k_rows = false;              // the rows of its tile are K's
  std::vector<std::int64_t> steps;  // bytes, by repetition along K
};
struct ProductPlan {
  ProductOperand a;
  ProductOperand b;
  std::uint32_t c = 0;
  std::uint32_t metadata = MmaPlan::kNone;
  std::uint32_t repeats = 1;         // along K
  std::vector<std::uint32_t> parts;  // of K, by repetition
  IndexExpr adds = {};               // where it is 0, the sum begins anew
  const target::MmaExecutor* executor = nullptr;
  std::size_t interned = 0;
};
// rows[value * lanes + lane]: the row of the register in the tile.
struct ScalePlan {
  std::uint32_t c = 0;
  std::uint32_t partial = 0;
  std::uint32_t factor = 0;   // the register of the scalar
  DType dtype = DType::kF32;  // of the accumulators
  View factors;
  bool upright = true;  // [M, 1]
  std::uint32_t guarded = 0;
  std::uint32_t before = 0;
  std::uint32_t lanes = kLanes;
  std::vector<std::int32_t> rows;
};
// places[lane]: of one register of each lane.
struct PlacePlan {
  std::uint32_t row = 0;  // variables
  std::uint32_t col = 0;
  std::uint32_t lanes = kLanes;
  std::vector<Place> places = {};
  // kInside: what lies within the edge, and the fragments that each of these places is given in;
  // with places, the lanes that have one.
  Place edge = {};
  std::vector<std::uint32_t> gives = {};
};
struct RegisterPlan {
  std::uint32_t fragment = 0;
  std::uint32_t value = 0;   // of the lane's
  std::uint32_t scalar = 0;  // the result, or what is set
  bool writes = false;
};
// Whether a lane holds a value of the fragment that is not 0.
struct VotePlan {
  std::uint32_t fragment = 0;
  std::uint32_t result = 0;  // a scalar
};
// A lane's own values are put together first, value by value into target_of[value], then what the
// lanes have whose numbers differ by each of the XORs, one after the other.
struct ReducePlan {
  std::uint32_t target = 0;
  std::uint32_t source = 0;
  ir::ReduceKind kind = ir::ReduceKind::kMax;
  std::vector<std::uint32_t> target_of = {};
  std::vector<std::uint32_t> exchanges = {};
  std::uint32_t lanes = kLanes;
  std::vector<std::int32_t> index = {};  // kArgMax: [value * lanes + lane], along the dimension
  std::vector<bool> outside = {};        // the same of a padded tile: those that change nothing
  std::size_t interned = 0;              // the name of the exchange in the tally
};
// Running sums over a lane's `values`, which go on for `run` at a time, then in the lanes whose numbers
// differ by each of the XORs, then in the next block of the line.
struct ScanPlan {
  std::uint32_t target = 0;
  std::uint32_t source = 0;
  std::uint32_t run = 1;
  std::uint32_t blocks = 1;
  std::vector<std::uint32_t> values = {};
  std::vector<std::uint32_t> exchanges = {};
  std::size_t interned = 0;  // the name of the exchange in the tally
};
// source_of[value] of the source becomes each value of the target; with `quads` what those say.
struct ConvertPlan {
  std::uint32_t target = 0;
  std::uint32_t source = 0;
  std::vector<std::uint32_t> source_of;
  ir::QuadMoves quads = {};
  std::size_t interned = 0;  // the name of the exchange in the tally
};
// Elements whose bits are those of `count` others. `parts`: of each value of the fragment with the
// narrower elements, whose part it is in the other. `splits`: the target has the narrower ones.
struct RecastPlan {
  std::uint32_t target = 0;
  std::uint32_t source = 0;
  bool splits = false;
  std::vector<ir::ValuePart> parts;
};
// `slot` is counted in the event's row.
struct TriggerPlan {
  std::uint32_t event = 0;
  IndexExpr slot;
  bool cluster = false;
  ir::Arrival arrival = ir::Arrival::kThread;
  std::uint32_t unit = 0;
  std::int64_t bytes = 0;
  bool tracks = false;
  Participants who;
};
struct EventWaitPlan {
  std::uint32_t event = 0;
  IndexExpr slot;
  bool tracked = true;
  IndexExpr generation;
};
struct EventPlan {
  std::string name;
  std::uint32_t first_slot = 0;  // in the block's slots
  std::uint32_t slots = 1;
  bool ready = false;
  bool grid = false;  // one row for all blocks, which is kept as block 0's
  std::int64_t arrivals = 1;
  std::int64_t threads_each = 1;  // that the program counts where one arrives
  ir::OpId op;
};
// A copy by tensor map: boxes, each an instruction of one thread.
struct BulkPlan {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  View global;
  View shared;
  bool loads = true;               // from global to shared memory
  Coordinates extents = {};        // of the tensor map: by the buffer's dimension
  std::int64_t swizzle = 0;        // of the tensor map, in bytes
  std::vector<Coordinates> boxes;  // where each begins in the shared view
  Coordinates box = {};            // extents, by the view's dimension
  std::uint32_t unit = 0;
  Participants who;
  std::uint32_t event = kNone;
  IndexExpr slot;
  bool announces = false;
  bool multicast = false;
  bool adds = false;  // to what is in global memory
  std::size_t interned = 0;
  ir::OpId op;
};
struct BarrierPlan {
  ir::Level level = ir::Level::kBlock;
  bool cluster = false;  // of all blocks that run together
  bool grid = false;     // these are the whole grid
  std::uint32_t id = 0;
  std::uint32_t threads = 0;  // 0: all of the level's
};
struct BulkWaitPlan {
  std::int64_t pending = 0;
  bool landed = false;  // until the bytes are in global memory, rather than read
};
struct RegistersPlan {
  std::int64_t count = 0;  // of a thread
  bool increases = false;
};
struct AssertPlan {
  std::uint32_t condition = 0;
  std::string message;
};
struct PrintPlan {
  struct Value {
    std::uint32_t id = 0;
    DType dtype = DType::kS32;
  };
  std::string text;
  std::vector<Value> values;
};
// What Dumped is made of; `fragment`, `cell` or a view.
struct DumpPlan {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::size_t point = 0;
  std::uint32_t fragment = kNone;
  std::uint32_t cell = kNone;
  DType dtype = DType::kF32;
  View view = {};
  std::uint32_t unit = kLanes;     // threads
  Place shape = {};                // of a fragment
  std::vector<Place> places = {};  // [value * unit + lane]; negative: beyond the edge
};
struct EnterPlan {
  struct Axis {
    std::uint32_t var;
    IndexExpr extent;
  };
  std::vector<Axis> axes;
  std::uint32_t unit = 1;
  std::uint32_t enclosing = 1;  // threads of the unit around it
};
struct LoopPlan {
  std::uint32_t var = 0;
  IndexExpr lower;
  IndexExpr upper;
  std::int64_t step = 1;
  bool left = false;         // some lane may leave it before its last trip
  std::uint64_t inside = 0;  // trips that the loops in it make at least, in each of its own
};

// A loop without a count. `cells`: those that a trip hands on to the next one.
struct ForeverPlan {
  std::vector<std::uint32_t> cells;
};

enum class Leave : std::uint8_t { kBreak, kContinue, kYield };
struct LeavePlan {
  Leave how = Leave::kBreak;
  std::uint32_t frames = 0;  // pushed since the loop's; kYield: unused
};

// One thread of each unit: the one whose number in it is `first`.
struct OncePlan {
  std::uint32_t unit = 0;
  std::uint32_t first = 0;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<ScalarPlan> scalars;
  std::vector<IndexPlan> indices;
  std::vector<BindPlan> binds;
  std::vector<CellPlan> cells;
  std::vector<InitialisePlan> initialisations;
  std::vector<ElementPlan> elements;
  std::vector<AtomicPlan> atomics;
  std::vector<CopyPlan> copies;
  std::vector<SplatPlan> splats;
  std::vector<std::int64_t> waits;  // pending groups, of copies or of products
  std::vector<BarrierPlan> barriers;
  std::vector<TriggerPlan> triggers;
  std::vector<EventWaitPlan> event_waits;
  std::vector<EventPlan> events;
  std::vector<BulkPlan> bulk_copies;
  std::vector<BulkWaitPlan> bulk_waits;
  std::vector<RegistersPlan> registers_set;
  std::vector<Participants> regions;
  std::vector<FillPlan> fills;
  std::vector<TilePlan> tiles;
  std::vector<MmaPlan> mmas;
  std::vector<DescribePlan> descriptions;
  std::vector<MetadataPlan> metadata;
  std::vector<ScalePlan> scales;
  std::vector<PlacePlan> places;
  std::vector<RegisterPlan> registers;
  std::vector<VotePlan> votes;
  std::vector<ReducePlan> reductions;
  std::vector<ScanPlan> scans;
  std::vector<ConvertPlan> conversions;
  std::vector<RecastPlan> recasts;
  std::vector<ProductPlan> products;
  std::vector<AssertPlan> asserts;
  std::vector<PrintPlan> prints;
  std::vector<DumpPlan> dumps;
  std::vector<EnterPlan> enters;
  std::vector<OncePlan> onces;
  std::vector<LoopPlan> loops;
  std::vector<ForeverPlan> forevers;
  std::vector<LeavePlan> leaves;
  std::vector<ir::ValueId> returns;

  std::vector<FragmentPlan> fragments;
  std::uint32_t fragment_doubles = 0;
  std::deque<Buffer> buffers;  // shared and local ones; addresses stay
  std::deque<Buffer> aliases;  // of those and of global ones
  std::deque<target::MmaExecutor> executors;
  std::int64_t shared_bytes = 0;
  std::uint32_t slots = 0;       // of a block's events
  std::vector<bool> of_grid;     // by slot: one for all blocks
  std::uint32_t blocks = 1;      // of a cluster
  bool cooperative = false;      // those blocks are the whole grid
  bool reaches_blocks = false;   // threads read what is in other blocks' shared memory
  std::int64_t local_bytes = 0;  // of one lane
  std::uint32_t threads = 1;     // of a block
  std::size_t vars = 0;
  std::size_t values = 0;

  [[nodiscard]] std::uint32_t warps() const { return (threads + kLanes - 1) / kLanes; }
};

// What the host knows when it reaches the code.
struct HostState {
  VarFacts facts;
  std::vector<Buffer*> globals;  // by ValueId: parameters and allocations; null for other values
  std::vector<DumpPoint> dumps = {};
};

// Flattens the body of a launch of `threads` threads a block.
[[nodiscard]] Program flatten_launch(const ir::Function& function, ir::OpId launch,
                                     std::uint32_t threads, const HostState& host, Tally& tally);
// Flattens the host part of the function: one lane, launches are single instructions.
[[nodiscard]] Program flatten_host(const ir::Function& function, const HostState& host,
                                   Tally& tally);

}  // namespace kiln::sim
