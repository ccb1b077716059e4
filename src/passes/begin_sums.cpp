#include "passes/begin_sums.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "ir/registers.h"
#include "passes/for_each_launch.h"

namespace kiln::passes {

using ir::Expr;
using ir::Function;
using ir::Op;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

namespace {

bool is_scaled_into_another(const Function& function, ValueId frag) {
  return std::ranges::any_of(function.ops, [&](const Op& op) {
    const auto* scale = std::get_if<ir::Scale>(&op.data);
    return scale != nullptr && scale->partial == frag;
  });
}

// Sums that the instruction can begin anew.
bool can_begin(const Function& function, const ir::Fill& fill) {
  const auto* alloc = function.def_as<ir::Alloc>(fill.frag);
  const auto* zero = function.def_as<ir::Const>(fill.value);
  const ir::FragType& type = function.frag_type(fill.frag);
  return zero != nullptr && zero->value == 0 && type.role == ir::Role::kC && alloc != nullptr &&
         ir::can_begin_sums(alloc->atom, type.dtype);
}

bool names(const Op& op, ValueId frag) {
  bool found = false;
  ir::for_each_operand(op,
                       [&](std::string_view, ValueId value) { found = found || value == frag; });
  return found;
}

// Whether it, or what it runs, may do something with the tile, or not go on to the next operation. Text in CUDA may begin a
// branch or a loop.
bool intervenes(const Function& function, const Op& op, ValueId frag) {
  const bool is_text = op.kind() == ir::OpKind::kCuda;
  if (names(op, frag) || ir::leaves_early(op.kind()) || is_text) return true;
  return std::ranges::any_of(ir::regions_of(op), [&](RegionId region) {
    return std::ranges::any_of(function.regions[region].ops, [&](OpId inner) {
      return intervenes(function, function.ops[inner], frag);
    });
  });
}

// The product that comes before anything else is done with the tile, whatever happens.
std::optional<OpId> product_of(const Function& function, std::span<const OpId> ops, ValueId frag) {
  for (const OpId id : ops) {
    const Op& op = function.ops[id];
    const auto* product = std::get_if<ir::Mma>(&op.data);
    if (product != nullptr && product->c == frag && product->adds.is(1)) return id;
    if (intervenes(function, op, frag)) return std::nullopt;
  }
  return std::nullopt;
}

// The product that begins the sum behind a fill, and its `adds`.
struct First {
  OpId product;
  Expr adds;
  std::size_t place;  // of the operation that is the product, or the loop of it, behind the fill
};

std::optional<First> first_of(const Function& function, std::span<const OpId> ops, ValueId frag) {
  std::size_t place = 0;
  while (place < ops.size() && !intervenes(function, function.ops[ops[place]], frag)) ++place;
  if (place == ops.size()) return std::nullopt;
  if (const auto product = product_of(function, ops.subspan(place), frag)) {
    return First{*product, 0, place};
  }
  const Op& op = function.ops[ops[place]];
  const auto* loop = std::get_if<ir::For>(&op.data);
  if (loop == nullptr || names(op, frag)) return std::nullopt;
  const auto lower = loop->lower.constant();
  const auto upper = loop->upper.constant();
  if (!lower.has_value() || !upper.has_value() || *lower >= *upper) return std::nullopt;
  const auto product = product_of(function, function.regions[loop->body].ops, frag);
  if (!product.has_value()) return std::nullopt;
  return First{*product, Expr::var(loop->var) - loop->lower, place};
}

bool starts_products(const Function& function, const Op& op) {
  if (op.kind() == ir::OpKind::kMma) return true;
  return std::ranges::any_of(ir::regions_of(op), [&](RegionId region) {
    return std::ranges::any_of(function.regions[region].ops, [&](OpId inner) {
      return starts_products(function, function.ops[inner]);
    });
  });
}

// Whether products may be on their way behind these operations, of a region from its beginning on.
bool leaves_products(const Function& function, std::span<const OpId> ops) {
  for (std::size_t i = ops.size(); i-- > 0;) {
    const Op& op = function.ops[ops[i]];
    const auto* wait = std::get_if<ir::MmaWait>(&op.data);
    if (wait != nullptr && wait->pending == 0) return false;
    if (starts_products(function, op)) return true;
  }
  return false;
}

}  // namespace

Checked<bool> begin_sums(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](Function& function, OpId launch) {
    const auto look = [&](RegionId region) {
      const std::vector<OpId>& ops = function.regions[region].ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        auto* fill = std::get_if<ir::Fill>(&function.ops[ops[i]].data);
        if (fill == nullptr || fill->implied || !can_begin(function, *fill)) continue;
        const auto first = first_of(function, std::span(ops).subspan(i + 1), fill->frag);
        if (!first.has_value()) continue;
        if (!is_scaled_into_another(function, fill->frag) &&
            !leaves_products(function, std::span(ops).first(i + 1 + first->place))) {
          continue;
        }
        fill->implied = true;
        std::get<ir::Mma>(function.ops[first->product].data).adds = first->adds;
      }
    };
    const RegionId body = body_of(function, launch);
    look(body);
    ir::walk(function, body,
             [&](OpId id) { std::ranges::for_each(ir::regions_of(function.ops[id]), look); });
  });
  return true;
}

}  // namespace kiln::passes
