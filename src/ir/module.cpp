#include "ir/module.h"

#include <algorithm>

#include "ir/strides.h"

namespace kiln::ir {

std::string Function::text(const Expr& expr) const {
  return expr.text([&](VarId id) { return vars[id].name; });
}

const ViewType& Function::view_type(ValueId value) const {
  const ViewType* view = std::get_if<ViewType>(&values[value].type);
  KILN_CHECK(view != nullptr, "`%{}` of `@{}` is no view", values[value].name, name);
  return *view;
}

const FragType& Function::frag_type(ValueId value) const {
  const FragType* frag = std::get_if<FragType>(&values[value].type);
  KILN_CHECK(frag != nullptr, "`%{}` of `@{}` is no fragment", values[value].name, name);
  return *frag;
}

namespace {

void add_limit(std::vector<Expr>& limits, Expr limit) {
  if (std::find(limits.begin(), limits.end(), limit) == limits.end()) {
    limits.push_back(std::move(limit));
  }
}

// Goes from the window that `at` describes, seen through `base`, into the window `subview` of it.
void enter(const Function& function, const Subview& subview, ResolvedView& at) {
  const ViewType& base = function.view_type(subview.base);
  KILN_CHECK(subview.origin.size() == base.shape.size(),
             "an origin of rank {} in a base of rank {}", subview.origin.size(), base.shape.size());
  KILN_CHECK(subview.drop >= 0 && static_cast<std::size_t>(subview.drop) <= base.shape.size(),
             "{} dimensions dropped of {}", subview.drop, base.shape.size());
  for (std::size_t i = 0; i < base.shape.size(); ++i) {
    const std::size_t d = at.dropped + i;
    add_limit(at.limits[d], at.origin[d] + base.shape[i]);
    at.origin[d] = at.origin[d] + subview.origin[i];
  }
  at.dropped += static_cast<std::size_t>(subview.drop);
}

}  // namespace

ResolvedView resolve_view(const Function& function, ValueId view) {
  std::vector<const Subview*> windows;  // innermost first
  ValueId root = view;
  while (const Subview* window = function.def_as<Subview>(root)) {
    windows.push_back(window);
    root = window->base;
  }
  const ViewType& type = function.view_type(root);
  ResolvedView at;
  at.root = root;
  at.origin.assign(type.shape.size(), Expr(0));
  for (const Expr& extent : type.shape) at.limits.push_back({extent});
  for (auto window = windows.rbegin(); window != windows.rend(); ++window) {
    enter(function, **window, at);
  }
  return at;
}

ValueId root_of(const Function& function, ValueId view) {
  while (view.valid()) {
    const Subview* window = function.def_as<Subview>(view);
    const Alias* alias = function.def_as<Alias>(view);
    if (window == nullptr && alias == nullptr) break;
    view = window != nullptr ? window->base : alias->base;
  }
  return view;
}

bool is_sized_at_launch(const Function& function, ValueId root) {
  const ViewType& type = function.view_type(storage_of(function, root));
  return type.space == Space::kShared &&
         std::ranges::any_of(type.shape, [](const Expr& e) { return !e.constant(); });
}

ValueId storage_of(const Function& function, ValueId root) {
  const Alias* alias = function.def_as<Alias>(root);
  return alias == nullptr ? root : alias->base;
}

std::vector<Expr> root_strides(const Function& function, ValueId root) {
  const Alias* alias = function.def_as<Alias>(root);
  if (alias != nullptr && !alias->strides.empty()) return alias->strides;
  const std::vector<Expr>& shape = function.view_type(root).shape;
  std::vector<Expr> strides(shape.size(), Expr(1));
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Expr root_offset(const Function& function, ValueId root) {
  const Alias* alias = function.def_as<Alias>(root);
  return alias == nullptr ? Expr(0) : alias->offset;
}

bool rows_are_dense(const Function& function, ValueId root) {
  const std::vector<Expr> strides = root_strides(function, root);
  return strides.empty() || strides.back().is(1);
}

namespace {

template <class Data>
concept HasRegions = requires(Data data) {
  data.body;
}
|| requires(Data data) { data.stand_in; }
|| requires(Data data) { data.then_body; };

template <class... Ts>
constexpr std::array<bool, sizeof...(Ts)> which_have_regions(const OneOf<Ts...>*) {
  return {HasRegions<Ts>...};
}
constexpr auto kHasRegions = which_have_regions(static_cast<const OpData*>(nullptr));

}  // namespace

Regions regions_of(const Op& op) {
  Regions all;
  if (!kHasRegions[op.data.index()]) return all;
  const auto add = [&](RegionId region) {
    if (region.valid()) all.add(region);
  };
  const auto add_those_of = [&](const auto& data) {
    if constexpr (requires { data.body; }) add(data.body);
    if constexpr (requires { data.stand_in; }) add(data.stand_in);
    if constexpr (requires { data.then_body; }) {
      add(data.then_body);
      add(data.else_body);
    }
  };
  kiln::visit(add_those_of, op.data);
  return all;
}

void walk(const Function& function, RegionId region, FunctionRef<void(OpId)> visit) {
  for (const OpId id : function.regions[region].ops) {
    visit(id);
    for (const RegionId inner : regions_of(function.ops[id])) walk(function, inner, visit);
  }
}

bool is_read_in_place(const Function& function, const Load& load) {
  const Alloc* alloc = function.def_as<Alloc>(load.frag);
  if (alloc == nullptr || alloc->atom == nullptr || !alloc->atom->reads_shared) return false;
  const Role role = function.frag_type(load.frag).role;
  return role == Role::kB || (role == Role::kA && !load.to_registers);
}

std::int64_t stored_columns(const Function& function, const Store& store) {
  const auto columns = function.view_type(store.view).shape[store.transposed ? 0 : 1].constant();
  KILN_CHECK(columns.has_value(), "`{}` is stored into a view without constant columns",
             function.values[store.frag].name);
  return *columns;
}

std::vector<OpId> launches(const Function& function) {
  std::vector<OpId> out;
  walk(function, function.body, [&](OpId id) {
    const Parallel* parallel = std::get_if<Parallel>(&function.ops[id].data);
    if (parallel != nullptr && parallel->level == Level::kBlock) out.push_back(id);
  });
  return out;
}

}  // namespace kiln::ir
