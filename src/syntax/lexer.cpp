#include "syntax/lexer.h"

#include <algorithm>
#include <array>
#include <limits>

namespace kiln::syntax {

namespace {

struct Sign {
  TokenKind kind;
  std::string_view text;
};
constexpr Sign kSigns[] = {
#define KILN_PUNCTUATION(Name, text) {TokenKind::k##Name, text},
#include "syntax/token.def"
};

// Whether a character begins any sign: rubbish is passed over quickly.
constexpr auto kBeginsSign = [] {
  std::array<bool, 256> begins{};
  for (const Sign& sign : kSigns) begins[static_cast<unsigned char>(sign.text[0])] = true;
  return begins;
}();

bool begins_sign(char c) { return kBeginsSign[static_cast<unsigned char>(c)]; }

// The longest sign that `text` begins with; empty text when there is none.
Sign longest_sign(std::string_view text) {
  Sign best{TokenKind::kUnknown, {}};
  if (!begins_sign(text[0])) return best;
  for (const Sign& sign : kSigns) {
    if (sign.text[0] != text[0] || sign.text.size() <= best.text.size()) continue;
    if (text.starts_with(sign.text)) best = sign;
  }
  return best;
}

char at_or_nul(std::string_view text, std::size_t at) { return at < text.size() ? text[at] : '\0'; }

// What the digits of an integer count in, and how long the prefix is that says so.
struct Radix {
  unsigned base = 10;
  std::size_t prefix = 0;
};
Radix radix_of(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return {};
  if (text[1] == 'x' || text[1] == 'X') return {16, 2};
  return text[1] == 'b' || text[1] == 'B' ? Radix{2, 2} : Radix{};
}

// What a character counts as a digit; at least the base where it is none.
unsigned digit_value(char c) {
  constexpr unsigned kLetters = 10;
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + kLetters;
  return c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + kLetters : UINT32_MAX;
}

// The end of the digits from `at` on, between which single `'` may stand.
std::size_t skip_digits(std::string_view text, std::size_t at, unsigned base) {
  const std::size_t begin = at;
  while (digit_value(at_or_nul(text, at)) < base || (at > begin && at_or_nul(text, at) == '\'' &&
                                                     digit_value(at_or_nul(text, at + 1)) < base)) {
    ++at;
  }
  return at;
}

// The character behind a backslash: what it stands for.
struct Escape {
  char written;
  char meant;
};
constexpr Escape kEscapes[] = {{'n', '\n'}, {'t', '\t'},  {'r', '\r'}, {'0', '\0'},
                               {'a', '\a'}, {'b', '\b'},  {'f', '\f'}, {'v', '\v'},
                               {'"', '"'},  {'\'', '\''}, {'\\', '\\'}};

// `'a'` or `'\n'`: one character of ASCII. Its length in the text and its code; length 0: none.
struct Character {
  std::size_t length = 0;
  unsigned code = 0;
};
Character character_at(std::string_view text, std::size_t at) {
  if (at_or_nul(text, at) != '\'') return {};
  const char first = at_or_nul(text, at + 1);
  const char second = at_or_nul(text, at + 2);
  const auto code = static_cast<unsigned char>(first);
  if (first != '\\') {
    const bool printed = code >= ' ' && code < 0x7f && first != '\'';
    return printed && second == '\'' ? Character{3, code} : Character{};
  }
  const auto* found = std::ranges::find(kEscapes, second, &Escape::written);
  if (found == std::end(kEscapes) || at_or_nul(text, at + 3) != '\'') return {};
  return {4, static_cast<unsigned char>(found->meant)};
}

// Length of the UTF-8 sequence at `at`, 0 when it is malformed.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// `text` for a message: at most about 24 bytes, never half a character.
std::string shortened(std::string_view text) {
  constexpr std::size_t kBytesMax = 24;
  if (text.size() <= kBytesMax) return std::string(text);
  std::size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

bool is_integer_suffix(std::string_view suffix) {
  static constexpr std::string_view kSuffixes[] = {"", "u", "l", "ll", "ul", "lu", "ull", "llu"};
  std::string lower(suffix);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c == 'U' ? 'u' : c == 'L' ? 'l' : c;
  });
  return std::find(std::begin(kSuffixes), std::end(kSuffixes), lower) != std::end(kSuffixes);
}

// The end of `group-4x`, which is one mistake and not a subtraction; `end` itself for all else.
std::size_t malformed_group_end(std::string_view text, std::size_t end) {
  if (at_or_nul(text, end) != '-' || !is_digit(at_or_nul(text, end + 1))) return end;
  std::size_t suffix = end + 1;
  while (is_digit(at_or_nul(text, suffix))) ++suffix;
  const std::size_t after = skip_name(text, suffix);
  const bool number = text[end + 1] == '0' || at_or_nul(text, after) == '.' ||
                      is_integer_suffix(text.substr(suffix, after - suffix));
  return number ? end : after;
}

}  // namespace

std::size_t continuation_length(std::string_view text, std::size_t at) {
  if (at_or_nul(text, at) != '\\') return 0;
  if (at_or_nul(text, at + 1) == '\n') return 2;
  return at_or_nul(text, at + 1) == '\r' && at_or_nul(text, at + 2) == '\n' ? 3 : 0;
}

bool starts_comment(std::string_view text, std::size_t at) {
  return at_or_nul(text, at) == '/' &&
         (at_or_nul(text, at + 1) == '/' || at_or_nul(text, at + 1) == '*');
}

bool starts_raw_string(std::string_view text, std::size_t at) {
  return at_or_nul(text, at) == 'R' && at_or_nul(text, at + 1) == '"';
}

Skip skip_comment(std::string_view text, std::size_t at) {
  if (text[at + 1] == '*') {
    const std::size_t close = text.find("*/", at + 2);
    if (close == std::string_view::npos) return {text.size(), false};
    return {close + 2, true};
  }
  std::size_t end = at;
  while (true) {
    end = text.find('\n', end);
    if (end == std::string_view::npos) return {text.size(), true};
    const bool continued =
        text[end - 1] == '\\' || (text[end - 1] == '\r' && text[end - 2] == '\\');
    if (!continued) return {end, true};
    ++end;
  }
}

Skip skip_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  std::size_t i = at + 1;
  while (i < text.size() && text[i] != '\n') {
    if (text[i] == quote) return {i + 1, true};
    const std::size_t continuation = continuation_length(text, i);
    i += continuation != 0 ? continuation : text[i] == '\\' ? 2 : 1;
  }
  return {std::min(i, text.size()), false};
}

bool opens_raw_string(std::string_view text, std::size_t at) {
  constexpr std::size_t kTagMax = 16;
  return text.substr(at + 2, kTagMax + 1).find('(') != std::string_view::npos;
}

std::string raw_string_end(std::string_view text, std::size_t at) {
  std::string close = ")";
  if (opens_raw_string(text, at)) close += text.substr(at + 2, text.find('(', at + 2) - at - 2);
  return close + '"';
}

Skip skip_raw_string(std::string_view text, std::size_t at) {
  if (!opens_raw_string(text, at)) return {text.size(), false};
  const std::size_t open = text.find('(', at + 2);
  const std::string close = raw_string_end(text, at);
  const std::size_t end = text.find(close, open);
  if (end == std::string_view::npos) return {text.size(), false};
  return {end + close.size(), true};
}

std::size_t skip_name(std::string_view text, std::size_t at) {
  while (at < text.size() && is_name_char(text[at])) ++at;
  return at;
}

std::optional<std::size_t> find_binary_byte(std::string_view text) {
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) return nul;
  std::size_t i = 0;
  while (i < text.size()) {
    if (starts_comment(text, i)) {
      i = skip_comment(text, i).end;
      continue;
    }
    if (starts_raw_string(text, i) && (i == 0 || !is_name_char(text[i - 1]))) {
      const Skip raw = skip_raw_string(text, i);
      const std::size_t end = raw.closed || opens_raw_string(text, i) ? raw.end : i + 2;
      for (; i < end; ++i) {
        if (const std::size_t n = utf8_length(text, i); n == 0)
          return i;
        else
          i += n - 1;
      }
      continue;
    }
    if (text[i] == '"') {
      const std::size_t end = skip_string(text, i).end;
      for (; i < end; ++i) {
        if (const std::size_t n = utf8_length(text, i); n == 0)
          return i;
        else
          i += n - 1;
      }
      continue;
    }
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

Lexer::Lexer(const Sources& sources, FileId file, std::size_t begin, std::size_t end,
             Diagnostics* diags)
    : text_(sources.text(file).substr(0, end)), file_(file), diags_(diags), position_(begin) {
  std::size_t i = begin;
  while (i > 0 && is_blank(text_[i - 1])) --i;
  line_start_ = i == 0 || text_[i - 1] == '\n';
}

void Lexer::jump(std::size_t position) {
  position_ = position;
  line_start_ = true;
  space_before_ = true;
}

void Lexer::skip_one_comment() {
  const Skip comment = skip_comment(text_, position_);
  swallowed_rest_ = swallowed_rest_ || !comment.closed;
  if (!comment.closed && diags_ != nullptr) {
    const auto begin = static_cast<std::uint32_t>(position_);
    diags_->report<diag::UnterminatedComment>({file_, begin, begin + 2})
        .help("close it with `*/`")
        .emit();
  }
  const std::string_view body = text_.substr(position_, comment.end - position_);
  if (body.find('\n') != std::string_view::npos) line_start_ = true;
  position_ = comment.end;
}

void Lexer::skip_space() {
  space_before_ = false;
  while (position_ < text_.size()) {
    const std::size_t before = position_;
    if (text_[position_] == '\n') {
      line_start_ = true;
      ++position_;
    } else if (is_blank(text_[position_])) {
      ++position_;
    } else if (starts_comment(text_, position_)) {
      skip_one_comment();
    } else {
      position_ += continuation_length(text_, position_);
    }
    if (position_ == before) return;
    space_before_ = true;
  }
}

bool Lexer::at_line_start_hash() {
  const bool space_before = space_before_;
  skip_space();
  space_before_ = space_before_ || space_before;
  return line_start_ && at_or_nul(text_, position_) == '#';
}

Token Lexer::take(TokenKind kind, std::size_t end) {
  Token token;
  token.kind = kind;
  token.line_start = line_start_;
  token.space_before = space_before_;
  token.text = text_.substr(position_, end - position_);
  token.span = {file_, static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(end)};
  position_ = end;
  line_start_ = false;
  return token;
}

Token Lexer::next() {
  skip_space();
  if (position_ >= text_.size()) return take(TokenKind::kEnd, text_.size());
  const char c = text_[position_];
  if (c == '"' || starts_raw_string(text_, position_)) return string();
  if (is_name_start(c)) return name();
  if (is_digit(c) || (c == '.' && is_digit(at_or_nul(text_, position_ + 1)))) return number();
  if (const Character one = character_at(text_, position_); one.length != 0) {
    return take(TokenKind::kInteger, position_ + one.length);
  }
  return sign();
}

Token Lexer::name() {
  std::size_t end = skip_name(text_, position_);
  const std::string_view text = text_.substr(position_, end - position_);
  if (text == "group" && text_.substr(end, 2) == "-4" && !is_name_char(at_or_nul(text_, end + 2))) {
    return take(TokenKind::kGroup4, end + 2);
  }
  if (text == "group") end = malformed_group_end(text_, end);
  Token token = take(TokenKind::kIdentifier, end);
  if (end - token.span.begin == text.size()) token.word = word_from_text(text);
  return token;
}

Token Lexer::string() {
  const bool raw = starts_raw_string(text_, position_);
  const Skip skip = raw ? skip_raw_string(text_, position_) : skip_string(text_, position_);
  swallowed_rest_ = swallowed_rest_ || (raw && !skip.closed);
  const Token token = take(skip.closed ? TokenKind::kString : TokenKind::kUnknown, skip.end);
  if (!skip.closed && diags_ != nullptr) {
    const std::uint32_t length = raw ? 2 : 1;
    diags_->report<diag::UnterminatedString>({file_, token.span.begin, token.span.begin + length})
        .help("close it with `{}`", raw ? raw_string_end(text_, token.span.begin) : "\"")
        .emit();
  }
  return token;
}

Token Lexer::number() {
  const Radix radix = radix_of(text_.substr(position_));
  const bool decimal = radix.prefix == 0;
  std::size_t end = skip_digits(text_, position_ + radix.prefix, radix.base);
  bool is_float = false;
  bool malformed = false;
  if (decimal && at_or_nul(text_, end) == '.') {
    is_float = true;
    malformed = end == position_ || !is_digit(at_or_nul(text_, end + 1));
    ++end;
    while (is_digit(at_or_nul(text_, end))) ++end;
  }
  const char e = at_or_nul(text_, end);
  if (decimal && (e == 'e' || e == 'E')) {
    std::size_t digits = end + 1;
    if (at_or_nul(text_, digits) == '+' || at_or_nul(text_, digits) == '-') ++digits;
    if (is_digit(at_or_nul(text_, digits))) {
      is_float = true;
      end = digits;
      while (is_digit(at_or_nul(text_, end))) ++end;
    }
  }
  const std::size_t suffix_begin = end;
  end = skip_name(text_, end);
  const std::string_view suffix = text_.substr(suffix_begin, end - suffix_begin);
  Token token = take(is_float ? TokenKind::kFloat : TokenKind::kInteger, end);
  if (malformed) {
    token.kind = TokenKind::kUnknown;
    if (diags_ != nullptr) {
      diags_->report<diag::FloatDigits>(token.span, token.text)
          .help("write digits on both sides of the point, as in `1.0`")
          .emit();
    }
  } else if (is_float && !(suffix.empty() || suffix == "f" || suffix == "F")) {
    token.kind = TokenKind::kUnknown;
    if (diags_ != nullptr) {
      diags_->report<diag::NumberSuffix>(token.span, suffix)
          .help("a float may end in `f`, which makes it an f32")
          .emit();
    }
  } else if (!is_float) {
    check_integer(token);
  }
  return token;
}

void Lexer::check_integer(const Token& token) {
  if (diags_ == nullptr) return;
  const Radix radix = radix_of(token.text);
  const std::size_t digits = skip_digits(token.text, radix.prefix, radix.base);
  const std::string_view suffix = token.text.substr(digits);
  if (radix.prefix != 0 && digits == radix.prefix) {
    diags_
        ->report<diag::IntegerDigits>(token.span, shortened(token.text),
                                      token.text.substr(0, radix.prefix))
        .help("write at least one of {}",
              radix.base == 2 ? "`0` and `1`" : "`0` to `9` and `a` to `f`")
        .emit();
  } else if (!is_integer_suffix(suffix)) {
    diags_->report<diag::NumberSuffix>(token.span, suffix)
        .help("an integer may end in `u`, `l`, `ll` or `ul`, `ull`")
        .emit();
  } else if (radix.prefix == 0 && digits > 1 && token.text[0] == '0') {
    diags_->report<diag::IntegerLeadingZero>(token.span, token.text)
        .help("there are no octal numbers: write it without the zero")
        .emit();
  } else if (!integer_value(token.text)) {
    diags_->report<diag::IntegerTooLarge>(token.span, shortened(token.text))
        .help("the largest integer is {}", std::numeric_limits<std::uint64_t>::max())
        .emit();
  }
}

Token Lexer::sign() {
  const Sign sign = longest_sign(text_.substr(position_, 3));
  if (sign.text.empty()) return unknown();
  return take(sign.kind, position_ + sign.text.size());
}

// A whole run of characters that begin no token, so that rubbish is one mistake and not thousands.
Token Lexer::unknown() {
  std::size_t end = position_;
  if (text_[position_] == '\'') {
    end = skip_string(text_, position_).end;
  } else {
    while (end < text_.size() && !is_blank(text_[end]) && text_[end] != '\n' && text_[end] != '"' &&
           !is_name_char(text_[end]) && !begins_sign(text_[end])) {
      ++end;
    }
  }
  const Token token = take(TokenKind::kUnknown, std::max(end, position_ + 1));
  if (diags_ != nullptr && errors_left_-- > 0) {
    diags_->report<diag::UnknownCharacter>(token.span, shortened(token.text)).emit();
  }
  return token;
}

std::optional<std::uint64_t> integer_value(std::string_view text) {
  if (const Character one = character_at(text, 0); one.length != 0) return one.code;
  const auto [base, prefix] = radix_of(text);
  std::uint64_t value = 0;
  const std::size_t end = skip_digits(text, prefix, base);
  for (std::size_t i = prefix; i < end; ++i) {
    if (text[i] == '\'') continue;
    const std::uint64_t digit = digit_value(text[i]);
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

std::string string_value(std::string_view text, std::optional<std::size_t>* bad_escape) {
  if (text.starts_with("R\"")) {
    const std::size_t open = text.find('(');
    const std::size_t tag = open - 2;
    return std::string(text.substr(open + 1, text.size() - open - 1 - tag - 2));
  }
  std::string value;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    if (const std::size_t continuation = continuation_length(text, i); continuation != 0) {
      i += continuation - 1;
      continue;
    }
    const char escaped = text[++i];
    switch (escaped) {
      case 'n': value += '\n'; break;
      case 't': value += '\t'; break;
      case '"':
      case '\\': value += escaped; break;
      default:
        if (bad_escape != nullptr && !*bad_escape) *bad_escape = i - 1;
        value += '\\';
        value += escaped;
    }
  }
  return value;
}

}  // namespace kiln::syntax
