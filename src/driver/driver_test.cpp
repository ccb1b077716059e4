// The commands end to end: exit codes, where the text goes, and that nothing partial is written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/device.h"
#include "driver/commands.h"
#include "io/npy.h"
#include "support/file.h"

namespace kiln::driver {
namespace {

constexpr const char* kMatmul = R"(
__co__ void matmul(global f16 [M, K] lhs, global f16 [N, K] rhs, global f16 [M, N] output) {
  parallel {bm, bn} by [cdiv(M, 16), cdiv(N, 16)] : block {
    shared f16 [16, 16] output_s;
    parallel w by 1 : group {
      mc = mma.fill 0.0;
      foreach k in [cdiv(K, 16)] {
        lhs_s = dma.copy lhs.subspan(16, 16).at(bm, k) => shared;
        rhs_s = dma.copy rhs.subspan(16, 16).at(bn, k) => shared;
        ma = mma.load lhs_s;
        mb = mma.load rhs_s;
        mma.row.row mc, ma, mb;
      }
      mma.store mc, output_s;
    }
    dma.copy output_s => output.subspan(16, 16).at(bm, bn);
  }
}
)";

constexpr const char* kTwice = R"(
__co__ void twice(global f32 [N] x, global f32 [N] y) {
  parallel b by cdiv(N, 32) : block, t by 32 : thread
    if (b # t < N)
      y.at(b # t) = x.at(b # t) * 2.0f;
}
)";

class DriverTest : public testing::Test {
 protected:
  DriverTest()
      : folder_(std::filesystem::temp_directory_path() / format("kiln_driver_{}", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~DriverTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(write_file(path, text).has_value());
    return path;
  }
  std::string path(const std::string& name) { return (folder_ / name).string(); }

  template <class Options>
  io::Exit call(io::Exit (*command)(const Options&, io::Console&), const Options& options) {
    out_.str("");
    err_.str("");
    io::Console console{.out = out_, .err = err_, .progress = is_watched_};
    return command(options, console);
  }
  io::Exit run_matmul(RunOptions options) {
    if (options.program.file.empty()) options.program.file = file("matmul.co", kMatmul);
    if (options.program.arch.empty()) options.program.arch = "sm_80";
    if (options.on == "auto") options.on = "sim";
    return call(run, options);
  }
  [[nodiscard]] bool err_has(std::string_view text) const {
    return err_.str().find(text) != std::string::npos;
  }
  nlohmann::json json() { return nlohmann::json::parse(out_.str(), nullptr, false); }

  std::filesystem::path folder_;
  bool is_watched_ = false;  // `err` is a terminal
  std::ostringstream out_;
  std::ostringstream err_;
};

const std::vector<std::string> kShape = {"M=20,N=18", "K=37"};
const std::string kExpect = "output[m,n] = lhs[m,k] * rhs[n,k]";

TEST_F(DriverTest, CheckSaysFineOrShowsTheMistake) {
  EXPECT_EQ(call(check, {.program = {file("a.co", kMatmul), "sm_80", {}}}), io::Exit::kFine);
  EXPECT_NE(out_.str().find("fine for sm_80 (1 kernel)"), std::string::npos);
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(call(check, {.program = {file("b.co", "__co__ void f() { x = y; }"), "sm_80", {}}}),
            io::Exit::kWrong);
  EXPECT_TRUE(err_has("error["));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(DriverTest, CheckJsonIsAnArrayOnTheStandardOutput) {
  EXPECT_EQ(call(check, {.program = {file("a.co", kMatmul), "sm_80", {}}, .json = true}),
            io::Exit::kFine);
  EXPECT_EQ(json(), nlohmann::json::array());
  EXPECT_EQ(
      call(check, {.program = {file("b.co", "__co__ void f() { x = y; }"), "", {}}, .json = true}),
      io::Exit::kWrong);
  ASSERT_TRUE(json().is_array());
  for (const char* key : {"id", "severity", "file", "line", "column", "message", "help"}) {
    EXPECT_TRUE(json().at(0).contains(key)) << key;
  }
}

TEST_F(DriverTest, BenchWithoutAGpuExitsWithThreeAndWritesNothing) {
  if (backends::device_arch() != nullptr) GTEST_SKIP() << "not tested: this machine has a GPU";
  const std::string json_file = path("bench.jsonl");
  EXPECT_EQ(call(bench, {.program = {file("matmul.co", kMatmul), "sm_80", {}},
                         .shapes = {"M=64,N=64,K=64"},
                         .expect = kExpect,
                         .json = json_file}),
            io::Exit::kEnvironment);
  EXPECT_TRUE(err_has("error: no GPU that kiln can use"));
  EXPECT_EQ(out_.str(), "");
  EXPECT_FALSE(std::filesystem::exists(json_file));
}

TEST_F(DriverTest, WrongCommandLinesExitWithTwo) {
  const std::string co = file("matmul.co", kMatmul);
  EXPECT_EQ(call(check, {.program = {co, "sm_70", {}}}), io::Exit::kUsage);
  EXPECT_TRUE(err_has(target::arch_names()));
  EXPECT_EQ(call(check, {.program = {co, "sm_80", {"3=4"}}}), io::Exit::kUsage);
  EXPECT_EQ(run_matmul({.on = "tpu"}), io::Exit::kUsage);
  EXPECT_EQ(run_matmul({.fill = "random"}), io::Exit::kUsage);
  EXPECT_EQ(run_matmul({.shapes = {"M:3"}}), io::Exit::kUsage);
  EXPECT_EQ(run_matmul({.kernel = "matmull", .shapes = kShape}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("did you mean `matmul`?"));
  EXPECT_EQ(run_matmul({.shapes = kShape, .outputs = {"lhs=" + path("c.npy")}}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("output-unknown"));
  EXPECT_EQ(run_matmul({.shapes = kShape, .expect = "output[m,n] ="}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("expect-syntax"));
  EXPECT_EQ(run_matmul({.shapes = kShape, .expect = "lhs[m,k] = output[m,n] * rhs[n,k]"}),
            io::Exit::kUsage);
  EXPECT_TRUE(err_has("expect-output"));
}

TEST_F(DriverTest, MissingShapeNamesTheDimension) {
  EXPECT_EQ(run_matmul({.shapes = {"M=4,N=4"}}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("shape-missing"));
  EXPECT_TRUE(err_has("`K`"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(DriverTest, OverflowingExtentsAreRefused) {
  EXPECT_EQ(run_matmul({.shapes = {"M=2147483647,N=2147483647,K=1"}}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("shape-overflow"));
  EXPECT_EQ(run_matmul({.shapes = {"M=4294967296,N=1,K=1"}}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("shape-range"));
}

TEST_F(DriverTest, UnreadableFilesExitWithThree) {
  EXPECT_EQ(call(check, {.program = {path("missing.co"), "sm_80", {}}}), io::Exit::kEnvironment);
  EXPECT_EQ(call(check, {.program = {folder_.string(), "sm_80", {}}}), io::Exit::kEnvironment);
  EXPECT_TRUE(err_has("folder"));
  EXPECT_EQ(run_matmul({.shapes = kShape, .inputs = {"lhs=" + path("missing.npy")}}),
            io::Exit::kEnvironment);
  EXPECT_EQ(run_matmul({.shapes = kShape, .inputs = {"lhs=" + file("bad.npy", "PK\x03")}}),
            io::Exit::kEnvironment);
  EXPECT_TRUE(err_has("not a usable .npy file"));
}

TEST_F(DriverTest, BinaryAndTruncatedSourcesAreDiagnosed) {
  std::string binary(
      "\x7f"
      "ELF\0\1\2\xff\xfe",
      9);
  EXPECT_EQ(call(check, {.program = {file("elf.co", binary), "sm_80", {}}}), io::Exit::kWrong);
  const std::string text = kMatmul;
  EXPECT_EQ(
      call(check, {.program = {file("cut.co", text.substr(0, text.size() / 2)), "sm_80", {}}}),
      io::Exit::kWrong);
}

TEST_F(DriverTest, RunOnTheReference) {
  EXPECT_EQ(run_matmul({.on = "reference", .shapes = kShape, .expect = kExpect, .json = true}),
            io::Exit::kFine);
  EXPECT_EQ(json().at("outputs").at(0).at("outside"), 0);
  EXPECT_TRUE(json().at("races").is_null());
}

TEST_F(DriverTest, RunInTheSimulatorForEveryFill) {
  for (const char* fill : {"normal", "integers", "ones", "adversarial"}) {
    EXPECT_EQ(run_matmul({.shapes = kShape, .fill = fill, .expect = kExpect, .json = true}),
              io::Exit::kFine)
        << fill << err_.str();
    const nlohmann::json report = json();
    EXPECT_EQ(report.at("kernel"), "matmul");
    EXPECT_EQ(report.at("arch"), "sm_80");
    EXPECT_EQ(report.at("on"), "sim");
    EXPECT_EQ(report.at("shape"), nlohmann::json({{"M", 20}, {"N", 18}, {"K", 37}}));
    EXPECT_EQ(report.at("outputs").at(0).at("elements"), 360);
    EXPECT_EQ(report.at("outputs").at(0).at("outside"), 0);
    for (const char* key : {"races", "deadlocks", "uninitialised", "out_of_bounds"}) {
      EXPECT_EQ(report.at(key), 0) << key;
    }
    EXPECT_TRUE(report.contains("seconds") && report.contains("bank_conflicts"));
    EXPECT_GT(report.at("instructions").at("m16n8k16.f16.f16"), 0);
    EXPECT_EQ(report.size(), 12U);
  }
}

TEST_F(DriverTest, WrongExpectationIsOutsideAndExitsWithOne) {
  EXPECT_EQ(run_matmul({.on = "reference",
                        .shapes = {"M=16,N=16,K=16"},
                        .expect = "output[m,n] = 2 * lhs[m,k] * rhs[n,k]",
                        .json = true}),
            io::Exit::kWrong);
  EXPECT_GT(json().at("outputs").at(0).at("outside"), 200);
  EXPECT_TRUE(err_has("result-outside"));
}

TEST_F(DriverTest, FilesInAndOut) {
  Tensor lhs = Tensor::zeros(DType::kF16, {3, 2});
  Tensor rhs = Tensor::zeros(DType::kF16, {2, 2});
  for (std::size_t i = 0; i < 6; ++i) lhs.set(i, static_cast<double>(i + 1));
  for (std::size_t i = 0; i < 4; ++i) rhs.set(i, static_cast<double>(i));
  ASSERT_TRUE(io::write_npy(path("lhs.npy"), lhs).has_value());
  ASSERT_TRUE(io::write_npy(path("rhs.npy"), rhs).has_value());
  const std::vector<std::string> inputs = {"lhs=" + path("lhs.npy"), "rhs=" + path("rhs.npy")};
  EXPECT_EQ(run_matmul({.inputs = inputs, .outputs = {"output=" + path("c.npy")}}),
            io::Exit::kFine);
  const auto output = io::read_npy(path("c.npy"));
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->tensor.shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(output->tensor.get(0), 2);   // (1, 2) . (0, 1)
  EXPECT_EQ(output->tensor.get(5), 28);  // (5, 6) . (2, 3)
  EXPECT_EQ(
      run_matmul({.shapes = {"K=3"}, .inputs = inputs, .outputs = {"output=" + path("d.npy")}}),
      io::Exit::kUsage);
  EXPECT_TRUE(err_has("shape-conflict"));
  EXPECT_FALSE(std::filesystem::exists(path("d.npy")));
  EXPECT_EQ(run_matmul({.inputs = inputs, .outputs = {"output=" + path("no/c.npy")}}),
            io::Exit::kEnvironment);
}

TEST_F(DriverTest, SeveralKernelsNeedAName) {
  const std::string both = file("both.co", std::string(kMatmul) + kTwice);
  EXPECT_EQ(run_matmul({.program = {both, "", {}}, .shapes = {"N=40"}}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("`matmul`, `twice`"));
  EXPECT_EQ(run_matmul({.program = {both, "", {}},
                        .kernel = "twice",
                        .shapes = {"N=40"},
                        .expect = "y[i] = 2 * x[i]"}),
            io::Exit::kFine)
      << err_.str();
}

TEST_F(DriverTest, IrAfterPasses) {
  const std::string co = file("matmul.co", kMatmul);
  EXPECT_EQ(call(ir, {.program = {co, "sm_80", {}}}), io::Exit::kFine);
  const std::string last = out_.str();
  EXPECT_NE(last.find("m16n8k16.f16.f16"), std::string::npos);
  EXPECT_EQ(call(ir, {.program = {co, "sm_80", {}}, .after = "sema"}), io::Exit::kFine);
  EXPECT_EQ(out_.str().find("m16n8k16.f16.f16"), std::string::npos);
  EXPECT_EQ(call(ir, {.program = {co, "sm_80", {}}, .after = "all"}), io::Exit::kFine);
  EXPECT_NE(out_.str().find("// after select-atoms"), std::string::npos);
  EXPECT_NE(out_.str().find(last), std::string::npos);
  EXPECT_EQ(call(ir, {.program = {co, "sm_80", {}}, .after = "nothing"}), io::Exit::kUsage);
  EXPECT_TRUE(err_has("select-atoms"));
}

TEST_F(DriverTest, EmitWritesTheFileOrNothing) {
  const std::string co = file("matmul.co", kMatmul);
  EXPECT_EQ(call(emit, {.program = {co, "sm_80", {}}}), io::Exit::kFine);
  EXPECT_NE(out_.str().find("matmul"), std::string::npos);
  EXPECT_EQ(call(emit, {.program = {co, "sm_80", {}}, .output = path("a.cu")}), io::Exit::kFine);
  EXPECT_TRUE(std::filesystem::exists(path("a.cu")));
  EXPECT_EQ(call(emit, {.program = {co, "sm_80", {}}, .output = path("no/a.cu")}),
            io::Exit::kEnvironment);
  EXPECT_EQ(call(emit, {.program = {file("b.co", "__co__ void f( {"), "sm_80", {}},
                        .output = path("b.cu")}),
            io::Exit::kWrong);
  EXPECT_FALSE(std::filesystem::exists(path("b.cu")));
}

TEST_F(DriverTest, AtomsAndMaps) {
  EXPECT_EQ(call(atoms, {.arch = "sm_80"}), io::Exit::kFine);
  EXPECT_NE(out_.str().find("m16n8k16.f32.f16"), std::string::npos);
  EXPECT_EQ(call(atoms, {.json = true}), io::Exit::kFine);
  EXPECT_TRUE(json().is_array());
  EXPECT_EQ(call(atoms, {.arch = "sm_1"}), io::Exit::kUsage);
  EXPECT_EQ(call(map, {.atom = "m16n8k16.f32.f16"}), io::Exit::kFine);
  EXPECT_NE(out_.str().find("T28"), std::string::npos);
  EXPECT_EQ(call(map, {.atom = "m16n8k16.f32.f16", .operand = "A", .format = "json"}),
            io::Exit::kFine);
  EXPECT_EQ(json().at("operand"), "A");
  EXPECT_EQ(call(map, {.atom = "m1n1k1"}), io::Exit::kUsage);
  EXPECT_EQ(call(map, {.atom = "m16n8k16.f32.f16", .operand = "D"}), io::Exit::kUsage);
  for (const char* format : {"text", "svg", "html", "latex", "json"}) {
    EXPECT_EQ(call(map, {.atom = "m16n8k16.f32.f16", .format = format}), io::Exit::kFine) << format;
    EXPECT_EQ(call(map, {.atom = "ldmatrix.x4.trans", .format = format}), io::Exit::kFine)
        << format;
    EXPECT_EQ(call(map, {.atom = "(8,8):(8,1)", .format = format, .swizzle = "128"}),
              io::Exit::kFine);
  }
  EXPECT_EQ(call(map, {.atom = "m16n8k16.f32.f16", .format = "png"}), io::Exit::kUsage);
  EXPECT_EQ(call(map, {.atom = "(8,8):(8)"}), io::Exit::kUsage);
  EXPECT_EQ(call(map, {.atom = "(8,8):(8,1)", .output = path("no/a.svg")}), io::Exit::kEnvironment);
}

// What explain, build and emit say while they work is gone when they are done; a file has none of it.
TEST_F(DriverTest, WhatTakesLongSaysWhatItDoes) {
  ExplainOptions explained;
  explained.program = {.file = file("twice.co", kTwice), .arch = "sm_80"};
  EmitCommandOptions emitted;
  emitted.program = {.file = explained.program.file, .arch = "sm_80,sm_90a"};
  emitted.header = path("twice.co.h");
  emitted.ahead = "no";
  EXPECT_EQ(call(explain, explained), io::Exit::kFine) << err_.str();
  EXPECT_FALSE(err_has("\r"));
  EXPECT_EQ(call(emit_header, emitted), io::Exit::kFine) << err_.str();
  EXPECT_FALSE(err_has("\r"));
  is_watched_ = true;
  EXPECT_EQ(call(explain, explained), io::Exit::kFine) << err_.str();
  EXPECT_TRUE(err_has("\r\x1b[Kcompiling\r\x1b[K")) << err_.str();
  EXPECT_TRUE(err_has("\r\x1b[Kcounting\r\x1b[K")) << err_.str();
  EXPECT_TRUE(err_.str().ends_with("\r\x1b[K")) << err_.str();
  EXPECT_EQ(call(emit_header, emitted), io::Exit::kFine) << err_.str();
  EXPECT_TRUE(err_has("\r\x1b[Kcompiling twice [###############...............] 1/2\r\x1b[K"))
      << err_.str();
}

}  // namespace
}  // namespace kiln::driver
