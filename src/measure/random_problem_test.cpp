#include "measure/random_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "gemm/choice.h"
#include "measure/bench_random.h"

namespace kiln::measure {
namespace {

using gemm::Problem;

constexpr std::uint64_t kDraws = 20000;

std::vector<RandomProblem> drawn(std::uint64_t seed, std::uint64_t count) {
  std::vector<RandomProblem> out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(draw_problem(seed, i));
  return out;
}

// Those that the library serves on an H200.
const std::vector<RandomProblem>& served() {
  static const std::vector<RandomProblem> all = [] {
    std::vector<RandomProblem> out = drawn(0, kDraws);
    std::erase_if(out, [](const RandomProblem& one) {
      return !gemm::choose(one.problem, *target::find_arch("sm_90a"), 132);
    });
    return out;
  }();
  return all;
}

template <class Has>
std::int64_t count(const std::vector<RandomProblem>& all, Has&& has) {
  return std::ranges::count_if(all, has);
}

TEST(RandomProblem, EachIsAProblem) {
  for (const RandomProblem& one : drawn(1, 5000)) {
    const Problem& p = one.problem;
    ASSERT_TRUE(gemm::normalised(p)) << text(one);
    ASSERT_LE(std::max({p.m, p.n, p.k}), kRandomExtentMax) << text(one);
    ASSERT_EQ(p.alignment % size_bytes(p.a), 0) << text(one);
    ASSERT_EQ(p.alignment % size_bytes(p.c), 0) << text(one);
    ASSERT_LT(one.first_rows, p.m) << text(one);
    if (one.first_rows == 0) continue;
    const Problem first = with_first_rows(one);
    const Problem whole = gemm::normalised(p).value();
    EXPECT_EQ(first.m, one.first_rows);
    EXPECT_EQ(first.c_spacing, whole.c_spacing);
    ASSERT_TRUE(gemm::normalised(first)) << text(one);
    if (one.problem.batch > 1) {
      EXPECT_EQ(gemm::normalised(first).value(), first) << text(one);
    }
  }
}

TEST(RandomProblem, TheTextIsThatOfTheProblem) {
  std::set<std::string> texts;
  for (const RandomProblem& one : drawn(2, 5000)) {
    const auto read = parse_problem(text(one));
    ASSERT_TRUE(read) << text(one);
    ASSERT_EQ(*read, one) << text(one) << "\n" << text(*read);
    texts.insert(text(one));
  }
  EXPECT_GT(texts.size(), 4990U);
}

TEST(RandomProblem, TextThatIsNoneIsRefused) {
  for (const char* wrong :
       {"", "gelu", "m=1 n=1 k=1", "bf16*bf16->bf16", "bf16*bf16->bf16 m=1 n=1",
        "bf16*bf16->bf16 m=1 n=1 k=0", "bf16*bf16->bf16 m=1 n=1 k=1x",
        "bf16*bf16->bf16 m=1 n=1 k=", "bf16*bf16->bf16 m=1 n=1 k=1 q=2",
        "bf16*bf16->bf16 m=1 n=1 k=1 tanh", "bf16*bf16 m=1 n=1 k=1", "bf16*bf16->what m=1 n=1 k=1",
        "bf16*bf16->bf16 m=9 n=9 k=9 lda=8", "bf16*bf16->bf16 m=9 n=9 k=9 first=9",
        "bf16*bf16->bf16 m=9 n=9 k=9 align=3", "bf16*bf16->bf16 m=9 n=9 k=9 groups=2 batch=2"}) {
    EXPECT_FALSE(parse_problem(wrong)) << wrong;
  }
  const auto one = parse_problem(" bf16*bf16->bf16  m=9 n=9 k=8 align=2 relu ");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->problem.alignment, 2);
  EXPECT_EQ(one->problem.epilogue.activation, gemm::Activation::kRelu);
}

TEST(RandomProblem, TheSeedDecides) {
  EXPECT_EQ(drawn(3, 100), drawn(3, 100));
  EXPECT_NE(drawn(3, 100), drawn(4, 100));
  const auto one = drawn(3, 100);
  EXPECT_NE(one[0], one[1]);
}

TEST(RandomProblem, EveryOptionIsServedSomewhere) {
  const auto& all = served();
  EXPECT_GT(all.size(), kDraws / 4);
  std::map<std::string, int> types;
  std::map<gemm::Epilogue, int> epilogues;
  std::map<std::int64_t, int> batches;
  std::map<std::int64_t, int> groups;
  for (const RandomProblem& one : all) {
    ++types[types_text(one.problem) + (one.problem.block_scales ? " scaled" : "")];
    ++epilogues[one.problem.epilogue];
    ++batches[one.problem.batch];
    ++groups[one.problem.groups];
  }
  EXPECT_EQ(types.size(), 12U + 6U);
  EXPECT_EQ(epilogues.size(), 64U);
  EXPECT_EQ(batches.size(), 5U);
  EXPECT_EQ(groups.size(), 1U + 6U);
  const auto has = [&](auto&& member) { return count(all, member) > 20; };
  EXPECT_TRUE(has([](const auto& p) { return p.first_rows > 0; }));
  EXPECT_TRUE(has([](const auto& p) { return p.first_rows > 0 && p.problem.block_scales; }));
  EXPECT_TRUE(has([](const auto& p) { return p.problem.a_spacing.row > p.problem.k; }));
  EXPECT_TRUE(has([](const auto& p) { return p.problem.b_spacing.row > p.problem.k; }));
  EXPECT_TRUE(has([](const auto& p) { return p.problem.c_spacing.row > p.problem.n; }));
  EXPECT_TRUE(has([](const auto& p) { return p.problem.residual_spacing.row > p.problem.n; }));
  EXPECT_TRUE(has([](const auto& p) { return p.problem.c_spacing.batch > 0; }));
  EXPECT_TRUE(has([](const auto& p) { return p.alpha < 0 && p.beta > 0; }));
  const auto grouped = [&](auto&& member) {
    return has([&](const auto& p) { return p.problem.groups > 0 && member(p.problem); });
  };
  EXPECT_TRUE(grouped([](const auto& p) { return p.m > 3 * gemm::kGroupRows; }));
  EXPECT_TRUE(grouped([](const auto& p) { return p.b_spacing.batch > 0; }));
  EXPECT_TRUE(grouped([](const auto& p) { return p.block_scales; }));
  EXPECT_TRUE(grouped([](const auto& p) { return p.grouping == gemm::Grouping::kFollowing; }));
  EXPECT_TRUE(grouped([](const auto& p) { return p.grouping == gemm::Grouping::kApart; }));
  EXPECT_TRUE(grouped([](const auto& p) { return p.epilogue.has_bias && p.epilogue.has_beta; }));
}

TEST(RandomProblem, EveryOptionIsDrawn) {
  const auto all = drawn(0, kDraws);
  const auto has = [&](auto&& member) { return count(all, member) > 20; };
  for (const int alignment : {2, 4, 8, 16}) {
    EXPECT_TRUE(has([&](const auto& p) { return p.problem.alignment == alignment; })) << alignment;
  }
  EXPECT_TRUE(has([](const auto& p) { return !p.problem.a_along_k && p.problem.b_along_k; }));
  EXPECT_TRUE(has([](const auto& p) { return p.problem.a_along_k && !p.problem.b_along_k; }));
  EXPECT_TRUE(has([](const auto& p) { return !p.problem.a_along_k && !p.problem.b_along_k; }));
}

TEST(RandomProblem, EdgesAreDrawn) {
  const auto all = drawn(0, kDraws);
  const auto edge = [&](std::int64_t extent) {
    EXPECT_GT(count(all, [&](const auto& p) { return p.problem.m == extent; }), 5) << extent;
  };
  for (const std::int64_t extent :
       {1,   2,   3,   7,   15,  16,  17,  31,  63,  64,   65,   127,
        128, 129, 191, 193, 255, 256, 257, 511, 513, 1023, 1024, 1025}) {
    edge(extent);
  }
  EXPECT_GT(count(all, [](const auto& p) { return p.problem.n % 2 != 0; }), 4000);
  EXPECT_GT(count(all, [](const auto& p) { return p.problem.m > 1400; }), 100);
}

// Or a run would compile longer than it checks.
TEST(RandomProblem, KernelsAreFew) {
  std::set<std::string> kernels;
  const auto& all = served();
  for (const RandomProblem& one : all) {
    kernels.insert(
        gemm::text(gemm::choose(one.problem, *target::find_arch("sm_90a"), 132).value()));
  }
  EXPECT_LT(kernels.size(), 6000U);
  EXPECT_GT(kernels.size(), 300U);
}

TEST(RandomProblem, RefusalsAreTold) {
  EXPECT_EQ(refusal_text({"no kernel for", "x",
                          "one: A steps by 510 bytes, it needs multiples of 16; two: no epilogue; "
                          "three: no epilogue"}),
            "A steps by N bytes, it needs multiples of N; no epilogue");
}

}  // namespace
}  // namespace kiln::measure
