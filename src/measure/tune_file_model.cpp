// The cost model's part of `kiln tune FILE.co`.
#include <algorithm>

#include "io/explained.h"
#include "measure/tune_file.h"

namespace kiln::measure {

namespace {

constexpr std::int64_t kSumMax = 512;  // of a dimension that is summed over: longer ones are cut

// Whether a tensor that the function gives back has this dimension.
bool is_in_an_output(const ir::Function& function, ir::VarId dimension) {
  return std::ranges::any_of(ir::written_params(function), [&](std::size_t i) {
    const ir::ValueId value = function.params[i].value;
    if (!std::holds_alternative<ir::ViewType>(function.type(value))) return false;
    return std::ranges::any_of(function.view_type(value).shape,
                               [&](const ir::Expr& extent) { return extent.uses(dimension); });
  });
}

// Every tile's sum is cut by the same factor, so that the grid stays what it is.
std::vector<io::Assignment> with_short_sums(const ir::Function& function,
                                            std::vector<io::Assignment> shapes) {
  for (io::Assignment& each : shapes) {
    for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
      const ir::Var& var = function.vars[ir::VarId{v}];
      if (var.kind != ir::VarKind::kDim || var.name != each.name) continue;
      if (is_in_an_output(function, ir::VarId{v})) continue;
      std::int64_t extent = std::atoll(each.value.c_str());
      while (extent > kSumMax && extent % 2 == 0) extent /= 2;
      each.value = std::to_string(extent);
    }
  }
  return shapes;
}

}  // namespace

std::optional<double> modelled_seconds(const FileCandidate& candidate,
                                       const std::vector<io::Assignment>& shapes) {
  const io::Program& program = *candidate.program;
  const io::ExplainOptions how = {.shapes = with_short_sums(candidate.function(), shapes)};
  const auto explained = io::explain_decided(program.decided, program.sources, candidate.kernel,
                                             how, explain::Detail::kTime);
  return explained ? explained->explanation.predicted_seconds() : std::nullopt;
}

}  // namespace kiln::measure
