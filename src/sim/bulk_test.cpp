// Bulk copies: boxes of every rank and swizzle against plain loops, clipped at each edge, and what
// a missing wait, fence, byte or arrival looks like.
#include <algorithm>

#include "sim/sim_test_support.h"

namespace kiln::sim {

namespace {

using Shape = std::vector<std::int64_t>;

// --- where boxes go

// A tile of `shape` at `origin` of the parameter %x, fetched into shared memory and written to %y.
struct Box {
  Shape extents;  // of %x
  Shape origin;
  Shape tile;  // of %y too
  Shape box;
  std::int64_t swizzle = 0;
};

std::string list(const Shape& values) {
  std::string out;
  for (const std::int64_t value : values) out += format("{}{}", out.empty() ? "" : ", ", value);
  return "[" + out + "]";
}

std::int64_t product(const Shape& shape) {
  std::int64_t out = 1;
  for (const std::int64_t extent : shape) out *= extent;
  return out;
}

// One warp, elements of two bytes.
std::string box_kernel(const Box& box, bool loads) {
  const std::int64_t bytes = 2 * product(box.tile);
  const std::string tile = list(box.tile);
  const std::string swizzle = box.swizzle == 0 ? "" : format(" swizzle={}", box.swizzle);
  std::string out = "module arch=sm_90a form=decided\n\n";
  out += format("func @f(global %x: view<f16, global, {}>, global %y: view<f16, global, {}>) {{\n",
                list(box.extents), tile);
  out += "  var b: parallel < 1\n";
  out += format(
      "  parallel level=block vars=[b] threads=32 name=\"f\" shared_bytes={} bounds=[32] overlaps "
      "body={{\n"
      "    %s = alloc name=\"s\" offset=0{} : view<f16, shared, {}>\n"
      "    %e = event name=\"e\" arrivals=1 offset={} : event<1>\n"
      "    %part = subview base=%x origin={} : view<f16, global, {}>\n",
      bytes + 8, swizzle, tile, bytes, list(box.origin), tile);
  if (loads) {
    out += format(
        "    copy src=%part dst=%s async bulk event=%e way=bulk threads=1 box={}\n"
        "    trigger event=%e arrival=elected bytes={}\n"
        "    event_wait event=%e\n"
        "    copy src=%s dst=%y way=vector threads=32 widths=[2]\n",
        list(box.box), bytes);
  } else {
    out += format(
        "    copy src=%y dst=%s way=vector threads=32 widths=[2]\n"
        "    proxy_fence\n"
        "    barrier level=block\n"
        "    copy src=%s dst=%part bulk way=bulk threads=1 box={}\n"
        "    bulk_wait\n",
        list(box.box));
  }
  return out + "  }\n}\n";
}

// Calls `visit(element of %y, element of %x or -1)` for each element of the tile.
template <class Visit>
void for_each_element(const Box& box, Visit&& visit) {
  for (std::int64_t i = 0; i < product(box.tile); ++i) {
    std::int64_t rest = i;
    std::int64_t there = 0;
    std::int64_t stride = 1;
    bool inside = true;
    for (std::size_t d = box.tile.size(); d-- > 0;) {
      const std::int64_t at = box.origin[d] + rest % box.tile[d];
      rest /= box.tile[d];
      inside = inside && at >= 0 && at < box.extents[d];
      there += at * stride;
      stride *= box.extents[d];
    }
    visit(static_cast<std::size_t>(i), inside ? there : -1);
  }
}

// Distinct numbers that f16 holds, none of them 0.
void fill_distinct(Tensor& tensor) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    tensor.set(i, static_cast<double>(i % 2000 + 1));
  }
}

std::int64_t wrong_in_load(const Box& box, std::uint64_t seed) {
  Kernel kernel(box_kernel(box, true));
  kernel.bind({});
  fill_distinct(kernel.tensor(0));
  EXPECT_EQ(text_of(kernel.run({.seed = seed})), "") << box_kernel(box, true);
  std::int64_t wrong = 0;
  for_each_element(box, [&](std::size_t here, std::int64_t there) {
    const double wanted = there < 0 ? 0 : kernel.tensor(0).get(static_cast<std::size_t>(there));
    wrong += kernel.tensor(1).get(here) == wanted ? 0 : 1;
  });
  return wrong;
}

// Elements of the whole of %x that are not as they should be.
std::int64_t wrong_in_store(const Box& box, std::uint64_t seed) {
  Kernel kernel(box_kernel(box, false));
  kernel.bind({});
  fill_distinct(kernel.tensor(1));
  EXPECT_EQ(text_of(kernel.run({.seed = seed})), "") << box_kernel(box, false);
  std::vector<double> wanted(static_cast<std::size_t>(product(box.extents)));
  for_each_element(box, [&](std::size_t here, std::int64_t there) {
    if (there >= 0) wanted[static_cast<std::size_t>(there)] = kernel.tensor(1).get(here);
  });
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wrong += kernel.tensor(0).get(i) == wanted[i] ? 0 : 1;
  }
  return wrong;
}

// A store may not begin before the first element of a dimension.
void expect_moved(const Box& box) {
  for (const std::uint64_t seed : {0U, 1U}) {
    EXPECT_EQ(wrong_in_load(box, seed), 0) << box_kernel(box, true);
    if (std::ranges::any_of(box.origin, [](std::int64_t at) { return at < 0; })) continue;
    EXPECT_EQ(wrong_in_store(box, seed), 0) << box_kernel(box, false);
  }
}

TEST(Boxes, OfEveryRankMoveTheirBytes) {
  expect_moved({.extents = {100}, .origin = {16}, .tile = {64}, .box = {64}});
  expect_moved({.extents = {20, 40}, .origin = {3, 8}, .tile = {16, 32}, .box = {16, 32}});
  expect_moved(
      {.extents = {5, 20, 40}, .origin = {1, 2, 8}, .tile = {2, 8, 16}, .box = {2, 8, 16}});
  // More boxes than one, along each dimension.
  expect_moved({.extents = {100}, .origin = {16}, .tile = {64}, .box = {16}});
  expect_moved({.extents = {20, 40}, .origin = {3, 8}, .tile = {16, 32}, .box = {8, 32}});
  expect_moved(
      {.extents = {5, 20, 40}, .origin = {1, 2, 8}, .tile = {2, 8, 16}, .box = {1, 4, 16}});
}

// A tile two panels wide: a box is as wide as the swizzle.
TEST(Boxes, OfEverySwizzleMoveTheirBytes) {
  for (const std::int64_t swizzle : {32, 64, 128}) {
    const std::int64_t panel = swizzle / 2;
    for (const std::int64_t rows : {8, 16, 24}) {
      expect_moved({.extents = {40, 200},
                    .origin = {2, 16},
                    .tile = {rows, 2 * panel},
                    .box = {rows, panel},
                    .swizzle = swizzle});
    }
  }
  expect_moved(
      {.extents = {40, 200}, .origin = {2, 16}, .tile = {16, 16}, .box = {16, 8}, .swizzle = 16});
}

TEST(Boxes, AreClippedAtEachEdge) {
  for (const std::int64_t row : {-20, -16, -5, 0, 7, 20, 24}) {
    for (const std::int64_t column : {-80, -64, -16, 0, 8, 32, 40}) {
      expect_moved({.extents = {24, 40},
                    .origin = {row, column},
                    .tile = {16, 64},
                    .box = {16, 64},
                    .swizzle = 128});
    }
  }
  for (const std::int64_t plane : {-2, -1, 0, 2, 3}) {
    expect_moved(
        {.extents = {3, 10, 24}, .origin = {plane, 5, 16}, .tile = {2, 8, 16}, .box = {2, 8, 16}});
  }
  for (const std::int64_t at : {-72, -8, 88, 104}) {
    expect_moved({.extents = {100}, .origin = {at}, .tile = {64}, .box = {64}});
  }
}

TEST(Boxes, BeginAtMultiplesOf16BytesOfARow) {
  for (const bool loads : {true, false}) {
    for (const std::int64_t column : {-1, 3, 20}) {
      const Box box{.extents = {24, 40}, .origin = {0, column}, .tile = {8, 8}, .box = {8, 8}};
      Kernel kernel(box_kernel(box, loads));
      kernel.bind({});
      fill_distinct(kernel.tensor(loads ? 0 : 1));
      const Outcome outcome = kernel.run({});
      EXPECT_EQ(outcome.count(ReportKind::kMisaligned), 1) << text_of(outcome);
      EXPECT_EQ(outcome.count(ReportKind::kDeadlock), 0) << text_of(outcome);
    }
  }
}

// Each box counts: of a tile of two, the second begins inside. Nothing outside is written.
TEST(Boxes, OfStoresBeginInsideTheRows) {
  for (const Shape& origin : {Shape{0, -16}, Shape{-4, -8}, Shape{30, -16}, Shape{-4, 0}}) {
    const Box box{
        .extents = {24, 40}, .origin = origin, .tile = {8, 32}, .box = {8, 16}, .swizzle = 32};
    EXPECT_EQ(wrong_in_load(box, 0), 0);
    Kernel kernel(box_kernel(box, false));
    kernel.bind({});
    fill_distinct(kernel.tensor(1));
    const Outcome outcome = kernel.run({});
    ASSERT_EQ(outcome.reports.size(), 1U) << text_of(outcome);
    EXPECT_EQ(outcome.reports[0].message,
              format("a bulk store begins at element {} of dimension {} of `x`: only a load may "
                     "begin before the first",
                     origin[0] < 0 ? origin[0] : origin[1], origin[0] < 0 ? 0 : 1));
  }
}

// The hardware writes rows of the box one after another, XORed: rows wider than the swizzle do not
// end up where the buffer has them.
TEST(Boxes, WiderThanTheSwizzleEndUpElsewhere) {
  const Box wide{
      .extents = {16, 128}, .origin = {0, 0}, .tile = {16, 128}, .box = {16, 128}, .swizzle = 128};
  EXPECT_GT(wrong_in_load(wide, 0), 0);
}

// --- waits, bytes, fences

constexpr const char* kLoad = R"(module arch=sm_90a form=decided

func @load(global %x: view<f16, global, [64, 64]>, global %y: view<f16, global, [64, 64]>) {
  var b: parallel < 1
  parallel level=block vars=[b] threads=64 name="load" shared_bytes=8200 bounds=[64] overlaps body={
    %s = alloc name="s" offset=0 swizzle=128 : view<f16, shared, [64, 64]>
    %e = event name="e" arrivals=1 offset=8192 : event<1>
    copy src=%x dst=%s async bulk event=%e way=bulk threads=1 box=[32, 64]
    trigger event=%e arrival=elected bytes=8192
    event_wait event=%e
    copy src=%s dst=%y way=gather threads=64 widths=[16]
  }
}
)";

constexpr const char* kStore = R"(module arch=sm_90a form=decided

func @store(global %x: view<f16, global, [64, 64]>, global %y: view<f16, global, [64, 64]>) {
  var b: parallel < 1
  parallel level=block vars=[b] threads=64 name="store" shared_bytes=8192 bounds=[64] overlaps body={
    %s = alloc name="s" offset=0 swizzle=128 : view<f16, shared, [64, 64]>
    copy src=%x dst=%s way=vector threads=64 widths=[16]
    proxy_fence
    barrier level=block
    copy src=%s dst=%y bulk way=bulk threads=1 box=[64, 64]
    bulk_wait
    barrier level=block inferred
    AGAIN
  }
}
)";

std::string store_kernel(bool again) {
  return replaced(kStore, "AGAIN",
                  again ? "copy src=%x dst=%s way=vector threads=64 widths=[16]" : "");
}

Outcome outcome_of(const std::string& text, std::uint64_t seed) {
  Kernel kernel(text);
  kernel.bind({});
  fill_distinct(kernel.tensor(0));
  return kernel.run({.seed = seed});
}

void expect_clean(const std::string& text, std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    EXPECT_EQ(text_of(outcome_of(text, seed)), "") << seed;
  }
}

void expect_found(const std::string& text, ReportKind kind) {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U}) {
    const Outcome outcome = outcome_of(text, seed);
    EXPECT_GE(outcome.count(kind), 1) << name(kind) << ", seed " << seed << "\n"
                                      << text_of(outcome);
  }
}

bool misses(const Outcome& outcome, const char* start) {
  for (const Report& report : outcome.reports) {
    if (report.missing.starts_with(start)) return true;
  }
  return false;
}

TEST(BulkCopies, AreCleanWhenWaitedFor) {
  expect_clean(kLoad, 50);
  expect_clean(store_kernel(false), 50);
  expect_clean(store_kernel(true), 50);
}

TEST(BulkCopies, ALoadThatIsReadWithoutAWaitRaces) {
  expect_found(without_line(kLoad, "event_wait"), ReportKind::kRace);
}

TEST(BulkCopies, ALoadThatNobodyWaitsForIsUnfinished) {
  const std::string text = without_line(without_line(kLoad, "event_wait"), "copy src=%s");
  const Outcome outcome = outcome_of(text, 0);
  ASSERT_GE(outcome.count(ReportKind::kUnfinished), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message, "the block ends while a bulk load of `s` is on its way");
}

TEST(BulkCopies, TooManyBytesAnnouncedAreADeadlock) {
  const std::string text = replaced(kLoad, "bytes=8192", "bytes=8208");
  expect_found(text, ReportKind::kDeadlock);
  EXPECT_EQ(outcome_of(text, 0).reports[0].missing,
            "generation 0 of `e` lacks 0 of 1 arrival and 16 bytes");
}

TEST(BulkCopies, TooFewBytesAnnouncedAreReported) {
  for (const char* bytes : {"", " bytes=4096"}) {
    const std::string text = replaced(kLoad, " bytes=8192", bytes);
    for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U}) {
      EXPECT_FALSE(outcome_of(text, seed).reports.empty()) << bytes << ", seed " << seed;
    }
  }
}

TEST(BulkCopies, ACopyMayAnnounceItsOwnBytes) {
  const std::string text =
      replaced(replaced(kLoad, " bytes=8192", ""), "box=[32, 64]", "box=[32, 64] announces");
  expect_clean(text, 5);
}

TEST(BulkCopies, AStoreNeedsAProxyFence) {
  const std::string text = without_line(store_kernel(false), "proxy_fence");
  expect_found(text, ReportKind::kRace);
  EXPECT_TRUE(misses(outcome_of(text, 0), "no proxy fence between them"));
}

TEST(BulkCopies, AStoreNeedsABarrierInFront) {
  expect_found(without_line(store_kernel(false), "barrier level=block"), ReportKind::kRace);
}

TEST(BulkCopies, AStoreThatIsNotWaitedForReadsWhatIsOverwritten) {
  expect_found(without_line(store_kernel(true), "bulk_wait"), ReportKind::kRace);
  expect_found(without_line(store_kernel(true), "inferred"), ReportKind::kRace);
}

TEST(BulkCopies, AStoreThatIsNotWaitedForIsUnfinished) {
  const Outcome outcome = outcome_of(without_line(store_kernel(false), "bulk_wait"), 0);
  ASSERT_EQ(outcome.count(ReportKind::kUnfinished), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message, "the block ends while a bulk store of `s` is on its way");
}

// --- clusters

// Two blocks fetch one half of each of four tiles, for both; each writes what it got to its rows.
constexpr const char* kCluster = R"(module arch=sm_90a form=decided

func @cluster(global %x: view<f16, global, [256, 64]>, global %y: view<f16, global, [512, 64]>) {
  var b: parallel < 2
  var c: parallel < 2
  var k: loop < 4
  var k_1: loop < 4
  parallel level=block vars=[b] threads=64 name="cluster" cluster=[c] shared_bytes=8208 cluster_shape=[2] bounds=[64] overlaps body={
    %s = alloc name="s" offset=0 swizzle=128 : view<f16, shared, [64, 64]>
    %full = event name="full" arrivals=1 offset=8192 : event<1>
    %empty = event name="empty" ready arrivals=2 offset=8200 : event<1>
    barrier level=block cluster
    inthreads first=0 threads=32 async single body={
      for var=k upper=4 body={
        event_wait event=%empty
        %from = subview base=%x origin=[64*k, 0] : view<f16, global, [64, 64]>
        copy src=%from dst=%s async bulk event=%full multicast way=bulk threads=1 box=[32, 64]
        trigger event=%full arrival=elected bytes=8192
      }
    }
    inthreads first=32 threads=32 async body={
      for var=k_1 upper=4 body={
        event_wait event=%full
        %to = subview base=%y origin=[256*c + 64*k_1, 0] : view<f16, global, [64, 64]>
        copy src=%s dst=%to way=gather threads=32 widths=[16] first=32
        trigger event=%empty cluster arrival=warp
      }
    }
    barrier level=block cluster
  }
}
)";

TEST(Clusters, AMulticastLandsInBothBlocks) {
  Kernel kernel(kCluster);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    kernel.bind({});
    fill_distinct(kernel.tensor(0));
    ASSERT_EQ(text_of(kernel.run({.seed = seed})), "") << seed;
    const auto half = static_cast<std::size_t>(kernel.tensor(0).elements());
    for (std::size_t i = 0; i < 2 * half; ++i) {
      ASSERT_EQ(kernel.tensor(1).get(i), kernel.tensor(0).get(i % half)) << seed << ": " << i;
    }
  }
}

// Each block fetches its half: of one tile, for one place.
TEST(Clusters, AMulticastIsOfOneTile) {
  const auto said = [](const std::string& line, const std::string& now) {
    const Outcome outcome = outcome_of(replaced(kCluster, line, now), 0);
    for (const Report& report : outcome.reports) {
      if (report.kind == ReportKind::kMulticast) return report.message;
    }
    return text_of(outcome);
  };
  EXPECT_EQ(said("origin=[64*k, 0]", "origin=[64*k + 64*c, 0]"),
            "a multicast of different tiles: block 0 of the cluster copies from `x[0, 0]`, block 1 "
            "from `x[64, 0]`");
}

TEST(Clusters, ATriggerOfTheClusterCountsInEachBlock) {
  expect_found(replaced(kCluster, "cluster arrival=warp", "arrival=warp"), ReportKind::kDeadlock);
  expect_found(replaced(kCluster, "ready arrivals=2", "ready arrivals=3"), ReportKind::kDeadlock);
  expect_found(replaced(kCluster, "ready arrivals=2", "ready arrivals=1"), ReportKind::kOverrun);
}

// The other block may still read its tile.
TEST(Clusters, OverwritingTheOtherBlocksTileTooEarlyRaces) {
  const std::string text = replaced(replaced(kCluster, "cluster arrival=warp", "arrival=warp"),
                                    "ready arrivals=2", "ready arrivals=1");
  expect_found(text, ReportKind::kRace);
}

TEST(Clusters, BytesOfTheOtherBlocksCopiesAreAnnouncedToo) {
  expect_found(replaced(kCluster, "bytes=8192", "bytes=16384"), ReportKind::kDeadlock);
}

}  // namespace

}  // namespace kiln::sim
