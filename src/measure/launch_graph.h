// Launches that are captured once and started together: the CPU, which needs longer for a launch than
// a small problem takes, has no part in them then.
//
//   auto graph = LaunchGraph::capture(gpu, [&](runtime::cuda::Stream stream) {
//     return plan.start(operands, workspace, stream);
//   });
//   graph->start();     on the default stream; does not wait
#pragma once

#include <functional>

#include "runtime/gpu.h"

namespace kiln::measure {

class LaunchGraph {
 public:
  // What `start` starts on the stream it is given. Nothing runs yet; what is captured ran before, so
  // that its kernels are loaded. `gpu` must outlive the graph. Errors: those of `start`; a driver
  // without graphs; what cannot be captured, as the driver says it.
  static Result<LaunchGraph> capture(
      runtime::Gpu& gpu, const std::function<Result<void>(runtime::cuda::Stream)>& start);
  LaunchGraph(LaunchGraph&& other) noexcept;
  LaunchGraph& operator=(LaunchGraph&&) = delete;
  ~LaunchGraph();

  [[nodiscard]] Result<void> start() const;

 private:
  LaunchGraph(const runtime::cuda::Api& api, runtime::cuda::GraphExec exec)
      : api_(&api), exec_(exec) {}
  const runtime::cuda::Api* api_;
  runtime::cuda::GraphExec exec_;
};

}  // namespace kiln::measure
