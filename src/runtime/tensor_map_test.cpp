#include "runtime/tensor_map.h"

#include <gtest/gtest.h>

namespace kiln::runtime {
namespace {

TensorMapRequest request_of(std::vector<std::int64_t> shape) {
  return {.name = "lhs",
          .dtype = DType::kF16,
          .address = 4096,
          .shape = shape,
          .extents = shape,
          .box = std::vector<std::int64_t>(shape.size(), 8),
          .swizzle = 128,
          .promotion = 256};
}

TEST(TensorMapTest, TheInnermostDimensionComesFirst) {
  TensorMapRequest request = request_of({3, 512, 256});
  request.extents = {3, 500, 256};
  request.box = {1, 64, 32};
  const auto arguments = tensor_map_arguments(request);
  ASSERT_TRUE(arguments) << arguments.error().text();
  EXPECT_EQ(arguments->type, 6);
  EXPECT_EQ(arguments->rank, 3u);
  EXPECT_EQ(arguments->address, 4096u);
  EXPECT_EQ(arguments->extents, (std::array<std::uint64_t, 5>{256, 500, 3, 0, 0}));
  // Of the whole buffer, whatever part of it boxes see.
  EXPECT_EQ(arguments->pitches, (std::array<std::uint64_t, 5>{512, 512 * 512, 0, 0, 0}));
  EXPECT_EQ(arguments->box, (std::array<std::uint32_t, 5>{32, 64, 1, 0, 0}));
  EXPECT_EQ(arguments->swizzle, 3);
  EXPECT_EQ(arguments->promotion, 3);
}

TEST(TensorMapTest, ElementsAreTheirBytes) {
  for (const auto& [dtype, type] : {std::pair{DType::kE4M3, 0}, std::pair{DType::kBF16, 9},
                                    std::pair{DType::kF32, 7}, std::pair{DType::kF64, 4}}) {
    TensorMapRequest request = request_of({64, 64});
    request.dtype = dtype;
    const auto arguments = tensor_map_arguments(request);
    ASSERT_TRUE(arguments) << arguments.error().text();
    EXPECT_EQ(arguments->type, type);
  }
}

TEST(TensorMapTest, ALineMayHaveAnyLength) {
  const auto arguments = tensor_map_arguments(request_of({15}));
  ASSERT_TRUE(arguments) << arguments.error().text();
  EXPECT_EQ(arguments->extents[0], 15u);
}

TEST(TensorMapTest, APitchIsAMultipleOf16Bytes) {
  const auto arguments = tensor_map_arguments(request_of({64, 15}));
  ASSERT_FALSE(arguments);
  EXPECT_EQ(arguments.error().subject, "lhs");
  EXPECT_EQ(arguments.error().reason,
            "dimension 0 steps by 30 bytes, `tma` takes multiples of 16 below 1099511627776; "
            "`dma.copy` takes any");
}

TEST(TensorMapTest, AnAddressIsAMultipleOf16Bytes) {
  TensorMapRequest request = request_of({64, 64});
  request.address = 4098;
  const auto arguments = tensor_map_arguments(request);
  ASSERT_FALSE(arguments);
  EXPECT_EQ(arguments.error().reason, "it begins 2 bytes past a multiple of 16");
}

TEST(TensorMapTest, AnExtentHas32Bits) {
  TensorMapRequest request = request_of({64, 64});
  request.extents[0] = 0;
  const auto arguments = tensor_map_arguments(request);
  ASSERT_FALSE(arguments);
  EXPECT_EQ(arguments.error().reason, "dimension 0 has 0 elements, 1 to 4294967296 are possible");
}

TEST(TensorMapTest, AnOldDriverIsNamed) {
  cuda::TensorMap map;
  const auto made = encode_tensor_map(cuda::Api{}, request_of({64, 64}), map);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().reason.find("version 12 or later"), std::string::npos);
}

}  // namespace
}  // namespace kiln::runtime
