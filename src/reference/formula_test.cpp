#include "reference/formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "reference/compare.h"

namespace kiln::reference {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Small numbers of many digits, the same each time.
double noise(std::size_t i) { return std::sin(static_cast<double>(i) * 12.9898 + 1) * 2; }

class FormulaTest : public testing::Test {
 protected:
  Tensor& add(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
              bool output = false) {
    Tensor& tensor = tensors_[name];
    tensor = Tensor::zeros(dtype, std::move(shape));
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
      tensor.set(
          i, is_float(dtype) ? noise(i + 100 * tensors_.size()) : static_cast<double>(i % 7) - 3);
    }
    given_.tensors.push_back({name, &tensor, true});
    if (output) given_.outputs.push_back(name);
    return tensor;
  }
  std::optional<std::vector<Output>> run(const std::string& text, const Evaluation& how = {}) {
    auto formula = parse_formula(text, sources_, diags_);
    if (!formula) return std::nullopt;
    const auto bound = bind(std::move(*formula), given_, diags_);
    if (!bound) return std::nullopt;
    auto outputs = evaluate(*bound, numerics_, how);
    if (!outputs) return std::nullopt;
    return std::move(*outputs);
  }
  // The id of the only diagnostic.
  std::string mistake(const std::string& text) {
    EXPECT_FALSE(run(text).has_value()) << text;
    EXPECT_EQ(diags_.all().size(), 1U) << text;
    std::string id(diags_.all().empty() ? "" : info(diags_.all()[0].id).name);
    diags_ = {};
    return id;
  }
  double at(const std::string& name, std::size_t i) { return tensors_[name].get(i); }

  std::map<std::string, Tensor> tensors_;
  Given given_;
  EinsumNumerics numerics_;
  Sources sources_;
  Diagnostics diags_;
};

// Every element within 1e-12 of what is expected, with a slack that a lost term cannot hide in.
void expect_close(const Output& output, const std::vector<double>& expected) {
  ASSERT_EQ(output.expected.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(output.expected[i], expected[i], 1e-12 * (1 + std::fabs(expected[i]))) << i;
    EXPECT_GT(output.bound[i], 0) << i;
    EXPECT_LT(output.bound[i], 1e-3) << i;
    EXPECT_LT(output.slack[i], 1e-5) << i;
  }
}

TEST_F(FormulaTest, SoftmaxIsOneLine) {
  add("x", DType::kF32, {3, 5});
  add("y", DType::kF32, {3, 5}, true);
  const auto outputs =
      run("y[m,n] = exp(x[m,n] - max[n](x[m,n])) / sum[n](exp(x[m,n] - max[n](x[m,n])))");
  ASSERT_TRUE(outputs.has_value());
  std::vector<double> expected;
  for (std::size_t i = 0; i < 15; ++i) {
    double sum = 0;
    for (std::size_t n = 0; n < 5; ++n) sum += std::exp(at("x", i / 5 * 5 + n));
    expected.push_back(std::exp(at("x", i)) / sum);
  }
  expect_close(outputs->at(0), expected);
}

TEST_F(FormulaTest, LayerNormNamesDimensionsAndScalars) {
  add("x", DType::kF32, {3, 8});
  add("g", DType::kF32, {8});
  add("y", DType::kF32, {3, 8}, true);
  given_.scalars = {{"N", {8, 0}, DType::kS64}, {"eps", {0.125, 0}, DType::kF32}};
  const auto outputs = run(
      "mean[m] = sum[n](x[m,n]) / N; var[m] = sum[n]((x[m,n] - mean[m]) * (x[m,n] - mean[m])) / N;"
      "y[m,n] = (x[m,n] - mean[m]) * rsqrt(var[m] + eps) * g[n];");
  ASSERT_TRUE(outputs.has_value());
  std::vector<double> expected;
  for (std::size_t m = 0; m < 3; ++m) {
    double mean = 0;
    double variance = 0;
    for (std::size_t n = 0; n < 8; ++n) mean += at("x", m * 8 + n) / 8;
    for (std::size_t n = 0; n < 8; ++n) variance += std::pow(at("x", m * 8 + n) - mean, 2) / 8;
    for (std::size_t n = 0; n < 8; ++n) {
      expected.push_back((at("x", m * 8 + n) - mean) / std::sqrt(variance + 0.125) * at("g", n));
    }
  }
  expect_close(outputs->at(0), expected);
}

constexpr const char* kCausal =
    "s[h,m,n] = q[h,m,d] * k[h,n,d]; t[h,m,n] = n <= m ? s[h,m,n] * 0.5 : -inf;"
    "p[h,m,n] = exp(t[h,m,n] - max[n](t[h,m,n]));"
    "o[h,m,d] = sum[n](p[h,m,n] * v[h,n,d]) / sum[n](p[h,m,n])";

class AttentionTest : public FormulaTest {
 protected:
  static constexpr std::size_t kHeads = 2;
  static constexpr std::size_t kLength = 40;
  static constexpr std::size_t kWidth = 6;

  AttentionTest() {
    for (const char* name : {"q", "k", "v"}) add(name, DType::kF16, {kHeads, kLength, kWidth});
    add("o", DType::kF32, {kHeads, kLength, kWidth}, true);
  }
  std::vector<double> expected() {
    std::vector<double> out;
    for (std::size_t row = 0; row < kHeads * kLength; ++row) {
      const std::size_t head = row / kLength * kLength;
      std::vector<double> weights;
      double sum = 0;
      for (std::size_t n = head; n <= row; ++n) {
        double score = 0;
        for (std::size_t d = 0; d < kWidth; ++d) {
          score += at("q", row * kWidth + d) * at("k", n * kWidth + d);
        }
        weights.push_back(std::exp(score / 2));
        sum += weights.back();
      }
      for (std::size_t d = 0; d < kWidth; ++d) {
        double value = 0;
        for (std::size_t n = head; n <= row; ++n) {
          value += weights[n - head] / sum * at("v", n * kWidth + d);
        }
        out.push_back(value);
      }
    }
    return out;
  }
};

TEST_F(AttentionTest, CausalAttentionIsOneLine) {
  const auto outputs = run(kCausal);
  ASSERT_TRUE(outputs.has_value());
  expect_close(outputs->at(0), expected());
}

// Only what the sampled elements need is evaluated, and they are the same.
TEST_F(AttentionTest, ASampleIsWhatTheWholeHas) {
  const auto outputs = run(kCausal);
  const auto sample = run(kCausal, {.sample = [](const std::string&) {
                            return std::vector<ElementRun>{{12, 18}, {300, 6}};
                          }});
  ASSERT_TRUE(outputs.has_value() && sample.has_value());
  std::size_t known = 0;
  for (std::size_t i = 0; i < sample->at(0).known.size(); ++i) {
    if (!sample->at(0).known[i]) continue;
    ++known;
    EXPECT_NEAR(sample->at(0).expected[i], outputs->at(0).expected[i], 1e-13);
  }
  EXPECT_EQ(known, 24U);
}

// Which loops run first and how boxes are cut changes nothing: here against one element at a time.
TEST_F(FormulaTest, ContractionsOfAnyFormAreSums) {
  add("a", DType::kF32, {3, 4, 5});
  add("b", DType::kF32, {5, 4, 2});
  add("c", DType::kF32, {3});
  add("o", DType::kF32, {2, 3}, true);
  const auto outputs = run("o[j,i] = sum[k,l](a[i,k,l] * b[l,k,j] * c[i]) + 1");
  ASSERT_TRUE(outputs.has_value());
  std::vector<double> expected;
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t i = 0; i < 3; ++i) {
      double sum = 1;
      for (std::size_t kl = 0; kl < 20; ++kl) {
        sum += at("a", i * 20 + kl) * at("b", (kl % 5 * 4 + kl / 5) * 2 + j) * at("c", i);
      }
      expected.push_back(sum);
    }
  }
  expect_close(outputs->at(0), expected);
}

TEST_F(FormulaTest, IntegersAreExact) {
  add("w", DType::kS8, {4, 6});
  add("x", DType::kS32, {6});
  add("y", DType::kS64, {4}, true);
  const auto outputs = run("y[m] = sum[k](w[m,k] * (x[k] << 40) + (k % 3 == 1 ? 1 : 0)) - m");
  ASSERT_TRUE(outputs.has_value());
  for (std::size_t m = 0; m < 4; ++m) {
    std::int64_t sum = 2 - static_cast<std::int64_t>(m);
    for (std::size_t k = 0; k < 6; ++k) {
      sum += static_cast<std::int64_t>(at("w", m * 6 + k)) * static_cast<std::int64_t>(at("x", k)) *
             (std::int64_t{1} << 40);
    }
    EXPECT_EQ(outputs->at(0).expected[m], static_cast<double>(sum)) << m;
    EXPECT_EQ(outputs->at(0).bound[m], 0) << m;
  }
}

TEST_F(FormulaTest, IntegersHaveNoNegativeZero) {
  add("x", DType::kS32, {2});
  add("y", DType::kF32, {2}, true);
  tensors_["x"].set(0, -5);
  tensors_["x"].set(1, 5);
  const auto outputs = run("y[i] = 1.0 / (0 * x[i])");
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->at(0).expected, (std::vector<double>{kInfinite, kInfinite}));
}

// What a remainder by zero gives is known of no machine, and not that it is no number.
TEST_F(FormulaTest, UnknownIntegersAreNotKnownAsRealNumbers) {
  add("x", DType::kS32, {2});
  add("y", DType::kF32, {2}, true);
  const auto outputs = run("y[i] = x[i] % (i * 0) + 0.5");
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->at(0).bound, (std::vector<double>{kInfinite, kInfinite}));
}

// Whether a sum is exact depends on its own terms, not on those of sums that are evaluated with it.
TEST_F(FormulaTest, SumsOfWholeNumbersAreExactBesideOthers) {
  add("x", DType::kF32, {3, 4});
  add("w", DType::kF32, {2, 4});
  add("y", DType::kF32, {3, 2}, true);
  for (std::size_t i = 0; i < 12; ++i) tensors_["x"].set(i, i < 4 ? 0.5 : static_cast<double>(i));
  for (std::size_t i = 0; i < 8; ++i) tensors_["w"].set(i, i < 4 ? 3 : 0.25);
  for (const char* text :
       {"y[m,n] = sum[k](x[m,k] * w[n,k])", "y[m,n] = sum[k](x[m,k] + w[n,k])",
        "y[m,n] = sum[k]((n <= m + 9 ? x[m,k] : 0) * (m <= n + 9 ? w[n,k] : 0))"}) {
    const auto outputs = run(text);
    ASSERT_TRUE(outputs.has_value()) << text;
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(outputs->at(0).bound[i] == 0, i == 2 || i == 4) << text << " at " << i;
    }
  }
}

// A tensor core of 8-bit integers does not round the scale, which is multiplied behind it in f32.
TEST_F(FormulaTest, AFactorThatIntegerOperandsDoNotHoldIsNotRoundedToThem) {
  numerics_ = {{.roundoff = 0, .depth = 32}, DType::kS32, DType::kS8};
  add("x", DType::kS8, {2, 8});
  add("w", DType::kS8, {3, 8});
  add("scale", DType::kF32, {2, 2});
  add("y", DType::kF32, {2, 3}, true);
  const auto outputs = run("y[m,n] = sum[k](x[m,k] * w[n,k] * scale[m,k / 4])");
  ASSERT_TRUE(outputs.has_value());
  std::vector<double> expected(6);
  for (std::size_t i = 0; i < 6 * 8; ++i) {
    const std::size_t m = i / 24;
    const std::size_t k = i % 8;
    expected[i / 8] += at("x", m * 8 + k) * at("w", i / 8 % 3 * 8 + k) * at("scale", m * 2 + k / 4);
  }
  expect_close(outputs->at(0), expected);
}

TEST_F(FormulaTest, SubscriptsAreExpressionsAndReadZeroOutside) {
  add("x", DType::kF32, {5});
  add("at", DType::kS32, {3});
  add("y", DType::kF32, {5}, true);
  add("z", DType::kF32, {3}, true);
  tensors_["at"].set(0, 4);
  EXPECT_EQ(run("z[i] = x[i / 2]")->at(0).expected[2], at("x", 1));
  const auto outputs = run("y[i] = x[i + 1] - x[i - 1]; z[i] = x[at[i]]");
  ASSERT_TRUE(outputs.has_value() && outputs->size() == 2);
  EXPECT_EQ(outputs->at(0).expected[0], at("x", 1));
  EXPECT_EQ(outputs->at(0).expected[4], -at("x", 3));
  EXPECT_EQ(outputs->at(1).expected, (std::vector<double>{at("x", 4), 0, 0}));
}

// Subscripts of one index each, also of the same one; of none; of two.
TEST_F(FormulaTest, ReadsFollowEverySubscript) {
  add("x", DType::kF64, {4, 6});
  add("y", DType::kF64, {6, 4}, true);
  const auto expect_reads = [&](const std::string& text, auto&& row, auto&& column) {
    const auto outputs = run("y[m,n] = " + text);
    ASSERT_TRUE(outputs.has_value()) << text;
    for (int m = 0; m < 6; ++m) {
      for (int n = 0; n < 4; ++n) {
        const int at[] = {row(m, n), column(m, n)};
        const bool inside = at[0] >= 0 && at[0] < 4 && at[1] >= 0 && at[1] < 6;
        const double expected =
            inside ? this->at("x", static_cast<std::size_t>(at[0] * 6 + at[1])) : 0;
        EXPECT_EQ(outputs->at(0).expected[static_cast<std::size_t>(m * 4 + n)], expected)
            << text << " at " << m << ", " << n;
      }
    }
  };
  expect_reads(
      "x[n,m]", [](int, int n) { return n; }, [](int m, int) { return m; });
  expect_reads(
      "x[n + 2,m]", [](int, int n) { return n + 2; }, [](int m, int) { return m; });
  expect_reads(
      "x[n / 2,m - 1]", [](int, int n) { return n / 2; }, [](int m, int) { return m - 1; });
  expect_reads(
      "x[m - 1,m]", [](int m, int) { return m - 1; }, [](int m, int) { return m; });
  expect_reads(
      "x[3,m + 2]", [](int, int) { return 3; }, [](int m, int) { return m + 2; });
  expect_reads(
      "x[0 - 1,m]", [](int, int) { return -1; }, [](int m, int) { return m; });
  expect_reads(
      "x[n,m + n]", [](int, int n) { return n; }, [](int m, int n) { return m + n; });
}

// Both factors have all indices of the result: a contraction for each element of it.
TEST_F(FormulaTest, MaskedProductsAreSums) {
  add("a", DType::kF16, {9, 33});
  add("b", DType::kF16, {7, 33});
  tensors_["b"].set(5, std::numeric_limits<double>::quiet_NaN());
  tensors_["b"].set(33 * 3 + 2, 3);
  add("y", DType::kF32, {9, 7}, true);
  const auto outputs =
      run("y[m,n] = sum[k]((n <= m ? a[m,k] : 0) * (n <= m && n > 0 ? b[n,k] : 0))");
  ASSERT_TRUE(outputs.has_value());
  for (std::size_t m = 0; m < 9; ++m) {
    for (std::size_t n = 0; n < 7; ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < 33 && n <= m && n > 0; ++k) {
        sum += at("a", m * 33 + k) * at("b", n * 33 + k);
      }
      const std::size_t i = m * 7 + n;
      EXPECT_NEAR(outputs->at(0).expected[i], sum, 1e-12) << m << ", " << n;
      // Of a sum that is 0 throughout all is known.
      EXPECT_EQ(outputs->at(0).bound[i] == 0, n > m || n == 0) << m << ", " << n;
    }
  }
}

// A comparison that rounding could turn covers both answers.
TEST_F(FormulaTest, OpenComparisonsWidenTheBound) {
  add("x", DType::kF32, {2});
  add("y", DType::kF32, {2}, true);
  tensors_["x"].set(0, 1);
  tensors_["x"].set(1, 5);
  const auto outputs = run("y[i] = exp(log(x[i])) <= x[i] ? 7 : -7");
  ASSERT_TRUE(outputs.has_value());
  EXPECT_GE(outputs->at(0).bound[1], 14);
  EXPECT_GE(outputs->at(0).slack[1], 14);
}

// The alternative that is not taken has an error, and those that are have none.
TEST_F(FormulaTest, ChosenWholeNumbersAddUpExactly) {
  add("x", DType::kF32, {2, 6});
  add("y", DType::kF32, {2}, true);
  for (std::size_t i = 0; i < 12; ++i) tensors_["x"].set(i, static_cast<double>(i));
  const auto outputs = run("y[i] = sum[k](k < 9 ? x[i,k] : exp(x[i,k]))");
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->at(0).expected, (std::vector<double>{15, 51}));
  EXPECT_EQ(outputs->at(0).bound, (std::vector<double>{0, 0}));
}

TEST_F(FormulaTest, AQuotientByWhatMayBeZeroIsNotBounded) {
  add("x", DType::kF32, {1});
  add("y", DType::kF32, {1}, true);
  tensors_["x"].set(0, 1);
  const auto outputs = run("y[i] = x[i] / log(exp(x[i]) / exp(1.0))");
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->at(0).bound[0], kInfinite);
}

// An f32 spells 0.1 and the natural logarithm of 2 in its own way; a lost term is larger.
TEST_F(FormulaTest, ConstantsMayBeRoundedAndSumsMayNot) {
  add("x", DType::kF32, {1, 1000});
  add("y", DType::kF32, {1}, true);
  const auto outputs = run("y[i] = sum[k](exp(x[i,k] * 0.1))");
  const auto other = run("y[i] = sum[k](exp2(x[i,k] * 0.14426951f))");
  const auto lost = run("y[i] = sum[k](k < 999 ? exp(x[i,k] * 0.1) : 0)");
  ASSERT_TRUE(outputs && other && lost);
  const double expected = outputs->at(0).expected[0];
  EXPECT_LE(std::fabs(other->at(0).expected[0] - expected), outputs->at(0).slack[0]);
  EXPECT_GT(std::fabs(lost->at(0).expected[0] - expected), 100 * outputs->at(0).slack[0]);
}

// A tensor that the kernel does not read holds NaN: a formula that does must not let anything pass.
TEST_F(FormulaTest, NanStaysNan) {
  add("x", DType::kF32, {2});
  add("y", DType::kF32, {2}, true);
  tensors_["x"].set(0, std::nan(""));
  for (const char* text : {"y[i] = x[i] * 0.1 + 1.5", "y[i] = exp(x[i] * 0.1)",
                           "y[i] = sum[k](x[k] * 0.1) + i", "y[i] = sum[k](exp(x[k]) * x[i])"}) {
    const auto outputs = run(text);
    ASSERT_TRUE(outputs.has_value()) << text;
    EXPECT_TRUE(std::isnan(outputs->at(0).expected[0])) << text;
    EXPECT_EQ(outputs->at(0).bound[0], 0) << text;
  }
}

// Where the factor stands decides what infinities become: sum(a * b) * s is infinite, sum(a * s * b)
// is not a number.
TEST_F(FormulaTest, InfiniteFactorsOfASumAreNotBounded) {
  add("a", DType::kF32, {1, 4});
  add("b", DType::kF32, {2, 4});
  add("s", DType::kF32, {1, 2});
  add("y", DType::kF32, {1, 2}, true);
  tensors_["a"].set(1, 0);
  tensors_["s"].set(0, kInfinite);
  const auto outputs = run("y[m,n] = sum[k](a[m,k] * b[n,k] * s[m,k/2])");
  ASSERT_TRUE(outputs.has_value());
  EXPECT_EQ(outputs->at(0).bound, (std::vector<double>{kInfinite, kInfinite}));
  tensors_["a"].set(0, std::nan(""));
  tensors_["s"].set(0, 1);
  EXPECT_EQ(run("y[m,n] = sum[k](a[m,k] * b[n,k] * s[m,k/2])")->at(0).bound[1], 0);
}

TEST_F(FormulaTest, ConversionsRound) {
  add("x", DType::kF32, {1});
  add("y", DType::kF32, {1}, true);
  tensors_["x"].set(0, 1 + 0x1p-11);
  EXPECT_EQ(run("y[i] = bf16(x[i])")->at(0).expected[0], 1);
  EXPECT_EQ(run("y[i] = s32(x[i] * 3)")->at(0).expected[0], 3);
}

TEST_F(FormulaTest, MistakesAreNamed) {
  add("x", DType::kF32, {4, 5});
  add("y", DType::kF32, {4}, true);
  EXPECT_EQ(mistake("y[i] = (x[i,i]"), "expect-syntax");
  EXPECT_EQ(mistake("y[i] = 1x"), "expect-syntax");
  EXPECT_EQ(mistake("y[i] = 1 ? 2"), "expect-syntax");
  EXPECT_EQ(mistake("y[i] = where(1, 2)"), "expect-syntax");
  EXPECT_EQ(mistake("y[i] = x[i,k] + 1"), "expect-free-index");
  EXPECT_EQ(mistake("y[i] = sin_of(x[i,i])"), "expect-function");
  EXPECT_EQ(mistake("y[i] = alpha * 2"), "expect-unknown-number");
  EXPECT_EQ(mistake("y[i] = sum[j](j)"), "expect-no-extent");
  EXPECT_EQ(mistake("y[i] = sum[k](x[i,k]) & 1"), "expect-type");
  EXPECT_EQ(mistake("y[i] = i; y[j] = j"), "expect-redefined");
  EXPECT_EQ(mistake("t[i] = sum[k](x[i,k]); y[i] = i"), "expect-unused");
  EXPECT_EQ(mistake("y[i] = sum[k](x[k,k])"), "expect-extent");
  EXPECT_EQ(mistake("y[i] = x[i]"), "expect-rank");
  std::string long_sum = "y[i] = 1";
  for (int i = 0; i < 2000; ++i) long_sum += " + 1";
  EXPECT_EQ(mistake(long_sum), "expect-too-long");
  EXPECT_EQ(mistake("y[i] = " + std::string(100000, '(')), "expect-syntax");
  EXPECT_EQ(mistake("y[i] = " + std::string(100000, '-')), "expect-syntax");
}

// Cut and changed formulas are refused or evaluated, and nothing else.
TEST_F(FormulaTest, MalformedFormulasNeverCrash) {
  add("x", DType::kF32, {4, 5});
  add("y", DType::kF32, {4}, true);
  const std::string seed =
      "t[m,n] = n <= m ? x[m,n] * 0.5f : -inf; y[m] = sum[n](exp(t[m,n] - max[n](t[m,n])) % 3)";
  const std::string letters = "[](),;=?:+-*/%&|<>!~.09fmnxy \xc3";
  std::uint64_t state = 7;
  const auto random = [&](std::size_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  std::size_t evaluated = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed.substr(0, i % 4 == 0 ? random(seed.size()) : seed.size());
    for (std::size_t edits = random(4); edits > 0 && !text.empty(); --edits) {
      text[random(text.size())] = letters[random(letters.size())];
    }
    evaluated += run(text).has_value() ? 1 : 0;
    EXPECT_TRUE(!diags_.all().empty() || evaluated > 0) << text;
    diags_ = {};
  }
  EXPECT_GT(evaluated, 100U);
}

}  // namespace
}  // namespace kiln::reference
