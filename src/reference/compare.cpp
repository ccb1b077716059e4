#include "reference/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/number.h"

namespace kiln::reference {

namespace {

// The error over the bound; above 1 is outside.
double ratio(DType dtype, double expected, double bound, double actual) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : kUnbounded;
  if (std::isinf(expected)) return actual == expected ? 0 : kUnbounded;
  if (std::isnan(actual)) return kUnbounded;
  if (std::isinf(actual)) {
    const bool may_overflow = std::fabs(expected) + bound > info(dtype).max &&
                              std::signbit(actual) == std::signbit(expected);
    return may_overflow ? 0 : kUnbounded;
  }
  const double error = std::fabs(actual - expected);
  if (error == 0) return 0;
  return bound == 0 ? kUnbounded : error / bound;
}

// A formula says which number it is, however far the program's may be from it, and it is none.
bool is_no_number(const Output& formula, std::size_t i, double actual) {
  return std::isnan(actual) && !std::isnan(formula.expected[i]) && formula.slack[i] != kUnbounded;
}

std::vector<std::int64_t> coordinates_of(std::size_t index,
                                         const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out(shape.size());
  auto rest = static_cast<std::int64_t>(index);
  for (std::size_t d = shape.size(); d-- > 0;) {
    out[d] = rest % shape[d];
    rest /= shape[d];
  }
  return out;
}

}  // namespace

Comparison compare(const Output& expected, const Tensor& actual) {
  return compare(std::vector<const Output*>{&expected}, actual);
}

namespace {

bool is_wide_integer(DType dtype) { return is_integer(dtype) && size_bytes(dtype) == 8; }

// Element `i` of 64-bit integers, where a double may have no room for it.
__int128 integer_at(const Tensor& tensor, std::size_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + i * sizeof(bits), sizeof(bits));
  const bool is_signed = info(tensor.dtype).kind == NumberKind::kSigned;
  return is_signed ? __int128{static_cast<std::int64_t>(bits)} : __int128{bits};
}

double rest_at(const Output& output, std::size_t i) {
  return output.rest.empty() ? 0.0 : output.rest[i];
}

// An exact value is compared as the type stores it; an infinity that an 8-bit type holds stays one.
double stored(DType dtype, double value) {
  return std::isinf(value) ? value : round_to(dtype, value);
}

// Whether the statement, which may be of a sample, has the element.
bool knows(const Output& output, std::size_t i) { return output.known.empty() || output.known[i]; }

// One element against one statement of it.
struct Judgement {
  double expected = 0;
  double ratio = 0;
};

// The bound of an element by a statement. That of the user knows nothing of what the program rounds
// on its way, to types that it declares: there the program's own counts, where it has one.
double bound_of(const std::vector<const Output*>& statements, std::size_t s, std::size_t i) {
  const double own = statements[0]->bound[i];
  const double stated = statements[s]->bound[i];
  const bool stands_alone = own == kUnbounded || !knows(*statements[0], i);
  return stands_alone || statements[s]->is_final ? stated : std::max(own, stated);
}

Judgement judge(const Output& output, std::size_t i, double bound, const Tensor& actual) {
  const double value = bound == 0 ? stored(output.dtype, output.expected[i]) : output.expected[i];
  if (bound == 0 && is_wide_integer(output.dtype) && std::isfinite(value)) {
    const bool same = joined({output.expected[i], rest_at(output, i)}) == integer_at(actual, i);
    return {value, same ? 0 : kUnbounded};
  }
  return {value, ratio(output.dtype, value, bound, actual.get(i))};
}

// Where one statement is of the program (the first) and the other its user's: without rounding both
// must be the same number. Its ratio is above 1 where the program computes something else, however
// wide a bound its rounding needs.
double disagreement(const Output& program, const Output& user, std::size_t i) {
  const double ours = program.expected[i];
  const double theirs = user.expected[i];
  if (user.slack.empty() || !std::isfinite(ours) || !std::isfinite(theirs)) return 0;
  // What the program comes to is not known: a branch could not be decided.
  if (program.bound[i] == kUnbounded) return 0;
  const double apart = std::fabs(ours - theirs);
  return apart <= user.slack[i] ? 0 : apart / user.slack[i];
}

// The root of the mean square of what is expected.
double typical(const Output& output) {
  double squares = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < output.expected.size(); ++i) {
    const double value = output.expected[i];
    if (!knows(output, i) || !std::isfinite(value)) continue;
    squares += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

// Whether the statement says nothing of the element: whatever the kernel does, or nothing at all,
// would be inside.
bool says_nothing(const Output& output, std::size_t i, double bound, double typical) {
  if (bound == kUnbounded) return true;
  return bound > kWideBound * typical && std::fabs(output.expected[i]) <= bound;
}

// Which statements say something of an element.
struct Said {
  bool by_program = false;
  bool by_user = false;
  bool user_failed = false;  // a user's formula has the element, and says nothing of it

  [[nodiscard]] bool compared() const { return !user_failed && (by_program || by_user); }

  // Statement `s`, with the bound that counts. A formula with a bound of no use has not failed where it
  // is held against what the program computes without rounding; but the machine's result is compared by
  // the bound alone.
  void note(const std::vector<const Output*>& statements, std::size_t s, std::size_t i,
            double bound, double typical) {
    const Output& output = *statements[s];
    const bool says = !says_nothing(output, i, bound, typical);
    if (s == 0) {
      by_program = says;
      return;
    }
    if (!output.slack.empty()) {
      const bool held = knows(*statements[0], i) && std::isfinite(statements[0]->expected[i]) &&
                        std::isfinite(output.expected[i]);
      user_failed =
          user_failed || !(says || (held && !says_nothing(output, i, output.slack[i], typical)));
    }
    by_user = by_user || says;
  }
};

}  // namespace

Comparison compare(const std::vector<const Output*>& expected, const Tensor& actual,
                   const std::vector<bool>& unwritten) {
  std::vector<double> magnitudes;
  for (const Output* output : expected) {
    KILN_CHECK(output->dtype == actual.dtype && output->shape == actual.shape,
               "`{}` is {} {}, not {} {}", output->name, name(actual.dtype),
               shape_text(actual.shape), name(output->dtype), shape_text(output->shape));
    magnitudes.push_back(typical(*output));
  }
  Comparison out;
  out.elements = actual.elements();
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.elements); ++i) {
    const auto knows_it = [&](const Output* output) { return knows(*output, i); };
    if (std::ranges::none_of(expected, knows_it)) {
      ++out.left_out;
      continue;
    }
    Said said;
    Mismatch worst{{}, 0, 0, actual.get(i)};
    double error = 0;
    for (std::size_t s = 0; s < expected.size(); ++s) {
      const Output& output = *expected[s];
      if (!knows(output, i)) continue;
      const double bound = bound_of(expected, s, i);
      said.note(expected, s, i, bound, magnitudes[s]);
      const bool is_formula = !output.slack.empty();
      if (bound == kUnbounded) {
        if (!is_formula || !is_no_number(output, i, worst.actual)) continue;
        error = kUnbounded;
        worst = {{}, output.expected[i], output.slack[i], worst.actual};
        continue;
      }
      const Judgement found = judge(output, i, bound, actual);
      if (is_formula && bound > kMoreRoundings * output.bound[i]) ++out.widened;
      out.hides = std::max(out.hides, s == 0 ? output.bound[i] : 0.0);
      if (found.ratio >= error) worst = {{}, found.expected, bound, worst.actual};
      error = std::max(error, found.ratio);
    }
    for (std::size_t s = 1; s < expected.size() && !(error > 1); ++s) {
      if (!knows(*expected[0], i) || !knows(*expected[s], i)) continue;
      const double apart = disagreement(*expected[0], *expected[s], i);
      if (!(apart > 1)) continue;
      error = apart;
      worst = {{}, expected[s]->expected[i], expected[s]->slack[i], worst.actual};
    }
    if (!said.compared() && !(error > 1)) {
      ++(knows(*expected[0], i) ? out.not_compared : out.left_out);
      out.unstated += said.by_program;
    }
    out.worst = std::max(out.worst, error);
    if (!(error > 1)) continue;
    const bool missed = i < unwritten.size() && unwritten[i];
    const bool first = out.outside == out.outside_unwritten && !missed;
    out.outside_unwritten += missed;
    out.outside_left_out += !knows(*expected[0], i) && !missed;
    if (out.outside++ == 0 || first) {
      worst.coordinates = coordinates_of(i, actual.shape);
      out.first = std::move(worst);
    }
  }
  return out;
}

std::string_view name(Tells tells) {
  switch (tells) {
    case Tells::kNothing: return "nothing";
    case Tells::kTiles: return "tiles";
    case Tells::kSteps: return "steps";
    case Tells::kAll: return "all";
  }
  return "";
}

void add(const Comparison& share, Comparison& all) {
  const auto key = [](const Comparison& c) { return c.first->coordinates; };
  if (share.first && (!all.first || key(share) < key(all))) all.first = share.first;
  all.elements += share.elements;
  all.left_out += share.left_out;
  all.outside += share.outside;
  all.outside_unwritten += share.outside_unwritten;
  all.outside_left_out += share.outside_left_out;
  all.not_compared += share.not_compared;
  all.unstated += share.unstated;
  all.widened += share.widened;
  all.worst = std::max(all.worst, share.worst);
  all.hides = std::max(all.hides, share.hides);
}

Tells tells(const Comparison& comparison, const Output& program, const Outcome& run) {
  const auto elements = static_cast<double>(comparison.elements - comparison.left_out);
  if (static_cast<double>(comparison.not_compared) > kNotComparedMax * elements) {
    return Tells::kNothing;
  }
  double bounds = 0;
  std::int64_t inexact = 0;
  for (const double bound : program.bound) {
    if (bound == 0 || bound == kUnbounded) continue;
    bounds += bound;
    ++inexact;
  }
  if (inexact == 0) {
    if (comparison.not_compared != 0) return Tells::kTiles;
    return std::isfinite(run.step_share) && !run.long_sums ? Tells::kSteps : Tells::kAll;
  }
  const double typical_bound = bounds / static_cast<double>(inexact);
  return typical_bound < run.step_share * typical(program) ? Tells::kSteps : Tells::kTiles;
}

Tensor rounded(const Output& output) {
  Tensor tensor = Tensor::zeros(output.dtype, output.shape);
  for (std::size_t i = 0; i < output.expected.size(); ++i) {
    const double value = output.expected[i];
    if (!is_wide_integer(output.dtype) || !std::isfinite(value)) {
      tensor.set(i, stored(output.dtype, value));
      continue;
    }
    const auto bits = static_cast<std::uint64_t>(joined({value, rest_at(output, i)}));
    std::memcpy(tensor.bytes.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return tensor;
}

}  // namespace kiln::reference
