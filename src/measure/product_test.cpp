#include "measure/product.h"

#include <gtest/gtest.h>

namespace kiln::measure {
namespace {

class ProductTest : public testing::Test {
 protected:
  // Tensors without contents: shapes alone decide.
  std::optional<ProductOf> product(const std::string& text) {
    Sources sources;
    Diagnostics diags;
    const auto einsum = reference::parse_einsum(text, sources, diags);
    EXPECT_TRUE(einsum.has_value()) << text;
    EXPECT_TRUE(reference::check(*einsum, tensors_, diags).has_value()) << text;
    return matrix_product(*einsum, tensors_);
  }

  Tensor mk_{DType::kF16, {3, 5}, {}};
  Tensor km_{DType::kF16, {5, 3}, {}};
  Tensor nk_{DType::kBF16, {4, 5}, {}};
  Tensor kn_{DType::kBF16, {5, 4}, {}};
  Tensor mn_{DType::kF32, {3, 4}, {}};
  Tensor square_{DType::kF16, {3, 3}, {}};
  Tensor k_{DType::kF16, {5}, {}};
  Tensor m_{DType::kF16, {3}, {}};
  std::vector<reference::Named> tensors_ = {{"mk", &mk_}, {"km", &km_}, {"nk", &nk_},
                                            {"kn", &kn_}, {"mn", &mn_}, {"sq", &square_},
                                            {"k", &k_},   {"m", &m_}};
};

TEST_F(ProductTest, BothOrdersAndMajorsAreFound) {
  const auto plain = product("mn[m,n] = mk[m,k] * nk[n,k]");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->problem.m, 3);
  EXPECT_EQ(plain->problem.n, 4);
  EXPECT_EQ(plain->problem.k, 5);
  EXPECT_EQ(plain->problem.a, DType::kF16);
  EXPECT_EQ(plain->problem.b, DType::kBF16);
  EXPECT_EQ(plain->problem.c, DType::kF32);
  EXPECT_TRUE(plain->problem.a_along_k && plain->problem.b_along_k);
  EXPECT_EQ(plain->scale, 1);

  const auto turned = product("mn[i,j] = 2 * kn[x,j] * km[x,i]");
  ASSERT_TRUE(turned.has_value());
  EXPECT_EQ(turned->a, "km");
  EXPECT_EQ(turned->b, "kn");
  EXPECT_EQ(turned->c, "mn");
  EXPECT_FALSE(turned->problem.a_along_k || turned->problem.b_along_k);
  EXPECT_EQ(turned->problem.m, 3);
  EXPECT_EQ(turned->problem.n, 4);
  EXPECT_EQ(turned->problem.k, 5);
  EXPECT_EQ(turned->scale, 2);

  const auto mixed = product("mn[m,n] = mk[m,k] * kn[k,n]");
  ASSERT_TRUE(mixed.has_value());
  EXPECT_TRUE(mixed->problem.a_along_k);
  EXPECT_FALSE(mixed->problem.b_along_k);
}

TEST_F(ProductTest, WhatIsNoProductOfTwoMatricesIsNone) {
  for (const char* text : {
           "m[i] = mk[i,k] * k[k]",               // a vector
           "sq[i,j] = m[i] * m[j]",               // nothing is summed
           "mn[m,n] = mk[m,k] * nk[n,k] * m[m]",  // three factors
           "mn[m,n] = mk[m,k] * nk[n,l]",         // two sums, each of its own
           "sq[i,j] = sq[i,j] * sq[j,i]",         // elementwise
           "sq[i,j] = sq[i,k] * sq[i,k]",         // j is repeated, not multiplied
           "sq[i,j] = sq[k,k] * sq[j,i]",         // a diagonal
           "mn[m,n] = mn[m,n]",                   // one factor
       }) {
    Sources sources;
    Diagnostics diags;
    const auto einsum = reference::parse_einsum(text, sources, diags);
    ASSERT_TRUE(einsum.has_value()) << text;
    EXPECT_FALSE(matrix_product(*einsum, tensors_).has_value()) << text;
  }
}

}  // namespace
}  // namespace kiln::measure
