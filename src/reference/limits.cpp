// What ends an interpretation that would not end by itself (see machine.h; sim/limits.cpp has the
// simulator's, which are the same but for what a step is).
#include <algorithm>
#include <bit>

#include "ir/loop_around.h"
#include "reference/machine.h"

namespace kiln::reference {

namespace {

constexpr std::size_t kInstancesOfStep = 32;
constexpr std::uint64_t kWorkOfInstance = 50;
constexpr std::uint64_t kWorkWatched = 1 << 26;

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// What leaves nothing behind that a later trip of a loop may see; cells and elements are compared
// where they are set.
constexpr ir::OpKind kQuiet[] = {
    ir::OpKind::kFor,   ir::OpKind::kIf,       ir::OpKind::kOnce,     ir::OpKind::kLoop,
    ir::OpKind::kBreak, ir::OpKind::kContinue, ir::OpKind::kParallel, ir::OpKind::kSubview,
    ir::OpKind::kAlias, ir::OpKind::kBind,     ir::OpKind::kRead,     ir::OpKind::kConst,
    ir::OpKind::kIndex, ir::OpKind::kUnary,    ir::OpKind::kFma,      ir::OpKind::kBinary,
    ir::OpKind::kCast,  ir::OpKind::kChoose,   ir::OpKind::kElement,  ir::OpKind::kGet,
    ir::OpKind::kSet,   ir::OpKind::kWrite,    ir::OpKind::kAtomic,   ir::OpKind::kAssert,
    ir::OpKind::kAlloc, ir::OpKind::kPrint,    ir::OpKind::kVote};

}  // namespace

bool unchanged(const Number& a, const Number& b) {
  return same(a.value, b.value) && same(a.error, b.error);
}

void Machine::give_up(ir::OpId at, bool endless, std::string message) {
  if (!outcome_.gave_up) outcome_.gave_up = GaveUp{at, endless, std::move(message)};
  returned_ = true;
}

void Machine::spend(ir::OpId at, std::size_t instances) {
  const std::uint64_t steps = (instances + kInstancesOfStep - 1) / kInstancesOfStep;
  if (steps_ + steps > limits_.steps_max) {
    return give_up(ir::loop_around(function_, at), false,
                   format("this has not ended after {} steps of warps", limits_.steps_max));
  }
  steps_ += steps;
  count_work(at, instances);
}

void Machine::count_work(ir::OpId at, std::size_t instances) {
  std::uint64_t each = kWorkOfInstance;
  if (const auto* mma = std::get_if<ir::Mma>(&function_.ops[at].data)) {
    const ir::FragType& a = function_.frag_type(mma->a);
    const ir::FragType& c = function_.frag_type(mma->c);
    each = static_cast<std::uint64_t>(a.rows * a.cols * c.cols);
  }
  const std::uint64_t before = outcome_.work / kWorkWatched;
  outcome_.work += each * instances;
  if (!limits_.progress || outcome_.work / kWorkWatched == before) return;
  limits_.progress({steps_, outcome_.blocks_run, outcome_.blocks});
}

void Machine::note_change(ir::OpKind kind) {
  if (std::ranges::find(kQuiet, kind) == std::end(kQuiet)) ++changes_;
}

bool Machine::check_count(ir::OpId at, std::uint64_t trips) {
  const auto [known, first] = trips_inside_.try_emplace(at, 1);
  if (first) {
    const ir::RegionId body = std::get<ir::For>(function_.ops[at].data).body;
    known->second = std::max<std::uint64_t>(ir::least_trips(function_, body), 1);
  }
  const std::uint64_t inside = known->second;
  if (trips == 0 || inside <= (limits_.steps_max - steps_) / trips) return true;
  const std::string nested =
      inside == 1 ? "" : format(", in each of which loops make {} more", inside);
  give_up(at, false,
          format("a loop of {} trips{}, after {} of at most {} steps of warps", trips, nested,
                 steps_, limits_.steps_max));
  return false;
}

Machine::Trip Machine::trip_of(ir::RegionId body) const {
  Trip trip;
  std::vector<ir::ValueId> own;
  ir::walk(function_, body, [&](ir::OpId id) {
    const ir::Op& op = function_.ops[id];
    if (const auto* set = std::get_if<ir::Set>(&op.data)) trip.cells.push_back(set->cell);
    if (op.kind() == ir::OpKind::kAlloc) own.push_back(op.result);
  });
  std::erase_if(trip.cells, [&](ir::ValueId cell) {
    return std::find(own.begin(), own.end(), cell) != own.end();
  });
  return trip;
}

bool Machine::moves_on(Trip& trip) const {
  std::vector<Number> now;
  for (const ir::ValueId cell : trip.cells) {
    now.insert(now.end(), scalars_[cell.index].begin(), scalars_[cell.index].end());
  }
  const bool moved =
      trip.changes != changes_ ||
      !std::equal(now.begin(), now.end(), trip.numbers.begin(), trip.numbers.end(), unchanged);
  trip.changes = changes_;
  trip.numbers = std::move(now);
  return moved;
}

bool Machine::afford(ir::ValueId value, double bytes) {
  charged_.resize(function_.values.size());
  double& charged = charged_[value.index];
  const std::string what = format("the reference's `{}`", function_.values[value].name);
  if (auto error = hold_.take(limits_.memory, bytes - charged, what)) {
    outcome_.out_of_memory = std::move(error);
    returned_ = true;
    return false;
  }
  charged = std::max(charged, bytes);
  return true;
}

}  // namespace kiln::reference
