// The GPU architectures kiln knows: one row each, nothing about them anywhere else.
//
//   const Arch* arch = find_arch("sm_90a");
//   arch->smem_per_block_max == 232448,  arch->has_tma == true
//
// Limits are those of the CUDA C++ programming guide's table of technical specifications. The last
// columns describe one reference part of the architecture, for static cost estimates only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln::target {

// Threads of a warp, on every NVIDIA GPU: what the maps of lanes in the tables are over.
inline constexpr int kWarpLanes = 32;

struct Arch {
  std::string_view name;     // as `--arch` takes it, and as nvcc and NVRTC spell it
  std::string_view compute;  // the virtual architecture: "compute_90a"
  int capability;            // 10 * major + minor; rows of other tables compare it with min_arch

  // Limits of one block.
  int smem_per_block_max;    // bytes, with the opt-in attribute
  int smem_static_max;       // bytes a kernel may use without opting in
  int local_per_thread_max;  // bytes of each thread's own memory
  int threads_per_block_max;
  int registers_per_thread_max;
  int registers_per_block_max;
  std::int64_t grid_x_max;
  std::int64_t grid_y_max;
  std::int64_t grid_z_max;

  // Limits of one multiprocessor (occupancy).
  int smem_per_sm;              // bytes
  int smem_reserved_per_block;  // bytes the system takes from smem_per_sm for each block
  int registers_per_sm;
  int registers_unit;  // registers are given to a warp in multiples of this
  int threads_per_sm_max;
  int blocks_per_sm_max;
  int warp_size;
  int smem_banks;
  int smem_bank_bytes;

  // Abilities.
  bool has_warpgroup;  // `group-4`: four warps that cooperate in one instruction
  bool has_cluster;
  bool has_tma;
  bool has_mbarrier_tx;    // barriers that count bytes
  bool overlaps_launches;  // a kernel may begin before the one in front of it has ended

  // The reference part.
  std::string_view part;
  int sms;
  double clock_ghz;
  int mma_macs_per_sm_cycle;  // 16-bit dense multiply-adds, all of the SM's tensor cores together
  int mma_f64_macs_per_sm_cycle;
  int mma_fp8_macs_per_sm_cycle;  // by `mma.sync`; 0: it has none
  double dram_gb_per_s;
  std::int64_t l2_bytes;
};

// All rows, oldest first.
[[nodiscard]] std::span<const Arch> all_archs();

// The row named `name` ("sm_80"), or null.
[[nodiscard]] const Arch* find_arch(std::string_view name);

// The newest row that runs on a device of this compute capability (90 -> sm_90a), or null.
[[nodiscard]] const Arch* find_arch_for_capability(int capability);

// What `--arch` takes: "sm_80, sm_86, sm_89, sm_90a".
[[nodiscard]] std::string arch_names();

}  // namespace kiln::target
