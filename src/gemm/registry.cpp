#include "gemm/registry.h"

namespace kiln::gemm {

namespace {

Result<std::unique_ptr<Plan>, Failure> make_plan(int device, const Problem& problem) {
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

}  // namespace

Plans<Problem, Plan>& registry() {
  static auto* const one = new Plans<Problem, Plan>(make_plan);
  return *one;
}

}  // namespace kiln::gemm
