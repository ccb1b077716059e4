#include "runtime/call_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "ir/reflect.h"
#include "runtime/host_program.h"
#include "runtime/launch.h"

namespace kiln::runtime {

using cuda::DevicePtr;

namespace {

// A kernel's parameters take 4 KiB: so many maps, or so many values.
constexpr std::size_t kMapsMax = 32;
constexpr std::size_t kSlotsMax = 512;

// What the host part of a function goes by.
struct HostUses {
  std::vector<bool> values;  // by ValueId
  std::vector<bool> vars;    // by VarId

  explicit HostUses(const ir::Function& function)
      : values(function.values.size()), vars(function.vars.size()) {}

  void take(const ir::Expr& expr) {
    std::vector<ir::VarId> found;
    expr.collect_vars(found);
    for (const ir::VarId var : found) vars[var.index] = true;
  }
  void take(const ir::Type& type) {
    const auto* view = std::get_if<ir::ViewType>(&type);
    if (view == nullptr) return;
    for (const ir::Expr& extent : view->shape) take(extent);
  }
  // Of a launch what surrounds the kernel.
  void take(const ir::Function& function, ir::RegionId region) {
    for (const ir::OpId id : function.regions[region].ops) {
      const ir::Op& op = function.ops[id];
      ir::for_each_operand(op, [&](std::string_view, ir::ValueId value) {
        if (value.valid()) values[value.index] = true;
      });
      ir::for_each_expr(op, [&](const ir::Expr& expr) { take(expr); });
      if (op.result.valid()) take(function.type(op.result));
      if (op.kind() == ir::OpKind::kParallel) continue;
      for (const ir::RegionId inner : ir::regions_of(op)) take(function, inner);
    }
  }
  void take(const emit::LaunchPlan& plan) {
    for (const ir::Expr& extent : plan.grid) take(extent);
    take(plan.threads);
    for (const emit::MapPlan& map : plan.maps) {
      for (const ir::Expr& extent : map.map.extents) take(extent);
      for (const ir::Expr& extent : map.map.shape) take(extent);
    }
  }
};

bool is_view(const ir::Function& function, ir::ValueId value) {
  return std::holds_alternative<ir::ViewType>(function.type(value));
}

std::size_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(Tensor{dtype, shape, {}}.elements() * size_bytes(dtype));
}

std::size_t rounded_up(std::size_t bytes) {
  return (bytes + kWorkspaceUnit - 1) / kWorkspaceUnit * kWorkspaceUnit;
}

}  // namespace

std::vector<bool> deciding_numbers(const ir::Module& module, const ir::Function& function) {
  HostUses uses(function);
  uses.take(function, function.body);
  for (const emit::LaunchPlan& plan : emit::plan_launches(module, function)) uses.take(plan);
  for (const ir::EntryCheck& check : function.checks) {
    uses.take(check.left);
    uses.take(check.right);
  }
  std::vector<bool> out;
  for (const ir::Param& param : function.params) {
    if (param.value.valid()) uses.take(function.type(param.value));
  }
  for (const ir::Param& param : function.params) {
    const bool number = !param.value.valid() || !is_view(function, param.value);
    const bool by_value = param.value.valid() && uses.values[param.value.index];
    out.push_back(number && (by_value || (param.var.valid() && uses.vars[param.var.index])));
  }
  return out;
}

// Runs the host part once and notes its launches.
class CallPlan::Maker {
 public:
  Maker(CallPlan& plan, const Subject& subject)
      : plan_(plan),
        module_(subject.module),
        function_(subject.function),
        arguments_(subject.arguments),
        steps_max_(subject.steps_max),
        strides_(subject.strides),
        launches_(emit::plan_launches(module_, function_)),
        host_(function_, arguments_) {
    const auto deciding = deciding_numbers(module_, function_);
    for (std::size_t i = 0; i < function_.params.size(); ++i) handed_on_.push_back(!deciding[i]);
  }

  Result<void> make() {
    take_params();
    const HostProgram::Hooks hooks{
        .allocate = [&](ir::ValueId value, const std::vector<std::int64_t>& shape,
                        std::optional<double> initial) { return allocate(value, shape, initial); },
        .launch = [&](ir::OpId op) { return note_launch(op); }};
    if (auto ran = host_.run(hooks, steps_max_); !ran) return ran;
    take_returned();
    place_buffers();
    return {};
  }

 private:
  [[nodiscard]] std::size_t result_place() const { return function_.params.size(); }
  [[nodiscard]] std::size_t workspace_place() const { return function_.params.size() + 1; }

  std::size_t add_buffer(std::string name, DType dtype, const std::vector<std::int64_t>& shape,
                         std::size_t place) {
    plan_.buffers_.push_back({.name = std::move(name),
                              .dtype = dtype,
                              .shape = shape,
                              .strides = {},
                              .place = place,
                              .offset = 0});
    return plan_.buffers_.size() - 1;
  }

  // What is neither `global` nor `&` is the kernel's own: where it is written, of a copy.
  void take_params() {
    const std::vector<std::size_t> written = ir::written_params(function_);
    for (std::size_t i = 0; i < function_.params.size(); ++i) {
      const ir::Param& param = function_.params[i];
      if (!param.value.valid() || !is_view(function_, param.value)) continue;
      const Tensor& tensor = arguments_.params[i].tensor;
      const bool copied =
          !param.is_global && !param.is_reference && std::ranges::find(written, i) != written.end();
      const std::size_t buffer =
          add_buffer(param.name, tensor.dtype, tensor.shape, copied ? workspace_place() : i);
      buffers_[param.value.index] = buffer;
      if (!strides_.empty()) plan_.buffers_[buffer].strides = strides_[i];
      if (!copied) continue;
      plan_.steps_.emplace_back(
          CopyIn{.buffer = buffer, .param = i, .bytes = bytes_of(tensor.dtype, tensor.shape)});
    }
  }

  Result<void> allocate(ir::ValueId value, const std::vector<std::int64_t>& shape,
                        std::optional<double> initial) {
    const DType dtype = function_.view_type(value).dtype;
    const std::string& name = function_.values[value].name;
    if (!elements_fit(dtype, shape)) {
      return Unexpected{Error{"cannot allocate", name, format("a shape of {}", shape_text(shape))}};
    }
    const auto held = buffers_.find(value.index);
    if (held == buffers_.end() || plan_.buffers_[held->second].shape != shape) {
      buffers_[value.index] = add_buffer(name, dtype, shape, workspace_place());
    }
    if (initial) note_fill(buffers_[value.index], *initial);
    return {};
  }

  void note_fill(std::size_t buffer, double value) {
    const Buffer& of = plan_.buffers_[buffer];
    Tensor one = Tensor::zeros(of.dtype, {1});
    one.set(0, value);
    Fill fill{.buffer = buffer,
              .count = bytes_of(of.dtype, of.shape),
              .width = one.bytes.size(),
              .bits = 0};
    std::memcpy(&fill.bits, one.bytes.data(), one.bytes.size());
    const auto alike = [&](std::byte b) { return b == one.bytes.front(); };
    if (std::ranges::all_of(one.bytes, alike)) fill.width = 1;
    fill.count /= fill.width;
    if (fill.count != 0) plan_.steps_.emplace_back(fill);
  }

  Result<void> note_launch(ir::OpId op) {
    const auto plan = std::ranges::find(launches_, op, &emit::LaunchPlan::op);
    KILN_CHECK(plan != launches_.end(), "operation {} has no launch plan", op.index);
    if (plan->slots.size() > kSlotsMax || plan->maps.size() > kMapsMax) {
      return Unexpected{
          Error{"cannot launch", plan->kernel_name,
                format("{} parameters and {} tensor maps, at most {} and {} are possible",
                       plan->slots.size(), plan->maps.size(), kSlotsMax, kMapsMax)}};
    }
    Result<Launch> launch = sized_launch(*plan, host_.vars(), plan_.gpu_.arch());
    if (!launch) return Unexpected{launch.error()};
    Kernel kernel{.launch = std::move(*launch), .slots = {}, .maps = {}, .cache = nullptr};
    for (const emit::ParamSlot& slot : plan->slots) {
      kernel.slots.push_back(slot_of(slot));
      if (kernel.slots.back().source != Source::kBuffer) continue;
      if (auto whole = check_whole(plan_.buffers_[kernel.slots.back().index]); !whole) {
        return whole;
      }
    }
    for (const emit::MapPlan& each : plan->maps) {
      Result<Map> map = map_of(each);
      if (!map) return Unexpected{map.error()};
      kernel.maps.push_back(std::move(*map));
    }
    if (!kernel.maps.empty()) kernel.cache = std::make_unique<MapCache>(kernel.maps.size());
    if (auto found = plan_.kernels_.prepare(kernel.launch); !found) return found;
    plan_.steps_.emplace_back(std::move(kernel));
    return {};
  }

  // The parameter that the slot's value is, if it may differ from start to start.
  [[nodiscard]] std::optional<std::size_t> number_of(const emit::ParamSlot& slot) const {
    for (std::size_t i = 0; i < function_.params.size(); ++i) {
      const ir::Param& param = function_.params[i];
      const bool same =
          slot.kind == emit::SlotKind::kVar ? param.var == slot.var : param.value == slot.value;
      if (same && handed_on_[i]) return i;
    }
    return std::nullopt;
  }

  [[nodiscard]] Slot slot_of(const emit::ParamSlot& slot) const {
    switch (slot.kind) {
      case emit::SlotKind::kParam:
      case emit::SlotKind::kAlloc:
        return {.source = Source::kBuffer, .bits = 0, .index = buffers_.at(slot.value.index)};
      case emit::SlotKind::kMap: return {.source = Source::kMap, .bits = 0, .index = slot.map};
      case emit::SlotKind::kVar:
      case emit::SlotKind::kScalar: break;
    }
    if (const auto param = number_of(slot)) {
      return {.source = Source::kNumber, .bits = 0, .index = *param};
    }
    return {.source = Source::kBits, .bits = value_bits(slot, host_), .index = 0};
  }

  // A kernel that has an address computes by the declared shape.
  static Result<void> check_whole(const Buffer& buffer) {
    std::int64_t step = 1;
    for (std::size_t d = buffer.strides.size(); d-- > 0;) {
      step *= buffer.shape[d + 1];
      if (buffer.strides[d] == step) continue;
      return Unexpected{Error{"cannot launch with", buffer.name,
                              format("dimension {} steps by {} elements and not by {}, which the "
                                     "kernel does not take: it needs the tensor without gaps",
                                     d, buffer.strides[d], step)}};
    }
    return {};
  }

  [[nodiscard]] Result<Map> map_of(const emit::MapPlan& plan) const {
    const std::size_t buffer = buffers_.at(plan.map.buffer.index);
    const Buffer& of = plan_.buffers_[buffer];
    TensorMapRequest request = map_request(plan, host_.vars());
    request.dtype = of.dtype;
    if (request.shape == of.shape) {
      request.strides = of.strides;
    } else if (auto whole = check_whole(of); !whole) {
      return Unexpected{whole.error()};
    }
    const Result<TensorMapArguments> arguments = tensor_map_arguments(request);
    if (!arguments) return Unexpected{arguments.error()};
    return Map{.arguments = *arguments, .name = request.name, .buffer = buffer};
  }

  void take_returned() {
    ir::ValueId value = host_.returned();
    if (!value.valid()) return;
    if (!is_view(function_, value)) {
      const auto* scalar = std::get_if<ir::ScalarType>(&function_.type(value));
      plan_.returned_ = Returned{.dtype = scalar != nullptr ? scalar->dtype : DType::kF32,
                                 .number = host_.scalar(value)};
      return;
    }
    value = ir::root_of(function_, value);
    Buffer& buffer = plan_.buffers_[buffers_.at(value.index)];
    if (buffer.place != workspace_place()) return;  // a parameter of the caller's
    buffer.place = result_place();
    plan_.returned_ = Returned{.dtype = buffer.dtype, .shape = buffer.shape, .number = {}};
  }

  // By buffer, whether some step reads or writes it.
  [[nodiscard]] std::vector<bool> used_buffers() const {
    std::vector<bool> used(plan_.buffers_.size());
    for (const Step& step : plan_.steps_) {
      if (const auto* copy = std::get_if<CopyIn>(&step)) used[copy->buffer] = true;
      if (const auto* fill = std::get_if<Fill>(&step)) used[fill->buffer] = true;
      const auto* kernel = std::get_if<Kernel>(&step);
      if (kernel == nullptr) continue;
      for (const Slot& slot : kernel->slots) {
        if (slot.source == Source::kBuffer) used[slot.index] = true;
      }
      for (const Map& map : kernel->maps) used[map.buffer] = true;
    }
    return used;
  }

  // What the function declares and does not use has no place.
  void place_buffers() {
    const std::vector<bool> used = used_buffers();
    for (std::size_t i = 0; i < used.size(); ++i) {
      Buffer& buffer = plan_.buffers_[i];
      if (!used[i] || buffer.place != workspace_place()) continue;
      buffer.offset = plan_.workspace_bytes_;
      plan_.workspace_bytes_ += rounded_up(bytes_of(buffer.dtype, buffer.shape));
    }
  }

  CallPlan& plan_;
  const ir::Module& module_;
  const ir::Function& function_;
  const ir::Arguments& arguments_;
  std::uint64_t steps_max_;
  std::span<const std::vector<std::int64_t>> strides_;
  std::vector<emit::LaunchPlan> launches_;
  HostProgram host_;
  std::vector<bool> handed_on_;                   // by parameter: numbers that decide nothing
  std::map<std::uint32_t, std::size_t> buffers_;  // by index of the root's ValueId, as it is now
};

Result<std::unique_ptr<CallPlan>> CallPlan::make(const Gpu& gpu, const DeviceModule& kernels,
                                                 const Subject& subject) {
  const ContextScope scope(gpu.session());
  if (!scope.entered()) return Unexpected{scope.entered().error()};
  std::unique_ptr<CallPlan> plan(new CallPlan(gpu, kernels));
  if (auto made = Maker(*plan, subject).make(); !made) return Unexpected{made.error()};
  return plan;
}

struct CallPlan::Start {
  const Operands& operands;
  cuda::Stream stream = nullptr;
};

DevicePtr CallPlan::address(std::size_t buffer, const Operands& operands) const {
  const Buffer& of = buffers_[buffer];
  return operands.places[of.place] + of.offset;
}

Result<void> CallPlan::launch(const Kernel& step, const Start& start,
                              std::span<const cuda::TensorMap> maps) const {
  std::array<std::uint64_t, kSlotsMax> values;  // as many as there are slots have a value
  std::array<void*, kSlotsMax> parameters;
  for (std::size_t i = 0; i < step.slots.size(); ++i) {
    const Slot& slot = step.slots[i];
    parameters[i] = &values[i];
    switch (slot.source) {
      case Source::kBits: values[i] = slot.bits; break;
      case Source::kBuffer: values[i] = address(slot.index, start.operands); break;
      case Source::kNumber: values[i] = start.operands.numbers[slot.index]; break;
      // The driver reads a map and does not write to it.
      case Source::kMap:
        parameters[i] = const_cast<std::byte*>(maps[slot.index].bytes.data());
        break;
    }
  }
  return kernels_.launch(step.launch, std::span(parameters).first(step.slots.size()), start.stream);
}

Result<void> CallPlan::take_with_maps(const Kernel& step, const Start& start) const {
  std::array<cuda::TensorMap, kMapsMax> storage;
  std::array<DevicePtr, kMapsMax> places;
  const auto maps = std::span(storage).first(step.maps.size());
  const auto addresses = std::span(places).first(step.maps.size());
  for (std::size_t i = 0; i < maps.size(); ++i) {
    addresses[i] = address(step.maps[i].buffer, start.operands);
  }
  if (step.cache->find(addresses, maps)) return launch(step, start, maps);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    TensorMapArguments arguments = step.maps[i].arguments;
    arguments.address = addresses[i];
    auto made = encode_tensor_map(gpu_.session().api, arguments, step.maps[i].name, maps[i]);
    if (!made) return made;
  }
  step.cache->add(addresses, maps);
  return launch(step, start, maps);
}

Result<void> CallPlan::take(const Kernel& step, const Start& start) const {
  return step.maps.empty() ? launch(step, start, {}) : take_with_maps(step, start);
}

Result<void> CallPlan::take(const Fill& step, const Start& start) const {
  const cuda::Api& api = gpu_.session().api;
  const DevicePtr at = address(step.buffer, start.operands);
  const auto low = static_cast<unsigned>(step.bits);
  cuda::Status status = cuda::kSuccess;
  switch (step.width) {
    case 1:
      status = api.start_set_bytes(at, static_cast<unsigned char>(low), step.count, start.stream);
      break;
    case 2:
      status = api.start_set_halves(at, static_cast<unsigned short>(low), step.count, start.stream);
      break;
    case 4: status = api.start_set_words(at, low, step.count, start.stream); break;
    default: {
      // Both halves of each element, as columns of one word each.
      constexpr std::size_t kPitch = 8;
      const auto high = static_cast<unsigned>(step.bits >> 32U);
      status = api.start_set_columns(at, kPitch, low, 1, step.count, start.stream);
      if (status != cuda::kSuccess) break;
      status = api.start_set_columns(at + kPitch / 2, kPitch, high, 1, step.count, start.stream);
    }
  }
  if (status == cuda::kSuccess) return {};
  return api.check(status, "cannot fill memory of the GPU", buffers_[step.buffer].name);
}

Result<void> CallPlan::take(const CopyIn& step, const Start& start) const {
  const cuda::Api& api = gpu_.session().api;
  const cuda::Status status =
      api.copy_within(address(step.buffer, start.operands), start.operands.places[step.param],
                      step.bytes, start.stream);
  if (status == cuda::kSuccess) return {};
  return api.check(status, "cannot copy on the GPU", buffers_[step.buffer].name);
}

Result<void> CallPlan::start(const Operands& operands, cuda::Stream stream) const {
  const ContextScope scope(gpu_.session());
  if (!scope.entered()) return scope.entered();
  const Start start{.operands = operands, .stream = stream};
  for (const Step& step : steps_) {
    auto done = std::visit([&](const auto& each) { return take(each, start); }, step);
    if (!done) return done;
  }
  return {};
}

}  // namespace kiln::runtime
