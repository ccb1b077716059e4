#include "passes/plan_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/prove.h"
#include "ir/registers.h"
#include "ir/strides.h"
#include "passes/bulk_box.h"
#include "target/arch.h"
#include "target/descriptor.h"
#include "target/fragment.h"
#include "target/registers.h"

namespace kiln::passes {

namespace {

constexpr std::int64_t kVectorMax = 16;

// One end of a transfer.
struct Side {
  ir::ResolvedView view;
  ir::ViewType root;
  std::vector<ir::Expr> shape;  // of the view
  // What must be divisible for rows to be aligned: the distances between them, and where an alias
  // begins. Rows whose elements do not follow each other allow no vectors.
  std::vector<ir::Expr> pitches;
  const ir::Alloc* buffer = nullptr;  // that the elements are in, if the kernel made it
  std::int64_t buffer_elements = 0;
};

Side side_of(const ir::Function& function, ir::ValueId view) {
  Side side{.view = ir::resolve_view(function, view),
            .root = {},
            .shape = function.view_type(view).shape,
            .pitches = {}};
  side.root = function.view_type(side.view.root);
  side.pitches = ir::root_strides(function, side.view.root);
  if (ir::rows_are_dense(function, side.view.root)) {
    side.pitches.pop_back();
  } else {
    side.pitches.assign(1, ir::Expr(1));
  }
  const ir::Expr offset = ir::root_offset(function, side.view.root);
  if (!offset.is(0)) side.pitches.push_back(offset);
  const ir::ValueId storage = ir::storage_of(function, side.view.root);
  side.buffer = function.def_as<ir::Alloc>(storage);
  if (side.buffer == nullptr) return side;  // the caller's may have more than can be counted
  ir::Expr elements = 1;
  for (const ir::Expr& extent : function.view_type(storage).shape) elements = elements * extent;
  side.buffer_elements = elements.constant().value_or(0);
  return side;
}

// The tile's dimensions that may reach outside the base.
std::vector<std::int64_t> guarded_dimensions(const ir::Function& function, const Side& side) {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < side.shape.size(); ++d) {
    const std::size_t root = d + side.view.dropped;
    const ir::Expr end = side.view.origin[root] + side.shape[d];
    const auto& limits = side.view.limits[root];
    const bool inside = std::all_of(limits.begin(), limits.end(), [&](const ir::Expr& limit) {
      return ir::always_less_equal(function, end, limit);
    });
    if (!inside) out.push_back(static_cast<std::int64_t>(d));
  }
  return out;
}

// The dimensions in which a tile of global memory is known to begin before its base for some values
// of the variables of loops and launches. An origin without a known least value is taken to be
// inside; the simulator reports one that is not.
std::vector<std::int64_t> dimensions_before(const ir::Function& function, const Side& side) {
  std::vector<std::int64_t> out;
  if (side.root.space != ir::Space::kGlobal) return out;
  for (std::size_t d = 0; d < side.shape.size(); ++d) {
    const ir::Expr& origin = side.view.origin[d + side.view.dropped];
    const auto below = ir::upper_bound(function, ir::Expr(0) - origin);
    const auto most = below ? below->constant() : std::nullopt;  // that lies in front of it
    if (most && *most > 0) out.push_back(static_cast<std::int64_t>(d));
  }
  return out;
}

// True when every row of the tile starts at a multiple of `width` bytes, as far as is known before
// the launch. Pitches of global memory are only known then, and are checked there.
bool may_use_width(const Side& side, std::int64_t width) {
  const std::int64_t size = size_bytes(side.root.dtype);
  const auto row = side.shape.back().constant();
  if (!row || *row * size % width != 0 || width < size) return false;
  const std::int64_t elements = width / size;
  if (!ir::always_divisible(side.view.origin.back(), elements)) return false;
  return std::all_of(side.pitches.begin(), side.pitches.end(), [&](const ir::Expr& pitch) {
    return !pitch.constant() || ir::always_divisible(pitch, elements);
  });
}

// A copy that nothing runs beside cuts rows that begin anywhere out of the widest vectors: narrow
// ones would be more code, and no faster.
std::vector<std::int64_t> widths_of(const Side& a, const Side& b, bool async) {
  std::vector<std::int64_t> out;
  const std::int64_t size = size_bytes(a.root.dtype);
  for (std::int64_t width = kVectorMax; width >= size; width /= 2) {
    const bool cut = !async && width < kVectorMax && !out.empty() && out[0] == kVectorMax;
    const bool possible = !cut && may_use_width(a, width) && may_use_width(b, width);
    if (width == size || possible) out.push_back(width);
  }
  return out;
}

// Whether the far side may be smaller than the tile along the tile's dimension d.
bool may_end_first(const ir::Function& function, const Side& tile, const Side& far,
                   const ir::Copy& copy, std::size_t d) {
  std::size_t there = d;
  if (!copy.permutation.empty()) there = static_cast<std::size_t>(copy.permutation[d]);
  return !ir::always_less_equal(function, tile.shape[d], far.shape[there]);
}

// Which dimensions of both sides need a guard, each in its own side's numbering. The tile is the
// destination unless that is global.
void plan_guards(const ir::Function& function, const Side& src, const Side& dst, ir::Copy& copy) {
  const bool tile_is_dst = dst.root.space != ir::Space::kGlobal;
  copy.guarded = guarded_dimensions(function, tile_is_dst ? src : dst);
  copy.tile_guarded = guarded_dimensions(function, tile_is_dst ? dst : src);
  copy.before = dimensions_before(function, tile_is_dst ? src : dst);
  if (!tile_is_dst) return;
  for (std::size_t d = 0; d < dst.shape.size(); ++d) {
    if (!may_end_first(function, dst, src, copy, d)) continue;
    const auto there =
        copy.permutation.empty() ? static_cast<std::int64_t>(d) : copy.permutation[d];
    if (std::count(copy.guarded.begin(), copy.guarded.end(), there) == 0) {
      copy.guarded.push_back(there);
    }
  }
  std::sort(copy.guarded.begin(), copy.guarded.end());
}

// The dimensions of a side whose extent differs from the other side's, which are given in this
// side's order: there the side's own extent is one more limit.
std::vector<std::int64_t> limited_dimensions(const Side& side, const std::vector<ir::Expr>& other) {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < side.shape.size(); ++d) {
    if (!(side.shape[d] == other[d])) out.push_back(static_cast<std::int64_t>(d));
  }
  return out;
}

void plan_limits(const Side& src, const Side& dst, ir::Copy& copy) {
  std::vector<ir::Expr> dst_shape = dst.shape;
  std::vector<ir::Expr> src_shape = src.shape;
  for (std::size_t d = 0; d < copy.permutation.size(); ++d) {
    const auto of_src = static_cast<std::size_t>(copy.permutation[d]);
    dst_shape[of_src] = dst.shape[d];
    src_shape[d] = src.shape[of_src];
  }
  copy.src_limited = limited_dimensions(src, dst_shape);
  copy.dst_limited = limited_dimensions(dst, src_shape);
}

// Whether the copy must not use vectors. One that straddles a limit is cut at run time, but only
// where the limit is one of global memory: elsewhere it would touch the neighbour's bytes.
bool moves_by_element(const Side& src, const Side& dst, const ir::Copy& copy) {
  const bool far_is_global =
      src.root.space == ir::Space::kGlobal || dst.root.space == ir::Space::kGlobal;
  const bool permuted = !copy.permutation.empty() &&
                        !std::is_sorted(copy.permutation.begin(), copy.permutation.end());
  return permuted || !copy.tile_guarded.empty() || !copy.before.empty() ||
         (!far_is_global && !copy.guarded.empty());
}

// The rows of a window of a tile follow each other in the tile when all dimensions between its
// first and its last are whole.
bool rows_follow(const Side& tile) {
  for (std::size_t d = 1; d + 1 < tile.shape.size(); ++d) {
    if (!(tile.shape[d] == tile.root.shape[tile.view.dropped + d])) return false;
  }
  return true;
}

// Whether the device has vectors for the copy (device/copy.cuh): between global memory and a tile
// of shared memory of constant extents whose rows follow each other and end nowhere inside the
// tile, with every element of the destination coming from the source.
bool moves_by_vector(const ir::Function& function, const Side& src, const Side& dst,
                     const ir::Copy& copy) {
  const bool in = src.root.space == ir::Space::kGlobal && dst.root.space == ir::Space::kShared;
  const bool out = src.root.space == ir::Space::kShared && dst.root.space == ir::Space::kGlobal;
  if ((!in && !out) || moves_by_element(src, dst, copy) || !copy.permutation.empty()) return false;
  const Side& tile = out ? src : dst;
  const bool sized = std::all_of(tile.shape.begin(), tile.shape.end(),
                                 [](const ir::Expr& e) { return e.constant().has_value(); });
  const bool dense =
      ir::rows_are_dense(function, src.view.root) && ir::rows_are_dense(function, dst.view.root);
  const bool laid_out = !ir::is_sized_at_launch(function, tile.view.root);
  return sized && dense && laid_out && rows_follow(tile) && (in || src.shape == dst.shape);
}

// Of a copy that vectors move, `widths` decided. What leaves shared memory can always be cut out of
// its vectors of 16 bytes; what arrives needs registers for two of them, which only a copy that is
// waited for at once has to spare, and narrower elements have no asynchronous way instead.
ir::CopyWay way_of_vectors(const Side& src, const Side& dst, const ir::Copy& copy) {
  const bool out = dst.root.space == ir::Space::kGlobal;
  const int size = size_bytes(src.root.dtype);
  const bool cuts =
      out || size < target::kRegisterBytes || (size == target::kRegisterBytes && !copy.async);
  if (cuts && copy.widths[0] == kVectorMax) return ir::CopyWay::kGather;
  return copy.grouped ? ir::CopyWay::kAsync : ir::CopyWay::kVector;
}

// The threads that run an operation together: those of the innermost `inthreads` region, or the
// block's.
struct Team {
  std::int64_t first = 0;
  std::int64_t threads = 0;
  std::int64_t blocks = 1;  // of the cluster
};

void plan_copy(const ir::Module& module, const ir::Function& function, const Team& team,
               ir::Copy& copy) {
  const Side src = side_of(function, copy.src);
  const Side dst = side_of(function, copy.dst);
  const bool local = src.root.space == ir::Space::kLocal || dst.root.space == ir::Space::kLocal;
  const bool to_shared =
      src.root.space == ir::Space::kGlobal && dst.root.space == ir::Space::kShared;
  copy.threads = copy.unit > 0 ? copy.unit : team.threads;
  copy.first = copy.unit > 0 ? 0 : team.first;
  plan_guards(function, src, dst, copy);
  plan_limits(src, dst, copy);
  copy.way = ir::CopyWay::kElement;
  copy.widths = {size_bytes(src.root.dtype)};
  if (local) {
    copy.way = ir::CopyWay::kPerThread;
    copy.threads = 1;
    copy.first = 0;
  } else if (!moves_by_element(src, dst, copy)) {
    std::vector<std::int64_t> widths = widths_of(src, dst, copy.async);
    copy.grouped = to_shared && target::widest_copy(*module.arch, target::CopyKind::kAsync,
                                                    target::Space::kGlobal, target::Space::kShared,
                                                    {widths[0], widths[0]}) != nullptr;
    // Vectors are dealt out to a number of threads that the kernel is compiled for.
    if (copy.threads == 0 || !moves_by_vector(function, src, dst, copy)) return;
    copy.widths = std::move(widths);
    copy.way = way_of_vectors(src, dst, copy);
  }
}

// --- bulk copies

// A limit that the tile may reach and a tensor map cannot have, or null.
const ir::Expr* unknown_limit(const ir::Function& function, const Side& global,
                              const std::vector<ir::Expr>& tile) {
  for (std::size_t d = 0; d < tile.size(); ++d) {
    const std::size_t root = d + global.view.dropped;
    const ir::Expr end = global.view.origin[root] + tile[d];
    for (const ir::Expr& limit : global.view.limits[root]) {
      if (ir::known_at_launch(function, limit)) continue;
      if (!ir::always_less_equal(function, end, limit)) return &limit;
    }
  }
  return nullptr;
}

// What does the same without the hardware's help.
std::string_view other_way(const ir::Copy& copy) {
  return copy.adds ? "`__atomic_add` for each element" : "`dma.copy`";
}

Unexpected<Reported> report_box(const ir::Function& function, Span where, const ir::Copy& copy,
                                const BoxPlan& plan, Diagnostics& diags) {
  const ir::ValueId shared = ir::resolve_view(function, shared_side(function, copy)).root;
  const ir::ValueId global = ir::resolve_view(function, global_side(function, copy)).root;
  const std::string& buffer = function.values[shared].name;
  const std::int64_t size = size_bytes(function.view_type(shared).dtype);
  const std::string_view other = other_way(copy);
  switch (plan.problem) {
    case BoxProblem::kNone: break;
    case BoxProblem::kRank:
      return diags
          .report<diag::TmaBoxRank>(where, function.values[global].name, plan.seen, plan.wanted)
          .help("use {}, or give `{}` {} dimensions", other, function.values[global].name,
                plan.wanted)
          .emit();
    case BoxProblem::kInnerBytes:
      return diags.report<diag::TmaBoxRow>(where, plan.seen, plan.wanted)
          .help("make the rows {} elements ({} bytes) long, or use {}",
                (plan.seen / plan.wanted + 1) * plan.wanted / size,
                (plan.seen / plan.wanted + 1) * plan.wanted, other)
          .emit();
    case BoxProblem::kPanels:
      return diags.report<diag::TmaBoxPanels>(where, plan.seen, buffer, plan.wanted)
          .help(
              "move whole panels: rows of a multiple of {} elements that begin at one, or "
              "{}",
              plan.wanted / size, other)
          .emit();
    case BoxProblem::kStart:
      return diags.report<diag::TmaBoxStart>(where, buffer, plan.seen, plan.wanted)
          .help(
              "let the tile begin, and its rows go on, at multiples of {} bytes ({} elements), or "
              "use {}",
              plan.wanted, plan.wanted / size, other)
          .emit();
    case BoxProblem::kRun:
      return diags.report<diag::TmaBoxRun>(where, plan.seen, buffer, plan.wanted)
          .help("move whole rows of {} bytes, give the tile a buffer of its own, or use {}",
                plan.wanted, other)
          .emit();
  }
  return diags.failed();
}

Checked<bool> plan_bulk(const ir::Function& function, const Team& team, Span where, ir::Copy& copy,
                        Diagnostics& diags) {
  copy.way = ir::CopyWay::kBulk;
  copy.threads = copy.unit > 0 ? copy.unit : team.threads;
  copy.first = copy.unit > 0 ? 0 : team.first;
  const ir::ResolvedView shared = ir::resolve_view(function, shared_side(function, copy));
  const auto* alloc = function.def_as<ir::Alloc>(ir::storage_of(function, shared.root));
  KILN_CHECK(alloc != nullptr, "a bulk copy of `%{}`, which is no buffer",
             function.values[shared.root].name);
  const Side global = side_of(function, global_side(function, copy));
  const std::vector<ir::Expr>& tile = function.view_type(shared_side(function, copy)).shape;
  if (const ir::Expr* limit = unknown_limit(function, global, tile)) {
    return diags
        .report<diag::TmaExtentUnknown>(where, function.text(*limit),
                                        function.values[global.view.root].name)
        .help("use {}{}", other_way(copy), copy.adds ? "" : ", which compares each element with it")
        .emit();
  }
  BoxPlan plan = plan_box(function, copy, alloc->swizzle, copy.multicast ? team.blocks : 1);
  if (plan.problem != BoxProblem::kNone) return report_box(function, where, copy, plan, diags);
  copy.box = std::move(plan.box);
  return true;
}

void plan_splat(const ir::Function& function, const Team& team, ir::Splat& splat) {
  const Side side = side_of(function, splat.view);
  const bool local = side.root.space == ir::Space::kLocal;
  const bool whole_team = splat.unit == 0 && !local;
  splat.threads = local ? 1 : splat.unit;
  if (whole_team) splat.threads = team.threads;
  splat.first = whole_team ? team.first : 0;
  splat.guarded = guarded_dimensions(function, side);
  splat.before = dimensions_before(function, side);
}

using Place = ir::TilePlace;

// The registers that a view's elements go to or come from. The tile of A is (M, K), of B (N, K), of
// C (M, N); `swapped`: the view's rows are its columns, as under `col`, which has the contraction
// first, and under `.transp`.
class InView {
 public:
  InView(target::Fragment fragment, bool swapped)
      : fragment_(std::move(fragment)), swapped_(swapped) {}

  [[nodiscard]] int lanes() const { return fragment_.lanes; }
  [[nodiscard]] int values() const { return fragment_.values; }
  [[nodiscard]] Place operator()(int lane, int value) const {
    const target::Element at = element_of(fragment_, lane, value);
    return swapped_ ? Place{at.col, at.row} : Place{at.row, at.col};
  }
  // The columns that the tile itself has in the view.
  [[nodiscard]] int columns() const { return swapped_ ? fragment_.edge.row : fragment_.edge.col; }

 private:
  target::Fragment fragment_;
  bool swapped_;
};

InView registers_of(const ir::Function& function, const ir::Load& load) {
  const ir::TileRegisters registers = ir::tile_registers(function, load.frag);
  return {registers.map, registers.swapped};
}

InView registers_of(const ir::Function& function, const ir::Store& store) {
  const auto part = ir::stored_registers(function, store);
  KILN_CHECK(part.has_value(), "columns from {} of `{}` are no run of registers",
             store.first_column, function.values[store.frag].name);
  return {part->fragment, store.transposed};
}

// Where an element of a lane's register lies in the 8 rows of 16 bytes that one matrix is: a
// matrix load moves pairs of bytes, whatever elements they are or are part of.
Place place_in_matrix(const target::Copy& instruction, int lane, int element, int size) {
  constexpr int kPair = 2;
  const int byte = element * size;
  const auto pair = static_cast<int>(
      instruction.result_map(lane + target::kWarpLanes * (byte / kPair)));  // row + 8 * column
  return {pair % 8, (pair / 8 % 8 * kPair + byte % kPair) / size};
}

// From one warp of the registers' unit to the next.
Place step_of_warps(const InView& registers) {
  if (registers.lanes() == target::kWarpLanes) return {};
  const Place first = registers(0, 0);
  const Place second = registers(target::kWarpLanes, 0);
  return {second.row - first.row, second.col - first.col};
}

// The first warp's matrices, in register order, that `instruction` would have to move so that
// every lane's elements of `size` bytes come or go, all other warps' lying `step` further; empty
// when its result map does not give them.
std::vector<std::int64_t> matrices_for(const InView& registers, Place step, int size,
                                       const target::Copy& instruction) {
  const int each = target::kRegisterBytes / size;  // values of one lane in one matrix
  std::vector<Place> wanted;
  for (int i = 0; i < target::kWarpLanes * each; ++i) {
    wanted.push_back(place_in_matrix(instruction, i / each, i % each, size));
  }
  std::vector<std::int64_t> out;
  for (int value = 0; value < registers.values(); value += each) {
    const Place base = registers(0, value);
    for (int lane = 0; lane < registers.lanes(); ++lane) {
      const Place matrix = {base.row + lane / target::kWarpLanes * step.row,
                            base.col + lane / target::kWarpLanes * step.col};
      for (int element = 0; element < each; ++element) {
        const Place place = registers(lane, value + element);
        const Place& given = wanted[lane % target::kWarpLanes * each + element];
        if (place.row - matrix.row != given.row || place.col - matrix.col != given.col) return {};
      }
    }
    out.push_back(base.row);
    out.push_back(base.col);
  }
  return out;
}

// A row of the table, or null when the architecture has none: find_matrix_load and _store.
using FindMatrices = const target::Copy* (*)(const target::Arch&, int matrices, bool transposed);

bool each_issue_by_bits(std::span<const std::int64_t> places, int matrices) {
  const auto pairs = static_cast<std::size_t>(2 * matrices);
  for (std::size_t first = 0; first < places.size(); first += pairs) {
    if (!ir::lie_by_bits(places.subspan(first, pairs))) return false;
  }
  return true;
}

// Decides the instruction of a load or a store whose elements of `size` bytes it can move, the
// widest first. False: none can.
template <class Op>
bool plan_matrices(const target::Arch& arch, FindMatrices find, const InView& registers, int size,
                   Op& op) {
  const Place step = step_of_warps(registers);
  const int count = registers.values() * size / target::kRegisterBytes;
  for (int matrices = 4; matrices >= 1; matrices /= 2) {
    if (count % matrices != 0) continue;
    for (bool transposed : {false, true}) {
      const target::Copy* instruction = find(arch, matrices, transposed);
      if (instruction == nullptr) continue;
      auto places = matrices_for(registers, step, size, *instruction);
      if (places.empty() || !each_issue_by_bits(places, matrices)) continue;
      op.instruction = instruction;
      op.matrices = std::move(places);
      if (registers.lanes() > target::kWarpLanes) op.warp_step = {step.row, step.col};
      return true;
    }
  }
  return false;
}

bool rows_are_aligned(const Side& side) { return may_use_width(side, kVectorMax); }

// Bytes from one panel of the shared buffer to the next: all of its rows.
std::int64_t panel_bytes(const Side& side) {
  const std::int64_t row = side.root.shape.back().constant().value_or(1);
  return side.buffer->swizzle * (side.buffer_elements / row);
}

// A tile that stays in shared memory: the distances of its descriptor.
void plan_in_place(const Side& side, ir::Load& load) {
  load.in_shared = true;
  load.stride = target::kDescriptorRows * side.buffer->swizzle;
  // Operands whose rows are K's go on in the next panel; the K of others only where there is no
  // XOR.
  const bool goes_on = load.major == ir::Major::kCol || side.buffer->swizzle == target::kPlainPanel;
  load.leading = goes_on ? panel_bytes(side) : 0;
}

// Bytes from a descriptor's start to the tile of each repetition along K.
std::vector<std::int64_t> steps_of(const ir::Function& function, ir::ValueId frag,
                                   const ir::Load& load, const ir::Mma& mma) {
  const Side side = side_of(function, load.view);
  const std::int64_t swizzle = side.buffer->swizzle;
  const bool is_a = function.frag_type(frag).role == ir::Role::kA;
  const std::int64_t k_extent =
      extents(*mma.atom, is_a ? target::Operand::kA : target::Operand::kB).cols;
  const std::int64_t k_bytes = k_extent * size_bytes(function.frag_type(frag).dtype);
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < mma.repeats[2]; ++k) {
    if (load.major == ir::Major::kCol) {
      out.push_back(k * k_extent * swizzle);
    } else {
      const std::int64_t byte = k * k_bytes;
      out.push_back(byte / swizzle * panel_bytes(side) + byte % swizzle);
    }
  }
  return out;
}

// Where only the launch knows whether rows begin at multiples of a vector, it may.
enum class Rows { kAlwaysAligned, kPerhapsAligned };

bool pitches_are_multiples(const Side& side, std::int64_t elements) {
  return std::ranges::all_of(
      side.pitches, [&](const ir::Expr& pitch) { return ir::always_divisible(pitch, elements); });
}

// The longest run of a lane's values that lies in one row of memory, as a vector can move it: it
// begins at a multiple of its length in the row, so that none begins before the row and ends in it.
std::int64_t longest_run(const InView& registers, const Side& side, Rows rows) {
  std::int64_t run = 1;
  const std::int64_t most = kVectorMax / size_bytes(side.root.dtype);
  const auto is_run = [&](std::int64_t length) {
    // Not across the edge of a padded tile.
    if (registers.values() % length != 0 || registers.columns() % length != 0) return false;
    for (int lane = 0; lane < registers.lanes(); ++lane) {
      for (int value = 0; value < registers.values(); ++value) {
        const Place first = registers(lane, value - value % static_cast<int>(length));
        const Place here = registers(lane, value);
        const int step = value % static_cast<int>(length);
        if (here.row != first.row || here.col != first.col + step) return false;
        if (step == 0 && here.col % length != 0) return false;
      }
    }
    return true;
  };
  while (run * 2 <= most && is_run(run * 2) &&
         (rows == Rows::kPerhapsAligned || pitches_are_multiples(side, run * 2)) &&
         may_use_width(side, run * 2 * size_bytes(side.root.dtype))) {
    run *= 2;
  }
  return run;
}

// The runs of a plain load or store of a tile.
void plan_runs(const InView& registers, const Side& side, auto& move) {
  move.element_run = longest_run(registers, side, Rows::kAlwaysAligned);
  if (side.root.space != ir::Space::kGlobal) return;
  const std::int64_t wide = longest_run(registers, side, Rows::kPerhapsAligned);
  if (wide > move.element_run) move.wide_run = wide;
}

// Whether each element is in one lane, as a matrix instruction deals them out.
bool is_dealt_out(const ir::Function& function, ir::ValueId frag) {
  const ir::Share share = ir::share_of(function, frag);
  const ir::FragType& type = function.frag_type(frag);
  return share.lanes * share.values == type.rows * type.cols;
}

void plan_load(const ir::Module& module, const ir::Function& function, ir::Load& load) {
  const Side side = side_of(function, load.view);
  if (ir::is_read_in_place(function, load)) return plan_in_place(side, load);
  load.guarded = guarded_dimensions(function, side);
  load.before = dimensions_before(function, side);
  if (function.frag_type(load.frag).role == ir::Role::kMetadata) {
    load.element_run = 1;
    return;
  }
  const int size = size_bytes(side.root.dtype);
  // What is converted on the way goes through plain loads.
  const bool as_it_is = function.frag_type(load.frag).dtype == side.root.dtype;
  const bool matrix_ready = side.root.space == ir::Space::kShared && load.guarded.empty() &&
                            as_it_is && size <= target::kRegisterBytes && rows_are_aligned(side) &&
                            is_dealt_out(function, load.frag);
  const bool planned = matrix_ready && plan_matrices(*module.arch, target::find_matrix_load,
                                                     registers_of(function, load), size, load);
  if (planned) return;
  const bool is_value = function.frag_type(load.frag).role == ir::Role::kTile;
  load.element_run = 1;
  if (is_value) plan_runs(registers_of(function, load), side, load);
}

void plan_steps(const ir::Function& function, ir::Mma& mma) {
  for (const ir::Op& op : function.ops) {
    const auto* load = std::get_if<ir::Load>(&op.data);
    if (load == nullptr || !ir::is_read_in_place(function, *load)) continue;
    if (load->frag == mma.a) mma.a_steps = steps_of(function, mma.a, *load, mma);
    if (load->frag == mma.b) mma.b_steps = steps_of(function, mma.b, *load, mma);
  }
}

// Consecutive values of a lane that are consecutive in a row of the destination.
std::int64_t store_run(const ir::Function& function, const ir::Store& store, const Side& side) {
  if (store.transposed) return 1;
  const InView registers = registers_of(function, store);
  for (int lane = 0; lane < registers.lanes(); ++lane) {
    for (int value = 0; value + 1 < registers.values(); value += 2) {
      const Place first = registers(lane, value);
      const Place next = registers(lane, value + 1);
      if (next.row != first.row || next.col != first.col + 1 || first.col % 2 != 0) return 1;
    }
  }
  const bool pitch_known =
      std::all_of(side.pitches.begin(), side.pitches.end(),
                  [](const ir::Expr& pitch) { return pitch.constant().has_value(); });
  const bool aligned = may_use_width(side, 2 * size_bytes(side.root.dtype));
  const bool ends_anywhere = std::ranges::count(store.guarded, 1) > 0;
  return pitch_known && aligned && !ends_anywhere ? 2 : 1;
}

// Whether matrices of 16-bit elements can be made of an accumulator: as it is, or rounded from f32.
bool makes_matrices(DType registers, DType memory) {
  return (memory == DType::kF16 || memory == DType::kBF16) &&
         (registers == memory || registers == DType::kF32);
}

void plan_store(const ir::Module& module, const ir::Function& function, ir::Store& store) {
  const Side side = side_of(function, store.view);
  store.guarded = guarded_dimensions(function, side);
  store.before = dimensions_before(function, side);
  const bool matrix_ready = side.root.space == ir::Space::kShared && store.guarded.empty() &&
                            makes_matrices(function.frag_type(store.frag).dtype, side.root.dtype) &&
                            rows_are_aligned(side) && is_dealt_out(function, store.frag);
  const bool planned = matrix_ready && plan_matrices(*module.arch, target::find_matrix_store,
                                                     registers_of(function, store),
                                                     size_bytes(side.root.dtype), store);
  if (planned) return;
  const bool is_value = function.frag_type(store.frag).role == ir::Role::kTile;
  if (is_value) return plan_runs(registers_of(function, store), side, store);
  store.element_run = store_run(function, store, side);
}

// While it lives, the variable of the outermost of the `parallel`s around a region counts the units
// that the region's threads are in, and no others:
//
//   parallel p by 3 : group-4 { inthreads (p >= 1) { ... } }     threads 128 to 383: 1 <= p < 3
class UnitsOfRegion {
 public:
  UnitsOfRegion(ir::Function& function, const std::vector<ir::OpId>& around,
                const ir::Inthreads& region)
      : function_(function) {
    if (around.empty()) return;
    const auto& parallel = std::get<ir::Parallel>(function.ops[around[0]].data);
    if (parallel.vars.size() != 1 || parallel.unit == 0) return;
    var_ = parallel.vars[0];
    outside_ = function.vars[var_];
    function.vars[var_].first = region.first / parallel.unit;
    function.vars[var_].extent = (region.first + region.threads - 1) / parallel.unit + 1;
  }
  ~UnitsOfRegion() {
    if (var_.valid()) function_.vars[var_] = outside_;
  }
  UnitsOfRegion(const UnitsOfRegion&) = delete;
  UnitsOfRegion& operator=(const UnitsOfRegion&) = delete;

 private:
  ir::Function& function_;
  ir::VarId var_ = {};
  ir::Var outside_ = {};
};

// Plans the operations of one launch, each with the team that runs it.
struct LaunchPlanner {
  ir::Module& module;
  ir::Function& function;
  Diagnostics& diags;
  bool failed = false;
  std::vector<ir::OpId> around = {};  // `parallel`s inside of the launch, outermost first

  void plan(ir::OpId id, const Team& team) {
    ir::Op& op = function.ops[id];
    if (auto* copy = std::get_if<ir::Copy>(&op.data)) {
      if (!copy->bulk) return plan_copy(module, function, team, *copy);
      if (!plan_bulk(function, team, op.span, *copy, diags)) failed = true;
    }
    if (auto* splat = std::get_if<ir::Splat>(&op.data)) plan_splat(function, team, *splat);
    if (auto* load = std::get_if<ir::Load>(&op.data)) plan_load(module, function, *load);
    if (auto* store = std::get_if<ir::Store>(&op.data)) plan_store(module, function, *store);
    if (auto* scale = std::get_if<ir::Scale>(&op.data)) {
      const Side factors = side_of(function, scale->factors);
      scale->guarded = guarded_dimensions(function, factors);
      scale->before = dimensions_before(function, factors);
    }
    if (auto* mma = std::get_if<ir::Mma>(&op.data)) plan_steps(function, *mma);
  }

  void plan_region(ir::RegionId region, const Team& team) {
    for (const ir::OpId id : function.regions[region].ops) {
      plan(id, team);
      if (const auto* some = std::get_if<ir::Inthreads>(&function.ops[id].data)) {
        const UnitsOfRegion units(function, around, *some);
        plan_region(some->body, {some->first, some->threads, team.blocks});
        continue;
      }
      const bool splits = function.ops[id].kind() == ir::OpKind::kParallel;
      if (splits) around.push_back(id);
      for (const ir::RegionId inner : ir::regions_of(function.ops[id])) plan_region(inner, team);
      if (splits) around.pop_back();
    }
  }
};

}  // namespace

bool begin_at_multiples(const ir::Function& function, ir::ValueId view, std::int64_t elements) {
  const Side side = side_of(function, view);
  return pitches_are_multiples(side, elements) &&
         may_use_width(side, elements * size_bytes(side.root.dtype));
}

Checked<bool> plan_copies(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for (ir::Function& function : module.functions) {
    for (const ir::OpId launch : ir::launches(function)) {
      const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
      std::int64_t blocks = 1;
      for (const ir::VarId var : parallel.cluster) {
        blocks *= function.vars[var].extent.constant().value_or(1);
      }
      LaunchPlanner planner{.module = module, .function = function, .diags = diags};
      planner.plan_region(parallel.body, {0, parallel.threads.constant().value_or(0), blocks});
      failed = failed || planner.failed;
    }
  }
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
