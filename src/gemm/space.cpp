#include "gemm/space.h"

#include <algorithm>
#include <cstdlib>

#include "gemm/program.h"
#include "support/integer.h"

namespace kiln::gemm {

namespace {

constexpr int kPanel = 128;

constexpr int kOne[] = {1};
constexpr int kTwo[] = {2};
constexpr int kUpTo3[] = {1, 2, 3};
constexpr int kScaledWidths[] = {128};

// The space of one kernel. Each warpgroup multiplies 64 rows of one operand's tile by all rows of
// the other's, or so many after each other as there are BANDS. Between which values WARPGROUPS,
// BANDS, `wide`, PANELS, SPLITS, IN_FLIGHT, SHARERS, A_SHARERS, PARTS and GROUP vary is what the kernel's template
// says of them.
struct Space {
  std::string_view kernel;
  bool rows_of_b;          // a warpgroup's 64 rows are B's, else A's
  std::string_view wide;   // the parameter for the other operand's rows; empty: they are fixed
  int width_max_of_three;  // with three warpgroups, whose threads have fewer registers
  std::span<const int> fixed_widths = {};
  std::span<const int> scaled_widths = {};  // with scale factors, where the kernel takes others too
  std::span<const int> fixed_bands = {};
  std::span<const int> fixed_parts = {};  // in which the tile of C passes through shared memory
  std::span<const int> blocks = kOne;     // of one multiprocessor: rings so deep that so many fit
  int row_bytes = 0;                      // of a stage, for each row of A, besides the operand
  int tiles = 1;                          // of a block at once, one for each of its warpgroups
};

constexpr Space kSpaces[] = {
    {.kernel = "gemm_sm90", .rows_of_b = false, .wide = "TILE_N", .width_max_of_three = 192},
    {.kernel = "gemm_skinny_sm90",
     .rows_of_b = true,
     .wide = "TILE_M",
     .width_max_of_three = 0,
     .blocks = kUpTo3},
    {.kernel = "gemm_pingpong_sm90",
     .rows_of_b = false,
     .wide = "TILE_N",
     .width_max_of_three = 0,
     .fixed_bands = kTwo,
     .tiles = 2},
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
     .scaled_widths = kScaledWidths,
     .row_bytes = 4},
    {.kernel = "gemm_ragged_sm90",
     .rows_of_b = false,
     .wide = "TILE_N",
     .width_max_of_three = 192,
     .fixed_parts = kTwo},
};

// What varies in a space, and between which values; without any nothing varies.
struct Axes {
  std::span<const int> warpgroups;
  std::span<const int> bands;
  std::span<const int> widths;
  std::span<const int> panels;  // of 128 bytes
  std::span<const int> splits;
  std::span<const int> in_flight;
  std::span<const int> sharers;
  std::span<const int> a_sharers;
  std::span<const int> parts;
  std::span<const int> groups;  // rows of tiles whose operands stay in the second-level cache
};

Axes axes_of(const Space& space) {
  const auto values = [&](std::string_view parameter) {
    return tuned_values(space.kernel, parameter);
  };
  return {.warpgroups = space.tiles > 1 ? std::span(kTwo) : values("WARPGROUPS"),
          .bands = space.fixed_bands.empty() ? values("BANDS") : space.fixed_bands,
          .widths = space.wide.empty() ? space.fixed_widths : values(space.wide),
          .panels = values("PANELS"),
          .splits = values("SPLITS"),
          .in_flight = values("IN_FLIGHT"),
          .sharers = values("SHARERS"),
          .a_sharers = values("A_SHARERS"),
          .parts = space.fixed_parts.empty() ? values("PARTS") : space.fixed_parts,
          .groups = values("GROUP")};
}

constexpr int kStagesMin = 2;
constexpr int kStagesMax = 12;
constexpr int kBarrierBytes = 1024;  // and what alignment takes
constexpr int kRegisters = 56;       // of a thread, besides its sums
constexpr int kSumBytes = 4;
constexpr int kWarpgroupsOfBands = 2;  // only so many have registers for the sums of two bands

// The rows of a batch-invariant problem are cut as if there were so many.
constexpr std::int64_t kInvariantRows = 4096;

// --- what a multiprocessor holds

int stage_bytes(const Space& space, const Cut& v) {
  return (v.m + v.n) * v.k_bytes + v.m * space.row_bytes;
}

int result_bytes(const Problem& problem, const Cut& v) {
  const int element = v.splits > 1 ? kSumBytes : size_bytes(problem.c);
  return v.m * v.n / v.parts * element;
}

// Stages that fit when `blocks` share a multiprocessor; no more than a tile has steps, since the
// rest would stay empty.
int stages_of(const Space& space, const Problem& problem, const Cut& v, const target::Arch& arch) {
  const int share = arch.smem_per_sm / v.blocks - arch.smem_reserved_per_block;
  const int room =
      std::min(share, arch.smem_per_block_max) - result_bytes(problem, v) - kBarrierBytes;
  const std::int64_t steps =
      ceil_div(ceil_div(problem.k * size_bytes(problem.a), v.k_bytes), v.splits);
  const auto useful = static_cast<int>(std::clamp<std::int64_t>(steps, kStagesMin, kStagesMax));
  return std::min(useful, std::max(0, room) / stage_bytes(space, v));
}

// By registers, so many blocks fit.
bool registers_fit(const Space& space, const Cut& v, const target::Arch& arch) {
  const int width = space.rows_of_b ? v.m : v.n;
  const int registers = width / 2 + kRegisters;
  const int threads = (v.warpgroups + 1) * target::kWarpgroupLanes;
  return v.blocks == 1 || v.blocks * threads * registers <= arch.registers_per_sm;
}

// --- what is modelled

// The problem that decides: of a batch-invariant one the same for every m, of one whose groups
// share K as many products as there are groups, of a part of K each.
Problem deciding(Problem problem) {
  if (problem.batch_invariant) {
    problem.m = kInvariantRows;
    problem.c_spacing.batch = 0;
    problem.a_spacing.batch = 0;
    problem.residual_spacing.batch = 0;
  }
  if (problem.grouping == Grouping::kAlongK) {
    problem.batch = problem.groups;
    problem.k = ceil_div(problem.k, problem.groups);
    problem.groups = 0;
  }
  return problem;
}

// What is offered, before its defines are written down.
struct Point {
  const KernelRow* row = nullptr;
  const Space* space = nullptr;    // or
  const Tiling* tiling = nullptr;  // of a kernel without one
  Cut cut = {};
  int width = 0;
  int panels = 1;
  double seconds = 0;
};

// --- the cross product

// Rows beyond twice the problem's are for nothing, unless that is the smallest tile.
bool is_too_wide(std::span<const int> widths, int width, std::int64_t extent) {
  return width != widths.front() && width >= 2 * extent;
}

Defines defines_of(const Point& point) {
  if (point.tiling != nullptr) return tiling_defines(*point.tiling);
  const Space& space = *point.space;
  const Axes axes = axes_of(space);
  const Cut& cut = point.cut;
  Defines out;
  const auto add = [&](bool has, std::string_view define, int value) {
    if (has) out.emplace_back(define, std::to_string(value));
  };
  add(cut.bands > 1 && space.fixed_bands.empty(), "BANDS", cut.bands);
  add(cut.group > 0, "GROUP", cut.group);
  add(!axes.panels.empty(), "PANELS", point.panels);
  add(axes.parts.size() > 1, "PARTS", cut.parts);
  add(cut.a_sharers > 1, "A_SHARERS", cut.a_sharers);
  add(cut.in_flight > 1, "IN_FLIGHT", cut.in_flight);
  add(cut.sharers > 1, "SHARERS", cut.sharers);
  add(cut.splits > 1, "SPLITS", cut.splits);
  add(true, "STAGES", cut.stages);
  add(!space.wide.empty(), space.wide, point.width);
  add(space.tiles == 1, "WARPGROUPS", cut.warpgroups);
  std::ranges::sort(out);
  return out;
}

std::span<const int> or_one(std::span<const int> values) {
  return values.empty() ? std::span<const int>(kOne) : values;
}

// Everything that goes through one space for one problem.
struct Walk {
  const Problem& problem;   // what must fit
  const Problem& deciding;  // what is cut
  const target::Arch& arch;
  int multiprocessors;
  std::vector<Point>& out;
  Axes axes = {};  // of the space that it goes through

  void shapes(Point point);
  void shape(Point point);
  void cuts(Point point);
  void rings(Point point);
  void shared(Point point);
  void groups(Point point);
  void tilings(const KernelRow& row);
};

void Walk::shapes(Point point) {
  const Space& space = *point.space;
  const std::int64_t extent = space.rows_of_b ? deciding.m : deciding.n;
  axes = axes_of(space);
  if (problem.block_scales && !space.scaled_widths.empty()) axes.widths = space.scaled_widths;
  point.cut.tiles = space.tiles;
  point.cut.stays = point.row->persistent;
  point.cut.copied_bytes = copied_bytes(*point.row, deciding);
  point.cut.peak_fraction = point.row->peak_fraction;
  for (const int warpgroups : axes.warpgroups) {
    for (const int width : axes.widths) {
      if (warpgroups == 3 && width > space.width_max_of_three) continue;
      // Rows of a stage are whole panels of a swizzle.
      if (!problem.b_along_k && width * size_bytes(problem.b) % kPanel != 0) continue;
      if (is_too_wide(axes.widths, width, extent)) continue;
      for (const int bands : or_one(axes.bands)) {
        if (bands > 1 && warpgroups != kWarpgroupsOfBands) continue;
        point.cut.warpgroups = warpgroups;
        point.cut.bands = bands;
        point.width = width;
        shape(point);
      }
    }
  }
}

void Walk::shape(Point point) {
  Cut& cut = point.cut;
  const int rows = kWarpgroupRows * cut.warpgroups / cut.tiles * cut.bands;
  cut.m = point.space->rows_of_b ? point.width : rows;
  cut.n = point.space->rows_of_b ? rows : point.width;
  for (const int panels : or_one(axes.panels)) {
    point.panels = panels;
    cut.k_bytes = kPanel * panels;
    const Tiling tiling{
        .m = cut.m, .n = cut.n, .k_bytes = cut.k_bytes, .bands = cut.bands / cut.tiles};
    if (!fits(tiling, problem)) continue;
    for (const int splits : or_one(axes.splits)) {
      if (cut.bands > 1 && splits > 1) continue;
      cut.splits = splits;
      if (splits_evenly(deciding, cut.k_bytes, splits)) cuts(point);
    }
  }
}

void Walk::cuts(Point point) {
  Cut& cut = point.cut;
  for (const int parts : or_one(axes.parts)) {
    if (cut.bands > 1 && parts > 1 && cut.tiles == 1) continue;
    cut.parts = parts;
    rings(point);
  }
}

// Rings of one depth come once: with the most blocks that such a ring lets onto a multiprocessor.
void Walk::rings(Point point) {
  Cut& cut = point.cut;
  const Space& space = *point.space;
  int last = 0;
  for (auto blocks = space.blocks.rbegin(); blocks != space.blocks.rend(); ++blocks) {
    cut.blocks = *blocks;
    cut.stages = stages_of(space, deciding, cut, arch);
    if (cut.stages < kStagesMin || cut.stages == last) continue;
    if (!registers_fit(space, cut, arch)) continue;
    last = cut.stages;
    for (const int in_flight : or_one(axes.in_flight)) {
      if (cut.stages <= in_flight) continue;
      cut.in_flight = in_flight;
      shared(point);
    }
  }
}

// Blocks that load a tile together, as good as the same without, come behind it.
void Walk::shared(Point point) {
  const std::int64_t rows = ceil_div(deciding.m, point.cut.m);
  const std::int64_t cols = ceil_div(deciding.n, point.cut.n);
  for (const int sharers : or_one(axes.sharers)) {
    for (const int a_sharers : or_one(axes.a_sharers)) {
      if (rows % sharers != 0 || cols % a_sharers != 0) continue;
      if (a_sharers > 1 && (sharers > 1 || point.cut.m < point.cut.n)) continue;
      if (sharers * a_sharers > 1 && point.cut.blocks > 1) continue;
      point.cut.sharers = sharers;
      point.cut.a_sharers = a_sharers;
      groups(point);
    }
  }
}

// Tiles of few rows are taken in the same order by every group that holds them all.
void Walk::groups(Point point) {
  const std::int64_t rows = ceil_div(deciding.m, point.cut.m);
  const auto add = [&](int group) {
    point.cut.group = group;
    point.seconds = modelled_seconds(deciding, point.cut, arch, multiprocessors);
    out.push_back(point);
  };
  if (axes.groups.empty()) return add(0);
  for (const int group : axes.groups) {
    add(group);
    if (group >= rows) return;
  }
}

// Of a kernel without a space: what its row says.
void Walk::tilings(const KernelRow& row) {
  for (const Tiling& tiling : row.tilings) {
    if (!fits(tiling, problem)) continue;
    const Cut cut = cut_of(row, tiling, deciding);
    out.push_back({.row = &row,
                   .tiling = &tiling,
                   .cut = cut,
                   .seconds = modelled_seconds(deciding, cut, arch, multiprocessors)});
  }
}

const Space* space_of(const KernelRow& row) {
  const auto found = std::ranges::find(kSpaces, row.name, &Space::kernel);
  return found == std::end(kSpaces) ? nullptr : &*found;
}

std::vector<Point> points(const Problem& problem, const target::Arch& arch, int multiprocessors) {
  std::vector<Point> out;
  const Problem cut = deciding(problem);
  Walk walk{problem, cut, arch, multiprocessors, out};
  for (const KernelRow& row : kernel_rows()) {
    if (!lacks(row, problem, arch).empty()) continue;
    const Space* space = space_of(row);
    if (space != nullptr) {
      walk.shapes({.row = &row, .space = space});
    } else {
      walk.tilings(row);
    }
  }
  return out;
}

Variant variant_of(const Point& point) {
  return {
      .row = point.row, .defines = defines_of(point), .cut = point.cut, .seconds = point.seconds};
}

}  // namespace

std::vector<Variant> variants(const Problem& problem, const target::Arch& arch,
                              int multiprocessors) {
  std::vector<Point> all = points(problem, arch, multiprocessors);
  std::ranges::stable_sort(all, {}, &Point::seconds);
  std::vector<Variant> out;
  out.reserve(all.size());
  for (const Point& point : all) out.push_back(variant_of(point));
  return out;
}

std::optional<Variant> best_variant(const Problem& problem, const target::Arch& arch,
                                    int multiprocessors) {
  const std::vector<Point> all = points(problem, arch, multiprocessors);
  if (all.empty()) return std::nullopt;
  return variant_of(*std::ranges::min_element(all, {}, &Point::seconds));
}

std::optional<TileShape> tile_of(const KernelRow& row, const Problem& problem,
                                 const Defines& defines) {
  const auto number_of = [&](std::string_view define) {
    const auto found = std::ranges::find(defines, define, &Defines::value_type::first);
    return found == defines.end() ? 0 : std::atoi(found->second.c_str());
  };
  if (const Space* space = space_of(row)) {
    const int warpgroups = space->tiles > 1 ? 1 : number_of("WARPGROUPS");
    const int bands =
        space->fixed_bands.empty() ? std::max(1, number_of("BANDS")) : space->fixed_bands.front();
    const int rows = kWarpgroupRows * warpgroups * bands;
    const int width = space->wide.empty() ? axes_of(*space).widths.front() : number_of(space->wide);
    const bool said = rows > 0 && width > 0;
    if (said) return space->rows_of_b ? TileShape{width, rows} : TileShape{rows, width};
  }
  for (const Tiling& tiling : row.tilings) {
    const Defines own = tiling_defines(tiling);
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
