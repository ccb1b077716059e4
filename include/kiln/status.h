// How functions of kiln end, for kiln/gemm.h and kiln/kiln.h.
#pragma once

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_INVALID = 1,       // the arguments: a null pointer, an extent below 1, rows that overlap
  KILN_UNSUPPORTED = 2,   // no kernel for these types, flags, alignment or this architecture
  KILN_WORKSPACE = 3,     // the workspace is null, too small or not at a multiple of 256 bytes
  KILN_NO_GPU = 4,        // no CUDA driver, no device, or one too old for kiln
  KILN_NO_COMPILER = 5,   // the kernel must be compiled and there is no NVRTC
  KILN_NOT_PREPARED = 6,  // the stream is captured and the problem was not prepared
  KILN_DEVICE = 7,        // the CUDA driver or the compiler reports a failure
  KILN_REJECTED = 8,      // the program has errors, which its diagnostics tell
  KILN_SYSTEM = 9         // a file cannot be read, or memory is short
} kiln_status;

// What went wrong in the calling thread's last call that did not return KILN_OK; "" before the
// first. Valid until that thread's next failure.
KILN_API const char* kiln_last_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif
