// Which problems `kiln tune` is to tune the library for: a suite's, and those spelled out.
#include <algorithm>

#include "io/assignments.h"
#include "measure/bench_suite.h"
#include "measure/tune_library.h"

namespace kiln::measure {

namespace {

constexpr const char* kProblemForm = "`A,B,C M=..,N=..,K=..`, the types and the extents";

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Unexpected<Reported> not_of_the_form(const std::string& text, Diagnostics& diags) {
  return diags.report<diag::OptionForm>({}, "--problem", text, kProblemForm)
      .help("as in --problem 'bf16,bf16,bf16 M=16,N=7168,K=2048'")
      .emit();
}

// Reads the third word of a problem's text, which says the scales; not every text has it.
bool take_scales(const std::vector<std::string>& words, gemm::Problem& out) {
  if (words.size() < 3) return true;
  out.epilogue.has_alpha = words[2] == "tensor-scales";
  out.block_scales = words[2] == "block-scales";
  return out.epilogue.has_alpha || out.block_scales || words[2].empty();
}

// Whether the three types are such as a suite's problem may have.
bool take_types(const std::string& text, gemm::Problem& out) {
  const std::vector<std::string> names = parts_of(text, ',');
  if (names.size() != 3 || names[0] != names[1]) return false;
  const auto ab = dtype_from_name(names[0]);
  const auto c = dtype_from_name(names[2]);
  if (!ab || !c) return false;
  out.a = *ab;
  out.b = *ab;
  out.c = *c;
  return true;
}

std::int64_t* extent_of(const std::string& name, gemm::Problem& out) {
  if (name == "M") return &out.m;
  if (name == "N") return &out.n;
  return name == "K" ? &out.k : nullptr;
}

bool take_extents(const std::vector<io::Assignment>& shape, gemm::Problem& out) {
  for (const io::Assignment& each : shape) {
    std::int64_t* extent = extent_of(each.name, out);
    const bool digits =
        each.value.size() < 10 && each.value.find_first_not_of("0123456789") == std::string::npos;
    if (extent == nullptr || !digits) return false;
    *extent = std::stoll(each.value);
  }
  return out.m > 0 && out.n > 0 && out.k > 0;
}

}  // namespace

Checked<gemm::Problem> parse_problem(const std::string& text, Diagnostics& diags) {
  const std::vector<std::string> words = parts_of(text, ' ');
  gemm::Problem out;
  if (words.size() < 2 || words.size() > 3 || !take_scales(words, out) ||
      !take_types(words[0], out)) {
    return not_of_the_form(text, diags);
  }
  const auto shape =
      io::parse_assignments("--problem", {words[1]}, io::ListForm::kCommaSeparated, diags);
  if (!shape) return Unexpected{shape.error()};
  if (!take_extents(*shape, out)) return not_of_the_form(text, diags);
  return out;
}

Checked<std::vector<gemm::Problem>> tuned_cases(const TuneOptions& options, Diagnostics& diags) {
  std::vector<gemm::Problem> out;
  if (!options.program.file.empty()) {
    auto cases = chosen_cases(
        {.program = {.file = options.program.file}, .shapes = options.shapes, .only = options.only},
        diags);
    if (!cases) return cases;
    out = std::move(*cases);
  }
  for (const std::string& text : options.problems) {
    auto problem = parse_problem(text, diags);
    if (!problem) return Unexpected{problem.error()};
    out.push_back(*problem);
  }
  return out;
}

}  // namespace kiln::measure
