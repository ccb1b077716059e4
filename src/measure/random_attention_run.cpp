#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>

#include "attention/plan.h"
#include "io/expect.h"
#include "measure/attention_check.h"
#include "measure/random_attention.h"
#include "support/format.h"

namespace kiln::measure {

namespace {

using AttentionPlan = attention::Plan;
using AttentionProblem = attention::Problem;
using AttentionPart = attention::Part;
using gemm::FailureKind;
using runtime::DeviceBuffer;
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

constexpr std::byte kPoison{0xff};            // each byte of a NaN
constexpr std::int64_t kAttentionDraws = 50;  // at most, before a run ends with fewer problems
constexpr int kWordBytes = 4;
constexpr std::string_view kAddedInAnyOrder = "dq";

// A problem with all that computes it.
struct ReadyAttention {
  RandomAttention drawn;
  AttentionProblem problem = {};  // normalised
  std::unique_ptr<AttentionPlan> plan = nullptr;
  AttentionNumerics numerics = {};
  AttentionTensors tensors = {};
  std::string refusal = {};
  std::vector<std::string> faults = {};
};

// A tensor as it lies in memory: `offset` bytes, then rows with gaps. Everything that is no element
// is poison.
struct AttentionImage {
  const char* name;
  bool written;
  std::optional<AttentionPart> part;  // none: its elements lie one behind the other
  Tensor* tensor;
  std::size_t offset;
  Bytes bytes = {};
};

std::size_t span_bytes(const AttentionProblem& problem, const AttentionPart& part) {
  const std::int64_t elements = (problem.batch - 1) * part.spacing.batch +
                                (part.rows - 1) * part.spacing.row +
                                (part.heads - 1) * part.spacing.head + problem.depth;
  return static_cast<std::size_t>(elements * size_bytes(part.dtype));
}

// Calls `visit(in the image, in the tensor, bytes)` for each row of a head, the first two in bytes.
template <class Visit>
void each_row(const AttentionProblem& problem, const AttentionImage& image, Visit&& visit) {
  const AttentionPart& part = *image.part;
  const auto bytes = static_cast<std::size_t>(problem.depth * size_bytes(part.dtype));
  std::size_t packed = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t i = 0; i < part.rows; ++i) {
      for (std::int64_t h = 0; h < part.heads; ++h, packed += bytes) {
        const attention::Spacing& step = part.spacing;
        const std::int64_t element = b * step.batch + i * step.row + h * step.head;
        visit(image.offset + static_cast<std::size_t>(element * size_bytes(part.dtype)), packed,
              bytes);
      }
    }
  }
}

// All tensors of the problem, those that are read with their values.
std::vector<AttentionImage> images_of(ReadyAttention& ready) {
  const AttentionProblem& p = ready.problem;
  AttentionTensors& all = ready.tensors;
  Tensor* const places[] = {&all.q, &all.k, &all.v, &all.o, &all.dout, &all.dq, &all.dk, &all.dv};
  const auto parts = attention::parts_of(p);
  const auto offset = static_cast<std::size_t>(ready.drawn.offset);
  std::vector<AttentionImage> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!p.backward && i >= attention::kPartsOfForward) break;
    AttentionImage& image = out.emplace_back(
        AttentionImage{parts[i].name, parts[i].written, parts[i], places[i], offset});
    image.bytes.assign(offset + span_bytes(p, parts[i]), kPoison);
    if (image.written) {
      *image.tensor =
          Tensor::zeros(parts[i].dtype, {p.batch, parts[i].rows, parts[i].heads, p.depth});
      continue;
    }
    each_row(p, image, [&](std::size_t at, std::size_t from, std::size_t bytes) {
      std::memcpy(image.bytes.data() + at, image.tensor->bytes.data() + from, bytes);
    });
  }
  return out;
}

// A tensor of f32 without gaps: a multiple of 4 bytes is enough of an offset.
AttentionImage flat_image(const ReadyAttention& ready, const char* name, Tensor& tensor,
                          bool written) {
  AttentionImage out{name, written, std::nullopt, &tensor,
                     static_cast<std::size_t>(ready.drawn.offset / kWordBytes)};
  out.bytes.assign(out.offset, kPoison);
  if (written) {
    out.bytes.resize(out.offset + tensor.bytes.size(), kPoison);
  } else {
    out.bytes.insert(out.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return out;
}

void add_flat_images(ReadyAttention& ready, std::vector<AttentionImage>& images) {
  const AttentionProblem& p = ready.problem;
  AttentionTensors& all = ready.tensors;
  if (!p.backward) all.lse = Tensor::zeros(DType::kF32, {p.batch, p.heads, p.queries});
  images.push_back(flat_image(ready, "lse", all.lse, !p.backward));
  const std::pair<const char*, Tensor*> factors[] = {
      {"q_scale", &all.q_scale}, {"k_scale", &all.k_scale}, {"v_scale", &all.v_scale}};
  for (const auto& [name, tensor] : factors) {
    if (!tensor->bytes.empty()) images.push_back(flat_image(ready, name, *tensor, false));
  }
}

// One problem on the GPU.
class AttentionRun {
 public:
  AttentionRun(runtime::Gpu& gpu, ReadyAttention& ready)
      : gpu_(gpu), ready_(ready), images_(images_of(ready)) {
    add_flat_images(ready, images_);
  }

  // Computes it twice. What was written lies in the problem's tensors then. Errors: what the driver
  // says.
  Result<void> run() {
    for (const AttentionImage& image : images_) {
      auto buffer = gpu_.allocate(image.bytes.size());
      if (!buffer) return Unexpected{buffer.error()};
      buffers_.push_back(std::move(*buffer));
    }
    if (const std::size_t bytes = ready_.plan->workspace_bytes(); bytes > 0) {
      auto workspace = gpu_.allocate(bytes);
      if (!workspace) return Unexpected{workspace.error()};
      workspace_.emplace(std::move(*workspace));
    }
    const auto first = start();
    if (!first) return Unexpected{first.error()};
    const auto second = start();
    if (!second) return Unexpected{second.error()};
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const bool ordered = !ready_.problem.any_order || images_[i].name != kAddedInAnyOrder;
      if (ordered && (*first)[i] != (*second)[i]) fault("has other bits in the second run", i);
      take(i, std::move((*second)[i]));
    }
    return check_zones();
  }

 private:
  void fault(const char* text, std::size_t image) {
    ready_.faults.push_back(format("`{}` {}", images_[image].name, text));
  }

  // All bytes of all tensors afterwards.
  Result<std::vector<Bytes>> start() {
    for (std::size_t i = 0; i < images_.size(); ++i) {
      if (auto copied = buffers_[i].copy_in(images_[i].bytes); !copied) {
        return Unexpected{copied.error()};
      }
    }
    if (workspace_) {
      auto filled = workspace_->fill(static_cast<unsigned char>(kPoison));
      if (!filled) return Unexpected{filled.error()};
    }
    const attention::Operands operands = operands_of();
    if (auto fits = attention::check(ready_.problem, operands); !fits) {
      return Unexpected{fits.error()};
    }
    auto started = ready_.plan->start(operands, workspace_ ? workspace_->address() : 0, nullptr);
    if (!started) return Unexpected{started.error()};
    if (auto done = gpu_.synchronize(); !done) return Unexpected{done.error()};
    std::vector<Bytes> out;
    for (const DeviceBuffer& buffer : buffers_) {
      if (auto copied = buffer.copy_out(out.emplace_back(buffer.bytes())); !copied) {
        return Unexpected{copied.error()};
      }
    }
    return out;
  }

  [[nodiscard]] attention::Operands operands_of() const {
    attention::Operands out{.scale = ready_.drawn.scale};
    const std::pair<std::string_view, runtime::cuda::DevicePtr*> places[] = {
        {"q", &out.q},
        {"k", &out.k},
        {"v", &out.v},
        {"o", &out.o},
        {"dout", &out.dout},
        {"dq", &out.dq},
        {"dk", &out.dk},
        {"dv", &out.dv},
        {"lse", &out.lse},
        {"q_scale", &out.q_scale},
        {"k_scale", &out.k_scale},
        {"v_scale", &out.v_scale}};
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const auto place = std::ranges::find(
          places, images_[i].name, &std::pair<std::string_view, runtime::cuda::DevicePtr*>::first);
      *place->second = buffers_[i].address() + images_[i].offset;
    }
    return out;
  }

  // The elements of what was written; everything else is to be as it was.
  void take(std::size_t number, Bytes after) {
    AttentionImage& image = images_[number];
    const auto take_row = [&](std::size_t at, std::size_t to, std::size_t bytes) {
      std::byte* const from = after.data() + at;
      std::memcpy(image.tensor->bytes.data() + to, from, bytes);
      std::fill(from, from + bytes, kPoison);
    };
    if (image.written && !image.part) take_row(image.offset, 0, image.tensor->bytes.size());
    if (image.written && image.part) each_row(ready_.problem, image, take_row);
    if (after == image.bytes) return;
    fault(image.written ? "is not all that was written: bytes between its rows were"
                        : "was overwritten",
          number);
  }

  Result<void> check_zones() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto intact = buffers_[i].zones_intact();
      if (!intact) return Unexpected{intact.error()};
      if (!*intact) fault("is not all that was written: bytes around it were", i);
    }
    if (!workspace_) return {};
    const auto intact = workspace_->zones_intact();
    if (!intact) return Unexpected{intact.error()};
    if (!*intact) {
      ready_.faults.emplace_back("bytes around the workspace were overwritten");
    }
    return {};
  }

  runtime::Gpu& gpu_;
  ReadyAttention& ready_;
  std::vector<AttentionImage> images_;
  std::vector<DeviceBuffer> buffers_;
  std::optional<DeviceBuffer> workspace_;
};

// Compiles it, and makes its inputs.
void prepare(runtime::Gpu& gpu, ReadyAttention& ready) {
  const runtime::ContextScope scope(gpu.session());
  if (!scope.entered()) {
    ready.faults.push_back(scope.entered().error().text());
    return;
  }
  const auto device = gemm::library().current_device();
  if (!device) {
    ready.faults.push_back(device.error().error.text());
    return;
  }
  auto plan = AttentionPlan::make(*device, ready.problem);
  if (!plan && plan.error().kind == FailureKind::kUnsupported) {
    ready.refusal = refusal_text(plan.error().error);
    return;
  }
  if (!plan) {
    ready.faults.push_back(plan.error().error.text());
    return;
  }
  ready.plan = std::move(*plan);
  ready.numerics = {.scale = ready.drawn.scale,
                    .sums = io::weakest(ready.plan->kernel().program->function())};
  ready.tensors = make_inputs(ready.drawn, ready.numerics);
}

void compare(ReadyAttention& ready) {
  for (const AttentionFound& found :
       check_attention(ready.problem, ready.tensors, ready.numerics)) {
    const reference::Comparison& result = found.result;
    if (result.outside == 0) continue;
    const reference::Mismatch& first = *result.first;
    ready.faults.push_back(format(
        "{} of {} elements of `{}`, the first is {}: expected {}, allowed error {:.3g}, got {}",
        result.outside, result.elements, found.name, shape_text(first.coordinates), first.expected,
        first.bound, first.actual));
  }
}

}  // namespace

struct RandomAttentions::State {
  RandomReport& report;
  runtime::Gpu& gpu;
  ServedDepths depths = {};
  std::set<std::string> kernels = {};
  std::int64_t wanted = 0;
  std::int64_t draws_max = 0;
  std::int64_t drawn = 0;
  std::int64_t checked = 0;
};

namespace {

using State = RandomAttentions::State;

std::optional<ReadyAttention> next_drawn(State& bench) {
  const std::string& only = bench.report.options.only;
  const auto given = parse_attention(only);
  const auto number = static_cast<std::uint64_t>(bench.drawn++);
  ReadyAttention out{
      .drawn = given ? *given : draw_attention(bench.report.options.seed, number, bench.depths)};
  const auto whole = attention::normalised(out.drawn.problem);
  if (!whole) {
    bench.report.refuse(refusal_text(whole.error()));
    return std::nullopt;
  }
  if (!given && text(out.drawn).find(only) == std::string::npos) return std::nullopt;
  out.problem = *whole;
  return out;
}

// Of some problems: in memory together, prepared and compared on all cores, run one by one.
Result<void> check_these(State& bench, std::vector<ReadyAttention>& some) {
  RandomReport& report = bench.report;
  const Clock::time_point start = Clock::now();
  for_each_shown(report, "attention: compiling", some.size(),
                 [&](std::size_t i) { prepare(bench.gpu, some[i]); });
  report.compile_seconds += std::chrono::duration<double>(Clock::now() - start).count();
  for (const ReadyAttention& ready : some) {
    if (!ready.refusal.empty()) report.refuse(ready.refusal);
  }
  std::erase_if(some, [](const ReadyAttention& ready) { return !ready.refusal.empty(); });
  Result<void> ran;
  for (std::size_t i = 0; i < some.size() && ran; ++i) {
    if (some[i].plan == nullptr) continue;
    report.progress(io::progress_bar("attention: running", i, some.size()));
    ran = AttentionRun(bench.gpu, some[i]).run();
    if (!ran) some[i].faults.push_back(ran.error().text());
    if (!ran) some.resize(i + 1);
  }
  for_each_shown(report, "attention: comparing", ran ? some.size() : 0, [&](std::size_t i) {
    if (some[i].plan != nullptr) compare(some[i]);
  });
  for (const ReadyAttention& ready : some) {
    const bool backward = ready.problem.backward;
    const std::string kernel = ready.plan == nullptr ? "" : ready.plan->choice().kernel;
    ++report.checked;
    ++bench.checked;
    ++report.by_types[format("attention {}{}", name(ready.problem.dtype),
                             backward ? " backward" : "")];
    if (!kernel.empty()) ++report.by_kernel[kernel];
    if (ready.plan != nullptr) bench.kernels.insert(ready.plan->kernel_text());
    if (ready.faults.empty()) continue;
    report.fail(text(ready.drawn), ready.plan == nullptr ? "no kernel" : ready.plan->kernel_text(),
                join(ready.faults, "; ", [](const std::string& fault) { return fault; }));
  }
  return ran;
}

}  // namespace

bool has_attention(const runtime::Gpu& gpu) { return !served_depths(gpu.arch()).forward.empty(); }

RandomAttentions::RandomAttentions(RandomReport& report, runtime::Gpu& gpu, std::int64_t count)
    : state_(std::make_unique<State>(State{.report = report, .gpu = gpu})) {
  const bool one = count > 0 && parse_attention(report.options.only).has_value();
  state_->depths = served_depths(gpu.arch());
  state_->wanted = one ? 1 : count;
  state_->draws_max = one ? 1 : state_->depths.forward.empty() ? 0 : kAttentionDraws * count;
}

RandomAttentions::~RandomAttentions() = default;

bool RandomAttentions::is_done() const {
  return state_->checked >= state_->wanted || state_->drawn >= state_->draws_max;
}

Result<void> RandomAttentions::check_some(std::int64_t most) {
  std::vector<ReadyAttention> some;
  const std::int64_t room = std::min(state_->wanted - state_->checked, most);
  while (std::ssize(some) < room && state_->drawn < state_->draws_max) {
    auto ready = next_drawn(*state_);
    if (ready) some.push_back(std::move(*ready));
  }
  Result<void> done = check_these(*state_, some);
  state_->report.progress("");
  return done;
}

std::int64_t RandomAttentions::drawn() const { return state_->drawn; }

std::size_t RandomAttentions::kernels() const { return state_->kernels.size(); }

}  // namespace kiln::measure
