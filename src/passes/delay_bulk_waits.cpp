#include "passes/delay_bulk_waits.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/reflect.h"
#include "passes/for_each_launch.h"
#include "passes/kernel_facts.h"

namespace kiln::passes {

namespace {

// Buffers that bulk copies of this thread may still be reading.
using Read = std::set<ir::ValueId>;

class Delayer {
 public:
  Delayer(ir::Function& function, ir::RegionId body)
      : function_(function), facts_(function, body) {}

  // The waits that the program wrote: a thread's own stores are what they are for.
  void land_stated(ir::RegionId region) {
    bool lands = false;
    std::vector<ir::OpId> stated;
    ir::walk(function_, region, [&](ir::OpId id) {
      const auto* copy = std::get_if<ir::Copy>(&function_.ops[id].data);
      lands = lands || (copy != nullptr && copy->bulk && is_global(copy->dst) &&
                        facts_.is_exchanged(root_of(copy->dst)));
      const auto* wait = std::get_if<ir::BulkWait>(&function_.ops[id].data);
      if (wait != nullptr && !wait->inferred) stated.push_back(id);
    });
    for (const ir::OpId id : stated) {
      std::get<ir::BulkWait>(function_.ops[id].data).landed |= lands;
    }
  }

  // Waits moved out of `region`; what is still read behind it.
  Read flow(ir::RegionId region, Read read) {
    for (std::size_t i = 0; i < function_.regions[region].ops.size(); ++i) {
      const ir::OpId id = function_.regions[region].ops[i];
      if (is_inferred(id) && facts_.is_exchanged(root_of(copy(last_).dst))) {
        std::get<ir::BulkWait>(function_.ops[id].data).landed = true;
      } else if (is_inferred(id)) {
        std::vector<ir::OpId>& ops = function_.regions[region].ops;
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
        --i;
        delayed_.insert(last_);
        read.insert(root_of(copy(last_).src));
        continue;
      }
      if (!read.empty() && must_wait(function_.ops[id], read)) {
        insert_wait(region, i);
        ++i;
        read.clear();
      }
      read = enter(id, std::move(read));
    }
    return read;
  }

  void finish(ir::RegionId region, const Read& read) {
    if (!read.empty()) insert_wait(region, function_.regions[region].ops.size());
  }

 private:
  bool is_inferred(ir::OpId id) const {
    const auto* wait = std::get_if<ir::BulkWait>(&function_.ops[id].data);
    return wait != nullptr && wait->inferred;
  }

  bool must_wait(const ir::Op& op, const Read& read) const {
    constexpr ir::OpKind kAlways[] = {ir::OpKind::kBarrier, ir::OpKind::kBreak,
                                      ir::OpKind::kContinue, ir::OpKind::kYield};
    if (std::ranges::find(kAlways, op.kind()) != std::end(kAlways)) return true;
    if (op.kind() == ir::OpKind::kTrigger) {
      return std::ranges::any_of(read,
                                 [&](ir::ValueId root) { return facts_.is_handed_over(root); });
    }
    if (!ir::regions_of(op).empty()) return false;
    return std::ranges::any_of(facts_.own(op), [&](const Access& access) {
      return access.writes && read.contains(access.root);
    });
  }

  Read enter(ir::OpId id, Read read) {
    // A copy of the fields: inserting operations moves the arrays.
    const ir::Op op = function_.ops[id];
    const auto* wait = std::get_if<ir::BulkWait>(&op.data);
    if (wait != nullptr && wait->pending == 0) read.clear();
    if (op.kind() == ir::OpKind::kCopy) last_ = id;
    if (delayed_.contains(id)) read.insert(root_of(copy(id).src));
    if (const auto* loop = std::get_if<ir::For>(&op.data)) return go_round(loop->body, read);
    if (const auto* loop = std::get_if<ir::Loop>(&op.data)) return go_round(loop->body, read);
    if (const auto* branch = std::get_if<ir::If>(&op.data)) {
      Read taken = flow(branch->then_body, read);
      if (branch->else_body.valid()) read = flow(branch->else_body, std::move(read));
      taken.merge(read);
      return taken;
    }
    if (const auto* some = std::get_if<ir::Inthreads>(&op.data)) {
      finish(some->body, flow(some->body, {}));
      return read;
    }
    for (const ir::RegionId region : ir::regions_of(op)) read = flow(region, std::move(read));
    return read;
  }

  // The first time through finds out what the end leaves to the beginning. A loop inside of others
  // is asked as often as they go round, mostly the same.
  Read go_round(ir::RegionId body, const Read& before) {
    const auto [known, is_new] = rounds_.try_emplace({body, before});
    if (!is_new) return known->second;
    Read head = before;
    Read end = flow(body, head);
    head.insert(end.begin(), end.end());
    if (head != before) end = flow(body, head);
    end.insert(before.begin(), before.end());
    known->second = end;
    return end;
  }

  [[nodiscard]] const ir::Copy& copy(ir::OpId id) const {
    return std::get<ir::Copy>(function_.ops[id].data);
  }
  [[nodiscard]] bool is_view(ir::ValueId value) const {
    return std::holds_alternative<ir::ViewType>(function_.type(value));
  }
  [[nodiscard]] bool is_global(ir::ValueId value) const {
    return is_view(value) && function_.view_type(value).space == ir::Space::kGlobal;
  }
  [[nodiscard]] ir::ValueId root_of(ir::ValueId view) const { return ir::root_of(function_, view); }

  void insert_wait(ir::RegionId region, std::size_t index) {
    std::vector<ir::OpId>& ops = function_.regions[region].ops;
    const Span span = function_.ops[ops[index < ops.size() ? index : ops.size() - 1]].span;
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(index),
               function_.ops.push({span, ir::BulkWait{}, {}}));
  }

  ir::Function& function_;
  KernelFacts facts_;
  ir::OpId last_;                                         // copy
  std::map<std::pair<ir::RegionId, Read>, Read> rounds_;  // by body and what came to its head
  std::set<ir::OpId> delayed_;                            // copies whose wait was taken out
};

}  // namespace

Checked<bool> delay_bulk_waits(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, ir::OpId launch) {
    const ir::RegionId body = body_of(function, launch);
    Delayer delayer(function, body);
    delayer.land_stated(body);
    delayer.finish(body, delayer.flow(body, {}));
  });
  return true;
}

}  // namespace kiln::passes
