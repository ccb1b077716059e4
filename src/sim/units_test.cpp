// Scalars, index expressions, addresses and counts, each alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/scalar.h"
#include "sim/tally.h"

namespace kiln::sim {

namespace {

using ir::BinaryKind;

Scalar f(double value) {
  Scalar out;
  out.f = value;
  return out;
}
Scalar i(std::int64_t value) {
  Scalar out;
  out.i = value;
  return out;
}

TEST(Scalars, FloatsAreRoundedAfterEachOperation) {
  EXPECT_EQ(apply(BinaryKind::kAdd, DType::kF16, f(2048), f(1))->f, 2048);
  EXPECT_EQ(apply(BinaryKind::kAdd, DType::kF16, f(2048), f(3))->f, 2052);
  EXPECT_EQ(apply(BinaryKind::kMul, DType::kF32, f(16777217.0F), f(1))->f, 16777216);
  EXPECT_EQ(apply(BinaryKind::kDiv, DType::kF32, f(1), f(3))->f, static_cast<double>(1.0F / 3.0F));
  EXPECT_EQ(apply(BinaryKind::kMul, DType::kF16, f(60000), f(2))->f,
            std::numeric_limits<double>::infinity());
}

TEST(Scalars, IntegersWrapAndTruncate) {
  EXPECT_EQ(apply(BinaryKind::kMul, DType::kU8, i(200), i(2))->i, 144);
  EXPECT_EQ(apply(BinaryKind::kAdd, DType::kS32, i(INT32_MAX), i(1))->i, INT32_MIN);
  EXPECT_EQ(apply(BinaryKind::kAdd, DType::kS64, i(INT64_MAX), i(1))->i, INT64_MIN);
  EXPECT_EQ(apply(BinaryKind::kDiv, DType::kS32, i(-7), i(2))->i, -3);
  EXPECT_EQ(apply(BinaryKind::kRem, DType::kS32, i(-7), i(2))->i, -1);
  EXPECT_EQ(apply(BinaryKind::kDiv, DType::kS64, i(INT64_MIN), i(-1))->i, INT64_MIN);
  EXPECT_EQ(apply(BinaryKind::kDiv, DType::kU64, i(-1), i(2))->i, INT64_MAX);
  EXPECT_FALSE(apply(BinaryKind::kDiv, DType::kS32, i(1), i(0)));
  EXPECT_EQ(apply(BinaryKind::kSub, DType::kU32, i(0), i(1))->i, 0xffffffff);
}

TEST(Scalars, ComparisonsKnowTheSign) {
  EXPECT_EQ(apply(BinaryKind::kLt, DType::kS64, i(-1), i(1))->i, 1);
  EXPECT_EQ(apply(BinaryKind::kLt, DType::kU64, i(-1), i(1))->i, 0);
  EXPECT_EQ(apply(BinaryKind::kMax, DType::kU64, i(-1), i(1))->i, -1);
  EXPECT_EQ(apply(BinaryKind::kNe, DType::kF32, f(NAN), f(NAN))->i, 1);
}

TEST(Scalars, Shifts) {
  EXPECT_EQ(apply(BinaryKind::kShl, DType::kS32, i(1), i(31))->i, INT32_MIN);
  EXPECT_EQ(apply(BinaryKind::kShl, DType::kS32, i(1), i(32))->i, 0);
  EXPECT_EQ(apply(BinaryKind::kShr, DType::kS32, i(-8), i(1))->i, -4);
  EXPECT_EQ(apply(BinaryKind::kShr, DType::kS32, i(-8), i(40))->i, -1);
  EXPECT_EQ(apply(BinaryKind::kShr, DType::kU32, i(0x80000000), i(31))->i, 1);
}

TEST(Scalars, Conversions) {
  EXPECT_EQ(convert(DType::kF32, DType::kS32, f(-2.9)).i, -2);
  EXPECT_EQ(convert(DType::kF32, DType::kS32, f(1e20)).i, INT32_MAX);
  EXPECT_EQ(convert(DType::kF32, DType::kS64, f(1e30)).i, INT64_MAX);
  EXPECT_EQ(convert(DType::kF32, DType::kU64, f(1e30)).i, -1);
  EXPECT_EQ(convert(DType::kS32, DType::kU8, i(-1)).i, 255);
  EXPECT_EQ(convert(DType::kS32, DType::kS8, i(200)).i, -56);
  EXPECT_EQ(convert(DType::kF32, DType::kF16, f(2049)).f, 2048);
  // By way of double this would round to 2^54 + 2^31 and then to even, one unit of f32 too low.
  EXPECT_EQ(convert(DType::kS64, DType::kF32, i((std::int64_t{1} << 54) + (1 << 30) + 1)).f,
            static_cast<double>(static_cast<float>((std::int64_t{1} << 54) + (1 << 30) + 1)));
  EXPECT_EQ(convert(DType::kF32, DType::kBool, f(0.25)).i, 1);
}

TEST(IndexExprs, FoldWhatTheHostKnows) {
  const ir::Expr block = ir::Expr::var(ir::VarId{0});
  const ir::Expr k = ir::Expr::var(ir::VarId{1});
  const VarFacts facts{{false, true}, {0, 40}, {true, true}};
  const IndexExpr folded(block * ir::Expr(32) + cdiv(k, 16) * ir::Expr(16) - ir::Expr(8), facts);
  EXPECT_FALSE(folded.constant());
  EXPECT_TRUE(folded.uniform());
  std::array<std::int64_t, 2 * kLanes> vars = {};
  vars[5] = 3;
  EXPECT_EQ(folded.evaluate(vars.data(), 5), 96 + 48 - 8);
  EXPECT_TRUE(IndexExpr(cdiv(k, 16), facts).constant());
}

TEST(IndexExprs, KeepWhatOnlyLanesKnow) {
  const ir::Expr t = ir::Expr::var(ir::VarId{0});
  const VarFacts facts{{false}, {0}, {false}};
  const IndexExpr expr(t * t + min(mod(t, 4), floor_div(t, 2)) - max(t, 3), facts);
  EXPECT_FALSE(expr.uniform());
  std::array<std::int64_t, kLanes> vars = {};
  for (std::int64_t lane = 0; lane < 32; ++lane) vars[static_cast<std::size_t>(lane)] = lane;
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(expr.evaluate(vars.data(), static_cast<std::uint32_t>(lane)),
              lane * lane + std::min(lane % 4, lane / 2) - std::max<std::int64_t>(lane, 3));
  }
}

TEST(Numbers, QuickConversionsEqualTheTable) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      std::byte stored[2] = {static_cast<std::byte>(bits & 0xff),
                             static_cast<std::byte>(bits >> 8)};
      const double quick = load_number(dtype, stored);
      const double wanted = decode(dtype, bits);
      EXPECT_TRUE(quick == wanted || (std::isnan(quick) && std::isnan(wanted))) << bits;
      EXPECT_EQ(std::signbit(quick), std::signbit(wanted)) << bits;
    }
  }
}

TEST(Buffers, AddressesAndBack) {
  const ir::ViewType type{
      DType::kF16, ir::Space::kShared, {ir::Expr(2), ir::Expr(8), ir::Expr(64)}};
  Buffer buffer = make_buffer("s", type, {2, 8, 64});
  buffer.offset = 1024;
  EXPECT_EQ(buffer.address({1, 2, 3}), 1024 + (1 * 8 + 2) * 128 + 6);
  buffer.layout.swizzle = 128;
  // Row 10 of 16: chunk 0 lies at chunk 10 % 8 = 2.
  EXPECT_EQ(buffer.address({1, 2, 3}), 1024 + 10 * 128 + 2 * 16 + 6);
  EXPECT_EQ(buffer.element_text(1024 + 10 * 128 + 2 * 16 + 7), "s[1, 2, 3]");
}

Request request(std::initializer_list<std::int64_t> addresses) {
  Request out;
  for (const std::int64_t address : addresses) out.add(address);
  return out;
}

std::int64_t conflicts(std::int64_t bytes, std::int64_t stride, std::uint32_t lanes) {
  Request all;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) all.add(lane * stride);
  Tally tally;
  tally.shared_wavefronts(all, bytes);
  return tally.counters().bank_conflicts;
}

TEST(BankConflicts, ByHand) {
  EXPECT_EQ(conflicts(4, 4, 32), 0);     // 32 banks
  EXPECT_EQ(conflicts(4, 8, 32), 1);     // every other bank, twice
  EXPECT_EQ(conflicts(4, 128, 32), 31);  // one bank
  EXPECT_EQ(conflicts(4, 0, 32), 0);     // one word for all
  EXPECT_EQ(conflicts(2, 2, 32), 0);     // two lanes to a word
  EXPECT_EQ(conflicts(8, 8, 32), 0);     // half warps
  EXPECT_EQ(conflicts(16, 16, 32), 0);   // quarter warps
  EXPECT_EQ(conflicts(16, 32, 32), 4);   // 8 lanes over 256 bytes: two wavefronts, four times
  EXPECT_EQ(conflicts(16, 128, 8), 7);   // a column of a 64-wide f16 tile without swizzle
  EXPECT_EQ(conflicts(16, 144, 8), 0);   // padded by 16 bytes
}

TEST(Sectors, CountDistinctOnes) {
  Tally tally;
  tally.global(Issue::kLoadGlobal, request({0, 4, 28, 32, 96, 0}), 4);
  EXPECT_EQ(tally.counters().sectors_global, 3);
  tally.global(Issue::kLoadGlobal, request({24}), 16);
  EXPECT_EQ(tally.counters().sectors_global, 5) << "bytes 24 to 39 touch two";
  tally.global(Issue::kLoadGlobal, request({}), 4);
  EXPECT_EQ(tally.counters().instructions.at("ld.global.4"), 1) << "nobody asked";
}

}  // namespace

}  // namespace kiln::sim
