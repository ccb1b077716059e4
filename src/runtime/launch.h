// From a launch's plan and the values at the launch to what the driver is told.
//
//   plan: grid {cdiv(M, 16)}, threads 128, slots (lhs_map, lhs, M)     with M = 100
//     sized_launch(plan, vars, arch)   grid 7, 128 threads
//     value_bits(M's slot, host)       100
//     map_request(lhs's map, vars)     boxes and extents; address and shape are the caller's
#pragma once

#include <cstdint>
#include <vector>

#include "emit/cuda/launch_plan.h"
#include "runtime/gpu.h"
#include "runtime/host_program.h"

namespace kiln::runtime {

// Bytes of the largest kernel parameter but a tensor map.
inline constexpr std::size_t kValueBytes = 8;
// A number of 32 bits that a kernel computes coordinates with leaves room for tiles that overhang.
inline constexpr std::int64_t kCoordinateMax = INT32_MAX - (1 << 20);

// Grid, block and shared memory; `vars` by VarId. Errors: a grid or a block that the device does
// not take, a dimension too large for the kernel's 32-bit coordinates.
[[nodiscard]] Result<Launch> sized_launch(const emit::LaunchPlan& plan,
                                          const std::vector<std::int64_t>& vars,
                                          const target::Arch& arch);

// The bits of a variable or a scalar (kVar, kScalar), as the host program has it now.
[[nodiscard]] std::uint64_t value_bits(const emit::ParamSlot& slot, const HostProgram& host);

// A map but for the buffer: type, address, shape and strides are left to fill in.
[[nodiscard]] TensorMapRequest map_request(const emit::MapPlan& plan,
                                           const std::vector<std::int64_t>& vars);

}  // namespace kiln::runtime
