// Tiles of 32x4 f32, of which each of a warp's lanes has a row: 4 registers.
#include "explain/cost/liveness.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "ir/print.h"

namespace kiln::explain {
namespace {

constexpr int kRegisters = 4;

std::string alloc(const std::string& name) {
  return "      %" + name + " = alloc name=\"" + name +
         "\" registers=\"(32,4):(1,32)\" : frag<tile, f32, 32x4>\n";
}

std::string fill(const std::string& name) { return "      fill frag=%" + name + " value=%0\n"; }

// `to` is made of `from`, element by element.
std::string make(const std::string& to, const std::string& from) {
  static int number = 100;
  const std::string value = "%" + std::to_string(number++);
  return "      apply frag=%" + to + " row=r col=c body={\n        " + value + " = element frag=%" +
         from + " : f32\n        set_element frag=%" + to + " value=" + value + "\n      }\n";
}

std::string store(const std::string& name) {
  return "      store frag=%" + name + " view=%out element_run=1\n";
}

std::string loop(const std::string& body) {
  return "      for var=n upper=8 body={\n" + body + "      }\n";
}

// The names of what is alive at the fullest place.
std::string fullest(const std::string& body) {
  Sources sources;
  Diagnostics diags;
  const FileId file = sources.add("kernel.kir", R"(module arch=sm_80 form=decided

func @f(global %out: view<f32, global, [32, 4]>) {
  var b: parallel < 1
  var w: parallel < 1
  var n: loop < 8
  var r: loop < 32
  var c: loop < 4
  parallel level=block vars=[b] threads=32 name="f" bounds=[32] body={
    parallel level=group vars=[w] unit=32 body={
      %0 = const : f32
)" + body + "    }\n  }\n}\n");
  const auto module = ir::parse(sources, file, diags);
  EXPECT_TRUE(module.has_value()) << render_all(diags, sources);
  if (!module) return {};
  const ir::Function& function = module->functions[0];
  std::vector<int> registers(function.values.size());
  for (std::uint32_t v = 0; v < registers.size(); ++v) {
    const bool tile = std::holds_alternative<ir::FragType>(function.type(ir::ValueId{v}));
    registers[v] = tile ? kRegisters : 0;
  }
  const FullestPlace place = fullest_place(function, function.body, registers);
  std::string out;
  for (const ir::ValueId value : place.alive) out += function.def_as<ir::Alloc>(value)->name;
  EXPECT_EQ(place.registers, kRegisters * static_cast<int>(out.size()));
  return out;
}

TEST(Liveness, ATileThatAnotherIsMadeOfGivesItItsRegisters) {
  const std::string made = alloc("s") + alloc("p") + fill("s") + make("p", "s");
  EXPECT_EQ(fullest(made + store("p")), "s");
  EXPECT_EQ(fullest(made + store("p") + store("s")), "sp");
}

TEST(Liveness, WhatALoopFillsAgainIsNotCarriedAroundIt) {
  const std::string trip = fill("s") + store("s") + fill("p") + store("p");
  EXPECT_EQ(fullest(alloc("s") + alloc("p") + loop(trip)), "s");
}

TEST(Liveness, WhatALoopCarriesIsAliveInAllOfIt) {
  const std::string trip = make("l", "l") + fill("s") + store("s");
  EXPECT_EQ(fullest(alloc("l") + alloc("s") + fill("l") + loop(trip)), "ls");
  EXPECT_EQ(fullest(alloc("l") + alloc("s") + fill("l") + loop(fill("s") + store("s"))), "s");
}

TEST(Liveness, NothingIsFullWithoutTiles) { EXPECT_EQ(fullest(""), ""); }

}  // namespace
}  // namespace kiln::explain
