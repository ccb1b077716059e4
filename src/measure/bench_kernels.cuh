// What `kiln bench SUITE` does on the GPU besides measuring: random inputs, and the check of the
// result in fp64. NVRTC compiles this file from memory (measure/bench_device.h).
//
// It is C++ as well: with KILN_BENCH_KERNEL and the built-in names defined by whoever includes it,
// a test runs the same code thread by thread on the CPU (bench_kernels_test.cpp). So no kernel here
// has shared memory or a barrier.
#pragma once

#include "measure/bench_values.cuh"

#ifdef __CUDACC__
#define KILN_BENCH_KERNEL extern "C" __global__ void
#define KILN_BENCH_CODE static __device__ __forceinline__

namespace kiln::bench {

KILN_BENCH_CODE float as_float(unsigned bits) { return __uint_as_float(bits); }
KILN_BENCH_CODE unsigned as_bits(float value) { return __float_as_uint(value); }
KILN_BENCH_CODE double as_double(long long bits) { return __longlong_as_double(bits); }
KILN_BENCH_CODE unsigned long long as_bits(double value) {
  return static_cast<unsigned long long>(__double_as_longlong(value));
}

}  // namespace kiln::bench
#endif

namespace kiln::bench {

KILN_BENCH_CODE Index thread_index() {
  return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
}
KILN_BENCH_CODE Index thread_count() { return static_cast<Index>(gridDim.x) * blockDim.x; }

KILN_BENCH_CODE unsigned load_bits(const void* data, Index at, int bytes) {
  if (bytes == 1) return static_cast<const unsigned char*>(data)[at];
  if (bytes == 2) return static_cast<const unsigned short*>(data)[at];
  return static_cast<const unsigned*>(data)[at];
}

KILN_BENCH_CODE void store_bits(void* data, Index at, int bytes, unsigned bits) {
  if (bytes == 1) {
    static_cast<unsigned char*>(data)[at] = static_cast<unsigned char>(bits);
  } else if (bytes == 2) {
    static_cast<unsigned short*>(data)[at] = static_cast<unsigned short>(bits);
  } else {
    static_cast<unsigned*>(data)[at] = bits;
  }
}

KILN_BENCH_CODE unsigned magnitude_bits(unsigned bits, int bytes) {
  return bits & ((1U << (8 * bytes - 1)) - 1);
}

// The value of a finite element of a floating type.
KILN_BENCH_CODE float decoded(unsigned bits, const Format& format) {
  const unsigned magnitude = magnitude_bits(bits, format.bytes);
  const float value = as_float(magnitude << format.shift) * format.up;
  return magnitude == bits ? value : -value;
}

// The value of an element: of an integer, or of a float of whose bits some do not count.
KILN_BENCH_CODE double value_of(unsigned bits, const Format& format) {
  if (format.up != 0) return decoded(bits & ~format.ignored, format);
  const int unused = 32 - 8 * format.bytes;
  return static_cast<int>(bits << unused) >> unused;
}

// The bits of a value, rounded to the nearest; ties away from 0. Values below the type's normal
// range may be rounded twice, which is good enough for made up data.
KILN_BENCH_CODE unsigned encoded(float value, const Format& format) {
  const unsigned sign = as_bits(value) >> 31 << (8 * format.bytes - 1);
  const unsigned magnitude = as_bits((value < 0 ? -value : value) / format.up);
  const unsigned half = format.shift == 0 ? 0 : 1U << (format.shift - 1);
  const unsigned rounded = (magnitude + half) >> format.shift;
  return sign | (rounded < format.not_finite ? rounded : format.not_finite - 1);
}

// The `at`-th of a seed's random words: SplitMix64's mixing of a counter.
KILN_BENCH_CODE Word random_bits(Word seed, Index at) {
  Word z = seed + (static_cast<Word>(at) + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

KILN_BENCH_CODE float uniform(unsigned bits) {  // (0, 1)
  return (static_cast<float>(bits >> 9) + 0.5F) * (1.0F / 8388608.0F);
}

// A standard normal value, by Box and Muller.
KILN_BENCH_CODE float normal_value(Word bits) {
  const float radius = sqrtf(-2.0F * logf(uniform(static_cast<unsigned>(bits >> 32))));
  return radius * cosf(6.28318530718F * uniform(static_cast<unsigned>(bits)));
}

// -2 to 2 when `density` is 0, else mostly 0, and 1 or -1 with that probability.
KILN_BENCH_CODE float integer_value(Word bits, float density) {
  const unsigned low = static_cast<unsigned>(bits) & 0xffffU;
  if (density == 0) return static_cast<float>(low % 5) - 2.0F;
  const bool kept = uniform(static_cast<unsigned>(bits >> 32)) < density;
  return !kept ? 0.0F : low % 2 == 0 ? 1.0F : -1.0F;
}

inline constexpr Word kGroupTile = 128;

// The bits of a made up element. `extent` is the density of integers, how many groups there are, or
// how many tiles of rows one may have.
KILN_BENCH_CODE unsigned made_up_bits(Word bits, Filling filling, float extent,
                                      const Format& format) {
  const bool integer = format.up == 0;
  if (integer && filling == Filling::kNormal) return static_cast<unsigned>(bits);
  const float random = uniform(static_cast<unsigned>(bits >> 32));
  float value = 0;
  switch (filling) {
    case Filling::kNormal: value = normal_value(bits); break;
    case Filling::kIntegers: value = integer_value(bits, extent); break;
    case Filling::kScales: value = 0.5F + 1.5F * random; break;
    case Filling::kExactScales: value = random < 0.5F ? 1.0F : 2.0F; break;
    case Filling::kGroups:
      value = static_cast<float>(bits % (static_cast<Word>(extent) + 2)) - 1.0F;
      break;
    case Filling::kGroupRows:
      value = static_cast<float>(bits % (static_cast<Word>(extent) + 1) * kGroupTile);
      if (value > 0) value -= static_cast<float>(bits / 1024 % (kGroupTile / 2));
      break;
  }
  return integer ? static_cast<unsigned>(static_cast<int>(value)) : encoded(value, format);
}

// Independent normal values; of an integer type all of its values, equally often.
KILN_BENCH_KERNEL kiln_fill_normal(void* data, Index count, Format format, Word seed) {
  for (Index i = thread_index(); i < count; i += thread_count()) {
    const unsigned bits = made_up_bits(random_bits(seed, i), Filling::kNormal, 0, format);
    store_bits(data, i, format.bytes, bits);
  }
}

// Small integers, as integer_value has them.
KILN_BENCH_KERNEL kiln_fill_integers(void* data, Index count, Format format, Word seed,
                                     float density) {
  for (Index i = thread_index(); i < count; i += thread_count()) {
    const unsigned bits = made_up_bits(random_bits(seed, i), Filling::kIntegers, density, format);
    store_bits(data, i, format.bytes, bits);
  }
}

// Scale factors: f32 from 1/2 to 2, or 1 and 2 when they are to be exact.
KILN_BENCH_KERNEL kiln_fill_scales(float* data, Index count, int exact, Word seed) {
  for (Index i = thread_index(); i < count; i += thread_count()) {
    const float random = uniform(static_cast<unsigned>(random_bits(seed, i) >> 32));
    data[i] = exact == 0 ? 0.5F + 1.5F * random : random < 0.5F ? 1.0F : 2.0F;
  }
}

// 2:4 metadata: in each nibble one of the six legal pairs of places.
KILN_BENCH_KERNEL kiln_fill_metadata(unsigned char* data, Index count, Word seed) {
  const unsigned legal = 0xed9c84U;  // 0x4, 0x8, 0xc, 0x9, 0xd, 0xe from the lowest on
  for (Index i = thread_index(); i < count; i += thread_count()) {
    const Word bits = random_bits(seed, i);
    const unsigned low = legal >> 4 * (static_cast<unsigned>(bits >> 8) % 6) & 15U;
    const unsigned high = legal >> 4 * (static_cast<unsigned>(bits >> 40) % 6) & 15U;
    data[i] = static_cast<unsigned char>(low | high << 4);
  }
}

// The dense matrix of 2:4 sparse elements: each nibble says where its two stand among four.
KILN_BENCH_KERNEL kiln_expand(const void* packed, const unsigned char* metadata, void* dense,
                              Index groups, int bytes) {
  for (Index i = thread_index(); i < groups; i += thread_count()) {
    const unsigned nibble = metadata[i / 2] >> 4 * (i % 2) & 15U;
    for (int place = 0; place < 4; ++place) store_bits(dense, 4 * i + place, bytes, 0);
    store_bits(dense, 4 * i + (nibble & 3U), bytes, load_bits(packed, 2 * i, bytes));
    store_bits(dense, 4 * i + (nibble >> 2), bytes, load_bits(packed, 2 * i + 1, bytes));
  }
}

// Packs bytes of 2:4 metadata into the words that kernels read, `words` a row (kiln/sparse.h:
// kRowPairs where `pairs`, else kRows).
KILN_BENCH_KERNEL kiln_pack_words(const unsigned char* metadata, unsigned* packed, Index count,
                                  Index words, int pairs) {
  for (Index i = thread_index(); i < count; i += thread_count()) {
    const Index row = i / words;
    packed[i] = 0;
    for (int half = 0; half < 2; ++half) {
      const Index in_block = row % 16;
      const Index from = pairs == 0 ? row : row - in_block + in_block / 2 + 8 * half;
      const Index byte = pairs == 0 ? 2 * half : in_block % 2 * 2;
      const unsigned char* two = metadata + (from * words + i % words) * 4 + byte;
      packed[i] |= (two[0] | static_cast<unsigned>(two[1]) << 8) << 16 * half;
    }
  }
}

KILN_BENCH_CODE double element(const Factor& factor, Index outer, Index k) {
  const Index at = outer * factor.outer_step + k * factor.k_step;
  const double value = value_of(load_bits(factor.data, at, factor.format.bytes), factor.format);
  if (factor.scales == nullptr) return value;
  const Index block = outer / factor.scale_outer * factor.scale_outer_step +
                      k / factor.scale_k * factor.scale_k_step;
  return value * factor.scales[block];
}

// norms[i] is the length of row i.
KILN_BENCH_KERNEL kiln_norms(Factor factor, Index outer, Index depth, double* norms) {
  for (Index i = thread_index(); i < outer; i += thread_count()) {
    double square = 0;
    for (Index k = 0; k < depth; ++k) {
      const double value = element(factor, i, k);
      square += value * value;
    }
    norms[i] = sqrt(square);
  }
}

// What one thread of a check found; it adds that to the report once.
struct Found {
  Word elements = 0;
  Word outside = 0;
  Word first = ~0ULL;
  double worst = 0;
};

KILN_BENCH_CODE void add(const Found& found, Report* report) {
  if (found.elements == 0) return;
  atomicAdd(&report->elements, found.elements);
  if (found.outside != 0) atomicAdd(&report->outside, found.outside);
  if (found.outside != 0) atomicMin(&report->first, found.first);
  // Doubles that are not negative are ordered as their bits are.
  if (found.worst > 0) atomicMax(&report->worst_bits, as_bits(found.worst));
}

KILN_BENCH_CODE double room_of(const Bound& bound, double value, double magnitude) {
  const double error = bound.relative * magnitude + bound.floor;
  return error + bound.roundoff * (fabs(value) + error) + bound.smallest;
}

// What an element should be, and how far from it it may be.
struct Expected {
  double value;
  double room;
};

// Counts element `at` of C, which has these bits, and whether it is as expected.
KILN_BENCH_CODE void judge(Found& found, Index at, unsigned bits, const Format& format,
                           const Expected& expected) {
  ++found.elements;
  const bool finite = magnitude_bits(bits, format.bytes) < format.not_finite;
  const double error = finite ? fabs(value_of(bits, format) - expected.value) : 0;
  if (finite && error <= expected.room) {
    if (error > found.worst * expected.room) found.worst = error / expected.room;
    return;
  }
  ++found.outside;
  found.worst = as_double(kInfinity);
  if (static_cast<Word>(at) < found.first) found.first = static_cast<Word>(at);
}

// Writes the values of an element into the report, when one element was asked for.
KILN_BENCH_CODE void describe(Report* report, const Expected& expected, double actual) {
  report->expected = expected.value;
  report->bound = expected.room;
  report->actual = actual;
}

KILN_BENCH_CODE Index row_at(const Part& part, Index place) {
  return part.rows == nullptr ? part.row_begin + place : part.rows[place];
}

// A thread has one column and up to this many rows: the column's elements are loaded once for all.
constexpr int kRows = 8;

struct Sums {
  Index rows[kRows];
  double values[kRows];
  double magnitudes[kRows];
};

KILN_BENCH_CODE void sum_up(Sums& sums, const Product& product, Index column) {
  for (Index k = 0; k < product.depth; ++k) {
    const double right = element(product.b, column, k) * product.scale;
    for (int r = 0; r < kRows; ++r) {
      const double term = element(product.a, sums.rows[r], k) * right;
      sums.values[r] += term;
      sums.magnitudes[r] += fabs(term);
    }
  }
}

// Checks the part's elements against sums in fp64.
KILN_BENCH_KERNEL kiln_check(Product product, Output c, Part part, Report* report) {
  const Index tall = (part.row_count + kRows - 1) / kRows;
  Found found;
  for (Index i = thread_index(); i < tall * part.column_count; i += thread_count()) {
    const Index column = part.column_begin + i % part.column_count;
    const Index begin = i / part.column_count * kRows;
    Sums sums = {};
    for (int r = 0; r < kRows; ++r) {
      // Past the end the last row is summed again and not judged.
      const Index place = begin + r < part.row_count ? begin + r : part.row_count - 1;
      sums.rows[r] = row_at(part, place);
    }
    sum_up(sums, product, column);
    // A fixed number of turns, so that the sums stay in registers.
    for (int r = 0; r < kRows; ++r) {
      if (begin + r >= part.row_count) continue;
      const Index at = sums.rows[r] * part.row_step + column * part.column_step;
      const unsigned bits = load_bits(c.data, at, c.format.bytes);
      const double room = room_of(product.bound, sums.values[r], sums.magnitudes[r]);
      const Expected expected = {sums.values[r], room};
      const bool alone = part.row_count * part.column_count == 1;
      if (alone) describe(report, expected, value_of(bits, c.format));
      judge(found, at, bits, c.format, expected);
    }
  }
  add(found, report);
}

// The stretch against another machine's: no further apart than both machines' bounds, with
// |row of A| * |row of B| for the sum of magnitudes. Without the other, elements need only be
// finite: memory that nobody wrote holds NaNs.
KILN_BENCH_KERNEL kiln_compare(Output c, Stretch stretch, Other other, Report* report) {
  Found found;
  for (Index j = thread_index(); j < stretch.count; j += thread_count()) {
    const Index i = stretch.first + j;
    const unsigned bits = load_bits(c.data, i, c.format.bytes);
    const double actual = value_of(bits, c.format);
    Expected expected = {0, as_double(kInfinity)};
    if (other.data != nullptr) {
      const unsigned others = load_bits(other.data, i, c.format.bytes);
      expected.value = value_of(others, c.format);
      const double lengths = other.a_norms[i / stretch.n] * other.b_norms[i % stretch.n];
      const double magnitude = lengths * fabs(other.scale);
      const double ours = room_of(other.ours, actual, magnitude);
      const double theirs = room_of(other.theirs, expected.value, magnitude);
      const bool finite = magnitude_bits(others, c.format.bytes) < c.format.not_finite;
      expected.room = finite ? ours + theirs : -1;
    }
    if (stretch.count == 1) describe(report, expected, actual);
    judge(found, i, bits, c.format, expected);
  }
  add(found, report);
}

}  // namespace kiln::bench
