// One handler per kind of statement; what has no meaning yet is refused by name.
#include "sema/statement.h"

#include <algorithm>
#include <cctype>

#include "sema/expression.h"

namespace kiln::sema {

namespace {

struct StatementVisitor {
  Sema& sema;
  ast::StmtId id;
  Span span;

  void operator()(const ast::ErrorStmt&) const {}
  void operator()(const ast::EmptyStmt&) const {}
  void operator()(const ast::BlockStmt&) const { analyse_body(sema, id); }
  void operator()(const ast::ScalarDeclStmt& s) const { declare_scalars(sema, s); }
  void operator()(const ast::MdspanDeclStmt& s) const { declare_mdspan(sema, s, span); }
  void operator()(const ast::ItupleDeclStmt& s) const { declare_ituple(sema, s, span); }
  void operator()(const ast::BufferDeclStmt& s) const { declare_buffers(sema, s, span); }
  void operator()(const ast::FragDeclStmt&) const { refused("`frag`"); }
  void operator()(const ast::EventDeclStmt& s) const { declare_events(sema, s, span); }
  void operator()(const ast::AssignStmt& s) const { assign(sema, s, span); }
  void operator()(const ast::ExprStmt& s) const { (void)evaluate(sema, s.value); }
  void operator()(const ast::MoveStmt& s) const { analyse_move(sema, s, span); }
  void operator()(const ast::PlaceholderStmt& s) const { declare_placeholder(sema, s, span); }
  void operator()(const ast::MmaFillStmt& s) const { analyse_fill(sema, s, span); }
  void operator()(const ast::MmaLoadStmt& s) const { analyse_load(sema, s, span); }
  void operator()(const ast::MmaExecStmt& s) const { analyse_exec(sema, s, span); }
  void operator()(const ast::MmaScaleStmt& s) const { analyse_scale(sema, s, span); }
  void operator()(const ast::MmaStoreStmt& s) const { analyse_store(sema, s, span); }
  void operator()(const ast::MmaCommitStmt&) const { analyse_commit(sema, span); }
  void operator()(const ast::MmaWaitStmt& s) const { analyse_mma_wait(sema, s, span); }
  void operator()(const ast::ApplyStmt& s) const { analyse_apply(sema, s, span); }
  void operator()(const ast::ReduceStmt&) const { refused("a reduction of a fragment"); }
  void operator()(const ast::AllReduceStmt&) const { refused("`all_reduce_sum`"); }
  void operator()(const ast::FragCopyStmt&) const { refused("`copy` of fragments"); }
  void operator()(const ast::WaitStmt& s) const { analyse_wait(sema, s, span); }
  void operator()(const ast::TriggerStmt& s) const { analyse_trigger(sema, s, span); }
  void operator()(const ast::RotateStmt& s) const { analyse_rotate(sema, s, span); }
  void operator()(const ast::ReturnStmt& s) const;
  void operator()(const ast::SyncStmt& s) const { analyse_sync(sema, s, span); }
  void operator()(const ast::CallStmt& s) const { analyse_call(sema, s, span); }
  void operator()(const ast::CppStmt&) const { refused("`__cpp__`"); }
  void operator()(const ast::AsmStmt&) const { refused("inline assembly"); }
  void operator()(const ast::AssertStmt& s) const { analyse_assert(sema, s, span); }
  void operator()(const ast::PrintStmt& s) const { refused(s.newline ? "`println`" : "`print`"); }
  void operator()(const ast::PragmaStmt&) const { refused("`#pragma croq intrinsic`"); }
  void operator()(const ast::ParallelStmt& s) const { analyse_parallel(sema, s, id); }
  void operator()(const ast::WithStmt& s) const { analyse_with(sema, s); }
  void operator()(const ast::ForeachStmt& s) const { analyse_foreach(sema, s, span); }
  void operator()(const ast::WhileStmt& s) const { analyse_while(sema, s, span); }
  void operator()(const ast::IfStmt& s) const { analyse_if(sema, s, span); }
  void operator()(const ast::InthreadsStmt& s) const { analyse_inthreads(sema, s, span); }
  void operator()(const ast::BreakStmt&) const { analyse_jump(sema, Jump::kBreak, span); }
  void operator()(const ast::ContinueStmt&) const { analyse_jump(sema, Jump::kContinue, span); }
  void operator()(const ast::YieldStmt&) const { analyse_jump(sema, Jump::kYield, span); }

  void refused(std::string_view construct) const { refuse(sema, span, construct); }
};

// All `return`s of a function give the same buffer, or nothing: the caller gets one result.
void give_back(Sema& sema, GivenBack given, Span statement) {
  const GivenBack first = sema.given_back.value_or(given);
  sema.given_back = first;
  if (given.buffer.valid() != first.buffer.valid()) {
    const auto what = [](const GivenBack& one) {
      return one.buffer.valid() ? "a buffer" : "nothing";
    };
    (void)sema.diags
        .report<diag::ReturnType>(given.span, sema.function.name, what(first), what(given))
        .label(first.span, "{} is returned here", what(first))
        .help("return the same in both places")
        .emit();
    return;
  }
  if (given.buffer != first.buffer) {
    refuse(sema, given.span, "returning one of several buffers");
    return;
  }
  emit(sema, ir::Return{given.buffer}, statement);
}

void StatementVisitor::operator()(const ast::ReturnStmt& s) const {
  if (sema.place.in_kernel) {
    (void)sema.diags.report<diag::ReturnInsideParallel>(span)
        .help("move it behind the `parallel`")
        .emit();
    return;
  }
  sema.returned = true;
  const std::string& function = sema.function.name;
  if (!s.value.valid()) {
    if (sema.declared_result) {
      (void)sema.diags
          .report<diag::ReturnType>(span, function, type_text(sema, *sema.declared_result),
                                    "nothing")
          .emit();
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
  if (value.is_number() && sema.returns_scalar) return;  // refused at the signature
  if (value.kind != Operand::Kind::kView) {
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

void analyse_statement(Sema& sema, ast::StmtId id) {
  if (!id.valid()) return;
  const ast::Stmt& stmt = sema.ast[id];
  if (!check_in_apply(sema, stmt.node, stmt.span)) return;
  std::visit(StatementVisitor{sema, id, stmt.span}, stmt.node);
}

void analyse_body(Sema& sema, ast::StmtId id) {
  if (!id.valid()) return;
  sema.scopes.push();
  if (const auto* block = sema.ast.as<ast::BlockStmt>(id)) {
    ScaledBlock outer = enter_scaled(sema, block->body);
    warn_of_unreachable(sema, block->body);
    for (ast::StmtId inner : block->body) analyse_statement(sema, inner);
    leave_scaled(sema, std::move(outer));
  } else {
    analyse_statement(sema, id);
  }
  sema.scopes.pop();
}

}  // namespace kiln::sema
