#include "measure/bench_check.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "io/expect.h"
#include "measure/bench_sample.h"
#include "reference/number.h"

namespace kiln::measure {

namespace {

constexpr std::int64_t kSampled = 64;  // rows, and as many columns

// The rows (or columns) to check: one index in each of up to kSampled equal stretches of the
// extent.
std::vector<std::int64_t> sampled(std::int64_t extent, std::uint64_t seed) {
  const std::vector<bench::Index> places = spread_indices(extent, kSampled, seed);
  return {places.begin(), places.end()};
}

std::int64_t offset(const Tensor& matrix, std::int64_t row, std::int64_t column) {
  return row * matrix.shape[1] + column;
}

// The chosen rows of a matrix whose rows are summed along, or columns when it lies the other way.
Tensor gathered(const Tensor& matrix, const std::vector<std::int64_t>& chosen, bool along_k) {
  const std::int64_t k = matrix.shape[along_k ? 1 : 0];
  const auto count = static_cast<std::int64_t>(chosen.size());
  Tensor out = Tensor::zeros(matrix.dtype, along_k ? std::vector{count, k} : std::vector{k, count});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t outer = chosen[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int64_t from = along_k ? offset(matrix, outer, j) : offset(matrix, j, outer);
      const std::int64_t to = along_k ? offset(out, i, j) : offset(out, j, i);
      out.set(static_cast<std::size_t>(to), matrix.get(static_cast<std::size_t>(from)));
    }
  }
  return out;
}

// Lengths of a matrix's rows or columns, and its largest element.
struct Norms {
  std::vector<double> of;
  double largest = 0;
};

Norms norms(const Tensor& matrix, bool along_k) {
  const std::int64_t rows = matrix.shape[0];
  const std::int64_t columns = matrix.shape[1];
  Norms out;
  out.of.resize(static_cast<std::size_t>(along_k ? rows : columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double value = matrix.get(static_cast<std::size_t>(offset(matrix, i, j)));
      out.of[static_cast<std::size_t>(along_k ? i : j)] += value * value;
      out.largest = std::max(out.largest, std::fabs(value));
    }
  }
  for (double& square : out.of) square = std::sqrt(square);
  return out;
}

}  // namespace

reference::Comparison check_sample(const reference::Einsum& einsum, const ProductOf& product,
                                   const Measured& measured,
                                   const reference::EinsumNumerics& numerics, std::uint64_t seed) {
  const gemm::Problem& how = product.problem;
  const std::vector<std::int64_t> rows = sampled(how.m, 2 * seed);
  const std::vector<std::int64_t> columns = sampled(how.n, 2 * seed + 1);
  const Tensor a = gathered(measured.a, rows, how.a_along_k);
  const Tensor b = gathered(measured.b, columns, how.b_along_k);
  Tensor c = Tensor::zeros(
      how.c, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns.size())});
  std::size_t next = 0;
  for (const std::int64_t row : rows) {
    for (const std::int64_t column : columns) {
      c.set(next++, measured.c.get(static_cast<std::size_t>(offset(measured.c, row, column))));
    }
  }
  Diagnostics unused;
  const auto expected = reference::evaluate(
      einsum, {{product.a, &a}, {product.b, &b}, {product.c, &c}}, numerics, unused);
  KILN_CHECK(expected.has_value(), "the sample does not fit `--expect`");
  reference::Comparison comparison = reference::compare(*expected, c);
  if (comparison.first) {
    std::vector<std::int64_t>& at = comparison.first->coordinates;
    at = {rows[static_cast<std::size_t>(at[0])], columns[static_cast<std::size_t>(at[1])]};
  }
  return comparison;
}

reference::Comparison compare_with_vendor(const ProductOf& product, const Measured& measured,
                                          const Tensor& vendor, const BothNumerics& numerics) {
  const gemm::Problem& how = product.problem;
  const Norms a = norms(measured.a, how.a_along_k);
  const Norms b = norms(measured.b, how.b_along_k);
  const double scale = std::fabs(product.scale);
  reference::Comparison all;
  std::mutex mutex;
  const auto compare_rows = [&](std::int64_t begin, std::int64_t end) {
    reference::Comparison share;
    for (std::int64_t i = begin * how.n; i < end * how.n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double ours = measured.c.get(at);
      const double other = vendor.get(at);
      reference::ProductSum sum{.value = ours,
                                .magnitude = scale * a.of[static_cast<std::size_t>(i / how.n)] *
                                             b.of[static_cast<std::size_t>(i % how.n)],
                                .length = static_cast<double>(how.k),
                                .largest = std::max(a.largest, b.largest)};
      double bound = reference::product_bound(sum, numerics.ours, how.a, how.c);
      sum.value = other;
      bound += reference::product_bound(sum, numerics.vendor, how.a, how.c);
      ++share.elements;
      const double error = ours == other ? 0 : std::fabs(ours - other);
      if (error <= bound && std::isfinite(ours) && std::isfinite(other)) {
        share.worst = std::max(share.worst, error == 0 ? 0 : error / bound);
        continue;
      }
      share.worst = reference::kUnbounded;
      if (share.outside++ == 0) share.first = {{i / how.n, i % how.n}, other, bound, ours};
    }
    const std::scoped_lock lock(mutex);
    reference::add(share, all);
  };
  const auto workers = std::max<std::int64_t>(std::thread::hardware_concurrency(), 1);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t w = 0; w < workers; ++w) {
      threads.emplace_back(compare_rows, how.m * w / workers, how.m * (w + 1) / workers);
    }
  }
  return all;
}

reference::EinsumNumerics vendor_numerics(const gemm::Problem& product, int capability) {
  reference::EinsumNumerics out;
  out.operand = target::operand_type(product.a);
  out.cut_off = true;
  const DType b = target::operand_type(product.b);
  for (const target::Mma& atom : target::all_mmas()) {
    const bool fits = atom.a == *out.operand && atom.b == b && atom.acc == DType::kF32 &&
                      target::oldest_arch({atom.needs})->capability <= capability;
    if (!fits) continue;
    const reference::Accumulation seen = io::accumulation_of(atom);
    out.accumulation.roundoff = std::max(out.accumulation.roundoff, seen.roundoff);
    out.accumulation.depth =
        out.accumulation.depth == 1 ? seen.depth : std::min(out.accumulation.depth, seen.depth);
  }
  return out;
}

}  // namespace kiln::measure
