#!/usr/bin/env python3
"""Misuse of the device library stops nvcc with one line that names both sides of the mismatch.

    tests/must_not_compile/run.py [--results FILE] [FILTER]

Each file of cases/ is a small program with one mistake in it:

    // ERROR: extent_is_not_a_multiple_of_the_tile<100, 32>
    ...
    #ifdef GOOD
    constexpr int kExtent = 96;
    #else
    constexpr int kExtent = 100;
    #endif

It must fail with exactly one error, whose line contains the text after `ERROR:`, and compile with
-DGOOD without a warning. An expected text holds two numbers or two types. Every sentence that
include/kiln/device/require.cuh declares has a case. Without nvcc the test says so and counts nothing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIRE = ROOT / "include" / "kiln" / "device" / "require.cuh"
TIMEOUT_S = 300

_EXPECTED = re.compile(r"^// ERROR: (.*(?:\n// .*)*)$", re.M)  # to the end of the comment
_BOTH_SIDES = re.compile(r"^\w+<[^<>,]+(?:<.*>)?, .+>$")
_SENTENCE = re.compile(r"^struct (\w+);$", re.M)


def _nvcc(path, scratch, more):
    argv = ["nvcc", "-std=c++20", "-arch=sm_80", "--ptx", "-I", str(ROOT / "include")]
    argv += ["-Werror", "all-warnings", *more, "-o", str(Path(scratch) / "out.ptx"), str(path)]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, errors="replace", check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer in {TIMEOUT_S} s"
    return done.returncode, done.stdout + done.stderr


def error_lines(said):
    """The lines of nvcc's output that are errors."""
    return [line for line in said.split("\n") if re.search(r"\berror( #[\w-]+)?: ", line)]


def expectations(path):
    found = _EXPECTED.findall(path.read_text(encoding="utf-8"))
    return [text.replace("\n// ", " ") for text in found]


def problem_in_case(path):
    """'' when the mistake is refused in the words expected, and its correction compiles."""
    expected = expectations(path)
    if len(expected) != 1 or not _BOTH_SIDES.match(expected[0]):
        return f"wanted one `// ERROR: sentence<one side, other side>`, found {expected}"
    with tempfile.TemporaryDirectory(prefix="kiln-misuse-") as scratch:
        code, said = _nvcc(path, scratch, [])
        if code == 0:
            return "the mistake compiles"
        errors = error_lines(said)
        if len(errors) != 1:
            return "\n".join([f"{len(errors)} errors where 1 was expected", *errors])
        if f"kiln::misuse::{expected[0]}\"" not in errors[0]:
            return f"expected: {expected[0]}\nfound:    {errors[0]}"
        code, said = _nvcc(path, scratch, ["-DGOOD"])
    return "" if code == 0 else f"the correction does not compile\n{said[-4000:]}"


def sentences_without_case(paths):
    """The names that require.cuh declares and no case expects."""
    expected = " ".join(text for path in paths for text in expectations(path))
    declared = _SENTENCE.findall(REQUIRE.read_text(encoding="utf-8"))
    return [name for name in declared if not re.search(rf"\b{name}<", expected)]


def run_cases(name_filter):
    """[(name, problem)]."""
    paths = sorted((HERE / "cases").glob("*.cu"))
    kept = [path for path in paths if name_filter in path.name]
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        done = list(zip([path.name for path in kept], pool.map(problem_in_case, kept)))
    if not name_filter:
        missing = sentences_without_case(paths)
        done.append(("require.cuh", f"no case for: {', '.join(missing)}" if missing else ""))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, help="write {passed, failed} here")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    if shutil.which("nvcc"):
        done = run_cases(options.filter)
    else:
        print("must_not_compile: skipped: no nvcc on the PATH")
        done = []
    for name, problem in done:
        if problem:
            print(f"FAIL {name}\n{problem}\n")
    failed = sum(bool(problem) for _, problem in done)
    print(f"must_not_compile: {len(done) - failed} passed, {failed} failed")
    if options.results:
        counts = {"passed": len(done) - failed, "failed": failed}
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
