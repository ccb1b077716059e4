// Tables of what was measured to be fastest: kernels/tuned/ARCH.json, one for each architecture.
//
//   {"format": 1, "arch": "sm_90a", "entries": [
//     {"types": ["bf16", "bf16", "bf16"], "m": [3969, 4096], "n": [6913, 7168], "k": 2048,
//      "at": [4096, 7168, 2048], "kernel": "gemm_sm90", "defines": {"TILE_N": 256, "STAGES": 3},
//      "seconds": 1.71e-4}]}
//
// An entry is for products with these types of A, B and C, with both operands along k unless
// "a_along_k" or "b_along_k" is false, and with extents in its box: a number is that extent, a pair
// the range from the first to the second, nothing is any. "at" is the problem that was measured. Of
// the entries that fit, the one measured at the problem wins, then the one with the most exact
// extents, then the one with the fewest problems in its box, then the first.
// "defines" are what was tuned; those that follow from the problem (types, epilogue, grid) are
// added when it is used. "seconds" says what was measured, for those who read or extend the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/choice.h"

namespace kiln::gemm {

inline constexpr int kTableFormat = 1;

// Both ends belong to it.
struct Range {
  std::int64_t from = 1;
  std::int64_t to = INT64_MAX;
  [[nodiscard]] bool contains(std::int64_t value) const { return from <= value && value <= to; }
  [[nodiscard]] bool is_any() const { return *this == Range{}; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct Extents {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  friend bool operator==(const Extents&, const Extents&) = default;
};

struct TunedEntry {
  DType a = DType::kBF16;
  DType b = DType::kBF16;
  DType c = DType::kBF16;
  bool a_along_k = true;
  bool b_along_k = true;
  Range m = {};
  Range n = {};
  Range k = {};
  std::optional<Extents> at = {};
  Choice choice = {};
  double seconds = 0;  // 0: not said
};

struct TunedTable {
  std::string arch;
  std::vector<TunedEntry> entries;
};

// `name` is the file's, for messages. Errors: text that is no JSON, another format, an unknown
// architecture or type, a range that is empty, a key that does not exist: the reason says where.
[[nodiscard]] Result<TunedTable> parse_table(std::string_view text, const std::string& name);

// The text of a table, one entry on a line; parse_table reads it back.
[[nodiscard]] std::string table_text(const TunedTable& table);

// The entries that fit, best first. A batch-invariant problem is only fitted by entries for any m,
// several products at once and groups by none.
[[nodiscard]] std::vector<const TunedEntry*> fitting(const TunedTable& table,
                                                     const Problem& problem);

// Puts an entry into the table: in the place of the one measured at the same problem or, where
// neither says that, for the same problems; else behind the others. Products with scale factors and
// without are different problems.
void merge(TunedTable& table, TunedEntry entry);

// Whether the table has an entry for exactly this problem's types and extents, or measured at them.
[[nodiscard]] bool has_entry(const TunedTable& table, const Problem& problem);

// The table that ships for this architecture, or null.
[[nodiscard]] const TunedTable* shipped_table(const target::Arch& arch);

}  // namespace kiln::gemm
