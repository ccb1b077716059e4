#include "runtime/tensor_map.h"

#include "target/bulk.h"

namespace kiln::runtime {

namespace {

constexpr std::int64_t kExtentMax = std::int64_t{1} << 32;
constexpr std::int64_t kPitchMax = std::int64_t{1} << 40;  // below it

// Bits are moved as they are, whatever they mean; of what bulk copies add it matters.
int type_number(DType dtype) {
  constexpr std::pair<DType, int> kAdded[] = {{DType::kF32, cuda::kMapF32},
                                              {DType::kF16, cuda::kMapF16},
                                              {DType::kBF16, cuda::kMapBF16},
                                              {DType::kS32, cuda::kMapS32}};
  for (const auto& [type, number] : kAdded) {
    if (type == dtype) return number;
  }
  switch (size_bytes(dtype)) {
    case 1: return cuda::kMapU8;
    case 2: return cuda::kMapU16;
    case 4: return cuda::kMapU32;
    default: break;
  }
  KILN_CHECK(size_bytes(dtype) == 8, "no tensor map of {}", name(dtype));
  return cuda::kMapU64;
}

int swizzle_number(std::int64_t bytes) {
  for (const auto& [wanted, number] : cuda::kMapSwizzles) {
    if (wanted == bytes) return number;
  }
  KILN_UNREACHABLE("no such swizzle of a tensor map");
}

int promotion_number(std::int64_t bytes) {
  for (const auto& [wanted, number] : cuda::kMapPromotions) {
    if (wanted == bytes) return number;
  }
  KILN_UNREACHABLE("no such promotion of a tensor map");
}

constexpr const char* kCannotMap = "cannot copy boxes of";

Error cannot_map(const TensorMapRequest& request, std::string reason) {
  return {kCannotMap, request.name, std::move(reason)};
}

}  // namespace

Result<TensorMapArguments> tensor_map_arguments(const TensorMapRequest& request) {
  const std::size_t rank = request.box.size();
  KILN_CHECK(rank >= 1 && rank <= cuda::kMapRankMax, "a tensor map of {} dimensions", rank);
  KILN_CHECK(request.shape.size() == rank && request.extents.size() == rank,
             "{} and {} extents for {} dimensions", request.shape.size(), request.extents.size(),
             rank);
  TensorMapArguments out{.type = type_number(request.dtype),
                         .rank = static_cast<unsigned>(rank),
                         .address = request.address,
                         .swizzle = swizzle_number(request.swizzle),
                         .promotion = promotion_number(request.promotion)};
  if (request.address % target::kBulkBytes != 0) {
    return Unexpected{
        cannot_map(request, format("it begins {} bytes past a multiple of {}",
                                   request.address % target::kBulkBytes, target::kBulkBytes))};
  }
  std::int64_t pitch = size_bytes(request.dtype);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = rank - 1 - i;
    if (request.extents[d] < 1 || request.extents[d] > kExtentMax) {
      return Unexpected{
          cannot_map(request, format("dimension {} has {} elements, 1 to {} are possible", d,
                                     request.extents[d], kExtentMax))};
    }
    out.extents[i] = static_cast<std::uint64_t>(request.extents[d]);
    out.box[i] = static_cast<std::uint32_t>(request.box[d]);
    if (d == 0) break;
    pitch = request.strides.empty() ? pitch * request.shape[d]
                                    : request.strides[d - 1] * size_bytes(request.dtype);
    if (pitch % target::kBulkBytes != 0 || pitch >= kPitchMax) {
      return Unexpected{cannot_map(
          request, format("dimension {} steps by {} bytes, `tma` takes multiples of {} below {}; "
                          "`dma.copy` takes any",
                          d - 1, pitch, target::kBulkBytes, kPitchMax))};
    }
    out.pitches[i] = static_cast<std::uint64_t>(pitch);
  }
  return out;
}

Result<void> encode_tensor_map(const cuda::Api& api, const TensorMapArguments& arguments,
                               const std::string& name, cuda::TensorMap& map) {
  if (api.tensor_map_encode == nullptr) {
    return Unexpected{
        Error{kCannotMap, name,
              "the CUDA driver has no cuTensorMapEncodeTiled, version 12 or later is needed"}};
  }
  constexpr std::array<std::uint32_t, cuda::kMapRankMax> kEveryElement = {1, 1, 1, 1, 1};
  const cuda::Status status = api.tensor_map_encode(
      &map, arguments.type, arguments.rank, arguments.address, arguments.extents.data(),
      arguments.pitches.data(), arguments.box.data(), kEveryElement.data(),
      cuda::kMapNotInterleaved, arguments.swizzle, arguments.promotion, cuda::kMapZerosOutside);
  if (status == cuda::kSuccess) return {};
  return api.check(status, kCannotMap, name);
}

Result<void> encode_tensor_map(const cuda::Api& api, const TensorMapRequest& request,
                               cuda::TensorMap& map) {
  const Result<TensorMapArguments> arguments = tensor_map_arguments(request);
  if (!arguments) return Unexpected{arguments.error()};
  return encode_tensor_map(api, *arguments, request.name, map);
}

}  // namespace kiln::runtime
