// Events between regions of threads: right programs are clean in every schedule, and each missing
// or misplaced edge is reported for what it is.
#include "sim/sim_test_support.h"

namespace kiln::sim {

namespace {

// A ring of two slots between a warp that fills it and one that empties it, six tiles.
constexpr const char* kRing = R"(module arch=sm_90a form=decided

func @ring(global %x: view<s32, global, [6, 32]>, global %y: view<s32, global, [6, 32]>) {
  var b: parallel < 1
  var k: loop < 6
  var k_1: loop < 6
  parallel level=block vars=[b] threads=64 name="ring" shared_bytes=288 bounds=[64] overlaps body={
    %s = alloc name="s" offset=0 : view<s32, shared, [2, 32]>
    %full = event name="full" arrivals=1 offset=256 : event<2>
    %empty = event name="empty" ready arrivals=1 offset=272 : event<2>
    inthreads first=0 threads=32 async body={
      for var=k upper=6 body={
        event_wait event=%empty slot=mod(k, 2)
        %from = subview base=%x origin=[k, 0] drop=1 : view<s32, global, [32]>
        %in = subview base=%s origin=[mod(k, 2), 0] drop=1 : view<s32, shared, [32]>
        copy src=%from dst=%in way=vector threads=32 widths=[4]
        trigger event=%full slot=mod(k, 2) arrival=warp
      }
    }
    inthreads first=32 threads=32 async body={
      for var=k_1 upper=6 body={
        event_wait event=%full slot=mod(k_1, 2)
        %out = subview base=%s origin=[mod(k_1, 2), 0] drop=1 : view<s32, shared, [32]>
        %to = subview base=%y origin=[k_1, 0] drop=1 : view<s32, global, [32]>
        copy src=%out dst=%to way=vector threads=32 widths=[4] first=32
        trigger event=%empty slot=mod(k_1, 2) arrival=warp
      }
    }
  }
}
)";

constexpr const char* kWaitEmpty = "event_wait event=%empty slot=mod(k, 2)";
constexpr const char* kWaitFull = "event_wait event=%full slot=mod(k_1, 2)";
constexpr const char* kTriggerFull = "trigger event=%full slot=mod(k, 2) arrival=warp";
constexpr const char* kTriggerEmpty = "trigger event=%empty slot=mod(k_1, 2) arrival=warp";
constexpr const char* kEmpty = "%empty = event name=\"empty\" ready arrivals=1";

Outcome outcome_of(const std::string& text, std::uint64_t seed) {
  Kernel kernel(text);
  kernel.bind({});
  kernel.fill_ramp(0);
  return kernel.run({.seed = seed});
}

// The report of the kind, or an empty one.
Report report_of(const Outcome& outcome, ReportKind kind) {
  for (const Report& report : outcome.reports) {
    if (report.kind == kind) return report;
  }
  ADD_FAILURE() << "no " << name(kind) << " in:\n" << text_of(outcome);
  return {};
}

bool names_trigger(const Report& report) {
  for (const Access& access : report.accesses) {
    if (access.what.starts_with("a trigger here would free warp")) return true;
  }
  return false;
}

// The kind is found in the schedule that runs warps in turn and in random ones alike.
void expect_found(const std::string& text, ReportKind kind) {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    const Outcome outcome = outcome_of(text, seed);
    EXPECT_GE(outcome.count(kind), 1) << name(kind) << ", seed " << seed << "\n"
                                      << text_of(outcome);
  }
}

TEST(Events, ARingIsCleanInFiftySchedules) {
  Kernel kernel(kRing);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    kernel.bind({});
    kernel.fill_ramp(0);
    ASSERT_EQ(text_of(kernel.run({.seed = seed})), "") << seed;
    ASSERT_EQ(kernel.tensor(1).bytes, kernel.tensor(0).bytes) << seed;
  }
}

TEST(Events, AReaderThatDoesNotWaitRaces) {
  expect_found(without_line(kRing, kWaitFull), ReportKind::kRace);
}

// Where the writer runs ahead of the first read, only the events tell.
TEST(Events, AWriterThatDoesNotWaitOverrunsTheReader) {
  const std::string text = without_line(kRing, kWaitEmpty);
  expect_found(text, ReportKind::kOverrun);
  std::int64_t races = 0;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    races += outcome_of(text, seed).count(ReportKind::kRace);
  }
  EXPECT_GT(races, 0);
}

TEST(Events, AMissingTriggerIsADeadlock) {
  for (const char* trigger : {kTriggerFull, kTriggerEmpty}) {
    expect_found(without_line(kRing, trigger), ReportKind::kDeadlock);
  }
  const Report report =
      report_of(outcome_of(without_line(kRing, kTriggerEmpty), 0), ReportKind::kDeadlock);
  EXPECT_EQ(report.message, "deadlock: 2 of 2 warps wait for each other");
  EXPECT_EQ(report.missing, "generation 1 of `empty[0]` lacks 1 of 1 arrival");
}

TEST(Events, ADeadlockNamesTheTriggerThatWouldEndIt) {
  const std::string text =
      replaced(kRing, kTriggerEmpty, "trigger event=%empty slot=1 arrival=warp");
  const Report report = report_of(outcome_of(text, 0), ReportKind::kDeadlock);
  EXPECT_TRUE(names_trigger(report));
}

TEST(Events, ATriggerBeforeTheLastUseRaces) {
  const std::string text = replaced(without_line(kRing, kTriggerEmpty), kWaitFull,
                                    format("{}\n        {}", kWaitFull, kTriggerEmpty).c_str());
  expect_found(text, ReportKind::kRace);
}

// The tile was there before the other slot's: its own event is what runs ahead.
TEST(Events, AWaitForTheOtherSlotIsOverrun) {
  expect_found(replaced(kRing, kWaitFull, "event_wait event=%full slot=mod(k_1 + 1, 2)"),
               ReportKind::kOverrun);
}

TEST(Events, ATileInTheOtherSlotRaces) {
  expect_found(replaced(kRing, "%out = subview base=%s origin=[mod(k_1, 2), 0]",
                        "%out = subview base=%s origin=[mod(k_1 + 1, 2), 0]"),
               ReportKind::kRace);
}

TEST(Events, ASlotPastTheLastIsOutside) {
  const Outcome outcome =
      outcome_of(replaced(kRing, kWaitFull, "event_wait event=%full slot=k_1"), 0);
  EXPECT_EQ(report_of(outcome, ReportKind::kOutOfBounds).message,
            "`full[2]` is outside: there are 2 slots");
}

TEST(Events, MoreArrivalsThanCountedAreReported) {
  const std::string text =
      replaced(kRing, kTriggerFull, "trigger event=%full slot=mod(k, 2) arrival=thread");
  expect_found(text, ReportKind::kOverrun);
  EXPECT_EQ(report_of(outcome_of(text, 0), ReportKind::kOverrun).message,
            "`full[0]` gets more arrivals than a generation of it has (1)");
}

TEST(Events, EveryThreadMayArrive) {
  std::string text = replaced(kRing, "name=\"full\" arrivals=1", "name=\"full\" arrivals=32");
  text = replaced(text, kTriggerFull, "trigger event=%full slot=mod(k, 2) arrival=thread");
  EXPECT_EQ(text_of(outcome_of(text, 0)), "");
  EXPECT_EQ(text_of(outcome_of(text, 1)), "");
}

TEST(Events, FewerArrivalsThanCountedAreADeadlock) {
  const std::string text = replaced(kRing, "name=\"full\" arrivals=1", "name=\"full\" arrivals=3");
  expect_found(text, ReportKind::kDeadlock);
  const Report report = report_of(outcome_of(text, 0), ReportKind::kDeadlock);
  ASSERT_EQ(report.accesses.size(), 3U) << "two waits and the trigger that would free the first";
  EXPECT_EQ(report.accesses[1].what,
            "warp 1 waits: generation 0 of `full[0]` lacks 2 of 3 arrivals");
}

// Two generations complete while their waiter has not passed the first: on the hardware the phase
// bit is back where it was. With no data between them only the events can tell.
TEST(Events, AGenerationThatRunsAheadOfItsWaiterIsReportedInEverySchedule) {
  const std::string text = without_line(without_line(kRing, kWaitEmpty), "copy src=%from");
  expect_found(text, ReportKind::kOverrun);
}

TEST(Events, AStatedGenerationIsTheOneWaitedFor) {
  const std::string right = replaced(
      replaced(kRing, kWaitFull,
               "event_wait event=%full slot=mod(k_1, 2) tracked=false "
               "generation=floordiv(k_1, 2)"),
      kWaitEmpty, "event_wait event=%empty slot=mod(k, 2) tracked=false generation=floordiv(k, 2)");
  for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(text_of(outcome_of(right, seed)), "");
  expect_found(replaced(right, "generation=floordiv(k_1, 2)", "generation=floordiv(k_1, 2) + 1"),
               ReportKind::kDeadlock);
}

TEST(Events, AGenerationHalfArrivedAtTheEndIsUnfinished) {
  std::string text = replaced(
      kRing, kEmpty,
      format("%done = event name=\"done\" arrivals=2 offset=280 : event<1>\n    {}", kEmpty)
          .c_str());
  text = replaced(text, "    inthreads first=32 threads=32 async body={\n",
                  "    inthreads first=32 threads=32 async body={\n"
                  "      trigger event=%done arrival=warp\n");
  expect_found(text, ReportKind::kUnfinished);
  EXPECT_EQ(report_of(outcome_of(text, 0), ReportKind::kUnfinished).message,
            "the block ends with a generation begun: generation 0 of `done` lacks 1 of 2 arrivals");
}

// Three of a region's four warps come to its barrier, or all of them.
constexpr const char* kNamed = R"(module arch=sm_90a form=decided

func @named(global %x: view<s32, global, [128]>, global %y: view<s32, global, [128]>) {
  var b: parallel < 1
  var g: parallel < 8
  parallel level=block vars=[b] threads=256 name="named" shared_bytes=512 bounds=[256] overlaps body={
    %s = alloc name="s" offset=0 : view<s32, shared, [128]>
    parallel level=group vars=[g] unit=32 body={
      inthreads first=128 threads=128 async barrier=1 body={
        copy src=%x dst=%s way=vector threads=128 widths=[4] first=128
        %at = index expr=g : s32
        %last = const value=LAST : s32
        %some = binary kind=lt left=%at right=%last : bool
        if condition=%some then={
          barrier level=block id=1 threads=128
        }
        copy src=%s dst=%y way=vector threads=64 widths=[8] first=128
      }
    }
  }
}
)";

TEST(Events, ANamedBarrierNeedsItsThreads) {
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    EXPECT_EQ(text_of(outcome_of(replaced(kNamed, "LAST", "8"), seed)), "");
    const Outcome outcome = outcome_of(replaced(kNamed, "LAST", "7"), seed);
    EXPECT_GE(outcome.count(ReportKind::kDeadlock), 1) << text_of(outcome);
  }
  expect_found(replaced(without_line(kNamed, "barrier level=block"), "LAST", "8"),
               ReportKind::kRace);
}

}  // namespace

}  // namespace kiln::sim
