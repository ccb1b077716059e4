// Random correct programs: the reference, the simulator and a GPU must agree on each.
//
//   programs --seed 1 --count 1000 --jobs 2
//   programs --seed 1 --only 17 --print
//   programs --seed 1 --count 3000 --jobs 16 --on gpu --findings found
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "programs/census.h"
#include "programs/farm.h"
#include "programs/shrink.h"
#include "support/format.h"

namespace kiln::programs {

namespace {

struct Options {
  FarmOptions farm;
  std::string on = "sim";
  std::string findings;
  std::string results;
  std::int64_t only = -1;
  int shrink_max = 20;
  bool print = false;
  bool census = false;
};

std::optional<Options> read_options(int argc, char** argv, int& exit) {
  Options out;
  CLI::App app(
      "Random correct programs on which the reference, the simulator and a GPU must agree");
  app.add_option("--seed", out.farm.stream.seed, "which programs");
  app.add_option("--count", out.farm.count, "how many");
  app.add_option("--first", out.farm.first, "the first one's number");
  app.add_option("--jobs", out.farm.jobs, "processes");
  app.add_option("--arch", out.farm.stream.arch, "for one architecture; else each program chooses");
  app.add_flag("--tiles", out.farm.stream.tiles, "programs of register tiles alone");
  app.add_option("--on", out.on,
                 "sim; nvrtc: also compiled; gpu: also run there; both: the same as gpu")
      ->check(CLI::IsMember({"sim", "nvrtc", "gpu", "both"}));
  app.add_option("--schedules", out.farm.evaluate.schedules, "orders of execution of each program");
  app.add_option("--fills", out.farm.evaluate.fills, "1 to 3 contents of the inputs");
  app.add_option("--seconds", out.farm.seconds_max, "a program may take so long");
  app.add_option("--findings", out.findings, "a folder for what disagrees");
  app.add_option("--shrink", out.shrink_max, "so many findings are made smaller");
  app.add_option("--only", out.only, "this one alone");
  app.add_option("--results", out.results, "a file for the counts, as JSON");
  app.add_flag("--print", out.print, "show the programs instead of running them");
  app.add_flag("--census", out.census, "count what the programs are made of");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  if (out.on == "nvrtc") out.farm.evaluate.on = On::kNvrtc;
  if (out.on == "gpu" || out.on == "both") out.farm.evaluate.on = On::kGpu;
  if (out.only >= 0) {
    out.farm.first = static_cast<std::uint64_t>(out.only);
    out.farm.count = 1;
  }
  return out;
}

std::string command_of(const Sample& sample) {
  return format("programs{} --seed {} --only {}", sample.tiles ? " --tiles" : "", sample.seed,
                sample.number);
}

void show_programs(const Options& options) {
  for (std::uint64_t i = 0; i < options.farm.count; ++i) {
    const Sample sample = draw_sample(options.farm.stream, options.farm.first + i);
    std::cout << format("// {}: {}; {}\n", command_of(sample), sample.family, options_text(sample))
              << text(sample) << "\n";
  }
}

void write_program(const std::filesystem::path& path, const Sample& sample, const Finding& finding,
                   const std::string& note) {
  std::ofstream file(path);
  file << format("// {}{}\n// kiln run FILE {} --schedules 3\n// {} {}: {}\n", command_of(sample),
                 note, options_text(sample), finding.kind, finding.what, finding.detail)
       << text(sample);
}

void write_findings(const Options& options, const Harvest& harvest) {
  std::filesystem::create_directories(options.findings);
  const std::filesystem::path folder = options.findings;
  std::map<std::string, int> seen;
  int shrunk = 0;
  for (const Finding& finding : harvest.findings) {
    const Sample sample = draw_sample(options.farm.stream, finding.number);
    const std::string base =
        format("{}_{}_{}", finding.kind, options.farm.stream.seed, finding.number);
    write_program(folder / (base + "_whole.co"), sample, finding, "");
    // Two of a kind are enough.
    if (++seen[finding.kind + finding.what] > 2 || ++shrunk > options.shrink_max) continue;
    const Verdict verdict{.kind = finding.kind, .what = finding.what, .detail = finding.detail};
    const Sample small = shrink(sample, verdict, {.evaluate = options.farm.evaluate});
    write_program(folder / (base + ".co"), small, finding, ", made smaller");
  }
}

void show_census(const Harvest& harvest) {
  for (const auto& [name, count] : harvest.census) std::cout << format("{:8} {}\n", count, name);
  for (const std::string& name : everything()) {
    if (!harvest.census.contains(name)) std::cout << format("{:8} {}\n", 0, name);
  }
}

void show(const Options& options, const Harvest& harvest) {
  std::map<std::string, std::vector<std::uint64_t>> kinds;
  for (const Finding& each : harvest.findings) {
    kinds[each.kind + " " + each.what].push_back(each.number);
    if (harvest.findings.size() <= 20) {
      std::cout << format("{}: {} {}: {}\n", each.number, each.kind, each.what, each.detail);
    }
  }
  for (const auto& [kind, numbers] : kinds) {
    std::cout << format("{:5} {}  (", numbers.size(), kind);
    for (std::size_t i = 0; i < std::min<std::size_t>(numbers.size(), 8); ++i)
      std::cout << (i == 0 ? "" : " ") << numbers[i];
    std::cout << ")\n";
  }
  if (options.census) show_census(harvest);
  std::cout << format(
      "{} programs on {}, {} elements compared, {} of them without a bound, {} disagree\n",
      harvest.done, options.on, harvest.compared, harvest.not_compared, harvest.findings.size());
}

int run(const Options& options) {
  if (options.print) {
    show_programs(options);
    return 0;
  }
  // Thousands of programs that nobody runs again.
  setenv("KILN_CACHE_DIR", "off", 0);
  const Harvest harvest = run_farm(options.farm);
  show(options, harvest);
  if (!options.findings.empty() && !harvest.findings.empty()) write_findings(options, harvest);
  if (!options.results.empty()) {
    const std::uint64_t failed = harvest.findings.size();
    std::ofstream(options.results)
        << format("{{\"passed\": {}, \"failed\": {}}}\n", harvest.done - failed, failed);
  }
  return harvest.findings.empty() && harvest.done == options.farm.count ? 0 : 1;
}

}  // namespace

}  // namespace kiln::programs

int main(int argc, char** argv) {
  int exit = 0;
  const auto options = kiln::programs::read_options(argc, argv, exit);
  return options ? kiln::programs::run(*options) : exit;
}
