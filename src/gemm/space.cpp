#include "gemm/space.h"

#include <algorithm>
#include <cstdlib>

#include "gemm/model.h"
#include "gemm/program.h"
#include "support/integer.h"

namespace kiln::gemm {

namespace {

constexpr int kWarpgroupRows = 64;
constexpr int kPanel = 128;

constexpr int kOne[] = {1};
constexpr int kTwo[] = {2};
constexpr int kUpTo3[] = {1, 2, 3};
constexpr int kScaledWidths[] = {128};

// The space of one kernel. Each warpgroup multiplies 64 rows of one operand's tile by all rows of
// the other's, or so many after each other as there are BANDS. Between which values WARPGROUPS, BANDS,
// `wide`, PANELS, SLICES, SPLITS, PARTS and GROUP vary is what the kernel's template says of them.
struct Space {
  std::string_view kernel;
  bool rows_of_b;          // a warpgroup's 64 rows are B's, else A's
  std::string_view wide;   // the parameter for the other operand's rows; empty: they are fixed
  int width_max_of_three;  // with three warpgroups, whose threads have fewer registers
  std::span<const int> fixed_widths = {};
  std::span<const int> fixed_parts = {};  // in which the tile of C passes through shared memory
  std::span<const int> blocks = kOne;     // of one multiprocessor: rings so deep that so many fit
  int row_bytes = 0;                      // of a stage, for each row of A, besides the operand

  [[nodiscard]] std::span<const int> warpgroups() const { return values("WARPGROUPS"); }
  [[nodiscard]] std::span<const int> bands() const { return values("BANDS"); }
  [[nodiscard]] std::span<const int> widths() const {
    return wide.empty() ? fixed_widths : values(wide);
  }
  [[nodiscard]] std::span<const int> panels() const { return values("PANELS"); }  // of 128 bytes
  [[nodiscard]] std::span<const int> slices() const { return values("SLICES"); }
  [[nodiscard]] std::span<const int> splits() const { return values("SPLITS"); }
  // Rows of tiles whose operands stay in the second-level cache.
  [[nodiscard]] std::span<const int> groups() const { return values("GROUP"); }
  [[nodiscard]] std::span<const int> parts() const {
    return fixed_parts.empty() ? values("PARTS") : fixed_parts;
  }

 private:
  [[nodiscard]] std::span<const int> values(std::string_view parameter) const {
    return tuned_values(kernel, parameter);
  }
};

constexpr Space kSpaces[] = {
    {.kernel = "gemm_sm90", .rows_of_b = false, .wide = "TILE_N", .width_max_of_three = 192},
    {.kernel = "gemm_skinny_sm90",
     .rows_of_b = true,
     .wide = "TILE_M",
     .width_max_of_three = 0,
     .blocks = kUpTo3},
    {.kernel = "gemm_block_scaled_sm90",
     .rows_of_b = false,
     .wide = "",
     .width_max_of_three = 128,
     .fixed_widths = kScaledWidths,
     .row_bytes = 4},
    {.kernel = "gemm_grouped_sm90",
     .rows_of_b = false,
     .wide = "TILE_N",
     .width_max_of_three = 0,
     .row_bytes = 4},
    {.kernel = "gemm_ragged_sm90",
     .rows_of_b = false,
     .wide = "TILE_N",
     .width_max_of_three = 192,
     .fixed_parts = kTwo},
};

constexpr int kStagesMin = 2;
constexpr int kStagesMax = 12;
constexpr int kBarrierBytes = 1024;  // and what alignment takes
constexpr int kRegisters = 56;       // of a thread, besides its sums
constexpr int kSumBytes = 4;
constexpr int kSliceGap = 8;  // elements
constexpr int kSlicedWidthMin = 64;
constexpr int kWarpgroupsOfBands = 2;  // only so many have registers for the sums of two bands

// In cycles of a multiprocessor, measured on an H200 or near enough to rank by.
constexpr double kCacheBytes = 48;     // that come from the second-level cache in one
constexpr double kSharedBytes = 128;   // that the tensor cores read from shared memory in one
constexpr double kWaitCycles = 120;    // from a stage's last product to the warpgroup's next one
constexpr double kLatency = 2000;      // of memory under load
constexpr double kBlockCycles = 1500;  // a ring fills, a tile of C leaves
constexpr double kPartCycles = 2000;   // until the buffer is free for a further part of it
constexpr double kAddCycles = 3000;    // a further launch
// Of what the faster parts of a tile take, so much is not hidden behind the slowest one.
constexpr double kUnhidden = 0.15;

double number(std::int64_t value) { return static_cast<double>(value); }

// --- what a multiprocessor holds

// Of one stage of each slice's ring.
int stage_bytes(const Space& space, const Variant& v) {
  return ((v.m + v.n) * v.k_bytes + v.m * space.row_bytes) * v.slices;
}

// A second slice's sums pass through shared memory too, with gaps between the rows.
int result_bytes(const Problem& problem, const Variant& v) {
  const int element = v.splits > 1 ? kSumBytes : size_bytes(problem.c);
  const int sums = (v.slices - 1) * v.n * (v.m + kSliceGap) * kSumBytes;
  return v.m * v.n / v.parts * element + sums;
}

// Stages that fit when `blocks` share a multiprocessor; no more than a tile has steps, since the
// rest would stay empty.
int stages_of(const Space& space, const Problem& problem, const Variant& v,
              const target::Arch& arch) {
  const int share = arch.smem_per_sm / v.blocks - arch.smem_reserved_per_block;
  const int room =
      std::min(share, arch.smem_per_block_max) - result_bytes(problem, v) - kBarrierBytes;
  const std::int64_t steps =
      ceil_div(ceil_div(problem.k * size_bytes(problem.a), v.k_bytes), v.splits * v.slices);
  const auto useful = static_cast<int>(std::clamp<std::int64_t>(steps, kStagesMin, kStagesMax));
  return std::min(useful, std::max(0, room) / stage_bytes(space, v));
}

// By registers, so many blocks fit.
bool registers_fit(const Space& space, const Variant& v, const target::Arch& arch) {
  const int width = space.rows_of_b ? v.m : v.n;
  const int registers = width / 2 + kRegisters;
  const int threads = (v.warpgroups * v.slices + 1) * target::kWarpgroupLanes;
  return v.blocks == 1 || v.blocks * threads * registers <= arch.registers_per_sm;
}

// --- the model

// Cycles of one stage's parts.
struct Step {
  double products;  // on the tensor cores
  double alone;     // from wait to wait of one warpgroup that has them for itself
  double loads;
};

Step step_of(const Problem& problem, const Variant& v, const target::Arch& arch) {
  const double depth = number(v.k_bytes) / size_bytes(problem.a);
  const double rate = number(arch.mma_macs_per_sm_cycle) * 2 / size_bytes(problem.a);
  const int each = v.warpgroups * v.bands;
  const int width = v.m * v.n / (kWarpgroupRows * each);
  const double reads = number(each * (kWarpgroupRows + width)) * v.k_bytes / kSharedBytes;
  const double products = std::max(v.m * v.n * depth / rate, reads);
  const std::int64_t rows =
      std::min<std::int64_t>(v.m, problem.m) + std::min<std::int64_t>(v.n, problem.n);
  return {.products = products,
          .alone = (products / v.warpgroups + v.bands * kWaitCycles) / v.slices,
          .loads = number(rows * v.k_bytes) / kCacheBytes};
}

// Bytes that must pass from and to memory, whatever the tiles.
double memory_bytes(const Problem& problem) {
  const auto of = [](DType dtype, std::int64_t elements) {
    return number(size_bytes(dtype) * elements);
  };
  return number(problem.batch) *
         (of(problem.a, problem.m * problem.k) + of(problem.b, problem.n * problem.k) +
          of(problem.c, problem.m * problem.n));
}

double modelled(const Problem& problem, const Variant& v, const target::Arch& arch,
                int multiprocessors) {
  const Step step = step_of(problem, v, arch);
  const std::int64_t steps =
      ceil_div(ceil_div(problem.k * size_bytes(problem.a), v.k_bytes), v.splits);
  const std::int64_t tiles =
      problem.batch * v.splits * ceil_div(problem.m, v.m) * ceil_div(problem.n, v.n);
  const double most = number(ceil_div(tiles, multiprocessors));  // of one multiprocessor
  const double rounds = number(ceil_div(ceil_div(tiles, multiprocessors), v.blocks));
  // What its tiles take from the shared parts, and what each waits for its own.
  const double latency = kLatency / (v.stages * v.slices);
  const double busy = number(steps) * most * std::max(step.products, step.loads);
  const double lone = number(steps) * rounds * std::max(step.alone, latency);
  const double clock = arch.clock_ghz * 1e9;
  const double at_work = std::min(1.0, number(tiles) / multiprocessors);
  const double memory = memory_bytes(problem) /
                        (arch.dram_gb_per_s * 1e9 * kMemoryShare * std::min(1.0, 1.15 * at_work)) *
                        clock;
  const double slowest = std::max({busy, lone, memory});
  const double partial = v.splits > 1 ? 8.0 * number(v.splits * problem.m * problem.n) : 0;
  const double adding =
      v.splits > 1 ? kAddCycles + partial / (kCacheBytes * number(multiprocessors)) : 0;
  const double leaving = kBlockCycles + (v.parts + v.slices - 2) * kPartCycles;
  const double cycles =
      slowest + kUnhidden * (busy + lone + memory - slowest) + rounds * leaving + adding;
  return cycles / clock;
}

// --- the cross product

// Rows beyond twice the problem's are for nothing, unless that is the smallest tile.
bool is_too_wide(std::span<const int> widths, int width, std::int64_t extent) {
  return width != widths.front() && width >= 2 * extent;
}

void add_defines(const Space& space, Variant& v, int width, int panels, int group) {
  const auto add = [&](bool has, std::string_view define, int value) {
    if (has) v.defines.emplace_back(define, std::to_string(value));
  };
  add(v.bands > 1, "BANDS", v.bands);
  add(group > 0, "GROUP", group);
  add(!space.panels().empty(), "PANELS", panels);
  add(space.parts().size() > 1, "PARTS", v.parts);
  add(v.slices > 1, "SLICES", v.slices);
  add(v.splits > 1, "SPLITS", v.splits);
  add(true, "STAGES", v.stages);
  add(!space.wide.empty(), space.wide, width);
  add(true, "WARPGROUPS", v.warpgroups);
  std::ranges::sort(v.defines);
}

std::span<const int> or_one(std::span<const int> values) {
  return values.empty() ? std::span<const int>(kOne) : values;
}

// Everything that goes through one space for one problem.
struct Walk {
  const Space& space;
  const KernelRow& row;
  const Problem& problem;
  const target::Arch& arch;
  int multiprocessors;
  std::vector<Variant>& out;

  void shapes();
  void shape(Variant v, int width);
  void cuts(Variant v, int width, int panels);
  void rings(Variant v, int width, int panels);
  void groups(const Variant& v, int width, int panels);
};

void Walk::shapes() {
  const std::int64_t extent = space.rows_of_b ? problem.m : problem.n;
  for (const int warpgroups : space.warpgroups()) {
    for (const int width : space.widths()) {
      if (warpgroups == 3 && width > space.width_max_of_three) continue;
      // Rows of a stage are whole panels of a swizzle.
      if (!problem.b_along_k && width * size_bytes(problem.b) % kPanel != 0) continue;
      if (is_too_wide(space.widths(), width, extent)) continue;
      for (const int bands : or_one(space.bands())) {
        if (bands == 1 || warpgroups == kWarpgroupsOfBands) {
          shape({.row = &row, .warpgroups = warpgroups, .bands = bands}, width);
        }
      }
    }
  }
}

void Walk::shape(Variant v, int width) {
  const int rows = kWarpgroupRows * v.warpgroups * v.bands;
  v.m = space.rows_of_b ? width : rows;
  v.n = space.rows_of_b ? rows : width;
  for (const int panels : or_one(space.panels())) {
    v.k_bytes = kPanel * panels;
    for (const int splits : or_one(space.splits())) {
      if (v.bands > 1 && splits > 1) continue;
      v.splits = splits;
      const Tiling tiling{.m = v.m, .n = v.n, .k_bytes = v.k_bytes};
      if (!fits(tiling, problem) || !lacks(row, problem, arch).empty()) continue;
      if (splits_evenly(problem, tiling, splits)) cuts(v, width, panels);
    }
  }
}

// Slices help where products, and not loads, take a stage's time.
void Walk::cuts(Variant v, int width, int panels) {
  for (const int slices : or_one(space.slices())) {
    if (slices > 1 && (v.warpgroups > 1 || width < kSlicedWidthMin)) continue;
    v.slices = slices;
    for (const int parts : or_one(space.parts())) {
      v.parts = parts;
      rings(v, width, panels);
    }
  }
}

// Rings of one depth come once: with the most blocks that such a ring lets onto a multiprocessor.
void Walk::rings(Variant v, int width, int panels) {
  int last = 0;
  for (auto blocks = space.blocks.rbegin(); blocks != space.blocks.rend(); ++blocks) {
    v.blocks = *blocks;
    v.stages = stages_of(space, problem, v, arch);
    if (v.stages < kStagesMin || v.stages == last || !registers_fit(space, v, arch)) continue;
    last = v.stages;
    groups(v, width, panels);
  }
}

// Tiles of few rows are taken in the same order by every group that holds them all.
void Walk::groups(const Variant& v, int width, int panels) {
  const std::int64_t rows = ceil_div(problem.m, v.m);
  const auto add = [&](int group) {
    Variant one = v;
    add_defines(space, one, width, panels, group);
    one.seconds = modelled(problem, one, arch, multiprocessors);
    out.push_back(std::move(one));
  };
  if (space.groups().empty()) return add(0);
  for (const int group : space.groups()) {
    add(group);
    if (group >= rows) return;
  }
}

// Of a kernel without a space: what it is cut by where nothing was tuned.
void add_tilings(const KernelRow& row, const Problem& problem, const target::Arch& arch,
                 int multiprocessors, std::vector<Variant>& out) {
  for (const int splits : row.splits) {
    if (!lacks(row, problem, arch).empty()) continue;
    for (const Tiling& tiling : row.tilings) {
      if (!fits(tiling, problem, splits) || !splits_evenly(problem, tiling, splits)) continue;
      Variant v{.row = &row, .defines = tiling_defines(tiling, splits)};
      v.m = tiling.m;
      v.n = tiling.n;
      v.k_bytes = tiling.k_bytes;
      v.splits = splits;
      v.seconds =
          modelled_seconds(problem, cut_of(row, tiling, splits, problem), arch, multiprocessors);
      out.push_back(std::move(v));
    }
  }
}

}  // namespace

std::vector<Variant> variants(const Problem& problem, const target::Arch& arch,
                              int multiprocessors) {
  std::vector<Variant> out;
  for (const Space& space : kSpaces) {
    const KernelRow* row = kernel_row(space.kernel);
    KILN_CHECK(row != nullptr, "a space for `{}`, which is no kernel", space.kernel);
    if (!lacks(*row, problem, arch).empty()) continue;
    Walk{space, *row, problem, arch, multiprocessors, out}.shapes();
  }
  for (const KernelRow& row : kernel_rows()) {
    const bool has_space =
        std::ranges::find(kSpaces, row.name, &Space::kernel) != std::end(kSpaces);
    if (!has_space) add_tilings(row, problem, arch, multiprocessors, out);
  }
  std::ranges::stable_sort(out, {}, &Variant::seconds);
  return out;
}

std::optional<TileShape> tile_of(const KernelRow& row, const Problem& problem,
                                 const Defines& defines) {
  const auto number_of = [&](std::string_view define) {
    const auto found = std::ranges::find(defines, define, &Defines::value_type::first);
    return found == defines.end() ? 0 : std::atoi(found->second.c_str());
  };
  const auto space = std::ranges::find(kSpaces, row.name, &Space::kernel);
  if (space != std::end(kSpaces)) {
    const int rows = kWarpgroupRows * number_of("WARPGROUPS") * std::max(1, number_of("BANDS"));
    const int width = space->wide.empty() ? space->widths().front() : number_of(space->wide);
    const bool said = rows > 0 && width > 0;
    if (said) return space->rows_of_b ? TileShape{width, rows} : TileShape{rows, width};
  }
  for (const Tiling& tiling : row.tilings) {
    const Defines own = tiling_defines(tiling, 1);
    const bool same = std::ranges::all_of(
        own, [&](const auto& each) { return std::ranges::find(defines, each) != defines.end(); });
    if (same && fits(tiling, problem)) return TileShape{tiling.m, tiling.n};
  }
  return std::nullopt;
}

Choice choice_of(const Variant& variant, const Problem& problem, int multiprocessors) {
  Choice out{.kernel = std::string(variant.row->name), .defines = variant.defines};
  for (auto& define : problem_defines(*variant.row, problem, multiprocessors)) {
    out.defines.push_back(std::move(define));
  }
  std::ranges::sort(out.defines);
  return out;
}

}  // namespace kiln::gemm
