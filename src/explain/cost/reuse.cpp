#include "explain/cost/reuse.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/effects.h"
#include "ir/functions.h"
#include "ir/integer.h"

namespace kiln::explain {

namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;
using ir::VarId;

// So many places are looked at; the turns that are left out read as much as those before.
constexpr std::int64_t kPlacesMax = 50'000;

// A statement that reads a tensor, and what decides where.
struct Source {
  ir::ResolvedView view;
  std::vector<OpId> around;  // outermost first
  double bytes = 0;          // of all its executions
  std::int64_t places = 0;
  std::set<std::uint32_t> panels = {};
  double panel_bytes = 0;
};

// One block's turn at a source.
struct Reading {
  std::uint32_t source = 0;
  std::uint32_t panel = 0;
  std::int64_t turn = 0;
};

// Numbers that a place has worked out, by value: one is a part of many others. Room for them is made once,
// for all places.
class WorkedOut {
 public:
  explicit WorkedOut(const Function& function)
      : numbers_(function.values.size()), places_(function.values.size(), 0) {}

  void next_place() { ++place_; }
  void keep(ValueId id, std::int64_t number) {
    numbers_[id.index] = number;
    places_[id.index] = place_;
  }
  [[nodiscard]] std::optional<std::int64_t> find(ValueId id) const {
    return places_[id.index] == place_ ? std::optional(numbers_[id.index]) : std::nullopt;
  }

 private:
  std::vector<std::int64_t> numbers_;
  std::vector<std::uint64_t> places_;  // the place that the number is of
  std::uint64_t place_ = 0;
};

// Numbers of a program at one place of the launch; one place at a time.
class Place {
 public:
  Place(const Function& function, const std::map<VarId, ValueId>& binds,
        std::vector<std::int64_t> vars, WorkedOut& worked_out)
      : function_(function),
        binds_(binds),
        worked_out_(worked_out),
        vars_(std::move(vars)),
        known_(function.vars.size(), false) {
    for (std::uint32_t v = 0; v < known_.size(); ++v) {
      known_[v] = ir::known_at_launch(function.vars[VarId{v}].kind);
    }
    worked_out_.next_place();
  }

  void set(VarId var, std::int64_t number) {
    vars_[var.index] = number;
    known_[var.index] = true;
  }

  std::optional<std::int64_t> value(const ir::Expr& expr) {
    std::vector<VarId> used;
    expr.collect_vars(used);
    for (const VarId var : used) {
      if (!known_[var.index] && !find(var)) return std::nullopt;
    }
    return expr.evaluate(vars_);
  }

  // What is known stays: variables are set once, before what is made of them.
  std::optional<std::int64_t> value(ValueId id) {
    if (const auto before = worked_out_.find(id)) return before;
    const auto number = compute(id);
    if (number) worked_out_.keep(id, *number);
    return number;
  }

 private:
  std::optional<std::int64_t> compute(ValueId id) {
    const OpId def = function_.values[id].def;
    const auto* type = std::get_if<ir::ScalarType>(&function_.type(id));
    if (!def.valid() || type == nullptr) return std::nullopt;
    const ir::OpData& data = function_.ops[def].data;
    if (const auto* index = std::get_if<ir::Index>(&data)) return value(index->expr);
    if (const auto* binary = std::get_if<ir::Binary>(&data)) {
      const auto left = value(binary->left);
      const auto right = value(binary->right);
      const auto* of = std::get_if<ir::ScalarType>(&function_.type(binary->left));
      if (!left || !right || of == nullptr || is_float(of->dtype)) return std::nullopt;
      return ir::value_of(binary->kind, of->dtype, *left, *right);
    }
    if (const auto* choice = std::get_if<ir::Choose>(&data)) {
      const auto condition = value(choice->condition);
      if (!condition) return std::nullopt;
      return value(*condition != 0 ? choice->if_true : choice->if_false);
    }
    return std::nullopt;
  }

  bool find(VarId var) {
    const auto bind = binds_.find(var);
    if (bind == binds_.end()) return false;
    const auto number = value(bind->second);
    if (number) set(var, *number);
    return number.has_value();
  }

  const Function& function_;
  const std::map<VarId, ValueId>& binds_;
  WorkedOut& worked_out_;
  std::vector<std::int64_t> vars_;
  std::vector<bool> known_;
};

class Reuse {
 public:
  Reuse(const Function& function, const ir::Arguments& arguments, const LaunchCost& launch,
        const sim::Outcome& outcome, const target::Arch& arch)
      : function_(function),
        arguments_(arguments),
        outcome_(outcome),
        parallel_(std::get<ir::Parallel>(function.ops[launch.op].data)),
        blocks_(launch.blocks / launch.times),
        at_once_(std::min<std::int64_t>(launch.occupancy.blocks * arch.sms, blocks_)),
        capacity_(static_cast<double>(arch.l2_bytes)),
        worked_out_(function) {
    std::vector<OpId> around;
    collect(parallel_.body, around);
  }

  double run() {
    if (at_once_ == 0 || sources_.empty()) return 0;
    const std::int64_t waves = (blocks_ + at_once_ - 1) / at_once_;
    if (waves == 1) rounds_ = rounds();
    const std::int64_t turns = waves > 1 ? waves : rounds_;
    const std::int64_t each =
        std::max<std::int64_t>(at_once_ * static_cast<std::int64_t>(sources_.size()), 1);
    const std::int64_t looked_at = std::clamp<std::int64_t>(kPlacesMax / each, 1, turns);
    for (std::int64_t turn = 0; turn < looked_at; ++turn) {
      const std::int64_t first = waves > 1 ? turn * at_once_ : 0;
      const std::int64_t end = std::min(first + at_once_, blocks_);
      for (std::int64_t block = first; block < end; ++block) {
        visit(block, waves > 1 ? 0 : turn, turn);
      }
    }
    set_panel_bytes(looked_at == turns);
    for (const Reading& each : readings_) read(each);
    return from_dram_ * static_cast<double>(turns) / static_cast<double>(looked_at);
  }

 private:
  void collect(ir::RegionId region, std::vector<OpId>& around) {
    for (const OpId id : function_.regions[region].ops) {
      const ir::Op& op = function_.ops[id];
      if (const auto* bind = std::get_if<ir::Bind>(&op.data)) binds_[bind->var] = bind->value;
      const auto bytes = static_cast<double>(outcome_.by_operation[id.index].bytes_global_read);
      if (bytes > 0) add(op, around, bytes);
      around.push_back(id);
      for (const ir::RegionId inner : ir::regions_of(op)) collect(inner, around);
      around.pop_back();
    }
  }

  void add(const ir::Op& op, const std::vector<OpId>& around, double bytes) {
    for (const ir::Touch& touch : ir::memory_touched(function_, op)) {
      const ValueId root = ir::root_of(function_, touch.value);
      if (!touch.reads() || function_.view_type(root).space != ir::Space::kGlobal) continue;
      sources_.push_back({ir::resolve_view(function_, touch.value), around, bytes});
      return;
    }
  }

  // Trips of the outermost loop, in which blocks that stay go from tile to tile.
  std::int64_t rounds() {
    std::int64_t out = 1;
    for (const Source& source : sources_) {
      Place place(function_, binds_, arguments_.vars, worked_out_);
      const auto* loop = outermost(source);
      if (loop == nullptr) continue;
      const auto lower = place.value(loop->lower);
      const auto upper = place.value(loop->upper);
      if (lower && upper) out = std::max(out, *upper - *lower);
    }
    return out;
  }

  [[nodiscard]] const ir::For* outermost(const Source& source) const {
    for (const OpId id : source.around) {
      if (const auto* loop = std::get_if<ir::For>(&function_.ops[id].data)) return loop;
    }
    return nullptr;
  }

  // Where it is, in this round. False where it does not come there, or nobody knows.
  bool enter(const Source& source, std::int64_t round, Place& place) const {
    const ir::For* const first = outermost(source);
    if (round > 0 && first == nullptr) return false;
    for (const OpId id : source.around) {
      const ir::OpData& data = function_.ops[id].data;
      if (const auto* loop = std::get_if<ir::For>(&data)) {
        const auto lower = place.value(loop->lower);
        const auto upper = place.value(loop->upper);
        if (!lower || (upper && *lower + (loop == first ? round : 0) >= *upper)) return false;
        place.set(loop->var, *lower + (loop == first ? round : 0));
      }
      if (const auto* inner = std::get_if<ir::Parallel>(&data)) {
        for (const VarId var : inner->vars) place.set(var, 0);
      }
      if (const auto* branch = std::get_if<ir::If>(&data)) {
        const auto condition = place.value(branch->condition);
        if (condition && *condition == 0 && !branch->else_body.valid()) return false;
      }
    }
    return true;
  }

  void visit(std::int64_t block, std::int64_t round, std::int64_t turn) {
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
      Place place(function_, binds_, arguments_.vars, worked_out_);
      std::int64_t rest = block;
      for (const VarId var : parallel_.vars) {
        const std::int64_t extent =
            std::max<std::int64_t>(function_.vars[var].extent.evaluate(arguments_.vars), 1);
        place.set(var, rest % extent);
        rest /= extent;
      }
      Source& source = sources_[s];
      if (!enter(source, round, place)) continue;
      const auto panel = panel_of(source, place);
      if (!panel) continue;
      ++source.places;
      source.panels.insert(*panel);
      readings_.push_back({s, *panel, turn});
    }
  }

  std::optional<std::uint32_t> panel_of(const Source& source, Place& place) {
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(source.view.root.index)};
    for (const ir::Expr& origin : source.view.origin) {
      const auto at = place.value(origin);
      if (!at) return std::nullopt;
      key.push_back(*at);
    }
    const auto number = static_cast<std::uint32_t>(panels_.size());
    return panels_.try_emplace(std::move(key), number).first->second;
  }

  // What is read at a place, but no more than the panel's share of the tensor: a block may read the same more than once.
  void set_panel_bytes(bool all_seen) {
    for (Source& source : sources_) {
      if (source.places == 0) continue;
      source.panel_bytes = source.bytes / static_cast<double>(blocks_ * rounds_);
      if (!all_seen) continue;
      source.panel_bytes = source.bytes / static_cast<double>(source.places);
      const ir::ViewType& tensor = function_.view_type(source.view.root);
      auto bytes = static_cast<double>(size_bytes(tensor.dtype));
      for (const ir::Expr& extent : tensor.shape) {
        bytes *= static_cast<double>(extent.evaluate(arguments_.vars));
      }
      source.panel_bytes =
          std::min(source.panel_bytes, bytes / static_cast<double>(source.panels.size()));
    }
    last_turn_.assign(panels_.size(), -1);
  }

  // The panel comes from DRAM unless another block of the turn reads it, or it is still there.
  void read(const Reading& reading) {
    while (std::cmp_less_equal(so_far_.size(), reading.turn)) so_far_.push_back(read_so_far_);
    const double bytes = sources_[reading.source].panel_bytes;
    const std::int64_t last = std::exchange(last_turn_[reading.panel], reading.turn);
    if (last == reading.turn) return;
    read_so_far_ += bytes;
    const double since = last < 0 ? 0 : so_far_.back() - so_far_[static_cast<std::size_t>(last)];
    if (last < 0 || since > capacity_) from_dram_ += bytes;
  }

  const Function& function_;
  const ir::Arguments& arguments_;
  const sim::Outcome& outcome_;
  const ir::Parallel& parallel_;
  std::int64_t blocks_;
  std::int64_t at_once_;
  std::int64_t rounds_ = 1;  // of each block, in turn
  double capacity_;
  WorkedOut worked_out_;
  std::map<VarId, ValueId> binds_;
  std::vector<Source> sources_;
  std::map<std::vector<std::int64_t>, std::uint32_t> panels_;  // by tensor and where they begin
  std::vector<Reading> readings_;                              // in order of their turns
  std::vector<std::int64_t> last_turn_;                        // by panel
  std::vector<double> so_far_;  // by turn: bytes of panels that were read before
  double read_so_far_ = 0;
  double from_dram_ = 0;
};

}  // namespace

double bytes_from_dram(const ir::Function& function, const ir::Arguments& arguments,
                       const LaunchCost& launch, const sim::Outcome& outcome,
                       const target::Arch& arch) {
  return Reuse(function, arguments, launch, outcome, arch).run();
}

}  // namespace kiln::explain
