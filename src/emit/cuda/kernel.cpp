#include "emit/cuda/kernel.h"

#include <algorithm>

#include "ir/cuda_text.h"
#include "ir/effects.h"
#include "ir/prove.h"
#include "ir/reflect.h"
#include "ir/strides.h"
#include "target/arch.h"

namespace kiln::emit {

using ir::Expr;
using ir::ValueId;
using ir::VarId;

namespace {

// Their variables come behind those of the function.
std::vector<Shorthand> numbered(std::vector<Shorthand> names, std::size_t first) {
  for (Shorthand& name : names) name.var = VarId{static_cast<std::uint32_t>(first++)};
  return names;
}

void collect_dividends(const Expr& expr, std::set<VarId>& out) {
  for (const ir::Term& term : expr.terms()) {
    for (const ir::Atom& atom : term.atoms) {
      if (atom.kind == ir::AtomKind::kVar) continue;
      if (atom.kind == ir::AtomKind::kFloorDiv || atom.kind == ir::AtomKind::kMod) {
        std::vector<VarId> vars;
        atom.left->collect_vars(vars);
        out.insert(vars.begin(), vars.end());
      }
      collect_dividends(*atom.left, out);
      collect_dividends(*atom.right, out);
    }
  }
}

// The variables of which something is divided.
std::set<VarId> dividends_of(const ir::Function& function) {
  std::set<VarId> out;
  for (const ir::Op& op : function.ops) {
    ir::for_each_expr(op, [&](const Expr& expr) { collect_dividends(expr, out); });
  }
  return out;
}

}  // namespace

Kernel::Kernel(const ir::Function& function, const LaunchPlan& plan, const Sources& sources,
               Requirements& requirements, TextOptions options)
    : function(function),
      plan(plan),
      sources(sources),
      requirements(requirements),
      uses(kernel_uses(function, plan.op)),
      inlined(
          inlined_values(function, std::get<ir::Parallel>(function.ops[plan.op].data).body, uses)),
      out(options.line_directives),
      value_names(function.values.size()),
      var_names(function.vars.size() + options.names.size()),
      shorthands(function, numbered(std::move(options.names), function.vars.size())),
      counters(function),
      dividends(dividends_of(function)) {
  NameTable table;
  table.claim(plan.kernel_name);
  for (const ParamSlot& slot : plan.slots) {
    if (slot.kind == SlotKind::kMap) {
      table.claim(slot.name);
      continue;
    }
    (slot.var.valid() ? var_names[slot.var.index] : value_names[slot.value.index]) =
        table.claim(slot.name);
  }
  keep_names_of_texts(table);
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    if (var_names[v].empty()) var_names[v] = table.claim(function.vars[VarId{v}].name);
  }
  for (std::uint32_t v = 0; v < function.values.size(); ++v) {
    if (value_names[v].empty()) value_names[v] = table.claim(function.values[ValueId{v}].name);
  }
  for (const Shorthand& shorthand : shorthands.all()) {
    var_names[shorthand.var.index] = table.claim(function.named[shorthand.index].name);
  }
  const auto own = [&](std::string_view wanted) {
    var_names.push_back(table.claim(wanted));
    return VarId{static_cast<std::uint32_t>(var_names.size() - 1)};
  };
  thread = own("thread");
  lane = own("lane");
  warp = own("warp");
  counter = own("i");
  inner_counter = own("j");
  row_name = table.claim("row");
  count_name = table.claim("count");
  factors = own("factors");
  rank = own("rank");
  phase_names.resize(function.values.size());
  for (const ir::Op& op : function.ops) {
    const auto* wait = std::get_if<ir::EventWait>(&op.data);
    if (wait == nullptr || !wait->tracked) continue;
    std::string& phase = phase_names[wait->event.index];
    if (phase.empty()) phase = table.claim(name(wait->event) + "_phase");
  }
}

std::string* Kernel::variable_of(ValueId value) {
  if (const auto* index = function.def_as<ir::Index>(value)) {
    const auto var = index->expr.as_var();
    return var ? &var_names[var->index] : nullptr;
  }
  const ir::OpId def = function.values[value].def;
  const auto* get = function.def_as<ir::Get>(value);
  if (get != nullptr && uses.inside[def.index]) return &value_names[get->cell.index];
  for (const ir::Param& param : function.params) {
    if (param.value == value && param.var.valid()) return &var_names[param.var.index];
  }
  std::string& own = value_names[value.index];
  const auto* view = std::get_if<ir::ViewType>(&function.type(value));
  if (view == nullptr) {
    const bool is_number = std::holds_alternative<ir::ScalarType>(function.type(value));
    const bool is_given = get != nullptr || !def.valid();  // to the kernel
    return is_number && !is_given ? nullptr : &own;
  }
  if (function.def_as<ir::Subview>(value) != nullptr) return nullptr;
  const bool is_pointer =
      view->space != ir::Space::kShared || ir::is_sized_at_launch(function, value);
  return is_pointer ? &own : nullptr;
}

void Kernel::keep_names_of_texts(NameTable& table) {
  for (std::uint32_t i = 0; i < function.ops.size(); ++i) {
    const auto* cuda = std::get_if<ir::Cuda>(&function.ops[ir::OpId{i}].data);
    if (cuda == nullptr || !uses.inside[i]) continue;
    for (std::size_t k = 0; k < cuda->names.size(); ++k) {
      const std::size_t passed = cuda->passed.size();
      std::string* variable = variable_of(k < passed ? cuda->passed[k] : cuda->numbers[k - passed]);
      if (variable != nullptr && variable->empty() && table.keep(cuda->names[k])) {
        *variable = cuda->names[k];
      }
    }
    for (const std::string& name : ir::names_in_cpp(cuda->text)) (void)table.keep(name);
  }
}

Expr Kernel::use_thread() {
  needs_thread = true;
  return Expr::var(thread);
}

Expr Kernel::use_lane() {
  needs_lane = true;
  return Expr::var(lane);
}

Expr Kernel::use_warp() {
  needs_warp = true;
  requirements.headers.insert("warp.cuh");
  return Expr::var(warp);
}

Expr Kernel::use_rank() {
  needs_rank = true;
  return Expr::var(rank);
}

Expr Kernel::thread_in(std::int64_t unit_threads) {
  if (unit_threads == 0) return use_thread();
  if (unit_threads == target::kWarpLanes) return use_lane();
  return mod(use_thread(), Expr(unit_threads));
}

VarFacts Kernel::facts() const {
  return {
      .name = [this](VarId var) { return var_names[var.index]; },
      .never_negative =
          [this](VarId var) {
            for (const Shorthand& shorthand : shorthands.all()) {
              if (shorthand.var == var) return shorthand.never_negative;
            }
            if (var.index >= function.vars.size()) return true;
            return counters.contains(var) ||
                   ir::minimum(function, Expr::var(var)).value_or(-1) >= 0;
          },
  };
}

Spelled Kernel::spelled(const Expr& expr) {
  return spelled_as_it_is(shorthands.shorten(expr, true));
}

Spelled Kernel::spelled_as_it_is(const Expr& expr) {
  Spelled out = spell(expr, facts());
  if (out.text.find("kiln::") != std::string::npos) requirements.headers.insert("math.cuh");
  return out;
}

Spelled Kernel::spelled_in_64_bits(const Expr& expr) {
  VarFacts wide = facts();
  wide.name = [this](VarId var) {
    const std::string& name = var_names[var.index];
    return is_wide(var) ? name : format("{}({})", type_name(DType::kS64), name);
  };
  Spelled out = spell(expr, wide);
  if (out.text.find("kiln::") != std::string::npos) requirements.headers.insert("math.cuh");
  return out;
}

std::string Kernel::wide_text(const Expr& expr) {
  if (expr.constant()) return text(expr);
  // Each product by itself, so that none is computed in 32 bits.
  std::vector<std::string> terms;
  for (const ir::Term& term : expr.terms()) {
    std::string product = format("{}LL", term.coefficient);
    for (const ir::Atom& atom : term.atoms) {
      const Expr next = atom.kind == ir::AtomKind::kVar
                            ? Expr::var(atom.var)
                            : ir::make_atom(atom.kind, *atom.left, *atom.right);
      product += " * " + bracketed(spelled(next), Binding::kUnary);
    }
    terms.push_back(std::move(product));
  }
  return format("({})", join(terms, " + ", [](const std::string& term) { return term; }));
}

bool Kernel::is_wide(VarId var) const {
  if (var.index < function.vars.size() && function.vars[var].kind == ir::VarKind::kBound) {
    return true;
  }
  return std::ranges::any_of(plan.slots, [&](const ParamSlot& slot) {
    return slot.var == var && info(slot.dtype).bits > 32;
  });
}

bool Kernel::is_wide(const Expr& expr) const {
  std::vector<VarId> used;
  expr.collect_vars(used);
  return !has_int_numbers(expr) ||
         std::ranges::any_of(used, [&](VarId var) { return is_wide(var); });
}

std::string Kernel::braced(const std::vector<Expr>& exprs) {
  return format("{{{}}}", join(exprs, ", ", [&](const Expr& expr) {
                  return is_wide(expr) ? format("int({})", text(expr)) : text(expr);
                }));
}

Expr flat_index(const std::vector<Expr>& shape, const std::vector<Expr>& index) {
  Expr flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

std::vector<Expr> unflatten(const std::vector<Expr>& shape, const Expr& flat) {
  std::vector<Expr> index(shape.size(), Expr(0));
  Expr below = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const Expr rest = below.is(1) ? flat : floor_div(flat, below);
    index[d] = d == 0 ? rest : mod(rest, shape[d]);
    if (shape[d].is(1)) index[d] = 0;
    below = below * shape[d];
  }
  return index;
}

TileShape tile_shape(const ir::ViewType& view) {
  TileShape out;
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    const auto extent = view.shape[d].constant();
    KILN_CHECK(extent.has_value(), "dimension {} of a tile in shared or local memory varies", d);
    (d + 1 == view.shape.size() ? out.cols : out.rows) *= *extent;
  }
  return out;
}

bool Kernel::reads_other_blocks() const {
  for (std::uint32_t i = 0; i < uses.inside.size(); ++i) {
    if (uses.inside[i] && ir::reads_other_block(function.ops[ir::OpId{i}])) return true;
  }
  return false;
}

std::string Kernel::element(ValueId root, const std::vector<Expr>& index,
                            const std::optional<Expr>& block) {
  const ir::ViewType& view = function.view_type(root);
  const std::string base =
      block ? format("kiln::in_block({}, {})", name(root), text(*block)) : name(root);
  const bool by_pointer = ir::is_sized_at_launch(function, root);
  switch (by_pointer ? ir::Space::kGlobal : view.space) {
    case ir::Space::kLocal:
      return format("{}[{}]", name(root), text(flat_index(view.shape, index)));
    case ir::Space::kShared: {
      const std::vector<Expr> leading(index.begin(), index.end() - 1);
      const std::vector<Expr> extents(view.shape.begin(), view.shape.end() - 1);
      return format("{}.at({}, {})", base, text(flat_index(extents, leading)), text(index.back()));
    }
    case ir::Space::kGlobal: break;
  }
  const auto* alias = function.def_as<ir::Alias>(root);
  const bool strided = alias != nullptr && !alias->strides.empty();
  if (index.size() == 1) {
    const Expr place = strided ? index[0] * alias->strides[0] : index[0];
    return format("{}[{}]", base, text(place));
  }
  requirements.headers.insert("window.cuh");
  return format("kiln::{}({}, {}, {})", strided ? "strided_at" : "at", base,
                braced(strided ? alias->strides : view.shape), braced(index));
}

std::string Kernel::rows_aligned(ValueId root, std::int64_t run) {
  const auto* alias = function.def_as<ir::Alias>(root);
  const bool strided = alias != nullptr && !alias->strides.empty();
  requirements.headers.insert("window.cuh");
  return format("kiln::{}rows_aligned<{}>({}, {})", strided ? "strided_" : "", run, name(root),
                braced(strided ? alias->strides : function.view_type(root).shape));
}

namespace {

// The coordinates of the whole buffer that `index` of the window means.
std::vector<Expr> root_index(const ir::ResolvedView& view, const std::vector<Expr>& index) {
  std::vector<Expr> out = view.origin;
  for (std::size_t d = 0; d < index.size(); ++d) {
    out[view.dropped + d] = out[view.dropped + d] + index[d];
  }
  return out;
}

}  // namespace

std::string element(Kernel& kernel, const ir::ResolvedView& view, const std::vector<Expr>& index,
                    const std::optional<Expr>& block) {
  return kernel.element(view.root, root_index(view, index), block);
}

std::string inside(Kernel& kernel, const ir::ResolvedView& view, const std::vector<Expr>& index,
                   const std::vector<std::int64_t>& guarded,
                   const std::vector<std::int64_t>& before) {
  const std::vector<Expr> whole = root_index(view, index);
  std::vector<std::string> tests;
  for (const std::int64_t dim : before) {
    const Expr& place = whole[view.dropped + static_cast<std::size_t>(dim)];
    tests.push_back(format("{} >= 0", bracketed(kernel.spelled(place), Binding::kShift)));
  }
  for (const std::int64_t dim : guarded) {
    const std::size_t d = view.dropped + static_cast<std::size_t>(dim);
    for (const Expr& limit : view.limits[d]) {
      tests.push_back(format("{} < {}", bracketed(kernel.spelled(whole[d]), Binding::kShift),
                             bracketed(kernel.spelled(limit), Binding::kShift)));
    }
  }
  return join(tests, " && ", [](const std::string& test) { return test; });
}

}  // namespace kiln::emit
