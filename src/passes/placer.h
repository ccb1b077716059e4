// Puts barriers, fences and waits in front of the operations that need them: one thread team after
// the other goes through the program with what it did since its last barrier.
//
// Waits for asynchronous copies come as marks that count-copies counts afterwards: `copy_wait`
// means the copies that the program does not wait for itself, `future_wait` those of a future or
// event.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/module.h"
#include "ir/vary.h"
#include "passes/kernel_facts.h"
#include "support/function_ref.h"

namespace kiln::passes {

class Placer {
 public:
  // `one_warp`: the block is no larger than a warp.
  Placer(ir::Function& function, ir::RegionId body, bool one_warp);
  void run();
  // Operations that need a barrier of the cluster where not all threads of a block come by.
  [[nodiscard]] const std::set<ir::OpId>& impossible() const { return impossible_; }

 private:
  // Who waits for whom.
  enum class Meeting : std::uint8_t { kNone, kWarpgroup, kTeam, kCluster };
  struct State {
    Accesses accesses;
    bool reachable = true;
    bool unjoined = false;           // asynchronous regions run beside this
    bool waited = false;             // threads have waited for events since the last barrier
    std::set<ir::ValueId> own = {};  // among them those that sema made for one copy
    bool some_left = false;          // the kernel, others not
    bool unmet = false;  // since the last barrier of the cluster the block has used what multicasts
                         // bring, so that another block may not yet send the next

    [[nodiscard]] bool copies_in_flight() const;
    [[nodiscard]] bool has_products() const;
    friend bool operator==(const State&, const State&) = default;
  };
  // How a loop was entered, and what it left then.
  struct Round {
    State before;
    int team = kBlockTeam;
    int nest = 0;
    bool diverged = false;
    State after;
  };
  // Where a loop's body is left in the middle.
  struct Exits {
    State breaks{{}, false};
    State continues{{}, false};
  };

  // What is known of a loop's trips.
  struct Trips {
    bool leaves_at_end;  // behind the last one, and not by `break` alone
    bool again;          // there may be a second one
  };

  State place(ir::RegionId region, State state);
  State enter(ir::OpId id, ir::RegionId region, std::size_t& index, State state);
  State enter_loop(ir::RegionId body, const State& state, const Trips& trips);
  State go_round(ir::RegionId body, const State& state, const Trips& trips);
  State enter_inthreads(const ir::Inthreads& op, State state);
  void await_tracked(ir::RegionId body);
  State enter_if(const ir::If& op, const State& state);
  State enter_meeting(const ir::Op& op, State state);

  [[nodiscard]] static State merge(State a, const State& b);
  [[nodiscard]] State with(State state, const Accesses& more) const;
  [[nodiscard]] Accesses stamped(Accesses accesses) const;
  [[nodiscard]] State waited(State state) const;
  [[nodiscard]] static State landed(State state, ir::ValueId label);
  [[nodiscard]] static State fenced(State state);
  [[nodiscard]] State fenced(State state, bool global) const;
  [[nodiscard]] bool outlasts_barrier(const Access& access) const;
  [[nodiscard]] State behind_barrier(State state, bool of_cluster) const;
  void await(Accesses& accesses, FunctionRef<bool(ir::ValueId)> is_awaited, bool again) const;
  void end_in_block(Accesses& accesses, FunctionRef<bool(const Access&)> is_over) const;
  [[nodiscard]] State behind_meeting(State state) const;
  [[nodiscard]] State behind_event(State state, ir::ValueId event) const;
  [[nodiscard]] State left(State state) const;

  [[nodiscard]] bool touches_products(ir::OpId id, const State& state) const;
  [[nodiscard]] bool uses_products(const ir::Op& op, const State& state) const;
  [[nodiscard]] bool can_wait_inside(ir::RegionId region, std::size_t index,
                                     const State& state) const;
  [[nodiscard]] Meeting needed_by_own_event(const ir::Op& op, const State& state) const;
  [[nodiscard]] Meeting needed(ir::RegionId region, std::size_t index, const State& state) const;
  [[nodiscard]] Meeting possible(ir::RegionId region, std::size_t index, const State& state);
  [[nodiscard]] Meeting between(const Access& before, const Access& now) const;
  [[nodiscard]] Accesses of_regions(ir::RegionId region, std::size_t index) const;
  [[nodiscard]] Accesses wanted(const ir::Op& op) const;
  [[nodiscard]] bool is_unfenced(const Access& access, bool global) const;
  [[nodiscard]] bool is_divergent(ir::ValueId value) const;
  [[nodiscard]] bool is_whole_team(const ir::Barrier& barrier) const;
  [[nodiscard]] bool is_hidden(ir::ValueId event) const;
  [[nodiscard]] bool takes_whole_team(ir::ValueId event) const;
  [[nodiscard]] bool meets(ir::ValueId event) const;
  [[nodiscard]] bool has_as_many(ir::ValueId root, ir::ValueId event) const;
  [[nodiscard]] bool uses_multicast(const ir::Op& op) const;
  [[nodiscard]] bool reaches_blocks(const ir::Op& op) const;
  [[nodiscard]] const Team& team() const { return facts_.team(team_); }

  [[nodiscard]] std::vector<ir::OpData> waits(const State& state) const;
  [[nodiscard]] std::vector<ir::OpData> before_trigger(const ir::Trigger& trigger,
                                                       const State& state) const;
  [[nodiscard]] ir::Barrier barrier(Meeting meeting) const;
  std::size_t insert(ir::RegionId region, std::size_t index, const std::vector<ir::OpData>& ops);
  void append(ir::RegionId region, ir::OpData data);
  bool wait_at_the_end(ir::RegionId body);
  [[nodiscard]] bool is_used_next_trip(ir::RegionId body, const State& state) const;
  [[nodiscard]] bool jumps(ir::RegionId body) const;

  ir::Function& function_;
  ir::RegionId body_;
  bool one_warp_;
  KernelFacts facts_;
  mutable ir::Varying varying_;  // its answers do not change, it remembers them
  int team_ = kBlockTeam;
  int nest_ = 0;
  int nests_ = 0;
  std::vector<Exits> exits_;
  std::map<ir::RegionId, std::vector<Round>> rounds_;  // by the loop's body
  std::map<ir::ValueId, std::set<int>> triggered_by_;  // teams, by event
  std::set<ir::ValueId> in_two_halves_;  // events that whoever triggers them waits for, see `meets`
  std::set<ir::ValueId> multicast_;      // buffers, and events of such copies that sema made
  std::set<ir::ValueId> awaited_;        // events that regions have waited for
  std::set<ir::OpId> impossible_;        // operations in front of which a cluster cannot meet
  bool diverged_ = false;                // inside an `if` that not all threads of the team enter
  bool apart_ = false;                   // inside a loop that they go round in different trips
};

}  // namespace kiln::passes
