// What is asked about a whole kernel before barriers are placed in it, and what each of its
// operations touches.
//
//   copy src=%x dst=%s grouped           =>   {root %s, writes, collective, in_flight}
//   copy src=%x dst=%s bulk              =>   {root %s, writes, collective, bulk}
//   copy src=%s dst=%y bulk, y read too  =>   {root %s, ...}, {root %y, writes, collective, bulk}
//   mma a=%a (which lies in %s)          =>   {root %s, collective, product}, {root %c, ...}
//   store view=%s[p], p a warpgroup      =>   {root %s, writes, collective, parts 0, 64, ...}
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/module.h"
#include "ir/parts.h"

namespace kiln::passes {

// Threads that run a program of their own: those of an `inthreads` region, or the block.
struct Team {
  std::int64_t first = 0;
  std::int64_t threads = 0;  // 0: the block's
  bool single = false;       // one thread does all of it

  [[nodiscard]] bool is_alone() const { return single || threads == 1; }
  // Whether it lies in one warp, or in one warpgroup.
  [[nodiscard]] bool is_in_one(std::int64_t unit) const {
    return threads != 0 && first / unit == (first + threads - 1) / unit;
  }
};

// Regions of the same threads are one team: each thread goes through them in order.
constexpr int kBlockTeam = 0;

constexpr std::int64_t kWarpgroup = target::kWarpgroupLanes;

// One access since the last barrier: to a shared buffer, to a tensor that bulk copies and others
// pass on to each other, or to the registers of a fragment by an asynchronous product.
struct Access {
  ir::ValueId root;
  bool writes = false;
  bool collective = false;
  bool in_flight = false;  // an asynchronous write that nobody has waited for
  ir::ValueId label = {};  // in flight: the future or event whose wait the program has; else any
  bool product = false;    // by an asynchronous product that nobody has waited for
  bool bulk = false;       // by the hardware, started by one thread
  std::int64_t unit = 0;   // bulk: one thread of each so many; 0: one of the team
  bool fenced = false;     // a write that asynchronous readers see
  bool released = false;   // its team has triggered an event since
  bool handed = false;     // and waited for one: others may have had the buffer
  // Events that take all of its team and have been triggered since, see Placer::takes_whole_team.
  std::set<ir::ValueId> told = {};
  int team = kBlockTeam;
  int nest = 0;  // which entry of which inner `parallel` it stood in; 0: none
  ir::Parts parts = {};
  std::optional<target::Atomic> commutes = {};  // with those that say the same, see ir::Touch
  bool met = false;                             // the threads of each warpgroup have met since
  bool of_any_block = false;                    // of the cluster, not of the team's own alone
  // Of what blocks of the cluster read in each other's memory: the block's own threads have met since,
  // its cluster's have not.
  bool met_in_block = false;
  bool unawaited = false;  // and it is a bulk copy of event `label`, which nobody has waited for

  // Whether only the program knows when it ends: no barrier waits for it.
  [[nodiscard]] bool is_awaited_by_program() const { return in_flight && label.valid(); }
  friend bool operator==(const Access&, const Access&) = default;
};

using Accesses = std::vector<Access>;

// Adds those of `more` that are not there yet.
void unite(Accesses& accesses, const Accesses& more);

// Whether a thread of a barrier must wait between `before` and `now`.
[[nodiscard]] bool conflict(const Access& before, const Access& now);

class KernelFacts {
 public:
  KernelFacts(const ir::Function& function, ir::RegionId body);

  // The program waits for its products by itself.
  [[nodiscard]] bool program_waits() const { return program_waits_; }
  [[nodiscard]] const Team& team(int index) const {
    return teams_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] int team_of(const ir::Inthreads& region) const;
  // Whether products or bulk copies touch the buffer, so that they must see what threads write.
  [[nodiscard]] bool is_read_asynchronously(ir::ValueId root) const {
    return asynchronous_.contains(root);
  }
  // Whether threads of other blocks read the buffer.
  [[nodiscard]] bool is_read_by_blocks(ir::ValueId root) const {
    return read_by_blocks_.contains(root);
  }
  [[nodiscard]] bool reads_other_blocks() const { return !read_by_blocks_.empty(); }
  // Whether more than one team uses the buffer: then events say who has it.
  [[nodiscard]] bool is_handed_over(ir::ValueId root) const;

  // What the operation itself touches, without the regions inside it.
  [[nodiscard]] Accesses own(const ir::Op& op) const;
  // What the operation and everything inside it touches.
  [[nodiscard]] Accesses all(const ir::Op& op) const;
  [[nodiscard]] bool is_fragment(ir::ValueId value) const;
  [[nodiscard]] bool is_global(ir::ValueId root) const;
  // Whether the tensor is one that bulk copies touch and something else too, and one of them writes
  // it: its accesses are ordered as those of a shared buffer.
  [[nodiscard]] bool is_exchanged(ir::ValueId root) const { return exchanged_.contains(root); }
  // Whether the kernel writes the tensor and reads it: threads may read what others wrote, and its
  // accesses are ordered as those of a shared buffer, too.
  [[nodiscard]] bool is_read_back(ir::ValueId root) const { return read_back_.contains(root); }

 private:
  struct Tile {
    ir::ValueId root;  // its buffer
    ir::Parts parts;
  };
  void find_tensors(ir::RegionId body);
  // `outermost`: the team of the region that stands in no other.
  void look(ir::RegionId region, int outermost);
  void look_at(const ir::Op& op, int outermost);
  void add_operand(Accesses& out, const ir::Touch& touch) const;
  void add_memory(Accesses& out, const ir::Op& op, const ir::Touch& touch) const;
  void add_all(Accesses& out, const ir::Op& op, bool elected) const;

  const ir::Function& function_;
  bool program_waits_ = false;
  std::vector<Team> teams_ = {Team{}};
  std::map<ir::ValueId, Tile> tile_of_;         // of a fragment that is read in place
  std::set<ir::ValueId> asynchronous_;          // buffers
  std::set<ir::ValueId> exchanged_;             // tensors
  std::set<ir::ValueId> read_back_;             // tensors
  std::set<ir::ValueId> read_by_blocks_;        // buffers
  std::map<ir::ValueId, std::set<int>> users_;  // buffer -> outermost teams
  ir::PartsOfViews parts_;
};

// Issues an instruction that works on after its statement: a warpgroup's product.
[[nodiscard]] bool is_asynchronous(const ir::Op& op);

}  // namespace kiln::passes
