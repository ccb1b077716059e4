// Each rule is broken by one mistake in a sample that breaks none, in the form the rule holds from.
#include "ir/verify.h"

#include <set>

#include "ir/names.h"
#include "ir/samples_for_test.h"

namespace kiln::ir {

namespace {

struct Edit {
  const char* rule;
  const char* sample;
  const char* from;  // every occurrence is replaced
  const char* to;
};

constexpr Edit kEdits[] = {
    // structure
    {"params-are-values", kElements, "%n: s32 as n", "%n: f32 as n"},
    {"params-are-values", kElements, "%x: view<f32, global, [N, n]>",
     "%x: view<f32, global, [N, k]>"},
    {"operands-are-given", kMatmul, "fill frag=%mc value=%zero", "fill frag=%mc"},
    {"operands-are-in-scope", kElements, "index=[k] value=%chosen", "index=[k] value=%doubled"},
    {"results-are-defined", kMatmul, "copy_wait", "%w = copy_wait : f32"},
    {"vars-are-in-scope", kMatmul, "[16*block_m, 16*block_n]", "[16*block_m, 16*iv_k]"},
    {"vars-are-set-once", kMatmul, "vars=[warp_m, warp_n]", "vars=[warp_m, warp_n, warp_n]"},
    {"axes-have-extents", kMatmul, "var N: dim", "var N: dim < 5"},
    {"checks-are-of-the-call", kElements, "check 1 <= n", "check 1 <= k"},
    {"launches-are-not-nested", kElements, "level=thread vars=[t] unit=1",
     "level=block vars=[t] threads=128"},
    {"parallel-levels-descend", kMatmul, "level=group vars", "level=group4 vars"},
    {"parallel-units-fill", kMatmul, "threads=32 name", "threads=64 name"},
    {"loops-step-up", kMatmul, "for var=iv_k", "for var=iv_k step=0"},
    {"conditions-are-bool", kElements, "if condition=%inside", "if condition=%scale"},
    {"returns-are-on-the-host", kElements, "bind var=k value=%at",
     "bind var=k value=%at\n return value=%r"},
    {"barriers-have-a-unit", kMatmul, "barrier level=group", "barrier level=thread"},
    {"once-runs-alone", kElements, "write view=%s index=[0] value=%one", "barrier level=block"},
    {"collectives-are-launched", kElements, "  return value=%r", "  copy_wait\n  return value=%r"},
    {"collectives-are-launched", kElements, "  return value=%r",
     "  proxy_fence\n  return value=%r"},
    {"once-runs-alone", kElements, "write view=%s index=[0] value=%one", "mma_commit"},
    {"applies-go-element-by-element", kTiles, "apply frag=%part row=i col=j body={",
     "%half = alloc : frag<tile, f32, 2x32>\n"
     "    apply frag=%part row=i col=j body={\n      %other = element frag=%half : f32"},
    {"applies-go-element-by-element", kTiles, "store frag=%turned",
     "%alone = element frag=%row : f32\n    store frag=%turned"},
    {"applies-go-element-by-element", kProducts, "set_element frag=%acc value=%grown",
     "mma_commit"},
    // memory
    {"allocs-are-in-place", kElements, "name=\"r\" : view<f32, global, [N]>",
     "name=\"r\" : view<f32, local, [4]>"},
    {"allocs-have-sizes", kElements, "view<f32, local, [4]>", "view<f32, local, [n]>"},
    {"initial-values-agree", kElements, "initial=%half", "initial=%flag"},
    {"subviews-fit", kMatmul, "origin=[16*block_m, 16*iv_k]", "origin=[16*block_m]"},
    {"copies-join-views", kElements, "copy src=%x_row dst=%s", "copy src=%scale dst=%s"},
    {"copy-ranks-agree", kMatmul, "origin=[16*block_m, 16*iv_k] : view<f16, global, [16, 16]>",
     "origin=[16*block_m, 16*iv_k] drop=1 : view<f16, global, [16]>"},
    {"copy-dtypes-agree", kElements, "view<f32, local, [4]>", "view<s32, local, [4]>"},
    {"copy-units-are-known", kMatmul, "unit=32 way", "unit=33 way"},
    {"element-ranks-agree", kElements, "read view=%s index=[t]", "read view=%s index=[t, t]"},
    {"reads-of-other-blocks-are-possible", kElements, "read view=%s index=[t]",
     "read view=%s index=[t] block=[1]"},
    {"element-dtypes-agree", kElements, "index=[k] value=%chosen", "index=[k] value=%flag"},
    {"atomics-are-supported", kElements, "atomic kind=add view=%s", "atomic kind=xor view=%s"},
    {"unused-results-have-no-users", kElements, "operand=%v : f32", "operand=%old : f32"},
    {"fills-agree", kMatmul, "%zero = const : f16", "%zero = const : f32"},
    {"loads-fit", kMatmul, "origin=[16*warp_m, 0] : view<f16, shared, [16, 16]>",
     "origin=[16*warp_m, 0] : view<f16, shared, [16, 8]>"},
    {"stores-fit", kMatmul, "16*warp_n] : view<f16, shared, [16, 16]>",
     "16*warp_n] : view<f16, shared, [8, 16]>"},
    {"stores-fit", kMatmul, "16*warp_n] : view<f16, shared, [16, 16]>",
     "16*warp_n] : view<f16, shared, [16, 15]>"},
    {"scales-fit", kProducts, "origin=[64*i, 0] : view<f32, global, [64, 1]>",
     "origin=[64*i, 0] : view<f32, global, [32, 1]>"},
    {"scales-fit", kProducts, "factors=%factors", "factors=%a_s"},
    {"reductions-fit", kTiles, "source=%all kind=sum dimension=0", "source=%all kind=sum"},
    {"reductions-fit", kTiles, "source=%all kind=sum dimension=0",
     "source=%all kind=sum dimension=2"},
    {"reductions-fit", kTiles, "dimension=0 parts=2", "dimension=0"},
    {"scans-and-conversions-fit", kTiles, "scan frag=%grown", "scan frag=%sum"},
    {"scans-and-conversions-fit", kTiles, "scan frag=%grown source=%part",
     "scan frag=%grown source=%part dimension=2"},
    {"votes-fit", kTiles, "vote frag=%flags : bool", "vote frag=%flags : s32"},
    {"votes-fit", kTiles, "vote frag=%flags", "vote frag=%shared"},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),1):((4,1),2)\""},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),2):((4,1),4)\""},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),(2,2)):((4,1),(2,0))\""},
    {"registers-make-the-tile", kTiles, "name=\"turned\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"turned\" registers=\"(32,4):(4,1)\""},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),2):((4,1),2)\" padded=[2, 32]"},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),2):((4,1),2)\" padded=[2, 64]"},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),2):((4,1),2)\" padded=[2]"},
    {"registers-make-the-tile", kTiles, "name=\"grown\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"grown\" registers=\"((32,2),2):((4,1),2)\" padded=[2, 128]"},
    {"registers-make-the-tile", kTiles, "name=\"sum\" registers=\"((32,2),2):((2,0),1)\"",
     "name=\"sum\" registers=\"((32,2),4):((4,0),1)\" padded=[2, 64]"},
    {"padded-tiles-are-minded", kMatmul, "name=\"mc\" atom=m16n8k16.f16.f16",
     "name=\"mc\" atom=m16n8k16.f16.f16 padded=[16, 32]"},
    {"scans-are-lined-up", kTiles, "scan frag=%grown source=%part",
     "scan frag=%grown source=%part dimension=0"},
    {"scans-and-conversions-fit", kTiles, "convert frag=%turned", "convert frag=%sum"},
    {"scans-and-conversions-fit", kTiles, "convert frag=%turned",
     "%counts = alloc : frag<tile, s32, 2x64>\n    convert frag=%counts"},
    {"conversions-need-no-memory", kTiles, "name=\"turned\" registers=\"((32,2),2):((4,1),2)\"",
     "name=\"turned\" registers=\"((32,2),2):((2,1),64)\""},
    {"recasts-fit", kTiles, "recast frag=%halves", "recast frag=%sum"},
    {"recasts-fit", kTiles, "recast frag=%halves source=%part", "recast frag=%halves source=%sum"},
    {"recasts-stay-in-lanes", kTiles, "((32,2),(2,2)):((8,1),(2,4))",
     "((32,2),(2,2)):((4,1),(2,128))"},
    {"pairs-are-pairs", kTiles, "row=i col=j body", "row=i col=j pairs body"},
    {"ones-are-factors", kTiles, "row=i col=j body", "row=i col=j ones=%sum body"},
    {"mma-roles-agree", kMatmul, "a=%ma b=%mb", "a=%mb b=%ma"},
    {"load-majors-agree", kMatmul, "view=%a_view major=row", "view=%a_view major=col"},
    // scalars
    {"scalars-are-made", kElements, "%unused = const value=7 : s32",
     "%unused = const value=7 : cell<s32>"},
    {"binary-operands-agree", kElements, "left=%chosen right=%v", "left=%chosen right=%at"},
    {"binary-operands-agree", kElements, "kind=eq left=%chosen", "kind=logical_and left=%chosen"},
    {"binary-results-agree", kElements, "left=%v right=%scale : f32",
     "left=%v right=%scale : f32\n%odd = binary kind=lt left=%v right=%v : f32"},
    {"unary-types-agree", kElements, "kind=negate operand=%v", "kind=negate operand=%flag"},
    {"casts-are-of-scalars", kElements, "cast operand=%got", "cast operand=%acc"},
    {"bitcasts-keep-the-width", kElements, "bitcast operand=%h : u16", "bitcast operand=%h : u32"},
    {"fused-types-agree", kElements, "fma a=%v", "fma a=%h"},
    {"choices-agree", kElements, "true=%got false=%v", "true=%got false=%flag"},
    {"cells-agree", kElements, "set cell=%acc value=%v", "set cell=%acc value=%flag"},
    {"cells-agree", kElements, "set cell=%acc value=%v", "set cell=%s value=%v"},
    {"indices-are-integers", kElements, "bind var=k", "%odd = index expr=t : f32\nbind var=k"},
    {"binds-are-integers", kElements, "bind var=k value=%at", "bind var=k value=%v"},
    {"prints-have-their-values", kElements, "print text=\"%_ of", "print text=\"%_ %_ of"},
    {"cuda-has-its-values", kElements, "text=\"f(%_, &%_", "text=\"f(%_, %_, &%_"},
    {"cuda-has-its-values", kElements, "numbers=[%v] stand", "numbers=[%v] names=[\"v\"] stand"},
    {"cuda-has-its-values", kElements, "numbers=[%v] stand", "numbers=[%acc] stand"},
    {"cuda-has-its-values", kElements, "passed=[%s, %acc]", "passed=[%s, %v]"},
    // decided
    {"mmas-have-atoms", kMatmul, "atom=m16n8k16.f16.f16 repeats", "repeats"},
    {"mma-atoms-fit", kProducts, "atom=m64n32k16.f32.f16", "atom=m64n32k16.f32.bf16"},
    {"mma-atoms-fit", kMatmul, "atom=m16n8k16.f16.f16", "atom=m16n8k16.f32.f16"},
    {"repeats-make-the-tile", kMatmul, "repeats=[1, 2, 1]", "repeats=[1, 1, 1]"},
    {"fragments-share-the-atom", kMatmul, "name=\"ma\" atom=m16n8k16.f16.f16", "name=\"ma\""},
    {"shared-buffers-are-placed", kMatmul, " offset=2048", ""},
    {"shared-buffers-are-aligned", kMatmul, "offset=2048", "offset=2056"},
    {"shared-buffers-are-aligned", kMatmul, "offset=1024 swizzle", "offset=1040 swizzle"},
    {"swizzles-fit-the-rows", kMatmul, "swizzle=32", "swizzle=64"},
    {"swizzles-fit-the-rows", kMatmul, "swizzle=32", "swizzle=48"},
    {"shared-buffers-are-inside", kMatmul, "shared_bytes=4096", "shared_bytes=2048"},
    {"shared-buffers-are-apart", kMatmul, "offset=1024", "offset=0"},
    {"shared-memory-suffices", kMatmul, "shared_bytes=4096", "shared_bytes=999424 opts_in"},
    {"launches-are-planned", kMatmul, "shared_bytes=4096", "shared_bytes=4096 overlaps"},
    {"launches-are-planned", kMatmul, "shared_bytes=4096", "shared_bytes=4096 opts_in"},
    {"launches-are-planned", kMatmul, "shared_bytes=4096", "shared_bytes=4096 threads_max=64"},
    {"launches-are-planned", kMatmul, "shared_bytes=4096",
     "shared_bytes=4096 cluster_shape=[2, 1]"},
    {"launches-are-planned", kRing, " overlaps", " admits_next"},
    {"launches-are-planned", kRing, " overlaps", " cooperative overlaps"},
    {"launches-are-planned", kProducts, "barrier level=block inferred", "barrier level=block grid"},
    {"launches-are-planned", kMatmul, " bounds=[32]", ""},
    {"launches-are-planned", kMatmul, "bounds=[32]", "bounds=[31]"},
    {"launches-are-planned", kMatmul, "bounds=[32]", "bounds=[32, 0]"},
    {"launches-are-planned", kMatmul, "bounds=[32]", "bounds=[32, 1, 1]"},
    {"launches-are-planned", kMatmul, "shared_bytes=4096", "registers_max=64 shared_bytes=4096"},
    {"launches-are-planned", kRing, "bounds=[128, 1]", "bounds=[128]"},
    {"copies-have-ways", kMatmul, " way=gather grouped", ""},
    {"async-copies-go-to-shared", kMatmul, "dst=%output_tile way=gather",
     "dst=%output_tile way=gather grouped"},
    {"vectors-suit-the-copy", kElements, "way=per_thread widths=[4]",
     "way=vector threads=1 widths=[4]"},
    {"vectors-suit-the-copy", kMatmul, "way=gather grouped threads=32 widths=[16, 8, 4, 2]",
     "way=gather grouped threads=32 widths=[8, 4, 2]"},
    {"groups-are-of-threads", kMatmul, "way=gather grouped", "way=vector grouped"},
    {"groups-are-of-threads", kMatmul, "way=gather grouped", "way=async"},
    {"copies-have-threads", kMatmul, "threads=32 widths", "widths"},
    {"copy-widths-descend", kMatmul, "widths=[16, 8, 4, 2]", "widths=[16, 8, 8, 2]"},
    {"copy-widths-descend", kMatmul, " widths=[16, 8, 4, 2]", ""},
    {"copy-widths-divide-rows", kMatmul, "widths=[16, 8, 4, 2]", "widths=[16, 8, 4, 1]"},
    {"guards-are-dimensions", kMatmul, "guarded=[0, 1]", "guarded=[0, 2]"},
    {"guards-are-dimensions", kMatmul, "guarded=[0, 1]", "guarded=[1, 0]"},
    {"guards-are-dimensions", kElements, "tile_guarded=[0]", "tile_guarded=[1]"},
    {"guards-are-dimensions", kElements, "tile_guarded=[0]", "tile_guarded=[0] before=[1]"},
    {"guards-are-dimensions", kProducts, "guarded=[0, 1] before=[0]", "guarded=[0, 1] before=[2]"},
    {"guards-are-dimensions", kProducts, "guarded=[0] before=[0]", "guarded=[0] before=[1, 0]"},
    {"guards-are-dimensions", kRing, "value=%zero threads=128",
     "value=%zero threads=128 before=[1]"},
    {"guarded-tiles-move-by-element", kElements, "widths=[4] guarded=[0] tile_guarded=[0]",
     "widths=[8, 4] guarded=[0] tile_guarded=[0]"},
    {"guarded-tiles-move-by-element", kElements, "widths=[4] guarded=[0] tile_guarded=[0]",
     "widths=[8, 4] guarded=[0]"},
    {"guarded-tiles-move-by-element", kMatmul, "guarded=[0, 1]", "guarded=[0, 1] tile_guarded=[0]"},
    {"guarded-tiles-move-by-element", kMatmul, "guarded=[0, 1]", "guarded=[0, 1] before=[0]"},
    {"boxes-tile", kRing, " box=[64]", ""},
    {"boxes-tile", kRing, "box=[64]", "box=[65]"},
    {"boxes-tile", kRing, "box=[64]", "box=[0]"},
    {"boxes-tile", kRing, "way=bulk box", "permutation=[0] way=bulk box"},
    {"boxes-tile", kElements, "way=per_thread widths=[4]", "way=bulk box=[4]"},
    {"loads-are-planned", kMatmul, "instruction=ldmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8]", ""},
    {"load-instructions-fit", kMatmul, "instruction=ldmatrix.x4 matrices=[0, 0, 8",
     "instruction=ld.shared.4 matrices=[0, 0, 8"},
    {"load-matrices-cover-the-tile", kMatmul, "8, 0, 0, 8, 8, 8]", "8, 0, 0, 8, 0, 8]"},
    {"load-matrices-cover-the-tile", kMatmul, "8, 0, 0, 8, 8, 8]", "8, 0]"},
    {"loads-are-planned", kProducts, "in_shared", "in_shared element_run=1"},
    {"descriptors-fit", kProducts, "stride=1024", "stride=1032"},
    {"descriptors-fit", kProducts, "stride=1024", "leading=262144 stride=1024"},
    {"descriptors-fit", kProducts, "load frag=%y view=%b_s", "load frag=%y view=%b_tile"},
    {"orders-are-permutations", kProducts, " atom=m64n32k16.f32.f16 repeats",
     " order=[0, 1, 1, 3] atom=m64n32k16.f32.f16 repeats"},
    {"orders-are-permutations", kProducts, " atom=m64n32k16.f32.f16 repeats",
     " order=[1, 0] atom=m64n32k16.f32.f16 repeats"},
    {"mma-steps-are-given", kProducts, " b_steps=[0, 32, 64, 96]", ""},
    {"mma-steps-are-given", kProducts, "b_steps=[0, 32, 64, 96]", "b_steps=[0, 32]"},
    {"mma-steps-are-given", kProducts, "b_steps", "a_steps=[0, 32, 64, 96] b_steps"},
    {"mma-steps-are-given", kProducts, "in_shared stride=1024", "element_run=1"},
    {"sums-begin-with-products", kMatmul, "repeats=[1, 2, 1]", "repeats=[1, 2, 1] adds=0"},
    {"sums-begin-with-products", kProducts, "96]\n", "96] adds=k + 1\n"},
    {"sums-begin-with-products", kProducts, "96]\n", "96] adds=2\n"},
    {"sums-begin-with-products", kProducts, "fill frag=%part value=%zero",
     "fill frag=%part value=%zero implied"},
    {"stores-are-planned", kMatmul, " element_run=2", ""},
    {"stores-are-planned", kStores, "warp_step=[16, 0]\n", "warp_step=[16, 0] element_run=1\n"},
    {"store-instructions-fit", kStores, "instruction=stmatrix", "instruction=ldmatrix"},
    {"store-instructions-fit", kStores, "arch=sm_90a", "arch=sm_80"},
    {"store-instructions-fit", kStores, "[16, 0]\n", "[16, 0] guarded=[0]\n"},
    {"store-instructions-fit", kStores, "[16, 0]\n", "[16, 0] before=[0]\n"},
    {"store-matrices-cover-the-tile", kStores, "0, 8, 8, 8]", "0, 8, 8, 9]"},
    {"store-matrices-cover-the-tile", kStores, ", 0, 8, 8, 8]", "]"},
    {"store-matrices-cover-the-tile", kStores, "[16, 0]", "[8, 0]"},
    {"store-matrices-cover-the-tile", kStores, " warp_step=[16, 0]", ""},
    {"waits-count-up", kMatmul, "copy_wait", "copy_wait pending=-1"},
    {"async-copies-are-awaited", kMatmul, "copy_wait", "barrier level=group"},
    {"shared-reads-are-behind-barriers", kMatmul, "barrier level=block inferred", ""},
    {"shared-reads-are-behind-barriers", kMatmul, "barrier level=group inferred", ""},
    {"shared-reads-are-behind-barriers", kProducts, "barrier level=block inferred", ""},
    {"shared-reads-are-behind-barriers", kRing, "barrier level=block inferred id=1 threads=64", ""},
    {"async-copies-are-awaited", kMatmul, "copy_wait", "copy_wait pending=1"},
    {"copy-widths-descend", kRing, "way=bulk box", "way=bulk widths=[16] box"},
    {"waits-count-up", kRing, "bulk_wait landed", "bulk_wait pending=-1"},
    {"regions-have-threads", kRing, "registers count=40", "inthreads threads=32 async body={\n}"},
    {"regions-have-threads", kRing, "registers count=40", "inthreads threads=64 body={\n}"},
    {"regions-have-threads", kRing, "inthreads threads=32", "inthreads threads=0"},
    {"regions-are-inside-their-launch", kRing, "inthreads threads=32", "inthreads threads=4096"},
    {"regions-are-inside-their-launch", kRing, "inthreads threads=32",
     "inthreads first=9223372036854775807 threads=32"},
    {"named-barriers-fit", kRing, "inferred id=1", "inferred id=2"},
    {"named-barriers-fit", kRing, "id=1 threads=64", "id=1 threads=48"},
    {"named-barriers-fit", kMatmul, "level=block inferred", "level=block inferred id=3"},
    {"events-have-slots", kRing, "offset=768 : event<2>", "offset=768 : event<0>"},
    {"events-have-slots", kRing, "offset=768 : event<2>", "offset=768 : event<65537>"},
    {"meetings-have-makers", kRing, "event_wait event=%free", "event_wait event=%s"},
    {"meetings-have-makers", kRing, "trigger event=%free", "trigger event=%out"},
    {"meetings-have-makers", kRing, "async bulk event=%full", "async bulk event=%from"},
    {"waits-hold-tiles", kRing, "registers count=40", "mma_wait first=%free"},
    {"waits-hold-tiles", kRing, "registers count=40", "mma_wait held=[%free]"},
    {"waits-hold-tiles", kProducts, "pending=1 stated", "pending=1 stated first=%acc"},
    {"waits-hold-tiles", kProducts, "pending=1 stated", "pending=1 stated held=[%acc]"},
    {"events-are-placed", kRing, " arrivals=64", ""},
    {"events-are-placed", kRing, "offset=1024", "offset=1028"},
    {"triggers-have-arrivals", kRing, " arrival=thread", ""},
    {"triggers-have-arrivals", kRing, "arrival=elected", "arrival=warp"},
    {"registers-are-counts", kRing, "registers count=40", "registers count=39"},
    {"futures-are-counted", kRing, "registers count=40", "%f = future : future"},
    {"jumps-have-a-loop", kRing, "registers count=40", "break"},
    {"yields-are-of-all", kRing, "registers count=40", "once body={\nyield\n}"},
    {"loops-can-end", kRing, "          break\n", "          continue\n"},
    {"bulk-windows-are-no-larger", kRing, "origin=[mod(i, 2), 0] drop=1 : view<f32, shared, [64]>",
     "origin=[mod(i, 2), 0] drop=1 : view<f32, shared, [65]>"},
    {"additions-are-supported", kRing, "dst=%to async bulk event", "dst=%to async bulk adds event"},
    {"additions-are-supported", kRing, "dst=%out way=element", "dst=%out adds way=element"},
    {"aliases-have-buffers", kRing, "alias base=%s", "alias base=%s strides=[1]"},
    {"bulk-copies-know-their-buffer", kRing, "%from = subview base=%x",
     "%again = alias base=%x strides=[128, 1] : view<f32, global, [N, 64]>\n        %from = "
     "subview "
     "base=%again"},
    {"aliases-stay-inside", kRing, "alias base=%s : view<f32, shared, [128]>",
     "alias base=%s : view<f32, shared, [256]>"},
    {"splats-fill-views", kRing, "splat view=%flat value=%zero", "splat view=%zero value=%zero"},
    {"permutations-permute", kMatmul, "way=gather grouped",
     "permutation=[0, 0] way=gather grouped"},
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "nothing to replace: " << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

const Rule& rule_named(std::string_view name) {
  for (const Rule& rule : rules()) {
    if (rule.name == name) return rule;
  }
  KILN_UNREACHABLE("no rule `{}`", name);
}

// Whether verify() says this rule is broken, and that only this one is.
void expect_only(const Module& module, std::string_view rule) {
  const std::vector<std::string> broken = verify(module);
  EXPECT_FALSE(broken.empty()) << rule << " is not broken";
  for (const std::string& mistake : broken) {
    EXPECT_TRUE(mistake.starts_with(std::string(rule) + ": @")) << rule << ": " << mistake;
  }
}

TEST(Verify, TheSamplesBreakNoRuleInAnyForm) {
  for (const char* sample : {kMatmul, kElements, kProducts, kRing, kStores, kTiles}) {
    Module module = parsed(sample);
    EXPECT_EQ(verify(module), std::vector<std::string>{});
    module.form = Form::kTile;
    EXPECT_EQ(verify(module), std::vector<std::string>{});
  }
}

TEST(Verify, EachMistakeBreaksItsRuleAlone) {
  for (const Edit& edit : kEdits) {
    SCOPED_TRACE(edit.rule);
    Module module = parsed(replaced(edit.sample, edit.from, edit.to));
    module.form = rule_named(edit.rule).from;
    expect_only(module, edit.rule);
  }
}

TEST(Verify, ARuleIsSilentBeforeItsForm) {
  for (const Edit& edit : kEdits) {
    const Form from = rule_named(edit.rule).from;
    if (from == Form::kTile) continue;
    Module module = parsed(replaced(edit.sample, edit.from, edit.to));
    module.form = static_cast<Form>(static_cast<int>(from) - 1);
    EXPECT_EQ(verify(module), std::vector<std::string>{}) << edit.rule;
  }
}

// Mistakes that text cannot hold.

Module names_twice() {
  Module module = parsed(kElements);
  module.functions[0].values[ValueId{4}].name = "s";
  return module;
}

Module overflow() {
  Module module = parsed(kElements);
  for (Op& op : module.functions[0].ops) {
    if (auto* index = std::get_if<Index>(&op.data)) index->expr = Expr(INT64_MAX) + Expr(1);
  }
  return module;
}

// The contraction is 16 on one side and 8 on the other; nothing is loaded, so no load complains.
Module uneven_tiles() {
  return parsed(
      "module form=tile\nfunc @f() {\nvar b: parallel < 1\n"
      "parallel level=block vars=[b] threads=32 body={\n"
      "%a = alloc : frag<A, f16, 16x16>\n%b = alloc : frag<B, f16, 8x8>\n"
      "%c = alloc : frag<C, f16, 16x8>\nmma c=%c a=%a b=%b\n}\n}\n");
}

Module large_block() {
  return parsed(
      "module form=tile\nfunc @f() {\nvar b: parallel < 1\n"
      "parallel level=block vars=[b] threads=2048 body={\n}\n}\n");
}

struct Made {
  const char* rule;
  Module (*make)();
};
constexpr Made kMade[] = {
    {"names-are-unique", names_twice},
    {"expressions-fit", overflow},
    {"mma-shapes-agree", uneven_tiles},
    {"launches-fit", large_block},
};

TEST(Verify, MadeMistakesBreakTheirRuleAlone) {
  for (const Made& made : kMade) expect_only(made.make(), made.rule);
}

TEST(Verify, MajorsSayWhichAxisIsContracted) {
  const std::string text =
      "module form=tile\nfunc @f() {\nvar b: parallel < 1\n"
      "parallel level=block vars=[b] threads=32 body={\n"
      "%a = alloc : frag<A, f16, AEXT>\n%b = alloc : frag<B, f16, BEXT>\n"
      "%c = alloc : frag<C, f16, 32x8>\nmma c=%c a=%a b=%b a_major=AMAJ b_major=BMAJ\n}\n}\n";
  const auto broken = [&](const char* a, const char* a_major, const char* b, const char* b_major) {
    std::string program = replaced(replaced(text, "AEXT", a), "BEXT", b);
    program = replaced(replaced(program, "AMAJ", a_major), "BMAJ", b_major);
    return verify(parsed(program)).size();
  };
  EXPECT_EQ(broken("32x16", "row", "8x16", "row"), 0u);
  EXPECT_EQ(broken("32x16", "row", "16x8", "col"), 0u);
  EXPECT_EQ(broken("16x32", "col", "16x8", "col"), 0u);
  EXPECT_EQ(broken("32x16", "row", "8x16", "col"), 2u);
  EXPECT_EQ(broken("16x32", "row", "8x16", "row"), 2u);
}

TEST(Verify, OnlyAFillWithZeroIsLeftOut) {
  const std::string text =
      replaced(replaced(kProducts, "fill frag=%part value=%zero",
                        "%start = const value=VALUE : f32\nfill frag=%part value=%start implied"),
               "96]\n", "96] adds=k\n");
  EXPECT_EQ(verify(parsed(replaced(text, "VALUE", "0"))), std::vector<std::string>{});
  expect_only(parsed(replaced(text, "VALUE", "1")), "sums-begin-with-products");
}

TEST(Verify, EveryRuleIsBrokenByATest) {
  std::set<std::string_view> tested;
  for (const Edit& edit : kEdits) tested.insert(edit.rule);
  for (const Made& made : kMade) tested.insert(made.rule);
  std::set<std::string_view> named;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(named.insert(rule.name).second) << "two rules named " << rule.name;
    EXPECT_TRUE(tested.contains(rule.name)) << "no test breaks " << rule.name;
  }
}

TEST(Verify, BranchesOfAnIfDoNotWaitForEachOther) {
  const std::string text =
      "module form=decided\nfunc @f(global %x: view<f32, global, [64]>) {\n"
      "var b: parallel < 1\n"
      "parallel level=block vars=[b] threads=32 shared_bytes=256 bounds=[32] body={\n"
      "%s = alloc offset=0 : view<f32, shared, [64]>\n%yes = const value=1 : bool\n"
      "if condition=%yes then={\ncopy src=%x dst=%s way=vector threads=32 widths=[4]\n} else={\n"
      "copy src=%s dst=%x way=vector threads=32 widths=[4]\n}\nAFTER\n}\n}\n";
  EXPECT_EQ(verify(parsed(replaced(text, "AFTER", ""))), std::vector<std::string>{});
  expect_only(
      parsed(replaced(text, "AFTER", "copy src=%s dst=%x way=vector threads=32 widths=[4]")),
      "shared-reads-are-behind-barriers");
}

}  // namespace

}  // namespace kiln::ir
