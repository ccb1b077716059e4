// How much of a run's outputs is compared (`--check`): where all would take long, a sample of the
// program's blocks and of the formula's rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/arguments.h"
#include "ir/module.h"
#include "reference/interpreter.h"

namespace kiln::io {

enum class Check : std::uint8_t { kBySize, kFull, kSample, kNone };
[[nodiscard]] std::optional<Check> check_from_name(const std::string& name);
[[nodiscard]] std::string check_names();

// Which blocks of `all` are interpreted so that it takes a few seconds, when one takes `work`
// (reference::Outcome::work). Empty: all of them.
[[nodiscard]] std::vector<std::int64_t> sample_of_blocks(Check check, std::int64_t all,
                                                         std::uint64_t work, std::uint64_t seed);

// These blocks of `all`, the first and the last, and about three times as many others. Empty: all of them.
[[nodiscard]] std::vector<std::int64_t> more_blocks(const std::vector<std::int64_t>& blocks,
                                                    std::int64_t all, std::uint64_t seed);

// A few runs of rows of an output, of those that have elements the reference knows.
[[nodiscard]] std::vector<reference::ElementRun> sample_of_rows(const reference::Output& output);

// The function's outputs, of which nothing is known.
[[nodiscard]] std::vector<reference::Output> unknown_outputs(const ir::Function& function,
                                                             const ir::Arguments& arguments);

}  // namespace kiln::io
