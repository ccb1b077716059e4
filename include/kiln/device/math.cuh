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

namespace detail {
// Minima and maxima of signed integers of up to 32 bits are a comparison and a selection to ptxas. Of
// max(max(a, -b), c), which one instruction of Hopper computes, ptxas before CUDA 13.5 (seen with 12.8 and 13.0)
// forgets that b is negated. Where nothing is, it makes a maximum of the pair again.
// Of floats they are one instruction, which passes over what is no number and takes -0 to be less than
// 0 (PTX ISA, "max"). What a compiler computes is the same: the sum of two zeros is the larger one.
template <class T>
__host__ __device__ constexpr T larger_float(T a, T b) {
  return a != a ? b : b != b ? a : a == b && a == T(0) ? a + b : a < b ? b : a;
}
__host__ __device__ constexpr float larger(float a, float b) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) return ::fmaxf(a, b);
#endif
  return larger_float(a, b);
}
__host__ __device__ constexpr double larger(double a, double b) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) return ::fmax(a, b);
#endif
  return larger_float(a, b);
}
__host__ __device__ constexpr float smaller(float a, float b) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) return ::fminf(a, b);
#endif
  return -larger_float(-a, -b);
}
__host__ __device__ constexpr double smaller(double a, double b) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) return ::fmin(a, b);
#endif
  return -larger_float(-a, -b);
}
// Of classes, which are floats of fewer bits, by way of f32; of integers as they are.
template <class T>
__host__ __device__ constexpr T smaller(T a, T b) {
  if constexpr (__is_class(T)) {
    return static_cast<T>(smaller(static_cast<float>(a), static_cast<float>(b)));
  } else {
    return b < a ? b : a;
  }
}
template <class T>
__host__ __device__ constexpr T larger(T a, T b) {
  if constexpr (__is_class(T)) {
    return static_cast<T>(larger(static_cast<float>(a), static_cast<float>(b)));
  } else {
    return a < b ? b : a;
  }
}
// `b` where `left < right`, else `a`.
__host__ __device__ inline int selected(int left, int right, int a, int b) {
#if defined(__CUDA_ARCH__)
  int out;
  asm("{\n.reg .pred p;\nsetp.lt.s32 p, %1, %2;\nselp.b32 %0, %4, %3, p;\n}"
      : "=r"(out)
      : "r"(left), "r"(right), "r"(a), "r"(b));
  return out;
#else
  return left < right ? b : a;
#endif
}
__host__ __device__ constexpr int smaller(int a, int b) {
  return __builtin_is_constant_evaluated() ? (b < a ? b : a) : selected(b, a, a, b);
}
__host__ __device__ constexpr int larger(int a, int b) {
  return __builtin_is_constant_evaluated() ? (a < b ? b : a) : selected(a, b, a, b);
}
__host__ __device__ constexpr short smaller(short a, short b) {
  return static_cast<short>(smaller(static_cast<int>(a), static_cast<int>(b)));
}
__host__ __device__ constexpr short larger(short a, short b) {
  return static_cast<short>(larger(static_cast<int>(a), static_cast<int>(b)));
}
__host__ __device__ constexpr signed char smaller(signed char a, signed char b) {
  return static_cast<signed char>(smaller(static_cast<int>(a), static_cast<int>(b)));
}
__host__ __device__ constexpr signed char larger(signed char a, signed char b) {
  return static_cast<signed char>(larger(static_cast<int>(a), static_cast<int>(b)));
}
}  // namespace detail

// The smaller and the larger of two numbers of one type or of two integer types.
template <class A, class B>
__host__ __device__ constexpr auto min(A a, B b) -> decltype(true ? A() : B()) {
  using T = decltype(true ? A() : B());
  return detail::smaller(static_cast<T>(a), static_cast<T>(b));
}
template <class A, class B>
__host__ __device__ constexpr auto max(A a, B b) -> decltype(true ? A() : B()) {
  using T = decltype(true ? A() : B());
  return detail::larger(static_cast<T>(a), static_cast<T>(b));
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

// Says so to the compiler, which cannot see it of a variable that counts.
template <class T>
__device__ inline void never_negative(T number) {
  __builtin_assume(number >= 0);
}

// a * b + c, rounded once.
__device__ inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
__device__ inline double fma(double a, double b, double c) { return ::fma(a, b, c); }

namespace detail {
// 1 or -1; of a zero or NaN that itself.
template <class T>
__device__ inline T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}
// The special-function unit's, 2 ulps off at most, whose results below the smallest normal number are
// 0: a CUDA exp2f takes three more instructions to keep those. PTX ISA, "ex2".
__device__ inline float exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
// The special-function unit's reciprocal, 1 ulp off at most, which takes numbers below the smallest
// normal one for 0 and gives 0 for results below it. PTX ISA, "rcp.approx.ftz".
__device__ inline float rcp(float x) {
  float quotient;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(x));
  return quotient;
}
// The special-function unit's hyperbolic tangent, off by 2^-11 of itself at most: 2^13 ulps. PTX ISA,
// "tanh.approx". Of f64 it is CUDA's tanh.
__device__ inline float tanh_approx(float x) {
  float tangent;
  asm("tanh.approx.f32 %0, %1;" : "=f"(tangent) : "f"(x));
  return tangent;
}
__device__ inline double tanh_approx(double x) { return ::tanh(x); }
// In f64 the same numbers count as 0, and the rest is rounded correctly.
__device__ inline double rcp(double x) {
  return ::__drcp_rn(::fabs(x) < double(1.17549435e-38f) ? ::copysign(0.0, x) : x);
}
}  // namespace detail

// Functions of one number and of two, with the accuracy that their rows say: kiln::exp(float),
// kiln::exp(double)...
#define KILN_FUNCTION(Name, name, spelling, value, least, most, course, single, f32_ulps, \
                      f32_zero, double_, f64_ulps)                                        \
  __device__ inline float name(float x) { return ::single(x); }                           \
  __device__ inline double name(double x) { return ::double_(x); }
#define KILN_FUNCTION_OF_TWO(Name, name, spelling, value, single, f32_ulps, double_, f64_ulps) \
  __device__ inline float name(float x, float y) { return ::single(x, y); }                    \
  __device__ inline double name(double x, double y) { return ::double_(x, y); }
#include "kiln/device/function.def"

}  // namespace kiln
