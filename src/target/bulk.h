// What bulk copies by tensor map ask of tiles. PTX ISA, "cp.async.bulk.tensor"; CUDA driver API,
// "cuTensorMapEncodeTiled".
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::target {

inline constexpr std::int64_t kBulkBytes =
    16;  // rows begin at multiples of it, and boxes are as wide
inline constexpr std::int64_t kBulkAlignment = 128;  // bytes: where a box begins in shared memory
inline constexpr std::size_t kBulkRankMax = 5;

}  // namespace kiln::target
