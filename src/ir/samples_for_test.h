// Modules that tests print, parse, break and resolve: every operation occurs in one of them, all
// but kNames are in the decided form and none breaks a rule.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "diag/render.h"
#include "ir/print.h"

namespace kiln::ir {

// The K loop of a one-warp matrix multiplication, as the passes leave it.
inline constexpr const char* kMatmul = R"(module arch=sm_80 form=decided

func @matmul_wmma(global %lhs: view<f16, global, [M, K]>, global %rhs: view<f16, global, [N, K]>, global %output: view<f16, global, [M, N]>) {
  var M: dim
  var K: dim
  var N: dim
  var block_m: parallel < cdiv(M, 16)
  var block_n: parallel < cdiv(N, 16)
  var warp_m: parallel < 1
  var warp_n: parallel < 1
  var iv_k: loop < cdiv(K, 16)
  parallel level=block vars=[block_m, block_n] threads=32 name="matmul_wmma" shared_bytes=4096 bounds=[32] body={
    %output_s = alloc name="output_s" offset=2048 : view<f16, shared, [16, 16]>
    parallel level=group vars=[warp_m, warp_n] unit=32 body={
      %zero = const : f16
      %mc = alloc name="mc" atom=m16n8k16.f16.f16 : frag<C, f16, 16x16>
      fill frag=%mc value=%zero
      for var=iv_k upper=cdiv(K, 16) body={
        %lhs_load_s = alloc name="lhs_load_s" offset=0 swizzle=32 : view<f16, shared, [16, 16]>
        %lhs_tile = subview base=%lhs origin=[16*block_m, 16*iv_k] : view<f16, global, [16, 16]>
        copy src=%lhs_tile dst=%lhs_load_s unit=32 way=gather grouped threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
        %rhs_load_s = alloc name="rhs_load_s" offset=1024 swizzle=32 : view<f16, shared, [16, 16]>
        %rhs_tile = subview base=%rhs origin=[16*block_n, 16*iv_k] : view<f16, global, [16, 16]>
        copy src=%rhs_tile dst=%rhs_load_s unit=32 way=gather grouped threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
        copy_wait
        barrier level=group inferred
        %a_view = subview base=%lhs_load_s origin=[16*warp_m, 0] : view<f16, shared, [16, 16]>
        %ma = alloc name="ma" atom=m16n8k16.f16.f16 : frag<A, f16, 16x16>
        load frag=%ma view=%a_view major=row instruction=ldmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8]
        %b_view = subview base=%rhs_load_s origin=[16*warp_n, 0] : view<f16, shared, [16, 16]>
        %mb = alloc name="mb" atom=m16n8k16.f16.f16 : frag<B, f16, 16x16>
        load frag=%mb view=%b_view major=row instruction=ldmatrix.x4 matrices=[0, 0, 0, 8, 8, 0, 8, 8]
        mma c=%mc a=%ma b=%mb a_major=row b_major=row unit=group atom=m16n8k16.f16.f16 repeats=[1, 2, 1]
        barrier level=group inferred
      }
      %c_view = subview base=%output_s origin=[16*warp_m, 16*warp_n] : view<f16, shared, [16, 16]>
      store frag=%mc view=%c_view element_run=2
    }
    barrier level=block inferred
    %output_tile = subview base=%output origin=[16*block_m, 16*block_n] : view<f16, global, [16, 16]>
    copy src=%output_s dst=%output_tile way=gather threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
  }
}
)";

// An elementwise kernel with host parameters, every scalar operation and every other attribute.
inline constexpr const char* kElements = R"(module arch=sm_90a form=decided

cuda "__device__ void f(float* s, float* acc, float v);\x0a"

func @twice(%x: view<f32, global, [N, n]>, ref %y: view<f32, global, [N]>, %scale: f32, %n: s32 as n) {
  var N: dim
  var n: scalar
  var b: parallel < cdiv(N, 128)
  var t: parallel < 128
  var i: loop < 4
  var k: bound
  check 1 <= n "`n` is at least 1"
  check 4 divides N "\"N\" divides by 4\x0a"
  check N == 2*n + 1 "`N` is odd"
  %r = alloc name="r" : view<f32, global, [N]>
  parallel level=block vars=[b] threads=128 name="twice" shared_bytes=512 bounds=[128] overlaps body={
    %s = alloc name="s" offset=0 : view<f32, shared, [128]>
    %x_row = subview base=%x origin=[n - 1, 128*b] drop=1 : view<f32, global, [128]>
    copy src=%x_row dst=%s way=vector threads=128 widths=[16, 8, 4] guarded=[0]
    barrier level=block
    %s_end = subview base=%s origin=[126] : view<f32, shared, [4]>
    %s_edge = subview base=%s origin=[b + 120] : view<f32, shared, [4]>
    copy src=%s_edge dst=%s_end way=element threads=128 widths=[4] guarded=[0] tile_guarded=[0]
    barrier level=block
    once body={
      %one = const value=1 : f32
      write view=%s index=[0] value=%one
    }
    parallel level=thread vars=[t] unit=1 body={
      %flag = const value=1 : bool
      %half = const value=-0.5 : f32
      %unused = const value=7 : s32
      %acc = alloc name="acc" initial=%half : cell<f32>
      %l = alloc name="l" : view<f32, local, [4]>
      copy src=%x_row dst=%l unit=1 async way=per_thread widths=[4]
      %v = read view=%s index=[t] : f32
      %old = atomic kind=add view=%s index=[t + 1] value=%half unused : f32
      %at = index expr=128*b + t : s64
      %limit = index expr=-floordiv(n, 5) - mod(n, 3) + min(N, max(n, 8)) : s64
      %inside = binary kind=lt left=%at right=%limit : bool
      if condition=%inside then={
        %doubled = binary kind=mul left=%v right=%scale : f32
        write view=%y index=[128*b + t] value=%doubled
      } else={
        set cell=%acc value=%v
      }
      for var=i lower=1 upper=4 step=2 unroll=2 body={
        %negated = unary kind=negate operand=%v : f32
        set cell=%acc value=%negated
      }
      bind var=k value=%at
      %got = get cell=%acc : f32
      %h = cast operand=%got : f16
      %bits = bitcast operand=%h : u16
      %chosen = choose condition=%inside true=%got false=%v : f32
      %fused = fma a=%v b=%half c=%chosen : f32
      %same = binary kind=eq left=%chosen right=%v : bool
      write view=%r index=[k] value=%chosen
      assert condition=%same message="equal \\ \"same\""
      print text="%_ of 100 %%\x0a" values=[%v]
      cuda what="`call f`" text="f(%_, &%_, %#);" passed=[%s, %acc] numbers=[%v] stand_in={
        write view=%r index=[k] value=%v
      }
    }
  }
  return value=%r
}
)";

// A warpgroup's accumulator, stored as matrices.
inline constexpr const char* kStores = R"(module arch=sm_90a form=decided

func @stores() {
  var b: parallel < 1
  var w: parallel < 1
  parallel level=block vars=[b] threads=128 name="stores" shared_bytes=2048 bounds=[128] body={
    %s = alloc name="s" offset=0 swizzle=32 : view<f16, shared, [64, 16]>
    parallel level=group4 vars=[w] unit=128 body={
      %zero = const : f32
      %c = alloc name="c" atom=m64n16k16.f32.f16 : frag<C, f32, 64x16>
      fill frag=%c value=%zero
      store frag=%c view=%s instruction=stmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8] warp_step=[16, 0]
    }
  }
}
)";

// The K loop of a warpgroup's products, A from registers and B where it lies, as the passes leave
// it.
inline constexpr const char* kProducts = R"(module arch=sm_90a form=decided

func @product(global %a: view<f16, global, [M, K]>, global %b: view<f16, global, [N, K]>, global %c: view<f32, global, [M, N]>, global %f: view<f32, global, [M, 1]>) {
  var M: dim
  var K: dim
  var N: dim
  var i: parallel < cdiv(M, 64)
  var j: parallel < cdiv(N, 32)
  var w: parallel < 1
  var k: loop < cdiv(K, 64)
  var r: loop < 64
  var q: loop < 32
  parallel level=block vars=[i, j] threads=128 name="product" shared_bytes=12288 bounds=[128] overlaps body={
    %a_s = alloc name="a_s" offset=0 swizzle=128 : view<f16, shared, [64, 64]>
    %b_s = alloc name="b_s" offset=8192 swizzle=128 : view<f16, shared, [32, 64]>
    %acc = alloc name="acc" atom=m64n32k16.f32.f16 : frag<C, f32, 64x32>
    %zero = const : f32
    fill frag=%acc value=%zero
    %part = alloc name="part" atom=m64n32k16.f32.f16 : frag<C, f32, 64x32>
    fill frag=%part value=%zero
    parallel level=group4 vars=[w] unit=128 body={
      for var=k upper=cdiv(K, 64) body={
        barrier level=block inferred
        %a_tile = subview base=%a origin=[64*i, 64*k] : view<f16, global, [64, 64]>
        copy src=%a_tile dst=%a_s way=gather grouped threads=128 widths=[16, 8, 4, 2] guarded=[0, 1]
        %b_tile = subview base=%b origin=[32*j, 64*k] : view<f16, global, [32, 64]>
        copy src=%b_tile dst=%b_s way=gather grouped threads=128 widths=[16, 8, 4, 2] guarded=[0, 1]
        copy_wait
        proxy_fence
        barrier level=block inferred
        %x = alloc name="x" atom=m64n32k16.f32.f16 : frag<A, f16, 64x64>
        load frag=%x view=%a_s major=row to_registers element_run=1
        %y = alloc name="y" atom=m64n32k16.f32.f16 : frag<B, f16, 32x64>
        load frag=%y view=%b_s major=row in_shared stride=1024
        mma_fence
        mma c=%part a=%x b=%y a_major=row b_major=row unit=group4 atom=m64n32k16.f32.f16 repeats=[1, 1, 4] b_steps=[0, 32, 64, 96]
        mma_commit stated
        mma_wait pending=1 stated
        mma_wait
      }
      %factors = subview base=%f origin=[64*i, 0] : view<f32, global, [64, 1]>
      scale c=%acc partial=%part factors=%factors factor=%zero guarded=[0] before=[0]
      apply frag=%acc row=r col=q body={
        %sum = element frag=%acc : f32
        %grown = unary kind=exp operand=%sum : f32
        set_element frag=%acc value=%grown
      }
      %c_tile = subview base=%c origin=[64*i, 32*j] : view<f32, global, [64, 32]>
      store frag=%acc view=%c_tile element_run=1 guarded=[0, 1] before=[0]
    }
  }
}
)";

// Two `inthreads` regions that hand tiles to each other through events, as the passes leave them.
inline constexpr const char* kRing = R"(module arch=sm_90a form=decided

func @ring(global %x: view<f32, global, [N, 64]>, global %y: view<f32, global, [N, 64]>) {
  var N: dim
  var b: parallel < 1
  var i: loop < N
  var k: loop < N
  parallel level=block vars=[b] threads=128 name="ring" shared_bytes=1040 bounds=[128, 1] overlaps body={
    %s = alloc name="s" offset=0 : view<f32, shared, [2, 64]>
    %flat = alias base=%s : view<f32, shared, [128]>
    %out = alloc name="out" offset=512 : view<f32, shared, [64]>
    %zero = const : f32
    splat view=%flat value=%zero threads=128
    %full = event name="full" arrivals=1 offset=1024 : event<2>
    %free = event name="free" ready stated=64 arrivals=64 offset=768 : event<2>
    barrier level=block inferred
    inthreads threads=32 async single body={
      registers count=40
      for var=i upper=N body={
        event_wait event=%free slot=mod(i, 2)
        %from = subview base=%x origin=[i, 0] drop=1 : view<f32, global, [64]>
        %to = subview base=%s origin=[mod(i, 2), 0] drop=1 : view<f32, shared, [64]>
        copy src=%from dst=%to async bulk event=%full slot=mod(i, 2) eviction=first promotion=128 way=bulk box=[64]
        trigger event=%full slot=mod(i, 2) arrival=elected bytes=256
        continue
      }
      yield
    }
    inthreads first=64 threads=64 async barrier=1 body={
      %n = alloc name="n" initial=%zero : cell<f32>
      loop body={
        %had = get cell=%n : f32
        %done = binary kind=gt left=%had right=%zero : bool
        if condition=%done then={
          break
        }
        set cell=%n value=%had
      }
      for var=k upper=N body={
        event_wait event=%full slot=mod(k, 2) generation=floordiv(k, 2)
        barrier level=block inferred id=1 threads=64
        %tile = subview base=%s origin=[mod(k, 2), 0] drop=1 : view<f32, shared, [64]>
        copy src=%tile dst=%out way=element threads=64 widths=[4] first=64
        proxy_fence
        barrier level=block inferred id=1 threads=64
        %row = subview base=%y origin=[k, 0] drop=1 : view<f32, global, [64]>
        copy src=%out dst=%row bulk way=bulk box=[64]
        bulk_wait
        trigger event=%free slot=mod(k, 2) arrival=thread
      }
      bulk_wait landed
    }
  }
}
)";

// Register tiles that no instruction names: the sums of columns put together from both warps' rows,
// running sums, the same elements in other registers, and their halves.
inline constexpr const char* kTiles = R"kir(module arch=sm_90a form=decided

func @tiles(global %x: view<f32, global, [2, 64]>, global %y: view<f32, global, [2, 64]>) {
  var b: parallel < 1
  var i: loop < 2
  var j: loop < 64
  parallel level=block vars=[b] threads=64 name="tiles" shared_bytes=512 bounds=[64] overlaps body={
    %row = alloc name="row" registers="((32,2),2):((4,1),2)" : frag<tile, f32, 2x64>
    load frag=%row view=%x major=row to_registers element_run=2
    %parts = alloc name="parts" registers="((32,2),2):((4,1),2)" : frag<tile, f32, 2x64>
    reduce frag=%parts source=%row kind=sum dimension=0 parts=2
    %shared = alloc name="shared" offset=0 swizzle=128 : view<f32, shared, [2, 64]>
    store frag=%parts view=%shared element_run=2
    barrier level=block inferred
    %all = alloc name="all" registers="((32,2),(2,2)):((4,0),(2,1))" : frag<tile, f32, 2x64>
    load frag=%all view=%shared major=row to_registers element_run=2
    %sum = alloc name="sum" registers="((32,2),2):((2,0),1)" : frag<tile, f32, 1x64>
    reduce frag=%sum source=%all kind=sum dimension=0
    %part = alloc name="part" registers="((32,2),2):((4,1),2)" : frag<tile, f32, 2x64>
    apply frag=%part row=i col=j body={
      %one = element frag=%row : f32
      %whole = element frag=%sum : f32
      %quotient = binary kind=div left=%one right=%whole : f32
      set_element frag=%part value=%quotient
    }
    %grown = alloc name="grown" registers="((32,2),2):((4,1),2)" : frag<tile, f32, 2x64>
    scan frag=%grown source=%part
    %turned = alloc name="turned" registers="((32,2),2):((4,1),2)" : frag<tile, f32, 2x64>
    convert frag=%turned source=%grown
    %halves = alloc name="halves" registers="((32,2),(2,2)):((8,1),(2,4))" : frag<tile, u16, 2x128>
    recast frag=%halves source=%part
    %flags = alloc name="flags" registers="((32,2),2):((4,1),2)" : frag<tile, s32, 2x64>
    %one_flag = const value=1 : s32
    fill frag=%flags value=%one_flag
    %any = vote frag=%flags : bool
    store frag=%turned view=%y element_run=2
  }
}
)kir";

// Copies with names, as sema leaves them: the decided form has none.
inline constexpr const char* kNames = R"(module arch=sm_80 form=tile

func @names(global %x: view<f32, global, [64]>, global %y: view<f32, global, [64]>) {
  var b: parallel < 1
  parallel level=block vars=[b] threads=64 name="names" body={
    %s = alloc name="s" : view<f32, shared, [64]>
    %f = future name="f" : future
    %g = future name="g" : future
    copy src=%x dst=%s async future=%f
    exchange first=%f second=%g
    future_wait future=%g
    copy src=%s dst=%y
  }
}
)";

// Parses text that must be right.
inline Module parsed(const std::string& text) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("sample.kir", text);
  Checked<Module> module = parse(sources, file, diags);
  EXPECT_TRUE(module.has_value()) << render_all(diags, sources) << text;
  return module ? std::move(*module) : Module{};
}

}  // namespace kiln::ir
