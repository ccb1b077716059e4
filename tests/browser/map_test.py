#!/usr/bin/env python3
"""Opens the pages of `kiln map` in a headless browser and reads them.

    tests/browser/map_test.py --kiln build/release/bin/kiln [--results FILE] [FILTER]

Needs Chromium (Debian package `chromium`; any Chromium or Chrome, or the one in $CHROMIUM, will do).
Without one the test says so and passes, unless CI=true. It uses no driver: the page's own script runs,
then `--dump-dom` prints the document as it stands. Cells are picked through the address
(page.html#T05) and by real events that a script appended to the page sends.

What a thread owns is written down here from the PTX ISA ("Matrix Fragments for mma.m16n8k16"), with
lane = 4 * g + t, not taken from kiln.

Also, without a browser: every atom, operand and format is drawn, twice the same, the second time by
$KILN_RELEASE if that is there (what is tested has sanitizers then, and takes five times as long); SVG is
well-formed with one cell for each element.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

from browser import Page, expect, main

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402

PAGE_BYTES_MAX = 200_000  # of a page of up to CELLS cells; a larger one may grow in proportion
CELLS = 1024
SVG = "{http://www.w3.org/2000/svg}"
ATOM = "m16n8k16.f32.f16"


def a_elements(lane):
    g, t = divmod(lane, 4)
    return {(g + 8 * (i // 2 % 2), 2 * t + i % 2 + 8 * (i // 4)): i for i in range(8)}


def b_elements(lane):  # (n, k)
    g, t = divmod(lane, 4)
    return {(g, 2 * t + i % 2 + 8 * (i // 2)): i for i in range(4)}


def c_elements(lane):
    g, t = divmod(lane, 4)
    return {(g + 8 * (r // 2), 2 * t + r % 2): r for r in range(4)}


def kiln_map(kiln, *words):
    done = batch.run([str(kiln), "map", *words], os.curdir, os.environ, 60)
    if done.returncode != 0:
        raise AssertionError(f"kiln map {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout.encode(batch.ENCODING).decode("utf-8")


def expect_thread(page, lane):
    """Exactly the lane's elements of A, B (drawn k x n) and C are picked, with the right values."""
    name = f"T{lane:02}"
    transposed = {(k, n): value for (n, k), value in b_elements(lane).items()}
    for word, elements in (
        ("operand A", a_elements(lane)),
        ("operand B", transposed),
        ("operand C", c_elements(lane)),
    ):
        wanted = {place: f"{name}{value}" for place, value in elements.items()}
        found = page.picked(word)
        expect(found == wanted, f"{word} of {name}: picked {found}, wanted {wanted}")


# In the browser. Each takes the browser and the path of kiln.


def fragment_picks_a_thread(browser, kiln):
    text = kiln_map(kiln, ATOM, "--format", "html")
    for lane in (0, 5, 31):
        page = browser.open(text, f"#T{lane:02}")
        expect_thread(page, lane)
        expect("picking" in page.attributes["body"].get("class", ""), "the page is not `picking`")
        expect("hidden" not in page.attributes["picked"], "the panel stays hidden")


def without_a_fragment_nothing_is_picked(browser, kiln):
    page = browser.open(kiln_map(kiln, ATOM, "--format", "html"))
    expect(not page.picked("operand C"), "cells are picked")
    expect("hidden" in page.attributes["picked"], "the panel shows")
    cells = {(r, c): (text, attrs["title"]) for r, c, _, attrs, text in page.table("operand C")}
    expect(len(cells) == 128, f"{len(cells)} cells of C")
    wanted = ("T053", "row 9, col 3, lane 5, value 3, register 3")
    expect(cells[9, 3] == wanted, f"C[9][3] says {cells[9, 3]}, wanted {wanted}")


def click_picks_and_clicking_again_lets_go(browser, kiln):
    text = kiln_map(kiln, ATOM, "--format", "html")
    cell = "document.querySelectorAll('figure')[2].querySelectorAll('tbody tr')[9].cells[4]"
    expect_thread(browser.open(text, script=f"{cell}.click()"), 5)
    page = browser.open(text, script=f"{cell}.click(); {cell}.click()")
    expect(not page.picked("operand C"), "still picked after the second click")


def search_box_finds_a_thread(browser, kiln):
    text = kiln_map(kiln, ATOM, "--format", "html")
    typed = (
        "const box = document.getElementById('owner'); box.value = '{}';"
        "box.dispatchEvent(new Event('input', {{bubbles: true}}));"
    )
    for query in ("17", "T17", "t17"):
        expect_thread(browser.open(text, script=typed.format(query)), 17)
    page = browser.open(text, script=typed.format("T32"))
    expect(not page.picked("operand C"), "a thread that is not there was picked")
    expect(page.attributes["owner"].get("aria-invalid") == "true", "T32 is not marked invalid")


def escape_key_lets_go(browser, kiln):
    script = "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))"
    page = browser.open(kiln_map(kiln, ATOM, "--format", "html"), "#T05", script)
    expect(not page.picked("operand A"), "still picked after Escape")


def bank_picks_its_elements(browser, kiln):
    """Unswizzled, bank 4 is chunk 1 of every 128-byte row; swizzled, chunk 1 ^ row."""
    for swizzle, column in (("none", lambda row: 1), ("128", lambda row: 1 ^ row)):
        words = ["(8,8):(8,1)", "--dtype", "16", "--swizzle", swizzle, "--access", "8:1"]
        page = browser.open(kiln_map(kiln, *words, "--format", "html"), "#b04")
        found = set(page.picked("8 x 8"))
        expect(found == {(row, column(row)) for row in range(8)}, f"swizzle {swizzle}: {found}")
        conflicts = sum("x" in classes for _, _, classes, _, _ in page.table("8 x 8"))
        expect(conflicts == (8 if swizzle == "none" else 0), f"{conflicts} cells in conflict")


def table_of_a_thread_is_picked_too(browser, kiln):
    page = browser.open(kiln_map(kiln, ATOM, "--format", "html"), "#T09")
    found = page.picked("operand C: 16 x 8 of f32, 4 values a lane; ")
    wanted = {(9, r): f"{row},{col}" for (row, col), r in c_elements(9).items()}
    expect(found == wanted, f"the table picks {found}, wanted {wanted}")


IN_BROWSER = (
    fragment_picks_a_thread,
    without_a_fragment_nothing_is_picked,
    click_picks_and_clicking_again_lets_go,
    search_box_finds_a_thread,
    escape_key_lets_go,
    bank_picks_its_elements,
    table_of_a_thread_is_picked_too,
)


# Without one. Each takes the path of kiln.


def subjects(kiln):
    """Words of `kiln map` and the cells they draw: every atom and operand (one of those that differ in N or in
    types of one width alone), copies, layouts. An operand that is read from shared memory has banks and no owners."""
    argv = [str(kiln), "atoms", "--json"]
    atoms = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    seen = set()
    for atom in atoms:
        maps = tuple((facts["layout"], facts["rows"], facts["registers"]) for facts in atom["operands"].values())
        if (atom["reads_shared"] and "n24k" not in atom["name"]) or maps in seen:
            continue
        seen.add(maps)
        owned = 0
        for operand in "ABC":
            facts = atom["operands"][operand]
            count = facts["rows"] * facts["cols"]
            yield [atom["name"], "--operand", operand, "--banks"], count
            if not facts["layout"]:
                continue
            owned += count
            yield [atom["name"], "--operand", operand], count
            # Lanes by values: several lanes may hold an element.
            yield [atom["name"], "--operand", operand, "--table"], atom["lanes"] * facts["values"]
        yield [atom["name"]], owned
    for copy, trans in itertools.product((1, 2, 4), ("", ".trans")):
        yield [f"ldmatrix.x{copy}{trans}"], 64 * copy
    yield ["(4,(2,2)):(4,(2,1))"], 16
    yield ["((4,8),2):((16,1),8)", "--tile", "8x8"], 64
    yield ["(16,16):(64,1)", "--swizzle", "128", "--access", "ldmatrix.x4"], 256
    yield ["3:-1"], 3


def well_formed_svg(text, cells):
    root = xml.fromstring(text)
    drawn = [g for g in root.iter(f"{SVG}g") if g.find(f"{SVG}title") is not None]
    expect(len(drawn) == cells, f"{len(drawn)} cells in the SVG, wanted {cells}")
    expect(root.find(f"{SVG}title").text, "no title")
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        right = float(rect.get("x")) + float(rect.get("width"))
        bottom = float(rect.get("y")) + float(rect.get("height"))
        expect(right <= width and bottom <= height, f"a box ends at {right}, {bottom}, off the page")
    expect("//" not in text.replace("http://www.w3.org/2000/svg", ""), "an address in the SVG")


def self_contained_html(text, cells):
    page = Page(text)
    first = sum(len(table) for name, table in page.tables.items() if "of each thread" not in name)
    again = sum(len(table) for name, table in page.tables.items() if "of each thread" in name)
    expect(cells in (first, again), f"{first} and {again} cells in the HTML, wanted {cells}")
    expect(not page.network, f"the page names other files: {page.network}")
    expect(page.headers > 0 and "@import" not in text and "url(" not in text, "not self-contained")
    size = len(text.encode())
    limit = PAGE_BYTES_MAX * max(1, (first + again) / CELLS)
    expect(size <= limit, f"{size} bytes, at most {limit:.0f}")


def balanced_latex(text, cells):
    body = re.sub(r"\\[{}\\]", "", text)
    expect(body.count("{") == body.count("}"), "braces do not balance")
    count = len(re.findall(r"^\\cell\{", text, re.M))
    expect(count == cells, f"{count} cells in the LaTeX, wanted {cells}")
    used = set(re.findall(r"\{(c\d+)\}", text.split("\\begin{document}")[1]))
    defined = set(re.findall(r"\\definecolor\{(c\d+)\}", text))
    expect(used <= defined, f"colours without a definition: {used - defined}")
    expect(text.startswith("%") and text.rstrip().endswith("\\end{document}"), "not a document")


def complete_json(text, cells):
    parsed = json.loads(text)
    lists = [v for v in parsed.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
    grids = lists[0] if lists else [parsed]
    count = sum(len(line) for grid in grids for line in grid["elements"])
    expect(count == cells, f"{count} cells in the JSON, wanted {cells}")


def some_text(text, _cells):
    expect(text.strip() and all(line == line.rstrip() for line in text.split("\n")), "stray spaces")


FORMATS = {
    "svg": well_formed_svg,
    "html": self_contained_html,
    "latex": balanced_latex,
    "json": complete_json,
    "text": some_text,
}


def every_subject_in(name):
    """Each drawing is looked at, and is the same from another process."""

    def check(kiln):
        another = os.environ.get("KILN_RELEASE") or kiln
        drawn = {}
        for words, cells in subjects(kiln):
            argv = (*words[1:], "--format", name, "--", words[0])
            text = kiln_map(kiln, *argv)
            try:
                FORMATS[name](text, cells)
            except AssertionError as error:
                raise AssertionError(f"{' '.join(words)}: {error}") from None
            drawn[argv] = hash(text)
        end_processes()
        for argv, before in drawn.items():
            expect(hash(kiln_map(another, *argv)) == before, f"{' '.join(argv)}: two runs differ")
        end_processes()

    check.__name__ = f"every_subject_in_{name}"
    return check


def end_processes():
    said = batch.finish()
    expect(not said, said)


ALONE = tuple(every_subject_in(name) for name in FORMATS)


if __name__ == "__main__":
    sys.exit(main(__doc__, ALONE, IN_BROWSER))
