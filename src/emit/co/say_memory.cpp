// Buffers, elements and copies.
#include "emit/co/say.h"

namespace kiln::emit_co {

namespace {

const ir::Alloc* buffer_of(const Co& co, ir::ValueId view) {
  return co.function.def_as<ir::Alloc>(ir::root_of(co.function, view));
}

// `.swiz<128>` where the program asked for it.
std::string swizzle(const Co& co, const ir::Copy& copy) {
  for (const ir::ValueId side : {copy.dst, copy.src}) {
    const ir::Alloc* alloc = buffer_of(co, side);
    if (alloc != nullptr && alloc->swizzle_wanted >= 0) {
      return format(".swiz<{}>", alloc->swizzle_wanted);
    }
  }
  return "";
}

std::string hints(const ir::Copy& copy) {
  std::string out;
  if (copy.multicast) out += ".multicast";
  if (copy.adds) out += ".add";
  if (copy.eviction == ir::Eviction::kFirst) out += ".evict_first";
  if (copy.eviction == ir::Eviction::kLast) out += ".evict_last";
  if (copy.promotion != 0) out += format(".promote<{}>", copy.promotion);
  return out;
}

std::string word(const ir::Copy& copy) {
  if (!copy.permutation.empty()) {
    return format(".transp<{}>",
                  join(copy.permutation, ", ", [](auto p) { return format("{}", p); }));
  }
  return copy.eviction == ir::Eviction::kNormal ? ".copy" : ".load";
}

// `full[k % 3]` of `.async<full[k % 3]>`.
std::string asynchrony(Co& co, const ir::Copy& copy) {
  if (!copy.async) return "";
  if (!copy.event.valid()) return ".async";
  return format(".async<{}>", event(co, copy.event, copy.slot));
}

std::string buffer_type(Co& co, const ir::ViewType& type) {
  return format("{} [{}]", type_name(type.dtype), list(co, type.shape));
}

void say_buffer(Co& co, const ir::Op& op, const ir::Alloc& data, const ir::ViewType& type) {
  const std::string space = type.space == ir::Space::kGlobal   ? ""
                            : type.space == ir::Space::kShared ? "shared "
                                                               : "local ";
  ir::ViewType element = type;
  std::string extents;
  if (co.arrays.contains(op.result)) {
    const auto rank = static_cast<std::ptrdiff_t>(co.arrays[op.result]);
    for (std::ptrdiff_t d = 0; d < rank; ++d) {
      extents += format("[{}]", spell_text(co, type.shape[static_cast<std::size_t>(d)]));
    }
    element.shape.erase(element.shape.begin(), element.shape.begin() + rank);
  }
  const std::string initial =
      data.initial.valid() ? format(" {{{}}}", scalar_text(co, data.initial)) : "";
  line(co, format("{}{} {}{}{};", space, buffer_type(co, element), name_of(co, op.result), extents,
                  initial));
}

void say_cell(Co& co, const ir::Op& op, const ir::Alloc& data, DType dtype) {
  const bool is_constant = dtype == DType::kBool || dtype == DType::kS32;
  const std::string type = dtype == DType::kS32 ? "int" : type_name(dtype);
  const std::string initial =
      data.initial.valid() ? format(" = {}", scalar_text(co, data.initial)) : "";
  line(co,
       format("{}{} {}{};", is_constant ? "mutable " : "", type, name_of(co, op.result), initial));
}

void say_tile(Co& co, const ir::Op& op, const ir::FragType& type) {
  const bool operand = type.role != ir::Role::kTile && type.role != ir::Role::kC;
  const auto& users = co.users[op.result.index];
  const bool declared =
      !users.empty() &&
      co.sites[users[0].index].region == co.sites[co.function.values[op.result].def.index].region &&
      declares(co, co.function.ops[users[0]], op.result);
  if (operand || declared) return;
  line(co, format("frag {} [{}, {}] {};", type_name(type.dtype), type.rows, type.cols,
                  name_of(co, op.result)));
}

}  // namespace

void say(Co& co, const ir::Op& op, const ir::Alloc& data) {
  const ir::Type& type = co.function.type(op.result);
  if (co.stage_arrays.contains(op.result) || co.stage_cells.contains(op.result)) return;
  if (const auto* buffer = std::get_if<ir::ViewType>(&type)) say_buffer(co, op, data, *buffer);
  if (const auto* cell = std::get_if<ir::CellType>(&type)) say_cell(co, op, data, cell->dtype);
  if (const auto* tile = std::get_if<ir::FragType>(&type)) say_tile(co, op, *tile);
}

// Views are said where they are used.
void say(Co&, const ir::Op&, const ir::Subview&) {}
void say(Co&, const ir::Op&, const ir::Alias&) {}

void say(Co& co, const ir::Op& op, const ir::Copy& data) {
  const std::string engine = data.bulk ? "tma" : "dma";
  std::string handle;
  if (data.future.valid()) {
    if (co.users[data.future.index].empty()) return unsayable(co, op, "its future has no use");
    handle = name_of(co, data.future) + " = ";
  } else if (data.async && !data.event.valid()) {
    co.stores.push_back(fresh_name(co, "stored"));
    handle = co.stores.back() + " = ";
  }
  const auto* stage = co.function.def_as<ir::Subview>(data.dst);
  const bool allocates = stage != nullptr && co.stage_arrays.contains(stage->base);
  line(co, format("{}{}{}{}{}{} {} => {};", handle, engine, word(data), asynchrony(co, data),
                  hints(data), swizzle(co, data), view(co, data.src),
                  allocates ? "shared" : view(co, data.dst)));
}

void say(Co& co, const ir::Op& op, const ir::CopyWait&) {
  unsayable(co, op, "it comes from a pass that decides how copies are waited for");
}

void say(Co& co, const ir::Op& op, const ir::Splat& data) {
  (void)data;
  unsayable(co, op, "the language has no statement that fills a view");
}

void say(Co& co, const ir::Op&, const ir::Write& data) {
  line(co, format("{} = {};", element(co, data.view, data.index), scalar_text(co, data.value)));
}

}  // namespace kiln::emit_co
