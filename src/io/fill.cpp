#include "io/fill.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <thread>
#include <vector>

#include "io/random_bits.h"
#include "support/check.h"

namespace kiln::io {

namespace {

class Random : public RandomBits {
 public:
  using RandomBits::RandomBits;

  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  // Box-Muller; one of the pair is enough here.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double value = radius * std::cos(2 * std::numbers::pi * uniform());
    // Rounded to f32 at once, so that the last digit of a library's log cannot show.
    return static_cast<double>(static_cast<float>(value));
  }
};

bool is_unsigned(DType dtype) { return info(dtype).kind == NumberKind::kUnsigned; }

double normal_value(DType dtype, Random& random) {
  const double value = random.normal();
  if (is_float(dtype)) return value;
  // Two standard deviations reach the edge of the narrowest types.
  return std::nearbyint(std::clamp(2 * value, -info(dtype).max, info(dtype).max));
}

// The largest count that an f16 accumulator holds exactly: what every accumulator does.
constexpr double kExactEverywhere = 2048;

// Whether the fill knows of what the type's elements are factors.
bool is_factor(DType dtype, const Products& products) {
  return products.exact != 0 && std::find(products.operands.begin(), products.operands.end(),
                                          dtype) != products.operands.end();
}

// The largest integer whose contractions are exact for sure; small where nothing is known of them.
double largest_integer(DType dtype, const FillOptions& options) {
  const Products& products = options.products;
  if (!is_factor(dtype, products)) return 0;
  const auto longest = static_cast<double>(options.longest);
  double largest = integers_exact_up_to(dtype);
  // Sums of integers that wrap are exact too.
  if (is_float(dtype)) largest = std::min(largest, std::sqrt(products.exact / longest));
  // Random signs: a sum of n products of integers up to x is about x^2 / 3 * sqrt(n).
  if (products.largest > 0) {
    largest = std::min(largest, std::sqrt(3 * products.largest / 8 / std::sqrt(longest)));
  }
  return std::floor(largest);
}

// With a contraction of `longest` products the sum of magnitudes stays below `exact`: always while
// 4 * longest < exact; beyond that because zeros thin out the products to half of it on average,
// which is far from all of it (30 standard deviations, of 2048).
double integer_value(DType dtype, Random& random, const FillOptions& options) {
  const double largest = largest_integer(dtype, options);
  const auto longest = static_cast<double>(options.longest);
  const bool known = is_float(dtype) && is_factor(dtype, options.products);
  const double exact = known ? options.products.exact : kExactEverywhere;
  double value = 0;
  if (largest > 2) {
    const auto span = static_cast<std::int64_t>(largest);
    value = static_cast<double>(random.below(2 * span + 1) - span);
  } else if (4 * longest < exact) {
    value = static_cast<double>(random.below(5) - 2);
  } else if (random.uniform() < std::sqrt(exact / 2.048 / longest)) {
    value = random.below(2) == 0 ? 1 : -1;
  }
  if (dtype == DType::kBool) return value != 0 ? 1 : 0;
  if (is_unsigned(dtype) || info(dtype).max < 2) value = std::fabs(value);
  return std::min(value, info(dtype).max);
}

// The low bits of an integer type's element.
void set_bits(Tensor& tensor, std::size_t at, std::uint64_t bits) {
  const auto size = static_cast<std::size_t>(size_bytes(tensor.dtype));
  std::memcpy(tensor.bytes.data() + at * size, &bits, size);
}

// How many bits of the type, its sign apart, magnitudes may have.
int magnitude_bits(DType dtype, double largest) {
  const int width = info(dtype).bits - (is_unsigned(dtype) ? 0 : 1);
  if (std::isinf(largest)) return width;
  return std::min(width, std::ilogb(largest + 1));
}

// Integers of every length: as many have 40 bits as have 3.
std::uint64_t bits_of_any_length(DType dtype, double largest, Random& random) {
  const auto length = static_cast<int>(random.below(magnitude_bits(dtype, largest) + 1));
  const std::uint64_t bits = random.bits();
  const std::uint64_t magnitude = length == 0 ? 0 : bits >> (64 - length);
  const bool negative = !is_unsigned(dtype) && random.below(2) == 0;
  return negative ? ~magnitude : magnitude;
}

// The ends of the type, the numbers around 0, and some from everywhere.
std::uint64_t bits_at_an_edge(DType dtype, double largest, Random& random) {
  const int width = magnitude_bits(dtype, largest);
  const std::uint64_t edge = ~std::uint64_t{0} >> (64 - width);
  const std::uint64_t low = is_unsigned(dtype) ? edge - 1 : ~edge;
  const std::uint64_t below_zero = is_unsigned(dtype) ? edge : ~std::uint64_t{0};
  const std::uint64_t choices[] = {0, 1, below_zero, edge, low};
  const auto choice = static_cast<std::size_t>(random.below(8));
  return choice < std::size(choices) ? choices[choice] : bits_of_any_length(dtype, largest, random);
}

// Whether the tensor's integers may be as large as `largest_integer` says. Types of less than a
// byte have no bits to spare.
bool is_free(DType dtype, const FillOptions& options) {
  return is_integer(dtype) && !is_sub_byte(dtype) && options.largest_integer > 2 &&
         !is_factor(dtype, options.products);
}

struct Adversary {
  DType dtype;
  double largest;  // longest * largest^2 stays below half of the largest f16
  bool repeats;    // pairs (x, x) instead of (x, -x)
};

// `previous` is the left neighbour within the pair, for the odd elements.
double adversarial_value(const Adversary& adversary, Random& random, bool second, double previous) {
  const DType dtype = adversary.dtype;
  if (!is_float(dtype)) {
    const double edge = std::min(info(dtype).max, 127.0);
    const double choices[] = {0, 1, edge, is_unsigned(dtype) ? edge : -edge};
    return choices[random.below(4)];
  }
  const double sign = random.below(2) == 0 ? 1 : -1;
  const double least_normal = std::exp2(1 - info(dtype).bias);
  switch (random.below(8)) {
    case 0: return sign * 0.0;
    case 1: return sign * smallest(dtype) * static_cast<double>(1 + random.below(15));
    case 2: return sign * least_normal;
    case 3: return sign * (least_normal - smallest(dtype));
    case 4: return sign * (1 + 2 * roundoff(dtype)) * std::min(adversary.largest, 1.0);
    default: break;
  }
  if (second && std::isfinite(previous)) return adversary.repeats ? previous : -previous;
  return sign * adversary.largest * (0.5 + 0.5 * random.uniform());
}

// One infinity and one NaN in tensors large enough that most of the result survives them.
void place_specials(Tensor& tensor, Random& random) {
  constexpr std::int64_t kExtentMin = 4;
  const bool large = std::all_of(tensor.shape.begin(), tensor.shape.end(),
                                 [](std::int64_t extent) { return extent >= kExtentMin; });
  if (!large || tensor.elements() < 64 || !is_float(tensor.dtype)) return;
  const double inf = std::numeric_limits<double>::infinity();
  const auto anywhere = [&] { return static_cast<std::size_t>(random.below(tensor.elements())); };
  const std::size_t at = anywhere();
  if (info(tensor.dtype).ieee) tensor.set(at, random.below(2) == 0 ? inf : -inf);
  const std::size_t nan_at = anywhere();
  if (nan_at == at) return;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(decode(tensor.dtype, encode(tensor.dtype, nan)))) tensor.set(nan_at, nan);
}

void fill_adversarial(Tensor& tensor, Random& random, const FillOptions& options) {
  const double longest = static_cast<double>(std::max<std::int64_t>(options.longest, 1));
  const double largest = std::min(std::sqrt(32000 / longest), info(tensor.dtype).max / 2);
  const Adversary adversary{tensor.dtype, largest, options.ordinal % 2 == 1};
  const std::int64_t row =
      tensor.shape.empty() ? 1 : std::max<std::int64_t>(tensor.shape.back(), 1);
  double previous = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (is_free(tensor.dtype, options)) {
      set_bits(tensor, static_cast<std::size_t>(i),
               bits_at_an_edge(tensor.dtype, options.largest_integer, random));
      continue;
    }
    const bool second = (i % row) % 2 == 1;
    previous = round_to(tensor.dtype, adversarial_value(adversary, random, second, previous));
    tensor.set(static_cast<std::size_t>(i), previous);
  }
  place_specials(tensor, random);
}

void fill_integers(Tensor& tensor, Random& random, const FillOptions& options) {
  bool all_zero = true;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (is_free(tensor.dtype, options)) {
      const std::uint64_t bits = bits_of_any_length(tensor.dtype, options.largest_integer, random);
      set_bits(tensor, static_cast<std::size_t>(i), bits);
      all_zero = all_zero && bits == 0;
      continue;
    }
    const double value = integer_value(tensor.dtype, random, options);
    all_zero = all_zero && value == 0;
    tensor.set(static_cast<std::size_t>(i), value);
  }
  if (all_zero && tensor.elements() > 0) tensor.set(0, 1);
}

// Encoded once, then copied, twice as much each time.
void fill_ones(Tensor& tensor) {
  if (tensor.bytes.empty()) return;
  tensor.set(0, 1);
  std::byte* const bytes = tensor.bytes.data();
  auto done = static_cast<std::size_t>(size_bytes(tensor.dtype));
  while (done < tensor.bytes.size()) {
    const std::size_t more = std::min(done, tensor.bytes.size() - done);
    std::memcpy(bytes + done, bytes, more);
    done += more;
  }
}

}  // namespace

std::optional<Fill> fill_from_name(std::string_view name) {
  if (name == "normal") return Fill::kNormal;
  if (name == "integers") return Fill::kIntegers;
  if (name == "ones") return Fill::kOnes;
  if (name == "adversarial") return Fill::kAdversarial;
  return std::nullopt;
}

std::string_view fill_names() { return "normal, integers, ones, adversarial"; }

void fill_tensor(Tensor& tensor, const FillOptions& options) {
  Random mixer(options.seed * 0x9e3779b97f4a7c15 + options.ordinal);
  Random random(mixer.bits());
  const auto elements = static_cast<std::size_t>(tensor.elements());
  switch (options.fill) {
    case Fill::kNormal:
      for (std::size_t i = 0; i < elements; ++i) tensor.set(i, normal_value(tensor.dtype, random));
      return;
    case Fill::kIntegers: return fill_integers(tensor, random, options);
    case Fill::kOnes: return fill_ones(tensor);
    case Fill::kAdversarial: return fill_adversarial(tensor, random, options);
  }
}

void fill_tensor_in_parts(Tensor& tensor, const FillOptions& options) {
  constexpr std::int64_t kPart = std::int64_t{1} << 18;  // elements
  constexpr std::uint64_t kStride = 0xd1342543de82ef95;  // seeds of parts lie far from each other
  const std::int64_t elements = tensor.elements();
  const auto size = static_cast<std::size_t>(size_bytes(tensor.dtype));
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t part = next++; part * kPart < elements; part = next++) {
      const std::int64_t begin = part * kPart;
      Tensor piece = Tensor::zeros(tensor.dtype, {std::min(kPart, elements - begin)});
      FillOptions own = options;
      own.seed += static_cast<std::uint64_t>(part) * kStride;
      fill_tensor(piece, own);
      std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(begin) * size, piece.bytes.data(),
                  piece.bytes.size());
    }
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) others.emplace_back(work);
  work();
}

}  // namespace kiln::io
