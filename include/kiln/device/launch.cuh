// Launches that begin before the one in front of them has ended. PTX ISA, "griddepcontrol".
#pragma once

namespace kiln {

// Once all blocks have come here, the next launch on the stream may begin, as far as there is room.
__device__ inline void admit_next_launch() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until all earlier launches have ended and their memory is visible: in front of the first
// access to global memory. A launch that did not begin early goes on at once.
__device__ inline void await_earlier_launches() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

}  // namespace kiln
