#include "ir/cuda_text.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace kiln::ir {

std::string fill_in_cuda(std::string_view text, const CudaPlace& passed, const CudaPlace& number) {
  std::string out;
  std::size_t passed_so_far = 0;
  std::size_t numbers_so_far = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const char kind = i + 1 < text.size() ? text[++i] : '%';
    if (kind == '_') {
      out += passed(passed_so_far++);
    } else if (kind == '#') {
      out += number(numbers_so_far++);
    } else {
      out += kind;
    }
  }
  return out;
}

CudaPlaces places_in_cuda(std::string_view text) {
  CudaPlaces places;
  (void)fill_in_cuda(
      text,
      [&](std::size_t) {
        ++places.passed;
        return std::string();
      },
      [&](std::size_t) {
        ++places.numbers;
        return std::string();
      });
  return places;
}

std::string without_places(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

OpId first_cuda_alone(const Function& function) {
  OpId found;
  walk(function, function.body, [&](OpId id) {
    const auto* cuda = std::get_if<Cuda>(&function.ops[id].data);
    if (cuda != nullptr && !cuda->stand_in.valid() && !found.valid()) found = id;
  });
  return found;
}

namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool goes_on(char c) { return begins_word(c) || (c >= '0' && c <= '9'); }

}  // namespace

std::size_t end_of_aside(std::string_view text, std::size_t at) {
  const auto behind = [&](std::string_view end, std::size_t from) {
    const std::size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  if (text.substr(at).starts_with("//")) return behind("\n", at);
  if (text.substr(at).starts_with("/*")) return behind("*/", at + 2);
  if (text[at] != '"' && text[at] != '\'') return at;
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

namespace {

// Whether a word behind this one may be the use of a name: behind a type it would be declared.
bool goes_before_use(std::string_view word) {
  constexpr std::string_view kWords[] = {"return", "else", "case", "do",  "goto", "sizeof",
                                         "and",    "or",   "not",  "new", "if",   "while"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

// Goes through the words of a text.
struct WordReader {
  std::set<std::string, std::less<>> seen = {};
  std::vector<std::string> names = {};
  bool is_member = false;
  bool is_declared = false;  // the next word, by the one before it

  void word(std::string_view text) {
    if (!is_member && begins_word(text[0]) && seen.emplace(text).second && !is_declared) {
      names.emplace_back(text);
    }
    is_member = false;
    is_declared = !goes_before_use(text);
  }
  void sign(std::string_view text, std::size_t at) {
    is_declared = false;
    const std::string_view pair = at == 0 ? "" : text.substr(at - 1, 2);
    is_member = text[at] == '.' || pair == "->" || pair == "::";
  }
};

}  // namespace

std::vector<std::string> names_in_cpp(std::string_view text) {
  WordReader reader;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::size_t end = end_of_aside(text, at);
    if (end != at) {
      at = end;
    } else if (goes_on(text[at])) {
      while (at < text.size() && goes_on(text[at])) ++at;
      reader.word(text.substr(begin, at - begin));
    } else {
      if (std::isspace(static_cast<unsigned char>(text[at])) == 0) reader.sign(text, at);
      ++at;
    }
  }
  return std::move(reader.names);
}

namespace {

std::string_view without_blanks_before(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view without_blanks_behind(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  return text;
}

// Whether what stands around a name changes what has it.
bool sets(std::string_view before, std::string_view behind) {
  if (before.ends_with("++") || before.ends_with("--")) return true;
  if (before.ends_with("&") && !before.ends_with("&&")) return true;
  if (behind.starts_with("++") || behind.starts_with("--")) return true;
  if (behind.starts_with("<<=") || behind.starts_with(">>=")) return true;
  const bool compound = behind.size() > 1 && behind[1] == '=' &&
                        std::string_view("+-*/%&|^").find(behind[0]) != std::string_view::npos;
  return compound || (behind.starts_with("=") && !behind.starts_with("=="));
}

}  // namespace

bool may_set_in_cpp(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    at = end_of_aside(text, at);
    if (at != begin) continue;
    while (at < text.size() && goes_on(text[at])) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    if (at == begin) ++at;
    if (word == "asm" || word == "__asm__") return true;
    if (word == name && sets(without_blanks_before(text.substr(0, begin)),
                             without_blanks_behind(text.substr(at)))) {
      return true;
    }
  }
  return false;
}

}  // namespace kiln::ir
