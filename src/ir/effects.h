// Questions of the kind "what does this operation do?", answered from what each operation declares
// (traits.h). Nobody else tells operations apart for that.
//
//   for_each_touch(op, [](const Touch& touch) { ... });
//   load frag=%ma view=%7   =>   reads %7, writes %ma
#pragma once

#include "ir/module.h"
#include "support/function_ref.h"

namespace kiln::ir {

// Traits of each kind, in the order of OpKind; the last row is NoOp's.
inline constexpr Traits kTraits[] = {
#define KILN_OP(Name, mnemonic, sort, executor, place, waits) \
  Traits{Sort::sort, Executor::executor, Place::place, Waits::waits},
#include "ir/op.def"
#undef KILN_OP
    Traits{Sort::kState, Executor::kThread, Place::kAnywhere, Waits::kForNothing},
};
static_assert(std::size(kTraits) == OpData::kTypes);

[[nodiscard]] constexpr const Traits& traits(OpKind kind) {
  return kTraits[static_cast<std::size_t>(kind)];
}

// Whether the result is computed from operands alone.
[[nodiscard]] constexpr bool is_pure(OpKind kind) { return traits(kind).sort == Sort::kPure; }

[[nodiscard]] constexpr bool has_result(OpKind kind) {
  const Sort sort = traits(kind).sort;
  return sort == Sort::kName || sort == Sort::kPure || sort == Sort::kFetch;
}

// Whether its body runs again and again.
[[nodiscard]] constexpr bool is_loop(OpKind kind) {
  return kind == OpKind::kFor || kind == OpKind::kLoop;
}

// Whether it leaves a trip, a loop or the kernel before the end.
[[nodiscard]] constexpr bool leaves_early(OpKind kind) {
  return traits(kind).sort == Sort::kJump && traits(kind).place != Place::kHost;
}

// Whether something in the region does.
[[nodiscard]] bool may_leave_early(const Function& function, RegionId region);

// Whether something in the region leaves it: not what only ends a loop, or a trip of one, inside of it.
[[nodiscard]] bool may_leave(const Function& function, RegionId region);

// Who executes it: never kOfUnit.
[[nodiscard]] Executor executor_of(const Op& op);

// How many threads execute together what is executed `kOfUnit`; 0: the block, or its region.
[[nodiscard]] std::int64_t unit_of(const Op& op);

// Whether the threads of a unit execute it together.
[[nodiscard]] inline bool is_collective(const Op& op) {
  return executor_of(op) != Executor::kThread;
}

// What it holds its threads up for.
[[nodiscard]] Waits waits_of(const Op& op);

// Whether operations of this type say what they touch. Those that move or fetch something must.
template <class Data>
inline constexpr bool kSaysTouches = requires(const Data& data) {
  Data::touches(data, [](const Touch&) {});
};

// Calls `visit(touch)` for each use that the operation makes of a value, in order.
void for_each_touch(const Op& op, FunctionRef<void(const Touch&)> visit);

// Whether it reads what is in the shared memory of another block of the cluster.
[[nodiscard]] bool reads_other_block(const Op& op);

// The uses of memory among them: those of views.
[[nodiscard]] std::vector<Touch> memory_touched(const Function& function, const Op& op);

// Whether the host part, outside of every launch, reads elements of a buffer.
[[nodiscard]] bool host_reads(const Function& function);

// Whether it changes what memory holds; to start it is to name it.
[[nodiscard]] bool changes_memory(const Function& function, const Op& op);

// The register tiles that an apply reads and sets elements of, the one that it goes through first.
[[nodiscard]] std::vector<ValueId> tiles_in(const Function& function, const Apply& apply);

// The view that the threads of a unit write together; invalid when there is none.
[[nodiscard]] ValueId written_together(const Function& function, const Op& op);

}  // namespace kiln::ir
