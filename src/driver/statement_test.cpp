#include "driver/statement.h"

#include <gtest/gtest.h>

namespace kiln::driver {
namespace {

TEST(ToleranceOption, HasTwoNumbersAndAnArray) {
  const auto parsed = [](const std::string& text, bool array) {
    Diagnostics diags;
    RunOptions options;
    options.tolerance = text;
    if (array) options.references = {"y=y.npy"};
    return parse_tolerance(options, diags).has_value();
  };
  EXPECT_TRUE(parsed("", false));
  EXPECT_TRUE(parsed("1e-3,0", true));
  for (const char* wrong : {"1e-3", "1,", ",1", "-1,0", "nan,0", "1,inf", "1,2,3", "x,1"}) {
    EXPECT_FALSE(parsed(wrong, true)) << wrong;
  }
  EXPECT_FALSE(parsed("1e-3,0", false));
}

}  // namespace
}  // namespace kiln::driver
