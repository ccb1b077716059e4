#include "ir/print.h"

#include <bit>
#include <random>
#include <set>

#include "ir/names.h"
#include "ir/samples_for_test.h"
#include "ir/verify.h"

namespace kiln::ir {

namespace {

TEST(PrintParse, SamplesComeBackByteForByte) {
  EXPECT_EQ(print(parsed(kMatmul)), kMatmul);
  EXPECT_EQ(print(parsed(kElements)), kElements);
  EXPECT_EQ(print(parsed(kProducts)), kProducts);
  EXPECT_EQ(print(parsed(kRing)), kRing);
  EXPECT_EQ(print(parsed(kTiles)), kTiles);
  EXPECT_EQ(print(parsed(kNames)), kNames);
}

TEST(PrintParse, TheSamplesHoldEveryOperation) {
  std::set<OpKind> seen;
  for (const char* text : {kMatmul, kElements, kProducts, kRing, kTiles, kNames}) {
    const Module module = parsed(text);
    for (const Op& op : module.functions[0].ops) seen.insert(op.kind());
  }
  for (const auto& row : enum_names<OpKind>()) {
    EXPECT_TRUE(seen.contains(row.value)) << "no sample has `" << row.name << "`";
  }
}

TEST(PrintParse, AFreshOperationPrintsItsEnumeratorsOnly) {
  const std::string text =
      "module form=tile\n\nfunc @f() {\n  barrier level=block\n  unary kind=negate\n  mma "
      "a_major=row b_major=row unit=group\n  copy\n}\n";
  EXPECT_EQ(print(parsed(text)), text);
}

TEST(PrintParse, AFlagThatIsSetOfItselfComesBack) {
  for (const char* line : {"event_wait", "event_wait tracked=false slot=1 generation=2"}) {
    const std::string text = format("module form=tile\n\nfunc @f() {{\n  {}\n}}\n", line);
    const Module module = parsed(text);
    const auto& wait = std::get<EventWait>(module.functions[0].ops[OpId{0}].data);
    EXPECT_EQ(wait.tracked, text.find("tracked") == std::string::npos);
    EXPECT_EQ(parsed(print(module)).functions[0].ops.size(), 1u);
    EXPECT_NE(print(module).find(wait.tracked ? "event_wait\n" : "tracked=false"),
              std::string::npos);
  }
}

TEST(PrintParse, EveryEnumeratorComesBack) {
  const auto line = [](std::string_view before, std::string_view name,
                       std::string_view after = "") {
    const std::string text =
        format("module form=tile\n\nfunc @f() {{\n  {}{}{}\n}}\n", before, name, after);
    EXPECT_EQ(print(parsed(text)), text);
  };
  for (const auto& row : enum_names<BinaryKind>()) line("binary kind=", row.name);
  for (const auto& row : enum_names<UnaryKind>()) line("unary kind=", row.name);
  for (const auto& row : enum_names<Level>()) line("barrier level=", row.name);
  for (const auto& row : enum_names<ReduceKind>()) line("reduce kind=", row.name);
  for (const auto& row : enum_names<Major>()) {
    line("mma a_major=row b_major=", row.name, " unit=group");
  }
  for (const auto& row : enum_names<Level>()) line("mma a_major=row b_major=row unit=", row.name);
  for (const auto& row : enum_names<Form>()) {
    const std::string text = format("module form={}\n", row.name);
    EXPECT_EQ(print(parsed(text)), text);
  }
}

TEST(PrintParse, NumbersComeBackExactly) {
  for (const char* number : {"-0.0", "0.1", "1e-45", "-inf", "nan", "65504.0", "1.5e+300"}) {
    const std::string text =
        format("module form=tile\nfunc @f() {{\n%c = const value={} : f64\n}}", number);
    const Module once = parsed(text);
    const Module twice = parsed(print(once));
    const auto value = [](const Module& m) {
      return std::get<Const>(m.functions[0].ops[OpId{0}].data).value;
    };
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value(once)), std::bit_cast<std::uint64_t>(value(twice)))
        << number;
  }
}

TEST(PrintParse, IntegersReachBothEndsOf64Bits) {
  const std::string text =
      "module form=tile\n\nfunc @f() {\n  var n: dim\n  copy_wait pending=9223372036854775807\n"
      "  copy_wait pending=-9223372036854775808\n"
      "  %i = index expr=-9223372036854775808 : s64\n"
      "  %j = index expr=-n - 9223372036854775808 : s64\n}\n";
  EXPECT_EQ(print(parsed(text)), text);
}

TEST(PrintParse, RegistersOfATileComeBack) {
  const Module module = parsed(kTiles);
  const Function& f = module.functions[0];
  int found = 0;
  for (const Op& op : f.ops) {
    const auto* alloc = std::get_if<Alloc>(&op.data);
    if (alloc == nullptr || alloc->name != "all") continue;
    EXPECT_EQ(size(alloc->registers), 64 * 4);
    EXPECT_EQ(alloc->registers(33, 3), 7) << "lane 33 holds row 1 of column 3 as its last value";
    ++found;
  }
  EXPECT_EQ(found, 1);
}

TEST(PrintParse, TablesAreRebuiltInOrder) {
  const Module module = parsed(kElements);
  const Function& f = module.functions[0];
  ASSERT_EQ(f.vars.size(), 6u);
  EXPECT_EQ(f.vars[VarId{2}].name, "b");
  EXPECT_EQ(f.vars[VarId{2}].kind, VarKind::kParallel);
  EXPECT_EQ(f.text(f.vars[VarId{2}].extent), "cdiv(N, 128)");
  ASSERT_EQ(f.params.size(), 4u);
  EXPECT_FALSE(f.params[0].is_global);
  EXPECT_TRUE(f.params[1].is_reference);
  EXPECT_EQ(f.params[3].var, VarId{1});
  ASSERT_EQ(f.checks.size(), 3u);
  EXPECT_EQ(f.checks[1].relation, Relation::kDivides);
  EXPECT_EQ(f.checks[1].message, "\"N\" divides by 4\n");
}

TEST(PrintParse, SpansPointAtTheOperationWithoutItsRegions) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("sample.kir", kMatmul);
  Checked<Module> module = parse(sources, file, diags);
  ASSERT_TRUE(module.has_value());
  const Function& f = module->functions[0];
  const auto text_of = [&](OpKind kind) {
    for (const Op& op : f.ops) {
      if (op.kind() == kind) return std::string(sources.text(op.span));
    }
    return std::string();
  };
  EXPECT_EQ(text_of(OpKind::kFill), "fill frag=%mc value=%zero");
  EXPECT_EQ(text_of(OpKind::kFor), "for var=iv_k upper=cdiv(K, 16)");
  EXPECT_EQ(sources.text(f.vars[VarId{3}].span), "block_m");
}

// --- mistakes

std::string mistake_in(const std::string& text) {
  Sources sources;
  Diagnostics diags;
  const Checked<Module> module = parse(sources, sources.add("bad.kir", text), diags);
  if (module.has_value()) return "none";
  EXPECT_EQ(diags.all().size(), 1u);
  EXPECT_EQ(info(diags.all()[0].id).name, "ir-syntax");
  EXPECT_LE(diags.all()[0].span.end, text.size());
  return diags.all()[0].message + (diags.all()[0].help.empty() ? "" : "; " + diags.all()[0].help);
}

std::string mistake_in_body(const std::string& body) {
  return mistake_in("module form=tile\nfunc @f(%p: f32) {\n  var N: dim\n" + body + "\n}\n");
}

TEST(Parse, NamesWhatItExpected) {
  EXPECT_EQ(mistake_in(""), "IR text: expected `module`, found the end of the text");
  EXPECT_EQ(
      mistake_in("module form=tiles"),
      "IR text: expected one of `tile`, `atoms`, `laid_out`, `planned`, `met`, `decided`, found "
      "`tiles`");
  EXPECT_EQ(mistake_in("module arch=sm_1 form=tile"),
            "IR text: unknown architecture `sm_1`, known are " + target::arch_names());
  EXPECT_EQ(mistake_in("module form=tile func"),
            "IR text: expected the end of the line, found `func`");
  EXPECT_EQ(mistake_in("module form=tile\nfunc @f("),
            "IR text: expected `)`, found the end of the text");
}

TEST(Parse, SuggestsTheNameThatWasMeant) {
  EXPECT_EQ(mistake_in_body("bariers level=block"),
            "IR text: unknown operation `bariers`; did you mean `barrier`?");
  EXPECT_EQ(mistake_in_body("barrier levl=block"),
            "IR text: unknown attribute `levl`; did you mean `level`?");
  EXPECT_EQ(mistake_in_body("return value=%pp"), "IR text: unknown value `pp`; did you mean `p`?");
  EXPECT_EQ(mistake_in_body("%i = index expr=4*NN : s32"),
            "IR text: unknown variable `NN`; did you mean `N`?");
}

TEST(Parse, RefusesWhatIsThereTwice) {
  EXPECT_EQ(mistake_in_body("barrier level=block level=group"), "IR text: `level` is given twice");
  EXPECT_EQ(mistake_in_body("%p = const : f32"), "IR text: `%p` is already defined");
  EXPECT_EQ(mistake_in("module form=tile\nfunc @f() {\nvar a: dim\nvar a: dim\n}"),
            "IR text: `a` is already declared");
}

TEST(Parse, RefusesWrongKinds) {
  EXPECT_EQ(mistake_in_body("return value=N"), "IR text: expected a value as in `%x`, found `N`");
  EXPECT_EQ(mistake_in_body("copy_wait pending=%p"), "IR text: expected an integer, found `%p`");
  EXPECT_EQ(mistake_in_body("copy_wait pending=99999999999999999999"),
            "IR text: `99999999999999999999` does not fit 64 bits");
  EXPECT_EQ(mistake_in_body("%f = alloc : frag<A, f16, 16>"),
            "IR text: expected extents as in `16x8`, found `16`");
  EXPECT_EQ(mistake_in_body("%f = alloc : half"), "IR text: expected a type, found `half`");
  EXPECT_EQ(mistake_in_body("mma atom=m1n1k1"), "IR text: unknown matrix instruction `m1n1k1`");
  EXPECT_EQ(mistake_in_body("assert message=\"\\q\""),
            "IR text: an escape other than `\\\"`, `\\\\` and `\\xHH`");
  EXPECT_EQ(mistake_in_body("copy_wait copy_wait"), "IR text: unknown attribute `copy_wait`");
}

TEST(Parse, SurvivesDepthAndGrowth) {
  const auto repeat = [](std::string_view piece, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += piece;
    return out;
  };
  const auto index = [](const std::string& expr) {
    return mistake_in_body("%i = index expr=" + expr + " : s64");
  };
  EXPECT_EQ(index(repeat("(", 100000)), "IR text: brackets nested above 64");
  EXPECT_EQ(index(repeat("-", 100000)), "IR text: signs nested above 64");
  EXPECT_EQ(index(repeat("min(N, ", 100000)), "IR text: brackets nested above 64");
  EXPECT_EQ(index("N" + repeat("*N", 100)), "IR text: a product of 17 factors, the limit is 16");
  EXPECT_EQ(index("9223372036854775807 + 1"), "IR text: an expression that leaves 64 bits");
  EXPECT_EQ(mistake_in_body(repeat("once body={\n", 100000)), "IR text: regions nested above 64");
  EXPECT_EQ(mistake_in("module form=tile\nfunc @f() {\nvar 9: dim\n}"),
            "IR text: `9` is no name of a variable");
}

// Whatever the text, reading it ends in a module or one diagnostic, and a module can be verified,
// printed and read again.
TEST(Parse, MutatedTextNeverCrashes) {
  constexpr std::string_view kPieces[] = {"%",      "{",  "}",    "(",     ")",    "[",     "]",
                                          "=",      "\n", "-",    "99999", "\"",   "<",     ",",
                                          ":",      "*",  "%mc",  "%s",    "none", "K",     "t",
                                          "level=", "//", "0",    "-1",    "f32",  "view<", "var ",
                                          "cdiv(",  "\\", "\xff", "b"};
  constexpr const char* kSamples[] = {kMatmul, kElements, kProducts, kTiles};
  std::mt19937 random(20240611);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kSamples[below(std::size(kSamples))];
    const std::size_t edits = 1 + below(2);
    for (std::size_t i = 0; i < edits; ++i) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(below(4), text.size() - at);
      text.replace(at, length,
                   below(3) == 0 ? text.substr(below(text.size()), length)
                                 : std::string(kPieces[below(std::size(kPieces))]));
    }
    Sources sources;
    Diagnostics diags;
    const Checked<Module> module = parse(sources, sources.add("fuzz.kir", text), diags);
    EXPECT_NE(module.has_value(), diags.has_errors());
    if (!module) continue;
    ++accepted;
    static_cast<void>(verify(*module));
    const std::string again = print(*module);
    EXPECT_EQ(print(parsed(again)), again);
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace

}  // namespace kiln::ir
