// The loops that a program marks `[[pipeline]]`, and how many stages each gets. Part of specialise and of
// the pass `pipeline`.
#pragma once

#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"
#include "passes/copies_ahead.h"

namespace kiln::passes {

// A marked loop, the kernel and the region that it stands in.
struct Marked {
  ir::OpId launch;
  ir::OpId loop;
  ir::RegionId parent;
  std::int64_t taken = 0;  // shared memory of other loops' rings that are not there yet
};

// Inner ones first.
[[nodiscard]] std::vector<Marked> marked_loops(const ir::Function& function, ir::OpId launch);
// Those that ask for a producer.
[[nodiscard]] std::vector<Marked> loops_with_producer(const ir::Function& function,
                                                      ir::OpId launch);

// Of a thread of the kernel: an estimate, for how many blocks an SM holds.
[[nodiscard]] int registers_wanted(const ir::Function& function, ir::OpId launch);

// Of a shared buffer; an extent that only the launch knows counts as one.
[[nodiscard]] std::int64_t buffer_bytes(const ir::Function& function, ir::ValueId buffer);

// Shared memory that each stage takes beyond the first: buffers, and the events of a producer or of bulk copies.
[[nodiscard]] std::int64_t stage_bytes(const ir::Function& function, ir::OpId launch,
                                       const LoopCopies& found);

// The number that the loop asks for, or else the one that choose_stages.h finds among those that fit the block's
// shared memory. Errors:
// pipeline-memory.
[[nodiscard]] Checked<std::int64_t> stages_for(const ir::Module& module,
                                               const ir::Function& function, const Marked& marked,
                                               const LoopCopies& found, Diagnostics& diags);

}  // namespace kiln::passes
