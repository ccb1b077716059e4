#include "measure/bench_measure.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "measure/bench_machine.h"
#include "support/file.h"

namespace kiln::measure {
namespace {

BenchRow row_of_a_cube() {
  BenchRow row{.suite = "dense"};
  row.m = row.n = row.k = 1000;
  return row;
}

TEST(BenchMeasure, TimesBecomeARow) {
  BenchRow row = row_of_a_cube();
  fill_times({{1e-3, 2e-3, 4e-3}, {2e-3, 2e-3, 2e-3}}, row);
  EXPECT_EQ(row.repeats, 3);
  EXPECT_EQ(row.seconds, 2e-3);
  EXPECT_DOUBLE_EQ(*row.tflops, 1.0);
  EXPECT_DOUBLE_EQ(*row.baseline_seconds, 2e-3);
  EXPECT_DOUBLE_EQ(*row.baseline_tflops, 1.0);
  EXPECT_DOUBLE_EQ(*row.ratio, 1.0);    // of 2, 1 and 0.5
  EXPECT_DOUBLE_EQ(*row.spread, 0.75);  // from 0.75 to 1.5
  EXPECT_FALSE(row.dense_ratio.has_value());
}

TEST(BenchMeasure, AThirdContenderIsTheDenseLibrary) {
  BenchRow row = row_of_a_cube();
  fill_times({{1e-3}, {0.9e-3}, {1.4e-3}}, row);
  EXPECT_DOUBLE_EQ(*row.ratio, 0.9);
  EXPECT_DOUBLE_EQ(*row.dense_ratio, 1.4);
}

TEST(BenchMeasure, AloneItHasNoRatio) {
  BenchRow row = row_of_a_cube();
  fill_times({{1e-3, 3e-3}}, row);
  EXPECT_EQ(row.seconds, 2e-3);
  EXPECT_FALSE(row.ratio.has_value());
  EXPECT_FALSE(row.baseline_seconds.has_value());
}

TEST(BenchMeasure, EnergyIsOfALaunchAndOfOperations) {
  BenchRow row = row_of_a_cube();  // 2e9 operations
  fill_energy({0.004, 0.006, 0.1}, row);
  EXPECT_EQ(row.joules, 0.004);
  EXPECT_EQ(row.baseline_joules, 0.006);
  EXPECT_DOUBLE_EQ(*row.joules_per_tflop, 2);
  EXPECT_DOUBLE_EQ(*row.baseline_joules_per_tflop, 3);
  BenchRow moves{.suite = "file"};  // nothing that could be counted
  fill_energy({0.004}, moves);
  EXPECT_EQ(moves.joules, 0.004);
  EXPECT_FALSE(moves.joules_per_tflop || moves.baseline_joules);
}

TEST(BenchMachine, LinesAreAppended) {
  const std::string path = testing::TempDir() + "kiln_bench_lines.jsonl";
  std::filesystem::remove(path);
  ASSERT_TRUE(append_to_file(path, "").has_value());  // could be written
  for (const char* line : {"{\"a\":1}\n", "{\"b\":2}\n"}) {
    ASSERT_TRUE(append_to_file(path, line).has_value());
  }
  EXPECT_EQ(*read_file(path), "{\"a\":1}\n{\"b\":2}\n");
  std::filesystem::remove(path);
  const auto failed = append_to_file(testing::TempDir(), "x");
  ASSERT_FALSE(failed.has_value());
  EXPECT_NE(failed.error().text().find("cannot write"), std::string::npos);
}

}  // namespace
}  // namespace kiln::measure
