// Macros and their expansion, token by token.
//
//   #define PAIR(a) ((a) * 2)
//   PAIR(n + 1)            gives   ( ( n + 1 ) * 2 )
//
// Tokens of a replacement carry the use as `span` and their place in the `#define` as `definition`;
// tokens of an argument keep the place where the user wrote them. A macro is not expanded within
// itself. Nothing is expanded in strings, which are single tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diag/diagnostics.h"
#include "support/source.h"
#include "syntax/ast.h"
#include "syntax/token.h"

namespace kiln::syntax {

struct Macro {
  std::string name;
  Span definition;  // of the name in the `#define`
  bool function_like = false;
  std::vector<std::string> params;
  std::string unsupported;  // why a tile function cannot use it; usually empty
  Span body_span;
  // Lexed at the first use: most macros of host code are not made of our tokens.
  bool lexed = false;
  std::vector<Token> body;
  bool active = false;  // being expanded now
  // From the command line: a `#define` or `#undef` of the same name in the file changes nothing.
  bool pinned = false;
  bool asked_for = false;  // by a directive, by text, by a template
};

class MacroTable {
 public:
  void define(Macro macro);
  void undefine(std::string_view name);
  [[nodiscard]] Macro* find(std::string_view name);  // null when not defined
  // The same for text that is not ours to expand: it asks for nothing.
  [[nodiscard]] const Macro* look_up(std::string_view name) const;
  // Takes a definition of the command line away, and gives it back. Null when there is none.
  [[nodiscard]] Macro* hide(const std::string& name);
  // Definitions of the command line whose names stand nowhere in what was read.
  [[nodiscard]] std::vector<const Macro*> never_asked_for() const;
  // All that are defined, in the order of their definitions.
  [[nodiscard]] std::vector<const Macro*> all() const;
  void restore(Macro* hidden) { by_name_[hidden->name] = hidden; }

 private:
  std::deque<Macro> macros_;  // addresses stay: an expansion under way may be redefined
  std::unordered_map<std::string, Macro*> by_name_;
};

// What every expansion of a file shares.
struct MacroSurroundings {
  const Sources& sources;
  MacroTable& macros;
  Diagnostics& diags;
};

class Expander {
 public:
  static constexpr std::size_t kDepthMax = 200;
  static constexpr std::size_t kTokensMax = 1'000'000;

  // `raw` gives the unexpanded tokens, kEnd at the end; `expansions` (may be null) receives every
  // use written by the user. `budget` counts down the tokens that macros may still produce.
  Expander(const MacroSurroundings& surroundings, std::function<Token()> raw,
           std::vector<ast::Expansion>* expansions, std::size_t* budget, std::size_t depth = 0);
  ~Expander();
  Expander(const Expander&) = delete;
  Expander& operator=(const Expander&) = delete;

  // The next token after expansion. After a reported failure macros are left alone.
  [[nodiscard]] Token next();
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct Frame {
    std::vector<Token> tokens;
    std::size_t at = 0;
    Macro* macro = nullptr;
  };
  using Arguments = std::vector<std::vector<Token>>;

  Token read();
  void unread(Token token);
  bool expand(const Token& name, Macro& macro);
  bool refuse(const Token& name, const Macro& macro);
  void lex_body(Macro& macro);
  bool collect(const Token& name, const Macro& macro, Arguments& arguments, Span& use);
  bool check_count(const Token& name, const Macro& macro, Arguments& arguments);
  std::vector<Token> expand_argument(const std::vector<Token>& argument);
  bool substitute(const Token& name, Macro& macro, const Arguments& arguments, Span use);
  bool spend(std::size_t tokens, Span use);
  void fail();

  const Sources& sources_;
  MacroTable& macros_;
  Diagnostics& diags_;
  std::function<Token()> raw_;
  std::vector<ast::Expansion>* expansions_;
  std::size_t* budget_;
  std::size_t depth_;
  std::vector<Frame> frames_;
  bool failed_ = false;
};

}  // namespace kiln::syntax
