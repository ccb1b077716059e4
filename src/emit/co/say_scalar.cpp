// Numbers: expressions, variables, conditions' parts, assertions and printing.
#include <array>

#include "emit/co/say.h"
#include "ir/functions.h"

namespace kiln::emit_co {

namespace {

// Operators as the language binds them; functions where it has no operator.
struct Operator {
  std::string_view text;
  Binding binding;
};
constexpr Operator kOperators[] = {
    {"+", Binding::kSum},       {"-", Binding::kSum},         {"*", Binding::kProduct},
    {"/", Binding::kProduct},   {"%", Binding::kProduct},     {"&", Binding::kBits},
    {"|", Binding::kBits},      {"^", Binding::kBits},        {"<<", Binding::kShift},
    {">>", Binding::kShift},    {"__min", Binding::kPrimary}, {"__max", Binding::kPrimary},
    {"==", Binding::kEquality}, {"!=", Binding::kEquality},   {"<", Binding::kRelation},
    {"<=", Binding::kRelation}, {">", Binding::kRelation},    {">=", Binding::kRelation},
    {"&&", Binding::kAnd},      {"||", Binding::kOr},
};

Binding tighter(Binding binding) { return static_cast<Binding>(static_cast<int>(binding) + 1); }

Spelled call(std::string_view function, const std::vector<std::string>& arguments) {
  return {format("{}({})", function, join(arguments, ", ", [](const auto& a) { return a; }))};
}

const ir::Op* def_of(const Co& co, ir::ValueId value) {
  const ir::OpId def = co.function.values[value].def;
  return def.valid() ? &co.function.ops[def] : nullptr;
}

template <class T>
const T* def_as(const Co& co, ir::ValueId value) {
  const ir::Op* op = def_of(co, value);
  return op == nullptr ? nullptr : std::get_if<T>(&op->data);
}

// x of x * 0.5 * (erf(x * sqrt(1/2)) + 1), which the language has one word for.
std::optional<ir::ValueId> gelu_of(const Co& co, const ir::Binary& product) {
  const auto* sum = def_as<ir::Binary>(co, product.right);
  if (sum == nullptr || product.kind != ir::BinaryKind::kMul) return std::nullopt;
  const auto* erf = def_as<ir::Unary>(co, sum->left);
  if (erf == nullptr || erf->kind != ir::UnaryKind::kErf) return std::nullopt;
  const auto* inner = def_as<ir::Binary>(co, erf->operand);
  const auto* half = def_as<ir::Binary>(co, product.left);
  if (inner == nullptr || half == nullptr || inner->left != half->left) return std::nullopt;
  return inner->left;
}

std::string declared_type(DType dtype) { return dtype == DType::kS32 ? "int" : type_name(dtype); }

}  // namespace

Spelled value_of(Co& co, const ir::Op& op, const ir::Const& data) {
  const DType dtype = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
  const Spelled digits = literal(dtype, data.value);
  if (!is_float(dtype) || info(dtype).bits >= 32) return digits;
  return call(format("__to<{}>", type_name(dtype)),
              {digits.text});  // the digits are those of an f32
}

Spelled value_of(Co& co, const ir::Op& op, const ir::Index& data) {
  const DType dtype = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
  const Spelled spelled = spell(co, data.expr);
  if (dtype == DType::kS32) return spelled;
  if (data.expr.constant() && is_integer(dtype)) {
    return integer_literal(dtype, *data.expr.constant());
  }
  return {format("{} + 0ll", bracketed(spelled, Binding::kSum)), Binding::kSum};
}

Spelled value_of(Co& co, const ir::Op& op, const ir::Unary& data) {
  const Spelled operand = scalar(co, data.operand);
  if (ir::is_function(data.kind)) {
    const std::string_view spelling = ir::info(data.kind).spelling;
    if (spelling.empty()) unsayable(co, op, "the language has no word for this function");
    return call(spelling, {operand.text});
  }
  const DType dtype = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
  const auto* number = co.function.def_as<ir::Const>(data.operand);
  if (data.kind == ir::UnaryKind::kNegate && number != nullptr &&
      info(dtype).kind == NumberKind::kUnsigned) {
    return literal(dtype, -number->value);  // as a literal with a sign it is out of range
  }
  const char sign = data.kind == ir::UnaryKind::kNegate ? '-'
                    : data.kind == ir::UnaryKind::kNot  ? '!'
                                                        : '~';
  const Binding least = sign == '~' ? Binding::kPrimary : Binding::kBits;
  return {format("{}{}", sign, bracketed(operand, least)), Binding::kUnary};
}

Spelled value_of(Co& co, const ir::Op&, const ir::Binary& data) {
  if (const auto x = gelu_of(co, data)) return call("__gelu", {scalar_text(co, *x)});
  const Spelled left = scalar(co, data.left);
  const Spelled right = scalar(co, data.right);
  if (ir::class_of(data.kind) == ir::BinaryClass::kFunction) {
    return call(ir::info(data.kind).spelling, {left.text, right.text});
  }
  const Operator& row = kOperators[static_cast<std::size_t>(data.kind)];
  if (row.binding == Binding::kPrimary) return call(row.text, {left.text, right.text});
  const std::string l = bracketed(left, row.binding);
  return {format("{} {} {}", l, row.text, bracketed(right, tighter(row.binding))), row.binding};
}

Spelled value_of(Co& co, const ir::Op&, const ir::Fma& data) {
  return call("__fmaf",
              {scalar_text(co, data.a), scalar_text(co, data.b), scalar_text(co, data.c)});
}

Spelled value_of(Co& co, const ir::Op& op, const ir::Cast& data) {
  const DType to = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
  return call(format("__to<{}>", type_name(to)), {scalar_text(co, data.operand)});
}

Spelled value_of(Co& co, const ir::Op& op, const ir::Bitcast& data) {
  const DType to = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
  return call(format("__bitcast<{}>", type_name(to)), {scalar_text(co, data.operand)});
}

Spelled value_of(Co& co, const ir::Op&, const ir::Choose& data) {
  const std::string condition = bracketed(scalar(co, data.condition), Binding::kOr);
  const std::string yes = bracketed(scalar(co, data.if_true), Binding::kOr);
  return {
      format("{} ? {} : {}", condition, yes, bracketed(scalar(co, data.if_false), Binding::kOr)),
      Binding::kTernary};
}

Spelled value_of(Co& co, const ir::Op&, const ir::Get& data) { return {name_of(co, data.cell)}; }

Spelled value_of(Co& co, const ir::Op&, const ir::Read& data) {
  return {element(co, data.view, data.index, data.block)};
}

Spelled value_of(Co& co, const ir::Op&, const ir::Atomic& data) {
  const std::string place = element(co, data.view, data.index);
  const std::string function = format("__atomic_{}", ir::name_of(data.kind));
  if (!data.compare.valid()) return call(function, {place, scalar_text(co, data.value)});
  return call(function, {place, scalar_text(co, data.compare), scalar_text(co, data.value)});
}

Spelled value_of(Co& co, const ir::Op&, const ir::Element& data) {
  const std::string& name = name_of(co, data.frag);
  if (co.whole_tiles) return {name};
  const ir::FragType& type = co.function.frag_type(data.frag);
  if (type.cols == 1) return {format("{}.at({})", name, co.row)};
  return {format("{}.at({}, {})", name, type.rows == 1 ? "0" : co.row, co.col)};
}

Spelled value_of(Co& co, const ir::Op&, const ir::Vote& data) {
  return call("__any", {format("{} != 0", name_of(co, data.frag))});
}

Spelled scalar(Co& co, ir::ValueId value) {
  const ir::OpId def = co.function.values[value].def;
  if (!def.valid() || !co.inlined[def.index]) return {name_of(co, value)};
  const ir::Op& op = co.function.ops[def];
  return kiln::visit([&](const auto& data) { return value_of(co, op, data); }, op.data);
}

std::string scalar_text(Co& co, ir::ValueId value) { return scalar(co, value).text; }

namespace {

// A value that is used in several places, or that may change before it is used.
void declare_value(Co& co, const ir::Op& op) {
  const DType dtype = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
  const Spelled value =
      kiln::visit([&](const auto& data) { return value_of(co, op, data); }, op.data);
  const bool is_whole = dtype == DType::kS32 || dtype == DType::kBool;
  line(co, format("{}{} = {};", is_whole ? declared_type(dtype) + " " : type_name(dtype) + " ",
                  name_of(co, op.result), value.text));
}

void say_value(Co& co, const ir::Op& op) {
  const auto* get = std::get_if<ir::Get>(&op.data);
  if (get != nullptr && co.stage_cells.contains(get->cell)) return;
  const ir::OpId def = co.function.values[op.result].def;
  if (co.inlined[def.index] || co.users[op.result.index].empty()) return;
  // The variable that it is bound to stands for it.
  const auto& users = co.users[op.result.index];
  const bool bound = std::ranges::any_of(
      users, [&](ir::OpId user) { return co.function.ops[user].kind() == ir::OpKind::kBind; });
  if (!bound) return declare_value(co, op);
  for (const ir::OpId user : users) {
    const auto* bind = std::get_if<ir::Bind>(&co.function.ops[user].data);
    if (bind == nullptr || co.done[user.index]) continue;
    const Spelled value =
        kiln::visit([&](const auto& data) { return value_of(co, op, data); }, op.data);
    const DType dtype = std::get<ir::ScalarType>(co.function.type(op.result)).dtype;
    co.value_names[op.result.index] = co.var_names[bind->var.index];
    line(co,
         format("{} {} = {};", declared_type(dtype), co.var_names[bind->var.index], value.text));
    co.done[user.index] = true;
    return;
  }
}

// `x += e` of x = x + e, where e came first.
std::optional<std::string> compound(Co& co, const ir::Set& data) {
  const auto* sum = def_as<ir::Binary>(co, data.value);
  if (sum == nullptr) return std::nullopt;
  const ir::OpId def = co.function.values[data.value].def;
  const auto* get = def_as<ir::Get>(co, sum->left);
  if (get == nullptr || get->cell != data.cell || !co.inlined[def.index]) return std::nullopt;
  if (kOperators[static_cast<std::size_t>(sum->kind)].binding != Binding::kSum &&
      kOperators[static_cast<std::size_t>(sum->kind)].binding != Binding::kProduct) {
    return std::nullopt;
  }
  const ir::OpId left = co.function.values[sum->left].def;
  const ir::OpId right = co.function.values[sum->right].def;
  if (!co.inlined[left.index] || !right.valid() || left.index < right.index) return std::nullopt;
  return format("{} {}= {};", name_of(co, data.cell),
                kOperators[static_cast<std::size_t>(sum->kind)].text, scalar_text(co, sum->right));
}

}  // namespace

#define KILN_SAY_VALUE(Name) \
  void say(Co& co, const ir::Op& op, const ir::Name&) { say_value(co, op); }
KILN_SAY_VALUE(Const)
KILN_SAY_VALUE(Index)
KILN_SAY_VALUE(Unary)
KILN_SAY_VALUE(Binary)
KILN_SAY_VALUE(Fma)
KILN_SAY_VALUE(Cast)
KILN_SAY_VALUE(Bitcast)
KILN_SAY_VALUE(Choose)
KILN_SAY_VALUE(Get)
KILN_SAY_VALUE(Read)
KILN_SAY_VALUE(Element)
KILN_SAY_VALUE(Vote)
#undef KILN_SAY_VALUE

void say(Co& co, const ir::Op& op, const ir::Atomic& data) {
  if (!co.users[op.result.index].empty()) return say_value(co, op);
  line(co, value_of(co, op, data).text + ";");
}

void say(Co& co, const ir::Op& op, const ir::Bind& data) {
  if (co.stages.contains(data.var)) return;
  const ir::OpId id = co.function.values[data.value].def;
  (void)op;
  const DType dtype = std::get<ir::ScalarType>(co.function.type(data.value)).dtype;
  const Spelled value = id.valid() || !co.value_names[data.value.index].empty()
                            ? scalar(co, data.value)
                            : Spelled{name_of(co, data.value)};
  line(co, format("{} {} = {};", declared_type(dtype), co.var_names[data.var.index], value.text));
}

void say(Co& co, const ir::Op&, const ir::Set& data) {
  if (co.stage_cells.contains(data.cell)) return;
  if (const auto text = compound(co, data)) return line(co, *text);
  line(co, format("{} = {};", name_of(co, data.cell), scalar_text(co, data.value)));
}

void say(Co& co, const ir::Op&, const ir::Assert& data) {
  line(co, format("assert({}, {});", scalar_text(co, data.condition), quoted(data.message)));
}

void say(Co& co, const ir::Op& op, const ir::Print&) {
  unsayable(co, op, "texts that a kernel prints are not said again yet");
}

}  // namespace kiln::emit_co
