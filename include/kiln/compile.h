// The compiler of kiln, its simulator and its launches in C++17, over the C functions of kiln/kiln.h.
//
//   kiln::Result<kiln::Program> program = kiln::compile({"scale.co"});
//   if (!program) return show(program.error().text);
//   for (const kiln_diagnostic& said : program->diagnostics()) ...        warnings
//
//   kiln::Arguments arguments;
//   arguments.tensor("x", x.data(), "f32", {64, 1024}).tensor("y", y.data(), "f32", {64, 1024});
//   arguments.number("factor", 2.0);
//   kiln::Result<kiln::Report> report = program->simulate(arguments);
//   if (report && report->findings().ok) ...                              y has what the kernel wrote
//
//   kiln::Result<kiln::Plan> plan = program->prepare(arguments);          on a GPU; needs no data
//   kiln::Failure failed = plan->launch({device_x, 2.0, device_y}, stream);
//
// Objects free what they hold and can only be moved. Nothing here prints, throws or ends the process.
// A program, a report or a plan may be used by several threads at once. What a function gives lives
// as long as the object that it was asked of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/kiln.h"

namespace kiln {

// How a call ended; false where all went well, so that `if (failed)` is what it says.
struct Failure {
  kiln_status status = KILN_OK;
  std::string text;  // as a terminal shows it; "": all went well
  explicit operator bool() const { return status != KILN_OK; }
};

// A value, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Failure failure) : error_(std::move(failure)) {}

  explicit operator bool() const { return value_.has_value(); }
  // Only where there is a value.
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Failure& error() const { return error_; }

  // Of what could not be made: also then there is an object, where kiln has something to say of it.
  Result& with_refused(T refused) {
    refused_ = std::move(refused);
    return *this;
  }
  const std::optional<T>& refused() const { return refused_; }

 private:
  std::optional<T> value_;
  std::optional<T> refused_;
  Failure error_;
};

// Rows of the library's, to be gone through with `for`.
template <class T>
class Rows {
 public:
  Rows(const T* data, std::size_t size) : data_(data), size_(size) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t index) const { return data_[index]; }

 private:
  const T* data_;
  std::size_t size_;
};

namespace detail {

template <class T, void (*kFree)(T*)>
struct Free {
  void operator()(T* object) const { kFree(object); }
};
template <class T, void (*kFree)(T*)>
using Owner = std::unique_ptr<T, Free<T, kFree>>;

template <class Out, class T>
Result<Out> result_of(kiln_status status, T* made) {
  if (status == KILN_OK) return Out(made);
  Result<Out> out(Failure{status, kiln_last_error()});
  if (made != nullptr) out.with_refused(Out(made));
  return out;
}

}  // namespace detail

struct CompileOptions {
  std::string file = {};    // what is compiled; with a text only its name
  std::string source = {};  // "": the file's text
  std::string arch = {};    // "sm_90a"; "": that of the machine's GPU, else the newest
  std::vector<std::string> defines = {};
  std::vector<std::string> folders = {};
};

// Of a call. Arrays are not copied: their memory must outlive the calls.
class Arguments {
 public:
  // "": the only kernel.
  explicit Arguments(std::string kernel = {}) : kernel_(std::move(kernel)) {}

  Arguments& tensor(std::string name, void* data, std::string dtype,
                    std::vector<std::int64_t> shape) {
    tensors_.push_back({std::move(name), data, std::move(dtype), std::move(shape)});
    return *this;
  }
  // Of a parameter, or of a dimension that no array has.
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Arguments& number(std::string name, T value) {
    numbers_.push_back({std::move(name), std::is_floating_point<T>::value,
                        static_cast<std::int64_t>(value), static_cast<double>(value)});
    return *this;
  }
  // How many orders of execution are tried, and the seed of the first.
  Arguments& schedules(std::int64_t count, std::uint64_t seed = 0) {
    schedules_ = count;
    seed_ = seed;
    return *this;
  }

 private:
  friend class Program;
  struct Tensor {
    std::string name;
    void* data;
    std::string dtype;
    std::vector<std::int64_t> shape;
  };
  struct Number {
    std::string name;
    bool is_real;
    std::int64_t integer;
    double real;
  };
  // The same as data of C, and what it points to.
  struct Call {
    std::vector<kiln_array> arrays;
    std::vector<kiln_scalar> scalars;
    kiln_call call = {};
  };
  void fill(Call& out) const {
    for (const Tensor& tensor : tensors_) {
      out.arrays.push_back({tensor.name.c_str(), tensor.data, tensor.dtype.c_str(),
                            tensor.shape.data(), tensor.shape.size()});
    }
    for (const Number& number : numbers_) {
      out.scalars.push_back(
          {number.name.c_str(), number.is_real ? 1 : 0, number.integer, number.real});
    }
    out.call.kernel = kernel_.empty() ? nullptr : kernel_.c_str();
    out.call.arrays = out.arrays.data();
    out.call.array_count = out.arrays.size();
    out.call.scalars = out.scalars.data();
    out.call.scalar_count = out.scalars.size();
    out.call.schedules = schedules_;
    out.call.seed = seed_;
  }

  std::string kernel_;
  std::vector<Tensor> tensors_;
  std::vector<Number> numbers_;
  std::int64_t schedules_ = 0;
  std::uint64_t seed_ = 0;
};

// What one run of a kernel gave.
class Report {
 public:
  explicit Report(kiln_report* report) : report_(report) {}
  kiln_findings findings() const { return kiln_report_findings(report_.get()); }
  Rows<kiln_diagnostic> diagnostics() const {
    std::size_t count = 0;
    const kiln_diagnostic* rows = kiln_report_diagnostics(report_.get(), &count);
    return {rows, count};
  }
  const char* text() const { return kiln_report_text(report_.get()); }
  const char* printed() const { return kiln_report_printed(report_.get()); }
  // Null: nothing, or one of the parameters.
  const kiln_array* returned() const { return kiln_report_result(report_.get()); }

 private:
  detail::Owner<kiln_report, kiln_report_free> report_;
};

// An argument of a launch: a device pointer, or a number.
class Value {
 public:
  Value(const void* data) { value_.data = const_cast<void*>(data); }
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Value(T number) {
    if constexpr (std::is_floating_point<T>::value) {
      value_.real = static_cast<double>(number);
    } else {
      value_.integer = static_cast<std::int64_t>(number);
    }
  }
  const kiln_value& value() const { return value_; }

 private:
  kiln_value value_ = {};
};

// A kernel that is compiled for a GPU and for shapes.
class Plan {
 public:
  explicit Plan(kiln_plan* plan) : plan_(plan) {}
  Rows<kiln_diagnostic> diagnostics() const {
    std::size_t count = 0;
    const kiln_diagnostic* rows = kiln_plan_diagnostics(plan_.get(), &count);
    return {rows, count};
  }
  std::int32_t device() const { return kiln_plan_device(plan_.get()); }
  std::size_t workspace_bytes() const { return kiln_plan_workspace(plan_.get()); }
  // Null: nothing, or one of the parameters.
  const kiln_array* returned() const { return kiln_plan_result(plan_.get()); }

  // One value for each parameter in order, an integer for an integer and a floating one for any
  // other number, then the memory of the tensor that is returned. See kiln_launch.
  Failure launch(const std::vector<Value>& values, void* cuda_stream = nullptr,
                 void* workspace = nullptr, std::size_t workspace_bytes = 0) const {
    std::vector<kiln_value> row;
    row.reserve(values.size());
    for (const Value& value : values) row.push_back(value.value());
    const kiln_status status =
        kiln_launch(plan_.get(), row.data(), workspace, workspace_bytes, cuda_stream);
    return status == KILN_OK ? Failure{} : Failure{status, kiln_last_error()};
  }

 private:
  detail::Owner<kiln_plan, kiln_plan_free> plan_;
};

// A program that was compiled, or was refused.
class Program {
 public:
  explicit Program(kiln_program* program) : program_(program) {}
  Rows<kiln_diagnostic> diagnostics() const {
    std::size_t count = 0;
    const kiln_diagnostic* rows = kiln_program_diagnostics(program_.get(), &count);
    return {rows, count};
  }
  const char* text() const { return kiln_program_text(program_.get()); }
  const char* arch() const { return kiln_program_arch(program_.get()); }
  const char* cuda() const { return kiln_program_cuda(program_.get()); }
  Rows<kiln_kernel> kernels() const {
    std::size_t count = 0;
    const kiln_kernel* rows = kiln_program_kernels(program_.get(), &count);
    return {rows, count};
  }
  // Null: it has none of that name.
  const kiln_kernel* kernel(const std::string& name) const {
    for (const kiln_kernel& kernel : kernels()) {
      if (name == kernel.name) return &kernel;
    }
    return nullptr;
  }

  // Instruction by instruction on this CPU, with all checks (kiln_simulate).
  Result<Report> simulate(const Arguments& arguments) const {
    return run(arguments, kiln_simulate);
  }
  // What the results should be (kiln_reference).
  Result<Report> reference(const Arguments& arguments) const {
    return run(arguments, kiln_reference);
  }
  // For a GPU (kiln_prepare).
  Result<Plan> prepare(const Arguments& arguments,
                       std::int32_t device = KILN_CURRENT_DEVICE) const {
    Arguments::Call call;
    arguments.fill(call);
    kiln_plan* plan = nullptr;
    const kiln_status status = kiln_prepare(program_.get(), &call.call, device, &plan);
    return detail::result_of<Plan>(status, plan);
  }

 private:
  using Runner = kiln_status (*)(const kiln_program*, const kiln_call*, kiln_report**);
  Result<Report> run(const Arguments& arguments, Runner runner) const {
    Arguments::Call call;
    arguments.fill(call);
    kiln_report* report = nullptr;
    const kiln_status status = runner(program_.get(), &call.call, &report);
    return detail::result_of<Report>(status, report);
  }

  detail::Owner<kiln_program, kiln_program_free> program_;
};

// A program with errors is in Result::refused, with its diagnostics.
inline Result<Program> compile(const CompileOptions& how) {
  const auto texts = [](const std::vector<std::string>& all) {
    std::vector<const char*> out;
    for (const std::string& text : all) out.push_back(text.c_str());
    return out;
  };
  const std::vector<const char*> defines = texts(how.defines);
  const std::vector<const char*> folders = texts(how.folders);
  kiln_compile_options options = {};
  options.file = how.file.empty() ? nullptr : how.file.c_str();
  options.source = how.source.empty() ? nullptr : how.source.c_str();
  options.arch = how.arch.empty() ? nullptr : how.arch.c_str();
  options.defines = defines.data();
  options.define_count = defines.size();
  options.folders = folders.data();
  options.folder_count = folders.size();
  kiln_program* program = nullptr;
  const kiln_status status = kiln_compile(&options, &program);
  return detail::result_of<Program>(status, program);
}

}  // namespace kiln
