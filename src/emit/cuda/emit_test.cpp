#include "emit/cuda/emit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "emit/cuda/launch_plan.h"
#include "emit/cuda/samples_for_test.h"
#include "ir/verify.h"

namespace kiln::emit {
namespace {

struct Sample {
  Sources sources;
  ir::Module module;
};

Sample load(const std::string& name) {
  Sample sample;
  sample.module = load_sample(KILN_EMIT_TESTDATA "/" + name, sample.sources);
  const std::vector<std::string> mistakes = ir::verify(sample.module);
  KILN_CHECK(mistakes.empty(), "{}", mistakes[0]);
  return sample;
}

// The text of a kernel with this body, of `threads` threads in clusters of 2.
std::string emitted_body(int threads, const std::string& body) {
  Sample sample;
  Diagnostics diags;
  const std::string text = format(
      "module arch=sm_90a form=decided\n"
      "func @f(global %x: view<f16, global, [N, N]>, global %y: view<f32, global, [N]>) {{\n"
      "  var N: dim\n  var b: parallel < 2*N\n  var c: parallel < 2\n"
      "  parallel level=block vars=[b] threads={} name=\"f\" cluster=[c] shared_bytes=65536 "
      "cluster_shape=[2] bounds=[{}] opts_in overlaps "
      "body={{\n"
      "    %s = alloc name=\"s\" offset=0 swizzle=32 : view<f16, shared, [64, 256]>\n"
      "    %e = event name=\"e\" arrivals=3 offset=40960 : event<2>\n"
      "    %zero = const : f32\n{}\n  }}\n}}\n",
      threads, threads, body);
  const FileId file = sample.sources.add("body.kir", text);
  auto module = ir::parse(sample.sources, file, diags);
  KILN_CHECK(module.has_value(), "{}", diags.all().empty() ? "" : diags.all()[0].message);
  return emit(*module, sample.sources, {.line_directives = false});
}

std::string emitted(const std::string& name, const EmitOptions& options = {}) {
  const Sample sample = load(name);
  return emit(sample.module, sample.sources, options);
}

testing::AssertionResult has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no\n  " << part << "\nin\n" << text;
}

TEST(EmitTest, OneWarpMatmul) {
  const std::string text = emitted("one_warp.kir");
  EXPECT_LT(std::ranges::count(text, '\n'), 120);
  EXPECT_TRUE(has(text, "// Made by kiln " KILN_VERSION " for sm_90a from one_warp.kir"));
  EXPECT_TRUE(has(text,
                  "extern \"C\" __global__ void __launch_bounds__(32)\n"
                  "matmul_wmma(const kiln::f16* lhs, const kiln::f16* rhs, kiln::f16* output, "));
  EXPECT_TRUE(has(text, "const int block_m = blockIdx.x;\n"));
  EXPECT_TRUE(has(text, "const int block_n = blockIdx.y;\n"));
  EXPECT_TRUE(has(text, "kiln::Tile<kiln::f16, 16, 16> output_s(smem + 0);"));
  EXPECT_TRUE(has(text, "kiln::Tile<kiln::f16, 16, 16, 32> lhs_load_s(smem + 1024);"));
  EXPECT_TRUE(has(text, "for (int iv_k = 0; iv_k < kiln::cdiv(K, 16); ++iv_k) {"));
  EXPECT_TRUE(has(text,
                  "kiln::copy_async<32, kiln::Guarded<0, 1>, kiln::Widths<16, 8, 4, 2>>(\n"
                  "          lhs_load_s, kiln::window(lhs, {M, K}, {16 * block_m, 16 * iv_k}), "
                  "lane);"));
  EXPECT_TRUE(has(text, "kiln::cp_async_wait<0>();"));
  EXPECT_TRUE(has(text, "unsigned ma[4];"));
  EXPECT_TRUE(has(text, "mma_m16n8k16_f16_f16(&mc[0], &ma[0], &mb[0]);\n"));
  EXPECT_TRUE(has(text, "mma_m16n8k16_f16_f16(&mc[2], &ma[0], &mb[2]);\n"));
  EXPECT_TRUE(has(text,
                  "&output_s.at(16 * warp_m + lane / 4 + 8 * (i % 2), "
                  "16 * warp_n + 8 * (i / 2) + 2 * (lane % 4)));"));
  EXPECT_TRUE(has(text, "matmul_wmma<<<grid, 32, 1536, stream>>>(lhs, rhs, output, M, K, N);"));
}

TEST(EmitTest, WrappersComeFromTheRows) {
  const std::string text = emitted("one_warp.kir");
  const target::Mma* mma = target::find_mma("m16n8k16.f16.f16");
  ASSERT_NE(mma, nullptr);
  EXPECT_TRUE(has(text, std::string(mma->ptx) +
                            " \"\n      \"{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};\"\n"));
  EXPECT_TRUE(has(text, ": \"+r\"(c[0]), \"+r\"(c[1])\n"));
  const std::string f32 = emitted("memories.kir");
  EXPECT_TRUE(has(f32, "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"));
  EXPECT_TRUE(has(f32, "\"+f\"(c[3])"));
  EXPECT_TRUE(has(f32, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"));
}

TEST(EmitTest, ScalarsAreExpressions) {
  const std::string text = emitted("scalars.kir");
  EXPECT_TRUE(has(text, "float sum = 0.1"));
  EXPECT_TRUE(has(text, "const bool small = 128 * b + t < N;"));
  EXPECT_TRUE(has(text, "tile.at(0, t) = a * x[128 * b + t];"));
  EXPECT_TRUE(has(text, "sum = sum + tile.at(0, kiln::mod(t + j - n, 128));"));
  EXPECT_TRUE(has(text, "const int picked = (t / 2 & 3) * 2;"));
  EXPECT_TRUE(has(text, "kiln::f16(total - (total - pick))"));
  EXPECT_TRUE(has(text, "kiln::check(total >= pick, \"the sum is \\\"small\\\"\");"));
  EXPECT_TRUE(has(text, "#pragma unroll 4\n"));
  EXPECT_TRUE(has(text, "    } else {\n"));
}

TEST(EmitTest, EveryMemoryHasItsCopy) {
  const std::string text = emitted("memories.kir");
  EXPECT_TRUE(
      has(text, "kiln::part<32, 64>(ring, 32, 0), kiln::window(src, {P, M, K}, {p, 32 * m, 0})"));
  EXPECT_TRUE(has(text, "kiln::Shape<2, 32, 64>>("));
  EXPECT_TRUE(has(text, "kiln::bf16 mine[8];"));
  EXPECT_TRUE(has(text, "fresh.at(i / 4, i % 4) = 1.0f;"));
  EXPECT_TRUE(has(text, "if (lane == 0) {"));
  EXPECT_TRUE(has(text, "cudaFuncAttributeMaxDynamicSharedMemorySize, 73728);"));
}

// The header of descriptors comes with products alone, and a wrapper for each form that is used.
TEST(EmitTest, ProductsBringTheirHeaderAndWrappers) {
  const std::string both = emitted("two_warpgroups.kir");
  EXPECT_TRUE(has(both, "#include \"kiln/device/wgmma.cuh\""));
  EXPECT_EQ(both.find("_registers("), std::string::npos);
  const std::string registers = emitted("operand_in_registers.kir");
  EXPECT_TRUE(has(registers,
                  "m64n24k16_f32_f16_registers_x4<0>(mc, ma, {0, 4, 8, 12}, mb, {0, 2, 4, 6});"));
  EXPECT_EQ(registers.find("kiln::u64 a,"), std::string::npos);
  EXPECT_EQ(emitted("one_warp.kir").find("wgmma"), std::string::npos);
}

// A thread of a warpgroup finds its place by its number among 128.
TEST(EmitTest, AccumulatorsOfWarpgroupsAreStoredByThread) {
  EXPECT_TRUE(has(emitted("two_warpgroups.kir"),
                  "&output_s.at(64 * p_1 + 16 * (thread % 128 / 32) + 8 * (i % 2) + "
                  "thread % 128 / 4 % 8, 8 * (i / 2) + 2 * (thread % 128 % 4))"));
}

TEST(EmitTest, GuardedTilesMoveByElement) {
  const std::string text = emitted("edges.kir");
  EXPECT_TRUE(has(text, "if (i + 6 < 8) s.at(0, i + 6) = i < 3 ? x[i] : kiln::zero<float>();"));
  EXPECT_TRUE(has(text, "s.at(0, i) = i < 3 ? few.at(0, i) : kiln::zero<float>();"));
  EXPECT_TRUE(has(text, "for (int i = thread; i < 32; i += 32) {"));
  // Only the copy that stays inside on its shared side is one of vectors.
  EXPECT_TRUE(has(text, "few, kiln::window(x, {3}, {0}), thread);"));
  EXPECT_EQ(text.find("kiln::part"), std::string::npos);
}

TEST(EmitTest, TheTextIsTheSameEveryTime) {
  for (const char* name : {"edges.kir", "one_warp.kir", "scalars.kir", "memories.kir",
                           "two_warpgroups.kir", "operand_in_registers.kir", "bulk_pipeline.kir",
                           "cluster_multicast.kir", "producer_consumer.kir"}) {
    EXPECT_EQ(emitted(name), emitted(name));
  }
}

TEST(EmitTest, LinesPointAtTheSource) {
  const Sample sample = load("one_warp.kir");
  const std::string text = emit(sample.module, sample.sources);
  // Follow the directives like a compiler: the line presumed for the fill is the fill's.
  std::int64_t line = 0;
  std::int64_t found = -1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string row = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (row.starts_with("#line ")) line = std::stoll(row.substr(6)) - 1;
    if (row.find("kiln::fill(mc") != std::string::npos) found = line;
    if (row.find("launch_matmul_wmma") != std::string::npos) {
      EXPECT_EQ(line,
                std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    }
  }
  const std::string_view source = sample.sources.text(FileId{0});
  EXPECT_EQ(found, sample.sources.line_of(
                       FileId{0}, static_cast<std::uint32_t>(source.find("fill frag=%mc"))));
  EXPECT_EQ(emitted("one_warp.kir", {.line_directives = false}).find("#line"), std::string::npos);
}

std::string region(int first, int threads, const std::string& more) {
  return format(
      "    inthreads first={} threads={} async{} body={{\n      trigger event=%e "
      "arrival=thread\n    }}\n",
      first, threads, more);
}

TEST(EmitTest, RegionsWithoutCommonThreadsAreOneChain) {
  const std::string three =
      emitted_body(384, region(128, 128, "") + region(0, 128, "") + region(256, 128, ""));
  EXPECT_TRUE(has(three, "  if (warp >= 4 && warp < 8) {\n"));
  EXPECT_TRUE(has(three, "  } else if (warp < 4) {\n"));
  EXPECT_TRUE(has(three, "  } else {\n"));
  // The threads between 0 and 128 belong to the first region, though one alone runs it.
  const std::string one = emitted_body(256, region(0, 128, " single") + region(128, 128, ""));
  EXPECT_TRUE(has(one, "  if (warp == 0) {\n    if (kiln::elect()) {\n"));
  EXPECT_TRUE(has(one, "  } else if (warp >= 4) {\n"));
  // These meet: both run.
  const std::string two = emitted_body(256, region(0, 128, "") + region(64, 128, ""));
  EXPECT_TRUE(has(two, "  }\n  if (warp >= 2 && warp < 6) {\n"));
  EXPECT_TRUE(has(emitted_body(128, region(0, 128, "")), "  {\n    kiln::mbarrier_arrive(e);\n"));
}

TEST(EmitTest, TriggersArriveAsDecided) {
  const std::string text = emitted_body(256,
                                        "    trigger event=%e slot=1 arrival=elected unit=32\n"
                                        "    trigger event=%e slot=2 arrival=warp tracks\n"
                                        "    trigger event=%e cluster arrival=thread\n"
                                        "    trigger event=%e cluster arrival=elected bytes=64\n");
  EXPECT_TRUE(has(text, "  if (kiln::elect()) kiln::mbarrier_arrive(e + 1);\n"));
  EXPECT_TRUE(
      has(text, "  kiln::mbarrier_track_copies(e + 2);\n  kiln::mbarrier_arrive_warp(e + 2);\n"));
  EXPECT_TRUE(has(text, "  kiln::mbarrier_arrive_cluster<2>(e);\n"));
  EXPECT_TRUE(has(text,
                  "  if (warp == 0 && kiln::elect()) {\n    kiln::mbarrier_expect(e, 64);\n"
                  "    kiln::mbarrier_arrive_cluster<2>(e);\n  }\n"));
}

std::string bulk_copy(const std::string& more) {
  return "    %t = subview base=%x origin=[64*b, 0] : view<f16, global, [64, 256]>\n"
         "    copy src=%t dst=%s bulk event=%e way=bulk threads=1 widths=[16] " +
         more + "\n    trigger event=%e arrival=elected bytes=32768\n";
}

TEST(EmitTest, ManyBoxesAreALoop) {
  EXPECT_TRUE(has(emitted_body(128, bulk_copy("box=[64, 16]")),
                  "    for (int i = 0; i < 16; ++i) {\n"
                  "      kiln::bulk_load(kiln::box(s, 0, 16 * i), x_map, e, {16 * i, 64 * b});\n"));
  EXPECT_TRUE(has(emitted_body(128, bulk_copy("box=[32, 16] multicast eviction=first")),
                  "    for (int i = rank; i < 32; i += 2) {\n"
                  "      kiln::bulk_load_multicast<2, kiln::Eviction::kFirst>(\n"
                  "          kiln::box(s, 32 * (i / 16), 16 * (i % 16)),"));
  EXPECT_TRUE(
      has(emitted_body(128, bulk_copy("box=[64, 256] multicast")),
          "    if (rank < 1) {\n"
          "      kiln::bulk_load_multicast<2>(kiln::box(s, 0, 0), x_map, e, {0, 64 * b});"));
}

// A buffer that bulk copies alone touch is no parameter; its extents are known on the host.
TEST(LaunchPlanTest, BuffersOfBulkCopiesAreMaps) {
  const Sample sample = load("bulk_pipeline.kir");
  const auto plans = plan_launches(sample.module, sample.module.functions[0]);
  ASSERT_EQ(plans.size(), 1u);
  std::vector<std::string> names;
  for (const ParamSlot& slot : plans[0].slots) names.push_back(slot.name);
  EXPECT_EQ(names, (std::vector<std::string>{"lhs_map", "rhs_map", "output_map", "K"}));
  ASSERT_EQ(plans[0].maps.size(), 3u);
  EXPECT_EQ(plans[0].slots[2].map, 2u);
  EXPECT_EQ(plans[0].maps[2].array.name, "output");
  EXPECT_TRUE(plans[0].maps[2].array.written);
  EXPECT_EQ(plans[0].maps[1].map.box, (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ(plans[0].cluster_blocks(), 1);
  const Sample clusters = load("cluster_multicast.kir");
  const auto plan = plan_launches(clusters.module, clusters.module.functions[0])[0];
  EXPECT_EQ(plan.cluster, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(plan.cluster_blocks(), 2);
}

TEST(LaunchPlanTest, SlotsFollowTheParameters) {
  const Sample sample = load("scalars.kir");
  const auto plans = plan_launches(sample.module, sample.module.functions[0]);
  ASSERT_EQ(plans.size(), 1u);
  std::vector<std::string> names;
  for (const ParamSlot& slot : plans[0].slots) names.push_back(slot.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "y", "a", "n", "N"}));
  EXPECT_EQ(plans[0].slots[0].kind, SlotKind::kParam);
  EXPECT_FALSE(plans[0].slots[0].written);
  EXPECT_TRUE(plans[0].slots[1].written);
  EXPECT_EQ(plans[0].slots[2].kind, SlotKind::kScalar);
  EXPECT_EQ(plans[0].slots[3].kind, SlotKind::kVar);
  EXPECT_EQ(plans[0].shared_bytes, 512);
}

}  // namespace
}  // namespace kiln::emit
