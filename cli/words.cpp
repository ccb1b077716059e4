#include "words.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "backends/backend.h"
#include "diag/diagnostics.h"
#include "measure/bench_suites.h"
#include "support/format.h"
#include "target/arch.h"

namespace kiln::cli {

namespace {

using Words = std::vector<std::string>;

Words archs() {
  Words out;
  for (const target::Arch& arch : target::all_archs()) out.emplace_back(arch.name);
  return out;
}

Words backends_of_run() {
  Words out{"auto"};
  for (const backends::Backend* row : backends::backends()) out.emplace_back(row->name);
  return out;
}

Words suites() {
  const auto names = measure::suite_names();
  return {names.begin(), names.end()};
}

Words tuned_suites() {
  const auto names = measure::tuned_suite_names();
  return {names.begin(), names.end()};
}

Words shells() { return {"bash", "zsh", "fish", "man"}; }

// The values of an option that takes one of a few words.
struct Choice {
  std::string_view command;  // empty: any
  std::string_view option;
  Words (*words)();
};
constexpr Choice kChoices[] = {
    {"", "--arch", archs},
    {"run", "--on", backends_of_run},
    {"build", "--on",
     [] {
       return Words{"auto", "sim"};
     }},
    {"run", "--fill",
     [] {
       return Words{"normal", "integers", "ones", "adversarial"};
     }},
    {"run", "--check",
     [] {
       return Words{"full", "sample", "none"};
     }},
    {"map", "--operand",
     [] {
       return Words{"A", "B", "C"};
     }},
    {"map", "--format",
     [] {
       return Words{"text", "svg", "html", "latex", "json"};
     }},
    {"prune", "--form",
     [] {
       return Words{"u8", "u32"};
     }},
    {"bench", "SUITE|FILE", suites},
    {"tune", "SUITE|FILE", tuned_suites},
    {"completion", "FOR", shells},
};

Words choices_of(const std::string& command, const Words& names) {
  for (const Choice& each : kChoices) {
    const bool here = each.command.empty() || each.command == command;
    if (here && std::ranges::find(names, each.option) != names.end()) return each.words();
  }
  return {};
}

OptionWords option_words(const std::string& command, const CLI::Option& option) {
  OptionWords out{.help = option.get_description()};
  if (option.get_positional()) {
    out.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    out.value = option.get_type_name();
    // What its range adds.
    if (const auto end = out.value.find(':'); end != std::string::npos) out.value.erase(end);
    if (out.value.empty()) out.value = "TEXT";
  }
  out.choices = choices_of(command, out.names);
  const auto all = CLI::MultiOptionPolicy::TakeAll;
  out.repeated = option.get_multi_option_policy() == all || option.get_items_expected_max() > 1;
  return out;
}

const CommandWords* find(const std::vector<CommandWords>& commands, std::string_view name) {
  const auto found = std::ranges::find(commands, name, &CommandWords::name);
  return found == commands.end() ? nullptr : &*found;
}

const OptionWords* find_option(const CommandWords& command, std::string_view name) {
  for (const OptionWords& option : command.options) {
    if (std::ranges::find(option.names, name) != option.names.end()) return &option;
  }
  return nullptr;
}

std::vector<std::string> long_names(const CommandWords& command) {
  std::vector<std::string> out;
  for (const OptionWords& option : command.options) {
    for (const std::string& name : option.names) {
      if (name.starts_with("--")) out.push_back(name);
    }
  }
  return out;
}

}  // namespace

CommandWords words_of(const CLI::App& app) {
  CommandWords out{
      .name = app.get_name(), .help = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    auto& where = option->get_positional() ? out.positionals : out.options;
    where.push_back(option_words(out.name, *option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    out.commands.push_back(words_of(*command));
  }
  return out;
}

std::string misspelt_option(const CommandWords& kiln, std::span<const char* const> given) {
  const CommandWords* command = &kiln;
  std::string path = kiln.name;
  bool is_value = false;
  for (const std::string_view word : given) {
    if (std::exchange(is_value, false)) continue;
    if (word == "--") break;
    if (const CommandWords* next = find(command->commands, word); next != nullptr) {
      command = next;
      path += " " + next->name;
      continue;
    }
    if (!word.starts_with('-')) continue;
    const std::string name(word.substr(0, word.find('=')));
    if (const OptionWords* option = find_option(*command, name); option != nullptr) {
      is_value = !option->value.empty() && name.size() == word.size();
      continue;
    }
    if (!name.starts_with("--")) continue;
    const std::string guess = did_you_mean(name, long_names(*command));
    if (!guess.empty()) return format("`{}` is no option of {}, {}", name, path, guess);
  }
  return "";
}

}  // namespace kiln::cli
