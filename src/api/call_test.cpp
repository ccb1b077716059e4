// kiln/kiln.h: kernels that run on the caller's arrays, and arguments that do not fit.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "api/test_support.h"
#include "kiln/kiln.h"

namespace {

using kiln::api::contains;

constexpr const char* kAxpy = R"(__co__ void axpy(global f32 [N] x, f32 a, global f32 [N] y) {
  parallel b by [cdiv(N, 32)], t by [32] : thread {
    if (b * 32 + t < N) { y.at(b * 32 + t) = y.at(b * 32 + t) + x.at(b * 32 + t) * a; }
  }
}
)";

constexpr const char* kRace = R"(__co__ void shift(global f32 [64] x, global f32 [64] y) {
  parallel b by [1] : block {
    shared f32 [64] s;
    parallel t by [64] : thread {
      s.at(t) = x.at(t);
      y.at(t) = s.at(63 - t);
    }
  }
}
)";

constexpr const char* kReturns = R"(__co__ auto twice(f32 [N] x) {
  f32 [N] y;
  parallel i by [N] : block {
    parallel t by [1] : thread { y.at(i) = x.at(i) * 2.0f; }
  }
  return y;
}
)";

// A program, a call of it that can be changed, and what it gave.
class Call {
 public:
  explicit Call(const char* source) {
    kiln_compile_options options = {};
    options.source = source;
    options.arch = "sm_90a";
    EXPECT_EQ(kiln_compile(&options, &program_), KILN_OK) << kiln_last_error();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    kiln_report_free(report_);
    kiln_program_free(program_);
  }

  Call& array(const char* name, std::vector<float>& data, const char* dtype = "f32") {
    shapes_.push_back(std::make_unique<std::int64_t>(static_cast<std::int64_t>(data.size())));
    arrays_.push_back({name, data.data(), dtype, shapes_.back().get(), 1});
    return *this;
  }
  Call& number(const char* name, double value) {
    scalars_.push_back({name, 1, 0, value});
    return *this;
  }

  Call& at_most(std::uint64_t steps) {
    steps_max_ = steps;
    return *this;
  }

  kiln_status simulate(std::int64_t schedules = 1) { return run(kiln_simulate, schedules); }
  kiln_status reference() { return run(kiln_reference, 1); }

  [[nodiscard]] const kiln_report* report() const { return report_; }
  [[nodiscard]] std::string text() const { return kiln_report_text(report_); }
  [[nodiscard]] std::string first_id() const {
    size_t count = 0;
    const kiln_diagnostic* rows = kiln_report_diagnostics(report_, &count);
    return count == 0 ? "" : rows[0].id;
  }

 private:
  template <class Function>
  kiln_status run(Function function, std::int64_t schedules) {
    kiln_report_free(report_);
    kiln_call call = {};
    call.arrays = arrays_.data();
    call.array_count = arrays_.size();
    call.scalars = scalars_.data();
    call.scalar_count = scalars_.size();
    call.schedules = schedules;
    call.steps_max = steps_max_;
    return function(program_, &call, &report_);
  }

  kiln_program* program_ = nullptr;
  kiln_report* report_ = nullptr;
  std::uint64_t steps_max_ = 0;
  std::vector<kiln_array> arrays_;
  std::vector<kiln_scalar> scalars_;
  std::vector<std::unique_ptr<std::int64_t>> shapes_;
};

TEST(CallApiTest, SimulatesOnTheCallersArrays) {
  std::vector<float> x(100, 2);
  std::vector<float> y(100, 1);
  Call call(kAxpy);
  ASSERT_EQ(call.array("y", y).array("x", x).number("a", 3).simulate(4), KILN_OK)
      << kiln_last_error();
  EXPECT_EQ(y, std::vector<float>(100, 7));
  const kiln_findings found = kiln_report_findings(call.report());
  EXPECT_EQ(found.ok, 1) << call.text();
  EXPECT_EQ(found.races, 0);
  EXPECT_TRUE(contains(call.text(), "axpy on sim (sm_90a), N=100: ")) << call.text();
  EXPECT_TRUE(contains(call.text(), "0 races, 0 deadlocks")) << call.text();
  EXPECT_EQ(kiln_report_result(call.report()), nullptr);
  ASSERT_EQ(call.reference(), KILN_OK) << kiln_last_error();
  EXPECT_EQ(y, std::vector<float>(100, 13));
}

TEST(CallApiTest, RacesAreDiagnosticsOfTheReport) {
  std::vector<float> x(64, 2);
  std::vector<float> y(64, 1);
  Call call(kRace);
  ASSERT_EQ(call.array("x", x).array("y", y).simulate(3), KILN_OK) << kiln_last_error();
  const kiln_findings found = kiln_report_findings(call.report());
  EXPECT_EQ(found.ok, 0);
  EXPECT_GE(found.races, 1);
  EXPECT_GE(found.uninitialised_reads, 1);
  EXPECT_TRUE(contains(call.text(), "error[race]")) << call.text();
}

TEST(CallApiTest, WhatTheKernelReturnsIsInTheReport) {
  std::vector<float> x = {1, 2, 3};
  Call call(kReturns);
  ASSERT_EQ(call.array("x", x).simulate(), KILN_OK) << kiln_last_error();
  const kiln_array* result = kiln_report_result(call.report());
  ASSERT_NE(result, nullptr);
  EXPECT_STREQ(result->dtype, "f32");
  ASSERT_EQ(result->rank, 1U);
  ASSERT_EQ(result->shape[0], 3);
  EXPECT_EQ(static_cast<const float*>(result->data)[2], 6);
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3}));
}

TEST(CallApiTest, ArgumentsThatDoNotFitAreInvalidAndWriteNothing) {
  std::vector<float> x(100, 2);
  std::vector<float> y(90, 1);
  Call lengths(kAxpy);
  EXPECT_EQ(lengths.array("x", x).array("y", y).number("a", 1).simulate(), KILN_INVALID);
  EXPECT_EQ(lengths.first_id(), "shape-conflict");
  EXPECT_TRUE(contains(kiln_last_error(), "`N` is 100 by `x` and 90 by `y`")) << kiln_last_error();
  EXPECT_EQ(y, std::vector<float>(90, 1));
  Call type(kAxpy);
  EXPECT_EQ(type.array("x", x, "s32").array("y", x).number("a", 1).simulate(), KILN_INVALID);
  EXPECT_EQ(type.first_id(), "input-type");
  Call missing(kAxpy);
  EXPECT_EQ(missing.array("x", x).number("a", 1).simulate(), KILN_INVALID);
  EXPECT_EQ(missing.first_id(), "scalar-missing");
  EXPECT_TRUE(contains(missing.text(), "give an array for it")) << missing.text();
  Call number(kAxpy);
  EXPECT_EQ(number.array("x", x).array("y", x).simulate(), KILN_INVALID);
  EXPECT_TRUE(contains(number.text(), "give a number for it")) << number.text();
  Call unknown(kAxpy);
  EXPECT_EQ(unknown.array("x", x).array("z", x).number("a", 1).simulate(), KILN_INVALID);
  EXPECT_EQ(unknown.first_id(), "parameter-unknown");
  Call twice(kAxpy);
  EXPECT_EQ(twice.array("x", x).array("x", x).number("a", 1).simulate(), KILN_INVALID);
  EXPECT_EQ(twice.first_id(), "option-twice");
}

// Simulated arrays are kept apart: what threads do to each other through common memory would not be
// seen.
TEST(CallApiTest, MemoryThatIsSharedIsInvalidWhereItIsWritten) {
  std::vector<float> x(96, 1);
  Call call(kAxpy);
  call.array("x", x).array("y", x).number("a", 2);
  EXPECT_EQ(call.simulate(), KILN_INVALID);
  EXPECT_STREQ(kiln_last_error(),
               "cannot run `axpy`: `y`, which the kernel writes, shares memory with `x`");
  EXPECT_EQ(call.report(), nullptr);
  EXPECT_EQ(x, std::vector<float>(96, 1));
}

TEST(CallApiTest, WhatIsCopiedMaySourceAnythingThatIsWritten) {
  std::vector<float> x(32, 1);
  Call call(R"(__co__ void next(f32 [32] x, global f32 [32] y) {
  parallel t by 32 : thread y.at(t) = x.at(31 - t) + 1.0f;
}
)");
  call.array("x", x).array("y", x);
  EXPECT_EQ(call.simulate(), KILN_OK) << kiln_last_error();
  EXPECT_EQ(x, std::vector<float>(32, 2));
}

TEST(CallApiTest, HelpIsGivenInTheWordsOfACall) {
  std::vector<float> x(100, 2);
  std::vector<float> y(100, 2);
  Call call(kAxpy);
  call.array("x", x).array("y", y).number("a", 1).at_most(1);
  EXPECT_EQ(call.simulate(), KILN_OK);
  EXPECT_EQ(call.first_id(), "too-many-steps");
  EXPECT_TRUE(contains(call.text(), "allow them with `steps_max`")) << call.text();
  EXPECT_EQ(call.reference(), KILN_OK);
  EXPECT_TRUE(contains(call.text(), "allow them with `steps_max`")) << call.text();
  const std::string two = std::string(kAxpy) + kReturns;
  Call unnamed(two.c_str());
  EXPECT_EQ(unnamed.array("x", x).simulate(), KILN_INVALID);
  EXPECT_TRUE(contains(unnamed.text(), "choose one by its name")) << unnamed.text();
  EXPECT_FALSE(contains(unnamed.text(), "--kernel")) << unnamed.text();
}

TEST(CallApiTest, ArraysThatAreNoneAreInvalidWithoutAReport) {
  std::vector<float> x(100, 2);
  Call type(kAxpy);
  EXPECT_EQ(type.array("x", x, "float7").simulate(), KILN_INVALID);
  EXPECT_EQ(type.report(), nullptr);
  EXPECT_TRUE(contains(kiln_last_error(), "unknown type `float7`")) << kiln_last_error();
  EXPECT_EQ(kiln_simulate(nullptr, nullptr, nullptr), KILN_INVALID);
  kiln_report_free(nullptr);
}

}  // namespace
