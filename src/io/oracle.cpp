#include "io/oracle.h"

#include <algorithm>
#include <chrono>

#include "io/console.h"
#include "io/expect.h"
#include "reference/formula_uses.h"

namespace kiln::io {

Checked<reference::BoundFormula> read_expect(const std::string& text, const ir::Function& function,
                                             const ir::Arguments& arguments, Tensor& returned,
                                             Program& program) {
  auto formula = reference::parse_formula(text, program.sources, program.diags);
  if (!formula) return Unexpected{formula.error()};
  reference::Given given = given_of(function, arguments, returned);
  for (const reference::Definition& definition : formula->definitions) {
    const auto fits = check_output(function, definition.left, given.tensors, program.diags);
    if (!fits) return Unexpected{fits.error()};
  }
  return reference::bind(std::move(*formula), std::move(given), program.diags);
}

namespace {

// Each product's accumulation as the decided instruction has it.
reference::Numerics numerics_of(const ir::Function& decided) {
  return [&decided](ir::OpId id) {
    const auto* mma = std::get_if<ir::Mma>(&decided.ops[id].data);
    KILN_CHECK(mma != nullptr && mma->atom != nullptr, "operation {} has no instruction", id.index);
    return accumulation_of(*mma->atom);
  };
}

backends::Interpreted interpret(const Oracle& oracle, const ir::Arguments& arguments,
                                std::vector<std::int64_t> blocks) {
  const auto begin = std::chrono::steady_clock::now();
  const backends::Limits& asked = oracle.limits;
  reference::Limits limits{.steps_max = asked.steps_max, .memory = asked.memory};
  if (asked.progress) {
    limits.progress = [&](const reference::Progress& at) {
      const std::size_t wanted =
          limits.blocks.empty() ? static_cast<std::size_t>(at.blocks) : limits.blocks.size();
      const auto done = static_cast<std::size_t>(std::max<std::int64_t>(at.blocks_run - 1, 0));
      asked.progress(progress_bar("interpreting blocks", done, wanted));
    };
  }
  limits.blocks = std::move(blocks);
  backends::Interpreted out;
  const ir::Function& decided = oracle.program.decided.functions[oracle.function];
  out.outcome = reference::interpret(oracle.program.tile.functions[oracle.function], arguments,
                                     numerics_of(decided), limits);
  if (asked.progress) asked.progress("");
  const std::chrono::duration<double> interpreting = std::chrono::steady_clock::now() - begin;
  out.seconds = interpreting.count();
  return out;
}

// The blocks to interpret; empty: all. One of them is interpreted first, where it must be known how
// long that takes.
std::vector<std::int64_t> blocks_to_run(const Oracle& oracle, const ir::Arguments& arguments,
                                        std::string& whole) {
  if (oracle.check == Check::kFull) return {};
  whole = reference::why_not_sampled(oracle.program.tile.functions[oracle.function]);
  if (!whole.empty()) return {};
  const reference::Outcome pilot = interpret(oracle, arguments, {0}).outcome;
  const bool ended = !pilot.gave_up && !pilot.out_of_memory && pilot.stuck_at.empty();
  if (!ended || pilot.blocks_run == 0) return {};
  return sample_of_blocks(oracle.check, pilot.blocks, pilot.work, oracle.seed);
}

// Whether there is an output of which the blocks that were interpreted wrote nothing.
bool lacks_an_output(const reference::Outcome& outcome) {
  return std::ranges::any_of(outcome.outputs, &reference::Output::is_unknown);
}

}  // namespace

Said by_program(const Oracle& oracle, const ir::Arguments& arguments) {
  Said out;
  if (oracle.check == Check::kNone) {
    const ir::Function& decided = oracle.program.decided.functions[oracle.function];
    out.interpreted.outcome.outputs = unknown_outputs(decided, arguments);
    return out;
  }
  std::vector<std::int64_t> blocks = blocks_to_run(oracle, arguments, out.whole);
  out.interpreted = interpret(oracle, arguments, blocks);
  // A block whose tiles are all outside of an output says nothing of it: more of them, once.
  if (blocks.empty() || !lacks_an_output(out.interpreted.outcome)) return out;
  const std::int64_t all = out.interpreted.outcome.blocks;
  out.interpreted = {};
  out.interpreted = interpret(oracle, arguments, more_blocks(blocks, all, oracle.seed));
  return out;
}

Result<std::vector<reference::Output>> by_formula(const Oracle& oracle, const Said& said,
                                                  const reference::BoundFormula& formula) {
  const backends::Limits& limits = oracle.limits;
  reference::Evaluation evaluation{.memory = limits.memory};
  if (limits.progress) {
    evaluation.progress = [&](std::size_t done, std::size_t all) {
      limits.progress(progress_bar("evaluating --expect", done, all));
    };
  }
  const reference::Outcome& outcome = said.interpreted.outcome;
  // A statement of its own may be cheap where the program is not.
  constexpr double kTermsMax = 5e8;  // some seconds
  const bool sampled = outcome.blocks_run < outcome.blocks;
  const bool costly = oracle.check == Check::kSample || reference::terms_of(formula) > kTermsMax;
  if (sampled && costly) {
    evaluation.sample = [&](const std::string& name) {
      return sample_of_rows(*std::ranges::find(outcome.outputs, name, &reference::Output::name));
    };
  }
  const ir::Function& decided = oracle.program.decided.functions[oracle.function];
  auto expected = reference::evaluate(formula, weakest(decided), evaluation);
  if (limits.progress) limits.progress("");
  if (!expected) return expected;
  // What the interpreter could not finish says nothing about the statement.
  for (reference::Output& output : *expected) {
    if (!outcome.stuck_at.empty()) output.slack.clear();
  }
  return expected;
}

}  // namespace kiln::io
