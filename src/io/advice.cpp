#include "io/advice.h"

#include <algorithm>
#include <limits>

#include "io/attributes.h"
#include "ir/effects.h"
#include "passes/pass_table.h"

namespace kiln::io {

namespace {

constexpr double kLittle = 0.999;  // of the time with fewer stages: they gain nothing

// A loop of a launch, and what it is asked for.
struct Wish {
  ir::OpId launch;
  ir::OpId loop;  // invalid: the launch alone
  std::int64_t stages = 0;
  bool producer = false;
  bool persistent = false;
};

bool copies_to_shared(const ir::Function& function, ir::RegionId body) {
  return std::ranges::any_of(function.regions[body].ops, [&](ir::OpId id) {
    const auto* copy = std::get_if<ir::Copy>(&function.ops[id].data);
    if (copy == nullptr) return false;
    const auto space = [&](ir::ValueId view) {
      return function.view_type(ir::root_of(function, view)).space;
    };
    return space(copy->src) == ir::Space::kGlobal && space(copy->dst) == ir::Space::kShared;
  });
}

class Trials {
 public:
  Trials(const Program& program, std::size_t kernel, const ExplainOptions& options)
      : program_(program), kernel_(kernel), options_(options) {}

  Advice run() {
    for (const ir::OpId launch : ir::launches(function())) try_launch(launch);
    std::ranges::stable_sort(out_.trials, {}, &explain::Trial::seconds);
    return std::move(out_);
  }

 private:
  [[nodiscard]] const ir::Function& function() const { return program_.tile.functions[kernel_]; }

  void try_launch(ir::OpId launch) {
    const auto& parallel = std::get<ir::Parallel>(function().ops[launch].data);
    Wish best = {.launch = launch, .loop = {}};
    double best_seconds = 0;
    ir::walk(function(), parallel.body, [&](ir::OpId id) {
      const auto* loop = std::get_if<ir::For>(&function().ops[id].data);
      if (loop == nullptr || !copies_to_shared(function(), loop->body)) return;
      for (const bool producer : {false, true}) {
        double last = std::numeric_limits<double>::infinity();
        for (const std::int64_t stages : kStagesTried) {
          const Wish wish = {launch, id, stages, producer};
          if (loop->stages == stages && loop->producer == producer) continue;
          const auto seconds = try_one(wish);
          if (!seconds) break;  // more do not fit either
          if (best_seconds == 0 || *seconds < best_seconds) {
            best = wish;
            best_seconds = *seconds;
          }
          if (*seconds > kLittle * last) break;  // more stages only cost memory
          last = *seconds;
        }
      }
    });
    if (parallel.persistent) return;
    (void)try_one({.launch = launch, .loop = {}, .persistent = true});
    if (!best.loop.valid()) return;
    best.persistent = true;
    (void)try_one(best);
  }

  std::optional<double> try_one(const Wish& wish) {
    ir::Module module = program_.tile;
    ir::Function& function = module.functions[kernel_];
    if (wish.loop.valid()) {
      auto& loop = std::get<ir::For>(function.ops[wish.loop].data);
      loop.stages = wish.stages;
      loop.producer = wish.producer;
    }
    if (wish.persistent) std::get<ir::Parallel>(function.ops[wish.launch].data).persistent = true;
    Diagnostics unheard;
    if (!passes::run_passes(module, unheard)) return std::nullopt;
    const auto explained =
        explain_decided(module, program_.sources, kernel_, options_, explain::Detail::kTime);
    if (!explained) return std::nullopt;
    const auto seconds = explained->explanation.predicted_seconds();
    if (!seconds) return std::nullopt;
    const Span span = this->function().ops[wish.loop.valid() ? wish.loop : wish.launch].span;
    if (!out_.best || *seconds < best_seconds_) {
      out_.best = std::move(module);
      best_seconds_ = *seconds;
    }
    out_.trials.push_back({text_of(wish), span, *seconds});
    return seconds;
  }

  static std::string text_of(const Wish& wish) {
    std::string out;
    if (wish.loop.valid()) {
      out = pipeline_text(wish.stages, wish.producer);
    }
    if (!wish.persistent) return out;
    return out + (out.empty() ? "" : " and ") + "[[persistent]]";
  }

  const Program& program_;
  std::size_t kernel_;
  const ExplainOptions& options_;
  Advice out_;
  double best_seconds_ = 0;
};

}  // namespace

Advice try_attributes(const Program& program, std::size_t kernel, const ExplainOptions& options) {
  return Trials(program, kernel, options).run();
}

}  // namespace kiln::io
