#include "passes/by_threads.h"

#include <algorithm>

#include "passes/cloner.h"
#include "passes/copies_ahead.h"
#include "passes/marked_loops.h"
#include "passes/op_maker.h"

namespace kiln::passes {

namespace {

using ir::Expr;
using ir::OpId;
using ir::ValueId;

// The kernel again, for shapes that the hardware's copies cannot be of.
class Otherwise : private OpMaker {
 public:
  Otherwise(ir::Function& function, OpId launch)
      : OpMaker(function, function.ops[launch].span), launch_(launch) {}

  OpId run(const std::vector<RowCondition>& conditions, std::string_view suffix) {
    Cloner cloner(function_);
    const OpId again = cloner.clone(launch_);
    auto& data = std::get<ir::Parallel>(function_.ops[again].data);
    data.name = format("{}{}", data.name, suffix);
    const ValueId fits = condition(conditions);
    const auto [region, index] = place();
    const ir::RegionId then_body = function_.regions.push({{launch_}});
    const ir::RegionId else_body = function_.regions.push({{again}});
    out_.push_back(make(ir::If{fits, then_body, else_body}));
    auto& now = function_.regions[region].ops;
    now.erase(now.begin() + static_cast<std::ptrdiff_t>(index));
    now.insert(now.begin() + static_cast<std::ptrdiff_t>(index), out_.begin(), out_.end());
    return again;
  }

 private:
  ValueId condition(const std::vector<RowCondition>& conditions) {
    ValueId out;
    const ir::ScalarType number{DType::kS32};
    const ir::ScalarType truth{DType::kBool};
    for (const RowCondition& each : conditions) {
      const ValueId rest = emit_value(ir::Index{mod(each.row, Expr(each.elements))}, number);
      const ValueId none = emit_value(ir::Const{0}, number);
      const ValueId divides = emit_value(ir::Binary{ir::BinaryKind::kEq, rest, none}, truth);
      out = out.valid() ? emit_value(ir::Binary{ir::BinaryKind::kLogicalAnd, out, divides}, truth)
                        : divides;
    }
    return out;
  }

  // Where the launch stands.
  [[nodiscard]] std::pair<ir::RegionId, std::size_t> place() const {
    for (std::uint32_t r = 0; r < function_.regions.size(); ++r) {
      const auto& ops = function_.regions[ir::RegionId{r}].ops;
      const auto at = std::ranges::find(ops, launch_);
      if (at != ops.end()) return {ir::RegionId{r}, static_cast<std::size_t>(at - ops.begin())};
    }
    KILN_CHECK(false, "a launch in no region");
  }

  OpId launch_;
};

}  // namespace

OpId or_else(ir::Function& function, OpId launch, const std::vector<RowCondition>& conditions,
             std::string_view suffix) {
  return Otherwise(function, launch).run(conditions, suffix);
}

void or_by_threads(ir::Function& function, OpId launch,
                   const std::vector<RowCondition>& conditions) {
  const OpId again = or_else(function, launch, conditions, "_by_threads");
  for (const Marked& each : loops_with_producer(function, again)) {
    auto& loop = std::get<ir::For>(function.ops[each.loop].data);
    loop.producer = false;
    Diagnostics silent;
    const bool can =
        copies_ahead(function, again, each.loop, std::max<std::int64_t>(loop.stages, 2), silent)
            .has_value();
    if (!can) loop.stages = 0;
  }
}

}  // namespace kiln::passes
