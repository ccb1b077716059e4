// kiln/gemm.h without a GPU: what is refused before one is needed, and what the errors say.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "kiln/gemm.h"

namespace {

kiln::GemmProblem problem_of(int64_t m, int64_t n, int64_t k) {
  kiln::GemmProblem problem = {};
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.type_a = problem.type_b = problem.type_c = KILN_BF16;
  return problem;
}

std::string refusal(const kiln::GemmProblem& problem) {
  EXPECT_EQ(kiln_gemm_prepare(&problem, nullptr), KILN_INVALID);
  return kiln_last_error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GemmApiTest, ProblemsThatAreNoneAreInvalid) {
  EXPECT_EQ(kiln_gemm_prepare(nullptr, nullptr), KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "the problem is null")) << kiln_last_error();
  EXPECT_TRUE(contains(refusal({}), "types 0, 0 and 0"));
  EXPECT_TRUE(contains(refusal(problem_of(0, 8, 8)), "extents lie between 1"));
  kiln::GemmProblem problem = problem_of(8, 8, 8);
  problem.flags = 4096;
  EXPECT_TRUE(contains(refusal(problem), "unknown flags 0x1000"));
  problem = problem_of(8, 8, 8);
  problem.activation = 9;
  EXPECT_TRUE(contains(refusal(problem), "activation 9"));
  problem = problem_of(8, 8, 8);
  problem.lda = 7;
  EXPECT_TRUE(contains(refusal(problem), "8 rows of A have 8 elements and lie 7 apart"));
  problem = problem_of(8, 8, 8);
  problem.alignment = 24;
  EXPECT_TRUE(contains(refusal(problem), "an alignment of 24 bytes"));
  EXPECT_EQ(kiln_gemm_workspace(&problem, nullptr), KILN_INVALID);
}

TEST(GemmApiTest, TurnedOperandsHaveOtherRows) {
  kiln::GemmProblem problem = problem_of(24, 8, 16);
  problem.flags = KILN_GEMM_A_ALONG_M | KILN_GEMM_B_ALONG_N;
  problem.lda = 23;
  EXPECT_TRUE(contains(refusal(problem), "16 rows of A have 24 elements and lie 23 apart"));
  problem.lda = 24;
  problem.ldb = 7;
  EXPECT_TRUE(contains(refusal(problem), "16 rows of B have 8 elements and lie 7 apart"));
}

TEST(GemmApiTest, GroupsThatAreNoneAreInvalid) {
  kiln::GemmProblem problem = problem_of(300, 8, 16);
  problem.groups = -1;
  EXPECT_TRUE(contains(refusal(problem), "-1 groups, there may be 1 to 2147483647, or 0"));
  problem.groups = 4;
  problem.batch = 3;
  EXPECT_TRUE(contains(refusal(problem), "bf16[300,16] * bf16[4,8,16] -> bf16[300,8], 3 times"));
  EXPECT_TRUE(contains(refusal(problem), "4 groups and a batch of 3: start each of these"));
  problem.batch = 0;
  problem.stride_b = 127;
  EXPECT_TRUE(contains(refusal(problem), "4 matrices B of 128 elements lie 127 apart"));
  problem.stride_b = 0;
  problem.flags = KILN_GEMM_GROUPS_APART;
  EXPECT_TRUE(contains(refusal(problem), "a multiple of 128 rows each, and m is 300: take 512"));
  problem.groups = 0;
  EXPECT_TRUE(contains(refusal(problem), "rows of groups, and `groups` is 0"));
}

TEST(GemmApiTest, OperandsThatAreMissingAreInvalid) {
  kiln::GemmProblem problem = problem_of(8, 8, 8);
  EXPECT_EQ(kiln_gemm(&problem, nullptr, nullptr, 0, nullptr), KILN_INVALID);
  kiln::GemmOperands operands = {};
  const auto said = [&] {
    const kiln::Status status = kiln::gemm(problem, operands);
    EXPECT_EQ(status.code, KILN_INVALID);
    return std::string(status.message());
  };
  int memory = 0;
  EXPECT_EQ(said(), "A is null");
  operands.a = &memory;
  EXPECT_EQ(said(), "B is null");
  operands.b = &memory;
  EXPECT_EQ(said(), "C is null");
  operands.c = &memory;
  problem.flags = KILN_GEMM_BIAS;
  EXPECT_EQ(said(), "the bias is null");
  problem.flags = KILN_GEMM_RESIDUAL;
  EXPECT_EQ(said(), "the residual is null");
  problem.flags = KILN_GEMM_BLOCK_SCALES;
  EXPECT_EQ(said(), "a pointer to scale factors is null");
  problem.k = 32;
  problem.flags = KILN_GEMM_A_SPARSE;
  EXPECT_EQ(said(), "the metadata are null");
  problem.flags = 0;
  problem.groups = 2;
  EXPECT_EQ(said(), "group_of_tile is null");
  operands.group_of_tile = reinterpret_cast<const int32_t*>(reinterpret_cast<char*>(&memory) + 2);
  EXPECT_EQ(said(), "group_of_tile lies 2 bytes past a multiple of 4");
  problem.flags = KILN_GEMM_ROWS_OF_GROUP;
  EXPECT_EQ(said(), "rows_of_group is null");
  operands.rows_of_group = operands.group_of_tile;
  EXPECT_EQ(said(), "rows_of_group lies 2 bytes past a multiple of 4");
}

TEST(GemmApiTest, EachThreadHasItsLastError) {
  EXPECT_EQ(kiln_gemm_prepare(nullptr, nullptr), KILN_INVALID);
  const std::string ours = kiln_last_error();
  EXPECT_NE(ours, "");
  std::string before = "unset";
  std::string after;
  std::thread([&] {
    before = kiln_last_error();
    EXPECT_EQ(kiln_gemm_workspace(nullptr, nullptr), KILN_INVALID);
    after = kiln_last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(after, ours);
  EXPECT_EQ(kiln_last_error(), ours);
}

TEST(GemmApiTest, WithoutAGpuTheStatusSaysSo) {
  const kiln::GemmProblem problem = problem_of(256, 256, 256);
  kiln_status status = KILN_DEVICE;
  const char* kernel = kiln_gemm_kernel(&problem, &status);
  size_t bytes = 0;
  EXPECT_EQ(kiln::gemm_workspace(problem, bytes).code, status);
  if (status == KILN_OK) {
    EXPECT_TRUE(contains(kernel, " -D ")) << kernel;
  } else {
    EXPECT_EQ(kernel, nullptr);
    EXPECT_TRUE(status == KILN_NO_GPU || status == KILN_NO_COMPILER || status == KILN_UNSUPPORTED)
        << status << ": " << kiln_last_error();
    EXPECT_NE(std::string(kiln_last_error()), "");
  }
}

}  // namespace
