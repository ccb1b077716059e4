// The boxes in which the hardware moves a tile between global and shared memory.
//
//   tile [128, 64] of f16 in a buffer of 128-byte rows, swizzle 128      =>   box [128, 64]
//   tile [64, 128] of f16, rows of 256 bytes in two panels               =>   box [64, 64], twice
//   tile [512, 8] of f32, no swizzle                                     =>   box [256, 8], twice
//
// A box's bytes are one run of shared memory: its rows one after another, XORed by the pattern of
// the buffer's swizzle, from a multiple of 128 bytes on. Which boxes are such runs is asked of
// ir::shared_offset, element by element.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/module.h"

namespace kiln::passes {

enum class BoxProblem : std::uint8_t {
  kNone,
  kRank,        // the buffer in global memory has more dimensions than a tensor map: `seen`
  kInnerBytes,  // a row of the tile has `seen` bytes, no multiple of 16
  kPanels,      // a row of the tile, or where it begins, cuts through panels of `wanted` bytes
  kStart,       // a box begins where the address is no multiple of `wanted`
  kRun,         // rows of `seen` bytes lie `wanted` bytes apart
};

struct BoxPlan {
  std::vector<std::int64_t> box;  // empty: there is none, because of `problem`
  BoxProblem problem = BoxProblem::kNone;
  std::int64_t seen = 0;
  std::int64_t wanted = 0;
};

inline constexpr std::int64_t kBoxExtentMax = 256;  // elements in each dimension
inline constexpr std::int64_t kBoxRankMax = 5;
inline constexpr std::int64_t kBoxUnit = 16;  // bytes, of a box's rows

// The largest boxes that tile the shared side of a bulk copy when its buffer has `swizzle` (bytes).
// `senders`: the blocks of a cluster that send a box each in turn; the boxes are then as many as
// all of them can share, where rows allow it.
[[nodiscard]] BoxPlan plan_box(const ir::Function& function, const ir::Copy& copy,
                               std::int64_t swizzle, std::int64_t senders = 1);

// The view of a copy that is in shared memory, and the one that is in global memory.
[[nodiscard]] ir::ValueId shared_side(const ir::Function& function, const ir::Copy& copy);
[[nodiscard]] ir::ValueId global_side(const ir::Function& function, const ir::Copy& copy);

}  // namespace kiln::passes
