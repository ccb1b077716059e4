// Hello, MMA: one tensor-core instruction by hand.
//
//   nvcc -std=c++20 -arch=sm_80 -Iinclude -o hello_mma examples/hello_mma.cu && ./hello_mma
//
// Prints who owns which element of A, B and C, lets one warp multiply two matrices of ones (16.0
// everywhere), and checks the same instruction on random numbers. Exit code 1 if anything is wrong.
#include <kiln/device/mma.cuh>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace kiln;

// The instruction: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32. Its 32 lanes hold 8 elements
// of A (16 x 16), 4 of B (8 x 16) and 4 of C (16 x 8) each.
using Atom = atom::m16n8k16_f32_f16;
constexpr int kM = Atom::kM, kN = Atom::kN, kK = Atom::kK;

// Both operands lie with K fastest, as the instruction wants them; C lies row by row.
constexpr Layout kLayoutA = "(16,16):(16,1)"_layout;
constexpr Layout kLayoutB = "(8,16):(16,1)"_layout;
constexpr Layout kLayoutC = "(16,8):(8,1)"_layout;

// Each lane writes its number into the elements it owns.
__global__ void ownership(int* a, int* b, int* c) {
  const int lane = static_cast<int>(threadIdx.x);
  auto mine = make_tiled_mma<Atom>().get_thread_slice(lane);
  auto own_a = mine.partition_A(make_tensor<kLayoutA>(make_gmem_ptr(a)));
  auto own_b = mine.partition_B(make_tensor<kLayoutB>(make_gmem_ptr(b)));
  auto own_c = mine.partition_C(make_tensor<kLayoutC>(make_gmem_ptr(c)));
  fill(own_a, lane);
  fill(own_b, lane);
  fill(own_c, lane);
}

// One warp: C = A * B^T.
__global__ void micro_gemm(const f16* a, const f16* b, float* c) {
  __shared__ __align__(16) f16 memory_a[kM * kK];
  __shared__ __align__(16) f16 memory_b[kN * kK];
  auto sA = make_tensor<kLayoutA>(make_smem_ptr(memory_a));  // (M, K)
  auto sB = make_tensor<kLayoutB>(make_smem_ptr(memory_b));  // (N, K)
  auto gA = make_tensor<kLayoutA>(make_gmem_ptr(a));
  auto gB = make_tensor<kLayoutB>(make_gmem_ptr(b));
  auto gC = make_tensor<kLayoutC>(make_gmem_ptr(c));  // (M, N)

  // 1. Global to shared memory, element by element.
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < size(sA); i += threads) sA(i) = gA(i);
  for (int i = thread; i < size(sB); i += threads) sB(i) = gB(i);
  __syncthreads();

  // 2. What of each operand belongs to this lane, where it lies ...
  auto mma = make_tiled_mma<Atom>();
  auto mine = mma.get_thread_slice(thread);
  auto tCsA = mine.partition_A(sA);  // (8, 1, 1): the atom's values, repeats in M, in K
  auto tCsB = mine.partition_B(sB);  // (4, 1, 1)
  auto tCgC = mine.partition_C(gC);  // (4, 1, 1)

  // 3. ... and the registers the instruction takes it from.
  auto tCrA = make_fragment_like(tCsA);
  auto tCrB = make_fragment_like(tCsB);
  auto accumulators = make_fragment_like(tCgC);
  copy(tCsA, tCrA);
  copy(tCsB, tCrB);
  clear(accumulators);

  // 4. One instruction, 2048 multiply-adds.
  gemm(mma, tCrA, tCrB, accumulators);

  // 5. Registers to global memory.
  copy(accumulators, tCgC);
}

// ---- the host ----------------------------------------------------------------------------------

static void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(3);
}

// Device memory that starts as a copy of `host` and can be read back.
template <class T>
struct OnDevice {
  T* data = nullptr;
  std::size_t count;

  explicit OnDevice(const std::vector<T>& host) : count(host.size()) {
    check(cudaMalloc(&data, count * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice), "copy in");
  }
  ~OnDevice() { cudaFree(data); }
  std::vector<T> read() const {
    std::vector<T> host(count);
    check(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "copy out");
    return host;
  }
};

// One operand's grid: the lane that owns each element.
struct Grid {
  const char* name;
  const char* row_name;
  const char* col_name;
  int rows, cols;
};

static void print_owners(const Grid& grid, const std::vector<int>& owners) {
  std::printf("%s, %d x %d: the lane that owns each element\n\n     ", grid.name, grid.rows,
              grid.cols);
  for (int col = 0; col < grid.cols; ++col) std::printf("  %s=%-2d", grid.col_name, col);
  for (int row = 0; row < grid.rows; ++row) {
    std::printf("\n%s=%-3d", grid.row_name, row);
    for (int col = 0; col < grid.cols; ++col)
      std::printf("  T%02d ", owners[row * grid.cols + col]);
  }
  std::printf("\n\n");
}

static void show_ownership() {
  OnDevice<int> a(std::vector<int>(kM * kK, -1));
  OnDevice<int> b(std::vector<int>(kN * kK, -1));
  OnDevice<int> c(std::vector<int>(kM * kN, -1));
  ownership<<<1, Atom::kLanes>>>(a.data, b.data, c.data);
  check(cudaGetLastError(), "ownership");
  print_owners({"A", "m", "k", kM, kK}, a.read());
  print_owners({"B", "n", "k", kN, kK}, b.read());
  print_owners({"C", "m", "n", kM, kN}, c.read());
}

static std::vector<float> multiply(const std::vector<f16>& a, const std::vector<f16>& b) {
  OnDevice<f16> device_a(a);
  OnDevice<f16> device_b(b);
  OnDevice<float> device_c(std::vector<float>(kM * kN, NAN));
  micro_gemm<<<1, Atom::kLanes>>>(device_a.data, device_b.data, device_c.data);
  check(cudaGetLastError(), "micro_gemm");
  return device_c.read();
}

// The number of elements further from the product in double than the instruction may be: each of
// its additions is exact to 2^-22 of the sum of magnitudes (docs/numbers.md).
static int count_wrong(const std::vector<f16>& a, const std::vector<f16>& b,
                       const std::vector<float>& c) {
  int wrong = 0;
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < kK; ++k) {
        const double product = double(float(a[m * kK + k])) * double(float(b[n * kK + k]));
        sum += product;
        magnitude += std::fabs(product);
      }
      const double error = std::fabs(double(c[m * kN + n]) - sum);
      wrong += !(error <= magnitude * 0x1p-20);  // NaN is wrong
    }
  }
  return wrong;
}

// Between -1 and 1.
static f16 next_random(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return f16(static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
}

int main() {
  show_ownership();

  const std::vector<f16> ones_a(kM * kK, f16(1.0f));
  const std::vector<f16> ones_b(kN * kK, f16(1.0f));
  const std::vector<float> sixteen = multiply(ones_a, ones_b);
  std::printf("C of ones times ones, each element 16.0:\n\n");
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) std::printf(" %5.1f", sixteen[m * kN + n]);
    std::printf("\n");
  }
  int wrong = 0;
  for (const float element : sixteen) wrong += element != 16.0f;

  std::vector<f16> a(kM * kK), b(kN * kK);
  unsigned state = 1;
  for (f16& element : a) element = next_random(state);
  for (f16& element : b) element = next_random(state);
  wrong += count_wrong(a, b, multiply(a, b));

  std::printf("\n%d elements wrong, of ones and of random numbers: %s\n", wrong,
              wrong == 0 ? "PASS" : "FAIL");
  return wrong == 0 ? 0 : 1;
}
