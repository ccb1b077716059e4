// What attributes of operations may be (op.h), where that is neither a number nor a row of a table.
#pragma once

#include <cstdint>

namespace kiln::ir {

// How many stages a loop's copies may be ahead, the one in use included; kStagesChosen: as many as fit.
inline constexpr std::int64_t kStagesMax = 16;
inline constexpr std::int64_t kStagesChosen = -1;

enum class Major : std::uint8_t { kRow, kCol };

// How a copy moves its bytes.
enum class CopyWay : std::uint8_t {
  kUndecided,
  kVector,     // vectors through registers, of the first of `widths` that suits (see Copy)
  kAsync,      // vectors by cp.async, which moves 4 bytes at least; narrower ones as kVector
  kGather,     // vectors of 16 bytes, also where rows begin anywhere: cut out of two aligned ones
  kElement,    // one element after the other, dealt out to the threads
  kPerThread,  // each thread moves all elements, from or to memory of its own
  kBulk,       // one elected thread has the hardware move boxes (a tensor map's)
};

// A hint to the second-level cache about the lines a bulk copy touches.
enum class Eviction : std::uint8_t { kNormal, kFirst, kLast };

// Which threads arrive at an event for a trigger: each that executes it, one of each warp behind
// the whole warp, or one of each unit.
enum class Arrival : std::uint8_t { kUndecided, kThread, kWarp, kElected };

enum class UnaryKind : std::uint8_t {
  kNegate,
  kNot,
  kBitNot,
// Functions of f32 and f64, in the order of their rows: see functions.h.
#define KILN_FUNCTION(Name, ...) k##Name,
#include "kiln/device/function.def"
};
[[nodiscard]] constexpr bool is_function(UnaryKind kind) { return kind > UnaryKind::kBitNot; }
// By the rows of binary.def.
enum class BinaryKind : std::uint8_t {
#define KILN_BINARY(Name, ...) k##Name,
#include "ir/binary.def"
#undef KILN_BINARY
};

// What a row or a column of a tile is made into; kArgMax: the index of its first largest element.
enum class ReduceKind : std::uint8_t { kSum, kProduct, kMax, kMin, kArgMax };

}  // namespace kiln::ir
