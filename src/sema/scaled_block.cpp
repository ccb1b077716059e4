#include "sema/scaled_block.h"

#include <algorithm>
#include <iterator>

namespace kiln::sema {

namespace {

using Ops = std::vector<ir::OpId>;

// Zeroes the registers of a sum.
void fill_zero(Sema& sema, ir::ValueId sum, Span span) {
  const ir::ScalarType type{sema.function.frag_type(sum).dtype};
  emit(sema, ir::Fill{sum, emit_value(sema, ir::Const{0}, span, type)}, span);
}

// Takes back from the innermost region what `make` emits.
template <class Make>
Ops emitted_by(Sema& sema, Make&& make) {
  const ir::RegionId region = sema.regions.back();
  const auto before = static_cast<std::ptrdiff_t>(sema.function.regions[region].ops.size());
  make();
  Ops& here = sema.function.regions[region].ops;
  Ops out(here.begin() + before, here.end());
  here.erase(here.begin() + before, here.end());
  return out;
}

// The last operation of the region so far. The one being filled inside of it counts.
ir::OpId last_of(const Sema& sema, ir::RegionId region) {
  const Ops& ops = sema.function.regions[region].ops;
  return ops.empty() ? ir::OpId{} : ops.back();
}

// Another block goes on in the block around it where a loop is written out, for that is so many
// statements of the block that the loop stands in.
bool goes_on_in(const OpenBlock& outer, const OpenBlock& block) {
  return block.in_copy && outer.region == block.region && outer.calls == block.calls;
}

// What the innermost block with products on the accumulator knows of it; null where there is none.
CollectedProducts* find_products(Sema& sema, ir::ValueId acc) {
  const auto is_product = [&](const PlacedOp& placed) {
    return sema.function.ops[placed.op].kind() == ir::OpKind::kMma;
  };
  for (std::size_t i = sema.blocks.size(); i-- > 0;) {
    OpenBlock& block = sema.blocks[i];
    if (block.region != sema.regions.back()) return nullptr;
    if (const auto found = block.products.find(acc); found != block.products.end()) {
      return std::ranges::any_of(found->second.since, is_product) ? &found->second : nullptr;
    }
    if (i == 0 || !goes_on_in(sema.blocks[i - 1], block)) return nullptr;
  }
  return nullptr;
}

void insert(Ops& ops, ir::OpId place, bool behind, const Ops& added) {
  auto at = std::ranges::find(ops, place);
  if (behind && at != ops.end()) ++at;
  ops.insert(at, added.begin(), added.end());
}

}  // namespace

void enter_block(Sema& sema) {
  sema.blocks.push_back({sema.regions.back(), sema.calls.size(), sema.in_copy, {}});
}

void leave_block(Sema& sema) {
  OpenBlock block = std::move(sema.blocks.back());
  sema.blocks.pop_back();
  if (sema.blocks.empty()) return;
  OpenBlock& outer = sema.blocks.back();
  for (auto& [acc, inner] : block.products) {
    if (inner.sum.valid()) continue;  // the block has scaled what it had
    CollectedProducts& all = outer.products[acc];
    if (all.since.empty()) {
      all.first = outer.region == block.region ? inner.first : last_of(sema, outer.region);
    }
    std::ranges::move(inner.since, std::back_inserter(all.since));
  }
}

void note_product(Sema& sema, ir::ValueId acc, ir::OpId op) {
  if (sema.blocks.empty()) return;
  OpenBlock& block = sema.blocks.back();
  CollectedProducts& all = block.products[acc];
  if (all.since.empty()) all.first = last_of(sema, block.region);
  all.since.push_back({op, sema.regions.back()});
}

std::optional<ir::ValueId> take_products(Sema& sema, ir::ValueId acc, Span span) {
  CollectedProducts* all = find_products(sema, acc);
  if (all == nullptr) return std::nullopt;
  const Ops opening = emitted_by(sema, [&] {
    if (all->sum.valid()) return fill_zero(sema, all->sum, span);
    all->sum = open_partial(sema, acc, span);
  });
  insert(sema.function.regions[sema.regions.back()].ops, all->first, false, opening);
  for (const auto& [op, region] : all->since) {
    if (auto* product = std::get_if<ir::Mma>(&sema.function.ops[op].data)) {
      product->c = all->sum;
      continue;
    }
    if (op == all->first) continue;  // a fill in front of all products
    const Ops again = emitted_by(sema, [&] { fill_zero(sema, all->sum, span); });
    insert(sema.function.regions[region].ops, op, true, again);
  }
  all->since.clear();
  return all->sum;
}

ir::ValueId open_partial(Sema& sema, ir::ValueId acc, Span span) {
  const Tile of = sema.tiles.at(acc);
  const ir::FragType type = sema.function.frag_type(acc);
  const std::string name = format("{}_part", sema.function.values[acc].name);
  const ir::ValueId id = emit_value(sema, ir::Alloc{.name = name}, span, type, name);
  Tile tile;
  tile.name = of.name;
  tile.span = of.span;
  tile.before = of.before;
  tile.parallel = sema.place.unit.parallel;
  if (sema.place.unit.level != ir::Level::kBlock) tile.unit = sema.place.unit.level;
  tile.is_accumulator = true;
  tile.stored = true;  // it is added to the accumulator
  tile.dtype = type.dtype;
  tile.first_use = of.first_use;
  fill_zero(sema, id, span);
  sema.tiles.emplace(id, std::move(tile));
  return id;
}

}  // namespace kiln::sema
