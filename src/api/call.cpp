// The functions of kiln/kiln.h that run a kernel, and tell of the run.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "api/program.h"
#include "backends/backend.h"
#include "coverage/coverage.h"
#include "io/bind.h"
#include "io/findings.h"
#include "io/machine.h"
#include "io/oracle.h"
#include "reference/outputs.h"

struct kiln_report {
  kiln::api::DiagnosticRows diagnostics;
  std::string text;
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

// Of an array that is one, as far as that can be said without the kernel; else the reason in words.
Result<io::InputFile, std::string> input_of(const kiln_array& array) {
  using Failed = Unexpected<std::string>;
  if (array.name == nullptr || array.dtype == nullptr) {
    return Failed{"an array has no name or no type"};
  }
  const std::optional<DType> dtype = dtype_from_name(array.dtype);
  if (!dtype) return Failed{format("array `{}`: unknown type `{}`", array.name, array.dtype)};
  if (array.rank != 0 && array.shape == nullptr) {
    return Failed{format("array `{}` has no shape", array.name)};
  }
  const std::vector<std::int64_t> shape(array.shape, array.shape + array.rank);
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }) ||
      !elements_fit(*dtype, shape)) {
    return Failed{format("array `{}` cannot have shape {}", array.name, shape_text(shape))};
  }
  Tensor tensor{*dtype, shape, {}};
  const std::size_t bytes =
      static_cast<std::size_t>(tensor.elements()) * static_cast<std::size_t>(size_bytes(*dtype));
  if (bytes != 0 && array.data == nullptr) return Failed{format("array `{}` is null", array.name)};
  const auto* data = static_cast<const std::byte*>(array.data);
  tensor.bytes.assign(data, data + bytes);
  const bool opaque = *dtype == DType::kU16 || *dtype == DType::kU8;
  return io::InputFile{array.name, array.name, {std::move(tensor), array.dtype, opaque, false}};
}

io::Assignment assignment_of(const kiln_scalar& scalar) {
  return {scalar.name,
          scalar.is_real != 0 ? format("{}", scalar.real) : format("{}", scalar.integer)};
}

// Whether every name is there once; what a name is for is found out later.
Checked<void> names_once(const io::BindOptions& bind, Diagnostics& diags) {
  std::set<std::string> seen;
  for (const io::InputFile& input : bind.inputs) {
    if (seen.insert(input.param).second) continue;
    return diags.report<diag::OptionTwice>({}, "the call", input.param).emit();
  }
  for (const io::Assignment& shape : bind.shapes) {
    if (seen.insert(shape.name).second) continue;
    return diags.report<diag::OptionTwice>({}, "the call", shape.name).emit();
  }
  return {};
}

// The program's, with every tensor in it; an error is how the run ends.
Result<void, kiln_status> take_arguments(Run& run, std::uint64_t memory) {
  using Failed = Unexpected<kiln_status>;
  const io::Program& program = run.program.program;
  io::BindOptions bind;
  bind.use = io::Use::kCall;
  bind.memory_bytes_max = memory;
  for (std::size_t i = 0; i < run.call.array_count; ++i) {
    auto input = input_of(run.call.arrays[i]);
    if (!input) {
      run.report = nullptr;
      return Failed{fail(KILN_INVALID, input.error())};
    }
    bind.inputs.push_back(std::move(*input));
  }
  for (std::size_t i = 0; i < run.call.scalar_count; ++i) {
    if (run.call.scalars[i].name == nullptr) {
      run.report = nullptr;
      return Failed{fail(KILN_INVALID, "a scalar has no name")};
    }
    bind.shapes.push_back(assignment_of(run.call.scalars[i]));
  }
  const std::string name = run.call.kernel != nullptr ? run.call.kernel : "";
  const auto kernel = io::choose_kernel(program, run.program.file, name, run.diags);
  if (!kernel) return Failed{refuse(run)};
  run.kernel = *kernel;
  if (!names_once(bind, run.diags)) return Failed{refuse(run)};
  auto arguments = io::bind(run.function(), std::move(bind), run.diags);
  if (!arguments) return Failed{refuse(run)};
  run.arguments = std::move(*arguments);
  if (!io::check_entry(run.function(), run.arguments, run.diags)) return Failed{refuse(run)};
  coverage::check_coverage(program.tile.functions[run.kernel], run.arguments.vars, run.diags);
  return {};
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
    if (var.kind != ir::VarKind::kDim && var.kind != ir::VarKind::kScalar) continue;
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

kiln_status simulate(Run& run, const backends::Limits& limits) {
  const auto prepared = backends::kSim.prepare(job_of(run));
  if (!prepared) return end_by_system(run, prepared.error());
  auto execution = (*prepared)->run(run.arguments, limits);
  if (!execution) return end_by_system(run, execution.error());
  const sim::Outcome& outcome = *execution->sim;
  if (!outcome.gave_up) give_back(run, execution->arguments);
  io::report_findings(outcome, run.diags);
  warn_of_unwritten(run, outcome, run.diags);
  run.report->findings = count(outcome);
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
  io::report_interpreted(run.function(), outcome, false, run.diags);
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
  if ((call->array_count != 0 && call->arrays == nullptr) ||
      (call->scalar_count != 0 && call->scalars == nullptr)) {
    return fail(KILN_INVALID, "the arrays or the scalars are null");
  }
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

const kiln_array* kiln_report_result(const kiln_report* report) {
  return report->returned ? &report->result : nullptr;
}

}  // extern "C"
