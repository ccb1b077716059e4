#include "ir/expr.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace kiln::ir {

namespace {

const Expr kM = Expr::var(VarId{0});
const Expr kN = Expr::var(VarId{1});
const Expr kK = Expr::var(VarId{2});

std::string text(const Expr& expr) {
  return expr.text([](VarId id) { return std::string(1, "mnk"[id.index]); });
}

TEST(Expr, HasOneNormalForm) {
  EXPECT_EQ(16 * kM + 3 + 16 * kM - 3, 32 * kM);
  EXPECT_EQ((kM + kN) * (kM - kN), kM * kM - kN * kN);
  EXPECT_EQ(kM * kN * kK, kK * (kN * kM));
  EXPECT_EQ(kM - kM, Expr());
  EXPECT_FALSE(kM == kN);
  EXPECT_EQ(min(kM, kN), min(kN, kM));
  EXPECT_EQ(max(kM, 7), max(7, kM));
}

TEST(Expr, OrderIsTotal) {
  const std::vector<Expr> all = {0,      1,       -1,     kM,          kN,
                                 2 * kM, kM * kN, kM + 1, cdiv(kM, 4), mod(kM, 4)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(compare(all[i], all[j]), -compare(all[j], all[i]));
      EXPECT_EQ(compare(all[i], all[j]) == 0, i == j);
    }
  }
}

TEST(Expr, DivisionsFold) {
  EXPECT_EQ(cdiv(64, 16), 4);
  EXPECT_EQ(cdiv(65, 16), 5);
  EXPECT_EQ(cdiv(-1, 16), 0);
  EXPECT_EQ(floor_div(-1, 16), -1);
  EXPECT_EQ(mod(-1, 16), 15);
  EXPECT_EQ(cdiv(INT64_MIN, 2), INT64_MIN / 2);
  EXPECT_EQ(cdiv(16 * kN, 16), kN);
  EXPECT_EQ(floor_div(16 * kN + 5, 16), kN);
  EXPECT_EQ(cdiv(16 * kN + 5, 16), kN + 1);
  EXPECT_EQ(mod(16 * kN + 5, 16), 5);
  EXPECT_EQ(mod(16 * kN + kM, 16), mod(kM, 16));
  EXPECT_EQ(floor_div(32 * kN + kM, 16), 2 * kN + floor_div(kM, 16));
  EXPECT_EQ(cdiv(kN, 1), kN);
  EXPECT_EQ(mod(kN, 1), 0);
  EXPECT_EQ(cdiv(kN, kN), 1);
  EXPECT_EQ(mod(kN, kN), 0);
  EXPECT_EQ(floor_div(0, kN), 0);
}

TEST(Expr, MinAndMaxFoldWhereTheDifferenceIsKnown) {
  EXPECT_EQ(min(kN, kN), kN);
  EXPECT_EQ(min(kN, kN + 1), kN);
  EXPECT_EQ(min(kN + 1, kN), kN);
  EXPECT_EQ(max(kN, kN - 4), kN);
  EXPECT_EQ(max(3, 4), 4);
}

TEST(Expr, ConstantsAndVariablesAreRecognised) {
  EXPECT_EQ(Expr().constant(), 0);
  EXPECT_EQ((kM + 4 - kM).constant(), 4);
  EXPECT_EQ(kM.constant(), std::nullopt);
  EXPECT_EQ(kN.as_var(), VarId{1});
  EXPECT_EQ((2 * kN).as_var(), std::nullopt);
  EXPECT_EQ((kN * kN).as_var(), std::nullopt);
}

TEST(Expr, TextIsReadable) {
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(-3), "-3");
  EXPECT_EQ(text(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(text(16 * kM + cdiv(kK, 16)), "16*m + cdiv(k, 16)");
  EXPECT_EQ(text(4 - kM), "-m + 4");
  EXPECT_EQ(text(-2 * kM * kN - 1), "-2*m*n - 1");
  EXPECT_EQ(text(min(kM, max(kN, 4)) * kK), "k*min(m, max(n, 4))");
}

TEST(Expr, KnowsItsVariables) {
  const Expr expr = 3 * kK + cdiv(kM, 4) * kK;
  std::vector<VarId> vars;
  expr.collect_vars(vars);
  EXPECT_EQ(vars.size(), 2u);
  EXPECT_TRUE(expr.uses(VarId{0}));
  EXPECT_FALSE(expr.uses(VarId{1}));
}

TEST(Expr, KnowsADivisorOfItsValues) {
  EXPECT_EQ((16 * kN + 8).known_divisor(), 8);
  EXPECT_EQ((kN + 8).known_divisor(), 1);
  EXPECT_EQ(Expr(0).known_divisor(), 0);
  EXPECT_EQ((16 * kN - 48 * kM * kN).known_divisor(), 16);
}

TEST(Expr, SubstitutionRefolds) {
  const Expr expr = cdiv(kM, 16) * kN + mod(kM, 16);
  const Expr put = expr.substitute(
      [](VarId id) { return id == VarId{0} ? std::optional(16 * kK) : std::nullopt; });
  EXPECT_EQ(put, kK * kN);
}

TEST(Expr, OverflowIsMarkedNotWrapped) {
  const Expr big(INT64_MAX);
  for (const Expr& over : {big + 1, big * 2, Expr(INT64_MIN) - 1, big * kM * 3 - big * kM}) {
    EXPECT_TRUE(over.overflowed());
    EXPECT_EQ(over.constant(), std::nullopt);
    EXPECT_TRUE((over + kM).overflowed());
    EXPECT_TRUE(cdiv(over, 4).overflowed());
    EXPECT_TRUE(over.substitute([](VarId) { return std::nullopt; }).overflowed());
    EXPECT_EQ(text(over), "<overflow>");
  }
  EXPECT_FALSE(cdiv(big + 1, 4) == Expr(0));
  EXPECT_FALSE((big + kM).overflowed());
}

TEST(Expr, EvaluationStaysInsideTheRange) {
  const std::vector<std::int64_t> large = {INT64_MAX / 2};
  EXPECT_EQ((kM * kM * kM).evaluate(large), INT64_MAX);
  EXPECT_EQ((0 - kM * kM * kM).evaluate(large), INT64_MIN);
  EXPECT_EQ(cdiv(kM, kN).evaluate(std::vector<std::int64_t>{7, 0}), 0);
}

// --- against a tree that is never simplified

struct Tree {
  enum Kind { kNumber, kVariable, kAdd, kSub, kMul, kAtom } kind = kNumber;
  AtomKind atom = AtomKind::kCDiv;
  std::int64_t number = 0;
  std::unique_ptr<Tree> left;
  std::unique_ptr<Tree> right;
};

std::int64_t naive_atom(AtomKind kind, std::int64_t a, std::int64_t b) {
  const bool divides = kind != AtomKind::kMin && kind != AtomKind::kMax;
  const std::int64_t rest = divides ? ((a % b) + b) % b : 0;
  switch (kind) {
    case AtomKind::kCDiv: return (a - rest) / b + (rest != 0 ? 1 : 0);
    case AtomKind::kFloorDiv: return (a - rest) / b;
    case AtomKind::kMod: return rest;
    case AtomKind::kMin: return a < b ? a : b;
    case AtomKind::kMax: return a < b ? b : a;
    case AtomKind::kVar: break;
  }
  return 0;
}

std::int64_t naive(const Tree& tree, const std::vector<std::int64_t>& values) {
  switch (tree.kind) {
    case Tree::kNumber: return tree.number;
    case Tree::kVariable: return values[static_cast<std::size_t>(tree.number)];
    case Tree::kAdd: return naive(*tree.left, values) + naive(*tree.right, values);
    case Tree::kSub: return naive(*tree.left, values) - naive(*tree.right, values);
    case Tree::kMul: return naive(*tree.left, values) * naive(*tree.right, values);
    case Tree::kAtom:
      return naive_atom(tree.atom, naive(*tree.left, values), naive(*tree.right, values));
  }
  return 0;
}

Expr simplified(const Tree& tree) {
  switch (tree.kind) {
    case Tree::kNumber: return tree.number;
    case Tree::kVariable: return Expr::var(VarId{static_cast<std::uint32_t>(tree.number)});
    case Tree::kAdd: return simplified(*tree.left) + simplified(*tree.right);
    case Tree::kSub: return simplified(*tree.left) - simplified(*tree.right);
    case Tree::kMul: return simplified(*tree.left) * simplified(*tree.right);
    case Tree::kAtom: return make_atom(tree.atom, simplified(*tree.left), simplified(*tree.right));
  }
  return 0;
}

class Trees {
 public:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::unique_ptr<Tree> make(int depth) {
    auto tree = std::make_unique<Tree>();
    const int pick = depth == 0 ? below(2) : below(6);
    tree->kind = static_cast<Tree::Kind>(pick);
    if (pick == Tree::kNumber) tree->number = below(41) - 20;
    if (pick == Tree::kVariable) tree->number = below(3);
    if (pick < Tree::kAdd) return tree;
    tree->left = make(depth - 1);
    tree->right = make(depth - 1);
    if (pick == Tree::kAtom) {
      tree->atom = static_cast<AtomKind>(1 + below(5));
      const bool divides = tree->atom != AtomKind::kMin && tree->atom != AtomKind::kMax;
      if (divides) tree->right = divisor();  // divisors are positive by contract
    }
    return tree;
  }

 private:
  std::unique_ptr<Tree> divisor() {
    auto tree = std::make_unique<Tree>();
    const bool variable = below(4) == 0;
    tree->kind = variable ? Tree::kVariable : Tree::kNumber;
    tree->number = variable ? below(3) : 1 + below(20);
    return tree;
  }

  std::mt19937 random_{7};
};

TEST(Expr, RandomTreesKeepTheirValues) {
  Trees trees;
  for (int round = 0; round < 2000; ++round) {
    const std::unique_ptr<Tree> tree = trees.make(4);
    const Expr expr = simplified(*tree);
    if (expr.overflowed()) continue;
    for (int point = 0; point < 5; ++point) {
      const std::vector<std::int64_t> values = {1 + trees.below(9), 1 + trees.below(9),
                                                1 + trees.below(9)};
      ASSERT_EQ(expr.evaluate(values), naive(*tree, values)) << text(expr);
      const Expr put = expr.substitute([&](VarId id) { return Expr(values[id.index]); });
      ASSERT_EQ(put.constant(), naive(*tree, values)) << text(expr);
    }
    const std::int64_t divisor = expr.known_divisor();
    if (divisor != 0) {
      ASSERT_EQ(naive(*tree, {3, 5, 7}) % divisor, 0) << text(expr);
    }
  }
}

}  // namespace

}  // namespace kiln::ir
