// The rows of function.def keep what their columns promise.
#include "ir/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/names.h"

namespace kiln::ir {
namespace {

// Numbers of the row's interval, in order.
std::vector<double> samples(const FunctionInfo& row) {
  std::vector<double> out = {0};
  for (double x = 0x1p-40; x < 0x1p10; x *= 1.37) {
    out.push_back(x);
    if (-x >= row.least) out.push_back(-x);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Functions, AreFoundByTheirKindAndNamedOnce) {
  std::set<std::string_view> names;
  std::set<std::string_view> spellings;
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_EQ(&info(row.kind), &row);
    EXPECT_EQ(name_of(row.kind), row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (!row.spelling.empty()) {
      EXPECT_TRUE(spellings.insert(row.spelling).second) << row.spelling;
    }
  }
  EXPECT_EQ(names.size() + 3, enum_names<UnaryKind>().size());  // and three operators
}

// By this the reference bounds what a function makes of an interval.
TEST(Functions, RiseOrFallAllTheWay) {
  for (const FunctionInfo& row : all_functions()) {
    bool rises = false;
    bool falls = false;
    double before = row.value(samples(row).front());
    for (const double x : samples(row)) {
      const double value = row.value(x);
      EXPECT_FALSE(std::isnan(value)) << row.name << " of " << x;
      rises = rises || value > before;
      falls = falls || value < before;
      before = value;
    }
    EXPECT_NE(rises, falls) << row.name;
  }
}

TEST(Functions, HaveNoValueOutsideOfTheirInterval) {
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_TRUE(std::isnan(row.value(std::nan("")))) << row.name;
    EXPECT_TRUE(std::isinf(row.least) || std::isnan(row.value(row.least - 0.5))) << row.name;
    EXPECT_TRUE(std::isinf(row.most) || std::isnan(row.value(row.most + 0.5))) << row.name;
  }
}

TEST(Functions, AreOffByNoMoreThanTheLargestBound) {
  for (const FunctionInfo& row : all_functions()) {
    EXPECT_LE(std::max(row.f32_ulps, row.f64_ulps), kFunctionUlps) << row.name;
  }
}

}  // namespace
}  // namespace kiln::ir
