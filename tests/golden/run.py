#!/usr/bin/env python3
"""Runs the golden tests, or rewrites their expectations.

    tests/golden/run.py --kiln build/dev/bin/kiln [--bless] [--results FILE] [FILTER]...

Tests are the .co and .kir files under src/**/testdata/ and tests/e2e/; FILTER keeps those whose path
contains it. The format is in CONTRIBUTING.md.
"""

import difflib
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import cases  # noqa: E402
from commands import run_all  # noqa: E402
from golden_file import GoldenError, check_failures, parse, rendition, section_texts  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".co", ".kir")
BLESS_ROUNDS_MAX = 4  # expectations move the lines that other expectations name


def discover(root, filters):
    """The test files below `root`, sorted. A leading `_` marks a file that others include."""
    folders = sorted(root.glob("src/**/testdata")) + [root / "tests" / "e2e"]
    paths = {p for folder in folders for p in folder.rglob("*") if p.suffix in SUFFIXES}
    kept = sorted(p for p in paths if p.name[0] != "_")
    return [p for p in kept if not filters or any(f in str(p.relative_to(root)) for f in filters)]


def read(path):
    return path.read_bytes().decode("latin-1")


def outcome_of(path, file, kiln):
    with tempfile.TemporaryDirectory(prefix="kiln-golden-") as scratch:
        folder = path.parent
        if len(file.sections) > 1:
            folder = Path(scratch) / "sections"
            folder.mkdir()
            for name, text in section_texts(file):
                (folder / name).write_bytes(text.encode("latin-1"))
        return run_all(file, kiln, path.name, folder, scratch, ROOT)


def verify(path, kiln):
    """'' when the test passes, else what is wrong."""
    try:
        text = read(path)
        file = parse(path.name, text)
        outcome = outcome_of(path, file, kiln)
        failures = check_failures(file, outcome)
        wanted = rendition(file, outcome)
    except GoldenError as error:
        return str(error)
    diff = difflib.unified_diff(
        text.split("\n"), wanted.split("\n"), "expected", "what it did", lineterm="", n=2
    )
    return "\n".join(failures + list(diff))


def bless(path, kiln):
    """Rewrites the expectations; '' when the test then passes, else why it can not."""
    before = read(path)
    try:
        for _ in range(BLESS_ROUNDS_MAX):
            text = read(path)
            file = parse(path.name, text)
            wanted = rendition(file, outcome_of(path, file, kiln))
            if wanted == text:
                break
            path.write_bytes(wanted.encode("latin-1"))
        else:
            raise GoldenError("the expectations change the output: they do not settle")
    except GoldenError as error:
        path.write_bytes(before.encode("latin-1"))
        return str(error)
    problem = verify(path, kiln)
    if not problem and read(path) != before:
        print(f"blessed {path}")
    return problem


def arguments():
    parser = cases.parser(__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree with the tests")
    parser.add_argument("--bless", action="store_true", help="rewrite expectations")
    return parser.parse_args()


def main():
    options = arguments()
    root = options.root.resolve()
    work = bless if options.bless else verify
    paths = discover(root, options.filters)
    tests = [(path.relative_to(root), partial(work, path, options.kiln)) for path in paths]
    failed = cases.run("golden", tests, options)
    if failed and not options.bless:
        print("golden: if the change is wanted, run `./dev bless` and review `git diff`")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
