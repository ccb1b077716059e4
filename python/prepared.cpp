#include "prepared.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>

#include "handles.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

using Values = std::span<const kiln_value>;

struct Place {
  void* workspace;
  std::size_t workspace_bytes;
  void* stream;
};

template <class T>
const T* at(Values values, std::size_t place) {
  return static_cast<const T*>(values[place].data);
}

kiln_status start_on(const kiln_gemm_problem& problem, Values values, const Place& place) {
  kiln_gemm_operands operands = {};
  operands.a = values[0].data;
  operands.b = values[1].data;
  operands.c = values[2].data;
  operands.bias = values[3].data;
  operands.residual = values[4].data;
  operands.a_scale = values[5].data;
  operands.b_scale = values[6].data;
  operands.metadata = values[7].data;
  operands.group_of_tile = at<std::int32_t>(values, 8);
  operands.rows_of_group = at<std::int32_t>(values, 9);
  operands.alpha = static_cast<float>(values[10].real);
  operands.beta = static_cast<float>(values[11].real);
  return kiln_gemm(&problem, &operands, place.workspace, place.workspace_bytes, place.stream);
}

kiln_status start_on(const kiln_attention_problem& problem, Values values, const Place& place) {
  kiln_attention_operands operands = {};
  operands.q = values[0].data;
  operands.k = values[1].data;
  operands.v = values[2].data;
  operands.o = values[3].data;
  operands.lse = static_cast<float*>(values[4].data);
  operands.scale = static_cast<float>(values[5].real);
  operands.cu_seqlens_q = at<std::int32_t>(values, 6);
  operands.cu_seqlens_k = at<std::int32_t>(values, 7);
  operands.q_scale = at<float>(values, 8);
  operands.k_scale = at<float>(values, 9);
  operands.v_scale = at<float>(values, 10);
  operands.workspace = place.workspace;
  operands.workspace_bytes = place.workspace_bytes;
  return kiln_attention(&problem, &operands, place.stream);
}

kiln_status start_on(const kiln_attention_backward_problem& problem, Values values,
                     const Place& place) {
  kiln_attention_backward_operands operands = {};
  operands.q = values[0].data;
  operands.k = values[1].data;
  operands.v = values[2].data;
  operands.o = values[3].data;
  operands.lse = at<float>(values, 4);
  operands.dout = values[5].data;
  operands.dq = values[6].data;
  operands.dk = values[7].data;
  operands.dv = values[8].data;
  operands.scale = static_cast<float>(values[9].real);
  operands.cu_seqlens_q = at<std::int32_t>(values, 10);
  operands.cu_seqlens_k = at<std::int32_t>(values, 11);
  return kiln_attention_backward(&problem, &operands, place.workspace, place.workspace_bytes,
                                 place.stream);
}

kiln_status start_on(const kiln_attention_decode_problem& problem, Values values,
                     const Place& place) {
  kiln_attention_decode_operands operands = {};
  operands.q = values[0].data;
  operands.k = values[1].data;
  operands.v = values[2].data;
  operands.lengths = at<std::int32_t>(values, 3);
  operands.page_table = at<std::int32_t>(values, 4);
  operands.o = values[5].data;
  operands.lse = static_cast<float*>(values[6].data);
  operands.scale = static_cast<float>(values[7].real);
  return kiln_attention_decode(&problem, &operands, place.workspace, place.workspace_bytes,
                               place.stream);
}

const char* kernel_on(const kiln_gemm_problem& problem, kiln_status* status) {
  return kiln_gemm_kernel(&problem, status);
}
const char* kernel_on(const kiln_attention_problem& problem, kiln_status* status) {
  return kiln_attention_kernel(&problem, status);
}
const char* kernel_on(const kiln_attention_backward_problem& problem, kiln_status* status) {
  return kiln_attention_backward_kernel(&problem, status);
}
const char* kernel_on(const kiln_attention_decode_problem& problem, kiln_status* status) {
  return kiln_attention_decode_kernel(&problem, status);
}

std::string kernel_of(const Prepared& prepared) {
  std::string out;
  const Ended ended = on_device(prepared.device, [&] {
    kiln_status status = KILN_OK;
    const auto name = [&](const auto& problem) { return kernel_on(problem, &status); };
    const char* text = std::visit(name, prepared.problem);
    if (text != nullptr) out = text;
    return status;
  });
  return ended.status == KILN_OK ? out : ended.error;
}

// `given`: addresses and real numbers, as `start` takes them.
std::array<kiln_value, kValuesMax> values_of(const nb::list& given) {
  if (given.size() > kValuesMax) throw nb::value_error("too many values");
  std::array<kiln_value, kValuesMax> out = {};
  for (std::size_t i = 0; i < given.size(); ++i) {
    const nb::handle each = given[i];
    if (nb::isinstance<nb::float_>(each)) {
      out[i].real = nb::cast<double>(each);
    } else {
      out[i].data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(each));
    }
  }
  return out;
}

nb::tuple launch(const Prepared& prepared, const nb::list& given, std::uintptr_t workspace,
                 std::uintptr_t stream) {
  const auto values = values_of(given);
  Ended ended;
  {
    nb::gil_scoped_release others_go_on;
    ended = start(prepared, values, reinterpret_cast<void*>(workspace),
                  reinterpret_cast<void*>(stream));
  }
  return nb::make_tuple(static_cast<int>(ended.status), ended.error);
}

// Bytes between the begins of two tensors, of which `low` and `high` are the reaches.
bool touch(std::uint64_t between, const Reach& low, const Reach& high, std::uint64_t step) {
  if (low.all <= between) return false;
  if (step == 0) return true;
  // Rows of both in the same steps: side by side.
  const std::uint64_t past = between % step;
  return past < low.row || step - past < high.row;
}

Apart apart_of(std::size_t place, const nb::tuple& reach, const nb::list& others) {
  const auto reach_of = [](const nb::handle row) {
    const auto fields = nb::cast<nb::tuple>(row);
    return Reach{nb::cast<std::uint64_t>(fields[0]), nb::cast<std::uint64_t>(fields[1])};
  };
  Apart out{.place = place, .reach = reach_of(reach), .others = {}};
  for (const nb::handle each : others) {
    const auto row = nb::cast<nb::tuple>(each);
    out.others.push_back({.place = nb::cast<std::size_t>(row[0]),
                          .reach = reach_of(row[1]),
                          .step = nb::cast<std::uint64_t>(row[2]),
                          .may_coincide = nb::cast<bool>(row[3])});
  }
  return out;
}

}  // namespace

Ended start(const Prepared& prepared, std::span<const kiln_value> values, void* workspace,
            void* stream) {
  const Place place{workspace, prepared.workspace, stream};
  return on_device(prepared.device, [&] {
    return std::visit([&](const auto& problem) { return start_on(problem, values, place); },
                      prepared.problem);
  });
}

std::optional<std::size_t> Apart::shared(std::span<const kiln_value> values) const {
  const auto begin_of = [&](std::size_t which) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(values[which].data));
  };
  const std::uint64_t written = begin_of(place);
  for (const Neighbour& other : others) {
    const std::uint64_t begin = begin_of(other.place);
    if (other.may_coincide && begin == written) continue;
    const bool behind = begin >= written;
    if (behind ? touch(begin - written, reach, other.reach, other.step)
               : touch(written - begin, other.reach, reach, other.step)) {
      return other.place;
    }
  }
  return std::nullopt;
}

void add_prepared(nb::module_& module) {
  nb::class_<Prepared>(module, "Prepared")
      .def_ro("workspace", &Prepared::workspace)
      .def("kernel", kernel_of)
      .def("launch", launch);
  nb::class_<Apart>(module, "Apart").def("shared", [](const Apart& apart, const nb::list& given) {
    const auto values = values_of(given);
    const auto place = apart.shared(values);
    return place ? static_cast<int>(*place) : -1;
  });
  module.def("apart", apart_of);
}

}  // namespace kiln::python
