// `--expect`: the user's own statement of what outputs should be, as formulas.
//
//   output[m,n] = lhs[m,k] * rhs[n,k]              a plain product is summed over k by itself
//   y[m,n] = exp(x[m,n] - max[n](x[m,n])) / sum[n](exp(x[m,n] - max[n](x[m,n])))
//   s[m,n] = q[m,d] * k[n,d]; o[m] = max[n](n <= m ? s[m,n] : -inf)
//
// Reading (formula_parse.cpp) knows no tensors; binding (formula_bind.cpp) gives each name its
// meaning, each index its extent and each part its type; evaluating (formula_eval.cpp) goes through
// blocks of elements, and through contractions as blocked loops.
//
// Every element carries three numbers: its value in fp64; the error that a machine may make which
// computes the formula in f32 and adds as the kernel's weakest instruction does; and the slack, by
// how much another evaluation in fp64 may differ. Constants that f32 does not hold, and arguments
// of functions, may be off by an f32 rounding in the slack: programs spell them in many ways. Long
// sums may not, so that a lost tile cannot hide there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/op.h"
#include "reference/einsum.h"
#include "reference/number.h"
#include "support/memory_budget.h"

namespace kiln::reference {

using NodeId = std::uint32_t;

enum class NodeKind : std::uint8_t {
  kNumber,
  kName,     // an index or a scalar: binding knows which
  kRead,     // name[children]
  kUnary,    // an operator or a function of one number
  kBinary,   // an operator or a function of two
  kConvert,  // to `dtype`, as the language's __to
  kChoose,   // children[0] ? children[1] : children[2]
  kReduce,   // `binary` over `indices` of children[0]
};

struct FormulaNode {
  NodeKind kind = NodeKind::kNumber;
  Span span = {};  // of the name or the operator
  std::vector<NodeId> children = {};
  std::string name = {};
  double number = 0;
  bool whole = false;  // an integer literal
  bool exact = false;  // the constant is meant to the bit: 0.1f
  ir::UnaryKind unary = ir::UnaryKind::kNegate;
  ir::BinaryKind binary = ir::BinaryKind::kAdd;
  DType dtype = DType::kF32;
  std::vector<std::string> indices = {};
  std::vector<Span> index_spans = {};
};

struct Definition {
  EinsumTerm left;
  NodeId right = 0;
};

struct Formula {
  std::vector<FormulaNode> nodes;
  std::vector<Definition> definitions;
};

// Reads the text, which is added to `sources` as "--expect"; spans point into it.
[[nodiscard]] Checked<Formula> parse_formula(const std::string& text, Sources& sources,
                                             Diagnostics& diags);

// The names of functions that a formula may call, for messages and documents.
[[nodiscard]] std::vector<std::string> formula_functions();

// The definition as a product of numbers and tensors with plain indices, summed over what is not on
// the left; none when it is anything else.
[[nodiscard]] std::optional<Einsum> plain_product(const Formula& formula,
                                                  const Definition& definition);

// A number of the kernel's: a scalar parameter or a dimension.
struct NamedScalar {
  std::string name;
  Number number;
  DType dtype = DType::kS64;
};

// What a formula may name. A tensor without contents may be defined and not read.
struct Given {
  std::vector<Named> tensors;
  std::vector<NamedScalar> scalars;
  std::vector<std::string> outputs;  // those of `tensors` that the kernel gives back
};

// An index within one definition: on its left, or of one reduction.
struct FormulaLoop {
  std::string name;
  std::int64_t extent = 0;  // 0: not known yet
  Span span;                // where the extent was found
  std::string tensor;       // in which
};

// A node with its meaning.
struct BoundNode {
  DType type = DType::kF32;   // kBool, kS64, kU64, or the type that real numbers are computed in
  std::uint64_t free = 0;     // the loops that it depends on, by bit
  std::uint64_t reduced = 0;  // kReduce: those that it goes over
  std::optional<std::uint32_t> loop = {};      // kName of an index
  std::optional<std::size_t> scalar = {};      // kName: into Given::scalars
  std::optional<std::size_t> tensor = {};      // kRead: into Given::tensors
  std::optional<std::size_t> definition = {};  // kRead: an earlier definition
};

struct BoundDefinition {
  std::vector<std::uint32_t> loops;  // the indices on its left
  std::vector<std::int64_t> shape;
  DType type = DType::kF32;
  std::optional<std::size_t> output = {};  // into Given::tensors
  std::optional<Einsum> product = {};      // it is a plain product
  std::uint64_t summed = 0;                // loops of a plain product that are not on the left
};

struct BoundFormula {
  Formula formula;
  Given given;
  std::vector<BoundNode> nodes;
  std::vector<BoundDefinition> definitions;
  std::vector<FormulaLoop> loops;
  DType real = DType::kF32;  // what real numbers are computed in
};

[[nodiscard]] Checked<BoundFormula> bind(Formula formula, Given given, Diagnostics& diags);

struct Evaluation {
  // Which elements to evaluate, by output's name; nothing: all of them. Else outputs have `known`.
  std::function<std::vector<ElementRun>(const std::string& output)> sample = {};
  MemoryBudget* memory = nullptr;
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

// The outputs that the formula states, in its order. An error: not enough memory.
[[nodiscard]] Result<std::vector<Output>> evaluate(const BoundFormula& formula,
                                                   const EinsumNumerics& numerics,
                                                   const Evaluation& how = {});

}  // namespace kiln::reference
