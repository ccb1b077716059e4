// Tensors in device memory as arguments of typed functions, which `kiln emit --header` writes, for
// C++17:
//
//   kiln::Failure failed = scale(stream, {x, 64, 1024}, {y, 64, 1024}, 2.0f);
//   if (failed) std::puts(failed.text.c_str());
//
// `x` is a pointer to elements of the parameter's type, or to void; the numbers are its extents. A tensor
// may also have a name: kiln::DeviceTensor<kiln::dtypes::f16, 2> q(data, 64, 128);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kiln/compile.h"
#include "kiln/embedded.h"

// Element types of CUDA's headers, which need not be there.
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace kiln {

// Element types of the language that C++ has no type for: names, of which there are no objects.
namespace dtypes {
struct f16;
struct bf16;
struct f8_e4m3;
struct f8_e5m2;
struct f8_ue4m3;
struct f8_ue8m0;
struct f6_e2m3;
struct f6_e3m2;
struct f4_e2m1;
}  // namespace dtypes

namespace detail {

// Bytes of an element, and the type of CUDA's that stands for it alone.
template <class Element>
struct ElementType {
  static constexpr std::size_t bytes = sizeof(Element);
  using Cuda = Element;
};
template <std::size_t kBytes, class T>
struct NamedType {
  static constexpr std::size_t bytes = kBytes;
  using Cuda = T;
};
template <>
struct ElementType<dtypes::f16> : NamedType<2, __half> {};
template <>
struct ElementType<dtypes::bf16> : NamedType<2, __nv_bfloat16> {};
template <>
struct ElementType<dtypes::f8_e4m3> : NamedType<1, __nv_fp8_e4m3> {};
template <>
struct ElementType<dtypes::f8_e5m2> : NamedType<1, __nv_fp8_e5m2> {};
template <>
struct ElementType<dtypes::f8_ue4m3> : NamedType<1, void> {};
template <>
struct ElementType<dtypes::f8_ue8m0> : NamedType<1, void> {};
template <>
struct ElementType<dtypes::f6_e2m3> : NamedType<1, void> {};
template <>
struct ElementType<dtypes::f6_e3m2> : NamedType<1, void> {};
template <>
struct ElementType<dtypes::f4_e2m1> : NamedType<1, void> {};

template <class T>
constexpr bool is_cuda_type() {
  return std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> ||
         std::is_same_v<T, __nv_fp8_e4m3> || std::is_same_v<T, __nv_fp8_e5m2>;
}

// Whether memory of T may hold elements: void, the type itself, and for types that C++ lacks CUDA's
// type, an unsigned integer that holds the bits, or a class of somebody else's with as many bytes.
template <class Element, class T>
constexpr bool holds() {
  using Given = std::remove_cv_t<T>;
  using Type = ElementType<std::remove_const_t<Element>>;
  if constexpr (std::is_void_v<Given> || std::is_same_v<Given, typename Type::Cuda>) {
    return true;
  } else if constexpr (std::is_arithmetic_v<std::remove_const_t<Element>>) {
    return std::is_integral_v<Given> && std::is_integral_v<Element> &&
           sizeof(Given) == Type::bytes && std::is_signed_v<Given> == std::is_signed_v<Element>;
  } else if constexpr (is_cuda_type<Given>()) {
    return false;
  } else {
    return sizeof(Given) == Type::bytes && !std::is_same_v<Given, bool> &&
           (std::is_unsigned_v<Given> || std::is_class_v<Given> || !std::is_arithmetic_v<Given>);
  }
}

}  // namespace detail

// A tensor of so many dimensions, rows without gaps; its elements are only read where Element is const.
template <class Element, std::size_t kRank>
class DeviceTensor {
 public:
  template <class T, class... Extents>
  DeviceTensor(T* data, Extents... extents)
      : data_(data), shape_{static_cast<std::int64_t>(extents)...} {
    static_assert(sizeof...(Extents) == kRank, "a tensor has one extent for each dimension");
    static_assert((std::is_integral_v<Extents> && ...), "extents are integers");
    static_assert(detail::holds<Element, T>(), "the pointer is to elements of another type");
    static_assert(std::is_const_v<Element> || !std::is_const_v<T>,
                  "the kernel writes to a tensor that is const");
  }

  // What may be written may be read.
  template <class Other, class = std::enable_if_t<std::is_same_v<const Other, Element>>>
  DeviceTensor(const DeviceTensor<Other, kRank>& other)
      : data_(other.data_), shape_(other.shape_) {}

  std::int64_t extent(std::size_t dimension) const { return shape_[dimension]; }
  // Valid as long as this object.
  kiln_embedded_argument argument() const { return kiln_tensor_argument(data_, shape_.data()); }

 private:
  template <class, std::size_t>
  friend class DeviceTensor;
  const void* data_;
  std::array<std::int64_t, kRank> shape_;
};

namespace detail {

inline Failure launch(kiln_embedded& embedded, const kiln_embedded_call& call) {
  const kiln_status status = kiln_embedded_launch(&embedded, &call);
  return status == KILN_OK ? Failure{} : Failure{status, kiln_last_error()};
}

}  // namespace detail

// What a program carries, to be simulated or explained; "": for the first of its architectures.
inline Result<Program> compile(const kiln_embedded& embedded, const std::string& arch = {}) {
  kiln_program* program = nullptr;
  const kiln_status status =
      kiln_embedded_compile(&embedded, arch.empty() ? nullptr : arch.c_str(), &program);
  return detail::result_of<Program>(status, program);
}

}  // namespace kiln
