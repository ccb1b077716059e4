#include "target/tile_math.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "target/execute.h"

// What one function is compiled for, beside what everything else is.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KILN_HAS_X86_VECTORS 1
#define KILN_AVX2 [[gnu::target("avx2,fma")]]
#define KILN_AVX512 [[gnu::target("avx512f,avx512dq,avx2,fma")]]
#else
#define KILN_HAS_X86_VECTORS 0
#endif

namespace kiln::target {

namespace {

// `kBytes` bytes of doubles, or of their bits. The compiler makes several machine vectors of one
// that is too wide.
template <int kBytes>
struct Vectors {
  using Doubles [[gnu::vector_size(kBytes), gnu::aligned(alignof(double)), gnu::may_alias]] =
      double;
  using Bits [[gnu::vector_size(kBytes), gnu::aligned(alignof(double)), gnu::may_alias]] =
      std::int64_t;
  static constexpr int kCount = kBytes / static_cast<int>(sizeof(double));
};

// kRows rows by kTileStep columns of c stay in registers while k goes on.
template <int kRows, int kBytes>
[[gnu::always_inline]] inline void multiply_exact(const MmaShape& shape, const double* a,
                                                  const double* b, double* c) {
  using Doubles = typename Vectors<kBytes>::Doubles;
  constexpr int kWidth = Vectors<kBytes>::kCount;
  constexpr int kEach = kTileStep / kWidth;
  for (int m = 0; m < shape.m; m += kRows) {
    for (int n = 0; n < shape.n; n += kTileStep) {
      Doubles sum[kRows][kEach];
      for (int r = 0; r < kRows; ++r) {
        for (int e = 0; e < kEach; ++e) {
          std::memcpy(&sum[r][e], c + (m + r) * shape.n + n + e * kWidth, sizeof(Doubles));
        }
      }
      for (int k = 0; k < shape.k; ++k) {
        Doubles row[kEach];
        for (int e = 0; e < kEach; ++e) {
          std::memcpy(&row[e], b + k * shape.n + n + e * kWidth, sizeof(Doubles));
        }
        for (int r = 0; r < kRows; ++r) {
          const double factor = a[(m + r) * shape.k + k];
          for (int e = 0; e < kEach; ++e) sum[r][e] += factor * row[e];
        }
      }
      for (int r = 0; r < kRows; ++r) {
        for (int e = 0; e < kEach; ++e) {
          std::memcpy(c + (m + r) * shape.n + n + e * kWidth, &sum[r][e], sizeof(Doubles));
        }
      }
    }
  }
}

void multiply_fused(const MmaShape& shape, const double* a, const double* b, double* c) {
  for (int m = 0; m < shape.m; ++m) {
    for (int n = 0; n < shape.n; ++n) {
      double sum = c[m * shape.n + n];
      for (int k = 0; k < shape.k; ++k) {
        sum = std::fma(a[m * shape.k + k], b[k * shape.n + n], sum);
      }
      c[m * shape.n + n] = sum;
    }
  }
}

// Zeros and normal numbers of f32 drop bits; whatever else is among a step's goes one by one.
template <int kBytes>
[[gnu::always_inline]] inline void round_towards_zero(double* values, std::size_t count) {
  using Doubles = typename Vectors<kBytes>::Doubles;
  using Bits = typename Vectors<kBytes>::Bits;
  constexpr int kWidth = Vectors<kBytes>::kCount;
  constexpr std::int64_t kDropped = (std::int64_t{1} << 29) - 1;  // 52 - 23 bits
  constexpr std::int64_t kMagnitude = INT64_MAX;
  for (std::size_t i = 0; i < count; i += kTileStep) {
    Bits plain = {};
    plain = ~plain;
    for (int e = 0; e < kTileStep; e += kWidth) {
      Bits bits;
      std::memcpy(&bits, values + i + e, sizeof(bits));
      const Bits bare = bits & kMagnitude;
      Doubles magnitude;
      std::memcpy(&magnitude, &bare, sizeof(bare));
      plain &= ((magnitude >= 0x1p-126) & (magnitude < 0x1p128)) | (magnitude == 0.0);
    }
    bool all_plain = true;
    for (int e = 0; e < kWidth; ++e) all_plain = all_plain && plain[e] != 0;
    if (!all_plain) {
      for (std::size_t e = i; e < i + kTileStep; ++e) values[e] = round_towards_zero_f32(values[e]);
      continue;
    }
    for (int e = 0; e < kTileStep; e += kWidth) {
      Bits bits;
      std::memcpy(&bits, values + i + e, sizeof(bits));
      bits &= ~kDropped;
      std::memcpy(values + i + e, &bits, sizeof(bits));
    }
  }
}

// Any machine has vectors of two doubles, or does well with pairs.
void multiply_16(const MmaShape& shape, const double* a, const double* b, double* c) {
  multiply_exact<2, 16>(shape, a, b, c);
}
void round_16(double* values, std::size_t count) { round_towards_zero<16>(values, count); }

#if KILN_HAS_X86_VECTORS
KILN_AVX2 void multiply_32(const MmaShape& shape, const double* a, const double* b, double* c) {
  multiply_exact<4, 32>(shape, a, b, c);
}
KILN_AVX2 void round_32(double* values, std::size_t count) {
  round_towards_zero<32>(values, count);
}
KILN_AVX512 void multiply_64(const MmaShape& shape, const double* a, const double* b, double* c) {
  multiply_exact<8, 64>(shape, a, b, c);
}
#endif

std::vector<TileLoops> find_loops() {
  std::vector<TileLoops> out;
#if KILN_HAS_X86_VECTORS
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    out.push_back({"avx512", multiply_64, round_32});
  }
  if (avx2) out.push_back({"avx2", multiply_32, round_32});
#endif
  out.push_back({"pairs", multiply_16, round_16});
  return out;
}

}  // namespace

const std::vector<TileLoops>& tile_loops() {
  static const std::vector<TileLoops> kLoops = find_loops();
  return kLoops;
}

void multiply_tile(const MmaShape& shape, bool fused, const double* a, const double* b, double* c) {
  if (fused) return multiply_fused(shape, a, b, c);
  tile_loops().front().multiply(shape, a, b, c);
}

void round_tile_towards_zero_f32(double* values, std::size_t count) {
  tile_loops().front().round_towards_zero(values, count);
}

}  // namespace kiln::target
