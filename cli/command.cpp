// The only place where exceptions may pass: CLI11 throws them for a wrong command line.
#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <span>

#include "backends/backend.h"
#include "completion.h"
#include "diag/diagnostics.h"
#include "driver/commands.h"
#include "support/escape.h"
#include "support/format.h"
#include "target/arch.h"

namespace {

using kiln::io::Console;
using kiln::io::Exit;

// All commands' options, and which command was chosen.
struct Cli {
  CLI::App app{"kiln: a compiler, a simulator and a kernel library for tensor-core programs",
               "kiln"};
  kiln::driver::CheckOptions check;
  kiln::driver::RunOptions run;
  kiln::driver::BuildOptions build;
  kiln::driver::EmitCommandOptions emit;
  kiln::driver::IrOptions ir;
  kiln::driver::AtomsOptions atoms;
  kiln::driver::MapOptions map;
  kiln::driver::PruneOptions prune;
  kiln::driver::ExplainOptions explain;
  kiln::measure::BenchOptions bench;
  kiln::measure::TuneOptions tune;
  kiln::driver::CacheOptions cache;
  std::string completion;
};

CLI::Option* repeated(CLI::App* command, const char* names, std::vector<std::string>& target,
                      const char* help) {
  return command->add_option(names, target, help)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// The library's own conversion takes -1 and 2^64 for others.
CLI::Validator whole() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        std::uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && at == end) return "";
        return kiln::format("`{}` is no whole number from 0 to {}", text, UINT64_MAX);
      },
      "");
}

// No range refuses what compares with nothing.
CLI::Validator number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.find_first_of("nN") == std::string::npos
                   ? ""
                   : kiln::format("`{}` is no number", text);
      },
      "");
}

void add_folders(CLI::App* command, kiln::io::ProgramOptions& options) {
  repeated(command, "-I", options.folders, "a folder whose files may be included")
      ->type_name("FOLDER");
}

void add_program(CLI::App* command, kiln::io::ProgramOptions& options) {
  command->add_option("FILE", options.file, "the .co file")->required();
  command->add_option("--arch", options.arch,
                      kiln::target::arch_choice() + " (default: this machine's GPU, else " +
                          std::string(kiln::target::default_arch().name) + ")");
  repeated(command, "-D", options.defines, "define a macro")->type_name("NAME=VALUE");
  add_folders(command, options);
}

// Of `bench` and `tune`, whose first word is a file or something else.
template <class Options>
void add_file(CLI::App* command, Options& options) {
  command->add_option("--arch", options.program.arch, "of a file: " + kiln::target::arch_choice());
  repeated(command, "-D", options.program.defines, "of a file: define a macro")
      ->type_name("NAME=VALUE");
  add_folders(command, options.program);
  command->add_option("--kernel", options.kernel, "of a file: which kernel, when it has several");
}

void add_check(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand("check", "find every mistake in a program");
  add_program(command, cli.check.program);
  command->add_flag("--json", cli.check.json, "print the diagnostics as one JSON array");
  command->footer("example: kiln check matmul.co --arch sm_80");
}

void add_max_memory(CLI::App* command, std::uint64_t& bytes) {
  command
      ->add_option("--max-memory", bytes,
                   "bytes that a run may hold, 4G for instance (default: 7/8 of what there is)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 50))
      ->type_name("BYTES");
}

void add_run(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand("run", "run a kernel and check its results");
  kiln::driver::RunOptions& run = cli.run;
  add_program(command, run.program);
  command->add_option("--kernel", run.kernel, "which kernel, when the file has several");
  command->add_option("--on", run.on, kiln::backends::backend_names())->capture_default_str();
  repeated(command, "--shape", run.shapes, "dimensions and scalars: M=512,N=512,K=256");
  repeated(command, "--in", run.inputs, "an input from a .npy file")->type_name("NAME=FILE");
  repeated(command, "--out", run.outputs, "write an output to a .npy file")->type_name("NAME=FILE");
  command->add_option("--fill", run.fill, "other inputs: normal, integers, ones or adversarial")
      ->capture_default_str();
  command->add_option("--seed", run.seed, "of the fill")->check(whole())->capture_default_str();
  command->add_option("--expect", run.expect, "also compare with formulas, evaluated in fp64");
  repeated(command, "--ref", run.references, "also compare with an array")->type_name("NAME=FILE");
  command->add_option("--tolerance", run.tolerance, "of --ref: may differ by A + R * |ref|")
      ->type_name("A,R");
  command->add_option("--check", run.check,
                      "how much the reference computes: full, sample or none (default: by size)");
  command->add_option("--schedules", run.schedules, "orders of execution the simulator tries")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option("--max-steps", run.max_steps,
                   "instructions of warps that a run may take, in each order of execution")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31))
      ->capture_default_str();
  add_max_memory(command, run.max_memory);
  command
      ->add_option("--dump", run.dumps,
                   "show what a tile holds behind a line, and who holds it, in a simulated run")
      ->take_all()
      ->type_name("TILE@LINE");
  command->add_flag("--json", run.json, "print the report as one JSON object");
  command->add_option("--compiler", run.compiler, "of a program with `main`: as of kiln build");
  command->add_option("ARGUMENTS", run.arguments, "of a program with `main`: its own, behind `--`");
  command->footer(
      "example: kiln run matmul.co --arch sm_80 --shape M=64,N=48,K=80 \\\n"
      "             --expect 'output[m,n] = lhs[m,k] * rhs[n,k]'");
}

void add_build(Cli& cli) {
  kiln::driver::BuildOptions& build = cli.build;
  CLI::App* command =
      cli.app.add_subcommand("build", "make a program of tile functions and host code");
  add_program(command, build.program);
  command->add_option("-o", build.output, "write the program here (default: the file's name)");
  command->add_option("--on", build.on, "what runs its tile functions: auto, sim or gpu")
      ->capture_default_str();
  command->add_option("--compiler", build.compiler,
                      "the host compiler (default: CXX, else c++, g++ or clang++)");
  command->add_option("FLAGS", build.flags, "of the host compiler, behind `--`");
  command->footer("example: kiln build app.co -o app -- -O3 -lm");
}

void add_emit_and_ir(Cli& cli) {
  CLI::App* emit = cli.app.add_subcommand("emit", "print the CUDA of a program");
  add_program(emit, cli.emit.program);
  CLI::Option* output = emit->add_option("-o", cli.emit.output, "write to this file");
  CLI::Option* header =
      emit->add_option("--header", cli.emit.header,
                       "write functions of C and C++ to this header and to a source beside it; "
                       "--arch may be a list, sm_90a,sm_80")
          ->excludes(output);
  emit->add_option("--namespace", cli.emit.name_space,
                   "of --header: the namespace of its functions, which their names in C begin with")
      ->needs(header);
  emit->add_option("--source", cli.emit.source, "of --header: the source (default: ends in .c)")
      ->needs(header);
  emit->add_option("--depfile", cli.emit.depfile, "of --header: write which files it is made of")
      ->needs(header);
  emit->add_option("--ahead", cli.emit.ahead,
                   "of --header: what makes machine code, auto, nvrtc, nvcc or no")
      ->needs(header)
      ->capture_default_str();
  emit->footer(
      "examples: kiln emit matmul.co --arch sm_80 -o matmul.cu\n"
      "          kiln emit matmul.co --arch sm_90a,sm_80 --header matmul.co.h");
  CLI::App* ir = cli.app.add_subcommand("ir", "print the tile IR of a program");
  add_program(ir, cli.ir.program);
  ir->add_option("--after", cli.ir.after,
                 "a pass, `sema` for before them or `all` (default: after the last)");
  ir->add_option("--as", cli.ir.as, "`ir`, or `co`: as a program of the language")
      ->capture_default_str();
  ir->footer(
      "examples: kiln ir matmul.co --after select-atoms\n"
      "          kiln ir matmul.co --after sema --as co");
}

void add_map(Cli& cli) {
  kiln::driver::MapOptions& map = cli.map;
  CLI::App* command = cli.app.add_subcommand(
      "map", "draw which thread owns which element, and what lies in which bank");
  command->add_option("ATOM", map.atom, "a matrix instruction, an `ldmatrix`, or a layout")
      ->required();
  command->add_option("--operand", map.operand, "A, B or C (default: all three)");
  command->add_option("--format", map.format, "text, svg, html, latex or json")
      ->capture_default_str();
  command->add_option("-o", map.output, "write to this file");
  command->add_flag("--table", map.table, "a row for each thread, a column for each value");
  command->add_option("--tile", map.tile, "the layout is (lane, value) -> element of this tile")
      ->type_name("ROWSxCOLS");
  command->add_option("--smem", map.smem, "where the operand's tile lies in shared memory")
      ->type_name("LAYOUT");
  command->add_option("--swizzle", map.swizzle,
                      "of byte addresses: 32, 64, 128 or BITS,BASE,SHIFT");
  command->add_option("--dtype", map.dtype, "of an element, or its bytes (default: f16)");
  command->add_flag("--banks", map.banks, "show the bank of each element");
  command
      ->add_option("--access", map.access, "lane (and vector element) -> element, or ldmatrix.x4")
      ->type_name("LAYOUT");
  command->footer(
      "examples: kiln map m16n8k16.f32.f16 --operand C\n"
      "          kiln map m16n8k16.f32.f16 --format html -o atom.html\n"
      "          kiln map '(8,8):(8,1)' --dtype 16 --swizzle 128 --access 8:1");
}

void add_atoms_and_map(Cli& cli) {
  CLI::App* atoms = cli.app.add_subcommand("atoms", "list the matrix instructions");
  atoms->add_option("--arch", cli.atoms.arch, "only those of this architecture");
  atoms->add_flag("--json", cli.atoms.json, "print one JSON array");
  atoms->footer("example: kiln atoms --arch sm_80");
  add_map(cli);
}

void add_prune(Cli& cli) {
  kiln::driver::PruneOptions& prune = cli.prune;
  CLI::App* command =
      cli.app.add_subcommand("prune", "make a matrix 2:4 sparse, and split it for the hardware");
  command->add_option("FILE", prune.file, "the matrix [M, K], a .npy file")->required();
  command->add_option("-o", prune.packed, "write what is kept, [M, K/2]")->required();
  command->add_option("--metadata", prune.metadata, "write where it stood")->required();
  command->add_option("--form", prune.form, "of the metadata: u8 or u32")->capture_default_str();
  command->add_option("--dense", prune.dense, "write the pruned matrix, [M, K]");
  command->add_option("--type", prune.type,
                      "what the file's bits are: f16, bf16, f32, tf32, f8_e4m3, f8_e5m2, s8 or u8");
  command->add_flag("--no-prune", prune.keep, "refuse a matrix that is not 2:4 sparse already");
  command->footer("example: kiln prune w.npy -o packed.npy --metadata meta.npy --dense pruned.npy");
}

void add_explain(Cli& cli) {
  kiln::driver::ExplainOptions& explain = cli.explain;
  CLI::App* command = cli.app.add_subcommand(
      "explain", "say what a kernel costs on a GPU: instructions, memory, occupancy, times");
  add_program(command, explain.program);
  command->add_option("--kernel", explain.kernel, "which kernel, when the file has several");
  repeated(command, "--shape", explain.shapes,
           "dimensions and scalars: M=512,N=512,K=256 (default: a few full tiles)");
  add_max_memory(command, explain.max_memory);
  CLI::Option* json = command->add_flag("--json", explain.json, "print one JSON object");
  command
      ->add_flag("--html", explain.html,
                 "print one page: when a block does what, what it costs, who holds what")
      ->excludes(json);
  command->add_flag("--no-advice", explain.no_advice,
                    "do not try which attributes make it faster, which takes longest");
  command->add_flag("--compile", explain.compile,
                    "compile with NVRTC: registers as the kernel takes them, not estimated");
  command->add_option("-o", explain.output, "write to this file");
  command->footer("example: kiln explain matmul.co --arch sm_80 --shape M=4096,N=4096,K=4096");
}

void add_bench(Cli& cli) {
  kiln::measure::BenchOptions& bench = cli.bench;
  CLI::App* command = cli.app.add_subcommand(
      "bench", "measure a kernel on the GPU, beside the vendor's library in the same process");
  command->add_option("SUITE|FILE", bench.program.file,
                      "dense, llm, small, fp8, sparse, ragged, block-scaled or grouped; attention; "
                      "attention-backward; attention-fp8; random; "
                      "or a .co file");
  add_file(command, bench);
  repeated(command, "--shape", bench.shapes,
           "of a file: one problem, M=4096,N=4096,K=4096; of a suite: the problems to keep");
  command->add_option("--only", bench.only,
                      "of a suite or random: keep the problems whose line has this");
  command->add_option("--count", bench.count, "of random: how many problems (default: 10000)")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--seconds", bench.seconds, "of random: begin no further problem after so long")
      ->check(CLI::Range(1.0, 1e6));
  command->add_option("--expect", bench.expect, "of a file: formulas of what it computes");
  command->add_option("--seed", bench.seed, "of the inputs")->check(whole())->capture_default_str();
  command->add_option("--repeats", bench.repeats, "batches of each")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--batch-seconds", bench.batch_seconds, "how long a batch is at least")
      ->check(number())
      ->check(CLI::Range(1e-4, 10.0))
      ->capture_default_str();
  command->add_flag("--graphs", bench.graphs,
                    "start launches in CUDA graphs: small problems measure the GPU");
  command->add_flag(
      "--power", bench.power,
      "energy too: joules of a launch and of 1e12 operations (0.5 s of each, 3 times)");
  command->add_flag("--unchecked", bench.unchecked, "of a file: do not compare the results");
  command->add_option("--json", bench.json, "append a JSON line for each problem to this file");
  command->add_option("--plot", bench.plot, "draw the results of this file instead of measuring");
  command->add_option("-o", bench.output, "of --plot: write to this file");
  command->footer(
      "examples: kiln bench dense --json results.jsonl\n"
      "          kiln bench random --count 1000\n"
      "          kiln bench --plot results.jsonl -o results.svg\n"
      "          kiln bench matmul.co --shape M=4096,N=4096,K=4096 --shape M=64,N=7168,K=2048 \\\n"
      "              --expect 'output[m,n] = lhs[m,k] * rhs[n,k]' --json results.jsonl");
}

void add_cache(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand("cache", "the compile cache of kernels for the GPU");
  command->require_subcommand(1);
  CLI::App* warm = command->add_subcommand("warm", "compile a program into it; needs no GPU");
  add_program(warm, cli.cache.program);
  warm->footer("example: kiln cache warm matmul.co --arch sm_90a");
  command->add_subcommand("info", "print its folder, its size and its limit");
  command->add_subcommand("clear", "remove all of its entries");
}

void add_tune(Cli& cli) {
  kiln::measure::TuneOptions& tune = cli.tune;
  CLI::App* command = cli.app.add_subcommand("tune", "search for the fastest macros, on the GPU");
  command->add_option(
      "SUITE|FILE", tune.program.file,
      "a .co file; or dense, llm, small, fp8, sparse, ragged or block-scaled: the library's "
      "kernels");
  add_file(command, tune);
  repeated(command, "--over", tune.over,
           "of a file: a macro to vary, STAGES=2:6 or TILE_N=64:256:8")
      ->type_name("NAME=VALUES");
  command->add_flag("--no-attributes", tune.no_attributes,
                    "of a file: leave [[pipeline]] and [[order]] as they are");
  command->add_option("--expect", tune.expect, "of a file: what it computes, as an einsum");
  repeated(command, "--problem", tune.problems,
           "of the library: one problem, 'bf16,bf16,bf16 M=4096,N=4096,K=4096'");
  repeated(command, "--shape", tune.shapes,
           "of a file: the problem, M=4096,N=4096,K=4096; of a suite: the problems to keep");
  command->add_option("--only", tune.only, "of a suite: keep the problems whose line has this");
  command->add_option("--keep", tune.keep, "how many candidates are measured, by the model's order")
      ->check(CLI::Range(1, 10000));
  command->add_option("--seed", tune.seed, "of the inputs")->check(whole())->capture_default_str();
  command->add_flag("--resume", tune.resume, "of the library: pass over what the table has");
  command->add_option("-o", tune.output, "of the library: the table to add to");
  command->add_option("--json", tune.json, "append a JSON line for each candidate to this file");
  command->footer(
      "examples: kiln tune llm -o kernels/tuned/sm_90a.json --resume\n"
      "          kiln tune matmul.co --shape M=4096,N=4096,K=4096 --over STAGES=2:6 \\\n"
      "              --over TILE_N=64:256:8 --expect 'c[m,n] = a[m,k] * b[n,k]'");
}

void add_completion(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand(
      "completion", "print what a shell needs to complete kiln's words, or the manual page");
  command->add_option("FOR", cli.completion, "bash, zsh, fish or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  command->footer(
      "examples: kiln completion bash > ~/.local/share/bash-completion/completions/kiln\n"
      "          kiln completion man | man -l -");
}

void build(Cli& cli) {
  cli.app.set_version_flag("--version", "kiln " KILN_VERSION);
  cli.app.require_subcommand(1);
  cli.app.footer("kiln COMMAND --help explains a command.");
  add_check(cli);
  add_run(cli);
  add_build(cli);
  add_emit_and_ir(cli);
  add_atoms_and_map(cli);
  add_prune(cli);
  add_explain(cli);
  add_bench(cli);
  add_tune(cli);
  add_cache(cli);
  add_completion(cli);
}

Exit print_completion(const Cli& cli, Console& console) {
  const kiln::cli::CommandWords words = kiln::cli::words_of(cli.app);
  const std::string& reader = cli.completion;
  if (reader == "bash") console.out << kiln::cli::bash_completion(words);
  if (reader == "zsh") console.out << kiln::cli::zsh_completion(words);
  if (reader == "fish") console.out << kiln::cli::fish_completion(words);
  if (reader == "man") console.out << kiln::cli::man_page(words);
  return Exit::kFine;
}

Exit dispatch_cache(const Cli& cli, Console& console) {
  const std::string name = cli.app.get_subcommand("cache")->get_subcommands().front()->get_name();
  if (name == "warm") return kiln::driver::cache_warm(cli.cache, console);
  return name == "info" ? kiln::driver::cache_info(console) : kiln::driver::cache_clear(console);
}

// The exit code; that of a whole program is its own.
int dispatch_run(const Cli& cli, Console& console) {
  if (kiln::driver::is_whole_program(cli.run)) {
    return kiln::driver::run_whole_program(cli.run, console);
  }
  if (!cli.run.arguments.empty() || !cli.run.compiler.empty()) {
    console.err << "error: " << kiln::shown(cli.run.program.file) << " is run by its kernel, which "
                << "takes no arguments behind `--` and no compiler\n";
    return static_cast<int>(Exit::kUsage);
  }
  return static_cast<int>(kiln::driver::run(cli.run, console));
}

Exit dispatch(const Cli& cli, Console& console) {
  const std::string name = cli.app.get_subcommands().front()->get_name();
  if (name == "check") return kiln::driver::check(cli.check, console);
  if (name == "build") return kiln::driver::build(cli.build, console);
  if (name == "emit") return kiln::driver::emit(cli.emit, console);
  if (name == "ir") return kiln::driver::ir(cli.ir, console);
  if (name == "atoms") return kiln::driver::atoms(cli.atoms, console);
  if (name == "map") return kiln::driver::map(cli.map, console);
  if (name == "prune") return kiln::driver::prune(cli.prune, console);
  if (name == "explain") return kiln::driver::explain(cli.explain, console);
  if (name == "bench") return kiln::driver::bench(cli.bench, console);
  if (name == "tune") return kiln::driver::tune(cli.tune, console);
  if (name == "completion") return print_completion(cli, console);
  return dispatch_cache(cli, console);
}

// A first word that is no command, said so by name; "" when it is one, or an option.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string word = argv[1];
  if (std::find(names.begin(), names.end(), word) != names.end()) return "";
  const std::string guess = kiln::did_you_mean(word, names);
  return kiln::format("`{}` is no command of kiln{}", word, guess.empty() ? "" : ", " + guess);
}

}  // namespace

int run_command(int argc, const char* const* argv, Console& console) {
  Cli cli;
  build(cli);
  std::string mistake = unknown_command(cli.app, argc, argv);
  if (mistake.empty() && argc > 1) {
    const std::span given(argv + 1, static_cast<std::size_t>(argc - 1));
    mistake = kiln::cli::misspelt_option(kiln::cli::words_of(cli.app), given);
  }
  if (!mistake.empty()) {
    console.err << "error: " << kiln::shown(mistake) << " (see `kiln --help`)\n";
    return static_cast<int>(Exit::kUsage);
  }
  try {
    cli.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      return cli.app.exit(error, console.out, console.err);
    }
    console.err << "error: " << kiln::escape_lines(error.what()) << " (see `kiln --help`)\n";
    return static_cast<int>(Exit::kUsage);
  }
  const bool is_run = cli.app.got_subcommand("run");
  const int exit = is_run ? dispatch_run(cli, console) : static_cast<int>(dispatch(cli, console));
  if (!console.out.flush()) {
    console.err << "error: cannot write to the standard output\n";
    return static_cast<int>(Exit::kEnvironment);
  }
  return exit;
}
