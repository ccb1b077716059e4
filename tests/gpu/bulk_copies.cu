// Bulk copies, events and clusters on a GPU: boxes of every rank over every edge, every swizzle,
// multicast, and rings that wait in turn.
//
//   nvcc -std=c++20 -gencode=arch=compute_90a,code=sm_90a -Iinclude -o bulk_copies tests/gpu/bulk_copies.cu
//   ./bulk_copies       one line a case, then `N passed, N failed`; exit code 1 if any failed
#include <kiln/device/barrier.cuh>
#include <kiln/device/cluster.cuh>
#include <kiln/device/registers.cuh>
#include <kiln/device/tma.cuh>
#include <kiln/device/wgmma.cuh>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace kiln;

static int passed = 0;
static int failed = 0;

static void report(const char* what, int wrong) {
  std::printf("%s %s: %d wrong\n", wrong == 0 ? "ok  " : "FAIL", what, wrong);
  ++(wrong == 0 ? passed : failed);
}

static void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(status));
  std::exit(3);
}

// An array on the GPU, given back at the end.
template <class T>
struct Array {
  T* data = nullptr;
  std::size_t count;

  explicit Array(const std::vector<T>& values) : count(values.size()) {
    must(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)));
    must(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data); }

  std::vector<T> values() const {
    std::vector<T> out(count);
    must(cudaMemcpy(out.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
};

template <int Rank>
struct Corner {
  int at[Rank];  // innermost first
};
template <int Rank>
struct Move {
  Corner<Rank> from;
  Corner<Rank> to;
};

// Loads a box, shows it, and stores it.
template <int Rank, Eviction E>
__global__ void move_box(const __grid_constant__ TensorMap in,
                         const __grid_constant__ TensorMap out, Move<Rank> move, float* seen,
                         int count) {
  __shared__ __align__(1024) unsigned char bytes[8192];
  __shared__ mbarrier landed;
  const Tile<float, 1, 2048> tile(bytes);
  if (threadIdx.x == 0) {
    mbarrier_init<1>(&landed, 1);
    mbarrier_init_fence();
  }
  barrier_block();
  if (threadIdx.x == 0) {
    bulk_load<E>(box(tile, 0, 0), in, &landed, move.from.at);
    mbarrier_arrive_expect(&landed, static_cast<unsigned>(count) * 4);
  }
  mbarrier_wait(&landed, 0);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) {
    seen[i] = tile.at(0, i);
    tile.at(0, i) += 1000;
  }
  fence_async_proxy();
  barrier_block();
  if (threadIdx.x == 0) {
    bulk_store<E>(out, move.to.at, box(tile, 0, 0));
    bulk_commit();
    bulk_wait<0>();
  }
}

// Boxes of [2, 2, 2, 4, 8] in an array of [3, 3, 5, 6, 12], its last `Rank` dimensions.
template <int Rank>
struct Boxes {
  static constexpr int kArray[5] = {12, 6, 5, 3, 3};
  static constexpr int kBox[5] = {8, 4, 2, 2, 2};
  int elements = 1;
  int count = 1;
  MapShape<Rank> shape{};

  Boxes() {
    for (int d = 0; d < Rank; ++d) {
      elements *= kArray[d];
      count *= kBox[d];
      shape.array[Rank - 1 - d] = shape.extents[Rank - 1 - d] = kArray[d];
      shape.box[Rank - 1 - d] = static_cast<unsigned>(kBox[d]);
    }
  }

  // The place in the array of element `i` of the box at `corner`; -1 outside.
  int place(const Corner<Rank>& corner, int i) const {
    int place = 0;
    int pitch = 1;
    for (int d = 0; d < Rank; ++d) {
      const int at = corner.at[d] + i % kBox[d];
      if (at < 0 || at >= kArray[d]) return -1;
      place += at * pitch;
      pitch *= kArray[d];
      i /= kBox[d];
    }
    return place;
  }
};

template <int Rank, Eviction E>
static int wrong_after(const Corner<Rank>& from, const Corner<Rank>& to) {
  const Boxes<Rank> boxes;
  std::vector<float> values(static_cast<std::size_t>(boxes.elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  const Array<float> in(values);
  const Array<float> out(std::vector<float>(values.size(), -1));
  const Array<float> seen(std::vector<float>(static_cast<std::size_t>(boxes.count), -1));
  TensorMap in_map;
  TensorMap out_map;
  must(make_tensor_map(in_map, in.data, boxes.shape, MapPattern{0, 128}));
  must(make_tensor_map(out_map, out.data, boxes.shape, MapPattern{0, 0}));
  move_box<Rank, E><<<1, 32>>>(in_map, out_map, {from, to}, seen.data, boxes.count);
  must(cudaDeviceSynchronize());
  std::vector<float> wanted(values.size(), -1);
  int wrong = 0;
  for (int i = 0; i < boxes.count; ++i) {
    const int source = boxes.place(from, i);
    const float value = source < 0 ? 0 : values[static_cast<std::size_t>(source)];
    wrong += seen.values()[static_cast<std::size_t>(i)] != value;
    const int target = boxes.place(to, i);
    if (target >= 0) wanted[static_cast<std::size_t>(target)] = value + 1000;
  }
  const std::vector<float> got = out.values();
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != wanted[i];
  return wrong;
}

template <int Rank>
static void run_rank() {
  Corner<Rank> inside{};
  Corner<Rank> past{};    // over the far edge of every dimension
  Corner<Rank> before{};  // over the near one, which stores may not be
  for (int d = 0; d < Rank; ++d) {
    // Rows of a box begin at multiples of 16 bytes.
    const int step = d == 0 ? 4 : 1;
    past.at[d] = Boxes<Rank>::kArray[d] - Boxes<Rank>::kBox[d] + step;
    before.at[d] = -step;
  }
  int wrong = wrong_after<Rank, Eviction::kNormal>(inside, past);
  wrong += wrong_after<Rank, Eviction::kFirst>(past, inside);
  wrong += wrong_after<Rank, Eviction::kLast>(before, inside);
  char what[64];
  std::snprintf(what, sizeof(what), "boxes of rank %d over all edges", Rank);
  report(what, wrong);
}

// Both blocks of a cluster send half of the rows to both; each writes all it got.
template <int Swizzle>
__global__ void __cluster_dims__(2) both(const __grid_constant__ TensorMap map, u16* out) {
  constexpr int kCols = Swizzle / 2;
  __shared__ __align__(1024) unsigned char bytes[32 * Swizzle];
  __shared__ mbarrier landed;
  __shared__ mbarrier done;
  const Tile<u16, 32, kCols, Swizzle> tile(bytes);
  const int rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init<1>(&landed, 1);
    mbarrier_init<1>(&done, 2 * 2);  // a warp of each block, twice
    mbarrier_init_fence();
  }
  barrier_cluster();
  if (threadIdx.x == 0) {
    bulk_load_multicast<2>(box(tile, 16 * rank, 0), map, &landed, {0, 16 * rank});
    mbarrier_arrive_expect(&landed, 32 * Swizzle);
  }
  mbarrier_wait(&landed, 0);
  for (int i = static_cast<int>(threadIdx.x); i < 32 * kCols; i += 32) {
    out[rank * 32 * kCols + i] = tile.at(i / kCols, i % kCols);
  }
  mbarrier_arrive_cluster_warp<2>(&done);
  mbarrier_arrive_cluster_warp<2>(&done);
  mbarrier_wait<true>(&done, 0);
  barrier_cluster();
}

template <int Swizzle>
static void run_swizzle() {
  constexpr int kCount = 16 * Swizzle;
  std::vector<u16> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = static_cast<u16>(i + 1);
  const Array<u16> in(values);
  const Array<u16> out(std::vector<u16>(2 * kCount));
  TensorMap map;
  must(make_tensor_map(map, in.data,
                       MapShape<2>{{32, Swizzle / 2}, {32, Swizzle / 2}, {16, Swizzle / 2}},
                       MapPattern{Swizzle, 0}));
  both<Swizzle><<<2, 32>>>(map, out.data);
  must(cudaDeviceSynchronize());
  const std::vector<u16> got = out.values();
  int wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != values[i % kCount];
  char what[64];
  std::snprintf(what, sizeof(what), "swizzle %d to both blocks of a cluster", Swizzle);
  report(what, wrong);
}

// A ring of `Slots` numbers between two warpgroups, in turn, with registers passed on.
template <int Slots>
__global__ void __launch_bounds__(256, 1) ring(int trips, int* wrong) {
  __shared__ int numbers[Slots];
  __shared__ mbarrier full[Slots];
  __shared__ mbarrier empty[Slots];
  u32 full_phase[(Slots + 31) / 32] = {};
  u32 empty_phase[(Slots + 31) / 32];
  for (u32& word : empty_phase) word = ~0u;
  if (threadIdx.x == 0) {
    mbarrier_init<Slots>(full, 1);
    mbarrier_init<Slots>(empty, 4);
    mbarrier_init_fence();
  }
  barrier_block();
  if (threadIdx.x < 128) {
    fewer_registers<40>();
    for (int i = 0; i < trips; ++i) {
      mbarrier_wait_next(empty, i % Slots, empty_phase);
      if (threadIdx.x == 0) {
        numbers[i % Slots] = i;
        mbarrier_arrive(full + i % Slots);
      }
    }
  } else {
    more_registers<232>();
    for (int i = 0; i < trips; ++i) {
      mbarrier_wait_next(full, i % Slots, full_phase);
      if (numbers[i % Slots] != i) atomicAdd(wrong, 1);
      barrier_threads<1, 128>();
      mbarrier_arrive_warp(empty + i % Slots);
    }
  }
}

template <int Slots>
static void run_ring() {
  const Array<int> wrong(std::vector<int>(1));
  ring<Slots><<<1, 256>>>(10 * Slots + 3, wrong.data);
  must(cudaDeviceSynchronize());
  char what[64];
  std::snprintf(what, sizeof(what), "a ring of %d", Slots);
  report(what, wrong.values()[0]);
}

int main() {
  run_rank<1>();
  run_rank<2>();
  run_rank<3>();
  run_rank<4>();
  run_rank<5>();
  run_swizzle<32>();
  run_swizzle<64>();
  run_swizzle<128>();
  run_ring<1>();
  run_ring<3>();
  run_ring<70>();
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
