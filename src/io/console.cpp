#include "io/console.h"

#include "diag/render.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/format.h"

namespace kiln::io {

void show_progress(const Console& console, std::string_view text) {
  if (console.progress) console.err << "\r\x1b[K" << text << std::flush;
}

std::string progress_bar(std::string_view what, std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = all == 0 ? kWidth : kWidth * done / all;
  return format("{} [{}{}] {}/{}", what, std::string(full, '#'), std::string(kWidth - full, '.'),
                done, all);
}

Unexpected<Exit> environment_failed(Console& console, const Error& error) {
  show_progress(console, "");
  console.err << "error: " << error.text() << "\n";
  return Unexpected{Exit::kEnvironment};
}

void show(Console& console, const Diagnostics& diags, const Sources& sources) {
  console.err << render_all(diags, sources, {.colour = console.colour_err});
}

void show_briefly(Console& console, const Diagnostics& diags, const Sources& sources) {
  if (diags.has_errors()) return show(console, diags, sources);
  Diagnostics warnings;
  for (const Diagnostic& diagnostic : diags.all()) {
    if (diagnostic.severity == Severity::kWarning) warnings.add(diagnostic);
  }
  show(console, warnings, sources);
}

void show_cache_note(Console& console, const std::string& reason) {
  if (!reason.empty())
    console.err << "note: nothing is kept for the next run: " << escape_lines(reason) << "\n";
}

Exit write_text(Console& console, const std::string& path, std::string_view text) {
  if (path.empty()) {
    console.out << text;
    return Exit::kFine;
  }
  const Result<void> written = write_file(path, text);
  if (written) return Exit::kFine;
  return environment_failed(console, written.error()).error;
}

}  // namespace kiln::io
