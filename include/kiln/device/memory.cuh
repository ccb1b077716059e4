// Moving bytes: vectors of 1 to 16 bytes, and cp.async from global to shared memory.
//
//   kiln::cp_async<16>(shared, global, 10);   // 10 bytes arrive, the other 6 become zero
//   kiln::cp_async_commit();
//   kiln::cp_async_wait<0>();                 // this thread's copies are in shared memory
//
// PTX ISA, "Data Movement and Conversion Instructions: cp.async". Sizes other than 16 exist only in
// the form that also fills L1 (.ca).
#pragma once

#include "kiln/device/types.cuh"

namespace kiln {

template <int Bytes>
struct VectorOf;
template <>
struct VectorOf<1> {
  using type = u8;
};
template <>
struct VectorOf<2> {
  using type = u16;
};
template <>
struct VectorOf<4> {
  using type = u32;
};
template <>
struct VectorOf<8> {
  using type = uint2;
};
template <>
struct VectorOf<16> {
  using type = uint4;
};

// One load and one store of `Bytes` bytes; both addresses must be multiples of Bytes.
template <int Bytes>
__device__ inline void move_vector(void* to, const void* from) {
  using Vector = typename VectorOf<Bytes>::type;
  *static_cast<Vector*>(to) = *static_cast<const Vector*>(from);
}
template <int Bytes>
__device__ inline void zero_vector(void* to) {
  using Vector = typename VectorOf<Bytes>::type;
  *static_cast<Vector*>(to) = Vector{};
}

// The address of shared memory as instructions take it.
__device__ inline u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

// Starts copying `valid` of `Bytes` bytes (0 <= valid <= Bytes) and zeroing the rest.
template <int Bytes>
__device__ inline void cp_async(void* shared, const void* global, int valid) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async moves 4, 8 or 16 bytes");
  const u32 to = shared_address(shared);
  const auto from = __cvta_generic_to_global(global);
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes),
                 "r"(valid)
                 : "memory");
  }
}

// Closes this thread's group of copies.
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the `Pending` youngest groups of this thread have landed.
template <int Pending>
__device__ inline void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace kiln
