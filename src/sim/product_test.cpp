// Asynchronous products of warpgroups: right results, and what every missing edge looks like.
#include <algorithm>

#include "ir/shared_layout.h"
#include "sim/sim_test_support.h"
#include "target/descriptor.h"

namespace kiln::sim {

namespace {

// Two warpgroups a block, 128x64 tiles: each has 64 rows of A, both read all of B.
constexpr const char* kTwoGroups = R"(module arch=sm_90a form=decided

func @matmul(global %lhs: view<f16, global, [M, K]>, global %rhs: view<f16, global, [N, K]>, global %output: view<f16, global, [M, N]>) {
  var M: dim
  var K: dim
  var N: dim
  var block_m: parallel < cdiv(M, 128)
  var block_n: parallel < cdiv(N, 64)
  var iv_k: loop < cdiv(K, 64)
  var p: parallel < 2
  var step: loop < 4
  var p_1: parallel < 2
  parallel level=block vars=[block_m, block_n] threads=256 name="matmul" shared_bytes=40960 bounds=[256] overlaps body={
    %lhs_s = alloc name="lhs_s" offset=0 swizzle=128 : view<f16, shared, [128, 64]>
    %rhs_s = alloc name="rhs_s" offset=16384 swizzle=128 : view<f16, shared, [64, 64]>
    %output_s = alloc name="output_s" offset=24576 swizzle=128 : view<f16, shared, [128, 64]>
    %mc = alloc name="mc" atom=m64n64k16.f32.f16 : frag<C, f32, 64x64>
    %zero = const : f32
    fill frag=%mc value=%zero
    for var=iv_k upper=cdiv(K, 64) body={
      barrier level=block inferred
      %lhs_tile = subview base=%lhs origin=[128*block_m, 64*iv_k] : view<f16, global, [128, 64]>
      copy src=%lhs_tile dst=%lhs_s way=gather grouped threads=256 widths=[16, 8, 4, 2] guarded=[0, 1]
      %rhs_tile = subview base=%rhs origin=[64*block_n, 64*iv_k] : view<f16, global, [64, 64]>
      copy src=%rhs_tile dst=%rhs_s way=gather grouped threads=256 widths=[16, 8, 4, 2] guarded=[0, 1]
      parallel level=group4 vars=[p] unit=128 body={
        copy_wait
        proxy_fence
        barrier level=block inferred
        mma_fence
        for var=step upper=4 body={
          %a_view = subview base=%lhs_s origin=[64*p, 16*step] : view<f16, shared, [64, 16]>
          %ma = alloc name="ma" atom=m64n64k16.f32.f16 : frag<A, f16, 64x16>
          load frag=%ma view=%a_view major=row in_shared stride=1024
          %b_view = subview base=%rhs_s origin=[0, 16*step] : view<f16, shared, [64, 16]>
          %mb = alloc name="mb" atom=m64n64k16.f32.f16 : frag<B, f16, 64x16>
          load frag=%mb view=%b_view major=row in_shared stride=1024
          mma c=%mc a=%ma b=%mb a_major=row b_major=row unit=group4 atom=m64n64k16.f32.f16 repeats=[1, 1, 1] a_steps=[0] b_steps=[0]
        }
        mma_commit
      }
      mma_wait
    }
    parallel level=group4 vars=[p_1] unit=128 body={
      %c_view = subview base=%output_s origin=[64*p_1, 0] : view<f16, shared, [64, 64]>
      store frag=%mc view=%c_view element_run=2
    }
    barrier level=block inferred
    %output_tile = subview base=%output origin=[128*block_m, 64*block_n] : view<f16, global, [128, 64]>
    copy src=%output_s dst=%output_tile way=gather threads=256 widths=[16, 8, 4, 2] guarded=[0, 1]
  }
}
)";

// One warpgroup, A from registers, one statement for four instructions along K.
constexpr const char* kFromRegisters = R"(module arch=sm_90a form=decided

func @matmul(global %lhs: view<f16, global, [M, K]>, global %rhs: view<f16, global, [N, K]>, global %output: view<f32, global, [M, N]>) {
  var M: dim
  var K: dim
  var N: dim
  var i: parallel < cdiv(M, 64)
  var j: parallel < cdiv(N, 24)
  var w: parallel < 1
  var k: loop < cdiv(K, 64)
  parallel level=block vars=[i, j] threads=128 name="matmul" shared_bytes=12288 bounds=[128] overlaps body={
    %lhs_s = alloc name="lhs_s" offset=0 swizzle=128 : view<f16, shared, [64, 64]>
    %rhs_s = alloc name="rhs_s" offset=8192 swizzle=128 : view<f16, shared, [24, 64]>
    parallel level=group4 vars=[w] unit=128 body={
      %mc = alloc name="mc" atom=m64n24k16.f32.f16 : frag<C, f32, 64x24>
      %zero = const : f32
      fill frag=%mc value=%zero
      for var=k upper=cdiv(K, 64) body={
        %lhs_tile = subview base=%lhs origin=[64*i, 64*k] : view<f16, global, [64, 64]>
        barrier level=block inferred
        copy src=%lhs_tile dst=%lhs_s way=gather grouped threads=128 widths=[16, 8, 4, 2] guarded=[0, 1]
        %rhs_tile = subview base=%rhs origin=[24*j, 64*k] : view<f16, global, [24, 64]>
        copy src=%rhs_tile dst=%rhs_s way=gather grouped threads=128 widths=[16, 8, 4, 2] guarded=[0, 1]
        %ma = alloc name="ma" atom=m64n24k16.f32.f16 : frag<A, f16, 64x64>
        copy_wait
        proxy_fence
        barrier level=block inferred
        load frag=%ma view=%lhs_s major=row to_registers element_run=1
        %mb = alloc name="mb" atom=m64n24k16.f32.f16 : frag<B, f16, 24x64>
        load frag=%mb view=%rhs_s major=row in_shared stride=1024
        mma_fence
        mma c=%mc a=%ma b=%mb a_major=row b_major=row unit=group4 atom=m64n24k16.f32.f16 repeats=[1, 1, 4] b_steps=[0, 32, 64, 96]
        mma_commit
        mma_wait
      }
      %c_view = subview base=%output origin=[64*i, 24*j] : view<f32, global, [64, 24]>
      store frag=%mc view=%c_view element_run=1 guarded=[0, 1]
    }
  }
}
)";

// One warpgroup, both operands with the contraction down their rows: A in panels of 128 bytes, B in
// panels of 16. The kernel's dimensions are constant.
constexpr const char* kColumns = R"(module arch=sm_90a form=decided

func @matmul(global %lhs: view<f16, global, [32, 64]>, global %rhs: view<f16, global, [32, 24]>, global %output: view<f32, global, [64, 24]>) {
  var b: parallel < 1
  var w: parallel < 1
  parallel level=block vars=[b] threads=128 name="matmul" shared_bytes=5632 bounds=[128] overlaps body={
    parallel level=group4 vars=[w] unit=128 body={
      %lhs_s = alloc name="lhs_s" offset=0 swizzle=32 : view<f16, shared, [32, 64]>
      copy src=%lhs dst=%lhs_s way=gather grouped threads=128 widths=[16, 8, 4, 2]
      %rhs_s = alloc name="rhs_s" offset=4096 swizzle=16 : view<f16, shared, [32, 24]>
      copy src=%rhs dst=%rhs_s way=gather grouped threads=128 widths=[16, 8, 4, 2]
      %mc = alloc name="mc" atom=m64n24k16.f32.f16 : frag<C, f32, 64x24>
      %zero = const : f32
      fill frag=%mc value=%zero
      %ma = alloc name="ma" atom=m64n24k16.f32.f16 : frag<A, f16, 32x64>
      load frag=%ma view=%lhs_s major=col in_shared leading=1024 stride=256
      %mb = alloc name="mb" atom=m64n24k16.f32.f16 : frag<B, f16, 32x24>
      load frag=%mb view=%rhs_s major=col in_shared leading=512 stride=128
      copy_wait
      proxy_fence
      barrier level=block inferred
      mma_fence
      mma c=%mc a=%ma b=%mb a_major=col b_major=col unit=group4 atom=m64n24k16.f32.f16 repeats=[1, 1, 2] a_steps=[0, 512] b_steps=[0, 256]
      mma_commit
      mma_wait
      store frag=%mc view=%output element_run=2
    }
  }
}
)";

// Elements of the output that are not the sum over k of lhs[k, m] * rhs[k, n].
std::int64_t wrong_in_columns(Kernel& kernel) {
  const Tensor& a = kernel.tensor(0);
  const Tensor& b = kernel.tensor(1);
  const Tensor& out = kernel.tensor(2);
  const auto rows = static_cast<std::size_t>(out.shape[0]);
  const auto cols = static_cast<std::size_t>(out.shape[1]);
  std::int64_t wrong = 0;
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < cols; ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < static_cast<std::size_t>(a.shape[0]); ++k) {
        sum += a.get(k * rows + m) * b.get(k * cols + n);
      }
      wrong += out.get(m * cols + n) == sum ? 0 : 1;
    }
  }
  return wrong;
}

void bind_columns(Kernel& kernel) {
  kernel.bind({});
  kernel.fill_integers(0, 1);
  kernel.fill_integers(1, 2);
}

TEST(Products, AreRightOnRaggedShapes) {
  constexpr std::int64_t kShapes[][3] = {{128, 64, 64}, {1, 1, 1}, {129, 65, 70}, {60, 7, 200}};
  for (const char* text : {kTwoGroups, kFromRegisters}) {
    for (const auto& [m, n, k] : kShapes) {
      Kernel kernel(text);
      bind_matmul(kernel, m, n, k);
      EXPECT_EQ(text_of(kernel.run()), "") << m << "x" << n << "x" << k;
      EXPECT_EQ(wrong_in(kernel), 0) << m << "x" << n << "x" << k;
    }
  }
  Kernel columns(kColumns);
  bind_columns(columns);
  EXPECT_EQ(text_of(columns.run()), "");
  EXPECT_EQ(wrong_in_columns(columns), 0);
}

// kFromRegisters with another number in the accumulator, and a product that adds as `adds` says.
std::string beginning(const char* filled, const std::string& adds) {
  const std::string text =
      replaced(kFromRegisters, "%zero = const", format("%zero = const {}", filled));
  return replaced(text, "96]\n", format("96]{}\n", adds));
}

std::string from_one(const std::string& text) {
  const std::string moved = replaced(replaced(text, "64*i, 64*k]", "64*i, 64*k - 64]"),
                                     "24*j, 64*k]", "24*j, 64*k - 64]");
  return replaced(replaced(moved, "k: loop < cdiv(K, 64)", "k: loop < cdiv(K, 64) + 1"),
                  "for var=k upper=cdiv(K, 64)", "for var=k lower=1 upper=cdiv(K, 64) + 1");
}

std::string without_fill(const std::string& text) {
  return replaced(text, "      fill frag=%mc value=%zero\n", "");
}

TEST(Products, BeginTheirSumInTheFirstTripWhateverWasInIt) {
  constexpr const char* kInfinite = "value=1e300";
  const std::string plain = beginning(kInfinite, " adds=k");
  const std::string later = from_one(beginning(kInfinite, " adds=k - 1"));
  for (const std::string& text : {plain, later, without_fill(plain), without_fill(later)}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      Kernel kernel(text);
      bind_matmul(kernel, 60, 7, 200);
      EXPECT_EQ(text_of(kernel.run({.seed = seed})), "") << text;
      EXPECT_EQ(wrong_in(kernel), 0) << text;
    }
  }
}

TEST(Products, ThatBeginTheirSumWronglyGiveWrongResults) {
  const std::string always = beginning("value=0", " adds=0");
  Kernel lost(always);
  bind_matmul(lost, 64, 24, 128);
  EXPECT_EQ(text_of(lost.run()), "");
  EXPECT_GT(wrong_in(lost), 0);
  // In the only trip it is right.
  Kernel only(always);
  bind_matmul(only, 64, 24, 64);
  EXPECT_EQ(text_of(only.run()), "");
  EXPECT_EQ(wrong_in(only), 0);
  Kernel never(without_fill(beginning("value=0", "")));
  bind_matmul(never, 64, 24, 128);
  EXPECT_GE(never.run().count(ReportKind::kUninitialised), 1);
}

TEST(Products, TwentySchedulesAgree) {
  for (const char* text : {kTwoGroups, kFromRegisters}) {
    Kernel kernel(text);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      bind_matmul(kernel, 65, 24, 130);
      EXPECT_EQ(text_of(kernel.run({.seed = seed})), "") << seed;
      EXPECT_EQ(wrong_in(kernel), 0) << seed;
    }
  }
}

TEST(Products, AreCountedOncePerWarpgroupAndRepetition) {
  Kernel kernel(kTwoGroups);
  bind_matmul(kernel, 128, 64, 128);
  // 2 steps of K tiles, 4 of 16 in each, 2 groups.
  EXPECT_EQ(kernel.run().counters.instructions.at("m64n64k16.f32.f16"), 2 * 4 * 2);
  Kernel registers(kFromRegisters);
  bind_matmul(registers, 64, 24, 128);
  EXPECT_EQ(registers.run().counters.instructions.at("m64n24k16.f32.f16"), 2 * 4);
}

// The matrices of one warp's 16 rows of a tile with `cols` columns, in register order.
std::string by_matrices(const char* instruction, int cols) {
  std::string list;
  for (int col = 0; col < cols; col += 8) {
    list += format("{}0, {}, 8, {}", col == 0 ? "" : ", ", col, col);
  }
  return format("instruction={} matrices=[{}] warp_step=[16, 0]", instruction, list);
}

// What two kernels write is the same bit for bit, and the second counts `instruction` so often.
void expect_same(const std::string& plain, const std::string& matrices, const char* instruction,
                 std::int64_t times) {
  Kernel one(plain);
  Kernel other(matrices);
  for (Kernel* kernel : {&one, &other}) {
    kernel->bind({{"M", 120}, {"N", 70}, {"K", 64}});
    kernel->fill_integers(0, 1, 100);
    kernel->fill_integers(1, 2, 33);
  }
  EXPECT_EQ(text_of(one.run()), "");
  const Outcome outcome = other.run();
  EXPECT_EQ(text_of(outcome), "");
  EXPECT_EQ(outcome.counters.instructions.at(instruction), times);
  EXPECT_EQ(one.tensor(2).bytes, other.tensor(2).bytes);
}

// Sums of up to 64 * 3300 are rounded to f16 on the way out.
TEST(Products, StoresOfMatricesWriteWhatStoresOfElementsDo) {
  const std::string matrices = replaced(kTwoGroups, "view=%c_view element_run=2",
                                        "view=%c_view " + by_matrices("stmatrix.x4", 64));
  // 2 blocks of 8 warps, 16 matrices each.
  expect_same(kTwoGroups, matrices, "stmatrix.x4", 2 * 8 * 4);
  Kernel swizzled(matrices);
  bind_matmul(swizzled, 128, 64, 64);
  EXPECT_EQ(swizzled.run().counters.bank_conflicts, 0);
  // Without a swizzle the 8 rows of a matrix, 128 bytes apart, meet the same banks.
  Kernel linear(replaced(matrices, "offset=24576 swizzle=128", "offset=24576"));
  bind_matmul(linear, 128, 64, 64);
  EXPECT_EQ(linear.run().counters.bank_conflicts, 8 * 16 * 7);
  EXPECT_EQ(wrong_in(linear), 0);
}

TEST(Products, LoadsOfMatricesReadWhatLoadsOfElementsDo) {
  const std::string matrices = replaced(kFromRegisters, "to_registers element_run=1",
                                        "to_registers " + by_matrices("ldmatrix.x4", 64));
  // 2 x 3 blocks of 4 warps, 16 matrices each.
  expect_same(kFromRegisters, matrices, "ldmatrix.x4", 6 * 4 * 4);
}

TEST(Products, AMatrixStoredOutsideIsReported) {
  Kernel moved(replaced(replaced(kTwoGroups, "view=%c_view element_run=2",
                                 "view=%c_view " + by_matrices("stmatrix.x4", 64)),
                        "origin=[64*p_1, 0]", "origin=[64*p_1 + 8, 0]"));
  bind_matmul(moved, 128, 64, 64);
  EXPECT_GE(moved.run().count(ReportKind::kOutOfBounds), 1);
}

// --- every edge that can be missing

// What is wrong with the kernel in one schedule, without repetitions: "kind: message / missing".
std::vector<std::string> found(const std::string& text, std::uint64_t seed = 0) {
  Kernel kernel(text);
  bind_matmul(kernel, 128, 64, 128);
  std::vector<std::string> out;
  for (const Report& report : kernel.run({.seed = seed}).reports) {
    const std::size_t indices = report.message.find('[');
    const std::size_t after = report.message.find('`', indices);
    std::string message = report.message;
    if (indices != std::string::npos) message.erase(indices, after - indices);
    out.push_back(format("{}: {} / {}", name(report.kind), message, report.missing));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

using Found = std::vector<std::string>;

constexpr std::uint64_t kSeeds[] = {0, 1, 2, 3};

constexpr const char* kNoWait =
    "no wait for the product (`mma.wait<0>`) with a barrier or a trigger behind it between them";
constexpr const char* kNoBarrier = "no block barrier between them";

std::string race(const char* buffer, const char* what, const char* missing) {
  return format("race: race on `{}`: {} that nothing orders before it / {}", buffer, what, missing);
}

Found operand_races(const char* what, const char* missing) {
  return {race("lhs_s", what, missing), race("rhs_s", what, missing)};
}

bool contains(const Found& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The next trip's copies overwrite operands, and the store takes the accumulator.
Found in_flight() {
  Found out = operand_races("a write after a read", kNoWait);
  out.push_back(
      "race: race on the registers of `mc`: a product that uses them is still in flight / "
      "no wait for the product (`mma.wait<0>`) between them");
  return out;
}

TEST(Products, AMissingWaitLeavesOperandsAndAccumulatorInUse) {
  for (const std::uint64_t seed : kSeeds) {
    EXPECT_EQ(found(without_line(kTwoGroups, "mma_wait"), seed), in_flight()) << seed;
  }
}

// Sums are scaled where the wait was: by itself, or while the factors are read.
TEST(Products, AScaleThatDoesNotWaitTakesSumsInFlight) {
  const std::string scaled = replaced(
      replaced(replaced(kTwoGroups, "shared_bytes=40960", "shared_bytes=41216"), "    %mc = alloc",
               "    %two = const value=2 : f32\n"
               "    %factors = alloc name=\"factors\" offset=40960 initial=%two : "
               "view<f32, shared, [64, 1]>\n"
               "    %sums = alloc name=\"sums\" atom=m64n64k16.f32.f16 : frag<C, f32, 64x64>\n"
               "    fill frag=%sums value=%two\n"
               "    %mc = alloc"),
      "      mma_wait\n", "      scale c=%sums partial=%mc factors=%factors factor=%two waits\n");
  const std::string message =
      "race: race on the registers of `mc`: a product that uses them is still in flight / "
      "no wait for the product (`mma.wait<0>`) between them";
  for (const std::uint64_t seed : kSeeds) {
    EXPECT_EQ(found(scaled, seed), Found{}) << seed;
    EXPECT_TRUE(contains(found(replaced(scaled, " waits\n", "\n"), seed), message)) << seed;
  }
}

TEST(Products, AnOpenGroupIsNotWaitedFor) {
  for (const std::uint64_t seed : kSeeds) {
    EXPECT_EQ(found(without_line(kTwoGroups, "mma_commit"), seed), in_flight()) << seed;
  }
}

TEST(Products, AWaitThatLeavesTheYoungestGroupIsTooShort) {
  const std::string text = replaced(kTwoGroups, "      mma_wait\n", "      mma_wait pending=1\n");
  for (const std::uint64_t seed : kSeeds) EXPECT_EQ(found(text, seed), in_flight()) << seed;
}

TEST(Products, AMissingFenceIsFoundOnTheAccumulator) {
  const Found wanted = {
      "race: a product uses the registers of `mc`, which changed since the last fence / "};
  for (const std::uint64_t seed : kSeeds) {
    EXPECT_EQ(found(without_line(kTwoGroups, "mma_fence"), seed), wanted) << seed;
  }
}

TEST(Products, AMissingProxyFenceIsFoundBehindTheBarrier) {
  const Found wanted = operand_races("a read after a write",
                                     "no proxy fence between them: asynchronous instructions read "
                                     "shared memory past the threads' view of it");
  for (const std::uint64_t seed : kSeeds) {
    EXPECT_EQ(found(without_line(kTwoGroups, "proxy_fence"), seed), wanted) << seed;
  }
}

// It orders all that the thread has seen written, so it may also stand behind the barrier.
TEST(Products, AProxyFenceBehindTheBarrierServesToo) {
  const std::string text = replaced(without_line(kTwoGroups, "proxy_fence"), "        mma_fence\n",
                                    "        proxy_fence\n        mma_fence\n");
  EXPECT_EQ(found(text), Found{});
}

TEST(Products, AMissingCopyWaitIsARaceWithTheCopyInFlight) {
  for (const std::uint64_t seed : kSeeds) {
    const Found all = found(without_line(kTwoGroups, "copy_wait"), seed);
    const char* landed = "the asynchronous copy has not been waited for";
    for (const std::string& one : operand_races("a read after a write", landed)) {
      EXPECT_TRUE(contains(all, one)) << one;
    }
  }
}

// A fast warp overwrites what the products of slow ones read.
TEST(Products, AMissingBarrierBeforeTheCopiesIsARaceWithOtherWarpsProducts) {
  for (const std::uint64_t seed : kSeeds) {
    const Found all = found(without_line(kTwoGroups, "barrier level", 0), seed);
    for (const std::string& one : operand_races("a write after a read", kNoWait)) {
      EXPECT_TRUE(contains(all, one)) << one;
    }
  }
}

TEST(Products, AMissingBarrierBeforeTheProductsIsARaceWithOtherWarpsCopies) {
  for (const std::uint64_t seed : kSeeds) {
    const Found all = found(without_line(kTwoGroups, "barrier level", 1), seed);
    EXPECT_TRUE(contains(all, race("rhs_s", "a read after a write", kNoBarrier))) << seed;
  }
}

TEST(Products, AMissingBarrierBehindTheStoreIsARaceOnTheOutput) {
  for (const std::uint64_t seed : kSeeds) {
    const Found all = found(without_line(kTwoGroups, "barrier level", 2), seed);
    EXPECT_TRUE(contains(all, race("output_s", "a write after a read", kNoBarrier))) << seed;
  }
}

// What a report says of its two sides.
TEST(Products, ReportsNameWarpAndElement) {
  Kernel kernel(without_line(kTwoGroups, "proxy_fence"));
  bind_matmul(kernel, 128, 64, 64);
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.reports.size(), 2U) << text_of(outcome);
  const Report& lhs = outcome.reports[0];
  // The rows of the copying thread 0 are 0, 32, 64 and 96, which warps 0, 2, 4 and 6 multiply.
  EXPECT_EQ(lhs.accesses[0].what, "write of lhs_s[96, 0] by thread 0 (warp 0)");
  EXPECT_EQ(lhs.accesses[1].what, "read of lhs_s[96, 0] by a product of warp 6");
  EXPECT_NE(kernel.line(lhs.accesses[0]).find("copy src=%lhs_tile"), std::string::npos);
  EXPECT_NE(kernel.line(lhs.accesses[1]).find("mma c=%mc"), std::string::npos);
}

// --- descriptors

// Where an operand's rows and bytes are by the descriptor and by the buffer's layout.
TEST(Descriptors, FindWhatTheSharedLayoutPlaces) {
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kPanels = 3;
  for (const std::int64_t swizzle : {16, 32, 64, 128}) {
    const ir::SharedShape shape{.rows = kRows, .pitch = kPanels * swizzle, .swizzle = swizzle};
    for (std::int64_t row = 0; row < kRows; row += target::kDescriptorRows) {
      for (std::int64_t byte = 0; byte < shape.pitch; byte += 16) {
        const target::MatrixDescriptor at{
            .start = (byte / swizzle * kRows + row) * swizzle + byte % swizzle,
            .leading = kRows * swizzle,
            .stride = target::kDescriptorRows * swizzle,
            .swizzle = swizzle};
        // From a panel's edge the tile goes on in the next panel, else it stays inside.
        const std::int64_t end =
            byte % swizzle == 0 ? shape.pitch - byte : swizzle - byte % swizzle;
        for (std::int64_t r = 0; r < kRows - row; ++r) {
          for (std::int64_t b = 0; b < end; b += 2) {
            ASSERT_EQ(address_of(at, r, b), ir::shared_offset(shape, row + r, byte + b))
                << swizzle << ": " << row << "+" << r << ", " << byte << "+" << b;
          }
        }
      }
    }
  }
}

TEST(Descriptors, ExchangeTheirDistancesInNarrowPanelsAlone) {
  const target::MatrixDescriptor narrow{.leading = 512, .stride = 128, .swizzle = 16};
  const target::MatrixDescriptor wide{.leading = 512, .stride = 256, .swizzle = 32};
  EXPECT_EQ(target::encoded_distances(narrow, true).leading, 128);
  EXPECT_EQ(target::encoded_distances(narrow, true).stride, 512);
  EXPECT_EQ(target::encoded_distances(narrow, false).leading, 512);
  EXPECT_EQ(target::encoded_distances(wide, true).leading, 512);
  EXPECT_EQ(target::encoded_distances(wide, true).stride, 256);
}

TEST(Descriptors, AWrongStrideGivesWrongNumbers) {
  Kernel kernel(replaced(kTwoGroups, "load frag=%mb view=%b_view major=row in_shared stride=1024",
                         "load frag=%mb view=%b_view major=row in_shared stride=512"));
  bind_matmul(kernel, 128, 64, 64);
  EXPECT_EQ(text_of(kernel.run()), "");
  EXPECT_GT(wrong_in(kernel), 1000);
}

TEST(Descriptors, AStrideThatLeavesSharedMemoryIsReported) {
  Kernel kernel(replaced(kTwoGroups, "load frag=%mb view=%b_view major=row in_shared stride=1024",
                         "load frag=%mb view=%b_view major=row in_shared stride=8192"));
  bind_matmul(kernel, 128, 64, 64);
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.count(ReportKind::kOutOfBounds), 1) << text_of(outcome);
  const auto outside =
      std::find_if(outcome.reports.begin(), outcome.reports.end(),
                   [](const Report& report) { return report.kind == ReportKind::kOutOfBounds; });
  EXPECT_EQ(outside->message, "a product reads byte 40960 of 40960 bytes of shared memory");
}

TEST(Descriptors, AWrongLeadingDistanceGivesWrongNumbers) {
  for (const auto& [right, wrong] :
       {std::pair("leading=1024", "leading=512"),
        std::pair("leading=512 stride=128", "leading=0 stride=128"),
        std::pair("leading=512 stride=128", "leading=512 stride=256"),
        std::pair("leading=1024 stride=256", "leading=256 stride=1024"),
        std::pair("a_steps=[0, 512]", "a_steps=[0, 0]"),
        std::pair("b_steps=[0, 256]", "b_steps=[0, 512]")}) {
    Kernel kernel(replaced(kColumns, right, wrong));
    bind_columns(kernel);
    (void)kernel.run();
    EXPECT_GT(wrong_in_columns(kernel), 0) << wrong;
  }
}

// The products take the tile through a second allocation at the same address.
TEST(Descriptors, AWrongSwizzleGivesWrongNumbers) {
  std::string text = replaced(kTwoGroups, "          %b_view = subview base=%rhs_s",
                              "          %rhs_r = alloc name=\"rhs_r\" offset=16384 "
                              "swizzle=SWIZZLE : view<f16, shared, [64, 64]>\n"
                              "          %b_view = subview base=%rhs_r");
  const auto wrong = [&](const std::string& swizzle, const std::string& stride) {
    Kernel kernel(
        replaced(replaced(text, "SWIZZLE", swizzle),
                 "load frag=%mb view=%b_view major=row in_shared stride=1024",
                 "load frag=%mb view=%b_view major=row in_shared leading=4096 stride=" + stride));
    bind_matmul(kernel, 128, 64, 64);
    EXPECT_EQ(text_of(kernel.run()), "");
    return wrong_in(kernel);
  };
  EXPECT_EQ(wrong("128", "1024"), 0);
  EXPECT_GT(wrong("64", "512"), 0);
  EXPECT_GT(wrong("32", "256"), 0);
}

// --- others' writes while a product is in flight

// Group 0 multiplies, group 1 writes over an operand.
constexpr const char* kOverwriting = R"(module arch=sm_90a form=decided

func @matmul(global %lhs: view<f16, global, [64, 16]>, global %rhs: view<f16, global, [8, 16]>, global %output: view<f32, global, [64, 8]>) {
  var b: parallel < 1
  var g: parallel < 2
  parallel level=block vars=[b] threads=256 name="matmul" shared_bytes=3072 bounds=[256] overlaps body={
    %lhs_s = alloc name="lhs_s" offset=0 swizzle=32 : view<f16, shared, [64, 16]>
    %rhs_s = alloc name="rhs_s" offset=2048 swizzle=32 : view<f16, shared, [8, 16]>
    copy src=%lhs dst=%lhs_s way=async grouped threads=256 widths=[16]
    copy src=%rhs dst=%rhs_s way=async grouped threads=256 widths=[16]
    copy_wait
    proxy_fence
    barrier level=block
    %mc = alloc name="mc" atom=m64n8k16.f32.f16 : frag<C, f32, 64x8>
    %zero = const : f32
    fill frag=%mc value=%zero
    parallel level=group4 vars=[g] unit=128 body={
      %at = index expr=g : s32
      %none = const value=0 : s32
      %first = binary kind=eq left=%at right=%none : bool
      if condition=%first then={
        %ma = alloc name="ma" atom=m64n8k16.f32.f16 : frag<A, f16, 64x16>
        load frag=%ma view=%lhs_s major=row in_shared stride=256
        %mb = alloc name="mb" atom=m64n8k16.f32.f16 : frag<B, f16, 8x16>
        load frag=%mb view=%rhs_s major=row in_shared stride=256
        mma_fence
        mma c=%mc a=%ma b=%mb a_major=row b_major=row unit=group4 atom=m64n8k16.f32.f16 repeats=[1, 1, 1] a_steps=[0] b_steps=[0]
        mma_commit
      }
      EARLY
      barrier level=block
      LATE
      if condition=%first then={
        store frag=%mc view=%output element_run=2
      } else={
        copy src=%rhs dst=%lhs_part unit=128 way=vector threads=128 widths=[16]
      }
    }
  }
}
)";

std::string overwriting(const char* early, const char* late) {
  const std::string text =
      replaced(kOverwriting, "    copy src=%lhs dst",
               "    %lhs_part = subview base=%lhs_s origin=[0, 0] : view<f16, shared, [8, 16]>\n"
               "    copy src=%lhs dst");
  return replaced(replaced(text, "EARLY", early), "LATE", late);
}

TEST(Products, AnotherGroupMayNotOverwriteAnOperandBeforeTheWait) {
  for (const std::uint64_t seed : kSeeds) {
    Kernel right(overwriting("mma_wait", ""));
    bind_matmul(right, 64, 8, 16);
    EXPECT_EQ(text_of(right.run({.seed = seed})), "") << seed;
    EXPECT_EQ(wrong_in(right), 0) << seed;
    Kernel wrong(overwriting("", "mma_wait"));
    bind_matmul(wrong, 64, 8, 16);
    const Outcome outcome = wrong.run({.seed = seed});
    ASSERT_EQ(outcome.count(ReportKind::kRace), 1) << text_of(outcome);
    const Report& report = outcome.reports[0];
    EXPECT_EQ(report.missing, kNoWait);
    EXPECT_TRUE(report.accesses[0].what.ends_with(" by a product of warp 0, still in flight"))
        << report.accesses[0].what;
    EXPECT_TRUE(report.accesses[1].what.starts_with("write of lhs_s[")) << report.accesses[1].what;
  }
}

// --- operands in registers

TEST(Products, RegistersOfAnOperandNeedAFenceAfterTheirLoad) {
  Kernel kernel(replaced(without_line(kFromRegisters, "mma_fence"), "        load frag=%ma",
                         "        mma_fence\n        load frag=%ma"));
  bind_matmul(kernel, 64, 24, 64);
  const Outcome outcome = kernel.run();
  ASSERT_EQ(outcome.reports.size(), 1U) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message,
            "a product uses the registers of `ma`, which changed since the last fence");
}

TEST(Products, RegistersOfAnOperandMayNotBeReloadedInFlight) {
  const std::string load =
      "        load frag=%ma view=%lhs_s major=row to_registers element_run=1\n";
  const std::string wait = "        mma_wait\n";
  Kernel right(replaced(kFromRegisters, wait, wait + load));
  bind_matmul(right, 64, 24, 64);
  EXPECT_EQ(text_of(right.run()), "");
  for (const std::uint64_t seed : kSeeds) {
    Kernel wrong(replaced(kFromRegisters, wait, load + wait));
    bind_matmul(wrong, 64, 24, 64);
    const Outcome outcome = wrong.run({.seed = seed});
    ASSERT_EQ(outcome.reports.size(), 1U) << text_of(outcome);
    EXPECT_EQ(outcome.reports[0].message,
              "race on the registers of `ma`: a product that uses them is still in flight");
    EXPECT_EQ(outcome.reports[0].count, 4) << "one for each warp";
  }
}

TEST(Products, AnOperandThatIsNeverPlacedIsReported) {
  Kernel kernel(without_line(kFromRegisters, "load frag=%mb"));
  bind_matmul(kernel, 64, 24, 64);
  const Outcome outcome = kernel.run();
  ASSERT_GE(outcome.count(ReportKind::kUninitialised), 1) << text_of(outcome);
  EXPECT_EQ(outcome.reports[0].message, "`mb` is used before it is filled or loaded");
}

TEST(Products, WithoutChecksTheNumbersAreTheSame) {
  Kernel kernel(kTwoGroups);
  bind_matmul(kernel, 65, 24, 130);
  EXPECT_EQ(text_of(kernel.run({.checks = false})), "");
  EXPECT_EQ(wrong_in(kernel), 0);
}

}  // namespace

}  // namespace kiln::sim
