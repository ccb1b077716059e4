#include "passes/assign_layouts.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/shared_layout.h"
#include "ir/strides.h"
#include "passes/bulk_box.h"
#include "target/descriptor.h"
#include "target/swizzle.h"

namespace kiln::passes {

namespace {

std::int64_t bytes_of(const ir::ViewType& type) {
  std::int64_t bytes = size_bytes(type.dtype);
  for (const ir::Expr& extent : type.shape) {
    if (__builtin_mul_overflow(bytes, extent.constant().value_or(0), &bytes)) return INT64_MAX;
  }
  return bytes;
}

std::int64_t row_bytes(const ir::ViewType& type) {
  return type.shape.back().constant().value_or(0) * size_bytes(type.dtype);
}

// The shared buffers that have other shapes with rows of another length, and these shapes.
using Reshapes = std::map<ir::ValueId, std::vector<ir::OpId>>;

Reshapes reshaped_buffers(const ir::Function& function, ir::RegionId body) {
  Reshapes out;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* alias = std::get_if<ir::Alias>(&function.ops[id].data);
    if (alias == nullptr) return;
    const ir::Expr& row = function.view_type(function.ops[id].result).shape.back();
    if (!(row == function.view_type(alias->base).shape.back())) out[alias->base].push_back(id);
  });
  return out;
}

// A swizzled buffer's rows are cut into panels: two shapes agree on where an element is if panels
// follow each other as the elements do in both, one panel being a whole row or all rows one.
bool panels_follow_elements(const ir::ViewType& type, std::int64_t swizzle) {
  const std::int64_t row = row_bytes(type);
  return swizzle == 0 || row == swizzle || row == bytes_of(type);
}

// The first of the shapes in which the buffer could not be used with the swizzle; invalid: none.
ir::OpId unfit_reshape(const ir::Function& function, ir::ValueId buffer,
                       const std::vector<ir::OpId>& reshapes, std::int64_t swizzle) {
  const bool whole = panels_follow_elements(function.view_type(buffer), swizzle);
  for (const ir::OpId id : reshapes) {
    const ir::ViewType& type = function.view_type(function.ops[id].result);
    if (!whole || !panels_follow_elements(type, swizzle)) return id;
  }
  return {};
}

// The shared buffers that `load` and `store` touch.
std::set<ir::ValueId> matrix_buffers(const ir::Function& function, ir::RegionId body) {
  std::set<ir::ValueId> out;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::OpData& data = function.ops[id].data;
    if (const auto* load = std::get_if<ir::Load>(&data)) {
      out.insert(ir::root_of(function, load->view));
    }
    if (const auto* store = std::get_if<ir::Store>(&data)) {
      out.insert(ir::root_of(function, store->view));
    }
  });
  return out;
}

// --- tiles that a warpgroup reads in place

struct PlacedTile {
  ir::OpId load;
  ir::ResolvedView view;
  std::int64_t row_bytes = 0;  // of the tile
  std::int64_t k_bytes = 0;    // of one instruction along the tile's rows; 0: they are K's
  std::int64_t slab_rows = 0;  // of the buffer, in each of its leading dimensions' slabs
  ir::Expr first_row = 0;      // of the buffer: where an alias begins in it
};

// By shared buffer.
using PlacedTiles = std::map<ir::ValueId, std::vector<PlacedTile>>;

std::int64_t k_bytes_of(const ir::Function& function, const ir::Load& load) {
  if (load.major == ir::Major::kCol) return 0;
  const ir::FragType& type = function.frag_type(load.frag);
  const auto operand = type.role == ir::Role::kA ? target::Operand::kA : target::Operand::kB;
  return std::int64_t{extents(*function.def_as<ir::Alloc>(load.frag)->atom, operand).cols} *
         size_bytes(type.dtype);
}

PlacedTiles tiles_read_in_place(const ir::Function& function, ir::RegionId body) {
  PlacedTiles out;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* load = std::get_if<ir::Load>(&function.ops[id].data);
    if (load == nullptr || !ir::is_read_in_place(function, *load)) return;
    const ir::ViewType& type = function.view_type(load->view);
    const ir::ResolvedView view = ir::resolve_view(function, load->view);
    const std::vector<ir::Expr>& root = function.view_type(view.root).shape;
    const auto* alias = function.def_as<ir::Alias>(view.root);
    out[ir::storage_of(function, view.root)].push_back(
        {.load = id,
         .view = view,
         .row_bytes = type.shape.back().constant().value_or(0) * size_bytes(type.dtype),
         .k_bytes = k_bytes_of(function, *load),
         .slab_rows = root.size() > 2 ? root[root.size() - 2].constant().value_or(1) : 0,
         .first_row = alias == nullptr ? ir::Expr(0) : ir::floor_div(alias->offset, root.back())});
  });
  return out;
}

// Whether a descriptor can begin where the tile does: at the first of 8 rows, and at a panel's edge
// or so that the tile's rows stay inside the panel.
bool is_addressable(const PlacedTile& tile, std::int64_t swizzle, std::int64_t size) {
  const std::size_t dims = tile.view.origin.size();
  const bool at_eighth =
      dims >= 2 && tile.slab_rows % target::kDescriptorRows == 0 &&
      ir::always_divisible(tile.view.origin[dims - 2], target::kDescriptorRows) &&
      ir::always_divisible(tile.first_row, target::kDescriptorRows);
  // An instruction's K does not leave a panel that is XORed.
  if (!at_eighth || (swizzle != target::kPlainPanel && swizzle < tile.k_bytes)) return false;
  const std::int64_t at =
      tile.row_bytes < swizzle && swizzle % tile.row_bytes == 0 ? tile.row_bytes : swizzle;
  return at % size == 0 && ir::always_divisible(tile.view.origin[dims - 1], at / size);
}

bool all_addressable(const std::vector<PlacedTile>& tiles, std::int64_t swizzle,
                     std::int64_t size) {
  return std::all_of(tiles.begin(), tiles.end(),
                     [&](const PlacedTile& tile) { return is_addressable(tile, swizzle, size); });
}

// --- buffers that bulk copies touch

// By shared buffer.
using BulkCopies = std::map<ir::ValueId, std::vector<ir::OpId>>;

BulkCopies bulk_copies(const ir::Function& function, ir::RegionId body) {
  BulkCopies out;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* copy = std::get_if<ir::Copy>(&function.ops[id].data);
    if (copy == nullptr || !copy->bulk) return;
    const ir::ValueId root = ir::resolve_view(function, shared_side(function, *copy)).root;
    out[ir::storage_of(function, root)].push_back(id);
  });
  return out;
}

// Whether the hardware has boxes for all of them when their buffer has the swizzle.
bool all_have_boxes(const ir::Function& function, const std::vector<ir::OpId>& copies,
                    std::int64_t swizzle) {
  return std::all_of(copies.begin(), copies.end(), [&](ir::OpId id) {
    const auto& copy = std::get<ir::Copy>(function.ops[id].data);
    return plan_box(function, copy, swizzle).problem == BoxProblem::kNone;
  });
}

// What touches one buffer in a way that its swizzle must allow.
struct BufferUses {
  std::vector<PlacedTile> tiles;
  std::vector<ir::OpId> copies;    // bulk
  std::vector<ir::OpId> reshapes;  // with rows of another length
  ir::OpId passed = {};            // the first time to CUDA, which takes its elements row by row
};

// The widest swizzle that divides the buffer's rows and allows every tile and every shape, and
// every bulk copy where one does; 0: none allows the tiles.
std::int64_t swizzle_for(const ir::Function& function, ir::ValueId buffer, const BufferUses& uses) {
  const ir::ViewType& type = function.view_type(buffer);
  std::int64_t widest = 0;
  for (const std::int64_t swizzle : target::kPanels) {
    if (row_bytes(type) % swizzle != 0) continue;
    if (!all_addressable(uses.tiles, swizzle, size_bytes(type.dtype))) continue;
    if (unfit_reshape(function, buffer, uses.reshapes, swizzle).valid()) continue;
    if (all_have_boxes(function, uses.copies, swizzle)) return swizzle;
    widest = std::max(widest, swizzle);
  }
  return widest;
}

// The widest swizzle up to `widest` with which every bulk copy has boxes; `widest` if none.
std::int64_t swizzle_with_boxes(const ir::Function& function, const std::vector<ir::OpId>& copies,
                                std::int64_t widest) {
  for (const std::int64_t swizzle : {128, 64, 32, 0}) {
    if (swizzle <= widest && all_have_boxes(function, copies, swizzle)) return swizzle;
  }
  return widest;
}

Unexpected<Reported> report_reshape(const ir::Function& function, ir::OpId alias, ir::OpId alloc,
                                    std::int64_t swizzle, Diagnostics& diags) {
  const ir::Op& op = function.ops[alloc];
  const ir::ViewType& buffer = function.view_type(op.result);
  const ir::ViewType& shape = function.view_type(function.ops[alias].result);
  return diags
      .report<diag::SpanSwizzled>(function.ops[alias].span, row_bytes(shape),
                                  function.values[op.result].name, row_bytes(buffer), swizzle)
      .label(op.span, "the buffer")
      .help("keep its rows: {} as the last extent{}", function.text(buffer.shape.back()),
            std::get<ir::Alloc>(op.data).swizzle_wanted > 0 ? ", or leave `.swiz` out" : "")
      .emit();
}

// Chooses the swizzle of a buffer read in place, or checks the program's.
Checked<std::int64_t> place_tiles(const ir::Function& function, ir::OpId alloc,
                                  const BufferUses& uses, Diagnostics& diags) {
  const ir::Op& op = function.ops[alloc];
  const ir::ViewType& type = function.view_type(op.result);
  const std::int64_t size = size_bytes(type.dtype);
  const std::int64_t row = row_bytes(type);
  const std::int64_t best = swizzle_for(function, op.result, uses);
  const std::int64_t wanted = std::get<ir::Alloc>(op.data).swizzle_wanted;
  const Span where = function.ops[uses.tiles[0].load].span;
  const std::int64_t without_shapes =
      swizzle_for(function, op.result, {.tiles = uses.tiles, .copies = {}, .reshapes = {}});
  if (best == 0 && without_shapes != 0) {
    return report_reshape(function, uses.reshapes[0], alloc, without_shapes, diags);
  }
  if (best == 0) {
    return diags.report<diag::MmaTileUnaddressable>(where, function.values[op.result].name, row)
        .label(op.span, "the buffer")
        .help(
            "make the buffer's rows a multiple of 16 bytes, and begin each tile at a multiple "
            "of 8 rows and of its own width")
        .emit();
  }
  if (wanted < 0) return best;
  if (const auto unfit = unfit_reshape(function, op.result, uses.reshapes, wanted); unfit.valid()) {
    return report_reshape(function, unfit, alloc, wanted, diags);
  }
  if (wanted > 0 && all_addressable(uses.tiles, wanted, size)) return wanted;
  return diags.report<diag::MmaSwizzleUnaddressable>(where, function.values[op.result].name, wanted)
      .label(op.span, "the buffer")
      .help("{}", best == target::kPlainPanel
                      ? std::string("leave `.swiz` out: the tile fits no swizzle")
                      : format("use `.swiz<{}>`, or leave `.swiz` out", best))
      .emit();
}

std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// --- addresses

// The shared buffers and the events of a launch.
struct Residents {
  std::vector<ir::OpId> buffers;
  std::vector<ir::OpId> events;
};

Residents residents_of(const ir::Function& function, ir::RegionId body) {
  Residents out;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    const auto* event = std::get_if<ir::Event>(&op.data);
    if (event != nullptr && !event->grid) out.events.push_back(id);
    if (!std::holds_alternative<ir::Alloc>(op.data)) return;
    const auto* type = std::get_if<ir::ViewType>(&function.type(op.result));
    if (type != nullptr && type->space == ir::Space::kShared) out.buffers.push_back(id);
  });
  return out;
}

// The buffers that are rings of the same number of stages, if there are any.
struct Rings {
  std::vector<ir::OpId> buffers;
  std::int64_t stages = 0;
  std::int64_t stage_bytes = 0;  // of one stage of each
};

// Arrays have their subscript in front of the rows and columns of a tile.
Rings rings_of(const ir::Function& function, const std::vector<ir::OpId>& buffers) {
  constexpr std::size_t kTileRank = 2;
  std::map<std::int64_t, Rings> by_stages;
  for (const ir::OpId id : buffers) {
    const ir::ViewType& type = function.view_type(function.ops[id].result);
    const std::int64_t stages = type.shape[0].constant().value_or(1);
    if (type.shape.size() <= kTileRank || stages < 2) continue;
    Rings& rings = by_stages[stages];
    rings.buffers.push_back(id);
    rings.stages = stages;
    rings.stage_bytes += bytes_of(type) / stages;
  }
  Rings largest;
  for (auto& [stages, rings] : by_stages) {
    if (rings.stages * rings.stage_bytes > largest.stages * largest.stage_bytes) largest = rings;
  }
  return largest;
}

// "use at most 3 stages of `a` and `b`, which have 4 (3 fit)", or how much is too much.
std::string limit_help(const ir::Function& function, const Rings& rings, std::int64_t excess,
                       std::int64_t limit) {
  const std::int64_t too_many =
      rings.stages == 0 ? 0 : (excess + rings.stage_bytes - 1) / rings.stage_bytes;
  const std::int64_t fit = rings.stages - too_many;
  if (rings.stages == 0 || fit < 1) {
    return format("take {} bytes away: smaller tiles, or fewer stages", excess);
  }
  std::string names;
  for (const ir::OpId id : rings.buffers) {
    if (!names.empty()) names += id == rings.buffers.back() ? " and " : ", ";
    names += format("`{}`", function.values[function.ops[id].result].name);
  }
  return format("use at most {} stages of {} instead of {}: {} fit in {} bytes", fit, names,
                rings.stages, fit, limit);
}

Unexpected<Reported> report_limit(const ir::Module& module, const ir::Function& function,
                                  ir::OpId launch, const std::vector<ir::OpId>& allocs,
                                  Diagnostics& diags) {
  const ir::Op& op = function.ops[launch];
  const std::int64_t bytes = std::get<ir::Parallel>(op.data).shared_bytes;
  const std::int64_t limit = module.arch->smem_per_block_max;
  auto builder =
      diags.report<diag::SharedMemoryLimit>(op.span, std::get<ir::Parallel>(op.data).name, bytes,
                                            module.arch->name, module.arch->smem_per_block_max);
  for (ir::OpId id : allocs) {
    const ir::Op& alloc = function.ops[id];
    static_cast<void>(std::move(builder).label(alloc.span, "{} bytes",
                                               bytes_of(function.view_type(alloc.result))));
  }
  return std::move(builder)
      .help("{}", limit_help(function, rings_of(function, allocs), bytes - limit, limit))
      .emit();
}

// The buffers that are passed to CUDA, and where first.
std::map<ir::ValueId, ir::OpId> buffers_passed(const ir::Function& function, ir::RegionId body) {
  std::map<ir::ValueId, ir::OpId> out;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* cuda = std::get_if<ir::Cuda>(&function.ops[id].data);
    if (cuda == nullptr) return;
    for (const ir::Touch& touch : ir::memory_touched(function, function.ops[id])) {
      out.try_emplace(ir::root_of(function, touch.value), id);
    }
  });
  return out;
}

Unexpected<Reported> report_passed(const ir::Function& function, ir::OpId alloc, ir::OpId passed,
                                   std::int64_t swizzle, Diagnostics& diags) {
  const ir::Op& op = function.ops[passed];
  return diags
      .report<diag::CudaSwizzled>(op.span, std::get<ir::Cuda>(op.data).what,
                                  function.values[function.ops[alloc].result].name, swizzle)
      .label(function.ops[alloc].span, "the buffer")
      .help("copy what it needs into a buffer of its own, and pass that")
      .emit();
}

// What is known of a launch's buffers before they are laid out.
struct Uses {
  std::set<ir::ValueId> matrices;  // what the matrix unit loads and stores
  Reshapes reshaped;
  PlacedTiles in_place;
  BulkCopies bulk;
  std::map<ir::ValueId, ir::OpId> passed;  // to CUDA
};

Checked<std::int64_t> swizzle_of_uses(const ir::Function& function, ir::OpId id, const Uses& uses,
                                      const BufferUses& here, Diagnostics& diags) {
  const ir::Op& op = function.ops[id];
  const ir::ViewType& type = function.view_type(op.result);
  if (!here.tiles.empty()) return place_tiles(function, id, here, diags);
  const auto& alloc = std::get<ir::Alloc>(op.data);
  if (alloc.swizzle_wanted >= 0) {
    const std::int64_t wanted = alloc.swizzle_wanted;
    const ir::OpId unfit = unfit_reshape(function, op.result, here.reshapes, wanted);
    if (unfit.valid()) return report_reshape(function, unfit, id, wanted, diags);
    return wanted;
  }
  if (!uses.matrices.contains(op.result) || !here.reshapes.empty()) return 0;
  if (here.passed.valid()) return 0;
  return swizzle_with_boxes(function, here.copies, target::widest_swizzle(row_bytes(type)).bytes);
}

Checked<std::int64_t> choose_swizzle(const ir::Function& function, ir::OpId id, const Uses& uses,
                                     Diagnostics& diags) {
  const ir::ValueId buffer = function.ops[id].result;
  const auto of_buffer = [&](const auto& by_buffer) {
    const auto found = by_buffer.find(buffer);
    return found == by_buffer.end() ? decltype(found->second){} : found->second;
  };
  const BufferUses here{.tiles = of_buffer(uses.in_place),
                        .copies = of_buffer(uses.bulk),
                        .reshapes = of_buffer(uses.reshaped),
                        .passed = of_buffer(uses.passed)};
  const auto swizzle = swizzle_of_uses(function, id, uses, here, diags);
  if (!swizzle || *swizzle == 0 || !here.passed.valid()) return swizzle;
  return report_passed(function, id, here.passed, *swizzle, diags);
}

constexpr std::int64_t kSlotBytes = 8;                     // of an event
constexpr std::int64_t kBytesMax = std::int64_t{1} << 40;  // sums stay far below 64 bits

// The local memory that a region's buffers need at once: those of regions beside each other share
// theirs. `largest` becomes the largest of them.
std::int64_t local_bytes(const ir::Function& function, ir::RegionId region, ir::OpId& largest) {
  const auto bytes_at = [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (!std::holds_alternative<ir::Alloc>(op.data)) return std::int64_t{0};
    const auto* type = std::get_if<ir::ViewType>(&function.type(op.result));
    const bool local = type != nullptr && type->space == ir::Space::kLocal;
    return local ? std::min(bytes_of(*type), kBytesMax) : 0;
  };
  std::int64_t own = 0;
  std::int64_t inside = 0;
  for (const ir::OpId id : function.regions[region].ops) {
    const std::int64_t bytes = bytes_at(id);
    own = std::min(own + bytes, kBytesMax);
    if (bytes > 0 && (!largest.valid() || bytes > bytes_at(largest))) largest = id;
    for (const ir::RegionId inner : ir::regions_of(function.ops[id])) {
      inside = std::max(inside, local_bytes(function, inner, largest));
    }
  }
  return own + inside;
}

Checked<bool> check_local(const ir::Module& module, const ir::Function& function, ir::OpId launch,
                          Diagnostics& diags) {
  const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
  ir::OpId largest;
  const std::int64_t bytes = local_bytes(function, parallel.body, largest);
  const std::int64_t limit = module.arch->local_per_thread_max;
  if (bytes <= limit) return true;
  const ir::Op& alloc = function.ops[largest];
  return diags
      .report<diag::LocalMemoryLimit>(alloc.span, parallel.name, bytes, module.arch->name, limit)
      .label(alloc.span, "{} bytes", bytes_of(function.view_type(alloc.result)))
      .help("keep large arrays in global memory, a part of it for each thread")
      .emit();
}

// Whether the operation can use a buffer that has no layout but its rows.
bool takes_pointers(const ir::Op& op) {
  if (const auto* copy = std::get_if<ir::Copy>(&op.data)) return !copy->bulk;
  const ir::OpKind kind = op.kind();
  return kind == ir::OpKind::kAlloc || kind == ir::OpKind::kRead || kind == ir::OpKind::kWrite ||
         kind == ir::OpKind::kAtomic || kind == ir::OpKind::kSplat || kind == ir::OpKind::kCuda;
}

// Reports the first operation that needs to know where in a tile its elements are.
Checked<bool> check_users_of_pointers(const ir::Function& function, ir::RegionId body,
                                      Diagnostics& diags) {
  bool failed = false;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (takes_pointers(op)) return;
    for (const ir::Touch& touch : ir::memory_touched(function, op)) {
      const ir::ValueId root = ir::root_of(function, touch.value);
      if (failed || !ir::is_sized_at_launch(function, root)) continue;
      failed = true;
      diags.report<diag::BufferSizedLate>(op.span, function.values[root].name)
          .label(function.ops[function.values[root].def].span, "its extents are known at launch")
          .help("copy the tile into a buffer of constant extents, and use that")
          .emit();
    }
  });
  if (failed) return diags.failed();
  return true;
}

// The buffers whose extents are known at launch stand behind all others. How much all of them take is
// compared with the limit at launch.
void lay_out_late(const ir::Module& module, ir::Function& function, ir::Parallel& launch,
                  const std::vector<ir::OpId>& buffers) {
  const std::int64_t limit = module.arch->smem_per_block_max;
  Span first;
  for (const ir::OpId id : buffers) {
    ir::Op& op = function.ops[id];
    if (!ir::is_sized_at_launch(function, op.result)) continue;
    if (!first.valid()) {
      first = op.span;
      launch.shared_bytes = align_up(launch.shared_bytes, ir::kSharedAlignment);
    }
    auto& alloc = std::get<ir::Alloc>(op.data);
    alloc.offset = launch.shared_bytes;
    alloc.behind = launch.shared_more;
    const ir::ViewType& type = function.view_type(op.result);
    ir::Expr bytes = size_bytes(type.dtype);
    for (const ir::Expr& extent : type.shape) bytes = bytes * extent;
    const ir::Expr units = ir::cdiv(bytes, ir::Expr(ir::kSharedAlignment));
    launch.shared_more = launch.shared_more + units * ir::Expr(ir::kSharedAlignment);
  }
  if (!first.valid()) return;
  launch.shared_max = limit;
  function.checks.push_back(
      {launch.shared_more + launch.shared_bytes, ir::Relation::kLessEqual, limit,
       format("kernel `{}` needs more bytes of shared memory than {} has per block", launch.name,
              module.arch->name),
       first});
}

// Buffers in the program's order, then events, then buffers of which the launch says how large they
// are.
Checked<bool> lay_out(const ir::Module& module, ir::Function& function, ir::OpId launch,
                      Diagnostics& diags) {
  auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
  const Residents residents = residents_of(function, parallel.body);
  const Uses uses{.matrices = matrix_buffers(function, parallel.body),
                  .reshaped = reshaped_buffers(function, parallel.body),
                  .in_place = tiles_read_in_place(function, parallel.body),
                  .bulk = bulk_copies(function, parallel.body),
                  .passed = buffers_passed(function, parallel.body)};
  std::int64_t end = 0;
  bool failed = false;
  const std::int64_t limit = module.arch->smem_per_block_max;
  for (ir::OpId id : residents.buffers) {
    auto& alloc = std::get<ir::Alloc>(function.ops[id].data);
    if (ir::is_sized_at_launch(function, function.ops[id].result)) continue;
    // One that cannot be is not looked at closely, whatever its size.
    const std::int64_t bytes = bytes_of(function.view_type(function.ops[id].result));
    const bool fits = bytes <= limit;
    const auto swizzle =
        fits ? choose_swizzle(function, id, uses, diags) : Checked<std::int64_t>(0);
    failed = failed || !swizzle;
    alloc.swizzle = swizzle ? *swizzle : 0;
    alloc.offset = align_up(end, alloc.swizzle > 0 ? ir::kSwizzledAlignment : ir::kSharedAlignment);
    end = std::min(alloc.offset + std::min(bytes, kBytesMax), kBytesMax);
  }
  for (ir::OpId id : residents.events) {
    auto& event = std::get<ir::Event>(function.ops[id].data);
    event.offset = align_up(end, kSlotBytes);
    end = event.offset +
          kSlotBytes * std::get<ir::EventType>(function.type(function.ops[id].result)).slots;
  }
  parallel.shared_bytes = end;
  if (failed) return diags.failed();
  if (end > limit) return report_limit(module, function, launch, residents.buffers, diags);
  if (auto fine = check_users_of_pointers(function, parallel.body, diags); !fine) return fine;
  lay_out_late(module, function, parallel, residents.buffers);
  return check_local(module, function, launch, diags);
}

}  // namespace

Checked<bool> assign_layouts(ir::Module& module, Diagnostics& diags) {
  bool failed = false;
  for (ir::Function& function : module.functions) {
    for (ir::OpId launch : ir::launches(function)) {
      failed = !lay_out(module, function, launch, diags) || failed;
    }
  }
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
