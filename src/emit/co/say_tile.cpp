// Register tiles: products, and what is computed with tiles as values.
#include <algorithm>

#include "emit/co/say.h"
#include "ir/reflect.h"

namespace kiln::emit_co {

namespace {

ir::ValueId tile_behind(const Co& co, ir::ValueId operand) {
  const auto found = co.stands_for.find(operand);
  return found == co.stands_for.end() ? operand : found->second;
}

std::string_view suffix(ir::Major major) { return major == ir::Major::kRow ? "row" : "col"; }

// The swizzle that the program asked for, where no copy says it.
std::string swizzle(const Co& co, ir::ValueId view) {
  const ir::ValueId root = ir::root_of(co.function, view);
  const auto* alloc = co.function.def_as<ir::Alloc>(root);
  if (alloc == nullptr || alloc->swizzle_wanted < 0) return "";
  return format(".swiz<{}>", alloc->swizzle_wanted);
}

}  // namespace

namespace {

// Accumulators that products add to: `mma.fill` finds their extents in those.
bool is_filled_by_name(const Co& co, ir::ValueId tile) {
  if (co.function.frag_type(tile).role != ir::Role::kC) return false;
  return std::ranges::any_of(co.users[tile.index], [&](ir::OpId user) {
    const auto* mma = std::get_if<ir::Mma>(&co.function.ops[user].data);
    const auto* scale = std::get_if<ir::Scale>(&co.function.ops[user].data);
    return (mma != nullptr && mma->c == tile) || (scale != nullptr && scale->c == tile);
  });
}

}  // namespace

void say(Co& co, const ir::Op& op, const ir::Fill& data) {
  const ir::FragType& type = co.function.frag_type(data.frag);
  const auto& users = co.users[data.frag.index];
  const bool is_first = &co.function.ops[users[0]] == &op;
  const std::string value = scalar_text(co, data.value);
  if (is_first && declares(co, op, data.frag)) {
    return line(
        co, format("{} = mma.fill.{} {};", name_of(co, data.frag), type_name(type.dtype), value));
  }
  line(co, format("mma.fill {}, {};", name_of(co, data.frag), value));
}

namespace {

// A view that stands as operand itself: the tile has the buffer's name.
bool is_view_operand(const Co& co, const ir::Load& data) {
  const auto* tile = co.function.def_as<ir::Alloc>(data.frag);
  const ir::ValueId root = ir::root_of(co.function, data.view);
  const auto* buffer = co.function.def_as<ir::Alloc>(root);
  const auto& users = co.users[data.frag.index];
  if (tile == nullptr || buffer == nullptr || users.size() != 2 || data.to_registers) return false;
  const auto* mma = std::get_if<ir::Mma>(&co.function.ops[users[1]].data);
  return mma != nullptr && mma->unit == ir::Level::kGroup4 && tile->name == buffer->name &&
         co.sites[users[0].index].region == co.sites[users[1].index].region;
}

std::string operand(Co& co, ir::ValueId frag) {
  for (const ir::OpId user : co.users[frag.index]) {
    const auto* load = std::get_if<ir::Load>(&co.function.ops[user].data);
    if (load != nullptr && load->frag == frag && is_view_operand(co, *load))
      return view(co, load->view);
  }
  return name_of(co, tile_behind(co, frag));
}

}  // namespace

void say(Co& co, const ir::Op&, const ir::Load& data) {
  if (is_view_operand(co, data)) return;
  const ir::FragType& type = co.function.frag_type(data.frag);
  if (type.role == ir::Role::kTile) {
    return line(co, format("{} = frag.load {};", name_of(co, data.frag), view(co, data.view)));
  }
  line(co, format("{} = mma.load{}{} {};", name_of(co, data.frag), data.to_registers ? ".frag" : "",
                  swizzle(co, data.view), view(co, data.view)));
}

void say(Co& co, const ir::Op&, const ir::Mma& data) {
  if (!data.order.empty()) {
    line(co, format("[[schedule(k_tiles({}))]]",
                    join(data.order, ", ", [](std::int64_t k) { return format("{}", k); })));
  }
  const std::string a = operand(co, data.a);
  const std::string b = operand(co, data.b);
  const std::string metadata =
      data.metadata.valid() ? ", " + name_of(co, data.metadata) : std::string();
  line(co, format("mma.{}.{}{} {}, {}, {}{};", suffix(data.a_major), suffix(data.b_major),
                  data.metadata.valid() ? ".sp" : "", name_of(co, data.c), a, b, metadata));
}

void say(Co& co, const ir::Op& op, const ir::Store& data) {
  const ir::FragType& type = co.function.frag_type(data.frag);
  const std::string& tile = name_of(co, data.frag);
  const std::string to = view(co, data.view);
  if (data.masked) {
    const auto* part = co.function.def_as<ir::Subview>(data.view);
    if (part == nullptr) return unsayable(co, op, "its mask is no window");
    const auto& shape = co.function.view_type(data.view).shape;
    return line(co, format("mma.store{}.mask {}, {}, {};", data.transposed ? ".transp" : "", tile,
                           view(co, part->base), list(co, shape)));
  }
  if (type.role == ir::Role::kTile) return line(co, format("frag.store {}, {};", tile, to));
  const std::int64_t columns = ir::stored_columns(co.function, data);
  const std::string part = columns == type.cols ? ""
                                                : format(".subspan(_, {}).at(_, {})", columns,
                                                         data.first_column / columns);
  line(co, format("mma.store{} {}{}, {};", data.transposed ? ".transp" : "", tile, part, to));
}

void say(Co& co, const ir::Op&, const ir::Scale& data) {
  line(co, format("mma.scale {}, {}, {}, {};", name_of(co, data.c), name_of(co, data.partial),
                  view(co, data.factors), scalar_text(co, data.factor)));
}

namespace {

// What an apply makes of one tile, as one expression; null when it does more than that.
const ir::SetElement* only_result(const Co& co, const ir::Apply& data) {
  const ir::SetElement* set = nullptr;
  for (const ir::OpId id : co.function.regions[data.body].ops) {
    const ir::Op& op = co.function.ops[id];
    if (const auto* now = std::get_if<ir::SetElement>(&op.data)) {
      if (set != nullptr || now->frag != data.frag) return nullptr;
      set = now;
      continue;
    }
    if (set != nullptr || !co.inlined[id.index]) return nullptr;
    const bool reads = std::holds_alternative<ir::Read>(op.data);
    if (reads) return nullptr;
  }
  return set;
}

// A tile whose elements are read in the body, with as many elements along the dimension as `frag`.
ir::ValueId tile_along(const Co& co, const ir::Apply& data, std::int64_t dimension) {
  const ir::FragType& whole = co.function.frag_type(data.frag);
  const auto extent = [&](const ir::FragType& t) { return dimension == 0 ? t.rows : t.cols; };
  for (const ir::OpId id : co.function.regions[data.body].ops) {
    const auto* element = std::get_if<ir::Element>(&co.function.ops[id].data);
    if (element == nullptr) continue;
    if (extent(co.function.frag_type(element->frag)) == extent(whole)) return element->frag;
  }
  return {};
}

bool uses(const Co& co, ir::RegionId region, ir::VarId var) {
  bool found = false;
  ir::walk(co.function, region, [&](ir::OpId id) {
    ir::for_each_expr(co.function.ops[id],
                      [&](const ir::Expr& e) { found = found || e.uses(var); });
  });
  return found;
}

// Whether the expression's tiles give the result all of its extents.
bool has_whole_extents(const Co& co, const ir::Apply& data) {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  for (const ir::OpId id : co.function.regions[data.body].ops) {
    const auto* element = std::get_if<ir::Element>(&co.function.ops[id].data);
    if (element == nullptr) continue;
    rows = std::max(rows, co.function.frag_type(element->frag).rows);
    cols = std::max(cols, co.function.frag_type(element->frag).cols);
  }
  const ir::FragType& whole = co.function.frag_type(data.frag);
  return rows == whole.rows && cols == whole.cols;
}

bool is_expression(const Co& co, const ir::Apply& data) {
  if (only_result(co, data) == nullptr || !has_whole_extents(co, data)) return false;
  const bool by_row = uses(co, data.body, data.row);
  const bool by_col = uses(co, data.body, data.col);
  return (!by_row || tile_along(co, data, 0).valid()) &&
         (!by_col || tile_along(co, data, 1).valid());
}

// `p = __exp2f(s - m);`, where all of the apply is one.
bool say_expression(Co& co, const ir::Apply& data) {
  if (!is_expression(co, data)) return false;
  const ir::SetElement* set = only_result(co, data);
  const auto index = [&](std::int64_t dimension) {
    const ir::ValueId tile = tile_along(co, data, dimension);
    return tile.valid() ? format("__index({}, {})", name_of(co, tile), dimension) : std::string();
  };
  co.indices[data.row] = index(0);
  co.indices[data.col] = index(1);
  co.whole_tiles = true;
  const std::string value = scalar_text(co, set->value);
  co.whole_tiles = false;
  co.indices.clear();
  line(co, format("{} = {};", name_of(co, data.frag), value));
  return true;
}

}  // namespace

void say(Co& co, const ir::Op&, const ir::Apply& data) {
  if (say_expression(co, data)) return;
  const ir::FragType& type = co.function.frag_type(data.frag);
  co.row = co.var_names[data.row.index];
  co.col = co.var_names[data.col.index];
  const std::string names =
      type.cols == 1 && !uses(co, data.body, data.col) ? co.row : format("{}, {}", co.row, co.col);
  say_block(co, format("apply {{{}}} in {}.span", names, name_of(co, data.frag)), data.body);
}

bool declares(const Co& co, const ir::Op& op, ir::ValueId tile) {
  const bool is_value = co.function.frag_type(tile).role == ir::Role::kTile;
  const auto gives = [&](const auto* data) { return data != nullptr && data->frag == tile; };
  if (const auto* apply = std::get_if<ir::Apply>(&op.data)) {
    const bool reads_itself =
        std::ranges::any_of(co.function.regions[apply->body].ops, [&](ir::OpId id) {
          const auto* element = std::get_if<ir::Element>(&co.function.ops[id].data);
          return element != nullptr && element->frag == tile;
        });
    return is_value && apply->frag == tile && !reads_itself && is_expression(co, *apply);
  }
  if (gives(std::get_if<ir::Fill>(&op.data))) return is_filled_by_name(co, tile);
  return gives(std::get_if<ir::Load>(&op.data)) || gives(std::get_if<ir::Convert>(&op.data)) ||
         gives(std::get_if<ir::Reduce>(&op.data)) || gives(std::get_if<ir::Scan>(&op.data)) ||
         gives(std::get_if<ir::Recast>(&op.data));
}

void say(Co& co, const ir::Op& op, const ir::SetElement& data) {
  const ir::Element element{data.frag};
  line(co, format("{} = {};", value_of(co, op, element).text, scalar_text(co, data.value)));
}

void say(Co& co, const ir::Op& op, const ir::Reduce& data) {
  const bool is_first = &co.function.ops[co.users[data.frag.index][0]] == &op;
  if (!is_first && data.dimension == 1 && data.kind == ir::ReduceKind::kMax) {
    return line(co,
                format("reduce_max({}, {}, 1);", name_of(co, data.frag), name_of(co, data.source)));
  }
  static constexpr std::string_view kWords[] = {"sum", "prod", "max", "min", "argmax"};
  const std::string_view word = kWords[static_cast<std::size_t>(data.kind)];
  (void)op;
  line(co, format("{} = __reduce_{}({}, {});", name_of(co, data.frag), word,
                  name_of(co, data.source), data.dimension));
}

void say(Co& co, const ir::Op&, const ir::Scan& data) {
  line(co, format("{} = __scan_sum({}, {});", name_of(co, data.frag), name_of(co, data.source),
                  data.dimension));
}

// An operand that a tile is brought into stands for the tile.
void say(Co& co, const ir::Op& op, const ir::Convert& data) {
  const ir::Role role = co.function.frag_type(data.frag).role;
  if (role == ir::Role::kTile || role == ir::Role::kC) {
    return unsayable(co, op, "it comes from a pass that decides which lane holds what");
  }
  co.stands_for[data.frag] = tile_behind(co, data.source);
}

void say(Co& co, const ir::Op&, const ir::Recast& data) {
  const DType to = co.function.frag_type(data.frag).dtype;
  line(co, format("{} = __bitcast<{}>({});", name_of(co, data.frag), type_name(to),
                  name_of(co, data.source)));
}

}  // namespace kiln::emit_co
