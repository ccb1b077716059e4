// Kernels in decided IR text, arguments for them, and short questions about what a run reported.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "diag/render.h"
#include "ir/print.h"
#include "sim/sim.h"

namespace kiln::sim {

// The text in which every occurrence of `from` is replaced; there must be one.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "nothing to replace: " << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The text without the n-th line (from 0) that contains `part`.
inline std::string without_line(const std::string& text, const std::string& part, int n = 0) {
  std::size_t at = text.find(part);
  for (; n > 0 && at != std::string::npos; --n) at = text.find(part, at + 1);
  EXPECT_NE(at, std::string::npos) << "no such line: " << part;
  if (at == std::string::npos) return text;
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(0, begin) + text.substr(text.find('\n', at) + 1);
}

class Kernel {
 public:
  explicit Kernel(std::string text) {
    const FileId file = sources_.add("kernel.kir", std::move(text));
    Diagnostics diags;
    Checked<ir::Module> parsed = ir::parse(sources_, file, diags);
    EXPECT_TRUE(parsed.has_value()) << render_all(diags, sources_);
    if (parsed) module_ = std::move(*parsed);
  }

  // Binds the variables and makes zeroed tensors.
  void bind(const std::map<std::string, std::int64_t>& vars) {
    const ir::Function& f = module_.functions[0];
    arguments = {};
    arguments.vars.resize(f.vars.size());
    std::size_t i = 0;
    for (const ir::Var& var : f.vars) {
      const auto found = vars.find(var.name);
      if (found != vars.end()) arguments.vars[i] = found->second;
      ++i;
    }
    for (const ir::Param& param : f.params) {
      ir::Arguments::Value value;
      if (const auto* view = std::get_if<ir::ViewType>(&f.type(param.value))) {
        std::vector<std::int64_t> shape;
        for (const ir::Expr& extent : view->shape) shape.push_back(extent.evaluate(arguments.vars));
        value.tensor = Tensor::zeros(view->dtype, shape);
      }
      arguments.params.push_back(std::move(value));
    }
  }

  Result<Outcome> try_run(Options options = {}) {
    return sim::run(module_, module_.functions[0], arguments, options);
  }
  Outcome run(Options options = {}) {
    Result<Outcome> outcome = try_run(options);
    EXPECT_TRUE(outcome.has_value()) << (outcome ? "" : outcome.error().text());
    return outcome ? *outcome : Outcome{};
  }

  Tensor& tensor(std::size_t param) { return arguments.params[param].tensor; }
  void fill_integers(std::size_t param, unsigned seed, int magnitude = 2) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> values(-magnitude, magnitude);
    Tensor& t = tensor(param);
    for (std::size_t i = 0; i < static_cast<std::size_t>(t.elements()); ++i) {
      t.set(i, values(random));
    }
  }
  void fill_ramp(std::size_t param) {
    Tensor& t = tensor(param);
    for (std::size_t i = 0; i < static_cast<std::size_t>(t.elements()); ++i) {
      t.set(i, static_cast<double>(i));
    }
  }

  // The trimmed source line of an access.
  std::string line(const Access& access) const {
    if (!access.span.valid()) return "no place";
    const std::int64_t number = sources_.line_of(access.span.file, access.span.begin);
    std::string text(sources_.line_text(access.span.file, number));
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
  }

  ir::Arguments arguments;

 private:
  Sources sources_;
  ir::Module module_;
};

inline std::string text_of(const Outcome& outcome) {
  std::string out;
  for (const Report& report : outcome.reports) {
    out += format("{} x{}: {}\n", name(report.kind), report.count, report.message);
    for (const Access& access : report.accesses) out += "    " + access.what + "\n";
    if (!report.missing.empty()) out += "    missing: " + report.missing + "\n";
  }
  return out;
}

// How many elements of `out` [M, N] are not the sum over k of a [M, K] and b [N, K].
inline std::int64_t wrong_products(const Tensor& a, const Tensor& b, const Tensor& out) {
  const auto rows = static_cast<std::size_t>(out.shape[0]);
  const auto cols = static_cast<std::size_t>(out.shape[1]);
  const auto depth = static_cast<std::size_t>(a.shape[1]);
  std::int64_t wrong = 0;
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < cols; ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < depth; ++k) sum += a.get(m * depth + k) * b.get(n * depth + k);
      wrong += out.get(m * cols + n) == sum ? 0 : 1;
    }
  }
  return wrong;
}

// One warp a block, 16x16 tiles.
inline constexpr const char* kOneWarp = R"(module arch=sm_80 form=decided

func @matmul(global %lhs: view<f16, global, [M, K]>, global %rhs: view<f16, global, [N, K]>, global %output: view<f16, global, [M, N]>) {
  var M: dim
  var K: dim
  var N: dim
  var block_m: parallel < cdiv(M, 16)
  var block_n: parallel < cdiv(N, 16)
  var warp_m: parallel < 1
  var warp_n: parallel < 1
  var iv_k: loop < cdiv(K, 16)
  parallel level=block vars=[block_m, block_n] threads=32 name="matmul" shared_bytes=4096 bounds=[32] body={
    %output_s = alloc name="output_s" offset=2048 : view<f16, shared, [16, 16]>
    parallel level=group vars=[warp_m, warp_n] unit=32 body={
      %zero = const : f16
      %mc = alloc name="mc" atom=m16n8k16.f16.f16 : frag<C, f16, 16x16>
      fill frag=%mc value=%zero
      for var=iv_k upper=cdiv(K, 16) body={
        %lhs_s = alloc name="lhs_s" offset=0 swizzle=32 : view<f16, shared, [16, 16]>
        %rhs_s = alloc name="rhs_s" offset=1024 swizzle=32 : view<f16, shared, [16, 16]>
        %lhs_tile = subview base=%lhs origin=[16*block_m, 16*iv_k] : view<f16, global, [16, 16]>
        %rhs_tile = subview base=%rhs origin=[16*block_n, 16*iv_k] : view<f16, global, [16, 16]>
        copy src=%lhs_tile dst=%lhs_s unit=32 way=gather grouped threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
        copy src=%rhs_tile dst=%rhs_s unit=32 way=gather grouped threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
        copy_wait
        barrier level=group inferred
        %ma = alloc name="ma" atom=m16n8k16.f16.f16 : frag<A, f16, 16x16>
        load frag=%ma view=%lhs_s major=row instruction=ldmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8]
        %mb = alloc name="mb" atom=m16n8k16.f16.f16 : frag<B, f16, 16x16>
        load frag=%mb view=%rhs_s major=row instruction=ldmatrix.x4 matrices=[0, 0, 0, 8, 8, 0, 8, 8]
        mma c=%mc a=%ma b=%mb a_major=row b_major=row atom=m16n8k16.f16.f16 repeats=[1, 2, 1]
        barrier level=group inferred
      }
      store frag=%mc view=%output_s element_run=2
    }
    barrier level=block inferred
    %output_tile = subview base=%output origin=[16*block_m, 16*block_n] : view<f16, global, [16, 16]>
    copy src=%output_s dst=%output_tile way=gather threads=32 widths=[16, 8, 4, 2] guarded=[0, 1]
  }
}
)";

// Four warps a block, 32x32 tiles; B is fetched to registers by plain loads.
inline constexpr const char* kFourWarps = R"(module arch=sm_90a form=decided

func @matmul(global %lhs: view<f16, global, [M, K]>, global %rhs: view<f16, global, [N, K]>, global %output: view<f32, global, [M, N]>) {
  var M: dim
  var K: dim
  var N: dim
  var block_m: parallel < cdiv(M, 32)
  var block_n: parallel < cdiv(N, 32)
  var warp_m: parallel < 2
  var warp_n: parallel < 2
  var iv_k: loop < cdiv(K, 16)
  parallel level=block vars=[block_m, block_n] threads=128 name="matmul" shared_bytes=8192 bounds=[128] overlaps body={
    %lhs_s = alloc name="lhs_s" offset=0 swizzle=32 : view<f16, shared, [32, 16]>
    %rhs_s = alloc name="rhs_s" offset=1024 : view<f16, shared, [32, 16]>
    %output_s = alloc name="output_s" offset=2048 : view<f32, shared, [32, 32]>
    parallel level=group vars=[warp_m, warp_n] unit=32 body={
      %zero = const : f32
      %mc = alloc name="mc" initial=%zero atom=m16n8k16.f32.f16 : frag<C, f32, 16x16>
      for var=iv_k upper=cdiv(K, 16) body={
        %lhs_tile = subview base=%lhs origin=[32*block_m, 16*iv_k] : view<f16, global, [32, 16]>
        %rhs_tile = subview base=%rhs origin=[32*block_n, 16*iv_k] : view<f16, global, [32, 16]>
        copy src=%lhs_tile dst=%lhs_s way=gather grouped threads=128 widths=[16, 8, 4, 2] guarded=[0, 1]
        copy src=%rhs_tile dst=%rhs_s way=gather threads=128 widths=[16, 8, 4, 2] guarded=[0, 1]
        copy_wait
        barrier level=block inferred
        %a_view = subview base=%lhs_s origin=[16*warp_m, 0] : view<f16, shared, [16, 16]>
        %ma = alloc name="ma" atom=m16n8k16.f32.f16 : frag<A, f16, 16x16>
        load frag=%ma view=%a_view major=row instruction=ldmatrix.x4 matrices=[0, 0, 8, 0, 0, 8, 8, 8]
        %b_view = subview base=%rhs_s origin=[16*warp_n, 0] : view<f16, shared, [16, 16]>
        %mb = alloc name="mb" atom=m16n8k16.f32.f16 : frag<B, f16, 16x16>
        load frag=%mb view=%b_view major=row element_run=2
        mma c=%mc a=%ma b=%mb a_major=row b_major=row atom=m16n8k16.f32.f16 repeats=[1, 2, 1]
        barrier level=block inferred
      }
      %c_view = subview base=%output_s origin=[16*warp_m, 16*warp_n] : view<f32, shared, [16, 16]>
      store frag=%mc view=%c_view element_run=2
    }
    barrier level=block inferred
    %output_tile = subview base=%output origin=[32*block_m, 32*block_n] : view<f32, global, [32, 32]>
    copy src=%output_s dst=%output_tile way=gather threads=128 widths=[16, 8, 4] guarded=[0, 1]
  }
}
)";

inline void bind_matmul(Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
  kernel.bind({{"M", m}, {"N", n}, {"K", k}});
  kernel.fill_integers(0, 1);
  kernel.fill_integers(1, 2);
}

inline std::int64_t wrong_in(Kernel& kernel) {
  return wrong_products(kernel.tensor(0), kernel.tensor(1), kernel.tensor(2));
}

}  // namespace kiln::sim
