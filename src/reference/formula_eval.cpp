// Evaluates bound formulas: each part on a box of its indices at a time (formula_block.h), sums of
// products as contractions (contract.h). Boxes of an output are evaluated on all cores; what a box
// needs of earlier definitions was evaluated before, or is evaluated for it when rows are sampled.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include "ir/functions.h"
#include "reference/contract.h"
#include "reference/formula.h"
#include "reference/formula_block.h"
#include "reference/formula_read.h"
#include "reference/formula_uses.h"
#include "support/parallel.h"

namespace kiln::reference {

namespace {

using ir::BinaryKind;

// Elements of a box: enough that what rows have in common is worth it.
constexpr std::int64_t kBoxMost = 1 << 18;
constexpr std::int64_t kBoxLeast = 1 << 12;
// Elements of a reduction's body at a time, and products of a contraction's.
constexpr std::int64_t kBodyMost = 1 << 16;
constexpr std::int64_t kProductsMost = 1 << 20;
constexpr std::int64_t kDepthMost = 512;

constexpr double kOwn = 0x1p-53;  // fp64's rounding

// A tensor or a definition, whole or a box of it.
struct Source {
  const Values* values = nullptr;
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> count;
};

// What all boxes share.
struct Shared {
  const BoundFormula& formula;
  const EinsumNumerics& numerics;
  std::vector<Values> tensors;                 // those that are read, as fp64
  std::vector<std::unique_ptr<Values>> whole;  // definitions, once they were needed whole
  std::recursive_mutex mutex = {};
};

Values contents(const Tensor& tensor) {
  Values out(static_cast<std::size_t>(tensor.elements()));
  const bool wide = is_integer(tensor.dtype) && size_bytes(tensor.dtype) == 8;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!wide) {
      out.value[i] = tensor.get(i);
      continue;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * sizeof(bits), sizeof(bits));
    out.set(i, {from_bits(tensor.dtype, bits), 0});
  }
  return out;
}

// A sum in the making.
struct Running {
  double value = 0;
  double magnitude = 0;  // of the finite terms
  double error = 0;      // what the terms bring along
  double slack = 0;
  bool nan = false;      // one of the terms is no number
  bool integral = true;  // the terms are whole numbers without error
};

bool is_whole(const Element& element) {
  const double value = element.number.value;
  return element.number.error == 0 && element.slack == 0 && std::isfinite(value) &&
         std::trunc(value) == value;
}

class Evaluator {
 public:
  explicit Evaluator(Shared& shared) : shared_(shared) {}

  // The definition on a box of its indices, the last one fastest.
  Values define(std::size_t d, const Space& space) {
    const BoundDefinition& definition = bound().definitions[d];
    const NodeId right = bound().formula.definitions[d].right;
    const DType from = bound().nodes[right].type;
    if (definition.summed != 0) {
      const Space out = restricted(space, node(right).free & ~definition.summed);
      Values sum = reduce(BinaryKind::kAdd, right, definition.summed, out);
      return expanded(std::move(sum), out, space);
    }
    return coerced(evaluate(right, space), from, definition.type);
  }

 private:
  [[nodiscard]] const BoundFormula& bound() const { return shared_.formula; }
  [[nodiscard]] const BoundNode& node(NodeId id) const { return bound().nodes[id]; }
  [[nodiscard]] const FormulaNode& text(NodeId id) const { return bound().formula.nodes[id]; }
  [[nodiscard]] Space own(NodeId id, const Space& space) const {
    return restricted(space, node(id).free);
  }

  // At every place of `space`, as `type`.
  Values evaluate(NodeId id, const Space& space, DType type) {
    const Space mine = own(id, space);
    return expanded(coerced(compute(id, mine), node(id).type, type), mine, space);
  }
  Values evaluate(NodeId id, const Space& space) {
    const Space mine = own(id, space);
    return expanded(compute(id, mine), mine, space);
  }

  // `space` has the node's indices and no others.
  Values compute(NodeId id, const Space& space) {
    const FormulaNode& it = text(id);
    switch (it.kind) {
      case NodeKind::kNumber: return number(it);
      case NodeKind::kName: return name(id, space);
      case NodeKind::kRead: return read(id, space);
      case NodeKind::kUnary: {
        const DType type = it.unary == ir::UnaryKind::kNot ? DType::kBool : node(id).type;
        return apply(it.unary, type, evaluate(it.children[0], space, type));
      }
      case NodeKind::kBinary: return binary(id, space);
      case NodeKind::kConvert: {
        const DType from = node(it.children[0]).type;
        return converted(evaluate(it.children[0], space), from, it.dtype, node(id).type);
      }
      case NodeKind::kChoose:
        return choose(evaluate(it.children[0], space, DType::kBool),
                      evaluate(it.children[1], space, node(id).type),
                      evaluate(it.children[2], space, node(id).type));
      case NodeKind::kReduce: return reduce(it.binary, it.children[0], node(id).reduced, space);
    }
    KILN_UNREACHABLE("node kind {}", static_cast<int>(it.kind));
  }

  Values number(const FormulaNode& it) const {
    Values out(1);
    const bool held = it.whole || it.exact || round_to(bound().real, it.number) == it.number;
    const double error = held ? 0 : roundoff(bound().real) * std::fabs(it.number);
    out.set(0, {{it.number, error}, error});
    return out;
  }

  Values name(NodeId id, const Space& space) {
    if (node(id).loop) {
      Values out(size_of(space));
      for (std::size_t i = 0; i < out.size(); ++i) {
        out.value[i] = static_cast<double>(space[0].begin + static_cast<std::int64_t>(i));
      }
      return out;
    }
    if (!node(id).scalar) return read(id, space);
    Values out(1);
    out.set(0, {bound().given.scalars[*node(id).scalar].number, 0});
    return out;
  }

  Values binary(NodeId id, const Space& space) {
    const FormulaNode& it = text(id);
    const DType left = node(it.children[0]).type;
    const DType right = node(it.children[1]).type;
    DType type = node(id).type;
    if (ir::is_logical(it.binary)) type = DType::kBool;
    if (ir::is_comparison(it.binary)) {
      type = is_float(left) ? left : right;
      if (!is_float(type))
        type = left == DType::kU64 || right == DType::kU64 ? DType::kU64 : DType::kS64;
    }
    return apply(it.binary, type, evaluate(it.children[0], space, type),
                 evaluate(it.children[1], space, type));
  }

  // --- reading

  Values read(NodeId id, const Space& space) {
    const Source source = source_of(id, space);
    std::vector<Subscript> subscripts;
    for (std::size_t d = 0; d < source.count.size(); ++d) {
      const NodeId child = text(id).children[d];
      const Space mine = own(child, space);
      subscripts.push_back({mine, compute(child, mine).value, source.begin[d], source.count[d]});
    }
    return elements_at(*source.values, subscripts, space);
  }

  Source source_of(NodeId id, const Space& space) {
    if (node(id).tensor) {
      const std::vector<std::int64_t>& shape =
          bound().given.tensors[*node(id).tensor].tensor->shape;
      return {&shared_.tensors[*node(id).tensor], std::vector<std::int64_t>(shape.size()), shape};
    }
    const std::size_t d = *node(id).definition;
    const BoundDefinition& definition = bound().definitions[d];
    Space box;
    bool all = true;
    for (std::size_t i = 0; i < definition.shape.size(); ++i) {
      box.push_back(axis_of(text(id).children[i], space, definition.loops[i], definition.shape[i]));
      all = all && box.back().count == definition.shape[i];
    }
    if (all || shared_.whole[d] != nullptr) {
      return {&whole(d), std::vector<std::int64_t>(box.size()), definition.shape};
    }
    Source source{&part(d, box), {}, {}};
    for (const Axis& axis : box) {
      source.begin.push_back(axis.begin);
      source.count.push_back(axis.count);
    }
    return source;
  }

  // The part of the dimension that a subscript reaches.
  Axis axis_of(NodeId subscript, const Space& space, std::uint32_t loop,
               std::int64_t extent) const {
    if (node(subscript).loop) {
      for (const Axis& axis : space) {
        if (axis.loop == *node(subscript).loop) return {loop, axis.begin, axis.count};
      }
    }
    return {loop, 0, extent};
  }

  const Values& whole(std::size_t d) {
    const std::scoped_lock lock(shared_.mutex);
    if (shared_.whole[d] == nullptr) {
      const BoundDefinition& definition = bound().definitions[d];
      Space space;
      for (std::size_t i = 0; i < definition.shape.size(); ++i) {
        space.push_back({definition.loops[i], 0, definition.shape[i]});
      }
      shared_.whole[d] = std::make_unique<Values>(define(d, space));
    }
    return *shared_.whole[d];
  }

  const Values& part(std::size_t d, const Space& box) {
    for (const Part& known : parts_) {
      if (known.definition == d && known.box == box) return *known.values;
    }
    auto values = std::make_unique<Values>(define(d, box));
    parts_.push_back({d, box, std::move(values)});
    return *parts_.back().values;
  }

  // --- reductions

  [[nodiscard]] Space axes_of(std::uint64_t loops) const {
    Space out;
    for (std::uint32_t loop = 0; loop < bound().loops.size(); ++loop) {
      if ((loops >> loop & 1) != 0) out.push_back({loop, 0, bound().loops[loop].extent});
    }
    return out;
  }

  // `out` has the indices of the body that are not reduced.
  Values reduce(BinaryKind kind, NodeId body, std::uint64_t loops, const Space& out) {
    const DType type = node(body).type == DType::kBool ? DType::kS64 : node(body).type;
    const Space inner = axes_of(loops);
    if (kind == BinaryKind::kAdd && is_float(type)) {
      if (auto product = contraction(body, loops, out)) return std::move(*product);
      return sum(body, inner, out);
    }
    Values result(size_of(out));
    const std::size_t each = size_of(inner);
    for_each_piece(body, inner, out, [&](std::int64_t first, Values piece) {
      piece = coerced(std::move(piece), node(body).type, type);
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(first) + i;
        const Element next = piece.at(i);
        const std::size_t to = at / each;
        result.set(to, at % each == 0 ? next : apply(kind, type, result.at(to), next));
      }
    });
    return result;
  }

  // Calls `act(first element, values)` for boxes of out x inner, in order.
  template <class Act>
  void for_each_piece(NodeId body, const Space& inner, const Space& out, Act&& act) {
    Space full = out;
    full.insert(full.end(), inner.begin(), inner.end());
    std::vector<std::int64_t> shape;
    for (const Axis& axis : full) shape.push_back(axis.count);
    const auto count = static_cast<std::int64_t>(size_of(full));
    for (const Box& box : boxes_of(shape, 0, count, kBodyMost)) {
      act(box.first, evaluate(body, boxed(full, box)));
    }
  }

  Values sum(NodeId body, const Space& inner, const Space& out) {
    const std::size_t each = size_of(inner);
    std::vector<Running> sums(size_of(out));
    for_each_piece(body, inner, out, [&](std::int64_t first, const Values& piece) {
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const Element term = piece.at(i);
        Running& to = sums[(static_cast<std::size_t>(first) + i) / each];
        to.value += term.number.value;
        if (std::isfinite(term.number.value)) to.magnitude += std::fabs(term.number.value);
        to.error += term.number.error;
        to.slack += term.slack;
        to.nan = to.nan || std::isnan(term.number.value);
        to.integral = to.integral && is_whole(term);
      }
    });
    Values result(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      result.set(i, finished(sums[i], static_cast<double>(each)));
    }
    return result;
  }

  // A sum of `length` terms in any order: as the kernel's instructions add, or one by one.
  [[nodiscard]] Element finished(const Running& sum, double length) const {
    const EinsumNumerics& numerics = shared_.numerics;
    const DType real = bound().real;
    const double exact =
        std::min({numerics.accumulation.exact_integers, integers_exact_up_to(numerics.accumulator),
                  integers_exact_up_to(real), 0x1p53});
    if (sum.integral && sum.magnitude <= exact) return {{sum.value, 0}, 0};
    const bool of_zeros = sum.value == 0 && sum.magnitude == 0 && sum.error == 0 && sum.slack == 0;
    if (of_zeros) return {{sum.value, 0}, 0};  // however it is added up
    const double steps = std::ceil(length / static_cast<double>(numerics.accumulation.depth)) + 2;
    const double relative =
        std::max(steps * numerics.accumulation.roundoff, length * roundoff(real));
    const double largest = sum.magnitude + sum.error;
    double error = sum.error + relative * largest + length * smallest(real);
    if (largest > info(real).max || std::isnan(error)) error = kUnbounded;
    double slack = sum.slack + 2 * length * kOwn * sum.magnitude;
    if (std::isnan(slack)) slack = kUnbounded;
    // Infinities of both signs may become one where a program multiplies behind the sum.
    if (std::isnan(sum.value)) {
      return {{sum.value, sum.nan && std::isfinite(sum.error) ? 0 : kUnbounded}, 0};
    }
    if (!std::isfinite(sum.value)) return {{sum.value, sum.error > 0 ? kUnbounded : 0}, kUnbounded};
    return {{sum.value, error}, slack};
  }

  // --- sums of products

  void add_factors(NodeId id, std::vector<NodeId>& factors) const {
    const FormulaNode& it = text(id);
    if (it.kind != NodeKind::kBinary || it.binary != BinaryKind::kMul) return factors.push_back(id);
    for (const NodeId child : it.children) add_factors(child, factors);
  }

  // Two groups of factors, which are multiplied in the sum, and those that stand outside of it.
  struct Product {
    std::vector<NodeId> sides[2];
    std::uint64_t free[2] = {};
    std::vector<NodeId> outside;
  };

  [[nodiscard]] std::optional<Product> product_of(NodeId body, std::uint64_t loops) const {
    std::vector<NodeId> factors;
    add_factors(body, factors);
    Product out;
    std::erase_if(factors, [&](NodeId id) {
      const bool outside = (node(id).free & loops) == 0;
      if (outside) out.outside.push_back(id);
      return outside;
    });
    if (factors.size() < 2) return std::nullopt;
    std::ranges::stable_sort(factors, std::greater{},
                             [&](NodeId id) { return std::popcount(node(id).free); });
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const std::uint64_t free = node(factors[i]).free;
      std::size_t side = i;
      if (i >= 2) {
        const bool fits[] = {(free & ~out.free[0]) == 0, (free & ~out.free[1]) == 0};
        if (!fits[0] && !fits[1]) return std::nullopt;
        side = fits[0] ? 0 : 1;
      }
      out.sides[side].push_back(factors[i]);
      out.free[side] |= free;
    }
    if ((loops & ~(out.free[0] | out.free[1])) != 0) return std::nullopt;
    return out;
  }

  // One side of contractions that lie behind each other: values, what they count for, and what may be wrong with them.
  struct Side {
    Values values;
    std::vector<double> magnitude;
    std::vector<double> error = {};
    std::vector<double> slack = {};
    // No whole numbers without error that the operand's type holds; empty where all are.
    std::vector<bool> inexact = {};
  };

  // Zero times infinity is no number here, and may be infinite where a program multiplies the sum.
  static Values without_order(Values product, const Values& left, const Values& right) {
    for (std::size_t i = 0; i < product.size(); ++i) {
      const bool made =
          std::isnan(product.value[i]) && !std::isnan(left.value[i]) && !std::isnan(right.value[i]);
      if (made) product.set(i, {unknown(), kUnbounded});
    }
    return product;
  }

  Values multiplied(const std::vector<NodeId>& factors, const Space& space) {
    const DType real = bound().real;
    Values out = evaluate(factors[0], space, real);
    for (std::size_t i = 1; i < factors.size(); ++i) {
      const Values factor = evaluate(factors[i], space, real);
      out = without_order(apply(BinaryKind::kMul, real, out, factor), out, factor);
    }
    return out;
  }

  // Operands are rounded to the type that is multiplied. Of an exact one the program's reference
  // knows the rounded value: there the slack needs it as well. Nothing becomes an integer unsaid:
  // what an integer type does not hold is multiplied elsewhere.
  Side side_of(const std::vector<NodeId>& factors, const Space& space) {
    Side side{multiplied(factors, space), {}};
    const DType operand = shared_.numerics.operand.value_or(bound().real);
    const double unit = roundoff(operand) * (shared_.numerics.cut_off ? 2 : 1);
    const double floor = smallest_normal(operand);
    side.magnitude.resize(side.values.size());
    const bool exact = side.values.exact();
    const auto grow = [&](std::vector<double>& to, std::size_t i, double by) {
      if (by == 0) return;
      if (to.empty()) to.resize(side.values.size());
      to[i] = by;
    };
    for (std::size_t i = 0; i < side.values.size(); ++i) {
      const double value = side.values.value[i];
      if (value == 0 && exact) continue;
      if (std::isfinite(value) && value != 0) side.magnitude[i] = std::max(std::fabs(value), floor);
      const Element element = exact ? Element{{value, 0}, 0} : side.values.at(i);
      const bool held = !std::isfinite(value) || round_to(operand, value) == value;
      const double rounding =
          held || is_integer(operand) ? 0 : unit * std::fabs(value) + smallest(operand);
      if (!held || !is_whole(element)) {
        if (side.inexact.empty()) side.inexact.resize(side.values.size());
        side.inexact[i] = true;
      }
      grow(side.error, i, element.number.error + rounding);
      grow(side.slack, i, element.slack + (element.number.error == 0 ? rounding : 0));
    }
    return side;
  }

  // Of contractions that lie behind each other.
  struct Sums {
    std::vector<double> value;
    std::vector<double> magnitude;
    std::vector<double> error;
    std::vector<double> slack;
    std::size_t count = 0;       // contractions
    std::vector<bool> nan_rows;  // those with a factor that is no number
    std::vector<bool> nan_columns;
    std::vector<bool> inexact_rows;  // those with a factor that is inexact
    std::vector<bool> inexact_columns;

    [[nodiscard]] Running at(std::size_t i) const {
      const std::size_t columns = nan_columns.size() / count;
      const std::size_t row = i / columns;
      const std::size_t rows = nan_rows.size() / count;
      const std::size_t column = row / rows * columns + i % columns;
      return {value[i],
              magnitude[i],
              error[i],
              slack[i],
              nan_rows[row] || nan_columns[column],
              !inexact_rows[row] && !inexact_columns[column]};
    }
  };

  static void mark(const Side& a, const Side& b, ContractExtents extents, Sums& to) {
    std::size_t i = 0;
    for (std::size_t row = 0; i < a.inexact.size(); ++row) {
      for (std::size_t k = 0; k < extents.k; ++k, ++i) {
        if (!a.inexact[i]) continue;
        to.inexact_rows[row] = true;
        if (std::isnan(a.values.value[i])) to.nan_rows[row] = true;
      }
    }
    i = 0;
    for (std::size_t first = 0; i < b.inexact.size(); first += extents.n) {
      for (std::size_t k = 0; k < extents.k; ++k) {
        for (std::size_t column = first; column < first + extents.n; ++column, ++i) {
          if (!b.inexact[i]) continue;
          to.inexact_columns[column] = true;
          if (std::isnan(b.values.value[i])) to.nan_columns[column] = true;
        }
      }
    }
  }

  static void accumulate(const Side& a, const Side& b, ContractExtents extents, Sums& to) {
    contract(to.count, a.values.value.data(), b.values.value.data(), to.value.data(), extents);
    contract(to.count, a.magnitude.data(), b.magnitude.data(), to.magnitude.data(), extents);
    add_spread(a, b, {a.error, b.error}, extents, to.error);
    add_spread(a, b, {a.slack, b.slack}, extents, to.slack);
  }

  // |a| * db + da * (|b| + db), for each product.
  struct Spread {
    const std::vector<double>& a;
    const std::vector<double>& b;
  };
  static void add_spread(const Side& a, const Side& b, const Spread& spread,
                         ContractExtents extents, std::vector<double>& to) {
    const std::size_t count = to.size() / (extents.m * extents.n);
    if (!spread.b.empty()) contract(count, a.magnitude.data(), spread.b.data(), to.data(), extents);
    if (spread.a.empty()) return;
    std::vector<double> right = b.magnitude;
    for (std::size_t i = 0; i < spread.b.size(); ++i) right[i] += spread.b[i];
    contract(count, spread.a.data(), right.data(), to.data(), extents);
  }

  // The boxes of the summed indices, so that a side fits the caches.
  static std::vector<Space> depths_of(const Space& inner, std::size_t widest) {
    std::vector<std::int64_t> shape;
    for (const Axis& axis : inner) shape.push_back(axis.count);
    std::vector<Space> out;
    const auto count = static_cast<std::int64_t>(size_of(inner));
    const std::int64_t most =
        std::min(kDepthMost, kProductsMost / static_cast<std::int64_t>(widest) + 1);
    for (const Box& box : boxes_of(shape, 0, count, most)) {
      out.push_back(boxed(inner, box));
    }
    return out;
  }

  std::optional<Values> contraction(NodeId body, std::uint64_t loops, const Space& out) {
    const auto product = product_of(body, loops);
    if (!product) return std::nullopt;
    const std::uint64_t both = product->free[0] & product->free[1];
    const Space rows = restricted(out, product->free[0] & ~both);
    const Space columns = restricted(out, product->free[1] & ~both);
    const Space batch = restricted(out, both);
    Space order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    const Space inner = axes_of(loops);
    const auto length = static_cast<double>(size_of(inner));
    Values sums(size_of(order));
    const std::size_t each = size_of(rows) * size_of(columns);
    std::vector<std::int64_t> shape;
    for (const Axis& axis : batch) shape.push_back(axis.count);
    const auto batches = static_cast<std::int64_t>(size_of(batch));
    const std::size_t depth = std::min<std::size_t>(size_of(inner), kDepthMost);
    const std::size_t widest = std::max({each, size_of(rows) * depth, size_of(columns) * depth});
    const std::int64_t together = kBodyMost / static_cast<std::int64_t>(widest);
    for (const Box& box : boxes_of(shape, 0, batches, together)) {
      const Sums found = contracted(*product, {boxed(batch, box), rows, columns, inner});
      for (std::size_t i = 0; i < found.value.size(); ++i) {
        sums.set(static_cast<std::size_t>(box.first) * each + i, finished(found.at(i), length));
      }
    }
    return multiplied_by(product->outside, expanded(std::move(sums), order, out), out);
  }

  struct Spaces {
    const Space& batch;
    const Space& rows;
    const Space& columns;
    const Space& inner;
  };

  static Space followed(Space first, const Space& second, const Space& third) {
    first.insert(first.end(), second.begin(), second.end());
    first.insert(first.end(), third.begin(), third.end());
    return first;
  }

  // One contraction for each place of the batch.
  Sums contracted(const Product& product, const Spaces& spaces) {
    const std::size_t count = size_of(spaces.batch);
    const std::size_t m = size_of(spaces.rows);
    const std::size_t n = size_of(spaces.columns);
    Sums out;
    for (auto* sums : {&out.value, &out.magnitude, &out.error, &out.slack}) {
      sums->resize(count * m * n);
    }
    out.count = count;
    for (auto* rows : {&out.nan_rows, &out.inexact_rows}) rows->resize(count * m);
    for (auto* columns : {&out.nan_columns, &out.inexact_columns}) columns->resize(count * n);
    for (const Space& depth : depths_of(spaces.inner, std::max(m, n))) {
      const Space rows = followed(spaces.batch, spaces.rows, depth);
      const Space columns = followed(spaces.batch, depth, spaces.columns);
      const Side a = side_of(product.sides[0], rows);
      const Side b = side_of(product.sides[1], columns);
      const ContractExtents extents = {m, n, size_of(depth)};
      accumulate(a, b, extents, out);
      mark(a, b, extents, out);
    }
    return out;
  }

  Values multiplied_by(const std::vector<NodeId>& factors, Values values, const Space& space) {
    for (const NodeId factor : factors) {
      values = apply(BinaryKind::kMul, bound().real, values, evaluate(factor, space, bound().real));
    }
    return values;
  }

  struct Part {
    std::size_t definition = 0;
    Space box;
    std::unique_ptr<Values> values;
  };

  Shared& shared_;
  std::vector<Part> parts_;
};

// --- outputs

Space space_of(const BoundDefinition& definition, const Box& box) {
  Space out;
  for (std::size_t d = 0; d < box.begin.size(); ++d) {
    out.push_back({definition.loops[d], box.begin[d], box.count[d]});
  }
  return out;
}

// The element as the output's type has it.
void store(const Element& element, DType type, std::size_t at, Output& output) {
  const Number stored = convert(element.number, type, output.dtype);
  const DType fine = is_float(type) ? DType::kF64 : type;
  const double slack =
      element.slack == 0 ? 0
                         : convert({element.number.value, element.slack}, fine, output.dtype).error;
  output.expected[at] = stored.value;
  output.bound[at] = stored.error;
  output.rest[at] = stored.rest;
  const double rounding = roundoff(output.dtype) * std::fabs(stored.value);
  output.slack[at] = slack + 2 * (rounding + smallest(output.dtype));
}

std::vector<Box> work_of(const std::vector<std::int64_t>& shape,
                         const std::vector<ElementRun>& runs) {
  std::int64_t all = 0;
  for (const ElementRun& run : runs) all += run.count;
  const std::int64_t most = std::clamp(all / 16, kBoxLeast, kBoxMost);
  std::vector<Box> out;
  for (const ElementRun& run : runs) {
    for (Box& box : boxes_of(shape, run.first, run.count, most)) out.push_back(std::move(box));
  }
  return out;
}

// Calls `act(values, first element)` for each box of a definition, on all cores.
template <class Act>
void for_each_box(Shared& shared, std::size_t d, const std::vector<ElementRun>& runs,
                  const Evaluation& how, Act&& act) {
  const BoundDefinition& definition = shared.formula.definitions[d];
  const std::vector<Box> boxes = work_of(definition.shape, runs);
  std::size_t done = 0;
  std::mutex mutex;
  for_each_index(boxes.size(), [&](std::size_t i) {
    Evaluator evaluator(shared);
    act(evaluator.define(d, space_of(definition, boxes[i])),
        static_cast<std::size_t>(boxes[i].first));
    const std::scoped_lock lock(mutex);
    ++done;
    if (how.progress) how.progress(done, boxes.size());
  });
}

Output empty_output(const std::string& name, const Tensor& target) {
  const auto elements = static_cast<std::size_t>(target.elements());
  Output out{.name = name,
             .param = std::nullopt,
             .dtype = target.dtype,
             .shape = target.shape,
             .expected = {},
             .bound = {}};
  out.expected.resize(elements);
  out.bound.resize(elements);
  out.rest.resize(elements);
  out.slack.resize(elements);
  return out;
}

void mark(const std::vector<ElementRun>& runs, std::vector<bool>& known) {
  for (const ElementRun& run : runs) {
    std::fill_n(known.begin() + run.first, run.count, true);
  }
}

Output evaluate_output(Shared& shared, std::size_t d, const Evaluation& how) {
  const BoundDefinition& definition = shared.formula.definitions[d];
  const Named& target = shared.formula.given.tensors[*definition.output];
  Output out = empty_output(target.name, *target.tensor);
  std::vector<ElementRun> runs = {{0, target.tensor->elements()}};
  if (how.sample) {
    runs = how.sample(target.name);
    out.known.resize(out.expected.size());
    std::ranges::fill(out.expected, unknown().value);
    std::ranges::fill(out.bound, kUnbounded);
    mark(runs, out.known);
  }
  if (is_product(shared.formula, d)) {
    evaluate(*definition.product, shared.formula.given.tensors, shared.numerics,
             {runs, how.progress}, out);
    return out;
  }
  const auto keep = [&](const Values& values, std::size_t from, std::size_t count,
                        std::size_t first) {
    for (std::size_t i = 0; i < count; ++i) {
      store(values.at(from + i), definition.type, first + i, out);
    }
  };
  if (shared.whole[d] != nullptr) {
    for (const ElementRun& run : runs) {
      const auto first = static_cast<std::size_t>(run.first);
      keep(*shared.whole[d], first, static_cast<std::size_t>(run.count), first);
    }
    return out;
  }
  for_each_box(shared, d, runs, how, [&](const Values& values, std::size_t first) {
    keep(values, 0, values.size(), first);
  });
  return out;
}

// What later definitions read, whole and on all cores.
void evaluate_whole(Shared& shared, std::size_t d, const Evaluation& how) {
  const std::int64_t elements = elements_of(shared.formula.definitions[d].shape);
  auto out = std::make_unique<Values>(static_cast<std::size_t>(elements));
  for (auto* field : {&out->error, &out->slack, &out->rest}) field->resize(out->size());
  for_each_box(shared, d, {{0, elements}}, how, [&](const Values& values, std::size_t first) {
    for (std::size_t i = 0; i < values.size(); ++i) out->set(first + i, values.at(i));
  });
  const auto drop_zeros = [](std::vector<double>& values) {
    if (std::ranges::all_of(values, [](double value) { return value == 0; })) values.clear();
  };
  if (std::ranges::all_of(out->slack, [](double value) { return value == 0; })) {
    drop_zeros(out->error);
  }
  drop_zeros(out->slack);
  drop_zeros(out->rest);
  shared.whole[d] = std::move(out);
}

}  // namespace

Result<std::vector<Output>> evaluate(const BoundFormula& formula, const EinsumNumerics& numerics,
                                     const Evaluation& how) {
  const std::vector<bool> read = tensors_read(formula);
  MemoryHold hold;
  const double bytes = bytes_of(formula, read, static_cast<bool>(how.sample));
  if (auto refused = hold.take(how.memory, bytes, "what `--expect` states")) {
    return Unexpected{*refused};
  }
  Shared shared{formula, numerics, {}, {}};
  shared.tensors.resize(read.size());
  shared.whole.resize(formula.definitions.size());
  for_each_index(read.size(), [&](std::size_t t) {
    if (read[t]) shared.tensors[t] = contents(*formula.given.tensors[t].tensor);
  });
  std::vector<Output> out;
  for (std::size_t d = 0; d < formula.definitions.size(); ++d) {
    if (!how.sample && is_read(formula, d)) evaluate_whole(shared, d, how);
    if (formula.definitions[d].output) out.push_back(evaluate_output(shared, d, how));
  }
  return out;
}

}  // namespace kiln::reference
