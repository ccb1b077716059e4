// Vectors that an `apply` adds to, each lane its own part. Internal to this folder.
//
//   apply {i, j} in s.span  row.at(i) += s.at(i, j);
//   all_reduce_sum(row);
//
// From the first line on until the second the language gives the vector no value that could be read.
#pragma once

#include "sema/state.h"

namespace kiln::sema {

// The addend of `row.at(i) += e`, `row.at(i) = row.at(i) + e` or `= e + row.at(i)`. Invalid: it is
// none of these.
[[nodiscard]] ast::ExprId addend_of(const Sema& sema, const ast::AssignStmt& stmt);

// In an `apply`, which is at one element of `frag` several times: adds the addend to it.
void add_part(Sema& sema, ir::ValueId frag, const Operand& addend, Span span);
// Behind the body of an `apply`: what its lanes have added up becomes part of the vectors.
void join_parts(Sema& sema, const OpenApply& apply, Span span);

// The tile is read: false after a report if it is open.
bool check_joined(Sema& sema, ir::ValueId frag, Span span);
// Each lane has a part of it from here on.
void note_parts(Sema& sema, ir::ValueId frag, Span span);
// All of it is set.
void note_set(Sema& sema, ir::ValueId frag);

// In front of and behind a body that may run several times, or not at all.
[[nodiscard]] PartialSums enter_iterations(Sema& sema);
void leave_iterations(Sema& sema, PartialSums outer);
// Threads leave an iteration here.
void note_sums_left(Sema& sema);
// What is so behind two ways of which one is taken.
[[nodiscard]] PartialSums either(const PartialSums& one, const PartialSums& other);

}  // namespace kiln::sema
