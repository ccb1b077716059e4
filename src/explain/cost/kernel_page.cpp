#include "explain/cost/kernel_page.h"

#include <algorithm>

#include "explain/cost/cost_print.h"
#include "explain/cost/kernel_style.h"
#include "explain/draw/html_page.h"
#include "explain/draw/html_parts.h"
#include "explain/draw/ownership.h"
#include "explain/draw/palette.h"
#include "explain/draw/print.h"
#include "support/escape.h"
#include "support/format.h"

namespace kiln::explain {

namespace {

// Four tints of each of the palette's hues, this one of them.
constexpr int kTintsOfHue = 4;
constexpr int kTint = 3;

int colour_of(SliceKind kind) {
  constexpr int kBlue = 5;
  constexpr int kSky = 0;
  constexpr int kGreen = 2;
  constexpr int kOrange = 1;
  constexpr int kGrey = 7;
  constexpr int kVermilion = 6;
  constexpr int kYellow = 4;
  constexpr int kPink = 3;
  const auto tinted = [](int hue) { return kTintsOfHue * hue + kTint; };
  switch (kind) {
    case SliceKind::kIssue: return tinted(kBlue);
    case SliceKind::kFlight: return tinted(kSky);
    case SliceKind::kProduct: return tinted(kGreen);
    case SliceKind::kWait: return kTintsOfHue * kOrange;  // light: there is much of it
    case SliceKind::kBarrier: return kTintsOfHue * kGrey;
    case SliceKind::kTrigger: return tinted(kVermilion);
    case SliceKind::kMove: return tinted(kYellow);
    case SliceKind::kStore: break;
  }
  return tinted(kPink);
}

std::string percent(std::int64_t part, std::int64_t of) {
  return format("{:.1f}%",
                of == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(of));
}

class Printer {
 public:
  explicit Printer(const KernelPage& page) : page_(page) {
    for (const KernelPage* each = &page; each != nullptr; each = each->after) {
      for (const BlockView& view : each->blocks) shown_ = std::max(shown_, view.cycles);
    }
  }

  std::string print() const {
    const Explanation& e = page_.explanation;
    std::string title = format("{} on {}", e.kernel, e.arch->name);
    for (const auto& [name, value] : e.shape) title += format(", {}={}", name, value);
    std::string out = page_head(title);
    out += kKernelStyle;
    for (const SliceKind kind : kSliceKinds) {
      out += format(".{}{{background-color:#{}}}", name(kind), hex(colour_of(kind)));
    }
    out += "\n</style>\n</head>\n<body data-word=\"thread\" data-prefix=\"T\" data-count=\"\">\n";
    out += format("<header>\n<h1>{}</h1>\n</header>\n<main>\n", in_markup(title));
    out += launches_html(0);
    if (page_.after != nullptr) {
      Printer after(*page_.after);
      after.shown_ = shown_;
      out += after.launches_html(e.launches.size());
    }
    out += "<h2>What it costs</h2>\n<pre>" + in_markup(to_text(e, page_.sources)) + "</pre>\n";
    out += maps_html();
    out += "</main>\n<aside id=\"picked\" aria-live=\"polite\" hidden></aside>\n<script>\n";
    out += kKernelScript;
    if (has_maps()) out += kPageScript;
    return out + "</script>\n</body>\n</html>\n";
  }

 private:
  // --- when

  // `first`: how many are drawn above.
  std::string launches_html(std::size_t first) const {
    std::string out;
    for (std::size_t i = 0; i < page_.explanation.launches.size(); ++i) {
      out += launch_html(i, first + i);
    }
    return out;
  }

  std::string launch_html(std::size_t number, std::size_t plot) const {
    const LaunchCost& launch = page_.explanation.launches[number];
    const BlockView& view = page_.blocks[number];
    const std::string change = page_.change.empty() ? "" : " with " + page_.change;
    std::string out = format(
        "<section aria-label=\"timeline of {0}{1}\">\n<h2>When a block of {0} does what{1}</h2>\n",
        in_markup(launch.name), in_markup(change));
    if (launch.predicted) {
      out += format("<p>The launch takes {} by the model of time.</p>\n",
                    in_markup(time_text(launch.predicted->seconds)));
    }
    out += format("<p>Block {} (from 0) of {}, alone on its SM: {} cycles of a model. ", view.block,
                  launch.blocks, view.cycles);
    out +=
        "What is done, in which order, and who waits for whom was counted in the simulator; the "
        "cycles are a model, not a measurement: products by the tensor cores' rate, loads by "
        "latency and bandwidth, everything else by small constants (docs/explain.md).</p>\n";
    if (view.cut) out += "<p class=\"cut\">Only the beginning: the block does much more.</p>\n";
    if (view.idle_warps != 0) {
      out += format("<p>{} {} nothing to do and no track.</p>\n", view.idle_warps,
                    view.idle_warps == 1 ? "warp has" : "warps have");
    }
    return out + legend() + chart(view, plot) + figures(view) + "</section>\n";
  }

  static std::string legend() {
    std::string out = "<ul class=\"legend\" aria-label=\"legend of the timeline\">\n";
    for (const SliceKind kind : kSliceKinds) {
      out += format("<li><span class=\"{}\"></span>{}</li>\n", name(kind),
                    in_markup(std::string(description(kind))));
    }
    return out + "</ul>\n";
  }

  std::string chart(const BlockView& view, std::size_t number) const {
    std::string labels = "<div class=\"axis\">cycles of the model</div>\n";
    std::string plot = axis(drawn(view));
    const auto add = [&](const std::string& title, const std::string& more, std::string row) {
      labels += format("<div>{}<small>{}</small></div>\n", in_markup(title), in_markup(more));
      plot += row;
    };
    for (const Track& track : view.stages)
      add(track.name, track.role, track_html(track, view, "stage"));
    for (const Track& track : view.tracks)
      add(track.name, track.role, track_html(track, view, "warps"));
    for (const Depth& depth : view.depths) {
      add(format("depth of {}", depth.name), format("0 to {}", depth.most),
          depth_html(depth, view));
    }
    std::string out = format("<p class=\"zoom\" data-plot=\"plot{}\">", number);
    out +=
        "<button type=\"button\" data-by=\"2\">wider</button> "
        "<button type=\"button\" data-by=\"0.5\">narrower</button></p>\n";
    return out + format(
                     "<div class=\"chart\"><div class=\"labels\">\n{}</div>\n<div "
                     "class=\"scroll\"><div class=\"plot\" id=\"plot{}\" "
                     "data-cycles=\"{}\">\n{}</div></div></div>\n",
                     labels, number, drawn(view), plot);
  }

  // Of all timelines of a page, so that they can be compared.
  [[nodiscard]] std::int64_t drawn(const BlockView& view) const {
    return page_.after == nullptr && page_.change.empty() ? view.cycles : shown_;
  }

  // Where it stands in the plot.
  static std::string place(std::int64_t begin, std::int64_t end, std::int64_t cycles) {
    const double all = static_cast<double>(std::max<std::int64_t>(cycles, 1));
    return format("left:{:.3f}%;width:{:.3f}%", 100 * static_cast<double>(begin) / all,
                  100 * static_cast<double>(end - begin) / all);
  }

  static std::string axis(std::int64_t cycles) {
    constexpr std::int64_t kTicks = 10;
    std::int64_t step = 1;
    for (int i = 0; step * kTicks < cycles; ++i) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    std::string out = "<div class=\"axis\">";
    for (std::int64_t at = 0; at < cycles; at += step) {
      out += format("<span style=\"{}\">{}</span>", place(at, at + step, cycles), at);
    }
    return out + "</div>\n";
  }

  std::string track_html(const Track& track, const BlockView& view, std::string_view kind) const {
    std::string out = format("<div class=\"lane {}\" aria-label=\"{}: {}\">", kind,
                             in_markup(track.name), in_markup(track.role));
    for (const Slice& slice : track.slices) out += slice_html(slice, view, "");
    for (const Slice& slice : track.running) out += slice_html(slice, view, " low");
    return out + "</div>\n";
  }

  std::string slice_html(const Slice& slice, const BlockView& view, std::string_view row) const {
    return format("<i class=\"s {}{}\" style=\"{}\" title=\"{}\"></i>", name(slice.kind), row,
                  place(slice.begin, slice.end, drawn(view)), in_attribute(title(slice)));
  }

  std::string title(const Slice& slice) const {
    std::string out;
    for (const ir::OpId op : slice.ops) out += line(op) + "\n";
    if (slice.count != 1) out += format("{} x ", slice.count);
    if (!slice.what.empty()) out += slice.what + "\n";
    out += format("cycles {} to {} ({})", slice.begin, slice.end, slice.cycles());
    if (slice.bytes != 0) out += format("\n{} bytes", slice.bytes);
    if (slice.released_by.valid()) out += "\nended by " + line(slice.released_by);
    return out;
  }

  // "35: wait full.at(k);"
  std::string line(ir::OpId op) const {
    const Span span = page_.function.ops[op].span;
    if (!span.valid()) return "made by the compiler";
    const kiln::Place place = page_.sources.place(span);
    std::string_view text =
        page_.sources.line_text(span.file, page_.sources.line_of(span.file, span.begin));
    const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
    return format("{}: {}", place.line, text.substr(begin));
  }

  std::string depth_html(const Depth& depth, const BlockView& view) const {
    std::string out = format("<div class=\"depth\" data-most=\"{}\" aria-label=\"depth of {}\">",
                             depth.most, in_markup(depth.name));
    for (std::size_t i = 0; i + 1 < depth.steps.size(); ++i) {
      const Depth::Step& step = depth.steps[i];
      const std::int64_t end = depth.steps[i + 1].at;
      if (step.depth == 0) continue;
      out += format(
          "<i class=\"flight\" style=\"{};height:{}%\" title=\"{} on their way, cycles {} "
          "to {}\"></i>",
          place(step.at, end, drawn(view)), 100 * step.depth / depth.most, step.depth, step.at,
          end);
    }
    return out + "</div>\n";
  }

  // --- how much

  static std::string figures(const BlockView& view) {
    std::string out =
        "<table class=\"figures waits\" aria-label=\"waits\"><thead><tr><th scope=\"col\">lane</th>"
        "<th scope=\"col\">waits</th><th scope=\"col\">for</th><th scope=\"col\">tensor cores work "
        "for it</th></tr></thead>\n<tbody>\n";
    for (const Track& track : view.tracks) {
      const std::string shares = join(track.waits, ", ", [&](const Share& share) {
        return format("{} {}", share.what, percent(share.cycles, view.cycles));
      });
      out += format("<tr><th scope=\"row\">{} ({})</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                    in_markup(track.name), in_markup(track.role),
                    percent(track.waiting(), view.cycles), in_markup(shares),
                    percent(track.products, view.cycles));
    }
    return out + "</tbody></table>\n" + depths(view);
  }

  static std::string depths(const BlockView& view) {
    if (view.depths.empty()) return "<p>Nothing is loaded ahead.</p>\n";
    std::string out =
        "<table class=\"figures depths\" aria-label=\"pipeline depth\"><thead><tr><th "
        "scope=\"col\">loads on their way</th><th scope=\"col\">slots</th><th "
        "scope=\"col\">at most</th><th scope=\"col\">mean</th></tr></thead>\n<tbody>\n";
    for (const Depth& depth : view.depths) {
      out += format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.2f}</td></tr>\n",
                    in_markup(depth.name), depth.slots == 0 ? "-" : format("{}", depth.slots),
                    depth.most, depth.mean);
    }
    return out + "</tbody></table>\n";
  }

  // --- who holds what

  std::vector<const target::Mma*> atoms() const {
    std::vector<const target::Mma*> out;
    for (const LaunchCost& launch : page_.explanation.launches) {
      for (const MmaCost& mma : launch.mmas) {
        if (std::find(out.begin(), out.end(), mma.atom) == out.end()) out.push_back(mma.atom);
      }
    }
    return out;
  }
  bool has_maps() const { return !atoms().empty(); }

  std::string maps_html() const {
    if (!has_maps()) return "";
    OwnerNames owners;
    std::string maps;
    for (const target::Mma* atom : atoms()) maps += maps_of(*atom, owners);
    return "<h2>Who holds which element</h2>\n" + search_form(owners) + maps;
  }

  // The accumulator, and operands from registers.
  static std::string maps_of(const target::Mma& atom, OwnerNames& owners) {
    std::string out;
    for (const target::Operand operand :
         {target::Operand::kC, target::Operand::kA, target::Operand::kB}) {
      const bool in_place = atom.reads_shared && operand != target::Operand::kC;
      if (in_place) continue;
      const Picture picture = atom_picture(atom, operand, {});
      if (picture.owners.count > owners.count) owners = picture.owners;
      out +=
          format("<details{}><summary>{}, operand {}</summary>\n{}</details>\n",
                 operand == target::Operand::kC ? " open" : "", in_markup(std::string(atom.name)),
                 target::name(operand), picture_html(picture, "div"));
    }
    return out;
  }

  const KernelPage& page_;
  std::int64_t shown_ = 0;  // cycles
};

}  // namespace

std::string to_html(const KernelPage& page) { return Printer(page).print(); }

std::vector<BlockView> view_blocks(const Explanation& explanation, const ir::Function& function,
                                   const sim::Outcome& outcome) {
  std::vector<BlockView> out;
  for (const LaunchCost& launch : explanation.launches) {
    const auto found =
        std::find_if(outcome.traces.begin(), outcome.traces.end(),
                     [&](const sim::BlockTrace& trace) { return trace.launch == launch.op; });
    if (found == outcome.traces.end()) {
      out.emplace_back();  // a launch of no blocks
      continue;
    }
    const double asked = static_cast<double>(std::max<std::int64_t>(launch.bytes_global, 1));
    const double dram = std::min(1.0, static_cast<double>(launch.bytes_once) / asked);
    out.push_back(view_block(function, *explanation.arch, *found, dram));
  }
  return out;
}

}  // namespace kiln::explain
