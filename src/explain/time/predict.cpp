#include "explain/time/predict.h"

#include <algorithm>
#include <cmath>

#include "support/integer.h"

namespace kiln::explain {

namespace {

constexpr double kGiga = 1e9;
constexpr double kStepsRun =
    1e5;  // of blocks that are run; the others take as long as the last ones

// The part's rates, of which a question may double one.
struct Rates {
  target::Timing timing;
  double tensor = 1;  // times the rate
  double shared = 1;
  double unit = 1;
  double issue = 1;
};

BlockSteps scaled(BlockSteps steps, const Rates& rates) {
  for (auto& warp : steps.warps) {
    for (Step& step : warp) {
      step.tensor /= static_cast<float>(rates.tensor);
      step.shared /= static_cast<float>(rates.shared);
      step.slots /= static_cast<float>(rates.issue);
      step.before.instructions /= static_cast<float>(rates.issue);
      for (float& cycles : step.before.cycles) cycles /= static_cast<float>(rates.unit);
    }
  }
  return steps;
}

// Of what blocks read, the part that comes from DRAM.
double from_dram(double asked, double once) { return asked <= 0 ? 0 : std::min(1.0, once / asked); }

// Who asks for the same only a few times goes over data of its own, and finds it again where the cache holds what all
// blocks at work have asked for.
constexpr double kPassesMax = 4;

struct TimedRun {
  double seconds = 0;
  double cycles = 0;
  double clock = 0;
  SmRun run;
};

class Model {
 public:
  Model(const target::Arch& arch, const LaunchFacts& facts, Rates rates)
      : arch_(arch), facts_(facts), rates_(std::move(rates)), t_(rates_.timing) {}

  TimedRun time(const BlockSteps& steps) {
    TimedRun out = at_clock(steps, t_.clock_max_ghz);
    const double clock = clock_under_power(out);
    if (clock < t_.clock_max_ghz) out = at_clock(steps, clock);
    return out;
  }

  [[nodiscard]] std::int64_t on_busiest(std::uint32_t cluster) const {
    const std::int64_t groups = std::max<std::int64_t>(arch_.sms / cluster, 1);
    return ceil_div(ceil_div(facts_.blocks, std::int64_t{cluster}), groups);
  }

 private:
  TimedRun at_clock(const BlockSteps& steps, double clock) {
    const std::int64_t blocks = on_busiest(steps.blocks);
    const double active = static_cast<double>(std::min<std::int64_t>(arch_.sms, facts_.blocks));
    SmShare share;
    share.timing = t_;
    share.resident = std::min(facts_.resident, blocks);
    share.blocks = std::min(blocks, blocks_run(steps, share.resident));
    share.read_bytes_per_cycle =
        std::min(t_.l2_bytes_per_cycle, t_.l2_all_bytes_per_cycle / active);
    share.written_bytes_per_cycle = t_.store_bytes_per_cycle;
    share.dram_bytes_per_cycle = arch_.dram_gb_per_s * t_.dram_efficiency / clock / active;
    share.read_from_dram = read_from_dram(share.resident);
    share.latency_of_dram = of_dram_latency(blocks, share.resident, steps.blocks);
    share.written_to_dram = from_dram(facts_.bytes_written, facts_.bytes_written_once);
    TimedRun out;
    out.run = run_sm(steps, share);
    out.clock = clock;
    out.cycles = extrapolated(out.run, blocks, share.resident) * facts_.scale;
    out.seconds =
        static_cast<double>(facts_.times) * (out.cycles / (clock * kGiga) + t_.launch_seconds);
    return out;
  }

  // Blocks that run at once ask for the same bytes at once, and all of them wait for DRAM. Of what later ones ask for,
  // some was there for those before them. None finds more that is new than there is.
  [[nodiscard]] double of_dram_latency(std::int64_t blocks, std::int64_t resident,
                                       std::uint32_t cluster) const {
    const double first = static_cast<double>(resident) / static_cast<double>(blocks);
    const double of_block =
        facts_.bytes_read * cluster / static_cast<double>(std::max<std::int64_t>(facts_.blocks, 1));
    if (of_block <= 0) return 0;
    const double fresh = std::min(1.0, facts_.bytes_read_once / of_block);
    const double later =
        std::max(from_dram(facts_.bytes_read, facts_.bytes_read_once), t_.fresh_later);
    return fresh * (first + (1 - first) * later);
  }

  [[nodiscard]] double read_from_dram(std::int64_t resident) const {
    const double once = from_dram(facts_.bytes_read, facts_.bytes_read_once);
    const double again = std::max(once, from_dram(facts_.bytes_read, facts_.bytes_from_dram));
    if (once == 0 || once * kPassesMax < 1) return again;
    const double at_work = std::min(
        1.0, static_cast<double>(resident * arch_.sms) / static_cast<double>(facts_.blocks));
    const double held = facts_.bytes_read_once * at_work;
    const double lost =
        std::max(0.0, 1 - static_cast<double>(arch_.l2_bytes) / std::max(held, 1.0));
    return std::max(again, once + (1 - once) * lost);
  }

  static std::int64_t blocks_run(const BlockSteps& steps, std::int64_t resident) {
    const auto fit = static_cast<std::int64_t>(kStepsRun / std::max<double>(steps.count, 1));
    return std::max(fit / resident, std::int64_t{2}) * resident;
  }

  // Blocks that were not run take turns as the last ones did.
  static double extrapolated(const SmRun& run, std::int64_t blocks, std::int64_t resident) {
    const auto ran = static_cast<std::int64_t>(run.ends.size());
    if (ran >= blocks) return run.cycles;
    std::vector<double> ends = run.ends;
    std::ranges::sort(ends);
    const double turn = ends.back() - ends[static_cast<std::size_t>(ran - 1 - resident)];
    return run.cycles + turn * static_cast<double>(blocks - ran) / static_cast<double>(resident);
  }

  double clock_under_power(const TimedRun& timed) const {
    const double cycles = std::max(timed.run.cycles, 1.0);
    const double active =
        static_cast<double>(std::min<std::int64_t>(arch_.sms, facts_.blocks)) / arch_.sms;
    const double dynamic =
        active * (t_.tensor_watts * timed.run.busy.tensor + t_.cache_watts * timed.run.busy.read) /
        cycles;
    const double memory = active * t_.memory_watts * timed.run.busy.dram / cycles;
    const double left = t_.power_watts - t_.idle_watts - memory;
    if (dynamic <= left) return t_.clock_max_ghz;
    return t_.clock_max_ghz * std::pow(left / dynamic, t_.clock_exponent);
  }

  const target::Arch& arch_;
  const LaunchFacts& facts_;
  Rates rates_;
  const target::Timing& t_;
};

constexpr Limit kLimits[] = {Limit::kTensor, Limit::kDram,  Limit::kCache,   Limit::kShared,
                             Limit::kUnit,   Limit::kIssue, Limit::kLatency, Limit::kStart};

// The part as it would be with twice as much of it.
Rates relieved(Rates rates, Limit limit) {
  target::Timing& t = rates.timing;
  switch (limit) {
    case Limit::kTensor: rates.tensor = 2; break;
    case Limit::kDram:
      t.dram_efficiency *= 2;
      t.memory_watts *= 2;  // a byte costs as much as before
      break;
    case Limit::kCache:
      t.cache_watts *= 2;
      t.l2_bytes_per_cycle *= 2;
      t.l2_all_bytes_per_cycle *= 2;
      t.store_bytes_per_cycle *= 2;
      break;
    case Limit::kShared: rates.shared = 2; break;
    case Limit::kUnit: rates.unit = 2; break;
    case Limit::kIssue:  // a warp alone goes on as fast as before
      rates.issue = 2;
      t.issue_gap *= 2;
      break;
    case Limit::kLatency:
      for (int* each :
           {&t.l2_latency, &t.dram_latency, &t.async_latency, &t.bulk_latency, &t.shared_latency,
            &t.shuffle_latency, &t.mma_latency, &t.product_latency, &t.barrier_latency,
            &t.event_latency, &t.fence_latency, &t.quotient_latency}) {
        *each /= 2;
      }
      t.issue_gap /= 2;
      break;
    case Limit::kStart:
      t.block_cycles /= 2;
      t.launch_seconds /= 2;
      break;
  }
  return rates;
}

// What is at work most of the time, where nothing alone would help.
Limit busiest(const SmRun& run) {
  const Busy& busy = run.busy;
  const std::pair<Limit, double> parts[] = {{Limit::kTensor, busy.tensor},
                                            {Limit::kDram, busy.dram},
                                            {Limit::kCache, std::max(busy.read, busy.written)},
                                            {Limit::kShared, busy.shared},
                                            {Limit::kUnit, *std::ranges::max_element(busy.units)},
                                            {Limit::kIssue, busy.issue}};
  return std::ranges::max_element(parts, {}, &std::pair<Limit, double>::second)->first;
}

Limit bound_of(const Prediction& predicted) {
  constexpr double kWorthNaming = 0.04;
  const auto& [limit, part] = predicted.gains.front();
  return part >= kWorthNaming ? limit : busiest(predicted.run);
}

}  // namespace

std::string_view name(Limit limit) {
  switch (limit) {
    case Limit::kTensor: return "tensor cores";
    case Limit::kDram: return "DRAM";
    case Limit::kCache: return "L2 cache";
    case Limit::kShared: return "shared memory";
    case Limit::kUnit: return "arithmetic";
    case Limit::kIssue: return "issue slots";
    case Limit::kLatency: return "latency";
    case Limit::kStart: break;
  }
  return "start";
}

Prediction predict(const target::Arch& arch, const target::Timing& timing, const BlockSteps& steps,
                   const LaunchFacts& facts, bool with_gains) {
  const Rates rates = {timing};
  Model model(arch, facts, rates);
  TimedRun timed = model.time(steps);
  Prediction out;
  out.seconds = timed.seconds;
  out.clock_ghz = timed.clock;
  out.cycles = timed.cycles;
  constexpr double kNoticeable = 0.98;
  out.power_limited = timed.clock < kNoticeable * rates.timing.clock_max_ghz;
  out.on_busiest = model.on_busiest(steps.blocks);
  out.scale = facts.scale;
  out.run = std::move(timed.run);
  if (!with_gains) return out;
  for (const Limit limit : kLimits) {
    const Rates better = relieved(rates, limit);
    Model other(arch, facts, better);
    const double seconds = other.time(scaled(steps, better)).seconds;
    out.gains.emplace_back(limit, 1 - seconds / timed.seconds);
  }
  std::ranges::stable_sort(out.gains, std::greater<>{}, &std::pair<Limit, double>::second);
  out.bound = bound_of(out);
  return out;
}

}  // namespace kiln::explain
