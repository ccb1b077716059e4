#include "target/occupancy.h"

#include <algorithm>

#include "support/integer.h"

namespace kiln::target {

namespace {

// Two facts of the hardware that are equal on every architecture of the table (target/arch.cpp).
constexpr std::int64_t kSharedUnit = 128;  // bytes
constexpr std::int64_t kQuarters = 4;      // of an SM, each with its own registers

std::int64_t round_up(std::int64_t a, std::int64_t unit) { return ceil_div(a, unit) * unit; }

// Warps whose registers the SM has room for.
std::int64_t warps_by_registers(const Arch& arch, int registers) {
  const std::int64_t warp =
      round_up(std::int64_t{std::max(registers, 1)} * kWarpLanes, arch.registers_unit);
  return arch.registers_per_sm / kQuarters / warp * kQuarters;
}

std::int64_t blocks_by(Resource resource, const Arch& arch, const BlockNeeds& needs) {
  const std::int64_t warps = ceil_div(needs.threads, kWarpLanes);
  switch (resource) {
    case Resource::kThreads: return arch.threads_per_sm_max / kWarpLanes / warps;
    case Resource::kSharedMemory:
      return needs.shared_bytes > arch.smem_per_block_max
                 ? 0
                 : arch.smem_per_sm /
                       (round_up(needs.shared_bytes, kSharedUnit) + arch.smem_reserved_per_block);
    case Resource::kRegisters:
      return needs.registers > arch.registers_per_thread_max
                 ? 0
                 : warps_by_registers(arch, needs.registers) / warps;
    case Resource::kBlocks: return arch.blocks_per_sm_max;
  }
  return 0;
}

}  // namespace

std::string_view name(Resource resource) {
  switch (resource) {
    case Resource::kThreads: return "threads";
    case Resource::kSharedMemory: return "shared memory";
    case Resource::kRegisters: return "registers";
    case Resource::kBlocks: return "blocks";
  }
  return "";
}

Occupancy occupancy(const Arch& arch, const BlockNeeds& needs) {
  Occupancy out;
  for (const Resource resource : kResources) {
    out.limits[static_cast<std::size_t>(resource)] = blocks_by(resource, arch, needs);
  }
  out.blocks = *std::min_element(out.limits.begin(), out.limits.end());
  for (const Resource resource : kResources) {
    if (out.limit(resource) == out.blocks) out.limited_by.push_back(resource);
  }
  out.warps = out.blocks * ceil_div(needs.threads, kWarpLanes);
  out.shared_bytes_max = arch.smem_per_block_max;
  out.warps_max = arch.threads_per_sm_max / kWarpLanes;
  return out;
}

}  // namespace kiln::target
