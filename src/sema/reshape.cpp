#include "sema/reshape.h"

#include "ir/prove.h"
#include "ir/strides.h"
#include "sema/entry_check.h"
#include "sema/view.h"

namespace kiln::sema {

namespace {

ir::Expr product(const std::vector<ir::Expr>& extents) {
  ir::Expr out = 1;
  for (const ir::Expr& extent : extents) out = out * extent;
  return out;
}

// Where a view's elements are in the memory behind it.
struct Spread {
  ir::ResolvedView at;
  ir::ValueId storage;
  std::vector<ir::Expr> root_shape;
  std::vector<ir::Expr> strides;  // by root dimension
  ir::ViewType type;              // of the view

  // The first element, counted in the memory.
  [[nodiscard]] ir::Expr first(const ir::Function& function) const {
    ir::Expr out = ir::root_offset(function, at.root);
    for (std::size_t d = 0; d < strides.size(); ++d) out = out + at.origin[d] * strides[d];
    return out;
  }
};

Spread spread_of(const ir::Function& function, ir::ValueId view) {
  Spread out;
  out.at = ir::resolve_view(function, view);
  out.storage = ir::storage_of(function, out.at.root);
  out.root_shape = function.view_type(out.at.root).shape;
  out.strides = ir::root_strides(function, out.at.root);
  out.type = function.view_type(view);
  return out;
}

// The dimension of the view behind which there is a gap; none when its elements lie in one piece.
std::optional<std::size_t> gap_of(const Spread& spread) {
  ir::Expr expected = 1;
  for (std::size_t d = spread.type.shape.size(); d-- > 0;) {
    if (spread.type.shape[d].is(1)) continue;
    if (!(spread.strides[spread.at.dropped + d] == expected)) return d;
    expected = expected * spread.type.shape[d];
  }
  return std::nullopt;
}

ir::ValueId emit_alias(Sema& sema, const Spread& spread, ir::Alias alias,
                       std::vector<ir::Expr> shape, Span span) {
  alias.base = spread.storage;
  ir::ViewType type{spread.type.dtype, spread.type.space, std::move(shape)};
  return emit_value(sema, std::move(alias), span, std::move(type));
}

bool check_known(Sema& sema, const std::vector<ir::Expr>& strides, Span span) {
  for (const ir::Expr& stride : strides) {
    if (ir::known_at_launch(sema.function, stride)) continue;
    refuse(sema, span,
           format("a distance of `{}` elements, which varies inside of the kernel,",
                  text(sema, stride)));
    return false;
  }
  return true;
}

bool check_count(Sema& sema, const ir::Expr& made, const ir::Expr& there, Span span) {
  if (made.overflowed()) {
    (void)sema.diags.report<diag::ExtentOverflow>(span, "the number of elements of `.span_as`")
        .help("a view has as many as what it is made of, {}", text(sema, there))
        .emit();
    return false;
  }
  if (made == there) return true;
  if (made.constant() && there.constant()) {
    (void)sema.diags.report<diag::SpanCount>(span, text(sema, made), text(sema, there))
        .help("the extents must multiply to {}", text(sema, there))
        .emit();
    return false;
  }
  if (ir::known_at_launch(sema.function, made) && ir::known_at_launch(sema.function, there)) {
    require(sema,
            {made, ir::Relation::kEqual, there, "`.span_as` keeps the number of elements", span});
    return true;
  }
  (void)sema.diags.report<diag::SpanUnproved>(span, text(sema, made), text(sema, there)).emit();
  return true;
}

std::vector<ir::Expr> without_ones(const std::vector<ir::Expr>& shape) {
  std::vector<ir::Expr> out;
  for (const ir::Expr& extent : shape) {
    if (!extent.is(1)) out.push_back(extent);
  }
  return out;
}

// A view that begins where a slab of the buffer's leading dimensions does, and is all of it: the
// number of these dimensions.
std::optional<std::size_t> whole_slab(const Spread& spread) {
  std::size_t leading = spread.at.dropped;
  while (leading < spread.root_shape.size() &&
         spread.type.shape[leading - spread.at.dropped].is(1) &&
         !spread.root_shape[leading].is(1)) {
    ++leading;
  }
  for (std::size_t d = leading; d < spread.root_shape.size(); ++d) {
    const bool whole = spread.type.shape[d - spread.at.dropped] == spread.root_shape[d];
    if (!whole || !spread.at.origin[d].is(0)) return std::nullopt;
  }
  return leading;
}

// A buffer in shared or local memory has constant extents, by whatever name.
bool check_extents_constant(Sema& sema, const Spread& spread, const std::vector<ir::Expr>& extents,
                            Span span) {
  if (spread.type.space == ir::Space::kGlobal) return true;
  for (const ir::Expr& extent : extents) {
    if (extent.constant()) continue;
    (void)sema.diags
        .report<diag::ExtentNotConstant>(span, "a shared or local buffer's `.span_as`",
                                         text(sema, extent))
        .help("the extents must multiply to {}", text(sema, product(spread.type.shape)))
        .emit();
    return false;
  }
  return true;
}

}  // namespace

std::optional<ir::ValueId> span_as(Sema& sema, ir::ValueId base,
                                   const std::vector<ir::Expr>& extents, Span span) {
  const Spread spread = spread_of(sema.function, base);
  if (const auto gap = gap_of(spread)) {
    if (without_ones(spread.type.shape) == extents) {
      return squeeze(sema, base, ones_of(spread.type.shape), span);
    }
    (void)sema.diags
        .report<diag::SpanStrided>(
            span,
            format("and along dimension {} of this view of `{}` they are {} apart", *gap,
                   view_name(sema, base), text(sema, spread.strides[spread.at.dropped + *gap])))
        .help("take whole rows: `_` for every dimension but the first")
        .emit();
    return std::nullopt;
  }
  if (!check_extents_constant(sema, spread, extents, span)) return std::nullopt;
  if (!check_count(sema, product(extents), product(spread.type.shape), span)) return std::nullopt;
  // Strides of the new shape's rows.
  std::vector<ir::Expr> inner(extents.begin() + (extents.empty() ? 0 : 1), extents.end());
  if (!check_known(sema, inner, span)) return std::nullopt;
  const auto* outer = sema.function.def_as<ir::Alias>(spread.at.root);
  const bool plain = outer == nullptr || (outer->strides.empty() && outer->offset.is(0));
  const auto slab = plain ? whole_slab(spread) : std::nullopt;
  if (slab) {
    const auto leading = static_cast<std::ptrdiff_t>(*slab);
    std::vector<ir::Expr> shape(spread.root_shape.begin(), spread.root_shape.begin() + leading);
    shape.insert(shape.end(), extents.begin(), extents.end());
    const ir::ValueId alias = emit_alias(sema, spread, {}, shape, span);
    if (*slab == 0) return alias;
    ir::Subview pick{alias, {}, static_cast<std::int64_t>(*slab)};
    pick.origin.assign(spread.at.origin.begin(), spread.at.origin.begin() + leading);
    pick.origin.resize(shape.size(), ir::Expr(0));
    return emit_value(sema, std::move(pick), span,
                      ir::ViewType{spread.type.dtype, spread.type.space, extents});
  }
  if (spread.type.space != ir::Space::kGlobal) {
    refuse(sema, span, "`.span_as` of a part of a shared or local buffer");
    return std::nullopt;
  }
  return emit_alias(sema, spread, {.base = {}, .offset = spread.first(sema.function)}, extents,
                    span);
}

namespace {

// Takes dimensions out of the middle: the buffer with these in front of the others, which have strides
// of their own, and a window of it that drops them.
std::optional<ir::ValueId> drop_inner(Sema& sema, ir::ValueId base, const std::vector<bool>& inner,
                                      Span span) {
  const Spread spread = spread_of(sema.function, base);
  const std::size_t rank = spread.root_shape.size();
  const auto is_dropped = [&](std::size_t d) {
    return d < spread.at.dropped || inner[d - spread.at.dropped];
  };
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < rank; ++d) {
    if (is_dropped(d)) order.push_back(d);
  }
  const std::size_t dropped = order.size();
  for (std::size_t d = 0; d < rank; ++d) {
    if (!is_dropped(d)) order.push_back(d);
  }
  if (spread.type.space != ir::Space::kGlobal) {
    refuse(sema, span, "`.sqz` of an inner dimension of a shared or local buffer");
    return std::nullopt;
  }
  ir::Alias alias{.base = {}, .offset = ir::root_offset(sema.function, spread.at.root)};
  std::vector<ir::Expr> whole;
  std::vector<ir::Expr> limits;  // nothing past those of the windows on the way
  std::vector<ir::Expr> origin;
  for (const std::size_t d : order) {
    alias.strides.push_back(spread.strides[d]);
    whole.push_back(spread.root_shape[d]);
    origin.push_back(spread.at.origin[d]);
    ir::Expr limit = spread.at.limits[d][0];
    for (const ir::Expr& other : spread.at.limits[d]) limit = ir::min(limit, other);
    limits.push_back(limit);
  }
  if (!check_known(sema, alias.strides, span)) return std::nullopt;
  ir::ValueId buffer = emit_alias(sema, spread, std::move(alias), whole, span);
  if (limits != whole) {
    buffer = emit_value(sema, ir::Subview{buffer, std::vector<ir::Expr>(rank, ir::Expr(0)), 0},
                        span, ir::ViewType{spread.type.dtype, spread.type.space, limits});
  }
  std::vector<ir::Expr> shape(dropped, ir::Expr(1));
  for (std::size_t i = dropped; i < rank; ++i) {
    shape.push_back(spread.type.shape[order[i] - spread.at.dropped]);
  }
  const std::vector<ir::Expr> kept(shape.begin() + static_cast<std::ptrdiff_t>(dropped),
                                   shape.end());
  const ir::ValueId tile =
      emit_value(sema, ir::Subview{buffer, std::move(origin), 0}, span,
                 ir::ViewType{spread.type.dtype, spread.type.space, std::move(shape)});
  return emit_value(sema,
                    ir::Subview{tile, std::vector<ir::Expr>(rank, ir::Expr(0)),
                                static_cast<std::int64_t>(dropped)},
                    span, ir::ViewType{spread.type.dtype, spread.type.space, kept});
}

}  // namespace

std::vector<bool> ones_of(const std::vector<ir::Expr>& shape) {
  std::vector<bool> out;
  for (const ir::Expr& extent : shape) out.push_back(extent.is(1));
  return out;
}

std::optional<ir::ValueId> squeeze(Sema& sema, ir::ValueId base, const std::vector<bool>& dropped,
                                   Span span) {
  const ir::ViewType type = sema.function.view_type(base);
  std::vector<ir::Expr> kept;
  std::size_t leading = 0;
  for (std::size_t d = 0; d < dropped.size(); ++d) {
    if (!dropped[d]) kept.push_back(type.shape[d]);
    if (kept.empty()) ++leading;
  }
  if (kept.empty()) {  // One element: a vector of it.
    kept.push_back(type.shape.back());
    --leading;
  }
  if (kept.size() == type.shape.size()) return base;
  if (kept.size() + leading == type.shape.size()) {
    ir::Subview pick{base, std::vector<ir::Expr>(type.shape.size(), ir::Expr(0)),
                     static_cast<std::int64_t>(leading)};
    return emit_value(sema, std::move(pick), span, ir::ViewType{type.dtype, type.space, kept});
  }
  // Nothing but the shape changes where the elements lie in one piece.
  const Spread spread = spread_of(sema.function, base);
  if (!gap_of(spread) && whole_slab(spread)) return span_as(sema, base, kept, span);
  return drop_inner(sema, base, dropped, span);
}

std::optional<ir::ValueId> restride(Sema& sema, ir::ValueId base, const StridedWindow& window,
                                    Span span) {
  const Spread spread = spread_of(sema.function, base);
  if (spread.type.space != ir::Space::kGlobal) {
    const bool shared = spread.type.space == ir::Space::kShared;
    (void)sema.diags
        .report<diag::StridesPlacement>(span, view_name(sema, base), shared ? "shared" : "local")
        .help("copy the tile with its strides, and use the copy")
        .emit();
    return std::nullopt;
  }
  if (!check_known(sema, window.strides, span)) return std::nullopt;
  ir::Alias alias{.base = {}, .offset = spread.first(sema.function), .strides = window.strides};
  for (std::size_t d = 0; d < window.origin.size(); ++d) {
    alias.offset = alias.offset + window.origin[d] * spread.strides[spread.at.dropped + d];
  }
  return emit_alias(sema, spread, std::move(alias), window.shape, span);
}

}  // namespace kiln::sema
