// Each row, run through its maps, is a plain matrix product; and within the bound its row promises.
#include "target/execute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "target/fragment.h"

namespace kiln::target {
namespace {

using Values = std::vector<double>;

struct Problem {
  Values a;  // m x k, by rows
  Values b;  // n x k, by rows
  Values c;  // m x n, by rows
};

template <class Draw>
Problem draw_problem(const Mma& mma, Draw&& draw) {
  Problem out;
  const auto fill = [&](Values& values, int count, DType dtype) {
    for (int i = 0; i < count; ++i) values.push_back(round_to(dtype, draw()));
  };
  fill(out.a, mma.shape.m * mma.shape.k, mma.a);
  fill(out.b, mma.shape.n * mma.shape.k, mma.b);
  fill(out.c, mma.shape.m * mma.shape.n, mma.acc);
  return out;
}

std::size_t at(int row, int cols, int col) { return static_cast<std::size_t>(row * cols + col); }

// Distributes a row-major tile over the lanes, or collects it.
Values to_registers(const Mma& mma, Operand operand, const Values& tile) {
  const TileExtents whole = extents(mma, operand);
  const Fragment fragment = fragment_layout(mma, operand, whole.rows, whole.cols);
  Values out(at(fragment.lanes, fragment.values, 0));
  for (int lane = 0; lane < fragment.lanes; ++lane) {
    for (int value = 0; value < fragment.values; ++value) {
      const Element element = element_of(fragment, lane, value);
      out[at(lane, fragment.values, value)] = tile[at(element.row, whole.cols, element.col)];
    }
  }
  return out;
}

Values from_registers(const Mma& mma, Operand operand, const Values& registers) {
  const TileExtents whole = extents(mma, operand);
  const Fragment fragment = fragment_layout(mma, operand, whole.rows, whole.cols);
  Values out(at(whole.rows, whole.cols, 0));
  for (int lane = 0; lane < fragment.lanes; ++lane) {
    for (int value = 0; value < fragment.values; ++value) {
      const Element element = element_of(fragment, lane, value);
      out[at(element.row, whole.cols, element.col)] = registers[at(lane, fragment.values, value)];
    }
  }
  return out;
}

// All dense rows; of a warpgroup's that differ in N alone a few.
std::vector<const Mma*> tried_rows() {
  std::vector<const Mma*> out;
  for (const Mma& mma : all_mmas()) {
    const int n = mma.shape.n;
    if (mma.sparse) continue;
    if (!mma.reads_shared || n == 8 || n == 48 || n == 256) out.push_back(&mma);
  }
  return out;
}

// A warpgroup's row: the shares of its four warps, each with its rows of A and all of B.
Values run_warps(const Mma& mma, const Problem& problem) {
  constexpr std::size_t kWarps = 4;
  const MmaExecutor executor(mma);
  Values b(problem.b.size());  // by columns
  for (int n = 0; n < mma.shape.n; ++n) {
    for (int k = 0; k < mma.shape.k; ++k) {
      b[at(k, mma.shape.n, n)] = problem.b[at(n, mma.shape.k, k)];
    }
  }
  Values c = to_registers(mma, Operand::kC, problem.c);
  const std::size_t a_share = problem.a.size() / kWarps;
  const std::size_t c_share = c.size() / kWarps;
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    executor.run_warp(std::span(problem.a).subspan(warp * a_share, a_share), b,
                      std::span(c).subspan(warp * c_share, c_share));
  }
  return from_registers(mma, Operand::kC, c);
}

Values run(const Mma& mma, const Problem& problem) {
  if (mma.reads_shared) return run_warps(mma, problem);
  Values c = to_registers(mma, Operand::kC, problem.c);
  execute_mma(mma, to_registers(mma, Operand::kA, problem.a),
              to_registers(mma, Operand::kB, problem.b), c);
  return from_registers(mma, Operand::kC, c);
}

// What execute.h promises: one truncation to f32, one rounding to f16, a chain of f64.
double model_roundoff(const Mma& mma) {
  if (mma.acc == DType::kF32) return 2 * roundoff(DType::kF32);
  return mma.acc == DType::kF64 ? mma.shape.k * roundoff(DType::kF64) : roundoff(mma.acc);
}

struct Reference {
  Values sum;
  Values magnitude;  // the sum of absolute values
};

Reference plain_product(const Mma& mma, const Problem& problem) {
  Reference out;
  for (int m = 0; m < mma.shape.m; ++m) {
    for (int n = 0; n < mma.shape.n; ++n) {
      double sum = problem.c[at(m, mma.shape.n, n)];
      double magnitude = std::fabs(sum);
      for (int k = 0; k < mma.shape.k; ++k) {
        const double term = problem.a[at(m, mma.shape.k, k)] * problem.b[at(n, mma.shape.k, k)];
        sum += term;
        magnitude += std::fabs(term);
      }
      out.sum.push_back(sum);
      out.magnitude.push_back(magnitude);
    }
  }
  return out;
}

TEST(ExecuteMma, SmallIntegersAreExact) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> integers(-4, 4);
  for (const Mma* mma : tried_rows()) {
    const Problem problem =
        draw_problem(*mma, [&] { return static_cast<double>(integers(random)); });
    EXPECT_EQ(run(*mma, problem), plain_product(*mma, problem).sum) << mma->name;
  }
}

TEST(ExecuteMma, RandomValuesStayWithinTheRowsBoundAndAreOfTheAccumulatorsType) {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  for (const Mma* row : tried_rows()) {
    const Mma& mma = *row;
    const int rounds = mma.reads_shared ? 3 : 20;  // larger tiles
    int inexact = 0;
    for (int round = 0; round < rounds; ++round) {
      const Problem problem = draw_problem(mma, [&] { return normal(random); });
      const Values result = run(mma, problem);
      const Reference reference = plain_product(mma, problem);
      // The reference itself is in double.
      const double u = model_roundoff(mma) + (mma.acc == DType::kF64 ? mma.shape.k * 0x1p-53 : 0);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const double error = std::fabs(result[i] - reference.sum[i]);
        ASSERT_LE(error, u * reference.magnitude[i]) << mma.name;
        ASSERT_EQ(result[i], round_to(mma.acc, result[i])) << mma.name;
        inexact += error > 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(inexact > 0, is_float(mma.acc)) << mma.name << " rounded " << inexact << " times";
  }
}

TEST(ExecuteMma, PromisesLessThanItsRowAllows) {
  for (const Mma* mma : tried_rows()) {
    EXPECT_LE(model_roundoff(*mma), mma->acc_roundoff) << mma->name;
  }
}

// A in registers: each of the warp's lanes has the elements that the row's map gives it.
TEST(ExecuteMma, WarpsOfAWarpgroupTakeAFromRegistersByTheMap) {
  for (const Mma* mma : tried_rows()) {
    if (!mma->reads_shared) continue;
    const MmaExecutor executor(*mma);
    const int values = values_of(*mma, Operand::kA);
    ASSERT_EQ(executor.a_places().size(), static_cast<std::size_t>(32 * values)) << mma->name;
    for (int lane = 0; lane < 32; ++lane) {
      for (int value = 0; value < values; ++value) {
        const auto element = static_cast<int>(mma->a_map(lane, value));
        const std::size_t place = at(element % mma->shape.m, mma->shape.k, element / mma->shape.m);
        ASSERT_EQ(executor.a_places()[at(lane, values, value)], place) << mma->name;
      }
    }
  }
}

TEST(ExecuteMma, IntegersWrapAroundAtThirtyTwoBits) {
  const Mma& mma = *find_mma("m16n8k32.s32.u8");
  Problem problem = draw_problem(mma, [] { return 255.0; });
  problem.c.assign(problem.c.size(), 2147483647.0);
  // 2^31 - 1 + 32 * 255^2 - 2^32
  for (const double value : run(mma, problem)) ASSERT_EQ(value, -2147483649.0 + 32 * 255 * 255);
  problem.a.assign(problem.a.size(), 0);
  for (const double value : run(mma, problem)) ASSERT_EQ(value, 2147483647.0);
}

TEST(ExecuteMma, NotANumberAndInfinityReachTheirRowAlone) {
  for (const Mma* row : tried_rows()) {
    const Mma& mma = *row;
    if (!is_float(mma.acc)) continue;
    Problem problem = draw_problem(mma, [] { return 1.0; });
    problem.a[at(3, mma.shape.k, 2)] = std::numeric_limits<double>::infinity();
    problem.a[at(5, mma.shape.k, 1)] = std::numeric_limits<double>::quiet_NaN();
    const Values result = run(mma, problem);
    for (int m = 0; m < mma.shape.m; ++m) {
      for (int n = 0; n < mma.shape.n; ++n) {
        const double value = result[at(m, mma.shape.n, n)];
        ASSERT_EQ(std::isinf(value), m == 3) << mma.name;
        ASSERT_EQ(std::isnan(value), m == 5) << mma.name;
      }
    }
  }
}

TEST(Rounding, TowardsZeroIsTheLargestFloatNotBeyond) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  for (int exponent = -155; exponent < 128; ++exponent) {
    const double value = std::ldexp(mantissa(random), exponent);
    if (std::fabs(value) >= 0x1p128) continue;
    const double rounded = round_towards_zero_f32(value);
    const auto as_float = static_cast<float>(rounded);
    ASSERT_EQ(rounded, static_cast<double>(as_float)) << value;
    ASSERT_LE(std::fabs(rounded), std::fabs(value));
    const float away = std::copysign(std::numeric_limits<float>::infinity(), as_float);
    const auto next = static_cast<double>(
        std::nextafter(rounded == 0 ? std::copysign(0.0F, static_cast<float>(value)) : as_float,
                       rounded == 0 && value < 0 ? -away : away));
    ASSERT_GT(std::fabs(next), std::fabs(value)) << value;
  }
  EXPECT_EQ(round_towards_zero_f32(0.0), 0.0);
  EXPECT_TRUE(std::isinf(round_towards_zero_f32(-0x1p128)));
  EXPECT_TRUE(std::isnan(round_towards_zero_f32(std::nan(""))));
}

// What a warpgroup's instruction reads of an f32: 10 bits of mantissa, towards zero.
TEST(Rounding, CutToTf32IsTheLargestOfItsValuesNotBeyond) {
  EXPECT_EQ(cut_to_tf32(1 + 0x1p-10), 1 + 0x1p-10);
  EXPECT_EQ(cut_to_tf32(1 + 0x1.ffep-11), 1.0);
  EXPECT_EQ(cut_to_tf32(-1 - 0x1.ffep-11), -1.0);
  EXPECT_EQ(cut_to_tf32(0.0), 0.0);
  EXPECT_TRUE(std::isinf(cut_to_tf32(-std::numeric_limits<double>::infinity())));
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 1000; ++round) {
    const auto value = static_cast<double>(normal(random));
    const double cut = cut_to_tf32(value);
    ASSERT_EQ(round_to(DType::kTF32, cut), cut) << value;
    ASSERT_LE(std::fabs(cut), std::fabs(value));
    ASSERT_LE(std::fabs(value - cut), 0x1p-10 * std::fabs(value));
  }
}

TEST(Rounding, ToNearestHalfEqualsTheTypesOwn) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  for (int round = 0; round < 20000; ++round) {
    const double value = std::ldexp(mantissa(random), round % 50 - 30);
    ASSERT_EQ(round_to_nearest_f16(value), round_to(DType::kF16, value)) << value;
  }
  // Every half, and every midpoint between two: the ties.
  for (std::uint64_t bits = 0; bits < 0x7bff; ++bits) {
    const double here = decode(DType::kF16, bits);
    const double tie = (here + decode(DType::kF16, bits + 1)) / 2;
    ASSERT_EQ(round_to_nearest_f16(here), here);
    ASSERT_EQ(round_to_nearest_f16(-tie), round_to(DType::kF16, -tie)) << tie;
  }
  EXPECT_TRUE(std::isinf(round_to_nearest_f16(65520.0)));
  EXPECT_EQ(round_to_nearest_f16(65519.9), 65504.0);
}

}  // namespace
}  // namespace kiln::target
