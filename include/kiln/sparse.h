// 2:4 structured sparsity on plain arrays: prune, compress, encode, and back.
//
// Of each group of four neighbours along a row two are kept. What is kept is *packed* into half the
// columns; *metadata* says from where. The first kept position i0 and the second i1 > i0 make a
// nibble i0 | i1 << 2, two groups make a byte, the first in its low half:
//
//   dense            3  1 -4  2 | 0  5  0  0
//   pruned           3  0 -4  0 | 0  5  0  0
//   kept at             0, 2    |    0, 1         (one non-zero: the lowest other position joins)
//   packed             3  -4    |   0   5
//   nibbles          0|2<<2 = 8 | 0|1<<2 = 4      one byte, 0x48
//
//   std::vector<std::uint16_t> w = ..., packed(m * k / 2);               // f16, as bits
//   std::vector<std::uint8_t> bytes(m * k / 8);
//   std::vector<std::uint32_t> words(m * k / 32);
//   const Matrix<std::uint16_t> dense{w.data(), m, k};
//   if (Fault f = prune(dense, kF16Format)) ...                          // k is no multiple of 4
//   if (Fault f = compress(dense, kF16Format, packed.data(), bytes.data())) ...
//   if (Fault f = pack_words(Matrix{bytes.data(), m, k / 8}, Words::kRowPairs, words.data())) ...
//
// Matrix units take tf32 at 1:2 instead: one of each two neighbours, see Pattern.
//
// Usable without the rest of kiln: C++20, no allocation, constexpr throughout. An element is any
// trivially copyable type of 1, 2, 4 or 8 bytes whose bits a Format explains, so `float`, `__half`
// and `std::uint16_t` all do. Matrices lie by rows without gaps. docs/sparse.md is the user's page.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kiln::sparse {

// --- what is kept

// Which part of a row the hardware lets you keep. In PTX ISA, "Sparse matrix storage", 16- and
// 8-bit types are sparse at 2:4 and tf32 at 1:2. A nibble of 1:2 counts halves of the two
// neighbours, so that the first is "halves 0 and 1", 0x4, and the second "halves 2 and 3", 0xe:
// every legal nibble of 1:2 is one of 2:4.
enum class Pattern : std::uint8_t { k2of4, k1of2 };

// Elements of a row that one nibble is about.
[[nodiscard]] constexpr int group_size(Pattern pattern) {
  return pattern == Pattern::k2of4 ? 4 : 2;
}
[[nodiscard]] constexpr int kept_of_group(Pattern pattern) { return group_size(pattern) / 2; }
// Elements of a row that one byte of metadata is about.
[[nodiscard]] constexpr int columns_of_byte(Pattern pattern) { return 2 * group_size(pattern); }

// The positions that are kept, ascending. Of 1:2 there is one, given as both.
struct Kept {
  int first = 0;
  int second = 1;

  friend constexpr bool operator==(const Kept&, const Kept&) = default;
};

[[nodiscard]] constexpr unsigned nibble_of(Kept kept, Pattern pattern = Pattern::k2of4) {
  if (pattern == Pattern::k1of2) return kept.first == 0 ? 0x4U : 0xeU;
  return static_cast<unsigned>(kept.first) | static_cast<unsigned>(kept.second) << 2;
}

[[nodiscard]] constexpr Kept kept_of(unsigned nibble, Pattern pattern = Pattern::k2of4) {
  const int low = static_cast<int>(nibble & 3U);
  const int high = static_cast<int>(nibble >> 2 & 3U);
  if (pattern == Pattern::k1of2) return {low / 2, low / 2};
  return {low, high};
}

// 0x4, 0x8, 0xc, 0x9, 0xd and 0xe of 2:4; 0x4 and 0xe of 1:2. With any other the hardware's result
// is undefined.
[[nodiscard]] constexpr bool is_legal(unsigned nibble, Pattern pattern = Pattern::k2of4) {
  if (pattern == Pattern::k1of2) return nibble == 0x4U || nibble == 0xeU;
  return nibble < 16U && (nibble & 3U) < nibble >> 2;
}

// --- how elements compare

// Reads an element's bits as a magnitude: larger bits mean a larger number.
struct Format {
  std::uint64_t mask;      // the bits that count; a float's sign does not
  std::uint64_t nan_from;  // masked bits from here on are NaN, all equally large
  bool twos_complement = false;
};

inline constexpr std::uint64_t kNoNan = ~std::uint64_t{0};
inline constexpr Format kF64Format{0x7fff'ffff'ffff'ffff, 0x7ff0'0000'0000'0001};
inline constexpr Format kF32Format{0x7fff'ffff, 0x7f80'0001};  // and tf32
inline constexpr Format kF16Format{0x7fff, 0x7c01};
inline constexpr Format kBF16Format{0x7fff, 0x7f81};
inline constexpr Format kE4M3Format{0x7f, 0x7f};
inline constexpr Format kE5M2Format{0x7f, 0x7d};
inline constexpr Format kS8Format{0xff, kNoNan, true};
inline constexpr Format kU8Format{0xff, kNoNan};

// The magnitude of an element; 0 for zeros of either sign.
template <class T>
[[nodiscard]] constexpr std::uint64_t magnitude(const T& element, Format format) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  const std::uint64_t bits = std::bit_cast<Bits>(element) & format.mask;
  const bool negative = format.twos_complement && bits > format.mask / 2;
  if (negative) return (~bits + 1) & format.mask;
  return bits < format.nan_from ? bits : format.nan_from;
}

// The positions of a group to keep: those of largest magnitude, of equal ones the lower.
template <class T>
[[nodiscard]] constexpr Kept choose(const T* group, Format format, Pattern pattern) {
  int best = 0;
  for (int i = 1; i < group_size(pattern); ++i) {
    if (magnitude(group[i], format) > magnitude(group[best], format)) best = i;
  }
  if (pattern == Pattern::k1of2) return {best, best};
  int next = best == 0 ? 1 : 0;
  for (int i = next + 1; i < 4; ++i) {
    if (i != best && magnitude(group[i], format) > magnitude(group[next], format)) next = i;
  }
  return best < next ? Kept{best, next} : Kept{next, best};
}

// --- matrices

template <class T>
struct Matrix {
  T* data;
  std::int64_t rows;
  std::int64_t cols;
};
template <class T>
Matrix(T*, std::int64_t, std::int64_t) -> Matrix<T>;

// Why nothing was done. In a condition it is true when there is one.
struct Fault {
  enum class Kind : std::uint8_t {
    kNone,
    kRaggedRows,  // `found` rows, no multiple of `allowed`
    kRaggedCols,  // `found` columns, no multiple of `allowed`
    kTooMany,     // the group at (row, col) has `found` non-zeros, at most `allowed` are kept
    kNibble,      // the group at (row, col) has the metadata `found`, which is illegal
  };
  Kind kind = Kind::kNone;
  std::int64_t row = 0;
  std::int64_t col = 0;  // of the group's first element, in the dense matrix
  std::int64_t found = 0;
  std::int64_t allowed = 0;

  explicit constexpr operator bool() const { return kind != Kind::kNone; }
  friend constexpr bool operator==(const Fault&, const Fault&) = default;
};

namespace detail {

constexpr Fault ragged(Fault::Kind kind, std::int64_t extent, int multiple) {
  if (extent % multiple == 0) return {};
  return {.kind = kind, .found = extent, .allowed = multiple};
}

template <class T>
constexpr int non_zeros(const T* group, Format format, Pattern pattern) {
  int count = 0;
  for (int i = 0; i < group_size(pattern); ++i) count += magnitude(group[i], format) != 0;
  return count;
}

constexpr unsigned nibble_at(const std::uint8_t* metadata, std::int64_t group) {
  return metadata[group / 2] >> (group % 2 * 4) & 0xfU;
}

}  // namespace detail

// Sets to 0 (all bits 0) what `choose` does not keep. Faults: kRaggedCols, by groups.
template <class T>
constexpr Fault prune(Matrix<T> dense, Format format, Pattern pattern = Pattern::k2of4) {
  const int size = group_size(pattern);
  if (const Fault fault = detail::ragged(Fault::Kind::kRaggedCols, dense.cols, size)) return fault;
  for (std::int64_t at = 0; at < dense.rows * dense.cols; at += size) {
    const Kept kept = choose(dense.data + at, format, pattern);
    for (int i = 0; i < size; ++i) {
      if (i != kept.first && i != kept.second) dense.data[at + i] = T{};
    }
  }
  return {};
}

// Splits `dense` into `packed` [rows, cols / 2] and `metadata` [rows, columns / columns_of_byte].
// A zero that is not kept loses its sign; all else comes back by `expand`, bit for bit. Faults:
// kRaggedCols, by bytes of metadata; kTooMany, for the first such group by rows.
template <class T>
constexpr Fault compress(Matrix<T> dense, Format format, std::remove_const_t<T>* packed,
                         std::uint8_t* metadata, Pattern pattern = Pattern::k2of4) {
  const int size = group_size(pattern);
  const int kept_count = kept_of_group(pattern);
  const Fault ragged =
      detail::ragged(Fault::Kind::kRaggedCols, dense.cols, columns_of_byte(pattern));
  if (ragged) return ragged;
  for (std::int64_t group = 0; group < dense.rows * dense.cols / size; ++group) {
    const std::int64_t at = group * size;
    const int found = detail::non_zeros(dense.data + at, format, pattern);
    if (found > kept_count) {
      return {Fault::Kind::kTooMany, at / dense.cols, at % dense.cols, found, kept_count};
    }
    const Kept kept = choose(dense.data + at, format, pattern);
    packed[at / 2] = dense.data[at + kept.first];
    if (kept_count == 2) packed[at / 2 + 1] = dense.data[at + kept.second];
    const unsigned before = group % 2 == 0 ? 0U : metadata[group / 2];
    metadata[group / 2] =
        static_cast<std::uint8_t>(before | nibble_of(kept, pattern) << (group % 2 * 4));
  }
  return {};
}

// The inverse: fills all of `dense` from what compress made of it. Faults: kRaggedCols, by bytes of
// metadata; kNibble, for the first such group by rows.
template <class T>
constexpr Fault expand(Matrix<T> dense, const T* packed, const std::uint8_t* metadata,
                       Pattern pattern = Pattern::k2of4) {
  const int size = group_size(pattern);
  const Fault ragged =
      detail::ragged(Fault::Kind::kRaggedCols, dense.cols, columns_of_byte(pattern));
  if (ragged) return ragged;
  for (std::int64_t group = 0; group < dense.rows * dense.cols / size; ++group) {
    const std::int64_t at = group * size;
    const unsigned nibble = detail::nibble_at(metadata, group);
    if (!is_legal(nibble, pattern)) {
      return {Fault::Kind::kNibble, at / dense.cols, at % dense.cols, nibble, 0};
    }
    const Kept kept = kept_of(nibble, pattern);
    for (int i = 0; i < size; ++i) dense.data[at + i] = T{};
    dense.data[at + kept.first] = packed[at / 2];
    if (pattern == Pattern::k2of4) dense.data[at + kept.second] = packed[at / 2 + 1];
  }
  return {};
}

// --- metadata in 32-bit words, ordered as the lanes of a warp load them

// Bytes [rows, 4 * n] become words [rows, n]; word n is about the bytes 4n to 4n + 3.
//   kRowPairs, for 16-bit types and tf32. In a block of 16 rows, with r < 8:
//     word row 2r      = bytes 0, 1 of row r (low half) and of row r + 8 (high half)
//     word row 2r + 1  = bytes 2, 3 of row r (low half) and of row r + 8 (high half)
//   kRows, for 8-bit types: word row r = bytes 0 to 3 of row r, the first lowest. A step of 64
//     columns is two words.
enum class Words : std::uint8_t { kRowPairs, kRows };

namespace detail {

// Where half a word (two bytes) comes from.
struct HalfWord {
  std::int64_t row;
  int byte;  // the first of the two among the word's four
};

constexpr HalfWord source_of(Words form, std::int64_t word_row, int half) {
  if (form == Words::kRows) return {word_row, 2 * half};
  const std::int64_t in_block = word_row % 16;
  return {word_row - in_block + in_block / 2 + 8 * half, static_cast<int>(in_block % 2) * 2};
}

constexpr Fault words_fault(std::int64_t rows, std::int64_t byte_cols, Words form) {
  const Fault fault = ragged(Fault::Kind::kRaggedCols, byte_cols, 4);
  if (fault || form == Words::kRows) return fault;
  return ragged(Fault::Kind::kRaggedRows, rows, 16);
}

}  // namespace detail

// Faults, here and below, of the matrix of bytes: kRaggedCols by 4, kRaggedRows by 16 (kRowPairs).
template <class Byte>
constexpr Fault pack_words(Matrix<Byte> bytes, Words form, std::uint32_t* words) {
  if (const Fault fault = detail::words_fault(bytes.rows, bytes.cols, form)) return fault;
  for (std::int64_t at = 0; at < bytes.rows * (bytes.cols / 4); ++at) {
    const std::int64_t row = at / (bytes.cols / 4);
    const std::int64_t col = at % (bytes.cols / 4) * 4;
    words[at] = 0;
    for (int half = 0; half < 2; ++half) {
      const detail::HalfWord from = detail::source_of(form, row, half);
      const Byte* two = bytes.data + from.row * bytes.cols + col + from.byte;
      const auto value = static_cast<std::uint32_t>(two[0]) | static_cast<std::uint32_t>(two[1])
                                                                  << 8;
      words[at] |= value << (16 * half);
    }
  }
  return {};
}

// The inverse of pack_words; `bytes` is what is filled.
constexpr Fault unpack_words(Matrix<std::uint8_t> bytes, Words form, const std::uint32_t* words) {
  if (const Fault fault = detail::words_fault(bytes.rows, bytes.cols, form)) return fault;
  for (std::int64_t at = 0; at < bytes.rows * (bytes.cols / 4); ++at) {
    const std::int64_t row = at / (bytes.cols / 4);
    const std::int64_t col = at % (bytes.cols / 4) * 4;
    for (int half = 0; half < 2; ++half) {
      const detail::HalfWord from = detail::source_of(form, row, half);
      std::uint8_t* two = bytes.data + from.row * bytes.cols + col + from.byte;
      two[0] = static_cast<std::uint8_t>(words[at] >> (16 * half));
      two[1] = static_cast<std::uint8_t>(words[at] >> (16 * half + 8));
    }
  }
  return {};
}

}  // namespace kiln::sparse
