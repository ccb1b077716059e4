// On a machine with a GPU: matrix products of small integers against the CPU, for shapes that take
// every vector width and overhang every edge, and one of elements that pass through a ring of
// events. Without one: the error says so.
#include "runtime/gpu.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "emit/cuda/samples_for_test.h"
#include "runtime/run.h"

namespace kiln::runtime {
namespace {

struct Shape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

double small_integer(std::size_t i) { return static_cast<double>((i * 7 + i / 5) % 5) - 2; }

Tensor integers(std::int64_t rows, std::int64_t cols) {
  Tensor tensor = Tensor::zeros(DType::kF16, {rows, cols});
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows * cols); ++i) {
    tensor.set(i, small_integer(i));
  }
  return tensor;
}

double expected(const Tensor& a, const Tensor& b, Shape shape, std::int64_t row, std::int64_t col) {
  double sum = 0;
  for (std::int64_t k = 0; k < shape.k; ++k) {
    sum += a.get(static_cast<std::size_t>(row * shape.k + k)) *
           b.get(static_cast<std::size_t>(col * shape.k + k));
  }
  return sum;
}

std::int64_t var_named(const ir::Function& function, std::string_view name) {
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    if (function.vars[ir::VarId{v}].name == name) return v;
  }
  return -1;
}

// Whether this machine can run anything; else says why not.
bool can_run(const Result<Gpu>& gpu) {
  if (!gpu) {
    EXPECT_NE(gpu.error().what, "");
    std::printf("not tested: %s\n", gpu.error().text().c_str());
    return false;
  }
  const auto found = find_nvrtc();
  if (!found) std::printf("not tested: %s\n", found.error().text().c_str());
  return found.has_value();
}

void run_matmul(const Gpu& gpu, const std::string& name, Shape shape) {
  Sources sources;
  ir::Module parsed = emit::load_sample(KILN_EMIT_TESTDATA "/" + name, sources);
  ir::Module* module = &parsed;
  module->arch = &gpu.arch();
  const ir::Function& function = module->functions[0];
  ir::Arguments arguments;
  arguments.vars.resize(function.vars.size());
  arguments.vars[static_cast<std::size_t>(var_named(function, "M"))] = shape.m;
  arguments.vars[static_cast<std::size_t>(var_named(function, "N"))] = shape.n;
  arguments.vars[static_cast<std::size_t>(var_named(function, "K"))] = shape.k;
  arguments.params.resize(3);
  arguments.params[0].tensor = integers(shape.m, shape.k);
  arguments.params[1].tensor = integers(shape.n, shape.k);
  const DType result = function.view_type(function.params[2].value).dtype;
  arguments.params[2].tensor = Tensor::zeros(result, {shape.m, shape.n});
  const auto outcome = run_on_gpu(*module, function, sources, arguments, {.repeat = 3});
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_TRUE(outcome->overrun.empty());
  EXPECT_EQ(outcome->launches, 1);
  EXPECT_GT(outcome->kernel_seconds, 0);
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < shape.m; ++row) {
    for (std::int64_t col = 0; col < shape.n; ++col) {
      const double got =
          arguments.params[2].tensor.get(static_cast<std::size_t>(row * shape.n + col));
      const double want =
          expected(arguments.params[0].tensor, arguments.params[1].tensor, shape, row, col);
      wrong += got == want ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0) << name << " " << shape.m << "x" << shape.n << "x" << shape.k;
}

TEST(GpuTest, OneWarpMatmulIsExactOrTheErrorSaysWhyNot) {
  const auto gpu = Gpu::open();
  if (!can_run(gpu)) GTEST_SKIP();
  for (const Shape shape : {Shape{16, 16, 16}, Shape{64, 48, 64}, Shape{40, 24, 20},
                            Shape{33, 18, 18}, Shape{17, 1, 31}, Shape{128, 256, 256}}) {
    run_matmul(*gpu, "one_warp.kir", shape);
  }
}

// Rows of whole 16 bytes, all else ragged; contractions of more tiles than stages, and of fewer.
TEST(GpuTest, BulkPipelinesAreExact) {
  const auto gpu = Gpu::open();
  if (!can_run(gpu)) GTEST_SKIP();
  if (!gpu->arch().has({target::Feature::kTma, target::Feature::kCluster})) {
    GTEST_SKIP() << "not tested: " << gpu->arch().name;
  }
  for (const Shape shape : {Shape{64, 128, 64}, Shape{65, 136, 72}, Shape{200, 264, 504},
                            Shape{1, 8, 8}, Shape{512, 512, 256}}) {
    run_matmul(*gpu, "bulk_pipeline.kir", shape);
  }
  for (const Shape shape :
       {Shape{256, 128, 64}, Shape{200, 130, 72}, Shape{500, 264, 1000}, Shape{512, 512, 256}}) {
    run_matmul(*gpu, "cluster_multicast.kir", shape);
  }
}

TEST(GpuTest, AGridOfPartClustersIsRefused) {
  const auto gpu = Gpu::open();
  if (!can_run(gpu)) GTEST_SKIP();
  if (!gpu->arch().has({target::Feature::kTma, target::Feature::kCluster})) {
    GTEST_SKIP() << "not tested: " << gpu->arch().name;
  }
  Sources sources;
  ir::Module module = emit::load_sample(KILN_EMIT_TESTDATA "/cluster_multicast.kir", sources);
  const ir::Function& function = module.functions[0];
  ir::Arguments arguments;
  arguments.vars.assign(function.vars.size(), 8);
  arguments.params.resize(3);
  arguments.params[0].tensor = integers(8, 8);
  arguments.params[1].tensor = integers(8, 8);
  arguments.params[2].tensor = Tensor::zeros(DType::kF32, {8, 8});
  const auto outcome = run_on_gpu(module, function, sources, arguments, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().reason, "1 blocks along x are no multiple of the cluster's 2");
}

TEST(GpuTest, ARingOfEventsPassesEveryElement) {
  const auto gpu = Gpu::open();
  if (!can_run(gpu)) GTEST_SKIP();
  Sources sources;
  ir::Module module = emit::load_sample(KILN_EMIT_TESTDATA "/producer_consumer.kir", sources);
  module.arch = &gpu->arch();
  const ir::Function& function = module.functions[0];
  constexpr std::int64_t kCount = 3 * 4096 + 37;
  ir::Arguments arguments;
  arguments.vars.resize(function.vars.size());
  arguments.vars[static_cast<std::size_t>(var_named(function, "N"))] = kCount;
  arguments.params.resize(2);
  arguments.params[0].tensor = Tensor::zeros(DType::kF32, {kCount});
  arguments.params[1].tensor = Tensor::zeros(DType::kF32, {kCount});
  for (std::size_t i = 0; i < kCount; ++i) {
    arguments.params[0].tensor.set(i, small_integer(i));
  }
  const auto outcome = run_on_gpu(module, function, sources, arguments, {});
  ASSERT_TRUE(outcome) << outcome.error().text();
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    wrong += arguments.params[1].tensor.get(i) == 2 * small_integer(i) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kiln::runtime
