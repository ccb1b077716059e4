// The device library on a GPU: products of small integers, exact, over atoms, majors and loads.
//
//   nvcc -std=c++20 -arch=sm_80 -Iinclude -o device_library tests/gpu/device_library.cu
//   ./device_library    one line a case, then `N passed, N failed`; exit code 1 if any failed
//
// Each case multiplies one tile of 2 x 2 warps and two steps of K from shared memory. With K
// fastest the fragments come by plain copies or by ldmatrix, with M or N fastest by transposing
// ldmatrix.
#include <kiln/device/mma.cuh>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace kiln;

struct PlainLoad {};  // element by element, instead of a matrix load

template <class Atom_, bool KFastest, int SwizzleBits, class Load_>
struct Case {
  using Atom = Atom_;
  using Load = Load_;
  enum : int { kM = 4 * Atom::kM, kN = 8 * Atom::kN, kK = 2 * Atom::kK };
  static constexpr bool kKFastest = KFastest;

  // Rows x kK, either mode fastest, chunks of 8 elements swizzled over rows (or columns) of 64.
  static constexpr Swizzled tile(int rows) {
    const Layout layout = KFastest ? make_layout(make_layout(rows, kK), make_layout(kK, 1))
                                   : make_layout(make_layout(rows, 1), make_layout(kK, rows));
    return composition(Swizzle{SwizzleBits, 3, 3}, layout);
  }
  static constexpr Swizzled kTileA = tile(kM);
  static constexpr Swizzled kTileB = tile(kN);
};

// Two operands: tiles in shared memory, or fragments of them in registers.
template <class A, class B>
struct Operands {
  A& a;
  B& b;
};
template <class A, class B>
Operands(A&, B&) -> Operands<A, B>;

template <class Load, class Mma, class Tiles, class Fragments>
__device__ void load_fragments(Mma mma, int thread, const Tiles& tiles, const Fragments& out) {
  if constexpr (detail::kSame<Load, PlainLoad>) {
    auto mine = mma.get_thread_slice(thread);
    copy(mine.partition_A(tiles.a), out.a);
    copy(mine.partition_B(tiles.b), out.b);
  } else {
    auto load_a = make_tiled_copy_A<Load>(mma);
    auto load_b = make_tiled_copy_B<Load>(mma);
    copy(load_a, load_a.get_thread_slice(thread).partition_S(tiles.a), out.a);
    copy(load_b, load_b.get_thread_slice(thread).partition_S(tiles.b), out.b);
  }
}

template <class C>
__global__ void product(const float* a, const float* b, float* c) {
  using Atom = typename C::Atom;
  using Element = typename Atom::A;
  __shared__ __align__(16) Element memory_a[cosize(C::kTileA)];
  __shared__ __align__(16) Element memory_b[cosize(C::kTileB)];
  auto sA = make_tensor<C::kTileA>(make_smem_ptr(memory_a));
  auto sB = make_tensor<C::kTileB>(make_smem_ptr(memory_b));
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < C::kM * C::kK; i += 128) {
    sA(i % C::kM, i / C::kM) = Element(a[i]);
  }
  for (int i = thread; i < C::kN * C::kK; i += 128) {
    sB(i % C::kN, i / C::kN) = Element(b[i]);
  }
  __syncthreads();

  auto mma = make_tiled_mma<Atom, "(2,2)"_layout>();
  auto mine = mma.get_thread_slice(thread);
  auto gC = make_tensor(make_gmem_ptr(c), make_shape(Int<C::kM>{}, Int<C::kN>{}),
                        make_stride(Int<1>{}, Int<C::kM>{}));
  auto fragment_a = mine.partition_fragment_A(sA);
  auto fragment_b = mine.partition_fragment_B(sB);
  auto accumulators = mine.partition_fragment_C(gC);
  clear(accumulators);
  load_fragments<typename C::Load>(mma, thread, Operands{sA, sB}, Operands{fragment_a, fragment_b});
  gemm(mma, fragment_a, fragment_b, accumulators);
  auto out = mine.partition_C(gC);
  for (int i = 0; i < size(out); ++i) out(i) = static_cast<float>(accumulators(i));
}

static std::vector<float> small_integers(int count, unsigned seed) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& number : out) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(static_cast<int>(seed >> 29) - 3);
  }
  return out;
}

static void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(3);
}

static float* on_device(const std::vector<float>& host) {
  float* out = nullptr;
  check(cudaMalloc(&out, host.size() * sizeof(float)), "cudaMalloc");
  check(cudaMemcpy(out, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");
  return out;
}

static int passed = 0, failed = 0;

template <class C>
static void run(const char* atom, const char* how) {
  const std::vector<float> a = small_integers(C::kM * C::kK, 1);
  const std::vector<float> b = small_integers(C::kN * C::kK, 2);
  std::vector<float> c(std::size_t(C::kM) * C::kN, -1e30f);
  float* device_a = on_device(a);
  float* device_b = on_device(b);
  float* device_c = on_device(c);
  product<C><<<1, 128>>>(device_a, device_b, device_c);
  check(cudaGetLastError(), "product");
  check(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "product");
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
  int wrong = 0;
  for (int m = 0; m < C::kM; ++m) {
    for (int n = 0; n < C::kN; ++n) {
      float sum = 0;
      for (int k = 0; k < C::kK; ++k) sum += a[m + C::kM * k] * b[n + C::kN * k];
      wrong += c[m + C::kM * n] != sum;
    }
  }
  std::printf("%s %s, %s: %d elements wrong\n", wrong == 0 ? "ok  " : "FAIL", atom, how, wrong);
  ++(wrong == 0 ? passed : failed);
}

// The ways to load 16-bit operands. An atom of k8 holds half the registers, so x4 takes two
// repeats.
template <class Atom>
static void run_16_bit(const char* atom) {
  run<Case<Atom, true, 0, PlainLoad>>(atom, "K fastest, plain");
  run<Case<Atom, true, 1, PlainLoad>>(atom, "K fastest, swizzled, plain");
  run<Case<Atom, true, 1, atom::ldmatrix_x1>>(atom, "K fastest, swizzled, ldmatrix.x1");
  run<Case<Atom, true, 1, atom::ldmatrix_x2>>(atom, "K fastest, swizzled, ldmatrix.x2");
  run<Case<Atom, true, 1, atom::ldmatrix_x4>>(atom, "K fastest, swizzled, ldmatrix.x4");
  run<Case<Atom, false, 0, PlainLoad>>(atom, "K strided, plain");
  run<Case<Atom, false, 3, atom::ldmatrix_x1_trans>>(atom,
                                                     "K strided, swizzled, ldmatrix.x1.trans");
  run<Case<Atom, false, 3, atom::ldmatrix_x2_trans>>(atom,
                                                     "K strided, swizzled, ldmatrix.x2.trans");
  run<Case<Atom, false, 3, atom::ldmatrix_x4_trans>>(atom,
                                                     "K strided, swizzled, ldmatrix.x4.trans");
}

int main() {
  run_16_bit<atom::m16n8k16_f32_f16>("m16n8k16.f32.f16");
  run_16_bit<atom::m16n8k16_f16_f16>("m16n8k16.f16.f16");
  run_16_bit<atom::m16n8k16_f32_bf16>("m16n8k16.f32.bf16");
  run_16_bit<atom::m16n8k8_f32_f16>("m16n8k8.f32.f16");
  run_16_bit<atom::m16n8k8_f16_f16>("m16n8k8.f16.f16");
  run_16_bit<atom::m16n8k8_f32_bf16>("m16n8k8.f32.bf16");
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
