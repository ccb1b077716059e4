// What the kernels of bench_kernels.cuh take: the same structs on the host and on the GPU.
#pragma once

namespace kiln::bench {

using Index = long long;
using Word = unsigned long long;
constexpr long long kInfinity = 0x7ff0000000000000LL;  // as the bits of a double

// How an element is stored: sign, exponent, mantissa. Its value is the f32 with the bits moved up
// to f32's mantissa, times `up`: that brings the smaller exponent range to f32's, subnormals
// included. Integers have `up` 0: two's complement, all of them finite.
struct Format {
  int bytes;
  int shift;            // 23 - bits of the mantissa
  float up;             // 2^(127 - bias)
  unsigned not_finite;  // magnitudes from here on are infinity or NaN
  unsigned ignored;     // low bits that do not count, though they are stored: 13 of tf32
};

// A matrix [outer, k] as a factor: element (i, j) at i * outer_step + j * k_step. `scales` (none:
// 0) has a factor for each block of scale_outer x scale_k elements; that of block (i, j) is at
// i * scale_outer_step + j * scale_k_step.
struct Factor {
  const void* data;
  Format format;
  Index outer_step;
  Index k_step;
  const float* scales;
  Index scale_outer;
  Index scale_k;
  Index scale_outer_step;
  Index scale_k_step;
};

// How far a sum may be from its value: relative * (sum of magnitudes) + floor, and then it is
// rounded to the type of C. No sum comes near the largest value of that type: inputs are standard
// normal, or small integers.
struct Bound {
  double relative;
  double floor;
  double roundoff;
  double smallest;  // half of the least positive value
};

// What was found; all of it is added to.
struct Report {
  Word elements;
  Word outside;
  Word first;       // the least index of an element outside: row * n + column of C
  Word worst_bits;  // the largest error over its bound, as the bits of a double
  double expected;  // these three when the kernel was asked for one element
  double bound;
  double actual;
};

// scale * sum over k of a * b, and how far off our machine may be.
struct Product {
  Factor a;
  Factor b;
  Index depth;
  double scale;
  Bound bound;
};

struct Output {
  const void* data;
  Format format;
};

// A part of C: rows rows[0 .. row_count), or from `row_begin` on when rows is 0, by the columns
// from column_begin on. Element (row, column) of C is at row * row_step + column * column_step: for
// chosen columns of all rows the factors change places.
struct Part {
  const Index* rows;
  Index row_begin;
  Index row_count;
  Index column_begin;
  Index column_count;
  Index row_step;
  Index column_step;
};

// Elements first .. first + count of C, which has rows of n.
struct Stretch {
  Index n;
  Index first;
  Index count;
};

// Another machine's C, or 0; the lengths of the factors' rows, and what their products are scaled
// by.
struct Other {
  const void* data;
  const double* a_norms;
  const double* b_norms;
  double scale;
  Bound ours;
  Bound theirs;
};

// The matrices of one operand, with gaps or without: element (row, column) of number i is at
// i * matrix_step + row * row_step + column.
struct Matrices {
  void* data;
  Format format;
  Index rows;
  Index columns;
  Index row_step;
  Index count;
  Index matrix_step;
};

// Memory with an operand's elements in it, the first of them `before` bytes in. All else holds this
// byte.
struct Surroundings {
  const unsigned char* memory;
  Index bytes;
  Index before;
  unsigned poison;
};

// What elements get: normal values (of integers, all of them); small integers, with
// integer_density; scale factors, from 1/2 to 2 or one of these; numbers of groups, from -1 to how
// many there are, of which the first and the last are no group's; numbers of rows, from none on up
// to so many tiles, of which the last one is more than half full.
enum class Filling { kNormal, kIntegers, kScales, kExactScales, kGroups, kGroupRows };

enum class Activation { kNone, kRelu, kGelu, kSilu };

// What happens to a sum: activation(alpha * sum + beta * before + bias) + residual. What there is
// not has no data. `roundoff` is that of the f32 arithmetic, 0 where every value is exact;
// `function_roundoff` that of activations other than relu and of what comes after them.
struct Epilogue {
  double alpha;
  double beta;
  Matrices before;  // C as it was
  Matrices bias;    // one row for all rows and matrices, or one for each group
  Matrices residual;
  Activation activation;
  double roundoff;
  double function_roundoff;
  double smallest;       // positive f32
  double root_half;      // the square root of 1/2, as the kernel has it
  double function_ulps;  // of exp and erf
};

// With groups: rows / tile_rows of `of_tile` is the number of a matrix B. Where it is none of 0 to
// count - 1, C is as `kept` still. `rows`, if not 0, are numbers of rows instead, of groups that
// begin with whole tiles, or `room` rows apart. Without groups both are 0.
struct Groups {
  const int* of_tile;
  Index tile_rows;
  Index count;
  Matrices kept;
  const int* rows;
  Index room;  // 0: they follow each other
};

// A whole problem: products of one shape, and what C should be.
struct Problem {
  Product product;  // of the first matrices
  Index a_step;     // elements from one product's A to the next one's
  Index b_step;     // and B, or from one group's B
  Index a_scale_step;
  Index b_scale_step;
  Matrices c;
  Epilogue epilogue;
  Groups groups;
};

}  // namespace kiln::bench
