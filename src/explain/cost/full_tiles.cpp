#include "explain/cost/full_tiles.h"

#include <algorithm>
#include <numeric>

#include "ir/reflect.h"

namespace kiln::explain {

namespace {

constexpr std::int64_t kTiles = 4;
constexpr std::int64_t kUndivided = 256;
constexpr std::int64_t kMultipleMax = std::int64_t{1} << 16;  // of one dimension
constexpr std::int64_t kExtentMax = std::int64_t{1} << 14;    // where one tile leaves the choice

// By VarId: the least common multiple of the divisors met so far.
class Divisors {
 public:
  explicit Divisors(const ir::Function& function) : of_(function.vars.size(), 1) {}

  void add(const ir::Expr& expr) {
    for (const ir::Term& term : expr.terms()) {
      for (const ir::Atom& atom : term.atoms) add(atom);
    }
  }

  [[nodiscard]] std::int64_t of(std::size_t var) const { return of_[var]; }

 private:
  void add(const ir::Atom& atom) {
    if (atom.kind == ir::AtomKind::kVar) return;
    add(*atom.left);
    add(*atom.right);
    const bool divides = atom.kind == ir::AtomKind::kCDiv || atom.kind == ir::AtomKind::kFloorDiv ||
                         atom.kind == ir::AtomKind::kMod;
    const std::optional<std::int64_t> divisor = atom.right->constant();
    if (!divides || !divisor || *divisor < 1 || *divisor > kMultipleMax) return;
    std::vector<ir::VarId> vars;
    atom.left->collect_vars(vars);
    for (const ir::VarId var : vars) {
      std::int64_t& multiple = of_[var.index];
      const std::int64_t both = std::lcm(multiple, *divisor);
      if (both <= kMultipleMax) multiple = both;
    }
  }

  std::vector<std::int64_t> of_;
};

}  // namespace

std::vector<std::int64_t> full_tiles(const ir::Function& function) {
  Divisors divisors(function);
  for (const ir::Var& var : function.vars) divisors.add(var.extent);
  for (const ir::Value& value : function.values) {
    const auto* view = std::get_if<ir::ViewType>(&value.type);
    if (view == nullptr) continue;
    for (const ir::Expr& extent : view->shape) divisors.add(extent);
  }
  for (const ir::Op& op : function.ops) {
    ir::for_each_expr(op, [&](const ir::Expr& expr) { divisors.add(expr); });
  }
  std::vector<std::int64_t> out(function.vars.size(), 0);
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::VarKind kind = function.vars[ir::VarId{v}].kind;
    if (kind == ir::VarKind::kScalar) out[v] = 1;
    if (kind != ir::VarKind::kDim) continue;
    const std::int64_t tile = divisors.of(v);
    if (tile == 1) {
      out[v] = kUndivided;
    } else {
      out[v] = kTiles * tile <= kExtentMax ? kTiles * tile : tile;
    }
  }
  return out;
}

}  // namespace kiln::explain
