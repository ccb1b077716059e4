// Blocks of values: what a part of a formula is on a box of its indices. Internal to this folder.
//
//   Space space = {{m, 64, 32}, {n, 0, 1024}};      rows 64 to 95, all columns
//   Values scores;                                  32 * 1024 elements, the last axis fastest
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op.h"
#include "reference/number.h"

namespace kiln::reference {

struct Axis {
  std::uint32_t loop = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  bool operator==(const Axis&) const = default;
};
using Space = std::vector<Axis>;

[[nodiscard]] std::size_t size_of(const Space& space);
// The axes whose loop is one of `loops`, by bit.
[[nodiscard]] Space restricted(const Space& space, std::uint64_t loops);

// How far each of the axes moves in a row-major block of the axes that are in `block`; 0 for others.
[[nodiscard]] std::vector<std::int64_t> strides_in(const Space& space, const Space& block);

// Boxes that are one run of elements of a row-major array of `shape`, in order, `most` elements at
// most each where a row allows it.
struct Box {
  std::int64_t first = 0;  // element
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> count;
};
[[nodiscard]] std::vector<Box> boxes_of(const std::vector<std::int64_t>& shape, std::int64_t first,
                                        std::int64_t count, std::int64_t most);

// The part of the space that the box has, whose places are counted from the space's first.
[[nodiscard]] Space boxed(Space space, const Box& box);

// One element: what the machine's error may be, and by how much fp64 may differ.
struct Element {
  Number number;
  double slack = 0;
};

// Many. Errors and slacks are empty where all are 0, rests likewise.
struct Values {
  std::vector<double> value;
  std::vector<double> error = {};
  std::vector<double> slack = {};
  std::vector<double> rest = {};

  explicit Values(std::size_t count = 0) : value(count) {}
  [[nodiscard]] std::size_t size() const { return value.size(); }
  [[nodiscard]] bool exact() const { return error.empty() && slack.empty(); }
  [[nodiscard]] Element at(std::size_t i) const {
    return {{value[i], error.empty() ? 0.0 : error[i], rest.empty() ? 0.0 : rest[i]},
            slack.empty() ? 0.0 : slack[i]};
  }
  void set(std::size_t i, const Element& element);
};

// At every place of `space` the element of `from` that is `first` and, for each axis, the place's index times
// the axis's step.
[[nodiscard]] Values gathered(const Values& from, const Space& space, std::int64_t first,
                              const std::vector<std::int64_t>& steps);
// `from`, a block of `of`, at every place of `to`.
[[nodiscard]] Values expanded(Values from, const Space& of, const Space& to);

// From one type of a formula's values to another; `real` is that of real numbers.
[[nodiscard]] Values coerced(Values values, DType from, DType to);

// Element by element. `type` is what both operands have; a function's argument may be off by one
// rounding in the slack.
[[nodiscard]] Values apply(ir::UnaryKind kind, DType type, const Values& operand);
[[nodiscard]] Values apply(ir::BinaryKind kind, DType type, const Values& left,
                           const Values& right);
[[nodiscard]] Element apply(ir::BinaryKind kind, DType type, const Element& left,
                            const Element& right);
[[nodiscard]] Values choose(const Values& condition, const Values& if_true, const Values& if_false);
// To the type and back to what a formula holds it as.
[[nodiscard]] Values converted(const Values& values, DType from, DType to, DType held);

}  // namespace kiln::reference
