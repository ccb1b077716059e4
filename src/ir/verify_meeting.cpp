// Rules of waiting and meeting in the decided form: barriers, asynchronous copies, events.
#include <algorithm>
#include <map>
#include <set>

#include "ir/effects.h"
#include "ir/parts.h"
#include "ir/prove.h"
#include "ir/rules.h"
#include "ir/verify.h"
#include "target/arch.h"
#include "target/registers.h"

namespace kiln::ir {

namespace {

constexpr std::int64_t kNamedBarriers = 15;

void waits_count_up(const Module&, const Function& f, Mistakes& mistakes) {
  const auto look = [&](OpId id, std::int64_t pending) {
    if (pending < 0) complain(mistakes, f, id, "{} copies cannot be pending", pending);
  };
  for_each_op<CopyWait>(f, [&](const CopyWait& wait, OpId id) { look(id, wait.pending); });
  for_each_op<BulkWait>(f, [&](const BulkWait& wait, OpId id) { look(id, wait.pending); });
}

ValueId shared_buffer(const Function& f, ValueId view) {
  const ViewType* type = type_as<ViewType>(f, view);
  return type != nullptr && type->space == Space::kShared ? root_of(f, view) : ValueId{};
}

// The view of a shared buffer that an operation reads, in whole tiles. (An `mma` reads where its
// operands' loads say.)
ValueId tile_read(const Function& f, const Op& op) {
  ValueId out;
  for (const Touch& touch : memory_touched(f, op)) {
    if (touch.reads() && touch.index == nullptr) {
      out = shared_buffer(f, touch.value).valid() ? touch.value : ValueId{};
    }
  }
  return out;
}

// What was written and must not be read yet: the view, the `inthreads` region that wrote it
// (none: the block), and how many asynchronous copies are younger.
using Region = const Inthreads*;
using Writes = std::map<std::pair<ValueId, Region>, std::int64_t>;

// Whether `inner` is the region or stands inside it; everything stands in the block (null).
bool is_in(const Function& f, Region inner, Region outer) {
  if (outer == nullptr || inner == outer) return true;
  if (inner == nullptr) return false;
  bool found = false;
  walk(f, outer->body,
       [&](OpId id) { found = found || std::get_if<Inthreads>(&f.ops[id].data) == inner; });
  return found;
}

// Whether the region's threads must not read what the view shows. What a region beside it wrote is
// the program's business: events order regions. Nor do warpgroups wait for elements that they do not
// read.
bool is_unready(const Function& f, const PartsOfViews& parts, const Writes& writes, ValueId read,
                Region reader) {
  return std::any_of(writes.begin(), writes.end(), [&](const auto& entry) {
    const auto& [written, writer] = entry.first;
    if (root_of(f, written) != root_of(f, read)) return false;
    if (writer != nullptr && writer == reader &&
        are_apart(parts.of(written), parts.of(read), reader->first, reader->threads, true)) {
      return false;
    }
    return is_in(f, writer, reader) || is_in(f, reader, writer);
  });
}

void take_more(Writes& writes, const Writes& more) {
  for (const auto& [key, younger] : more) {
    const auto [there, added] = writes.emplace(key, younger);
    if (!added) there->second = std::min(there->second, younger);
  }
}

// Walks the operations in program order with what must not be read yet. The two branches of an If
// start alike and their sets unite; a loop's body is seen once, which finds what is missing inside
// one trip. Regions of `inthreads` do not see what another one did. What stands behind a jump that
// is always taken never runs.
template <class Step>
class Follower {
 public:
  Follower(const Function& f, const Step& step) : f_(f), step_(step) {}

  // False when the end of the region is not reached.
  bool run(RegionId region, Region threads, Writes& unready) {
    for (const OpId id : f_.regions[region].ops) {
      step_(id, threads, unready);
      if (!enter(f_.ops[id], threads, unready)) return false;
    }
    return true;
  }

 private:
  bool enter(const Op& op, Region threads, Writes& unready) {
    const OpKind kind = op.kind();
    if (leaves_early(kind)) {
      if (kind != OpKind::kYield && !left_.empty()) left_.back().add(unready);
      return false;
    }
    const Regions inner = regions_of(op);
    if (inner.empty()) return true;
    const Inthreads* some = std::get_if<Inthreads>(&op.data);
    const bool loops = is_loop(kind);
    if (loops) left_.push_back({});
    Arrivals after;
    for (const RegionId part : inner) {
      Writes branch = unready;
      if (run(part, some == nullptr ? threads : some, branch)) after.add(branch);
    }
    if (loops) {
      if (left_.back().any) after.add(left_.back().writes);
      left_.pop_back();
    }
    const bool may_skip = (kind == OpKind::kIf && inner.size() == 1) || some != nullptr ||
                          (!after.any && may_run_never(op));
    if (may_skip) after.add(unready);
    unready = std::move(after.writes);
    return after.any;
  }

  [[nodiscard]] bool may_run_never(const Op& op) const {
    const auto* loop = std::get_if<For>(&op.data);
    return loop != nullptr && minimum(f_, loop->upper - loop->lower).value_or(0) < 1;
  }

  // At one place, by all ways that lead there.
  struct Arrivals {
    bool any = false;
    Writes writes = {};

    void add(const Writes& more) {
      any = true;
      take_more(writes, more);
    }
  };
  const Function& f_;
  const Step& step_;
  std::vector<Arrivals> left_;  // by `break` or `continue`: the loops around, innermost last
};

template <class Step>
void follow(const Function& f, const Step& step) {
  Writes unready;
  Follower<Step>(f, step).run(f.body, nullptr, unready);
}

void async_copies_are_awaited(const Module&, const Function& f, Mistakes& mistakes) {
  const PartsOfViews parts(f, f.body);
  follow(f, [&](OpId id, Region threads, Writes& unready) {
    const Op& op = f.ops[id];
    const ValueId read = tile_read(f, op);
    if (read.valid() && is_unready(f, parts, unready, read, threads)) {
      complain(mistakes, f, id, "`%{}` may still be on its way", f.values[root_of(f, read)].name);
    }
    if (const auto* wait = std::get_if<CopyWait>(&op.data)) {
      std::erase_if(unready, [&](const auto& entry) { return entry.second >= wait->pending; });
    }
    const Copy* copy = std::get_if<Copy>(&op.data);
    if (copy == nullptr || !copy->grouped) return;
    for (auto& [key, younger] : unready) ++younger;
    const bool shared = shared_buffer(f, copy->dst).valid();
    if (shared && !copy->async) unready[{copy->dst, threads}] = 0;
  });
}

bool has_one_thread(Region threads) {
  return threads != nullptr && (threads->single || threads->threads == 1);
}

// The view that the threads of a unit write together, and whose buffer is read behind a barrier.
ValueId shared_written_together(const Function& f, const Op& op) {
  const Copy* copy = std::get_if<Copy>(&op.data);
  if (copy != nullptr && (copy->async || copy->bulk)) return {};
  const ValueId view = written_together(f, op);
  return shared_buffer(f, view).valid() ? view : ValueId{};
}

std::vector<OpId> unmet_reads(const Function& f) {
  std::vector<OpId> out;
  const PartsOfViews parts(f, f.body);
  follow(f, [&](OpId id, Region threads, Writes& unready) {
    const Op& op = f.ops[id];
    const ValueId read = tile_read(f, op);
    const bool found = std::ranges::find(out, id) != out.end();
    if (!found && read.valid() && is_unready(f, parts, unready, read, threads)) out.push_back(id);
    if (op.kind() == OpKind::kBarrier) {
      std::erase_if(unready,
                    [&](const auto& entry) { return is_in(f, entry.first.second, threads); });
    }
    const ValueId target = shared_written_together(f, op);
    if (target.valid() && !has_one_thread(threads)) unready[{target, threads}] = 0;
  });
  return out;
}

void shared_reads_are_behind_barriers(const Module&, const Function& f, Mistakes& mistakes) {
  for (const OpId id : unmet_reads(f)) {
    complain(mistakes, f, id, "no barrier since `%{}` was written",
             f.values[root_of(f, tile_read(f, f.ops[id]))].name);
  }
}

// Calls `visit(OpId, the region around it or null)` for each operation.
template <class Visit>
void for_each_in_region(const Function& f, Visit&& visit) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    Region around = nullptr;
    for (const OpId outer : enclosing) {
      const Inthreads* some = std::get_if<Inthreads>(&f.ops[outer].data);
      if (some != nullptr) around = some;
    }
    visit(id, around);
  });
}

// A region has threads; one inside of another has some of its, and is no program beside it.
void regions_have_threads(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_in_region(f, [&](OpId id, Region around) {
    const Inthreads* some = std::get_if<Inthreads>(&f.ops[id].data);
    if (some == nullptr) return;
    if (some->first < 0 || some->threads < 1) {
      complain(mistakes, f, id, "{} threads from {} on", some->threads, some->first);
    } else if (around != nullptr && some->async) {
      complain(mistakes, f, id, "an asynchronous region inside a region");
    } else if (around != nullptr &&
               (some->first < around->first || some->threads > around->threads ||
                some->first - around->first > around->threads - some->threads)) {
      complain(mistakes, f, id, "{} threads from {} on inside {} from {} on", some->threads,
               some->first, around->threads, around->first);
    }
  });
}

// The threads of a region are some of its launch's.
void regions_are_inside_their_launch(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const Inthreads* some = std::get_if<Inthreads>(&f.ops[id].data);
    if (some == nullptr) return;
    const auto launch = std::ranges::find_if(
        enclosing, [&](OpId outer) { return f.ops[outer].kind() == OpKind::kParallel; });
    if (launch == enclosing.end()) return;
    const auto threads = std::get<Parallel>(f.ops[*launch].data).threads.constant();
    if (!threads || (some->first <= *threads && some->threads <= *threads - some->first)) return;
    complain(mistakes, f, id, "{} threads from {} on in a launch of {}", some->threads, some->first,
             *threads);
  });
}

// A region's barrier is one of the block's 15 named ones and has whole warps.
void named_barriers_fit(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_in_region(f, [&](OpId id, Region around) {
    const Barrier* barrier = std::get_if<Barrier>(&f.ops[id].data);
    if (barrier == nullptr || barrier->level != Level::kBlock || barrier->cluster) return;
    if (around == nullptr) {
      if (barrier->id != 0) complain(mistakes, f, id, "number {} outside a region", barrier->id);
      return;
    }
    const bool numbered = barrier->id >= 1 && barrier->id <= kNamedBarriers;
    if (!numbered || barrier->id != around->barrier) {
      complain(mistakes, f, id, "number {} in a region of number {}", barrier->id, around->barrier);
    }
    if (barrier->threads == around->threads && barrier->threads % target::kWarpLanes == 0) return;
    complain(mistakes, f, id, "{} threads in a region of {}", barrier->threads, around->threads);
  });
}

// No shared memory holds more slots.
constexpr std::int64_t kEventSlotsMax = 1 << 16;

void events_have_slots(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Event>(f, [&](const Event&, OpId id) {
    const EventType* type = type_as<EventType>(f, f.ops[id].result);
    if (type == nullptr) {
      complain(mistakes, f, id, "makes no event");
    } else if (type->slots < 1 || type->slots > kEventSlotsMax) {
      complain(mistakes, f, id, "{} slots", type->slots);
    }
  });
}

// What is waited for, triggered or counted by copies is made by `event`, a name of copies by `future`; copies that count for
// an event have its name, too.
void meetings_have_makers(const Module&, const Function& f, Mistakes& mistakes) {
  const auto is_event = [&](ValueId value) { return f.def_as<Event>(value) != nullptr; };
  const auto needs_event = [&](OpId id, ValueId event) {
    if (is_event(event)) return;
    complain(mistakes, f, id, "`{}` is no event", f.values[event].name);
  };
  const auto needs_name = [&](OpId id, ValueId future) {
    if (is_event(future) || f.def_as<Future>(future) != nullptr) return;
    complain(mistakes, f, id, "`{}` is no name of copies", f.values[future].name);
  };
  for_each_op<EventWait>(f, [&](const EventWait& wait, OpId id) { needs_event(id, wait.event); });
  for_each_op<Trigger>(f, [&](const Trigger& one, OpId id) { needs_event(id, one.event); });
  for_each_op<FutureWait>(f, [&](const FutureWait& wait, OpId id) { needs_name(id, wait.future); });
  for_each_op<Copy>(f, [&](const Copy& copy, OpId id) {
    if (copy.event.valid()) needs_event(id, copy.event);
    if (copy.future.valid()) needs_name(id, copy.future);
  });
}

// What is computed in front of a wait for products is a tile whose elements fit in registers; what is held there fills them.
// Neither is a product's tile, which may be under way, or stay in shared memory.
void waits_hold_tiles(const Module&, const Function& f, Mistakes& mistakes) {
  constexpr int kRegister = 8 * target::kRegisterBytes;
  const auto bits_of = [&](ValueId value) {
    const auto* tile = std::get_if<FragType>(&f.type(value));
    return tile == nullptr || tile->role != Role::kTile ? 0 : info(tile->dtype).bits;
  };
  for_each_op<MmaWait>(f, [&](const MmaWait& wait, OpId id) {
    if (wait.first.valid() && (bits_of(wait.first) == 0 || bits_of(wait.first) > kRegister)) {
      complain(mistakes, f, id, "`{}` is no tile of elements of {} bits or fewer",
               f.values[wait.first].name, kRegister);
    }
    for (const ValueId held : wait.held) {
      if (bits_of(held) == kRegister) continue;
      complain(mistakes, f, id, "`{}` is no tile of elements of {} bits", f.values[held].name,
               kRegister);
    }
  });
}

void events_are_placed(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Event>(f, [&](const Event& event, OpId id) {
    if (event.arrivals < 1) complain(mistakes, f, id, "{} arrivals", event.arrivals);
    if (event.grid ? event.offset == -1 : event.offset >= 0 && event.offset % kEventBytes == 0) {
      return;
    }
    complain(mistakes, f, id, "address {} is no multiple of {}", event.offset, kEventBytes);
  });
}

void triggers_have_arrivals(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Trigger>(f, [&](const Trigger& trigger, OpId id) {
    if (trigger.arrival == Arrival::kUndecided) complain(mistakes, f, id, "nobody arrives");
    if (trigger.bytes < 0) complain(mistakes, f, id, "{} bytes", trigger.bytes);
    const bool elected = trigger.arrival == Arrival::kElected;
    if (trigger.tracks && (elected || trigger.cluster)) {
      complain(mistakes, f, id, "it tracks copies of threads that do not arrive");
    }
    if (trigger.bytes == 0 || elected) return;
    complain(mistakes, f, id, "bytes are announced by one thread");
  });
}

void futures_are_counted(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    const OpKind kind = f.ops[id].kind();
    const bool left =
        kind == OpKind::kFuture || kind == OpKind::kFutureWait || kind == OpKind::kExchange;
    if (left) complain(mistakes, f, id, "names of copies are gone by now");
  });
}

void registers_are_counts(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Registers>(f, [&](const Registers& registers, OpId id) {
    const auto& [least, most, step] = target::kRegisterCounts;
    if (registers.count >= least && registers.count <= most && registers.count % step == 0) return;
    complain(mistakes, f, id, "{} registers: they are {} to {}, a multiple of {}", registers.count,
             least, most, step);
  });
}

constexpr Rule kMeetingRules[] = {
    {"registers-are-counts", Form::kTile, registers_are_counts},
    {"regions-have-threads", Form::kTile, regions_have_threads},
    {"regions-are-inside-their-launch", Form::kTile, regions_are_inside_their_launch},
    {"events-have-slots", Form::kTile, events_have_slots},
    {"meetings-have-makers", Form::kTile, meetings_have_makers},
    {"waits-hold-tiles", Form::kTile, waits_hold_tiles},
    {"waits-count-up", Form::kDecided, waits_count_up},
    {"async-copies-are-awaited", Form::kDecided, async_copies_are_awaited},
    {"shared-reads-are-behind-barriers", Form::kDecided, shared_reads_are_behind_barriers},
    {"named-barriers-fit", Form::kDecided, named_barriers_fit},
    {"events-are-placed", Form::kDecided, events_are_placed},
    {"triggers-have-arrivals", Form::kDecided, triggers_have_arrivals},
    {"futures-are-counted", Form::kDecided, futures_are_counted},
};

}  // namespace

std::vector<OpId> reads_without_barrier(const Function& function) { return unmet_reads(function); }

std::span<const Rule> meeting_rules() { return kMeetingRules; }

}  // namespace kiln::ir
