#include "ir/never_negative.h"

#include "ir/samples_for_test.h"

namespace kiln::ir {

namespace {

// Cells that count by one from 0, by one from a parameter, by two, down, from nothing, by what is read from memory or by that of another
// cell, that hold random numbers, and that grow by half of themselves; each is bound to a variable. Others are made of the first.
const Function& counting() {
  static const Module module = parsed(R"(module arch=sm_80 form=tile

func @f(global %x: view<s32, global, [N]>, %s: s32 as s) {
  var N: dim
  var s: scalar
  var b: parallel < 4
  var i: loop < 8
  var one: bound
  var from_s: bound
  var two: bound
  var down: bound
  var nothing: bound
  var rest: bound
  var larger: bound
  var any: bound
  var copy: bound
  var random: bound
  var half: bound
  var slot: bound
  var j: loop < 8
  var passed: bound
  parallel level=block vars=[b] threads=128 name="f" body={
    %zero = const value=0 : s32
    %step = const value=1 : s32
    %steps = const value=2 : s32
    %is = index expr=s : s32
    %c_one = alloc initial=%zero : cell<s32>
    %c_from_s = alloc initial=%is : cell<s32>
    %c_two = alloc initial=%zero : cell<s32>
    %c_down = alloc initial=%zero : cell<s32>
    %c_nothing = alloc : cell<s32>
    %c_any = alloc initial=%zero : cell<s32>
    %c_copy = alloc initial=%zero : cell<s32>
    %c_random = alloc initial=%step : cell<s32>
    %c_half = alloc initial=%zero : cell<s32>
    for var=i lower=0 step=1 body={
      %v_one = get cell=%c_one : s32
      bind var=one value=%v_one
      %n_one = binary kind=add left=%v_one right=%step : s32
      set cell=%c_one value=%n_one
      %v_from_s = get cell=%c_from_s : s32
      bind var=from_s value=%v_from_s
      %n_from_s = binary kind=add left=%v_from_s right=%step : s32
      set cell=%c_from_s value=%n_from_s
      %v_two = get cell=%c_two : s32
      bind var=two value=%v_two
      %n_two = binary kind=add left=%v_two right=%steps : s32
      set cell=%c_two value=%n_two
      %v_down = get cell=%c_down : s32
      bind var=down value=%v_down
      %n_down = binary kind=sub left=%v_down right=%step : s32
      set cell=%c_down value=%n_down
      %v_nothing = get cell=%c_nothing : s32
      bind var=nothing value=%v_nothing
      %n_rest = binary kind=rem left=%v_one right=%steps : s32
      bind var=rest value=%n_rest
      %n_larger = binary kind=max left=%v_down right=%zero : s32
      bind var=larger value=%n_larger
      %v_copy = get cell=%c_copy : s32
      bind var=copy value=%v_copy
      %v_any = get cell=%c_any : s32
      bind var=any value=%v_any
      set cell=%c_copy value=%v_any
      %v_random = get cell=%c_random : s32
      bind var=random value=%v_random
      %n_random = index expr=1103515245*random + 12345 : s32
      set cell=%c_random value=%n_random
      %v_half = get cell=%c_half : s32
      bind var=half value=%v_half
      %n_half = index expr=3*floordiv(half, 2) + 1 : s32
      set cell=%c_half value=%n_half
      %n_slot = index expr=8*mod(one, 3) + b : s32
      bind var=slot value=%n_slot
      for var=j lower=-3 step=1 body={
        %ij = index expr=j : s32
        bind var=passed value=%ij
      }
      %r = read view=%x index=[i] : s32
      set cell=%c_any value=%r
    }
  }
}
)");
  return module.functions[0];
}

bool is_never_negative(std::string_view name) {
  const NeverNegative found(counting());
  for (std::uint32_t v = 0; v < counting().vars.size(); ++v) {
    if (counting().vars[VarId{v}].name == name) return found.contains(VarId{v});
  }
  ADD_FAILURE() << "no " << name;
  return false;
}

TEST(NeverNegative, NumbersThatCountByOneFromZero) {
  EXPECT_TRUE(is_never_negative("one"));
  EXPECT_TRUE(is_never_negative("rest"));
  EXPECT_TRUE(is_never_negative("larger"));
  EXPECT_TRUE(is_never_negative("slot"));
}

TEST(NeverNegative, OthersMayBe) {
  EXPECT_FALSE(is_never_negative("from_s"));
  EXPECT_FALSE(is_never_negative("down"));
  EXPECT_FALSE(is_never_negative("nothing"));
  EXPECT_FALSE(is_never_negative("any"));
  EXPECT_FALSE(is_never_negative("passed"));
}

TEST(NeverNegative, NumbersThatLeaveTheirTypeSoonMayBe) {
  EXPECT_FALSE(is_never_negative("two"));
  EXPECT_FALSE(is_never_negative("random"));
  EXPECT_FALSE(is_never_negative("half"));
}

TEST(NeverNegative, WhatIsMadeOfOneThatMayBeMayBeToo) { EXPECT_FALSE(is_never_negative("copy")); }

}  // namespace

}  // namespace kiln::ir
