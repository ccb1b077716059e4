#include "measure/bench_row.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::measure {
namespace {

BenchRow full_row() {
  return {.suite = "sparse",
          .kernel = "gemm_sparse",
          .m = 8192,
          .n = 4096,
          .k = 2048,
          .shape = "M=8192,N=4096,K=2048",
          .types = "f16 * f16 -> f16",
          .tflops = 801.25,
          .baseline_tflops = 790.5,
          .ratio = 1.0136,
          .spread = 0.0021,
          .baseline = "cuSPARSELt 0.8.1",
          .baseline_seconds = 1.7e-4,
          .baseline_sums = "full",
          .dense_baseline = "cuBLASLt 13.1.0",
          .dense_ratio = 1.42,
          .seconds = 1.67e-4,
          .repeats = 9,
          .defines = {{"STAGES", "4"}, {"TILE_N", "256"}},
          .compile_seconds = 0.41,
          .warm_load_seconds = 0.002,
          .worst = 0.31,
          .sm_mhz = 1755,
          .power_watt = 612.5,
          .graphs = true,
          .joules = 0.102,
          .baseline_joules = 0.104,
          .joules_per_tflop = 0.742,
          .baseline_joules_per_tflop = 0.757,
          .energy_source = "counter",
          .machine = {.arch = "sm_90a",
                      .device = "NVIDIA H200",
                      .clock_mhz = 1980,
                      .driver = "580.1",
                      .toolkit = "13.0",
                      .version = "0.1.0",
                      .commit = "0123abcd"}};
}

TEST(BenchRow, WhatIsWrittenIsRead) {
  const BenchRow full = full_row();
  const BenchRow empty{.suite = "file", .kernel = "axpy", .shape = "N=64", .seconds = 1e-5};
  const auto rows = parse_rows(to_json(full) + "\n" + to_json(empty), "x.jsonl");
  ASSERT_TRUE(rows.has_value()) << rows.error().text();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0], full);
  EXPECT_EQ((*rows)[1], empty);
}

TEST(BenchRow, ALineIsALine) {
  const std::string line = to_json(full_row());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find("{\"suite\":\"sparse\",\"kernel\":\"gemm_sparse\",\"m\":8192,"), 0U) << line;
  const std::string empty = to_json({.suite = "file"});
  EXPECT_NE(empty.find("\"ratio\":null"), std::string::npos) << empty;
  EXPECT_NE(empty.find("\"commit\":null"), std::string::npos) << empty;
}

TEST(BenchRow, EnergyStandsAtTheEndOfALine) {
  BenchRow row = full_row();
  EXPECT_NE(to_text(row).find("  102.000 mJ, 0.742 J/TFLOP (cuSPARSELt 0.8.1 104.000 mJ, 0.757)\n"),
            std::string::npos)
      << to_text(row);
  row.baseline_joules.reset();
  EXPECT_NE(to_text(row).find("  102.000 mJ, 0.742 J/TFLOP\n"), std::string::npos);
  row.joules.reset();
  EXPECT_EQ(to_text(row).find(" mJ"), std::string::npos);
}

TEST(BenchRow, LinesOfOthersAreRefusedByNumber) {
  for (const char* bad : {"{\"suite\":", "[]", "{\"kernel\":\"gemm\"}", "3"}) {
    const auto rows = parse_rows(to_json(full_row()) + bad + "\n", "x.jsonl");
    ASSERT_FALSE(rows.has_value()) << bad;
    EXPECT_NE(rows.error().text().find("line 2"), std::string::npos) << rows.error().text();
    EXPECT_NE(rows.error().text().find("x.jsonl"), std::string::npos) << rows.error().text();
  }
}

TEST(BenchRow, KeysOfOtherTypesCountAsMissing) {
  const auto rows = parse_rows(R"({"suite":"dense","m":"x","ratio":null,"kernel":7})", "x.jsonl");
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ((*rows)[0], (BenchRow{.suite = "dense"}));
}

TEST(BenchRow, GeometricMeanAndLeast) {
  std::vector<BenchRow> rows(4);
  rows[0].ratio = 2.0;
  rows[1].ratio = 0.5;
  rows[1].shape = "M=1";
  rows[2].ratio = 8.0;  // the arithmetic mean would be 3.5
  const RowSummary summary = summarise_rows(rows);
  EXPECT_EQ(summary.measured, 4);
  EXPECT_EQ(summary.compared, 3);
  EXPECT_DOUBLE_EQ(summary.geometric_mean, 2.0);
  EXPECT_EQ(summary.least, 0.5);
  EXPECT_EQ(to_text("dense", summary),
            "dense: 4 problems, 3 compared, geometric mean 2.000, least 0.500 (M=1)\n");
  EXPECT_EQ(to_text("dense", summarise_rows({})), "dense: 0 problems, none with a baseline\n");
}

TEST(BenchRow, OneLineOfText) {
  BenchRow row = full_row();
  row.joules.reset();
  EXPECT_EQ(to_text(row),
            "M=8192,N=4096,K=2048         f16 * f16 -> f16      167.00 us    801.2 TFLOP/s"
            "  cuSPARSELt 0.8.1   790.5  ratio 1.014 (spread 0.002)  1.420 of dense\n");
  EXPECT_EQ(to_text({.shape = "N=64", .seconds = 1e-5}),
            "N=64                                10.00 us\n");
}

TEST(BenchRow, BytesBecomeBandwidth) {
  EXPECT_EQ(to_text({.shape = "N=64",
                     .types = "bf16 -> bf16",
                     .bytes = 30'000,
                     .ratio = 0.8,
                     .spread = 0.01,
                     .baseline = "copy",
                     .baseline_seconds = 8e-6,
                     .seconds = 1e-5}),
            "N=64                         bf16 -> bf16       10.00 us      3.0 GB/s"
            "  copy     3.8 GB/s  ratio 0.800 (spread 0.010)\n");
}

TEST(BenchRow, OperationsThatAreToldGoBeforeTheShapes) {
  BenchRow row = full_row();
  row.flops = 2e12;
  EXPECT_DOUBLE_EQ(*tflops_of(row, 0.5), 4.0);
}

TEST(BenchRow, OperationsOfAProduct) {
  EXPECT_DOUBLE_EQ(*tflops_of(full_row(), 1.0), 2e-12 * 8192 * 4096 * 2048);
  EXPECT_FALSE(tflops_of({.suite = "file"}, 1.0).has_value());
}

}  // namespace
}  // namespace kiln::measure
