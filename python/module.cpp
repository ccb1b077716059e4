// kiln._core: kiln/kiln.h as a module of Python. The classes that users see are in python/kiln.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "kiln/kiln.h"

namespace nb = nanobind;

namespace {

struct FreeProgram {
  void operator()(kiln_program* program) const { kiln_program_free(program); }
};
struct FreeReport {
  void operator()(kiln_report* report) const { kiln_report_free(report); }
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
                        row.is_global != 0, row.is_read != 0, row.is_written != 0);
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

// `how`: schedules, seed, steps_max.
nb::tuple run(const Program& program, bool by_reference, const std::string& kernel,
              const std::pair<nb::list, nb::list>& arguments, const nb::tuple& how) {
  const auto& [arrays, numbers] = arguments;
  const std::vector<Array> given = arrays_of(arrays);
  std::vector<kiln_array> rows;
  for (const Array& array : given) {
    rows.push_back({array.name.c_str(), reinterpret_cast<void*>(array.address), array.dtype.c_str(),
                    array.shape.data(), array.shape.size()});
  }
  const std::vector<Number> values = numbers_of(numbers);
  std::vector<kiln_scalar> scalars;
  for (const Number& number : values) {
    scalars.push_back(number.value);
    scalars.back().name = number.name.c_str();
  }
  kiln_call call = {};
  call.kernel = kernel.c_str();
  call.arrays = rows.data();
  call.array_count = rows.size();
  call.scalars = scalars.data();
  call.scalar_count = scalars.size();
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

// "bf16"; "" of a type that kiln has no name for here.
std::string name_of(const nb::dlpack::dtype& type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  const std::string bits = std::to_string(type.bits);
  if (type.lanes != 1) return "";
  if (code == nb::dlpack::dtype_code::Float) return "f" + bits;
  if (code == nb::dlpack::dtype_code::Int) return "s" + bits;
  if (code == nb::dlpack::dtype_code::UInt) return "u" + bits;
  if (code == nb::dlpack::dtype_code::Bfloat) return "bf16";
  return code == nb::dlpack::dtype_code::Bool ? "bool" : "";
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
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), name_of(array.dtype()),
                        shape, without_gaps);
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The functions of kiln/kiln.h; use the package `kiln`.";
  module.attr("OK") = static_cast<int>(KILN_OK);
  module.attr("INVALID") = static_cast<int>(KILN_INVALID);
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
      .def("run", run);
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
}
