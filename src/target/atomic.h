// The atomic operations on memory that the hardware has: see atomic.def.
//
//   supports(Atomic::kAdd, DType::kF16) == true     supports(Atomic::kMin, DType::kF32) == false
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "support/dtype.h"

namespace kiln::target {

enum class Atomic : std::uint8_t {
#define KILN_ATOMIC(Name, ...) k##Name,
#include "target/atomic.def"
#undef KILN_ATOMIC
};

struct AtomicInfo {
  Atomic kind;
  std::string_view name;
  std::span<const DType> types;  // of the elements
};
[[nodiscard]] std::span<const AtomicInfo> all_atomics();
[[nodiscard]] inline const AtomicInfo& info(Atomic kind) {
  return all_atomics()[static_cast<std::size_t>(kind)];
}
[[nodiscard]] inline bool supports(Atomic kind, DType dtype) {
  return std::ranges::find(info(kind).types, dtype) != info(kind).types.end();
}

// Below this magnitude a sum, and what it is made of, may become 0: PTX ISA, "atom": `atom.add.f32`
// on global memory flushes subnormal inputs and results, on shared memory it keeps them.
[[nodiscard]] double flushed_below(Atomic kind, DType dtype, bool global);

}  // namespace kiln::target
