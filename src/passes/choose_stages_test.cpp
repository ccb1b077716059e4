#include "passes/choose_stages.h"

#include <gtest/gtest.h>

#include "target/arch.h"

namespace kiln::passes {

namespace {

const target::Arch& hopper() { return *target::find_arch("sm_90a"); }

TEST(ChooseStages, ABlockAloneNeedsMoreThanOneThatSharesTheSm) {
  LoopCosts costs = {.stage_bytes = 32768, .threads = 384, .multiplied = 512, .registers = 168};
  costs.bulk = costs.producer = costs.alone = true;
  const std::int64_t alone = stages_worth_having(hopper(), costs, 7);
  costs.alone = false;
  costs.registers = 64;
  costs.threads = 256;
  EXPECT_GT(alone, 2);
  EXPECT_LT(stages_worth_having(hopper(), costs, 7), alone);
}

TEST(ChooseStages, ProductsThatTakeLongNeedNoMoreThanTwo) {
  const LoopCosts costs = {.stage_bytes = 16384,
                           .threads = 384,
                           .multiplied = 100000,
                           .registers = 64,
                           .alone = true,
                           .bulk = true,
                           .producer = true};
  EXPECT_EQ(stages_worth_having(hopper(), costs, 8), 2);
}

TEST(ChooseStages, NoMoreThanFit) {
  const LoopCosts costs = {.stage_bytes = 65536,
                           .threads = 128,
                           .multiplied = 1,
                           .registers = 64,
                           .alone = true,
                           .bulk = true};
  EXPECT_EQ(stages_worth_having(hopper(), costs, 3), 3);
  EXPECT_EQ(stages_worth_having(hopper(), costs, 1), 2) << "the caller says that two do not fit";
}

}  // namespace

}  // namespace kiln::passes
