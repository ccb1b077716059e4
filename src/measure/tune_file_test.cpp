// The whole of `kiln tune FILE.co` but the GPU: a device whose times and verdicts are made up.
#include "measure/tune_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "measure/tune_over.h"
#include "support/file.h"

namespace kiln::measure {
namespace {

// --- --over

std::vector<std::int64_t> values(const std::string& text) {
  Diagnostics diags;
  const auto overs = parse_over({text}, diags);
  EXPECT_EQ(overs.has_value(), !diags.has_errors()) << text;
  std::vector<std::int64_t> out;
  if (!overs) return out;
  for (const std::string& value : overs->front().values) out.push_back(std::stoll(value));
  return out;
}

std::string mistake(const std::vector<std::string>& texts) {
  Diagnostics diags;
  if (parse_over(texts, diags)) return "none";
  return std::string(info(diags.all().front().id).name);
}

TEST(TuneOver, RangesListsAndNumbers) {
  EXPECT_EQ(values("STAGES=2:5"), (std::vector<std::int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(values("N=64:250:64"), (std::vector<std::int64_t>{64, 128, 192}));
  EXPECT_EQ(values("N=64:256:64"), (std::vector<std::int64_t>{64, 128, 192, 256}));
  EXPECT_EQ(values("GROUP=4,16"), (std::vector<std::int64_t>{4, 16}));
  EXPECT_EQ(values("A=7"), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(values("A=-1:1"), (std::vector<std::int64_t>{-1, 0, 1}));
  EXPECT_EQ(values("A=0:9223372036854775807").size(), static_cast<std::size_t>(kCandidatesMax) + 1);
}

TEST(TuneOver, Mistakes) {
  for (const char* text : {"", "A", "A=", "=2:3", "A=2:", "A=:3", "A=1:2:3:4", "A=x", "A=1,,2",
                           "2A=1:2", "A=1.5", "A=1:2,3"}) {
    EXPECT_EQ(mistake({text}), "option-form") << text;
  }
  EXPECT_EQ(mistake({"A=3:2"}), "tune-range-empty");
  EXPECT_EQ(mistake({"A=2:3:0"}), "tune-range-empty");
  EXPECT_EQ(mistake({"A=1:2", "A=3:4"}), "option-twice");
  EXPECT_EQ(mistake({"A=1:2", "B=3:4"}), "none");
}

TEST(TuneOver, CombinationsAreTheCrossProduct) {
  Diagnostics diags;
  const auto overs = parse_over({"A=1:2", "B=3,5"}, diags);
  const auto all = combinations(*overs, diags);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ(values_text((*all)[1]), "A=1 B=5");
  EXPECT_EQ(values_text((*all)[2]), "A=2 B=3");
  EXPECT_FALSE(combinations(*parse_over({"A=1:200", "B=1:51"}, diags), diags));
  EXPECT_TRUE(combinations(*parse_over({"A=1:200", "B=1:50"}, diags), diags));
}

std::string macro_mistake(const std::string& over, const std::vector<std::string>& defines,
                          const std::string& text) {
  Diagnostics diags;
  const auto overs = parse_over({over}, diags);
  if (check_macros(*overs, defines, "f.co", text, diags)) return "none";
  const Diagnostic& first = diags.all().front();
  return std::string(info(first.id).name) + "; " + first.help;
}

TEST(TuneOver, MacrosMustBeTheFiles) {
  const std::string text = "#ifndef STAGES\n#define STAGES 2\n#endif\n// GONE\n/* GONE */ x[DEPTH]";
  EXPECT_EQ(macro_mistake("STAGES=1:2", {}, text), "none");
  EXPECT_EQ(macro_mistake("DEPTH=1:2", {}, text), "none");
  EXPECT_EQ(macro_mistake("STAGE=1:2", {}, text), "tune-macro-unused; did you mean `STAGES`?");
  EXPECT_EQ(macro_mistake("GONE=1:2", {}, text).substr(0, 17), "tune-macro-unused");
  EXPECT_EQ(macro_mistake("STAGES=1:2", {"STAGES=4"}, text).substr(0, 12), "option-twice");
}

// --- the command

constexpr const char* kSource = R"(#ifndef TILE
#define TILE 32
#endif
__co__ void scale(global f32 [N] x, global f32 [N] y) {
  parallel b by TILE : block {
    from = x.chunkat(b);
    to = y.chunkat(b);
    to.at(0) = from.at(0);
  }
}
)";

// What a paper device says of a candidate, by its values' text.
struct Paper {
  std::function<double(const std::string&)> seconds;
  std::string wrong = {};
};

class PaperField final : public TuneField {
 public:
  PaperField(const Paper& paper, std::vector<FileCandidate*> candidates)
      : paper_(paper), candidates_(std::move(candidates)) {}
  [[nodiscard]] std::size_t count() const override { return candidates_.size(); }
  [[nodiscard]] bool has_default() const override { return candidates_[0]->is_own(); }
  [[nodiscard]] Result<Verdict> check(std::size_t i) override {
    if (text(*candidates_[i]) != paper_.wrong) return Verdict{};
    return Verdict{Verdict::Kind::kWrong, "the first is [0]", 3, 4};
  }
  [[nodiscard]] Result<std::vector<std::vector<double>>> measure(std::span<const std::size_t> which,
                                                                 const TuneRound& round) override {
    std::vector<std::vector<double>> out;
    for (const std::size_t i : which) {
      out.emplace_back(static_cast<std::size_t>(round.repeats),
                       paper_.seconds(text(*candidates_[i])));
    }
    return out;
  }

 private:
  const Paper& paper_;
  std::vector<FileCandidate*> candidates_;
};

class PaperDevice final : public TuneFileDevice {
 public:
  PaperDevice(const Paper& paper, std::vector<std::string>& seen) : paper_(paper), seen_(seen) {}
  [[nodiscard]] Result<std::unique_ptr<TuneField>> open(
      const TunedProblem&, const std::vector<FileCandidate*>& candidates) override {
    for (const FileCandidate* each : candidates) {
      EXPECT_NE(each->program, nullptr);
      seen_.push_back(text(*each));
    }
    return std::unique_ptr<TuneField>(std::make_unique<PaperField>(paper_, candidates));
  }

 private:
  const Paper& paper_;
  std::vector<std::string>& seen_;
};

class TuneFile : public testing::Test {
 protected:
  TuneFile() : file_(testing::TempDir() + "kiln_tune.co"), json_(file_ + ".jsonl") {
    EXPECT_TRUE(write_file(file_, kSource));
    std::remove(json_.c_str());
  }
  io::Exit run(TuneOptions options, const Paper& paper) {
    options.program.file = file_;
    if (options.program.arch.empty()) options.program.arch = "sm_80";
    options.json = json_;
    std::ostringstream out;
    std::ostringstream err;
    io::Console console{.out = out, .err = err};
    seen_.clear();
    const io::Exit exit = tune_file(
        options,
        [&]() -> Result<std::unique_ptr<TuneFileDevice>> {
          return std::unique_ptr<TuneFileDevice>(std::make_unique<PaperDevice>(paper, seen_));
        },
        console);
    out_ = out.str();
    err_ = err.str();
    return exit;
  }
  std::string file_;
  std::string json_;
  std::string out_;
  std::string err_;
  std::vector<std::string> seen_;  // that came to the device
};

double faster_when_64(const std::string& values) { return values == "TILE=64" ? 2e-6 : 3e-6; }

TEST_F(TuneFile, TheFastestIsPrintedWithItsRatioToTheFilesOwn) {
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=32:128:32"}}, {.seconds = faster_when_64}),
            io::Exit::kFine)
      << err_;
  // 96 does not divide 4096: a check at the kernel's entry.
  EXPECT_EQ(seen_, (std::vector<std::string>{"the file's own", "TILE=32", "TILE=64", "TILE=128"}));
  EXPECT_NE(out_.find("1 dropped by entry-check-failed"), std::string::npos) << out_;
  EXPECT_NE(out_.find("      2.00 us   1.500x  TILE=64\n"), std::string::npos) << out_;
  EXPECT_NE(out_.find("best: -D TILE=64\n"), std::string::npos) << out_;
}

TEST_F(TuneFile, WithoutOverTheTemplateSaysWhatToTry) {
  const Paper paper{.seconds = faster_when_64};
  const std::string source =
      "template <[[tune(32, 2 * 32, 128)]] int TILE = 32, [[tune(f32, f16)]] type T = f32>\n"
      "requires (TILE <= 64)\n"
      "__co__ void copy(global T [N] x, global T [N] y) {\n"
      "  parallel b by cdiv(N, TILE) : block, t by TILE : thread\n"
      "    if (b # t < N) y.at(b # t) = x.at(b # t);\n"
      "}\n";
  ASSERT_TRUE(write_file(file_, source));
  EXPECT_EQ(run({.program = {.defines = {"T=f16"}}, .shapes = {"N=4096"}}, paper), io::Exit::kFine)
      << err_;
  EXPECT_EQ(seen_, (std::vector<std::string>{"the file's own", "TILE=32", "TILE=2 * 32"}));
  EXPECT_NE(out_.find("1 dropped by requires-false"), std::string::npos) << out_;
  EXPECT_EQ(run({.shapes = {"N=4096"}}, paper), io::Exit::kFine) << err_;
  EXPECT_EQ(seen_.size(), 5U);
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=64"}}, paper), io::Exit::kFine) << err_;
  EXPECT_EQ(seen_, (std::vector<std::string>{"the file's own", "TILE=64"}));
}

constexpr const char* kAttributes = R"(#ifndef TILE
#define TILE 16
#endif
__co__ void product(global f16 [M, K] x, global f16 [N, K] y, global f32 [M, N] z) {
  [[order(rows, 2)]]
  parallel {i, j} by [cdiv(M, 16), cdiv(N, TILE)] : block, w by 1 : group {
    c = mma.fill.f32 0.0f;
    [[pipeline]] foreach k in [cdiv(K, 16)] {
      s = dma.copy x.subspan(16, 16).at(i, k) => shared;
      t = dma.copy y.subspan(TILE, 16).at(j, k) => shared;
      p = mma.load s;
      q = mma.load t;
      mma.row.row c, p, q;
    }
    mma.store c, z.subspan(16, TILE).at(i, j);
  }
}
)";

double faster_with_six(const std::string& candidate) {
  return candidate.find("[[pipeline(6)]] at line 8") != std::string::npos ? 2e-6 : 3e-6;
}

TEST_F(TuneFile, AttributesAreTriedByThemselves) {
  ASSERT_TRUE(write_file(file_, kAttributes));
  const TuneOptions options{.shapes = {"M=64,N=64,K=256"}, .keep = 1000};
  EXPECT_EQ(run(options, {.seconds = faster_with_six}), io::Exit::kFine) << err_;
  // Five numbers of stages, with a producer and without, in eight orders.
  EXPECT_EQ(seen_.size(), 1 + 2 * 5 * 8U);
  EXPECT_NE(out_.find("best: no [[order]] at line 6 [[pipeline(6)]] at line 8\n"),
            std::string::npos)
      << out_;
  const auto lines = *read_file(json_);
  EXPECT_NE(lines.find(R"("line":8,"attribute":"[[pipeline(6)]]")"), std::string::npos) << lines;
}

double faster_along_the_curve(const std::string& candidate) {
  return candidate.find("[[order(hilbert)]]") != std::string::npos ? 2e-6 : 3e-6;
}

TEST_F(TuneFile, OrdersAreTriedWhereTheLoopIsLeftToTheCompiler) {
  std::string text = kAttributes;
  text.replace(text.find("[[order(rows, 2)]]"), std::string("[[order(rows, 2)]]").size(), "");
  ASSERT_TRUE(write_file(file_, text));
  const Paper paper{.seconds = faster_along_the_curve};
  TuneOptions options{.shapes = {"M=64,N=64,K=256"}, .keep = 1000};
  EXPECT_EQ(run(options, paper), io::Exit::kFine) << err_;
  EXPECT_EQ(seen_.size(), 1 + 2 * 5 * 8U);
  EXPECT_NE(out_.find("best: [[order(hilbert)]] at line 6 [[pipeline(2)]] at line 8"),
            std::string::npos)
      << out_;
  text.replace(text.find("[[pipeline]] "), std::string("[[pipeline]] ").size(), "");
  ASSERT_TRUE(write_file(file_, text));
  options.over = {"TILE=8,16"};
  EXPECT_EQ(run(options, paper), io::Exit::kFine) << err_;
  EXPECT_EQ(seen_, (std::vector<std::string>{"the file's own", "TILE=8", "TILE=16"}));
}

TEST_F(TuneFile, AttributesGoWithMacrosOrStay) {
  ASSERT_TRUE(write_file(file_, kAttributes));
  const Paper paper{.seconds = faster_with_six};
  TuneOptions options{.shapes = {"M=64,N=64,K=256"}, .over = {"TILE=8,16"}, .keep = 1000};
  EXPECT_EQ(run(options, paper), io::Exit::kFine) << err_;
  EXPECT_EQ(seen_.size(), 1 + 2 * 2 * 5 * 8U);
  EXPECT_NE(out_.find("best: -D TILE=8 no [[order]] at line 6 [[pipeline(6)]] at line 8"),
            std::string::npos)
      << out_;
  options.no_attributes = true;
  EXPECT_EQ(run(options, paper), io::Exit::kFine) << err_;
  EXPECT_EQ(seen_, (std::vector<std::string>{"the file's own", "TILE=8", "TILE=16"}));
}

TEST_F(TuneFile, EveryCandidateIsALineOfJson) {
  ASSERT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=32:128:32"}}, {.seconds = faster_when_64}),
            io::Exit::kFine);
  std::istringstream lines(*read_file(json_));
  std::vector<nlohmann::json> all;
  for (std::string text; std::getline(lines, text);) {
    all.push_back(nlohmann::json::parse(text, nullptr, false));
  }
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0]["default"], true);
  EXPECT_EQ(all[2]["best"], true);
  EXPECT_EQ(all[2]["defines"]["TILE"], "64");
  EXPECT_EQ(all[3]["dropped"], "entry-check-failed");
  EXPECT_FALSE(all[3].contains("seconds"));
  EXPECT_EQ(all[4]["seconds"], 3e-6);
}

TEST_F(TuneFile, AWrongCandidateIsReportedAndLosesHoweverFast) {
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=32,64"}},
                {.seconds = faster_when_64, .wrong = "TILE=64"}),
            io::Exit::kWrong);
  EXPECT_NE(
      err_.find(
          "error[result-outside]: `the result by TILE=64`: 3 of 4 elements outside the bound"),
      std::string::npos)
      << err_;
  EXPECT_NE(out_.find("best: the file's own"), std::string::npos) << out_;
}

TEST_F(TuneFile, TheModelKeepsAsManyAsAskedFor) {
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=32,64,128,256"}, .keep = 2},
                {.seconds = faster_when_64}),
            io::Exit::kFine)
      << err_;
  EXPECT_EQ(seen_.size(), 2U);
  EXPECT_EQ(seen_.front(), "the file's own");
  EXPECT_NE(out_.find("3 dropped by the cost model"), std::string::npos) << out_;
}

TEST_F(TuneFile, WithNothingLeftTheReasonsAreCounted) {
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=33,35,0"}}, {.seconds = faster_when_64}),
            io::Exit::kWrong);
  EXPECT_NE(err_.find("error[tune-nothing-left]: none of the 3 candidates"), std::string::npos)
      << err_;
  EXPECT_NE(err_.find("2 dropped by entry-check-failed: "), std::string::npos) << err_;
  EXPECT_NE(err_.find("1 dropped by "), std::string::npos) << err_;
  EXPECT_TRUE(seen_.empty());
}

TEST_F(TuneFile, MistakesOfTheCommandLine) {
  const Paper paper{.seconds = faster_when_64};
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=3:2"}}, paper), io::Exit::kUsage);
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILES=2:3"}}, paper), io::Exit::kUsage);
  EXPECT_NE(err_.find("did you mean `TILE`?"), std::string::npos) << err_;
  EXPECT_EQ(run({.shapes = {"N=4096"}, .over = {"TILE=32"}, .expect = "y[n] = z[n]"}, paper),
            io::Exit::kUsage);
  EXPECT_EQ(run({.program = {.arch = "sm_1"}, .over = {"TILE=32"}}, paper), io::Exit::kUsage);
  EXPECT_EQ(run({.over = {"TILE=32"}}, paper), io::Exit::kWrong);  // no candidate has an N
  EXPECT_NE(err_.find("shape-missing"), std::string::npos) << err_;
  EXPECT_TRUE(seen_.empty());
}

// --- the model

double modelled(const std::string& file, std::vector<std::string> defines,
                const std::vector<io::Assignment>& shapes) {
  std::ostringstream err;
  io::Console console{.out = err, .err = err};
  FileCandidate candidate;
  candidate.program = std::make_unique<io::Program>();
  const io::Exit exit = io::compile({.file = file, .arch = "sm_90a", .defines = std::move(defines)},
                                    {}, *candidate.program, console);
  EXPECT_EQ(exit, io::Exit::kFine) << err.str();
  const auto seconds = modelled_seconds(candidate, shapes);
  EXPECT_TRUE(seconds);
  return seconds.value_or(0);
}

TEST(TuneModel, LargeTilesAreFasterForLargeProducts) {
  const std::string file = std::string(KILN_KERNELS) + "/gemm_sm90.co";
  const std::vector<io::Assignment> shapes = {{"M", "2048"}, {"N", "2048"}, {"K", "4096"}};
  const double large = modelled(file, {"TILE_N=256"}, shapes);
  const double small = modelled(file, {"TILE_N=64", "WARPGROUPS=1"}, shapes);
  EXPECT_LT(large, small);
}

}  // namespace
}  // namespace kiln::measure
