// `dma` statements: copies between memories (language: data movement).
#include <algorithm>

#include "ir/prove.h"
#include "ir/strides.h"
#include "sema/expression.h"
#include "sema/statement.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

std::string_view space_name(ir::Space space) {
  switch (space) {
    case ir::Space::kGlobal: return "global";
    case ir::Space::kShared: return "shared";
    case ir::Space::kLocal: return "local";
  }
  return "";
}

// Forms of the statement that have no meaning yet. True when one was refused.
bool refuse_forms(Sema& sema, const ast::MoveStmt& stmt) {
  const std::string word(sema.sources.text(stmt.word_span));
  if (stmt.engine == ast::Engine::kTma) {
    if (!sema.arch.has_tma) {
      (void)sema.diags.report<diag::TmaUnsupported>(stmt.word_span, sema.arch.name)
          .help("use `dma.copy`, or --arch sm_90a")
          .emit();
    } else {
      refuse(sema, stmt.word_span, format("`{}`", word));
    }
    return true;
  }
  if (stmt.op != ast::MoveOp::kCopy) {
    refuse(sema, stmt.word_span, format("`{}`", word));
    return true;
  }
  if (stmt.is_async || stmt.event.valid()) {
    refuse(sema, stmt.async_span, "`.async` on a copy");
    return true;
  }
  if (stmt.sparse) {
    refuse(sema, stmt.sparse->span, "`.sp` on a copy");
    return true;
  }
  std::string hint;
  if (stmt.promote.valid()) hint = "`.promote`";
  if (stmt.multicast) hint = "`.multicast`";
  if (stmt.eviction != ast::Eviction::kNone) hint = format("`.{}`", spelling(stmt.eviction));
  if (stmt.after.valid()) hint = "`after`";
  if (!hint.empty()) refuse(sema, stmt.word_span, format("{} on a copy", hint));
  return !hint.empty();
}

// The finest level whose index the view's place depends on; kBlock when on none.
ir::Level level_of(const Sema& sema, ir::ValueId view) {
  ir::Level level = ir::Level::kBlock;
  const ir::ResolvedView resolved = ir::resolve_view(sema.function, view);
  std::vector<ir::VarId> vars;
  for (const ir::Expr& origin : resolved.origin) origin.collect_vars(vars);
  for (ir::VarId var : vars) {
    if (!ir::varies_in(sema.function, var, ir::Level::kBlock)) continue;
    ir::Level here = ir::Level::kThread;
    for (const ir::Op& op : sema.function.ops) {
      const auto* parallel = std::get_if<ir::Parallel>(&op.data);
      if (parallel == nullptr) continue;
      const auto& axes = parallel->vars;
      if (std::find(axes.begin(), axes.end(), var) != axes.end()) here = parallel->level;
    }
    level = std::max(level, here);
  }
  return level;
}

std::int64_t threads_of(ir::Level level) {
  switch (level) {
    case ir::Level::kBlock: return 0;
    case ir::Level::kGroup4: return 128;
    case ir::Level::kGroup: return 32;
    case ir::Level::kThread: return 1;
  }
  return 0;
}

std::string_view level_name(ir::Level level) {
  switch (level) {
    case ir::Level::kBlock: return "block";
    case ir::Level::kGroup4: return "group-4";
    case ir::Level::kGroup: return "group";
    case ir::Level::kThread: return "thread";
  }
  return "";
}

// `=> shared`: a dense buffer of the source's shape, named by the statement's handle only.
std::optional<ir::ValueId> allocate_target(Sema& sema, const ast::MoveStmt& stmt,
                                           ir::ValueId source, Span span) {
  if (stmt.target_storage == ast::Storage::kGlobal) {
    (void)sema.diags
        .report<diag::CopyDirection>(stmt.target_span, "dma.copy", "any", "newly allocated global")
        .help("declare the global buffer in front of the `parallel` and copy to it")
        .emit();
    return std::nullopt;
  }
  const bool shared = stmt.target_storage == ast::Storage::kShared;
  ir::ViewType type = sema.function.view_type(source);
  type.space = shared ? ir::Space::kShared : ir::Space::kLocal;
  for (const ir::Expr& extent : type.shape) {
    if (extent.constant()) continue;
    (void)sema.diags
        .report<diag::ExtentNotConstant>(sema.ast[stmt.source].span, "the tile to copy",
                                         text(sema, extent))
        .help("take a tile of constant extents with `.subspan(...).at(...)`")
        .emit();
    return std::nullopt;
  }
  return emit_value(sema, ir::Alloc{.name = stmt.handle.text}, span, type, stmt.handle.text);
}

// Brings both sides to one shape: the constant one. The other is widened, so that what it lacks
// reads as zero or is not written. False after a report.
bool fit_shapes(Sema& sema, ir::ValueId& source, ir::ValueId& target, Span source_span,
                Span target_span) {
  const std::vector<ir::Expr> from = sema.function.view_type(source).shape;
  const std::vector<ir::Expr> to = sema.function.view_type(target).shape;
  const bool to_chip = sema.function.view_type(target).space != ir::Space::kGlobal;
  bool differ = false;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    differ = true;
    const auto a = from[d].constant();
    const auto b = to[d].constant();
    const bool source_larger = a && b && *a > *b;
    if (source_larger) {
      (void)sema.diags.report<diag::CopyShape>(target_span, d, *a, *b)
          .label(source_span, "{} elements in dimension {}", *a, d)
          .label(target_span, "{} elements", *b)
          .help("make both {} elements", *a)
          .emit();
      return false;
    }
    // A run-time extent that may exceed the tile: checked at entry where launch values decide it.
    if (to_chip && !ir::always_less_equal(sema.function, from[d], to[d])) {
      if (const auto most = ir::upper_bound(sema.function, from[d])) {
        sema.function.checks.push_back({*most, ir::Relation::kLessEqual, to[d],
                                        format("dimension {} of the copied tile", d), source_span});
      }
    }
  }
  if (!differ) return true;
  const bool fixed_target = std::all_of(
      to.begin(), to.end(), [](const ir::Expr& extent) { return extent.constant().has_value(); });
  if (to_chip || fixed_target) {
    source = widen_view(sema, source, to, source_span);
  } else {
    target = widen_view(sema, target, from, target_span);
  }
  return true;
}

bool check_direction(Sema& sema, const ast::MoveStmt& stmt, const ir::ViewType& from,
                     const ir::ViewType& to, Span target_span) {
  const bool both_global = from.space == ir::Space::kGlobal && to.space == ir::Space::kGlobal;
  if (both_global) {
    (void)sema.diags
        .report<diag::CopyDirection>(stmt.word_span, sema.sources.text(stmt.word_span),
                                     space_name(from.space), space_name(to.space))
        .help("go through shared memory: `t = dma.copy ... => shared;`")
        .emit();
    return false;
  }
  if (from.dtype != to.dtype) {
    (void)sema.diags.report<diag::CopyDtype>(target_span, name(from.dtype), name(to.dtype))
        .label(sema.ast[stmt.source].span, "{}", name(from.dtype))
        .label(target_span, "{}", name(to.dtype))
        .help("a copy moves bytes and never converts: give both sides one type")
        .emit();
    return false;
  }
  if (from.shape.size() != to.shape.size()) {
    (void)sema.diags.report<diag::CopyRank>(target_span, from.shape.size(), to.shape.size())
        .label(sema.ast[stmt.source].span, "{} dimension(s)", from.shape.size())
        .emit();
    return false;
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> swizzle_bytes(Sema& sema, const std::optional<ast::Swizzle>& swizzle) {
  if (!swizzle || !swizzle->bytes.valid()) return -1;
  const auto number = evaluate_constant(sema, swizzle->bytes, "the swizzle");
  if (!number) return std::nullopt;
  const bool literal = sema.ast.as<ast::IntExpr>(swizzle->bytes) != nullptr;
  // Modes 0 to 3 stand for none, 32, 64 and 128 bytes.
  constexpr std::int64_t kModes[] = {0, 32, 64, 128};
  if (*number >= 0 && *number <= 3) return kModes[*number];
  for (std::int64_t bytes : kModes) {
    if (bytes == *number) return bytes;
  }
  if (literal) return std::nullopt;  // the parser has said so
  (void)sema.diags.report<diag::SwizzleNumber>(swizzle->span, *number)
      .help("swizzles are 32, 64 and 128 bytes wide, 0 is none")
      .emit();
  return std::nullopt;
}

void wish_swizzle(Sema& sema, ir::ValueId view, std::int64_t bytes, Span span) {
  if (bytes < 0) return;
  const ir::ValueId root =
      ir::storage_of(sema.function, ir::resolve_view(sema.function, view).root);
  const ir::ViewType& type = sema.function.view_type(root);
  const ir::OpId def = sema.function.values[root].def;
  if (type.space != ir::Space::kShared || !def.valid()) return;
  const std::int64_t row = type.shape.back().constant().value_or(0) * size_bytes(type.dtype);
  if (bytes > 0 && row % bytes != 0) {
    std::int64_t fits = 64;
    while (fits >= 32 && row % fits != 0) fits /= 2;
    (void)sema.diags.report<diag::SwizzleWide>(span, bytes, row)
        .help("{}", fits >= 32 ? format("`.swiz<{}>` fits these rows", fits)
                               : std::string("leave `.swiz` out: these rows allow none"))
        .emit();
    return;
  }
  const auto [wish, first] = sema.swizzles.try_emplace(root, SwizzleWish{bytes, span});
  if (!first && wish->second.bytes != bytes) {
    (void)sema.diags.report<diag::SwizzleMismatch>(span, wish->second.bytes, bytes)
        .label(wish->second.span, "swizzle {} here", wish->second.bytes)
        .label(span, "swizzle {} here", bytes)
        .help("use `.swiz<{}>` in both places", wish->second.bytes)
        .emit();
    return;
  }
  std::get<ir::Alloc>(sema.function.ops[def].data).swizzle_wanted = bytes;
}

void analyse_move(Sema& sema, const ast::MoveStmt& stmt, Span span) {
  const auto fail = [&] { declare(sema, stmt.handle, {}); };
  const std::string word(sema.sources.text(stmt.word_span));
  if (refuse_forms(sema, stmt) || !check_in_kernel(sema, stmt.word_span, format("`{}`", word))) {
    return fail();
  }
  const Operand source = evaluate_view(sema, stmt.source);
  if (sema.ast.as<ast::SelectExpr>(stmt.target) != nullptr) {
    refuse(sema, sema.ast[stmt.target].span, "`select`");
    return fail();
  }
  const Operand target = stmt.target.valid() ? evaluate_view(sema, stmt.target) : Operand{};
  if (source.is_error() || (stmt.target.valid() && target.is_error())) return fail();
  ir::ValueId from = source.id;
  const auto to =
      stmt.target.valid() ? std::optional(target.id) : allocate_target(sema, stmt, from, span);
  if (!to) return fail();
  ir::ValueId dst = *to;
  const Span target_span = stmt.target.valid() ? target.span : stmt.target_span;
  const ir::ViewType dst_type = sema.function.view_type(dst);
  if (!check_direction(sema, stmt, sema.function.view_type(from), dst_type, target_span) ||
      !fit_shapes(sema, from, dst, source.span, target_span)) {
    return fail();
  }
  const auto bytes = swizzle_bytes(sema, stmt.swizzle);
  if (bytes && stmt.swizzle) {
    wish_swizzle(sema, dst, *bytes, stmt.swizzle->span);
    wish_swizzle(sema, from, *bytes, stmt.swizzle->span);
  }
  ir::Level level = std::max(level_of(sema, from), level_of(sema, dst));
  if (dst_type.space == ir::Space::kLocal) level = ir::Level::kThread;
  if (level != ir::Level::kBlock && dst_type.space == ir::Space::kShared &&
      level_of(sema, dst) == ir::Level::kBlock) {
    (void)sema.diags.report<diag::CopyInnerShared>(stmt.word_span, level_name(level))
        .help("copy the whole block's tile once, or to a part of it chosen by the same index")
        .emit();
  }
  const ir::Level unit = level == ir::Level::kGroup4 ? ir::Level::kBlock : level;
  if (unit != ir::Level::kThread &&
      !check_collective(sema, stmt.word_span, format("`{}`", word), unit)) {
    return fail();
  }
  emit(sema, ir::Copy{.src = from, .dst = dst, .unit = threads_of(level)}, span);
  Operand handle;
  handle.kind = Operand::Kind::kView;
  handle.span = span;
  handle.id = *to;
  declare(sema, stmt.handle, {Symbol::Kind::kOperand, handle, {}});
}

}  // namespace kiln::sema
