// How the state of a team changes that the placer takes through a kernel.
#include "passes/placer.h"

#include <algorithm>

namespace kiln::passes {

Placer::State Placer::merge(State a, const State& b) {
  if (!b.reachable) return a;
  if (!a.reachable) return b;
  unite(a.accesses, b.accesses);
  a.unjoined = a.unjoined || b.unjoined;
  a.waited = a.waited || b.waited;
  a.own.insert(b.own.begin(), b.own.end());
  a.unmet = a.unmet || b.unmet;
  a.some_left = a.some_left || b.some_left;
  return a;
}

Accesses Placer::stamped(Accesses accesses) const {
  for (Access& access : accesses) {
    access.team = team_;
    access.nest = nest_;
  }
  return accesses;
}

// A bulk copy to shared memory is over when the program has waited for its event. A bulk store is
// over for the thread alone that has waited for it.
Placer::State Placer::with(State state, const Accesses& more) const {
  Accesses kept = stamped(more);
  for (Access& access : kept) {
    access.unawaited = access.bulk && access.writes && facts_.is_read_by_blocks(access.root);
  }
  end_in_block(kept,
               [&](const Access& a) { return a.bulk && a.writes && !facts_.is_global(a.root); });
  unite(state.accesses, kept);
  return state;
}

// This unit's products are done: its registers are free, and what they read in shared memory has
// been read, which other threads do not know yet.
Placer::State Placer::waited(State state) const {
  std::erase_if(state.accesses,
                [&](const Access& a) { return a.product && facts_.is_fragment(a.root); });
  for (Access& access : state.accesses) access.product = false;
  return state;
}

// This thread's copies of that name have come; other threads do not know yet.
Placer::State Placer::landed(State state, ir::ValueId label) {
  for (Access& access : state.accesses) {
    if (!access.in_flight || access.label != label) continue;
    access.in_flight = false;
    access.label = {};
  }
  return state;
}

Placer::State Placer::fenced(State state) {
  for (Access& access : state.accesses) {
    access.fenced = access.fenced || (access.writes && !access.in_flight);
  }
  return state;
}

Placer::State Placer::fenced(State state, bool global) const {
  for (Access& access : state.accesses) {
    const bool there = facts_.is_global(access.root) == global;
    access.fenced = access.fenced || (there && access.writes && !access.in_flight);
  }
  return state;
}

// Whether a barrier does not end it. Of what the trip before has left in flight nothing was known
// when a loop's barriers were placed: there may be no wait and no fence in front of them.
bool Placer::outlasts_barrier(const Access& access) const {
  const bool in_flight = access.in_flight || (access.product && !facts_.program_waits());
  return in_flight || is_unfenced(access, false) || is_unfenced(access, true);
}

// Somebody has waited for bulk copies of these events. Which of them have come is known where an event
// has one slot and the thread itself has waited; else some may be on their way all the same (`again`).
void Placer::await(Accesses& accesses, FunctionRef<bool(ir::ValueId)> is_awaited,
                   bool again) const {
  Accesses come;
  for (Access& access : accesses) {
    if (!access.unawaited || !is_awaited(access.label)) continue;
    Access awaited = access;
    awaited.unawaited = false;
    const bool several = std::get<ir::EventType>(function_.type(access.label)).slots > 1;
    if (again || several) {
      come.push_back(std::move(awaited));
    } else {
      access = std::move(awaited);
    }
  }
  unite(accesses, come);
}

// Takes out what is over for the block's own threads. It still counts where other blocks of the
// cluster read the buffer.
void Placer::end_in_block(Accesses& accesses, FunctionRef<bool(const Access&)> is_over) const {
  for (Access& access : accesses) {
    access.met_in_block =
        access.met_in_block || (is_over(access) && facts_.is_read_by_blocks(access.root));
  }
  std::erase_if(accesses, [&](const Access& a) { return !a.met_in_block && is_over(a); });
}

Placer::State Placer::behind_barrier(State state, bool of_cluster) const {
  const auto is_over = [&](const Access& a) {
    return !outlasts_barrier(a) && !(of_cluster && a.unawaited);
  };
  if (of_cluster) {
    std::erase_if(state.accesses, is_over);
  } else {
    end_in_block(state.accesses, is_over);
  }
  state.unjoined = false;
  state.waited = false;
  state.own.clear();
  return state;
}

// The threads of each warpgroup have met, all of the team have not.
Placer::State Placer::behind_meeting(State state) const {
  for (Access& access : state.accesses) access.met = !outlasts_barrier(access);
  return state;
}

// All of the team have triggered the event and waited for it. What bulk copies read goes on: they are waited for in front of
// barriers alone.
Placer::State Placer::behind_event(State state, ir::ValueId event) const {
  end_in_block(state.accesses, [&](const Access& a) {
    return a.told.contains(event) && !a.bulk && !outlasts_barrier(a);
  });
  return state;
}

// Accesses of the last trip belong to no current entry of a `parallel` inside the loop.
Placer::State Placer::left(State state) const {
  for (Access& access : state.accesses) {
    if (access.nest > nest_) access.nest = -1;
  }
  return state;
}

}  // namespace kiln::passes
