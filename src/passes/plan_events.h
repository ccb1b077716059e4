// Decides who arrives at each event, and which arrivals announce how many bytes.
//
//   inthreads first=0 threads=128 async body={      =>   single
//     event_wait event=%empty slot=s
//     copy bulk event=%full slot=s ...
//     trigger event=%full slot=s                    =>   arrival=elected bytes=16384
//   }
//   inthreads first=128 threads=256 async body={
//     event_wait event=%full slot=s
//     trigger event=%empty slot=s                   =>   arrival=warp
//   }
//   %full = event, %empty = event ready             =>   arrivals=1, arrivals=8
//
// A generation waits for every thread that can execute one of the event's triggers: of each set of
// threads (an `inthreads` region's, or the block's) one where its bulk copies complete the event or
// moving data is all that it does, one of each warp where whole warps come to the trigger together,
// else each. Sets are counted once, however many triggers they have; where each warpgroup of a set
// triggers a slot of its own, `e[p]`, one warpgroup counts. `trigger.cluster` comes from every
// block of the cluster. What the program states (`event<n>`) comes first; where it counts the threads of whole warps, one
// of each warp arrives all the same.
//
// Bytes of bulk copies are announced by the trigger that follows them in the same straight line of
// code, or else by the copy itself (`announces`).
//
// Where threads copy by themselves, the generation waits for the copies instead of them, if it can (`tracks`,
// track_copies.h).
//
// A region that does nothing but wait for events, start bulk copies and trigger is run by one
// thread (`single`), if nothing behind it depends on the others having waited.
//
// Runs after plan-copies (boxes say how many bytes there are) and before place-barriers.
// Establishes Form::kMet.
//
// Errors: event-arrivals-unknown, event-bytes-limit. Warning: event-arrivals-stated.
#pragma once

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

Checked<bool> plan_events(ir::Module& module, Diagnostics& diags);

}  // namespace kiln::passes
