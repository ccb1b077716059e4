// Bulk copies of boxes between global and shared memory (sm_90): one thread starts them, the
// hardware moves the bytes.
//
//   kernel(const __grid_constant__ kiln::TensorMap lhs_map)            // made on the host
//   kiln::bulk_load(kiln::box(lhs_s, 64 * stage, 0), lhs_map, full + stage, {64 * k, 128 * m});
//   ...
//   kiln::bulk_store(output_map, {64 * n, 128 * m}, kiln::box(output_s, 0, 0));
//   kiln::bulk_commit();
//   kiln::bulk_wait_read<0>();                                        // output_s may change again
//
// Coordinates count elements, the innermost dimension first; a box is as large as its map says.
// What lies outside the map's extents reads as zero and is not written, but counts as bytes all
// the same. PTX ISA, "Data Movement and Conversion Instructions: Tensor copy".
#pragma once

#include "kiln/device/mbarrier.cuh"
#include "kiln/device/tensor_map.cuh"
#include "kiln/device/tile.cuh"

namespace kiln {

// Which lines the second-level cache should give up first, or last.
enum class Eviction : int { kNormal, kFirst, kLast };

// Where the box that begins at element (row, col) of a tile is, before the XOR of its swizzle,
// which the hardware applies itself.
template <class T, int Rows, int Cols, int Swizzle>
__device__ inline u32 box(const Tile<T, Rows, Cols, Swizzle>& tile, int row, int col) {
  return shared_address(tile.base) + Tile<T, Rows, Cols, Swizzle>::plain_offset(row, col);
}

namespace detail {

// PTX ISA, "createpolicy".
template <Eviction E>
__device__ inline u64 cache_policy() {
  u64 policy = 0;
  if constexpr (E == Eviction::kFirst) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  }
  if constexpr (E == Eviction::kLast) {
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}

// Operands that a form does not name are not used. `rank` is the number of coordinates, `list`
// their places among the operands.
#define KILN_BULK_LOAD(rank, list, form, operands, ...)                                          \
  asm volatile("cp.async.bulk.tensor." #rank                                                     \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes" form " [%0], [%1, {" list \
               "}], [%2]" operands ";" ::"r"(shared),                                            \
               "l"(map), "r"(event), "h"(blocks), "l"(policy), __VA_ARGS__                       \
               : "memory")
#define KILN_BULK_LOAD_FORMS(rank, list, ...)                                                  \
  if constexpr (Multicast && kCached) {                                                        \
    KILN_BULK_LOAD(rank, list, ".multicast::cluster.L2::cache_hint", ", %3, %4", __VA_ARGS__); \
  } else if constexpr (Multicast) {                                                            \
    KILN_BULK_LOAD(rank, list, ".multicast::cluster", ", %3", __VA_ARGS__);                    \
  } else if constexpr (kCached) {                                                              \
    KILN_BULK_LOAD(rank, list, ".L2::cache_hint", ", %4", __VA_ARGS__);                        \
  } else {                                                                                     \
    KILN_BULK_LOAD(rank, list, "", "", __VA_ARGS__);                                           \
  }

// PTX ISA, "cp.async.bulk.tensor".
template <bool Multicast, Eviction E, int Rank>
__device__ inline void load_box(u32 shared, const TensorMap* map, u32 event, u16 blocks,
                                const int (&at)[Rank]) {
  constexpr bool kCached = E != Eviction::kNormal;
  const u64 policy = cache_policy<E>();
  static_assert(Rank >= 1 && Rank <= 5, "a tensor map has 1 to 5 dimensions");
  if constexpr (Rank == 1) {
    KILN_BULK_LOAD_FORMS(1, "%5", "r"(at[0]))
  } else if constexpr (Rank == 2) {
    KILN_BULK_LOAD_FORMS(2, "%5, %6", "r"(at[0]), "r"(at[1]))
  } else if constexpr (Rank == 3) {
    KILN_BULK_LOAD_FORMS(3, "%5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]))
  } else if constexpr (Rank == 4) {
    KILN_BULK_LOAD_FORMS(4, "%5, %6, %7, %8", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]))
  } else {
    KILN_BULK_LOAD_FORMS(5, "%5, %6, %7, %8, %9", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
                         "r"(at[4]))
  }
}
#undef KILN_BULK_LOAD_FORMS
#undef KILN_BULK_LOAD

// `what` is "async" or "reduce.async", `how` then ".add".
#define KILN_BULK_STORE(what, rank, how, list, form, operands, ...)                           \
  asm volatile("cp." what ".bulk.tensor." #rank "d.global.shared::cta" how ".bulk_group" form \
               " [%1, {" list "}], [%0]" operands ";" ::"r"(shared),                          \
               "l"(map), "l"(policy), __VA_ARGS__                                             \
               : "memory")
#define KILN_BULK_STORE_FORMS(rank, list, ...)                                        \
  if constexpr (Adds) {                                                               \
    KILN_BULK_STORE("reduce.async", rank, ".add", list, "", "", __VA_ARGS__);         \
  } else if constexpr (Cached) {                                                      \
    KILN_BULK_STORE("async", rank, "", list, ".L2::cache_hint", ", %2", __VA_ARGS__); \
  } else {                                                                            \
    KILN_BULK_STORE("async", rank, "", list, "", "", __VA_ARGS__);                    \
  }

// PTX ISA, "cp.async.bulk.tensor" and "cp.reduce.async.bulk.tensor".
template <bool Cached, bool Adds, int Rank>
__device__ inline void store_box(const TensorMap* map, const int (&at)[Rank], u32 shared,
                                 u64 policy) {
  static_assert(Rank >= 1 && Rank <= 5, "a tensor map has 1 to 5 dimensions");
  if constexpr (Rank == 1) {
    KILN_BULK_STORE_FORMS(1, "%3", "r"(at[0]))
  } else if constexpr (Rank == 2) {
    KILN_BULK_STORE_FORMS(2, "%3, %4", "r"(at[0]), "r"(at[1]))
  } else if constexpr (Rank == 3) {
    KILN_BULK_STORE_FORMS(3, "%3, %4, %5", "r"(at[0]), "r"(at[1]), "r"(at[2]))
  } else if constexpr (Rank == 4) {
    KILN_BULK_STORE_FORMS(4, "%3, %4, %5, %6", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]))
  } else {
    KILN_BULK_STORE_FORMS(5, "%3, %4, %5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
                          "r"(at[4]))
  }
}
#undef KILN_BULK_STORE_FORMS
#undef KILN_BULK_STORE

}  // namespace detail

// Starts loading a box; its bytes complete `event`.
template <Eviction E = Eviction::kNormal, int Rank>
__device__ inline void bulk_load(u32 shared, const TensorMap& map, mbarrier* event,
                                 const int (&at)[Rank]) {
  detail::load_box<false, E>(shared, &map, shared_address(event), 0, at);
}

// To the same place in each of the first `Blocks` blocks of the cluster; the event's copy there
// counts the bytes that land there.
template <int Blocks, Eviction E = Eviction::kNormal, int Rank>
__device__ inline void bulk_load_multicast(u32 shared, const TensorMap& map, mbarrier* event,
                                           const int (&at)[Rank]) {
  static_assert(Blocks >= 1 && Blocks <= 16, "a cluster has 1 to 16 blocks");
  detail::load_box<true, E>(shared, &map, shared_address(event),
                            static_cast<u16>((1u << Blocks) - 1), at);
}

// Starts storing a box. Shared memory written by threads needs fence_async_proxy() before.
template <Eviction E = Eviction::kNormal, int Rank>
__device__ inline void bulk_store(const TensorMap& map, const int (&at)[Rank], u32 shared) {
  detail::store_box<E != Eviction::kNormal, false>(&map, at, shared, detail::cache_policy<E>());
}

// Starts adding a box to what is in global memory, each element as a whole, in any order with others
// that are added. Otherwise like a store.
template <int Rank>
__device__ inline void bulk_add(const TensorMap& map, const int (&at)[Rank], u32 shared) {
  detail::store_box<false, true>(&map, at, shared, 0);
}

// Closes this thread's group of stores. PTX ISA, "cp.async.bulk.commit_group".
__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// All but the `Pending` youngest groups of this thread have read shared memory, or have been
// written to global memory. PTX ISA, "cp.async.bulk.wait_group".
template <int Pending>
__device__ inline void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
template <int Pending>
__device__ inline void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

// Brings a map near before its first use. PTX ISA, "prefetch: .tensormap".
__device__ inline void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace kiln
