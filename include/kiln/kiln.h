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
// On a GPU, which is compiled for when it is known what for, and then only launched on:
//
//   kiln_plan* plan;                      of the same call; its arrays need no data
//   if (kiln_prepare(program, &call, KILN_CURRENT_DEVICE, &plan) != KILN_OK) ...
//   kiln_value values[] = {{.data = x}, {.data = y}};     device pointers
//   if (kiln_launch(plan, values, NULL, 0, stream) != KILN_OK) ...
//
// Only that needs a GPU; the CUDA driver and NVRTC are opened when it is asked for. Nothing is
// printed, and no function ends the process for what it is given.
//
// All functions may be called from any thread at any time, a program, a report or a plan by several
// at once as long as none of them frees it. What a function gives lives as long as the object that it
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
// A kernel that is compiled for a GPU and for shapes.
typedef struct kiln_plan kiln_plan;

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
  // A number that decides what is launched, as how many blocks or how large a buffer: a plan is of
  // one value of it. Other numbers may differ from launch to launch.
  int32_t is_deciding;
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

// A template parameter of a kernel, and the values that `[[tune(...)]]` says to try: each is a define
// of another program, "STAGES=3".
typedef struct kiln_tunable {
  const char* kernel;
  const char* name;
  const char* const* values;  // as the program writes them: "3", "bf16"
  size_t value_count;
} kiln_tunable;

// In the order of the text.
KILN_API const kiln_tunable* kiln_program_tunables(const kiln_program* program, size_t* count);

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
  // Instructions of warps, or steps of a host part, after which a run gives up. 0: 10^9.
  uint64_t steps_max;
} kiln_call;

// Runs a kernel on this CPU, instruction by instruction, and looks for races, deadlocks, accesses
// out of bounds and whatever else goes wrong. KILN_OK: it ran; whether anything was found is in the
// report, and the arrays that it writes have what the first order of execution gave.
//
// KILN_INVALID: the arguments do not fit, by type, shape, name or a condition of the kernel;
// KILN_SYSTEM: memory is short. Then no array is written. `report` receives an object with
// diagnostics; null where a null pointer, an unknown type, memory that a written array shares with
// another one, or the lack of memory is what is wrong.
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

// What the kernel printed, as a GPU prints it: no places, no threads. "" when nothing.
KILN_API const char* kiln_report_printed(const kiln_report* report);

// What the kernel returned; null when nothing, or one of its parameters, or when it did not come to
// its end. A number is an array of no dimensions.
KILN_API const kiln_array* kiln_report_result(const kiln_report* report);

// What a kernel costs on a GPU, worked out on this CPU.
typedef struct kiln_explanation kiln_explanation;

// Counts instructions, bytes and conflicts in the simulator, and works out occupancy and times from
// them; needs no GPU. Of the call, arrays say types and shapes (`data` does not count) and scalars
// their values; without arrays the scalars say dimensions too; without either it is explained at a few
// full tiles. Every element counts as 1. `schedules`, `seed` and `steps_max` do not count.
//
// KILN_INVALID: the arguments do not fit, as for kiln_simulate; KILN_UNSUPPORTED: the simulator finds
// an error; KILN_SYSTEM: memory is short. `explanation` receives an object in any case but for null
// pointers and a program with errors; where it is refused, it has diagnostics and no texts. It may
// outlive its program.
KILN_API kiln_status kiln_explain(const kiln_program* program, const kiln_call* call,
                                  kiln_explanation** explanation);

// Null is allowed.
KILN_API void kiln_explanation_free(kiln_explanation* explanation);

// What is wrong with the arguments or was found; also warnings.
KILN_API const kiln_diagnostic* kiln_explanation_diagnostics(const kiln_explanation* explanation,
                                                             size_t* count);

// Tables for people, as `kiln explain` prints them; docs/explain.md reads one.
KILN_API const char* kiln_explanation_text(const kiln_explanation* explanation);

// One JSON object, as of `kiln explain --json` (docs/cli.md).
KILN_API const char* kiln_explanation_json(const kiln_explanation* explanation);

// One page that needs nothing but itself, as of `kiln explain --html`.
KILN_API const char* kiln_explanation_html(const kiln_explanation* explanation);

// The device of the calling thread's context (cudaSetDevice); the first one without a context.
#define KILN_CURRENT_DEVICE (-1)

// Compiles a kernel for a GPU, by its number, and for the call's shapes and numbers: a second or so,
// next to nothing where the compile cache has it. Of the call, `data`, `schedules` and `seed` do not
// count; after `steps_max` steps the host part, which runs beforehand, is given up. Kernels run in the device's primary context, which is the one of the CUDA
// runtime. Not while a stream is captured.
//
// KILN_INVALID: the arguments do not fit, as for kiln_simulate; KILN_UNSUPPORTED: the host part
// cannot be run beforehand, as it reads an element of a tensor or fails an assertion, or the kernel
// is too large for the GPU, or for a newer one; KILN_NO_GPU, KILN_NO_COMPILER, KILN_DEVICE. `plan`
// receives an object in any case but for null pointers; where it is refused, it has diagnostics and
// cannot be launched. It may outlive its program.
KILN_API kiln_status kiln_prepare(const kiln_program* program, const kiln_call* call,
                                  int32_t device, kiln_plan** plan);

// Null is allowed. The GPU may still be at work: machine code stays loaded until the process ends.
KILN_API void kiln_plan_free(kiln_plan* plan);

// What is wrong with the arguments; also warnings.
KILN_API const kiln_diagnostic* kiln_plan_diagnostics(const kiln_plan* plan, size_t* count);

// The number of its device.
KILN_API int32_t kiln_plan_device(const kiln_plan* plan);

// Bytes of device memory that a launch needs for buffers of the host part; often 0.
KILN_API size_t kiln_plan_workspace(const kiln_plan* plan);

// Type and shape of the tensor that the kernel returns, whose memory the caller gives: `data` is
// null. A number that it returns is known already: an array of no dimensions, with `data` in host
// memory. Null when it returns nothing, or one of its parameters.
KILN_API const kiln_array* kiln_plan_result(const kiln_plan* plan);

// An argument of a launch.
typedef union kiln_value {
  void* data;       // of a tensor: a device pointer, a multiple of 16
  int64_t integer;  // of a number of an integer type
  double real;      // of any other
} kiln_value;

// Starts the kernel's launches on `cuda_stream` (a cudaStream_t or CUstream of the plan's device;
// null: the default stream) and returns. Neither allocates nor synchronises, and may be captured in a
// CUDA graph, which then holds the tensors and the workspace by address.
//
// `values` has one for each parameter, in their order, then one for the tensor that is returned. All
// tensors lie on the plan's device, also those of parameters that are not `global`, and are as large
// as the plan's shapes say, without gaps. One that the kernel writes shares no memory with another.
// Numbers that decide are those of the plan (kiln_parameter).
//
// `workspace` is device memory at a multiple of 256 bytes, as large as kiln_plan_workspace says. What
// it holds does not matter before nor after. Launches that run at the same time need one each.
//
// KILN_INVALID: a null pointer, one that is no multiple of 16, memory that is shared, a number out of
// its type's range or another one than the plan's; KILN_WORKSPACE; KILN_DEVICE: what the driver says.
// Nothing is launched, except where the driver refuses a later launch of several.
KILN_API kiln_status kiln_launch(const kiln_plan* plan, const kiln_value* values, void* workspace,
                                 size_t workspace_bytes, void* cuda_stream);

#ifdef __cplusplus
}  // extern "C"
#endif
