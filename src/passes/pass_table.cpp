#include "passes/pass_table.h"

#include "ir/names.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/assign_layouts.h"
#include "passes/assign_registers.h"
#include "passes/begin_sums.h"
#include "passes/check_registers.h"
#include "passes/count_copies.h"
#include "passes/delay_bulk_waits.h"
#include "passes/drop_unread.h"
#include "passes/group_products.h"
#include "passes/keep_parts.h"
#include "passes/number_barriers.h"
#include "passes/pair_elements.h"
#include "passes/persist.h"
#include "passes/pipeline.h"
#include "passes/place_barriers.h"
#include "passes/plan_copies.h"
#include "passes/plan_events.h"
#include "passes/plan_launches.h"
#include "passes/select_atoms.h"
#include "passes/skip_masks.h"
#include "passes/skip_ones.h"
#include "passes/specialise.h"
#include "passes/spell_commits.h"

namespace kiln::passes {

namespace {

using ir::Form;

// The order is data; this is all of it. Each pass's header says why it stands where it does.
constexpr Pass kPasses[] = {
    // Which tiles a block works on.
    {"persist", persist, Form::kTile},
    // Which threads only start copies: the others are what the program speaks of.
    {"specialise", specialise, Form::kTile},
    // Which copies start ahead of their iteration: what is decided below is decided for these, too.
    {"pipeline", pipeline, Form::kTile},
    // What multiplies: all later decisions follow from what the matrix unit wants.
    {"select-atoms", select_atoms, Form::kAtoms},
    // Which lane holds which element of the tiles that are only computed with.
    {"assign-registers", assign_registers, Form::kAtoms},
    // Which sums stay in parts, each lane its own, while a loop adds to them.
    {"keep-parts", keep_parts, Form::kAtoms},
    // Which of them are computed with two at a time.
    {"pair-elements", pair_elements, Form::kAtoms},
    // Where shared buffers lie, so that instructions and copies can reach them.
    {"assign-layouts", assign_layouts, Form::kLaidOut},
    // How bytes move between the places that are now known.
    {"plan-copies", plan_copies, Form::kPlanned},
    // Who arrives at events, and which bytes they count.
    {"plan-events", plan_events, Form::kMet},

    // Who waits for what. From here on the passes add operations; nothing above is asked again.
    {"check-registers", check_registers, Form::kMet},
    {"spell-commits", spell_commits, Form::kMet},
    {"place-barriers", place_barriers, Form::kMet},
    {"delay-bulk-waits", delay_bulk_waits, Form::kMet},
    {"count-copies", count_copies, Form::kMet},
    {"number-barriers", number_barriers, Form::kMet},
    {"group-products", group_products, Form::kMet},
    {"skip-masks", skip_masks, Form::kMet},
    {"skip-ones", skip_ones, Form::kMet},
    {"begin-sums", begin_sums, Form::kMet},
    {"drop-unread", drop_unread, Form::kMet},
    {"check-meetings", check_meetings, Form::kMet},

    // How kernels are launched, which is about them as a whole.
    {"plan-launches", plan_launches, Form::kDecided},
};

Checked<bool> verify_after(const ir::Module& module, std::string_view pass, Diagnostics& diags,
                           const PassOptions& options) {
  const std::vector<std::string> mistakes = ir::verify(module);
  if (mistakes.empty()) return true;
  KILN_CHECK(options.read_from.has_value(), "after pass {}: {}\n{}", pass, mistakes[0],
             ir::print(module));
  for (const std::string& mistake : mistakes) {
    diags.report<diag::IrInvalid>(*options.read_from, mistake).emit();
  }
  return diags.failed();
}

// Whether the IR is verified behind this row. Verifying takes longer than a pass; where an optimised
// program compiles source text, what the rows of a form make together is verified, once for each form.
bool verifies(const Pass& pass, const PassOptions& options) {
#ifdef NDEBUG
  constexpr bool kAfterEach = false;
#else
  constexpr bool kAfterEach = true;
#endif
  const bool ends_form = &pass == &std::end(kPasses)[-1] || (&pass)[1].holds != pass.holds;
  return kAfterEach || ends_form || options.read_from || options.after_each ||
         pass.name == options.stop_after;
}

// The row at which the module's way through the table begins.
Checked<std::size_t> first_to_run(const ir::Module& module, Diagnostics& diags,
                                  const PassOptions& options) {
  if (module.form == Form::kTile && module.after.empty()) return 0;
  for (std::size_t i = 0; i < std::size(kPasses); ++i) {
    const Pass& pass = kPasses[i];
    if (pass.holds != module.form) continue;
    if (module.after.empty() || pass.name == module.after) return i + 1;
  }
  const std::string mistake =
      format("no pass `{}` leaves a module of form `{}`", module.after, ir::name_of(module.form));
  KILN_CHECK(options.read_from.has_value(), "{}", mistake);
  return diags.report<diag::IrInvalid>(*options.read_from, mistake).emit();
}

}  // namespace

std::span<const Pass> pass_table() { return kPasses; }

Checked<bool> run_passes(ir::Module& module, Diagnostics& diags, const PassOptions& options) {
  if (auto right = verify_after(module, "sema", diags, options); !right) return right;
  bool failed = false;
  const auto first = first_to_run(module, diags, options);
  if (!first) return diags.failed();
  for (const Pass& pass : std::span(kPasses).subspan(*first)) {
    failed = !pass.run(module, diags).has_value() || failed;
    const bool finishes_form = pass.holds != module.form;
    if (failed && finishes_form) return diags.failed();
    module.form = pass.holds;
    module.after = finishes_form ? "" : std::string(pass.name);
    if (verifies(pass, options)) {
      if (auto right = verify_after(module, pass.name, diags, options); !right) return right;
    }
    if (options.after_each) options.after_each(pass.name, module);
    if (pass.name == options.stop_after) break;
  }
  if (failed) return diags.failed();
  return true;
}

}  // namespace kiln::passes
