// Gives the names of a formula their meaning, its indices their extents and its parts their types.
#include <algorithm>
#include <utility>

#include "ir/functions.h"
#include "reference/formula.h"

namespace kiln::reference {

namespace {

using ir::BinaryClass;
using ir::BinaryKind;
using ir::UnaryKind;

// Loops are bits of a word.
constexpr std::size_t kLoopsMax = 64;

std::uint64_t bit(std::uint32_t loop) { return std::uint64_t{1} << loop; }

std::string quoted(const std::vector<std::string>& names) {
  return join(names, ", ", [](const auto& name) { return format("`{}`", name); });
}

// The types of values in a formula, for messages.
std::string_view words_for(DType type) {
  if (type == DType::kBool) return "a condition";
  return is_integer(type) ? "an integer" : "a real number";
}

DType held_as(DType dtype, DType real) {
  if (dtype == DType::kBool || dtype == DType::kU64) return dtype;
  return is_float(dtype) ? real : DType::kS64;
}

DType numeric(DType type) { return type == DType::kBool ? DType::kS64 : type; }

// What two operands are brought to before they are combined.
DType joined_type(DType a, DType b) {
  a = numeric(a);
  b = numeric(b);
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  return a == DType::kU64 ? a : b;
}

template <class T>
std::optional<std::size_t> find_named(const std::vector<T>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &T::name);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

class Binder {
 public:
  Binder(Formula formula, Given given, Diagnostics& diags) : diags_(diags) {
    out_.formula = std::move(formula);
    out_.given = std::move(given);
    out_.nodes.resize(out_.formula.nodes.size());
    const auto is_double = [](const Named& named) { return named.tensor->dtype == DType::kF64; };
    const bool doubles = std::ranges::any_of(out_.given.tensors, is_double);
    out_.real = doubles ? DType::kF64 : DType::kF32;
  }

  Checked<BoundFormula> bound() {
    for (std::size_t d = 0; d < out_.formula.definitions.size(); ++d) {
      const auto done = define(d);
      if (!done) return Unexpected{done.error()};
    }
    for (std::size_t d = 0; d < out_.definitions.size(); ++d) {
      const auto used = check_used(d);
      if (!used) return Unexpected{used.error()};
    }
    return std::move(out_);
  }

 private:
  using Done = Checked<void>;

  [[nodiscard]] const FormulaNode& node(NodeId id) const { return out_.formula.nodes[id]; }
  [[nodiscard]] const EinsumTerm& left(std::size_t definition) const {
    return out_.formula.definitions[definition].left;
  }
  [[nodiscard]] std::optional<std::size_t> defined(const std::string& name) const {
    for (std::size_t d = 0; d < out_.definitions.size(); ++d) {
      if (left(d).name == name) return d;
    }
    return std::nullopt;
  }

  Done define(std::size_t d) {
    const Definition& definition = out_.formula.definitions[d];
    BoundDefinition bound;
    scope_.clear();
    const auto named = name_left(definition.left, bound);
    if (!named) return named;
    bound.product = plain_product(out_.formula, definition);
    if (bound.product) {
      const auto summed = add_summed(*bound.product, bound);
      if (!summed) return summed;
    }
    const auto type = visit(definition.right);
    if (!type) return type;
    for (const std::uint32_t loop : bound.loops) {
      const auto known = check_extent(loop);
      if (!known) return known;
      bound.shape.push_back(out_.loops[loop].extent);
    }
    bound.type = numeric(out_.nodes[definition.right].type);
    out_.definitions.push_back(std::move(bound));
    return {};
  }

  // The left side: an output of the kernel, or a name for later.
  Done name_left(const EinsumTerm& term, BoundDefinition& bound) {
    const auto tensor = find_named(out_.given.tensors, term.name);
    if (defined(term.name) ||
        (tensor && std::ranges::find(out_.given.outputs, term.name) == out_.given.outputs.end())) {
      return diags_.report<diag::ExpectRedefined>(term.span, term.name)
          .help("give it a name of its own")
          .emit();
    }
    bound.output = tensor;
    const Tensor* target = tensor ? out_.given.tensors[*tensor].tensor : nullptr;
    if (target != nullptr && target->shape.size() != term.indices.size()) {
      return wrong_rank(term.span, term.name, *target, term.indices.size());
    }
    for (std::size_t i = 0; i < term.indices.size(); ++i) {
      const auto& before = std::span(term.indices).first(i);
      if (std::ranges::find(before, term.indices[i]) != before.end()) {
        return diags_.report<diag::ExpectRepeatedIndex>(term.index_spans[i], term.indices[i])
            .emit();
      }
      const std::int64_t extent = target == nullptr ? 0 : target->shape[i];
      const auto loop = add_loop(term.indices[i], term.index_spans[i]);
      if (!loop) return Unexpected{loop.error()};
      out_.loops[*loop].extent = extent;
      out_.loops[*loop].tensor = term.name;
      bound.loops.push_back(*loop);
    }
    return {};
  }

  // A plain product is summed over what is not on its left.
  Done add_summed(const Einsum& product, BoundDefinition& bound) {
    for (const EinsumTerm& factor : product.factors) {
      for (std::size_t i = 0; i < factor.indices.size(); ++i) {
        if (find_loop(factor.indices[i])) continue;
        const auto loop = add_loop(factor.indices[i], factor.index_spans[i]);
        if (!loop) return Unexpected{loop.error()};
        bound.summed |= bit(*loop);
      }
    }
    return {};
  }

  Checked<std::uint32_t> add_loop(const std::string& name, Span span) {
    if (out_.loops.size() == kLoopsMax) {
      return diags_.report<diag::ExpectTooLong>(span, kLoopsMax, "indices").emit();
    }
    out_.loops.push_back({.name = name, .extent = 0, .span = span, .tensor = {}});
    const auto loop = static_cast<std::uint32_t>(out_.loops.size() - 1);
    scope_.push_back(loop);
    return loop;
  }
  [[nodiscard]] std::optional<std::uint32_t> find_loop(const std::string& name) const {
    for (std::size_t i = scope_.size(); i-- > 0;) {
      if (out_.loops[scope_[i]].name == name) return scope_[i];
    }
    return std::nullopt;
  }

  Unexpected<Reported> wrong_rank(Span span, const std::string& name, const Tensor& tensor,
                                  std::size_t given) {
    return diags_.report<diag::ExpectRank>(span, name, tensor.shape.size(), given)
        .label(span, "its shape is {}", shape_text(tensor.shape))
        .emit();
  }

  Done check_extent(std::uint32_t loop) {
    const FormulaLoop& it = out_.loops[loop];
    if (it.extent != 0) return {};
    return diags_.report<diag::ExpectNoExtent>(it.span, it.name)
        .help("use it alone in a subscript: `x[{}]`", it.name)
        .emit();
  }

  // The index `loop` runs along a dimension of `extent`.
  Done extend(std::uint32_t loop, std::int64_t extent, Span span, const std::string& tensor) {
    FormulaLoop& it = out_.loops[loop];
    if (it.extent == 0) {
      it.extent = extent;
      it.span = span;
      it.tensor = tensor;
    }
    if (it.extent == extent) return {};
    return diags_.report<diag::ExpectExtent>(span, it.name, it.extent, it.tensor, extent, tensor)
        .label(it.span, "{} in `{}`", it.extent, it.tensor)
        .label(span, "{} in `{}`", extent, tensor)
        .emit();
  }

  Done visit(NodeId id) {
    if (node(id).kind == NodeKind::kReduce) return visit_reduction(id);
    if (node(id).kind == NodeKind::kRead) return visit_read(id);
    BoundNode& bound = out_.nodes[id];
    for (const NodeId child : node(id).children) {
      const auto done = visit(child);
      if (!done) return done;
      bound.free |= out_.nodes[child].free;
    }
    switch (node(id).kind) {
      case NodeKind::kNumber: bound.type = node(id).whole ? DType::kS64 : out_.real; return {};
      case NodeKind::kName: return visit_name(id);
      case NodeKind::kConvert: bound.type = held_as(node(id).dtype, out_.real); return {};
      case NodeKind::kUnary: return type_unary(id);
      case NodeKind::kBinary: return type_binary(id);
      case NodeKind::kChoose: bound.type = joined_type(type_of(id, 1), type_of(id, 2)); return {};
      case NodeKind::kRead:
      case NodeKind::kReduce: break;
    }
    KILN_UNREACHABLE("visited before");
  }

  [[nodiscard]] DType type_of(NodeId id, std::size_t child) const {
    return out_.nodes[node(id).children[child]].type;
  }

  Done wrong_type(Span span, std::string_view what, std::string_view wanted, DType found) {
    return diags_.report<diag::ExpectType>(span, what, wanted, words_for(found)).emit();
  }

  Done type_unary(NodeId id) {
    BoundNode& bound = out_.nodes[id];
    const DType operand = type_of(id, 0);
    const UnaryKind kind = node(id).unary;
    bound.type = ir::is_function(kind) ? out_.real : numeric(operand);
    if (kind == UnaryKind::kNot) bound.type = DType::kBool;
    if (kind != UnaryKind::kBitNot || !is_float(operand)) return {};
    return wrong_type(node(id).span, "`~`", "integers", operand);
  }

  Done type_binary(NodeId id) {
    BoundNode& bound = out_.nodes[id];
    const BinaryKind kind = node(id).binary;
    const DType operands = joined_type(type_of(id, 0), type_of(id, 1));
    // Of a subscript the quotient is a whole number as well.
    const bool is_real = kind == BinaryKind::kDiv && !(in_subscript_ && !is_float(operands));
    const bool is_function = ir::class_of(kind) > BinaryClass::kLogical;
    bound.type = is_real || is_function ? out_.real : operands;
    if (ir::is_comparison(kind) || ir::is_logical(kind)) bound.type = DType::kBool;
    if (ir::class_of(kind) != BinaryClass::kBits || !is_float(operands)) return {};
    return wrong_type(node(id).span, "an operator on bits", "integers", operands);
  }

  Done visit_reduction(NodeId id) {
    BoundNode& bound = out_.nodes[id];
    const std::size_t outer = scope_.size();
    for (std::size_t i = 0; i < node(id).indices.size(); ++i) {
      const auto loop = add_loop(node(id).indices[i], node(id).index_spans[i]);
      if (!loop) return Unexpected{loop.error()};
      bound.reduced |= bit(*loop);
    }
    const auto done = visit(node(id).children[0]);
    if (!done) return done;
    const std::vector<std::uint32_t> own(scope_.begin() + static_cast<std::ptrdiff_t>(outer),
                                         scope_.end());
    scope_.resize(outer);
    for (const std::uint32_t loop : own) {
      const auto known = check_extent(loop);
      if (!known) return known;
    }
    const BoundNode& body = out_.nodes[node(id).children[0]];
    bound.free = body.free & ~bound.reduced;
    bound.type = numeric(body.type);
    return {};
  }

  Done visit_name(NodeId id) {
    BoundNode& bound = out_.nodes[id];
    const FormulaNode& name = node(id);
    if (const auto loop = find_loop(name.name)) {
      bound.loop = loop;
      bound.free = bit(*loop);
      bound.type = DType::kS64;
      return {};
    }
    if (defined(name.name) || find_named(out_.given.tensors, name.name)) return visit_read(id);
    bound.scalar = find_named(out_.given.scalars, name.name);
    if (bound.scalar) {
      bound.type = held_as(out_.given.scalars[*bound.scalar].dtype, out_.real);
      return {};
    }
    std::vector<std::string> names;
    for (const std::uint32_t loop : scope_) names.push_back(out_.loops[loop].name);
    for (const NamedScalar& scalar : out_.given.scalars) names.push_back(scalar.name);
    const std::string guess = did_you_mean(name.name, names);
    return diags_.report<diag::ExpectUnknownNumber>(name.span, name.name)
        .help_if(guess.empty() && !names.empty() ? format("there are {}", quoted(names)) : guess)
        .emit();
  }

  // Which tensor or earlier definition the node reads.
  Checked<std::vector<std::int64_t>> resolve(NodeId id) {
    BoundNode& bound = out_.nodes[id];
    const FormulaNode& read = node(id);
    bound.definition = defined(read.name);
    if (bound.definition) {
      const BoundDefinition& definition = out_.definitions[*bound.definition];
      bound.type = definition.type;
      return definition.shape;
    }
    bound.tensor = find_named(out_.given.tensors, read.name);
    if (!bound.tensor) return unknown_tensor(read);
    const Named& named = out_.given.tensors[*bound.tensor];
    if (!named.has_contents) {
      return diags_.report<diag::ExpectReadsResult>(read.span, read.name)
          .help("state it by what the kernel is given")
          .emit();
    }
    bound.type = held_as(named.tensor->dtype, out_.real);
    return named.tensor->shape;
  }

  Unexpected<Reported> unknown_tensor(const FormulaNode& read) {
    std::vector<std::string> names;
    for (const Named& named : out_.given.tensors) names.push_back(named.name);
    for (std::size_t d = 0; d < out_.definitions.size(); ++d) {
      if (!out_.definitions[d].output) names.push_back(left(d).name);
    }
    const std::string guess = did_you_mean(read.name, names);
    return diags_.report<diag::ExpectUnknownName>(read.span, read.name)
        .help_if(guess.empty() ? format("the tensors are {}", quoted(names)) : guess)
        .emit();
  }

  Done visit_read(NodeId id) {
    const auto shape = resolve(id);
    if (!shape) return Unexpected{shape.error()};
    const FormulaNode& read = node(id);
    if (shape->size() != read.children.size()) {
      return wrong_rank(read.span, read.name, Tensor{DType::kF32, *shape, {}},
                        read.children.size());
    }
    for (std::size_t d = 0; d < shape->size(); ++d) {
      const auto done = visit_subscript(id, d, (*shape)[d]);
      if (!done) return done;
      out_.nodes[id].free |= out_.nodes[read.children[d]].free;
    }
    return {};
  }

  // A name alone in a subscript is an index, and goes as far as the dimension.
  Done visit_subscript(NodeId id, std::size_t d, std::int64_t extent) {
    const NodeId child = node(id).children[d];
    const FormulaNode& subscript = node(child);
    if (subscript.kind == NodeKind::kName) {
      const auto loop = find_loop(subscript.name);
      if (!loop) return free_index(subscript);
      const auto fits = extend(*loop, extent, subscript.span, node(id).name);
      if (!fits) return fits;
    }
    const bool outer = std::exchange(in_subscript_, true);
    const auto done = visit(child);
    in_subscript_ = outer;
    if (!done || !is_float(out_.nodes[child].type)) return done;
    return wrong_type(subscript.span, "a subscript", "integers", out_.nodes[child].type);
  }

  Done free_index(const FormulaNode& index) {
    return diags_.report<diag::ExpectFreeIndex>(index.span, index.name)
        .help("write what becomes of it: `sum[{}](...)`; only a plain product is summed unasked",
              index.name)
        .emit();
  }

  // A definition that states no output is there for later ones.
  Done check_used(std::size_t d) {
    if (out_.definitions[d].output) return {};
    for (const BoundNode& read : out_.nodes) {
      if (read.definition == d) return {};
    }
    const std::string guess = did_you_mean(left(d).name, out_.given.outputs);
    return diags_.report<diag::ExpectUnused>(left(d).span, left(d).name)
        .help_if(guess.empty() ? format("the kernel gives back {}", quoted(out_.given.outputs))
                               : guess)
        .emit();
  }

  Diagnostics& diags_;
  BoundFormula out_;
  bool in_subscript_ = false;
  std::vector<std::uint32_t> scope_;  // the loops in sight, the innermost last
};

}  // namespace

Checked<BoundFormula> bind(Formula formula, Given given, Diagnostics& diags) {
  return Binder(std::move(formula), std::move(given), diags).bound();
}

}  // namespace kiln::reference
