// Explanations of two kernels in IR text, against counts made by hand and by the whole simulator.
#include "explain/cost/cost.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "explain/cost/full_tiles.h"
#include "ir/print.h"
#include "sim/sim_test_support.h"

namespace kiln::explain {

namespace {

using sim::kFourWarps;
using sim::kOneWarp;

struct Subject {
  Sources sources;
  ir::Module module;
  ir::Arguments arguments;

  [[nodiscard]] const ir::Function& function() const { return module.functions[0]; }
};

Subject read(std::string text) {
  Subject out;
  Diagnostics diags;
  const FileId file = out.sources.add("kernel.kir", std::move(text));
  auto parsed = ir::parse(out.sources, file, diags);
  EXPECT_TRUE(parsed.has_value()) << render_all(diags, out.sources);
  if (parsed) out.module = std::move(*parsed);
  return out;
}

void bind(Subject& subject, const std::map<std::string, std::int64_t>& dims) {
  const ir::Function& function = subject.function();
  subject.arguments = {};
  for (const ir::Var& var : function.vars) {
    const auto found = dims.find(var.name);
    subject.arguments.vars.push_back(found == dims.end() ? 0 : found->second);
  }
  for (const ir::Param& param : function.params) {
    const ir::ViewType& type = function.view_type(param.value);
    std::vector<std::int64_t> shape;
    for (const ir::Expr& e : type.shape) shape.push_back(e.evaluate(subject.arguments.vars));
    subject.arguments.params.push_back({Tensor::zeros(type.dtype, shape), 0});
  }
}

sim::Outcome count(Subject& subject, const sim::Options& options) {
  auto outcome = sim::run(subject.module, subject.function(), subject.arguments, options);
  EXPECT_TRUE(outcome.has_value());
  return outcome ? *outcome : sim::Outcome{};
}

LaunchCost cost_of(Subject& subject, bool representative = false) {
  const sim::Outcome outcome = count(
      subject, {.checks = false, .by_operation = true, .representative_blocks = representative});
  Explanation e = explain_kernel(subject.module, subject.function(), subject.arguments, outcome);
  EXPECT_EQ(e.launches.size(), 1U);
  return std::move(e.launches.at(0));
}

// The accesses called `what`, which there must be `n` of.
std::vector<AccessCost> accesses(const LaunchCost& launch, std::string_view what, std::size_t n) {
  std::vector<AccessCost> out;
  for (const AccessCost& access : launch.accesses) {
    if (access.what == what) out.push_back(access);
  }
  EXPECT_EQ(out.size(), n) << what;
  out.resize(n);
  return out;
}

using Counts = std::map<std::string, std::int64_t>;

constexpr const char* kScaled = R"(module arch=sm_80 form=decided

func @scaled(global %f: view<f32, global, [16, 1]>, global %z: view<f32, global, [16, 8]>) {
  var b: parallel < 1
  var w: parallel < 1
  parallel level=block vars=[b] threads=32 name="scaled" bounds=[32] body={
    parallel level=group vars=[w] unit=32 body={
      %one = const value=1 : f32
      %c = alloc name="c" atom=m16n8k16.f32.f16 : frag<C, f32, 16x8>
      fill frag=%c value=%one
      %p = alloc name="p" atom=m16n8k16.f32.f16 : frag<C, f32, 16x8>
      fill frag=%p value=%one
      scale c=%c partial=%p factors=%f factor=%one
      store frag=%c view=%z element_run=2
    }
  }
}
)";

TEST(Costs, FactorsOfAScaleAreReadFromTheirBuffer) {
  Subject subject = read(kScaled);
  bind(subject, {});
  const LaunchCost launch = cost_of(subject);
  EXPECT_EQ(launch.bytes_once, 16 * 4 + 16 * 8 * 4);
}

// 4 blocks of 4 warps, 2 steps along K.
TEST(Costs, BelongToTheirStatements) {
  Subject subject = read(kFourWarps);
  bind(subject, {{"M", 64}, {"N", 64}, {"K", 32}});
  const LaunchCost launch = cost_of(subject);
  EXPECT_EQ(launch.blocks, 4);
  EXPECT_EQ(launch.blocks_run, 4);
  EXPECT_EQ(launch.threads, 128);
  ASSERT_EQ(launch.mmas.size(), 1U);
  EXPECT_EQ(launch.mmas[0].issues, 4 * 4 * 2 * 2);
  EXPECT_EQ(launch.flops, 2.0 * 64 * 64 * 32);

  // 64 vectors of 16 bytes: the first two of the warps.
  const AccessCost lhs = accesses(launch, "copy lhs => lhs_s", 1)[0];
  EXPECT_EQ(lhs.counts.instructions, (Counts{{"cp.async.16", 4 * 2 * 2}}));
  EXPECT_EQ(lhs.counts.requests_global, 16);
  EXPECT_EQ(lhs.counts.sectors_global, 16 * 16) << "16 rows of 32 bytes in a request";
  EXPECT_EQ(lhs.bytes_global(), 4 * 2 * 1024);
  EXPECT_EQ(lhs.sectors_ideal(), 4 * 2 * 1024 / 32);
  EXPECT_EQ(lhs.counts.wavefronts_shared, 16 * 4);
  EXPECT_EQ(accesses(launch, "copy rhs => rhs_s", 1)[0].counts.instructions,
            (Counts{{"ld.global.16", 16}, {"st.shared.16", 16}}));

  const AccessCost a = accesses(launch, "load lhs_s", 1)[0];
  EXPECT_EQ(a.counts.instructions, (Counts{{"ldmatrix.x4", 4 * 4 * 2}}));
  EXPECT_EQ(a.counts.bank_conflicts, 0) << "swizzled";
  // 8 values in runs of 2. Rows of 32 bytes, unswizzled: rows g and g + 4 of a run share banks.
  const AccessCost b = accesses(launch, "load rhs_s", 1)[0];
  EXPECT_EQ(b.counts.instructions, (Counts{{"ld.shared.4", 4 * 4 * 2 * 4}}));
  EXPECT_EQ(b.wavefronts_ideal(), 128);
  EXPECT_EQ(b.counts.bank_conflicts, 128);
  EXPECT_EQ(b.counts.wavefronts_shared, 256);

  const AccessCost out = accesses(launch, "copy output_s => output", 1)[0];
  EXPECT_EQ(out.bytes_global(), 64 * 64 * 4);
}

TEST(Costs, AddUpToTheSimulatorsCounts) {
  for (const char* text : {kOneWarp, kFourWarps}) {
    Subject subject = read(text);
    bind(subject, {{"M", 40}, {"N", 24}, {"K", 20}});
    const LaunchCost launch = cost_of(subject);
    const sim::Outcome checked = count(subject, {});
    EXPECT_EQ(launch.counts.instructions, checked.counters.instructions);
    EXPECT_EQ(launch.counts.bank_conflicts, checked.counters.bank_conflicts);
    EXPECT_EQ(launch.counts.sectors_global, checked.counters.sectors_global);
    EXPECT_EQ(launch.bytes_global,
              checked.counters.bytes_global_read + checked.counters.bytes_global_written);
    std::int64_t conflicts = 0;
    for (const AccessCost& access : launch.accesses) conflicts += access.counts.bank_conflicts;
    EXPECT_EQ(conflicts, checked.counters.bank_conflicts);
  }
}

// 7 x 5 blocks, the last ones ragged.
TEST(Costs, RepresentativeBlocksStandForTheOthers) {
  Subject subject = read(kOneWarp);
  bind(subject, {{"M", 6 * 16 + 3}, {"N", 4 * 16 + 9}, {"K", 40}});
  const LaunchCost all = cost_of(subject);
  const LaunchCost some = cost_of(subject, true);
  EXPECT_EQ(all.blocks_run, 35);
  EXPECT_EQ(some.blocks_run, 9);
  EXPECT_EQ(some.blocks, 35);
  EXPECT_EQ(some.counts.instructions, all.counts.instructions);
  EXPECT_EQ(some.counts.wavefronts_shared, all.counts.wavefronts_shared);
  EXPECT_EQ(some.counts.sectors_global, all.counts.sectors_global);
  EXPECT_EQ(some.bytes_global, all.bytes_global);
}

TEST(Costs, BuffersByAddress) {
  Subject subject = read(kFourWarps);
  bind(subject, {{"M", 32}, {"N", 32}, {"K", 16}});
  const LaunchCost launch = cost_of(subject);
  EXPECT_EQ(launch.shared_bytes, 8192);
  ASSERT_EQ(launch.buffers.size(), 3U);
  EXPECT_EQ(launch.buffers[0].name, "lhs_s");
  EXPECT_EQ(launch.buffers[0].swizzle, 32);
  EXPECT_EQ(launch.buffers[0].row_bytes, 32);
  EXPECT_EQ(launch.buffers[2].name, "output_s");
  EXPECT_EQ(launch.buffers[2].address, 2048);
  EXPECT_EQ(launch.buffers[2].bytes, 32 * 32 * 4);
}

TEST(Costs, OfALaunchInALoopAreAddedUp) {
  Subject subject = read(R"(module arch=sm_80 form=decided

func @f(global %z: view<f32, global, [64]>) {
  var i: loop < 3
  var b: parallel < 2
  var t: parallel < 32
  for var=i upper=3 body={
    parallel level=block vars=[b] threads=32 name="f" bounds=[32] body={
      parallel level=thread vars=[t] unit=1 body={
        %one = const value=1 : f32
        write view=%z index=[32*b + t] value=%one
      }
    }
  }
}
)");
  bind(subject, {});
  const LaunchCost launch = cost_of(subject);
  EXPECT_EQ(launch.times, 3);
  EXPECT_EQ(launch.blocks, 6);
  EXPECT_EQ(launch.waves.waves, 3);
  EXPECT_EQ(launch.bytes_once, 3 * 256);
  EXPECT_EQ(launch.counts.instructions, (Counts{{"st.global.4", 6}}));
  EXPECT_EQ(accesses(launch, "write z", 1)[0].counts.sectors_global, 6 * 4);
}

// 132 SMs at 1.83 GHz and 4800 GB/s.
TEST(Costs, RooflineByHand) {
  Subject subject = read(kFourWarps);
  bind(subject, {{"M", 64}, {"N", 64}, {"K", 32}});
  const LaunchCost launch = cost_of(subject);
  // One block on the busiest SM: 16 instructions of 4 cycles on 4 tensor cores.
  EXPECT_EQ(launch.mmas[0].cycles, 4);
  EXPECT_DOUBLE_EQ(launch.roofline.tensor, 16 * 4 / 4 / 1.83e9);
  EXPECT_DOUBLE_EQ(launch.roofline.shared,
                   static_cast<double>(launch.counts.wavefronts_shared) / 4 / 1.83e9);
  const std::int64_t buffers = 2 * 64 * 32 * 2 + 64 * 64 * 4;
  EXPECT_EQ(launch.bytes_once, buffers);
  EXPECT_DOUBLE_EQ(launch.roofline.dram, static_cast<double>(buffers) / 4.8e12);
  EXPECT_EQ(launch.roofline.bound(), Bound::kShared);
  EXPECT_DOUBLE_EQ(launch.roofline.seconds(), launch.roofline.shared);
  EXPECT_EQ(launch.bytes_global, 2 * (64 * 32 * 2) * 2 + 64 * 64 * 4);
  EXPECT_DOUBLE_EQ(launch.intensity(), launch.flops / static_cast<double>(launch.bytes_global));
  EXPECT_EQ(launch.waves.waves, 1);
  EXPECT_EQ(launch.waves.last, 4);
  EXPECT_EQ(launch.waves.per_wave, launch.occupancy.blocks * 132);
}

TEST(Registers, FragmentsWhereTheyAreAlive) {
  Subject subject = read(kFourWarps);
  const ir::OpId launch = ir::launches(subject.function())[0];
  const RegisterEstimate e =
      estimate_registers(*subject.module.arch, subject.function(), launch, 128);
  // C 16x16 of f32: 8 registers; A and B of f16: 4 each.
  EXPECT_EQ(e.fragments, 16);
  // A copy in the loop takes a step of 16 bytes; more are wanted where its rows begin anywhere.
  EXPECT_EQ(e.addresses, 10 + std::max(9 + 3, 13));
  EXPECT_EQ(e.total, e.wanted);
  EXPECT_EQ(estimate_registers(*subject.module.arch, subject.function(), launch, 2048).total, 32)
      << "what a block of so many threads leaves each";
}

TEST(Registers, OfACompiledKernelAreTaken) {
  Subject subject = read(kFourWarps);
  bind(subject, {{"M", 64}, {"N", 64}, {"K", 512}});
  const sim::Outcome outcome =
      count(subject, {.checks = false, .by_operation = true, .trace = true});
  const auto launch_with = [&](const CompiledRegisters& registers) {
    return explain_kernel(subject.module, subject.function(), subject.arguments, outcome,
                          {.registers = registers})
        .launches.at(0);
  };
  const LaunchCost estimated = launch_with({{"another", 200}});
  EXPECT_FALSE(estimated.registers.compiled);
  const LaunchCost compiled = launch_with({{estimated.name, 200}});
  EXPECT_TRUE(compiled.registers.compiled);
  EXPECT_EQ(compiled.registers.total, 200);
  EXPECT_EQ(compiled.occupancy.blocks, 2) << "2 warps a quarter, 4 warps a block";
}

TEST(Registers, AnAccumulatorOutlivesTheLoop) {
  // Without its use in the loop the accumulator is filled and stored, and A and B die before that.
  Subject subject =
      read(sim::without_line(kFourWarps, "        mma c=%mc a=%ma b=%mb a_major=row b_major=row"));
  const ir::OpId launch = ir::launches(subject.function())[0];
  EXPECT_EQ(estimate_registers(*subject.module.arch, subject.function(), launch, 128).fragments, 8);
}

TEST(FullTiles, AreFourOfEachDivisor) {
  const Subject subject = read(kFourWarps);
  const std::vector<std::int64_t> shape = full_tiles(subject.function());
  for (std::uint32_t v = 0; v < shape.size(); ++v) {
    const std::string& name = subject.function().vars[ir::VarId{v}].name;
    const std::int64_t wanted = name == "K" ? 64 : name == "M" || name == "N" ? 128 : 0;
    EXPECT_EQ(shape[v], wanted) << name;
  }
}

}  // namespace

}  // namespace kiln::explain
