#!/usr/bin/env python3
"""Writes docs/diagnostics.md: one section for each row of the catalogue, with a real example.

    tests/tools/diagnostics_doc.py --kiln build/release/bin/kiln [--check]

The example of an id is the smallest golden test that expects it: its program without the
expectations, the command of its RUN line, and what kiln prints for it. Nothing is written by hand,
so nothing can be out of date; --check only says whether the file is.
"""

import dataclasses
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
import commands  # noqa: E402
import generated  # noqa: E402
import tree  # noqa: E402
from golden_file import GoldenError, parse, section_texts  # noqa: E402

DOCUMENT = Path("docs/diagnostics.md")
SOURCE_LINES_MAX = 16  # a longer program is not shown: the message quotes the lines that matter
COLUMNS_MAX = 110
GROUPS = {
    "catalogue_syntax.def": "Reading the text",
    "catalogue_sema.def": "What the program means",
    "catalogue_sync.def": "Moving data, and threads that meet",
    "catalogue_ir.def": "Reading IR text",
    "catalogue_plan.def": "How the hardware would do it",
    "catalogue_run.def": "The command line, and what a run found",
}
INTRODUCTION = """\
# Diagnostics

Every message of `kiln` has an id in brackets: `error[unknown-name]: ...`. The id is stable and the
text may change, so scripts should match on ids (`kiln check --json` prints them). An error makes
the exit code 1, or 2 when it is about the command line; a warning or a note does not change it.

A message names the narrowest piece of the program that is wrong and underlines it with `^`. Lines
under `-` are other places that matter. `= help:` is a way out that is legal.

This file is generated from the catalogue (`src/diag/catalogue_*.def`) and the golden tests. To
change it, change those and run `./dev docs`.
"""

_EXPECTATION = re.compile(
    r"^// (?:RUN|EXIT|STYLE|CHECK|CHECK-NOT|OUT|ERR|DIAG|HELP):(?: |$)"
    r"|^//(?: @\d+)? *\^+ (?:error|warning|note)\[[a-z0-9-]+\]: "
    r"|^// *= help: "
)
_TITLE = re.compile(r"^(error|warning|note)\[([a-z0-9-]+)\]: ")


@dataclasses.dataclass
class Example:
    path: Path  # of the test
    run: str  # "kiln check fail_name.co --arch sm_80"
    source: str  # the program; "" when it is too long or not text
    shown: str  # what kiln prints


def without_expectations(text):
    """The program of a golden test alone."""
    lines = [line for line in text.split("\n") if not _EXPECTATION.match(line)]
    return "\n".join(lines).strip("\n") + "\n"


def block_of(shown, row):
    """The diagnostic of this row in rendered text, or ''."""
    lines = shown.split("\n")
    for begin, line in enumerate(lines):
        match = _TITLE.match(line)
        if match and (match[1], match[2]) == (row.severity, row.id):
            end = begin
            while end < len(lines) and lines[end]:
                end += 1
            return "\n".join(lines[begin:end]) + "\n"
    return ""


def mentions(text, row):
    return f"{row.severity}[{row.id}]" in text or f'"id": "{row.id}"' in text


def candidates(row, tests):
    """The golden tests that expect the row, smallest program first."""
    found = [path for path, text in tests.items() if mentions(text, row)]
    return sorted(found, key=lambda path: (len(without_expectations(tests[path])), str(path)))


def _is_plain(source):
    lines = source.rstrip("\n").split("\n")
    fits = len(lines) <= SOURCE_LINES_MAX and all(len(line) <= COLUMNS_MAX for line in lines)
    return fits and source.isascii() and source.replace("\n", "").isprintable()


def _first_shown(file, folder, row, kiln):
    """(RUN line, the diagnostic) of the first command that gives it, or None."""
    with tempfile.TemporaryDirectory(prefix="kiln-docs-") as scratch:
        for run in file.runs:
            run = run.replace(" --json", "")
            one = dataclasses.replace(file, runs=[run], style="rendered")
            outcome = commands.run_all(one, kiln, file.name, folder, scratch, tree.ROOT)
            if shown := block_of(outcome.err, row):
                return run, shown
    return None


def _for_readers(text, name):
    """A command or its output with the golden runner's names spelled out."""
    return text.replace("%s", name).replace("%t", "$OUT").replace("%R/", "")


def example_from(path, row, kiln):
    """The example that one test gives, or None."""
    file = parse(path.name, (tree.ROOT / path).read_bytes().decode("latin-1"))
    programs = {name: without_expectations(part) for name, part in section_texts(file)}
    with tempfile.TemporaryDirectory(prefix="kiln-docs-") as folder:
        for name, program in programs.items():
            (Path(folder) / name).write_bytes(program.encode("latin-1"))
        found = _first_shown(file, folder, row, kiln)
    if found is None:  # it needs its neighbours, or its expectations are part of the mistake
        programs = {}
        found = _first_shown(file, tree.ROOT / path.parent, row, kiln)
    if found is None or not found[1].isascii():
        return None
    source = programs.get(path.name, "") if len(programs) == 1 else ""
    run, shown = (_for_readers(text, path.name) for text in found)
    return Example(path, run, source if _is_plain(source) else "", shown)


def example_of(row, tests, kiln):
    for path in candidates(row, tests):
        try:
            example = example_from(path, row, kiln)
        except GoldenError:  # the golden runner will say so, and better
            continue
        if example:
            return example
    return None


def section(row, example):
    out = [f"### {row.id}", ""]
    if example is None:
        message = re.sub(r"\{[^{}]*\}", "...", row.message.replace("{{", "\0").replace("}}", "\1"))
        message = message.replace("\0", "{").replace("\1", "}").replace('\\"', '"')
        return out + ["```", f"{row.severity}[{row.id}]: {message}", "```", ""]
    if example.source:
        out += ["```c++", example.source.rstrip("\n"), "```", ""]
    link = f"../{example.path.as_posix()}"
    out += [f"`{example.run}` ([test]({link})) prints", ""]
    return out + ["```", example.shown.rstrip("\n"), "```", ""]


def golden_tests():
    """{path: text} of every golden test."""
    kept = (p for p in tree.files(".co", ".kir") if {"testdata", "e2e"}.intersection(p.parts))
    return {p: tree.text(p) for p in kept if p.name[0] != "_" and "// RUN: kiln " in tree.text(p)}


def document(kiln):
    """The text that docs/diagnostics.md should have."""
    kiln, tests = str(kiln), golden_tests()
    rows = tree.catalogue()
    untitled = {row.path.name for row in rows} - set(GROUPS)
    if untitled:
        sys.exit(f"diagnostics_doc: no title in GROUPS for {', '.join(sorted(untitled))}")
    with ThreadPoolExecutor() as pool:
        examples = list(pool.map(lambda row: example_of(row, tests, kiln), rows))
    out = [INTRODUCTION]
    for file_name, title in GROUPS.items():
        mine = [(r, e) for r, e in zip(rows, examples) if r.path.name == file_name]
        out += [f"## {title}", ""]
        out += [", ".join(f"[{row.id}](#{row.id})" for row, _ in mine), ""]
        for row, example in mine:
            out += section(row, example)
    return "\n".join(line.rstrip() for line in "\n".join(out).rstrip("\n").split("\n")) + "\n"


def is_current(kiln):
    return generated.is_current(DOCUMENT, document(kiln))


if __name__ == "__main__":
    sys.exit(generated.main(__doc__, DOCUMENT, document))
