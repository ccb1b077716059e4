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

// For launchers, which compute in 64 bits what might leave an int: a product, at most 2^60 and at
// least -2^60, so that a sum of a few is right or clearly too large.
__host__ __device__ constexpr long long wide_product(long long a, long long b) {
  using Size = unsigned long long;
  constexpr Size most = Size(1) << 60;
  const Size x = a < 0 ? Size(0) - Size(a) : Size(a);
  const Size y = b < 0 ? Size(0) - Size(b) : Size(b);
  const long long size = static_cast<long long>(y != 0 && x > most / y ? most : x * y);
  return (a < 0) != (b < 0) ? -size : size;
}

// `count`, or 0, with which CUDA launches nothing and says cudaErrorInvalidConfiguration.
__host__ __device__ constexpr unsigned launchable(long long count, long long most) {
  return count >= 1 && count <= most ? static_cast<unsigned>(count) : 0u;
}

// Functions of one number, with the accuracy that their rows say: kiln::exp(float),
// kiln::exp(double)...
#define KILN_FUNCTION(Name, name, spelling, value, least, most, single, f32_ulps, double_, \
                      f64_ulps)                                                            \
  __device__ inline float name(float x) { return ::single(x); }                            \
  __device__ inline double name(double x) { return ::double_(x); }
#include "kiln/device/function.def"
#undef KILN_FUNCTION

}  // namespace kiln
