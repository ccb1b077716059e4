#include "emit/cuda/names.h"

#include <algorithm>
#include <iterator>

#include "support/format.h"

namespace kiln::emit {

namespace {

// Keywords of C++17 and CUDA, and what the emitted text or its headers mean by a bare name. Sorted.
constexpr std::string_view kReserved[] = {
    "NULL",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "cudaError_t",
    "cudaStream_t",
    "decltype",
    "default",
    "delete",
    "dim3",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "fmod",
    "fmodf",
    "for",
    "friend",
    "goto",
    "gridDim",
    "if",
    "inline",
    "int",
    "kiln",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "printf",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "smem",
    "static",
    "static_assert",
    "static_cast",
    "std",
    "stream",
    "struct",
    "switch",
    "template",
    "this",
    "threadIdx",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "warpSize",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
};
static_assert(std::is_sorted(std::begin(kReserved), std::end(kReserved)));

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

}  // namespace

std::string legal_name(std::string_view name) {
  std::string out;
  for (const char c : name) out += is_word(c) ? c : '_';
  if (out.empty() || is_digit(out[0])) out = "v" + out;
  // Names that begin with two underscores, or one and a capital letter, belong to the compiler.
  if (out[0] == '_') out = "v" + out;
  if (std::binary_search(std::begin(kReserved), std::end(kReserved), out)) out += '_';
  return out;
}

std::string NameTable::claim(std::string_view wanted) {
  const std::string legal = legal_name(wanted);
  std::string name = legal;
  for (int n = 2; !taken_.insert(name).second; ++n) name = format("{}_{}", legal, n);
  return name;
}

}  // namespace kiln::emit
