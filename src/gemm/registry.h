// The plans of a process: one for each device and problem, made once and kept.
//
//   Result<const Plan*, Failure> plan = registry().plan(problem);
//   (*plan)->start(operands, workspace, stream);
#pragma once

#include <utility>

#include "gemm/library.h"
#include "gemm/plan.h"
#include "runtime/once_map.h"

namespace kiln::gemm {

// Safe to use from several threads.
class Registry {
 public:
  // The plan for the problem on the calling thread's device (the first one if it has none), made if
  // need be.
  [[nodiscard]] Result<const Plan*, Failure> plan(const Problem& problem);
  // The plan for the problem if there is one already, else null.
  [[nodiscard]] Result<const Plan*, Failure> find(const Problem& problem);

 private:
  using Key = std::pair<int, Problem>;
  static Result<Key, Failure> key_of(const Problem& problem);
  static Result<std::unique_ptr<Plan>, Failure> make(const Key& key);

  runtime::OnceMap<Key, Plan, Failure> plans_;
};

// The process's one. It is never destroyed: at exit the driver may be gone before it.
[[nodiscard]] Registry& registry();

}  // namespace kiln::gemm
