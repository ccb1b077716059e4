#include <algorithm>
#include <nlohmann/json.hpp>

#include "explain/cost/cost_print.h"
#include "support/json.h"
#include "target/mma.h"

namespace kiln::explain {

namespace {

using Json = nlohmann::ordered_json;

Json at(const Span& span, const Sources& sources) {
  if (!span.valid()) return {{"line", 0}, {"column", 0}};
  const Place place = sources.place(span);
  return {{"line", place.line}, {"column", place.column}};
}

double ratio(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

Json mmas_json(const LaunchCost& launch, const Sources& sources) {
  Json out = Json::array();
  for (const MmaCost& mma : launch.mmas) {
    Json row = at(mma.span, sources);
    row["atom"] = mma.atom->name;
    row["scope"] = target::name(mma.atom->scope);
    row["issues"] = mma.issues;
    row["issues_per_block"] = ratio(mma.issues, launch.blocks);
    row["cycles"] = mma.cycles;
    out.push_back(std::move(row));
  }
  return out;
}

Json buffers_json(const LaunchCost& launch, const Sources& sources) {
  Json out = Json::array();
  for (const SharedBuffer& buffer : launch.buffers) {
    Json row = {{"name", buffer.name}};
    row.update(at(buffer.span, sources));
    row["dtype"] = kiln::name(buffer.dtype);
    row["shape"] = buffer.shape;
    row["bytes"] = buffer.bytes;
    row["address"] = buffer.address;
    row["row_bytes"] = buffer.row_bytes;
    row["swizzle"] = buffer.swizzle;
    out.push_back(std::move(row));
  }
  return out;
}

Json shared_json(const AccessCost& access) {
  if (access.counts.requests_shared == 0) return nullptr;
  return {{"requests", access.counts.requests_shared},
          {"wavefronts", access.counts.wavefronts_shared},
          {"wavefronts_ideal", access.wavefronts_ideal()},
          {"bank_conflicts", access.counts.bank_conflicts}};
}

Json global_json(const AccessCost& access) {
  const sim::Counters& counts = access.counts;
  if (counts.requests_global == 0) return nullptr;
  return {{"requests", counts.requests_global},
          {"sectors", counts.sectors_global},
          {"sectors_per_request", ratio(counts.sectors_global, counts.requests_global)},
          {"sectors_per_request_ideal", ratio(access.sectors_ideal(), counts.requests_global)},
          {"bytes", access.bytes_global()}};
}

Json accesses_json(const LaunchCost& launch, const Sources& sources) {
  Json out = Json::array();
  for (const AccessCost& access : launch.accesses) {
    Json row = at(access.span, sources);
    row["what"] = access.what;
    row["instructions"] = Json(access.counts.instructions);
    row["shared"] = shared_json(access);
    row["global"] = global_json(access);
    out.push_back(std::move(row));
  }
  return out;
}

// "shared memory" is "shared_memory" as a key.
std::string key(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == ' ' ? '_' : c;
  return out;
}

Json occupancy_json(const target::Occupancy& occupancy) {
  Json limits = Json::object();
  for (const target::Resource resource : target::kResources) {
    limits[key(name(resource))] = occupancy.limit(resource);
  }
  Json limited_by = Json::array();
  for (const target::Resource resource : occupancy.limited_by) {
    limited_by.push_back(key(name(resource)));
  }
  return {{"blocks", occupancy.blocks},
          {"warps", occupancy.warps},
          {"warps_max", occupancy.warps_max},
          {"limits", limits},
          {"limited_by", limited_by}};
}

std::string key(const Roofline& roofline) {
  switch (roofline.bound()) {
    case Bound::kTensor: return "tensor";
    case Bound::kDram: return "dram";
    case Bound::kShared: return "shared";
    case Bound::kUnit: return key(target::name(roofline.slowest_unit()));
    case Bound::kIssue: return "issue";
  }
  return "";
}

Json work_json(const Work& work) {
  Json out = Json::object();
  for (const target::Unit unit : target::kUnits) {
    if (work[unit] != 0) out[key(target::name(unit))] = work[unit];
  }
  return out;
}

Json works_json(const LaunchCost& launch, const Sources& sources) {
  Json out = Json::array();
  for (const WorkCost& cost : launch.works) {
    Json row = at(cost.span, sources);
    row["units"] = work_json(cost.work);
    out.push_back(std::move(row));
  }
  return out;
}

Json roofline_json(const Roofline& roofline) {
  Json units = Json::object();
  for (const target::Unit unit : target::kUnits) {
    if (roofline.of(unit) != 0) units[key(target::name(unit))] = roofline.of(unit);
  }
  return {{"tensor_seconds", roofline.tensor},
          {"dram_seconds", roofline.dram},
          {"dram_uncached_seconds", roofline.dram_uncached},
          {"shared_seconds", roofline.shared},
          {"unit_seconds", units},
          {"issue_seconds", roofline.issue},
          {"seconds", roofline.seconds()},
          {"bound", key(roofline)}};
}

// The part of the time that each part of the SM is at work.
Json busy_json(const SmRun& run) {
  const double cycles = std::max(run.cycles, 1.0);
  const Busy& busy = run.busy;
  return {{"tensor", busy.tensor / cycles},
          {"issue", busy.issue / cycles},
          {"unit", *std::ranges::max_element(busy.units) / cycles},
          {"shared", busy.shared / cycles},
          {"l2_read", busy.read / cycles},
          {"l2_written", busy.written / cycles},
          {"dram", busy.dram / cycles}};
}

// The part of its warps' time that is waiting, by what for.
Json waiting_json(const SmRun& run) {
  const double all = std::max(run.warps, 1.0);
  const Waiting& waiting = run.waiting;
  return {{"loads", waiting.loads / all},       {"copies", waiting.copies / all},
          {"events", waiting.events / all},     {"products", waiting.products / all},
          {"barriers", waiting.barriers / all}, {"stores", waiting.stores / all}};
}

Json predicted_json(const Prediction& predicted) {
  Json gains = Json::object();
  for (const auto& [limit, part] : predicted.gains) gains[key(name(limit))] = part;
  return {{"seconds", predicted.seconds},
          {"clock_ghz", predicted.clock_ghz},
          {"power_limited", predicted.power_limited},
          {"cycles", predicted.cycles},
          {"blocks_of_busiest_sm", predicted.on_busiest},
          {"bound", key(name(predicted.bound))},
          {"saved_if_halved", gains},
          {"busy", busy_json(predicted.run)},
          {"waiting", waiting_json(predicted.run)}};
}

Json launch_json(const LaunchCost& launch, const Sources& sources) {
  const RegisterEstimate& registers = launch.registers;
  Json alive = Json::object();
  for (const LiveTile& tile : registers.alive) {
    alive[tile.name] = alive.value(tile.name, 0) + tile.registers;
  }
  Json out = {{"name", launch.name}};
  out.update(at(launch.span, sources));
  out["times"] = launch.times;
  out["blocks"] = launch.blocks;
  out["blocks_counted"] = launch.blocks_run;
  out["threads"] = launch.threads;
  out["instructions"] = mmas_json(launch, sources);
  out["shared_memory"] = {{"bytes", launch.shared_bytes},
                          {"buffers", buffers_json(launch, sources)}};
  out["accesses"] = accesses_json(launch, sources);
  out["arithmetic"] = works_json(launch, sources);
  out["registers"] = {{"fragments", registers.fragments},
                      {"fullest", at(registers.fullest, sources)},
                      {"tiles", alive},
                      {"locals", registers.locals},
                      {"addresses", registers.addresses},
                      {"total", registers.total},
                      {"compiled", registers.compiled},
                      {"wanted", registers.wanted}};
  out["occupancy"] = occupancy_json(launch.occupancy);
  out["waves"] = {{"count", launch.waves.waves},
                  {"blocks_max", launch.waves.per_wave},
                  {"blocks_of_last", launch.waves.last}};
  out["flops"] = launch.flops;
  out["bytes_global"] = launch.bytes_global;
  out["bytes_once"] = launch.bytes_once;
  out["intensity"] = launch.intensity();
  out["roofline"] = roofline_json(launch.roofline);
  if (launch.predicted) out["predicted"] = predicted_json(*launch.predicted);
  return out;
}

// The totals of all launches, under the names that `run --json` has for them.
void add_totals(const Explanation& explanation, Json& out) {
  std::int64_t conflicts = 0;
  std::map<std::string, std::int64_t> atoms;
  for (const LaunchCost& launch : explanation.launches) {
    conflicts += launch.counts.bank_conflicts;
    for (const MmaCost& mma : launch.mmas) {
      if (mma.issues != 0) atoms[std::string(mma.atom->name)] += mma.issues;
    }
  }
  out["bank_conflicts"] = conflicts;
  out["instructions"] = Json(atoms);
}

}  // namespace

std::string to_json(const Explanation& explanation, const Sources& sources) {
  const target::Arch& arch = *explanation.arch;
  Json shape = Json::object();
  for (const auto& [name, value] : explanation.shape) shape[name] = value;
  Json out = {{"kernel", explanation.kernel},
              {"arch", arch.name},
              {"part",
               {{"name", arch.part},
                {"sms", arch.sms},
                {"clock_ghz", arch.clock_ghz},
                {"dram_gb_per_s", arch.dram_gb_per_s}}},
              {"shape", shape},
              {"shape_assumed", explanation.shape_assumed}};
  add_totals(explanation, out);
  Json launches = Json::array();
  for (const LaunchCost& launch : explanation.launches) {
    launches.push_back(launch_json(launch, sources));
  }
  out["launches"] = std::move(launches);
  Json trials = Json::array();
  for (const Trial& trial : explanation.trials) {
    Json row = at(trial.span, sources);
    row["attribute"] = trial.attribute;
    row["seconds"] = trial.seconds;
    trials.push_back(std::move(row));
  }
  out["trials"] = std::move(trials);
  return json_text(out, 2) + "\n";
}

}  // namespace kiln::explain
