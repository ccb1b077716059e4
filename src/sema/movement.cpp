// `dma` and `tma` statements: copies between memories (language: data movement). What `tma` adds is
// in bulk.cpp.
#include <algorithm>

#include "ir/depend.h"
#include "ir/prove.h"
#include "sema/entry_check.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/inthreads.h"
#include "sema/move.h"
#include "sema/statement.h"
#include "sema/view.h"
#include "target/copy.h"

namespace kiln::sema {

std::string_view space_name(ir::Space space) {
  switch (space) {
    case ir::Space::kGlobal: return "global";
    case ir::Space::kShared: return "shared";
    case ir::Space::kLocal: return "local";
  }
  return "";
}

namespace {

// Modifiers that mean something to the bulk engine only.
bool check_dma_forms(Sema& sema, const ast::MoveStmt& stmt, std::string_view word) {
  std::string hint;
  if (stmt.promote.valid()) hint = ".promote";
  if (stmt.multicast) hint = ".multicast";
  if (stmt.adds) hint = ".add";
  if (stmt.eviction != ast::Eviction::kNone) hint = format(".{}", spelling(stmt.eviction));
  if (hint.empty()) return true;
  (void)sema.diags.report<diag::TmaModifier>(stmt.word_span, hint, format("`{}`", word))
      .help("leave it out, or use `{}`", stmt.adds ? "tma.copy.add" : "tma.load")
      .emit();
  return false;
}

bool check_forms(Sema& sema, const ast::MoveStmt& stmt, std::string_view word) {
  if (stmt.sparse) {
    refuse_packing(sema, stmt.sparse->span, format("`{}`", sema.sources.text(stmt.sparse->span)));
    return false;
  }
  if (stmt.engine == ast::Engine::kTma) return check_bulk_forms(sema, stmt, word);
  return check_dma_forms(sema, stmt, word);
}

// Whether the cell holds the number of a rotating buffer, the same for all threads that name it.
bool numbers_buffer(const Sema& sema, ir::ValueId cell) {
  return std::any_of(sema.handles.begin(), sema.handles.end(),
                     [&](const Handle& handle) { return handle.cell == cell; });
}

// The largest unit whose threads all have the same value.
template <class Varies>
ir::Level shared_by(Varies&& varies) {
  for (const ir::Level unit : {ir::Level::kBlock, ir::Level::kGroup4, ir::Level::kGroup}) {
    if (!varies(unit)) return unit;
  }
  return ir::Level::kThread;
}

// The largest unit whose threads all find the same in the mutable scalar.
ir::Level level_of_cell(const Sema& sema, ir::ValueId cell) {
  for (const ir::Op& op : sema.function.ops) {
    const auto* get = std::get_if<ir::Get>(&op.data);
    if (get == nullptr || get->cell != cell) continue;
    return shared_by(
        [&](ir::Level unit) { return ir::value_varies_in(sema.function, op.result, unit); });
  }
  return ir::Level::kBlock;
}

// The finest level whose index the view's place depends on; kBlock when on none.
ir::Level level_of(const Sema& sema, ir::ValueId view) {
  const ir::Dependence depends =
      ir::dependence_of(sema.function, ir::resolve_view(sema.function, view).origin);
  ir::Level level = depends.per_thread ? ir::Level::kThread : ir::Level::kBlock;
  for (const ir::ValueId cell : depends.cells) {
    if (!numbers_buffer(sema, cell)) level = std::max(level, level_of_cell(sema, cell));
  }
  for (const ir::VarId var : depends.vars) {
    level = std::max(
        level, shared_by([&](ir::Level unit) { return ir::varies_in(sema.function, var, unit); }));
  }
  return level;
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

// `=> shared`: a dense buffer of the copied tile's shape, named by the statement's handle only.
std::optional<ir::ValueId> allocate_target(Sema& sema, const Transfer& transfer,
                                           ir::ViewType type) {
  const ast::MoveStmt& stmt = transfer.stmt;
  if (stmt.target_storage == ast::Storage::kGlobal) {
    (void)sema.diags
        .report<diag::CopyDirection>(stmt.target_span, transfer.word, "any",
                                     "newly allocated global")
        .help("declare the global buffer in front of the `parallel` and copy to it")
        .emit();
    return std::nullopt;
  }
  const bool shared = stmt.target_storage == ast::Storage::kShared;
  type.space = shared ? ir::Space::kShared : ir::Space::kLocal;
  if (!settle_extents(sema, type, sema.ast[stmt.source].span, "the tile to copy")) {
    return std::nullopt;
  }
  const bool rotates = transfer.handle && sema.handles[*transfer.handle].rotates;
  ir::ViewType whole = type;
  if (rotates) {
    const Rotation& rotation = sema.rotations[sema.handles[*transfer.handle].rotation];
    whole.shape.emplace_back(rotation.buffers);
  }
  if (!check_size(sema, whole, sema.ast[stmt.source].span, "the tile to copy")) return std::nullopt;
  if (!rotates) {
    return emit_value(sema, ir::Alloc{.name = stmt.handle.text}, transfer.span, type,
                      stmt.handle.text);
  }
  const Handle handle = sema.handles[*transfer.handle];
  if (sema.rotations[handle.rotation].declared) {
    refuse(sema, stmt.target_span,
           "`swap` or `rotate` of copies to declared buffers and to new ones");
    return std::nullopt;
  }
  const std::int64_t alignment = stmt.engine == ast::Engine::kTma ? target::kBoxAlignment : 1;
  if (!type_rotation(sema, handle, type, alignment, stmt.word_span)) return std::nullopt;
  return rotating_buffer(sema, handle, transfer.span);
}

// The shape that the source has at the destination, and back.
std::vector<ir::Expr> permuted(std::vector<ir::Expr> shape, const std::vector<std::int64_t>& by) {
  const std::vector<ir::Expr> from = shape;
  for (std::size_t k = 0; k < by.size(); ++k) shape[k] = from[static_cast<std::size_t>(by[k])];
  return shape;
}
std::vector<ir::Expr> unpermuted(std::vector<ir::Expr> shape, const std::vector<std::int64_t>& by) {
  const std::vector<ir::Expr> to = shape;
  for (std::size_t k = 0; k < by.size(); ++k) shape[static_cast<std::size_t>(by[k])] = to[k];
  return shape;
}

// The hardware writes the tile as it is in shared memory and no zeros around it: a destination of
// constant extents has the tile's own. Always false, after a report.
bool refuse_bulk_padding(Sema& sema, const ir::Copy& copy, Span source_span, Span target_span) {
  const std::vector<ir::Expr> from = sema.function.view_type(copy.src).shape;
  const std::vector<ir::Expr> to = sema.function.view_type(copy.dst).shape;
  std::size_t d = 0;
  while (d + 1 < from.size() && from[d] == to[d]) ++d;
  (void)sema.diags.report<diag::CopyShape>(target_span, d, text(sema, from[d]), text(sema, to[d]))
      .label(source_span, "{} elements in dimension {}", text(sema, from[d]), d)
      .label(target_span, "{} elements", text(sema, to[d]))
      .help(
          "`tma` writes the tile and no zeros around it: take a tile of {} elements there with "
          "`.subspan(...).at(...)`",
          text(sema, from[d]))
      .emit();
  return false;
}

// Brings both sides to one shape: the constant one. The other is widened, so that what it lacks
// reads as zero or is not written. False after a report.
bool fit_shapes(Sema& sema, Transfer& transfer, Span source_span, Span target_span) {
  ir::Copy& copy = transfer.copy;
  const bool bulk = transfer.stmt.engine == ast::Engine::kTma;
  ir::ValueId& source = copy.src;
  ir::ValueId& target = copy.dst;
  const std::vector<ir::Expr> from =
      permuted(sema.function.view_type(source).shape, copy.permutation);
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
    // An extent that may exceed the tile: checked at entry where launch values decide it. A tile
    // whose extent the kernel computes takes as many elements as it has.
    if (!to_chip || !ir::known_at_launch(sema.function, to[d])) continue;
    if (ir::always_less_equal(sema.function, from[d], to[d])) continue;
    if (const auto most = ir::upper_bound(sema.function, from[d])) {
      require(sema, {*most, ir::Relation::kLessEqual, to[d],
                     format("dimension {} of the copied tile", d), source_span});
    }
  }
  if (!differ) return true;
  const bool fixed_target = std::all_of(
      to.begin(), to.end(), [](const ir::Expr& extent) { return extent.constant().has_value(); });
  if (bulk && !to_chip && fixed_target) {
    return refuse_bulk_padding(sema, copy, source_span, target_span);
  }
  if (to_chip || fixed_target) {
    source = widen_view(sema, source, unpermuted(to, copy.permutation), source_span);
  } else {
    target = widen_view(sema, target, from, target_span);
  }
  return true;
}

// A type, and a number of dimensions.
bool check_alike(Sema& sema, const ast::MoveStmt& stmt, const ir::ViewType& from,
                 const ir::ViewType& to, Span target_span) {
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
  return check_alike(sema, stmt, from, to, target_span);
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
  const ir::ValueId root = ir::root_of(sema.function, view);
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

namespace {

// The destination of a padded copy has exactly the padded shape.
bool check_padded(Sema& sema, const ir::ViewType& tile, const ir::ViewType& dst, Span span) {
  for (std::size_t d = 0; d < tile.shape.size(); ++d) {
    if (tile.shape[d] == dst.shape[d]) continue;
    (void)sema.diags
        .report<diag::CopyShape>(span, d, text(sema, tile.shape[d]), text(sema, dst.shape[d]))
        .label(span, "padding included")
        .help("make both {} elements", text(sema, tile.shape[d]))
        .emit();
    return false;
  }
  return true;
}

// A name of a declared buffer changes places with others only where `swap` or `rotate` says so.
bool may_rotate(const Sema& sema, const ast::MoveStmt& stmt) {
  const auto planned = sema.plan.group.find(stmt.handle.text);
  return !stmt.target.valid() ||
         (planned != sema.plan.group.end() && sema.plan.exchanges[planned->second]);
}

// Who copies: the finest level that one of the places depends on; in a region of the very threads
// of one such unit, all of the region.
void place_copy(Sema& sema, Transfer& transfer) {
  ir::Copy& copy = transfer.copy;
  transfer.level = std::max(level_of(sema, copy.src), level_of(sema, copy.dst));
  const bool local = sema.function.view_type(copy.dst).space == ir::Space::kLocal;
  if (local) transfer.level = ir::Level::kThread;
  const auto region = enclosing_region(sema);
  if (region && !local && region->threads == ir::threads_of(transfer.level)) {
    transfer.level = ir::Level::kBlock;
  }
  copy.unit = ir::threads_of(transfer.level);
}

bool check_place(Sema& sema, const Transfer& transfer) {
  const ir::Level level = transfer.level;
  const bool into_shared = sema.function.view_type(transfer.copy.dst).space == ir::Space::kShared;
  if (level != ir::Level::kBlock && into_shared &&
      level_of(sema, transfer.copy.dst) == ir::Level::kBlock) {
    (void)sema.diags.report<diag::CopyInnerShared>(transfer.stmt.word_span, level_name(level))
        .help("copy the whole block's tile once, or to a part of it chosen by the same index")
        .emit();
  }
  const ir::Level unit = level == ir::Level::kGroup4 ? ir::Level::kBlock : level;
  return unit == ir::Level::kThread ||
         check_collective(sema, transfer.stmt.word_span, format("`{}`", transfer.word), unit);
}

// An asynchronous copy by the threads themselves.
void emit_issued(Sema& sema, Transfer transfer) {
  ir::Copy& copy = transfer.copy;
  copy.async = true;
  const std::string& name = transfer.stmt.handle.text;
  const bool named = transfer.handle.has_value();
  if (named && !copy.event.valid() && !sema.plan.completes.contains(name)) {
    Handle& handle = sema.handles[*transfer.handle];
    if (!handle.future.valid()) {
      handle.future =
          emit_value(sema, ir::Future{.name = name}, transfer.span, ir::FutureType{}, name);
    }
    copy.future = handle.future;
  }
  const ir::OpId op = emit(sema, copy, transfer.span);
  if (named) add_copy(sema, *transfer.handle, Handle::Kind::kIssued, op);
}

// Whether the copy fills the memory of the thread that makes it: nobody else can, so that it is
// complete with its statement, whatever the program says.
bool is_done_at_once(const Sema& sema, const Transfer& transfer) {
  return transfer.stmt.engine == ast::Engine::kDma && !transfer.stmt.event.valid() &&
         sema.function.view_type(transfer.copy.dst).space == ir::Space::kLocal;
}

bool check_async(Sema& sema, const Transfer& transfer) {
  const ir::Space from = sema.function.view_type(transfer.copy.src).space;
  const ir::Space to = sema.function.view_type(transfer.copy.dst).space;
  if (from == ir::Space::kGlobal && to == ir::Space::kShared) return true;
  if (is_done_at_once(sema, transfer)) {
    (void)sema.diags.report<diag::CopyAsyncLocal>(transfer.stmt.async_span, transfer.word)
        .help("copy to `shared` for what should go on by itself")
        .emit();
    return true;
  }
  (void)sema.diags
      .report<diag::CopyAsyncDirection>(transfer.stmt.async_span, transfer.word, space_name(from),
                                        space_name(to))
      .help("leave `.async` out: only copies from global to shared memory go on by themselves")
      .emit();
  return false;
}

// `.async<e>`: the copy completes an event.
bool tie_to_event(Sema& sema, Transfer& transfer) {
  const ast::MoveStmt& stmt = transfer.stmt;
  if (!stmt.event.valid()) return true;
  const auto ref = box_event(sema, stmt.event, "`.async<...>`");
  if (!ref) return false;
  transfer.copy.event = ref->event;
  transfer.copy.slot = ref->slot;
  Span& completed = sema.events.at(ref->event).completed;
  if (!completed.valid()) completed = stmt.async_span;
  if (transfer.handle) sema.handles[*transfer.handle].completes = sema.events.at(ref->event).name;
  return true;
}

void emit_transfer(Sema& sema, Transfer transfer) {
  if (transfer.handle && !transfer.stmt.is_async) {
    sema.handles[*transfer.handle].kind = Handle::Kind::kSynchronous;
  }
  if (transfer.stmt.engine == ast::Engine::kTma) return emit_bulk(sema, std::move(transfer));
  if (!transfer.stmt.is_async) {
    emit(sema, transfer.copy, transfer.span);
  } else if (is_done_at_once(sema, transfer)) {
    const ir::OpId op = emit(sema, transfer.copy, transfer.span);
    if (transfer.handle) add_copy(sema, *transfer.handle, Handle::Kind::kDone, op);
  } else {
    emit_issued(sema, std::move(transfer));
  }
}

// The two sides of the statement, brought to one shape; false after a report.
bool join_sides(Sema& sema, Transfer& transfer) {
  const ast::MoveStmt& stmt = transfer.stmt;
  const Operand source = evaluate_view(sema, stmt.source);
  const Operand target = stmt.target.valid() ? evaluate_view(sema, stmt.target) : Operand{};
  if (source.is_error() || (stmt.target.valid() && target.is_error())) return false;
  ir::ViewType tile = sema.function.view_type(source.id);
  const auto permutation = permutation_of(sema, stmt, tile.shape.size());
  std::optional<Padding> padding;
  if (stmt.pad) padding = padding_of(sema, stmt, tile.shape.size());
  if (!permutation || (stmt.pad && !padding)) return false;
  tile.shape = permuted(tile.shape, *permutation);
  for (std::size_t d = 0; padding && d < tile.shape.size(); ++d) {
    tile.shape[d] = tile.shape[d] + (padding->low[d] + padding->high[d]);
  }
  transfer.copy.src = source.id;
  transfer.copy.permutation = *permutation;
  const auto to =
      stmt.target.valid() ? std::optional(target.id) : allocate_target(sema, transfer, tile);
  if (!to) return false;
  const bool declared =
      stmt.target.valid() && transfer.handle && sema.handles[*transfer.handle].rotates;
  if (declared && !name_declared_buffer(sema, sema.handles[*transfer.handle], *to, target.span)) {
    return false;
  }
  transfer.copy.dst = *to;
  transfer.whole = *to;
  const Span target_span = stmt.target.valid() ? target.span : stmt.target_span;
  const ir::ViewType dst_type = sema.function.view_type(*to);
  if (!check_direction(sema, stmt, sema.function.view_type(source.id), dst_type, target_span)) {
    return false;
  }
  if (padding) {
    place_copy(sema, transfer);
    const auto window = check_padded(sema, tile, dst_type, target_span)
                            ? fill_border(sema, transfer, *padding)
                            : std::nullopt;
    if (!window) return false;
    transfer.copy.dst = *window;
  }
  return fit_shapes(sema, transfer, source.span, target_span);
}

void take_swizzle(Sema& sema, const Transfer& transfer) {
  const auto bytes = swizzle_bytes(sema, transfer.stmt.swizzle);
  if (!bytes || !transfer.stmt.swizzle) return;
  wish_swizzle(sema, transfer.copy.dst, *bytes, transfer.stmt.swizzle->span);
  wish_swizzle(sema, transfer.copy.src, *bytes, transfer.stmt.swizzle->span);
}

// Whether the host part can make it; reports.
bool check_host_forms(Sema& sema, const ast::MoveStmt& stmt, std::string_view word) {
  constexpr std::string_view kWhere = "in the host part of a tile function";
  if (stmt.is_async) {
    refuse(sema, stmt.async_span, format("`.async` on a copy {}", kWhere));
    return false;
  }
  const bool plain = stmt.engine == ast::Engine::kDma && stmt.op == ast::MoveOp::kCopy;
  if (!plain) {
    refuse(sema, stmt.word_span, format("`{}` {}", word, kWhere));
    return false;
  }
  const bool hints =
      stmt.promote.valid() || stmt.multicast || stmt.adds || stmt.eviction != ast::Eviction::kNone;
  if (stmt.swizzle || stmt.zfill || stmt.sparse || hints || stmt.after.valid()) {
    refuse(sema, stmt.word_span, format("a copy with more than its two sides {}", kWhere));
    return false;
  }
  return true;
}

// Whole buffers of the same extents; reports.
bool check_host_sides(Sema& sema, const ast::MoveStmt& stmt, const Operand& source,
                      const Operand& target) {
  const ir::ViewType& from = sema.function.view_type(source.id);
  const ir::ViewType& to = sema.function.view_type(target.id);
  if (!check_alike(sema, stmt, from, to, target.span)) return false;
  for (const Operand* side : {&source, &target}) {
    if (sema.function.def_as<ir::Subview>(side->id) == nullptr) continue;
    refuse(sema, side->span, "a copy of a part of a buffer in the host part of a tile function");
    return false;
  }
  for (std::size_t d = 0; d < from.shape.size(); ++d) {
    if (from.shape[d] == to.shape[d]) continue;
    (void)sema.diags
        .report<diag::CopyShape>(target.span, d, text(sema, from.shape[d]), text(sema, to.shape[d]))
        .label(source.span, "{} elements in dimension {}", text(sema, from.shape[d]), d)
        .label(target.span, "{} elements", text(sema, to.shape[d]))
        .help(
            "in the host part both sides have the same extents: go through what they share with "
            "`foreach` and `.at(...)`")
        .emit();
    return false;
  }
  return true;
}

// Element by element, the last dimension innermost.
void copy_elements(Sema& sema, ir::ValueId from, ir::ValueId to, std::vector<ir::Expr> index,
                   Span span) {
  const ir::ViewType type = sema.function.view_type(from);
  if (index.size() == type.shape.size()) {
    const ir::ValueId element =
        emit_value(sema, ir::Read{from, index}, span, ir::ScalarType{type.dtype});
    emit(sema, ir::Write{to, index, element}, span);
    return;
  }
  const ir::Expr extent = type.shape[index.size()];
  const ir::VarId var = add_var(sema, "i", ir::VarKind::kLoop, extent, span);
  const ir::OpId loop = emit(sema, ir::For{var, 0, extent, 1, 0, 0, false, {}}, span);
  index.push_back(ir::Expr::var(var));
  const ir::RegionId body =
      in_region(sema, [&] { copy_elements(sema, from, to, std::move(index), span); });
  std::get<ir::For>(sema.function.ops[loop].data).body = body;
}

// `dma.copy a => b;` outside of `parallel`; false after a report.
bool copy_on_host(Sema& sema, const ast::MoveStmt& stmt, std::string_view word, Span span) {
  if (!check_host_forms(sema, stmt, word)) return false;
  const Operand source = evaluate_view(sema, stmt.source);
  const Operand target = evaluate_view(sema, stmt.target);
  if (source.is_error() || target.is_error()) return false;
  if (!check_host_sides(sema, stmt, source, target)) return false;
  copy_elements(sema, source.id, target.id, {}, span);
  if (!stmt.handle.valid()) return true;
  const std::size_t handle = open_handle(sema, stmt.handle);
  sema.handles[handle].kind = Handle::Kind::kSynchronous;
  declare_handle(sema, handle, stmt.handle, target.id);
  return true;
}

// Everything up to the copy itself; false after a report.
bool prepare(Sema& sema, Transfer& transfer) {
  if (!join_sides(sema, transfer)) return false;
  const ast::MoveStmt& stmt = transfer.stmt;
  const bool bulk = stmt.engine == ast::Engine::kTma;
  if (stmt.is_async && !bulk && !check_async(sema, transfer)) return false;
  if (bulk && !check_bulk(sema, transfer)) return false;
  take_swizzle(sema, transfer);
  place_copy(sema, transfer);
  return check_place(sema, transfer) && tie_to_event(sema, transfer);
}

}  // namespace

void analyse(Sema& sema, const ast::MoveStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const auto fail = [&] {
    if (find_handle(sema, stmt.handle.text) == nullptr) declare(sema, stmt.handle, {});
  };
  const std::string word(sema.sources.text(stmt.word_span));
  if (!sema.place.in_kernel && stmt.target.valid()) {
    if (!copy_on_host(sema, stmt, word, span)) fail();
    return;
  }
  if (!check_in_kernel(sema, stmt.word_span, format("`{}`", word)) ||
      !check_forms(sema, stmt, word)) {
    return fail();
  }
  Transfer transfer{.stmt = stmt, .span = span, .word = word, .copy = {}};
  if (stmt.after.valid()) wait_before(sema, stmt.after, span);
  if (stmt.handle.valid()) {
    transfer.handle = open_handle(sema, stmt.handle);
    Handle& handle = sema.handles[*transfer.handle];
    const bool fresh = !handle.is_placeholder && handle.copies.empty();
    if (fresh) handle.kind = Handle::Kind::kSynchronous;  // until its copy is there
    if (may_rotate(sema, stmt) && !handle.rotates) join_rotation(sema, *transfer.handle, span);
  }
  if (!prepare(sema, transfer)) return fail();
  const std::optional<std::size_t> handle = transfer.handle;
  const ir::ValueId buffer = transfer.whole;
  emit_transfer(sema, std::move(transfer));
  if (handle) declare_handle(sema, *handle, stmt.handle, buffer);
}

}  // namespace kiln::sema
