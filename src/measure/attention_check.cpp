#include "measure/attention_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace kiln::measure {

namespace {

using AttentionProblem = attention::Problem;
using reference::Comparison;

constexpr int kCheckedHeads = 2;         // of a sample
constexpr std::size_t kCheckedRows = 8;  // of each of them

struct AttentionElement {
  std::vector<std::int64_t> coordinates;
  double expected = 0;
  double actual = 0;
  double bound = 0;
};

void compare(AttentionElement one, Comparison& found) {
  ++found.elements;
  const bool same = one.expected == one.actual;  // infinities are
  double over = same ? 0 : std::abs(one.actual - one.expected) / one.bound;
  if (std::isnan(over)) over = std::numeric_limits<double>::infinity();
  found.worst = std::max(found.worst, over);
  if (over <= 1) return;
  ++found.outside;
  if (found.first) return;
  found.first = reference::Mismatch{.coordinates = std::move(one.coordinates),
                                    .expected = one.expected,
                                    .bound = one.bound,
                                    .actual = one.actual};
}

struct AttentionChecker {
  const AttentionProblem& problem;
  const AttentionTensors& tensors;
  const AttentionNumerics& numerics;
  Comparison o = {};
  Comparison lse = {};
  Comparison dq = {};
  Comparison dk = {};
  Comparison dv = {};

  // Row i of head h in batch b.
  static void row(const Tensor& tensor, std::array<std::int64_t, 3> place, const ExactRow& exact,
                  Comparison& found) {
    const auto [b, i, h] = place;
    const std::int64_t first = ((b * tensor.shape[1] + i) * tensor.shape[2] + h) * tensor.shape[3];
    for (std::size_t d = 0; d < exact.value.size(); ++d) {
      compare({.coordinates = {b, i, h, static_cast<std::int64_t>(d)},
               .expected = exact.value[d],
               .actual = tensor.get(static_cast<std::size_t>(first) + d),
               .bound = exact.bound[d]},
              found);
    }
  }

  void queries(std::int64_t b, std::int64_t h, const std::vector<std::int64_t>& rows) {
    const AttentionHead head(problem, tensors, numerics, b, h);
    for (const std::int64_t i : rows) {
      if (problem.backward) {
        row(tensors.dq, {b, i, h}, head.dq(i), dq);
        continue;
      }
      const ExactRow exact = head.forward(i);
      row(tensors.o, {b, i, h}, exact, o);
      const std::int64_t place = (b * problem.heads + h) * problem.queries + i;
      compare({.coordinates = {b, h, i},
               .expected = exact.lse,
               .actual = tensors.lse.get(static_cast<std::size_t>(place)),
               .bound = exact.lse_bound},
              lse);
    }
  }

  void keys(std::int64_t b, std::int64_t shared, const std::vector<std::int64_t>& rows) {
    const std::int64_t sharing = problem.heads / problem.key_heads;
    std::vector<AttentionHead::OfKey> sums(rows.size());
    for (std::int64_t h = shared * sharing; h < (shared + 1) * sharing; ++h) {
      const AttentionHead head(problem, tensors, numerics, b, h);
      for (std::size_t n = 0; n < rows.size(); ++n) head.add_to(rows[n], sums[n]);
      if (h + 1 < (shared + 1) * sharing) continue;
      for (AttentionHead::OfKey& each : sums) head.finish(each);
    }
    for (std::size_t n = 0; n < rows.size(); ++n) {
      row(tensors.dk, {b, rows[n], shared}, sums[n].dk, dk);
      row(tensors.dv, {b, rows[n], shared}, sums[n].dv, dv);
    }
  }

  // What a sample would pass over.
  static void all_finite(const Tensor& tensor, Comparison& found) {
    const std::int64_t depth = tensor.shape[3];
    for (std::int64_t at = 0; at < tensor.elements(); ++at) {
      const double actual = tensor.get(static_cast<std::size_t>(at));
      if (std::isfinite(actual)) continue;
      const std::int64_t h = at / depth % tensor.shape[2];
      const std::int64_t i = at / depth / tensor.shape[2] % tensor.shape[1];
      const std::int64_t b = at / depth / tensor.shape[2] / tensor.shape[1];
      compare({.coordinates = {b, i, h, at % depth}, .expected = 0, .actual = actual, .bound = 1},
              found);
    }
  }

  void all() {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(problem.queries));
    std::vector<std::int64_t> columns(static_cast<std::size_t>(problem.keys));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<std::int64_t>(i);
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t h = 0; h < problem.heads; ++h) queries(b, h, rows);
      for (std::int64_t h = 0; problem.backward && h < problem.key_heads; ++h) keys(b, h, columns);
    }
  }

  void some(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::int64_t below) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
    };
    const auto draw_rows = [&](std::int64_t below) {
      std::vector<std::int64_t> rows = {0, below - 1};
      while (rows.size() < kCheckedRows) rows.push_back(draw(below));
      return rows;
    };
    for (int n = 0; n < kCheckedHeads; ++n) {
      const std::int64_t b = draw(problem.batch);
      queries(b, draw(problem.heads), draw_rows(problem.queries));
      if (problem.backward) keys(b, draw(problem.key_heads), draw_rows(problem.keys));
    }
    if (!problem.backward) return all_finite(tensors.o, o);
    all_finite(tensors.dq, dq);
    all_finite(tensors.dk, dk);
    all_finite(tensors.dv, dv);
  }
};

}  // namespace

std::vector<AttentionFound> check_attention(const AttentionProblem& problem,
                                            const AttentionTensors& tensors,
                                            const AttentionNumerics& numerics,
                                            std::optional<std::uint64_t> sample) {
  AttentionChecker checker{.problem = problem, .tensors = tensors, .numerics = numerics};
  if (sample) {
    checker.some(*sample);
  } else {
    checker.all();
  }
  if (!problem.backward) return {{"o", checker.o}, {"lse", checker.lse}};
  return {{"dq", checker.dq}, {"dk", checker.dk}, {"dv", checker.dv}};
}

}  // namespace kiln::measure
