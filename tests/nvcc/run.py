#!/usr/bin/env python3
"""Compiles with nvcc what `kiln emit` writes for every golden test that emits.

    tests/nvcc/run.py --kiln build/release/bin/kiln [--results FILE] [FILTER]

Needs nvcc on the PATH. A golden file takes part when it has a line `// RUN: kiln emit ...` and is
meant to succeed; the architecture is the one on that line.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import tree  # noqa: E402

DEFAULT_ARCH = "sm_90a"
TIMEOUT_S = 300
_RUN = re.compile(r"^// RUN: (kiln emit .*)$", re.M)


def cases(name_filter):
    """[(path, RUN line)]."""
    found = []
    for path in tree.files(".co", ".kir"):
        if path.name.startswith("fail_") or name_filter not in str(path):
            continue
        if "testdata" in path.parts or "e2e" in path.parts:
            found += [(path, run) for run in _RUN.findall(tree.text(path))]
    return found


def _run(argv, folder):
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT_S} s: {shlex.join(argv)}"
    return "" if done.returncode == 0 else f"{shlex.join(argv)}\n{done.stderr[-3000:]}"


def compile_case(kiln, path, run):
    """'' when the emitted file compiles, else what is wrong."""
    with tempfile.TemporaryDirectory(prefix="kiln-nvcc-") as scratch:
        cuda = str(Path(scratch) / "kernel.cu")
        names = {"%s": path.name, "%t": scratch, "%R": str(tree.ROOT)}
        argv = shlex.split(run)
        for name, value in names.items():
            argv = [argument.replace(name, value) for argument in argv]
        arch = argv[argv.index("--arch") + 1] if "--arch" in argv else DEFAULT_ARCH
        emit = [kiln] + argv[1:] + ([] if "-o" in argv else ["-o", cuda])
        written = cuda if "-o" not in argv else argv[argv.index("-o") + 1]
        problem = _run(emit, (tree.ROOT / path).parent)
        if problem:
            return problem
        nvcc = ["nvcc", "-std=c++17", f"-arch={arch}", "-I", str(tree.ROOT / "include")]
        return _run(nvcc + ["-cubin", "-o", str(Path(scratch) / "kernel.cubin"), written], scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--results", type=Path, help="write {passed, failed} here")
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    kiln = str(Path(options.kiln).resolve())
    found = cases(options.filter)
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        problems = list(pool.map(lambda case: compile_case(kiln, *case), found))
    for (path, _), problem in zip(found, problems):
        if problem:
            print(f"FAIL {path}\n{problem}\n")
    failed = sum(bool(problem) for problem in problems)
    print(f"nvcc: {len(found) - failed} passed, {failed} failed")
    if options.results:
        counts = {"passed": len(found) - failed, "failed": failed}
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
