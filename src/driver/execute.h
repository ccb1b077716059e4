// One call of a kernel, wherever it runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/program.h"
#include "ir/arguments.h"
#include "reference/interpreter.h"
#include "sim/sim.h"

namespace kiln::driver {

enum class Place : std::uint8_t { kSim, kGpu, kReference };

inline constexpr std::string_view kPlaceNames = "auto, sim, gpu, reference";

// "auto": the GPU if the machine has one that runs code for `arch`, else the simulator. None for an
// unknown name.
[[nodiscard]] std::optional<Place> place_from_name(std::string_view name, const target::Arch& arch);
[[nodiscard]] std::string_view name(Place place);

struct GpuTimes {
  double emit_seconds = 0;
  double compile_seconds = 0;
  double load_seconds = 0;
  double kernel_seconds = 0;
  bool cached = false;     // the kernels were found in the compile cache
  std::string cache_note;  // why it could not keep them; usually empty
};

struct Execution {
  Place place = Place::kSim;
  ir::Arguments arguments;  // with the outputs
  double seconds = 0;       // of the kernel: simulated, measured on the GPU, or interpreted
  std::optional<sim::Outcome> sim;
  std::optional<GpuTimes> gpu;
  std::vector<std::string> overrun;  // buffers around which the GPU found foreign writes
};

struct ExecuteOptions {
  Place place = Place::kSim;
  std::size_t function = 0;  // of the program's modules
  std::int64_t schedules = 1;
  std::uint64_t steps_max = sim::kStepsMax;
  MemoryBudget* memory = nullptr;
  const io::Console* console = nullptr;  // who watches; null: nobody
};

// Whether the machine has the place; the reason when it has not (gpu.cpp).
[[nodiscard]] Result<void> find_place(Place place);

// The GPU part of `execute` (gpu.cpp).
[[nodiscard]] Result<Execution> run_on_gpu(const io::Program& program,
                                           const ExecuteOptions& options, ir::Arguments arguments);

// Runs the function on `arguments`; with Place::kReference the outputs are those of `reference`.
[[nodiscard]] Result<Execution> execute(const io::Program& program, const ExecuteOptions& options,
                                        ir::Arguments arguments,
                                        const reference::Outcome& reference);

// The tensor of an output after a run: a parameter's, or the returned value's (a scalar is a tensor
// of no dimensions).
[[nodiscard]] Tensor result_of(const ir::Arguments& arguments, const reference::Output& output);

}  // namespace kiln::driver
