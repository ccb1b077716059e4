// Asynchronous products: a warpgroup's matrix instructions, which read shared memory through
// descriptors some time between their issue and the wait for them.
//
//   describe a_s, b_s;  fence;  issue;  commit;  ...;  wait<0>
//
// Each of the four warps runs its own share: 16 rows of A with all of B. In schedule 0 a product
// reads at the wait, so that whoever overwrites an operand too early spoils the result; in other
// schedules at random at the issue or at the wait. The shadow is told at the issue: the read counts
// as one by the warp's products, whose clock others see only once the warp has waited for the
// group.
#include <algorithm>
#include <cstring>

#include "sim/access.h"
#include "target/descriptor.h"

namespace kiln::sim {

namespace {

constexpr std::uint32_t kWarpsPerUnit = 4;

// The extent of one instruction's tile of an operand in memory: rows, and bytes along them.
struct TileBytes {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first_byte = 0;
  std::int64_t bytes = 0;
};

// The warp's part of the operand: `outer` elements of M or N from `first` on, and K.
TileBytes tile_bytes(const ProductOperand& operand, std::int64_t first, std::int64_t outer,
                     std::int64_t k) {
  const std::int64_t size = size_bytes(operand.dtype);
  if (operand.k_rows) return {0, k, first * size, outer * size};
  return {first, outer, 0, k * size};
}

// Calls `visit(row, byte, address)` for each 16 bytes of the tile.
template <class Visit>
void for_each_chunk(const target::MatrixDescriptor& at, const TileBytes& tile, Visit&& visit) {
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t byte = 0; byte < tile.bytes; byte += target::kChunkBytes) {
      visit(row, byte, address_of(at, tile.first_row + row, tile.first_byte + byte));
    }
  }
}

// Whether the chunk lies in the block's shared memory.
bool is_inside(std::span<const std::byte> shared, std::int64_t address) {
  return address >= 0 && address + target::kChunkBytes <= static_cast<std::int64_t>(shared.size());
}

// Whether the chunk at `address` lies in the block's shared memory; reports one that does not.
bool check_inside(Machine& machine, const Warp& warp, std::int64_t address) {
  const std::span<const std::byte> shared(machine.shared[warp.block]);
  if (is_inside(shared, address)) return true;
  report_at(machine, warp, ReportKind::kOutOfBounds,
            format("a product reads byte {} of {} bytes of shared memory", address, shared.size()),
            format("read by a product of warp {}", warp.index));
  return false;
}

// Where an operand's elements go: element (outer, k) to elements[outer * outer_stride + k *
// k_stride].
struct Destination {
  double* elements;
  std::int64_t outer_stride = 0;
  std::int64_t k_stride = 0;
};

// An operand in a block's shared memory.
struct Source {
  std::span<const std::byte> shared;
  const ProductOperand& operand;
  target::MatrixDescriptor at;
  TileBytes tile;
};

// `load(bytes)` is the number that an element's bytes are.
template <std::int64_t kSize, class Load>
void read_chunks(const Source& source, const Destination& to, Load&& load) {
  const std::span<const std::byte> shared = source.shared;
  const bool k_rows = source.operand.k_rows;
  const std::int64_t along = k_rows ? to.outer_stride : to.k_stride;
  const std::int64_t across = k_rows ? to.k_stride : to.outer_stride;
  for_each_chunk(
      source.at, source.tile, [&](std::int64_t row, std::int64_t byte, std::int64_t address) {
        double* element = to.elements + row * across + byte / kSize * along;
        const bool inside = is_inside(shared, address);  // else it is reported at the issue
        for (std::int64_t i = 0; i < target::kChunkBytes; i += kSize) {
          *element = inside ? load(shared.data() + address + i) : 0;
          element += along;
        }
      });
}

void read_operand(const Source& source, const Destination& to) {
  const auto half = [](const std::byte* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof(bits));
    return bits;
  };
  const auto read = [&]<std::int64_t kSize>(auto&& load) { read_chunks<kSize>(source, to, load); };
  const DType dtype = source.operand.dtype;
  if (dtype == DType::kBF16) {
    return read.template operator()<2>([&](auto* from) { return decode_bf16(half(from)); });
  }
  if (dtype == DType::kF16) {
    return read.template operator()<2>([&](auto* from) { return decode_f16(half(from)); });
  }
  const auto any = [dtype](auto* from) { return load_number(dtype, from); };
  switch (size_bytes(dtype)) {
    case 1: return read.template operator()<1>(any);
    case 4:  // f32, of which the instruction reads what tf32 has
      return read.template operator()<4>([&](auto* from) { return cut_to_tf32(any(from)); });
    default: KILN_UNREACHABLE("a product reads {} in shared memory", name(dtype));
  }
}

target::MatrixDescriptor moved(target::MatrixDescriptor at, std::int64_t bytes) {
  at.start += bytes;
  return at;
}

std::int64_t first_row(const Warp& warp) {
  return warp.index % kWarpsPerUnit * target::MmaExecutor::kWarpRows;
}

// A from registers: those of repetition `k` of the fragment.
void gather_operand(const Warp& warp, const FragmentPlan& fragment, const ProductPlan& plan,
                    std::uint32_t k, double* out) {
  const std::span<const std::uint16_t> places = plan.executor->a_places();
  const std::size_t each = places.size() / kLanes;
  const double* registers = &warp.registers[fragment.offset];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t value = 0; value < each; ++value) {
      out[places[lane * each + value]] = registers[lane * fragment.values + k * each + value];
    }
  }
}

void multiply(Machine& machine, Warp& warp, const Product& product) {
  const ProductPlan& plan = machine.program.products[product.plan];
  const target::MmaShape shape = plan.executor->mma().shape;
  const int a_cols = extents(plan.executor->mma(), target::Operand::kA).cols;
  constexpr int kRows = target::MmaExecutor::kWarpRows;
  machine.a_scratch.resize(static_cast<std::size_t>(kRows) * static_cast<std::size_t>(a_cols));
  machine.b_scratch.resize(static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.k));
  const FragmentPlan& c = machine.program.fragments[plan.c];
  const std::span<double> registers(&warp.registers[c.offset], std::size_t{c.values} * kLanes);
  if (!product.adds) std::ranges::fill(registers, 0.0);
  for (const std::uint32_t k : plan.parts) {
    if (plan.a.buffer == nullptr) {
      gather_operand(warp, machine.program.fragments[plan.a.fragment], plan, k,
                     machine.a_scratch.data());
    } else {
      read_operand({machine.shared[warp.block], plan.a, moved(product.a, plan.a.steps[k]),
                    tile_bytes(plan.a, first_row(warp), kRows, a_cols)},
                   {machine.a_scratch.data(), a_cols, 1});
    }
    read_operand({machine.shared[warp.block], plan.b, moved(product.b, plan.b.steps[k]),
                  tile_bytes(plan.b, 0, shape.n, shape.k)},
                 {machine.b_scratch.data(), 1, shape.n});
    if (plan.metadata == MmaPlan::kNone) {
      plan.executor->run_warp(machine.a_scratch, machine.b_scratch, registers);
      continue;
    }
    const auto metadata = metadata_registers(machine, warp, plan.metadata, k);
    check_metadata(machine, warp, *plan.executor, machine.a_scratch, metadata);
    plan.executor->run_warp(machine.a_scratch, machine.b_scratch, registers, metadata);
  }
}

void note_operand(Machine& machine, Warp& warp, const ProductOperand& operand,
                  const target::MatrixDescriptor& at, const TileBytes& tile) {
  if (!machine.checks || operand.buffer == nullptr) return;
  const Touch touch{machine, warp, warp.first_lane(), *operand.buffer};
  machine.ranges.clear();
  for (const std::int64_t step : operand.steps) {
    for_each_chunk(moved(at, step), tile, [&](std::int64_t, std::int64_t, std::int64_t address) {
      if (check_inside(machine, warp, address))
        machine.ranges.push_back({address, target::kChunkBytes});
    });
  }
  note_async_reads(touch, Asynchronous::kProduct, machine.ranges);
}

void check_fenced(Machine& machine, const Warp& warp, std::uint32_t fragment) {
  if (!machine.checks || !warp.unfenced[fragment]) return;
  const std::string& name = machine.program.fragments[fragment].name;
  report_at(
      machine, warp, ReportKind::kRace,
      format("a product uses the registers of `{}`, which changed since the last fence", name),
      format("product of warp {}", warp.index));
}

}  // namespace

void execute_describe(Machine& machine, Warp& warp, const DescribePlan& plan) {
  check_whole(machine, warp);
  const std::uint32_t lane = warp.first_lane();
  const Window window = plan.view.window(warp.vars.data(), lane);
  const Coordinates own = extents_of(plan.view, warp, lane);
  const Buffer& buffer = *plan.view.buffer;
  for (std::size_t d = 0; d < plan.view.rank; ++d) {
    const std::size_t dim = d + plan.view.dropped;
    if (window.origin[dim] >= 0 && window.origin[dim] + own[d] <= window.limit[dim]) continue;
    Coordinates bad = window.origin;
    bad[dim] = window.origin[dim] < 0 ? window.origin[dim] : window.limit[dim];
    report_out_of_bounds({machine, warp, lane, buffer}, {bad, dim, window.limit[dim]}, false);
    return;
  }
  std::int64_t row = 0;
  for (std::size_t d = 0; d + 1 < buffer.rank; ++d) row += window.origin[d] * buffer.strides[d];
  row = row * buffer.size / buffer.layout.pitch;
  const std::int64_t byte = window.origin[buffer.rank - 1] * buffer.size;
  const std::int64_t swizzle = buffer.layout.swizzle;
  KILN_CHECK(swizzle > 0, "`{}` is read in place without a swizzle", buffer.name);
  warp.descriptors[plan.fragment] = {
      .start =
          buffer.offset + (byte / swizzle * buffer.layout.rows + row) * swizzle + byte % swizzle,
      .leading = plan.leading,
      .stride = plan.stride,
      .swizzle = swizzle};
  warp.fragment_set[plan.fragment] = true;
}

void execute_product(Machine& machine, Warp& warp, std::uint32_t number) {
  check_whole(machine, warp);
  const ProductPlan& plan = machine.program.products[number];
  const bool adds = plan.adds.evaluate(warp.vars.data(), warp.first_lane()) != 0;
  for (const std::uint32_t fragment : {plan.a.fragment, plan.b.fragment}) {
    check_filled(machine, warp, fragment);
  }
  if (adds) check_filled(machine, warp, plan.c);
  // A tile that nobody placed is nowhere.
  if (!warp.fragment_set[plan.a.fragment] || !warp.fragment_set[plan.b.fragment]) return;
  check_fenced(machine, warp, plan.c);
  if (plan.metadata != MmaPlan::kNone) {
    check_filled(machine, warp, plan.metadata);
    check_fenced(machine, warp, plan.metadata);
  }
  if (plan.a.buffer == nullptr) check_fenced(machine, warp, plan.a.fragment);
  Product product{.plan = number,
                  .instruction = warp.pc,
                  .group = warp.group,
                  .done = false,
                  .adds = adds,
                  .a = warp.descriptors[plan.a.fragment],
                  .b = warp.descriptors[plan.b.fragment]};
  const target::MmaShape shape = plan.executor->mma().shape;
  const int a_cols = extents(plan.executor->mma(), target::Operand::kA).cols;
  note_operand(machine, warp, plan.a, product.a,
               tile_bytes(plan.a, first_row(warp), target::MmaExecutor::kWarpRows, a_cols));
  note_operand(machine, warp, plan.b, product.b, tile_bytes(plan.b, 0, shape.n, shape.k));
  // Products of one warp finish in order.
  const bool first = warp.products.empty() || warp.products.back().done;
  if (first && machine.random && machine.next_random() % 2 == 0) {
    multiply(machine, warp, product);
    product.done = true;
  }
  if (!adds) warp.fragment_set[plan.c] = true;
  warp.products.push_back(product);
  count_issues(machine, warp, plan);
}

void execute_mma_fence(Machine& machine, Warp& warp) {
  check_whole(machine, warp);
  warp.unfenced.assign(warp.unfenced.size(), false);
}

void execute_mma_commit(Machine& machine, Warp& warp) {
  check_whole(machine, warp);
  ++warp.group;
  ++warp.group_clock;
}

void execute_mma_wait(Machine& machine, Warp& warp, std::int64_t pending) {
  check_whole(machine, warp);
  machine.tally.issue(Issue::kWait);
  const std::int64_t done = std::int64_t{warp.group} - pending;  // groups before this one
  for (Product& product : warp.products) {
    if (product.group >= done) break;
    if (!product.done) multiply(machine, warp, product);
    product.done = true;
  }
  std::erase_if(warp.products, [&](const Product& p) { return p.done && p.group < done; });
  if (done <= 0) return;
  const Clock over = warp.group_clock - static_cast<Clock>(pending);
  for_each_view(warp, [&](Clock* clocks) {
    Clock& seen = clocks[warp.agent + machine.agents.warps];
    seen = std::max(seen, over);
  });
}

void execute_proxy_fence(Machine& machine, Warp& warp, bool global) {
  ++warp.now;
  const std::size_t agents = machine.agents.count();
  for_each_view(warp, [&](Clock* seen) {
    Clock* fenced = seen + (global ? 2 : 1) * agents;
    for (std::size_t a = 0; a < agents; ++a) fenced[a] = std::max(fenced[a], seen[a]);
    fenced[warp.agent] = warp.now;
  });
}

void check_idle(Machine& machine, const Warp& warp, std::uint32_t fragment) {
  if (!machine.checks) return;
  for (const Product& product : warp.products) {
    const ProductPlan& plan = machine.program.products[product.plan];
    const bool a =
        (plan.a.buffer == nullptr && plan.a.fragment == fragment) || plan.metadata == fragment;
    if (!a && plan.c != fragment) continue;
    Report* report =
        machine.reporter.open(ReportKind::kRace, machine.program.code[product.instruction].op,
                              machine.program.code[warp.pc].op);
    if (report == nullptr) return;
    const std::string& name = machine.program.fragments[fragment].name;
    report->message =
        format("race on the registers of `{}`: a product that uses them is still in flight", name);
    report->accesses = {
        {machine.span(product.instruction), format("product of warp {}", warp.index)},
        {machine.span(warp.pc), format("use of {} by warp {}", name, warp.index)}};
    report->missing = "no wait for the product (`mma.wait<0>`) between them";
    return;
  }
}

}  // namespace kiln::sim
