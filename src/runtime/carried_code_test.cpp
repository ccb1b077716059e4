#include "runtime/carried_code.h"

#include <gtest/gtest.h>

namespace kiln::runtime {
namespace {

CompileRequest request_of(std::string text, const char* arch) {
  return compile_request(std::move(text), *target::find_arch(arch), "scale.cu");
}

TEST(CarriedCode, IsFoundByAllThatItWasMadeOf) {
  const CompileRequest request = request_of("// one of the test's", "sm_80");
  EXPECT_EQ(find_carried(request), std::nullopt);
  carry(code_key(request).hex(), std::string_view("\0code", 5));
  carry(code_key(request).hex(), "another");
  EXPECT_EQ(find_carried(request), std::string("\0code", 5));
  EXPECT_EQ(find_carried(request_of("// one of the test's ", "sm_80")), std::nullopt);
  EXPECT_EQ(find_carried(request_of("// one of the test's", "sm_86")), std::nullopt);
  CompileRequest other = request;
  other.headers = other.headers.subspan(1);
  EXPECT_EQ(find_carried(other), std::nullopt);
}

TEST(CarriedCode, RunsOnLaterMinorVersionsOfItsArchitecture) {
  const auto runs = [](const char* code, const char* device) {
    return target::runs_code_of(*target::find_arch(device), *target::find_arch(code));
  };
  EXPECT_TRUE(runs("sm_80", "sm_80"));
  EXPECT_TRUE(runs("sm_80", "sm_86"));
  EXPECT_FALSE(runs("sm_86", "sm_80"));
  EXPECT_FALSE(runs("sm_80", "sm_90a"));
}

}  // namespace
}  // namespace kiln::runtime
