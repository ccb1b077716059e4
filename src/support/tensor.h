// A dense row-major array in host memory: what kernels take in and give out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/dtype.h"

namespace kiln {

struct Tensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;  // elements() * size_bytes(dtype)

  // A zeroed tensor; every extent must be >= 0 and the byte count must fit (see elements_fit).
  [[nodiscard]] static Tensor zeros(DType dtype, std::vector<std::int64_t> shape);

  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] double get(std::size_t index) const {
    return load_element(dtype, bytes.data(), index);
  }
  void set(std::size_t index, double value) { store_element(dtype, bytes.data(), index, value); }
};

// True when a tensor of this shape has at most 2^40 bytes, computed without overflow.
[[nodiscard]] bool elements_fit(DType dtype, const std::vector<std::int64_t>& shape);

[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);  // "[64, 80]"

}  // namespace kiln
