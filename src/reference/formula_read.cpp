#include "reference/formula_read.h"

#include <algorithm>
#include <optional>

namespace kiln::reference {

namespace {

// An offset of no element, which stays one whatever other subscripts add.
constexpr std::int64_t kOutside = std::int64_t{-1} << 60;

// What a subscript adds to the offset of an element, at each of its places.
std::vector<std::int64_t> offsets_of(const Subscript& subscript, std::int64_t stride) {
  std::vector<std::int64_t> out;
  out.reserve(subscript.positions.size());
  for (const double position : subscript.positions) {
    const double where = position - static_cast<double>(subscript.begin);
    const bool inside = where >= 0 && where < static_cast<double>(subscript.count);
    out.push_back(inside ? static_cast<std::int64_t>(where) * stride : kOutside);
  }
  return out;
}

// Offsets of elements as a sum of what each axis of the space adds.
struct ByAxis {
  std::int64_t first = 0;
  std::vector<std::vector<std::int64_t>> tables;  // for each axis, by its index
};

std::optional<ByAxis> by_axis(const std::vector<Subscript>& subscripts, const Space& space) {
  ByAxis out;
  for (const Axis& axis : space) {
    out.tables.emplace_back(static_cast<std::size_t>(axis.count), std::int64_t{0});
  }
  std::int64_t stride = 1;
  for (std::size_t d = subscripts.size(); d-- > 0; stride *= subscripts[d].count) {
    const Subscript& subscript = subscripts[d];
    if (subscript.space.size() > 1) return std::nullopt;
    const std::vector<std::int64_t> offsets = offsets_of(subscript, stride);
    if (subscript.space.empty()) {
      out.first = std::max(out.first + offsets[0], kOutside);
      continue;
    }
    const auto axis = std::ranges::find(space, subscript.space[0].loop, &Axis::loop);
    std::vector<std::int64_t>& table = out.tables[static_cast<std::size_t>(axis - space.begin())];
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i] = std::max(table[i] + offsets[i], kOutside);
    }
  }
  return out;
}

// The step of a table that goes on by equal steps and never leaves the source.
std::optional<std::int64_t> step_of(const std::vector<std::int64_t>& table) {
  const std::int64_t step = table.size() < 2 ? 0 : table[1] - table[0];
  for (std::size_t i = 0; i < table.size(); ++i) {
    const bool inside = table[i] >= 0 && table[i] - table[0] == static_cast<std::int64_t>(i) * step;
    if (!inside) return std::nullopt;
  }
  return step;
}

std::optional<Values> by_steps(const Values& source, const ByAxis& offsets, const Space& space) {
  std::int64_t first = offsets.first;
  if (first < 0) return std::nullopt;
  std::vector<std::int64_t> steps;
  for (const std::vector<std::int64_t>& table : offsets.tables) {
    const auto step = step_of(table);
    if (!step) return std::nullopt;
    first += table[0];
    steps.push_back(*step);
  }
  return gathered(source, space, first, steps);
}

// The offset at every place.
std::vector<std::int64_t> spread(const ByAxis& offsets) {
  std::vector<std::int64_t> out = {offsets.first};
  for (const std::vector<std::int64_t>& table : offsets.tables) {
    std::vector<std::int64_t> wider;
    wider.reserve(out.size() * table.size());
    for (const std::int64_t outer : out) {
      for (const std::int64_t inner : table) wider.push_back(std::max(outer + inner, kOutside));
    }
    out = std::move(wider);
  }
  return out;
}

// The same for subscripts of many indices. Offsets are whole numbers that fp64 holds.
std::vector<std::int64_t> spread(const std::vector<Subscript>& subscripts, const Space& space) {
  std::vector<std::int64_t> out(size_of(space));
  std::int64_t stride = 1;
  for (std::size_t d = subscripts.size(); d-- > 0; stride *= subscripts[d].count) {
    const std::vector<std::int64_t> own = offsets_of(subscripts[d], stride);
    Values offsets;
    offsets.value.assign(own.begin(), own.end());
    offsets = expanded(std::move(offsets), subscripts[d].space, space);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = std::max(out[i] + static_cast<std::int64_t>(offsets.value[i]), kOutside);
    }
  }
  return out;
}

}  // namespace

Values elements_at(const Values& source, const std::vector<Subscript>& subscripts,
                   const Space& space) {
  const auto axes = by_axis(subscripts, space);
  if (axes) {
    if (auto found = by_steps(source, *axes, space)) return std::move(*found);
  }
  const std::vector<std::int64_t> offsets = axes ? spread(*axes) : spread(subscripts, space);
  Values out(offsets.size());
  const auto gather = [&](const std::vector<double>& values, std::vector<double>& to) {
    if (values.empty()) return;
    to.resize(offsets.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = offsets[i] < 0 ? 0.0 : values[static_cast<std::size_t>(offsets[i])];
    }
  };
  gather(source.value, out.value);
  gather(source.error, out.error);
  gather(source.slack, out.slack);
  gather(source.rest, out.rest);
  return out;
}

}  // namespace kiln::reference
