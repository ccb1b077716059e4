#include "passes/skip_masks.h"

#include <algorithm>
#include <cstdint>

#include "passes/for_each_launch.h"
#include "passes/number_range.h"
#include "passes/op_maker.h"

namespace kiln::passes {

namespace {

using ir::BinaryKind;
using ir::Expr;
using ir::OpId;
using ir::ValueId;

const ir::ScalarType kTruth{DType::kBool};
const ir::ScalarType kWide{DType::kS64};

// What a mask does: an element stays where `condition` is `keeps`.
struct Mask {
  ValueId condition;
  bool keeps = true;
};

std::optional<Mask> mask_of(const ir::Function& function, const ir::Apply& apply) {
  const auto& ops = function.regions[apply.body].ops;
  if (ops.empty()) return std::nullopt;
  const auto* set = std::get_if<ir::SetElement>(&function.ops[ops.back()].data);
  if (set == nullptr || set->frag != apply.frag) return std::nullopt;
  const auto* choice = function.def_as<ir::Choose>(set->value);
  if (choice == nullptr) return std::nullopt;
  const auto stays = [&](ValueId value) {
    const auto* element = function.def_as<ir::Element>(value);
    return element != nullptr && element->frag == apply.frag;
  };
  const bool is_pure = std::ranges::all_of(ops, [&](OpId id) {
    const ir::OpKind kind = function.ops[id].kind();
    return kind == ir::OpKind::kIndex || kind == ir::OpKind::kConst ||
           kind == ir::OpKind::kBinary || kind == ir::OpKind::kUnary ||
           kind == ir::OpKind::kElement || kind == ir::OpKind::kChoose || id == ops.back();
  });
  if (!is_pure) return std::nullopt;
  if (stays(choice->if_true)) return Mask{choice->condition, true};
  if (stays(choice->if_false)) return Mask{choice->condition, false};
  return std::nullopt;
}

// The least and the largest value of a number over the tile, exact.
struct Corners {
  Expr least;
  Expr largest;
};

// Asks, in front of a mask, whether it changes something.
class Question : private OpMaker {
 public:
  Question(ir::Function& function, OpId mask)
      : OpMaker(function, function.ops[mask].span),
        apply_(std::get<ir::Apply>(function.ops[mask].data)),
        tile_(std::get<ir::FragType>(function.type(apply_.frag))) {}

  // The operations, the last of which is the mask under a condition; none where that cannot be asked.
  std::vector<OpId> around(OpId mask) {
    const auto found = mask_of(function_, apply_);
    if (!found) return {};
    const ValueId changes = anywhere(found->condition, !found->keeps);
    if (!changes.valid() || !asks_of_places_) return {};
    const ir::RegionId body = function_.regions.push({{mask}});
    emit(ir::If{changes, body, {}});
    return std::move(out_);
  }

 private:
  // Whether the condition has this value at one of the tile's elements, or may have; none where it is something else.
  ValueId anywhere(ValueId condition, bool wanted) {
    if (const auto* unary = function_.def_as<ir::Unary>(condition)) {
      return unary->kind == ir::UnaryKind::kNot ? anywhere(unary->operand, !wanted) : ValueId{};
    }
    const auto* found = function_.def_as<ir::Binary>(condition);
    if (found == nullptr) return {};
    const ir::Binary binary = *found;
    if (binary.kind != BinaryKind::kLogicalAnd && binary.kind != BinaryKind::kLogicalOr) {
      return comparison(binary, wanted);
    }
    const ValueId left = anywhere(binary.left, wanted);
    const ValueId right = left.valid() ? anywhere(binary.right, wanted) : ValueId{};
    if (!right.valid()) return {};
    const bool both = (binary.kind == BinaryKind::kLogicalAnd) == wanted;
    const BinaryKind join = both ? BinaryKind::kLogicalAnd : BinaryKind::kLogicalOr;
    return emit_value(ir::Binary{join, left, right}, kTruth);
  }

  // A comparison holds somewhere if it does between the least left side and the largest right one, or the other way
  // round.
  ValueId comparison(const ir::Binary& binary, bool wanted) {
    const auto kind = wanted ? std::optional(binary.kind) : opposite(binary.kind);
    if (!kind) return {};
    const bool wants_less = *kind == BinaryKind::kLt || *kind == BinaryKind::kLe;
    if (!wants_less && *kind != BinaryKind::kGt && *kind != BinaryKind::kGe) return {};
    const auto left = corners(binary.left);
    const auto right = corners(binary.right);
    if (!left || !right) return {};
    const Expr& one = wants_less ? left->least : left->largest;
    const Expr& other = wants_less ? right->largest : right->least;
    const DType dtype = std::get<ir::ScalarType>(function_.type(binary.left)).dtype;
    const bool fits = stays_in(dtype, left->least) && stays_in(dtype, left->largest) &&
                      stays_in(dtype, right->least) && stays_in(dtype, right->largest);
    if (!fits) return dtype == DType::kS32 ? far_comparison(*kind, *left, *right) : ValueId{};
    const ValueId first = emit_value(ir::Index{one}, function_.type(binary.left));
    const ValueId second = emit_value(ir::Index{other}, function_.type(binary.right));
    return emit_value(ir::Binary{*kind, first, second}, kTruth);
  }

  // A number of 32 bits that may pass their ends begins again at the other one, and then corners tell nothing. So they are
  // compared in 64 bits, and a tile with such a number is one that may change.
  ValueId far_comparison(BinaryKind kind, const Corners& left, const Corners& right) {
    const bool wants_less = kind == BinaryKind::kLt || kind == BinaryKind::kLe;
    const ValueId one = wide(wants_less ? left.least : left.largest);
    const ValueId other = wide(wants_less ? right.largest : right.least);
    if (!one.valid() || !other.valid()) return {};
    ValueId out = emit_value(ir::Binary{kind, one, other}, kTruth);
    for (const Corners* side : {&left, &right}) {
      out = or_passes(out, side->least, BinaryKind::kLt, INT32_MIN);
      if (out.valid()) out = or_passes(out, side->largest, BinaryKind::kGt, INT32_MAX);
      if (!out.valid()) return {};
    }
    return out;
  }

  // `so_far`, or whether the number passes the end.
  ValueId or_passes(ValueId so_far, const Expr& number, BinaryKind how, std::int64_t end) {
    const auto range = number_range(function_, number);
    if (!range) return {};
    const bool may_pass = how == BinaryKind::kLt ? range->least < end : range->largest > end;
    if (!may_pass) return so_far;
    const ValueId value = wide(number);
    if (!value.valid()) return {};
    const ValueId limit = emit_value(ir::Const{static_cast<double>(end)}, kWide);
    const ValueId passes = emit_value(ir::Binary{how, value, limit}, kTruth);
    return emit_value(ir::Binary{BinaryKind::kLogicalOr, so_far, passes}, kTruth);
  }

  // The exact value, computed in 64 bits; none where parts of it do not fit into 32.
  ValueId wide(const Expr& number) {
    if (!number_range(function_, number)) return {};
    ValueId sum;
    for (const ir::Term& term : number.terms()) {
      if (!stays_in(DType::kS32, Expr(term.coefficient))) return {};
      const bool is_one = term.coefficient == 1 && !term.atoms.empty();
      ValueId product;
      if (!is_one) {
        product = emit_value(ir::Const{static_cast<double>(term.coefficient)}, kWide);
      }
      for (const ir::Atom& atom : term.atoms) {
        const Expr part = atom.kind == ir::AtomKind::kVar
                              ? Expr::var(atom.var)
                              : make_atom(atom.kind, *atom.left, *atom.right);
        if (!stays_in(DType::kS32, part)) return {};
        const ValueId narrow = emit_value(ir::Index{part}, ir::ScalarType{DType::kS32});
        const ValueId factor = emit_value(ir::Cast{narrow}, kWide);
        product = product.valid() ? emit_value(ir::Binary{BinaryKind::kMul, product, factor}, kWide)
                                  : factor;
      }
      sum = sum.valid() ? emit_value(ir::Binary{BinaryKind::kAdd, sum, product}, kWide) : product;
    }
    return sum.valid() ? sum : emit_value(ir::Const{0}, kWide);
  }

  [[nodiscard]] bool stays_in(DType dtype, const Expr& number) const {
    const auto all = numbers_of(dtype);
    const auto range = number_range(function_, number);
    return all && range && range->least >= all->least && range->largest <= all->largest;
  }

  static std::optional<BinaryKind> opposite(BinaryKind kind) {
    constexpr std::pair<BinaryKind, BinaryKind> kOpposites[] = {{BinaryKind::kLt, BinaryKind::kGe},
                                                                {BinaryKind::kGe, BinaryKind::kLt},
                                                                {BinaryKind::kLe, BinaryKind::kGt},
                                                                {BinaryKind::kGt, BinaryKind::kLe}};
    for (const auto& [one, other] : kOpposites) {
      if (one == kind) return other;
    }
    return std::nullopt;
  }

  std::optional<Corners> corners(ValueId value) {
    const auto least = corner(value, false);
    const auto largest = corner(value, true);
    if (!least || !largest) return std::nullopt;
    return Corners{*least, *largest};
  }

  // The largest or the least value of a number over the tile.
  std::optional<Expr> corner(ValueId value, bool largest) {
    const auto* index = function_.def_as<ir::Index>(value);
    if (index == nullptr) return std::nullopt;
    Expr out = index->expr;
    for (const auto& axis :
         {std::pair(apply_.row, tile_.rows), std::pair(apply_.col, tile_.cols)}) {
      const ir::VarId var = axis.first;
      const std::int64_t extent = axis.second;
      if (!out.uses(var)) continue;
      const auto with = [&](const Expr& place) {
        return out.substitute([&](ir::VarId each) -> std::optional<Expr> {
          return each == var ? std::optional(place) : std::nullopt;
        });
      };
      const auto rise = (with(Expr::var(var) + 1) - out).constant();
      if (!rise) return std::nullopt;
      asks_of_places_ = true;
      out = with(Expr((*rise > 0) == largest ? extent - 1 : 0));
    }
    return out;
  }

  ir::Apply apply_;
  ir::FragType tile_;
  bool asks_of_places_ = false;
};

}  // namespace

Checked<bool> skip_masks(ir::Module& module, Diagnostics&) {
  for_each_launch(module, [](ir::Function& function, OpId launch) {
    std::vector<OpId> masks;
    ir::walk(function, body_of(function, launch), [&](OpId id) {
      if (function.ops[id].kind() == ir::OpKind::kApply) masks.push_back(id);
    });
    for (const OpId mask : masks) {
      const std::vector<OpId> around = Question(function, mask).around(mask);
      if (!around.empty()) replace_op(function, mask, around);
    }
  });
  return true;
}

}  // namespace kiln::passes
