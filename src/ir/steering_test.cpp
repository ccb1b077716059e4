// What decides what others do, in a kernel whose loop asks memory for its end.
#include "ir/steering.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "ir/print.h"

namespace kiln::ir {

namespace {

constexpr const char* kCounted = R"(module arch=sm_80 form=decided

func @counted(global %n: view<s32, global, [4]>, global %x: view<f32, global, [64]>, global %y: view<f32, global, [64]>) {
  var b: parallel < 4
  var t: parallel < 32
  var trips: bound
  var k: loop < trips
  parallel level=block vars=[b] threads=32 name="counted" bounds=[32] body={
    parallel level=thread vars=[t] unit=1 body={
      %ends = alloc name="ends" : view<s32, local, [1]>
      %read = read view=%n index=[b] : s32
      %one = const value=1 : s32
      %more = binary kind=add left=%read right=%one : s32
      write view=%ends index=[0] value=%more
      %end = read view=%ends index=[0] : s32
      bind var=trips value=%end
      for var=k lower=0 upper=trips step=1 body={
        %v = read view=%x index=[t] : f32
        %w = binary kind=mul left=%v right=%v : f32
        write view=%y index=[t] value=%w
      }
    }
  }
}
)";

TEST(Steering, IsWhatALoopsEndComesFromThroughMemory) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("kernel.kir", kCounted);
  const auto module = parse(sources, file, diags);
  ASSERT_TRUE(module.has_value()) << render_all(diags, sources);
  const Function& function = module->functions[0];
  const std::vector<bool> steers = steering(function);
  std::string others;
  for (std::uint32_t id = 0; id < steers.size(); ++id) {
    const Op& op = function.ops[OpId{id}];
    if (!steers[id]) others += std::string(mnemonic(op.kind())) + " ";
  }
  EXPECT_EQ(others, "read binary write ") << "those of the loop's body";
}

}  // namespace

}  // namespace kiln::ir
