#!/usr/bin/env python3
"""Writes README's table of measured results from bench/results/*.jsonl, and the sentence on its first screen, each
between two marker lines.

    tests/tools/readme_numbers.py [--check]

A row for each suite of each file: how many problems, the geometric mean and the least of their
ratios to the baseline, the most TFLOP/s, and the command. Of a problem that was measured several
times the last line counts. --check only says whether README is current.
"""

import argparse
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tree  # noqa: E402

DOCUMENT = Path("README.md")
RESULTS = Path("bench/results")
BEGIN = "<!-- results: written by `./dev docs` from bench/results -->"
END = "<!-- end of results -->"
HEADLINE = "<!-- headline: written by `./dev docs` from bench/results -->"
END_OF_HEADLINE = "<!-- end of headline -->"
SUITES = ("dense", "llm", "small", "fp8", "sparse", "ragged", "file")
_HEAD = (
    "| what | on | problems | time of the baseline over ours: geometric mean | least | most TFLOP/s |",
    "|---|---|---|---|---|---|",
)


def read_rows(text, name):
    """The rows of a file of JSON lines."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise SystemExit(f"{name}:{number}: no JSON") from None
        if not isinstance(row, dict) or row.get("suite") not in SUITES:
            raise SystemExit(f"{name}:{number}: no line of `kiln bench --json`")
        rows.append(row)
    return rows


def latest(rows):
    """The last row of each problem, in the order of the first ones."""
    found = {}
    for row in rows:
        found[row["suite"], row.get("shape"), row.get("types")] = row
    return list(found.values())


def _command(suite, name):
    if suite == "file":
        return f"[`{Path(name).name}`]({name})"
    return f"[`kiln bench {suite}`]({name})"


def _line(suite, name, rows):
    compared = [row for row in rows if row.get("ratio")]
    speeds = [row["tflops"] for row in rows if row.get("tflops")]
    mean = least = "-"
    if compared:
        mean = f"{_mean(compared):.3f}"
        last_place = min(compared, key=lambda row: row["ratio"])
        least = f"{last_place['ratio']:.3f} ({last_place['shape']})"
    last = rows[-1]
    where = ", ".join(part for part in (last.get("device"), last.get("baseline")) if part)
    speed = f"{max(speeds):.0f}" if speeds else "-"
    count = f"{len(rows)}"
    if len(compared) < len(rows):
        count += f", {len(compared)} with a baseline"
    return f"| {_command(suite, name)} | {where} | {count} | {mean} | {least} | {speed} |"


def table(files):
    """The table's lines for {file name: text}."""
    lines = []
    for name, text in sorted(files.items()):
        rows = latest(read_rows(text, name))
        for suite in SUITES:
            mine = [row for row in rows if row["suite"] == suite]
            if mine:
                lines.append((SUITES.index(suite), _line(suite, name, mine)))
    return [*_HEAD, *(line for _, line in sorted(lines, key=lambda each: each[0]))]


def _mean(rows):
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def headline(files):
    """What the suites `dense` and `llm` say, in a sentence of several lines; none where one was not measured."""
    rows = [row for name, text in sorted(files.items()) for row in latest(read_rows(text, name))]
    dense, llm = ([row for row in rows if row["suite"] == suite and row.get("ratio")] for suite in ("dense", "llm"))
    if not dense or not llm:
        return []
    where = f"one {dense[-1]['device']}, in one process with {dense[-1]['baseline']}"
    least = min(dense + llm, key=lambda row: row["ratio"])
    return [
        f"on {where}, the library is {_mean(dense):.3f} times as fast on {len(dense)} products",
        f"of square matrices and {_mean(llm):.3f} times on {len(llm)} of language models (geometric means; the worst of all",
        f"is {least['ratio']:.3f}); the most is {max(row['tflops'] for row in dense + llm):.0f} TFLOP/s.",
    ]


def replaced(document, lines, markers=(BEGIN, END)):
    """The document with these lines between the markers."""
    before, begin, rest = document.partition(markers[0] + "\n")
    _, end, after = rest.partition(markers[1])
    if not begin or not end:
        raise SystemExit(f"{DOCUMENT}: needs the lines\n{markers[0]}\n{markers[1]}")
    return before + begin + "".join(f"{line}\n" for line in lines) + end + after


def document():
    """The text that README should have."""
    paths = [p for p in tree.files(".jsonl") if p.parent == RESULTS]
    files = {str(p): tree.text(p) for p in paths}
    text = replaced(tree.text(DOCUMENT), headline(files), (HEADLINE, END_OF_HEADLINE))
    return replaced(text, table(files))


def is_current():
    return tree.text(DOCUMENT) == document()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    options = parser.parse_args()
    if options.check:
        current = is_current()
        print(f"{DOCUMENT}: {'up to date' if current else 'out of date, run `./dev docs`'}")
        return 0 if current else 1
    (tree.ROOT / DOCUMENT).write_text(document(), encoding="utf-8")
    print(f"wrote the results in {DOCUMENT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
