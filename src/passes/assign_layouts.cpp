#include "passes/assign_layouts.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/prove.h"
#include "ir/shared_layout.h"
#include "ir/strides.h"
#include "target/descriptor.h"
#include "target/swizzle.h"

namespace kiln::passes {

namespace {

ir::ValueId buffer_of(const ir::Function& function, ir::ValueId view) {
  return ir::storage_of(function, ir::resolve_view(function, view).root);
}

// The shared buffers that have other shapes with rows of another length: they are not swizzled.
std::set<ir::ValueId> reshaped_buffers(const ir::Function& function, ir::RegionId body) {
  std::set<ir::ValueId> out;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* alias = std::get_if<ir::Alias>(&function.ops[id].data);
    if (alias == nullptr) return;
    const ir::Expr& row = function.view_type(function.ops[id].result).shape.back();
    if (!(row == function.view_type(alias->base).shape.back())) out.insert(alias->base);
  });
  return out;
}

// The shared buffers that `load` and `store` touch.
std::set<ir::ValueId> matrix_buffers(const ir::Function& function, ir::RegionId body) {
  std::set<ir::ValueId> out;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::OpData& data = function.ops[id].data;
    if (const auto* load = std::get_if<ir::Load>(&data)) {
      out.insert(buffer_of(function, load->view));
    }
    if (const auto* store = std::get_if<ir::Store>(&data)) {
      out.insert(buffer_of(function, store->view));
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
    out[ir::storage_of(function, view.root)].push_back(
        {id, view, type.shape.back().constant().value_or(0) * size_bytes(type.dtype),
         k_bytes_of(function, *load),
         root.size() > 2 ? root[root.size() - 2].constant().value_or(1) : 0});
  });
  return out;
}

// Whether a descriptor can begin where the tile does: at the first of 8 rows, and at a panel's edge
// or so that the tile's rows stay inside the panel.
bool is_addressable(const PlacedTile& tile, std::int64_t swizzle, std::int64_t size) {
  const std::size_t dims = tile.view.origin.size();
  const bool at_eighth = dims >= 2 && tile.slab_rows % target::kDescriptorRows == 0 &&
                         ir::always_divisible(tile.view.origin[dims - 2], target::kDescriptorRows);
  // An instruction's K does not leave a panel that is XORed.
  constexpr std::int64_t kPlainPanel = 16;
  if (!at_eighth || (swizzle != kPlainPanel && swizzle < tile.k_bytes)) return false;
  const std::int64_t at =
      tile.row_bytes < swizzle && swizzle % tile.row_bytes == 0 ? tile.row_bytes : swizzle;
  return at % size == 0 && ir::always_divisible(tile.view.origin[dims - 1], at / size);
}

bool all_addressable(const std::vector<PlacedTile>& tiles, std::int64_t swizzle,
                     std::int64_t size) {
  return std::all_of(tiles.begin(), tiles.end(),
                     [&](const PlacedTile& tile) { return is_addressable(tile, swizzle, size); });
}

// The widest swizzle that divides the buffer's rows and allows every tile; 0: none does.
std::int64_t swizzle_for(const std::vector<PlacedTile>& tiles, std::int64_t row,
                         std::int64_t size) {
  for (const std::int64_t swizzle : {128, 64, 32, 16}) {
    if (row % swizzle == 0 && all_addressable(tiles, swizzle, size)) return swizzle;
  }
  return 0;
}

// Chooses the swizzle of a buffer read in place, or checks the program's.
Checked<std::int64_t> place_tiles(const ir::Function& function, ir::OpId alloc,
                                  const std::vector<PlacedTile>& tiles, Diagnostics& diags) {
  const ir::Op& op = function.ops[alloc];
  const ir::ViewType& type = function.view_type(op.result);
  const std::int64_t size = size_bytes(type.dtype);
  const std::int64_t row = type.shape.back().constant().value_or(0) * size;
  const std::int64_t best = swizzle_for(tiles, row, size);
  const std::int64_t wanted = std::get<ir::Alloc>(op.data).swizzle_wanted;
  const Span where = function.ops[tiles[0].load].span;
  if (best == 0) {
    return diags.report<diag::MmaTileUnaddressable>(where, function.values[op.result].name, row)
        .label(op.span, "the buffer")
        .help(
            "make the buffer's rows a multiple of 16 bytes, and begin each tile at a multiple "
            "of 8 rows and of its own width")
        .emit();
  }
  if (wanted < 0) return best;
  if (wanted > 0 && all_addressable(tiles, wanted, size)) return wanted;
  return diags.report<diag::MmaSwizzleUnaddressable>(where, function.values[op.result].name, wanted)
      .label(op.span, "the buffer")
      .help("{}", best == 16 ? std::string("leave `.swiz` out: the tile fits no swizzle")
                             : format("use `.swiz<{}>`, or leave `.swiz` out", best))
      .emit();
}

std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::int64_t bytes_of(const ir::ViewType& type) {
  std::int64_t bytes = size_bytes(type.dtype);
  for (const ir::Expr& extent : type.shape) bytes *= extent.constant().value_or(0);
  return bytes;
}

Unexpected<Reported> report_limit(const ir::Module& module, const ir::Function& function,
                                  ir::OpId launch, const std::vector<ir::OpId>& allocs,
                                  Diagnostics& diags) {
  const ir::Op& op = function.ops[launch];
  const std::int64_t bytes = std::get<ir::Parallel>(op.data).shared_bytes;
  auto builder =
      diags.report<diag::SharedMemoryLimit>(op.span, std::get<ir::Parallel>(op.data).name, bytes,
                                            module.arch->name, module.arch->smem_per_block_max);
  for (ir::OpId id : allocs) {
    const ir::Op& alloc = function.ops[id];
    static_cast<void>(std::move(builder).label(alloc.span, "{} bytes",
                                               bytes_of(function.view_type(alloc.result))));
  }
  return std::move(builder)
      .help("take {} bytes away: smaller tiles, or fewer stages",
            bytes - module.arch->smem_per_block_max)
      .emit();
}

Checked<bool> lay_out(const ir::Module& module, ir::Function& function, ir::OpId launch,
                      Diagnostics& diags) {
  auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
  const std::set<ir::ValueId> for_matrices = matrix_buffers(function, parallel.body);
  std::vector<ir::OpId> allocs;
  ir::walk(function, parallel.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (!std::holds_alternative<ir::Alloc>(op.data)) return;
    const auto* type = std::get_if<ir::ViewType>(&function.type(op.result));
    if (type != nullptr && type->space == ir::Space::kShared) allocs.push_back(id);
  });
  const std::set<ir::ValueId> reshaped = reshaped_buffers(function, parallel.body);
  const PlacedTiles placed = tiles_read_in_place(function, parallel.body);
  std::int64_t end = 0;
  bool failed = false;
  for (ir::OpId id : allocs) {
    ir::Op& op = function.ops[id];
    auto& alloc = std::get<ir::Alloc>(op.data);
    const ir::ViewType& type = function.view_type(op.result);
    const std::int64_t row = type.shape.back().constant().value_or(0) * size_bytes(type.dtype);
    alloc.swizzle = alloc.swizzle_wanted >= 0          ? alloc.swizzle_wanted
                    : reshaped.contains(op.result)     ? 0
                    : for_matrices.contains(op.result) ? target::widest_swizzle(row).bytes
                                                       : 0;
    if (const auto tiles = placed.find(op.result); tiles != placed.end()) {
      const auto swizzle = place_tiles(function, id, tiles->second, diags);
      failed = failed || !swizzle;
      if (swizzle) alloc.swizzle = *swizzle;
    }
    alloc.offset = align_up(end, alloc.swizzle > 0 ? ir::kSwizzledAlignment : ir::kSharedAlignment);
    end = alloc.offset + bytes_of(type);
  }
  parallel.shared_bytes = end;
  if (failed) return diags.failed();
  if (end > module.arch->smem_per_block_max) {
    return report_limit(module, function, launch, allocs, diags);
  }
  return true;
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
