// 2:4 structured sparsity of tensors: include/kiln/sparse.h by element type, with owned results.
//
//   auto pruned = prune_2_4(weights);             // f16 [64, 128]; the last dimension is K
//   auto split = compress_2_4(*pruned);           // packed f16 [64, 64], metadata u8 [64, 16]
//   auto words = prepack(split->metadata, DType::kF16);                    // u32 [64, 4]
//   expand_2_4(*split)                            // the pruned tensor
//
// All dimensions but the last count as rows. A Fault is data of the caller's (a shape, a group with
// too many non-zeros), so the caller says it in its own words; `text` has a plain sentence.
#pragma once

#include <optional>
#include <string>

#include "kiln/sparse.h"
#include "support/dtype.h"
#include "support/result.h"
#include "support/tensor.h"

namespace kiln::sparse {

struct Compressed {
  Tensor packed;    // [.., K / 2], of the dense type
  Tensor metadata;  // u8 [.., K / 8]; at 1:2 [.., K / 4]
};

// How the type's elements compare; none for bool, and for f8_ue8m0, which has no zero.
[[nodiscard]] std::optional<Format> format_of(DType dtype);

// The pattern at which matrix units take the type: 1:2 for tf32 (and f32, used as tf32), else 2:4.
[[nodiscard]] Pattern hardware_pattern(DType dtype);
// The order of the words in which matrix units take the type's metadata; none for 64-bit types.
[[nodiscard]] std::optional<Words> hardware_words(DType dtype);

// Tensors have at least one dimension and a type with a format.
// Faults: K is no multiple of the group.
[[nodiscard]] Result<Tensor, Fault> prune(Tensor dense, Pattern pattern);
// Faults: K is no multiple of 8 (1:2: 4); a group has more non-zeros than are kept.
[[nodiscard]] Result<Compressed, Fault> compress(const Tensor& dense, Pattern pattern);
// Faults: a nibble is illegal. Packed and metadata must have fitting shapes.
[[nodiscard]] Result<Tensor, Fault> expand(const Compressed& compressed, Pattern pattern);

[[nodiscard]] inline Result<Tensor, Fault> prune_2_4(Tensor dense) {
  return prune(std::move(dense), Pattern::k2of4);
}
[[nodiscard]] inline Result<Compressed, Fault> compress_2_4(const Tensor& dense) {
  return compress(dense, Pattern::k2of4);
}
[[nodiscard]] inline Result<Tensor, Fault> expand_2_4(const Compressed& compressed) {
  return expand(compressed, Pattern::k2of4);
}

// Metadata u8 [M, 4n] as words u32 [M, n] in the order for `dtype`, which has one, and back.
// Faults: 4n is no multiple of 4; M no multiple of 16 where rows are paired.
[[nodiscard]] Result<Tensor, Fault> prepack(const Tensor& metadata, DType dtype);
[[nodiscard]] Result<Tensor, Fault> unpack(const Tensor& words, DType dtype);

// "row 3, columns 8 to 11 have 3 non-zeros, at most 2 are kept".
[[nodiscard]] std::string text(const Fault& fault, Pattern pattern);

}  // namespace kiln::sparse
