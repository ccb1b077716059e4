#include "sim/tally.h"

#include <algorithm>
#include <bit>

namespace kiln::sim {

namespace {

constexpr std::int64_t kSectorBytes = 32;

std::size_t width_index(std::int64_t bytes) {
  if (bytes < 1 || bytes > 16) return 0;
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(bytes)));
}

// Distinct sectors that `count` accesses of `bytes` bytes touch.
std::int64_t distinct_sectors(const Request& request, std::int64_t bytes) {
  std::array<std::int64_t, 2 * kLanes> sectors;
  std::size_t count = 0;
  bool ascending = true;
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const std::int64_t first = request.address[i] / kSectorBytes;
    const std::int64_t last = (request.address[i] + bytes - 1) / kSectorBytes;
    for (std::int64_t sector = first; sector <= last; ++sector) {
      if (count > 0 && sectors[count - 1] == sector) continue;
      ascending = ascending && (count == 0 || sectors[count - 1] < sector);
      sectors[count++] = sector;
    }
  }
  if (ascending) return static_cast<std::int64_t>(count);
  const auto end = sectors.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(sectors.begin(), end);
  return std::unique(sectors.begin(), end) - sectors.begin();
}

std::int64_t slow_phase_conflicts(const std::int64_t* words, std::uint32_t count) {
  std::array<std::int64_t, kBanks> load = {};
  std::int64_t most = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::find(words, words + i, words[i]) != words + i) continue;
    most = std::max(most, ++load[static_cast<std::size_t>(words[i] % kBanks)]);
  }
  return std::max<std::int64_t>(most - 1, 0);
}

constexpr std::string_view kIssueNames[kIssues] = {
    "ld.global",     "st.global",      "ld.shared",     "st.shared",    "cp.async",
    "barrier.block", "barrier.group4", "barrier.group", "cp.async.wait"};

bool has_width(std::size_t issue) { return issue <= static_cast<std::size_t>(Issue::kAsyncCopy); }

}  // namespace

std::int64_t phase_conflicts(const std::int64_t* words, std::uint32_t count) {
  std::uint32_t busy = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t bank = 1U << (words[i] % kBanks);
    if ((busy & bank) != 0) return slow_phase_conflicts(words, count);
    busy |= bank;
  }
  return 0;
}

void Tally::shared_wavefronts(const Request& request, std::int64_t bytes) {
  const auto lanes = static_cast<std::uint32_t>(lanes_in_phase(bytes));
  const std::int64_t words_each = kBanks / lanes_in_phase(bytes);
  std::array<std::int64_t, kBanks> words;
  for (std::uint32_t begin = 0; begin < request.count; begin += lanes) {
    std::uint32_t count = 0;
    for (std::uint32_t i = begin; i < std::min(begin + lanes, request.count); ++i) {
      for (std::int64_t w = 0; w < words_each; ++w) {
        words[count++] = request.address[i] / kBankBytes + w;
      }
    }
    counters_.bank_conflicts += phase_conflicts(words.data(), count);
  }
}

void Tally::sectors(const Request& request, std::int64_t bytes) {
  if (request.count == 0) return;
  ++counters_.requests_global;
  counters_.sectors_global += distinct_sectors(request, bytes);
}

void Tally::issue(Issue what, std::int64_t bytes) {
  ++fixed_[static_cast<std::size_t>(what)][width_index(bytes)];
}

void Tally::global(Issue what, const Request& request, std::int64_t bytes) {
  if (request.count == 0) return;
  issue(what, bytes);
  sectors(request, bytes);
}

void Tally::shared(Issue what, const Request& request, std::int64_t bytes) {
  if (request.count == 0) return;
  issue(what, bytes);
  shared_wavefronts(request, bytes);
}

std::size_t Tally::intern(std::string_view instruction) {
  for (std::size_t i = 0; i < named_.size(); ++i) {
    if (named_[i].name == instruction) return i;
  }
  named_.push_back({std::string(instruction), 0});
  return named_.size() - 1;
}

Counters Tally::counters() const {
  Counters out = counters_;
  for (const Named& named : named_) {
    if (named.count != 0) out.instructions[named.name] += named.count;
  }
  for (std::size_t issue = 0; issue < kIssues; ++issue) {
    for (std::size_t width = 0; width < kWidths; ++width) {
      if (fixed_[issue][width] == 0) continue;
      std::string key(kIssueNames[issue]);
      if (has_width(issue)) key += "." + std::to_string(1 << width);
      out.instructions[key] += fixed_[issue][width];
    }
  }
  return out;
}

}  // namespace kiln::sim
