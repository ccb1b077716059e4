#include "passes/choose_stages.h"

#include <algorithm>
#include <vector>

#include "target/occupancy.h"
#include "target/timing.h"

namespace kiln::passes {

namespace {

constexpr std::int64_t kStagesTried = 8;
constexpr double kNoBetter = 1.02;
constexpr int kBitsOfHalf = 16;

// Cycles that the body's products keep all tensor cores of an SM busy.
double multiplied_in(const target::Arch& arch, const ir::Function& function, ir::RegionId body) {
  double out = 0;
  for (const ir::OpId id : function.regions[body].ops) {
    const ir::Op& op = function.ops[id];
    double inner = 0;
    for (const ir::RegionId region : ir::regions_of(op))
      inner += multiplied_in(arch, function, region);
    double times = 1;
    if (const auto* loop = std::get_if<ir::For>(&op.data)) {
      times = static_cast<double>((loop->upper - loop->lower).constant().value_or(loop->step)) /
              static_cast<double>(loop->step);
    } else if (const auto* parallel = std::get_if<ir::Parallel>(&op.data)) {
      for (const ir::VarId var : parallel->vars) {
        times *= static_cast<double>(function.vars[var].extent.constant().value_or(1));
      }
    }
    out += times * inner;
    const auto* mma = std::get_if<ir::Mma>(&op.data);
    if (mma == nullptr) continue;
    const ir::FragType& a = function.frag_type(mma->a);
    const ir::FragType& c = function.frag_type(mma->c);
    const double macs = static_cast<double>(c.rows) * static_cast<double>(c.cols) *
                        static_cast<double>(mma->a_major == ir::Major::kRow ? a.cols : a.rows);
    out += macs * info(a.dtype).bits / kBitsOfHalf / arch.mma_macs_per_sm_cycle;
  }
  return out;
}

// Cycles of an SM for one iteration of one block.
double iteration_cycles(const target::Arch& arch, const LoopCosts& costs, std::int64_t stages) {
  const target::Timing& timing = target::timing_of(arch);
  const target::Occupancy held =
      target::occupancy(arch, {.threads = costs.threads,
                               .shared_bytes = costs.other_bytes + stages * costs.stage_bytes,
                               .registers = costs.registers});
  const auto blocks = static_cast<double>(costs.alone ? 1 : std::max<std::int64_t>(held.blocks, 1));
  const double rate = std::min(timing.l2_bytes_per_cycle, timing.l2_all_bytes_per_cycle / arch.sms);
  const double copied = static_cast<double>(costs.stage_bytes) / rate;
  const double away = timing.l2_latency +
                      timing.fresh_later * (timing.dram_latency - timing.l2_latency) +
                      (costs.bulk ? timing.bulk_latency : timing.async_latency);
  // A kernel's own threads start the next copy when they have waited for one; a producer does when a stage is empty.
  const double ahead = static_cast<double>(costs.producer ? stages : stages - 1);
  const double round = away + copied + costs.multiplied;
  return std::max({costs.multiplied, copied, round / (blocks * ahead)});
}

}  // namespace

double cycles_multiplied(const target::Arch& arch, const ir::Function& function, ir::OpId loop) {
  return multiplied_in(arch, function, std::get<ir::For>(function.ops[loop].data).body);
}

std::int64_t stages_worth_having(const target::Arch& arch, const LoopCosts& costs,
                                 std::int64_t fit) {
  const std::int64_t most = std::clamp<std::int64_t>(fit, 2, kStagesTried);
  std::vector<double> cycles;
  for (std::int64_t stages = 2; stages <= most; ++stages) {
    cycles.push_back(iteration_cycles(arch, costs, stages));
  }
  const double best = *std::ranges::min_element(cycles);
  const auto enough =
      std::ranges::find_if(cycles, [&](double each) { return each <= kNoBetter * best; });
  return 2 + (enough - cycles.begin());
}

}  // namespace kiln::passes
