#include "syntax/macros.h"

#include <algorithm>
#include <utility>

#include "syntax/lexer.h"

namespace kiln::syntax {

void MacroTable::define(Macro macro) {
  const Macro* known = find(macro.name);
  if (known != nullptr && known->pinned && !macro.pinned) return;
  macros_.push_back(std::move(macro));
  by_name_[macros_.back().name] = &macros_.back();
}

void MacroTable::undefine(std::string_view name) {
  const Macro* known = find(name);
  if (known != nullptr && !known->pinned) by_name_.erase(std::string(name));
}

std::vector<const Macro*> MacroTable::never_asked_for() const {
  std::vector<const Macro*> out;
  for (const Macro& macro : macros_) {
    if (macro.pinned && !macro.asked_for) out.push_back(&macro);
  }
  return out;
}

std::vector<const Macro*> MacroTable::all() const {
  std::vector<const Macro*> out;
  for (const Macro& macro : macros_) {
    const auto found = by_name_.find(macro.name);
    if (found != by_name_.end() && found->second == &macro) out.push_back(&macro);
  }
  return out;
}

Macro* MacroTable::hide(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || !found->second->pinned || found->second->function_like) {
    return nullptr;
  }
  Macro* macro = found->second;
  by_name_.erase(found);
  return macro;
}

const Macro* MacroTable::look_up(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

Macro* MacroTable::find(std::string_view name) {
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) return nullptr;
  found->second->asked_for = true;
  return found->second;
}

Expander::Expander(const MacroSurroundings& surroundings, std::function<Token()> raw,
                   std::vector<ast::Expansion>* expansions, std::size_t* budget, std::size_t depth)
    : sources_(surroundings.sources),
      macros_(surroundings.macros),
      diags_(surroundings.diags),
      raw_(std::move(raw)),
      expansions_(expansions),
      budget_(budget),
      depth_(depth) {}

Expander::~Expander() { fail(); }

// Gives up on macros; every frame's macro becomes usable again.
void Expander::fail() {
  failed_ = true;
  for (const Frame& frame : frames_) {
    if (frame.macro != nullptr) frame.macro->active = false;
  }
  frames_.clear();
}

Token Expander::read() {
  while (!frames_.empty()) {
    Frame& top = frames_.back();
    if (top.at < top.tokens.size()) return top.tokens[top.at++];
    if (top.macro != nullptr) top.macro->active = false;
    frames_.pop_back();
  }
  return raw_();
}

void Expander::unread(Token token) {
  frames_.push_back({.tokens = {std::move(token)}, .at = 0, .macro = nullptr});
}

Token Expander::next() {
  while (true) {
    Token token = read();
    if (failed_ || token.kind != TokenKind::kIdentifier || token.no_expand) return token;
    Macro* macro = macros_.find(token.text);
    if (macro == nullptr) return token;
    if (macro->active) {
      token.no_expand = true;
      return token;
    }
    if (!expand(token, *macro)) return token;
  }
}

// Reports a macro that a tile function cannot use.
bool Expander::refuse(const Token& name, const Macro& macro) {
  if (macro.unsupported.empty()) return false;
  diags_.report<diag::MacroUnsupported>(name.span, macro.name, macro.unsupported)
      .label(macro.definition, "`{}` is defined here", macro.name)
      .emit();
  fail();
  return true;
}

// Replaces the use of `macro` at `name` by a frame of its tokens. False when `name` stays as it is.
bool Expander::expand(const Token& name, Macro& macro) {
  if (refuse(name, macro)) return false;
  Span use = name.span;
  Arguments arguments;
  if (macro.function_like) {
    Token open = read();
    const bool is_call = open.kind == TokenKind::kLeftParen;
    if (!is_call) {
      unread(std::move(open));
      return false;
    }
    if (!collect(name, macro, arguments, use)) return false;
  }
  lex_body(macro);
  if (refuse(name, macro)) return false;
  return substitute(name, macro, arguments, use);
}

void Expander::lex_body(Macro& macro) {
  if (macro.lexed) return;
  macro.lexed = true;
  Lexer lexer(sources_, macro.body_span.file, macro.body_span.begin, macro.body_span.end, &diags_);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) {
    if (token.kind == TokenKind::kHashHash) macro.unsupported = "it pastes tokens with `##`";
    token.definition = token.span;
    macro.body.push_back(token);
  }
}

// Reads the arguments after `(`. A use that is never closed would swallow the rest of the file, so
// it ends where a tile function, or the block it stands in, must have ended.
bool Expander::collect(const Token& name, const Macro& macro, Arguments& arguments, Span& use) {
  arguments.emplace_back();
  int parens = 0;
  int braces = 0;
  while (true) {
    Token token = read();
    if (token.kind == TokenKind::kLeftParen) ++parens;
    if (token.kind == TokenKind::kLeftBrace) ++braces;
    if (token.kind == TokenKind::kRightBrace) --braces;
    if (token.kind == TokenKind::kEnd || token.word == Word::kCo || braces < 0) {
      diags_.report<diag::MacroUnterminated>(name.span, macro.name)
          .label(macro.definition, "`{}` is defined here", macro.name)
          .help("close its arguments with `)`")
          .emit();
      fail();
      unread(std::move(token));
      return false;
    }
    if (token.kind == TokenKind::kRightParen && parens-- == 0) {
      use = cover(use, token.span);
      break;
    }
    if (token.kind == TokenKind::kComma && parens == 0 && braces == 0) {
      arguments.emplace_back();
    } else {
      arguments.back().push_back(token);
    }
  }
  return check_count(name, macro, arguments);
}

bool Expander::check_count(const Token& name, const Macro& macro, Arguments& arguments) {
  const std::size_t wanted = macro.params.size();
  const bool none = arguments.size() == 1 && arguments.front().empty();
  if (arguments.size() == wanted || (wanted == 0 && none)) return true;
  const std::size_t got = none ? 0 : arguments.size();
  diags_.report<diag::MacroArguments>(name.span, macro.name, counted(wanted, "argument"), got)
      .label(macro.definition, "`{}` is defined here", macro.name)
      .emit();
  Token unknown = name;  // already reported: the parser passes over it in silence
  unknown.kind = TokenKind::kUnknown;
  arguments.resize(wanted, {unknown});
  return true;
}

std::vector<Token> Expander::expand_argument(const std::vector<Token>& argument) {
  std::size_t at = 0;
  const auto raw = [&]() { return at < argument.size() ? argument[at++] : Token(); };
  Expander inner({sources_, macros_, diags_}, raw, expansions_, budget_,
                 depth_ + frames_.size() + 1);
  std::vector<Token> expanded;
  for (Token token = inner.next(); token.kind != TokenKind::kEnd; token = inner.next()) {
    expanded.push_back(token);
  }
  failed_ = failed_ || inner.failed();
  return expanded;
}

bool Expander::spend(std::size_t tokens, Span use) {
  if (tokens <= *budget_) {
    *budget_ -= tokens;
    return true;
  }
  diags_.report<diag::MacroTooLarge>(use, kTokensMax).emit();
  fail();
  return false;
}

bool Expander::substitute(const Token& name, Macro& macro, const Arguments& arguments, Span use) {
  if (depth_ + frames_.size() >= kDepthMax) {
    diags_.report<diag::MacroTooDeep>(use, macro.name, kDepthMax)
        .label(macro.definition, "`{}` is defined here", macro.name)
        .emit();
    fail();
    return false;
  }
  if (expansions_ != nullptr && !name.definition.valid()) {
    expansions_->push_back({macro.name, use, macro.definition});
  }
  Arguments expanded;
  for (const auto& argument : arguments) {
    if (!failed_) expanded.push_back(expand_argument(argument));
  }
  if (failed_) {
    fail();
    return false;
  }
  Frame frame{.tokens = {}, .at = 0, .macro = &macro};
  for (const Token& token : macro.body) {
    const auto param = token.kind == TokenKind::kIdentifier
                           ? std::find(macro.params.begin(), macro.params.end(), token.text)
                           : macro.params.end();
    if (param == macro.params.end()) {
      if (!spend(1, use)) return false;
      frame.tokens.push_back(token);
      frame.tokens.back().span = use;
      frame.tokens.back().line_start = false;
      continue;
    }
    const auto& argument = expanded[static_cast<std::size_t>(param - macro.params.begin())];
    if (!spend(argument.size(), use)) return false;
    frame.tokens.insert(frame.tokens.end(), argument.begin(), argument.end());
  }
  if (!frame.tokens.empty()) {
    frame.tokens.front().line_start = name.line_start;
    frame.tokens.front().space_before = name.space_before;
  }
  macro.active = true;
  frames_.push_back(std::move(frame));
  return true;
}

}  // namespace kiln::syntax
