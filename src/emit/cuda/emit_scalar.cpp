// Scalars: expressions, cells and assertions.
#include <array>

#include "emit/cuda/emit_op.h"
#include "ir/functions.h"
#include "ir/printed.h"

namespace kiln::emit {

using ir::BinaryKind;
using ir::Op;
using ir::UnaryKind;
using ir::ValueId;

namespace {

DType scalar_dtype(const Kernel& kernel, ValueId value) {
  const ir::Type& type = kernel.function.type(value);
  if (const auto* cell = std::get_if<ir::CellType>(&type)) return cell->dtype;
  const auto* scalar = std::get_if<ir::ScalarType>(&type);
  KILN_CHECK(scalar != nullptr, "`{}` is no scalar", kernel.function.values[value].name);
  return scalar->dtype;
}

// How C++ writes a binary operation: an operator, or a function where `binding` is kPrimary.
struct BinarySpelling {
  const char* sign;
  Binding binding;
};
constexpr BinarySpelling kBinary[] = {
#define KILN_BINARY(Name, name, text, binding, ...) {text, Binding::binding},
#include "ir/binary.def"
#undef KILN_BINARY
};

// By UnaryKind, up to the functions.
constexpr std::array<const char*, 3> kUnarySigns = {"-", "!", "~"};
static_assert(!ir::is_function(UnaryKind::kBitNot) &&
              static_cast<std::size_t>(UnaryKind::kBitNot) + 1 == kUnarySigns.size());

Binding tighter(Binding binding) { return static_cast<Binding>(static_cast<int>(binding) + 1); }

// C++ computes in int what is narrower: back to the type.
Spelled narrowed(DType dtype, Spelled spelled) {
  if (is_float(dtype) || info(dtype).bits >= 32) return spelled;
  return {format("{}({})", type_name(dtype), spelled.text)};
}

// A value that C++ computes only if it needs it.
Spelled chosen(Kernel& kernel, ValueId value) {
  kernel.shorthands.enter_choice();
  Spelled out = scalar(kernel, value);
  kernel.shorthands.leave_choice();
  return out;
}

Spelled spell_op(Kernel& kernel, const Op&, const ir::Read& read) {
  const ir::ResolvedView view = ir::resolve_view(kernel.function, read.view);
  if (read.block.empty()) return {element(kernel, view, read.index)};
  kernel.requirements.headers.insert("cluster.cuh");
  ir::Expr rank = 0;  // in the cluster, as the hardware counts
  for (std::size_t axis = read.block.size(); axis-- > 0;) {
    rank = rank * kernel.plan.cluster[axis] + read.block[axis];
  }
  return {element(kernel, view, read.index, rank)};
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Const& constant) {
  return literal(scalar_dtype(kernel, op.result), constant.value);
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Index& index) {
  const DType dtype = scalar_dtype(kernel, op.result);
  if (dtype == DType::kS32 && !kernel.is_wide(index.expr)) return kernel.spelled(index.expr);
  const bool computed = !index.expr.constant() && !index.expr.as_var();
  if (computed && info(dtype).bits > 32) return kernel.spelled_in_64_bits(index.expr);
  return {format("{}({})", type_name(dtype), kernel.text(index.expr))};
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Unary& unary) {
  Spelled operand = scalar(kernel, unary.operand);
  if (ir::is_function(unary.kind)) {
    kernel.requirements.headers.insert("math.cuh");
    return {format("kiln::{}({})", ir::info(unary.kind).name, operand.text)};
  }
  const std::string sign = kUnarySigns[static_cast<std::size_t>(unary.kind)];
  // Nested signs would run together: --x.
  if (operand.binding == Binding::kUnary) operand = {format("({})", operand.text)};
  return narrowed(scalar_dtype(kernel, op.result),
                  {sign + bracketed(operand, Binding::kUnary), Binding::kUnary});
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Binary& binary) {
  const BinarySpelling& row = kBinary[static_cast<std::size_t>(binary.kind)];
  const Spelled left = scalar(kernel, binary.left);
  const bool may_stop = ir::is_logical(binary.kind);
  const Spelled right = may_stop ? chosen(kernel, binary.right) : scalar(kernel, binary.right);
  const DType dtype = scalar_dtype(kernel, op.result);
  if (row.binding == Binding::kPrimary) {
    kernel.requirements.headers.insert("math.cuh");
    return {format("{}({}, {})", row.sign, left.text, right.text)};
  }
  if (binary.kind == BinaryKind::kRem && is_float(dtype)) {
    return {format("fmod({}, {})", left.text, right.text)};
  }
  const Spelled out{format("{} {} {}", bracketed(left, row.binding), row.sign,
                           bracketed(right, tighter(row.binding))),
                    row.binding};
  const bool gives_bool = ir::is_comparison(binary.kind) || ir::is_logical(binary.kind);
  return gives_bool ? out : narrowed(dtype, out);
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Cast& cast) {
  // C++ says nothing of a float that the integer cannot hold.
  const bool saturates =
      is_float(scalar_dtype(kernel, cast.operand)) && is_integer(scalar_dtype(kernel, op.result));
  const std::string to = type_name(scalar_dtype(kernel, op.result));
  const std::string operand = scalar(kernel, cast.operand).text;
  if (kernel.in_pairs) return {format("kiln::rounded_pair<{}>({})", to, operand)};
  return {saturates ? format("kiln::to<{}>({})", to, operand) : format("{}({})", to, operand)};
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Bitcast& cast) {
  return {format("kiln::bitcast<{}>({})", type_name(scalar_dtype(kernel, op.result)),
                 scalar(kernel, cast.operand).text)};
}
Spelled spell_op(Kernel& kernel, const Op&, const ir::Choose& choose) {
  return {format("{} ? {} : {}", bracketed(scalar(kernel, choose.condition), Binding::kLogicalOr),
                 bracketed(chosen(kernel, choose.if_true), Binding::kLogicalOr),
                 bracketed(chosen(kernel, choose.if_false), Binding::kLogicalOr)),
          Binding::kTernary};
}
Spelled spell_op(Kernel& kernel, const Op& op, const ir::Fma& fma) {
  const DType dtype = scalar_dtype(kernel, op.result);
  kernel.requirements.headers.insert(info(dtype).bits == 16 ? "pair.cuh" : "math.cuh");
  const std::string function =
      kernel.in_pairs ? format("kiln::fma_pair<{}>", type_name(dtype)) : "kiln::fma";
  return {format("{}({}, {}, {})", function, scalar(kernel, fma.a).text, scalar(kernel, fma.b).text,
                 scalar(kernel, fma.c).text)};
}
Spelled spell_op(Kernel& kernel, const Op&, const ir::Get& get) { return {kernel.name(get.cell)}; }
Spelled spell_op(Kernel& kernel, const Op&, const ir::Element& element) {
  return {element_text(kernel, element.frag)};
}

template <class Data>
Spelled spell_op(Kernel&, const Op& op, const Data&) {
  KILN_UNREACHABLE("`{}` has no value to spell", ir::mnemonic(op.kind()));
}

// The variable that holds an integer parameter, if `value` is one.
ir::VarId parameter_var(const ir::Function& function, ValueId value) {
  for (const ir::Param& param : function.params) {
    if (param.value == value) return param.var;
  }
  return {};
}

template <class Data>
void name_value(Kernel& kernel, const Op& op, const Data& data) {
  const std::string type = type_name(scalar_dtype(kernel, op.result));
  kernel.out.line(format("const {} {} = {};",
                         kernel.in_pairs ? format("kiln::Pair<{}>", type) : type,
                         kernel.name(op.result), spell_op(kernel, op, data).text));
}

}  // namespace

Spelled scalar(Kernel& kernel, ValueId value) {
  const ir::OpId def = kernel.function.values[value].def;
  const ir::VarId var = parameter_var(kernel.function, value);
  if (var.valid()) return {kernel.name(var)};
  if (!def.valid()) return {kernel.name(value)};
  const Op& op = kernel.function.ops[def];
  const ir::OpKind kind = op.kind();
  const bool again =
      !kernel.uses.inside[def.index] && (kind == ir::OpKind::kConst || kind == ir::OpKind::kIndex);
  if (!kernel.inlined[value.index] && !again) return {kernel.name(value)};
  return kiln::visit([&](const auto& data) { return spell_op(kernel, op, data); }, op.data);
}

void emit_op(Kernel& kernel, const Op& op, const ir::Read& read) { name_value(kernel, op, read); }
void emit_op(Kernel& kernel, const Op& op, const ir::Const& constant) {
  name_value(kernel, op, constant);
}
void emit_op(Kernel& kernel, const Op& op, const ir::Index& index) {
  name_value(kernel, op, index);
}
void emit_op(Kernel& kernel, const Op& op, const ir::Unary& unary) {
  name_value(kernel, op, unary);
}
void emit_op(Kernel& kernel, const Op& op, const ir::Binary& binary) {
  name_value(kernel, op, binary);
}
void emit_op(Kernel& kernel, const Op& op, const ir::Cast& cast) { name_value(kernel, op, cast); }
void emit_op(Kernel& kernel, const Op& op, const ir::Bitcast& cast) {
  name_value(kernel, op, cast);
}
void emit_op(Kernel& kernel, const Op& op, const ir::Fma& fma) { name_value(kernel, op, fma); }
void emit_op(Kernel& kernel, const Op& op, const ir::Choose& choose) {
  name_value(kernel, op, choose);
}
void emit_op(Kernel& kernel, const Op& op, const ir::Get& get) { name_value(kernel, op, get); }
void emit_op(Kernel& kernel, const Op& op, const ir::Element& element) {
  name_value(kernel, op, element);
}

void emit_op(Kernel& kernel, const Op&, const ir::Bind& bind) {
  // An index is signed: a u32 may be larger than an int.
  const DTypeInfo& type = info(scalar_dtype(kernel, bind.value));
  const bool wide = type.bits > (type.kind == NumberKind::kUnsigned ? 31 : 32);
  kernel.out.line(format("const {} {} = {};", wide ? "kiln::s64" : "int", kernel.name(bind.var),
                         scalar(kernel, bind.value).text));
  // Then a division by a power of 2 is a shift. Of other variables the compiler of CUDA knows it.
  const bool counts =
      kernel.function.def_as<ir::Get>(bind.value) != nullptr && kernel.counters.contains(bind.var);
  if (!counts || !kernel.dividends.contains(bind.var)) return;
  kernel.requirements.headers.insert("math.cuh");
  kernel.out.line(format("kiln::never_negative({});", kernel.name(bind.var)));
}

void emit_op(Kernel& kernel, const Op&, const ir::Set& set) {
  kernel.out.line(format("{} = {};", kernel.name(set.cell), scalar(kernel, set.value).text));
}

void emit_op(Kernel& kernel, const Op&, const ir::Assert& assertion) {
  kernel.requirements.headers.insert("assert.cuh");
  kernel.out.line(format("kiln::check({}, {});", scalar(kernel, assertion.condition).text,
                         quoted(assertion.message)));
}

void emit_op(Kernel& kernel, const Op&, const ir::Print& print) {
  kernel.requirements.headers.insert("print.cuh");
  const std::string text = ir::fill_in(print.text, "%%", [&](std::size_t i) {
    return std::string(ir::conversion(scalar_dtype(kernel, print.values[i])));
  });
  std::string values;
  for (const ValueId value : print.values) values += ", " + scalar(kernel, value).text;
  kernel.out.line(format("kiln::print({}{});", quoted(text), values));
}

}  // namespace kiln::emit
