// The reader of formulas. Operators and functions are the rows of ir/binary.def and
// kiln/device/function.def; docs/cli.md has the grammar.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "ir/functions.h"
#include "reference/formula.h"

namespace kiln::reference {

namespace {

using ir::BinaryKind;
using ir::UnaryKind;

// How tightly an operator binds, as in C++; kPrimary: it is a function.
enum class Binding : std::uint8_t {
  kTernary,
  kLogicalOr,
  kLogicalAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPrimary,
};

struct BinaryRow {
  BinaryKind kind;
  std::string_view name;
  std::string_view text;
  Binding binding;
};

constexpr BinaryRow kBinaryRows[] = {
#define KILN_BINARY(Name, name, text, binding, ...) \
  {BinaryKind::k##Name, name, text, Binding::binding},
#include "ir/binary.def"
#undef KILN_BINARY
};

struct ReductionRow {
  std::string_view name;
  BinaryKind kind;
};

constexpr ReductionRow kReductions[] = {{"sum", BinaryKind::kAdd},
                                        {"prod", BinaryKind::kMul},
                                        {"min", BinaryKind::kMin},
                                        {"max", BinaryKind::kMax}};

constexpr std::string_view kWhere = "where";
constexpr std::string_view kInfinity = "inf";

// More than a person writes; evaluation recurses.
constexpr std::size_t kNodesMax = 1000;
constexpr int kDepthMax = 100;

constexpr std::string_view kExample =
    "write it like `output[m,n] = sum[k](lhs[m,k] * rhs[n,k]) + bias[n]`";

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `exp` and `__exp` alike.
bool calls(std::string_view text, std::string_view name, std::string_view spelling) {
  return text == name || (!spelling.empty() && text == spelling);
}

std::optional<UnaryKind> function_of_one(std::string_view text) {
  for (const ir::FunctionInfo& row : ir::all_functions()) {
    if (calls(text, row.name, row.spelling)) return row.kind;
  }
  return std::nullopt;
}

std::optional<BinaryKind> function_of_two(std::string_view text) {
  for (const BinaryRow& row : kBinaryRows) {
    if (row.binding != Binding::kPrimary) continue;
    if (calls(text, row.name, format("__{}", row.name))) return row.kind;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::string_view text, FileId file, Diagnostics& diags)
      : text_(text), file_(file), diags_(diags) {}

  Checked<Formula> formula() {
    do {
      skip_space();
      if (!out_.definitions.empty() && at_ == text_.size()) break;  // a last `;`
      if (const auto read = definition(); !read) return Unexpected{read.error()};
    } while (accept(';'));
    skip_space();
    if (at_ != text_.size()) return expected("an operator, `;` or the end");
    return std::move(out_);
  }

 private:
  using Node = Checked<NodeId>;

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  [[nodiscard]] bool sees(std::string_view token) {
    skip_space();
    return text_.substr(at_, token.size()) == token;
  }
  bool accept(char c) {
    const bool found = sees(std::string_view(&c, 1));
    at_ += found ? 1 : 0;
    return found;
  }
  [[nodiscard]] Span span_from(std::size_t begin) const {
    const auto end = std::max(at_, begin + 1);
    return {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  // What stands here: a name or a number as a whole.
  [[nodiscard]] std::string seen() const {
    if (at_ >= text_.size()) return "the end";
    std::size_t end = at_ + 1;
    const auto goes_on = [&](char c) { return is_name_start(c) || is_digit(c); };
    while (goes_on(text_[at_]) && end < text_.size() && goes_on(text_[end])) ++end;
    // Of text beyond ASCII all bytes of the character.
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return format("`{}`", text_.substr(at_, end - at_));
  }
  Unexpected<Reported> expected(std::string_view what) {
    skip_space();
    const auto begin = static_cast<std::uint32_t>(at_);
    return diags_.report<diag::ExpectSyntax>(Span{file_, begin, begin + 1}, seen(), what)
        .help("{}", kExample)
        .emit();
  }

  Node add(FormulaNode node) {
    if (out_.nodes.size() == kNodesMax) {
      return diags_.report<diag::ExpectTooLong>(node.span, kNodesMax, "operands and operators")
          .help("state parts of it first: `part[m] = ...; output[m] = part[m] + ...`")
          .emit();
    }
    out_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(out_.nodes.size() - 1);
  }

  Checked<std::string> name(Span& span, std::string_view what = "a name") {
    skip_space();
    const std::size_t begin = at_;
    if (at_ >= text_.size() || !is_name_start(text_[at_])) return expected(what);
    while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    span = span_from(begin);
    return std::string(text_.substr(begin, at_ - begin));
  }

  // `m, n]`, behind the bracket.
  Checked<void> names(std::vector<std::string>& out, std::vector<Span>& spans) {
    do {
      Span span;
      auto index = name(span, "the name of an index");
      if (!index) return Unexpected{index.error()};
      out.push_back(std::move(*index));
      spans.push_back(span);
    } while (accept(','));
    if (!accept(']')) return expected("`,` or `]`");
    return {};
  }

  Checked<void> definition() {
    Definition out;
    auto tensor = name(out.left.span);
    if (!tensor) return Unexpected{tensor.error()};
    out.left.name = std::move(*tensor);
    if (accept('[')) {
      const auto read = names(out.left.indices, out.left.index_spans);
      if (!read) return read;
    } else if (!sees("=")) {
      return expected(format("`[` or `=` after `{}`", out.left.name));
    }
    if (!accept('=')) return expected("`=` after the output");
    const auto right = expression();
    if (!right) return Unexpected{right.error()};
    out.right = *right;
    out_.definitions.push_back(std::move(out));
    return {};
  }

  Node expression() {
    if (++depth_ > kDepthMax) return expected("fewer brackets in brackets");
    auto condition = operators(Binding::kLogicalOr);
    skip_space();
    const std::size_t begin = at_;
    if (condition && accept('?')) {
      const Span span = span_from(begin);
      const auto yes = expression();
      if (!yes) return yes;
      if (!accept(':')) return expected("`:`");
      const auto no = expression();
      if (!no) return no;
      condition =
          add({.kind = NodeKind::kChoose, .span = span, .children = {*condition, *yes, *no}});
    }
    --depth_;
    return condition;
  }

  // The longest operator that begins here and binds at least so tightly.
  const BinaryRow* operator_here(Binding least) {
    const BinaryRow* found = nullptr;
    for (const BinaryRow& row : kBinaryRows) {
      if (row.binding == Binding::kPrimary || !sees(row.text)) continue;
      if (found == nullptr || row.text.size() > found->text.size()) found = &row;
    }
    return found != nullptr && found->binding >= least ? found : nullptr;
  }

  // Operands and operators of one level and tighter ones, from left to right.
  Node operators(Binding least) {
    auto left = unary();
    while (left) {
      const BinaryRow* row = operator_here(least);
      if (row == nullptr) break;
      const std::size_t begin = at_;
      at_ += row->text.size();
      const Span span = span_from(begin);
      const auto right = operators(static_cast<Binding>(static_cast<int>(row->binding) + 1));
      if (!right) return right;
      left = add({.kind = NodeKind::kBinary,
                  .span = span,
                  .children = {*left, *right},
                  .binary = row->kind});
    }
    return left;
  }

  Node unary() {
    skip_space();
    const std::size_t begin = at_;
    std::optional<UnaryKind> kind;
    if (accept('-')) kind = UnaryKind::kNegate;
    if (!kind && accept('!')) kind = UnaryKind::kNot;
    if (!kind && accept('~')) kind = UnaryKind::kBitNot;
    if (!kind) return primary();
    const Span span = span_from(begin);
    if (++depth_ > kDepthMax) return expected("fewer signs before signs");
    const auto operand = unary();
    --depth_;
    if (!operand) return operand;
    return add({.kind = NodeKind::kUnary, .span = span, .children = {*operand}, .unary = *kind});
  }

  Node primary() {
    skip_space();
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return number();
    if (accept('(')) {
      const auto inner = expression();
      if (inner && !accept(')')) return expected("an operator or `)`");
      return inner;
    }
    Span span;
    auto text = name(span, "a number, a name or `(`");
    if (!text) return Unexpected{text.error()};
    if (accept('[')) return subscripted(std::move(*text), span);
    if (accept('(')) return call(*text, span);
    if (*text == kInfinity) {
      return add({.span = span, .number = std::numeric_limits<double>::infinity(), .exact = true});
    }
    return add({.kind = NodeKind::kName, .span = span, .name = std::move(*text)});
  }

  Node number() {
    const std::size_t begin = at_;
    const std::string rest(text_.substr(at_, 64));
    char* end = nullptr;
    const double value = std::strtod(rest.c_str(), &end);
    const auto length = static_cast<std::size_t>(end - rest.c_str());
    if (length == 0) return expected("a number");
    const std::string digits = rest.substr(0, length);
    const bool whole = digits.find_first_not_of("0123456789") == digits.npos;
    at_ += length;
    FormulaNode node{.number = value, .whole = whole && value < 0x1p53};
    if (!whole && at_ < text_.size() && text_[at_] == 'f') {
      ++at_;
      node.number = round_to(DType::kF32, value);
      node.exact = true;
    }
    if (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) {
      return expected("an operator after the number");
    }
    node.span = span_from(begin);
    return add(std::move(node));
  }

  // `x[m, n + 1]`, or `sum[k](...)`.
  Node subscripted(std::string text, Span span) {
    const auto* reduction = std::ranges::find(kReductions, text, &ReductionRow::name);
    FormulaNode node{.kind = NodeKind::kRead, .span = span, .name = std::move(text)};
    const std::size_t begin = at_;
    if (reduction != std::end(kReductions) && is_reduction()) {
      at_ = begin;
      node.kind = NodeKind::kReduce;
      node.binary = reduction->kind;
      const auto read = names(node.indices, node.index_spans);
      if (!read) return Unexpected{read.error()};
      if (!accept('(')) return expected("`(`");
      const auto inner = expression();
      if (!inner) return inner;
      if (!accept(')')) return expected("an operator or `)`");
      node.children = {*inner};
      return add(std::move(node));
    }
    at_ = begin;
    do {
      const auto subscript = expression();
      if (!subscript) return subscript;
      node.children.push_back(*subscript);
    } while (accept(','));
    if (!accept(']')) return expected("`,` or `]`");
    return add(std::move(node));
  }

  // A tensor may be called `sum` as well: of a reduction a bracket follows.
  bool is_reduction() {
    const std::size_t close = text_.find(']', at_);
    if (close == text_.npos) return true;
    at_ = close + 1;
    return sees("(");
  }

  Node call(std::string_view text, Span span) {
    FormulaNode node{.kind = NodeKind::kUnary, .span = span};
    std::size_t operands = 1;
    if (text == kWhere) {
      node.kind = NodeKind::kChoose;
      operands = 3;
    } else if (const auto one = function_of_one(text)) {
      node.unary = *one;
    } else if (const auto two = function_of_two(text)) {
      node.kind = NodeKind::kBinary;
      node.binary = *two;
      operands = 2;
    } else if (const auto dtype = dtype_from_name(text)) {
      node.kind = NodeKind::kConvert;
      node.dtype = *dtype;
    } else {
      return unknown_function(std::string(text), span);
    }
    for (std::size_t i = 0; i < operands; ++i) {
      if (i != 0 && !accept(',')) {
        return expected(format("`,`: `{}` takes {} operands", text, operands));
      }
      const auto operand = expression();
      if (!operand) return operand;
      node.children.push_back(*operand);
    }
    if (!accept(')')) return expected("an operator or `)`");
    return add(std::move(node));
  }

  Unexpected<Reported> unknown_function(const std::string& text, Span span) {
    const std::vector<std::string> names = formula_functions();
    const std::string guess = did_you_mean(text, names);
    const std::string all = join(names, ", ", [](const auto& n) { return format("`{}`", n); });
    return diags_.report<diag::ExpectFunction>(span, text)
        .help_if(guess.empty() ? format("there are {}, and the names of types", all) : guess)
        .emit();
  }

  std::string_view text_;
  FileId file_;
  Diagnostics& diags_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Formula out_;
};

// Adds the factors below the node; false when it is no plain product.
bool add_factors(const Formula& formula, NodeId id, Einsum& out) {
  const FormulaNode& node = formula.nodes[id];
  if (node.kind == NodeKind::kBinary && node.binary == BinaryKind::kMul) {
    return add_factors(formula, node.children[0], out) &&
           add_factors(formula, node.children[1], out);
  }
  if (node.kind == NodeKind::kUnary && node.unary == UnaryKind::kNegate &&
      formula.nodes[node.children[0]].kind == NodeKind::kNumber) {
    out.scale = -out.scale;
    return add_factors(formula, node.children[0], out);
  }
  if (node.kind == NodeKind::kNumber) {
    out.scale *= node.number;
    return std::isfinite(node.number);
  }
  if (node.kind != NodeKind::kRead) return false;
  EinsumTerm term{.name = node.name, .span = node.span, .indices = {}, .index_spans = {}};
  for (const NodeId child : node.children) {
    if (formula.nodes[child].kind != NodeKind::kName) return false;
    term.indices.push_back(formula.nodes[child].name);
    term.index_spans.push_back(formula.nodes[child].span);
  }
  out.factors.push_back(std::move(term));
  return true;
}

}  // namespace

Checked<Formula> parse_formula(const std::string& text, Sources& sources, Diagnostics& diags) {
  const FileId file = sources.add("--expect", text);
  return Reader(sources.text(file), file, diags).formula();
}

std::vector<std::string> formula_functions() {
  std::vector<std::string> out;
  for (const ir::FunctionInfo& row : ir::all_functions()) out.emplace_back(row.name);
  for (const BinaryRow& row : kBinaryRows) {
    if (row.binding == Binding::kPrimary) out.emplace_back(row.name);
  }
  out.emplace_back(kWhere);
  for (const ReductionRow& row : kReductions) out.push_back(format("{}[...]", row.name));
  return out;
}

std::optional<Einsum> plain_product(const Formula& formula, const Definition& definition) {
  Einsum out;
  out.output = definition.left;
  if (!add_factors(formula, definition.right, out) || out.factors.empty()) return std::nullopt;
  return out;
}

}  // namespace kiln::reference
