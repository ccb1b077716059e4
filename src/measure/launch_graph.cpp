#include "measure/launch_graph.h"

#include <utility>

namespace kiln::measure {

namespace {

using runtime::cuda::Api;
using runtime::cuda::GraphHandle;
using runtime::cuda::Stream;

// A stream of its own: the default one cannot be captured.
class CaptureStream {
 public:
  explicit CaptureStream(const Api& api) : api_(api) {}
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  ~CaptureStream() {
    if (stream_ != nullptr) api_.stream_destroy(stream_);
  }

  // The launches as a graph, which is the caller's.
  Result<GraphHandle> capture(const std::function<Result<void>(Stream)>& start) {
    auto begun = api_.check(api_.stream_create(&stream_, 0), "cannot make a stream");
    if (!begun) return Unexpected{begun.error()};
    begun = api_.check(api_.capture_begin(stream_, runtime::cuda::kCapturesThread),
                       "cannot capture launches");
    if (!begun) return Unexpected{begun.error()};
    const Result<void> started = start(stream_);
    // Whatever happened: the stream is to be captured no longer.
    GraphHandle graph = nullptr;
    auto ended = api_.check(api_.capture_end(stream_, &graph), "cannot capture launches");
    if (started && ended) return graph;
    if (graph != nullptr) api_.graph_destroy(graph);
    return Unexpected{started ? ended.error() : started.error()};
  }

 private:
  const Api& api_;
  Stream stream_ = nullptr;
};

}  // namespace

Result<LaunchGraph> LaunchGraph::capture(runtime::Gpu& gpu,
                                         const std::function<Result<void>(Stream)>& start) {
  const Api& api = gpu.session().api;
  if (api.graph_instantiate == nullptr || api.capture_begin == nullptr) {
    return Unexpected{
        Error{"cannot make a graph on", gpu.name(), "the driver is too old: CUDA 11.4 is needed"}};
  }
  const auto graph = CaptureStream(api).capture(start);
  if (!graph) return Unexpected{graph.error()};
  runtime::cuda::GraphExec exec = nullptr;
  const auto made =
      api.check(api.graph_instantiate(&exec, *graph, 0), "cannot make a graph of launches");
  api.graph_destroy(*graph);
  if (!made) return Unexpected{made.error()};
  return LaunchGraph(api, exec);
}

LaunchGraph::LaunchGraph(LaunchGraph&& other) noexcept
    : api_(other.api_), exec_(std::exchange(other.exec_, nullptr)) {}

LaunchGraph::~LaunchGraph() {
  if (exec_ != nullptr) api_->graph_exec_destroy(exec_);
}

Result<void> LaunchGraph::start() const {
  return api_->check(api_->graph_launch(exec_, nullptr), "cannot start a graph");
}

}  // namespace kiln::measure
