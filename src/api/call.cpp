// The functions of kiln/kiln.h that run a kernel, and tell of the run.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "api/arguments.h"
#include "api/program.h"
#include "backends/backend.h"
#include "io/findings.h"
#include "io/machine.h"
#include "io/oracle.h"
#include "reference/outputs.h"

struct kiln_report {
  kiln::api::DiagnosticRows diagnostics;
  std::string text;
  std::string printed;
  kiln_findings findings = {};
  // What the kernel returned, and the row that shows it.
  std::optional<kiln::Tensor> returned;
  std::string returned_name;
  kiln_array result = {};
};

namespace kiln::api {

namespace {

using sim::ReportKind;

enum class Runner : std::uint8_t { kSim, kReference };

// A call of a kernel, from its arguments to its results.
struct Run {
  Run(const kiln_program& p, const kiln_call& c)
      : program(p), call(c), report(std::make_unique<kiln_report>()) {}

  const kiln_program& program;
  const kiln_call& call;
  std::unique_ptr<kiln_report> report;
  Diagnostics diags;
  std::size_t kernel = 0;
  ir::Arguments arguments = {};

  [[nodiscard]] const ir::Function& function() const {
    return program.program.decided.functions[kernel];
  }
};

// The end of a run that does not take place.
kiln_status refuse(Run& run) {
  run.report->diagnostics.set(run.diags, run.program.program.sources);
  run.report->text = run.report->diagnostics.text;
  const bool large = std::ranges::any_of(
      run.diags.all(), [](const Diagnostic& d) { return d.id == DiagId::kTensorsTooLarge; });
  return fail(large ? KILN_SYSTEM : KILN_INVALID, run.report->text);
}

// Where each parameter's array lies in the caller's memory, as a range of bytes.
std::vector<std::pair<std::uintptr_t, std::uintptr_t>> places_of(const Run& run) {
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> out;
  for (std::size_t i = 0; i < run.arguments.params.size(); ++i) {
    std::uintptr_t begin = 0;
    for (std::size_t k = 0; k < run.call.array_count; ++k) {
      const kiln_array& array = run.call.arrays[k];
      if (array.name == run.function().params[i].name)
        begin = reinterpret_cast<std::uintptr_t>(array.data);
    }
    out.emplace_back(begin, begin + run.arguments.params[i].tensor.bytes.size());
  }
  return out;
}

// Two parameters of which one is written have no byte in common; "" or what is wrong. A parameter
// that is not `global` is a copy, whose source may be written.
std::string shared_memory(const Run& run) {
  const std::vector<ir::Param>& params = run.function().params;
  const auto places = places_of(run);
  const auto slots = reference::output_slots(run.function());
  const auto is_written = [&](std::size_t i) {
    return std::ranges::any_of(slots, [&](const auto& slot) { return slot.param == i; });
  };
  for (std::size_t i = 0; i < params.size(); ++i) {
    for (std::size_t j = 0; is_written(i) && j < params.size(); ++j) {
      const bool common =
          std::max(places[i].first, places[j].first) < std::min(places[i].second, places[j].second);
      const bool same_memory = (params[i].is_global && params[j].is_global) || is_written(j);
      if (j == i || !common || !same_memory) continue;
      return format("`{}`, which the kernel writes, shares memory with `{}`", params[i].name,
                    params[j].name);
    }
  }
  return "";
}

// The program's, with every tensor in it; an error is how the run ends.
Result<void, kiln_status> take_arguments(Run& run, std::uint64_t memory) {
  auto bound = bind_call(run.program, run.call, io::Use::kCall, memory, run.diags);
  if (bound) {
    run.kernel = bound->kernel;
    run.arguments = std::move(bound->arguments);
    const std::string shared = shared_memory(run);
    if (shared.empty()) return {};
    run.report = nullptr;
    return Unexpected{fail(KILN_INVALID, Error{"cannot run", run.function().name, shared}.text())};
  }
  if (bound.error().text.empty()) return Unexpected{refuse(run)};
  run.report = nullptr;
  return Unexpected{fail(KILN_INVALID, bound.error().text)};
}

// To the caller's arrays, and to the report what is returned.
void give_back(Run& run, ir::Arguments& results) {
  for (const reference::OutputSlot& slot : reference::output_slots(run.function())) {
    if (!slot.param) {
      const ir::Type& type = run.function().type(slot.value);
      const auto* scalar = std::get_if<ir::ScalarType>(&type);
      Tensor returned = std::move(results.returned.tensor);
      if (scalar != nullptr) {
        returned = Tensor::zeros(scalar->dtype, {});
        returned.set(0, results.returned.scalar);
      }
      run.report->returned = std::move(returned);
      run.report->returned_name = slot.name;
      continue;
    }
    const Tensor& tensor = results.params[*slot.param].tensor;
    for (std::size_t i = 0; i < run.call.array_count; ++i) {
      const kiln_array& array = run.call.arrays[i];
      if (slot.name != array.name || tensor.bytes.empty()) continue;
      std::memcpy(array.data, tensor.bytes.data(), tensor.bytes.size());
    }
  }
}

void warn_of_unwritten(const Run& run, const sim::Outcome& outcome, Diagnostics& diags) {
  if (diags.has_errors()) return;  // a run that went wrong stores less than it should
  for (const reference::OutputSlot& slot : reference::output_slots(run.function())) {
    for (const sim::Unwritten& found : outcome.unwritten) {
      if (slot.param != found.param || found.count == 0) continue;
      const Tensor& tensor = run.arguments.params[found.param].tensor;
      diags
          .report<diag::OutputUnwritten>(
              run.function().params[found.param].span, slot.name, found.count,
              io::amount(tensor.elements(), "element"),
              shape_text(io::first_coordinates(found.elements, tensor.shape)))
          .emit();
    }
  }
}

std::string head_text(const Run& run, std::string_view place, double seconds) {
  std::string shape;
  for (std::uint32_t v = 0; v < run.function().vars.size(); ++v) {
    const ir::Var& var = run.function().vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    shape += format("{}{}={}", shape.empty() ? ", " : " ", var.name, run.arguments.vars[v]);
  }
  return format("{} on {} ({}){}: {}\n", run.function().name, place, run.program.program.arch->name,
                shape, io::time_text(seconds));
}

void finish(Run& run, std::string summary) {
  kiln_report& report = *run.report;
  report.diagnostics.set(run.diags, run.program.program.sources);
  report.text = report.diagnostics.text + std::move(summary);
  if (run.diags.has_errors()) report.findings.ok = 0;
  if (!report.returned) return;
  report.result = {.name = report.returned_name.c_str(),
                   .data = report.returned->bytes.data(),
                   .dtype = name(report.returned->dtype).data(),
                   .shape = report.returned->shape.data(),
                   .rank = report.returned->shape.size()};
}

kiln_findings count(const sim::Outcome& outcome) {
  kiln_findings out{};
  out.ok = outcome.reports.empty() && !outcome.gave_up ? 1 : 0;
  out.races = outcome.count(ReportKind::kRace);
  out.deadlocks = outcome.count(ReportKind::kDeadlock);
  out.uninitialised_reads = outcome.count(ReportKind::kUninitialised);
  out.out_of_bounds = outcome.count(ReportKind::kOutOfBounds);
  out.others = static_cast<std::int64_t>(outcome.reports.size()) - out.races - out.deadlocks -
               out.uninitialised_reads - out.out_of_bounds;
  return out;
}

backends::Job job_of(const Run& run, const backends::Interpreted* interpreted = nullptr) {
  return {.module = run.program.program.decided,
          .function = run.function(),
          .sources = run.program.program.sources,
          .interpreted = interpreted};
}

// Memory was short, or the arguments cannot be run.
kiln_status end_by_system(Run& run, const Error& error) {
  run.report = nullptr;
  return fail(KILN_SYSTEM, error.text());
}

// CUDA that nothing stands in for.
bool can_run(Run& run, const backends::Backend& backend) {
  if (backends::check_runs(backend, run.function(), run.diags)) return true;
  finish(run, head_text(run, backend.name, 0));
  return false;
}

kiln_status simulate(Run& run, const backends::Limits& limits) {
  if (!can_run(run, backends::kSim)) return KILN_OK;
  const auto prepared = backends::kSim.prepare(job_of(run));
  if (!prepared) return end_by_system(run, prepared.error());
  auto execution = (*prepared)->run(run.arguments, limits);
  if (!execution) return end_by_system(run, execution.error());
  const sim::Outcome& outcome = *execution->sim;
  if (!outcome.gave_up) give_back(run, execution->arguments);
  io::report_findings(outcome, io::Use::kCall, run.diags);
  warn_of_unwritten(run, outcome, run.diags);
  run.report->findings = count(outcome);
  for (const ir::Printed& line : execution->printed) run.report->printed += line.text + "\n";
  std::string text;
  for (const std::string& line :
       io::printed_lines(execution->printed, run.program.program.sources)) {
    text += line + "\n";
  }
  text += head_text(run, "sim", execution->seconds) + io::findings_text(outcome);
  finish(run, std::move(text));
  return KILN_OK;
}

kiln_status interpret(Run& run, const backends::Limits& limits) {
  if (!can_run(run, backends::kReference)) return KILN_OK;
  io::Oracle oracle{.program = run.program.program, .function = run.kernel};
  oracle.limits = limits;
  oracle.check = io::Check::kFull;
  const io::Said said = io::by_program(oracle, run.arguments);
  const reference::Outcome& outcome = said.interpreted.outcome;
  if (outcome.out_of_memory) return end_by_system(run, *outcome.out_of_memory);
  const bool ended = !outcome.gave_up && outcome.stuck_at.empty();
  run.report->findings.ok = ended ? 1 : 0;
  run.report->findings.deadlocks = outcome.stuck_at.empty() ? 0 : 1;
  if (ended) {
    const auto prepared = backends::kReference.prepare(job_of(run, &said.interpreted));
    if (!prepared) return end_by_system(run, prepared.error());
    auto execution = (*prepared)->run(run.arguments, limits);
    if (!execution) return end_by_system(run, execution.error());
    give_back(run, execution->arguments);
  }
  io::report_interpreted(run.function(), outcome, {.use = io::Use::kCall}, run.diags);
  std::string text = head_text(run, "reference", said.interpreted.seconds);
  if (!outcome.stuck_at.empty())
    text += "  it cannot finish: it waits for events that never come\n";
  finish(run, std::move(text));
  return KILN_OK;
}

kiln_status run_at(Runner runner, const kiln_program* program, const kiln_call* call,
                   kiln_report** report) {
  if (report == nullptr) return fail(KILN_INVALID, "the place for the report is null");
  *report = nullptr;
  if (program == nullptr || call == nullptr) {
    return fail(KILN_INVALID, "the program or the call is null");
  }
  if (!program->compiled) return fail(KILN_INVALID, "the program has errors and cannot be run");
  if (call->schedules < 0) return fail(KILN_INVALID, "less than no orders of execution");
  Run run(*program, *call);
  const std::uint64_t allowed = io::memory_allowed();
  MemoryBudget memory(allowed);
  MemoryHold tensors;
  backends::Limits limits{.schedules = call->schedules == 0 ? 1 : call->schedules,
                          .seed = call->seed,
                          .memory = allowed == 0 ? nullptr : &memory};
  if (call->steps_max != 0) limits.steps_max = call->steps_max;
  const auto taken = take_arguments(run, allowed);
  kiln_status status = taken ? KILN_OK : taken.error();
  if (taken) {
    const double bytes = io::tensor_bytes(run.function(), run.arguments, io::Use::kCall);
    if (const auto error = tensors.take(limits.memory, bytes, "what the tensors are")) {
      status = end_by_system(run, *error);
    } else {
      status = runner == Runner::kSim ? simulate(run, limits) : interpret(run, limits);
    }
  }
  *report = run.report.release();
  return status;
}

}  // namespace

}  // namespace kiln::api

extern "C" {

kiln_status kiln_simulate(const kiln_program* program, const kiln_call* call,
                          kiln_report** report) {
  return kiln::api::run_at(kiln::api::Runner::kSim, program, call, report);
}

kiln_status kiln_reference(const kiln_program* program, const kiln_call* call,
                           kiln_report** report) {
  return kiln::api::run_at(kiln::api::Runner::kReference, program, call, report);
}

void kiln_report_free(kiln_report* report) { delete report; }

kiln_findings kiln_report_findings(const kiln_report* report) { return report->findings; }

const kiln_diagnostic* kiln_report_diagnostics(const kiln_report* report, size_t* count) {
  if (count != nullptr) *count = report->diagnostics.rows.size();
  return report->diagnostics.rows.data();
}

const char* kiln_report_text(const kiln_report* report) { return report->text.c_str(); }

const char* kiln_report_printed(const kiln_report* report) { return report->printed.c_str(); }

const kiln_array* kiln_report_result(const kiln_report* report) {
  return report->returned ? &report->result : nullptr;
}

}  // extern "C"
