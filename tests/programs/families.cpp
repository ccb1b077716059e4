#include "programs/families.h"

namespace kiln::programs {

namespace {

struct Family {
  const char* name;
  void (*add)(Gen& gen);
  int weight;
  bool hopper;  // needs sm_90a
};

constexpr Family kFamilies[] = {
    {"elementwise", add_elementwise, 30, false},
    {"copies", add_copies, 30, false},
    {"block", add_block, 20, false},
    {"futures", add_futures, 12, false},
    {"events", add_events, 16, false},
    {"extra", add_extra, 14, false},
    {"product", add_product, 16, false},
    {"wide_product", add_wide_product, 16, true},
};

const Family& pick(Gen& gen) {
  int total = 0;
  for (const Family& each : kFamilies) total += !each.hopper || gen.hopper() ? each.weight : 0;
  int at = gen.draw.within(0, total - 1);
  for (const Family& each : kFamilies) {
    at -= !each.hopper || gen.hopper() ? each.weight : 0;
    if (at < 0) return each;
  }
  return kFamilies[0];
}

}  // namespace

void draw_family(Gen& gen) {
  const int launches = gen.draw.of({1, 1, 1, 1, 2, 2, 3});
  for (int i = 0; i < launches; ++i) {
    const Family& family = pick(gen);
    gen.out.family += (i == 0 ? "" : "+") + std::string(family.name);
    family.add(gen);
  }
  if (!gen.out.returned.empty()) {
    gen.out.function.line(format("return {};", gen.out.returned));
  }
}

}  // namespace kiln::programs
