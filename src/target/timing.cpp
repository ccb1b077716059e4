#include "target/timing.h"

#include <algorithm>

#include "support/check.h"

namespace kiln::target {

namespace {

// Measured on an H200 SXM of 700 W (driver 580, CUDA 13.0): nearly the least error over 53 launches of 15 kernels of this
// tree, from one wave to 500. What else says it stands beside a figure.
constexpr Timing kH200 = {
    .arch = "sm_90a",
    .clock_max_ghz = 1.98,  // nvidia-smi
    .power_watts = 700,     // nvidia-smi
    .idle_watts = 130,      // nvidia-smi: at its clock, with nothing to do
    .tensor_watts = 1600,
    .memory_watts = 120,
    .cache_watts = 150,
    .clock_exponent = 0.22,    // fits clocks of 1.55 to 1.85 GHz in dense products
    .l2_bytes_per_cycle = 64,  // CUDA's tuning guides: 64 bytes a cycle
    .l2_all_bytes_per_cycle = 6350,
    .store_bytes_per_cycle = 32,  // a sector a cycle
    .dram_efficiency = 0.9,       // copies reach 4.3 TB/s of 4.8
    .l2_latency = 220,            // published measurements: 200 to 270
    .dram_latency = 965,
    .fresh_later = 0.5,
    .async_latency = 285,
    .bulk_latency = 420,   // published measurements of TMA: 600 to 700 in all
    .shared_latency = 30,  // published measurements: 29 to 33
    .line_cycles = 1.05,
    .async_line_cycles = 1.7,
    .async_cycles = 2,
    .fence_latency = 20,
    .issue_gap = 1.5,
    // Counted in what nvcc makes of copies of 2, 4 and 8 accesses a thread: 46, 69 and 109 with the accesses.
    .copy_slots = 28,
    .request_slots = 8,
    .access_slots = 10,
    .step_slots = 4,
    .shuffle_latency = 26,  // published measurements: 23 to 26
    // Counted: a reciprocal (published measurements: 23), five products one after the other, a branch; less the issue.
    .quotient_latency = 40,
    .mma_efficiency = 0.63,  // published measurements: 62 to 66 % of `wgmma`'s rate
    .mma_latency = 18,
    .product_latency = 50,
    .barrier_latency = 85,
    .event_latency = 12,
    .block_cycles = 710,
    .launch_seconds = 0.9e-6};

// Not measured: clocks, watts and the cache's rate as documented, the rest as on the H200.
struct Documented {
  std::string_view arch;
  double clock_ghz;
  double watts;
  double l2_bytes_per_cycle;  // to all SMs
};

constexpr Timing like_h200(const Documented& part) {
  Timing out = kH200;
  out.arch = part.arch;
  out.clock_max_ghz = part.clock_ghz;
  out.power_watts = part.watts;
  out.tensor_watts = part.watts;  // they hold their clock
  out.l2_all_bytes_per_cycle = part.l2_bytes_per_cycle;
  out.mma_efficiency = 0.95;  // `mma.sync` is what their tensor cores are made for
  return out;
}

constexpr Timing kTimings[] = {
    like_h200({"sm_80", 1.41, 400, 5120}),   // its whitepaper
    like_h200({"sm_86", 1.695, 150, 2304}),  // 32 bytes a cycle for each of 72 SMs
    like_h200({"sm_89", 2.52, 350, 4544}),   // and of 142
    kH200,
};

}  // namespace

const Timing& timing_of(const Arch& arch) {
  const auto* found = std::ranges::find(kTimings, arch.name, &Timing::arch);
  KILN_CHECK(found != std::end(kTimings), "no timing of {}", arch.name);
  return *found;
}

}  // namespace kiln::target
