// Which copies of a loop may be started iterations ahead, and why others may not.
//
//   foreach k in [n] {
//     dma.copy a.subspan(64, 32).at(i, k) => a_s;       it needs `k` alone: may start ahead
//     dma.copy b.subspan(64, 32).at(rows, k) => b_s;    `rows` is a variable that the loop sets: may not
//
// Part of the pass `pipeline`.
#pragma once

#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

// Why a loop cannot be a pipeline, and the place that is to blame.
struct Obstacle {
  std::string why;
  Span place;
};

// A copy from global to shared memory, the first of its buffer, with what has to come along.
struct CopyAhead {
  ir::OpId copy;
  ir::ValueId buffer;  // the shared buffer that it fills
  std::vector<ir::OpId>
      address;  // of the body: what says where the copy reads and writes, in order
};

struct LoopCopies {
  std::vector<CopyAhead> copies;   // in order
  std::vector<ir::OpId> meetings;  // of the body: how it waits for them now
};

// `launch` is the kernel that the loop is in. Errors: pipeline-no-copies, pipeline-dependence,
// pipeline-buffer, pipeline-loop.
[[nodiscard]] Checked<LoopCopies> copies_ahead(const ir::Function& function, ir::OpId launch,
                                               ir::OpId loop, std::int64_t stages,
                                               Diagnostics& diags);

}  // namespace kiln::passes
