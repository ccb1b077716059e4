// The cost model's part of `kiln tune FILE.co`.
#include <algorithm>

#include "backends/backend.h"
#include "explain/cost/cost.h"
#include "io/bind.h"
#include "measure/tune_file.h"

namespace kiln::measure {

namespace {

constexpr std::int64_t kSumMax = 512;  // of a dimension that is summed over: longer ones are cut
constexpr double kCacheBytes = 48;     // from the second-level cache to one SM in a cycle
constexpr double kLaunchSeconds = 2e-6;
constexpr double kUnhidden = 0.15;  // of what is not the slowest part

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

double seconds_of(const explain::LaunchCost& launch, const target::Arch& arch) {
  const explain::Roofline& roofline = launch.roofline;
  // In the last wave some SMs have nothing to do.
  const explain::Waves& waves = launch.waves;
  const double blocks = static_cast<double>(std::max<std::int64_t>(launch.blocks, 1));
  const double whole = static_cast<double>(waves.waves) * static_cast<double>(waves.per_wave);
  const double idle = std::max(1.0, whole / blocks);
  const double cache =
      static_cast<double>(launch.bytes_global) / (kCacheBytes * arch.sms * arch.clock_ghz * 1e9);
  const double parts[] = {roofline.tensor * idle, roofline.shared * idle, roofline.dram,
                          cache * idle};
  const double slowest = *std::ranges::max_element(parts);
  double rest = -slowest;
  for (const double part : parts) rest += part;
  return slowest + kUnhidden * rest + kLaunchSeconds * static_cast<double>(launch.times);
}

}  // namespace

std::optional<double> modelled_seconds(const FileCandidate& candidate,
                                       const std::vector<io::Assignment>& shapes) {
  const ir::Function& function = candidate.function();
  Diagnostics diags;
  io::BindOptions how;
  how.shapes = with_short_sums(function, shapes);
  how.fill = io::Fill::kOnes;
  how.use = io::Use::kCount;
  auto arguments = io::bind(function, std::move(how), diags);
  if (!arguments || !io::check_entry(function, *arguments, diags)) return std::nullopt;
  const io::Program& program = *candidate.program;
  const auto outcome = backends::counter().count(
      {.module = program.decided, .function = function, .sources = program.sources}, *arguments,
      {});
  if (!outcome || !outcome->reports.empty()) return std::nullopt;
  const explain::Explanation cost =
      explain::explain_kernel(program.decided, function, *arguments, *outcome);
  double seconds = 0;
  for (const explain::LaunchCost& launch : cost.launches) {
    if (launch.occupancy.blocks == 0) return std::nullopt;
    seconds += seconds_of(launch, *cost.arch);
  }
  return seconds;
}

}  // namespace kiln::measure
