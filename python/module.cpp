// kiln._core: kiln/kiln.h as a module of Python. The classes that users see are in python/kiln.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "api/devices.h"
#include "dlpack_exchange.h"
#include "handles.h"
#include "kiln/kiln.h"

namespace nb = nanobind;
namespace dlpack = kiln::python::dlpack;
using kiln::python::Plan;

namespace {

struct FreeProgram {
  void operator()(kiln_program* program) const { kiln_program_free(program); }
};
struct FreeReport {
  void operator()(kiln_report* report) const { kiln_report_free(report); }
};
struct FreeExplanation {
  void operator()(kiln_explanation* one) const { kiln_explanation_free(one); }
};

// What of a function of kiln/kiln.h is true beside its result.
struct Outcome {
  int status = KILN_OK;
  std::string error;  // kiln_last_error, "" when it went well
};

struct Program {
  std::unique_ptr<kiln_program, FreeProgram> handle;
};

struct Report {
  std::unique_ptr<kiln_report, FreeReport> handle;
};

// Text of the user's file, which may hold anything.
nb::object text_of(const char* text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
}

nb::list diagnostics_of(const kiln_diagnostic* rows, std::size_t count) {
  static constexpr const char* kSeverities[] = {"error", "warning", "note"};
  nb::list out;
  for (std::size_t i = 0; i < count; ++i) {
    const kiln_diagnostic& row = rows[i];
    out.append(nb::make_tuple(row.id, kSeverities[row.severity], text_of(row.message),
                              text_of(row.help), text_of(row.file), row.line, row.column,
                              text_of(row.text)));
  }
  return out;
}

std::vector<const char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  for (const std::string& text : texts) out.push_back(text.c_str());
  return out;
}

nb::tuple compile(const std::optional<std::string>& file, const std::optional<std::string>& source,
                  const std::optional<std::string>& arch, const std::vector<std::string>& defines,
                  const std::vector<std::string>& folders) {
  const std::vector<const char*> define_texts = pointers_of(defines);
  const std::vector<const char*> folder_texts = pointers_of(folders);
  kiln_compile_options options = {};
  if (file) options.file = file->c_str();
  if (source) options.source = source->c_str();
  if (arch) options.arch = arch->c_str();
  options.defines = define_texts.data();
  options.define_count = define_texts.size();
  options.folders = folder_texts.data();
  options.folder_count = folder_texts.size();
  kiln_program* made = nullptr;
  Outcome outcome;
  {
    nb::gil_scoped_release others_go_on;
    outcome.status = kiln_compile(&options, &made);
    if (outcome.status != KILN_OK) outcome.error = kiln_last_error();
  }
  nb::object program = nb::none();
  if (made != nullptr) {
    program = nb::cast(Program{std::unique_ptr<kiln_program, FreeProgram>(made)});
  }
  return nb::make_tuple(outcome.status, text_of(outcome.error.c_str()), program);
}

nb::tuple parameter_of(const kiln_parameter& row) {
  nb::list dims;
  for (std::size_t d = 0; d < row.rank; ++d) dims.append(text_of(row.dims[d]));
  return nb::make_tuple(row.name, row.dtype, row.is_tensor != 0, nb::tuple(dims),
                        row.is_global != 0, row.is_read != 0, row.is_written != 0,
                        row.is_deciding != 0);
}

nb::list kernels_of(const Program& program) {
  std::size_t count = 0;
  const kiln_kernel* rows = kiln_program_kernels(program.handle.get(), &count);
  nb::list out;
  for (std::size_t i = 0; i < count; ++i) {
    const kiln_kernel& row = rows[i];
    nb::list parameters;
    for (std::size_t p = 0; p < row.parameter_count; ++p) {
      parameters.append(parameter_of(row.parameters[p]));
    }
    nb::list dimensions;
    for (std::size_t d = 0; d < row.dimension_count; ++d) dimensions.append(row.dimensions[d]);
    nb::object result = nb::none();
    if (row.result != nullptr) result = parameter_of(*row.result);
    out.append(nb::make_tuple(row.name, parameters, result, dimensions));
  }
  return out;
}

// An array as kiln._arrays describes it; whoever calls keeps its memory alive.
struct Array {
  std::string name;
  std::uintptr_t address = 0;
  std::string dtype;
  std::vector<std::int64_t> shape;
};

std::vector<Array> arrays_of(const nb::list& given) {
  std::vector<Array> out;
  for (const nb::handle each : given) {
    const auto row = nb::cast<nb::tuple>(each);
    out.push_back({nb::cast<std::string>(row[0]), nb::cast<std::uintptr_t>(row[1]),
                   nb::cast<std::string>(row[2]), nb::cast<std::vector<std::int64_t>>(row[3])});
  }
  return out;
}

struct Number {
  std::string name;
  kiln_scalar value = {};
};

std::vector<Number> numbers_of(const nb::list& given) {
  std::vector<Number> out;
  for (const nb::handle each : given) {
    const auto row = nb::cast<nb::tuple>(each);
    Number number{nb::cast<std::string>(row[0])};
    number.value.is_real = nb::isinstance<nb::float_>(row[1]) ? 1 : 0;
    if (number.value.is_real != 0) {
      number.value.real = nb::cast<double>(row[1]);
    } else {
      number.value.integer = nb::cast<std::int64_t>(row[1]);
    }
    out.push_back(std::move(number));
  }
  return out;
}

// Arrays and numbers, and a call of them.
class Arguments {
 public:
  explicit Arguments(const std::pair<nb::list, nb::list>& arguments)
      : arrays_(arrays_of(arguments.first)), numbers_(numbers_of(arguments.second)) {
    for (const Array& array : arrays_) {
      rows_.push_back({array.name.c_str(), reinterpret_cast<void*>(array.address),
                       array.dtype.c_str(), array.shape.data(), array.shape.size()});
    }
    for (const Number& number : numbers_) {
      scalars_.push_back(number.value);
      scalars_.back().name = number.name.c_str();
    }
  }

  [[nodiscard]] kiln_call call(const std::string& kernel) const {
    kiln_call out = {};
    out.kernel = kernel.c_str();
    out.arrays = rows_.data();
    out.array_count = rows_.size();
    out.scalars = scalars_.data();
    out.scalar_count = scalars_.size();
    return out;
  }

 private:
  std::vector<Array> arrays_;
  std::vector<Number> numbers_;
  std::vector<kiln_array> rows_;
  std::vector<kiln_scalar> scalars_;
};

// `how`: schedules, seed, steps_max.
nb::tuple run(const Program& program, bool by_reference, const std::string& kernel,
              const std::pair<nb::list, nb::list>& arguments, const nb::tuple& how) {
  const Arguments given(arguments);
  kiln_call call = given.call(kernel);
  call.schedules = nb::cast<std::int64_t>(how[0]);
  call.seed = nb::cast<std::uint64_t>(how[1]);
  call.steps_max = nb::cast<std::uint64_t>(how[2]);
  kiln_report* made = nullptr;
  Outcome outcome;
  {
    nb::gil_scoped_release others_go_on;
    outcome.status =
        (by_reference ? kiln_reference : kiln_simulate)(program.handle.get(), &call, &made);
    if (outcome.status != KILN_OK) outcome.error = kiln_last_error();
  }
  nb::object report = nb::none();
  if (made != nullptr) {
    report = nb::cast(Report{std::unique_ptr<kiln_report, FreeReport>(made)});
  }
  return nb::make_tuple(outcome.status, text_of(outcome.error.c_str()), report);
}

// `arguments`: arrays whose addresses do not count. Gives the diagnostics too, and three texts.
nb::tuple explain(const Program& program, const std::string& kernel,
                  const std::pair<nb::list, nb::list>& arguments) {
  const Arguments given(arguments);
  const kiln_call call = given.call(kernel);
  kiln_explanation* made = nullptr;
  Outcome outcome;
  {
    nb::gil_scoped_release others_go_on;
    outcome.status = kiln_explain(program.handle.get(), &call, &made);
    if (outcome.status != KILN_OK) outcome.error = kiln_last_error();
  }
  const std::unique_ptr<kiln_explanation, FreeExplanation> held(made);
  if (made == nullptr) {
    const nb::tuple texts = nb::make_tuple("", "", "");
    return nb::make_tuple(outcome.status, text_of(outcome.error.c_str()), nb::list(), texts);
  }
  std::size_t count = 0;
  const kiln_diagnostic* rows = kiln_explanation_diagnostics(made, &count);
  return nb::make_tuple(
      outcome.status, text_of(outcome.error.c_str()), diagnostics_of(rows, count),
      nb::make_tuple(text_of(kiln_explanation_text(made)), text_of(kiln_explanation_json(made)),
                     text_of(kiln_explanation_html(made))));
}

// The kernel, the parameter and its values, of each that `[[tune(...)]]` names.
nb::list tunables_of(const Program& program) {
  std::size_t count = 0;
  const kiln_tunable* rows = kiln_program_tunables(program.handle.get(), &count);
  nb::list out;
  for (std::size_t i = 0; i < count; ++i) {
    nb::list values;
    for (std::size_t v = 0; v < rows[i].value_count; ++v) values.append(rows[i].values[v]);
    out.append(nb::make_tuple(rows[i].kernel, rows[i].name, values));
  }
  return out;
}

// `arguments`: arrays whose addresses do not count.
nb::tuple prepare(const Program& program, const std::string& kernel,
                  const std::pair<nb::list, nb::list>& arguments, std::int32_t device) {
  const Arguments given(arguments);
  const kiln_call call = given.call(kernel);
  kiln_plan* made = nullptr;
  Outcome outcome;
  {
    nb::gil_scoped_release others_go_on;
    outcome.status = kiln_prepare(program.handle.get(), &call, device, &made);
    if (outcome.status != KILN_OK) outcome.error = kiln_last_error();
  }
  nb::object plan = nb::none();
  if (made != nullptr) {
    plan = nb::cast(Plan{std::unique_ptr<kiln_plan, kiln::python::FreePlan>(made)});
  }
  return nb::make_tuple(outcome.status, text_of(outcome.error.c_str()), plan);
}

// `values`: an address, a whole or a real number for each parameter, then for what is returned.
nb::tuple launch(const Plan& plan, const nb::list& values, std::uintptr_t workspace,
                 std::uintptr_t stream) {
  std::vector<kiln_value> given;
  for (const nb::handle each : values) {
    kiln_value& value = given.emplace_back();
    if (nb::isinstance<nb::float_>(each)) {
      value.real = nb::cast<double>(each);
    } else {
      value.integer = nb::cast<std::int64_t>(each);
    }
  }
  Outcome outcome;
  {
    nb::gil_scoped_release others_go_on;
    outcome.status =
        kiln_launch(plan.handle.get(), given.data(), reinterpret_cast<void*>(workspace),
                    kiln_plan_workspace(plan.handle.get()), reinterpret_cast<void*>(stream));
    if (outcome.status != KILN_OK) outcome.error = kiln_last_error();
  }
  return nb::make_tuple(outcome.status, text_of(outcome.error.c_str()));
}

// Type and shape of the tensor that a launch returns, or the number's type and address; None when it
// returns nothing.
nb::object result_of_plan(const Plan& plan) {
  const kiln_array* result = kiln_plan_result(plan.handle.get());
  if (result == nullptr) return nb::none();
  const std::vector<std::int64_t> shape(result->shape, result->shape + result->rank);
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(result->data), result->dtype, shape);
}

// Address, type, shape, strides in elements, device, and whether it must not be written, of what a
// capsule of `__dlpack__` holds. The capsule keeps it.
nb::tuple describe_capsule(const nb::capsule& capsule) {
  const dlpack::Tensor* tensor = nullptr;
  bool read_only = false;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    const auto* managed = static_cast<const dlpack::ManagedVersioned*>(capsule.data());
    if (managed->version.major != dlpack::kMajor) throw nb::value_error("another DLPack");
    read_only = (managed->flags & dlpack::kReadOnly) != 0;
    tensor = &managed->tensor;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    tensor = &static_cast<const dlpack::Managed*>(capsule.data())->tensor;
  } else {
    throw nb::type_error("no capsule of DLPack");
  }
  const char* type = dlpack::name_of(tensor->type);
  const std::vector<std::int64_t> shape(tensor->shape, tensor->shape + tensor->rank);
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) {
    strides[d] = tensor->strides != nullptr ? tensor->strides[d] : step;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor->data) + tensor->byte_offset;
  return nb::make_tuple(address, type != nullptr ? type : "", shape, strides, tensor->device.number,
                        read_only);
}

// A text, "" when it went well, of questions to the driver.
std::string text_of(const kiln::api::Failure& failure) { return failure.error.text(); }

// The number of the device that memory belongs to; -1 when it is no device's.
nb::tuple pointer_device(std::uintptr_t address) {
  const auto driver = kiln::api::devices().driver();
  if (!driver) return nb::make_tuple(-1, text_of(driver.error()));
  int device = -1;
  const auto status =
      (*driver)->pointer_attribute(&device, kiln::runtime::cuda::kPointerDevice, address);
  return nb::make_tuple(status == kiln::runtime::cuda::kSuccess ? device : -1, "");
}

// Whether the stream is captured in a graph; False without a driver.
bool is_capturing(std::uintptr_t stream) {
  const auto driver = kiln::api::devices().driver();
  int capturing = 0;
  if (!driver) return false;
  const auto status = (*driver)->stream_is_capturing(
      reinterpret_cast<kiln::runtime::cuda::Stream>(stream), &capturing);
  return status == kiln::runtime::cuda::kSuccess && capturing != 0;
}

// What comes on `stream` waits on the device for what is on `other` now. A text when it went wrong.
std::string order(int device, std::uintptr_t stream, std::uintptr_t other) {
  const auto gpu = kiln::api::devices().gpu(device);
  if (!gpu) return text_of(gpu.error());
  const kiln::runtime::cuda::Api& api = (*gpu)->session().api;
  const kiln::runtime::ContextScope scope((*gpu)->session());
  kiln::runtime::cuda::EventHandle event = nullptr;
  auto status = api.event_create(&event, kiln::runtime::cuda::kUntimed);
  if (status == kiln::runtime::cuda::kSuccess) {
    status = api.event_record(event, reinterpret_cast<kiln::runtime::cuda::Stream>(other));
    if (status == kiln::runtime::cuda::kSuccess) {
      status = api.stream_wait(reinterpret_cast<kiln::runtime::cuda::Stream>(stream), event, 0);
    }
    api.event_destroy(event);
  }
  const auto done = api.check(status, "cannot order two streams");
  return done ? "" : done.error().text();
}

nb::object result_of(const Report& report) {
  const kiln_array* result = kiln_report_result(report.handle.get());
  if (result == nullptr) return nb::none();
  const std::vector<std::int64_t> shape(result->shape, result->shape + result->rank);
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(result->data), result->dtype, shape);
}

nb::tuple findings_of(const Report& report) {
  const kiln_findings found = kiln_report_findings(report.handle.get());
  return nb::make_tuple(found.ok != 0, found.races, found.deadlocks, found.uninitialised_reads,
                        found.out_of_bounds, found.others);
}

// Address, type, shape, and whether rows have no gaps, of an array that DLPack knows.
nb::tuple describe(const nb::ndarray<nb::ro, nb::device::cpu>& array) {
  std::vector<std::int64_t> shape;
  bool without_gaps = true;
  std::int64_t step = 1;
  for (std::size_t d = array.ndim(); d-- > 0;) {
    const auto extent = static_cast<std::int64_t>(array.shape(d));
    shape.insert(shape.begin(), extent);
    without_gaps = without_gaps && (extent == 1 || array.stride(d) == step);
    step *= extent;
  }
  const nb::dlpack::dtype type = array.dtype();
  const char* name = dlpack::name_of({type.code, type.bits, type.lanes});
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), name != nullptr ? name : "",
                        shape, without_gaps);
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The functions of kiln/kiln.h; use the package `kiln`.";
  // Operators of PyTorch that a program registers live as long as the process.
  nb::set_leak_warnings(false);
  module.attr("OK") = static_cast<int>(KILN_OK);
  module.attr("INVALID") = static_cast<int>(KILN_INVALID);
  module.attr("UNSUPPORTED") = static_cast<int>(KILN_UNSUPPORTED);
  module.attr("REJECTED") = static_cast<int>(KILN_REJECTED);
  module.attr("SYSTEM") = static_cast<int>(KILN_SYSTEM);

  nb::class_<Program>(module, "Program")
      .def("diagnostics",
           [](const Program& program) {
             std::size_t count = 0;
             const auto* rows = kiln_program_diagnostics(program.handle.get(), &count);
             return diagnostics_of(rows, count);
           })
      .def("arch", [](const Program& p) { return kiln_program_arch(p.handle.get()); })
      .def("cuda", [](const Program& p) { return text_of(kiln_program_cuda(p.handle.get())); })
      .def("kernels", kernels_of)
      .def("tunables", tunables_of)
      .def("run", run)
      .def("explain", explain)
      .def("prepare", prepare);
  nb::class_<Plan>(module, "Plan")
      .def("diagnostics",
           [](const Plan& plan) {
             std::size_t count = 0;
             const auto* rows = kiln_plan_diagnostics(plan.handle.get(), &count);
             return diagnostics_of(rows, count);
           })
      .def("workspace", [](const Plan& plan) { return kiln_plan_workspace(plan.handle.get()); })
      .def("result", result_of_plan)
      .def("launch", launch);
  nb::class_<Report>(module, "Report")
      .def("diagnostics",
           [](const Report& report) {
             std::size_t count = 0;
             const auto* rows = kiln_report_diagnostics(report.handle.get(), &count);
             return diagnostics_of(rows, count);
           })
      .def("text", [](const Report& r) { return text_of(kiln_report_text(r.handle.get())); })
      .def("findings", findings_of)
      .def("result", result_of);
  module.def("compile", compile, nb::arg("file").none(), nb::arg("source").none(),
             nb::arg("arch").none(), nb::arg("defines"), nb::arg("folders"));
  module.def("describe", describe);
  module.def("describe_capsule", describe_capsule);
  module.def("pointer_device", pointer_device);
  module.def("is_capturing", is_capturing);
  module.def("order", order);
  kiln::python::add_launcher(module);
  kiln::python::add_prepared(module);
  kiln::python::add_attention(module);
  kiln::python::add_attention_decode(module);
  kiln::python::add_products(module);
  kiln::python::add_timer(module);
}
