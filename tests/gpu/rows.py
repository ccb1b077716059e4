#!/usr/bin/env python3
"""Runs a small kernel for every dense matrix instruction that kiln knows, and checks the results.

    KILN=build/release/bin/kiln tests/gpu/rows.py [--on gpu|sim|nvcc] [--arch A] [--jobs N] [TEXT]...

For each row of `kiln atoms --json` that the architecture has (only those whose name contains a TEXT, where
some are given) and each tile request that the row serves, one program computes matrix products of ragged size
by each of the four suffixes row/col x row/col:

  - with exact small integers, whose bound is 0, on the GPU and in the simulator: the two results must be
    the same, bit for bit;
  - with random normal numbers: no element may be outside the row's bound.

Needs nothing but Python and the binary. The last line is `rows passed N, failed N`; a row passes when all its
programs do. Exits non-zero when one failed.

With `--on sim` only the simulator runs, and no GPU is needed. With `--on nvcc` nothing runs: what kiln emits for
all programs is one file, which nvcc must compile without a warning.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
SUFFIXES = tuple(itertools.product(("row", "col"), repeat=2))
# Shared memory is what most kernels read; global memory is read without ldmatrix.
SOURCES = ("shared", "global")

PROGRAM = """__co__ void {name}({params}) {{
{launches}}}
"""
LAUNCH = """  parallel {{i, j}} by [cdiv(M, {m}), cdiv(N, {n})] : block
    parallel w by 1 : group {{
      acc = mma.fill.{c} {zero};
      foreach k in [cdiv(K, {k})] {{
{load}
        mma.{a_major}.{b_major} acc, x, y;
      }}
      mma.store acc, {output}.subspan({m}, {n}).at(i, j);
    }}
"""
FROM_SHARED = """        p = dma.copy {a_view} => shared;
        q = dma.copy {b_view} => shared;
        x = mma.load p;
        y = mma.load q;"""
FROM_GLOBAL = """        x = mma.load {a_view};
        y = mma.load {b_view};"""
ZEROS = {"s32": "0", "f64": "0.0"}


def parameters(row, dtypes):
    """Each operand in both orders, and one output for each suffix."""
    a, b = dtypes
    inputs = [(a, "M, K", "a_row"), (a, "K, M", "a_col"), (b, "N, K", "b_row"), (b, "K, N", "b_col")]
    outputs = [(row["acc"], "M, N", output_name(suffix)) for suffix in SUFFIXES]
    return ", ".join(f"global {dtype} [{dims}] {name}" for dtype, dims, name in inputs + outputs)


def output_name(suffix):
    return "c_" + "_".join(suffix)


def view(operand, major, extents, indices):
    """The tile of an operand: a_col.subspan(16, 8).at(k, i)"""
    order = slice(None) if major == "row" else slice(None, None, -1)
    text = [", ".join(map(str, pair[order])) for pair in (extents, indices)]
    return f"{operand}_{major}.subspan({text[0]}).at({text[1]})"


def launch(row, tile, suffix, source):
    (m, n, k), (a_major, b_major) = tile, suffix
    load = FROM_SHARED if source == "shared" else FROM_GLOBAL
    load = load.format(
        a_view=view("a", a_major, (m, k), ("i", "k")), b_view=view("b", b_major, (n, k), ("j", "k"))
    )
    return LAUNCH.format(
        c=row["acc"],
        zero=ZEROS.get(row["acc"], "0.0f"),
        load=load,
        output=output_name(suffix),
        **{"m": m, "n": n, "k": k, "a_major": a_major, "b_major": b_major},
    )


def program(row, tile, source, dtypes, name="product"):
    launches = "".join(launch(row, tile, suffix, source) for suffix in SUFFIXES)
    return PROGRAM.format(name=name, params=parameters(row, dtypes), launches=launches)


def expectation(suffix):
    """The same as `--expect`, for one of the outputs."""
    a = "a_row[m,k]" if suffix[0] == "row" else "a_col[k,m]"
    b = "b_row[n,k]" if suffix[1] == "row" else "b_col[k,n]"
    return f"{output_name(suffix)}[m,n] = {a} * {b}"


class Runner:
    def __init__(self, options, folder):
        self.on = options.on
        self.arch = options.arch
        self.folder = Path(folder)

    def kiln(self, path, on, *arguments):
        """What went wrong; empty when kiln is content and nothing is outside."""
        command = [KILN, "run", str(path), "--arch", self.arch, "--on", on, "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        try:
            report = json.loads(done.stdout)
            outside = sum(output["outside"] for output in report["outputs"])
            compared = sum(output["elements"] for output in report["outputs"])
        except (ValueError, KeyError):
            return f"{on}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}"
        if done.returncode == 0 and outside == 0 and compared > 0:
            return ""
        return f"{on}: exit {done.returncode}, {outside} of {compared} outside: {done.stderr.strip()[-600:]}"

    def case(self, row, tile, source, dtypes):
        """Runs one program; what went wrong with it, as a list of texts."""
        name = f"{row['name']}_{'x'.join(map(str, tile))}_{source}_{'_'.join(dtypes)}"
        path = self.folder / f"{name}.co"
        path.write_text(program(row, tile, source, dtypes))
        m, n, k = tile
        base = ["--shape", f"M={2 * m + 1},N={n + 3},K={2 * k + k // 2 + 1}"]
        wrong = []
        results = []
        for on in dict.fromkeys((self.on, "sim")):
            outs = [self.folder / f"{name}_{output_name(suffix)}_{on}.npy" for suffix in SUFFIXES]
            arguments = [*base, "--fill", "integers", "--expect", expectation(SUFFIXES[0])]
            for suffix, out in zip(SUFFIXES, outs):
                arguments += ["--out", f"{output_name(suffix)}={out}"]
            wrong.append(self.kiln(path, on, *arguments))
            results.append([out.read_bytes() if out.exists() else b"" for out in outs])
        if any(result != results[0] or not all(result) for result in results):
            wrong.append(f"integers: {self.on} and sim differ")
        wrong.append(self.kiln(path, self.on, *base, "--fill", "normal", "--expect", expectation(SUFFIXES[3])))
        return [f"{name}: {text}" for text in wrong if text]


def cases_of(row):
    """(tile, source, types): every request from shared memory, the first from global memory too; tf32
    operands also as what programs have, f32."""
    tiles = [tuple(map(int, tile.split("x"))) for tile in row["tiles"]]
    dtypes = tuple(row["operands"][operand]["dtype"] for operand in "AB")
    cases = [(tile, "shared", dtypes) for tile in tiles] + [(tiles[0], "global", dtypes)]
    return cases + [(*case[:2], ("f32", "f32")) for case in cases if dtypes[0] == "tf32"]


def compile_emitted(options, rows, folder):
    """Emits all programs of all rows as one file and compiles it; the exit status."""
    texts = []
    for row in rows:
        for case in cases_of(row):
            texts.append(program(row, *case, f"product{len(texts)}"))
    source, emitted = Path(folder) / "rows.co", Path(folder) / "rows.cu"
    source.write_text("\n".join(texts))
    nvcc = ["nvcc", "-std=c++20", f"-arch={options.arch}", "-Werror", "all-warnings", "-cubin"]
    for command in (
        [KILN, "emit", str(source), "--arch", options.arch, "-o", str(emitted)],
        [*nvcc, f"-I{ROOT / 'include'}", "-o", f"{emitted}.cubin", str(emitted)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"FAILED: {' '.join(command)}\n{(done.stderr or done.stdout)[-3000:]}")
            return 1
    print(f"{len(SUFFIXES) * len(texts)} kernels compiled for {options.arch}")
    print(f"rows passed {len(rows)}, failed 0")
    return 0


def rows_of(options):
    command = [KILN, "atoms", "--json", "--arch", options.arch]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    rows = [row for row in json.loads(done.stdout) if row["scope"] == "group"]
    return [row for row in rows if not options.text or any(text in row["name"] for text in options.text)]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", choices=("gpu", "sim", "nvcc"), default="gpu")
    parser.add_argument("--arch", default="sm_90a", help="sm_90a")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("text", nargs="*", help="parts of rows' names")
    return parser.parse_args()


def main():
    options = parse_options()
    rows = rows_of(options)
    if options.on == "nvcc":
        with tempfile.TemporaryDirectory() as folder:
            return compile_emitted(options, rows, folder)
    failed = 0
    programs = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        runner = Runner(options, folder)
        jobs = [(row, [pool.submit(runner.case, row, *case) for case in cases_of(row)]) for row in rows]
        for row, results in jobs:
            wrong = [text for result in results for text in result.result()]
            programs += len(results)
            failed += bool(wrong)
            for text in wrong:
                print("FAILED:", text)
    print(f"{programs} programs on {options.on} for {options.arch}")
    print(f"rows passed {len(rows) - failed}, failed {failed}")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
