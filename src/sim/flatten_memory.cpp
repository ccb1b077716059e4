#include "ir/names.h"
#include "ir/registers.h"
#include "sim/flatten.h"

namespace kiln::sim {

std::uint32_t guard_mask(const std::vector<std::int64_t>& guarded) {
  std::uint32_t mask = 0;
  for (const std::int64_t dim : guarded) {
    KILN_CHECK(dim >= 0 && dim < static_cast<std::int64_t>(kRankMax), "guarded dimension {}", dim);
    mask |= 1U << dim;
  }
  return mask;
}

View Flattener::view(ir::ValueId value) {
  ir::ValueId root = value;
  while (const auto* window = function_.def_as<ir::Subview>(root)) root = window->base;
  const auto* alias = function_.def_as<ir::Alias>(root);
  if (alias != nullptr && buffer_of_[root.index] == nullptr) {
    const Buffer* base = buffer_of_[alias->base.index];
    KILN_CHECK(base != nullptr, "`%{}` has no memory here", function_.values[alias->base].name);
    program_.aliases.push_back(make_alias(function_, root, *base, facts_));
    buffer_of_[root.index] = &program_.aliases.back();
  }
  const Buffer* buffer = buffer_of_[root.index];
  KILN_CHECK(buffer != nullptr, "`%{}` has no memory here", function_.values[root].name);
  return make_view(function_, value, *buffer, facts_);
}

void Flattener::allocate(const ir::Alloc& data, const ir::ViewType& type, InitialisePlan& plan) {
  std::vector<std::int64_t> extents;
  for (const ir::Expr& extent : type.shape) {
    extents.push_back(IndexExpr(extent, facts_).evaluate(nullptr, 0));
  }
  const std::string& name = data.name.empty() ? function_.values[result()].name : data.name;
  Buffer buffer = make_buffer(name, type, extents);
  if (type.space == ir::Space::kShared) {
    KILN_CHECK(data.offset >= 0, "`{}` has no address", name);
    buffer.offset = data.offset + IndexExpr(data.behind, facts_).evaluate(nullptr, 0);
    buffer.layout.swizzle = data.swizzle;
  } else {
    buffer.offset = program_.local_bytes;
    program_.local_bytes += (buffer.bytes + 15) / 16 * 16;
  }
  program_.buffers.push_back(std::move(buffer));
  plan.buffer = &program_.buffers.back();
  buffer_of_[result().index] = plan.buffer;
}

void Flattener::op(const ir::Alloc& data) {
  const ir::Type& type = function_.type(result());
  InitialisePlan plan;
  if (data.initial.valid()) plan.initial = data.initial.index;
  plan.who = region_;
  if (const auto* view_type = std::get_if<ir::ViewType>(&type)) {
    if (view_type->space == ir::Space::kGlobal) {
      KILN_CHECK(on_host_, "global memory is allocated inside a launch");
      plan.buffer = buffer_of_[result().index];
    } else {
      allocate(data, *view_type, plan);
    }
  } else if (const auto* frag = std::get_if<ir::FragType>(&type)) {
    KILN_CHECK(data.atom != nullptr || data.registers.valid(), "fragment `{}` has no registers",
               data.name);
    const ir::Share share = ir::share_of(function_, result());
    const auto lanes = static_cast<std::uint32_t>(share.lanes);
    const auto values = static_cast<std::uint32_t>(share.values);
    FragmentPlan made{.name = data.name.empty() ? function_.values[result()].name : data.name,
                      .dtype = frag->dtype,
                      .offset = program_.fragment_doubles,
                      .values = values,
                      .atom = data.atom,
                      .lanes = lanes};
    if (frag->role == ir::Role::kMetadata) {
      made.values = static_cast<std::uint32_t>(
          target::metadata_registers(*data.atom, frag->dtype, frag->cols));
    }
    program_.fragment_doubles += made.values * kLanes;
    program_.fragments.push_back(std::move(made));
    plan.fragment = static_cast<std::uint32_t>(program_.fragments.size() - 1);
    fragment_of_[result().index] = plan.fragment;
  } else {
    plan.cell = result().index;
    uniform_[plan.cell] = false;
  }
  emit_plan(Code::kInitialise, program_.initialisations, std::move(plan));
}

void Flattener::op(const ir::Copy& data) {
  if (data.way == ir::CopyWay::kBulk) return bulk_copy(data);
  CopyPlan plan;
  plan.src = view(data.src);
  plan.dst = view(data.dst);
  plan.tile_is_dst = plan.dst.buffer->space != ir::Space::kGlobal;
  plan.unit = static_cast<std::uint32_t>(data.unit);
  plan.threads = static_cast<std::uint32_t>(data.threads);
  if (plan.threads == 0) plan.threads = plan.unit == 0 ? region_.threads : plan.unit;
  plan.first = plan.unit == 0 ? static_cast<std::uint32_t>(data.first) : 0;
  const bool alone = data.way == ir::CopyWay::kPerThread ||
                     plan.dst.buffer->space == ir::Space::kLocal || plan.unit == 1;
  if (alone) plan.unit = plan.threads = 1;
  plan.way = data.way;
  plan.grouped = data.grouped;
  plan.widths = data.widths;
  if (plan.widths.empty() || data.way == ir::CopyWay::kPerThread) {
    plan.widths = {plan.dst.buffer->size};
  }
  plan.permutation = data.permutation;
  plan.src_guarded = guard_mask(plan.tile_is_dst ? data.guarded : data.tile_guarded);
  plan.dst_guarded = guard_mask(plan.tile_is_dst ? data.tile_guarded : data.guarded);
  (plan.tile_is_dst ? plan.src_before : plan.dst_before) = guard_mask(data.before);
  emit_plan(Code::kCopy, program_.copies, std::move(plan));
}

void Flattener::op(const ir::Splat& data) {
  SplatPlan plan;
  plan.view = view(data.view);
  plan.value = data.value.index;
  plan.unit = static_cast<std::uint32_t>(data.unit);
  plan.threads = static_cast<std::uint32_t>(data.threads);
  if (plan.threads == 0) plan.threads = plan.unit == 0 ? program_.threads : plan.unit;
  plan.first = static_cast<std::uint32_t>(data.first);
  plan.guarded = guard_mask(data.guarded);
  plan.before = guard_mask(data.before);
  emit_plan(Code::kSplat, program_.splats, std::move(plan));
}

ElementPlan Flattener::element(ir::ValueId view_id, const std::vector<ir::Expr>& index,
                               ir::ValueId value, bool writes) {
  ElementPlan plan;
  plan.view = view(view_id);
  for (const ir::Expr& expr : index) plan.index.emplace_back(expr, facts_);
  plan.value = value.index;
  plan.writes = writes;
  return plan;
}

void Flattener::op(const ir::Read& data) {
  uniform_[result().index] = false;
  ElementPlan plan = element(data.view, data.index, result(), false);
  for (const ir::Expr& block : data.block) plan.block.emplace_back(block, facts_);
  if (!plan.block.empty()) {
    plan.cluster = cluster_;
    program_.reaches_blocks = true;
  }
  emit_plan(Code::kElement, program_.elements, std::move(plan));
}

void Flattener::op(const ir::Write& data) {
  if (!applied_.holders.empty()) return write_once(data);
  emit_plan(Code::kElement, program_.elements, element(data.view, data.index, data.value, true));
}

// In an apply: of lanes that hold the same element the first.
void Flattener::write_once(const ir::Write& data) {
  PlacePlan plan;
  plan.lanes = static_cast<std::uint32_t>(applied_.holders.size());
  plan.places = applied_.holders;
  program_.places.push_back(std::move(plan));
  const std::size_t inside = emit(Code::kInside, program_.places.size() - 1);
  emit_plan(Code::kElement, program_.elements, element(data.view, data.index, data.value, true));
  program_.code[inside].target = here();
  emit(Code::kEnd, 0);
}

void Flattener::op(const ir::Atomic& data) {
  uniform_[result().index] = false;
  AtomicPlan plan;
  plan.element = element(data.view, data.index, result(), true);
  plan.kind = data.kind;
  plan.value = data.value.index;
  if (data.compare.valid()) plan.compare = data.compare.index;
  const Buffer& buffer = *plan.element.view.buffer;
  plan.interned = tally_.intern(format("atomic.{}.{}.{}", target::info(data.kind).name,
                                       ir::name_of(buffer.space), buffer.size));
  emit_plan(Code::kAtomic, program_.atomics, std::move(plan));
}

}  // namespace kiln::sim
