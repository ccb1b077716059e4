// What shells and `man` read about kiln, made from the words of its command line.
#pragma once

#include <string>

#include "words.h"

namespace kiln::cli {

// Scripts that complete words.
[[nodiscard]] std::string bash_completion(const CommandWords& kiln);
[[nodiscard]] std::string zsh_completion(const CommandWords& kiln);
[[nodiscard]] std::string fish_completion(const CommandWords& kiln);

// The page kiln(1).
[[nodiscard]] std::string man_page(const CommandWords& kiln);

}  // namespace kiln::cli
