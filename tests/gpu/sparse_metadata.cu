// Every row of sparse metadata on a GPU, with every selector: are the maps of target/sparse.cpp the
// hardware's?
//
//   nvcc -std=c++20 -gencode arch=compute_90a,code=sm_90a -Isrc -Iinclude
//        -o build/sparse_metadata tests/gpu/sparse_metadata.cu src/target/sparse.cpp
//   build/sparse_metadata          ->  rows passed 26, failed 0
//
// Each case multiplies a random sparse A of small integers by a random B and must give the exact
// product. A is compressed by kiln/sparse.h, its metadata is put into registers by
// metadata_register, and lanes that supply nothing hold noise. A swapped row, column or lane
// changes the result.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "target/sparse.h"

namespace {

namespace sparse = kiln::sparse;
using kiln::target::Scope;
using kiln::target::SparseMetadata;

constexpr int kN = 8;
// Of a warpgroup's operands: every row of wgmma has 64 bytes of B's K, and half of them in A.
constexpr unsigned kBytesB = kN * 64;
constexpr unsigned kBytesA = 64 * 32;

enum class Type { kF16, kBF16, kTF32, kS8, kU8, kE4M3, kE5M2 };

// What one lane holds.
struct Lane {
  std::uint32_t a[4];
  std::uint32_t b[4];
  std::uint32_t metadata;
};

// One lane's share of C as bits: f32, or s32 for the integers.
struct Out {
  std::uint32_t c[4];
};

template <Type kType, int kK, int kSelector>
__device__ void multiply_warp(const Lane& in, Out& out) {
#define KILN_SP(SHAPE, TYPES, COUNT_A, COUNT_B, CONSTRAINT)                                       \
  asm volatile(                                                                                   \
      "mma.sp::ordered_metadata.sync.aligned." SHAPE ".row.col." TYPES " {%0,%1,%2,%3}, " COUNT_A \
      ", " COUNT_B ", {%0,%1,%2,%3}, %12, %13;"                                                   \
      : CONSTRAINT(out.c[0]), CONSTRAINT(out.c[1]), CONSTRAINT(out.c[2]), CONSTRAINT(out.c[3])    \
      : "r"(in.a[0]), "r"(in.a[1]), "r"(in.a[2]), "r"(in.a[3]), "r"(in.b[0]), "r"(in.b[1]),       \
        "r"(in.b[2]), "r"(in.b[3]), "r"(in.metadata), "n"(kSelector))
#define KILN_SP2(SHAPE, TYPES) KILN_SP(SHAPE, TYPES, "{%4,%5}", "{%8,%9}", "+r")
#define KILN_SP4(SHAPE, TYPES) KILN_SP(SHAPE, TYPES, "{%4,%5,%6,%7}", "{%8,%9,%10,%11}", "+r")
  if constexpr (kType == Type::kF16 && kK == 16) KILN_SP2("m16n8k16", "f32.f16.f16.f32");
  if constexpr (kType == Type::kF16 && kK == 32) KILN_SP4("m16n8k32", "f32.f16.f16.f32");
  if constexpr (kType == Type::kBF16 && kK == 16) KILN_SP2("m16n8k16", "f32.bf16.bf16.f32");
  if constexpr (kType == Type::kBF16 && kK == 32) KILN_SP4("m16n8k32", "f32.bf16.bf16.f32");
  if constexpr (kType == Type::kTF32 && kK == 8) KILN_SP2("m16n8k8", "f32.tf32.tf32.f32");
  if constexpr (kType == Type::kTF32 && kK == 16) KILN_SP4("m16n8k16", "f32.tf32.tf32.f32");
  if constexpr (kType == Type::kS8 && kK == 32) KILN_SP2("m16n8k32", "s32.s8.s8.s32");
  if constexpr (kType == Type::kU8 && kK == 32) KILN_SP2("m16n8k32", "s32.u8.u8.s32");
  if constexpr (kType == Type::kS8 && kK == 64) KILN_SP4("m16n8k64", "s32.s8.s8.s32");
  if constexpr (kType == Type::kU8 && kK == 64) KILN_SP4("m16n8k64", "s32.u8.u8.s32");
  if constexpr (kType == Type::kE4M3 && kK == 64) KILN_SP4("m16n8k64", "f32.e4m3.e4m3.f32");
  if constexpr (kType == Type::kE5M2 && kK == 64) KILN_SP4("m16n8k64", "f32.e5m2.e5m2.f32");
}

// wgmma takes A from registers or from shared memory, B from shared memory.
enum class Source { kRegisters, kShared };

struct Descriptors {
  std::uint64_t a;
  std::uint64_t b;
};

template <Type kType, Source kSource, int kSelector>
__device__ void multiply_warpgroup(const Lane& in, const Descriptors& shared, Out& out) {
#define KILN_WGSP(SHAPE, TYPES, A, TAIL)                                                \
  asm volatile("wgmma.mma_async.sp.sync.aligned." SHAPE "." TYPES " {%0,%1,%2,%3}, " A  \
               ", %8, %9, %10, 1" TAIL ";"                                              \
               : "+r"(out.c[0]), "+r"(out.c[1]), "+r"(out.c[2]), "+r"(out.c[3])         \
               : "r"(in.a[0]), "r"(in.a[1]), "r"(in.a[2]), "r"(in.a[3]), "l"(shared.b), \
                 "r"(in.metadata), "n"(kSelector), "l"(shared.a))
#define KILN_WGSP_OF(TYPE, SHAPE, TYPES, TAIL, TAIL_SHARED)     \
  if constexpr (kType == TYPE && kSource == Source::kRegisters) \
    KILN_WGSP(SHAPE, TYPES, "{%4,%5,%6,%7}", TAIL);             \
  if constexpr (kType == TYPE && kSource == Source::kShared)    \
    KILN_WGSP(SHAPE, TYPES, "%11", TAIL_SHARED);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  KILN_WGSP_OF(Type::kF16, "m64n8k32", "f32.f16.f16", ", 1, 1, 0", ", 1, 1, 0, 0")
  KILN_WGSP_OF(Type::kBF16, "m64n8k32", "f32.bf16.bf16", ", 1, 1, 0", ", 1, 1, 0, 0")
  KILN_WGSP_OF(Type::kTF32, "m64n8k16", "f32.tf32.tf32", ", 1, 1", ", 1, 1")
  KILN_WGSP_OF(Type::kS8, "m64n8k64", "s32.s8.s8", "", "")
  KILN_WGSP_OF(Type::kU8, "m64n8k64", "s32.u8.u8", "", "")
  KILN_WGSP_OF(Type::kE4M3, "m64n8k64", "f32.e4m3.e4m3", ", 1, 1", ", 1, 1")
  KILN_WGSP_OF(Type::kE5M2, "m64n8k64", "f32.e5m2.e5m2", ", 1, 1", ", 1, 1")
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+r"(out.c[0]), "+r"(out.c[1]), "+r"(out.c[2]), "+r"(out.c[3])::"memory");
}

template <Type kType, int kK, int kSelector>
__global__ void warp_kernel(const Lane* in, const std::uint8_t*, Out* out) {
  Out c{};
  multiply_warp<kType, kK, kSelector>(in[threadIdx.x], c);
  out[threadIdx.x] = c;
}

// Rows of 64 (B) or 32 bytes (A, which is half as deep), swizzled by as much, as PTX ISA "Shared
// Memory Matrix Layout" has them: 16-byte chunks exchanged by the row.
template <int kRowBytes>
__device__ void fill_tile(std::uint8_t* tile, const std::uint8_t* from, unsigned bytes) {
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) {
    const unsigned row = i / kRowBytes;
    const unsigned turn = row * kRowBytes / 128 % (kRowBytes / 16);
    tile[row * kRowBytes + (i % kRowBytes / 16 ^ turn) * 16 + i % 16] = from[i];
  }
}

// Swizzle codes: 2 is 64 bytes, 3 is 32. Groups of eight rows follow each other.
template <int kRowBytes>
__device__ std::uint64_t descriptor_of(const std::uint8_t* tile) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(tile));
  const std::uint64_t swizzle = kRowBytes == 64 ? 2 : 3;
  return (address & 0x3ffffU) >> 4 | std::uint64_t{1} << 16 |
         std::uint64_t{8 * kRowBytes / 16} << 32 | swizzle << 62;
}

// `memory`: B, then the packed A.
template <Type kType, Source kSource, int kSelector>
__global__ void warpgroup_kernel(const Lane* in, const std::uint8_t* memory, Out* out) {
  __shared__ alignas(1024) std::uint8_t b[kBytesB];
  __shared__ alignas(1024) std::uint8_t a[kBytesA];
  fill_tile<64>(b, memory, kBytesB);
  fill_tile<32>(a, memory + kBytesB, kBytesA);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  Out c{};
  multiply_warpgroup<kType, kSource, kSelector>(in[threadIdx.x],
                                                {descriptor_of<32>(a), descriptor_of<64>(b)}, c);
  out[threadIdx.x] = c;
}

using Kernel = void (*)(const Lane*, const std::uint8_t*, Out*);

struct Case {
  Type type;
  const char* type_name;
  Scope scope;
  int k;
  int bits;
  std::vector<Kernel> kernels;  // one for each selector
};

// One kernel for each selector that the row has; ptxas refuses others.
template <Type kType, int kK>
std::vector<Kernel> warp_kernels() {
  constexpr int kDepth = kType == Type::kTF32 ? 2 * kK : kK;
  constexpr bool kEight = kType != Type::kTF32 && kType != Type::kF16 && kType != Type::kBF16;
  std::vector<Kernel> out = {warp_kernel<kType, kK, 0>};
  if constexpr (kDepth <= 32) out.push_back(warp_kernel<kType, kK, 1>);
  if constexpr (kDepth <= 16 && !kEight) {
    out.push_back(warp_kernel<kType, kK, 2>);
    out.push_back(warp_kernel<kType, kK, 3>);
  }
  return out;
}

template <Type kType, Source kSource>
std::vector<Kernel> warpgroup_kernels() {
  constexpr bool kEight = kType != Type::kTF32 && kType != Type::kF16 && kType != Type::kBF16;
  std::vector<Kernel> out = {warpgroup_kernel<kType, kSource, 0>};
  if constexpr (!kEight) out.push_back(warpgroup_kernel<kType, kSource, 1>);
  return out;
}

// The bits of a small integer.
std::uint32_t encoded(Type type, int value) {
  const std::uint32_t sign = value < 0 ? 1 : 0;
  const float magnitude = static_cast<float>(value < 0 ? -value : value);
  std::uint32_t f32 = 0;
  std::memcpy(&f32, &magnitude, 4);
  const auto narrow = [&](int bits, int mantissa, std::uint32_t bias) -> std::uint32_t {
    if (value == 0) return 0;
    const std::uint32_t exponent = (f32 >> 23) - 127 + bias;
    return sign << (bits - 1) | exponent << mantissa |
           (f32 >> (23 - mantissa) & ((1U << mantissa) - 1));
  };
  switch (type) {
    case Type::kF16: return narrow(16, 10, 15);
    case Type::kBF16: return narrow(16, 7, 127);
    case Type::kTF32: return sign << 31 | f32;
    case Type::kE4M3: return narrow(8, 3, 7);
    case Type::kE5M2: return narrow(8, 2, 15);
    case Type::kS8:
    case Type::kU8: return static_cast<std::uint8_t>(value);
  }
  return 0;
}

struct Problem {
  std::vector<std::int8_t> a;       // [m, k], sparse
  std::vector<std::int8_t> packed;  // [m, k / 2]
  std::vector<std::uint8_t> metadata;
  std::vector<std::int8_t> b;  // [8, k]
};

Problem random_problem(const SparseMetadata& row, bool is_signed, std::mt19937& random) {
  const auto count = static_cast<std::size_t>(row.m * row.k);
  const sparse::Pattern pattern = pattern_of(row);
  const auto number = [&] {
    const int value = static_cast<int>(random() % 4);
    return static_cast<std::int8_t>(is_signed && random() % 2 == 0 ? -value : value);
  };
  Problem p{std::vector<std::int8_t>(count), std::vector<std::int8_t>(count / 2),
            std::vector<std::uint8_t>(count / static_cast<std::size_t>(columns_of_byte(pattern))),
            std::vector<std::int8_t>(static_cast<std::size_t>(kN * row.k))};
  for (auto& value : p.a) value = number();
  for (auto& value : p.b) value = number();
  const sparse::Matrix dense{p.a.data(), row.m, row.k};
  if (prune(dense, sparse::kS8Format, pattern)) std::abort();
  if (compress(dense, sparse::kS8Format, p.packed.data(), p.metadata.data(), pattern)) std::abort();
  return p;
}

// A part of an operand, by rows: 16 rows of A or 8 of B.
struct Rows {
  const std::int8_t* data;
  int rows;
  int cols;
};

// A lane's registers of it: rows g (and g + 8), runs of `w` columns at w * t and every 4 * w.
void fill_registers(std::uint32_t* registers, const Rows& matrix, const Case& c, int lane) {
  const int w = 32 / c.bits;
  const int each = matrix.rows / 8;
  for (int r = 0; r < each * matrix.cols / (4 * w); ++r) {
    const int row = lane / 4 + 8 * (r % each);
    registers[r] = 0;
    for (int i = 0; i < w; ++i) {
      const int col = w * (lane % 4) + i + 4 * w * (r / each);
      registers[r] |= encoded(c.type, matrix.data[row * matrix.cols + col]) << (c.bits * i);
    }
  }
}

std::vector<Lane> registers_of(const SparseMetadata& row, const Case& c, const Problem& p,
                               int selector, std::mt19937& random) {
  std::vector<Lane> lanes(row.scope == Scope::kWarp ? 32 : 128);
  for (int lane = 0; lane < static_cast<int>(lanes.size()); ++lane) {
    Lane& l = lanes[static_cast<std::size_t>(lane)];
    l = {};
    const int first_row = lane / 32 * 16;
    fill_registers(l.a, {p.packed.data() + first_row * (row.k / 2), 16, row.k / 2}, c, lane % 32);
    if (row.scope == Scope::kWarp) fill_registers(l.b, {p.b.data(), kN, row.k}, c, lane);
    l.metadata = supplier_of_lane(row, selector, lane)
                     ? metadata_register(row, selector, lane, p.metadata)
                     : static_cast<std::uint32_t>(random());
  }
  return lanes;
}

void append_elements(std::vector<std::uint8_t>& out, const std::vector<std::int8_t>& matrix,
                     const Case& c) {
  for (const std::int8_t value : matrix) {
    const std::uint32_t bits = encoded(c.type, value);
    for (int shift = 0; shift < c.bits; shift += 8) {
      out.push_back(static_cast<std::uint8_t>(bits >> shift));
    }
  }
}

int wrong_elements(const SparseMetadata& row, const Case& c, const Problem& p,
                   const std::vector<Out>& out) {
  int wrong = 0;
  for (int m = 0; m < row.m; ++m) {
    for (int n = 0; n < kN; ++n) {
      int expected = 0;
      for (int k = 0; k < row.k; ++k) expected += p.a[m * row.k + k] * p.b[n * row.k + k];
      const int lane = m / 16 * 32 + m % 8 * 4 + n / 2;
      const std::uint32_t bits = out[static_cast<std::size_t>(lane)].c[m % 16 / 8 * 2 + n % 2];
      float as_float = 0;
      std::memcpy(&as_float, &bits, 4);
      const bool integer = c.type == Type::kS8 || c.type == Type::kU8;
      wrong += integer ? static_cast<std::int32_t>(bits) != expected
                       : as_float != static_cast<float>(expected);
    }
  }
  return wrong;
}

template <class T>
struct DeviceArray {
  T* data = nullptr;
  explicit DeviceArray(const std::vector<T>& values) {
    cudaMalloc(&data, values.size() * sizeof(T));
    cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~DeviceArray() { cudaFree(data); }
};

bool run_selector(const SparseMetadata& row, const Case& c, int selector) {
  std::mt19937 random(static_cast<unsigned>(selector) + 1);
  const bool is_signed = c.type != Type::kU8;
  for (int round = 0; round < 20; ++round) {
    const Problem p = random_problem(row, is_signed, random);
    const std::vector<Lane> lanes = registers_of(row, c, p, selector, random);
    const DeviceArray<Lane> in(lanes);
    std::vector<std::uint8_t> bytes;  // of B, then of the packed A; warps do not look
    append_elements(bytes, p.b, c);
    append_elements(bytes, p.packed, c);
    const DeviceArray<std::uint8_t> memory(bytes);
    std::vector<Out> out(lanes.size());
    const DeviceArray<Out> result(out);
    c.kernels[static_cast<std::size_t>(selector)]<<<1, static_cast<unsigned>(lanes.size())>>>(
        in.data, memory.data, result.data);
    const cudaError_t error =
        cudaMemcpy(out.data(), result.data, out.size() * sizeof(Out), cudaMemcpyDeviceToHost);
    const int wrong = error == cudaSuccess ? wrong_elements(row, c, p, out) : -1;
    if (wrong == 0) continue;
    std::printf("FAILED: %s %s selector %d round %d: %d of %d elements wrong (%s)\n",
                std::string(row.name).c_str(), c.type_name, selector, round, wrong, row.m * kN,
                cudaGetErrorString(error));
    return false;
  }
  return true;
}

template <Type kType>
void add_warpgroup(std::vector<Case>& cases, const char* name, int k, int bits) {
  const Scope group = Scope::kWarpgroup;
  cases.push_back({kType, name, group, k, bits, warpgroup_kernels<kType, Source::kRegisters>()});
  cases.push_back({kType, name, group, k, bits, warpgroup_kernels<kType, Source::kShared>()});
}

std::vector<Case> all_cases() {
  using enum Type;
  const Scope warp = Scope::kWarp;
  std::vector<Case> cases = {
      {kF16, "f16", warp, 16, 16, warp_kernels<kF16, 16>()},
      {kBF16, "bf16", warp, 16, 16, warp_kernels<kBF16, 16>()},
      {kF16, "f16", warp, 32, 16, warp_kernels<kF16, 32>()},
      {kBF16, "bf16", warp, 32, 16, warp_kernels<kBF16, 32>()},
      {kTF32, "tf32", warp, 8, 32, warp_kernels<kTF32, 8>()},
      {kTF32, "tf32", warp, 16, 32, warp_kernels<kTF32, 16>()},
      {kS8, "s8", warp, 32, 8, warp_kernels<kS8, 32>()},
      {kU8, "u8", warp, 32, 8, warp_kernels<kU8, 32>()},
      {kS8, "s8", warp, 64, 8, warp_kernels<kS8, 64>()},
      {kU8, "u8", warp, 64, 8, warp_kernels<kU8, 64>()},
      {kE4M3, "e4m3", warp, 64, 8, warp_kernels<kE4M3, 64>()},
      {kE5M2, "e5m2", warp, 64, 8, warp_kernels<kE5M2, 64>()},
  };
  add_warpgroup<kF16>(cases, "f16", 32, 16);
  add_warpgroup<kBF16>(cases, "bf16", 32, 16);
  add_warpgroup<kTF32>(cases, "tf32", 16, 32);
  add_warpgroup<kS8>(cases, "s8", 64, 8);
  add_warpgroup<kU8>(cases, "u8", 64, 8);
  add_warpgroup<kE4M3>(cases, "e4m3", 64, 8);
  add_warpgroup<kE5M2>(cases, "e5m2", 64, 8);
  return cases;
}

}  // namespace

int main() {
  int passed = 0;
  int failed = 0;
  for (const Case& c : all_cases()) {
    const SparseMetadata* row = kiln::target::find_sparse_metadata(c.scope, c.k, c.bits);
    bool fine = row != nullptr && static_cast<int>(c.kernels.size()) == selectors(*row);
    if (!fine) std::printf("FAILED: no row for %s, K = %d\n", c.type_name, c.k);
    for (int selector = 0; fine && selector < selectors(*row); ++selector) {
      fine = run_selector(*row, c, selector);
    }
    (fine ? passed : failed) += 1;
  }
  std::printf("rows passed %d, failed %d\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
