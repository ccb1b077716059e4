// examples/global_gemm.cu written on CuTe: the other side of the compile-time benchmark.
//
//   C[m][n] = sum over k of A[m][k] * B[n][k]      A, B f16, K contiguous; C f32, N contiguous
//
// The same kernel in its main configuration (`Pipelined` there): 128x128x32 tiles, 128 threads as
// 2x2 warps, `cp.async` of 16 bytes into four stages of swizzled shared memory, `ldmatrix`,
// m16n8k16. M and N are multiples of 128 and K of 32, and this is the only kernel of the file: what
// ours does beyond that (edges, the staged epilogue, the first step) is not charged to CuTe.
// nvcc -std=c++20 -arch=sm_80 --expt-relaxed-constexpr -I FOLDER_OF_CUTE global_gemm_cute.cu
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cute/tensor.hpp>

using namespace cute;

constexpr int kTileM = 128;
constexpr int kTileN = 128;
constexpr int kTileK = 32;
constexpr int kStages = 4;
constexpr int kThreads = 128;
constexpr int kSharedBytes = kStages * (kTileM + kTileN) * kTileK * 2;

// Rows of 32 halves are 64 bytes, so two rows fill the 32 banks: chunks of 8 halves are permuted
// by bits 6 and 7 of the index, which are the row's second and third bit.
using SmemBlock =
    decltype(composition(Swizzle<2, 3, 3>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{}));
using SmemA = decltype(tile_to_shape(SmemBlock{}, Shape<Int<kTileM>, Int<kTileK>, Int<kStages>>{}));
using SmemB = decltype(tile_to_shape(SmemBlock{}, Shape<Int<kTileN>, Int<kTileK>, Int<kStages>>{}));

// The main loop: loads run three K tiles ahead, fragments one step.
template <class Load, class LoadFragments, class Multiply>
__device__ __forceinline__ void pipeline(int k_tiles, const Load& load,
                                         const LoadFragments& load_fragments,
                                         const Multiply& multiply) {
  for (int k_tile = 0; k_tile < kStages - 1; ++k_tile) {
    if (k_tile < k_tiles) load(k_tile, k_tile);
    cp_async_fence();  // one group for each K tile, empty past the last
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();
  load_fragments(_0{}, 0);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    constexpr Int<kTileK / 16> kSteps;
    for_each(make_seq<kSteps.value>{}, [&](auto step) {
      if (step == kSteps - 1) {  // the next tile's fragments follow
        cp_async_wait<kStages - 2>();
        __syncthreads();
      }
      load_fragments((step + _1{}) % kSteps, (k_tile + (step + 1) / kSteps) % kStages);
      if (step == 0) {
        const int next = k_tile + kStages - 1;
        if (next < k_tiles) load(next, next % kStages);
        cp_async_fence();
      }
      multiply(step);
    });
  }
}

__global__ void __launch_bounds__(kThreads)
    global_gemm(const half_t* a, const half_t* b, float* c, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char memory[];
  half_t* smem_a = reinterpret_cast<half_t*>(memory);
  half_t* smem_b = smem_a + cosize_v<SmemA>;

  // This block's strips of A and B, (tile, tile, k tiles), and its tile of C.
  auto whole_a = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
  auto whole_b = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(k, _1{}));
  auto whole_c = make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{}));
  auto gmem_a = local_tile(whole_a, Shape<Int<kTileM>, Int<kTileK>>{}, make_coord(blockIdx.x, _));
  auto gmem_b = local_tile(whole_b, Shape<Int<kTileN>, Int<kTileK>>{}, make_coord(blockIdx.y, _));
  auto gmem_c =
      local_tile(whole_c, Shape<Int<kTileM>, Int<kTileN>>{}, make_coord(blockIdx.x, blockIdx.y));
  auto tile_a = make_tensor(make_smem_ptr(smem_a), SmemA{});
  auto tile_b = make_tensor(make_smem_ptr(smem_b), SmemB{});

  // Global to shared: 4 threads share a row of 4 chunks of 8 halves, 32 rows at a time.
  auto fill = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, half_t>{},
                              Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto fill_mine = fill.get_thread_slice(threadIdx.x);
  auto from_a = fill_mine.partition_S(gmem_a);
  auto from_b = fill_mine.partition_S(gmem_b);
  auto to_a = fill_mine.partition_D(tile_a);
  auto to_b = fill_mine.partition_D(tile_b);

  // 2x2 warps of m16n8k16; the 32 of N lets one ldmatrix.x4 feed two atoms of a warp.
  auto tiled_mma = make_tiled_mma(MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>{},
                                  Layout<Shape<_2, _2, _1>>{}, Tile<_32, _32, _16>{});
  auto mma_mine = tiled_mma.get_thread_slice(threadIdx.x);
  auto frag_a = mma_mine.partition_fragment_A(tile_a(_, _, 0));
  auto frag_b = mma_mine.partition_fragment_B(tile_b(_, _, 0));
  auto owned_c = mma_mine.partition_C(gmem_c);
  auto accum = make_fragment_like(owned_c);
  clear(accum);

  // Shared to registers through ldmatrix.
  using LoadMatrix = Copy_Atom<SM75_U32x4_LDSM_N, half_t>;
  auto load_a = make_tiled_copy_A(LoadMatrix{}, tiled_mma);
  auto load_b = make_tiled_copy_B(LoadMatrix{}, tiled_mma);
  auto load_a_mine = load_a.get_thread_slice(threadIdx.x);
  auto load_b_mine = load_b.get_thread_slice(threadIdx.x);
  auto read_a = load_a_mine.partition_S(tile_a);
  auto read_b = load_b_mine.partition_S(tile_b);
  auto into_a = load_a_mine.retile_D(frag_a);
  auto into_b = load_b_mine.retile_D(frag_b);

  const int k_tiles = size<2>(gmem_a);
  auto load = [&](int k_tile, int stage) {
    copy(fill, from_a(_, _, _, k_tile), to_a(_, _, _, stage));
    copy(fill, from_b(_, _, _, k_tile), to_b(_, _, _, stage));
  };
  auto load_fragments = [&](auto step, int stage) {
    copy(load_a, read_a(_, _, step, stage), into_a(_, _, step));
    copy(load_b, read_b(_, _, step, stage), into_b(_, _, step));
  };
  auto multiply = [&](auto step) {
    gemm(tiled_mma, frag_a(_, _, step), frag_b(_, _, step), accum);
  };
  pipeline(k_tiles, load, load_fragments, multiply);
  copy(accum, owned_c);
}

namespace {

void require_ok(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(3);
}

std::vector<half_t> random_halves(std::size_t count, unsigned seed) {
  std::srand(seed);
  std::vector<half_t> values(count);
  for (half_t& value : values) value = half_t(static_cast<float>(std::rand() % 9 - 4));
  return values;
}

// The elements of C that differ from the product of the small integers, which f32 holds exactly.
int wrong_elements(const std::vector<half_t>& a, const std::vector<half_t>& b,
                   const std::vector<float>& c, int n, int k) {
  int wrong = 0;
  for (std::size_t at = 0; at < c.size(); at += 97) {
    const std::size_t row = at / n * k;
    const std::size_t column = at % n * k;
    float sum = 0;
    for (int i = 0; i < k; ++i)
      sum += static_cast<float>(a[row + i]) * static_cast<float>(b[column + i]);
    wrong += c[at] != sum;
  }
  return wrong;
}

struct Problem {
  int m = 512;
  int n = 512;
  int k = 256;
};

struct DeviceMatrices {
  half_t* a = nullptr;
  half_t* b = nullptr;
  float* c = nullptr;
};

DeviceMatrices upload(const std::vector<half_t>& a, const std::vector<half_t>& b,
                      std::size_t c_count) {
  DeviceMatrices on;
  require_ok(cudaMalloc(&on.a, a.size() * sizeof(half_t)), "cudaMalloc A");
  require_ok(cudaMalloc(&on.b, b.size() * sizeof(half_t)), "cudaMalloc B");
  require_ok(cudaMalloc(&on.c, c_count * sizeof(float)), "cudaMalloc C");
  require_ok(cudaMemcpy(on.a, a.data(), a.size() * sizeof(half_t), cudaMemcpyHostToDevice), "A");
  require_ok(cudaMemcpy(on.b, b.data(), b.size() * sizeof(half_t), cudaMemcpyHostToDevice), "B");
  return on;
}

// Milliseconds of one launch, the mean of `launches`.
float time_launches(const DeviceMatrices& on, const Problem& size, int launches) {
  const dim3 grid(size.m / kTileM, size.n / kTileN);
  require_ok(
      cudaFuncSetAttribute(global_gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
      "shared memory");
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  require_ok(cudaEventCreate(&start), "cudaEventCreate");
  require_ok(cudaEventCreate(&stop), "cudaEventCreate");
  require_ok(cudaEventRecord(start), "cudaEventRecord");
  for (int i = 0; i < launches; ++i) {
    global_gemm<<<grid, kThreads, kSharedBytes>>>(on.a, on.b, on.c, size.m, size.n, size.k);
  }
  require_ok(cudaEventRecord(stop), "cudaEventRecord");
  require_ok(cudaEventSynchronize(stop), "global_gemm");
  float milliseconds = 0;
  require_ok(cudaEventElapsedTime(&milliseconds, start, stop), "cudaEventElapsedTime");
  require_ok(cudaEventDestroy(start), "cudaEventDestroy");
  require_ok(cudaEventDestroy(stop), "cudaEventDestroy");
  return milliseconds / static_cast<float>(launches);
}

}  // namespace

// global_gemm_cute [M N K]
int main(int argc, char** argv) {
  Problem size;
  if (argc > 3) size = {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])};
  const auto [m, n, k] = size;
  if (m <= 0 || n <= 0 || k <= 0 || m % kTileM != 0 || n % kTileN != 0 || k % kTileK != 0) {
    std::fprintf(stderr, "M and N are multiples of %d, K of %d\n", kTileM, kTileK);
    return 2;
  }
  const std::vector<half_t> a = random_halves(static_cast<std::size_t>(m) * k, 1);
  const std::vector<half_t> b = random_halves(static_cast<std::size_t>(n) * k, 2);
  std::vector<float> c(static_cast<std::size_t>(m) * n);
  const DeviceMatrices on = upload(a, b, c.size());
  time_launches(on, size, 5);
  const float milliseconds = time_launches(on, size, 20);
  require_ok(cudaMemcpy(c.data(), on.c, c.size() * sizeof(float), cudaMemcpyDeviceToHost), "C");
  const int wrong = wrong_elements(a, b, c, n, k);
  std::printf("%d x %d x %d: %s, %.4f ms, %.1f TFLOP/s\n", m, n, k, wrong ? "WRONG" : "right",
              static_cast<double>(milliseconds), 2e-9 * m * n * k / milliseconds);
  require_ok(cudaFree(on.a), "cudaFree");
  require_ok(cudaFree(on.b), "cudaFree");
  require_ok(cudaFree(on.c), "cudaFree");
  return wrong ? 1 : 0;
}
