/* kiln/kiln.h from C11: it compiles without a warning, and the library's functions have C names. */
#include "kiln/kiln.h"

#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", what, kiln_last_error());
  ++failures;
}

static const char* const kNegate =
    "__co__ void negate(global f32 [N] x, global f32 [N] y) {\n"
    "  parallel b by [N] : block {\n"
    "    parallel t by [1] : thread { y.at(b) = x.at(b) * -1.0f; }\n"
    "  }\n"
    "}\n";

int main(void) {
  kiln_compile_options options = {0};
  options.source = kNegate;
  options.arch = "sm_80";
  kiln_program* program = NULL;
  expect(kiln_compile(&options, &program) == KILN_OK, "the program compiles");
  if (program == NULL) return 1;
  expect(strstr(kiln_program_cuda(program), "negate") != NULL, "the CUDA text names the kernel");

  float x[3] = {1, 2, 3};
  float y[3] = {0, 0, 0};
  const int64_t shape[1] = {3};
  kiln_array arrays[2] = {{"x", x, "f32", shape, 1}, {"y", y, "f32", shape, 1}};
  kiln_call call = {0};
  call.arrays = arrays;
  call.array_count = 2;
  kiln_report* report = NULL;
  expect(kiln_simulate(program, &call, &report) == KILN_OK, "the kernel runs");
  expect(report != NULL && kiln_report_findings(report).ok, "nothing is found");
  expect(y[0] == -1 && y[2] == -3, "the array has the result");
  kiln_report_free(report);

  kiln_explanation* explanation = NULL;
  expect(kiln_explain(program, &call, &explanation) == KILN_OK, "the kernel is explained");
  expect(strstr(kiln_explanation_text(explanation), "negate") != NULL, "the text names the kernel");
  kiln_explanation_free(explanation);

  /* Without a GPU that is an error that says so; with one the kernel can be prepared. */
  kiln_plan* plan = NULL;
  const kiln_status prepared = kiln_prepare(program, &call, KILN_CURRENT_DEVICE, &plan);
  expect(plan != NULL, "there is an object in any case");
  if (prepared != KILN_OK) {
    expect(prepared == KILN_NO_GPU || prepared == KILN_NO_COMPILER, "the machine lacks something");
    expect(strlen(kiln_last_error()) > 10, "the error says what");
    kiln_value values[2] = {{.data = x}, {.data = y}};
    expect(kiln_launch(plan, values, NULL, 0, NULL) == KILN_INVALID, "nothing can be launched");
  }
  kiln_plan_free(plan);
  kiln_program_free(program);

  options.source = "__co__ void broken(";
  expect(kiln_compile(&options, &program) == KILN_REJECTED, "a torn program is refused");
  size_t count = 0;
  const kiln_diagnostic* rows = kiln_program_diagnostics(program, &count);
  expect(count != 0 && rows[0].line == 1, "its diagnostics have a place");
  kiln_program_free(program);
  return failures == 0 ? 0 : 1;
}
