// Attention of kiln/attention.h for kiln._core: problems that are prepared for a device.
#include "kiln/attention.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <string_view>

#include "handles.h"
#include "prepared.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

kiln_attention_spacing spacing_of(nb::handle value) {
  const auto steps = nb::cast<std::vector<std::int64_t>>(value);
  if (steps.size() != 3) throw nb::value_error("three steps");
  return {steps[0], steps[1], steps[2]};
}

using Spacings = std::map<std::string_view, kiln_attention_spacing*>;

// `spacings` are those that the fields may have besides the problem's own.
kiln_attention_problem attention_of(const nb::dict& fields, Spacings spacings = {}) {
  kiln_attention_problem out = {};
  const std::map<std::string_view, std::int64_t*> whole = {
      {"batch", &out.batch},         {"queries", &out.queries},
      {"keys", &out.keys},           {"heads", &out.heads},
      {"key_heads", &out.key_heads}, {"depth", &out.depth},
      {"left", &out.left},           {"right", &out.right},
      {"sequences", &out.sequences}, {"value_depth", &out.value_depth}};
  const std::map<std::string_view, std::int32_t> types = {
      {"bf16", KILN_BF16}, {"f16", KILN_F16}, {"f8_e4m3", KILN_E4M3}};
  spacings.insert({{"q", &out.q}, {"k", &out.k}, {"v", &out.v}, {"o", &out.o}});
  for (const auto& [key, value] : fields) {
    const auto name = nb::cast<std::string>(key);
    if (const auto at = whole.find(name); at != whole.end()) {
      *at->second = nb::cast<std::int64_t>(value);
    } else if (const auto lies = spacings.find(name); lies != spacings.end()) {
      *lies->second = spacing_of(value);
    } else if (name == "type") {
      const auto type = nb::cast<std::string>(value);
      const auto named = types.find(type);
      out.type = named == types.end() ? 0 : named->second;  // 0 is refused
    } else if (name == "causal") {
      out.causal = nb::cast<bool>(value) ? 1 : 0;
    } else if (name == "window") {
      out.window = nb::cast<bool>(value) ? 1 : 0;
    } else if (name == "balanced") {
      out.balanced = nb::cast<bool>(value) ? 1 : 0;
    } else if (name == "soft_cap") {
      out.soft_cap = nb::cast<float>(value);
    } else {
      throw nb::key_error(name.c_str());
    }
  }
  return out;
}

// `fields`: those of kiln_attention_problem by name, a spacing as three steps.
nb::tuple prepare_attention(const nb::dict& fields, int device) {
  const kiln_attention_problem problem = attention_of(fields);
  return prepared(device, problem, [&](std::size_t& workspace) {
    return kiln_attention_workspace(&problem, &workspace);
  });
}

// `fields`: as of prepare_attention, and the spacing of dout and whether dq may be added up in any order.
nb::tuple prepare_attention_backward(const nb::dict& fields, int device) {
  kiln_attention_backward_problem problem = {};
  nb::dict rest;
  for (const auto& [name, value] : fields) {
    if (nb::cast<std::string>(name) != "any_order") rest[name] = value;
  }
  problem.forward = attention_of(rest, {{"dout", &problem.dout}});
  const bool any = fields.contains("any_order") && nb::cast<bool>(fields["any_order"]);
  problem.any_order = any ? 1 : 0;
  return prepared(device, problem, [&](std::size_t& workspace) {
    return kiln_attention_backward_prepare(&problem, &workspace);
  });
}

}  // namespace

void add_attention(nb::module_& module) {
  module.def("prepare_attention", prepare_attention);
  module.def("prepare_attention_backward", prepare_attention_backward);
}

}  // namespace kiln::python
