#include "gemm/registry.h"

namespace kiln::gemm {

Result<Registry::Key, Failure> Registry::key_of(const Problem& problem) {
  const auto whole = normalised(problem);
  if (!whole) return failed(FailureKind::kInvalid, whole.error());
  const auto device = library().current_device();
  if (!device) return Unexpected{device.error()};
  return Key{*device, *whole};
}

Result<const Plan*, Failure> Registry::find(const Problem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  return plans_.find(*key);
}

Result<const Plan*, Failure> Registry::plan(const Problem& problem) {
  const auto key = key_of(problem);
  if (!key) return Unexpected{key.error()};
  auto plan = plans_.find_or_make(*key, [&] { return make(*key); });
  if (!plan) return Unexpected{plan.error()};
  return *plan;
}

Result<std::unique_ptr<Plan>, Failure> Registry::make(const Key& key) {
  const auto& [device, problem] = key;
  const auto gpu = library().gpu(device);
  if (!gpu) return Unexpected{gpu.error()};
  const auto choice = choose(problem, (*gpu)->arch(), (*gpu)->multiprocessors());
  if (!choice) return failed(FailureKind::kUnsupported, choice.error());
  const auto program = library().program(device, **gpu, *choice);
  if (!program) return Unexpected{program.error()};
  // Before NVRTC compiles it: a problem that the kernel does not fit is refused without.
  const auto recipe = make_recipe(**program, problem, (*gpu)->arch());
  if (!recipe) return failed(FailureKind::kUnsupported, recipe.error());
  const auto kernel = library().kernel(device, **gpu, *choice, *program);
  if (!kernel) return Unexpected{kernel.error()};
  auto plan = Plan::prepare(**gpu, problem, *choice, *kernel);
  if (!plan) return failed(kind_of_making(), plan.error());
  return std::move(*plan);
}

Registry& registry() {
  static auto* const one = new Registry;
  return *one;
}

}  // namespace kiln::gemm
