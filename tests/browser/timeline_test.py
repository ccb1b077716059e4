#!/usr/bin/env python3
"""Opens the pages of `kiln explain --html` in a headless browser and reads them.

    tests/browser/timeline_test.py --kiln build/release/bin/kiln [--results FILE] [FILTER]

Needs Chromium, as map_test.py; without one it says so and passes, unless CI=true.

The page is that of examples/matmul_1p2c.co, where one warp loads and two groups of four multiply. A script
appended to the page measures every slice where the browser drew it; what overlaps is decided by those places,
not by the numbers that kiln printed. How many stages there may be is read from the example.
"""

import html
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

from browser import Page, expect, main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "matmul_1p2c.co"
STEPS = 8  # along K, of 64
SHAPE = f"M=512,N=256,K={64 * STEPS}"
STAGES = int(re.search(r"^#define STAGES (\d+)", EXAMPLE.read_text(encoding="utf-8"), re.M)[1])
CONSUMERS = ("warps 4 to 7", "warps 8 to 11")
NO_PIPELINE = """__co__ void axpy(global f32 [N] x, global f32 [N] y, f32 a) {
  parallel b by cdiv(N, 64) : block, t by 64 : thread
    if (b # t < N) y.at(b # t) += a * x.at(b # t);
}
"""

CATCH = """<head><script>
window.errors = [];
window.addEventListener("error", event => window.errors.push(event.message));
console.error = (...words) => window.errors.push(words.join(" "));
</script>"""

# What the browser has drawn, as JSON in an element of its own.
MEASURE = """
const box = element => { const r = element.getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom]; };
const seen = {errors: window.errors, lanes: [], depths: [], resources: performance.getEntriesByType("resource").length};
for (const plot of document.querySelectorAll(".plot")) seen.plot = box(plot);
for (const lane of document.querySelectorAll(".lane")) {
  const slices = [...lane.querySelectorAll(".s")];
  seen.lanes.push({name: lane.getAttribute("aria-label"), stage: lane.classList.contains("stage"), place: box(lane),
    slices: slices.map(s => ({kind: s.classList[1], low: s.classList.contains("low"), place: box(s), title: s.title}))});
}
for (const depth of document.querySelectorAll(".depth")) seen.depths.push(Number(depth.dataset.most));
const out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.append(out);
"""


def explain(kiln, *words):
    argv = [str(kiln), "explain", *words, "--html"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv[1:])}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def example_page(kiln):
    return explain(kiln, str(EXAMPLE), "--arch", "sm_90a", "--shape", SHAPE)


def measured(browser, text, before=""):
    """What MEASURE found after the script `before`, and the page."""
    page = browser.open(text.replace("<head>", CATCH, 1), script=before + MEASURE)
    found = re.search(r'<pre id="seen">(.*?)</pre>', page.text, re.S)
    expect(found, "the appended script did not run")
    return json.loads(html.unescape(found[1])), page


def lane_of(seen, name):
    return next(lane for lane in seen["lanes"] if lane["name"].startswith(f"{name}:"))


def flights(seen):
    """(left, right) of the loads on their way, over all slots."""
    return [s["place"][:2] for lane in seen["lanes"] if lane["stage"] for s in lane["slices"]]


def products(seen, name):
    return [s["place"][:2] for s in lane_of(seen, name)["slices"] if s["kind"] == "product" and s["low"]]


def overlap(a, b):
    return min(a[1], b[1]) - max(a[0], b[0]) > 0.5  # pixels


# In the browser.


def the_page_opens_without_errors(browser, kiln):
    seen, page = measured(browser, example_page(kiln))
    expect(seen["errors"] == [], f"errors: {seen['errors']}")
    expect(seen["resources"] == 0, f"the page asked for {seen['resources']} other things")
    expect("a model, not a measurement" in page.text, "the page does not say that its cycles are a model")
    expect("What it costs" in page.text and "occupancy" in page.text, "no costs")


def lanes_are_the_roles_and_the_slots(browser, kiln):
    seen, _ = measured(browser, example_page(kiln))
    slots = [lane["name"] for lane in seen["lanes"] if lane["stage"]]
    expect(slots == [f"full[{s}]: on their way" for s in range(STAGES)], f"slots: {slots}")
    warps = [lane["name"] for lane in seen["lanes"] if not lane["stage"]]
    wanted = ["warp 0: loads", *(f"{name}: multiplies, stores" for name in CONSUMERS)]
    expect(warps == wanted, f"warps: {warps}")
    heights = {lane["place"][3] - lane["place"][2] for lane in seen["lanes"]}
    expect(len(heights) == 1 and min(heights) > 20, f"heights of lanes: {heights}")


def every_slice_is_named_and_inside(browser, kiln):
    seen, _ = measured(browser, example_page(kiln))
    left, right, *_ = seen["plot"]
    for lane in seen["lanes"]:
        expect(lane["slices"], f"{lane['name']}: nothing in it")
        for s in lane["slices"]:
            expect(re.search(r"^\d+: \S", s["title"]), f"no source line: {s}")
            expect(re.search(r"cycles \d+ to \d+ \(\d+\)", s["title"]), f"no cycles: {s}")
            begin, end, top, bottom = s["place"]
            expect(left - 1 <= begin < end <= right + 1.5, f"outside of the plot: {s}")
            expect(lane["place"][2] <= top < bottom <= lane["place"][3], f"outside of its lane: {s}")


def waits_say_what_they_wait_for(browser, kiln):
    """Consumers wait for full[k % STAGES], generation k / STAGES; the source says `wait full.at(k)`."""
    seen, _ = measured(browser, example_page(kiln))
    for name in CONSUMERS:
        waits = [s["title"] for s in lane_of(seen, name)["slices"] if "wait full.at(k);\n" in s["title"]]
        places = [tuple(map(int, re.search(r"full\[(\d+)\], generation (\d+)", t).groups())) for t in waits]
        expect(places == [(k % STAGES, k // STAGES) for k in range(STEPS)], f"{name}: {places}")
        expect("ended by" in waits[0] and "tma.load" in waits[0].split("ended by")[1], f"who ended it: {waits[0]}")


def loads_overlap_products(browser, kiln):
    seen, _ = measured(browser, example_page(kiln))
    loads = flights(seen)
    expect(len(loads) == STEPS, f"{len(loads)} stages were loaded")
    for name in CONSUMERS:
        work = products(seen, name)
        expect(work, f"{name} does not multiply")
        both = sum(any(overlap(load, product) for product in work) for load in loads)
        expect(both >= STEPS // 2, f"{name} multiplies during {both} of {STEPS} loads")
        first = min(end for _, end in loads)
        expect(min(begin for begin, _ in work) >= first - 0.5, f"{name} multiplies before anything was loaded")


def a_slot_is_loaded_after_it_is_released(browser, kiln):
    seen, _ = measured(browser, example_page(kiln))
    for lane in seen["lanes"]:
        places = [s["place"] for s in lane["slices"]]
        if lane["stage"]:
            expect(all(a[1] <= b[0] for a, b in itertools.pairwise(places)), f"{lane['name']} overlaps itself")


def depth_is_at_most_the_stages(browser, kiln):
    seen, page = measured(browser, example_page(kiln))
    expect(len(seen["depths"]) == 1, f"{len(seen['depths'])} events with loads")
    edges = sorted([(b, 1) for b, _ in flights(seen)] + [(e, -1) for _, e in flights(seen)])
    counted = max(itertools.accumulate(change for _, change in edges))
    expect(1 < counted <= STAGES, f"{counted} stages overlap on the page, there are {STAGES}")
    expect(seen["depths"] == [counted], f"the page says {seen['depths']}, it shows {counted}")
    cells = [text for *_, text in page.table("pipeline depth")]
    expect(cells[0] == str(STAGES) and cells[1] == str(counted), f"table of depths: {cells}")
    expect(1 < float(cells[2]) <= counted, f"mean depth {cells[2]}")


def the_table_of_waits_agrees_with_the_lanes(browser, kiln):
    seen, page = measured(browser, example_page(kiln))
    left, right, *_ = seen["plot"]
    rows = [text for _, column, _, _, text in page.table("waits") if column == 0]
    for name, said in zip(("warp 0", *CONSUMERS), rows, strict=True):
        waits = [s["place"] for s in lane_of(seen, name)["slices"] if s["kind"] in ("wait", "barrier")]
        drawn = 100 * sum(end - begin for begin, end, *_ in waits) / (right - left)
        expect(abs(drawn - float(said.rstrip("%"))) < 4, f"{name}: {drawn:.1f}% drawn, {said} said")


def wider_makes_the_plot_wider(browser, kiln):
    text = example_page(kiln)
    before, _ = measured(browser, text)
    after, _ = measured(browser, text, "document.querySelector('[data-by=\"2\"]').click();")
    ratio = (after["plot"][1] - after["plot"][0]) / (before["plot"][1] - before["plot"][0])
    expect(abs(ratio - 2) < 0.01, f"{ratio} times as wide")


def the_accumulators_map_is_picked(browser, kiln):
    """Thread 5 of a warpgroup has rows 1 and 9 (PTX ISA, wgmma accumulators), columns 2 and 3 of each 8."""
    page = browser.open(example_page(kiln), "#T05")
    wanted = {(row, 8 * j + col) for row in (1, 9) for col in (2, 3) for j in range(8)}
    found = set(page.picked("operand C"))
    expect(found == wanted, f"picked {sorted(found)}")


def a_kernel_without_a_pipeline_has_a_page(browser, kiln):
    path = browser.scratch / "axpy.co"
    path.write_text(NO_PIPELINE, encoding="utf-8")
    seen, page = measured(browser, explain(kiln, str(path), "--arch", "sm_80", "--shape", "N=1000,a=1"))
    expect(seen["errors"] == [] and seen["depths"] == [], f"{seen['errors']} {seen['depths']}")
    expect([lane["name"] for lane in seen["lanes"]] == ["warps 0 to 1: moves"], f"lanes: {seen['lanes']}")
    expect("Nothing is loaded ahead" in page.text, "the page does not say that nothing is loaded ahead")


IN_BROWSER = (
    the_page_opens_without_errors,
    lanes_are_the_roles_and_the_slots,
    every_slice_is_named_and_inside,
    waits_say_what_they_wait_for,
    loads_overlap_products,
    a_slot_is_loaded_after_it_is_released,
    depth_is_at_most_the_stages,
    the_table_of_waits_agrees_with_the_lanes,
    wider_makes_the_plot_wider,
    the_accumulators_map_is_picked,
    a_kernel_without_a_pipeline_has_a_page,
)


# Without one.


def two_runs_are_the_same(kiln):
    text = example_page(kiln)
    expect(text == example_page(kiln), "two runs differ")
    expect("@import" not in text and "url(" not in text and "src=" not in text, "not self-contained")
    page = Page(text)
    expect(not [value for value in page.network if value.startswith("http")], f"addresses: {page.network}")


ALONE = (two_runs_are_the_same,)


if __name__ == "__main__":
    sys.exit(main(__doc__, ALONE, IN_BROWSER))
