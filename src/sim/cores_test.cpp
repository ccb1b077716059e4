// Blocks on several cores: what they compute, count and are blamed for is what they are in turn.
#include <algorithm>

#include "sim/sim_test_support.h"

namespace kiln::sim {

namespace {

// Each block doubles 24 numbers (rows of other blocks share lines of shadow memory) into memory of
// the function, and another launch adds one.
constexpr const char* kTwoLaunches = R"(module arch=sm_80 form=decided

func @steps(global %x: view<s32, global, [N]>, global %y: view<s32, global, [N]>) {
  var N: dim
  var b: parallel < cdiv(N, 3)
  var t: parallel < 3
  var c: parallel < cdiv(N, 3)
  var u: parallel < 3
  %h = alloc name="h" : view<s32, global, [N]>
  parallel level=block vars=[b] threads=3 name="double" bounds=[3] body={
    parallel level=thread vars=[t] unit=1 body={
      %v = read view=%x index=[3*b + t] : s32
      %w = binary kind=add left=%v right=%v : s32
      write view=%h index=[3*b + t] value=%w
    }
  }
  parallel level=block vars=[c] threads=3 name="more" bounds=[3] body={
    parallel level=thread vars=[u] unit=1 body={
      %one = const value=1 : s32
      %d = read view=%h index=[N - 1 - 3*c - u] : s32
      %e = binary kind=add left=%d right=%one : s32
      write view=%y index=[3*c + u] value=%e
    }
  }
}
)";

Outcome run_on(Kernel& kernel, std::size_t cores, std::uint64_t seed = 0) {
  return kernel.run({.seed = seed, .cores = cores});
}

TEST(Cores, CountAndComputeWhatOneCoreDoes) {
  for (const char* text : {kOneWarp, kFourWarps}) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      Kernel kernel(text);
      bind_matmul(kernel, 65, 130, 40);
      const Outcome one = run_on(kernel, 1, seed);
      const std::vector<std::byte> wanted = kernel.tensor(2).bytes;
      bind_matmul(kernel, 65, 130, 40);
      const Outcome four = run_on(kernel, 4, seed);
      EXPECT_EQ(text_of(four), "");
      EXPECT_EQ(kernel.tensor(2).bytes, wanted);
      EXPECT_EQ(four.steps, one.steps);
      EXPECT_EQ(four.blocks, one.blocks);
      EXPECT_EQ(four.counters.instructions, one.counters.instructions);
      EXPECT_EQ(four.counters.bytes_global_read, one.counters.bytes_global_read);
      EXPECT_EQ(four.counters.wavefronts_shared, one.counters.wavefronts_shared);
      EXPECT_TRUE(four.unwritten.empty());
    }
  }
}

TEST(Cores, ALaterLaunchReadsWhatAnEarlierOneWrote) {
  Kernel kernel(kTwoLaunches);
  kernel.bind({{"N", 48}});
  kernel.fill_ramp(0);
  const Outcome outcome = run_on(kernel, 4);
  EXPECT_EQ(text_of(outcome), "");
  EXPECT_TRUE(outcome.unwritten.empty());
  for (std::size_t i = 0; i < 48; ++i) {
    EXPECT_EQ(kernel.tensor(1).get(i), 2.0 * static_cast<double>(47 - i) + 1);
  }
}

TEST(Cores, WhatNobodyWroteIsStillFound) {
  for (const std::size_t cores : {1, 4}) {
    Kernel kernel(
        replaced(kTwoLaunches, "write view=%h index=[3*b + t]", "write view=%x index=[3*b + t]"));
    kernel.bind({{"N", 48}});
    const Outcome outcome = run_on(kernel, cores);
    ASSERT_EQ(outcome.count(ReportKind::kUninitialised), 1) << text_of(outcome);
    EXPECT_EQ(outcome.reports[0].count, 48);
  }
}

// Two cores may see a race in either order, or not at all: it is always told as in turn.
TEST(Cores, BlocksThatTouchTheSameElementsAreReportedAsInTurn) {
  const std::pair<const char*, const char*> faults[] = {
      {"write view=%y index=[3*c + u]", "write view=%y index=[u]"},
      {"write view=%y index=[3*c + u]", "write view=%h index=[3*c + u]"},
      {"write view=%y index=[3*c + u]", "write view=%y index=[3*c + u + 1]"}};
  for (const auto& [from, to] : faults) {
    const std::string text = replaced(kTwoLaunches, from, to);
    Kernel kernel(text);
    kernel.bind({{"N", 48}});
    kernel.fill_ramp(0);
    const std::string wanted = text_of(run_on(kernel, 1));
    const std::vector<std::byte> bytes = kernel.tensor(1).bytes;
    EXPECT_NE(wanted, "") << to;
    for (int round = 0; round < 5; ++round) {
      kernel.bind({{"N", 48}});
      kernel.fill_ramp(0);
      EXPECT_EQ(text_of(run_on(kernel, 4)), wanted) << to;
      EXPECT_EQ(kernel.tensor(1).bytes, bytes) << to;
    }
  }
}

// Each block takes a ticket (atomic add), which it leaves at its place; votes stay inside the block.
constexpr const char* kTickets = R"(module arch=sm_80 form=decided

func @tickets(global %next: view<u32, global, [1]>, global %y: view<u32, global, [N]>) {
  var N: dim
  var b: parallel < N
  var t: parallel < 1
  parallel level=block vars=[b] threads=1 name="tickets" bounds=[1] body={
    parallel level=thread vars=[t] unit=1 body={
      %one = const value=1 : u32
      %old = atomic kind=add view=%next index=[0] value=%one : u32
      write view=%y index=[b] value=%old
    }
  }
}
)";

TEST(Cores, BlocksWithAtomicsOnGlobalMemoryRunInTurn) {
  constexpr std::int64_t kBlocks = 200;
  Kernel kernel(kTickets);
  for (int round = 0; round < 5; ++round) {
    kernel.bind({{"N", kBlocks}});
    const Outcome outcome = run_on(kernel, 4);
    EXPECT_EQ(text_of(outcome), "");
    EXPECT_TRUE(outcome.unwritten.empty());
    EXPECT_EQ(kernel.tensor(0).get(0), static_cast<double>(kBlocks));
    for (std::size_t b = 0; b < kBlocks; ++b) {
      EXPECT_EQ(kernel.tensor(1).get(b), static_cast<double>(b));
    }
  }
}

// What is atomic in shared memory is the block's own: they run on all cores, with the same counts.
TEST(Cores, BlocksWithAtomicsOnSharedMemoryAreApart) {
  const std::string text = R"(module arch=sm_80 form=decided

func @votes(global %x: view<u32, global, [N]>, global %y: view<u32, global, [N]>) {
  var N: dim
  var b: parallel < N
  var t: parallel < 64
  parallel level=block vars=[b] threads=64 name="votes" bounds=[64] body={
    %zero = const : u32
    %own = alloc name="own" offset=0 initial=%zero : view<u32, shared, [1]>
    barrier
    parallel level=thread vars=[t] unit=1 body={
      %v = read view=%x index=[b] : u32
      %old = atomic kind=add view=%own index=[0] value=%v unused : u32
    }
    barrier
    once body={
      %sum = read view=%own index=[0] : u32
      write view=%y index=[b] value=%sum
    }
  }
}
)";
  constexpr std::int64_t kBlocks = 100;
  std::vector<std::int64_t> conflicts;
  for (const std::size_t cores : {1, 4}) {
    Kernel kernel(text);
    kernel.bind({{"N", kBlocks}});
    kernel.fill_ramp(0);
    const Outcome outcome = run_on(kernel, cores);
    EXPECT_EQ(text_of(outcome), "");
    conflicts.push_back(outcome.counters.bank_conflicts);
    for (std::size_t b = 0; b < kBlocks; ++b) {
      EXPECT_EQ(kernel.tensor(1).get(b), 64.0 * kernel.tensor(0).get(b));
    }
  }
  EXPECT_EQ(conflicts[0], conflicts[1]);
  EXPECT_GT(conflicts[0], 0);
}

TEST(Cores, TheLimitOnStepsIsTheLaunchs) {
  Kernel kernel(kOneWarp);
  bind_matmul(kernel, 64, 64, 64);
  const std::uint64_t steps = run_on(kernel, 4).steps;
  for (const std::size_t cores : {1, 4}) {
    bind_matmul(kernel, 64, 64, 64);
    const Outcome outcome = kernel.run({.steps_max = steps - 1, .cores = cores});
    EXPECT_TRUE(outcome.gave_up);
    EXPECT_EQ(outcome.count(ReportKind::kSteps), 1) << text_of(outcome);
  }
}

}  // namespace

}  // namespace kiln::sim
