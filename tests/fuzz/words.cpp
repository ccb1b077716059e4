#include "words.h"

#include <vector>

#include "support/dtype.h"
#include "target/arch.h"

namespace kiln::fuzz {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kWords[] = {
#define KILN_WORD(Name, text, kind) text,
#include "syntax/token.def"
};

constexpr std::string_view kSigns[] = {
#define KILN_PUNCTUATION(Name, text) text,
#include "syntax/token.def"
};

constexpr std::string_view kBuiltins[] = {
#define KILN_BUILTIN(Name, text, least, most) text,
#include "syntax/builtin.def"
#undef KILN_BUILTIN
};

constexpr std::string_view kSuffixes[] = {
    ".async",
    ".async<g>",
    ".swiz<32>",
    ".swiz<64>",
    ".swiz<128>",
    ".swiz<256>",
    ".row.row",
    ".row.col",
    ".col.row",
    ".col.col",
    ".sp",
    ".zfill",
    ".promote",
    ".multicast",
    ".add",
    ".evict_first",
    ".evict_last",
    ".transp",
    ".mask",
    ".scale",
    ".data",
    ".mdata",
    ".view(16, 16)",
    ".from(0, 0)",
    ".chunkat(_, k)",
    ".chunk(2)",
    ".subspan(16)",
    ".subspan(16, 16)",
    ".modspan(4)",
    ".sqz",
    ".step(2)",
    ".stride(2)",
    ".at(0)",
    ".at(0, 0)",
    ".at(i, i)",
    ".span_as(64)",
    ".span_as([8, 8])",
    ".f32",
    ".f16",
    ".pad",
    ".any",
    ".commit",
    ".copy",
    ".load",
    ".fill",
    ".store",
    "[0]",
    "[2]",
    "[1 << 20]",
    ".span",
    ".span(0)",
    "#1",
    "#i",
    "++",
    "--",
    "(-1)",
    ".wait<0>",
    ".wait<1>",
    ".multicast<2>",
    ".swizzle<3, 4, 3>",
    ".remap(1, 0)",
    ".map(1)",
    ".swap(0, 1)",
    ".rotate(1)",
    ".chunkat(0)",
    ".at(-1)",
};

constexpr std::string_view kNumbers[] = {
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "12",
    "15",
    "16",
    "17",
    "24",
    "31",
    "32",
    "33",
    "48",
    "63",
    "64",
    "65",
    "96",
    "100",
    "127",
    "128",
    "129",
    "192",
    "255",
    "256",
    "257",
    "512",
    "1000",
    "1023",
    "1024",
    "1025",
    "2048",
    "4095",
    "4096",
    "8192",
    "16384",
    "32768",
    "65535",
    "65536",
    "65537",
    "98304",
    "232448",
    "1000000",
    "16777216",
    "16777217",
    "2147483647",
    "2147483648",
    "2147483649",
    "4294967295",
    "4294967296",
    "4294967297",
    "1099511627776",
    "9007199254740993",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-2",
    "-128",
    "-129",
    "-2147483648",
    "-2147483649",
    "-9223372036854775807",
    "-9223372036854775808",
    "0x7fffffff",
    "0xffffffffffffffff",
    "0.0",
    "-0.0",
    "0.5",
    "1.5",
    "1e10",
    "1e-10",
    "1e38",
    "1e39",
    "1e308",
    "1e309",
    "1e-320",
    "65504.0",
    "65520.0",
    "448.0",
    "inf",
    "-inf",
    "1.0f",
    "3.4e38f",
    "1e999",
    "0.1f",
    "nan",
    "cdiv(M, 16)",
    "M",
    "N",
    "K",
    "K - 1",
    "(1 << 31)",
    "(1 << 63)",
    "(0 - 1)",
    "true",
    "false",
};

constexpr std::string_view kStatements[] = {
    "sync.block;",
    "sync.shared;",
    "sync.group;",
    "sync.global;",
    "fence;",
    "break;",
    "continue;",
    "yield;",
    "return;",
    "return 0;",
    "x = 1;",
    "mutable i = 0;",
    "i = i + 1;",
    "i++;",
    "wait full;",
    "wait g;",
    "trigger full;",
    "trigger g;",
    "event g;",
    "shared event full[2];",
    "shared f16 [64, 64] s;",
    "local f32 [8] l;",
    "local f32 [1 << 20] big;",
    "print(\"x\");",
    "println(\"{}\", 1);",
    "assert(0 == 0, \"a\");",
    "mma.commit;",
    "mma.wait<0>;",
    "barrier;",
    "mc = mma.fill.f32 0.0f;",
    "tile : [16, 16];",
    ";",
    "{ }",
    "goto x;",
    "asm(\"\");",
    "__cpp__(\"int q;\");",
    "swap(a, b);",
    "rotate(a, b);",
    "stream q;",
    "__bar_sync(1, 32);",
    "__bar_arrive(1, 32);",
    "auto z = 1;",
    "f32 v = 0.5f;",
    "u64 v = 1;",
    "#line 7 \"a\nb*/\"\n",
};

constexpr std::string_view kOpenings[] = {
    "if (1) {",
    "if (0) {",
    "if (i < 1) {",
    "while (true) {",
    "while (i < 4) {",
    "while (0) {",
    "foreach i in [4] {",
    "foreach {i, j} in [2, 2] {",
    "foreach k in [1 << 31] {",
    "foreach z in [0] {",
    "foreach z in [4] : unroll {",
    "with z in [4] {",
    "inthreads (i == 0) {",
    "inthreads.async (i == 0) {",
    "parallel p by 2 : block {",
    "parallel p by 2 : group {",
    "parallel p by 2 : group-4 {",
    "parallel p by 32 : thread {",
    "parallel p by 1 {",
    "cooperative {",
    "{",
    "parallel p by 1 : term {",
    "parallel p by 2 : cluster {",
    "if (inthreads) {",
};

// Words of C++ and CUDA, macros of their headers, and what the emitted text declares itself.
constexpr std::string_view kForeignNames[] = {
    "int",
    "long",
    "class",
    "template",
    "namespace",
    "operator",
    "new",
    "delete",
    "this",
    "signed",
    "register",
    "and",
    "or",
    "not",
    "xor",
    "assert",
    "NULL",
    "size_t",
    "uint",
    "half",
    "float4",
    "dim3",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "grid",
    "block",
    "thread",
    "main",
    "std",
    "kiln",
    "smem",
    "lane",
    "warp",
    "stream",
    "params",
    "cudaSuccess",
    "cudaError_t",
    "min",
    "max",
    "abs",
    "printf",
    "INFINITY",
    "__global__",
    "__shared__",
    "__launch_bounds__",
    "__syncthreads",
    "alignas",
    "constexpr",
    "concept",
    "co_await",
    "requires",
    "char8_t",
    "_Bool",
    "EOF",
    "errno",
    "linux",
    "unix",
    "i",
    "o",
    "output",
    "M",
    "y0",
    "j1",
    "exp",
    "stdin",
    "CUtensorMap",
};

template <class Info>
std::vector<std::string_view> dtype_names(Info info_of) {
  std::vector<std::string_view> names;
  for (int d = 0; d < kDTypeCount; ++d) names.push_back(info_of(static_cast<DType>(d)));
  for (const std::string_view name : {"float"sv, "int"sv, "half"sv, "bool"sv, "auto"sv, "void"sv}) {
    names.push_back(name);
  }
  return names;
}

}  // namespace

std::span<const std::string_view> words() { return kWords; }
std::span<const std::string_view> signs() { return kSigns; }
std::span<const std::string_view> builtins() { return kBuiltins; }
std::span<const std::string_view> suffixes() { return kSuffixes; }
std::span<const std::string_view> numbers() { return kNumbers; }
std::span<const std::string_view> statements() { return kStatements; }
std::span<const std::string_view> openings() { return kOpenings; }
std::span<const std::string_view> foreign_names() { return kForeignNames; }

std::span<const std::string_view> dtypes() {
  static const std::vector<std::string_view> names =
      dtype_names([](DType dtype) { return info(dtype).name; });
  return names;
}

std::span<const std::string_view> archs() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const target::Arch& arch : target::all_archs()) all.push_back(arch.name);
    return all;
  }();
  return names;
}

}  // namespace kiln::fuzz
