// Rules of memory and of the matrix unit: element types, ranks and shapes, before anything is
// decided.
#include <map>
#include <numeric>

#include "ir/effects.h"
#include "ir/names.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "ir/rules.h"
#include "ir/tensor_map.h"
#include "support/tensor.h"
#include "target/copy.h"
#include "target/fragment.h"

namespace kiln::ir {

namespace {

// The shape in numbers, when all extents are.
std::optional<std::vector<std::int64_t>> constant_shape(const ViewType& view) {
  std::vector<std::int64_t> shape;
  for (const Expr& extent : view.shape) {
    const std::optional<std::int64_t> value = extent.constant();
    if (!value) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

bool positive_and_small(DType dtype, const std::vector<std::int64_t>& shape) {
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t e) { return e >= 1; }) &&
         elements_fit(dtype, shape);
}

std::string shape_of(const Function& f, const ViewType& view) {
  return format("[{}]", join(view.shape, ", ", [&](const Expr& e) { return f.text(e); }));
}

void allocs_have_sizes(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Alloc>(f, [&](const Alloc&, OpId id) {
    const ValueId result = f.ops[id].result;
    if (const FragType* frag = type_as<FragType>(f, result)) {
      if (!positive_and_small(frag->dtype, {frag->rows, frag->cols})) {
        complain(mistakes, f, id, "no size of a fragment");
      }
      return;
    }
    const ViewType* view = type_as<ViewType>(f, result);
    if (view == nullptr) return;
    const std::optional<std::vector<std::int64_t>> shape = constant_shape(*view);
    const bool at_launch =
        view->space == Space::kShared &&
        std::ranges::all_of(view->shape, [&](const Expr& e) { return known_at_launch(f, e); });
    if (!shape && view->space != Space::kGlobal && !at_launch) {
      complain(mistakes, f, id, "a {} buffer of unknown size", name_of(view->space));
    }
    if (shape && !positive_and_small(view->dtype, *shape)) {
      complain(mistakes, f, id, "no size of a buffer");
    }
  });
}

void allocs_are_in_place(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    if (f.ops[id].kind() != OpKind::kAlloc) return;
    const ValueId result = f.ops[id].result;
    const ViewType* view = type_as<ViewType>(f, result);
    if (view == nullptr && type_as<FragType>(f, result) == nullptr &&
        type_as<CellType>(f, result) == nullptr) {
      complain(mistakes, f, id, "allocates neither a view nor a fragment nor a cell");
      return;
    }
    const bool on_host = innermost_parallel(f, enclosing) == nullptr;
    const bool host_kind = view != nullptr && view->space == Space::kGlobal;
    const bool either =
        type_as<CellType>(f, result) != nullptr;  // a cell of the host is the host's
    if (either || on_host == host_kind) return;
    complain(mistakes, f, id, "{} a launch", on_host ? "outside" : "inside");
  });
}

std::optional<DType> element_type(const Function& f, ValueId value) {
  if (const auto* view = type_as<ViewType>(f, value)) return view->dtype;
  if (const auto* frag = type_as<FragType>(f, value)) return frag->dtype;
  if (const auto* cell = type_as<CellType>(f, value)) return cell->dtype;
  return std::nullopt;
}

void initial_values_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Alloc>(f, [&](const Alloc& alloc, OpId id) {
    const std::optional<DType> dtype = element_type(f, f.ops[id].result);
    if (!alloc.initial.valid() || !dtype || is_scalar_of(f, alloc.initial, *dtype)) return;
    complain(mistakes, f, id, "`%{}` is no {}", f.values[alloc.initial].name, name(*dtype));
  });
}

void subviews_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Subview>(f, [&](const Subview& window, OpId id) {
    const ViewType* base = type_as<ViewType>(f, window.base);
    const ViewType* result = type_as<ViewType>(f, f.ops[id].result);
    if (base == nullptr || result == nullptr) {
      complain(mistakes, f, id, "a window needs a view and gives one");
      return;
    }
    if (window.origin.size() != base->shape.size()) {
      complain(mistakes, f, id, "an origin of rank {} in a base of rank {}", window.origin.size(),
               base->shape.size());
    }
    const auto rank = static_cast<std::int64_t>(base->shape.size());
    if (window.drop < 0 || window.drop > rank ||
        static_cast<std::int64_t>(result->shape.size()) != rank - window.drop) {
      complain(mistakes, f, id, "rank {} less {} dropped does not give rank {}", rank, window.drop,
               result->shape.size());
    }
    if (base->dtype != result->dtype || base->space != result->space) {
      complain(mistakes, f, id, "a window of {} {} onto {} {}", name_of(result->space),
               name(result->dtype), name_of(base->space), name(base->dtype));
    }
  });
}

// The hardware guards global memory only: a bulk copy's window on chip is no larger than its base.
void bulk_windows_are_no_larger(const Module&, const Function& f, Mistakes& mistakes) {
  const auto look = [&](ValueId view, OpId id) {
    const auto* window = f.def_as<Subview>(view);
    const ViewType* base = window == nullptr ? nullptr : type_as<ViewType>(f, window->base);
    const ViewType* type = type_as<ViewType>(f, view);
    if (base == nullptr || type == nullptr || base->space == Space::kGlobal) return;
    if (type->shape.size() > base->shape.size()) return;
    const std::size_t dropped = base->shape.size() - type->shape.size();
    for (std::size_t d = 0; d < type->shape.size(); ++d) {
      const auto here = type->shape[d].constant();
      const auto there = base->shape[dropped + d].constant();
      if (!here || !there || *here <= *there) continue;
      complain(mistakes, f, id, "{} of {} elements in `%{}`", *here, *there, f.values[view].name);
    }
  };
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (!copy.bulk && copy.way != CopyWay::kBulk) return;
    for (const ValueId side : {copy.src, copy.dst}) {
      for (ValueId view = side; view.valid();) {
        look(view, id);
        const auto* window = f.def_as<Subview>(view);
        view = window == nullptr ? ValueId{} : window->base;
      }
    }
  });
}

// A tensor map is of a buffer from its first element on, and of rows that follow each other.
void bulk_copies_know_their_buffer(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (!copy.bulk && copy.way != CopyWay::kBulk) return;
    for (const ValueId side : {copy.src, copy.dst}) {
      const ViewType* type = type_as<ViewType>(f, side);
      if (type == nullptr || type->space != Space::kGlobal) continue;
      ValueId root = side;
      while (const auto* window = f.def_as<Subview>(root)) root = window->base;
      if (is_mappable(f, root)) continue;
      complain(mistakes, f, id, "`%{}` has gaps, or begins inside of its buffer",
               f.values[root].name);
    }
  });
}

// Bulk copies add to global memory alone, and only what the hardware adds.
void additions_are_supported(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* type = type_as<ViewType>(f, copy.dst);
    if (!copy.adds || type == nullptr) return;
    if (!copy.bulk || type->space != Space::kGlobal) {
      complain(mistakes, f, id, "adds, but is no bulk copy to global memory");
    }
    if (!target::adds_in_bulk(type->dtype)) {
      complain(mistakes, f, id, "bulk copies do not add {}", name(type->dtype));
    }
  });
}

// An alias is another shape of a whole buffer: of a parameter or an allocation itself.
void aliases_have_buffers(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Alias>(f, [&](const Alias& alias, OpId id) {
    const ViewType* base = type_as<ViewType>(f, alias.base);
    const ViewType* result = type_as<ViewType>(f, f.ops[id].result);
    if (base == nullptr || result == nullptr) {
      complain(mistakes, f, id, "an alias needs a buffer and gives a view");
      return;
    }
    if (f.values[alias.base].def.valid() && f.def_as<Alloc>(alias.base) == nullptr) {
      complain(mistakes, f, id, "`%{}` is no whole buffer", f.values[alias.base].name);
    }
    if (base->dtype != result->dtype || base->space != result->space) {
      complain(mistakes, f, id, "{} {} as {} {}", name_of(base->space), name(base->dtype),
               name_of(result->space), name(result->dtype));
    }
    if (result->space != Space::kGlobal && !constant_shape(*result)) {
      complain(mistakes, f, id, "a {} view of unknown size", name_of(result->space));
    }
    if (!alias.strides.empty() && alias.strides.size() != result->shape.size()) {
      complain(mistakes, f, id, "{} strides for {} dimensions", alias.strides.size(),
               result->shape.size());
    }
    const bool plain = alias.strides.empty() && alias.offset.is(0);
    if (!plain && base->space != Space::kGlobal) {
      complain(mistakes, f, id, "strides or an offset in {} memory", name_of(base->space));
    }
  });
}

// Without strides of its own, what it reaches ends where the buffer does.
void aliases_stay_inside(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Alias>(f, [&](const Alias& alias, OpId id) {
    const ViewType* base = type_as<ViewType>(f, alias.base);
    const ViewType* result = type_as<ViewType>(f, f.ops[id].result);
    if (base == nullptr || result == nullptr) return;
    const auto there = constant_shape(*base);
    const auto wanted = constant_shape(*result);
    if (!alias.strides.empty() || !alias.offset.constant() || !there || !wanted) return;
    if (!positive_and_small(base->dtype, *there) || !positive_and_small(base->dtype, *wanted)) {
      return;
    }
    const auto count = [](const std::vector<std::int64_t>& shape) {
      return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    };
    const std::int64_t end = *alias.offset.constant() + count(*wanted);
    if (end > count(*there)) {
      complain(mistakes, f, id, "reaches element {} of {}", end - 1, count(*there));
    }
  });
}

void splats_fill_views(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Splat>(f, [&](const Splat& splat, OpId id) {
    const ViewType* view = type_as<ViewType>(f, splat.view);
    if (!splat.view.valid()) return;
    if (view == nullptr) {
      complain(mistakes, f, id, "`%{}` is no view", f.values[splat.view].name);
      return;
    }
    if (splat.value.valid() && !is_scalar_of(f, splat.value, view->dtype)) {
      complain(mistakes, f, id, "`%{}` is no {}", f.values[splat.value].name, name(view->dtype));
    }
    if (view->space == Space::kLocal && splat.unit != 1) {
      complain(mistakes, f, id, "local memory belongs to one thread");
    }
  });
}

// In shared memory, by threads whose cluster's blocks can all have come by.
void reads_of_other_blocks_are_possible(const Module&, const Function& f, Mistakes& mistakes) {
  const auto look = [&](const auto& self, RegionId region, const Parallel* launch,
                        bool apart) -> void {
    for (const OpId id : f.regions[region].ops) {
      const Op& op = f.ops[id];
      const auto* parallel = std::get_if<Parallel>(&op.data);
      const bool launches = parallel != nullptr && parallel->level == Level::kBlock;
      for (const RegionId inner : regions_of(op)) {
        self(self, inner, launches ? parallel : launch, apart || op.kind() == OpKind::kInthreads);
      }
      const auto* read = std::get_if<Read>(&op.data);
      if (read == nullptr || read->block.empty()) continue;
      const ViewType* view = type_as<ViewType>(f, read->view);
      if (view != nullptr && view->space != Space::kShared) {
        complain(mistakes, f, id, "another block's {} memory", name_of(view->space));
      }
      const std::size_t axes = launch == nullptr ? 0 : launch->cluster.size();
      if (read->block.size() != axes) {
        complain(mistakes, f, id, "{} numbers of a block for {} axes of a cluster",
                 read->block.size(), axes);
      }
      if (apart) complain(mistakes, f, id, "another block's memory in an inthreads region");
    }
  };
  look(look, f.body, nullptr, false);
}

void permutations_permute(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (copy.permutation.empty() || dst == nullptr) return;
    std::vector<std::int64_t> sorted = copy.permutation;
    std::sort(sorted.begin(), sorted.end());
    bool is_permutation = sorted.size() == dst->shape.size();
    for (std::size_t d = 0; d < sorted.size(); ++d) {
      is_permutation = is_permutation && sorted[d] == static_cast<std::int64_t>(d);
    }
    if (!is_permutation) complain(mistakes, f, id, "no permutation of its dimensions");
  });
}

void copies_join_views(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if ((copy.src.valid() && src == nullptr) || (copy.dst.valid() && dst == nullptr)) {
      complain(mistakes, f, id, "copies between views only");
    }
  });
}

void copy_ranks_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (src == nullptr || dst == nullptr || src->shape.size() == dst->shape.size()) return;
    complain(mistakes, f, id, "{} to {}", shape_of(f, *src), shape_of(f, *dst));
  });
}

void copy_dtypes_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (src == nullptr || dst == nullptr || src->dtype == dst->dtype) return;
    complain(mistakes, f, id, "{} to {}", name(src->dtype), name(dst->dtype));
  });
}

bool is_unit(std::int64_t threads) {
  return threads == 0 || threads == 1 || threads == target::kWarpLanes ||
         threads == target::kWarpgroupLanes;
}

void copy_units_are_known(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (!is_unit(copy.unit)) complain(mistakes, f, id, "no unit has {} threads", copy.unit);
  });
  for_each_op<Splat>(f, [&](const Splat& splat, OpId id) {
    if (!is_unit(splat.unit)) complain(mistakes, f, id, "no unit has {} threads", splat.unit);
  });
}

// The view and index of an element access; null for other operations.
struct Access {
  ValueId view;
  const std::vector<Expr>* index = nullptr;
  ValueId element;
};
Access access_of(const Op& op) {
  Access out;
  for_each_touch(op, [&](const Touch& touch) {
    if (touch.index != nullptr) out = {touch.value, touch.index, op.result};
  });
  if (const auto* write = std::get_if<Write>(&op.data)) out.element = write->value;
  return out;
}

void element_ranks_agree(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const Access access = access_of(f.ops[id]);
    if (!access.view.valid()) return;
    const ViewType* view = type_as<ViewType>(f, access.view);
    if (view == nullptr) {
      complain(mistakes, f, id, "`%{}` is no view", f.values[access.view].name);
    } else if (view->shape.size() != access.index->size()) {
      complain(mistakes, f, id, "an index of rank {} into {}", access.index->size(),
               shape_of(f, *view));
    }
  });
}

void element_dtypes_agree(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const Access access = access_of(f.ops[id]);
    const ViewType* view = type_as<ViewType>(f, access.view);
    if (view == nullptr || !access.element.valid()) return;
    if (is_scalar_of(f, access.element, view->dtype)) return;
    complain(mistakes, f, id, "`%{}` is no {}", f.values[access.element].name, name(view->dtype));
  });
}

// What the hardware has no instruction for, and operands of another type.
void atomics_are_supported(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Atomic>(f, [&](const Atomic& atomic, OpId id) {
    const ViewType* view = type_as<ViewType>(f, atomic.view);
    if (view == nullptr) return;
    if (view->space == Space::kLocal) complain(mistakes, f, id, "in local memory");
    if (!target::supports(atomic.kind, view->dtype)) {
      complain(mistakes, f, id, "no `{}` of {}", name_of(atomic.kind), name(view->dtype));
    }
    if (atomic.compare.valid() != (atomic.kind == target::Atomic::kCas)) {
      complain(mistakes, f, id, "`compare` is for `cas`");
    }
    for (const ValueId operand : {atomic.value, atomic.compare}) {
      if (!operand.valid() || is_scalar_of(f, operand, view->dtype)) continue;
      complain(mistakes, f, id, "`%{}` is no {}", f.values[operand].name, name(view->dtype));
    }
  });
}

void unused_results_have_no_users(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    for_each_operand(f.ops[id], [&](std::string_view, ValueId value) {
      const auto* atomic = value.valid() ? f.def_as<Atomic>(value) : nullptr;
      if (atomic == nullptr || !atomic->unused) return;
      complain(mistakes, f, id, "`%{}` is said to be unused", f.values[value].name);
    });
  });
}

void fills_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Fill>(f, [&](const Fill& fill, OpId id) {
    const FragType* frag = type_as<FragType>(f, fill.frag);
    if (fill.frag.valid() && frag == nullptr) {
      complain(mistakes, f, id, "`%{}` is no fragment", f.values[fill.frag].name);
    }
    if (frag == nullptr || !fill.value.valid() || is_scalar_of(f, fill.value, frag->dtype)) return;
    complain(mistakes, f, id, "`%{}` is no {}", f.values[fill.value].name, name(frag->dtype));
  });
}

bool has_shape(const ViewType& view, std::int64_t rows, std::int64_t cols) {
  return view.shape.size() == 2 && view.shape[0].is(rows) && view.shape[1].is(cols);
}

void loads_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Load>(f, [&](const Load& load, OpId id) {
    const FragType* frag = type_as<FragType>(f, load.frag);
    const ViewType* view = type_as<ViewType>(f, load.view);
    if (frag == nullptr || view == nullptr) {
      complain(mistakes, f, id, "loads a view into a fragment");
      return;
    }
    // f32 is rounded to tf32 on the way.
    if (frag->dtype != view->dtype && frag->dtype != target::operand_type(view->dtype)) {
      complain(mistakes, f, id, "{} into a fragment of {}", name(view->dtype), name(frag->dtype));
    }
    if (!has_shape(*view, frag->rows, frag->cols)) {
      complain(mistakes, f, id, "{} into a fragment of {}x{}", shape_of(f, *view), frag->rows,
               frag->cols);
    }
  });
}

// Where the instruction is chosen, the columns must be consecutive registers of every lane.
bool is_run_of_registers(const Function& f, const Store& store, const FragType& frag,
                         std::int64_t columns) {
  const auto* alloc = f.def_as<Alloc>(store.frag);
  if (alloc == nullptr || (alloc->atom == nullptr && !alloc->registers.valid())) return true;
  if (alloc->registers.valid()) return store.first_column == 0 && columns == frag.cols;
  const target::MmaShape& atom = alloc->atom->shape;
  if (frag.rows % atom.m != 0 || frag.cols % atom.n != 0) return true;  // allocs are asked for that
  const target::Fragment whole = target::fragment_layout(
      *alloc->atom, target::Operand::kC, static_cast<int>(frag.rows), static_cast<int>(frag.cols));
  return target::columns_of(whole, static_cast<int>(store.first_column), static_cast<int>(columns))
      .has_value();
}

void stores_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Store>(f, [&](const Store& store, OpId id) {
    const FragType* frag = type_as<FragType>(f, store.frag);
    const ViewType* view = type_as<ViewType>(f, store.view);
    const bool is_value = frag != nullptr && (frag->role == Role::kC || frag->role == Role::kTile);
    if (!is_value || view == nullptr) {
      complain(mistakes, f, id, "stores an accumulator or a tile into a view");
      return;
    }
    const std::size_t column_side = store.transposed ? 0 : 1;
    const auto columns =
        view->shape.size() == 2 ? view->shape[column_side].constant() : std::nullopt;
    const bool is_part =
        columns && store.first_column >= 0 && store.first_column + *columns <= frag->cols;
    if (is_part && view->shape[1 - column_side].is(frag->rows)) {
      if (is_run_of_registers(f, store, *frag, *columns)) return;
      complain(mistakes, f, id, "{} columns from {} are no run of registers", *columns,
               store.first_column);
      return;
    }
    complain(mistakes, f, id, "{}x{} from column {} into {}", frag->rows, frag->cols,
             store.first_column, shape_of(f, *view));
  });
}

void mma_roles_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    const std::pair<ValueId, Role> operands[] = {
        {mma.c, Role::kC}, {mma.a, Role::kA}, {mma.b, Role::kB}, {mma.metadata, Role::kMetadata}};
    for (const auto& [value, role] : operands) {
      const FragType* frag = type_as<FragType>(f, value);
      if (!value.valid() || (frag != nullptr && frag->role == role)) continue;
      complain(mistakes, f, id, "`%{}` is no {} fragment", f.values[value].name, name_of(role));
    }
  });
}

void mma_shapes_agree(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    const FragType* a = type_as<FragType>(f, mma.a);
    const FragType* b = type_as<FragType>(f, mma.b);
    const FragType* c = type_as<FragType>(f, mma.c);
    if (a == nullptr || b == nullptr || c == nullptr) return;
    const bool a_row = mma.a_major == Major::kRow;
    const bool b_row = mma.b_major == Major::kRow;
    const auto same = [&](std::string_view axis, std::int64_t left, std::int64_t right) {
      if (left != right) complain(mistakes, f, id, "{} is {} and {}", axis, left, right);
    };
    const std::int64_t kept = mma.metadata.valid() ? 2 : 1;
    same("K", kept * (a_row ? a->cols : a->rows), b_row ? b->cols : b->rows);
    same("M", a_row ? a->rows : a->cols, c->rows);
    same("N", b_row ? b->rows : b->cols, c->cols);
  });
}

void scales_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Scale>(f, [&](const Scale& scale, OpId id) {
    const FragType* c = type_as<FragType>(f, scale.c);
    const FragType* partial = type_as<FragType>(f, scale.partial);
    const ViewType* factors = type_as<ViewType>(f, scale.factors);
    if (c == nullptr || partial == nullptr || c->role != Role::kC || !(*c == *partial)) {
      complain(mistakes, f, id, "scales no two accumulators of one shape");
      return;
    }
    const bool sums = c->dtype == DType::kF32 || c->dtype == DType::kF16;
    if (!sums) complain(mistakes, f, id, "accumulates in {}", name(c->dtype));
    const bool fits = factors != nullptr && factors->dtype == DType::kF32 &&
                      (has_shape(*factors, c->rows, 1) || has_shape(*factors, 1, c->rows));
    if (!fits) complain(mistakes, f, id, "has no factor for each of {} rows", c->rows);
    if (scale.factor.valid() && !is_scalar_of(f, scale.factor, DType::kF32)) {
      complain(mistakes, f, id, "`%{}` is no f32", f.values[scale.factor].name);
    }
  });
}

void reductions_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Reduce>(f, [&](const Reduce& reduce, OpId id) {
    const FragType* frag = type_as<FragType>(f, reduce.frag);
    const FragType* source = type_as<FragType>(f, reduce.source);
    if (frag == nullptr || source == nullptr || reduce.dimension < 0 || reduce.dimension > 1) {
      complain(mistakes, f, id, "makes a dimension of a tile one element");
      return;
    }
    const std::int64_t rows = reduce.dimension == 0 ? reduce.parts : source->rows;
    const std::int64_t cols = reduce.dimension == 1 ? reduce.parts : source->cols;
    if (frag->rows == rows && frag->cols == cols) return;
    complain(mistakes, f, id, "{}x{} of {}x{}", frag->rows, frag->cols, source->rows, source->cols);
  });
}

void votes_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Vote>(f, [&](const Vote& vote, OpId id) {
    const FragType* frag = type_as<FragType>(f, vote.frag);
    if (frag == nullptr || frag->role != Role::kTile || is_sub_byte(frag->dtype)) {
      complain(mistakes, f, id, "asks no tile that is computed with");
    }
    if (!is_scalar_of(f, f.ops[id].result, DType::kBool)) {
      complain(mistakes, f, id, "gives no bool");
    }
  });
}

void scans_and_conversions_fit(const Module&, const Function& f, Mistakes& mistakes) {
  const auto check = [&](ValueId to, ValueId from, OpId id) {
    const FragType* frag = type_as<FragType>(f, to);
    const FragType* source = type_as<FragType>(f, from);
    const bool fits = frag != nullptr && source != nullptr && frag->rows == source->rows &&
                      frag->cols == source->cols;
    if (!fits) complain(mistakes, f, id, "joins no two tiles of one shape");
    return fits;
  };
  for_each_op<Scan>(f, [&](const Scan& scan, OpId id) {
    if (check(scan.frag, scan.source, id) && (scan.dimension < 0 || scan.dimension > 1)) {
      complain(mistakes, f, id, "dimension {}", scan.dimension);
    }
  });
  for_each_op<Convert>(f, [&](const Convert& convert, OpId id) {
    if (!check(convert.frag, convert.source, id)) return;
    const DType to = type_as<FragType>(f, convert.frag)->dtype;
    const DType from = type_as<FragType>(f, convert.source)->dtype;
    if (to != from && to != target::operand_type(from)) {
      complain(mistakes, f, id, "{} into {}", name(from), name(to));
    }
  });
}

// A row has as many bits before and after.
void recasts_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Recast>(f, [&](const Recast& recast, OpId id) {
    const FragType* frag = type_as<FragType>(f, recast.frag);
    const FragType* source = type_as<FragType>(f, recast.source);
    const auto has_bits = [](const FragType* type) {
      return type != nullptr && !is_sub_byte(type->dtype) && type->dtype != DType::kBool;
    };
    if (!has_bits(frag) || !has_bits(source) || frag->role != Role::kTile ||
        source->role == Role::kMetadata) {
      return complain(mistakes, f, id, "makes a tile of no tile");
    }
    if (frag->rows == source->rows &&
        frag->cols * info(frag->dtype).bits == source->cols * info(source->dtype).bits) {
      return;
    }
    complain(mistakes, f, id, "{}x{} {} of {}x{} {}", frag->rows, frag->cols, name(frag->dtype),
             source->rows, source->cols, name(source->dtype));
  });
}

// A fragment's registers are filled for one way of contracting; the Mma must contract that way.
void load_majors_agree(const Module&, const Function& f, Mistakes& mistakes) {
  std::map<ValueId, Major> loaded;
  for_each_op<Load>(f, [&](const Load& load, OpId) { loaded[load.frag] = load.major; });
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    const std::pair<ValueId, Major> operands[] = {{mma.a, mma.a_major}, {mma.b, mma.b_major}};
    for (const auto& [value, major] : operands) {
      const auto found = loaded.find(value);
      if (!value.valid() || found == loaded.end() || found->second == major) continue;
      complain(mistakes, f, id, "`%{}` was loaded {} major", f.values[value].name,
               name_of(found->second));
    }
  });
}

constexpr Rule kMemoryRules[] = {
    {"allocs-are-in-place", Form::kTile, allocs_are_in_place},
    {"allocs-have-sizes", Form::kTile, allocs_have_sizes},
    {"initial-values-agree", Form::kTile, initial_values_agree},
    {"subviews-fit", Form::kTile, subviews_fit},
    {"bulk-windows-are-no-larger", Form::kTile, bulk_windows_are_no_larger},
    {"bulk-copies-know-their-buffer", Form::kTile, bulk_copies_know_their_buffer},
    {"additions-are-supported", Form::kTile, additions_are_supported},
    {"aliases-have-buffers", Form::kTile, aliases_have_buffers},
    {"aliases-stay-inside", Form::kTile, aliases_stay_inside},
    {"splats-fill-views", Form::kTile, splats_fill_views},
    {"reads-of-other-blocks-are-possible", Form::kTile, reads_of_other_blocks_are_possible},
    {"permutations-permute", Form::kTile, permutations_permute},
    {"copies-join-views", Form::kTile, copies_join_views},
    {"copy-ranks-agree", Form::kTile, copy_ranks_agree},
    {"copy-dtypes-agree", Form::kTile, copy_dtypes_agree},
    {"copy-units-are-known", Form::kTile, copy_units_are_known},
    {"element-ranks-agree", Form::kTile, element_ranks_agree},
    {"element-dtypes-agree", Form::kTile, element_dtypes_agree},
    {"atomics-are-supported", Form::kTile, atomics_are_supported},
    {"unused-results-have-no-users", Form::kTile, unused_results_have_no_users},
    {"fills-agree", Form::kTile, fills_agree},
    {"loads-fit", Form::kTile, loads_fit},
    {"stores-fit", Form::kTile, stores_fit},
    {"scales-fit", Form::kTile, scales_fit},
    {"reductions-fit", Form::kTile, reductions_fit},
    {"votes-fit", Form::kTile, votes_fit},
    {"scans-and-conversions-fit", Form::kTile, scans_and_conversions_fit},
    {"recasts-fit", Form::kTile, recasts_fit},
    {"mma-roles-agree", Form::kTile, mma_roles_agree},
    {"mma-shapes-agree", Form::kTile, mma_shapes_agree},
    {"load-majors-agree", Form::kAtoms, load_majors_agree},
};

}  // namespace

std::span<const Rule> memory_rules() { return kMemoryRules; }

}  // namespace kiln::ir
