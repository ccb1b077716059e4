// Looks ahead over the text of a function: a copy's buffer and completion depend on what is done
// with its name later.
//
//   cur = dma.copy.async ... => shared;      `swap(cur, nxt)` further down: both names share an
//   nxt = dma.any;                           array of two buffers
//   f = dma.copy.async ... => a;             `swap(f, g)`, and g is copied to b: a and b share one
//   f = tma.load.async ... => shared;        `trigger full after f;`: no event of its own
//   c = mma.load y;                          `mma.row.row c, a, b;`: an accumulator that begins with y
#include <algorithm>
#include <map>

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
  void operator()(const ast::MoveStmt& s) {
    if (!s.handle.valid() || !s.target.valid()) return;
    targets_.push_back({s.handle.text, s.target, s.engine == ast::Engine::kTma});
  }
  void operator()(const ast::TriggerStmt& s) {
    for (const ast::Name& name : s.after) plan_.completes[name.text] = event_name(s);
  }
  void operator()(const ast::EventDeclStmt& s) {
    if (s.storage != ast::Storage::kGlobal && s.storage != ast::Storage::kLocal) return;
    for (const auto& item : s.items) elsewhere_.insert(item.declarator.name.text);
  }
  void operator()(const ast::MmaExecStmt& s) {
    plan_.sums.insert(s.acc.name.text);
    if (const auto* named = ast_.as<ast::NameExpr>(s.metadata)) plan_.metadata.insert(named->name);
    for (const ast::ExprId factor : {s.a, s.b}) {
      const auto* named = ast_.as<ast::NameExpr>(factor);
      if (named != nullptr) plan_.factors.insert(named->name);
    }
  }
  void operator()(const auto&) {}

  void select(const ast::SelectExpr& select) { join(choices_of(select), false); }

  [[nodiscard]] NamePlan take() {
    join_targets();
    // What is not an event of the block is triggered when the copies have been waited for.
    std::erase_if(plan_.completes,
                  [&](const auto& tied) { return elsewhere_.contains(tied.second); });
    // Groups that others were merged into are left over, without names.
    return std::move(plan_);
  }

 private:
  // The names that are chosen from, if each choice is one.
  [[nodiscard]] std::vector<std::string> choices_of(const ast::SelectExpr& select) const {
    std::vector<std::string> names;
    for (const ast::ExprId choice : select.choices) {
      const auto* member = ast_.as<ast::MemberExpr>(choice);  // f.data
      const auto* named = ast_.as<ast::NameExpr>(member != nullptr ? member->base : choice);
      if (named != nullptr) names.push_back(named->name);
    }
    if (names.size() != select.choices.size()) names.clear();
    return names;
  }

  // Declared buffers that copies of one group go to share an array.
  void join_targets() {
    std::map<std::size_t, std::vector<std::string>> buffers;  // by the group of the copies
    for (const Target& target : targets_) {
      const auto of = plan_.group.find(target.handle);
      if (of == plan_.group.end() || !plan_.exchanges[of->second]) continue;
      plan_.declared.resize(plan_.groups.size());
      plan_.declared[of->second] = true;
      std::vector<std::string> names;
      if (const auto* named = ast_.as<ast::NameExpr>(target.place)) names = {named->name};
      if (const auto* select = ast_.as<ast::SelectExpr>(target.place)) names = choices_of(*select);
      if (target.is_box) plan_.boxes.insert(names.begin(), names.end());
      std::vector<std::string>& all = buffers[of->second];
      all.insert(all.end(), names.begin(), names.end());
    }
    for (const auto& [of, names] : buffers) join(names, false);
    plan_.declared.resize(plan_.groups.size());
  }

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

  // Where a copy with a name goes.
  struct Target {
    std::string handle;
    ast::ExprId place;
    bool is_box = false;
  };

  const ast::Ast& ast_;
  NamePlan plan_;
  std::vector<Target> targets_;
  std::set<std::string> elsewhere_;  // events that are not in shared memory
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
