// Names of copies, and what waits for them.
//
//   f = dma.copy.async a => shared;   ->  %f = future;  copy async future=%f
//   wait f;                           ->  future_wait future=%f
//   g = tma.load.async a => shared;   ->  copy bulk async event=%landed;  trigger event=%landed
//   wait g;                           ->  event_wait event=%landed
//   swap(f, h);                       ->  the numbers of their buffers, and exchange %f, %h
#include "sema/future.h"

#include <algorithm>

#include "sema/expression.h"
#include "sema/inthreads.h"
#include "sema/statement.h"

namespace kiln::sema {

namespace {

const Symbol* handle_symbol(const Sema& sema, const std::string& name) {
  const Symbol* symbol = sema.scopes.find(name);
  return symbol != nullptr && symbol->kind == Symbol::Kind::kHandle ? symbol : nullptr;
}

std::string_view kind_text(Handle::Kind kind) {
  switch (kind) {
    case Handle::Kind::kPlaceholder: return "a placeholder";
    case Handle::Kind::kSynchronous: return "a synchronous copy";
    case Handle::Kind::kIssued: return "an asynchronous `dma` copy";
    case Handle::Kind::kDone: return "an asynchronous copy to local memory";
    case Handle::Kind::kLoad: return "an asynchronous `tma` load";
    case Handle::Kind::kStore: return "an asynchronous `tma` store";
  }
  return "";
}

bool is_asynchronous(Handle::Kind kind) {
  return kind == Handle::Kind::kIssued || kind == Handle::Kind::kDone ||
         kind == Handle::Kind::kLoad || kind == Handle::Kind::kStore;
}

// Reports a name that is none of a copy; silent about what has been reported.
void report_no_handle(Sema& sema, const ast::Name& name, std::string_view word) {
  const Symbol* symbol = sema.scopes.find(name.text);
  if (symbol == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(name.span, name.text)
        .help_if(did_you_mean(name.text, sema.scopes.names()))
        .emit();
    return;
  }
  const bool is_mma = symbol->kind == Symbol::Kind::kMmaFuture;
  if (symbol->operand.is_error() && !is_mma) return;
  (void)sema.diags
      .report<diag::RotationOperand>(
          name.span, name.text,
          is_mma ? std::string("the future of an `mma`") : describe(symbol->operand, sema.function),
          word)
      .label(symbol->span, "declared here")
      .help("name a copy: `{} = dma.copy.async source => shared;`", name.text)
      .emit();
}

}  // namespace

Handle* find_handle(Sema& sema, const std::string& name) {
  const Symbol* symbol = handle_symbol(sema, name);
  return symbol == nullptr ? nullptr : &sema.handles[symbol->handle];
}

std::size_t open_handle(Sema& sema, const ast::Name& name) {
  const Symbol* symbol = handle_symbol(sema, name.text);
  if (symbol != nullptr && sema.handles[symbol->handle].rotates) return symbol->handle;
  Handle handle;
  handle.name = name.text;
  handle.span = name.span;
  sema.handles.push_back(std::move(handle));
  return sema.handles.size() - 1;
}

void declare_handle(Sema& sema, std::size_t handle, const ast::Name& name, ir::ValueId buffer) {
  const Symbol* symbol = handle_symbol(sema, name.text);
  if (symbol != nullptr && symbol->handle == handle) return;
  Operand operand;
  operand.kind = Operand::Kind::kView;
  operand.span = name.span;
  operand.id = buffer;
  declare(sema, name, {Symbol::Kind::kHandle, operand, {}, handle});
}

void add_copy(Sema& sema, std::size_t number, Handle::Kind kind, ir::OpId copy) {
  Handle& handle = sema.handles[number];
  handle.kind = kind;
  handle.copies.push_back(copy);
  handle.regions.push_back(sema.regions.back());
}

void analyse(Sema& sema, const ast::PlaceholderStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!check_in_kernel(sema, span, "a placeholder")) return declare(sema, stmt.name, {});
  Handle handle;
  handle.name = stmt.name.text;
  handle.span = stmt.name.span;
  handle.is_placeholder = true;
  sema.handles.push_back(std::move(handle));
  const std::size_t number = sema.handles.size() - 1;
  join_rotation(sema, number, span);
  if (stmt.engine == ast::Engine::kDma) {
    const std::string& name = stmt.name.text;
    sema.handles[number].future =
        emit_value(sema, ir::Future{.name = name}, span, ir::FutureType{}, name);
  }
  declare_handle(sema, number, stmt.name, sema.rotations[sema.handles[number].rotation].array);
}

namespace {

// Whether the earlier wait was on the way here: in this region or one around it.
bool comes_here(const Sema& sema, ir::RegionId region) {
  return std::find(sema.regions.begin(), sema.regions.end(), region) != sema.regions.end();
}

void report_early(Sema& sema, const Handle& handle, Span span) {
  (void)sema.diags.report<diag::PlaceholderEarly>(span, handle.name)
      .label(handle.span, "a placeholder")
      .help("start a copy first: `{} = dma.copy.async source => shared;`", handle.name)
      .emit();
}

bool check_wait(Sema& sema, Handle& handle, Span span) {
  if (handle.kind == Handle::Kind::kSynchronous) {
    (void)sema.diags.report<diag::FutureSynchronous>(span, handle.name)
        .label(handle.span, "the copy")
        .help("remove the `wait`, or make the copy `.async`")
        .emit();
    return false;
  }
  if (handle.kind == Handle::Kind::kPlaceholder && !handle.used) {
    report_early(sema, handle, span);
    return false;
  }
  const auto planned = sema.plan.completes.find(handle.name);
  const bool tied_later = planned != sema.plan.completes.end();
  if (!handle.completes.empty() || tied_later) {
    const std::string event = handle.completes.empty() ? planned->second : handle.completes;
    (void)sema.diags.report<diag::FutureOfEvent>(span, handle.name, event)
        .label(handle.span, "the copy")
        .help("`wait {};` instead", event)
        .emit();
    handle.waited = span;
    return false;
  }
  if (!handle.rotates && handle.waited.valid() && comes_here(sema, handle.waited_in)) {
    (void)sema.diags.report<diag::FutureWaitedTwice>(span, handle.name)
        .label(handle.waited, "waited for here")
        .help("remove one of them")
        .emit();
    return false;
  }
  return true;
}

void wait_for_handle(Sema& sema, std::size_t number, Span span) {
  if (!check_wait(sema, sema.handles[number], span)) return;
  Handle& handle = sema.handles[number];
  handle.waited = span;
  handle.waited_in = sema.regions.back();
  if (handle.rotates) sema.rotations[handle.rotation].waited = true;
  const Handle::Kind kind = handle.kind;
  if (kind == Handle::Kind::kDone) return;
  if (kind == Handle::Kind::kStore || (handle.rotates && sema.rotations[handle.rotation].stores)) {
    emit(sema, ir::BulkWait{}, span);
    return;
  }
  const bool is_bulk =
      handle.rotates ? sema.rotations[handle.rotation].event.valid() : kind == Handle::Kind::kLoad;
  if (!is_bulk && !handle.future.valid()) return report_early(sema, handle, span);
  if (!is_bulk) {
    emit(sema, ir::FutureWait{handle.future}, span);
    return;
  }
  const Handle copy = handle;
  const ir::ValueId event = copy.rotates ? sema.rotations[copy.rotation].event : copy.event;
  const ir::Expr slot = copy.rotates ? rotating_slot(sema, copy, span) : ir::Expr(0);
  emit(sema, ir::EventWait{.event = event, .slot = slot}, span);
}

}  // namespace

void analyse(Sema& sema, const ast::WaitStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!check_in_kernel(sema, span, "`wait`")) return;
  for (const ast::ExprId ref : stmt.refs) {
    const auto* named = sema.ast.as<ast::NameExpr>(ref);
    const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
    const bool reported =
        symbol != nullptr && symbol->kind == Symbol::Kind::kOperand && symbol->operand.is_error();
    if (reported) continue;
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kMmaFuture) {
      if (!check_collective(sema, span, "`wait`", ir::Level::kGroup)) continue;
      emit(sema, ir::MmaWait{0, true}, span);
    } else if (symbol != nullptr && symbol->kind == Symbol::Kind::kHandle) {
      wait_for_handle(sema, symbol->handle, span);
    } else {
      wait_for_event(sema, ref, span);
    }
  }
}

void wait_before(Sema& sema, const ast::Name& name, Span span) {
  const Symbol* symbol = handle_symbol(sema, name.text);
  if (symbol == nullptr) return report_no_handle(sema, name, "after");
  const Handle& handle = sema.handles[symbol->handle];
  // Waiting once more for the same copy changes nothing, except where it is counted.
  const bool done = handle.waited.valid() && !handle.rotates;
  if (!done && is_asynchronous(handle.kind)) wait_for_handle(sema, symbol->handle, span);
}

namespace {

std::string tie_problem(const Handle& handle) {
  if (handle.kind == Handle::Kind::kSynchronous) return "its copy is not `.async`";
  if (handle.kind == Handle::Kind::kStore) return "it is a store";
  if (handle.kind == Handle::Kind::kDone) return "its copy goes to local memory";
  if (handle.kind == Handle::Kind::kPlaceholder) return "it names no copy yet";
  if (handle.waited.valid()) return "it has been waited for";
  return "";
}

// Whether the expression can be evaluated where the operation stands.
bool visible_at(const Sema& sema, const ir::Expr& expr, ir::OpId op) {
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  for (std::size_t i = op.index + 1; i < sema.function.ops.size(); ++i) {
    const auto& data = sema.function.ops[ir::OpId{static_cast<std::uint32_t>(i)}].data;
    const auto* bind = std::get_if<ir::Bind>(&data);
    const auto* loop = std::get_if<ir::For>(&data);
    const auto binds = [&](ir::VarId var) {
      return (bind != nullptr && bind->var == var) || (loop != nullptr && loop->var == var);
    };
    if (std::any_of(vars.begin(), vars.end(), binds)) return false;
  }
  return true;
}

// Moves the operation to the end of the region that is being filled.
bool move_here(Sema& sema, ir::OpId op, ir::RegionId from) {
  if (from != sema.regions.back()) return false;
  auto& ops = sema.function.regions[from].ops;
  ops.erase(std::find(ops.begin(), ops.end(), op));
  ops.push_back(op);
  return true;
}

void tie_handle(Sema& sema, Handle& handle, const ast::Name& name, const EventRef& ref) {
  for (std::size_t i = 0; i < handle.copies.size(); ++i) {
    auto& copy = std::get<ir::Copy>(sema.function.ops[handle.copies[i]].data);
    if (copy.event.valid()) continue;
    copy.event = ref.event;
    copy.slot = ref.slot;
    if (visible_at(sema, ref.slot, handle.copies[i])) continue;
    if (move_here(sema, handle.copies[i], handle.regions[i])) continue;
    refuse(sema, name.span,
           "a copy that completes an event whose slot is computed behind it, elsewhere,");
  }
}

}  // namespace

void tie_handles(Sema& sema, const std::vector<ast::Name>& names, const EventRef& ref) {
  for (const ast::Name& name : names) {
    Handle* handle = find_handle(sema, name.text);
    if (handle == nullptr) {
      report_no_handle(sema, name, "trigger ... after");
      continue;
    }
    if (const std::string why = tie_problem(*handle); !why.empty()) {
      (void)sema.diags.report<diag::EventAfter>(name.span, name.text, why)
          .label(handle->span, "the copy")
          .help("name an asynchronous copy to shared memory that nothing has waited for")
          .emit();
      handle->waited = name.span;
      continue;
    }
    handle->completes = sema.events.at(ref.event).name;
    tie_handle(sema, *handle, name, ref);
  }
}

void forgive_handles(Sema& sema, const std::vector<ast::Name>& names) {
  for (const ast::Name& name : names) {
    Handle* handle = find_handle(sema, name.text);
    if (handle != nullptr) handle->waited = name.span;
  }
}

namespace {

bool check_rotated(Sema& sema, const ast::RotateStmt& stmt) {
  const std::string_view word = stmt.is_swap ? "swap" : "rotate";
  for (const ast::Name& name : stmt.names) {
    Handle* handle = find_handle(sema, name.text);
    if (handle == nullptr) {
      report_no_handle(sema, name, word);
      return false;
    }
    handle->used = true;
    if (!handle->rotates) return false;  // refused at its copy
  }
  const Handle& first = *find_handle(sema, stmt.names[0].text);
  for (const ast::Name& name : stmt.names) {
    const Handle& other = *find_handle(sema, name.text);
    const bool same_scope = other.rotation == first.rotation &&
                            sema.scopes.depth_of(other.name) == sema.scopes.depth_of(first.name);
    if (!same_scope) {
      (void)sema.diags.report<diag::RotationScope>(name.span, other.name, first.name)
          .label(other.span, "`{}` begins here", other.name)
          .label(first.span, "`{}` begins here", first.name)
          .help("declare both in one block: `{} = dma.any;` beside `{}`", other.name, first.name)
          .emit();
      return false;
    }
    const bool known =
        first.kind != Handle::Kind::kPlaceholder && other.kind != Handle::Kind::kPlaceholder;
    if (!known || other.kind == first.kind) continue;
    (void)sema.diags
        .report<diag::RotationKinds>(name.span, first.name, other.name, kind_text(first.kind),
                                     kind_text(other.kind))
        .help("make both copies alike")
        .emit();
    return false;
  }
  return true;
}

// Left rotation of the numbers: each name takes the next one's.
void exchange_cells(Sema& sema, const std::vector<std::size_t>& handles, Span span) {
  std::vector<ir::ValueId> numbers;
  for (const std::size_t handle : handles) {
    numbers.push_back(
        emit_value(sema, ir::Get{sema.handles[handle].cell}, span, ir::ScalarType{DType::kS32}));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    emit(sema, ir::Set{sema.handles[handles[i]].cell, numbers[(i + 1) % handles.size()]}, span);
  }
}

}  // namespace

void analyse(Sema& sema, const ast::RotateStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!check_in_kernel(sema, span, stmt.is_swap ? "`swap`" : "`rotate`")) return;
  if (stmt.names.size() < 2 || !check_rotated(sema, stmt)) return;
  std::vector<std::size_t> handles;
  for (const ast::Name& name : stmt.names) {
    handles.push_back(handle_symbol(sema, name.text)->handle);
  }
  exchange_cells(sema, handles, span);
  for (std::size_t i = 0; i + 1 < handles.size(); ++i) {
    const ir::ValueId first = sema.handles[handles[i]].future;
    const ir::ValueId second = sema.handles[handles[i + 1]].future;
    if (first.valid() && second.valid()) emit(sema, ir::Exchange{first, second}, span);
  }
}

void check_handles(const Sema& sema) {
  for (const Handle& handle : sema.handles) {
    const bool typed = handle.rotates && sema.rotations[handle.rotation].typed;
    if (handle.kind == Handle::Kind::kPlaceholder && (!handle.used || !typed)) {
      (void)sema.diags.report<diag::PlaceholderUnused>(handle.span, handle.name)
          .help("give it a copy, `swap` it with one, or remove it")
          .emit();
    }
    const bool elsewhere = handle.rotates && sema.rotations[handle.rotation].waited;
    const bool done = handle.waited.valid() || !handle.completes.empty() || elsewhere;
    if (!is_asynchronous(handle.kind) || done) continue;
    (void)sema.diags.report<diag::FutureNeverWaited>(handle.span, handle.name)
        .help("`wait {};` in front of the first use of its data", handle.name)
        .emit();
  }
}

}  // namespace kiln::sema
