// The table of functions that a tensor's type may have as `__dlpack_c_exchange_api__`, and what a
// capsule of `__dlpack__` holds: DLPack 1.3, with our own declarations.
#pragma once

#include <cstdint>

namespace kiln::python::dlpack {

inline constexpr std::int32_t kCuda = 2;
inline constexpr std::uint32_t kMajor = 1;
inline constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";
inline constexpr const char* kExchangeCapsule = "dlpack_exchange_api";

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Device {
  std::int32_t type;
  std::int32_t number;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  DataType type;
  std::int64_t* shape;
  std::int64_t* strides;  // null: without gaps
  std::uint64_t byte_offset;
};

// In a capsule called "dltensor".
struct Managed {
  Tensor tensor;
  void* context;
  void (*free)(Managed*);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

// In a capsule called "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* context;
  void (*free)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t kReadOnly = 1;

struct ExchangeHeader {
  Version version;
  ExchangeHeader* older;
};

struct Exchange {
  ExchangeHeader header;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  int (*tensor_from_object)(void* object, Tensor* out);  // may be null; -1 with an exception
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

// "bf16"; null for a type that kiln has no name for.
inline const char* name_of(const DataType& type) {
  if (type.lanes != 1) return nullptr;
  struct Row {
    std::uint8_t code;
    std::uint8_t bits;
    const char* name;
  };
  static constexpr Row kRows[] = {
      {0, 64, "s64"}, {0, 32, "s32"},     {0, 16, "s16"},     {0, 8, "s8"},
      {1, 64, "u64"}, {1, 32, "u32"},     {1, 16, "u16"},     {1, 8, "u8"},
      {2, 64, "f64"}, {2, 32, "f32"},     {2, 16, "f16"},     {4, 16, "bf16"},
      {6, 8, "bool"}, {10, 8, "f8_e4m3"}, {12, 8, "f8_e5m2"}, {14, 8, "f8_ue8m0"},
  };
  for (const Row& row : kRows) {
    if (row.code == type.code && row.bits == type.bits) return row.name;
  }
  return nullptr;
}

inline bool without_gaps(const Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t step = 1;
  for (std::int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.shape[d];
  }
  return true;
}

}  // namespace kiln::python::dlpack
