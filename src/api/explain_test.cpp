// kiln/kiln.h: what a kernel costs, and what it declares to be tried.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "api/test_support.h"
#include "kiln/kiln.h"

namespace {

using kiln::api::contains;

constexpr const char* kScale =
    R"(template <[[tune(32, 64)]] int STEP = 32, [[tune(1, 2)]] int WIDE = 1>
__co__ void scale(global f32 [M, N] x, f32 factor, global f32 [M, N] y) {
  parallel i by [M] : block {
    parallel t by [STEP] : thread {
      foreach j in [cdiv(N, STEP)] {
        if (j * STEP + t < N) { y.at(i, j * STEP + t) = x.at(i, j * STEP + t) * factor; }
      }
    }
  }
}
)";

struct Free {
  void operator()(kiln_program* program) const { kiln_program_free(program); }
  void operator()(kiln_explanation* one) const { kiln_explanation_free(one); }
};
using Program = std::unique_ptr<kiln_program, Free>;
using Explanation = std::unique_ptr<kiln_explanation, Free>;

Program compile(const char* source) {
  kiln_compile_options options = {};
  options.source = source;
  options.arch = "sm_90a";
  kiln_program* out = nullptr;
  EXPECT_EQ(kiln_compile(&options, &out), KILN_OK) << kiln_last_error();
  return Program(out);
}

Explanation explain(const Program& program, const kiln_call& call, kiln_status expected = KILN_OK) {
  kiln_explanation* out = nullptr;
  EXPECT_EQ(kiln_explain(program.get(), &call, &out), expected) << kiln_last_error();
  return Explanation(out);
}

TEST(ExplainApiTest, WithoutAShapeItTakesFullTiles) {
  Program program = compile(kScale);
  const Explanation made = explain(program, {});
  program = nullptr;
  EXPECT_TRUE(contains(kiln_explanation_text(made.get()), "scale on sm_90a"))
      << kiln_explanation_text(made.get());
  EXPECT_TRUE(contains(kiln_explanation_json(made.get()), "\"kernel\""));
  EXPECT_TRUE(contains(kiln_explanation_html(made.get()), "<html"));
  size_t count = 1;
  kiln_explanation_diagnostics(made.get(), &count);
  EXPECT_EQ(count, 0U);
}

TEST(ExplainApiTest, ArraysOrNumbersSayTheShape) {
  const Program program = compile(kScale);
  const int64_t shape[] = {12, 96};
  const kiln_array arrays[] = {{"x", nullptr, "f32", shape, 2}, {"y", nullptr, "f32", shape, 2}};
  const kiln_scalar factor[] = {{"factor", 1, 0, 2.5}};
  kiln_call call = {};
  call.arrays = arrays;
  call.array_count = 2;
  call.scalars = factor;
  call.scalar_count = 1;
  const Explanation by_arrays = explain(program, call);
  const kiln_scalar numbers[] = {{"M", 0, 12, 0}, {"N", 0, 96, 0}, {"factor", 1, 0, 2.5}};
  kiln_call other = {};
  other.scalars = numbers;
  other.scalar_count = 3;
  const Explanation by_numbers = explain(program, other);
  EXPECT_STREQ(kiln_explanation_json(by_arrays.get()), kiln_explanation_json(by_numbers.get()));
  EXPECT_TRUE(contains(kiln_explanation_text(by_arrays.get()), "M=12, N=96"))
      << kiln_explanation_text(by_arrays.get());
}

TEST(ExplainApiTest, WhatDoesNotFitIsToldInTheWordsOfACall) {
  const Program program = compile(kScale);
  const kiln_scalar numbers[] = {{"M", 0, 12, 0}};
  kiln_call call = {};
  call.scalars = numbers;
  call.scalar_count = 1;
  const Explanation made = explain(program, call, KILN_INVALID);
  size_t count = 0;
  const kiln_diagnostic* rows = kiln_explanation_diagnostics(made.get(), &count);
  ASSERT_GE(count, 1U);
  EXPECT_FALSE(contains(kiln_last_error(), "--shape")) << kiln_last_error();
  EXPECT_TRUE(contains(rows[0].message, "`N`")) << rows[0].message;
  EXPECT_STREQ(kiln_explanation_text(made.get()), "");
  kiln_call named = {};
  named.kernel = "scales";
  explain(program, named, KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "scales")) << kiln_last_error();
  kiln_explanation* none = made.get();
  EXPECT_EQ(kiln_explain(nullptr, &call, &none), KILN_INVALID);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(kiln_explain(program.get(), &call, nullptr), KILN_INVALID);
  kiln_explanation_free(nullptr);
}

TEST(ExplainApiTest, TunablesAreWhatTheTemplateNames) {
  const Program program = compile(kScale);
  size_t count = 0;
  const kiln_tunable* rows = kiln_program_tunables(program.get(), &count);
  ASSERT_EQ(count, 2U);
  EXPECT_STREQ(rows[0].kernel, "scale");
  EXPECT_STREQ(rows[0].name, "STEP");
  ASSERT_EQ(rows[0].value_count, 2U);
  EXPECT_STREQ(rows[0].values[1], "64");
  EXPECT_STREQ(rows[1].name, "WIDE");
}

}  // namespace
