#include "sim/scalar.h"

#include <cmath>
#include <limits>

#include "ir/functions.h"
#include "ir/integer.h"
#include "sim/access.h"
#include "sim/element.h"
#include "support/exact_integer.h"

namespace kiln::sim {

namespace {

using ir::larger_of;
using ir::smaller_of;

Scalar of(std::int64_t value) {
  Scalar out;
  out.i = value;
  return out;
}

Scalar of(double value) {
  Scalar out;
  out.f = value;
  return out;
}

std::uint64_t bits_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

double round_float(DType type, double value) {
  if (type == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return round_to(type, value);
}

// The result of a binary operation on floats, from its value in fp64.
template <ir::BinaryClass kClass, class Value>
Scalar result_of(DType type, Value value) {
  using enum ir::BinaryClass;
  if constexpr (kClass == kArithmetic || kClass == kFunction) return of(round_float(type, value));
  if constexpr (kClass == kExtremum) return of(value);
  if constexpr (kClass == kComparison) return of(std::int64_t{value});
  KILN_UNREACHABLE("no such operation on {}", name(type));
}

// clang-format off
Scalar apply_float(ir::BinaryKind kind, DType type, double a, double b) {
  switch (kind) {
#define KILN_BINARY(Name, name, text, binding, category, floats, ...) \
    case ir::BinaryKind::k##Name: return result_of<ir::BinaryClass::category>(type, floats);
#include "ir/binary.def"
#undef KILN_BINARY
  }
  KILN_UNREACHABLE("no such operation on {}", name(type));
}
// clang-format on

std::int64_t truncate(DType to, double value) {
  const double saturated = round_to(to, value);
  if (saturated >= 0x1p63) {
    return info(to).kind == NumberKind::kUnsigned && saturated < 0x1p64
               ? static_cast<std::int64_t>(static_cast<std::uint64_t>(saturated))
           : info(to).kind == NumberKind::kUnsigned ? -1
                                                    : std::numeric_limits<std::int64_t>::max();
  }
  return static_cast<std::int64_t>(saturated);
}

// The value of type `to` that has the bits of one of type `from`.
Scalar with_bits(DType from, DType to, Scalar value) {
  std::byte bytes[8] = {};
  store_scalar(from, bytes, value);
  return load_scalar(to, bytes);
}

Scalar evaluate(Machine& machine, Warp& warp, const ScalarPlan& plan, std::uint32_t lane) {
  const Scalar a = warp.value(plan.a, lane);
  if (plan.kind == ir::OpKind::kConst) return plan.constant;
  if (plan.kind == ir::OpKind::kUnary) return apply(plan.unary, plan.operand, a);
  if (plan.kind == ir::OpKind::kCast) return convert(plan.operand, plan.type, a);
  if (plan.kind == ir::OpKind::kBitcast) return with_bits(plan.operand, plan.type, a);
  if (plan.kind == ir::OpKind::kChoose) return warp.value(a.i != 0 ? plan.b : plan.c, lane);
  if (plan.kind == ir::OpKind::kFma) {
    return of(ir::fused(plan.type, a.f, warp.value(plan.b, lane).f, warp.value(plan.c, lane).f));
  }
  if (plan.kind == ir::OpKind::kBinary) {
    const auto out = apply(plan.binary, plan.operand, a, warp.value(plan.b, lane));
    if (out) return *out;
    report_at(machine, warp, ReportKind::kDivisionByZero, "an integer is divided by zero",
              format("division by {}", thread_of_block_text(machine, warp, lane)));
    return of(std::int64_t{0});
  }
  KILN_UNREACHABLE("`{}` computes no scalar", ir::mnemonic(plan.kind));
}

// Calls `compute(lane)` for the active lanes, or once for all when they agree.
template <class Compute>
void for_lanes(Warp& warp, bool uniform, Scalar* out, Compute&& compute) {
  if (!uniform) {
    for_each_lane(warp.mask, [&](std::uint32_t lane) { out[lane] = compute(lane); });
    return;
  }
  const Scalar value = compute(warp.first_lane());
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) out[lane] = value;
}

}  // namespace

std::int64_t wrap(DType type, std::int64_t value) { return ir::IntegerType(type).wrapped(value); }

double as_number(DType type, Scalar value) {
  if (is_float(type)) return value.f;
  if (info(type).kind == NumberKind::kUnsigned) return static_cast<double>(bits_of(value.i));
  return static_cast<double>(value.i);
}

std::optional<Scalar> apply(ir::BinaryKind kind, DType type, Scalar left, Scalar right) {
  if (is_float(type)) return apply_float(kind, type, left.f, right.f);
  const auto out = ir::value_of(kind, type, left.i, right.i);
  return out ? std::optional(of(*out)) : std::nullopt;
}

Scalar apply(ir::UnaryKind kind, DType type, Scalar operand) {
  if (kind == ir::UnaryKind::kNegate) {
    if (is_float(type)) return of(round_float(type, -operand.f));
    return of(wrap(type, ir::IntegerType::minus(0, operand.i)));
  }
  if (kind == ir::UnaryKind::kNot) return of(std::int64_t{operand.i == 0});
  if (kind == ir::UnaryKind::kBitNot) return of(wrap(type, ~operand.i));
  return of(round_float(type, ir::value_of(kind, operand.f)));
}

Scalar convert(DType from, DType to, Scalar value) {
  if (from == to) return value;
  if (is_float(from) && is_float(to)) return of(round_float(to, value.f));
  if (is_float(from)) {
    if (to == DType::kBool) return of(std::int64_t{value.f != 0});
    return of(truncate(to, value.f));
  }
  if (!is_float(to)) return of(wrap(to, value.i));
  // By way of the nearest double a 64-bit integer would be rounded twice.
  const ExactInteger exact =
      info(from).kind == NumberKind::kUnsigned ? split(bits_of(value.i)) : split(value.i);
  return of(to == DType::kF64 ? exact.value : round_float(to, to_odd(exact)));
}

void execute_scalar(Machine& machine, Warp& warp, const ScalarPlan& plan) {
  for_lanes(warp, plan.uniform, &warp.value(plan.result, 0),
            [&](std::uint32_t lane) { return evaluate(machine, warp, plan, lane); });
}

void execute_index(Machine&, Warp& warp, const IndexPlan& plan) {
  for_lanes(warp, plan.expr.uniform(), &warp.value(plan.result, 0), [&](std::uint32_t lane) {
    return of(wrap(plan.type, plan.expr.evaluate(warp.vars.data(), lane)));
  });
}

void execute_bind(Machine&, Warp& warp, const BindPlan& plan) {
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    warp.var(plan.var, lane) = warp.value(plan.value, lane).i;
  });
}

void execute_cell(Machine& machine, Warp& warp, const CellPlan& plan) {
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    const std::uint32_t bit = 1U << lane;
    if (plan.sets) {
      warp.value(plan.cell, lane) = warp.value(plan.value, lane);
      warp.cell_set[plan.cell] |= bit;
      return;
    }
    if (machine.checks && (warp.cell_set[plan.cell] & bit) == 0) {
      const std::string& cell = machine.function.values[ir::ValueId{plan.cell}].name;
      report_at(machine, warp, ReportKind::kUninitialised,
                format("`{}` is read before it has a value", cell),
                format("read of {} by {}", cell, thread_text(warp.index, lane)));
    }
    warp.value(plan.value, lane) = warp.value(plan.cell, lane);
  });
}

void execute_assert(Machine& machine, Warp& warp, const AssertPlan& plan) {
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    if (warp.value(plan.condition, lane).i != 0) return;
    report_at(machine, warp, ReportKind::kAssertion, plan.message,
              format("assertion fails {} {}", machine.era == nullptr ? "on" : "in",
                     thread_of_block_text(machine, warp, lane)));
  });
}

void execute_print(Machine& machine, Warp& warp, const PrintPlan& plan) {
  if (machine.printing == nullptr || machine.counting != nullptr) return;
  Printing& to = *machine.printing;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    if (to.printed.size() >= to.most) {
      ++to.dropped;
      return;
    }
    const bool in_kernel = machine.era != nullptr;
    to.printed.push_back({.span = machine.span(warp.pc),
                          .phase = to.phase,
                          .block = in_kernel ? machine.block_numbers[warp.block] : 0,
                          .thread = std::int64_t{warp.index} * kLanes + lane,
                          .who = thread_of_block_text(machine, warp, lane),
                          .text = ir::fill_in(plan.text, "%", [&](std::size_t i) {
                            const PrintPlan::Value& value = plan.values[i];
                            const Scalar now = warp.value(value.id, lane);
                            return ir::printed(value.dtype, is_float(value.dtype) ? 0 : now.i,
                                               is_float(value.dtype) ? now.f : 0.0);
                          })});
  });
}

}  // namespace kiln::sim
