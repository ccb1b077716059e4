#!/usr/bin/env python3
"""Runs a small kernel for every dense matrix instruction that kiln knows, and checks the results.

    KILN=build/release/bin/kiln tests/gpu/rows.py [--on gpu|sim|nvcc] [--arch A] [--jobs N] [TEXT]...

For each row of `kiln atoms --json` that the architecture has (only those whose name contains a TEXT, where
some are given) and each tile request that the row serves, a program computes matrix products of ragged size
by each of the four suffixes row/col x row/col; rows that differ in N alone share programs:

(those that the instruction has, where it reads shared memory in place)

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
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
SUFFIXES = tuple(itertools.product(("row", "col"), repeat=2))

PROGRAM = """__co__ void {name}({params}) {{
{launches}}}
"""
LAUNCH = """  parallel {{i, j}} by [cdiv(M, {m}), cdiv(N, {n})] : block
    parallel w by 1 : {scope} {{
      acc = mma.fill.{c} {zero};
      foreach k in [cdiv(K, {k})] {{
{load}
        mma.{a_major}.{b_major}{sparse};
      }}
      mma.store acc, {output}.subspan({m}, {n}).at(i, j);
    }}
"""
FROM_SHARED = """        p = dma.copy {a_view} => shared;
        q = dma.copy {b_view} => shared;
        x = mma.load p;
        y = mma.load q;"""
FROM_REGISTERS = """        p = dma.copy {a_view} => shared;
        q = dma.copy {b_view} => shared;
        x = mma.load.frag p;
        y = mma.load q;"""
METADATA = """
        e = mma.load meta.subspan({m}, {cols}).at(i, k);"""
FROM_GLOBAL = """        x = mma.load {a_view};
        y = mma.load {b_view};"""
ZEROS = {"s32": "0", "f64": "0.0"}
LOADS = {"shared": FROM_SHARED, "registers": FROM_REGISTERS, "global": FROM_GLOBAL}
# Of the instruction's K, in rows that split it.
K_MULTIPLES = (4, 1, 2, 3, 5, 8)
TOGETHER = 8


def columns_of_byte(row):
    """Elements of K for each byte of a sparse operand's metadata."""
    return 4 if row["operands"]["A"]["dtype"] == "tf32" else 8


def words_of(row, source):
    """Whether metadata comes prepacked: where the instruction takes whole words."""
    return source != "shared" and row["shape"]["k"] % (4 * columns_of_byte(row)) == 0


def metadata_columns(row, source):
    return columns_of_byte(row) * (4 if words_of(row, source) else 1)


def random_metadata(row, rows, columns, source, path):
    """Legal metadata as a file: bytes for tiles in shared memory, else prepacked words."""
    draw = random.Random(f"{row['name']} {rows} {columns} {source}")
    legal = (0x4, 0xE) if row["operands"]["A"]["dtype"] == "tf32" else (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)
    width = columns * (4 if words_of(row, source) else 1)
    data = [bytes(draw.choice(legal) | draw.choice(legal) << 4 for _ in range(width)) for _ in range(rows)]
    narrow = row["operands"]["A"]["dtype"] in ("s8", "u8", "f8_e4m3", "f8_e5m2")
    if words_of(row, source) and not narrow:
        # Two bytes of row r and two of row r + 8 of each 16 make a word, in row 2 * r; the next two in row 2 * r + 1.
        words = [b""] * rows
        for block in range(0, rows, 16):
            for r in range(8):
                for half in range(2):
                    low, high = data[block + r], data[block + r + 8]
                    at = [slice(4 * c + 2 * half, 4 * c + 2 * half + 2) for c in range(columns)]
                    words[block + 2 * r + half] = b"".join(low[s] + high[s] for s in at)
        data = words
    dtype = "<u4" if words_of(row, source) else "|u1"
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + b"".join(data))


def suffixes_of(row, source):
    """Operands in shared memory may lie only as the instruction reads them."""
    if not row["reads_shared"] or row["transposes"]:
        return SUFFIXES
    return [suffix for suffix in SUFFIXES if suffix[1] == "row" and (suffix[0] == "row" or source == "registers")]


def parameters(row, tiles, dtypes, source):
    """Each operand in both orders, and one output for each tile and suffix."""
    suffixes = suffixes_of(row, source)
    a, b = dtypes
    kept = "P" if row["sparse"] else "K"  # of K, in A
    inputs = [(a, f"M, {kept}", "a_row"), (a, f"{kept}, M", "a_col"), (b, "N, K", "b_row"), (b, "K, N", "b_col")]
    if row["sparse"]:
        inputs.append(("u32" if words_of(row, source) else "u8", "M, Q", "meta"))
    outputs = [(row["acc"], "M, N", output_name(suffix, tile)) for tile in tiles for suffix in suffixes]
    return ", ".join(f"global {dtype} [{dims}] {name}" for dtype, dims, name in inputs + outputs)


def output_name(suffix, tile):
    return "_".join(("c", *suffix, *map(str, tile)))


def view(operand, major, extents, indices):
    """The tile of an operand: a_col.subspan(16, 8).at(k, i)"""
    order = slice(None) if major == "row" else slice(None, None, -1)
    text = [", ".join(map(str, pair[order])) for pair in (extents, indices)]
    return f"{operand}_{major}.subspan({text[0]}).at({text[1]})"


def launch(row, tile, suffix, source):
    (m, n, k), (a_major, b_major) = tile, suffix
    kept = k // 2 if row["sparse"] else k
    load = LOADS[source].format(
        a_view=view("a", a_major, (m, kept), ("i", "k")), b_view=view("b", b_major, (n, k), ("j", "k"))
    )
    sparse = " acc, x, y"
    if row["sparse"]:
        sparse = ".sp acc, x, y, e"
        load += METADATA.format(m=m, cols=k // metadata_columns(row, source))
    return LAUNCH.format(
        scope=row["scope"],
        c=row["acc"],
        zero=ZEROS.get(row["acc"], "0.0f"),
        load=load,
        sparse=sparse,
        output=output_name(suffix, tile),
        **{"m": m, "n": n, "k": k, "a_major": a_major, "b_major": b_major},
    )


def program(row, tiles, source, dtypes, name="product"):
    """`row` stands for those that have the other tiles."""
    launches = "".join(launch(row, tile, suffix, source) for tile in tiles for suffix in suffixes_of(row, source))
    return PROGRAM.format(name=name, params=parameters(row, tiles, dtypes, source), launches=launches)


def expectation(suffix, tile):
    """What one of the outputs should be, as `--expect` says it."""
    a = "a_row[m,k]" if suffix[0] == "row" else "a_col[k,m]"
    b = "b_row[n,k]" if suffix[1] == "row" else "b_col[k,n]"
    return f"{output_name(suffix, tile)}[m,n] = {a} * {b}"


class Runner:
    def __init__(self, options, folder):
        self.on = options.on
        self.arch = options.arch
        self.folder = Path(folder)

    def kiln(self, path, on, *arguments, may_be_wide=False):
        """What went wrong; empty when kiln is content and nothing is outside. Of sums of many FP8 products the
        bound may be wider than a value (`may_be_wide`): integers, which are exact, are what compares those."""
        command = [KILN, "run", str(path), "--arch", self.arch, "--on", on, "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        try:
            report = json.loads(done.stdout)
            outside = sum(output["outside"] for output in report["outputs"])
            compared = sum(output["elements"] for output in report["outputs"])
        except (ValueError, KeyError):
            return f"{on}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}"
        kinds = set(re.findall(r"^error\[([a-z-]+)\]", done.stderr, re.MULTILINE))
        only_wide = done.returncode == 1 and may_be_wide and kinds == {"result-not-compared"}
        if (done.returncode == 0 or only_wide) and outside == 0 and compared > 0:
            return ""
        return f"{on}: exit {done.returncode}, {outside} of {compared} outside: {done.stderr.strip()[-600:]}"

    def case(self, row, tiles, source, dtypes):
        """Runs one program; what went wrong with it, as a list of texts."""
        name = f"{row['name']}_{'x'.join(map(str, tiles[-1]))}_{source}_{'_'.join(dtypes)}"
        path = self.folder / f"{name}.co"
        path.write_text(program(row, tiles, source, dtypes))
        m, n, k = (max(tile[i] for tile in tiles) for i in range(3))
        extents = {"M": 2 * m + 1, "N": n + 3, "K": 2 * k + k // 2 + 1}
        if row["sparse"]:
            # Whole groups, and whole words where they join rows.
            each = metadata_columns(row, source)
            extents.update(M=2 * m if words_of(row, source) else 2 * m + 1, K=2 * k + k // 2)
            extents.update(K=(extents["K"] + each - 1) // each * each)
            extents.update(P=extents["K"] // 2, Q=extents["K"] // each)
            metadata = self.folder / f"{name}_meta.npy"
            random_metadata(row, extents["M"], extents["Q"], source, metadata)
        base = ["--shape", ",".join(f"{name}={extent}" for name, extent in extents.items())]
        if row["sparse"]:
            base += ["--in", f"meta={metadata}"]
        names = [output_name(suffix, tile) for tile in tiles for suffix in suffixes_of(row, source)]
        suffixes = suffixes_of(row, source)
        wrong = []
        results = []
        for on in dict.fromkeys((self.on, "sim")):
            outs = [self.folder / f"{name}_{output}_{on}.npy" for output in names]
            arguments = [*base, "--fill", "integers"]
            if not row["sparse"]:
                arguments += ["--expect", expectation(suffixes[0], tiles[0])]
            for output, out in zip(names, outs):
                arguments += ["--out", f"{output}={out}"]
            wrong.append(self.kiln(path, on, *arguments))
            results.append([out.read_bytes() if out.exists() else b"" for out in outs])
        for output, result in zip(names, zip(*results)):
            if len(set(result)) != 1 or not all(result):
                wrong.append(f"integers: {self.on} and sim differ in {output}")
        expect = [] if row["sparse"] else ["--expect", expectation(suffixes[-1], tiles[-1])]
        wide = any(dtype.startswith("f8") for dtype in dtypes)
        wrong.append(self.kiln(path, self.on, *base, "--fill", "normal", *expect, may_be_wide=wide))
        return [f"{name}: {text}" for text in wrong if text]


def tiles_of(row):
    tiles = [tuple(map(int, tile.split("x"))) for tile in row["tiles"]]
    if not row["splits_k"]:
        return tiles
    return [(m, n, k * K_MULTIPLES[n // 8 % len(K_MULTIPLES)]) for m, n, k in tiles]


def cases_of(rows):
    """(row, tiles, source, types) of rows that differ in N alone, or of one row: every request from shared
    memory, the first of each row from global memory (or A from registers) too; tf32 operands also as what
    programs have, f32."""
    row = rows[0]
    dtypes = tuple(row["operands"][operand]["dtype"] for operand in "AB")
    other = "registers" if row["reads_shared"] else "global"
    if len(rows) > 1:
        tiles = [tile for one in rows for tile in tiles_of(one)]
        cases = [(row, tiles, source, dtypes) for source in ("shared", other)]
    else:
        cases = [(row, [tile], "shared", dtypes) for tile in tiles_of(row)]
        cases.append((row, tiles_of(row)[:1], other, dtypes))
    return cases + [(*case[:3], ("f32", "f32")) for case in cases if dtypes[0] == "tf32"]


def batches_of(rows):
    """Rows that share programs: up to TOGETHER that differ in N alone, the widest at most TOGETHER times as wide as
    the narrowest, for all are tried at the extents of the widest."""
    families = {}
    for row in rows:
        key = row["name"].replace(f"n{row['shape']['n']}k", "nNk") if row["reads_shared"] else row["name"]
        families.setdefault(key, []).append(row)
    batches = []
    for family in families.values():
        narrowest = None
        for row in sorted(family, key=lambda row: row["shape"]["n"]):
            if narrowest is None or len(batches[-1]) == TOGETHER or row["shape"]["n"] > TOGETHER * narrowest:
                batches.append([])
                narrowest = row["shape"]["n"]
            batches[-1].append(row)
    return batches


def compile_emitted(options, rows, folder):
    """Emits all programs of all rows as one file and compiles it; the exit status."""
    texts = []
    for batch in batches_of(rows):
        for case in cases_of(batch):
            texts.append(program(*case, f"product{len(texts)}"))
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
    print(f"{len(texts)} programs compiled for {options.arch}")
    print(f"rows passed {len(rows)}, failed 0")
    return 0


def rows_of(options):
    command = [KILN, "atoms", "--json", "--arch", options.arch]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)
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
        jobs = [
            (batch, [pool.submit(runner.case, *case) for case in cases_of(batch)]) for batch in batches_of(rows)
        ]
        for batch, results in jobs:
            wrong = [text for result in results for text in result.result()]
            programs += len(results)
            failed += len(batch) if wrong else 0
            for text in wrong:
                print("FAILED:", text)
    print(f"{programs} programs on {options.on} for {options.arch}")
    print(f"rows passed {len(rows) - failed}, failed {failed}")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
