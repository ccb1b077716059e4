// A libFuzzer program of one target, which KILN_FUZZ_TARGET names.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  KILN_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
