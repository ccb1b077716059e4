// Index expressions made ready for a launch: what the host knows is folded in, the rest is flat.
//
//   32*block_m + 16*cdiv(K, 16) - 8 with K = 40   =>   32*v3 + 40
//
// Variables are read from a lane-major table: variable v of lane l is vars[v * kLanes + l].
#pragma once

#include <cstdint>
#include <vector>

#include "ir/expr.h"
#include "target/arch.h"

namespace kiln::sim {

// Of a warp.
inline constexpr std::uint32_t kLanes = target::kWarpLanes;

// Which variables have one value for the whole launch, and which have one for each warp.
struct VarFacts {
  std::vector<bool> known;           // by VarId; `values` holds the value
  std::vector<std::int64_t> values;  // by VarId
  std::vector<bool> uniform;         // by VarId: all active lanes of a warp agree
};

class IndexExpr {
 public:
  IndexExpr() = default;
  IndexExpr(const ir::Expr& expr, const VarFacts& facts);

  [[nodiscard]] bool constant() const { return linear_.empty() && products_.empty(); }
  [[nodiscard]] bool uniform() const { return varying_.empty(); }
  // The variables, by VarId, of which a warp's active lanes may have different values.
  [[nodiscard]] const std::vector<std::uint32_t>& varying() const { return varying_; }

  [[nodiscard]] std::int64_t evaluate(const std::int64_t* vars, std::uint32_t lane) const {
    // A sum that leaves 64 bits wraps.
    auto sum = static_cast<std::uint64_t>(constant_);
    for (const Linear& term : linear_) {
      sum += static_cast<std::uint64_t>(term.coefficient) *
             static_cast<std::uint64_t>(vars[term.var * kLanes + lane]);
    }
    if (!products_.empty()) sum += static_cast<std::uint64_t>(evaluate_products(vars, lane));
    return static_cast<std::int64_t>(sum);
  }

 private:
  struct Linear {
    std::int64_t coefficient;
    std::uint32_t var;
  };
  struct Factor {
    ir::AtomKind kind;
    std::uint32_t var;  // kVar
    std::size_t left;   // the others: in operands_
    std::size_t right;
  };
  struct Product {
    std::int64_t coefficient;
    std::vector<Factor> factors;
  };

  void add(const ir::Term& term, const VarFacts& facts);
  [[nodiscard]] std::int64_t evaluate_products(const std::int64_t* vars, std::uint32_t lane) const;

  std::int64_t constant_ = 0;
  std::vector<std::uint32_t> varying_;
  std::vector<Linear> linear_;
  std::vector<Product> products_;
  std::vector<IndexExpr> operands_;
};

}  // namespace kiln::sim
