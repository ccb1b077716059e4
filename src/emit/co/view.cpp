// Views as expressions of the language: windows, whole buffers in other shapes, elements of arrays.
#include "emit/co/say.h"

namespace kiln::emit_co {

namespace {

bool is_ones(const std::vector<ir::Expr>& exprs, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!exprs[i].is(1)) return false;
  }
  return true;
}
bool is_zeros(const std::vector<ir::Expr>& exprs, std::size_t from = 0) {
  for (std::size_t i = from; i < exprs.size(); ++i) {
    if (!exprs[i].is(0)) return false;
  }
  return true;
}

// The number of the tile that begins at `origin`, where it is a whole one.
std::optional<ir::Expr> tile_index(const ir::Expr& origin, const ir::Expr& extent) {
  if (origin.is(0)) return ir::Expr(0);
  const auto size = extent.constant();
  if (!size || *size < 1) return std::nullopt;
  const ir::Expr index = floor_div(origin, extent);
  if (!(index * extent == origin)) return std::nullopt;
  return index;
}

std::string window(Co& co, const std::string& base, const std::vector<ir::Expr>& extents,
                   const std::vector<ir::Expr>& origin) {
  std::vector<ir::Expr> tiles;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (auto index = tile_index(origin[d], extents[d])) tiles.push_back(std::move(*index));
  }
  if (tiles.size() == extents.size()) {
    const std::string place = is_zeros(tiles) ? "" : format(".at({})", list(co, tiles));
    return format("{}.subspan({}){}", base, list(co, extents), place);
  }
  return format("{}.view({}).from({})", base, list(co, extents), list(co, origin));
}

std::string array_element(Co& co, const ir::Subview& subview, const std::vector<ir::Expr>& shape) {
  const auto stage =
      subview.origin[0].as_var() ? co.stages.find(*subview.origin[0].as_var()) : co.stages.end();
  if (stage != co.stages.end()) return name_of(co, stage->second);
  std::string text = name_of(co, subview.base);
  const auto drop = static_cast<std::size_t>(subview.drop);
  for (std::size_t d = 0; d < drop; ++d) text += format("[{}]", spell_text(co, subview.origin[d]));
  const auto& base = co.function.view_type(subview.base).shape;
  const bool whole = is_zeros(subview.origin, drop) &&
                     std::equal(shape.begin(), shape.end(), base.begin() + subview.drop);
  if (whole) return text;
  return window(co, text, shape, {subview.origin.begin() + subview.drop, subview.origin.end()});
}

// Whether the window begins where the buffer does and goes on behind its end: a copy of the buffer to a larger one.
bool overhangs(const std::vector<ir::Expr>& base, const std::vector<ir::Expr>& shape,
               const std::vector<ir::Expr>& origin) {
  if (!is_zeros(origin) || base.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto extent = shape[d].constant();
    const auto limit = base[d].constant();
    if (extent && limit && *extent > *limit) return true;
  }
  return false;
}

// Whether the text of the value ends with an operation that `.sqz` may follow.
bool says_its_shape(const Co& co, ir::ValueId value) {
  const auto* subview = co.function.def_as<ir::Subview>(value);
  if (subview == nullptr) return co.function.def_as<ir::Alias>(value) != nullptr;
  return subview->drop == 0 && !overhangs(co.function.view_type(subview->base).shape,
                                          co.function.view_type(value).shape, subview->origin);
}

// Drops the first dimensions, and not those of the rest that have one element too.
std::string squeeze_text(std::size_t drop, const std::vector<ir::Expr>& rest) {
  if (std::none_of(rest.begin(), rest.end(), [](const ir::Expr& e) { return e.is(1); })) {
    return ".sqz()";
  }
  std::string dimensions = "0";
  for (std::size_t d = 1; d < drop; ++d) dimensions += format(", {}", d);
  return format(".sqz({})", dimensions);
}

std::string subview_text(Co& co, const ir::Subview& subview, const std::vector<ir::Expr>& shape) {
  if (subview.drop == 0 &&
      overhangs(co.function.view_type(subview.base).shape, shape, subview.origin)) {
    return view(co, subview.base);
  }
  if (subview.drop == 0) return window(co, view(co, subview.base), shape, subview.origin);
  if (co.arrays.contains(subview.base)) return array_element(co, subview, shape);
  const auto drop = static_cast<std::size_t>(subview.drop);
  const auto& base = co.function.view_type(subview.base).shape;
  const bool squeezed = says_its_shape(co, subview.base) && is_zeros(subview.origin) &&
                        is_ones(base, drop) &&
                        std::equal(shape.begin(), shape.end(), base.begin() + subview.drop);
  if (squeezed) return view(co, subview.base) + squeeze_text(drop, shape);
  std::vector<ir::Expr> extents(drop, ir::Expr(1));
  extents.insert(extents.end(), shape.begin(), shape.end());
  return window(co, view(co, subview.base), extents, subview.origin) + squeeze_text(drop, shape);
}

std::string alias_text(Co& co, const ir::Alias& alias, const std::vector<ir::Expr>& shape) {
  const std::string base = view(co, alias.base);
  ir::Expr count = 1;
  for (const ir::Expr& extent : co.function.view_type(alias.base).shape) count = count * extent;
  ir::Expr elements = 1;
  for (const ir::Expr& extent : shape) elements = elements * extent;
  if (alias.strides.empty() && alias.offset.is(0) && elements == count) {
    return format("{}.span_as({})", base, list(co, shape));
  }
  std::vector<ir::Expr> strides = alias.strides;
  if (strides.empty()) {
    strides.assign(shape.size(), ir::Expr(1));
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  }
  // The buffer as one row, and a window of it that begins at the offset.
  std::vector<ir::Expr> origin(shape.size(), ir::Expr(0));
  origin.back() = alias.offset;
  std::vector<ir::Expr> flat(shape.size(), ir::Expr(1));
  flat.back() = count;
  return format("{}.span_as({}).view({} : {}).from({})", base, list(co, flat), list(co, shape),
                list(co, strides), list(co, origin));
}

}  // namespace

std::string view(Co& co, ir::ValueId value) {
  const ir::OpId def = co.function.values[value].def;
  if (!def.valid()) return name_of(co, value);
  const ir::Op& op = co.function.ops[def];
  const auto* type = std::get_if<ir::ViewType>(&co.function.type(value));
  if (const auto* subview = std::get_if<ir::Subview>(&op.data)) {
    return subview_text(co, *subview, type->shape);
  }
  if (const auto* alias = std::get_if<ir::Alias>(&op.data)) {
    return alias_text(co, *alias, type->shape);
  }
  return name_of(co, value);
}

std::string element(Co& co, ir::ValueId buffer, const std::vector<ir::Expr>& index,
                    const std::vector<ir::Expr>& block) {
  std::string text = view(co, buffer);
  // Right behind it `.at` would choose a tile.
  const std::size_t tile = text.rfind(".subspan(");
  if (tile != std::string::npos && text.find(").", tile) == std::string::npos) {
    text += format(".at({})", list(co, std::vector<ir::Expr>(index.size(), ir::Expr(0))));
  }
  if (!block.empty()) text += format(".block({})", list(co, block));
  return format("{}.at({})", text, list(co, index));
}

}  // namespace kiln::emit_co
