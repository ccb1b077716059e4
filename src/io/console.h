// Where a command writes, and how it ends.
#pragma once

#include <ostream>

#include "diag/diagnostics.h"
#include "support/result.h"
#include "support/source.h"

namespace kiln::io {

// Exit codes; scripts depend on them (design.md 11).
enum class Exit : std::uint8_t {
  kFine = 0,
  kWrong = 1,        // the program is wrong, or a result is outside its bound
  kUsage = 2,        // the command line is wrong
  kEnvironment = 3,  // no GPU, no NVRTC, an unreadable file
};

// Results go to `out`, diagnostics to `err`; nothing else writes.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colour_out = false;
  bool colour_err = false;
  bool progress = false;  // `err` is a terminal: what is being done may be shown and overwritten
};

// Says what is being done, over what was said before; nothing when nobody watches. An empty text
// clears the line.
void show_progress(const Console& console, std::string_view text);

// "checking [##########....................] 3/9".
[[nodiscard]] std::string progress_bar(std::string_view what, std::size_t done, std::size_t all);

// What a stage gives: its value, or how the command ends. The reason is in the diagnostics or has
// been written already.
template <class T>
using Stage = Result<T, Exit>;

// Writes the world's failure to `err`, over what is being done.
Unexpected<Exit> environment_failed(Console& console, const Error& error);

// Writes all diagnostics to `err`.
void show(Console& console, const Diagnostics& diags, const Sources& sources);

// Writes diagnostics to `err`, notes only when there is an error: for commands whose business is
// something else than to tell about the program.
void show_briefly(Console& console, const Diagnostics& diags, const Sources& sources);

// Writes to `err` why the compile cache could not be used; nothing for an empty reason.
void show_cache_note(Console& console, const std::string& reason);

// Writes a command's text to the file `path`, or to `out` when the path is empty.
[[nodiscard]] Exit write_text(Console& console, const std::string& path, std::string_view text);

}  // namespace kiln::io
