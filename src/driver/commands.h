// The commands of `kiln`, without the command-line parser: options in, exit code out.
//
//   const Exit exit = check({.program = {.file = "matmul.co", .arch = "sm_80"}}, console);
#pragma once

#include "driver/options.h"
#include "io/console.h"

namespace kiln::driver {

// Every mistake of the file. --json: one array on `out`, nothing on `err`.
[[nodiscard]] io::Exit check(const CheckOptions& options, io::Console& console);

// Runs one kernel and compares its outputs with the reference (run.cpp).
[[nodiscard]] io::Exit run(const RunOptions& options, io::Console& console);

// A program with its host code as a program of the machine (build_command.cpp).
[[nodiscard]] io::Exit build(const BuildOptions& options, io::Console& console);

// Whether the file has `main`, and nothing in the options asks for one of its kernels.
[[nodiscard]] bool is_whole_program(const RunOptions& options);

// Builds it and runs it; the exit code is the program's.
[[nodiscard]] int run_whole_program(const RunOptions& options, io::Console& console);

// The CUDA text.
[[nodiscard]] io::Exit emit(const EmitCommandOptions& options, io::Console& console);

// A header and a source with functions that launch its kernels (header_command.cpp).
[[nodiscard]] io::Exit emit_header(const EmitCommandOptions& options, io::Console& console);

// The tile IR after a pass; "all": after each; "sema": before the first.
[[nodiscard]] io::Exit ir(const IrOptions& options, io::Console& console);

// The table of matrix instructions.
[[nodiscard]] io::Exit atoms(const AtomsOptions& options, io::Console& console);

// Who owns which element, and what lies in which bank, as a picture (map_command.cpp).
[[nodiscard]] io::Exit map(const MapOptions& options, io::Console& console);

// A matrix for the sparse instructions: pruned, packed, with metadata (prune_command.cpp).
[[nodiscard]] io::Exit prune(const PruneOptions& options, io::Console& console);

// What a kernel costs on a GPU: instructions, memory, occupancy, times (explain_command.cpp).
[[nodiscard]] io::Exit explain(const ExplainOptions& options, io::Console& console);

// Measures a kernel, beside the vendor's library where that does the same (bench_command.cpp).
[[nodiscard]] io::Exit bench(const measure::BenchOptions& options, io::Console& console);

// Searches for the fastest defines, of a file or of the library's kernels (tune_command.cpp).
[[nodiscard]] io::Exit tune(const measure::TuneOptions& options, io::Console& console);

// The compile cache: kernels into it, what it is, nothing in it (cache_command.cpp).
[[nodiscard]] io::Exit cache_warm(const CacheOptions& options, io::Console& console);
[[nodiscard]] io::Exit cache_info(io::Console& console);
[[nodiscard]] io::Exit cache_clear(io::Console& console);

}  // namespace kiln::driver
