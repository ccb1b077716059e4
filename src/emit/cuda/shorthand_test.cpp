#include "emit/cuda/shorthand.h"

#include <gtest/gtest.h>

namespace kiln::emit {
namespace {

using ir::Expr;
using ir::VarId;

const Expr kRowsOfAll = Expr::var(VarId{0});
const Expr kRound = Expr::var(VarId{1});
const Expr kBlock = Expr::var(VarId{2});
const VarId kName = VarId{3};

std::string formula(const Expr& expr) {
  return expr.text([](VarId id) { return std::string(1, "mrbn"[id.index]); });
}

std::string shortened_text(const Expr& expr, const Expr& value) {
  return formula(shortened(expr, value, kName));
}

TEST(ShortenedTest, TheValueItselfAndItsMultiples) {
  const Expr tile = kBlock + Expr(132) * kRound;
  EXPECT_EQ(shortened_text(tile, tile), "n");
  EXPECT_EQ(shortened_text(Expr(128) * tile, tile), "128*n");
  EXPECT_EQ(shortened_text(Expr(0) - tile, tile), "-n");
}

TEST(ShortenedTest, PartsOfSums) {
  const Expr tile = kBlock + Expr(132) * kRound;
  EXPECT_EQ(shortened_text(Expr(64) * tile + kRowsOfAll + 3, tile), "m + 64*n + 3");
  EXPECT_EQ(shortened_text(kRowsOfAll + 1, kRowsOfAll + 1), "n");
}

TEST(ShortenedTest, OperandsAtAnyDepth) {
  const Expr tiles = cdiv(kRowsOfAll, Expr(128));
  EXPECT_EQ(shortened_text(cdiv(tiles * kBlock, Expr(132)), tiles), "cdiv(b*n, 132)");
  EXPECT_EQ(shortened_text(mod(kRound * tiles + kBlock, Expr(4)) + 1, kRound * tiles + kBlock),
            "mod(n, 4) + 1");
}

TEST(ShortenedTest, WhatIsNotWhollyThereStays) {
  const Expr tile = kBlock + Expr(132) * kRound;
  EXPECT_EQ(shortened_text(kBlock + Expr(131) * kRound, tile), "131*r + b");
  EXPECT_EQ(shortened_text(kRound + 2, kRound + 1), "r + 2");
  EXPECT_EQ(shortened_text(kRound, kRound + 1), "r");
  EXPECT_EQ(
      shortened_text(Expr(3) * kBlock + Expr(6) * kRound, Expr(2) * kBlock + Expr(4) * kRound),
      "6*r + 3*b");
}

TEST(ShortenedTest, TheLeastNumberIsNoMultiple) {
  const Expr least = Expr(INT64_MIN) * kBlock + Expr(INT64_MIN);
  EXPECT_EQ(shortened(least, Expr(0) - kBlock - 1, kName), least);
  EXPECT_EQ(shortened(kBlock + 1, least, kName), kBlock + 1);
}

TEST(ShortenedTest, WhatIsTooLongStays) {
  const Expr none = Expr(INT64_MAX) + 1;
  EXPECT_TRUE(shortened(none, kRowsOfAll + 1, kName).overflowed());
}

}  // namespace
}  // namespace kiln::emit
