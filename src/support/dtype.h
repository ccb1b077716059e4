// Element types: one table, and the arithmetic facts the rest of kiln asks for.
//
// `roundoff(kF16)` is the unit roundoff u of round-to-nearest: 2^-11 (design of the numeric bound).
// Conversions go through double, which holds every value of every type here exactly (s64/u64 beyond
// 2^53 excepted).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

enum class DType : std::uint8_t {
  kF64,
  kF32,
  kTF32,
  kF16,
  kBF16,
  kE4M3,
  kE5M2,
  kUE4M3,
  kUE8M0,
  kE2M3,
  kE3M2,
  kE2M1,
  kS64,
  kU64,
  kS32,
  kU32,
  kS16,
  kU16,
  kS8,
  kU8,
  kS6,
  kU6,
  kS4,
  kU4,
  kS2,
  kU2,
  kU1,
  kBin1,
  kBool,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kBool) + 1;

enum class NumberKind : std::uint8_t { kFloat, kSigned, kUnsigned, kBool };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as the language spells it
  NumberKind kind;
  int bits;
  double max;  // largest finite value
  // Floats only: the fields of the encoding. `ieee` = the top exponent means infinity and NaN; the
  // others spend it on numbers (e4m3 keeps one NaN pattern, the 6- and 4-bit types none).
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  bool ieee = false;
  bool ties_away = false;  // rounding to nearest: ties go away from zero, not to even
};

// By type. In sight of every caller, like what follows from a row: both are asked for with each number
// that the simulator and the reference compute.
extern const std::array<DTypeInfo, kDTypeCount> kDTypes;
[[nodiscard]] inline const DTypeInfo& info(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}
[[nodiscard]] inline std::string_view name(DType dtype) { return info(dtype).name; }
// Canonical names ("f16") and the language's aliases ("half", "double", "f8", "int"...).
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);

[[nodiscard]] inline bool is_float(DType d) { return info(d).kind == NumberKind::kFloat; }
[[nodiscard]] inline bool is_integer(DType d) {
  return info(d).kind == NumberKind::kSigned || info(d).kind == NumberKind::kUnsigned;
}
[[nodiscard]] inline bool is_sub_byte(DType d) { return info(d).bits < 8; }
// Whether buffers and numbers are of it: integers of less than a byte are operands of products only.
[[nodiscard]] inline bool is_stored(DType d) { return !is_sub_byte(d) || is_float(d); }
// Bytes of one stored element (sub-byte types are stored in one byte each).
[[nodiscard]] inline int size_bytes(DType d) { return (info(d).bits + 7) / 8; }

// What follows from a row of the table.
struct DTypePrecision {
  // Largest relative error of rounding a real number to this type; 0 for integers.
  double roundoff = 0;
  // Every integer of at most this magnitude is a value of the float type: 2048 for f16.
  double integers_exact_up_to = 0;
  // Smallest positive (subnormal) value of a float type: below it the error is absolute, not
  // relative.
  double smallest = 1;
  // Smallest normal value of a float type; 0 for types without subnormal values.
  double smallest_normal = 0;
};
extern const std::array<DTypePrecision, kDTypeCount> kPrecisions;
[[nodiscard]] inline const DTypePrecision& precision(DType dtype) {
  return kPrecisions[static_cast<std::size_t>(dtype)];
}
[[nodiscard]] inline double roundoff(DType dtype) { return precision(dtype).roundoff; }
[[nodiscard]] inline double integers_exact_up_to(DType dtype) {
  return precision(dtype).integers_exact_up_to;
}
[[nodiscard]] inline double smallest(DType dtype) { return precision(dtype).smallest; }
[[nodiscard]] inline double smallest_normal(DType dtype) {
  return precision(dtype).smallest_normal;
}

// Whether a number past a float type's largest one becomes the largest: as `cvt` with `.satfinite`
// does, the only form that PTX has for floats of 8 bits and fewer (PTX ISA, cvt).
[[nodiscard]] inline bool saturates(DType dtype) {
  const DTypeInfo& row = info(dtype);
  return row.kind == NumberKind::kFloat && (!row.ieee || row.bits <= 8);
}

// round_to of what is neither f32 nor f64.
[[nodiscard]] double round_to_other(DType dtype, double value);

// A conversion (docs/numbers.md). To nearest even (tf32: ties away, as cvt.rna.tf32.f32 does); what
// is too large becomes infinity, in floats of 8 bits and fewer the largest value, infinities too;
// to integers truncated and saturated, NaN becomes 0.
[[nodiscard]] inline double round_to(DType dtype, double value) {
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return dtype == DType::kF64 ? value : round_to_other(dtype, value);
}

// An f32 without what tf32 has no bits for: where tensor cores read f32 in place they ignore the
// low 13 bits.
[[nodiscard]] double cut_to_tf32(double value);

// The element's stored bits (low size_bytes of the result) of a double; infinities stay themselves.
[[nodiscard]] std::uint64_t encode(DType dtype, double value);
[[nodiscard]] double decode(DType dtype, std::uint64_t bits);

// Element `index` of an array of `dtype` at `data`.
[[nodiscard]] double load_element(DType dtype, const std::byte* data, std::size_t index);
void store_element(DType dtype, std::byte* data, std::size_t index, double value);

}  // namespace kiln
