#include "target/mma.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace kiln::target {

namespace {

// --- numbers: what one instruction may lose, relative to the sum of the magnitudes
//
// Into an f32 accumulator tensor cores align all terms of a block to the largest, truncate them a
// few guard bits below its mantissa, add exactly, and truncate the sum to 24 bits. With one guard
// bit each of the block's products loses less than 2^-24 and the sum less than 2^-23 of the largest
// magnitude: that is our model of Ampere (not measured here), with blocks of 8 products of 16-bit
// types and of 4 of tf32. Hopper is within it: on an H200, one m16n8k16 keeps a 2^-25 beside 1 and
// drops a 2^-26 (two guard bits), and the worst error found by products just under those was
// 2.2 * 2^-22 of the sum of magnitudes.
constexpr double truncation_roundoff(int k, int block) {
  return k / block * (0x1p-23 + block * 0x1p-24);
}

// An f16 accumulator is rounded to 11 bits after each instruction; one unit, not half of one,
// because the hardware does not promise nearest.
constexpr double kRoundoffF16 = 0x1p-10;

// Sums of 8-bit floats, in f16 too since PTX 8.7 (CUDA 12.8).
constexpr double fp8_roundoff(int k) { return (k + 2) * kFp8Unit; }
// With no magnitude above 2^13 nothing of an integer lies below those 13 bits.
constexpr double kFp8ExactIntegers = 0x1p13;

// f64 rounds to nearest after each multiply-add of the chain of k.
constexpr double f64_roundoff(int k) { return (k + 1) * 0x1p-53; }

// --- shapes
//
// The fragments of PTX ISA, "Matrix Fragments for mma.m...". With lane = 4 * g + t, w the elements
// of one 32-bit register (1 for f64): a lane holds runs of w neighbouring k, at w * t and every
// 4 * w, in rows g and g + 8 of A and in row g of B; of C, neighbouring pairs of n in those rows.
// Named by rows x K and w.
constexpr Layout kA16x4w1 = "((4,8),2):((16,1),8)"_layout;
constexpr Layout kA16x8w1 = "((4,8),(2,2)):((16,1),(8,64))"_layout;
constexpr Layout kA16x16w1 = "((4,8),(2,4)):((16,1),(8,64))"_layout;
constexpr Layout kA16x8w2 = "((4,8),(2,2)):((32,1),(16,8))"_layout;
constexpr Layout kA16x16w2 = "((4,8),(2,2,2)):((32,1),(16,8,128))"_layout;
constexpr Layout kA16x16w4 = "((4,8),(4,2)):((64,1),(16,8))"_layout;
constexpr Layout kA16x32w4 = "((4,8),(4,2,2)):((64,1),(16,8,256))"_layout;
// Eight rows: B always, A of the m8n8 shapes.
constexpr Layout k8x4w1 = "((4,8),1):((8,1),0)"_layout;
constexpr Layout k8x8w1 = "((4,8),2):((8,1),32)"_layout;
constexpr Layout k8x16w1 = "((4,8),4):((8,1),32)"_layout;
constexpr Layout k8x8w2 = "((4,8),2):((16,1),8)"_layout;
constexpr Layout k8x16w2 = "((4,8),(2,2)):((16,1),(8,64))"_layout;
constexpr Layout k8x16w4 = "((4,8),4):((32,1),8)"_layout;
constexpr Layout k8x32w4 = "((4,8),(4,2)):((32,1),(8,128))"_layout;
// B of the sparse shapes: twice the K.
constexpr Layout k8x32w2 = "((4,8),(2,4)):((16,1),(8,64))"_layout;
constexpr Layout k8x64w4 = "((4,8),(4,4)):((32,1),(8,128))"_layout;
constexpr Layout kC8x8 = "((4,8),2):((16,1),8)"_layout;
constexpr Layout kC16x8 = "((4,8),(2,2)):((32,1),(16,8))"_layout;
// m8n8k4 of f16 (PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 ...") multiplies in each quad pair,
// lanes 4q to 4q + 3 and 16 + 4q to 16 + 4q + 3, what those eight hold. All four hold the same here.
constexpr Layout kQuad8x4 = "((4,4,2),4):((1,0,4),8)"_layout;
constexpr Layout kQuadC8x8 = "((4,4,2),8):((1,0,4),8)"_layout;
constexpr Layout kQuadC8x8f32 = "((2,2,4,2),(2,2,2)):((1,16,0,4),(8,2,32))"_layout;
// wgmma (PTX ISA, "Register Fragments for wgmma.mma_async.m64n...": warp w of four has rows 16 * w
// to 16 * w + 15, arranged as in the 16-row shapes.
constexpr Layout kA64x8w1 = "((4,8,4),(2,2)):((64,1,16),(8,256))"_layout;
constexpr Layout kA64x16w2 = "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"_layout;
constexpr Layout kA64x32w4 = "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))"_layout;
constexpr Layout c64(int n) {
  return make_layout("(4,8,4):(128,1,16)"_layout,
                     make_layout(make_layout(2, 64), make_layout(2, 8), make_layout(n / 8, 512)));
}

// Language requests, section 14.4: the instruction's own shape and the WMMA shapes it tiles.
using Tiles = std::array<MmaShape, Mma::kTilesMax>;
constexpr Tiles kWmmaTiles = {{{16, 16, 16}, {32, 8, 16}, {16, 8, 16}}};

// --- families: one entry for all rows that differ in their types alone

struct Family {
  MmaShape shape;
  std::array<DType, 2> operands;  // every pair of them when `mixed`, else each with itself
  bool mixed = false;
  std::array<DType, 2> accs;  // the two are the same where there is one
  Feature needs = Feature::kMma;
  Layout a_map;
  Layout b_map = {};
  Layout c_map = {};
  Tiles tiles = {};
  MmaShape exchanged = {};
  // wgmma: rows for N from shape.n to n_last in steps of 8, of 16 above n_coarse.
  int n_last = 0;
  int n_coarse = 256;
  bool transposes = false;
  bool sparse = false;
  double roundoff;  // into f32, f64 or s32
  double roundoff_f16 = kRoundoffF16;
  double exact_integers = 0;  // 0: as the accumulator's type holds them
};

constexpr std::array<DType, 2> kF16F16 = {DType::kF16, DType::kF16};
constexpr std::array<DType, 2> kBF16BF16 = {DType::kBF16, DType::kBF16};
constexpr std::array<DType, 2> kTF32TF32 = {DType::kTF32, DType::kTF32};
constexpr std::array<DType, 2> kF64F64 = {DType::kF64, DType::kF64};
constexpr std::array<DType, 2> kS8U8 = {DType::kS8, DType::kU8};
constexpr std::array<DType, 2> kFp8s = {DType::kE4M3, DType::kE5M2};
constexpr std::array<DType, 2> kF32F16 = {DType::kF32, DType::kF16};
constexpr std::array<DType, 2> kF32F32 = {DType::kF32, DType::kF32};
constexpr std::array<DType, 2> kS32S32 = {DType::kS32, DType::kS32};

constexpr Family kFamilies[] = {
    {.shape = {16, 8, 16},
     .operands = kF16F16,
     .accs = kF32F16,
     .a_map = kA16x16w2,
     .b_map = k8x16w2,
     .c_map = kC16x8,
     .tiles = kWmmaTiles,
     .exchanged = {8, 32, 16},
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {16, 8, 16},
     .operands = kBF16BF16,
     .accs = kF32F32,
     .a_map = kA16x16w2,
     .b_map = k8x16w2,
     .c_map = kC16x8,
     .tiles = kWmmaTiles,
     .exchanged = {8, 32, 16},
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {16, 8, 8},
     .operands = kF16F16,
     .accs = kF32F16,
     .a_map = kA16x8w2,
     .b_map = k8x8w2,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 8}}},
     .roundoff = truncation_roundoff(8, 8)},
    {.shape = {16, 8, 8},
     .operands = kBF16BF16,
     .accs = kF32F32,
     .a_map = kA16x8w2,
     .b_map = k8x8w2,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 8}}},
     .roundoff = truncation_roundoff(8, 8)},
    {.shape = {16, 8, 8},
     .operands = kTF32TF32,
     .accs = kF32F32,
     .a_map = kA16x8w1,
     .b_map = k8x8w1,
     .c_map = kC16x8,
     .tiles = {{{16, 16, 8}, {16, 8, 8}}},
     .roundoff = truncation_roundoff(8, 4)},
    {.shape = {16, 8, 4},
     .operands = kTF32TF32,
     .accs = kF32F32,
     .a_map = kA16x4w1,
     .b_map = k8x4w1,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 4}}},
     .roundoff = truncation_roundoff(4, 4)},
    {.shape = {8, 8, 4},
     .operands = kF16F16,
     .accs = kF16F16,
     .a_map = kQuad8x4,
     .b_map = kQuad8x4,
     .c_map = kQuadC8x8,
     .tiles = {{{8, 8, 4}}},
     .roundoff = truncation_roundoff(4, 4)},
    {.shape = {8, 8, 4},
     .operands = kF16F16,
     .accs = kF32F32,
     .a_map = kQuad8x4,
     .b_map = kQuad8x4,
     .c_map = kQuadC8x8f32,
     .tiles = {{{8, 8, 4}}},
     .roundoff = truncation_roundoff(4, 4)},
    // Integers without .satfinite: sums are exact modulo 2^32.
    {.shape = {16, 8, 32},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .a_map = kA16x32w4,
     .b_map = k8x32w4,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 32}}},
     .roundoff = 0},
    {.shape = {16, 8, 16},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .a_map = kA16x16w4,
     .b_map = k8x16w4,
     .c_map = kC16x8,
     .tiles = kWmmaTiles,
     .roundoff = 0},
    {.shape = {8, 8, 16},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .a_map = k8x16w4,
     .b_map = k8x16w4,
     .c_map = kC8x8,
     .tiles = {{{8, 32, 16}, {8, 8, 16}}},
     .roundoff = 0},
    {.shape = {16, 8, 32},
     .operands = kFp8s,
     .mixed = true,
     .accs = kF32F16,
     .needs = Feature::kMmaFp8,
     .a_map = kA16x32w4,
     .b_map = k8x32w4,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 32}}},
     .roundoff = fp8_roundoff(32),
     .roundoff_f16 = fp8_roundoff(32) + kRoundoffF16,
     .exact_integers = kFp8ExactIntegers},
    {.shape = {8, 8, 4},
     .operands = kF64F64,
     .accs = kF64F64,
     .a_map = k8x4w1,
     .b_map = k8x4w1,
     .c_map = kC8x8,
     .tiles = {{{8, 8, 4}}},
     .roundoff = f64_roundoff(4)},
    {.shape = {16, 8, 4},
     .operands = kF64F64,
     .accs = kF64F64,
     .needs = Feature::kMmaF64,
     .a_map = kA16x4w1,
     .b_map = k8x4w1,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 4}}},
     .roundoff = f64_roundoff(4)},
    {.shape = {16, 8, 8},
     .operands = kF64F64,
     .accs = kF64F64,
     .needs = Feature::kMmaF64,
     .a_map = kA16x8w1,
     .b_map = k8x8w1,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 8}}},
     .roundoff = f64_roundoff(8)},
    {.shape = {16, 8, 16},
     .operands = kF64F64,
     .accs = kF64F64,
     .needs = Feature::kMmaF64,
     .a_map = kA16x16w1,
     .b_map = k8x16w1,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 16}}},
     .roundoff = f64_roundoff(16)},
    // wgmma. K is 32 bytes; only 16-bit types have a bit for the other major in their statement.
    {.shape = {64, 8, 16},
     .operands = kF16F16,
     .accs = kF32F16,
     .needs = Feature::kWgmma,
     .a_map = kA64x16w2,
     .n_last = 256,
     .transposes = true,
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {64, 8, 16},
     .operands = kBF16BF16,
     .accs = kF32F32,
     .needs = Feature::kWgmma,
     .a_map = kA64x16w2,
     .n_last = 256,
     .transposes = true,
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {64, 8, 8},
     .operands = kTF32TF32,
     .accs = kF32F32,
     .needs = Feature::kWgmma,
     .a_map = kA64x8w1,
     .n_last = 256,
     .roundoff = truncation_roundoff(8, 4)},
    {.shape = {64, 8, 32},
     .operands = kFp8s,
     .mixed = true,
     .accs = kF32F16,
     .needs = Feature::kWgmma,
     .a_map = kA64x32w4,
     .n_last = 256,
     .roundoff = fp8_roundoff(32),
     .roundoff_f16 = fp8_roundoff(32) + kRoundoffF16,
     .exact_integers = kFp8ExactIntegers},
    {.shape = {64, 8, 32},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .needs = Feature::kWgmma,
     .a_map = kA64x32w4,
     .n_last = 256,
     .n_coarse = 32,
     .roundoff = 0},
    // mma.sp: A holds the kept half of K, as the dense instruction of that K has it.
    {.shape = {16, 8, 32},
     .operands = kF16F16,
     .accs = kF32F16,
     .a_map = kA16x16w2,
     .b_map = k8x32w2,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 32}}},
     .sparse = true,
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {16, 8, 16},
     .operands = kF16F16,
     .accs = kF32F16,
     .a_map = kA16x8w2,
     .b_map = k8x16w2,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 16}}},
     .sparse = true,
     .roundoff = truncation_roundoff(8, 8)},
    {.shape = {16, 8, 32},
     .operands = kBF16BF16,
     .accs = kF32F32,
     .a_map = kA16x16w2,
     .b_map = k8x32w2,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 32}}},
     .sparse = true,
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {16, 8, 16},
     .operands = kBF16BF16,
     .accs = kF32F32,
     .a_map = kA16x8w2,
     .b_map = k8x16w2,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 16}}},
     .sparse = true,
     .roundoff = truncation_roundoff(8, 8)},
    {.shape = {16, 8, 16},
     .operands = kTF32TF32,
     .accs = kF32F32,
     .a_map = kA16x8w1,
     .b_map = k8x16w1,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 16}}},
     .sparse = true,
     .roundoff = truncation_roundoff(8, 4)},
    {.shape = {16, 8, 8},
     .operands = kTF32TF32,
     .accs = kF32F32,
     .a_map = kA16x4w1,
     .b_map = k8x8w1,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 8}}},
     .sparse = true,
     .roundoff = truncation_roundoff(4, 4)},
    {.shape = {16, 8, 64},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .a_map = kA16x32w4,
     .b_map = k8x64w4,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 64}}},
     .sparse = true,
     .roundoff = 0},
    {.shape = {16, 8, 32},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .a_map = kA16x16w4,
     .b_map = k8x32w4,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 32}}},
     .sparse = true,
     .roundoff = 0},
    // (ptxas has no f16 accumulator here.)
    {.shape = {16, 8, 64},
     .operands = kFp8s,
     .mixed = true,
     .accs = kF32F32,
     .needs = Feature::kMmaFp8,
     .a_map = kA16x32w4,
     .b_map = k8x64w4,
     .c_map = kC16x8,
     .tiles = {{{16, 8, 64}}},
     .sparse = true,
     .roundoff = fp8_roundoff(32),
     .exact_integers = kFp8ExactIntegers},
    // wgmma with sparse A: 32 bytes of it, 64 of B.
    {.shape = {64, 8, 32},
     .operands = kF16F16,
     .accs = kF32F16,
     .needs = Feature::kWgmma,
     .a_map = kA64x16w2,
     .n_last = 256,
     .transposes = true,
     .sparse = true,
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {64, 8, 32},
     .operands = kBF16BF16,
     .accs = kF32F32,
     .needs = Feature::kWgmma,
     .a_map = kA64x16w2,
     .n_last = 256,
     .transposes = true,
     .sparse = true,
     .roundoff = truncation_roundoff(16, 8)},
    {.shape = {64, 8, 16},
     .operands = kTF32TF32,
     .accs = kF32F32,
     .needs = Feature::kWgmma,
     .a_map = kA64x8w1,
     .n_last = 256,
     .sparse = true,
     .roundoff = truncation_roundoff(8, 4)},
    {.shape = {64, 8, 64},
     .operands = kFp8s,
     .mixed = true,
     .accs = kF32F16,
     .needs = Feature::kWgmma,
     .a_map = kA64x32w4,
     .n_last = 256,
     .sparse = true,
     .roundoff = fp8_roundoff(32),
     .roundoff_f16 = fp8_roundoff(32) + kRoundoffF16,
     .exact_integers = kFp8ExactIntegers},
    {.shape = {64, 8, 64},
     .operands = kS8U8,
     .mixed = true,
     .accs = kS32S32,
     .needs = Feature::kWgmma,
     .a_map = kA64x32w4,
     .n_last = 256,
     .n_coarse = 32,
     .sparse = true,
     .roundoff = 0},
};

// --- rows: the families, type by type

// A type as PTX and the rows' names spell it, and the integers its sums hold exactly.
struct PtxType {
  DType dtype;
  std::string_view name;
  double exact_integers = 0;  // accumulators only
};
constexpr PtxType kPtxTypes[] = {
    {DType::kF64, "f64", 0x1p53}, {DType::kF32, "f32", 0x1p24}, {DType::kF16, "f16", 0x1p11},
    {DType::kS32, "s32", 0x1p31}, {DType::kTF32, "tf32"},       {DType::kBF16, "bf16"},
    {DType::kE4M3, "e4m3"},       {DType::kE5M2, "e5m2"},       {DType::kS8, "s8"},
    {DType::kU8, "u8"},
};
constexpr const PtxType& ptx_type(DType dtype) {
  for (const PtxType& type : kPtxTypes) {
    if (type.dtype == dtype) return type;
  }
  return kPtxTypes[0];  // rows_are_consistent finds the wrong name
}

struct Types {
  DType a;
  DType b;
  DType acc;
};

// Calls `row(types)` for each combination of the family.
template <class Row>
constexpr void for_each_types(const Family& family, Row&& row) {
  const std::size_t types = family.operands[0] == family.operands[1] ? 1 : 2;
  const std::size_t accs = family.accs[0] == family.accs[1] ? 1 : 2;
  for (std::size_t a = 0; a < types; ++a) {
    for (std::size_t b = family.mixed ? 0 : a; b < (family.mixed ? types : a + 1); ++b) {
      for (std::size_t c = 0; c < accs; ++c) {
        row(Types{family.operands[a], family.operands[b], family.accs[c]});
      }
    }
  }
}

// Calls `row(family, shape, types)` for each row.
template <class Row>
constexpr void for_each_row(Row&& row) {
  for (const Family& family : kFamilies) {
    for_each_types(family, [&](const Types& types) {
      const int last = family.n_last == 0 ? family.shape.n : family.n_last;
      for (int n = family.shape.n; n <= last; n += n < family.n_coarse ? 8 : 16) {
        row(family, MmaShape{family.shape.m, n, family.shape.k}, types);
      }
    });
  }
}

constexpr std::size_t kRows = [] {
  std::size_t rows = 0;
  for_each_row([&](const Family&, MmaShape, const Types&) { ++rows; });
  return rows;
}();

struct Text {
  std::array<char, 72> chars = {};
  std::size_t size = 0;

  constexpr Text& add(std::string_view text) {
    for (const char c : text) chars[size++] = c;
    return *this;
  }
  constexpr Text& add(int number) {
    if (number >= 10) add(number / 10);
    chars[size++] = static_cast<char>('0' + number % 10);
    return *this;
  }
  constexpr Text& add(MmaShape shape) {
    return add("m").add(shape.m).add("n").add(shape.n).add("k").add(shape.k);
  }
  [[nodiscard]] constexpr std::string_view view() const { return {chars.data(), size}; }
};

struct RowText {
  Text name;
  Text ptx;
};

constexpr RowText text_of(const Family& family, MmaShape shape, const Types& types) {
  const std::string_view left = ptx_type(types.a).name;
  const std::string_view right = ptx_type(types.b).name;
  const std::string_view sum = ptx_type(types.acc).name;
  RowText out;
  out.name.add(shape).add(".").add(sum).add(".").add(left);
  if (types.a != types.b) out.name.add(".").add(right);
  if (family.sparse) out.name.add(".sp");
  if (family.n_last != 0) {
    out.ptx.add("wgmma.mma_async.").add(family.sparse ? "sp." : "").add("sync.aligned.");
    out.ptx.add(shape).add(".").add(sum).add(".").add(left).add(".").add(right);
    return out;
  }
  out.ptx.add(family.sparse ? "mma.sp::ordered_metadata." : "mma.")
      .add("sync.aligned.")
      .add(shape)
      .add(".row.col.")
      .add(sum)
      .add(".");
  out.ptx.add(left).add(".").add(right).add(".").add(sum);
  return out;
}

constexpr std::array<RowText, kRows> kTexts = [] {
  std::array<RowText, kRows> out;
  std::size_t row = 0;
  for_each_row([&](const Family& family, MmaShape shape, const Types& types) {
    out[row++] = text_of(family, shape, types);
  });
  return out;
}();

constexpr double exact_integers(const Family& family, DType acc) {
  const double of_type = ptx_type(acc).exact_integers;
  if (family.exact_integers == 0 || family.exact_integers > of_type) return of_type;
  return family.exact_integers;
}

constexpr std::array<Mma, kRows> kMmas = [] {
  std::array<Mma, kRows> out;
  std::size_t row = 0;
  for_each_row([&](const Family& family, MmaShape shape, const Types& types) {
    const bool warpgroup = family.n_last != 0;
    out[row] = {.name = kTexts[row].name.view(),
                .shape = shape,
                .a = types.a,
                .b = types.b,
                .acc = types.acc,
                .scope = warpgroup ? Scope::kWarpgroup : Scope::kWarp,
                .lanes = warpgroup ? kWarpgroupLanes : kWarpLanes,
                .needs = family.needs,
                .a_map = family.a_map,
                .b_map = family.b_map,
                .c_map = warpgroup ? c64(shape.n) : family.c_map,
                .ptx = kTexts[row].ptx.view(),
                .tiles = warpgroup ? Tiles{{shape}} : family.tiles,
                .exchanged = family.exchanged,
                .acc_roundoff = types.acc == DType::kF16 ? family.roundoff_f16 : family.roundoff,
                .exact_integers = exact_integers(family, types.acc),
                .reads_shared = warpgroup,
                .transposes = family.transposes,
                .asynchronous = warpgroup,
                .splits_k = warpgroup,
                .sparse = family.sparse};
    ++row;
  });
  return out;
}();

// How many lanes hold each element: 4 where the quad pairs of a warp do the same, else 1.
constexpr Index copies(const Mma& row, Operand operand) {
  const TileExtents tile = extents(row, operand);
  return size(map_of(row, operand)) / (Index{tile.rows} * tile.cols);
}

// A map is a bijection of lanes x values onto the tile, but for lanes that repeat what others hold.
constexpr bool map_is_consistent(const Mma& row, Operand operand) {
  const Layout& map = map_of(row, operand);
  const Index elements = Index{extents(row, operand).rows} * extents(row, operand).cols;
  if (rank(map) != 2 || size(map, 0) != row.lanes) return false;
  if (size(map) == elements) return is_bijective(map);
  std::array<Index, 64> held = {};
  for (Index i = 0; i < size(map); ++i) ++held[static_cast<std::size_t>(map(i))];
  return std::ranges::count(held, copies(row, operand)) == elements;
}

// Rows of one family that differ in N alone are consistent when the first one is: a test goes
// through all of them.
constexpr bool stands_for_family(const Mma& row) { return !row.reads_shared || row.shape.n == 8; }

consteval bool maps_are_consistent(std::span<const Mma> rows) {
  for (const Mma& row : rows) {
    if (!stands_for_family(row)) continue;
    for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
      if (has_map(row, operand) && !map_is_consistent(row, operand)) return false;
    }
  }
  return true;
}
static_assert(maps_are_consistent(kMmas));

constexpr bool tiles_are_consistent(const Mma& row) {
  bool ended = false;
  for (const MmaShape& tile : row.tiles) {
    ended = ended || tile == MmaShape{};
    if (ended != (tile == MmaShape{})) return false;
    if (tile.m % row.shape.m != 0 || tile.n % row.shape.n != 0) return false;
    if (!ended && tile.k != row.shape.k) return false;
  }
  const bool divides = row.exchanged.n % row.shape.m == 0 && row.exchanged.m % row.shape.n == 0;
  return row.tiles[0] != MmaShape{} && divides;
}

constexpr bool serves(const Mma& row, MmaShape tile) {
  if (row.exchanged == tile && tile != MmaShape{}) return true;
  for (const MmaShape& mine : row.tiles) {
    if (tile == MmaShape{} || mine.m != tile.m || mine.n != tile.n) continue;
    if (mine.k == tile.k || (row.splits_k && tile.k > 0 && tile.k % mine.k == 0)) return true;
  }
  return false;
}

// Two rows must not share a name, nor serve the same request of the same types and scope.
constexpr bool rows_clash(const Mma& x, const Mma& y) {
  if (x.name == y.name) return true;
  if (x.a != y.a || x.b != y.b || x.acc != y.acc) return false;
  if (x.scope != y.scope || x.sparse != y.sparse) return false;
  for (const MmaShape& tile : x.tiles) {
    if (serves(y, tile)) return true;
  }
  return x.exchanged != MmaShape{} && serves(y, x.exchanged);
}

consteval bool rows_are_consistent(std::span<const Mma> rows) {
  for (const Mma& row : rows) {
    if (!tiles_are_consistent(row)) return false;
    // Exact, or no better than the rounding of f64.
    if (row.acc_roundoff != 0 && row.acc_roundoff < 0x1p-53) return false;
    if (row.exact_integers < 1 || (row.exchanged != MmaShape{} && row.a != row.b)) return false;
    if (!stands_for_family(row)) continue;
    for (const Mma& other : rows) {
      if (&other != &row && stands_for_family(other) && rows_clash(row, other)) return false;
    }
  }
  return true;
}
static_assert(rows_are_consistent(kMmas));

bool has_types(const Mma& row, const Arch& arch, const MmaTypes& types) {
  return row.sparse == types.sparse && arch.has(row.needs) && row.scope == types.scope &&
         row.a == operand_type(types.a) && row.b == operand_type(types.b);
}

// Multiply-adds a cycle of all the SM's tensor cores together.
int macs_per_sm_cycle(const Arch& arch, const Mma& mma) {
  const DType operand = mma.a;
  const bool fp8 = operand == DType::kE4M3 || operand == DType::kE5M2;
  if (operand == DType::kF64) return arch.mma_f64_macs_per_sm_cycle;
  if (fp8 && mma.scope == Scope::kWarp) return arch.mma_fp8_macs_per_sm_cycle;
  // Half as wide, twice as many; tf32 goes by the 32 bits it takes.
  return arch.mma_macs_per_sm_cycle * 16 / info(operand).bits;
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

const Mma* find_mma(const Arch& arch, const MmaTypes& types, const MmaRequest& request) {
  for (const Mma& row : kMmas) {
    if (has_types(row, arch, types) && row.acc == request.acc && serves(row, request.tile))
      return &row;
  }
  return nullptr;
}

bool serves_exchanged(const Mma& mma, MmaShape tile) {
  return tile != MmaShape{} && mma.exchanged == tile;
}

const Arch* oldest_arch(const MmaTypes& types) {
  for (const Arch& arch : all_archs()) {
    if (!legal_requests(arch, types).empty()) return &arch;
  }
  return nullptr;
}

std::vector<MmaRequest> legal_requests(const Arch& arch, const MmaTypes& types) {
  std::vector<MmaRequest> out;
  for (const Mma& row : kMmas) {
    if (!has_types(row, arch, types)) continue;
    for (const MmaShape& tile : row.tiles) {
      if (tile != MmaShape{}) out.push_back({row.acc, tile});
    }
    if (row.exchanged != MmaShape{}) out.push_back({row.acc, row.exchanged});
  }
  return out;
}

std::optional<MmaRequest> nearest_request(const Arch& arch, const MmaTypes& types,
                                          const MmaRequest& wrong) {
  constexpr double kOtherAccumulator = 1000;  // outweighs any distance of shapes
  std::optional<MmaRequest> best;
  double best_distance = 0;
  for (const MmaRequest& request : legal_requests(arch, types)) {
    const double here =
        distance(request.tile, wrong.tile) + (request.acc == wrong.acc ? 0 : kOtherAccumulator);
    if (best.has_value() && here >= best_distance) continue;
    best = request;
    best_distance = here;
  }
  return best;
}

int registers_of(const Mma& mma, Operand operand) {
  return values_of(mma, operand) * info(dtype_of(mma, operand)).bits / kRegisterBits;
}

int issue_cycles(const Mma& mma, const Arch& arch) {
  constexpr int kTensorCores = 4;  // of one SM, on every architecture of the table
  const int at_once = mma.scope == Scope::kWarpgroup ? kTensorCores : 1;
  const int depth = extents(mma, Operand::kA).cols;  // zeros of a sparse A are skipped
  const int tiles = mma.reads_shared ? 1 : static_cast<int>(copies(mma, Operand::kC));
  const int macs = tiles * mma.shape.m * mma.shape.n * depth * kTensorCores / at_once;
  const int rate = macs_per_sm_cycle(arch, mma);
  KILN_CHECK(rate > 0, "{} does not run on {}", mma.name, arch.name);
  return (macs + rate - 1) / rate;
}

int issue_cycles(const Mma& mma) {
  const Arch* arch = oldest_arch({mma.needs});
  KILN_CHECK(arch != nullptr, "no architecture has {}", mma.name);
  return issue_cycles(mma, *arch);
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
