#include "sim/memory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/strides.h"
#include "support/tensor.h"

namespace kiln::sim {

Buffer make_buffer(const std::string& name, const ir::ViewType& type,
                   const std::vector<std::int64_t>& extents) {
  KILN_CHECK(extents.size() <= kRankMax, "`{}` has rank {}", name, extents.size());
  Buffer out;
  out.name = name;
  out.space = type.space;
  out.dtype = type.dtype;
  out.size = size_bytes(type.dtype);
  out.rank = extents.size();
  std::int64_t elements = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    out.extents[d] = extents[d];
    out.strides[d] = elements;
    elements *= extents[d];
  }
  out.bytes = elements * out.size;
  const std::int64_t cols = out.rank == 0 ? 1 : out.extents[out.rank - 1];
  out.layout = {.rows = cols == 0 ? 0 : elements / cols, .pitch = cols * out.size, .swizzle = 0};
  return out;
}

Buffer make_alias(const ir::Function& function, ir::ValueId alias, const Buffer& base,
                  const VarFacts& facts) {
  const ir::ViewType& type = function.view_type(alias);
  const auto known = [&](const ir::Expr& expr) {
    const IndexExpr index(expr, facts);
    return index.constant() ? std::optional(index.evaluate(nullptr, 0)) : std::nullopt;
  };
  const auto offset = known(ir::root_offset(function, alias));
  const std::vector<ir::Expr> strides = ir::root_strides(function, alias);
  Buffer out = base;
  out.memory = &base;
  // Rows of another length are swizzled as such: plans see to it that it comes to the same.
  const std::optional<std::int64_t> cols =
      known(type.shape.empty() ? ir::Expr(1) : type.shape.back());
  const bool shared = type.space == ir::Space::kShared && cols && *cols > 0;
  if (shared && *cols * base.size != base.layout.pitch) {
    out.layout.pitch = *cols * base.size;
    out.layout.rows = base.bytes / out.layout.pitch;
  }
  out.pinned = !offset;
  out.rank = 0;
  if (out.pinned) {
    out.extents[0] = base.bytes / base.size;
    out.strides[0] = 1;
    out.rank = 1;
  }
  out.offset += offset.value_or(0) * base.size;
  KILN_CHECK(out.rank + strides.size() <= kRankMax, "`{}` has rank {}", base.name, strides.size());
  for (std::size_t d = 0; d < strides.size(); ++d, ++out.rank) {
    const auto stride = known(strides[d]);
    KILN_CHECK(stride.has_value(), "stride {} of a view of `{}` varies", d, base.name);
    // What varies is a limit of the view.
    out.extents[out.rank] = known(type.shape[d]).value_or(INT64_MAX);
    out.strides[out.rank] = *stride;
  }
  return out;
}

std::string Buffer::element_text(const Coordinates& at) const {
  if (memory != nullptr) {
    bool inside = true;
    for (std::size_t d = 0; d < rank; ++d) inside = inside && at[d] >= 0 && at[d] < extents[d];
    const std::int64_t place = inside ? address(at) : -1;
    if (holds(place, size)) return memory->element_text(place);
    const auto first = at.begin() + (pinned ? 1 : 0);
    return name + shape_text({first, at.begin() + static_cast<std::ptrdiff_t>(rank)});
  }
  return name + shape_text({at.begin(), at.begin() + static_cast<std::ptrdiff_t>(rank)});
}

std::string Buffer::element_text(std::int64_t wanted) const {
  if (memory != nullptr) return memory->element_text(wanted);
  Coordinates at = {};
  for (std::int64_t element = 0; element < bytes / size; ++element) {
    std::int64_t rest = element;
    for (std::size_t d = 0; d < rank; ++d) {
      at[d] = rest / strides[d];
      rest %= strides[d];
    }
    const std::int64_t begin = address(at);
    if (wanted >= begin && wanted < begin + size) return element_text(at);
  }
  return name;
}

View make_view(const ir::Function& function, ir::ValueId view, const Buffer& root,
               const VarFacts& facts) {
  const ir::ResolvedView resolved = ir::resolve_view(function, view);
  const ir::ViewType& type = function.view_type(view);
  View out;
  out.buffer = &root;
  out.rank = type.shape.size();
  const std::size_t pinned = root.pinned ? 1 : 0;
  out.dropped = resolved.dropped + pinned;
  const auto add_varying = [&out](const IndexExpr& expr) {
    for (const std::uint32_t var : expr.varying()) {
      if (std::ranges::find(out.varying, var) == out.varying.end()) out.varying.push_back(var);
    }
  };
  if (root.pinned) {
    out.origin[0] = IndexExpr(ir::root_offset(function, resolved.root), facts);
    out.limit[0] = root.extents[0];
    add_varying(out.origin[0]);
  }
  for (std::size_t d = pinned; d < root.rank; ++d) {
    out.origin[d] = IndexExpr(resolved.origin[d - pinned], facts);
    add_varying(out.origin[d]);
    out.limit[d] = root.extents[d];
    for (const ir::Expr& limit : resolved.limits[d - pinned]) {
      IndexExpr expr(limit, facts);
      add_varying(expr);
      if (expr.constant()) {
        out.limit[d] = std::min(out.limit[d], expr.evaluate(nullptr, 0));
      } else {
        out.limits.push_back({d, std::move(expr)});
      }
    }
  }
  for (std::size_t d = 0; d < out.rank; ++d) {
    out.shape[d] = IndexExpr(type.shape[d], facts);
    add_varying(out.shape[d]);
  }
  return out;
}

Window View::window(const std::int64_t* vars, std::uint32_t lane) const {
  Window out;
  for (std::size_t d = 0; d < buffer->rank; ++d) {
    out.origin[d] = origin[d].evaluate(vars, lane);
    out.limit[d] = limit[d];
  }
  for (const Limit& other : limits) {
    out.limit[other.dim] = std::min(out.limit[other.dim], other.expr.evaluate(vars, lane));
  }
  return out;
}

bool View::is_same_in(const std::int64_t* vars, std::uint32_t lanes) const {
  if (lanes == 0) return true;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  return std::ranges::all_of(varying, [&](std::uint32_t var) {
    const std::int64_t* of_lane = vars + std::size_t{var} * kLanes;
    for (std::uint32_t lane = first + 1; lane < kLanes; ++lane) {
      if (((lanes >> lane) & 1U) != 0 && of_lane[lane] != of_lane[first]) return false;
    }
    return true;
  });
}

namespace {

// Eight at a time, which the compiler makes vectors of.
template <class Decode>
void load_halves(const std::byte* at, std::uint32_t count, double* to, Decode&& decode) {
  constexpr std::uint32_t kStep = 8;
  std::array<std::uint16_t, kStep> bits;
  std::uint32_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    std::memcpy(bits.data(), at + 2 * i, sizeof(bits));
    for (std::uint32_t j = 0; j < kStep; ++j) to[i + j] = decode(bits[j]);
  }
  for (; i < count; ++i) {
    std::memcpy(bits.data(), at + 2 * i, sizeof(bits[0]));
    to[i] = decode(bits[0]);
  }
}

template <class T>
T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

double load_number(DType dtype, const std::byte* at) {
  if (dtype == DType::kF16) return decode_f16(load_as<std::uint16_t>(at));
  if (dtype == DType::kF32) return static_cast<double>(load_as<float>(at));
  if (dtype == DType::kBF16) return decode_bf16(load_as<std::uint16_t>(at));
  if (dtype == DType::kF64) return load_as<double>(at);
  if (dtype == DType::kS8) return load_as<std::int8_t>(at);
  if (dtype == DType::kU8) return load_as<std::uint8_t>(at);
  return load_element(dtype, at, 0);
}

void load_numbers(DType dtype, const std::byte* at, std::uint32_t count, double* to) {
  if (dtype == DType::kBF16) return load_halves(at, count, to, decode_bf16);
  if (dtype == DType::kF16) return load_halves(at, count, to, decode_f16);
  const auto size = static_cast<std::size_t>(size_bytes(dtype));
  for (std::uint32_t i = 0; i < count; ++i) to[i] = load_number(dtype, at + i * size);
}

void store_number(DType dtype, std::byte* at, double value) {
  if (dtype == DType::kF32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(at, &narrow, sizeof(narrow));
    return;
  }
  store_element(dtype, at, 0, value);
}

}  // namespace kiln::sim
