// The members of OneOf, for the source that instantiates one.
#pragma once

#include "support/one_of.h"

namespace kiln {

template <class... Ts>
OneOf<Ts...>::OneOf() = default;
template <class... Ts>
OneOf<Ts...>::OneOf(const OneOf& other) = default;
template <class... Ts>
OneOf<Ts...>::OneOf(OneOf&& other) noexcept = default;
template <class... Ts>
OneOf<Ts...>& OneOf<Ts...>::operator=(const OneOf& other) = default;
template <class... Ts>
OneOf<Ts...>& OneOf<Ts...>::operator=(OneOf&& other) noexcept = default;
template <class... Ts>
OneOf<Ts...>::~OneOf() = default;

}  // namespace kiln
