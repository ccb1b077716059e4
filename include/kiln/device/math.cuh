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

// Functions of one number, with the accuracy that the CUDA C++ Programming Guide gives for those
// of the C library.
__device__ inline float exp(float x) { return ::expf(x); }
__device__ inline double exp(double x) { return ::exp(x); }
__device__ inline float log(float x) { return ::logf(x); }
__device__ inline double log(double x) { return ::log(x); }
__device__ inline float tanh(float x) { return ::tanhf(x); }
__device__ inline double tanh(double x) { return ::tanh(x); }
__device__ inline float erf(float x) { return ::erff(x); }
__device__ inline double erf(double x) { return ::erf(x); }
__device__ inline float sqrt(float x) { return ::sqrtf(x); }
__device__ inline double sqrt(double x) { return ::sqrt(x); }
__device__ inline float rsqrt(float x) { return ::rsqrtf(x); }
__device__ inline double rsqrt(double x) { return ::rsqrt(x); }

}  // namespace kiln
