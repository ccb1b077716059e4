// `foreach`, `with`, `while`, `if`, what leaves them, `sync` and `assert`.
#include <algorithm>

#include "ir/prove.h"
#include "sema/attribute.h"
#include "sema/constant.h"
#include "sema/cuda.h"
#include "sema/entry_check.h"
#include "sema/expression.h"
#include "sema/guard.h"
#include "sema/partial_sum.h"
#include "sema/statement.h"
#include "sema/tile_array.h"

namespace kiln::sema {

namespace {

// A variable that steps together with another one.
struct Tied {
  ast::Name name;
  Bound bound;
};

// One level of iteration: a name, its bound, and the range it runs through.
struct Loop {
  ast::Name name;
  Bound bound;
  ir::Expr lower = 0;
  ir::Expr upper = 0;
  std::int64_t step = 1;
  std::vector<Tied> tied = {};  // have its value as well
};

// A name for several of the variables together.
struct TupleName {
  ast::Name name;
  std::vector<std::string> parts;
};

// `foreach a, b body`: the loops, outermost first.
struct LoopNest {
  std::vector<Loop> loops = {};
  std::vector<TupleName> tuples = {};
  std::int64_t unroll = 0;
  PipelineWish pipeline = {};
  ast::StmtId body = {};
  Span span = {};
};

// The names of an item's variables. A plain name for several bounds is that of a tuple, whose
// elements have names that the text does not use.
std::vector<ast::Name> names_for(const Sema& sema, const ast::WithItem& item, std::size_t count) {
  if (!item.elements.empty()) return item.elements;
  if (count < 2) return {item.name};
  std::vector<ast::Name> names;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = format("{}_{}", item.name.text, i);
    while (sema.scopes.find(name) != nullptr) name += '_';
    names.push_back({name, item.name.span});
  }
  return names;
}

// The bounds a with-item declares, one per element name (or one for a plain name of one bound).
std::optional<std::vector<Loop>> declared_loops(Sema& sema, const ast::WithItem& item) {
  const Operand bounds = evaluate(sema, item.bounds);
  if (bounds.is_error()) return std::nullopt;
  std::vector<Element> extents = bounds.elements;
  std::vector<std::optional<CDivParts>> written(extents.size());
  if (extents.empty()) {
    const auto single = to_index(sema, bounds, "the bound of a loop");
    if (!single) return std::nullopt;
    extents.push_back(*single);
    written.push_back(bounds.written_as);
  } else if (const auto* shape = sema.ast.as<ast::ShapeExpr>(item.bounds)) {
    for (std::size_t i = 0; i < shape->items.size() && shape->items.size() == extents.size(); ++i) {
      if (sema.ast.as<ast::CallExpr>(shape->items[i]) != nullptr) {
        written[i] = evaluate(sema, shape->items[i]).written_as;
      }
    }
  }
  const std::vector<ast::Name> names = names_for(sema, item, extents.size());
  if (names.size() != extents.size()) {
    (void)sema.diags.report<diag::ParallelBounds>(item.span, names.size(), extents.size())
        .help("give one bound for each variable")
        .emit();
    return std::nullopt;
  }
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto constant = extents[i].value.constant();
    if (constant && *constant <= 0) {
      (void)sema.diags
          .report<diag::ExtentNotPositive>(sema.ast[item.bounds].span, "the bound of a loop",
                                           *constant)
          .emit();
      return std::nullopt;
    }
    Loop loop{names[i], {extents[i].value, written[i]}, 0, extents[i].value, 1};
    loops.push_back(std::move(loop));
  }
  return loops;
}

// The symbol of a name that `with` declared; null after a report.
const Symbol* with_symbol(Sema& sema, const ast::Name& name) {
  const Symbol* symbol = sema.scopes.find(name.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(name.span, name.text)
        .help("declare and iterate at once: `foreach {} in [8]`", name.text)
        .emit();
    return nullptr;
  }
  if (symbol->operand.is_error()) return nullptr;
  if (symbol->kind == Symbol::Kind::kWith) return symbol;
  const bool is_axis = symbol->kind == Symbol::Kind::kParallel;
  (void)sema.diags
      .report<diag::LoopNotBounded>(name.span, name.text,
                                    is_axis ? "it is an axis of a `parallel`, all of whose values "
                                              "run at once"
                                            : "it was not declared by `with`")
      .help("`foreach i in [n]` declares a loop variable")
      .emit();
  return nullptr;
}

// The loop of a variable over its whole bound, with the variables tied to it.
Loop whole_loop(Sema& sema, const Symbol& symbol, const ast::Name& name) {
  const Bound& bound = *symbol.operand.integer.bound;
  Loop loop{name, bound, 0, bound.extent, 1};
  for (const std::string& other : symbol.tied) {
    const Symbol* tied = sema.scopes.find(other);
    if (tied == nullptr || !tied->operand.integer.bound) continue;
    loop.tied.push_back({{other, name.span}, *tied->operand.integer.bound});
  }
  return loop;
}

// `foreach t` of a tuple that `with` declared: its elements, outermost first. False after a report.
bool add_tuple(Sema& sema, const Symbol& tuple, const ast::Name& name, LoopNest& nest) {
  for (const std::string& part : tuple.parts) {
    const Symbol* symbol = sema.scopes.find(part);
    if (symbol == nullptr || symbol->operand.is_error()) continue;
    if (!symbol->operand.integer.bound) {
      if (part == name.text) return false;  // refused where it was declared
      (void)sema.diags
          .report<diag::LoopNotBounded>(name.span, part,
                                        "an element of the tuple has another meaning here")
          .help("give `{}` and the elements of `{}` names of their own", part, name.text)
          .emit();
      return false;
    }
    nest.loops.push_back(whole_loop(sema, *symbol, {part, name.span}));
  }
  nest.tuples.push_back({name, tuple.parts});
  return true;
}

// `v(lo:hi:step)` on a variable that `with` declared.
std::optional<Loop> ranged_loop(Sema& sema, const Symbol& symbol, const ast::ForeachItem& item) {
  Loop loop = whole_loop(sema, symbol, item.local.valid() ? item.local : item.variable);
  const Bound bound = loop.bound;
  if (item.low.valid()) {
    const auto low = evaluate_index(sema, item.low, "the start of the range");
    if (!low) return std::nullopt;
    loop.lower = low->value;
  }
  if (item.high.valid()) {
    const auto high = evaluate_index(sema, item.high, "the end of the range");
    if (!high) return std::nullopt;
    loop.upper = bound.extent + high->value;
  }
  if (item.step.valid()) {
    const auto step = evaluate_constant(sema, item.step, "the step");
    if (!step) return std::nullopt;
    if (*step < 1) {
      (void)sema.diags.report<diag::LoopStep>(sema.ast[item.step].span, *step).emit();
      return std::nullopt;
    }
    loop.step = *step;
  }
  return loop;
}

// The name of a tuple whose elements have values by now.
void declare_tuple(Sema& sema, const TupleName& tuple) {
  Operand operand;
  operand.kind = Operand::Kind::kTuple;
  operand.span = tuple.name.span;
  for (const std::string& part : tuple.parts) {
    const Symbol* symbol = sema.scopes.find(part);
    if (symbol != nullptr) operand.elements.push_back(symbol->operand.integer);
  }
  declare(sema, tuple.name, {Symbol::Kind::kOperand, operand, {}});
}

// The variable of the loop and those tied to it have the value in its body.
void declare_variables(Sema& sema, const Loop& loop, const ir::Expr& value) {
  Symbol symbol{Symbol::Kind::kOperand, make_int(value, loop.name.span), {}};
  symbol.operand.integer.bound = loop.bound;
  for (const Tied& tied : loop.tied) {
    Symbol other = symbol;
    other.operand.integer.bound = tied.bound;
    declare(sema, tied.name, std::move(other));
  }
  declare(sema, loop.name, std::move(symbol));
}

void run_loops(Sema& sema, const LoopNest& nest, std::size_t index);

// The names that the loop gives a value.
std::vector<std::string> names_of(const LoopNest& nest, const Loop& loop) {
  std::vector<std::string> out = {loop.name.text};
  for (const Tied& tied : loop.tied) out.push_back(tied.name.text);
  for (const TupleName& tuple : nest.tuples) {
    const bool has = std::ranges::find(tuple.parts, loop.name.text) != tuple.parts.end();
    if (has) out.push_back(tuple.name.text);
  }
  return out;
}

// The body once for each value, up to the first with a mistake (which is unheard when looking ahead).
void write_out(Sema& sema, const LoopNest& nest, std::size_t index) {
  const Loop& loop = nest.loops[index];
  const std::int64_t upper = *loop.upper.constant();
  const std::size_t errors = sema.diags.error_count();
  const std::int64_t copies = sema.copies;
  std::int64_t value = *loop.lower.constant();
  if (value < upper) sema.copies *= (upper - value - 1) / loop.step + 1;
  const bool in_copy = std::exchange(sema.in_copy, true);
  const auto goes_on = [&] { return sema.looks_ahead || sema.diags.error_count() == errors; };
  for (; value < upper && goes_on(); value += loop.step) {
    sema.scopes.push();
    declare_variables(sema, loop, ir::Expr(value));
    run_loops(sema, nest, index + 1);
    sema.scopes.pop();
  }
  sema.stopped_early = sema.stopped_early || value < upper;
  sema.copies = copies;
  sema.in_copy = in_copy;
}

void run_loops(Sema& sema, const LoopNest& nest, std::size_t index) {
  if (index == nest.loops.size()) {
    sema.scopes.push();
    for (const TupleName& tuple : nest.tuples) declare_tuple(sema, tuple);
    analyse_body(sema, nest.body);
    sema.scopes.pop();
    return;
  }
  const Loop& loop = nest.loops[index];
  std::string obstacle;
  if (is_written_out(sema, names_of(nest, loop), nest.body, {loop.lower, loop.upper, loop.step},
                     obstacle)) {
    if (nest.pipeline.stages != 0) {
      (void)sema.diags
          .report<diag::PipelineLoop>(nest.span,
                                      "its iterations are written out one by one, as its "
                                      "variable picks registers")
          .help("take the attribute away; nothing is moved then")
          .emit();
    }
    return write_out(sema, nest, index);
  }
  const ir::VarId var =
      add_var(sema, loop.name.text, ir::VarKind::kLoop, loop.upper, loop.name.span);
  sema.function.vars[var].first = loop.lower;
  if (!obstacle.empty()) sema.obstacles.emplace(var, std::move(obstacle));
  const ir::OpId op = emit(sema,
                           ir::For{var,
                                   loop.lower,
                                   loop.upper,
                                   loop.step,
                                   nest.unroll,
                                   nest.pipeline.stages,
                                   nest.pipeline.producer,
                                   {}},
                           nest.span);
  const Place outer = sema.place;
  note_divergence(sema, loop.name.span,
                  [&](ir::Level unit) { return sema.varying.anew().var(var, unit); });
  sema.loops.push_back({sema.place.parallel, sema.place.inthreads});
  const PartialSums sums = enter_iterations(sema);
  const ir::RegionId body = in_region(sema, [&] {
    declare_variables(sema, loop, ir::Expr::var(var));
    run_loops(sema, nest, index + 1);
  });
  leave_iterations(sema, sums);
  sema.loops.pop_back();
  std::get<ir::For>(sema.function.ops[op].data).body = body;
  sema.place = outer;
}

std::int64_t unroll_factor(Sema& sema, const ast::ForeachStmt& stmt,
                           const std::vector<Loop>& loops) {
  std::int64_t unroll = 0;
  for (const ast::LoopSuffix& suffix : stmt.suffixes) {
    if (suffix.kind == ast::LoopSuffix::Kind::kVectorize) {
      refuse(sema, suffix.span, "`vectorize`");
      continue;
    }
    const auto extent = loops.empty() ? std::nullopt : loops.back().bound.extent.constant();
    if (!suffix.factor.valid()) {
      unroll = extent.value_or(0);  // the whole loop
      continue;
    }
    const auto factor = evaluate_constant(sema, suffix.factor, "the unroll factor");
    if (!factor) continue;
    if (*factor < 1 || (extent && *factor > *extent)) {
      (void)sema.diags
          .report<diag::UnrollFactor>(suffix.span, *factor,
                                      extent ? format("{}", *extent) : "the loop's extent")
          .emit();
      continue;
    }
    unroll = *factor;
  }
  return unroll;
}

}  // namespace

namespace {

// Adds the loops of one item; false after a report.
bool add_item(Sema& sema, const ast::ForeachItem& item, LoopNest& nest) {
  if (item.declares) {
    auto declared = declared_loops(sema, *item.declares);
    if (!declared) return false;
    const std::size_t first = nest.loops.size();
    nest.loops.insert(nest.loops.end(), declared->begin(), declared->end());
    const bool is_tuple = !item.declares->elements.empty() || declared->size() > 1;
    if (!is_tuple || !item.declares->name.valid()) return true;
    TupleName tuple{item.declares->name, {}};
    for (std::size_t i = first; i < nest.loops.size(); ++i) {
      tuple.parts.push_back(nest.loops[i].name.text);
    }
    nest.tuples.push_back(std::move(tuple));
    return true;
  }
  const Symbol* symbol = with_symbol(sema, item.variable);
  if (symbol == nullptr) return false;
  const bool is_tuple = symbol->operand.kind == Operand::Kind::kTuple;
  if (is_tuple && (item.ranged || item.local.valid())) {
    refuse(sema, item.span, "a range of a tuple");
    return false;
  }
  if (is_tuple) {
    return add_tuple(sema, Symbol(*symbol), item.variable, nest);
  }
  auto ranged = ranged_loop(sema, Symbol(*symbol), item);
  if (ranged) nest.loops.push_back(std::move(*ranged));
  return ranged.has_value();
}

}  // namespace

void analyse(Sema& sema, const ast::ForeachStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  LoopNest nest{.body = stmt.body, .span = span};
  bool failed = false;
  for (const ast::ForeachItem& item : stmt.items) failed = !add_item(sema, item, nest) || failed;
  if (failed) {
    // Look at the body all the same, with the names declared as unknown quantities.
    sema.scopes.push();
    for (const ast::ForeachItem& item : stmt.items) {
      if (!item.declares) continue;
      for (const ast::Name& name : item.declares->elements) declare(sema, name, {});
      declare(sema, item.declares->name, {});
    }
    sema.loops.push_back({sema.place.parallel, sema.place.inthreads});
    analyse_body(sema, stmt.body);
    sema.loops.pop_back();
    sema.scopes.pop();
    return;
  }
  nest.unroll = unroll_factor(sema, stmt, nest.loops);
  if (!stmt.attributes.empty()) nest.pipeline = pipeline_wish(sema, stmt, nest.loops.size());
  run_loops(sema, nest, 0);
}

namespace {

// `where x <-> y`: each of the two steps with the other.
void tie(Sema& sema, const ast::Tie& tie) {
  for (const ast::Name& name : {tie.left, tie.right}) {
    const Symbol* symbol = sema.scopes.find_here(name.text);
    if (symbol != nullptr && symbol->operand.is_error()) return;
    if (symbol != nullptr && symbol->operand.integer.bound) continue;
    (void)sema.diags.report<diag::TieUnknown>(name.span, name.text)
        .help("tie two variables that stand before `where`")
        .emit();
    return;
  }
  Symbol left = *sema.scopes.find_here(tie.left.text);
  Symbol right = *sema.scopes.find_here(tie.right.text);
  const ir::Expr& a = left.operand.integer.bound->extent;
  const ir::Expr& b = right.operand.integer.bound->extent;
  if (!(a == b) && a.constant() && b.constant()) {
    (void)sema.diags
        .report<diag::TieBounds>(cover(tie.left.span, tie.right.span), tie.left.text,
                                 tie.right.text, text(sema, a), text(sema, b))
        .help("give both the same bound")
        .emit();
    return;
  }
  if (!(a == b)) {
    require(sema, {a, ir::Relation::kEqual, b,
                   format("the bounds of `{}` and `{}`, which step together", tie.left.text,
                          tie.right.text),
                   tie.left.span});
  }
  left.tied.push_back(tie.right.text);
  right.tied.push_back(tie.left.text);
  sema.scopes.declare(tie.left.text, std::move(left));
  sema.scopes.declare(tie.right.text, std::move(right));
}

void declare_item(Sema& sema, const ast::WithItem& item) {
  const auto loops = declared_loops(sema, item);
  if (!loops) {
    for (const ast::Name& name : item.elements) declare(sema, name, {});
    declare(sema, item.name, {});
    return;
  }
  Symbol tuple{Symbol::Kind::kWith, {}, {}};
  tuple.operand.kind = Operand::Kind::kTuple;
  for (const Loop& loop : *loops) {
    Symbol symbol{Symbol::Kind::kWith, make_int(0, loop.name.span), {}};
    symbol.operand.integer.bound = loop.bound;
    tuple.operand.elements.push_back(symbol.operand.integer);
    tuple.parts.push_back(loop.name.text);
    declare(sema, loop.name, std::move(symbol));
  }
  const bool is_tuple = !item.elements.empty() || loops->size() > 1;
  if (is_tuple) declare(sema, item.name, std::move(tuple));
}

}  // namespace

void analyse(Sema& sema, const ast::WithStmt& stmt, ast::StmtId) {
  sema.scopes.push();
  for (const ast::WithItem& item : stmt.items) declare_item(sema, item);
  for (const ast::Tie& each : stmt.ties) tie(sema, each);
  analyse_body(sema, stmt.body);
  sema.scopes.pop();
}

namespace {

// From here to the end of the innermost loop (or of the kernel), the threads that got here are
// missing.
void note_leaving(Sema& sema, Jump jump) {
  const auto add = [&](Leaving& leaving) {
    if (!leaving.in_block.valid()) leaving.in_block = sema.place.divergent_in_block;
    if (!leaving.in_warp.valid()) leaving.in_warp = sema.place.divergent_in_warp;
  };
  if (jump == Jump::kYield) {
    if (sema.yielding != sema.place.launch) sema.yielded = {};
    sema.yielding = sema.place.launch;
    add(sema.yielded);
    for (OpenLoop& loop : sema.loops) loop.is_left = true;
    return;
  }
  add(sema.loops.back().leaving);
  sema.loops.back().is_left = sema.loops.back().is_left || jump == Jump::kBreak;
}

// Leaves the loop where `goes_on` is false.
void leave_unless(Sema& sema, ir::ValueId goes_on, Span span) {
  const Place outer = sema.place;
  note_divergence(sema, span,
                  [&](ir::Level unit) { return sema.varying.anew().value(goes_on, unit); });
  const ir::ValueId ends =
      emit_value(sema, ir::Unary{ir::UnaryKind::kNot, goes_on}, span, ir::ScalarType{DType::kBool});
  const ir::OpId branch = emit(sema, ir::If{ends, {}, {}}, span);
  const ir::RegionId then_body = in_region(sema, [&] { emit(sema, ir::Break{}, span); });
  std::get<ir::If>(sema.function.ops[branch].data).then_body = then_body;
  note_leaving(sema, Jump::kBreak);
  sema.place = outer;
}

}  // namespace

void analyse(Sema& sema, const ast::WhileStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const ir::OpId op = emit(sema, ir::Loop{}, span);
  sema.loops.push_back({sema.place.parallel, sema.place.inthreads});
  bool always = false;
  const PartialSums sums = enter_iterations(sema);
  const ir::RegionId body = in_region(sema, [&] {
    const Operand condition = evaluate(sema, stmt.condition);
    const bool folded =
        condition.kind == Operand::Kind::kInt && condition.integer.value.constant().has_value();
    always = folded && !condition.integer.value.is(0);
    const auto flag = always ? std::nullopt : convert_to_bool(sema, condition);
    if (flag) leave_unless(sema, *flag, condition.span);
    always = always || condition.is_error() || !flag;
    analyse_body(sema, stmt.body);
    if (folded && always && !sema.loops.back().is_left && !sema.has_syntax_errors) {
      (void)sema.diags.report<diag::LoopEndless>(condition.span)
          .help("leave it with `break`, or give it a condition that ends it")
          .emit();
    }
  });
  leave_iterations(sema, sums);
  sema.loops.pop_back();
  std::get<ir::Loop>(sema.function.ops[op].data).body = body;
}

namespace {

// What helps a jump that cannot reach its loop.
std::string way_out(bool crosses_level, bool crosses_region) {
  if (crosses_level) {
    return "a `parallel` inside of a loop cannot leave the loop: put the `if` and the `break` "
           "around it";
  }
  if (!crosses_region) return "";
  return "an `inthreads` region inside of a loop cannot leave the loop: put the loop inside of the "
         "region";
}

}  // namespace

namespace {

void leave(Sema& sema, Jump jump, Span span) {
  if (jump == Jump::kYield) {
    if (!check_in_kernel(sema, span, "`yield`")) return;
    note_leaving(sema, jump);
    emit(sema, ir::Yield{}, span);
    return;
  }
  const bool is_break = jump == Jump::kBreak;
  const std::size_t of_caller = sema.calls.empty() ? 0 : sema.calls.back().loops;
  const bool inside = sema.loops.size() > of_caller;
  const bool crosses_region = inside && sema.loops.back().inthreads != sema.place.inthreads;
  const bool crosses_level = inside && sema.loops.back().parallel != sema.place.parallel;
  if (!inside || crosses_region || crosses_level) {
    (void)sema.diags.report<diag::JumpOutsideLoop>(span, is_break ? "break" : "continue")
        .help_if(way_out(crosses_level, crosses_region))
        .emit();
    return;
  }
  note_leaving(sema, jump);
  note_sums_left(sema);
  if (is_break) {
    emit(sema, ir::Break{}, span);
  } else {
    emit(sema, ir::Continue{}, span);
  }
}

}  // namespace

void analyse(Sema& sema, const ast::BreakStmt&, ast::StmtId id) {
  leave(sema, Jump::kBreak, sema.ast[id].span);
}

void analyse(Sema& sema, const ast::ContinueStmt&, ast::StmtId id) {
  leave(sema, Jump::kContinue, sema.ast[id].span);
}

void analyse(Sema& sema, const ast::YieldStmt&, ast::StmtId id) {
  leave(sema, Jump::kYield, sema.ast[id].span);
}

namespace {

// In a loop that is written out, `if (i > 0)` is decided for each value of i, and only what it
// chooses has a meaning: there may be no `sum[i - 1]` otherwise. False: it is not decided.
bool analyse_decided(Sema& sema, const ast::IfStmt& stmt, const Operand& condition) {
  if (!sema.in_copy || condition.kind != Operand::Kind::kInt) return false;
  const auto constant = condition.integer.value.constant();
  if (!constant) return false;
  const ast::StmtId chosen = *constant != 0 ? stmt.then_body : stmt.else_body;
  if (!chosen.valid()) return true;
  sema.scopes.push();
  analyse_statement(sema, chosen);
  sema.scopes.pop();
  return true;
}

// The branch that is not taken is not looked at.
void analyse_chosen(Sema& sema, const ast::IfStmt& stmt) {
  const auto holds = condition_of(sema, stmt.condition, "the condition of `if constexpr`");
  if (!holds) return;
  const ast::StmtId chosen = *holds ? stmt.then_body : stmt.else_body;
  if (!chosen.valid()) return;
  sema.scopes.push();
  analyse_statement(sema, chosen);
  sema.scopes.pop();
}

}  // namespace

namespace {

// `K % 8 == 0`, and several of them with `&&`.
void note_divisors(Sema& sema, ir::ValueId condition) {
  const auto* binary = sema.function.def_as<ir::Binary>(condition);
  if (binary == nullptr) return;
  if (binary->kind == ir::BinaryKind::kLogicalAnd) {
    note_divisors(sema, binary->left);
    return note_divisors(sema, binary->right);
  }
  const auto* rest = sema.function.def_as<ir::Index>(binary->left);
  const auto* none = sema.function.def_as<ir::Const>(binary->right);
  if (binary->kind != ir::BinaryKind::kEq || rest == nullptr || none == nullptr) return;
  const std::vector<ir::Term>& terms = rest->expr.terms();
  const bool is_atom = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1;
  if (none->value != 0 || !is_atom || terms[0].atoms[0].kind != ir::AtomKind::kMod) return;
  const ir::Atom& atom = terms[0].atoms[0];
  if (const auto divisor = atom.right->constant()) sema.divisors.push_back({*divisor, *atom.left});
}

// Where the condition is known to hold, or not to.
ir::RegionId analyse_branch(Sema& sema, ast::StmtId body, std::optional<ir::ValueId> condition,
                            bool holds) {
  const std::size_t known = sema.guards.size();
  if (condition) learn(sema, *condition, holds);
  const ir::RegionId out = in_region(sema, [&] { analyse_statement(sema, body); });
  sema.guards.resize(known);
  return out;
}

}  // namespace

void analyse(Sema& sema, const ast::IfStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (stmt.is_constexpr) return analyse_chosen(sema, stmt);
  const Operand condition = evaluate_as(sema, stmt.condition, DType::kBool);
  if (analyse_decided(sema, stmt, condition)) return;
  const auto flag = convert_to_bool(sema, condition);
  const Place outer = sema.place;
  if (flag) {
    note_divergence(sema, condition.span,
                    [&](ir::Level unit) { return sema.varying.anew().value(*flag, unit); });
  }
  const ir::OpId op = emit(sema, ir::If{flag.value_or(ir::ValueId{}), {}, {}}, span);
  const PartialSums before = sema.sums;
  const std::size_t known = sema.divisors.size();
  if (flag && !sema.place.in_kernel) note_divisors(sema, *flag);
  const ir::RegionId then_body = analyse_branch(sema, stmt.then_body, flag, true);
  sema.divisors.resize(known);
  const PartialSums after = std::exchange(sema.sums, before);
  ir::RegionId else_body;
  if (stmt.else_body.valid()) {
    else_body = analyse_branch(sema, stmt.else_body, flag, false);
  }
  sema.sums = either(after, sema.sums);
  auto& branch = std::get<ir::If>(sema.function.ops[op].data);
  branch.then_body = then_body;
  branch.else_body = else_body;
  sema.place = outer;
}

namespace {

// `sync.global;`: what stands behind a launch sees what it has written, so that nothing is to do.
void wait_for_launches(Sema& sema, Span span, std::string_view word) {
  if (!sema.place.in_kernel) return;
  (void)sema.diags.report<diag::InsideParallel>(span, word)
      .help(
          "`sync.shared;` waits for the threads of the block; for all blocks, end the kernel and "
          "launch another one")
      .emit();
}

// Whether the statement stands in a `: group-4`, whose threads can meet.
bool is_in_warpgroup(const Sema& sema) {
  return std::ranges::any_of(sema.place.nest, [&](ir::OpId id) {
    return std::get<ir::Parallel>(sema.function.ops[id].data).level == ir::Level::kGroup4;
  });
}

// Whether the blocks of a cluster can meet here: all their threads come by.
bool is_of_whole_cluster(const Sema& sema) {
  const ir::OpId launch = sema.place.launch;
  return launch.valid() && !sema.place.inthreads.valid() &&
         !std::get<ir::Parallel>(sema.function.ops[launch].data).cluster.empty();
}

bool is_cooperative(const Sema& sema) {
  const ir::OpId launch = sema.place.launch;
  return launch.valid() && std::get<ir::Parallel>(sema.function.ops[launch].data).cooperative;
}

// Whether the statement waits for all blocks, `: block` of a cooperative launch or `: device`.
bool is_of_grid(const Sema& sema, const ast::SyncStmt& stmt) {
  if (stmt.kind != ast::SyncKind::kBarrier) return false;
  return stmt.level == ast::Level::kDevice ||
         (stmt.level == ast::Level::kBlock && is_cooperative(sema));
}

// Whether all blocks can meet here; reports.
bool check_grid_barrier(Sema& sema, Span span) {
  const bool in_region = sema.place.inthreads.valid();
  if (is_cooperative(sema) && !in_region) return true;
  (void)sema.diags
      .report<diag::GridBarrier>(span, in_region ? "and in `inthreads` some threads are missing"
                                                 : "which need not be there at once")
      .help("{}", in_region ? "write it behind the regions"
                            : "launch them together: `parallel ... : block<cooperative>`")
      .emit();
  return false;
}

// The barrier that the statement means; none where there is no such barrier yet.
std::optional<ir::Barrier> barrier_of(const Sema& sema, const ast::SyncStmt& stmt) {
  const ir::Barrier block{.level = ir::Level::kBlock};
  if (stmt.kind == ast::SyncKind::kShared) return block;
  if (stmt.kind == ast::SyncKind::kLocal) return ir::Barrier{.level = ir::Level::kGroup};
  if (stmt.kind != ast::SyncKind::kBarrier) return std::nullopt;
  switch (stmt.level.value_or(ast::Level::kDevice)) {
    case ast::Level::kThread:
    case ast::Level::kBlock: return block;
    case ast::Level::kGroup: return ir::Barrier{.level = ir::Level::kGroup};
    case ast::Level::kGroup4:
      if (!is_in_warpgroup(sema)) return std::nullopt;
      return ir::Barrier{.level = ir::Level::kGroup4};
    case ast::Level::kCluster:
      if (!is_of_whole_cluster(sema)) return std::nullopt;
      return ir::Barrier{.level = ir::Level::kBlock, .cluster = true};
    case ast::Level::kDevice: return std::nullopt;
  }
  KILN_UNREACHABLE("level {}", static_cast<int>(*stmt.level));
}

// What there is no barrier for.
std::string refused_barrier(const Sema& sema, const ast::SyncStmt& stmt, const std::string& word) {
  if (stmt.kind != ast::SyncKind::kBarrier || !stmt.level) return word;
  const std::string what = format("`sync.barrier : {}`", spelling(*stmt.level));
  if (*stmt.level == ast::Level::kGroup4) return what + " outside of a `: group-4`";
  if (*stmt.level != ast::Level::kCluster) return what;
  return what + (sema.place.inthreads.valid() ? " in `inthreads`" : " without a `: cluster`");
}

// `sync.fence : thread;`: what the thread does behind it comes after what it did before, for who sees
// both. One thing after the other is how programs are run where there is no GPU: nothing stands in.
void emit_fence(Sema& sema, const ast::SyncStmt& stmt, Span span, const std::string& word) {
  if (!check_in_kernel(sema, span, word)) return;
  const ast::Level level = stmt.level.value_or(ast::Level::kBlock);
  const bool of_block = stmt.storage == ast::Storage::kShared || level == ast::Level::kThread ||
                        level == ast::Level::kGroup || level == ast::Level::kGroup4;
  const char* reach = of_block ? "_block" : level == ast::Level::kDevice ? "_system" : "";
  ir::Cuda fence;
  fence.what = word;
  fence.text = format("__threadfence{}();", reach);
  fence.stand_in = in_region(sema, [] {});
  emit(sema, std::move(fence), span);
}

}  // namespace

void analyse(Sema& sema, const ast::SyncStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const std::string word = format("`sync.{}`", spelling(stmt.kind));
  if (stmt.kind == ast::SyncKind::kFence) return emit_fence(sema, stmt, span, word);
  if (stmt.kind == ast::SyncKind::kGlobal) return wait_for_launches(sema, span, word);
  if (is_of_grid(sema, stmt)) {
    if (!check_collective(sema, span, word, ir::Level::kBlock)) return;
    if (!check_grid_barrier(sema, span)) return;
    emit(sema, ir::Barrier{.level = ir::Level::kBlock, .grid = true}, span);
    return;
  }
  const std::optional<ir::Barrier> barrier = barrier_of(sema, stmt);
  if (!barrier) return refuse(sema, span, refused_barrier(sema, stmt, word));
  const bool of_warps = barrier->level != ir::Level::kBlock;
  if (check_collective(sema, span, word, of_warps ? ir::Level::kGroup : ir::Level::kBlock)) {
    emit(sema, *barrier, span);
  }
}

void analyse(Sema& sema, const ast::AssertStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const Operand condition = evaluate(sema, stmt.condition);
  if (condition.is_error()) return;
  if (condition.kind == Operand::Kind::kInt && condition.integer.value.constant()) {
    if (!condition.integer.value.is(0)) return;
    (void)sema.diags.report<diag::AssertFalse>(condition.span, stmt.message).emit();
    return;
  }
  if (const auto flag = convert_to_bool(sema, condition)) {
    emit(sema, ir::Assert{*flag, stmt.message}, span);
  }
}

}  // namespace kiln::sema
