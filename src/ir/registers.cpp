#include "ir/registers.h"

#include <algorithm>
#include <bit>

#include "ir/effects.h"

namespace kiln::ir {

namespace {

target::Operand operand_of(Role role) {
  switch (role) {
    case Role::kA: return target::Operand::kA;
    case Role::kB: return target::Operand::kB;
    case Role::kC: return target::Operand::kC;
    case Role::kMetadata:
    case Role::kTile: break;
  }
  KILN_UNREACHABLE("no operand of its own registers");
}

// Whether the program wrote an operand with its contraction running down its rows.
bool is_transposed(const Function& function, ValueId frag) {
  for (const Op& op : function.ops) {
    const auto* mma = std::get_if<Mma>(&op.data);
    if (mma == nullptr) continue;
    if (mma->a == frag && mma->a_major == Major::kCol) return true;
    if (mma->b == frag && mma->b_major == Major::kCol) return true;
  }
  return false;
}

}  // namespace

TileRegisters tile_registers(const Function& function, ValueId frag) {
  const auto* alloc = function.def_as<Alloc>(frag);
  const FragType& type = function.frag_type(frag);
  const auto rows = static_cast<int>(type.rows);
  const auto cols = static_cast<int>(type.cols);
  KILN_CHECK(alloc != nullptr && (alloc->atom != nullptr || alloc->registers.valid()),
             "fragment `{}` has no registers", function.values[frag].name);
  if (alloc->registers.valid()) {
    const auto dealt = [&](std::size_t dimension, int own) {
      return alloc->padded.empty() ? own : static_cast<int>(alloc->padded[dimension]);
    };
    return {target::fragment_of(alloc->registers, dealt(0, rows), dealt(1, cols), {rows, cols})};
  }
  const bool swapped = is_transposed(function, frag);
  return {target::fragment_layout(*alloc->atom, operand_of(type.role), swapped ? cols : rows,
                                  swapped ? rows : cols),
          swapped};
}

namespace {

// How many lanes hold each element of the operand.
std::int64_t holders(const target::Mma& atom, Role role) {
  if (role == Role::kMetadata || role == Role::kTile) return 1;
  const target::Operand operand = operand_of(role);
  if (!target::has_map(atom, operand)) return 1;
  const target::TileExtents tile = target::extents(atom, operand);
  return size(target::map_of(atom, operand)) / (std::int64_t{tile.rows} * tile.cols);
}

}  // namespace

std::vector<int> exchanges_of(const Function& function, const Reduce& reduce) {
  const auto dimension = static_cast<int>(reduce.dimension);
  std::vector<int> out = lanes_along(tile_registers(function, reduce.source).map, dimension);
  const auto apart = lanes_along(tile_registers(function, reduce.frag).map, dimension);
  std::erase_if(out, [&](int lanes) { return std::ranges::find(apart, lanes) != apart.end(); });
  return out;
}

Share share_of(const Function& function, ValueId frag) {
  const auto* alloc = function.def_as<Alloc>(frag);
  if (alloc == nullptr) return {};
  if (alloc->registers.valid()) {
    return {size(mode(alloc->registers, 0)), size(mode(alloc->registers, 1))};
  }
  if (alloc->atom == nullptr) return {};
  const FragType& type = function.frag_type(frag);
  const std::int64_t held = type.rows * type.cols * holders(*alloc->atom, type.role);
  return {alloc->atom->lanes, (held + alloc->atom->lanes - 1) / alloc->atom->lanes};
}

namespace {

// What the operation, or what stands inside it, does beyond the edge of a tile.
Beyond beyond(const Function& function, const Op& op, ValueId tile) {
  Beyond out = Beyond::kRefuses;
  const auto look = [&](const Op& at) {
    for_each_touch(at, [&](const Touch& touch) {
      if (touch.value == tile) out = touch.beyond;
    });
  };
  look(op);
  for (const RegionId inner : regions_of(op)) {
    walk(function, inner, [&](OpId id) { look(function.ops[id]); });
  }
  return out;
}

}  // namespace

std::optional<target::Element> minded_edge(const Function& function, const Op& op, ValueId tile) {
  const Alloc* alloc = function.def_as<Alloc>(tile);
  if (alloc == nullptr || alloc->padded.empty()) return std::nullopt;
  if (beyond(function, op, tile) == Beyond::kCarries) return std::nullopt;
  const FragType& type = function.frag_type(tile);
  return target::Element{static_cast<int>(type.rows), static_cast<int>(type.cols)};
}

namespace {

// Whether it computes from what is in the thread's registers, and would trap on no value of it.
bool only_computes(const Function& function, const Op& op) {
  const auto* binary = std::get_if<Binary>(&op.data);
  if (binary != nullptr && (binary->kind == BinaryKind::kDiv || binary->kind == BinaryKind::kRem)) {
    const auto* type = std::get_if<ScalarType>(&function.type(op.result));
    return type != nullptr && is_float(type->dtype);
  }
  return is_pure(op.kind()) || op.kind() == OpKind::kIf || op.kind() == OpKind::kGet ||
         op.kind() == OpKind::kElement || op.kind() == OpKind::kSetElement;
}

}  // namespace

namespace {

// A vote counts all that registers hold.
bool is_voted_about(const Function& function, ValueId tile) {
  return std::ranges::any_of(function.ops, [&](const Op& op) {
    const auto* vote = std::get_if<Vote>(&op.data);
    return vote != nullptr && vote->frag == tile;
  });
}

}  // namespace

bool goes_beyond_unseen(const Function& function, const Apply& apply) {
  const FragType& whole = function.frag_type(apply.frag);
  const Alloc* alloc = function.def_as<Alloc>(apply.frag);
  bool unseen = alloc == nullptr || alloc->padded.empty() || !is_voted_about(function, apply.frag);
  walk(function, apply.body, [&](OpId id) {
    const Op& op = function.ops[id];
    unseen = unseen && only_computes(function, op);
    const auto* set = std::get_if<SetElement>(&op.data);
    if (set == nullptr) return;
    // A row's one element is no padding where the row's other elements are.
    const FragType& type = function.frag_type(set->frag);
    unseen = unseen && type.rows == whole.rows && type.cols == whole.cols;
  });
  return unseen;
}

namespace {

// Whether packed instructions compute it for two numbers of a type of 16 bits.
bool is_packed(const Function& function, const Op& op, DType dtype) {
  if (const auto* set = std::get_if<SetElement>(&op.data)) {
    return function.frag_type(set->frag).dtype == dtype;
  }
  const auto* type =
      op.result.valid() ? std::get_if<ScalarType>(&function.type(op.result)) : nullptr;
  if (type == nullptr || type->dtype != dtype) return false;
  if (const auto* unary = std::get_if<Unary>(&op.data)) return unary->kind == UnaryKind::kNegate;
  if (const auto* binary = std::get_if<Binary>(&op.data)) {
    return binary->kind == BinaryKind::kAdd || binary->kind == BinaryKind::kSub ||
           binary->kind == BinaryKind::kMul;
  }
  return op.kind() == OpKind::kConst || op.kind() == OpKind::kElement || op.kind() == OpKind::kFma;
}

// The same of all that the body does, if it does anything.
bool is_packed(const Function& function, const Apply& apply, DType dtype) {
  const std::vector<OpId>& ops = function.regions[apply.body].ops;
  return std::ranges::all_of(
             ops, [&](OpId id) { return is_packed(function, function.ops[id], dtype); }) &&
         std::ranges::any_of(ops, [&](OpId id) {
           const OpKind kind = function.ops[id].kind();
           return is_pure(kind) && kind != OpKind::kConst;
         });
}

// Whether it rounds the elements of a tile of f32, and that is all.
bool only_rounds(const Function& function, const Apply& apply) {
  const std::vector<OpId>& ops = function.regions[apply.body].ops;
  if (ops.size() != 3) return false;
  const auto* element = std::get_if<Element>(&function.ops[ops[0]].data);
  const auto* cast = std::get_if<Cast>(&function.ops[ops[1]].data);
  const auto* set = std::get_if<SetElement>(&function.ops[ops[2]].data);
  return element != nullptr && cast != nullptr && set != nullptr &&
         function.frag_type(element->frag).dtype == DType::kF32 &&
         cast->operand == function.ops[ops[0]].result && set->frag == apply.frag &&
         set->value == function.ops[ops[1]].result;
}

// Whether values 2 i and 2 i + 1 of one tile are such a pair of the other as well, or (`alone`) one value.
bool stands_in_pairs(const std::vector<int>& table, bool alone) {
  for (std::size_t v = 0; v + 1 < table.size(); v += 2) {
    const bool same = alone && table[v] == table[v + 1];
    if (!same && (table[v] % 2 != 0 || table[v + 1] != table[v] + 1)) return false;
  }
  return !table.empty();
}

}  // namespace

bool can_begin_sums(const target::Mma* atom, DType sum) {
  constexpr int kRegisterBits = 32;
  return atom != nullptr && atom->asynchronous && info(sum).bits == kRegisterBits;
}

bool goes_in_pairs(const Function& function, const Apply& apply) {
  const DType dtype = function.frag_type(apply.frag).dtype;
  const bool computes = dtype == DType::kF16 || dtype == DType::kBF16;
  if (!computes && dtype != DType::kE4M3 && dtype != DType::kE5M2) return false;
  if (!goes_beyond_unseen(function, apply)) return false;
  if (!(computes && is_packed(function, apply, dtype)) && !only_rounds(function, apply))
    return false;
  const target::Fragment map = tile_registers(function, apply.frag).map;
  if (mode(map.tv, 1).extents[0] % 2 != 0) return false;
  return std::ranges::all_of(tiles_in(function, apply), [&](ValueId tile) {
    const bool is_set = std::ranges::any_of(function.regions[apply.body].ops, [&](OpId id) {
      const auto* set = std::get_if<SetElement>(&function.ops[id].data);
      return set != nullptr && set->frag == tile;
    });
    return stands_in_pairs(target::values_beside(tile_registers(function, tile).map, map), !is_set);
  });
}

ValueId factors_of(const Function& function, const Apply& apply) {
  const std::vector<OpId>& ops = function.regions[apply.body].ops;
  if (ops.size() != 4) return {};
  const auto* first = std::get_if<Element>(&function.ops[ops[0]].data);
  const auto* second = std::get_if<Element>(&function.ops[ops[1]].data);
  const auto* product = std::get_if<Binary>(&function.ops[ops[2]].data);
  const auto* set = std::get_if<SetElement>(&function.ops[ops[3]].data);
  if (first == nullptr || second == nullptr || product == nullptr || set == nullptr) return {};
  if (product->kind != BinaryKind::kMul || set->value != function.ops[ops[2]].result) return {};
  const ValueId elements[] = {function.ops[ops[0]].result, function.ops[ops[1]].result};
  const bool joins = (product->left == elements[0] && product->right == elements[1]) ||
                     (product->left == elements[1] && product->right == elements[0]);
  if (!joins || set->frag != apply.frag) return {};
  if (first->frag == apply.frag && second->frag != apply.frag) return second->frag;
  if (second->frag == apply.frag && first->frag != apply.frag) return first->frag;
  return {};
}

std::optional<target::FragmentColumns> stored_registers(const Function& function,
                                                        const Store& store) {
  return target::columns_of(tile_registers(function, store.frag).map,
                            static_cast<int>(store.first_column),
                            static_cast<int>(stored_columns(function, store)));
}

std::vector<int> moved_values(const TileRegisters& from, const TileRegisters& to) {
  if (from.lanes() != to.lanes()) return {};
  std::vector<int> out;
  for (int value = 0; value < to.values(); ++value) {
    int found = 0;
    while (found < from.values() && !(from(0, found) == to(0, value))) ++found;
    if (found == from.values()) return {};
    for (int lane = 1; lane < to.lanes(); ++lane) {
      if (!(from(lane, found) == to(lane, value))) return {};
    }
    out.push_back(found);
  }
  return out;
}

namespace {

constexpr int kQuad = 4;
constexpr int kEach = 4;  // elements of 8 bits of a register
constexpr int kHalf = kEach / 2;
constexpr int kPair = 2;  // elements of 16 bits of a register

// The register of so many elements that begins in lane 0 with that one; -1: there is none.
int register_of(const TileRegisters& registers, const TilePlace& first, int each) {
  for (int found = 0; found < registers.values() / each; ++found) {
    if (registers(0, found * each) == first) return found;
  }
  return -1;
}

// The moves by what lanes of the first quad begin their runs with; empty where one begins otherwise.
QuadMoves moves_of(const TileRegisters& from, const TileRegisters& to, bool whole) {
  QuadMoves out{.whole = whole, .registers = {}};
  const int run = whole ? kQuad * kPair : 2 * kEach;
  const std::vector<int> receivers = whole ? std::vector{0, 1, 2, 3} : std::vector{0, 2};
  for (int first = 0; first < to.values(); first += run) {
    for (const int lane : receivers) {
      const int source = register_of(from, to(lane, first), whole ? kPair : kEach);
      if (source < 0) return {};
      out.registers.push_back(source);
    }
  }
  return out;
}

}  // namespace

QuadMoves::Source QuadMoves::source_of(int lane, int value) const {
  const int in_quad = lane % kQuad;
  if (whole) {
    const int of = value / kPair;  // register of `to`
    const int source = registers[static_cast<std::size_t>(of / kQuad * kQuad + in_quad)];
    return {lane - in_quad + of % kQuad, source * kPair + value % kPair};
  }
  const int byte = value % kEach;
  const int pair = value / kEach / 2;
  const int half = value / kEach % 2;
  const int source = registers[static_cast<std::size_t>(2 * pair + in_quad / 2)];
  return {lane - in_quad + 2 * (in_quad % 2) + byte / kHalf,
          source * kEach + kHalf * half + byte % kHalf};
}

QuadMoves quad_moves(const Function& function, const Convert& convert) {
  const DType dtype = function.frag_type(convert.source).dtype;
  constexpr int kByte = 8;
  const int bits = info(dtype).bits;
  if ((bits != kByte && bits != 2 * kByte) || function.frag_type(convert.frag).dtype != dtype) {
    return {};
  }
  const TileRegisters from = tile_registers(function, convert.source);
  const TileRegisters to = tile_registers(function, convert.frag);
  if (from.lanes() != to.lanes() || from.values() != to.values()) return {};
  if (to.lanes() % kQuad != 0 || to.values() % (2 * kEach) != 0) return {};
  const QuadMoves out = moves_of(from, to, bits != kByte);
  for (int lane = 0; lane < to.lanes() && !out.registers.empty(); ++lane) {
    for (int value = 0; value < to.values(); ++value) {
      const QuadMoves::Source source = out.source_of(lane, value);
      if (!(from(source.lane, source.value) == to(lane, value))) return {};
    }
  }
  return out;
}

bool needs_no_memory(const Function& function, const Convert& convert) {
  const bool in_lanes = !moved_values(tile_registers(function, convert.source),
                                      tile_registers(function, convert.frag))
                             .empty();
  return in_lanes || !quad_moves(function, convert).registers.empty();
}

RecastSides sides_of(const Function& function, const Recast& recast) {
  const int to = info(function.frag_type(recast.frag).dtype).bits;
  const int from = info(function.frag_type(recast.source).dtype).bits;
  if (from >= to) return {recast.source, recast.frag, from / to};
  return {recast.frag, recast.source, to / from};
}

std::vector<ValuePart> parts_of_values(const TileRegisters& wide, const TileRegisters& narrow,
                                       int count) {
  if (wide.lanes() != narrow.lanes()) return {};
  const auto has = [&](int lane, int value, int part, int wanted) {
    const TilePlace at = wide(lane, value);
    return TilePlace{at.row, at.col * count + part} == narrow(lane, wanted);
  };
  std::vector<ValuePart> out;
  for (int value = 0; value < narrow.values(); ++value) {
    const int part = narrow(0, value).col % count;
    int found = 0;
    while (found < wide.values() && !has(0, found, part, value)) ++found;
    if (found == wide.values()) return {};
    for (int lane = 1; lane < narrow.lanes(); ++lane) {
      if (!has(lane, found, part, value)) return {};
    }
    out.push_back({found, part});
  }
  return out;
}

bool lie_by_bits(std::span<const std::int64_t> pairs) {
  const std::size_t count = pairs.size() / 2;
  if (!std::has_single_bit(count) || pairs.size() % 2 != 0) return false;
  for (std::size_t m = 1; m < count; ++m) {
    const std::size_t bit = std::bit_floor(m);
    for (std::size_t side = 0; side < 2; ++side) {
      const std::int64_t step = pairs[2 * bit + side] - pairs[side];
      if (pairs[2 * m + side] - pairs[2 * (m - bit) + side] != step) return false;
    }
  }
  return true;
}

}  // namespace kiln::ir
