#include "target/copy.h"

#include "target/arch.h"

namespace kiln::target {

namespace {
constexpr int kPathBytes = 128;  // the load/store path moves this much each cycle

constexpr int path_cycles(int bytes) {
  return (bytes * target::kWarpLanes + kPathBytes - 1) / kPathBytes;
}

constexpr Copy vector(std::string_view name, Space from, Space to, int bytes,
                      std::string_view ptx) {
  return {.name = name,
          .kind = CopyKind::kVector,
          .from = from,
          .to = to,
          .bytes = bytes,
          .alignment = bytes,
          .needs = {},
          .ptx = ptx,
          .issue_cycles = path_cycles(bytes)};
}

constexpr Copy async(std::string_view name, int bytes, std::string_view ptx) {
  return {.name = name,
          .kind = CopyKind::kAsync,
          .from = Space::kGlobal,
          .to = Space::kShared,
          .bytes = bytes,
          .alignment = bytes,
          .needs = {Feature::kCpAsync},
          .ptx = ptx,
          .issue_cycles = path_cycles(bytes),
          .zero_fill = true};
}

// Of a matrix load: where each lane's address points, and which elements each lane gets.
struct LaneMaps {
  Layout address;
  Layout result;
};

// One matrix is 8 rows of 16 bytes: 4 bytes for each lane.
constexpr Copy matrix(std::string_view name, int matrices, bool transposed, std::string_view ptx,
                      const LaneMaps& maps) {
  return {.name = name,
          .kind = CopyKind::kMatrix,
          .from = Space::kShared,
          .to = Space::kRegister,
          .bytes = 4 * matrices,
          .alignment = 16,
          .needs = {Feature::kLdmatrix},
          .ptx = ptx,
          .issue_cycles = path_cycles(4 * matrices),
          .matrices = matrices,
          .transposed = transposed,
          .address_map = maps.address,
          .result_map = maps.result};
}

// The row of the matrix store (stmatrix) that moves what a matrix load moves, the other way.
constexpr Copy stored(Copy row) {
  row.kind = CopyKind::kMatrixStore;
  row.from = Space::kRegister;
  row.to = Space::kShared;
  row.needs = {Feature::kStmatrix};
  return row;
}

// The multiprocessor's part is to hand one instruction on. A box begins at a multiple of 128 bytes
// of shared memory.
constexpr Copy bulk(std::string_view name, Space from, Space to, int rank, std::string_view ptx) {
  return {.name = name,
          .kind = CopyKind::kBulk,
          .from = from,
          .to = to,
          .bytes = 0,
          .alignment = 128,
          .needs = {Feature::kTma},
          .ptx = ptx,
          .issue_cycles = 1,
          .zero_fill = to == Space::kShared,
          .rank = rank,
          .completes = to == Space::kShared};
}

constexpr Copy multicast(std::string_view name, int rank, std::string_view ptx) {
  Copy row = bulk(name, Space::kGlobal, Space::kShared, rank, ptx);
  row.needs = {Feature::kTma, Feature::kCluster};
  row.multicast = true;
  return row;
}

constexpr Copy bulk_add(std::string_view name, int rank, std::string_view ptx) {
  Copy row = bulk(name, Space::kShared, Space::kGlobal, rank, ptx);
  row.adds = true;
  return row;
}

constexpr Space kReg = Space::kRegister;
constexpr Space kSmem = Space::kShared;
constexpr Space kGmem = Space::kGlobal;

// PTX ISA, "ldmatrix": lane = 4 * row + column / 2; .trans exchanges row and column.
constexpr Copy kCopies[] = {
    matrix("ldmatrix.x1", 1, false, "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
           {"8:1"_layout, "((4,8),2):((16,1),8)"_layout}),
    matrix("ldmatrix.x2", 2, false, "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
           {"16:1"_layout, "((4,8),(2,2)):((16,1),(8,64))"_layout}),
    matrix("ldmatrix.x4", 4, false, "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
           {"32:1"_layout, "((4,8),(2,4)):((16,1),(8,64))"_layout}),
    matrix("ldmatrix.x1.trans", 1, true, "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
           {"8:1"_layout, "((4,8),2):((2,8),1)"_layout}),
    matrix("ldmatrix.x2.trans", 2, true, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
           {"16:1"_layout, "((4,8),(2,2)):((2,8),(1,64))"_layout}),
    matrix("ldmatrix.x4.trans", 4, true, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
           {"32:1"_layout, "((4,8),(2,4)):((2,8),(1,64))"_layout}),

    // .cg keeps the data out of L1 and exists for 16 bytes only.
    async("cp.async.16", 16, "cp.async.cg.shared.global"),
    async("cp.async.8", 8, "cp.async.ca.shared.global"),
    async("cp.async.4", 4, "cp.async.ca.shared.global"),

    vector("ld.global.16", kGmem, kReg, 16, "ld.global.v4.u32"),
    vector("ld.global.8", kGmem, kReg, 8, "ld.global.v2.u32"),
    vector("ld.global.4", kGmem, kReg, 4, "ld.global.u32"),
    vector("ld.global.2", kGmem, kReg, 2, "ld.global.u16"),
    vector("ld.global.1", kGmem, kReg, 1, "ld.global.u8"),
    vector("st.global.16", kReg, kGmem, 16, "st.global.v4.u32"),
    vector("st.global.8", kReg, kGmem, 8, "st.global.v2.u32"),
    vector("st.global.4", kReg, kGmem, 4, "st.global.u32"),
    vector("st.global.2", kReg, kGmem, 2, "st.global.u16"),
    vector("st.global.1", kReg, kGmem, 1, "st.global.u8"),
    vector("ld.shared.16", kSmem, kReg, 16, "ld.shared.v4.u32"),
    vector("ld.shared.8", kSmem, kReg, 8, "ld.shared.v2.u32"),
    vector("ld.shared.4", kSmem, kReg, 4, "ld.shared.u32"),
    vector("ld.shared.2", kSmem, kReg, 2, "ld.shared.u16"),
    vector("ld.shared.1", kSmem, kReg, 1, "ld.shared.u8"),
    vector("st.shared.16", kReg, kSmem, 16, "st.shared.v4.u32"),
    vector("st.shared.8", kReg, kSmem, 8, "st.shared.v2.u32"),
    vector("st.shared.4", kReg, kSmem, 4, "st.shared.u32"),
    vector("st.shared.2", kReg, kSmem, 2, "st.shared.u16"),
    vector("st.shared.1", kReg, kSmem, 1, "st.shared.u8"),

    // PTX ISA, "stmatrix": lane 4 * r + c / 2 gives elements c and c + 1 of row r; .trans: of
    // column r.
    stored(matrix("stmatrix.x1", 1, false, "stmatrix.sync.aligned.m8n8.x1.shared.b16",
                  {"8:1"_layout, "((4,8),2):((16,1),8)"_layout})),
    stored(matrix("stmatrix.x2", 2, false, "stmatrix.sync.aligned.m8n8.x2.shared.b16",
                  {"16:1"_layout, "((4,8),(2,2)):((16,1),(8,64))"_layout})),
    stored(matrix("stmatrix.x4", 4, false, "stmatrix.sync.aligned.m8n8.x4.shared.b16",
                  {"32:1"_layout, "((4,8),(2,4)):((16,1),(8,64))"_layout})),
    stored(matrix("stmatrix.x1.trans", 1, true, "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
                  {"8:1"_layout, "((4,8),2):((2,8),1)"_layout})),
    stored(matrix("stmatrix.x2.trans", 2, true, "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
                  {"16:1"_layout, "((4,8),(2,2)):((2,8),(1,64))"_layout})),
    stored(matrix("stmatrix.x4.trans", 4, true, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
                  {"32:1"_layout, "((4,8),(2,4)):((2,8),(1,64))"_layout})),

    // PTX ISA, "cp.async.bulk.tensor".
    bulk("bulk.load.1d", kGmem, kSmem, 1,
         "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"),
    bulk("bulk.load.2d", kGmem, kSmem, 2,
         "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"),
    bulk("bulk.load.3d", kGmem, kSmem, 3,
         "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"),
    bulk("bulk.load.4d", kGmem, kSmem, 4,
         "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"),
    bulk("bulk.load.5d", kGmem, kSmem, 5,
         "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"),
    multicast("bulk.multicast.1d", 1,
              "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
              "multicast::cluster"),
    multicast("bulk.multicast.2d", 2,
              "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
              "multicast::cluster"),
    multicast("bulk.multicast.3d", 3,
              "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
              "multicast::cluster"),
    multicast("bulk.multicast.4d", 4,
              "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
              "multicast::cluster"),
    multicast("bulk.multicast.5d", 5,
              "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
              "multicast::cluster"),
    bulk("bulk.store.1d", kSmem, kGmem, 1,
         "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group"),
    bulk("bulk.store.2d", kSmem, kGmem, 2,
         "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"),
    bulk("bulk.store.3d", kSmem, kGmem, 3,
         "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"),
    bulk("bulk.store.4d", kSmem, kGmem, 4,
         "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group"),
    bulk("bulk.store.5d", kSmem, kGmem, 5,
         "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group"),
    bulk_add("bulk.add.1d", 1,
             "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group"),
    bulk_add("bulk.add.2d", 2,
             "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"),
    bulk_add("bulk.add.3d", 3,
             "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group"),
    bulk_add("bulk.add.4d", 4,
             "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group"),
    bulk_add("bulk.add.5d", 5,
             "cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group"),
};

constexpr bool moves_matrices(const Copy& row) {
  return row.kind == CopyKind::kMatrix || row.kind == CopyKind::kMatrixStore;
}

constexpr bool matrix_is_consistent(const Copy& row) {
  if (!moves_matrices(row)) return !row.result_map.valid() && row.matrices == 0;
  constexpr Index kElements = 64;
  if (size(row.address_map) != 8 * row.matrices || !is_bijective(row.address_map)) return false;
  if (size(row.result_map) != kElements * row.matrices) return false;
  return size(row.result_map, 0) == target::kWarpLanes && is_bijective(row.result_map);
}

constexpr bool bulk_is_consistent(const Copy& row) {
  if (row.kind != CopyKind::kBulk) {
    return row.rank == 0 && !row.multicast && !row.completes && !row.adds;
  }
  const bool loads = row.to == Space::kShared;
  return row.rank >= 1 && row.rank <= 5 && row.completes == loads &&
         (loads ? !row.adds : !row.multicast);
}

consteval bool rows_are_consistent(std::span<const Copy> rows) {
  for (const Copy& row : rows) {
    if (!matrix_is_consistent(row) || !bulk_is_consistent(row)) return false;
    const bool by_lane = !moves_matrices(row) && row.kind != CopyKind::kBulk;
    if (by_lane && row.alignment != row.bytes) return false;
    for (const Copy& other : rows) {
      if (&other != &row && other.name == row.name) return false;
    }
  }
  return true;
}
static_assert(rows_are_consistent(kCopies));

bool goes(const Copy& row, const Arch& arch, CopyKind kind, Space from, Space to) {
  return arch.has(row.needs) && row.kind == kind && row.from == from && row.to == to;
}

}  // namespace

std::span<const Copy> all_copies() { return kCopies; }

const Copy* find_copy(std::string_view name) {
  for (const Copy& row : kCopies) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Copy* find_copy(const Arch& arch, CopyKind kind, Space from, Space to, int bytes) {
  for (const Copy& row : kCopies) {
    if (goes(row, arch, kind, from, to) && row.bytes == bytes) return &row;
  }
  return nullptr;
}

const Copy* widest_copy(const Arch& arch, CopyKind kind, Space from, Space to, CopyRun run) {
  const Copy* best = nullptr;
  for (const Copy& row : kCopies) {
    if (!goes(row, arch, kind, from, to)) continue;
    if (run.bytes % row.bytes != 0 || run.alignment % row.alignment != 0) continue;
    if (best == nullptr || row.bytes > best->bytes) best = &row;
  }
  return best;
}

const Copy* find_matrix_load(const Arch& arch, int matrices, bool transposed) {
  for (const Copy& row : kCopies) {
    if (!goes(row, arch, CopyKind::kMatrix, kSmem, kReg)) continue;
    if (row.matrices == matrices && row.transposed == transposed) return &row;
  }
  return nullptr;
}

const Copy* find_matrix_store(const Arch& arch, int matrices, bool transposed) {
  for (const Copy& row : kCopies) {
    if (!goes(row, arch, CopyKind::kMatrixStore, kReg, kSmem)) continue;
    if (row.matrices == matrices && row.transposed == transposed) return &row;
  }
  return nullptr;
}

const Copy* find_bulk_copy(const Arch& arch, Space from, Space to, int rank, BulkForm form) {
  for (const Copy& row : kCopies) {
    if (!goes(row, arch, CopyKind::kBulk, from, to) || row.rank != rank) continue;
    if (row.multicast == (form == BulkForm::kMulticast) && row.adds == (form == BulkForm::kAdd)) {
      return &row;
    }
  }
  return nullptr;
}

bool adds_in_bulk(DType dtype) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                              DType::kS32, DType::kU32, DType::kU64};
  return std::ranges::find(kTypes, dtype) != std::end(kTypes);
}

std::string_view name(CopyKind kind) {
  switch (kind) {
    case CopyKind::kVector: return "vector";
    case CopyKind::kAsync: return "async";
    case CopyKind::kMatrix: return "matrix";
    case CopyKind::kMatrixStore: return "matrix store";
    case CopyKind::kBulk: return "bulk";
  }
  return "";
}

std::string_view name(Space space) {
  switch (space) {
    case Space::kRegister: return "register";
    case Space::kShared: return "shared";
    case Space::kGlobal: return "global";
  }
  return "";
}

}  // namespace kiln::target
