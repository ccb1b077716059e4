// Bulk copies by tensor map: boxes that one thread starts and the hardware moves.
//
//   copy bulk lhs[m*128, k*64] => a[s], box [64, 64]:  two boxes of 8192 bytes, each written to
//   shared memory row after row (128 bytes), XORed by the map's swizzle, whatever the buffer's
//   layout says: a wrong plan puts elements in wrong places here as on the GPU.
//
// Outside the map's extents loads give zeros and stores write nothing; bytes count all the same. In
// schedule 0 a box lands as late as possible: a load when nobody else can run, a store when it is
// waited for; in other schedules at random. The shadow is told at the start: a load writes as the
// agent of its event's slot, whose clock others see only once they have waited for the generation.
#include <algorithm>
#include <cstring>

#include "sim/access.h"
#include "sim/counting.h"
#include "sim/element.h"
#include "sim/scalar.h"
#include "sim/tracer.h"
#include "target/arch.h"
#include "target/descriptor.h"

namespace kiln::sim {

namespace {

// What the lanes of a warp move with one instruction, 16 bytes each.
constexpr std::uint64_t kBytesOfAStep = 512;

constexpr std::int64_t kLeastSwizzle = 32;
constexpr std::int64_t kSharedAlignment = 128;

std::int64_t rows_of(const BulkPlan& plan) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < plan.shared.rank; ++d) rows *= plan.box[d];
  return rows;
}
std::int64_t row_bytes(const BulkPlan& plan) {
  return plan.box[plan.shared.rank - 1] * plan.shared.buffer->size;
}

// Where byte `byte` of row `row` of the box lies, as the hardware writes it.
std::int64_t address_in_box(const BulkPlan& plan, std::int64_t start, std::int64_t row,
                            std::int64_t byte) {
  const std::int64_t plain = start + row * row_bytes(plan) + byte;
  if (plan.swizzle < kLeastSwizzle) return plain;
  return plain ^ (((plain >> 7) & (plan.swizzle / target::kChunkBytes - 1)) << 4);
}

// The address that the instruction is given: of the box's first element before the XOR.
std::int64_t start_of(const BulkPlan& plan, const BulkBox& box) {
  const Buffer& buffer = *plan.shared.buffer;
  const ir::SharedShape& layout = buffer.layout;
  if (layout.swizzle == 0) return buffer.offset + box.shared_row * layout.pitch + box.shared_byte;
  return buffer.offset +
         (box.shared_byte / layout.swizzle * layout.rows + box.shared_row) * layout.swizzle +
         box.shared_byte % layout.swizzle;
}

// What a row of the box has of the global buffer: `inside` elements from `at` on, `before` elements
// behind the row's start; the others are outside the map's extents.
struct RowPart {
  std::int64_t row = 0;
  std::int64_t before = 0;
  std::int64_t inside = 0;
  Coordinates at = {};
};

// Calls `visit(const RowPart&)` for each row of the box.
template <class Visit>
void for_each_row(const BulkPlan& plan, const BulkBox& box, Visit&& visit) {
  const std::size_t last = plan.shared.rank - 1;
  const std::size_t inner = plan.global.buffer->rank - 1;
  for (std::int64_t row = 0; row < rows_of(plan); ++row) {
    RowPart part{.row = row, .at = box.origin};
    std::int64_t rest = row;
    for (std::size_t d = last; d-- > 0;) {
      part.at[plan.global.dropped + d] += rest % plan.box[d];
      rest /= plan.box[d];
    }
    const std::int64_t begin = std::max<std::int64_t>(part.at[inner], 0);
    const std::int64_t end = std::min(part.at[inner] + plan.box[last], plan.extents[inner]);
    part.inside = std::max<std::int64_t>(end - begin, 0);
    for (std::size_t d = 0; d < inner; ++d) {
      if (part.at[d] < 0 || part.at[d] >= plan.extents[d]) part.inside = 0;
    }
    part.before = begin - part.at[inner];
    part.at[inner] = begin;
    visit(part);
  }
}

std::byte* shared_at(Machine& machine, const BulkBox& box, std::int64_t address) {
  return machine.shared[box.block].data() + address;
}

// Of the 16 bytes of a row from `byte` on: how many the row has, and which of them (`bytes` from
// `from` on) are inside the map's extents.
struct ChunkPart {
  std::int64_t whole = 0;
  std::int64_t from = 0;
  std::int64_t bytes = 0;
};

ChunkPart part_of_chunk(const BulkPlan& plan, const RowPart& part, std::int64_t byte) {
  const std::int64_t first = part.before * plan.global.buffer->size;
  const std::int64_t end = first + part.inside * plan.global.buffer->size;
  ChunkPart out{.whole = std::min(target::kChunkBytes, row_bytes(plan) - byte)};
  out.from = std::clamp<std::int64_t>(first - byte, 0, out.whole);
  out.bytes = std::clamp<std::int64_t>(end - byte, out.from, out.whole) - out.from;
  return out;
}

// What is in `bytes` bytes of shared memory is added to what is in as many of global memory.
void add_elements(DType dtype, const std::byte* shared, std::byte* global, std::int64_t bytes) {
  const std::int64_t size = info(dtype).bits / 8;
  for (std::int64_t at = 0; at < bytes; at += size) {
    const Scalar sum = *apply(ir::BinaryKind::kAdd, dtype, load_scalar(dtype, global + at),
                              load_scalar(dtype, shared + at));
    store_scalar(dtype, global + at, sum);
  }
}

// Moves a row between memories in runs that the XOR keeps together. `global` is where the part that
// is inside begins.
void move_row(Machine& machine, const BulkPlan& plan, const BulkBox& box, const RowPart& part,
              std::byte* global) {
  const std::int64_t start = start_of(plan, box);
  const std::int64_t first = part.before * plan.global.buffer->size;
  for (std::int64_t byte = 0; byte < row_bytes(plan); byte += target::kChunkBytes) {
    const auto [whole, from, some] = part_of_chunk(plan, part, byte);
    std::byte* shared = shared_at(machine, box, address_in_box(plan, start, part.row, byte));
    if (plan.loads) std::memset(shared, 0, static_cast<std::size_t>(whole));
    if (some <= 0) continue;
    std::byte* outside = global + (byte + from - first);
    if (plan.adds) {
      add_elements(plan.global.buffer->dtype, shared + from, outside, some);
      continue;
    }
    std::memcpy(plan.loads ? shared + from : outside, plan.loads ? outside : shared + from,
                static_cast<std::size_t>(some));
  }
}

// Tells the shadows, and counts.
void note_box(Machine& machine, Warp& warp, std::uint32_t lane, const BulkPlan& plan,
              const BulkBox& box) {
  const Buffer& global = *plan.global.buffer;
  const Touch shared_touch{machine, warp, lane, *plan.shared.buffer};
  const Touch global_touch{machine, warp, lane, global};
  const std::int64_t start = start_of(plan, box);
  std::int64_t sectors = 0;
  std::int64_t bytes = 0;
  machine.ranges.clear();
  machine.global_ranges.clear();
  for_each_row(plan, box, [&](const RowPart& part) {
    for (std::int64_t byte = 0; machine.checks && byte < row_bytes(plan);
         byte += target::kChunkBytes) {
      const std::int64_t address = address_in_box(plan, start, part.row, byte);
      const ChunkPart moved = part_of_chunk(plan, part, byte);
      if (plan.loads) {
        machine.ranges.push_back({address, moved.whole});
      } else if (moved.bytes > 0) {
        machine.ranges.push_back({address + moved.from, moved.bytes});
      }
    }
    if (part.inside == 0) return;
    const std::int64_t address = global.address(part.at);
    const std::int64_t run = part.inside * global.size;
    machine.global_ranges.push_back({address, run});
    bytes += run;
    sectors += (address + run - 1) / target::kSectorBytes - address / target::kSectorBytes + 1;
  });
  if (plan.loads) {
    const Completes slot{box.block, box.slot};
    note_bulk_writes(shared_touch, slot, machine.ranges);
    note_bulk_loads(global_touch, slot, machine.global_ranges);
  } else {
    note_async_reads(shared_touch, Asynchronous::kBulkStore, machine.ranges);
    note_bulk_stores(global_touch, machine.global_ranges, plan.adds);
  }
  machine.tally.bulk(plan.loads, bytes, sectors, rows_of(plan) * row_bytes(plan));
}

// Between multiples of 16 bytes of a row no box begins, and none that is stored begins before the
// first element of a dimension: there the hardware stops with "illegal instruction". Reported and
// moved all the same, so that nobody waits in vain.
void check_first_byte(Machine& machine, Warp& warp, std::uint32_t lane, const BulkPlan& plan,
                      const BulkBox& box) {
  const Buffer& global = *plan.global.buffer;
  const std::int64_t first = box.origin[global.rank - 1] * global.size;
  const std::string who = format("bulk copy by {}", thread_of_block_text(machine, warp, lane));
  if (first % target::kChunkBytes != 0) {
    report_at(
        machine, warp, ReportKind::kMisaligned,
        format("a bulk copy begins at byte {} of the rows of `{}`, which is no multiple of {}",
               first, global.name, target::kChunkBytes),
        who);
  }
  const auto* begin = box.origin.data();
  const auto* before = std::find_if(begin, begin + global.rank, [](auto at) { return at < 0; });
  if (before != begin + global.rank && !plan.loads) {
    report_at(machine, warp, ReportKind::kOutOfBounds,
              format("a bulk store begins at element {} of dimension {} of `{}`: only a load may "
                     "begin before the first",
                     *before, before - begin, global.name),
              who);
  }
}

// Whether the box lies in its shared buffer, where the hardware takes it.
bool check_place(Machine& machine, Warp& warp, std::uint32_t lane, const BulkPlan& plan,
                 const BulkBox& box) {
  const Buffer& buffer = *plan.shared.buffer;
  const Touch touch{machine, warp, lane, buffer};
  const std::int64_t start = start_of(plan, box);
  const std::int64_t end = start + rows_of(plan) * row_bytes(plan);
  // Of a buffer in panels the bytes behind a panel's last row are the next panel's.
  const ir::SharedShape& layout = buffer.layout;
  const std::int64_t last = box.shared_row + rows_of(plan) - 1;
  if (layout.swizzle != 0 && box.shared_row >= 0 && last >= layout.rows) {
    report_at(machine, warp, ReportKind::kOutOfBounds,
              format("a bulk copy of rows {} to {} of `{}`, which has {}", box.shared_row, last,
                     buffer.name, layout.rows),
              format("bulk copy by {}", thread_of_block_text(machine, warp, lane)));
    return false;
  }
  if (box.shared_row < 0 || box.shared_byte < 0 || start < buffer.offset ||
      end > buffer.offset + buffer.bytes) {
    report_at(machine, warp, ReportKind::kOutOfBounds,
              format("a bulk copy of {} bytes at byte {} of `{}`, which has {}", end - start,
                     start - buffer.offset, buffer.name, buffer.bytes),
              format("bulk copy by {}", thread_of_block_text(machine, warp, lane)));
    return false;
  }
  if (!check_aligned(touch, start,
                     plan.swizzle >= kLeastSwizzle ? kSharedAlignment : target::kChunkBytes,
                     plan.loads)) {
    return false;
  }
  check_first_byte(machine, warp, lane, plan, box);
  return true;
}

BulkBox box_of(const BulkPlan& plan, const Warp& warp, std::uint32_t lane, std::uint32_t number) {
  const Window global = plan.global.window(warp.vars.data(), lane);
  const Window shared = plan.shared.window(warp.vars.data(), lane);
  const Buffer& buffer = *plan.shared.buffer;
  const Coordinates& begin = plan.boxes[number];
  BulkBox box{.box = number, .origin = global.origin, .block = warp.block, .warp = warp.number};
  for (std::size_t d = 0; d < plan.shared.rank; ++d) {
    box.origin[plan.global.dropped + d] += begin[d];
  }
  Coordinates at = shared.origin;
  for (std::size_t d = 0; d < plan.shared.rank; ++d) at[plan.shared.dropped + d] += begin[d];
  std::int64_t row = 0;
  for (std::size_t d = 0; d + 1 < buffer.rank; ++d) row += at[d] * buffer.strides[d];
  box.shared_row = row * buffer.size / buffer.layout.pitch;
  box.shared_byte = at[buffer.rank - 1] * buffer.size;
  return box;
}

void start_load(Machine& machine, Warp& warp, std::uint32_t lane, const BulkPlan& plan,
                BulkBox box) {
  for (std::uint32_t block = 0; block < machine.agents.blocks; ++block) {
    if (!plan.multicast && block != warp.block) continue;
    box.block = block;
    note_box(machine, warp, lane, plan, box);
    machine.boxes.push_back(box);
  }
}

std::string asked_text(const Machine& machine, const Multicasts::Asked& first,
                       const Multicasts::Asked& own) {
  if (own.block < first.block) return asked_text(machine, own, first);
  if (first.buffer != own.buffer || first.from != own.from) {
    return format(
        "a multicast of different tiles: block {} of the cluster copies from `{}`, block {} from "
        "`{}`",
        first.block, first.buffer->element_text(first.from), own.block,
        own.buffer->element_text(own.from));
  }
  return format("a multicast for different events: block {} of the cluster tells {}, block {} {}",
                first.block, slot_text(machine, first.slot), own.block,
                slot_text(machine, own.slot));
}

// Whether all blocks of the cluster ask for the same when they come for the same time with a multicast to this place.
void check_multicast(Machine& machine, const Warp& warp, std::uint32_t lane, const BulkPlan& plan,
                     std::uint32_t slot) {
  const Coordinates to = plan.shared.window(warp.vars.data(), lane).origin;
  Multicasts& all = machine.multicasts[{plan.shared.buffer, to}];
  all.times.resize(machine.agents.blocks);
  const Multicasts::Asked own{.block = warp.block,
                              .buffer = plan.global.buffer,
                              .from = plan.global.window(warp.vars.data(), lane).origin,
                              .slot = slot};
  const std::uint64_t behind = all.times[warp.block]++ - all.oldest;
  if (behind == all.asked.size()) {
    all.asked.push_back(own);
  } else if (const Multicasts::Asked& first = all.asked[behind]; !first.is_as(own)) {
    Report* report = machine.reporter.open(ReportKind::kMulticast, plan.op);
    if (report != nullptr) {
      report->message = asked_text(machine, first, own);
      report->accesses = {{machine.span(warp.pc), "each block fetches a part of one tile for all"}};
      report->help =
          "let its place be the same in all blocks of a cluster, or leave `.multicast` out";
    }
  }
  while (!all.asked.empty() && std::ranges::min(all.times) > all.oldest) {
    all.asked.pop_front();
    ++all.oldest;
  }
}

void start_boxes(Machine& machine, Warp& warp, std::uint32_t lane, std::uint32_t number) {
  const BulkPlan& plan = machine.program.bulk_copies[number];
  std::uint32_t slot = 0;
  if (plan.event != BulkPlan::kNone) {
    const EventPlan& event = machine.program.events[plan.event];
    const std::int64_t at = plan.slot.evaluate(warp.vars.data(), lane);
    if (at < 0 || at >= event.slots) {
      report_at(machine, warp, ReportKind::kOutOfBounds,
                format("`{}[{}]` is outside: there are {} slots", event.name, at, event.slots),
                format("bulk copy by warp {}", warp.index));
      return;
    }
    slot = event.first_slot + static_cast<std::uint32_t>(at);
    if (machine.tracer != nullptr) machine.tracer->starts_load(slot);
    if (plan.announces) {
      machine.slot(warp.block, slot).bytes +=
          static_cast<std::int64_t>(plan.boxes.size()) * rows_of(plan) * row_bytes(plan);
    }
  }
  if (plan.multicast && machine.checks) check_multicast(machine, warp, lane, plan, slot);
  for (std::uint32_t b = 0; b < plan.boxes.size(); ++b) {
    if (plan.multicast && b % machine.agents.blocks != warp.block) continue;
    BulkBox box = box_of(plan, warp, lane, b);
    box.plan = number;
    box.slot = slot;
    box.group = warp.bulk_groups;
    if (machine.tracer != nullptr) box.entry = machine.tracer->current();
    if (!check_place(machine, warp, lane, plan, box)) continue;
    machine.tally.issue(plan.interned, 1);
    spend(machine, static_cast<std::uint64_t>(rows_of(plan) * row_bytes(plan)) / kBytesOfAStep);
    if (plan.loads) {
      if (machine.checks) {
        const Clock* completed = knowledge_of(machine, warp, lane).completed;
        box.completed.assign(completed, completed + machine.agents.count());
      }
      start_load(machine, warp, lane, plan, std::move(box));
      continue;
    }
    note_box(machine, warp, lane, plan, box);
    machine.boxes.push_back(box);
  }
  if (plan.loads) return;
  ++warp.bulk_groups;
  ++warp.bulk_clock;
  warp.bulk_lanes |= 1U << lane;
}

}  // namespace

void execute_bulk_copy(Machine& machine, Warp& warp, std::uint32_t number) {
  const BulkPlan& plan = machine.program.bulk_copies[number];
  for_each_lane(elected_lanes(warp, plan.who, plan.unit),
                [&](std::uint32_t lane) { start_boxes(machine, warp, lane, number); });
}

void land_box(Machine& machine, std::size_t index) {
  const BulkBox box = machine.boxes[index];
  machine.boxes.erase(machine.boxes.begin() + static_cast<std::ptrdiff_t>(index));
  const BulkPlan& plan = machine.program.bulk_copies[box.plan];
  const Buffer& global = *plan.global.buffer;
  if (machine.counting == nullptr || machine.counting->steers(plan.op)) {
    for_each_row(plan, box, [&](const RowPart& part) {
      std::byte* place = part.inside == 0 ? nullptr : global.data + global.address(part.at);
      move_row(machine, plan, box, part, place);
    });
  }
  if (!plan.loads || plan.event == BulkPlan::kNone) return;
  EventSlot& state = machine.slot(box.block, box.slot);
  if (machine.tracer != nullptr) {
    machine.tracer->lands(box.entry, box.block, box.slot, state.completed);
  }
  state.bytes -= rows_of(plan) * row_bytes(plan);
  Clock* const known = state.gathering.data() + machine.completions();
  for (std::size_t a = 0; a < box.completed.size(); ++a) {
    known[a] = std::max(known[a], box.completed[a]);
  }
  settle(machine, box.block, box.slot);
}

void execute_bulk_wait(Machine& machine, Warp& warp, const BulkWaitPlan& plan) {
  machine.tally.issue(Issue::kWait);
  const std::int64_t done = warp.bulk_groups - plan.pending;
  for (std::size_t i = 0; i < machine.boxes.size();) {
    const BulkBox& box = machine.boxes[i];
    const bool store = !machine.program.bulk_copies[box.plan].loads;
    if (store && box.warp == warp.number && box.group < done) {
      land_box(machine, i);
    } else {
      ++i;
    }
  }
  if (done <= 0 || (warp.mask & warp.bulk_lanes) == 0) return;
  const Clock before = warp.bulk_clock - static_cast<Clock>(plan.pending);
  OwnStores& waited = warp.waited;
  waited.reader = warp.agent + 2 * machine.agents.warps;
  waited.writer = warp.agent + 3 * machine.agents.warps;
  waited.read = std::max(waited.read, before);
  if (plan.landed) waited.written = std::max(waited.written, before);
}

void tell_waits(const Machine& machine, const Warp& warp, Clock* clocks) {
  const OwnStores& waited = warp.waited;
  if (waited.read == 0) return;
  clocks[waited.reader] = std::max(clocks[waited.reader], waited.read);
  // What has landed is there for everybody: its completion is a fence of its own.
  for (std::uint32_t view = 0; view < 3; ++view) {
    Clock& written = clocks[view * machine.agents.count() + waited.writer];
    written = std::max(written, waited.written);
  }
}

}  // namespace kiln::sim
