#!/usr/bin/env python3
"""Compiles the two tutorials' programs against kiln, and checks what they print on a GPU.

    tests/seeds/run.py [--run | --run-only] [--arch sm_80] [--out build/seeds] [--results FILE]
    tests/seeds/run.py --cute FOLDER       the unmodified programs on CuTe, headers in FOLDER

The texts are read from ../shared/seeds, or from the folder in $KILN_SEEDS; they are no part of this
repository, so without them, or without nvcc, the test says so and counts nothing. Only includes and
the namespace are changed (programs.py), and a warning of nvcc is a failure. The executables stay in
--out: `--run-only` checks them on another machine, one with a GPU and without the texts.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import programs  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD_TIMEOUT_S = 600
RUN_TIMEOUT_S = 120


def owner_of_c(m, n):
    """The lane that holds C[m][n] of m16n8k16: the PTX ISA's figure for the f32 accumulator."""
    return 4 * (m % 8) + n // 2


def _rows(text, cell):
    """{m: [cells]} of the lines `m=3  ...` whose cells all match."""
    rows = {}
    for m, cells in re.findall(r"^m=(\d+)\s+(.*)$", text, re.M):
        if all(re.fullmatch(cell, value) for value in cells.split()):
            rows[int(m)] = cells.split()
    return rows


def problem_in_hello_mma(printed):
    """'' when the ownership map is the hardware's and the product is 16.0 everywhere."""
    owners = _rows(printed, r"T\d\d")
    products = _rows(printed, r"-?(?:[\d.]+|nan|inf)")
    if sorted(owners) != list(range(16)) or sorted(products) != list(range(16)):
        return f"{len(owners)} rows of owners and {len(products)} of products where there are 16"
    for m in range(16):
        wanted = [f"T{owner_of_c(m, n):02}" for n in range(8)]
        if owners[m] != wanted:
            return f"row {m} belongs to {owners[m]}, on the hardware to {wanted}"
        if products[m] != ["16.0"] * 8:
            return f"row {m} of the product is {products[m]}, not 16.0 everywhere"
    return ""


def problem_in_global_gemm(printed):
    """'' when the program's own check passes, without error, and its corner is 256.0."""
    corner = re.findall(r"^ +((?:[\d.]+ *){4})$", printed, re.M)
    if [row.split() for row in corner] != [["256.0"] * 4] * 4:
        return f"the corner is {corner}, not 256.0 everywhere"
    error = re.search(r"^Max absolute error: (\S+)$", printed, re.M)
    if not error or float(error.group(1)) != 0.0:
        return "the largest error is not 0"
    return "" if re.search(r"^Result: PASS$", printed, re.M) else "no `Result: PASS`"


CHECKS = {"hello_mma": problem_in_hello_mma, "global_gemm": problem_in_global_gemm}


def _command(argv, timeout):
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout, errors="replace", check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def nvcc_command(options, source, program):
    argv = ["nvcc", "-std=c++20", f"-arch={options.arch}"]
    if options.cute:  # CuTe needs the option, and is not warning-free
        argv += ["--expt-relaxed-constexpr", "-I", str(options.cute)]
    else:
        argv += ["-Werror", "all-warnings", "-I", str(ROOT / "include")]
    return argv + ["-o", str(program), str(source)]


def build(options, program):
    """'' when the program compiles without a warning, else what nvcc said."""
    text = program.source if options.cute else programs.ported(program.source)
    source = options.out / f"{program.name}.cu"
    source.write_text(text, encoding="utf-8")
    executable = options.out / program.name
    executable.unlink(missing_ok=True)
    code, said = _command(nvcc_command(options, source, executable), BUILD_TIMEOUT_S)
    return "" if code == 0 and (options.cute or not said.strip()) else said[-4000:]


def check_run(options, name):
    """'' when the program prints what the hardware must give."""
    executable = options.out / name
    if not executable.exists():
        return f"{executable} is not there"
    code, printed = _command([str(executable.resolve())], RUN_TIMEOUT_S)
    if code != 0:
        return f"exit code {code}\n{printed[-2000:]}"
    problem = CHECKS[name](printed)
    performance = re.search(r"^Performance: .*$", printed, re.M)
    if performance:
        print(f"     {name}: {performance.group(0)}")
    return f"{problem}\n{printed}" if problem else ""


def has_gpu():
    return bool(shutil.which("nvidia-smi")) and _command(["nvidia-smi", "-L"], 60)[0] == 0


def build_all(options):
    """[(what, problem)], one for each program; [] when this machine cannot build them."""
    folder = programs.seeds_folder(os.environ, ROOT)
    if not folder:
        print("seeds: skipped: no texts of the tutorials (../shared/seeds or $KILN_SEEDS)")
        return []
    if not shutil.which("nvcc"):
        print("seeds: skipped: no nvcc on the PATH")
        return []
    options.out.mkdir(parents=True, exist_ok=True)
    found = programs.extract(folder)
    done = []
    for name in programs.PROGRAMS:
        if name not in found:
            done.append((f"{name} is in the texts", f"no text of {folder} holds it whole"))
            continue
        print(f"     {name}: from {found[name].path.name}", flush=True)
        done.append((f"{name} compiles", build(options, found[name])))
    return done


def run_all(options):
    if not has_gpu():
        print("seeds: not run: no GPU here")
        return []
    return [(f"{name} runs", check_run(options, name)) for name in programs.PROGRAMS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", action="store_true", help="build, then run where there is a GPU")
    parser.add_argument("--run-only", action="store_true", help="run what --out holds already")
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "seeds")
    parser.add_argument("--cute", type=Path, help="CuTe's include folder: the programs unmodified")
    parser.add_argument("--results", type=Path, help="write {passed, failed} here")
    options = parser.parse_args()
    done = [] if options.run_only else build_all(options)
    if options.run_only or (options.run and done):
        done += run_all(options)
    for what, problem in done:
        print(f"FAIL {what}\n{problem}\n" if problem else f"ok   {what}")
    failed = sum(bool(problem) for _, problem in done)
    print(f"seeds: {len(done) - failed} passed, {failed} failed")
    if options.results:
        counts = {"passed": len(done) - failed, "failed": failed}
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
