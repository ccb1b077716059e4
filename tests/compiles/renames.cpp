// Gives the names of programs other names, and holds kiln to it that what `check` accepts compiles:
// every name of every program becomes every other name of it and every word of words.txt.
//
//   renames --root . --sample 2500 --seed 1        a draw, the same for the same seed
//   renames --root . --sample 0 --jobs 8           all of them, hours
//
// Programs with CUDA of their own are left out. Two variables of one name may mean another program, or none; only what is accepted must compile.
// Prints each case that does not, at which kiln stops by a check of its own or that takes more than
// 10 s, and a last line of counts. Exits with 1 when there was any, with 77 when there is no NVRTC.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <unordered_set>

#include "compiles/compiles.h"
#include "emit/cuda/emit.h"
#include "io/assignments.h"
#include "passes/pass_table.h"
#include "sema/sema.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/hash.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace kiln::compiles {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string root = ".";
  std::size_t sample = 2500;
  std::uint64_t seed = 1;
  int jobs = 1;
};

struct Source {
  std::string path;
  std::string text;
  const target::Arch* arch = nullptr;
  std::vector<std::string> defines = {};
  std::vector<std::string> names = {};  // that may be exchanged
};

struct Rename {
  std::uint32_t source = 0;
  std::string_view from;
  std::string_view to;
};

// Of one case: thousands of times what it takes.
constexpr unsigned kSecondsMax = 10;

// What a worker tells the others, in memory that all of them share.
struct Shared {
  std::size_t next = 0;  // the first case that nobody has begun
  std::size_t accepted = 0;
  std::size_t compiled = 0;
  std::size_t wrong = 0;
};

Result<IncludedFile> read_beside(std::string_view from, std::string_view name) {
  const auto path = (fs::path(from).parent_path() / name).lexically_normal();
  auto text = read_file(path.string());
  if (!text) return Unexpected{text.error()};
  return IncludedFile{path.string(), std::move(*text)};
}

// Calls `visit(begin, end)` for each name of the text outside comments and strings that follows no
// dot and stands in no directive but a `#define`'s body.
template <class Visit>
void for_each_name(std::string_view text, Visit&& visit) {
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (syntax::starts_comment(text, at)) {
      at = syntax::skip_comment(text, at).end;
    } else if (c == '"' || c == '\'') {
      at = syntax::skip_string(text, at).end;
    } else if (syntax::is_digit(c)) {
      at = syntax::skip_name(text, at);
    } else if (syntax::is_name_start(c)) {
      const std::size_t end = syntax::skip_name(text, at);
      const std::size_t before = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
      const bool special =
          at > 0 && before != text.npos && (text[before] == '.' || text[before] == '#');
      if (!special) visit(at, end);
      at = end;
    } else {
      ++at;
    }
  }
}

std::string renamed(std::string_view text, const Rename& rename) {
  std::string out;
  std::size_t copied = 0;
  for_each_name(text, [&](std::size_t begin, std::size_t end) {
    if (text.substr(begin, end - begin) != rename.from) return;
    out += text.substr(copied, begin - copied);
    out += rename.to;
    copied = end;
  });
  return out + std::string(text.substr(copied));
}

// What the first RUN line of a golden file says.
void read_run_line(Source& source) {
  const std::size_t run = source.text.find("// RUN:");
  std::istringstream words(
      run == std::string::npos ? "" : source.text.substr(run, source.text.find('\n', run) - run));
  std::string arch = "sm_90a";
  for (std::string word; words >> word;) {
    if (word == "--arch") words >> arch;
    if (word == "-D" && words >> word) source.defines.push_back(word);
  }
  source.arch = target::find_arch(arch);
}

std::vector<Source> sources_below(const fs::path& root) {
  std::vector<std::string> paths;
  for (const char* folder : {"src", "tests", "examples", "kernels"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".co") paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  std::vector<Source> out;
  for (const std::string& path : paths) {
    auto text = read_file(path);
    if (!text || text->size() > 40000) continue;
    Source source{.path = path, .text = std::move(*text)};
    read_run_line(source);
    std::set<std::string> names;
    for_each_name(source.text, [&](std::size_t begin, std::size_t end) {
      const std::string name = source.text.substr(begin, end - begin);
      const bool plain = syntax::word_from_text(name) == syntax::Word::kNone;
      if (plain && !syntax::is_reserved(name)) names.insert(name);
    });
    source.names.assign(names.begin(), names.end());
    if (source.arch != nullptr) out.push_back(std::move(source));
  }
  return out;
}

// Whether the program has CUDA of its own, which calls what it likes: kiln answers for none of it, and
// its names in texts are not exchanged.
bool has_cuda(const ir::Module& module) {
  return !module.cuda.empty() ||
         std::ranges::any_of(module.functions, [](const ir::Function& function) {
           return std::ranges::any_of(
               function.ops, [](const ir::Op& op) { return op.kind() == ir::OpKind::kCuda; });
         });
}

// The CUDA of a program; nothing when it is refused, or has some of its own.
std::optional<std::string> emitted(const Source& source, std::string text) {
  Sources sources;
  Diagnostics diags;
  auto definitions = io::parse_definitions(source.defines, diags);
  if (!definitions) return std::nullopt;
  const FileId file = sources.add(source.path, std::move(text));
  const ast::Ast tree = parse_file(
      sources, file, {.definitions = std::move(*definitions), .read_included = read_beside}, diags);
  auto module = sema::analyse(tree, *source.arch, sources, diags);
  if (!module || !passes::run_passes(*module, diags) || diags.has_errors()) return std::nullopt;
  if (has_cuda(*module)) return std::nullopt;
  return emit::emit(*module, sources, {.line_directives = false});
}

std::string described(const std::vector<Source>& sources, const Rename& rename) {
  return format("{}: `{}` as `{}`", sources[rename.source].path, rename.from, rename.to);
}

class Worker {
 public:
  Worker(const std::vector<Source>& sources, const std::vector<Rename>& renames, Shared& shared)
      : sources_(sources), renames_(renames), shared_(shared) {}

  void run(std::size_t& current) {
    while ((current = __atomic_fetch_add(&shared_.next, 1, __ATOMIC_RELAXED)) < renames_.size()) {
      alarm(kSecondsMax);
      try_one(renames_[current]);
      alarm(0);
    }
  }

 private:
  void try_one(const Rename& rename) {
    const Source& source = sources_[rename.source];
    const auto text = emitted(source, renamed(source.text, rename));
    if (!text) return;
    __atomic_fetch_add(&shared_.accepted, 1, __ATOMIC_RELAXED);
    if (!seen_.insert(digest(*text).hex()).second) return;
    __atomic_fetch_add(&shared_.compiled, 1, __ATOMIC_RELAXED);
    const auto said = errors(*text, *source.arch);
    if (!said) return;
    __atomic_fetch_add(&shared_.wrong, 1, __ATOMIC_RELAXED);
    std::cout << described(sources_, rename) << "\n"
              << escape_lines(said->substr(0, 600)) << "\n"
              << std::flush;
  }

  const std::vector<Source>& sources_;
  const std::vector<Rename>& renames_;
  Shared& shared_;
  std::unordered_set<std::string> seen_;
};

template <class T>
T* shared_memory(std::size_t count) {
  void* const at =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  KILN_CHECK(at != MAP_FAILED, "no memory for {} workers", count);
  return static_cast<T*>(at);
}

pid_t start_worker(Worker& worker, std::size_t& current) {
  std::cout << std::flush;
  const pid_t child = fork();
  if (child != 0) return child;
  worker.run(current);
  std::cout << std::flush;
  _exit(0);
}

// Runs all cases in processes of their own: one that dies is a case that failed, and goes on.
void run_workers(const std::vector<Source>& sources, const std::vector<Rename>& renames,
                 const Options& options, Shared& shared) {
  const auto jobs = static_cast<std::size_t>(std::max(options.jobs, 1));
  auto* const current = shared_memory<std::size_t>(jobs);
  std::vector<pid_t> children(jobs);
  Worker worker(sources, renames, shared);
  for (std::size_t j = 0; j < jobs; ++j) children[j] = start_worker(worker, current[j]);
  for (std::size_t alive = jobs; alive > 0;) {
    int status = 0;
    const pid_t child = wait(&status);
    const auto which =
        static_cast<std::size_t>(std::ranges::find(children, child) - children.begin());
    if (which == jobs) continue;
    if (status == 0) {
      --alive;
      continue;
    }
    const bool slow = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    ++shared.wrong;
    std::cout << described(sources, renames[current[which]])
              << (slow ? format("\nno answer in {} s\n", kSecondsMax) : "\nkiln stopped\n");
    children[which] = start_worker(worker, current[which]);
  }
}

std::vector<std::string> words_of(const fs::path& root) {
  const auto text = read_file((root / "tests/compiles/words.txt").string());
  KILN_CHECK(text.has_value(), "tests/compiles/words.txt cannot be read");
  std::istringstream words(*text);
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

std::vector<Rename> all_renames(const std::vector<Source>& sources,
                                const std::vector<std::string>& words) {
  std::vector<Rename> out;
  for (std::uint32_t s = 0; s < sources.size(); ++s) {
    for (const std::string& from : sources[s].names) {
      for (const std::vector<std::string>* targets : {&sources[s].names, &words}) {
        for (const std::string& to : *targets) {
          if (to != from) out.push_back({s, from, to});
        }
      }
    }
  }
  return out;
}

int main_of(const Options& options) {
  if (const auto missing = unavailable()) {
    std::cout << "skipped: " << *missing << "\n";
    return 77;
  }
  std::vector<Source> sources = sources_below(options.root);
  std::erase_if(sources, [](const Source& source) { return !emitted(source, source.text); });
  const std::vector<std::string> words = words_of(options.root);
  std::vector<Rename> renames = all_renames(sources, words);
  std::cout << format("{} programs, {} renames\n", sources.size(), renames.size());
  if (options.sample != 0) {
    std::vector<Rename> drawn;
    std::ranges::sample(renames, std::back_inserter(drawn),
                        static_cast<std::ptrdiff_t>(options.sample), std::mt19937_64(options.seed));
    renames = std::move(drawn);
  }
  Shared& shared = *shared_memory<Shared>(1);
  run_workers(sources, renames, options, shared);
  std::cout << format("renames: {} tried, {} accepted, {} compiled, {} failed\n", renames.size(),
                      shared.accepted, shared.compiled, shared.wrong);
  return shared.wrong == 0 && shared.compiled > 0 ? 0 : 1;
}

}  // namespace
}  // namespace kiln::compiles

int main(int argc, char** argv) {
  kiln::compiles::Options options;
  CLI::App app{"Gives programs other names; what is accepted must compile"};
  app.add_option("--root", options.root, "the repository");
  app.add_option("--sample", options.sample, "how many; 0: all");
  app.add_option("--seed", options.seed, "of the sample");
  app.add_option("--jobs", options.jobs, "processes");
  CLI11_PARSE(app, argc, argv);
  return kiln::compiles::main_of(options);
}
