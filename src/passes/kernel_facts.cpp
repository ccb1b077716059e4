#include "passes/kernel_facts.h"

#include <algorithm>

#include "ir/effects.h"

namespace kiln::passes {

void unite(Accesses& accesses, const Accesses& more) {
  for (const Access& access : more) {
    if (std::find(accesses.begin(), accesses.end(), access) == accesses.end()) {
      accesses.push_back(access);
    }
  }
}

bool conflict(const Access& before, const Access& now) {
  if (before.root != now.root || !(before.writes || now.writes)) return false;
  if (before.is_awaited_by_program()) return false;
  if (before.of_any_block || now.of_any_block) return true;
  if (before.bulk && now.bulk && before.unit == now.unit) return false;  // one thread starts both
  if (before.handed && now.writes) return false;
  if (before.commutes && before.commutes == now.commutes) return false;
  return before.collective || now.collective || before.nest != now.nest;
}

namespace {

bool are_apart(std::int64_t first, std::int64_t length, std::int64_t other, std::int64_t others) {
  return first + length <= other || other + others <= first;
}

// Whether warpgroup i goes elsewhere in `a` than warpgroup j in `b`.
bool are_apart(const Parts& a, std::size_t i, const Parts& b, std::size_t j) {
  const bool rows = a.dimension == b.dimension && i < a.starts.size() && j < b.starts.size();
  if (rows && are_apart(a.starts[i], a.extent, b.starts[j], b.extent)) return true;
  const auto first = [](const Parts& parts, std::size_t warpgroup) -> std::optional<std::int64_t> {
    if (parts.firsts.size() == 1) return parts.firsts[0];
    if (warpgroup < parts.firsts.size()) return parts.firsts[warpgroup];
    return std::nullopt;
  };
  const auto here = first(a, i);
  const auto there = first(b, j);
  return here && there && are_apart(*here, a.length, *there, b.length);
}

}  // namespace

bool are_apart(const Access& before, const Access& now, const Team& team, bool itself) {
  if (team.first % kWarpgroup != 0) return false;
  if (team.threads == 0 || team.threads % kWarpgroup != 0) return false;
  const auto first = static_cast<std::size_t>(team.first / kWarpgroup);
  const auto end = first + static_cast<std::size_t>(team.threads / kWarpgroup);
  for (std::size_t i = first; i < end; ++i) {
    for (std::size_t j = first; j < end; ++j) {
      if (i == j && !itself) continue;
      if (!are_apart(before.parts, i, now.parts, j)) return false;
    }
  }
  return true;
}

bool is_asynchronous(const ir::Op& op) {
  const auto* mma = std::get_if<ir::Mma>(&op.data);
  return mma != nullptr && mma->is_asynchronous();
}

KernelFacts::KernelFacts(const ir::Function& function, ir::RegionId body) : function_(function) {
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* parallel = std::get_if<ir::Parallel>(&function.ops[id].data);
    const bool numbers = parallel != nullptr && parallel->level == ir::Level::kGroup4;
    if (numbers && parallel->vars.size() == 1) warpgroups_.insert(parallel->vars[0]);
  });
  find_tensors(body);
  look(body, kBlockTeam);
}

void KernelFacts::find_tensors(ir::RegionId body) {
  std::set<ir::ValueId> loaded;
  std::set<ir::ValueId> stored;
  std::set<ir::ValueId> added;  // to, by bulk copies
  std::set<ir::ValueId> read;
  std::set<ir::ValueId> written;
  ir::walk(function_, body, [&](ir::OpId id) {
    for (const ir::Touch& touch : ir::memory_touched(function_, function_.ops[id])) {
      const ir::ValueId root = ir::root_of(function_, touch.value);
      if (!is_global(root)) continue;
      const bool bulk = touch.proxy == ir::Proxy::kAsync;
      // What is added is not seen by whoever adds.
      const bool adds = bulk && touch.commutes.has_value();
      if (touch.reads() && !adds) (bulk ? loaded : read).insert(root);
      if (touch.writes()) (adds ? added : bulk ? stored : written).insert(root);
    }
  });
  for (const ir::ValueId root : added) {
    if (!stored.insert(root).second) exchanged_.insert(root);
  }
  for (const ir::ValueId root : stored) {
    if (loaded.contains(root) || read.contains(root) || written.contains(root)) {
      exchanged_.insert(root);
    }
  }
  for (const ir::ValueId root : loaded) {
    if (written.contains(root)) exchanged_.insert(root);
  }
  for (const ir::ValueId root : written) {
    if (read.contains(root)) read_back_.insert(root);
  }
}

void KernelFacts::look(ir::RegionId region, int outermost) {
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    look_at(op, outermost);
    int inner = outermost;
    if (const auto* some = std::get_if<ir::Inthreads>(&op.data)) {
      inner = team_of(*some);
      if (inner == kBlockTeam) {
        inner = static_cast<int>(teams_.size());
        teams_.push_back({some->first, some->threads, some->single});
      }
      teams_[static_cast<std::size_t>(inner)].single &= some->single;
      if (outermost != kBlockTeam) inner = outermost;
    }
    for (const ir::RegionId part : ir::regions_of(op)) look(part, inner);
  }
}

void KernelFacts::look_at(const ir::Op& op, int outermost) {
  const auto* wait = std::get_if<ir::MmaWait>(&op.data);
  program_waits_ = program_waits_ || (wait != nullptr && wait->stated);
  const auto* load = std::get_if<ir::Load>(&op.data);
  if (load != nullptr && load->in_shared) {
    const ir::ValueId root = ir::root_of(function_, load->view);
    const Tile tile{root, parts_of(load->view)};
    const auto [known, first] = tile_of_.try_emplace(load->frag, tile);
    if (!first && known->second.parts != tile.parts) known->second = {root, {}};
    asynchronous_.insert(root);
    users_[root].insert(outermost);
  }
  for (const Access& access : own(op)) {
    if (is_fragment(access.root)) continue;
    users_[access.root].insert(outermost);
    if (access.bulk) asynchronous_.insert(access.root);
    if (access.of_any_block) read_by_blocks_.insert(access.root);
  }
}

int KernelFacts::team_of(const ir::Inthreads& region) const {
  for (std::size_t i = 1; i < teams_.size(); ++i) {
    if (teams_[i].first == region.first && teams_[i].threads == region.threads) {
      return static_cast<int>(i);
    }
  }
  return kBlockTeam;
}

bool KernelFacts::is_handed_over(ir::ValueId root) const {
  const auto users = users_.find(root);
  return users != users_.end() && users->second.size() > 1;
}

bool KernelFacts::is_fragment(ir::ValueId value) const {
  return std::holds_alternative<ir::FragType>(function_.type(value));
}

bool KernelFacts::is_global(ir::ValueId root) const {
  const auto* view = std::get_if<ir::ViewType>(&function_.type(root));
  return view != nullptr && view->space == ir::Space::kGlobal;
}

std::vector<std::int64_t> KernelFacts::by_warpgroup(const ir::Expr& expr) const {
  std::vector<ir::VarId> vars;
  expr.collect_vars(vars);
  if (vars.empty()) return {expr.evaluate({})};
  if (vars.size() != 1 || !warpgroups_.contains(vars[0])) return {};
  const auto count = function_.vars[vars[0]].extent.constant();
  if (!count) return {};
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> values(function_.vars.size());
  for (std::int64_t i = 0; i < *count; ++i) {
    values[vars[0].index] = i;
    out.push_back(expr.evaluate(values));
  }
  return out;
}

Parts KernelFacts::parts_of(ir::ValueId value) const {
  Parts out;
  add_rows(out, value);
  add_elements(out, value);
  return out;
}

// Of a view in another shape its elements stand in the same order.
void KernelFacts::add_elements(Parts& parts, ir::ValueId value) const {
  const ir::ResolvedView view = ir::resolve_view(function_, value);
  if (function_.view_type(view.root).space != ir::Space::kShared) return;
  const std::vector<ir::Expr> strides = ir::root_strides(function_, view.root);
  const ir::ViewType& type = function_.view_type(value);
  ir::Expr first = ir::root_offset(function_, view.root);
  std::int64_t length = 1;
  for (std::size_t d = 0; d < view.origin.size(); ++d) {
    const auto stride = strides[d].constant();
    const auto extent = d < view.dropped ? 1 : type.shape[d - view.dropped].constant();
    if (!stride || !extent) return;
    first = first + view.origin[d] * strides[d];
    length += (*extent - 1) * *stride;
  }
  parts.firsts = by_warpgroup(first);
  parts.length = length;
}

// By the first dimension whose origin is made of the warpgroup's number.
void KernelFacts::add_rows(Parts& parts, ir::ValueId value) const {
  const ir::ResolvedView view = ir::resolve_view(function_, value);
  if (view.root != ir::root_of(function_, value)) return;
  const ir::ViewType& type = function_.view_type(value);
  for (std::size_t d = 0; d < view.origin.size(); ++d) {
    std::vector<ir::VarId> vars;
    view.origin[d].collect_vars(vars);
    if (vars.size() != 1 || !warpgroups_.contains(vars[0])) continue;
    const auto extent = d < view.dropped ? 1 : type.shape[d - view.dropped].constant();
    if (!extent) continue;
    std::vector<std::int64_t> starts = by_warpgroup(view.origin[d]);
    if (starts.empty()) continue;
    parts.dimension = d;
    parts.extent = *extent;
    parts.starts = std::move(starts);
    return;
  }
}

// What an asynchronous product has in registers, or reads in shared memory instead. Registers that
// are used at once need no order.
void KernelFacts::add_operand(Accesses& out, const ir::Touch& touch) const {
  if (!touch.asynchronous) return;
  const auto tile = tile_of_.find(touch.value);
  const bool in_place = tile != tile_of_.end();
  out.push_back({.root = in_place ? tile->second.root : touch.value,
                 .writes = touch.writes(),
                 .collective = true,
                 .product = true,
                 .parts = in_place ? tile->second.parts : Parts{}});
}

void KernelFacts::add_memory(Accesses& out, const ir::Op& op, const ir::Touch& touch) const {
  const ir::ValueId root = ir::root_of(function_, touch.value);
  const bool shared = function_.view_type(root).space == ir::Space::kShared;
  if (!shared && !is_exchanged(root) && !is_read_back(root)) return;
  Access access;
  access.parts = parts_of(touch.value);
  access.root = root;
  access.writes = touch.writes();
  access.commutes = touch.commutes;
  access.of_any_block = touch.of_any_block;
  // What each thread does by itself to elements that it chooses is like one element's access.
  const bool alone = ir::traits(op.kind()).executor == ir::Executor::kThread;
  access.collective = touch.index == nullptr && !(alone && touch.chooses);
  access.bulk = touch.proxy == ir::Proxy::kAsync;
  access.unit = access.bulk ? ir::unit_of(op) : 0;
  access.in_flight = access.writes && touch.asynchronous && !access.bulk;
  if (access.in_flight || (access.bulk && access.writes)) access.label = touch.label;
  out.push_back(access);
}

Accesses KernelFacts::own(const ir::Op& op) const {
  Accesses out;
  ir::for_each_touch(op, [&](const ir::Touch& touch) {
    const ir::Type& type = function_.type(touch.value);
    if (std::holds_alternative<ir::FragType>(type)) add_operand(out, touch);
    if (std::holds_alternative<ir::ViewType>(type)) add_memory(out, op, touch);
  });
  return out;
}

void KernelFacts::add_all(Accesses& out, const ir::Op& op, bool elected) const {
  Accesses some = own(op);
  for (Access& access : some) access.collective = access.collective || elected;
  unite(out, some);
  const bool once = elected || op.kind() == ir::OpKind::kOnce;
  for (const ir::RegionId region : ir::regions_of(op)) {
    for (const ir::OpId id : function_.regions[region].ops) add_all(out, function_.ops[id], once);
  }
}

Accesses KernelFacts::all(const ir::Op& op) const {
  Accesses out;
  add_all(out, op, false);
  return out;
}

}  // namespace kiln::passes
