// Several independent mistakes in one file give exactly those diagnostics, at the right places; and
// hostile files give one, in time.
#include <gtest/gtest.h>

#include <chrono>

#include "diag/render.h"
#include "syntax/parser.h"
#include "syntax/print.h"

namespace kiln {
namespace {

struct Outcome {
  std::vector<std::string> found;  // "line:column id"
  std::string rendered;
  std::string printed;
};

Outcome outcome(const std::string& text) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", text);
  const ast::Ast tree = parse_file(sources, file, {}, diags);
  Outcome out;
  for (const Diagnostic& d : diags.all()) {
    const Place place = sources.place(d.span);
    out.found.push_back(format("{}:{} {}", place.line, place.column, info(d.id).name));
  }
  out.rendered = text.size() < 4000 ? render_all(diags, sources) : "";
  out.printed = ast::print(tree);
  return out;
}

using Found = std::vector<std::string>;

TEST(Recovery, OneMistakePerStatement) {
  const Outcome out = outcome(
      "__co__ void f(global f16 [M, K] a) {\n"
      "  shared f17 [4] s;\n"
      "  x = 1\n"
      "  y = (2 + ;\n"
      "  parallel p by 2 : blok {\n"
      "    foreach k in [4 {\n"
      "      z = k +;\n"
      "    }\n"
      "    dma.cpoy a => s;\n"
      "  }\n"
      "  ma = mma.lod a;\n"
      "}\n"
      "__co__ void g() { w = ; }\n");
  EXPECT_EQ(out.found,
            (Found{"2:10 unexpected-token", "3:7 missing-semicolon", "4:12 unexpected-token",
                   "5:21 unknown-level", "6:21 unclosed-bracket", "7:14 unexpected-token",
                   "9:9 unknown-member", "11:12 unknown-member", "13:23 unexpected-token"}))
      << out.rendered;
}

TEST(Recovery, AMissingSemicolonIsReportedOnItsOwnLine) {
  const Outcome out = outcome(
      "__co__ void f() {\n"
      "  mc = mma.fill.f32 0.0f\n"
      "  foreach k in [4] {\n"
      "    ma = mma.load a_s.chunkat(_, k)\n"
      "    mma.row.row mc, ma, ma\n"
      "  }\n"
      "}\n");
  EXPECT_EQ(out.found,
            (Found{"2:24 missing-semicolon", "4:35 missing-semicolon", "5:26 missing-semicolon"}))
      << out.rendered;
  EXPECT_NE(out.printed.find("(mma row row mc ma ma)"), std::string::npos);
}

TEST(Recovery, MisspeltWordsAreReadAsMeant) {
  const Outcome out = outcome(
      "__co__ void f() {\n"
      "  parralel p by 2 : block {\n"
      "    forech k in [4] { x = k; }\n"
      "    dam.copy a => b;\n"
      "    h = dam.copy a => shared;\n"
      "    mutabel int n = 1;\n"
      "    whlie (n > 0) { n -= 1; }\n"
      "  }\n"
      "}\n");
  EXPECT_EQ(out.found,
            (Found{"2:3 unknown-statement", "3:5 unknown-statement", "4:5 unknown-statement",
                   "5:9 unknown-statement", "6:5 unknown-statement", "7:5 unknown-statement"}))
      << out.rendered;
  EXPECT_NE(out.rendered.find("did you mean `parallel`?"), std::string::npos);
  EXPECT_NE(out.rendered.find("did you mean `dma`?"), std::string::npos);
  EXPECT_NE(out.printed.find("(foreach (in k [4])"), std::string::npos);
  EXPECT_NE(out.printed.find("(while (> n 0)"), std::string::npos);
}

TEST(Recovery, AMissingBraceNamesTheOneThatWasOpened) {
  const Outcome out = outcome(
      "__co__ void f() {\n"
      "  foreach k in [4] {\n"
      "    x = k;\n"
      "  y = 1;\n"
      "}\n"
      "__co__ void g() { z = ; }\n");
  EXPECT_EQ(out.found, (Found{"2:20 missing-brace", "6:23 unexpected-token"})) << out.rendered;
  EXPECT_NE(out.rendered.find("still open"), std::string::npos);
}

TEST(Recovery, TruncatedFiles) {
  EXPECT_EQ(outcome("__co__ void f() {\n  x = (1 +").found,
            (Found{"1:17 missing-brace", "2:11 unexpected-token"}));
  EXPECT_EQ(outcome("__co__").found, (Found{"1:7 unexpected-token"}));
  EXPECT_EQ(outcome("__co__ void f(global f16 [M").found.size(), 1U);
  EXPECT_EQ(outcome("__cok__ { int x;").found, (Found{"1:9 missing-brace"}));
  EXPECT_EQ(outcome("__device__ int f() { return 1;").found, (Found{"1:20 missing-brace"}));
  EXPECT_EQ(outcome("__co__ void f() { print(\"a").found.size(), 2U);
}

TEST(Recovery, ABrokenSignatureDoesNotHideTheBody) {
  const Outcome out = outcome("__co__ void f(f17 [4] a) {\n  x = ;\n}\n");
  EXPECT_EQ(out.found, (Found{"1:15 unexpected-token", "2:7 unexpected-token"})) << out.rendered;
}

TEST(Recovery, AnErrorDirectiveStopsTheFile) {
  EXPECT_EQ(outcome("#if 1\n#error \"no\"\n__co__ void f() { x = ; }\n").found,
            (Found{"2:1 error-directive"}));
}

// ---- Hostile files ----

void expect_one(const std::string& text, std::string_view id) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome out = outcome(text);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(out.found.size(), 1U) << text.substr(0, 80);
  EXPECT_TRUE(out.found[0].ends_with(id)) << out.found[0];
  EXPECT_LT(elapsed, std::chrono::seconds(20));
}

TEST(Hostile, DeepNesting) {
  const std::string head = "__co__ void f() {";
  expect_one(head + std::string(5000, '{') + std::string(5001, '}'), "nesting-too-deep");
  expect_one(head + "x = " + std::string(5000, '(') + std::string(5000, ')') + ";}",
             "nesting-too-deep");
  expect_one(head + "x = " + std::string(5000, '-') + "1;}", "nesting-too-deep");
  std::string ifs;
  for (int i = 0; i < 5000; ++i) ifs += "if (a) ";
  expect_one(head + ifs + ";}", "nesting-too-deep");
  std::string elses;
  for (int i = 0; i < 5000; ++i) elses += "if (a) ; else ";
  expect_one(head + elses + ";}", "nesting-too-deep");
  std::string chain = "x = a";
  for (int i = 0; i < 5000; ++i) chain += ".at(0)";
  expect_one(head + chain + ";}", "nesting-too-deep");
  expect_one("#if " + std::string(5000, '(') + "\n#endif\n", "nesting-too-deep");
}

TEST(Hostile, AChainOfOperatorsIsNotNested) {
  std::string sum = "x = a";
  for (int i = 0; i < 100000; ++i) sum += i % 2 == 0 ? " + 1" : " && b";
  const Outcome out = outcome("__co__ void f() {" + sum + ";}");
  EXPECT_TRUE(out.found.empty()) << out.rendered.substr(0, 500);
}

TEST(Hostile, BracesOfHostTextMayNestFreely) {
  const Outcome out = outcome("void f() " + std::string(5000, '{') + std::string(5000, '}'));
  EXPECT_TRUE(out.found.empty());
}

TEST(Hostile, ALineOfTenMegabytes) {
  constexpr std::size_t kBytes = 10'000'000;
  expect_one("__co__ void f() {" + std::string(kBytes, '@') + ";}", "unknown-character");
  expect_one("__co__ void f() { x = " + std::string(kBytes, '9') + ";}", "integer-too-large");
  std::string words;
  while (words.size() < kBytes) words += "aaaaaaa ";
  expect_one("__co__ void f() {" + words + ";}", "unknown-statement");
}

TEST(Hostile, TheNumberOfErrorsIsBounded) {
  std::string text = "__co__ void f() {\n";
  for (int i = 0; i < 100'000; ++i) text += "x = ;\n";
  const Outcome out = outcome(text + "}\n");
  EXPECT_EQ(out.found.size(), Diagnostics::kErrorsMax);
}

}  // namespace
}  // namespace kiln
