// The words that a command line may have, as data: what completion, the man page and help for a
// misspelt word are made from. They are those of the parser's own table.
//
//   words_of(app).commands[0].options[0]     {"--arch"}, "sm_80, ...", value "TEXT", choices sm_80...
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln::cli {

struct OptionWords {
  std::vector<std::string> names = {};  // "-o", "--output"; of a positional its name alone, "FILE"
  std::string help = {};
  std::string value = {};                 // what follows it, "NAME=VALUE"; empty: nothing does
  std::vector<std::string> choices = {};  // of the value, where they are few
  bool repeated = false;
};

struct CommandWords {
  std::string name = {};
  std::string help = {};
  std::string footer = {};  // examples
  std::vector<OptionWords> options = {};
  std::vector<OptionWords> positionals = {};
  std::vector<CommandWords> commands = {};  // below it
};

[[nodiscard]] CommandWords words_of(const CLI::App& app);

// The first word that looks like an option, is none of its command, and looks like one of it:
// "`--arhc` is no option of kiln check, did you mean `--arch`?". "" when there is none. `given` is
// without the program's name.
[[nodiscard]] std::string misspelt_option(const CommandWords& kiln,
                                          std::span<const char* const> given);

}  // namespace kiln::cli
