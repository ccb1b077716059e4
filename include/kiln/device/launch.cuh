// Launches that begin before the one in front of them has ended.
#pragma once

namespace kiln {

// The next launch on the stream may begin, as far as there is room; then waits until all earlier
// ones have ended and their memory is visible. A block does so before it touches global memory.
// Without such a launch behind or in front of it, nothing happens. PTX ISA, "griddepcontrol".
__device__ inline void await_earlier_launches() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

}  // namespace kiln
