// Barriers that the program names by numbers, each an event of the launch that counts threads.
//
//   __bar_arrive(1, 256);    ->  trigger event=%bar_1               (of 256 arrivals)
//   __bar_sync(1, 256);      ->  trigger event=%bar_1; event_wait event=%bar_1
//
// A round is complete when so many threads have come, those that wait included, as with PTX's
// `barrier.sync` and `barrier.arrive`.
#include "sema/event.h"
#include "sema/expression.h"
#include "target/arch.h"

namespace kiln::sema {

namespace {

constexpr std::int64_t kBarriers = 16;  // PTX: of a block

// The two numbers of the call; nothing after a report.
struct BarrierNumbers {
  std::int64_t id = 0;
  std::int64_t threads = 0;
};
std::optional<BarrierNumbers> numbers_of(Sema& sema, const ast::CallExpr& call) {
  const auto id = evaluate_constant(sema, call.args[0], "the number of a barrier");
  const auto threads = evaluate_constant(sema, call.args[1], "the number of threads");
  if (!id || !threads) return std::nullopt;
  if (*id < 0 || *id >= kBarriers) {
    (void)sema.diags
        .report<diag::IndexOutOfRange>(sema.ast[call.args[0]].span, "barrier", *id, 0, kBarriers)
        .help("a block has barriers 0 to {}", kBarriers - 1)
        .emit();
    return std::nullopt;
  }
  const std::int64_t most = sema.arch.threads_per_block_max;
  const Span span = sema.ast[call.args[1]].span;
  if (*threads < 1 || *threads > most) {
    (void)sema.diags.report<diag::EventArrivals>(span, format("barrier {}", *id), *threads, most)
        .help("say how many threads come to the barrier, those that go on included")
        .emit();
    return std::nullopt;
  }
  if (*threads % target::kWarpLanes == 0) return BarrierNumbers{*id, *threads};
  (void)sema.diags.report<diag::NamedBarrierThreads>(span, 0, *threads - 1, target::kWarpLanes)
      .help("say a multiple of {}", target::kWarpLanes)
      .emit();
  return std::nullopt;
}

NamedBarrier& barrier_of(Sema& sema, const BarrierNumbers& numbers, Span span) {
  const auto [entry, added] = sema.barriers.try_emplace(std::pair{sema.place.launch, numbers.id});
  NamedBarrier& barrier = entry->second;
  if (!added) return barrier;
  barrier.event = hidden_event(sema, 1, span);
  barrier.threads = numbers.threads;
  barrier.span = span;
  auto& event =
      std::get<ir::Event>(sema.function.ops[sema.function.values[barrier.event].def].data);
  event.name = format("bar_{}", numbers.id);
  event.stated = numbers.threads;
  return barrier;
}

}  // namespace

void meet_by_number(Sema& sema, const ast::CallExpr& call, Span span) {
  if (!check_in_kernel(sema, span, format("`{}`", call.name.text))) return;
  const auto numbers = numbers_of(sema, call);
  if (!numbers) return;
  NamedBarrier& barrier = barrier_of(sema, *numbers, span);
  if (barrier.threads != numbers->threads) {
    refuse(sema, span,
           format("barrier {} of {} threads, and of {} elsewhere,", numbers->id, numbers->threads,
                  barrier.threads));
    return;
  }
  const bool waits = call.builtin == ast::Builtin::kBarrierSync;
  (waits ? barrier.meeting : barrier.arriving).insert(sema.place.inthreads);
  if ((waits ? barrier.arriving : barrier.meeting).contains(sema.place.inthreads)) {
    refuse(sema, span,
           format("barrier {}, at which the same threads arrive and wait by turns,", numbers->id));
    return;
  }
  emit(sema, ir::Trigger{.event = barrier.event}, span);
  if (waits) emit(sema, ir::EventWait{.event = barrier.event}, span);
}

}  // namespace kiln::sema
