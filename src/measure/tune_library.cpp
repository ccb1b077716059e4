#include "measure/tune_library.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/bench_machine.h"
#include "measure/bench_sets.h"
#include "measure/bench_suite.h"
#include "support/file.h"
#include "support/json.h"

namespace kiln::measure {

namespace {

constexpr std::size_t kKeepOfLibrary = 24;
// Batches of 20 ms in each round, and as many launches in front of each: in the first milliseconds after a
// pause the GPU's clock is higher than what its limit of power allows for long, and who is fast then need
// not be the fastest later.
constexpr TuneRound kRoundsOfLibrary[] = {{.repeats = 3, .batch_seconds = 2e-2, .keep = 12},
                                          {.repeats = 5, .batch_seconds = 2e-2, .keep = 4},
                                          {.repeats = 9, .batch_seconds = 4e-2, .keep = 1}};

// One run of the command: everything that is the same for all of its problems.
struct Tuning {
  const TuneOptions& options;
  TuneDevice& device;
  io::Console& console;
  gemm::TunedTable table = {};
  std::size_t seen = 0;  // problems
  std::size_t all = 0;
  std::int64_t tuned = 0;
  std::int64_t had = 0;  // those that --resume passed over
  bool wrong = false;    // a candidate's result was
  bool failed = false;   // something could not be measured

  void progress(const std::string& text) const { io::show_progress(console, text); }
  void note(const gemm::Problem& problem, const std::string& text) const {
    show_note(console, problem, text);
  }
};

std::string defines_text(const gemm::Defines& defines) {
  return join(defines, " ", [](const auto& each) { return each.first + "=" + each.second; });
}

// The table so far; an empty one when there is no such file. Errors: a file that is no table, or
// another architecture's.
Result<gemm::TunedTable> read_table(const std::string& path, const target::Arch& arch) {
  const auto can = append_to_file(path, "");
  if (!can) return Unexpected{can.error()};
  const auto text = read_file(path);
  if (!text) return Unexpected{text.error()};
  if (text->empty()) return gemm::TunedTable{.arch = std::string(arch.name), .entries = {}};
  auto table = gemm::parse_table(*text, path);
  if (!table || table->arch == arch.name) return table;
  return Unexpected{
      Error{"cannot add to", path, format("it is for {}, the GPU is {}", table->arch, arch.name)}};
}

// One line of JSON for each candidate of a problem.
std::string json_of(const gemm::Problem& problem, const std::vector<TuneCandidate>& candidates,
                    const TuneOutcome& outcome) {
  std::string out;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const TuneScore& score = outcome.scores[i];
    nlohmann::ordered_json line = {{"shape", shape_of(problem)},
                                   {"types", types_of(problem)},
                                   {"kernel", candidates[i].choice.kernel},
                                   {"defines", nlohmann::ordered_json::object()}};
    for (const auto& [define, value] : candidates[i].tuned) line["defines"][define] = value;
    line["default"] = i == 0;
    if (candidates[i].modelled > 0) line["modelled_seconds"] = candidates[i].modelled;
    line["verdict"] = name(score.verdict.kind);
    if (!score.verdict.reason.empty()) line["reason"] = score.verdict.reason;
    line["rounds"] = score.rounds;
    if (score.rounds > 0) line["seconds"] = score.seconds;
    line["best"] = !outcome.order.empty() && outcome.order.front() == i;
    out += json_text(line) + "\n";
  }
  return out;
}

// The extents that are cut into as many tiles as this one.
gemm::Range alike(std::int64_t extent, int tile) {
  const std::int64_t tiles = (extent + tile - 1) / tile;
  return {(tiles - 1) * tile + 1, tiles * tile};
}

// The entry is for all problems that are cut into as many tiles and have the same k.
gemm::TunedEntry entry_of(const gemm::Problem& problem, const TuneCandidate& best, double seconds) {
  const gemm::KernelRow* row = gemm::kernel_row(best.choice.kernel);
  const auto tile = gemm::tile_of(*row, problem, best.tuned).value_or(gemm::TileShape{1, 1});
  return {.a = problem.a,
          .b = problem.b,
          .c = problem.c,
          .a_along_k = problem.a_along_k,
          .b_along_k = problem.b_along_k,
          .m = alike(problem.m, tile.m),
          .n = alike(problem.n, tile.n),
          .k = {problem.k, problem.k},
          .at = gemm::Extents{problem.m, problem.n, problem.k},
          .choice = {.kernel = best.choice.kernel, .defines = best.tuned},
          .seconds = seconds};
}

std::string line_of(const gemm::Problem& problem, const std::vector<TuneCandidate>& candidates,
                    const TuneOutcome& outcome) {
  const std::size_t best = outcome.order.front();
  const double seconds = outcome.scores[best].seconds;
  const double flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                       static_cast<double>(problem.k);
  const TuneScore& now = outcome.scores[0];
  const std::string ratio =
      now.rounds > 0 ? format("{:.3f}x", now.seconds / seconds) : std::string("-");
  return format("{:<24} {:<28} {:>9.2f} us {:>8.1f} TFLOP/s {:>7}  {} {}\n", shape_of(problem),
                types_of(problem), seconds * 1e6, flops / seconds * 1e-12, ratio,
                candidates[best].choice.kernel, defines_text(candidates[best].tuned));
}

// Says which candidates are wrong; those that were refused are a note's worth.
void report_verdicts(Tuning& tuning, const gemm::Problem& problem,
                     const std::vector<TuneCandidate>& candidates, const TuneOutcome& outcome) {
  std::size_t refused = 0;
  std::string first;
  Diagnostics diags;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Verdict& verdict = outcome.scores[i].verdict;
    const std::string which = gemm::text(candidates[i].choice);
    if (verdict.kind == Verdict::Kind::kRefused && refused++ == 0) {
      first = format("{}: {}", which, verdict.reason);
    }
    if (verdict.kind != Verdict::Kind::kWrong) continue;
    report_wrong(verdict, "c", format("{}, {}, {}", which, shape_of(problem), types_of(problem)),
                 diags);
  }
  if (refused > 0)
    tuning.note(problem, format("{} candidates refused, the first {}", refused, first));
  if (!diags.has_errors()) return;
  tuning.progress("");
  io::show(tuning.console, diags, {});
  tuning.wrong = true;
}

// Measures one problem and keeps its winner, if it has one. Errors: the environment's.
Result<void> tune_case(Tuning& tuning, const gemm::Problem& problem, const gemm::Problem& wanted) {
  const TuneOptions& options = tuning.options;
  const auto keep = options.keep > 0 ? static_cast<std::size_t>(options.keep) : kKeepOfLibrary;
  const auto candidates =
      candidates_of(wanted, tuning.device.arch(), tuning.device.multiprocessors(), keep);
  if (!candidates) {
    tuning.note(problem, candidates.error().text());
    return {};
  }
  const auto progress = [&](const std::string& text) {
    tuning.progress(
        format("{}: {}", io::progress_bar(shape_of(problem), tuning.seen, tuning.all), text));
  };
  progress(format("compiling {}", candidates->size()));
  const auto field = tuning.device.open(problem, *candidates);
  if (!field) return Unexpected{field.error()};
  const auto outcome = play_rounds(**field, kRoundsOfLibrary, progress);
  if (!outcome) return Unexpected{outcome.error()};
  tuning.progress("");
  report_verdicts(tuning, problem, *candidates, *outcome);
  if (!options.json.empty()) {
    auto written = append_to_file(options.json, json_of(problem, *candidates, *outcome));
    if (!written) return written;
  }
  if (outcome->order.empty()) return Unexpected{Error{"no candidate could be measured", {}, {}}};
  const std::size_t best = outcome->order.front();
  gemm::merge(tuning.table, entry_of(wanted, (*candidates)[best], outcome->scores[best].seconds));
  ++tuning.tuned;
  tuning.console.out << line_of(problem, *candidates, *outcome) << std::flush;
  return write_file(options.output, gemm::table_text(tuning.table));
}

void tune_cases(Tuning& tuning, const std::vector<gemm::Problem>& cases) {
  tuning.all = cases.size();
  for (; tuning.seen < cases.size(); ++tuning.seen) {
    const gemm::Problem& problem = cases[tuning.seen];
    const auto wanted = gemm::normalised(problem);
    if (!wanted) {
      tuning.note(problem, wanted.error().text());
      continue;
    }
    if (tuning.options.resume && gemm::has_entry(tuning.table, *wanted)) {
      ++tuning.had;
      continue;
    }
    const auto done = tune_case(tuning, problem, *wanted);
    if (done) continue;
    tuning.progress("");
    tuning.console.err << "error: " << shape_of(problem) << ", " << types_of(problem) << ": "
                       << done.error().text() << "\n";
    tuning.failed = true;
  }
}

}  // namespace

Result<std::vector<TuneCandidate>> candidates_of(const gemm::Problem& problem,
                                                 const target::Arch& arch, int multiprocessors,
                                                 std::size_t keep) {
  auto now = gemm::choose(problem, arch, multiprocessors);
  if (!now) return Unexpected{now.error()};
  const gemm::KernelRow* row = gemm::kernel_row(now->kernel);
  const gemm::Defines given = gemm::problem_defines(*row, problem, multiprocessors);
  std::vector<TuneCandidate> out = {{.choice = *now, .tuned = now->defines}};
  std::erase_if(out.front().tuned, [&](const auto& define) {
    return std::ranges::find(given, define) != given.end();
  });
  for (const gemm::Variant& variant : gemm::variants(problem, arch, multiprocessors)) {
    if (out.size() >= keep) break;
    gemm::Choice choice = gemm::choice_of(variant, problem, multiprocessors);
    if (choice == *now) continue;
    out.push_back(
        {.choice = std::move(choice), .tuned = variant.defines, .modelled = variant.seconds});
  }
  return out;
}

io::Exit tune_library(const TuneOptions& options, const std::vector<gemm::Problem>& cases,
                      TuneDevice& device, io::Console& console) {
  Tuning tuning{.options = options, .device = device, .console = console};
  auto table = read_table(options.output, device.arch());
  if (!table) return io::environment_failed(console, table.error()).error;
  tuning.table = std::move(*table);
  tune_cases(tuning, cases);
  console.out << format("{}: {} problems tuned, {} entries", options.output, tuning.tuned,
                        tuning.table.entries.size());
  if (tuning.had > 0) console.out << format(", {} passed over, the table had them", tuning.had);
  console.out << "\n";
  if (tuning.wrong) return io::Exit::kWrong;
  return tuning.failed ? io::Exit::kEnvironment : io::Exit::kFine;
}

}  // namespace kiln::measure
