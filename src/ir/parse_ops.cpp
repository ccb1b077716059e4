#include <algorithm>
#include <charconv>

#include "ir/parser.h"
#include "ir/reflect.h"
#include "layout/print.h"

namespace kiln::ir {

namespace {

OpData fresh_op(OpKind kind) {
  switch (kind) {
#define KILN_OP(Name, ...) \
  case OpKind::k##Name:    \
    return Name{};
#include "ir/op.def"
#undef KILN_OP
  }
  return NoOp{};
}

std::vector<std::string> field_names(const Op& op) {
  std::vector<std::string> names;
  for_each_field(op, [&](std::string_view key, const auto&) { names.emplace_back(key); });
  return names;
}

std::vector<std::string> mnemonics() {
  std::vector<std::string> names;
  for (const auto& row : enum_names<OpKind>()) names.emplace_back(row.name);
  return names;
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, id] : map) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Undoes the printer's escapes; false when one is malformed.
bool unescape(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return false;
    if (text[i] == '"' || text[i] == '\\') {
      out += text[i];
      continue;
    }
    if (text[i] != 'x' || i + 2 >= text.size()) return false;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

}  // namespace

// The operations up to the closing brace, which stays.
bool Parser::region(RegionId& out) {
  if (++depth_ > kDepthMax) return fail(peek().span, format("regions nested above {}", kDepthMax));
  out = function_->regions.push({});
  while (!at("}")) {
    if (!op(out)) return false;
  }
  --depth_;
  return true;
}

// op = [ "%" name "=" ] mnemonic { attribute } [ ":" type ], on a line of its own.
bool Parser::op(RegionId region) {
  if (!peek().first_of_line) return fail_expected("a new line");
  Span head = peek().span;
  const Token* name = nullptr;
  if (peek().kind == TokenKind::kValue) {
    name = &advance();
    if (!expect("=")) return false;
  }
  const Token* word = nullptr;
  if (!take(TokenKind::kWord, "an operation", word)) return false;
  const std::optional<OpKind> kind = from_name<OpKind>(word->text);
  if (!kind) return fail_unknown(*word, "operation", mnemonics());
  head = cover(head, word->span);
  const OpId id = function_->ops.push({head, fresh_op(*kind), {}});
  function_->regions[region].ops.push_back(id);
  if (!attributes(id, head) || !result(id, name)) return false;
  function_->ops[id].span = head;
  if (const auto* loop = std::get_if<For>(&function_->ops[id].data); loop && loop->var.valid()) {
    function_->vars[loop->var].first = loop->lower;
  }
  return expect_line_end();
}

// Reads all attributes; `head` grows over them but not over regions.
bool Parser::attributes(OpId id, Span& head) {
  std::vector<std::string_view> seen;
  while (peek().kind == TokenKind::kWord && !peek().first_of_line) {
    if (!attribute(id, seen)) return false;
    const Token& last = tokens_[position_ - 1];
    if (last.text != "}") head = cover(head, last.span);
  }
  return true;
}

bool Parser::attribute(OpId id, std::vector<std::string_view>& seen) {
  const Token& key = advance();
  if (std::find(seen.begin(), seen.end(), key.text) != seen.end()) {
    return fail(key.span, format("`{}` is given twice", key.text));
  }
  seen.push_back(key.text);
  // Read into a copy: reading a region adds operations, which may move this one.
  OpData data = function_->ops[id].data;
  bool found = false;
  bool good = false;
  kiln::visit(
      [&](auto& op) {
        std::remove_cvref_t<decltype(op)>::fields(op, [&](std::string_view name, auto& field) {
          if (name != key.text) return;
          found = true;
          good = field_value(field);
        });
      },
      data);
  if (!found) return fail_unknown(key, "attribute", field_names(function_->ops[id]));
  function_->ops[id].data = std::move(data);
  return good;
}

template <class T>
bool Parser::field_value(T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    out = !accept("=");  // the bare word
    return out || expect("false");
  } else {
    return expect("=") && value(out);
  }
}

bool Parser::result(OpId id, const Token* name) {
  if (name == nullptr) return true;
  Type type;
  if (!expect(":") || !this->type(type)) return false;
  ValueId value;
  if (!define_value(*name, std::move(type), id, value)) return false;
  function_->ops[id].result = value;
  return true;
}

bool Parser::value(std::int64_t& out) {
  const Token& sign = peek();
  const bool negative = accept("-");
  const Token& token = peek();
  std::uint64_t magnitude = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [rest, error] = std::from_chars(token.text.data(), end, magnitude);
  if (token.kind != TokenKind::kWord || rest != end || error == std::errc::invalid_argument) {
    return fail_expected("an integer");
  }
  const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (error != std::errc() || magnitude > limit) {
    return fail(cover(sign.span, token.span), format("`{}` does not fit 64 bits", token.text));
  }
  out = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  advance();
  return true;
}

bool Parser::value(double& out) {
  const bool negative = accept("-");
  const Token& token = peek();
  const char* end = token.text.data() + token.text.size();
  const auto [rest, error] = std::from_chars(token.text.data(), end, out);
  if (token.kind != TokenKind::kWord || rest != end || error != std::errc()) {
    return fail_expected("a number");
  }
  if (negative) out = -out;
  advance();
  return true;
}

bool Parser::value(std::string& out) {
  const Token* token = nullptr;
  if (!take(TokenKind::kString, "a text in quotes", token)) return false;
  out.clear();
  return unescape(token->text, out) ||
         fail(token->span, "an escape other than `\\\"`, `\\\\` and `\\xHH`");
}

bool Parser::value(ValueId& out) {
  const Token* token = nullptr;
  if (!take(TokenKind::kValue, "a value as in `%x`", token)) return false;
  const auto found = values_.find(token->text);
  if (found == values_.end()) return fail_unknown(*token, "value", keys_of(values_));
  out = found->second;
  return true;
}

bool Parser::value(VarId& out) {
  const Token* token = nullptr;
  if (!take(TokenKind::kWord, "a variable", token)) return false;
  const auto found = vars_.find(token->text);
  if (found == vars_.end()) return fail_unknown(*token, "variable", keys_of(vars_));
  out = found->second;
  return true;
}

bool Parser::value(RegionId& out) { return expect("{") && region(out) && expect("}"); }

bool Parser::value(const target::Mma*& out) {
  const Token* token = nullptr;
  if (!take(TokenKind::kWord, "a matrix instruction", token)) return false;
  out = target::find_mma(token->text);
  std::vector<std::string> known;
  for (const target::Mma& row : target::all_mmas()) known.emplace_back(row.name);
  return out != nullptr || fail_unknown(*token, "matrix instruction", known);
}

bool Parser::value(Layout& out) {
  const Span span = peek().span;
  std::string text;
  if (!value(text)) return false;
  const Result<Layout> layout = parse_layout(text);
  if (!layout) return fail(span, layout.error().reason);
  out = *layout;
  return true;
}

bool Parser::value(const target::Copy*& out) {
  const Token* token = nullptr;
  if (!take(TokenKind::kWord, "a copy instruction", token)) return false;
  out = target::find_copy(token->text);
  std::vector<std::string> known;
  for (const target::Copy& row : target::all_copies()) known.emplace_back(row.name);
  return out != nullptr || fail_unknown(*token, "copy instruction", known);
}

}  // namespace kiln::ir
