#include "passes/assign_layouts.h"

#include <set>

#include "ir/shared_layout.h"
#include "target/swizzle.h"

namespace kiln::passes {

namespace {

// The shared buffers that `load` and `store` touch.
std::set<ir::ValueId> matrix_buffers(const ir::Function& function, ir::RegionId body) {
  std::set<ir::ValueId> out;
  ir::walk(function, body, [&](ir::OpId id) {
    const ir::OpData& data = function.ops[id].data;
    if (const auto* load = std::get_if<ir::Load>(&data)) {
      out.insert(ir::resolve_view(function, load->view).root);
    }
    if (const auto* store = std::get_if<ir::Store>(&data)) {
      out.insert(ir::resolve_view(function, store->view).root);
    }
  });
  return out;
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
  std::int64_t end = 0;
  for (ir::OpId id : allocs) {
    ir::Op& op = function.ops[id];
    auto& alloc = std::get<ir::Alloc>(op.data);
    const ir::ViewType& type = function.view_type(op.result);
    const std::int64_t row = type.shape.back().constant().value_or(0) * size_bytes(type.dtype);
    alloc.swizzle = alloc.swizzle_wanted >= 0          ? alloc.swizzle_wanted
                    : for_matrices.contains(op.result) ? target::widest_swizzle(row).bytes
                                                       : 0;
    alloc.offset = align_up(end, alloc.swizzle > 0 ? ir::kSwizzledAlignment : ir::kSharedAlignment);
    end = alloc.offset + bytes_of(type);
  }
  parallel.shared_bytes = end;
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
