// Events: declarations, `trigger`, and `wait` for one.
//
//   shared event full[4], empty[4] = ready;   ->  %full = event : event<4>
//   wait full[s];                             ->  event_wait event=%full slot=s
//   wait empty.at(n);                         ->  event_wait slot=n mod 4 generation=n floordiv 4
//   trigger empty;                            ->  for slot in 4 { trigger event=%empty slot=slot }
//
// Arrays of several dimensions are one row of slots, the last dimension fastest.
//
// A `global` event stands in front of launches. Each launch that names it has an event of its own, which
// all blocks share. A `local` one is numbers of a thread: how often it triggered each slot, and how
// often it waited. Nobody else could complete what it waits for, so that a wait is an assertion:
//
//   local event e[4];                         ->  %e = alloc : view<s32, local, [2, 4]>
//   trigger e[s];                             ->  e[0, s] + 1
//   wait e[s];                                ->  assert e[0, s] > e[1, s];  e[1, s] + 1
#include "sema/event.h"

#include <algorithm>

#include "ir/prove.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/guard.h"
#include "sema/statement.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

constexpr std::int64_t kArrivalsMax = (1 << 20) - 1;  // PTX: mbarrier.init's count
constexpr std::int64_t kSlotsMax = 1024;

const Symbol* event_symbol(const Sema& sema, ast::ExprId id) {
  const auto* named = sema.ast.as<ast::NameExpr>(id);
  const Symbol* symbol = named == nullptr ? nullptr : sema.scopes.find(named->name);
  const bool is_event = symbol != nullptr && symbol->operand.kind == Operand::Kind::kEvent;
  return is_event ? symbol : nullptr;
}

// What an expression that should be an event is instead; reports it.
void report_no_event(Sema& sema, ast::ExprId id, std::string_view what) {
  const Span span = sema.ast[id].span;
  const auto* named = sema.ast.as<ast::NameExpr>(id);
  if (named != nullptr && sema.scopes.find(named->name) == nullptr) {
    (void)sema.diags.report<diag::UnknownName>(span, named->name)
        .help_if(did_you_mean(named->name, sema.scopes.names()))
        .emit();
    return;
  }
  const Operand operand = evaluate(sema, id);
  if (operand.is_error()) return;
  (void)sema.diags
      .report<diag::NotAnEvent>(span, sema.sources.text(span), describe(operand, sema.function),
                                what)
      .help("declare one in the block: `shared event name;`")
      .emit();
}

// Reports a subscript that is outside for every value, or for the largest one.
bool check_slot(Sema& sema, const Element& index, Span span, std::size_t dimension,
                const EventInfo& info) {
  const std::int64_t extent = info.extents[dimension];
  const auto least = ir::minimum(sema.function, index.value);
  const auto largest = too_large_here(sema, index.value, extent);
  const auto constant = index.value.constant();
  const bool outside = (constant && *constant < 0) || (least && *least >= extent) || largest;
  if (!outside) return true;
  (void)sema.diags
      .report<diag::EventSlot>(
          span, text(sema, constant ? index.value : ir::Expr(largest.value_or(extent))), dimension,
          info.name, extent)
      .help("subscripts go from 0 to {}", extent - 1)
      .emit();
  return false;
}

std::optional<EventRef> subscripted(Sema& sema, const EventInfo& info, EventRef ref,
                                    const std::vector<ast::ExprId>& items) {
  const auto indices = evaluate_list(sema, items, "the subscript of an event");
  if (!indices) return std::nullopt;
  if (indices->size() > info.extents.size()) {
    (void)sema.diags
        .report<diag::EventSubscripts>(ref.span, info.name, info.extents.size(), indices->size())
        .help("`{}` is declared with {}", info.name,
              join(info.extents, "", [](std::int64_t extent) { return format("[{}]", extent); }))
        .emit();
    return std::nullopt;
  }
  ref.count = 1;
  for (std::size_t d = 0; d < info.extents.size(); ++d) {
    ref.slot = ref.slot * info.extents[d];
    if (d >= indices->size()) {
      ref.count *= info.extents[d];
      continue;
    }
    const IndexItem& item = (*indices)[d];
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return std::nullopt;
    }
    if (!check_slot(sema, *item.element, item.span, d, info)) return std::nullopt;
    ref.slot = ref.slot + item.element->value;
  }
  return ref;
}

bool steps(const ast::UnaryExpr& unary) {
  return unary.op == ast::UnaryOp::kPreIncrement || unary.op == ast::UnaryOp::kPostIncrement ||
         unary.op == ast::UnaryOp::kPreDecrement || unary.op == ast::UnaryOp::kPostDecrement;
}

// A `n++` below the top of the argument; invalid when there is none.
ast::ExprId inner_step(const ast::Ast& ast, ast::ExprId id) {
  const auto* binary = ast.as<ast::BinaryExpr>(id);
  if (binary == nullptr) return {};
  for (const ast::ExprId side : {binary->left, binary->right}) {
    const auto* unary = ast.as<ast::UnaryExpr>(side);
    if (unary != nullptr && steps(*unary)) return side;
    if (const ast::ExprId deeper = inner_step(ast, side); deeper.valid()) return deeper;
  }
  return {};
}

std::optional<EventRef> counted(Sema& sema, const EventInfo& info, EventRef ref,
                                const ast::AtExpr& at) {
  if (!check_own_block(sema, at)) return std::nullopt;
  if (info.extents.size() != 1) {
    (void)sema.diags.report<diag::EventAt>(at.at_span, info.name, info.extents.size())
        .help("{}", info.extents.empty() ? format("write `{}` alone", info.name)
                                         : format("pick one with `{}[i][j]`", info.name))
        .emit();
    return std::nullopt;
  }
  if (at.indices.size() != 1) {
    (void)sema.diags.report<diag::EventAtCount>(at.at_span, at.indices.size())
        .help("count over all slots: `{}.at(n)`", info.name)
        .emit();
    return std::nullopt;
  }
  if (const ast::ExprId step = inner_step(sema.ast, at.indices[0]); step.valid()) {
    const Span span = sema.ast[step].span;
    (void)sema.diags.report<diag::EventAtStep>(span, sema.sources.text(span))
        .help("step in a statement of its own")
        .emit();
    return std::nullopt;
  }
  const auto number = evaluate_index(sema, at.indices[0], "the argument of `.at`");
  if (!number) return std::nullopt;
  ref.slot = ir::mod(number->value, info.extents[0]);
  ref.generation = ir::floor_div(number->value, info.extents[0]);
  ref.count = 1;
  return ref;
}

// Runs `act` for each slot that the reference names.
template <class Act>
void for_each_slot(Sema& sema, const EventRef& ref, Span span, Act&& act) {
  if (ref.count == 1) {
    act(ref.slot);
    return;
  }
  const ir::VarId var = add_var(sema, "slot", ir::VarKind::kLoop, ref.count, span);
  const ir::OpId loop = emit(sema, ir::For{var, 0, ref.count, 1, 0, 0, false, {}}, span);
  const ir::RegionId body = in_region(sema, [&] { act(ref.slot + ir::Expr::var(var)); });
  std::get<ir::For>(sema.function.ops[loop].data).body = body;
}

// One row for the block however often the statement runs: it stands in front of everything.
ir::ValueId in_front(Sema& sema, ir::Event data, std::int64_t slots, Span span,
                     const std::string& name) {
  const ir::ValueId event = emit_value(sema, std::move(data), span, ir::EventType{slots}, name);
  auto& here = sema.function.regions[sema.regions.back()].ops;
  const ir::OpId op = here.back();
  here.pop_back();
  auto& launch = sema.function.regions[sema.launch_body].ops;
  launch.insert(launch.begin(), op);
  return event;
}

void note_first(Span& first, Span here) {
  if (!first.valid()) first = here;
}

bool check_event_placement(Sema& sema, const ast::EventDeclStmt& stmt, Span span) {
  const Span where = stmt.storage_span.valid() ? stmt.storage_span : span;
  const bool global = stmt.storage == ast::Storage::kGlobal;
  std::string_view place;
  if (!global && !sema.place.in_kernel) place = "outside `parallel`";
  if (global && sema.place.in_kernel) place = "inside `parallel`";
  if (sema.place.inthreads.valid()) place = "inside `inthreads`";
  if (place.empty()) return true;
  const std::string_view word =
      stmt.storage == ast::Storage::kNone ? "shared" : spelling(stmt.storage);
  (void)sema.diags.report<diag::EventPlacement>(where, word, place)
      .help("{}", global ? "declare it in front of the `parallel` whose blocks share it"
                         : format("declare it `{}` in the body of the block, in front of the "
                                  "`inthreads` regions",
                                  word))
      .emit();
  return false;
}

// The extents of one declared event; nothing after a report.
std::optional<std::vector<std::int64_t>> extents_of(Sema& sema, const ast::Declarator& item) {
  const auto extents =
      evaluate_extents(sema, item.extents, format("the extent of `{}`", item.name.text));
  if (!extents) return std::nullopt;
  std::vector<std::int64_t> out;
  std::int64_t slots = 1;
  for (const Element& extent : *extents) {
    const auto constant = extent.value.constant();
    if (!constant) {
      (void)sema.diags
          .report<diag::ExtentNotConstant>(item.span, format("`{}`", item.name.text),
                                           text(sema, extent.value))
          .help("an array of events needs constant extents")
          .emit();
      return std::nullopt;
    }
    out.push_back(*constant);
    slots = *constant > INT64_MAX / slots ? INT64_MAX : slots * *constant;
  }
  if (slots <= kSlotsMax) return out;
  (void)sema.diags.report<diag::EventCount>(item.span, item.name.text, slots, kSlotsMax)
      .help("a stage of a pipeline needs one or two: use at most {}", kSlotsMax)
      .emit();
  return std::nullopt;
}

// The numbers of a `local` event: of each slot how many generations are complete, and waited for.
ir::ValueId local_counts(Sema& sema, const std::string& name, std::int64_t slots, Span span) {
  const ir::ValueId zero = emit_value(sema, ir::Const{0}, span, ir::ScalarType{DType::kS32});
  return emit_value(sema, ir::Alloc{.name = name, .initial = zero}, span,
                    ir::ViewType{DType::kS32, ir::Space::kLocal, {2, slots}}, name);
}

void declare_event(Sema& sema, const ast::EventDeclStmt& stmt, const ast::EventDeclStmt::Item& item,
                   std::int64_t arrivals) {
  const ast::Name& name = item.declarator.name;
  const auto extents = extents_of(sema, item.declarator);
  if (!extents) {
    declare(sema, name, {});
    return;
  }
  std::int64_t slots = 1;
  for (const std::int64_t extent : *extents) slots *= extent;
  Operand operand;
  operand.kind = Operand::Kind::kEvent;
  operand.span = name.span;
  ir::Event event{.name = name.text, .ready = item.ready, .stated = arrivals};
  const EventInfo info{name.text, name.span, *extents, item.ready, stmt.storage, {}, {}, {}, false};
  if (stmt.storage == ast::Storage::kGlobal) {
    event.grid = true;
    sema.grid_events.push_back({event, info, slots, {}});
    declare(sema, name, {Symbol::Kind::kOperand, operand, {}, sema.grid_events.size() - 1});
    return;
  }
  operand.id = stmt.storage == ast::Storage::kLocal
                   ? local_counts(sema, name.text, slots, item.declarator.span)
                   : emit_value(sema, std::move(event), item.declarator.span, ir::EventType{slots},
                                name.text);
  sema.events[operand.id] = info;
  declare(sema, name, {Symbol::Kind::kOperand, operand, {}});
}

// The launch's own one of a `global` event. All its blocks are there at once, to meet.
ir::ValueId event_of_launch(Sema& sema, std::size_t number) {
  GridEvent& event = sema.grid_events[number];
  const auto [at, is_new] = event.by_launch.try_emplace(sema.place.launch);
  if (!is_new) return at->second;
  auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  launch.cooperative = true;
  if (!launch.cluster.empty()) {
    refuse(sema, sema.function.ops[sema.place.launch].span,
           "a `global` event that blocks of clusters meet at");
  }
  at->second = in_front(sema, event.op, event.slots, event.info.span, event.info.name);
  sema.events[at->second] = event.info;
  return at->second;
}

bool is_local(const Sema& sema, const EventRef& ref) {
  return sema.events.at(ref.event).storage == ast::Storage::kLocal;
}

// One of the numbers of a slot of a `local` event, and that number set to one more.
Operand local_count(Sema& sema, const EventRef& ref, int row, const ir::Expr& slot, Span span) {
  const ir::ValueId read =
      emit_value(sema, ir::Read{ref.event, {row, slot}}, span, ir::ScalarType{DType::kS32});
  return make_scalar(read, DType::kS32, span);
}

void count_up(Sema& sema, const EventRef& ref, int row, const ir::Expr& slot, Span span) {
  const Operand more = combine(sema, ast::BinaryOp::kAdd, span,
                               local_count(sema, ref, row, slot, span), make_int(1, span));
  if (const auto value = convert(sema, more, DType::kS32)) {
    emit(sema, ir::Write{ref.event, {row, slot}, *value}, span);
  }
}

void wait_for_own(Sema& sema, const EventRef& ref, const ir::Expr& slot, Span span) {
  const EventInfo& info = sema.events.at(ref.event);
  const Operand generation =
      ref.generation ? make_int(*ref.generation, span) : local_count(sema, ref, 1, slot, span);
  const Operand complete =
      combine(sema, ast::BinaryOp::kAdd, span, local_count(sema, ref, 0, slot, span),
              make_int(info.ready ? 1 : 0, span));
  const Operand over = combine(sema, ast::BinaryOp::kLess, span, generation, complete);
  if (const auto flag = convert_to_bool(sema, over)) {
    emit(sema,
         ir::Assert{*flag, format("the thread has triggered its event `{}`, for which nobody else "
                                  "can end the wait",
                                  info.name)},
         span);
  }
  if (!ref.generation) count_up(sema, ref, 1, slot, span);
}

// Reports that the statement needs an event that several threads know.
void report_own(Sema& sema, const EventRef& ref, std::string_view what) {
  EventInfo& info = sema.events.at(ref.event);
  info.broken = true;
  (void)sema.diags.report<diag::EventScope>(ref.span, info.name, spelling(info.storage), what)
      .label(info.span, "declared here")
      .help("declare it `shared` in the body of the block")
      .emit();
}

}  // namespace

ir::ValueId event_value(Sema& sema, const Symbol& symbol) {
  const ir::ValueId event = symbol.operand.id;
  return event.valid() ? event : event_of_launch(sema, symbol.handle);
}

bool names_event(const Sema& sema, ast::ExprId id) {
  std::vector<ast::ExprId> items;
  if (const auto* at = sema.ast.as<ast::AtExpr>(id)) id = at->base;
  return event_symbol(sema, without_subscripts(sema, id, items)) != nullptr;
}

std::optional<EventRef> event_ref(Sema& sema, ast::ExprId id, std::string_view what) {
  const auto* at = sema.ast.as<ast::AtExpr>(id);
  std::vector<ast::ExprId> items;
  const ast::ExprId base = without_subscripts(sema, at != nullptr ? at->base : id, items);
  const Symbol* symbol = event_symbol(sema, base);
  if (symbol == nullptr) {
    report_no_event(sema, base, what);
    return std::nullopt;
  }
  if (!symbol->operand.id.valid() && !check_in_kernel(sema, sema.ast[id].span, what)) {
    return std::nullopt;
  }
  EventRef ref{event_value(sema, *symbol), 0, 1, std::nullopt, sema.ast[id].span};
  EventInfo info = sema.events.at(ref.event);
  std::optional<EventRef> out;
  if (symbol->kind == Symbol::Kind::kSlot) {
    info.extents.clear();  // one slot of whatever the caller has
    ref.slot = symbol->operand.integer.value;
    if (!symbol->operand.elements.empty()) ref.generation = symbol->operand.elements[0].value;
  }
  if (symbol->kind == Symbol::Kind::kSlot && at == nullptr && items.empty()) {
    out = ref;
  } else if (at == nullptr) {
    out = subscripted(sema, info, ref, items);
  } else if (items.empty()) {
    out = counted(sema, info, ref, *at);
  } else {
    (void)sema.diags.report<diag::EventAt>(at->at_span, info.name, 0)
        .help("write `{}.at(n)` or `{}[s]`", info.name, info.name)
        .emit();
  }
  if (!out) sema.events.at(ref.event).broken = true;
  return out;
}

std::optional<EventRef> slot_ref(Sema& sema, ast::ExprId id, std::string_view what) {
  auto ref = event_ref(sema, id, what);
  if (!ref || ref->count == 1) return ref;
  EventInfo& info = sema.events.at(ref->event);
  info.broken = true;
  (void)sema.diags.report<diag::EventSubscripts>(ref->span, info.name, info.extents.size(), 0)
      .help("pick one: `{}[0]`", info.name)
      .emit();
  return std::nullopt;
}

ir::ValueId hidden_event(Sema& sema, std::int64_t slots, Span span) {
  return in_front(sema, ir::Event{}, slots, span, "landed");
}

std::optional<EventRef> box_event(Sema& sema, ast::ExprId id, std::string_view what) {
  const auto ref = slot_ref(sema, id, what);
  if (!ref || sema.events.at(ref->event).storage == ast::Storage::kShared ||
      sema.events.at(ref->event).storage == ast::Storage::kNone) {
    return ref;
  }
  report_own(sema, *ref, what);
  return std::nullopt;
}

void wait_for_event(Sema& sema, ast::ExprId id, Span span) {
  const auto ref = event_ref(sema, id, "`wait`");
  if (!ref) return;
  note_first(sema.events.at(ref->event).waited, span);
  for_each_slot(sema, *ref, span, [&](const ir::Expr& slot) {
    if (is_local(sema, *ref)) return wait_for_own(sema, *ref, slot, span);
    emit(sema,
         ir::EventWait{.event = ref->event,
                       .slot = slot,
                       .tracked = !ref->generation,
                       .generation = ref->generation.value_or(ir::Expr(0))},
         span);
  });
}

void analyse(Sema& sema, const ast::EventDeclStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  const bool placed = check_event_placement(sema, stmt, span);
  std::int64_t arrivals = 0;
  if (stmt.threads.valid()) {
    const auto stated = evaluate_constant(sema, stmt.threads, "the number of arrivals");
    arrivals = stated.value_or(0);
    const std::int64_t most = stmt.storage == ast::Storage::kLocal ? 1 : kArrivalsMax;
    if (stated && (*stated < 1 || *stated > most)) {
      const auto& first = stmt.items.front().declarator.name.text;
      (void)sema.diags
          .report<diag::EventArrivals>(sema.ast[stmt.threads].span, first, *stated, most)
          .help("leave `<...>` out: kiln counts the threads that trigger it")
          .emit();
      arrivals = 0;
    }
  }
  for (const ast::EventDeclStmt::Item& item : stmt.items) {
    if (placed) {
      declare_event(sema, stmt, item, arrivals);
    } else {
      declare(sema, item.declarator.name, {});
    }
  }
}

namespace {

void trigger(Sema& sema, const ast::TriggerStmt& stmt, const EventRef& ref, Span span) {
  note_first(sema.events.at(ref.event).triggered, span);
  const ast::Storage storage = sema.events.at(ref.event).storage;
  const bool own = storage == ast::Storage::kLocal;
  if (stmt.cluster && (own || storage == ast::Storage::kGlobal)) {
    return report_own(sema, ref, "`trigger.cluster`");
  }
  if (own || storage == ast::Storage::kGlobal) {
    for (const ast::Name& name : stmt.after) wait_before(sema, name, span);
  } else if (!stmt.after.empty()) {
    tie_handles(sema, stmt.after, ref);
  }
  for_each_slot(sema, ref, span, [&](const ir::Expr& slot) {
    if (own) return count_up(sema, ref, 0, slot, span);
    emit(sema, ir::Trigger{.event = ref.event, .slot = slot, .cluster = stmt.cluster}, span);
  });
}

}  // namespace

void analyse(Sema& sema, const ast::TriggerStmt& stmt, ast::StmtId id) {
  const Span span = sema.ast[id].span;
  if (!check_in_kernel(sema, span, "`trigger`")) return;
  if (stmt.cluster &&
      std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data).cluster.empty()) {
    (void)sema.diags.report<diag::ClusterMissing>(span, "`trigger.cluster`")
        .help("put a `parallel ... : cluster` around the block, or write `trigger`")
        .emit();
    return;
  }
  if (stmt.refs.size() > 1 && !stmt.after.empty()) {
    refuse(sema, span, "`trigger ... after` with several events");
    for (const ast::ExprId id : stmt.refs) (void)event_ref(sema, id, "`trigger`");
    return forgive_handles(sema, stmt.after);
  }
  for (const ast::ExprId id : stmt.refs) {
    const auto ref = stmt.after.empty() ? event_ref(sema, id, "`trigger`")
                                        : slot_ref(sema, id, "`trigger ... after`");
    if (!ref) {
      forgive_handles(sema, stmt.after);
      continue;
    }
    trigger(sema, stmt, *ref, span);
  }
}

void check_events(const Sema& sema) {
  for (const auto& [id, event] : sema.events) {
    if (event.broken) continue;
    const bool waited = event.waited.valid() && !event.ready;
    const Span open = waited ? event.waited : event.completed;
    if (open.valid() && !event.triggered.valid()) {
      (void)sema.diags
          .report<diag::EventNeverTriggered>(open, event.name,
                                             waited ? "waited for" : "what a copy completes")
          .label(event.span, "declared here")
          .help("`trigger {};` where what it stands for is done", event.name)
          .emit();
    } else if (event.triggered.valid() && !event.waited.valid()) {
      (void)sema.diags.report<diag::EventNeverWaited>(event.triggered, event.name)
          .label(event.span, "declared here")
          .help("`wait {};` in front of what depends on it", event.name)
          .emit();
    }
  }
}

}  // namespace kiln::sema
