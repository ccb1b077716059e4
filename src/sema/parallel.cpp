// `parallel`: which hardware level each one is, how many threads the block has.
//
//   parallel {bm, bn} by [4, 4] : block        ->  parallel level=block, threads=64
//     parallel w by 2 : group { ... }          ->    parallel level=group, unit=32
//
// Unannotated levels are inferred from how deep the nest is (language: parallel, level inference).
#include <algorithm>

#include "ir/prove.h"
#include "sema/attribute.h"
#include "sema/call.h"
#include "sema/entry_check.h"
#include "sema/expression.h"
#include "sema/launch_value.h"
#include "sema/statement.h"

namespace kiln::sema {

namespace {

struct LevelRow {
  ast::Level written;
  ir::Level level;
};
constexpr LevelRow kLevels[] = {
    {ast::Level::kBlock, ir::Level::kBlock},
    {ast::Level::kGroup4, ir::Level::kGroup4},
    {ast::Level::kGroup, ir::Level::kGroup},
    {ast::Level::kThread, ir::Level::kThread},
};

const LevelRow* row_of(ast::Level level) {
  for (const LevelRow& row : kLevels) {
    if (row.written == level) return &row;
  }
  return nullptr;
}

std::string_view spelling_of(ir::Level level) {
  for (const LevelRow& row : kLevels) {
    if (row.level == level) return spelling(row.written);
  }
  return "";
}

// The `parallel` statements directly inside a body, through other control flow.
void collect_inner(const Sema& sema, ast::StmtId id, std::vector<ast::StmtId>& out);

struct InnerParallels {
  const Sema& sema;
  ast::StmtId id;
  std::vector<ast::StmtId>& out;

  void operator()(const ast::ParallelStmt&) const { out.push_back(id); }
  void operator()(const ast::BlockStmt& s) const {
    for (ast::StmtId inner : s.body) collect_inner(sema, inner, out);
  }
  void operator()(const ast::WithStmt& s) const { collect_inner(sema, s.body, out); }
  void operator()(const ast::ForeachStmt& s) const { collect_inner(sema, s.body, out); }
  void operator()(const ast::WhileStmt& s) const { collect_inner(sema, s.body, out); }
  void operator()(const ast::InthreadsStmt& s) const { collect_inner(sema, s.body, out); }
  void operator()(const ast::IfStmt& s) const {
    collect_inner(sema, s.then_body, out);
    collect_inner(sema, s.else_body, out);
  }
  void operator()(const ast::ExprStmt& s) const {
    const auto* call = sema.ast.as<ast::FunctionCallExpr>(s.value);
    const auto* function = call == nullptr ? nullptr : find_function(sema, call->name.text);
    if (function != nullptr) collect_inner(sema, function->body, out);
  }
  void operator()(const auto&) const {}
};

void collect_inner(const Sema& sema, ast::StmtId id, std::vector<ast::StmtId>& out) {
  if (id.valid()) kiln::visit(InnerParallels{sema, id, out}, sema.ast[id].node);
}

// Whether a group numbers threads or blocks; a cluster only says which blocks belong together, a
// device where they run.
bool is_counted(const ast::ParallelGroup& group) {
  return group.level != ast::Level::kCluster && group.level != ast::Level::kDevice;
}

std::size_t counted_groups(const ast::ParallelStmt& stmt) {
  return static_cast<std::size_t>(std::ranges::count_if(stmt.groups, is_counted));
}

// Levels of nesting below and including the statement's first group.
std::size_t nest_depth(const Sema& sema, ast::StmtId id) {
  const auto* stmt = sema.ast.as<ast::ParallelStmt>(id);
  std::vector<ast::StmtId> inner;
  collect_inner(sema, stmt->body, inner);
  std::size_t below = 0;
  for (ast::StmtId child : inner) below = std::max(below, nest_depth(sema, child));
  return below + counted_groups(*stmt);
}

// Levels by height above the innermost one, for a nest without annotations.
constexpr ir::Level kByHeight[] = {ir::Level::kThread, ir::Level::kGroup, ir::Level::kGroup4,
                                   ir::Level::kBlock};

void infer_levels(Sema& sema, ast::StmtId id, std::size_t outer, std::size_t total) {
  const auto* stmt = sema.ast.as<ast::ParallelStmt>(id);
  std::vector<ast::StmtId> inner;
  collect_inner(sema, stmt->body, inner);
  std::size_t below = 0;
  for (ast::StmtId child : inner) below = std::max(below, nest_depth(sema, child));
  const std::size_t counted = counted_groups(*stmt);
  std::size_t position = 0;
  for (std::size_t i = 0; i < stmt->groups.size(); ++i) {
    const ast::ParallelGroup& group = stmt->groups[i];
    if (!is_counted(group)) continue;
    const std::size_t height = below + counted - 1 - position;
    const LevelRow* written = group.level ? row_of(*group.level) : nullptr;
    ir::Level level = kByHeight[std::min<std::size_t>(height, 3)];
    if (outer + position == 0 && total >= 2) level = ir::Level::kBlock;
    if (written != nullptr) level = written->level;
    sema.levels[{id, i}] = level;
    ++position;
  }
  for (ast::StmtId child : inner) {
    infer_levels(sema, child, outer + counted, total);
  }
}

struct Axis {
  ast::Name name;
  Bound bound;
  Span span;
};

// The axes of one group: its names paired with its bounds.
std::optional<std::vector<Axis>> axes_of(Sema& sema, const ast::ParallelGroup& group) {
  const auto extents = evaluate_list(sema, group.bounds, "the bound of a `parallel`");
  if (!extents) return std::nullopt;
  if (extents->size() > 3) {
    (void)sema.diags.report<diag::ParallelAxes>(group.span, extents->size())
        .help("combine two of them: `by cdiv(M, 16) * cdiv(N, 16)`, or nest another level")
        .emit();
    return std::nullopt;
  }
  if (!group.names.empty() && group.names.size() != extents->size()) {
    (void)sema.diags.report<diag::ParallelBounds>(group.span, group.names.size(), extents->size())
        .help("give one bound for each variable")
        .emit();
    return std::nullopt;
  }
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < extents->size(); ++i) {
    const IndexItem& item = (*extents)[i];
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return std::nullopt;
    }
    const ir::Expr& bound = item.element->value;
    const auto constant = bound.constant();
    if (constant && *constant <= 0) {
      (void)sema.diags
          .report<diag::ExtentNotPositive>(item.span, "the bound of a `parallel`", *constant)
          .emit();
      return std::nullopt;
    }
    const auto known = launch_value(sema, bound, item.span);
    if (!known) {
      (void)sema.diags.report<diag::BoundNotKnown>(item.span, text(sema, bound))
          .help(
              "use constants, dimensions, integer parameters, and numbers that are computed "
              "of these: every block has the same threads")
          .emit();
      return std::nullopt;
    }
    const ast::Name name = group.names.empty() ? ast::Name{"", group.span} : group.names[i];
    axes.push_back({name, {*known, std::nullopt}, item.span});
  }
  return axes;
}

// Remembers which bounds were written as cdiv(D, T): chunkat asks for it.
void note_written_bounds(Sema& sema, const ast::ParallelGroup& group, std::vector<Axis>& axes) {
  std::vector<ast::ExprId> written;
  for (ast::ExprId id : group.bounds) {
    const auto* shape = sema.ast.as<ast::ShapeExpr>(id);
    const auto* tuple = sema.ast.as<ast::TupleExpr>(id);
    if (shape != nullptr) {
      written.insert(written.end(), shape->items.begin(), shape->items.end());
    } else if (tuple != nullptr) {
      written.insert(written.end(), tuple->items.begin(), tuple->items.end());
    } else {
      written.push_back(id);
    }
  }
  if (written.size() != axes.size()) return;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (sema.ast.as<ast::CallExpr>(written[i]) == nullptr) continue;
    axes[i].bound.written_as = evaluate(sema, written[i]).written_as;
  }
}

// Checks what a launch needs: grid limits now, or at entry.
void check_grid(Sema& sema, const std::vector<Axis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ir::Expr& extent = axes[i].bound.extent;
    const std::int64_t limit = target::blocks_along(sema.arch, i);
    if (const auto least = ir::minimum(sema.function, extent); !least || *least < 1) {
      require(sema, {1, ir::Relation::kLessEqual, extent,
                     "the grid needs at least one block on each axis", axes[i].span});
    }
    if (ir::always_less_equal(sema.function, extent, limit)) continue;
    if (const auto blocks = extent.constant()) {
      (void)sema.diags.report<diag::GridTooLarge>(axes[i].span, i, *blocks, sema.arch.name, limit)
          .help("axis 0 may have {} blocks: put the long axis first",
                target::blocks_along(sema.arch, 0))
          .emit();
      continue;
    }
    require(sema, {extent, ir::Relation::kLessEqual, limit,
                   format("axis {} of the grid is too long", i), axes[i].span});
  }
}

void set_block_threads(Sema& sema, const ir::Expr& total, Span span) {
  auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  const std::int64_t limit = sema.arch.threads_per_block_max;
  const auto [earlier, first] = sema.threads_from.try_emplace(sema.place.launch, span);
  if (!first) {
    if (launch.threads == total) return;
    (void)sema.diags
        .report<diag::ThreadsDisagree>(span, text(sema, total), text(sema, launch.threads))
        .label(earlier->second, "{} threads here", text(sema, launch.threads))
        .help("give both the same number of threads: all threads of a block run both")
        .emit();
    return;
  }
  launch.threads = total;
  const auto constant = total.constant();
  if (const auto least = ir::minimum(sema.function, total); !constant && (!least || *least < 1)) {
    require(sema, {1, ir::Relation::kLessEqual, total, "a block needs at least one thread", span});
  }
  if (constant && *constant > limit) {
    (void)sema.diags.report<diag::ThreadsMax>(span, *constant, sema.arch.name, limit)
        .help("use at most {} threads, and more blocks", limit)
        .emit();
  } else if (!ir::always_less_equal(sema.function, total, limit)) {
    require(sema, {total, ir::Relation::kLessEqual, limit, "the block has too many threads", span});
  }
}

// [[threads(n)]]: whole warps, as many as a block may have.
void say_threads(Sema& sema, const ast::Attribute& attribute) {
  if (attribute.kind != ast::Attribute::Kind::kThreads) return;
  const auto threads = attribute.args.size() == 1
                           ? evaluate_constant(sema, attribute.args[0], "the number of threads")
                           : std::nullopt;
  const std::int64_t most = sema.arch.threads_per_block_max;
  if (threads && *threads >= target::kWarpLanes && *threads % target::kWarpLanes == 0 &&
      *threads <= most) {
    return set_block_threads(sema, ir::Expr(*threads), attribute.span);
  }
  if (!threads && attribute.args.size() == 1) return;  // reported
  (void)sema.diags
      .report<diag::ThreadsAttribute>(attribute.span, threads ? format("{}", *threads) : "nothing",
                                      target::kWarpLanes, most)
      .help("write `[[threads(128)]]` in front of the `parallel ... : block`")
      .emit();
}

// The threads an inner level needs must be those its enclosing unit has.
void check_threads(Sema& sema, const ast::ParallelGroup& group, const std::vector<Axis>& axes,
                   ir::Level level) {
  ir::Expr total = ir::threads_of(level);
  for (const Axis& axis : axes) total = total * axis.bound.extent;
  if (total.overflowed()) {
    (void)sema.diags.report<diag::ExtentOverflow>(group.span, "the number of threads").emit();
    return;
  }
  if (sema.place.level == ir::Level::kBlock) {
    set_block_threads(sema, total, group.span);
    return;
  }
  const std::int64_t unit = ir::threads_of(sema.place.level);
  if (total.is(unit)) return;
  (void)sema.diags
      .report<diag::ThreadsOfGroup>(group.span, spelling_of(sema.place.level), unit,
                                    text(sema, total))
      .help("make the bounds multiply to {}", unit)
      .emit();
}

bool check_level(Sema& sema, const ast::ParallelGroup& group, ir::Level level) {
  const Span where = group.level_span.valid() ? group.level_span : group.span;
  if (level == ir::Level::kGroup4 && !sema.arch.has(target::Feature::kWgmma)) {
    (void)sema.diags.report<diag::LevelUnsupported>(where, sema.arch.name, "group-4")
        .help("use `: group` (one warp), or compile for `{}`",
              target::oldest_arch({target::Feature::kWgmma})->name)
        .emit();
    return false;
  }
  if (group.cooperative && (level != ir::Level::kBlock || !sema.cluster.empty())) {
    (void)sema.diags
        .report<diag::CooperativePlace>(where,
                                        level == ir::Level::kBlock ? "one of clusters" : "no grid")
        .help("write `parallel ... : block<cooperative>`, without a `: cluster` around it")
        .emit();
    return false;
  }
  // A level inside itself or inside a finer one; an explicit group inside an explicit group-4.
  if (!sema.place.in_kernel) return true;
  if (level > sema.place.level) {
    const bool both_warps = level == ir::Level::kGroup && sema.place.level == ir::Level::kGroup4;
    if (!both_warps || !group.level) return true;
  }
  (void)sema.diags
      .report<diag::LevelOrder>(where, spelling_of(level), spelling_of(sema.place.level))
      .help("levels nest as block, then group-4 or group, then thread")
      .emit();
  return false;
}

void analyse_groups(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id, std::size_t index);

// The level of a block that multiplies and has no inner one: one warp, or one warpgroup where operands
// are not loaded, but lie in shared memory.
std::optional<ir::Level> level_of_products(const Sema& sema, ast::StmtId body) {
  if (!body.valid()) return std::nullopt;
  bool multiplies = false;
  bool loads = false;
  for (const ast::Stmt& stmt : sema.ast.stmts) {
    if (!lies_in(stmt.span, sema.ast[body].span)) continue;
    if (std::holds_alternative<ast::ParallelStmt>(stmt.node)) return std::nullopt;
    multiplies = multiplies || std::holds_alternative<ast::MmaExecStmt>(stmt.node);
    loads = loads || std::holds_alternative<ast::MmaLoadStmt>(stmt.node);
  }
  if (!multiplies) return std::nullopt;
  const bool in_place = !loads && sema.arch.has(target::Feature::kWgmma);
  return in_place ? ir::Level::kGroup4 : ir::Level::kGroup;
}

// Puts in the `parallel by 1` of that level.
void analyse_in_one_unit(Sema& sema, ir::Level level, ast::StmtId body, Span span);

// The body of one level, with its axes declared.
ir::RegionId analyse_level_body(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id,
                                std::size_t index, const std::vector<Axis>& axes) {
  return in_region(sema, [&] {
    if (sema.place.parallel == sema.place.launch) {
      sema.launch_body = sema.regions.back();
      declare_mutable_params(sema);
    }
    std::vector<ir::VarId> vars;
    Operand tuple;
    tuple.kind = Operand::Kind::kTuple;
    for (const Axis& axis : axes) {
      const std::string wanted = axis.name.valid() ? axis.name.text : "p";
      const ir::VarId var =
          add_var(sema, wanted, ir::VarKind::kParallel, axis.bound.extent, axis.name.span);
      vars.push_back(var);
      Symbol symbol{Symbol::Kind::kParallel, make_int(ir::Expr::var(var), axis.name.span), {}};
      symbol.operand.integer.bound = axis.bound;
      tuple.elements.push_back(symbol.operand.integer);
      declare(sema, axis.name, std::move(symbol));
    }
    declare(sema, stmt.groups[index].tuple, {Symbol::Kind::kParallel, tuple, {}});
    // The operation exists before its body, so that the body can refer to it.
    auto& parallel = std::get<ir::Parallel>(sema.function.ops[sema.place.parallel].data);
    parallel.vars = vars;
    if (index + 1 < stmt.groups.size()) {
      analyse_groups(sema, stmt, id, index + 1);
    } else {
      const bool in_block = sema.place.level == ir::Level::kBlock;
      const auto level = in_block ? level_of_products(sema, stmt.body) : std::nullopt;
      const bool fits = level && (!sema.threads_from.contains(sema.place.launch) ||
                                  parallel.threads.is(ir::threads_of(*level)));
      if (fits) return analyse_in_one_unit(sema, *level, stmt.body, stmt.word_span);
      analyse_body(sema, stmt.body);
    }
  });
}

ir::OpId open_parallel(Sema& sema, ir::Level level, Span span) {
  ir::Parallel parallel;
  parallel.level = level;
  parallel.unit = ir::threads_of(level);
  if (level == ir::Level::kBlock) {
    const auto earlier =
        std::count_if(sema.function.ops.begin(), sema.function.ops.end(), [](const ir::Op& op) {
          const auto* other = std::get_if<ir::Parallel>(&op.data);
          return other != nullptr && other->level == ir::Level::kBlock;
        });
    parallel.name =
        earlier == 0 ? sema.function.name : format("{}_{}", sema.function.name, earlier + 1);
  }
  return emit(sema, std::move(parallel), span);
}

void analyse_in_one_unit(Sema& sema, ir::Level level, ast::StmtId body, Span span) {
  set_block_threads(sema, ir::Expr(ir::threads_of(level)), span);
  const Place outer = sema.place;
  const ir::OpId op = open_parallel(sema, level, span);
  std::get<ir::Parallel>(sema.function.ops[op].data).vars = {
      add_var(sema, "unit", ir::VarKind::kParallel, 1, span)};
  sema.place.level = level;
  sema.place.parallel = op;
  sema.place.unit = {level, op};
  sema.place.nest.push_back(op);
  const ir::RegionId region = in_region(sema, [&] { analyse_body(sema, body); });
  std::get<ir::Parallel>(sema.function.ops[op].data).body = region;
  sema.place = outer;
}

// A missing block level is inserted with extent 1.
void analyse_in_one_block(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id,
                          std::size_t index, Span span) {
  const Place outer = sema.place;
  const ir::OpId launch = open_parallel(sema, ir::Level::kBlock, span);
  std::get<ir::Parallel>(sema.function.ops[launch].data).vars = {
      add_var(sema, "block", ir::VarKind::kParallel, 1, span)};
  sema.place = {.in_kernel = true,
                .level = ir::Level::kBlock,
                .parallel = launch,
                .launch = launch,
                .divergent_in_block = {},
                .divergent_in_warp = {},
                .unit = {ir::Level::kBlock, launch}};
  const ir::RegionId body = in_region(sema, [&] {
    sema.launch_body = sema.regions.back();
    declare_mutable_params(sema);
    analyse_groups(sema, stmt, id, index);
  });
  auto& parallel = std::get<ir::Parallel>(sema.function.ops[launch].data);
  parallel.body = body;
  if (!sema.threads_from.contains(launch)) parallel.threads = 1;
  sema.place = outer;
}

// As what the body of a refused level is judged, so that only the level is reported: a block inside
// of a block as a group, a group inside of a warpgroup as that warpgroup.
ir::Level level_after_refusal(ir::Level level, const Place& outer) {
  if (level == ir::Level::kBlock) return ir::Level::kGroup;
  const bool inside = outer.in_kernel && outer.level == ir::Level::kGroup4;
  return inside && level == ir::Level::kGroup ? ir::Level::kGroup4 : level;
}

// Declares the axes of a cluster; the launch inside takes them.
void declare_cluster(Sema& sema, const ast::ParallelGroup& group, const std::vector<Axis>& axes) {
  Operand tuple;
  tuple.kind = Operand::Kind::kTuple;
  for (const Axis& axis : axes) {
    const ir::VarId var = add_var(sema, axis.name.valid() ? axis.name.text : "c",
                                  ir::VarKind::kParallel, axis.bound.extent, axis.name.span);
    sema.cluster.push_back(var);
    Symbol symbol{Symbol::Kind::kParallel, make_int(ir::Expr::var(var), axis.name.span), {}};
    symbol.operand.integer.bound = axis.bound;
    tuple.elements.push_back(symbol.operand.integer);
    declare(sema, axis.name, std::move(symbol));
  }
  declare(sema, group.tuple, {Symbol::Kind::kParallel, tuple, {}});
}

// A cluster has a constant number of blocks, few enough for the hardware.
bool check_cluster(Sema& sema, const ast::ParallelGroup& group, const std::vector<Axis>& axes) {
  const Span where = group.level_span.valid() ? group.level_span : group.span;
  if (sema.place.in_kernel) {
    (void)sema.diags.report<diag::LevelOrder>(where, "cluster", spelling_of(sema.place.level))
        .help("a cluster is a group of blocks: put it around the `: block`")
        .emit();
    return false;
  }
  if (!sema.arch.has(target::Feature::kCluster)) {
    (void)sema.diags.report<diag::LevelUnsupported>(where, sema.arch.name, "cluster")
        .help("clusters exist from {} on", target::oldest_arch({target::Feature::kCluster})->name)
        .emit();
    return false;
  }
  std::int64_t blocks = 1;
  for (const Axis& axis : axes) {
    const auto extent = axis.bound.extent.constant();
    if (!extent) {
      (void)sema.diags
          .report<diag::ExtentNotConstant>(axis.span, "a cluster", text(sema, axis.bound.extent))
          .help("its size is fixed when the kernel is compiled")
          .emit();
      return false;
    }
    blocks = std::min<std::int64_t>(blocks * *extent, 1 << 20);
  }
  constexpr std::int64_t kBlocksMax = 8;  // CUDA: the size every device supports
  if (blocks <= kBlocksMax) return true;
  (void)sema.diags.report<diag::ClusterSize>(group.span, blocks, sema.arch.name, kBlocksMax)
      .help("use at most {} blocks", kBlocksMax)
      .emit();
  return false;
}

void analyse_cluster(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id, std::size_t index) {
  const ast::ParallelGroup& group = stmt.groups[index];
  const auto axes = axes_of(sema, group);
  if (!axes || !check_cluster(sema, group, *axes)) return;
  const std::vector<ir::VarId> outer = sema.cluster;
  const bool outer_launched = std::exchange(sema.cluster_launched, false);
  declare_cluster(sema, group, *axes);
  if (index + 1 < stmt.groups.size()) {
    analyse_groups(sema, stmt, id, index + 1);
  } else {
    analyse_body(sema, stmt.body);
  }
  sema.cluster = outer;
  sema.cluster_launched = outer_launched;
}

// The launch consists of the clusters around it: they must fill its grid.
void join_cluster(Sema& sema, ir::OpId launch, const std::vector<Axis>& axes, Span span) {
  if (sema.cluster_launched) return refuse(sema, span, "a second launch inside of one `: cluster`");
  if (sema.cluster.empty()) return;
  sema.cluster_launched = true;
  if (sema.cluster.size() > axes.size()) {
    (void)sema.diags.report<diag::ClusterAxes>(span, sema.cluster.size(), axes.size())
        .help("give the cluster one bound for each axis of the grid")
        .emit();
    return;
  }
  for (std::size_t i = 0; i < sema.cluster.size(); ++i) {
    const ir::Expr& blocks = axes[i].bound.extent;
    const std::int64_t extent = sema.function.vars[sema.cluster[i]].extent.constant().value_or(1);
    if (ir::always_divisible(blocks, extent)) continue;
    const std::string message = format("axis {} of the grid does not divide into clusters", i);
    if (const auto constant = blocks.constant()) {
      (void)sema.diags.report<diag::ClusterGrid>(axes[i].span, i, *constant, extent)
          .help("make it a multiple of {}: {}", extent, (*constant / extent + 1) * extent)
          .emit();
      continue;
    }
    require(sema, {extent, ir::Relation::kDivides, blocks, message, axes[i].span});
  }
  std::get<ir::Parallel>(sema.function.ops[launch].data).cluster = std::move(sema.cluster);
  sema.cluster.clear();
}

// A device is around everything that runs on it.
void refuse_device_inside(Sema& sema, const ast::ParallelGroup& group) {
  const std::string_view outer =
      sema.place.in_kernel ? spelling_of(sema.place.level) : spelling(ast::Level::kCluster);
  (void)sema.diags.report<diag::LevelOrder>(group.level_span, spelling(ast::Level::kDevice), outer)
      .help("write `: device` around the launches, or leave it out: there is one device")
      .emit();
}

void analyse_groups(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id, std::size_t index) {
  const ast::ParallelGroup& group = stmt.groups[index];
  ir::Level level = sema.levels[{id, index}];
  const Span span = index == 0 ? stmt.word_span : group.span;
  if (group.level == ast::Level::kCluster) return analyse_cluster(sema, stmt, id, index);
  if (group.level == ast::Level::kDevice) return refuse_device_inside(sema, group);
  if (!sema.place.in_kernel && level != ir::Level::kBlock) {
    analyse_in_one_block(sema, stmt, id, index, span);
    return;
  }
  auto axes = axes_of(sema, group);
  if (axes) note_written_bounds(sema, group, *axes);
  const bool level_fits = check_level(sema, group, level);
  const Place outer = sema.place;
  if (axes && level_fits) {
    if (level == ir::Level::kBlock) {
      check_grid(sema, *axes);
    } else {
      check_threads(sema, group, *axes, level);
    }
  } else {
    // Keep going with what is known, so that mistakes in the body are found too.
    axes = axes.value_or(std::vector<Axis>{});
    for (std::size_t i = axes->size(); i < group.names.size(); ++i) {
      axes->push_back({group.names[i], {1, std::nullopt}, group.names[i].span});
    }
  }
  if (!level_fits) level = level_after_refusal(level, outer);
  const ir::OpId op = open_parallel(sema, level, span);
  const ir::OpId launch = level == ir::Level::kBlock && !outer.in_kernel ? op : outer.launch;
  sema.place.in_kernel = true;
  sema.place.level = level;
  sema.place.parallel = op;
  sema.place.launch = launch;
  if (level != ir::Level::kThread) sema.place.unit = {level, op};
  if (level != ir::Level::kBlock) sema.place.nest.push_back(op);
  std::get<ir::Parallel>(sema.function.ops[op].data).cooperative = group.cooperative && level_fits;
  if (level == ir::Level::kBlock && !outer.in_kernel) join_cluster(sema, op, *axes, span);
  for (const ast::Attribute& attribute : stmt.attributes) {
    if (level == ir::Level::kBlock && !outer.in_kernel) say_threads(sema, attribute);
  }
  const ir::RegionId body = analyse_level_body(sema, stmt, id, index, *axes);
  auto& parallel = std::get<ir::Parallel>(sema.function.ops[op].data);
  parallel.body = body;
  if (level == ir::Level::kBlock && !sema.threads_from.contains(op)) parallel.threads = 1;
  sema.place = outer;
}

// The launch among the operations from `first` on; invalid where there is none.
ir::OpId launch_from(const ir::Function& function, std::size_t first) {
  for (std::size_t i = first; i < function.ops.size(); ++i) {
    const ir::OpId id{static_cast<std::uint32_t>(i)};
    const auto* parallel = std::get_if<ir::Parallel>(&function.ops[id].data);
    if (parallel != nullptr && parallel->level == ir::Level::kBlock) return id;
  }
  return {};
}

// `parallel<s>`: `s` is a parameter, and the level is a launch.
void check_stream(Sema& sema, const ast::Name& name) {
  if (sema.place.in_kernel) {
    (void)sema.diags.report<diag::StreamPlacement>(name.span)
        .help("remove `<{}>` here: a kernel as a whole is launched on a stream", name.text)
        .emit();
    return;
  }
  const Symbol* symbol = sema.scopes.find(name.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(name.span, name.text)
        .help("declare it as a parameter: `stream {}`", name.text)
        .emit();
    return;
  }
  const bool is_operand = symbol->kind == Symbol::Kind::kOperand;
  if (is_operand && (symbol->operand.is_error() || symbol->operand.kind == Operand::Kind::kStream))
    return;
  (void)sema.diags
      .report<diag::NotAStream>(name.span, name.text, describe(symbol->operand, sema.function))
      .label(symbol->span, "declared here")
      .help("launch on a parameter `stream {}`", name.text == "s" ? "t" : "s")
      .emit();
}

// `by 1 : device`: the one GPU that the program is for. False after a report.
bool check_device(Sema& sema, const ast::ParallelGroup& group, const std::vector<Axis>& axes) {
  const ast::Name& target = group.level_argument;
  constexpr std::string_view kGpus[] = {"", "gpu", "cuda"};
  if (std::ranges::find(kGpus, target.text) == std::end(kGpus)) {
    (void)sema.diags.report<diag::DeviceTarget>(target.span, target.text, sema.arch.name)
        .help("{}", target.text == "cpu"
                        ? "what the host does stands outside of `parallel`, in the host part"
                        : "write `: device(gpu)`, or leave the level out")
        .emit();
    return false;
  }
  for (const Axis& axis : axes) {
    if (axis.bound.extent.is(1)) continue;
    (void)sema.diags.report<diag::DeviceCount>(axis.span, text(sema, axis.bound.extent))
        .help("write `by 1 : device`")
        .emit();
    return false;
  }
  return true;
}

// What stands in a `: device` is a part of the host's program, as if it stood there alone.
void analyse_device(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id) {
  const ast::ParallelGroup& group = stmt.groups[0];
  const auto axes = axes_of(sema, group);
  if (!axes || !check_device(sema, group, *axes)) return;
  Operand tuple;
  tuple.kind = Operand::Kind::kTuple;
  for (const Axis& axis : *axes) {
    Symbol symbol{Symbol::Kind::kParallel, make_int(ir::Expr(0), axis.name.span), {}};
    symbol.operand.integer.bound = axis.bound;
    tuple.elements.push_back(symbol.operand.integer);
    declare(sema, axis.name, std::move(symbol));
  }
  declare(sema, group.tuple, {Symbol::Kind::kParallel, tuple, {}});
  if (stmt.groups.size() == 1) return analyse_body(sema, stmt.body);
  take_variables_along(sema, stmt.word_span, sema.ast[id].span);
  analyse_groups(sema, stmt, id, 1);
}

}  // namespace

void analyse(Sema& sema, const ast::ParallelStmt& stmt, ast::StmtId id) {
  if (sema.place.inthreads.valid()) {
    const Span region = sema.function.ops[sema.place.inthreads].span;
    (void)sema.diags.report<diag::InthreadsParallel>(stmt.word_span)
        .label(region, "the region")
        .help("put the `parallel` around the `inthreads`")
        .emit();
    return;
  }
  if (sema.place.in_kernel) report_attributes_inside(sema, stmt.attributes);
  if (stmt.stream.valid()) check_stream(sema, stmt.stream);
  if (stmt.is_async && sema.place.in_kernel) {
    (void)sema.diags.report<diag::ParallelNestedAsync>(stmt.async_span)
        .help("remove `.async` here")
        .emit();
  }  // else: the host waits at the end of the function, for this launch as for all others
  if (!sema.place.in_kernel) {
    constexpr std::size_t kLevelsMax = 4;
    const std::size_t depth = nest_depth(sema, id);
    if (depth > kLevelsMax) {
      (void)sema.diags.report<diag::ParallelTooDeep>(stmt.word_span, depth)
          .help("levels are block, group-4, group and thread: join axes with `by [a, b]`")
          .emit();
      return;
    }
    infer_levels(sema, id, 0, depth);
  }
  if (stmt.groups.empty()) return;
  const std::size_t before = sema.function.ops.size();
  sema.scopes.push();
  if (!sema.place.in_kernel && stmt.groups[0].level == ast::Level::kDevice) {
    analyse_device(sema, stmt, id);
  } else {
    if (!sema.place.in_kernel) take_variables_along(sema, stmt.word_span, sema.ast[id].span);
    analyse_groups(sema, stmt, id, 0);
  }
  sema.scopes.pop();
  if (sema.place.in_kernel) return;
  const ir::OpId launch = launch_from(sema.function, before);
  if (launch.valid()) enter_attributes(sema, stmt.attributes, launch);
}

}  // namespace kiln::sema
