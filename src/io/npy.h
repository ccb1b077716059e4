// Tensors in and out of NumPy's .npy files (format versions 1 to 3).
//
//   '<f2' f16, '<f4' f32, '<f8' f64, '|i1' .. '<u8' integers, '|b1' bool
//   bf16 has no NumPy type of its own: it is written as '<V2' (what ml_dtypes writes) and read from
//   '<V2' or '<u2'; the 8-bit floats likewise as '|V1' and from '|V1' or '|u1'.
//
// Arrays are little endian. Fortran order is read (and turned to C order), never written.
#pragma once

#include <optional>
#include <string>

#include "support/result.h"
#include "support/tensor.h"

namespace kiln::io {

// An array as the file has it. `opaque`: the file only says "2 bytes each" (void or unsigned), so
// the elements may be of another type of that size.
struct NpyArray {
  Tensor tensor;
  std::string descr;  // "<f2", for messages
  bool opaque = false;
  bool is_void = false;  // opaque, and of no type of its own
};

// Errors (all with the reason): unreadable, not a .npy file, truncated or with bytes left over, a
// type kiln has not, big endian, a shape whose size does not fit.
[[nodiscard]] Result<NpyArray> read_npy(const std::string& path);
[[nodiscard]] Result<NpyArray> parse_npy(std::string_view bytes, const std::string& path);

// The array as a tensor of `dtype`, when it is one (see `opaque`).
[[nodiscard]] std::optional<Tensor> as_dtype(NpyArray array, DType dtype);

// The bytes of a version 1 file; its header is padded to 64 bytes as NumPy does.
[[nodiscard]] std::string npy_bytes(const Tensor& tensor);

// Writes a whole file or nothing.
[[nodiscard]] Result<void> write_npy(const std::string& path, const Tensor& tensor);

}  // namespace kiln::io
