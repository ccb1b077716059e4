#include "measure/bench_plot.h"

#include <algorithm>
#include <cmath>

#include "explain/draw/print.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/format.h"

namespace kiln::measure {

namespace {

// Lengths in the picture, in pixels.
constexpr int kMargin = 24;
constexpr int kShapes = 200;  // for the extents of a problem
constexpr int kLabels = 480;  // with its types
constexpr int kBars = 420;    // from 0 to the axis's end
constexpr int kValues = 150;  // for the numbers right of the bars
constexpr int kRow = 18;
constexpr int kBar = 12;
constexpr int kHeading = 44;  // of a suite, with the axis
constexpr int kGap = 14;      // between suites
constexpr int kTitle = 46;
constexpr int kWidth = 2 * kMargin + kLabels + kBars + kValues;
constexpr int kTicksPerUnit = 5;

// No fonts but the reader's own; the page is white so that it reads on any background. Blue and
// orange are told apart by colour-blind readers, and the numbers say the same.
constexpr std::string_view kStyle =
    "<style>text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',"
    "monospace;font-size:11px;fill:#1b1f24}.h{font-size:16px;font-weight:700}"
    ".g{font-size:12px;font-weight:700}.n{fill:#4a525b}.t{fill:#4a525b;text-anchor:middle}"
    ".r{stroke:#e3e6ea}.one{stroke:#1b1f24;stroke-width:1.5}.ahead{fill:#56b4e9}"
    ".behind{fill:#e69f00}.s{stroke:#1b1f24}</style>\n";

struct Group {
  std::string suite;
  std::vector<BenchRow> rows;
};

std::vector<Group> grouped(const std::vector<BenchRow>& rows) {
  std::vector<Group> out;
  for (const BenchRow& row : rows) {
    auto found = std::ranges::find(out, row.suite, &Group::suite);
    if (found == out.end()) found = out.insert(out.end(), Group{row.suite, {}});
    found->rows.push_back(row);
  }
  return out;
}

int height_of(const Group& group) {
  return kHeading + kRow * static_cast<int>(group.rows.size()) + kGap;
}

// How many ticks the axis has: up to 1.2, or past the longest bar.
int tick_count(const std::vector<BenchRow>& rows) {
  double longest = 1.2;
  for (const BenchRow& row : rows) longest = std::max(longest, row.ratio.value_or(0));
  return static_cast<int>(std::ceil(std::min(longest, 20.0) * kTicksPerUnit - 1e-9));
}

// Where a ratio is on the axis.
struct Axis {
  int ticks;

  [[nodiscard]] int x(double ratio) const {
    const double unit = static_cast<double>(kBars) * kTicksPerUnit / ticks;
    const double end = static_cast<double>(ticks) / kTicksPerUnit;
    return kMargin + kLabels + static_cast<int>(std::lround(std::clamp(ratio, 0.0, end) * unit));
  }
};

std::string text_at(int x, int y, std::string_view kind, const std::string& text) {
  return format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, kind, in_markup(text));
}

std::string line(int x0, int y0, int x1, int y1, std::string_view kind) {
  return format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", x0, y0, x1, y1,
                kind);
}

std::string heading_of(const Group& group) {
  const RowSummary summary = summarise_rows(group.rows);
  if (summary.compared == 0) return group.suite;
  return format("{}: geometric mean {:.3f}, least {:.3f}", group.suite, summary.geometric_mean,
                summary.least);
}

std::string row_svg(const BenchRow& row, const Axis& axis, int top) {
  const int baseline = top + kRow - 5;
  std::string out = format("<g><title>{}</title>\n", in_markup(to_text(row)));
  out += text_at(kMargin, baseline, "n", row.shape);
  out += text_at(kMargin + kShapes, baseline, "n", row.types);
  if (row.ratio) {
    const int left = axis.x(0);
    out += format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n", left,
                  top + (kRow - kBar) / 2, axis.x(*row.ratio) - left, kBar,
                  *row.ratio >= 1 ? "ahead" : "behind");
    const double half = row.spread.value_or(0) / 2;
    const int middle = top + kRow / 2;
    out += line(axis.x(*row.ratio - half), middle, axis.x(*row.ratio + half), middle, "s");
  }
  const int values = kMargin + kLabels + kBars + 12;
  out += text_at(values, baseline, "v", row.ratio ? format("{:.3f}", *row.ratio) : "none");
  if (row.tflops) out += text_at(values + 48, baseline, "n", format("{:.0f} TFLOP/s", *row.tflops));
  return out + "</g>\n";
}

std::string group_svg(const Group& group, const Axis& axis, int top) {
  std::string out = text_at(kMargin, top + 16, "g", heading_of(group));
  const int first = top + kHeading;
  const int end = first + kRow * static_cast<int>(group.rows.size());
  for (int tick = 0; tick <= axis.ticks; ++tick) {
    const double ratio = static_cast<double>(tick) / kTicksPerUnit;
    out += line(axis.x(ratio), first, axis.x(ratio), end, "r");
    out += text_at(axis.x(ratio), first - 6, "t", format("{:.1f}", ratio));
  }
  int y = first;
  for (const BenchRow& row : group.rows) {
    out += row_svg(row, axis, y);
    y += kRow;
  }
  return out + line(axis.x(1), first - 3, axis.x(1), end + 3, "one");
}

// "NVIDIA H200, driver 580.1, cuBLASLt 13.1.0, kiln 0.1.0": of the last row.
std::string footing_of(const std::vector<BenchRow>& rows) {
  const BenchRow& last = rows.back();
  std::string text = last.machine.device;
  const auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) text += format("{}{}{}", text.empty() ? "" : ", ", what, value);
  };
  add("driver ", last.machine.driver);
  add("", last.baseline);
  add("kiln ", last.machine.version);
  add("commit ", last.machine.commit);
  return text;
}

}  // namespace

std::vector<BenchRow> latest_rows(const std::vector<BenchRow>& rows) {
  std::vector<BenchRow> out;
  for (const BenchRow& row : rows) {
    const auto found = std::ranges::find_if(out, [&](const BenchRow& other) {
      return other.suite == row.suite && other.shape == row.shape && other.types == row.types;
    });
    if (found == out.end()) {
      out.push_back(row);
    } else {
      *found = row;
    }
  }
  return out;
}

std::string plot_svg(const std::vector<BenchRow>& rows) {
  KILN_CHECK(!rows.empty(), "nothing to draw");
  const std::vector<BenchRow> latest = latest_rows(rows);
  const std::vector<Group> groups = grouped(latest);
  const Axis axis{tick_count(latest)};
  int height = kTitle + kMargin;
  for (const Group& group : groups) height += height_of(group);
  constexpr std::string_view kWhat = "kiln bench: time of the baseline over time of kiln";
  std::string out = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n{3}"
      "<rect x=\"0\" y=\"0\" width=\"{0}\" height=\"{1}\" rx=\"8\" fill=\"#fff\"/>\n",
      kWidth, height, kWhat, kStyle);
  out += text_at(kMargin, 32, "h", std::string(kWhat));
  int y = kTitle;
  for (const Group& group : groups) {
    out += group_svg(group, axis, y);
    y += height_of(group);
  }
  return out + text_at(kMargin, height - 12, "n", footing_of(rows)) + "</svg>\n";
}

io::Exit bench_plot(const BenchOptions& options, io::Console& console) {
  const auto text = read_file(options.plot);
  if (!text) return io::environment_failed(console, text.error()).error;
  const auto rows = parse_rows(*text, options.plot);
  if (!rows) return io::environment_failed(console, rows.error()).error;
  if (rows->empty()) {
    const Error error{"cannot draw", options.plot, "it has no results"};
    return io::environment_failed(console, error).error;
  }
  return io::write_text(console, options.output, plot_svg(*rows));
}

}  // namespace kiln::measure
