#include "explain/draw/access.h"

#include <algorithm>
#include <bit>

#include "support/check.h"
#include "support/format.h"
#include "target/arch.h"

namespace kiln::explain {

namespace {
constexpr int kVectorBytesMax = 16;

bool is_width(Index bytes) {
  return bytes >= 1 && bytes <= kVectorBytesMax &&
         std::has_single_bit(static_cast<std::uint64_t>(bytes));
}

// Checks that the lane's elements are one aligned run of bytes.
Checked<void> check_vector(const Memory& memory, const Access& access, const LaneAccess& lane,
                           Diagnostics& diags) {
  for (std::size_t i = 0; i < lane.coordinates.size(); ++i) {
    const Index wanted = lane.address + static_cast<Index>(i) * memory.element_bytes;
    const Index at = address_of(memory, lane.coordinates[i]);
    if (at == wanted) continue;
    return diags.report<diag::MapVectorTorn>({}, access.name, i, lane.lane, at, wanted)
        .help(
            "an access moves consecutive bytes: shorten the second mode, or order its elements as "
            "they lie in memory")
        .emit();
  }
  if (lane.address % access.bytes == 0) return {};
  return diags
      .report<diag::MapVectorAlignment>({}, access.name, lane.lane, lane.address, access.bytes)
      .help("move at most {} bytes at once", lane.address & -lane.address)
      .emit();
}

Checked<void> check_extent(const Memory& memory, const Layout& layout, const std::string& name,
                           Diagnostics& diags) {
  if (size(layout, 0) > target::kWarpLanes) {
    return diags.report<diag::MapAccessLanes>({}, name, size(layout, 0), target::kWarpLanes)
        .help("the first mode counts the lanes of one warp, the second a lane's elements")
        .emit();
  }
  const Index bytes = size(layout) / size(layout, 0) * memory.element_bytes;
  if (!is_width(bytes)) {
    return diags.report<diag::MapAccessWidth>({}, name, bytes)
        .help("give the second mode {} elements, or a smaller power of two of them",
              kVectorBytesMax / memory.element_bytes)
        .emit();
  }
  const Index elements = size(memory.layout);
  for (Index i = 0; i < size(layout); ++i) {
    const Index element = layout(i);
    if (element >= 0 && element < elements) continue;
    return diags
        .report<diag::MapOutside>(
            {}, format("`--access {}`", name), element,
            format("the tile of {} x {}", memory_rows(memory), memory_cols(memory)), elements - 1)
        .help("an access counts elements down the columns: row + {} * column", memory_rows(memory))
        .emit();
  }
  return {};
}

}  // namespace

int memory_rows(const Memory& memory) { return static_cast<int>(size(memory.layout, 0)); }

int memory_cols(const Memory& memory) {
  return static_cast<int>(size(memory.layout) / size(memory.layout, 0));
}

Index address_of(const Memory& memory, Index coordinate) {
  return memory.swizzle(memory.layout(coordinate) * memory.element_bytes);
}

Checked<Access> access_from_layout(const Memory& memory, const Layout& layout,
                                   const std::string& name, Diagnostics& diags) {
  if (const auto fits = check_extent(memory, layout, name, diags); !fits) {
    return Unexpected{fits.error()};
  }
  const Index lanes = size(layout, 0);
  const Index elements = size(layout) / lanes;
  Access access{name, static_cast<int>(elements * memory.element_bytes), {}};
  for (Index lane = 0; lane < lanes; ++lane) {
    LaneAccess one{static_cast<int>(lane), address_of(memory, layout(lane)), {}};
    for (Index i = 0; i < elements; ++i) one.coordinates.push_back(layout(lane + lanes * i));
    if (const auto whole = check_vector(memory, access, one, diags); !whole) {
      return Unexpected{whole.error()};
    }
    access.lanes.push_back(std::move(one));
  }
  return access;
}

Checked<Access> access_from_matrix_load(const Memory& memory, const target::Copy& copy,
                                        Diagnostics& diags) {
  constexpr int kRows = 8;
  const int width = kVectorBytesMax / memory.element_bytes;
  const int down = std::min(copy.matrices, memory_rows(memory) >= 2 * kRows ? 2 : 1);
  const int across = copy.matrices / down;
  Access access{std::string(copy.name), kVectorBytesMax, {}};
  if (memory_rows(memory) < kRows * down || memory_cols(memory) < width * across) {
    return diags
        .report<diag::MapMatrixTile>({}, copy.name, kRows * down, width * across,
                                     memory_rows(memory), memory_cols(memory))
        .help("load fewer matrices, or draw a larger tile")
        .emit();
  }
  for (int lane = 0; lane < kRows * copy.matrices; ++lane) {
    const auto slot = static_cast<int>(copy.address_map(lane));  // row + 8 * matrix
    const int row = slot % kRows + kRows * (slot / kRows % down);
    const int col = width * (slot / kRows / down);
    LaneAccess one{lane, 0, {}};
    for (int i = 0; i < width; ++i) {
      one.coordinates.push_back(row + static_cast<Index>(memory_rows(memory)) * (col + i));
    }
    one.address = address_of(memory, one.coordinates[0]);
    if (const auto whole = check_vector(memory, access, one, diags); !whole) {
      return Unexpected{whole.error()};
    }
    access.lanes.push_back(std::move(one));
  }
  return access;
}

std::vector<Phase> phases(const Access& access) {
  const auto step = static_cast<std::size_t>(sim::lanes_in_phase(access.bytes));
  const int words_each = kBanks / sim::lanes_in_phase(access.bytes);
  std::vector<Phase> out;
  for (std::size_t first = 0; first < access.lanes.size(); first += step) {
    Phase phase{.first = first, .count = std::min(step, access.lanes.size() - first)};
    std::vector<std::int64_t> words;
    for (std::size_t i = first; i < first + phase.count; ++i) {
      const Index word = access.lanes[i].address / kBankBytes;
      for (int w = 0; w < words_each; ++w) words.push_back(word + w);
    }
    phase.wavefronts =
        1 + sim::phase_conflicts(words.data(), static_cast<std::uint32_t>(words.size()));
    phase.words_of_bank.assign(kBanks, 0);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (const std::int64_t word : words) {
      ++phase.words_of_bank[static_cast<std::size_t>(word % kBanks)];
    }
    out.push_back(std::move(phase));
  }
  return out;
}

}  // namespace kiln::explain
