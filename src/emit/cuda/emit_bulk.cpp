// Bulk copies: boxes that the hardware moves, each started by one instruction of one thread.
#include <algorithm>

#include "emit/cuda/emit_op.h"

namespace kiln::emit {

using ir::Expr;
using ir::Op;
using ir::ViewType;

namespace {

// A bulk copy, followed to its buffers.
struct BulkSides {
  bool loads = true;
  ir::ResolvedView global;
  ir::ResolvedView shared;
  std::vector<std::int64_t> counts;  // boxes by dimension of the tile
  std::int64_t boxes = 1;
  std::int64_t bytes = 0;  // of all boxes
};

BulkSides bulk_sides(const ir::Function& function, const ir::Copy& copy) {
  KILN_CHECK(copy.permutation.empty(), "a bulk copy that exchanges dimensions");
  BulkSides sides;
  sides.loads = function.view_type(copy.dst).space != ir::Space::kGlobal;
  sides.global = ir::resolve_view(function, sides.loads ? copy.src : copy.dst);
  sides.shared = ir::resolve_view(function, sides.loads ? copy.dst : copy.src);
  const ViewType& tile = function.view_type(sides.loads ? copy.dst : copy.src);
  KILN_CHECK(copy.box.size() == tile.shape.size(), "a box of {} dimensions for a tile of {}",
             copy.box.size(), tile.shape.size());
  sides.bytes = info(tile.dtype).bits / 8;
  for (std::size_t d = 0; d < copy.box.size(); ++d) {
    const std::int64_t extent = tile.shape[d].constant().value_or(0);
    KILN_CHECK(extent > 0 && extent % copy.box[d] == 0, "boxes of {} in {} elements", copy.box[d],
               extent);
    sides.counts.push_back(extent / copy.box[d]);
    sides.boxes *= extent / copy.box[d];
    sides.bytes *= extent;
  }
  return sides;
}

// How many boxes come before box number `box` along each dimension.
std::vector<Expr> boxes_before(const BulkSides& sides, const Expr& box) {
  std::vector<Expr> before(sides.counts.size(), Expr(0));
  Expr rest = box;
  std::int64_t further = sides.boxes;  // along the dimensions not yet seen
  for (std::size_t d = sides.counts.size(); d-- > 0;) {
    const std::int64_t count = sides.counts[d];
    if (count == 1) continue;
    further /= count;
    before[d] = further == 1 ? rest : mod(rest, Expr(count));
    rest = floor_div(rest, Expr(count));
  }
  return before;
}

// The first element of box number `box`, in a side's buffer.
std::vector<Expr> box_place(const BulkSides& sides, const ir::ResolvedView& side,
                            const ir::Copy& copy, const Expr& box) {
  const std::vector<Expr> before = boxes_before(sides, box);
  std::vector<Expr> place = side.origin;
  for (std::size_t d = 0; d < before.size(); ++d) {
    place[side.dropped + d] = place[side.dropped + d] + before[d] * Expr(copy.box[d]);
  }
  return place;
}

std::string shared_text(Kernel& kernel, const BulkSides& sides, const ir::Copy& copy,
                        const Expr& box) {
  const std::vector<Expr> place = box_place(sides, sides.shared, copy, box);
  const ViewType& root = kernel.function.view_type(sides.shared.root);
  const std::vector<Expr> extents(root.shape.begin(), root.shape.end() - 1);
  const std::vector<Expr> leading(place.begin(), place.end() - 1);
  return format("kiln::box({}, {}, {})", kernel.name(sides.shared.root),
                kernel.text(flat_index(extents, leading)), kernel.text(place.back()));
}

// The hardware wants the innermost dimension first.
std::string coordinates_text(Kernel& kernel, const BulkSides& sides, const ir::Copy& copy,
                             const Expr& box) {
  const std::vector<Expr> in_view = box_place(sides, sides.global, copy, box);
  std::vector<Expr> place = in_view;
  const std::vector<std::size_t> order = ir::tensor_map_of(kernel.function, copy).order;
  for (std::size_t j = 0; j < order.size(); ++j) place[j] = in_view[order[j]];
  std::ranges::reverse(place);
  return kernel.braced(place);
}

const std::string& map_name(const Kernel& kernel, const ir::Copy& copy) {
  const ir::TensorMap map = ir::in_buffer_order(ir::tensor_map_of(kernel.function, copy));
  for (const ParamSlot& slot : kernel.plan.slots) {
    if (slot.kind == SlotKind::kMap && kernel.plan.maps[slot.map].map == map) return slot.name;
  }
  KILN_UNREACHABLE("a bulk copy without a tensor map");
}

const char* eviction_text(ir::Eviction eviction) {
  switch (eviction) {
    case ir::Eviction::kNormal: break;
    case ir::Eviction::kFirst: return "kiln::Eviction::kFirst";
    case ir::Eviction::kLast: return "kiln::Eviction::kLast";
  }
  return "";
}

std::string event_text(Kernel& kernel, const ir::Copy& copy) {
  if (copy.slot.is(0)) return kernel.name(copy.event);
  return format("{} + {}", kernel.name(copy.event),
                bracketed(kernel.spelled(copy.slot), Binding::kSum));
}

// Starts box number `box`.
void emit_box(Kernel& kernel, const BulkSides& sides, const ir::Copy& copy, const Expr& box) {
  const std::string shared = shared_text(kernel, sides, copy, box);
  const std::string at = coordinates_text(kernel, sides, copy, box);
  const std::string hint = eviction_text(copy.eviction);
  const std::string only_hint = hint.empty() ? "" : format("<{}>", hint);
  if (!sides.loads) {
    return kernel.out.call(format("kiln::bulk_{}{}", copy.adds ? "add" : "store", only_hint),
                           {map_name(kernel, copy), at, shared});
  }
  std::string function = format("kiln::bulk_load{}", only_hint);
  if (copy.multicast) {
    function = format("kiln::bulk_load_multicast<{}{}{}>", kernel.plan.cluster_blocks(),
                      hint.empty() ? "" : ", ", hint);
  }
  kernel.out.call(function, {shared, map_name(kernel, copy), event_text(kernel, copy), at});
}

// `first`, and every `step` boxes after it.
void emit_box_loop(Kernel& kernel, const BulkSides& sides, const ir::Copy& copy, const Expr& first,
                   std::int64_t step) {
  const std::string& i = kernel.name(kernel.counter);
  kernel.out.open(format("for (int {} = {}; {} < {}; {}) {{", i, kernel.text(first), i, sides.boxes,
                         step == 1 ? "++" + i : format("{} += {}", i, step)));
  emit_box(kernel, sides, copy, Expr::var(kernel.counter));
  kernel.out.close();
}

// Every block of the cluster sends its share to all of them.
void emit_shared_boxes(Kernel& kernel, const BulkSides& sides, const ir::Copy& copy) {
  const std::int64_t blocks = kernel.plan.cluster_blocks();
  const Expr rank = kernel.use_rank();
  if (sides.boxes > blocks) return emit_box_loop(kernel, sides, copy, rank, blocks);
  const bool some = sides.boxes < blocks;
  if (some) kernel.out.open(format("if ({} < {}) {{", kernel.text(rank), sides.boxes));
  emit_box(kernel, sides, copy, sides.boxes == 1 ? Expr(0) : rank);
  if (some) kernel.out.close();
}

constexpr std::int64_t kWrittenOut = 8;

void emit_boxes(Kernel& kernel, const BulkSides& sides, const ir::Copy& copy) {
  if (copy.announces) {
    kernel.out.line(
        format("kiln::mbarrier_expect({}, {});", event_text(kernel, copy), sides.bytes));
  }
  if (copy.multicast && kernel.plan.cluster_blocks() > 1) {
    emit_shared_boxes(kernel, sides, copy);
  } else if (sides.boxes <= kWrittenOut) {
    for (std::int64_t box = 0; box < sides.boxes; ++box) emit_box(kernel, sides, copy, Expr(box));
  } else {
    emit_box_loop(kernel, sides, copy, Expr(0), 1);
  }
  if (!sides.loads) kernel.out.line("kiln::bulk_commit();");
}

}  // namespace

void emit_bulk_copy(Kernel& kernel, const ir::Copy& copy) {
  kernel.requirements.headers.insert("tma.cuh");
  const BulkSides sides = bulk_sides(kernel.function, copy);
  const std::string condition = elected(kernel, copy.unit);
  if (condition.empty()) return emit_boxes(kernel, sides, copy);
  kernel.out.open(format("if ({}) {{", condition));
  emit_boxes(kernel, sides, copy);
  kernel.out.close();
}

// Threads that started nothing do not wait.
void emit_op(Kernel& kernel, const Op&, const ir::BulkWait& wait) {
  kernel.requirements.headers.insert("tma.cuh");
  kernel.out.line(format("kiln::bulk_wait{}<{}>();", wait.landed ? "" : "_read", wait.pending));
}

}  // namespace kiln::emit
