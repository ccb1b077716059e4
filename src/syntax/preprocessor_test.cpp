// Macros, conditionals and regions, seen through the parser.
#include "syntax/preprocessor.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "diag/render.h"
#include "syntax/parser.h"
#include "syntax/print.h"

namespace kiln {
namespace {

std::string parsed(const std::string& text, const ParseOptions& options = {}) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", text);
  const ast::Ast tree = parse_file(sources, file, options, diags);
  return ast::print(tree) + render_all(diags, sources);
}

// The value that `x = TEXT;` parses to under the given directives.
std::string value(const std::string& directives, const std::string& text,
                  const ParseOptions& options = {}) {
  const std::string out = parsed(directives + "__co__ void f() { x = " + text + "; }\n", options);
  const std::string head = "(tile void f (block (= x ";
  if (!out.starts_with(head)) return out;
  return out.substr(head.size(), out.rfind(")))\n") - head.size());
}

TEST(Macros, ObjectAndFunctionLike) {
  EXPECT_EQ(value("#define N 4 // four\n", "N"), "4");
  EXPECT_EQ(value("#define PAIR(a) ((a) * 2)\n", "PAIR(n + 1)"), "(* (+ n 1) 2)");
  EXPECT_EQ(value("#define P(a, b) a - b\n#define Q(c) P(c, P(c, 1))\n", "Q(2)"), "(- (- 2 2) 1)");
  EXPECT_EQ(value("#define LONG 1 + \\\n  2\n", "LONG"), "(+ 1 2)");
  EXPECT_EQ(value("#define E\n", "E 3 E"), "3");
  EXPECT_EQ(value("#define F(a) a\n", "F + F(cdiv(7, 2))"), "(+ F (cdiv 7 2))");
}

TEST(Macros, NoExpansionWithinItselfOrInStrings) {
  EXPECT_EQ(value("#define N N + 1\n", "N"), "(+ N 1)");
  EXPECT_EQ(value("#define A B\n#define B A\n", "A"), "A");
  EXPECT_EQ(value("#define N 4\n", "\"N\" R\"(N)\""), "\"NN\"");
}

TEST(Macros, LastDefinitionWinsFromItsLineOn) {
  EXPECT_EQ(parsed("#define N 1\n__co__ void f() {\n x = N;\n#define N 2\n x = N;\n#undef N\n"
                   " x = N;\n}\n"),
            "(tile void f (block (= x 1) (= x 2) (= x N)))\n");
}

TEST(Macros, CommandLineDefinitions) {
  EXPECT_EQ(value("", "N * F(2)", {.definitions = {{"N", "8"}, {"F(a)", "a + 1"}}}),
            "(+ (* 8 2) 1)");
  EXPECT_EQ(value("#ifdef N\n#define R 1\n#else\n#define R 2\n#endif\n", "R",
                  {.definitions = {{"N", ""}}}),
            "1");
}

TEST(Macros, CommandLineBeatsTheFile) {
  EXPECT_EQ(value("#define N 16\n", "N", {.definitions = {{"N", "32"}}}), "32");
  EXPECT_EQ(value("#undef N\n", "N", {.definitions = {{"N", "32"}}}), "32");
  EXPECT_EQ(value("#define N 16\n#define N 8\n", "N"), "8");
  EXPECT_EQ(value("", "N", {.definitions = {{"N", "32"}, {"N", "64"}}}), "64");
}

TEST(Macros, DiagnosticsPointAtTheUse) {
  Sources sources;
  Diagnostics diags;
  const std::string text = "#define BAD * *\n__co__ void f() {\n  x = BAD;\n}\n";
  const FileId file = sources.add("t.co", text);
  const ast::Ast tree = parse_file(sources, file, {}, diags);
  ASSERT_EQ(diags.all().size(), 1U);
  EXPECT_EQ(sources.place(diags.all()[0].span).line, 3);
  ASSERT_EQ(tree.expansions.size(), 1U);
  EXPECT_EQ(sources.text(tree.expansions[0].use), "BAD");
  EXPECT_EQ(sources.place(tree.expansions[0].definition).line, 1);
}

std::string branch(const std::string& condition) {
  return value("#define ROWS 48\n#define TWICE(a) (a * 2)\n#if " + condition +
                   "\n#define R 1\n#else\n#define R 0\n#endif\n",
               "R");
}

TEST(Conditions, Arithmetic) {
  EXPECT_EQ(branch("ROWS % 16 == 0 && ROWS / 16 == 3"), "1");
  EXPECT_EQ(branch("1 + 2 * 3 == 7"), "1");
  EXPECT_EQ(branch("(1 + 2) * 3 == 7"), "0");
  EXPECT_EQ(branch("-1 < 0 && !(2 <= 1)"), "1");
  EXPECT_EQ(branch("10 - 4 - 3 == 3"), "1");
  EXPECT_EQ(branch("UNKNOWN"), "0");
  EXPECT_EQ(branch("defined ROWS && defined(ROWS) && !defined(COLS)"), "1");
  EXPECT_EQ(branch("TWICE(3) == 6"), "1");
  EXPECT_EQ(branch("0 && 1 / 0"), "0");
  EXPECT_EQ(branch("1 || 1 / 0"), "1");
  EXPECT_EQ(branch("0 ? 1 / 0 : 1"), "1");
  EXPECT_EQ(branch("__has_include(<x.h>)"), "0");
}

TEST(Conditions, Branches) {
  const std::string chain =
      "#if N == 1\n#define R 1\n#elif N == 2\n#define R 2\n#elif N / 0\n#else\n#define R 3\n"
      "#endif\n";
  EXPECT_EQ(value("#define N 1\n" + chain, "R"), "1");
  EXPECT_EQ(value("#define N 2\n" + chain, "R"), "2");
  EXPECT_EQ(value("#if 0\n#if 1\n#error dead\n#else\n' \" unbalanced {{{\n#endif\n#endif\n", "1"),
            "1");
  EXPECT_EQ(value("#ifndef A\n#define R 1\n#endif\n", "R"), "1");
}

TEST(Conditions, WrapWholeFunctions) {
  EXPECT_EQ(parsed("#if 0\n__co__ void f() {\n#else\n__co__ void g() {\n#endif\n}\n"),
            "(tile void g (block))\n");
}

TEST(Directives, HashBeforeAnotherNameIsAnExpression) {
  EXPECT_EQ(value("", "1 +\n#b"), "(+ 1 (# b))");
}

TEST(Directives, LineMovesWhatDiagnosticsShow) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", "#line 100 \"user.co\"\n__co__ void f() {\n  x = ;\n}\n");
  static_cast<void>(parse_file(sources, file, {}, diags));
  ASSERT_EQ(diags.all().size(), 1U);
  EXPECT_EQ(sources.place(diags.all()[0].span).line, 101);
  EXPECT_EQ(sources.place(diags.all()[0].span).file, "user.co");
}

// ---- Regions ----

std::string regions(const std::string& text) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", text);
  const ast::Ast tree = parse_file(sources, file, {}, diags);
  std::string out;
  for (const ast::Region& region : tree.regions) {
    std::visit([&](const auto& r) { out += "<" + std::string(sources.text(r.span)) + ">"; },
               region);
  }
  return out + render_all(diags, sources);
}

TEST(Regions, InOrderAndComplete) {
  EXPECT_EQ(regions("#include <a>\n"
                    "template <int W>\n__device__ float twice(float v) { return v + v; }\n"
                    "__co__ void f() {}\n"
                    "int main() { f(); }\n"
                    "__cok__ { int x; }\n"),
            "<#include <a>\n><template <int W>\n__device__ float twice(float v) { return v + v; }>"
            "<__co__ void f() {}><int main() { f(); }\n><__cok__ { int x; }>");
}

TEST(Regions, CommentsAndStringsHideBracesAndWords) {
  const std::string host =
      "const char* s = \"__co__ {\"; // __co__ {\n/* } */ char c = '}';\n"
      "auto r = R\"x(} __co__)x\"; int n = 1'000;\n";
  EXPECT_EQ(regions(host + "__co__ void f() { print(\"}\"); /* } */ }"),
            "<" + host + "><__co__ void f() { print(\"}\"); /* } */ }>");
}

TEST(Regions, DirectivesAloneAreNoRegionInAFileOfTileFunctions) {
  EXPECT_EQ(regions("#define N 1\n// text\n__co__ void f() {}\n"), "<__co__ void f() {}>");
}

TEST(Regions, DeviceDeclarationsAndMembers) {
  EXPECT_EQ(regions("__device__ int t[2] = {1, 2};\nstruct S { __device__ int g(); };\n"),
            "<__device__ int t[2] = {1, 2};><struct S { __device__ int g(); };\n>");
}

// The files of one folder.
ParseOptions including(const std::map<std::string, std::string, std::less<>>& files) {
  return {.definitions = {}, .read_included = [files](std::string_view, std::string_view name) {
            const auto found = files.find(name);
            return found == files.end()
                       ? Result<IncludedFile>(Unexpected{Error{"no such file", "", ""}})
                       : IncludedFile{found->first, found->second};
          }};
}

TEST(Includes, MacrosOfAnotherFileAreThere) {
  const auto files = including({{"n.co", "/* four */\n#define N 4 + \\\n M\n"},
                                {"m.co", "#include \"n.co\"\n#ifdef DEEP\n#define M 5\n#endif\n"}});
  EXPECT_EQ(value("#define DEEP\n#include \"m.co\" // and n.co\n", "N", files), "(+ 4 5)");
  EXPECT_EQ(value("#if 0\n#include \"none.co\"\n#endif\n#include \"m.co\"\n", "N", files),
            "(+ 4 M)");
}

// A short text is not on the heap: adding a file must not move it.
TEST(Includes, NoTextMoves) {
  std::map<std::string, std::string, std::less<>> files;
  std::string all;
  for (char name = 'A'; name <= 'Z'; ++name) {
    files.emplace(std::string(1, name) + ".co", format("#define {}{} 1", name, name));
    all += format("#include \"{}.co\"\n", name);
  }
  EXPECT_EQ(value(all, "AA + MM + ZZ", including(files)), "(+ (+ 1 1) 1)");
}

TEST(Includes, DefinitionsOfTheCommandLineHoldThere) {
  ParseOptions options = including({{"n.co", "#define N 4\n"}});
  options.definitions = {{"N", "8"}};
  EXPECT_EQ(value("#include \"n.co\"\n", "N", options), "8");
}

TEST(Includes, OthersAreTheCompilers) {
  const ParseOptions none;
  EXPECT_EQ(value("#include <n.co>\n#include \"n.h\"\n#include NAME\n", "N", none), "N");
}

}  // namespace
}  // namespace kiln
