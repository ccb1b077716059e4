#include "reference/multiply.h"

#include <algorithm>
#include <cmath>

#include "kiln/sparse.h"

namespace kiln::reference {

namespace {

// One a*b term added to an element: the slow, careful way, for operands that carry errors or are
// not finite. An infinite magnitude: the factors are finite, their product is beyond fp64.
struct Term {
  double product = 0;
  double magnitude = 0;
  double error = 0;
};

// What a factor counts for where products are aligned: tensor cores take the exponent of a
// subnormal number to be that of the smallest normal one, and of the others' products they keep
// less than their values would let them (seen on an H200: 2^-24 * 2^15 beside 2^-20 in f16 keeps
// what 2 would).
double aligned(double magnitude, double smallest_normal) {
  return magnitude == 0 ? 0 : std::max(magnitude, smallest_normal);
}

bool is_subnormal(double value, double smallest_normal) {
  return std::fabs(value) < smallest_normal && value != 0;
}

Term term_of(Number a, Number b) {
  Term term{a.value * b.value, 0, 0};
  if (std::isfinite(a.value) && std::isfinite(b.value)) term.magnitude = std::fabs(term.product);
  if (a.error > 0 || b.error > 0) {
    term.error = std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
    if (std::isnan(term.error)) term.error = kUnbounded;
    if (std::isfinite(term.error)) term.magnitude += term.error;
  }
  return term;
}

bool has_subnormals(const Operand& operand) {
  return std::ranges::any_of(operand.slot.value, [&](double value) {
    return is_subnormal(value, operand.smallest_normal);
  });
}

// The operand with its outer elements next to each other: itself if they are, else `copy`.
Operand with_outer_innermost(const Operand& operand, Fragments::Slot& copy) {
  if (operand.outer_stride == 1) return operand;
  copy.clean = operand.slot.clean;
  copy.integral = operand.slot.integral;
  copy.value.resize(operand.outer * operand.depth);
  copy.error.resize(copy.clean ? 0 : copy.value.size());
  for (std::size_t n = 0; n < operand.outer; ++n) {
    for (std::size_t k = 0; k < operand.depth; ++k) {
      const std::size_t from = n * operand.outer_stride + k * operand.k_stride;
      copy.value[k * operand.outer + n] = operand.slot.value[from];
      if (!copy.clean) copy.error[k * operand.outer + n] = operand.slot.error[from];
    }
  }
  return {copy, operand.outer, operand.depth, 1, operand.outer, operand.smallest_normal};
}

// A row of the product: row m of A with each column n of B, whose columns are next to each other.
struct Row {
  const Operand& a;
  std::size_t m;
  const Operand& b;
  bool subnormals = false;  // some element of A or B is
};

// Columns that are added up side by side, so that the additions of one, which have an order, need
// not wait for each other.
constexpr std::size_t kSideBySide = 8;

struct Sums {
  std::array<double, kSideBySide> value{};
  std::array<double, kSideBySide> magnitude{};
};

// Columns n to n + Count of the row, where every operand is exact.
template <std::size_t Count>
Sums exact_sums(const Row& row, std::size_t n) {
  const double* x = row.a.slot.value.data() + row.m * row.a.outer_stride;
  const double* y = row.b.slot.value.data() + n;
  Sums sums;
  for (std::size_t k = 0; k < row.a.depth; ++k) {
    const double factor = x[k * row.a.k_stride];
    for (std::size_t i = 0; i < Count; ++i) {
      const double product = factor * y[i];
      sums.value[i] += product;
      sums.magnitude[i] += std::fabs(product);
    }
    y += row.b.k_stride;
  }
  return sums;
}

// Whatever the operands are: with errors, subnormal numbers, infinities or NaNs.
void add_careful(Fragments::Slot& c, const Row& row, std::size_t n) {
  const std::size_t at = row.m * row.b.outer + n;
  const auto number = [](const Fragments::Slot& slot, std::size_t i) {
    return Number{slot.value[i], slot.clean ? 0 : slot.error[i]};
  };
  for (std::size_t k = 0; k < row.a.depth; ++k) {
    const Number x = number(row.a.slot, row.m * row.a.outer_stride + k * row.a.k_stride);
    const Number y = number(row.b.slot, n + k * row.b.k_stride);
    Term term = term_of(x, y);
    if (row.subnormals && std::isfinite(term.product)) {
      const double largest = aligned(std::fabs(x.value) + x.error, row.a.smallest_normal) *
                             aligned(std::fabs(y.value) + y.error, row.b.smallest_normal);
      if (std::isfinite(largest)) term.magnitude = std::max(term.magnitude, largest);
    }
    c.value[at] += term.product;
    c.magnitude[at] += term.magnitude;
    c.error[at] += term.error;
    if (term.error > 0) c.clean = false;
  }
}

// As add_careful for columns n to n + Count; Subnormals: as row.subnormals. False, and nothing is done, where
// something is not finite.
template <std::size_t Count, bool Subnormals>
bool add_with_errors(Fragments::Slot& c, const Row& row, std::size_t n) {
  constexpr std::array<double, Count> kNone{};
  const Fragments::Slot& a = row.a.slot;
  const Fragments::Slot& b = row.b.slot;
  const std::size_t at = row.m * row.b.outer + n;
  Sums sums;
  std::array<double, Count> error;
  for (std::size_t i = 0; i < Count; ++i) {
    sums.value[i] = c.value[at + i];
    sums.magnitude[i] = c.magnitude[at + i];
    error[i] = c.error[at + i];
  }
  for (std::size_t k = 0; k < row.a.depth; ++k) {
    const std::size_t from = row.m * row.a.outer_stride + k * row.a.k_stride;
    const double x = a.value[from];
    const double x_error = a.clean ? 0 : a.error[from];
    const double* y = &b.value[n + k * row.b.k_stride];
    const double* y_error = b.clean ? kNone.data() : &b.error[n + k * row.b.k_stride];
    for (std::size_t i = 0; i < Count; ++i) {
      const double product = x * y[i];
      const double term =
          std::fabs(x) * y_error[i] + std::fabs(y[i]) * x_error + x_error * y_error[i];
      double magnitude = std::fabs(product) + term;
      if constexpr (Subnormals) {
        const double largest = aligned(std::fabs(x) + x_error, row.a.smallest_normal) *
                               aligned(std::fabs(y[i]) + y_error[i], row.b.smallest_normal);
        magnitude = std::max(magnitude, largest);
      }
      sums.value[i] += product;
      sums.magnitude[i] += magnitude;
      error[i] += term;
    }
  }
  // What is not finite stays so in a sum of what is not negative.
  for (std::size_t i = 0; i < Count; ++i) {
    if (!std::isfinite(sums.magnitude[i]) || !std::isfinite(error[i])) return false;
  }
  for (std::size_t i = 0; i < Count; ++i) {
    c.value[at + i] = sums.value[i];
    c.magnitude[at + i] = sums.magnitude[i];
    c.error[at + i] = error[i];
    if (error[i] > 0) c.clean = false;
  }
  return true;
}

template <std::size_t Count>
void multiply_columns(Fragments::Slot& c, const Row& row, std::size_t n, const Rounding& by) {
  const bool clean = row.a.slot.clean && row.b.slot.clean && !row.subnormals;
  const Sums sums = clean ? exact_sums<Count>(row, n) : Sums{};
  const std::size_t first = row.m * row.b.outer + n;
  Sums before;
  for (std::size_t i = 0; i < Count; ++i) {
    before.value[i] = c.value[first + i];
    before.magnitude[i] = c.magnitude[first + i];
  }
  const bool added = !clean && (row.subnormals ? add_with_errors<Count, true>(c, row, n)
                                               : add_with_errors<Count, false>(c, row, n));
  for (std::size_t i = 0; i < Count; ++i) {
    const std::size_t at = first + i;
    if (clean && std::isfinite(sums.magnitude[i])) {
      c.value[at] += sums.value[i];
      c.magnitude[at] += sums.magnitude[i];
    } else if (!added) {
      add_careful(c, row, n + i);
    }
    c.round(at, before.value[i], c.magnitude[at] - before.magnitude[i], by);
  }
}

void multiply_row(Fragments::Slot& c, const Row& row, const Rounding& by) {
  KILN_CHECK(row.b.outer_stride == 1, "columns {} apart", row.b.outer_stride);
  std::size_t n = 0;
  for (; n + kSideBySide <= row.b.outer; n += kSideBySide) {
    multiply_columns<kSideBySide>(c, row, n, by);
  }
  for (; n < row.b.outer; ++n) multiply_columns<1>(c, row, n, by);
}

// The dense columns of the elements that a row of a sparse A keeps, `stored` of them.
std::vector<std::size_t> kept_columns(const Fragments& metadata, const Fragments::Slot& slot,
                                      std::size_t row, std::size_t stored, bool wide) {
  const auto pattern = wide ? sparse::Pattern::k1of2 : sparse::Pattern::k2of4;
  const auto kept = static_cast<std::size_t>(sparse::kept_of_group(pattern));
  const auto group_size = static_cast<std::size_t>(sparse::group_size(pattern));
  const auto rows = static_cast<std::size_t>(metadata.type.rows);
  const auto cols = static_cast<std::size_t>(metadata.type.cols);
  const bool in_words = metadata.type.dtype == DType::kU32;
  const std::size_t bytes_a_row = in_words ? 4 * cols : cols;
  std::vector<std::uint8_t> bytes(rows * bytes_a_row);
  if (!in_words) {
    std::copy(slot.value.begin(), slot.value.end(), bytes.begin());
  } else {
    const std::vector<std::uint32_t> words(slot.value.begin(), slot.value.end());
    const auto how = metadata.narrow_words ? sparse::Words::kRows : sparse::Words::kRowPairs;
    const auto extent = [](std::size_t count) { return static_cast<std::int64_t>(count); };
    (void)sparse::unpack_words({bytes.data(), extent(rows), extent(bytes_a_row)}, how,
                               words.data());
  }
  std::vector<std::size_t> out;
  for (std::size_t s = 0; s < stored; ++s) {
    const std::size_t group = s / kept;
    const unsigned nibble = bytes[row * bytes_a_row + group / 2] >> (group % 2 * 4) & 0xfU;
    const sparse::Kept places = sparse::kept_of(nibble, pattern);
    const int place = s % kept == 0 ? places.first : places.second;
    out.push_back(group * group_size + static_cast<std::size_t>(place));
  }
  return out;
}

// What of B a row of a sparse A meets, its elements at the kept columns: n is innermost.
Fragments::Slot gather_columns(const Operand& b, const std::vector<std::size_t>& columns) {
  Fragments::Slot out;
  out.clean = b.slot.clean;
  out.integral = b.slot.integral;
  out.value.reserve(columns.size() * b.outer);
  for (const std::size_t k : columns) {
    for (std::size_t n = 0; n < b.outer; ++n) {
      const std::size_t at = n * b.outer_stride + k * b.k_stride;
      out.value.push_back(b.slot.value[at]);
      if (!out.clean) out.error.push_back(b.slot.error[at]);
    }
  }
  return out;
}

}  // namespace

Operand operand_of(const Fragments& fragments, const Fragments::Slot& slot, ir::Major major) {
  const auto rows = static_cast<std::size_t>(fragments.type.rows);
  const auto cols = static_cast<std::size_t>(fragments.type.cols);
  const double normal = smallest_normal(fragments.type.dtype);
  if (major == ir::Major::kRow) return {slot, rows, cols, cols, 1, normal};
  return {slot, cols, rows, 1, cols, normal};
}

void multiply(Fragments::Slot& c, const Operand& a, const Operand& b, const Rounding& by) {
  KILN_CHECK(a.depth == b.depth, "a contraction of {} with {}", a.depth, b.depth);
  Fragments::Slot copy;
  const Operand columns = with_outer_innermost(b, copy);
  const bool subnormals = has_subnormals(a) || has_subnormals(b);
  for (std::size_t m = 0; m < a.outer; ++m) multiply_row(c, {a, m, columns, subnormals}, by);
  c.integral = c.integral && a.slot.integral && b.slot.integral;
  c.products += static_cast<std::int64_t>(a.depth);
}

void multiply_sparse(Fragments::Slot& c, const Operand& a, const Operand& b, const Kept& kept,
                     const Rounding& by) {
  KILN_CHECK(2 * a.depth == b.depth, "a sparse contraction of {} with {}", a.depth, b.depth);
  const bool subnormals = has_subnormals(a) || has_subnormals(b);
  for (std::size_t m = 0; m < a.outer; ++m) {
    const Fragments::Slot met =
        gather_columns(b, kept_columns(kept.metadata, kept.slot, m, a.depth, kept.wide));
    const Operand columns{met, b.outer, a.depth, 1, b.outer, b.smallest_normal};
    multiply_row(c, {a, m, columns, subnormals}, by);
  }
  c.integral = c.integral && a.slot.integral && b.slot.integral;
  c.products += static_cast<std::int64_t>(a.depth);
}

}  // namespace kiln::reference
