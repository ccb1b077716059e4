// Events and what refers to them. Internal to this folder.
#pragma once

#include <optional>

#include "sema/operand.h"
#include "sema/state.h"

namespace kiln::sema {

// `e`, `e[s]` or `e.at(n)`: `count` slots of an event from `slot` on.
struct EventRef {
  ir::ValueId event;
  ir::Expr slot = 0;
  std::int64_t count = 1;
  std::optional<ir::Expr> generation;  // of `.at(n)`
  Span span;
};

// Whether the expression names an event, without evaluating it.
[[nodiscard]] bool names_event(const Sema& sema, ast::ExprId id);
// The event that the symbol stands for in the launch around.
[[nodiscard]] ir::ValueId event_value(Sema& sema, const Symbol& symbol);
// The event, or row of events, that the expression names. Nothing after a report; `what` is the
// statement that takes it, for messages.
[[nodiscard]] std::optional<EventRef> event_ref(Sema& sema, ast::ExprId id, std::string_view what);
// The one slot of an event that the expression names; a whole row is refused.
[[nodiscard]] std::optional<EventRef> slot_ref(Sema& sema, ast::ExprId id, std::string_view what);

// The same for what bulk copies complete, an event of the block.
[[nodiscard]] std::optional<EventRef> box_event(Sema& sema, ast::ExprId id, std::string_view what);

// A row of events of the compiler's own, for bulk copies that the program waits for by name.
[[nodiscard]] ir::ValueId hidden_event(Sema& sema, std::int64_t slots, Span span);

// `__bar_sync(1, 256);`, `__bar_arrive(1, 256);`
void meet_by_number(Sema& sema, const ast::CallExpr& call, Span span);

void wait_for_event(Sema& sema, ast::ExprId id, Span span);
// Reports events that are waited for or triggered, but not both.
void check_events(const Sema& sema);

}  // namespace kiln::sema
