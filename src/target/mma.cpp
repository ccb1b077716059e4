#include "target/mma.h"

#include <cmath>

namespace kiln::target {

namespace {

// Into an f32 accumulator tensor cores align all terms of a block to the largest, truncate them a
// few guard bits below its mantissa, add exactly, and truncate the sum to 24 bits. With one guard
// bit each of 8 products loses less than 2^-24 and the sum less than 2^-23 of the largest
// magnitude: that is our model of Ampere (blocks of 8 products, one guard bit; not measured here).
// Hopper is within it: on an H200, one m16n8k16 keeps a 2^-25 beside 1 and drops a 2^-26 (two guard
// bits), and the worst error found by products just under those was 2.2 * 2^-22 of the sum of
// magnitudes.
constexpr double truncation_roundoff(int k) {
  constexpr int kBlock = 8;
  return k / kBlock * (0x1p-23 + kBlock * 0x1p-24);
}

// An f16 accumulator is rounded to 11 bits after each instruction; one unit, not half of one,
// because the hardware does not promise nearest.
constexpr double kRoundoffF16 = 0x1p-10;

// The fragments of PTX ISA "Matrix Fragments for mma.m16n8k16" (16-bit types) and ".m16n8k8": with
// lane = 4 * g + t, a lane holds pairs of neighbouring k (A, B) or n (C), in rows g and g + 8.
constexpr Layout kA16x16 = "((4,8),(2,2,2)):((32,1),(16,8,128))"_layout;
constexpr Layout kA16x8 = "((4,8),(2,2)):((32,1),(16,8))"_layout;
constexpr Layout kB8x16 = "((4,8),(2,2)):((16,1),(8,64))"_layout;
constexpr Layout kB8x8 = "((4,8),2):((16,1),8)"_layout;
constexpr Layout kC16x8 = "((4,8),(2,2)):((32,1),(16,8))"_layout;

// Language requests, section 14.4: the instruction's own shape and the WMMA shapes it tiles.
// 8x32x16 is missing on purpose: 8 rows need the roles of A and B exchanged.
constexpr std::array<MmaShape, Mma::kTilesMax> kTilesK16 = {
    {{16, 16, 16}, {32, 8, 16}, {16, 8, 16}}};
constexpr std::array<MmaShape, Mma::kTilesMax> kTilesK8 = {{{16, 8, 8}}};

constexpr Mma kMmas[] = {
    {.name = "m16n8k16.f32.f16",
     .shape = {.m = 16, .n = 8, .k = 16},
     .a = DType::kF16,
     .b = DType::kF16,
     .acc = DType::kF32,
     .scope = Scope::kWarp,
     .lanes = 32,
     .min_arch = 80,
     .a_map = kA16x16,
     .b_map = kB8x16,
     .c_map = kC16x8,
     .ptx = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
     .tiles = kTilesK16,
     .issue_cycles = 8,
     .acc_roundoff = truncation_roundoff(16)},
    {.name = "m16n8k16.f16.f16",
     .shape = {.m = 16, .n = 8, .k = 16},
     .a = DType::kF16,
     .b = DType::kF16,
     .acc = DType::kF16,
     .scope = Scope::kWarp,
     .lanes = 32,
     .min_arch = 80,
     .a_map = kA16x16,
     .b_map = kB8x16,
     .c_map = kC16x8,
     .ptx = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
     .tiles = kTilesK16,
     .issue_cycles = 8,
     .acc_roundoff = kRoundoffF16},
    {.name = "m16n8k16.f32.bf16",
     .shape = {.m = 16, .n = 8, .k = 16},
     .a = DType::kBF16,
     .b = DType::kBF16,
     .acc = DType::kF32,
     .scope = Scope::kWarp,
     .lanes = 32,
     .min_arch = 80,
     .a_map = kA16x16,
     .b_map = kB8x16,
     .c_map = kC16x8,
     .ptx = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
     .tiles = kTilesK16,
     .issue_cycles = 8,
     .acc_roundoff = truncation_roundoff(16)},
    {.name = "m16n8k8.f32.f16",
     .shape = {.m = 16, .n = 8, .k = 8},
     .a = DType::kF16,
     .b = DType::kF16,
     .acc = DType::kF32,
     .scope = Scope::kWarp,
     .lanes = 32,
     .min_arch = 80,
     .a_map = kA16x8,
     .b_map = kB8x8,
     .c_map = kC16x8,
     .ptx = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
     .tiles = kTilesK8,
     .issue_cycles = 4,
     .acc_roundoff = truncation_roundoff(8)},
    {.name = "m16n8k8.f16.f16",
     .shape = {.m = 16, .n = 8, .k = 8},
     .a = DType::kF16,
     .b = DType::kF16,
     .acc = DType::kF16,
     .scope = Scope::kWarp,
     .lanes = 32,
     .min_arch = 80,
     .a_map = kA16x8,
     .b_map = kB8x8,
     .c_map = kC16x8,
     .ptx = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
     .tiles = kTilesK8,
     .issue_cycles = 4,
     .acc_roundoff = kRoundoffF16},
    {.name = "m16n8k8.f32.bf16",
     .shape = {.m = 16, .n = 8, .k = 8},
     .a = DType::kBF16,
     .b = DType::kBF16,
     .acc = DType::kF32,
     .scope = Scope::kWarp,
     .lanes = 32,
     .min_arch = 80,
     .a_map = kA16x8,
     .b_map = kB8x8,
     .c_map = kC16x8,
     .ptx = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
     .tiles = kTilesK8,
     .issue_cycles = 4,
     .acc_roundoff = truncation_roundoff(8)},
};

// A map is a bijection of lanes x values onto the tile.
constexpr bool map_is_consistent(const Mma& row, Operand operand) {
  const Layout& map = map_of(row, operand);
  const TileExtents tile = extents(row.shape, operand);
  if (rank(map) != 2 || size(map, 0) != row.lanes) return false;
  return size(map) == Index{tile.rows} * tile.cols && is_bijective(map);
}

constexpr bool tiles_are_consistent(const Mma& row) {
  bool ended = false;
  for (const MmaShape& tile : row.tiles) {
    ended = ended || tile == MmaShape{};
    if (ended != (tile == MmaShape{})) return false;
    if (tile.m % row.shape.m != 0 || tile.n % row.shape.n != 0) return false;
    if (!ended && tile.k != row.shape.k) return false;
  }
  return row.tiles[0] != MmaShape{};
}

constexpr bool serves(const Mma& row, MmaShape tile) {
  for (const MmaShape& mine : row.tiles) {
    if (mine == tile && tile != MmaShape{}) return true;
  }
  return false;
}

// Two rows must not share a name, nor serve the same request of the same types and scope.
constexpr bool rows_clash(const Mma& x, const Mma& y) {
  if (x.name == y.name) return true;
  if (x.a != y.a || x.b != y.b || x.acc != y.acc || x.scope != y.scope) return false;
  for (const MmaShape& tile : x.tiles) {
    if (serves(y, tile)) return true;
  }
  return false;
}

// sm_80 does 256 16-bit multiply-adds a cycle in each tensor core.
constexpr int kMacsPerCycle = 256;

consteval bool rows_are_consistent(std::span<const Mma> rows) {
  for (const Mma& row : rows) {
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      if (!map_is_consistent(row, operand)) return false;
    }
    if (!tiles_are_consistent(row)) return false;
    if (row.issue_cycles * kMacsPerCycle != row.shape.m * row.shape.n * row.shape.k) return false;
    if (row.acc_roundoff < 0x1p-23) return false;  // no better than one rounding to f32
    for (const Mma& other : rows) {
      if (&other != &row && rows_clash(row, other)) return false;
    }
  }
  return true;
}
static_assert(rows_are_consistent(kMmas));

bool has_types(const Mma& row, const Arch& arch, Scope scope, DType a, DType b) {
  return row.min_arch <= arch.capability && row.scope == scope && row.a == a && row.b == b;
}

double distance(MmaShape x, MmaShape y) {
  const auto apart = [](int p, int q) {
    return std::fabs(std::log2(static_cast<double>(p < 1 ? 1 : p) / (q < 1 ? 1 : q)));
  };
  return apart(x.m, y.m) + apart(x.n, y.n) + apart(x.k, y.k);
}

}  // namespace

std::span<const Mma> all_mmas() { return kMmas; }

const Mma* find_mma(std::string_view name) {
  for (const Mma& row : kMmas) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Mma* find_mma(const Arch& arch, Scope scope, DType a, DType b, DType acc, MmaShape tile) {
  for (const Mma& row : kMmas) {
    if (has_types(row, arch, scope, a, b) && row.acc == acc && serves(row, tile)) return &row;
  }
  return nullptr;
}

std::vector<MmaRequest> legal_requests(const Arch& arch, Scope scope, DType a, DType b) {
  std::vector<MmaRequest> out;
  for (const Mma& row : kMmas) {
    if (!has_types(row, arch, scope, a, b)) continue;
    for (const MmaShape& tile : row.tiles) {
      if (tile != MmaShape{}) out.push_back({row.acc, tile});
    }
  }
  return out;
}

std::optional<MmaRequest> nearest_request(const Arch& arch, Scope scope, DType a, DType b,
                                          DType acc, MmaShape tile) {
  constexpr double kOtherAccumulator = 1000;  // outweighs any distance of shapes
  std::optional<MmaRequest> best;
  double best_distance = 0;
  for (const MmaRequest& request : legal_requests(arch, scope, a, b)) {
    const double here = distance(request.tile, tile) + (request.acc == acc ? 0 : kOtherAccumulator);
    if (best.has_value() && here >= best_distance) continue;
    best = request;
    best_distance = here;
  }
  return best;
}

int registers_of(const Mma& mma, Operand operand) {
  constexpr int kRegisterBits = 32;
  return values_of(mma, operand) * info(dtype_of(mma, operand)).bits / kRegisterBits;
}

int issue_cycles(const Mma& mma, const Arch& arch) {
  constexpr int kTensorCores = 4;  // of one SM, on every architecture of the table
  const int rate = arch.mma_macs_per_sm_cycle / kTensorCores;
  return (mma.issue_cycles * kMacsPerCycle + rate - 1) / rate;
}

std::string_view name(Scope scope) {
  switch (scope) {
    case Scope::kThread: return "thread";
    case Scope::kWarp: return "group";
    case Scope::kWarpgroup: return "group-4";
  }
  return "";
}

std::string_view name(Operand operand) {
  switch (operand) {
    case Operand::kA: return "A";
    case Operand::kB: return "B";
    case Operand::kC: return "C";
  }
  return "";
}

std::optional<Operand> operand_from_name(std::string_view text) {
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
    if (name(operand) == text) return operand;
  }
  return std::nullopt;
}

}  // namespace kiln::target
