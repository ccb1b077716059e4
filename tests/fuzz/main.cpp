// Mutants of every program of the repository, through every command of kiln.
//
//   kiln_fuzz --seed 1 --count 200000 --jobs 16          the whole run
//   kiln_fuzz --seed 1 --only 4711                       one mutant: printed, and what it does
//   kiln_fuzz --file program.co                          a program that an earlier run printed
//
// README.md beside this file says what counts as a failure.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "campaign.h"
#include "minimise.h"
#include "mutate.h"
#include "support/file.h"
#include "support/format.h"

namespace kiln::fuzz {
namespace {

constexpr std::string_view kHelp = R"(usage: kiln_fuzz [OPTION]...
  --seed S --count N      mutants 0 to N-1 of seed S (1, 10000)
  --first K               begin at mutant K
  --minutes M             end then, whatever the count
  --jobs J                processes (one for each core)
  --stages LIST           of check,ir,emit,explain,run,compile
  --compile               the CUDA too, by NVRTC: 20 to 30 ms for each accepted mutant
  --only K                print mutant K and try it
  --file FILE             try the program of FILE
  --corpus DIR            replay DIR first (tests/fuzz/corpus)
  --keep DIR              write what is found there
  --root DIR              the repository
  --no-minimise           leave what is found as it is
  --summary FILE          counts, as JSON
)";

struct Options {
  CampaignOptions campaign;
  std::filesystem::path root = KILN_FUZZ_ROOT;
  std::filesystem::path corpus = {};
  std::string stages = "check,ir,emit,explain,run";
  std::optional<std::uint64_t> only = {};
  std::string file = {};
  std::string worker = {};  // the scratch folder of one, when this is a worker
};

[[noreturn]] void usage(const std::string& what) {
  std::fprintf(stderr, "kiln_fuzz: %s\n%s", what.c_str(), kHelp.data());
  std::exit(2);
}

std::uint64_t number(const std::string& word) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(word.c_str(), &end, 10);
  if (word.empty() || *end != '\0') usage("`" + word + "` is no number");
  return value;
}

void take(Options& options, const std::string& name, const std::string& value) {
  CampaignOptions& campaign = options.campaign;
  if (name == "--seed")
    campaign.seed = number(value);
  else if (name == "--count")
    campaign.count = number(value);
  else if (name == "--first")
    campaign.first = number(value);
  else if (name == "--minutes")
    campaign.minutes = std::atof(value.c_str());
  else if (name == "--jobs")
    campaign.crew.workers = number(value);
  else if (name == "--stages")
    options.stages = value;
  else if (name == "--only")
    options.only = number(value);
  else if (name == "--file")
    options.file = value;
  else if (name == "--corpus")
    options.corpus = value;
  else if (name == "--keep")
    campaign.keep = value;
  else if (name == "--root")
    options.root = value;
  else if (name == "--summary")
    campaign.summary = value;
  else if (name == "--worker")
    options.worker = value;
  else
    usage("unknown option `" + name + "`");
}

Options parse(int argc, char** argv) {
  Options options;
  options.campaign.crew.workers = std::max(1u, std::thread::hardware_concurrency());
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--no-minimise") {
      options.campaign.minimise = false;
    } else if (name == "--compile") {
      options.stages += ",compile";
    } else if (i + 1 == argc) {
      usage("`" + name + "` lacks its value");
    } else {
      take(options, name, argv[++i]);
    }
  }
  if (options.corpus.empty()) options.corpus = options.root / "tests/fuzz/corpus";
  return options;
}

TryOptions stages_of(const std::string& list) {
  TryOptions options;
  for (std::size_t i = 0; i < kStageCount; ++i) {
    options.stages[i] =
        ("," + list + ",").find(format(",{},", kStageNames[i])) != std::string::npos;
  }
  return options;
}

// Prints the program and how it ends. The exit code is 1 when it fails.
int try_alone(const Program& program, std::uint64_t draw, Crew& crew) {
  std::printf("%s\n", serialised(program).c_str());
  crew.submit({.draw = draw, .program = program});
  const Ending ending = crew.next();
  std::printf("%s, %s%s%s\n", ending.said.accepted ? "accepted" : "refused",
              ending.said.ran ? "run, " : "", ending.failure.empty() ? "fine" : "FAILURE ",
              ending.failure.c_str());
  return ending.failure.empty() ? 0 : 1;
}

int run_alone(const Options& options, std::span<const Program> seeds) {
  CrewOptions how = options.campaign.crew;
  how.workers = 1;
  Crew crew(how);
  if (options.only) {
    const Mutant mutant = make_mutant(seeds, options.campaign.seed, *options.only);
    std::printf("%s\n", mutant.how.c_str());
    return try_alone(mutant.program, *options.only, crew);
  }
  const auto text = read_file(options.file);
  if (!text) usage(text.error().text());
  return try_alone(deserialised(options.file, *text), 0, crew);
}

int run(Options options, const char* program) {
  const std::vector<Program> seeds = read_seeds(options.root);
  if (seeds.empty()) usage("no programs under `" + options.root.string() + "`");
  const std::string missing = no_compiler();
  if (stages_of(options.stages).stages[static_cast<std::size_t>(Stage::kCompile)] &&
      !missing.empty()) {
    usage("no stage `compile`: " + missing);
  }
  constexpr double kCheckSeconds = kSanitized ? 20 : 2;
  if (!options.worker.empty()) {
    return serve({.seeds = seeds,
                  .seed = options.campaign.seed,
                  .stages = stages_of(options.stages),
                  .scratch = options.worker,
                  .seconds_max = kCheckSeconds});
  }
  char scratch[] = "/tmp/kiln_fuzz_XXXXXX";
  if (mkdtemp(scratch) == nullptr) usage("no scratch folder");
  CrewOptions& crew = options.campaign.crew;
  crew.scratch = scratch;
  crew.seconds_max = kCheckSeconds;
  crew.command = {program,
                  "--root",
                  options.root.string(),
                  "--seed",
                  std::to_string(options.campaign.seed),
                  "--stages",
                  options.stages,
                  "--worker"};
  if (!options.campaign.keep.empty()) std::filesystem::create_directories(options.campaign.keep);
  int code = 0;
  if (options.only || !options.file.empty()) {
    code = run_alone(options, seeds);
  } else {
    code = Campaign(options.campaign, seeds, read_corpus(options.corpus)).run() ? 0 : 1;
  }
  std::filesystem::remove_all(scratch);
  return code;
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // a worker that has ended is noticed elsewhere
  return kiln::fuzz::run(kiln::fuzz::parse(argc, argv), "/proc/self/exe");
}
