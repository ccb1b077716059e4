// A function that is only lent: what a parameter is when it is called before the callee returns. Unlike a
// template parameter, the callee is compiled once; unlike std::function, nothing is copied.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace kiln {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class Callee>
  requires(!std::is_same_v<std::remove_cvref_t<Callee>, FunctionRef>)
      // NOLINTNEXTLINE(google-explicit-constructor): an argument becomes one
      FunctionRef(Callee&& callee)
      : callee_(const_cast<void*>(static_cast<const void*>(std::addressof(callee)))),
        call_([](void* it, Args... args) -> Result {
          return static_cast<Result>(
              (*static_cast<std::remove_reference_t<Callee>*>(it))(std::forward<Args>(args)...));
        }) {}

  Result operator()(Args... args) const { return call_(callee_, std::forward<Args>(args)...); }

 private:
  void* callee_;
  Result (*call_)(void*, Args...);
};

}  // namespace kiln
