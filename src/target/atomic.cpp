#include "target/atomic.h"

namespace kiln::target {

namespace {

using enum DType;

#define KILN_ATOMIC(Name, name, combines, ...) constexpr DType kTypesOf##Name[] = {__VA_ARGS__};
#include "target/atomic.def"
#undef KILN_ATOMIC

constexpr AtomicInfo kAtomics[] = {
#define KILN_ATOMIC(Name, name, ...) {Atomic::k##Name, name, kTypesOf##Name},
#include "target/atomic.def"
#undef KILN_ATOMIC
};

}  // namespace

std::span<const AtomicInfo> all_atomics() { return kAtomics; }

double flushed_below(Atomic kind, DType dtype, bool global) {
  constexpr double kLeastNormal = 0x1p-126;
  return kind == Atomic::kAdd && dtype == kF32 && global ? kLeastNormal : 0;
}

}  // namespace kiln::target
