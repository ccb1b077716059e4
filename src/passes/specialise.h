// Gives loops marked `[[pipeline(S, producer)]]` threads of their own that start their copies.
//
//   parallel block threads=256              =>   parallel block threads=384
//     fill sum                                     parallel group-4 p
//     for k in [n]                                   threads 0 .. 255:                threads 256 .. 383:
//       copy x(k) => x_s                               fill sum                         for k in [n]
//       parallel group-4 w                             for k in [n]                       wait empty[k % S]
//         multiply x_s, sum                              wait full[k % S]                 copy x(k) => x_s[k % S]
//     store sum                                          multiply x_s[k % S], sum         trigger full[k % S]
//                                                        trigger empty[k % S]
//                                                      store sum
//
// The kernel's own threads are the consumers and keep their numbers; a further warpgroup (where the program
// speaks of `: group-4`, else a warp) is the producer. It runs what is needed to know which tiles come next: the
// loops and conditions around the marked loop, and what their bounds are made of. A stage is given back when the
// consumers have read it. Where the hardware moves registers between warpgroups and consumers could use more, the
// producer gives them its own.
//
// Where the hardware moves tiles the copies are its own. Elsewhere the producer's threads start them, and the event of a
// stage waits for these (track_copies.h).
//
// Stages of several loops in one another: the slot goes on from one to the next, so that loads of the next trip
// of the outer loop start while this one's end is still computed.
//
// Runs in front of the pass `pipeline`, which then has only loops without a producer before it.
//
// Errors: pipeline-producer, and those of copies_ahead.h and marked_loops.h.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> specialise(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
