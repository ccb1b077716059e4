// Element kernels: threads, divergence, cells, local arrays, host code, and their reports.
#include <algorithm>

#include "sim/sim_test_support.h"

namespace kiln::sim {

namespace {

constexpr const char* kTwice = R"(module arch=sm_80 form=decided

func @twice(global %x: view<f32, global, [N]>, global %y: view<f32, global, [N]>) {
  var N: dim
  var b: parallel < cdiv(N, 96)
  var t: parallel < 96
  parallel level=block vars=[b] threads=96 name="twice" bounds=[96] body={
    parallel level=thread vars=[t] unit=1 body={
      %two = const value=2 : f32
      %at = index expr=96*b + t : s64
      %n = index expr=N : s64
      %inside = binary kind=lt left=%at right=%n : bool
      if condition=%inside then={
        %v = read view=%x index=[96*b + t] : f32
        %w = binary kind=mul left=%v right=%two : f32
        write view=%y index=[96*b + t] value=%w
      }
    }
  }
}
)";

TEST(Elements, AGuardedKernelIsRightAndQuiet) {
  for (const std::int64_t n : {1, 95, 96, 97, 500}) {
    Kernel kernel(kTwice);
    kernel.bind({{"N", n}});
    kernel.fill_ramp(0);
    const Outcome outcome = kernel.run({.schedules = 3});
    EXPECT_EQ(text_of(outcome), "");
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      ASSERT_EQ(kernel.tensor(1).get(i), 2.0 * static_cast<double>(i));
    }
  }
}

TEST(Elements, WhatNobodyWroteIsKnown) {
  Kernel all(kTwice);
  all.bind({{"N", 97}});
  EXPECT_TRUE(all.run().unwritten.empty());

  Kernel kernel(replaced(kTwice, "%n = index expr=N", "%n = index expr=N - 3"));
  kernel.bind({{"N", 97}});
  const Outcome outcome = kernel.run({.schedules = 2});
  ASSERT_EQ(outcome.unwritten.size(), 1U);
  EXPECT_EQ(outcome.unwritten[0].param, 1U);
  EXPECT_EQ(outcome.unwritten[0].count, 3);
  EXPECT_FALSE(outcome.unwritten[0].elements[93]);
  EXPECT_TRUE(outcome.unwritten[0].elements[94]);
  EXPECT_TRUE(kernel.run({.checks = false}).unwritten.empty()) << "nothing was recorded";
}

TEST(Elements, WithoutItsGuardItLeavesTheArray) {
  Kernel kernel(replaced(kTwice, "kind=lt left=%at right=%n", "kind=ge left=%at right=%at"));
  kernel.bind({{"N", 97}});
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kOutOfBounds), 2) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message,
            "`x[97]` is outside: dimension 0 is 97, which is not below 97");
  EXPECT_EQ(outcome.reports[0].count, 95);
  EXPECT_EQ(outcome.reports[0].accesses[0].what, "read of x[97] by thread 1 (warp 0) of block 1");
  EXPECT_EQ(kernel.line(outcome.reports[1].accesses[0]).substr(0, 14), "write view=%y ");
}

TEST(Elements, BlocksThatWriteTheSameElementRace) {
  Kernel kernel(replaced(kTwice, "write view=%y index=[96*b + t]", "write view=%y index=[t]"));
  kernel.bind({{"N", 192}});
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.reports.size(), 1U) << text_of(outcome);
  const Report& race = outcome.reports[0];
  EXPECT_EQ(race.kind, ReportKind::kRace);
  EXPECT_EQ(race.count, 96);
  EXPECT_EQ(race.accesses[0].what, "write of y[0] by thread 0 (warp 0) of block 0");
  EXPECT_EQ(race.accesses[1].what, "write of y[0] by thread 0 (warp 0) of block 1");
  EXPECT_EQ(race.missing, "nothing orders the blocks of one launch");
}

// Reverses 64 numbers through shared memory.
constexpr const char* kReverse = R"(module arch=sm_80 form=decided

func @reverse(global %x: view<s32, global, [64]>, global %y: view<s32, global, [64]>) {
  var b: parallel < 1
  var t: parallel < 64
  parallel level=block vars=[b] threads=64 name="reverse" shared_bytes=256 bounds=[64] body={
    %s = alloc name="s" offset=0 : view<s32, shared, [64]>
    parallel level=thread vars=[t] unit=1 body={
      %v = read view=%x index=[t] : s32
      write view=%s index=[t] value=%v
      barrier level=block
      %w = read view=%s index=[63 - t] : s32
      write view=%y index=[t] value=%w
    }
  }
}
)";

TEST(Elements, ReversesThroughSharedMemory) {
  Kernel kernel(kReverse);
  kernel.bind({});
  kernel.fill_ramp(0);
  EXPECT_EQ(text_of(kernel.run({.schedules = 4})), "");
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_EQ(kernel.tensor(1).get(i), 63.0 - static_cast<double>(i));
}

TEST(Elements, WithoutItsBarrierEveryScheduleSeesTheRace) {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    Kernel kernel(without_line(kReverse, "barrier"));
    kernel.bind({});
    const Outcome outcome = kernel.run({.seed = seed});
    EXPECT_GE(outcome.count(ReportKind::kRace), 1) << text_of(outcome);
    for (const Report& report : outcome.reports) EXPECT_EQ(report.schedule_seed, seed);
  }
}

TEST(Elements, AGroupBarrierIsNotEnoughForTwoWarps) {
  Kernel kernel(replaced(kReverse, "level=block\n", "level=group\n"));
  kernel.bind({});
  const Outcome outcome = kernel.run();
  ASSERT_GE(outcome.count(ReportKind::kRace), 1);
  const auto race = std::find_if(outcome.reports.begin(), outcome.reports.end(),
                                 [](const Report& r) { return r.kind == ReportKind::kRace; });
  EXPECT_EQ(race->missing, "no block barrier between them");
}

TEST(Elements, ReadingSharedMemoryNobodyWroteIsReported) {
  Kernel kernel(
      replaced(kReverse, "write view=%s index=[t]", "write view=%s index=[floordiv(t, 2)]"));
  kernel.bind({});
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kUninitialised), 1) << text_of(outcome);
  EXPECT_EQ(outcome.count(ReportKind::kRace), 1) << "two threads write each element";
}

TEST(Elements, InitialisedSharedMemoryIsReady) {
  std::string text = replaced(kReverse, "    %s = alloc name=\"s\"",
                              "    %seven = const value=7 : s32\n"
                              "    %s = alloc name=\"s\" initial=%seven");
  text = replaced(text, "write view=%s index=[t] value=%v", "barrier level=block");
  Kernel kernel(text);
  kernel.bind({});
  EXPECT_EQ(text_of(kernel.run()), "");
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(kernel.tensor(1).get(i), 7.0);
}

// `condition` guards a barrier.
std::string guarded_barrier(const std::string& condition) {
  return replaced(kReverse, "      barrier level=block\n",
                  "      %one = const value=1 : s32\n"
                  "      %t = index expr=t : s32\n"
                  "      %limit = const value=" +
                      condition +
                      " : s32\n"
                      "      %some = binary kind=lt left=%t right=%limit : bool\n"
                      "      if condition=%some then={\n"
                      "        barrier level=block\n"
                      "      }\n");
}

TEST(Elements, ABarrierThatOneWarpSkipsIsADeadlock) {
  Kernel kernel(guarded_barrier("32"));
  kernel.bind({});
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.count(ReportKind::kDeadlock), 1) << text_of(outcome);
  EXPECT_EQ(outcome.count(ReportKind::kDivergence), 0);
  const auto deadlock =
      std::find_if(outcome.reports.begin(), outcome.reports.end(),
                   [](const Report& r) { return r.kind == ReportKind::kDeadlock; });
  EXPECT_EQ(deadlock->message,
            "deadlock: 1 of 2 warps waits at a barrier that the other never reaches");
  ASSERT_EQ(deadlock->accesses.size(), 1U);
  EXPECT_EQ(kernel.line(deadlock->accesses[0]), "barrier level=block");
  EXPECT_EQ(deadlock->accesses[0].what, "warp 0 waits at a block barrier");
}

TEST(Elements, ABarrierThatHalfAWarpSkipsIsDivergence) {
  Kernel kernel(guarded_barrier("48"));
  kernel.bind({});
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kDivergence), 1) << text_of(outcome);
  EXPECT_EQ(outcome.count(ReportKind::kDeadlock), 0);
}

TEST(Elements, ABarrierThatEveryWarpReachesUnderItsOwnIfIsFine) {
  Kernel kernel(guarded_barrier("64"));
  kernel.bind({});
  EXPECT_EQ(text_of(kernel.run()), "");
}

// Row sums with a per-lane trip count, a cell, a local array and an else branch; the result is
// returned.
constexpr const char* kSums = R"(module arch=sm_80 form=decided

func @sums(%x: view<s32, global, [N]>, %limit: s32 as limit) {
  var N: dim
  var limit: scalar
  var twice: bound
  var b: parallel < 1
  var t: parallel < N
  var i: loop < 4
  var j: loop < 4
  %two = const value=2 : s32
  %doubled = binary kind=mul left=%limit right=%two : s32
  bind var=twice value=%doubled
  %r = alloc name="r" : view<s32, global, [N, 2]>
  parallel level=block vars=[b] threads=N name="sums" threads_max=1024 bounds=[1024] body={
    parallel level=thread vars=[t] unit=1 body={
      %zero = const : s32
      %acc = alloc name="acc" initial=%zero : cell<s32>
      %l = alloc name="l" : view<s32, local, [4]>
      for var=i upper=4 body={
        %v = read view=%x index=[t] : s32
        %iv = index expr=i + twice : s32
        %p = binary kind=mul left=%v right=%iv : s32
        write view=%l index=[i] value=%p
      }
      for var=j lower=1 upper=mod(t, 4) body={
        %got = get cell=%acc : s32
        %e = read view=%l index=[j] : s32
        %sum = binary kind=add left=%got right=%e : s32
        set cell=%acc value=%sum
      }
      %total = get cell=%acc : s32
      %even = binary kind=eq left=%total right=%zero : bool
      if condition=%even then={
        write view=%r index=[t, 0] value=%total
        write view=%r index=[t, 1] value=%doubled
      } else={
        write view=%r index=[t, 1] value=%total
        write view=%r index=[t, 0] value=%limit
      }
    }
  }
  return value=%r
}
)";

TEST(Elements, CellsLocalArraysAndPerLaneLoops) {
  Kernel kernel(kSums);
  kernel.bind({{"N", 70}, {"limit", 5}});
  kernel.fill_ramp(0);
  EXPECT_EQ(text_of(kernel.run({.schedules = 2})), "");
  const Tensor& r = kernel.arguments.returned.tensor;
  ASSERT_EQ(r.shape, (std::vector<std::int64_t>{70, 2}));
  for (std::size_t t = 0; t < 70; ++t) {
    double sum = 0;
    for (std::size_t j = 1; j < t % 4; ++j) sum += static_cast<double>(t * (j + 10));
    EXPECT_EQ(r.get(2 * t + (sum == 0 ? 0 : 1)), sum) << t;
    EXPECT_EQ(r.get(2 * t + (sum == 0 ? 1 : 0)), sum == 0 ? 10 : 5) << t;
  }
}

TEST(Elements, ALocalElementNobodyWroteIsReported) {
  Kernel kernel(replaced(kSums, "for var=i upper=4", "for var=i lower=2 upper=4"));
  kernel.bind({{"N", 8}, {"limit", 1}});
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.reports.size(), 1U) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message, "`l[1]` is read before anything is written to it");
}

TEST(Elements, ACellNobodySetIsReported) {
  Kernel kernel(replaced(kSums, " initial=%zero", ""));
  kernel.bind({{"N", 8}, {"limit", 1}});
  EXPECT_EQ(kernel.run().count(ReportKind::kUninitialised), 2);
}

TEST(Elements, ReturnedMemoryThatIsReadBeforeItIsWritten) {
  Kernel kernel(replaced(kSums, "%v = read view=%x index=[t]", "%v = read view=%r index=[t, 0]"));
  kernel.bind({{"N", 8}, {"limit", 1}});
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.count(ReportKind::kUninitialised), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].accesses[0].what, "read of r[0, 0] by thread 0 (warp 0) of block 0");
}

// One elected thread writes, a host loop launches again and again.
constexpr const char* kOnce = R"(module arch=sm_80 form=decided

func @count(ref %x: view<s32, global, [4]>) {
  var b: parallel < 1
  var w: parallel < 2
  var step: loop < 3
  for var=step upper=3 body={
    parallel level=block vars=[b] threads=64 name="count" bounds=[64] body={
      once body={
        %v = read view=%x index=[step] : s32
        %s = index expr=step + 5 : s32
        %sum = binary kind=add left=%v right=%s : s32
        write view=%x index=[step] value=%sum
      }
      parallel level=group vars=[w] unit=32 body={
        once body={
          %one = index expr=w : s32
          %is = binary kind=eq left=%one right=%one : bool
          assert condition=%is message="once"
        }
      }
    }
  }
}
)";

TEST(Elements, OnceElectsOneThread) {
  Kernel kernel(kOnce);
  kernel.bind({});
  kernel.fill_ramp(0);
  EXPECT_EQ(text_of(kernel.run()), "");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(kernel.tensor(0).get(i), 5.0 + 2.0 * static_cast<double>(i));
  EXPECT_EQ(kernel.tensor(0).get(3), 3);
}

TEST(Elements, WithoutOnceAllThreadsRace) {
  std::string text = replaced(kOnce, "      once body={\n        %v",
                              "      for var=again upper=1 body={\n        %v");
  Kernel kernel(replaced(text, "  var b: parallel", "  var again: loop < 1\n  var b: parallel"));
  kernel.bind({});
  EXPECT_GE(kernel.run().count(ReportKind::kRace), 1);
}

TEST(Elements, AssertionsAndDivisionsByZeroAreReported) {
  std::string text =
      replaced(kOnce, "kind=eq left=%one right=%one", "kind=lt left=%one right=%one");
  text = replaced(text, "%is = binary",
                  "%odd = binary kind=div left=%one right=%one : s32\n          %is = binary");
  Kernel kernel(text);
  kernel.bind({});
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.reports.size(), 2U) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].kind, ReportKind::kDivisionByZero);
  EXPECT_EQ(outcome.reports[0].count, 3) << "in warp 0 of each launch";
  EXPECT_EQ(outcome.reports[1].kind, ReportKind::kAssertion);
  EXPECT_EQ(outcome.reports[1].message, "once");
  EXPECT_EQ(outcome.reports[1].count, 6);
}

// Copies whose source is smaller than the tile, between windows, and to local memory.
constexpr const char* kCopies = R"(module arch=sm_80 form=decided

func @copies(global %x: view<f16, global, [rows, 24]>, global %y: view<f16, global, [8, 16]>) {
  var rows: dim
  var b: parallel < 1
  var t: parallel < 32
  parallel level=block vars=[b] threads=32 name="copies" shared_bytes=512 bounds=[32] body={
    %s = alloc name="s" offset=0 : view<f16, shared, [8, 16]>
    %from = subview base=%x origin=[0, 8] : view<f16, global, [rows, 16]>
    copy src=%from dst=%s way=gather threads=32 widths=[16, 8, 4, 2] src_limited=[0] dst_limited=[0] guarded=[0]
    barrier level=block
    %left = subview base=%s origin=[0, 0] : view<f16, shared, [8, 8]>
    %right = subview base=%y origin=[0, 8] : view<f16, global, [8, 8]>
    copy src=%left dst=%right way=gather threads=32 widths=[16]
    parallel level=thread vars=[t] unit=1 body={
      %l = alloc name="l" : view<f16, local, [8]>
      %row = subview base=%s origin=[mod(t, 8), 8] drop=1 : view<f16, shared, [8]>
      copy src=%row dst=%l unit=1 way=per_thread widths=[2]
      %e = read view=%l index=[floordiv(t, 8)] : f16
      write view=%y index=[mod(t, 8), floordiv(t, 8)] value=%e
    }
  }
}
)";

TEST(Copies, SmallSourcesWindowsAndLocalMemory) {
  Kernel kernel(kCopies);
  kernel.bind({{"rows", 5}});
  kernel.fill_ramp(0);
  EXPECT_EQ(text_of(kernel.run({.schedules = 3})), "");
  const auto x = [&](std::size_t row, std::size_t col) {
    return row < 5 ? kernel.tensor(0).get(row * 24 + col) : 0.0;
  };
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t col = 0; col < 8; ++col) {
      EXPECT_EQ(kernel.tensor(1).get(row * 16 + 8 + col), x(row, 8 + col));
      if (col < 4) {
        EXPECT_EQ(kernel.tensor(1).get(row * 16 + col), x(row, 16 + col));
      }
    }
  }
}

TEST(Copies, AMisalignedVectorIsReportedAndStillMoves) {
  Kernel kernel(replaced(kCopies, "%right = subview base=%y origin=[0, 8]",
                         "%right = subview base=%y origin=[0, 7]"));
  kernel.bind({{"rows", 8}});
  kernel.fill_ramp(0);
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kMisaligned), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message,
            "an access of 16 bytes at byte 14 of `y`, which is no multiple of 16");
  EXPECT_EQ(kernel.tensor(1).get(7), kernel.tensor(0).get(8));
}

TEST(Copies, AWindowThatLeavesItsBufferIsReported) {
  Kernel kernel(replaced(kCopies, "%left = subview base=%s origin=[0, 0]",
                         "%left = subview base=%s origin=[4, 0]"));
  kernel.bind({{"rows", 8}});
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kOutOfBounds), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message,
            "`s[8, 0]` is outside: dimension 0 is 8, which is not below 8");
}

// A tile that reaches past the end of a shared buffer, as destination and as source.
constexpr const char* kEdges = R"(module arch=sm_80 form=decided

func @edges(global %x: view<f32, global, [3]>, global %y: view<f32, global, [16]>) {
  var b: parallel < 1
  var t: parallel < 32
  parallel level=block vars=[b] threads=32 name="edges" shared_bytes=128 bounds=[32] body={
    %one = const value=1 : f32
    %s = alloc name="s" initial=%one offset=0 : view<f32, shared, [8]>
    %after = alloc name="after" initial=%one offset=32 : view<f32, shared, [8]>
    barrier level=group
    %head = subview base=%x origin=[0] : view<f32, global, [4]>
    %tail = subview base=%s origin=[6] : view<f32, shared, [4]>
    copy src=%head dst=%tail way=element threads=32 widths=[4] guarded=[0] tile_guarded=[0]
    barrier level=group
    %wide = subview base=%s origin=[5] : view<f32, shared, [8]>
    %low = subview base=%y origin=[0] : view<f32, global, [8]>
    copy src=%wide dst=%low way=element threads=32 widths=[4] tile_guarded=[0]
    copy src=%wide dst=%after way=element threads=32 widths=[4] guarded=[0]
    barrier level=group
    %high = subview base=%y origin=[8] : view<f32, global, [8]>
    copy src=%after dst=%high way=gather threads=32 widths=[16, 8, 4]
  }
}
)";

TEST(Copies, GuardedSharedSidesReadZeroAndAreNotWritten) {
  Kernel kernel(kEdges);
  kernel.bind({});
  kernel.fill_ramp(0);
  EXPECT_EQ(text_of(kernel.run({.schedules = 3})), "");
  const Tensor& x = kernel.tensor(0);
  const double wanted[] = {1, x.get(0), x.get(1), 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(kernel.tensor(1).get(i), wanted[i % 8]) << "element " << i;
  }
}

TEST(Copies, AnUnguardedSharedSideIsReported) {
  Kernel kernel(replaced(kEdges, "guarded=[0] tile_guarded=[0]", "guarded=[0]"));
  kernel.bind({});
  const Outcome outcome = kernel.run();
  EXPECT_EQ(outcome.count(ReportKind::kOutOfBounds), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message,
            "`s[8]` is outside: dimension 0 is 8, which is not below 8");
}

TEST(Arguments, OfTheWrongShapeAreRefused) {
  Kernel kernel(kReverse);
  kernel.bind({});
  kernel.arguments.params[0].tensor = Tensor::zeros(DType::kS32, {63});
  Sources sources;
  Diagnostics diags;
  const auto module = ir::parse(sources, sources.add("k", kReverse), diags);
  const Result<Outcome> outcome = sim::run(*module, module->functions[0], kernel.arguments, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().what, "the argument is [63] of s32, the parameter [64] of s32");
  EXPECT_EQ(outcome.error().subject, "x");
}

}  // namespace

}  // namespace kiln::sim
