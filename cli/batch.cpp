#include "batch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace {

constexpr int kUsage = static_cast<int>(kiln::io::Exit::kUsage);
constexpr std::size_t kWordsMax = 1 << 16;

// Where questions come from and answers go. A command finds its own standard streams empty, or
// closed.
struct Pipes {
  std::FILE* questions;
  std::FILE* answers;
};

std::optional<Pipes> take_pipes() {
  const int in = dup(STDIN_FILENO);
  const int out = dup(STDOUT_FILENO);
  const int nothing = open("/dev/null", O_RDWR);
  if (in < 0 || out < 0 || nothing < 0) return std::nullopt;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  close(nothing);
  return Pipes{fdopen(in, "rb"), fdopen(out, "wb")};
}

bool read_word(std::FILE* from, std::string& word) {
  word.clear();
  for (int c = std::getc(from); c != EOF; c = std::getc(from)) {
    if (c == 0) return true;
    word += static_cast<char>(c);
  }
  return false;
}

// The folder and the command's words; none where the input is no question.
std::optional<std::vector<std::string>> read_question(std::FILE* from, std::size_t count) {
  std::vector<std::string> words(count);
  for (std::string& word : words) {
    if (!read_word(from, word)) return std::nullopt;
  }
  return words;
}

bool answer(std::FILE* to, const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  kiln::io::Console console{.out = out, .err = err};
  std::vector<const char*> argv = {"kiln"};
  for (std::size_t i = 1; i < words.size(); ++i) argv.push_back(words[i].c_str());
  const int exit = run_command(static_cast<int>(argv.size()), argv.data(), console);
  const std::string texts[] = {std::move(out).str(), std::move(err).str()};
  std::fprintf(to, "%d %zu %zu\n", exit, texts[0].size(), texts[1].size());
  for (const std::string& text : texts) std::fwrite(text.data(), 1, text.size(), to);
  return std::fflush(to) == 0;
}

}  // namespace

int run_batch() {
  const std::optional<Pipes> pipes = take_pipes();
  if (!pipes) return static_cast<int>(kiln::io::Exit::kEnvironment);
  std::size_t count = 0;
  while (std::fscanf(pipes->questions, "%zu", &count) == 1) {
    if (std::getc(pipes->questions) != '\n' || count < 2 || count > kWordsMax) return kUsage;
    const auto words = read_question(pipes->questions, count);
    if (!words || chdir(words->front().c_str()) != 0) return kUsage;
    if (!answer(pipes->answers, *words)) return static_cast<int>(kiln::io::Exit::kEnvironment);
  }
  return std::feof(pipes->questions) != 0 ? 0 : kUsage;
}
