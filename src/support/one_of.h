// One of many types: std::variant, but its copies, moves and destruction are compiled in one file. For sixty
// types a compiler needs seconds for them, in every file that has a vector of such values.
//
//   using Shape = OneOf<Circle, Square>;         // in a header
//   template class kiln::OneOf<Circle, Square>;  // in one source, which includes one_of_members.h
//
// What std says of variants (get_if, holds_alternative) holds for it. kiln::visit is std::visit of one such
// value, and is compiled sooner.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

namespace kiln {

template <class T, class... Ts>
concept IsOneOf = (std::same_as<std::remove_cvref_t<T>, Ts> || ...);

template <class... Ts>
class OneOf : public std::variant<Ts...> {
  using Base = std::variant<Ts...>;

 public:
  static constexpr std::size_t kTypes = sizeof...(Ts);

  OneOf();
  OneOf(const OneOf& other);
  OneOf(OneOf&& other) noexcept;
  OneOf& operator=(const OneOf& other);
  OneOf& operator=(OneOf&& other) noexcept;
  ~OneOf();

  template <IsOneOf<Ts...> T>
  // NOLINTNEXTLINE(google-explicit-constructor): as std::variant
  OneOf(T&& value) : Base(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
  template <IsOneOf<Ts...> T>
  OneOf& operator=(T&& value) {
    return *this = OneOf(std::forward<T>(value));
  }
};

namespace detail {

template <class Result, class T, class Visitor, class One>
Result visit_as(Visitor& visitor, One& one) {
  return visitor(*std::get_if<T>(&one));
}

template <class One, class Visitor, class First, class... Ts>
decltype(auto) visit_one(Visitor& visitor, One& one, const std::variant<First, Ts...>&) {
  using Result = decltype(visitor(*std::get_if<First>(&one)));
  using Call = Result (*)(Visitor&, One&);
  static constexpr Call kCalls[] = {&visit_as<Result, First, Visitor, One>,
                                    &visit_as<Result, Ts, Visitor, One>...};
  return kCalls[one.index()](visitor, one);
}

}  // namespace detail

// What the visitor gives for the value that is there: one type, whichever that is.
template <class Visitor, class One>
decltype(auto) visit(Visitor&& visitor, One& one) {
  return detail::visit_one(visitor, one, one);
}

}  // namespace kiln
