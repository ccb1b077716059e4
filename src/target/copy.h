// Copy instructions: one row each.
//
//   find_copy(arch, CopyKind::kAsync, Space::kGlobal, Space::kShared, 16)->ptx
//       == "cp.async.cg.shared.global"
//
// `ldmatrix` rows carry two maps. With `matrices` 8x8 matrices of 16-bit elements, numbered in the
// order of the lanes that give their row addresses:
//   address_map: lane -> row + 8 * matrix       (lanes past its size give no address)
//   result_map: (lane, value) -> row + 8 * column + 64 * matrix
// where a value is one 16-bit half of a register, the low half first, two to a register.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kiln/layout.h"
#include "support/dtype.h"
#include "target/arch.h"

namespace kiln::target {

enum class CopyKind : std::uint8_t {
  kVector,  // one load or store of each lane's own
  kAsync,   // global to shared past the registers, waited for by group
  kMatrix,  // 8x8 matrices, by a whole warp together
};

enum class Space : std::uint8_t { kRegister, kShared, kGlobal };

struct Copy {
  std::string_view name;
  CopyKind kind;
  Space from;
  Space to;
  int bytes;      // each lane moves (kMatrix: receives)
  int alignment;  // bytes; of each address
  int min_arch;
  std::string_view ptx;
  // Cycles the SM's load/store path is busy with one warp's worth at 128 bytes a cycle, without
  // bank conflicts and with coalesced addresses.
  int issue_cycles;
  bool zero_fill = false;   // takes a source size; the rest of the bytes become zero
  int matrices = 0;         // kMatrix only, as all below
  bool transposed = false;  // each matrix arrives transposed
  Layout address_map = {};
  Layout result_map = {};
};

// All rows.
[[nodiscard]] std::span<const Copy> all_copies();

[[nodiscard]] const Copy* find_copy(std::string_view name);

// The vector or asynchronous copy of exactly `bytes` a lane in this direction, or null.
[[nodiscard]] const Copy* find_copy(const Arch& arch, CopyKind kind, Space from, Space to,
                                    int bytes);

// The widest copy of the kind in this direction whose bytes and alignment both divide `bytes` and
// `alignment` (what is known of the run's length and of its first address), or null.
[[nodiscard]] const Copy* widest_copy(const Arch& arch, CopyKind kind, Space from, Space to,
                                      std::int64_t bytes, std::int64_t alignment);

// The `ldmatrix` of 1, 2 or 4 matrices, or null.
[[nodiscard]] const Copy* find_matrix_load(const Arch& arch, int matrices, bool transposed);

[[nodiscard]] std::string_view name(CopyKind kind);
[[nodiscard]] std::string_view name(Space space);

}  // namespace kiln::target
