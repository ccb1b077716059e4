#include "ir/cpp_declarations.h"

#include <algorithm>
#include <cctype>

#include "ir/cuda_text.h"

namespace kiln::ir {

namespace {

bool begins_identifier(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_of_identifier(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_white(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// A word or a sign of C++, and how many brackets are open around it.
struct Lexeme {
  std::string_view text;
  std::size_t begin = 0;
  std::size_t end = 0;
  int depth = 0;

  [[nodiscard]] bool is_word() const { return begins_identifier(text.front()); }
};

// Reads lexemes; comments, strings and preprocessor lines are passed over.
class LexemeReader {
 public:
  explicit LexemeReader(std::string_view text) : text_(text) {}

  // The next one; false at the end.
  bool next(Lexeme& out) {
    while (at_ < text_.size()) {
      if (is_white(text_[at_])) {
        if (text_[at_] == '\n') is_line_begin_ = true;
        ++at_;
        continue;
      }
      const std::size_t aside = end_of_aside(text_, at_);
      if (aside != at_) {
        at_ = aside;
      } else if (text_[at_] == '#' && is_line_begin_) {
        skip_line();
      } else {
        is_line_begin_ = false;
        read(out);
        return true;
      }
    }
    return false;
  }

 private:
  void skip_line() {
    while (at_ < text_.size() && (text_[at_] != '\n' || text_[at_ - 1] == '\\')) ++at_;
  }

  void read(Lexeme& out) {
    out.begin = at_;
    const char first = text_[at_++];
    if (is_of_identifier(first)) {
      while (at_ < text_.size() && is_of_identifier(text_[at_])) ++at_;
    }
    if (first == ')' || first == ']' || first == '}') --depth_;
    out.depth = depth_;
    if (first == '(' || first == '[' || first == '{') ++depth_;
    out.end = at_;
    out.text = text_.substr(out.begin, out.end - out.begin);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool is_line_begin_ = true;
};

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// What a declaration's lexemes say; its last is `;`, or the `}` of a function's body.
class DeclarationReader {
 public:
  explicit DeclarationReader(const std::vector<Lexeme>& lexemes) : lexemes_(lexemes) {}

  // The names of a type or a constant; none: it is something else.
  std::vector<std::string> names() {
    skip_template();
    while (at_ < lexemes_.size() && is_any_of(word(), {"static", "inline"})) ++at_;
    if (is_any_of(word(), {"struct", "class", "union"})) return type_name();
    if (word() == "enum") return enumerators();
    if (word() == "using") return lexemes_[at_ + 1].text == "namespace" ? none() : one(at_ + 1);
    if (word() == "typedef") return last_word();
    const bool is_constant = word() == "constexpr" || word() == "const";
    return is_constant ? constant_name() : none();
  }

 private:
  static std::vector<std::string> none() { return {}; }
  [[nodiscard]] std::string_view word() const {
    return at_ < lexemes_.size() ? lexemes_[at_].text : std::string_view();
  }
  [[nodiscard]] std::vector<std::string> one(std::size_t at) const {
    if (at >= lexemes_.size() || !lexemes_[at].is_word()) return {};
    return {std::string(lexemes_[at].text)};
  }

  void skip_template() {
    if (word() != "template") return;
    int open = 0;
    for (++at_; at_ < lexemes_.size(); ++at_) {
      if (word() == "<") ++open;
      if (word() == ">" && --open == 0) break;
    }
    ++at_;
  }

  // The first word at depth 0 that no `alignas(...)` is: with a body behind it.
  std::vector<std::string> type_name() {
    std::vector<std::string> name;
    for (std::size_t i = at_ + 1; i < lexemes_.size() && lexemes_[i].text != "{"; ++i) {
      const bool is_name =
          lexemes_[i].is_word() && !is_any_of(lexemes_[i].text, {"alignas", "class", "struct"});
      if (lexemes_[i].depth == 0 && is_name) {
        name = one(i);
        break;
      }
    }
    const bool has_body =
        std::ranges::any_of(lexemes_, [](const Lexeme& u) { return u.text == "{"; });
    return has_body ? name : none();
  }

  std::vector<std::string> enumerators() {
    std::vector<std::string> out = type_name();
    bool is_next = false;
    for (std::size_t i = at_; i < lexemes_.size(); ++i) {
      if (is_next && lexemes_[i].is_word()) out.emplace_back(lexemes_[i].text);
      is_next = lexemes_[i].text == "{" || (lexemes_[i].text == "," && lexemes_[i].depth == 1);
    }
    return out;
  }

  std::vector<std::string> last_word() {
    std::vector<std::string> out;
    for (std::size_t i = at_; i < lexemes_.size(); ++i) {
      if (lexemes_[i].depth == 0 && lexemes_[i].is_word()) out = one(i);
    }
    return out;
  }

  // `constexpr int kTable[] = {1, 2};`; a function has `(` where this has its value.
  std::vector<std::string> constant_name() {
    for (std::size_t i = at_ + 1; i < lexemes_.size(); ++i) {
      if (lexemes_[i].depth != 0) continue;
      if (lexemes_[i].text == "(") return none();
      if (is_any_of(lexemes_[i].text, {"=", "{", "["})) return one(i - 1);
    }
    return none();
  }

  const std::vector<Lexeme>& lexemes_;
  std::size_t at_ = 0;
};

// Whether a lexeme at depth 0 ends the declaration that the lexemes before it begin.
bool ends_declaration(const std::vector<Lexeme>& lexemes) {
  if (lexemes.back().text == ";") return true;
  if (lexemes.back().text != "}") return false;
  const auto goes_on_behind = [](const Lexeme& lexeme) {
    return lexeme.depth == 0 &&
           is_any_of(lexeme.text, {"struct", "class", "union", "enum", "typedef", "using", "="});
  };
  return std::ranges::none_of(lexemes, goes_on_behind);
}

}  // namespace

std::vector<std::string> words_in_cpp(std::string_view text) {
  std::vector<std::string> out;
  LexemeReader reader(text);
  for (Lexeme lexeme; reader.next(lexeme);) {
    if (lexeme.is_word()) out.emplace_back(lexeme.text);
  }
  return out;
}

std::vector<CppDeclaration> declarations_in_cpp(std::string_view text) {
  std::vector<CppDeclaration> out;
  LexemeReader reader(text);
  std::vector<Lexeme> lexemes;
  for (Lexeme lexeme; reader.next(lexeme);) {
    lexemes.push_back(lexeme);
    if (lexeme.depth != 0 || !ends_declaration(lexemes)) continue;
    const bool is_of_host = std::ranges::any_of(lexemes, [](const Lexeme& one) {
      return is_any_of(one.text, {"std", "choreo", "croq", "main", "extern"});
    });
    std::vector<std::string> names = DeclarationReader(lexemes).names();
    if (!is_of_host && !names.empty()) {
      out.push_back({std::move(names), lexemes.front().begin, lexemes.back().end});
    }
    lexemes.clear();
  }
  return out;
}

}  // namespace kiln::ir
