#include "runtime/host_program.h"

#include <gtest/gtest.h>

#include "ir/print.h"

namespace kiln::runtime {
namespace {

constexpr const char* kText = R"(module arch=sm_80 form=decided

func @host(global %x: view<f32, global, [M]>, %scale: f32, %steps: s32 as steps) {
  var M: dim
  var steps: scalar
  var i: loop < steps
  var twice: bound
  var b: parallel < cdiv(M, 64)
  %four = const value=4 : s32
  %m = index expr=cdiv(M, 64) : s32
  %product = binary kind=mul left=%four right=%m : s32
  bind var=twice value=%product
  %half = const value=0.5 : f32
  %tmp = alloc name="tmp" initial=%half : view<f32, global, [M + twice]>
  %total = alloc name="total" initial=%scale : cell<f32>
  for var=i upper=steps body={
    %old = get cell=%total : f32
    %new = binary kind=mul left=%old right=%half : f32
    set cell=%total value=%new
    parallel level=block vars=[b] threads=64 name="step" bounds=[64] body={
    }
  }
  return value=%tmp
}
)";

struct Program {
  Program() {
    Diagnostics diags;
    auto parsed = ir::parse(sources, sources.add("host.kir", kText), diags);
    KILN_CHECK(parsed.has_value(), "{}", diags.all().empty() ? "" : diags.all()[0].message);
    module = std::move(*parsed);
    const ir::Function& function = module.functions[0];
    arguments.vars.resize(function.vars.size());
    arguments.vars[0] = 100;  // M
    arguments.vars[1] = 3;    // steps
    arguments.params.resize(function.params.size());
    arguments.params[1].scalar = 16;
  }
  Sources sources;
  ir::Module module;
  ir::Arguments arguments;
};

TEST(HostProgramTest, ScalarsBuffersAndLaunchesComeInOrder) {
  Program program;
  const ir::Function& function = program.module.functions[0];
  HostProgram host(function, program.arguments);
  std::vector<std::string> events;
  const HostProgram::Hooks hooks{
      .allocate =
          [&](ir::ValueId value, const std::vector<std::int64_t>& shape,
              std::optional<double> initial) {
            events.push_back(format("{} [{}] = {}", function.values[value].name, shape.at(0),
                                    initial.value_or(-1)));
            return Result<void>{};
          },
      .launch =
          [&](ir::OpId op) {
            const auto& launch = std::get<ir::Parallel>(function.ops[op].data);
            events.push_back(format("{} twice={}", launch.name, host.vars().at(3)));
            return Result<void>{};
          }};
  ASSERT_TRUE(host.run(hooks));
  EXPECT_EQ(events, (std::vector<std::string>{"tmp [108] = 0.5", "step twice=8", "step twice=8",
                                              "step twice=8"}));
  ASSERT_TRUE(host.returned().valid());
  EXPECT_EQ(function.values[host.returned()].name, "tmp");
  for (std::uint32_t v = 0; v < function.values.size(); ++v) {
    if (function.values[ir::ValueId{v}].name == "total") {
      EXPECT_EQ(host.scalar(ir::ValueId{v}), 2.0);
    }
  }
}

TEST(HostProgramTest, AHooksErrorEndsTheRun) {
  Program program;
  HostProgram host(program.module.functions[0], program.arguments);
  int launches = 0;
  const HostProgram::Hooks hooks{
      .allocate = [](ir::ValueId, const std::vector<std::int64_t>&,
                     std::optional<double>) { return Result<void>{}; },
      .launch = [&](ir::OpId) -> Result<void> {
        ++launches;
        return Unexpected{Error{"cannot launch", "step", "said the test"}};
      }};
  const auto ran = host.run(hooks);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().reason, "said the test");
  EXPECT_EQ(launches, 1);
}

// The first loop leaves out the even ones and ends at 7; 1 + 3 + 5 are 9, and the second counts to it.
constexpr const char* kLoops = R"(module arch=sm_80 form=decided

func @loops() {
  var i: loop < 100
  %zero = const value=0 : s32
  %one = const value=1 : s32
  %two = const value=2 : s32
  %seven = const value=7 : s32
  %sum = alloc name="sum" initial=%zero : cell<s32>
  %count = alloc name="count" initial=%zero : cell<s32>
  for var=i upper=100 body={
    %i = index expr=i : s32
    %last = binary kind=eq left=%i right=%seven : bool
    if condition=%last then={
      break
    }
    %rest = binary kind=rem left=%i right=%two : s32
    %even = binary kind=eq left=%rest right=%zero : bool
    if condition=%even then={
      continue
    }
    %old = get cell=%sum : s32
    %new = binary kind=add left=%old right=%i : s32
    set cell=%sum value=%new
  }
  loop body={
    %n = get cell=%count : s32
    %all = get cell=%sum : s32
    %done = binary kind=eq left=%n right=%all : bool
    if condition=%done then={
      break
    }
    %next = binary kind=add left=%n right=%one : s32
    set cell=%count value=%next
  }
}
)";

constexpr const char* kElements = R"(module arch=sm_80 form=decided

func @elements(global %x: view<f32, global, [4]>) {
  %one = const value=1 : f32
  write view=%x index=[0] value=%one
}
)";

ir::Module parsed(Sources& sources, const char* text) {
  Diagnostics diags;
  auto module = ir::parse(sources, sources.add("host.kir", text), diags);
  KILN_CHECK(module.has_value(), "{}", diags.all().empty() ? "" : diags.all()[0].message);
  return std::move(*module);
}

TEST(HostProgramTest, LoopsAreLeftAndGoOn) {
  Sources sources;
  const ir::Module module = parsed(sources, kLoops);
  const ir::Function& function = module.functions[0];
  const ir::Arguments arguments;
  HostProgram host(function, arguments);
  ASSERT_TRUE(host.run({}));
  int cells = 0;
  for (std::uint32_t v = 0; v < function.values.size(); ++v) {
    const std::string& name = function.values[ir::ValueId{v}].name;
    if (name != "sum" && name != "count") continue;
    ++cells;
    EXPECT_EQ(host.scalar(ir::ValueId{v}), 9);
  }
  EXPECT_EQ(cells, 2);
}

TEST(HostProgramTest, ALoopWithoutAnEndIsGivenUp) {
  Sources sources;
  const ir::Module module = parsed(sources,
                                   "module arch=sm_80 form=decided\n\n"
                                   "func @endless() {\n  loop body={\n  }\n}\n");
  const ir::Arguments arguments;
  HostProgram host(module.functions[0], arguments);
  const auto ran = host.run({}, 500);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().text(),
            "cannot launch the kernels of `endless`: its host part has not ended after 500 steps");
}

TEST(HostProgramTest, LaunchesCountAsAThousandSteps) {
  Program program;
  HostProgram host(program.module.functions[0], program.arguments);
  int launches = 0;
  const HostProgram::Hooks hooks{.allocate = [](ir::ValueId, const std::vector<std::int64_t>&,
                                                std::optional<double>) { return Result<void>{}; },
                                 .launch =
                                     [&](ir::OpId) {
                                       ++launches;
                                       return Result<void>{};
                                     }};
  EXPECT_FALSE(host.run(hooks, 3000));
  EXPECT_LT(launches, 3);
  EXPECT_TRUE(host.run(hooks, 5000));
}

TEST(HostProgramTest, ElementsAreRefusedByName) {
  Sources sources;
  const ir::Module module = parsed(sources, kElements);
  ir::Arguments arguments;
  arguments.params.resize(1);
  HostProgram host(module.functions[0], arguments);
  const auto ran = host.run({});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().text(),
            "a GPU cannot run `elements`: its host part writes elements of `x`, which only "
            "`--on sim` does");
}

}  // namespace
}  // namespace kiln::runtime
