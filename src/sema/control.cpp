// `foreach`, `with`, `if`, `sync` and `assert`.
#include "ir/prove.h"
#include "sema/expression.h"
#include "sema/statement.h"

namespace kiln::sema {

namespace {

// One level of iteration: a name, its bound, and the range it runs through.
struct Loop {
  ast::Name name;
  Bound bound;
  ir::Expr lower = 0;
  ir::Expr upper = 0;
  std::int64_t step = 1;
};

// The bounds a with-item declares, one per element name (or one for a plain name).
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
  std::vector<ast::Name> names = item.elements;
  if (names.empty()) names = {item.name};
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

// `v(lo:hi:step)` on a variable that `with` declared.
std::optional<Loop> ranged_loop(Sema& sema, const ast::ForeachItem& item) {
  const Symbol* symbol = sema.scopes.find(item.variable.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(item.variable.span, item.variable.text)
        .help("declare and iterate at once: `foreach {} in [8]`", item.variable.text)
        .emit();
    return std::nullopt;
  }
  if (symbol->operand.is_error()) return std::nullopt;
  if (symbol->kind != Symbol::Kind::kWith) {
    const bool is_axis = symbol->kind == Symbol::Kind::kParallel;
    (void)sema.diags
        .report<diag::LoopNotBounded>(item.variable.span, item.variable.text,
                                      is_axis
                                          ? "it is an axis of a `parallel`, all of whose values "
                                            "run at once"
                                          : "it was not declared by `with`")
        .help("`foreach i in [n]` declares a loop variable")
        .emit();
    return std::nullopt;
  }
  const Bound bound = *symbol->operand.integer.bound;
  Loop loop{item.local.valid() ? item.local : item.variable, bound, 0, bound.extent, 1};
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

// `foreach a, b body`: the loops, outermost first.
struct LoopNest {
  std::vector<Loop> loops;
  std::int64_t unroll;
  ast::StmtId body;
  Span span;
};

void run_loops(Sema& sema, const LoopNest& nest, std::size_t index) {
  if (index == nest.loops.size()) {
    analyse_body(sema, nest.body);
    return;
  }
  const Loop& loop = nest.loops[index];
  const ir::VarId var =
      add_var(sema, loop.name.text, ir::VarKind::kLoop, loop.upper, loop.name.span);
  const ir::OpId op =
      emit(sema, ir::For{var, loop.lower, loop.upper, loop.step, nest.unroll, {}}, nest.span);
  const Place outer = sema.place;
  note_divergence(sema, loop.name.span,
                  [&](ir::Level unit) { return ir::varies_in(sema.function, var, unit); });
  const ir::RegionId body = in_region(sema, [&] {
    Symbol symbol{Symbol::Kind::kOperand, make_int(ir::Expr::var(var), loop.name.span), {}};
    symbol.operand.integer.bound = loop.bound;
    declare(sema, loop.name, std::move(symbol));
    run_loops(sema, nest, index + 1);
  });
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
    if (!suffix.factor.valid()) {
      unroll = -1;  // the whole loop
      continue;
    }
    const auto factor = evaluate_constant(sema, suffix.factor, "the unroll factor");
    if (!factor) continue;
    const auto extent = loops.empty() ? std::nullopt : loops.back().bound.extent.constant();
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

void analyse_foreach(Sema& sema, const ast::ForeachStmt& stmt, Span span) {
  if (!sema.place.in_kernel) {
    refuse(sema, span, "`foreach` in the host part of a tile function");
    return;
  }
  std::vector<Loop> loops;
  bool failed = false;
  for (const ast::ForeachItem& item : stmt.items) {
    if (item.declares) {
      auto declared = declared_loops(sema, *item.declares);
      failed = failed || !declared;
      if (declared) loops.insert(loops.end(), declared->begin(), declared->end());
    } else {
      auto ranged = ranged_loop(sema, item);
      failed = failed || !ranged;
      if (ranged) loops.push_back(*ranged);
    }
  }
  if (failed) {
    // Look at the body all the same, with the names declared as unknown quantities.
    sema.scopes.push();
    for (const ast::ForeachItem& item : stmt.items) {
      if (!item.declares) continue;
      for (const ast::Name& name : item.declares->elements) declare(sema, name, {});
      declare(sema, item.declares->name, {});
    }
    analyse_body(sema, stmt.body);
    sema.scopes.pop();
    return;
  }
  const std::int64_t unroll = unroll_factor(sema, stmt, loops);
  run_loops(sema, {std::move(loops), unroll, stmt.body, span}, 0);
}

void analyse_with(Sema& sema, const ast::WithStmt& stmt) {
  if (!stmt.ties.empty()) refuse(sema, stmt.ties[0].left.span, "`where x <-> y`");
  sema.scopes.push();
  for (const ast::WithItem& item : stmt.items) {
    const auto loops = declared_loops(sema, item);
    if (!loops) {
      for (const ast::Name& name : item.elements) declare(sema, name, {});
      declare(sema, item.name, {});
      continue;
    }
    Operand tuple;
    tuple.kind = Operand::Kind::kTuple;
    for (const Loop& loop : *loops) {
      Symbol symbol{Symbol::Kind::kWith, make_int(0, loop.name.span), {}};
      symbol.operand.integer.bound = loop.bound;
      tuple.elements.push_back(symbol.operand.integer);
      declare(sema, loop.name, std::move(symbol));
    }
    if (!item.elements.empty()) declare(sema, item.name, {Symbol::Kind::kOperand, tuple, {}});
  }
  analyse_body(sema, stmt.body);
  sema.scopes.pop();
}

void analyse_if(Sema& sema, const ast::IfStmt& stmt, Span span) {
  if (!sema.place.in_kernel) {
    refuse(sema, span, "`if` in the host part of a tile function");
    return;
  }
  const Operand condition = evaluate(sema, stmt.condition);
  const auto flag = convert_to_bool(sema, condition);
  const Place outer = sema.place;
  if (flag) {
    note_divergence(sema, condition.span, [&](ir::Level unit) {
      return ir::value_varies_in(sema.function, *flag, unit);
    });
  }
  const ir::OpId op = emit(sema, ir::If{flag.value_or(ir::ValueId{}), {}, {}}, span);
  const ir::RegionId then_body = in_region(sema, [&] { analyse_statement(sema, stmt.then_body); });
  ir::RegionId else_body;
  if (stmt.else_body.valid()) {
    else_body = in_region(sema, [&] { analyse_statement(sema, stmt.else_body); });
  }
  auto& branch = std::get<ir::If>(sema.function.ops[op].data);
  branch.then_body = then_body;
  branch.else_body = else_body;
  sema.place = outer;
}

void analyse_sync(Sema& sema, const ast::SyncStmt& stmt, Span span) {
  const std::string word = format("`sync.{}`", spelling(stmt.kind));
  const bool is_block_barrier =
      stmt.kind == ast::SyncKind::kShared ||
      (stmt.kind == ast::SyncKind::kBarrier &&
       (stmt.level == ast::Level::kThread || stmt.level == ast::Level::kBlock));
  if (!is_block_barrier && stmt.kind != ast::SyncKind::kLocal) {
    refuse(sema, span, word);
    return;
  }
  const ir::Level unit = stmt.kind == ast::SyncKind::kLocal ? ir::Level::kGroup : ir::Level::kBlock;
  if (check_collective(sema, span, word, unit)) emit(sema, ir::Barrier{unit, false}, span);
}

void analyse_assert(Sema& sema, const ast::AssertStmt& stmt, Span span) {
  const Operand condition = evaluate(sema, stmt.condition);
  if (condition.is_error()) return;
  if (condition.kind == Operand::Kind::kInt && condition.integer.value.constant()) {
    if (!condition.integer.value.is(0)) return;
    (void)sema.diags.report<diag::AssertFalse>(condition.span, stmt.message).emit();
    return;
  }
  if (!sema.place.in_kernel) {
    refuse(sema, span, "an `assert` on run-time values in the host part");
    return;
  }
  if (const auto flag = convert_to_bool(sema, condition)) {
    emit(sema, ir::Assert{*flag, stmt.message}, span);
  }
}

}  // namespace kiln::sema
