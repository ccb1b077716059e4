// Events: an mbarrier in shared memory for each, and the threads and bulk copies that complete its
// phases.
//
//   kiln::mbarrier* const full = kiln::events(smem + 65536);
//   if (thread == 0) kiln::mbarrier_init<4>(full, 1);    // 4 slots, one arrival in each phase
//   kiln::mbarrier_arrive_expect(full + 2, 16384);       // that arrival; 16384 bytes are to land
//   kiln::mbarrier_wait(full + 2, 0);                    // until phase 0 of slot 2 is complete
//
// Phases are numbered from 0; only the parity of the one that is waited for is given. PTX ISA,
// "Parallel Synchronization and Communication Instructions: mbarrier". Counting bytes, a wait that
// sleeps, and arrivals at other blocks of a cluster begin with sm_90.
#pragma once

#include "kiln/device/memory.cuh"

namespace kiln {

// Known to the hardware alone.
struct alignas(8) mbarrier {
  u64 state;
};

__device__ inline mbarrier* events(unsigned char* bytes) {
  return reinterpret_cast<mbarrier*>(bytes);
}

// PTX ISA, "mbarrier.init". One thread makes them, for `Slots` events that follow each other.
template <int Slots>
__device__ inline void mbarrier_init(mbarrier* event, int arrivals) {
#pragma unroll
  for (int slot = 0; slot < Slots; ++slot) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(event + slot)),
                 "r"(arrivals)
                 : "memory");
  }
}

// Events made before are there for other blocks of the cluster and for bulk copies; a barrier of
// the threads must follow. PTX ISA, "membar / fence: fence.mbarrier_init", "fence.proxy.async".
__device__ inline void mbarrier_init_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// This thread has finished what it did before. PTX ISA, "mbarrier.arrive".
__device__ inline void mbarrier_arrive(mbarrier* event) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(event)) : "memory");
}

// This thread's warp has: one arrival for its 32 threads.
__device__ inline void mbarrier_arrive_warp(mbarrier* event) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(event);
}

// The current phase is not complete before what this thread has started by cp.async has landed: one
// more arrival, and one less then. PTX ISA, "cp.async.mbarrier.arrive". An arrival of its own must
// follow, so that the phase is still there.
__device__ inline void mbarrier_track_copies(mbarrier* event) {
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(shared_address(event)) : "memory");
}

// The current phase is not complete before so many more bytes have landed. PTX ISA,
// "mbarrier.expect_tx".
__device__ inline void mbarrier_expect(mbarrier* event, u32 bytes) {
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(event)),
      "r"(bytes)
      : "memory");
}

// Both. PTX ISA, "mbarrier.arrive: .expect_tx".
__device__ inline void mbarrier_arrive_expect(mbarrier* event, u32 bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(event)),
      "r"(bytes)
      : "memory");
}

// Arrives at the event's copies in all `Blocks` blocks of the cluster. PTX ISA, "mapa",
// "mbarrier.arrive". No scope is named: threads never touch another block's memory themselves, only
// bulk copies do, which are ordered behind reads that have returned. A release at cluster scope
// waits for all of the warp's memory operations, and halves the speed of a multicast GEMM (H200).
template <int Blocks>
__device__ inline void mbarrier_arrive_cluster(mbarrier* event) {
#pragma unroll
  for (int rank = 0; rank < Blocks; ++rank) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(shared_address(event)),
        "r"(rank)
        : "memory");
  }
}
template <int Blocks>
__device__ inline void mbarrier_arrive_cluster_warp(mbarrier* event) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive_cluster<Blocks>(event);
}

namespace detail {

// PTX ISA, "mbarrier.test_wait / mbarrier.try_wait". The latter suspends the thread for a while.
template <bool Cluster>
__device__ inline bool is_complete(u32 address, u32 parity) {
  u32 done;
#if __CUDA_ARCH__ >= 900
  if constexpr (Cluster) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  }
#else
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(address), "r"(parity)
      : "memory");
#endif
  return done != 0;
}

// The same, and while the phase is not complete the thread sleeps, for so many nanoseconds at most. Without them ptxas has it ask
// again and again, each 15 cycles or so.
template <bool Cluster>
__device__ inline bool is_complete_after_sleep(u32 address, u32 parity) {
#if __CUDA_ARCH__ >= 900
  constexpr u32 kNanoseconds = 10'000'000;
  u32 done;
  if constexpr (Cluster) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, %3; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address), "r"(parity), "r"(kNanoseconds)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, %3; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(address), "r"(parity), "r"(kNanoseconds)
        : "memory");
  }
  return done != 0;
#else
  return is_complete<Cluster>(address, parity);
#endif
}

}  // namespace detail

// Until the latest phase of this parity is complete. What those that arrived did before is seen
// after; with `Cluster`, also what threads of other blocks did. With `Sleeps` the thread leaves its turns to others
// meanwhile, and goes on somewhat later: what suits threads that wait for room, not those that wait for what they compute with.
template <bool Cluster = false, bool Sleeps = false>
__device__ inline void mbarrier_wait(mbarrier* event, int parity) {
  const u32 address = shared_address(event);
  bool done = detail::is_complete<Cluster>(address, static_cast<u32>(parity));
  while (!done) {
    done = Sleeps ? detail::is_complete_after_sleep<Cluster>(address, static_cast<u32>(parity))
                  : detail::is_complete<Cluster>(address, static_cast<u32>(parity));
  }
}

// The phase after the one this thread waited for last on this slot: bit s of `parities` is the
// parity of the next one on slot s.
template <bool Cluster = false, bool Sleeps = false>
__device__ inline void mbarrier_wait_next(mbarrier* event, int slot, u32& parities) {
  mbarrier_wait<Cluster, Sleeps>(event + slot, static_cast<int>(parities >> slot & 1u));
  parities ^= 1u << slot;
}
template <bool Cluster = false, bool Sleeps = false, int Words>
__device__ inline void mbarrier_wait_next(mbarrier* event, int slot, u32 (&parities)[Words]) {
  mbarrier_wait_next<Cluster, Sleeps>(event + slot / 32 * 32, slot % 32, parities[slot / 32]);
}

}  // namespace kiln
