#include "campaign.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "minimise.h"
#include "mutate.h"
#include "support/file.h"
#include "support/format.h"
#include "support/hash.h"

namespace kiln::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCandidatesMax = 4;
constexpr int kTriesMax = 400;
constexpr int kTriesMaxOfSlow = 25;  // when each costs seconds

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string file_name(const std::string& failure) {
  std::string name;
  for (const char c : failure.substr(0, 60)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  return name + "_" + digest(failure).hex().substr(0, 6);
}

}  // namespace

bool Campaign::run() {
  const auto begin = Clock::now();
  replay();
  mutate();
  confirm_all();
  seconds_ = seconds_since(begin);
  tell_all();
  write_summary();
  return found_.empty();
}

void Campaign::replay() {
  Crew crew(options_.crew);
  for (std::size_t i = 0; i < corpus_.size(); ++i) {
    for (const std::uint64_t draw : {0, 5}) {
      crew.submit({.index = i, .draw = draw, .program = corpus_[i]});
    }
  }
  while (crew.busy()) {
    const Ending ending = crew.next();
    if (ending.failure.empty() || ending.resources) continue;
    note(ending.failure, {.draw = ending.task.draw, .kept = ending.task.program->name});
  }
  std::printf("%zu kept programs replayed\n", corpus_.size());
}

void Campaign::mutate() {
  const auto begin = Clock::now();
  auto told = begin;
  Crew crew(options_.crew);
  std::uint64_t next = options_.first;
  const std::uint64_t end = options_.first + options_.count;
  const auto time_left = [&] {
    return options_.minutes <= 0 || seconds_since(begin) < options_.minutes * 60;
  };
  while ((next < end && time_left()) || crew.busy()) {
    while (next < end && time_left() && crew.waiting() < 8 * options_.crew.workers) {
      crew.submit({.index = next, .draw = next});
      ++next;
    }
    const Ending ending = crew.next();
    if (ending.task.again) {
      compare(ending);
    } else {
      take(ending);
      const bool twice = ending.failure.empty() &&
                         (ending.said.accepted || ending.task.index % options_.again_in == 0);
      if (twice) {
        crew.submit({.index = ending.task.index,
                     .draw = ending.task.draw,
                     .but_not = ending.worker,
                     .again = true,
                     .hashes = ending.said.hashes});
      }
    }
    if (seconds_since(told) > 20) {
      told = Clock::now();
      std::printf("%llu mutants, %llu accepted, %zu kinds of failure, %.0f s\n",
                  static_cast<unsigned long long>(tried_),
                  static_cast<unsigned long long>(accepted_), found_.size(), seconds_since(begin));
      std::fflush(stdout);
    }
  }
}

void Campaign::take(const Ending& ending) {
  ++tried_;
  accepted_ += ending.said.accepted ? 1 : 0;
  ran_ += ending.said.ran ? 1 : 0;
  if (ending.failure.empty()) return;
  const std::size_t bytes =
      make_mutant(seeds_, options_.seed, ending.task.index).program.text.size();
  const Candidate candidate{.index = ending.task.index, .draw = ending.task.draw, .bytes = bytes};
  if (ending.resources) {
    Found& found = resources_[ending.failure];
    if (found.count++ == 0) found.candidates.push_back(candidate);
    return;
  }
  note(ending.failure, candidate);
}

// The second try of a mutant, in another process.
void Campaign::compare(const Ending& ending) {
  ++again_;
  if (!ending.failure.empty()) return;  // once in two times; `take` sees the next such
  for (std::size_t stage = 0; stage < kStageCount; ++stage) {
    if (ending.said.hashes[stage] == ending.task.hashes[stage]) continue;
    return note(format("two runs of `{}` differ", kStageNames[stage]),
                {.index = ending.task.index, .draw = ending.task.draw, .again = true});
  }
}

void Campaign::note(const std::string& failure, Candidate candidate) {
  Found& found = found_[failure];
  ++found.count;
  std::vector<Candidate>& all = found.candidates;
  all.push_back(std::move(candidate));
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.bytes < b.bytes; });
  if (all.size() > kCandidatesMax) all.pop_back();
}

Program Campaign::program_of(const Candidate& candidate) const {
  if (candidate.kept.empty()) return make_mutant(seeds_, options_.seed, candidate.index).program;
  const auto at = std::find_if(corpus_.begin(), corpus_.end(), [&](const Program& program) {
    return program.name == candidate.kept;
  });
  return *at;
}

// Each kind of failure is tried again alone, and made small. What does not happen again is told
// too.
void Campaign::confirm_all() {
  std::vector<std::pair<const std::string, Found>*> all;
  for (auto& entry : found_) all.push_back(&entry);
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::size_t number) {
    CrewOptions alone = options_.crew;
    alone.workers = 1;
    alone.scratch /= format("alone{}", number);
    Crew crew(alone);
    for (std::size_t i = next++; i < all.size(); i = next++) {
      confirm(all[i]->first, all[i]->second, crew);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(options_.crew.workers, all.size()); ++i) {
    threads.emplace_back(work, i);
  }
  for (std::thread& thread : threads) thread.join();
}

void Campaign::confirm(const std::string& failure, Found& found, Crew& crew) {
  for (const Candidate& candidate : found.candidates) {
    Program program = program_of(candidate);
    found.how = candidate.kept.empty()
                    ? format("--seed {} --only {}: {}", options_.seed, candidate.index,
                             make_mutant(seeds_, options_.seed, candidate.index).how)
                    : "kept program " + candidate.kept;
    found.program = serialised(program);
    if (candidate.again) {
      found.confirmed = true;
      return;
    }
    if (failure_of(program, candidate.draw, crew) != failure) continue;
    found.confirmed = true;
    const bool slow = failure.starts_with("over ") || failure.starts_with("no end");
    if (options_.minimise && candidate.kept.empty()) {
      program = minimise(std::move(program), candidate.draw, failure, crew,
                         slow ? kTriesMaxOfSlow : kTriesMax);
      found.program = serialised(program);
      if (!options_.keep.empty()) {
        const auto path = options_.keep / (file_name(failure) + (program.is_ir() ? ".kir" : ".co"));
        (void)write_file(path.string(), found.program);
      }
    }
    return;
  }
}

void Campaign::tell_all() const {
  for (const auto& [failure, found] : found_) {
    std::printf("\nFAILURE %s: %llu times%s\n  %s\n", failure.c_str(),
                static_cast<unsigned long long>(found.count),
                found.confirmed ? "" : " (not again when tried alone)", found.how.c_str());
    std::printf("%s\n", found.program.c_str());
  }
  for (const auto& [failure, found] : resources_) {
    std::printf("by the program itself: %s: %llu times, first --only %llu\n", failure.c_str(),
                static_cast<unsigned long long>(found.count),
                static_cast<unsigned long long>(found.candidates[0].index));
  }
  std::uint64_t failures = 0;
  for (const auto& [failure, found] : found_) failures += found.count;
  std::printf(
      "%llu mutants of %zu programs (seed %llu), %llu refused, %llu accepted, %llu run, %llu tried "
      "twice; %llu failures of %zu kinds; %.0f s\n",
      static_cast<unsigned long long>(tried_), seeds_.size(),
      static_cast<unsigned long long>(options_.seed),
      static_cast<unsigned long long>(tried_ - accepted_),
      static_cast<unsigned long long>(accepted_), static_cast<unsigned long long>(ran_),
      static_cast<unsigned long long>(again_), static_cast<unsigned long long>(failures),
      found_.size(), seconds_);
}

void Campaign::write_summary() const {
  if (options_.summary.empty()) return;
  const std::string text =
      format("{{\"passed\": {}, \"failed\": {}}}\n", found_.empty() ? 1 : 0, found_.size());
  (void)write_file(options_.summary.string(), text);
}

}  // namespace kiln::fuzz
