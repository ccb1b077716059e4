// A problem whose kernel is compiled, loaded and ready: starting it is nothing but launches.
//
//   Result<std::unique_ptr<Plan>> plan = Plan::prepare(gpu, problem);
//   (*plan)->start({.a = ..., .b = ..., .c = ...}, workspace, stream);
#pragma once

#include <array>
#include <memory>

#include "gemm/choice.h"
#include "gemm/recipe.h"
#include "runtime/call.h"
#include "runtime/map_cache.h"

namespace kiln::gemm {

// A chosen kernel on the GPU, for any number of plans.
struct LoadedKernel {
  std::shared_ptr<const Program> program;
  runtime::Kernels kernels;
};

// Compiles through the compile cache. May be called by several threads at once. Errors: no NVRTC;
// what the driver says.
[[nodiscard]] Result<std::unique_ptr<LoadedKernel>> load_kernel(
    runtime::Gpu& gpu, std::shared_ptr<const Program> program);

// How long it takes until the program's kernels are on the GPU.
[[nodiscard]] Result<runtime::LoadTimes> measure_loads(runtime::Gpu& gpu, const Program& program);

class Plan {
 public:
  // Chooses and compiles. `gpu` must outlive the plan. Errors: those of choose(), compile() and
  // make_recipe(); no NVRTC; what the driver says.
  static Result<std::unique_ptr<Plan>> prepare(runtime::Gpu& gpu, const Problem& problem);
  // With this kernel and these defines: what a tuner measures.
  static Result<std::unique_ptr<Plan>> prepare(runtime::Gpu& gpu, const Problem& problem,
                                               const Choice& choice);
  // With a kernel that is no file of the library's, compiled for the GPU's architecture with the
  // choice's defines.
  static Result<std::unique_ptr<Plan>> prepare(runtime::Gpu& gpu, const Problem& problem,
                                               const Choice& choice,
                                               std::unique_ptr<Program> program);
  // With a kernel that other plans may have too; `choice` is what it was compiled for. Compiles
  // nothing. Errors: those of make_recipe(); what the driver says.
  static Result<std::unique_ptr<Plan>> prepare(runtime::Gpu& gpu, const Problem& problem,
                                               const Choice& choice,
                                               std::shared_ptr<const LoadedKernel> kernel);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();

  [[nodiscard]] const Problem& problem() const { return problem_; }  // normalised
  [[nodiscard]] const Choice& choice() const { return choice_; }
  // As text(choice()).
  [[nodiscard]] const std::string& kernel_text() const { return kernel_text_; }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  // Bytes of device memory that start() needs, at a multiple of 256; 0: none.
  [[nodiscard]] std::size_t workspace_bytes() const { return recipe_.workspace_bytes; }
  // Seconds that preparing took: emitting, compiling, loading.
  [[nodiscard]] const runtime::Kernels& kernels() const { return kernel_->kernels; }
  [[nodiscard]] const Program& program() const { return *kernel_->program; }

  // Compiles once more, whatever the cache has, and finds it there. Errors: those of prepare().
  [[nodiscard]] Result<runtime::LoadTimes> measure_loads() const;

  // Starts everything once, in order, on the stream (null: the default one); does not wait. Neither
  // allocates nor synchronises, may be captured in a graph, may be called from several threads at
  // once; but calls that run at the same time need a workspace each. Errors: an operand that the
  // problem has and that is null or not aligned, alpha or beta that the problem does not have, no
  // workspace where one is needed; what the driver says.
  [[nodiscard]] Result<void> start(const Operands& operands, runtime::cuda::DevicePtr workspace,
                                   runtime::cuda::Stream stream) const;

 private:
  using Maps = std::array<runtime::cuda::TensorMap, kMapsMax>;
  struct Call;
  Plan(runtime::Gpu& gpu, const Problem& problem, Choice choice,
       std::shared_ptr<const LoadedKernel> kernel);
  static Result<std::unique_ptr<Plan>> finish(std::unique_ptr<Plan> plan, Recipe recipe);
  [[nodiscard]] Result<void> check(const Operands& operands, const Call& call) const;
  Result<void> find_maps(std::size_t index, const Call& call, Maps& maps) const;
  Result<void> launch(std::size_t index, const Call& call) const;

  runtime::Gpu& gpu_;
  Problem problem_;
  Choice choice_;
  std::string kernel_text_;
  std::shared_ptr<const LoadedKernel> kernel_;
  Recipe recipe_;
  std::vector<std::unique_ptr<runtime::MapCache>> maps_;  // by launch
};

}  // namespace kiln::gemm
