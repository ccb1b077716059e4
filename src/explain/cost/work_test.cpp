// What arithmetic takes of each unit, against counts made by hand.
#include "explain/cost/work.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "explain/cost/cost.h"
#include "explain/cost/predicted.h"
#include "ir/functions.h"
#include "ir/print.h"

namespace kiln::explain {

namespace {

using target::Unit;

// Each lane has two neighbours of each of four rows.
constexpr const char* kSoftmax = R"kir(module arch=sm_90a form=decided

func @softmax(global %x: view<f32, global, [8, 64]>, global %y: view<bf16, global, [8, 64]>) {
  var b: parallel < 2
  var row: loop < 4
  var col: loop < 64
  parallel level=block vars=[b] threads=32 name="softmax" bounds=[32] body={
    %2 = subview base=%x origin=[4*b, 0] : view<f32, global, [4, 64]>
    %s = alloc name="s" registers="((32,1),(2,4)):((8,1),(4,1))" : frag<tile, f32, 4x64>
    load frag=%s view=%2 major=row to_registers element_run=2
    %sum = alloc name="sum" registers="((32,1),4):((0,1),1)" : frag<tile, f32, 4x1>
    reduce frag=%sum source=%s kind=sum
    %e = alloc name="e" registers="((32,1),(2,4)):((8,1),(4,1))" : frag<tile, f32, 4x64>
    apply frag=%e row=row col=col body={
      %9 = element frag=%s : f32
      %10 = element frag=%sum : f32
      %one = const value=1 : f32
      %11 = binary kind=div left=%one right=%10 : f32
      %12 = unary kind=exp2 operand=%9 : f32
      %13 = binary kind=mul left=%12 right=%11 : f32
      set_element frag=%e value=%13
    }
    %20 = subview base=%y origin=[4*b, 0] : view<bf16, global, [4, 64]>
    store frag=%e view=%20 element_run=2
  }
}
)kir";

TEST(Work, IsThatOfTheUnits) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("kernel.kir", kSoftmax);
  const auto module = ir::parse(sources, file, diags);
  ASSERT_TRUE(module.has_value()) << render_all(diags, sources);
  const ir::Function& function = module->functions[0];
  ir::Arguments arguments;
  arguments.vars.resize(function.vars.size());
  arguments.params = {{Tensor::zeros(DType::kF32, {8, 64}), 0},
                      {Tensor::zeros(DType::kBF16, {8, 64}), 0}};
  const auto outcome =
      sim::run(*module, function, arguments,
               {.checks = false, .by_operation = true, .count_only = true, .trace = true});
  ASSERT_TRUE(outcome.has_value());
  const Explanation told = explain_kernel(*module, function, arguments, *outcome);
  const LaunchCost& launch = told.launches.at(0);
  constexpr std::int64_t kWarps = 2;
  constexpr std::int64_t kValues = 8;  // of a lane: 2 of each of 4 rows
  constexpr std::int64_t kRows = 4;
  constexpr std::int64_t kExchanges = 5;
  constexpr std::int64_t kQuotient = 8;  // additions and multiplications of a division
  EXPECT_EQ(launch.work[Unit::kShuffle], kWarps * kRows * kExchanges);
  EXPECT_EQ(launch.work[Unit::kSpecial], kWarps * (kValues + kRows)) << "a quotient for each row";
  EXPECT_EQ(launch.work[Unit::kConversion], kWarps * kValues);
  EXPECT_EQ(launch.work[Unit::kFp32],
            kWarps * (kValues - kRows + kRows * kExchanges + kRows * kQuotient + kValues));
  EXPECT_EQ(launch.roofline.bound(), Bound::kIssue);
  EXPECT_EQ(launch.registers.alive.at(0).name, "s");
  EXPECT_EQ(launch.registers.fragments, kValues + kRows) << "`e` is made where `s` has been";
  target::Timing timing = target::timing_of(*module->arch);
  const auto cycles = [&](int quotient_latency) {
    timing.quotient_latency = quotient_latency;
    return predict_launch(launch, function, *outcome, timing, false)->cycles;
  };
  EXPECT_NEAR(cycles(1000) - cycles(0), 1000 * kRows, 1) << "one after the other";
}

// How many elements share each quotient of the apply, with `after` for `before` in the text.
std::int64_t shared_quotients(std::string_view before, std::string_view after) {
  std::string text = kSoftmax;
  text.replace(text.find(before), before.size(), after);
  Sources sources;
  Diagnostics diags;
  const auto module = ir::parse(sources, sources.add("kernel.kir", text), diags);
  EXPECT_TRUE(module.has_value()) << render_all(diags, sources);
  if (!module) return 0;
  const ir::Function& function = module->functions[0];
  for (std::uint32_t i = 0; i < function.ops.size(); ++i) {
    const auto* binary = std::get_if<ir::Binary>(&function.ops[ir::OpId{i}].data);
    if (binary != nullptr && binary->kind == ir::BinaryKind::kDiv) {
      return Repeats(function).of(ir::OpId{i});
    }
  }
  return 0;
}

TEST(Repeats, AVariableThatTheApplyLeavesAsItIsIsOneForAll) {
  constexpr std::string_view kOne = "%one = const value=1 : f32";
  EXPECT_EQ(shared_quotients(kOne, kOne), 2) << "elements of a row";
  const std::string outside = R"(%f = const value=1 : f32
    %n = alloc name="n" initial=%f : cell<f32>
    apply frag=%e)";
  std::string text = kSoftmax;
  constexpr std::string_view kApply = "apply frag=%e";
  text.replace(text.find(kApply), kApply.size(), outside);
  const auto of = [&](std::string_view one) {
    std::string changed = text;
    changed.replace(changed.find(kOne), kOne.size(), one);
    return shared_quotients(kSoftmax, changed);
  };
  EXPECT_EQ(of("%one = get cell=%n : f32"), 2);
  EXPECT_EQ(of("%one = get cell=%n : f32\n      set cell=%n value=%9"), 1) << "of each element";
}

TEST(Work, IsKnownOfEveryFunction) {
  Sources sources;
  Diagnostics diags;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
    for (const ir::FunctionInfo& function : ir::all_functions()) {
      ir::Function one;
      ir::Op op;
      op.data = ir::Unary{.kind = function.kind,
                          .operand = one.values.push({"x", ir::ScalarType{dtype}, {}})};
      sim::Counters counts;
      counts.executions = 1;
      EXPECT_GT(work_of(one, op, counts).sum(), 0) << function.name;
    }
  }
}

TEST(Work, OfAUnitIsLanesByItsRate) {
  const target::Arch& arch = *target::find_arch("sm_90a");
  EXPECT_EQ(busy_cycles(arch, Unit::kSpecial, 1), 2);
  EXPECT_EQ(busy_cycles(arch, Unit::kFp32, 4), 1);
}

}  // namespace

}  // namespace kiln::explain
