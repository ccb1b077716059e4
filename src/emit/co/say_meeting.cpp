// Events, futures, barriers and the waits that a program states.
#include <algorithm>

#include "emit/co/say.h"

namespace kiln::emit_co {

bool is_of_copy(const Co& co, ir::ValueId event) {
  return std::ranges::any_of(co.users[event.index], [&](ir::OpId user) {
    const auto* copy = std::get_if<ir::Copy>(&co.function.ops[user].data);
    return copy != nullptr && !copy->async;
  });
}

// The declaration of an event; one of the whole grid stands in front of its launch.
std::string event_text(Co& co, const ir::Op& op, const ir::Event& data) {
  const auto& type = std::get<ir::EventType>(co.function.type(op.result));
  const std::string stated = data.stated != 0 ? format("<{}>", data.stated) : "";
  const std::string slots = type.slots == 1 ? "" : format("[{}]", type.slots);
  return format("{} event{} {}{}{};", data.grid ? "global" : "shared", stated,
                name_of(co, op.result), slots, data.ready ? " = ready" : "");
}

void say(Co& co, const ir::Op& op, const ir::Event& data) {
  if (data.grid || is_of_copy(co, op.result)) return;
  line(co, event_text(co, op, data));
}

void say(Co& co, const ir::Op&, const ir::Trigger& data) {
  if (is_of_copy(co, data.event)) return;
  line(co,
       format("trigger{} {};", data.cluster ? ".cluster" : "", event(co, data.event, data.slot)));
}

namespace {

// n, of which the slot is n % slots and the generation n / slots.
ir::Expr turn_of(const ir::EventWait& data, std::int64_t slots) {
  const auto& terms = data.slot.terms();
  if (terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1) {
    const ir::Atom& atom = terms[0].atoms[0];
    const bool is_rest = atom.kind == ir::AtomKind::kMod && atom.right->is(slots);
    if (is_rest && floor_div(*atom.left, slots) == data.generation) return *atom.left;
  }
  return data.generation * slots + data.slot;
}

}  // namespace

void say(Co& co, const ir::Op&, const ir::EventWait& data) {
  if (is_of_copy(co, data.event)) return;
  if (data.tracked) return line(co, format("wait {};", event(co, data.event, data.slot)));
  const std::int64_t slots = std::get<ir::EventType>(co.function.type(data.event)).slots;
  line(co,
       format("wait {}.at({});", name_of(co, data.event), spell_text(co, turn_of(data, slots))));
}

// Named by its first copy, where that stands beside it.
void say(Co& co, const ir::Op& op, const ir::Future&) {
  const auto& users = co.users[op.result.index];
  if (users.empty()) return;
  const bool by_copy =
      co.function.ops[users[0]].kind() == ir::OpKind::kCopy &&
      co.sites[users[0].index].region == co.sites[co.function.values[op.result].def.index].region;
  if (!by_copy) line(co, format("{} = dma.any;", name_of(co, op.result)));
}

void say(Co& co, const ir::Op&, const ir::FutureWait& data) {
  line(co, format("wait {};", name_of(co, data.future)));
}

// A chain of exchanges is a rotation.
void say(Co& co, const ir::Op& op, const ir::Exchange& data) {
  const ir::OpId self = *std::ranges::find_if(
      co.users[data.first.index], [&](ir::OpId id) { return &co.function.ops[id] == &op; });
  const Site site = co.sites[self.index];
  const auto& ops = co.function.regions[site.region].ops;
  std::vector<ir::ValueId> names = {data.first, data.second};
  for (std::size_t i = site.index + 1; i < ops.size(); ++i) {
    const auto* next = std::get_if<ir::Exchange>(&co.function.ops[ops[i]].data);
    if (next == nullptr || next->first != names.back()) break;
    names.push_back(next->second);
    co.done[ops[i].index] = true;
  }
  line(co, format("{}({});", names.size() == 2 ? "swap" : "rotate",
                  join(names, ", ", [&](ir::ValueId name) { return name_of(co, name); })));
}

void say(Co& co, const ir::Op& op, const ir::BulkWait& data) {
  if (data.inferred) return;  // follows from the copy
  if (co.stores.empty() || data.pending != 0) {
    return unsayable(co, op, "no store in front of it has a name to wait for");
  }
  line(co, format("wait {};", co.stores.front()));
  co.stores.erase(co.stores.begin());
}

void say(Co& co, const ir::Op&, const ir::Registers& data) {
  line(co, format("call croq::cuda::setreg_{}({});", data.increases ? "inc" : "dec", data.count));
}

void say(Co& co, const ir::Op&, const ir::Barrier& data) {
  if (data.inferred) return;
  if (data.grid) return line(co, "sync.barrier : device;");
  if (data.cluster) return line(co, "sync.barrier : cluster;");
  if (data.level == ir::Level::kGroup) return line(co, "sync.local;");
  line(co, data.level == ir::Level::kGroup4 ? "sync.barrier : group-4;" : "sync.shared;");
}

void say(Co& co, const ir::Op& op, const ir::ProxyFence&) {
  unsayable(co, op, "it comes from a pass that places fences");
}
void say(Co& co, const ir::Op& op, const ir::MmaFence&) {
  unsayable(co, op, "it comes from a pass that groups products");
}
void say(Co& co, const ir::Op& op, const ir::MmaCommit& data) {
  if (!data.stated) return unsayable(co, op, "no program states it");
  line(co, "mma.commit;");
}
void say(Co& co, const ir::Op& op, const ir::MmaWait& data) {
  if (!data.stated) return unsayable(co, op, "no program states it");
  line(co, format("mma.wait<{}>;", data.pending));
}

}  // namespace kiln::emit_co
