#include "target/sparse.h"

namespace kiln::target {

namespace {

// With lane = 4 * g + t. 16-bit types and tf32: a supplier has four groups of row g in its low half
// and the same four of row g + 8 in its high half; a second one has the next four groups. 8-bit
// types: a supplier has eight groups of one row, row g or, the next one, g + 8; suppliers 2 and 3
// have the next eight groups.
constexpr SparseMetadata kMetadataRows[] = {
    {"mma.sp.m16n8k16.b16", Scope::kWarp, 16, 16, 16, 1, "(8,(4,2)):(1,(16,8))"_layout},
    {"mma.sp.m16n8k32.b16", Scope::kWarp, 16, 32, 16, 2, "((2,8),(4,2)):((64,1),(16,8))"_layout},
    {"mma.sp.m16n8k8.b32", Scope::kWarp, 16, 8, 32, 1, "(8,(4,2)):(1,(16,8))"_layout},
    {"mma.sp.m16n8k16.b32", Scope::kWarp, 16, 16, 32, 2, "((2,8),(4,2)):((64,1),(16,8))"_layout},
    {"mma.sp.m16n8k32.b8", Scope::kWarp, 16, 32, 8, 2, "((2,8),8):((8,1),16)"_layout},
    {"mma.sp.m16n8k64.b8", Scope::kWarp, 16, 64, 8, 4, "((2,2,8),8):((8,128,1),16)"_layout},
    {"wgmma.sp.m64nNk32.b16", Scope::kWarpgroup, 64, 32, 16, 2,
     "((2,8,4),(4,2)):((256,1,16),(64,8))"_layout},
    {"wgmma.sp.m64nNk16.b32", Scope::kWarpgroup, 64, 16, 32, 2,
     "((2,8,4),(4,2)):((256,1,16),(64,8))"_layout},
    {"wgmma.sp.m64nNk64.b8", Scope::kWarpgroup, 64, 64, 8, 4,
     "((2,2,8,4),8):((8,512,1,16),64)"_layout},
};

consteval bool rows_are_consistent() {
  for (const SparseMetadata& row : kMetadataRows) {
    const int lanes = row.scope == Scope::kWarp ? kWarpLanes : kWarpgroupLanes;
    if (size(row.map, 0) != lanes / 4 * row.suppliers) return false;
    if (size(row.map, 1) != kNibblesOfRegister) return false;
    if (size(row.map) != Index{row.m} * groups_of_row(row) || !is_bijective(row.map)) return false;
  }
  return true;
}
static_assert(rows_are_consistent());

// The nibble of a group in the tile's bytes.
std::uint32_t nibble_at(const SparseMetadata& metadata, std::span<const std::uint8_t> bytes,
                        MetadataGroup at) {
  const int index = at.row * groups_of_row(metadata) + at.group;
  return bytes[static_cast<std::size_t>(index / 2)] >> (index % 2 * 4) & 0xfU;
}

}  // namespace

std::span<const SparseMetadata> all_sparse_metadata() { return kMetadataRows; }

const SparseMetadata* find_sparse_metadata(Scope scope, int k, int element_bits) {
  for (const SparseMetadata& row : kMetadataRows) {
    if (row.scope == scope && row.k == k && row.element_bits == element_bits) return &row;
  }
  return nullptr;
}

MetadataSource metadata_source(const SparseMetadata& metadata, int selector, MetadataGroup at) {
  const Layout inverse = right_inverse(metadata.map);
  const int suppliers = static_cast<int>(size(metadata.map, 0));
  const int index = static_cast<int>(inverse(at.row + metadata.m * at.group));
  return {lane_of_supplier(metadata, selector, index % suppliers), index / suppliers};
}

std::uint32_t metadata_register(const SparseMetadata& metadata, int selector, int lane,
                                std::span<const std::uint8_t> bytes) {
  std::uint32_t out = 0;
  for (int nibble = 0; nibble < kNibblesOfRegister; ++nibble) {
    const auto at = metadata_group(metadata, selector, lane, nibble);
    if (at) out |= nibble_at(metadata, bytes, *at) << (4 * nibble);
  }
  return out;
}

std::optional<WordPlace> metadata_word(const SparseMetadata& metadata, int selector, int lane,
                                       int step) {
  // A register's first nibble says which groups it begins with; eight groups are a word column.
  const auto first = metadata_group(metadata, selector, lane, 0);
  if (!first) return std::nullopt;
  const int group = step * groups_of_row(metadata) + first->group;
  if (metadata.element_bits == 8) return WordPlace{first->row, group / 8};
  const int in_block = first->row % 16;
  return WordPlace{first->row - in_block + 2 * in_block + group / 4 % 2, group / 8};
}

}  // namespace kiln::target
