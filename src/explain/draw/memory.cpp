#include "explain/draw/memory.h"

#include <algorithm>

#include "explain/draw/palette.h"
#include "layout/print.h"
#include "support/check.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

constexpr int kChunkBanks = 4;  // of 16 bytes, the piece that swizzles move

Index coordinate(const Grid& grid, int row, int col) {
  return row + static_cast<Index>(row_count(grid)) * col;
}

// Calls work(row, col, cell) for each cell.
template <class Work>
void each_cell(Grid& grid, Work&& work) {
  for (int row = 0; row < row_count(grid); ++row) {
    for (int col = 0; col < col_count(grid); ++col) work(row, col, cell_at(grid, row, col));
  }
}

std::string memory_title(const Memory& memory) {
  std::string out = format("{} x {} of {} byte{}", memory_rows(memory), memory_cols(memory),
                           memory.element_bytes, memory.element_bytes == 1 ? "" : "s");
  if (memory.swizzle.bits > 0) out += format(", {} on bytes", to_text(memory.swizzle));
  return out;
}

Grid bank_grid(const Memory& memory) {
  Grid grid = make_grid(memory.row_name, memory_rows(memory), memory.col_name, memory_cols(memory));
  grid.title = memory_title(memory);
  grid.detail_name = "bank";
  grid.detail_extends = false;
  grid.properties = {{"layout", to_text(memory.layout)},
                     {"swizzle", to_text(memory.swizzle)},
                     {"element_bytes", memory.element_bytes},
                     {"rows", memory_rows(memory)},
                     {"cols", memory_cols(memory)}};
  const int covered = std::min(memory.element_bytes / kBankBytes, kChunkBanks);
  each_cell(grid, [&](int row, int col, Cell& cell) {
    const Index address = address_of(memory, coordinate(grid, row, col));
    KILN_CHECK(address >= 0, "address {}", address);
    const int bank = bank_of(address);
    const Index element = address / memory.element_bytes;
    cell.label = std::to_string(element);
    cell.detail = format("b{:02}", bank);
    cell.owner = bank;
    cell.colour = category_colour(bank) + covered / 2;
    cell.facts = {
        {"row", row}, {"col", col}, {"index", element}, {"address", address}, {"bank", bank}};
  });
  return grid;
}

std::vector<LegendEntry> bank_legend() {
  std::vector<LegendEntry> out;
  for (int first = 0; first < kBanks; first += kChunkBanks) {
    out.push_back({LegendKind::kColour, category_colour(first + 2),
                   format("banks {} to {}", first, first + kChunkBanks - 1)});
  }
  return out;
}

// Whether one of the banks that `bytes` bytes at `address` lie in is asked for two words.
bool in_conflict(const Phase& phase, Index address, int bytes) {
  for (Index at = address / kBankBytes; at <= (address + bytes - 1) / kBankBytes; ++at) {
    if (phase.words_of_bank[static_cast<std::size_t>(at % kBanks)] > 1) return true;
  }
  return false;
}

void mark(const Memory& memory, const LaneAccess& lane, const Phase& phase, int number,
          Grid& grid) {
  for (const Index at : lane.coordinates) {
    const auto rows = static_cast<Index>(row_count(grid));
    Cell& cell = cell_at(grid, static_cast<int>(at % rows), static_cast<int>(at / rows));
    const bool first = cell.mark.empty();
    cell.mark = first ? thread_name(lane.lane) : cell.mark.substr(0, 3) + "+";
    cell.conflict =
        cell.conflict || in_conflict(phase, address_of(memory, at), memory.element_bytes);
    if (!first) continue;
    cell.facts.push_back({"lane", lane.lane});
    cell.facts.push_back({"phase", number});
  }
}

std::string counted(Index count, std::string_view word) {
  return format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string phase_note(const Access& access, const Phase& phase, std::size_t number) {
  const auto busiest = std::max_element(phase.words_of_bank.begin(), phase.words_of_bank.end());
  return format("phase {}: {} to {}, {}, busiest bank {} gives {}", number,
                thread_name(access.lanes[phase.first].lane),
                thread_name(access.lanes[phase.first + phase.count - 1].lane),
                counted(phase.wavefronts, "wavefront"), busiest - phase.words_of_bank.begin(),
                counted(*busiest, "word"));
}

void add_access(const Memory& memory, const Access& access, Grid& grid) {
  const std::vector<Phase> parts = phases(access);
  Index wavefronts = 0;
  Index worst = 1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    wavefronts += parts[i].wavefronts;
    worst = std::max(worst, parts[i].wavefronts);
    for (std::size_t lane = 0; lane < parts[i].count; ++lane) {
      mark(memory, access.lanes[parts[i].first + lane], parts[i], static_cast<int>(i), grid);
    }
  }
  const auto needed = static_cast<Index>(parts.size());
  grid.mark_name = format("lane of {}", access.name);
  grid.notes.push_back(format(
      "{}: {} x {}, {}, {}: {}", access.name,
      counted(static_cast<Index>(access.lanes.size()), "lane"), counted(access.bytes, "byte"),
      counted(needed, "phase"), counted(wavefronts, "wavefront"),
      worst == 1 ? "no bank conflict" : format("{}-way bank conflict", worst)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    grid.notes.push_back(phase_note(access, parts[i], i));
  }
  const std::vector<Property> properties = {
      {"access", access.name},      {"lanes", static_cast<Index>(access.lanes.size())},
      {"bytes_each", access.bytes}, {"phases", needed},
      {"wavefronts", wavefronts},   {"conflicts", wavefronts - needed},
      {"worst_ways", worst}};
  grid.properties.insert(grid.properties.end(), properties.begin(), properties.end());
}

}  // namespace

Picture index_picture(const std::string& title, const Layout& layout) {
  Picture picture{.title = title};
  picture.owners = {.word = "index", .prefix = "", .count = 0};
  const auto rows = static_cast<int>(size(layout, 0));
  Grid grid = make_grid("i", rows, "j", static_cast<int>(size(layout)) / rows);
  grid.title = format("{} x {}, index of each coordinate", row_count(grid), col_count(grid));
  grid.properties = {{"layout", to_text(layout)},
                     {"rows", row_count(grid)},
                     {"cols", col_count(grid)},
                     {"cosize", cosize(layout)}};
  each_cell(grid, [&](int row, int col, Cell& cell) {
    const Index index = layout(coordinate(grid, row, col));
    cell.label = std::to_string(index);
    cell.colour = ramp_colour(index, cosize(layout) - 1);
    cell.facts = {{"row", row}, {"col", col}, {"index", index}};
    if (index >= 0) cell.owner = static_cast<int>(index);
  });
  picture.legend = {{LegendKind::kColour, ramp_colour(0, 1), "first"},
                    {LegendKind::kColour, ramp_colour(1, 1), "last in memory"}};
  picture.grids.push_back(std::move(grid));
  return picture;
}

Picture memory_picture(const std::string& title, const Memory& memory, const Access* access) {
  Picture picture{.title = title};
  picture.owners = {.word = "bank", .prefix = "b", .count = kBanks};
  picture.legend = bank_legend();
  Grid grid = bank_grid(memory);
  if (access != nullptr) {
    add_access(memory, *access, grid);
    picture.legend.push_back({LegendKind::kMark, -1, "touched by the access"});
    picture.legend.push_back({LegendKind::kConflict, -1, "touched, in a bank conflict"});
  }
  picture.grids.push_back(std::move(grid));
  return picture;
}

}  // namespace kiln::explain
