// Diagnostics: what kiln tells a user about their program.
//
//   return diags.report<diag::MmaNoInstruction>(mma.span, arch.name, m, n, k, dtype)
//       .label(a.span, "`{}` has K = {}", a.name, k)
//       .help("pad K to {}", round_up(k, 16))
//       .emit();                       // gives Reported, the error half of a failed Result
//
// The id, severity and message format of each one live in diag/catalogue.def; the arguments are
// checked against the format at compile time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/format.h"
#include "support/result.h"
#include "support/source.h"

namespace kiln {

enum class Severity : std::uint8_t { kError, kWarning, kNote };

enum class DiagId : std::uint16_t {
#define KILN_DIAG(Name, id, severity, text) k##Name,
#include "diag/catalogue.def"
#undef KILN_DIAG
};

namespace diag {
#define KILN_DIAG(Name, id_text, severity_name, format_text) \
  struct Name {                                              \
    static constexpr DiagId id = DiagId::k##Name;            \
    static constexpr const char* text = format_text;         \
  };
#include "diag/catalogue.def"
#undef KILN_DIAG
}  // namespace diag

struct DiagInfo {
  DiagId id;
  std::string_view name;  // "mma-no-instruction"
  Severity severity;
  std::string_view text;  // the message's format
};
// All rows, in catalogue order (the index is the DiagId).
[[nodiscard]] const std::vector<DiagInfo>& diag_catalogue();
[[nodiscard]] const DiagInfo& info(DiagId id);

struct Label {
  Span span;
  std::string text;
};

struct Diagnostic {
  DiagId id{};
  Severity severity = Severity::kError;
  Span span;  // may be invalid: a mistake on the command line has no place
  std::string message;
  std::vector<Label> labels;  // further places; one with the same span as `span` explains the caret
  std::vector<std::string> notes;
  std::string help;  // one way out, legal under every constraint; may be empty
};

// Proof that an error has been reported. Only Diagnostics can make one.
class Reported {
 private:
  friend class DiagnosticBuilder;
  friend class Diagnostics;
  Reported() = default;
};

template <class T>
using Checked = Result<T, Reported>;

class Diagnostics;

class [[nodiscard("call .emit()")]] DiagnosticBuilder {
 public:
  // Out of line, as all that does not depend on types: hundreds of places make one.
  DiagnosticBuilder(Diagnostics & owner, Diagnostic diagnostic);
  DiagnosticBuilder(DiagnosticBuilder && other) noexcept;
  ~DiagnosticBuilder();

  template <class... Args>
  DiagnosticBuilder&& label(Span span, fmt::format_string<Args...> text, Args && ... args)&& {
    return add_label(span, text, fmt::make_format_args(args...));
  }
  template <class... Args>
  DiagnosticBuilder&& note(fmt::format_string<Args...> text, Args && ... args)&& {
    return add_note(text, fmt::make_format_args(args...));
  }
  template <class... Args>
  DiagnosticBuilder&& help(fmt::format_string<Args...> text, Args && ... args)&& {
    return add_help(text, fmt::make_format_args(args...));
  }
  // Does nothing for an empty suggestion (see did_you_mean).
  DiagnosticBuilder&& help_if(std::string text)&&;
  Unexpected<Reported> emit()&&;

 private:
  DiagnosticBuilder&& add_label(Span span, fmt::string_view text, fmt::format_args args);
  DiagnosticBuilder&& add_note(fmt::string_view text, fmt::format_args args);
  DiagnosticBuilder&& add_help(fmt::string_view text, fmt::format_args args);

  Diagnostics* owner_;
  Diagnostic diagnostic_;
};

// Collects a run's diagnostics. An exact repeat (same id, place and message) is dropped.
class Diagnostics {
 public:
  // After this many errors the rest are counted but not kept.
  static constexpr std::size_t kErrorsMax = 100;

  template <class D, class... Args>
  DiagnosticBuilder report(Span span, Args&&... args) {
    const fmt::format_string<Args...> checked(D::text);
    return begin(D::id, span, checked, fmt::make_format_args(args...));
  }

  Unexpected<Reported> add(Diagnostic diagnostic);

  // The text of a function is reached through calls: what is reported of it says where. One call is
  // under way between `begin_call` and `end_call`; behind them it is any of the calls.
  struct Call {
    Span function;  // its text
    Span call;
    std::string name;
    bool open = true;
  };
  void begin_call(Call call) { calls_.push_back(std::move(call)); }
  void end_call();

  [[nodiscard]] const std::vector<Diagnostic>& all() const { return diagnostics_; }
  [[nodiscard]] std::size_t error_count() const { return error_count_; }
  [[nodiscard]] bool has_errors() const { return error_count_ != 0; }

  // The failed result of a stage that has reported errors.
  [[nodiscard]] Unexpected<Reported> failed() const {
    KILN_CHECK(has_errors(), "a stage failed without a report");
    return Unexpected{Reported{}};
  }

 private:
  DiagnosticBuilder begin(DiagId id, Span span, fmt::string_view text, fmt::format_args args);

  void add_calls(Diagnostic& diagnostic) const;
  [[nodiscard]] std::vector<const Call*> calls_of(Span place) const;

  std::vector<Diagnostic> diagnostics_;
  std::vector<Call> calls_;  // as they were met
  std::size_t error_count_ = 0;
};

// "did you mean `block_m`?" when a candidate is close enough to `seen`, else "".
[[nodiscard]] std::string did_you_mean(std::string_view seen,
                                       const std::vector<std::string>& candidates);

}  // namespace kiln
