#include "runtime/host_program.h"

#include <algorithm>
#include <cmath>

#include "ir/functions.h"
#include "ir/integer.h"

namespace kiln::runtime {

using ir::BinaryKind;
using ir::OpId;

namespace {

DType scalar_dtype(const ir::Function& function, ir::ValueId value) {
  const ir::Type& type = function.type(value);
  if (const auto* cell = std::get_if<ir::CellType>(&type)) return cell->dtype;
  const auto* scalar = std::get_if<ir::ScalarType>(&type);
  KILN_CHECK(scalar != nullptr, "`%{}` of `@{}` is no scalar", function.values[value].name,
             function.name);
  return scalar->dtype;
}

// Integers wrap as they do in the kernel, floats round.
double as_dtype(DType dtype, double value) {
  if (!is_integer(dtype) || std::fabs(value) >= 0x1p53) return round_to(dtype, value);
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  return decode(dtype, bits);
}

std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

// As value_of takes integers: those beyond s64 by their bits.
std::int64_t held(double value) {
  if (value < 0x1p63) return whole(value);
  return value < 0x1p64 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(value)) : -1;
}

// Of integers a division by zero, which has no value, gives 0.
double apply(BinaryKind kind, DType dtype, double left, double right) {
  if (is_float(dtype)) return ir::value_of(kind, left, right);
  const std::int64_t out = ir::value_of(kind, dtype, held(left), held(right)).value_or(0);
  const bool is_unsigned = info(dtype).kind == NumberKind::kUnsigned;
  return is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(out))
                     : static_cast<double>(out);
}

double apply(ir::UnaryKind kind, double operand) {
  if (kind == ir::UnaryKind::kNegate) return -operand;
  if (kind == ir::UnaryKind::kNot) return operand == 0 ? 1 : 0;
  if (kind == ir::UnaryKind::kBitNot) return static_cast<double>(~whole(operand));
  return ir::value_of(kind, operand);
}

// Of what is kept until the host part has ended.
constexpr std::uint64_t kStepsOfKept = 1000;

Error no_elements(const ir::Function& function, std::string_view does, ir::ValueId view) {
  return Error{"a GPU cannot run", function.name,
               format("its host part {} elements of `{}`, which only `--on sim` does", does,
                      function.values[ir::root_of(function, view)].name)};
}

}  // namespace

HostProgram::HostProgram(const ir::Function& function, const ir::Arguments& arguments)
    : function_(function), arguments_(arguments) {}

Result<void> HostProgram::run(const Hooks& hooks, std::uint64_t steps_max) {
  hooks_ = &hooks;
  steps_max_ = steps_max;
  steps_ = 0;
  vars_ = arguments_.vars;
  vars_.resize(function_.vars.size());
  scalars_.assign(function_.values.size(), 0);
  returned_ = {};
  printed_.clear();
  stopped_ = false;
  leaving_ = Leaving::kNothing;
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    const ir::Param& param = function_.params[i];
    scalars_[param.value.index] = param.var.valid() ? static_cast<double>(vars_[param.var.index])
                                                    : arguments_.params[i].scalar;
  }
  return region(function_.body);
}

Result<void> HostProgram::region(ir::RegionId region) {
  for (const OpId id : function_.regions[region].ops) {
    if (stopped_ || leaving_ != Leaving::kNothing) return {};
    if (auto done = step(id); !done) return done;
  }
  return {};
}

Result<void> HostProgram::spend(std::uint64_t steps) {
  steps_ += steps;
  if (steps_ <= steps_max_) return {};
  return Unexpected{Error{"cannot launch the kernels of", function_.name,
                          format("its host part has not ended after {} steps", steps_max_)}};
}

Result<void> HostProgram::step(OpId id) {
  if (auto goes_on = spend(1); !goes_on) return goes_on;
  return kiln::visit([&](const auto& op) { return run_op(id, op); }, function_.ops[id].data);
}

void HostProgram::set(OpId id, double value) {
  const ir::ValueId result = function_.ops[id].result;
  scalars_[result.index] = as_dtype(scalar_dtype(function_, result), value);
}

Result<void> HostProgram::run_op(OpId id, const ir::Parallel&) {
  if (auto goes_on = spend(kStepsOfKept); !goes_on) return goes_on;
  return hooks_->launch(id);
}

Result<bool> HostProgram::trip(ir::RegionId body) {
  if (auto done = region(body); !done) return Unexpected{done.error()};
  const bool goes_on = !stopped_ && leaving_ != Leaving::kLoop;
  leaving_ = Leaving::kNothing;
  return goes_on;
}

Result<void> HostProgram::run_op(OpId, const ir::For& op) {
  const std::int64_t upper = op.upper.evaluate(vars_);
  for (std::int64_t i = op.lower.evaluate(vars_); i < upper; i += op.step) {
    if (auto goes_on = spend(1); !goes_on) return goes_on;
    vars_[op.var.index] = i;
    const Result<bool> goes_on = trip(op.body);
    if (!goes_on) return Unexpected{goes_on.error()};
    if (!*goes_on) return {};
  }
  return {};
}

Result<void> HostProgram::run_op(OpId, const ir::Loop& op) {
  while (true) {
    if (auto goes_on = spend(1); !goes_on) return goes_on;
    const Result<bool> goes_on = trip(op.body);
    if (!goes_on) return Unexpected{goes_on.error()};
    if (!*goes_on) return {};
  }
}
Result<void> HostProgram::run_op(OpId, const ir::Break&) {
  leaving_ = Leaving::kLoop;
  return {};
}
Result<void> HostProgram::run_op(OpId, const ir::Continue&) {
  leaving_ = Leaving::kTrip;
  return {};
}

Result<void> HostProgram::run_op(OpId, const ir::If& op) {
  if (scalar(op.condition) != 0) return region(op.then_body);
  return op.else_body.valid() ? region(op.else_body) : Result<void>{};
}

Result<void> HostProgram::run_op(OpId, const ir::Return& op) {
  returned_ = op.value;
  stopped_ = true;
  return {};
}

Result<void> HostProgram::run_op(OpId id, const ir::Alloc& op) {
  const ir::ValueId result = function_.ops[id].result;
  std::optional<double> initial;
  if (op.initial.valid()) initial = scalar(op.initial);
  const auto* view = std::get_if<ir::ViewType>(&function_.type(result));
  if (view == nullptr) {
    if (std::holds_alternative<ir::CellType>(function_.type(result))) set(id, initial.value_or(0));
    return {};
  }
  if (auto goes_on = spend(kStepsOfKept); !goes_on) return goes_on;
  std::vector<std::int64_t> shape;
  for (const ir::Expr& extent : view->shape) shape.push_back(extent.evaluate(vars_));
  return hooks_->allocate(result, shape, initial);
}

Result<void> HostProgram::run_op(OpId, const ir::Subview&) { return {}; }
Result<void> HostProgram::run_op(OpId, const ir::Alias&) { return {}; }

Result<void> HostProgram::run_op(OpId id, const ir::Const& op) {
  set(id, op.value);
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Index& op) {
  set(id, static_cast<double>(op.expr.evaluate(vars_)));
  return {};
}
Result<void> HostProgram::run_op(OpId, const ir::Bind& op) {
  vars_[op.var.index] = whole(scalar(op.value));
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Unary& op) {
  set(id, apply(op.kind, scalar(op.operand)));
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Binary& op) {
  const DType dtype = scalar_dtype(function_, op.left);
  set(id, apply(op.kind, dtype, scalar(op.left), scalar(op.right)));
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Cast& op) {
  set(id, is_integer(scalar_dtype(function_, function_.ops[id].result))
              ? std::trunc(scalar(op.operand))
              : scalar(op.operand));
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Choose& op) {
  set(id, scalar(scalar(op.condition) != 0 ? op.if_true : op.if_false));
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Fma& op) {
  const DType dtype = scalar_dtype(function_, op.a);
  set(id, ir::fused(dtype, scalar(op.a), scalar(op.b), scalar(op.c)));
  return {};
}
Result<void> HostProgram::run_op(OpId id, const ir::Get& op) {
  set(id, scalar(op.cell));
  return {};
}
Result<void> HostProgram::run_op(OpId, const ir::Set& op) {
  scalars_[op.cell.index] = as_dtype(scalar_dtype(function_, op.cell), scalar(op.value));
  return {};
}
Result<void> HostProgram::run_op(OpId, const ir::Assert& op) {
  if (scalar(op.condition) != 0) return {};
  return Unexpected{Error{"an assertion fails in", function_.name, op.message}};
}

Result<void> HostProgram::run_op(OpId id, const ir::Print& op) {
  if (auto goes_on = spend(kStepsOfKept); !goes_on) return goes_on;
  const auto value = [&](std::size_t i) {
    const double now = scalar(op.values[i]);
    const DType dtype = scalar_dtype(function_, op.values[i]);
    return ir::printed(dtype, is_float(dtype) ? 0 : static_cast<std::int64_t>(now), now);
  };
  printed_.push_back({.span = function_.ops[id].span,
                      .who = "the host",
                      .text = ir::fill_in(op.text, "%", value)});
  return {};
}

Result<void> HostProgram::run_op(OpId, const ir::Read& op) {
  return Unexpected{no_elements(function_, "reads", op.view)};
}
Result<void> HostProgram::run_op(OpId, const ir::Write& op) {
  return Unexpected{no_elements(function_, "writes", op.view)};
}

template <class Data>
Result<void> HostProgram::run_op(OpId id, const Data&) {
  return Unexpected{
      Error{"a GPU run has no host side for", function_.name,
            format("`{}` outside of a kernel", ir::mnemonic(function_.ops[id].kind()))}};
}

}  // namespace kiln::runtime
