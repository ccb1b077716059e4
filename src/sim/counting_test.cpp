// A run that only counts against one that computes: the same counts, block by block.
#include <functional>

#include "sim/sim_test_support.h"

namespace kiln::sim {

namespace {

void expect_same_counts(
    Kernel& kernel, const std::function<void()>& between = [] {}) {
  const Outcome all = kernel.run({.by_operation = true});
  between();
  const Outcome counted = kernel.run({.checks = false, .by_operation = true, .count_only = true});
  EXPECT_EQ(text_of(counted), "");
  ASSERT_EQ(all.by_operation.size(), counted.by_operation.size());
  for (std::size_t i = 0; i < all.by_operation.size(); ++i) {
    const Counters& a = all.by_operation[i];
    const Counters& b = counted.by_operation[i];
    EXPECT_EQ(a.instructions, b.instructions) << "operation " << i;
    EXPECT_EQ(a.bank_conflicts, b.bank_conflicts) << "operation " << i;
    EXPECT_EQ(a.wavefronts_shared, b.wavefronts_shared) << "operation " << i;
    EXPECT_EQ(a.sectors_global, b.sectors_global) << "operation " << i;
    EXPECT_EQ(a.requests_global, b.requests_global) << "operation " << i;
    EXPECT_EQ(a.requests_shared, b.requests_shared) << "operation " << i;
    EXPECT_EQ(a.bytes_global_read, b.bytes_global_read) << "operation " << i;
    EXPECT_EQ(a.bytes_global_written, b.bytes_global_written) << "operation " << i;
    EXPECT_EQ(a.bytes_shared_read, b.bytes_shared_read) << "operation " << i;
    EXPECT_EQ(a.bytes_shared_written, b.bytes_shared_written) << "operation " << i;
  }
}

TEST(Counting, OfProductsIsThatOfARun) {
  for (const char* text : {kOneWarp, kFourWarps}) {
    for (const std::int64_t size : {1, 15, 33, 64, 131}) {
      Kernel kernel(text);
      kernel.bind({{"M", size}, {"N", size + 2}, {"K", 2 * size + 1}});
      expect_same_counts(kernel);
    }
  }
}

// Block b writes n[b] elements.
constexpr const char* kCounted = R"(module arch=sm_80 form=decided

func @counted(global %n: view<s32, global, [4]>, global %y: view<f32, global, [4, 64]>) {
  var b: parallel < 4
  var t: parallel < 32
  var trips: bound
  var k: loop < trips
  parallel level=block vars=[b] threads=32 name="counted" bounds=[32] body={
    parallel level=thread vars=[t] unit=1 body={
      %read = read view=%n index=[b] : s32
      bind var=trips value=%read
      for var=k lower=0 upper=trips step=1 body={
        %one = const value=1 : f32
        write view=%y index=[b, k] value=%one
      }
    }
  }
}
)";

TEST(Counting, FollowsWhatMemorySays) {
  Kernel kernel(kCounted);
  kernel.bind({});
  for (std::size_t b = 0; b < 4; ++b) kernel.tensor(0).set(b, static_cast<double>(3 * b));
  const Outcome counted = kernel.run({.checks = false, .by_operation = true, .count_only = true});
  using Instructions = std::map<std::string, std::int64_t>;
  EXPECT_EQ(counted.counters.instructions,
            (Instructions{{"ld.global.4", 4}, {"st.global.4", 0 + 3 + 6 + 9}}));
}

// What the first operation returns is where the others reach; what they add, nobody has to know.
constexpr const char* kUpdates = R"(module arch=sm_80 form=decided

func @updates(global %n: view<u32, global, [4]>, global %y: view<f32, global, [64]>) {
  var b: parallel < 4
  var t: parallel < 32
  var place: bound
  parallel level=block vars=[b] threads=32 name="updates" bounds=[32] body={
    %zero = const value=0 : f32
    %own = alloc name="own" offset=0 initial=%zero : view<f32, shared, [32]>
    barrier
    parallel level=thread vars=[t] unit=1 body={
      %one = const value=1 : u32
      %old = atomic kind=add view=%n index=[b] value=%one : u32
      bind var=place value=%old
      %half = const value=0.5 : f32
      %whole = binary kind=add left=%half right=%half : f32
      %sum = atomic kind=add view=%own index=[place] value=%whole unused : f32
      %far = atomic kind=add view=%y index=[place] value=%whole unused : f32
    }
  }
}
)";

TEST(Counting, OfAtomicsIsThatOfARun) {
  Kernel kernel(kUpdates);
  kernel.bind({});
  const std::vector<std::byte> zeros = kernel.tensor(0).bytes;
  const auto reset = [&] { kernel.tensor(0).bytes = zeros; };
  reset();
  const Outcome all = kernel.run({.by_operation = true});
  EXPECT_EQ(text_of(all), "");
  reset();
  expect_same_counts(kernel, reset);
  using Instructions = std::map<std::string, std::int64_t>;
  Instructions atomics = all.counters.instructions;
  std::erase_if(atomics, [](const auto& one) { return !one.first.starts_with("atomic"); });
  EXPECT_EQ(atomics, (Instructions{{"atomic.add.global.4", 8}, {"atomic.add.shared.4", 4}}));
}

// Two elements are loaded, their sum is stored.
constexpr const char* kSum = R"(module arch=sm_80 form=decided

func @sum(global %x: view<f32, global, [64]>, global %y: view<f32, global, [32]>) {
  var b: parallel < 1
  var t: parallel < 32
  parallel level=block vars=[b] threads=32 name="sum" bounds=[32] body={
    parallel level=thread vars=[t] unit=1 body={
      %v = read view=%x index=[t] : f32
      %w = read view=%x index=[t + 32] : f32
      %s = binary kind=add left=%v right=%w : f32
      write view=%y index=[t] value=%s
    }
  }
}
)";

TEST(Trace, SaysWhichLoadsAnEntryNeeds) {
  Kernel kernel(kSum);
  kernel.bind({});
  const Outcome outcome =
      kernel.run({.checks = false, .by_operation = true, .count_only = true, .trace = true});
  ASSERT_EQ(outcome.traces.size(), 1U);
  const std::vector<TraceEntry>& entries = outcome.traces[0].entries;
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_TRUE(entries[0].loads && entries[1].loads);
  EXPECT_EQ(entries[1].needs[0], TraceEntry::kNone) << "the loads know nothing of each other";
  EXPECT_FALSE(entries[2].loads);
  EXPECT_EQ(entries[2].needs[0], 1U);
}

}  // namespace

}  // namespace kiln::sim
