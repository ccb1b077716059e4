// Rules of the decided attributes: what each pass has established.
#include <algorithm>
#include <set>

#include "ir/effects.h"
#include "ir/names.h"
#include "ir/registers.h"
#include "ir/rules.h"
#include "ir/shared_layout.h"
#include "support/tensor.h"

namespace kiln::ir {

namespace {

// --- from kAtoms: the matrix instructions

void mmas_have_atoms(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    if (mma.atom == nullptr) complain(mistakes, f, id, "no instruction is chosen");
  });
}

void mma_atoms_fit(const Module& module, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    if (mma.atom == nullptr) return;
    if (module.arch != nullptr && !module.arch->has(mma.atom->needs)) {
      complain(mistakes, f, id, "{} has no such instruction", module.arch->name);
    }
    const std::pair<ValueId, DType> operands[] = {
        {mma.a, mma.atom->a}, {mma.b, mma.atom->b}, {mma.c, mma.atom->acc}};
    for (const auto& [value, dtype] : operands) {
      const FragType* frag = type_as<FragType>(f, value);
      if (frag == nullptr || frag->dtype == dtype) continue;
      const bool cut_off = mma.atom->reads_shared && target::operand_type(frag->dtype) == dtype;
      if (cut_off && frag->role != Role::kC) continue;
      complain(mistakes, f, id, "`%{}` is {}, the instruction takes {}", f.values[value].name,
               name(frag->dtype), name(dtype));
    }
  });
}

void repeats_make_the_tile(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    const FragType* b = type_as<FragType>(f, mma.b);
    const FragType* c = type_as<FragType>(f, mma.c);
    if (mma.atom == nullptr || b == nullptr || c == nullptr) return;
    const std::int64_t tile[] = {c->rows, c->cols, mma.b_major == Major::kRow ? b->cols : b->rows};
    const std::int64_t shape[] = {mma.atom->shape.m, mma.atom->shape.n, mma.atom->shape.k};
    if (mma.repeats.size() != 3) {
      complain(mistakes, f, id, "{} repeats, there are 3 axes", mma.repeats.size());
      return;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (tile[i] % shape[i] == 0 && tile[i] / shape[i] == mma.repeats[i]) continue;
      complain(mistakes, f, id, "{} times {} is not the tile's {}", mma.repeats[i], shape[i],
               tile[i]);
    }
  });
}

// Instructions that differ in another operand only, as in the type they add up in.
bool have_same_registers(const target::Mma& one, const target::Mma& other,
                         target::Operand operand) {
  return &one == &other || (one.lanes == other.lanes && one.reads_shared == other.reads_shared &&
                            one.sparse == other.sparse && one.shape.k == other.shape.k &&
                            map_of(one, operand) == map_of(other, operand));
}

void fragments_share_the_atom(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    if (mma.atom != nullptr && mma.atom->sparse != mma.metadata.valid()) {
      complain(mistakes, f, id, "{} metadata", mma.atom->sparse ? "without" : "has");
    }
    const std::pair<ValueId, target::Operand> operands[] = {{mma.c, target::Operand::kC},
                                                            {mma.a, target::Operand::kA},
                                                            {mma.b, target::Operand::kB},
                                                            {mma.metadata, target::Operand::kA}};
    for (const auto& [value, operand] : operands) {
      const Alloc* alloc = value.valid() ? f.def_as<Alloc>(value) : nullptr;
      if (mma.atom == nullptr || alloc == nullptr) continue;
      if (alloc->atom != nullptr && have_same_registers(*alloc->atom, *mma.atom, operand)) continue;
      complain(mistakes, f, id, "`%{}` has the registers of {}", f.values[value].name,
               alloc->atom == nullptr ? "no instruction" : alloc->atom->name);
    }
  });
}

// --- from kLaidOut: shared memory

struct SharedTile {
  OpId op;
  const Alloc* alloc = nullptr;
  std::int64_t pitch = 0;  // bytes of a row
  std::int64_t bytes = 0;
};

// The shared buffers of a region that have a size (the others break allocs-have-sizes).
std::vector<SharedTile> shared_tiles(const Function& f, RegionId region) {
  std::vector<SharedTile> tiles;
  walk(f, region, [&](OpId id) {
    const Alloc* alloc = std::get_if<Alloc>(&f.ops[id].data);
    const ViewType* view = type_as<ViewType>(f, f.ops[id].result);
    if (alloc == nullptr || view == nullptr || view->space != Space::kShared) return;
    std::vector<std::int64_t> shape;
    for (const Expr& extent : view->shape) shape.push_back(extent.constant().value_or(0));
    const bool sized = !shape.empty() && std::all_of(shape.begin(), shape.end(),
                                                     [](std::int64_t e) { return e >= 1; });
    if (!sized || !elements_fit(view->dtype, shape)) return;
    SharedTile tile{id, alloc, shape.back() * size_bytes(view->dtype), size_bytes(view->dtype)};
    for (const std::int64_t extent : shape) tile.bytes *= extent;
    tiles.push_back(tile);
  });
  return tiles;
}

void shared_buffers_are_placed(const Module&, const Function& f, Mistakes& mistakes) {
  for (const SharedTile& tile : shared_tiles(f, f.body)) {
    if (tile.alloc->offset < 0) complain(mistakes, f, tile.op, "has no address");
  }
}

void shared_buffers_are_aligned(const Module&, const Function& f, Mistakes& mistakes) {
  for (const SharedTile& tile : shared_tiles(f, f.body)) {
    const std::int64_t alignment = tile.alloc->swizzle == 0 ? 16 : kSwizzledAlignment;
    if (tile.alloc->offset < 0 || tile.alloc->offset % alignment == 0) continue;
    complain(mistakes, f, tile.op, "address {} is no multiple of {}", tile.alloc->offset,
             alignment);
  }
}

void swizzles_fit_the_rows(const Module&, const Function& f, Mistakes& mistakes) {
  for (const SharedTile& tile : shared_tiles(f, f.body)) {
    const std::int64_t swizzle = tile.alloc->swizzle;
    const bool known =
        swizzle == 0 || swizzle == 16 || swizzle == 32 || swizzle == 64 || swizzle == 128;
    if (!known) {
      complain(mistakes, f, tile.op, "no swizzle of {} bytes", swizzle);
    } else if (swizzle != 0 && tile.pitch % swizzle != 0) {
      complain(mistakes, f, tile.op, "rows of {} bytes do not divide by {}", tile.pitch, swizzle);
    }
  }
}

void shared_buffers_are_inside(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Parallel>(f, [&](const Parallel& launch, OpId) {
    if (launch.level != Level::kBlock || !launch.body.valid()) return;
    for (const SharedTile& tile : shared_tiles(f, launch.body)) {
      const bool room = launch.shared_bytes >= tile.bytes;
      if (room && tile.alloc->offset <= launch.shared_bytes - tile.bytes) continue;
      complain(mistakes, f, tile.op, "{} bytes at {} leave the block's {}", tile.bytes,
               tile.alloc->offset, launch.shared_bytes);
    }
  });
}

void shared_buffers_are_apart(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Parallel>(f, [&](const Parallel& launch, OpId) {
    if (launch.level != Level::kBlock || !launch.body.valid()) return;
    std::vector<SharedTile> tiles = shared_tiles(f, launch.body);
    std::erase_if(tiles, [](const SharedTile& tile) { return tile.alloc->offset < 0; });
    std::sort(tiles.begin(), tiles.end(), [](const SharedTile& a, const SharedTile& b) {
      return a.alloc->offset < b.alloc->offset;
    });
    for (std::size_t i = 1; i < tiles.size(); ++i) {
      const SharedTile& before = tiles[i - 1];
      if (tiles[i].alloc->offset - before.alloc->offset >= before.bytes) continue;
      complain(mistakes, f, tiles[i].op, "overlaps {} bytes at {}", before.bytes,
               before.alloc->offset);
    }
  });
}

void shared_memory_suffices(const Module& module, const Function& f, Mistakes& mistakes) {
  for_each_op<Parallel>(f, [&](const Parallel& launch, OpId id) {
    if (module.arch == nullptr || launch.shared_bytes <= module.arch->smem_per_block_max) return;
    complain(mistakes, f, id, "{} bytes of shared memory, {} has {}", launch.shared_bytes,
             module.arch->name, module.arch->smem_per_block_max);
  });
}

// --- from kPlanned: copies, loads and stores

// The side of a copy whose shape is that of the tile: shared or local where there is one.
const ViewType* tile_of(const Function& f, const Copy& copy) {
  const ViewType* src = type_as<ViewType>(f, copy.src);
  const ViewType* dst = type_as<ViewType>(f, copy.dst);
  return dst != nullptr && dst->space == Space::kGlobal ? src : dst;
}

void copies_have_ways(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (copy.way == CopyWay::kUndecided) complain(mistakes, f, id, "no way is chosen");
  });
}

bool moves_vectors(const Copy& copy) {
  return copy.way == CopyWay::kVector || copy.way == CopyWay::kAsync ||
         copy.way == CopyWay::kGather;
}

// Vectors move tiles of a known size between global and shared memory, every dimension to its own;
// they can be cut out of those of 16 bytes.
void vectors_suit_the_copy(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (!moves_vectors(copy) || src == nullptr || dst == nullptr) return;
    const bool in = src->space == Space::kGlobal && dst->space == Space::kShared;
    const bool out = src->space == Space::kShared && dst->space == Space::kGlobal;
    if (!in && !out) {
      complain(mistakes, f, id, "vectors from {} to {} memory", name_of(src->space),
               name_of(dst->space));
    }
    if (!copy.permutation.empty()) complain(mistakes, f, id, "vectors exchange no dimensions");
    for (const Expr& extent : (out ? src : dst)->shape) {
      if (!extent.constant()) complain(mistakes, f, id, "vectors of a tile of any size");
    }
    if (copy.way == CopyWay::kGather && !copy.widths.empty() && copy.widths[0] != 16) {
      complain(mistakes, f, id, "vectors are cut out of those of 16 bytes, its widest are of {}",
               copy.widths[0]);
    }
  });
}

// Asynchronous copies are groups; what the threads of one block move by themselves may be one.
void groups_are_of_threads(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (copy.way == CopyWay::kAsync && !copy.grouped) complain(mistakes, f, id, "is no group");
    const bool none = copy.way == CopyWay::kVector || copy.way == CopyWay::kPerThread ||
                      copy.way == CopyWay::kBulk;
    if (none && copy.grouped) {
      complain(mistakes, f, id, "a group of copies by way of {}", name_of(copy.way));
    }
  });
}

void async_copies_go_to_shared(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (!copy.grouped || src == nullptr || dst == nullptr) return;
    if (src->space == Space::kGlobal && dst->space == Space::kShared) return;
    complain(mistakes, f, id, "cp.async goes from global to shared memory");
  });
}

void copies_have_threads(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const bool alone = copy.way == CopyWay::kPerThread || copy.way == CopyWay::kBulk;
    // Element by element it may be all threads of a block, however many the launch has.
    const bool all = copy.way == CopyWay::kElement && copy.threads == 0 && copy.unit == 0;
    if (copy.way == CopyWay::kUndecided || alone || all || copy.threads >= 1) return;
    complain(mistakes, f, id, "{} threads", copy.threads);
  });
}

bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

void copy_widths_descend(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (copy.widths.empty() != (copy.way == CopyWay::kBulk)) {
      complain(mistakes, f, id, "{} widths", copy.widths.empty() ? "no" : "has");
    }
    for (std::size_t i = 0; i < copy.widths.size(); ++i) {
      const std::int64_t width = copy.widths[i];
      if (!is_power_of_two(width) || width > 16) {
        complain(mistakes, f, id, "no width of {} bytes", width);
      } else if (i > 0 && copy.widths[i - 1] <= width) {
        complain(mistakes, f, id, "width {} after {}", width, copy.widths[i - 1]);
      }
    }
  });
}

void copy_widths_divide_rows(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* tile = tile_of(f, copy);
    if (tile == nullptr || tile->shape.empty()) return;
    const std::optional<std::int64_t> cols = tile->shape.back().constant();
    const std::int64_t size = size_bytes(tile->dtype);
    if (!cols || *cols < 1 || *cols > INT32_MAX) return;
    for (const std::int64_t width : copy.widths) {
      if (width < 1 || (*cols * size % width == 0 && width % size == 0)) continue;
      complain(mistakes, f, id, "rows of {} bytes, elements of {}, width {}", *cols * size, size,
               width);
    }
  });
}

bool ascends_below(const std::vector<std::int64_t>& dims, std::size_t rank) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || static_cast<std::size_t>(dims[i]) >= rank) return false;
    if (i > 0 && dims[i - 1] >= dims[i]) return false;
  }
  return true;
}

void guards_are_dimensions(const Module&, const Function& f, Mistakes& mistakes) {
  const auto look = [&](OpId id, const std::vector<std::int64_t>& guarded, const ViewType* view) {
    if (view == nullptr || ascends_below(guarded, view->shape.size())) return;
    complain(mistakes, f, id, "the guarded dimensions ascend below {}", view->shape.size());
  };
  walk(f, f.body, [&](OpId id) {
    const Op& op = f.ops[id];
    if (const auto* copy = std::get_if<Copy>(&op.data)) {
      look(id, copy->guarded, tile_of(f, *copy));
      look(id, copy->tile_guarded, tile_of(f, *copy));
      look(id, copy->before, tile_of(f, *copy));
      look(id, copy->src_limited, type_as<ViewType>(f, copy->src));
      look(id, copy->dst_limited, type_as<ViewType>(f, copy->dst));
    }
    if (const auto* load = std::get_if<Load>(&op.data)) {
      look(id, load->guarded, type_as<ViewType>(f, load->view));
      look(id, load->before, type_as<ViewType>(f, load->view));
    }
    if (const auto* store = std::get_if<Store>(&op.data)) {
      look(id, store->guarded, type_as<ViewType>(f, store->view));
      look(id, store->before, type_as<ViewType>(f, store->view));
    }
    if (const auto* splat = std::get_if<Splat>(&op.data)) {
      look(id, splat->guarded, type_as<ViewType>(f, splat->view));
      look(id, splat->before, type_as<ViewType>(f, splat->view));
    }
    if (const auto* scale = std::get_if<Scale>(&op.data)) {
      look(id, scale->guarded, type_as<ViewType>(f, scale->factors));
      look(id, scale->before, type_as<ViewType>(f, scale->factors));
    }
  });
}

// Vectors may straddle a limit of global memory, where the engines cut them, but of no other.
void guarded_tiles_move_by_element(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (src == nullptr || dst == nullptr || copy.widths.empty()) return;
    if (copy.way == CopyWay::kUndecided || copy.way == CopyWay::kBulk) return;
    const bool far_is_global = src->space == Space::kGlobal || dst->space == Space::kGlobal;
    const bool within = copy.tile_guarded.empty() && copy.before.empty();
    const bool one_width = copy.widths[0] == size_bytes(dst->dtype);
    if (!moves_vectors(copy) && one_width) return;
    if (moves_vectors(copy) && within && (far_is_global || copy.guarded.empty())) return;
    const std::string_view what =
        moves_vectors(copy) ? "a guarded side that vectors must not straddle" : "single elements";
    complain(mistakes, f, id, "{}, and vectors of {} bytes", what, copy.widths[0]);
  });
}

// The hardware moves boxes between global and shared memory, and boxes tile the shared side.
void boxes_tile(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    const ViewType* src = type_as<ViewType>(f, copy.src);
    const ViewType* dst = type_as<ViewType>(f, copy.dst);
    if (copy.way != CopyWay::kBulk || src == nullptr || dst == nullptr) return;
    const bool loads = dst->space == Space::kShared;
    if ((loads ? src : dst)->space != Space::kGlobal ||
        (loads ? dst : src)->space != Space::kShared) {
      complain(mistakes, f, id, "a bulk copy from {} to {}", name_of(src->space),
               name_of(dst->space));
      return;
    }
    if (!copy.permutation.empty()) complain(mistakes, f, id, "a bulk copy exchanges no dimensions");
    const ViewType& tile = *(loads ? dst : src);
    if (copy.box.size() != tile.shape.size()) {
      complain(mistakes, f, id, "a box of {} dimensions for a tile of {}", copy.box.size(),
               tile.shape.size());
      return;
    }
    for (std::size_t d = 0; d < copy.box.size(); ++d) {
      const std::int64_t extent = tile.shape[d].constant().value_or(0);
      const bool fits = copy.box[d] >= 1 && extent >= 1 && extent % copy.box[d] == 0;
      if (!fits) complain(mistakes, f, id, "boxes of {} in {} elements", copy.box[d], extent);
    }
  });
}

void loads_are_planned(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Load>(f, [&](const Load& load, OpId id) {
    const int ways = (load.instruction != nullptr ? 1 : 0) + (load.element_run >= 1 ? 1 : 0) +
                     (load.in_shared ? 1 : 0);
    if (ways == 1) return;
    complain(mistakes, f, id, "{} of an instruction, runs of elements and a descriptor", ways);
  });
}

// A descriptor's distances are what its 14 bits hold, in units of 16 bytes.
void descriptors_fit(const Module&, const Function& f, Mistakes& mistakes) {
  constexpr std::int64_t kUnit = 16;
  constexpr std::int64_t kLimit = (1 << 14) * kUnit;
  for_each_op<Load>(f, [&](const Load& load, OpId id) {
    if (!load.in_shared) return;
    const ViewType* view = type_as<ViewType>(f, load.view);
    if (view != nullptr && view->space != Space::kShared) {
      complain(mistakes, f, id, "a descriptor of memory that is not shared");
    }
    for (const std::int64_t distance : {load.leading, load.stride}) {
      if (distance >= 0 && distance < kLimit && distance % kUnit == 0) continue;
      complain(mistakes, f, id, "a descriptor cannot hold a distance of {} bytes", distance);
    }
  });
}

// Operands in shared memory have a step for each repetition along K.
// The order that the program wants has each part of K once.
void orders_are_permutations(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    if (mma.order.empty() || mma.repeats.size() != 3) return;
    std::vector<std::int64_t> parts(mma.order);
    std::ranges::sort(parts);
    bool each_once = static_cast<std::int64_t>(parts.size()) == mma.repeats[2];
    for (std::size_t i = 0; i < parts.size() && each_once; ++i) {
      each_once = parts[i] == static_cast<std::int64_t>(i);
    }
    if (each_once) return;
    complain(mistakes, f, id, "its order is none of {} parts along K", mma.repeats[2]);
  });
}

void mma_steps_are_given(const Module&, const Function& f, Mistakes& mistakes) {
  std::set<ValueId> in_shared;
  for_each_op<Load>(f, [&](const Load& load, OpId) {
    if (load.in_shared) in_shared.insert(load.frag);
  });
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    if (mma.atom == nullptr || mma.repeats.size() != 3) return;
    const std::pair<ValueId, const std::vector<std::int64_t>*> operands[] = {{mma.a, &mma.a_steps},
                                                                             {mma.b, &mma.b_steps}};
    for (const auto& [value, steps] : operands) {
      const bool shared = in_shared.contains(value);
      const auto wanted = static_cast<std::size_t>(shared ? mma.repeats[2] : 0);
      if (steps->size() == wanted && shared <= mma.atom->reads_shared) continue;
      complain(mistakes, f, id, "`%{}` has {} steps along K, {} repetitions", f.values[value].name,
               steps->size(), mma.repeats[2]);
    }
    if (mma.atom->reads_shared && !in_shared.contains(mma.b)) {
      complain(mistakes, f, id, "`%{}` is not in shared memory", f.values[mma.b].name);
    }
  });
}

// Products that begin their sum can do so, and know when; a fill is left out where one does.
void sums_begin_with_products(const Module&, const Function& f, Mistakes& mistakes) {
  std::set<OpId> in_first_trips;
  for_each_op<For>(f, [&](const For& loop, OpId) {
    for (const OpId id : f.regions[loop.body].ops) {
      const Mma* mma = std::get_if<Mma>(&f.ops[id].data);
      if (mma != nullptr && mma->adds == Expr::var(loop.var) - loop.lower)
        in_first_trips.insert(id);
    }
  });
  std::set<ValueId> begun;
  for_each_op<Mma>(f, [&](const Mma& mma, OpId id) {
    if (mma.adds.is(1)) return;
    begun.insert(mma.c);
    const FragType* c = type_as<FragType>(f, mma.c);
    if (c == nullptr || !can_begin_sums(mma.atom, c->dtype)) {
      complain(mistakes, f, id, "cannot begin a sum");
    }
    if (mma.adds.is(0) || in_first_trips.contains(id)) return;
    complain(mistakes, f, id, "`{}` is no count of the trips of the loop around it",
             f.text(mma.adds));
  });
  for_each_op<Fill>(f, [&](const Fill& fill, OpId id) {
    if (!fill.implied) return;
    const auto* value = f.def_as<Const>(fill.value);
    if (value == nullptr || value->value != 0) {
      complain(mistakes, f, id, "is left out, and sums begin with 0");
    }
    if (!begun.contains(fill.frag)) {
      complain(mistakes, f, id, "is left out, and no product begins the sum");
    }
  });
}

void load_instructions_fit(const Module& module, const Function& f, Mistakes& mistakes) {
  for_each_op<Load>(f, [&](const Load& load, OpId id) {
    if (load.instruction == nullptr) return;
    const ViewType* view = type_as<ViewType>(f, load.view);
    if (load.instruction->kind != target::CopyKind::kMatrix) {
      complain(mistakes, f, id, "`{}` loads no matrices", load.instruction->name);
    }
    if (module.arch != nullptr && !module.arch->has(load.instruction->needs)) {
      complain(mistakes, f, id, "{} has no such instruction", module.arch->name);
    }
    if (view != nullptr && view->space != Space::kShared) {
      complain(mistakes, f, id, "matrices come from shared memory");
    }
  });
}

void store_instructions_fit(const Module& module, const Function& f, Mistakes& mistakes) {
  for_each_op<Store>(f, [&](const Store& store, OpId id) {
    if (store.instruction == nullptr) return;
    const ViewType* view = type_as<ViewType>(f, store.view);
    const FragType* frag = type_as<FragType>(f, store.frag);
    if (store.instruction->kind != target::CopyKind::kMatrixStore) {
      complain(mistakes, f, id, "`{}` stores no matrices", store.instruction->name);
    }
    if (module.arch != nullptr && !module.arch->has(store.instruction->needs)) {
      complain(mistakes, f, id, "{} has no such instruction", module.arch->name);
    }
    if (!store.guarded.empty() || !store.before.empty()) {
      complain(mistakes, f, id, "matrices are stored whole");
    }
    if (view == nullptr || frag == nullptr) return;
    if (view->space != Space::kShared) complain(mistakes, f, id, "matrices go to shared memory");
    const bool as_it_is = frag->dtype == view->dtype || frag->dtype == DType::kF32;
    if ((view->dtype == DType::kF16 || view->dtype == DType::kBF16) && as_it_is) return;
    complain(mistakes, f, id, "no matrices of {} are made of {}", name(view->dtype),
             name(frag->dtype));
  });
}

// A tile in memory that a matrix instruction moves, as its list of matrices has it.
struct MatrixTile {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t size = 1;   // bytes of an element
  std::int64_t warps = 1;  // that move it together
};

std::int64_t warps_of(const Function& f, ValueId frag) {
  return std::max<std::int64_t>(1, share_of(f, frag).lanes / target::kWarpLanes);
}

// Each matrix, 8 rows of 16 bytes, is two numbers of the list, and each lies inside the tile, with
// those of all warps covering it.
template <class Move>
void matrices_cover(const Function& f, const Move& move, const MatrixTile& tile, OpId id,
                    Mistakes& mistakes) {
  if (move.instruction == nullptr || move.instruction->matrices < 1) return;
  if (tile.rows < 1 || tile.cols < 1 || tile.rows > INT16_MAX || tile.cols > INT16_MAX) return;
  const std::int64_t bytes = tile.rows * tile.cols * tile.size;
  const std::int64_t needed = bytes / (128 * tile.warps);
  const auto given = static_cast<std::int64_t>(move.matrices.size());
  if (bytes % (128 * tile.warps) != 0 || given != 2 * needed ||
      needed % move.instruction->matrices != 0) {
    complain(mistakes, f, id, "{} matrices in a tile of {}x{}", given / 2, tile.rows, tile.cols);
    return;
  }
  if (move.warp_step.size() != (tile.warps > 1 ? 2U : 0U)) {
    complain(mistakes, f, id, "{} warps, a step of {} numbers", tile.warps, move.warp_step.size());
    return;
  }
  const auto issue = static_cast<std::size_t>(2 * move.instruction->matrices);
  for (std::size_t first = 0; first < move.matrices.size(); first += issue) {
    if (lie_by_bits(std::span(move.matrices).subspan(first, issue))) continue;
    complain(mistakes, f, id, "matrices from {} of {} are not where their numbers' bits put them",
             first / 2, move.matrices.size() / 2);
    return;
  }
  const std::int64_t across = 16 / tile.size;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t i = 0; i < needed * tile.warps; ++i) {
    const auto at = static_cast<std::size_t>(2 * (i % needed));
    const std::int64_t warp = i / needed;
    const std::int64_t row = move.matrices[at] + (warp > 0 ? warp * move.warp_step[0] : 0);
    const std::int64_t col = move.matrices[at + 1] + (warp > 0 ? warp * move.warp_step[1] : 0);
    const bool inside = row >= 0 && col >= 0 && row <= tile.rows - 8 && col <= tile.cols - across;
    if (inside && row % 8 == 0 && col % across == 0 && seen.insert({row, col}).second) continue;
    complain(mistakes, f, id, "the matrix at ({}, {}) is outside or there twice", row, col);
  }
}

void load_matrices_cover_the_tile(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Load>(f, [&](const Load& load, OpId id) {
    const FragType* frag = type_as<FragType>(f, load.frag);
    if (frag == nullptr) return;
    matrices_cover(f, load,
                   {.rows = frag->rows,
                    .cols = frag->cols,
                    .size = size_bytes(frag->dtype),
                    .warps = warps_of(f, load.frag)},
                   id, mistakes);
  });
}

void store_matrices_cover_the_tile(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Store>(f, [&](const Store& store, OpId id) {
    const FragType* frag = type_as<FragType>(f, store.frag);
    const ViewType* view = type_as<ViewType>(f, store.view);
    if (frag == nullptr || view == nullptr || store.instruction == nullptr) return;
    const std::size_t side = store.transposed ? 0 : 1;
    if (view->shape.size() != 2 || !view->shape[side].constant()) return;
    matrices_cover(f, store,
                   {.rows = store.transposed ? stored_columns(f, store) : frag->rows,
                    .cols = store.transposed ? frag->rows : stored_columns(f, store),
                    .size = size_bytes(view->dtype),
                    .warps = warps_of(f, store.frag)},
                   id, mistakes);
  });
}

void stores_are_planned(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Store>(f, [&](const Store& store, OpId id) {
    if ((store.instruction != nullptr) != (store.element_run >= 1)) return;
    complain(mistakes, f, id, "neither or both of an instruction and runs of elements");
  });
}

constexpr Rule kDecidedRules[] = {
    {"mmas-have-atoms", Form::kAtoms, mmas_have_atoms},
    {"mma-atoms-fit", Form::kAtoms, mma_atoms_fit},
    {"repeats-make-the-tile", Form::kAtoms, repeats_make_the_tile},
    {"orders-are-permutations", Form::kAtoms, orders_are_permutations},
    {"fragments-share-the-atom", Form::kAtoms, fragments_share_the_atom},
    {"shared-buffers-are-placed", Form::kLaidOut, shared_buffers_are_placed},
    {"shared-buffers-are-aligned", Form::kLaidOut, shared_buffers_are_aligned},
    {"swizzles-fit-the-rows", Form::kLaidOut, swizzles_fit_the_rows},
    {"shared-buffers-are-inside", Form::kLaidOut, shared_buffers_are_inside},
    {"shared-buffers-are-apart", Form::kLaidOut, shared_buffers_are_apart},
    {"shared-memory-suffices", Form::kLaidOut, shared_memory_suffices},
    {"copies-have-ways", Form::kPlanned, copies_have_ways},
    {"vectors-suit-the-copy", Form::kPlanned, vectors_suit_the_copy},
    {"groups-are-of-threads", Form::kPlanned, groups_are_of_threads},
    {"async-copies-go-to-shared", Form::kPlanned, async_copies_go_to_shared},
    {"copies-have-threads", Form::kPlanned, copies_have_threads},
    {"copy-widths-descend", Form::kPlanned, copy_widths_descend},
    {"copy-widths-divide-rows", Form::kPlanned, copy_widths_divide_rows},
    {"guards-are-dimensions", Form::kPlanned, guards_are_dimensions},
    {"guarded-tiles-move-by-element", Form::kPlanned, guarded_tiles_move_by_element},
    {"boxes-tile", Form::kPlanned, boxes_tile},
    {"loads-are-planned", Form::kPlanned, loads_are_planned},
    {"descriptors-fit", Form::kPlanned, descriptors_fit},
    {"mma-steps-are-given", Form::kPlanned, mma_steps_are_given},
    {"sums-begin-with-products", Form::kTile, sums_begin_with_products},
    {"load-instructions-fit", Form::kPlanned, load_instructions_fit},
    {"load-matrices-cover-the-tile", Form::kPlanned, load_matrices_cover_the_tile},
    {"stores-are-planned", Form::kPlanned, stores_are_planned},
    {"store-instructions-fit", Form::kPlanned, store_instructions_fit},
    {"store-matrices-cover-the-tile", Form::kPlanned, store_matrices_cover_the_tile},
};

}  // namespace

std::span<const Rule> decided_rules() { return kDecidedRules; }

}  // namespace kiln::ir
