// The functions of kiln/kiln.h that say what a kernel costs, and what it declares to be tried.
#include "io/explained.h"

#include <memory>

#include "api/arguments.h"
#include "explain/cost/cost_print.h"
#include "io/machine.h"

struct kiln_explanation {
  kiln::api::DiagnosticRows diagnostics;
  std::string text;
  std::string json;
  std::string html;
};

namespace kiln::api {

namespace {

// What a call says of the shape, as `--shape` would say it.
std::vector<io::Assignment> shapes_of(const ir::Function& function, const ir::Arguments& given) {
  std::vector<io::Assignment> out;
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (!ir::known_at_launch(var.kind)) continue;
    out.push_back({var.name, format("{}", given.vars[v])});
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    const bool is_number =
        param.value.valid() && std::holds_alternative<ir::ScalarType>(function.type(param.value));
    if (!is_number || param.var.valid()) continue;
    out.push_back({param.name, format("{}", given.params[i].scalar)});
  }
  return out;
}

// Which kernel, and what is known of its shape. An error is how the explanation ends.
struct Asked {
  std::size_t kernel = 0;
  std::vector<io::Assignment> shapes;
};

Result<Asked, Refusal> asked_by(const kiln_program& program, const kiln_call& call,
                                Diagnostics& diags) {
  if (call.array_count != 0) {
    auto bound = bind_call(program, call, io::Use::kLaunch, 0, diags);
    if (!bound) return Unexpected{bound.error()};
    const ir::Function& function = program.program.decided.functions[bound->kernel];
    return Asked{bound->kernel, shapes_of(function, bound->arguments)};
  }
  auto numbers = numbers_of(call);
  if (!numbers) return Unexpected{numbers.error()};
  const std::string name = call.kernel != nullptr ? call.kernel : "";
  const auto kernel =
      io::choose_kernel(program.program, program.file, name, diags, io::Use::kCallCount);
  if (!kernel) return Unexpected{Refusal{""}};
  return Asked{*kernel, std::move(*numbers)};
}

kiln_status explain(const kiln_program& program, const kiln_call& call,
                    kiln_explanation& explanation) {
  Diagnostics diags;
  const Sources& sources = program.program.sources;
  const auto refuse = [&](kiln_status status, const std::string& reason) {
    explanation.diagnostics.set(diags, sources);
    return fail(status, reason.empty() ? explanation.diagnostics.text : reason);
  };
  const auto asked = asked_by(program, call, diags);
  if (!asked) return refuse(KILN_INVALID, asked.error().text);
  const auto explained = io::explain(program.program, asked->kernel,
                                     {.shapes = asked->shapes,
                                      .memory_bytes_max = io::memory_allowed(),
                                      .use = io::Use::kCallCount},
                                     diags);
  if (!explained) {
    const auto& [exit, error] = explained.error();
    if (error) return refuse(KILN_SYSTEM, error->text());
    const bool large = std::ranges::any_of(
        diags.all(), [](const Diagnostic& d) { return d.id == DiagId::kTensorsTooLarge; });
    if (large) return refuse(KILN_SYSTEM, "");
    return refuse(exit == io::Exit::kUsage ? KILN_INVALID : KILN_UNSUPPORTED, "");
  }
  const ir::Function& function = program.program.decided.functions[asked->kernel];
  explanation.diagnostics.set(diags, sources);
  explanation.text = explain::to_text(explained->explanation, sources);
  explanation.json = explain::to_json(explained->explanation, sources);
  explanation.html = io::explained_page(*explained, function, sources);
  return KILN_OK;
}

}  // namespace

}  // namespace kiln::api

namespace api = kiln::api;

extern "C" {

kiln_status kiln_explain(const kiln_program* program, const kiln_call* call,
                         kiln_explanation** explanation) {
  if (explanation == nullptr) {
    return api::fail(KILN_INVALID, "the place for the explanation is null");
  }
  *explanation = nullptr;
  if (program == nullptr || call == nullptr) {
    return api::fail(KILN_INVALID, "the program or the call is null");
  }
  if (!program->compiled) {
    return api::fail(KILN_INVALID, "the program has errors and cannot be explained");
  }
  auto made = std::make_unique<kiln_explanation>();
  const kiln_status status = api::explain(*program, *call, *made);
  *explanation = made.release();
  return status;
}

void kiln_explanation_free(kiln_explanation* explanation) { delete explanation; }

const kiln_diagnostic* kiln_explanation_diagnostics(const kiln_explanation* explanation,
                                                    size_t* count) {
  if (count != nullptr) *count = explanation->diagnostics.rows.size();
  return explanation->diagnostics.rows.data();
}

const char* kiln_explanation_text(const kiln_explanation* explanation) {
  return explanation->text.c_str();
}

const char* kiln_explanation_json(const kiln_explanation* explanation) {
  return explanation->json.c_str();
}

const char* kiln_explanation_html(const kiln_explanation* explanation) {
  return explanation->html.c_str();
}

const kiln_tunable* kiln_program_tunables(const kiln_program* program, size_t* count) {
  if (count != nullptr) *count = program->tunables.rows().size();
  return program->tunables.rows().data();
}

}  // extern "C"
