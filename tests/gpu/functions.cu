// Every function of function.def on a GPU, against the error that its row allows.
//
//   nvcc -std=c++20 -arch=native -Iinclude -o functions tests/gpu/functions.cu && ./functions
//
// Of f32 every number is tried, of f64 four million; of functions of two numbers 2^30 and four million
// pairs. An error is counted from the exact value, in units of the last place: a row's number is
// counted from the correctly rounded one, which is half a unit more. The last line is "N functions,
// M outside"; exit code 1 when some are.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kiln/device/math.cuh"

namespace {

constexpr unsigned kBlocks = 1 << 12;
constexpr unsigned kThreads = 256;
constexpr std::size_t kSamples = 1 << 22;

// What one row says; `exact` in the type that it is asked in.
#define KILN_FUNCTION(Name, name, spelling, value, least, most, course, single, f32_ulps, \
                      f32_zero, double_, f64_ulps)                                        \
  struct Name {                                                                           \
    static constexpr const char* kName = #name;                                           \
    static constexpr double kF32Ulps = f32_ulps;                                          \
    static constexpr double kF32Zero = f32_zero;                                          \
    static constexpr double kF64Ulps = f64_ulps;                                          \
    static double least_of() { return least; }                                            \
    static double most_of() { return most; }                                              \
    __device__ static float f32(float x) { return kiln::name(x); }                        \
    __device__ static double f64(double x) { return kiln::name(x); }                      \
    __device__ static double exact(double x) { return value; }                            \
    static long double exact_on_host(long double x) { return value; }                     \
  };
#define KILN_FUNCTION_OF_TWO(Name, name, spelling, value, single, f32_ulps, double_, f64_ulps) \
  struct Name {                                                                                \
    static constexpr const char* kName = #name;                                                \
    static constexpr double kF32Ulps = f32_ulps;                                               \
    static constexpr double kF64Ulps = f64_ulps;                                               \
    __device__ static float f32(float x, float y) { return kiln::name(x, y); }                 \
    __device__ static double f64(double x, double y) { return kiln::name(x, y); }              \
    __device__ static double exact(double x, double y) { return value(x, y); }                 \
    static long double exact_on_host(long double x, long double y) { return value(x, y); }     \
  };
#include "kiln/device/function.def"

// The distance from `exact` to `got` in units of the last place of an f32. Infinity stands for what
// would follow the largest number.
__device__ float error_of(float got, double exact) {
  const double end = 0x1p128;
  const double limited = fmin(fmax(exact, -end), end);
  const double number = isinf(got) ? copysign(end, static_cast<double>(got)) : got;
  const int exponent = limited == 0 ? -126 : max(ilogb(limited), -126);
  return static_cast<float>(fabs(number - limited) / ldexp(1.0, min(exponent, 127) - 23));
}

// The largest error over all numbers of f32 in the interval. Of floats that are not negative, the
// bits are in the order of the numbers. NaN for a number counts as infinite.
template <class Row>
__global__ void largest_error(double least, double most, unsigned* worst) {
  float mine = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t bits = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; bits < 1ull << 32;
       bits += step) {
    const float x = __uint_as_float(static_cast<unsigned>(bits));
    if (!(x >= least && x <= most)) continue;
    const float got = Row::f32(x);
    if (got == 0 && fabs(Row::exact(x)) < Row::kF32Zero) continue;
    mine = fmaxf(mine, isnan(got) ? INFINITY : error_of(got, Row::exact(x)));
  }
  atomicMax(worst, __float_as_uint(mine));
}

__host__ __device__ std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The same of random pairs: any two numbers, or two near 1, where a power changes.
template <class Row>
__global__ void largest_error_of_two(int count, unsigned* worst) {
  float mine = 0;
  std::uint64_t state = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
  state = next_random(state);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t bits = next_random(state);
    float x = __uint_as_float(static_cast<unsigned>(bits));
    float y = __uint_as_float(static_cast<unsigned>(bits >> 32));
    if (i % 2 == 0) {
      x = static_cast<float>(bits & 0xffffff) * 0x1p-20f;
      y = (static_cast<float>(bits >> 40) * 0x1p-24f - 0.5f) * 64;
    }
    const double exact = Row::exact(x, y);
    if (isnan(exact)) continue;
    const float got = Row::f32(x, y);
    mine = fmaxf(mine, isnan(got) ? INFINITY : error_of(got, exact));
  }
  atomicMax(worst, __float_as_uint(mine));
}

template <class Row>
__global__ void values_of_two(const double* x, double* y) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < kSamples) y[i] = Row::f64(x[i], x[kSamples - 1 - i]);
}

template <class Row>
__global__ void values(const double* x, double* y) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < kSamples) y[i] = Row::f64(x[i]);
}

// Half of them any number of f64, half of them near 1, where most functions change.
void draw(double* x, double least, double most) {
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kSamples;) {
    const std::uint64_t bits = next_random(state);
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    if (i % 2 == 0) number = (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * 64;
    if (number >= least && number <= most) x[i++] = number;
  }
}

double error_of(double got, long double exact) {
  if (std::fabs(exact) > DBL_MAX || std::isinf(got)) {
    return std::fabs(exact) > DBL_MAX * (1 - 0x1p-50) && std::fabs(got) > DBL_MAX * (1 - 0x1p-50)
               ? 0
               : INFINITY;
  }
  if (std::isnan(got)) return INFINITY;
  const int exponent = exact == 0 ? -1022 : std::max(std::ilogb(exact), -1022);
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, exponent - 52));
}

// What the kernel finds, started by `launch(worst)`.
template <class Launch>
double worst_of(const Launch& launch) {
  unsigned* worst = nullptr;
  cudaMallocManaged(&worst, sizeof(*worst));
  *worst = 0;
  launch(worst);
  float out = INFINITY;
  if (cudaDeviceSynchronize() == cudaSuccess) std::memcpy(&out, worst, sizeof(out));
  cudaFree(worst);
  return out;
}

// Of f64: `launch(x, y)` computes y of the samples x, `exact(i)` says what y[i] should be.
template <class Launch, class Exact>
double worst_of_samples(double* x, const Launch& launch, const Exact& exact) {
  double* y = nullptr;
  cudaMallocManaged(&y, kSamples * sizeof(*y));
  launch(y);
  double out = cudaDeviceSynchronize() == cudaSuccess ? 0 : INFINITY;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const long double value = exact(i);
    if (!std::isnan(value)) out = std::max(out, error_of(y[i], value));
  }
  cudaFree(y);
  cudaFree(x);
  return out;
}

double* samples(double least, double most) {
  double* x = nullptr;
  cudaMallocManaged(&x, kSamples * sizeof(*x));
  draw(x, least, most);
  return x;
}

// Whether the function is as good as its row says.
template <class Row>
bool keeps_its_row(double f32, double f64) {
  const bool good = f32 <= Row::kF32Ulps + 0.5 && f64 <= Row::kF64Ulps + 0.5;
  std::printf("%-10s f32 %.3f of %.1f ulp, f64 %.3f of %.1f ulp%s\n", Row::kName, f32,
              Row::kF32Ulps + 0.5, f64, Row::kF64Ulps + 0.5, good ? "" : "  OUTSIDE");
  return good;
}

template <class Row>
bool is_good() {
  const double f32 = worst_of([](unsigned* worst) {
    largest_error<Row><<<kBlocks, kThreads>>>(Row::least_of(), Row::most_of(), worst);
  });
  double* x = samples(Row::least_of(), Row::most_of());
  const double f64 = worst_of_samples(
      x, [x](double* y) { values<Row><<<kSamples / kThreads, kThreads>>>(x, y); },
      [x](std::size_t i) { return Row::exact_on_host(x[i]); });
  return keeps_its_row<Row>(f32, f64);
}

template <class Row>
bool is_good_of_two() {
  const double f32 = worst_of(
      [](unsigned* worst) { largest_error_of_two<Row><<<kBlocks, kThreads>>>(1 << 10, worst); });
  double* x = samples(-DBL_MAX, DBL_MAX);
  const double f64 = worst_of_samples(
      x, [x](double* y) { values_of_two<Row><<<kSamples / kThreads, kThreads>>>(x, y); },
      [x](std::size_t i) { return Row::exact_on_host(x[i], x[kSamples - 1 - i]); });
  return keeps_its_row<Row>(f32, f64);
}

}  // namespace

int main() {
  int count = 0;
  int outside = 0;
#define KILN_FUNCTION(Name, ...) \
  ++count;                       \
  outside += is_good<Name>() ? 0 : 1;
#define KILN_FUNCTION_OF_TWO(Name, ...) \
  ++count;                              \
  outside += is_good_of_two<Name>() ? 0 : 1;
#include "kiln/device/function.def"
  std::printf("%d functions, %d outside\n", count, outside);
  return outside == 0 ? 0 : 1;
}
