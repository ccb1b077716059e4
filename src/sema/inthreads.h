// `inthreads` regions, as the statements inside of them see them. Internal to this folder.
#pragma once

#include <optional>

#include "sema/state.h"
#include "target/arch.h"

namespace kiln::sema {

constexpr std::int64_t kWarpgroup = target::kWarpgroupLanes;

// A run of the block's threads.
struct ThreadRun {
  std::int64_t first = 0;
  std::int64_t threads = 0;
};

// The threads of the innermost region; nothing outside of all.
[[nodiscard]] std::optional<ThreadRun> enclosing_region(const Sema& sema);

// Whether the variable is an index of one of the parallels.
[[nodiscard]] bool is_unit_index(const ir::Function& function, const std::vector<ir::OpId>& nest,
                                 ir::VarId var);

// Reports warpgroup-partial when the innermost region cuts a warpgroup.
[[nodiscard]] bool check_whole_warpgroups(Sema& sema, Span span, std::string_view what);

}  // namespace kiln::sema
