// The functions of kiln/embedded.h: kernels that a program carries are compiled for the device at hand,
// prepared for their shapes, kept, and launched.
#include "kiln/embedded.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <tuple>

#include "api/devices.h"
#include "api/program.h"
#include "reference/outputs.h"
#include "runtime/call_plan.h"
#include "runtime/carried_code.h"
#include "support/last_error.h"

namespace kiln::api::embedded {

namespace {

using runtime::cuda::DevicePtr;

// How a function of this file ended, in the words of kiln_last_error.
struct Ended {
  kiln_status status = KILN_DEVICE;
  std::string text;
};
template <class T>
using Outcome = Result<T, Ended>;

Unexpected<Ended> ended(kiln_status status, std::string text) {
  return Unexpected{Ended{status, std::move(text)}};
}
Unexpected<Ended> ended(const Failure& failure) {
  return ended(failure.status, failure.error.text());
}

// A kernel that is compiled for an architecture.
struct Kernel {
  std::unique_ptr<kiln_program> program;
  std::vector<bool> deciding = {};  // numbers, by parameter
  std::vector<ir::VarId> dimensions = {};
  std::vector<bool> in_tensor = {};  // by dimension: some tensor has it as an extent
  std::optional<ir::Type> returned = {};

  [[nodiscard]] const ir::Function& function() const {
    return program->program.decided.functions.front();
  }
  [[nodiscard]] const ir::ViewType* view(std::size_t param) const {
    const ir::Param& row = function().params[param];
    if (!row.value.valid()) return nullptr;
    return std::get_if<ir::ViewType>(&function().type(row.value));
  }
  // A number that is no floating one.
  [[nodiscard]] bool is_integer(std::size_t param) const {
    const ir::Param& row = function().params[param];
    if (!row.value.valid()) return true;
    const auto* scalar = std::get_if<ir::ScalarType>(&function().type(row.value));
    return scalar == nullptr || !is_float(scalar->dtype);
  }
};

struct PlanFree {
  void operator()(kiln_plan* plan) const { kiln_plan_free(plan); }
};
// A kernel that is prepared for a device, shapes and deciding numbers.
struct Prepared {
  std::unique_ptr<kiln_plan, PlanFree> plan;
};

// What the library knows of one embedded file; kept while the process lives.
struct State {
  std::string text;
  using KernelKey = std::pair<std::string, const target::Arch*>;
  runtime::OnceMap<KernelKey, Kernel, Ended> kernels;
  using PlanKey = std::tuple<std::string, int, std::vector<std::int64_t>>;
  runtime::OnceMap<PlanKey, Prepared, Ended> plans;
};

std::string text_of(const kiln_embedded& embedded) {
  std::string text;
  for (std::size_t i = 0; i < embedded.line_count; ++i) text += embedded.lines[i];
  return text;
}

std::unique_ptr<State> make_state(const kiln_embedded& embedded) {
  auto state = std::make_unique<State>();
  state->text = text_of(embedded);
  for (std::size_t i = 0; i < embedded.code_count; ++i) {
    const kiln_machine_code& code = embedded.codes[i];
    runtime::carry(code.key, {reinterpret_cast<const char*>(code.bytes), code.byte_count});
  }
  return state;
}

// For good: kernels may be called while the process ends.
State& keep(std::unique_ptr<State> state) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<State>>();
  const std::lock_guard<std::mutex> lock(mutex);
  return *all->emplace_back(std::move(state));
}

// Of several threads that come first at once one makes it.
State& state_of(kiln_embedded& embedded) {
  const std::atomic_ref<void*> place(embedded.state);
  if (void* known = place.load(std::memory_order_acquire)) return *static_cast<State*>(known);
  std::unique_ptr<State> made = make_state(embedded);
  void* expected = nullptr;
  if (place.compare_exchange_strong(expected, made.get())) return keep(std::move(made));
  return *static_cast<State*>(expected);
}

io::ProgramOptions options_of(const kiln_embedded& embedded, std::string text,
                              std::string_view arch) {
  io::ProgramOptions how;
  how.file = embedded.file;
  how.arch = arch;
  how.text = std::move(text);
  how.defines.assign(embedded.defines, embedded.defines + embedded.define_count);
  return how;
}

// The GPU's own architecture where the file is for it, else the newest that runs on it.
Outcome<const target::Arch*> choose_arch(const kiln_embedded& embedded, const runtime::Gpu& gpu) {
  const target::Arch* best = nullptr;
  std::string names;
  for (std::size_t i = 0; i < embedded.arch_count; ++i) {
    names += (names.empty() ? "" : ", ") + std::string(embedded.archs[i]);
    const target::Arch* arch = target::find_arch(embedded.archs[i]);
    if (arch == nullptr || arch->capability > gpu.arch().capability) continue;
    if (best == nullptr || arch->capability > best->capability) best = arch;
  }
  if (best != nullptr) return best;
  return ended(KILN_UNSUPPORTED, format("cannot run on {}: {} is for {}, the GPU is {}", gpu.name(),
                                        embedded.file, names, gpu.arch().name));
}

void describe(Kernel& kernel) {
  const ir::Function& function = kernel.function();
  kernel.deciding = runtime::deciding_numbers(kernel.program->program.decided, function);
  for (std::uint32_t i = 0; i < function.vars.size(); ++i) {
    const ir::VarId var{i};
    if (function.vars[var].kind != ir::VarKind::kDim) continue;
    kernel.dimensions.push_back(var);
    bool found = false;
    for (std::size_t param = 0; param < function.params.size(); ++param) {
      const ir::ViewType* view = kernel.view(param);
      found =
          found || (view != nullptr && std::ranges::any_of(view->shape, [&](const auto& extent) {
                      return extent.as_var() == var;
                    }));
    }
    kernel.in_tensor.push_back(found);
  }
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    if (!slot.param) kernel.returned = function.type(slot.value);
  }
}

Outcome<const Kernel*> kernel_for(const kiln_embedded& embedded, State& state, const char* name,
                                  const target::Arch& arch) {
  const auto made =
      state.kernels.find_or_make({name, &arch}, [&]() -> Result<std::unique_ptr<Kernel>, Ended> {
        auto kernel = std::make_unique<Kernel>();
        const kiln_status status =
            compile_program(options_of(embedded, state.text, arch.name), name, kernel->program);
        if (status != KILN_OK) return ended(status, last_error());
        const auto& functions = kernel->program->program.decided.functions;
        if (functions.size() != 1 || functions.front().name != name) {
          return ended(KILN_INVALID, format("{} has no kernel `{}`", embedded.file, name));
        }
        describe(*kernel);
        return kernel;
      });
  if (!made) return Unexpected{made.error()};
  return *made;
}

// A call with all that its dimensions and numbers decide.
struct Bound {
  std::vector<std::int64_t> vars;                 // of the function
  std::vector<std::vector<std::int64_t>> shapes;  // by parameter; of a number empty
  std::vector<std::int64_t> deciding;             // with the shapes a plan's key
};

Outcome<void> check_counts(const Kernel& kernel, const kiln_embedded_call& call) {
  const std::size_t expected =
      kernel.function().params.size() + (kernel.returned.has_value() ? 1 : 0);
  if (call.argument_count != expected || call.dimension_count != kernel.dimensions.size()) {
    return ended(
        KILN_INVALID,
        format("`{}` has {} arguments and {} dimensions, and {} and {} are given", call.kernel,
               expected, kernel.dimensions.size(), call.argument_count, call.dimension_count));
  }
  for (std::size_t i = 0; i < call.dimension_count; ++i) {
    if (call.dimensions[i] >= 1) continue;
    return ended(KILN_INVALID,
                 format("`{}`: dimension {} is {}, and 1 is the least", call.kernel,
                        kernel.function().vars[kernel.dimensions[i]].name, call.dimensions[i]));
  }
  return {};
}

std::vector<std::int64_t> evaluated(const std::vector<ir::Expr>& shape,
                                    const std::vector<std::int64_t>& vars) {
  std::vector<std::int64_t> out;
  for (const ir::Expr& extent : shape) out.push_back(extent.evaluate(vars));
  return out;
}

Outcome<Bound> bind(const Kernel& kernel, const kiln_embedded_call& call) {
  const ir::Function& function = kernel.function();
  Bound bound;
  bound.vars.resize(function.vars.size());
  for (std::size_t i = 0; i < call.dimension_count; ++i) {
    bound.vars[kernel.dimensions[i].index] = call.dimensions[i];
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::VarId var = function.params[i].var;
    if (var.valid()) bound.vars[var.index] = call.arguments[i].value.integer;
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const kiln_embedded_argument& argument = call.arguments[i];
    std::vector<std::int64_t>& shape = bound.shapes.emplace_back();
    const ir::ViewType* view = kernel.view(i);
    if (view == nullptr) {
      // The bits of either kind of number.
      if (kernel.deciding[i]) bound.deciding.push_back(argument.value.integer);
      continue;
    }
    shape = evaluated(view->shape, bound.vars);
    if (argument.shape == nullptr || std::equal(shape.begin(), shape.end(), argument.shape))
      continue;
    const std::vector<std::int64_t> given(argument.shape, argument.shape + shape.size());
    return ended(KILN_INVALID,
                 format("`{}`: `{}` has the shape {}, and its dimensions say {}", call.kernel,
                        function.params[i].name, shape_text(given), shape_text(shape)));
  }
  return bound;
}

Outcome<std::unique_ptr<Prepared>> prepare(const Kernel& kernel, const Bound& bound,
                                           const kiln_embedded_call& call, int device) {
  const ir::Function& function = kernel.function();
  std::vector<kiln_array> arrays;
  std::vector<kiln_scalar> scalars;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const char* name = function.params[i].name.c_str();
    if (const ir::ViewType* view = kernel.view(i)) {
      arrays.push_back({name, nullptr, kiln::name(view->dtype).data(), bound.shapes[i].data(),
                        bound.shapes[i].size()});
      continue;
    }
    kiln_scalar scalar = {name, kernel.is_integer(i) ? 0 : 1, 0, 0};
    if (scalar.is_real != 0) scalar.real = call.arguments[i].value.real;
    if (scalar.is_real == 0) scalar.integer = call.arguments[i].value.integer;
    scalars.push_back(scalar);
  }
  for (std::size_t i = 0; i < call.dimension_count; ++i) {
    if (kernel.in_tensor[i]) continue;
    const char* name = function.vars[kernel.dimensions[i]].name.c_str();
    scalars.push_back({name, 0, call.dimensions[i], 0});
  }
  kiln_call plain = {};
  plain.kernel = call.kernel;
  plain.arrays = arrays.data();
  plain.array_count = arrays.size();
  plain.scalars = scalars.data();
  plain.scalar_count = scalars.size();
  kiln_plan* plan = nullptr;
  const kiln_status status = kiln_prepare(kernel.program.get(), &plain, device, &plan);
  auto prepared = std::make_unique<Prepared>();
  prepared->plan.reset(plan);
  if (status != KILN_OK) return ended(status, last_error());
  return prepared;
}

Outcome<void> check_not_captured(const kiln_embedded_call& call) {
  const auto driver = devices().driver();
  if (!driver) return ended(driver.error());
  int capturing = 0;
  auto* stream = static_cast<runtime::cuda::Stream>(call.stream);
  const bool known = (*driver)->stream_is_capturing(stream, &capturing) == runtime::cuda::kSuccess;
  if (!known || capturing == 0) return {};
  return ended(
      KILN_NOT_PREPARED,
      format("`{}` has not been called with these shapes before, and the stream is captured; "
             "call it once before",
             call.kernel));
}

Outcome<const Prepared*> prepared_for(State& state, const Kernel& kernel, const Bound& bound,
                                      const kiln_embedded_call& call, int device) {
  std::vector<std::int64_t> numbers = bound.deciding;
  numbers.insert(numbers.end(), call.dimensions, call.dimensions + call.dimension_count);
  const State::PlanKey key{call.kernel, device, std::move(numbers)};
  const auto made =
      state.plans.find_or_make(key, [&]() -> Result<std::unique_ptr<Prepared>, Ended> {
        if (auto fine = check_not_captured(call); !fine) return Unexpected{fine.error()};
        return prepare(kernel, bound, call, device);
      });
  if (!made) return Unexpected{made.error()};
  return *made;
}

// Memory of the device that is taken and given back in the order of a stream.
class StreamMemory {
 public:
  StreamMemory(const runtime::Gpu& gpu, void* stream)
      : scope_(gpu.session()),
        api_(gpu.session().api),
        stream_(static_cast<runtime::cuda::Stream>(stream)) {}
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory() {
    if (address_ != 0) api_.memory_free_in_order(address_, stream_);
  }

  Outcome<void*> take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    if (!scope_.entered()) return ended(KILN_DEVICE, scope_.entered().error().text());
    if (api_.memory_alloc_in_order == nullptr || api_.memory_free_in_order == nullptr) {
      return ended(KILN_DEVICE,
                   "the CUDA driver is older than 11.2 and takes no memory on a stream");
    }
    const auto taken = api_.check(api_.memory_alloc_in_order(&address_, bytes, stream_),
                                  "cannot take memory of the GPU", format("{} bytes", bytes));
    if (!taken) return ended(KILN_DEVICE, taken.error().text());
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_));
  }

 private:
  runtime::ContextScope scope_;
  const runtime::cuda::Api& api_;
  runtime::cuda::Stream stream_;
  DevicePtr address_ = 0;
};

// A number is known before the launch; a tensor's shape as well.
Outcome<void> take_result(const kiln_array& result, const kiln_embedded_call& call) {
  const kiln_embedded_argument& argument = call.arguments[call.argument_count - 1];
  if (result.data != nullptr) {
    const auto dtype = dtype_from_name(result.dtype);
    if (argument.value.data != nullptr && dtype) {
      std::memcpy(argument.value.data, result.data, static_cast<std::size_t>(size_bytes(*dtype)));
    }
    return {};
  }
  if (argument.shape == nullptr ||
      std::equal(result.shape, result.shape + result.rank, argument.shape)) {
    return {};
  }
  const std::vector<std::int64_t> given(argument.shape, argument.shape + result.rank);
  return ended(KILN_INVALID,
               format("`{}` returns a tensor of shape {}, and {} is given for it", call.kernel,
                      shape_text({result.shape, result.shape + result.rank}), shape_text(given)));
}

Outcome<void> start(const runtime::Gpu& gpu, const kiln_plan& plan,
                    const kiln_embedded_call& call) {
  if (const kiln_array* result = kiln_plan_result(&plan)) {
    if (auto fine = take_result(*result, call); !fine) return fine;
  }
  std::vector<kiln_value> values;
  for (std::size_t i = 0; i < call.argument_count; ++i) values.push_back(call.arguments[i].value);
  const std::size_t bytes = kiln_plan_workspace(&plan);
  StreamMemory memory(gpu, call.stream);
  const auto workspace = memory.take(bytes);
  if (!workspace) return Unexpected{workspace.error()};
  const kiln_status status = kiln_launch(&plan, values.data(), *workspace, bytes, call.stream);
  if (status != KILN_OK) return ended(status, last_error());
  return {};
}

Outcome<void> launch(kiln_embedded& embedded, const kiln_embedded_call& call) {
  const auto device = devices().current();
  if (!device) return ended(device.error());
  const auto gpu = devices().gpu(*device);
  if (!gpu) return ended(gpu.error());
  const auto arch = choose_arch(embedded, **gpu);
  if (!arch) return Unexpected{arch.error()};
  State& state = state_of(embedded);
  const auto kernel = kernel_for(embedded, state, call.kernel, **arch);
  if (!kernel) return Unexpected{kernel.error()};
  if (auto fine = check_counts(**kernel, call); !fine) return fine;
  const auto bound = bind(**kernel, call);
  if (!bound) return Unexpected{bound.error()};
  const auto prepared = prepared_for(state, **kernel, *bound, call, *device);
  if (!prepared) return Unexpected{prepared.error()};
  return start(**gpu, *(*prepared)->plan, call);
}

}  // namespace

}  // namespace kiln::api::embedded

namespace api = kiln::api;

extern "C" {

kiln_status kiln_embedded_launch(kiln_embedded* embedded, const kiln_embedded_call* call) {
  if (embedded == nullptr || call == nullptr || call->kernel == nullptr) {
    return api::fail(KILN_INVALID, "the program, the call or its kernel's name is null");
  }
  if ((call->arguments == nullptr && call->argument_count != 0) ||
      (call->dimensions == nullptr && call->dimension_count != 0)) {
    return api::fail(KILN_INVALID, "the arguments or the dimensions are null");
  }
  const auto done = api::embedded::launch(*embedded, *call);
  return done ? KILN_OK : api::fail(done.error().status, done.error().text);
}

kiln_status kiln_embedded_compile(const kiln_embedded* embedded, const char* arch,
                                  kiln_program** program) {
  if (program == nullptr) return api::fail(KILN_INVALID, "the place for the program is null");
  *program = nullptr;
  if (embedded == nullptr) return api::fail(KILN_INVALID, "the embedded program is null");
  const char* first = embedded->arch_count != 0 ? embedded->archs[0] : "";
  std::unique_ptr<kiln_program> made;
  const kiln_status status =
      api::compile_program(api::embedded::options_of(*embedded, api::embedded::text_of(*embedded),
                                                     arch != nullptr ? arch : first),
                           "", made);
  *program = made.release();
  return status;
}

}  // extern "C"
