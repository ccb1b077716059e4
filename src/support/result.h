// Result<T, E>: a value or the reason there is none. Mirrors std::expected (C++23) in its names, so
// that it can become an alias later.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "support/check.h"

namespace kiln {

namespace detail {
// What a Result stops with when it is asked for the half that it does not hold.
[[noreturn]] void no_value();
[[noreturn]] void no_error();
}  // namespace detail

// The world failed: a file, a library, a driver. `what` is a sentence, `subject` the path or
// command it is about, `reason` the operating system's or driver's own words (may be empty).
struct Error {
  std::string what;
  std::string subject;
  std::string reason;

  [[nodiscard]] std::string text() const;
};

template <class E>
struct Unexpected {
  E error;
};
template <class E>
Unexpected(E) -> Unexpected<E>;

template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Unexpected<E> unexpected) : state_(std::in_place_index<1>, std::move(unexpected.error)) {}

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return *checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*checked()); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Result*>(this)->checked(); }

  [[nodiscard]] const E& error() const {
    if (has_value()) detail::no_error();
    return *std::get_if<1>(&state_);
  }

 private:
  T* checked() {
    if (!has_value()) detail::no_value();
    return std::get_if<0>(&state_);
  }
  std::variant<T, E> state_;
};

template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(Unexpected<E> unexpected) : error_(std::move(unexpected.error)) {}

  [[nodiscard]] bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const E& error() const {
    if (!error_.has_value()) detail::no_error();
    return *error_;
  }

 private:
  std::optional<E> error_;
};

}  // namespace kiln
