#include "io/advice.h"

#include <algorithm>
#include <limits>

#include "io/attributes.h"
#include "ir/effects.h"
#include "passes/pass_table.h"
#include "passes/tile_order.h"

namespace kiln::io {

namespace {

constexpr double kLittle = 0.999;  // of the time with fewer stages: they gain nothing
constexpr double kOrdered = 0.99;  // of the time without an order, which one is worth

// A loop of a launch, and what it is asked for.
struct Wish {
  ir::OpId launch;
  ir::OpId loop;  // invalid: the launch alone
  std::int64_t stages = 0;
  bool producer = false;
  bool persistent = false;
  passes::TileOrder order = {};
};

// What is tried of `[[order]]`; how many columns or rows is left to `kiln tune`.
constexpr passes::TileOrder kOrdersTried[] = {{passes::TileOrder::Kind::kColumns, 8},
                                              {passes::TileOrder::Kind::kRows, 8},
                                              {passes::TileOrder::Kind::kHilbert}};

std::string order_text(const passes::TileOrder& order) {
  if (order.kind == passes::TileOrder::Kind::kHilbert) return "[[order(hilbert)]]";
  const bool columns = order.kind == passes::TileOrder::Kind::kColumns;
  return format("[[order({}, {})]]", columns ? "columns" : "rows", order.together);
}

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
    if (!parallel.persistent) try_persistent(best, best_seconds);
    const bool orders = parallel.vars.size() == 2 &&
                        passes::order_of(parallel).kind == passes::TileOrder::Kind::kGrid;
    if (orders) try_orders(best, best_seconds);
  }

  // Of the program as it is and of the best, which becomes what is faster.
  void try_persistent(Wish& best, double& best_seconds) {
    const auto alone = try_one({.launch = best.launch, .loop = {}, .persistent = true});
    if (!best.loop.valid()) {
      best.persistent = alone.has_value();
      best_seconds = alone.value_or(0);
      return;
    }
    Wish both = best;
    both.persistent = true;
    const auto seconds = try_one(both);
    if (!seconds || *seconds >= best_seconds) return;
    best = both;
    best_seconds = *seconds;
  }

  // Of the best, or of the program as it is where that is no slower.
  void try_orders(Wish wish, double seconds) {
    const Wish plain = {.launch = wish.launch, .loop = {}};
    const auto as_it_is = predicted(plain, nullptr);
    if (as_it_is && (seconds == 0 || *as_it_is <= seconds)) {
      wish = plain;
      seconds = *as_it_is;
    }
    if (seconds == 0) return;
    for (const passes::TileOrder& order : kOrdersTried) {
      wish.order = order;
      (void)try_one(wish, kOrdered * seconds);
    }
  }

  // A trial, unless it takes longer than so many seconds.
  std::optional<double> try_one(const Wish& wish,
                                double most = std::numeric_limits<double>::infinity()) {
    ir::Module decided;
    const auto seconds = predicted(wish, &decided);
    if (!seconds || *seconds > most) return seconds;
    const Span span = function().ops[wish.loop.valid() ? wish.loop : wish.launch].span;
    if (!out_.best || *seconds < best_seconds_) {
      out_.best = std::move(decided);
      best_seconds_ = *seconds;
    }
    out_.trials.push_back({text_of(wish), span, *seconds});
    return seconds;
  }

  // Nothing where the passes refuse it.
  std::optional<double> predicted(const Wish& wish, ir::Module* decided) const {
    ir::Module module = program_.tile;
    ir::Function& function = module.functions[kernel_];
    if (wish.loop.valid()) {
      auto& loop = std::get<ir::For>(function.ops[wish.loop].data);
      loop.stages = wish.stages;
      loop.producer = wish.producer;
    }
    auto& launch = std::get<ir::Parallel>(function.ops[wish.launch].data);
    launch.persistent = launch.persistent || wish.persistent;
    if (wish.order.kind != passes::TileOrder::Kind::kGrid) passes::set_order(launch, wish.order);
    Diagnostics unheard;
    if (!passes::run_passes(module, unheard)) return std::nullopt;
    const auto explained =
        explain_decided(module, program_.sources, kernel_, options_, explain::Detail::kTime);
    if (!explained) return std::nullopt;
    const auto seconds = explained->explanation.predicted_seconds();
    if (seconds && decided != nullptr) *decided = std::move(module);
    return seconds;
  }

  static std::string text_of(const Wish& wish) {
    std::vector<std::string> out;
    if (wish.loop.valid()) out.push_back(pipeline_text(wish.stages, wish.producer));
    if (wish.persistent) out.emplace_back("[[persistent]]");
    if (wish.order.kind != passes::TileOrder::Kind::kGrid) out.push_back(order_text(wish.order));
    return join(out, " and ", [](const std::string& each) { return each; });
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
