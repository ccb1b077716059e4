// The functions of kiln/kiln.h that compile, and tell of what was compiled.
#include "api/program.h"

#include <algorithm>
#include <memory>

#include "emit/cuda/emit.h"
#include "ir/arguments.h"
#include "reference/outputs.h"
#include "runtime/call_plan.h"
#include "support/last_error.h"

namespace kiln::api {

const char* const* KernelRows::keep_all(const std::vector<std::string>& texts) {
  std::vector<const char*>& list = lists_.emplace_back();
  for (const std::string& text : texts) list.push_back(texts_.keep(text));
  return list.data();
}

kiln_parameter KernelRows::parameter(const ir::Function& function, const ir::Type& type,
                                     const std::string& name) {
  kiln_parameter out{};
  out.name = texts_.keep(name);
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) {
    out.dtype = texts_.keep(std::string(kiln::name(scalar->dtype)));
  } else if (const auto* view = std::get_if<ir::ViewType>(&type)) {
    out.dtype = texts_.keep(std::string(kiln::name(view->dtype)));
    out.is_tensor = 1;
    out.rank = view->shape.size();
    std::vector<std::string> dims;
    for (const ir::Expr& extent : view->shape) dims.push_back(function.text(extent));
    out.dims = keep_all(dims);
  } else {
    out.dtype = "";
  }
  return out;
}

kiln_kernel KernelRows::kernel(const ir::Module& module, const ir::Function& function) {
  const std::vector<bool> deciding = runtime::deciding_numbers(module, function);
  const std::vector<std::size_t> read = ir::read_params(function);
  const std::vector<reference::OutputSlot> slots = reference::output_slots(function);
  std::vector<kiln_parameter>& rows = parameters_.emplace_back();
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    const ir::Type type =
        param.value.valid() ? function.type(param.value) : ir::Type{ir::ScalarType{DType::kS32}};
    kiln_parameter row = parameter(function, type, param.name);
    row.is_global = param.is_global ? 1 : 0;
    row.is_read = row.is_tensor == 0 || std::ranges::find(read, i) != read.end() ? 1 : 0;
    row.is_written = std::ranges::any_of(slots, [&](const auto& slot) { return slot.param == i; });
    row.is_deciding = deciding[i] ? 1 : 0;
    rows.push_back(row);
  }
  kiln_kernel out{};
  out.name = texts_.keep(function.name);
  out.parameters = rows.data();
  out.parameter_count = rows.size();
  for (const reference::OutputSlot& slot : slots) {
    if (slot.param) continue;
    std::vector<kiln_parameter>& result = parameters_.emplace_back();
    result.push_back(parameter(function, function.type(slot.value), slot.name));
    result.back().is_written = 1;
    out.result = result.data();
  }
  std::vector<std::string> dimensions;
  for (const ir::Var& var : function.vars) {
    if (var.kind == ir::VarKind::kDim) dimensions.push_back(var.name);
  }
  out.dimension_count = dimensions.size();
  out.dimensions = keep_all(dimensions);
  return out;
}

void TunableRows::set(const std::vector<io::Tunable>& tunables) {
  for (const io::Tunable& each : tunables) {
    std::vector<const char*>& values = lists_.emplace_back();
    for (const std::string& value : each.values) values.push_back(texts_.keep(value));
    rows_.push_back({.kernel = texts_.keep(each.kernel),
                     .name = texts_.keep(each.name),
                     .values = values.data(),
                     .value_count = values.size()});
  }
}

void KernelRows::set(const ir::Module& module) {
  for (const ir::Function& function : module.functions) rows_.push_back(kernel(module, function));
}

kiln_status fail(kiln_status status, std::string reason) {
  last_error() = std::move(reason);
  return status;
}

namespace {

// Nothing where a text is null.
std::optional<std::vector<std::string>> texts_of(const char* const* texts, std::size_t count) {
  std::vector<std::string> out;
  if (count != 0 && texts == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) return std::nullopt;
    out.emplace_back(texts[i]);
  }
  return out;
}

// How the whole ended, for a program that has its diagnostics.
kiln_status finish(io::Exit exit, kiln_program& program) {
  program.diagnostics.set(program.program.diags, program.program.sources);
  program.compiled = exit == io::Exit::kFine;
  if (program.compiled) {
    program.kernels.set(program.program.decided);
    program.tunables.set(program.program.tunables);
    return KILN_OK;
  }
  return fail(exit == io::Exit::kUsage ? KILN_INVALID : KILN_REJECTED, program.diagnostics.text);
}

}  // namespace

kiln_status compile_program(const io::ProgramOptions& how, const std::string& kernel,
                            std::unique_ptr<kiln_program>& program) {
  program = std::make_unique<kiln_program>();
  program->file = how.file;
  const auto exit = io::compile(how, {.kernel = kernel}, program->program);
  if (exit) return finish(*exit, *program);
  program = nullptr;
  return fail(KILN_SYSTEM, exit.error().text());
}

}  // namespace kiln::api

namespace api = kiln::api;

extern "C" {

kiln_status kiln_compile(const kiln_compile_options* options, kiln_program** program) {
  if (program == nullptr) return api::fail(KILN_INVALID, "the place for the program is null");
  *program = nullptr;
  if (options == nullptr) return api::fail(KILN_INVALID, "the options are null");
  if (options->file == nullptr && options->source == nullptr) {
    return api::fail(KILN_INVALID, "there is neither a file nor a text to compile");
  }
  auto defines = api::texts_of(options->defines, options->define_count);
  auto folders = api::texts_of(options->folders, options->folder_count);
  if (!defines || !folders) return api::fail(KILN_INVALID, "a define or a folder is null");
  kiln::io::ProgramOptions how;
  how.file = options->file != nullptr ? options->file : "<source>";
  how.arch = options->arch != nullptr ? options->arch : "";
  how.defines = std::move(*defines);
  how.folders = std::move(*folders);
  if (options->source != nullptr) how.text = options->source;
  std::unique_ptr<kiln_program> made;
  const kiln_status status = api::compile_program(how, "", made);
  *program = made.release();
  return status;
}

void kiln_program_free(kiln_program* program) { delete program; }

const kiln_diagnostic* kiln_program_diagnostics(const kiln_program* program, size_t* count) {
  if (count != nullptr) *count = program->diagnostics.rows.size();
  return program->diagnostics.rows.data();
}

const char* kiln_program_text(const kiln_program* program) {
  return program->diagnostics.text.c_str();
}

const char* kiln_program_arch(const kiln_program* program) {
  const kiln::target::Arch* arch = program->program.arch;
  return arch != nullptr ? arch->name.data() : "";
}

const char* kiln_program_cuda(const kiln_program* program) {
  std::call_once(program->emitted, [&] {
    if (!program->compiled) return;
    program->cuda = kiln::emit::emit(program->program.decided, program->program.sources);
  });
  return program->cuda.c_str();
}

const kiln_kernel* kiln_program_kernels(const kiln_program* program, size_t* count) {
  if (count != nullptr) *count = program->kernels.rows().size();
  return program->kernels.rows().data();
}

}  // extern "C"
