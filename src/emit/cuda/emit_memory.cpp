// Buffers, copies and element writes.
#include <algorithm>

#include "emit/cuda/emit_op.h"
#include "ir/registers.h"
#include "ir/strides.h"

namespace kiln::emit {

using ir::Expr;
using ir::Op;
using ir::ViewType;

namespace {

// `each` is a statement for element kernel.counter of a buffer of `count` elements.
void element_loop(Kernel& kernel, const Expr& first, const std::string& step, const Expr& count,
                  const std::string& each) {
  const std::string& i = kernel.name(kernel.counter);
  kernel.out.open(format("for (int {} = {}; {} < {}; {}) {{", i, kernel.text(first), i,
                         bracketed(kernel.spelled(count), Binding::kShift), step));
  kernel.out.line(each);
  kernel.out.close();
}

Expr elements(const std::vector<Expr>& shape) {
  Expr product = 1;
  for (const Expr& extent : shape) product = product * extent;
  return product;
}

// Starts every element of a new buffer with one value. A shared one is filled by the whole block.
void fill_buffer(Kernel& kernel, const Op& op, const ir::Alloc& alloc) {
  const ViewType& view = kernel.function.view_type(op.result);
  const Expr i = Expr::var(kernel.counter);
  const std::string target = kernel.element(op.result, unflatten(view.shape, i));
  const std::string each = format("{} = {};", target, scalar(kernel, alloc.initial).text);
  const std::string& name = kernel.name(kernel.counter);
  if (view.space == ir::Space::kShared) {
    element_loop(kernel, kernel.use_thread(), format("{} += blockDim.x", name),
                 elements(view.shape), each);
  } else {
    kernel.out.line("#pragma unroll");
    element_loop(kernel, Expr(0), "++" + name, elements(view.shape), each);
  }
}

std::string tile_declaration(DType dtype, const TileShape& shape, const ir::Alloc& alloc,
                             const std::string& name) {
  return format("const kiln::Tile<{}, {}, {}{}> {}(smem + {});", type_name(dtype), shape.rows,
                shape.cols, alloc.swizzle == 0 ? "" : format(", {}", alloc.swizzle), name,
                alloc.offset);
}

// Where a buffer begins whose extents are known at launch.
std::string pointer_declaration(Kernel& kernel, DType dtype, const ir::Alloc& alloc,
                                const std::string& name) {
  const std::string type = type_name(dtype);
  return format("{}* const {} = reinterpret_cast<{}*>(smem + {});", type, name, type,
                bracketed(kernel.spelled(alloc.behind + alloc.offset), Binding::kSum));
}

void declare_view(Kernel& kernel, const Op& op, const ir::Alloc& alloc) {
  const ViewType& view = kernel.function.view_type(op.result);
  const std::string& name = kernel.name(op.result);
  if (ir::is_sized_at_launch(kernel.function, op.result)) {
    kernel.out.line(pointer_declaration(kernel, view.dtype, alloc, name));
    if (alloc.initial.valid()) fill_buffer(kernel, op, alloc);
    return;
  }
  const TileShape shape = tile_shape(view);
  const std::string type = type_name(view.dtype);
  switch (view.space) {
    case ir::Space::kShared:
      kernel.requirements.headers.insert("tile.cuh");
      kernel.out.line(tile_declaration(view.dtype, shape, alloc, name));
      break;
    case ir::Space::kLocal:
      kernel.out.line(format("{} {}[{}];", type, name, shape.rows * shape.cols));
      break;
    case ir::Space::kGlobal: KILN_UNREACHABLE("a global buffer allocated inside a kernel");
  }
  if (alloc.initial.valid()) fill_buffer(kernel, op, alloc);
}

}  // namespace

void emit_op(Kernel& kernel, const Op& op, const ir::Alloc& alloc) {
  const ir::Type& type = kernel.function.type(op.result);
  if (std::holds_alternative<ir::FragType>(type)) {
    declare_fragment(kernel, op.result, alloc);
  } else if (const auto* cell = std::get_if<ir::CellType>(&type)) {
    const std::string initial =
        alloc.initial.valid() ? format(" = {}", scalar(kernel, alloc.initial).text) : "";
    kernel.out.line(format("{} {}{};", type_name(cell->dtype), kernel.name(op.result), initial));
  } else {
    declare_view(kernel, op, alloc);
  }
}

void emit_op(Kernel&, const Op&, const ir::Subview&) {}  // spelled by whoever uses it

void emit_op(Kernel& kernel, const Op& op, const ir::Alias& alias) {
  const ViewType& view = kernel.function.view_type(op.result);
  const std::string& name = kernel.name(op.result);
  const std::string& base = kernel.name(alias.base);
  if (view.space != ir::Space::kShared || ir::is_sized_at_launch(kernel.function, op.result)) {
    const bool constant =
        view.space == ir::Space::kGlobal && !kernel.uses.written_roots[op.result.index];
    kernel.out.line(format("{}{}* const {} = {}{};", constant ? "const " : "",
                           type_name(view.dtype), name, base,
                           alias.offset.is(0) ? "" : " + " + kernel.wide_text(alias.offset)));
    return;
  }
  kernel.requirements.headers.insert("tile.cuh");
  const auto& alloc = *kernel.function.def_as<ir::Alloc>(alias.base);
  TileShape shape = tile_shape(view);
  // The panels of a swizzled tile have all of its rows, as long as they are its rows.
  const TileShape whole = tile_shape(kernel.function.view_type(alias.base));
  if (alloc.swizzle != 0 && shape.cols == whole.cols) shape.rows = whole.rows;
  kernel.out.line(tile_declaration(view.dtype, shape, alloc, name));
}

void emit_op(Kernel& kernel, const Op&, const ir::Write& write) {
  const ir::ResolvedView view = ir::resolve_view(kernel.function, write.view);
  const std::string target = element(kernel, view, write.index);
  const std::string holder =
      kernel.applied.valid()
          ? first_holder(kernel, ir::tile_registers(kernel.function, kernel.applied).map)
          : "";
  kernel.out.line(format("{}{} = {};", holder.empty() ? "" : format("if ({}) ", holder), target,
                         scalar(kernel, write.value).text));
}

void emit_op(Kernel& kernel, const Op& op, const ir::Atomic& atomic) {
  kernel.requirements.headers.insert("atomic.cuh");
  const ir::ResolvedView view = ir::resolve_view(kernel.function, atomic.view);
  const std::string compare =
      atomic.compare.valid() ? scalar(kernel, atomic.compare).text + ", " : "";
  const std::string call =
      format("kiln::atomic_{}(&{}, {}{})", target::info(atomic.kind).name,
             element(kernel, view, atomic.index), compare, scalar(kernel, atomic.value).text);
  if (kernel.uses.value_uses[op.result.index] == 0) return kernel.out.line(call + ";");
  const DType dtype = kernel.function.view_type(atomic.view).dtype;
  kernel.out.line(format("const {} {} = {};", type_name(dtype), kernel.name(op.result), call));
}

namespace {

// Both sides of a copy, followed to their buffers.
struct CopySides {
  const ViewType& src_type;
  const ViewType& dst_type;
  ir::ResolvedView src;
  ir::ResolvedView dst;
  std::vector<std::int64_t> src_guarded;
  std::vector<std::int64_t> dst_guarded;
  std::vector<std::int64_t> src_before;
  std::vector<std::int64_t> dst_before;
};

// The side's own extent is one more limit in the dimensions `limited`.
void add_limits(const ViewType& side, const std::vector<std::int64_t>& limited,
                ir::ResolvedView& view, std::vector<std::int64_t>& guarded) {
  for (const std::int64_t dim : limited) {
    const auto d = static_cast<std::size_t>(dim);
    const std::size_t root_dim = view.dropped + d;
    view.limits[root_dim].push_back(view.origin[root_dim] + side.shape[d]);
    if (std::ranges::find(guarded, dim) == guarded.end()) guarded.push_back(dim);
  }
  std::ranges::sort(guarded);
}

CopySides copy_sides(const ir::Function& function, const ir::Copy& copy) {
  CopySides sides{.src_type = function.view_type(copy.src),
                  .dst_type = function.view_type(copy.dst),
                  .src = ir::resolve_view(function, copy.src),
                  .dst = ir::resolve_view(function, copy.dst),
                  .src_guarded = {},
                  .dst_guarded = {},
                  .src_before = {},
                  .dst_before = {}};
  const bool tile_is_dst = sides.dst_type.space != ir::Space::kGlobal;
  sides.src_guarded = tile_is_dst ? copy.guarded : copy.tile_guarded;
  sides.dst_guarded = tile_is_dst ? copy.tile_guarded : copy.guarded;
  (tile_is_dst ? sides.src_before : sides.dst_before) = copy.before;
  add_limits(sides.src_type, copy.src_limited, sides.src, sides.src_guarded);
  add_limits(sides.dst_type, copy.dst_limited, sides.dst, sides.dst_guarded);
  return sides;
}

// The kiln::Tile, or the part of one, that a window onto shared memory is.
std::string tile_text(Kernel& kernel, const ir::ResolvedView& view, const ViewType& type) {
  const ViewType& root = kernel.function.view_type(view.root);
  const bool whole = view.dropped == 0 && root.shape == type.shape &&
                     std::ranges::all_of(view.origin, [](const Expr& e) { return e.is(0); });
  if (whole) return kernel.name(view.root);
  const TileShape shape = tile_shape(type);
  const std::vector<Expr> extents(root.shape.begin(), root.shape.end() - 1);
  const std::vector<Expr> leading(view.origin.begin(), view.origin.end() - 1);
  return format("kiln::part<{}, {}>({}, {}, {})", shape.rows, shape.cols, kernel.name(view.root),
                kernel.text(flat_index(extents, leading)), kernel.text(view.origin.back()));
}

std::string window_text(Kernel& kernel, const ir::ResolvedView& view,
                        const std::vector<std::int64_t>& guarded) {
  kernel.requirements.headers.insert("window.cuh");
  const ViewType& root = kernel.function.view_type(view.root);
  std::vector<Expr> limits = root.shape;
  for (const std::int64_t dim : guarded) {
    const std::size_t d = view.dropped + static_cast<std::size_t>(dim);
    for (const Expr& limit : view.limits[d]) limits[d] = min(limits[d], limit);
  }
  const auto* alias = kernel.function.def_as<ir::Alias>(view.root);
  if (alias != nullptr && !alias->strides.empty()) {
    return format("kiln::strided_window({}, {}, {}, {})", kernel.name(view.root),
                  kernel.braced(alias->strides), kernel.braced(view.origin), kernel.braced(limits));
  }
  return format("kiln::window({}, {}, {}{})", kernel.name(view.root), kernel.braced(root.shape),
                kernel.braced(view.origin),
                limits == root.shape ? "" : ", " + kernel.braced(limits));
}

template <class T>
std::string list(const std::vector<T>& items) {
  return join(items, ", ", [](const T& item) { return format("{}", item); });
}

// The threads of the copy, seen from one of them.
Expr thread_of(Kernel& kernel, const ir::Copy& copy) {
  const Expr thread = kernel.thread_in(copy.unit);
  return copy.unit == 0 ? thread - Expr(copy.first) : thread;
}

// A call of one of the functions of copy.cuh; the tile is the shared side.
void emit_vectors(Kernel& kernel, const ir::Copy& copy, const CopySides& sides) {
  const bool out = sides.dst_type.space == ir::Space::kGlobal;
  const ViewType& tile_type = out ? sides.src_type : sides.dst_type;
  const ir::ResolvedView& tile = out ? sides.src : sides.dst;
  const auto& guarded = out ? sides.dst_guarded : sides.src_guarded;
  const std::string window = window_text(kernel, out ? sides.dst : sides.src, guarded);
  const std::string shape =
      tile_type.shape.size() == 2
          ? ""
          : format(", kiln::Shape<{}>", join(tile_type.shape, ", ", [&](const Expr& extent) {
                     return kernel.text(extent);
                   }));
  kernel.requirements.headers.insert("copy.cuh");
  const char* function = out ? "copy_out" : copy.grouped ? "copy_async" : "copy_in";
  const std::string tile_name = tile_text(kernel, tile, tile_type);
  kernel.out.call(
      format("kiln::{}<{}, kiln::Guarded<{}>, kiln::Widths<{}>{}>", function, copy.threads,
             list(guarded), list(copy.widths), shape),
      {out ? window : tile_name, out ? tile_name : window, kernel.text(thread_of(kernel, copy))});
}

// Element by element: the form that every pair of memories and every shape has.
void emit_elements(Kernel& kernel, const ir::Copy& copy, const CopySides& sides) {
  const std::vector<Expr>& shape = sides.dst_type.shape;
  const std::vector<Expr> index = unflatten(shape, Expr::var(kernel.counter));
  std::vector<Expr> from = index;
  for (std::size_t d = 0; d < copy.permutation.size(); ++d) {
    from[static_cast<std::size_t>(copy.permutation[d])] = index[d];
  }
  const std::string src = element(kernel, sides.src, from);
  const std::string dst = element(kernel, sides.dst, index);
  const std::string readable = inside(kernel, sides.src, from, sides.src_guarded, sides.src_before);
  const std::string writable =
      inside(kernel, sides.dst, index, sides.dst_guarded, sides.dst_before);
  std::string each = readable.empty() ? format("{} = {};", dst, src)
                                      : format("{} = {} ? {} : kiln::zero<{}>();", dst, readable,
                                               src, type_name(sides.dst_type.dtype));
  if (!writable.empty()) each = format("if ({}) {}", writable, each);
  const std::string& i = kernel.name(kernel.counter);
  if (copy.way == ir::CopyWay::kPerThread) {
    if (elements(shape).constant()) kernel.out.line("#pragma unroll");
    element_loop(kernel, Expr(0), "++" + i, elements(shape), each);
  } else {
    const std::string step =
        copy.threads == 0 ? std::string("blockDim.x") : format("{}", copy.threads);
    element_loop(kernel, thread_of(kernel, copy), format("{} += {}", i, step), elements(shape),
                 each);
  }
  if (copy.grouped) {
    // Waits count groups: this copy is one of them, though nothing of it is still under way.
    kernel.requirements.headers.insert("memory.cuh");
    kernel.out.line("kiln::cp_async_commit();");
  }
}

}  // namespace

void emit_op(Kernel& kernel, const Op&, const ir::Splat& splat) {
  const ViewType& type = kernel.function.view_type(splat.view);
  const ir::ResolvedView view = ir::resolve_view(kernel.function, splat.view);
  const std::vector<Expr> index = unflatten(type.shape, Expr::var(kernel.counter));
  const std::string target = element(kernel, view, index);
  const std::string writable = inside(kernel, view, index, splat.guarded, splat.before);
  const std::string each =
      format("{}{} = {};", writable.empty() ? std::string() : format("if ({}) ", writable), target,
             scalar(kernel, splat.value).text);
  const std::string& i = kernel.name(kernel.counter);
  if (splat.unit == 1) {
    if (elements(type.shape).constant()) kernel.out.line("#pragma unroll");
    element_loop(kernel, Expr(0), "++" + i, elements(type.shape), each);
    return;
  }
  const std::string step =
      splat.threads == 0 ? std::string("blockDim.x") : format("{}", splat.threads);
  element_loop(kernel, kernel.thread_in(splat.unit) - Expr(splat.first),
               format("{} += {}", i, step), elements(type.shape), each);
}

void emit_op(Kernel& kernel, const Op&, const ir::Copy& copy) {
  switch (copy.way) {
    case ir::CopyWay::kUndecided: break;
    case ir::CopyWay::kBulk: return emit_bulk_copy(kernel, copy);
    case ir::CopyWay::kVector:
    case ir::CopyWay::kAsync:
    case ir::CopyWay::kGather: return emit_vectors(kernel, copy, copy_sides(kernel.function, copy));
    case ir::CopyWay::kElement:
    case ir::CopyWay::kPerThread:
      return emit_elements(kernel, copy, copy_sides(kernel.function, copy));
  }
  KILN_UNREACHABLE("a copy of which nothing is decided");
}

}  // namespace kiln::emit
