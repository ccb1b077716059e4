// Attention of kiln/attention_decode.h for kiln._core: problems that are prepared for a device, and
// launches.
#include "kiln/attention_decode.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <string_view>

#include "handles.h"
#include "on_device.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

// A problem that is prepared for a device.
struct AttentionDecode {
  kiln_attention_decode_problem problem = {};
  int device = 0;
  std::size_t workspace = 0;
};

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
  AttentionDecode attention{.problem = problem_of(fields), .device = device};
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = on_device(device, [&] {
      return kiln_attention_decode_prepare(&attention.problem, &attention.workspace);
    });
  }
  nb::object made = nb::none();
  if (ended.status == KILN_OK) made = nb::cast(attention);
  return nb::make_tuple(static_cast<int>(ended.status), ended.error, made);
}

// `addresses`: of q, k, v, lengths, page_table, o and lse.
nb::tuple launch_attention_decode(const AttentionDecode& attention,
                                  const std::vector<std::uintptr_t>& addresses, float scale,
                                  std::uintptr_t workspace, std::uintptr_t stream) {
  if (addresses.size() != 7) throw nb::value_error("seven addresses");
  const auto at = [&](std::size_t i) { return reinterpret_cast<void*>(addresses[i]); };
  kiln_attention_decode_operands operands = {};
  operands.q = at(0);
  operands.k = at(1);
  operands.v = at(2);
  operands.lengths = static_cast<const std::int32_t*>(at(3));
  operands.page_table = static_cast<const std::int32_t*>(at(4));
  operands.o = at(5);
  operands.lse = static_cast<float*>(at(6));
  operands.scale = scale;
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = on_device(attention.device, [&] {
      return kiln_attention_decode(&attention.problem, &operands,
                                   reinterpret_cast<void*>(workspace), attention.workspace,
                                   reinterpret_cast<void*>(stream));
    });
  }
  return nb::make_tuple(static_cast<int>(ended.status), ended.error);
}

std::string attention_decode_kernel(const AttentionDecode& attention) {
  std::string out;
  const Ended ended = on_device(attention.device, [&] {
    kiln_status status = KILN_OK;
    const char* text = kiln_attention_decode_kernel(&attention.problem, &status);
    if (text != nullptr) out = text;
    return status;
  });
  return ended.status == KILN_OK ? out : ended.error;
}

}  // namespace

void add_attention_decode(nb::module_& module) {
  nb::class_<AttentionDecode>(module, "AttentionDecode")
      .def_ro("workspace", &AttentionDecode::workspace)
      .def("kernel", attention_decode_kernel)
      .def("launch", launch_attention_decode);
  module.def("prepare_attention_decode", prepare_attention_decode);
}

}  // namespace kiln::python
