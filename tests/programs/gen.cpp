#include "programs/gen.h"

namespace kiln::programs {

std::string list(const std::vector<Extent>& extents) {
  return join(extents, ", ", [](const Extent& each) { return each.text; });
}
std::string list(const std::vector<std::int64_t>& numbers) {
  return join(numbers, ", ", [](std::int64_t each) { return format("{}", each); });
}
std::string list(const std::vector<std::string>& texts) {
  return join(texts, ", ", [](const std::string& each) { return each; });
}

Extent Gen::constant(std::int64_t value) {
  const int kind = draw.within(0, 9);
  if (kind < 6) return {format("{}", value), value};
  const std::string macro = name("T");
  if (kind < 8) {
    out.macros.push_back(format("#define {} {}", macro, value));
  } else if (kind < 9) {
    out.defines.push_back({macro, format("{}", value)});
    out.macros.push_back(format("#ifndef {0}\n#define {0} 1\n#endif", macro));
  } else {
    const std::string half = name("HALF");
    out.macros.push_back(format("#define {}(x) ((x) + {})", half, value / 2));
    out.macros.push_back(format("#define {} {}({})", macro, half, value - value / 2));
  }
  return {macro, value};
}

Extent Gen::dimension(std::int64_t value, std::int64_t tile) {
  if (value >= tile && draw.chance(25)) return constant(value);
  const std::string dim = name("N");
  out.shape.push_back({dim, format("{}", value)});
  return {dim, value};
}

Param Gen::param(const std::string& stem, DType type, std::vector<Extent> shape) {
  Param made{.name = name(stem), .type = type, .shape = std::move(shape)};
  out.params.push_back(format("global {} [{}] {}", kiln::name(type), list(made.shape), made.name));
  return made;
}

Param Gen::input(DType type, std::vector<Extent> shape) {
  Param made = param("x", type, std::move(shape));
  // The caller's memory, which is copied to the device before.
  if (draw.chance(12)) out.params.back().erase(0, std::string("global ").size());
  return made;
}

Param Gen::output(DType type, std::vector<Extent> shape) {
  Param made = param("y", type, std::move(shape));
  // The caller's memory, which is copied back behind.
  if (draw.chance(12)) {
    out.params.back() = format("{} [{}]& {}", kiln::name(type), list(made.shape), made.name);
  }
  written.push_back(made);
  return made;
}

Extent Gen::int_param(std::int64_t value) {
  const std::string made = name("n");
  out.params.push_back("int " + made);
  out.shape.push_back({made, format("{}", value)});
  return {made, value};
}

std::string Gen::float_param() {
  const std::string made = name("factor");
  out.params.push_back("f32 " + made);
  out.shape.push_back({made, draw.of({"0.5", "1.25", "-2", "3"})});
  return made;
}

std::string Gen::meet(const std::string& word, const std::string& event) {
  if (!draw.chance(20)) return format("{} {};", word, event);
  const std::string made = name("meet");
  out.functions.push_back(format("__co_device__ void {}(event e) {{\n  {} e;\n}}", made, word));
  return format("{}({});", made, event);
}

}  // namespace kiln::programs
