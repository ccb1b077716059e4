#include "completion.h"

#include <algorithm>

#include "support/format.h"

namespace kiln::cli {

namespace {

std::string joined(const std::vector<std::string>& words) {
  return join(words, " ", [](const std::string& word) { return word; });
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// In single quotes, for bash and zsh.
std::string sh_quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> out;
  for (const CommandWords& each : commands) out.push_back(each.name);
  return out;
}

std::vector<std::string> names_of(const std::vector<OptionWords>& options) {
  std::vector<std::string> out;
  for (const OptionWords& each : options) {
    out.insert(out.end(), each.names.begin(), each.names.end());
  }
  return out;
}

// Whether a word without an option may be a file.
bool takes_file(const OptionWords& positional) {
  return positional.choices.empty() || positional.names.front().find("FILE") != std::string::npos;
}

// --- bash

// The cases of one command and of those below it; `path` is "/cache/warm".
struct BashCases {
  std::string commands;  // "$path/$word" => path
  std::string values;    // "$path $previous" => words
  std::string words;     // path => options, and what stands without one

  void add(const CommandWords& command, const std::string& path);
};

void BashCases::add(const CommandWords& command, const std::string& path) {
  for (const OptionWords& option : command.options) {
    if (option.value.empty()) continue;
    std::string patterns;
    for (const std::string& name : option.names) {
      patterns += format("{}\"{} {}\"", patterns.empty() ? "" : " | ", path, name);
    }
    values += format("    {}) values={} files={} ;;\n", patterns, sh_quoted(joined(option.choices)),
                     option.choices.empty() ? "yes" : "");
  }
  std::vector<std::string> words_here = names_of(command.commands);
  for (const OptionWords& positional : command.positionals) {
    words_here.insert(words_here.end(), positional.choices.begin(), positional.choices.end());
  }
  const bool files = std::ranges::any_of(command.positionals, takes_file);
  words += format("    \"{}\") options={} words={} files={} ;;\n", path,
                  sh_quoted(joined(names_of(command.options))), sh_quoted(joined(words_here)),
                  files ? "yes" : "");
  for (const CommandWords& each : command.commands) {
    const std::string below = path + "/" + each.name;
    commands += format("      \"{}\") path=$path/$word ;;\n", below);
    add(each, below);
  }
}

// --- zsh

// Of a description in brackets, in which some signs mean something.
std::string zsh_text(std::string text) {
  for (const std::string_view sign : {"\\", "[", "]", ":"}) {
    text = replaced(std::move(text), sign, "\\" + std::string(sign));
  }
  return text;
}

std::string zsh_values(const OptionWords& option) {
  return option.choices.empty() ? "_files" : "(" + joined(option.choices) + ")";
}

std::string zsh_option(const OptionWords& option) {
  std::string out;
  for (const std::string& name : option.names) {
    std::string spec = format("{}{}[{}]", option.repeated ? "*" : "", name, zsh_text(option.help));
    if (!option.value.empty()) spec += ":" + zsh_text(option.value) + ":" + zsh_values(option);
    out += " \\\n    " + sh_quoted(spec);
  }
  return out;
}

// A function for the command, then those of the commands below it.
std::string zsh_function(const CommandWords& command, const std::string& name) {
  std::string out = format("{}() {{\n  local context state state_descr line\n", name);
  out += "  typeset -A opt_args\n  _arguments -C";
  for (const OptionWords& option : command.options) out += zsh_option(option);
  if (command.commands.empty()) {
    for (const OptionWords& positional : command.positionals) {
      std::string values = zsh_values(positional);
      if (!positional.choices.empty() && takes_file(positional)) {
        values = "{_files; compadd -- " + joined(positional.choices) + "}";
      }
      out += " \\\n    " + sh_quoted(format("*:{}:{}", zsh_text(positional.names[0]), values));
      break;  // files stand for the others too
    }
    return out + "\n}\n\n";
  }
  out += " \\\n    '1:command:->command' '*::argument:->argument'\n";
  out += "  local -a commands=(\n";
  for (const CommandWords& each : command.commands) {
    out += format("    {}\n", sh_quoted(each.name + ":" + zsh_text(each.help)));
  }
  out += "  )\n  case $state in\n    command) _describe command commands ;;\n    argument)\n";
  out += "      case $words[1] in\n";
  std::string below;
  for (const CommandWords& each : command.commands) {
    out += format("        {}) {}_{} ;;\n", each.name, name, each.name);
    below += zsh_function(each, format("{}_{}", name, each.name));
  }
  return out + "      esac ;;\n  esac\n}\n\n" + below;
}

// --- fish

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_option(const OptionWords& option, const std::string& condition) {
  std::string out = "complete -c kiln -n " + fish_quoted(condition);
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.choices.empty()) {
    out += " -x -a " + fish_quoted(joined(option.choices));
  } else if (!option.value.empty()) {
    out += " -r";
  }
  return out + " -d " + fish_quoted(option.help) + "\n";
}

std::string fish_lines(const CommandWords& command, const std::string& seen) {
  std::string here = seen.empty() ? "true" : "__fish_seen_subcommand_from " + seen;
  std::string out;
  for (const OptionWords& option : command.options) {
    out += fish_option(option, seen.empty() ? "__fish_use_subcommand" : here);
  }
  for (const OptionWords& positional : command.positionals) {
    if (positional.choices.empty()) continue;
    out += format("complete -c kiln {}-n {} -a {}\n", takes_file(positional) ? "" : "-f ",
                  fish_quoted(here), fish_quoted(joined(positional.choices)));
  }
  if (command.commands.empty()) return out;
  const std::string names = joined(names_of(command.commands));
  here = seen.empty() ? "__fish_use_subcommand"
                      : format("{}; and not __fish_seen_subcommand_from {}", here, names);
  for (const CommandWords& each : command.commands) {
    out += format("complete -c kiln -f -n {} -a {} -d {}\n", fish_quoted(here), each.name,
                  fish_quoted(each.help));
  }
  for (const CommandWords& each : command.commands) out += fish_lines(each, each.name);
  return out;
}

// --- man

// A hyphen of a command line is one; a line does not begin with a dot or a quote.
std::string roff(std::string text) {
  text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
  text = replaced(std::move(text), "\n.", "\n\\&.");
  text = replaced(std::move(text), "\n'", "\n\\&'");
  return text.starts_with('.') || text.starts_with('\'') ? "\\&" + text : text;
}

std::string roff_option(const OptionWords& option) {
  std::string out = ".TP\n";
  for (const std::string& name : option.names) {
    out += format("{}\\fB{}\\fR", name == option.names.front() ? "" : ", ", roff(name));
  }
  const bool positional = !option.names.front().starts_with('-');
  if (!option.value.empty() && !positional) out += format(" \\fI{}\\fR", roff(option.value));
  return out + "\n" + roff(option.help) + "\n";
}

std::string roff_command(const CommandWords& command, const std::string& path) {
  std::string usage = path;
  for (const OptionWords& positional : command.positionals) {
    usage += " " + positional.names.front();
  }
  std::string out = format(".SS \"{}\"\n{}.\n", roff(usage), roff(command.help));
  for (const OptionWords& each : command.positionals) out += roff_option(each);
  for (const OptionWords& each : command.options) out += roff_option(each);
  if (command.footer.starts_with("example")) out += ".PP\n.nf\n" + roff(command.footer) + "\n.fi\n";
  for (const CommandWords& each : command.commands) {
    out += roff_command(each, path + " " + each.name);
  }
  return out;
}

}  // namespace

std::string bash_completion(const CommandWords& kiln) {
  BashCases cases;
  cases.add(kiln, "");
  return R"(# Completion of kiln for bash, made by `kiln completion bash`.
_kiln() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local path= word= options= words= values= files= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    case $path/$word in
)" + cases.commands +
         R"(    esac
  done
  case "$path $previous" in
)" + cases.values +
         R"(    *) values=- ;;
  esac
  if [[ $values != - ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    [[ -z $files ]] || { compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); }
    return
  fi
  case $path in
)" + cases.words +
         R"(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ -n $files ]]; then
    compopt -o filenames
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _kiln kiln
)";
}

std::string zsh_completion(const CommandWords& kiln) {
  return "#compdef kiln\n# Completion of kiln for zsh, made by `kiln completion zsh`.\n\n" +
         zsh_function(kiln, "_kiln") + "_kiln \"$@\"\n";
}

std::string fish_completion(const CommandWords& kiln) {
  return "# Completion of kiln for fish, made by `kiln completion fish`.\n" + fish_lines(kiln, "");
}

std::string man_page(const CommandWords& kiln) {
  const std::string about = kiln.help.substr(kiln.help.find(": ") + 2);
  std::string out = format(".TH KILN 1 \"\" \"kiln {}\" \"User Commands\"\n", KILN_VERSION);
  out += format(".SH NAME\nkiln \\- {}\n", roff(about));
  out += ".SH SYNOPSIS\n.B kiln\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH OPTIONS\n";
  for (const OptionWords& each : kiln.options) out += roff_option(each);
  out += ".SH COMMANDS\n";
  for (const CommandWords& each : kiln.commands) out += roff_command(each, "kiln " + each.name);
  out += R"(.SH EXIT STATUS
.TP
.B 0
Fine.
.TP
.B 1
The program is wrong, the simulator found something, or a result is outside its bound.
.TP
.B 2
The command line is wrong.
.TP
.B 3
The environment: an unreadable file, no GPU, no NVRTC, not enough memory.
.SH ENVIRONMENT
.TP
.B NO_COLOR
No colours, also on a terminal.
.TP
.B CXX
The host compiler of
.B kiln build
and of whole programs.
)";
  return out;
}

}  // namespace kiln::cli
