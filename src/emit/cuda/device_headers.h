// The headers that device code may include (kiln/layout.h, kiln/device/*.cuh and their parts) as
// text, so that NVRTC needs no files.
//
//   device_headers()[0].name == "kiln/layout.h"
#pragma once

#include <span>

namespace kiln::emit {

struct DeviceHeader {
  const char* name;  // as #include spells it
  const char* text;
};

// All of them.
[[nodiscard]] std::span<const DeviceHeader> device_headers();

}  // namespace kiln::emit
