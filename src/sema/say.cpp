// `print` and `println`, when the program runs, and `print!`, when it is compiled.
#include "ir/printed.h"
#include "sema/expression.h"
#include "sema/statement.h"

namespace kiln::sema {

namespace {

constexpr std::size_t kValuesMax = 32;  // of CUDA's printf

// A text under way.
struct Saying {
  Sema& sema;
  std::string word;  // "println"
  bool compile_time = false;
  std::string text = {};  // as ir::Print has it
  std::vector<ir::ValueId> values = {};

  void add_text(std::string_view more) {
    for (const char c : more) text += c == '%' ? std::string("%%") : std::string(1, c);
  }
  void add_value(ir::ValueId value) {
    text += "%_";
    values.push_back(value);
  }
};

bool add_index(Saying& saying, const ir::Expr& value, Span span) {
  if (value.constant() || saying.compile_time) {
    saying.add_text(saying.sema.function.text(value));
    return true;
  }
  const auto id = convert(saying.sema, make_int(value, span), DType::kS64);
  if (id) saying.add_value(*id);
  return id.has_value();
}

bool add_scalar(Saying& saying, const Operand& operand) {
  Sema& sema = saying.sema;
  if (saying.compile_time) {
    (void)sema.diags
        .report<diag::PrintNotConstant>(operand.span, saying.word, sema.sources.text(operand.span))
        .help("`{}(...)`, without `!`, prints it when the program runs", saying.word)
        .emit();
    return false;
  }
  const bool fits = !is_float(operand.dtype) || operand.dtype == DType::kF64;
  const auto id = convert_explicitly(sema, operand, fits ? operand.dtype : DType::kF32);
  if (id) saying.add_value(*id);
  return id.has_value();
}

bool add_list(Saying& saying, const Operand& operand) {
  const bool is_shape = operand.kind == Operand::Kind::kShape;
  saying.add_text(is_shape ? "[" : "{");
  for (std::size_t i = 0; i < operand.elements.size(); ++i) {
    if (i > 0) saying.add_text(", ");
    if (!add_index(saying, operand.elements[i].value, operand.span)) return false;
  }
  saying.add_text(is_shape ? "]" : "}");
  return true;
}

bool add_integer(Saying& saying, const Operand& operand) {
  const ir::Expr& value = operand.integer.value;
  const bool wraps = info(operand.dtype).kind == NumberKind::kUnsigned && !value.constant();
  // What has no sign wraps only in its type.
  return wraps && !saying.compile_time ? add_scalar(saying, operand)
                                       : add_index(saying, value, operand.span);
}

bool add(Saying& saying, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kError: return false;
    case Operand::Kind::kString: saying.add_text(operand.text); return true;
    case Operand::Kind::kInt: return add_integer(saying, operand);
    case Operand::Kind::kFloat:
      saying.add_text(ir::printed(DType::kF64, 0, operand.number));
      return true;
    case Operand::Kind::kScalar: return add_scalar(saying, operand);
    case Operand::Kind::kTuple:
    case Operand::Kind::kShape: return add_list(saying, operand);
    case Operand::Kind::kView:
    case Operand::Kind::kArray:
    case Operand::Kind::kFragment:
    case Operand::Kind::kEvent:
    case Operand::Kind::kStream:
    case Operand::Kind::kWildcard: break;
  }
  Sema& sema = saying.sema;
  (void)sema.diags
      .report<diag::PrintArgument>(operand.span, saying.word, describe(operand, sema.function))
      .help_if(operand.kind == Operand::Kind::kView
                   ? format("print its elements, `{}.at(...)`, or its shape, `{}.span`",
                            sema.sources.text(operand.span), sema.sources.text(operand.span))
                   : "")
      .emit();
  return false;
}

// Evaluates the arguments where the operation is to stand, and says them.
void say(Sema& sema, const ast::PrintStmt& stmt, Span span) {
  Saying saying{sema, stmt.newline ? "println" : "print", stmt.compile_time};
  bool fine = true;
  for (const ast::ExprId arg : stmt.args) fine = add(saying, evaluate(sema, arg)) && fine;
  if (!fine) return;
  if (stmt.compile_time) {
    (void)sema.diags
        .report<diag::Printed>(span, ir::fill_in(saying.text, "%", [](std::size_t) { return ""; }))
        .emit();
    return;
  }
  if (saying.values.size() > kValuesMax) {
    (void)sema.diags.report<diag::PrintValues>(span, saying.word, kValuesMax, saying.values.size())
        .help("print the others by a statement of their own")
        .emit();
    return;
  }
  if (stmt.newline) saying.add_text("\n");
  emit(sema, ir::Print{std::move(saying.text), std::move(saying.values)}, span);
}

}  // namespace

void analyse(Sema& sema, const ast::PrintStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const bool is_elected = sema.place.in_kernel && sema.place.level != ir::Level::kThread;
  if (!is_elected || stmt.compile_time) return say(sema, stmt, span);
  const ir::OpId once = emit(sema, ir::Once{}, span);
  const ir::RegionId region = in_region(sema, [&] { say(sema, stmt, span); });
  std::get<ir::Once>(sema.function.ops[once].data).body = region;
}

}  // namespace kiln::sema
