#include "driver/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/findings.h"
#include "reference/outputs.h"
#include "support/escape.h"
#include "support/json.h"
#include "target/mma.h"

namespace kiln::driver {

namespace {

using Json = nlohmann::ordered_json;
using io::amount;
using io::time_text;
using sim::ReportKind;

// JSON has no infinity.
double finite(double value) { return std::min(value, std::numeric_limits<double>::max()); }

Json counted(const backends::Execution& execution, ReportKind kind) {
  if (!execution.backend->reports.findings) return nullptr;
  return execution.sim->count(kind);
}

Json dumps_json(const std::vector<DumpRequest>& requests, const std::vector<sim::Dumped>& dumped) {
  Json out = Json::array();
  for (const sim::Dumped& one : dumped) {
    const DumpRequest& request = requests[one.point];
    Json values = Json::array();
    Json holders = Json::array();
    for (const auto& element : one.elements) {
      const bool says = element.known && std::isfinite(element.value);
      values.push_back(says ? Json(element.value) : Json(value_text(one, element)));
      if (element.thread >= 0) {
        holders.push_back({{"thread", element.thread}, {"element", element.number}});
      } else {
        holders.push_back({{"byte", element.address}});
      }
    }
    out.push_back({{"tile", request.tile},
                   {"line", request.line},
                   {"dtype", name(one.dtype)},
                   {"shape", one.shape},
                   {"first_thread", one.first_thread},
                   {"threads", one.threads},
                   {"pending", one.pending},
                   {"values", std::move(values)},
                   {"held_by", std::move(holders)}});
  }
  return out;
}

Json atoms_of(const backends::Execution& execution) {
  if (!execution.backend->reports.findings) return nullptr;
  Json out = Json::object();
  for (const auto& [name, count] : execution.sim->counters.instructions) {
    if (target::find_mma(name) != nullptr) out[name] = count;
  }
  return out;
}

// NaN has no sign worth showing.
std::string number_text(double value) {
  return std::isnan(value) ? "nan" : format("{:.9g}", value);
}

std::string worst_text(const reference::Comparison& comparison) {
  if (std::isinf(comparison.worst)) return "not equal where it must be";
  const std::string worst = format("worst error {:.3g} of its bound", comparison.worst);
  return comparison.hides == 0 ? worst
                               : worst + format(", which hides up to {:.2g}", comparison.hides);
}

// Elements that nobody wrote: wrong where `--expect` has a value for them, else worth a look.
void add_unwritten(const OutputReport& output, Span span, Diagnostics& diags) {
  if (output.unwritten == 0) return;
  const std::string elements = amount(output.comparison.elements, "element");
  const std::string first = shape_text(output.first_unwritten);
  if (output.comparison.outside_unwritten == 0) {
    if (diags.has_errors()) return;  // a run that went wrong stores less than it should
    diags.report<diag::OutputUnwritten>(span, output.name, output.unwritten, elements, first)
        .emit();
    return;
  }
  diags.report<diag::ResultUnwritten>(span, output.name, output.unwritten, elements, first)
      .note("{} of them differ from what is expected", output.comparison.outside_unwritten)
      .help("let the grid, the loops and the conditions around the store reach every element")
      .emit();
}

void add_outside(const OutputReport& output, const RunReport& report, Span span,
                 Diagnostics& diags) {
  const reference::Comparison& comparison = output.comparison;
  if (comparison.outside == comparison.outside_unwritten) return;
  auto builder = diags.report<diag::ResultOutside>(span, output.name, comparison.outside,
                                                   amount(comparison.elements, "element"));
  if (comparison.first) {
    const reference::Mismatch& first = *comparison.first;
    std::move(builder).note("the first is {}: expected {}, allowed error {:.3g}, got {}",
                            shape_text(first.coordinates), number_text(first.expected), first.bound,
                            number_text(first.actual));
  }
  const bool not_run =
      comparison.outside_left_out == comparison.outside - comparison.outside_unwritten;
  if (report.blocks_compared > 0 && not_run) {
    std::move(builder)
        .note(
            "the reference interpreted a sample of blocks and none that has these: roundings that "
            "the program declares are not allowed for")
        .help("`--check full` interprets all blocks");
  }
  if (report.needless && output.stated.value_or(false)) {
    const std::string_view type = name(report.needless->dtype);
    std::move(builder)
        .label(report.needless->span, "rounded to {}, which no tensor and no operand has", type)
        .help(
            "what `--expect` does not state is not allowed for: write {}(...) there, if "
            "the kernel means it",
            type);
  }
  std::move(builder).emit();
}

// Why elements were compared with nothing, and what would help.
struct Reason {
  std::string_view why;
  std::string_view help;
};
Reason reason_of(const reference::Comparison& comparison, bool undecided) {
  if (undecided) {
    return {"what is written there depends on an order, or on what is not known",
            "add an output that no order changes, such as a count or a sum"};
  }
  if (2 * comparison.unstated > comparison.not_compared) {
    return {"the bound of what `--expect` states there is infinite, or wider than the values",
            "state it in steps that have a bound: divide by what cannot be 0, add what cannot "
            "overflow, round where the kernel does"};
  }
  return {"their bound is infinite, or wider than the values that are expected",
          "use `--fill integers`, whose sums are exact, or a shorter contraction"};
}

// Whether the sample of blocks that the reference interpreted leaves out all of the output.
bool is_left_out(const OutputReport& output) {
  const reference::Comparison& comparison = output.comparison;
  return comparison.elements != 0 && comparison.left_out == comparison.elements;
}

// A comparison that could not have found a mistake in much of the output is none.
void add_not_compared(const OutputReport& output, bool undecided, Span span, Diagnostics& diags) {
  const reference::Comparison& comparison = output.comparison;
  if (comparison.tells != reference::Tells::kNothing || comparison.elements == 0) return;
  if (is_left_out(output)) return;  // add_not_sampled says so
  if (diags.has_errors()) return;   // a run that went wrong need not be told about
  const Reason reason = reason_of(comparison, undecided);
  diags
      .report<diag::ResultNotCompared>(span, output.name, comparison.not_compared,
                                       amount(comparison.elements, "element"))
      .note("{}", reason.why)
      .help("{}", reason.help)
      .emit();
}

// Outputs of which the sample has nothing. Where that is all of them nothing has been checked.
void add_not_sampled(const ir::Function& function, const RunReport& report, Diagnostics& diags) {
  if (report.asked == io::Check::kNone || report.outputs.empty()) return;
  constexpr std::string_view kHelp = "use `--check full`, which interprets all blocks";
  const bool none = std::ranges::all_of(report.outputs, is_left_out);
  for (const OutputReport& output : report.outputs) {
    if (!is_left_out(output) || diags.has_errors()) continue;
    const Span span = io::span_of_output(function, output.name);
    const std::string elements = amount(output.comparison.elements, "element");
    if (none) {
      diags.report<diag::ResultNotCompared>(span, output.name, output.comparison.left_out, elements)
          .note("no block of the sample that the reference interpreted writes to it")
          .help("{}", kHelp)
          .emit();
    } else {
      diags.report<diag::ResultNotSampled>(span, output.name).help("{}", kHelp).emit();
    }
  }
}

// What the comparison of an output cannot tell, and what could. `products`: the program has some.
std::string could_hide(const OutputReport& output, bool integers, bool products) {
  std::string_view mistake;
  if (output.comparison.tells == reference::Tells::kTiles) {
    mistake = "a lost step of a contraction";
  } else if (products && !output.only_narrow &&
             output.comparison.tells == reference::Tells::kSteps) {
    mistake = "a partial sum rounded to a narrower type";
  } else {
    return {};
  }
  const std::string_view help = integers ? "" : "; `--fill integers` would show it";
  return format("  {}: {} could hide{}\n", output.name, mistake, help);
}

// What `--expect` has to do with the output.
std::string expect_text(const OutputReport& output) {
  const reference::Comparison& comparison = output.comparison;
  if (!output.compared()) return format("  {}: compared with nothing\n", output.name);
  if (!output.stated.value_or(true) && output.reference.empty()) {
    return format(
        "  {}: `--expect` says nothing of it: compared with what the program itself says "
        "alone\n",
        output.name);
  }
  std::string array;
  if (!output.reference.empty()) {
    array =
        format("  {}: compared with `{}` as well\n", output.name, escape_lines(output.reference));
  }
  if (comparison.widened == 0) return array;
  return array +
         format(
             "  {}: {} of them have the bound of the program's own roundings, over {} times what "
             "`--expect` needs\n",
             output.name, comparison.widened, reference::kMoreRoundings);
}

// What the output was compared with.
Json compared_with(const OutputReport& output) {
  Json out = Json::array();
  if (!output.compared()) return out;
  if (output.interpreted) out.push_back("program");
  if (output.held_to_formula()) out.push_back("expect");
  if (!output.reference.empty()) out.push_back("ref");
  return out;
}

// How many elements are outside, of those that were looked at.
std::string outside_text(const OutputReport& output) {
  const reference::Comparison& comparison = output.comparison;
  if (comparison.left_out == comparison.elements) return {};
  const std::string all = amount(comparison.elements, "element");
  const std::string of =
      comparison.left_out == 0
          ? all
          : format("a sample of {} ({})", comparison.elements - comparison.left_out, all);
  return format("  {}: {} of {} outside the bound, {}\n", output.name, comparison.outside, of,
                worst_text(comparison));
}

// How many of them nothing could be said of, and how many the formula says nothing of.
std::string not_compared_text(const OutputReport& output) {
  const reference::Comparison& comparison = output.comparison;
  const std::int64_t none = comparison.not_compared - comparison.unstated;
  std::string out;
  if (none != 0) {
    out += format("  {}: {} of them not compared: any value, or zero, is within their bound\n",
                  output.name, none);
  }
  if (comparison.unstated != 0) {
    out += format(
        "  {}: {} of them not compared with `--expect`: any value, or zero, is within its bound\n",
        output.name, comparison.unstated);
  }
  return out;
}

// What a sample was of, or why there is none.
std::string sample_text(const RunReport& report) {
  if (report.blocks_compared != 0) {
    return format("  sampled: the reference interpreted {} of {} blocks; `--check full` all\n",
                  report.blocks_compared, report.blocks);
  }
  if (report.asked != io::Check::kSample || report.whole.empty()) return {};
  return format("  not sampled: {}\n", report.whole);
}

// A type of half the width would have done for what the input holds.
std::string narrow_text(const io::NarrowInput& input, bool integers) {
  const std::string_view help =
      integers || !input.could_be_wide ? "" : "; `--fill integers` would show it";
  return format("  {}: its values need {} of their {} bits, so a narrower type could hide{}\n",
                input.name, input.used, input.bits, help);
}

}  // namespace

std::string report_json(const RunReport& report, const backends::Execution& execution) {
  Json shape = Json::object();
  for (const auto& [name, value] : report.shape) shape[name] = value;
  Json outputs = Json::array();
  for (const OutputReport& output : report.outputs) {
    outputs.push_back({{"name", output.name},
                       {"elements", output.comparison.elements},
                       {"outside", output.comparison.outside},
                       {"worst", finite(output.comparison.worst)},
                       {"compared_with", compared_with(output)},
                       {"compared", output.comparison.elements - output.comparison.left_out},
                       {"widened", output.comparison.widened},
                       {"not_compared", output.comparison.not_compared},
                       {"hides", finite(output.comparison.hides)},
                       {"tells", name(output.comparison.tells)},
                       {"unwritten", execution.backend->reports.findings ? Json(output.unwritten)
                                                                         : Json(nullptr)}});
  }
  Json conflicts = nullptr;
  if (execution.sim) conflicts = execution.sim->counters.bank_conflicts;
  Json out = {{"kernel", report.kernel},
              {"arch", report.arch},
              {"on", execution.backend->name},
              {"shape", shape},
              {"seconds", execution.seconds},
              {"outputs", outputs},
              {"races", counted(execution, ReportKind::kRace)},
              {"deadlocks", counted(execution, ReportKind::kDeadlock)},
              {"uninitialised", counted(execution, ReportKind::kUninitialised)},
              {"out_of_bounds", counted(execution, ReportKind::kOutOfBounds)},
              {"bank_conflicts", conflicts},
              {"instructions", atoms_of(execution)}};
  if (!report.printed.empty()) out["printed"] = report.printed;
  if (execution.sim && !report.dumps.empty()) {
    out["dumped"] = dumps_json(report.dumps, execution.sim->dumped);
  }
  if (!report.gave_up.empty()) out["gave_up"] = report.gave_up;
  if (report.blocks_compared != 0) {
    out["sample"] = {{"blocks", report.blocks_compared}, {"of_blocks", report.blocks}};
  }
  if (execution.times) {
    out["emit_seconds"] = execution.times->emit_seconds;
    out["compile_seconds"] = execution.times->compile_seconds;
    out["load_seconds"] = execution.times->load_seconds;
    out["kernel_seconds"] = execution.times->kernel_seconds;
    out["cached"] = execution.times->cached;
  }
  return json_text(out, 2) + "\n";
}

std::string report_text(const RunReport& report, const backends::Execution& execution,
                        const reference::Outcome& reference) {
  const std::string shape = join(report.shape, " ", [](const auto& entry) {
    return format("{}={}", entry.first, entry.second);
  });
  std::string out;
  if (execution.sim) out += dumps_text(report.dumps, execution.sim->dumped);
  for (const std::string& line : report.printed) out += line + "\n";
  if (report.prints_dropped != 0) {
    out += format("and {} more lines, which are not shown\n", report.prints_dropped);
  }
  out += format("{} on {} ({}){}{}: {}\n", report.kernel, execution.backend->name, report.arch,
                shape.empty() ? "" : ", ", shape, time_text(execution.seconds));
  for (const OutputReport& output : report.outputs) {
    out += outside_text(output);
    out += not_compared_text(output);
    out += expect_text(output);
  }
  out += sample_text(report);
  for (const OutputReport& output : report.outputs) {
    out += could_hide(output, report.integers, std::isfinite(reference.step_share));
  }
  for (const io::NarrowInput& input : report.narrow) out += narrow_text(input, report.integers);
  if (!report.gave_up.empty()) out += format("  gave up: {}\n", report.gave_up);
  if (!reference.stuck_at.empty()) {
    out += format("  the reference cannot finish: {} for events that never come\n",
                  amount(static_cast<std::int64_t>(reference.stuck_at.size()), "wait", "waits"));
  }
  if (reference.open_branches != 0) {
    out += format("  {} decided by rounding\n",
                  amount(static_cast<std::int64_t>(reference.open_branches), "branch", "branches"));
  }
  if (reference.undecided != 0) {
    out += format("  {} cannot be decided: what depends on it is not compared\n",
                  amount(static_cast<std::int64_t>(reference.undecided), "branch or place",
                         "branches or places"));
  }
  if (execution.sim) {
    const sim::Outcome& sim = *execution.sim;
    out += io::findings_text(sim);
    const std::string counts = join(sim.counters.instructions, ", ", [](const auto& entry) {
      return format("{} {}", entry.second, entry.first);
    });
    out += format("  {}, {}; {}\n", amount(sim.blocks, "block"),
                  amount(sim.counters.bank_conflicts, "bank conflict"), counts);
  }
  if (execution.times) {
    const backends::Times& gpu = *execution.times;
    out += format("  emit {}, {} {}, load {}, kernel {}\n", time_text(gpu.emit_seconds),
                  gpu.cached ? "from the cache" : "compile", time_text(gpu.compile_seconds),
                  time_text(gpu.load_seconds), time_text(gpu.kernel_seconds));
  }
  return out;
}

void report_findings(const ir::Function& function, const RunReport& report,
                     const backends::Execution& execution, const reference::Outcome& reference,
                     Diagnostics& diags) {
  if (execution.sim) {
    io::report_findings(*execution.sim, io::Use::kRun, diags);
    warn_of_unreached(report.dumps, execution.sim->dumped, diags);
  }
  for (const std::string& name : execution.overrun) {
    diags
        .report<diag::OutOfBounds>(function.span,
                                   format("a kernel wrote outside of the memory of `{}`", name))
        .emit();
  }
  const bool found = execution.sim && execution.sim->count(ReportKind::kAssertion) != 0;
  io::report_interpreted(function, reference, {.assertion_found = found}, diags);
  for (const OutputReport& output : report.outputs) {
    const Span span = io::span_of_output(function, output.name);
    add_unwritten(output, span, diags);
    add_outside(output, report, span, diags);
    add_not_compared(output, reference.undecided != 0, span, diags);
  }
  add_not_sampled(function, report, diags);
}

}  // namespace kiln::driver
