// Every statement and expression of the language, as it is parsed.
#include "syntax/parser.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "syntax/print.h"

namespace kiln {
namespace {

struct Parsed {
  Sources sources;
  Diagnostics diags;
  ast::Ast tree;
  std::string printed;  // with the diagnostics, if any
};

Parsed parse(const std::string& text) {
  Parsed out;
  const FileId file = out.sources.add("t.co", text);
  out.tree = parse_file(out.sources, file, {}, out.diags);
  out.printed = ast::print(out.tree) + render_all(out.diags, out.sources);
  return out;
}

std::string statement(const std::string& text) {
  const std::string out = parse("__co__ void f() {\n" + text + "\n}\n").printed;
  const std::string head = "(tile void f (block ";
  if (!out.starts_with(head) || !out.ends_with("))\n")) return out;
  return out.substr(head.size(), out.size() - head.size() - 3);
}

struct Form {
  const char* text;
  const char* printed;
};

const Form kStatementForms[] = {
    {"[[launch_bounds(_, 2), maxnreg(128)]] parallel b by G : block ;",
     "(parallel [[launch_bounds[_ 2]]] [[maxnreg[128]]] (by {b} G level:block) (empty))"},
    {"parallel.async<q> b by cdiv(L, 128) : block, t by 128 : thread x.at(b # t) *= c;",
     "(parallel async stream:q (by {b} (cdiv L 128) level:block) (by {t} 128 level:thread) (*= "
     "(at x (# b t)) c))"},
    {"parallel t = {a, b} by [4, 8] : group yield;",
     "(parallel (by t {a b} [4 8] level:group) (yield))"},
    {"parallel by 4 : device(gpu) {}", "(parallel (by 4 level:device on:gpu) (block))"},
    {"parallel p by 6 : block<cooperative> { sync.barrier : block; }",
     "(parallel (by {p} 6 level:block cooperative) (block (sync barrier block)))"},
    {"[[persistent]] [[order(rows, 2)]] [[threads(32)]] parallel p by 6 : block {}",
     "(parallel [[persistent[]]] [[order[rows 2]]] [[threads[32]]] (by {p} 6 level:block) "
     "(block))"},
    {"foreach k(1:) s.at(k) = s.at(k) + 1;",
     "(foreach (over k 1 - -) (= (at s k) (+ (at s k) 1)))"},
    {"foreach c = k(:-1) ;", "(foreach (over c k - (- 1) -) (empty))"},
    {"foreach a, b(1:-1:2) : unroll(4), vectorize(a, 8) break;",
     "(foreach (over a) (over b 1 (- 1) 2) (unroll 4) (vectorize a 8) (break))"},
    {"foreach v(::2) continue;", "(foreach (over v - - 2) (continue))"},
    {"foreach i in x.span {}", "(foreach (in i x.span) (block))"},
    {"[[pipeline(3, producer)]] foreach i in x.span {}",
     "(foreach [[pipeline[3 producer]]] (in i x.span) (block))"},
    {"with v in 8, {a, b} in [4, 8], t = {c, d} in s.span where v <-> a, b <-> c {}",
     "(with (in v 8) (in {a b} [4 8]) (in t {c d} s.span) v<->a b<->c (block))"},
    {"with idx = {m, n} in [M, N] / {8, 16} foreach idx ;",
     "(with (in idx {m n} (/ [M N] {8 16})) (foreach (over idx) (empty)))"},
    {"while (n > 0) { n -= 1; }", "(while (> n 0) (block (-= n 1)))"},
    {"if (call f(x)) { } else if (a < b && !c) x = 1; else { }",
     "(if (call f x) (block) (if (&& (< a b) (! c)) (= x 1) (block)))"},
    {"inthreads.async (wg == 0) { wait e[s], f.at(n++); trigger.cluster e[s][2] after f, g; }",
     "(inthreads async (== wg 0) (block (wait (sub e s) (at f (post++ n))) (trigger cluster (sub "
     "(sub e s) 2) after:{f g})))"},
    {"mc = mma.fill 0.0;", "(mma.fill new mc 0d)"},
    {"mma.fill mc[i], 0.0f;", "(mma.fill mc[i] 0f)"},
    {"acc[i] = mma.fill.f32 0;", "(mma.fill new f32 acc[i] 0)"},
    {"mc = mma.fill.f32 0 [2, 4];", "(mma.fill new f32 mc 0 [2 4])"},
    {"mc = mma.fill.f32 -start [N];", "(mma.fill new f32 mc (- start) [N])"},
    {"mma.fill mc[0], start[1];", "(mma.fill mc[0] (sub start 1))"},
    {"frag.f32 mc[2] {0.0f};", "(frag acc f32 mc[2]{0f})"},
    {"frag f32 [64] peak {-inf};", "(frag f32 [64] peak{(- inff)})"},
    {"ma = mma.load.frag.swiz<128>.async lhs.data.chunkat(_, k);",
     "(mma.load new frag swiz:128 async ma (view lhs.data chunkat(_ k)))"},
    {"mma.load v.subspan(16, 16), mc;", "(mma.load mc (view v subspan(16 16)))"},
    {"mma.row.col mc[i], ma, b_s.chunkat(_, w);", "(mma row col mc[i] ma (view b_s chunkat(_ w)))"},
    {"f = mma.row.row.async mc, a_s[i % 2], b_s[i % 2].subspan(64, 64).at(0, k);",
     "(mma future:f row row async mc (sub a_s (% i 2)) (view (sub b_s (% i 2)) subspan(64 "
     "64).at(0 k)))"},
    {"mma.row.row.sp mc, ma, mb, me;", "(mma row row sp mc ma mb meta:me)"},
    {"mma.col.row.scale mc, ma, mb, sa.view(64, 1).from(r, 0), sb.at(j);",
     "(mma col row scale mc ma mb (view sa view(64 1).from(r 0)) (at sb j))"},
    {"[[schedule(k_tiles(1, 0))]] mma.row.row mc, a, b;", "(mma [[schedule[1 0]]] row row mc a b)"},
    {"mma.scale acc, sa.subspan(64, 1).at(bi, kb), sb.at(bj, kb);",
     "(mma.scale acc (view sa subspan(64 1).at(bi kb)) (at sb bj kb))"},
    {"mma.store.transp acc, ct.subspan(64, 64).at(bj, bi);",
     "(mma.store transp acc (view ct subspan(64 64).at(bj bi)))"},
    {"mma.store.mask acc, ct, rows, cols;", "(mma.store mask acc ct rows cols)"},
    {"mma.store.async acc, ct;", "(mma.store async acc ct)"},
    {"mma.commit;", "(mma.commit)"},
    {"mma.wait<1>;", "(mma.wait 1)"},
    {"dma.transp<1, 0> h.data => dst_t.subspan(32, 32).at(k, bi);",
     "(dma.transp perm:[1 0] h.data (view dst_t subspan(32 32).at(k bi)))"},
    {"h = dma.copy.swiz<64>.async src.subspan(32, 32).step(16, 16).at(bi, k).zfill => shared "
     "after f;",
     "(dma.copy handle:h async swiz:64 zfill (view src subspan(32 32).step(16 16).at(bi k)) "
     "shared after:f)"},
    {"dma.pad<{1, 2}, {3, 4}, {0, 0}, 0.0f>.async<ev[i % 2]> src => dst;",
     "(dma.pad pad:[1 2][3 4][0 0]0f async event:(sub ev (% i 2)) src dst)"},
    {"tma.copy.async<full[s]>.swiz<128> a.view(rows, K : K, 1).from(o, 0) => b[s];",
     "(tma.copy async event:(sub full s) swiz:128 (view a view(rows K : K 1).from(o 0)) (sub b "
     "s))"},
    {"tma.load.evict_last.promote<256>.multicast a => select(n % 2, b, c);",
     "(tma.load promote:256 multicast evict_last a (select (% n 2) b c))"},
    {"h = dma.copy.sp<2:4> a => local;", "(dma.copy handle:h sp kept:2/4 a local)"},
    {"f = dma.any;", "(dma.any f)"},
    {"x.map<local>(off, n);", "(expr (view x map<local>(off n)))"},
    {"shared event<128> go[2] = ready, free_[2];",
     "(event shared threads:128 go[2]=ready free_[2])"},
    {"event e;", "(event e)"},
    {"swap(f, g);", "(swap {f g})"},
    {"rotate f, g, h;", "(rotate {f g h})"},
    {"sync.shared;", "(sync shared)"},
    {"sync.fence : thread<shared>;", "(sync fence thread shared)"},
    {"call croq::cuda::setreg_dec(40);", "(call croq::cuda::setreg_dec 40)"},
    {"mutable f32 tot = call lane_sum<32, f16, 4*#p>(part.at(0), &x, &buf.at(1, 2), |x.span|, "
     "nullptr);",
     "(scalar mutable f32 tot=(call lane_sum template:[32 f16 (* 4 (# p))] (at part 0) (& x) (& "
     "(at buf 1 2)) |x.span| nullptr))"},
    {R"~(__cpp__("a" R"x(b"c)x");)~", R"~((cpp "ab\"c"))~"},
    {"[[expect({ y = x; })]] call f<ns::kFew>(x);",
     "(expect (block (= y x)) (call f template:[ns::kFew] x))"},
    {"[[expect(x + 1)]] y = call f(x);", "(expect (+ x 1) (= y (call f x)))"},
    {R"~(__asm__ volatile ("mov %0, %1;" : [d] "=r"(x) : "r"(y), "n"(4) :: );)~",
     R"~((asm volatile "mov %0, %1;" [(d "=r" x)] [( "r" y) ( "n" 4)] []))~"},
    {R"~(__asm__ ("bar.sync 0;" ::: "memory");)~", R"~((asm "bar.sync 0;" [] [] ["memory"]))~"},
    {R"~(assert(K % 8 == 0, "pitch");)~", R"~((assert (== (% K 8) 0) "pitch"))~"},
    {R"~(print("a", x, s.span(0));)~", R"~((print "a" x (elem s.span 0)))~"},
    {R"~(println!("tile ", s.span);)~", R"~((println ! "tile " s.span))~"},
    {"reduce_max(peak, s, 1);", "(reduce_max peak s 1)"},
    {"all_reduce_sum(row);", "(all_reduce_sum row)"},
    {"copy(d, s[1]);", "(copy d s[1])"},
    {"apply {i, j} in s.span s.at(i, j) = __exp2f((s.at(i, j) - peak.at(i)) * 1.4427f);",
     "(apply {i j} s (= (at s i j) (__exp2f (* (- (at s i j) (at peak i)) 1.4427f))))"},
    {"int tiles = cdiv(M, 64) * cdiv(N, 64), u {3};",
     "(scalar int tiles=(* (cdiv M 64) (cdiv N 64)) u{3})"},
    {"f32 acc;", "(scalar f32 acc)"},
    {"mutable x = 3;", "(scalar mutable x=3)"},
    {"shared f16 [64, 32] s[3], t {0.0f};", "(buffer shared f16 [64 32] s[3] t{0f})"},
    {"tile : [48, 32];", "(mdspan tile [48 32])"},
    {"halo : tile + {2, 2};", "(mdspan halo (+ tile {2 2}))"},
    {"flat : tile [(0) * (1)];", "(mdspan flat (sub tile (* <0> <1>)))"},
    {"mdspan<2> s : [t[(0), 4]];", "(mdspan rank:2 s [(sub t <0> 4)])"},
    {"ituple<2> t = {u {(0), 1}, 4};", "(ituple rank:2 t {(derive u <0> 1) 4})"},
    {"v = a.at(i, j) * 2.0f + (i > 0 ? a.at(i - 1, j) : 0.0f);",
     "(= v (+ (* (at a i j) 2f) (? (> i 0) (at a (- i 1) j) 0f)))"},
    {"y = a + b & c # d | ~e;", "(= y (+ a (| (& b (# c d)) (~ e))))"},
    {"y = #x + x #+ 2 - -3;", "(= y (- (+ (# x) (#+ x 2)) (- 3)))"},
    {"y = |f16| * |s| + |x.span|;", "(= y (+ (* |f16| |s|) |x.span|))"},
    {R"~(z = __to<f16>(0.25f) + __to<"unsigned*">(nullptr);)~",
     R"~((= z (+ (to f16 0.25f) (to "unsigned*" nullptr))))~"},
    {"w = x(-1) + t(i) + s.span(0);", "(= w (+ (+ (elem x (- 1)) (elem t i)) (elem s.span 0)))"},
    {"__atomic_add(x.at(i), 1);", "(expr (__atomic_add (at x i) 1))"},
    {"__atomic_add(x.at(i), own[k].block(r, 1 - s).at(i, j));",
     "(expr (__atomic_add (at x i) (at (block (sub own k) r (- 1 s)) i j)))"},
    {"i++;", "(expr (post++ i))"},
    {"r = x.chunk(4, 1).at(i, 0).modspan(16, _).span_as([4, 4]).sqz();",
     "(= r (view x chunk(4 1).at(i 0) modspan(16 _) span_as([4 4]) sqz()))"},
    {"block = thread + stream;", "(= block (+ thread stream))"},
    {"load = dma.copy a => shared;", "(dma.copy handle:load a shared)"},
    {"q = p_fast(a, b) + ns::g(1);", "(= q (+ (elem p_fast a b) (ns::g 1)))"},
    {"return;", "(return)"},
    {"a += b;", "(+= a b)"},
    {"#pragma croq intrinsic namespace fast", "(pragma namespace fast)"},
    {"int big = 0xFFFFFFFF + 1u + 5ll + 1e-3f + inf;",
     "(scalar int big=(+ (+ (+ (+ 4294967295:s64 1:u32) 5:s64) 0.001f) inff))"},
};

TEST(Parser, EveryStatementForm) {
  for (const Form& form : kStatementForms)
    EXPECT_EQ(statement(form.text), form.printed) << form.text;
}

TEST(Parser, FormsThatAreExtensions) {
  static const Form kForms[] = {
      {"mma.scale acc, part, sa.subspan(64, 1).at(bi, kb), sb.at(bj, kb);",
       "(mma.scale acc part (view sa subspan(64 1).at(bi kb)) (at sb bj kb))"},
      {"mma.scale acc, part[1], sa, 2.0f;", "(mma.scale acc part[1] sa 2f)"},
      {"mma.store acc.subspan(_, 64).at(_, 1), ct;",
       "(mma.store (view acc subspan(_ 64).at(_ 1)) ct)"},
      {"mma.store.transp acc.subspan(_, 8).at(_, i), ct[0];",
       "(mma.store transp (view acc subspan(_ 8).at(_ i)) (sub ct 0))"},
  };
  for (const Form& form : kForms) EXPECT_EQ(statement(form.text), form.printed) << form.text;
}

TEST(Parser, Precedence) {
  static const Form kForms[] = {
      {"x = a ? b : c ? d : e;", "(= x (? a b (? c d e)))"},
      {"x = a || b && c;", "(= x (|| a (&& b c)))"},
      {"x = a && b == c;", "(= x (&& a (== b c)))"},
      {"x = a == b < c;", "(= x (== a (< b c)))"},
      {"x = a < b << c;", "(= x (< a (<< b c)))"},
      {"x = a << b + c;", "(= x (<< a (+ b c)))"},
      {"x = a - b - c;", "(= x (- (- a b) c))"},
      {"x = a + b * c;", "(= x (+ a (* b c)))"},
      {"x = a * b #+ 1;", "(= x (* a (#+ b 1)))"},
      {"x = a #* 2 #- 1;", "(= x (#- (#* a 2) 1))"},
      {"x = a * b & c;", "(= x (* a (& b c)))"},
      {"x = !a & b;", "(= x (! (& a b)))"},
      {"x = a | b # c;", "(= x (| a (# b c)))"},
      {"x = a # b # c;", "(= x (# (# a b) c))"},
      {"x = #a * 2;", "(= x (* (# a) 2))"},
      {"x = a # ~b;", "(= x (# a (~ b)))"},
      {"x = -a.at(1);", "(= x (- (at a 1)))"},
      {"x = a & -1;", "(= x (& a (- 1)))"},
      {"x = |a| + |b|;", "(= x (+ |a| |b|))"},
      {"x = |[a | b]|;", "(= x |[(| a b)]|)"},
  };
  for (const Form& form : kForms) EXPECT_EQ(statement(form.text), form.printed) << form.text;
}

TEST(Parser, Signatures) {
  EXPECT_EQ(parse("__co__ f32 [M, 4] k(global f16 [M, ?, ??] a, f32 mdspan<2> & b, int n,\n"
                  "  stream q, bool, f32 mdspan[4, N] z, shared f32 [2] s) {}")
                .printed,
            "(tile f32[M 4] k (param global f16 [M ? ??] a) (param f32 mdspan<2> & b) "
            "(param int n) (param stream q) (param bool) (param f32 [4 N] z) "
            "(param shared f32 [2] s) (block))\n");
  EXPECT_EQ(parse("__co__ auto f() {}").printed, "(tile auto f (block))\n");
}

TEST(Parser, WordsThatAreOnlyNames) {
  EXPECT_EQ(statement("block = copy + thread * load; wait = stream; sync.at(0) = call;"),
            "(= block (+ copy (* thread load))) (= wait stream) (= (at sync 0) call)");
  EXPECT_EQ(statement("foreach row in 4 event.at(row) = select;"),
            "(foreach (in row 4) (= (at event row) select))");
}

TEST(Parser, NumbersHaveTheirTypes) {
  EXPECT_EQ(statement("x = {2147483647, 2147483648, 4294967295u, 4294967296u, 1ll, 1.5, 1.5f};"),
            "(= x {2147483647 2147483648:s64 4294967295:u32 4294967296:u64 1:s64 1.5d 1.5f})");
}

// A warp per 16x16 tile, tiles copied to anonymous shared buffers.
constexpr const char* kWarpKernel = R"(
#define T 16
__co__ void gram(global f16 [R, K] x, global f32 [R, R] g) {
  parallel {i, j} by [cdiv(R, T), cdiv(R, T)] : block
    parallel w by 1 : group {
      acc = mma.fill.f32 0.0f;
      foreach k in [cdiv(K, T)] {
        p = dma.copy x.subspan(T, T).at(i, k) => shared;
        q = dma.copy x.subspan(T, T).at(j, k) => shared;
        a = mma.load p;
        b = mma.load q;
        mma.row.row acc, a, b;
      }
      mma.store acc, g.subspan(T, T).at(i, j);
    }
}
)";

TEST(Parser, WarpKernel) {
  EXPECT_EQ(parse(kWarpKernel).printed,
            "(tile void gram (param global f16 [R K] x) (param global f32 [R R] g) (block "
            "(parallel (by {i j} [(cdiv R 16) (cdiv R 16)] level:block) "
            "(parallel (by {w} 1 level:group) (block (mma.fill new f32 acc 0f) "
            "(foreach (in k [(cdiv K 16)]) (block "
            "(dma.copy handle:p (view x subspan(16 16).at(i k)) shared) "
            "(dma.copy handle:q (view x subspan(16 16).at(j k)) shared) "
            "(mma.load new a p) (mma.load new b q) (mma row row acc a b))) "
            "(mma.store acc (view g subspan(16 16).at(i j))))))))\n");
}

// Two warpgroups share one operand tile; the accumulator belongs to each of them.
constexpr const char* kWarpgroupKernel = R"(
#define BM 128
#define BN 64
#define BK 64
__co__ void pair(global f16 [M, K] l, global f16 [N, K] r, global f16 [M, N] o) {
  parallel {bm, bn} by [cdiv(M, BM), cdiv(N, BN)] : block {
    shared f16 [BM, BK] ls; shared f16 [BN, BK] rs; shared f16 [BM, BN] os;
    mc = mma.fill.f32 0.0f;
    foreach {k} in [cdiv(K, BK)] {
      dma.copy.swiz<128> l.subspan(BM, BK).at(bm, k) => ls;
      dma.copy.swiz<128> r.chunkat(bn, k) => rs;
      parallel p by 2 : group-4 {
        foreach {s} in [cdiv(BK, 16)] {
          ma = mma.load ls.subspan(64, BK).at(p, 0).chunkat(_, s);
          mb = mma.load rs.chunkat(_, s);
          mma.row.row mc, ma, mb;
        }
      }
    }
    parallel p by 2 : group-4
      mma.store mc, os.subspan(64, BN).at(p, 0);
    dma.copy os => o.subspan(BM, BN).at(bm, bn);
  }
}
)";

TEST(Parser, WarpgroupKernel) {
  const Parsed out = parse(kWarpgroupKernel);
  EXPECT_FALSE(out.diags.has_errors()) << out.printed;
  EXPECT_NE(out.printed.find("(mma.load new ma (view ls subspan(64 64).at(p 0) chunkat(_ s)))"),
            std::string::npos);
  EXPECT_NE(out.printed.find("(parallel (by {p} 2 level:group-4) (mma.store mc (view os "
                             "subspan(64 64).at(p 0))))"),
            std::string::npos);
  EXPECT_EQ(out.tree.expansions.size(), 16U);
}

TEST(Parser, SpansAreNarrow) {
  const Parsed out = parse("__co__ void f() {\n  x = a.subspan(8, 8).at(i, j) + (b # c);\n}\n");
  const auto text = [&](Span span) { return out.sources.text(span); };
  const auto* tile = std::get_if<ast::TileFunction>(&out.tree.regions[0]);
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(text(tile->signature_span), "__co__ void f()");
  EXPECT_EQ(text(tile->name.span), "f");
  const auto* block = out.tree.as<ast::BlockStmt>(tile->body);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(text(out.tree[block->body[0]].span), "x = a.subspan(8, 8).at(i, j) + (b # c);");
  const auto* assign = out.tree.as<ast::AssignStmt>(block->body[0]);
  ASSERT_NE(assign, nullptr);
  EXPECT_EQ(text(assign->op_span), "=");
  const auto* sum = out.tree.as<ast::BinaryExpr>(assign->value);
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(text(sum->op_span), "+");
  EXPECT_EQ(text(out.tree[sum->right].span), "(b # c)");
  const auto* view = out.tree.as<ast::ViewExpr>(sum->left);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(text(view->ops[0].span), ".subspan(8, 8).at(i, j)");
  EXPECT_EQ(text(view->ops[0].word_span), "subspan");
  EXPECT_EQ(text(view->ops[0].origin_span), "at");
  EXPECT_EQ(text(out.tree[view->ops[0].args[1]].span), "8");
}

}  // namespace
}  // namespace kiln
