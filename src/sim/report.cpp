#include "sim/report.h"

#include <algorithm>

#include "ir/prove.h"

namespace kiln::sim {

namespace {

// A region and what stands in it on the way to some operation.
struct Step {
  ir::RegionId region;
  ir::OpId op;
};

// From `region` down to the operation; empty when it is not in there.
std::vector<Step> path_to(const ir::Function& function, ir::RegionId region, ir::OpId wanted) {
  for (const ir::OpId op : function.regions[region].ops) {
    if (op == wanted) return {{region, op}};
    for (const ir::RegionId inner : ir::regions_of(function.ops[op])) {
      std::vector<Step> path = path_to(function, inner, wanted);
      if (path.empty()) continue;
      path.insert(path.begin(), {region, op});
      return path;
    }
  }
  return {};
}

// Whether all threads of the block enter the operation's regions alike.
bool entered_together(const ir::Function& function, ir::OpId op) {
  return !ir::control_varies_in(function, op, ir::Level::kBlock);
}

}  // namespace

std::string_view name(ReportKind kind) {
  switch (kind) {
    case ReportKind::kRace: return "race";
    case ReportKind::kDeadlock: return "deadlock";
    case ReportKind::kDivergence: return "divergence";
    case ReportKind::kUninitialised: return "uninitialised";
    case ReportKind::kOutOfBounds: return "out-of-bounds";
    case ReportKind::kMisaligned: return "misaligned";
    case ReportKind::kMulticast: return "multicast-differs";
    case ReportKind::kAssertion: return "assertion";
    case ReportKind::kDivisionByZero: return "division-by-zero";
    case ReportKind::kOverrun: return "phase-overrun";
    case ReportKind::kSteps: return "too-many-steps";
    case ReportKind::kUnfinished: return "unfinished";
  }
  return "";
}

std::int64_t Outcome::count(ReportKind kind) const {
  std::int64_t out = 0;
  for (const Report& report : reports) out += report.kind == kind ? 1 : 0;
  return out;
}

bool block_barrier_fits(const ir::Function& function, ir::OpId first, ir::OpId second) {
  const std::vector<Step> to_first = path_to(function, function.body, first);
  const std::vector<Step> to_second = path_to(function, function.body, second);
  const std::size_t depth = std::min(to_first.size(), to_second.size());
  for (std::size_t i = 0; i < depth; ++i) {
    if (to_first[i].op != to_second[i].op) return to_first[i].region == to_second[i].region;
    if (!entered_together(function, to_first[i].op)) return false;
  }
  return false;
}

Report* Reporter::open(ReportKind kind, ir::OpId first, ir::OpId second) {
  const auto [place, fresh] = places_.try_emplace({kind, first, second}, kDropped);
  if (!fresh) {
    if (place->second == kDropped) {
      ++outcome_.reports_dropped;
    } else {
      ++outcome_.reports[place->second].count;
    }
    return nullptr;
  }
  if (outcome_.reports.size() >= reports_max_) {
    ++outcome_.reports_dropped;
    return nullptr;
  }
  place->second = outcome_.reports.size();
  Report report;
  report.kind = kind;
  report.schedule_seed = seed_;
  report.count = 1;
  outcome_.reports.push_back(std::move(report));
  return &outcome_.reports.back();
}

}  // namespace kiln::sim
