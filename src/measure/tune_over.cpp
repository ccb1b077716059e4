#include "measure/tune_over.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "support/format.h"
#include "support/parse_number.h"

namespace kiln::measure {

namespace {

constexpr const char* kRangeForm = "NAME=FROM:TO, NAME=FROM:TO:STEP or NAME=A,B,C";

// The numbers between separators; none when one of them is no number.
std::optional<std::vector<std::int64_t>> numbers(std::string_view text, char separator) {
  std::vector<std::int64_t> out;
  while (true) {
    const std::size_t end = text.find(separator);
    const auto value = parse_number<std::int64_t>(text.substr(0, end));
    if (!value) return std::nullopt;
    out.push_back(*value);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// The values of a macro, from the text behind the `=`: none when it is of another form; no values
// for an empty range.
std::optional<std::vector<std::int64_t>> values_of(std::string_view text) {
  if (text.find(':') == std::string_view::npos) return numbers(text, ',');
  const auto range = numbers(text, ':');
  if (!range || range->size() > 3) return std::nullopt;
  const std::int64_t from = range->front();
  const std::int64_t to = range->at(1);
  const std::int64_t step = range->size() == 3 ? range->back() : 1;
  std::vector<std::int64_t> out;
  if (step < 1 || to < from) return out;
  // One more than the limit is enough to be refused.
  const std::int64_t count = std::min((to - from) / step, kCandidatesMax);
  for (std::int64_t i = 0; i <= count; ++i) out.push_back(from + i * step);
  return out;
}

bool starts_name(char c) { return io::is_identifier(std::string_view(&c, 1)); }

// Every identifier of the text; comments go with it, which does no harm but to the search.
std::set<std::string, std::less<>> identifiers(std::string_view text) {
  std::set<std::string, std::less<>> out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() &&
           (starts_name(text[end]) || (text[end] >= '0' && text[end] <= '9'))) {
      ++end;
    }
    if (io::is_identifier(text.substr(i, end - i))) out.emplace(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return out;
}

// The text without comments.
std::string code_of(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view two = text.substr(i, 2);
    if (two == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (two == "/*") {
      i = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// The names that `#ifndef` asks for: those meant to be given from outside.
std::vector<std::string> adjustable(const std::string& code) {
  std::vector<std::string> out;
  constexpr std::string_view kWord = "#ifndef";
  for (std::size_t at = code.find(kWord); at != std::string::npos; at = code.find(kWord, at)) {
    at += kWord.size();
    const std::size_t end = std::min(code.find('\n', at), code.size());
    const auto names = identifiers(std::string_view(code).substr(at, end - at));
    out.insert(out.end(), names.begin(), names.end());
  }
  return out;
}

}  // namespace

Checked<std::vector<Over>> parse_over(const std::vector<std::string>& texts, Diagnostics& diags) {
  std::vector<Over> out;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    auto values = values_of(std::string_view(text).substr(std::min(equals + 1, text.size())));
    if (!io::is_identifier(name) || !values) {
      return diags.report<diag::OptionForm>({}, "--over", text, kRangeForm).emit();
    }
    if (values->empty()) {
      return diags.report<diag::TuneRangeEmpty>({}, text)
          .help("FROM:TO:STEP goes from FROM up to TO, both included, by a STEP of 1 or more")
          .emit();
    }
    if (std::ranges::find(out, name, &Over::name) != out.end()) {
      return diags.report<diag::OptionTwice>({}, "--over", name).emit();
    }
    out.push_back({.text = text, .name = name, .values = {}});
    for (const std::int64_t value : *values) out.back().values.push_back(std::to_string(value));
  }
  return out;
}

Checked<void> check_macros(const std::vector<Over>& overs, const std::vector<std::string>& defines,
                           const std::string& file, const std::string& text, Diagnostics& diags) {
  const std::string code = code_of(text);
  const auto used = identifiers(code);
  for (const Over& over : overs) {
    if (!used.contains(over.name)) {
      return diags.report<diag::TuneMacroUnused>({}, over.text, file, over.name)
          .help_if(io::name_help(over.name, adjustable(code), "it can be given"))
          .emit();
    }
    for (const std::string& define : defines) {
      if (define.substr(0, define.find('=')) != over.name) continue;
      return diags.report<diag::OptionTwice>({}, "-D with --over", over.name).emit();
    }
  }
  return {};
}

Checked<std::vector<std::vector<io::Assignment>>> combinations(const std::vector<Over>& overs,
                                                               Diagnostics& diags) {
  std::int64_t count = 1;
  for (const Over& over : overs) {
    count *= static_cast<std::int64_t>(over.values.size());
    if (count <= kCandidatesMax) continue;
    return diags.report<diag::TuneTooMany>({}, format("{} or more", count), kCandidatesMax)
        .help("give a range a STEP, or fix a macro with -D")
        .emit();
  }
  std::vector<std::vector<io::Assignment>> out = {{}};
  for (const Over& over : overs) {
    std::vector<std::vector<io::Assignment>> longer;
    for (const std::vector<io::Assignment>& values : out) {
      for (const std::string& value : over.values) {
        longer.push_back(values);
        longer.back().push_back({over.name, value});
      }
    }
    out = std::move(longer);
  }
  return out;
}

std::string values_text(const std::vector<io::Assignment>& values) {
  if (values.empty()) return "the file's own";
  return join(values, " ", [](const io::Assignment& each) { return each.name + "=" + each.value; });
}

}  // namespace kiln::measure
