#include "sim/counting.h"

#include <algorithm>

#include "ir/steering.h"
#include "sim/access.h"

namespace kiln::sim {

namespace {

// Addresses that are as far apart as this lie the same way to sectors and to banks.
constexpr std::int64_t kPeriod = std::int64_t{kBanks} * kBankBytes;

// Multiply-adds that take the simulator as long as one step.
constexpr std::int64_t kMacsOfStep = 32;

// Steps of a matrix instruction whose sums steer, beside the one it is.
std::uint64_t steps_of(const target::Mma& atom, std::uint64_t issues) {
  const std::int64_t macs = std::int64_t{atom.shape.m} * atom.shape.n * atom.shape.k;
  return issues * static_cast<std::uint64_t>(macs / kMacsOfStep);
}

// Codes that count nothing, those that count their issues, and those that count what they ask of
// memory. All others are executed: they steer, or have to be at their place among those that do.
constexpr Code kComputes[] = {Code::kScalar,   Code::kIndex,    Code::kCell,  Code::kInitialise,
                              Code::kFill,     Code::kDescribe, Code::kScale, Code::kLoadMetadata,
                              Code::kRegister, Code::kRecast};
constexpr Code kCodesOfIssues[] = {Code::kMma, Code::kProduct, Code::kReduce, Code::kScan,
                                   Code::kConvert};
constexpr Code kMoves[] = {Code::kCopy, Code::kSplat, Code::kLoad, Code::kStore};

bool is_one_of(std::span<const Code> codes, Code code) {
  return std::ranges::find(codes, code) != codes.end();
}

// Whether the instruction's windows are the same for all of the warp's lanes. Those of tiles always are.
bool is_same(const Program& program, const Warp& warp, const Instruction& at) {
  if (at.code == Code::kCopy) {
    const CopyPlan& plan = program.copies[at.plan];
    return is_same(plan.src, warp) && is_same(plan.dst, warp);
  }
  return at.code != Code::kSplat || is_same(program.splats[at.plan].view, warp);
}

}  // namespace

Counting::Counting(const ir::Function& function, const Program& program)
    : steers_(ir::steering(function)) {
  modes_.reserve(program.code.size());
  for (const Instruction& at : program.code) modes_.push_back(mode_of(at));
}

Counting::Mode Counting::mode_of(const Instruction& at) const {
  if (!at.op.valid() || steers_[at.op.index]) return Mode::kExecute;  // the end belongs to none
  if (is_one_of(kComputes, at.code)) return Mode::kSkip;
  if (is_one_of(kCodesOfIssues, at.code)) return Mode::kIssue;
  return is_one_of(kMoves, at.code) ? Mode::kRemember : Mode::kExecute;
}

bool Counting::count(Machine& machine, const Warp& warp, const Instruction& at) {
  learning_ = false;
  const Program& program = machine.program;
  switch (modes_[warp.pc]) {
    case Mode::kExecute:
      if (at.code == Code::kMma) {
        const MmaPlan& plan = program.mmas[at.plan];
        spend(machine, steps_of(plan.executor->mma(), plan.steps.size()));
      }
      if (at.code == Code::kProduct) {
        const ProductPlan& plan = program.products[at.plan];
        spend(machine, steps_of(plan.executor->mma(), plan.repeats));
      }
      return false;
    case Mode::kSkip: return true;
    case Mode::kIssue:
      if (at.code == Code::kMma) count_issues(machine, program.mmas[at.plan]);
      if (at.code == Code::kProduct) count_issues(machine, warp, program.products[at.plan]);
      if (at.code == Code::kReduce) count_issues(machine, program.reductions[at.plan]);
      if (at.code == Code::kScan) count_issues(machine, program.scans[at.plan]);
      if (at.code == Code::kConvert) count_issues(machine, program.conversions[at.plan]);
      return true;
    case Mode::kRemember: break;
  }
  if (!is_same(program, warp, at)) return false;
  set_key(program, warp, at);
  const auto found = known_.find(key_);
  if (found != known_.end()) {
    machine.tally.add(found->second);
    return true;
  }
  mark_ = machine.tally.mark();
  learning_ = true;
  return false;
}

void Counting::learn(Machine& machine) {
  if (learning_) known_.emplace(key_, machine.tally.since(mark_));
}

void Counting::set_key(const Program& program, const Warp& warp, const Instruction& at) {
  key_ = {warp.pc, warp.index, warp.mask};
  if (at.code == Code::kCopy) {
    add_view(program.copies[at.plan].src, warp);
    add_view(program.copies[at.plan].dst, warp);
  } else if (at.code == Code::kSplat) {
    add_view(program.splats[at.plan].view, warp);
  } else {
    add_view(program.tiles[at.plan].view, warp);
  }
}

void Counting::add_view(const View& view, const Warp& warp) {
  const std::uint32_t lane = warp.first_lane();
  const Window window = view.window(warp.vars.data(), lane);
  const Coordinates own = extents_of(view, warp, lane);
  const Buffer& buffer = *view.buffer;
  // A swizzle is no sum, and what an alias holds depends on the place itself.
  const bool linear = buffer.layout.swizzle == 0 && buffer.memory == nullptr;
  std::int64_t first = 0;
  for (std::size_t d = 0; d < buffer.rank; ++d) {
    const std::int64_t extent = d < view.dropped ? 1 : own[d - view.dropped];
    const std::int64_t origin = window.origin[d];
    key_.push_back(extent);
    key_.push_back(
        std::clamp<std::int64_t>(window.limit[d] - origin, 0, std::max<std::int64_t>(extent, 0)));
    key_.push_back(linear ? std::min<std::int64_t>(origin, 0) : origin);
    first += origin * buffer.strides[d];
  }
  if (linear) key_.push_back((first * buffer.size + buffer.offset) & (kPeriod - 1));
}

// FNV-1a, over whole numbers.
std::size_t Counting::HashOfKey::operator()(const Key& key) const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::int64_t number : key) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace kiln::sim
