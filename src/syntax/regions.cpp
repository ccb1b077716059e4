#include "syntax/regions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "syntax/lexer.h"

namespace kiln::syntax {

namespace {

// One step through text that is not ours to read: only braces, names and `;` matter.
struct Unit {
  enum class Kind { kEnd, kName, kOpen, kClose, kSemicolon, kEqual, kDirective, kOther };
  Kind kind = Kind::kEnd;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool first_on_line = false;
};

// Remembers open braces, and which of them was probably never closed: the first one whose `}`
// would stand further left than the line it opened on.
class BraceStack {
 public:
  explicit BraceStack(const Sources& sources) : sources_(sources) {}

  void open(Span brace) { open_.push_back(brace); }
  // False when there is nothing to close.
  bool close(Span brace, bool first_on_line) {
    if (open_.empty()) return false;
    if (first_on_line && !suspect_ && indent(brace) < indent(open_.back())) suspect_ = open_.back();
    open_.pop_back();
    return true;
  }
  // The last brace opened is not to be closed. (A list of names that has a second `by` has none.)
  void forget() {
    if (!open_.empty()) open_.pop_back();
  }
  [[nodiscard]] std::size_t depth() const { return open_.size(); }
  [[nodiscard]] Span unclosed() const { return suspect_.value_or(open_.back()); }

 private:
  std::size_t indent(Span brace) const {
    const std::string_view line =
        sources_.line_text(brace.file, sources_.line_of(brace.file, brace.begin));
    return std::min(line.find_first_not_of(" \t"), line.size());
  }

  const Sources& sources_;
  std::vector<Span> open_;
  std::optional<Span> suspect_;
};

// At the `by` or `in` of `parallel {p by` and its like, whose `}` is missing: the parser reports
// it, and the brace opens no block.
bool ends_name_list(const std::vector<Token>& tokens) {
  const Word last = tokens.back().word;
  if (last != Word::kBy && last != Word::kIn) return false;
  constexpr std::size_t kNamesMax = 64;
  std::size_t i = tokens.size() - 1;
  const std::size_t stop = i > kNamesMax ? i - kNamesMax : 0;
  while (i > stop &&
         (tokens[i].kind == TokenKind::kIdentifier || tokens[i].kind == TokenKind::kComma)) {
    --i;
  }
  if (i == 0 || tokens[i].kind != TokenKind::kLeftBrace) return false;
  const Word before = tokens[i - 1].word;
  return before == Word::kParallel || before == Word::kForeach || before == Word::kWith ||
         before == Word::kApply;
}

class Splitter {
 public:
  Splitter(const Sources& sources, FileId file, Preprocessor& preprocessor, Diagnostics& diags)
      : sources_(sources),
        file_(file),
        text_(sources.text(file)),
        preprocessor_(preprocessor),
        diags_(diags) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  SplitFile run() {
    while (step()) {
    }
    end_host(text_.size());
    preprocessor_.finish();
    drop_bare_directives();
    return std::move(out_);
  }

  // Of a file that another one includes: it has no host text.
  SplitFile run_included() {
    is_included_ = true;
    while (!preprocessor_.stopped() && step()) {
    }
    if (!preprocessor_.stopped()) end_host(text_.size());
    return std::move(out_);
  }

 private:
  [[nodiscard]] Span span(std::size_t begin, std::size_t end) const {
    return {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }

  Unit unit();
  bool skip_space_or_comment();
  Unit take(Unit::Kind kind, std::size_t length);
  Unit take_name();
  void take_braces(const Unit& name);
  void collect_braces(const Macro& macro, std::vector<Unit::Kind>& braces,
                      std::size_t& budget) const;
  bool include(FileId file);
  bool step();
  bool step_name(const Unit& name);
  void check_misspelt(const Unit& name, std::string_view word);
  void host_brace(const Unit& brace);
  void extra_brace(const Unit& brace);
  void start_declaration(const Unit& first);
  void end_host(std::size_t end);
  void drop_bare_directives();
  void read_device(std::size_t begin);
  void read_kernel(std::size_t begin);
  void start_tile(const Unit& word, bool is_device);
  void read_tile(std::size_t begin, bool is_device);
  [[nodiscard]] bool begins_constant(std::size_t begin) const;
  void read_constant(std::size_t begin);
  std::vector<Macro*> hide_parameters(std::size_t begin, TileText& tile);
  void refuse_in_included(std::size_t begin);
  bool check_specifiers(std::size_t co);
  void add(TextRegion region, std::size_t end);
  void report_unclosed(const BraceStack& braces, std::size_t end);
  Token raw_token(Lexer& lexer);
  bool begins_other_region(const Token& token, const TileText& tile) const;
  bool nests(const Token& co, const TileText& tile) const;
  void close_tile(TileText& tile, const BraceStack& braces);

  const Sources& sources_;
  FileId file_;
  std::string_view text_;
  Preprocessor& preprocessor_;
  Diagnostics& diags_;
  SplitFile out_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  std::vector<Unit> braces_;  // of the macro last stepped over, which come next; last first
  std::size_t macro_tokens_left_ = Expander::kTokensMax;  // to look through for braces
  // The host text under way.
  std::optional<std::size_t> host_begin_;  // of its first token or directive
  bool host_has_text_ = false;             // something besides directives
  bool host_has_directives_ = false;
  bool text_before_declaration_ = false;
  std::vector<bool> bare_;                  // per region: host text of directives only
  std::size_t depth_ = 0;                   // braces open in host text
  std::optional<std::size_t> declaration_;  // where the current top-level declaration began
  bool extra_brace_known_ = false;
  bool is_included_ = false;
  bool at_file_level_ = false;
  bool swallowed_rest_ = false;  // a comment has no end: no brace can follow
  bool after_statement_ = true;  // the last raw token of a tile function ends a statement
};

// ---- Stepping through host and device text ----

bool Splitter::skip_space_or_comment() {
  if (text_[at_] == '\n') {
    line_start_ = true;
    ++at_;
    return true;
  }
  if (is_blank(text_[at_])) {
    ++at_;
    return true;
  }
  if (const std::size_t continuation = continuation_length(text_, at_); continuation != 0) {
    at_ += continuation;
    return true;
  }
  if (!starts_comment(text_, at_)) return false;
  const Skip comment = skip_comment(text_, at_);
  if (!comment.closed) {
    swallowed_rest_ = true;
    diags_.report<diag::UnterminatedComment>(span(at_, at_ + 2)).help("close it with `*/`").emit();
  }
  at_ = comment.end;
  return true;
}

Unit Splitter::take(Unit::Kind kind, std::size_t length) {
  const Unit unit{kind, at_, at_ + length, line_start_};
  at_ += length;
  line_start_ = false;
  return unit;
}

// A name or a number, with the string it may be the prefix of (`R"(...)"`) and the separators of
// `1'000`.
Unit Splitter::take_name() {
  const bool number = is_digit(text_[at_]);
  std::size_t end = skip_name(text_, at_);
  while (number && end + 1 < text_.size() && text_[end] == '\'' && is_name_char(text_[end + 1])) {
    end = skip_name(text_, end + 1);
  }
  if (!number && end < text_.size() && text_[end] == '"' && text_[end - 1] == 'R') {
    const Skip raw = skip_raw_string(text_, end - 1);
    if (raw.closed) return take(Unit::Kind::kOther, raw.end - at_);
    if (opens_raw_string(text_, end - 1)) {
      swallowed_rest_ = true;
      diags_.report<diag::UnterminatedString>(span(end - 1, end + 1))
          .help("close it with `{}`", raw_string_end(text_, end - 1))
          .emit();
      return take(Unit::Kind::kOther, raw.end - at_);
    }
  }
  return take(number ? Unit::Kind::kOther : Unit::Kind::kName, end - at_);
}

// The braces of what the macro becomes, in their order.
void Splitter::collect_braces(const Macro& macro, std::vector<Unit::Kind>& braces,
                              std::size_t& budget) const {
  const Span body = macro.body_span;
  Lexer lexer(sources_, body.file, body.begin, body.end, nullptr);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) {
    if (budget == 0) return;
    --budget;
    if (token.kind == TokenKind::kLeftBrace) braces.push_back(Unit::Kind::kOpen);
    if (token.kind == TokenKind::kRightBrace) braces.push_back(Unit::Kind::kClose);
    if (token.kind != TokenKind::kIdentifier || token.text == macro.name) continue;
    const Macro* inner = preprocessor_.macros().look_up(token.text);
    if (inner != nullptr) collect_braces(*inner, braces, budget);
  }
}

// A macro that opens or closes more braces than it closes or opens (`#define BEGIN {`) counts as
// these.
void Splitter::take_braces(const Unit& name) {
  const Macro* macro =
      preprocessor_.macros().look_up(text_.substr(name.begin, name.end - name.begin));
  if (macro == nullptr) return;
  const std::size_t next = text_.find_first_not_of(" \t", name.end);
  const bool is_called = next != std::string_view::npos && text_[next] == '(';
  if (macro->function_like && !is_called) return;
  constexpr std::size_t kTokensMax = 1000;
  std::size_t budget = std::min(kTokensMax, macro_tokens_left_);
  const std::size_t before = budget;
  std::vector<Unit::Kind> braces;
  collect_braces(*macro, braces, budget);
  macro_tokens_left_ -= before - budget;
  const auto opened = std::ranges::count(braces, Unit::Kind::kOpen);
  if (2 * static_cast<std::size_t>(opened) == braces.size()) return;
  for (const Unit::Kind kind : braces) {
    braces_.insert(braces_.begin(), {kind, name.begin, name.end, false});
  }
}

Unit Splitter::unit() {
  if (!braces_.empty()) {
    const Unit brace = braces_.back();
    braces_.pop_back();
    return brace;
  }
  while (at_ < text_.size() && skip_space_or_comment()) {
  }
  if (at_ >= text_.size() || preprocessor_.stopped()) return {Unit::Kind::kEnd, at_, at_, false};
  const char c = text_[at_];
  if (c == '#' && line_start_ &&
      (Preprocessor::is_directive(text_, at_) || preprocessor_.is_unknown_directive(at_))) {
    const std::size_t begin = at_;
    const Preprocessor::ReadCode read_code = [this](FileId file) { return include(file); };
    Preprocessor::Outcome outcome =
        preprocessor_.directive(at_, at_file_level_ ? &read_code : nullptr);
    if (outcome.pragma && is_included_) refuse_in_included(begin);
    if (outcome.pragma) out_.pragmas.push_back(*outcome.pragma);
    at_ = outcome.next;
    return {Unit::Kind::kDirective, begin, at_, true};
  }
  if (is_name_char(c)) {
    const Unit name = take_name();
    if (name.kind == Unit::Kind::kName) take_braces(name);
    return name;
  }
  switch (c) {
    case '{': return take(Unit::Kind::kOpen, 1);
    case '}': return take(Unit::Kind::kClose, 1);
    case ';': return take(Unit::Kind::kSemicolon, 1);
    case '=': return take(Unit::Kind::kEqual, 1);
    case '"':
    case '\'': return take(Unit::Kind::kOther, skip_string(text_, at_).end - at_);
    default: return take(Unit::Kind::kOther, 1);
  }
}

// ---- Host text ----

// The regions of an included file, at its `#include`. Whether there are any.
bool Splitter::include(FileId file) {
  SplitFile inner = Splitter(sources_, file, preprocessor_, diags_).run_included();
  for (TextRegion& region : inner.regions) {
    out_.regions.push_back(std::move(region));
    bare_.push_back(false);
  }
  std::ranges::move(inner.expansions, std::back_inserter(out_.expansions));
  return !inner.regions.empty();
}

bool Splitter::step() {
  at_file_level_ = depth_ == 0;
  const Unit next = unit();
  at_file_level_ = false;
  switch (next.kind) {
    case Unit::Kind::kEnd: return false;
    case Unit::Kind::kDirective:
      host_has_directives_ = true;
      if (!host_begin_) host_begin_ = next.begin;
      if (depth_ == 0) declaration_.reset();
      return true;
    case Unit::Kind::kName: return step_name(next);
    case Unit::Kind::kOpen:
    case Unit::Kind::kClose: host_brace(next); return true;
    case Unit::Kind::kSemicolon:
      start_declaration(next);
      if (depth_ == 0) declaration_.reset();
      return true;
    case Unit::Kind::kEqual:
    case Unit::Kind::kOther: start_declaration(next); return true;
  }
  KILN_UNREACHABLE("unit kind {}", static_cast<int>(next.kind));
}

void Splitter::start_declaration(const Unit& first) {
  if (!host_begin_) host_begin_ = first.begin;
  if (depth_ == 0 && !declaration_) {
    declaration_ = first.begin;
    text_before_declaration_ = host_has_text_;
  }
  host_has_text_ = true;
}

void Splitter::host_brace(const Unit& brace) {
  if (brace.kind == Unit::Kind::kOpen) {
    start_declaration(brace);
    ++depth_;
    return;
  }
  if (depth_ > 0) {
    --depth_;
    if (depth_ == 0) declaration_.reset();
  } else {
    extra_brace(brace);
  }
}

// A `}` too many. What stands before it, after a tile function, was probably part of that function:
// it is no host text.
void Splitter::extra_brace(const Unit& brace) {
  if (!extra_brace_known_) {
    extra_brace_known_ = true;
    diags_.report<diag::ExtraBrace>(span(brace.begin, brace.end))
        .help("remove it, or add the `{{` it should close")
        .emit();
  }
  declaration_.reset();
  const bool after_tile =
      !out_.regions.empty() && std::holds_alternative<TileText>(out_.regions.back());
  if (!after_tile) return;
  host_has_text_ = false;
  host_begin_.reset();
}

bool Splitter::step_name(const Unit& name) {
  const std::string_view word = text_.substr(name.begin, name.end - name.begin);
  if (word == "__co__" || (word == "__co_device__" && depth_ == 0)) {
    start_tile(name, word == "__co_device__");
  } else if (word == "__cok__") {
    end_host(name.begin);
    read_kernel(name.begin);
  } else if (word == "constexpr" && depth_ == 0 && !declaration_ && begins_constant(name.begin)) {
    end_host(name.begin);
    read_constant(name.begin);
  } else if (word == "__device__" && depth_ == 0) {
    const std::size_t begin = declaration_.value_or(name.begin);
    end_host(begin);
    read_device(begin);
  } else {
    start_declaration(name);
    if (declaration_ == name.begin) check_misspelt(name, word);
  }
  return true;
}

// `__coo__ void f(...)` is no declaration of C++: without this it would be left to its compiler.
void Splitter::check_misspelt(const Unit& name, std::string_view word) {
  if (!word.starts_with('_')) return;
  std::string letters(word);
  std::erase(letters, '_');
  const std::string suggestion = did_you_mean(letters == "co" ? "__co__" : word, {"__co__"});
  if (suggestion.empty()) return;
  diags_.report<diag::TileFunctionMisspelt>(span(name.begin, name.end), word)
      .help("{}", suggestion)
      .emit();
}

// What an included file may not hold; its functions and macros are all that is wanted of it.
void Splitter::refuse_in_included(std::size_t begin) {
  Lexer lexer(sources_, file_, begin, text_.size(), nullptr);
  const Token token = text_[begin] == '#' ? Token{} : lexer.next();
  const bool is_pragma = text_[begin] == '#';
  const Span place = is_pragma ? span(begin, begin + 1) : token.span;
  diags_.report<diag::IncludeHoldsCode>(place, is_pragma ? std::string_view("#pragma") : token.text)
      .label(preprocessor_.included_at(), "included here")
      .help("kernels and host code belong into the file that is compiled")
      .emit();
  preprocessor_.stop();
}

// Closes the host region under way, which ends before `end`.
void Splitter::end_host(std::size_t end) {
  if (declaration_ && *declaration_ == end) host_has_text_ = text_before_declaration_;
  if (is_included_) {
    if (host_has_text_) refuse_in_included(*host_begin_);
    host_has_directives_ = false;
    host_has_text_ = false;
  }
  if (host_has_text_ || host_has_directives_) {
    out_.regions.emplace_back(ast::HostText{span(host_begin_.value_or(end), end)});
    bare_.push_back(!host_has_text_);
  }
  host_has_text_ = false;
  host_has_directives_ = false;
  host_begin_.reset();
  declaration_.reset();
}

void Splitter::add(TextRegion region, std::size_t end) {
  out_.regions.push_back(std::move(region));
  bare_.push_back(false);
  at_ = end;
  line_start_ = false;
}

void Splitter::drop_bare_directives() {
  bool only_tiles = true;
  for (std::size_t i = 0; i < out_.regions.size(); ++i) {
    only_tiles = only_tiles && (bare_[i] || std::holds_alternative<TileText>(out_.regions[i]));
  }
  if (!only_tiles) return;
  std::vector<TextRegion> kept;
  for (std::size_t i = 0; i < out_.regions.size(); ++i) {
    if (!bare_[i]) kept.push_back(std::move(out_.regions[i]));
  }
  out_.regions = std::move(kept);
}

// ---- Device text and kernel blocks ----

void Splitter::report_unclosed(const BraceStack& braces, std::size_t end) {
  if (preprocessor_.stopped() || swallowed_rest_) return;
  diags_.report<diag::MissingBrace>(braces.unclosed())
      .label(span(end, end), "it is still open here")
      .help("add the missing `}}`")
      .emit();
}

// A declaration ends with its `;`, or with the `}` of its body.
void Splitter::read_device(std::size_t begin) {
  BraceStack braces(sources_);
  bool initialiser = false;
  std::size_t end = at_;
  while (true) {
    const Unit next = unit();
    if (next.kind == Unit::Kind::kEnd) break;
    end = next.end;
    if (next.kind == Unit::Kind::kEqual && braces.depth() == 0) initialiser = true;
    if (next.kind == Unit::Kind::kOpen) braces.open(span(next.begin, next.end));
    if (next.kind == Unit::Kind::kSemicolon && braces.depth() == 0) break;
    if (next.kind != Unit::Kind::kClose) continue;
    braces.close(span(next.begin, next.end), next.first_on_line);
    if (braces.depth() == 0 && !initialiser) break;
  }
  if (braces.depth() > 0) report_unclosed(braces, end);
  const std::size_t after = text_.find_first_not_of(" \t\r\n", end);
  if (after != std::string_view::npos && text_[after] == ';') end = after + 1;
  add(ast::DeviceText{span(begin, end)}, end);
}

void Splitter::read_kernel(std::size_t begin) {
  BraceStack braces(sources_);
  std::size_t content = at_;
  std::size_t content_end = at_;
  std::size_t end = at_;
  while (true) {
    const Unit next = unit();
    if (next.kind == Unit::Kind::kEnd) break;
    if (braces.depth() == 0 && next.kind != Unit::Kind::kOpen) {
      const std::string_view seen = text_.substr(next.begin, next.end - next.begin);
      diags_
          .report<diag::UnexpectedToken>(span(next.begin, next.end), "`{` after `__cok__`",
                                         format("`{}`", seen))
          .emit();
      end = next.begin;
      break;
    }
    if (next.kind == Unit::Kind::kOpen) {
      if (braces.depth() == 0) content = next.end;
      braces.open(span(next.begin, next.end));
    }
    content_end = next.begin;
    end = next.end;
    if (next.kind == Unit::Kind::kClose)
      braces.close(span(next.begin, next.end), next.first_on_line);
    if (braces.depth() == 0) break;
  }
  if (braces.depth() > 0) report_unclosed(braces, end);
  content_end = std::max(content, content_end);
  add(ast::KernelBlock{span(begin, end), span(content, content_end)}, end);
}

// ---- Constants ----

// Behind a constant without its `;`.
bool begins_region(const Token& token) {
  const bool is_word = token.word == Word::kTemplate || token.word == Word::kConstexpr;
  return token.word == Word::kCo || token.word == Word::kCoDevice || (is_word && token.line_start);
}

// `constexpr int NAME =` of an integer, a bool or a type, in words that both languages have: all
// others are host text.
bool Splitter::begins_constant(std::size_t begin) const {
  Lexer lexer(sources_, file_, begin, text_.size(), nullptr);
  static_cast<void>(lexer.next());
  const Token type = lexer.next();
  const auto dtype = dtype_from_name(type.text);
  if (type.text != "type" && !(dtype && (is_integer(*dtype) || *dtype == DType::kBool))) {
    return false;
  }
  Token token = lexer.next();
  // Neither is C++ without a name or a value.
  if (token.kind == TokenKind::kEqual) return true;
  if (token.kind != TokenKind::kIdentifier) return false;
  token = lexer.next();
  if (token.kind == TokenKind::kSemicolon) return true;
  if (token.kind != TokenKind::kEqual) return false;
  while (token.kind != TokenKind::kEnd && token.kind != TokenKind::kSemicolon &&
         !begins_region(token)) {
    const bool is_octal = token.kind == TokenKind::kInteger && token.text.size() > 1 &&
                          token.text[0] == '0' && is_digit(token.text[1]);
    if (token.kind == TokenKind::kColonColon || token.kind == TokenKind::kLeftBrace || is_octal ||
        token.kind == TokenKind::kUnknown || token.kind == TokenKind::kString ||
        token.text == "sizeof" || token.text == "static_cast") {
      return false;
    }
    token = lexer.next();
  }
  return true;
}

void Splitter::read_constant(std::size_t begin) {
  TileText tile;
  tile.kind = TileText::Kind::kConstant;
  Lexer lexer(sources_, file_, begin, text_.size(), &diags_);
  tile.tokens.push_back(lexer.next());
  std::size_t budget = Expander::kTokensMax;
  Expander expander(
      {sources_, preprocessor_.macros(), diags_}, [&]() { return raw_token(lexer); },
      &out_.expansions, &budget);
  after_statement_ = false;
  std::size_t end = begin;
  while (true) {
    const Token token = expander.next();
    if (token.kind == TokenKind::kEnd || begins_region(token)) break;
    tile.tokens.push_back(token);
    end = std::max<std::size_t>(end, token.definition.valid() ? end : token.span.end);
    if (token.kind == TokenKind::kSemicolon) break;
  }
  tile.span = span(begin, end);
  tile.unreadable = expander.failed() || preprocessor_.stopped();
  close_tile(tile, BraceStack(sources_));
  add(std::move(tile), end);
}

// ---- Tile functions ----

// At `__co__` or `__co_device__`; a `template` and a `requires` before it are a part of the
// function.
void Splitter::start_tile(const Unit& word, bool is_device) {
  const bool has_template =
      declaration_ && depth_ == 0 && text_.substr(*declaration_).starts_with("template") &&
      !is_name_char(text_[*declaration_ + std::string_view("template").size()]);
  std::size_t begin = word.begin;
  if (has_template) {
    begin = *declaration_;
    end_host(begin);
  } else {
    const bool refused = check_specifiers(begin);
    end_host(refused ? *declaration_ : begin);
  }
  if (is_included_ && !is_device) return refuse_in_included(word.begin);
  read_tile(begin, is_device);
}

// What the command line says of a template's parameters is no macro in that function; those of a
// kernel are bound by it.
std::vector<Macro*> Splitter::hide_parameters(std::size_t begin, TileText& tile) {
  std::vector<Macro*> hidden;
  Lexer lexer(sources_, file_, begin, text_.size(), nullptr);
  Token last = lexer.next();
  if (last.word != Word::kTemplate) return hidden;
  const bool is_kernel = tile.kind == TileText::Kind::kKernel;
  const Word end = is_kernel ? Word::kCo : Word::kCoDevice;
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd && token.word != end;
       token = lexer.next()) {
    const bool names = last.text == "type" || dtype_from_name(last.text).has_value();
    last = token;
    if (!names || token.kind != TokenKind::kIdentifier) continue;
    Macro* macro = preprocessor_.macros().hide(std::string(token.text));
    if (macro == nullptr) continue;
    hidden.push_back(macro);
    if (!is_kernel) continue;
    macro->asked_for = true;
    BoundText bound{macro->name, {}};
    const Span body = macro->body_span;
    Lexer value(sources_, body.file, body.begin, body.end, &diags_);
    do {
      bound.tokens.push_back(value.next());
    } while (bound.tokens.back().kind != TokenKind::kEnd);
    tile.bound.push_back(std::move(bound));
  }
  return hidden;
}

// Reports words before `__co__`; true when there are any.
bool Splitter::check_specifiers(std::size_t co) {
  if (!declaration_ || depth_ > 0) return false;
  const std::size_t end = skip_name(text_, *declaration_);
  const Span first = span(*declaration_, std::max(end, *declaration_ + 1));
  const std::string_view before = text_.substr(*declaration_, co - *declaration_);
  const auto newline = before.find('\n');
  const std::string_view shown = newline == std::string_view::npos ? before : sources_.text(first);
  const std::size_t size = shown.find_last_not_of(" \t\r") + 1;
  diags_.report<diag::TileFunctionSpecifier>(first, shown.substr(0, size))
      .help("a tile function begins with `__co__`")
      .emit();
  return true;
}

Token Splitter::raw_token(Lexer& lexer) {
  while (lexer.at_line_start_hash()) {
    // `#` is an operator too: at the begin of a line it may go on with the statement above.
    const std::size_t hash = lexer.position();
    const bool known = Preprocessor::is_directive(text_, hash);
    if (!known && !(after_statement_ && preprocessor_.is_unknown_directive(hash))) break;
    const Preprocessor::Outcome outcome = preprocessor_.directive(lexer.position());
    lexer.jump(preprocessor_.stopped() ? text_.size() : outcome.next);
    if (outcome.pragma) return *outcome.pragma;
  }
  const Token token = lexer.next();
  after_statement_ = token.kind == TokenKind::kSemicolon || token.kind == TokenKind::kLeftBrace ||
                     token.kind == TokenKind::kRightBrace;
  return token;
}

// `__co__` further right than the function around it: not the next function after a missing `}`.
bool Splitter::nests(const Token& co, const TileText& tile) const {
  if (!co.line_start) return true;
  const auto column = [&](const Token& token) {
    return token.span.begin - sources_.line_begin(file_, sources_.line_of(file_, token.span.begin));
  };
  return column(co) > column(tile.tokens.front());
}

// The begin of another region means that a `}` is missing, unless it is clearly nested, which the
// parser reports.
bool Splitter::begins_other_region(const Token& token, const TileText& tile) const {
  if (token.kind != TokenKind::kIdentifier || token.definition.valid()) return false;
  if (token.word == Word::kCo || (token.word == Word::kTemplate && token.line_start)) {
    return !nests(token, tile);
  }
  if (token.word == Word::kCok || token.word == Word::kCoDevice) {
    return true;
  }
  const bool main = token.text == "main" && !tile.tokens.empty() &&
                    tile.tokens.back().text == "int" && tile.tokens.back().line_start;
  return main || token.text == "__device__" || token.text == "__global__";
}

void Splitter::read_tile(std::size_t begin, bool is_device) {
  TileText tile;
  tile.kind = is_device ? TileText::Kind::kFunction : TileText::Kind::kKernel;
  const std::vector<Macro*> hidden = hide_parameters(begin, tile);
  Lexer lexer(sources_, file_, begin, text_.size(), &diags_);
  tile.tokens.push_back(lexer.next());
  std::size_t budget = Expander::kTokensMax;
  Expander expander(
      {sources_, preprocessor_.macros(), diags_}, [&]() { return raw_token(lexer); },
      &out_.expansions, &budget);
  BraceStack braces(sources_);
  const std::size_t errors_before = diags_.error_count();
  after_statement_ = false;
  std::size_t end = begin;
  bool in_head = tile.tokens.front().word == Word::kTemplate;
  while (true) {
    const Token token = expander.next();
    const bool own = in_head && (token.word == Word::kCo || token.word == Word::kCoDevice);
    if (own) in_head = false;
    if (token.kind == TokenKind::kEnd || (!own && begins_other_region(token, tile))) {
      if (token.text == "main") tile.tokens.pop_back();
      end = token.text == "main" ? tile.tokens.back().span.end : token.span.begin;
      break;
    }
    tile.tokens.push_back(token);
    end = token.span.end;
    if (token.kind == TokenKind::kLeftBrace) braces.open(token.span);
    if (ends_name_list(tile.tokens)) braces.forget();
    if (token.kind == TokenKind::kRightBrace) {
      if (!braces.close(token.span, token.line_start) || braces.depth() == 0) break;
    }
    if (token.kind == TokenKind::kSemicolon && braces.depth() == 0) {
      extra_brace_known_ = true;  // its body, if any, looks like stray host text
      break;
    }
  }
  tile.span = span(begin, std::max(begin, end));
  tile.unreadable = expander.failed() || preprocessor_.stopped();
  swallowed_rest_ = lexer.swallowed_rest();
  for (Macro* macro : hidden) preprocessor_.macros().restore(macro);
  close_tile(tile, braces);
  tile.has_errors = diags_.error_count() != errors_before;
  add(std::move(tile), end);
}

void Splitter::close_tile(TileText& tile, const BraceStack& braces) {
  const Span end = span(tile.span.end, tile.span.end);
  if (braces.depth() > 0 && !tile.unreadable) report_unclosed(braces, tile.span.end);
  Token token;
  token.span = end;
  token.line_start = true;
  token.kind = TokenKind::kRightBrace;
  token.text = "}";
  tile.tokens.insert(tile.tokens.end(), braces.depth(), token);
  token.kind = TokenKind::kEnd;
  token.text = {};
  tile.tokens.push_back(token);
}

// The name in front of the parameters, and behind the type of the result.
std::string function_name(const TileText& tile) {
  bool in_signature = false;
  int brackets = 0;
  for (std::size_t i = 1; i < tile.tokens.size(); ++i) {
    const Token& token = tile.tokens[i];
    in_signature = in_signature || tile.tokens[i - 1].word == Word::kCoDevice;
    if (token.kind == TokenKind::kLeftBracket) ++brackets;
    if (token.kind == TokenKind::kRightBracket) --brackets;
    if (in_signature && brackets == 0 && token.kind == TokenKind::kLeftParen) {
      return std::string(tile.tokens[i - 1].text);
    }
  }
  return "";
}

}  // namespace

FileNames names_of(const SplitFile& split) {
  FileNames out;
  for (const TextRegion& region : split.regions) {
    const auto* tile = std::get_if<TileText>(&region);
    if (tile == nullptr) continue;
    if (tile->kind == TileText::Kind::kFunction) out.functions.insert(function_name(*tile));
    const auto& tokens = tile->tokens;
    const bool is_constant = tile->kind == TileText::Kind::kConstant && tokens.size() > 2;
    if (!is_constant || tokens[1].text != "type") continue;
    for (std::size_t i = 2; i < tokens.size(); ++i) {
      if (i == 2 || tokens[i - 1].kind == TokenKind::kComma) {
        out.types.insert(std::string(tokens[i].text));
      }
    }
  }
  return out;
}

SplitFile split_regions(const Sources& sources, FileId file, Preprocessor& preprocessor,
                        Diagnostics& diags) {
  return Splitter(sources, file, preprocessor, diags).run();
}

}  // namespace kiln::syntax
