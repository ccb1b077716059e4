#include "io/attributes.h"

#include <algorithm>
#include <functional>

#include "ir/effects.h"

namespace kiln::io {

namespace {

constexpr std::int64_t kTogether[] = {4, 8, 16};

bool same_line(const Place& a, const Place& b) { return a.line == b.line && a.file == b.file; }

// Whether its tiles may come in another order: they are rows and columns, and the program leaves to the compiler how
// they are gone through.
bool takes_order(const ir::Function& function, const ir::Parallel& launch) {
  constexpr std::size_t kRowsAndColumns = 2;
  if (launch.level != ir::Level::kBlock || launch.vars.size() != kRowsAndColumns ||
      !launch.cluster.empty() || launch.cooperative) {
    return false;
  }
  bool left = launch.persistent || launch.columns_together != 0 || launch.rows_together != 0 ||
              launch.hilbert;
  ir::walk(function, launch.body, [&](ir::OpId id) {
    const auto* loop = std::get_if<ir::For>(&function.ops[id].data);
    left = left || (loop != nullptr && loop->stages != 0);
  });
  return left;
}

std::vector<AttributeSetting> pipelines_at(const Place& place) {
  std::vector<AttributeSetting> out;
  for (const bool producer : {false, true}) {
    for (const std::int64_t stages : kStagesTried) {
      out.push_back({.place = place,
                     .text = pipeline_text(stages, producer),
                     .stages = stages,
                     .producer = producer});
    }
  }
  return out;
}

std::vector<AttributeSetting> orders_at(const Place& place) {
  std::vector<AttributeSetting> out = {{.place = place, .text = "no [[order]]"}};
  for (const std::int64_t together : kTogether) {
    out.push_back(
        {.place = place, .text = format("[[order(columns, {})]]", together), .columns = together});
    out.push_back(
        {.place = place, .text = format("[[order(rows, {})]]", together), .rows = together});
  }
  out.push_back({.place = place, .text = "[[order(hilbert)]]", .hilbert = true});
  return out;
}

// Sets what the setting is of; nothing of an operation that it is not for.
void set(const AttributeSetting& setting, const ir::Function& function, ir::Op& op) {
  auto* loop = std::get_if<ir::For>(&op.data);
  if (loop != nullptr && setting.stages != 0 && loop->stages != 0) {
    loop->stages = setting.stages;
    loop->producer = setting.producer;
  }
  auto* launch = std::get_if<ir::Parallel>(&op.data);
  if (launch != nullptr && setting.stages == 0 && takes_order(function, *launch)) {
    launch->columns_together = setting.columns;
    launch->rows_together = setting.rows;
    launch->hilbert = setting.hilbert;
  }
}

}  // namespace

std::string pipeline_text(std::int64_t stages, bool producer) {
  return format("[[pipeline({}{})]]", stages, producer ? ", producer" : "");
}

std::string text(const AttributeSetting& setting) {
  return format("{} at line {}", setting.text, setting.place.line);
}

std::vector<std::vector<AttributeSetting>> tunable_attributes(const Program& program,
                                                              std::size_t kernel) {
  const ir::Function& function = program.tile.functions[kernel];
  std::vector<std::vector<AttributeSetting>> out;
  // A tile function that is called twice has its loops twice, at one place.
  const auto add = [&](std::vector<AttributeSetting> settings) {
    const bool is_there = std::ranges::any_of(out, [&](const auto& others) {
      return same_line(others.front().place, settings.front().place) &&
             (others.front().stages == 0) == (settings.front().stages == 0);
    });
    if (!is_there) out.push_back(std::move(settings));
  };
  ir::walk(function, function.body, [&](ir::OpId id) {
    const ir::Op& op = function.ops[id];
    const Place place = program.sources.place(op.span);
    const auto* loop = std::get_if<ir::For>(&op.data);
    if (loop != nullptr && loop->stages != 0) add(pipelines_at(place));
    const auto* launch = std::get_if<ir::Parallel>(&op.data);
    if (launch != nullptr && takes_order(function, *launch)) add(orders_at(place));
  });
  return out;
}

Checked<bool> decide_with(const std::vector<AttributeSetting>& settings, Program& program,
                          std::size_t kernel) {
  ir::Function& function = program.tile.functions[kernel];
  for (ir::Op& op : function.ops) {
    for (const AttributeSetting& setting : settings) {
      if (same_line(setting.place, program.sources.place(op.span))) set(setting, function, op);
    }
  }
  program.decided = program.tile;
  return passes::run_passes(program.decided, program.diags);
}

}  // namespace kiln::io
