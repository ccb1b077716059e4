#include "measure/bench_suites.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::measure {
namespace {

TEST(BenchSuites, EachHasProblemsAndNoneTwice) {
  for (const std::string_view suite : suite_names()) {
    EXPECT_TRUE(is_suite(suite));
    std::set<std::string> seen;
    for (const gemm::Problem& problem : cases_of(suite)) {
      EXPECT_TRUE(seen.insert(shape_of(problem) + types_of(problem)).second)
          << suite << ": " << shape_of(problem) << " twice";
    }
    EXPECT_FALSE(seen.empty()) << suite;
  }
  EXPECT_FALSE(is_suite("dens"));
  EXPECT_FALSE(is_suite(""));
}

TEST(BenchSuites, HowMany) {
  EXPECT_EQ(cases_of("dense").size(), 2U * 6U);
  EXPECT_EQ(cases_of("llm").size(), 5U * 6U);
  EXPECT_EQ(cases_of("fp8").size(), 6U + 30U + 1U);
  EXPECT_EQ(cases_of("sparse").size(), 4U * 2U);
  EXPECT_EQ(cases_of("block-scaled").size(), 6U);
  EXPECT_EQ(cases_of("grouped").size(), 3U * 8U);
}

TEST(BenchSuites, WhatTheyAreAbout) {
  const auto has = [](std::string_view suite, const gemm::Problem& wanted) {
    const auto cases = cases_of(suite);
    return std::find(cases.begin(), cases.end(), wanted) != cases.end();
  };
  EXPECT_TRUE(has("dense", suite_problem(4000, 4000, 4000, {.ab = DType::kF16, .c = DType::kF16})));
  EXPECT_TRUE(
      has("dense", suite_problem(16384, 16384, 16384, {.ab = DType::kBF16, .c = DType::kBF16})));
  EXPECT_TRUE(has("llm", suite_problem(16, 8192, 28672, {.ab = DType::kBF16, .c = DType::kBF16})));
  EXPECT_TRUE(
      has("fp8", suite_problem(4096, 7168, 16384,
                               {.ab = DType::kE4M3, .c = DType::kBF16, .block_scales = true})));
  EXPECT_TRUE(
      has("fp8", suite_problem(4096, 7168, 16384,
                               {.ab = DType::kE4M3, .c = DType::kBF16, .tensor_scales = true})));
  EXPECT_TRUE(has("sparse", suite_problem(4096, 8192, 8192,
                                          {.ab = DType::kF16, .c = DType::kF16, .sparse = true})));
}

bool is_prime(std::int64_t n) {
  for (std::int64_t divisor = 2; divisor * divisor <= n; ++divisor) {
    if (n % divisor == 0) return false;
  }
  return n > 1;
}

TEST(BenchSuites, RaggedExtentsArePrime) {
  for (const gemm::Problem& problem : cases_of("ragged")) {
    for (const std::int64_t extent : {problem.m, problem.n, problem.k}) {
      EXPECT_TRUE(is_prime(extent)) << extent;
    }
  }
}

// A tile is 128 x 128; the smallest part has 108 multiprocessors.
TEST(BenchSuites, SmallOnesHaveFewTiles) {
  for (const gemm::Problem& problem : cases_of("small")) {
    const std::int64_t tiles = (problem.m + 127) / 128 * ((problem.n + 127) / 128);
    EXPECT_LE(tiles, 64) << shape_of(problem);
  }
}

TEST(BenchSuites, TextOfAProblem) {
  const gemm::Problem problem =
      suite_problem(16, 7168, 2048, {.ab = DType::kE4M3, .c = DType::kBF16, .tensor_scales = true});
  EXPECT_EQ(shape_of(problem), "M=16,N=7168,K=2048");
  EXPECT_EQ(types_of(problem), "f8_e4m3 * f8_e4m3 -> bf16, tensor scales");
}

TEST(BenchSuites, GroupsApartHaveFewerRowsThanRoom) {
  const auto cases = cases_of("grouped");
  EXPECT_EQ(shape_of(cases[0]), "M=32768,N=4096,K=7168,G=4");
  EXPECT_EQ(types_of(cases[0]), "f8_e4m3 * f8_e4m3 -> bf16, block scales, groups of 8192 rows");
  EXPECT_EQ(counted_rows(cases[0]), cases[0].m);
  EXPECT_EQ(shape_of(cases[6]), "M=16384,N=4096,K=7168,G=4");
  EXPECT_EQ(rows_of_each(cases[6]), 256);
  EXPECT_EQ(counted_rows(cases[6]), 1024);
  EXPECT_EQ(of_one_group(cases[6]).m, 256);
  EXPECT_EQ(of_one_group(cases[6]).groups, 0);
  EXPECT_TRUE(of_one_group(cases[6]).block_scales);
}

}  // namespace
}  // namespace kiln::measure
