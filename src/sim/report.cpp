#include "sim/report.h"

namespace kiln::sim {

std::string_view name(ReportKind kind) {
  switch (kind) {
    case ReportKind::kRace: return "race";
    case ReportKind::kDeadlock: return "deadlock";
    case ReportKind::kDivergence: return "divergence";
    case ReportKind::kUninitialised: return "uninitialised";
    case ReportKind::kOutOfBounds: return "out-of-bounds";
    case ReportKind::kMisaligned: return "misaligned";
    case ReportKind::kAssertion: return "assertion";
    case ReportKind::kDivisionByZero: return "division-by-zero";
  }
  return "";
}

std::int64_t Outcome::count(ReportKind kind) const {
  std::int64_t out = 0;
  for (const Report& report : reports) out += report.kind == kind ? 1 : 0;
  return out;
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
