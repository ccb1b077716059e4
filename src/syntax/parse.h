// The parser of one tile function; its parts are in parse_*.cpp, by construct. Private to syntax/.
//
// Recursive descent over expanded tokens. A mistake is reported once and starts a panic: until the
// statement is over, nothing is consumed or reported any more, and every loop stops. `recover` then
// moves to the next statement. So each parse function can be written as if the input were right.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/diagnostics.h"
#include "syntax/ast.h"
#include "syntax/parser.h"
#include "syntax/regions.h"
#include "syntax/token.h"

namespace kiln::syntax {

class Parser {
 public:
  Parser(const Sources& sources, const TileText& tile, const FileNames& names, ast::Ast& tree,
         Diagnostics& diags);

  // `bound`: what the command line says of the template's parameters.
  using Bound = std::map<std::string, ast::ExprId>;
  [[nodiscard]] ast::TileFunction function(const Bound& bound);
  // All of the text: a value of the command line, `constexpr int TILE = 64;`.
  [[nodiscard]] ast::ExprId bound_value();
  [[nodiscard]] ast::StmtId constant_region();

  // `croq intrinsic prefix p_`: the rest of a pragma line.
  [[nodiscard]] static std::optional<ast::PragmaStmt> pragma(const Sources& sources,
                                                             const Token& token,
                                                             Diagnostics& diags);

 private:
  using ExprId = ast::ExprId;
  using StmtId = ast::StmtId;
  using Name = ast::Name;

  // What surrounds an expression and takes a sign away from it.
  struct Context {
    bool in_angles = false;       // `>` closes: .swiz<N>
    bool in_bars = false;         // `|` closes: |s|
    bool before_body = false;     // `{` begins a body: foreach k in n {
    bool in_subscript = false;    // `(2)` may mean element 2 of the base: s[(2), 4]
    bool before_extents = false;  // `[` begins the extents of an array: mma.fill.f32 0 [2, 4]
  };
  class ContextScope {
   public:
    ContextScope(Parser& parser, Context context) : parser_(parser), saved_(parser.context_) {
      parser.context_ = context;
    }
    ~ContextScope() { parser_.context_ = saved_; }
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;

   private:
    Parser& parser_;
    Context saved_;
  };
  class DepthScope {
   public:
    explicit DepthScope(Parser& parser) : parser_(parser) { parser.enter(); }
    ~DepthScope() { --parser_.depth_; }
    DepthScope(const DepthScope&) = delete;
    DepthScope& operator=(const DepthScope&) = delete;

   private:
    Parser& parser_;
  };
  // A word that is about to be used as a statement's name in messages, with its place.
  struct Operation {
    std::string text;  // "mma.row.row"
    Span span;
  };

  // parse_core.cpp: tokens, mistakes, recovery.
  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  [[nodiscard]] bool at(TokenKind kind, std::size_t ahead = 0) const;
  [[nodiscard]] bool at(Word word, std::size_t ahead = 0) const;
  [[nodiscard]] bool at_name(std::size_t ahead = 0) const;
  [[nodiscard]] bool at_member(Word word) const;
  [[nodiscard]] bool at_dtype(std::size_t ahead = 0) const;
  const Token& advance();
  bool accept(TokenKind kind);
  bool accept(Word word);
  bool accept_member(Word word);
  bool expect(TokenKind kind);
  bool expect_word(Word word);
  bool open(TokenKind kind);
  bool close(TokenKind kind, const Token& opener);
  void expect_semicolon();
  [[nodiscard]] Span last_span() const;
  [[nodiscard]] Span since(const Token& first) const;
  void unexpected(std::string_view wanted, const std::string& help = "");
  void unexpected_at(Span span, std::string_view wanted);
  [[nodiscard]] std::string found() const;
  void recover();
  [[nodiscard]] bool at_statement_word() const;
  void enter();
  void give_up(Span span);
  [[nodiscard]] bool ok() const { return !panic_ && !done_; }
  [[nodiscard]] bool can_report() const { return ok() && !at(TokenKind::kUnknown); }
  template <class D, class... Args>
  void fail(Span span, const std::string& help, Args&&... args);
  Name name(std::string_view what);
  std::vector<Name> names(std::string_view what);
  std::vector<Name> braced_names(std::string_view what);
  std::string qualified_name(Span& span);
  std::optional<ast::Type> dtype(std::string_view what);
  ast::Type type_here();
  std::string string_literal();
  template <class T>
  ExprId expr(T node, Span span);
  template <class T>
  StmtId stmt(T node, const Token& first);
  void measure_height(ExprId id);
  [[nodiscard]] Span span_of(ExprId id) const { return tree_.exprs[id].span; }

  // parse_expr.cpp
  ExprId expression();
  ExprId expression(Context context);
  ExprId conditional();
  ExprId binary(int lowest);
  ExprId bits();
  ExprId compose();
  ExprId bound();
  ExprId unary();
  ExprId tight();
  ExprId prefix(ast::UnaryOp op, ExprId (Parser::*operand)());
  ExprId primary();
  ExprId literal();
  ExprId name_or_call();
  ExprId builtin_call(ast::Builtin builtin);
  ExprId parenthesised();
  ExprId measure();
  ExprId cast();
  ExprId infinity();
  ExprId select();
  ExprId device_call();
  ExprId function_call();
  ExprId constant_value();
  ExprId tile_value();
  ExprId integer();
  ExprId floating();
  std::vector<ExprId> list(TokenKind closer);
  std::vector<ExprId> bracketed_list(TokenKind opener);
  std::vector<ExprId> angle_list();
  ExprId angle_value();
  [[nodiscard]] std::optional<std::uint64_t> literal_value(ExprId id) const;

  // parse_view.cpp
  ExprId postfix();
  ExprId postfix_step(ExprId base, bool& more);
  ExprId member(ExprId base);
  ExprId view_op(ExprId base, ast::ViewOpKind kind, const Token& dot);
  ExprId element_of_block(ExprId base, const Token& dot);
  ExprId attach(ExprId base, Word word, const Token& dot);
  bool can_attach(ExprId base, Word word) const;
  void read_view_args(ast::ViewOp& op);
  void check_view(ExprId id);
  ast::FragRef frag_ref();
  ast::FragRef to_frag_ref(ExprId id);

  // parse_function.cpp
  void return_type(ast::ReturnType& result);
  ast::ShapeDecl shape_decl();
  ast::Dim dim();
  ast::Param param(bool of_device_function);
  void device_param_type(ast::Param& param);
  void params(ast::TileFunction& function);

  // parse_template.cpp
  void template_head(ast::Template& templ, const Bound& bound);
  ast::TemplateParam template_param(const Bound& bound);
  std::optional<ast::ConstantStmt::Kind> constant_kind(std::string_view what);

  // What may follow the first word of a statement, for it to be one (statement.def).
  static constexpr unsigned kAnything = 0;
  static constexpr unsigned kName = 1;
  static constexpr unsigned kParenthesis = 2;
  static constexpr unsigned kBrace = 4;
  static constexpr unsigned kDot = 8;
  static constexpr unsigned kNot = 16;
  struct WordRow {
    Word word;
    unsigned follow;
    StmtId (Parser::*parse)();
  };
  static const WordRow kWordRows[];

  // parse_stmt.cpp
  [[nodiscard]] bool follows(unsigned tokens) const;
  StmtId block();
  StmtId statement();
  StmtId statement_here();
  StmtId body();
  StmtId word_statement(Word word);
  StmtId name_statement();
  bool misspelt_statement();
  StmtId foreign_loop();
  StmtId nested_function();
  bool skip_group(TokenKind opener, TokenKind closer);
  [[nodiscard]] std::string statement_suggestion() const;
  StmtId assignment(const Token& first, ExprId target);
  StmtId named_operation(const Token& first, ExprId target);
  ast::AsmOperand asm_operand();
  std::vector<ast::AsmOperand> asm_operands();
  StmtId pragma_statement();

  // parse_decl.cpp
  StmtId declaration();
  StmtId scalar_decl(const Token& first, ast::ScalarDeclStmt decl);
  StmtId buffer_decl(const Token& first, ast::BufferDeclStmt decl);
  StmtId event_decl(const Token& first, ast::Storage storage, Span storage_span);
  StmtId frag_decl();
  StmtId mdspan_decl();
  StmtId mdspan_value(const Token& first, ast::MdspanDeclStmt decl);
  StmtId ituple_decl();
  ast::Declarator declarator();

  // parse_control.cpp
  StmtId attributed();
  StmtId expectation();
  std::vector<ast::Attribute> attributes();
  ast::Attribute attribute();
  StmtId parallel(std::vector<ast::Attribute> attributes);
  StmtId foreach (std::vector<ast::Attribute> attributes);
  ast::ParallelGroup parallel_group();
  void parallel_names(ast::ParallelGroup& group);
  void parallel_level(ast::ParallelGroup& group);
  std::optional<ast::Level> level();
  ast::WithItem with_item();
  ast::ForeachItem foreach_item();
  [[nodiscard]] bool in_is_missing() const;
  void foreach_range(ast::ForeachItem& item);
  ast::LoopSuffix loop_suffix();

  // parse_move.cpp
  StmtId move(const Token& first, Name handle);
  bool move_op(ast::MoveStmt& move, Operation& operation);
  void move_config(ast::MoveStmt& move);
  void pad_config(ast::MoveStmt& move);
  void transp_config(ast::MoveStmt& move);
  bool modifier(ast::MoveStmt& move, const Operation& operation);
  void eviction(ast::MoveStmt& move, ast::Eviction eviction, Span span);
  void source_and_target(ast::MoveStmt& move);
  void fail_reversed(const ast::BinaryExpr& reversed);
  ast::Swizzle swizzle(const Token& dot);
  ast::Sparsity sparsity(const Token& dot);
  void promote(ast::MoveStmt& move);

  // parse_mma.cpp
  StmtId mma(const Token& first, ExprId target);
  StmtId mma_fill(const Token& first, ExprId target);
  StmtId mma_load(const Token& first, ExprId target);
  StmtId mma_exec(const Token& first, ExprId target, std::vector<ast::Attribute> attributes);
  bool mma_majors(ast::MmaExecStmt& exec, Operation& operation);
  void mma_exec_operands(ast::MmaExecStmt& exec, const Operation& operation);
  StmtId mma_scale(const Token& first);
  StmtId mma_store(const Token& first);
  StmtId mma_wait(const Token& first);
  std::vector<ExprId> operands(const Operation& operation, std::size_t fewest, std::size_t most);
  StmtId frag_store();

  // parse_event.cpp
  ExprId event_ref();
  std::vector<ExprId> event_refs();

  // Statements that begin with a word of the language.
#define KILN_WORD_STATEMENT(word, follow, parse) StmtId parse();
#include "syntax/statement.def"

  const Sources& sources_;
  const std::vector<Token>& tokens_;
  const FileNames& names_;
  ast::Ast& tree_;
  Diagnostics& diags_;
  std::size_t at_ = 0;
  Context context_;
  int depth_ = 0;
  std::set<std::string, std::less<>> types_;  // names of types that the function declares
  std::string_view end_ = "the end of the tile function";  // what ends the text
  bool takes_types_ = false;                               // a type is a value here: `T == bf16`
  bool panic_ = false;                  // in a statement that is already known to be wrong
  bool done_ = false;                   // too deep or too many errors: nothing more is read
  bool header_ = false;                 // in the head of a statement with a body
  bool broken_head_ = false;            // of this statement: reported, the rest still read
  int open_groups_ = 0;                 // brackets opened and not yet closed in this statement
  Word misspelt_ = Word::kNone;         // what the current token was meant to be
  std::vector<std::uint16_t> heights_;  // of the expressions, by id
  std::uint32_t first_expr_ = 0;        // the id of heights_[0]
};

template <class D, class... Args>
void Parser::fail(Span span, const std::string& help, Args&&... args) {
  if (ok()) diags_.report<D>(span, std::forward<Args>(args)...).help_if(help).emit();
  panic_ = true;
}

// The expressions that a node refers to.
[[nodiscard]] std::vector<ast::ExprId> children(const ast::ExprNode& node);

template <class T>
ast::ExprId Parser::expr(T node, Span span) {
  const ExprId id = tree_.add_expr(std::move(node), span);
  heights_.push_back(0);
  measure_height(id);
  return id;
}

template <class T>
ast::StmtId Parser::stmt(T node, const Token& first) {
  return tree_.add_stmt(std::move(node), since(first));
}

}  // namespace kiln::syntax
