#include "measure/tune_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/bind.h"
#include "io/expect.h"
#include "io/machine.h"
#include "measure/bench_machine.h"
#include "measure/tune_over.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/json.h"
#include "support/parallel.h"

namespace kiln::measure {

namespace {

constexpr std::size_t kKeep = 64;
constexpr std::size_t kShown = 8;  // of the last round
constexpr TuneRound kFileRounds[] = {{.repeats = 1, .batch_seconds = 1e-2, .keep = 24},
                                     {.repeats = 3, .batch_seconds = 2e-2, .keep = kShown},
                                     {.repeats = 9, .batch_seconds = 2e-2, .keep = 1}};
constexpr const char* kSlow = "the cost model";  // drops those that it expects to be slow

// One run of the command.
struct FileTuning {
  const TuneOptions& options;
  io::Console& console;
  io::ProgramOptions program = {};  // with the architecture's name: looking for a GPU takes long
  Diagnostics diags = {};
  Sources sources = {};
  std::vector<io::Assignment> shapes = {};
  std::vector<FileCandidate> candidates = {};
  TunedProblem problem = {};
  std::string output = "the result";  // its name, for messages

  void progress(const std::string& text) const { io::show_progress(console, text); }
  [[nodiscard]] std::vector<FileCandidate*> left();
};

std::vector<FileCandidate*> FileTuning::left() {
  std::vector<FileCandidate*> out;
  for (FileCandidate& each : candidates) {
    if (each.dropped.empty()) out.push_back(&each);
  }
  return out;
}

// --- from the command line to candidates

// What the kernel itself says of what can be tuned.
struct Tunables {
  std::vector<Over> overs;  // `[[tune(...)]]`, but for what -D fixes
  std::vector<std::vector<io::AttributeSetting>> attributes;  // of each attribute all settings
};

io::Stage<Tunables> tunables_of_kernel(FileTuning& tuning) {
  const TuneOptions& options = tuning.options;
  io::Program program;
  const io::Exit exit = io::compile(tuning.program, {}, program, tuning.console);
  auto kernel = exit == io::Exit::kFine ? io::choose_kernel(program, options.program.file,
                                                            options.kernel, program.diags)
                                        : Checked<std::size_t>(std::size_t{0});
  if (exit != io::Exit::kFine || !kernel) {
    // With --over the file's own values need not be legal.
    if (!options.over.empty()) return Tunables{};
    io::show(tuning.console, program.diags, program.sources);
    return Unexpected{exit == io::Exit::kFine ? io::Exit::kUsage : exit};
  }
  Tunables out;
  if (!options.no_attributes) out.attributes = io::tunable_attributes(program, *kernel);
  if (!options.over.empty()) return out;
  for (const io::Tunable& each : program.tunables) {
    const bool fixed = std::ranges::any_of(options.program.defines, [&](const auto& define) {
      return define.substr(0, define.find('=')) == each.name;
    });
    if (fixed || each.kernel != program.decided.functions[*kernel].name) continue;
    out.overs.push_back({.text = each.name, .name = each.name, .values = each.values});
  }
  if (!out.overs.empty() || !out.attributes.empty()) return out;
  tuning.diags
      .report<diag::OptionForm>({}, "--over", "", "NAME=FROM:TO, NAME=FROM:TO:STEP or NAME=A,B,C")
      .help(
          "it says which macros or template parameters to vary; no parameter of the kernel says "
          "so itself, as in `[[tune(2, 3, 4)]] int STAGES = 3`, and no loop has `[[pipeline]]`")
      .emit();
  return Unexpected{io::Exit::kUsage};
}

// The file's own, and every combination; an attribute counts as a macro whose values are the numbers of its settings.
Checked<void> add_candidates(FileTuning& tuning, std::vector<Over> overs,
                             const std::vector<std::vector<io::AttributeSetting>>& attributes) {
  const std::size_t macros = overs.size();
  for (const std::vector<io::AttributeSetting>& settings : attributes) {
    overs.emplace_back();
    for (std::size_t i = 0; i < settings.size(); ++i) {
      overs.back().values.push_back(std::to_string(i));
    }
  }
  auto all = combinations(overs, tuning.diags);
  if (!all) return Unexpected{all.error()};
  tuning.candidates.emplace_back();
  for (std::vector<io::Assignment>& values : *all) {
    FileCandidate candidate;
    for (std::size_t i = macros; i < values.size(); ++i) {
      const auto which = static_cast<std::size_t>(std::stoul(values[i].value));
      candidate.attributes.push_back(attributes[i - macros][which]);
    }
    values.resize(macros);
    candidate.values = std::move(values);
    tuning.candidates.push_back(std::move(candidate));
  }
  return {};
}

io::Stage<void> list_candidates(FileTuning& tuning) {
  const TuneOptions& options = tuning.options;
  auto overs = parse_over(options.over, tuning.diags);
  if (!overs) return Unexpected{io::Exit::kUsage};
  auto shapes =
      io::parse_assignments("--shape", options.shapes, io::ListForm::kCommaSeparated, tuning.diags);
  if (!shapes) return Unexpected{io::Exit::kUsage};
  tuning.shapes = std::move(*shapes);
  const auto arch = io::choose_arch(options.program.arch, tuning.diags);
  if (!arch) return Unexpected{io::Exit::kUsage};
  tuning.program = options.program;
  tuning.program.arch = (*arch)->name;
  const auto text = read_file(options.program.file);
  if (!text) return io::environment_failed(tuning.console, text.error());
  auto own = tunables_of_kernel(tuning);
  if (!own) return Unexpected{own.error()};
  if (overs->empty()) overs = std::move(own->overs);
  const bool used =
      check_macros(*overs, options.program.defines, options.program.file, *text, tuning.diags)
          .has_value();
  if (!used || !add_candidates(tuning, *overs, own->attributes)) {
    return Unexpected{io::Exit::kUsage};
  }
  return {};
}

void drop(FileCandidate& candidate, const Diagnostics& diags) {
  candidate.dropped = "not read";
  for (const Diagnostic& each : diags.all()) {
    if (each.severity != Severity::kError) continue;
    candidate.dropped = info(each.id).name;
    candidate.message = each.message;
    break;
  }
  candidate.program = nullptr;
}

// Compiles a candidate and binds it to the problem's extents: all that needs no GPU.
void look_at(const FileTuning& tuning, FileCandidate& candidate) {
  io::ProgramOptions how = tuning.program;
  for (const io::Assignment& each : candidate.values) {
    how.defines.push_back(each.name + "=" + each.value);
  }
  std::ostringstream nowhere;
  io::Console silent{.out = nowhere, .err = nowhere};
  candidate.program = std::make_unique<io::Program>();
  io::Program& program = *candidate.program;
  Diagnostics& diags = program.diags;
  if (io::compile(how, {}, program, silent) != io::Exit::kFine) return drop(candidate, diags);
  const auto kernel = io::choose_kernel(program, how.file, tuning.options.kernel, diags);
  if (!kernel) return drop(candidate, diags);
  candidate.kernel = *kernel;
  if (!candidate.attributes.empty() && !io::decide_with(candidate.attributes, program, *kernel)) {
    return drop(candidate, diags);
  }
  io::BindOptions binding;
  binding.shapes = tuning.shapes;
  binding.memory_bytes_max = io::memory_allowed();
  binding.use = io::Use::kBench;
  auto arguments = io::bind(candidate.function(), std::move(binding), diags);
  if (!arguments || !io::check_entry(candidate.function(), *arguments, diags)) {
    return drop(candidate, diags);
  }
  candidate.arguments = std::move(*arguments);
}

// --- pruning

void prune(FileTuning& tuning) {
  const auto keep = tuning.options.keep > 0 ? static_cast<std::size_t>(tuning.options.keep) : kKeep;
  std::vector<FileCandidate*> left = tuning.left();
  if (left.size() <= keep) return;
  tuning.progress(format("modelling {} candidates", left.size()));
  for_each_index(left.size(), [&](std::size_t i) {
    left[i]->modelled = modelled_seconds(*left[i], tuning.shapes);
  });
  // Those that the model knows nothing of come last; the file's own stay in front.
  const auto first = left.begin() + (left.front()->is_own() ? 1 : 0);
  std::stable_sort(first, left.end(), [](const FileCandidate* a, const FileCandidate* b) {
    return a->modelled.value_or(1e30) < b->modelled.value_or(1e30);
  });
  for (std::size_t i = keep; i < left.size(); ++i) {
    left[i]->dropped = kSlow;
    left[i]->program = nullptr;
  }
}

// How many were dropped for each reason, the most frequent first: "12 by shared-memory-limit: ...".
std::vector<std::string> reasons(const std::vector<FileCandidate>& candidates) {
  std::map<std::string, std::pair<std::size_t, std::string>> found;
  for (const FileCandidate& each : candidates) {
    if (each.dropped.empty()) continue;
    auto& [count, message] = found[each.dropped];
    if (count++ == 0 && !each.message.empty()) {
      message = format(": {} ({})", each.message, text(each));
    }
  }
  std::vector<std::pair<std::string, std::pair<std::size_t, std::string>>> sorted(found.begin(),
                                                                                  found.end());
  std::ranges::stable_sort(sorted, std::greater<>{},
                           [](const auto& each) { return each.second.first; });
  std::vector<std::string> out;
  for (const auto& [reason, of] : sorted) {
    out.push_back(format("{} dropped by {}{}", of.first, reason, of.second));
  }
  return out;
}

io::Stage<void> report_nothing_left(FileTuning& tuning) {
  // The file's own values are none of those that were asked for.
  auto report = tuning.diags.report<diag::TuneNothingLeft>({}, tuning.candidates.size() - 1,
                                                           tuning.options.program.file);
  for (const std::string& reason : reasons(tuning.candidates)) {
    static_cast<void>(std::move(report).note("{}", reason));  // gives back the report itself
  }
  std::move(report).emit();
  return Unexpected{io::Exit::kWrong};
}

// --- what they compute

// The einsum is held against the first candidate's tensors; the others' are the same or refused.
io::Stage<void> read_expect(FileTuning& tuning, FileCandidate& first) {
  tuning.problem.seed = tuning.options.seed;
  const std::string& text = tuning.options.expect;
  if (text.empty()) return {};
  auto einsum = reference::parse_einsum(text, tuning.sources, tuning.diags);
  if (!einsum) return Unexpected{io::Exit::kUsage};
  Tensor returned;
  const auto tensors = io::named_tensors(first.function(), first.arguments, returned);
  const bool fits =
      reference::check(*einsum, tensors, tuning.diags).has_value() &&
      io::check_output(first.function(), einsum->output, tensors, tuning.diags).has_value();
  if (!fits) return Unexpected{io::Exit::kUsage};
  tuning.output = einsum->output.name;
  tuning.problem.einsum = std::move(*einsum);
  return {};
}

// --- results

std::string json_of(const FileTuning& tuning, const FileCandidate& candidate,
                    const TuneScore* score, bool best) {
  nlohmann::ordered_json line = {
      {"file", tuning.options.program.file},
      {"shape", join(tuning.shapes, ",", [](const auto& a) { return a.name + "=" + a.value; })},
      {"defines", nlohmann::ordered_json::object()}};
  for (const io::Assignment& each : candidate.values) line["defines"][each.name] = each.value;
  for (const io::AttributeSetting& each : candidate.attributes) {
    line["attributes"].push_back(
        {{"file", each.place.file}, {"line", each.place.line}, {"attribute", each.text}});
  }
  line["default"] = candidate.is_own();
  if (candidate.modelled) line["modelled_seconds"] = *candidate.modelled;
  if (!candidate.dropped.empty()) line["dropped"] = candidate.dropped;
  if (!candidate.message.empty()) line["reason"] = candidate.message;
  if (score != nullptr) {
    line["verdict"] = name(score->verdict.kind);
    if (!score->verdict.reason.empty()) line["reason"] = score->verdict.reason;
    line["rounds"] = score->rounds;
    if (score->rounds > 0) line["seconds"] = score->seconds;
    line["best"] = best;
  }
  return json_text(line) + "\n";
}

std::string all_json(FileTuning& tuning, const TuneOutcome& outcome) {
  std::string out;
  std::size_t next = 0;
  const std::vector<FileCandidate*> left = tuning.left();
  for (const FileCandidate& each : tuning.candidates) {
    const bool in = each.dropped.empty();
    const bool best = in && !outcome.order.empty() && outcome.order.front() == next;
    out += json_of(tuning, each, in ? &outcome.scores[next] : nullptr, best);
    if (in) ++next;
  }
  return out;
}

// "1.032x" of what the file has, when that was measured.
std::string ratio_text(const std::vector<FileCandidate*>& left, const TuneOutcome& outcome,
                       double seconds) {
  const bool known = left.front()->is_own() && outcome.scores[0].rounds > 0;
  return known ? format("{:.3f}x", outcome.scores[0].seconds / seconds) : "-";
}

void print_best(FileTuning& tuning, const TuneOutcome& outcome) {
  const std::vector<FileCandidate*> left = tuning.left();
  std::ostream& out = tuning.console.out;
  for (const std::string& reason : reasons(tuning.candidates)) out << reason << "\n";
  out << format("{} measured, by time, and by how much faster than the file's own\n",
                outcome.order.size());
  for (std::size_t i = 0; i < std::min(kShown, outcome.order.size()); ++i) {
    const std::size_t which = outcome.order[i];
    const double seconds = outcome.scores[which].seconds;
    out << format("{:>10.2f} us  {:>7}  {}\n", seconds * 1e6, ratio_text(left, outcome, seconds),
                  text(*left[which]));
  }
  const FileCandidate& best = *left[outcome.order.front()];
  out << "best:";
  for (const io::Assignment& each : best.values) out << " -D " << each.name << "=" << each.value;
  for (const io::AttributeSetting& each : best.attributes) out << " " << io::text(each);
  out << (best.is_own() ? " the file's own\n" : "\n");
}

io::Exit report_outcome(FileTuning& tuning, const TuneOutcome& outcome) {
  tuning.progress("");
  const std::vector<FileCandidate*> left = tuning.left();
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Verdict& verdict = outcome.scores[i].verdict;
    const std::string which = text(*left[i]);
    if (verdict.kind == Verdict::Kind::kWrong) {
      report_wrong(verdict, tuning.output, which, tuning.diags);
    } else if (verdict.kind == Verdict::Kind::kRefused) {
      tuning.console.err << "note: " << which << " refused: " << escape_lines(verdict.reason)
                         << "\n";
    }
  }
  if (!tuning.options.json.empty()) {
    const auto written = append_to_file(tuning.options.json, all_json(tuning, outcome));
    if (!written) return io::environment_failed(tuning.console, written.error()).error;
  }
  if (!outcome.order.empty()) print_best(tuning, outcome);
  if (tuning.diags.has_errors()) return io::Exit::kWrong;
  return outcome.order.empty() ? io::Exit::kEnvironment : io::Exit::kFine;
}

io::Exit measure(FileTuning& tuning, const OpenFileDevice& open) {
  const auto device = open();
  if (!device) return io::environment_failed(tuning.console, device.error()).error;
  const std::vector<FileCandidate*> left = tuning.left();
  tuning.progress(format("compiling {} candidates", left.size()));
  const auto field = (*device)->open(tuning.problem, left);
  if (!field) return io::environment_failed(tuning.console, field.error()).error;
  const auto outcome =
      play_rounds(**field, kFileRounds, [&](const std::string& text) { tuning.progress(text); });
  if (!outcome) return io::environment_failed(tuning.console, outcome.error()).error;
  return report_outcome(tuning, *outcome);
}

io::Exit run(FileTuning& tuning, const OpenFileDevice& open) {
  if (auto listed = list_candidates(tuning); !listed) return listed.error();
  tuning.progress(format("looking at {} candidates", tuning.candidates.size()));
  for_each_index(tuning.candidates.size(),
                 [&](std::size_t i) { look_at(tuning, tuning.candidates[i]); });
  tuning.progress("");
  const bool any = std::ranges::any_of(tuning.candidates, [](const FileCandidate& each) {
    return each.dropped.empty() && !each.is_own();
  });
  if (!any) return report_nothing_left(tuning).error();
  if (auto read = read_expect(tuning, *tuning.left().front()); !read) return read.error();
  prune(tuning);
  return measure(tuning, open);
}

}  // namespace

std::string text(const FileCandidate& candidate) {
  if (candidate.attributes.empty()) return values_text(candidate.values);
  const std::string attributes = join(
      candidate.attributes, " ", [](const io::AttributeSetting& each) { return io::text(each); });
  return candidate.values.empty() ? attributes : values_text(candidate.values) + " " + attributes;
}

io::Exit tune_file(const TuneOptions& options, const OpenFileDevice& open, io::Console& console) {
  FileTuning tuning{.options = options, .console = console};
  const io::Exit exit = run(tuning, open);
  tuning.progress("");
  io::show(console, tuning.diags, tuning.sources);
  return exit;
}

}  // namespace kiln::measure
