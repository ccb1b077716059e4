#include "io/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/random_bits.h"
#include "reference/outputs.h"

namespace kiln::io {

namespace {

// Work (reference::Outcome::work) that is done without asking, and that of a sample: some seconds
// of one core, and one.
constexpr double kFullWork = 4e9;
constexpr double kSampleWork = 1.5e9;
constexpr double kSampleBlocks = 64;  // more tell little more

constexpr std::string_view kCheckNames[] = {"", "full", "sample", "none"};

// Of each output: few rows that stand together, so that they share what they need.
constexpr std::int64_t kRuns = 8;
constexpr std::int64_t kRowsOfRun = 8;
constexpr std::int64_t kElementsOfRow = 256;  // where a row is an element

// `count` blocks of `all`, one of each share of the grid; empty where these are no fewer.
std::vector<std::int64_t> spread_blocks(std::int64_t all, std::int64_t count, std::uint64_t seed) {
  if (count >= all) return {};
  RandomBits random(seed);
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = all / count * i + std::min(i, all % count);
    const std::int64_t share = all / count + (i < all % count ? 1 : 0);
    out.push_back(first +
                  static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(share)));
  }
  return out;
}

}  // namespace

std::optional<Check> check_from_name(const std::string& name) {
  const auto* found = std::ranges::find(kCheckNames, name);
  if (found == std::end(kCheckNames)) return std::nullopt;
  return static_cast<Check>(found - std::begin(kCheckNames));
}

std::string check_names() { return "full, sample, none"; }

std::vector<std::int64_t> sample_of_blocks(Check check, std::int64_t all, std::uint64_t work,
                                           std::uint64_t seed) {
  const double each = std::max(static_cast<double>(work), 1.0);
  if (check == Check::kBySize && each * static_cast<double>(all) <= kFullWork) return {};
  const auto count =
      static_cast<std::int64_t>(std::clamp(std::floor(kSampleWork / each), 1.0, kSampleBlocks));
  return spread_blocks(all, count, seed);
}

std::vector<std::int64_t> more_blocks(const std::vector<std::int64_t>& blocks, std::int64_t all,
                                      std::uint64_t seed) {
  std::vector<std::int64_t> out = spread_blocks(all, 3 * std::ssize(blocks), seed + 1);
  if (out.empty()) return {};
  out.insert(out.end(), blocks.begin(), blocks.end());
  out.insert(out.end(), {0, all - 1});
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace {

// The rows of an output, and which of its elements the reference knows: all, where it knows none.
struct Rows {
  const std::vector<bool>& known;
  bool all = false;
  std::int64_t length = 1;
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t count() const { return (elements + length - 1) / length; }
  [[nodiscard]] bool knows(std::int64_t i) const {
    return all || known[static_cast<std::size_t>(i)];
  }
  // The next element from `i` on that is known or, the other way round, is not; at most `end`.
  [[nodiscard]] std::int64_t next(std::int64_t i, std::int64_t end, bool wanted) const {
    while (i < end && knows(i) != wanted) ++i;
    return i;
  }
  // The row's known elements; a run that goes on from the last one becomes one with it.
  void add(std::int64_t row, std::vector<reference::ElementRun>& runs) const {
    const std::int64_t end = std::min((row + 1) * length, elements);
    for (std::int64_t at = next(row * length, end, true); at < end; at = next(at, end, true)) {
      const std::int64_t past = next(at, end, false);
      if (!runs.empty() && runs.back().first + runs.back().count == at) {
        runs.back().count += past - at;
      } else {
        runs.push_back({at, past - at});
      }
      at = past;
    }
  }
};

}  // namespace

std::vector<reference::ElementRun> sample_of_rows(const reference::Output& output) {
  const auto elements = static_cast<std::int64_t>(output.expected.size());
  const bool any = std::find(output.known.begin(), output.known.end(), true) != output.known.end();
  const std::int64_t length = output.shape.size() > 1 ? output.shape.back() : kElementsOfRow;
  const Rows rows{output.known, !any, std::min(length, elements), elements};
  std::vector<std::int64_t> candidates;
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    const std::int64_t end = std::min((row + 1) * rows.length, elements);
    if (rows.next(row * rows.length, end, true) < end) candidates.push_back(row);
  }
  std::vector<reference::ElementRun> out;
  const auto count = static_cast<std::int64_t>(candidates.size());
  std::int64_t next = 0;  // of the candidates
  for (std::int64_t run = 0; run < kRuns; ++run) {
    const std::int64_t last = std::max<std::int64_t>(count - kRowsOfRun, 0);
    const std::int64_t first = std::max(last * run / (kRuns - 1), next);
    next = std::min(last * run / (kRuns - 1) + kRowsOfRun, count);
    for (std::int64_t i = first; i < next; ++i) {
      rows.add(candidates[static_cast<std::size_t>(i)], out);
    }
  }
  return out;
}

std::vector<reference::Output> unknown_outputs(const ir::Function& function,
                                               const ir::Arguments& arguments) {
  std::vector<reference::Output> out;
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    reference::Output output;
    output.name = slot.name;
    output.param = slot.param;
    if (const auto* view = std::get_if<ir::ViewType>(&function.type(slot.value))) {
      output.dtype = view->dtype;
      for (const ir::Expr& extent : view->shape) {
        output.shape.push_back(extent.evaluate(arguments.vars));
      }
    } else if (const auto* scalar = std::get_if<ir::ScalarType>(&function.type(slot.value))) {
      output.dtype = scalar->dtype;
    }
    std::size_t elements = 1;
    for (const std::int64_t extent : output.shape) elements *= static_cast<std::size_t>(extent);
    output.expected.assign(elements, std::numeric_limits<double>::quiet_NaN());
    output.bound.assign(elements, std::numeric_limits<double>::infinity());
    output.known.assign(elements, false);
    out.push_back(std::move(output));
  }
  return out;
}

}  // namespace kiln::io
