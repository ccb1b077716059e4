// `inthreads` regions and events of one block in the reference: asynchronous regions are flows that
// take turns, events count how often each kind of thread has triggered them.
//
// Generation g of a slot is complete when everybody who triggers the event anywhere in the program
// (the threads of a region are one, those of the block outside of regions are one) has done so
// g + 1 times, or g times for an event that starts ready. A region's warpgroups are one flow: where they take turns
// and hand each other nothing on, nobody waits here.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "reference/turns.h"

namespace kiln::reference {

// The threads of a region, first and number; (0, 0): the block.
using Team = std::pair<std::int64_t, std::int64_t>;

class Regions {
 public:
  explicit Regions(const ir::Function& function) : function_(function) {}

  // Forgets what the block before did.
  void begin_block(ir::RegionId body, std::int64_t threads);
  [[nodiscard]] std::int64_t block_threads() const { return block_threads_; }

  // Runs `body` beside what follows, once what the team was given before is done.
  void start(Team team, std::function<void()> body);
  // Runs `body` now, as the team's.
  void run_as(Team team, const std::function<void()>& body);
  // Whether the flow that runs is the block's, outside of all regions, and others run beside it.
  [[nodiscard]] bool must_join() const;
  // Whether what runs is the block's, outside of all regions, and nothing runs beside it.
  [[nodiscard]] bool is_block() const;
  void join();

  void trigger(ir::ValueId event, std::int64_t slot);
  // False: it never completes, as all wait for each other. `generation` below 0: the one after
  // that which the team waited for last.
  [[nodiscard]] bool wait(ir::OpId op, ir::ValueId event, std::int64_t slot,
                          std::int64_t generation);
  // Where everybody waited when nobody could go on; empty: that has not happened.
  [[nodiscard]] const std::vector<ir::OpId>& stuck_at() const { return stuck_at_; }

 private:
  using Slot = std::pair<ir::ValueId, std::int64_t>;

  void look(ir::RegionId region, Team team);
  [[nodiscard]] std::int64_t completed(ir::ValueId event, std::int64_t slot) const;
  [[nodiscard]] Team current_team() const;
  void note_memory(const ir::Op& op, Team team);
  [[nodiscard]] bool only_takes_turns(ir::ValueId event) const;
  void note_stuck();

  const ir::Function& function_;
  std::int64_t block_threads_ = 0;
  std::map<ir::ValueId, std::set<Team>> triggerers_;
  std::map<Team, std::set<ir::ValueId>> read_;     // buffers, by others than copies
  std::map<Team, std::set<ir::ValueId>> written_;  // the same
  std::map<std::pair<Slot, Team>, std::int64_t> triggered_;
  std::map<std::pair<Slot, Team>, std::int64_t> waited_;  // the generation to wait for next
  std::map<std::size_t, Team> teams_;                     // of flows
  std::map<std::size_t, ir::OpId> waits_;                 // of flows that wait for an event
  std::vector<ir::OpId> stuck_at_;
  Turns turns_;  // last: its flows use all of the above until it ends
};

}  // namespace kiln::reference
