#include "passes/count_copies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"

namespace kiln::passes {

namespace {

// By the name of its youngest copy; the invalid name is that of copies the program does not wait
// for. Absent: nothing of that name is on its way. No value: this place is not reached.
using Names = std::map<ir::ValueId, std::int64_t>;
using Groups = std::optional<Names>;

Groups merge(Groups a, const Groups& b) {
  if (!b) return a;
  if (!a) return b;
  for (const auto& [name, younger] : *b) {
    const auto [there, added] = a->emplace(name, younger);
    if (!added) there->second = std::min(there->second, younger);
  }
  return a;
}

class Counter {
 public:
  explicit Counter(ir::Function& function) : function_(function) {}

  Groups flow(ir::RegionId region, Groups groups) {
    for (const ir::OpId id : function_.regions[region].ops) {
      if (!groups) break;
      groups = step(id, std::move(groups));
    }
    return groups;
  }

  void rewrite(ir::RegionId region) {
    std::vector<ir::OpId> kept;
    for (const ir::OpId id : function_.regions[region].ops) {
      if (keep(id)) kept.push_back(id);
      for (const ir::RegionId inner : ir::regions_of(function_.ops[id])) rewrite(inner);
    }
    function_.regions[region].ops = std::move(kept);
  }

 private:
  struct Exits {
    Groups breaks;
    Groups continues;
  };
  struct Round {
    Groups end;
    Exits exits;
  };

  Groups step(ir::OpId id, Groups groups) {
    const ir::Op& op = function_.ops[id];
    if (const auto* loop = std::get_if<ir::For>(&op.data)) {
      Exits exits;
      Groups end = go_round(loop->body, groups, exits);
      return merge(merge(std::move(groups), end), exits.breaks);
    }
    if (const auto* loop = std::get_if<ir::Loop>(&op.data)) {
      Exits exits;
      go_round(loop->body, std::move(groups), exits);
      return exits.breaks;
    }
    if (const auto* branch = std::get_if<ir::If>(&op.data)) {
      const Groups taken = flow(branch->then_body, groups);
      const bool has_else = branch->else_body.valid();
      return merge(taken, has_else ? flow(branch->else_body, groups) : groups);
    }
    if (const auto* some = std::get_if<ir::Inthreads>(&op.data)) {
      const Groups inside = flow(some->body, groups);
      return merge(std::move(groups), inside);
    }
    for (const ir::RegionId region : ir::regions_of(op)) groups = flow(region, std::move(groups));
    return leaf(id, std::move(groups));
  }

  // What the body leaves at its end, once the state at its head no longer changes. A loop inside of
  // others is asked as often as they go round, mostly the same.
  Groups go_round(ir::RegionId body, Groups head, Exits& exits) {
    const std::pair key(body, head);
    const auto known = rounds_.find(key);
    if (known != rounds_.end()) {
      exits = known->second.exits;
      return known->second.end;
    }
    Groups end = settle(body, std::move(head), exits);
    rounds_.emplace(key, Round{end, exits});
    return end;
  }

  Groups settle(ir::RegionId body, Groups head, Exits& exits) {
    while (true) {
      exits_.push_back({});
      Groups end = flow(body, head);
      end = merge(std::move(end), exits_.back().continues);
      exits = std::move(exits_.back());
      exits_.pop_back();
      Groups next = merge(head, end);
      if (next == head) return end;
      head = std::move(next);
    }
  }

  Groups leaf(ir::OpId id, Groups groups) {
    const ir::Op& op = function_.ops[id];
    if (const auto* copy = std::get_if<ir::Copy>(&op.data)) {
      if (!copy->grouped) return groups;
      for (auto& [name, younger] : *groups) ++younger;
      (*groups)[copy->label()] = 0;
    } else if (const auto* wait = std::get_if<ir::FutureWait>(&op.data)) {
      wait_for(id, wait->future, *groups);
    } else if (op.kind() == ir::OpKind::kCopyWait) {
      wait_for(id, {}, *groups);
    } else if (const auto* names = std::get_if<ir::Exchange>(&op.data)) {
      exchange(*names, *groups);
    } else if (op.kind() == ir::OpKind::kBreak && !exits_.empty()) {
      exits_.back().breaks = merge(exits_.back().breaks, groups);
      return {};
    } else if (op.kind() == ir::OpKind::kContinue && !exits_.empty()) {
      exits_.back().continues = merge(exits_.back().continues, groups);
      return {};
    } else if (op.kind() == ir::OpKind::kYield) {
      return {};
    }
    return groups;
  }

  void wait_for(ir::OpId id, ir::ValueId name, Names& names) {
    const auto found = names.find(name);
    if (found == names.end()) return;
    const std::int64_t pending = found->second;
    pending_[id] = pending;
    std::erase_if(names, [&](const auto& entry) { return entry.second >= pending; });
  }

  static void exchange(const ir::Exchange& op, Names& names) {
    auto first = names.extract(op.first);
    auto second = names.extract(op.second);
    if (!first.empty()) first.key() = op.second;
    if (!second.empty()) second.key() = op.first;
    names.insert(std::move(first));
    names.insert(std::move(second));
  }

  // False for what has no meaning after this. A wait that nothing is on its way for is none.
  bool keep(ir::OpId id) {
    ir::Op& op = function_.ops[id];
    if (auto* copy = std::get_if<ir::Copy>(&op.data)) copy->future = {};
    const bool waits = op.kind() == ir::OpKind::kCopyWait || op.kind() == ir::OpKind::kFutureWait;
    if (!waits) {
      return op.kind() != ir::OpKind::kFuture && op.kind() != ir::OpKind::kExchange;
    }
    const auto pending = pending_.find(id);
    if (pending == pending_.end()) return false;
    op.data = ir::CopyWait{pending->second};
    return true;
  }

  ir::Function& function_;
  std::vector<Exits> exits_;
  std::map<std::pair<ir::RegionId, Groups>, Round> rounds_;  // by body and what came to its head
  std::map<ir::OpId, std::int64_t> pending_;
};

}  // namespace

Checked<bool> count_copies(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    const ir::RegionId body = body_of(function, launch);
    Counter counter(function);
    counter.flow(body, Names{});
    counter.rewrite(body);
  });
  return true;
}

}  // namespace kiln::passes
