#include "target/mma.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/format.h"

namespace kiln::target {
namespace {

const Arch& sm80() { return *find_arch("sm_80"); }

// The PTX ISA's formulas for one element of a fragment, written out by hand: g = lane / 4,
// t = lane % 4. They hold for the rows of depth 8 as well, which have the first half of the values.
struct Place {
  int row;
  int col;
};
Place ptx_a(int lane, int i) {
  return {lane / 4 + 8 * ((i / 2) % 2), 2 * (lane % 4) + i % 2 + 8 * (i / 4)};
}
Place ptx_b(int lane, int i) { return {lane / 4, 2 * (lane % 4) + i % 2 + 8 * (i / 2)}; }
Place ptx_c(int lane, int r) { return {lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2}; }

Place ptx_place(Operand operand, int lane, int value) {
  switch (operand) {
    case Operand::kA: return ptx_a(lane, value);
    case Operand::kB: return ptx_b(lane, value);
    case Operand::kC: break;
  }
  return ptx_c(lane, value);
}

TEST(Mmas, MapsAreThoseOfThePtxManual) {
  for (const Mma& row : all_mmas()) {
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      const TileExtents tile = extents(row.shape, operand);
      for (int lane = 0; lane < row.lanes; ++lane) {
        for (int value = 0; value < values_of(row, operand); ++value) {
          const Place place = ptx_place(operand, lane, value);
          ASSERT_EQ(map_of(row, operand)(lane, value), place.row + tile.rows * place.col)
              << row.name << " " << name(operand) << " lane " << lane << " value " << value;
        }
      }
    }
  }
}

TEST(Mmas, MapsReachEachElementOnce) {
  for (const Mma& row : all_mmas()) {
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      const TileExtents tile = extents(row.shape, operand);
      std::vector<int> owners(static_cast<std::size_t>(tile.rows * tile.cols), 0);
      for (int lane = 0; lane < row.lanes; ++lane) {
        for (int value = 0; value < values_of(row, operand); ++value) {
          ++owners.at(static_cast<std::size_t>(map_of(row, operand)(lane, value)));
        }
      }
      for (const int count : owners) ASSERT_EQ(count, 1) << row.name << " " << name(operand);
    }
  }
}

// The spelling says the same as the columns.
TEST(Mmas, NameAndPtxAgreeWithTheColumns) {
  for (const Mma& row : all_mmas()) {
    const std::string shape = format("m{}n{}k{}", row.shape.m, row.shape.n, row.shape.k);
    EXPECT_EQ(row.name, format("{}.{}.{}", shape, name(row.acc), name(row.a)));
    EXPECT_EQ(row.ptx, format("mma.sync.aligned.{}.row.col.{}.{}.{}.{}", shape, name(row.acc),
                              name(row.a), name(row.b), name(row.acc)));
    EXPECT_EQ(find_mma(row.name), &row);
  }
  EXPECT_EQ(find_mma("m16n8k16.f32"), nullptr);
}

TEST(Mmas, RegistersHoldTwoHalves) {
  const Mma& f32 = *find_mma("m16n8k16.f32.f16");
  EXPECT_EQ(registers_of(f32, Operand::kA), 4);
  EXPECT_EQ(registers_of(f32, Operand::kB), 2);
  EXPECT_EQ(registers_of(f32, Operand::kC), 4);
  EXPECT_EQ(registers_of(*find_mma("m16n8k8.f16.f16"), Operand::kB), 1);
  EXPECT_EQ(registers_of(*find_mma("m16n8k8.f16.f16"), Operand::kC), 2);
}

TEST(MmaRequests, EachIsServedByTheRowThatListsIt) {
  for (const Arch& arch : all_archs()) {
    for (const Mma& row : all_mmas()) {
      for (const MmaShape& tile : row.tiles) {
        if (tile == MmaShape{}) continue;
        EXPECT_EQ(find_mma(arch, row.scope, row.a, row.b, row.acc, tile), &row);
      }
    }
  }
}

TEST(MmaRequests, FollowTheLanguagesTable) {
  const auto served = [](DType ab, DType acc, MmaShape tile) -> std::string_view {
    const Mma* row = find_mma(sm80(), Scope::kWarp, ab, ab, acc, tile);
    return row == nullptr ? "" : row->name;
  };
  EXPECT_EQ(served(DType::kF16, DType::kF16, {16, 16, 16}), "m16n8k16.f16.f16");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {32, 8, 16}), "m16n8k16.f32.f16");
  EXPECT_EQ(served(DType::kBF16, DType::kF32, {16, 8, 8}), "m16n8k8.f32.bf16");
  EXPECT_EQ(served(DType::kBF16, DType::kF16, {16, 16, 16}), "");  // no f16 accumulator for bf16
  EXPECT_EQ(served(DType::kF16, DType::kF32, {32, 32, 32}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {16, 16, 15}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {0, 0, 0}), "");
  EXPECT_EQ(served(DType::kF32, DType::kF32, {16, 16, 16}), "");
  EXPECT_EQ(
      find_mma(sm80(), Scope::kWarpgroup, DType::kF16, DType::kF16, DType::kF32, {16, 16, 16}),
      nullptr);
}

TEST(MmaRequests, ListWhatIsLegalAndTheNearest) {
  const std::vector<MmaRequest> bf16 =
      legal_requests(sm80(), Scope::kWarp, DType::kBF16, DType::kBF16);
  const std::vector<MmaRequest> expected = {{DType::kF32, {16, 16, 16}},
                                            {DType::kF32, {32, 8, 16}},
                                            {DType::kF32, {16, 8, 16}},
                                            {DType::kF32, {16, 8, 8}}};
  EXPECT_EQ(bf16, expected);
  EXPECT_TRUE(legal_requests(sm80(), Scope::kWarp, DType::kF16, DType::kBF16).empty());

  const auto nearest = [](DType ab, DType acc, MmaShape tile) {
    return nearest_request(sm80(), Scope::kWarp, ab, ab, acc, tile);
  };
  EXPECT_EQ(nearest(DType::kF16, DType::kF16, {16, 16, 15}),
            (MmaRequest{DType::kF16, {16, 16, 16}}));
  EXPECT_EQ(nearest(DType::kF16, DType::kF32, {16, 8, 7}), (MmaRequest{DType::kF32, {16, 8, 8}}));
  EXPECT_EQ(nearest(DType::kBF16, DType::kBF16, {16, 16, 16}),
            (MmaRequest{DType::kF32, {16, 16, 16}}));
  EXPECT_FALSE(nearest(DType::kF64, DType::kF64, {16, 16, 16}).has_value());
}

TEST(Mmas, CyclesScaleWithTheArchitecturesRate) {
  const Mma& row = *find_mma("m16n8k16.f32.f16");
  EXPECT_EQ(issue_cycles(row, sm80()), 8);
  EXPECT_EQ(issue_cycles(row, *find_arch("sm_89")), 16);
  EXPECT_EQ(issue_cycles(row, *find_arch("sm_90a")), 4);
}

TEST(Mmas, OperandNamesGoBothWays) {
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    EXPECT_EQ(operand_from_name(name(operand)), operand);
  }
  EXPECT_FALSE(operand_from_name("D").has_value());
}

}  // namespace
}  // namespace kiln::target
