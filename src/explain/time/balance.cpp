#include "explain/time/balance.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace kiln::explain {

namespace {

// An SM's blocks. Each has as much to do as its length; all have done equally much per cycle.
struct Residents {
  double at = 0;    // cycles
  double done = 0;  // by each block that was there all the time
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;  // in terms of `done`
};

struct End {
  double at;
  std::size_t sm;
  friend bool operator>(const End& a, const End& b) {
    return a.at != b.at ? a.at > b.at : a.sm > b.sm;
  }
};

class Chip {
 public:
  explicit Chip(const Pace& pace) : pace_(pace), sms_(static_cast<std::size_t>(pace.sms)) {}

  template <class Length>
  double run(std::size_t blocks, Length&& length) {
    std::size_t next = 0;
    for (std::int64_t round = 0; round < pace_.resident; ++round) {
      for (std::size_t s = 0; s < sms_.size() && next < blocks; ++s) {
        sms_[s].ends.push(length(next++));
      }
    }
    for (std::size_t s = 0; s < sms_.size(); ++s) await(s);
    double last = 0;
    while (!ends_.empty()) {
      const End end = ends_.top();
      ends_.pop();
      Residents& sm = sms_[end.sm];
      sm.at = last = end.at;
      sm.done = sm.ends.top();
      sm.ends.pop();
      if (next < blocks) sm.ends.push(sm.done + length(next++));
      await(end.sm);
    }
    return last;
  }

 private:
  // What each of so many blocks takes: in between as if each further one cost as much as the last.
  [[nodiscard]] double cycles(std::size_t blocks) const {
    if (pace_.resident < 2) return pace_.alone;
    return pace_.alone + (pace_.together - pace_.alone) * static_cast<double>(blocks - 1) /
                             static_cast<double>(pace_.resident - 1);
  }

  void await(std::size_t s) {
    const Residents& sm = sms_[s];
    if (sm.ends.empty()) return;
    ends_.push({sm.at + (sm.ends.top() - sm.done) * cycles(sm.ends.size()), s});
  }

  Pace pace_;
  std::vector<Residents> sms_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace

double lengthened(const std::vector<float>& lengths, const Pace& pace) {
  if (lengths.empty()) return 1;
  const double same = Chip(pace).run(lengths.size(), [](std::size_t) { return 1.0; });
  return Chip(pace).run(lengths.size(), [&](std::size_t i) { return double{lengths[i]}; }) / same;
}

}  // namespace kiln::explain
