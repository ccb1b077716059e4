#include "target/copy.h"

#include <gtest/gtest.h>

#include <string>

#include "support/format.h"

namespace kiln::target {
namespace {

const Arch& sm80() { return *find_arch("sm_80"); }
const Arch& sm90() { return *find_arch("sm_90a"); }

// By what it does.
const Copy* found(const Copy& row) {
  switch (row.kind) {
    case CopyKind::kMatrix: return find_matrix_load(sm90(), row.matrices, row.transposed);
    case CopyKind::kMatrixStore: return find_matrix_store(sm90(), row.matrices, row.transposed);
    case CopyKind::kBulk:
      return find_bulk_copy(sm90(), row.from, row.to, row.rank,
                            row.multicast ? BulkForm::kMulticast
                            : row.adds    ? BulkForm::kAdd
                                          : BulkForm::kPlain);
    case CopyKind::kVector:
    case CopyKind::kAsync: return find_copy(sm90(), row.kind, row.from, row.to, row.bytes);
  }
  return nullptr;
}

TEST(Copies, EveryRowIsFoundByNameAndByWhatItDoes) {
  for (const Copy& row : all_copies()) {
    EXPECT_EQ(find_copy(row.name), &row);
    EXPECT_EQ(found(row), &row);
  }
  EXPECT_EQ(find_copy("cp.async.12"), nullptr);
  EXPECT_EQ(find_copy(sm80(), CopyKind::kAsync, Space::kShared, Space::kGlobal, 16), nullptr);
  EXPECT_EQ(find_matrix_load(sm80(), 3, false), nullptr);
  EXPECT_NE(find_matrix_load(sm80(), 4, true), nullptr);
  EXPECT_EQ(find_matrix_store(sm80(), 4, false), nullptr);
  EXPECT_EQ(find_bulk_copy(sm80(), Space::kGlobal, Space::kShared, 2, BulkForm::kPlain), nullptr);
  EXPECT_EQ(find_bulk_copy(sm90(), Space::kGlobal, Space::kShared, 6, BulkForm::kPlain), nullptr);
  EXPECT_EQ(find_bulk_copy(sm90(), Space::kShared, Space::kGlobal, 2, BulkForm::kMulticast),
            nullptr);
  EXPECT_EQ(find_bulk_copy(sm90(), Space::kGlobal, Space::kShared, 2, BulkForm::kAdd), nullptr);
  EXPECT_TRUE(adds_in_bulk(DType::kBF16));
  EXPECT_FALSE(adds_in_bulk(DType::kF64));
}

// PTX ISA: without .trans, lane 4 * r + c / 2 receives (or gives) elements c and c + 1 of row r;
// with it, of column r.
TEST(Matrices, MapsAreThoseOfThePtxManual) {
  for (const Copy& row : all_copies()) {
    const bool stores = row.kind == CopyKind::kMatrixStore;
    if (row.kind != CopyKind::kMatrix && !stores) continue;
    for (int lane = 0; lane < 32; ++lane) {
      for (int value = 0; value < 2 * row.matrices; ++value) {
        const int along = 2 * (lane % 4) + value % 2;
        const int r = row.transposed ? along : lane / 4;
        const int c = row.transposed ? lane / 4 : along;
        ASSERT_EQ(row.result_map(lane, value), r + 8 * c + 64 * (value / 2))
            << row.name << " lane " << lane << " value " << value;
      }
    }
    for (int lane = 0; lane < 8 * row.matrices; ++lane) EXPECT_EQ(row.address_map(lane), lane);
    EXPECT_EQ(row.ptx, format("{}matrix.sync.aligned.m8n8.x{}{}.shared.b16", stores ? "st" : "ld",
                              row.matrices, row.transposed ? ".trans" : ""));
  }
}

TEST(BulkCopies, SpellRankDirectionAndCompletion) {
  for (const Copy& row : all_copies()) {
    if (row.kind != CopyKind::kBulk) continue;
    const bool loads = row.to == Space::kShared;
    const std::string_view way = loads ? "shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                                 : row.adds ? "global.shared::cta.add.tile.bulk_group"
                                            : "global.shared::cta.tile.bulk_group";
    EXPECT_EQ(row.ptx, format("cp.{}async.bulk.tensor.{}d.{}{}", row.adds ? "reduce." : "",
                              row.rank, way, row.multicast ? ".multicast::cluster" : ""));
    EXPECT_EQ(row.completes, loads);
    EXPECT_EQ(row.zero_fill, loads);
  }
}

// The bytes in a vector spelling are those in the column: v4.u32 = 16.
TEST(VectorCopies, SpellTheirWidth) {
  for (const Copy& row : all_copies()) {
    if (row.kind != CopyKind::kVector) continue;
    const bool load = row.to == Space::kRegister;
    const std::string_view space = name(load ? row.from : row.to);
    const std::string type =
        row.bytes > 4 ? format("v{}.u32", row.bytes / 4) : format("u{}", 8 * row.bytes);
    EXPECT_EQ(row.ptx, format("{}.{}.{}", load ? "ld" : "st", space, type));
    EXPECT_EQ(row.alignment, row.bytes);
  }
}

TEST(Copies, WidestThatDividesLengthAndAlignment) {
  const auto widest = [](CopyKind kind, std::int64_t bytes, std::int64_t alignment) {
    const Copy* row = widest_copy(sm80(), kind, Space::kGlobal,
                                  kind == CopyKind::kAsync ? Space::kShared : Space::kRegister,
                                  {bytes, alignment});
    return row == nullptr ? 0 : row->bytes;
  };
  EXPECT_EQ(widest(CopyKind::kAsync, 128, 16), 16);
  EXPECT_EQ(widest(CopyKind::kAsync, 24, 16), 8);
  EXPECT_EQ(widest(CopyKind::kAsync, 128, 4), 4);
  EXPECT_EQ(widest(CopyKind::kAsync, 128, 2), 0);  // cp.async starts at 4 bytes
  EXPECT_EQ(widest(CopyKind::kVector, 128, 2), 2);
  EXPECT_EQ(widest(CopyKind::kVector, 33, 16), 1);
  EXPECT_TRUE(find_copy("cp.async.16")->zero_fill);
}

}  // namespace
}  // namespace kiln::target
