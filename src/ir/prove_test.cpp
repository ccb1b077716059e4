#include "ir/prove.h"

#include "ir/samples_for_test.h"

namespace kiln::ir {

namespace {

// A function with a dimension N, a scalar s, a block axis b < cdiv(N, 16), a group axis w < 4, a
// thread axis t < 32, a loop i < 8 and one of a run-time length, and bound integers of each kind,
// one of which has an extent.
const Function& sample() {
  static const Module module = parsed(R"(module arch=sm_80 form=tile

func @f(global %x: view<s32, global, [N, 64]>, %s: s32 as s) {
  var N: dim
  var s: scalar
  var b: parallel < cdiv(N, 16)
  var one: parallel < 1
  var w: parallel < 4
  var t: parallel < 32
  var i: loop < 8
  var j: loop < t
  var early: loop < 8
  var late: loop < N
  var at_b: bound
  var at_t: bound
  var half: bound
  var slot: bound < 3
  parallel level=block vars=[b, one] threads=128 name="f" body={
    %ib = index expr=b : s32
    %two = const value=2 : s32
    %hb = binary kind=div left=%ib right=%two : s32
    bind var=half value=%hb
    %rb = read view=%x index=[b, 0] : s32
    bind var=at_b value=%rb
    %rs = read view=%x index=[b, 1] : s32
    bind var=slot value=%rs
    parallel level=group vars=[w] unit=32 body={
      %iw = index expr=w : s32
      parallel level=thread vars=[t] unit=1 body={
        for var=i upper=8 body={
        }
        for var=j upper=t body={
        }
        for var=early lower=-1 upper=8 body={
        }
        for var=late lower=N - 5 upper=N body={
        }
        %rt = read view=%x index=[b, t] : s32
        bind var=at_t value=%rt
      }
    }
  }
}
)");
  return module.functions[0];
}

VarId var_named(std::string_view name) {
  const Function& f = sample();
  for (std::size_t i = 0; i < f.vars.size(); ++i) {
    const VarId id{static_cast<std::uint32_t>(i)};
    if (f.vars[id].name == name) return id;
  }
  ADD_FAILURE() << "no variable named " << name;
  return {};
}

Expr v(std::string_view name) { return Expr::var(var_named(name)); }

std::string upper(const Expr& expr) {
  const auto bound = upper_bound(sample(), expr);
  return bound ? sample().text(*bound) : "none";
}

TEST(UpperBound, ReplacesEachVariableByItsWorstValue) {
  EXPECT_EQ(upper(16 * v("w") + 15), "63");
  EXPECT_EQ(upper(7 - v("i")), "7");
  EXPECT_EQ(upper(v("w") * v("i")), "21");
  EXPECT_EQ(upper(16 * v("b")), "16*cdiv(N, 16) - 16");
  EXPECT_EQ(upper(mod(v("t"), 4)), "3");
  EXPECT_EQ(upper(floor_div(v("t"), 4)), "7");
  EXPECT_EQ(upper(min(v("i"), v("at_t"))), "7");
  EXPECT_EQ(upper(v("at_t")), "none");
  EXPECT_EQ(upper(v("w") * v("s")), "none") << "s may be negative";
}

TEST(UpperBound, ABoundVariableWithAnExtentStaysBelowIt) {
  EXPECT_EQ(upper(64 * v("slot")), "128");
  EXPECT_EQ(minimum(sample(), v("slot") + 1), 1);
  EXPECT_EQ(minimum(sample(), v("at_b") + 1), std::nullopt);
  EXPECT_TRUE(always_less_equal(sample(), v("slot") + 1, 3));
  EXPECT_FALSE(always_less_equal(sample(), v("slot") + 1, 2));
}

TEST(Minimum, ADimensionIsAtLeastOne) {
  EXPECT_EQ(minimum(sample(), v("N") + 2), 3);
  EXPECT_EQ(minimum(sample(), cdiv(v("N"), 16)), 1);
  EXPECT_EQ(minimum(sample(), v("b") * 16), 0);
  EXPECT_EQ(minimum(sample(), v("N") - v("b")), std::nullopt);
  EXPECT_EQ(minimum(sample(), v("s")), std::nullopt);
}

TEST(Minimum, ALoopBeginsWhereItSays) {
  EXPECT_EQ(minimum(sample(), v("i")), 0);
  EXPECT_EQ(minimum(sample(), v("early")), -1);
  EXPECT_EQ(minimum(sample(), v("late")), -4);
  EXPECT_EQ(upper(v("early") * v("w")), "none") << "a factor may be negative";
  EXPECT_EQ(upper(3 - v("early")), "4");
  EXPECT_FALSE(always_less_equal(sample(), 0, v("early")));
  EXPECT_TRUE(always_less_equal(sample(), -1, v("early")));
}

TEST(AlwaysLessEqual, ProvesTilesInsideConstantBuffers) {
  const Function& f = sample();
  EXPECT_TRUE(always_less_equal(f, 16 * v("w") + 16, 64));
  EXPECT_FALSE(always_less_equal(f, 16 * v("w") + 17, 64));
  EXPECT_TRUE(always_less_equal(f, v("i"), 7));
  EXPECT_FALSE(always_less_equal(f, 16 * v("b") + 16, v("N"))) << "the last tile overhangs";
  EXPECT_TRUE(always_less_equal(f, v("b"), cdiv(v("N"), 16)));
  EXPECT_FALSE(always_less_equal(f, v("s"), v("s") - 1));
}

TEST(AlwaysLessEqual, QuotientsByConstantsAreBoundedByWhatTheyDivide) {
  const Function& f = sample();
  const Expr n = v("N");
  EXPECT_TRUE(always_less_equal(f, n, 16 * cdiv(n, 16)));
  EXPECT_TRUE(always_less_equal(f, 16 * cdiv(n, 16), n + 15));
  EXPECT_FALSE(always_less_equal(f, 16 * cdiv(n, 16), n + 14));
  EXPECT_TRUE(always_less_equal(f, 16 * floor_div(n, 16), n));
  EXPECT_FALSE(always_less_equal(f, n, 16 * floor_div(n, 16) + 14));
  EXPECT_TRUE(always_less_equal(f, n, 16 * floor_div(n, 16) + 15));
  EXPECT_TRUE(always_less_equal(f, n, 16 * cdiv(n, 32) + 16 * cdiv(n, 32)));
  EXPECT_FALSE(always_less_equal(f, n, 16 * cdiv(n, 32)));
  EXPECT_TRUE(always_less_equal(f, 8 * cdiv(n, 16), n + 7)) << "8 * cdiv(n, 16) <= (n + 15) / 2";
}

TEST(AlwaysLessEqual, NothingIsProvedOfAnOverflow) {
  const Expr huge = Expr(INT64_MAX) + 1;
  EXPECT_FALSE(always_less_equal(sample(), huge, 5));
  EXPECT_FALSE(always_less_equal(sample(), 5, huge));
  EXPECT_FALSE(always_divisible(huge, 2));
}

TEST(AlwaysDivisible, LooksAtTheCoefficients) {
  EXPECT_TRUE(always_divisible(16 * v("w") + 8 * v("i"), 8));
  EXPECT_FALSE(always_divisible(16 * v("w") + 8 * v("i"), 16));
  EXPECT_TRUE(always_divisible(0, 128));
}

TEST(VariesIn, ABlockIsUniformInItsOwnAxesAndWhatFollowsFromThem) {
  const Function& f = sample();
  for (std::string_view uniform : {"N", "s", "b", "one", "half", "at_b", "i"}) {
    EXPECT_FALSE(varies_in(f, var_named(uniform), Level::kBlock)) << uniform;
  }
  for (std::string_view varying : {"w", "t", "j", "at_t"}) {
    EXPECT_TRUE(varies_in(f, var_named(varying), Level::kBlock)) << varying;
  }
}

TEST(VariesIn, AWarpIsUniformInItsGroupIndex) {
  EXPECT_FALSE(varies_in(sample(), var_named("w"), Level::kGroup));
  EXPECT_TRUE(varies_in(sample(), var_named("t"), Level::kGroup));
}

}  // namespace

}  // namespace kiln::ir
