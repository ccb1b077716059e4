// The operations that say which code runs, how often and in which threads; the others are in op.h, which says how
// they are made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/traits.h"
#include "ir/type.h"

namespace kiln::ir {

// All instances of `body` may run at once. `vars` are the axes, outermost first; their extents are
// in the function's Var table. kBlock is the kernel launch: axis i is blockIdx.x/.y/.z. An inner
// level splits the enclosing unit's threads into instances of `unit` consecutive threads: with t
// the thread's number inside the enclosing unit, instance = t / unit, and the last axis varies
// fastest. The instances of an inner parallel take all threads of the enclosing unit.
struct Parallel {
  Level level = Level::kBlock;
  std::vector<VarId> vars;
  std::int64_t unit = 0;  // threads of one instance: 1, 32, 128; 0 for kBlock
  Expr threads = 0;       // kBlock: threads of the block (may be symbolic at thread level)
  std::string name;       // kBlock: the kernel's name
  // kBlock: the block's place in its cluster. Variable i is the block's coordinate on axis i of the
  // grid modulo the variable's extent (a constant). Empty: no clusters.
  std::vector<VarId> cluster = {};
  // kBlock: what the program asks of the compiler, 0: nothing. Blocks of so many threads (at least
  // `threads`), so many blocks on a multiprocessor at once, no more registers of a thread.
  std::int64_t threads_bound = 0;
  std::int64_t blocks_min = 0;
  std::int64_t registers_max = 0;
  bool cooperative = false;  // kBlock: all blocks are there at once, and may meet
  // kBlock: what the program asks of the pass persist, which fulfils it. As many blocks as run at once go through the
  // whole grid; its second axis is taken so many columns at a time, or its first so many rows (0: in order), or both
  // along a Hilbert curve. At most one of the three.
  bool persistent = false;
  std::int64_t columns_together = 0;
  std::int64_t rows_together = 0;
  bool hilbert = false;
  RegionId body;
  // decided, kBlock only
  std::int64_t shared_bytes = 0;  // shared memory of the block
  Expr shared_more = 0;           // and behind it, of the buffers that are sized at launch;
  std::int64_t shared_max = 0;    // both together at most, where there are such buffers
  // `cluster_shape`: blocks of a cluster by axis of the grid; empty: no clusters. `threads_max`: the
  // threads that a block has at most, where `threads` is not constant. `opts_in`: more shared memory
  // than a kernel has unasked. `overlaps`: it may begin before earlier launches end, and waits for
  // them by itself; `admits_next`: the next launch may begin while this one works.
  std::vector<std::int64_t> cluster_shape = {};
  std::int64_t threads_max = 0;
  // What the kernel's compiler is told: the threads of a block at most and, second, how many blocks
  // are to fit a multiprocessor. Empty: `registers_max` instead, for CUDA takes one or the other.
  std::vector<std::int64_t> bounds = {};
  bool opts_in = false;
  bool overlaps = false;
  bool admits_next = false;
  static void fields(auto& s, auto&& v) {
    v("level", s.level), v("vars", s.vars), v("unit", s.unit), v("threads", s.threads),
        v("name", s.name), v("cluster", s.cluster), v("threads_bound", s.threads_bound),
        v("blocks_min", s.blocks_min), v("registers_max", s.registers_max),
        v("cooperative", s.cooperative), v("persistent", s.persistent),
        v("columns_together", s.columns_together), v("rows_together", s.rows_together),
        v("hilbert", s.hilbert), v("shared_bytes", s.shared_bytes), v("shared_more", s.shared_more),
        v("shared_max", s.shared_max), v("cluster_shape", s.cluster_shape),
        v("threads_max", s.threads_max), v("bounds", s.bounds), v("opts_in", s.opts_in),
        v("overlaps", s.overlaps), v("admits_next", s.admits_next), v("body", s.body);
  }
};

// for (var = lower; var < upper; var += step) in each thread; zero trips are fine.
struct For {
  VarId var;
  Expr lower = 0;
  Expr upper = 0;
  std::int64_t step = 1;
  std::int64_t unroll = 0;  // 0: no request
  std::int64_t stages =
      0;  // what the program asks of the pass `pipeline`, which fulfils it; 0: nothing
  bool producer = false;  // and that threads of their own start its copies: specialise does that
  RegionId body;
  static void fields(auto& s, auto&& v) {
    v("var", s.var), v("lower", s.lower), v("upper", s.upper), v("step", s.step),
        v("unroll", s.unroll), v("stages", s.stages), v("producer", s.producer), v("body", s.body);
  }
};

struct If {
  ValueId condition;  // bool
  RegionId then_body;
  RegionId else_body;  // invalid when there is none
  static void fields(auto& s, auto&& v) {
    v("condition", s.condition), v("then", s.then_body), v("else", s.else_body);
  }
};

// Thread 0 of the enclosing unit runs the body: a store written outside the innermost level.
struct Once {
  RegionId body;
  static void fields(auto& s, auto&& v) { v("body", s.body); }
};

struct Return {
  ValueId value;  // invalid in a void function
  static void fields(auto& s, auto&& v) { v("value", s.value); }
};

// Runs the body again and again in each thread until it breaks.
struct Loop {
  RegionId body;
  static void fields(auto& s, auto&& v) { v("body", s.body); }
};
// The thread leaves the innermost For or Loop around it.
struct Break {
  static void fields(auto&, auto&&) {}
};
// The thread goes on with the next trip of the innermost For or Loop around it.
struct Continue {
  static void fields(auto&, auto&&) {}
};
// The thread leaves the kernel: it runs nothing behind this.
struct Yield {
  static void fields(auto&, auto&&) {}
};

// `inthreads`: the threads `first` .. `first` + `threads` - 1 of the block run the body, the others
// go past it. Collective operations inside are collective over these threads. `async`: an
// independent program beside those of the other regions; without it sema puts a barrier behind.
struct Inthreads {
  std::int64_t first = 0;
  std::int64_t threads = 0;
  bool async = false;
  RegionId body;
  // decided: the named barrier of the region (1 to 15); 0: it needs none. `single`: everything in
  // it is done by one thread of it, so that only that one runs it.
  std::int64_t barrier = 0;
  bool single = false;
  static void fields(auto& s, auto&& v) {
    v("first", s.first), v("threads", s.threads), v("async", s.async), v("barrier", s.barrier),
        v("single", s.single), v("body", s.body);
  }
};

}  // namespace kiln::ir
