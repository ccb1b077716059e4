#include "passes/pipeline.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/assign_layouts.h"
#include "passes/place_barriers.h"
#include "passes/plan_copies.h"
#include "passes/plan_events.h"
#include "passes/select_atoms.h"

namespace kiln::passes {

namespace {

// The order is data; this is all of it.
constexpr Pass kPipeline[] = {
    {"select-atoms", select_atoms, ir::Form::kAtoms},
    {"assign-layouts", assign_layouts, ir::Form::kLaidOut},
    {"plan-copies", plan_copies, ir::Form::kPlanned},
    {"plan-events", plan_events, ir::Form::kMet},
    {"place-barriers", place_barriers, ir::Form::kDecided},
};

void verify_after(const ir::Module& module, std::string_view pass) {
  const std::vector<std::string> mistakes = ir::verify(module);
  KILN_CHECK(mistakes.empty(), "after pass {}: {}\n{}", pass, mistakes.empty() ? "" : mistakes[0],
             ir::print(module));
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

Checked<bool> run_pipeline(ir::Module& module, Diagnostics& diags, const PipelineOptions& options) {
  verify_after(module, "sema");
  for (const Pass& pass : kPipeline) {
    if (pass.establishes <= module.form) continue;  // IR text may come half decided
    if (auto done = pass.run(module, diags); !done) return done;
    module.form = pass.establishes;
    verify_after(module, pass.name);
    if (options.after_each) options.after_each(pass.name, module);
    if (pass.name == options.stop_after) break;
  }
  return true;
}

}  // namespace kiln::passes
