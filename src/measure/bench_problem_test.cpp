// The check of whole problems on the CPU: the kernels that run on the GPU, against results that a
// plain program made, right and wrong.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "ir/functions.h"
#include "measure/bench_check.h"
#include "measure/bench_kernels_cpu.h"
#include "measure/random_run.h"

namespace kiln::measure {
namespace {

using bench::Activation;
using bench::Filling;
using bench::Index;
using bench::Matrices;

constexpr bench::Grid kGrid{.blocks = 3, .threads = 32};  // fewer threads than elements
constexpr Index kM = 19;
constexpr Index kN = 13;
constexpr Index kK = 70;
constexpr Index kBatch = 2;
constexpr std::size_t kZone = 64;  // bytes

// An operand in host memory, between zones, all of it poison at first.
struct Held {
  std::vector<unsigned char> memory;
  Matrices all = {};

  Held() = default;
  Held(DType dtype, const Matrices& shape) : all(shape) {
    all.format = bench_format(dtype);
    const Index elements = all.count * all.matrix_step;
    memory.assign(2 * kZone + static_cast<std::size_t>(elements * all.format.bytes), 0xff);
    all.data = memory.data() + kZone;
  }
  Held(const Held&) = delete;
  Held& operator=(Held&& other) noexcept {
    memory = std::move(other.memory);
    all = other.all;
    return *this;
  }
  void fill(Filling filling, bench::Word seed) {
    bench::launch(kGrid, [&] { bench::kiln_fill_matrices(all, filling, 0, seed); });
  }
  [[nodiscard]] float get(Index matrix, Index row, Index column) const {
    return static_cast<float>(
        bench::value_of(bench::bits_at(all, {matrix, row, column}), all.format));
  }
  [[nodiscard]] std::uint64_t untouched() const {
    bench::Report report{};
    const bench::Surroundings memory_of = {.memory = memory.data(),
                                           .bytes = static_cast<Index>(memory.size()),
                                           .before = kZone,
                                           .poison = 0xff};
    bench::launch(kGrid, [&] { bench::kiln_untouched(memory_of, all, &report); });
    return report.outside;
  }
};

struct How {
  bool alpha = false;
  bool beta = false;
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::kNone;
};

How how_of(unsigned number) {
  return {(number & 1U) != 0, (number & 2U) != 0, (number & 4U) != 0, (number & 8U) != 0,
          static_cast<Activation>(number >> 4)};
}

// bf16 with gaps everywhere, computed as a kernel does it: sums, then f32 step by step.
class ProblemTest : public testing::Test {
 protected:
  void fill(const How& how, bool exact) {
    how_ = how;
    exact_ = exact;
    const Filling filling = exact ? Filling::kIntegers : Filling::kNormal;
    a_ = Held(DType::kBF16, shape(kM, kK, 5));
    b_ = Held(DType::kBF16, shape(kN, kK, 3));
    c_ = Held(DType::kBF16, shape(kM, kN, 4));
    before_ = Held(DType::kBF16, shape(kM, kN, 4));
    residual_ = Held(DType::kBF16, shape(kM, kN, 1));
    Matrices row = shape(1, kN, 0);
    row.count = 1;
    bias_ = Held(DType::kBF16, row);
    bench::Word seed = 0;
    for (Held* each : {&a_, &b_, &before_, &residual_, &bias_}) each->fill(filling, ++seed);
    alpha_ = exact ? -0.5 : 0.6875;
    beta_ = exact ? 2 : -1.375;
    compute(how);
  }
  static Matrices shape(Index rows, Index columns, Index gap) {
    Matrices out = {};
    out.rows = rows;
    out.columns = columns;
    out.row_step = columns + gap;
    out.count = kBatch;
    out.matrix_step = rows * out.row_step + 7 * gap;
    return out;
  }

  // C, as a kernel with this epilogue makes it.
  void compute(const How& how) {
    for (Index i = 0; i < kBatch * kM * kN; ++i) {
      const bench::Coordinates at = bench::coordinates_of(c_.all, i);
      set(at, epilogue(how, at, sum(at)));
    }
  }
  void set(const bench::Coordinates& at, float value) {
    const auto bits = static_cast<unsigned>(encode(DType::kBF16, value));
    bench::store_bits(c_.all.data, bench::place_of(c_.all, at), 2, bits);
  }
  [[nodiscard]] double sum(const bench::Coordinates& at) const {
    double out = 0;
    for (Index k = 0; k < kK; ++k) {
      out += static_cast<double>(a_.get(at.matrix, at.row, k)) * b_.get(at.matrix, at.column, k);
    }
    return out;
  }
  [[nodiscard]] float epilogue(const How& how, const bench::Coordinates& at, double made,
                               Index group = 0) const {
    auto x = static_cast<float>(made);
    if (how.alpha) x *= static_cast<float>(alpha_);
    if (how.beta) x += static_cast<float>(beta_) * before_.get(at.matrix, at.row, at.column);
    if (how.bias) x += bias_.get(0, group, at.column);
    if (how.activation == Activation::kRelu) x = std::max(x, 0.0F);
    if (how.activation == Activation::kGelu) {
      x = x * 0.5F * (std::erf(x * std::sqrt(0.5F)) + 1.0F);
    }
    if (how.activation == Activation::kSilu) x = x * (1.0F / (1.0F + std::exp(-x)));
    if (how.residual) x += residual_.get(at.matrix, at.row, at.column);
    return x;
  }

  [[nodiscard]] bench::Problem problem() const {
    const gemm::Problem product{
        .m = kM, .n = kN, .k = kK, .a = DType::kBF16, .b = DType::kBF16, .c = DType::kBF16};
    const auto factor = [](const Held& held) {
      bench::Factor out = {};
      out.data = held.all.data;
      out.format = held.all.format;
      out.outer_step = held.all.row_step;
      out.k_step = 1;
      return out;
    };
    const auto used = [](bool has, const Held& held) { return has ? held.all : Matrices{}; };
    return {.product = {.a = factor(a_),
                        .b = factor(b_),
                        .depth = kK,
                        .scale = 1,
                        .bound = exact_ ? exact_bound(product)
                                        : bench_bound(vendor_numerics(product, 90), product)},
            .a_step = a_.all.matrix_step,
            .b_step = b_.all.matrix_step,
            .a_scale_step = 0,
            .b_scale_step = 0,
            .c = c_.all,
            .epilogue = {.alpha = how_.alpha ? alpha_ : 1,
                         .beta = how_.beta ? beta_ : 0,
                         .before = used(how_.beta, before_),
                         .bias = used(how_.bias, bias_),
                         .residual = used(how_.residual, residual_),
                         .activation = how_.activation,
                         .roundoff = exact_ ? 0 : 0x1p-24,
                         .function_roundoff = 0x1p-24,
                         .smallest = smallest(DType::kF32),
                         .root_half = round_to(DType::kF32, std::sqrt(0.5)),
                         .function_ulps = ir::kFunctionUlps},
            .groups = {}};
  }
  [[nodiscard]] bench::Report check() const {
    bench::Report report{};
    bench::launch(kGrid, [&] { bench::kiln_clear_reports(&report, 1); });
    const bench::Problem all = problem();
    bench::launch(kGrid, [&] { bench::kiln_check_problem(all, &report); });
    bench::launch(kGrid, [&] { bench::kiln_describe_problem(all, &report); });
    return report;
  }
  // The element of C that is furthest from 0.
  [[nodiscard]] bench::Coordinates largest() const {
    bench::Coordinates out = {0, 0, 0};
    for (Index i = 0; i < kBatch * kM * kN; ++i) {
      const bench::Coordinates at = bench::coordinates_of(c_.all, i);
      const auto size = [&](const bench::Coordinates& of) {
        return std::fabs(c_.get(of.matrix, of.row, of.column));
      };
      if (size(at) > size(out)) out = at;
    }
    return out;
  }

  How how_;
  bool exact_ = false;
  double alpha_ = 1;
  double beta_ = 0;
  Held a_;
  Held b_;
  Held c_;
  Held before_;
  Held residual_;
  Held bias_;
};

constexpr How kAll = {true, true, true, true, Activation::kRelu};

TEST_F(ProblemTest, RightResultsAreInside) {
  for (unsigned number = 0; number < 64; ++number) {
    for (const bool exact : {false, true}) {
      fill(how_of(number), exact);
      const bench::Report report = check();
      EXPECT_EQ(report.elements, bench::Word{kBatch * kM * kN}) << number;
      EXPECT_EQ(report.outside, 0U) << number << (exact ? " exact" : "");
      EXPECT_EQ(c_.untouched(), 0U);
    }
  }
}

// The rounding to bf16 is most of what is allowed: two units in its last place are outside.
TEST_F(ProblemTest, TwoUnitsMoreAreOutside) {
  for (unsigned number = 0; number < 64; ++number) {
    for (const bool exact : {false, true}) {
      fill(how_of(number), exact);
      const bench::Coordinates at = largest();
      const unsigned bits = bench::bits_at(c_.all, at);
      bench::store_bits(c_.all.data, bench::place_of(c_.all, at), 2, bits ^ 2U);
      const bench::Report report = check();
      ASSERT_EQ(report.outside, 1U) << number << (exact ? " exact" : "");
      EXPECT_EQ(report.first, static_cast<bench::Word>((at.matrix * kM + at.row) * kN + at.column));
      EXPECT_EQ(report.actual, decode(DType::kBF16, bits ^ 2U));
      EXPECT_NEAR(report.expected, decode(DType::kBF16, bits), report.bound);
      EXPECT_LT(report.bound, std::fabs(report.expected) * 1.1 * 0x1p-8);
    }
  }
}

TEST_F(ProblemTest, AnElementThatNobodyWroteIsFound) {
  fill(kAll, false);
  bench::store_bits(c_.all.data, bench::place_of(c_.all, {0, 18, 12}), 2, 0xffff);
  const bench::Report report = check();
  EXPECT_EQ(report.outside, 1U);
  EXPECT_EQ(report.first, bench::Word{18 * kN + 12});
}

TEST_F(ProblemTest, EachPartThatIsForgottenIsFound) {
  for (const bool exact : {false, true}) {
    for (int part = 0; part < 5; ++part) {
      How how = kAll;
      fill(how, exact);
      if (part == 0) how.alpha = false;
      if (part == 1) how.beta = false;
      if (part == 2) how.bias = false;
      if (part == 3) how.residual = false;
      if (part == 4) how.activation = Activation::kNone;
      compute(how);
      EXPECT_GT(check().outside, 50U) << part;
    }
  }
}

TEST_F(ProblemTest, ActivationsAreToldApart) {
  const Activation all[] = {Activation::kNone, Activation::kRelu, Activation::kGelu,
                            Activation::kSilu};
  for (const Activation wanted : all) {
    for (const Activation done : all) {
      if (wanted == done) continue;
      fill({.activation = wanted}, false);
      compute({.activation = done});
      EXPECT_GT(check().outside, 10U);
    }
  }
}

TEST_F(ProblemTest, TheOtherMatrixOfABatchIsFound) {
  fill({}, true);
  for (Index i = 0; i < kM * kN; ++i) {
    const bench::Coordinates at = bench::coordinates_of(c_.all, i);
    set({1, at.row, at.column}, static_cast<float>(sum(at)));
  }
  EXPECT_GT(check().outside, 100U);
}

// Tiles of 8 rows, of which the second is passed over: rows of A with the matrices of B and the
// rows of the bias that their groups have.
class GroupsTest : public ProblemTest {
 protected:
  static constexpr Index kTileRows = 8;
  static constexpr int kOfTile[] = {1, -1, 0};
  bench::Groups groups_ = {.of_tile = kOfTile,
                           .tile_rows = kTileRows,
                           .count = kBatch,
                           .kept = {},
                           .rows = nullptr,
                           .room = 0};

  void fill_groups(const How& how, bool exact) {
    fill(how, exact);
    Matrices rows = shape(kBatch, kN, 2);
    rows.count = 1;
    bias_ = Held(DType::kBF16, rows);
    bias_.fill(exact ? Filling::kIntegers : Filling::kNormal, 77);
    kept_ = Held(DType::kBF16, shape(kM, kN, 4));
    bench::launch(kGrid, [&] { bench::kiln_copy_matrices(before_.all, kept_.all); });
    compute_groups(how, kOfTile);
  }
  // One matrix of C.
  void compute_groups(const How& how, const int* of_tile) {
    for (Index i = 0; i < kM * kN; ++i) {
      const bench::Coordinates at = bench::coordinates_of(c_.all, i);
      const int group = of_tile[at.row / kTileRows];
      float made = kept_.get(0, at.row, at.column);
      if (group >= 0) {
        double sum = 0;
        for (Index k = 0; k < kK; ++k) {
          sum += static_cast<double>(a_.get(0, at.row, k)) * b_.get(group, at.column, k);
        }
        made = epilogue(how, at, sum, group);
      }
      set(at, made);
    }
  }
  [[nodiscard]] bench::Report check_groups() const {
    bench::Report report{};
    bench::Problem all = problem();
    all.c.count = 1;
    all.groups = groups_;
    all.groups.kept = kept_.all;
    bench::launch(kGrid, [&] { bench::kiln_clear_reports(&report, 1); });
    bench::launch(kGrid, [&] { bench::kiln_check_problem(all, &report); });
    bench::launch(kGrid, [&] { bench::kiln_describe_problem(all, &report); });
    return report;
  }
  Held kept_;
};

constexpr How kBias = {.bias = true};

TEST_F(GroupsTest, RightResultsAreInside) {
  for (const How& how : {How{}, kBias, kAll}) {
    for (const bool exact : {false, true}) {
      fill_groups(how, exact);
      const bench::Report report = check_groups();
      EXPECT_EQ(report.elements, bench::Word{kM * kN});
      EXPECT_EQ(report.outside, 0U);
    }
  }
}

TEST_F(GroupsTest, OtherGroupsAreFound) {
  const int others[][3] = {{0, -1, 0}, {1, 0, 0}, {1, -1, 1}, {1, -1, -1}, {-1, -1, 0}};
  for (const auto& other : others) {
    for (const How& how : {How{}, kBias, kAll}) {
      fill_groups(how, true);
      compute_groups(how, other);
      EXPECT_GT(check_groups().outside, 20U);
    }
  }
}

// The same groups, said by numbers of rows.
TEST_F(GroupsTest, NumbersOfRowsSayItToo) {
  constexpr int kFollowing[] = {3, kTileRows + 1};
  constexpr int kApart[] = {-1, 2 * kTileRows};
  for (const Index room : {Index{0}, kTileRows}) {
    groups_.rows = room == 0 ? kFollowing : kApart;
    groups_.room = room;
    const int of_tile[] = {room == 0 ? 0 : -1, 1, room == 0 ? 1 : -1};
    fill_groups(kBias, true);
    EXPECT_GT(check_groups().outside, 20U);
    compute_groups(kBias, of_tile);
    EXPECT_EQ(check_groups().outside, 0U);
  }
}

TEST_F(GroupsTest, AnElementOfATileThatIsPassedOverIsKept) {
  fill_groups({}, false);
  set({0, 9, 5}, kept_.get(0, 9, 5) + 0.125F);
  const bench::Report report = check_groups();
  EXPECT_EQ(report.outside, 1U);
  EXPECT_EQ(report.first, bench::Word{9 * kN + 5});
  EXPECT_EQ(report.expected, kept_.get(0, 9, 5));
  EXPECT_EQ(report.bound, 0);
}

TEST_F(ProblemTest, WhatIsWrittenBesidesIsFound) {
  fill(kAll, false);
  auto* memory = static_cast<unsigned char*>(c_.all.data);
  const Index places[] = {-2,
                          -static_cast<Index>(kZone),
                          kN * 2,
                          (c_.all.row_step - 1) * 2,
                          (kM * c_.all.row_step + 3) * 2,
                          kBatch * c_.all.matrix_step * 2 + 11};
  for (const Index place : places) {
    EXPECT_EQ(c_.untouched(), 0U);
    memory[place] = 0;
    EXPECT_EQ(c_.untouched(), 1U) << place;
    memory[place] = 0xff;
  }
  memory[0] ^= 1;  // an element
  EXPECT_EQ(c_.untouched(), 0U);
}

TEST_F(ProblemTest, OtherBitsAreFound) {
  fill(kAll, false);
  Held other(DType::kBF16, shape(kM, kN, 4));
  bench::launch(kGrid, [&] { bench::kiln_copy_matrices(c_.all, other.all); });
  EXPECT_EQ(other.untouched(), 0U);
  const auto differ = [&](const Matrices& some) {
    bench::Report report{};
    report.first = ~bench::Word{0};
    bench::launch(kGrid, [&] { bench::kiln_same(some, other.all, &report); });
    bench::launch(kGrid, [&] { bench::kiln_describe_same(some, other.all, &report); });
    return report;
  };
  EXPECT_EQ(differ(c_.all).outside, 0U);
  EXPECT_EQ(differ(c_.all).elements, bench::Word{kBatch * kM * kN});
  bench::store_bits(other.all.data, bench::place_of(other.all, {1, 3, 2}), 2, 0x4000);
  const bench::Report report = differ(c_.all);
  EXPECT_EQ(report.outside, 1U);
  EXPECT_EQ(report.first, bench::Word{(kM + 3) * kN + 2});
  EXPECT_EQ(report.expected, 2);
  EXPECT_EQ(report.actual, c_.get(1, 3, 2));
  Matrices rows = c_.all;
  rows.rows = 3;  // it is not among these
  EXPECT_EQ(differ(rows).outside, 0U);
}

TEST(ProblemValues, IntegersAndTf32AreRead) {
  const bench::Format s8 = bench_format(DType::kS8);
  const bench::Format s32 = bench_format(DType::kS32);
  const bench::Format tf32 = bench_format(DType::kTF32);
  for (unsigned bits = 0; bits < 256; ++bits) {
    ASSERT_EQ(bench::value_of(bits, s8), decode(DType::kS8, bits));
    ASSERT_LT(bench::magnitude_bits(bits, s8.bytes), s8.not_finite);
  }
  for (const unsigned bits : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU, 0x01234567U}) {
    EXPECT_EQ(bench::value_of(bits, s32), decode(DType::kS32, bits));
    EXPECT_LT(bench::magnitude_bits(bits, s32.bytes), s32.not_finite);
  }
  for (const float value : {1.0F, 3.14159265F, -1e-20F, 6.5e8F}) {
    EXPECT_EQ(bench::value_of(std::bit_cast<unsigned>(value), tf32), cut_to_tf32(value));
  }
  EXPECT_EQ(bench::made_up_bits(200, Filling::kNormal, 0, s8) & 0xffU, 200U);
}

TEST(ProblemValues, NumbersOfGroupsAreAllThereAreAndTwoMore) {
  std::array<int, 5> seen = {};
  const bench::Format s32 = bench_format(DType::kS32);
  for (Index i = 0; i < 1000; ++i) {
    const unsigned bits = bench::made_up_bits(bench::random_bits(3, i), Filling::kGroups, 3, s32);
    const auto group = static_cast<int>(bits);
    ASSERT_TRUE(-1 <= group && group <= 3) << group;
    ++seen[static_cast<std::size_t>(group + 1)];
  }
  for (const int count : seen) EXPECT_GT(count, 150);
}

TEST(ProblemValues, NumbersOfRowsFillMoreThanHalfOfTheLastTile) {
  std::array<int, 4> tiles = {};
  const bench::Format s32 = bench_format(DType::kS32);
  for (Index i = 0; i < 1000; ++i) {
    const unsigned bits =
        bench::made_up_bits(bench::random_bits(3, i), Filling::kGroupRows, 3, s32);
    const auto rows = static_cast<int>(bits);
    ASSERT_TRUE(rows == 0 || (rows > 0 && (rows - 1) % 128 >= 64)) << rows;
    ++tiles[static_cast<std::size_t>((rows + 127) / 128)];
  }
  for (const int count : tiles) EXPECT_GT(count, 150);
}

TEST(ProblemValues, FactorsBecomePowersOfTwo) {
  EXPECT_EQ(exact_factor(0.6875), 0.5);
  EXPECT_EQ(exact_factor(-1.375), -1);
  EXPECT_EQ(exact_factor(2), 2);
}

// Each part of a sum and each block of scaled sums is one f32 operation more.
TEST(ProblemValues, TheBoundFollowsTheKernel) {
  const gemm::Problem plain{.m = 64, .n = 64, .k = 1024};
  const reference::EinsumNumerics numerics = {};
  const double one = random_bound(plain, {.kernel = "x"}, numerics).relative;
  const double parts =
      random_bound(plain, {.kernel = "x", .defines = {{"SPLITS", "8"}}}, numerics).relative;
  EXPECT_DOUBLE_EQ(parts - one, 7 * 0x1p-24);
  gemm::Problem scaled = plain;
  scaled.block_scales = true;
  EXPECT_DOUBLE_EQ(random_bound(scaled, {.kernel = "x"}, numerics).relative - one, 10 * 0x1p-24);
}

}  // namespace
}  // namespace kiln::measure

namespace kiln::bench {

namespace {

template <class... Values, std::size_t... I>
void call(void (*kernel)(Values...), void** parameters, std::index_sequence<I...>) {
  launch({}, [&] { kernel(*static_cast<Values*>(parameters[I])...); });
}

template <class... Values>
void call(void (*kernel)(Values...), void** parameters) {
  call(kernel, parameters, std::index_sequence_for<Values...>());
}

}  // namespace

// The kernel of this name, by one thread: they stride over what others would do. For
// bench_random_test.cpp.
void run_on_cpu(const char* kernel, void** parameters) {
  const std::string_view name = kernel;
  if (name == "kiln_fill_matrices") return call(kiln_fill_matrices, parameters);
  if (name == "kiln_copy_matrices") return call(kiln_copy_matrices, parameters);
  if (name == "kiln_clear_reports") return call(kiln_clear_reports, parameters);
  if (name == "kiln_untouched") return call(kiln_untouched, parameters);
  if (name == "kiln_same") return call(kiln_same, parameters);
  if (name == "kiln_describe_same") return call(kiln_describe_same, parameters);
  if (name == "kiln_check_problem") return call(kiln_check_problem, parameters);
  if (name == "kiln_describe_problem") return call(kiln_describe_problem, parameters);
  KILN_UNREACHABLE("no kernel `{}`", name);
}

}  // namespace kiln::bench
