// Which elements of a buffer each warpgroup reaches by a view: those of different ones may be apart.
//
//   %s: [2, 64, 32]   view=%s[p, 0, 0] [1, 64, 32], p a warpgroup   =>   rows 0 and 1, elements 0 and 2048 on, 2048 of them
#pragma once

#include <set>
#include <vector>

#include "ir/module.h"

namespace kiln::ir {

// Where each warpgroup goes in a buffer, when that depends on nothing else: so many rows or columns, and so many elements.
struct Parts {
  std::size_t dimension = 0;
  std::int64_t extent = 0;
  std::vector<std::int64_t> starts = {};  // by warpgroup; empty: any may go anywhere
  // From the first element to behind the last one, whatever shape the view has.
  std::int64_t length = 0;
  std::vector<std::int64_t> firsts = {};  // one: all go there

  friend bool operator==(const Parts&, const Parts&) = default;
};

// Whether no two warpgroups, of those that `threads` threads from number `first` on are, go to the same elements, one by `before` and
// the other by `now`; with `itself` no one has any that it had before, either. Other threads than whole warpgroups may.
[[nodiscard]] bool are_apart(const Parts& before, const Parts& now, std::int64_t first,
                             std::int64_t threads, bool itself);

class PartsOfViews {
 public:
  PartsOfViews(const Function& function, RegionId body);

  [[nodiscard]] Parts of(ValueId view) const;

 private:
  void add_rows(Parts& parts, ValueId view) const;
  void add_elements(Parts& parts, ValueId view) const;
  // Its values by warpgroup, where it depends on nothing else.
  [[nodiscard]] std::vector<std::int64_t> by_warpgroup(const Expr& expr) const;

  const Function& function_;
  std::set<VarId> warpgroups_;  // variables that number them
};

}  // namespace kiln::ir
