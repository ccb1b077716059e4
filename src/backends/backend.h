// What runs a decided program. Each back end is one row of one table; whoever runs, measures or
// keeps kernels asks a row and never names a back end's functions.
//
//   sim         any architecture      on this CPU, instruction by instruction; finds races
//   gpu         the machine's GPU's   by the CUDA driver and NVRTC; the only one that is measured
//   reference   any architecture      what the interpreter says, rounded; the oracle as a machine
//
//   const Backend* backend = choose_backend("auto", *program.arch);
//   const auto prepared = backend->prepare(job);
//   const auto done = (*prepared)->run(std::move(arguments), limits);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/arguments.h"
#include "ir/module.h"
#include "ir/printed.h"
#include "reference/interpreter.h"
#include "sim/sim.h"
#include "support/memory_budget.h"
#include "support/source.h"
#include "target/arch.h"

namespace kiln::backends {

struct Backend;
struct Device;

// What the reference interpreter found, and how long that took.
struct Interpreted {
  reference::Outcome outcome = {};
  double seconds = 0;
};

// A function of a decided module; all of it must outlive what is prepared.
struct Job {
  const ir::Module& module;
  const ir::Function& function;
  const Sources& sources;
  const Interpreted* interpreted = nullptr;  // where a back end runs after the interpreter
};

// What a run may take; a back end that cannot be stopped ignores them (Backend::gives_up).
struct Limits {
  std::int64_t schedules = 1;  // orders of execution that are tried, where there are several
  std::uint64_t seed = 0;      // of the first one (sim::Options)
  std::uint64_t steps_max = kStepsMax;
  MemoryBudget* memory = nullptr;
  std::vector<sim::DumpPoint> dumps = {};               // Reports::tiles
  std::function<void(std::string_view)> progress = {};  // what is being done; "": nothing any more
};

// What a run made for a model of cost (Backend::count) is to count.
struct Counting {
  // Every block; else of each grid axis three stand for all, and outputs are incomplete.
  bool all_blocks = false;
  bool trace = false;  // sim::Outcome::traces too: what one block of each launch does
  std::function<void(std::string_view)> progress = {};  // as of Limits
};

// How long it took until a function's kernels could be started, and to run them.
struct Times {
  double emit_seconds = 0;
  double compile_seconds = 0;
  double load_seconds = 0;
  double kernel_seconds = 0;
  bool cached = false;     // the kernels were found in the compile cache
  std::string cache_note;  // why it could not keep them; usually empty
};

struct Execution {
  const Backend* backend = nullptr;
  ir::Arguments arguments = {};  // with the outputs
  double seconds = 0;            // of the kernel: simulated, measured on the GPU, or interpreted
  std::optional<sim::Outcome> sim = {};   // Reports::findings
  std::optional<Times> times = {};        // Reports::times
  std::vector<ir::Printed> printed = {};  // by the program; a GPU's threads write by themselves
  std::int64_t prints_dropped = 0;        // that were too many
  std::vector<std::string> overrun =
      {};  // Reports::overrun: buffers with foreign writes around them
};

// A function that is ready to run: once, or again with other arguments.
class Prepared {
 public:
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;

  // `arguments` must fit the function: tensors of the right types and shapes, every dimension set,
  // every entry check passed. Errors: what the machine says.
  [[nodiscard]] virtual Result<Execution> run(ir::Arguments arguments, const Limits& limits) = 0;
};

// What an Execution says besides its outputs.
struct Reports {
  bool findings = false;  // races and other mistakes of the program, counts, elements not written
  bool times = false;
  bool overrun = false;
  bool tiles = false;  // what they hold at Limits::dumps
};

struct Backend {
  std::string_view name;  // as `--on` spells it
  // Of those that serve a program `auto` takes the one with the highest; 0: never by itself.
  int preference = 0;
  // Whether it runs programs for this architecture, on this machine.
  bool (*serves)(const target::Arch& arch) = nullptr;
  // Whether this machine has it; the reason when it has not.
  Result<void> (*find)() = nullptr;
  Result<std::unique_ptr<Prepared>> (*prepare)(const Job& job) = nullptr;
  // Whether it runs what a program says in CUDA; else what stands in for that, in this language.
  bool runs_cuda = false;
  // Whether it stops by itself at Limits::steps_max, sooner than the interpreter would: then it
  // runs before that, else after it.
  bool gives_up = false;
  Reports reports = {};
  // Runs for the sake of the counts, each operation's apart, and looks for no mistakes of the
  // program: what `explain` and the model of `tune` ask. Null: it does not count.
  Result<sim::Outcome> (*count)(const Job& job, ir::Arguments& arguments,
                                const Counting& how) = nullptr;
  // Where kernels are kept and started again and again: for measuring and for the library
  // (device.h). Null: it cannot do that.
  const Device* device = nullptr;
};

// The rows, each in a file of its own, so that a program that needs one links no other.
extern const Backend kSim;
extern const Backend kGpu;
extern const Backend kReference;

// In the order in which they are named.
[[nodiscard]] std::span<const Backend* const> backends();

// "auto, sim, gpu, reference".
[[nodiscard]] std::string backend_names();

// The row of this name; for "auto" the one that is preferred of those that serve the architecture.
// Null: no back end is called so.
[[nodiscard]] const Backend* choose_backend(std::string_view name, const target::Arch& arch);

// False after a report of what the back end cannot run of the function: CUDA that nothing stands in for.
[[nodiscard]] bool check_runs(const Backend& backend, const ir::Function& function,
                              Diagnostics& diags);

// The row that counts (Backend::count).
[[nodiscard]] const Backend& counter();

// The tensor of an output after a run: a parameter's, or the returned value's (a scalar is a tensor
// of no dimensions).
[[nodiscard]] Tensor result_of(const ir::Arguments& arguments, const reference::Output& output);

}  // namespace kiln::backends
