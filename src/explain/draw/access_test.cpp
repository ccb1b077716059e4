#include "explain/draw/access.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "explain/draw/memory.h"
#include "layout/print.h"
#include "sim/tally.h"

namespace kiln::explain {
namespace {

Layout layout(std::string_view text) { return *parse_layout(text); }

Index total(const Access& access) {
  Index sum = 0;
  for (const Phase& phase : phases(access)) sum += phase.wavefronts;
  return sum;
}

// By the words of the rule, byte by byte: lanes are served 128 bytes at a time; a phase costs the
// largest number of distinct words that one bank must give.
Index brute_force(const Access& access) {
  const std::size_t step = static_cast<std::size_t>(access.bytes <= 4 ? 32 : 128 / access.bytes);
  Index sum = 0;
  for (std::size_t first = 0; first < access.lanes.size(); first += step) {
    std::map<Index, std::set<Index>> words;
    for (std::size_t i = first; i < std::min(first + step, access.lanes.size()); ++i) {
      for (int byte = 0; byte < access.bytes; ++byte) {
        const Index word = (access.lanes[i].address + byte) / 4;
        words[word % 32].insert(word);
      }
    }
    std::size_t most = 0;
    for (const auto& [bank, in_bank] : words) most = std::max(most, in_bank.size());
    sum += static_cast<Index>(most);
  }
  return sum;
}

Index by_simulator(const Access& access) {
  sim::Tally tally;
  sim::Request request;
  request.clear();
  for (const LaneAccess& lane : access.lanes) request.add(lane.address);
  tally.shared_wavefronts(request, access.bytes);
  return tally.counters().bank_conflicts + static_cast<Index>(phases(access).size());
}

TEST(Access, KnownPatterns) {
  struct Case {
    std::string_view memory;
    Swizzle swizzle;
    int element_bytes;
    std::string_view access;
    Index wavefronts;
  };
  constexpr Swizzle kNone = {0, 4, 3};
  const Case cases[] = {
      {"(8,8):(8,1)", kNone, 16, "8:1", 8},           // a column of 16-byte chunks
      {"(8,8):(8,1)", {3, 4, 3}, 16, "8:1", 1},       // swizzled: each chunk in other banks
      {"(8,8):(9,1)", kNone, 16, "8:1", 1},           // padded by one chunk
      {"(32,32):(32,1)", kNone, 4, "32:1", 32},       // a column of f32
      {"(32,32):(33,1)", kNone, 4, "32:1", 1},        // the textbook's padding
      {"(32,32):(32,1)", kNone, 4, "32:32", 1},       // a row of f32
      {"(32,32):(32,1)", kNone, 4, "32:0", 1},        // one word for all
      {"(4,64):(64,1)", kNone, 2, "32:4", 1},         // a row of f16, two lanes to a word
      {"(1,64):(64,1)", kNone, 8, "32:1", 2},         // 8 bytes: two half warps
      {"(1,32):(32,1)", kNone, 16, "32:1", 4},        // 16 bytes: four quarter warps
      {"(8,64):(64,1)", kNone, 2, "(8,8):(1,8)", 8},  // rows of 16 bytes of a 128-byte pitch
  };
  for (const Case& one : cases) {
    Diagnostics diags;
    const Memory memory{
        .layout = layout(one.memory), .swizzle = one.swizzle, .element_bytes = one.element_bytes};
    const auto access = access_from_layout(memory, layout(one.access), "it", diags);
    ASSERT_TRUE(access) << diags.all()[0].message;
    EXPECT_EQ(total(*access), one.wavefronts) << one.memory << " by " << one.access;
  }
}

TEST(Access, AgreesWithBruteForceAndWithTheSimulator) {
  std::mt19937 random(20260101);
  const auto pick = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  int conflicts = 0;
  for (int round = 0; round < 3000; ++round) {
    Access access{"random", 1 << pick(5), {}};
    const int lanes = 1 + pick(32);
    for (int lane = 0; lane < lanes; ++lane) {
      access.lanes.push_back(
          {lane, static_cast<Index>(pick(1 << (2 + pick(8)))) * access.bytes, {}});
    }
    ASSERT_EQ(total(access), brute_force(access)) << round;
    ASSERT_EQ(total(access), by_simulator(access)) << round;
    conflicts += total(access) > static_cast<Index>(phases(access).size()) ? 1 : 0;
  }
  EXPECT_GT(conflicts, 500);
}

// The picture marks exactly the touched cells, each with its lane, and as conflicting exactly those
// whose bank gives several words in their phase.
TEST(Memory, PictureMarksWhatTheAccessTouches) {
  for (const bool swizzled : {false, true}) {
    Diagnostics diags;
    const Memory memory{.layout = layout("(16,16):(16,1)"),
                        .swizzle = {swizzled ? 1 : 0, 4, 3},
                        .element_bytes = 2};
    const auto access = access_from_matrix_load(memory, *target::find_copy("ldmatrix.x4"), diags);
    ASSERT_TRUE(access);
    EXPECT_EQ(total(*access), swizzled ? 4 : 8);
    const Grid grid = memory_picture("tile", memory, &*access).grids[0];
    for (int row = 0; row < 16; ++row) {
      for (int col = 0; col < 16; ++col) {
        const Cell& cell = cell_at(grid, row, col);
        const Index plain = (row * 16 + col) * 2;
        const Index address = swizzled ? plain ^ ((plain >> 7 & 1) << 4) : plain;
        EXPECT_EQ(cell.mark, thread_name(row + 16 * (col / 8)));
        EXPECT_EQ(cell.label, std::to_string(address / 2));
        EXPECT_EQ(cell.owner, address / 4 % 32);
        EXPECT_EQ(cell.conflict, !swizzled);
      }
    }
  }
}

TEST(Memory, BanksOfWideAndNarrowElements) {
  const Grid bytes =
      memory_picture("b", {.layout = layout("256:1"), .swizzle = {0, 4, 3}, .element_bytes = 1},
                     nullptr)
          .grids[0];
  EXPECT_EQ(cell_at(bytes, 7, 0).owner, 1);
  EXPECT_EQ(cell_at(bytes, 130, 0).owner, 0);
  const Grid wide =
      memory_picture("w", {.layout = layout("16:1"), .swizzle = {0, 4, 3}, .element_bytes = 16},
                     nullptr)
          .grids[0];
  EXPECT_EQ(cell_at(wide, 9, 0).owner, 4);
  EXPECT_EQ(cell_at(wide, 9, 0).detail, "b04");
}

TEST(Memory, IndexTablesFollowTheLayout) {
  const Layout nested = layout("(4,(2,3)):(6,(3,1))");
  const Grid grid = index_picture("it", nested).grids[0];
  ASSERT_EQ(row_count(grid), 4);
  ASSERT_EQ(col_count(grid), 6);
  for (int row = 0; row < 4; ++row) {
    for (int col = 0; col < 6; ++col) {
      EXPECT_EQ(cell_at(grid, row, col).label, std::to_string(6 * row + 3 * (col % 2) + col / 2));
    }
  }
}

// What cannot be one access is refused, with the numbers.
TEST(Access, Mistakes) {
  const auto refused = [](const Memory& memory, std::string_view text) {
    Diagnostics diags;
    EXPECT_FALSE(access_from_layout(memory, layout(text), std::string(text), diags)) << text;
    return diags.all().empty() ? DiagId{} : diags.all()[0].id;
  };
  const Memory rows{.layout = layout("(8,8):(8,1)"), .swizzle = {0, 4, 3}, .element_bytes = 4};
  EXPECT_EQ(refused(rows, "64:1"), DiagId::kMapAccessLanes);
  EXPECT_EQ(refused(rows, "(8,8):(1,8)"), DiagId::kMapAccessWidth);
  EXPECT_EQ(refused(rows, "(8,3):(1,8)"), DiagId::kMapAccessWidth);
  EXPECT_EQ(refused(rows, "32:4"), DiagId::kMapOutside);
  EXPECT_EQ(refused(rows, "(4,2):(2,1)"), DiagId::kMapVectorTorn);
  EXPECT_EQ(refused({.layout = layout("(8,8):(9,1)"), .swizzle = {0, 4, 3}, .element_bytes = 4},
                    "(8,2):(1,8)"),
            DiagId::kMapVectorAlignment);
}

}  // namespace
}  // namespace kiln::explain
