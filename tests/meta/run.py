#!/usr/bin/env python3
"""Tests of the tests and the documents.

    tests/meta/run.py --kiln build/dev/bin/kiln [--results FILE] [FILTER]

Each check is a function in CHECKS that returns what is wrong, one line per problem. `./dev test` runs all of them in
release. With sanitizers it takes a sample, `--every N`: of the programs that go through their decided text every
Nth, and no commands of documents.
"""

import argparse
import collections
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402
import diagnostics_doc  # noqa: E402
import ir_doc  # noqa: E402
import pictures  # noqa: E402
import readme_numbers  # noqa: E402
import tree  # noqa: E402

EXAMPLE_TIMEOUT_S = 300
EMIT_TIMEOUT_S = 120
EMITTED_LEAST = 600  # programs that go through their decided text
_MENTION = re.compile(r"^//.*?\b(error|warning|note)\[([a-z0-9-]+)\]", re.M)
_SCRIPT_MENTION = re.compile(r"\b(error|warning|note)\[([a-z0-9-]+)\]")
_JSON_MENTION = re.compile(r'^// (?:OUT|CHECK): .*"id": "([a-z0-9-]+)"', re.M)
_CODE = re.compile(r"`[^`\n]*`|^    .*$", re.M)
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def golden_files():
    folders = ("testdata", "e2e")
    return [p for p in tree.files(".co", ".kir") if any(f in p.parts for f in folders)]


def script_tests():
    return [p for p in tree.files(".py") if "e2e" in p.parts and p.stem.endswith("_test")]


def documents():
    return [p for p in tree.files(".md") if p.parts[0] == "docs" or len(p.parts) == 1]


def every_diagnostic_is_tested(_kiln):
    """A message that no golden test and no script in tests/e2e expects is one nobody has seen."""
    seen = set()
    ids_in_json = set()
    for path in golden_files():
        body = tree.text(path)
        seen.update(_MENTION.findall(body))
        ids_in_json.update(_JSON_MENTION.findall(body))
    for path in script_tests():
        seen.update(_SCRIPT_MENTION.findall(tree.text(path)))
    return [
        f"{row.path}:{row.line}: no test expects {row.severity}[{row.id}]"
        for row in tree.catalogue()
        if (row.severity, row.id) not in seen and row.id not in ids_in_json
    ]


def every_expected_diagnostic_exists(_kiln):
    known = {(row.severity, row.id) for row in tree.catalogue()}
    problems = []
    for path in golden_files():
        for severity, name in _MENTION.findall(tree.text(path)):
            if (severity, name) not in known:
                problems.append(f"{path}: {severity}[{name}] is not in the catalogue")
    return problems


def ids_are_unique(_kiln):
    counts = collections.Counter(row.id for row in tree.catalogue())
    names = collections.Counter(row.name for row in tree.catalogue())
    repeated = [key for key, count in (counts + names).items() if count > 1]
    return [f"catalogue: `{key}` is there more than once" for key in repeated]


def every_golden_file_has_a_run_line(_kiln):
    """A test that the runner would not find, or that runs nothing, tests nothing."""
    return [
        f"{path}: no `// RUN:` line (a file for others to include starts with `_`)"
        for path in golden_files()
        if not path.name.startswith("_") and "// RUN: kiln " not in tree.text(path)
    ]


def document_examples_run(kiln):
    """Each block marked ```sh run is executed at the root, with this kiln first on the PATH."""
    problems = []
    env = dict(os.environ, PATH=f"{Path(kiln).parent}{os.pathsep}{os.environ['PATH']}")
    for path in documents():
        for kind, body in _FENCE.findall(tree.text(path)):
            if kind.split() != ["sh", "run"]:
                continue
            with tempfile.TemporaryDirectory(prefix="kiln-docs-") as scratch:
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", body],
                    cwd=tree.ROOT,
                    env=dict(env, OUT=scratch),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=EXAMPLE_TIMEOUT_S,
                    check=False,
                )
            if done.returncode != 0:
                problems.append(f"{path}: exit {done.returncode}:\n{body}{done.stderr[-2000:]}")
    return problems


def _anchors(path):
    body = _FENCE.sub("", tree.text(path))
    titles = re.findall(r"^#+ +(.*)$", body, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def _emission_jobs():
    """Programs that kiln emits: the golden ones, examples and kernels, by architecture."""
    for path in tree.files(".co", ".kir"):
        golden = any(f in path.parts for f in ("testdata", "e2e"))
        if path.name.startswith("_") or not (golden or path.parts[0] in ("examples", "kernels")):
            continue
        if golden and path.name.startswith("fail_"):
            continue
        head = " ".join(tree.text(path).split("\n")[:12])
        defines = [w for d in re.findall(r"-D (\S+=\S+|\S+)", head) for w in ("-D", d)]
        archs = ("sm_80", "sm_90a") if path.suffix == ".co" else (None,)
        for arch in archs:
            yield path, (["--arch", arch] if arch else []) + defines


def _answer(argv):
    done = batch.run(argv, tree.ROOT, os.environ, EMIT_TIMEOUT_S)
    if done.returncode not in range(4):  # else it would be taken for a refusal
        raise RuntimeError(f"exit {done.returncode}: {' '.join(argv)}\n{done.stderr}")
    return done


def _emitted(kiln, path, args):
    """The CUDA but for what says where the program came from; None where kiln refuses it."""
    done = _answer([kiln, "emit", str(path), *args])
    if done.returncode != 0:
        return None
    kept = (line for line in done.stdout.split("\n") if not line.startswith("#line "))
    return [line for line in kept if not line.startswith("// Made by kiln ")]


def decided_text_is_the_whole_program(kiln, every=1):
    """emit(parse(print(decided))) is emit(decided): the printed IR holds every decision."""

    def problem(job):
        path, args = job
        straight = _emitted(kiln, path, args)
        if straight is None:
            return None
        text = _answer([kiln, "ir", str(path), *args])
        with tempfile.NamedTemporaryFile("w", suffix=".kir", encoding=batch.ENCODING) as file:
            file.write(text.stdout)
            file.flush()
            again = _emitted(kiln, file.name, [])
        if again == straight:
            return ""
        if again is None:
            return f"{path} {' '.join(args)}: its decided text is refused"
        old, new = next(p for p in itertools.zip_longest(straight, again) if p[0] != p[1])
        return f"{path} {' '.join(args)}: `{old}` becomes `{new}` through the decided text"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = itertools.islice(_emission_jobs(), 0, None, every)
        found = [p for p in pool.map(problem, jobs) if p is not None]
    if said := batch.finish():
        return [said]
    if len(found) * every < EMITTED_LEAST:
        return [f"only {len(found)} programs are emitted, of {EMITTED_LEAST // every} at least"]
    return [p for p in found if p]


def internal_links_resolve(_kiln):
    problems = []
    for path in documents():
        for link in _LINK.findall(_CODE.sub("", _FENCE.sub("", tree.text(path)))):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            found = (tree.ROOT / path).parent / target if target else tree.ROOT / path
            if not found.exists():
                problems.append(f"{path}: broken link {link}")
            elif anchor and found.suffix == ".md" and anchor not in _anchors(found):
                problems.append(f"{path}: no heading for {link}")
    return problems


def diagnostics_document_is_current(kiln):
    if diagnostics_doc.is_current(kiln):
        return []
    return [f"{diagnostics_doc.DOCUMENT}: out of date, run `./dev docs`"]


def pictures_are_current(kiln):
    """Among them the terminal on README's first screen: what it says has just been said again."""
    return pictures.stale(pictures.wanted(Path(kiln).resolve()))


def ir_document_is_current(kiln):
    if ir_doc.is_current(Path(kiln).resolve()):
        return []
    return [f"{ir_doc.DOCUMENT}: out of date, run `./dev docs`"]


def documents_name_the_architectures_of_the_table(_kiln):
    table = tree.text("src/target/arch.cpp")
    names = re.findall(r'\.name = "(\w+)"', table)
    parts = re.findall(r'\.part = "([^"]+)"', table)
    quoted = [f"`{name}`" for name in names]
    wanted = [
        ("docs/cli.md", f"| `--arch A` | {', '.join(quoted[:-1])} or {quoted[-1]}; default: "),
        ("docs/cli.md", f"else {quoted[-1]} |"),
        ("docs/explain.md", "".join(f"| {name} | {part} |\n" for name, part in zip(quoted, parts, strict=True))),
    ]
    return [f"{path}: src/target/arch.cpp wants `{text}`" for path, text in wanted if text not in tree.text(path)]


def manual_lists_every_function(_kiln):
    rows = tree.text("include/kiln/device/function.def")
    manual = tree.text("docs/language.md")
    problems = []
    for arguments in re.findall(r"^KILN_FUNCTION(?:_OF_TWO)?\((.*)\)$", rows, re.M):
        spelling = re.search(r'"(\w*)"', arguments)[1]
        _, f32, _, f64 = arguments.rsplit(", ", 3)
        errors = " | ".join("exact" if ulps.startswith("-") else ulps for ulps in (f32, f64))
        if spelling and not re.search(rf"^\| `{spelling}` \|.* \| {errors} \|$", manual, re.M):
            problems.append(f"docs/language.md: its table has no `{spelling}` with the errors {errors}")
    return problems


def readme_shows_the_results(_kiln):
    if readme_numbers.is_current():
        return []
    return [f"{readme_numbers.DOCUMENT}: out of date, run `./dev docs`"]


CHECKS = (
    ids_are_unique,
    every_diagnostic_is_tested,
    every_expected_diagnostic_exists,
    every_golden_file_has_a_run_line,
    document_examples_run,
    decided_text_is_the_whole_program,
    internal_links_resolve,
    diagnostics_document_is_current,
    ir_document_is_current,
    pictures_are_current,
    documents_name_the_architectures_of_the_table,
    manual_lists_every_function,
    readme_shows_the_results,
)


def sample(check, every):
    if check is not decided_text_is_the_whole_program:
        return check
    return functools.update_wrapper(functools.partial(check, every=every), check)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--results", type=Path, help="write {passed, failed} here")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="a sample: see above")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    kiln = str(Path(options.kiln).resolve())
    wanted = [check for check in CHECKS if options.filter in check.__name__]
    if options.every > 1:
        wanted = [sample(check, options.every) for check in wanted if check is not document_examples_run]
    failed = 0
    for check in wanted:
        problems = check(kiln)
        failed += bool(problems)
        if problems:
            print(f"FAIL {check.__name__}\n  " + "\n  ".join(problems))
    counts = {"passed": len(wanted) - failed, "failed": failed}
    print(f"meta: {counts['passed']} passed, {failed} failed")
    if options.results:
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
