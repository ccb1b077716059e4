// Every function of function.def on a GPU, against the error that its row allows.
//
//   nvcc -std=c++20 -arch=native -Iinclude -o functions tests/gpu/functions.cu && ./functions
//
// Of f32 every number is tried, of f64 four million. An error is counted from the exact value, in
// units of the last place: a row's number is counted from the correctly rounded one, which is half
// a unit more. The last line is "N functions, M outside"; exit code 1 when some are.
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
#define KILN_FUNCTION(Name, name, spelling, value, least, most, single, f32_ulps, double_, \
                      f64_ulps)                                                            \
  struct Name {                                                                            \
    static constexpr const char* kName = #name;                                            \
    static constexpr double kF32Ulps = f32_ulps;                                           \
    static constexpr double kF64Ulps = f64_ulps;                                           \
    static double least_of() { return least; }                                             \
    static double most_of() { return most; }                                               \
    __device__ static float f32(float x) { return kiln::name(x); }                         \
    __device__ static double f64(double x) { return kiln::name(x); }                       \
    __device__ static double exact(double x) { return value; }                             \
    static long double exact_on_host(long double x) { return value; }                      \
  };
#include "kiln/device/function.def"
#undef KILN_FUNCTION

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
    mine = fmaxf(mine, isnan(got) ? INFINITY : error_of(got, Row::exact(x)));
  }
  atomicMax(worst, __float_as_uint(mine));
}

template <class Row>
__global__ void values(const double* x, double* y) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < kSamples) y[i] = Row::f64(x[i]);
}

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Half of them any number of f64, half of them near 1, where most functions change.
template <class Row>
void draw(double* x) {
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < kSamples;) {
    const std::uint64_t bits = next_random(state);
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    if (i % 2 == 0) number = (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * 64;
    if (number >= Row::least_of() && number <= Row::most_of()) x[i++] = number;
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

template <class Row>
double worst_f32() {
  unsigned* worst = nullptr;
  cudaMallocManaged(&worst, sizeof(*worst));
  *worst = 0;
  largest_error<Row><<<kBlocks, kThreads>>>(Row::least_of(), Row::most_of(), worst);
  float out = INFINITY;
  if (cudaDeviceSynchronize() == cudaSuccess) std::memcpy(&out, worst, sizeof(out));
  cudaFree(worst);
  return out;
}

template <class Row>
double worst_f64() {
  double* x = nullptr;
  double* y = nullptr;
  cudaMallocManaged(&x, kSamples * sizeof(*x));
  cudaMallocManaged(&y, kSamples * sizeof(*y));
  draw<Row>(x);
  values<Row><<<kSamples / kThreads, kThreads>>>(x, y);
  double out = 0;
  if (cudaDeviceSynchronize() != cudaSuccess) out = INFINITY;
  for (std::size_t i = 0; i < kSamples; ++i) {
    out = std::max(out, error_of(y[i], Row::exact_on_host(x[i])));
  }
  cudaFree(x);
  cudaFree(y);
  return out;
}

// Whether the function is as good as its row says.
template <class Row>
bool keeps_its_row() {
  const double f32 = worst_f32<Row>();
  const double f64 = worst_f64<Row>();
  const bool good = f32 <= Row::kF32Ulps + 0.5 && f64 <= Row::kF64Ulps + 0.5;
  std::printf("%-8s f32 %.3f of %.1f ulp, f64 %.3f of %.1f ulp%s\n", Row::kName, f32,
              Row::kF32Ulps + 0.5, f64, Row::kF64Ulps + 0.5, good ? "" : "  OUTSIDE");
  return good;
}

}  // namespace

int main() {
  int count = 0;
  int outside = 0;
#define KILN_FUNCTION(Name, ...) \
  ++count;                       \
  outside += keeps_its_row<Name>() ? 0 : 1;
#include "kiln/device/function.def"
#undef KILN_FUNCTION
  std::printf("%d functions, %d outside\n", count, outside);
  return outside == 0 ? 0 : 1;
}
