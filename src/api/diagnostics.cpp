#include "api/diagnostics.h"

#include "diag/render.h"

namespace kiln::api {

namespace {

std::int32_t severity_of(Severity severity) {
  switch (severity) {
    case Severity::kError: return KILN_ERROR;
    case Severity::kWarning: return KILN_WARNING;
    case Severity::kNote: return KILN_NOTE;
  }
  KILN_UNREACHABLE("severity {}", static_cast<int>(severity));
}

}  // namespace

void DiagnosticRows::set(const Diagnostics& diags, const Sources& sources) {
  for (const Diagnostic& diagnostic : diags.all()) {
    const Place place = diagnostic.span.valid() ? sources.place(diagnostic.span) : Place{};
    rows.push_back({.id = texts_.keep(std::string(info(diagnostic.id).name)),
                    .severity = severity_of(diagnostic.severity),
                    .message = texts_.keep(diagnostic.message),
                    .help = texts_.keep(diagnostic.help),
                    .file = texts_.keep(place.file),
                    .line = place.line,
                    .column = place.column,
                    .text = texts_.keep(render(diagnostic, sources))});
  }
  text = render_all(diags, sources);
}

}  // namespace kiln::api
