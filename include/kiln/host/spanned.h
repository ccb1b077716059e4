// Arrays of the host: `spanned_data` owns its elements, `spanned_view` points to those of others, on
// the host or on a device. Rows lie one after the other; every index is checked.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <random>
#include <type_traits>

#include "kiln/host/check.h"
#include "kiln/host/number.h"

namespace choreo {

// The extent of a dimension that the callee does not ask for (`??`).
inline constexpr std::size_t __inf__ = static_cast<std::size_t>(-1);

// A shape.
template <std::size_t Rank>
class mdspan {
 public:
  mdspan() = default;
  explicit mdspan(const std::array<std::size_t, Rank>& extents) : extents_(extents) {}

  constexpr std::size_t rank() const { return Rank; }
  std::size_t operator[](std::size_t dim) const { return extents_[dim]; }
  std::size_t element_count() const {
    std::size_t count = 1;
    for (const std::size_t extent : extents_) count *= extent;
    return count;
  }
  const std::size_t* data() const { return extents_.data(); }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }
  friend bool operator==(const mdspan& a, const mdspan& b) { return a.extents_ == b.extents_; }
  friend bool operator!=(const mdspan& a, const mdspan& b) { return !(a == b); }

 private:
  std::array<std::size_t, Rank> extents_ = {};
};

namespace detail {

inline std::size_t checked(long long index, std::size_t extent) {
  if (index < 0 || static_cast<std::size_t>(index) >= extent) {
    fail("index " + std::to_string(index) + " is outside of an extent of " + std::to_string(extent),
         "host code", 0);
  }
  return static_cast<std::size_t>(index);
}

// What one index leaves of an array of more dimensions.
template <class T, std::size_t Rank>
class Row {
 public:
  Row(T* data, const std::size_t* extents) : data_(data), extents_(extents) {}
  decltype(auto) operator[](long long index) const;

 private:
  T* data_;
  const std::size_t* extents_;
};

template <std::size_t Rank, class T>
decltype(auto) element(T* data, const std::size_t* extents, long long index) {
  const std::size_t at = checked(index, extents[0]);
  if constexpr (Rank == 1) {
    return static_cast<T&>(data[at]);
  } else {
    std::size_t step = 1;
    for (std::size_t dim = 1; dim < Rank; ++dim) step *= extents[dim];
    return Row<T, Rank - 1>(data + at * step, extents + 1);
  }
}

template <class T, std::size_t Rank>
decltype(auto) Row<T, Rank>::operator[](long long index) const {
  return element<Rank>(data_, extents_, index);
}

// One for the program: a run is the same each time.
inline std::mt19937_64& random_engine() {
  static std::mt19937_64 engine(1);
  return engine;
}

template <class T, class Low, class High>
void fill_random(T* data, std::size_t count, Low low, High high) {
  if constexpr (kIsFloat<T>) {
    std::uniform_real_distribution<double> draw(static_cast<double>(low),
                                                static_cast<double>(high));
    for (std::size_t i = 0; i < count; ++i) {
      data[i] = static_cast<T>(static_cast<float>(draw(random_engine())));
    }
  } else {
    std::uniform_int_distribution<long long> draw(static_cast<long long>(low),
                                                  static_cast<long long>(high));
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<T>(draw(random_engine()));
  }
}

}  // namespace detail

namespace utils {

// Of memory that is no array of choreo's.
template <class T, class Low, class High>
void fill_random(T* data, std::size_t count, Low low, High high) {
  detail::fill_random(data, count, low, high);
}
template <class T, class V>
void fill_n(T* data, std::size_t count, V value) {
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<T>(value);
}

}  // namespace utils

template <class T, std::size_t Rank>
class spanned_view {
 public:
  using value_type = T;

  spanned_view() = default;
  spanned_view(T* data, const mdspan<Rank>& shape) : data_(data), shape_(shape) {}

  T* data() const { return data_; }
  const mdspan<Rank>& shape() const { return shape_; }
  constexpr std::size_t rank() const { return Rank; }
  std::size_t element_count() const { return shape_.element_count(); }
  std::size_t bytes() const { return element_count() * sizeof(T); }
  const spanned_view& view() const { return *this; }

  decltype(auto) operator[](long long index) const {
    return detail::element<Rank>(data_, shape_.data(), index);
  }

  template <class V>
  void fill(V value) const {
    for (std::size_t i = 0; i < element_count(); ++i) data_[i] = static_cast<T>(value);
  }
  template <class Low, class High>
  void fill_random(Low low, High high) const {
    detail::fill_random(data_, element_count(), low, high);
  }
  void fill_fp8(float value) const { fill(value); }
  void fill_random_fp8(float low, float high) const { fill_random(low, high); }

  friend bool operator==(const spanned_view& a, const spanned_view& b) {
    if (a.shape_ != b.shape_) return false;
    for (std::size_t i = 0; i < a.element_count(); ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }
  friend bool operator!=(const spanned_view& a, const spanned_view& b) { return !(a == b); }

 private:
  T* data_ = nullptr;
  mdspan<Rank> shape_;
};

template <class T, std::size_t Rank>
class spanned_data {
 public:
  using value_type = T;

  spanned_data() = default;
  explicit spanned_data(const mdspan<Rank>& shape)
      : elements_(new T[shape.element_count()]()), shape_(shape) {}

  T* data() { return elements_.get(); }
  const T* data() const { return elements_.get(); }
  const mdspan<Rank>& shape() const { return shape_; }
  constexpr std::size_t rank() const { return Rank; }
  std::size_t element_count() const { return shape_.element_count(); }
  std::size_t bytes() const { return element_count() * sizeof(T); }

  // A view may be written through, also that of an array that is not to change itself: tile
  // functions say which of their parameters they write.
  spanned_view<T, Rank> view() const { return {elements_.get(), shape_}; }
  operator spanned_view<T, Rank>() const { return view(); }

  decltype(auto) operator[](long long index) {
    return detail::element<Rank>(elements_.get(), shape_.data(), index);
  }
  decltype(auto) operator[](long long index) const {
    return detail::element<Rank>(static_cast<const T*>(elements_.get()), shape_.data(), index);
  }

  template <class V>
  void fill(V value) {
    view().fill(value);
  }
  template <class Low, class High>
  void fill_random(Low low, High high) {
    view().fill_random(low, high);
  }
  void fill_fp8(float value) { fill(value); }
  void fill_random_fp8(float low, float high) { fill_random(low, high); }

  friend bool operator==(const spanned_data& a, const spanned_data& b) {
    return a.view() == b.view();
  }
  friend bool operator!=(const spanned_data& a, const spanned_data& b) { return !(a == b); }

 private:
  std::unique_ptr<T[]> elements_;
  mdspan<Rank> shape_;
};

namespace detail {

template <std::size_t Rank, class D>
mdspan<Rank> shape_of(const D (&dims)[Rank]) {
  std::array<std::size_t, Rank> extents = {};
  for (std::size_t i = 0; i < Rank; ++i) extents[i] = static_cast<std::size_t>(dims[i]);
  return mdspan<Rank>(extents);
}

template <class T, std::size_t Rank>
spanned_data<T, Rank> make(const mdspan<Rank>& shape) {
  for (std::size_t dim = 0; dim < Rank; ++dim) {
    if (shape[dim] == 0) {
      fail("dimension " + std::to_string(dim) + " of an array is 0", "host code", 0);
    }
  }
  return spanned_data<T, Rank>(shape);
}

}  // namespace detail

template <class T, class... Dims,
          class = std::enable_if_t<(std::is_convertible<Dims, std::size_t>::value && ...)>>
spanned_data<T, sizeof...(Dims)> make_spandata(Dims... dims) {
  const std::size_t extents[] = {static_cast<std::size_t>(dims)...};
  return detail::make<T>(detail::shape_of(extents));
}
template <class T, std::size_t Rank, class D>
spanned_data<T, Rank> make_spandata(const D (&dims)[Rank]) {
  return detail::make<T>(detail::shape_of(dims));
}

// The rank may come first, last or alone.
template <std::size_t Rank, class T, class D>
spanned_view<T, Rank> make_spanview(T* data, const D (&dims)[Rank]) {
  return {data, detail::shape_of(dims)};
}
template <std::size_t Rank, class T>
spanned_view<T, Rank> make_spanview(T* data, std::initializer_list<std::size_t> dims) {
  std::array<std::size_t, Rank> extents = {};
  choreo_assert(dims.size() == Rank, "a view has as many extents as dimensions");
  std::copy(dims.begin(), dims.end(), extents.begin());
  return {data, mdspan<Rank>(extents)};
}
template <class T, std::size_t Rank, class P, class D>
spanned_view<T, Rank> make_spanview(P* data, const D (&dims)[Rank]) {
  return {static_cast<T*>(const_cast<void*>(static_cast<const void*>(data))),
          detail::shape_of(dims)};
}
template <class T, std::size_t Rank, class P>
spanned_view<T, Rank> make_spanview(P* data, std::initializer_list<std::size_t> dims) {
  return make_spanview<Rank, T>(static_cast<T*>(const_cast<void*>(static_cast<const void*>(data))),
                                dims);
}
template <class T, std::size_t N>
spanned_view<T, 1> make_spanview(T (&array)[N]) {
  return {array, detail::shape_of<1, std::size_t>({N})};
}
template <class T, std::size_t N, std::size_t M>
spanned_view<T, 2> make_spanview(T (&array)[N][M]) {
  return {&array[0][0], detail::shape_of<2, std::size_t>({N, M})};
}

template <std::size_t Rank, class T, class D>
spanned_data<std::remove_const_t<T>, Rank> copy_as_spanned(T* data, const D (&dims)[Rank]) {
  auto out = detail::make<std::remove_const_t<T>>(detail::shape_of(dims));
  std::copy(data, data + out.element_count(), out.data());
  return out;
}

}  // namespace choreo
