// What the rules share. A rule is one function over one IR function; it must survive IR that breaks
// any other rule, so it looks at types through type_as and skips what another rule complains about.
#pragma once

#include <algorithm>
#include <span>

#include "ir/op_text.h"
#include "ir/reflect.h"
#include "ir/verify.h"
#include "support/format.h"

namespace kiln::ir {

using Mistakes = std::vector<std::string>;

// One list for each part of the IR, in the order they are checked.
[[nodiscard]] std::span<const Rule> structure_rules();
[[nodiscard]] std::span<const Rule> memory_rules();
[[nodiscard]] std::span<const Rule> scalar_rules();
[[nodiscard]] std::span<const Rule> decided_rules();
[[nodiscard]] std::span<const Rule> register_rules();
[[nodiscard]] std::span<const Rule> meeting_rules();
[[nodiscard]] std::span<const Rule> launch_rules();

// The type of `value` when it is a T; null also for a missing value.
template <class T>
[[nodiscard]] const T* type_as(const Function& function, ValueId value) {
  return value.valid() ? std::get_if<T>(&function.type(value)) : nullptr;
}

[[nodiscard]] inline bool is_scalar_of(const Function& function, ValueId value, DType dtype) {
  const ScalarType* scalar = type_as<ScalarType>(function, value);
  return scalar != nullptr && scalar->dtype == dtype;
}

// Calls `check(const T&, OpId)` for each T of the function, in program order.
template <class T, class Check>
void for_each_op(const Function& function, Check&& check) {
  walk(function, function.body, [&](OpId id) {
    if (const T* op = std::get_if<T>(&function.ops[id].data)) check(*op, id);
  });
}

// Calls `visit(OpId, enclosing)` for each operation, with those around it, outermost first.
template <class Visit>
void for_each_nested(const Function& function, RegionId region, std::vector<OpId>& enclosing,
                     Visit&& visit) {
  for (const OpId id : function.regions[region].ops) {
    visit(id, enclosing);
    enclosing.push_back(id);
    for (const RegionId inner : regions_of(function.ops[id])) {
      for_each_nested(function, inner, enclosing, visit);
    }
    enclosing.pop_back();
  }
}
template <class Visit>
void for_each_nested(const Function& function, Visit&& visit) {
  std::vector<OpId> enclosing;
  for_each_nested(function, function.body, enclosing, visit);
}

// The innermost Parallel of a list of enclosing operations, or null in the host part.
[[nodiscard]] const Parallel* innermost_parallel(const Function& function,
                                                 const std::vector<OpId>& enclosing);

// Adds "`copy src=%a dst=%b`: ..." to the mistakes.
template <class... Args>
void complain(Mistakes& mistakes, const Function& function, OpId op,
              fmt::format_string<Args...> text, Args&&... args) {
  mistakes.push_back(format("`{}`: {}", op_text(function, op),
                            detail::vformat(text, fmt::make_format_args(args...))));
}

}  // namespace kiln::ir
