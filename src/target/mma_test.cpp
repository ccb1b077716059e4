#include "target/mma.h"
#include "target/arch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/format.h"

namespace kiln::target {
namespace {

const Arch& sm80() { return *find_arch("sm_80"); }

constexpr Operand kOperands[] = {Operand::kA, Operand::kB, Operand::kC};

// The PTX ISA's formulas for one element of a fragment, written out by hand: g = lane / 4 and
// t = lane % 4 of the lane in its warp, and w the elements of one register (1 for f64). Warp i of a
// warpgroup has the rows from 16 * i on.
struct Place {
  int row;
  int col;
};
constexpr int kWarpRows = 16;
Place ptx_a(const Mma& row, int w, int lane, int i) {
  const int halves = std::min(row.shape.m, kWarpRows) / 8;  // rows g alone, or g and g + 8
  return {
      lane / target::kWarpLanes * kWarpRows + lane % target::kWarpLanes / 4 + 8 * (i / w % halves),
      w * (lane % 4) + i % w + 4 * w * (i / w / halves)};
}
Place ptx_b(int w, int lane, int i) { return {lane / 4, w * (lane % 4) + i % w + 4 * w * (i / w)}; }
Place ptx_c(int lane, int r) {
  return {lane / target::kWarpLanes * kWarpRows + lane % target::kWarpLanes / 4 + 8 * (r / 2 % 2),
          8 * (r / 4) + 2 * (lane % 4) + r % 2};
}

// m8n8k4 of f16, in which the four quad pairs of a warp hold the same: lanes 0 to 3 and 16 to 19 are one.
bool is_of_quad_pairs(const Mma& row) { return row.a == DType::kF16 && row.shape.k == 4; }
int copies_of(const Mma& row) { return is_of_quad_pairs(row) ? 4 : 1; }
Place ptx_quad_pair(const Mma& row, Operand operand, int lane, int i) {
  const int below = lane < 16 ? 0 : 4;
  if (operand != Operand::kC || row.acc == DType::kF16) return {lane % 4 + below, i};
  return {(lane & 1) + (i & 2) + below, (i & 4) + (lane & 2) + (i & 1)};
}

Place ptx_place(const Mma& row, Operand operand, int lane, int value) {
  if (is_of_quad_pairs(row)) return ptx_quad_pair(row, operand, lane, value);
  const int w = std::max(1, 32 / info(row.a).bits);
  switch (operand) {
    case Operand::kA: return ptx_a(row, w, lane, value);
    case Operand::kB: return ptx_b(w, lane, value);
    case Operand::kC: break;
  }
  return ptx_c(lane, value);
}

// The formulas themselves, against figures of the manual read off by hand.
TEST(Mmas, FormulasAgreeWithFiguresOfThePtxManual) {
  const auto at = [](std::string_view name, Operand operand, int lane, int i) {
    const Place place = ptx_place(*find_mma(name), operand, lane, i);
    return std::pair(place.row, place.col);
  };
  const auto a = [&](std::string_view name, int lane, int i) {
    return at(name, Operand::kA, lane, i);
  };
  using At = std::pair<int, int>;
  EXPECT_EQ(a("m16n8k16.f32.f16", 6, 5), At(1, 13));  // T6: {a4,a5} at row 1, columns 12, 13
  EXPECT_EQ(a("m16n8k8.f32.tf32", 6, 1), At(9, 2));   // a1 below a0
  EXPECT_EQ(a("m16n8k8.f32.tf32", 6, 2), At(1, 6));   // a2 four columns on
  EXPECT_EQ(a("m16n8k32.s32.s8", 6, 7), At(9, 11));   // a4..a7 in row g + 8
  EXPECT_EQ(a("m16n8k32.s32.s8", 6, 8), At(1, 24));   // a8.. sixteen columns on
  EXPECT_EQ(a("m8n8k16.s32.u8", 31, 3), At(7, 15));
  EXPECT_EQ(a("m16n8k16.f64.f64", 6, 5), At(9, 10));
  EXPECT_EQ(a("m8n8k4.f64.f64", 6, 0), At(1, 2));
  EXPECT_EQ(a("m64n8k16.f32.f16", 127, 7), At(63, 15));  // the last element of the tile
  EXPECT_EQ(a("m64n8k16.f32.f16", 32, 2), At(24, 0));    // T32: {a2,a3} in row 16 + 8
  EXPECT_EQ(a("m64n8k8.f32.tf32", 95, 3), At(47, 7));
  EXPECT_EQ(a("m64n8k32.s32.s8", 64, 8), At(32, 16));
  EXPECT_EQ(at("m64n256k16.f32.f16", Operand::kC, 127, 127), At(63, 255));
  EXPECT_EQ(at("m64n16k16.f32.f16", Operand::kC, 33, 4), At(16, 10));  // T33: d4 in columns 8..15
}

TEST(Mmas, MapsAreThoseOfThePtxManual) {
  for (const Mma& row : all_mmas()) {
    for (const Operand operand : kOperands) {
      if (!has_map(row, operand)) continue;
      const TileExtents tile = extents(row, operand);
      for (int lane = 0; lane < row.lanes; ++lane) {
        for (int value = 0; value < values_of(row, operand); ++value) {
          const Place place = ptx_place(row, operand, lane, value);
          ASSERT_EQ(map_of(row, operand)(lane, value), place.row + tile.rows * place.col)
              << row.name << " " << name(operand) << " lane " << lane << " value " << value;
        }
      }
    }
  }
}

TEST(Mmas, MapsReachEachElementOnceOrInEachQuadPair) {
  for (const Mma& row : all_mmas()) {
    for (const Operand operand : kOperands) {
      if (!has_map(row, operand)) continue;
      const TileExtents tile = extents(row, operand);
      std::vector<int> owners(static_cast<std::size_t>(tile.rows * tile.cols), 0);
      for (int lane = 0; lane < row.lanes; ++lane) {
        for (int value = 0; value < values_of(row, operand); ++value) {
          ++owners.at(static_cast<std::size_t>(map_of(row, operand)(lane, value)));
        }
      }
      const auto once = [&](int count) { return count == copies_of(row); };
      ASSERT_TRUE(std::ranges::all_of(owners, once)) << row.name << " " << name(operand);
    }
  }
}

// A sparse A is stored as half of its K.
TEST(Mmas, SparseRowsHoldHalfOfA) {
  for (const Mma& row : all_mmas()) {
    const int stored = row.sparse ? row.shape.k / 2 : row.shape.k;
    EXPECT_EQ(extents(row, Operand::kA), (TileExtents{row.shape.m, stored})) << row.name;
    EXPECT_EQ(values_of(row, Operand::kA) * row.lanes, row.shape.m * stored * copies_of(row))
        << row.name;
    EXPECT_EQ(extents(row, Operand::kB).cols, row.shape.k) << row.name;
  }
}

// A warpgroup's B has no lanes: it is read where it lies.
TEST(Mmas, OnlyBOfAWarpgroupHasNoMap) {
  for (const Mma& row : all_mmas()) {
    EXPECT_EQ(row.reads_shared, row.scope == Scope::kWarpgroup) << row.name;
    EXPECT_EQ(row.lanes, row.reads_shared ? 128 : 32) << row.name;
    EXPECT_TRUE(has_map(row, Operand::kA) && has_map(row, Operand::kC)) << row.name;
    EXPECT_EQ(has_map(row, Operand::kB), !row.reads_shared) << row.name;
    EXPECT_EQ(values_of(row, Operand::kB) == 0, row.reads_shared) << row.name;
  }
}

// The spelling says the same as the columns.
TEST(Mmas, NameAndPtxAgreeWithTheColumns) {
  const auto ptx = [](DType dtype) {
    const std::string_view spelled = name(dtype);
    return std::string(spelled.starts_with("f8_") ? spelled.substr(3) : spelled);
  };
  for (const Mma& row : all_mmas()) {
    const std::string shape = format("m{}n{}k{}", row.shape.m, row.shape.n, row.shape.k);
    const std::string types = row.a == row.b ? ptx(row.a) : ptx(row.a) + "." + ptx(row.b);
    const std::string operands = format("{}.{}.{}", name(row.acc), ptx(row.a), ptx(row.b));
    EXPECT_EQ(row.name, format("{}.{}.{}{}", shape, name(row.acc), types, row.sparse ? ".sp" : ""));
    if (row.reads_shared) {
      EXPECT_EQ(row.ptx, format("wgmma.mma_async{}.sync.aligned.{}.{}", row.sparse ? ".sp" : "",
                                shape, operands));
    } else {
      EXPECT_EQ(row.ptx,
                format("mma{}.sync.aligned.{}.row.col.{}.{}",
                       row.sparse ? ".sp::ordered_metadata" : "", shape, operands, name(row.acc)));
    }
    EXPECT_EQ(find_mma(row.name), &row);
  }
  EXPECT_EQ(find_mma("m16n8k16.f32"), nullptr);
}

// Of a warp, 16 dense families: 2 + 1 + 2 + 1 + 2 of 16 bits, 2 of tf32, 3 x 4 of integers, 4 x 2 of
// FP8, 4 of f64; and sparse ones: 2 x 2 + 2 of 16 bits, 2 of tf32, 2 x 4 of integers, 4 x 2 of FP8.
// Of a warpgroup, dense and sparse, 2 + 1 + 1 + 4 x 2 combinations of types with 32 rows each (N
// from 8 to 256), and 4 of integers with 18 (8 to 32 by 8, 48 to 256 by 16).
TEST(Mmas, FamiliesMakeARowForEachCombinationOfTypesAndEachN) {
  const auto count = [](Scope scope, bool sparse) {
    return std::ranges::count_if(
        all_mmas(), [&](const Mma& row) { return row.scope == scope && row.sparse == sparse; });
  };
  EXPECT_EQ(count(Scope::kWarp, false), 34);
  EXPECT_EQ(count(Scope::kWarp, true), 20);
  for (const bool sparse : {false, true}) {
    EXPECT_EQ(count(Scope::kWarpgroup, sparse), 12 * 32 + 4 * 18);
  }
  EXPECT_NE(find_mma("m16n8k32.s32.u8.s8"), nullptr);
  EXPECT_NE(find_mma("m16n8k32.f16.e5m2.e4m3"), nullptr);
  EXPECT_NE(find_mma("m64n248k32.f16.e5m2.e4m3"), nullptr);
  EXPECT_NE(find_mma("m64n256k32.s32.u8.s8"), nullptr);
  EXPECT_EQ(find_mma("m64n40k32.s32.u8"), nullptr);
  EXPECT_EQ(find_mma("m64n264k16.f32.f16"), nullptr);
}

TEST(Mmas, RegistersHoldTwoHalves) {
  const Mma& f32 = *find_mma("m16n8k16.f32.f16");
  EXPECT_EQ(registers_of(f32, Operand::kA), 4);
  EXPECT_EQ(registers_of(f32, Operand::kB), 2);
  EXPECT_EQ(registers_of(f32, Operand::kC), 4);
  EXPECT_EQ(registers_of(*find_mma("m16n8k8.f16.f16"), Operand::kB), 1);
  EXPECT_EQ(registers_of(*find_mma("m16n8k8.f16.f16"), Operand::kC), 2);
}

TEST(Mmas, RegistersHoldFourBytesAndDoublesTakeTwo) {
  const Mma& s8 = *find_mma("m16n8k32.s32.s8.u8");
  EXPECT_EQ(registers_of(s8, Operand::kA), 4);
  EXPECT_EQ(registers_of(s8, Operand::kB), 2);
  EXPECT_EQ(registers_of(s8, Operand::kC), 4);
  EXPECT_EQ(registers_of(*find_mma("m16n8k8.f32.tf32"), Operand::kA), 4);
  EXPECT_EQ(registers_of(*find_mma("m16n8k32.f16.e4m3"), Operand::kC), 2);
  EXPECT_EQ(registers_of(*find_mma("m8n8k4.f64.f64"), Operand::kA), 2);
  EXPECT_EQ(registers_of(*find_mma("m8n8k4.f64.f64"), Operand::kC), 4);
}

TEST(Mmas, RegistersOfAWarpgroupAreThoseOfOneThread) {
  const Mma& f32 = *find_mma("m64n256k16.f32.f16");
  EXPECT_EQ(registers_of(f32, Operand::kA), 4);
  EXPECT_EQ(registers_of(f32, Operand::kB), 0);
  EXPECT_EQ(registers_of(f32, Operand::kC), 128);
  EXPECT_EQ(registers_of(*find_mma("m64n64k16.f16.f16"), Operand::kC), 16);
  EXPECT_EQ(registers_of(*find_mma("m64n8k8.f32.tf32"), Operand::kA), 4);
  EXPECT_EQ(registers_of(*find_mma("m64n8k32.s32.s8.u8"), Operand::kA), 4);
}

TEST(MmaRequests, EachIsServedByTheRowThatListsIt) {
  for (const Arch& arch : all_archs()) {
    for (const Mma& row : all_mmas()) {
      if (!arch.has(row.needs)) {
        EXPECT_EQ(find_mma(arch, {row.scope, row.a, row.b, row.sparse}, {row.acc, row.tiles[0]}),
                  nullptr);
        continue;
      }
      for (const MmaShape& tile : row.tiles) {
        if (tile == MmaShape{}) continue;
        EXPECT_EQ(find_mma(arch, {row.scope, row.a, row.b, row.sparse}, {row.acc, tile}), &row);
      }
    }
  }
}

TEST(MmaRequests, FollowTheLanguagesTable) {
  const auto served = [](DType ab, DType acc, MmaShape tile) -> std::string_view {
    const Mma* row = find_mma(sm80(), {Scope::kWarp, ab, ab}, {acc, tile});
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
  EXPECT_EQ(served(DType::kF32, DType::kF32, {16, 16, 8}), "m16n8k8.f32.tf32");
  EXPECT_EQ(served(DType::kTF32, DType::kF32, {16, 8, 4}), "m16n8k4.f32.tf32");
  EXPECT_EQ(served(DType::kS8, DType::kS32, {16, 16, 16}), "m16n8k16.s32.s8");
  EXPECT_EQ(served(DType::kU8, DType::kS32, {8, 32, 16}), "m8n8k16.s32.u8");
  EXPECT_EQ(served(DType::kF64, DType::kF64, {8, 8, 4}), "m8n8k4.f64.f64");
  EXPECT_EQ(served(DType::kF64, DType::kF64, {16, 8, 16}), "");   // from sm_90
  EXPECT_EQ(served(DType::kE4M3, DType::kF32, {16, 8, 32}), "");  // from sm_89
  EXPECT_EQ(served(DType::kS4, DType::kS32, {16, 8, 32}), "");
  EXPECT_EQ(served(DType::kBin1, DType::kS32, {8, 8, 128}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF16, {8, 32, 16}), "m16n8k16.f16.f16");
  EXPECT_TRUE(serves_exchanged(*find_mma("m16n8k16.f16.f16"), {8, 32, 16}));
  EXPECT_FALSE(serves_exchanged(*find_mma("m16n8k16.f16.f16"), {32, 8, 16}));
  EXPECT_FALSE(serves_exchanged(*find_mma("m8n8k16.s32.u8"), {8, 32, 16}));
  EXPECT_EQ(
      find_mma(sm80(), {Scope::kWarpgroup, DType::kF16, DType::kF16}, {DType::kF32, {16, 16, 16}}),
      nullptr);
}

// A warpgroup splits K by itself; its M is 64, and N is one of the row's.
TEST(MmaRequests, OfAWarpgroupMayHaveAnyMultipleOfK) {
  const Arch& sm90a = *find_arch("sm_90a");
  const auto served = [&](DType ab, DType acc, MmaShape tile) -> std::string_view {
    const Mma* row = find_mma(sm90a, {Scope::kWarpgroup, ab, ab}, {acc, tile});
    return row == nullptr ? "" : row->name;
  };
  EXPECT_EQ(served(DType::kF16, DType::kF32, {64, 64, 16}), "m64n64k16.f32.f16");
  EXPECT_EQ(served(DType::kF16, DType::kF16, {64, 24, 112}), "m64n24k16.f16.f16");
  EXPECT_EQ(served(DType::kF32, DType::kF32, {64, 256, 24}), "m64n256k8.f32.tf32");
  EXPECT_EQ(served(DType::kU8, DType::kS32, {64, 48, 64}), "m64n48k32.s32.u8");
  EXPECT_EQ(served(DType::kU8, DType::kS32, {64, 40, 64}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {64, 20, 16}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {64, 64, 24}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {64, 64, 0}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {128, 64, 16}), "");
  EXPECT_EQ(served(DType::kF16, DType::kF32, {64, 264, 16}), "");
  EXPECT_EQ(served(DType::kBF16, DType::kF16, {64, 64, 16}), "");
  EXPECT_EQ(served(DType::kF64, DType::kF64, {64, 8, 4}), "");
  EXPECT_EQ(nearest_request(sm90a, {Scope::kWarpgroup, DType::kF16, DType::kF16},
                            {DType::kF32, {64, 20, 16}}),
            (MmaRequest{DType::kF32, {64, 24, 16}}));
}

TEST(MmaRequests, ListWhatIsLegalAndTheNearest) {
  const std::vector<MmaRequest> bf16 =
      legal_requests(sm80(), {Scope::kWarp, DType::kBF16, DType::kBF16});
  const std::vector<MmaRequest> expected = {{DType::kF32, {16, 16, 16}},
                                            {DType::kF32, {32, 8, 16}},
                                            {DType::kF32, {16, 8, 16}},
                                            {DType::kF32, {8, 32, 16}},
                                            {DType::kF32, {16, 8, 8}}};
  EXPECT_EQ(bf16, expected);
  EXPECT_TRUE(legal_requests(sm80(), {Scope::kWarp, DType::kF16, DType::kBF16}).empty());

  const auto nearest = [](DType ab, DType acc, MmaShape tile) {
    return nearest_request(sm80(), {Scope::kWarp, ab, ab}, {acc, tile});
  };
  EXPECT_EQ(nearest(DType::kF16, DType::kF16, {16, 16, 15}),
            (MmaRequest{DType::kF16, {16, 16, 16}}));
  EXPECT_EQ(nearest(DType::kF16, DType::kF32, {16, 8, 7}), (MmaRequest{DType::kF32, {16, 8, 8}}));
  EXPECT_EQ(nearest(DType::kBF16, DType::kBF16, {16, 16, 16}),
            (MmaRequest{DType::kF32, {16, 16, 16}}));
  EXPECT_EQ(nearest(DType::kF64, DType::kF64, {16, 8, 4}), (MmaRequest{DType::kF64, {8, 8, 4}}));
  EXPECT_EQ(nearest(DType::kS8, DType::kS8, {16, 8, 32}), (MmaRequest{DType::kS32, {16, 8, 32}}));
  EXPECT_FALSE(nearest(DType::kS4, DType::kS32, {16, 16, 16}).has_value());
}

TEST(MmaRequests, KnowTheOldestArchitectureOfATypePair) {
  const auto oldest = [](DType a, DType b) -> std::string_view {
    const Arch* arch = oldest_arch({Scope::kWarp, a, b});
    return arch == nullptr ? "" : arch->name;
  };
  EXPECT_EQ(oldest(DType::kS8, DType::kU8), "sm_80");
  EXPECT_EQ(oldest(DType::kE5M2, DType::kE4M3), "sm_89");
  EXPECT_EQ(oldest(DType::kS4, DType::kS4), "");
  EXPECT_EQ(oldest(DType::kF16, DType::kBF16), "");
  EXPECT_EQ(oldest_arch({Scope::kWarpgroup, DType::kF16, DType::kF16}), find_arch("sm_90a"));
  EXPECT_EQ(oldest_arch({Scope::kWarpgroup, DType::kF64, DType::kF64}), nullptr);
}

TEST(Mmas, CyclesScaleWithTheArchitecturesRate) {
  const Mma& row = *find_mma("m16n8k16.f32.f16");
  EXPECT_EQ(issue_cycles(row, sm80()), 8);
  EXPECT_EQ(issue_cycles(row, *find_arch("sm_89")), 16);
  EXPECT_EQ(issue_cycles(row, *find_arch("sm_90a")), 4);
  EXPECT_EQ(issue_cycles(row), 8);
  EXPECT_EQ(issue_cycles(*find_mma("m16n8k32.s32.s8"), sm80()), 8);
  EXPECT_EQ(issue_cycles(*find_mma("m16n8k8.f32.tf32"), sm80()), 8);
  EXPECT_EQ(issue_cycles(*find_mma("m8n8k4.f64.f64"), sm80()), 16);
  EXPECT_EQ(issue_cycles(*find_mma("m16n8k16.f64.f64")), 64);
  EXPECT_EQ(issue_cycles(*find_mma("m16n8k32.f32.e4m3")), 16);
  EXPECT_EQ(issue_cycles(*find_mma("m16n8k32.f32.e4m3"), *find_arch("sm_90a")), 8);
}

// One instruction keeps all four tensor cores of the SM busy.
TEST(Mmas, CyclesOfAWarpgroupsInstruction) {
  EXPECT_EQ(issue_cycles(*find_mma("m64n256k16.f32.f16")), 128);
  EXPECT_EQ(issue_cycles(*find_mma("m64n64k16.f16.f16")), 32);
  EXPECT_EQ(issue_cycles(*find_mma("m64n64k8.f32.tf32")), 32);
  EXPECT_EQ(issue_cycles(*find_mma("m64n64k32.f32.e4m3")), 32);
  EXPECT_EQ(issue_cycles(*find_mma("m64n64k32.s32.u8")), 32);
}

// Each row can be issued wherever it exists.
TEST(Mmas, EveryRowHasARateOnEveryArchitectureThatHasIt) {
  for (const Arch& arch : all_archs()) {
    for (const Mma& row : all_mmas()) {
      if (!arch.has(row.needs)) continue;
      EXPECT_GE(issue_cycles(row, arch), 1) << row.name;
    }
  }
}

TEST(Mmas, OperandNamesGoBothWays) {
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    EXPECT_EQ(operand_from_name(name(operand)), operand);
  }
  EXPECT_FALSE(operand_from_name("D").has_value());
}

}  // namespace
}  // namespace kiln::target
