// Calls of the library on a device of kiln._core's choice.
#pragma once

#include <string>

#include "api/devices.h"
#include "kiln/status.h"

namespace kiln::python {

// How a function of the library ended, as Python gets it.
struct Ended {
  kiln_status status = KILN_OK;
  std::string error;
};

// Calls `work` where the calling thread's device is this one.
template <class Work>
Ended on_device(int device, Work work) {
  const auto gpu = api::devices().gpu(device);
  if (!gpu) return {gpu.error().status, gpu.error().error.text()};
  const runtime::Session& session = (*gpu)->session();
  runtime::cuda::Device current = -1;
  kiln_status status = KILN_OK;
  if (session.api.context_device(&current) == runtime::cuda::kSuccess && current == device) {
    status = work();
  } else {
    const runtime::ContextScope scope(session);
    if (!scope.entered()) return {KILN_DEVICE, scope.entered().error().text()};
    status = work();
  }
  return {status, status == KILN_OK ? "" : kiln_last_error()};
}

}  // namespace kiln::python
