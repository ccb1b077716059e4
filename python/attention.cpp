// Attention of kiln/attention.h for kiln._core: problems that are prepared for a device, and launches.
#include "kiln/attention.h"

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
struct Attention {
  kiln_attention_problem problem = {};
  int device = 0;
};

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
      {"batch", &out.batch}, {"queries", &out.queries},     {"keys", &out.keys},
      {"heads", &out.heads}, {"key_heads", &out.key_heads}, {"depth", &out.depth},
      {"left", &out.left},   {"right", &out.right},         {"value_depth", &out.value_depth}};
  spacings.insert({{"q", &out.q}, {"k", &out.k}, {"v", &out.v}, {"o", &out.o}});
  for (const auto& [key, value] : fields) {
    const auto name = nb::cast<std::string>(key);
    if (const auto at = whole.find(name); at != whole.end()) {
      *at->second = nb::cast<std::int64_t>(value);
    } else if (const auto lies = spacings.find(name); lies != spacings.end()) {
      *lies->second = spacing_of(value);
    } else if (name == "type") {
      const auto type = nb::cast<std::string>(value);
      out.type = type == "bf16" ? KILN_BF16 : type == "f16" ? KILN_F16 : 0;  // 0 is refused
    } else if (name == "causal") {
      out.causal = nb::cast<bool>(value) ? 1 : 0;
    } else if (name == "window") {
      out.window = nb::cast<bool>(value) ? 1 : 0;
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
  const Attention attention{.problem = attention_of(fields), .device = device};
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = on_device(device, [&] { return kiln_attention_prepare(&attention.problem); });
  }
  nb::object made = nb::none();
  if (ended.status == KILN_OK) made = nb::cast(attention);
  return nb::make_tuple(static_cast<int>(ended.status), ended.error, made);
}

// `addresses`: of q, k, v, o and lse.
nb::tuple launch_attention(const Attention& attention, const std::vector<std::uintptr_t>& addresses,
                           float scale, std::uintptr_t stream) {
  if (addresses.size() != 5) throw nb::value_error("five addresses");
  const auto at = [&](std::size_t i) { return reinterpret_cast<void*>(addresses[i]); };
  kiln_attention_operands operands = {};
  operands.q = at(0);
  operands.k = at(1);
  operands.v = at(2);
  operands.o = at(3);
  operands.lse = static_cast<float*>(at(4));
  operands.scale = scale;
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = on_device(attention.device, [&] {
      return kiln_attention(&attention.problem, &operands, reinterpret_cast<void*>(stream));
    });
  }
  return nb::make_tuple(static_cast<int>(ended.status), ended.error);
}

// Of either kind of problem; `kernel_of` is the library's function.
template <class Prepared, class Function>
std::string kernel_text(const Prepared& prepared, Function kernel_of) {
  std::string out;
  const Ended ended = on_device(prepared.device, [&] {
    kiln_status status = KILN_OK;
    const char* text = kernel_of(&prepared.problem, &status);
    if (text != nullptr) out = text;
    return status;
  });
  return ended.status == KILN_OK ? out : ended.error;
}

std::string attention_kernel(const Attention& attention) {
  return kernel_text(attention, kiln_attention_kernel);
}

struct AttentionBackward {
  kiln_attention_backward_problem problem = {};
  int device = 0;
  std::size_t workspace = 0;
};

// `fields`: as of prepare_attention, and the spacing of dout.
nb::tuple prepare_attention_backward(const nb::dict& fields, int device) {
  AttentionBackward attention{.device = device};
  attention.problem.forward = attention_of(fields, {{"dout", &attention.problem.dout}});
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = on_device(device, [&] {
      return kiln_attention_backward_prepare(&attention.problem, &attention.workspace);
    });
  }
  nb::object made = nb::none();
  if (ended.status == KILN_OK) made = nb::cast(attention);
  return nb::make_tuple(static_cast<int>(ended.status), ended.error, made);
}

// `addresses`: of q, k, v, o, lse, dout, dq, dk and dv.
nb::tuple launch_attention_backward(const AttentionBackward& attention,
                                    const std::vector<std::uintptr_t>& addresses, float scale,
                                    std::uintptr_t workspace, std::uintptr_t stream) {
  if (addresses.size() != 9) throw nb::value_error("nine addresses");
  const auto at = [&](std::size_t i) { return reinterpret_cast<void*>(addresses[i]); };
  kiln_attention_backward_operands operands = {};
  operands.q = at(0);
  operands.k = at(1);
  operands.v = at(2);
  operands.o = at(3);
  operands.lse = static_cast<const float*>(at(4));
  operands.dout = at(5);
  operands.dq = at(6);
  operands.dk = at(7);
  operands.dv = at(8);
  operands.scale = scale;
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = on_device(attention.device, [&] {
      return kiln_attention_backward(&attention.problem, &operands,
                                     reinterpret_cast<void*>(workspace), attention.workspace,
                                     reinterpret_cast<void*>(stream));
    });
  }
  return nb::make_tuple(static_cast<int>(ended.status), ended.error);
}

std::string attention_backward_kernel(const AttentionBackward& attention) {
  return kernel_text(attention, kiln_attention_backward_kernel);
}

}  // namespace

void add_attention(nb::module_& module) {
  nb::class_<Attention>(module, "Attention")
      .def("kernel", attention_kernel)
      .def("launch", launch_attention);
  module.def("prepare_attention", prepare_attention);
  nb::class_<AttentionBackward>(module, "AttentionBackward")
      .def_ro("workspace", &AttentionBackward::workspace)
      .def("kernel", attention_backward_kernel)
      .def("launch", launch_attention_backward);
  module.def("prepare_attention_backward", prepare_attention_backward);
}

}  // namespace kiln::python
