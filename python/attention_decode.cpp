// Attention of kiln/attention_decode.h for kiln._core: problems that are prepared for a device.
#include "kiln/attention_decode.h"

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

kiln_attention_decode_problem problem_of(const nb::dict& fields) {
  kiln_attention_decode_problem out = {};
  const std::map<std::string_view, std::int64_t*> whole = {
      {"batch", &out.batch},
      {"queries", &out.queries},
      {"heads", &out.heads},
      {"key_heads", &out.key_heads},
      {"depth", &out.depth},
      {"keys", &out.keys},
      {"page_size", &out.page_size},
      {"pages", &out.pages},
      {"pages_of_sequence", &out.pages_of_sequence}};
  for (const auto& [key, value] : fields) {
    const auto name = nb::cast<std::string>(key);
    if (const auto at = whole.find(name); at != whole.end()) {
      *at->second = nb::cast<std::int64_t>(value);
    } else if (name == "k" || name == "v") {
      (name == "k" ? out.k : out.v) = spacing_of(value);
    } else if (name == "type") {
      const auto type = nb::cast<std::string>(value);
      out.type = type == "bf16" ? KILN_BF16 : type == "f16" ? KILN_F16 : 0;  // 0 is refused
    } else if (name == "causal") {
      out.causal = nb::cast<bool>(value) ? 1 : 0;
    } else {
      throw nb::key_error(name.c_str());
    }
  }
  return out;
}

// `fields`: those of kiln_attention_decode_problem by name, a spacing as three steps.
nb::tuple prepare_attention_decode(const nb::dict& fields, int device) {
  const kiln_attention_decode_problem problem = problem_of(fields);
  return prepared(device, problem, [&](std::size_t& workspace) {
    return kiln_attention_decode_prepare(&problem, &workspace);
  });
}

}  // namespace

void add_attention_decode(nb::module_& module) {
  module.def("prepare_attention_decode", prepare_attention_decode);
}

}  // namespace kiln::python
