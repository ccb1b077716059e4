// The compiler of kiln and its simulator in your program, for C (C11) and C++ (C++17).
//
//   kiln_compile_options options = {0};
//   options.file = "scale.co";
//   options.arch = "sm_90a";
//   kiln_program* program;
//   if (kiln_compile(&options, &program) != KILN_OK) puts(kiln_last_error());
//   const char* cuda = kiln_program_cuda(program);
//
//   int64_t shape[] = {64, 1024};
//   kiln_array arrays[] = {{"x", x, "bf16", shape, 2}, {"y", y, "bf16", shape, 2}};
//   kiln_call call = {0};
//   call.arrays = arrays, call.array_count = 2;
//   kiln_report* report;
//   if (kiln_simulate(program, &call, &report) != KILN_OK) puts(kiln_last_error());
//   puts(kiln_report_text(report));       y holds what the kernel wrote
//   kiln_report_free(report);
//   kiln_program_free(program);
//
// Nothing here needs a GPU, and nothing here starts one: kiln/gemm.h does, for products of
// matrices. Nothing is printed, and no function ends the process for what it is given.
//
// All functions may be called from any thread at any time, a program or a report by several at
// once as long as none of them frees it. What a function gives lives as long as the object that it
// was asked of. Texts are UTF-8 where the program's are, and end with a zero byte.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A program that was compiled, or was refused. It does not change.
typedef struct kiln_program kiln_program;
// What one run of a kernel gave.
typedef struct kiln_report kiln_report;

typedef enum kiln_severity { KILN_ERROR = 0, KILN_WARNING = 1, KILN_NOTE = 2 } kiln_severity;

// What kiln has to say of a program or of a run. No text is null; "" stands for what there is not.
typedef struct kiln_diagnostic {
  const char* id;    // "mma-no-instruction"; docs/diagnostics.md lists them
  int32_t severity;  // a kiln_severity
  const char* message;
  const char* help;  // a way out
  const char* file;  // "": it has no place, as what is wrong with a call
  int64_t line;      // from 1; 0: it has no place
  int64_t column;    // from 1, in bytes
  const char* text;  // all of it as a terminal shows it, with the line of the program
} kiln_diagnostic;

// All that is 0 means the usual; a file or a text is always given.
typedef struct kiln_compile_options {
  const char* file;    // what is compiled; with a text only its name, "<source>" when it is null
  const char* source;  // the program's text; null: the file's
  const char* arch;    // "sm_90a"; null: that of the machine's GPU, else the newest that kiln knows
  // "NAME" or "NAME=VALUE" each, of macros and of template parameters.
  const char* const* defines;
  size_t define_count;
  // Where `#include` looks besides the folder of the file that includes.
  const char* const* folders;
  size_t folder_count;
} kiln_compile_options;

// Compiles. KILN_REJECTED: the program has errors; KILN_INVALID: the options; in both cases
// `program` receives an object that has diagnostics and no kernels. KILN_SYSTEM: the file cannot be
// read, and `program` receives null.
KILN_API kiln_status kiln_compile(const kiln_compile_options* options, kiln_program** program);

// Null is allowed.
KILN_API void kiln_program_free(kiln_program* program);

// In the order in which they were found. What compiled can have warnings and notes.
KILN_API const kiln_diagnostic* kiln_program_diagnostics(const kiln_program* program,
                                                         size_t* count);

// All diagnostics as a terminal shows them, and how many there are; "" when there are none.
KILN_API const char* kiln_program_text(const kiln_program* program);

// "sm_90a"; "" when the options named none that kiln knows.
KILN_API const char* kiln_program_arch(const kiln_program* program);

// The program as CUDA C++, whose headers are kiln's (include/kiln/device); "" when it has errors.
KILN_API const char* kiln_program_cuda(const kiln_program* program);

// A parameter of a kernel, or what it returns.
typedef struct kiln_parameter {
  const char* name;
  const char* dtype;  // as the language spells it: "bf16", "s32"
  int32_t is_tensor;  // else a number
  int32_t is_global;  // a device pointer; else host memory, which is copied in
  int32_t is_read;
  int32_t is_written;  // the caller's array receives what the kernel writes
  size_t rank;
  const char* const* dims;  // expressions of the kernel's dimensions: "M", "K / 32", "128"
} kiln_parameter;

typedef struct kiln_kernel {
  const char* name;
  const kiln_parameter* parameters;
  size_t parameter_count;
  const kiln_parameter* result;  // null: it returns nothing, or one of its parameters
  // What the caller chooses by arrays' shapes, or as numbers where no shape says it.
  const char* const* dimensions;
  size_t dimension_count;
} kiln_kernel;

// In the order of the text.
KILN_API const kiln_kernel* kiln_program_kernels(const kiln_program* program, size_t* count);

// An array in host memory: rows without gaps, neighbours along the last dimension.
typedef struct kiln_array {
  const char* name;  // the parameter
  void* data;        // not written unless the kernel writes the parameter
  // Of the elements. "u16" and "u8" hold the bits of a float of as many bits; types of less than 8
  // bits have a byte for each element, the signed ones also as "s8".
  const char* dtype;
  const int64_t* shape;
  size_t rank;
} kiln_array;

// The value of a parameter that is a number, or of a dimension that no array has.
typedef struct kiln_scalar {
  const char* name;
  int32_t is_real;  // `real` counts; else `integer`
  int64_t integer;
  double real;
} kiln_scalar;

// A call of a kernel. All that is 0 means the usual.
typedef struct kiln_call {
  const char* kernel;        // null: the only one
  const kiln_array* arrays;  // one for each parameter that is a tensor, in any order
  size_t array_count;
  const kiln_scalar* scalars;
  size_t scalar_count;
  int64_t schedules;  // how many orders of execution are tried. 0: one
  uint64_t
      seed;  // of the first; the next ones have seed + 1, seed + 2... The same again finds the same
  uint64_t steps_max;  // instructions of warps after which a run gives up. 0: 10^9
} kiln_call;

// Runs a kernel on this CPU, instruction by instruction, and looks for races, deadlocks, accesses
// out of bounds and whatever else goes wrong. KILN_OK: it ran; whether anything was found is in the
// report, and the arrays that it writes have what the first order of execution gave.
//
// KILN_INVALID: the arguments do not fit, by type, shape, name or a condition of the kernel;
// KILN_SYSTEM: memory is short. Then no array is written. `report` receives an object with
// diagnostics; null where a null pointer, an unknown type or the lack of memory is what is wrong.
KILN_API kiln_status kiln_simulate(const kiln_program* program, const kiln_call* call,
                                   kiln_report** report);

// The same with what the program says, computed in fp64 and rounded to the outputs' types: what the
// results should be. `schedules` and `seed` do not count.
KILN_API kiln_status kiln_reference(const kiln_program* program, const kiln_call* call,
                                    kiln_report** report);

// Null is allowed.
KILN_API void kiln_report_free(kiln_report* report);

// How many different ones were found.
typedef struct kiln_findings {
  int32_t ok;  // the run found no error and came to its end
  int64_t races;
  int64_t deadlocks;
  int64_t uninitialised_reads;
  int64_t out_of_bounds;
  int64_t others;  // assertions, divisions by zero, divergence and the like
} kiln_findings;

KILN_API kiln_findings kiln_report_findings(const kiln_report* report);

// What was found, as diagnostics; also warnings, as elements of an output that nobody wrote.
KILN_API const kiln_diagnostic* kiln_report_diagnostics(const kiln_report* report, size_t* count);

// What was found, what the program printed and a summary, as a terminal shows it.
KILN_API const char* kiln_report_text(const kiln_report* report);

// What the kernel returned; null when nothing, or one of its parameters, or when it did not come to
// its end. A number is an array of no dimensions.
KILN_API const kiln_array* kiln_report_result(const kiln_report* report);

#ifdef __cplusplus
}  // extern "C"
#endif
