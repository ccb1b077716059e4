#include "reference/einsum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "reference/contract.h"
#include "reference/formula.h"
#include "reference/number.h"
#include "support/parallel.h"

namespace kiln::reference {

namespace {

// One loop index: its extent and where it was first used.
struct LoopIndex {
  std::string name;
  std::int64_t extent = 0;
  Span span;
  std::string tensor;
};

struct Factor {
  std::vector<double> values;
  std::vector<std::uint64_t> bits = {};  // of integers: the low 64
  std::vector<std::int64_t> stride;      // by loop index
  double smallest_normal = 0;            // of the type that is multiplied

  // What the value counts for where tensor cores align products: they take a subnormal number's
  // exponent to be that of the smallest normal one.
  [[nodiscard]] double magnitude(std::size_t i) const {
    return values[i] == 0 ? 0 : std::max(std::fabs(values[i]), smallest_normal);
  }
};

struct Plan {
  std::vector<LoopIndex> loops;  // the output's, then the summed ones
  std::size_t output_rank = 0;
  std::vector<Factor> factors;
  bool integral = true;
  bool whole = true;   // all factors have integer types, and the scale is one
  bool held = true;    // the operands' type holds all factors
  double largest = 0;  // magnitude of a factor's value
  // What rounding the factors costs a product: relative to it, and where they are subnormal.
  double operand_error = 0;
  double operand_floor = 0;
};

const Named* find(const std::vector<Named>& tensors, const std::string& name) {
  for (const Named& named : tensors) {
    if (named.name == name) return &named;
  }
  return nullptr;
}

enum class Side : std::uint8_t { kLeft, kRight };

Checked<const Tensor*> resolve(Side side, const EinsumTerm& term, const std::vector<Named>& tensors,
                               Diagnostics& diags) {
  const Named* found = find(tensors, term.name);
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const Named& named : tensors) names.push_back(named.name);
    const std::string guess = did_you_mean(term.name, names);
    const std::string all = join(names, ", ", [](const auto& n) { return format("`{}`", n); });
    return diags.report<diag::ExpectUnknownName>(term.span, term.name)
        .help_if(guess.empty() ? format("the tensors are {}", all) : guess)
        .emit();
  }
  if (side == Side::kRight && !found->has_contents) {
    return diags.report<diag::ExpectReadsResult>(term.span, term.name)
        .help("state it by what the kernel is given")
        .emit();
  }
  const Tensor* tensor = found->tensor;
  if (tensor->shape.size() != term.indices.size()) {
    return diags
        .report<diag::ExpectRank>(term.span, term.name, tensor->shape.size(), term.indices.size())
        .label(term.span, "its shape is {}", shape_text(tensor->shape))
        .emit();
  }
  return tensor;
}

// Adds the term's indices to the loops; every use of an index must have one extent.
Checked<std::vector<std::int64_t>> bind(const EinsumTerm& term, const Tensor& tensor, Plan& plan,
                                        Diagnostics& diags) {
  std::vector<std::int64_t> strides(plan.loops.size());
  std::int64_t stride = tensor.elements();
  for (std::size_t d = 0; d < term.indices.size(); ++d) {
    const std::int64_t extent = tensor.shape[d];
    stride = extent == 0 ? 0 : stride / extent;
    auto loop = std::find_if(plan.loops.begin(), plan.loops.end(),
                             [&](const LoopIndex& l) { return l.name == term.indices[d]; });
    if (loop == plan.loops.end()) {
      plan.loops.push_back({term.indices[d], extent, term.index_spans[d], term.name});
      loop = plan.loops.end() - 1;
    } else if (loop->extent != extent) {
      return diags
          .report<diag::ExpectExtent>(term.index_spans[d], loop->name, loop->extent, loop->tensor,
                                      extent, term.name)
          .label(loop->span, "{} in `{}`", loop->extent, loop->tensor)
          .label(term.index_spans[d], "{} in `{}`", extent, term.name)
          .emit();
    }
    strides.resize(plan.loops.size());
    strides[static_cast<std::size_t>(loop - plan.loops.begin())] += stride;
  }
  return strides;
}

// Everything but the factors' contents.
Checked<Plan> bind_terms(const Einsum& einsum, const std::vector<Named>& tensors,
                         Diagnostics& diags) {
  Plan plan;
  const auto output = resolve(Side::kLeft, einsum.output, tensors, diags);
  if (!output) return Unexpected{output.error()};
  for (std::size_t d = 0; d < einsum.output.indices.size(); ++d) {
    for (std::size_t e = 0; e < d; ++e) {
      if (einsum.output.indices[d] != einsum.output.indices[e]) continue;
      return diags
          .report<diag::ExpectRepeatedIndex>(einsum.output.index_spans[d], einsum.output.indices[d])
          .emit();
    }
  }
  if (const auto strides = bind(einsum.output, **output, plan, diags); !strides) {
    return Unexpected{strides.error()};
  }
  plan.output_rank = plan.loops.size();
  for (const EinsumTerm& term : einsum.factors) {
    const auto tensor = resolve(Side::kRight, term, tensors, diags);
    if (!tensor) return Unexpected{tensor.error()};
    auto strides = bind(term, **tensor, plan, diags);
    if (!strides) return Unexpected{strides.error()};
    plan.factors.push_back({.values = {}, .stride = std::move(*strides)});
  }
  for (Factor& factor : plan.factors) factor.stride.resize(plan.loops.size());
  return plan;
}

// One factor is rounded to the operands' type, a float's, before it is multiplied.
void add_operand_error(Plan& plan, const EinsumNumerics& numerics) {
  const double each = roundoff(*numerics.operand) * (numerics.cut_off ? 2 : 1);
  plan.operand_error += each * (1 + plan.operand_error);
  plan.operand_floor += smallest(*numerics.operand);
}

// An integer of up to 64 bits, its sign carried to the top.
std::uint64_t wide_bits(const Tensor& tensor, std::size_t i) {
  if (size_bytes(tensor.dtype) < 8) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(tensor.get(i)));
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + i * sizeof(bits), sizeof(bits));
  return bits;
}

void read_factor(const Tensor& tensor, const EinsumNumerics& numerics, Factor& factor, Plan& plan) {
  bool held = true;  // by the operands' type
  factor.smallest_normal = smallest_normal(numerics.operand.value_or(tensor.dtype));
  plan.whole = plan.whole && is_integer(tensor.dtype);
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    const double value = tensor.get(i);
    plan.integral = plan.integral && std::isfinite(value) && std::trunc(value) == value;
    held = held && (!numerics.operand || !std::isfinite(value) ||
                    round_to(*numerics.operand, value) == value);
    factor.values.push_back(value);
    if (is_integer(tensor.dtype)) factor.bits.push_back(wide_bits(tensor, i));
  }
  for (const double value : factor.values) {
    if (std::isfinite(value)) plan.largest = std::max(plan.largest, std::fabs(value));
  }
  plan.held = plan.held && held;
  if (!held && is_float(*numerics.operand)) add_operand_error(plan, numerics);
}

Checked<Plan> make_plan(const Einsum& einsum, const std::vector<Named>& tensors,
                        const EinsumNumerics& numerics, Diagnostics& diags) {
  auto plan = bind_terms(einsum, tensors, diags);
  if (!plan) return plan;
  for (std::size_t i = 0; i < einsum.factors.size(); ++i) {
    const Tensor& tensor = *find(tensors, einsum.factors[i].name)->tensor;
    read_factor(tensor, numerics, plan->factors[i], *plan);
  }
  const bool scaled_whole = std::trunc(einsum.scale) == einsum.scale;
  plan->integral = plan->integral && scaled_whole;
  plan->whole = plan->whole && scaled_whole && std::fabs(einsum.scale) < 0x1p53;
  return plan;
}

struct Sum {
  double value = 0;
  double magnitude = 0;    // of the finite products
  std::uint64_t bits = 0;  // of whole numbers: the low 64 of their sum
};

// Where the factors' elements of each summed combination are, from those of the first.
struct Offsets {
  std::vector<std::vector<std::int64_t>> of;  // by factor, then by combination
  std::size_t depth = 1;
};

Offsets offsets_of(const Plan& plan) {
  Offsets out;
  for (std::size_t l = plan.output_rank; l < plan.loops.size(); ++l) {
    out.depth *= static_cast<std::size_t>(plan.loops[l].extent);
  }
  for (const Factor& factor : plan.factors) {
    std::vector<std::int64_t> offsets(out.depth);
    for (std::size_t k = 0; k < out.depth; ++k) {
      auto rest = static_cast<std::int64_t>(k);
      for (std::size_t l = plan.loops.size(); l-- > plan.output_rank;) {
        offsets[k] += rest % plan.loops[l].extent * factor.stride[l];
        rest /= plan.loops[l].extent;
      }
    }
    out.of.push_back(std::move(offsets));
  }
  return out;
}

// Where the factor's element of output element `i` and the first combination is.
std::int64_t first_of(const Plan& plan, const Factor& factor, std::int64_t i) {
  std::int64_t out = 0;
  for (std::size_t l = plan.output_rank; l-- > 0;) {
    out += i % plan.loops[l].extent * factor.stride[l];
    i /= plan.loops[l].extent;
  }
  return out;
}

Sum sum_of(const Plan& plan, double scale, const Offsets& offsets, std::int64_t i) {
  std::vector<std::int64_t> first;
  for (const Factor& factor : plan.factors) first.push_back(first_of(plan, factor, i));
  Sum sum;
  for (std::size_t k = 0; k < offsets.depth; ++k) {
    double product = scale;
    double magnitude = std::fabs(scale);
    bool finite = true;  // each factor: their product may be beyond f64 all the same
    std::uint64_t bits =
        plan.whole ? static_cast<std::uint64_t>(static_cast<std::int64_t>(scale)) : 0;
    for (std::size_t f = 0; f < plan.factors.size(); ++f) {
      const auto at = static_cast<std::size_t>(first[f] + offsets.of[f][k]);
      product *= plan.factors[f].values[at];
      finite = finite && std::isfinite(plan.factors[f].values[at]);
      magnitude *= plan.factors[f].magnitude(at);
      if (plan.whole) bits *= plan.factors[f].bits[at];
    }
    sum.bits += bits;
    sum.value += product;
    if (finite) sum.magnitude += magnitude;
  }
  return sum;
}

// Of the last index of the output, where one of two factors has it and the other has not: products
// of a matrix. `right` is the factor that has it.
struct Matrices {
  std::size_t left = 0;
  std::size_t right = 1;
  std::int64_t columns = 1;  // the last index's extent
  std::int64_t rows = 1;     // output rows that share what `right` has
};

std::optional<Matrices> matrices_of(const Plan& plan) {
  if (plan.factors.size() != 2 || plan.whole || plan.output_rank == 0) return std::nullopt;
  const std::size_t last = plan.output_rank - 1;
  const auto has = [&](std::size_t f, std::size_t l) { return plan.factors[f].stride[l] != 0; };
  if (has(0, last) == has(1, last)) return std::nullopt;
  Matrices out;
  out.right = has(0, last) ? 0 : 1;
  out.left = 1 - out.right;
  out.columns = plan.loops[last].extent;
  for (std::size_t l = last; l-- > 0 && !has(out.right, l);) out.rows *= plan.loops[l].extent;
  return out;
}

// Rows [begin, begin + count) of a side: its values, and what they count for.
struct Packed {
  std::vector<double> values;
  std::vector<double> magnitudes;

  void add(const Factor& factor, std::int64_t at) {
    const auto index = static_cast<std::size_t>(at);
    const double value = factor.values[index];
    values.push_back(value);
    magnitudes.push_back(std::isfinite(value) ? factor.magnitude(index) : 0);
  }
};

// Combinations at a time.
constexpr std::size_t kCombinations = 256;

// The sums of whole rows of the output that share their part of the right factor.
void add_rows(const Plan& plan, const Matrices& matrices, const Offsets& offsets, ElementRun rows,
              std::vector<Sum>& sums) {
  const Factor& left = plan.factors[matrices.left];
  const Factor& right = plan.factors[matrices.right];
  const auto m = static_cast<std::size_t>(rows.count / matrices.columns);
  const auto n = static_cast<std::size_t>(matrices.columns);
  const std::int64_t right_first = first_of(plan, right, rows.first);
  const std::int64_t right_step = right.stride[plan.output_rank - 1];
  std::vector<double> value(m * n);
  std::vector<double> magnitude(m * n);
  for (std::size_t from = 0; from < offsets.depth; from += kCombinations) {
    const std::size_t depth = std::min(kCombinations, offsets.depth - from);
    Packed a;
    Packed b;
    for (std::size_t row = 0; row < m; ++row) {
      const std::int64_t first =
          first_of(plan, left, rows.first + static_cast<std::int64_t>(row * n));
      for (std::size_t k = 0; k < depth; ++k) {
        a.add(left, first + offsets.of[matrices.left][from + k]);
      }
    }
    for (std::size_t k = 0; k < depth; ++k) {
      std::int64_t at = right_first + offsets.of[matrices.right][from + k];
      for (std::size_t column = 0; column < n; ++column, at += right_step) b.add(right, at);
    }
    contract(a.values.data(), b.values.data(), value.data(), {m, n, depth});
    contract(a.magnitudes.data(), b.magnitudes.data(), magnitude.data(), {m, n, depth});
  }
  for (std::size_t i = 0; i < m * n; ++i) {
    sums.push_back({.value = value[i], .magnitude = magnitude[i]});
  }
}

// The sums of a run of output elements, scaled.
std::vector<Sum> sums_of(const Plan& plan, double scale, const Offsets& offsets, ElementRun run) {
  std::vector<Sum> sums;
  if (offsets.depth == 0) return std::vector<Sum>(static_cast<std::size_t>(run.count));
  const auto matrices = matrices_of(plan);
  const std::int64_t columns = matrices ? matrices->columns : 1;
  const bool whole_rows = run.first % columns == 0 && run.count % columns == 0;
  if (!matrices || !whole_rows) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      sums.push_back(sum_of(plan, scale, offsets, run.first + i));
    }
    return sums;
  }
  const std::int64_t group = matrices->rows * columns;
  for (std::int64_t at = run.first; at < run.first + run.count;) {
    const std::int64_t end = std::min((at / group + 1) * group, run.first + run.count);
    add_rows(plan, *matrices, offsets, {at, end - at}, sums);
    at = end;
  }
  for (Sum& sum : sums) {
    sum.value *= scale;
    sum.magnitude *= std::fabs(scale);
  }
  return sums;
}

// Shares of the work, of whole rows.
std::vector<ElementRun> pieces_of(const Plan& plan, const std::vector<ElementRun>& runs) {
  constexpr std::int64_t kElements = 1 << 16;
  std::int64_t all = 0;
  for (const ElementRun& run : runs) all += run.count;
  const std::int64_t row = plan.output_rank == 0 ? 1 : plan.loops[plan.output_rank - 1].extent;
  const std::int64_t wanted = std::clamp<std::int64_t>(all / 16, 1 << 10, kElements);
  const std::int64_t most = std::max(wanted / row, std::int64_t{1}) * row;
  std::vector<ElementRun> out;
  for (const ElementRun& run : runs) {
    for (std::int64_t at = 0; at < run.count; at += most) {
      out.push_back({run.first + at, std::min(most, run.count - at)});
    }
  }
  return out;
}

// One output element, with the error of the evaluation and of rounding the factors alone.
struct Stated {
  Number number;
  double slack = 0;
};

// The low bits of a sum of integers in integers: the accumulator wraps, and so does the output.
std::optional<std::uint64_t> wrapped(const Plan& plan, const Sum& sum,
                                     const EinsumNumerics& numerics) {
  if (!is_integer(numerics.accumulator)) return std::nullopt;
  if (plan.whole) return sum.bits;
  if (!plan.integral || !(sum.magnitude < 0x1p53)) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(sum.value));
}

// Value and bound of one output element.
Stated bounded(const Plan& plan, const Sum& sum, double length, const EinsumNumerics& numerics,
               DType dtype) {
  if (const auto bits = wrapped(plan, sum, numerics)) {
    return {convert(from_bits(numerics.accumulator, *bits), numerics.accumulator, dtype), 0};
  }
  const double u = numerics.accumulation.roundoff;
  const double floor = length * plan.operand_floor * std::max(plan.largest, 1.0);
  // Our own sum is in fp64, one rounding for each product and each sum.
  const double own = plan.operand_error + 2 * length * 0x1p-53;
  const double slack = own * sum.magnitude + floor;
  if (sum.magnitude > info(numerics.accumulator).max) return {{sum.value, kUnbounded}, slack};
  // A factor that is rounded to 0 makes a NaN of its infinite partner.
  if (!std::isfinite(sum.value)) {
    return {{sum.value, plan.operand_error > 0 ? kUnbounded : 0}, kUnbounded};
  }
  const double exact_limit = std::min(
      {numerics.accumulation.exact_integers, integers_exact_up_to(numerics.accumulator), 0x1p53});
  const bool exact = plan.integral && plan.operand_error == 0 && sum.magnitude <= exact_limit;
  // A third factor is multiplied before it is added: one more rounding each.
  const double further = plan.factors.size() > 2 ? static_cast<double>(plan.factors.size() - 2) : 0;
  const double steps =
      std::ceil(length / static_cast<double>(numerics.accumulation.depth)) + 2 + further;
  const double lost = steps * (u * sum.magnitude + smallest(numerics.accumulator));
  const double error = exact ? 0 : lost + slack;
  return {convert({sum.value, error}, DType::kF64, dtype), slack};
}

// Integers that become integers without a matrix instruction are added as the output's type does.
// Nothing becomes an integer unsaid: a factor that integer operands do not hold is multiplied
// elsewhere, in f32.
EinsumNumerics adjusted(EinsumNumerics numerics, const Einsum& einsum,
                        const std::vector<Named>& tensors, const Plan& plan, DType target) {
  const bool elsewhere = numerics.operand && is_integer(*numerics.operand) && !plan.held;
  if (elsewhere && !plan.whole) numerics = {};
  const bool integers =
      std::all_of(einsum.factors.begin(), einsum.factors.end(), [&](const EinsumTerm& factor) {
        return is_integer(find(tensors, factor.name)->tensor->dtype);
      });
  if (integers && is_integer(target) && is_float(numerics.accumulator)) {
    numerics.accumulator = target;
  }
  return numerics;
}

}  // namespace

Checked<Einsum> parse_einsum(const std::string& text, Sources& sources, Diagnostics& diags) {
  const auto formula = parse_formula(text, sources, diags);
  if (!formula) return Unexpected{formula.error()};
  const Definition& first = formula->definitions.front();
  auto product = plain_product(*formula, first);
  if (product && formula->definitions.size() == 1) return std::move(*product);
  return diags.report<diag::ExpectNotProduct>(first.left.span, text)
      .help("`kiln run --expect` takes any formula")
      .emit();
}

Checked<void> check(const Einsum& einsum, const std::vector<Named>& tensors, Diagnostics& diags) {
  const auto plan = bind_terms(einsum, tensors, diags);
  if (!plan) return Unexpected{plan.error()};
  return {};
}

double product_bound(const ProductSum& sum, const EinsumNumerics& numerics, DType factors,
                     DType output) {
  Plan plan;
  plan.integral = false;
  plan.largest = sum.largest;
  const bool held = !numerics.operand || *numerics.operand == factors;
  for (int factor = 0; factor < 2 && !held; ++factor) add_operand_error(plan, numerics);
  return bounded(plan, {.value = sum.value, .magnitude = sum.magnitude}, sum.length, numerics,
                 output)
      .number.error;
}

Checked<Output> evaluate(const Einsum& einsum, const std::vector<Named>& tensors,
                         const EinsumNumerics& numerics, Diagnostics& diags) {
  if (const auto fits = check(einsum, tensors, diags); !fits) return Unexpected{fits.error()};
  const Tensor& target = *find(tensors, einsum.output.name)->tensor;
  Output output{.name = einsum.output.name,
                .param = std::nullopt,
                .dtype = target.dtype,
                .shape = target.shape,
                .expected = {},
                .bound = {}};
  const auto elements = static_cast<std::size_t>(target.elements());
  for (auto* field : {&output.expected, &output.bound, &output.rest, &output.slack}) {
    field->resize(elements);
  }
  evaluate(einsum, tensors, numerics, {{{0, target.elements()}}}, output);
  return output;
}

void evaluate(const Einsum& einsum, const std::vector<Named>& tensors,
              const EinsumNumerics& numerics, const EinsumShare& share, Output& output) {
  Diagnostics unused;
  const auto plan = make_plan(einsum, tensors, numerics, unused);
  KILN_CHECK(plan.has_value(), "`{}` was not checked before", einsum.output.name);
  const EinsumNumerics adds = adjusted(numerics, einsum, tensors, *plan, output.dtype);
  const Offsets offsets = offsets_of(*plan);
  const auto length = static_cast<double>(offsets.depth);
  std::vector<ElementRun> pieces = pieces_of(*plan, share.runs);
  std::size_t done = 0;
  std::mutex mutex;
  for_each_index(pieces.size(), [&](std::size_t p) {
    const std::vector<Sum> sums = sums_of(*plan, einsum.scale, offsets, pieces[p]);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Stated element = bounded(*plan, sums[i], length, adds, output.dtype);
      const std::size_t at = static_cast<std::size_t>(pieces[p].first) + i;
      output.expected[at] = element.number.value;
      output.bound[at] = element.number.error;
      output.rest[at] = element.number.rest;
      const double rounding = roundoff(output.dtype) * std::fabs(element.number.value);
      output.slack[at] = element.slack + 2 * (rounding + smallest(output.dtype));
    }
    const std::scoped_lock lock(mutex);
    ++done;
    if (share.progress) share.progress(done, pieces.size());
  });
}

}  // namespace kiln::reference
