#include "io/integer_inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/bind.h"
#include "sema/sema.h"
#include "syntax/parser.h"

namespace kiln::io {
namespace {

ir::Function compiled(const std::string& text) {
  Sources sources;
  Diagnostics diags;
  const ast::Ast tree = parse_file(sources, sources.add("test.co", text), {}, diags);
  auto module = sema::analyse(tree, *target::find_arch("sm_80"), sources, diags);
  EXPECT_TRUE(module && !diags.has_errors()) << text;
  return std::move(module->functions[0]);
}

// `integer_inputs` of `x`, the first parameter.
IntegerInput input_of(const std::string& params, const std::string& body) {
  return integer_inputs(compiled("__co__ void f(" + params + ") {\n" + body + "\n}\n"), 64)[0];
}

constexpr double kAny = std::numeric_limits<double>::infinity();

TEST(IntegerInputs, WhatStaysAnIntegerOrIsConvertedOnceMayBeAnything) {
  const auto each = [](const std::string& value) {
    return input_of("global s32 [N] x, global s32 [N] y, global f32 [N] z",
                    "parallel b by N : block " + value);
  };
  EXPECT_EQ(each("y.at(b) = x.at(b) * x.at(b) + 1;").largest, kAny);
  EXPECT_EQ(each("z.at(b) = __to<f32>(__to<s8>(x.at(b)));").largest, kAny);
  EXPECT_EQ(each("z.at(b) = x.at(b) > 3 ? 1.0f : 0.0f;").largest, kAny);
}

TEST(IntegerInputs, SumsOfFloatsLimitThem) {
  const auto each = [](const std::string& value) {
    return input_of("global s32 [N] x, global s32 [N] y, global f32 [N] z, global f16 [N] h",
                    "parallel b by N : block " + value)
        .largest;
  };
  EXPECT_EQ(each("z.at(b) = __to<f32>(x.at(b)) * 3.0f;"), std::sqrt(0x1p24 / 64));
  EXPECT_EQ(each("h.at(b) = __to<f16>(x.at(b)) + h.at(b);"), std::floor(std::sqrt(2048 / 64.0)));
  EXPECT_EQ(each("z.at(b) = __exp(__to<f32>(x.at(b)));"), 0) << "nothing is known of it";
  EXPECT_EQ(each("{ y.at(b) = x.at(b); z.at(b) = z.at(b) + 1.0f; }"), kAny)
      << "no sum of floats has to do with x";
}

TEST(IntegerInputs, WhatSteersIsFollowedThroughBuffersAndCells) {
  const auto steers = [](const std::string& body) {
    const IntegerInput found = input_of("global s32 [N] x, global s32 [N] y", body);
    EXPECT_EQ(found.largest, found.steers ? 0 : kAny) << body;
    return found.steers;
  };
  EXPECT_TRUE(steers("parallel b by N : block y.at(b) = y.at(x.at(b));"));
  EXPECT_TRUE(steers("parallel b by N : block y.at(b) = 1 << x.at(b);"));
  EXPECT_TRUE(
      steers("parallel b by N : block { s32 at = 0; at += x.at(b); y.at(b) = y.at(at % 4); }"));
  EXPECT_TRUE(
      steers("parallel b by N : block { s32 n = x.at(b); while (n > 0) n -= 1; y.at(b) = n; }"));
  EXPECT_FALSE(steers("parallel b by N : block y.at(b) = x.at(b) << 3;"));
  EXPECT_FALSE(steers("parallel b by N : block if (x.at(b) > 0) y.at(b) = 1;"));
}

ir::Arguments filled(const ir::Function& function, Fill fill) {
  Diagnostics diags;
  auto arguments = bind(function, {.shapes = {{"N", "64"}}, .inputs = {}, .fill = fill}, diags);
  EXPECT_TRUE(arguments);
  return std::move(*arguments);
}

TEST(IntegerInputs, FillsUseEveryBitOfTheType) {
  for (const char* type : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"}) {
    const std::string x = std::string("global ") + type + " [N] ";
    const ir::Function function = compiled("__co__ void f(" + x + "x, " + x +
                                           "y) { parallel b by N : block y.at(b) = x.at(b); }");
    for (const Fill fill : {Fill::kIntegers, Fill::kAdversarial}) {
      EXPECT_TRUE(narrow_inputs(function, filled(function, fill)).empty()) << type;
    }
    const bool wide = std::string_view(type).size() == 3;
    EXPECT_EQ(narrow_inputs(function, filled(function, Fill::kNormal)).size(), wide ? 1 : 0);
  }
}

TEST(IntegerInputs, NarrowValuesAreCountedInBits) {
  const ir::Function function = compiled(
      "__co__ void f(global s64 [N] x, global u16 [N] w, global s64 [N] y) {\n"
      "parallel b by N : block y.at(b) = x.at(b) + __to<s64>(w.at(b)); }");
  ir::Arguments arguments = filled(function, Fill::kOnes);
  arguments.params[0].tensor.set(3, -0x1p31);
  arguments.params[1].tensor.set(3, 256);
  const std::vector<NarrowInput> narrow = narrow_inputs(function, arguments);
  ASSERT_EQ(narrow.size(), 1);
  EXPECT_EQ(narrow[0].name, "x");
  EXPECT_EQ(narrow[0].used, 32);
  EXPECT_EQ(narrow[0].bits, 64);
  EXPECT_TRUE(narrow[0].could_be_wide);
  arguments.params[0].tensor.set(3, 0x1p31);
  EXPECT_TRUE(narrow_inputs(function, arguments).empty());
}

}  // namespace
}  // namespace kiln::io
