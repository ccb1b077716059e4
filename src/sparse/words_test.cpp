// Metadata as 32-bit words.
#include <gtest/gtest.h>

#include <random>

#include "sparse/sparse.h"

namespace kiln::sparse {
namespace {

Tensor random_bytes(std::vector<std::int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  Tensor tensor = Tensor::zeros(DType::kU8, std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set(static_cast<std::size_t>(i), static_cast<double>(random() % 256));
  }
  return tensor;
}

// Language 14.8 for 16-bit types, read literally.
TEST(Words, OfRowPairsHoldTwoBytesOfTwoRows) {
  const Tensor metadata = random_bytes({48, 12}, 1);
  const auto byte = [&](std::int64_t row, std::int64_t col) {
    return static_cast<std::uint32_t>(metadata.get(static_cast<std::size_t>(row * 12 + col)));
  };
  const auto words = prepack(metadata, DType::kF16);
  ASSERT_TRUE(words.has_value());
  EXPECT_EQ(words->shape, (std::vector<std::int64_t>{48, 3}));
  for (std::int64_t block = 0; block < 48; block += 16) {
    for (std::int64_t r = 0; r < 8; ++r) {
      for (std::int64_t col = 0; col < 3; ++col) {
        const std::int64_t low = block + r;
        const std::int64_t high = block + r + 8;
        const std::uint32_t first = byte(low, 4 * col) | byte(low, 4 * col + 1) << 8 |
                                    byte(high, 4 * col) << 16 | byte(high, 4 * col + 1) << 24;
        const std::uint32_t last = byte(low, 4 * col + 2) | byte(low, 4 * col + 3) << 8 |
                                   byte(high, 4 * col + 2) << 16 | byte(high, 4 * col + 3) << 24;
        const auto at = static_cast<std::size_t>((block + 2 * r) * 3 + col);
        EXPECT_EQ(words->get(at), first);
        EXPECT_EQ(words->get(at + 3), last);
      }
    }
  }
}

// docs/sparse.md: four times its row of eight in row 0, zeros below.
TEST(Words, WorkedExampleOfTheDocument) {
  constexpr double kRow[] = {3, 0, -4, 0, 0, 5, 0, 0};
  for (const DType dtype : {DType::kF16, DType::kS8}) {
    Tensor dense = Tensor::zeros(dtype, {16, 32});
    for (std::size_t i = 0; i < 32; ++i) dense.set(i, kRow[i % 8]);
    const auto split = compress_2_4(dense);
    ASSERT_TRUE(split.has_value());
    const auto words = prepack(split->metadata, dtype);
    ASSERT_TRUE(words.has_value());
    const bool pairs = dtype == DType::kF16;
    EXPECT_EQ(words->get(0), pairs ? 0x44444848 : 0x48484848);
    EXPECT_EQ(words->get(1), pairs ? 0x44444848 : 0x44444444);
    EXPECT_EQ(words->get(2), 0x44444444);
  }
}

TEST(Words, OfRowsAreTheSameBytes) {
  const Tensor metadata = random_bytes({5, 16}, 2);
  const auto words = prepack(metadata, DType::kE4M3);
  ASSERT_TRUE(words.has_value());
  EXPECT_EQ(words->shape, (std::vector<std::int64_t>{5, 4}));
  for (std::size_t i = 0; i < 20; ++i) {
    double value = 0;
    for (std::size_t j = 4; j-- > 0;) value = value * 256 + metadata.get(4 * i + j);
    EXPECT_EQ(words->get(i), value);
  }
}

TEST(Words, ComeBack) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kTF32, DType::kE5M2, DType::kS8}) {
    for (unsigned seed = 0; seed < 4; ++seed) {
      const Tensor metadata = random_bytes({32, 4 * (1 + seed)}, seed);
      const auto words = prepack(metadata, dtype);
      ASSERT_TRUE(words.has_value());
      const auto back = unpack(*words, dtype);
      ASSERT_TRUE(back.has_value());
      EXPECT_EQ(back->bytes, metadata.bytes) << name(dtype);
      EXPECT_EQ(back->shape, metadata.shape);
    }
  }
}

TEST(Words, NeedWholeWordsAndForPairsWholeBlocks) {
  const auto cols = prepack(random_bytes({16, 6}, 3), DType::kF16);
  ASSERT_FALSE(cols.has_value());
  EXPECT_EQ(cols.error(), (Fault{Fault::Kind::kRaggedCols, 0, 0, 6, 4}));
  const auto rows = prepack(random_bytes({24, 4}, 3), DType::kBF16);
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(text(rows.error(), Pattern::k2of4), "24 rows are no multiple of 16");
  EXPECT_TRUE(prepack(random_bytes({24, 4}, 3), DType::kS8).has_value());
  EXPECT_FALSE(unpack(Tensor::zeros(DType::kU32, {24, 4}), DType::kF16).has_value());
}

TEST(Words, AreOfTypesThatMatrixUnitsTake) {
  EXPECT_EQ(hardware_words(DType::kF16), Words::kRowPairs);
  EXPECT_EQ(hardware_words(DType::kF32), Words::kRowPairs);
  EXPECT_EQ(hardware_words(DType::kU8), Words::kRows);
  EXPECT_EQ(hardware_words(DType::kF64), std::nullopt);
  EXPECT_EQ(hardware_pattern(DType::kTF32), Pattern::k1of2);
  EXPECT_EQ(hardware_pattern(DType::kE4M3), Pattern::k2of4);
}

}  // namespace
}  // namespace kiln::sparse
