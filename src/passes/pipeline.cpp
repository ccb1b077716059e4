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

Checked<bool> verify_after(const ir::Module& module, std::string_view pass, Diagnostics& diags,
                           const PipelineOptions& options) {
  const std::vector<std::string> mistakes = ir::verify(module);
  if (mistakes.empty()) return true;
  KILN_CHECK(options.read_from.has_value(), "after pass {}: {}\n{}", pass, mistakes[0],
             ir::print(module));
  for (const std::string& mistake : mistakes) {
    diags.report<diag::IrInvalid>(*options.read_from, mistake).emit();
  }
  return diags.failed();
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

Checked<bool> run_pipeline(ir::Module& module, Diagnostics& diags, const PipelineOptions& options) {
  if (auto right = verify_after(module, "sema", diags, options); !right) return right;
  for (const Pass& pass : kPipeline) {
    if (pass.establishes <= module.form) continue;  // IR text may come half decided
    if (auto done = pass.run(module, diags); !done) return done;
    module.form = pass.establishes;
    if (auto right = verify_after(module, pass.name, diags, options); !right) return right;
    if (options.after_each) options.after_each(pass.name, module);
    if (pass.name == options.stop_after) break;
  }
  return true;
}

}  // namespace kiln::passes
