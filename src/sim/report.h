// Collects reports: one for each kind and pair of operations, however often it is seen.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sim/sim.h"

namespace kiln::sim {

class Reporter {
 public:
  Reporter(const Options& options, Outcome& outcome)
      : reports_max_(options.reports_max), outcome_(outcome) {}

  // The seed that reports are filed under from now on.
  void begin_schedule(std::uint64_t seed) { seed_ = seed; }

  // Whether anything has been seen.
  [[nodiscard]] bool any() const { return !places_.empty(); }

  // Counts one sighting. The new report to be filled in, or null when it is a repeat or too many.
  // The pointer is good until the next call.
  Report* open(ReportKind kind, ir::OpId first, ir::OpId second = {});

 private:
  static constexpr std::size_t kDropped = SIZE_MAX;

  std::size_t reports_max_;
  Outcome& outcome_;
  std::uint64_t seed_ = 0;
  struct Key {
    ReportKind kind;
    ir::OpId first;
    ir::OpId second;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::uint64_t ops = (std::uint64_t{key.first.index} << 32) | key.second.index;
      return static_cast<std::size_t>((ops + static_cast<std::uint64_t>(key.kind)) *
                                      0x9e3779b97f4a7c15ULL);
    }
  };
  std::unordered_map<Key, std::size_t, Hash> places_;  // index in the outcome's reports
};

// Whether a block barrier may stand between two operations of a kernel: they are distinct, and what
// encloses both is reached by all threads of the block alike.
[[nodiscard]] bool block_barrier_fits(const ir::Function& function, ir::OpId first,
                                      ir::OpId second);

}  // namespace kiln::sim
