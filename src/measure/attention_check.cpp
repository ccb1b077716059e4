#include "measure/attention_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace kiln::measure {

namespace {

using AttentionProblem = attention::Problem;
using reference::Comparison;

constexpr int kCheckedHeads = 2;  // that rows are taken of
constexpr int kCheckedRows = 8;   // of each of them: the first, the last, and others
constexpr double kLseBound = 1.0 / 4096;
constexpr double kSumBound = 1.0 / 16384;  // relative: of sums and exponentials in f32

// The tensor's rows of one head, [rows, depth], decoded.
std::vector<double> head_of(const Tensor& tensor, std::int64_t batch, std::int64_t head) {
  const std::int64_t rows = tensor.shape[1];
  const std::int64_t heads = tensor.shape[2];
  const std::int64_t depth = tensor.shape[3];
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(rows * depth));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = ((batch * rows + row) * heads + head) * depth;
    for (std::int64_t d = 0; d < depth; ++d) {
      out.push_back(tensor.get(static_cast<std::size_t>(first + d)));
    }
  }
  return out;
}

// What one query's row is in fp64.
struct ExactRow {
  std::vector<double> value;      // of o
  std::vector<double> magnitude;  // the same of the values' magnitudes
  double lse = -std::numeric_limits<double>::infinity();
};

// A head's keys and values.
struct Keys {
  std::vector<double> k;
  std::vector<double> v;
};

ExactRow exact_row(const double* query, const Keys& keys, std::int64_t seen, std::size_t depth,
                   double scale) {
  ExactRow out{.value = std::vector<double>(depth), .magnitude = std::vector<double>(depth)};
  std::vector<double> scores(static_cast<std::size_t>(std::max<std::int64_t>(seen, 0)));
  if (scores.empty()) return out;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    for (std::size_t d = 0; d < depth; ++d) scores[j] += query[d] * keys.k[j * depth + d];
    scores[j] *= scale;
  }
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double weight = std::exp(scores[j] - largest);
    sum += weight;
    for (std::size_t d = 0; d < depth; ++d) {
      out.value[d] += weight * keys.v[j * depth + d];
      out.magnitude[d] += weight * std::abs(keys.v[j * depth + d]);
    }
  }
  for (std::size_t d = 0; d < depth; ++d) {
    out.value[d] /= sum;
    out.magnitude[d] /= sum;
  }
  out.lse = largest + std::log(sum);
  return out;
}

struct AttentionChecker {
  const AttentionProblem& problem;
  const AttentionTensors& tensors;
  double scale;
  Comparison found = {};

  void compare(std::vector<std::int64_t> coordinates, double expected, double actual,
               double bound) {
    ++found.elements;
    const bool same = expected == actual;  // infinities are
    const double over = same ? 0 : std::abs(actual - expected) / bound;
    found.worst =
        std::isnan(over) ? std::numeric_limits<double>::infinity() : std::max(found.worst, over);
    if (over <= 1) return;
    ++found.outside;
    if (found.first) return;
    found.first = reference::Mismatch{.coordinates = std::move(coordinates),
                                      .expected = expected,
                                      .bound = bound,
                                      .actual = actual};
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i, const ExactRow& exact) {
    const double unit = problem.dtype == DType::kBF16 ? 0x1p-9 : 0x1p-12;  // of rounding
    const std::int64_t row = (b * problem.queries + i) * problem.heads + h;
    for (std::int64_t d = 0; d < problem.depth; ++d) {
      const auto at = static_cast<std::size_t>(d);
      const double weighed = (unit + kSumBound) * exact.magnitude[at];
      compare({b, i, h, d}, exact.value[at],
              tensors.o.get(static_cast<std::size_t>(row * problem.depth + d)),
              weighed + unit * (std::abs(exact.value[at]) + weighed) + 0x1p-24);
    }
    const std::int64_t place = (b * problem.heads + h) * problem.queries + i;
    compare({b, h, i}, exact.lse, tensors.lse.get(static_cast<std::size_t>(place)), kLseBound);
  }

  void head(std::int64_t b, std::int64_t h, const std::vector<std::int64_t>& rows) {
    const std::int64_t shared = h / (problem.heads / problem.key_heads);
    const Keys keys{head_of(tensors.k, b, shared), head_of(tensors.v, b, shared)};
    const std::vector<double> queries = head_of(tensors.q, b, h);
    for (const std::int64_t i : rows) {
      const std::int64_t last = i + problem.keys - problem.queries + 1;
      const std::int64_t seen = problem.causal ? std::min(problem.keys, last) : problem.keys;
      row(b, h, i,
          exact_row(queries.data() + i * problem.depth, keys, seen,
                    static_cast<std::size_t>(problem.depth), scale));
    }
  }

  // What a sample would pass over.
  void all_finite() {
    for (std::int64_t at = 0; at < tensors.o.elements(); ++at) {
      const double actual = tensors.o.get(static_cast<std::size_t>(at));
      if (std::isfinite(actual)) continue;
      const std::int64_t row = at / problem.depth;
      compare({row / problem.heads / problem.queries, row / problem.heads % problem.queries,
               row % problem.heads, at % problem.depth},
              0, actual, 1);
    }
  }
};

}  // namespace

Comparison check_attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                           float scale, std::uint64_t seed) {
  AttentionChecker checker{
      .problem = problem, .tensors = tensors, .scale = static_cast<double>(scale)};
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  for (int n = 0; n < kCheckedHeads; ++n) {
    std::vector<std::int64_t> rows = {0, problem.queries - 1};
    while (rows.size() < kCheckedRows) rows.push_back(draw(problem.queries));
    const std::int64_t b = draw(problem.batch);
    checker.head(b, draw(problem.heads), rows);
  }
  checker.all_finite();
  return checker.found;
}

}  // namespace kiln::measure
