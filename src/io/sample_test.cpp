#include "io/sample.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln::io {
namespace {

TEST(Sample, BlocksAreOneOfEachShareOfTheGrid) {
  constexpr std::uint64_t kWork = 100'000'000;  // of a block
  const auto blocks = sample_of_blocks(Check::kSample, 100, kWork, 7);
  ASSERT_EQ(blocks.size(), 15U);
  EXPECT_TRUE(std::ranges::is_sorted(blocks));
  EXPECT_LT(blocks.front(), 7);
  EXPECT_GE(blocks.back(), 93);
  EXPECT_LT(blocks.back(), 100);
  EXPECT_EQ(sample_of_blocks(Check::kSample, 100, kWork, 7), blocks);
  EXPECT_NE(sample_of_blocks(Check::kSample, 100, kWork, 8), blocks);
}

TEST(Sample, WhatTakesLittleIsWhole) {
  EXPECT_TRUE(sample_of_blocks(Check::kBySize, 100, 1000, 0).empty());
  EXPECT_FALSE(sample_of_blocks(Check::kBySize, 100, 1'000'000'000, 0).empty());
  EXPECT_EQ(sample_of_blocks(Check::kBySize, 5, 10'000'000'000, 0).size(), 1U);
  EXPECT_TRUE(sample_of_blocks(Check::kSample, 3, 1000, 0).empty());
}

TEST(Sample, MoreBlocksHaveThoseOfBeforeTheFirstAndTheLast) {
  const auto blocks = more_blocks({17, 60}, 100, 7);
  EXPECT_TRUE(std::ranges::is_sorted(blocks));
  EXPECT_EQ(std::ranges::adjacent_find(blocks), blocks.end());
  for (const std::int64_t each : {0, 17, 60, 99}) {
    EXPECT_TRUE(std::ranges::binary_search(blocks, each)) << each;
  }
  EXPECT_GE(blocks.size(), 8U);
  EXPECT_LE(blocks.size(), 10U);
  EXPECT_TRUE(more_blocks({1}, 3, 7).empty()) << "all";
}

TEST(Sample, RowsAreThoseThatTheReferenceKnows) {
  reference::Output output;
  output.shape = {100, 8};
  output.expected.resize(800);
  output.known.resize(800);
  std::fill_n(output.known.begin() + 40 * 8, 8, true);      // row 40
  std::fill_n(output.known.begin() + 90 * 8 + 2, 3, true);  // a part of row 90
  const auto runs = sample_of_rows(output);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].first, 320);
  EXPECT_EQ(runs[0].count, 8);
  EXPECT_EQ(runs[1].first, 722);
  EXPECT_EQ(runs[1].count, 3);
}

TEST(Sample, RunsOfRowsDoNotMeet) {
  for (const std::int64_t rows : {1, 5, 8, 9, 63, 64, 65, 1000}) {
    reference::Output output;
    output.shape = {rows, 3};
    output.expected.resize(static_cast<std::size_t>(rows) * 3);
    std::int64_t end = 0;
    std::int64_t elements = 0;
    for (const reference::ElementRun& run : sample_of_rows(output)) {
      EXPECT_GE(run.first, end) << rows;
      end = run.first + run.count;
      elements += run.count;
    }
    EXPECT_EQ(end, rows * 3);
    EXPECT_EQ(elements, std::min<std::int64_t>(rows, 64) * 3);
  }
}

}  // namespace
}  // namespace kiln::io
