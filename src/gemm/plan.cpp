#include "gemm/plan.h"

#include "backends/device.h"

#include <algorithm>
#include <array>

#include "support/format.h"

namespace kiln::gemm {

using runtime::cuda::DevicePtr;

// One start.
struct Plan::Call {
  std::array<DevicePtr, kRoleCount> addresses;  // by Role
  double alpha = 1;
  double beta = 0;
  runtime::cuda::Stream stream = nullptr;
  std::int64_t repeat = 0;

  [[nodiscard]] DevicePtr address(const Pointer& pointer, const Recipe& recipe) const {
    const auto role = static_cast<std::size_t>(pointer.role);
    return addresses[role] +
           static_cast<DevicePtr>(pointer.offset + repeat * recipe.repeat_bytes[role]);
  }
};

namespace {

Error refused(std::string reason) {
  return {"cannot start the matrix product", {}, std::move(reason)};
}

constexpr const char* kRoleNames[kRoleCount] = {"A",
                                                "B",
                                                "C",
                                                "the bias",
                                                "residual",
                                                "the scale factors of A",
                                                "the scale factors of B",
                                                "the metadata of A",
                                                "group_of_tile",
                                                "rows_of_group",
                                                "the workspace"};

// Bytes that the operand's address is a multiple of.
DevicePtr unit_of(std::size_t role, const Problem& problem) {
  if (role == static_cast<std::size_t>(Role::kWorkspace)) return kWorkspaceUnit;
  if (role == static_cast<std::size_t>(Role::kGroupOfTile) ||
      role == static_cast<std::size_t>(Role::kRowsOfGroup)) {
    return sizeof(std::int32_t);
  }
  return static_cast<DevicePtr>(problem.alignment);
}

backends::Job job_of(const Program& program) {
  return {.module = program.module, .function = program.function(), .sources = program.sources};
}

}  // namespace

Plan::Plan(runtime::Gpu& gpu, const Problem& problem, Choice choice,
           std::shared_ptr<const LoadedKernel> kernel)
    : gpu_(gpu),
      problem_(problem),
      choice_(std::move(choice)),
      kernel_text_(text(choice_)),
      kernel_(std::move(kernel)) {}

Plan::~Plan() = default;

Result<std::unique_ptr<Plan>> Plan::prepare(runtime::Gpu& gpu, const Problem& problem) {
  auto choice = choose(problem, gpu.arch(), gpu.multiprocessors());
  if (!choice) return Unexpected{choice.error()};
  return prepare(gpu, problem, *choice);
}

Result<std::unique_ptr<Plan>> Plan::prepare(runtime::Gpu& gpu, const Problem& problem,
                                            const Choice& choice) {
  auto program = compile(choice, gpu.arch());
  if (!program) return Unexpected{program.error()};
  return prepare(gpu, problem, choice, std::move(*program));
}

Result<std::unique_ptr<LoadedKernel>> load_kernel(runtime::Gpu& gpu,
                                                  std::shared_ptr<const Program> program) {
  const runtime::ContextScope scope(gpu.session());
  if (!scope.entered()) return Unexpected{scope.entered().error()};
  auto kernels = backends::device().load(gpu, job_of(*program));
  if (!kernels) return Unexpected{kernels.error()};
  return std::make_unique<LoadedKernel>(
      LoadedKernel{.program = std::move(program), .kernels = std::move(*kernels)});
}

Result<std::unique_ptr<Plan>> Plan::prepare(runtime::Gpu& gpu, const Problem& problem,
                                            const Choice& choice,
                                            std::unique_ptr<Program> program) {
  // A problem that the kernel does not fit is refused before it is compiled.
  const Result<Problem> whole = normalised(problem);
  if (!whole) return Unexpected{whole.error()};
  auto recipe = make_recipe(*program, *whole, gpu.arch());
  if (!recipe) return Unexpected{recipe.error()};
  auto kernel = load_kernel(gpu, std::move(program));
  if (!kernel) return Unexpected{kernel.error()};
  return finish(std::unique_ptr<Plan>(new Plan(gpu, *whole, choice, std::move(*kernel))),
                std::move(*recipe));
}

Result<std::unique_ptr<Plan>> Plan::prepare(runtime::Gpu& gpu, const Problem& problem,
                                            const Choice& choice,
                                            std::shared_ptr<const LoadedKernel> kernel) {
  const Result<Problem> whole = normalised(problem);
  if (!whole) return Unexpected{whole.error()};
  auto recipe = make_recipe(*kernel->program, *whole, gpu.arch());
  if (!recipe) return Unexpected{recipe.error()};
  return finish(std::unique_ptr<Plan>(new Plan(gpu, *whole, choice, std::move(kernel))),
                std::move(*recipe));
}

Result<std::unique_ptr<Plan>> Plan::finish(std::unique_ptr<Plan> plan, Recipe recipe) {
  const runtime::ContextScope scope(plan->gpu_.session());
  if (!scope.entered()) return Unexpected{scope.entered().error()};
  plan->recipe_ = std::move(recipe);
  for (LaunchRecipe& each : plan->recipe_.launches) {
    plan->maps_.push_back(std::make_unique<runtime::MapCache>(each.maps.size()));
    auto found = plan->kernels().module.prepare(each.launch);
    if (!found) return Unexpected{found.error()};
  }
  return plan;
}

Result<runtime::LoadTimes> measure_loads(runtime::Gpu& gpu, const Program& program) {
  const runtime::ContextScope scope(gpu.session());
  if (!scope.entered()) return Unexpected{scope.entered().error()};
  return backends::device().measure_loads(gpu, job_of(program));
}

Result<runtime::LoadTimes> Plan::measure_loads() const {
  return gemm::measure_loads(gpu_, *kernel_->program);
}

Result<void> Plan::check(const Operands& operands, const Call& call) const {
  for (std::size_t role = 0; role < kRoleCount; ++role) {
    const DevicePtr address = call.addresses[role];
    const bool workspace = role == static_cast<std::size_t>(Role::kWorkspace);
    const bool used = workspace ? recipe_.workspace_bytes > 0 : recipe_.used[role];
    if (!used) continue;
    if (address == 0) return Unexpected{refused(format("{} is null", kRoleNames[role]))};
    const DevicePtr unit = unit_of(role, problem_);
    if (address % unit == 0) continue;
    return Unexpected{
        refused(format("{} is not at a multiple of {} bytes", kRoleNames[role], unit))};
  }
  const Epilogue& epilogue = problem_.epilogue;
  if (!epilogue.has_alpha && operands.alpha != 1) {
    return Unexpected{refused(format("alpha is {}, the problem has none", operands.alpha))};
  }
  if (!epilogue.has_beta && operands.beta != 0) {
    return Unexpected{refused(format("beta is {}, the problem has none", operands.beta))};
  }
  return {};
}

Result<void> Plan::find_maps(std::size_t index, const Call& call, Maps& maps) const {
  const LaunchRecipe& recipe = recipe_.launches[index];
  if (recipe.maps.empty()) return {};
  std::array<DevicePtr, kMapsMax> places;
  const auto addresses = std::span(places).first(recipe.maps.size());
  for (std::size_t i = 0; i < recipe.maps.size(); ++i) {
    addresses[i] = call.address(recipe.maps[i].pointer, recipe_);
  }
  if (maps_[index]->find(addresses, maps)) return {};
  for (std::size_t i = 0; i < recipe.maps.size(); ++i) {
    const MapRecipe& map = recipe.maps[i];
    runtime::TensorMapArguments arguments = map.arguments;
    arguments.address = addresses[i];
    auto made = runtime::encode_tensor_map(gpu_.session().api, arguments, map.name, maps[i]);
    if (!made) return made;
  }
  maps_[index]->add(addresses, maps);
  return {};
}

Result<void> Plan::launch(std::size_t index, const Call& call) const {
  const LaunchRecipe& recipe = recipe_.launches[index];
  Maps maps;
  if (auto found = find_maps(index, call, maps); !found) return found;
  std::array<std::uint64_t, kSlotsMax> values;
  std::array<void*, kSlotsMax> parameters;
  for (std::size_t i = 0; i < recipe.slots.size(); ++i) {
    const Slot& slot = recipe.slots[i];
    parameters[i] = &values[i];
    switch (slot.source) {
      case SlotSource::kBits: values[i] = slot.bits; break;
      case SlotSource::kPointer: values[i] = call.address(slot.pointer, recipe_); break;
      case SlotSource::kAlpha: values[i] = encode(slot.dtype, call.alpha); break;
      case SlotSource::kBeta: values[i] = encode(slot.dtype, call.beta); break;
      case SlotSource::kMap: parameters[i] = maps[slot.map].bytes.data(); break;
    }
  }
  return kernels().module.launch(recipe.launch, std::span(parameters).first(recipe.slots.size()),
                                 call.stream);
}

Result<void> Plan::start(const Operands& operands, DevicePtr workspace,
                         runtime::cuda::Stream stream) const {
  Call call{.addresses = {operands.a, operands.b, operands.c, operands.bias, operands.residual,
                          operands.a_scale, operands.b_scale, operands.metadata,
                          operands.group_of_tile, operands.rows_of_group, workspace},
            .alpha = operands.alpha,
            .beta = operands.beta,
            .stream = stream};
  if (auto fits = check(operands, call); !fits) return fits;
  const runtime::ContextScope scope(gpu_.session());
  if (!scope.entered()) return scope.entered();
  for (call.repeat = 0; call.repeat < recipe_.repeats; ++call.repeat) {
    for (std::size_t i = 0; i < recipe_.launches.size(); ++i) {
      if (auto done = launch(i, call); !done) return done;
    }
  }
  return {};
}

}  // namespace kiln::gemm
