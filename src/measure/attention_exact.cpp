#include "measure/attention_exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/functions.h"
#include "target/mma.h"

namespace kiln::measure {

namespace {

constexpr double kF32Unit = 0x1p-24;                            // of rounding
constexpr double kFunction = ir::kFunctionUlps * 2 * kF32Unit;  // of exponentials and logarithms
constexpr double kLowest = 0x1p-120;  // more than what f32 loses below its smallest number
// Roundings in f32 of a scaled score and of what it is shifted by, each relative to its size.
constexpr double kShifts = 8 * kF32Unit;
constexpr double kTangent =
    0x1p-11 + 4 * kF32Unit;                  // of a hyperbolic tangent, relative (PTX ISA, "tanh")
constexpr std::int64_t kKeysOfMaximum = 32;  // after so many keys, or more, there may be a new one
constexpr std::int64_t kThreadsOfRow = 4;    // that add up its weights
// Of tensors of 8 bits: how many standard deviations of a sum are allowed, what weights are times before they are rounded, and
// how many products a matrix instruction adds up.
constexpr double kDeviations = 6;
constexpr double kRaised = 0x1p8;
// What a row's scores are taken less may be so much below their largest: weights are up to 2^8 then.
constexpr double kRoom = 8 * std::numbers::ln2;
constexpr std::int64_t kStepOf8Bits = 32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(const double* a, const double* b, std::size_t count) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The tensor's rows of one head, [rows, depth], times a factor.
DecodedRows decode(const Tensor& tensor, std::int64_t batch, std::int64_t head, double factor = 1) {
  const std::int64_t rows = tensor.shape[1];
  const std::int64_t heads = tensor.shape[2];
  const std::int64_t depth = tensor.shape[3];
  DecodedRows out{.depth = static_cast<std::size_t>(depth)};
  out.values.reserve(static_cast<std::size_t>(rows * depth));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = ((batch * rows + row) * heads + head) * depth;
    for (std::int64_t d = 0; d < depth; ++d) {
      out.values.push_back(tensor.get(static_cast<std::size_t>(first + d)) * factor);
      out.largest = std::max(out.largest, std::abs(out.values.back()));
    }
    const double* const last = out.row(static_cast<std::size_t>(row));
    out.norms.push_back(std::sqrt(dot(last, last, out.depth)));
    out.norm_max = std::max(out.norm_max, out.norms.back());
  }
  return out;
}

// value += weight * row, bound += error * |row|.
void add(ExactRow& to, const double* row, double weight, double error) {
  for (std::size_t d = 0; d < to.value.size(); ++d) {
    to.value[d] += weight * row[d];
    to.bound[d] += error * std::abs(row[d]);
  }
}

double factor_of(const Tensor& factors, std::int64_t batch, std::int64_t key_head) {
  if (factors.bytes.empty()) return 1;
  return factors.get(static_cast<std::size_t>(batch * factors.shape[1] + key_head));
}

// What a sum of so many products of 8-bit floats loses, of what it is.
double lost_of_8_bits(std::int64_t length) {
  return static_cast<double>(length / kStepOf8Bits + 2) * target::kFp8Unit;
}

ExactRow zeros(std::size_t depth) {
  return {.value = std::vector<double>(depth), .bound = std::vector<double>(depth)};
}

// exp(x) - 1 of a small x that is not below 0, or more.
double grown(double x) { return x < 0.5 ? x * (1 + x) : std::expm1(x); }

}  // namespace

// A query and a key that it sees.
struct AttentionHead::Pair {
  double weight = 0;        // p
  double weight_error = 0;  // rounded
  double gradient = 0;      // ds
  double gradient_error = 0;
};

// Keys that a query sees, or queries that see a key: from `first` on, and not from `end` on.
struct AttentionHead::Range {
  std::int64_t first = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t count() const { return end - first; }
};

AttentionHead::AttentionHead(const attention::Problem& problem, const AttentionTensors& tensors,
                             const AttentionNumerics& numerics, std::int64_t batch,
                             std::int64_t head)
    : problem_(problem),
      scale_(static_cast<double>(numerics.scale)),
      numerics_(numerics.sums),
      unit_(roundoff(problem.dtype)),
      lowest_(smallest(problem.dtype) / 2 / (has_8_bits(problem) ? kRaised : 1) + kLowest),
      result_unit_(roundoff(result_type(problem))),
      result_lowest_(smallest(result_type(problem)) / 2 + kLowest),
      of_depth_(error_of(problem.depth)) {
  const std::int64_t shared = head / (problem.heads / problem.key_heads);
  q_ = decode(tensors.q, batch, head, factor_of(tensors.q_scale, batch, shared));
  k_ = decode(tensors.k, batch, shared, factor_of(tensors.k_scale, batch, shared));
  v_ = decode(tensors.v, batch, shared, factor_of(tensors.v_scale, batch, shared));
  if (!problem.backward) return;
  o_ = decode(tensors.o, batch, head);
  dout_ = decode(tensors.dout, batch, head);
  for (std::int64_t i = 0; i < problem.queries; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t place = (batch * problem.heads + head) * problem.queries + i;
    lse_.push_back(tensors.lse.get(static_cast<std::size_t>(place)));
    delta_.push_back(dot(o_.row(at), dout_.row(at), o_.depth));
  }
}

AttentionHead::SumError AttentionHead::error_of(std::int64_t length) const {
  const auto of = [&](double magnitude) {
    return reference::product_bound(
        {.value = 0, .magnitude = magnitude, .length = static_cast<double>(length), .largest = 1},
        numerics_, problem_.dtype, DType::kF64);
  };
  const double floor = of(0);
  return {.relative = of(1) - floor, .floor = floor};
}

// So many keys behind a query's own that it sees; -1: all.
std::int64_t AttentionHead::behind() const { return problem_.causal ? 0 : problem_.right; }

AttentionHead::Range AttentionHead::seen_by(std::int64_t query) const {
  const std::int64_t own = query + problem_.keys - problem_.queries;
  Range out{.first = 0, .end = problem_.keys};
  const auto key = [&](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, problem_.keys); };
  if (behind() != -1) out.end = key(own + behind() + 1);
  if (problem_.left != -1) out.first = std::min(key(own - problem_.left), out.end);
  return out;
}

AttentionHead::Range AttentionHead::seeing(std::int64_t key) const {
  const std::int64_t own = key - (problem_.keys - problem_.queries);
  Range out{.first = 0, .end = problem_.queries};
  if (behind() != -1) out.first = std::max<std::int64_t>(0, own - behind());
  if (problem_.left != -1) out.end = std::min(problem_.queries, own + problem_.left + 1);
  return out;
}

// What becomes of a scaled score.
double AttentionHead::capped(double score) const {
  const auto cap = static_cast<double>(problem_.soft_cap);
  return cap == 0 ? score : cap * std::tanh(score / cap);
}
// What is lost of a score by that, where none is larger.
double AttentionHead::lost_in_cap(double largest) const {
  return problem_.soft_cap == 0 ? 0 : kTangent * largest;
}

// Of a query's scaled score, whatever the key.
double AttentionHead::score_error(std::size_t query) const {
  return scale_ * (of_depth_.relative * q_.norms[query] * k_.norm_max + of_depth_.floor);
}

// Results as they leave.
void AttentionHead::round(ExactRow& row) const {
  for (std::size_t d = 0; d < row.value.size(); ++d) {
    double& bound = row.bound[d];
    bound += kShifts * (std::abs(row.value[d]) + bound);
    bound += result_unit_ * (std::abs(row.value[d]) + bound) + result_lowest_;
  }
}

// The scores of the keys that are seen, from number `first` on, become weights, and the values' mean by them the row's.
void AttentionHead::weigh(ExactRow& row, std::int64_t first, std::vector<double>& weights) const {
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (double& each : weights) sum += each = std::exp(each - largest);
  for (std::size_t j = 0; j < weights.size(); ++j) {
    add(row, v_.row(static_cast<std::size_t>(first) + j), weights[j] / sum, weights[j] / sum);
  }
  row.lse = largest + std::log(sum);
}

ExactRow AttentionHead::forward(std::int64_t query) const {
  const Range keys = seen_by(query);
  const std::int64_t seen = keys.count();
  ExactRow out = zeros(q_.depth);
  if (seen == 0) {
    out.lse = -kInfinity;
    return out;
  }
  const auto i = static_cast<std::size_t>(query);
  std::vector<double> weights;
  double size = 0;
  for (std::int64_t j = keys.first; j < keys.end; ++j) {
    weights.push_back(
        capped(scale_ * dot(q_.row(i), k_.row(static_cast<std::size_t>(j)), q_.depth)));
    size = std::max(size, std::abs(weights.back()));
  }
  const double largest = *std::ranges::max_element(weights);
  weigh(out, keys.first, weights);
  if (has_8_bits(problem_)) {
    bound_8_bits(out, i, keys.first, weights);
    return out;
  }
  const double count = static_cast<double>(seen);
  const double maxima = static_cast<double>(seen / kKeysOfMaximum + 2);
  // Of a weight before it is rounded, and of the sum of weights: relative.
  const double weight = grown(score_error(i) + lost_in_cap(size) + kShifts * size + kFunction +
                              maxima * (kShifts * size + kFunction + kF32Unit));
  const double sum = weight + (count / kThreadsOfRow + 8) * kF32Unit;
  const double rounded = (1 + weight) * (1 + unit_) - 1;
  const SumError added = error_of(seen);
  // Weights are of the largest one: all together they are this many of it.
  const double whole = std::exp(out.lse - largest);
  const double lost = (lowest_ * count * v_.largest + added.floor) / whole;
  for (std::size_t d = 0; d < out.value.size(); ++d) {
    double& bound = out.bound[d];
    bound = bound * (rounded + added.relative * (1 + rounded)) + lost;
    bound = sum < 0.5 ? (bound + std::abs(out.value[d]) * sum) / (1 - sum) : kInfinity;
  }
  round(out);
  out.lse_bound = sum < 0.5
                      ? -std::log1p(-sum) + kFunction +
                            kFunction * (4 * (std::abs(largest) + std::log(whole)) + 2 * kRoom)
                      : kInfinity;
  return out;
}

void AttentionHead::bound_8_bits(ExactRow& row, std::size_t query, std::int64_t first,
                                 const std::vector<double>& weights) const {
  double whole = 0;
  for (const double each : weights) whole += each;
  const double largest = row.lse - std::log(whole);
  std::vector<double> squares(row.value.size());
  for (std::size_t j = 0; j < weights.size(); ++j) {
    for (std::size_t d = 0; d < squares.size(); ++d) {
      const double part = weights[j] / whole * v_.row(static_cast<std::size_t>(first) + j)[d];
      squares[d] += part * part;
    }
  }
  const auto seen = static_cast<std::int64_t>(weights.size());
  const double lost = lowest_ * static_cast<double>(seen) * v_.largest / whole;
  const double deviation = unit_ / std::sqrt(3.0);
  for (std::size_t d = 0; d < squares.size(); ++d) {
    row.bound[d] = kDeviations * deviation * std::sqrt(squares[d]) + lost +
                   lost_of_8_bits(seen) * std::abs(row.value[d]);
  }
  round(row);
  const double score = scale_ * q_.norms[query] * k_.norm_max;
  row.lse_bound = lost_of_8_bits(problem_.depth) * score + kShifts * score +
                  4 * kFunction * (std::abs(largest) + std::abs(std::log(whole)) + 1);
}

AttentionHead::Pair AttentionHead::pair(std::size_t query, std::size_t key) const {
  const double score = capped(scale_ * dot(q_.row(query), k_.row(key), q_.depth));
  const double product = dot(dout_.row(query), v_.row(key), v_.depth);
  const double relative = grown(score_error(query) + lost_in_cap(std::abs(score)) +
                                kShifts * (std::abs(score) + std::abs(lse_[query])) + kFunction);
  Pair out;
  out.weight = std::exp(score - lse_[query]);
  out.weight_error = out.weight * (relative + unit_ * (1 + relative)) + lowest_;
  const double apart = product - delta_[query];
  const double dout = dout_.norms[query];
  const double of_product = of_depth_.relative * dout * v_.norm_max + of_depth_.floor;
  const double of_delta = static_cast<double>(q_.depth + 2) * kF32Unit * o_.norms[query] * dout;
  // A cap's derivative, 1 less the square of the tangent, and what may be lost of it.
  const auto cap = static_cast<double>(problem_.soft_cap);
  const double tangent = cap == 0 ? 0 : score / cap;
  const double slope = 1 - tangent * tangent;
  const double of_slope =
      cap == 0 ? 0
               : 2 * (kTangent * tangent * tangent + std::abs(tangent) * score_error(query) / cap) +
                     4 * kF32Unit;
  out.gradient = out.weight * apart * slope;
  double& error = out.gradient_error;
  error = slope * out.weight *
          ((1 + relative) * (of_product + of_delta + 2 * kF32Unit * std::abs(apart)) +
           relative * std::abs(apart));
  error += of_slope * (out.weight * std::abs(apart) + error);
  error += unit_ * (std::abs(out.gradient) + error) + lowest_;
  return out;
}

ExactRow AttentionHead::dq(std::int64_t query) const {
  ExactRow out = zeros(q_.depth);
  const Range keys = seen_by(query);
  const SumError added = error_of(std::max<std::int64_t>(keys.count(), 1));
  for (std::int64_t key = keys.first; key < keys.end; ++key) {
    const auto j = static_cast<std::size_t>(key);
    const Pair one = pair(static_cast<std::size_t>(query), j);
    const double whole = std::abs(one.gradient) + one.gradient_error;
    add(out, k_.row(j), one.gradient, one.gradient_error + added.relative * whole);
  }
  for (double& value : out.value) value *= scale_;
  for (double& bound : out.bound) bound = scale_ * (bound + added.floor);
  round(out);
  return out;
}

void AttentionHead::add_to(std::int64_t key, OfKey& sums) const {
  for (ExactRow* each : {&sums.dk, &sums.dv}) {
    if (each->value.empty()) *each = zeros(q_.depth);
  }
  const Range queries = seeing(key);
  const SumError added = error_of(problem_.queries * (problem_.heads / problem_.key_heads));
  for (std::int64_t query = queries.first; query < queries.end; ++query) {
    const auto i = static_cast<std::size_t>(query);
    const Pair one = pair(i, static_cast<std::size_t>(key));
    const double whole = std::abs(one.gradient) + one.gradient_error;
    add(sums.dk, q_.row(i), one.gradient, one.gradient_error + added.relative * whole);
    add(sums.dv, dout_.row(i), one.weight,
        one.weight_error + added.relative * (one.weight + one.weight_error));
  }
}

void AttentionHead::finish(OfKey& sums) const {
  const SumError added = error_of(problem_.queries * (problem_.heads / problem_.key_heads));
  for (double& value : sums.dk.value) value *= scale_;
  for (double& bound : sums.dk.bound) bound = scale_ * (bound + added.floor);
  for (double& bound : sums.dv.bound) bound += added.floor;
  round(sums.dk);
  round(sums.dv);
}

void fill_forward(const attention::Problem& problem, const AttentionNumerics& numerics,
                  AttentionTensors& tensors) {
  attention::Problem forward = problem;
  forward.backward = false;
  tensors.o = Tensor::zeros(result_type(problem),
                            {problem.batch, problem.queries, problem.heads, problem.depth});
  tensors.lse = Tensor::zeros(DType::kF32, {problem.batch, problem.heads, problem.queries});
  for (std::int64_t place = 0; place < problem.batch * problem.heads; ++place) {
    const std::int64_t b = place / problem.heads;
    const std::int64_t h = place % problem.heads;
    const AttentionHead head(forward, tensors, numerics, b, h);
    for (std::int64_t i = 0; i < problem.queries; ++i) {
      const ExactRow row = head.forward(i);
      const std::int64_t first = ((b * problem.queries + i) * problem.heads + h) * problem.depth;
      for (std::size_t d = 0; d < row.value.size(); ++d) {
        tensors.o.set(static_cast<std::size_t>(first) + d, row.value[d]);
      }
      tensors.lse.set(static_cast<std::size_t>(place * problem.queries + i), row.lse);
    }
  }
}

}  // namespace kiln::measure
