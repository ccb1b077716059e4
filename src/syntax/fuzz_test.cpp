// Deterministic mutations of sample programs: whatever the text, the parser comes back, and the
// tree can be printed. Run under the sanitizers too (-DKILN_SANITIZE=ON).
#include <gtest/gtest.h>

#include <random>

#include "diag/render.h"
#include "syntax/parser.h"
#include "syntax/print.h"

namespace kiln {
namespace {

constexpr int kCases = 2000;

constexpr const char* kSamples[] = {
    R"(#define T 16
#define PAIR(a) ((a) * 2)
#if T % 16 != 0
#error "T"
#endif
__device__ float twice(float v) { return v + v; }
__co__ f32 [R] dbl(global f16 [R, K] & x, int n, stream q) {
  [[launch_bounds(_, 2)]] parallel.async<q> {i, j} by [cdiv(R, T), PAIR(2)] : block, t by 32 : thread {
    if (i # t < R && !j) x.at(i # t, 0) *= 2.0f; else { yield; }
  }
  return x;
}
int main() { return 0; }
)",
    R"(__co__ void ring(global f16 [M, K] a, global f16 [N, K] b, global f16 [M, N] c) {
  parallel {bm, bn} by [cdiv(M, 128), cdiv(N, 64)] : block {
    shared f16 [128, 64] as[4]; shared event full[4], empty[4] = ready;
    parallel w by 2 : group-4 {
      inthreads.async (w == 0) foreach {k} in [cdiv(K, 64)] {
        wait empty[k % 4];
        tma.copy.async<full[k % 4]>.swiz<128> a.subspan(128, 64).at(bm, k) => as[k % 4];
        trigger full[k % 4];
      }
      inthreads.async (w == 1) {
        mc = mma.fill.f32 0.0f;
        foreach k in [cdiv(K, 64)] : unroll(2) {
          wait full.at(k++);
          ma = mma.load as[k % 4].chunkat(_, k); mma.row.row.sp mc, ma, ma, me;
          mma.commit; mma.wait<1>;
        }
        mma.store.mask mc, c.view(64, 64).from(bm, bn), M, N;
      }
    }
    tile : [48, 32]; flat : tile [(0) * (1)]; ituple t = {1, 2};
    dma.pad<{0, 1}, {1, 0}, {0, 0}, 0> a => shared;
    __cpp__(R"x(int y;)x"); assert(|tile| % 8 == 0, "m" "n");
  }
}
)"};

constexpr const char* kPieces[] = {"{",
                                   "}",
                                   "(",
                                   ")",
                                   "[",
                                   "]",
                                   ";",
                                   "#",
                                   "\n#if ",
                                   "\n#else\n",
                                   "\"",
                                   "/*",
                                   "R\"x(",
                                   "'",
                                   "<",
                                   ">",
                                   "=>",
                                   "|",
                                   ".",
                                   ",",
                                   "mma.",
                                   "PAIR(",
                                   "__co__",
                                   "parallel",
                                   "\\\n",
                                   "\n#define T T T\n",
                                   "0x",
                                   "1e",
                                   "group-4",
                                   "foreach",
                                   "\xff",
                                   "??",
                                   "\n#include \"a.co\"\n",
                                   "#endif\n",
                                   "::"};

constexpr const char* kIncluded =
    "// Shared.\n#ifndef TILE\n#define TILE 64\n#endif\n#define PAIR(a) ((a) * 2)\n";

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    const std::size_t edits = 1 + below(4);
    for (std::size_t i = 0; i < edits; ++i) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  void edit(std::string& text) {
    const std::size_t at = below(text.size());
    const std::size_t length = below(20);
    const std::size_t kind = below(5);
    if (kind == 0) text.erase(at, length);
    if (kind == 1) text.insert(at, kPieces[below(std::size(kPieces))]);
    if (kind == 2) text.insert(below(text.size()), text.substr(at, length));
    if (kind == 3 && !text.empty()) text[at] = static_cast<char>(below(256));
    if (kind == 4) text.resize(below(4) == 0 ? at : text.size());
  }

  std::mt19937 random_;  // the same on every machine, unlike the distributions
};

TEST(Fuzz, MutatedProgramsNeverCrash) {
  Mutator mutator(20261121);
  std::size_t with_errors = 0;
  for (int i = 0; i < kCases; ++i) {
    const std::string text = mutator.mutate(kSamples[i % std::size(kSamples)]);
    Sources sources;
    Diagnostics diags;
    const FileId file = sources.add("t.co", text);
    const std::string included = mutator.mutate(kIncluded);
    const ParseOptions options{.definitions = {{"K", "64"}},
                               .read_included = [&](std::string_view from, std::string_view name) {
                                 return IncludedFile{format("{}/{}", from, name), included};
                               }};
    const ast::Ast tree = parse_file(sources, file, options, diags);
    const std::string printed = ast::print(tree);
    if (diags.has_errors()) ++with_errors;
    // An error in the tree has been reported.
    const bool error_in_tree = printed.find("(error)") != std::string::npos;
    EXPECT_TRUE(!error_in_tree || diags.has_errors()) << text;
    for (const Diagnostic& d : diags.all()) {
      EXPECT_LE(d.span.end, sources.text(d.span.file).size()) << text;
    }
    EXPECT_LT(render_all(diags, sources).size(), 1'000'000U);
  }
  EXPECT_GT(with_errors, std::size_t{kCases} / 2);
}

}  // namespace
}  // namespace kiln
