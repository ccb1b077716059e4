// The device headers (include/kiln/device/*.cuh) as text, so that NVRTC needs no files.
//
//   device_headers()[0].name == "kiln/device/assert.cuh"
#pragma once

#include <span>

namespace kiln::emit {

struct DeviceHeader {
  const char* name;  // as #include spells it
  const char* text;
};

// All of them, by name.
[[nodiscard]] std::span<const DeviceHeader> device_headers();

}  // namespace kiln::emit
