// Sparse matrix instructions: which lane gives which part of A's metadata.
//
// `mma.sp` and `wgmma.mma_async.sp` multiply an M x K matrix A of which half the elements of each
// row are zero. A's operand holds the others (the *stored* elements, M x K/2). One more 32-bit
// register, the metadata, has a nibble for each group of neighbours in a row (kiln/sparse.h): eight
// nibbles, the lowest bits first. Not every lane gives one. Of each four neighbouring lanes 1, 2 or
// all 4 do, the *suppliers*; an immediate operand, the sparsity selector, says which ones. What the
// others hold is not read.
//
// A row's map sends (supplier, nibble) to row + M * group, first mode fastest. Suppliers count
// through the lanes that give something, so the map is the same for every selector.
//
//   mma.sp.m16n8k32.b16:   map ((2,8),(4,2)):((64,1),(16,8)),  2 suppliers in four, selectors 0, 1
//   selector 0, lane 5:    supplier 3 = (1,1);  nibble 6 = (2,1):  64 + 1 + 32 + 8 = 105
//                          = row 9 + 16 * group 6: A's columns 24 to 27 in row 9
//   selector 1:            the same is in lane 7
//   metadata_place(row, 0, 5, 12)    {.row = 9, .stored = 12}      bits 24, 25 = nibble 6's first
//   metadata_place(row, 0, 5, 13)    {.row = 9, .stored = 13}      bits 26, 27 = nibble 6's second
//
// The registers of the other operands. A: the stored elements as a dense instruction of half the K
// has them: m16n8k32 of f16 as A of m16n8k16. B: all of K, in runs as the dense ones
// ("((4,8),(2,4)):((16,1),(8,64))" for 8x32 of 16 bits). C: as the dense ones.
// tests/gpu/sparse_metadata.cu runs every row with every selector.
//
// PTX ISA: "Sparse matrix storage", "Matrix fragments for multiply-accumulate operation with sparse
// matrix A"; "Matrix fragments for warpgroup-level multiply-accumulate operation with sparse matrix
// A". wgmma's are those of mma.sp, 16 rows to a warp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kiln/layout.h"
#include "kiln/sparse.h"
#include "target/mma.h"

namespace kiln::target {

// Metadata registers have eight nibbles, sixteen pairs of bits.
inline constexpr int kNibblesOfRegister = 8;
inline constexpr int kPairsOfRegister = 16;

struct SparseMetadata {
  std::string_view name;  // instruction, shape, bits of an element of A
  Scope scope;
  int m;
  int k;             // of the dense matrix: B's
  int element_bits;  // of A
  int suppliers;     // in each four lanes
  Layout map;        // (supplier, nibble) -> row + m * group
};

// All rows.
[[nodiscard]] std::span<const SparseMetadata> all_sparse_metadata();

// The metadata of A with elements of this width at this scope and K (the dense one), or null.
[[nodiscard]] const SparseMetadata* find_sparse_metadata(Scope scope, int k, int element_bits);

[[nodiscard]] constexpr sparse::Pattern pattern_of(const SparseMetadata& metadata) {
  return metadata.element_bits == 32 ? sparse::Pattern::k1of2 : sparse::Pattern::k2of4;
}

// Groups of neighbours in a row of A.
[[nodiscard]] constexpr int groups_of_row(const SparseMetadata& metadata) {
  return metadata.k / sparse::group_size(pattern_of(metadata));
}

// Legal sparsity selectors are 0 to selectors - 1; with any other the result is undefined.
[[nodiscard]] constexpr int selectors(const SparseMetadata& metadata) {
  return 4 / metadata.suppliers;
}

// The lane (of the warp, or of the warpgroup) of a supplier, and back; none: the lane is not read.
[[nodiscard]] constexpr int lane_of_supplier(const SparseMetadata& metadata, int selector,
                                             int supplier) {
  const int in_four = selector * metadata.suppliers + supplier % metadata.suppliers;
  return supplier / metadata.suppliers * 4 + in_four;
}
[[nodiscard]] constexpr std::optional<int> supplier_of_lane(const SparseMetadata& metadata,
                                                            int selector, int lane) {
  const int in_four = lane % 4 - selector * metadata.suppliers;
  if (in_four < 0 || in_four >= metadata.suppliers) return std::nullopt;
  return lane / 4 * metadata.suppliers + in_four;
}

// A group of A: its metadata is one nibble.
struct MetadataGroup {
  int row = 0;
  int group = 0;  // along the row

  friend constexpr bool operator==(const MetadataGroup&, const MetadataGroup&) = default;
};

// What bits 4 * nibble to 4 * nibble + 3 of the lane's register are about. None: nothing reads
// them.
[[nodiscard]] constexpr std::optional<MetadataGroup> metadata_group(const SparseMetadata& metadata,
                                                                    int selector, int lane,
                                                                    int nibble) {
  const std::optional<int> supplier = supplier_of_lane(metadata, selector, lane);
  if (!supplier) return std::nullopt;
  const int index = static_cast<int>(metadata.map(*supplier, nibble));
  return MetadataGroup{index % metadata.m, index / metadata.m};
}

// An element of A's operand: `stored` counts along its K/2 columns.
struct StoredElement {
  int row = 0;
  int stored = 0;

  friend constexpr bool operator==(const StoredElement&, const StoredElement&) = default;
};

// The element whose position bits 2 * pair and 2 * pair + 1 of the lane's register give: its column
// within its group of four. At 1:2 both pairs of a nibble are about one element, and give the
// halves of its place (kiln/sparse.h). None: nothing reads them.
[[nodiscard]] constexpr std::optional<StoredElement> metadata_place(const SparseMetadata& metadata,
                                                                    int selector, int lane,
                                                                    int pair) {
  const auto at = metadata_group(metadata, selector, lane, pair / 2);
  if (!at) return std::nullopt;
  const bool two = pattern_of(metadata) == sparse::Pattern::k2of4;
  return StoredElement{at->row, two ? 2 * at->group + pair % 2 : at->group};
}

// Where the nibble of a group is: bits 4 * nibble to 4 * nibble + 3 of the lane's register.
struct MetadataSource {
  int lane = 0;
  int nibble = 0;

  friend constexpr bool operator==(const MetadataSource&, const MetadataSource&) = default;
};
[[nodiscard]] MetadataSource metadata_source(const SparseMetadata& metadata, int selector,
                                             MetadataGroup at);

// The column of the dense A at which a stored element stands, given its group's nibble. The nibble
// must be legal.
[[nodiscard]] constexpr int dense_column(const SparseMetadata& metadata, int stored,
                                         unsigned nibble) {
  const sparse::Pattern pattern = pattern_of(metadata);
  const int kept = sparse::kept_of_group(pattern);
  const sparse::Kept places = sparse::kept_of(nibble, pattern);
  const int place = stored % kept == 0 ? places.first : places.second;
  return stored / kept * sparse::group_size(pattern) + place;
}

// --- loading

// The metadata of a sparse row.
[[nodiscard]] const SparseMetadata& metadata_of(const Mma& mma);

// How lanes load their registers with selector 0 from metadata in memory: bytes (kU8, `u8 [M,
// K/8]`, at 1:2 [M, K/4]) or prepacked words (kU32, as metadata_word has them). Each step of K is a
// register, put together from its parts, the lowest bits first. Lanes that are not read load what a
// neighbour does.
//
//   mma.sp.m16n8k32.b16, bytes:   ((2,2,8),(2,2)):((32,0,1),(16,8)), 4 columns
//   lane 5 = (1,0,1), part 3 = (1,1):   32 + 1 + 16 + 8 = 57   = row 9 + 16 * column 3
struct MetadataLoad {
  Layout map;       // (lane, part) -> row + rows * column, in the first step
  int rows = 0;     // of the instruction
  int parts = 0;    // of a register
  int columns = 0;  // from step to step
};
[[nodiscard]] MetadataLoad metadata_load(const Mma& mma, DType dtype);

// A lane's registers for metadata of so many columns.
[[nodiscard]] int metadata_registers(const Mma& mma, DType dtype, std::int64_t columns);

// The register of a lane from the tile's bytes (`u8 [M, K/8]`, at 1:2 [M, K/4], by rows without
// gaps); 0 for a lane that is not read.
[[nodiscard]] std::uint32_t metadata_register(const SparseMetadata& metadata, int selector,
                                              int lane, std::span<const std::uint8_t> bytes);

// Where a lane's metadata register stands in prepacked words (pack_words of a matrix): it is one
// word, at this row and column when the tile begins at row 0 and at column `step` * K of the dense matrix. None for a
// lane that is not read. A tile further down adds its first row, a multiple of 16 (of 1 for 8-bit
// types).
struct WordPlace {
  int row = 0;
  int col = 0;

  friend constexpr bool operator==(const WordPlace&, const WordPlace&) = default;
};
[[nodiscard]] std::optional<WordPlace> metadata_word(const SparseMetadata& metadata, int selector,
                                                     int lane, int step);

}  // namespace kiln::target
