// Atomic operations on one element of shared or global memory: each returns what was there before.
//
//   kiln::atomic_add(&counts[bin], 1u);
//   const int old = kiln::atomic_max(&best, 7);
//   kiln::atomic_cas(&lock, 0u, 1u);                  0 becomes 1
//
// They order nothing else. CUDA C++ Programming Guide, "Atomic Functions"; PTX ISA, "atom". A float
// is replaced by its bits, and a signed 64-bit sum has those of the unsigned one.
#pragma once

#include "kiln/device/types.cuh"

namespace kiln {

namespace detail {

__device__ inline u64* unsigned_of(s64* at) { return reinterpret_cast<u64*>(at); }

// Half of an aligned word becomes next(old half).
template <class Next>
__device__ inline u16 atomic_half(u16* at, Next next) {
  const u64 address = reinterpret_cast<u64>(at);
  u32* const word = reinterpret_cast<u32*>(address & ~u64{3});
  const int shift = (address & 2) != 0 ? 16 : 0;
  u32 seen = *reinterpret_cast<volatile u32*>(word);
  while (true) {
    const u16 old = static_cast<u16>(seen >> shift);
    const u32 wanted = (seen & ~(0xffffu << shift)) | static_cast<u32>(next(old)) << shift;
    const u32 found = atomicCAS(word, seen, wanted);
    if (found == seen) return old;
    seen = found;
  }
}

}  // namespace detail

__device__ inline s32 atomic_add(s32* at, s32 value) { return atomicAdd(at, value); }
__device__ inline u32 atomic_add(u32* at, u32 value) { return atomicAdd(at, value); }
__device__ inline u64 atomic_add(u64* at, u64 value) { return atomicAdd(at, value); }
__device__ inline s64 atomic_add(s64* at, s64 value) {
  return static_cast<s64>(atomicAdd(detail::unsigned_of(at), static_cast<u64>(value)));
}
__device__ inline f32 atomic_add(f32* at, f32 value) { return atomicAdd(at, value); }
__device__ inline f64 atomic_add(f64* at, f64 value) { return atomicAdd(at, value); }
__device__ inline f16 atomic_add(f16* at, f16 value) {
  f16 old;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;"
               : "=h"(old.bits)
               : "l"(at), "h"(value.bits)
               : "memory");
  return old;
}
// The instruction begins with sm_90.
__device__ inline bf16 atomic_add(bf16* at, bf16 value) {
  bf16 old;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("atom.add.noftz.bf16 %0, [%1], %2;"
               : "=h"(old.bits)
               : "l"(at), "h"(value.bits)
               : "memory");
#else
  old.bits = detail::atomic_half(&at->bits, [value](u16 bits) {
    bf16 before;
    before.bits = bits;
    return bf16(static_cast<float>(before) + static_cast<float>(value)).bits;
  });
#endif
  return old;
}

__device__ inline s32 atomic_min(s32* at, s32 value) { return atomicMin(at, value); }
__device__ inline u32 atomic_min(u32* at, u32 value) { return atomicMin(at, value); }
__device__ inline s64 atomic_min(s64* at, s64 value) { return atomicMin(at, value); }
__device__ inline u64 atomic_min(u64* at, u64 value) { return atomicMin(at, value); }

__device__ inline s32 atomic_max(s32* at, s32 value) { return atomicMax(at, value); }
__device__ inline u32 atomic_max(u32* at, u32 value) { return atomicMax(at, value); }
__device__ inline s64 atomic_max(s64* at, s64 value) { return atomicMax(at, value); }
__device__ inline u64 atomic_max(u64* at, u64 value) { return atomicMax(at, value); }

__device__ inline s32 atomic_and(s32* at, s32 value) { return atomicAnd(at, value); }
__device__ inline u32 atomic_and(u32* at, u32 value) { return atomicAnd(at, value); }
__device__ inline u64 atomic_and(u64* at, u64 value) { return atomicAnd(at, value); }
__device__ inline s64 atomic_and(s64* at, s64 value) {
  return static_cast<s64>(atomicAnd(detail::unsigned_of(at), static_cast<u64>(value)));
}

__device__ inline s32 atomic_or(s32* at, s32 value) { return atomicOr(at, value); }
__device__ inline u32 atomic_or(u32* at, u32 value) { return atomicOr(at, value); }
__device__ inline u64 atomic_or(u64* at, u64 value) { return atomicOr(at, value); }
__device__ inline s64 atomic_or(s64* at, s64 value) {
  return static_cast<s64>(atomicOr(detail::unsigned_of(at), static_cast<u64>(value)));
}

__device__ inline s32 atomic_xor(s32* at, s32 value) { return atomicXor(at, value); }
__device__ inline u32 atomic_xor(u32* at, u32 value) { return atomicXor(at, value); }
__device__ inline u64 atomic_xor(u64* at, u64 value) { return atomicXor(at, value); }
__device__ inline s64 atomic_xor(s64* at, s64 value) {
  return static_cast<s64>(atomicXor(detail::unsigned_of(at), static_cast<u64>(value)));
}

__device__ inline s32 atomic_exch(s32* at, s32 value) { return atomicExch(at, value); }
__device__ inline u32 atomic_exch(u32* at, u32 value) { return atomicExch(at, value); }
__device__ inline u64 atomic_exch(u64* at, u64 value) { return atomicExch(at, value); }
__device__ inline f32 atomic_exch(f32* at, f32 value) { return atomicExch(at, value); }
__device__ inline s64 atomic_exch(s64* at, s64 value) {
  return static_cast<s64>(atomicExch(detail::unsigned_of(at), static_cast<u64>(value)));
}
__device__ inline f64 atomic_exch(f64* at, f64 value) {
  const u64 old = atomicExch(reinterpret_cast<u64*>(at), detail::bits_as<u64>(value));
  return detail::bits_as<f64>(old);
}

__device__ inline s32 atomic_cas(s32* at, s32 old, s32 value) { return atomicCAS(at, old, value); }
__device__ inline u32 atomic_cas(u32* at, u32 old, u32 value) { return atomicCAS(at, old, value); }
__device__ inline u64 atomic_cas(u64* at, u64 old, u64 value) { return atomicCAS(at, old, value); }
__device__ inline u16 atomic_cas(u16* at, u16 old, u16 value) { return atomicCAS(at, old, value); }
__device__ inline s64 atomic_cas(s64* at, s64 old, s64 value) {
  return static_cast<s64>(
      atomicCAS(detail::unsigned_of(at), static_cast<u64>(old), static_cast<u64>(value)));
}

}  // namespace kiln
