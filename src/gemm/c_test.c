/* kiln/gemm.h from C11: it compiles without a warning, and the library's functions have C names. */
#include <stdio.h>
#include <string.h>

#include "kiln/gemm.h"

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", what, kiln_last_error());
  ++failures;
}

int main(void) {
  kiln_gemm_problem problem = {0};
  kiln_gemm_operands operands = {0};
  size_t bytes = 1;
  expect(strcmp(kiln_last_error(), "") == 0, "there is no error before the first");
  expect(kiln_gemm_prepare(&problem, &bytes) == KILN_INVALID, "a problem of zeros is none");
  expect(strstr(kiln_last_error(), "types 0, 0 and 0") != NULL, "the error names the types");
  problem.m = problem.n = problem.k = 64;
  problem.type_a = problem.type_b = problem.type_c = KILN_F16;
  expect(kiln_gemm(&problem, &operands, NULL, 0, NULL) == KILN_INVALID, "operands are missing");
  expect(strcmp(kiln_last_error(), "A is null") == 0, "the error names the operand");
  kiln_status status = KILN_INVALID;
  const char* kernel = kiln_gemm_kernel(&problem, &status);
  expect((kernel != NULL) == (status == KILN_OK), "there is a kernel unless there is an error");
  expect(kiln_gemm_workspace(&problem, &bytes) == status, "the same problem has the same status");
  return failures == 0 ? 0 : 1;
}
