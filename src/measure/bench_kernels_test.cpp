// The check of large products, on the CPU: the very kernels that run on the GPU, thread by thread.
#include <gtest/gtest.h>

#include <set>

#include "kiln/sparse.h"
#include "measure/bench_check.h"
#include "measure/bench_kernels_cpu.h"
#include "measure/bench_kernels_text.h"
#include "measure/bench_sample.h"
#include "runtime/nvrtc.h"
#include "sparse/sparse.h"
#include "support/tensor.h"

namespace kiln::measure {
namespace {

constexpr bench::Grid kGrid{.blocks = 3, .threads = 64};  // fewer threads than elements

constexpr DType kTypes[] = {DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kF32};

TEST(BenchKernels, ElementsAreReadAsTheCompilerReadsThem) {
  for (const DType dtype : kTypes) {
    const bench::Format format = bench_format(dtype);
    const unsigned count = info(dtype).bits == 32 ? 100000 : 1U << info(dtype).bits;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned bits = info(dtype).bits == 32 ? i * 42949U : i;
      const double value = decode(dtype, bits);
      const bool finite = bench::magnitude_bits(bits, format.bytes) < format.not_finite;
      ASSERT_EQ(finite, std::isfinite(value)) << name(dtype) << " " << bits;
      if (!finite) continue;
      ASSERT_EQ(bench::decoded(bits, format), value) << name(dtype) << " " << bits;
    }
  }
}

TEST(BenchKernels, ElementsAreWrittenAsTheCompilerWritesThem) {
  for (const DType dtype : kTypes) {
    const bench::Format format = bench_format(dtype);
    for (const float value : {0.0F, 1.0F, -1.0F, -2.0F, 0.3F, 1.999F, 3.14159F, -5.2F}) {
      EXPECT_EQ(bench::encoded(value, format), encode(dtype, value)) << name(dtype) << " " << value;
    }
  }
  // Never infinity or NaN.
  EXPECT_EQ(bench::encoded(1e9F, bench_format(DType::kE4M3)), encode(DType::kE4M3, 448));
}

// A product of [M, K] and [N, K] in bf16, with its inputs made by the kernels.
class CheckTest : public testing::Test {
 protected:
  static constexpr std::int64_t kM = 96;
  static constexpr std::int64_t kN = 80;
  static constexpr std::int64_t kK = 640;

  void fill(bool integers) {
    const bench::Format format = bench_format(how_.a);
    bench::launch(kGrid, [&] {
      if (integers) {
        bench::kiln_fill_integers(a_.bytes.data(), kM * kK, format, 1, integer_density(kK));
        bench::kiln_fill_integers(b_.bytes.data(), kN * kK, format, 2, integer_density(kK));
      } else {
        bench::kiln_fill_normal(a_.bytes.data(), kM * kK, format, 1);
        bench::kiln_fill_normal(b_.bytes.data(), kN * kK, format, 2);
      }
    });
    exact_ = integers;
    for (std::int64_t i = 0; i < kM; ++i) {
      for (std::int64_t j = 0; j < kN; ++j) c_.set(at(i, j), sum(i, j, 0, kK));
    }
    other_ = c_;
  }
  static std::size_t at(std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * kN + j);
  }
  double sum(std::int64_t i, std::int64_t j, std::int64_t begin, std::int64_t end) const {
    double out = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      out += a_.get(static_cast<std::size_t>(i * kK + k)) *
             b_.get(static_cast<std::size_t>(j * kK + k));
    }
    return out;
  }
  bench::Bound bound() const {
    return exact_ ? exact_bound(how_) : bench_bound(vendor_numerics(how_, 90), how_);
  }
  bench::Product product() const {
    return {.a = factor_a(how_, a_.bytes.data()),
            .b = factor_b(how_, b_.bytes.data()),
            .depth = kK,
            .scale = 1,
            .bound = bound()};
  }
  bench::Output output() const { return {c_.bytes.data(), bench_format(how_.c)}; }

  static bench::Report empty() {
    bench::Report report{};
    report.first = ~bench::Word{0};
    return report;
  }
  bench::Report check(const bench::Product& product, const bench::Part& part) const {
    bench::Report report = empty();
    bench::launch(kGrid, [&] { bench::kiln_check(product, output(), part, &report); });
    return report;
  }
  bench::Report whole() const { return check(product(), part_of_rows(how_, nullptr, kM)); }
  // As against_fp64 of a large product does it.
  bench::Report sampled(std::int64_t lines) const {
    const auto rows = spread_indices(kM, lines, 2);
    const auto columns = spread_indices(kN, lines, 3);
    const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
    bench::Product turned = product();
    std::swap(turned.a, turned.b);
    const bench::Report one = check(product(), part_of_rows(how_, rows.data(), count(rows)));
    bench::Report both = check(turned, part_of_columns(how_, columns.data(), count(columns)));
    both.elements += one.elements;
    both.outside += one.outside;
    both.first = std::min(both.first, one.first);
    return both;
  }
  bench::Report compare(bool vendor) const {
    std::vector<double> a(kM);
    std::vector<double> b(kN);
    bench::Report report = empty();
    bench::launch(kGrid, [&] { bench::kiln_norms(product().a, kM, kK, a.data()); });
    bench::launch(kGrid, [&] { bench::kiln_norms(product().b, kN, kK, b.data()); });
    const bench::Other other{.data = vendor ? other_.bytes.data() : nullptr,
                             .a_norms = a.data(),
                             .b_norms = b.data(),
                             .scale = 1,
                             .ours = bound(),
                             .theirs = bound()};
    bench::launch(kGrid, [&] {
      bench::kiln_compare(output(), {.n = kN, .first = 0, .count = kM * kN}, other, &report);
    });
    return report;
  }

  gemm::Problem how_{
      .m = kM, .n = kN, .k = kK, .a = DType::kBF16, .b = DType::kBF16, .c = DType::kBF16};
  Tensor a_ = Tensor::zeros(DType::kBF16, {kM, kK});
  Tensor b_ = Tensor::zeros(DType::kBF16, {kN, kK});
  Tensor c_ = Tensor::zeros(DType::kBF16, {kM, kN});
  Tensor other_ = c_;
  bool exact_ = false;
};

TEST_F(CheckTest, ARightResultIsInside) {
  for (const bool integers : {false, true}) {
    fill(integers);
    const bench::Report all = whole();
    EXPECT_EQ(all.elements, bench::Word{kM * kN});
    EXPECT_EQ(all.outside, 0U);
    EXPECT_EQ(sampled(8).outside, 0U);
    EXPECT_EQ(sampled(8).elements, bench::Word{8 * (kM + kN)});
    EXPECT_EQ(compare(true).outside, 0U);
    EXPECT_EQ(compare(true).elements, bench::Word{kM * kN});
    EXPECT_EQ(compare(false).outside, 0U);
  }
}

TEST_F(CheckTest, OneWrongElementIsFound) {
  fill(true);
  const double right = c_.get(at(70, 33));
  c_.set(at(70, 33), right + 1);
  const bench::Report report = whole();
  EXPECT_EQ(report.outside, 1U);
  EXPECT_EQ(report.first, bench::Word{70 * kN + 33});
  EXPECT_EQ(compare(true).outside, 1U);
  EXPECT_EQ(compare(true).first, bench::Word{70 * kN + 33});
  const bench::Report alone = check(product(), part_of_element(how_, 70 * kN + 33));
  EXPECT_EQ(alone.expected, right);
  EXPECT_EQ(alone.actual, right + 1);
  EXPECT_LT(alone.bound, 1);
}

TEST_F(CheckTest, OneElementNobodyWroteIsFound) {
  fill(false);
  c_.bytes[2 * at(kM - 1, kN - 1)] = std::byte{0xff};
  c_.bytes[2 * at(kM - 1, kN - 1) + 1] = std::byte{0xff};
  EXPECT_EQ(compare(false).outside, 1U);
  EXPECT_EQ(compare(true).outside, 1U);
  EXPECT_EQ(compare(true).first, bench::Word{kM * kN - 1});
  other_ = c_;
  EXPECT_EQ(compare(true).outside, 1U);  // both have none there: that is no agreement
}

// One tile of 32 x 32 lacks the last 16 of the sum.
TEST_F(CheckTest, ALostStepOfOneTileIsFound) {
  for (const bool integers : {false, true}) {
    fill(integers);
    for (std::int64_t i = 32; i < 64; ++i) {
      for (std::int64_t j = 32; j < 64; ++j) c_.set(at(i, j), sum(i, j, 0, kK - 16));
    }
    EXPECT_GT(whole().outside, 500U) << integers;
    EXPECT_GT(sampled(8).outside, 50U) << integers;
    const bench::Word first = sampled(8).first;
    EXPECT_TRUE(first / kN >= 32 && first / kN < 64 && first % kN >= 32 && first % kN < 64);
    EXPECT_GT(compare(true).outside, 500U) << integers;
  }
}

TEST_F(CheckTest, TheOtherOrdersOfTheFactors) {
  fill(false);
  gemm::Problem turned = how_;
  turned.a_along_k = false;
  Tensor a = Tensor::zeros(DType::kBF16, {kK, kM});
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t k = 0; k < kK; ++k) {
      a.set(static_cast<std::size_t>(k * kM + i), a_.get(static_cast<std::size_t>(i * kK + k)));
    }
  }
  bench::Product product = this->product();
  product.a = factor_a(turned, a.bytes.data());
  EXPECT_EQ(check(product, part_of_rows(how_, nullptr, kM)).outside, 0U);
  product.a = factor_a(turned, a_.bytes.data());
  EXPECT_GT(check(product, part_of_rows(how_, nullptr, kM)).outside, 1000U);
}

TEST_F(CheckTest, BlockScalesAreApplied) {
  fill(false);
  std::vector<float> a_scales(kM * (kK / 128));
  std::vector<float> b_scales((kN + 127) / 128 * (kK / 128));
  bench::launch(kGrid, [&] {
    bench::kiln_fill_scales(a_scales.data(), static_cast<bench::Index>(a_scales.size()), 0, 5);
    bench::kiln_fill_scales(b_scales.data(), static_cast<bench::Index>(b_scales.size()), 1, 6);
  });
  for (const float scale : a_scales) ASSERT_TRUE(scale >= 0.5F && scale <= 2.0F);
  for (const float scale : b_scales) ASSERT_TRUE(scale == 1.0F || scale == 2.0F);
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN; ++j) {
      double all = 0;
      for (std::int64_t block = 0; block < kK / 128; ++block) {
        all += sum(i, j, 128 * block, 128 * block + 128) *
               a_scales[static_cast<std::size_t>(block * kM + i)] *
               b_scales[static_cast<std::size_t>(block)];
      }
      c_.set(at(i, j), all);
    }
  }
  bench::Product product = this->product();
  EXPECT_GT(check(product, part_of_rows(how_, nullptr, kM)).outside, 1000U);
  product.a.scale_k = product.b.scale_k = 128;
  product.a.scale_outer_step = 1;
  product.a.scale_k_step = kM;
  product.b.scale_outer_step = kK / 128;
  product.b.scale_k_step = 1;
  product.a.scales = a_scales.data();
  product.b.scales = b_scales.data();
  product.b.scale_outer = 128;
  EXPECT_EQ(check(product, part_of_rows(how_, nullptr, kM)).outside, 0U);
}

TEST(BenchSample, LargeProductsAreSampled) {
  EXPECT_TRUE(choose_sample({.m = 2048, .n = 2048, .k = 4096}, 0).whole);
  const Sample sample = choose_sample({.m = 4096, .n = 8192, .k = 4096}, 0);
  EXPECT_FALSE(sample.whole);
  ASSERT_EQ(sample.rows.size(), 32U);
  ASSERT_EQ(sample.columns.size(), 32U);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(sample.rows[i] / 128, static_cast<bench::Index>(i));
    EXPECT_EQ(sample.columns[i] / 256, static_cast<bench::Index>(i));
  }
  EXPECT_NE(sample.rows, choose_sample({.m = 4096, .n = 8192, .k = 4096}, 1).rows);
}

TEST(BenchSample, TheBoundIsTheCompilers) {
  const gemm::Problem how{
      .m = 1, .n = 1, .k = 4096, .a = DType::kE4M3, .b = DType::kE4M3, .c = DType::kBF16};
  const reference::EinsumNumerics numerics = vendor_numerics(how, 90);
  const bench::Bound bound = bench_bound(numerics, how);
  for (const double value : {0.0, 1.0, 37.5, -600.0}) {
    const reference::ProductSum sum{
        .value = value, .magnitude = 2600, .length = 4096, .largest = 5};
    const double wanted = reference::product_bound(sum, numerics, how.a, how.c);
    EXPECT_NEAR(bench::room_of(bound, value, 2600), wanted, 1e-9 * wanted);
  }
}

TEST_F(CheckTest, IntegersAreOfAllValuesAndSumsAreExact) {
  how_.a = how_.b = DType::kS8;
  how_.c = DType::kS32;
  a_ = Tensor::zeros(DType::kS8, {kM, kK});
  b_ = Tensor::zeros(DType::kS8, {kN, kK});
  c_ = Tensor::zeros(DType::kS32, {kM, kN});
  for (const bool small : {true, false}) {
    fill(small);
    std::set<double> values;
    for (std::size_t i = 0; i < kM * kK; ++i) values.insert(a_.get(i));
    EXPECT_EQ(values.size(), small ? 2U : 256U);  // 1 and -1
    EXPECT_EQ(whole().outside, 0U);
    EXPECT_EQ(compare(true).outside, 0U);
    c_.set(at(7, 9), sum(7, 9, 0, kK) + 1);
    EXPECT_EQ(whole().outside, 1U);
    EXPECT_EQ(whole().first, at(7, 9));
    EXPECT_EQ(compare(true).outside, 1U);
    EXPECT_EQ(compare(true).first, at(7, 9));
  }
}

TEST(BenchKernels, NormalValuesAreNormal) {
  constexpr bench::Index kCount = 200000;
  Tensor values = Tensor::zeros(DType::kF32, {kCount});
  const bench::Format format = bench_format(DType::kF32);
  bench::launch(kGrid, [&] { bench::kiln_fill_normal(values.bytes.data(), kCount, format, 9); });
  double sum = 0;
  double squares = 0;
  std::int64_t beyond = 0;  // two standard deviations
  for (std::size_t i = 0; i < kCount; ++i) {
    const double value = values.get(i);
    sum += value;
    squares += value * value;
    beyond += std::fabs(value) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(static_cast<double>(beyond) / kCount, 0.0455, 0.003);
}

TEST(BenchKernels, MetadataAreLegalAndExpandedAsTheLibraryDoes) {
  sparse::Compressed made{.packed = Tensor::zeros(DType::kF16, {48, 64}),
                          .metadata = Tensor::zeros(DType::kU8, {48, 16})};
  auto* metadata = reinterpret_cast<unsigned char*>(made.metadata.bytes.data());
  Tensor dense = Tensor::zeros(DType::kF16, {48, 128});
  bench::launch(kGrid, [&] {
    bench::kiln_fill_metadata(metadata, 48 * 16, 3);
    bench::kiln_fill_normal(made.packed.bytes.data(), 48 * 64, bench_format(DType::kF16), 4);
  });
  bench::launch(kGrid, [&] {
    bench::kiln_expand(made.packed.bytes.data(), metadata, dense.bytes.data(), 48 * 32, 2);
  });
  const auto expected = sparse::expand_2_4(made);
  ASSERT_TRUE(expected.has_value());
  EXPECT_EQ(dense.bytes, expected->bytes);
}

TEST(BenchKernels, MetadataWordsAreThoseOfTheLibrary) {
  std::vector<unsigned char> bytes(48 * 16);
  bench::launch(kGrid, [&] { bench::kiln_fill_metadata(bytes.data(), 48 * 16, 5); });
  const sparse::Matrix<const unsigned char> matrix{bytes.data(), 48, 16};
  for (const sparse::Words form : {sparse::Words::kRowPairs, sparse::Words::kRows}) {
    std::vector<std::uint32_t> expected(48 * 4);
    ASSERT_FALSE(sparse::pack_words(matrix, form, expected.data()));
    std::vector<unsigned> words(48 * 4, 1);
    const int pairs = form == sparse::Words::kRowPairs ? 1 : 0;
    bench::launch(kGrid,
                  [&] { bench::kiln_pack_words(bytes.data(), words.data(), 192, 4, pairs); });
    EXPECT_EQ(words, expected);
  }
}

TEST(BenchKernels, CompileForEveryArchitecture) {
  if (!runtime::find_nvrtc()) GTEST_SKIP() << "not tested: no NVRTC on this machine";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto cubin = runtime::compile(runtime::compile_request(
        bench_kernels_text(), *target::find_arch(arch), "bench_kernels.cu"));
    ASSERT_TRUE(cubin.has_value()) << cubin.error().text();
    EXPECT_EQ(cubin->log, "");
  }
}

}  // namespace
}  // namespace kiln::measure
