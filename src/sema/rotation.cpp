// Buffers behind names that change places: one array for all of them, and a cell for each name that
// holds the number of its buffer.
//
//   cur, nxt after swap(cur, nxt)    ->  %bufs = alloc : view<f16, shared, [2, 64, 64]>
//                                        %cur = alloc : cell<s32>          (0 at first)
//   cur.data                         ->  bind n, get %cur;  subview %bufs at [n, 0, 0], drop 1
//   cur = dma.copy.async x => b;     ->  set %cur, the number of b among declared buffers
#include <algorithm>
#include <numeric>

#include "ir/depend.h"
#include "ir/prove.h"
#include "sema/expression.h"
#include "sema/future.h"
#include "sema/move.h"
#include "sema/view.h"
#include "target/copy.h"

namespace kiln::sema {

namespace {

// Rows are added until the next buffer begins at a multiple of so many bytes.
void align_rows(ir::ViewType& type, std::int64_t alignment) {
  std::int64_t row_bytes = size_bytes(type.dtype);
  for (std::size_t d = 1; d < type.shape.size(); ++d) {
    row_bytes *= type.shape[d].constant().value_or(0);
  }
  const std::int64_t rows = type.shape[0].constant().value_or(0);
  if (row_bytes == 0 || rows == 0) return;
  const std::int64_t step = alignment / std::gcd(row_bytes, alignment);
  type.shape[0] = (rows + step - 1) / step * step;
}

void set_type(Sema& sema, Rotation& rotation, const ir::ViewType& type, std::int64_t alignment) {
  ir::ViewType whole = type;
  if (type.space == ir::Space::kShared && !type.shape.empty()) align_rows(whole, alignment);
  whole.shape.insert(whole.shape.begin(), rotation.buffers);
  sema.function.values[rotation.array].type = whole;
  rotation.buffer = type;
  rotation.typed = true;
}

// The rotation of a declared buffer that shares an array with others.
std::optional<std::size_t> rotation_of_buffer(const Sema& sema, const std::string& name) {
  const Symbol* symbol = sema.scopes.find(name);
  if (symbol == nullptr || symbol->operand.kind != Operand::Kind::kView) return std::nullopt;
  const auto* window = sema.function.def_as<ir::Subview>(symbol->operand.id);
  for (std::size_t i = 0; window != nullptr && i < sema.rotations.size(); ++i) {
    if (sema.rotations[i].array == window->base) return i;
  }
  return std::nullopt;
}

// The rotation that a name of the same group, still in scope, has already begun.
std::optional<std::size_t> begun(Sema& sema, const std::vector<std::string>& group) {
  for (const std::string& name : group) {
    const Handle* other = find_handle(sema, name);
    if (other != nullptr && other->rotates) return other->rotation;
    if (const auto rotation = rotation_of_buffer(sema, name)) return rotation;
  }
  return std::nullopt;
}

std::size_t begin_rotation(Sema& sema, std::size_t group, Span span) {
  const auto count = static_cast<std::int64_t>(sema.plan.groups[group].size());
  const std::string& name = sema.plan.groups[group][0];
  const bool declared = sema.plan.declared[group];
  // The first copy says the type and the shape, or which buffers they are.
  const ir::ValueId array =
      declared ? ir::ValueId{}
               : emit_value(sema, ir::Alloc{.name = name}, span,
                            ir::ViewType{DType::kF32, ir::Space::kShared, {count, 1}}, name);
  sema.rotations.push_back({.names = static_cast<std::size_t>(count),
                            .buffers = count,
                            .exchanges = sema.plan.exchanges[group],
                            .declared = declared,
                            .array = array});
  return sema.rotations.size() - 1;
}

}  // namespace

void join_rotation(Sema& sema, std::size_t number, Span span) {
  Handle& handle = sema.handles[number];
  const auto planned = sema.plan.group.find(handle.name);
  if (planned == sema.plan.group.end()) return;
  const std::vector<std::string>& names = sema.plan.groups[planned->second];
  const auto earlier = begun(sema, names);
  handle.rotation = earlier ? *earlier : begin_rotation(sema, planned->second, span);
  handle.rotates = true;
  handle.position = std::find(names.begin(), names.end(), handle.name) - names.begin();
  const Rotation& rotation = sema.rotations[handle.rotation];
  if (!rotation.exchanges) return;
  const std::int64_t begins_at = rotation.declared ? 0 : handle.position;
  const ir::ValueId first = emit_value(sema, ir::Const{static_cast<double>(begins_at)}, span,
                                       ir::ScalarType{DType::kS32});
  const std::string wanted = format("{}_at", handle.name);
  handle.cell = emit_value(sema, ir::Alloc{.name = wanted, .initial = first}, span,
                           ir::CellType{DType::kS32}, wanted);
}

std::optional<ir::ValueId> selected_buffer(Sema& sema, const std::string& name,
                                           const ir::ViewType& type, Span span) {
  const auto planned = sema.plan.group.find(name);
  if (planned == sema.plan.group.end() || sema.plan.exchanges[planned->second]) return std::nullopt;
  const std::vector<std::string>& names = sema.plan.groups[planned->second];
  if (names.size() < 2) return std::nullopt;
  const auto earlier = begun(sema, names);
  const std::size_t number = earlier ? *earlier : begin_rotation(sema, planned->second, span);
  Rotation& rotation = sema.rotations[number];
  ir::ViewType whole = type;
  whole.shape.emplace_back(rotation.buffers);
  if (!rotation.typed && !check_size(sema, whole, span, format("`{}`", name))) return std::nullopt;
  const std::int64_t alignment = sema.plan.boxes.contains(name) ? target::kBoxAlignment : 1;
  if (!rotation.typed) set_type(sema, rotation, type, alignment);
  if (!(rotation.buffer == type)) return std::nullopt;
  ir::Subview subview{
      rotation.array, {std::find(names.begin(), names.end(), name) - names.begin()}, 1};
  subview.origin.resize(type.shape.size() + 1, ir::Expr(0));
  return emit_value(sema, std::move(subview), span, type);
}

ir::Expr rotating_slot(Sema& sema, const Handle& handle, Span span) {
  const Rotation& rotation = sema.rotations[handle.rotation];
  if (!rotation.exchanges) return handle.position;
  const std::int64_t count = rotation.buffers;
  const ir::ValueId number =
      emit_value(sema, ir::Get{handle.cell}, span, ir::ScalarType{DType::kS32});
  if (const auto earlier = ir::bound_before(sema.function, sema.regions.back(), number)) {
    return ir::Expr::var(*earlier);
  }
  const ir::VarId var = add_var(sema, handle.name, ir::VarKind::kBound, count, span);
  emit(sema, ir::Bind{var, number}, span);
  return ir::Expr::var(var);
}

std::optional<ir::ValueId> rotating_buffer(Sema& sema, const Handle& handle, Span span) {
  const Rotation rotation = sema.rotations[handle.rotation];
  const bool names_none = handle.kind == Handle::Kind::kPlaceholder && !handle.used;
  if (!rotation.typed || (rotation.stores && names_none)) {
    (void)sema.diags.report<diag::PlaceholderEarly>(span, handle.name)
        .label(handle.span, "a placeholder")
        .help("start a copy first: `{} = dma.copy.async source => shared;`", handle.name)
        .emit();
    return std::nullopt;
  }
  if (rotation.stores) {
    refuse(sema, span, "the data of a copy to global memory whose name changes places");
    return std::nullopt;
  }
  if (rotation.declared && rotation.buffers == 1) return rotation.array;
  ir::ViewType type = rotation.buffer;
  ir::Subview subview{rotation.array, {rotating_slot(sema, handle, span)}, 1};
  subview.origin.resize(type.shape.size() + 1, ir::Expr(0));
  return emit_value(sema, std::move(subview), span, std::move(type));
}

bool type_rotation(Sema& sema, const Handle& handle, const ir::ViewType& type,
                   std::int64_t alignment, Span span) {
  Rotation& rotation = sema.rotations[handle.rotation];
  if (!rotation.typed) {
    set_type(sema, rotation, type, alignment);
    return true;
  }
  const ir::ViewType& there = rotation.buffer;
  if (there == type) return true;
  const std::string other =
      std::get<ir::Alloc>(sema.function.ops[sema.function.values[rotation.array].def].data).name;
  (void)sema.diags
      .report<diag::RotationKinds>(span, handle.name, other, type_text(sema, type),
                                   type_text(sema, there))
      .help("names that change places need buffers of one shape, type and memory")
      .emit();
  return false;
}

namespace {

// A choice of a `select`: one buffer of an array.
struct Choice {
  ir::ValueId base;
  ir::Expr slot;
};

std::optional<Choice> choice_of(const Sema& sema, ir::ValueId view) {
  const auto* window = sema.function.def_as<ir::Subview>(view);
  if (window == nullptr || window->drop != 1) return std::nullopt;
  const bool whole = std::all_of(window->origin.begin() + 1, window->origin.end(),
                                 [](const ir::Expr& origin) { return origin.is(0); });
  if (!whole) return std::nullopt;
  return Choice{window->base, window->origin[0]};
}

bool refuse_apart(Sema& sema, Span span) {
  refuse(sema, span,
         "`swap` or `rotate` of copies to anything but buffers of one array, or buffers alike "
         "without a first value");
  return false;
}

}  // namespace

ir::Expr number_in_array(const Sema& sema, ir::ValueId buffer) {
  const auto choice = choice_of(sema, buffer);
  return choice ? choice->slot : ir::Expr(0);
}

bool name_declared_buffer(Sema& sema, const Handle& handle, ir::ValueId buffer, Span span) {
  Rotation& rotation = sema.rotations[handle.rotation];
  const ir::ViewType type = sema.function.view_type(buffer);
  if (type.space == ir::Space::kGlobal) {
    rotation.stores = rotation.typed = true;
    return true;
  }
  const auto choice = choice_of(sema, buffer);
  const bool whole = sema.function.def_as<ir::Alloc>(buffer) != nullptr;
  if (!choice && !whole) return refuse_apart(sema, span);
  const ir::ValueId array = choice ? choice->base : buffer;
  const bool differs =
      rotation.array.valid() && (rotation.array != array || !(rotation.buffer == type));
  if (differs || sema.function.def_as<ir::Alloc>(array) == nullptr) {
    return refuse_apart(sema, span);
  }
  rotation.array = array;
  rotation.buffer = type;
  rotation.typed = true;
  const auto extent = sema.function.view_type(array).shape[0].constant();
  rotation.buffers = choice ? extent.value_or(1) : 1;
  if (!choice || !handle.cell.valid()) return true;
  const ir::ValueId number =
      emit_value(sema, ir::Index{choice->slot}, span, ir::ScalarType{DType::kS32});
  emit(sema, ir::Set{handle.cell, number}, span);
  return true;
}

Operand use_handle(Sema& sema, const Symbol& symbol, Span span) {
  if (symbol.kind == Symbol::Kind::kMmaFuture) {
    (void)sema.diags.report<diag::ViewBase>(span, sema.sources.text(span), "the future of an `mma`")
        .help("`wait` takes it; the result is in the accumulator")
        .emit();
    return {};
  }
  Operand out = symbol.operand;
  out.span = span;
  if (out.is_error() || !sema.handles[symbol.handle].rotates) return out;
  const auto buffer = rotating_buffer(sema, sema.handles[symbol.handle], span);
  if (!buffer) return {};
  out.id = *buffer;
  return out;
}

namespace {

// The number of the buffer that choice number `index` has.
ir::Expr chosen_slot(Sema& sema, const ir::Expr& index, const std::vector<Choice>& choices,
                     Span span) {
  bool in_order = true;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    in_order = in_order && choices[i].slot.is(static_cast<std::int64_t>(i));
  }
  if (in_order) return index;
  const ir::ScalarType number{DType::kS32};
  ir::ValueId slot = emit_value(sema, ir::Index{choices.back().slot}, span, number);
  for (std::size_t i = choices.size() - 1; i-- > 0;) {
    const Operand is_it = combine(sema, ast::BinaryOp::kEqual, span, make_int(index, span),
                                  make_int(static_cast<std::int64_t>(i), span));
    const auto flag = convert_to_bool(sema, is_it);
    const ir::ValueId here = emit_value(sema, ir::Index{choices[i].slot}, span, number);
    if (flag) slot = emit_value(sema, ir::Choose{*flag, here, slot}, span, number);
  }
  const ir::Expr count = sema.function.view_type(choices[0].base).shape[0];
  const ir::VarId var = add_var(sema, "chosen", ir::VarKind::kBound, count, span);
  emit(sema, ir::Bind{var, slot}, span);
  return ir::Expr::var(var);
}

// Checks at run time what cannot be proved: the index numbers a choice.
void assert_in_range(Sema& sema, const ir::Expr& index, std::int64_t count, Span span) {
  const bool proved = ir::always_less_equal(sema.function, 0, index) &&
                      ir::always_less_equal(sema.function, index + 1, count);
  if (proved) return;
  const Operand number = make_int(index, span);
  const Operand low = combine(sema, ast::BinaryOp::kGreaterEqual, span, number, make_int(0, span));
  const Operand high = combine(sema, ast::BinaryOp::kLess, span, number, make_int(count, span));
  const Operand both = combine(sema, ast::BinaryOp::kAnd, span, low, high);
  if (const auto flag = convert_to_bool(sema, both)) {
    emit(sema, ir::Assert{*flag, format("the index of a `select` of {} is in range", count)}, span);
  }
}

// What it chooses from; nothing after a report.
std::optional<std::vector<Operand>> views_of_one_type(Sema& sema, const ast::SelectExpr& select) {
  std::vector<Operand> out;
  for (const ast::ExprId id : select.choices) {
    Operand view = evaluate_view(sema, id);
    if (view.is_error()) return std::nullopt;
    const ir::ViewType& type = sema.function.view_type(view.id);
    const ir::ViewType& first = out.empty() ? type : sema.function.view_type(out.front().id);
    if (!(type == first)) {
      const auto text_of = [&](const ir::ViewType& each) {
        return format("{} {}", space_name(each.space), type_text(sema, each));
      };
      (void)sema.diags.report<diag::SelectTypes>(view.span, text_of(type), text_of(first))
          .label(out.front().span, "and this is the other")
          .help("give all of them one type and one memory")
          .emit();
      return std::nullopt;
    }
    out.push_back(std::move(view));
  }
  return out;
}

// The index as a number: a bool is 0 or 1.
std::optional<Element> select_index(Sema& sema, ast::ExprId id) {
  Operand operand = evaluate(sema, id);
  if (operand.kind == Operand::Kind::kInt) operand.dtype = DType::kS32;
  if (operand.kind == Operand::Kind::kScalar && operand.dtype == DType::kBool) {
    const auto number = convert_explicitly(sema, operand, DType::kS32);
    if (!number) return std::nullopt;
    operand = make_scalar(*number, DType::kS32, operand.span);
  }
  return to_index(sema, operand, "the index of a `select`");
}

}  // namespace

Operand evaluate_select(Sema& sema, const ast::SelectExpr& select, Span span) {
  const auto index = select_index(sema, select.index);
  if (!index) return {};
  const auto count = static_cast<std::int64_t>(select.choices.size());
  const auto constant = index->value.constant();
  const auto least = ir::minimum(sema.function, index->value);
  if ((constant && *constant < 0) || (least && *least >= count)) {
    (void)sema.diags
        .report<diag::SelectIndex>(sema.ast[select.index].span, text(sema, index->value), count)
        .help("choices are counted from 0 to {}", count - 1)
        .emit();
    return {};
  }
  const auto views = views_of_one_type(sema, select);
  if (!views) return {};
  if (constant) return (*views)[static_cast<std::size_t>(*constant)];
  std::vector<Choice> choices;
  Operand out = views->front();
  for (const Operand& view : *views) {
    const auto choice = choice_of(sema, view.id);
    if (!choice || (!choices.empty() && choice->base != choices[0].base)) {
      refuse(sema, view.span,
             "a `select` between anything but buffers of one array or names of copies");
      return {};
    }
    choices.push_back(*choice);
  }
  assert_in_range(sema, index->value, count, span);
  ir::ViewType type = sema.function.view_type(out.id);
  ir::Subview subview{choices[0].base, {chosen_slot(sema, index->value, choices, span)}, 1};
  subview.origin.resize(type.shape.size() + 1, ir::Expr(0));
  out.id = emit_value(sema, std::move(subview), span, std::move(type));
  out.span = span;
  return out;
}

}  // namespace kiln::sema
