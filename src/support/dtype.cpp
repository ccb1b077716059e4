#include "support/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/check.h"

namespace kiln {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr DTypeInfo kInfos[] = {
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
};
static_assert(std::size(kInfos) == kDTypeCount);
static_assert([] {
  for (std::size_t i = 0; i < std::size(kInfos); ++i) {
    if (static_cast<std::size_t>(kInfos[i].dtype) != i) return false;
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

// What follows from a row: asked for with every rounding, so worked out once.
struct Precision {
  double roundoff = 0;
  double integers_exact_up_to = 0;
  double smallest = 1;
  double smallest_normal = 0;
};
constexpr Precision precision_of(const DTypeInfo& row) {
  if (row.kind != NumberKind::kFloat) return {0, row.max, 1, 0};
  const int least = (row.mantissa_bits == 0 ? 0 : 1) - row.bias - row.mantissa_bits;
  return {two_to(-(row.mantissa_bits + 1)), two_to(row.mantissa_bits + 1), two_to(least),
          row.mantissa_bits == 0 ? 0 : two_to(1 - row.bias)};
}
constexpr auto kPrecisions = [] {
  std::array<Precision, kDTypeCount> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = precision_of(kInfos[i]);
  return out;
}();
const Precision& precision(DType dtype) { return kPrecisions[static_cast<std::size_t>(dtype)]; }

bool is_signed(const DTypeInfo& row) {
  return row.dtype != DType::kUE4M3 && row.dtype != DType::kUE8M0;
}

// Whether a number past the largest one becomes the largest: as `cvt` with `.satfinite` does, the
// only form that PTX has for floats of 8 bits and fewer (PTX ISA, cvt).
bool saturates(const DTypeInfo& row) { return !row.ieee || row.bits <= 8; }

// Rounds to `mantissa_bits` after the leading bit, flushing gradually below the least normal
// exponent. An infinity stays one where the type has it.
double round_small(const DTypeInfo& row, double value) {
  // Floats of less than a byte have no NaN; `cvt` makes the largest of it (PTX ISA, cvt).
  if (std::isnan(value)) return row.bits < 8 ? row.max : value;
  if (!is_signed(row) && std::signbit(value)) return 0.0;
  if (std::isinf(value)) return row.ieee ? value : std::copysign(row.max, value);
  if (value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m * 2^exponent, 0.5 <= |m| < 1
  const int least = 1 - row.bias;
  const int unit = std::max(exponent - 1, least) - row.mantissa_bits;
  const double scaled = std::ldexp(value, -unit);
  const double whole = row.ties_away ? std::round(scaled) : std::nearbyint(scaled);
  const double rounded = std::ldexp(whole, unit);
  if (std::fabs(rounded) <= row.max) return rounded;
  return std::copysign(saturates(row) ? row.max : kInf, value);
}

std::uint64_t encode_small(DType dtype, double value) {
  const DTypeInfo& row = info(dtype);
  const double rounded = round_small(row, value);
  const std::uint64_t sign = std::signbit(rounded) && is_signed(row) ? 1 : 0;
  const std::uint64_t top = (std::uint64_t{1} << row.exponent_bits) - 1;
  std::uint64_t exponent_field = 0;
  std::uint64_t mantissa = 0;
  const std::uint64_t mantissa_ones = (std::uint64_t{1} << row.mantissa_bits) - 1;
  if (std::isnan(rounded)) {
    exponent_field = top;
    mantissa = mantissa_ones;
  } else if (std::isinf(rounded)) {
    exponent_field = top;
  } else if (rounded != 0) {
    int exponent = 0;
    std::frexp(rounded, &exponent);
    const int least = 1 - row.bias;
    const int e = std::max(exponent - 1, least);
    auto scaled = static_cast<std::uint64_t>(std::ldexp(std::fabs(rounded), row.mantissa_bits - e));
    const bool normal = scaled > mantissa_ones;
    exponent_field = normal ? static_cast<std::uint64_t>(e + row.bias) : 0;
    mantissa = scaled & mantissa_ones;
  }
  const std::uint64_t magnitude = (exponent_field << row.mantissa_bits) | mantissa;
  const std::uint64_t bits = (sign << (row.exponent_bits + row.mantissa_bits)) | magnitude;
  // tf32 is stored as an f32 whose low 13 bits are zero.
  return dtype == DType::kTF32 ? bits << 13 : bits;
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
  } else if (exponent_field == 0) {
    magnitude = std::ldexp(static_cast<double>(mantissa), 1 - row.bias - row.mantissa_bits);
  } else {
    magnitude = std::ldexp(static_cast<double>(mantissa_ones + 1 + mantissa),
                           static_cast<int>(exponent_field) - row.bias - row.mantissa_bits);
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

const DTypeInfo& info(DType dtype) { return kInfos[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  struct Alias {
    std::string_view name;
    DType dtype;
  };
  static constexpr Alias kAliases[] = {
      {"double", DType::kF64}, {"float", DType::kF32}, {"half", DType::kF16},
      {"bfp16", DType::kBF16}, {"f8", DType::kE4M3},   {"int", DType::kS32},
  };
  for (const DTypeInfo& row : kInfos) {
    if (row.name == name) return row.dtype;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.dtype;
  }
  return std::nullopt;
}

double roundoff(DType dtype) { return precision(dtype).roundoff; }
double integers_exact_up_to(DType dtype) { return precision(dtype).integers_exact_up_to; }
double smallest(DType dtype) { return precision(dtype).smallest; }
double smallest_normal(DType dtype) { return precision(dtype).smallest_normal; }

double round_to(DType dtype, double value) {
  const DTypeInfo& row = info(dtype);
  switch (row.kind) {
    case NumberKind::kSigned:
    case NumberKind::kUnsigned: return round_integer(row, value);
    case NumberKind::kBool: return value != 0 ? 1.0 : 0.0;
    case NumberKind::kFloat: break;
  }
  if (dtype == DType::kF64) return value;
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  if (dtype == DType::kUE8M0) return round_ue8m0(value);
  if (saturates(row) && std::isinf(value)) value = std::copysign(row.max, value);
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
