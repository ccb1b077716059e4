// kiln/kiln.h: what is compiled, what is refused, and what can be asked of a program.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/test_support.h"
#include "kiln/kiln.h"

namespace {

using kiln::api::contains;

constexpr const char* kScale = R"(template <int STEP = 32>
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
};
using Program = std::unique_ptr<kiln_program, Free>;

Program compile(kiln_compile_options options, kiln_status expected = KILN_OK) {
  kiln_program* out = nullptr;
  EXPECT_EQ(kiln_compile(&options, &out), expected) << kiln_last_error();
  return Program(out);
}

kiln_compile_options text(const char* source) {
  kiln_compile_options options = {};
  options.source = source;
  options.arch = "sm_90a";
  return options;
}

TEST(ProgramApiTest, TellsOfKernelsAndTheirParameters) {
  const Program program = compile(text(kScale));
  size_t count = 0;
  const kiln_kernel* kernels = kiln_program_kernels(program.get(), &count);
  ASSERT_EQ(count, 1U);
  EXPECT_STREQ(kernels[0].name, "scale");
  ASSERT_EQ(kernels[0].parameter_count, 3U);
  const kiln_parameter* parameters = kernels[0].parameters;
  EXPECT_STREQ(parameters[0].name, "x");
  EXPECT_STREQ(parameters[0].dtype, "f32");
  ASSERT_EQ(parameters[0].rank, 2U);
  EXPECT_STREQ(parameters[0].dims[1], "N");
  EXPECT_EQ(parameters[0].is_written, 0);
  EXPECT_EQ(parameters[0].is_global, 1);
  EXPECT_EQ(parameters[1].is_tensor, 0);
  EXPECT_EQ(parameters[2].is_written, 1);
  EXPECT_EQ(parameters[2].is_read, 0);
  EXPECT_EQ(kernels[0].result, nullptr);
  ASSERT_EQ(kernels[0].dimension_count, 2U);
  EXPECT_STREQ(kernels[0].dimensions[0], "M");
  EXPECT_STREQ(kiln_program_arch(program.get()), "sm_90a");
}

TEST(ProgramApiTest, GivesTheCudaTextThatThePlaceAndTheParametersMake) {
  const char* defines[] = {"STEP=64"};
  kiln_compile_options options = text(kScale);
  options.defines = defines;
  options.define_count = 1;
  const Program wide = compile(options);
  const Program usual = compile(text(kScale));
  EXPECT_TRUE(contains(kiln_program_cuda(usual.get()), "__global__"));
  EXPECT_STRNE(kiln_program_cuda(usual.get()), kiln_program_cuda(wide.get()));
}

TEST(ProgramApiTest, MistakesAreDiagnostics) {
  const Program program = compile(
      text("__co__ void f(global f32 [M] x) {\n  parallel i by [y.span(0)] : block {}\n}\n"),
      KILN_REJECTED);
  ASSERT_NE(program, nullptr);
  size_t count = 0;
  const kiln_diagnostic* rows = kiln_program_diagnostics(program.get(), &count);
  ASSERT_GE(count, 1U);
  EXPECT_STREQ(rows[0].id, "unknown-name");
  EXPECT_EQ(rows[0].severity, KILN_ERROR);
  EXPECT_STREQ(rows[0].file, "<source>");
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[0].column, 18);
  EXPECT_TRUE(contains(rows[0].text, "parallel i by [y.span(0)]"));
  EXPECT_STREQ(kiln_last_error(), kiln_program_text(program.get()));
  kiln_program_kernels(program.get(), &count);
  EXPECT_EQ(count, 0U);
  EXPECT_STREQ(kiln_program_cuda(program.get()), "");
  kiln_report* report = nullptr;
  const kiln_call call = {};
  EXPECT_EQ(kiln_simulate(program.get(), &call, &report), KILN_INVALID);
  EXPECT_EQ(report, nullptr);
}

TEST(ProgramApiTest, OptionsThatAreNoneAreInvalid) {
  kiln_compile_options options = text(kScale);
  options.arch = "sm_12";
  const Program program = compile(options, KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "sm_12")) << kiln_last_error();
  EXPECT_STREQ(kiln_program_arch(program.get()), "");
  kiln_program* none = program.get();
  EXPECT_EQ(kiln_compile(nullptr, &none), KILN_INVALID);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(kiln_compile(&options, nullptr), KILN_INVALID);
  options = {};
  compile(options, KILN_INVALID);
  EXPECT_TRUE(contains(kiln_last_error(), "neither a file nor a text"));
  const char* defines[] = {"3=4", nullptr};
  options = text(kScale);
  options.defines = defines;
  options.define_count = 1;
  compile(options, KILN_INVALID);
  options.define_count = 2;
  EXPECT_EQ(compile(options, KILN_INVALID), nullptr);
  options = {};
  options.file = "/nowhere/at_all.co";
  EXPECT_EQ(compile(options, KILN_SYSTEM), nullptr);
  EXPECT_TRUE(contains(kiln_last_error(), "/nowhere/at_all.co"));
  kiln_program_free(nullptr);
}

TEST(ProgramApiTest, ThreadsCompileAtTheSameTime) {
  const Program one = compile(text(kScale));
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& out : texts) {
    threads.emplace_back([&] {
      const Program program = compile(text(kScale));
      out = std::string(kiln_program_cuda(program.get())) + kiln_program_cuda(one.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& out : texts) EXPECT_EQ(out, texts[0]);
}

}  // namespace
