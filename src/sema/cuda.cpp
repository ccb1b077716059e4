#include "sema/cuda.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/cuda_text.h"
#include "ir/strides.h"
#include "sema/call.h"
#include "sema/constant.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/mma.h"
#include "sema/statement.h"
#include "sema/tile_array.h"
#include "sema/view.h"
#include "support/escape.h"

namespace kiln::sema {

namespace {

constexpr int kBitsOfRegister = 32;

ir::Cuda cuda_called(std::string what) {
  ir::Cuda out;
  out.what = std::move(what);
  return out;
}

std::string quoted(std::string_view text) {
  return ir::without_places(format("\"{}\"", escape_for(Medium::kString, text)));
}

// The text of an operation under way, and what it is passed.
struct CudaBuilder {
  Sema& sema;
  ir::Cuda& cuda;

  // Each gives the place of what it adds; nothing after a report.
  [[nodiscard]] std::string place(ir::ValueId passed) const {
    cuda.passed.push_back(passed);
    return "%_";
  }
  [[nodiscard]] std::optional<std::string> number(const Operand& operand) const {
    const auto value = convert(sema, operand, operand.dtype);
    if (!value) return std::nullopt;
    cuda.numbers.push_back(*value);
    return "%#";
  }
  [[nodiscard]] std::optional<std::string> argument(ast::ExprId id) const;
  [[nodiscard]] std::optional<std::string> address(ast::ExprId id, Span span) const;
  [[nodiscard]] std::optional<std::string> element(const ast::AtExpr& at, Span span) const;
  [[nodiscard]] std::optional<std::string> tile(ast::ExprId id) const;
  [[nodiscard]] std::optional<std::string> operand(const Operand& operand) const;
  [[nodiscard]] std::optional<std::string> refused(Span span, std::string_view what) const {
    (void)sema.diags.report<diag::CudaArgument>(span, cuda.what, sema.sources.text(span), what)
        .help("pass numbers, a buffer or a view, `x.data`, `&x.at(...)`, or a register tile")
        .emit();
    return std::nullopt;
  }
  void warn_of_strides(ir::ValueId view, Span span) const;
};

// A pointer says nothing of rows that are longer than the view's.
void CudaBuilder::warn_of_strides(ir::ValueId view, Span span) const {
  const ir::ResolvedView at = ir::resolve_view(sema.function, view);
  const std::vector<ir::Expr>& shape = sema.function.view_type(view).shape;
  const std::vector<ir::Expr>& whole = sema.function.view_type(at.root).shape;
  const std::vector<ir::Expr> strides = ir::root_strides(sema.function, at.root);
  ir::Expr dense = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const ir::Expr& stride = strides[at.dropped + d];
    if (!shape[d].is(1) && !(stride == dense) && whole.size() == strides.size()) {
      (void)sema.diags
          .report<diag::CudaStrided>(span, cuda.what, sema.sources.text(span), d,
                                     text(sema, stride), text(sema, dense))
          .help("pass the distance as a number, or copy the view into a buffer of its own")
          .emit();
      return;
    }
    dense = dense * shape[d];
  }
}

std::optional<std::string> CudaBuilder::operand(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kError: return std::nullopt;
    case Operand::Kind::kInt:
    case Operand::Kind::kFloat:
    case Operand::Kind::kScalar: return number(operand);
    case Operand::Kind::kView: warn_of_strides(operand.id, operand.span); return place(operand.id);
    case Operand::Kind::kArray: return place(operand.id);
    case Operand::Kind::kTuple:
    case Operand::Kind::kShape:
    case Operand::Kind::kFragment:
    case Operand::Kind::kEvent:
    case Operand::Kind::kStream:
    case Operand::Kind::kString:
    case Operand::Kind::kWildcard: break;
  }
  return refused(operand.span, describe(operand, sema.function));
}

// `&x.at(i)`: a pointer into the buffer.
std::optional<std::string> CudaBuilder::element(const ast::AtExpr& at, Span span) const {
  if (!check_own_block(sema, at)) return std::nullopt;
  const Operand base = evaluate_view(sema, at.base);
  if (base.is_error()) return std::nullopt;
  const auto index = element_index(sema, base.id, at.indices, span);
  if (!index) return std::nullopt;
  ir::ViewType type = sema.function.view_type(base.id);
  type.shape.assign(type.shape.size(), ir::Expr(1));
  return place(emit_value(sema, ir::Subview{base.id, *index, 0}, span, std::move(type)));
}

std::optional<std::string> CudaBuilder::address(ast::ExprId id, Span span) const {
  if (const auto* at = sema.ast.as<ast::AtExpr>(id)) return element(*at, sema.ast[id].span);
  const auto* named = sema.ast.as<ast::NameExpr>(id);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  if (symbol != nullptr && symbol->kind == Symbol::Kind::kCell) {
    return "&" + place(symbol->operand.id);
  }
  return refused(span, "the address of what is no element and no mutable variable");
}

// The registers that this thread has of a tile.
std::optional<std::string> CudaBuilder::tile(ast::ExprId id) const {
  const Span span = sema.ast[id].span;
  const Symbol* symbol = named_tile(sema, id);
  if (symbol == nullptr || symbol->operand.is_error()) return std::nullopt;
  const ir::ValueId frag = symbol->operand.id;
  const auto known = sema.tiles.find(frag);
  if (symbol->kind != Symbol::Kind::kAccumulator || known == sema.tiles.end()) {
    return refused(span, "an operand of `mma`");
  }
  Tile& tile = known->second;
  if (!check_same_unit(sema, tile, span)) return std::nullopt;
  tile.stored = true;
  const ir::FragType& type = sema.function.frag_type(frag);
  if (type.rows == 0 || info(type.dtype).bits != kBitsOfRegister) {
    refuse(sema, span,
           type.rows == 0 ? "passing an accumulator to CUDA before its first `mma`"
                          : format("passing a register tile of {} to CUDA", name(type.dtype)));
    tile.broken = true;
    return std::nullopt;
  }
  return place(frag);
}

std::optional<std::string> CudaBuilder::argument(ast::ExprId id) const {
  const Span span = sema.ast[id].span;
  if (sema.ast.as<ast::NullptrExpr>(id) != nullptr) return "nullptr";
  const auto* cast = sema.ast.as<ast::CastExpr>(id);
  if (cast != nullptr && !cast->type) {
    const auto inner = argument(cast->operand);
    if (!inner) return std::nullopt;
    return format("({})({})", ir::without_places(cast->cpp_type), *inner);
  }
  const auto* unary = sema.ast.as<ast::UnaryExpr>(id);
  if (unary != nullptr && unary->op == ast::UnaryOp::kAddress) return address(unary->operand, span);
  if (is_tile_name(sema, id)) return tile(id);
  return operand(evaluate(sema, id));
}

// `<f32, 4*#p, ns::kFew>`: types and constants of the program, names of CUDA.
std::optional<std::string> template_text(Sema& sema, const std::vector<ast::ExprId>& args) {
  if (args.empty()) return "";
  std::string out;
  for (const ast::ExprId arg : args) {
    out += out.empty() ? "<" : ", ";
    const auto* named = sema.ast.as<ast::NameExpr>(arg);
    if (named != nullptr && named->name.find("::") != std::string::npos) {
      out += named->name;
      continue;
    }
    const auto constant = constant_of(sema, arg, "an argument of the template");
    if (!constant) return std::nullopt;
    out += constant->kind == Constant::Kind::kInteger ? format("{}", constant->value)
                                                      : text(*constant);
  }
  return out + ">";
}

}  // namespace

const ast::DeviceCallExpr* cuda_call(const Sema& sema, ast::ExprId expr) {
  const auto* call = sema.ast.as<ast::DeviceCallExpr>(expr);
  return call != nullptr && find_function(sema, call->name.text) == nullptr ? call : nullptr;
}

std::optional<ir::Cuda> cuda_of_call(Sema& sema, const ast::DeviceCallExpr& call, Span span,
                                     bool gives_value) {
  ir::Cuda cuda = cuda_called(format("`call {}`", call.name.text));
  if (!check_in_kernel(sema, span, cuda.what)) return std::nullopt;
  if (sema.apply) {
    refuse(sema, span, "`call` inside `apply`");
    return std::nullopt;
  }
  const CudaBuilder builder{sema, cuda};
  const auto of_template = template_text(sema, call.template_args);
  bool fine = of_template.has_value();
  std::string arguments;
  for (const ast::ExprId arg : call.args) {
    const auto argument = builder.argument(arg);
    fine = fine && argument;
    if (!arguments.empty()) arguments += ", ";
    arguments += argument.value_or("");
  }
  if (!fine) {
    sema.expected = nullptr;  // it has its CUDA, which is wrong
    return std::nullopt;
  }
  cuda.text =
      format("{}{}{}({});", gives_value ? "%_ = " : "", call.name.text, *of_template, arguments);
  return cuda;
}

namespace {

// What stands in for the operation, which has been emitted.
void add_stand_in(Sema& sema, const ast::ExpectStmt& expected, ir::OpId op, ir::ValueId result) {
  const ir::RegionId region = in_region(sema, [&] {
    if (expected.body.valid()) return analyse_body(sema, expected.body);
    const Span span = sema.ast[expected.value].span;
    if (!result.valid()) {
      (void)sema.diags.report<diag::StandInValue>(span, "gives no value")
          .help("say what it does: `[[expect({{ ... }})]]`")
          .emit();
      return;
    }
    const DType dtype = std::get<ir::CellType>(sema.function.type(result)).dtype;
    const auto value = convert(sema, evaluate(sema, expected.value), dtype);
    if (value) emit(sema, ir::Set{result, *value}, span);
  });
  std::get<ir::Cuda>(sema.function.ops[op].data).stand_in = region;
}

}  // namespace

void emit_cuda(Sema& sema, ir::Cuda cuda, ir::ValueId result, Span span) {
  if (result.valid()) cuda.passed.insert(cuda.passed.begin(), result);
  const ast::ExpectStmt* expected = std::exchange(sema.expected, nullptr);
  const ir::OpId op = emit(sema, std::move(cuda), span);
  if (expected != nullptr) add_stand_in(sema, *expected, op, result);
}

Operand evaluate_cuda_call(Sema& sema, const ast::DeviceCallExpr& call, DType dtype, Span span) {
  Operand none;
  none.span = span;
  const ast::ExpectStmt* expected = sema.expected;
  auto cuda = cuda_of_call(sema, call, span, true);
  if (!cuda) return none;
  const ir::ValueId cell = emit_value(sema, ir::Alloc{}, span, ir::CellType{dtype});
  emit_cuda(sema, std::move(*cuda), cell, span);
  if (expected != nullptr && expected->body.valid()) {
    (void)sema.diags
        .report<diag::StandInValue>(sema.ast[expected->body].span, "gives a value without a name")
        .help("say what it gives: `[[expect(value)]]`")
        .emit();
  }
  return make_scalar(emit_value(sema, ir::Get{cell}, span, ir::ScalarType{dtype}), dtype, span);
}

Operand evaluate_as(Sema& sema, ast::ExprId expr, DType dtype) {
  const auto* call = cuda_call(sema, expr);
  if (call == nullptr) return evaluate(sema, expr);
  return evaluate_cuda_call(sema, *call, dtype, sema.ast[expr].span);
}

void report_cuda_result(Sema& sema, const ast::DeviceCallExpr& call, Span span) {
  (void)sema.diags.report<diag::CudaResultType>(span, format("`call {}`", call.name.text))
      .help("give it a name and a type: `f32 value = {};`", sema.sources.text(span))
      .emit();
}

// ---- Statements ----

namespace {

// What of the program the words of a text name, each under the word.
struct NamesOfText {
  Sema& sema;
  ir::Cuda& cuda;
  Span span;
  std::vector<std::string> numbers = {};

  void pass(const std::string& name, ir::ValueId value) {
    cuda.passed.push_back(value);
    cuda.names.push_back(name);
  }
  void add(const std::string& name, const Operand& operand) {
    if (operand.kind == Operand::Kind::kView || operand.kind == Operand::Kind::kArray) {
      return pass(name, operand.id);
    }
    if (!operand.is_number()) return;
    const auto value = convert(sema, operand, operand.dtype);
    if (!value) return;
    cuda.numbers.push_back(*value);
    numbers.push_back(name);
  }
  void add_tile(const std::string& name, const Symbol& symbol) {
    const auto known = sema.tiles.find(symbol.operand.id);
    if (known == sema.tiles.end()) return;
    known->second.stored = true;
    const ir::FragType& type = sema.function.frag_type(symbol.operand.id);
    if (type.rows == 0 || info(type.dtype).bits != kBitsOfRegister) return;
    pass(name, symbol.operand.id);
  }
  // One that the text only reads differs between threads no more than it did.
  void add_variable(const std::string& name, const Symbol& symbol, std::string_view text) {
    const ir::ValueId cell = symbol.operand.id;
    if (ir::may_set_in_cpp(text, name)) return pass(name, cell);
    const DType dtype = symbol.operand.dtype;
    cuda.numbers.push_back(emit_value(sema, ir::Get{cell}, span, ir::ScalarType{dtype}));
    numbers.push_back(name);
  }
  void add(const std::string& name, std::string_view text) {
    const Symbol* symbol = sema.scopes.find(name);
    if (symbol == nullptr) return;
    switch (symbol->kind) {
      case Symbol::Kind::kCell: return add_variable(name, *symbol, text);
      case Symbol::Kind::kAccumulator: return add_tile(name, *symbol);
      case Symbol::Kind::kOperand:
      case Symbol::Kind::kParallel:
      case Symbol::Kind::kWith: return add(name, symbol->operand);
      case Symbol::Kind::kHandle: return add(name, use_handle(sema, *symbol, span));
      case Symbol::Kind::kTile:
      case Symbol::Kind::kTileArray:
      case Symbol::Kind::kMmaFuture:
      case Symbol::Kind::kType:
      case Symbol::Kind::kSlot: return;
    }
  }
};

// `"=r"(x)`: a variable, or an element by its address.
std::optional<std::string> output_text(const CudaBuilder& builder, const ast::AsmOperand& output) {
  Sema& sema = builder.sema;
  const Span span = sema.ast[output.value].span;
  if (const auto* at = sema.ast.as<ast::AtExpr>(output.value)) {
    const auto element = builder.element(*at, span);
    return element ? std::optional("*" + *element) : std::nullopt;
  }
  const auto* named = sema.ast.as<ast::NameExpr>(output.value);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  if (symbol != nullptr && symbol->kind == Symbol::Kind::kCell) {
    return builder.place(symbol->operand.id);
  }
  (void)sema.diags.report<diag::AsmOutput>(span, sema.sources.text(span))
      .help("declare a variable that can change: `mutable s32 x;`")
      .emit();
  return std::nullopt;
}

std::optional<std::string> operands_text(const CudaBuilder& builder,
                                         const std::vector<ast::AsmOperand>& operands,
                                         bool outputs) {
  std::string out;
  bool fine = true;
  for (const ast::AsmOperand& operand : operands) {
    const auto value = outputs ? output_text(builder, operand) : builder.argument(operand.value);
    fine = fine && value;
    if (!out.empty()) out += ", ";
    out += format("{}({})", quoted(operand.constraint), value.value_or(""));
  }
  return fine ? std::optional(out) : std::nullopt;
}

// The assembly with numbers for the names of operands, which CUDA's does not have: `%[d]` is `%0`.
std::string numbered(const ast::AsmStmt& stmt) {
  std::string text = stmt.text;
  std::size_t number = 0;
  for (const auto* operands : {&stmt.outputs, &stmt.inputs}) {
    for (const ast::AsmOperand& operand : *operands) {
      const std::string place = format("%{}", number++);
      const std::string written = format("%[{}]", operand.name.text);
      for (std::size_t at = text.find(written); operand.name.valid() && at != std::string::npos;
           at = text.find(written, at)) {
        text.replace(at, written.size(), place);
      }
    }
  }
  return text;
}

// What compilers of this language call a variable in the text that they write: `__iv_k__elem__0`. Such
// names mean nothing to another one.
bool is_name_of_output(std::string_view name) {
  return name.starts_with("__iv_") || name.starts_with("__choreo_");
}

// The variable of the program that a name of output stands for, where there is one.
std::string variable_behind(const Sema& sema, std::string_view name) {
  std::string out(name.substr(name.starts_with("__iv_") ? std::string_view("__iv_").size() : 0));
  out = out.substr(0, out.find("__elem__"));
  return sema.scopes.find(out) == nullptr ? "" : out;
}

// Whether all names in the text are the program's or CUDA's, as far as their form tells.
bool check_names(Sema& sema, const ast::CppStmt& stmt, const std::vector<std::string>& names) {
  const auto wrong = std::ranges::find_if(names, is_name_of_output);
  if (wrong == names.end()) return true;
  const std::string variable = variable_behind(sema, *wrong);
  (void)sema.diags.report<diag::UnknownName>(stmt.text_span, *wrong)
      .help("the output of some compiler calls something so; say {}",
            variable.empty() ? "what the program calls it" : format("`{}`", variable))
      .emit();
  return false;
}

}  // namespace

void analyse(Sema& sema, const ast::CppStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (set_registers(sema, stmt, span)) return;
  if (!sema.place.in_kernel) return refuse(sema, span, "`__cpp__` outside of `parallel`");
  const std::vector<std::string> words = ir::names_in_cpp(stmt.text);
  if (!check_names(sema, stmt, words)) {
    sema.expected = nullptr;
    return;
  }
  ir::Cuda cuda = cuda_called("`__cpp__`");
  cuda.text = ir::without_places(stmt.text);
  NamesOfText names{sema, cuda, span};
  for (const std::string& name : words) names.add(name, stmt.text);
  std::ranges::move(names.numbers, std::back_inserter(cuda.names));
  emit_cuda(sema, std::move(cuda), {}, span);
}

void analyse(Sema& sema, const ast::AsmStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  ir::Cuda cuda = cuda_called("inline assembly");
  if (!check_in_kernel(sema, span, cuda.what)) return;
  const CudaBuilder builder{sema, cuda};
  const auto outputs = operands_text(builder, stmt.outputs, true);
  const auto inputs = operands_text(builder, stmt.inputs, false);
  if (!outputs || !inputs) {
    sema.expected = nullptr;
    return;
  }
  cuda.text = format("asm{}({}", stmt.is_volatile ? " volatile" : "", quoted(numbered(stmt)));
  if (!stmt.outputs.empty() || !stmt.inputs.empty() || !stmt.clobbers.empty()) {
    cuda.text += format(" : {} : {}", *outputs, *inputs);
  }
  for (std::size_t i = 0; i < stmt.clobbers.size(); ++i) {
    cuda.text += (i == 0 ? " : " : ", ") + quoted(stmt.clobbers[i]);
  }
  cuda.text += ");";
  emit_cuda(sema, std::move(cuda), {}, span);
}

void analyse(Sema& sema, const ast::ExpectStmt& stmt, ast::StmtId) {
  const ast::ExpectStmt* outer = std::exchange(sema.expected, &stmt);
  const std::size_t errors = sema.diags.error_count();
  analyse_statement(sema, stmt.statement);
  const bool is_used = std::exchange(sema.expected, outer) == nullptr;
  if (is_used || sema.diags.error_count() != errors) return;
  (void)sema.diags.report<diag::StandInNothing>(stmt.word_span)
      .help("remove it, or put it in front of `call`, `__cpp__` or `__asm__`")
      .emit();
}

}  // namespace kiln::sema
