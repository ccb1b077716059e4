#include "support/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/check.h"

namespace kiln {

constexpr std::array<DTypeInfo, kDTypeCount> kDTypes = {{
    {DType::kF64, "f64", NumberKind::kFloat, 64, std::numeric_limits<double>::max(), 11, 52, 1023,
     true},
    {DType::kF32, "f32", NumberKind::kFloat, 32, 3.4028234663852886e38, 8, 23, 127, true},
    {DType::kTF32, "tf32", NumberKind::kFloat, 32, 3.4011621342146535e38, 8, 10, 127, true, true},
    {DType::kF16, "f16", NumberKind::kFloat, 16, 65504.0, 5, 10, 15, true},
    {DType::kBF16, "bf16", NumberKind::kFloat, 16, 3.3895313892515355e38, 8, 7, 127, true},
    {DType::kE4M3, "f8_e4m3", NumberKind::kFloat, 8, 448.0, 4, 3, 7, false},
    {DType::kE5M2, "f8_e5m2", NumberKind::kFloat, 8, 57344.0, 5, 2, 15, true},
    {DType::kUE4M3, "f8_ue4m3", NumberKind::kFloat, 8, 448.0, 4, 3, 7, false},
    {DType::kUE8M0, "f8_ue8m0", NumberKind::kFloat, 8, 0x1p127, 8, 0, 127, false},
    {DType::kE2M3, "f6_e2m3", NumberKind::kFloat, 6, 7.5, 2, 3, 1, false},
    {DType::kE3M2, "f6_e3m2", NumberKind::kFloat, 6, 28.0, 3, 2, 3, false},
    {DType::kE2M1, "f4_e2m1", NumberKind::kFloat, 4, 6.0, 2, 1, 1, false},
    {DType::kS64, "s64", NumberKind::kSigned, 64, 9223372036854775807.0},
    {DType::kU64, "u64", NumberKind::kUnsigned, 64, 18446744073709551615.0},
    {DType::kS32, "s32", NumberKind::kSigned, 32, 2147483647.0},
    {DType::kU32, "u32", NumberKind::kUnsigned, 32, 4294967295.0},
    {DType::kS16, "s16", NumberKind::kSigned, 16, 32767.0},
    {DType::kU16, "u16", NumberKind::kUnsigned, 16, 65535.0},
    {DType::kS8, "s8", NumberKind::kSigned, 8, 127.0},
    {DType::kU8, "u8", NumberKind::kUnsigned, 8, 255.0},
    {DType::kS6, "s6", NumberKind::kSigned, 6, 31.0},
    {DType::kU6, "u6", NumberKind::kUnsigned, 6, 63.0},
    {DType::kS4, "s4", NumberKind::kSigned, 4, 7.0},
    {DType::kU4, "u4", NumberKind::kUnsigned, 4, 15.0},
    {DType::kS2, "s2", NumberKind::kSigned, 2, 1.0},
    {DType::kU2, "u2", NumberKind::kUnsigned, 2, 3.0},
    {DType::kU1, "u1", NumberKind::kUnsigned, 1, 1.0},
    {DType::kBin1, "bin1", NumberKind::kUnsigned, 1, 1.0},
    {DType::kBool, "bool", NumberKind::kBool, 8, 1.0},
}};

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

static_assert([] {
  for (std::size_t i = 0; i < std::size(kDTypes); ++i) {
    if (static_cast<std::size_t>(kDTypes[i].dtype) != i) return false;
  }
  return true;
}());  // a row is found by its type

// A power of two, exactly.
constexpr double two_to(int exponent) {
  double out = 1;
  for (; exponent < 0; ++exponent) out /= 2;
  for (; exponent > 0; --exponent) out *= 2;
  return out;
}

constexpr DTypePrecision precision_of(const DTypeInfo& row) {
  if (row.kind != NumberKind::kFloat) return {0, row.max, 1, 0};
  const int least = (row.mantissa_bits == 0 ? 0 : 1) - row.bias - row.mantissa_bits;
  return {two_to(-(row.mantissa_bits + 1)), two_to(row.mantissa_bits + 1), two_to(least),
          row.mantissa_bits == 0 ? 0 : two_to(1 - row.bias)};
}

}  // namespace

constexpr std::array<DTypePrecision, kDTypeCount> kPrecisions = [] {
  std::array<DTypePrecision, kDTypeCount> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = precision_of(kDTypes[i]);
  return out;
}();

namespace {

bool is_signed(const DTypeInfo& row) {
  return row.dtype != DType::kUE4M3 && row.dtype != DType::kUE8M0;
}

// A double's exponent, of what is no subnormal one.
int exponent_of(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

// The bits of a double's mantissa that a type has no room for.
int spare_bits(const DTypeInfo& row) { return 52 - row.mantissa_bits; }

// To the type's bits of mantissa; the exponent may be one more then.
double round_normal(const DTypeInfo& row, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t unit = std::uint64_t{1} << spare_bits(row);
  const std::uint64_t even = row.ties_away ? 1 : bits >> spare_bits(row) & 1;
  return std::bit_cast<double>((bits + unit / 2 - 1 + even) & ~(unit - 1));
}

// Rounds to `mantissa_bits` after the leading bit, flushing gradually below the least normal
// exponent. An infinity stays one where the type has it.
double round_small(const DTypeInfo& row, double value) {
  // Floats of less than a byte have no NaN; `cvt` makes the largest of it (PTX ISA, cvt).
  if (std::isnan(value)) return row.bits < 8 ? row.max : value;
  if (!is_signed(row) && std::signbit(value)) return 0.0;
  if (std::isinf(value)) return row.ieee ? value : std::copysign(row.max, value);
  double rounded = 0;
  if (exponent_of(value) >= 1 - row.bias) {
    rounded = round_normal(row, value);
  } else {
    const double scaled = value / smallest(row.dtype);
    rounded = (row.ties_away ? std::round(scaled) : std::nearbyint(scaled)) * smallest(row.dtype);
  }
  if (std::fabs(rounded) <= row.max) return rounded;
  return std::copysign(saturates(row.dtype) ? row.max : kInf, value);
}

// Exponent and mantissa of a value of the type, 0 or more and finite.
std::uint64_t encode_magnitude(const DTypeInfo& row, double value) {
  const int exponent = exponent_of(value);
  if (exponent < 1 - row.bias) return static_cast<std::uint64_t>(value / smallest(row.dtype));
  const std::uint64_t mantissa_ones = (std::uint64_t{1} << row.mantissa_bits) - 1;
  const std::uint64_t mantissa =
      std::bit_cast<std::uint64_t>(value) >> spare_bits(row) & mantissa_ones;
  return static_cast<std::uint64_t>(exponent + row.bias) << row.mantissa_bits | mantissa;
}

std::uint64_t encode_small(DType dtype, double value) {
  const DTypeInfo& row = info(dtype);
  const double rounded = round_small(row, value);
  const std::uint64_t sign = std::signbit(rounded) && is_signed(row) ? 1 : 0;
  const std::uint64_t mantissa_ones = (std::uint64_t{1} << row.mantissa_bits) - 1;
  const std::uint64_t top = ((std::uint64_t{1} << row.exponent_bits) - 1) << row.mantissa_bits;
  const std::uint64_t magnitude = std::isnan(rounded)   ? top | mantissa_ones
                                  : std::isinf(rounded) ? top
                                                        : encode_magnitude(row, std::fabs(rounded));
  const std::uint64_t bits = (sign << (row.exponent_bits + row.mantissa_bits)) | magnitude;
  // tf32 is stored as an f32 whose low 13 bits are zero.
  return dtype == DType::kTF32 ? bits << 13 : bits;
}

double decode_magnitude(const DTypeInfo& row, std::uint64_t exponent_field,
                        std::uint64_t mantissa) {
  if (exponent_field == 0) return static_cast<double>(mantissa) * smallest(row.dtype);
  const auto exponent =
      static_cast<std::uint64_t>(static_cast<int>(exponent_field) - row.bias + 1023);
  return std::bit_cast<double>(exponent << 52 | mantissa << spare_bits(row));
}

double decode_small(DType dtype, std::uint64_t bits) {
  const DTypeInfo& row = info(dtype);
  if (dtype == DType::kTF32) bits >>= 13;
  const std::uint64_t mantissa_ones = (std::uint64_t{1} << row.mantissa_bits) - 1;
  const std::uint64_t top = (std::uint64_t{1} << row.exponent_bits) - 1;
  const std::uint64_t mantissa = bits & mantissa_ones;
  const std::uint64_t exponent_field = (bits >> row.mantissa_bits) & top;
  const bool negative =
      is_signed(row) && ((bits >> (row.mantissa_bits + row.exponent_bits)) & 1) != 0;
  double magnitude = 0;
  if (row.ieee && exponent_field == top) {
    magnitude = mantissa == 0 ? kInf : std::numeric_limits<double>::quiet_NaN();
  } else if ((dtype == DType::kE4M3 || dtype == DType::kUE4M3) && exponent_field == top &&
             mantissa == mantissa_ones) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else {
    magnitude = decode_magnitude(row, exponent_field, mantissa);
  }
  return negative ? -magnitude : magnitude;
}

// A power of two from 2^-127 to 2^127: the nearest, halfway the one whose exponent's bits are even.
double round_ue8m0(double value) {
  constexpr double kLeast = 0x1p-127;
  constexpr double kLargest = 0x1p127;
  if (std::isnan(value)) return value;
  if (!(value > kLeast)) return kLeast;
  if (value >= kLargest) return kLargest;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 <= fraction < 1
  const bool even = (exponent - 1 + 127) % 2 == 0;       // of the power below
  const bool up = fraction > 0.75 || (fraction == 0.75 && !even);
  return std::ldexp(1.0, up ? exponent : exponent - 1);
}

double round_integer(const DTypeInfo& row, double value) {
  if (std::isnan(value)) return 0;
  const double low = row.kind == NumberKind::kSigned ? -std::exp2(row.bits - 1) : 0.0;
  return std::clamp(std::trunc(value), low, row.max);
}

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) {
  struct Alias {
    std::string_view name;
    DType dtype;
  };
  static constexpr Alias kAliases[] = {
      {"double", DType::kF64}, {"float", DType::kF32}, {"half", DType::kF16},
      {"bfp16", DType::kBF16}, {"f8", DType::kE4M3},   {"int", DType::kS32},
  };
  for (const DTypeInfo& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.dtype;
  }
  return std::nullopt;
}

double round_to_other(DType dtype, double value) {
  const DTypeInfo& row = info(dtype);
  switch (row.kind) {
    case NumberKind::kSigned:
    case NumberKind::kUnsigned: return round_integer(row, value);
    case NumberKind::kBool: return value != 0 ? 1.0 : 0.0;
    case NumberKind::kFloat: break;
  }
  if (dtype == DType::kUE8M0) return round_ue8m0(value);
  if (saturates(dtype) && std::isinf(value)) value = std::copysign(row.max, value);
  return round_small(row, value);
}

double cut_to_tf32(double value) {
  constexpr std::uint32_t kKept = ~((1U << 13) - 1);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>(bits & kKept));
}

std::uint64_t encode(DType dtype, double value) {
  const DTypeInfo& row = info(dtype);
  switch (row.kind) {
    case NumberKind::kBool: return value != 0 ? 1 : 0;
    case NumberKind::kUnsigned: {
      const double rounded = round_integer(row, value);
      return rounded >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(rounded);
    }
    case NumberKind::kSigned: {
      const double rounded = round_integer(row, value);
      const auto wide = rounded >= 0x1p63 ? INT64_MAX : static_cast<std::int64_t>(rounded);
      const std::uint64_t mask =
          row.bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << (8 * size_bytes(dtype))) - 1;
      return static_cast<std::uint64_t>(wide) & mask;
    }
    case NumberKind::kFloat: break;
  }
  if (dtype == DType::kF64) return std::bit_cast<std::uint64_t>(value);
  if (dtype == DType::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == DType::kUE8M0) {
    constexpr std::uint64_t kNan = 0xff;
    const double power = round_ue8m0(value);
    return std::isnan(power) ? kNan : static_cast<std::uint64_t>(std::ilogb(power) + 127);
  }
  return encode_small(dtype, value);
}

double decode(DType dtype, std::uint64_t bits) {
  const DTypeInfo& row = info(dtype);
  switch (row.kind) {
    case NumberKind::kBool: return (bits & 0xff) != 0 ? 1.0 : 0.0;
    case NumberKind::kUnsigned:
      return static_cast<double>(row.bits >= 64 ? bits
                                                : bits & ((std::uint64_t{1} << row.bits) - 1));
    case NumberKind::kSigned: {
      const int spare = 64 - row.bits;
      return static_cast<double>(static_cast<std::int64_t>(bits << spare) >> spare);
    }
    case NumberKind::kFloat: break;
  }
  if (dtype == DType::kF64) return std::bit_cast<double>(bits);
  if (dtype == DType::kF32) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  if (dtype == DType::kUE8M0) {
    return (bits & 0xff) == 0xff ? std::numeric_limits<double>::quiet_NaN()
                                 : std::exp2(static_cast<double>(bits & 0xff) - 127);
  }
  return decode_small(dtype, bits);
}

double load_element(DType dtype, const std::byte* data, std::size_t index) {
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  std::uint64_t bits = 0;
  std::memcpy(&bits, data + index * size, size);
  return decode(dtype, bits);
}

void store_element(DType dtype, std::byte* data, std::size_t index, double value) {
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  const std::uint64_t bits = encode(dtype, value);
  std::memcpy(data + index * size, &bits, size);
}

}  // namespace kiln
