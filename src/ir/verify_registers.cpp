// Rules of the registers of tiles: of those that no instruction names, and between those of two tiles.
#include <algorithm>
#include <array>

#include "ir/effects.h"
#include "ir/names.h"
#include "ir/registers.h"
#include "ir/rules.h"
#include "layout/indices.h"
#include "support/tensor.h"

namespace kiln::ir {

namespace {

// The threads that execute together what stands inside: those of an inner level, of a region of the
// block, or of the block.
std::int64_t threads_around(const Function& f, const std::vector<OpId>& enclosing) {
  std::int64_t region = 0;
  for (auto id = enclosing.rbegin(); id != enclosing.rend(); ++id) {
    const OpData& data = f.ops[*id].data;
    if (const auto* some = std::get_if<Inthreads>(&data)) region = some->threads;
    const auto* parallel = std::get_if<Parallel>(&data);
    if (parallel == nullptr || parallel->level == Level::kThread) continue;
    if (parallel->level != Level::kBlock) return parallel->unit;
    return region != 0 ? region : parallel->threads.constant().value_or(0);
  }
  return 0;
}

// What is wrong with the rows and columns that a tile is padded to; "" if nothing.
std::string wrong_padding(const FragType& tile, const std::vector<std::int64_t>& padded) {
  if (padded.empty()) return "";
  if (padded.size() != 2) return format("padded to {} extents", padded.size());
  if (padded[0] == tile.rows && padded[1] == tile.cols) return "padded to what it is";
  const std::int64_t own[] = {tile.rows, tile.cols};
  for (std::size_t d = 0; d < 2; ++d) {
    const bool fits = padded[d] >= own[d] && (own[d] > 1 || padded[d] == 1);
    if (!fits) return format("{} padded to {}", own[d], padded[d]);
  }
  return "";
}

// What is wrong with a layout's deal of so many elements to so many lanes; "" if nothing.
std::string wrong_deal(const Layout& registers, std::int64_t elements, std::int64_t threads) {
  if (rank(registers) != 2) return "no layout of lanes and values";
  const std::int64_t lanes = size(mode(registers, 0));
  const std::int64_t values = size(mode(registers, 1));
  if (threads != 0 && lanes != threads) {
    return format("registers of {} lanes, {} threads hold it", lanes, threads);
  }
  // More than a block has threads, and than a thread has room for.
  constexpr std::int64_t kMost = 2048;
  if (lanes > kMost || values > kMost || lanes * values < elements) {
    return format("{} lanes hold {} elements in {} values each", lanes, elements, values);
  }
  const std::vector<std::int64_t> indices = indices_of(registers);
  std::vector<std::int64_t> holder(static_cast<std::size_t>(elements), -1);  // the last lane
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    for (std::int64_t value = 0; value < values; ++value) {
      const std::int64_t at = indices[static_cast<std::size_t>(value * lanes + lane)];
      if (at < 0 || at >= elements) return format("element {} of {}", at, elements);
      std::int64_t& last = holder[static_cast<std::size_t>(at)];
      if (last == lane) return format("lane {} holds element {} twice", lane, at);
      last = lane;
    }
  }
  const auto missing = std::ranges::find(holder, -1);
  return missing == holder.end() ? ""
                                 : format("no lane holds element {}", missing - holder.begin());
}

// What is wrong with the registers of a tile; "" if nothing.
std::string wrong_registers(const FragType& tile, const Alloc& alloc, std::int64_t threads) {
  if (!alloc.registers.valid()) return "";
  if (tile.role != Role::kTile) return "an instruction's operand with registers of its own";
  if (const std::string wrong = wrong_padding(tile, alloc.padded); !wrong.empty()) return wrong;
  const std::int64_t rows = alloc.padded.empty() ? tile.rows : alloc.padded[0];
  const std::int64_t cols = alloc.padded.empty() ? tile.cols : alloc.padded[1];
  if (!elements_fit(tile.dtype, {rows, cols})) return "too many elements";
  return wrong_deal(alloc.registers, rows * cols, threads);
}

// Each element of a tile is dealt out to some of the threads that hold it together.
void registers_make_the_tile(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_nested(f, [&](OpId id, const std::vector<OpId>& enclosing) {
    const auto* alloc = std::get_if<Alloc>(&f.ops[id].data);
    const FragType* tile = type_as<FragType>(f, f.ops[id].result);
    if (alloc == nullptr || tile == nullptr) return;
    const std::string wrong = wrong_registers(*tile, *alloc, threads_around(f, enclosing));
    if (!wrong.empty()) complain(mistakes, f, id, "{}", wrong);
  });
}

// Who uses a padded tile says what it does about what lies beyond its edge.
void padded_tiles_are_minded(const Module&, const Function& f, Mistakes& mistakes) {
  walk(f, f.body, [&](OpId id) {
    for_each_touch(f.ops[id], [&](const Touch& touch) {
      const auto* alloc = touch.value.valid() ? f.def_as<Alloc>(touch.value) : nullptr;
      if (alloc == nullptr || alloc->padded.empty() || touch.beyond != Beyond::kRefuses) return;
      complain(mistakes, f, id, "it takes no padded tile, as `%{}` is", f.values[touch.value].name);
    });
    const auto* alloc = std::get_if<Alloc>(&f.ops[id].data);
    if (alloc == nullptr || alloc->padded.empty() || alloc->registers.valid()) return;
    complain(mistakes, f, id, "padded, and no layout of its registers");
  });
}

// Whether both tiles of an operation have registers that can be asked.
bool have_registers(const Function& f, std::array<ValueId, 2> tiles, OpId id, Mistakes& mistakes) {
  for (const ValueId tile : tiles) {
    const auto* alloc = tile.valid() ? f.def_as<Alloc>(tile) : nullptr;
    if (alloc == nullptr || (alloc->atom == nullptr && !alloc->registers.valid())) {
      complain(mistakes, f, id, "tiles without registers");
      return false;
    }
  }
  return std::ranges::all_of(tiles, [&](ValueId tile) {
    const FragType* type = type_as<FragType>(f, tile);
    return type != nullptr && wrong_registers(*type, *f.def_as<Alloc>(tile), 0).empty();
  });
}

// A scan goes along lines that its warp holds, by the same registers in both of its tiles.
void scans_are_lined_up(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Scan>(f, [&](const Scan& scan, OpId id) {
    if (!have_registers(f, {scan.frag, scan.source}, id, mistakes)) return;
    const auto* to = f.def_as<Alloc>(scan.frag);
    const auto* from = f.def_as<Alloc>(scan.source);
    const target::Fragment source = tile_registers(f, scan.source).map;
    const bool alike =
        source.tv == tile_registers(f, scan.frag).map.tv && from->padded == to->padded;
    if (alike && target::lines_along(source, static_cast<int>(scan.dimension))) return;
    complain(mistakes, f, id, "`%{}` does not hold its lines one warp each",
             f.values[scan.source].name);
  });
}

// Each lane, or its quad, holds what it is to hold. Tiles of unlike lanes are for registers-make-the-tile.
void conversions_need_no_memory(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Convert>(f, [&](const Convert& convert, OpId id) {
    if (!have_registers(f, {convert.frag, convert.source}, id, mistakes)) return;
    if (share_of(f, convert.frag).lanes != share_of(f, convert.source).lanes) return;
    if (!needs_no_memory(f, convert)) complain(mistakes, f, id, "lanes and quads lack elements");
  });
}

// Each lane holds the parts of the elements that it holds.
void recasts_stay_in_lanes(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Recast>(f, [&](const Recast& recast, OpId id) {
    if (!have_registers(f, {recast.frag, recast.source}, id, mistakes)) return;
    const RecastSides sides = sides_of(f, recast);
    if (!parts_of_values(tile_registers(f, sides.wide), tile_registers(f, sides.narrow),
                         sides.count)
             .empty()) {
      return;
    }
    complain(mistakes, f, id, "lanes of `%{}` do not hold what those of `%{}` do",
             f.values[recast.frag].name, f.values[recast.source].name);
  });
}

// What goes on two elements at a time can.
void pairs_are_pairs(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Apply>(f, [&](const Apply& apply, OpId id) {
    if (!apply.pairs) return;
    for (const ValueId tile : tiles_in(f, apply)) {
      if (!have_registers(f, {apply.frag, tile}, id, mistakes)) return;
    }
    if (!goes_in_pairs(f, apply)) complain(mistakes, f, id, "its elements do not go in pairs");
  });
}

// What warps leave out where factors are ones is a product with these factors.
void ones_are_factors(const Module&, const Function& f, Mistakes& mistakes) {
  for_each_op<Apply>(f, [&](const Apply& apply, OpId id) {
    if (!apply.ones.valid() || apply.ones == factors_of(f, apply)) return;
    complain(mistakes, f, id, "`%{}` holds more than it multiplies `%{}` with, or something else",
             f.values[apply.ones].name, f.values[apply.frag].name);
  });
}

constexpr Rule kRegisterRules[] = {
    {"registers-make-the-tile", Form::kLaidOut, registers_make_the_tile},
    {"padded-tiles-are-minded", Form::kLaidOut, padded_tiles_are_minded},
    {"scans-are-lined-up", Form::kLaidOut, scans_are_lined_up},
    {"conversions-need-no-memory", Form::kLaidOut, conversions_need_no_memory},
    {"recasts-stay-in-lanes", Form::kLaidOut, recasts_stay_in_lanes},
    {"pairs-are-pairs", Form::kAtoms, pairs_are_pairs},
    {"ones-are-factors", Form::kAtoms, ones_are_factors},
};

}  // namespace

std::span<const Rule> register_rules() { return kRegisterRules; }

}  // namespace kiln::ir
