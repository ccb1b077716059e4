#include "sparse/sparse.h"

#include <type_traits>

#include "support/check.h"
#include "support/format.h"

namespace kiln::sparse {

namespace {

constexpr std::uint64_t ones(int bits) { return ~std::uint64_t{0} >> (64 - bits); }

Format float_format(const DTypeInfo& row) {
  // The sign is the top bit; the unsigned 8-bit float simply never sets it.
  const std::uint64_t mask = ones(row.bits - 1);
  const std::uint64_t infinity = mask >> row.mantissa_bits << row.mantissa_bits;
  if (row.ieee && row.dtype != DType::kTF32) return {mask, infinity + 1};
  if (row.dtype == DType::kTF32) return kF32Format;
  return {mask, row.bits == 8 ? mask : kNoNan};
}

struct Extents {
  std::int64_t rows;
  std::int64_t cols;
};

Extents extents_of(const Tensor& tensor) {
  KILN_CHECK(!tensor.shape.empty(), "a tensor without dimensions has no rows");
  const std::int64_t cols = tensor.shape.back();
  return {cols == 0 ? 0 : tensor.elements() / cols, cols};
}

std::vector<std::int64_t> with_cols(std::vector<std::int64_t> shape, std::int64_t cols) {
  shape.back() = cols;
  return shape;
}

template <class T>
Matrix<T> matrix_of(Tensor& tensor) {
  const Extents extents = extents_of(tensor);
  return {reinterpret_cast<T*>(tensor.bytes.data()), extents.rows, extents.cols};
}

template <class T>
Matrix<const T> matrix_of(const Tensor& tensor) {
  const Extents extents = extents_of(tensor);
  return {reinterpret_cast<const T*>(tensor.bytes.data()), extents.rows, extents.cols};
}

// Calls `work` with an unsigned integer as wide as the type's elements.
template <class Work>
Fault for_width(DType dtype, const Work& work) {
  switch (size_bytes(dtype)) {
    case 1: return work(std::uint8_t{});
    case 2: return work(std::uint16_t{});
    case 4: return work(std::uint32_t{});
    case 8: return work(std::uint64_t{});
    default: break;
  }
  KILN_CHECK(false, "elements of {} bytes", size_bytes(dtype));
}

Format checked_format(DType dtype) {
  const std::optional<Format> format = format_of(dtype);
  KILN_CHECK(format.has_value(), "{} cannot be pruned", name(dtype));
  return *format;
}

Words checked_words(DType dtype) {
  const std::optional<Words> words = hardware_words(dtype);
  KILN_CHECK(words.has_value(), "no instruction takes sparse {}", name(dtype));
  return *words;
}

}  // namespace

std::optional<Format> format_of(DType dtype) {
  const DTypeInfo& row = info(dtype);
  if (dtype == DType::kUE8M0) return std::nullopt;
  switch (row.kind) {
    case NumberKind::kFloat: return float_format(row);
    case NumberKind::kSigned: return Format{ones(row.bits), kNoNan, true};
    case NumberKind::kUnsigned: return Format{ones(row.bits), kNoNan};
    case NumberKind::kBool: break;
  }
  return std::nullopt;
}

Pattern hardware_pattern(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kTF32 ? Pattern::k1of2 : Pattern::k2of4;
}

std::optional<Words> hardware_words(DType dtype) {
  switch (size_bytes(dtype)) {
    case 1: return Words::kRows;
    case 2:
    case 4: return Words::kRowPairs;
    default: return std::nullopt;
  }
}

Result<Tensor, Fault> prune(Tensor dense, Pattern pattern) {
  const Format format = checked_format(dense.dtype);
  const Fault fault = for_width(dense.dtype, [&](auto width) {
    return prune(matrix_of<decltype(width)>(dense), format, pattern);
  });
  if (fault) return Unexpected{fault};
  return dense;
}

Result<Compressed, Fault> compress(const Tensor& dense, Pattern pattern) {
  const Format format = checked_format(dense.dtype);
  const std::int64_t cols = extents_of(dense).cols;
  Compressed out{.packed = Tensor::zeros(dense.dtype, with_cols(dense.shape, cols / 2)),
                 .metadata = Tensor::zeros(
                     DType::kU8, with_cols(dense.shape, cols / columns_of_byte(pattern)))};
  const Fault fault = for_width(dense.dtype, [&](auto width) {
    using T = decltype(width);
    return compress(matrix_of<T>(dense), format, matrix_of<T>(out.packed).data,
                    matrix_of<std::uint8_t>(out.metadata).data, pattern);
  });
  if (fault) return Unexpected{fault};
  return out;
}

Result<Tensor, Fault> expand(const Compressed& compressed, Pattern pattern) {
  const Extents packed = extents_of(compressed.packed);
  const Extents metadata = extents_of(compressed.metadata);
  KILN_CHECK(compressed.metadata.dtype == DType::kU8 && packed.rows == metadata.rows &&
                 packed.cols * 2 == metadata.cols * columns_of_byte(pattern),
             "packed {} and metadata {} do not fit", shape_text(compressed.packed.shape),
             shape_text(compressed.metadata.shape));
  Tensor dense =
      Tensor::zeros(compressed.packed.dtype, with_cols(compressed.packed.shape, packed.cols * 2));
  const Fault fault = for_width(dense.dtype, [&](auto width) {
    using T = decltype(width);
    return expand(matrix_of<T>(dense), matrix_of<T>(compressed.packed).data,
                  matrix_of<std::uint8_t>(compressed.metadata).data, pattern);
  });
  if (fault) return Unexpected{fault};
  return dense;
}

Result<Tensor, Fault> prepack(const Tensor& metadata, DType dtype) {
  KILN_CHECK(metadata.dtype == DType::kU8, "metadata of type {}", name(metadata.dtype));
  Tensor words =
      Tensor::zeros(DType::kU32, with_cols(metadata.shape, extents_of(metadata).cols / 4));
  const Fault fault = pack_words(matrix_of<std::uint8_t>(metadata), checked_words(dtype),
                                 matrix_of<std::uint32_t>(words).data);
  if (fault) return Unexpected{fault};
  return words;
}

Result<Tensor, Fault> unpack(const Tensor& words, DType dtype) {
  KILN_CHECK(words.dtype == DType::kU32, "prepacked metadata of type {}", name(words.dtype));
  Tensor metadata = Tensor::zeros(DType::kU8, with_cols(words.shape, extents_of(words).cols * 4));
  const Fault fault = unpack_words(matrix_of<std::uint8_t>(metadata), checked_words(dtype),
                                   matrix_of<std::uint32_t>(words).data);
  if (fault) return Unexpected{fault};
  return metadata;
}

std::string text(const Fault& fault, Pattern pattern) {
  const std::int64_t last = fault.col + group_size(pattern) - 1;
  switch (fault.kind) {
    case Fault::Kind::kNone: return "no fault";
    case Fault::Kind::kRaggedRows:
      return format("{} rows are no multiple of {}", fault.found, fault.allowed);
    case Fault::Kind::kRaggedCols:
      return format("{} columns are no multiple of {}", fault.found, fault.allowed);
    case Fault::Kind::kTooMany:
      return format("row {}, columns {} to {} have {} non-zeros, at most {} are kept", fault.row,
                    fault.col, last, fault.found, fault.allowed);
    case Fault::Kind::kNibble:
      return format("row {}, columns {} to {} have the illegal metadata {}", fault.row, fault.col,
                    last, fault.found);
  }
  return "";
}

}  // namespace kiln::sparse
