// Whole matrix products: right results, and what every missing edge looks like.
#include <algorithm>
#include <utility>

#include "sim/sim_test_support.h"

namespace kiln::sim {

namespace {

struct Shape {
  std::int64_t m, n, k;
};
constexpr Shape kShapes[] = {{16, 16, 16}, {32, 48, 64}, {17, 40, 33}, {1, 1, 1}, {40, 24, 20}};

TEST(Matmul, OneWarpIsRightOnRaggedShapes) {
  for (const Shape& shape : kShapes) {
    Kernel kernel(kOneWarp);
    bind_matmul(kernel, shape.m, shape.n, shape.k);
    const Outcome outcome = kernel.run();
    EXPECT_EQ(text_of(outcome), "") << shape.m << "x" << shape.n << "x" << shape.k;
    EXPECT_EQ(wrong_in(kernel), 0) << shape.m << "x" << shape.n << "x" << shape.k;
  }
}

TEST(Matmul, FourWarpsAreRightOnRaggedShapes) {
  for (const Shape& shape : kShapes) {
    Kernel kernel(kFourWarps);
    bind_matmul(kernel, shape.m, shape.n, shape.k);
    const Outcome outcome = kernel.run();
    EXPECT_EQ(text_of(outcome), "") << shape.m << "x" << shape.n << "x" << shape.k;
    EXPECT_EQ(wrong_in(kernel), 0) << shape.m << "x" << shape.n << "x" << shape.k;
  }
}

TEST(Matmul, SchedulesAgree) {
  for (const char* text : {kOneWarp, kFourWarps}) {
    Kernel kernel(text);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      bind_matmul(kernel, 33, 34, 35);
      EXPECT_EQ(text_of(kernel.run({.seed = seed})), "");
      EXPECT_EQ(wrong_in(kernel), 0) << "seed " << seed;
    }
    bind_matmul(kernel, 33, 34, 35);
    const Outcome all = kernel.run({.schedules = 6});
    EXPECT_EQ(text_of(all), "");
    EXPECT_EQ(wrong_in(kernel), 0);
  }
}

// The pairs of source lines that race, each cut at its first attribute that tells it apart.
std::vector<std::pair<std::string, std::string>> races(const Kernel& kernel,
                                                       const Outcome& outcome) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto brief = [&](const Access& access) {
    const std::string line = kernel.line(access);
    return line.substr(0, line.find(' ', line.find('%')));
  };
  for (const Report& report : outcome.reports) {
    if (report.kind != ReportKind::kRace) continue;
    EXPECT_EQ(report.accesses.size(), 2U);
    EXPECT_NE(report.missing, "");
    out.emplace_back(brief(report.accesses[0]), brief(report.accesses[1]));
  }
  std::sort(out.begin(), out.end());
  return out;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs races_of(const std::string& text, std::uint64_t seed) {
  Kernel kernel(text);
  bind_matmul(kernel, 64, 64, 64);
  return races(kernel, kernel.run({.seed = seed}));
}

// Among several warps a fast one overtakes: the same pair may be met as read after write by the
// slow warps and as write after read by the fast one.
Pairs either_order(Pairs pairs) {
  for (auto& [first, second] : pairs) {
    if (second < first) std::swap(first, second);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

TEST(Matmul, EachMissingBarrierOfOneWarpIsARace) {
  const std::string text = kOneWarp;
  const Pairs before_loads = {{"copy src=%lhs_tile", "load frag=%ma"},
                              {"copy src=%rhs_tile", "load frag=%mb"}};
  const Pairs after_loads = {{"load frag=%ma", "copy src=%lhs_tile"},
                             {"load frag=%mb", "copy src=%rhs_tile"}};
  const Pairs after_store = {{"store frag=%mc", "copy src=%output_s"}};
  for (const std::uint64_t seed : {0U, 1U, 7U}) {
    EXPECT_EQ(races_of(without_line(text, "barrier level=group", 0), seed), before_loads);
    EXPECT_EQ(races_of(without_line(text, "barrier level=group", 1), seed), after_loads);
    EXPECT_EQ(races_of(without_line(text, "barrier level=block"), seed), after_store);
  }
}

TEST(Matmul, EachMissingBarrierOfFourWarpsIsARace) {
  const std::string text = kFourWarps;
  const Pairs loads = {{"copy src=%lhs_tile", "load frag=%ma"},
                       {"copy src=%rhs_tile", "load frag=%mb"}};
  const Pairs output = {{"copy src=%output_s", "store frag=%mc"}};
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    const auto found = [&](int barrier) {
      return either_order(races_of(without_line(text, "barrier level=block", barrier), seed));
    };
    EXPECT_EQ(found(0), loads) << seed;
    EXPECT_EQ(found(1), loads) << seed;
    EXPECT_EQ(found(2), output) << seed;
  }
}

TEST(Matmul, AGroupBarrierDoesNotOrderTheWarpsOfABlock) {
  const std::string text = replaced(kFourWarps, "barrier level=block inferred\n        %a_view",
                                    "barrier level=group inferred\n        %a_view");
  for (const std::uint64_t seed : {0U, 9U}) EXPECT_FALSE(races_of(text, seed).empty());
}

TEST(Matmul, AMissingWaitIsARaceWithTheCopyInFlight) {
  for (const char* base : {kOneWarp, kFourWarps}) {
    Kernel kernel(without_line(base, "copy_wait"));
    bind_matmul(kernel, 32, 32, 32);
    const Outcome outcome = kernel.run();
    const auto found = races(kernel, outcome);
    const std::pair<std::string, std::string> wanted = {"copy src=%lhs_tile", "load frag=%ma"};
    EXPECT_NE(std::find(found.begin(), found.end(), wanted), found.end()) << text_of(outcome);
    EXPECT_EQ(outcome.reports[0].missing, "the asynchronous copy has not been waited for");
    EXPECT_NE(wrong_in(kernel), 0) << "the copies have not landed";
  }
}

TEST(Matmul, AWaitThatLeavesTheYoungestCopyPendingCoversTheOlderOne) {
  Kernel kernel(replaced(kOneWarp, "copy_wait", "copy_wait pending=1"));
  bind_matmul(kernel, 16, 16, 16);
  const Outcome outcome = kernel.run();
  const Pairs only_rhs = {{"copy src=%rhs_tile", "load frag=%mb"}};
  EXPECT_EQ(races(kernel, outcome), only_rhs) << text_of(outcome);
}

TEST(Matmul, RacesNameElementsAndThreads) {
  Kernel kernel(without_line(kOneWarp, "barrier level=block"));
  bind_matmul(kernel, 16, 16, 16);
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.reports.size(), 1U);
  const Report& race = outcome.reports[0];
  // Thread 0 stores columns 0 and 1 of row 0 and copies columns 0 to 7; thread 1 stores column 2.
  EXPECT_EQ(race.accesses[0].what, "write of output_s[0, 2] by thread 1 (warp 0)");
  EXPECT_EQ(race.accesses[1].what, "read of output_s[0, 2] by thread 0 (warp 0)");
  EXPECT_EQ(race.missing, "no group or block barrier between them");
  EXPECT_EQ(race.count, 32);
}

TEST(Matmul, WrongMatricesGiveWrongNumbers) {
  Kernel kernel(
      replaced(kOneWarp, "matrices=[0, 0, 8, 0, 0, 8, 8, 8]", "matrices=[0, 0, 0, 8, 8, 0, 8, 8]"));
  bind_matmul(kernel, 16, 16, 16);
  EXPECT_EQ(text_of(kernel.run()), "");
  EXPECT_NE(wrong_in(kernel), 0);
}

// The reader takes the tile through a second allocation at the same address, without the swizzle.
TEST(Matmul, AWrongSwizzleOnOneSideGivesWrongNumbers) {
  std::string text =
      replaced(kOneWarp, "        %ma = alloc",
               "        %lhs_r = alloc name=\"lhs_r\" offset=0 : view<f16, shared, [16, 16]>\n"
               "        %ma = alloc");
  text = replaced(text, "load frag=%ma view=%lhs_s", "load frag=%ma view=%lhs_r");
  Kernel wrong(text);
  bind_matmul(wrong, 16, 16, 16);
  EXPECT_EQ(text_of(wrong.run()), "");
  EXPECT_NE(wrong_in(wrong), 0);
  Kernel right(replaced(text, "name=\"lhs_r\" offset=0", "name=\"lhs_r\" offset=0 swizzle=32"));
  bind_matmul(right, 16, 16, 16);
  EXPECT_EQ(text_of(right.run()), "");
  EXPECT_EQ(wrong_in(right), 0);
}

TEST(Matmul, AnAccumulatorNobodyFilledIsReported) {
  Kernel kernel(without_line(kOneWarp, "fill frag"));
  bind_matmul(kernel, 16, 16, 16);
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kUninitialised), 2) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message, "`mc` is used before it is filled or loaded");
}

TEST(Matmul, AnUnloadedOperandIsReported) {
  Kernel kernel(without_line(kOneWarp, "load frag=%mb"));
  bind_matmul(kernel, 16, 16, 16);
  EXPECT_EQ(kernel.run().count(ReportKind::kUninitialised), 1);
}

TEST(Matmul, AMissingGuardIsAnAccessOutOfBounds) {
  const std::string output_copy =
      "dst=%output_tile way=gather threads=32 widths=[16, 8, 4, 2] guarded=";
  Kernel rows(replaced(kOneWarp, output_copy + "[0, 1]", output_copy + "[1]"));
  bind_matmul(rows, 17, 16, 16);
  const Outcome outcome = rows.run();
  EXPECT_EQ(outcome.count(ReportKind::kOutOfBounds), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message,
            "`output[17, 0]` is outside: dimension 0 is 17, which is not below 17");
  EXPECT_EQ(wrong_in(rows), 0) << "what lies outside is not written";
  bind_matmul(rows, 32, 24, 16);
  EXPECT_EQ(text_of(rows.run()), "") << "rows divide, so the guard is not missed";
}

TEST(Matmul, ReportsAreBoundedAndCounted) {
  Kernel kernel(
      without_line(without_line(kOneWarp, "barrier level=group", 1), "barrier level=group", 0));
  bind_matmul(kernel, 64, 64, 64);
  const Outcome all = kernel.run();
  ASSERT_EQ(all.reports.size(), 4U) << text_of(all);
  bind_matmul(kernel, 64, 64, 64);
  const Outcome some = kernel.run({.reports_max = 1});
  ASSERT_EQ(some.reports.size(), 1U);
  EXPECT_EQ(some.reports[0].count, all.reports[0].count);
  EXPECT_EQ(some.reports_dropped,
            all.reports[1].count + all.reports[2].count + all.reports[3].count);
}

TEST(Matmul, TheSameSeedGivesTheSameRun) {
  const auto seen = [](std::uint64_t seed) {
    Kernel kernel(without_line(kFourWarps, "barrier level=block", 0));
    bind_matmul(kernel, 64, 64, 64);
    const Outcome outcome = kernel.run({.seed = seed});
    return text_of(outcome) + std::to_string(wrong_in(kernel));
  };
  for (const std::uint64_t seed : {0U, 1U, 2U, 99U}) EXPECT_EQ(seen(seed), seen(seed));
  EXPECT_NE(seen(1) + seen(2) + seen(3), seen(4) + seen(5) + seen(6)) << "seeds make a difference";
}

TEST(Matmul, WithoutChecksTheNumbersAreTheSame) {
  Kernel kernel(kFourWarps);
  bind_matmul(kernel, 33, 34, 35);
  EXPECT_EQ(text_of(kernel.run({.checks = false})), "");
  EXPECT_EQ(wrong_in(kernel), 0);
}

TEST(Matmul, CountsTheInstructionsOfTheKStep) {
  Kernel kernel(kOneWarp);
  bind_matmul(kernel, 32, 32, 64);  // 4 blocks, 4 steps each
  const Counters counters = kernel.run().counters;
  const std::map<std::string, std::int64_t> wanted = {
      {"m16n8k16.f16.f16", 2 * 16}, {"ldmatrix.x4", 2 * 16},   {"cp.async.16", 2 * 16},
      {"cp.async.wait", 16},        {"barrier.group", 2 * 16}, {"barrier.block", 4},
      {"st.shared.4", 4 * 4},       {"ld.shared.16", 4},       {"st.global.16", 4}};
  EXPECT_EQ(counters.instructions, wanted);
  EXPECT_EQ(counters.bytes_global_read, 16 * 1024);
  EXPECT_EQ(counters.bytes_global_written, 4 * 512);
  EXPECT_EQ(counters.bytes_shared_written, 16 * 1024 + 4 * 512);
  EXPECT_EQ(counters.bytes_shared_read, 16 * 1024 + 4 * 512);
  // Two lanes share a 32-byte sector, so 16 of each request.
  EXPECT_EQ(counters.sectors_global, 36 * 16);
  EXPECT_EQ(counters.requests_global, 36);
}

TEST(Matmul, RowsOfAnOddPitchAreCutOutOfAlignedVectors) {
  Kernel kernel(kOneWarp);
  bind_matmul(kernel, 16, 16, 17);
  const Counters counters = kernel.run().counters;
  EXPECT_EQ(counters.instructions.count("cp.async.16"), 0U);
  EXPECT_EQ(counters.instructions.count("cp.async.2"), 0U) << "cp.async moves at least 4 bytes";
  // 2 K steps, 2 tiles of 32 vectors; in the second K step only column 0 is loaded.
  EXPECT_EQ(counters.instructions.at("st.shared.16"), 2 * 2);
  EXPECT_EQ(counters.instructions.at("ld.global.16"), 2 * 2 * 2);
}

// Hand count for rows of 32 bytes: 8 rows of 16 bytes at a pitch of 32 meet the same banks from row
// 4 on, one extra wavefront for each matrix. The swizzle moves rows 4 to 7 to the other half.
TEST(Matmul, BankConflictsOfMatrixLoads) {
  Kernel swizzled(kOneWarp);
  bind_matmul(swizzled, 16, 16, 16);
  const std::int64_t with = swizzled.run().counters.bank_conflicts;
  Kernel plain(replaced(kOneWarp, " swizzle=32", ""));
  bind_matmul(plain, 16, 16, 16);
  const std::int64_t without = plain.run().counters.bank_conflicts;
  EXPECT_EQ(wrong_in(plain), 0);
  // The accumulator's store into output_s: 8 rows with a pitch of 32 bytes, 4 words each: rows 4 to
  // 7 meet rows 0 to 3, one extra wavefront in each of the 4 requests.
  EXPECT_EQ(with, 4);
  EXPECT_EQ(without, 4 + 2 * 4);
}

TEST(Matmul, A256CubedProductIsQuick) {
  Kernel kernel(kOneWarp);
  bind_matmul(kernel, 256, 256, 256);
  const Outcome outcome = kernel.run();
  EXPECT_EQ(text_of(outcome), "");
  EXPECT_EQ(outcome.blocks, 256);
  EXPECT_EQ(wrong_in(kernel), 0);
  RecordProperty("milliseconds", static_cast<int>(outcome.seconds * 1000));
#ifdef NDEBUG
  EXPECT_LT(outcome.seconds, 2.0);
#endif
}

}  // namespace

}  // namespace kiln::sim
