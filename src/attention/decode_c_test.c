/* kiln/attention_decode.h from C11: it compiles without a warning, and the functions have C names. */
#include <stdio.h>
#include <string.h>

#include "kiln/attention_decode.h"

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (last error: %s)\n", what, kiln_last_error());
  ++failures;
}

int main(void) {
  kiln_attention_decode_problem problem = {0};
  kiln_attention_decode_operands operands = {0};
  expect(kiln_attention_decode_prepare(&problem, NULL) == KILN_INVALID, "zeros are no problem");
  expect(strstr(kiln_last_error(), "type 0 of its tensors") != NULL, "the error names the type");
  expect(kiln_attention_decode_prepare(NULL, NULL) == KILN_INVALID, "nor is null");
  problem.type = KILN_BF16;
  problem.heads = 8;
  problem.key_heads = 2;
  problem.depth = 64;
  expect(kiln_attention_decode_prepare(&problem, NULL) == KILN_INVALID, "it has no keys");
  problem.keys = 100;
  problem.page_size = 16;
  expect(kiln_attention_decode_prepare(&problem, NULL) == KILN_INVALID, "keys beside pages");
  expect(strstr(kiln_last_error(), "100 keys of each sequence beside pages") != NULL, "it says so");
  problem.page_size = 0;
  expect(kiln_attention_decode(&problem, NULL, NULL, 0, NULL) == KILN_INVALID, "no operands");
  expect(kiln_attention_decode(&problem, &operands, NULL, 0, NULL) == KILN_INVALID, "all are null");
  expect(strstr(kiln_last_error(), "q is null") != NULL, "the error names the operand");
  kiln_status status = KILN_INVALID;
  const char* kernel = kiln_attention_decode_kernel(&problem, &status);
  expect((kernel != NULL) == (status == KILN_OK), "there is a kernel unless there is an error");
  return failures == 0 ? 0 : 1;
}
