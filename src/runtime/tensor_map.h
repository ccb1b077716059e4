// Tensor maps: what the driver is asked for, and what it answers, for bulk copies of one global
// buffer.
//
//   lhs, f16 [512, 256], boxes of [64, 64], swizzle 128
//     =>  innermost first: extents {256, 512}, pitch {512}, box {64, 64}, 2-byte elements
//
// CUDA driver API, "Tensor Map Object Management: cuTensorMapEncodeTiled".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda_api.h"
#include "support/dtype.h"
#include "support/result.h"

namespace kiln::runtime {

// Dimensions outermost first.
struct TensorMapRequest {
  std::string name = {};  // of the buffer, for messages
  DType dtype = DType::kF32;
  cuda::DevicePtr address = 0;
  std::vector<std::int64_t> shape = {};    // of the buffer
  std::vector<std::int64_t> extents = {};  // what boxes see of it
  // Elements between neighbours along each dimension but the last; empty: those of `shape`, without
  // gaps.
  std::vector<std::int64_t> strides = {};
  std::vector<std::int64_t> box = {};
  std::int64_t swizzle = 0;    // bytes: 0, 32, 64 or 128
  std::int64_t promotion = 0;  // bytes: 0, 64, 128 or 256
};

// The call's arguments; innermost dimension first. Of another buffer of the same shape only the
// address differs.
struct TensorMapArguments {
  int type = 0;
  unsigned rank = 0;
  cuda::DevicePtr address = 0;
  std::array<std::uint64_t, cuda::kMapRankMax> extents = {};
  std::array<std::uint64_t, cuda::kMapRankMax> pitches = {};  // bytes, of dimension i + 1
  std::array<std::uint32_t, cuda::kMapRankMax> box = {};
  int swizzle = 0;
  int promotion = 0;
};

// Errors: what only the values at the launch decide, an address or a pitch that is no multiple of
// 16 bytes, an extent or a pitch beyond what a map holds.
[[nodiscard]] Result<TensorMapArguments> tensor_map_arguments(const TensorMapRequest& request);

// Fills in `map` from arguments that tensor_map_arguments gave; `address` is a multiple of 16, and
// `name` is of the buffer. Allocates nothing unless it fails. Errors: a driver older than tensor
// maps, and what the driver says.
[[nodiscard]] Result<void> encode_tensor_map(const cuda::Api& api,
                                             const TensorMapArguments& arguments,
                                             const std::string& name, cuda::TensorMap& map);

// Fills in `map`. Errors: those, a driver older than tensor maps, and what the driver says.
[[nodiscard]] Result<void> encode_tensor_map(const cuda::Api& api, const TensorMapRequest& request,
                                             cuda::TensorMap& map);

}  // namespace kiln::runtime
