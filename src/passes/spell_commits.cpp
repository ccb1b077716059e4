#include "passes/spell_commits.h"

#include "passes/for_each_launch.h"

namespace kiln::passes {

namespace {

void spell_commits_in(ir::Function& function, ir::RegionId body) {
  bool stated_waits = false;
  std::vector<ir::OpId> commits;
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* wait = std::get_if<ir::MmaWait>(&function.ops[id].data);
    stated_waits = stated_waits || (wait != nullptr && wait->stated);
    if (function.ops[id].kind() == ir::OpKind::kMmaCommit) commits.push_back(id);
  });
  if (stated_waits) return;
  for (const ir::OpId id : commits) function.ops[id].data = ir::MmaWait{};
}

}  // namespace

Checked<bool> spell_commits(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    spell_commits_in(function, body_of(function, launch));
  });
  return true;
}

}  // namespace kiln::passes
