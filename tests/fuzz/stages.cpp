#include "stages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "diag/render.h"
#include "driver/commands.h"
#include "emit/cuda/emit.h"
#include "explain/cost/full_tiles.h"
#include "io/program.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "random.h"
#include "support/file.h"
#include "support/format.h"
#include "support/hash.h"
#ifdef KILN_FUZZ_COMPILES
#include "compiles/compiles.h"
#endif

namespace kiln::fuzz {

namespace {

using io::Exit;
using Json = nlohmann::json;

constexpr std::int64_t kStepsMax = 2'000'000;
constexpr std::int64_t kRunBytesMax = 300'000'000;

template <class Options>
constexpr bool kHasSteps = requires(Options options) {
  options.max_steps;
};

template <class Options>
void limit(Options& options) {
  if constexpr (kHasSteps<Options>) options.max_steps = kStepsMax;
  if constexpr (requires { options.max_memory; }) options.max_memory = kRunBytesMax;
}

// One command's outcome.
struct Said {
  Exit exit = Exit::kFine;
  std::string out;
  std::string err;
};

template <class Options>
Said say(Exit (*command)(const Options&, io::Console&), const Options& options) {
  std::ostringstream out;
  std::ostringstream err;
  io::Console console{.out = out, .err = err};
  const Exit exit = command(options, console);
  return {exit, std::move(out).str(), std::move(err).str()};
}

// The first byte that is no printable text in UTF-8 or a newline; none when all is well.
bool is_clean(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
  });
}

class Trial {
 public:
  Trial(const Program& program, const TryOptions& options, const OnStage& on_stage)
      : program_(program), options_(options), on_stage_(on_stage) {
    file_.file = program.is_ir() ? "m.kir" : "m.co";
    file_.arch = program.arch;
    file_.defines = program.defines;
  }

  Report run() {
    if (write_files()) try_all();
    // The next program must not find what this one includes.
    std::error_code ignored;
    for (const auto& [name, text] : program_.included) std::filesystem::remove(name, ignored);
    return std::move(report_);
  }

 private:
  void try_all() {
    check();
    if (!report_.accepted || !report_.failure.empty()) return;
    if (begins(Stage::kIr)) print_ir();
    if (begins(Stage::kEmit)) emit();
    if (begins(Stage::kExplain)) explain();
    if (begins(Stage::kRun)) simulate();
    if (begins(Stage::kCompile)) compile_cuda();
  }

  bool begins(Stage stage) {
    const bool wanted = options_.stages[static_cast<std::size_t>(stage)];
    if (wanted && report_.failure.empty()) {
      stage_ = stage;
      on_stage_(stage);
      return true;
    }
    return false;
  }

  // The first failure counts.
  void fail(std::string text) {
    if (!report_.failure.empty()) return;
    report_.failure = std::move(text);
    report_.failed = stage_;
  }

  void keep(const Said& said) {
    std::uint64_t& hash = report_.hashes[static_cast<std::size_t>(stage_)];
    const std::string exit(1, static_cast<char>(said.exit));
    const std::string_view parts[] = {exit, said.out, said.err};
    hash = hash * 31 + digest_of_parts(parts).low;
    if (!is_clean(said.err)) fail("a control character in what a terminal shows");
  }

  bool write_files() {
    for (const auto& [name, text] : program_.included) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(name).parent_path(), ignored);
      if (!write_file(name, text)) return false;
    }
    const Result<void> written = write_file(file_.file, program_.text);
    if (!written) fail("the program could not be written: " + written.error().text());
    return written.has_value();
  }

  void parse_json(const std::string& text, std::string_view what) {
    if (!Json::accept(text)) fail(format("the JSON of `{}` does not parse", what));
  }

  void check() {
    stage_ = Stage::kCheck;
    on_stage_(stage_);
    const Said text = say(driver::check, driver::CheckOptions{.program = file_});
    const Said json = say(driver::check, driver::CheckOptions{.program = file_, .json = true});
    keep(text);
    keep(json);
    if (text.exit == Exit::kFine || text.exit == Exit::kWrong) parse_json(json.out, "check --json");
    if (text.exit != json.exit) fail("`check` and `check --json` end differently");
    if ((text.exit == Exit::kFine) == (text.err.find("error[") != std::string::npos)) {
      fail("the exit code of `check` does not fit its diagnostics");
    }
    report_.accepted = text.exit == Exit::kFine;
  }

  void accepted_but(const Said& said, std::string_view command) {
    if (said.exit == Exit::kFine) return;
    fail(format("`check` accepts what `{}` refuses: {}", command,
                said.err.substr(0, said.err.find('\n'))));
  }

  void print_ir() {
    const Said said = say(driver::ir, driver::IrOptions{.program = file_, .after = "all"});
    keep(said);
    accepted_but(said, "ir");
    constexpr std::string_view kTitle = "// after ";
    std::string_view rest = said.out;
    while (rest.starts_with(kTitle)) {
      const std::size_t begin = rest.find('\n') + 1;
      const std::size_t end = std::min(rest.find("\n// after ", begin), rest.size() - 1);
      round_trip(rest.substr(kTitle.size(), begin - kTitle.size() - 1),
                 std::string(rest.substr(begin, end + 1 - begin)));
      rest.remove_prefix(end + 1);
    }
  }

  void round_trip(std::string_view pass, const std::string& text) {
    Sources sources;
    Diagnostics diags;
    const FileId file = sources.add("printed.kir", text);
    const auto module = ir::parse(sources, file, diags);
    if (!module) {
      const std::string message = diags.all().empty() ? "" : diags.all()[0].message;
      return fail(format("the IR after {} does not parse: {}", pass, message));
    }
    if (ir::print(*module) != text)
      return fail(format("the IR after {} is not printed again", pass));
    const std::vector<std::string> mistakes = ir::verify(*module);
    if (!mistakes.empty()) fail(format("the IR after {}, read back: {}", pass, mistakes[0]));
  }

  void emit() {
    const Said said = say(driver::emit, driver::EmitCommandOptions{.program = file_});
    keep(said);
    accepted_but(said, "emit");
  }

#ifdef KILN_FUZZ_COMPILES
  void compile_cuda() {
    io::Program compiled;
    std::ostringstream nowhere;
    io::Console console{.out = nowhere, .err = nowhere};
    if (io::compile(file_, {}, compiled, console) != Exit::kFine) return;
    const std::string text = emit::emit(compiled.decided, compiled.sources, {});
    const auto errors = compiles::errors(text, *compiled.arch);
    if (errors) fail("the CUDA does not compile: " + message_alone(*errors));
  }

  // "identifier "x" is undefined" becomes "identifier is undefined": one kind of failure.
  static std::string message_alone(const std::string& errors) {
    const std::size_t at = errors.find("error: ");
    const std::size_t begin = at == std::string::npos ? 0 : at + 7;
    const std::string line = errors.substr(begin, errors.find('\n', begin) - begin);
    std::string out;
    bool quoted = false;
    for (const char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (!quoted && !(c == ' ' && out.ends_with(' ')))
        out += c;
    }
    return out.substr(0, 100);
  }
#else
  void compile_cuda() {}
#endif

  // The first function of the file, its dimensions and integer parameters with values.
  struct Call {
    std::string kernel;
    std::vector<std::string> shapes;
    double elements = 1;  // of all dimensions
  };

  bool choose_call(Call& call) {
    std::ostringstream nowhere;
    io::Console console{.out = nowhere, .err = nowhere};
    io::Program compiled;
    if (io::compile(file_, {}, compiled, console) != Exit::kFine) {
      fail("what `check` accepts does not compile again");
      return false;
    }
    if (compiled.decided.functions.empty()) return false;
    const ir::Function& function = compiled.decided.functions[0];
    call.kernel = function.name;
    const std::vector<std::int64_t> full = explain::full_tiles(function);
    Random random(options_.draw, 1);
    const std::size_t style = random.below(4);
    std::string list;
    for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
      const ir::Var& var = function.vars[ir::VarId{v}];
      if (var.kind != ir::VarKind::kDim && var.kind != ir::VarKind::kScalar) continue;
      const std::int64_t value =
          value_of(var.name, std::clamp<std::int64_t>(full[v], 1, 256), style, random);
      call.elements *= static_cast<double>(value);
      list += format("{}{}={}", list.empty() ? "" : ",", var.name, value);
    }
    add_floats(function, list);
    if (!list.empty()) call.shapes = {list};
    return true;
  }

  // Of the seed's own command, full tiles, or ragged ones.
  std::int64_t value_of(const std::string& name, std::int64_t full, std::size_t style,
                        Random& random) const {
    const std::string wanted = "," + program_.shapes + ",";
    const std::size_t found = wanted.find("," + name + "=");
    if (found != std::string::npos && style < 2) {
      const std::string text = wanted.substr(found + name.size() + 2, 6);
      const std::int64_t value = std::atoll(text.c_str());
      if (value > 0 && value <= 1024) return value;
    }
    if (style == 3)
      return std::max<std::int64_t>(1, full - 1 - static_cast<std::int64_t>(random.below(9)));
    return full;
  }

  static void add_floats(const ir::Function& function, std::string& list) {
    for (const ir::Param& param : function.params) {
      const bool scalar = std::holds_alternative<ir::ScalarType>(function.type(param.value));
      if (scalar && !param.var.valid())
        list += format("{}{}=2", list.empty() ? "" : ",", param.name);
    }
  }

  void explain() {
    Call call;
    if (!choose_call(call)) return;
    driver::ExplainOptions how{.program = file_, .kernel = call.kernel};
    limit(how);
    how.no_advice = true;  // the page has it
    keep(say(driver::explain, how));
    how.json = true;
    const Said json = say(driver::explain, how);
    keep(json);
    if (json.exit == Exit::kFine) parse_json(json.out, "explain --json");
    how.json = false;
    how.html = true;
    how.no_advice = false;
    keep(say(driver::explain, how));
  }

  void simulate() {
    constexpr double kElementsMax = 1 << 21;
    Call call;
    if (!choose_call(call) || call.elements > kElementsMax) return;
    constexpr std::string_view kFills[] = {"normal", "integers", "ones", "adversarial"};
    driver::RunOptions how{.program = file_, .kernel = call.kernel, .on = "sim"};
    how.shapes = call.shapes;
    how.fill = kFills[options_.draw % 4];
    how.schedules = 1 + static_cast<int>(options_.draw / 4 % 2);
    how.json = true;
    limit(how);
    Said said = say(driver::run, how);
    report_.ran = said.exit == Exit::kFine || said.exit == Exit::kWrong;
    Json json = Json::parse(said.out, nullptr, false);
    if (said.exit == Exit::kFine && json.is_discarded()) fail("the JSON of `run` does not parse");
    if (json.is_object()) {
      json.erase("seconds");  // the only thing that may differ
      said.out = json.dump(-1, ' ', true);
    }
    keep(said);
  }

  const Program& program_;
  const TryOptions& options_;
  const OnStage& on_stage_;
  io::ProgramOptions file_;
  Report report_;
  Stage stage_ = Stage::kCheck;
};

}  // namespace

Report try_program(const Program& program, const TryOptions& options, const OnStage& on_stage) {
  return Trial(program, options, on_stage).run();
}

std::string no_compiler() {
#ifdef KILN_FUZZ_COMPILES
  return compiles::unavailable().value_or("");
#else
  return "this program was built without it";
#endif
}

bool is_unlimited(Stage stage) {
  if (stage == Stage::kRun) return !kHasSteps<driver::RunOptions>;
  return stage == Stage::kExplain && !kHasSteps<driver::ExplainOptions>;
}

}  // namespace kiln::fuzz
