#include "explain/time/sm.h"

#include <algorithm>
#include <queue>

#include "support/check.h"

namespace kiln::explain {

namespace {

using sim::TraceKind;

constexpr std::size_t kQuarters = 4;

// Serves one after the other.
struct Server {
  double free = 0;
  double busy = 0;

  double take(double from, double cycles) {
    if (cycles <= 0) return from;
    free = std::max(free, from) + cycles;
    busy += cycles;
    return free;
  }
};

struct Quarter {
  Server tensor;
  Server issue;
  std::array<Server, target::kUnits.size()> units;
};

struct Sm {
  std::array<Quarter, kQuarters> quarters;
  Server shared;
  Server read;
  Server written;
  Server dram;
};

struct Started {
  std::uint32_t group;
  double done;
};

struct Warp {
  std::size_t next = 0;
  double free = 0;
  double matrix_free = 0;  // when the next instruction of the warp may add to the last one's result
  double matrix_done = 0;
  std::vector<Started> products;
  std::vector<Started> copies;
  std::vector<Started> stores;
};

struct Generation {
  std::uint32_t missing = 0;
  bool by_copy = false;  // the last arrival is a copy's
  double at = 0;
  std::vector<std::uint32_t> waiting;  // warps
};

struct Meeting {
  std::uint32_t missing = 0;
  double at = 0;
  std::vector<std::uint32_t> waiting;
};

// A block (cluster) at work.
struct Block {
  std::size_t left = 0;  // warps
  double end = 0;
  std::vector<Warp> warps;
  std::vector<double> done;  // by step
  std::vector<Generation> generations;
  std::vector<Meeting> meetings;
};

struct Turn {
  double at;
  std::uint32_t block;
  std::uint32_t warp;
  friend bool operator>(const Turn& a, const Turn& b) {
    if (a.at != b.at) return a.at > b.at;
    return a.block != b.block ? a.block > b.block : a.warp > b.warp;
  }
};

class Clockwork {
 public:
  Clockwork(const BlockSteps& steps, const SmShare& share)
      : steps_(steps), share_(share), t_(share.timing), sms_(steps.blocks) {}

  SmRun run() {
    const auto resident = static_cast<std::uint32_t>(std::min(share_.resident, share_.blocks));
    if (steps_.count == 0) return idle();
    blocks_.resize(resident);
    for (std::uint32_t b = 0; b < resident; ++b) begin(b, 0);
    while (!turns_.empty()) {
      const Turn turn = turns_.top();
      turns_.pop();
      advance(turn);
    }
    KILN_CHECK(ended_ == share_.blocks, "{} of {} blocks come to an end", ended_, share_.blocks);
    return result();
  }

 private:
  void begin(std::uint32_t number, double at) {
    ++begun_;
    Block& block = blocks_[number];
    block = Block{};
    block.left = steps_.warps.size();
    block.warps.resize(steps_.warps.size());
    block.done.assign(steps_.count, 0);
    block.generations.resize(steps_.generations.size());
    for (std::size_t g = 0; g < steps_.generations.size(); ++g)
      block.generations[g].missing = steps_.generations[g];
    block.meetings.resize(steps_.meetings.size());
    for (std::size_t m = 0; m < steps_.meetings.size(); ++m)
      block.meetings[m].missing = steps_.meetings[m];
    const double first = at + t_.block_cycles;
    for (std::uint32_t w = 0; w < block.warps.size(); ++w) {
      block.warps[w].free = first;
      schedule(number, w);
    }
  }

  // The warp's next step waits for nobody else, or is not ready to be timed.
  void schedule(std::uint32_t number, std::uint32_t w) {
    Block& block = blocks_[number];
    Warp& warp = block.warps[w];
    const auto& steps = steps_.warps[w];
    if (warp.next == steps.size()) return leave(number, warp);
    const Step& step = steps[warp.next];
    double at = warp.free;
    if (step.kind == TraceKind::kEventWait && step.waits_for != Step::kNone) {
      Generation& generation = block.generations[step.waits_for];
      if (generation.missing > 0) return generation.waiting.push_back(w);
      at = std::max(at, generation.at);
    } else if (step.kind == TraceKind::kMma || step.kind == TraceKind::kProduct) {
      at = std::max(at, warp.matrix_free);
    }
    for (const std::uint32_t load : step.needs) {
      if (load != Step::kNone) at = std::max(at, block.done[load]);
    }
    turns_.push({at, number, w});
  }

  void leave(std::uint32_t number, const Warp& warp) {
    Block& block = blocks_[number];
    block.end = std::max({block.end, warp.free, warp.matrix_done});
    if (--block.left > 0) return;
    ++ended_;
    run_.ends.push_back(block.end);
    if (begun_ < share_.blocks) begin(number, block.end);
  }

  void meet(std::uint32_t number, std::uint32_t w, const Step& step) {
    Block& block = blocks_[number];
    Meeting& meeting = block.meetings[step.meeting];
    const double came = block.warps[w].free;
    meeting.at = std::max(meeting.at, came);
    meeting.waiting.push_back(w);
    if (--meeting.missing > 0) return;
    const std::vector<std::uint32_t> all = std::move(meeting.waiting);
    for (const std::uint32_t other : all) {
      Warp& warp = block.warps[other];
      const Step& its = steps_.warps[other][warp.next];
      run_.waiting.barriers += meeting.at + t_.barrier_latency - warp.free;
      spend(warp, meeting.at + t_.barrier_latency);
      block.done[its.number] = warp.free;
      ++warp.next;
    }
    for (const std::uint32_t other : all) schedule(number, other);
  }

  void spend(Warp& warp, double until) {
    run_.warps += until - warp.free;
    warp.free = until;
  }

  // What the warp has waited for until its turn at the step came. A wait for a phase that nobody had to complete (of
  // a ring's slots, the first time around) waits for no event: only for the loads that it needs.
  double& waited_for(const Step& step, const Block& block) {
    if (step.kind == TraceKind::kMma || step.kind == TraceKind::kProduct)
      return run_.waiting.products;
    if (step.kind != TraceKind::kEventWait || step.waits_for == Step::kNone)
      return run_.waiting.loads;
    return block.generations[step.waits_for].by_copy ? run_.waiting.copies : run_.waiting.events;
  }

  void advance(const Turn& turn) {
    Block& block = blocks_[turn.block];
    Warp& warp = block.warps[turn.warp];
    const Step& step = steps_.warps[turn.warp][warp.next];
    if (turn.at > warp.free) {
      waited_for(step, block) += turn.at - warp.free;
      spend(warp, turn.at);
    }
    const double ready = compute(step, warp, turn.block, turn.warp, turn.at);
    if (step.kind == TraceKind::kBarrier && step.meeting != Step::kNone)
      return meet(turn.block, turn.warp, step);
    act(step, block, turn, ready);
    ++warp.next;
    for (std::uint32_t i = step.arrives_begin; i < step.arrives_end; ++i) {
      arrive(turn.block, steps_.arrivals[i], block.done[step.number],
             step.kind == TraceKind::kBulkLoad || step.kind == TraceKind::kAsyncCopy);
    }
    schedule(turn.block, turn.warp);
  }

  void arrive(std::uint32_t number, std::uint32_t which, double at, bool copy) {
    Generation& generation = blocks_[number].generations[which];
    if (at >= generation.at) generation.by_copy = copy;
    generation.at = std::max(generation.at, at);
    if (--generation.missing > 0) return;
    const std::vector<std::uint32_t> waiting = std::move(generation.waiting);
    generation.waiting.clear();
    for (const std::uint32_t w : waiting) schedule(number, w);
  }

  Sm& sm_of(std::uint32_t w) { return sms_[w / steps_.warps_each]; }
  Quarter& quarter_of(std::uint32_t block, std::uint32_t w) {
    return sm_of(w).quarters[(w % steps_.warps_each + block * steps_.warps_each) % kQuarters];
  }

  // What the warp computes and issues in front of the step proper.
  double compute(const Step& step, Warp& warp, std::uint32_t block, std::uint32_t w, double at) {
    Quarter& quarter = quarter_of(block, w);
    const double slots = step.before.instructions + step.slots;
    double end = std::max(quarter.issue.take(at, slots), at + slots * t_.issue_gap);
    for (std::size_t u = 0; u < quarter.units.size(); ++u) {
      end = std::max(end, quarter.units[u].take(at, step.before.cycles[u]));
    }
    end += step.before.latency;
    run_.warps += end - warp.free;
    warp.free = end;
    return end;
  }

  void act(const Step& step, Block& block, const Turn& turn, double at) {
    Warp& warp = block.warps[turn.warp];
    double& done = block.done[step.number];
    switch (step.kind) {
      case TraceKind::kMma: multiply(step, turn, warp, at); break;
      case TraceKind::kProduct: start_product(step, turn, warp, at); break;
      case TraceKind::kLoad:
      case TraceKind::kElement:
      case TraceKind::kStore: touch(step, turn, warp, at, done); return;
      case TraceKind::kCopy: copy(step, turn, warp, at); break;
      case TraceKind::kAsyncCopy:
        done = transfer(step, turn, at) + t_.async_latency;
        warp.copies.push_back({step.group, done});
        return;
      case TraceKind::kBulkLoad: done = transfer(step, turn, at) + t_.bulk_latency; return;
      case TraceKind::kBulkStore:
        done = store(step, turn, at);
        warp.stores.push_back({step.group, done});
        return;
      case TraceKind::kTrigger: break;
      case TraceKind::kEventWait: spend(warp, at + t_.event_latency); break;
      case TraceKind::kBarrier: break;  // of the warp alone
      case TraceKind::kProductWait: await(warp, warp.products, step, run_.waiting.products); break;
      case TraceKind::kCopyWait: await(warp, warp.copies, step, run_.waiting.copies); break;
      case TraceKind::kBulkWait: await(warp, warp.stores, step, run_.waiting.stores); break;
    }
    done = std::max(done, warp.free);
  }

  void await(Warp& warp, const std::vector<Started>& started, const Step& step, double& waiting) {
    for (auto it = started.rbegin(); it != started.rend(); ++it) {
      if (it->group >= step.group) continue;
      if (it->done > warp.free) {
        waiting += it->done - warp.free;
        spend(warp, it->done);
      }
      break;  // they are done in order
    }
  }

  void multiply(const Step& step, const Turn& turn, Warp& warp, double at) {
    const double from = std::max(at, warp.matrix_free);
    const double done = quarter_of(turn.block, turn.warp).tensor.take(from, step.tensor);
    warp.matrix_free = std::max(done - step.tensor + t_.mma_latency, done);
    warp.matrix_done = done + t_.mma_latency;
    spend(warp, std::max(at, done - step.tensor));
  }

  void start_product(const Step& step, const Turn& turn, Warp& warp, double at) {
    Sm& sm = sm_of(turn.warp);
    const double multiplied =
        quarter_of(turn.block, turn.warp).tensor.take(std::max(at, warp.matrix_free), step.tensor);
    const double read = sm.shared.take(at, step.shared);
    const double done = std::max(multiplied, read);
    warp.matrix_free = done;
    warp.products.push_back({step.group, done + t_.product_latency});
  }

  // When the bytes from global memory have come to the SM.
  double transfer(const Step& step, const Turn& turn, double at) {
    Sm& sm = sm_of(turn.warp);
    double landed = sm.read.take(at, step.read / share_.read_bytes_per_cycle);
    landed = std::max(
        landed, sm.dram.take(at, step.read * share_.read_from_dram / share_.dram_bytes_per_cycle));
    landed = std::max(landed, sm.shared.take(at, step.shared));
    return landed + t_.l2_latency + share_.latency_of_dram * (t_.dram_latency - t_.l2_latency);
  }

  double store(const Step& step, const Turn& turn, double at) {
    Sm& sm = sm_of(turn.warp);
    double gone = sm.shared.take(at, step.shared);
    gone = std::max(gone, sm.written.take(at, step.stored / share_.written_bytes_per_cycle));
    return std::max(gone, sm.dram.take(at, step.written * share_.written_to_dram /
                                               share_.dram_bytes_per_cycle));
  }

  // A load goes on without the warp until something needs its values; so does a write to global memory.
  void touch(const Step& step, const Turn& turn, Warp& warp, double at, double& done) {
    Sm& sm = sm_of(turn.warp);
    if (step.kind == TraceKind::kStore && warp.matrix_done > at) {
      run_.waiting.products += warp.matrix_done - at;
      spend(warp, warp.matrix_done);
      at = warp.free;
    }
    if (step.read > 0) {
      done = transfer(step, turn, at);
    } else if (step.written > 0) {
      done = store(step, turn, at);
    } else {
      done = sm.shared.take(at, step.shared) + t_.shared_latency;
    }
    const bool holds_up = !step.loads && step.written == 0;
    if (!holds_up) return;
    if (step.read > 0) run_.waiting.loads += std::max(0.0, done - warp.free);
    spend(warp, std::max(warp.free, done));
  }

  // Through registers: the warp waits for what it has loaded.
  void copy(const Step& step, const Turn& turn, Warp& warp, double at) {
    double done = at;
    if (step.read > 0) {
      done = transfer(step, turn, at);
      run_.waiting.loads += done - at;
    } else if (step.shared > 0) {
      done = sm_of(turn.warp).shared.take(at, step.shared) + t_.shared_latency;
    }
    if (step.written > 0) (void)store(step, turn, done);
    spend(warp, std::max(warp.free, done));
  }

  // Blocks that do nothing.
  SmRun idle() {
    for (std::int64_t b = 0; b < share_.blocks; ++b) {
      run_.cycles =
          static_cast<double>(t_.block_cycles) * static_cast<double>(b / share_.resident + 1);
      run_.ends.push_back(run_.cycles);
    }
    return std::move(run_);
  }

  SmRun result() {
    constexpr auto kAlike = static_cast<double>(kQuarters);
    for (const double end : run_.ends) run_.cycles = std::max(run_.cycles, end);
    const auto sms = static_cast<double>(sms_.size());
    for (const Sm& sm : sms_) {
      run_.cycles = std::max({run_.cycles, sm.written.free, sm.dram.free});
      run_.busy.shared += sm.shared.busy / sms;
      run_.busy.read += sm.read.busy / sms;
      run_.busy.written += sm.written.busy / sms;
      run_.busy.dram += sm.dram.busy / sms;
      for (const Quarter& quarter : sm.quarters) {
        run_.busy.tensor += quarter.tensor.busy / kAlike / sms;
        run_.busy.issue += quarter.issue.busy / kAlike / sms;
        for (std::size_t u = 0; u < quarter.units.size(); ++u)
          run_.busy.units[u] += quarter.units[u].busy / kAlike / sms;
      }
    }
    return std::move(run_);
  }

  const BlockSteps& steps_;
  const SmShare& share_;
  const target::Timing& t_;
  std::vector<Sm> sms_;
  std::vector<Block> blocks_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::int64_t begun_ = 0;
  std::int64_t ended_ = 0;
  SmRun run_;
};

}  // namespace

SmRun run_sm(const BlockSteps& steps, const SmShare& share) {
  return Clockwork(steps, share).run();
}

}  // namespace kiln::explain
