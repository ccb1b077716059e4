// What is tried with one program, in this process: the commands of the driver, one after the other.
//
//   Report report = try_program(program, options, [](Stage stage) { ... });
//   report.accepted                       `check` had nothing against it
//   report.failure                        "" or what no input may do, as one line
//   report.hashes[Stage::kEmit]           of everything that the stage wrote
//
// A program that stops the process, never ends or takes all memory is for the caller to see
// (worker.h); what is told before each stage says which one it was.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "program.h"

namespace kiln::fuzz {

enum class Stage : std::uint8_t { kCheck, kIr, kEmit, kExplain, kRun, kCompile };
inline constexpr std::size_t kStageCount = 6;
inline constexpr std::string_view kStageNames[kStageCount] = {"check",   "ir",  "emit",
                                                              "explain", "run", "compile"};

struct TryOptions {
  std::array<bool, kStageCount> stages = {true, true, true, true, true, false};
  std::uint64_t draw = 0;  // chooses shapes and fills
};

struct Report {
  bool accepted = false;
  bool ran = false;
  std::string failure = {};
  Stage failed = Stage::kCheck;
  std::array<std::uint64_t, kStageCount> hashes = {};
};

// Called before each stage.
using OnStage = std::function<void(Stage)>;

// The program's file is written into the current folder.
[[nodiscard]] Report try_program(const Program& program, const TryOptions& options,
                                 const OnStage& on_stage);

// Why the stage `compile` can not be had in this program; empty when it can.
[[nodiscard]] std::string no_compiler();

// Whether the stage runs the program with no limit on its steps that could be set: when it never
// ends, that is then its author's mistake, not ours.
[[nodiscard]] bool is_unlimited(Stage stage);

}  // namespace kiln::fuzz
