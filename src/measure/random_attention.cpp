#include "measure/random_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attention/choice.h"
#include "io/fill.h"
#include "measure/random_draw.h"
#include "support/format.h"
#include "support/parse_number.h"

namespace kiln::measure {

namespace {

using AttentionProblem = attention::Problem;

// Of batch * heads * queries * keys * depth: what fp64 on a core does in a part of a second.
constexpr std::int64_t kAttentionWorkMax = std::int64_t{1} << 25;
constexpr std::int64_t kStepBytes = 16;  // what tensors step by
constexpr std::int64_t kDepthMax = 512;
constexpr int kOffsetUnit = 16;
constexpr std::string_view kFactorsWord = "factors";
constexpr DType kAttentionTypes[] = {DType::kBF16, DType::kF16};  // of all problems
constexpr DType kSmallType = DType::kE4M3;                        // of some forward ones

std::int64_t draw_rows(Random& random) {
  constexpr std::int64_t kTiles[] = {16, 32, 48, 64, 80, 128, 192};
  const std::int64_t kind = random.within(0, 99);
  std::int64_t out = random.within(1, kAttentionRowsMax);
  if (kind < 8) {
    out = random.within(1, 2);
  } else if (kind < 35) {
    out = random.within(1, 70);
  } else if (kind < 70) {
    const std::int64_t tile = random.one_of(kTiles);
    out = tile * random.within(1, kAttentionRowsMax / tile) + random.within(-1, 1);
  }
  return std::clamp<std::int64_t>(out, 1, kAttentionRowsMax);
}

// Without gaps, rows or heads outermost with or without gaps, or beside two more tensors.
attention::Spacing draw_spacing(Random& random, const attention::Part& part, DType narrowest) {
  const std::int64_t depth = part.depth;
  const std::int64_t rows = part.rows;
  const std::int64_t heads = part.heads;
  const std::int64_t step = kStepBytes / size_bytes(narrowest);
  const auto gap = [&] { return random.percent(50) ? step * random.within(1, 5) : 0; };
  attention::Spacing out;
  const std::int64_t kind = random.within(0, 4);
  if (kind <= 1) return out;
  if (kind == 2) {
    out.head = depth + gap();
    out.row = heads * out.head + gap();
    out.batch = rows * out.row + gap();
  } else if (kind == 3) {
    out.row = depth + gap();
    out.head = rows * out.row + gap();
    out.batch = heads * out.head + gap();
  } else {
    out.head = depth;
    out.row = 3 * heads * depth;
    out.batch = rows * out.row;
  }
  return out;
}

void draw_shape(Random& random, AttentionProblem& problem) {
  problem.batch = random.percent(60) ? 1 : random.within(2, 3);
  problem.key_heads = random.within(1, 3);
  problem.heads = problem.key_heads * (random.percent(50) ? 1 : random.within(2, 5));
  problem.queries = draw_rows(random);
  problem.keys = random.percent(35) ? problem.queries : draw_rows(random);
  const auto too_much = [&] {
    return problem.batch * problem.heads * problem.queries * problem.keys * problem.depth >
           kAttentionWorkMax;
  };
  if (too_much()) problem.batch = 1;
  if (too_much()) problem.key_heads = 1, problem.heads = std::min<std::int64_t>(problem.heads, 2);
  while (too_much()) {
    std::int64_t& longer = problem.queries > problem.keys ? problem.queries : problem.keys;
    longer -= longer / 3;
  }
}

using Spacings = std::array<std::pair<std::string_view, attention::Spacing*>, 8>;
Spacings spacings_of(AttentionProblem& p) {
  return {{{"q", &p.q},
           {"k", &p.k},
           {"v", &p.v},
           {"o", &p.o},
           {"dout", &p.dout},
           {"dq", &p.dq},
           {"dk", &p.dk},
           {"dv", &p.dv}}};
}

using Extents = std::array<std::pair<std::string_view, std::int64_t*>, 6>;
Extents extents_of(AttentionProblem& p) {
  return {{{"batch", &p.batch},
           {"queries", &p.queries},
           {"keys", &p.keys},
           {"heads", &p.heads},
           {"key_heads", &p.key_heads},
           {"depth", &p.depth}}};
}

// How far a query sees.
struct Bound {
  std::string_view name;
  std::int64_t* keys;
};
using Bounds = std::array<Bound, 2>;
Bounds bounds_of(AttentionProblem& p) { return {{{"left", &p.left}, {"right", &p.right}}}; }
constexpr std::int64_t kUnbounded = -1;

using Flags = std::array<std::pair<std::string_view, bool*>, 4>;
Flags flags_of(AttentionProblem& p) {
  return {{{"causal", &p.causal},
           {"backward", &p.backward},
           {"any_order", &p.any_order},
           {"balanced", &p.balanced}}};
}

template <class Number>
bool take(std::string_view text, Number& out) {
  const auto value = parse_number<Number>(text);
  if (value) out = *value;
  return value.has_value();
}

// "20480,64,2560".
bool take(std::string_view text, attention::Spacing& out) {
  const std::size_t first = text.find(',');
  const std::size_t second = text.find(',', first == text.npos ? first : first + 1);
  if (second == text.npos) return false;
  return take(text.substr(0, first), out.batch) &&
         take(text.substr(first + 1, second - first - 1), out.row) &&
         take(text.substr(second + 1), out.head);
}

bool take_value(std::string_view name, std::string_view value, RandomAttention& out) {
  if (name == "scale") return take(value, out.scale);
  if (name == "offset") return take(value, out.offset);
  if (name == "seed") return take(value, out.seed);
  if (name == "soft_cap") return take(value, out.problem.soft_cap);
  for (const Bound& bound : bounds_of(out.problem)) {
    if (bound.name == name) return take(value, *bound.keys);
  }
  for (const auto& [known, extent] : extents_of(out.problem)) {
    if (known == name) return take(value, *extent);
  }
  for (const auto& [known, spacing] : spacings_of(out.problem)) {
    if (known == name) return take(value, *spacing);
  }
  return false;
}

bool take_word(std::string_view word, RandomAttention& out) {
  for (const DType type : {kAttentionTypes[0], kAttentionTypes[1], kSmallType}) {
    if (word != name(type)) continue;
    out.problem.dtype = type;
    return true;
  }
  if (word == kFactorsWord) return out.factors = true;
  for (const auto& [known, flag] : flags_of(out.problem)) {
    if (known == word) return *flag = true;
  }
  return false;
}

// A window on either side or both, within the keys or a few beyond; a soft cap.
void draw_mask(Random& random, AttentionProblem& problem) {
  const std::int64_t most = problem.keys + 10;
  const auto bound = [&] { return random.within(0, random.percent(50) ? most : most / 8); };
  if (random.percent(30)) problem.left = bound();
  if (!problem.causal && random.percent(20)) problem.right = bound();
  const bool caps = random.percent(15) && !has_8_bits(problem);
  if (caps) problem.soft_cap = static_cast<float>(random.within(1, 200)) / 4;
}

// Those of a problem like this one that the library has a kernel for.
std::vector<std::int64_t> depths_like(AttentionProblem problem, const target::Arch& arch) {
  std::vector<std::int64_t> out;
  problem.queries = problem.keys = problem.heads = problem.key_heads = 1;
  for (problem.depth = kStepBytes; problem.depth <= kDepthMax; problem.depth += kStepBytes) {
    const auto whole = attention::normalised(problem);
    if (whole && attention::choose(*whole, arch, arch.sms)) out.push_back(problem.depth);
  }
  return out;
}

// One of eighths up to 2 for each head of keys, and now and then 0, as tensors of zeros have it.
Tensor draw_factors(Random& random, const AttentionProblem& problem) {
  Tensor out = Tensor::zeros(DType::kF32, {problem.batch, problem.key_heads});
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.elements()); ++i) {
    out.set(i, random.percent(5) ? 0 : static_cast<double>(random.within(1, 16)) / 8);
  }
  return out;
}

}  // namespace

ServedDepths served_depths(const target::Arch& arch) {
  return {.forward = depths_like({}, arch),
          .backward = depths_like({.backward = true}, arch),
          .of_8_bits = depths_like({.dtype = kSmallType}, arch)};
}

RandomAttention draw_attention(std::uint64_t seed, std::uint64_t number,
                               const ServedDepths& depths) {
  Random random(Random(seed ^ 0xa77e).bits() + number);
  RandomAttention out;
  out.seed = random.bits() >> 32;
  AttentionProblem& problem = out.problem;
  problem.dtype = random.one_of(kAttentionTypes);
  problem.causal = random.percent(50);
  problem.backward = random.percent(45) && !depths.backward.empty();
  (problem.backward ? problem.any_order : problem.balanced) = random.percent(50);
  const bool small = !problem.backward && !depths.of_8_bits.empty() && random.percent(30);
  if (small) problem.dtype = kSmallType;
  out.factors = small && random.percent(70);
  problem.depth = random.one_of(std::span(small              ? depths.of_8_bits
                                          : problem.backward ? depths.backward
                                                             : depths.forward));
  draw_shape(random, problem);
  draw_mask(random, problem);
  // Binary fractions, so that the text says them as they are.
  const bool usual = random.percent(40);
  const double scale = 1 / std::sqrt(static_cast<double>(problem.depth));
  out.scale = usual ? static_cast<float>(scale) : static_cast<float>(random.within(1, 32)) / 64;
  if (random.percent(50)) out.offset = kOffsetUnit * static_cast<int>(random.within(1, 15));
  if (random.percent(40)) return out;
  const std::array<attention::Part, 8> parts = attention::parts_of(problem);
  const Spacings spacings = spacings_of(problem);
  for (std::size_t i = 0; i < spacings.size(); ++i) {
    if (!problem.backward && i >= attention::kPartsOfForward) break;
    *spacings[i].second = draw_spacing(random, parts[i], problem.dtype);
  }
  return out;
}

std::string text(const RandomAttention& problem) {
  RandomAttention copy = problem;
  std::string out = format("{} {}", kAttentionWord, name(problem.problem.dtype));
  for (const auto& [name, extent] : extents_of(copy.problem)) {
    out += format(" {}={}", name, *extent);
  }
  for (const auto& [name, flag] : flags_of(copy.problem)) {
    if (*flag) out += format(" {}", name);
  }
  for (const Bound& bound : bounds_of(copy.problem)) {
    if (*bound.keys != kUnbounded) out += format(" {}={}", bound.name, *bound.keys);
  }
  if (problem.problem.soft_cap != 0) out += format(" soft_cap={}", problem.problem.soft_cap);
  if (problem.factors) out += format(" {}", kFactorsWord);
  out += format(" scale={}", problem.scale);
  for (const auto& [name, spacing] : spacings_of(copy.problem)) {
    if (*spacing == attention::Spacing{}) continue;
    out += format(" {}={},{},{}", name, spacing->batch, spacing->row, spacing->head);
  }
  if (problem.offset != 0) out += format(" offset={}", problem.offset);
  return out + format(" seed={}", problem.seed);
}

std::optional<RandomAttention> parse_attention(std::string_view text) {
  RandomAttention out;
  bool first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t equal = word.find('=');
    const bool fits = first ? word == kAttentionWord
                      : equal == word.npos
                          ? take_word(word, out)
                          : take_value(word.substr(0, equal), word.substr(equal + 1), out);
    if (!fits) return std::nullopt;
    first = false;
  }
  const bool placed = out.offset >= 0 && out.offset < 256 && out.offset % kOffsetUnit == 0;
  const bool scaled = std::isfinite(out.scale) && out.scale > 0;
  const bool takes_factors = !out.factors || has_8_bits(out.problem);
  const bool fits = placed && scaled && takes_factors;
  if (!fits || !attention::normalised(out.problem)) return std::nullopt;
  return out;
}

AttentionTensors make_inputs(const RandomAttention& problem, const AttentionNumerics& numerics) {
  const AttentionProblem& p = problem.problem;
  AttentionTensors out;
  const auto parts = attention::parts_of(p);
  Tensor* const read[] = {&out.q, &out.k, &out.v, nullptr, &out.dout};
  for (std::size_t i = 0; i < std::size(read); ++i) {
    if (read[i] == nullptr || (i >= attention::kPartsOfForward && !p.backward)) continue;
    *read[i] = Tensor::zeros(parts[i].dtype, {p.batch, parts[i].rows, parts[i].heads, p.depth});
    io::fill_tensor(*read[i],
                    {.fill = io::Fill::kNormal, .seed = problem.seed, .ordinal = i, .longest = 1});
  }
  if (p.backward) fill_forward(p, numerics, out);
  Random random(problem.seed);
  for (Tensor* each : {&out.q_scale, &out.k_scale, &out.v_scale}) {
    if (problem.factors) *each = draw_factors(random, p);
  }
  return out;
}

}  // namespace kiln::measure
