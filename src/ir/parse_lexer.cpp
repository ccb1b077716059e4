#include "ir/parse_lexer.h"

#include <algorithm>

namespace kiln::ir {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

class Lexer {
 public:
  Lexer(std::string_view text, FileId file) : text_(text), file_(file) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (true) {
      const bool first_of_line = skip_blanks() || tokens.empty();
      tokens.push_back(next());
      tokens.back().first_of_line = first_of_line;
      if (tokens.back().kind == TokenKind::kEnd) return tokens;
    }
  }

 private:
  [[nodiscard]] char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  // Returns whether a line ended.
  bool skip_blanks() {
    bool ended = false;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '/' && at(position_ + 1) == '/') {
        position_ = std::min(text_.find('\n', position_), text_.size());
        if (position_ == text_.size()) break;
        ended = true;
      } else if (c == '\n') {
        ended = true;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        break;
      }
    }
    return ended;
  }

  Token next() {
    begin_ = position_;
    if (position_ == text_.size()) return token(TokenKind::kEnd, 0, 0);
    const char c = text_[position_];
    if (is_word_char(c)) return word(TokenKind::kWord);
    if ((c == '%' || c == '@') && is_word_char(at(position_ + 1))) {
      ++position_;
      return word(c == '%' ? TokenKind::kValue : TokenKind::kSymbol);
    }
    if (c == '"') return string();
    const std::string_view two = text_.substr(position_, 2);
    position_ += two == "==" || two == "<=" ? 2 : 1;
    const bool known = std::string_view("=:,<>[](){}+-*").find(c) != std::string_view::npos;
    return token(known ? TokenKind::kPunctuation : TokenKind::kBad, begin_, position_);
  }

  Token word(TokenKind kind) {
    const std::size_t from = position_;
    const bool number = is_digit(text_[position_]);
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      const bool exponent_sign = number && (c == '+' || c == '-') && position_ > from &&
                                 text_[position_ - 1] == 'e' && is_digit(at(position_ + 1));
      if (!is_word_char(c) && !exponent_sign) break;
    }
    return token(kind, from, position_);
  }

  Token string() {
    for (++position_; position_ < text_.size() && text_[position_] != '\n'; ++position_) {
      if (text_[position_] == '"') {
        ++position_;
        return token(TokenKind::kString, begin_ + 1, position_ - 1);
      }
      if (text_[position_] == '\\' && at(position_ + 1) != '\n') ++position_;
    }
    position_ = std::min(position_, text_.size());
    return token(TokenKind::kBad, begin_, position_);
  }

  [[nodiscard]] Token token(TokenKind kind, std::size_t from, std::size_t to) const {
    return {
        .kind = kind,
        .text = text_.substr(from, to - from),
        .span = {file_, static_cast<std::uint32_t>(begin_), static_cast<std::uint32_t>(position_)},
        .first_of_line = false};
  }

  std::string_view text_;
  FileId file_;
  std::size_t position_ = 0;
  std::size_t begin_ = 0;
};

}  // namespace

std::vector<Token> lex(std::string_view text, FileId file) { return Lexer(text, file).run(); }

}  // namespace kiln::ir
