// Copy instructions: one row each.
//
//   find_copy(arch, CopyKind::kAsync, Space::kGlobal, Space::kShared, 16)->ptx
//       == "cp.async.cg.shared.global"
//
// `ldmatrix` and `stmatrix` rows carry two maps. With `matrices` 8x8 matrices of 16-bit elements,
// numbered in the order of the lanes that give their row addresses:
//   address_map: lane -> row + 8 * matrix       (lanes past its size give no address)
//   result_map: (lane, value) -> row + 8 * column + 64 * matrix
// where a value is one 16-bit half of a register, the low half first, two to a register. For
// `stmatrix` the result map says what the registers hold.
//
// Bulk rows move boxes of a tensor map's buffer; one thread issues them for all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kiln/layout.h"
#include "support/dtype.h"
#include "target/arch.h"

namespace kiln::target {

enum class CopyKind : std::uint8_t {
  kVector,       // one load or store of each lane's own
  kAsync,        // global to shared past the registers, waited for by group
  kMatrix,       // 8x8 matrices, by a whole warp together
  kMatrixStore,  // 8x8 matrices from registers to shared memory, by a whole warp together
  kBulk,         // a box between global and shared memory, started by one thread
};

inline constexpr std::int64_t kBoxAlignment = 128;  // bytes, of a box's place in shared memory

enum class Space : std::uint8_t { kRegister, kShared, kGlobal };

struct Copy {
  std::string_view name;
  CopyKind kind;
  Space from;
  Space to;
  int bytes;      // each lane moves (kMatrix: receives); kBulk: 0, the box says
  int alignment;  // bytes; of each address
  Features needs;
  std::string_view ptx;
  // Cycles the SM's load/store path is busy with one warp's worth at 128 bytes a cycle, without
  // bank conflicts and with coalesced addresses.
  int issue_cycles;
  bool zero_fill = false;   // takes a source size; the rest of the bytes become zero
  int matrices = 0;         // kMatrix and kMatrixStore only, as all to result_map
  bool transposed = false;  // each matrix arrives transposed
  Layout address_map = {};
  Layout result_map = {};
  int rank = 0;            // kBulk only, as all below: dimensions of the tensor map
  bool multicast = false;  // to the same place in several blocks of the cluster
  bool adds = false;       // to what is there, each element as a whole
  bool completes = false;  // counts bytes at an mbarrier; else the issuer's bulk groups
};

// All rows.
[[nodiscard]] std::span<const Copy> all_copies();

[[nodiscard]] const Copy* find_copy(std::string_view name);

// The vector or asynchronous copy of exactly `bytes` a lane in this direction, or null.
[[nodiscard]] const Copy* find_copy(const Arch& arch, CopyKind kind, Space from, Space to,
                                    int bytes);

// What is known of a run of bytes: numbers that divide its length and its first address.
struct CopyRun {
  std::int64_t bytes = 0;
  std::int64_t alignment = 0;
};
// The widest copy of the kind in this direction whose bytes and alignment divide the run's, or
// null.
[[nodiscard]] const Copy* widest_copy(const Arch& arch, CopyKind kind, Space from, Space to,
                                      CopyRun run);

// The `ldmatrix` of 1, 2 or 4 matrices, or null.
[[nodiscard]] const Copy* find_matrix_load(const Arch& arch, int matrices, bool transposed);

// The `stmatrix` of 1, 2 or 4 matrices, or null.
[[nodiscard]] const Copy* find_matrix_store(const Arch& arch, int matrices, bool transposed);

enum class BulkForm : std::uint8_t { kPlain, kMulticast, kAdd };

// The bulk copy in this direction through a tensor map of `rank` dimensions, or null.
[[nodiscard]] const Copy* find_bulk_copy(const Arch& arch, Space from, Space to, int rank,
                                         BulkForm form);

// Whether bulk copies can add elements of this type to those in global memory. PTX ISA,
// "cp.reduce.async.bulk.tensor".
[[nodiscard]] bool adds_in_bulk(DType dtype);

[[nodiscard]] std::string_view name(CopyKind kind);
[[nodiscard]] std::string_view name(Space space);

}  // namespace kiln::target
