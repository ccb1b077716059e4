// Matrix instructions: one row each, and the two questions sema and the selecting pass ask of them.
//
// A row's name is <shape>.<accumulator>.<operands>: `m16n8k16.f32.f16`, with both operands' types
// where they differ, `m16n8k32.s32.s8.u8`. Rows of m64 are `wgmma`, of a warpgroup's 128 threads;
// all others are `mma.sync`, of a warp. A row's maps send (lane, value) to an element of the
// operand's tile, first mode fastest:
//
//   c_map = ((4,8),(2,2)):((32,1),(16,8)) on the tile C(M=16, N=8)
//   lane 5 = (1,1), value 1 = (1,0):  32 + 1 + 16 = 49 = row 1 + 16 * column 3
//
// The tile of A is (M, K), of B (N, K), of C (M, N); element index = row + rows * column. A value
// is one element; four 8-bit or two 16-bit values share one 32-bit register, the first in the low
// bits, and a 64-bit value takes two. The simulator executes the maps, the emitter spells `ptx`,
// `kiln map` draws them.
//
// Operands of f32 in the language are used as tf32 (operand_type): rounded when they are loaded
// into registers, cut off where the instruction reads them from shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/layout.h"
#include "support/dtype.h"
#include "target/arch.h"

namespace kiln::target {

// Who executes one instruction together: the language's `: thread`, `: group`, `: group-4`.
enum class Scope : std::uint8_t { kThread, kWarp, kWarpgroup };

enum class Operand : std::uint8_t { kA, kB, kC };

struct MmaShape {
  int m = 0;
  int n = 0;
  int k = 0;

  friend constexpr bool operator==(const MmaShape&, const MmaShape&) = default;
};

// The FP8 units of sm_89 align products and accumulator to the largest and keep 13 bits below its
// leading one: each of the k products, the accumulator and the sum lose up to 2^-13 of it. sm_90
// has no such unit for `mma.sync`: it converts to f16, exactly, and is far within this.
inline constexpr double kFp8Unit = 0x1p-13;

struct Mma {
  static constexpr int kTilesMax = 4;

  std::string_view name;
  MmaShape shape;
  DType a;
  DType b;
  DType acc;
  Scope scope;
  int lanes;
  Feature needs;  // of the architecture
  Layout a_map;
  Layout b_map;
  Layout c_map;
  std::string_view ptx;
  // The language's tile requests (one `mma` statement) that this row serves, by repeating it over M
  // and N. A request is served by one row for given types. Unused entries are zero.
  std::array<MmaShape, kTilesMax> tiles;
  // The request it serves with A and B exchanged, as C^T = B * A^T. Zero: none.
  MmaShape exchanged;
  // Largest error of one instruction on any architecture that has it, relative to the sum of
  // the magnitudes of its products and its accumulator: the `u` of the numeric bound. 0: exact, as
  // integers are, whose sums wrap around.
  double acc_roundoff;
  // Sums of integers are exact while their magnitudes add up to no more than this.
  double exact_integers;
  // B comes from shared memory through a matrix descriptor (target/descriptor.h) and has no
  // b_map; A comes from there too, or from registers by a_map.
  bool reads_shared = false;
  // Operands in shared memory may have their contraction down the rows (`col`), not along them.
  bool transposes = false;
  // It goes on after the statement: issued behind a fence, committed and waited for in groups.
  bool asynchronous = false;
  // A request may be any multiple of the instruction along K.
  bool splits_k = false;
  // A is 2:4 sparse (tf32: 1:2): its operand holds the kept half of K, and another register says
  // which (target/sparse.h). shape.k is the dense K.
  bool sparse = false;
};

// All rows.
[[nodiscard]] std::span<const Mma> all_mmas();

// The row named `name`, or null.
[[nodiscard]] const Mma* find_mma(std::string_view name);

// Who multiplies what: the types of A and B as the language or the table has them, and whether A
// is sparse.
struct MmaTypes {
  Scope scope;
  DType a;
  DType b;
  bool sparse = false;
};
// A tile of the result with the contraction's extent, and the type it is accumulated in.
struct MmaRequest {
  DType acc;
  MmaShape tile;

  friend bool operator==(const MmaRequest&, const MmaRequest&) = default;
};
// The row that serves the request of these types on this architecture, or null.
[[nodiscard]] const Mma* find_mma(const Arch& arch, const MmaTypes& types,
                                  const MmaRequest& request);

// The element type an instruction gets for an operand that the language has as `dtype`: tf32 for
// f32, itself otherwise. find_mma and its like take either.
[[nodiscard]] constexpr DType operand_type(DType dtype) {
  return dtype == DType::kF32 ? DType::kTF32 : dtype;
}

// Whether the row serves the request by exchanging A and B.
[[nodiscard]] bool serves_exchanged(const Mma& mma, MmaShape tile);

// The oldest architecture with an instruction for these operand types at that scope, or null.
[[nodiscard]] const Arch* oldest_arch(const MmaTypes& types);

// Every request that is legal for these operand types, in table order. Empty: the types have no
// instruction at that scope.
[[nodiscard]] std::vector<MmaRequest> legal_requests(const Arch& arch, const MmaTypes& types);
// The legal request closest to a wrong one: the same accumulator if any has it, then the smallest
// sum of the distances |log2| of the three extents. Empty when nothing is legal.
[[nodiscard]] std::optional<MmaRequest> nearest_request(const Arch& arch, const MmaTypes& types,
                                                        const MmaRequest& wrong);

// Extents of an operand's tile in the row: rows x columns, as in the opening comment.
struct TileExtents {
  int rows = 0;
  int cols = 0;

  friend constexpr bool operator==(const TileExtents&, const TileExtents&) = default;
};
[[nodiscard]] constexpr TileExtents extents(MmaShape shape, Operand operand) {
  switch (operand) {
    case Operand::kA: return {shape.m, shape.k};
    case Operand::kB: return {shape.n, shape.k};
    case Operand::kC: return {shape.m, shape.n};
  }
  return {};
}

// Of what the instruction's operand holds: half of K for A where it is sparse.
[[nodiscard]] constexpr TileExtents extents(const Mma& mma, Operand operand) {
  TileExtents out = extents(mma.shape, operand);
  if (mma.sparse && operand == Operand::kA) out.cols /= 2;
  return out;
}

[[nodiscard]] constexpr const Layout& map_of(const Mma& mma, Operand operand) {
  switch (operand) {
    case Operand::kA: return mma.a_map;
    case Operand::kB: return mma.b_map;
    case Operand::kC: break;
  }
  return mma.c_map;
}

[[nodiscard]] constexpr DType dtype_of(const Mma& mma, Operand operand) {
  switch (operand) {
    case Operand::kA: return mma.a;
    case Operand::kB: return mma.b;
    case Operand::kC: break;
  }
  return mma.acc;
}

// Whether lanes can hold the operand at all.
[[nodiscard]] constexpr bool has_map(const Mma& mma, Operand operand) {
  return operand != Operand::kB || !mma.reads_shared;
}

// Values (elements) of the operand each lane holds: 8 for A of m16n8k16, 0 without a map.
[[nodiscard]] constexpr int values_of(const Mma& mma, Operand operand) {
  return has_map(mma, operand) ? static_cast<int>(size(map_of(mma, operand), 1)) : 0;
}

// 32-bit registers of the operand each lane holds: 4 for A of m16n8k16.
[[nodiscard]] int registers_of(const Mma& mma, Operand operand);

// Cycles a tensor core (of an SM's four) of `arch` is busy with one instruction, of which a
// warpgroup's keeps all four busy: its multiply-adds by the architecture's rate for the operands'
// type, rounded up.
[[nodiscard]] int issue_cycles(const Mma& mma, const Arch& arch);
// Those cycles on the oldest architecture that has the instruction.
[[nodiscard]] int issue_cycles(const Mma& mma);

[[nodiscard]] std::string_view name(Scope scope);      // "group", as the language spells it
[[nodiscard]] std::string_view name(Operand operand);  // "A"
[[nodiscard]] std::optional<Operand> operand_from_name(std::string_view name);

}  // namespace kiln::target
