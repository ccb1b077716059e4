// The passes from Form::kTile to Form::kDecided, as data.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "diag/diagnostics.h"
#include "ir/module.h"

namespace kiln::passes {

// A row. `holds` is the form that the module has afterwards: that of the row above it where the row
// finishes no form by itself, but is one of several steps towards the next.
struct Pass {
  std::string_view name;
  // Changes the module; reports and returns a failure for a mistake of the user's.
  Checked<bool> (*run)(ir::Module& module, Diagnostics& diags);
  ir::Form holds;
};

// In the order they run.
[[nodiscard]] std::span<const Pass> pass_table();

struct PassOptions {
  std::string_view stop_after = {};  // a pass's name; empty: run all
  // Called with each pass's name and the module it leaves.
  std::function<void(std::string_view, const ir::Module&)> after_each = {};
  // Where the module was read from, when it is IR text: what its author decided wrongly may only
  // break a rule that holds later on.
  std::optional<Span> read_from = {};
};

// Runs the passes, verifying the IR after each; an optimised build verifies what comes from source
// text when a form is complete, and at the end. A broken rule is a bug of ours and stops; of IR text
// it is reported. A module that comes half decided goes on behind the row that it has come to:
// the one that Module::after names, else the first that its form holds after. Steps towards one
// form report their mistakes together.
Checked<bool> run_passes(ir::Module& module, Diagnostics& diags, const PassOptions& options = {});

}  // namespace kiln::passes
