// The global GEMM: C = A * B^T with three levels of tiles, for any M, N and K.
//
//   nvcc -std=c++20 -arch=sm_80 -O3 -Iinclude -o global_gemm examples/global_gemm.cu
//   ./global_gemm                  512 x 512 x 256, each step
//   ./global_gemm 4096 4096 4096   the same for other extents, also ragged ones: 1000 77 333
//
// A is M x K and B is N x K, f16, row by row; C is M x N, f32, row by row. A block of 128 threads
// computes 128 x 128 of C, 32 of K at a time; four warps, 2 x 2, share that tile; a warp repeats
// the 16 x 8 x 16 instruction over its 64 x 64. Every result is checked against double precision
// before it is timed; exit code 1 if an element is further off than the instruction may be.
//
// The steps, each an Options:
//   Plain      load a K tile, wait for it, multiply, and so on
//   Pipelined  the loads run up to three K tiles ahead of the multiplication
//   Staged     and C leaves through shared memory, in whole rows
// The program runs the first and the last; bench/global_gemm times all three. A problem of ragged
// extents takes Guarded: the last step with guarded copies, and where rows allow no copies of 16
// bytes, with one K tile at a time.
#include <kiln/device/mma.cuh>

using namespace kiln;

constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 32;
constexpr int kThreads = 128;

using Atom = atom::m16n8k16_f32_f16;

template <int Stages, bool StagedEpilogue, int CopyBytes = 16, bool Guarded = false>
struct Options {
  static constexpr int kStages = Stages;                   // K tiles in shared memory at a time
  static constexpr bool kStagedEpilogue = StagedEpilogue;  // C through shared memory
  static constexpr int kCopyBytes = CopyBytes;             // what each load moves, 16 or 2
  static constexpr bool kGuarded = Guarded;                // stop at the edges
  static constexpr int kTileBytes = (kBlockM + kBlockN) * kBlockK * 2;
  static constexpr int kEpilogueBytes = StagedEpilogue ? kBlockM * kBlockN * 4 : 0;
  static constexpr int kSharedBytes =
      Stages * kTileBytes > kEpilogueBytes ? Stages* kTileBytes : kEpilogueBytes;
};
using Plain = Options<1, false>;
using Pipelined = Options<4, false>;
using Staged = Options<4, true>;
template <int CopyBytes>
using Guarded = Options<CopyBytes == 16 ? 4 : 1, true, CopyBytes, true>;

// A tile of A or B: K fastest, 64 bytes a row, its 16-byte chunks XORed so that neither the copies
// nor the matrix loads meet a bank conflict; `Stages` of them one after the other.
template <int Stages>
constexpr Swizzled kSharedTile = composition(Swizzle{2, 3, 3},
                                             make_layout(make_layout(kBlockM, kBlockK),
                                                         make_layout(kBlockK, 1),
                                                         make_layout(Stages, kBlockM* kBlockK)));
static_assert(kBlockM == kBlockN, "A and B share the layout");

// The tile of C: row by row, 32-byte chunks XORed for the warps' writes, 8 rows at a time.
constexpr Swizzled kSharedC = composition(
    Swizzle{3, 3, 4}, make_layout(make_layout(kBlockM, kBlockN), make_layout(kBlockN, 1)));

// How a K tile is copied: a thread moves one vector, neighbours along K first.
template <int Bytes>
struct TileCopy {
  static constexpr int kElements = Bytes / 2, kAcross = kBlockK / kElements;
  static constexpr Layout kThreadLayout =
      make_layout(make_layout(kThreads / kAcross, kAcross), make_layout(kAcross, 1));
  static constexpr Layout kValueLayout = make_layout(make_layout(1, 1), make_layout(kElements, 1));
};
template <int Bytes>
struct CopyAtom {
  using type = vectors<Bytes>;  // what cp.async cannot move
};
template <>
struct CopyAtom<16> {
  using type = atom::cp_async_16;
};

// The tile of C from shared to global memory, by whole rows; with Guarded only what lies inside.
template <bool Guarded, class RowCopy, class Shared, class Global>
__device__ void store_tile(RowCopy row_copy, const Shared& sC, const Global& gC, int M, int N) {
  auto mover = row_copy.get_thread_slice(static_cast<int>(threadIdx.x));
  if constexpr (Guarded) {
    auto cC = local_tile<kBlockM, kBlockN>(make_identity_tensor(make_shape(M, N)), blockIdx.x,
                                           blockIdx.y);
    copy_if(row_copy, in_bounds(mover.partition_S(cC), M, N), mover.partition_S(sC),
            mover.partition_D(gC));
  } else {
    copy(row_copy, mover.partition_S(sC), mover.partition_D(gC));
  }
}

// The main loops. `load` starts copying a K tile into a stage of shared memory, `load_fragments`
// fills the registers of one step (16 of the tile's 32 of K) from a stage, `multiply` uses them.
constexpr int kSteps = kBlockK / Atom::kK;

template <class Load, class LoadFragments, class Multiply>
__device__ void plain_loop(int k_tiles, Load load, LoadFragments load_fragments,
                           Multiply multiply) {
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    load(k_tile, 0);
    cp_async_fence();
    cp_async_wait<0>();
    __syncthreads();  // the tile is there, for everybody
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      load_fragments(step, 0);
      multiply(step);
    }
    __syncthreads();  // nobody reads it any more
  }
}

template <int Stages, class Load, class LoadFragments, class Multiply>
__device__ void pipelined_loop(int k_tiles, Load load, LoadFragments load_fragments,
                               Multiply multiply) {
  // One group for each K tile, empty past the last, so that "all but Stages - 2 groups" always
  // means "the next tile is there".
#pragma unroll 1
  for (int k_tile = 0; k_tile < Stages - 1; ++k_tile) {
    if (k_tile < k_tiles) load(k_tile, k_tile);
    cp_async_fence();
  }
  cp_async_wait<Stages - 2>();
  __syncthreads();
  load_fragments(0, 0);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // The fragments of the next step arrive while this one multiplies. After the last step they
      // are the next tile's; by the barrier, too, everybody is done with the tile before this one.
      if (step == kSteps - 1) {
        cp_async_wait<Stages - 2>();
        __syncthreads();
      }
      const int ahead = (step + 1) / kSteps;
      load_fragments((step + 1) % kSteps, (k_tile + ahead) % Stages);
      if (step == 0) {
        const int next = k_tile + Stages - 1;
        if (next < k_tiles) load(next, next % Stages);
        cp_async_fence();
      }
      multiply(step);
    }
  }
}

template <int Stages, class Load, class LoadFragments, class Multiply>
__device__ void main_loop(int k_tiles, Load load, LoadFragments load_fragments, Multiply multiply) {
  if constexpr (Stages == 1) {
    plain_loop(k_tiles, load, load_fragments, multiply);
  } else {
    pipelined_loop<Stages>(k_tiles, load, load_fragments, multiply);
  }
}

// Which elements of a thread's part of a K tile exist; past the edges zeros arrive. The same cuts
// of a tensor whose elements are their coordinates say where each element comes from.
template <int BlockRows, class Mover>
__device__ auto inside(Mover mover, int block, int k_tile, int rows, int K) {
  auto coordinates =
      local_tile<BlockRows, kBlockK>(make_identity_tensor(make_shape(rows, K)), block, _);
  return in_bounds(mover.partition_S(coordinates)(_, _, _, k_tile), rows, K);
}

// The block's tile of C, from shared memory; guarded: what lies inside of M x N.
template <bool Guarded, class Shared, class Global>
__device__ void store_staged(const Shared& sC, Global gC, int M, int N) {
  auto four = make_tiled_copy<vectors<16>, "(4,32):(32,1)"_layout, "(1,4)"_layout>();
  auto one = make_tiled_copy<vectors<4>, "(4,32):(32,1)"_layout, "(1,1)"_layout>();
  if constexpr (!Guarded) {
    store_tile<false>(four, sC, gC, M, N);
  } else if (N % 4 == 0) {
    store_tile<true>(four, sC, gC, M, N);
  } else {
    store_tile<true>(one, sC, gC, M, N);
  }
}

template <class Options>
__global__ void __launch_bounds__(kThreads)
    gemm_kernel(const f16* A, const f16* B, float* C, int M, int N, int K) {
  constexpr int kStages = Options::kStages;
  const int thread = static_cast<int>(threadIdx.x);

  // Level 1: the matrices, and this block's strips and tile of them.
  auto mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(K, Int<1>{}));
  auto mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(K, Int<1>{}));
  auto mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, Int<1>{}));
  auto gA = local_tile<kBlockM, kBlockK>(mA, blockIdx.x, _);           // (128, 32, K tiles)
  auto gB = local_tile<kBlockN, kBlockK>(mB, blockIdx.y, _);           // (128, 32, K tiles)
  auto gC = local_tile<kBlockM, kBlockN>(mC, blockIdx.x, blockIdx.y);  // (128, 128)

  extern __shared__ __align__(128) unsigned char memory[];
  f16* memory_a = reinterpret_cast<f16*>(memory);
  f16* memory_b = memory_a + kStages * kBlockM * kBlockK;
  auto sA = make_tensor<kSharedTile<kStages>>(make_smem_ptr(memory_a));  // (128, 32, stages)
  auto sB = make_tensor<kSharedTile<kStages>>(make_smem_ptr(memory_b));

  // Level 2: global to shared memory, a K tile at a time.
  using Tile = TileCopy<Options::kCopyBytes>;
  auto tile_copy = make_tiled_copy<typename CopyAtom<Options::kCopyBytes>::type,
                                   Tile::kThreadLayout, Tile::kValueLayout>();
  auto mover = tile_copy.get_thread_slice(thread);
  auto tAgA = mover.partition_S(gA);  // (vector, M repeats, K repeats, K tiles)
  auto tBgB = mover.partition_S(gB);
  auto tAsA = mover.partition_D(sA);  // (vector, M repeats, K repeats, stages)
  auto tBsB = mover.partition_D(sB);
  auto load = [&](int k_tile, int stage) {
    if constexpr (Options::kGuarded) {
      auto inside_a = inside<kBlockM>(mover, blockIdx.x, k_tile, M, K);
      auto inside_b = inside<kBlockN>(mover, blockIdx.y, k_tile, N, K);
      copy_if(tile_copy, inside_a, tAgA(_, _, _, k_tile), tAsA(_, _, _, stage));
      copy_if(tile_copy, inside_b, tBgB(_, _, _, k_tile), tBsB(_, _, _, stage));
    } else {
      copy(tile_copy, tAgA(_, _, _, k_tile), tAsA(_, _, _, stage));
      copy(tile_copy, tBgB(_, _, _, k_tile), tBsB(_, _, _, stage));
    }
  };

  // Level 3: shared memory to registers, registers through the tensor cores.
  auto mma = make_tiled_mma<Atom, "(2,2)"_layout>();
  auto multiplier = mma.get_thread_slice(thread);
  auto tCrA = multiplier.partition_fragment_A(sA(_, _, 0));  // (8, 4, 2)
  auto tCrB = multiplier.partition_fragment_B(sB(_, _, 0));  // (4, 8, 2)
  auto accumulators = multiplier.partition_fragment_C(gC);   // (4, 4, 8)
  auto load_a = make_tiled_copy_A<atom::ldmatrix_x4>(mma);
  auto load_b = make_tiled_copy_B<atom::ldmatrix_x4>(mma);
  auto tCsA = load_a.get_thread_slice(thread).partition_S(sA);  // (8, 4, 2, stages)
  auto tCsB = load_b.get_thread_slice(thread).partition_S(sB);
  auto load_fragments = [&](int step, int stage) {
    copy(load_a, tCsA(_, _, step, stage), tCrA(_, _, step));
    copy(load_b, tCsB(_, _, step, stage), tCrB(_, _, step));
  };
  auto multiply = [&](int step) { gemm(mma, tCrA(_, _, step), tCrB(_, _, step), accumulators); };
  clear(accumulators);
  main_loop<kStages>(size<2>(gA), load, load_fragments, multiply);

  if constexpr (!Options::kStagedEpilogue) {
    copy(vectors<8>{}, accumulators, multiplier.partition_C(gC));
  } else {
    cp_async_wait<0>();
    __syncthreads();  // the tiles' memory is free
    auto sC = make_tensor<kSharedC>(make_smem_ptr(reinterpret_cast<float*>(memory)));
    copy(accumulators, multiplier.partition_C(sC));
    __syncthreads();
    store_staged<Options::kGuarded>(sC, gC, M, N);
  }
}

#if !defined(__CUDACC_RTC__)  // the host

#include <cmath>
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(3);
}

struct Problem {
  int m, n, k;
  f16* a = nullptr;
  f16* b = nullptr;
  float* c = nullptr;
};

// Normally distributed numbers: two hashes of the index as uniform ones (Box and Muller, 1958).
__global__ void fill_normal(f16* out, std::size_t count, unsigned seed) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned hash = static_cast<unsigned>(i) * 2654435761u + seed * 40503u + 1u;
  float uniform[2];
  for (float& number : uniform) {
    hash = (hash ^ hash >> 16) * 0x7feb352du;
    hash = (hash ^ hash >> 15) * 0x846ca68bu;
    hash ^= hash >> 16;
    number = (static_cast<float>(hash >> 8) + 0.5f) * 0x1p-24f;
  }
  out[i] = f16(sqrtf(-2.0f * logf(uniform[0])) * cosf(6.2831853f * uniform[1]));
}

template <class T>
static T* allocate(std::size_t count) {
  T* out = nullptr;
  check(cudaMalloc(&out, count * sizeof(T)), "cudaMalloc");
  return out;
}
static f16* random_matrix(int rows, int cols, unsigned seed) {
  const std::size_t count = std::size_t(rows) * cols;
  f16* out = allocate<f16>(count);
  fill_normal<<<static_cast<unsigned>((count + 255) / 256), 256>>>(out, count, seed);
  check(cudaGetLastError(), "fill_normal");
  return out;
}

template <class Options>
static void launch(const Problem& p) {
  const dim3 grid((p.m + kBlockM - 1) / kBlockM, (p.n + kBlockN - 1) / kBlockN);
  check(cudaFuncSetAttribute(gemm_kernel<Options>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             Options::kSharedBytes),
        "shared memory");
  gemm_kernel<Options><<<grid, kThreads, Options::kSharedBytes>>>(p.a, p.b, p.c, p.m, p.n, p.k);
  check(cudaGetLastError(), "gemm_kernel");
}

using Launch = void (*)(const Problem&);

// Counts elements further from the product in double than the instructions may be: (K/16 + 2) times
// their roundoff of the sum of magnitudes (docs/numbers.md). An element never written is NaN.
__global__ void count_wrong(Problem p, unsigned long long* wrong) {
  const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int m = static_cast<int>(blockIdx.y);
  if (n >= p.n) return;
  double sum = 0, magnitude = 0;
  for (int k = 0; k < p.k; ++k) {
    const double product =
        double(float(p.a[std::size_t(m) * p.k + k])) * double(float(p.b[std::size_t(n) * p.k + k]));
    sum += product;
    magnitude += fabs(product);
  }
  constexpr double kRoundoff = 1.25 * 0x1p-20;
  const double bound = (p.k / Atom::kK + 2.0) * kRoundoff * magnitude;
  if (!(fabs(double(p.c[std::size_t(m) * p.n + n]) - sum) <= bound)) atomicAdd(wrong, 1ull);
}

static unsigned long long verify(Launch launch, const Problem& p) {
  const std::size_t bytes = std::size_t(p.m) * p.n * sizeof(float);
  check(cudaMemset(p.c, 0xff, bytes), "poison");  // NaN everywhere
  launch(p);
  unsigned long long* wrong = allocate<unsigned long long>(1);
  check(cudaMemset(wrong, 0, sizeof *wrong), "verification");
  count_wrong<<<dim3((p.n + 127) / 128, p.m), 128>>>(p, wrong);
  unsigned long long count = 0;
  check(cudaMemcpy(&count, wrong, sizeof count, cudaMemcpyDeviceToHost), "verification");
  cudaFree(wrong);
  return count;
}

// The median over batches of the time of one launch, in milliseconds.
static float time_launch(Launch launch, const Problem& p) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  constexpr int kBatches = 15, kLaunches = 20;
  float times[kBatches];
  for (int batch = -2; batch < kBatches; ++batch) {  // two to warm up
    check(cudaEventRecord(start), "event");
    for (int i = 0; i < kLaunches; ++i) launch(p);
    check(cudaEventRecord(stop), "event");
    check(cudaEventSynchronize(stop), "gemm_kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, stop), "event");
    if (batch >= 0) times[batch] = ms / kLaunches;
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::qsort(times, kBatches, sizeof times[0], [](const void* a, const void* b) {
    const float x = *static_cast<const float*>(a), y = *static_cast<const float*>(b);
    return x < y ? -1 : x > y;
  });
  return times[kBatches / 2];
}

// Checks and times one step; returns whether it was right.
static bool report(const char* step, Launch launch, const Problem& p) {
  const unsigned long long wrong = verify(launch, p);
  const float ms = time_launch(launch, p);
  const double flops = 2.0 * p.m * p.n * p.k;
  std::printf("%-10s %9.4f ms  %7.2f TFLOP/s  %llu elements wrong: %s\n", step, ms,
              flops / (ms * 1e-3) / 1e12, wrong, wrong == 0 ? "PASS" : "FAIL");
  return wrong == 0;
}

// Copies of 16 bytes where rows, K elements apart, allow it, else of single elements.
static bool report_guarded(const Problem& p) {
  if (p.k % 8 == 0) return report("Guarded 16", launch<Guarded<16>>, p);
  return report("Guarded 2", launch<Guarded<2>>, p);
}

static int extent(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end == '\0' && value >= 1 && value <= 65535) return static_cast<int>(value);
  std::fprintf(stderr, "%s: an extent is a number from 1 to 65535\n", text);
  std::exit(2);
}

int main(int argc, char** argv) {
  if (argc != 1 && argc != 4) {
    std::fprintf(stderr, "usage: %s [M N K]\n", argv[0]);
    return 2;
  }
  Problem p{512, 512, 256};
  if (argc == 4) p = {extent(argv[1]), extent(argv[2]), extent(argv[3])};
  p.a = random_matrix(p.m, p.k, 1);
  p.b = random_matrix(p.n, p.k, 2);
  p.c = allocate<float>(std::size_t(p.m) * p.n);
  std::printf("C (%d x %d) = A (%d x %d) * B (%d x %d) transposed\n", p.m, p.n, p.m, p.k, p.n, p.k);

  bool right = true;
  if (p.m % kBlockM == 0 && p.n % kBlockN == 0 && p.k % kBlockK == 0) {
    right &= report("Plain", launch<Plain>, p);
    right &= report("Staged", launch<Staged>, p);
  }
  right &= report_guarded(p);
  cudaFree(p.a);
  cudaFree(p.b);
  cudaFree(p.c);
  return right ? 0 : 1;
}

#endif
