#include "io/assignments.h"

#include <algorithm>

namespace kiln::io {

namespace {

// The parts between commas; one empty part for an empty text.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

std::string_view form_text(ListForm form) {
  return form == ListForm::kSingle ? "NAME=VALUE" : "NAME=VALUE,NAME=VALUE";
}

}  // namespace

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || digit(c); });
}

std::string name_help(const std::string& seen, const std::vector<std::string>& legal,
                      std::string_view lead) {
  if (legal.empty()) return "";
  if (std::string guess = did_you_mean(seen, legal); !guess.empty()) return guess;
  return format("{} {}", lead,
                join(legal, ", ", [](const auto& name) { return format("`{}`", name); }));
}

Checked<std::vector<Assignment>> parse_assignments(const std::string& option,
                                                   const std::vector<std::string>& texts,
                                                   ListForm form, Diagnostics& diags) {
  std::vector<Assignment> out;
  for (const std::string& text : texts) {
    const std::vector<std::string> parts =
        form == ListForm::kSingle ? std::vector<std::string>{text} : split(text);
    for (const std::string& part : parts) {
      const std::size_t equals = part.find('=');
      const std::string name = part.substr(0, equals);
      if (equals == std::string::npos || equals + 1 == part.size() || !is_identifier(name)) {
        return diags.report<diag::OptionForm>({}, option, text, form_text(form)).emit();
      }
      const bool twice =
          std::any_of(out.begin(), out.end(), [&](const Assignment& a) { return a.name == name; });
      if (twice) return diags.report<diag::OptionTwice>({}, option, name).emit();
      out.push_back({name, part.substr(equals + 1)});
    }
  }
  return out;
}

Checked<std::vector<Definition>> parse_definitions(const std::vector<std::string>& texts,
                                                   Diagnostics& diags) {
  std::vector<Definition> out;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (!is_identifier(name)) {
      return diags.report<diag::OptionForm>({}, "-D", text, "NAME or NAME=VALUE").emit();
    }
    out.push_back({name, equals == std::string::npos ? "1" : text.substr(equals + 1)});
  }
  return out;
}

}  // namespace kiln::io
