/* kiln/attention.h from C11: it compiles without a warning, and the library's functions have C names. */
#include <stdio.h>
#include <string.h>

#include "kiln/attention.h"

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", what, kiln_last_error());
  ++failures;
}

int main(void) {
  kiln_attention_problem problem = {0};
  kiln_attention_operands operands = {0};
  expect(kiln_attention_prepare(&problem) == KILN_INVALID, "a problem of zeros is none");
  expect(strstr(kiln_last_error(), "type 0 of its tensors") != NULL, "the error names the type");
  expect(kiln_attention_prepare(NULL) == KILN_INVALID, "nor is null");
  problem.type = KILN_BF16;
  problem.queries = 64;
  problem.heads = 6;
  problem.key_heads = 4;
  problem.depth = 64;
  expect(kiln_attention_prepare(&problem) == KILN_INVALID, "4 does not divide 6");
  expect(strstr(kiln_last_error(), "6 heads of q share 4") != NULL, "the error has both numbers");
  problem.key_heads = 0;
  expect(kiln_attention(&problem, NULL, NULL) == KILN_INVALID, "operands are missing");
  expect(kiln_attention(&problem, &operands, NULL) == KILN_INVALID, "all are null");
  expect(strstr(kiln_last_error(), "q is null") != NULL, "the error names the operand");
  kiln_attention_backward_problem gradients = {0};
  kiln_attention_backward_operands of_gradients = {0};
  expect(kiln_attention_backward_prepare(NULL, NULL) == KILN_INVALID, "a null problem is none");
  expect(kiln_attention_backward_prepare(&gradients, NULL) == KILN_INVALID, "nor are zeros");
  gradients.forward = problem;
  gradients.dk.row = 8;
  expect(kiln_attention_backward_prepare(&gradients, NULL) == KILN_INVALID, "rows of dk overlap");
  expect(strstr(kiln_last_error(), "rows of dk lie 8 elements apart") != NULL, "the error says so");
  gradients.dk.row = 0;
  expect(kiln_attention_backward(&gradients, NULL, NULL, 0, NULL) == KILN_INVALID, "no operands");
  expect(kiln_attention_backward(&gradients, &of_gradients, NULL, 0, NULL) == KILN_INVALID,
         "all are null");
  problem.type = KILN_E4M3;
  operands.q = operands.k = operands.v = operands.o = (void*)256;
  operands.lse = (float*)256;
  operands.q_scale = (float*)258;
  expect(kiln_attention(&problem, &operands, NULL) == KILN_INVALID, "a factor between two floats");
  expect(strstr(kiln_last_error(), "q_scale begins 2 bytes past") != NULL, "the error names it");
  operands.q_scale = NULL;
  problem.type = KILN_BF16;
  problem.left = 5;
  expect(kiln_attention_prepare(&problem) == KILN_INVALID, "a bound without a window");
  expect(
      strstr(kiln_last_error(), "5 keys to the left and 0 to the right without a window") != NULL,
      "the error has both numbers");
  problem.window = 2;
  expect(kiln_attention_prepare(&problem) == KILN_INVALID, "no number of windows");
  problem.window = 0;
  problem.left = 0;
  kiln_status status = KILN_INVALID;
  const char* kernel = kiln_attention_kernel(&problem, &status);
  expect((kernel != NULL) == (status == KILN_OK), "there is a kernel unless there is an error");
  return failures == 0 ? 0 : 1;
}
