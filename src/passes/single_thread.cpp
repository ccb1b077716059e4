#include "passes/single_thread.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/effects.h"

namespace kiln::passes {

namespace {

// Where a walk stands: an operation in the list of a region.
struct Step {
  ir::RegionId region;
  std::size_t position = 0;
};

bool overlap(const ThreadSet& a, const ThreadSet& b) {
  if (a.threads == 0 || b.threads == 0) return true;
  return a.first < b.first + b.threads && b.first < a.first + a.threads;
}

ThreadSet threads_of(const ir::Inthreads& region) { return {region.first, region.threads}; }

// An operation that only computes the thread's own scalars or names memory.
bool is_scalar(const ir::Op& op) {
  if (const auto* alloc = std::get_if<ir::Alloc>(&op.data)) return !alloc->initial.valid();
  constexpr ir::OpKind kNames[] = {ir::OpKind::kSubview, ir::OpKind::kAlias, ir::OpKind::kEvent,
                                   ir::OpKind::kFuture,  ir::OpKind::kBind,  ir::OpKind::kGet};
  return ir::is_pure(op.kind()) ||
         std::find(std::begin(kNames), std::end(kNames), op.kind()) != std::end(kNames);
}

// Operations of a region that one thread can do for all.
class Business {
 public:
  // `arrivals_known`: triggers must arrive for all already.
  Business(const ir::Function& function, bool arrivals_known)
      : function_(function), arrivals_known_(arrivals_known) {}

  // Whether the operations, of the region's body, are the business of one thread, and not none.
  [[nodiscard]] bool only_starts_transfers(std::span<const ir::OpId> ops,
                                           const ir::Inthreads& region) const {
    bool only = true;
    bool starts = false;
    const auto look = [&](ir::OpId id) {
      const ir::Op& op = function_.ops[id];
      only = only && is_elected(region, op);
      starts = starts || op.kind() == ir::OpKind::kCopy ||
               (arrivals_known_ && op.kind() == ir::OpKind::kTrigger);
    };
    for (const ir::OpId id : ops) {
      look(id);
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) {
        ir::walk(function_, inner, look);
      }
    }
    return only && starts;
  }

  [[nodiscard]] bool is_inside(const ir::Inthreads& region, ir::OpId wanted) const {
    bool found = false;
    ir::walk(function_, region.body, [&](ir::OpId id) { found = found || id == wanted; });
    return found;
  }

 private:
  [[nodiscard]] bool is_elected(const ir::Inthreads& region, const ir::Op& op) const {
    if (const auto* copy = std::get_if<ir::Copy>(&op.data)) {
      return copy->bulk && (copy->unit == 0 || copy->unit >= region.threads);
    }
    if (const auto* trigger = std::get_if<ir::Trigger>(&op.data)) {
      return !arrivals_known_ || (trigger->arrival == ir::Arrival::kElected && trigger->unit == 0);
    }
    if (const auto* set = std::get_if<ir::Set>(&op.data)) {
      return is_inside(region, function_.values[set->cell].def);
    }
    if (op.kind() == ir::OpKind::kAlloc) {
      return std::holds_alternative<ir::CellType>(function_.type(op.result));
    }
    constexpr ir::OpKind kFine[] = {
        ir::OpKind::kFor,      ir::OpKind::kIf,   ir::OpKind::kLoop,      ir::OpKind::kBreak,
        ir::OpKind::kContinue, ir::OpKind::kRead, ir::OpKind::kEventWait, ir::OpKind::kBulkWait};
    return is_scalar(op) ||
           std::find(std::begin(kFine), std::end(kFine), op.kind()) != std::end(kFine);
  }

  const ir::Function& function_;
  bool arrivals_known_;
};

// Where the operations that set registers at the beginning of a region end.
std::vector<ir::OpId>::const_iterator behind_registers(const ir::Function& function,
                                                       const std::vector<ir::OpId>& body) {
  return std::find_if(body.begin(), body.end(), [&](ir::OpId id) {
    return function.ops[id].kind() != ir::OpKind::kRegisters;
  });
}

// Looks at the regions of one launch.
class SingleRegions {
 public:
  SingleRegions(ir::Function& function, ir::OpId launch)
      : function_(function), business_(function, true) {
    const auto& parallel = std::get<ir::Parallel>(function.ops[launch].data);
    body_ = parallel.body;
    collect_waits(body_, {0, parallel.threads.constant().value_or(0)});
  }

  void run() {
    split_registers(body_);
    std::vector<Step> path;
    visit(body_, path);
  }

 private:
  struct Wait {
    ir::OpId op;
    ThreadSet threads;
  };

  void collect_waits(ir::RegionId region, const ThreadSet& set) {
    for (const ir::OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (op.kind() == ir::OpKind::kEventWait) waits_.push_back({id, set});
      const auto* some = std::get_if<ir::Inthreads>(&op.data);
      for (const ir::RegionId inner : ir::regions_of(op)) {
        collect_waits(inner, some == nullptr ? set : threads_of(*some));
      }
    }
  }

  // A region that begins by setting registers, which all its threads do, and goes on with what one
  // can do alone, becomes two.
  void split_registers(ir::RegionId region) {
    for (std::size_t i = 0; i < function_.regions[region].ops.size(); ++i) {
      const ir::OpId id = function_.regions[region].ops[i];
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) split_registers(inner);
      const auto* some = std::get_if<ir::Inthreads>(&function_.ops[id].data);
      if (some == nullptr) continue;
      const std::vector<ir::OpId>& body = function_.regions[some->body].ops;
      const auto rest = behind_registers(function_, body);
      if (rest == body.begin() || !business_.only_starts_transfers({rest, body.end()}, *some)) {
        continue;
      }
      const std::vector<ir::OpId> leading(body.begin(), rest);
      ir::Inthreads before = *some;
      const Span span = function_.ops[leading[0]].span;
      std::vector<ir::OpId>& left = function_.regions[some->body].ops;
      left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(leading.size()));
      before.body = function_.regions.push({leading});
      const ir::OpId made = function_.ops.push({span, std::move(before), {}});
      std::vector<ir::OpId>& around = function_.regions[region].ops;
      around.insert(around.begin() + static_cast<std::ptrdiff_t>(i), made);
      ++i;
    }
  }

  void visit(ir::RegionId region, std::vector<Step>& path) {
    const std::vector<ir::OpId> ops = function_.regions[region].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      path.push_back({region, i});
      auto* some = std::get_if<ir::Inthreads>(&function_.ops[ops[i]].data);
      if (some != nullptr) {
        some->single = business_.only_starts_transfers(function_.regions[some->body].ops, *some) &&
                       waits_alone(*some) && is_last(*some, path);
      }
      for (const ir::RegionId inner : ir::regions_of(function_.ops[ops[i]])) visit(inner, path);
      path.pop_back();
    }
  }

  // Whether no other thread of the region counts generations of its events elsewhere.
  bool waits_alone(const ir::Inthreads& region) {
    std::vector<ir::ValueId> inside;
    for (const Wait& wait : waits_) {
      if (!business_.is_inside(region, wait.op)) continue;
      inside.push_back(std::get<ir::EventWait>(function_.ops[wait.op].data).event);
    }
    return std::none_of(waits_.begin(), waits_.end(), [&](const Wait& wait) {
      const ir::ValueId event = std::get<ir::EventWait>(function_.ops[wait.op].data).event;
      return std::count(inside.begin(), inside.end(), event) != 0 &&
             !business_.is_inside(region, wait.op) && overlap(wait.threads, threads_of(region));
    });
  }

  // Whether the region's threads have nothing to do behind it that could need what it waited for:
  // only scalars and other threads' regions follow, up to the end or to a barrier of the block.
  bool is_last(const ir::Inthreads& region, const std::vector<Step>& path) {
    for (std::size_t level = path.size(); level-- > 0;) {
      const std::vector<ir::OpId>& ops = function_.regions[path[level].region].ops;
      for (std::size_t i = path[level].position + 1; i < ops.size(); ++i) {
        const ir::Op& op = function_.ops[ops[i]];
        const auto* barrier = std::get_if<ir::Barrier>(&op.data);
        if (barrier != nullptr && barrier->level == ir::Level::kBlock) return true;
        const auto* other = std::get_if<ir::Inthreads>(&op.data);
        const bool elsewhere = other != nullptr && !overlap(threads_of(*other), threads_of(region));
        if (!elsewhere && !is_scalar(op)) return false;
      }
      if (level > 0 && repeats(path[level - 1])) return false;
    }
    return true;
  }

  bool repeats(const Step& step) {
    const ir::OpKind kind = function_.ops[function_.regions[step.region].ops[step.position]].kind();
    return kind == ir::OpKind::kFor || kind == ir::OpKind::kLoop;
  }

  ir::Function& function_;
  Business business_;
  ir::RegionId body_;
  std::vector<Wait> waits_;
};

}  // namespace

bool only_moves_data(ir::Function& function, const ir::Inthreads& region) {
  const std::vector<ir::OpId>& body = function.regions[region.body].ops;
  return Business(function, false)
      .only_starts_transfers({behind_registers(function, body), body.end()}, region);
}

void plan_single_regions(ir::Function& function, ir::OpId launch) {
  SingleRegions(function, launch).run();
}

}  // namespace kiln::passes
