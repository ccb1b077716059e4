// What a kernel costs at a shape: compiled already, counted in the simulator, worked out. The work of
// `kiln explain`, and of a program that asks the same.
//
//   explain(program, 0, {{"M", "4096"}}, options, diags)->explanation.launches[0].occupancy.blocks
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/cost/cost.h"
#include "io/assignments.h"
#include "io/console.h"
#include "io/program.h"

namespace kiln::io {

struct ExplainOptions {
  std::vector<Assignment> shapes = {};  // none: a few full tiles
  std::uint64_t memory_bytes_max = 0;   // as in BindOptions
  Use use = Use::kCount;                // or kCallCount
  bool compile = false;  // registers are those of the compiled kernel, which needs NVRTC
  std::function<void(std::string_view)> progress = {};  // told what is being done; may be empty
};

struct Explained {
  explain::Explanation explanation;
  sim::Outcome outcome;            // with traces
  std::vector<Assignment> shapes;  // the one that was explained
};

// How it ends without: the reason is in the diagnostics, or is the world's.
struct NotExplained {
  Exit exit = Exit::kWrong;
  std::optional<Error> error = {};
};

// Every input is 1. All blocks are counted where that is quick, else some that stand for the others.
// Reports what does not fit, and what the simulator finds.
[[nodiscard]] Result<Explained, NotExplained> explain(const Program& program, std::size_t kernel,
                                                      const ExplainOptions& options,
                                                      Diagnostics& diags);

// The same of any decided module, from blocks that stand for all; none where it cannot be counted. The
// shape is one that is given: other attributes of a program have other full tiles.
[[nodiscard]] std::optional<Explained> explain_decided(const ir::Module& decided,
                                                       const Sources& sources, std::size_t kernel,
                                                       const ExplainOptions& options,
                                                       explain::Detail detail);

// The kernel with an attribute that the program does not have.
struct Changed {
  std::string change;  // "[[pipeline(4)]] at line 3"
  const Explained& explained;
  const ir::Function& function;
};

// The page of `kiln explain --html`. With `changed` the timelines of both, one under the other.
[[nodiscard]] std::string explained_page(const Explained& explained, const ir::Function& function,
                                         const Sources& sources, const Changed* changed = nullptr);

}  // namespace kiln::io
