// The operations of the tile IR. Each is one plain struct; `fields` lists its attributes, and the
// printer, the parser and the verifier are written once, over that list. `touches` lists what the
// operation reads and writes; a row of op.def says the rest (Traits). Others ask through effects.h.
//
// Attributes come in two kinds. The first say what the program means and are set by sema. The ones
// below the line `decided` say how the hardware does it; passes fill them in, the simulator obeys
// them and the CUDA emitter spells them. The reference interpreter never reads a decided attribute.
//
//   %ma = alloc name="ma" : frag<A, f16, 16x16>
//   load frag=%ma view=%7
// and after the passes
//   %ma = alloc name="ma" atom=m16n8k16.f16.f16 : frag<A, f16, 16x16>
//   load frag=%ma view=%7 instruction=ldmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/op_cuda.h"
#include "ir/op_kinds.h"
#include "ir/op_structure.h"
#include "ir/traits.h"
#include "ir/type.h"
#include "kiln/layout.h"
#include "support/one_of.h"
#include "support/source.h"
#include "target/atomic.h"
#include "target/copy.h"
#include "target/mma.h"

namespace kiln::ir {

struct OpTag;
using OpId = Id<OpTag>;

// --- memory

// The result's type says what: a view in global (host part), shared (one per block) or local (one
// per thread) memory, a fragment (one per MMA unit) or a cell (one per thread).
struct Alloc {
  std::string name = {};             // the user's; "" for a copy's anonymous buffer
  ValueId initial = {};              // every element starts as this scalar; invalid: uninitialised
  std::int64_t swizzle_wanted = -1;  // shared: the program's `.swiz`, in bytes; -1: no wish
  // decided, shared views only: byte address of element 0 and the swizzle of the tile. The tile is
  // dense row-major; a tile row wider than the swizzle is split into column panels of `swizzle`
  // bytes (see ir/shared_layout.h); 16 has panels and no XOR. A buffer that is sized at launch has
  // no swizzle and lies `behind` bytes further on, which such buffers in front of it take.
  std::int64_t offset = -1;
  Expr behind = 0;
  std::int64_t swizzle = 0;
  // decided, fragments only: the instruction whose register layout it has, or (Role::kTile) the
  // layout itself, (lane, value) -> row + rows * column. Several lanes may hold the same elements.
  const target::Mma* atom = nullptr;
  Layout registers = {};
  // The rows and columns that `registers` deals out, where those are more than the tile has, so that
  // lanes share them evenly. What lies beyond the tile's edge is no element of it: each operation says
  // in its `touches` what it does about that. Empty: the tile's own.
  std::vector<std::int64_t> padded = {};
  static void fields(auto& s, auto&& v) {
    v("name", s.name), v("initial", s.initial), v("swizzle_wanted", s.swizzle_wanted),
        v("offset", s.offset), v("behind", s.behind), v("swizzle", s.swizzle), v("atom", s.atom),
        v("registers", s.registers), v("padded", s.padded);
  }
  static void touches(const auto& s, auto&& t) {
    if (s.initial.valid()) t({.use = Use::kStarts, .beyond = Beyond::kCarries});
  }
};

// A window onto `base`: element (i...) of the result is element (origin + i...) of the base. The
// first `drop` dimensions of the base are pinned at their origin and do not appear in the result.
// Elements that fall outside the base are outside the program: reads of them through copies are
// zero, writes are suppressed, element access is an error.
struct Subview {
  ValueId base;
  std::vector<Expr> origin;  // one per dimension of the base
  std::int64_t drop = 0;
  static void fields(auto& s, auto&& v) {
    v("base", s.base), v("origin", s.origin), v("drop", s.drop);
  }
};

// Another view of a whole buffer's memory, with a shape of its own (its type's): element (i...) is
// element offset + sum of i * strides of the buffer, counted in row-major order. Empty strides:
// row-major in the new shape. It is a root like an Alloc; resolve_view stops at it.
struct Alias {
  ValueId base;  // a parameter or an Alloc; a shared one has rows of the same length, or no swizzle
  Expr offset = 0;
  std::vector<Expr> strides = {};
  static void fields(auto& s, auto&& v) {
    v("base", s.base), v("offset", s.offset), v("strides", s.strides);
  }
};

// Copies src to dst, same rank. Elements of src outside its base read as 0; elements of dst outside
// its base are not written; where src is smaller than dst the rest of dst becomes 0. All threads of
// the `unit` take part (0: the whole block); with a local dst each thread copies for itself.
struct Copy {
  ValueId src;
  ValueId dst;
  std::int64_t unit = 0;
  bool async = false;  // the program waits by itself
  bool bulk = false;   // `tma`: the hardware moves the tile, started by one thread of the unit
  // Bulk copies to shared memory complete an event of theirs, whose bytes count: slot `slot` of
  // `event`. Other asynchronous copies have a `future`, or count for the next trigger of `event`.
  ValueId event = {};
  Expr slot = 0;
  ValueId future = {};
  // Dimension k of dst is dimension permutation[k] of src; empty: k.
  std::vector<std::int64_t> permutation = {};
  bool multicast = false;  // bulk: to the same place in every block of the cluster
  bool adds = false;       // bulk, to global memory: to what is there, each element as a whole
  Eviction eviction = Eviction::kNormal;
  std::int64_t promotion = 0;  // bulk: bytes of second-level cache lines to fetch at once; 0: none
  // decided. Vector number i of the tile (row-major, `width` bytes each) is moved by thread
  // i % threads in its step i / threads. A width w may be used when the row pitch and the base
  // address of the *global* side are multiples of w bytes; widths are listed widest first and the
  // last one always works: with kGather as vectors of 16 bytes that are cut out of aligned ones,
  // else by its own vectors. Single elements have one width, theirs. A guarded dimension is
  // compared with its limit at run time. The tile is the destination, or the source where the
  // destination is global; the other side is the far one. Vectors move between global and shared
  // memory, and straddle limits of global memory only: with a guard on a shared or local side the
  // copy moves single elements.
  CopyWay way = CopyWay::kUndecided;
  bool grouped = false;  // one of the groups of cp.async that waits count, whatever is on its way
  std::int64_t threads = 0;
  std::vector<std::int64_t> widths = {};
  std::vector<std::int64_t> guarded = {};       // dimensions that may leave the far side's base
  std::vector<std::int64_t> tile_guarded = {};  // dimensions that may leave the tile's own base
  // Dimensions in which the far side, global memory, may begin before its base: what lies there is
  // outside as well. Such a copy moves single elements, as one with `tile_guarded` does.
  std::vector<std::int64_t> before = {};
  // Dimensions in which the side's own extent is a limit, as those of its base are, because the
  // other side has another one.
  std::vector<std::int64_t> src_limited = {};
  std::vector<std::int64_t> dst_limited = {};
  // Of the block's threads the first that takes part; `threads` follow from there (unit 0).
  std::int64_t first = 0;
  // kBulk: elements of one box by dimension of the shared side; boxes tile it in row-major order.
  // Each box is one instruction. With `multicast` in a cluster of n blocks, box b is sent by the
  // block whose rank is b modulo n. `announces`: the copy itself tells its event how many bytes to
  // expect; else a trigger does (Trigger::bytes).
  std::vector<std::int64_t> box = {};
  bool announces = false;
  static void fields(auto& s, auto&& v) {
    v("src", s.src), v("dst", s.dst), v("unit", s.unit), v("async", s.async), v("bulk", s.bulk),
        v("event", s.event), v("slot", s.slot), v("future", s.future),
        v("permutation", s.permutation), v("multicast", s.multicast), v("adds", s.adds),
        v("eviction", s.eviction), v("promotion", s.promotion), v("way", s.way),
        v("grouped", s.grouped), v("threads", s.threads), v("widths", s.widths),
        v("guarded", s.guarded), v("tile_guarded", s.tile_guarded), v("before", s.before),
        v("src_limited", s.src_limited), v("dst_limited", s.dst_limited), v("first", s.first),
        v("box", s.box), v("announces", s.announces);
  }
  static void touches(const auto& s, auto&& t) {
    const Proxy proxy = s.bulk ? Proxy::kAsync : Proxy::kGeneric;
    const bool late = s.bulk || s.grouped;
    t({.value = s.src, .proxy = proxy, .asynchronous = late, .label = s.label()});
    t({.value = s.dst,
       .use = s.adds ? Use::kUpdates : Use::kWrites,
       .proxy = proxy,
       .atomic = s.adds,
       .commutes = s.adds ? std::optional(target::Atomic::kAdd) : std::nullopt,
       .asynchronous = late,
       .label = s.label()});
  }
  // What the program waits for when it waits for the copy: its future, or the event it counts for.
  [[nodiscard]] ValueId label() const { return future.valid() ? future : event; }
};

// This thread's cp.async copies have landed, but for the `pending` youngest (count-copies).
struct CopyWait {
  std::int64_t pending = 0;
  static void fields(auto& s, auto&& v) { v("pending", s.pending); }
};

// All threads of the unit wait for each other, and see each other's memory. kThread is illegal.
// Inside an `inthreads` region kBlock means its threads: then `id` is the region's named barrier
// and `threads` says how many.
struct Barrier {
  Level level = Level::kBlock;
  bool inferred = false;  // inserted by place-barriers, not written by the user
  bool cluster = false;   // of all blocks of the cluster
  bool grid = false;      // of all blocks of the launch, which is cooperative
  // decided
  std::int64_t id = 0;
  std::int64_t threads = 0;  // 0: all of the level's
  static void fields(auto& s, auto&& v) {
    v("level", s.level), v("inferred", s.inferred), v("cluster", s.cluster), v("grid", s.grid),
        v("id", s.id), v("threads", s.threads);
  }
};

struct Read {
  ValueId view;
  std::vector<Expr> index;
  // Shared memory: of the block at this place in the cluster, one number for each of its axes; empty:
  // of the thread's own.
  std::vector<Expr> block = {};
  static void fields(auto& s, auto&& v) {
    v("view", s.view), v("index", s.index), v("block", s.block);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.view, .index = &s.index, .of_any_block = !s.block.empty()});
  }
};
struct Write {
  ValueId view;
  std::vector<Expr> index;
  ValueId value;  // of the view's element type
  static void fields(auto& s, auto&& v) {
    v("view", s.view), v("index", s.index), v("value", s.value);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.view, .use = Use::kWrites, .index = &s.index});
  }
};

// Makes a new content of one element's old one, the result, as a whole: of two of an element one
// happens before the other, nobody knows which. They order nothing else.
struct Atomic {
  target::Atomic kind = target::Atomic::kAdd;
  ValueId view;  // in shared or global memory
  std::vector<Expr> index;
  ValueId value;         // of the view's element type
  ValueId compare = {};  // kCas: the old content that is replaced
  bool unused = false;   // nobody looks at the result
  static void fields(auto& s, auto&& v) {
    v("kind", s.kind), v("view", s.view), v("index", s.index), v("value", s.value),
        v("compare", s.compare), v("unused", s.unused);
  }
  static void touches(const auto& s, auto&& t) { t(s.touch()); }
  [[nodiscard]] Touch touch() const;
};

// All threads of the unit (0: block or region) write the scalar to every element of the view.
struct Splat {
  ValueId view;
  ValueId value;
  std::int64_t unit = 0;
  // decided, as in Copy
  std::int64_t threads = 0;
  std::int64_t first = 0;
  std::vector<std::int64_t> guarded = {};
  std::vector<std::int64_t> before = {};
  static void fields(auto& s, auto&& v) {
    v("view", s.view), v("value", s.value), v("unit", s.unit), v("threads", s.threads),
        v("first", s.first), v("guarded", s.guarded), v("before", s.before);
  }
  static void touches(const auto& s, auto&& t) { t({.value = s.view, .use = Use::kWrites}); }
};

// --- meeting

// A row of events (its type says how many), of each block or (`grid`) of the cooperative launch. A
// generation is complete once its arrivals have happened and its bytes landed, `ready`: 0 from the
// start. A slot is an mbarrier, phase p generation p (ready: p + 1); `grid`: a number of arrivals.
struct Event {
  std::string name = {};
  bool ready = false;
  bool grid = false;
  std::int64_t stated = 0;  // `event<n>`: arrivals of a generation; 0: inferred
  // decided: arrivals of a generation (`grid`, inferred: by a block), address of slot 0 (8 bytes each)
  std::int64_t arrivals = 0;
  std::int64_t offset = -1;
  static void fields(auto& s, auto&& v) {
    v("name", s.name), v("ready", s.ready), v("grid", s.grid), v("stated", s.stated),
        v("arrivals", s.arrivals), v("offset", s.offset);
  }
};

// The threads that execute it have finished what they did before: completes the slot's generation
// once all triggering threads have come. `cluster`: on the copies of every block of the cluster.
struct Trigger {
  ValueId event;
  Expr slot = 0;
  bool cluster = false;
  // decided. `unit`: kElected arrives once for each unit of so many threads (0: all that execute
  // it). `bytes`: the arrival announces so many bytes of bulk copies. `tracks`: the generation also
  // waits for the copies (cp.async) that the threads have started so far, and they do not.
  Arrival arrival = Arrival::kUndecided;
  std::int64_t unit = 0;
  std::int64_t bytes = 0;
  bool tracks = false;
  static void fields(auto& s, auto&& v) {
    v("event", s.event), v("slot", s.slot), v("cluster", s.cluster), v("arrival", s.arrival),
        v("unit", s.unit), v("bytes", s.bytes), v("tracks", s.tracks);
  }
};

// Waits until a generation of the slot is complete. `tracked`: the generation after the one this
// thread waited for last on this slot, from 0; else `generation`.
struct EventWait {
  ValueId event;
  Expr slot = 0;
  bool tracked = true;
  Expr generation = 0;
  static void fields(auto& s, auto&& v) {
    v("event", s.event), v("slot", s.slot), v("tracked", s.tracked), v("generation", s.generation);
  }
};

// A name for copies that threads issue asynchronously (cp.async), in the order they are issued.
// FutureWait: the last copy issued under the name (as it stands after exchanges) has landed, and all
// threads of the unit see it. count-copies makes a copy_wait of it and drops exchanges.
struct Future {
  std::string name = {};
  static void fields(auto& s, auto&& v) { v("name", s.name); }
};
struct FutureWait {
  ValueId future;
  static void fields(auto& s, auto&& v) { v("future", s.future); }
};
// The two names change places.
struct Exchange {
  ValueId first;
  ValueId second;
  static void fields(auto& s, auto&& v) { v("first", s.first), v("second", s.second); }
};

// All but the `pending` youngest bulk copies to global memory that this thread started have
// finished reading shared memory, or (`landed`) are visible in global memory. Each copy is a group.
// An `inferred` one follows its copy, and delay-bulk-waits moves it to where the wait is needed.
struct BulkWait {
  std::int64_t pending = 0;
  bool landed = false;
  bool inferred = false;
  static void fields(auto& s, auto&& v) {
    v("pending", s.pending), v("landed", s.landed), v("inferred", s.inferred);
  }
};

// `setmaxnreg`: each thread of the warpgroup has `count` registers from here on.
struct Registers {
  std::int64_t count = 0;
  bool increases = false;
  static void fields(auto& s, auto&& v) { v("count", s.count), v("increases", s.increases); }
};

// --- matrix unit

struct Fill {
  ValueId frag;
  ValueId value;  // scalar of the fragment's element type
  // decided: no instruction does it, for the product behind it begins the sum (Mma::adds).
  bool implied = false;
  static void fields(auto& s, auto&& v) {
    v("frag", s.frag), v("value", s.value), v("implied", s.implied);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kCarries});
  }
};

struct Load {
  ValueId frag;
  ValueId view;               // constant shape, rank 2
  Major major = Major::kRow;  // kRow: the view's last dimension is the contraction, kCol: its first
  bool to_registers = false;  // the program asked for it (`mma.load.frag`)
  // decided. With ldmatrix, `matrices` lists the (row, column) of each 8x8 matrix in register
  // order, and every issue of the instruction takes as many of them as it has; those of a
  // warpgroup are its first warp's, and each further warp's lie `warp_step` (rows, columns) on.
  // Null: one plain load of `element_run` consecutive elements per register group, or of `wide_run`,
  // if that is not 0, where rows begin at multiples of so many at run time. With `in_shared`
  // nothing moves: the fragment stands for the view's place in shared memory, as a matrix
  // descriptor with these distances in bytes (target/descriptor.h), which the `mma` reads.
  const target::Copy* instruction = nullptr;
  std::vector<std::int64_t> matrices = {};
  std::vector<std::int64_t> warp_step = {};
  std::int64_t element_run = 0;
  std::int64_t wide_run = 0;
  // As in Copy; outside the limits a plain load gives 0. No run of elements begins before the view's
  // base and ends in it.
  std::vector<std::int64_t> guarded = {};
  std::vector<std::int64_t> before = {};
  bool in_shared = false;
  std::int64_t leading = 0;
  std::int64_t stride = 0;
  static void fields(auto& s, auto&& v) {
    v("frag", s.frag), v("view", s.view), v("major", s.major), v("to_registers", s.to_registers),
        v("instruction", s.instruction), v("matrices", s.matrices), v("warp_step", s.warp_step),
        v("element_run", s.element_run), v("wide_run", s.wide_run), v("guarded", s.guarded),
        v("before", s.before), v("in_shared", s.in_shared), v("leading", s.leading),
        v("stride", s.stride);
  }
  static void touches(const auto& s, auto&& t) {
    if (!s.in_shared) t({.value = s.view});
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kSkips});
  }
};

// c += a x b, where `kRow` says that a row of the operand's view is a contraction vector:
// row.row = A[m,k] B[n,k], row.col = A[m,k] B[k,n].
struct Mma {
  ValueId c;
  ValueId a;
  ValueId b;
  ValueId metadata = {};  // valid: A holds the kept half of K, and this says which (`.sp`)
  Major a_major = Major::kRow;
  Major b_major = Major::kRow;
  Level unit = Level::kGroup;            // who executes it together: kGroup or kGroup4
  std::vector<std::int64_t> order = {};  // repetition -> part of K; empty: in their order
  // decided: the instruction, and how often it is repeated along M, N and K; for an operand in
  // shared memory, by repetition along K, the bytes from the descriptor's start to its tile.
  const target::Mma* atom = nullptr;
  std::vector<std::int64_t> repeats = {};
  std::vector<std::int64_t> a_steps = {};
  std::vector<std::int64_t> b_steps = {};
  // Where this is 0 it begins the sum: c = a x b, whatever c held. It is 1, 0, or what the variable of the
  // loop that it stands in is above that loop's lower bound.
  Expr adds = 1;
  static void fields(auto& s, auto&& v) {
    v("c", s.c), v("a", s.a), v("b", s.b), v("metadata", s.metadata), v("a_major", s.a_major),
        v("b_major", s.b_major), v("unit", s.unit), v("order", s.order), v("atom", s.atom),
        v("repeats", s.repeats), v("a_steps", s.a_steps), v("b_steps", s.b_steps),
        v("adds", s.adds);
  }
  // An operand that stands for a place in shared memory is read there.
  static void touches(const auto& s, auto&& t) {
    const bool late = s.is_asynchronous();
    const Proxy proxy = late ? Proxy::kAsync : Proxy::kGeneric;
    for (const ValueId operand : {s.a, s.b, s.metadata}) {
      if (operand.valid()) t({.value = operand, .proxy = proxy, .asynchronous = late});
    }
    const Use use = s.adds.is(0) ? Use::kWrites : Use::kUpdates;
    t({.value = s.c, .use = use, .proxy = proxy, .asynchronous = late});
  }
  [[nodiscard]] bool is_asynchronous() const { return atom != nullptr && atom->asynchronous; }
  [[nodiscard]] std::int64_t part(std::int64_t k) const {
    return order.empty() ? k : order[static_cast<std::size_t>(k)];
  }
};

// c += factors[m] * factor * partial, element by element in the registers of two accumulators of
// one shape, of f32 or f16. Factors are f32; their product and the sum are rounded to it, then to c's.
struct Scale {
  ValueId c;
  ValueId partial;
  ValueId factors;  // a view [M, 1] or [1, M]; elements outside it count as 0
  ValueId factor;   // a scalar
  // decided. `waits`: for the unit's products, while its threads read their factors.
  std::vector<std::int64_t> guarded = {};  // of the factors, as in Copy
  std::vector<std::int64_t> before = {};
  bool waits = false;
  static void fields(auto& s, auto&& v) {
    v("c", s.c), v("partial", s.partial), v("factors", s.factors), v("factor", s.factor),
        v("guarded", s.guarded), v("before", s.before), v("waits", s.waits);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.factors});
    t({.value = s.partial});
    t({.value = s.c, .use = Use::kUpdates});
  }
};

// The registers that the following asynchronous instructions use have their values.
struct MmaFence {
  static void fields(auto&, auto&&) {}
};

// Closes the group of asynchronous matrix instructions since the last one. `stated` by the program.
struct MmaCommit {
  bool stated = false;
  static void fields(auto& s, auto&& v) { v("stated", s.stated); }
};

// All but the `pending` youngest groups have finished: operands are read, accumulators written.
struct MmaWait {
  std::int64_t pending = 0;
  bool stated = false;
  // decided: the tile that is computed in front of it, while the products run.
  ValueId first = {};
  // decided: tiles of which a part is computed in front of it, and what needs that part behind it. A lane's values number 0, 2, ..
  // of the first tile are held so, 1, 3, .. of the second, and so on in turns: the others' work may run while the products do.
  std::vector<ValueId> held = {};
  static void fields(auto& s, auto&& v) {
    v("pending", s.pending), v("stated", s.stated), v("first", s.first), v("held", s.held);
  }
};

// What this thread wrote or saw written to shared (`global`: global) memory is there for
// instructions that touch it asynchronously.
struct ProxyFence {
  bool global = false;
  static void fields(auto& s, auto&& v) { v("global", s.global); }
};

// Writes the accumulator to the view, converting to its element type (round to nearest).
struct Store {
  ValueId frag;
  ValueId view;
  // Columns first_column and on of C are stored, as many as the view has; with them all it is 0.
  std::int64_t first_column = 0;
  bool transposed = false;  // view[n, m] = C[m, n]
  bool masked = false;      // the program says which part is written: the view's limits
  // decided. With stmatrix, `matrices` and `warp_step` are as in Load; null: plain stores of
  // `element_run` or `wide_run` consecutive elements. `guarded` and `before` are as in Load; what lies
  // outside is not written.
  const target::Copy* instruction = nullptr;
  std::vector<std::int64_t> matrices = {};
  std::vector<std::int64_t> warp_step = {};
  std::int64_t element_run = 0;
  std::int64_t wide_run = 0;
  std::vector<std::int64_t> guarded = {};
  std::vector<std::int64_t> before = {};
  static void fields(auto& s, auto&& v) {
    v("frag", s.frag), v("view", s.view), v("first_column", s.first_column),
        v("transposed", s.transposed), v("masked", s.masked), v("instruction", s.instruction),
        v("matrices", s.matrices), v("warp_step", s.warp_step), v("element_run", s.element_run),
        v("wide_run", s.wide_run), v("guarded", s.guarded), v("before", s.before);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.frag, .beyond = Beyond::kSkips});
    t({.value = s.view, .use = Use::kWrites, .chooses = s.masked});
  }
};

// For every element of a register tile, in each thread that holds it: the body runs with `row` and
// `col` set to the element's place, and not for what lies beyond the edge of a padded tile. Nothing
// in it is collective, or writes memory. Several tiles may be read and set in it: those with the
// extents of `frag`, and those whose extent is 1 where they differ, of which each row (column) has
// one element.
//
//   apply frag=%p row=i col=j { %1 = element frag=%s; %2 = element frag=%max; ... }
//     %p and %s 64x128, %max 64x1: p[i, j] is made of s[i, j] and max[i, 0]
struct Apply {
  ValueId frag;
  VarId row;
  VarId col;
  RegionId body;
  // decided: the body runs once for two elements of a register (see goes_in_pairs).
  bool pairs = false;
  // decided: the body multiplies by this tile's elements alone (see factors_of). A warp whose lanes hold nothing but ones of
  // it leaves the body out, which would change nothing.
  ValueId ones = {};
  static void fields(auto& s, auto&& v) {
    v("frag", s.frag), v("row", s.row), v("col", s.col), v("pairs", s.pairs), v("ones", s.ones),
        v("body", s.body);
  }
};
// The element that belongs to the place that the Apply around it is at: its value, and a new one.
struct Element {
  ValueId frag;
  static void fields(auto& s, auto&& v) { v("frag", s.frag); }
  static void touches(const auto& s, auto&& t) { t({.value = s.frag, .beyond = Beyond::kSkips}); }
};
struct SetElement {
  ValueId frag;
  ValueId value;
  static void fields(auto& s, auto&& v) { v("frag", s.frag), v("value", s.value); }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kSkips});
  }
};

// Makes one row (dimension 0) or column (1) of a register tile: frag[i, 0] is the sum, largest, ...
// of source[i, ...]. Sums are in frag's type, in any order. The largest and the smallest element of
// a row pass over what is no number; of none left they are -inf and inf.
struct Reduce {
  ValueId frag;
  ValueId source;
  ReduceKind kind = ReduceKind::kMax;
  std::int64_t dimension = 1;
  // decided: `frag` has a column (row) for each of so many groups of warps, whose lanes hold the
  // part that it is made of; 1: for all
  std::int64_t parts = 1;
  static void fields(auto& s, auto&& v) {
    v("frag", s.frag), v("source", s.source), v("kind", s.kind), v("dimension", s.dimension),
        v("parts", s.parts);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.source, .beyond = Beyond::kNeutral});
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kCarries});
  }
};
// Running sums, the element itself included: frag[i, j] = source[i, 0] + ... + source[i, j]. What lies
// beyond a padded tile's edge comes last in its line, so no element's sum has it.
struct Scan {
  ValueId frag;
  ValueId source;
  std::int64_t dimension = 1;
  static void fields(auto& s, auto&& v) {
    v("frag", s.frag), v("source", s.source), v("dimension", s.dimension);
  }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.source, .beyond = Beyond::kCarries});
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kCarries});
  }
};
// A bool for each warp of the unit: whether its lanes hold an element of the tile that is not 0. With `parts` the tile's
// elements tell of sums, and may tell of the parts that lanes have of them instead (see keep_parts).
struct Vote {
  ValueId frag;
  bool parts = false;
  static void fields(auto& s, auto&& v) { v("frag", s.frag), v("parts", s.parts); }
  static void touches(const auto& s, auto&& t) { t({.value = s.frag, .beyond = Beyond::kCarries}); }
};
// The same elements in other registers: `frag` becomes `source`. Both have one type and shape; once layouts are
// decided each lane holds in `frag` elements that it holds in `source`, or that its quad does (quad_moves).
struct Convert {
  ValueId frag;
  ValueId source;
  static void fields(auto& s, auto&& v) { v("frag", s.frag), v("source", s.source); }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.source, .beyond = Beyond::kCarries});
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kCarries});
  }
};
// The same bits as elements of another width: where `source` has one element, `frag` has several side by
// side in the row, the lowest bits first, or one where `source` has several. Once layouts are decided,
// each lane holds the parts of the elements that it holds.
struct Recast {
  ValueId frag;
  ValueId source;
  static void fields(auto& s, auto&& v) { v("frag", s.frag), v("source", s.source); }
  static void touches(const auto& s, auto&& t) {
    t({.value = s.source, .beyond = Beyond::kCarries});
    t({.value = s.frag, .use = Use::kWrites, .beyond = Beyond::kCarries});
  }
};

// --- scalars

struct Const {
  double value = 0;  // an integer type's value is exact up to 2^53; larger ones come as Index
  static void fields(auto& s, auto&& v) { v("value", s.value); }
};
struct Index {
  Expr expr = 0;  // result s32 or s64
  static void fields(auto& s, auto&& v) { v("expr", s.expr); }
};
// Makes a run-time integer usable in Exprs: from here on `var` has this value, per thread.
struct Bind {
  VarId var;
  ValueId value;
  static void fields(auto& s, auto&& v) { v("var", s.var), v("value", s.value); }
};
struct Unary {
  UnaryKind kind = UnaryKind::kNegate;
  ValueId operand;
  static void fields(auto& s, auto&& v) { v("kind", s.kind), v("operand", s.operand); }
};
// Operands have one type; comparisons give bool. Integer division truncates, as in C.
struct Binary {
  BinaryKind kind = BinaryKind::kAdd;
  ValueId left;
  ValueId right;
  static void fields(auto& s, auto&& v) {
    v("kind", s.kind), v("left", s.left), v("right", s.right);
  }
};
// a * b + c of floats of 16 to 64 bits, rounded once.
struct Fma {
  ValueId a;
  ValueId b;
  ValueId c;
  static void fields(auto& s, auto&& v) { v("a", s.a), v("b", s.b), v("c", s.c); }
};
struct Cast {
  ValueId operand;  // to the result's type, round to nearest even; floats to integers truncate
  static void fields(auto& s, auto&& v) { v("operand", s.operand); }
};
struct Bitcast {
  ValueId operand;  // its bits are those of the result, whose type is as wide
  static void fields(auto& s, auto&& v) { v("operand", s.operand); }
};
struct Choose {
  ValueId condition;
  ValueId if_true;
  ValueId if_false;
  static void fields(auto& s, auto&& v) {
    v("condition", s.condition), v("true", s.if_true), v("false", s.if_false);
  }
};
struct Get {
  ValueId cell;
  static void fields(auto& s, auto&& v) { v("cell", s.cell); }
  static void touches(const auto& s, auto&& t) { t({.value = s.cell}); }
};
struct Set {
  ValueId cell;
  ValueId value;
  static void fields(auto& s, auto&& v) { v("cell", s.cell), v("value", s.value); }
  static void touches(const auto& s, auto&& t) { t({.value = s.cell, .use = Use::kWrites}); }
};
struct Assert {
  ValueId condition;
  std::string message;
  static void fields(auto& s, auto&& v) { v("condition", s.condition), v("message", s.message); }
};
// Each thread says the text with its values in it (printed.h).
struct Print {
  std::string text;
  std::vector<ValueId> values;  // scalars: bools, integers, f32 and f64
  static void fields(auto& s, auto&& v) { v("text", s.text), v("values", s.values); }
};

// In the order of op.def, so that the variant's index is the OpKind.
enum class OpKind : std::uint8_t {
#define KILN_OP(Name, ...) k##Name,
#include "ir/op.def"
#undef KILN_OP
};

struct NoOp {
  static void fields(auto&, auto&&) {}
};
using OpData = OneOf<
#define KILN_OP(Name, ...) Name,
#include "ir/op.def"
#undef KILN_OP
    NoOp>;

struct Op {
  Span span;
  OpData data = NoOp{};
  ValueId result;  // invalid when the operation has none
  [[nodiscard]] OpKind kind() const { return static_cast<OpKind>(data.index()); }
};

[[nodiscard]] std::string_view mnemonic(OpKind kind);

}  // namespace kiln::ir
