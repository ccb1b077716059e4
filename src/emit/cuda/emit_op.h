// One function per operation kind, found by overload from the kind's own struct. Each appends the
// operation's C++ to kernel.out; pure scalar operations are spelled by scalar() where they are
// used.
#pragma once

#include <span>

#include "emit/cuda/kernel.h"

namespace kiln::emit {

// All live operations of a region, in order, but for one where `skipped` is valid.
void emit_region(Kernel& kernel, ir::RegionId region, ir::OpId skipped = {});

// A scalar value as an expression: its name, or the spelling of its operation where it was inlined.
[[nodiscard]] Spelled scalar(Kernel& kernel, ir::ValueId value);

// Structure.
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Parallel& parallel);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::For& loop);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::If& branch);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Once& once);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Return& ret);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Loop& loop);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Break& jump);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Continue& jump);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Yield& jump);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Barrier& barrier);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::CopyWait& wait);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::MmaFence& fence);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::MmaCommit& commit);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::MmaWait& wait);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::ProxyFence& fence);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::NoOp& none);
// Meeting.
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Event& event);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Trigger& trigger);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::EventWait& wait);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Inthreads& inthreads);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Registers& registers);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::BulkWait& wait);
// Memory.
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Alloc& alloc);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Subview& subview);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Alias& alias);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Copy& copy);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Splat& splat);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Write& write);
// Matrix unit.
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Fill& fill);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Load& load);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Mma& mma);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Store& store);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Apply& apply);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::SetElement& set);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Element& element);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Scale& scale);
// Scalars with a statement of their own.
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Bind& bind);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Set& set);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Assert& assertion);
// Scalars that are expressions: a statement only when their value gets a name.
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Read& read);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Const& constant);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Index& index);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Unary& unary);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Binary& binary);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Cast& cast);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Choose& choose);
void emit_op(Kernel& kernel, const ir::Op& op, const ir::Get& get);

// What the rest of the pipeline does not make yet.
inline void emit_op(Kernel&, const ir::Op&, const ir::Future&) { KILN_UNREACHABLE("not emitted"); }
inline void emit_op(Kernel&, const ir::Op&, const ir::FutureWait&) {
  KILN_UNREACHABLE("not emitted");
}
inline void emit_op(Kernel&, const ir::Op&, const ir::Exchange&) {
  KILN_UNREACHABLE("not emitted");
}

// A bulk copy: the boxes, started by one thread.
void emit_bulk_copy(Kernel& kernel, const ir::Copy& copy);

// `inthreads` regions that follow each other, as one chain of branches: a warpgroup may change the
// number of its registers only in a branch of its own.
void emit_inthreads(Kernel& kernel, std::span<const ir::Op* const> siblings);

// The condition that holds in one thread of each unit of so many threads (0: of all that are here);
// "" where only one is here anyway.
[[nodiscard]] std::string elected(Kernel& kernel, std::int64_t unit);
// The condition that holds in the one thread that does all of the operation; "" for operations that
// more threads do.
[[nodiscard]] std::string election(Kernel& kernel, const ir::Op& op);

// What stands at the kernel's start and end for its events, maps and clusters: lines without
// indentation.
[[nodiscard]] std::vector<std::string> meeting_opening(Kernel& kernel);
[[nodiscard]] std::vector<std::string> meeting_closing(Kernel& kernel);

// Declares the C++ array of a fragment.
void declare_fragment(Kernel& kernel, ir::ValueId frag, const ir::Alloc& alloc);

}  // namespace kiln::emit
