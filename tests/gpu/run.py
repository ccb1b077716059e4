#!/usr/bin/env python3
"""Runs kernels on a GPU and checks every result against the numeric bound.

    KILN=build/release/bin/kiln tests/gpu/run.py [--quick] [CO_FILE]...

Needs an NVIDIA driver and NVRTC. Each case is `kiln run --on gpu --json`; a case passes when kiln exits
0 and no element is outside. The last line is `N passed, N failed`. Files named on the command line are
run as further matrix products `output[m,n] = lhs[m,k] * rhs[n,k]`.
"""

import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
PRODUCT = "output[m,n] = lhs[m,k] * rhs[n,k]"
FILLS = ("normal", "integers", "ones", "adversarial")
FOUR_WARPS = ["-D", "TILE_M=32", "-D", "TILE_N=32", "-D", "TILE_K=32"]


def shape(m, n, k):
    return f"M={m},N={n},K={k}"


def product_cases(path, quick):
    base = [str(path), "--expect", PRODUCT]
    one_warp_each = ": group-4" not in Path(path).read_text(encoding="utf-8")
    for fill in FILLS:
        for sizes in ((64, 48, 80), (50, 37, 70), (1, 1, 1)):
            yield base + ["--shape", shape(*sizes), "--fill", fill]
            if one_warp_each:
                yield base + ["--shape", shape(*sizes), "--fill", fill] + FOUR_WARPS
    extents = (1, 17, 33) if quick else (1, 9, 16, 17, 31, 33)
    for sizes in itertools.product(extents, repeat=3):
        yield base + ["--shape", shape(*sizes)]
    yield base + ["--shape", shape(1024, 1024, 1024)]
    yield base + ["--shape", shape(1000, 1016, 1003), "--fill", "integers"]


def element_cases():
    path = str(ROOT / "tests/gpu/element.co")
    for n in (1, 63, 64, 65, 1000):
        for kernel in ("axpy", "reverse", "doubled", "tiles", "ends"):
            extra = ",a=3" if kernel == "axpy" else ""
            yield [path, "--kernel", kernel, "--shape", f"N={n}{extra}"]


def run(arguments):
    command = [KILN, "run", *arguments, "--on", "gpu", "--json"]
    env = dict(os.environ, KILN_CACHE_DIR="off")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    try:
        report = json.loads(done.stdout)
        outside = sum(output["outside"] for output in report["outputs"])
        compared = sum(output["elements"] for output in report["outputs"])
    except (ValueError, KeyError):
        return arguments, False, f"exit {done.returncode}: {done.stderr.strip()[-600:]}", None
    good = done.returncode == 0 and outside == 0 and compared > 0
    return arguments, good, f"exit {done.returncode}, {outside} of {compared} outside", report


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    quick = "--quick" in sys.argv
    cases = list(element_cases())
    for path in [ROOT / "examples/matmul_wmma.co", *map(Path, names)]:
        cases += product_cases(path, quick)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, cases))
    failed = [r for r in results if not r[1]]
    for arguments, _, text, _ in failed:
        print("FAILED:", " ".join(arguments), "\n  ", text)
    cold = sorted(
        r[3]["emit_seconds"] + r[3]["compile_seconds"] + r[3]["load_seconds"]
        for r in results
        if r[3] is not None
    )
    if cold:
        print(f"emit + compile + load: median {cold[len(cold) // 2]:.3f} s, most {cold[-1]:.3f} s")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


sys.exit(main())
