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
      {"number-suffix", in_function("x = 12xy;")},
      {"else-without-if", in_function("else x = 1;")},
      {"else-without-if", "#endif\n"},
      {"else-without-if", "#else\n"},
      {"else-without-if", "#elif 1\n"},
      {"else-after-else", "#if 0\n#else\n#else\n#endif\n"},
      {"endif-missing", "#ifdef X\n"},
      {"condition-malformed", "#if 1 +\n#endif\n"},
      {"condition-division-by-zero", "#if 1 / 0\n#endif\n"},
      {"error-directive", "#error no tiles\n"},
      {"directive-malformed", "#define\n"},
      {"macro-arguments", "#define TWICE(a) a * 2\n" + in_function("x = TWICE(1, 2);")},
      {"macro-unterminated", "#define TWICE(a) a * 2\n" + in_function("x = TWICE(1;")},
      {"macro-unsupported", "#define LOG(...) 0\n" + in_function("x = LOG(1);")},
      {"macro-too-large",
       "#define A B B B B B B B B\n#define B C C C C C C C C\n"
       "#define C D D D D D D D D\n#define D E E E E E E E E\n"
       "#define E F F F F F F F F\n#define F G G G G G G G G\n"
       "#define G 1 + 1 + 1 + 1 +\n" +
           in_function("x = A 1;")},
      {"tile-function-specifier", "inline __co__ void f() {}\n"},
      {"tile-function-without-body", "__co__ void f();\n"},
      {"missing-brace", "__co__ void f() {\n"},
      {"extra-brace", "__co__ void f() {}\n}\n"},
      {"unclosed-bracket", in_function("x = (1 + 2;")},
      {"missing-semicolon", in_function("x = 1\n  y = 2;")},
      {"unexpected-token", in_function("x = * 2;")},
      {"unknown-statement", in_function("parralel p by 2 : block {}")},
      {"unknown-statement", in_function("frobnicate x;")},
      {"reserved-name", in_function("int if = 3;")},
      {"wildcard-name", in_function("int _ = 3;")},
      {"unknown-member", in_function("x = a.chunkt(1);")},
      {"unknown-member", in_function("ma = mma.lod a;")},
      {"unknown-member", in_function("h = dma.cpoy a => shared;")},
      {"unknown-level", in_function("parallel p by 2 : blok {}")},
      {"group-suffix", in_function("parallel p by 2 : group-8 {}")},
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
  std::string sum = "x = 1";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  return {{"macro-too-deep", chain + in_function("x = A0;")},
          {"nesting-too-deep", in_function("x = " + parens + "1;")},
          {"nesting-too-deep", in_function(braces + closers)},
          {"nesting-too-deep", in_function(sum + ";")}};
}

std::vector<std::string> ids_of(const std::string& text, std::string* rendered) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("t.co", text);
  static_cast<void>(parse_file(sources, file, {}, diags));
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

}  // namespace
}  // namespace kiln
