// What a call of kiln/attention.h asks of the driver, with a driver of paper: one launch, and maps of
// the tensors as they lie. Kernels are compiled by the real NVRTC; skipped without it.
#define KILN_GEMM_C_ONLY
#include "kiln/attention.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gemm/fake_driver_test.h"

namespace {
thread_local int allocations_here = 0;  // of this thread, by the library
}

#ifdef KILN_COUNTS_MALLOC
// The linker sends calls of malloc from the library, and from operator new, here: it wraps them.
extern "C" void* __real_malloc(std::size_t bytes);
extern "C" void* __wrap_malloc(std::size_t bytes) {
  ++allocations_here;
  return __real_malloc(bytes);
}
#endif

namespace kiln::attention {
namespace {

// What the driver of paper notes of a map.
struct SeenMap {
  std::uint64_t address;
  std::array<std::uint64_t, 2> extents;
  std::array<std::uint64_t, 3> pitches;  // bytes; of a map of four dimensions
};
constexpr std::size_t kMaps = 4;

constexpr std::size_t kNumbers = 4;  // behind the maps and lse

struct Seen {
  FakeLaunch launch;
  std::array<std::uint32_t, kNumbers> numbers;
  std::array<SeenMap, kMaps> maps;  // by address
};
thread_local Seen seen;
thread_local int seen_count;

void see(const FakeLaunch& launch) {
  ++seen_count;
  seen.launch = launch;
  for (std::size_t i = 0; i < kMaps; ++i) {
    std::memcpy(&seen.maps[i], launch.parameters[i], sizeof(SeenMap));
  }
  std::ranges::sort(seen.maps, {}, &SeenMap::address);
  for (std::size_t i = 0; i < kNumbers; ++i) {
    std::memcpy(&seen.numbers[i], launch.parameters[kMaps + 1 + i], sizeof(std::uint32_t));
  }
}

constexpr std::int64_t kQueries = 1000;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kDepth = 128;

kiln_attention_problem usual_problem() {
  kiln_attention_problem problem = {};
  problem.type = KILN_BF16;
  problem.batch = 2;
  problem.queries = kQueries;
  problem.heads = kHeads;
  problem.depth = kDepth;
  return problem;
}

// q, k, v and o at base and 4096 bytes further each.
kiln_attention_operands operands_at(std::uintptr_t base) {
  kiln_attention_operands operands = {};
  operands.q = reinterpret_cast<const void*>(base);
  operands.k = reinterpret_cast<const void*>(base + 4096);
  operands.v = reinterpret_cast<const void*>(base + 8192);
  operands.o = reinterpret_cast<void*>(base + 12288);
  operands.lse = reinterpret_cast<float*>(base + 16388);
  return operands;
}

class AttentionStart : public FakeDriverTest {
 protected:
  AttentionStart() : FakeDriverTest(see) {}
  void prepare() override { seen_count = 0; }
};

TEST_F(AttentionStart, APreparedCallIsItsLaunch) {
  const kiln_attention_problem problem = usual_problem();
  ASSERT_EQ(kiln_attention_prepare(&problem), KILN_OK) << kiln_last_error();
  int stream = 0;
  const kiln_attention_operands operands = operands_at(1 << 20);
  ASSERT_EQ(kiln_attention(&problem, &operands, &stream), KILN_OK) << kiln_last_error();
  ASSERT_EQ(seen_count, 1);
  EXPECT_EQ(seen.launch.stream, &stream);
  constexpr std::uint64_t kRow = 2 * kHeads * kDepth;
  for (std::size_t i = 0; i < kMaps; ++i) {
    EXPECT_EQ(seen.maps[i].address, (1U << 20) + 4096 * i);
    EXPECT_EQ(seen.maps[i].extents, (std::array<std::uint64_t, 2>{kDepth, kHeads}));
    EXPECT_EQ(seen.maps[i].pitches,
              (std::array<std::uint64_t, 3>{2 * kDepth, kRow, kRow * kQueries}));
  }
  const int maps = fake_->maps;
  const int modules = fake_->modules;
  allocations_here = 0;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(kiln_attention(&problem, &operands, &stream), KILN_OK);
  EXPECT_EQ(allocations_here, 0);
  EXPECT_EQ(fake_->maps, maps);  // those of before serve again
  EXPECT_EQ(fake_->modules, modules);
  EXPECT_EQ(fake_->synchronisations, 0);
  EXPECT_NE(
      std::string(kiln_attention_kernel(&problem, nullptr)).find("attention_sm90 -D BLOCKS=132"),
      std::string::npos);
}

// [batch, head, row, depth], and rows of q, k and v side by side in one tensor.
TEST_F(AttentionStart, TensorsLieAsTheSpacingsSay) {
  kiln_attention_problem problem = usual_problem();
  problem.q = problem.k = problem.v = {kQueries * 3 * kHeads * kDepth, 3 * kHeads * kDepth, kDepth};
  problem.o = {kHeads * kQueries * kDepth, kDepth, kQueries * kDepth};
  const int modules = fake_->modules;
  const kiln_attention_operands operands = operands_at(1 << 20);
  ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
  ASSERT_EQ(seen_count, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen.maps[i].pitches,
              (std::array<std::uint64_t, 3>{2 * kDepth, 2 * 3 * kHeads * kDepth,
                                            2 * kQueries * 3 * kHeads * kDepth}));
  }
  EXPECT_EQ(seen.maps[3].pitches, (std::array<std::uint64_t, 3>{2 * kQueries * kDepth, 2 * kDepth,
                                                                2 * kHeads * kQueries * kDepth}));
  const kiln_attention_problem whole = usual_problem();
  ASSERT_EQ(kiln_attention_prepare(&whole), KILN_OK) << kiln_last_error();
  EXPECT_LE(fake_->modules, modules + 1);  // they share a kernel
}

// Windows of any width and soft caps of any height share a kernel, which is given them as numbers.
TEST_F(AttentionStart, WindowsAndSoftCapsAreNumbers) {
  kiln_attention_problem problem = usual_problem();
  problem.window = 1;
  problem.left = 100;
  problem.right = 20;
  problem.soft_cap = 8;
  const kiln_attention_operands operands = operands_at(1 << 20);
  ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
  const auto scale = std::bit_cast<std::uint32_t>(1 / std::sqrt(static_cast<float>(kDepth)));
  EXPECT_EQ(seen.numbers, (std::array<std::uint32_t, kNumbers>{
                              scale, std::bit_cast<std::uint32_t>(8.0F), 100, 20}));
  const int modules = fake_->modules;
  problem.left = 7;
  problem.right = 900;
  problem.soft_cap = 30;
  ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(seen.numbers, (std::array<std::uint32_t, kNumbers>{
                              scale, std::bit_cast<std::uint32_t>(30.0F), 7, 900}));
  EXPECT_EQ(fake_->modules, modules);
  problem.left = problem.right = -1;
  problem.soft_cap = 0;
  const std::string text = kiln_attention_kernel(&problem, nullptr);
  EXPECT_NE(text.find("attention_sm90 -D BLOCKS=132 -D CAUSAL=false"), std::string::npos) << text;
  problem.window = 0;
  problem.left = problem.right = 0;
  EXPECT_EQ(kiln_attention_kernel(&problem, nullptr), text);
}

// A kernel that stores by address takes a result without gaps alone.
TEST_F(AttentionStart, AResultWithGapsIsStoredOrRefused) {
  kiln_attention_problem problem = usual_problem();
  problem.depth = 256;
  problem.q = problem.o = {kHeads * kQueries * 256, 256, kQueries * 256};
  const kiln_status status = kiln_attention_prepare(&problem);
  if (status == KILN_UNSUPPORTED) {
    EXPECT_NE(std::string(kiln_last_error()).find("it needs the tensor without gaps"),
              std::string::npos)
        << kiln_last_error();
    problem.o = {};
  } else {
    EXPECT_EQ(status, KILN_OK) << kiln_last_error();
  }
  EXPECT_EQ(kiln_attention_prepare(&problem), KILN_OK) << kiln_last_error();
}

TEST_F(AttentionStart, AStreamThatIsCapturedCompilesNothing) {
  kiln_attention_problem problem = usual_problem();
  problem.keys = 77;
  const kiln_attention_operands operands = operands_at(1 << 20);
  fake_->capturing = true;
  EXPECT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_NOT_PREPARED);
  EXPECT_NE(std::string(kiln_last_error()).find("was not prepared"), std::string::npos);
  ASSERT_EQ(kiln_attention_prepare(&problem), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK);
  EXPECT_EQ(seen_count, 1);
}

// Threads that have no context yet; each sees its own operands only.
TEST_F(AttentionStart, ThreadsDoNotSeeEachOther) {
  kiln_attention_problem problem = usual_problem();
  problem.type = KILN_F16;  // its kernel is not there yet
  const int modules = fake_->modules;
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 1; thread <= 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uintptr_t i = 0; i < 100; ++i) {
        const std::uintptr_t base = (thread << 32) + (i % 5 << 20);
        const kiln_attention_operands operands = operands_at(base);
        ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
        ASSERT_EQ(seen.maps[0].address, base);
        ASSERT_EQ(seen.maps[3].address, base + 12288);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_->modules, modules + 1);
  EXPECT_EQ(fake_->contexts_held, 0);
}

// Sequences of any lengths: where they begin is read on the GPU, so that other lengths are the same launch.
TEST_F(AttentionStart, SequencesAreTensorsOfOneRowAfterTheOther) {
  kiln_attention_problem problem = usual_problem();
  problem.batch = 0;
  problem.sequences = 5;
  problem.q.row = problem.k.row = problem.v.row = 3 * kHeads * kDepth;  // side by side
  kiln_attention_operands operands = operands_at(1 << 20);
  operands.cu_seqlens_q = reinterpret_cast<const std::int32_t*>((1 << 20) + 20484);
  operands.cu_seqlens_k = reinterpret_cast<const std::int32_t*>((1 << 20) + 24580);
  ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
  ASSERT_EQ(seen_count, 1);
  SeenMap map = {};
  for (std::size_t i = 0; i < 3; ++i) {  // of q, k and v, in this order
    std::memcpy(&map, seen.launch.parameters[i], sizeof(map));
    EXPECT_EQ(map.address, (1U << 20) + 4096 * i);
    EXPECT_EQ(map.extents, (std::array<std::uint64_t, 2>{kDepth, kHeads}));
    EXPECT_EQ(map.pitches[0], 2 * kDepth);
    EXPECT_EQ(map.pitches[1], 2 * 3 * kHeads * kDepth);
  }
  const std::string text = kiln_attention_kernel(&problem, nullptr);
  EXPECT_NE(text.find("attention_varlen_sm90 -D BLOCKS=132"), std::string::npos) << text;
  const int modules = fake_->modules;
  problem.sequences = 6;
  ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(fake_->modules, modules);  // they share a kernel
  const auto refused = [&](const char* reason) {
    EXPECT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_INVALID);
    EXPECT_NE(std::string(kiln_last_error()).find(reason), std::string::npos) << kiln_last_error();
  };
  operands.cu_seqlens_k = nullptr;
  refused("cu_seqlens_k is null");
  operands.cu_seqlens_q = reinterpret_cast<const std::int32_t*>((1 << 20) + 2);
  refused("cu_seqlens_q begins 2 bytes past a multiple of 4");
  problem = usual_problem();
  refused("there is cu_seqlens_q, and the problem has no sequences");
  problem.sequences = 5;
  operands.cu_seqlens_q = operands.cu_seqlens_k = reinterpret_cast<const std::int32_t*>(1 << 20);
  refused("5 sequences in a batch of 2: it is 1 then");
  problem.batch = 1;
  problem.o.row = 2 * kHeads * kDepth;
  EXPECT_EQ(kiln_attention_prepare(&problem), KILN_UNSUPPORTED);
  EXPECT_NE(std::string(kiln_last_error()).find("it needs the tensor without gaps"),
            std::string::npos)
      << kiln_last_error();
}

class AttentionBackward : public FakeDriverTest {
 protected:
  AttentionBackward()
      : FakeDriverTest([](const FakeLaunch& launch) { streams.push_back(launch.stream); }) {
    problem_.forward = usual_problem();
    problem_.forward.key_heads = 2;
  }
  void prepare() override {
    streams.clear();
    streams.reserve(64);
  }
  static inline thread_local std::vector<const void*> streams;
  kiln_attention_backward_problem problem_ = {};
};

kiln_attention_backward_operands gradients_at(std::uintptr_t base) {
  const auto at = [&](std::uintptr_t i) { return reinterpret_cast<void*>(base + 4096 * i); };
  kiln_attention_backward_operands operands = {};
  operands.q = at(0), operands.k = at(1), operands.v = at(2), operands.o = at(3);
  operands.lse = static_cast<const float*>(at(4)), operands.dout = at(5);
  operands.dq = at(6), operands.dk = at(7), operands.dv = at(8);
  return operands;
}

TEST_F(AttentionBackward, APreparedCallIsThreeLaunches) {
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_backward_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  EXPECT_EQ(bytes, 2U * 2 * kHeads * 1024 * sizeof(float));  // rows are filled up to 1024
  const kiln_attention_backward_operands operands = gradients_at(1 << 20);
  auto* const space = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  int stream = 0;
  ASSERT_EQ(kiln_attention_backward(&problem_, &operands, space, bytes, &stream), KILN_OK)
      << kiln_last_error();
  EXPECT_EQ(streams, (std::vector<const void*>(3, &stream)));
  const int maps = fake_->maps;
  allocations_here = 0;
  EXPECT_EQ(kiln_attention_backward(&problem_, &operands, space, bytes, &stream), KILN_OK);
  EXPECT_EQ(allocations_here, 0);
  EXPECT_EQ(fake_->maps, maps);
  EXPECT_EQ(fake_->synchronisations, 0);
  const std::string kernel = kiln_attention_backward_kernel(&problem_, nullptr);
  EXPECT_NE(kernel.find("attention_backward_sm90 -D CAUSAL=false"), std::string::npos) << kernel;
}

TEST_F(AttentionBackward, SumsInAnyOrderAreInTheWorkspace) {
  problem_.forward.causal = 1;
  problem_.any_order = 1;
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_backward_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  const std::size_t rows = 2U * kHeads * 1024;  // filled up to 1024
  EXPECT_EQ(bytes, rows * (2 + kDepth) * sizeof(float));
  const kiln_attention_backward_operands operands = gradients_at(1 << 20);
  auto* const space = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  ASSERT_EQ(kiln_attention_backward(&problem_, &operands, space, bytes, nullptr), KILN_OK)
      << kiln_last_error();
  EXPECT_EQ(streams.size(), 3U);
}

TEST_F(AttentionBackward, SequencesOfAnyLengthsAreThreeLaunchesToo) {
  problem_.forward.batch = 1;
  problem_.forward.sequences = 5;
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_backward_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  EXPECT_EQ(bytes, 2U * kHeads * (1000 / 128 + 5) * 128 * sizeof(float));
  kiln_attention_backward_operands operands = gradients_at(1 << 20);
  auto* const space = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  EXPECT_EQ(kiln_attention_backward(&problem_, &operands, space, bytes, nullptr), KILN_INVALID);
  EXPECT_NE(std::string(kiln_last_error()).find("cu_seqlens_q is null"), std::string::npos)
      << kiln_last_error();
  operands.cu_seqlens_q = operands.cu_seqlens_k = reinterpret_cast<const std::int32_t*>(1 << 20);
  ASSERT_EQ(kiln_attention_backward(&problem_, &operands, space, bytes, nullptr), KILN_OK)
      << kiln_last_error();
  EXPECT_EQ(streams.size(), 3U);
  const std::string kernel = kiln_attention_backward_kernel(&problem_, nullptr);
  EXPECT_NE(kernel.find("attention_varlen_backward_sm90 -D CAUSAL=false"), std::string::npos)
      << kernel;
}

using AttentionLaunches = AttentionBackward;

TEST_F(AttentionLaunches, ABalancedProblemDrawsByANumberInTheWorkspace) {
  kiln_attention_problem problem = usual_problem();
  problem.batch = 8, problem.queries = problem.keys = 8192, problem.causal = 1;
  std::size_t bytes = 1;
  ASSERT_EQ(kiln_attention_workspace(&problem, &bytes), KILN_OK) << kiln_last_error();
  EXPECT_EQ(bytes, 0U);
  problem.balanced = 1;
  ASSERT_EQ(kiln_attention_workspace(&problem, &bytes), KILN_OK) << kiln_last_error();
  EXPECT_GE(bytes, sizeof(std::int32_t));
  kiln_attention_operands operands = operands_at(1 << 20);
  EXPECT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_WORKSPACE);
  EXPECT_TRUE(streams.empty());
  operands.workspace = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  operands.workspace_bytes = bytes;
  ASSERT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(streams.size(), 2U);  // nothing is drawn yet; attention
  problem.balanced = 2;
  EXPECT_EQ(kiln_attention_workspace(&problem, &bytes), KILN_INVALID);
  EXPECT_NE(std::string(kiln_last_error()).find("balanced is 2, 0 and 1 are possible"),
            std::string::npos)
      << kiln_last_error();
}

TEST_F(AttentionBackward, WhatIsOutOfPlaceIsSaid) {
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_backward_prepare(&problem_, &bytes), KILN_OK) << kiln_last_error();
  auto* const space = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 30);
  const auto refused = [&](const kiln_attention_backward_operands& operands, void* at,
                           std::size_t size, kiln_status status, const char* text) {
    EXPECT_EQ(kiln_attention_backward(&problem_, &operands, at, size, nullptr), status);
    EXPECT_NE(std::string(kiln_last_error()).find(text), std::string::npos) << kiln_last_error();
  };
  kiln_attention_backward_operands operands = gradients_at(1 << 20);
  refused(operands, nullptr, bytes, KILN_WORKSPACE,
          "the workspace is null, 131072 bytes are needed");
  refused(operands, space, bytes - 1, KILN_WORKSPACE, "the workspace has 131071 bytes, 131072 are");
  refused(operands, space + 64, bytes, KILN_WORKSPACE, "begins 64 bytes past a multiple of 256");
  operands.dv = nullptr;
  refused(operands, space, bytes, KILN_INVALID, "dv is null");
  operands = gradients_at((1 << 20) + 8);
  operands.q = operands.k = operands.v = operands.o = reinterpret_cast<const void*>(1 << 20);
  refused(operands, space, bytes, KILN_INVALID, "dout begins 8 bytes past a multiple of 16");
  problem_.forward.keys = 78;
  fake_->capturing = true;
  refused(gradients_at(1 << 20), space, bytes, KILN_NOT_PREPARED, "was not prepared");
  EXPECT_TRUE(streams.empty());
}

TEST_F(AttentionStart, WhatIsOutOfPlaceIsSaid) {
  const kiln_attention_problem problem = usual_problem();
  const auto refused = [&](const kiln_attention_operands& operands, const char* text) {
    EXPECT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_INVALID);
    EXPECT_NE(std::string(kiln_last_error()).find(text), std::string::npos) << kiln_last_error();
  };
  kiln_attention_operands operands = operands_at(1 << 20);
  operands.v = nullptr;
  refused(operands, "v is null");
  operands = operands_at((1 << 20) + 8);
  refused(operands, "q begins 8 bytes past a multiple of 16");
  operands = operands_at(1 << 20);
  operands.scale = -1;
  refused(operands, "the scale is -1, a number above 0 is needed");
  kiln_attention_problem capped = usual_problem();
  capped.soft_cap = 1e-30F;
  operands.scale = 1e10F;
  EXPECT_EQ(kiln_attention(&capped, &operands, nullptr), KILN_INVALID);
  EXPECT_NE(std::string(kiln_last_error()).find("the scale is 10000000000 and the soft cap 1e-30"),
            std::string::npos)
      << kiln_last_error();
  EXPECT_EQ(seen_count, 0);
  fake_->launch_status = 700;
  operands = operands_at(1 << 20);
  EXPECT_EQ(kiln_attention(&problem, &operands, nullptr), KILN_DEVICE);
  EXPECT_NE(std::string(kiln_last_error()).find("CUDA_ERROR_OF_PAPER"), std::string::npos);
}

// Tensors of 8 bits: v is transposed to the workspace, which the second launch reads.
class AttentionOf8Bits : public FakeDriverTest {
 protected:
  AttentionOf8Bits()
      : FakeDriverTest([](const FakeLaunch& launch) {
          if (!listens) return;
          // v and vt; q, k, o and vt, behind which the factors stand.
          const bool transposes = launches.size() % 2 == 0;
          Started started{.stream = launch.stream};
          for (std::size_t i = 0; i < (transposes ? 2U : 4U); ++i) {
            SeenMap map = {};
            std::memcpy(&map, launch.parameters[i], sizeof(map));
            started.maps.push_back(map.address);
          }
          for (std::size_t i = 4; i < 7 && !transposes; ++i) {
            std::uint64_t factors = 0;
            std::memcpy(&factors, launch.parameters[i], sizeof(factors));
            started.factors.push_back(factors);
          }
          launches.push_back(std::move(started));
        }) {
    problem_ = usual_problem();
    problem_.type = KILN_E4M3;
    operands_ = operands_at(1 << 20);
    operands_.q_scale = reinterpret_cast<const float*>(1 << 21);
    operands_.k_scale = reinterpret_cast<const float*>((1 << 21) + 4);
    operands_.v_scale = reinterpret_cast<const float*>((1 << 21) + 8);
  }
  void prepare() override {
    listens = true;
    launches.clear();
    launches.reserve(64);
  }
  void refused(kiln_status status, const char* reason) {
    EXPECT_EQ(kiln_attention(&problem_, &operands_, nullptr), status);
    EXPECT_NE(std::string(kiln_last_error()).find(reason), std::string::npos) << kiln_last_error();
  }
  struct Started {
    const void* stream = nullptr;
    std::vector<std::uint64_t> maps = {};  // where their tensors begin
    std::vector<std::uint64_t> factors = {};
  };
  static inline thread_local std::vector<Started> launches;
  static inline thread_local bool listens = true;
  kiln_attention_problem problem_ = {};
  kiln_attention_operands operands_ = {};
};

TEST_F(AttentionOf8Bits, APreparedCallIsTwoLaunches) {
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_workspace(&problem_, &bytes), KILN_OK) << kiln_last_error();
  // Keys are filled up to 1008; behind the values there is room for factors.
  EXPECT_EQ(bytes, 2U * kHeads * kDepth * 1008 + 256);
  operands_.workspace = reinterpret_cast<void*>(std::uintptr_t{1} << 30);
  operands_.workspace_bytes = bytes;
  int stream = 0;
  ASSERT_EQ(kiln_attention(&problem_, &operands_, &stream), KILN_OK) << kiln_last_error();
  ASSERT_EQ(launches.size(), 2U);
  for (const Started& started : launches) EXPECT_EQ(started.stream, &stream);
  constexpr std::uint64_t kBase = 1U << 20;  // as operands_at has it
  constexpr std::uint64_t kWorkspace = 1U << 30;
  EXPECT_EQ(launches[0].maps, (std::vector<std::uint64_t>{kBase + 2 * 4096, kWorkspace}));
  EXPECT_EQ(launches[1].maps,
            (std::vector<std::uint64_t>{kBase, kBase + 4096, kBase + 3 * 4096, kWorkspace}));
  EXPECT_EQ(launches[1].factors,
            (std::vector<std::uint64_t>{1U << 21, (1U << 21) + 4, (1U << 21) + 8}));
  listens = false;  // which allocates
  allocations_here = 0;
  EXPECT_EQ(kiln_attention(&problem_, &operands_, &stream), KILN_OK);
  EXPECT_EQ(allocations_here, 0);
  EXPECT_EQ(fake_->synchronisations, 0);
  const std::string kernel = kiln_attention_kernel(&problem_, nullptr);
  EXPECT_NE(kernel.find("attention_f8_sm90 -D BLOCKS=132"), std::string::npos) << kernel;
}

TEST_F(AttentionOf8Bits, FactorsThatAreNotGivenAreOnes) {
  constexpr std::size_t kFactors = 2U * kHeads;
  std::size_t bytes = 0;
  ASSERT_EQ(kiln_attention_workspace(&problem_, &bytes), KILN_OK) << kiln_last_error();
  const std::vector<std::byte> space(bytes + 256);  // this driver fills memory itself
  const auto base = (reinterpret_cast<std::uintptr_t>(space.data()) + 255) / 256 * 256;
  operands_.workspace = reinterpret_cast<void*>(base);
  operands_.workspace_bytes = bytes;
  const auto* const ones = reinterpret_cast<const float*>(base + bytes - 256);
  ASSERT_EQ(kiln_attention(&problem_, &operands_, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(ones[0], 0);
  operands_.q_scale = operands_.v_scale = nullptr;
  ASSERT_EQ(kiln_attention(&problem_, &operands_, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(std::vector<float>(ones, ones + kFactors), std::vector<float>(kFactors, 1.0F));
  EXPECT_EQ(ones[kFactors], 0);
  const auto at = reinterpret_cast<std::uint64_t>(ones);
  EXPECT_EQ(launches.back().factors, (std::vector<std::uint64_t>{at, (1U << 21) + 4, at}));
}

TEST_F(AttentionOf8Bits, WhatIsOutOfPlaceIsSaid) {
  refused(KILN_WORKSPACE, "the workspace is null");
  operands_.k_scale = reinterpret_cast<const float*>((1 << 21) + 2);
  refused(KILN_INVALID, "k_scale begins 2 bytes past a multiple of 4");
  problem_.type = KILN_BF16;
  refused(KILN_INVALID, "there is q_scale, and the problem's tensors are of bf16");
  EXPECT_TRUE(launches.empty());
}

}  // namespace
}  // namespace kiln::attention
