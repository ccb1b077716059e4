#include "measure/bench_check.h"

#include <gtest/gtest.h>

#include "io/fill.h"

namespace kiln::measure {
namespace {

// A product of [200, 96] and [96, 130] in f16, the one factor turned, computed in fp64 and rounded.
class BenchCheckTest : public testing::Test {
 protected:
  static constexpr std::int64_t kM = 200;
  static constexpr std::int64_t kN = 130;
  static constexpr std::int64_t kK = 96;

  BenchCheckTest() {
    io::fill_tensor_in_parts(a_,
                             {.fill = io::Fill::kNormal, .seed = 1, .ordinal = 0, .longest = 1});
    io::fill_tensor_in_parts(b_,
                             {.fill = io::Fill::kNormal, .seed = 1, .ordinal = 1, .longest = 1});
    for (std::int64_t i = 0; i < kM; ++i) {
      for (std::int64_t j = 0; j < kN; ++j) c_.set(at(i, j), sum(i, j, 0, kK));
    }
    Diagnostics diags;
    einsum_ = *reference::parse_einsum("c[m,n] = a[m,k] * b[k,n]", sources_, diags);
    product_ = *matrix_product(einsum_, {{"a", &a_}, {"b", &b_}, {"c", &c_}});
  }

  static std::size_t at(std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * kN + j);
  }
  double sum(std::int64_t i, std::int64_t j, std::int64_t begin, std::int64_t end) const {
    double out = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      out += a_.get(static_cast<std::size_t>(i * kK + k)) *
             b_.get(static_cast<std::size_t>(k * kN + j));
    }
    return out;
  }
  reference::Comparison sample(const Tensor& c) const {
    return check_sample(einsum_, product_, {.a = a_, .b = b_, .c = c}, numerics(), 7);
  }
  reference::Comparison whole(const Tensor& ours, const Tensor& vendor) const {
    return compare_with_vendor(product_, {.a = a_, .b = b_, .c = ours}, vendor,
                               {.ours = numerics(), .vendor = numerics()});
  }
  reference::EinsumNumerics numerics() const { return vendor_numerics(product_.problem, 90); }

  Sources sources_;
  Tensor a_ = Tensor::zeros(DType::kF16, {kM, kK});
  Tensor b_ = Tensor::zeros(DType::kF16, {kK, kN});
  Tensor c_ = Tensor::zeros(DType::kF16, {kM, kN});
  reference::Einsum einsum_;
  ProductOf product_;
};

TEST_F(BenchCheckTest, ARightResultIsInside) {
  const reference::Comparison found = sample(c_);
  EXPECT_EQ(found.elements, 64 * 64);
  EXPECT_EQ(found.outside, 0);
  EXPECT_GT(found.worst, 0);  // it is rounded to f16
  const reference::Comparison same = whole(c_, c_);
  EXPECT_EQ(same.elements, kM * kN);
  EXPECT_EQ(same.outside, 0);
}

TEST_F(BenchCheckTest, ATileThatLacksTheLastStepIsOutside) {
  Tensor wrong = c_;
  for (std::int64_t i = 64; i < 128; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) wrong.set(at(i, j), sum(i, j, 0, kK - 16));
  }
  const reference::Comparison found = sample(wrong);
  EXPECT_GT(found.outside, 300);  // about 20 of the rows times 31 of the columns are there
  ASSERT_TRUE(found.first.has_value());
  const std::int64_t row = found.first->coordinates[0];
  const std::int64_t column = found.first->coordinates[1];
  EXPECT_TRUE(row >= 64 && row < 128 && column < 64) << row << ", " << column;
  EXPECT_EQ(found.first->actual, wrong.get(at(row, column)));

  const reference::Comparison against = whole(wrong, c_);
  EXPECT_GT(against.outside, 64 * 64 / 2);
  EXPECT_EQ(against.first->coordinates[0], 64);
}

TEST_F(BenchCheckTest, OneElementNobodyWroteIsOutside) {
  Tensor wrong = c_;
  wrong.bytes[2 * at(kM - 1, kN - 1)] = std::byte{0xff};
  wrong.bytes[2 * at(kM - 1, kN - 1) + 1] = std::byte{0xff};
  const reference::Comparison found = whole(wrong, c_);
  EXPECT_EQ(found.outside, 1);
  EXPECT_EQ(found.first->coordinates, (std::vector<std::int64_t>{kM - 1, kN - 1}));
  EXPECT_EQ(whole(c_, wrong).outside, 1);
}

TEST_F(BenchCheckTest, TheVendorsF32IsTf32) {
  const reference::EinsumNumerics f32 =
      vendor_numerics({.a = DType::kF32, .b = DType::kF32, .c = DType::kF32}, 90);
  EXPECT_EQ(f32.operand, DType::kTF32);
  const reference::ProductSum sum{.value = 1, .magnitude = 100, .length = 100, .largest = 3};
  const double rounded = reference::product_bound(sum, f32, DType::kF32, DType::kF32);
  EXPECT_GT(rounded, 100 * 0x1p-11);  // each factor loses its last bits
  const double held = reference::product_bound(sum, numerics(), DType::kF16, DType::kF32);
  EXPECT_LT(held, 100 * 0x1p-11);
}

}  // namespace
}  // namespace kiln::measure
