#include "diag/diagnostics.h"

#include <algorithm>

namespace kiln {

const std::vector<DiagInfo>& diag_catalogue() {
  static const std::vector<DiagInfo> rows = {
#define KILN_DIAG(Name, id_text, severity_name, format_text) \
  {DiagId::k##Name, id_text, Severity::k##severity_name, format_text},
#include "diag/catalogue.def"
#undef KILN_DIAG
  };
  return rows;
}

const DiagInfo& info(DiagId id) { return diag_catalogue()[static_cast<std::size_t>(id)]; }

DiagnosticBuilder::DiagnosticBuilder(Diagnostics& owner, Diagnostic diagnostic)
    : owner_(&owner), diagnostic_(std::move(diagnostic)) {}

DiagnosticBuilder::DiagnosticBuilder(DiagnosticBuilder&& other) noexcept = default;

DiagnosticBuilder::~DiagnosticBuilder() = default;

DiagnosticBuilder&& DiagnosticBuilder::add_label(Span span, fmt::string_view text,
                                                 fmt::format_args args) {
  diagnostic_.labels.push_back({span, detail::vformat(text, args)});
  return std::move(*this);
}

DiagnosticBuilder&& DiagnosticBuilder::add_note(fmt::string_view text, fmt::format_args args) {
  diagnostic_.notes.push_back(detail::vformat(text, args));
  return std::move(*this);
}

DiagnosticBuilder&& DiagnosticBuilder::add_help(fmt::string_view text, fmt::format_args args) {
  diagnostic_.help = detail::vformat(text, args);
  return std::move(*this);
}

DiagnosticBuilder&& DiagnosticBuilder::help_if(std::string text) && {
  if (!text.empty()) diagnostic_.help = std::move(text);
  return std::move(*this);
}

Unexpected<Reported> DiagnosticBuilder::emit() && { return owner_->add(std::move(diagnostic_)); }

DiagnosticBuilder Diagnostics::begin(DiagId id, Span span, fmt::string_view text,
                                     fmt::format_args args) {
  return {*this, Diagnostic{.id = id,
                            .severity = info(id).severity,
                            .span = span,
                            .message = detail::vformat(text, args),
                            .labels = {},
                            .notes = {},
                            .help = {}}};
}

void Diagnostics::end_call() {
  const auto open =
      std::find_if(calls_.rbegin(), calls_.rend(), [](const Call& c) { return c.open; });
  open->open = false;
  const auto same = [&](const Call& c) { return !c.open && c.call == open->call; };
  if (std::count_if(calls_.begin(), calls_.end(), same) > 1) calls_.erase(std::next(open).base());
}

// The call under way that leads to the place, or all that did.
std::vector<const Diagnostics::Call*> Diagnostics::calls_of(Span place) const {
  std::vector<const Call*> out;
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const bool inside = place.valid() && place.file == call->function.file &&
                        place.begin >= call->function.begin && place.end <= call->function.end;
    if (inside && call->open) return {&*call};
    if (inside) out.insert(out.begin(), &*call);
  }
  return out;
}

// The calls that led to the place, those that led to them, and so on.
void Diagnostics::add_calls(Diagnostic& diagnostic) const {
  constexpr std::size_t kCallsShown = 3;
  std::vector<const Call*> calls = calls_of(diagnostic.span);
  while (!calls.empty()) {
    const std::string_view which = calls.size() > 1 ? "a" : "the";
    for (std::size_t i = 0; i < std::min(calls.size(), kCallsShown); ++i) {
      diagnostic.labels.push_back(
          {calls[i]->call, format("in {} call of `{}` here", which, calls[i]->name)});
    }
    calls = calls.size() > 1 ? std::vector<const Call*>{} : calls_of(calls[0]->call);
  }
}

Unexpected<Reported> Diagnostics::add(Diagnostic diagnostic) {
  const bool repeat =
      std::any_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& d) {
        return d.id == diagnostic.id && d.span == diagnostic.span &&
               d.message == diagnostic.message;
      });
  if (!repeat) {
    add_calls(diagnostic);
    if (diagnostic.severity == Severity::kError) ++error_count_;
    if (error_count_ <= kErrorsMax) diagnostics_.push_back(std::move(diagnostic));
  }
  return Unexpected{Reported{}};
}

namespace {

// Levenshtein distance, with a swap of neighbours counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view seen, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLengthMax = 64;
  if (seen.size() > kLengthMax) return "";
  const std::size_t allowed = std::max<std::size_t>(1, seen.size() / 3);
  std::string best;
  std::size_t best_distance = allowed + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLengthMax) continue;
    const std::size_t distance = edit_distance(seen, candidate);
    if (distance < best_distance && distance < std::max(seen.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best.empty() ? "" : format("did you mean `{}`?", best);
}

}  // namespace kiln
