// What surrounds a warpgroup's matrix instructions (wgmma, sm_90a): descriptors of tiles in shared
// memory, fences, groups.
//
//   const kiln::u64 a = kiln::matrix_descriptor<0, 1024>(tile, 64 * p, 0);
//   kiln::wgmma_fence();                    // registers are ready
//   mma_m64n64k16_f32_f16(c, a, b);         // and more; they run on
//   kiln::wgmma_commit();
//   kiln::wgmma_wait<0>();                  // c is there, a and b have been read
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
#pragma once

#include "kiln/device/memory.cuh"
#include "kiln/device/tile.cuh"

namespace kiln {

// The descriptor of the part of a tile in panels that begins at (row, col), with the leading and
// the stride byte offset that the instruction wants. The address is taken before the swizzle, which
// the instruction applies itself.
template <int Leading, int Stride, class T, int Rows, int Cols, int Swizzle>
__device__ inline u64 matrix_descriptor(const Tile<T, Rows, Cols, Swizzle>& tile, int row,
                                        int col) {
  static_assert(Swizzle != 0, "a tile read in place lies in panels");
  constexpr u64 kMode = Swizzle == 128 ? 1 : Swizzle == 64 ? 2 : Swizzle == 32 ? 3 : 0;
  constexpr u64 kFixed =
      kMode << 62 | static_cast<u64>(Stride >> 4) << 32 | static_cast<u64>(Leading >> 4) << 16;
  // Both are multiples of 16 and are counted so, each by itself: the products of one stage then
  // differ by constants. A card at its power limit is faster for each instruction it need not
  // issue.
  const u32 base = shared_address(tile.base) >> 4 & 0x3fff;
  const int byte = col * static_cast<int>(sizeof(T));
  const int offset =
      byte / Swizzle * (Rows * Swizzle / 16) + row * (Swizzle / 16) + byte % Swizzle / 16;
  return kFixed | (base + offset);
}

// This thread's writes to registers come before the next instructions that use them.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// An operand in registers is computed here. The compiler would move arithmetic, which touches no memory,
// past the fence, and ptxas would then add fences of its own between the products.
template <class Register, int N>
__device__ inline void wgmma_operand(Register (&registers)[N]) {
  static_assert(sizeof(Register) == 4, "32-bit registers");
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(registers[i]));
}

// The values are computed in front of the waits that follow. ptxas moves a wait for products up past
// arithmetic that has nothing to do with them and should run meanwhile, but not past a load that may not
// be left out. Its condition all but never holds.
template <class Register, int N>
__device__ inline void compute_first(const unsigned char* shared, const Register (&values)[N]) {
  static_assert(sizeof(Register) == 4, "32-bit registers");
  u32 bits = 0xffffffffu;
#pragma unroll
  for (int i = 0; i < N; ++i) bits &= detail::bits_as<u32>(values[i]);
  asm volatile(
      "{ .reg .pred p; .reg .b32 unused; setp.eq.u32 p, %0, 0xffffffff; "
      "@p ld.volatile.shared.b32 unused, [%1]; }" ::"r"(bits),
      "r"(shared_address(shared))
      : "memory");
}

// Every second value, from number First on, is held by the wait for products in front of this: it is computed before, and what
// needs it after. Left to itself, ptxas runs all that does not need the products in front of the wait and the rest behind it,
// where arithmetic of one kind then stands alone and waits for itself. The load's condition never holds; the compiler does not
// know that.
template <int First, class Register, int N>
__device__ inline void hold(const unsigned char* shared, Register (&values)[N]) {
  static_assert(sizeof(Register) == 4, "32-bit registers");
#pragma unroll
  for (int i = First; i < N; i += 2) {
    u32 bits = detail::bits_as<u32>(values[i]);
    asm volatile(
        "{ .reg .pred p; setp.eq.u32 p, %1, 0xffffffff; @p ld.volatile.shared.b32 %0, [%1]; }"
        : "+r"(bits)
        : "r"(shared_address(shared))
        : "memory");
    values[i] = detail::bits_as<Register>(bits);
  }
}

// Closes a group of instructions.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all but the `Pending` youngest groups have finished.
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// What this thread wrote to shared memory, or saw written, is there for instructions that read it
// past the threads' view: wgmma, bulk copies.
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// What this thread wrote to global memory, or saw written, is there for bulk copies that read it.
__device__ inline void fence_async_proxy_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace kiln
