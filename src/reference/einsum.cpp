#include "reference/einsum.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "reference/number.h"

namespace kiln::reference {

namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A hand-written reader of `name[i,j] = factor * factor ...`.
class Reader {
 public:
  Reader(std::string_view text, FileId file, Diagnostics& diags)
      : text_(text), file_(file), diags_(diags) {}

  Checked<Einsum> einsum() {
    Einsum out;
    auto output = term();
    if (!output) return Unexpected{output.error()};
    out.output = std::move(*output);
    if (!accept('=')) return expected("`=` after the output");
    do {
      skip_space();
      if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '-' || text_[at_] == '.')) {
        auto factor = number();
        if (!factor) return Unexpected{factor.error()};
        out.scale *= *factor;
        continue;
      }
      auto factor = term();
      if (!factor) return Unexpected{factor.error()};
      out.factors.push_back(std::move(*factor));
    } while (accept('*'));
    skip_space();
    if (at_ != text_.size()) return expected("`*` or the end");
    return out;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] Span here() const {
    const auto begin = static_cast<std::uint32_t>(at_);
    return {file_, begin, begin + 1};
  }
  Unexpected<Reported> expected(std::string_view what) {
    const std::string seen = at_ < text_.size() ? format("`{}`", text_[at_]) : "the end";
    return diags_.report<diag::ExpectSyntax>(here(), seen, what)
        .help("write it like `output[m,n] = lhs[m,k] * rhs[n,k]`")
        .emit();
  }
  Checked<double> number() {
    const std::string rest(text_.substr(at_, 64));
    char* end = nullptr;
    const double value = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str()) return expected("a number");
    at_ += static_cast<std::size_t>(end - rest.c_str());
    return value;
  }
  Checked<std::string> name(Span& span) {
    skip_space();
    const std::size_t begin = at_;
    if (at_ >= text_.size() || !is_name_start(text_[at_])) return expected("a name");
    while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    span = {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
    return std::string(text_.substr(begin, at_ - begin));
  }
  Checked<EinsumTerm> term() {
    EinsumTerm out;
    auto tensor = name(out.span);
    if (!tensor) return Unexpected{tensor.error()};
    out.name = std::move(*tensor);
    if (!accept('[')) return expected(format("`[` after `{}`", out.name));
    do {
      Span span;
      auto index = name(span);
      if (!index) return Unexpected{index.error()};
      out.indices.push_back(std::move(*index));
      out.index_spans.push_back(span);
    } while (accept(','));
    if (!accept(']')) return expected("`,` or `]`");
    return out;
  }

  std::string_view text_;
  FileId file_;
  Diagnostics& diags_;
  std::size_t at_ = 0;
};

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

// One factor is rounded to the operands' type before it is multiplied.
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
  if (!held) add_operand_error(plan, numerics);
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

// Advances the odometer over loops [begin, end); false after the last combination.
bool advance(const Plan& plan, std::size_t begin, std::size_t end, std::vector<std::int64_t>& index,
             std::vector<std::int64_t>& offsets) {
  for (std::size_t l = end; l-- > begin;) {
    const bool wraps = ++index[l] == plan.loops[l].extent;
    const std::int64_t moved = wraps ? 1 - plan.loops[l].extent : 1;
    for (std::size_t f = 0; f < plan.factors.size(); ++f) {
      offsets[f] += moved * plan.factors[f].stride[l];
    }
    if (!wraps) return true;
    index[l] = 0;
  }
  return false;
}

Sum contract(const Plan& plan, double scale, std::vector<std::int64_t>& index,
             std::vector<std::int64_t> offsets) {
  Sum sum;
  do {
    double product = scale;
    double magnitude = std::fabs(scale);
    std::uint64_t bits =
        plan.whole ? static_cast<std::uint64_t>(static_cast<std::int64_t>(scale)) : 0;
    for (std::size_t f = 0; f < plan.factors.size(); ++f) {
      const auto at = static_cast<std::size_t>(offsets[f]);
      product *= plan.factors[f].values[at];
      magnitude *= plan.factors[f].magnitude(at);
      if (plan.whole) bits *= plan.factors[f].bits[at];
    }
    sum.bits += bits;
    sum.value += product;
    if (std::isfinite(product)) sum.magnitude += magnitude;
  } while (advance(plan, plan.output_rank, plan.loops.size(), index, offsets));
  return sum;
}

// One output element, with the error of the evaluation and of rounding the factors alone.
struct Element {
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
Element bounded(const Plan& plan, const Sum& sum, double length, const EinsumNumerics& numerics,
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
EinsumNumerics adjusted(EinsumNumerics numerics, const Einsum& einsum,
                        const std::vector<Named>& tensors, DType target) {
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
  const FileId file = sources.add("--expect", text);
  return Reader(sources.text(file), file, diags).einsum();
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
  const auto plan = make_plan(einsum, tensors, numerics, diags);
  if (!plan) return Unexpected{plan.error()};
  const Tensor& target = *find(tensors, einsum.output.name)->tensor;
  const EinsumNumerics adds = adjusted(numerics, einsum, tensors, target.dtype);
  Output output{.name = einsum.output.name,
                .param = std::nullopt,
                .dtype = target.dtype,
                .shape = target.shape,
                .expected = {},
                .bound = {}};
  double length = 1;
  for (std::size_t l = plan->output_rank; l < plan->loops.size(); ++l) {
    length *= static_cast<double>(plan->loops[l].extent);
  }
  const std::int64_t elements = target.elements();
  std::vector<std::int64_t> index(plan->loops.size());
  std::vector<std::int64_t> offsets(plan->factors.size());
  for (std::int64_t i = 0; i < elements; ++i) {
    const Sum sum = length == 0 ? Sum{} : contract(*plan, einsum.scale, index, offsets);
    const Element element = bounded(*plan, sum, length, adds, target.dtype);
    output.expected.push_back(element.number.value);
    output.bound.push_back(element.number.error);
    output.rest.push_back(element.number.rest);
    const double rounding = roundoff(target.dtype) * std::fabs(element.number.value);
    output.slack.push_back(element.slack + 2 * (rounding + smallest(target.dtype)));
    advance(*plan, 0, plan->output_rank, index, offsets);
  }
  return output;
}

}  // namespace kiln::reference
