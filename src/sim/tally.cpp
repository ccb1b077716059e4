#include "sim/tally.h"

#include <algorithm>
#include <bit>

#include "target/timing.h"

namespace kiln::sim {

namespace {

std::size_t width_index(std::int64_t bytes) {
  if (bytes < 1 || bytes > 16) return 0;
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(bytes)));
}

// Distinct pieces of global memory.
struct Pieces {
  std::int64_t sectors = 0;
  std::int64_t lines = 0;
};

// Of sectors in ascending order, each once.
Pieces pieces_of(const std::int64_t* begin, const std::int64_t* end) {
  constexpr std::int64_t kSectorsOfLine = target::kLineBytes / target::kSectorBytes;
  Pieces out{.sectors = end - begin};
  std::int64_t last = -1;
  for (const std::int64_t* sector = begin; sector != end; ++sector) {
    out.lines += *sector / kSectorsOfLine != last ? 1 : 0;
    last = *sector / kSectorsOfLine;
  }
  return out;
}

// What accesses of `bytes` bytes touch.
Pieces distinct_pieces(const Request& request, std::int64_t bytes) {
  std::array<std::int64_t, 2 * kLanes> sectors;
  std::size_t count = 0;
  bool ascending = true;
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const std::int64_t first = request.address[i] / target::kSectorBytes;
    const std::int64_t last = (request.address[i] + bytes - 1) / target::kSectorBytes;
    for (std::int64_t sector = first; sector <= last; ++sector) {
      if (count > 0 && sectors[count - 1] == sector) continue;
      ascending = ascending && (count == 0 || sectors[count - 1] < sector);
      sectors[count++] = sector;
    }
  }
  std::int64_t* end = sectors.data() + count;
  if (ascending) return pieces_of(sectors.data(), end);
  std::sort(sectors.data(), end);
  return pieces_of(sectors.data(), std::unique(sectors.data(), end));
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
    "ld.global",     "st.global",     "ld.shared",      "st.shared",
    "cp.async",      "barrier.block", "barrier.group4", "barrier.group",
    "cp.async.wait", "event.trigger", "event.wait"};

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

void Tally::bulk(bool loads, std::int64_t global_bytes, std::int64_t sectors,
                 std::int64_t shared_bytes) {
  loads ? read_global(global_bytes) : wrote_global(global_bytes);
  loads ? wrote_shared(shared_bytes) : read_shared(shared_bytes);
  here().requests_global += weight_;
  here().sectors_global += weight_ * sectors;
}

Traffic Tally::traffic() {
  const Counters& counters = here();
  return {counters.bytes_global_read, counters.bytes_global_written,
          counters.wavefronts_shared, counters.requests_global + counters.requests_shared,
          counters.sectors_global,    counters.lines_global};
}

void Tally::shared_wavefronts(const Request& request, std::int64_t bytes) {
  const auto lanes = static_cast<std::uint32_t>(lanes_in_phase(bytes));
  const std::int64_t words_each = kBanks / lanes_in_phase(bytes);
  std::array<std::int64_t, kBanks> words;
  std::int64_t phases = 0;
  std::int64_t conflicts = 0;
  for (std::uint32_t begin = 0; begin < request.count; begin += lanes) {
    std::uint32_t count = 0;
    for (std::uint32_t i = begin; i < std::min(begin + lanes, request.count); ++i) {
      for (std::int64_t w = 0; w < words_each; ++w) {
        words[count++] = request.address[i] / kBankBytes + w;
      }
    }
    ++phases;
    conflicts += phase_conflicts(words.data(), count);
  }
  if (phases == 0) return;
  Counters& counters = here();
  counters.requests_shared += weight_;
  counters.wavefronts_shared += weight_ * (phases + conflicts);
  counters.bank_conflicts += weight_ * conflicts;
}

void Tally::sectors(const Request& request, std::int64_t bytes) {
  if (request.count == 0) return;
  Counters& counters = here();
  counters.requests_global += weight_;
  const Pieces pieces = distinct_pieces(request, bytes);
  counters.sectors_global += weight_ * pieces.sectors;
  counters.lines_global += weight_ * pieces.lines;
}

void Tally::issue(Issue what, std::int64_t bytes) {
  account().fixed[static_cast<std::size_t>(what)][width_index(bytes)] += weight_;
}

void Tally::issue(std::size_t interned, std::int64_t times) {
  std::vector<std::int64_t>& named = account().named;
  if (named.size() <= interned) named.resize(names_.size());
  named[interned] += weight_ * times;
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

void Tally::global_atomic(std::size_t interned, const Request& request, std::int64_t bytes) {
  if (request.count == 0) return;
  issue(interned, 1);
  sectors(request, bytes);
  read_global(request.count * bytes);
  wrote_global(request.count * bytes);
}

// Lanes that meet in a bank take turns, whether their words are one or several.
void Tally::shared_atomic(std::size_t interned, const Request& request, std::int64_t bytes) {
  if (request.count == 0) return;
  issue(interned, 1);
  std::array<std::int64_t, kBanks> load = {};
  for (std::uint32_t i = 0; i < request.count; ++i) {
    ++load[static_cast<std::size_t>(request.address[i] / kBankBytes % kBanks)];
  }
  const std::int64_t turns = *std::ranges::max_element(load);
  const std::int64_t least =
      (request.count * bytes + kBanks * kBankBytes - 1) / (kBanks * kBankBytes);
  Counters& counters = here();
  counters.requests_shared += weight_;
  counters.wavefronts_shared += weight_ * std::max(turns, least);
  counters.bank_conflicts += weight_ * std::max<std::int64_t>(turns - least, 0);
  read_shared(request.count * bytes);
  wrote_shared(request.count * bytes);
}

std::size_t Tally::intern(std::string_view instruction) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == instruction) return i;
  }
  names_.emplace_back(instruction);
  return names_.size() - 1;
}

namespace {

constexpr std::int64_t Counters::*kSums[] = {
    &Counters::bank_conflicts,       &Counters::wavefronts_shared,    &Counters::requests_shared,
    &Counters::bytes_global_read,    &Counters::bytes_global_written, &Counters::bytes_shared_read,
    &Counters::bytes_shared_written, &Counters::requests_global,      &Counters::sectors_global,
    &Counters::lines_global};

}  // namespace

// Number `at` of an account: its sums, its issues by width, its named instructions.
std::int64_t& Tally::number(Account& account, std::size_t at) {
  if (at < std::size(kSums)) return account.counters.*kSums[at];
  at -= std::size(kSums);
  if (at < kIssues * kWidths) return account.fixed[at / kWidths][at % kWidths];
  return account.named[at - kIssues * kWidths];
}

std::size_t Tally::numbers(const Account& account) {
  return std::size(kSums) + kIssues * kWidths + account.named.size();
}

Tally::Counted Tally::mark() {
  Counted out;
  Account& here = account();
  for (std::size_t at = 0; at < numbers(here); ++at) {
    if (const std::int64_t count = number(here, at); count != 0)
      out.numbers_.push_back({at, count});
  }
  return out;
}

Tally::Counted Tally::since(const Counted& mark) {
  Counted out = Tally::mark();
  auto before = mark.numbers_.begin();
  for (Counted::Number& now : out.numbers_) {
    const bool known = before != mark.numbers_.end() && before->at == now.at;
    now.count = (now.count - (known ? (before++)->count : 0)) / weight_;
  }
  std::erase_if(out.numbers_, [](const Counted::Number& number) { return number.count == 0; });
  return out;
}

void Tally::add(const Counted& counted) {
  if (counted.numbers_.empty()) return;
  Account& here = account();
  if (here.named.size() < names_.size()) here.named.resize(names_.size());
  for (const auto& [at, count] : counted.numbers_) number(here, at) += weight_ * count;
}

void Tally::attribute(Where where, std::size_t accounts) {
  where_ = std::move(where);
  accounts_.resize(std::max(accounts_.size(), accounts));
}

Tally Tally::fresh() const {
  Tally out;
  out.names_ = names_;
  return out;
}

void Tally::add(const Tally& other) {
  KILN_CHECK(other.accounts_.size() == 1 && other.names_.size() <= names_.size(),
             "counts of {} accounts are added up", other.accounts_.size());
  Account& mine = accounts_.front();
  const Account& more = other.accounts_.front();
  mine.counters.add(more.counters);
  for (std::size_t issue = 0; issue < kIssues; ++issue) {
    for (std::size_t width = 0; width < kWidths; ++width) {
      mine.fixed[issue][width] += more.fixed[issue][width];
    }
  }
  mine.named.resize(names_.size());
  for (std::size_t i = 0; i < more.named.size(); ++i) mine.named[i] += more.named[i];
}

void Tally::add_to(Counters& out, const Account& account) const {
  out.add(account.counters);
  for (std::size_t i = 0; i < account.named.size(); ++i) {
    if (account.named[i] != 0) out.instructions[names_[i]] += account.named[i];
  }
  for (std::size_t issue = 0; issue < kIssues; ++issue) {
    for (std::size_t width = 0; width < kWidths; ++width) {
      if (account.fixed[issue][width] == 0) continue;
      std::string key(kIssueNames[issue]);
      if (has_width(issue)) key += "." + std::to_string(1 << width);
      out.instructions[key] += account.fixed[issue][width];
    }
  }
}

Counters Tally::counters() const {
  Counters out;
  for (const Account& account : accounts_) add_to(out, account);
  return out;
}

std::vector<Counters> Tally::by_account() const {
  std::vector<Counters> out(accounts_.size());
  for (std::size_t i = 0; i < accounts_.size(); ++i) add_to(out[i], accounts_[i]);
  return out;
}

void Counters::add(const Counters& other) {
  for (const auto& [name, count] : other.instructions) instructions[name] += count;
  bank_conflicts += other.bank_conflicts;
  wavefronts_shared += other.wavefronts_shared;
  requests_shared += other.requests_shared;
  bytes_global_read += other.bytes_global_read;
  bytes_global_written += other.bytes_global_written;
  bytes_shared_read += other.bytes_shared_read;
  bytes_shared_written += other.bytes_shared_written;
  requests_global += other.requests_global;
  sectors_global += other.sectors_global;
  lines_global += other.lines_global;
  executions += other.executions;
}

}  // namespace kiln::sim
