// Looks ahead over the text of a function: a copy's buffer and completion depend on what is done
// with its name later.
//
//   cur = dma.copy.async ... => shared;      `swap(cur, nxt)` further down: both names share an
//   nxt = dma.any;                           array of two buffers
//   f = tma.load.async ... => shared;        `trigger full after f;`: no event of its own
//   c = mma.load y;                          `mma.row.row c, a, b;`: an accumulator that begins with y
#include <algorithm>

#include "sema/future.h"

namespace kiln::sema {

namespace {

class Planner {
 public:
  explicit Planner(const ast::Ast& ast) : ast_(ast) {}

  void operator()(const ast::RotateStmt& s) {
    std::vector<std::string> names;
    for (const ast::Name& name : s.names) names.push_back(name.text);
    join(names, true);
  }
  void operator()(const ast::PlaceholderStmt& s) { join({s.name.text}, false); }
  void operator()(const ast::TriggerStmt& s) {
    for (const ast::Name& name : s.after) plan_.completes[name.text] = event_name(s);
  }
  void operator()(const ast::MmaExecStmt& s) {
    plan_.sums.insert(s.acc.name.text);
    for (const ast::ExprId factor : {s.a, s.b}) {
      const auto* named = ast_.as<ast::NameExpr>(factor);
      if (named != nullptr) plan_.factors.insert(named->name);
    }
  }
  void operator()(const auto&) {}

  void select(const ast::SelectExpr& select) {
    std::vector<std::string> names;
    for (const ast::ExprId choice : select.choices) {
      const auto* member = ast_.as<ast::MemberExpr>(choice);  // f.data
      const auto* named = ast_.as<ast::NameExpr>(member != nullptr ? member->base : choice);
      if (named != nullptr) names.push_back(named->name);
    }
    if (names.size() == select.choices.size()) join(names, false);
  }

  [[nodiscard]] NamePlan take() {
    // Groups that others were merged into are left over, without names.
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::string event_name(const ast::TriggerStmt& s) const {
    ast::ExprId id = s.refs.empty() ? ast::ExprId{} : s.refs[0];
    if (const auto* at = ast_.as<ast::AtExpr>(id)) id = at->base;
    while (const auto* subscript = ast_.as<ast::SubscriptExpr>(id)) id = subscript->base;
    const auto* named = ast_.as<ast::NameExpr>(id);
    return named == nullptr ? std::string() : named->name;
  }

  // Brings all names into one group.
  void join(const std::vector<std::string>& names, bool exchanges) {
    if (names.empty()) return;
    const std::size_t into = group_of(names[0]);
    for (const std::string& name : names) {
      const std::size_t from = group_of(name);
      if (from == into) continue;
      for (const std::string& moved : plan_.groups[from]) {
        plan_.group[moved] = into;
        plan_.groups[into].push_back(moved);
      }
      plan_.groups[from].clear();
      if (plan_.exchanges[from]) plan_.exchanges[into] = true;
    }
    if (exchanges) plan_.exchanges[into] = true;
  }

  std::size_t group_of(const std::string& name) {
    const auto [at, added] = plan_.group.try_emplace(name, plan_.groups.size());
    if (added) {
      plan_.groups.push_back({name});
      plan_.exchanges.push_back(false);
    }
    return at->second;
  }

  const ast::Ast& ast_;
  NamePlan plan_;
};

}  // namespace

NamePlan plan_names(const ast::Ast& ast, Span function) {
  Planner planner(ast);
  for (const ast::Stmt& stmt : ast.stmts) {
    if (lies_in(stmt.span, function))
      kiln::visit([&](const auto& node) { planner(node); }, stmt.node);
  }
  for (const ast::Expr& expr : ast.exprs) {
    const auto* select = std::get_if<ast::SelectExpr>(&expr.node);
    if (select != nullptr && lies_in(expr.span, function)) planner.select(*select);
  }
  return planner.take();
}

}  // namespace kiln::sema
