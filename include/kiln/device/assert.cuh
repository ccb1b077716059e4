// Run-time checks of the user's program.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

namespace kiln {

// Prints the message and stops the whole kernel when `ok` is false.
__device__ inline void check(bool ok, const char* message) {
  if (!ok) {
    printf("assertion failed: %s\n", message);
    __trap();
  }
}

}  // namespace kiln
