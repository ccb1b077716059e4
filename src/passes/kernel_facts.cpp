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
  // One thread starts both; where there is one in each unit, the placer asks where they go.
  if (before.bulk && now.bulk && before.unit == 0 && now.unit == 0) return false;
  if (before.handed && now.writes) return false;
  if (before.commutes && before.commutes == now.commutes) return false;
  return before.collective || now.collective || before.nest != now.nest;
}

bool is_asynchronous(const ir::Op& op) {
  const auto* mma = std::get_if<ir::Mma>(&op.data);
  return mma != nullptr && mma->is_asynchronous();
}

KernelFacts::KernelFacts(const ir::Function& function, ir::RegionId body)
    : function_(function), parts_(function, body) {
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
    const Tile tile{root, parts_.of(load->view)};
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
                 .parts = in_place ? tile->second.parts : ir::Parts{}});
}

void KernelFacts::add_memory(Accesses& out, const ir::Op& op, const ir::Touch& touch) const {
  const ir::ValueId root = ir::root_of(function_, touch.value);
  const bool shared = function_.view_type(root).space == ir::Space::kShared;
  if (!shared && !is_exchanged(root) && !is_read_back(root)) return;
  Access access;
  access.parts = parts_.of(touch.value);
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
