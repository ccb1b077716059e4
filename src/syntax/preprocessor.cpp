#include "syntax/preprocessor.h"

#include <algorithm>
#include <utility>

#include "syntax/condition.h"

namespace kiln::syntax {

namespace {

constexpr std::string_view kDirectives[] = {"define", "undef",   "if",   "ifdef",
                                            "ifndef", "elif",    "else", "endif",
                                            "error",  "include", "line", "pragma"};

// Directives of C++ and its compilers that mean nothing here: text of the host.
constexpr std::string_view kHostDirectives[] = {"warning",      "ident", "sccs",   "import",
                                                "include_next", "embed", "assert", "unassert"};

std::string_view directive_word(std::string_view text, std::size_t at) {
  std::size_t begin = at + 1;
  while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
  return text.substr(begin, skip_name(text, begin) - begin);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (is_blank(text.front()) || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

// "did you mean `define`?" for a misspelt or a cut directive.
std::string directive_suggestion(std::string_view word) {
  std::vector<std::string> known(std::begin(kDirectives), std::end(kDirectives));
  constexpr std::size_t kPrefixMin = 3;
  for (const std::string& candidate : known) {
    const bool cut = word.size() >= kPrefixMin && candidate.starts_with(word);
    if (cut) return did_you_mean(candidate, {candidate});
  }
  return did_you_mean(word, known);
}

// First byte at or after `at` that is neither blank nor in a block comment.
std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (is_blank(text[at])) {
      ++at;
    } else if (text.substr(at, 2) == "/*") {
      at = skip_comment(text, at).end;
    } else {
      return at;
    }
  }
  return at;
}

}  // namespace

bool check_text(const Sources& sources, FileId file, Diagnostics& diags) {
  const std::string_view text = sources.text(file);
  const auto binary = find_binary_byte(text);
  if (!binary) return true;
  const auto offset = static_cast<std::uint32_t>(*binary);
  const auto byte = static_cast<unsigned char>(text[*binary]);
  diags
      .report<diag::FileNotText>({file, offset, offset + 1}, offset,
                                 byte == 0 ? std::string("0") : format("{}, not UTF-8", byte))
      .emit();
  return false;
}

std::size_t logical_line_end(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '\n') {
    if (const std::size_t continuation = continuation_length(text, at); continuation != 0) {
      at += continuation;
    } else if (starts_comment(text, at)) {
      at = skip_comment(text, at).end;
    } else if (starts_raw_string(text, at) && !(at > 0 && is_name_char(text[at - 1])) &&
               skip_raw_string(text, at).closed) {
      at = skip_raw_string(text, at).end;
    } else if (text[at] == '"') {
      const Skip string = skip_string(text, at);
      at = string.closed ? string.end : at + 1;
    } else {
      ++at;
    }
  }
  return at;
}

bool Preprocessor::is_directive(std::string_view text, std::size_t at) {
  const std::string_view word = directive_word(text, at);
  return std::find(std::begin(kDirectives), std::end(kDirectives), word) != std::end(kDirectives);
}

bool Preprocessor::is_unknown_directive(std::size_t at) const {
  const std::string_view text = sources_.text(file_);
  const std::string_view word = directive_word(text, at);
  if (word.empty() || !is_name_start(word[0]) || is_directive(text, at)) return false;
  return std::find(std::begin(kHostDirectives), std::end(kHostDirectives), word) ==
         std::end(kHostDirectives);
}

Preprocessor::Line Preprocessor::read_line(FileId file, std::size_t at) const {
  const std::string_view text = sources_.text(file);
  Line line;
  line.word = directive_word(text, at);
  line.begin = static_cast<std::size_t>(line.word.data() - text.data()) + line.word.size();
  line.end = logical_line_end(text, line.begin);
  line.span = {file, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(line.begin)};
  return line;
}

std::string_view Preprocessor::rest(FileId file, const Line& line) const {
  return trimmed(sources_.text(file).substr(line.begin, line.end - line.begin));
}

void Preprocessor::predefine(FileId file) {
  predefining_ = true;
  const std::string_view text = sources_.text(file);
  std::size_t at = 0;
  while (at < text.size()) {
    const Line line = read_line(file, at);
    Outcome unused;
    handle_live(file, line, unused);
    at = line.end + 1;
  }
  predefining_ = false;
}

Preprocessor::Outcome Preprocessor::directive(std::size_t at, const ReadCode* read_code) {
  read_code_ = read_code;
  const Line line = read_line(file_, at);
  Outcome outcome{.next = line.end, .pragma = std::nullopt};
  if (is_unknown_directive(at)) {
    diags_.report<diag::UnknownDirective>(line.span, line.word)
        .help_if(directive_suggestion(line.word))
        .emit();
  } else if (!handle_conditional(line)) {
    handle_live(file_, line, outcome);
  }
  if (!live()) outcome.next = skip_dead(line.end);
  return outcome;
}

// From the end of a line on, passes over dead text, line by line: it need not be made of tokens.
std::size_t Preprocessor::skip_dead(std::size_t at) {
  const std::string_view text = sources_.text(file_);
  while (at < text.size()) {
    const std::size_t begin = skip_blanks(text, at + (text[at] == '\n' ? 1 : 0));
    const bool is_hash = begin < text.size() && text[begin] == '#';
    if (!is_hash || !is_directive(text, begin)) {
      at = logical_line_end(text, begin);
      continue;
    }
    const Line line = read_line(file_, begin);
    at = line.end;
    handle_conditional(line);
    if (live()) return at;
  }
  return at;
}

// False when the directive is none of the conditional ones.
bool Preprocessor::handle_conditional(const Line& line) {
  if (line.word == "if" || line.word == "ifdef" || line.word == "ifndef") {
    handle_if(line);
  } else if (line.word == "elif") {
    handle_elif(line);
  } else if (line.word == "else") {
    handle_else(line);
  } else if (line.word == "endif") {
    if (conditionals_.empty()) {
      diags_.report<diag::ElseWithoutIf>(line.span, "#endif", "#if").emit();
    } else {
      conditionals_.pop_back();
    }
  } else {
    return false;
  }
  return true;
}

void Preprocessor::handle_if(const Line& line) {
  Conditional entry;
  entry.span = line.span;
  entry.word = line.word;
  entry.outer_live = live();
  if (entry.outer_live) {
    entry.live = line.word == "if" ? condition(line) : is_defined(line) == (line.word == "ifdef");
  }
  entry.taken = entry.live || !entry.outer_live;
  conditionals_.push_back(entry);
}

void Preprocessor::handle_elif(const Line& line) {
  if (conditionals_.empty()) {
    diags_.report<diag::ElseWithoutIf>(line.span, "#elif", "#if").emit();
    return;
  }
  Conditional& entry = conditionals_.back();
  if (entry.else_span.valid()) {
    diags_.report<diag::ElseAfterElse>(line.span, line.word)
        .label(entry.else_span, "the `#else`")
        .emit();
  }
  entry.live = !entry.taken && condition(line);
  entry.taken = entry.taken || entry.live;
}

void Preprocessor::handle_else(const Line& line) {
  if (conditionals_.empty()) {
    diags_.report<diag::ElseWithoutIf>(line.span, "#else", "#if").emit();
    return;
  }
  Conditional& entry = conditionals_.back();
  if (entry.else_span.valid()) {
    diags_.report<diag::ElseAfterElse>(line.span, line.word)
        .label(entry.else_span, "the `#else`")
        .emit();
  }
  entry.else_span = line.span;
  entry.live = !entry.taken;
  entry.taken = true;
}

void Preprocessor::handle_live(FileId file, const Line& line, Outcome& outcome) {
  if (line.word == "define") {
    define(file, line);
  } else if (line.word == "undef") {
    undefine(file, line);
  } else if (line.word == "error") {
    stopped_ = true;
    diags_.report<diag::ErrorDirective>(line.span, rest(file, line)).emit();
  } else if (line.word == "line") {
    line_directive(line);
  } else if (line.word == "include") {
    include(line);
  } else if (line.word == "pragma") {
    const std::string_view text = rest(file, line);
    if (text != "croq" && !text.starts_with("croq ") && !text.starts_with("croq\t")) return;
    const auto begin = static_cast<std::uint32_t>(text.data() - sources_.text(file).data());
    Token token;
    token.kind = TokenKind::kPragma;
    token.line_start = true;
    token.text = text;
    token.span = {file, begin, begin + static_cast<std::uint32_t>(text.size())};
    outcome.pragma = token;
  }
}

// The directives of `"name.co"`; any other file is the C++ compiler's.
void Preprocessor::include(const Line& line) {
  Lexer lexer(sources_, file_, line.begin, line.end, nullptr);
  const Token quoted = lexer.next();
  if (quoted.kind != TokenKind::kString || !quoted.text.ends_with(".co\"")) return;
  const std::string_view name = quoted.text.substr(1, quoted.text.size() - 2);
  const Span span = quoted.span;
  if (++includes_ > kIncludesMax) {
    stopped_ = true;  // as below: without its macros nothing after it is worth reading
    diags_.report<diag::IncludeTooMany>(span, kIncludesMax).emit();
    return;
  }
  auto found = read_included_
                   ? read_included_(sources_.name(file_), name)
                   : Result<IncludedFile>(Unexpected{Error{"there are no files here", "", ""}});
  if (!found) {
    stopped_ = true;
    diags_.report<diag::IncludeUnreadable>(span, name, found.error().text()).emit();
    return;
  }
  if (with_code_.contains(found->name)) return;
  inclusions_.push_back({file_, span});
  const bool cycle = std::ranges::any_of(inclusions_, [&](const Inclusion& inclusion) {
    return sources_.name(inclusion.file) == found->name;
  });
  if (cycle) {
    stopped_ = true;
    auto report = diags_.report<diag::IncludeCycle>(span, found->name);
    for (const Inclusion& inclusion : inclusions_) {
      if (inclusion.span != span) {
        static_cast<void>(std::move(report).label(inclusion.span, "included here"));
      }
    }
    std::move(report).emit();
  } else {
    const FileId outer = std::exchange(file_, sources_.add(found->name, std::move(found->text)));
    auto conditionals = std::exchange(conditionals_, {});
    const ReadCode* read_code = std::exchange(read_code_, nullptr);
    if (check_text(sources_, file_, diags_)) {
      if (read_code != nullptr) {
        if ((*read_code)(file_)) with_code_.emplace(sources_.name(file_));
      } else {
        read_directives();
      }
    } else {
      stopped_ = true;
    }
    finish();
    conditionals_ = std::move(conditionals);
    file_ = outer;
  }
  inclusions_.pop_back();
}

// All of `file_`, up to the first mistake of its own kind.
void Preprocessor::read_directives() {
  const std::string_view text = sources_.text(file_);
  Lexer lexer(sources_, file_, text.starts_with("\xEF\xBB\xBF") ? 3 : 0, text.size(), &diags_);
  while (!stopped_) {
    if (lexer.at_line_start_hash() && is_directive(text, lexer.position())) {
      const Outcome outcome = directive(lexer.position());
      lexer.jump(outcome.next);
      if (!outcome.pragma) continue;
      stopped_ = true;
      diags_.report<diag::IncludeHoldsCode>(outcome.pragma->span, "#pragma").emit();
      return;
    }
    const Token token = lexer.next();
    if (token.kind == TokenKind::kEnd) return;
    stopped_ = true;
    diags_.report<diag::IncludeHoldsCode>(token.span, token.text)
        .label(inclusions_.back().span, "included here")
        .help("include it between functions")
        .emit();
    return;
  }
}

// Reads `a, b)` after the `(` that touches the macro's name.
bool Preprocessor::read_params(Lexer& lexer, Macro& macro) {
  macro.function_like = true;
  Token token = lexer.next();
  if (token.kind == TokenKind::kRightParen) return true;
  while (token.kind == TokenKind::kIdentifier) {
    macro.params.emplace_back(token.text);
    token = lexer.next();
    if (token.kind == TokenKind::kRightParen) return true;
    if (token.kind != TokenKind::kComma) break;
    token = lexer.next();
  }
  macro.unsupported = token.kind == TokenKind::kDot ? "it takes a variable number of arguments"
                                                    : "its parameters are not a list of names";
  return false;
}

void Preprocessor::define(FileId file, const Line& line) {
  Lexer lexer(sources_, file, line.begin, line.end, nullptr);
  const Token name = lexer.next();
  if (name.kind != TokenKind::kIdentifier) {
    diags_.report<diag::DirectiveMalformed>(line.span, "define", "a name to define").emit();
    return;
  }
  Macro macro;
  macro.name = name.text;
  macro.definition = name.span;
  macro.pinned = predefining_;
  const std::string_view text = sources_.text(file);
  if (lexer.position() < line.end && text[lexer.position()] == '(') {
    static_cast<void>(lexer.next());
    read_params(lexer, macro);
  }
  macro.body_span = {file, static_cast<std::uint32_t>(lexer.position()),
                     static_cast<std::uint32_t>(line.end)};
  macros_.define(std::move(macro));
}

void Preprocessor::undefine(FileId file, const Line& line) {
  Lexer lexer(sources_, file, line.begin, line.end, nullptr);
  const Token name = lexer.next();
  if (name.kind == TokenKind::kIdentifier) {
    macros_.undefine(name.text);
  } else {
    diags_.report<diag::DirectiveMalformed>(line.span, "undef", "a name to forget").emit();
  }
}

void Preprocessor::line_directive(const Line& line) {
  Lexer lexer(sources_, file_, line.begin, line.end, nullptr);
  const Token number = lexer.next();
  const auto value = number.kind == TokenKind::kInteger ? integer_value(number.text) : std::nullopt;
  if (!value || *value == 0 || *value > 0x7fffffff) {
    diags_.report<diag::DirectiveMalformed>(line.span, "line", "a line number from 1 on")
        .help("as in `#line 12` or `#line 12 \"gemm.co\"`")
        .emit();
    return;
  }
  const Token name = lexer.next();
  if (name.kind != TokenKind::kString && name.kind != TokenKind::kEnd) {
    diags_.report<diag::DirectiveMalformed>(line.span, "line", "a file name in double quotes")
        .help("as in `#line 12 \"gemm.co\"`")
        .emit();
    return;
  }
  std::string file;
  if (name.kind == TokenKind::kString) file = string_value(name.text, nullptr);
  const std::int64_t physical = sources_.line_of(file_, static_cast<std::uint32_t>(line.end));
  sources_.presume(file_, physical, static_cast<std::int64_t>(*value), std::move(file));
}

bool Preprocessor::is_defined(const Line& line) {
  Lexer lexer(sources_, file_, line.begin, line.end, nullptr);
  const Token name = lexer.next();
  if (name.kind == TokenKind::kIdentifier) return macros_.find(name.text) != nullptr;
  diags_.report<diag::DirectiveMalformed>(line.span, line.word, "a name to ask for").emit();
  return false;
}

// After `defined`: `X` or `(X)`, which is not expanded. The word becomes 1 or 0.
bool Preprocessor::read_defined(Lexer& lexer, const Line& line, Token word,
                                std::vector<Token>& tokens) {
  Token name = lexer.next();
  const bool paren = name.kind == TokenKind::kLeftParen;
  if (paren) name = lexer.next();
  const bool named = name.kind == TokenKind::kIdentifier;
  if (!named || (paren && lexer.next().kind != TokenKind::kRightParen)) {
    diags_
        .report<diag::ConditionMalformed>(
            word.span, line.word,
            named ? "`defined(` lacks its `)`" : "`defined` needs the name of a macro")
        .help("write `defined(NAME)`")
        .emit();
    return false;
  }
  word.kind = TokenKind::kInteger;
  word.text = macros_.find(name.text) != nullptr ? "1" : "0";
  tokens.push_back(word);
  return true;
}

// The tokens of a condition before expansion. False after a reported mistake.
bool Preprocessor::read_condition(const Line& line, std::vector<Token>& tokens) {
  Lexer lexer(sources_, file_, line.begin, line.end, nullptr);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) {
    if (token.text != "defined") {
      tokens.push_back(token);
    } else if (!read_defined(lexer, line, token, tokens)) {
      return false;
    }
  }
  return true;
}

bool Preprocessor::condition(const Line& line) {
  std::vector<Token> tokens;
  if (!read_condition(line, tokens)) return false;
  std::size_t at = 0;
  std::size_t budget = Expander::kTokensMax;
  Expander expander(
      {sources_, macros_, diags_}, [&]() { return at < tokens.size() ? tokens[at++] : Token(); },
      nullptr, &budget);
  std::vector<Token> expanded;
  for (Token token = expander.next(); token.kind != TokenKind::kEnd; token = expander.next()) {
    expanded.push_back(token);
  }
  if (expander.failed()) return false;
  return evaluate_condition(expanded, line.word, line.span, diags_).value_or(0) != 0;
}

void Preprocessor::finish() {
  if (stopped_) return;
  for (const Conditional& entry : conditionals_) {
    diags_.report<diag::EndifMissing>(entry.span, entry.word).emit();
  }
}

}  // namespace kiln::syntax
