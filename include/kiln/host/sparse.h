// 2:4 sparse matrices for tests: random ones, packed with their metadata (kiln/sparse.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "kiln/host/check.h"
#include "kiln/host/number.h"
#include "kiln/host/spanned.h"
#include "kiln/sparse.h"

namespace choreo::utils {

namespace detail {

template <class T>
constexpr kiln::sparse::Format sparse_format() {
  using namespace kiln::sparse;
  if constexpr (std::is_same_v<T, f16>) return kF16Format;
  if constexpr (std::is_same_v<T, bf16>) return kBF16Format;
  if constexpr (std::is_same_v<T, f8_e4m3>) return kE4M3Format;
  if constexpr (std::is_same_v<T, f8_e5m2>) return kE5M2Format;
  if constexpr (std::is_same_v<T, s8>) return kS8Format;
  if constexpr (std::is_same_v<T, u8>) return kU8Format;
  return kF32Format;
}

template <class T>
kiln::sparse::Matrix<T> sparse_matrix(spanned_data<T, 2>& data) {
  return {data.data(), static_cast<std::int64_t>(data.shape()[0]),
          static_cast<std::int64_t>(data.shape()[1])};
}

inline void sparse_check(bool fine) {
  choreo_assert(fine, "the matrix is no 2:4 sparse one, or its columns are no multiple of a group");
}

}  // namespace detail

// Metadata are bytes [M, K/8]; with `Meta` of 32 bits words of 16 rows and 32 columns.
template <class T, class Meta = u8>
struct SparsePolicyWGMMA {
  // Two of each four neighbours are numbers of at least a quarter, the others 0.
  template <class Engine>
  static void init_structured_sparse_A(spanned_data<T, 2>& dense, Engine& engine) {
    std::uniform_real_distribution<float> draw(-1.0F, 1.0F);
    for (std::size_t i = 0; i < dense.element_count(); ++i) {
      const float value = draw(engine);
      dense.data()[i] = T(std::fabs(value) < 0.25F ? (value < 0 ? -0.25F : 0.25F) : value);
    }
    const auto fault =
        kiln::sparse::prune(detail::sparse_matrix(dense), detail::sparse_format<T>());
    detail::sparse_check(!fault);
  }

  static void encode(spanned_data<T, 2>& dense, spanned_data<T, 2>& packed,
                     spanned_data<Meta, 2>& metadata) {
    const std::size_t rows = dense.shape()[0];
    const std::size_t columns = dense.shape()[1];
    detail::sparse_check(packed.shape()[0] == rows && packed.shape()[1] * 2 == columns);
    detail::sparse_check(metadata.bytes() * 8 == rows * columns);
    std::vector<std::uint8_t> bytes(rows * columns / 8);
    const auto matrix = detail::sparse_matrix(dense);
    const auto fault =
        kiln::sparse::compress(matrix, detail::sparse_format<T>(), packed.data(), bytes.data());
    detail::sparse_check(!fault);
    if constexpr (sizeof(Meta) == 1) {
      std::copy(bytes.begin(), bytes.end(), metadata.data());
    } else {
      pack(bytes.data(), rows, columns / 8, metadata.data());
    }
  }

  // Bytes [M, K/8] as words [M, K/32] in the order in which kernels load them.
  static void prepack(spanned_data<u8, 2>& bytes, spanned_data<u32, 2>& words) {
    const std::size_t rows = bytes.shape()[0];
    detail::sparse_check(words.shape()[0] == rows && words.shape()[1] * 4 == bytes.shape()[1]);
    pack(reinterpret_cast<const std::uint8_t*>(bytes.data()), rows, bytes.shape()[1], words.data());
  }
  // Programs that ask for another order get this one: kernels have no other.
  static void prepack_v2(spanned_data<u8, 2>& bytes, spanned_data<u32, 2>& words) {
    prepack(bytes, words);
  }

 private:
  template <class Word>
  static void pack(const std::uint8_t* bytes, std::size_t rows, std::size_t columns, Word* words) {
    const kiln::sparse::Matrix<const std::uint8_t> matrix{bytes, static_cast<std::int64_t>(rows),
                                                          static_cast<std::int64_t>(columns)};
    detail::sparse_check(!kiln::sparse::pack_words(
        matrix, sizeof(T) == 1 ? kiln::sparse::Words::kRows : kiln::sparse::Words::kRowPairs,
        reinterpret_cast<std::uint32_t*>(words)));
  }
};

// The same for words that `encode` has made.
inline void prepack_v2_fp8_reorder(spanned_data<u32, 2>& from, spanned_data<u32, 2>& to) {
  detail::sparse_check(from.shape()[0] == to.shape()[0] && from.shape()[1] == to.shape()[1]);
  std::copy_n(from.data(), from.element_count(), to.data());
}

template <class T, class Meta = u8>
using SparseHostPolicy = SparsePolicyWGMMA<T, Meta>;
template <class T, class Meta = u8>
using SparsePolicyMMA = SparsePolicyWGMMA<T, Meta>;

}  // namespace choreo::utils

namespace choreo {
template <class T, class Meta = u8>
using SparseHostPolicy = utils::SparsePolicyWGMMA<T, Meta>;
}  // namespace choreo
