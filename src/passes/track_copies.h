// Which triggers are left to the copies in front of them: the generation then waits for the threads' copies (cp.async),
// and the threads go on. Part of the pass plan-events.
//
//   inthreads {                                   =>   the same with
//     event_wait event=%empty                            trigger event=%full tracks
//     copy ... event=%full grouped
//     trigger event=%full
//   }
//
// Without it a thread waits in front of the trigger until its copies have landed, so that it never has more than one
// stage on its way. PTX ISA, "cp.async.mbarrier.arrive".
//
// All triggers of the region must be such ones, for whoever waits for another one might think that what was copied
// before it is there. So must all that touches the buffers there, and products and bulk copies must not, which a fence
// behind the copies would have to let see them. And nobody may write what the copies still read.
#pragma once

#include "ir/module.h"

namespace kiln::passes {

// Sets Trigger::tracks, where it is known who arrives.
void track_copies(ir::Function& function, ir::OpId launch);

}  // namespace kiln::passes
