// Few SMs and few blocks, whose ends are worked out by hand.
#include "explain/time/balance.h"

#include <gtest/gtest.h>

#include "explain/time/predict.h"

namespace kiln::explain {

namespace {

// Blocks that wait: two of an SM take as long as one.
Pace waiting(std::int64_t sms, std::int64_t resident) {
  return {.sms = sms, .resident = resident, .alone = 10, .together = 10};
}

TEST(Lengthened, BlocksThatAreAlikeTakeAsLongAsTheyDo) {
  EXPECT_DOUBLE_EQ(lengthened(std::vector<float>(100, 1), waiting(8, 3)), 1);
  EXPECT_DOUBLE_EQ(lengthened(std::vector<float>(100, 7), waiting(8, 3)), 7);
  EXPECT_DOUBLE_EQ(lengthened({}, waiting(8, 3)), 1);
}

TEST(Lengthened, InOneWaveTheLongestBlockCounts) {
  EXPECT_DOUBLE_EQ(lengthened({1, 2, 3, 4}, waiting(4, 1)), 4);
  EXPECT_DOUBLE_EQ(lengthened({1, 2, 3, 4}, waiting(2, 2)), 4);
}

TEST(Lengthened, BlocksOfAnSmThatShareAPartGoOnFasterWhenOthersHaveEnded) {
  // Of {1, 3} the first ends at 20, with both at half the speed; the other has 2 left and goes on at full speed.
  const Pace sharing{.sms = 2, .resident = 2, .alone = 10, .together = 20};
  EXPECT_DOUBLE_EQ(lengthened({1, 1, 1, 3}, sharing), 2);
}

TEST(Lengthened, OneThatEndsMakesRoomForTheNext) {
  // 4 | 1 1 1 1 on two SMs: both end at 4; five of 1 end at 3.
  EXPECT_DOUBLE_EQ(lengthened({4, 1, 1, 1, 1}, waiting(2, 1)), 4.0 / 3);
}

TEST(Lengthened, BlocksWithLessToDoDoNotMakeTheOthersFaster) {
  EXPECT_DOUBLE_EQ(lengthened({1, 1, 0.5, 0}, waiting(4, 1)), 1);
}

TEST(Predict, ALaunchOfOneWaveTakesAsLongAsItsLongestBlock) {
  BlockSteps steps;
  steps.warps.resize(1);
  Step step{.kind = sim::TraceKind::kMma, .op = {}, .before = {}};
  step.tensor = 1e5;
  steps.warps[0] = {step};
  steps.count = 1;
  const target::Arch& arch = *target::find_arch("sm_90a");
  LaunchFacts facts{.blocks = 132};
  const double alike = predict(arch, target::timing_of(arch), steps, facts, false).cycles;
  facts.lengths.assign(132, 1);
  facts.lengths.back() = 3;
  const Prediction p = predict(arch, target::timing_of(arch), steps, facts, false);
  EXPECT_NEAR(p.lengthened, 3, 1e-6);
  EXPECT_NEAR(p.cycles, 3 * alike, 1);
}

}  // namespace

}  // namespace kiln::explain
