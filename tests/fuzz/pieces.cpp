#include "pieces.h"

#include <algorithm>

namespace kiln::fuzz {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::size_t past_gap(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (is_blank(text[at])) {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  return at;
}

std::size_t past_string(std::string_view text, std::size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

std::size_t past_number(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const bool sign = (text[at] == '+' || text[at] == '-') && at > 0 &&
                      (text[at - 1] == 'e' || text[at - 1] == 'E');
    if (!is_name_char(text[at]) && text[at] != '.' && !sign) break;
    ++at;
  }
  return at;
}

std::size_t past_sign(std::string_view text, std::size_t at) {
  constexpr std::string_view kPairs[] = {"++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&",
                                         "||", "??", "::", "+=", "-=", "*=", "/=", "%=", "=>",
                                         "#+", "#-", "#*", "#/", "#%", "##", "->"};
  if (text.substr(at, 3) == "<->") return at + 3;
  const std::string_view pair = text.substr(at, 2);
  const bool known = std::find(std::begin(kPairs), std::end(kPairs), pair) != std::end(kPairs);
  return at + (known ? 2 : 1);
}

Piece take(std::string_view text, std::size_t at) {
  const char c = text[at];
  Piece piece;
  std::size_t end = at;
  if (c == '"' || c == '\'') {
    piece.kind = PieceKind::kString;
    end = past_string(text, at);
  } else if (is_digit(c)) {
    piece.kind = PieceKind::kNumber;
    end = past_number(text, at);
  } else if (is_name_char(c)) {
    piece.kind = PieceKind::kName;
    while (end < text.size() && is_name_char(text[end])) ++end;
  } else {
    end = past_sign(text, at);
  }
  piece.text = text.substr(at, end - at);
  return piece;
}

char closing(const Piece& piece) {
  if (piece.kind != PieceKind::kSign || piece.text.size() != 1) return 0;
  const std::size_t which = std::string_view("([{").find(piece.text[0]);
  return which == std::string_view::npos ? 0 : ")]}"[which];
}

bool is_sign(const Piece& piece, char c) {
  return piece.kind == PieceKind::kSign && piece.text.size() == 1 && piece.text[0] == c;
}

std::size_t statement_end(const Pieces& pieces, std::size_t begin) {
  for (std::size_t at = begin; at + 1 < pieces.size(); ++at) {
    if (is_sign(pieces[at], ';')) return at + 1;
    if (is_sign(pieces[at], '{') && at + 2 < pieces.size()) {
      const std::size_t past = past_bracket(pieces, at);
      const bool goes_on = is_sign(pieces[past], ';') || is_sign(pieces[past], ',') ||
                           pieces[past].text == "in" || pieces[past].text == "by";
      if (!goes_on) return past;
      at = past - 1;
    } else if (closing(pieces[at]) != 0) {
      at = past_bracket(pieces, at) - 1;
    } else if (is_sign(pieces[at], '}')) {
      return begin;
    }
  }
  return begin;
}

}  // namespace

Pieces cut(std::string_view text) {
  Pieces pieces;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = past_gap(text, at);
    const std::string gap(text.substr(at, begin - at));
    if (begin >= text.size()) {
      pieces.push_back({PieceKind::kEnd, gap, ""});
      return pieces;
    }
    pieces.push_back(take(text, begin));
    pieces.back().gap = gap;
    at = begin + pieces.back().text.size();
  }
}

std::string join(const Pieces& pieces) {
  std::string out;
  for (const Piece& piece : pieces) {
    out += piece.gap;
    out += piece.text;
  }
  return out;
}

void erase(Pieces& pieces, std::size_t begin, std::size_t end) {
  end = std::min(end, pieces.size() - 1);
  if (begin >= end) return;
  if (pieces[begin].gap.find('\n') != std::string::npos &&
      pieces[end].gap.find('\n') == std::string::npos) {
    pieces[end].gap = "\n" + pieces[end].gap;
  }
  pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(begin),
               pieces.begin() + static_cast<std::ptrdiff_t>(end));
}

std::size_t past_bracket(const Pieces& pieces, std::size_t at) {
  std::string open;
  for (; at + 1 < pieces.size(); ++at) {
    if (const char close = closing(pieces[at]); close != 0)
      open += close;
    else if (!open.empty() && is_sign(pieces[at], open.back()))
      open.pop_back();
    if (open.empty()) return at + 1;
  }
  return pieces.size() - 1;
}

std::vector<Range> statements_of(const Pieces& pieces) {
  std::vector<Range> out;
  for (std::size_t at = 0; at + 1 < pieces.size(); ++at) {
    const bool starts = at == 0 || is_sign(pieces[at - 1], '{') || is_sign(pieces[at - 1], '}') ||
                        is_sign(pieces[at - 1], ';');
    if (!starts || is_sign(pieces[at], '}')) continue;
    const std::size_t end = statement_end(pieces, at);
    if (end > at) out.push_back({at, end});
  }
  return out;
}

}  // namespace kiln::fuzz
