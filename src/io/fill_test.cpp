#include "io/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kiln::io {
namespace {

Tensor filled(DType dtype, std::vector<std::int64_t> shape, FillOptions options) {
  for (const std::int64_t extent : shape) options.longest = std::max(options.longest, extent);
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  fill_tensor(tensor, options);
  return tensor;
}

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    out.push_back(tensor.get(i));
  }
  return out;
}

TEST(Fill, NamesAreKnown) {
  EXPECT_EQ(fill_from_name("integers"), Fill::kIntegers);
  EXPECT_FALSE(fill_from_name("random").has_value());
}

TEST(Fill, SameSeedSameValuesOtherSeedOrParameterOthers) {
  const Tensor a = filled(DType::kF32, {16, 16}, {.seed = 3, .ordinal = 1});
  EXPECT_EQ(a.bytes, filled(DType::kF32, {16, 16}, {.seed = 3, .ordinal = 1}).bytes);
  EXPECT_NE(a.bytes, filled(DType::kF32, {16, 16}, {.seed = 4, .ordinal = 1}).bytes);
  EXPECT_NE(a.bytes, filled(DType::kF32, {16, 16}, {.seed = 3, .ordinal = 2}).bytes);
}

// Whatever holds them, integers are the same.
TEST(Fill, IntegersDoNotDependOnTheTypeThatHoldsThem) {
  const Tensor tensor = filled(DType::kF16, {4, 4}, {.fill = Fill::kIntegers});
  EXPECT_EQ(values(tensor), values(filled(DType::kS32, {4, 4}, {.fill = Fill::kIntegers})));
  for (const double value : values(tensor)) EXPECT_LE(std::fabs(value), 2);
}

TEST(Fill, NormalHasMeanZeroAndVarianceOne) {
  const std::vector<double> x = values(filled(DType::kF32, {200, 200}, {}));
  double sum = 0;
  double squares = 0;
  for (const double v : x) {
    sum += v;
    squares += v * v;
  }
  const auto n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.03);
}

// The largest sum of magnitudes over the rows of two factors.
double largest_sum(const Tensor& a, const Tensor& b, std::size_t rows, std::size_t length) {
  double largest = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < length; ++k) {
        const double product = a.get(i * length + k) * b.get(j * length + k);
        if (std::isfinite(product)) sum += std::fabs(product);
      }
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

TEST(Fill, IntegersStayExactInAnF16Accumulator) {
  for (const std::int64_t length : {16, 511, 512, 4096, 20000}) {
    const Tensor a = filled(DType::kF16, {8, length}, {.fill = Fill::kIntegers, .ordinal = 0});
    const Tensor b = filled(DType::kF16, {8, length}, {.fill = Fill::kIntegers, .ordinal = 1});
    const double sum = largest_sum(a, b, 8, static_cast<std::size_t>(length));
    EXPECT_LE(sum, 2048) << length;
    EXPECT_GT(sum, 0) << length;
  }
}

TEST(Fill, IntegersAreNeverAllZeroAndFitTheirType) {
  for (const DType dtype : {DType::kF16, DType::kE4M3, DType::kS8, DType::kU8, DType::kBool,
                            DType::kS4, DType::kU1, DType::kS32}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Tensor tensor = filled(dtype, {1, 2}, {.fill = Fill::kIntegers, .seed = seed});
      const std::vector<double> x = values(tensor);
      EXPECT_TRUE(std::any_of(x.begin(), x.end(), [](double v) { return v != 0; }));
      for (const double v : x) EXPECT_EQ(std::trunc(v), v);
    }
  }
}

TEST(Fill, OnesAreOnes) {
  for (const double v : values(filled(DType::kBF16, {5}, {.fill = Fill::kOnes}))) EXPECT_EQ(v, 1);
}

TEST(Fill, AdversarialHasEveryKindOfTrouble) {
  const Tensor tensor = filled(DType::kF16, {32, 64}, {.fill = Fill::kAdversarial, .seed = 7});
  const std::vector<double> x = values(tensor);
  const double least_normal = 0x1p-14;
  EXPECT_EQ(std::count_if(x.begin(), x.end(), [](double v) { return std::isnan(v); }), 1);
  EXPECT_EQ(std::count_if(x.begin(), x.end(), [](double v) { return std::isinf(v); }), 1);
  EXPECT_TRUE(std::any_of(x.begin(), x.end(), [](double v) { return v == 0 && std::signbit(v); }));
  EXPECT_TRUE(std::any_of(x.begin(), x.end(),
                          [&](double v) { return v != 0 && std::fabs(v) < least_normal; }));
  int cancelling = 0;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2) cancelling += x[i] > 1 && x[i + 1] == -x[i];
  EXPECT_GT(cancelling, 50);
}

TEST(Fill, AdversarialCannotOverflowAnF16Accumulator) {
  for (const std::int64_t length : {16, 80, 1024}) {
    const Tensor a = filled(DType::kF16, {8, length}, {.fill = Fill::kAdversarial, .ordinal = 0});
    const Tensor b = filled(DType::kF16, {8, length}, {.fill = Fill::kAdversarial, .ordinal = 1});
    EXPECT_LE(largest_sum(a, b, 8, static_cast<std::size_t>(length)), 32768) << length;
  }
}

TEST(Fill, SmallTensorsGetNoInfinityOrNan) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Tensor tensor = filled(DType::kF16, {1, 33}, {.fill = Fill::kAdversarial, .seed = seed});
    for (const double v : values(tensor)) EXPECT_TRUE(std::isfinite(v));
  }
}

}  // namespace
}  // namespace kiln::io
