// The plans of a process for one kind of problem: one for each device and problem, made once and kept.
//
//   Plans<Problem, Plan> plans(make_plan);
//   Result<const Plan*, Failure> plan = plans.plan(problem);
//
// `normalised(problem)` gives equal problems one form. A process's plans are never destroyed: at exit
// the driver may be gone before them.
#pragma once

#include <memory>
#include <utility>

#include "gemm/library.h"
#include "runtime/once_map.h"

namespace kiln::gemm {

// Safe to use from several threads.
template <class Problem, class Plan>
class Plans {
 public:
  // Makes the plan of a normalised problem on the device of this number.
  using Make = Result<std::unique_ptr<Plan>, Failure> (*)(int device, const Problem& problem);

  explicit Plans(Make make) : make_(make) {}

  // The plan for the problem on the calling thread's device (the first one if it has none), made if
  // need be.
  [[nodiscard]] Result<const Plan*, Failure> plan(const Problem& problem) {
    const auto key = key_of(problem);
    if (!key) return Unexpected{key.error()};
    auto plan = plans_.find_or_make(*key, [&] { return make_(key->first, key->second); });
    if (!plan) return Unexpected{plan.error()};
    return *plan;
  }

  // The plan for the problem if there is one already, else null.
  [[nodiscard]] Result<const Plan*, Failure> find(const Problem& problem) {
    const auto key = key_of(problem);
    if (!key) return Unexpected{key.error()};
    return plans_.find(*key);
  }

 private:
  using Key = std::pair<int, Problem>;

  static Result<Key, Failure> key_of(const Problem& problem) {
    const auto whole = normalised(problem);
    if (!whole) return failed(FailureKind::kInvalid, whole.error());
    const auto device = library().current_device();
    if (!device) return Unexpected{device.error()};
    return Key{*device, *whole};
  }

  Make make_;
  runtime::OnceMap<Key, Plan, Failure> plans_;
};

}  // namespace kiln::gemm
