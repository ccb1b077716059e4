// What stands for a tile function in host code: `kiln build` writes, in the place of the function,
//
//   inline choreo::spanned_data<float, 2> scale(const choreo::spanned_view<float, 2>& a0, float a1,
//                                               const char* file = __builtin_FILE(), int line = ...) {
//     kiln::host::Call call(kiln_function_0, {file, line});
//     call.tensor("x", a0, false);
//     call.number("by", a1);
//     call.run();                       in the simulator or on a GPU: call_sim.h, call_gpu.h
//     return call.result<float, 2>();
//   }
//
// The program carries the text of its tile functions; each is compiled when it is first called.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "kiln/host/call_gpu.h"
#include "kiln/host/call_sim.h"
#include "kiln/host/one_call.h"

namespace kiln::host {

inline Call::~Call() { kiln_report_free(report_); }

inline void Call::run() {
  if (device().is_simulated()) return simulate();
  check_places(false);
  on_gpu_ = std::make_shared<GpuRun>(*this);
  on_gpu_->run();
}

inline const kiln_array& Call::result_array() {
  if (on_gpu_ != nullptr) return on_gpu_->result();
  const kiln_array* array = kiln_report_result(report_);
  if (array == nullptr) stop(site_, "the program ends here: the call came to no end", 1);
  return *array;
}

inline void Call::fetch(const kiln_array& array, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  if (on_gpu_ != nullptr) return on_gpu_->fetch(array, to, bytes);
  std::memcpy(to, array.data, bytes);
}

}  // namespace kiln::host
