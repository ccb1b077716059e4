// The time between two points of a stream, by events of the driver.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "api/devices.h"
#include "handles.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

using runtime::ContextScope;
using runtime::cuda::EventHandle;

class Timer {
 public:
  explicit Timer(runtime::Gpu& gpu) : gpu_(gpu) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    const ContextScope scope(gpu_.session());
    for (EventHandle event : {begin_, end_}) {
      if (event != nullptr) api().event_destroy(event);
    }
  }

  // Texts; "" when all went well.
  std::string start(std::uintptr_t stream) { return record(begin_, stream); }
  std::string stop(std::uintptr_t stream) { return record(end_, stream); }

  // Waits for the end.
  nb::tuple seconds() {
    float milliseconds = 0;
    std::string error;
    {
      nb::gil_scoped_release others_go_on;
      const ContextScope scope(gpu_.session());
      auto status = api().event_synchronize(end_);
      if (status == runtime::cuda::kSuccess) {
        status = api().event_elapsed(&milliseconds, begin_, end_);
      }
      const auto done = api().check(status, "cannot tell the time between two events");
      if (!done) error = done.error().text();
    }
    return nb::make_tuple(static_cast<double>(milliseconds) / 1e3, error);
  }

 private:
  [[nodiscard]] const runtime::cuda::Api& api() const { return gpu_.session().api; }

  std::string record(EventHandle& event, std::uintptr_t stream) {
    const ContextScope scope(gpu_.session());
    auto status = runtime::cuda::kSuccess;
    if (event == nullptr) status = api().event_create(&event, 0);
    if (status == runtime::cuda::kSuccess) {
      status = api().event_record(event, reinterpret_cast<runtime::cuda::Stream>(stream));
    }
    const auto done = api().check(status, "cannot record an event");
    return done ? "" : done.error().text();
  }

  runtime::Gpu& gpu_;  // lives as long as the process
  EventHandle begin_ = nullptr;
  EventHandle end_ = nullptr;
};

// A timer, or None and why not; and the bytes of the device's second-level cache.
nb::tuple timer(int device) {
  const auto gpu = api::devices().gpu(device);
  if (!gpu) return nb::make_tuple(nb::none(), gpu.error().error.text(), 0);
  return nb::make_tuple(nb::cast(new Timer(**gpu), nb::rv_policy::take_ownership), "",
                        (*gpu)->arch().l2_bytes);
}

}  // namespace

void add_timer(nb::module_& module) {
  nb::class_<Timer>(module, "Timer")
      .def("start", &Timer::start)
      .def("stop", &Timer::stop)
      .def("seconds", &Timer::seconds);
  module.def("timer", timer);
}

}  // namespace kiln::python
