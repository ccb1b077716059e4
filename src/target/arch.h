// The GPU architectures kiln knows: one row each, nothing about them anywhere else.
//
//   const Arch* arch = find_arch("sm_90a");
//   arch->smem_per_block_max == 232448,  arch->has(Feature::kTma) == true
//
// Limits are those of the CUDA C++ programming guide's table of technical specifications. The last
// columns describe one reference part of the architecture, for static cost estimates only.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace kiln::target {

// Threads of a warp, on every NVIDIA GPU: what the maps of lanes in the tables are over.
inline constexpr int kWarpLanes = 32;
// And of a warpgroup: four warps.
inline constexpr int kWarpgroupLanes = 4 * kWarpLanes;
// What a register holds.
inline constexpr int kRegisterBits = 32;

// What one architecture can do and another cannot. Rows of other tables, and whoever makes use of a
// feature without a table, ask for these, never for a capability. The names are PTX's where it has
// one.
enum class Feature : std::uint8_t {
  kMma,             // mma.sync and mma.sp of 16-bit types, tf32, integers; of f64 as m8n8k4
  kMmaFp8,          // mma.sync and mma.sp of 8-bit floats
  kMmaF64,          // mma.sync of f64 with 16 rows
  kLdmatrix,        // 8x8 matrices from shared memory, by a warp
  kStmatrix,        // and to it
  kCpAsync,         // copies to shared memory past the registers
  kWgmma,           // matrix products of a warpgroup: four warps, the language's `group-4`
  kSetmaxnreg,      // a warpgroup gives registers away, or takes more
  kTma,             // cp.async.bulk.tensor: copies by tensor map
  kMbarrier,        // barriers in shared memory that count bytes too
  kCluster,         // blocks that run together and reach each other's shared memory
  kGriddepcontrol,  // a kernel may begin before the one in front of it has ended
};

// A set of them.
class Features {
 public:
  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> features) {
    for (const Feature feature : features) bits_ |= bit(feature);
  }
  // Whether all of `others` are in the set.
  [[nodiscard]] constexpr bool include(Features others) const {
    return (others.bits_ & ~bits_) == 0;
  }
  [[nodiscard]] friend constexpr Features operator|(Features left, Features right) {
    left.bits_ |= right.bits_;
    return left;
  }
  friend constexpr bool operator==(Features, Features) = default;

 private:
  static constexpr std::uint32_t bit(Feature feature) {
    return std::uint32_t{1} << static_cast<int>(feature);
  }
  std::uint32_t bits_ = 0;
};

// The parts of a multiprocessor that work on threads' values, beside the tensor cores.
enum class Unit : std::uint8_t {
  kFp32,        // additions and multiplications of f32; of 16-bit floats one at a time too
  kFp64,        // of f64
  kInteger,     // integers, comparisons, minima, maxima, choices
  kSpecial,     // exp2, log2, reciprocals, sin...; rounding to integers
  kConversion,  // between floating-point types, and of 32-bit integers to them
  kShuffle,     // between the lanes of a warp
};
inline constexpr std::array kUnits = {Unit::kFp32,    Unit::kFp64,       Unit::kInteger,
                                      Unit::kSpecial, Unit::kConversion, Unit::kShuffle};
[[nodiscard]] std::string_view name(Unit unit);  // "special functions"

// Instructions of warps that a multiprocessor starts in a cycle: one from each quarter.
inline constexpr int kIssuesPerCycle = 4;

// Bytes that global memory moves at least, for any access to them (CUDA's best practices guide, coalesced access).
inline constexpr std::int64_t kSectorBytes = 32;

struct Arch {
  std::string_view name;     // as `--arch` takes it, and as nvcc and NVRTC spell it
  std::string_view compute;  // the virtual architecture: "compute_90a"
  int capability;            // 10 * major + minor: which devices run it
  Features features;

  // Limits of one block.
  int smem_per_block_max;    // bytes, with the opt-in attribute
  int smem_static_max;       // bytes a kernel may use without opting in
  int local_per_thread_max;  // bytes of each thread's own memory
  int threads_per_block_max;
  int registers_per_thread_max;
  int registers_per_block_max;
  std::array<std::int64_t, 3> grid_max;  // blocks along x, y and z

  // Limits of one multiprocessor (occupancy).
  int smem_per_sm;              // bytes
  int smem_reserved_per_block;  // bytes the system takes from smem_per_sm for each block
  int registers_per_sm;
  int registers_unit;  // registers are given to a warp in multiples of this
  int threads_per_sm_max;
  int blocks_per_sm_max;
  int smem_banks;
  int smem_bank_bytes;

  // The reference part.
  std::string_view part;
  int sms;
  double clock_ghz;
  int mma_macs_per_sm_cycle;  // 16-bit dense multiply-adds, all of the SM's tensor cores together
  int mma_f64_macs_per_sm_cycle;
  int mma_fp8_macs_per_sm_cycle;  // by `mma.sync`; 0: it has none
  double dram_gb_per_s;
  std::int64_t l2_bytes;
  // By Unit: lanes of warps that all of the SM's units serve in a cycle. CUDA C++ Programming Guide,
  // "Throughput of Native Arithmetic Instructions".
  std::array<int, kUnits.size()> lanes_per_cycle;

  [[nodiscard]] constexpr int lanes_each_cycle(Unit unit) const {
    return lanes_per_cycle[static_cast<std::size_t>(unit)];
  }

  [[nodiscard]] constexpr bool has(Features needed) const { return features.include(needed); }
  [[nodiscard]] constexpr bool has(Feature feature) const { return has(Features{feature}); }
};

// All rows, oldest first.
[[nodiscard]] std::span<const Arch> all_archs();

// The row named `name` ("sm_80"), or null.
[[nodiscard]] const Arch* find_arch(std::string_view name);

// The newest row that runs on a device of this compute capability (90 -> sm_90a), or null.
[[nodiscard]] const Arch* find_arch_for_capability(int capability);

// Whether machine code for `code` runs on a device of the row `device`.
[[nodiscard]] bool runs_code_of(const Arch& device, const Arch& code);

// The first row that has all of these, or null: what a program needs at least.
[[nodiscard]] const Arch* oldest_arch(Features needed);

// The most blocks that a grid has along the axis: 0 is x, the first one written.
[[nodiscard]] constexpr std::int64_t blocks_along(const Arch& arch, std::size_t axis) {
  return arch.grid_max[axis];
}

// What is compiled for where nothing says another: the newest.
[[nodiscard]] const Arch& default_arch();

// What `--arch` takes: "sm_80, sm_86, sm_89, sm_90a".
[[nodiscard]] std::string arch_names();
// The names that `--arch` takes, in a sentence: "sm_80, sm_86, sm_89 or sm_90a".
[[nodiscard]] std::string arch_choice();

}  // namespace kiln::target
