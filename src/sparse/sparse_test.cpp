// Tensors: pruning, the round trips, and what is refused.
#include "sparse/sparse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace kiln::sparse {
namespace {

constexpr DType kTypes[] = {DType::kF64,  DType::kF32,  DType::kTF32, DType::kF16,
                            DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kE2M1,
                            DType::kS8,   DType::kU8,   DType::kS32};
constexpr Pattern kPatterns[] = {Pattern::k2of4, Pattern::k1of2};

Tensor random_tensor(DType dtype, std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> number(-6, 6);
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set(static_cast<std::size_t>(i), round_to(dtype, number(random)));
  }
  return tensor;
}

std::int64_t non_zeros(const Tensor& tensor) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    count += tensor.get(static_cast<std::size_t>(i)) != 0;
  }
  return count;
}

TEST(Prune, KeepsTwoOfFourAndNeverASmallerOne) {
  for (const DType dtype : kTypes) {
    const Tensor dense = random_tensor(dtype, {5, 3, 32}, 1);
    const auto pruned = prune_2_4(dense);
    ASSERT_TRUE(pruned.has_value());
    for (std::size_t at = 0; at < static_cast<std::size_t>(dense.elements()); at += 4) {
      double largest_lost = 0;
      double smallest_kept = 1e9;
      int kept = 0;
      for (std::size_t i = at; i < at + 4; ++i) {
        const double before = dense.get(i);
        const double after = pruned->get(i);
        ASSERT_TRUE(after == before || after == 0);
        if (after != before) largest_lost = std::max(largest_lost, std::fabs(before));
        if (after != 0) smallest_kept = std::min(smallest_kept, std::fabs(after));
        kept += after != 0;
      }
      ASSERT_LE(kept, 2);
      ASSERT_LE(largest_lost, smallest_kept);
      ASSERT_TRUE(largest_lost == 0 || kept == 2) << "lost a number that had a place";
    }
  }
}

TEST(Prune, IsDoneOnce) {
  for (const Pattern pattern : kPatterns) {
    const auto once = prune(random_tensor(DType::kF16, {16, 64}, 2), pattern);
    const auto twice = prune(*once, pattern);
    EXPECT_EQ(once->bytes, twice->bytes);
  }
}

TEST(Compress, OfWhatIsPrunedExpandsToTheSameBits) {
  for (const DType dtype : kTypes) {
    for (const Pattern pattern : kPatterns) {
      for (unsigned seed = 0; seed < 8; ++seed) {
        const auto pruned = prune(random_tensor(dtype, {16, 48}, seed), pattern);
        ASSERT_TRUE(pruned.has_value());
        const auto split = compress(*pruned, pattern);
        ASSERT_TRUE(split.has_value());
        EXPECT_EQ(split->packed.shape, (std::vector<std::int64_t>{16, 24}));
        EXPECT_EQ(split->metadata.shape.back(), 48 / columns_of_byte(pattern));
        EXPECT_EQ(non_zeros(split->packed), non_zeros(*pruned));
        const auto back = expand(*split, pattern);
        ASSERT_TRUE(back.has_value());
        ASSERT_EQ(back->bytes, pruned->bytes) << name(dtype);
        EXPECT_EQ(back->shape, pruned->shape);
      }
    }
  }
}

// All 36 bytes, from the positions to the byte and back.
TEST(Compress, EveryLegalByteStandsForItsPositions) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!is_legal(byte & 15U) || !is_legal(byte >> 4)) continue;
    Tensor dense = Tensor::zeros(DType::kF16, {1, 8});
    double next = 1;
    for (const unsigned group : {0U, 1U}) {
      const unsigned nibble = byte >> (4 * group) & 15U;
      dense.set(4 * group + (nibble & 3U), next++);
      dense.set(4 * group + (nibble >> 2), next++);
    }
    const auto split = compress_2_4(dense);
    ASSERT_TRUE(split.has_value());
    EXPECT_EQ(split->metadata.get(0), byte);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(split->packed.get(i), static_cast<double>(i + 1));
    }
    EXPECT_EQ(expand_2_4(*split)->bytes, dense.bytes);
  }
}

TEST(Compress, GroupsOfFewerNonZerosGetLegalPositions) {
  for (const Pattern pattern : kPatterns) {
    for (std::size_t at = 0; at < 9; ++at) {  // 8: no non-zero at all
      Tensor dense = Tensor::zeros(DType::kS8, {1, 8});
      if (at < 8) dense.set(at, -128);
      const auto split = compress(dense, pattern);
      ASSERT_TRUE(split.has_value());
      for (std::size_t i = 0; i < split->metadata.bytes.size(); ++i) {
        const auto byte = static_cast<unsigned>(split->metadata.get(i));
        EXPECT_TRUE(is_legal(byte & 15U, pattern) && is_legal(byte >> 4, pattern)) << byte;
      }
      EXPECT_EQ(expand(*split, pattern)->bytes, dense.bytes);
    }
  }
}

TEST(Compress, NegativeZerosAreZeros) {
  Tensor dense = Tensor::zeros(DType::kF16, {1, 8});
  for (std::size_t i = 0; i < 8; ++i) dense.set(i, -0.0);
  dense.set(3, 2.0);
  const auto split = compress_2_4(dense);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->metadata.get(0), 0x4 << 4 | 0xc);  // positions 0, 3 and 0, 1
}

TEST(Compress, NamesTheFirstGroupWithTooMany) {
  Tensor dense = Tensor::zeros(DType::kBF16, {4, 16});
  for (const std::size_t i : {2U * 16 + 8, 2U * 16 + 9, 2U * 16 + 11, 3U * 16, 3U * 16 + 1}) {
    dense.set(i, 1.0);
  }
  const auto split = compress_2_4(dense);
  ASSERT_FALSE(split.has_value());
  EXPECT_EQ(split.error(), (Fault{Fault::Kind::kTooMany, 2, 8, 3, 2}));
  EXPECT_EQ(text(split.error(), Pattern::k2of4),
            "row 2, columns 8 to 11 have 3 non-zeros, at most 2 are kept");
  const auto one = compress(dense, Pattern::k1of2);
  ASSERT_FALSE(one.has_value());
  EXPECT_EQ(text(one.error(), Pattern::k1of2),
            "row 2, columns 8 to 9 have 2 non-zeros, at most 1 are kept");
}

TEST(Expand, NamesTheFirstIllegalNibble) {
  Compressed split{Tensor::zeros(DType::kF16, {2, 8}), Tensor::zeros(DType::kU8, {2, 2})};
  const double bytes[] = {0x44, 0x4e, 0x54, 0x00};
  for (std::size_t i = 0; i < 4; ++i) split.metadata.set(i, bytes[i]);
  const auto dense = expand_2_4(split);
  ASSERT_FALSE(dense.has_value());
  EXPECT_EQ(text(dense.error(), Pattern::k2of4),
            "row 1, columns 4 to 7 have the illegal metadata 5");
}

TEST(Ragged, ExtentsAreRefusedWithBothNumbers) {
  EXPECT_EQ(prune_2_4(Tensor::zeros(DType::kF16, {2, 30})).error(),
            (Fault{Fault::Kind::kRaggedCols, 0, 0, 30, 4}));
  EXPECT_EQ(prune(Tensor::zeros(DType::kF32, {2, 31}), Pattern::k1of2).error(),
            (Fault{Fault::Kind::kRaggedCols, 0, 0, 31, 2}));
  EXPECT_TRUE(prune_2_4(Tensor::zeros(DType::kF16, {2, 12})).has_value());
  const auto split = compress_2_4(Tensor::zeros(DType::kF16, {2, 12}));
  ASSERT_FALSE(split.has_value());
  EXPECT_EQ(text(split.error(), Pattern::k2of4), "12 columns are no multiple of 8");
}

TEST(Empty, TensorsHaveEmptyParts) {
  for (const auto& shape : {std::vector<std::int64_t>{0, 16}, {3, 0}}) {
    const auto split = compress_2_4(Tensor::zeros(DType::kF16, shape));
    ASSERT_TRUE(split.has_value());
    EXPECT_TRUE(split->packed.bytes.empty());
    EXPECT_EQ(expand_2_4(*split)->shape, shape);
  }
}

}  // namespace
}  // namespace kiln::sparse
