// On a machine with a GPU: the one-warp matmul against integers on the CPU, for shapes that take
// every vector width and overhang every edge. Without one: the error says so.
#include "runtime/gpu.h"

#include <gtest/gtest.h>

#include "ir/print.h"
#include "runtime/run.h"
#include "support/file.h"

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

void run_matmul(const Gpu& gpu, Shape shape) {
  Sources sources;
  Diagnostics diags;
  const auto text = read_file(std::string(KILN_EMIT_TESTDATA) + "/one_warp.kir");
  ASSERT_TRUE(text) << text.error().text();
  auto module = ir::parse(sources, sources.add("one_warp.kir", *text), diags);
  ASSERT_TRUE(module);
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
  arguments.params[2].tensor = Tensor::zeros(DType::kF16, {shape.m, shape.n});
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
  EXPECT_EQ(wrong, 0) << shape.m << "x" << shape.n << "x" << shape.k;
}

TEST(GpuTest, OneWarpMatmulIsExactOrTheErrorSaysWhyNot) {
  const auto gpu = Gpu::open();
  if (!gpu) {
    EXPECT_NE(gpu.error().what, "");
    GTEST_SKIP() << "not tested: " << gpu.error().text();
  }
  if (const auto found = find_nvrtc(); !found) {
    GTEST_SKIP() << "not tested: " << found.error().text();
  }
  for (const Shape shape : {Shape{16, 16, 16}, Shape{64, 48, 64}, Shape{40, 24, 20},
                            Shape{33, 18, 18}, Shape{17, 1, 31}, Shape{128, 256, 256}}) {
    run_matmul(*gpu, shape);
  }
}

}  // namespace
}  // namespace kiln::runtime
