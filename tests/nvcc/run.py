#!/usr/bin/env python3
"""Compiles with nvcc what `kiln emit` writes, the CUDA programs, and each device header alone.

    tests/nvcc/run.py --kiln build/release/bin/kiln [--results FILE] [FILTER]

Needs nvcc on the PATH. A golden file takes part when it has a line `// RUN: kiln emit ...` and is
meant to succeed, and each kernel of examples/ does; the architecture is the one on that line. CUDA
examples are compiled for each of ARCHES, the programs of tests/gpu and headers for the first, and
there a warning is an error. Nowhere may ptxas say that it serialises a warpgroup's products.
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
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import tree  # noqa: E402

DEFAULT_ARCH = "sm_90a"
ARCHES = ("sm_80", "sm_90a")
TIMEOUT_S = 300
_RUN = re.compile(r"^// RUN: (kiln emit .*)$", re.M)
# ptxas waits for each product by itself (it says so, as C7510 to C7520).
_SERIALISED = re.compile(r"\(C75[12]\d\)")


def emit_cases(kiln, name_filter):
    """[(name, what compiles it)] of the golden files."""
    found = []
    for path in tree.files(".co", ".kir"):
        if path.name.startswith("fail_") or name_filter not in str(path):
            continue
        runs = []
        if "testdata" in path.parts or "e2e" in path.parts:
            runs = _RUN.findall(tree.text(path))
        if path.parts[:-1] == ("examples",):  # what they include has no kernel
            runs = ["kiln emit %s"]
        found += [(path, partial(compile_emitted, kiln, path, run)) for run in runs]
    return found


def source_cases(name_filter):
    """A case for each of examples/*.cu, tests/gpu/*.cu and include/kiln/device/*.cuh."""
    examples = [path for path in tree.files(".cu") if path.parts[0] == "examples"]
    on_gpu = [path for path in tree.files(".cu") if path.parts[:2] == ("tests", "gpu")]
    headers = [path for path in tree.files(".cuh") if path.parts[:2] == ("include", "kiln")]
    found = [(path, arch) for path in examples for arch in ARCHES]
    found += [(path, ARCHES[0]) for path in headers]
    found += [(path, ARCHES[needs_hopper(path)]) for path in on_gpu]
    return [
        (f"{path} for {arch}", partial(compile_source, path, arch))
        for path, arch in found
        if name_filter in str(path)
    ]


def needs_hopper(path):
    """Whether the program is one for sm_90a: it multiplies by warpgroups or copies in bulk."""
    text = (tree.ROOT / path).read_text(encoding="utf-8")
    return "wgmma" in text or "tma.cuh" in text


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
    wrong = done.returncode != 0 or _SERIALISED.search(done.stdout + done.stderr)
    return f"{shlex.join(argv)}\n{(done.stdout + done.stderr)[-3000:]}" if wrong else ""


def compile_source(path, arch):
    """'' when the program, or a program of that header alone, compiles without a warning."""
    with tempfile.TemporaryDirectory(prefix="kiln-nvcc-") as scratch:
        source = tree.ROOT / path
        if path.suffix == ".cuh":
            source = Path(scratch) / "header.cu"
            source.write_text(f"#include <{path.relative_to('include')}>\n", encoding="utf-8")
        virtual = arch.replace("sm_", "compute_")
        nvcc = ["nvcc", "-std=c++20", f"-gencode=arch={virtual},code={arch}", "-Werror", "all-warnings"]
        nvcc += ["-I", str(tree.ROOT / "include"), "-I", str(tree.ROOT / "src"), "-c", "-o", str(Path(scratch) / "program.o")]
        return _run([*nvcc, str(source)], scratch)


def compile_emitted(kiln, path, run):
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
    found = emit_cases(kiln, options.filter) + source_cases(options.filter)
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        problems = list(pool.map(lambda case: case[1](), found))
    for (name, _), problem in zip(found, problems):
        if problem:
            print(f"FAIL {name}\n{problem}\n")
    failed = sum(bool(problem) for problem in problems)
    print(f"nvcc: {len(found) - failed} passed, {failed} failed")
    if options.results:
        counts = {"passed": len(found) - failed, "failed": failed}
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
