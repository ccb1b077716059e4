#include "reference/outputs.h"

#include <gtest/gtest.h>

#include "reference/test_builder.h"

namespace kiln::reference {
namespace {

using ir::Space;

// A function that writes the parameter x, and may return it or the buffer y.
class Written {
 public:
  Written() : b_("f") {
    x_ = b_.param("x", DType::kF32, {4});
    ir::Alloc alloc;
    alloc.name = "y";
    y_ = b_.result(std::move(alloc), ir::ViewType{DType::kF32, Space::kGlobal, {4}}, "buffer");
    b_.op(ir::Write{x_, {0}, b_.constant(DType::kF32, 1)});
    declare(false, false);
  }

  void declare(bool is_global, bool is_reference) {
    b_.function.params[0].is_global = is_global;
    b_.function.params[0].is_reference = is_reference;
  }
  void give(ir::ValueId value) { b_.op(ir::Return{value}); }
  [[nodiscard]] ir::ValueId x() const { return x_; }
  [[nodiscard]] ir::ValueId y() const { return y_; }
  ir::ValueId part_of_x() { return b_.view(x_, {0}, {4}); }
  // "x y'" for parameter x and a returned y.
  [[nodiscard]] std::string names() const {
    return join(output_slots(b_.function), " ",
                [](const OutputSlot& slot) { return slot.name + (slot.param ? "" : "'"); });
  }

 private:
  Builder b_;
  ir::ValueId x_;
  ir::ValueId y_;
};

TEST(Outputs, WrittenParametersAreGivenBackWhenGlobalOrMarked) {
  Written f;
  EXPECT_EQ(f.names(), "");
  f.declare(true, false);
  EXPECT_EQ(f.names(), "x");
  f.declare(false, true);
  EXPECT_EQ(f.names(), "x");
}

TEST(Outputs, ReturnedBufferHasTheNameTheUserGave) {
  Written f;
  f.declare(false, true);
  f.give(f.y());
  EXPECT_EQ(f.names(), "x y'");
}

TEST(Outputs, ReturnedParameterIsListedOnce) {
  Written unmarked;
  unmarked.give(unmarked.x());
  EXPECT_EQ(unmarked.names(), "x'");
  Written marked;
  marked.declare(false, true);
  marked.give(marked.x());
  EXPECT_EQ(marked.names(), "x");
  Written window;
  window.give(window.part_of_x());
  EXPECT_EQ(window.names(), "x'");
}

}  // namespace
}  // namespace kiln::reference
