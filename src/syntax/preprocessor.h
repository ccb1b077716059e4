// Preprocessor directives: which text is live, which macros exist.
//
//   #if ROWS % 16 != 0
//   #error "ROWS must be a multiple of 16"
//   #endif
//
// A directive is a `#` that comes first on its line, before one of the directive words; `#x` with
// any other name is an expression. Directives work everywhere in a file, macros are only expanded
// by whoever reads a tile function (macros.h). `#include "name.co"` reads another file: between
// functions, its functions and constants (regions.h), within one its directives alone. All other
// includes are left to the C++ compiler.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostics.h"
#include "support/source.h"
#include "syntax/include.h"
#include "syntax/lexer.h"
#include "syntax/macros.h"
#include "syntax/token.h"

namespace kiln::syntax {

class Preprocessor {
 public:
  static constexpr std::size_t kIncludesMax = 200;  // of one program

  // `read_included` may be empty: then nothing can be included.
  Preprocessor(Sources& sources, FileId file, const ReadIncluded& read_included, Diagnostics& diags)
      : sources_(sources), file_(file), read_included_(read_included), diags_(diags) {}

  // Handles every directive of `file`, which holds nothing else: the command line's definitions.
  void predefine(FileId file);

  // True when a directive's `#` stands at `at`; the caller knows that it is first on its line.
  [[nodiscard]] static bool is_directive(std::string_view text, std::size_t at);

  // True when what looks like a directive at `at` is neither one of ours nor one of C++.
  [[nodiscard]] bool is_unknown_directive(std::size_t at) const;

  struct Outcome {
    std::size_t next = 0;         // where live text goes on; the end of the file if it does not
    std::optional<Token> pragma;  // the line, when it was a `#pragma croq`
  };
  // `read_code` reads all of an included file, which is `file` while it does, and says whether there is code
  // in it: such a file is read once. Without `read_code` an included file may hold no code.
  using ReadCode = std::function<bool(FileId)>;
  [[nodiscard]] Outcome directive(std::size_t at, const ReadCode* read_code = nullptr);

  // At the end of the file: reports every `#if` still open.
  void finish();

  // An `#error` was reached: nothing after it is worth reading.
  [[nodiscard]] bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }
  // Where the file under way is included.
  [[nodiscard]] Span included_at() const { return inclusions_.back().span; }
  [[nodiscard]] MacroTable& macros() { return macros_; }

 private:
  struct Conditional {
    Span span;               // "#ifdef"
    std::string_view word;   // "ifdef"
    bool outer_live = true;  // the text around it is live
    bool taken = false;      // some branch was live
    bool live = false;       // this branch is
    Span else_span;          // of the `#else`, once seen
  };
  struct Line {
    std::string_view word;  // "define"
    Span span;              // "#define"
    std::size_t begin = 0;  // of what follows the word
    std::size_t end = 0;    // of the logical line
  };

  [[nodiscard]] bool live() const { return conditionals_.empty() || conditionals_.back().live; }
  [[nodiscard]] Line read_line(FileId file, std::size_t at) const;
  [[nodiscard]] std::string_view rest(FileId file, const Line& line) const;
  [[nodiscard]] std::size_t skip_dead(std::size_t at);
  bool handle_conditional(const Line& line);
  void handle_if(const Line& line);
  void handle_elif(const Line& line);
  void handle_else(const Line& line);
  void handle_live(FileId file, const Line& line, Outcome& outcome);
  void include(const Line& line);
  void read_directives();
  void define(FileId file, const Line& line);
  bool read_params(Lexer& lexer, Macro& macro);
  void undefine(FileId file, const Line& line);
  void line_directive(const Line& line);
  bool condition(const Line& line);
  bool is_defined(const Line& line);
  bool read_condition(const Line& line, std::vector<Token>& tokens);
  bool read_defined(Lexer& lexer, const Line& line, Token word, std::vector<Token>& tokens);

  Sources& sources_;
  FileId file_;  // being read: the program's or an included one
  const ReadIncluded& read_included_;
  const ReadCode* read_code_ = nullptr;
  Diagnostics& diags_;
  MacroTable macros_;
  std::vector<Conditional> conditionals_;
  struct Inclusion {
    FileId file;  // that includes
    Span span;    // `"name.co"`
  };
  std::vector<Inclusion> inclusions_;  // under way
  std::size_t includes_ = 0;           // so far
  std::set<std::string> with_code_;    // files that have been read
  bool predefining_ = false;
  bool stopped_ = false;
};

// Whether the file is text in UTF-8; reported otherwise.
bool check_text(const Sources& sources, FileId file, Diagnostics& diags);

// The end of the logical line at `at`: past continuations, multi-line comments and raw strings.
[[nodiscard]] std::size_t logical_line_end(std::string_view text, std::size_t at);

}  // namespace kiln::syntax
