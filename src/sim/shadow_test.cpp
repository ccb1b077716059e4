// The shadow alone: which pairs of accesses it calls ordered.
#include "sim/shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>

namespace kiln::sim {

namespace {

constexpr std::uint32_t kWarps = 3;
constexpr Agents kAgents{.blocks = 1, .warps = kWarps, .slots = 0};
constexpr Shadow::Readers kReaders{
    .all = kAgents, .first = 0, .blocks = 1, .agents = kWarps, .slots = false, .updates = true};

// Three warps and their clocks; barriers by hand.
class Threads {
 public:
  explicit Threads(bool per_block, bool initialised = true)
      : shadow_(64, 1, per_block, initialised) {
    shadow_.begin_launch(&era_, kReaders);
    next_block();
  }

  std::optional<Conflict> read(std::uint32_t thread, std::size_t at, std::size_t bytes = 2) {
    std::optional<Conflict> out;
    shadow_.read(at, bytes, actor(thread), [&](const Conflict& conflict) { out = conflict; });
    return out;
  }
  std::optional<Conflict> write(std::uint32_t thread, std::size_t at, std::size_t bytes = 2,
                                bool in_flight = false) {
    std::optional<Conflict> out;
    shadow_.write(at, bytes, actor(thread), in_flight,
                  [&](const Conflict& conflict) { out = conflict; });
    return out;
  }
  std::optional<Conflict> update(std::uint32_t thread, std::size_t at, std::size_t bytes = 2) {
    std::optional<Conflict> out;
    shadow_.update(at, bytes, actor(thread), [&](const Conflict& conflict) { out = conflict; });
    return out;
  }
  void land(std::uint32_t thread, std::size_t at, std::size_t bytes = 2) {
    shadow_.land(at, bytes, actor(thread));
  }
  // Thread `to` learns what these lanes of a warp have done, and of no other lane.
  void tell(std::uint32_t to, std::uint32_t warp, std::uint32_t lanes) {
    told_[to].push_back({warp, lanes, seen_[warp][warp] + 1});
  }
  void warp_barrier(std::uint32_t warp) { ++seen_[warp][warp]; }
  void barrier(std::uint32_t first, std::uint32_t second) {
    ++seen_[first][first];
    ++seen_[second][second];
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      seen_[first][w] = seen_[second][w] = std::max(seen_[first][w], seen_[second][w]);
    }
  }
  void next_block() {
    Clock latest = era_.block_start;
    for (const auto& row : seen_)
      latest = std::max(latest, *std::max_element(row.begin(), row.end()));
    era_.block_start = latest + 1;
    for (auto& row : seen_) row.fill(era_.block_start);
  }
  void next_launch() {
    next_block();
    era_.launch_start = era_.block_start;
    shadow_.begin_launch(&era_, kReaders);
  }

 private:
  Actor actor(std::uint32_t thread) const {
    const std::uint32_t warp = thread / 32;
    Actor out{static_cast<std::uint16_t>(thread), 5, warp, seen_[warp][warp], seen_[warp].data()};
    const auto told = told_.find(thread);
    if (told != told_.end()) out.lanes = &told->second;
    return out;
  }

  Era era_;
  std::array<std::array<Clock, kAgents.count()>, kWarps> seen_ = {};
  std::map<std::uint32_t, LaneClocks> told_;  // by thread
  Shadow shadow_;
};

TEST(Shadow, AThreadFollowsItself) {
  Threads t(true);
  EXPECT_FALSE(t.write(3, 0));
  EXPECT_FALSE(t.read(3, 0));
  EXPECT_FALSE(t.write(3, 0));
}

TEST(Shadow, LanesOfOneWarpAreNotOrdered) {
  Threads t(true);
  EXPECT_FALSE(t.write(3, 0));
  ASSERT_TRUE(t.read(4, 0));
  t.warp_barrier(0);
  EXPECT_FALSE(t.read(5, 0));
  const auto conflict = t.write(6, 0);
  ASSERT_TRUE(conflict);
  EXPECT_FALSE(conflict->other_wrote);
  EXPECT_EQ(conflict->thread, 5);
}

TEST(Shadow, ABarrierOrdersItsWarpsOnly) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0));
  t.barrier(0, 1);
  EXPECT_FALSE(t.read(32, 0));
  const auto conflict = t.read(64, 0);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->kind, ConflictKind::kUnordered);
  EXPECT_EQ(conflict->thread, 0);
}

TEST(Shadow, AtomicUpdatesRaceWithWhatIsNotAtomicAlone) {
  Threads threads(true, false);
  EXPECT_TRUE(threads.update(0, 0).has_value());  // of nothing
  EXPECT_FALSE(threads.update(40, 0).has_value());
  EXPECT_FALSE(threads.write(0, 8).has_value());
  EXPECT_TRUE(threads.update(1, 8).has_value());
  threads.barrier(0, 1);
  EXPECT_FALSE(threads.update(1, 8).has_value());
  EXPECT_FALSE(threads.update(2, 8).has_value());
  EXPECT_FALSE(threads.update(33, 8).has_value());
  const auto read = threads.read(34, 8);  // lane 1 of its warp has updated it, and warp 0
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->other_wrote && read->other_atomic);
  threads.barrier(0, 1);
  EXPECT_FALSE(threads.read(34, 8).has_value());
  EXPECT_TRUE(threads.write(64, 8).has_value());
  const auto update = threads.update(35, 8);
  ASSERT_TRUE(update.has_value());  // after warp 2 wrote
  EXPECT_FALSE(update->other_atomic);
}

// Two kinds of threads have updated it: a reader must follow them all, not the last alone.
TEST(Shadow, NoUpdateIsForgotten) {
  Threads threads(true, true);
  EXPECT_FALSE(threads.write(0, 0).has_value());
  threads.barrier(0, 1);
  threads.barrier(0, 2);
  EXPECT_FALSE(threads.update(32, 0).has_value());
  EXPECT_FALSE(threads.update(64, 0).has_value());
  threads.barrier(0, 2);
  EXPECT_TRUE(threads.read(0, 0).has_value());
}

TEST(Shadow, BlocksUpdateTogetherAndReadNothingOfIt) {
  Threads threads(false);
  EXPECT_FALSE(threads.update(0, 0).has_value());
  threads.next_block();
  EXPECT_FALSE(threads.update(33, 0).has_value());
  const auto read = threads.read(33, 0);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->kind, ConflictKind::kOtherBlock);
  EXPECT_FALSE(threads.update(0, 8).has_value());
  EXPECT_FALSE(threads.read(0, 8).has_value());
}

TEST(Shadow, OrderIsTransitive) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0));
  t.barrier(0, 1);
  t.barrier(1, 2);
  EXPECT_FALSE(t.read(64, 0));
  EXPECT_FALSE(t.write(64, 0));
}

TEST(Shadow, AWarpBarrierAloneTellsOtherWarpsNothing) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0));
  t.warp_barrier(0);
  t.warp_barrier(1);
  EXPECT_TRUE(t.read(32, 0));
}

// Each of two reading warps is remembered, whoever read last.
TEST(Shadow, NoReaderIsForgotten) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0));
  t.barrier(0, 1);
  t.barrier(0, 2);
  EXPECT_FALSE(t.read(40, 0));
  EXPECT_FALSE(t.read(70, 0));
  t.barrier(0, 2);
  const auto conflict = t.write(0, 0);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->thread, 40);
}

TEST(Shadow, SeveralReadersOfOneWarpIncludeTheWriterItself) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0));
  t.warp_barrier(0);
  EXPECT_FALSE(t.read(1, 0));
  EXPECT_FALSE(t.read(2, 0));
  const auto conflict = t.write(2, 0);
  ASSERT_TRUE(conflict) << "thread 1 has read it too";
  EXPECT_EQ(conflict->thread, Conflict::kSeveral);
}

TEST(Shadow, LanesThatReadOneElementSpeakForThemselves) {
  const std::array<std::uint32_t, 3> readers[] = {{5, 9, 9}, {0, 8, 16}, {30, 2, 16}};
  for (const auto& lanes : readers) {
    for (const bool told_of_all : {true, false}) {
      Threads t(false);
      std::uint32_t known = 0;
      for (const std::uint32_t lane : lanes) {
        EXPECT_FALSE(t.read(lane, 0));
        known |= 1U << lane;
      }
      if (!told_of_all) known &= ~(1U << lanes[1]);
      t.tell(40, 0, known);
      EXPECT_EQ(t.write(40, 0).has_value(), !told_of_all) << lanes[1];
    }
  }
}

TEST(Shadow, OneAccessCoversSeveralGranules) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0, 16));
  t.warp_barrier(0);
  EXPECT_FALSE(t.write(1, 6, 2));
  const auto conflict = t.read(0, 0, 16);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->address, 6U);
  EXPECT_FALSE(t.read(0, 8, 8));
}

TEST(Shadow, BytesInFlightBelongToNobody) {
  Threads t(true);
  EXPECT_FALSE(t.write(0, 0, 4, true));
  EXPECT_EQ(t.read(0, 0)->kind, ConflictKind::kInFlight);
  t.warp_barrier(0);
  EXPECT_EQ(t.read(1, 0)->kind, ConflictKind::kInFlight) << "a barrier is no wait";
  t.land(0, 0, 2);
  EXPECT_FALSE(t.read(0, 0));
  EXPECT_EQ(t.read(1, 0)->kind, ConflictKind::kUnordered) << "a wait is no barrier";
  t.warp_barrier(0);
  EXPECT_FALSE(t.read(1, 0));
  EXPECT_EQ(t.write(1, 2)->kind, ConflictKind::kInFlight) << "bytes 2 and 3 have not landed";
}

TEST(Shadow, MemoryOfABlockStartsUninitialised) {
  Threads t(true);
  EXPECT_EQ(t.read(0, 0)->kind, ConflictKind::kUninitialised);
  EXPECT_FALSE(t.write(0, 2));
  t.next_block();
  EXPECT_EQ(t.read(0, 2)->kind, ConflictKind::kUninitialised);
  EXPECT_FALSE(t.write(0, 2)) << "the last block's writes are gone";
}

TEST(Shadow, BlocksOfOneLaunchAreNotOrdered) {
  Threads t(false);
  EXPECT_FALSE(t.read(0, 0)) << "filled by the host";
  EXPECT_FALSE(t.write(0, 2));
  t.next_block();
  EXPECT_EQ(t.write(0, 0)->kind, ConflictKind::kOtherBlock) << "read by the other block";
  EXPECT_EQ(t.read(0, 2)->kind, ConflictKind::kOtherBlock);
  EXPECT_EQ(t.write(0, 2)->kind, ConflictKind::kOtherBlock);
}

TEST(Shadow, ReadsByEarlierBlocksOutliveThoseOfThisOne) {
  Threads t(false);
  EXPECT_FALSE(t.read(0, 0));
  t.next_block();
  EXPECT_FALSE(t.read(0, 0));
  EXPECT_EQ(t.write(0, 0)->kind, ConflictKind::kOtherBlock);
}

TEST(Shadow, LaunchesAreOrdered) {
  Threads t(false, false);
  EXPECT_EQ(t.read(0, 0)->kind, ConflictKind::kUninitialised);
  EXPECT_FALSE(t.write(0, 2));
  t.next_launch();
  EXPECT_FALSE(t.read(40, 2));
  EXPECT_EQ(t.read(40, 4)->kind, ConflictKind::kUninitialised);
}

// The first conflict of an access made granule by granule, which never meets whole lines.
template <class Touch>
std::optional<Conflict> one_by_one(std::size_t at, std::size_t bytes, Touch&& touch) {
  std::optional<Conflict> first;
  for (std::size_t i = at; i < at + bytes; i += 2) {
    const std::optional<Conflict> found = touch(i);
    if (found && !first) first = found;
  }
  return first;
}

std::string text_of(const std::optional<Conflict>& conflict) {
  if (!conflict) return "none";
  return std::to_string(static_cast<int>(conflict->kind)) + " at " +
         std::to_string(conflict->address) + (conflict->other_wrote ? " written" : " read") +
         " by " + std::to_string(conflict->thread) + " at " + std::to_string(conflict->clock);
}

TEST(Shadow, LinesAreWhatTheirGranulesAre) {
  std::mt19937 random(11);
  const auto draw = [&](unsigned below) { return random() % below; };
  std::size_t conflicts = 0;
  std::size_t quiet = 0;
  for (int round = 0; round < 400; ++round) {
    const bool per_block = round % 2 == 0;
    Threads whole(per_block, round % 4 < 2);
    Threads parts(per_block, round % 4 < 2);
    for (int step = 0; step < 60; ++step) {
      const std::size_t bytes = std::size_t{2} << draw(5);  // up to two lines
      const std::size_t at =
          std::min<std::size_t>(draw(4) * 16 + (bytes < 16 ? draw(8) * 2 : 0), 64 - bytes);
      const auto thread = static_cast<std::uint32_t>(draw(3) * 32 + draw(3));
      std::optional<Conflict> found;
      std::optional<Conflict> wanted;
      switch (draw(8)) {
        case 0: {
          const auto first = static_cast<std::uint32_t>(draw(3));
          whole.barrier(first, (first + 1) % 3);
          parts.barrier(first, (first + 1) % 3);
          break;
        }
        case 1:
          if (draw(8) != 0) break;
          whole.next_block();
          parts.next_block();
          break;
        case 2:
          if (draw(16) != 0) break;
          whole.next_launch();
          parts.next_launch();
          break;
        case 3:
          whole.land(thread, at, bytes);
          parts.land(thread, at, bytes);
          break;
        case 4:
        case 5:
          found = whole.read(thread, at, bytes);
          wanted = one_by_one(at, bytes, [&](std::size_t i) { return parts.read(thread, i); });
          break;
        default: {
          const bool in_flight = draw(6) == 0;
          found = whole.write(thread, at, bytes, in_flight);
          wanted = one_by_one(at, bytes,
                              [&](std::size_t i) { return parts.write(thread, i, 2, in_flight); });
        }
      }
      ASSERT_EQ(text_of(found), text_of(wanted)) << "round " << round << ", step " << step;
      ++(found ? conflicts : quiet);
    }
  }
  EXPECT_GT(conflicts, 1000U);
  EXPECT_GT(quiet, 1000U);
}

TEST(Shadow, OverlaysAreApartUnlessOneWritesWhatAnotherTouches) {
  struct Case {
    std::size_t first_writes;
    std::size_t second_at;
    bool second_writes;
    bool apart;
  };
  const Case cases[] = {{0, 2, true, true},
                        {0, 2, false, true},
                        {0, 16, true, true},
                        {0, 0, true, false},
                        {0, 0, false, false}};
  for (const Case& one : cases) {
    for (const std::size_t bytes : {2, 16}) {
      if (bytes == 16 && one.second_at == 2) continue;
      const Era era{.launch_start = 7, .block_start = 9};
      Shadow below(64, 1, false, false);
      below.begin_launch(&era, kReaders);
      const auto first = below.overlay(&era);
      const auto second = below.overlay(&era);
      const std::array<Clock, kAgents.count()> seen = {9, 9, 9};
      const Actor actor{.thread = 3, .instruction = 5, .agent = 0, .clock = 9, .seen = seen.data()};
      const auto ignore = [](const Conflict&) {};
      first->write(one.first_writes, bytes, actor, false, ignore);
      if (one.second_writes) {
        second->write(one.second_at, bytes, actor, false, ignore);
      } else {
        second->read(one.second_at, bytes, actor, ignore);
      }
      EXPECT_EQ(Shadow::are_apart({first.get(), second.get()}), one.apart)
          << one.second_at << ", " << bytes << " bytes";
      below.absorb(*first);
      EXPECT_TRUE(below.written(0));
      EXPECT_EQ(below.written(14), bytes == 16);
      EXPECT_FALSE(below.written(16));
    }
  }
}

}  // namespace

}  // namespace kiln::sim
