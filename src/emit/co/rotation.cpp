// Names of copies that change places. The IR has one array for their buffers, a cell for each name with the
// number of its buffer, and a future; the language has the name alone:
//
//   %at = get cell=%now_at; bind var=n value=%at
//   %7 = subview base=%bufs origin=[n, 0, 0] drop=1            =>   now = dma.copy.async x => shared;
//   copy src=%x dst=%7 async future=%now
#include "emit/co/say.h"

namespace kiln::emit_co {

namespace {

// The cell whose value the variable is bound to, of copies' destinations.
ir::ValueId cell_behind(const Co& co, ir::VarId var) {
  for (const ir::Op& op : co.function.ops) {
    const auto* bind = std::get_if<ir::Bind>(&op.data);
    if (bind == nullptr || bind->var != var) continue;
    const auto* get = co.function.def_as<ir::Get>(bind->value);
    return get == nullptr ? ir::ValueId{} : get->cell;
  }
  return {};
}

void note_destination(Co& co, const ir::Copy& copy) {
  const auto* stage = co.function.def_as<ir::Subview>(copy.dst);
  if (stage == nullptr || stage->drop != 1 || !stage->origin[0].as_var()) return;
  const ir::ValueId cell = cell_behind(co, *stage->origin[0].as_var());
  if (!cell.valid()) return;
  co.stage_cells.emplace(cell, copy.future);
  co.stage_arrays.insert(stage->base);
}

bool exchanges(const Co& co) {
  bool found = false;
  ir::walk(co.function, co.function.body, [&](ir::OpId id) {
    found = found || co.function.ops[id].kind() == ir::OpKind::kExchange;
  });
  return found;
}

}  // namespace

void find_rotations(Co& co) {
  if (!exchanges(co)) return;
  ir::walk(co.function, co.function.body, [&](ir::OpId id) {
    const auto* copy = std::get_if<ir::Copy>(&co.function.ops[id].data);
    if (copy != nullptr && copy->future.valid()) note_destination(co, *copy);
  });
  for (const ir::Op& op : co.function.ops) {
    const auto* bind = std::get_if<ir::Bind>(&op.data);
    const auto* get = bind == nullptr ? nullptr : co.function.def_as<ir::Get>(bind->value);
    const auto cell = get == nullptr ? co.stage_cells.end() : co.stage_cells.find(get->cell);
    if (cell != co.stage_cells.end()) co.stages[bind->var] = cell->second;
  }
}

}  // namespace kiln::emit_co
