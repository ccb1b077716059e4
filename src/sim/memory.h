// Buffers and views: where an element is, and whether it is inside the program.
//
//   %t = subview lhs[16*i, 16*k] of lhs[40, 64] of f16, with i = 2, k = 0:
//     t[1, 2] is lhs[33, 2]; inside, since 33 < 40 and 2 < 64; at byte (33 * 64 + 2) * 2
//
// An alias is a buffer with a shape and strides of its own in another one's memory. Where it begins
// may differ between threads: then its first dimension is that place, pinned in each of its views.
//
// An address counts bytes inside its space: of the block's shared memory, of one lane's local
// memory, or of one global buffer, whose base is aligned as a GPU allocator would.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/shared_layout.h"
#include "sim/index_expr.h"
#include "sim/shadow.h"

namespace kiln::sim {

inline constexpr std::size_t kRankMax = 8;
using Coordinates = std::array<std::int64_t, kRankMax>;

// One allocation or view parameter.
struct Buffer {
  static constexpr std::uint32_t kUnwatched = UINT32_MAX;  // nothing can go wrong

  std::string name;
  ir::Space space = ir::Space::kGlobal;
  DType dtype = DType::kF32;
  std::int64_t size = 4;  // bytes of an element
  std::size_t rank = 0;
  Coordinates extents = {};
  Coordinates strides = {};  // in elements; row-major, of an alias any
  std::int64_t bytes = 0;
  std::byte* data = nullptr;           // global
  std::uint32_t watched = kUnwatched;  // global: the number of its shadow in a machine
  Shadow* of_host = nullptr;           // global: the same, where the host part touches elements
  std::int64_t offset = 0;             // shared and local: address of element 0
  ir::SharedShape layout = {};         // shared
  const Buffer* memory = nullptr;      // of an alias: whose memory it is
  bool pinned = false;                 // of an alias: dimension 0 is where it begins

  // The element must be inside.
  [[nodiscard]] std::int64_t address(const Coordinates& at) const {
    std::int64_t row = 0;  // in elements, of the first element of the row
    for (std::size_t d = 0; d + 1 < rank; ++d) row += at[d] * strides[d];
    const std::int64_t col = rank == 0 ? 0 : at[rank - 1] * strides[rank - 1];
    if (space != ir::Space::kShared || layout.swizzle == 0) return offset + (row + col) * size;
    return offset + ir::shared_offset(layout, row * size / layout.pitch, col * size);
  }

  // Whether so many bytes from the address on are bytes of it (of an alias's memory).
  [[nodiscard]] bool holds(std::int64_t address, std::int64_t count) const {
    const Buffer& whole = memory == nullptr ? *this : *memory;
    return address >= whole.offset && count <= whole.offset + whole.bytes - address;
  }

  // "output_s[3, 4]", the element whose bytes include `address`; slow.
  [[nodiscard]] std::string element_text(std::int64_t address) const;
  [[nodiscard]] std::string element_text(const Coordinates& at) const;
};

// A buffer of the type, without memory. Extents are evaluated with the known variables.
[[nodiscard]] Buffer make_buffer(const std::string& name, const ir::ViewType& type,
                                 const std::vector<std::int64_t>& extents);

// The buffer of an Alias in the memory of `base`.
[[nodiscard]] Buffer make_alias(const ir::Function& function, ir::ValueId alias, const Buffer& base,
                                const VarFacts& facts);

// Where a view lies at this moment, by root dimension: it is inside while coordinate < limit.
struct Window {
  Coordinates origin = {};
  Coordinates limit = {};
};

// A view, ready to be evaluated.
struct View {
  const Buffer* buffer = nullptr;
  std::size_t rank = 0;
  std::size_t dropped = 0;                 // root dimension of the view's dimension 0
  std::array<IndexExpr, kRankMax> origin;  // by root dimension
  std::array<IndexExpr, kRankMax> shape;   // by the view's dimension
  Coordinates limit = {};                  // by root dimension: the least constant limit
  struct Limit {
    std::size_t dim;
    IndexExpr expr;
  };
  std::vector<Limit> limits;           // the others
  std::vector<std::uint32_t> varying;  // of which a warp's active lanes may have different values

  [[nodiscard]] Window window(const std::int64_t* vars, std::uint32_t lane) const;
  // Whether it lies at the same place for each of these lanes. A lane's own counter that all of them count alike
  // (the place in a ring) is no variable that they share, but here and now it has one value.
  [[nodiscard]] bool is_same_in(const std::int64_t* vars, std::uint32_t lanes) const;
};

[[nodiscard]] View make_view(const ir::Function& function, ir::ValueId view, const Buffer& root,
                             const VarFacts& facts);

// The first root dimension in which the coordinate is outside, or nothing.
[[nodiscard]] inline std::size_t outside(const Buffer& buffer, const Window& window,
                                         const Coordinates& at) {
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    if (at[d] < 0 || at[d] >= window.limit[d]) return d;
  }
  return kRankMax;
}

[[nodiscard]] inline double decode_bf16(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
}
// Exact for all 65536 patterns: shifting the exponent field by the difference of the biases scales
// normal and subnormal numbers alike; infinities and NaNs get their exponent by hand.
[[nodiscard]] inline double decode_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const bool special = (bits & 0x7c00U) == 0x7c00U;
  return static_cast<double>(
      std::bit_cast<float>(sign | (special ? 0x7f800000U | magnitude : scaled)));
}

// Elements as numbers. Quick for the types that tensor cores eat.
[[nodiscard]] double load_number(DType dtype, const std::byte* at);
void load_numbers(DType dtype, const std::byte* at, std::uint32_t count, double* to);
void store_number(DType dtype, std::byte* at, double value);

}  // namespace kiln::sim
