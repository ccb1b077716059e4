#include "reference/formula_block.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/functions.h"

namespace kiln::reference {

namespace {

using ir::BinaryKind;

// The slack of an operation is its error in fp64 on operands with theirs.
DType slack_type(DType type) { return is_float(type) ? DType::kF64 : type; }

Number with_slack(const Element& element) {
  return {element.number.value, element.slack, element.number.rest};
}

// Values in fp64 and nothing else: without error, slack and rest.
bool is_plain(const Values& values) { return values.exact() && values.rest.empty(); }

// Whether a machine that computes in `type` has exactly this where arithmetic on exact operands gives it, and so has
// fp64.
bool holds(DType type, double value) {
  if (type == DType::kF32)
    return static_cast<double>(static_cast<float>(value)) == value && std::isfinite(value);
  const bool whole = std::trunc(value) == value && std::fabs(value) < 0x1p53;
  if (!whole || type == DType::kF64) return whole;
  const bool is_zero_below = value == 0 && std::signbit(value);  // of integers there is none
  return !is_zero_below && (type == DType::kS64 || (type == DType::kU64 && value >= 0));
}

bool is_exact(const Element& element) { return element.number.error == 0 && element.slack == 0; }

// An input that is no number, or what was made of one: arithmetic gives no number for sure.
bool is_surely_nan(const Element& element) {
  return std::isnan(element.number.value) && element.number.error != kUnbounded;
}

Element surely_nan() { return {{std::numeric_limits<double>::quiet_NaN(), 0}, 0}; }

// What is combined exactly of exact operands, in the operation's type, is exact in both ways.
Element both(const Number& machine, double slack) {
  return {machine, std::isnan(slack) ? kUnbounded : slack};
}

// Calls `act(element, offset)` for the first element of each row of the space, in order.
template <class Act>
void for_each_row(const Space& space, std::int64_t first, const std::vector<std::int64_t>& strides,
                  Act&& act) {
  const std::size_t count = size_of(space);
  const auto inner = static_cast<std::size_t>(space.empty() ? 1 : space.back().count);
  std::vector<std::int64_t> index(space.size());
  std::int64_t offset = first;
  for (std::size_t i = 0; i < count; i += inner) {
    act(i, offset);
    for (std::size_t d = space.size(); d-- > 1;) {
      const std::size_t axis = d - 1;
      offset += strides[axis];
      if (++index[axis] < space[axis].count) break;
      offset -= strides[axis] * space[axis].count;
      index[axis] = 0;
    }
  }
}

}  // namespace

std::size_t size_of(const Space& space) {
  std::int64_t out = 1;
  for (const Axis& axis : space) out *= axis.count;
  return static_cast<std::size_t>(out);
}

Space restricted(const Space& space, std::uint64_t loops) {
  Space out;
  for (const Axis& axis : space) {
    if ((loops >> axis.loop & 1) != 0) out.push_back(axis);
  }
  return out;
}

std::vector<std::int64_t> strides_in(const Space& space, const Space& block) {
  std::vector<std::int64_t> out(space.size());
  std::int64_t stride = 1;
  for (std::size_t d = block.size(); d-- > 0; stride *= block[d].count) {
    for (std::size_t a = 0; a < space.size(); ++a) {
      if (space[a].loop == block[d].loop) out[a] = stride;
    }
  }
  return out;
}

std::vector<Box> boxes_of(const std::vector<std::int64_t>& shape, std::int64_t first,
                          std::int64_t count, std::int64_t most) {
  std::vector<Box> out;
  while (count > 0) {
    Box box{first, std::vector<std::int64_t>(shape.size()),
            std::vector<std::int64_t>(shape.size(), 1)};
    std::int64_t rest = first;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) box.begin[d] = rest % shape[d];
    // Whole dimensions from the last on, while they fit; then a part of the next one.
    std::int64_t size = 1;
    const std::int64_t room = std::min(count, std::max<std::int64_t>(most, 1));
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t fits = std::min(shape[d] - box.begin[d], room / size);
      box.count[d] = std::max<std::int64_t>(fits, 1);
      size *= box.count[d];
      if (box.count[d] != shape[d]) break;
    }
    out.push_back(std::move(box));
    first += size;
    count -= size;
  }
  return out;
}

Space boxed(Space space, const Box& box) {
  for (std::size_t a = 0; a < space.size(); ++a) {
    space[a].begin += box.begin[a];
    space[a].count = box.count[a];
  }
  return space;
}

void Values::set(std::size_t i, const Element& element) {
  value[i] = element.number.value;
  if (element.number.error != 0 && error.empty()) error.resize(value.size());
  if (element.slack != 0 && slack.empty()) slack.resize(value.size());
  if (element.number.rest != 0 && rest.empty()) rest.resize(value.size());
  if (!error.empty()) error[i] = element.number.error;
  if (!slack.empty()) slack[i] = element.slack;
  if (!rest.empty()) rest[i] = element.number.rest;
}

Values gathered(const Values& from, const Space& space, std::int64_t first,
                const std::vector<std::int64_t>& steps) {
  const std::int64_t inner = space.empty() ? 1 : space.back().count;
  const std::int64_t step = space.empty() ? 0 : steps.back();
  Values out;
  const auto spread = [&](const std::vector<double>& source, std::vector<double>& target) {
    if (source.empty()) return;
    target.resize(size_of(space));
    for_each_row(space, first, steps, [&](std::size_t i, std::int64_t offset) {
      double* to = target.data() + i;
      const double* row = source.data() + offset;
      if (step == 0)
        std::fill_n(to, inner, *row);
      else if (step == 1)
        std::copy_n(row, inner, to);
      else
        for (std::int64_t n = 0; n < inner; ++n) to[n] = row[n * step];
    });
  };
  spread(from.value, out.value);
  spread(from.error, out.error);
  spread(from.slack, out.slack);
  spread(from.rest, out.rest);
  return out;
}

Values expanded(Values from, const Space& of, const Space& to) {
  if (of == to) return from;
  return gathered(from, to, 0, strides_in(to, of));
}

Values coerced(Values values, DType from, DType to) {
  if (from == to) return values;
  Values out(values.size());
  const bool counts = is_float(to) && !is_float(from) && is_plain(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (counts && holds(to, values.value[i])) {
      out.value[i] = values.value[i];
      continue;
    }
    Element element = values.at(i);
    if (is_float(to) && !is_float(from)) {
      // A program converts it where it likes, or not at all: it is not rounded, but may be.
      const double value = element.number.value;
      const bool held = element.number.rest == 0 && round_to(to, value) == value;
      const bool rounds = !held && !std::isnan(value);  // an integer that is not known stays so
      const double error = rounds ? roundoff(to) * std::fabs(value) : 0;
      element.number = {value, element.number.error + error, 0};
      element.slack += error;
    } else {
      element =
          both(convert(element.number, from, to), convert(with_slack(element), from, to).error);
    }
    out.set(i, element);
  }
  return out;
}

Values apply(ir::UnaryKind kind, DType type, const Values& operand) {
  Values out(operand.size());
  const bool function = ir::is_function(kind);
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const Element element = operand.at(i);
    if (is_surely_nan(element) && kind != ir::UnaryKind::kNot) {
      out.set(i, surely_nan());
      continue;
    }
    const Number machine = apply(kind, type, element.number);
    if (!function && is_exact(element)) {
      out.set(i, {machine, 0});
      continue;
    }
    Number fine = with_slack(element);
    // What rounds nothing (a floor) is used on purpose: there it matters what the argument is.
    const bool rounds = function && ir::info(kind).f32_ulps >= 0;
    if (rounds && std::isfinite(fine.value)) fine.error += roundoff(type) * std::fabs(fine.value);
    out.set(i, both(machine, apply(kind, slack_type(type), fine).error));
  }
  return out;
}

Element apply(BinaryKind kind, DType type, const Element& left, const Element& right) {
  const bool is_arithmetic = ir::class_of(kind) == ir::BinaryClass::kArithmetic;
  if (is_arithmetic && (is_surely_nan(left) || is_surely_nan(right))) return surely_nan();
  const Number machine = apply(kind, type, left.number, right.number);
  if (machine.error == 0 && is_exact(left) && is_exact(right)) return {machine, 0};
  return both(machine, apply(kind, slack_type(type), with_slack(left), with_slack(right)).error);
}

namespace {

// One operation on many elements, which are plain on both sides.
struct Plain {
  BinaryKind kind;
  DType type;
  const Values& left;
  const Values& right;

  // Element by element what `combine` gives, where it `holds`; else as for any element.
  template <class Combine, class Holds>
  [[nodiscard]] Values each(Combine combine, Holds holds) const {
    Values out(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double value = combine(left.value[i], right.value[i]);
      if (holds(value)) {
        out.value[i] = value;
      } else {
        out.set(i, apply(kind, type, left.at(i), right.at(i)));
      }
    }
    return out;
  }
  template <class Combine>
  [[nodiscard]] Values each(Combine combine) const {
    if (ir::class_of(kind) != ir::BinaryClass::kArithmetic) {
      return each(combine, [](double) { return true; });
    }
    if (type == DType::kF32) {  // the usual one, in a loop of its own
      return each(combine, [](double value) { return holds(DType::kF32, value); });
    }
    return each(combine, [this](double value) { return holds(type, value); });
  }
};

}  // namespace

Values apply(BinaryKind kind, DType type, const Values& left, const Values& right) {
  if (is_plain(left) && is_plain(right)) {
    const Plain plain{kind, type, left, right};
    switch (kind) {
      case BinaryKind::kAdd: return plain.each(std::plus<double>());
      case BinaryKind::kSub: return plain.each(std::minus<double>());
      case BinaryKind::kMul: return plain.each(std::multiplies<double>());
      case BinaryKind::kLt: return plain.each(std::less<double>());
      case BinaryKind::kLe: return plain.each(std::less_equal<double>());
      case BinaryKind::kGt: return plain.each(std::greater<double>());
      case BinaryKind::kGe: return plain.each(std::greater_equal<double>());
      case BinaryKind::kEq: return plain.each(std::equal_to<double>());
      case BinaryKind::kNe: return plain.each(std::not_equal_to<double>());
      case BinaryKind::kLogicalAnd: return plain.each(std::logical_and<double>());
      case BinaryKind::kLogicalOr: return plain.each(std::logical_or<double>());
      case BinaryKind::kDiv:
      case BinaryKind::kRem:
      case BinaryKind::kAnd:
      case BinaryKind::kOr:
      case BinaryKind::kXor:
      case BinaryKind::kShl:
      case BinaryKind::kShr:
      case BinaryKind::kMin:
      case BinaryKind::kMax:
      case BinaryKind::kPow:
      case BinaryKind::kAtan2: break;  // one by one
    }
  }
  Values out(left.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    out.set(i, apply(kind, type, left.at(i), right.at(i)));
  }
  return out;
}

Values choose(const Values& condition, const Values& if_true, const Values& if_false) {
  Values out(condition.size());
  if (is_plain(condition)) {
    const auto pick = [&](const std::vector<double>& yes, const std::vector<double>& no,
                          std::vector<double>& to) {
      if (yes.empty() && no.empty()) return;
      for (std::size_t i = 0; i < condition.size(); ++i) {
        const std::vector<double>& from = condition.value[i] != 0 ? yes : no;
        const double picked = from.empty() ? 0 : from[i];
        if (picked != 0 && to.empty()) to.resize(condition.size());  // else it stays empty
        if (!to.empty()) to[i] = picked;
      }
    };
    pick(if_true.value, if_false.value, out.value);
    pick(if_true.error, if_false.error, out.error);
    pick(if_true.slack, if_false.slack, out.slack);
    pick(if_true.rest, if_false.rest, out.rest);
    return out;
  }
  for (std::size_t i = 0; i < condition.size(); ++i) {
    const Element which = condition.at(i);
    const Element yes = if_true.at(i);
    const Element no = if_false.at(i);
    const Number machine = choose(which.number, yes.number, no.number);
    out.set(i, both(machine, choose(with_slack(which), with_slack(yes), with_slack(no)).error));
  }
  return out;
}

Values converted(const Values& values, DType from, DType to, DType held) {
  Values out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Element element = values.at(i);
    const Number machine = convert(element.number, from, to);
    const Number fine = is_exact(element) ? Number{} : convert(with_slack(element), from, to);
    out.set(i, both(convert(machine, to, held), fine.error));
  }
  return out;
}

}  // namespace kiln::reference
