#include "ir/cuda_text.h"

#include <gtest/gtest.h>

namespace kiln::ir {

namespace {

using Names = std::vector<std::string>;

TEST(CudaText, PlacesAreFilledInOrder) {
  const auto passed = [](std::size_t i) { return format("p{}", i); };
  const auto number = [](std::size_t i) { return format("n{}", i); };
  EXPECT_EQ(fill_in_cuda("%_ = f(%#, %_, 7 %% 2, %#);", passed, number),
            "p0 = f(n0, p1, 7 % 2, n1);");
  const CudaPlaces places = places_in_cuda("%_ = f(%#, %_, 7 %% 2, %#);");
  EXPECT_EQ(places.passed, 2U);
  EXPECT_EQ(places.numbers, 2U);
}

TEST(CudaText, ATextWithoutPlacesComesOutAsItIs) {
  const std::string text = "a %= b; asm(\"%0\"); 100%";
  const auto none = [](std::size_t) { return std::string("?"); };
  EXPECT_EQ(fill_in_cuda(without_places(text), none, none), text);
}

TEST(CudaText, NamesAreWordsThatAreNoMembers) {
  EXPECT_EQ(names_in_cpp("x[i] = threadIdx.x + p->y + n::z;"),
            (Names{"x", "i", "threadIdx", "p", "n"}));
  EXPECT_EQ(names_in_cpp("f(\"a b\", 'c') /* d */ // e\n+ 0x1f + g2;"), (Names{"f", "g2"}));
}

TEST(CudaText, WhatATextDeclaresIsItsOwn) {
  EXPECT_EQ(names_in_cpp("int row = lane >> 2; row += 1;"), (Names{"int", "lane"}));
  EXPECT_EQ(names_in_cpp("if (done) return total;"), (Names{"if", "done", "return", "total"}));
}

TEST(CudaText, AVariableIsSetByWhatStandsAroundIt) {
  for (const char* text : {"x = 1;", "x += 1;", "++x;", "x --;", "f(& x);", "y = 2; x <<= 1;",
                           "asm(\"\" : \"=r\"(x));"}) {
    EXPECT_TRUE(may_set_in_cpp(text, "x")) << text;
  }
  for (const char* text : {"y = x;", "if (x == 1 && x <= 2) f(x);", "x[i] = 1;", "/* x = */ y = x;",
                           "a && x;", "xy = 1;"}) {
    EXPECT_FALSE(may_set_in_cpp(text, "x")) << text;
  }
}

TEST(CudaText, AsidesEndWhereCppSays) {
  EXPECT_EQ(end_of_aside("\"a\\\"b\" c", 0), 6U);
  EXPECT_EQ(end_of_aside("// a", 0), 4U);
  EXPECT_EQ(end_of_aside("a", 0), 0U);
}

}  // namespace

}  // namespace kiln::ir
