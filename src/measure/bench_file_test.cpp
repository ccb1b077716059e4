// `kiln bench FILE` over the driver of paper: a plain program stands for the kernel, right or wrong.
// Skipped without NVRTC.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/commands.h"
#include "gemm/fake_driver_test.h"
#include "measure/bench_row.h"

namespace kiln::measure {
namespace {

constexpr std::size_t kElements = 100;  // of x and of y
constexpr const char* kTwice =
    "__co__ void twice(global f32 [N] x, global f32 [N] y) {\n"
    "  parallel b by cdiv(N, 32) : block {\n"
    "    parallel t by 32 : thread {\n"
    "      if (b # t < N) y.at(b # t) = x.at(b # t) * 2.0f;\n"
    "    }\n"
    "  }\n"
    "}\n";

float factor;            // what the kernel of paper multiplies by
std::size_t multiplied;  // so many elements, from the first

void multiply(const FakeLaunch& launch) {
  const float* x = nullptr;
  float* y = nullptr;
  std::memcpy(&x, launch.parameters[0], sizeof x);
  std::memcpy(&y, launch.parameters[1], sizeof y);
  for (std::size_t i = 0; i < multiplied; ++i) y[i] = factor * x[i];
}

class BenchFileTest : public FakeDriverTest {
 protected:
  BenchFileTest() : FakeDriverTest(multiply) {}
  void prepare() override {
    factor = 2;
    multiplied = kElements;
    folder_ = std::filesystem::path(testing::TempDir()) / "kiln_bench_file";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "twice.co") << kTwice;
  }

  io::Exit run(const std::string& expect) {
    out_.str("");
    err_.str("");
    io::Console console{.out = out_, .err = err_};
    BenchOptions options;
    options.program.file = folder_ / file_;
    options.program.arch = "sm_90a";
    options.shapes = {"N=100"};
    options.expect = expect;
    options.repeats = 3;
    options.batch_seconds = 1e-4;
    options.json = folder_ / "rows.jsonl";
    options.graphs = graphs_;
    options.power = power_;
    return driver::bench(options, console);
  }

  // What was appended to the file of rows.
  std::vector<BenchRow> rows() const {
    std::stringstream text;
    text << std::ifstream(folder_ / "rows.jsonl").rdbuf();
    const auto rows = parse_rows(text.str(), "rows.jsonl");
    return rows ? *rows : std::vector<BenchRow>{};
  }

  std::string file_ = "twice.co";
  bool graphs_ = false;
  bool power_ = false;
  std::filesystem::path folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(BenchFileTest, WhatIsNoProductStandsBesideACopy) {
  for (const char* expect : {"", "y[i] = 2.0 * x[i] + 0.0 * exp(x[i])"}) {
    EXPECT_EQ(run(expect), io::Exit::kFine) << err_.str();
    ASSERT_FALSE(rows().empty()) << out_.str();
    const BenchRow row = rows().back();
    EXPECT_EQ(row.suite, "file");
    EXPECT_EQ(row.kernel, "twice");
    EXPECT_EQ(row.types, "f32 -> f32");
    EXPECT_EQ(row.bytes, 2 * 4 * kElements);
    EXPECT_EQ(row.baseline, "copy");
    EXPECT_TRUE(row.baseline_seconds.has_value());
    EXPECT_FALSE(row.tflops.has_value());
    EXPECT_FALSE(row.m.has_value());
  }
  EXPECT_EQ(rows().size(), 2);
}

TEST_F(BenchFileTest, ATensorThatNobodyTouchesNeedsNoElements) {
  std::string text = kTwice;
  text.replace(text.find("y) {"), 1, "y, global f32 [N] idle");
  std::ofstream(folder_ / "idle.co") << text;
  file_ = "idle.co";
  EXPECT_EQ(run(""), io::Exit::kFine) << err_.str();
  ASSERT_EQ(rows().size(), 1) << out_.str();
  EXPECT_EQ(rows().back().bytes, 2 * 4 * kElements);
}

// Its results could not be compared with the first one's.
TEST_F(BenchFileTest, ACandidateThatWritesAnotherTensorIsRefused) {
  std::ofstream(folder_ / "more.co")
      << "template <[[tune(32, 64)]] int T = 32>\n"
         "__co__ void twice(global f32 [N] x, global f32 [N] y, global f32 [N] z) {\n"
         "  parallel b by cdiv(N, T) : block, t by T : thread {\n"
         "    if (b * T + t < N) {\n"
         "      y.at(b * T + t) = x.at(b * T + t) * 2.0f;\n"
         "      if constexpr (T == 64) z.at(b * T + t) = 1.0f;\n"
         "    }\n"
         "  }\n"
         "}\n";
  io::Console console{.out = out_, .err = err_};
  TuneOptions options;
  options.program.file = folder_ / "more.co";
  options.program.arch = "sm_90a";
  options.shapes = {"N=100"};
  EXPECT_EQ(driver::tune(options, console), io::Exit::kFine) << err_.str();
  EXPECT_NE((out_.str() + err_.str())
                .find("T=64 refused: it takes or writes other tensors than the first candidate"),
            std::string::npos)
      << out_.str() << err_.str();
}

TEST_F(BenchFileTest, GraphsAndEnergyAreMeasured) {
  graphs_ = power_ = true;
  const int graphs = fake_->graph_starts;
  EXPECT_EQ(run(""), io::Exit::kFine) << err_.str();
  ASSERT_FALSE(rows().empty()) << out_.str();
  const BenchRow row = rows().back();
  EXPECT_TRUE(row.graphs);
  EXPECT_GT(fake_->graph_starts, graphs);
  EXPECT_EQ(fake_->graphs_held, 0);
  EXPECT_EQ(row.energy_source, "counter");
  EXPECT_GT(row.joules.value_or(0), 0);
  EXPECT_GT(row.baseline_joules.value_or(0), 0);
  EXPECT_FALSE(row.joules_per_tflop.has_value());
  EXPECT_NE(out_.str().find(" mJ (copy "), std::string::npos) << out_.str();
}

TEST_F(BenchFileTest, WhatCannotBeAGraphIsToldByItsName) {
  graphs_ = true;
  fake_->capture_status = 900;
  EXPECT_EQ(run(""), io::Exit::kEnvironment);
  EXPECT_NE(err_.str().find("cannot measure in graphs of launches `twice`"), std::string::npos)
      << err_.str();
  EXPECT_TRUE(rows().empty());
}

TEST_F(BenchFileTest, AWrongResultHasNoRow) {
  factor = 2.001F;
  EXPECT_EQ(run(""), io::Exit::kWrong);
  EXPECT_NE(err_.str().find("`y`"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("100 elements"), std::string::npos) << err_.str();
  EXPECT_TRUE(rows().empty());
}

TEST_F(BenchFileTest, AnElementThatNobodyWroteHasNoRow) {
  multiplied = kElements - 1;
  EXPECT_EQ(run(""), io::Exit::kWrong);
  EXPECT_NE(err_.str().find("the first is [99]"), std::string::npos) << err_.str();
  EXPECT_TRUE(rows().empty());
}

TEST_F(BenchFileTest, AnotherFormulaThanTheKernelsHasNoRow) {
  EXPECT_EQ(run("y[i] = 3.0 * x[i] + 0.0 * exp(x[i])"), io::Exit::kWrong);
  EXPECT_NE(err_.str().find("`y`"), std::string::npos) << err_.str();
  EXPECT_TRUE(rows().empty());
}

}  // namespace
}  // namespace kiln::measure
