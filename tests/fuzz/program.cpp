#include "program.h"

#include <algorithm>
#include <optional>

#include "support/file.h"
#include "support/format.h"

namespace kiln::fuzz {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "// FUZZ: ";
constexpr std::string_view kIncludedHeader = "// FUZZ-FILE: ";
constexpr std::string_view kFolders[] = {"examples", "kernels", "src", "tests"};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.emplace_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool is_comment(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line.substr(first, 2) == "//";
}

// The words of a command line, quotes taken off.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;
  char quote = 0;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      any = true;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && blank) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

// The options of the first `kiln` command in `text`, up to the next command.
void take_options(std::string_view text, Program& program) {
  constexpr std::string_view kCommand = "kiln ";
  const std::size_t begin = text.find(kCommand);
  if (begin == std::string_view::npos) return;
  const std::size_t end = text.find(kCommand, begin + 1);
  const std::vector<std::string> words = words_of(text.substr(begin, end - begin));
  for (auto at = words.begin(); at != words.end() && at + 1 != words.end(); ++at) {
    if (*at == "--arch")
      program.arch = *++at;
    else if (*at == "-D")
      program.defines.push_back(*++at);
    else if (*at == "--shape")
      program.shapes += (program.shapes.empty() ? "" : ",") + *++at;
  }
}

// `// KERNEL: sm_90a; M=64,N=64; ...`
void take_kernel_line(std::string_view line, Program& program) {
  const std::size_t colon = line.find(": ");
  const std::size_t first = line.find(';', colon);
  if (colon == std::string_view::npos || first == std::string_view::npos) return;
  program.arch = line.substr(colon + 2, first - colon - 2);
  const std::size_t second = std::min(line.find(';', first + 1), line.size());
  std::string shapes(line.substr(first + 1, second - first - 1));
  std::erase_if(shapes, [](char c) { return c == ' ' || c == '\n'; });
  if (shapes.find('=') != std::string::npos) program.shapes = shapes;
}

// `#include "parts/x.co"`: the file's name, when the line is one.
std::optional<std::string> included_name(std::string_view line) {
  const std::size_t word = line.find("#include \"");
  if (word == std::string_view::npos) return std::nullopt;
  const std::size_t begin = word + 10;
  const std::size_t end = line.find('"', begin);
  if (end == std::string_view::npos) return std::nullopt;
  std::string name(line.substr(begin, end - begin));
  if (name.empty() || name.find("..") != std::string::npos || name[0] == '/') return std::nullopt;
  return name;
}

// What a seed is read from, line by line: the program, and files that follow it in the same text.
void take_lines(std::string_view text, const fs::path& folder, Program& program) {
  std::string comments;
  std::string* into = &program.text;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("// --- ")) {
      std::string name = line.substr(7);
      while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
      program.included.emplace_back(name, "");
      into = &program.included.back().second;
    } else if (line.starts_with("// KERNEL: ")) {
      take_kernel_line(line, program);
    } else if (is_comment(line)) {
      comments += line.substr(line.find("//") + 2);
    } else {
      *into += line;
    }
    if (const auto name = included_name(line)) {
      auto found = read_file((folder / *name).string());
      if (found) program.included.emplace_back(*name, std::move(*found));
    }
  }
  take_options(comments, program);
}

bool is_seed(const fs::path& path) {
  const std::string extension = path.extension().string();
  return (extension == ".co" || extension == ".kir") && !path.filename().string().starts_with('_');
}

std::vector<fs::path> seed_paths(const fs::path& root) {
  std::vector<fs::path> paths;
  for (const std::string_view folder : kFolders) {
    std::error_code ignored;
    for (fs::recursive_directory_iterator at(root / folder, ignored), end; at != end;
         at.increment(ignored)) {
      if (at->path().filename() == "fuzz")
        at.disable_recursion_pending();
      else if (at->is_regular_file() && is_seed(at->path()))
        paths.push_back(at->path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<Program> read_seeds(const fs::path& root) {
  constexpr std::size_t kBytesMax = 40'000;
  std::vector<Program> seeds;
  for (const fs::path& path : seed_paths(root)) {
    const auto text = read_file(path.string());
    if (!text || text->size() > kBytesMax) continue;
    Program program{.name = path.lexically_relative(root).string(), .text = {}};
    take_lines(*text, path.parent_path(), program);
    if (!program.text.empty()) seeds.push_back(std::move(program));
  }
  return seeds;
}

std::vector<Program> read_corpus(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_seed(entry.path())) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Program> programs;
  for (const fs::path& path : paths) {
    const auto text = read_file(path.string());
    if (text) programs.push_back(deserialised(path.filename().string(), *text));
  }
  return programs;
}

std::string serialised(const Program& program) {
  std::string out = format("{}--arch {}", kHeader, program.arch);
  for (const std::string& define : program.defines) out += format(" -D '{}'", define);
  if (!program.shapes.empty()) out += format(" --shape '{}'", program.shapes);
  out += "\n" + program.text;
  for (const auto& [name, text] : program.included) {
    out += format("{}{}{}\n{}", out.ends_with('\n') ? "" : "\n", kIncludedHeader, name, text);
  }
  return out;
}

Program deserialised(std::string name, std::string_view text) {
  Program program{.name = std::move(name), .text = {}};
  std::string* into = &program.text;
  bool first = true;
  for (const std::string& line : lines_of(text)) {
    if (first && line.starts_with(kHeader)) {
      take_options("kiln " + line.substr(kHeader.size()), program);
    } else if (line.starts_with(kIncludedHeader)) {
      const std::size_t begin = kIncludedHeader.size();
      program.included.emplace_back(line.substr(begin, line.find('\n') - begin), "");
      into = &program.included.back().second;
    } else {
      *into += line;
    }
    first = false;
  }
  return program;
}

}  // namespace kiln::fuzz
