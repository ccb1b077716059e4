// One smallest program per diagnostic of catalogue_syntax.def: it gives that diagnostic and no
// other.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "diag/render.h"
#include "syntax/parser.h"

namespace kiln {
namespace {

struct Mistake {
  std::string id;
  std::string text;
};

// A statement in a tile function; the text of a whole file is given as it is.
std::string in_function(const std::string& statement) {
  return "__co__ void f(global f16 [M, K] a) {\n  " + statement + "\n}\n";
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> rows = {
      {"file-not-text", std::string("__co__ void f() {\0}", 19)},
      {"unknown-character", in_function("x = 1 @ 2;")},
      {"unterminated-comment", in_function("x = 1;") + "/* on and on"},
      {"unterminated-string", in_function("print(\"a);")},
      {"unknown-escape", in_function("print(\"a\\q\");")},
      {"integer-too-large", in_function("x = 18446744073709551616;")},
      {"integer-leading-zero", in_function("x = 007;")},
      {"float-digits", in_function("x = 1.;")},
      {"integer-digits", in_function("x = 0x;")},
      {"integer-digits", in_function("x = 0xg;")},
      {"number-suffix", in_function("x = 0x1g;")},
      {"number-suffix", in_function("x = 12xy;")},
      {"else-without-if", in_function("else x = 1;")},
      {"else-without-if", "#endif\n"},
      {"else-without-if", "#else\n"},
      {"else-without-if", "#elif 1\n"},
      {"else-after-else", "#if 0\n#else\n#else\n#endif\n"},
      {"endif-missing", "#ifdef X\n"},
      {"condition-malformed", "#if 1 +\n#endif\n"},
      {"condition-malformed", "#if defined\n#endif\n"},
      {"condition-malformed", "#if defined(4)\n#endif\n"},
      {"condition-malformed", "#if defined(N\n#endif\n"},
      {"condition-malformed", "#if 1 << 99\n#endif\n"},
      {"condition-malformed", "#if 9223372036854775807 + 1 > 0\n#endif\n"},
      {"condition-malformed", "#define N 4\n#if N = 4\n#endif\n"},
      {"condition-malformed", "#if 0x\n#endif\n"},
      {"integer-too-large", "#if 99999999999999999999 > 4\n#endif\n"},
      {"directive-malformed", "#line 0\n"},
      {"directive-malformed", "#line 3 \"a.co\n"},
      {"unknown-directive", "#defi N 4\n__co__ void f() {}\n"},
      {"unknown-directive", "__co__ void f() {\n#warn about nothing\n  x = 1;\n}\n"},
      {"unknown-directive", "#elifdef N\n"},
      {"condition-division-by-zero", "#if 1 / 0\n#endif\n"},
      {"error-directive", "#error no tiles\n"},
      {"directive-malformed", "#define\n"},
      {"include-unreadable", "#include \"none.co\"\n" + in_function("x = N;")},
      {"include-holds-code", "#include \"code.co\"\n" + in_function("x = N;")},
      {"include-cycle", "#include \"itself.co\"\n" + in_function("x = N;")},
      {"include-too-many", "#include \"longer.co\"\n" + in_function("x = N;")},
      {"macro-arguments", "#define TWICE(a) a * 2\n" + in_function("x = TWICE(1, 2);")},
      {"macro-unterminated", "#define TWICE(a) a * 2\n" + in_function("x = TWICE(1;")},
      {"macro-unsupported", "#define GLUE(a, b) a##b\n" + in_function("x = GLUE(1, 2);")},
      {"macro-unsupported", "#define LOG(...) 0\n" + in_function("x = LOG(1);")},
      {"macro-too-large",
       "#define A B B B B B B B B\n#define B C C C C C C C C\n"
       "#define C D D D D D D D D\n#define D E E E E E E E E\n"
       "#define E F F F F F F F F\n#define F G G G G G G G G\n"
       "#define G 1 + 1 + 1 + 1 +\n" +
           in_function("x = A 1;")},
      {"tile-function-specifier", "inline __co__ void f() {}\n"},
      {"tile-function-misspelt", "_co_ void f() {}\n"},
      {"tile-function-without-body", "__co__ void f();\n"},
      {"tile-function-specifier", "extern \"C\" __co__ void f() {}\n"},
      {"missing-brace", "__co__ void f() {\n"},
      {"tile-function-nested", in_function("__co__ void g(global f16 [M] a) { y = 2; }")},
      {"tile-function-nested", in_function("parallel p by 2 {\n __co__ void g() {}\n x = 1; }")},
      {"unterminated-comment", "__co__ void f() {\n  x = 1; /* open\n}\n"},
      {"unterminated-comment", "__device__ int f() { /* open\n}\n"},
      {"unterminated-comment", "__cok__ { /* open\n}\n"},
      {"extra-brace", "__co__ void f() {}\n}\n"},
      {"unclosed-bracket", in_function("x = (1 + 2;")},
      {"unclosed-bracket", in_function("parallel {p by M : block {\n    x = 1;\n  }")},
      {"unclosed-bracket", in_function("foreach {p, q in [4, 4] {\n    x = 1;\n  }")},
      {"unclosed-bracket", "__co__ void f(global f16 [M a) {\n  x = 1;\n}\n"},
      {"missing-semicolon", in_function("x = 1\n  y = 2;")},
      {"unexpected-token", in_function("x = * 2;")},
      {"unexpected-token", in_function("foreach k [K] {\n    x = k;\n  }")},
      {"unexpected-token", in_function("foreach k 8 {\n    x = k;\n  }")},
      {"unexpected-token", in_function("foreach k K {\n    x = k;\n  }")},
      {"unexpected-token", in_function("dma.copy a <= b;")},
      {"unexpected-token", "__co__ f(global f16 [M] a) {\n  x = 1;\n}\n"},
      {"unexpected-token", "__co__ void (global f16 [M] a) {\n  x = 1;\n}\n"},
      {"unknown-statement", in_function("for (int i = 0; i < 3; i++) {\n    x = i;\n  }")},
      {"unknown-statement", in_function("for (int i = 0; i < 3; i++) x = i;")},
      {"unknown-statement", in_function("parralel p by 2 : block {}")},
      {"unknown-statement", in_function("frobnicate x;")},
      {"reserved-name", in_function("int if = 3;")},
      {"wildcard-name", in_function("int _ = 3;")},
      {"unknown-member", in_function("x = a.chunkt(1);")},
      {"unknown-member", in_function("ma = mma.lod a;")},
      {"unknown-member", in_function("h = dma.cpoy a => shared;")},
      {"unknown-level", in_function("parallel p by 2 : blok {}")},
      {"group-suffix", in_function("parallel p by 2 : group-8 {}")},
      {"group-suffix", in_function("parallel p by 2 : group-4x {}")},
      {"unknown-attribute", in_function("[[launch_bound(1)]] parallel p by 2 {}")},
      {"unknown-pragma", "#pragma croq speed\n"},
      {"builtin-arguments", in_function("x = cdiv(M);")},
      {"bound-literal", in_function("x = y #+ z;")},
      {"member-position", in_function("x = a.sqz();")},
      {"chunk-without-at", in_function("x = a.chunk(2, 2);")},
      {"tuple-brackets", in_function("ituple t = [1, 2];")},
      {"tuple-brackets", in_function("ituple t;")},
      {"shape-brackets", in_function("s = [1, 2];")},
      {"shape-brackets", in_function("s : {1, 2};")},
      {"event-initialiser", in_function("shared event e = 3;")},
      {"swizzle-number", in_function("h = dma.copy.swiz<48> a => shared;")},
      {"promote-number", in_function("tma.load.promote<32> a => b;")},
      {"modifier-twice", in_function("tma.load.evict_first.evict_last a => b;")},
      {"pad-config", in_function("dma.pad<{1}, {1}> a => b;")},
      {"transp-config", in_function("dma.transp<1, 1> a => b;")},
      {"handle-missing", in_function("dma.copy.async a => b;")},
      {"handle-missing", in_function("dma.any;")},
      {"handle-missing", in_function("mma.load a;")},
      {"handle-missing", in_function("mma.row.row.async mc, ma, mb;")},
      {"handle-unexpected", in_function("x = mma.store mc, a;")},
      {"handle-unexpected", in_function("x = mma.row.row mc, ma, mb;")},
      {"mma-majors", in_function("mma.row mc, ma, mb;")},
      {"mma-operands", in_function("mma.row.row mc, ma;")},
      {"rotate-operands", in_function("swap(f, g, h);")},
      {"rotate-operands", in_function("rotate(f);")},
      {"select-operands", in_function("x = select(n);")},
      {"reduce-dimension", in_function("reduce_max(p, s, 0);")},
      {"asm-goto", in_function("__asm__ goto (\"\");")},
      {"statement-as-expression", in_function("x = 1 + mma.load a;")},
  };
  return rows;
}

// Programs too long to write out.
std::vector<Mistake> built_mistakes() {
  std::string chain;
  for (int i = 0; i < 300; ++i) chain += format("#define A{} A{}\n", i, i + 1);
  const std::string parens(5000, '(');
  const std::string braces(5000, '{');
  const std::string closers(5000, '}');
  std::string choice = "x = 1";
  for (int i = 0; i < 5000; ++i) choice += " ? 1 : 1";
  return {{"macro-too-deep", chain + in_function("x = A0;")},
          {"nesting-too-deep", in_function("x = " + parens + "1;")},
          {"nesting-too-deep", in_function(braces + closers)},
          {"nesting-too-deep", in_function(choice + ";")}};
}

Result<IncludedFile> read_included(std::string_view /*from*/, std::string_view name) {
  if (name == "none.co") return Unexpected{Error{"cannot read", std::string(name), ""}};
  if (name == "code.co") return IncludedFile{"code.co", "#define N 4\nint x;\n"};
  if (name == "itself.co") return IncludedFile{"itself.co", "#include \"itself.co\"\n"};
  return IncludedFile{std::string(name), format("#include \"even_{}\"\n", name)};
}

std::vector<std::string> ids_of(const std::string& text, std::string* rendered) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", text);
  static_cast<void>(
      parse_file(sources, file, {.definitions = {}, .read_included = read_included}, diags));
  *rendered = text.size() < 4000 ? render_all(diags, sources) : "";
  std::vector<std::string> ids;
  for (const Diagnostic& d : diags.all()) ids.emplace_back(info(d.id).name);
  return ids;
}

TEST(Mistakes, EachGivesItsDiagnosticAndNoOther) {
  std::vector<Mistake> all = mistakes();
  for (Mistake& built : built_mistakes()) all.push_back(std::move(built));
  for (const Mistake& mistake : all) {
    std::string rendered;
    const std::vector<std::string> ids = ids_of(mistake.text, &rendered);
    EXPECT_EQ(ids, std::vector<std::string>{mistake.id}) << mistake.text.substr(0, 300) << "\n"
                                                         << rendered;
  }
}

TEST(Mistakes, EveryRowOfTheCatalogueIsHere) {
  static const char* const kIds[] = {
#define KILN_DIAG(Name, id, severity, text) id,
#include "diag/catalogue_syntax.def"
#undef KILN_DIAG
  };
  std::set<std::string> tested;
  for (const Mistake& mistake : mistakes()) tested.insert(mistake.id);
  for (const Mistake& mistake : built_mistakes()) tested.insert(mistake.id);
  for (const char* id : kIds) EXPECT_TRUE(tested.contains(id)) << id;
}

struct Parsed {
  Sources sources;
  Diagnostics diags;
  ast::Ast tree;

  explicit Parsed(std::string text, const char* name = "t.co") {
    const FileId file = sources.add(name, std::move(text));
    tree = parse_file(sources, file, {}, diags);
  }
  [[nodiscard]] const ast::TileFunction& function(std::size_t i) const {
    return *std::get_if<ast::TileFunction>(&tree.regions.at(i));
  }
};

TEST(Mistakes, AWrongFormLeavesNoStatement) {
  for (const char* text :
       {"swap f, g, h;", "rotate(f);", "dma.copy.async a => b;", "reduce_max(p, s, 0);",
        "tma.load.promote<32> a => b;", "h = dma.copy.swiz<48> a => shared;",
        "dma.pad<{1}, {1}> a => b;", "dma.transp<1, 1> a => b;", "foreach k [K] {\n x = k;\n }",
        "for (int i = 0; i < 3; i++) { x = i; }"}) {
    const Parsed parsed(in_function(text));
    const ast::TileFunction& f = parsed.function(0);
    const auto* block = parsed.tree.as<ast::BlockStmt>(f.body);
    ASSERT_NE(block, nullptr) << text;
    ASSERT_EQ(block->body.size(), 1U) << text;
    EXPECT_NE(parsed.tree.as<ast::ErrorStmt>(block->body[0]), nullptr) << text;
    EXPECT_TRUE(f.has_syntax_errors) << text;
  }
}

TEST(Mistakes, ABrokenSignatureLeavesNoBody) {
  for (const char* text : {"__co__ f(f32 [M] a) { x = 1; }", "__co__ void (f32 [M] a) { x = 1; }",
                           "__co__ void f(f32 [M a) { x = 1; }"}) {
    const Parsed parsed(std::string(text) + "\n__co__ void g() { y = 2; }\n");
    EXPECT_EQ(parsed.diags.error_count(), 1U) << text;
    EXPECT_FALSE(parsed.function(0).body.valid()) << text;
    EXPECT_TRUE(parsed.function(0).has_syntax_errors) << text;
    EXPECT_TRUE(parsed.function(1).body.valid()) << text;
    EXPECT_FALSE(parsed.function(1).has_syntax_errors) << text;
  }
}

TEST(Mistakes, AMistakeOfTheLexerMarksTheFunctionToo) {
  EXPECT_TRUE(Parsed(in_function("x = 1 @;")).function(0).has_syntax_errors);
  EXPECT_TRUE(Parsed("__co__ void f() {\n").function(0).has_syntax_errors);
}

TEST(Mistakes, NoHostTextIsMadeOfTheWordsOfAMistake) {
  for (const char* text : {"inline __co__ void f() {}\n", "extern \"C\" __co__ void f() {}\n",
                           "__co__ void f() {}\n}\n", "// why\ninline __co__ void f() {}\n",
                           "__co__ void f() { x = 1; }\n  y = 2;\n}\n"}) {
    EXPECT_EQ(Parsed(text).tree.regions.size(), 1U) << text;
  }
  const Parsed parsed("// text\n\nint a;\n__co__ void f() {}\n  // more\nint b;\n");
  const auto text_of = [&](std::size_t i) {
    return parsed.sources.text(std::get_if<ast::HostText>(&parsed.tree.regions.at(i))->span);
  };
  EXPECT_EQ(text_of(0), "int a;\n");
  EXPECT_EQ(text_of(2), "int b;\n");
}

TEST(Mistakes, DirectivesOfCppAndTheShapeOperatorAreNoUnknownDirectives) {
  for (const char* text : {"#warning old\nint a;\n", "#ident \"x\"\nint a;\n", "#\nint a;\n",
                           "#if 0\n#defi\n#endif\nint a;\n", "__co__ void f() { s = x\n#y; }\n"}) {
    const Parsed parsed(text);
    EXPECT_FALSE(parsed.diags.has_errors()) << render_all(parsed.diags, parsed.sources);
  }
}

std::string rendered(std::string text) {
  const Parsed parsed(std::move(text));
  return render_all(parsed.diags, parsed.sources);
}

void expect_part(const std::string& whole, const std::string& part) {
  EXPECT_NE(whole.find(part), std::string::npos) << part << "\n" << whole.substr(0, 4000);
}

TEST(Mistakes, HelpsNameAWayOut) {
  expect_part(rendered(in_function("dma.copy a <= b;")), "write `b => a`");
  expect_part(rendered("#define N 4\n#if N = 4\n#endif\n"), "compare with `==`");
  expect_part(rendered("#defi N 4\n"), "did you mean `define`?");
  expect_part(rendered(in_function("mma.row.row mc, ma;")), "write `mma.row.row acc, a, b`");
  expect_part(rendered(in_function("dma.any;")), "`f = dma.any;`");
  expect_part(rendered(in_function("int if = 3;")), "`my_if`");
  expect_part(rendered(in_function("dma.transp<1, 1> a => b;")), "`.transp<1, 0>`");
  expect_part(rendered(in_function("x = (1 + 2;")), "close it with `)`");
  expect_part(rendered(in_function("x = select(n);")), "got 1 operand\n");
  expect_part(rendered("#define ONE(a) a\n" + in_function("x = ONE(1, 2);")),
              "takes 1 argument, got 2");
}

TEST(Rendering, CaretsStandInColumnsOfCharacters) {
  const std::string out = rendered("__co__ void f() { /* \u00e9\u20ac */ int n = * 2; }\n");
  expect_part(out, " 1 | __co__ void f() { /* \u00e9\u20ac */ int n = * 2; }\n   |" +
                       std::string(36, ' ') + "^\n");
  expect_part(rendered("__co__ void f() { x = \u00e9\u00e9; }\n"),
              "   |" + std::string(23, ' ') + "^^\n");
}

TEST(Rendering, AByteOrderMarkTakesNoColumn) {
  const std::string out = rendered("\xEF\xBB\xBF" + std::string("__co__ void f() { x = ; }\n"));
  expect_part(out, "t.co:1:23\n");
  expect_part(out, " 1 | __co__ void f() { x = ; }\n   |" + std::string(23, ' ') + "^");
}

TEST(Rendering, LongNamesAreCut) {
  const std::string name(100'000, 'n');
  const std::string text = in_function(name + " x;");
  const Parsed parsed(text);
  const std::string out = render_all(parsed.diags, parsed.sources);
  EXPECT_LT(out.size(), 1000U);
  expect_part(out, "nnn...` begins no statement");
  EXPECT_LT(render_json(parsed.diags, parsed.sources).size(), 1000U);
}

}  // namespace
}  // namespace kiln
