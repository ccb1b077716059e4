// The whole of `kiln tune SUITE` but the GPU: a device whose times and verdicts are made up.
#include "measure/tune_library.h"
#include "backends/device.h"

#include <gtest/gtest.h>

#include <set>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "driver/commands.h"
#include "measure/bench_sets.h"
#include "support/file.h"

namespace kiln::measure {
namespace {

// What a paper device says of a candidate.
struct Paper {
  std::function<double(const TuneCandidate&)> seconds;
  std::function<Verdict(const TuneCandidate&)> verdict = [](const auto&) { return Verdict{}; };
  std::size_t problems_max = 1000;  // then it is gone, as if the process had been killed
};

class PaperField final : public TuneField {
 public:
  PaperField(const Paper& paper, std::vector<TuneCandidate> candidates)
      : paper_(paper), candidates_(std::move(candidates)) {}
  [[nodiscard]] std::size_t count() const override { return candidates_.size(); }
  [[nodiscard]] Result<Verdict> check(std::size_t i) override {
    return paper_.verdict(candidates_[i]);
  }
  [[nodiscard]] Result<std::vector<std::vector<double>>> measure(std::span<const std::size_t> which,
                                                                 const TuneRound& round) override {
    std::vector<std::vector<double>> out;
    for (const std::size_t i : which) {
      out.emplace_back(static_cast<std::size_t>(round.repeats), paper_.seconds(candidates_[i]));
    }
    return out;
  }

 private:
  const Paper& paper_;
  std::vector<TuneCandidate> candidates_;
};

class PaperDevice final : public TuneDevice {
 public:
  explicit PaperDevice(Paper paper) : paper_(std::move(paper)) {}
  [[nodiscard]] const target::Arch& arch() const override { return *target::find_arch("sm_90a"); }
  [[nodiscard]] int multiprocessors() const override { return 132; }
  [[nodiscard]] Result<std::unique_ptr<TuneField>> open(
      const gemm::Problem& problem, const std::vector<TuneCandidate>& candidates) override {
    if (opened.size() == paper_.problems_max)
      return Unexpected{Error{"the device is gone", {}, {}}};
    opened.push_back(shape_of(problem));
    return std::unique_ptr<TuneField>(std::make_unique<PaperField>(paper_, candidates));
  }
  std::vector<std::string> opened;

 private:
  Paper paper_;
};

std::string define(const TuneCandidate& candidate, const std::string& name) {
  for (const auto& [each, value] : candidate.choice.defines) {
    if (each == name) return value;
  }
  return "";
}

// 3 us for one way to cut, 5 us for all others.
std::function<double(const TuneCandidate&)> fastest(std::string name, std::string value) {
  return [=](const TuneCandidate& each) { return define(each, name) == value ? 3e-6 : 5e-6; };
}

constexpr gemm::Problem kSquare =
    suite_problem(2048, 2048, 2048, {.ab = DType::kBF16, .c = DType::kBF16});
// The library's table has no entry with their k.
constexpr gemm::Problem kFewRows =
    suite_problem(16, 2112, 7104, {.ab = DType::kBF16, .c = DType::kBF16});
constexpr gemm::Problem kTall =
    suite_problem(4224, 2112, 7104, {.ab = DType::kBF16, .c = DType::kBF16});

// A table's file of its own, and what a run of the command said.
class TuneLibrary : public testing::Test {
 protected:
  TuneLibrary() : table_(testing::TempDir() + "kiln_tune_table.json") {
    std::remove(table_.c_str());
    std::remove(json().c_str());
  }
  [[nodiscard]] std::string json() const { return table_ + "l"; }
  io::Exit run(const std::vector<gemm::Problem>& cases, Paper paper, bool resume = false,
               bool watched = false) {
    PaperDevice device(std::move(paper));
    std::ostringstream out;
    std::ostringstream err;
    io::Console console{.out = out, .err = err, .progress = watched};
    const io::Exit exit =
        tune_library({.resume = resume, .output = table_, .json = json()}, cases, device, console);
    out_ = out.str();
    err_ = err.str();
    opened_ = device.opened;
    return exit;
  }
  gemm::TunedTable table() {
    const auto text = read_file(table_);
    const auto table = gemm::parse_table(text ? *text : "", table_);
    EXPECT_TRUE(table) << table.error().text();
    return table ? *table : gemm::TunedTable{};
  }

  std::string table_;
  std::string out_;
  std::string err_;
  std::vector<std::string> opened_;
};

TEST_F(TuneLibrary, ABarShowsHowManyProblemsAreDone) {
  const Paper paper{.seconds = fastest("WARPGROUPS", "2")};
  EXPECT_EQ(run({kSquare, kTall}, paper, false, true), io::Exit::kFine) << err_;
  EXPECT_NE(err_.find("M=2048,N=2048,K=2048 [..............................] 0/2: compiling"),
            std::string::npos)
      << err_;
  EXPECT_NE(err_.find("M=4224,N=2112,K=7104 [###############...............] 1/2: compiling"),
            std::string::npos)
      << err_;
  EXPECT_EQ(run({kSquare, kTall}, paper), io::Exit::kFine);
  EXPECT_EQ(err_, "");
}

TEST_F(TuneLibrary, TheFastestCandidateGoesIntoTheTable) {
  EXPECT_EQ(run({kTall}, {.seconds = fastest("WARPGROUPS", "2")}), io::Exit::kFine) << err_;
  const gemm::TunedTable found = table();
  ASSERT_EQ(found.entries.size(), 1U);
  const gemm::TunedEntry& entry = found.entries[0];
  EXPECT_EQ(entry.choice.kernel, "gemm_sm90");
  EXPECT_EQ(entry.m.to, 4224);
  EXPECT_EQ(entry.m.from % 64, 1);  // where the last row of tiles begins
  ASSERT_TRUE(entry.at);
  EXPECT_EQ(entry.at->m, 4224);
  EXPECT_EQ(entry.seconds, 3e-6);
  // What follows from the problem is not in it.
  for (const auto& [name, value] : entry.choice.defines) {
    const std::set<std::string> tuned = {"GROUP", "PARTS", "STAGES", "TILE_N", "WARPGROUPS"};
    EXPECT_TRUE(tuned.contains(name)) << name;
  }
  EXPECT_NE(out_.find("1.667x  gemm_sm90 "), std::string::npos) << out_;
  EXPECT_NE(out_.find("1 problems tuned, 1 entries"), std::string::npos) << out_;
}

TEST_F(TuneLibrary, EveryCandidateIsALineOfJson) {
  ASSERT_EQ(run({kTall}, {.seconds = fastest("WARPGROUPS", "2")}), io::Exit::kFine) << err_;
  std::istringstream lines(*read_file(json()));
  int count = 0;
  int best = 0;
  int last_round = 0;
  for (std::string text; std::getline(lines, text); ++count) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    ASSERT_TRUE(line.is_object()) << text;
    EXPECT_EQ(line["verdict"], "right");
    EXPECT_EQ(line["default"], count == 0);
    best += line["best"].get<bool>() ? 1 : 0;
    last_round += line["rounds"] == 3 ? 1 : 0;
  }
  EXPECT_EQ(count, 24);
  EXPECT_EQ(best, 1);
  EXPECT_EQ(last_round, 5);  // four, and the default
}

TEST_F(TuneLibrary, AWrongCandidateIsReportedAndLosesHoweverFast) {
  Paper paper{.seconds = fastest("WARPGROUPS", "2")};
  paper.verdict = [](const TuneCandidate& each) {
    if (define(each, "WARPGROUPS") != "2") return Verdict{};
    return Verdict{Verdict::Kind::kWrong, "the first is [0, 0]", 7, 9};
  };
  EXPECT_EQ(run({kTall}, paper), io::Exit::kWrong);
  EXPECT_NE(err_.find("error[result-outside]: `c by gemm_sm90 -D BLOCKS=132"), std::string::npos)
      << err_;
  EXPECT_NE(err_.find("bf16`: 7 of 9 elements outside the bound"), std::string::npos) << err_;
  ASSERT_EQ(table().entries.size(), 1U);
  EXPECT_EQ(table().entries[0].seconds, 5e-6);
}

TEST_F(TuneLibrary, ARefusedCandidateIsANote) {
  Paper paper{.seconds = fastest("WARPGROUPS", "2")};
  paper.verdict = [](const TuneCandidate& each) {
    if (define(each, "WARPGROUPS") != "2") return Verdict{};
    return Verdict{.kind = Verdict::Kind::kRefused, .reason = "too many registers"};
  };
  EXPECT_EQ(run({kTall}, paper), io::Exit::kFine);
  EXPECT_NE(err_.find("candidates refused, the first gemm_sm90 -D"), std::string::npos) << err_;
}

TEST_F(TuneLibrary, WithoutARightCandidateThereIsNoEntry) {
  Paper paper{.seconds = fastest("WARPGROUPS", "2")};
  paper.verdict = [](const auto&) {
    return Verdict{.kind = Verdict::Kind::kRefused, .reason = "no"};
  };
  EXPECT_EQ(run({kTall}, paper), io::Exit::kEnvironment);
  EXPECT_NE(err_.find("no candidate could be measured"), std::string::npos) << err_;
  EXPECT_EQ(out_, table_ + ": 0 problems tuned, 0 entries\n");
}

TEST_F(TuneLibrary, ResumeKeepsWhatWasFoundAndGoesOn) {
  const std::vector<gemm::Problem> cases = {kSquare, kFewRows, kTall};
  Paper cut_off{.seconds = fastest("WARPGROUPS", "2")};
  cut_off.problems_max = 2;
  EXPECT_EQ(run(cases, cut_off), io::Exit::kEnvironment);
  ASSERT_EQ(table().entries.size(), 2U);
  const std::string before = gemm::table_text(table());

  EXPECT_EQ(run(cases, {.seconds = fastest("WARPGROUPS", "1")}, true), io::Exit::kFine) << err_;
  EXPECT_EQ(opened_, std::vector<std::string>{"M=4224,N=2112,K=7104"});
  EXPECT_NE(out_.find("1 problems tuned, 3 entries, 2 passed over"), std::string::npos) << out_;
  const std::string after = gemm::table_text(table());
  EXPECT_EQ(after.substr(0, before.size() - 4), before.substr(0, before.size() - 4));

  // Without it everything is measured again, and entries are replaced.
  EXPECT_EQ(run(cases, {.seconds = fastest("WARPGROUPS", "1")}), io::Exit::kFine);
  EXPECT_EQ(opened_.size(), 3U);
  EXPECT_EQ(table().entries.size(), 3U);
}

TEST_F(TuneLibrary, AFileThatIsNoTableIsLeftAlone) {
  ASSERT_TRUE(write_file(table_, "important"));
  EXPECT_EQ(run({kTall}, {.seconds = fastest("WARPGROUPS", "2")}), io::Exit::kEnvironment);
  EXPECT_EQ(*read_file(table_), "important");
  ASSERT_TRUE(write_file(table_, R"({"format": 1, "arch": "sm_80", "entries": []})"));
  EXPECT_EQ(run({kTall}, {.seconds = fastest("WARPGROUPS", "2")}), io::Exit::kEnvironment);
  EXPECT_NE(err_.find("it is for sm_80, the GPU is sm_90a"), std::string::npos) << err_;
}

// The default is among the candidates, so no entry makes anything slower.
TEST_F(TuneLibrary, TheDefaultIsTheFirstCandidate) {
  for (const gemm::Problem& problem : {kSquare, kFewRows, kTall}) {
    const auto wanted = gemm::normalised(problem);
    const auto& arch = *target::find_arch("sm_90a");
    const auto candidates = candidates_of(*wanted, arch, 132, 24);
    ASSERT_TRUE(candidates);
    EXPECT_EQ(candidates->size(), 24U);
    EXPECT_EQ(candidates->front().choice, *gemm::choose(*wanted, arch, 132));
    for (std::size_t i = 1; i < candidates->size(); ++i) {
      EXPECT_NE((*candidates)[i].choice, candidates->front().choice);
    }
  }
}

std::optional<gemm::Problem> parsed(const std::string& text) {
  Diagnostics diags;
  const auto problem = parse_problem(text, diags);
  EXPECT_EQ(problem.has_value(), !diags.has_errors()) << text;
  return problem ? std::optional(*problem) : std::nullopt;
}

TEST(TuneProblem, OfTheCommandLine) {
  EXPECT_EQ(parsed("bf16,bf16,bf16 M=16,N=2112,K=7104"), kFewRows);
  EXPECT_EQ(parsed("f8_e4m3,f8_e4m3,bf16 K=3,N=2,M=1 block-scales"),
            suite_problem(1, 2, 3, {.ab = DType::kE4M3, .c = DType::kBF16, .block_scales = true}));
  for (const char* wrong :
       {"", "bf16,bf16,bf16", "bf16,bf16 M=1,N=2,K=3", "bf16,f16,f16 M=1,N=2,K=3",
        "q7,q7,bf16 M=1,N=2,K=3", "bf16,bf16,bf16 M=1,N=2", "bf16,bf16,bf16 M=1,N=2,K=x",
        "bf16,bf16,bf16 M=1,N=2,K=3,L=4", "bf16,bf16,bf16 M=0,N=2,K=3",
        "bf16,bf16,bf16 M=1,N=2,K=3 scales", "bf16,bf16,bf16 M=1,N=2,K=3 block-scales x"}) {
    EXPECT_FALSE(parsed(wrong)) << wrong;
  }
}

TEST(TuneProblem, ASuiteAndMore) {
  Diagnostics diags;
  const auto cases = tuned_cases({.program = {.file = "llm"},
                                  .shapes = {"M=16"},
                                  .problems = {"bf16,bf16,bf16 M=4224,N=2112,K=7104"}},
                                 diags);
  ASSERT_TRUE(cases);
  EXPECT_EQ(cases->size(), 7U);
  EXPECT_EQ(cases->back(), kTall);
}

TEST(TuneRounds, TheDefaultGoesOnBehindTheBest) {
  class Field final : public TuneField {
   public:
    [[nodiscard]] std::size_t count() const override { return 6; }
    [[nodiscard]] Result<Verdict> check(std::size_t i) override {
      return i == 5 ? Verdict{.kind = Verdict::Kind::kWrong} : Verdict{};
    }
    [[nodiscard]] Result<std::vector<std::vector<double>>> measure(
        std::span<const std::size_t> which, const TuneRound&) override {
      std::vector<std::vector<double>> out;
      for (const std::size_t i : which) out.push_back({6.0 - static_cast<double>(i)});
      played.emplace_back(which.begin(), which.end());
      return out;
    }
    std::vector<std::vector<std::size_t>> played;
  } field;
  const TuneRound rounds[] = {{.repeats = 1, .batch_seconds = 1, .keep = 3},
                              {.repeats = 1, .batch_seconds = 1, .keep = 1}};
  const auto outcome = play_rounds(field, rounds, [](const std::string&) {});
  ASSERT_TRUE(outcome);
  const std::vector<std::vector<std::size_t>> expected = {{0, 1, 2, 3, 4}, {4, 3, 2, 0}};
  EXPECT_EQ(field.played, expected);
  EXPECT_EQ(outcome->order.front(), 4U);
  EXPECT_EQ(outcome->scores[5].rounds, 0);
  EXPECT_EQ(outcome->scores[1].rounds, 1);
  EXPECT_EQ(outcome->scores[0].rounds, 2);
  EXPECT_EQ(outcome->scores[4].seconds, 2.0);
}

TEST(TuneCommand, WithoutAGpuItExitsWithThree) {
  if (backends::device_arch() != nullptr) GTEST_SKIP() << "not tested: this machine has a GPU";
  std::ostringstream out;
  std::ostringstream err;
  io::Console console{.out = out, .err = err};
  EXPECT_EQ(driver::tune({.program = {.file = "dense"}, .output = "never.json"}, console),
            io::Exit::kEnvironment);
  EXPECT_NE(err.str().find("error: no GPU that kiln can use"), std::string::npos) << err.str();
}

}  // namespace
}  // namespace kiln::measure
