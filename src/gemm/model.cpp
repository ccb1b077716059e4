#include "gemm/model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "support/integer.h"

namespace kiln::gemm {

namespace {

// In cycles of a multiprocessor at the clock of target::Arch. Fitted to 1,200 candidates of 59 problems
// and 600 of 30 others, all measured on an H200, and to the winners of its tuned table, then rounded.
// model_test.cpp and choice_test.cpp say what is lost by them.
constexpr double kCacheBytes = 75;       // that come from the second-level cache in one
constexpr double kZeroBytes = 19.5;      // written for rows beyond the matrix: copies fill tiles up
constexpr double kSharedBytes = 122;     // that the tensor cores read from shared memory in one
constexpr double kWaitCycles = 187;      // from a stage's last product to the warpgroup's next one
constexpr double kLatency = 1800;        // of memory under load
constexpr double kTileCycles = 1500;     // a tile of C leaves
constexpr double kPartCycles = 1600;     // until the buffer is free for a further part of it
constexpr double kRefillCycles = 3000;   // a block ends, the next one begins and its loads arrive
constexpr double kStageCycles = 170;     // until one stage's barriers stand and its load has begun
constexpr double kLaunchCycles = 6500;   // a kernel begins and ends
constexpr double kAddingCycles = 4500;   // a further launch, that adds parts up
constexpr double kCopyingCycles = 2700;  // an earlier one, that copies
constexpr double kSumsBytes = 13.5;      // of parts, written and read again in one
constexpr double kJoinCycles = 1500;     // the blocks of a cluster begin and end together
constexpr double kMeetCycles = 400;      // a stage of theirs, at least: all give it back, then load
// Of the matrix units' rate on paper: under the limit of power the clock falls.
constexpr double kMatrixShare = 0.74;
// Of the memory's rate on paper, what a kernel that only moves reaches. A fit, as all of these: beside
// what is counted as not hidden it is above 1.
constexpr double kMemoryShare = 1.03;
// So much longer memory takes where several blocks read the same rows of B, each at its own time, and
// where blocks load together.
constexpr double kApart = 1.3;
constexpr double kTogether = 0.93;
// A tile that n blocks load together comes 1 + kSaved * (n - 1) times as fast from the cache.
constexpr double kSaved = 0.2;
// Of the second-level cache, what one operand may have and still be there when it is read again.
constexpr double kCacheShare = 0.4;
// Of the shorter of a stage's products and loads, what they slow the longer ones by: both take
// power.
constexpr double kOverlap = 0.15;
// Of a stage's bytes, how many cost the tensor cores' reads from shared memory as they arrive there.
constexpr double kArriving = 0.16;
// Of what the faster parts of a tile take, so much is not hidden behind the slowest one.
constexpr double kUnhidden = 0.117;

// Clusters of four have room on so many of 33 multiprocessors: 112 of the 132 of an H100 and an H200.
constexpr std::int64_t kInFours = 28;

double number(std::int64_t value) { return static_cast<double>(value); }

double bytes_of(DType dtype, std::int64_t elements) {
  return number(size_bytes(dtype)) * number(elements);
}

// Of A's bytes along K, what is kept.
double kept(const Problem& problem) { return problem.a_sparse ? 0.5 : 1; }

double bytes_of_a(const Problem& problem) {
  return bytes_of(problem.a, problem.m * problem.k) * kept(problem);
}

// All matrices of B that the product may meet.
double bytes_of_b(const Problem& problem) {
  const std::int64_t most = std::min(problem.groups, ceil_div(problem.m, kGroupRows));
  return bytes_of(problem.b, std::max<std::int64_t>(1, most) * problem.n * problem.k);
}

// How many tiles there are, and what the busiest multiprocessor has of them.
struct Tiles {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t all;
  double most;
  double rounds;  // of blocks that run at once
};

Tiles tiles_of(const Problem& problem, const Cut& cut, int multiprocessors) {
  const std::int64_t rows = ceil_div(problem.m, cut.m);
  const std::int64_t cols = ceil_div(problem.n, cut.n);
  const std::int64_t all = problem.batch * cut.splits * rows * cols;
  const std::int64_t at_once =
      cut.a_sharers < 4 ? multiprocessors : multiprocessors * kInFours / 33;
  const std::int64_t most = ceil_div(all, at_once);
  return {rows, cols, all, number(most), number(ceil_div(most, cut.blocks))};
}

// Cycles of one stage's parts.
struct Step {
  double products;  // on the tensor cores
  double alone;     // from wait to wait of one warpgroup that has them for itself
  double loads;     // of a tile within the matrices
};

bool is_cluster(const Cut& cut) { return cut.sharers * cut.a_sharers > 1; }

// Of a stage, as one block loads them.
double loaded_rows(const Problem& problem, const Cut& cut) {
  const auto shared = [](double rows, int sharers) { return rows / (1 + kSaved * (sharers - 1)); };
  return shared(cut.m * kept(problem), cut.a_sharers) + shared(cut.n, cut.sharers);
}

// The rate of a row of target::Arch is for 16-bit elements; it doubles when they halve, or when
// half of them is zero.
Step step_of(const Problem& problem, const Cut& cut, const target::Arch& arch) {
  const double depth = number(cut.k_bytes) / size_bytes(problem.a);
  const double rate = number(arch.mma_macs_per_sm_cycle) * 2 / size_bytes(problem.a) /
                      kept(problem) * cut.peak_fraction;
  const int each = cut.warpgroups / cut.tiles * cut.bands;
  const double width = number(cut.m) * cut.n / (kWarpgroupRows * each);
  const double rows = cut.m * kept(problem) + cut.n;
  const double reads = (each * (kWarpgroupRows * kept(problem) + width) + kArriving * rows) *
                       cut.k_bytes / kSharedBytes;
  const double products = std::max(number(cut.m) * cut.n * depth / rate, reads) / kMatrixShare;
  const double own = products / cut.warpgroups;
  return {.products = products,
          .alone = std::max(own, (own + cut.bands * kWaitCycles) / cut.in_flight),
          .loads = loaded_rows(problem, cut) * cut.k_bytes / kCacheBytes};
}

// Cycles of all steps of the busiest multiprocessor, whose tiles share its units. Tiles at an edge
// wait for zeros too, and one of so many that it has is there.
double busy_cycles(const Problem& problem, const Cut& cut, const Tiles& tiles, const Step& step,
                   double steps) {
  const double zeros = cut.k_bytes / kZeroBytes - cut.k_bytes / kCacheBytes;  // for a row's loads
  double edges = 0;
  double most_at_edge = 0;
  const auto add = [&](std::int64_t count, int tile, std::int64_t extent) {
    const std::int64_t beyond = count * tile - extent;
    if (beyond == 0) return;
    const double at_edge = std::min(tiles.most, std::ceil(tiles.most / number(count)));
    edges += at_edge * number(beyond) * zeros;
    most_at_edge = std::max(most_at_edge, at_edge);
  };
  add(tiles.rows, cut.m, problem.m);
  add(tiles.cols, cut.n, problem.n);
  const auto slower = [&](double loads) {
    const double both = std::max(step.products, loads) + kOverlap * std::min(step.products, loads);
    return std::max(both, number(cut.step_cycles));
  };
  const double inner = (tiles.most - most_at_edge) * slower(step.loads);
  const double edge =
      most_at_edge > 0 ? most_at_edge * slower(step.loads + edges / most_at_edge) : 0;
  return steps * (inner + edge);
}

// What is read from memory again: B for each group of rows of tiles, and the group's rows of A for
// each wave of its columns, where the second-level cache does not keep them.
double again_bytes(const Problem& problem, const Cut& cut, const Tiles& tiles,
                   const target::Arch& arch, int multiprocessors) {
  if (problem.groups > 0) return 0;
  const double room = kCacheShare * number(arch.l2_bytes);
  const std::int64_t group =
      cut.group > 0 ? std::min<std::int64_t>(cut.group, tiles.rows) : tiles.rows;
  double again = 0;
  if (bytes_of_b(problem) > room) {
    again += number(ceil_div(tiles.rows, group) - 1) * bytes_of_b(problem);
  }
  const double rows_of_a = number(group * cut.m * problem.k) * size_bytes(problem.a);
  if (rows_of_a * kept(problem) > room) {
    const std::int64_t wave = std::max<std::int64_t>(1, multiprocessors / group);
    again += number(ceil_div(tiles.cols, wave) - 1) * bytes_of_a(problem);
  }
  return again;
}

// Each operand once and what is read again. Few multiprocessors do not reach the memory's rate.
double memory_seconds(const Problem& problem, const Cut& cut, const Tiles& tiles,
                      const target::Arch& arch, int multiprocessors) {
  const double bytes = bytes_of_a(problem) + bytes_of_b(problem) +
                       bytes_of(problem.c, problem.m * problem.n) +
                       again_bytes(problem, cut, tiles, arch, multiprocessors);
  const double at_work = std::min(1.0, number(tiles.all) / multiprocessors);
  const double longer = (tiles.rows > cut.sharers ? kApart : 1) * (is_cluster(cut) ? kTogether : 1);
  return longer * number(problem.batch) * bytes /
         (arch.dram_gb_per_s * 1e9 * kMemoryShare * std::min(1.0, 1.15 * at_work));
}

// A further launch adds the parts up.
double adding_cycles(const Problem& problem, const Cut& cut, int multiprocessors) {
  if (cut.splits == 1) return 0;
  const double sums = number(problem.batch * cut.splits * problem.m * problem.n);
  return kAddingCycles + 2 * bytes_of(DType::kF32, 1) * sums / (kSumsBytes * multiprocessors);
}

// There and to the place with aligned rows.
double copy_seconds(const Cut& cut, const target::Arch& arch) {
  if (cut.copied_bytes == 0) return 0;
  return kCopyingCycles / (arch.clock_ghz * 1e9) +
         2.0 * number(cut.copied_bytes) / (arch.dram_gb_per_s * 1e9 * kMemoryShare);
}

// The value that a tiling's defines give a name, or what it is without them.
int value_of(const Defines& defines, std::string_view name, int without) {
  const auto found = std::ranges::find(defines, name, &Defines::value_type::first);
  return found == defines.end() ? without : std::atoi(found->second.c_str());
}

}  // namespace

Cut cut_of(const KernelRow& row, const Tiling& tiling, const Problem& problem) {
  const Defines defines = tiling_defines(tiling);
  return {.m = tiling.m,
          .n = tiling.n,
          .k_bytes = tiling.k_bytes,
          .warpgroups = value_of(defines, "WARPGROUPS", 1),
          .bands = value_of(defines, "HEIGHT", 1),
          .stages = value_of(defines, "STAGES", 0),
          .group = value_of(defines, "GROUP", 0),
          .stays = row.persistent,
          .copied_bytes = copied_bytes(row, problem),
          .peak_fraction = row.peak_fraction,
          .step_cycles = step_cycles(row, problem)};
}

bool splits_evenly(const Problem& problem, int k_bytes, int splits) {
  const std::int64_t steps = ceil_div(problem.k * size_bytes(problem.a), k_bytes);
  return (splits - 1) * ceil_div(steps, splits) < steps;
}

double modelled_seconds(const Problem& problem, const Cut& cut, const target::Arch& arch,
                        int multiprocessors) {
  const Tiles tiles = tiles_of(problem, cut, multiprocessors);
  const Step step = step_of(problem, cut, arch);
  const auto steps =
      number(ceil_div(ceil_div(problem.k * size_bytes(problem.a), cut.k_bytes), cut.splits));
  const double clock = arch.clock_ghz * 1e9;
  // While some stages are multiplied, the others' loads are on their way.
  const int loading = cut.stages - cut.in_flight;
  const double latency = loading > 0 ? kLatency / loading : 0;
  const double busy = busy_cycles(problem, cut, tiles, step, steps);
  const double meeting = is_cluster(cut) ? kMeetCycles : 0;
  const double lone = steps * tiles.rounds * std::max({step.alone, latency, meeting});
  const double memory = memory_seconds(problem, cut, tiles, arch, multiprocessors) * clock;
  const double slowest = std::max({busy, lone, memory});
  const double hidden = slowest + kUnhidden * (busy + lone + memory - slowest);
  // The first stage is multiplied when all of it is there.
  const double first = step.loads + step.products;
  const double ends = tiles.rounds * (kTileCycles + (cut.parts - 1) * kPartCycles);
  const double refills = cut.stays ? 0 : kRefillCycles * (tiles.rounds - 1) / cut.blocks;
  const double begins =
      kLaunchCycles + kStageCycles * cut.stages + (is_cluster(cut) ? kJoinCycles : 0);
  const double cycles =
      begins + first + hidden + ends + refills + adding_cycles(problem, cut, multiprocessors);
  return cycles / clock + copy_seconds(cut, arch);
}

}  // namespace kiln::gemm
