#include "target/arch.h"

#include <algorithm>

#include "support/format.h"

namespace kiln::target {

namespace {

constexpr std::array<std::int64_t, 3> kGridMax = {2147483647, 65535, 65535};

// What each generation adds.
constexpr Features kAmpere = {Feature::kMma, Feature::kLdmatrix, Feature::kCpAsync};
constexpr Features kAda = kAmpere | Features{Feature::kMmaFp8};
constexpr Features kHopper =
    kAda | Features{Feature::kMmaF64,     Feature::kStmatrix,      Feature::kWgmma,
                    Feature::kSetmaxnreg, Feature::kTma,           Feature::kMbarrier,
                    Feature::kCluster,    Feature::kGriddepcontrol};

constexpr Arch kArchs[] = {
    {.name = "sm_80",
     .compute = "compute_80",
     .capability = 80,
     .features = kAmpere,
     .smem_per_block_max = 166912,
     .smem_static_max = 49152,
     .local_per_thread_max = 512 << 10,
     .threads_per_block_max = 1024,
     .registers_per_thread_max = 255,
     .registers_per_block_max = 65536,
     .grid_max = kGridMax,
     .smem_per_sm = 167936,
     .smem_reserved_per_block = 1024,
     .registers_per_sm = 65536,
     .registers_unit = 256,
     .threads_per_sm_max = 2048,
     .blocks_per_sm_max = 32,
     .smem_banks = 32,
     .smem_bank_bytes = 4,
     .part = "A100 SXM 80 GB",
     .sms = 108,
     .clock_ghz = 1.41,
     .mma_macs_per_sm_cycle = 1024,
     .mma_f64_macs_per_sm_cycle = 64,
     .mma_fp8_macs_per_sm_cycle = 0,
     .dram_gb_per_s = 2039,
     .l2_bytes = std::int64_t{40} << 20,
     .lanes_per_cycle = {64, 32, 64, 16, 16, 32}},
    {.name = "sm_86",
     .compute = "compute_86",
     .capability = 86,
     .features = kAmpere,
     .smem_per_block_max = 101376,
     .smem_static_max = 49152,
     .local_per_thread_max = 512 << 10,
     .threads_per_block_max = 1024,
     .registers_per_thread_max = 255,
     .registers_per_block_max = 65536,
     .grid_max = kGridMax,
     .smem_per_sm = 102400,
     .smem_reserved_per_block = 1024,
     .registers_per_sm = 65536,
     .registers_unit = 256,
     .threads_per_sm_max = 1536,
     .blocks_per_sm_max = 16,
     .smem_banks = 32,
     .smem_bank_bytes = 4,
     .part = "A10",
     .sms = 72,
     .clock_ghz = 1.695,
     .mma_macs_per_sm_cycle = 512,
     .mma_f64_macs_per_sm_cycle = 2,
     .mma_fp8_macs_per_sm_cycle = 0,
     .dram_gb_per_s = 600,
     .l2_bytes = std::int64_t{6} << 20,
     .lanes_per_cycle = {128, 2, 64, 16, 16, 32}},
    {.name = "sm_89",
     .compute = "compute_89",
     .capability = 89,
     .features = kAda,
     .smem_per_block_max = 101376,
     .smem_static_max = 49152,
     .local_per_thread_max = 512 << 10,
     .threads_per_block_max = 1024,
     .registers_per_thread_max = 255,
     .registers_per_block_max = 65536,
     .grid_max = kGridMax,
     .smem_per_sm = 102400,
     .smem_reserved_per_block = 1024,
     .registers_per_sm = 65536,
     .registers_unit = 256,
     .threads_per_sm_max = 1536,
     .blocks_per_sm_max = 24,
     .smem_banks = 32,
     .smem_bank_bytes = 4,
     .part = "L40S",
     .sms = 142,
     .clock_ghz = 2.52,
     .mma_macs_per_sm_cycle = 512,
     .mma_f64_macs_per_sm_cycle = 2,
     .mma_fp8_macs_per_sm_cycle = 1024,
     .dram_gb_per_s = 864,
     .l2_bytes = std::int64_t{96} << 20,
     .lanes_per_cycle = {128, 2, 64, 16, 16, 32}},
    {.name = "sm_90a",
     .compute = "compute_90a",
     .capability = 90,
     .features = kHopper,
     .smem_per_block_max = 232448,
     .smem_static_max = 49152,
     .local_per_thread_max = 512 << 10,
     .threads_per_block_max = 1024,
     .registers_per_thread_max = 255,
     .registers_per_block_max = 65536,
     .grid_max = kGridMax,
     .smem_per_sm = 233472,
     .smem_reserved_per_block = 1024,
     .registers_per_sm = 65536,
     .registers_unit = 256,
     .threads_per_sm_max = 2048,
     .blocks_per_sm_max = 32,
     .smem_banks = 32,
     .smem_bank_bytes = 4,
     .part = "H200 SXM",
     .sms = 132,
     .clock_ghz = 1.83,
     .mma_macs_per_sm_cycle = 2048,
     .mma_f64_macs_per_sm_cycle = 128,
     // Converted to f16 and multiplied as such: only `wgmma` reads FP8 itself.
     .mma_fp8_macs_per_sm_cycle = 2048,
     .dram_gb_per_s = 4800,
     .l2_bytes = std::int64_t{50} << 20,
     .lanes_per_cycle = {128, 64, 64, 16, 64, 32}},
};

// The largest block must fit the multiprocessor with what the system reserves for it.
consteval bool rows_are_consistent(std::span<const Arch> rows) {
  int before = 0;
  for (const Arch& row : rows) {
    if (row.capability <= before) return false;
    before = row.capability;
    if (row.smem_per_block_max + row.smem_reserved_per_block != row.smem_per_sm) return false;
    if (row.smem_static_max > row.smem_per_block_max) return false;
    if (row.threads_per_block_max > row.threads_per_sm_max) return false;
    if (row.threads_per_sm_max % kWarpLanes != 0) return false;
    // A bulk copy tells an mbarrier what it has brought.
    if (row.has(Feature::kTma) && !row.has(Feature::kMbarrier)) return false;
  }
  return true;
}
static_assert(rows_are_consistent(kArchs));

}  // namespace

std::string_view name(Unit unit) {
  switch (unit) {
    case Unit::kFp32: return "FP32";
    case Unit::kFp64: return "FP64";
    case Unit::kInteger: return "integers";
    case Unit::kSpecial: return "special functions";
    case Unit::kConversion: return "conversions";
    case Unit::kShuffle: break;
  }
  return "shuffles";
}

std::span<const Arch> all_archs() { return kArchs; }

const Arch& default_arch() { return *(std::end(kArchs) - 1); }

const Arch* find_arch(std::string_view name) {
  for (const Arch& row : kArchs) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

namespace {

// Code runs on later minor versions of its major version only.
bool runs_on(const Arch& code, int capability) {
  return code.capability / 10 == capability / 10 && code.capability <= capability;
}

}  // namespace

const Arch* find_arch_for_capability(int capability) {
  const Arch* best = nullptr;
  for (const Arch& row : kArchs) {
    if (runs_on(row, capability)) best = &row;
  }
  return best;
}

bool runs_code_of(const Arch& device, const Arch& code) { return runs_on(code, device.capability); }

const Arch* oldest_arch(Features needed) {
  const auto found = std::ranges::find_if(kArchs, [&](const Arch& row) { return row.has(needed); });
  return found == std::end(kArchs) ? nullptr : &*found;
}

std::string arch_names() {
  return join(kArchs, ", ", [](const Arch& row) { return row.name; });
}

std::string arch_choice() {
  const std::span<const Arch> all = kArchs;
  const auto name = [](const Arch& row) { return row.name; };
  return format("{} or {}", join(all.first(all.size() - 1), ", ", name), all.back().name);
}

}  // namespace kiln::target
