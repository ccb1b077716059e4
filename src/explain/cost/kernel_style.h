// The parts of the page of `kiln explain --html` that are the same for every kernel.
//
// Each lane is an element with the class `lane`, what happens in it an element with the class `s`
// and one for its kind; its place is in percent of the plot, which the zoom makes wider than the
// page.
#pragma once

#include <string_view>

namespace kiln::explain {

inline constexpr std::string_view kKernelStyle = R"css(
h2{font-size:1.1rem;margin:1.8rem 0 .4rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{max-width:60rem;margin:.3rem 0;color:var(--soft)}
pre{overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:6px;
  padding:.75rem;font:12px/1.45 ui-monospace,Menlo,Consolas,monospace}
.chart{display:grid;grid-template-columns:max-content minmax(0,1fr);border:1px solid var(--line);
  border-radius:6px;background:var(--panel)}
.labels{padding:0 .8rem;border-right:1px solid var(--line)}
.labels div{height:40px;display:flex;flex-direction:column;justify-content:center;line-height:1.2}
.labels .axis{height:22px}
.labels small{color:var(--soft)}
.scroll{overflow-x:auto}
.plot{position:relative;width:calc(100% * var(--zoom,1));min-width:100%}
.lane,.depth{position:relative;height:40px;border-top:1px solid var(--line);overflow:hidden}
.axis{position:relative;height:22px;font-size:11px;color:var(--soft)}
.axis span{position:absolute;border-left:1px solid var(--line);padding-left:3px;white-space:nowrap}
.s{position:absolute;top:3px;height:20px;min-width:1px;box-shadow:inset 1px 0 0 #0004}
.s.low{top:25px;height:12px}
.stage .s{height:32px;top:4px}
.s:hover{outline:2px solid var(--ink);z-index:1}
.s.wait,.s.barrier,.legend .wait,.legend .barrier{background-image:repeating-linear-gradient(135deg,
  #0000 0 4px,#0003 4px 6px)}
.depth i{position:absolute;bottom:0;min-width:1px}
.figures{border-spacing:0;margin:.5rem 0}
.figures th,.figures td{min-width:0;height:auto;padding:.2rem .8rem .2rem 0;text-align:left;color:inherit;
  background:none;cursor:auto;font:13px/1.4 system-ui,sans-serif;vertical-align:top}
.figures th{color:var(--soft)}
@media print{.zoom{display:none}.s,.depth i{print-color-adjust:exact}}
)css";

inline constexpr std::string_view kKernelScript = R"js("use strict";
(() => {
  const most = 64;
  for (const form of document.querySelectorAll(".zoom")) {
    const plot = document.getElementById(form.dataset.plot);
    let zoom = 1;
    form.addEventListener("click", event => {
      const by = Number(event.target.dataset.by);
      if (!by) return;
      const scroll = plot.parentElement;
      const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / plot.clientWidth;
      zoom = Math.min(most, Math.max(1, zoom * by));
      plot.style.setProperty("--zoom", zoom);
      scroll.scrollLeft = middle * plot.clientWidth - scroll.clientWidth / 2;
    });
  }
})();
)js";

}  // namespace kiln::explain
