#include "passes/kernel_facts.h"

#include <algorithm>

#include "ir/reflect.h"
#include "ir/strides.h"

namespace kiln::passes {

namespace {

// The buffer behind a view, through aliases too.
ir::ValueId root_of(const ir::Function& function, ir::ValueId view) {
  return ir::storage_of(function, ir::resolve_view(function, view).root);
}

}  // namespace

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
  if (before.bulk && now.bulk && before.unit == now.unit) return false;  // one thread starts both
  if (before.handed && now.writes) return false;
  return before.collective || now.collective || before.nest != now.nest;
}

bool are_apart(const Access& before, const Access& now, const Team& team) {
  const Parts& a = before.parts;
  const Parts& b = now.parts;
  if (a.dimension != b.dimension || team.first % kWarpgroup != 0) return false;
  if (team.threads == 0 || team.threads % kWarpgroup != 0) return false;
  const auto first = static_cast<std::size_t>(team.first / kWarpgroup);
  const auto end = first + static_cast<std::size_t>(team.threads / kWarpgroup);
  if (a.starts.size() < end || b.starts.size() < end) return false;
  for (std::size_t i = first; i < end; ++i) {
    for (std::size_t j = first; j < end; ++j) {
      const bool disjoint =
          a.starts[i] + a.extent <= b.starts[j] || b.starts[j] + b.extent <= a.starts[i];
      if (i != j && !disjoint) return false;
    }
  }
  return true;
}

bool is_asynchronous(const ir::Op& op) {
  const auto* mma = std::get_if<ir::Mma>(&op.data);
  return mma != nullptr && mma->atom != nullptr && mma->atom->asynchronous;
}

ir::ValueId label_of(const ir::Copy& copy) {
  return copy.future.valid() ? copy.future : copy.event;
}

KernelFacts::KernelFacts(const ir::Function& function, ir::RegionId body) : function_(function) {
  ir::walk(function, body, [&](ir::OpId id) {
    const auto* parallel = std::get_if<ir::Parallel>(&function.ops[id].data);
    const bool numbers = parallel != nullptr && parallel->level == ir::Level::kGroup4;
    if (numbers && parallel->vars.size() == 1) warpgroups_.insert(parallel->vars[0]);
  });
  find_exchanged(body);
  look(body, kBlockTeam);
}

void KernelFacts::find_exchanged(ir::RegionId body) {
  std::set<ir::ValueId> loaded;
  std::set<ir::ValueId> stored;
  std::set<ir::ValueId> read;
  std::set<ir::ValueId> written;
  const auto note = [&](ir::ValueId view, std::set<ir::ValueId>& set) {
    const ir::ValueId root = root_of(function_, view);
    if (is_global(root)) set.insert(root);
  };
  ir::walk(function_, body, [&](ir::OpId id) {
    const ir::OpData& data = function_.ops[id].data;
    if (const auto* copy = std::get_if<ir::Copy>(&data)) {
      note(copy->src, copy->bulk ? loaded : read);
      note(copy->dst, copy->bulk ? stored : written);
    }
    if (const auto* load = std::get_if<ir::Load>(&data)) note(load->view, read);
    if (const auto* scale = std::get_if<ir::Scale>(&data)) note(scale->factors, read);
    if (const auto* element = std::get_if<ir::Read>(&data)) note(element->view, read);
    if (const auto* store = std::get_if<ir::Store>(&data)) note(store->view, written);
    if (const auto* splat = std::get_if<ir::Splat>(&data)) note(splat->view, written);
    if (const auto* element = std::get_if<ir::Write>(&data)) note(element->view, written);
  });
  for (const ir::ValueId root : stored) {
    if (loaded.contains(root) || read.contains(root) || written.contains(root)) {
      exchanged_.insert(root);
    }
  }
  for (const ir::ValueId root : loaded) {
    if (written.contains(root)) exchanged_.insert(root);
  }
}

void KernelFacts::look(ir::RegionId region, int team) {
  for (const ir::OpId id : function_.regions[region].ops) {
    const ir::Op& op = function_.ops[id];
    look_at(op, team);
    int inner = team;
    if (const auto* some = std::get_if<ir::Inthreads>(&op.data)) {
      inner = team_of(*some);
      if (inner == kBlockTeam) {
        inner = static_cast<int>(teams_.size());
        teams_.push_back({some->first, some->threads, some->single});
      }
      teams_[static_cast<std::size_t>(inner)].single &= some->single;
    }
    for (const ir::RegionId part : ir::regions_of(op)) look(part, inner);
  }
}

void KernelFacts::look_at(const ir::Op& op, int team) {
  const auto* wait = std::get_if<ir::MmaWait>(&op.data);
  program_waits_ = program_waits_ || (wait != nullptr && wait->stated);
  const auto* load = std::get_if<ir::Load>(&op.data);
  if (load != nullptr && load->in_shared) {
    const ir::ValueId root = root_of(function_, load->view);
    tile_of_[load->frag] = root;
    asynchronous_.insert(root);
    users_[root].insert(team);
  }
  for (const Access& access : own(op)) {
    if (is_fragment(access.root)) continue;
    users_[access.root].insert(team);
    if (access.bulk) asynchronous_.insert(access.root);
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

// What an asynchronous product reads in shared memory, and its registers.
Accesses KernelFacts::of_product(const ir::Mma& mma) const {
  Accesses out;
  for (const ir::ValueId frag : {mma.a, mma.b, mma.c, mma.metadata}) {
    if (!frag.valid()) continue;
    const auto tile = tile_of_.find(frag);
    Access access;
    access.root = tile == tile_of_.end() ? frag : tile->second;
    access.writes = frag == mma.c;
    access.collective = true;
    access.product = true;
    out.push_back(access);
  }
  return out;
}

// By the first dimension whose origin is made of the warpgroup's number.
Parts KernelFacts::parts_of(const ir::ResolvedView& view, const ir::ViewType& type) const {
  for (std::size_t d = 0; d < view.origin.size(); ++d) {
    std::vector<ir::VarId> vars;
    view.origin[d].collect_vars(vars);
    if (vars.size() != 1 || !warpgroups_.contains(vars[0])) continue;
    const auto extent = d < view.dropped ? 1 : type.shape[d - view.dropped].constant();
    const auto count = function_.vars[vars[0]].extent.constant();
    if (!extent || !count) continue;
    Parts parts{.dimension = d, .extent = *extent};
    std::vector<std::int64_t> values(function_.vars.size());
    for (std::int64_t i = 0; i < *count; ++i) {
      values[vars[0].index] = i;
      parts.starts.push_back(view.origin[d].evaluate(values));
    }
    return parts;
  }
  return {};
}

void KernelFacts::touch(Accesses& out, ir::ValueId view, bool writes, bool collective) const {
  const ir::ValueId root = root_of(function_, view);
  if (function_.view_type(root).space != ir::Space::kShared && !is_exchanged(root)) return;
  Access access;
  const ir::ResolvedView resolved = ir::resolve_view(function_, view);
  if (resolved.root == root) access.parts = parts_of(resolved, function_.view_type(view));
  access.root = root;
  access.writes = writes;
  access.collective = collective;
  out.push_back(access);
}

Accesses KernelFacts::of_copy(const ir::Copy& copy) const {
  Accesses out;
  touch(out, copy.src, false, true);
  touch(out, copy.dst, true, true);
  for (Access& access : out) {
    access.bulk = copy.bulk;
    access.unit = copy.bulk ? copy.unit : 0;
    access.in_flight = access.writes && copy.engine == ir::CopyEngine::kCpAsync;
    if (access.in_flight) access.label = label_of(copy);
  }
  return out;
}

Accesses KernelFacts::own(const ir::Op& op) const {
  if (is_asynchronous(op)) return of_product(std::get<ir::Mma>(op.data));
  if (const auto* copy = std::get_if<ir::Copy>(&op.data)) return of_copy(*copy);
  Accesses out;
  if (const auto* load = std::get_if<ir::Load>(&op.data)) {
    if (!load->in_shared) touch(out, load->view, false, true);
  } else if (const auto* store = std::get_if<ir::Store>(&op.data)) {
    touch(out, store->view, true, true);
  } else if (const auto* scale = std::get_if<ir::Scale>(&op.data)) {
    touch(out, scale->factors, false, true);
  } else if (const auto* splat = std::get_if<ir::Splat>(&op.data)) {
    touch(out, splat->view, true, true);
  } else if (const auto* read = std::get_if<ir::Read>(&op.data)) {
    touch(out, read->view, false, false);
  } else if (const auto* write = std::get_if<ir::Write>(&op.data)) {
    touch(out, write->view, true, false);
  } else if (const auto* alloc = std::get_if<ir::Alloc>(&op.data)) {
    const auto* type = std::get_if<ir::ViewType>(&function_.type(op.result));
    if (type != nullptr && alloc->initial.valid()) touch(out, op.result, true, true);
  }
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
