// The value of an `#if` or `#elif` expression.
//
//   ROWS % 16 != 0 && !defined(FAST)     with ROWS = 32 and FAST undefined:     0
//
// Integers are 64-bit and signed, unknown names are 0, what `&&`, `||` and `?:` do not need is not
// computed. Besides the operators of the language's own `#if`, the rest of C's are understood,
// since the conditions of host code pass through here too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "diag/diagnostics.h"
#include "syntax/token.h"

namespace kiln::syntax {

// `tokens`: the expression after macro expansion, `defined` already replaced. `directive`: "if" or
// "elif"; `line`: its span, for a mistake that has no token. Empty after a reported mistake.
[[nodiscard]] std::optional<std::int64_t> evaluate_condition(const std::vector<Token>& tokens,
                                                             std::string_view directive, Span line,
                                                             Diagnostics& diags);

}  // namespace kiln::syntax
