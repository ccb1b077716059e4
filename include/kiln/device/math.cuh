// Integer arithmetic of index expressions, on the host and on the device.
//
//   kiln::cdiv(17, 16) == 2      kiln::floor_div(-1, 4) == -1      kiln::mod(-1, 4) == 3
//
// Divisors are positive. Like all headers of this folder it needs nothing but nvcc or NVRTC.
#pragma once

namespace kiln {

template <class A, class B>
__host__ __device__ constexpr auto cdiv(A a, B b) -> decltype(a + b) {
  return a / b + (a % b > 0 ? 1 : 0);
}
template <class A, class B>
__host__ __device__ constexpr auto floor_div(A a, B b) -> decltype(a + b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
template <class A, class B>
__host__ __device__ constexpr auto mod(A a, B b) -> decltype(a + b) {
  return a % b + (a % b < 0 ? b : 0);
}

// The smaller and the larger of two numbers of one type or of two integer types.
template <class A, class B>
__host__ __device__ constexpr auto min(A a, B b) -> decltype(true ? A() : B()) {
  return b < a ? b : a;
}
template <class A, class B>
__host__ __device__ constexpr auto max(A a, B b) -> decltype(true ? A() : B()) {
  return a < b ? b : a;
}

}  // namespace kiln
