// The row of the simulator.
#include "sim/sim.h"

#include "backends/backend.h"
#include "support/format.h"

namespace kiln::backends {

namespace {

std::string text_of(std::string_view doing, const sim::Progress& at) {
  std::string out = format("{} block {} of {}, {} million steps", doing, at.blocks_done + 1,
                           at.blocks, at.steps / 1'000'000);
  if (at.schedules > 1) out += format(", schedule {} of {}", at.schedule + 1, at.schedules);
  return out;
}

class PreparedSim final : public Prepared {
 public:
  explicit PreparedSim(const Job& job) : job_(job) {}

  Result<Execution> run(ir::Arguments arguments, const Limits& limits) override {
    arguments.vars.resize(job_.function.vars.size());
    sim::Options how;
    how.schedules = limits.schedules;
    how.seed = limits.seed;
    how.steps_max = limits.steps_max;
    how.memory = limits.memory;
    how.dumps = limits.dumps;
    if (limits.progress) {
      how.progress = [&](const sim::Progress& at) { limits.progress(text_of("simulating", at)); };
    }
    auto outcome = sim::run(job_.module, job_.function, arguments, how);
    if (limits.progress) limits.progress("");
    if (!outcome) return Unexpected{outcome.error()};
    Execution out{.backend = &kSim, .arguments = std::move(arguments)};
    out.seconds = outcome->seconds;
    out.printed = std::move(outcome->printed);
    out.prints_dropped = outcome->prints_dropped;
    out.sim = std::move(*outcome);
    return out;
  }

 private:
  Job job_;
};

Result<sim::Outcome> count(const Job& job, ir::Arguments& arguments, const Counting& how) {
  sim::Options options;
  options.checks = false;
  options.by_operation = true;
  options.count_only = true;
  options.representative_blocks = !how.all_blocks;
  options.trace = how.trace;
  if (how.progress) {
    options.progress = [&](const sim::Progress& at) { how.progress(text_of("counting", at)); };
  }
  return sim::run(job.module, job.function, arguments, options);
}

}  // namespace

constinit const Backend kSim{
    .name = "sim",
    .preference = 1,
    .serves = [](const target::Arch&) { return true; },
    .find = []() -> Result<void> { return {}; },
    .prepare = [](const Job& job) -> Result<std::unique_ptr<Prepared>> {
      return std::unique_ptr<Prepared>(std::make_unique<PreparedSim>(job));
    },
    .gives_up = true,
    .reports = {.findings = true, .tiles = true},
    .count = count,
};

}  // namespace kiln::backends
