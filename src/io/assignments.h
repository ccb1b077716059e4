// `NAME=VALUE` lists of the command line.
//
//   --shape M=512,N=512,K=256     {"M", "512"}, {"N", "512"}, {"K", "256"}
//   --in lhs=a,b.npy              {"lhs", "a,b.npy"}: a path keeps its commas
//   -D FAST -D TILE=32            {"FAST", "1"}, {"TILE", "32"}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostics.h"
#include "syntax/parser.h"

namespace kiln::io {

struct Assignment {
  std::string name;
  std::string value;
};

enum class ListForm : std::uint8_t { kSingle, kCommaSeparated };

// `option` is its spelling, for messages. A name must be an identifier and appear once.
[[nodiscard]] Checked<std::vector<Assignment>> parse_assignments(
    const std::string& option, const std::vector<std::string>& texts, ListForm form,
    Diagnostics& diags);

[[nodiscard]] Checked<std::vector<Definition>> parse_definitions(
    const std::vector<std::string>& texts, Diagnostics& diags);

[[nodiscard]] bool is_identifier(std::string_view text);

// Help for an unknown name: the legal one that looks like it, else all after `lead` ("it has `M`,
// `N`"). "" when there is none.
[[nodiscard]] std::string name_help(const std::string& seen, const std::vector<std::string>& legal,
                                    std::string_view lead);

}  // namespace kiln::io
