// `tma` statements: what the hardware asks of the tile, and what completes the copy.
//
//   tma.load src => s;                 copy bulk event=%landed; trigger %landed; event_wait %landed
//   tma.load.async<full[i]> src => s;  copy bulk async event=%full slot=i
//   f = tma.load.async src => shared;  copy bulk async event=%landed; trigger %landed
//   tma.copy s => dst;                 copy bulk; bulk_wait
//
// An event that the program does not name is one of the compiler's own.
#include <algorithm>

#include "ir/prove.h"
#include "ir/strides.h"
#include "ir/tensor_map.h"
#include "sema/entry_check.h"
#include "sema/event.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/inthreads.h"
#include "sema/move.h"
#include "sema/view.h"
#include "target/bulk.h"
#include "target/copy.h"

namespace kiln::sema {

namespace {

using target::kBulkBytes;
using target::kBulkRankMax;

bool is_load(const Sema& sema, const ir::Copy& copy) {
  return sema.function.view_type(copy.dst).space == ir::Space::kShared;
}

// The multiple of 16 bytes nearest below or above, in elements.
std::string nearest_text(std::int64_t bytes, std::int64_t size) {
  const std::int64_t below = bytes / kBulkBytes * kBulkBytes;
  const std::int64_t above = below + kBulkBytes;
  if (below == 0) return format("{} elements", above / size);
  return format("{} or {} elements", below / size, above / size);
}

// What does the same without the hardware's help.
std::string_view other_way(const ast::MoveStmt& stmt) {
  return stmt.adds ? "`__atomic_add` for each element" : "`dma.copy`";
}

bool check_inner(Sema& sema, const Transfer& transfer) {
  const ir::Copy& copy = transfer.copy;
  const ir::ViewType& tile = sema.function.view_type(is_load(sema, copy) ? copy.dst : copy.src);
  const std::int64_t size = size_bytes(tile.dtype);
  const auto inner = tile.shape.back().constant();
  if (!inner) {
    (void)sema.diags
        .report<diag::ExtentNotConstant>(transfer.span, "the tile to copy",
                                         text(sema, tile.shape.back()))
        .help("take a tile of constant extents with `.subspan(...).at(...)`, or use {}",
              other_way(transfer.stmt))
        .emit();
    return false;
  }
  if (*inner * size % kBulkBytes == 0) return true;
  (void)sema.diags
      .report<diag::TmaInner>(transfer.stmt.word_span, *inner * size, transfer.word, kBulkBytes)
      .help("make the rows {} long, or use {}", nearest_text(*inner * size, size),
            other_way(transfer.stmt))
      .emit();
  return false;
}

// Of several copies with one buffer the first is told.
void check_once(Sema& sema, ir::EntryCheck check) {
  const auto& checks = sema.function.checks;
  const bool there = std::any_of(checks.begin(), checks.end(), [&](const ir::EntryCheck& other) {
    return other.message == check.message;
  });
  if (!there) require(sema, std::move(check));
}

// Rows of the global buffer must start at multiples of 16 bytes: proved, or checked at entry.
bool check_pitch(Sema& sema, const Transfer& transfer, const ir::ResolvedView& global) {
  const ir::ViewType& root = sema.function.view_type(global.root);
  if (root.shape.size() < 2) return true;
  const std::int64_t size = size_bytes(root.dtype);
  const std::int64_t elements = kBulkBytes / std::min(size, kBulkBytes);
  const ir::Expr& pitch = root.shape.back();
  const bool is_known = std::ranges::any_of(sema.divisors, [&](const Sema::Divides& each) {
    return each.divisor % elements == 0 && each.of == pitch;
  });
  if (is_known || ir::always_divisible(pitch, elements)) return true;
  if (const auto constant = pitch.constant()) {
    (void)sema.diags
        .report<diag::TmaPitch>(transfer.stmt.word_span, view_name(sema, global.root),
                                *constant * size, transfer.word, kBulkBytes)
        .help("give its rows {}, or use {}", nearest_text(*constant * size, size),
              other_way(transfer.stmt))
        .emit();
    return false;
  }
  const std::string message = format("rows of `{}` must be multiples of {} bytes for `{}`",
                                     view_name(sema, global.root), kBulkBytes, transfer.word);
  check_once(sema, {elements, ir::Relation::kDivides, pitch, message, transfer.stmt.word_span});
  return true;
}

// The hardware stores whole units of 16 bytes: of the unit in which the array, or its rows, end it
// writes what lies behind the end too (seen on an H200). So the end must not lie inside of one:
// proved, or checked at entry.
bool check_store_end(Sema& sema, const Transfer& transfer, const ir::ResolvedView& global,
                     const ir::Expr& tile_cols) {
  const ir::ViewType& root = sema.function.view_type(global.root);
  const std::int64_t size = size_bytes(root.dtype);
  const std::int64_t elements = kBulkBytes / std::min(size, kBulkBytes);
  const ir::Expr end = ir::launch_limits(sema.function, global).back();
  if (root.shape.size() > 1 && end == root.shape.back()) return true;  // that is the pitch
  if (ir::always_divisible(end, elements)) return true;
  if (ir::always_less_equal(sema.function, global.origin.back() + tile_cols, end)) return true;
  if (const auto constant = end.constant()) {
    (void)sema.diags
        .report<diag::TmaStoreEnd>(transfer.stmt.word_span, view_name(sema, global.root),
                                   *constant * size, transfer.word, kBulkBytes)
        .help("end it after {}, or use {}", nearest_text(*constant * size, size),
              other_way(transfer.stmt))
        .emit();
    return false;
  }
  check_once(sema, {elements, ir::Relation::kDivides, end,
                    format("`{}` must end at a multiple of {} bytes for `{}` to it",
                           view_name(sema, global.root), kBulkBytes, transfer.word),
                    transfer.stmt.word_span});
  return true;
}

// A tensor map knows one buffer from its first element on, and rows that follow each other: not what
// `.sqz()` of an inner dimension, `.span_as` of a part or strides make of it.
bool check_has_map(Sema& sema, const Transfer& transfer, const ir::ResolvedView& global) {
  const std::vector<ir::Expr>& shape = sema.function.view_type(global.root).shape;
  const bool is_known = std::ranges::all_of(
      shape, [&](const ir::Expr& extent) { return ir::known_at_launch(sema.function, extent); });
  if (is_known && ir::is_mappable(sema.function, global.root)) return true;
  const std::string name = view_name(sema, ir::storage_of(sema.function, global.root));
  (void)sema.diags.report<diag::TmaReshaped>(transfer.stmt.word_span, transfer.word, name)
      .help("declare `{}` in that shape, or use {}", name, other_way(transfer.stmt))
      .emit();
  return false;
}

// What the tile may not leave must be an extent that the host knows.
bool check_limits(Sema& sema, const Transfer& transfer, const ir::ResolvedView& global,
                  const std::vector<ir::Expr>& shape) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::size_t root = global.dropped + d;
    const ir::Expr end = global.origin[root] + shape[d];
    for (const ir::Expr& limit : global.limits[root]) {
      if (ir::known_at_launch(sema.function, limit)) continue;
      if (ir::always_less_equal(sema.function, end, limit)) continue;
      const ir::Expr there = limit - global.origin[root];
      if (there.constant()) {
        const bool stores = sema.function.view_type(transfer.copy.dst).space == ir::Space::kGlobal;
        const std::string ours = text(sema, shape[d]);
        const std::string theirs = text(sema, there);
        (void)sema.diags
            .report<diag::CopyShape>(transfer.stmt.word_span, d, stores ? ours : theirs,
                                     stores ? theirs : ours)
            .help("give both sides {} elements, or use {}{}", theirs, other_way(transfer.stmt),
                  transfer.stmt.adds ? ""
                  : stores           ? ", which leaves the others out"
                                     : ", which fills up with zeros")
            .emit();
        return false;
      }
      (void)sema.diags
          .report<diag::TmaExtents>(transfer.stmt.word_span, transfer.word, text(sema, limit))
          .help("use {} for tiles whose extents the kernel computes", other_way(transfer.stmt))
          .emit();
      return false;
    }
  }
  return true;
}

}  // namespace

bool check_bulk_forms(Sema& sema, const ast::MoveStmt& stmt, std::string_view word) {
  if (!sema.arch.has(target::Feature::kTma)) {
    (void)sema.diags.report<diag::TmaUnsupported>(stmt.word_span, sema.arch.name)
        .help("use {}, or compile for `{}`", other_way(stmt),
              target::oldest_arch({target::Feature::kTma})->name)
        .emit();
    return false;
  }
  if (stmt.op == ast::MoveOp::kPad || stmt.op == ast::MoveOp::kTransp) {
    refuse(sema, stmt.word_span, format("`{}`", word));
    return false;
  }
  const bool evicts = stmt.eviction != ast::Eviction::kNone;
  if (evicts && (stmt.multicast || stmt.op == ast::MoveOp::kCopy)) {
    (void)sema.diags
        .report<diag::TmaModifier>(
            stmt.word_span, format(".{}", spelling(stmt.eviction)),
            stmt.multicast ? std::string_view("`.multicast`") : std::string_view("`tma.copy`"))
        .help("{}", stmt.multicast ? "leave one of them out" : "use `tma.load`")
        .emit();
    return false;
  }
  const auto& cluster = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data).cluster;
  if (!stmt.multicast || !cluster.empty()) return true;
  (void)sema.diags.report<diag::ClusterMissing>(stmt.word_span, "`.multicast`")
      .help("put a `parallel ... : cluster` around the block, or leave `.multicast` out")
      .emit();
  return false;
}

namespace {

// Numbers are added on their way to global memory, of the types that the hardware adds.
bool check_adds(Sema& sema, const Transfer& transfer, bool load) {
  const DType dtype = sema.function.view_type(transfer.copy.src).dtype;
  if (load) {
    (void)sema.diags
        .report<diag::TmaModifier>(transfer.stmt.word_span, ".add", "a copy to shared memory")
        .help("leave `.add` out, or add what is in shared memory to a tensor")
        .emit();
    return false;
  }
  if (target::adds_in_bulk(dtype)) return true;
  (void)sema.diags
      .report<diag::TmaModifier>(transfer.stmt.word_span, ".add",
                                 format("elements of `{}`", name(dtype)))
      .help("add f32, f16, bf16, s32, u32 or u64, or use `__atomic_add`")
      .emit();
  return false;
}

}  // namespace

bool check_bulk(Sema& sema, const Transfer& transfer) {
  const ir::Copy& copy = transfer.copy;
  const ir::ViewType& from = sema.function.view_type(copy.src);
  const ir::ViewType& to = sema.function.view_type(copy.dst);
  const bool load = from.space == ir::Space::kGlobal && to.space == ir::Space::kShared;
  const bool store = from.space == ir::Space::kShared && to.space == ir::Space::kGlobal;
  if (!load && !store) {
    (void)sema.diags
        .report<diag::CopyDirection>(transfer.stmt.word_span, transfer.word, space_name(from.space),
                                     space_name(to.space))
        .help("`tma` copies between global and shared memory: use {}", other_way(transfer.stmt))
        .emit();
    return false;
  }
  if (store && transfer.stmt.multicast) {
    (void)sema.diags
        .report<diag::TmaModifier>(transfer.stmt.word_span, ".multicast", "a copy to global memory")
        .help("leave `.multicast` out")
        .emit();
    return false;
  }
  if (store && transfer.stmt.event.valid()) {  // its bytes complete nothing
    (void)sema.diags
        .report<diag::TmaModifier>(transfer.stmt.async_span, ".async<event>",
                                   "a copy to global memory")
        .help("name the copy, `f = {}.async ...`, and `wait f;` before the event is triggered",
              transfer.word)
        .emit();
    return false;
  }
  if (transfer.stmt.adds && !check_adds(sema, transfer, load)) return false;
  if (from.shape.empty() || from.shape.size() > kBulkRankMax) {
    (void)sema.diags
        .report<diag::TmaRank>(transfer.stmt.word_span, transfer.word, kBulkRankMax,
                               from.shape.size())
        .help("copy slices of rank {}, or use {}", kBulkRankMax, other_way(transfer.stmt))
        .emit();
    return false;
  }
  const ir::ResolvedView global = ir::resolve_view(sema.function, load ? copy.src : copy.dst);
  const std::vector<ir::Expr>& tile = load ? to.shape : from.shape;
  return check_has_map(sema, transfer, global) && check_inner(sema, transfer) &&
         check_pitch(sema, transfer, global) && check_limits(sema, transfer, global, tile) &&
         (load || check_store_end(sema, transfer, global, tile.back()));
}

namespace {

// A copy of each warp or warpgroup needs an event of its own, which only the program can give.
bool check_one_copy(Sema& sema, const Transfer& transfer) {
  if (transfer.copy.unit == 0) return true;
  refuse(sema, transfer.stmt.word_span,
         format("`{}` of a tile for each warpgroup, warp or thread without `.async<event>`",
                transfer.word));
  return false;
}

void emit_store(Sema& sema, const Transfer& transfer) {
  const ir::OpId op = emit(sema, transfer.copy, transfer.span);
  if (!transfer.stmt.is_async) {
    emit(sema, ir::BulkWait{.inferred = true}, transfer.span);
  } else if (transfer.handle) {
    add_copy(sema, *transfer.handle, Handle::Kind::kStore, op);
  }
}

// The event and slot that a load waited for by name completes.
void own_event(Sema& sema, Transfer& transfer) {
  Handle& handle = sema.handles[*transfer.handle];
  if (!handle.rotates) {
    handle.event = hidden_event(sema, 1, transfer.span);
    transfer.copy.event = handle.event;
    return;
  }
  Rotation& rotation = sema.rotations[handle.rotation];
  if (!rotation.event.valid()) {
    rotation.event = hidden_event(sema, rotation.buffers, transfer.span);
  }
  transfer.copy.event = rotation.event;
  // The buffer that the copy goes to has the same number.
  transfer.copy.slot = rotation.declared
                           ? number_in_array(sema, transfer.whole)
                           : sema.function.def_as<ir::Subview>(transfer.copy.dst)->origin[0];
}

void emit_named_load(Sema& sema, Transfer transfer) {
  const auto tied = sema.plan.completes.find(transfer.stmt.handle.text);
  const bool completes = tied != sema.plan.completes.end();
  if (!completes) {
    if (!check_one_copy(sema, transfer)) return;
    own_event(sema, transfer);
  }
  const ir::OpId op = emit(sema, transfer.copy, transfer.span);
  add_copy(sema, *transfer.handle, Handle::Kind::kLoad, op);
  if (completes) return;
  emit(sema, ir::Trigger{.event = transfer.copy.event, .slot = transfer.copy.slot}, transfer.span);
}

}  // namespace

void emit_bulk(Sema& sema, Transfer transfer) {
  ir::Copy& copy = transfer.copy;
  const ast::MoveStmt& stmt = transfer.stmt;
  copy.bulk = true;
  copy.async = stmt.is_async;
  copy.multicast = stmt.multicast;
  copy.adds = stmt.adds;
  if (stmt.eviction == ast::Eviction::kFirst) copy.eviction = ir::Eviction::kFirst;
  if (stmt.eviction == ast::Eviction::kLast) copy.eviction = ir::Eviction::kLast;
  if (stmt.promote.valid()) {
    copy.promotion = evaluate_constant(sema, stmt.promote, "the promotion").value_or(0);
  }
  if (!is_load(sema, copy)) return emit_store(sema, transfer);
  if (copy.event.valid()) {
    emit(sema, copy, transfer.span);
    return;
  }
  if (stmt.is_async) return emit_named_load(sema, std::move(transfer));
  if (!check_one_copy(sema, transfer)) return;
  copy.event = hidden_event(sema, 1, transfer.span);
  emit(sema, copy, transfer.span);
  emit(sema, ir::Trigger{.event = copy.event}, transfer.span);
  emit(sema, ir::EventWait{.event = copy.event}, transfer.span);
}

}  // namespace kiln::sema
