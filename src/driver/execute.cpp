#include "driver/execute.h"

#include "io/machine.h"
#include "reference/compare.h"

namespace kiln::driver {

namespace {

std::string text_of(const sim::Progress& at) {
  std::string out = format("simulating block {} of {}, {} million steps", at.blocks_done + 1,
                           at.blocks, at.steps / 1'000'000);
  if (at.schedules > 1) out += format(", schedule {} of {}", at.schedule + 1, at.schedules);
  return out;
}

Result<Execution> simulate(const io::Program& program, const ExecuteOptions& options,
                           ir::Arguments arguments) {
  const ir::Function& function = program.decided.functions[options.function];
  arguments.vars.resize(function.vars.size());
  sim::Options how;
  how.schedules = options.schedules;
  how.steps_max = options.steps_max;
  how.memory = options.memory;
  if (options.console != nullptr && options.console->progress) {
    how.progress = [&](const sim::Progress& at) {
      io::show_progress(*options.console, text_of(at));
    };
  }
  auto outcome = sim::run(program.decided, function, arguments, how);
  if (how.progress) io::show_progress(*options.console, "");
  if (!outcome) return Unexpected{outcome.error()};
  Execution execution;
  execution.place = Place::kSim;
  execution.arguments = std::move(arguments);
  execution.seconds = outcome->seconds;
  execution.sim = std::move(*outcome);
  return execution;
}

// What the interpreter says, rounded to the outputs' types.
Execution interpreted(ir::Arguments arguments, const reference::Outcome& reference) {
  Execution execution;
  execution.place = Place::kReference;
  execution.arguments = std::move(arguments);
  for (const reference::Output& output : reference.outputs) {
    Tensor tensor = reference::rounded(output);
    if (output.param) {
      execution.arguments.params[*output.param].tensor = std::move(tensor);
      continue;
    }
    execution.arguments.returned.scalar = tensor.elements() == 1 ? tensor.get(0) : 0;
    execution.arguments.returned.tensor = std::move(tensor);
  }
  return execution;
}

}  // namespace

std::optional<Place> place_from_name(std::string_view name, const target::Arch& arch) {
  if (name == "auto") {
    const target::Arch* machine = io::machine_arch();
    const bool runs_it = machine != nullptr && machine->capability >= arch.capability;
    return runs_it ? Place::kGpu : Place::kSim;
  }
  if (name == "sim") return Place::kSim;
  if (name == "gpu") return Place::kGpu;
  if (name == "reference") return Place::kReference;
  return std::nullopt;
}

std::string_view name(Place place) {
  switch (place) {
    case Place::kSim: return "sim";
    case Place::kGpu: return "gpu";
    case Place::kReference: return "reference";
  }
  return "";
}

Result<Execution> execute(const io::Program& program, const ExecuteOptions& options,
                          ir::Arguments arguments, const reference::Outcome& reference) {
  switch (options.place) {
    case Place::kSim: return simulate(program, options, std::move(arguments));
    case Place::kGpu: return run_on_gpu(program, options, std::move(arguments));
    case Place::kReference: return interpreted(std::move(arguments), reference);
  }
  KILN_UNREACHABLE("place {}", static_cast<int>(options.place));
}

Tensor result_of(const ir::Arguments& arguments, const reference::Output& output) {
  if (output.param) return arguments.params[*output.param].tensor;
  if (!output.shape.empty()) return arguments.returned.tensor;
  Tensor scalar = Tensor::zeros(output.dtype, {});
  scalar.set(0, arguments.returned.scalar);
  return scalar;
}

}  // namespace kiln::driver
