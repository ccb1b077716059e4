// `inthreads` regions and events of one block in the reference: asynchronous regions are flows that
// take turns, events count how often each kind of thread has triggered them.
//
// The threads of a region are one flow and do everything in step. Where nobody can go on so, all is done again with regions
// in parts: if their threads trigger an event that says fewer arrivals than they are, their units, warpgroups say, go ways of
// their own, and each is a flow. Generation g of a slot is complete when everybody who triggers the event anywhere in the
// program (a region or a part of it, or the threads of the block outside of regions) has done so g + 1 times, or g times for
// an event that starts ready; where parts have slots of their own, those parts that have the slot. An event that says its
// arrivals and is triggered by parts counts them.
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

// One of so many parts of a team that go ways of their own, all of one size.
struct Part {
  Team team;
  std::int64_t number = 0;
  std::int64_t parts = 1;

  // Its threads.
  [[nodiscard]] Team threads() const {
    const std::int64_t each = team.second / parts;
    return {team.first + number * each, each};
  }
};

// What a flow triggers a slot with.
struct Arrivals {
  std::int64_t threads = 0;  // those of the flow that do
  std::int64_t named = 0;    // those of the flow's team, all parts, that have this slot there
};

class Regions {
 public:
  // `in_parts`: threads of a region may go their ways in parts (see above); else all are in step.
  Regions(const ir::Function& function, bool in_parts) : function_(function), in_parts_(in_parts) {}

  // Forgets what the block before did.
  void begin_block(ir::RegionId body, std::int64_t threads);
  [[nodiscard]] std::int64_t block_threads() const { return block_threads_; }

  // The flows that a region is. `unit`: threads that stay together, as those of a warpgroup that multiplies do.
  [[nodiscard]] std::vector<Part> parts(Team team, std::int64_t unit);
  // Runs `body` beside what follows, once what the part was given before is done.
  void start(const Part& part, std::function<void()> body);
  // Runs `body` now, as the team's.
  void run_as(Team team, const std::function<void()>& body);
  // Parts of the team of the flow that runs.
  [[nodiscard]] std::size_t parts_now() const {
    return static_cast<std::size_t>(part_count(current().first));
  }
  [[nodiscard]] bool is_first_part() const { return current().second == 0; }
  // Whether a region that began could have been in parts.
  [[nodiscard]] bool has_parts() const { return has_parts_; }
  // Waits for the region's other parts, where there are any. False: one of them never comes.
  [[nodiscard]] bool meet(ir::OpId op);
  // Whether the flow that runs is the block's, outside of all regions, and others run beside it.
  [[nodiscard]] bool must_join() const;
  // Whether what runs is the block's, outside of all regions, and nothing runs beside it.
  [[nodiscard]] bool is_block() const;
  void join();

  // Whether the thread is of the team of the flow that runs, but of another part of it.
  [[nodiscard]] bool is_of_another_part(std::int64_t thread) const;
  void trigger(ir::ValueId event, std::int64_t slot, const Arrivals& arrivals);
  // False: it never completes, as all wait for each other. `generation` below 0: the one after
  // that which the team waited for last.
  [[nodiscard]] bool wait(ir::OpId op, ir::ValueId event, std::int64_t slot,
                          std::int64_t generation);
  // Where everybody waited when nobody could go on; empty: that has not happened.
  [[nodiscard]] const std::vector<ir::OpId>& stuck_at() const { return stuck_at_; }

 private:
  using Slot = std::pair<ir::ValueId, std::int64_t>;
  using Member = std::pair<Team, std::int64_t>;  // a team, the number of a part

  void look(ir::RegionId region, Team team, std::int64_t unit);
  [[nodiscard]] std::int64_t times(const Slot& slot, Team team) const;
  [[nodiscard]] std::int64_t completed(ir::ValueId event, std::int64_t slot) const;
  [[nodiscard]] std::int64_t part_count(Team team) const;
  [[nodiscard]] bool counts_arrivals(ir::ValueId event) const;
  [[nodiscard]] std::int64_t counted(ir::ValueId event, const Arrivals& arrivals) const;
  [[nodiscard]] Member current() const;
  [[nodiscard]] bool wait_at(ir::OpId op, Turns::Condition condition);
  void note_stuck();

  const ir::Function& function_;
  bool in_parts_;
  bool has_parts_ = false;
  std::int64_t block_threads_ = 0;
  std::map<ir::ValueId, std::set<Team>> triggerers_;
  std::map<Team, std::set<std::int64_t>> units_;  // that stay together where the team runs
  std::map<Team, std::int64_t> parts_;            // of teams that are several flows
  std::map<std::pair<Slot, Member>, std::int64_t> triggered_;
  std::map<std::pair<Slot, Team>, std::int64_t>
      sharers_;                                    // of a slot: parts, where not all have it
  std::map<Slot, std::int64_t> arrived_;           // see counted()
  std::set<std::pair<ir::ValueId, Team>> filled_;  // events that bulk copies of a team complete
  std::map<std::pair<Slot, Member>, std::int64_t> waited_;  // the generation to wait for next
  std::map<Member, std::int64_t> met_;                      // how often
  std::map<std::size_t, Member> members_;                   // by flow
  std::map<std::size_t, ir::OpId> waits_;                   // of flows that wait for others
  std::vector<ir::OpId> stuck_at_;
  Turns turns_;  // last: its flows use all of the above until it ends
};

}  // namespace kiln::reference
