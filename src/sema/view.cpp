#include "sema/view.h"

#include "ir/prove.h"
#include "ir/strides.h"
#include "sema/derived.h"
#include "sema/entry_check.h"
#include "sema/expression.h"
#include "sema/guard.h"
#include "sema/launch_value.h"
#include "sema/reshape.h"
#include "support/tensor.h"

namespace kiln::sema {

namespace {

Operand make_view(ir::ValueId id, Span span) {
  Operand out;
  out.kind = Operand::Kind::kView;
  out.span = span;
  out.id = id;
  return out;
}

// One dimension of a view operation's result.
struct Window {
  ir::Expr origin;
  ir::Expr extent;
};

// The largest index that still starts inside, as far as constants tell.
std::string last_index_text(const Window& window, std::int64_t limit, std::string_view noun) {
  if (noun == "offset") return format("offsets of this dimension go from 0 to {}", limit - 1);
  const auto extent = window.extent.constant();
  if (!extent || *extent < 1) return "";
  return format("tile indices count tiles of {} elements: the last one here is {}", *extent,
                (limit - 1) / *extent);
}

struct ViewBuilder {
  Sema& sema;
  ir::ValueId base;
  Span span;

  [[nodiscard]] const ir::ViewType& type() const { return sema.function.view_type(base); }
  [[nodiscard]] std::size_t rank() const { return type().shape.size(); }

  [[nodiscard]] bool check_count(std::size_t count, std::string_view noun, Span where) const {
    if (count == rank()) return true;
    (void)sema.diags.report<diag::IndexCount>(where, view_name(sema, base), rank(), noun, count)
        .help("give one for each of the {} dimension(s){}", rank(),
              noun == "indices" ? "" : ", `_` for a whole one")
        .emit();
    return false;
  }

  [[nodiscard]] bool apply(const std::vector<Window>& windows) {
    ir::ViewType result{type().dtype, type().space, {}};
    ir::Subview subview{base, {}, 0};
    for (const Window& window : windows) {
      if (window.origin.overflowed() || window.extent.overflowed()) {
        (void)sema.diags.report<diag::ExtentOverflow>(span, "the place of this view").emit();
        return false;
      }
      result.shape.push_back(window.extent);
      subview.origin.push_back(window.origin);
    }
    base = emit_value(sema, std::move(subview), span, std::move(result));
    return true;
  }

  // Reports when the window lies outside for every value its index takes, or, for constants, for
  // the largest one. `tiles` counts how many there are.
  [[nodiscard]] bool check_origin(const Window& window, std::size_t dimension, Span where,
                                  std::string_view noun, const ir::Expr& index) const {
    const ir::Expr& extent = type().shape[dimension];
    const auto least = ir::minimum(sema.function, window.origin);
    const auto limit = extent.constant();
    if (!limit || !least || *least < *limit) return true;
    (void)sema.diags
        .report<diag::IndexOutOfRange>(where, noun, text(sema, index), dimension, *limit)
        .label(where, "this starts at element {}", text(sema, window.origin))
        .help_if(last_index_text(window, *limit, noun))
        .emit();
    return false;
  }

  [[nodiscard]] bool chunkat(const ast::ViewOp& op);
  [[nodiscard]] bool chunk(const ast::ViewOp& op);
  [[nodiscard]] bool subspan(const ast::ViewOp& op);
  [[nodiscard]] bool modspan(const ast::ViewOp& op);
  [[nodiscard]] bool window(const ast::ViewOp& op);
  [[nodiscard]] std::optional<std::vector<ir::Expr>> extents(const ast::ViewOp& op);
  [[nodiscard]] std::optional<Window> chunk_of(std::size_t dimension, const Element& index,
                                               Span where) const;
  [[nodiscard]] bool span_as(const ast::ViewOp& op);
  [[nodiscard]] bool squeeze(const ast::ViewOp& op);
  [[nodiscard]] std::optional<std::vector<bool>> named_ones(const ast::ViewOp& op) const;
  [[nodiscard]] bool strided(const ast::ViewOp& op, const std::vector<Window>& windows);
  [[nodiscard]] bool run(const ast::ViewOp& op);
};

// T of a bound `D / T` on dimension D, a constant.
std::optional<std::int64_t> divisor_of(const ir::Expr& bound, const ir::Expr& dimension) {
  if (bound.terms().size() != 1) return std::nullopt;
  const ir::Term& term = bound.terms()[0];
  if (term.coefficient != 1 || term.atoms.size() != 1) return std::nullopt;
  const ir::Atom& atom = term.atoms[0];
  if (atom.kind != ir::AtomKind::kFloorDiv || !(*atom.left == dimension)) return std::nullopt;
  return atom.right->constant();
}

// Chunk `index` of a dimension, the number of chunks being the index's bound.
std::optional<Window> ViewBuilder::chunk_of(std::size_t dimension, const Element& index,
                                            Span where) const {
  const ir::Expr& extent = type().shape[dimension];
  if (!index.bound) {
    (void)sema.diags.report<diag::BoundMissing>(where, sema.sources.text(where), "`.chunkat`")
        .help("use `.subspan(tile...).at(index...)`, which takes any integer")
        .emit();
    return std::nullopt;
  }
  const Bound& bound = *index.bound;
  // A bound written cdiv(D, T) on dimension D means chunks of T, the last one overhanging.
  if (bound.written_as && bound.written_as->dividend == extent) {
    return Window{index.value * bound.written_as->divisor, bound.written_as->divisor};
  }
  const auto count = bound.extent.constant();
  const auto whole = extent.constant();
  if (count && whole) {
    if (*whole % *count == 0) return Window{index.value * (*whole / *count), *whole / *count};
    (void)sema.diags.report<diag::ChunkIndivisible>(where, dimension, *whole, *count)
        .help("bound the index by `cdiv({}, tile)`, or use `.subspan(tile...).at(index...)`",
              *whole)
        .emit();
    return std::nullopt;
  }
  if (const auto tile = divisor_of(bound.extent, extent)) {
    require(sema, {*tile, ir::Relation::kDivides, extent,
                   format("dimension {} of `{}` does not divide into tiles", dimension,
                          view_name(sema, base)),
                   where});
    return Window{index.value * *tile, *tile};
  }
  const ir::Expr chunk = ir::floor_div(extent, bound.extent);
  require(sema, {bound.extent, ir::Relation::kDivides, extent,
                 format("dimension {} of `{}` does not divide into chunks", dimension,
                        view_name(sema, base)),
                 where});
  return Window{index.value * chunk, chunk};
}

bool ViewBuilder::chunkat(const ast::ViewOp& op) {
  const auto items = evaluate_list(sema, op.args, "a chunk index");
  if (!items || !check_count(items->size(), "chunk indices", op.span)) return false;
  std::vector<Window> windows;
  for (std::size_t d = 0; d < rank(); ++d) {
    const IndexItem& item = (*items)[d];
    if (!item.element) {
      windows.push_back({0, type().shape[d]});
      continue;
    }
    const auto window = chunk_of(d, *item.element, item.span);
    if (!window || !check_origin(*window, d, item.span, "chunk index", item.element->value)) {
      return false;
    }
    windows.push_back(*window);
  }
  return apply(windows);
}

bool ViewBuilder::chunk(const ast::ViewOp& op) {
  const auto counts = evaluate_list(sema, op.args, "a number of chunks");
  const auto indices = evaluate_list(sema, op.origin, "a chunk index");
  if (!counts || !indices || !check_count(counts->size(), "chunk counts", op.span) ||
      !check_count(indices->size(), "chunk indices", op.span)) {
    return false;
  }
  std::vector<Window> windows;
  for (std::size_t d = 0; d < rank(); ++d) {
    const auto& count = (*counts)[d].element;
    const auto& index = (*indices)[d].element;
    if (!count || !index) {
      windows.push_back({0, type().shape[d]});
      continue;
    }
    const Element bounded{index->value, Bound{count->value, std::nullopt}};
    const auto window = chunk_of(d, bounded, (*counts)[d].span);
    if (!window || !check_origin(*window, d, (*indices)[d].span, "chunk index", index->value)) {
      return false;
    }
    windows.push_back(*window);
  }
  return apply(windows);
}

// The extents listed in a subspan or view, `_` being the whole dimension.
std::optional<std::vector<ir::Expr>> ViewBuilder::extents(const ast::ViewOp& op) {
  const auto items = evaluate_list(sema, op.args, "an extent of the view");
  if (!items || !check_count(items->size(), "extents", op.span)) return std::nullopt;
  std::vector<ir::Expr> out;
  for (std::size_t d = 0; d < rank(); ++d) {
    const IndexItem& item = (*items)[d];
    if (!item.element) {
      out.push_back(type().shape[d]);
      continue;
    }
    const auto extent = item.element->value.constant();
    const auto whole = type().shape[d].constant();
    if (extent && *extent <= 0) {
      (void)sema.diags.report<diag::ExtentNotPositive>(item.span, "the extent of a view", *extent)
          .emit();
      return std::nullopt;
    }
    // With strides of its own a dimension may reach into others.
    if (extent && whole && *extent > *whole && op.strides.empty()) {
      (void)sema.diags.report<diag::SubspanTooLarge>(item.span, *extent, d, *whole)
          .help("at most {} here, or `_` for the whole dimension", *whole)
          .emit();
      return std::nullopt;
    }
    out.push_back(item.element->value);
  }
  return out;
}

bool ViewBuilder::subspan(const ast::ViewOp& op) {
  const auto shape = extents(op);
  if (!shape) return false;
  const auto indices = evaluate_list(sema, op.origin, "a tile index");
  const auto steps = evaluate_list(sema, op.steps, "a step");
  if (!indices || !steps) return false;
  if (!op.origin.empty() && !check_count(indices->size(), "tile indices", op.origin_span))
    return false;
  if (!op.steps.empty() && !check_count(steps->size(), "steps", op.steps_span)) return false;
  std::vector<Window> windows;
  for (std::size_t d = 0; d < rank(); ++d) {
    ir::Expr index = 0;
    if (!indices->empty() && (*indices)[d].element) index = (*indices)[d].element->value;
    const bool stepped = !steps->empty() && (*steps)[d].element;
    const ir::Expr unit = stepped ? (*steps)[d].element->value : (*shape)[d];
    const Window window{index * unit, (*shape)[d]};
    const Span where = indices->empty() ? op.span : (*indices)[d].span;
    if (!check_origin(window, d, where, "tile index", index)) return false;
    windows.push_back(window);
  }
  return op.strides.empty() ? apply(windows) : strided(op, windows);
}

// The remainder tile: what is left over by tiles of the listed extents.
bool ViewBuilder::modspan(const ast::ViewOp& op) {
  const auto items = evaluate_list(sema, op.args, "an extent of the view");
  const auto indices = evaluate_list(sema, op.origin, "a tile index");
  if (!items || !indices || !check_count(items->size(), "extents", op.span)) return false;
  if (!op.origin.empty() && !check_count(indices->size(), "tile indices", op.origin_span))
    return false;
  std::vector<Window> windows;
  for (std::size_t d = 0; d < rank(); ++d) {
    const ir::Expr& whole = type().shape[d];
    if (!(*items)[d].element) {
      windows.push_back({0, whole});
      continue;
    }
    const ir::Expr& tile = (*items)[d].element->value;
    if (tile.constant() && *tile.constant() < 1) {
      (void)sema.diags
          .report<diag::ExtentNotPositive>((*items)[d].span, "the extent of a view",
                                           *tile.constant())
          .emit();
      return false;
    }
    ir::Expr index = ir::floor_div(whole, tile);
    if (!indices->empty() && (*indices)[d].element) index = (*indices)[d].element->value;
    // One element, outside, where nothing is left over.
    windows.push_back({index * tile, ir::max(ir::mod(whole, tile), 1)});
  }
  return apply(windows);
}

bool ViewBuilder::window(const ast::ViewOp& op) {
  const auto shape = extents(op);
  if (!shape) return false;
  const auto offsets = evaluate_list(sema, op.origin, "an offset");
  if (!offsets) return false;
  if (!op.origin.empty() && !check_count(offsets->size(), "offsets", op.origin_span)) return false;
  std::vector<Window> windows;
  for (std::size_t d = 0; d < rank(); ++d) {
    ir::Expr offset = 0;
    if (!offsets->empty() && (*offsets)[d].element) offset = (*offsets)[d].element->value;
    const Window window{offset, (*shape)[d]};
    const Span where = offsets->empty() ? op.span : (*offsets)[d].span;
    if (!check_origin(window, d, where, "offset", offset)) return false;
    windows.push_back(window);
  }
  return op.strides.empty() ? apply(windows) : strided(op, windows);
}

// Windows whose elements are as far apart as the list says, each in elements.
bool ViewBuilder::strided(const ast::ViewOp& op, const std::vector<Window>& windows) {
  const auto items = evaluate_list(sema, op.strides, "a stride");
  if (!items || !check_count(items->size(), "strides", op.span)) return false;
  const std::vector<ir::Expr> inherited =
      ir::root_strides(sema.function, ir::resolve_view(sema.function, base).root);
  StridedWindow window;
  bool changed = false;
  for (std::size_t d = 0; d < rank(); ++d) {
    const IndexItem& item = (*items)[d];
    const ir::Expr& own = inherited[inherited.size() - rank() + d];
    window.strides.push_back(item.element ? item.element->value : own);
    window.origin.push_back(windows[d].origin);
    window.shape.push_back(windows[d].extent);
    changed = changed || !(window.strides[d] == own);
    const auto constant = window.strides[d].constant();
    if (!constant || *constant > 0) continue;
    (void)sema.diags.report<diag::ExtentNotPositive>(item.span, "a stride", *constant).emit();
    return false;
  }
  if (!changed) return apply(windows);
  const auto made = restride(sema, base, window, op.span);
  if (made) base = *made;
  return made.has_value();
}

bool ViewBuilder::span_as(const ast::ViewOp& op) {
  const auto extents = evaluate_extents(sema, op.args, "an extent of the view");
  if (!extents) return false;
  std::vector<ir::Expr> shape;
  for (const Element& extent : *extents) shape.push_back(extent.value);
  const auto made = sema::span_as(sema, base, shape, op.span);
  if (made) base = *made;
  return made.has_value();
}

// The dimensions that `.sqz(d, ...)` names, whose extents are 1.
std::optional<std::vector<bool>> ViewBuilder::named_ones(const ast::ViewOp& op) const {
  const std::vector<ir::Expr> shape = type().shape;
  const std::vector<bool> ones = ones_of(shape);
  std::vector<bool> named(shape.size(), false);
  for (const ast::ExprId arg : op.args) {
    const auto number = evaluate_constant(sema, arg, "the dimension of `.sqz`");
    if (!number) return std::nullopt;
    const auto d = static_cast<std::size_t>(*number);
    const bool inside = *number >= 0 && d < shape.size();
    if (inside && ones[d]) {
      named[d] = true;
      continue;
    }
    (void)sema.diags.report<diag::SqueezeDimension>(sema.ast[arg].span, *number)
        .label(sema.ast[arg].span, "{}",
               inside ? format("its extent is {}", text(sema, shape[d]))
                      : format("the view has {} dimension(s)", shape.size()))
        .help("name dimensions of extent 1, or all of those at once with `.sqz()`")
        .emit();
    return std::nullopt;
  }
  return named;
}

// The parser has seen to it that the operation before says the shape.
bool ViewBuilder::squeeze(const ast::ViewOp& op) {
  std::vector<bool> dropped = ones_of(type().shape);
  if (!op.args.empty()) {
    auto named = named_ones(op);
    if (!named) return false;
    dropped = std::move(*named);
  }
  const auto made = sema::squeeze(sema, base, dropped, op.span);
  if (made) base = *made;
  return made.has_value();
}

bool ViewBuilder::run(const ast::ViewOp& op) {
  const std::string word = format("`.{}`", spelling(op.kind));
  if (!op.strides.empty() && op.kind == ast::ViewOpKind::kModspan) {
    refuse(sema, op.span, format("{} with explicit strides", word));
    return false;
  }
  switch (op.kind) {
    case ast::ViewOpKind::kChunkAt: return chunkat(op);
    case ast::ViewOpKind::kChunk: return chunk(op);
    case ast::ViewOpKind::kSubspan: return subspan(op);
    case ast::ViewOpKind::kModspan: return modspan(op);
    case ast::ViewOpKind::kView: return window(op);
    case ast::ViewOpKind::kZeroFill: return true;  // on-chip destinations are always zero-filled
    case ast::ViewOpKind::kSpanAs: return span_as(op);
    case ast::ViewOpKind::kSqueeze: return squeeze(op);
    case ast::ViewOpKind::kMap:
    case ast::ViewOpKind::kRemap: break;
  }
  refuse(sema, op.span, word);
  return false;
}

}  // namespace

std::string view_name(const Sema& sema, ir::ValueId view) {
  const ir::ValueId buffer = ir::root_of(sema.function, view);
  const auto* alloc = sema.function.def_as<ir::Alloc>(buffer);
  if (alloc != nullptr) return alloc->name.empty() ? "the copied tile" : alloc->name;
  return sema.function.values[buffer].name;
}

Operand evaluate_view(Sema& sema, ast::ExprId id) {
  Operand out = evaluate(sema, id);
  if (out.is_error() || out.kind == Operand::Kind::kView) return out;
  const std::string written(sema.sources.text(out.span));
  if (out.kind == Operand::Kind::kArray) {
    (void)sema.diags.report<diag::ArraySubscripts>(out.span, written, out.array_rank, 0)
        .help("pick one buffer: `{}[0]`", written)
        .emit();
  } else if (out.kind == Operand::Kind::kWildcard) {
    (void)sema.diags.report<diag::WildcardMisplaced>(out.span).emit();
  } else if (out.kind == Operand::Kind::kFragment) {
    refuse(sema, out.span, format("element access of the register tile `{}`", written));
  } else {
    (void)sema.diags.report<diag::ViewBase>(out.span, written, describe(out, sema.function)).emit();
  }
  Operand error;
  error.span = out.span;
  return error;
}

Operand apply_view_ops(Sema& sema, const ast::ViewExpr& view, Span span) {
  const Operand base = evaluate_view(sema, view.base);
  if (base.is_error()) return base;
  ViewBuilder builder{sema, base.id, span};
  for (const ast::ViewOp& op : view.ops) {
    if (!builder.run(op)) return {};
  }
  return make_view(builder.base, span);
}

Operand subscript_array(Sema& sema, const ast::SubscriptExpr& subscript, Span span) {
  Operand base = evaluate(sema, subscript.base);
  if (base.is_error()) return base;
  if (derives(sema, base, subscript)) return derive(sema, std::move(base), subscript, span);
  if (base.kind != Operand::Kind::kArray || subscript.braces) {
    (void)sema.diags
        .report<diag::NotAnArray>(span, sema.sources.text(base.span), describe(base, sema.function))
        .help("elements are read with `.at(...)`")
        .emit();
    return {};
  }
  const Operand* outer = std::exchange(sema.derives_from, nullptr);
  const auto items = evaluate_list(sema, subscript.items, "a subscript");
  sema.derives_from = outer;
  if (!items) return {};
  const auto count = static_cast<std::int64_t>(items->size());
  if (count > base.array_rank) {
    (void)sema.diags
        .report<diag::ArraySubscripts>(span, sema.sources.text(base.span), base.array_rank, count)
        .emit();
    return {};
  }
  const ir::ViewType& type = sema.function.view_type(base.id);
  ir::ViewType result{type.dtype, type.space, {}};
  ir::Subview subview{base.id, {}, count};
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (d >= items->size()) {
      subview.origin.emplace_back(0);
      result.shape.push_back(type.shape[d]);
      continue;
    }
    const IndexItem& item = (*items)[d];
    const auto least =
        item.element ? ir::minimum(sema.function, item.element->value) : std::nullopt;
    const auto extent = type.shape[d].constant();
    if (!item.element || (extent && ((least && *least >= *extent) ||
                                     too_large_here(sema, item.element->value, *extent)))) {
      (void)sema.diags
          .report<diag::IndexOutOfRange>(item.span, "subscript",
                                         item.element ? text(sema, item.element->value) : "_", d,
                                         extent.value_or(0))
          .help("subscripts of `{}` go from 0 to {}", sema.sources.text(base.span),
                extent.value_or(1) - 1)
          .emit();
      return {};
    }
    subview.origin.push_back(item.element->value);
  }
  const ir::ValueId id = emit_value(sema, std::move(subview), span, std::move(result));
  Operand out = make_view(id, span);
  if (count < base.array_rank) {
    out.kind = Operand::Kind::kArray;
    out.array_rank = base.array_rank - count;
  }
  return out;
}

ir::ValueId widen_view(Sema& sema, ir::ValueId base, std::vector<ir::Expr> shape, Span span) {
  const ir::ViewType& type = sema.function.view_type(base);
  ir::ViewType result{type.dtype, type.space, std::move(shape)};
  ir::Subview subview{base, std::vector<ir::Expr>(type.shape.size(), ir::Expr(0)), 0};
  return emit_value(sema, std::move(subview), span, std::move(result));
}

std::optional<std::vector<ir::Expr>> element_index(Sema& sema, ir::ValueId view,
                                                   const std::vector<ast::ExprId>& indices,
                                                   Span span) {
  const auto items = evaluate_list(sema, indices, "an index");
  if (!items) return std::nullopt;
  ViewBuilder builder{sema, view, span};
  if (!builder.check_count(items->size(), "indices", span)) return std::nullopt;
  std::vector<ir::Expr> out;
  for (std::size_t d = 0; d < items->size(); ++d) {
    const IndexItem& item = (*items)[d];
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return std::nullopt;
    }
    const ir::Expr& index = item.element->value;
    const ir::Expr& extent = sema.function.view_type(view).shape[d];
    if (index.overflowed()) {
      (void)sema.diags.report<diag::ExtentOverflow>(item.span, "this index").emit();
      return std::nullopt;
    }
    const auto constant = index.constant();
    const auto limit = extent.constant();
    const auto least = ir::minimum(sema.function, index - extent);
    if ((constant && *constant < 0) || (constant && limit && *constant >= *limit) ||
        (least && *least >= 0)) {
      (void)sema.diags
          .report<diag::IndexOutOfRange>(item.span, "index", text(sema, index), d,
                                         text(sema, extent))
          .help("indices of this dimension go from 0 to {}", text(sema, extent - 1))
          .emit();
      return std::nullopt;
    }
    out.push_back(index);
  }
  return out;
}

namespace {

bool report_block(Sema& sema, const ast::AtExpr& at, std::string_view what, std::string_view help) {
  (void)sema.diags.report<diag::BlockElement>(at.block_span, what).help("{}", help).emit();
  return false;
}

// Whether another block's elements of the view can be read here.
bool check_block(Sema& sema, ir::ValueId view, const ast::AtExpr& at) {
  const ir::Space space = sema.function.view_type(view).space;
  if (space != ir::Space::kShared) {
    return report_block(
        sema, at,
        format("of `{}`, which is in {} memory", view_name(sema, view), space_name(space)),
        "blocks of a cluster reach each other's shared memory: leave `.block(...)` out");
  }
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  if (launch.cluster.empty()) {
    (void)sema.diags.report<diag::ClusterMissing>(at.block_span, "`.block(...)`")
        .help("put a `parallel ... : cluster` around the block, or leave `.block(...)` out")
        .emit();
    return false;
  }
  if (sema.place.inthreads.valid()) {
    return report_block(sema, at, "in `inthreads`, where the cluster's blocks cannot meet before",
                        "read the element behind the regions, where all threads come by");
  }
  if (at.block.size() == launch.cluster.size()) return true;
  return report_block(sema, at,
                      format("with {} number(s), the cluster has {} axis or axes", at.block.size(),
                             launch.cluster.size()),
                      "give the block's place on each of them");
}

}  // namespace

std::optional<std::vector<ir::Expr>> element_block(Sema& sema, ir::ValueId view,
                                                   const ast::AtExpr& at) {
  std::vector<ir::Expr> out;
  if (at.block.empty() && !at.block_span.valid()) return out;
  if (!check_block(sema, view, at)) return std::nullopt;
  const auto items = evaluate_list(sema, at.block, "a block's number");
  if (!items) return std::nullopt;
  const auto& launch = std::get<ir::Parallel>(sema.function.ops[sema.place.launch].data);
  for (std::size_t axis = 0; axis < items->size(); ++axis) {
    const IndexItem& item = (*items)[axis];
    if (!item.element) {
      (void)sema.diags.report<diag::WildcardMisplaced>(item.span).emit();
      return std::nullopt;
    }
    const ir::Expr& number = item.element->value;
    const std::int64_t blocks =
        sema.function.vars[launch.cluster[axis]].extent.constant().value_or(1);
    const auto least = ir::minimum(sema.function, number);
    const auto most = ir::upper_bound(sema.function, number);
    const auto constant = most ? most->constant() : std::nullopt;
    if ((least && *least >= blocks) || (constant && *constant < 0)) {
      (void)sema.diags
          .report<diag::IndexOutOfRange>(item.span, "block", text(sema, number), axis, blocks)
          .help("blocks of the cluster have numbers from 0 to {}", blocks - 1)
          .emit();
      return std::nullopt;
    }
    out.push_back(number);
  }
  return out;
}

bool check_own_block(Sema& sema, const ast::AtExpr& at) {
  if (!at.block_span.valid()) return true;
  return report_block(sema, at, "of an element that is more than read",
                      "write what is the block's own, and let others read it");
}

bool settle_extents(Sema& sema, ir::ViewType& type, Span span, std::string_view what) {
  const bool shared = type.space == ir::Space::kShared;
  for (ir::Expr& extent : type.shape) {
    if (type.space == ir::Space::kGlobal || extent.constant()) continue;
    const auto known = launch_value(sema, extent, span);
    if (shared && known) {
      extent = *known;
      const auto least = ir::minimum(sema.function, extent);
      if (least && *least >= 1) continue;
      require(sema,
              {1, ir::Relation::kLessEqual, extent, format("{} needs an element", what), span});
      continue;
    }
    (void)sema.diags.report<diag::ExtentNotConstant>(span, what, text(sema, extent))
        .help("{}{}",
              shared ? "take a tile of constant extents with `.subspan(...).at(...)`, or of "
                       "what is known at launch: dimensions and integer parameters"
                     : "`local` tiles have constant extents: take one with "
                       "`.subspan(...).at(...)`",
              !shared && known ? ", or let a template's parameter say it: `template <int N>`" : "")
        .emit();
    return false;
  }
  return true;
}

bool check_size(Sema& sema, const ir::ViewType& type, Span span, std::string_view what) {
  std::vector<std::int64_t> shape;
  for (const ir::Expr& extent : type.shape) shape.push_back(extent.constant().value_or(1));
  if (elements_fit(type.dtype, shape)) return true;
  (void)sema.diags.report<diag::ExtentOverflow>(span, format("the size of {}", what))
      .help("a buffer may have at most 2^40 bytes")
      .emit();
  return false;
}

}  // namespace kiln::sema
