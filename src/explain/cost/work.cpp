#include "explain/cost/work.h"

#include <algorithm>
#include <numeric>

#include "ir/effects.h"
#include "ir/functions.h"
#include "ir/reflect.h"
#include "ir/registers.h"
#include "support/check.h"

namespace kiln::explain {

namespace {

using ir::BinaryKind;
using ir::Function;
using ir::UnaryKind;
using ir::ValueId;
using target::Unit;

// Of a function: in f32 how many instructions of each unit, in f64 how many of that. As CUDA 13.0
// compiles it for sm_90a, where both sides of a branch are taken as the usual argument takes them;
// the square root, the reciprocal and the quotient with the steps that round them correctly.
struct FunctionWork {
  UnaryKind kind;
  int fp32;
  int integer;
  int special;
  int conversion;
  int fp64;
};
constexpr FunctionWork kFunctions[] = {
    {UnaryKind::kExp, 7, 1, 1, 0, 17},    {UnaryKind::kLog, 20, 6, 0, 1, 31},
    {UnaryKind::kTanh, 15, 4, 2, 0, 34},  {UnaryKind::kTanhApprox, 0, 0, 1, 0, 34},
    {UnaryKind::kErf, 23, 6, 1, 0, 41},   {UnaryKind::kSqrt, 6, 2, 1, 0, 8},
    {UnaryKind::kRsqrt, 2, 1, 1, 0, 8},   {UnaryKind::kExp2, 0, 0, 1, 0, 18},
    {UnaryKind::kExpm1, 27, 6, 2, 0, 20}, {UnaryKind::kLog2, 22, 6, 0, 1, 33},
    {UnaryKind::kLog1p, 18, 8, 0, 1, 47}, {UnaryKind::kReciprocal, 4, 2, 1, 0, 8},
    {UnaryKind::kRcp, 0, 0, 1, 0, 11},    {UnaryKind::kSin, 12, 8, 1, 1, 15},
    {UnaryKind::kCos, 12, 8, 1, 1, 15},   {UnaryKind::kTan, 15, 8, 2, 1, 31},
    {UnaryKind::kAsin, 25, 6, 1, 0, 41},  {UnaryKind::kAcos, 28, 6, 1, 0, 45},
    {UnaryKind::kAtan, 19, 5, 1, 0, 26},  {UnaryKind::kSinh, 21, 5, 3, 0, 31},
    {UnaryKind::kCosh, 12, 3, 3, 0, 21},  {UnaryKind::kCeil, 0, 0, 1, 0, 1},
    {UnaryKind::kFloor, 0, 0, 1, 0, 1},   {UnaryKind::kRound, 2, 2, 1, 0, 2},
    {UnaryKind::kFabs, 0, 1, 0, 0, 1},    {UnaryKind::kSign, 0, 4, 0, 0, 4},
    {UnaryKind::kNegate, 1, 0, 0, 0, 1},
};
// Of two numbers.
struct BinaryWork {
  BinaryKind kind;
  int fp32;
  int integer;
  int special;
  int conversion;
  int fp64;
};
constexpr BinaryWork kBinaries[] = {
    {BinaryKind::kDiv, 8, 2, 1, 0, 10},
    {BinaryKind::kRem, 35, 14, 3, 0, 40},
    {BinaryKind::kPow, 50, 20, 3, 1, 60},
    {BinaryKind::kAtan2, 31, 14, 1, 0, 40},
};

bool is_wide(DType dtype) { return info(dtype).bits == 64; }

// Of a row. 16-bit floats are computed in f32.
template <class Row>
Work of_row(const Row& row, DType dtype) {
  Work out;
  if (dtype == DType::kF64) {
    out[Unit::kFp64] = row.fp64;
    return out;
  }
  out[Unit::kFp32] = row.fp32;
  out[Unit::kInteger] = row.integer;
  out[Unit::kSpecial] = row.special;
  out[Unit::kConversion] = row.conversion;
  return out;
}

Work one(Unit unit, std::int64_t count = 1) {
  Work out;
  out[unit] = count;
  return out;
}

// One instruction on a number of the type: an addition, or with `compares` a minimum.
Work simple(DType dtype, bool compares) {
  if (!is_float(dtype)) return one(Unit::kInteger, is_wide(dtype) ? 2 : 1);
  if (dtype == DType::kF64) return one(Unit::kFp64);
  return one(compares ? Unit::kInteger : Unit::kFp32);
}

Work of_binary(BinaryKind kind, DType dtype) {
  const auto* row = std::ranges::find(kBinaries, kind, &BinaryWork::kind);
  if (row != std::end(kBinaries) && is_float(dtype)) return of_row(*row, dtype);
  const bool divides = kind == BinaryKind::kDiv || kind == BinaryKind::kRem;
  if (divides) {  // by way of a reciprocal in f32
    constexpr std::int64_t kInstructions = 12;
    Work out = one(Unit::kInteger, is_wide(dtype) ? 5 * kInstructions : kInstructions);
    out[Unit::kSpecial] = 2;
    out[Unit::kConversion] = 1;
    return out;
  }
  const bool computes = ir::class_of(kind) == ir::BinaryClass::kArithmetic;
  return simple(dtype, !computes);
}

Work of_unary(UnaryKind kind, DType dtype) {
  if (!is_float(dtype)) return simple(dtype, true);
  const auto* row = std::ranges::find(kFunctions, kind, &FunctionWork::kind);
  KILN_CHECK(row != std::end(kFunctions), "function {} of {} has no row", static_cast<int>(kind),
             name(dtype));
  return of_row(*row, dtype);
}

// The units are those that CUDA 13.0 uses on sm_90a. A bf16 is the upper half of an f32.
Work of_cast(DType from, DType to) {
  if (from == to) return {};
  if (!is_float(from) && !is_float(to)) return one(Unit::kInteger);
  if (from == DType::kBool || to == DType::kBool) return one(Unit::kInteger);
  if (is_wide(from) || is_wide(to) || !is_float(to)) return one(Unit::kSpecial);
  if (from == DType::kBF16 && to == DType::kF32) return one(Unit::kInteger);
  constexpr int kBitsOfWord = 32;
  const bool narrow = !is_float(from) && info(from).bits < kBitsOfWord;
  return one(narrow ? Unit::kSpecial : Unit::kConversion);
}

// Goes through the operations that have work.
struct Reader {
  const Function& function;
  const sim::Counters& counts;
  ValueId result;
  std::int64_t executions;

  [[nodiscard]] DType scalar(ValueId value) const {
    return std::get<ir::ScalarType>(function.type(value)).dtype;
  }
  [[nodiscard]] DType element(ValueId frag) const { return function.frag_type(frag).dtype; }
  // Values of each lane.
  [[nodiscard]] std::int64_t values(ValueId frag) const {
    return ir::share_of(function, frag).values;
  }
  [[nodiscard]] std::int64_t shuffles() const {
    const auto found = counts.instructions.find("shfl");
    return found == counts.instructions.end() ? 0 : found->second;
  }
  [[nodiscard]] Work times(const Work& each, std::int64_t count) const {
    Work out;
    out.add(each, count);
    return out;
  }
  [[nodiscard]] Work each_time(const Work& each) const { return times(each, executions); }

  template <class Data>
  Work operator()(const Data&) const {
    return {};
  }
  Work operator()(const ir::Unary& op) const {
    return each_time(of_unary(op.kind, scalar(op.operand)));
  }
  Work operator()(const ir::Binary& op) const {
    return each_time(of_binary(op.kind, scalar(op.left)));
  }
  Work operator()(const ir::Fma& op) const { return each_time(simple(scalar(op.a), false)); }
  Work operator()(const ir::Cast& op) const {
    return each_time(of_cast(scalar(op.operand), scalar(result)));
  }
  Work operator()(const ir::Choose& op) const {
    return each_time(simple(scalar(op.if_true), true));
  }
  Work operator()(const ir::Scale& op) const {
    return each_time(one(Unit::kFp32, 2 * values(op.c)));
  }
  // With each register that goes to another lane, one is chosen of two to send, and one made of two.
  Work operator()(const ir::Convert& op) const {
    Work out = each_time(times(of_cast(element(op.source), element(op.frag)), values(op.frag)));
    out.add(one(Unit::kInteger, 2), shuffles());
    out[Unit::kShuffle] += shuffles();
    return out;
  }
  Work operator()(const ir::Load& op) const {
    if (op.in_shared || op.instruction != nullptr) return {};
    const DType from = function.view_type(op.view).dtype;
    return each_time(times(of_cast(from, element(op.frag)), values(op.frag)));
  }
  Work operator()(const ir::Store& op) const {
    const std::int64_t part =
        values(op.frag) * ir::stored_columns(function, op) / function.frag_type(op.frag).cols;
    return each_time(times(of_cast(element(op.frag), function.view_type(op.view).dtype), part));
  }
  // Each lane puts its own values together, then those that come from others.
  Work operator()(const ir::Reduce& op) const {
    const bool places = op.kind == ir::ReduceKind::kArgMax;
    const bool adds = op.kind == ir::ReduceKind::kSum || op.kind == ir::ReduceKind::kProduct;
    Work join = simple(element(op.source), !adds);
    if (places) join.add(Work(join), 4);  // three comparisons and two choices
    const std::int64_t own = values(op.source) - values(op.frag);
    Work out = times(join, executions * std::max<std::int64_t>(own, 0) + shuffles());
    out[Unit::kShuffle] += (places ? 2 : 1) * shuffles();
    return out;
  }
  // The lane's own values are put together, and then all lanes'.
  Work operator()(const ir::Vote& op) const {
    return each_time(one(Unit::kInteger, values(op.frag) + 1));
  }
  // Once along each run and once with what comes before it; of what others have, the part before
  // the lane and the whole.
  Work operator()(const ir::Scan& op) const {
    const Work join = simple(element(op.frag), false);
    Work out = times(join, executions * 2 * values(op.frag) + 2 * shuffles());
    out[Unit::kShuffle] += shuffles();
    return out;
  }
};

}  // namespace

std::int64_t Work::sum() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

void Work::add(const Work& other, std::int64_t times) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += times * other.counts_[i];
}

Repeats::Repeats(const Function& function)
    : repeats_(function.ops.size(), 1), distinct_(function.values.size(), 0) {
  for (const ir::Op& op : function.ops) {
    const auto* apply = std::get_if<ir::Apply>(&op.data);
    if (apply != nullptr) enter(function, *apply);
  }
}

namespace {

// A variable of the warp that the apply leaves as it is.
bool reads_what_stays(const Function& function, const ir::Apply& apply, const ir::Op& op) {
  const auto* get = std::get_if<ir::Get>(&op.data);
  if (get == nullptr) return false;
  bool stays = true;
  ir::walk(function, apply.body, [&](ir::OpId id) {
    const ir::Op& other = function.ops[id];
    const auto* set = std::get_if<ir::Set>(&other.data);
    if ((set != nullptr && set->cell == get->cell) || other.result == get->cell) stays = false;
  });
  return stays;
}

}  // namespace

void Repeats::enter(const Function& function, const ir::Apply& apply) {
  const std::int64_t all = ir::share_of(function, apply.frag).values;
  ir::walk(function, apply.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    if (!op.result.valid() || all == 0) return;
    std::int64_t& distinct = distinct_[op.result.index];
    if (const auto* element = std::get_if<ir::Element>(&op.data)) {
      distinct = ir::share_of(function, element->frag).values;
      return;
    }
    // What the element's place decides, or memory, may differ from element to element.
    if (!ir::is_pure(op.kind()) && !reads_what_stays(function, apply, op)) distinct = all;
    ir::for_each_expr(op, [&](const ir::Expr&) { distinct = all; });
    ir::for_each_operand(op, [&](std::string_view, ValueId value) {
      if (value.valid()) distinct = std::max(distinct, distinct_[value.index]);
    });
    repeats_[id.index] = std::max<std::int64_t>(all / std::max<std::int64_t>(distinct, 1), 1);
  });
}

Work work_of(const ir::Function& function, const ir::Op& op, const sim::Counters& counts,
             std::int64_t repeats) {
  if (counts.executions == 0) return {};
  return kiln::visit(Reader{function, counts, op.result, counts.executions / repeats}, op.data);
}

double busy_cycles(const target::Arch& arch, target::Unit unit, double instructions) {
  return instructions * target::kWarpLanes / arch.lanes_each_cycle(unit);
}

}  // namespace kiln::explain
