// Kernels that a program carries, as functions: what the files call that `kiln emit --header` makes of
// a `.co` file. docs/cpp.md is the user's page.
//
//   attention.co  ->  attention.co.h          kiln_status launch_attention(void* stream, const void* q, ...);
//                     attention.co.c          its text, machine code where CUDA was there, the functions
//
// C11 and C++17. All tensors lie on one device, without gaps. A kernel is compiled when it is first
// called for a device and prepared when it is first called with shapes; both are kept while the
// process lives. Machine code that the program carries takes the place of a compilation.
#pragma once

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

// A kernel's machine code.
typedef struct kiln_machine_code {
  const char* key;  // says what it was compiled from
  const unsigned char* bytes;
  size_t byte_count;
} kiln_machine_code;

// A `.co` file with all that it includes, as it was when the program was built.
typedef struct kiln_embedded {
  const char* file;          // its name, without a folder
  const char* const* lines;  // each with its end
  size_t line_count;
  const char* const* defines;
  size_t define_count;
  const char* const* archs;  // what it may be compiled for: "sm_90a"
  size_t arch_count;
  const kiln_machine_code* codes;
  size_t code_count;
  void* state;  // the library's; null at first
} kiln_embedded;

typedef struct kiln_embedded_argument {
  kiln_value value;      // as of kiln_launch
  const int64_t* shape;  // of a tensor: is compared with the dimensions; null: they say it
} kiln_embedded_argument;

typedef struct kiln_embedded_call {
  const char* kernel;
  // One for each parameter in order, then one for what is returned: device memory for a tensor; for
  // a number host memory that receives it, or null.
  const kiln_embedded_argument* arguments;
  size_t argument_count;
  const int64_t* dimensions;  // by kiln_kernel's order
  size_t dimension_count;
  void* stream;  // a cudaStream_t or CUstream; null: the default stream
} kiln_embedded_call;

// Compiles and prepares what is not yet, and starts the kernel's launches on the stream, of the device
// of the calling thread's context (cudaSetDevice). Memory that the host part needs is taken and given
// back on the stream.
//
// KILN_INVALID, KILN_UNSUPPORTED, KILN_NO_GPU, KILN_NO_COMPILER and KILN_DEVICE as kiln_prepare and
// kiln_launch; KILN_NOT_PREPARED: the stream is captured in a graph, and the kernel has not been called
// with these shapes before. kiln_last_error says more.
KILN_API kiln_status kiln_embedded_launch(kiln_embedded* embedded, const kiln_embedded_call* call);

// The whole of it as a program, to be simulated, explained or prepared by hand. `arch` null: the first
// of its architectures. As kiln_compile.
KILN_API kiln_status kiln_embedded_compile(const kiln_embedded* embedded, const char* arch,
                                           kiln_program** program);

#ifdef __cplusplus
}  // extern "C"
#endif

static inline kiln_embedded_argument kiln_tensor_argument(const void* data, const int64_t* shape) {
  kiln_embedded_argument out;
  out.value.data = (void*)data;
  out.shape = shape;
  return out;
}

static inline kiln_embedded_argument kiln_integer_argument(int64_t number) {
  kiln_embedded_argument out;
  out.value.integer = number;
  out.shape = NULL;
  return out;
}

static inline kiln_embedded_argument kiln_real_argument(double number) {
  kiln_embedded_argument out;
  out.value.real = number;
  out.shape = NULL;
  return out;
}
