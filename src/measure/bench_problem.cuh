// Whole problems of the library on the GPU, for `kiln bench random`: fills that leave the gaps, and
// checks of results with epilogues, gaps and batches. After bench_kernels.cuh, and like it C++ as
// well.
#pragma once

#include "measure/bench_kernels.cuh"

namespace kiln::bench {

// Where an element lies, from its number among all elements (gaps have none).
struct Coordinates {
  Index matrix;
  Index row;
  Index column;
};

KILN_BENCH_CODE Index element_count(const Matrices& all) {
  return all.count * all.rows * all.columns;
}

KILN_BENCH_CODE Coordinates coordinates_of(const Matrices& all, Index number) {
  const Index row = number / all.columns;
  return {row / all.rows, row % all.rows, number % all.columns};
}

KILN_BENCH_CODE Index place_of(const Matrices& all, const Coordinates& at) {
  return at.matrix * all.matrix_step + at.row * all.row_step + at.column;
}

KILN_BENCH_CODE unsigned bits_at(const Matrices& all, const Coordinates& at) {
  return load_bits(all.data, place_of(all, at), all.format.bytes);
}

// Fills every element of an operand, and nothing of the gaps between them.
KILN_BENCH_KERNEL kiln_fill_matrices(Matrices to, Filling filling, float extent, Word seed) {
  for (Index i = thread_index(); i < element_count(to); i += thread_count()) {
    const unsigned bits = made_up_bits(random_bits(seed, i), filling, extent, to.format);
    store_bits(to.data, place_of(to, coordinates_of(to, i)), to.format.bytes, bits);
  }
}

// Copies those elements of `from` that `to` has too.
KILN_BENCH_KERNEL kiln_copy_matrices(Matrices from, Matrices to) {
  for (Index i = thread_index(); i < element_count(to); i += thread_count()) {
    const Coordinates at = coordinates_of(to, i);
    store_bits(to.data, place_of(to, at), to.format.bytes, bits_at(from, at));
  }
}

KILN_BENCH_KERNEL kiln_clear_reports(Report* reports, Index count) {
  for (Index i = thread_index(); i < count; i += thread_count()) {
    reports[i] = Report{};
    reports[i].first = ~0ULL;
  }
}

KILN_BENCH_CODE bool is_element(const Matrices& all, Index place) {
  if (place < 0 || all.count == 0) return false;
  const Index matrix = place / all.matrix_step;
  const Index inside = place % all.matrix_step;
  return matrix < all.count && inside / all.row_step < all.rows &&
         inside % all.row_step < all.columns;
}

// Checks the bytes around and between the elements: each must hold the poison still.
KILN_BENCH_KERNEL kiln_untouched(Surroundings all, Matrices elements, Report* report) {
  Found found;
  for (Index i = thread_index(); i < all.bytes; i += thread_count()) {
    const Index at = i - all.before;
    if (at >= 0 && is_element(elements, at / elements.format.bytes)) continue;
    ++found.elements;
    if (all.memory[i] == all.poison) continue;
    ++found.outside;
    if (static_cast<Word>(i) < found.first) found.first = static_cast<Word>(i);
  }
  add(found, report);
}

// Checks that the elements of `one` have the bits of those in the same places of `other`.
KILN_BENCH_KERNEL kiln_same(Matrices one, Matrices other, Report* report) {
  Found found;
  for (Index i = thread_index(); i < element_count(one); i += thread_count()) {
    const Coordinates at = coordinates_of(one, i);
    ++found.elements;
    if (bits_at(one, at) == bits_at(other, at)) continue;
    ++found.outside;
    if (static_cast<Word>(i) < found.first) found.first = static_cast<Word>(i);
  }
  add(found, report);
}

// A value, and how far the program's may be from it.
struct Approximate {
  double value;
  double error;
};

// A value after one rounding, to f32 or to whatever type has this roundoff.
KILN_BENCH_CODE Approximate rounded(Approximate x, double roundoff, double smallest) {
  x.error += roundoff * (fabs(x.value) + x.error) + (roundoff > 0 ? smallest / 2 : 0);
  return x;
}

KILN_BENCH_CODE Approximate plus(Approximate x, Approximate y, const Epilogue& how,
                                 double roundoff) {
  return rounded({x.value + y.value, x.error + y.error}, roundoff, how.smallest);
}

KILN_BENCH_CODE Approximate times(Approximate x, Approximate y, const Epilogue& how,
                                  double roundoff) {
  const double error = fabs(x.value) * y.error + fabs(y.value) * x.error + x.error * y.error;
  return rounded({x.value * y.value, error}, roundoff, how.smallest);
}

// The result of a function that lies between its values at both ends of the argument's interval,
// and then the function's own error. Each unit in the last place is two roundings.
KILN_BENCH_CODE Approximate between(double value, double low, double high, const Epilogue& how) {
  const double below = fabs(value - low);
  const double above = fabs(high - value);
  const Approximate out = {value, below > above ? below : above};
  return {value, out.error + 2 * how.function_ulps *
                                 (how.function_roundoff * fabs(value) + how.smallest / 2)};
}

// x / 2 * (erf(x * root_half) + 1), as the language has it.
KILN_BENCH_CODE Approximate gelu(Approximate x, const Epilogue& how) {
  const double u = how.function_roundoff;
  const double exact_root = 0.70710678118654752440;
  const Approximate root = {exact_root, fabs(how.root_half - exact_root)};
  const Approximate scaled = times(x, root, how, u);
  const Approximate share = between(erf(scaled.value), erf(scaled.value - scaled.error),
                                    erf(scaled.value + scaled.error), how);
  const Approximate half = rounded({x.value / 2, x.error / 2}, 0, 0);
  return times(half, plus(share, {1, 0}, how, u), how, u);
}

// The logistic function of x, given exp(-x).
KILN_BENCH_CODE double logistic(double power) { return 1 / (1 + power); }

// x * (1 / (1 + exp(-x))), as the language has it. An exp beyond f32's largest value makes the
// quotient 0, which is as far from it as the smallest normal number at most.
KILN_BENCH_CODE Approximate silu(Approximate x, const Epilogue& how) {
  const double u = how.function_roundoff;
  const double off = 2 * how.function_ulps * u;
  const double value = logistic(exp(-x.value));
  // Of the power: the argument's interval and the function; of the sum and the quotient: a rounding
  // each.
  const double low = logistic(exp(-(x.value - x.error)) * (1 + off)) * (1 - u) / (1 + u);
  const double high = logistic(exp(-(x.value + x.error)) * (1 - off)) * (1 + u) / (1 - u);
  const double below = value - low;
  const double above = high - value;
  const double smallest_normal = 0x1p-126;
  return times(x, {value, (below > above ? below : above) + smallest_normal}, how, u);
}

KILN_BENCH_CODE Approximate activated(Approximate x, const Epilogue& how) {
  switch (how.activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return {x.value > 0 ? x.value : 0, x.error};
    case Activation::kGelu: return gelu(x, how);
    case Activation::kSilu: return silu(x, how);
  }
  return x;
}

// An element of an operand, which is exact: it is read as it is stored.
KILN_BENCH_CODE Approximate read(const Matrices& all, const Coordinates& at) {
  return {value_of(bits_at(all, at), all.format), 0};
}

// From the sum to what is rounded to C's type, as the kernels do it: each step rounds to f32.
KILN_BENCH_CODE Approximate finished(Approximate x, const Epilogue& how, const Coordinates& at,
                                     Index group) {
  if (how.alpha != 1) x = times(x, {how.alpha, 0}, how, how.roundoff);
  if (how.before.data != nullptr) {
    const Approximate kept = times(read(how.before, at), {how.beta, 0}, how, how.roundoff);
    x = plus(x, kept, how, how.roundoff);
  }
  if (how.bias.data != nullptr) {
    x = plus(x, read(how.bias, {0, group, at.column}), how, how.roundoff);
  }
  x = activated(x, how);
  if (how.residual.data == nullptr) return x;
  const bool exact = how.activation == Activation::kNone || how.activation == Activation::kRelu;
  return plus(x, read(how.residual, at), how, exact ? how.roundoff : how.function_roundoff);
}

// The group with the row among its own, filled up to whole tiles; -1 where there is none.
KILN_BENCH_CODE Index group_by_rows(const Groups& groups, Index row) {
  Index begin = 0;
  for (Index group = 0; group < groups.count; ++group) {
    Index rows = groups.rows[group];
    if (rows < 0) rows = 0;
    if (groups.room > 0 && rows > groups.room) rows = groups.room;
    const Index whole = (rows + groups.tile_rows - 1) / groups.tile_rows * groups.tile_rows;
    if (begin <= row && row < begin + whole) return group;
    begin += groups.room > 0 ? groups.room : whole;
  }
  return -1;
}

// The row's group, -1 where there is none; without groups 0.
KILN_BENCH_CODE Index group_or_none(const Groups& groups, Index row) {
  if (groups.rows != nullptr) return group_by_rows(groups, row);
  if (groups.of_tile == nullptr) return 0;
  const int group = groups.of_tile[row / groups.tile_rows];
  return 0 <= group && group < groups.count ? group : -1;
}

KILN_BENCH_CODE bool has_group(const Groups& groups, Index row) {
  return group_or_none(groups, row) >= 0;
}

// The row's group, 0 where there is none.
KILN_BENCH_CODE Index group_of(const Groups& groups, Index row) {
  const Index group = group_or_none(groups, row);
  return group < 0 ? 0 : group;
}

// The product of one matrix of a batch, or of the group that a row has.
KILN_BENCH_CODE Product product_of(const Problem& problem, Index matrix, Index row) {
  Product out = problem.product;
  const Index b = matrix + group_of(problem.groups, row);
  out.a.data = static_cast<const char*>(out.a.data) + matrix * problem.a_step * out.a.format.bytes;
  out.b.data = static_cast<const char*>(out.b.data) + b * problem.b_step * out.b.format.bytes;
  if (out.a.scales != nullptr) out.a.scales += matrix * problem.a_scale_step;
  if (out.b.scales != nullptr) out.b.scales += b * problem.b_scale_step;
  return out;
}

// What an element should be, given the sum of its products; of a row without a group, what it was.
KILN_BENCH_CODE Expected expected_of(const Problem& problem, const Coordinates& at, double sum,
                                     double magnitude) {
  if (!has_group(problem.groups, at.row)) return {read(problem.groups.kept, at).value, 0};
  const Bound& bound = problem.product.bound;
  const Approximate made = {sum, bound.relative * magnitude + bound.floor};
  const Approximate out = finished(made, problem.epilogue, at, group_of(problem.groups, at.row));
  return {out.value, out.error + bound.roundoff * (fabs(out.value) + out.error) + bound.smallest};
}

// Checks all elements of C against fp64. A thread's rows have one group.
KILN_BENCH_KERNEL kiln_check_problem(Problem problem, Report* report) {
  const Matrices& c = problem.c;
  const Index tall = (c.rows + kRows - 1) / kRows;
  Found found;
  for (Index i = thread_index(); i < c.count * tall * c.columns; i += thread_count()) {
    Coordinates at = {i / c.columns / tall, 0, i % c.columns};
    const Index begin = i / c.columns % tall * kRows;
    Sums sums = {};
    for (int r = 0; r < kRows; ++r) {
      sums.rows[r] = begin + r < c.rows ? begin + r : c.rows - 1;
    }
    sum_up(sums, product_of(problem, at.matrix, begin), at.column);
    for (int r = 0; r < kRows; ++r) {
      at.row = begin + r;
      if (at.row >= c.rows) continue;
      const Index number = (at.matrix * c.rows + at.row) * c.columns + at.column;
      judge(found, number, bits_at(c, at), c.format,
            expected_of(problem, at, sums.values[r], sums.magnitudes[r]));
    }
  }
  add(found, report);
}

// Reports the values of the first element that kiln_check_problem found to be outside. One thread.
KILN_BENCH_KERNEL kiln_describe_problem(Problem problem, Report* report) {
  if (thread_index() != 0 || report->outside == 0) return;
  const Coordinates at = coordinates_of(problem.c, static_cast<Index>(report->first));
  const Product product = product_of(problem, at.matrix, at.row);
  double sum = 0;
  double magnitude = 0;
  for (Index k = 0; k < product.depth; ++k) {
    const double term =
        element(product.a, at.row, k) * (element(product.b, at.column, k) * product.scale);
    sum += term;
    magnitude += fabs(term);
  }
  describe(report, expected_of(problem, at, sum, magnitude),
           value_of(bits_at(problem.c, at), problem.c.format));
}

// Reports the values of the first element that kiln_same found to differ. One thread.
KILN_BENCH_KERNEL kiln_describe_same(Matrices one, Matrices other, Report* report) {
  if (thread_index() != 0 || report->outside == 0) return;
  const Coordinates at = coordinates_of(one, static_cast<Index>(report->first));
  describe(report, {value_of(bits_at(other, at), other.format), 0},
           value_of(bits_at(one, at), one.format));
}

}  // namespace kiln::bench
