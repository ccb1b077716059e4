#include "programs/sample.h"

#include <cctype>

#include "programs/families.h"
#include "support/format.h"

namespace kiln::programs {

namespace {

void print(const Node& node, int depth, std::string& out) {
  out += std::string(static_cast<std::size_t>(2 * depth), ' ') + node.text;
  if (!node.has_body) {
    out += "\n";
    return;
  }
  out += " {\n";
  for (const Node& each : node.body) print(each, depth + 1, out);
  out += std::string(static_cast<std::size_t>(2 * depth), ' ') + "}\n";
}

}  // namespace

Node& Node::line(std::string statement) {
  body.push_back({.text = std::move(statement)});
  return body.back();
}

Node& Node::open(std::string head) {
  body.push_back({.text = std::move(head), .has_body = true});
  return body.back();
}

std::string text(const Sample& sample) {
  std::string out;
  for (const std::string& macro : sample.macros) out += macro + "\n";
  for (const std::string& each : sample.functions) out += each + "\n";
  Node function = sample.function;
  function.text = format("__co__ {} {}({})", sample.result, sample.function.text,
                         join(sample.params, ", ", [](const auto& param) { return param; }));
  print(function, 0, out);
  return out;
}

std::string options_text(const Sample& sample) {
  std::string out = format("--arch {}", sample.arch);
  if (!sample.shape.empty()) {
    out += " --shape " + join(sample.shape, ",", [](const io::Assignment& each) {
             return format("{}={}", each.name, each.value);
           });
  }
  for (const Definition& each : sample.defines) out += format(" -D {}={}", each.name, each.text);
  return out;
}

Sample draw_sample(const Stream& stream, std::uint64_t number) {
  Draw draw(Draw(stream.seed).bits() + number);
  (void)draw.bits();
  Sample out;
  out.seed = stream.seed;
  out.number = number;
  out.tiles = stream.tiles;
  out.function.has_body = true;
  out.function.text = "f";
  out.arch =
      stream.arch.empty() ? draw.of({"sm_80", "sm_90a", "sm_90a", "sm_90a", "sm_89"}) : stream.arch;
  Gen gen(draw, out);
  (stream.tiles ? draw_tile_family : draw_family)(gen);
  // A dimension that no parameter mentions in the end has no value either.
  std::erase_if(out.shape, [&](const io::Assignment& each) {
    const std::string params = list(out.params);
    const std::size_t at = params.find(each.name);
    // "N1" is not in "N12".
    for (std::size_t i = at; i != std::string::npos; i = params.find(each.name, i + 1)) {
      const std::size_t next = i + each.name.size();
      if (next == params.size() || std::isdigit(static_cast<unsigned char>(params[next])) == 0) {
        return false;
      }
    }
    return true;
  });
  return out;
}

}  // namespace kiln::programs
