// How the IR's text spells each enumerator: one table per enumeration, read both ways.
//
//   name_of(Level::kGroup4) == "group4"      from_name<Level>("group4") == Level::kGroup4
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/module.h"

namespace kiln::ir {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// All enumerators, in order of their values.
template <class E>
[[nodiscard]] std::span<const EnumName<E>> enum_names();
template <>
std::span<const EnumName<Level>> enum_names();
template <>
std::span<const EnumName<Major>> enum_names();
template <>
std::span<const EnumName<CopyWay>> enum_names();
template <>
std::span<const EnumName<Eviction>> enum_names();
template <>
std::span<const EnumName<Arrival>> enum_names();
template <>
std::span<const EnumName<UnaryKind>> enum_names();
template <>
std::span<const EnumName<BinaryKind>> enum_names();
template <>
std::span<const EnumName<ReduceKind>> enum_names();
template <>
std::span<const EnumName<target::Atomic>> enum_names();
template <>
std::span<const EnumName<Space>> enum_names();
template <>
std::span<const EnumName<Role>> enum_names();
template <>
std::span<const EnumName<VarKind>> enum_names();
template <>
std::span<const EnumName<Relation>> enum_names();
template <>
std::span<const EnumName<Form>> enum_names();
template <>
std::span<const EnumName<AtomKind>> enum_names();
template <>
std::span<const EnumName<OpKind>> enum_names();

template <class E>
[[nodiscard]] std::string_view name_of(E value) {
  return enum_names<E>()[static_cast<std::size_t>(value)].name;
}

template <class E>
[[nodiscard]] std::optional<E> from_name(std::string_view name) {
  for (const EnumName<E>& row : enum_names<E>()) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

}  // namespace kiln::ir
