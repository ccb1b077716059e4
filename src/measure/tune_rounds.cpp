#include "measure/tune_rounds.h"

#include <algorithm>

#include "measure/timing.h"
#include "support/format.h"

namespace kiln::measure {

namespace {

Result<void> check_all(TuneField& field, TuneOutcome& out,
                       const std::function<void(const std::string&)>& progress) {
  for (std::size_t i = 0; i < field.count(); ++i) {
    progress(format("checking {} of {}", i + 1, field.count()));
    auto verdict = field.check(i);
    if (!verdict) return Unexpected{verdict.error()};
    out.scores[i].verdict = std::move(*verdict);
    if (out.scores[i].verdict.kind == Verdict::Kind::kRight) out.order.push_back(i);
  }
  return {};
}

// Puts the best `keep` candidates at the front, and behind them the default.
std::size_t cut(std::span<std::size_t> order, std::size_t keep, bool has_default) {
  if (keep >= order.size()) return order.size();
  if (!has_default) return keep;
  const auto first = std::ranges::find(order, std::size_t{0});
  if (first == order.end() || first < order.begin() + static_cast<std::ptrdiff_t>(keep)) {
    return keep;
  }
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(keep), first, first + 1);
  return keep + 1;
}

}  // namespace

Verdict wrong(const reference::Comparison& found, std::string_view by) {
  const reference::Mismatch& first = *found.first;
  return {.kind = Verdict::Kind::kWrong,
          .reason =
              format("the first is {}: {} has {}, allowed error {:.3g}, got {}",
                     shape_text(first.coordinates), by, first.expected, first.bound, first.actual),
          .outside = found.outside,
          .elements = found.elements};
}

std::string_view name(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kRight: return "right";
    case Verdict::Kind::kRefused: return "refused";
    case Verdict::Kind::kWrong: return "wrong";
  }
  return "";
}

void report_wrong(const Verdict& verdict, const std::string& output, std::string_view which,
                  Diagnostics& diags) {
  diags
      .report<diag::ResultOutside>({}, format("{} by {}", output, which), verdict.outside,
                                   format("{} elements", verdict.elements))
      .note("{}", verdict.reason)
      .emit();
}

Result<TuneOutcome> play_rounds(TuneField& field, std::span<const TuneRound> rounds,
                                const std::function<void(const std::string&)>& progress) {
  TuneOutcome out;
  out.scores.resize(field.count());
  if (auto checked = check_all(field, out, progress); !checked) return Unexpected{checked.error()};
  std::size_t count = out.order.size();  // of those in the round
  for (std::size_t round = 0; round < rounds.size() && count > 0; ++round) {
    progress(format("measuring {}, round {} of {}", count, round + 1, rounds.size()));
    const auto which = std::span(out.order).first(count);
    const auto seconds = field.measure(which, rounds[round]);
    if (!seconds) return Unexpected{seconds.error()};
    for (std::size_t i = 0; i < count; ++i) {
      TuneScore& score = out.scores[which[i]];
      score.seconds = median((*seconds)[i]);
      ++score.rounds;
    }
    std::ranges::stable_sort(which, {}, [&](std::size_t i) { return out.scores[i].seconds; });
    count = cut(which, rounds[round].keep, field.has_default());
  }
  return out;
}

}  // namespace kiln::measure
