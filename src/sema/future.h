// Names of copies: futures, placeholders, and the buffers that names share. Internal to this
// folder.
#pragma once

#include <optional>

#include "sema/event.h"
#include "sema/state.h"

namespace kiln::sema {

// name_plan.cpp: which names of a function belong together.
[[nodiscard]] NamePlan plan_names(const ast::Ast& ast, Span function);

// The handle a name stands for; null when it is none.
[[nodiscard]] Handle* find_handle(Sema& sema, const std::string& name);

// The handle that a copy named `name` gives: a new one, or one that it gives a copy to again. The
// number is valid for good, the reference until the next handle.
[[nodiscard]] std::size_t open_handle(Sema& sema, const ast::Name& name);
// Declares the name for the copy's destination.
void declare_handle(Sema& sema, std::size_t handle, const ast::Name& name, ir::ValueId buffer);

// A copy that the program waits for, or ties to an event.
void add_copy(Sema& sema, std::size_t handle, Handle::Kind kind, ir::OpId copy);

// `trigger e after f, g`: their copies complete the event.
void tie_handles(Sema& sema, const std::vector<ast::Name>& names, const EventRef& ref);

// After a mistake with their event: nothing more is said about them.
void forgive_handles(Sema& sema, const std::vector<ast::Name>& names);

// `after f` of a copy: waits for `f`.
void wait_before(Sema& sema, const ast::Name& name, Span span);

void check_handles(const Sema& sema);

// rotation.cpp: the array behind names that change places or are selected.

// Gives the handle a place in the array of its group, if it has one.
void join_rotation(Sema& sema, std::size_t handle, Span span);
// The buffer of a declaration whose name a `select` lists: its place in their array. Nothing when
// it needs no such place.
[[nodiscard]] std::optional<ir::ValueId> selected_buffer(Sema& sema, const std::string& name,
                                                         const ir::ViewType& type, Span span);
// The handle's buffer as it stands here. Nothing after a report.
[[nodiscard]] std::optional<ir::ValueId> rotating_buffer(Sema& sema, const Handle& handle,
                                                         Span span);
// The number of that buffer.
[[nodiscard]] ir::Expr rotating_slot(Sema& sema, const Handle& handle, Span span);
// Says what the buffers are, each at a multiple of so many bytes, or reports that this one differs.
[[nodiscard]] bool type_rotation(Sema& sema, const Handle& handle, const ir::ViewType& type,
                                 std::int64_t alignment, Span span);
// The handle is the name of a declared buffer, or of a copy to global memory, from here on. False
// after a report.
[[nodiscard]] bool name_declared_buffer(Sema& sema, const Handle& handle, ir::ValueId buffer,
                                        Span span);
// The number of a declared buffer in the array that it shares with others.
[[nodiscard]] ir::Expr number_in_array(const Sema& sema, ir::ValueId buffer);
// A name as an operand: its buffer.
[[nodiscard]] Operand use_handle(Sema& sema, const Symbol& symbol, Span span);
[[nodiscard]] Operand evaluate_select(Sema& sema, const ast::SelectExpr& select, Span span);

}  // namespace kiln::sema
