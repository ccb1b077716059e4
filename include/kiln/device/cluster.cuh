// Clusters: blocks that run at the same time and reach each other's shared memory (sm_90).
//
//   const int rank = kiln::cluster_rank();   // 0 to 3 in a cluster of {2, 2}, x fastest
//   kiln::barrier_cluster();                 // all threads of all its blocks
//
// PTX ISA, "Special Registers: %cluster_ctarank", "barrier.cluster".
#pragma once

#include "kiln/device/tile.cuh"

namespace kiln {

__device__ inline int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Blocks of the cluster.
__device__ inline int cluster_size() {
  int blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Threads that have left the kernel are not waited for.
__device__ inline void barrier_cluster() {
  cluster_arrive();
  cluster_wait();
}

// The same memory of the block that has rank `block` in the cluster. Its threads must have written what is read, and none may
// leave, before a barrier of the cluster. PTX ISA, "mapa".
template <class T>
__device__ inline T* in_block(T* shared, int block) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(block));
  return there;
}
template <class T, int Rows, int Cols, int Swizzle>
__device__ inline Tile<T, Rows, Cols, Swizzle> in_block(const Tile<T, Rows, Cols, Swizzle>& tile,
                                                        int block) {
  return Tile<T, Rows, Cols, Swizzle>(in_block(tile.base, block));
}

}  // namespace kiln
