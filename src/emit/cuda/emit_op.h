// One function per operation kind, found by overload from the kind's own struct. Each appends the
// operation's C++ to kernel.out; pure scalar operations are spelled by scalar() where they are
// used.
#pragma once

#include <span>

#include "emit/cuda/kernel.h"
#include "target/fragment.h"

namespace kiln::emit {

// All live operations of a region, in order, but for one where `skipped` is valid.
void emit_region(Kernel& kernel, ir::RegionId region, ir::OpId skipped = {});

// A scalar value as an expression: its name, or the spelling of its operation where it was inlined.
[[nodiscard]] Spelled scalar(Kernel& kernel, ir::ValueId value);

// The element of a register tile that belongs to the place that the apply around is at.
[[nodiscard]] std::string element_text(Kernel& kernel, ir::ValueId frag);

// The condition under which a lane is the first of those that hold its elements; empty where no two hold
// the same.
[[nodiscard]] std::string first_holder(Kernel& kernel, const target::Fragment& fragment);

// Scalars that are expressions get a statement only where their value has a name.
#define KILN_OP(Struct, ...) void emit_op(Kernel& kernel, const ir::Op& op, const ir::Struct& data);
#include "ir/op.def"
#undef KILN_OP
void emit_op(Kernel& kernel, const ir::Op& op, const ir::NoOp& none);

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
