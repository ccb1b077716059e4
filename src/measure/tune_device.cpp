#include "measure/tune_device.h"

#include "backends/device.h"
#include "gemm/plan.h"
#include "io/expect.h"
#include "measure/bench_check.h"
#include "measure/bench_sets.h"
#include "measure/timing.h"
#include "support/parallel.h"

namespace kiln::measure {

namespace {

// A candidate with its plan, or with the reason why it could not be compiled.
struct Entrant {
  std::unique_ptr<gemm::Plan> plan = nullptr;
  reference::EinsumNumerics numerics = {};
  std::string refusal = {};
};

Entrant prepare(runtime::Gpu& gpu, const gemm::Problem& problem, const gemm::Choice& choice) {
  Entrant out;
  auto program = gemm::compile(choice, gpu.arch());
  if (!program) {
    out.refusal = program.error().text();
    return out;
  }
  out.numerics = io::weakest((*program)->function());
  auto plan = gemm::Plan::prepare(gpu, problem, choice, std::move(*program));
  if (plan) out.plan = std::move(*plan);
  if (!plan) out.refusal = plan.error().text();
  return out;
}

// The first right result lies in the baseline's C, which there is no baseline for here.
class GpuField final : public TuneField {
 public:
  GpuField(runtime::Gpu& gpu, BenchDevice& device, SuiteSets sets, std::vector<Entrant> entrants)
      : gpu_(gpu), device_(device), sets_(std::move(sets)), entrants_(std::move(entrants)) {}

  Result<void> prepare_operands();

  [[nodiscard]] std::size_t count() const override { return entrants_.size(); }
  [[nodiscard]] Result<Verdict> check(std::size_t candidate) override;
  [[nodiscard]] Result<std::vector<std::vector<double>>> measure(std::span<const std::size_t> which,
                                                                 const TuneRound& round) override;

 private:
  Result<void> run(const Entrant& entrant, const gemm::Operands& operands);
  Result<reference::Comparison> compare(const Entrant& entrant);
  Result<void> keep_result(const Entrant& entrant);
  Result<void> check_zones(const Entrant& entrant) const;

  runtime::Gpu& gpu_;
  BenchDevice& device_;
  SuiteSets sets_;
  std::vector<Entrant> entrants_;
  std::vector<gemm::Operands> operands_ = {};  // of each set
  std::optional<runtime::DeviceBuffer> workspace_ = std::nullopt;
  std::optional<FactorNorms> norms_ = std::nullopt;  // once there is a first right result
  reference::EinsumNumerics kept_ = {};              // how that was added up
};

Result<void> GpuField::prepare_operands() {
  std::size_t bytes = 0;
  for (const Entrant& entrant : entrants_) {
    if (entrant.plan) bytes = std::max(bytes, entrant.plan->workspace_bytes());
  }
  for (std::size_t set = 0; set < sets_.count(); ++set) operands_.push_back(sets_.operands(set));
  if (bytes == 0) return {};
  auto workspace = gpu_.allocate(bytes);
  if (!workspace) return Unexpected{workspace.error()};
  workspace_.emplace(std::move(*workspace));
  return {};
}

Result<void> GpuField::run(const Entrant& entrant, const gemm::Operands& operands) {
  auto started = entrant.plan->start(operands, workspace_ ? workspace_->address() : 0, nullptr);
  return started ? gpu_.synchronize() : started;
}

// Compares a candidate's result of set 0: the first one against fp64, the others against the first
// right one.
Result<reference::Comparison> GpuField::compare(const Entrant& entrant) {
  CheckRequest request = sets_.request(0, norms_.has_value());
  request.ours = entrant.numerics;
  request.theirs = kept_;
  if (norms_) return device_.check_whole(request, *norms_);
  auto sums = device_.check_sums(request);
  if (!sums || sums->outside > 0) return sums;
  auto norms = device_.norms(request);
  if (!norms) return Unexpected{norms.error()};
  // All of it finite.
  auto whole = device_.check_whole(request, *norms);
  if (whole && whole->outside == 0) norms_.emplace(std::move(*norms));
  return whole;
}

Result<void> GpuField::keep_result(const Entrant& entrant) {
  kept_ = entrant.numerics;
  gemm::Operands operands = operands_[0];
  operands.c = sets_.request(0, true).vendor;
  return run(entrant, operands);
}

// After a stray write nothing of this problem can be trusted any more.
Result<void> GpuField::check_zones(const Entrant& entrant) const {
  auto overrun = sets_.overrun(0);
  if (!overrun) return Unexpected{overrun.error()};
  if (workspace_) {
    const auto intact = workspace_->zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (!*intact) overrun->emplace_back("workspace");
  }
  if (overrun->empty()) return {};
  return Unexpected{Error{"a kernel wrote outside of the memory of", overrun->front(),
                          entrant.plan->kernel_text()}};
}

Result<Verdict> GpuField::check(std::size_t candidate) {
  const Entrant& entrant = entrants_[candidate];
  if (!entrant.plan) return Verdict{.kind = Verdict::Kind::kRefused, .reason = entrant.refusal};
  if (auto cleared = sets_.clear_result(0); !cleared) return Unexpected{cleared.error()};
  if (auto done = run(entrant, operands_[0]); !done) {
    return Unexpected{Error{"cannot run", entrant.plan->kernel_text(), done.error().text()}};
  }
  if (auto intact = check_zones(entrant); !intact) return Unexpected{intact.error()};
  const bool first = !norms_.has_value();
  const auto found = compare(entrant);
  if (!found) return Unexpected{found.error()};
  if (found->outside > 0) return wrong(*found, first ? "fp64" : "the first right one");
  if (first) {
    if (auto kept = keep_result(entrant); !kept) return Unexpected{kept.error()};
  }
  return Verdict{};
}

Result<std::vector<std::vector<double>>> GpuField::measure(std::span<const std::size_t> which,
                                                           const TuneRound& round) {
  std::vector<Contender> contenders;
  const runtime::cuda::DevicePtr workspace = workspace_ ? workspace_->address() : 0;
  for (const std::size_t i : which) {
    const gemm::Plan* const plan = entrants_[i].plan.get();
    contenders.push_back({plan->kernel_text(), [this, workspace, plan](auto set, auto stream) {
                            return plan->start(operands_[set], workspace, stream);
                          }});
  }
  return time_in_turn(
      gpu_, contenders,
      {.sets = sets_.count(), .repeats = round.repeats, .batch_seconds = round.batch_seconds});
}

}  // namespace

Result<std::unique_ptr<TuneGpu>> TuneGpu::open(std::uint64_t seed) {
  auto gpu = backends::open_device();
  if (!gpu) return Unexpected{gpu.error()};
  std::unique_ptr<TuneGpu> out(new TuneGpu(std::move(*gpu), seed));
  auto device = BenchDevice::open(out->gpu_);
  if (!device) return Unexpected{device.error()};
  out->device_.emplace(std::move(*device));
  return out;
}

Result<std::unique_ptr<TuneField>> TuneGpu::open(const gemm::Problem& problem,
                                                 const std::vector<TuneCandidate>& candidates) {
  auto sets = SuiteSets::make(gpu_, *device_, problem, seed_);  // the GPU fills them meanwhile
  if (!sets) return Unexpected{sets.error()};
  std::vector<Entrant> entrants(candidates.size());
  for_each_index(candidates.size(), [&](std::size_t i) {
    entrants[i] = prepare(gpu_, problem, candidates[i].choice);
  });
  auto field = std::make_unique<GpuField>(gpu_, *device_, std::move(*sets), std::move(entrants));
  if (auto ready = field->prepare_operands(); !ready) return Unexpected{ready.error()};
  return std::unique_ptr<TuneField>(std::move(field));
}

}  // namespace kiln::measure
