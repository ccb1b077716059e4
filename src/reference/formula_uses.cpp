#include "reference/formula_uses.h"

#include <algorithm>

namespace kiln::reference {

namespace {

bool reads_definitions(const BoundFormula& formula, NodeId id) {
  return formula.nodes[id].definition ||
         std::ranges::any_of(formula.formula.nodes[id].children,
                             [&](NodeId child) { return reads_definitions(formula, child); });
}

}  // namespace

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t out = 1;
  for (const std::int64_t extent : shape) out *= extent;
  return out;
}

bool is_read(const BoundFormula& formula, std::size_t d) {
  return std::ranges::any_of(formula.nodes,
                             [&](const BoundNode& node) { return node.definition == d; });
}

bool is_product(const BoundFormula& formula, std::size_t d) {
  return formula.definitions[d].product && formula.definitions[d].output &&
         !reads_definitions(formula, formula.formula.definitions[d].right);
}

double bytes_of(const BoundFormula& formula, const std::vector<bool>& read, bool sampled) {
  constexpr double kFields = 4 * sizeof(double);
  double out = 0;
  for (std::size_t t = 0; t < read.size(); ++t) {
    const auto elements = static_cast<double>(formula.given.tensors[t].tensor->elements());
    if (read[t]) out += sizeof(double) * elements;
  }
  for (std::size_t d = 0; d < formula.definitions.size(); ++d) {
    const BoundDefinition& definition = formula.definitions[d];
    const auto elements = static_cast<double>(elements_of(definition.shape));
    if (definition.output) out += kFields * elements;
    if (is_read(formula, d) && !sampled) out += kFields * elements;
  }
  return out;
}

namespace {

double places_of(const BoundFormula& formula, std::uint64_t loops) {
  double out = 1;
  for (std::size_t l = 0; l < formula.loops.size(); ++l) {
    if ((loops >> l & 1) != 0) out *= static_cast<double>(formula.loops[l].extent);
  }
  return out;
}

bool is_sum_of_products(const BoundFormula& formula, NodeId id) {
  const FormulaNode& node = formula.formula.nodes[id];
  if (node.kind != NodeKind::kReduce || node.binary != ir::BinaryKind::kAdd) return false;
  const FormulaNode& term = formula.formula.nodes[node.children[0]];
  return term.kind == NodeKind::kBinary && term.binary == ir::BinaryKind::kMul;
}

}  // namespace

double flops_of(const BoundFormula& formula) {
  double out = 0;
  for (std::size_t d = 0; d < formula.definitions.size(); ++d) {
    const BoundDefinition& definition = formula.definitions[d];
    std::uint64_t left = definition.summed;
    for (const std::uint32_t loop : definition.loops) left |= std::uint64_t{1} << loop;
    if (definition.summed != 0) out += 2 * places_of(formula, left);
    const auto visit = [&](const auto& self, NodeId id) -> void {
      const BoundNode& node = formula.nodes[id];
      if (is_sum_of_products(formula, id)) out += 2 * places_of(formula, node.free | node.reduced);
      for (const NodeId child : formula.formula.nodes[id].children) self(self, child);
    };
    visit(visit, formula.formula.definitions[d].right);
  }
  return out;
}

double terms_of(const BoundFormula& formula) {
  double out = 0;
  for (std::size_t d = 0; d < formula.definitions.size(); ++d) {
    const BoundDefinition& definition = formula.definitions[d];
    // Each sum goes over its own loops and those of the sums around it.
    const auto visit = [&](const auto& self, NodeId id, std::uint64_t loops) -> double {
      loops |= formula.nodes[id].reduced;
      double terms = places_of(formula, loops);
      for (const NodeId child : formula.formula.nodes[id].children) {
        terms = std::max(terms, self(self, child, loops));
      }
      return terms;
    };
    std::uint64_t loops = definition.summed;
    for (const std::uint32_t loop : definition.loops) loops |= std::uint64_t{1} << loop;
    out += visit(visit, formula.formula.definitions[d].right, loops);
  }
  return out;
}

std::vector<bool> tensors_read(const BoundFormula& formula) {
  std::vector<bool> out(formula.given.tensors.size());
  const auto visit = [&](const auto& self, NodeId id) -> void {
    if (formula.nodes[id].tensor) out[*formula.nodes[id].tensor] = true;
    for (const NodeId child : formula.formula.nodes[id].children) self(self, child);
  };
  for (std::size_t d = 0; d < formula.definitions.size(); ++d) {
    if (is_product(formula, d) && !is_read(formula, d)) continue;
    visit(visit, formula.formula.definitions[d].right);
  }
  return out;
}

}  // namespace kiln::reference
