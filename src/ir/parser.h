// The reader of IR text, one class in three files:
//   parse.cpp        module and function headers, the cursor
//   parse_expr.cpp   expressions and types
//   parse_ops.cpp    operations, written once over their `fields`
//
// Every reading function returns false once a mistake has been reported; reading stops at the
// first.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "diag/diagnostics.h"
#include "ir/module.h"
#include "ir/names.h"
#include "ir/parse_lexer.h"

namespace kiln::ir {

class Parser {
 public:
  Parser(const std::vector<Token>& tokens, Diagnostics& diags) : tokens_(tokens), diags_(diags) {}

  [[nodiscard]] bool module(Module& out);
  // What reading failed with; only after module() returned false.
  [[nodiscard]] Unexpected<Reported> mistake() const { return *mistake_; }

 private:
  // Deeper nesting of brackets or regions is refused, and so are products of many terms: the text
  // may come from anywhere, the stack is finite.
  static constexpr int kDepthMax = 64;
  static constexpr std::size_t kTermsMax = 1024;
  static constexpr std::size_t kFactorsMax = 16;

  // --- cursor
  [[nodiscard]] const Token& peek() const { return tokens_[position_]; }
  [[nodiscard]] const Token& peek_next() const;
  const Token& advance();
  [[nodiscard]] bool at(std::string_view text) const;  // a word or punctuation
  bool accept(std::string_view text);
  bool expect(std::string_view text);
  bool take(TokenKind kind, std::string_view what, const Token*& out);
  bool expect_line_end();
  bool fail(Span span, std::string_view message);
  bool fail_expected(std::string_view what);
  bool fail_unknown(const Token& token, std::string_view what,
                    const std::vector<std::string>& known);

  // --- parse.cpp
  bool function(Function& out);
  bool function_header();
  bool params();
  bool param();
  bool skip_params();
  bool var_names();
  bool var_extents();
  bool named_indices();
  bool checks();
  bool define_value(const Token& name, Type type, OpId def, ValueId& out);

  // --- parse_expr.cpp
  bool expr(Expr& out);
  bool product(Expr& out);
  bool factor(Expr& out);
  [[nodiscard]] bool at_least_number() const;
  bool call(AtomKind kind, Expr& out);
  bool variable_or_number(Expr& out);
  bool sized(const Expr& expr, Span span);
  bool type(Type& out);
  bool view_type(Type& out);
  bool frag_type(Type& out);
  bool dtype(DType& out);

  // --- parse_ops.cpp
  bool region(RegionId& out);
  bool op(RegionId region);
  bool attributes(OpId id, Span& head);
  bool attribute(OpId id, std::vector<std::string_view>& seen);
  bool result(OpId id, const Token* name);

  template <class T>
  bool field_value(T& out);
  bool value(std::int64_t& out);
  bool value(double& out);
  bool value(std::string& out);
  bool value(Layout& out);
  bool value(Expr& out) { return expr(out); }
  bool value(ValueId& out);
  bool value(VarId& out);
  bool value(RegionId& out);
  bool value(const target::Mma*& out);
  bool value(const target::Copy*& out);
  template <class T>
  bool value(std::vector<T>& out);  // "[a, b]"
  template <class E>
  requires std::is_enum_v<E>
  bool value(E& out);

  const std::vector<Token>& tokens_;
  Diagnostics& diags_;
  std::size_t position_ = 0;
  int depth_ = 0;
  std::optional<Unexpected<Reported>> mistake_;
  Function* function_ = nullptr;
  std::unordered_map<std::string_view, ValueId> values_;
  std::unordered_map<std::string_view, VarId> vars_;
};

template <class T>
bool Parser::value(std::vector<T>& out) {
  out.clear();
  if (!expect("[")) return false;
  if (accept("]")) return true;
  do {
    T item{};
    if (!value(item)) return false;
    out.push_back(std::move(item));
  } while (accept(","));
  return expect("]");
}

// One of the names of an enumeration.
template <class E>
requires std::is_enum_v<E>
bool Parser::value(E& out) {
  const Token& token = peek();
  const std::optional<E> found = from_name<E>(token.text);
  const bool spelled = token.kind == TokenKind::kWord || token.kind == TokenKind::kPunctuation;
  if (!found || !spelled) {
    return fail_expected(format("one of {}", join(enum_names<E>(), ", ", [](const auto& row) {
                                  return format("`{}`", row.name);
                                })));
  }
  out = *found;
  advance();
  return true;
}

}  // namespace kiln::ir
