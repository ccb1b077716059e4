#include "ir/names.h"

namespace kiln::ir {

namespace {

// Each table lists its enumeration completely and in order; rows are found by index.
template <class E, std::size_t kCount>
consteval bool in_order(const EnumName<E> (&rows)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (static_cast<std::size_t>(rows[i].value) != i) return false;
  }
  return true;
}

constexpr EnumName<Level> kLevelNames[] = {
    {Level::kBlock, "block"},
    {Level::kGroup4, "group4"},
    {Level::kGroup, "group"},
    {Level::kThread, "thread"},
};
static_assert(in_order(kLevelNames));

constexpr EnumName<Major> kMajorNames[] = {
    {Major::kRow, "row"},
    {Major::kCol, "col"},
};
static_assert(in_order(kMajorNames));

constexpr EnumName<CopyWay> kCopyWayNames[] = {
    {CopyWay::kUndecided, "undecided"}, {CopyWay::kVector, "vector"},
    {CopyWay::kAsync, "async"},         {CopyWay::kGather, "gather"},
    {CopyWay::kElement, "element"},     {CopyWay::kPerThread, "per_thread"},
    {CopyWay::kBulk, "bulk"},
};
static_assert(in_order(kCopyWayNames));

constexpr EnumName<Eviction> kEvictionNames[] = {
    {Eviction::kNormal, "normal"},
    {Eviction::kFirst, "first"},
    {Eviction::kLast, "last"},
};
static_assert(in_order(kEvictionNames));

constexpr EnumName<Arrival> kArrivalNames[] = {
    {Arrival::kUndecided, "undecided"},
    {Arrival::kThread, "thread"},
    {Arrival::kWarp, "warp"},
    {Arrival::kElected, "elected"},
};
static_assert(in_order(kArrivalNames));

constexpr EnumName<UnaryKind> kUnaryKindNames[] = {
    {UnaryKind::kNegate, "negate"},
    {UnaryKind::kNot, "not"},
    {UnaryKind::kBitNot, "bit_not"},
#define KILN_FUNCTION(Name, name, ...) {UnaryKind::k##Name, #name},
#include "kiln/device/function.def"
};
static_assert(in_order(kUnaryKindNames));

constexpr EnumName<BinaryKind> kBinaryKindNames[] = {
#define KILN_BINARY(Name, name, ...) {BinaryKind::k##Name, name},
#include "ir/binary.def"
#undef KILN_BINARY
};
static_assert(in_order(kBinaryKindNames));

constexpr EnumName<ReduceKind> kReduceKindNames[] = {
    {ReduceKind::kSum, "sum"}, {ReduceKind::kProduct, "product"}, {ReduceKind::kMax, "max"},
    {ReduceKind::kMin, "min"}, {ReduceKind::kArgMax, "arg_max"},
};
static_assert(in_order(kReduceKindNames));

constexpr EnumName<target::Atomic> kAtomicNames[] = {
#define KILN_ATOMIC(Name, name, ...) {target::Atomic::k##Name, name},
#include "target/atomic.def"
#undef KILN_ATOMIC
};
static_assert(in_order(kAtomicNames));

constexpr EnumName<Space> kSpaceNames[] = {
    {Space::kGlobal, "global"},
    {Space::kShared, "shared"},
    {Space::kLocal, "local"},
};
static_assert(in_order(kSpaceNames));

constexpr EnumName<Role> kRoleNames[] = {
    {Role::kA, "A"},       {Role::kB, "B"}, {Role::kC, "C"}, {Role::kMetadata, "metadata"},
    {Role::kTile, "tile"},
};
static_assert(in_order(kRoleNames));

constexpr EnumName<VarKind> kVarKindNames[] = {
    {VarKind::kDim, "dim"},   {VarKind::kScalar, "scalar"}, {VarKind::kParallel, "parallel"},
    {VarKind::kLoop, "loop"}, {VarKind::kBound, "bound"},
};
static_assert(in_order(kVarKindNames));

constexpr EnumName<Relation> kRelationNames[] = {
    {Relation::kEqual, "=="},
    {Relation::kLessEqual, "<="},
    {Relation::kDivides, "divides"},
};
static_assert(in_order(kRelationNames));

constexpr EnumName<Form> kFormNames[] = {
    {Form::kTile, "tile"},       {Form::kAtoms, "atoms"}, {Form::kLaidOut, "laid_out"},
    {Form::kPlanned, "planned"}, {Form::kMet, "met"},     {Form::kDecided, "decided"},
};
static_assert(in_order(kFormNames));

constexpr EnumName<AtomKind> kAtomKindNames[] = {
    {AtomKind::kVar, "var"}, {AtomKind::kCDiv, "cdiv"}, {AtomKind::kFloorDiv, "floordiv"},
    {AtomKind::kMod, "mod"}, {AtomKind::kMin, "min"},   {AtomKind::kMax, "max"},
};
static_assert(in_order(kAtomKindNames));

constexpr EnumName<OpKind> kOpKindNames[] = {
#define KILN_OP(Name, mnemonic, ...) {OpKind::k##Name, mnemonic},
#include "ir/op.def"
#undef KILN_OP
};
static_assert(in_order(kOpKindNames));

}  // namespace

template <>
std::span<const EnumName<Level>> enum_names() {
  return kLevelNames;
}
template <>
std::span<const EnumName<Major>> enum_names() {
  return kMajorNames;
}
template <>
std::span<const EnumName<CopyWay>> enum_names() {
  return kCopyWayNames;
}
template <>
std::span<const EnumName<Eviction>> enum_names() {
  return kEvictionNames;
}
template <>
std::span<const EnumName<Arrival>> enum_names() {
  return kArrivalNames;
}
template <>
std::span<const EnumName<UnaryKind>> enum_names() {
  return kUnaryKindNames;
}
template <>
std::span<const EnumName<BinaryKind>> enum_names() {
  return kBinaryKindNames;
}
template <>
std::span<const EnumName<ReduceKind>> enum_names() {
  return kReduceKindNames;
}
template <>
std::span<const EnumName<target::Atomic>> enum_names() {
  return kAtomicNames;
}
template <>
std::span<const EnumName<Space>> enum_names() {
  return kSpaceNames;
}
template <>
std::span<const EnumName<Role>> enum_names() {
  return kRoleNames;
}
template <>
std::span<const EnumName<VarKind>> enum_names() {
  return kVarKindNames;
}
template <>
std::span<const EnumName<Relation>> enum_names() {
  return kRelationNames;
}
template <>
std::span<const EnumName<Form>> enum_names() {
  return kFormNames;
}
template <>
std::span<const EnumName<AtomKind>> enum_names() {
  return kAtomKindNames;
}
template <>
std::span<const EnumName<OpKind>> enum_names() {
  return kOpKindNames;
}

std::string_view mnemonic(OpKind kind) { return name_of(kind); }

}  // namespace kiln::ir
