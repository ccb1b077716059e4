// `kiln bench random` over the driver of paper: its own kernels run on the CPU, and a plain program
// stands for the library's, right or wrong in ways that a kernel may be. Skipped without NVRTC.
#include "measure/bench_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "driver/commands.h"
#include "gemm/fake_driver_test.h"
#include "support/tensor.h"

// The kernels are bench_problem_test.cpp's.
namespace kiln::bench {
void run_on_cpu(const char* kernel, void** parameters);
}

namespace kiln::measure {
namespace {

enum class Mistake : std::uint8_t {
  kNone,
  kElement,    // one is off by one
  kUnwritten,  // one is left
  kGap,        // something is written between two rows
  kRandom,     // every start has other bits
  kRows,       // few rows are added up in another order
  kFails,      // the launch fails
  kGroup,      // all rows have the first group
  kKept,       // a row without a group is written
};

// bf16 -> f32, without epilogue: rows of C have gaps.
constexpr std::int64_t kM = 40;
constexpr std::int64_t kN = 64;
constexpr std::int64_t kK = 72;
constexpr std::int64_t kRow = 68;
constexpr const char* kText = "bf16*bf16->f32 m=40 n=64 k=72 ldc=68 invariant first=9 seed=5";

// The problem with groups, more rows, and a gap between the groups' matrices: four tiles, of which
// the seed gives some a group and some none.
constexpr std::int64_t kGroups = 2;
constexpr std::int64_t kStrideB = kN * kK + 8;
constexpr const char* kGrouped =
    "bf16*bf16->f32 m=500 n=64 k=72 groups=2 ldc=68 stride_b=4616 seed=5";

Mistake mistake;
int starts;

// What a map of the driver of paper says.
struct Map {
  std::byte* data;
  std::int64_t columns;
  std::int64_t rows;
};

// Where the matrix of a row's group begins in b; -1: the row has none.
std::int64_t place_in_b(const int* group_of_tile, std::size_t row) {
  if (group_of_tile == nullptr) return 0;
  const int group = group_of_tile[row / gemm::kGroupRows];
  if (group < 0 || group >= kGroups) return mistake == Mistake::kKept ? 0 : -1;
  return mistake == Mistake::kGroup ? 0 : group * kStrideB;
}

// The first three parameters are maps of a, b and c in some order: b alone has kN rows, and c alone
// rows of kN. With groups, which more than kM rows have, the fourth are their numbers.
void multiply(const FakeLaunch& launch) {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  float* c = nullptr;
  std::int64_t rows = 0;
  for (int i = 0; i < 3; ++i) {
    Map map{};
    std::memcpy(&map, launch.parameters[i], sizeof map);
    if (map.columns == kN) {
      c = reinterpret_cast<float*>(map.data);
      rows = map.rows;
    } else {
      (map.rows == kN ? b : a) = map.data;
    }
  }
  const int* group_of_tile = nullptr;
  if (rows > kM) std::memcpy(&group_of_tile, launch.parameters[3], sizeof group_of_tile);
  for (std::int64_t i = 0; i < rows * kN; ++i) {
    const auto row = static_cast<std::size_t>(i / kN);
    const auto column = static_cast<std::size_t>(i % kN);
    const std::int64_t place = place_in_b(group_of_tile, row);
    if (place < 0) continue;
    double sum = 0;
    for (std::size_t k = 0; k < kK; ++k) {
      sum += load_element(DType::kBF16, a, row * kK + k) *
             load_element(DType::kBF16, b, static_cast<std::size_t>(place) + column * kK + k);
    }
    c[row * kRow + column] = static_cast<float>(sum);
  }
  ++starts;
  float& one = c[7 * kRow + 3];
  if (mistake == Mistake::kElement) one += 1;
  if (mistake == Mistake::kUnwritten) std::memset(&one, 0xff, sizeof one);
  if (mistake == Mistake::kGap) c[7 * kRow + kN + 1] = 0;
  const bool other_bits =
      mistake == Mistake::kRandom ? starts % 2 == 0 : mistake == Mistake::kRows && rows < kM;
  if (other_bits) one = std::nextafter(one, 1e9F);
}

void run_kernel(const FakeLaunch& launch) {
  if (std::string_view(launch.kernel).starts_with("kiln_")) {
    bench::run_on_cpu(launch.kernel, launch.parameters);
  } else {
    multiply(launch);
  }
}

class BenchRandomTest : public FakeDriverTest {
 protected:
  BenchRandomTest() : FakeDriverTest(run_kernel) {}
  void prepare() override { mistake = Mistake::kNone; }
  io::Exit run(const std::string& only) {
    out_.str("");
    err_.str("");
    io::Console console{.out = out_, .err = err_};
    BenchOptions options;
    options.program.file = "random";
    options.only = only;
    options.count = 5;
    return driver::bench(options, console);
  }
  void expect_told(Mistake what, const std::string& words, const char* text = kText) {
    mistake = what;
    starts = 0;
    EXPECT_EQ(run(text), io::Exit::kWrong) << words;
    EXPECT_NE(err_.str().find(words), std::string::npos) << err_.str();
    // All that is needed to see it again.
    EXPECT_NE(err_.str().find(text), std::string::npos) << err_.str();
    EXPECT_NE(out_.str().find("1 problems checked, 1 outside"), std::string::npos) << out_.str();
  }
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(BenchRandomTest, ARightKernelIsFine) {
  EXPECT_EQ(run(kText), io::Exit::kFine) << err_.str();
  EXPECT_EQ(err_.str(), "");
  EXPECT_NE(out_.str().find("1 problems checked, 0 outside, 1 kernels"), std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("1  bf16*bf16->f32"), std::string::npos) << out_.str();
  // Two starts on normal values, one of the first rows, one on integers.
  starts = 0;
  EXPECT_EQ(run(kText), io::Exit::kFine);
  EXPECT_EQ(starts, 4);
}

TEST_F(BenchRandomTest, EveryMistakeIsTold) {
  expect_told(Mistake::kElement, "normal values: 1 of 2560 elements, the first is c[7, 3]");
  expect_told(Mistake::kUnwritten, "integers: 1 of 2560 elements, the first is c[7, 3]");
  expect_told(Mistake::kGap, "4 bytes in or around C were overwritten");
  expect_told(Mistake::kRandom, "other bits in the second run: 1 of 2560 elements");
  expect_told(Mistake::kRows, "other bits in fewer rows: 1 of 576 elements");
}

TEST_F(BenchRandomTest, GroupsAreFollowed) {
  EXPECT_EQ(run(kGrouped), io::Exit::kFine) << err_.str();
  EXPECT_NE(out_.str().find("1  gemm_grouped_sm90"), std::string::npos) << out_.str();
  expect_told(Mistake::kGroup, "of 32000 elements, the first is c[", kGrouped);
  expect_told(Mistake::kKept, "of 32000 elements, the first is c[", kGrouped);
}

TEST_F(BenchRandomTest, ADriverThatFailsEndsIt) {
  fake_->launch_status = 700;
  EXPECT_EQ(run(kText), io::Exit::kWrong);
  EXPECT_NE(err_.str().find("CUDA_ERROR_OF_PAPER"), std::string::npos) << err_.str();
}

TEST_F(BenchRandomTest, WhatIsNotServedIsCounted) {
  EXPECT_EQ(run("bf16*bf16->s32 m=8 n=8 k=8"), io::Exit::kUsage);
  EXPECT_NE(out_.str().find("1  other element types"), std::string::npos) << out_.str();
  EXPECT_NE(err_.str().find("leave no problem of `random`"), std::string::npos) << err_.str();
}

TEST_F(BenchRandomTest, TimeIsUpOnceSomethingIsChecked) {
  io::Console console{.out = out_, .err = err_};
  BenchOptions options;
  RandomReport report{.options = options, .console = console};
  report.checked = 1;
  EXPECT_FALSE(report.stop());  // no limit
  options.seconds = 1e-9;
  report.checked = 0;
  EXPECT_FALSE(report.stop());
  report.checked = 1;
  EXPECT_TRUE(report.stop());
  report.summarise(7);
  EXPECT_NE(out_.str().find("stopped after 1e-09 s, 7 problems were wanted"), std::string::npos)
      << out_.str();
}

TEST_F(BenchRandomTest, HowFarItIsIsSaidNowAndThen) {
  io::Console console{.out = out_, .err = err_};
  const BenchOptions options;
  RandomReport report{.options = options, .console = console};
  report.checked = 3;
  report.tell(7);
  EXPECT_EQ(err_.str(), "");
  report.start -= std::chrono::seconds(31);
  report.tell(7);
  report.tell(7);
  EXPECT_EQ(err_.str(), "31 s: 3 of 7 problems checked, 0 outside\n");
}

TEST_F(BenchRandomTest, OptionsOfOthersAreRefused) {
  io::Console console{.out = out_, .err = err_};
  BenchOptions options;
  options.program.file = "random";
  options.power = true;
  EXPECT_EQ(driver::bench(options, console), io::Exit::kUsage);
  EXPECT_NE(err_.str().find("`--power` does not go with `random`"), std::string::npos)
      << err_.str();
  options.shapes = {"M=16"};
  EXPECT_EQ(driver::bench(options, console), io::Exit::kUsage);
  EXPECT_NE(err_.str().find("`--shape` does not go with `random`"), std::string::npos)
      << err_.str();
}

}  // namespace
}  // namespace kiln::measure
