// Names in scope.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sema/operand.h"

namespace kiln::sema {

// What a name stands for. Mutable scalars are cells; everything else is an Operand that is simply
// copied to the use.
struct Symbol {
  enum class Kind : std::uint8_t {
    kOperand,   // immutable: `operand`; a `global` event: number `handle` of the function
    kCell,      // mutable scalar: `operand.id` is the cell, `operand.dtype` its type
    kWith,      // declared by `with`, not iterated yet: `operand.integer` is 0 with its bound
    kParallel,  // an axis of a parallel (cannot be iterated or assigned)
    kAccumulator,
    kTile,       // loaded by mma.load
    kTileArray,  // of register tiles: `elements`, or those of operand array number `handle`
    kMmaFuture,  // of `mma.row.row.async`
    kHandle,     // of a copy: number `handle` of the function; `operand` is its buffer
    kType,       // of elements: `operand.dtype`
    kSlot,       // of an event: `operand.id` and the slot `operand.integer`, `operand.elements` the
                 // generation where one is said
  };
  Kind kind = Kind::kOperand;
  Operand operand;
  Span span;
  std::size_t handle = 0;
  // kWith: a tuple's elements by name, and the variables that step together with it.
  std::vector<std::string> parts = {};
  std::vector<std::string> tied = {};
  // kTileArray: row by row.
  std::vector<std::int64_t> extents = {};
  std::vector<Symbol> elements = {};
};

class Scopes {
 public:
  void push() { scopes_.emplace_back(); }
  void pop() { scopes_.pop_back(); }

  // The innermost symbol of that name, or null.
  [[nodiscard]] const Symbol* find(const std::string& name) const;
  [[nodiscard]] const Symbol* find_here(const std::string& name) const;
  // How many scopes are around the one that has the innermost symbol of that name.
  [[nodiscard]] std::size_t depth_of(const std::string& name) const;
  void declare(const std::string& name, Symbol symbol);
  // Gives the innermost symbol of that name, which there is, another meaning.
  void replace(const std::string& name, Symbol symbol);
  void declare_outermost(const std::string& name, Symbol symbol);
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::vector<std::unordered_map<std::string, Symbol>> scopes_;
};

}  // namespace kiln::sema
