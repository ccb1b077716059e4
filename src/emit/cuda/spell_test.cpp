#include "emit/cuda/spell.h"

#include <gtest/gtest.h>

#include "emit/cuda/lane_map.h"
#include "emit/cuda/names.h"
#include "ir/registers.h"
#include "target/copy.h"
#include "target/mma.h"

namespace kiln::emit {
namespace {

using ir::Expr;
using ir::VarId;

const Expr kM = Expr::var(VarId{0});  // never negative
const Expr kK = Expr::var(VarId{1});  // never negative
const Expr kAny = Expr::var(VarId{2});

VarFacts facts() {
  return {.name = [](VarId id) { return std::string(1, "mkx"[id.index]); },
          .never_negative = [](VarId id) { return id.index < 2; }};
}

std::string text(const Expr& expr) { return spell(expr, facts()).text; }

// Evaluates what `text` says with C's rules; the expressions here need + - * / % and brackets.
class Calculator {
 public:
  Calculator(std::string_view text, const std::vector<std::int64_t>& values)
      : text_(text), values_(values) {}
  std::int64_t value() { return sum(); }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::int64_t sum() {
    std::int64_t out = product();
    for (;;) {
      if (take('+')) {
        out += product();
      } else if (take('-')) {
        out -= product();
      } else {
        return out;
      }
    }
  }
  std::int64_t product() {
    std::int64_t out = factor();
    for (;;) {
      if (take('*')) {
        out *= factor();
      } else if (take('/')) {
        out /= factor();
      } else if (take('%')) {
        out %= factor();
      } else {
        return out;
      }
    }
  }
  std::int64_t factor() {
    if (take('-')) return -factor();
    if (take('(')) {
      const std::int64_t out = sum();
      take(')');
      return out;
    }
    if (peek() >= 'a') return values_[std::string_view("mkx").find(text_[at_++])];
    std::int64_t out = 0;
    while (peek() >= '0' && peek() <= '9') out = out * 10 + (text_[at_++] - '0');
    return out;
  }

  std::string_view text_;
  const std::vector<std::int64_t>& values_;
  std::size_t at_ = 0;
};

TEST(SpellTest, SumsReadAsTheyAreWritten) {
  EXPECT_EQ(text(Expr(16) * kM + Expr(3)), "16 * m + 3");
  EXPECT_EQ(text(Expr(0)), "0");
  EXPECT_EQ(text(Expr(-5)), "-5");
  EXPECT_EQ(text(kM * kK), "m * k");
  EXPECT_EQ(text(Expr(3) - kM), "-m + 3");
}

TEST(SpellTest, DivisionIsPlainOnlyWhereNothingIsNegative) {
  EXPECT_EQ(text(floor_div(kM, Expr(4))), "m / 4");
  EXPECT_EQ(text(floor_div(kAny, Expr(4))), "kiln::floor_div(x, 4)");
  EXPECT_EQ(text(mod(kM - kK, Expr(4))), "kiln::mod(m - k, 4)");
  EXPECT_EQ(text(cdiv(kM, Expr(16))), "kiln::cdiv(m, 16)");
}

TEST(SpellTest, SpellingsHaveTheExpressionsValue) {
  const Expr cases[] = {
      Expr(8) * floor_div(kM, Expr(4)) + Expr(2) * mod(kM, Expr(4)),
      floor_div(floor_div(kM, Expr(3)) + kK, Expr(5)) * kM,
      mod(kM + Expr(2) * kK, Expr(7)) * kK - Expr(9),
      kM * floor_div(kK, Expr(2)) * mod(kM, Expr(5)) - kM * kM,
      floor_div(kM * kK, kM + Expr(1)),
      Expr(-3) * floor_div(kM, Expr(4)) + kK,
  };
  for (const Expr& expr : cases) {
    const std::string spelled = text(expr);
    for (std::int64_t m = 0; m < 12; ++m) {
      for (std::int64_t k = 0; k < 12; ++k) {
        const std::vector<std::int64_t> values = {m, k, 0};
        EXPECT_EQ(Calculator(spelled, values).value(), expr.evaluate(values)) << spelled;
      }
    }
  }
}

TEST(SpellTest, LiteralsAreOfTheirType) {
  EXPECT_EQ(literal(DType::kF32, 2).text, "2.0f");
  EXPECT_EQ(literal(DType::kF32, 0.1).text, "0.1f");
  EXPECT_EQ(literal(DType::kF64, 0.1).text, "0.1");
  EXPECT_EQ(literal(DType::kF64, 1e30).text, "1e+30");
  EXPECT_EQ(literal(DType::kF16, 0.1).text, "kiln::f16(0.099975586f)");
  EXPECT_EQ(literal(DType::kS32, -7).text, "-7");
  EXPECT_EQ(literal(DType::kU32, 7).text, "7u");
  EXPECT_EQ(literal(DType::kS64, 7).text, "7ll");
  EXPECT_EQ(literal(DType::kU8, 300).text, "kiln::u8(255)");
  EXPECT_EQ(literal(DType::kBool, 1).text, "true");
  EXPECT_EQ(literal(DType::kS32, -0x1p31).text, "(-2147483647 - 1)");
}

TEST(NamesTest, UsersNamesStayUnlessCppForbidsThem) {
  EXPECT_EQ(legal_name("block_m"), "block_m");
  EXPECT_EQ(legal_name("for"), "for_");
  EXPECT_EQ(legal_name("7"), "v7");
  EXPECT_EQ(legal_name("_x"), "v_x");
  EXPECT_EQ(legal_name("m16n8k16.f32"), "m16n8k16_f32");
  EXPECT_EQ(legal_name("threadIdx"), "threadIdx_");
  EXPECT_EQ(legal_name("assert"), "assert_");
  EXPECT_EQ(legal_name("M_PIf64"), "M_PIf64_");
  EXPECT_EQ(legal_name("cudaSuccess"), "v_cudaSuccess");
  EXPECT_EQ(legal_name("size_t"), "size_t");
  EXPECT_EQ(kernel_name("size_t"), "size_t_");
  EXPECT_EQ(kernel_name("float4"), "float4_");
  EXPECT_EQ(kernel_name("CU_STREAM"), "v_CU_STREAM");
  NameTable names;
  EXPECT_EQ(names.claim("tile"), "tile");
  EXPECT_EQ(names.claim("tile"), "tile_2");
  EXPECT_EQ(names.claim("tile_2"), "tile_2_2");
}

TEST(LaneMapTest, PlacesAreThoseOfTheMap) {
  const Expr lane = kM;
  const Expr value = kK;
  for (const target::Mma& mma : target::all_mmas()) {
    // Of rows that differ in N alone, one is enough.
    if (mma.reads_shared && mma.shape.n != 24) continue;
    for (const target::Operand operand :
         {target::Operand::kA, target::Operand::kB, target::Operand::kC}) {
      if (!has_map(mma, operand)) continue;
      const Layout& map = map_of(mma, operand);
      const int rows = extents(mma, operand).rows;
      const PlaceExpr of_lane = place_of(mode(map, 0), rows, lane);
      const PlaceExpr of_value = place_of(mode(map, 1), rows, value);
      for (std::int64_t l = 0; l < mma.lanes; ++l) {
        for (std::int64_t v = 0; v < target::values_of(mma, operand); ++v) {
          const std::vector<std::int64_t> at = {l, v, 0};
          EXPECT_EQ((of_lane.row + of_value.row).evaluate(at), map(l, v) % rows) << mma.name;
          EXPECT_EQ((of_lane.col + of_value.col).evaluate(at), map(l, v) / rows) << mma.name;
        }
      }
    }
  }
}

TEST(LaneMapTest, MatricesLieWhereTheBitsOfTheirNumberPutThem) {
  using Pairs = std::vector<std::int64_t>;
  EXPECT_TRUE(ir::lie_by_bits(Pairs{8, 16}));
  EXPECT_TRUE(ir::lie_by_bits(Pairs{0, 32, 8, 0}));
  EXPECT_TRUE(ir::lie_by_bits(Pairs{0, 0, 8, 0, 0, 16, 8, 16}));
  EXPECT_FALSE(ir::lie_by_bits(Pairs{0, 0, 0, 16, 0, 32, 8, 0}));
  EXPECT_FALSE(ir::lie_by_bits(Pairs{0, 0, 8, 0, 16, 0}));
  EXPECT_FALSE(ir::lie_by_bits(Pairs{0, 0, 8}));
}

TEST(LaneMapTest, MatrixRowsAreThoseOfTheList) {
  const target::Copy* x4 = target::find_copy("ldmatrix.x4");
  ASSERT_NE(x4, nullptr);
  const std::int64_t pairs[] = {0, 0, 8, 0, 0, 8, 8, 8};
  const PlaceExpr row = place_of(x4->address_map, 8, kM);
  const PlaceExpr matrix = matrix_place(pairs, row.col);
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    const std::vector<std::int64_t> at = {lane, 0, 0};
    const auto m = static_cast<std::size_t>(lane / 8);
    EXPECT_EQ(row.row.evaluate(at), lane % 8);
    EXPECT_EQ(matrix.row.evaluate(at), pairs[2 * m]);
    EXPECT_EQ(matrix.col.evaluate(at), pairs[2 * m + 1]);
  }
}

}  // namespace
}  // namespace kiln::emit
