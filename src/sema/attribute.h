// Attributes of a launch: `[[launch_bounds(256, 2)]]`, `[[maxnreg(64)]]`.
#pragma once

#include <string_view>
#include <vector>

#include "sema/state.h"

namespace kiln::sema {

// Enters what they say into the launch, whose body is complete. `[[threads]]` is not looked at: it
// was needed before the body.
void enter_attributes(Sema& sema, const std::vector<ast::Attribute>& attributes, ir::OpId launch);

// What `[[pipeline(S, producer)]]` in front of a loop asks for.
struct PipelineWish {
  std::int64_t stages = 0;  // 0: the loop has no such attribute
  bool producer = false;
};
[[nodiscard]] PipelineWish pipeline_wish(Sema& sema, const ast::ForeachStmt& stmt,
                                         std::size_t loops);

// Reports attributes in front of a `parallel` inside of a launch.
void report_attributes_inside(Sema& sema, const std::vector<ast::Attribute>& attributes);

}  // namespace kiln::sema
