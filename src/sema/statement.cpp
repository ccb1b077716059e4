// Which handler a statement has, and the simple ones.
#include "sema/statement.h"

#include <algorithm>
#include <cctype>

#include "sema/call.h"
#include "sema/event.h"
#include "sema/expression.h"
#include "sema/partial_sum.h"
#include "sema/scaled_block.h"
#include "sema/tile.h"
#include "sema/tile_array.h"

namespace kiln::sema {

namespace {

std::string text_of(const GivenBack& given) {
  if (given.number) return format("a number of {}", name(*given.number));
  return given.buffer.valid() ? "a buffer" : "nothing";
}

// All `return`s of a function give the same buffer, or numbers of one type, or nothing: the caller
// gets one result. False after a report.
bool is_as_before(Sema& sema, const GivenBack& given) {
  const GivenBack first = sema.given_back.value_or(given);
  sema.given_back = first;
  if (given.buffer.valid() == first.buffer.valid() && given.number == first.number) return true;
  (void)sema.diags
      .report<diag::ReturnType>(given.span, sema.function.name, text_of(first), text_of(given))
      .label(first.span, "{} is returned here", text_of(first))
      .help("{}",
            first.number && given.number
                ? format("write `__to<{}>(...)` in one of the two places", name(*first.number))
                : "return the same in both places")
      .emit();
  return false;
}

void give_back(Sema& sema, const GivenBack& given, Span statement) {
  if (!is_as_before(sema, given)) return;
  const GivenBack& first = *sema.given_back;
  if (given.buffer != first.buffer) {
    refuse(sema, given.span, "returning one of several buffers");
    return;
  }
  emit(sema, ir::Return{given.buffer}, statement);
}

// A number, of the type that the function says; after `auto`, of its own.
void give_back_number(Sema& sema, const Operand& value, Span where, Span statement) {
  const DType dtype = sema.declared_number.value_or(value.dtype);
  if (!is_stored(dtype) || !is_as_before(sema, {where, {}, dtype})) return;
  const auto number = convert(sema, value, dtype);
  if (number) emit(sema, ir::Return{*number}, statement);
}

// What the function says that it returns; nothing for `auto` and `void`.
std::optional<std::string> declared_text(const Sema& sema) {
  if (sema.declared_number) return format("a number of {}", name(*sema.declared_number));
  if (sema.declared_result) return type_text(sema, *sema.declared_result);
  return std::nullopt;
}

bool is_jump(const ast::StmtNode& node) {
  return std::holds_alternative<ast::BreakStmt>(node) ||
         std::holds_alternative<ast::ContinueStmt>(node) ||
         std::holds_alternative<ast::YieldStmt>(node) ||
         std::holds_alternative<ast::ReturnStmt>(node);
}

// The word that the text begins with.
Span first_word(const Sema& sema, Span span) {
  const std::string_view text = sema.sources.text(span);
  std::uint32_t length = 1;
  while (length < text.size() && std::isalnum(static_cast<unsigned char>(text[length])) != 0) {
    ++length;
  }
  return {span.file, span.begin, std::min(span.end, span.begin + length)};
}

// Statements behind one that always leaves their block.
void warn_of_unreachable(Sema& sema, const std::vector<ast::StmtId>& body) {
  for (std::size_t i = 0; i + 1 < body.size(); ++i) {
    if (!body[i].valid() || !body[i + 1].valid() || !is_jump(sema.ast[body[i]].node)) continue;
    const ast::Stmt& next = sema.ast[body[i + 1]];
    if (std::holds_alternative<ast::EmptyStmt>(next.node)) continue;
    const Span jump = sema.ast[body[i]].span;
    (void)sema.diags.report<diag::Unreachable>(first_word(sema, next.span), sema.sources.text(jump))
        .label(jump, "this is always done")
        .help("take one of the two out, or put the first under an `if`")
        .emit();
    return;
  }
}

}  // namespace

void analyse(Sema&, const ast::ErrorStmt&, ast::StmtId) {}
void analyse(Sema&, const ast::EmptyStmt&, ast::StmtId) {}

void analyse(Sema& sema, const ast::BlockStmt& stmt, ast::StmtId) {
  sema.scopes.push();
  enter_block(sema);
  warn_of_unreachable(sema, stmt.body);
  for (const ast::StmtId inner : stmt.body) analyse_statement(sema, inner);
  leave_block(sema);
  sema.scopes.pop();
}

void analyse(Sema& sema, const ast::ExprStmt& stmt, ast::StmtId id) {
  const auto* call = sema.ast.as<ast::CallExpr>(stmt.value);
  if (call != nullptr && ast::is_atomic(call->builtin)) {
    return run_atomic(sema, *call, sema.ast[id].span);
  }
  const bool meets = call != nullptr && (call->builtin == ast::Builtin::kBarrierArrive ||
                                         call->builtin == ast::Builtin::kBarrierSync);
  if (meets) return meet_by_number(sema, *call, sema.ast[id].span);
  if (const auto* function = sema.ast.as<ast::FunctionCallExpr>(stmt.value)) {
    return run_call(sema, *function, sema.ast[id].span);
  }
  (void)evaluate(sema, stmt.value);
}

void analyse(Sema& sema, const ast::ReturnStmt& s, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!sema.calls.empty()) return return_from_call(sema, s, span);
  if (sema.place.in_kernel) {
    (void)sema.diags.report<diag::ReturnInsideParallel>(span)
        .help("move it behind the `parallel`")
        .emit();
    return;
  }
  sema.returned = true;
  const std::string& function = sema.function.name;
  if (!s.value.valid()) {
    if (const auto declared = declared_text(sema)) {
      (void)sema.diags.report<diag::ReturnType>(span, function, *declared, "nothing").emit();
      return;
    }
    give_back(sema, {span, {}}, span);
    return;
  }
  const Operand value = evaluate(sema, s.value);
  if (value.is_error()) return;
  const Span where = sema.ast[s.value].span;
  if (sema.returns_nothing) {
    (void)sema.diags
        .report<diag::ReturnType>(where, function, "nothing", describe(value, sema.function))
        .help("declare the function `__co__ auto {}(...)`, or write `return;`", function)
        .emit();
    return;
  }
  if (value.is_number() && !sema.declared_result) {
    return give_back_number(sema, value, where, span);
  }
  const bool is_view = value.kind == Operand::Kind::kView;
  if (is_view ? sema.declared_number.has_value() : sema.declared_result && value.is_number()) {
    (void)sema.diags
        .report<diag::ReturnType>(where, function, *declared_text(sema),
                                  describe(value, sema.function))
        .help("declare the function `__co__ auto {}(...)`, or return what it says", function)
        .emit();
    return;
  }
  if (!is_view) {
    refuse(sema, where, format("returning {}", describe(value, sema.function)));
    return;
  }
  const ir::ViewType& type = sema.function.view_type(value.id);
  if (sema.function.def_as<ir::Subview>(value.id) != nullptr ||
      sema.function.def_as<ir::Alias>(value.id) != nullptr) {
    (void)sema.diags.report<diag::ReturnType>(where, function, "a whole buffer", "a view of one")
        .help("return the buffer itself")
        .emit();
    return;
  }
  if (sema.declared_result &&
      !(sema.declared_result->dtype == type.dtype && sema.declared_result->shape == type.shape)) {
    (void)sema.diags
        .report<diag::ReturnType>(where, function, type_text(sema, *sema.declared_result),
                                  type_text(sema, type))
        .help("declare the function `__co__ auto {}(...)`, or change the buffer", function)
        .emit();
    return;
  }
  give_back(sema, {where, value.id}, span);
}

// `#pragma croq intrinsic prefix f_`: which names are CUDA's. Here `call` says so, at each call.
void analyse(Sema&, const ast::PragmaStmt&, ast::StmtId) {}

void analyse_statement(Sema& sema, ast::StmtId id) {
  if (!id.valid()) return;
  if (!sema.calls.empty() && sema.calls.back().returned) return;
  const ast::Stmt& stmt = sema.ast[id];
  if (!check_in_apply(sema, stmt.node, stmt.span)) return;
  if (analyse_each_choice(sema, id)) return;
  kiln::visit([&](const auto& node) { analyse(sema, node, id); }, stmt.node);
}

void analyse_body(Sema& sema, ast::StmtId id) {
  if (!id.valid()) return;
  if (const auto* block = sema.ast.as<ast::BlockStmt>(id)) return analyse(sema, *block, id);
  sema.scopes.push();
  analyse_statement(sema, id);
  sema.scopes.pop();
}

}  // namespace kiln::sema
