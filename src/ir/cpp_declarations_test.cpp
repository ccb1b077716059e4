#include "ir/cpp_declarations.h"

#include <gtest/gtest.h>

namespace kiln::ir {
namespace {

using Names = std::vector<std::string>;

// The names of all declarations, one after another.
Names names_in(std::string_view text) {
  Names out;
  for (const CppDeclaration& one : declarations_in_cpp(text)) {
    out.insert(out.end(), one.names.begin(), one.names.end());
  }
  return out;
}

TEST(CppDeclarations, AreTypesAndConstants) {
  EXPECT_EQ(names_in("struct alignas(8) Pair { float a, b; };"), Names{"Pair"});
  EXPECT_EQ(names_in("enum class Mode : int { kAdd = 1, kMul };"), (Names{"Mode", "kAdd", "kMul"}));
  EXPECT_EQ(names_in("enum { kFew };"), Names{"kFew"});
  EXPECT_EQ(names_in("typedef struct { int x; } Point;\nusing H = __half;"), (Names{"Point", "H"}));
  EXPECT_EQ(names_in("static constexpr float kT[] = {1, 2}; const int n = f(2);"),
            (Names{"kT", "n"}));
  EXPECT_EQ(names_in("template <typename T, int N = 2> struct A { T x[N]; };"), Names{"A"});
}

TEST(CppDeclarations, AreNothingElse) {
  EXPECT_EQ(names_in("int x = 1; const char* f(int a) { struct L { int y; }; return nullptr; }"),
            Names{});
  EXPECT_EQ(names_in("struct Later; using namespace cute; constexpr int f(int x) { return x; }"),
            Names{});
  EXPECT_EQ(names_in("struct S { std::string name; }; using V = choreo::f16;"), Names{});
  EXPECT_EQ(names_in("// struct A { };\n#define B struct C { };\n\"struct D { };\";"), Names{});
}

TEST(CppDeclarations, SayWhereTheyStand) {
  const std::string_view text = "int f() { return 1; }\nstruct A { int x; };\nint main() {}";
  const auto all = declarations_in_cpp(text);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(text.substr(all[0].begin, all[0].end - all[0].begin), "struct A { int x; };");
}

TEST(CppDeclarations, WordsAreAllOfThem) {
  EXPECT_EQ(words_in_cpp("const Pair& p = q.a; // r"), (Names{"const", "Pair", "p", "q", "a"}));
}

}  // namespace
}  // namespace kiln::ir
