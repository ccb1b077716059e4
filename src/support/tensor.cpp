#include "support/tensor.h"

#include "support/check.h"

namespace kiln {

Tensor Tensor::zeros(DType dtype, std::vector<std::int64_t> shape) {
  KILN_CHECK(elements_fit(dtype, shape), "tensor {} is too large", shape_text(shape));
  Tensor tensor{dtype, std::move(shape), {}};
  tensor.bytes.resize(static_cast<std::size_t>(tensor.elements() * size_bytes(dtype)));
  return tensor;
}

std::int64_t Tensor::elements() const {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  return count;
}

bool elements_fit(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_bytes(dtype);
  for (std::int64_t extent : shape) {
    if (extent < 0) return false;
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > (std::int64_t{1} << 40))
      return false;
  }
  return true;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return "[" + join(shape, ", ", [](std::int64_t extent) { return format("{}", extent); }) + "]";
}

}  // namespace kiln
