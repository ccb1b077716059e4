#include "measure/tune_file_device.h"

#include "backends/device.h"

#include <algorithm>
#include <cstring>

#include "io/expect.h"
#include "io/fill.h"
#include "measure/bench_check.h"
#include "measure/timing.h"
#include "measure/tune_over.h"
#include "runtime/call.h"
#include "support/parallel.h"

namespace kiln::measure {

namespace {

constexpr std::size_t kFileSetsMax = 32;

// A candidate with its kernels, or with the reason why they could not be compiled.
struct FileEntrant {
  FileCandidate* candidate = nullptr;
  std::optional<runtime::Kernels> kernels = std::nullopt;
  std::deque<runtime::Call> calls = {};  // by set of buffers; the first entrant's own the buffers
  std::string refusal = {};
};

bool is_view(const ir::Function& function, std::size_t param) {
  return std::holds_alternative<ir::ViewType>(function.type(function.params[param].value));
}

// Whether a candidate can be run on the first one's tensors, and its results be compared with those: they take
// tensors of the same types and shapes, give all that the candidate reads, and write the same.
bool take_the_same(const FileCandidate& left, const FileCandidate& right) {
  const auto& a = left.arguments.params;
  const auto& b = right.arguments.params;
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same =
        a[i].tensor.dtype == b[i].tensor.dtype && a[i].tensor.shape == b[i].tensor.shape;
    if (!same || is_view(left.function(), i) != is_view(right.function(), i)) return false;
  }
  const std::vector<std::size_t> given = ir::given_params(left.function());
  return std::ranges::includes(given, ir::read_params(right.function())) &&
         ir::written_params(left.function()) == ir::written_params(right.function());
}

// Makes the inputs of one set; tensors that are only written stay without contents.
void fill_inputs(FileCandidate& candidate, std::uint64_t seed) {
  const ir::Function& function = candidate.function();
  for (const std::size_t i : ir::given_params(function)) {
    if (!is_view(function, i)) continue;
    Tensor& tensor = candidate.arguments.params[i].tensor;
    if (tensor.bytes.empty()) tensor = Tensor::zeros(tensor.dtype, tensor.shape);
    io::fill_tensor_in_parts(tensor,
                             {.fill = io::Fill::kNormal, .seed = seed, .ordinal = i, .longest = 1});
  }
}

// Copies the tensors that a kernel reads and then writes: all that a second run needs from the
// host.
void copy_updated(const FileCandidate& from, FileCandidate& to) {
  const std::vector<std::size_t> read = ir::read_params(to.function());
  for (const std::size_t i : ir::written_params(to.function())) {
    if (std::ranges::find(read, i) == read.end()) continue;
    to.arguments.params[i].tensor = from.arguments.params[i].tensor;
  }
}

// What a candidate gives back, on the host.
std::vector<const Tensor*> outputs_of(const FileCandidate& candidate,
                                      const ir::Arguments& results) {
  std::vector<const Tensor*> out;
  for (const std::size_t i : ir::written_params(candidate.function())) {
    out.push_back(&results.params[i].tensor);
  }
  if (!results.returned.tensor.bytes.empty()) out.push_back(&results.returned.tensor);
  return out;
}

std::size_t sets_of(const FileCandidate& candidate, const target::Arch& arch) {
  std::int64_t bytes = 0;
  for (const ir::Arguments::Value& value : candidate.arguments.params) {
    bytes += value.tensor.elements() * size_bytes(value.tensor.dtype);
  }
  return std::min(kFileSetsMax, rotating_sets(bytes, arch.l2_bytes));
}

class FileField final : public TuneField {
 public:
  FileField(runtime::Gpu& gpu, const TunedProblem& problem, std::deque<FileEntrant> entrants)
      : gpu_(gpu), problem_(problem), entrants_(std::move(entrants)) {}

  Result<void> prepare();

  [[nodiscard]] std::size_t count() const override { return entrants_.size(); }
  [[nodiscard]] bool has_default() const override { return entrants_.front().candidate->is_own(); }
  [[nodiscard]] Result<Verdict> check(std::size_t index) override;
  [[nodiscard]] Result<std::vector<std::vector<double>>> measure(std::span<const std::size_t> which,
                                                                 const TuneRound& round) override;

 private:
  Result<void> make_sets(FileEntrant& owner);
  void share_sets(const FileEntrant& owner, FileEntrant& entrant);
  Result<ir::Arguments> results_of(FileEntrant& entrant);
  Result<void> check_zones(const FileEntrant& entrant) const;
  Verdict compare(const FileEntrant& entrant, const ir::Arguments& results);
  Verdict compare_with_first(const FileEntrant& entrant, const ir::Arguments& results);
  Verdict compare_with_einsum(const FileEntrant& entrant, const ir::Arguments& results);
  [[nodiscard]] Verdict compare_with_fp64(const Tensor& result,
                                          const reference::EinsumNumerics& numerics) const;
  [[nodiscard]] std::vector<reference::Named> named(const ir::Arguments& results,
                                                    Tensor& returned) const;

  runtime::Gpu& gpu_;
  const TunedProblem& problem_;
  std::deque<FileEntrant> entrants_;
  FileEntrant* owner_ = nullptr;  // of the buffers, and of the inputs of set 0 on the host
  std::optional<ir::Arguments> first_ = std::nullopt;  // the first right results
  reference::EinsumNumerics first_numerics_ = {};
};

// The inputs of set 0 are made last and stay on the host.
Result<void> FileField::make_sets(FileEntrant& owner) {
  FileCandidate& candidate = *owner.candidate;
  for (std::size_t set = sets_of(candidate, gpu_.arch()); set-- > 0;) {
    fill_inputs(candidate, problem_.seed + 1000003 * set);
    runtime::Call& call =
        owner.calls.emplace_front(gpu_, owner.kernels->module, candidate.program->decided,
                                  candidate.function(), candidate.arguments);
    if (auto copied = call.copy_in(); !copied) return copied;
  }
  return {};
}

void FileField::share_sets(const FileEntrant& owner, FileEntrant& entrant) {
  FileCandidate& candidate = *entrant.candidate;
  for (const runtime::Call& from : owner.calls) {
    entrant.calls
        .emplace_back(gpu_, entrant.kernels->module, candidate.program->decided,
                      candidate.function(), candidate.arguments)
        .share(from);
  }
}

Result<void> FileField::prepare() {
  for (FileEntrant& entrant : entrants_) {
    if (!entrant.kernels) continue;
    if (owner_ == nullptr) {
      owner_ = &entrant;
      if (auto made = make_sets(entrant); !made) return made;
    } else if (!take_the_same(*owner_->candidate, *entrant.candidate)) {
      entrant.refusal = "it takes or writes other tensors than the first candidate";
      continue;
    } else {
      copy_updated(*owner_->candidate, *entrant.candidate);
      share_sets(*owner_, entrant);
    }
    for (runtime::Call& call : entrant.calls) {
      const auto prepared = call.prepare();
      if (!prepared) entrant.refusal = prepared.error().text();
    }
  }
  return {};
}

// Runs a candidate on set 0, from its inputs to its results on the host.
Result<ir::Arguments> FileField::results_of(FileEntrant& entrant) {
  runtime::Call& call = entrant.calls.front();
  if (auto filled = call.refill(); !filled) return Unexpected{filled.error()};
  auto started = call.start();
  if (started) started = gpu_.synchronize();
  if (!started) return Unexpected{started.error()};
  ir::Arguments out;
  out.params.resize(entrant.candidate->function().params.size());
  for (const std::size_t i : ir::written_params(entrant.candidate->function())) {
    const Tensor& like = entrant.candidate->arguments.params[i].tensor;
    out.params[i].tensor = Tensor::zeros(like.dtype, like.shape);
  }
  if (auto copied = call.copy_out(out); !copied) return Unexpected{copied.error()};
  return out;
}

// After a stray write nothing can be trusted any more.
Result<void> FileField::check_zones(const FileEntrant& entrant) const {
  const auto overrun = entrant.calls.front().overrun();
  if (!overrun) return Unexpected{overrun.error()};
  if (overrun->empty()) return {};
  return Unexpected{Error{"a kernel wrote outside of the memory of", overrun->front(), {}}};
}

// Compares two tensors bit for bit.
reference::Comparison differences(const Tensor& expected, const Tensor& actual) {
  reference::Comparison found;
  found.elements = actual.elements();
  const auto bytes = static_cast<std::size_t>(size_bytes(actual.dtype));
  for (std::size_t i = 0; i * bytes < actual.bytes.size(); ++i) {
    if (std::memcmp(&actual.bytes[i * bytes], &expected.bytes[i * bytes], bytes) == 0) continue;
    if (found.outside++ > 0) continue;
    found.first = reference::Mismatch{.coordinates = {static_cast<std::int64_t>(i)},
                                      .expected = expected.get(i),
                                      .bound = 0,
                                      .actual = actual.get(i)};
  }
  return found;
}

// Compares with the first candidate bit for bit: without an einsum nobody knows how far sums may be
// apart.
Verdict FileField::compare_with_first(const FileEntrant& entrant, const ir::Arguments& results) {
  const auto mine = outputs_of(*entrant.candidate, results);
  const auto theirs = outputs_of(*entrant.candidate, *first_);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i]->bytes == theirs[i]->bytes) continue;
    return wrong(differences(*theirs[i], *mine[i]),
                 "the first candidate, which is all there is without `--expect`,");
  }
  return {};
}

// Host copies by the names of the einsum: inputs of the first candidate, results of another.
std::vector<reference::Named> FileField::named(const ir::Arguments& results,
                                               Tensor& returned) const {
  const FileCandidate& owner = *owner_->candidate;
  const ir::Function& function = owner.function();
  std::vector<reference::Named> out = io::named_tensors(function, owner.arguments, returned);
  for (reference::Named& each : out) {
    for (const std::size_t i : ir::written_params(function)) {
      if (function.params[i].name == each.name) each.tensor = &results.params[i].tensor;
    }
    if (each.tensor == &returned) each.tensor = &results.returned.tensor;
  }
  return out;
}

const Tensor& find(const std::vector<reference::Named>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &reference::Named::name);
  KILN_CHECK(found != tensors.end(), "no tensor `{}`", name);
  return *found->tensor;
}

// Computes all elements in fp64: for einsums that are no product of two matrices.
Verdict FileField::compare_with_fp64(const Tensor& result,
                                     const reference::EinsumNumerics& numerics) const {
  const FileCandidate& owner = *owner_->candidate;
  Tensor returned;
  const auto inputs = io::named_tensors(owner.function(), owner.arguments, returned);
  Diagnostics diags;
  const auto expected = reference::evaluate(*problem_.einsum, inputs, numerics, diags);
  KILN_CHECK(expected.has_value(), "the einsum was checked before");
  const auto found = reference::compare(*expected, result);
  return found.outside > 0 ? wrong(found, "fp64") : Verdict{};
}

// Checks a sample of the first candidate's product in fp64, and all elements of the others against
// that product.
Verdict FileField::compare_with_einsum(const FileEntrant& entrant, const ir::Arguments& results) {
  const reference::Einsum& einsum = *problem_.einsum;
  const reference::EinsumNumerics numerics = io::weakest(entrant.candidate->function());
  Tensor returned;
  const auto tensors = named(results, returned);
  const Tensor& result = find(tensors, einsum.output.name);
  const auto product = matrix_product(einsum, tensors);
  if (!product) return compare_with_fp64(result, numerics);
  const Measured measured{
      .a = find(tensors, product->a), .b = find(tensors, product->b), .c = result};
  if (!first_) {
    const auto found = check_sample(einsum, *product, measured, numerics, problem_.seed);
    if (found.outside > 0) return wrong(found, "fp64");
    first_numerics_ = numerics;
    return {};
  }
  const Tensor& first = find(named(*first_, returned), einsum.output.name);
  if (first.bytes == result.bytes) return {};
  const auto found =
      compare_with_vendor(*product, measured, first, {.ours = numerics, .vendor = first_numerics_});
  return found.outside > 0 ? wrong(found, "the first right one") : Verdict{};
}

Verdict FileField::compare(const FileEntrant& entrant, const ir::Arguments& results) {
  if (problem_.einsum) return compare_with_einsum(entrant, results);
  return first_ ? compare_with_first(entrant, results) : Verdict{};
}

Result<Verdict> FileField::check(std::size_t index) {
  FileEntrant& entrant = entrants_[index];
  if (!entrant.refusal.empty()) {
    return Verdict{.kind = Verdict::Kind::kRefused, .reason = entrant.refusal};
  }
  auto results = results_of(entrant);
  if (!results) {
    return Unexpected{Error{"cannot run", text(*entrant.candidate), results.error().text()}};
  }
  if (auto intact = check_zones(entrant); !intact) return Unexpected{intact.error()};
  Verdict verdict = compare(entrant, *results);
  if (verdict.kind == Verdict::Kind::kRight && !first_) first_ = std::move(*results);
  return verdict;
}

Result<std::vector<std::vector<double>>> FileField::measure(std::span<const std::size_t> which,
                                                            const TuneRound& round) {
  std::vector<Contender> contenders;
  for (const std::size_t i : which) {
    contenders.push_back(
        {text(*entrants_[i].candidate), [&calls = entrants_[i].calls](auto set, auto stream) {
           return calls[set].start(stream);
         }});
  }
  return time_in_turn(gpu_, contenders,
                      {.sets = owner_->calls.size(),
                       .repeats = round.repeats,
                       .batch_seconds = round.batch_seconds});
}

class FileGpu final : public TuneFileDevice {
 public:
  explicit FileGpu(runtime::Gpu gpu) : gpu_(std::move(gpu)) {}
  [[nodiscard]] Result<std::unique_ptr<TuneField>> open(
      const TunedProblem& problem, const std::vector<FileCandidate*>& candidates) override;

 private:
  runtime::Gpu gpu_;
};

void load(runtime::Gpu& gpu, FileEntrant& entrant) {
  const FileCandidate& candidate = *entrant.candidate;
  const runtime::ContextScope scope(gpu.session());
  if (!scope.entered()) {
    entrant.refusal = scope.entered().error().text();
    return;
  }
  auto kernels = backends::device().load(gpu, {.module = candidate.program->decided,
                                               .function = candidate.function(),
                                               .sources = candidate.program->sources});
  if (kernels) entrant.kernels.emplace(std::move(*kernels));
  if (!kernels) entrant.refusal = kernels.error().text();
}

Result<std::unique_ptr<TuneField>> FileGpu::open(const TunedProblem& problem,
                                                 const std::vector<FileCandidate*>& candidates) {
  std::deque<FileEntrant> entrants;
  for (FileCandidate* candidate : candidates) entrants.push_back({.candidate = candidate});
  for_each_index(entrants.size(), [&](std::size_t i) { load(gpu_, entrants[i]); });
  auto field = std::make_unique<FileField>(gpu_, problem, std::move(entrants));
  if (auto ready = field->prepare(); !ready) return Unexpected{ready.error()};
  return std::unique_ptr<TuneField>(std::move(field));
}

}  // namespace

Result<std::unique_ptr<TuneFileDevice>> open_tune_file_gpu() {
  auto gpu = backends::open_device();
  if (!gpu) return Unexpected{gpu.error()};
  return std::unique_ptr<TuneFileDevice>(std::make_unique<FileGpu>(std::move(*gpu)));
}

}  // namespace kiln::measure
