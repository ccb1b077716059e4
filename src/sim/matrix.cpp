// Matrix operations: fragments go to and from memory by their instructions' maps, and multiply.
//
// ldmatrix: lane l gives the address of row l % 8 of matrix l / 8, 16 bytes of shared memory; the
// instruction's result map says which lane receives which of the elements. stmatrix is the same the
// other way. A wrong list of matrices or a wrong layout gives wrong numbers, as on a GPU.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "sim/access.h"
#include "sim/scalar.h"

namespace kiln::sim {

namespace {

constexpr std::uint32_t kMatrixRows = 8;
constexpr std::uint32_t kRowBytes = 16;
constexpr std::uint32_t kMatrixPairs = 64;  // of bytes
constexpr std::uint32_t kRegisterBytes = 4;
constexpr std::uint32_t kMatricesMax = 4;

// A tile's place, which is one for the whole warp.
struct Tile {
  const TilePlan& plan;
  Window window;
  Coordinates own = {};
};

Tile tile_of(const TilePlan& plan, const Warp& warp) {
  const std::uint32_t lane = warp.first_lane();
  return {plan, plan.view.window(warp.vars.data(), lane), extents_of(plan.view, warp, lane)};
}

// From memory into registers: f32 becomes tf32.
void load_registers(DType memory, DType registers, const std::byte* from, std::uint32_t count,
                    double* to) {
  load_numbers(memory, from, count, to);
  if (memory == registers) return;
  for (std::uint32_t i = 0; i < count; ++i) to[i] = round_to(registers, to[i]);
}

// From a register into memory: a conversion (docs/numbers.md). Integers wrap into narrower ones.
void store_register(DType registers, DType memory, double value, std::byte* to) {
  if (is_integer(registers) && is_integer(memory)) {
    value = static_cast<double>(wrap(memory, static_cast<std::int64_t>(value)));
  } else if (registers != memory && size_bytes(memory) == 1) {
    value = round_to(memory, value);
  }
  store_number(memory, to, value);
}

// The row whose address the lane gives; nothing when it is outside.
std::byte* matrix_row(const Touch& touch, const Tile& tile, std::uint32_t first_matrix,
                      bool writes) {
  const TilePlan& plan = tile.plan;
  const auto row = static_cast<std::uint32_t>(plan.instruction->address_map(Index{touch.lane}));
  const Place& place = plan.places[first_matrix + row / kMatrixRows];
  const std::int64_t warp = touch.warp.index * kLanes % plan.lanes / kLanes;
  const Coordinates at = {place.row + warp * plan.warp_step.row + row % kMatrixRows,
                          place.col + warp * plan.warp_step.col};
  const std::int64_t elements = kRowBytes / touch.buffer.size;
  const std::int64_t inside =
      reachable(touch, {plan.view, tile.window, tile.own, 0, writes}, at, elements);
  if (inside < elements) return nullptr;
  const std::int64_t address = touch.buffer.address(root_coordinates(plan.view, tile.window, at));
  check_aligned(touch, address, kRowBytes, writes);
  if (writes) {
    note_write(touch, address, kRowBytes);
  } else {
    note_read(touch, address, kRowBytes);
  }
  touch.machine.shared_request.add(address);
  // Hardware drops the low bits of the address.
  return bytes_at(touch, address / kRowBytes * kRowBytes);
}

// Where a lane's pair of bytes lies in the rows of one issue's matrices.
std::uint32_t byte_of_pair(const TilePlan& plan, std::uint32_t lane, std::uint32_t pair) {
  // row + 8 * column + 64 * matrix; the columns of a row are together.
  const std::uint32_t at =
      plan.result[lane * 2 * static_cast<std::uint32_t>(plan.instruction->matrices) + pair];
  const std::uint32_t row = at / kMatrixPairs * kMatrixRows + at % kMatrixRows;
  return row * kRowBytes + 2 * (at % kMatrixPairs / kMatrixRows);
}

using MatrixBytes = std::array<std::byte, kMatricesMax * kMatrixRows * kRowBytes>;

// Pairs of bytes change places; what they are elements of is the fragment's affair.
void load_matrices(Machine& machine, Warp& warp, const TilePlan& plan) {
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  const auto size = static_cast<std::uint32_t>(size_bytes(fragment.dtype));
  KILN_CHECK(size <= kRegisterBytes, "ldmatrix into a fragment of {}", name(fragment.dtype));
  const Tile tile = tile_of(plan, warp);
  const auto each = static_cast<std::uint32_t>(plan.instruction->matrices);
  const std::uint32_t values = each * kRegisterBytes / size;
  for (std::uint32_t first = 0; first + each <= plan.places.size(); first += each) {
    MatrixBytes rows = {};
    machine.shared_request.clear();
    for (std::uint32_t lane = 0; lane < each * kMatrixRows; ++lane) {
      const std::byte* bytes =
          matrix_row({machine, warp, lane, *plan.view.buffer}, tile, first, false);
      if (bytes != nullptr) std::copy_n(bytes, kRowBytes, &rows[lane * kRowBytes]);
    }
    machine.tally.issue(plan.interned, 1);
    machine.tally.shared_wavefronts(machine.shared_request, kRowBytes);
    machine.tally.read_shared(machine.shared_request.count * std::int64_t{kRowBytes});
    double* registers = &warp.registers[fragment.offset + first * kRegisterBytes / size];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      std::array<std::byte, kMatricesMax * kRegisterBytes> received;
      for (std::uint32_t pair = 0; pair < 2 * each; ++pair) {
        std::copy_n(&rows[byte_of_pair(plan, lane, pair)], 2, &received[2 * pair]);
      }
      load_numbers(fragment.dtype, received.data(), values, registers + lane * fragment.values);
    }
  }
}

// Elements of 16 bits: each is one of the pairs of bytes.
void store_matrices(Machine& machine, Warp& warp, const TilePlan& plan) {
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  const Buffer& buffer = *plan.view.buffer;
  KILN_CHECK(buffer.size == 2, "stmatrix of elements of {} bytes", buffer.size);
  const Tile tile = tile_of(plan, warp);
  const auto each = static_cast<std::uint32_t>(plan.instruction->matrices);
  for (std::uint32_t first = 0; first + each <= plan.places.size(); first += each) {
    MatrixBytes rows = {};
    const double* registers = &warp.registers[fragment.offset + plan.first_value + 2 * first];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      for (std::uint32_t pair = 0; pair < 2 * each; ++pair) {
        store_register(fragment.dtype, buffer.dtype, registers[lane * fragment.values + pair],
                       &rows[byte_of_pair(plan, lane, pair)]);
      }
    }
    machine.shared_request.clear();
    for (std::uint32_t lane = 0; lane < each * kMatrixRows; ++lane) {
      std::byte* bytes = matrix_row({machine, warp, lane, buffer}, tile, first, true);
      if (bytes != nullptr) std::copy_n(&rows[lane * kRowBytes], kRowBytes, bytes);
    }
    machine.tally.issue(plan.interned, 1);
    machine.tally.shared_wavefronts(machine.shared_request, kRowBytes);
    machine.tally.wrote_shared(machine.shared_request.count * std::int64_t{kRowBytes});
  }
}

// One lane's run of a plain load or store; `registers` are the run's.
void move_run(const Touch& touch, const Tile& tile, const Place& place, std::span<double> registers,
              bool writes) {
  const TilePlan& plan = tile.plan;
  const auto run = static_cast<std::int64_t>(registers.size());
  const Buffer& buffer = touch.buffer;
  const DType dtype = touch.machine.program.fragments[plan.fragment].dtype;
  const Coordinates at = {place.row, place.col};
  const Reach reach{plan.view, tile.window, tile.own, plan.guarded, writes, plan.before};
  const std::int64_t reached = reachable(touch, reach, at, run);
  if (!writes) std::fill(registers.begin() + reached, registers.end(), 0.0);
  if (reached == 0) return;
  const std::int64_t address = buffer.address(root_coordinates(plan.view, tile.window, at));
  const std::int64_t bytes = reached * buffer.size;
  if (reached == run) check_aligned(touch, address, bytes, writes);
  std::byte* memory = bytes_at(touch, address);
  const bool global = buffer.space == ir::Space::kGlobal;
  (global ? touch.machine.global_request : touch.machine.shared_request).add(address);
  if (writes) {
    note_write(touch, address, bytes);
    for (std::int64_t e = 0; e < reached; ++e) {
      store_register(dtype, buffer.dtype, registers[e], memory + e * buffer.size);
    }
  } else {
    note_read(touch, address, bytes);
    load_registers(buffer.dtype, dtype, memory, static_cast<std::uint32_t>(reached),
                   registers.data());
  }
}

void count_run(Machine& machine, const Buffer& buffer, std::uint32_t run, bool writes) {
  const std::int64_t bytes = run * buffer.size;
  Tally& tally = machine.tally;
  if (buffer.space == ir::Space::kGlobal) {
    const std::int64_t moved = bytes * machine.global_request.count;
    tally.global(writes ? Issue::kStoreGlobal : Issue::kLoadGlobal, machine.global_request, bytes);
    writes ? tally.wrote_global(moved) : tally.read_global(moved);
  } else {
    const std::int64_t moved = bytes * machine.shared_request.count;
    tally.shared(writes ? Issue::kStoreShared : Issue::kLoadShared, machine.shared_request, bytes);
    writes ? tally.wrote_shared(moved) : tally.read_shared(moved);
  }
}

// What a lane finds in a register that holds no element: nothing that a sum, a maximum or a minimum
// would not show.
double no_element(DType dtype, std::uint32_t lane) {
  const double sign = lane % 2 == 0 ? 1 : -1;
  if (is_float(dtype)) return round_to(dtype, sign * std::numeric_limits<double>::infinity());
  const bool negative = info(dtype).kind == NumberKind::kSigned && sign < 0;
  return negative ? -info(dtype).max : info(dtype).max;
}

void move_tile(Machine& machine, Warp& warp, const TilePlan& plan, bool writes) {
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  const Tile tile = tile_of(plan, warp);
  const std::uint32_t first_lane = warp.index * kLanes % plan.lanes;
  const Buffer& buffer = *plan.view.buffer;
  const bool wide =
      plan.wide_run > 0 && is_aligned(plan.view, tile.window, plan.wide_run * buffer.size);
  const std::uint32_t run = wide ? plan.wide_run : plan.run;
  for (std::uint32_t value = 0; value < plan.values; value += run) {
    machine.global_request.clear();
    machine.shared_request.clear();
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      double* registers =
          &warp.registers[fragment.offset + lane * fragment.values + plan.first_value + value];
      const Place& place = plan.places[std::size_t{value} * plan.lanes + first_lane + lane];
      if (place.row < 0) {
        for (std::uint32_t e = 0; !writes && e < run; ++e) {
          registers[e] = no_element(fragment.dtype, lane);
        }
        continue;
      }
      move_run({machine, warp, lane, buffer}, tile, place, {registers, run}, writes);
    }
    count_run(machine, buffer, run, writes);
  }
}

// Registers are about to be written, or read outside an mma.
void touch_registers(Machine& machine, Warp& warp, std::uint32_t fragment) {
  check_idle(machine, warp, fragment);
  warp.unfenced[fragment] = true;
}

// An instruction's values of one operand, out of those of a fragment.
std::span<const double> gather(const Warp& warp, const FragmentPlan& fragment, std::uint32_t first,
                               std::uint32_t values, std::vector<double>& scratch) {
  const double* registers = &warp.registers[fragment.offset];
  if (values == fragment.values) return {registers, std::size_t{values} * kLanes};
  scratch.resize(std::size_t{values} * kLanes);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    std::copy_n(registers + lane * fragment.values + first, values,
                scratch.begin() + lane * values);
  }
  return scratch;
}

}  // namespace

void execute_fill(Machine& machine, Warp& warp, const FillPlan& plan) {
  check_whole(machine, warp);
  touch_registers(machine, warp, plan.fragment);
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    std::fill_n(warp.registers.begin() + fragment.offset + lane * fragment.values, fragment.values,
                as_number(fragment.dtype, warp.value(plan.value, lane)));
  }
  warp.fragment_set[plan.fragment] = true;
}

void execute_load(Machine& machine, Warp& warp, const TilePlan& plan) {
  check_whole(machine, warp);
  touch_registers(machine, warp, plan.fragment);
  if (plan.instruction != nullptr) {
    load_matrices(machine, warp, plan);
  } else {
    move_tile(machine, warp, plan, false);
  }
  warp.fragment_set[plan.fragment] = true;
}

void execute_store(Machine& machine, Warp& warp, const TilePlan& plan) {
  check_whole(machine, warp);
  check_filled(machine, warp, plan.fragment);
  check_idle(machine, warp, plan.fragment);
  if (plan.instruction != nullptr) {
    store_matrices(machine, warp, plan);
  } else {
    move_tile(machine, warp, plan, true);
  }
}

void execute_place(Warp& warp, const PlacePlan& plan) {
  warp.holders = warp.exists;
  const std::uint32_t first_lane = warp.index * kLanes % plan.lanes;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const Place& place = plan.places[first_lane + lane];
    warp.var(plan.row, lane) = place.row;
    warp.var(plan.col, lane) = place.col;
  }
}

void execute_register(Machine& machine, Warp& warp, const RegisterPlan& plan) {
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  // A tile gets its first values element by element, by all lanes that hold one.
  const bool gives = plan.writes && warp.mask == warp.holders;
  if (!gives) check_filled(machine, warp, plan.fragment);
  check_idle(machine, warp, plan.fragment);
  if (plan.writes) warp.unfenced[plan.fragment] = true;
  if (gives) warp.fragment_set[plan.fragment] = true;
  for_each_lane(warp.mask, [&](std::uint32_t lane) {
    double& held = warp.registers[fragment.offset + lane * fragment.values + plan.value];
    Scalar& scalar = warp.value(plan.scalar, lane);
    if (plan.writes) {
      held = as_number(fragment.dtype, scalar);
      ++machine.changes;
    } else if (is_float(fragment.dtype)) {
      scalar.f = held;
    } else {
      scalar.i = static_cast<std::int64_t>(held);
    }
  });
}

void execute_load_metadata(Machine& machine, Warp& warp, const MetadataPlan& plan) {
  check_whole(machine, warp);
  touch_registers(machine, warp, plan.fragment);
  const FragmentPlan& fragment = machine.program.fragments[plan.fragment];
  const Window window = plan.view.window(warp.vars.data(), warp.first_lane());
  const Coordinates own = extents_of(plan.view, warp, warp.first_lane());
  const std::uint32_t first_lane = warp.index * kLanes % plan.lanes;
  const Buffer& buffer = *plan.view.buffer;
  const auto bits = static_cast<unsigned>(8 * buffer.size);
  const Reach reach{plan.view, window, own, plan.guarded, false, plan.before};
  for (std::uint32_t k = 0; k < fragment.values; ++k) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      std::uint32_t word = 0;
      for (std::uint32_t part = 0; part < plan.parts; ++part) {
        const Touch touch{machine, warp, lane, buffer};
        const std::size_t row = std::size_t{k} * plan.lanes + first_lane + lane;
        const Place& place = plan.places[row * plan.parts + part];
        const Coordinates at = {place.row, place.col};
        if (reachable(touch, reach, at, 1) == 0) continue;
        const std::int64_t address = buffer.address(root_coordinates(plan.view, window, at));
        note_read(touch, address, buffer.size);
        const auto value =
            static_cast<std::uint32_t>(load_number(buffer.dtype, bytes_at(touch, address)));
        word |= value << (bits * part);
      }
      warp.registers[fragment.offset + lane * fragment.values + k] = word;
    }
  }
  warp.fragment_set[plan.fragment] = true;
}

void execute_scale(Machine& machine, Warp& warp, const ScalePlan& plan) {
  check_whole(machine, warp);
  for (const std::uint32_t fragment : {plan.c, plan.partial}) {
    check_filled(machine, warp, fragment);
    check_idle(machine, warp, fragment);
  }
  warp.unfenced[plan.c] = true;
  const FragmentPlan& c = machine.program.fragments[plan.c];
  const FragmentPlan& partial = machine.program.fragments[plan.partial];
  const Window window = plan.factors.window(warp.vars.data(), warp.first_lane());
  const Coordinates own = extents_of(plan.factors, warp, warp.first_lane());
  const Buffer& buffer = *plan.factors.buffer;
  const std::uint32_t first_lane = warp.index * kLanes % plan.lanes;
  const Reach reach{plan.factors, window, own, plan.guarded, false, plan.before};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const Touch touch{machine, warp, lane, buffer};
    for (std::uint32_t value = 0; value < c.values; ++value) {
      const std::int64_t row = plan.rows[std::size_t{value} * plan.lanes + first_lane + lane];
      const Coordinates at = plan.upright ? Coordinates{row, 0} : Coordinates{0, row};
      double factor = 0;
      if (reachable(touch, reach, at, 1) == 1) {
        const std::int64_t address = buffer.address(root_coordinates(plan.factors, window, at));
        note_read(touch, address, buffer.size);
        factor = load_number(buffer.dtype, bytes_at(touch, address));
      }
      const double scale = round_to(DType::kF32, factor * warp.value(plan.factor, lane).f);
      double& sum = warp.registers[c.offset + lane * c.values + value];
      const double part = warp.registers[partial.offset + lane * partial.values + value];
      sum = round_to(plan.dtype, round_to(DType::kF32, std::fma(scale, part, sum)));
    }
  }
}

void check_filled(Machine& machine, const Warp& warp, std::uint32_t fragment) {
  if (!machine.checks || warp.fragment_set[fragment]) return;
  const std::string& fragment_name = machine.program.fragments[fragment].name;
  report_at(machine, warp, ReportKind::kUninitialised,
            format("`{}` is used before it is filled or loaded", fragment_name),
            format("use of {} by warp {}", fragment_name, warp.index));
}

std::array<std::uint32_t, kLanes> metadata_registers(const Machine& machine, const Warp& warp,
                                                     std::uint32_t fragment, std::uint32_t k) {
  const FragmentPlan& plan = machine.program.fragments[fragment];
  std::array<std::uint32_t, kLanes> out;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    out[lane] = static_cast<std::uint32_t>(warp.registers[plan.offset + lane * plan.values + k]);
  }
  return out;
}

void check_metadata(Machine& machine, const Warp& warp, const target::MmaExecutor& executor,
                    std::span<const double> elements, std::span<const std::uint32_t> metadata) {
  if (!machine.checks) return;
  const int row = executor.row_with_illegal_metadata(elements, metadata);
  if (row < 0) return;
  report_at(machine, warp, ReportKind::kUninitialised,
            format("metadata of row {} of the tile's 16 names no two places of a group for "
                   "elements that are not zero",
                   row),
            format("sparse product of warp {}", warp.index));
}

void execute_mma(Machine& machine, Warp& warp, const MmaPlan& plan) {
  check_whole(machine, warp);
  if (plan.metadata != MmaPlan::kNone) check_filled(machine, warp, plan.metadata);
  for (const std::uint32_t fragment : {plan.a, plan.b, plan.c}) {
    check_filled(machine, warp, fragment);
  }
  const auto& fragments = machine.program.fragments;
  const target::Mma& atom = plan.executor->mma();
  const auto values = [&](target::Operand operand) {
    return static_cast<std::uint32_t>(values_of(atom, operand));
  };
  const std::uint32_t c_values = values(target::Operand::kC);
  const FragmentPlan& c = fragments[plan.c];
  for (const MmaPlan::Step& step : plan.steps) {
    const auto a =
        gather(warp, fragments[plan.a], step.a, values(target::Operand::kA), machine.a_scratch);
    const auto b =
        gather(warp, fragments[plan.b], step.b, values(target::Operand::kB), machine.b_scratch);
    machine.c_scratch.resize(std::size_t{c_values} * kLanes);
    double* registers = &warp.registers[c.offset];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      std::copy_n(registers + lane * c.values + step.c, c_values,
                  machine.c_scratch.begin() + lane * c_values);
    }
    if (plan.metadata == MmaPlan::kNone) {
      plan.executor->run(a, b, machine.c_scratch);
    } else {
      const auto metadata = metadata_registers(machine, warp, plan.metadata, 0);
      std::vector<double> tile(a.size());
      const std::span<const std::uint16_t> places = plan.executor->a_places();
      for (std::size_t i = 0; i < a.size(); ++i) tile[places[i]] = a[i];
      check_metadata(machine, warp, *plan.executor, tile, metadata);
      plan.executor->run_sparse(a, b, machine.c_scratch, metadata);
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      std::copy_n(machine.c_scratch.begin() + lane * c_values, c_values,
                  registers + lane * c.values + step.c);
    }
  }
  count_issues(machine, plan);
}

}  // namespace kiln::sim
