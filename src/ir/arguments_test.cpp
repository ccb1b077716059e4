#include "ir/arguments.h"

#include "ir/samples_for_test.h"

namespace kiln::ir {

namespace {

using Indices = std::vector<std::size_t>;

TEST(Arguments, FollowsWindowsToTheParameters) {
  const Module module = parsed(kMatmul);
  EXPECT_EQ(written_params(module.functions[0]), (Indices{2}));
  EXPECT_EQ(read_params(module.functions[0]), (Indices{0, 1}));
}

TEST(Arguments, AScalarIsReadAsAValueOrThroughItsVariable) {
  const Module module = parsed(kElements);
  EXPECT_EQ(written_params(module.functions[0]), (Indices{1}));
  EXPECT_EQ(read_params(module.functions[0]), (Indices{0, 2, 3}));
}

TEST(Arguments, AnUnusedParameterIsNeither) {
  const Module module = parsed(
      "module form=tile\nfunc @f(%x: view<f32, global, [4]>, %n: s32 as n) {\nvar n: scalar\n"
      "%w = subview base=%x origin=[0] : view<f32, global, [2]>\n}\n");
  EXPECT_EQ(written_params(module.functions[0]), Indices{});
  EXPECT_EQ(read_params(module.functions[0]), Indices{});
}

TEST(Arguments, ACopyOntoItselfReadsAndWrites) {
  const Module module =
      parsed("module form=tile\nfunc @f(%x: view<f32, global, [4]>) {\ncopy src=%x dst=%x\n}\n");
  EXPECT_EQ(written_params(module.functions[0]), (Indices{0}));
  EXPECT_EQ(read_params(module.functions[0]), (Indices{0}));
}

TEST(Arguments, WhatIsAddedToIsRead) {
  const Module module = parsed(
      "module form=tile\nfunc @f(%sums: view<f32, global, [64]>, %count: view<s32, global, [1]>) "
      "{\n"
      "var b: parallel < 1\nparallel level=block vars=[b] threads=32 body={\n"
      "%s = alloc : view<f32, shared, [64]>\ncopy src=%s dst=%sums bulk adds\n"
      "%one = const value=1 : s32\n%old = atomic kind=add view=%count index=[0] value=%one : s32\n"
      "}\n}\n");
  EXPECT_EQ(written_params(module.functions[0]), (Indices{0, 1}));
  EXPECT_EQ(read_params(module.functions[0]), (Indices{0, 1}));
}

}  // namespace

}  // namespace kiln::ir
