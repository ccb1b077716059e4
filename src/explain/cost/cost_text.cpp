#include <algorithm>

#include "explain/cost/cost_print.h"
#include "support/columns.h"
#include "support/format.h"
#include "support/tensor.h"

namespace kiln::explain {

namespace {

constexpr std::string_view kIndent = "  ";

using Row = std::vector<std::string>;

// Aligned columns below a heading; those from `numbers` on are flush right.
std::string table(std::vector<Row> rows, std::size_t numbers) {
  std::size_t columns = 0;
  for (const Row& row : rows) columns = std::max(columns, row.size());
  for (std::size_t column = numbers; column < columns; ++column) {
    std::size_t width = 0;
    for (const Row& row : rows) {
      if (column < row.size()) width = std::max(width, row[column].size());
    }
    for (Row& row : rows) {
      if (column < row.size()) row[column].insert(0, width - row[column].size(), ' ');
    }
  }
  for (Row& row : rows) row.front().insert(0, kIndent);
  return align_columns(rows) + "\n";
}

std::string line_of(const Span& span, const Sources& sources) {
  return span.valid() ? format("{}", sources.place(span).line) : "-";
}

std::string count(std::int64_t value) { return format("{}", value); }

// An average: whole where it is.
std::string average(std::int64_t sum, std::int64_t of) {
  if (of == 0) return "-";
  if (sum % of == 0) return count(sum / of);
  return format("{:.2f}", static_cast<double>(sum) / static_cast<double>(of));
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds < 1e-6) return format("{:.3g} ns", seconds * 1e9);
  if (seconds < 1e-3) return format("{:.3g} us", seconds * 1e6);
  return format("{:.3g} ms", seconds * 1e3);
}

namespace {

std::string amount(std::int64_t value, std::string_view what) {
  return format("{} {}{}", value, what, value == 1 ? "" : "s");
}

std::string heading(const Explanation& explanation) {
  const target::Arch& arch = *explanation.arch;
  std::string out = format("{} on {} ({})", explanation.kernel, arch.name, arch.part);
  for (const auto& [name, value] : explanation.shape) out += format(", {}={}", name, value);
  if (explanation.shape_assumed) {
    out += " (assumed; another can be given)";
  }
  return out + "\n";
}

std::string launch_heading(const LaunchCost& launch, const Sources& sources) {
  std::string out =
      format("\nline {}, launch {}: {} of {}", line_of(launch.span, sources), launch.name,
             amount(launch.blocks, "block"), amount(launch.threads, "thread"));
  if (launch.times != 1) out += format(" in {} launches", launch.times);
  if (launch.blocks_run == launch.blocks) return out + ", all of them counted\n\n";
  return out + format(", counted from {} that stand for the others\n\n", launch.blocks_run);
}

std::string mmas_text(const LaunchCost& launch, const Sources& sources) {
  if (launch.mmas.empty()) return "";
  std::vector<Row> rows = {{"line", "instruction", "issues in all", "in a block", "cycles each"}};
  for (const MmaCost& mma : launch.mmas) {
    rows.push_back({line_of(mma.span, sources), std::string(mma.atom->name), count(mma.issues),
                    average(mma.issues, launch.blocks), count(mma.cycles)});
  }
  return table(std::move(rows), 2);
}

std::string layout_text(const SharedBuffer& buffer) {
  return format(
      "{} {}, rows of {} bytes, {}", kiln::name(buffer.dtype), shape_text(buffer.shape),
      buffer.row_bytes,
      buffer.swizzle == 0 ? std::string("no swizzle") : format("swizzle {}", buffer.swizzle));
}

std::string buffers_text(const LaunchCost& launch, const Sources& sources) {
  if (launch.buffers.empty()) return "";
  std::vector<Row> rows = {{"line", "shared buffer", "layout", "address", "bytes"}};
  for (const SharedBuffer& buffer : launch.buffers) {
    rows.push_back({line_of(buffer.span, sources), buffer.name, layout_text(buffer),
                    count(buffer.address), count(buffer.bytes)});
  }
  rows.push_back({"", "a block", format("of {} at most", launch.occupancy.shared_bytes_max), "",
                  count(launch.shared_bytes)});
  return table(std::move(rows), 3);
}

std::string instructions_text(const AccessCost& access) {
  return join(access.counts.instructions, ", ", [](const auto& entry) { return entry.first; });
}

std::string shared_text(const LaunchCost& launch, const Sources& sources) {
  std::vector<Row> rows = {{"line", "shared memory access", "instructions", "requests",
                            "wavefronts", "ideal", "bank conflicts"}};
  for (const AccessCost& access : launch.accesses) {
    const sim::Counters& counts = access.counts;
    if (counts.requests_shared == 0) continue;
    rows.push_back({line_of(access.span, sources), access.what, instructions_text(access),
                    count(counts.requests_shared), count(counts.wavefronts_shared),
                    count(access.wavefronts_ideal()), count(counts.bank_conflicts)});
  }
  return rows.size() == 1 ? "" : table(std::move(rows), 3);
}

std::string global_text(const LaunchCost& launch, const Sources& sources) {
  std::vector<Row> rows = {{"line", "global memory access", "instructions", "requests",
                            "sectors of one", "ideal", "bytes"}};
  for (const AccessCost& access : launch.accesses) {
    const sim::Counters& counts = access.counts;
    if (counts.requests_global == 0) continue;
    rows.push_back(
        {line_of(access.span, sources), access.what, instructions_text(access),
         count(counts.requests_global), average(counts.sectors_global, counts.requests_global),
         average(access.sectors_ideal(), counts.requests_global), count(access.bytes_global())});
  }
  return rows.size() == 1 ? "" : table(std::move(rows), 3);
}

// The work of the statements of a line, in the order of the first of each.
std::vector<WorkCost> by_line(const LaunchCost& launch, const Sources& sources) {
  std::vector<WorkCost> out;
  for (const WorkCost& cost : launch.works) {
    const auto same = [&](const WorkCost& other) {
      return line_of(other.span, sources) == line_of(cost.span, sources);
    };
    const auto found = std::ranges::find_if(out, same);
    found == out.end() ? out.push_back(cost) : found->work.add(cost.work);
  }
  return out;
}

std::string work_text(const LaunchCost& launch, const Sources& sources, const target::Arch& arch) {
  if (launch.works.empty()) return "";
  std::vector<Row> rows(1, Row{"line", "arithmetic of warps"});
  Row rates = {"", "lanes a cycle on an SM"};
  std::vector<target::Unit> units;
  for (const target::Unit unit : target::kUnits) {
    if (launch.work[unit] == 0) continue;
    units.push_back(unit);
    rows[0].emplace_back(target::name(unit));
    rates.push_back(count(arch.lanes_each_cycle(unit)));
  }
  for (const WorkCost& cost : by_line(launch, sources)) {
    Row row = {line_of(cost.span, sources), "instructions"};
    for (const target::Unit unit : units) row.push_back(count(cost.work[unit]));
    rows.push_back(std::move(row));
  }
  rows.push_back(std::move(rates));
  return table(std::move(rows), 2);
}

// "special functions (line 30)": whatever keeps the unit busy most.
std::string bound_text(const LaunchCost& launch, const Sources& sources) {
  const Roofline& roofline = launch.roofline;
  std::string out = format("bound by {}", roofline.bound_name());
  if (roofline.bound() != Bound::kUnit) return out;
  const target::Unit unit = roofline.slowest_unit();
  const std::vector<WorkCost> lines = by_line(launch, sources);
  const auto most =
      std::ranges::max_element(lines, {}, [&](const WorkCost& cost) { return cost.work[unit]; });
  const std::int64_t percent = 100 * most->work[unit] / launch.work[unit];
  return out + format(": line {} has {}% of them", line_of(most->span, sources), percent);
}

Row registers_row(const RegisterEstimate& registers) {
  std::string parts = registers.compiled ? format("estimated {}: ", registers.wanted) : "";
  parts += format("{} in fragments", registers.fragments);
  if (registers.locals != 0) parts += format(", {} in local variables", registers.locals);
  parts += format(", {} for addresses", registers.addresses);
  if (!registers.compiled && registers.wanted > registers.total)
    parts += format(", {} wanted", registers.wanted);
  return {
      "registers",
      format("{} a thread, {}", registers.total, registers.compiled ? "as compiled" : "estimated"),
      parts};
}

// "134 at line 32: acc 64, s 32, p 32, m 2"; the smallest ones are one sum.
Row tiles_row(const RegisterEstimate& registers, const Sources& sources) {
  constexpr std::size_t kNamed = 6;
  std::vector<std::string> parts;
  int others = 0;
  for (const LiveTile& tile : registers.alive) {
    if (parts.size() < kNamed) {
      parts.push_back(format("{} {}", tile.name, tile.registers));
    } else {
      others += tile.registers;
    }
  }
  if (others != 0) parts.push_back(format("others {}", others));
  return {
      "tiles",
      format("{} registers at line {}", registers.fragments, line_of(registers.fullest, sources)),
      join(parts, ", ", [](const std::string& part) { return part; })};
}

Row occupancy_row(const target::Occupancy& occupancy) {
  const std::string limits = join(target::kResources, ", ", [&](target::Resource resource) {
    return format("{} {}", name(resource), occupancy.limit(resource));
  });
  const std::string by = join(occupancy.limited_by, " and ", [](target::Resource resource) {
    return std::string(name(resource));
  });
  return {"occupancy", format("{} on an SM, limited by {}", amount(occupancy.blocks, "block"), by),
          format("{} of {} warps; blocks by {}", occupancy.warps, occupancy.warps_max, limits)};
}

Row waves_row(const Waves& waves) {
  if (waves.per_wave == 0) return {"waves", "none", "a block does not fit an SM"};
  return {"waves", format("{} of up to {}", waves.waves, amount(waves.per_wave, "block")),
          format("the last one of {}", waves.last)};
}

// "58% of the warps' time for copies, 12% for products": the largest two.
std::string waits_text(const Waiting& waiting, double all) {
  std::vector<std::pair<double, std::string_view>> parts = {
      {waiting.loads, "loads"},       {waiting.copies, "copies"},     {waiting.events, "events"},
      {waiting.products, "products"}, {waiting.barriers, "barriers"}, {waiting.stores, "stores"}};
  std::ranges::stable_sort(parts, std::greater<>{}, &std::pair<double, std::string_view>::first);
  constexpr double kWorthSaying = 0.05;
  std::string out;
  for (const auto& [cycles, what] : std::span(parts).first(2)) {
    if (cycles < kWorthSaying * all) continue;
    out += format("{}{:.0f}% for {}", out.empty() ? "warps wait " : ", ", 100 * cycles / all, what);
  }
  return out.empty() ? "warps hardly wait" : out;
}

void add_prediction(const Prediction& predicted, std::vector<Row>& rows) {
  rows.push_back(
      {"predicted", time_text(predicted.seconds),
       format("bound by {}; {}; at {:.2f} GHz{}", name(predicted.bound),
              waits_text(predicted.run.waiting, std::max(predicted.run.warps, 1.0)),
              predicted.clock_ghz, predicted.power_limited ? ", all that power allows" : "")});
}

// What an attribute would do, the best of those tried, where it is worth it.
std::string advice_text(const Explanation& explanation, const Sources& sources) {
  const auto now = explanation.predicted_seconds();
  if (!now || explanation.trials.empty()) return "";
  if (explanation.best() == nullptr) {
    return format("\n  advice       none of {} tried makes it faster\n",
                  amount(static_cast<std::int64_t>(explanation.trials.size()), "attribute"));
  }
  constexpr std::size_t kShown = 3;
  std::vector<Row> rows;
  for (const Trial& trial : explanation.trials) {
    if (rows.size() == kShown || trial.seconds >= *now) break;
    rows.push_back({rows.empty() ? "  advice" : "",
                    format("{} at line {}", trial.attribute, line_of(trial.span, sources)),
                    time_text(trial.seconds),
                    format("{:.2f} times as fast, by the model", *now / trial.seconds)});
  }
  return "\n" + align_columns(rows);
}

// What stands below the tables: name, figure, where it comes from.
std::string figures_text(const LaunchCost& launch, const Sources& sources,
                         const target::Arch& arch) {
  const Roofline& roofline = launch.roofline;
  std::vector<Row> rows = {registers_row(launch.registers)};
  if (!launch.registers.alive.empty()) rows.push_back(tiles_row(launch.registers, sources));
  rows.push_back(occupancy_row(launch.occupancy));
  rows.push_back(waves_row(launch.waves));
  rows.push_back(
      {"intensity", format("{:.2f} flops/byte", launch.intensity()),
       format("{:.0f} flops, {} bytes of global traffic", launch.flops, launch.bytes_global)});
  rows.push_back({"tensor time", time_text(roofline.tensor),
                  format("{} SMs at {} GHz", arch.sms, arch.clock_ghz)});
  rows.push_back(
      {"DRAM time", time_text(roofline.dram),
       format("{} bytes at {} GB/s, each buffer once; {} if no cache helped", launch.bytes_once,
              arch.dram_gb_per_s, time_text(roofline.dram_uncached))});
  rows.push_back({"shared time", time_text(roofline.shared), "a wavefront a cycle on each SM"});
  if (launch.work.sum() != 0) {
    const target::Unit slowest = roofline.slowest_unit();
    const auto has = [&](target::Unit unit) { return launch.work[unit] != 0; };
    std::vector<target::Unit> units;
    std::ranges::copy_if(target::kUnits, std::back_inserter(units), has);
    rows.push_back(
        {"unit time", time_text(roofline.of(slowest)), join(units, ", ", [&](target::Unit unit) {
           return format("{} {}", target::name(unit), time_text(roofline.of(unit)));
         })});
    rows.push_back(
        {"issue time", time_text(roofline.issue),
         format("{} instructions of warps a cycle on each SM", target::kIssuesPerCycle)});
  }
  rows.push_back({"roofline", format("{} at least", time_text(roofline.seconds())),
                  bound_text(launch, sources)});
  if (launch.predicted) add_prediction(*launch.predicted, rows);
  for (Row& row : rows) row.front().insert(0, kIndent);
  return align_columns(rows);
}

}  // namespace

std::string to_text(const Explanation& explanation, const Sources& sources) {
  const target::Arch& arch = *explanation.arch;
  std::string out = heading(explanation);
  for (const LaunchCost& launch : explanation.launches) {
    out += launch_heading(launch, sources);
    out += mmas_text(launch, sources);
    out += buffers_text(launch, sources);
    out += shared_text(launch, sources);
    out += global_text(launch, sources);
    out += work_text(launch, sources, arch);
    out += figures_text(launch, sources, arch);
  }
  out += advice_text(explanation, sources);
  if (explanation.launches.empty()) out += "nothing is launched\n";
  return out;
}

}  // namespace kiln::explain
