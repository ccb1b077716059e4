#include "driver/header_text.h"

#include <gtest/gtest.h>

#include "io/program.h"

namespace kiln::driver {
namespace {

// A file of one kernel; `program` keeps its types.
CarriedFile file_of(const char* text, io::Program& program) {
  io::ProgramOptions options;
  options.file = "my kernels.co";
  options.arch = "sm_90a";
  options.text = text;
  const auto exit = io::compile(options, {}, program);
  EXPECT_TRUE(exit && *exit == io::Exit::kFine);
  CarriedFile file{.name = "my kernels.co", .text = text, .archs = {"sm_90a"}, .defines = {}};
  for (const ir::Function& function : program.decided.functions) file.kernels.push_back(&function);
  return file;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HeaderText, HasTheTypesOfBothLanguages) {
  io::Program program;
  const CarriedFile file = file_of(R"(
__co__ void mixed(global f16 [M, K] a, global f8_e4m3 [K] b, global u8 [M] c, f16 h, f64 d, s64 n,
                  bool on, global s32 [M] out) {
  parallel i by [M] : block, t by 1 : thread {
    if (on) { out.at(i) = __to<s32>(n); }
  }
}
)",
                                   program);
  const std::string header = header_text(file);
  EXPECT_TRUE(
      has(header,
          "kiln_status launch_mixed(void* stream, const void* a, const void* b, const uint8_t* "
          "c, float h, double d, int64_t n, bool on, int32_t* out, int64_t M, int64_t K);"))
      << header;
  EXPECT_TRUE(
      has(header,
          "inline kiln::Failure mixed(void* stream, const kiln::DeviceTensor<const "
          "kiln::dtypes::f16, 2>& a, const kiln::DeviceTensor<const kiln::dtypes::f8_e4m3, "
          "1>& b, const kiln::DeviceTensor<const uint8_t, 1>& c, float h, double d, int64_t "
          "n, bool on, const kiln::DeviceTensor<int32_t, 1>& out) {"))
      << header;
  EXPECT_TRUE(has(header, "//   a: f16 [M, K]\n")) << header;
  EXPECT_TRUE(has(header, "//   out: s32 [M], written\n")) << header;
  EXPECT_TRUE(has(header, "int64_t kiln_dimensions[] = {a.extent(0), a.extent(1)};")) << header;
  EXPECT_TRUE(has(header, "extern kiln_embedded kiln_embedded_my_kernels;")) << header;
}

TEST(HeaderText, ChangesNamesThatTheLanguagesHave) {
  io::Program program;
  const CarriedFile file = file_of(R"(
__co__ void sqrtf(global f32 [class] kiln_call, global f32 [class] printf) {
  parallel i by [class] : block, t by 1 : thread printf.at(i) = kiln_call.at(i);
}
)",
                                   program);
  const std::string header = header_text(file);
  EXPECT_TRUE(
      has(header, "kiln_status launch_sqrtf_(void* stream, const float* kiln_call_2, float* "))
      << header;
  EXPECT_TRUE(has(header, ", int64_t class_);")) << header;
  EXPECT_TRUE(has(header, "{\"sqrtf\", kiln_arguments, 2, kiln_dimensions, 1, stream}")) << header;
}

TEST(HeaderText, HasOneStreamAndNoParameterWhoseConditionDoesNotHold) {
  io::Program program;
  const CarriedFile file = file_of(R"(
template <bool SCALED = false>
__co__ f32 [N] one(global f32 [N] x, stream s, if (SCALED) f32 factor) {
  f32 [N] y;
  parallel<s> i by [N] : block, t by 1 : thread y.at(i) = x.at(i);
  return y;
}
)",
                                   program);
  const std::string header = header_text(file);
  EXPECT_TRUE(
      has(header, "kiln_status launch_one(void* stream, const float* x, float* y, int64_t N);"))
      << header;
  EXPECT_TRUE(has(header, "//   y: f32 [N], returned\n")) << header;
}

TEST(HeaderText, NamesBeginWithTheNamespace) {
  io::Program program;
  CarriedFile file = file_of(
      "__co__ void f(global f32 [4] x) {\n  parallel i by 4 : thread x.at(i) = 0.0f;\n}", program);
  file.name_space = "my::norm";
  file.places = {"my kernels.co:1"};
  const std::string header = header_text(file);
  EXPECT_TRUE(has(header, "// f of my kernels.co:1\n")) << header;
  EXPECT_TRUE(has(header, "kiln_status launch_my_norm_f(void* stream, float* x);")) << header;
  EXPECT_TRUE(has(header, "namespace my::norm {\n\n[[nodiscard]] inline kiln::Failure f(void* "))
      << header;
  EXPECT_TRUE(has(header, "  return kiln::detail::launch(kiln_embedded_my_norm_my_kernels, "))
      << header;
  const std::string source = source_text(file, "f.h");
  EXPECT_TRUE(has(source, "\nkiln_embedded kiln_embedded_my_norm_my_kernels = {")) << source;
  EXPECT_TRUE(has(source, "\nkiln_status launch_my_norm_f(void* stream, float* x) {")) << source;
}

TEST(SourceText, CarriesTextAndMachineCode) {
  io::Program program;
  CarriedFile file = file_of(
      "// \"why?"
      "?/\"\t\n__co__ void f(global f32 [4] x) {\n"
      "  parallel i by 4 : thread x.at(i) = 0.0f;\n}",
      program);
  file.codes = {
      {.kernel = "f", .arch = "sm_90a", .key = "0123", .bytes = std::string("\x7f\0\xff", 3)}};
  const std::string source = source_text(file, "f.h");
  EXPECT_TRUE(has(source, "#include \"f.h\"\n")) << source;
  EXPECT_TRUE(has(source, R"(    "// \"why?\?/\"\011\n",)")) << source;
  EXPECT_TRUE(has(source, "    \"}\",\n};\n")) << source;
  EXPECT_TRUE(has(source, "kiln_code_0[] = {\n    127,0,255,\n};")) << source;
  EXPECT_TRUE(has(source, "{\"0123\", kiln_code_0, sizeof kiln_code_0},")) << source;
  EXPECT_TRUE(has(source, "{\"f\", kiln_arguments, 1, NULL, 0, stream}")) << source;
}

}  // namespace
}  // namespace kiln::driver
