#include "target/swizzle.h"

namespace kiln::target {

namespace {

constexpr SmemSwizzle kSwizzles[] = {
    {.name = "none", .bytes = 0, .swizzle = {0, 4, 3}, .alignment = 16},
    {.name = "32", .bytes = 32, .swizzle = {1, 4, 3}, .alignment = 256},
    {.name = "64", .bytes = 64, .swizzle = {2, 4, 3}, .alignment = 512},
    {.name = "128", .bytes = 128, .swizzle = {3, 4, 3}, .alignment = 1024},
};

// The chunks of one pattern row are what the bits permute, and a base may stand wherever the
// pattern starts anew.
consteval bool rows_are_consistent(std::span<const SmemSwizzle> rows) {
  for (const SmemSwizzle& row : rows) {
    if (row.bytes == 0) continue;
    if (row.bytes != (1 << (row.swizzle.base + row.swizzle.bits))) return false;
    if (row.alignment != period(row.swizzle)) return false;
  }
  return rows[0].bytes == 0;
}
static_assert(rows_are_consistent(kSwizzles));

}  // namespace

std::span<const SmemSwizzle> all_swizzles() { return kSwizzles; }

const SmemSwizzle* find_swizzle(int bytes) {
  for (const SmemSwizzle& row : kSwizzles) {
    if (row.bytes == bytes) return &row;
  }
  return nullptr;
}

const SmemSwizzle& widest_swizzle(std::int64_t row_bytes) {
  const SmemSwizzle* best = &kSwizzles[0];
  for (const SmemSwizzle& row : kSwizzles) {
    if (row.bytes != 0 && row_bytes > 0 && row_bytes % row.bytes == 0) best = &row;
  }
  return *best;
}

}  // namespace kiln::target
