#include "emit/cuda/first_products.h"

#include <algorithm>
#include <optional>
#include <span>

#include "ir/effects.h"
#include "ir/reflect.h"
#include "target/mma.h"

namespace kiln::emit {

using ir::Function;
using ir::Op;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

namespace {

constexpr int kRegisterBits = 32;

bool is_scaled_into_another(const Function& function, ValueId frag) {
  return std::ranges::any_of(function.ops, [&](const Op& op) {
    const auto* scale = std::get_if<ir::Scale>(&op.data);
    return scale != nullptr && scale->partial == frag;
  });
}

// Sums that the instruction can begin anew.
bool begins_anew(const Function& function, const ir::Fill& fill) {
  const auto* alloc = function.def_as<ir::Alloc>(fill.frag);
  const auto* zero = function.def_as<ir::Const>(fill.value);
  const ir::FragType& type = function.frag_type(fill.frag);
  return zero != nullptr && zero->value == 0 && type.role == ir::Role::kC &&
         info(type.dtype).bits == kRegisterBits && alloc->atom != nullptr &&
         alloc->atom->asynchronous && is_scaled_into_another(function, fill.frag);
}

bool names(const Op& op, ValueId frag) {
  bool found = false;
  ir::for_each_operand(op,
                       [&](std::string_view, ValueId value) { found = found || value == frag; });
  return found;
}

// The product that comes before anything else is done with the tile, whatever happens.
const Op* product_of(const Function& function, std::span<const OpId> ops, ValueId frag) {
  for (const OpId id : ops) {
    const Op& op = function.ops[id];
    if (const auto* product = std::get_if<ir::Mma>(&op.data)) {
      if (product->c == frag) return &op;
    }
    if (names(op, frag) || !ir::regions_of(op).empty() || ir::leaves_early(op.kind()))
      return nullptr;
  }
  return nullptr;
}

struct Found {
  const Op* product;
  FirstProducts::First first;
};

std::optional<Found> first_of(const Function& function, std::span<const OpId> ops, ValueId frag) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = function.ops[ops[i]];
    const auto* loop = std::get_if<ir::For>(&op.data);
    if (loop == nullptr) {
      if (names(op, frag) || !ir::regions_of(op).empty() || ir::leaves_early(op.kind())) break;
      continue;
    }
    const auto lower = loop->lower.constant();
    const auto upper = loop->upper.constant();
    if (!lower.has_value() || !upper.has_value() || *lower >= *upper) break;
    const Op* product = product_of(function, function.regions[loop->body].ops, frag);
    if (product == nullptr) break;
    return Found{product, {.var = loop->var, .lower = *lower}};
  }
  if (const Op* product = product_of(function, ops, frag)) return Found{product, {}};
  return std::nullopt;
}

}  // namespace

FirstProducts first_products(const Function& function, OpId launch) {
  FirstProducts out;
  const auto look = [&](RegionId region) {
    const std::vector<OpId>& ops = function.regions[region].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = function.ops[ops[i]];
      const auto* fill = std::get_if<ir::Fill>(&op.data);
      if (fill == nullptr || !begins_anew(function, *fill)) continue;
      const auto found = first_of(function, std::span(ops).subspan(i + 1), fill->frag);
      if (!found.has_value()) continue;
      out.fills.insert(&op);
      out.products.emplace(found->product, found->first);
    }
  };
  const RegionId body = std::get<ir::Parallel>(function.ops[launch].data).body;
  look(body);
  ir::walk(function, body,
           [&](OpId id) { std::ranges::for_each(ir::regions_of(function.ops[id]), look); });
  return out;
}

}  // namespace kiln::emit
