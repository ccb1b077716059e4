// Operand: what an expression of the language turned out to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace kiln::sema {

// `cdiv(D, T)` as it was written: chunking dimension D by it gives chunks of T, also when T does
// not divide D (the folded number alone would not tell).
struct CDivParts {
  ir::Expr dividend;
  ir::Expr divisor;
};

// The exclusive upper bound of a bounded variable.
struct Bound {
  ir::Expr extent;
  std::optional<CDivParts> written_as;
};

// One integer: its value, and its bound when it has one.
struct Element {
  ir::Expr value;
  std::optional<Bound> bound;
};

struct Operand {
  enum class Kind : std::uint8_t {
    kError,     // already reported: stay silent
    kInt,       // an integer known as an Expr (`value`)
    kFloat,     // a floating literal (`number`)
    kScalar,    // a run-time value (`id`), of `dtype`
    kTuple,     // integers: a tuple or a bounded tuple (`elements`)
    kShape,     // extents: an mdspan (`elements`)
    kView,      // a buffer or a view of one (`id`)
    kArray,     // an array of buffers, not subscripted yet (`id`, `array_rank`)
    kFragment,  // a register tile (`id`)
    kEvent,     // an event or an array of them (`id`)
    kStream,    // a parameter: the caller says on which stream to launch
    kString,
    kWildcard,
  };
  Kind kind = Kind::kError;
  Span span;
  DType dtype = DType::kS32;
  Element integer;
  std::optional<CDivParts> written_as;  // kInt: the value was written `cdiv(D, T)`
  double number = 0;
  ir::ValueId id;
  std::vector<Element> elements;
  std::int64_t array_rank = 0;
  std::string text;

  [[nodiscard]] bool is_error() const { return kind == Kind::kError; }
  [[nodiscard]] bool is_number() const {
    return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kScalar;
  }
};

// "an integer", "a view of f16", "a shape": for messages.
[[nodiscard]] std::string describe(const Operand& operand, const ir::Function& function);

}  // namespace kiln::sema
