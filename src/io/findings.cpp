#include "io/findings.h"

#include <algorithm>

#include "reference/outputs.h"
#include "support/check.h"
#include "support/format.h"

namespace kiln::io {

namespace {

using sim::ReportKind;

DiagId id_of(ReportKind kind) {
  switch (kind) {
    case ReportKind::kRace: return DiagId::kRace;
    case ReportKind::kDeadlock: return DiagId::kDeadlock;
    case ReportKind::kDivergence: return DiagId::kDivergence;
    case ReportKind::kUninitialised: return DiagId::kUninitialisedRead;
    case ReportKind::kOutOfBounds: return DiagId::kOutOfBounds;
    case ReportKind::kMisaligned: return DiagId::kMisaligned;
    case ReportKind::kMulticast: return DiagId::kMulticastDiffers;
    case ReportKind::kAssertion: return DiagId::kAssertFailed;
    case ReportKind::kDivisionByZero: return DiagId::kRunDivisionByZero;
    case ReportKind::kOverrun: return DiagId::kPhaseOverrun;
    case ReportKind::kSteps: return DiagId::kTooManySteps;
    case ReportKind::kUnfinished: return DiagId::kUnfinishedAtExit;
  }
  KILN_UNREACHABLE("report kind {}", static_cast<int>(kind));
}

// How a run that would end later is given more steps, by the command's option or the call's field.
std::string help_with_steps(Use use) {
  return format("if it ends after more, allow them with `{}`",
                is_call(use) ? "steps_max" : "--max-steps");
}

void add_report(const sim::Report& report, Use use, Diagnostics& diags) {
  Diagnostic out{.id = id_of(report.kind),
                 .severity = Severity::kError,
                 .span = report.accesses.empty() ? Span{} : report.accesses.back().span,
                 .message = report.message,
                 .labels = {},
                 .notes = {},
                 .help = {}};
  for (const sim::Access& access : report.accesses) {
    out.labels.push_back({access.span, access.what});
  }
  if (!report.missing.empty()) out.notes.push_back(report.missing);
  out.help = report.kind == ReportKind::kSteps ? help_with_steps(use) : report.help;
  if (report.count > 1) out.notes.push_back(format("seen {} times", report.count));
  if (report.schedule_seed != 0) {
    out.notes.push_back(format("found by schedule {}; `{}{}` finds it again", report.schedule_seed,
                               is_call(use) ? "schedules = " : "--schedules ",
                               report.schedule_seed + 1));
  }
  diags.add(std::move(out));
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds < 1e-3) return format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return format("{:.2f} ms", seconds * 1e3);
  return format("{:.2f} s", seconds);
}

std::string amount(std::int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return format("1 {}", one);
  return many.empty() ? format("{} {}s", count, one) : format("{} {}", count, many);
}

Span span_of_output(const ir::Function& function, const std::string& output) {
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    if (slot.name != output) continue;
    const ir::OpId def = function.values[slot.value].def;
    if (slot.param) return function.params[*slot.param].span;
    if (def.valid()) return function.ops[def].span;
  }
  return function.span;
}

std::vector<std::int64_t> first_coordinates(const std::vector<bool>& marked,
                                            const std::vector<std::int64_t>& shape) {
  const auto first = std::find(marked.begin(), marked.end(), true);
  std::int64_t rest = first - marked.begin();
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
  return at;
}

void report_findings(const sim::Outcome& outcome, Use use, Diagnostics& diags) {
  for (const sim::Report& finding : outcome.reports) add_report(finding, use, diags);
}

void report_interpreted(const ir::Function& function, const reference::Outcome& reference,
                        const InterpretedFor& by, Diagnostics& diags) {
  if (reference.gave_up) {
    const Span span = function.ops[reference.gave_up->op].span;
    if (reference.gave_up->endless) {
      diags.report<diag::Deadlock>(span, reference.gave_up->message).emit();
    } else {
      diags.report<diag::TooManySteps>(span, reference.gave_up->message)
          .help("{}", help_with_steps(by.use))
          .emit();
    }
  }
  if (reference.failed_assert && !by.assertion_found) {
    diags
        .report<diag::AssertFailed>(function.ops[reference.failed_assert->op].span,
                                    reference.failed_assert->message)
        .emit();
  }
}

std::vector<std::string> printed_lines(const std::vector<ir::Printed>& printed,
                                       const Sources& sources) {
  std::vector<std::string> out;
  for (const ir::Printed& line : printed) {
    const Place at = sources.place(line.span);
    out.push_back(format("{}:{}: {}: {}", at.file, at.line, line.who, line.text));
  }
  return out;
}

std::string findings_text(const sim::Outcome& sim) {
  return format("  {}, {}, {}, {} out of bounds\n", amount(sim.count(ReportKind::kRace), "race"),
                amount(sim.count(ReportKind::kDeadlock), "deadlock"),
                amount(sim.count(ReportKind::kUninitialised), "uninitialised read"),
                sim.count(ReportKind::kOutOfBounds));
}

}  // namespace kiln::io
