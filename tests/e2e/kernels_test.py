#!/usr/bin/env python3
"""The kernels of the library in the simulator: shapes around every edge, in all variants.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/kernels_test.py

A run must find nothing: no element outside its bound or unwritten, no race, deadlock, uninitialised or
out-of-bounds read, exit code 0, each output compared with what the program computes step by step; and no
bank conflict where the results leave by `stmatrix`. What a kernel computes is said a second time: by a
formula, or by a few lines of Python on numbers that come out exact. Kernels with one mistake show that this
would notice. A sample of the cases, the same in each run; all of them, some minutes, with KILN_SWEEP=all.
"""

import itertools
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import attention_cases
from numbers_in_files import NUMBERS, load, save

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"
KILN = os.environ.get("KILN_RELEASE") or os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
ALL = os.environ.get("KILN_SWEEP", "") == "all"
JOBS = os.cpu_count() or 2
TIMEOUT_S = 300
SAMPLE = 5  # of so many cases one is run; shares no divisor with the numbers of shapes and of fills
FILLS = ("normal", "integers", "adversarial")
COUNTS = ("races", "deadlocks", "uninitialised", "out_of_bounds")
PRODUCT = "c[m,n] = a[m,k] * b[n,k]"
BYTES = {"bf16": 2, "f16": 2, "f8_e4m3": 1, "f8_e5m2": 1, "f32": 4, "s8": 1, "s32": 4}
ROW_UNIT = 16  # bytes of which a tensor's rows are multiples
STAGE_BYTES = 128  # of a row of a stage


@dataclass(frozen=True)
class Case:
    kernel: str  # a file of kernels/, or a path
    shape: dict
    defines: dict
    options: tuple = ()
    conflicts: bool = True  # bank conflicts may be
    arch: str = "sm_90a"
    unwritten: int = 0  # elements of c that stay as they are

    def argv(self):
        sizes = ",".join(f"{name}={size}" for name, size in self.shape.items())
        defines = [f"-D{name}={value}" for name, value in self.defines.items()]
        path = KERNELS / f"{self.kernel}.co"
        argv = [KILN, "run", str(path), "--arch", self.arch, "--on", "sim", "--json", "--shape", sizes]
        return argv + defines + list(self.options)


def execute(argv):
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode, done.stdout, done.stderr


def mistake_of(case, counted=("outside",)):
    """'' when the run found nothing wrong, else what it found; `counted` are those of an output's numbers that are to be 0."""
    code, out, err = execute(case.argv())
    if code != 0:
        return f"exit {code}: {' '.join(case.argv())}\n{err}"
    report = json.loads(out)
    found = {name: report[name] for name in COUNTS if report[name] != 0}
    for row in report["outputs"]:
        wanted = dict.fromkeys(counted, 0) | dict(unwritten=case.unwritten)
        found |= {f"{row['name']}: {key}": row[key] for key in wanted if row[key] != wanted[key]}
        if "program" not in row["compared_with"]:
            found[f"{row['name']}: compared with"] = row["compared_with"]
    if not case.conflicts and report["bank_conflicts"]:
        found["bank_conflicts"] = report["bank_conflicts"]
    return f"{found}: {' '.join(case.argv())}" if found else ""


def up(value, unit):
    return -(-value // unit) * unit


def depth_of(dtype):
    """Elements of K in a stage of 128 bytes."""
    return STAGE_BYTES // BYTES[dtype]


def shapes(tile_m, tile_n, stage, stages, units):
    """M, N, K: whole, ragged in each, less than a tile, K within one stage and around the ring, and more
    tiles than three blocks. `units` is what N and K are multiples of."""
    unit_n, unit_k = units
    edge_n, edge_k = up(tile_n - 1, unit_n) - unit_n, stage - unit_k
    found = [
        (tile_m, tile_n, stages * stage),
        (tile_m + 3, tile_n + unit_n, (stages + 1) * stage + unit_k),
        (5, unit_n, unit_k),
        (tile_m - 1, edge_n, stage),
        (2 * tile_m + 1, tile_n + edge_n, edge_k),
        (5 * tile_m - 2, 2 * tile_n, 2 * stage + unit_k),
        (tile_m, 3 * tile_n + unit_n, (stages - 1) * stage),
    ]
    return [dict(zip("MNK", sizes)) for sizes in found]


# ---- the kernels' cases ----

# (type, type of c, type of sums); only what has 16 bits leaves by stmatrix
TYPES = (
    ("bf16", "bf16", "f32"),
    ("f16", "f32", "f32"),
    ("f8_e4m3", "bf16", "f32"),
    ("f8_e5m2", "f16", "f32"),
    ("f32", "f32", "f32"),
    ("s8", "s32", "s32"),
)
# (warpgroups, columns, stages, parts of the result)
TILES = (
    (1, 64, 4, 2),
    (1, 256, 3, 1),
    (2, 96, 3, 1),
    (2, 128, 4, 2),
    (2, 176, 2, 1),
    (2, 256, 2, 2),
    (3, 128, 3, 1),
    (3, 256, 2, 2),
)
# Every tile with the first type, every type with some tile.
DENSE = [(tile, TYPES[0]) for tile in TILES] + list(zip(TILES[2:], TYPES[1:]))


def units_of(dtype, out):
    return ROW_UNIT // BYTES[out], ROW_UNIT // BYTES[dtype]


def dense_cases():
    for (warpgroups, tile_n, stages, parts), (dtype, out, acc) in DENSE:
        defines = dict(DTYPE=dtype, OUT=out, ACC=acc, WARPGROUPS=warpgroups, TILE_N=tile_n)
        defines |= dict(STAGES=stages, PARTS=parts)
        sizes = shapes(64 * warpgroups, tile_n, depth_of(dtype), stages, units_of(dtype, out))
        for shape, more in zip(sizes, itertools.cycle((dict(BLOCKS=3), dict(BLOCKS=3, GROUP=2)))):
            by_element = BYTES[out] != 2
            yield Case("gemm_sm90", shape, {**defines, **more}, ("--expect", PRODUCT), by_element)


# (rows of a, warpgroups, panels, stages in flight, splits, stages, blocks that share b, and a)
SKINNY = (
    (8, 1, 1, 1, 1, 3, 1, 1), (16, 1, 2, 1, 1, 2, 1, 1), (16, 2, 2, 2, 3, 2, 1, 1),
    (32, 1, 2, 1, 9, 2, 1, 1), (64, 2, 1, 1, 3, 3, 1, 1), (128, 1, 2, 1, 1, 2, 1, 1),
    (128, 1, 1, 2, 9, 3, 1, 1), (64, 1, 1, 2, 1, 2, 1, 1), (48, 1, 2, 2, 3, 3, 1, 1),
    (16, 1, 2, 1, 1, 2, 2, 1), (32, 2, 1, 1, 3, 3, 2, 1), (64, 1, 1, 2, 1, 2, 2, 1),
    (64, 1, 1, 2, 1, 3, 1, 4), (32, 2, 1, 1, 2, 2, 1, 2),
)


def skinny_cases():
    ways = [(way, TYPES[0]) for way in SKINNY] + list(zip(SKINNY, TYPES[1:]))
    from_registers = itertools.cycle((False, True))
    for (tile_m, warpgroups, panels, in_flight, splits, stages, sharers, a_sharers), (dtype, out, acc) in ways:
        defines = dict(DTYPE=dtype, OUT=out, ACC=acc, TILE_M=tile_m, WARPGROUPS=warpgroups)
        defines |= dict(PANELS=panels, IN_FLIGHT=in_flight, SPLITS=splits, STAGES=stages)
        defines |= dict(SHARERS=sharers, A_SHARERS=a_sharers)
        if splits > 1 and next(from_registers):
            defines |= dict(BUFFERED=0)
        depth = depth_of(dtype) * panels
        for shape in shapes(tile_m, 64 * warpgroups, depth, stages, units_of(dtype, out)):
            rows = dict(LDC=shape["N"]) if splits > 1 else {}
            yield Case("gemm_skinny_sm90", shape | rows, defines, ("--expect", PRODUCT))


def scaled_cases():
    # Types, warpgroups, bands, stages, splits.
    ways = (
        ("f8_e4m3", 2, 1, 3, 1),
        ("f8_e5m2", 2, 1, 2, 1),
        ("f8_e4m3", 3, 1, 2, 1),
        ("f8_e4m3", 1, 1, 3, 1),
        ("f8_e4m3", 2, 1, 2, 2),
        ("f8_e4m3", 2, 2, 2, 1),
    )
    for dtype, warpgroups, bands, stages, splits in ways:
        defines = dict(DTYPE=dtype, WARPGROUPS=warpgroups, BANDS=bands, STAGES=stages, SPLITS=splits, BLOCKS=3)
        for shape in shapes(64 * warpgroups * bands, 128, 128, stages, (8, 16)):
            blocks = dict(M=up(shape["M"], 4), KB=up(shape["K"], 128) // 128, NB=up(shape["N"], 128) // 128)
            rows = dict(LDC=shape["N"]) if splits > 1 else {}
            yield Case("gemm_block_scaled_sm90", shape | blocks | rows, defines, (), splits > 1)


# Copies of a, of b, of c.
RAGGED = ((1, 1, 1), (1, 0, 0), (0, 1, 1), (0, 0, 1))


def ragged_cases():
    """Rows of no whole 16 bytes, of those that are copied."""
    ways = [(way, TYPES[0]) for way in RAGGED] + [(RAGGED[0], types) for types in TYPES[1:]]
    for (pad_a, pad_b, pad_c), (dtype, out, acc) in ways:
        unit_n, unit_k = units_of(dtype, out)
        units = (1 if pad_c else unit_n, 1 if pad_a and pad_b else unit_k)
        defines = dict(DTYPE=dtype, OUT=out, ACC=acc, WARPGROUPS=1, TILE_N=64, STAGES=2, BLOCKS=3)
        defines |= dict(PAD_A=pad_a, PAD_B=pad_b, PAD_C=pad_c)
        for shape in shapes(64, 64, depth_of(dtype), 2, units):
            k, rows = shape["K"], {}
            if pad_a:
                rows |= dict(LDA=k)
            if pad_b:
                rows |= dict(LDB=k)
            if pad_a or pad_b:
                rows |= dict(KP=up(k, unit_k))
            if pad_c:
                rows |= dict(LDC=shape["N"])
            yield Case("gemm_ragged_sm90", shape | rows, defines, ("--expect", PRODUCT))


# (warps down, warps across)
WARPS = ((2, 4), (1, 1), (2, 2))


def warp_cases():
    """Rows that begin anywhere, for every architecture."""
    ways = [(warps, TYPES[0]) for warps in WARPS] + list(zip(WARPS[1:], (TYPES[1], TYPES[5])))
    for ((down, across), (dtype, out, acc)), arch in zip(ways, itertools.cycle(("sm_80", "sm_90a"))):
        defines = dict(DTYPE=dtype, OUT=out, ACC=acc, WARPS_M=down, WARPS_N=across, GROUP=2)
        tile_n = 2 * min(16, 8 * BYTES[dtype]) * across
        for shape in shapes(64 * down, tile_n, 64 // BYTES[dtype], 3, (1, 1)):
            rows = dict(LDA=shape["K"], LDB=shape["K"], LDC=shape["N"])
            yield Case("gemm_sm80", shape | rows, defines, ("--expect", PRODUCT), arch=arch)


# Which operands lie along k, with the product of the tensors as they lie.
ORDERS = (
    (1, 0, "c[m,n] = a[m,k] * b[k,n]"),
    (0, 1, "c[m,n] = a[k,m] * b[n,k]"),
    (0, 0, "c[m,n] = a[k,m] * b[k,n]"),
)


def turned_cases():
    """Operands along m or n: on Hopper of 16 bits, elsewhere of all types."""
    tiles = ((2, 128, 3, 1), (1, 256, 2, 2), (3, 64, 3, 1))
    for (a_along, b_along, product), (warpgroups, tile_n, stages, parts) in itertools.product(ORDERS, tiles):
        defines = dict(WARPGROUPS=warpgroups, TILE_N=tile_n, STAGES=stages, PARTS=parts, BLOCKS=3)
        defines |= dict(A_ALONG_K=a_along, B_ALONG_K=b_along)
        for shape in shapes(64 * warpgroups, tile_n, 64, stages, (8, 8)):
            yield Case("gemm_sm90", shape | dict(M=up(shape["M"], 8)), defines, ("--expect", product))
    for (a_along, b_along, product), (dtype, out, acc) in itertools.product(ORDERS, TYPES):
        defines = dict(DTYPE=dtype, OUT=out, ACC=acc, A_ALONG_K=a_along, B_ALONG_K=b_along, GROUP=2)
        for m, n, k in ((131, 67, 100), (5, 3, 9), (128, 130, 64)):
            rows = dict(LDA=k if a_along else m, LDB=k if b_along else n, LDC=n)
            shape = dict(M=m, N=n, K=k) | rows
            yield Case("gemm_sm80", shape, defines, ("--expect", product))


# What an epilogue can have, and each by itself.
ALL_PARTS = ("ALPHA", "BETA", "BIAS", "RESIDUAL", "RELU")
EPILOGUES = (ALL_PARTS, *((part,) for part in (*ALL_PARTS[:4], "GELU", "SILU")))


def epilogue_cases():
    """Held against the reference alone."""
    dense, skinny = "gemm_sm90", "gemm_skinny_sm90"
    dense_defines = dict(TILE_N=128, STAGES=2, BLOCKS=3)
    for kernel, more in ((dense, dense_defines), (skinny, {}), (skinny, dict(SPLITS=3))):
        for macros, out in zip(EPILOGUES, itertools.cycle(("bf16", "f32"))):
            defines = dict(OUT=out, **more, **{macro: 1 for macro in macros})
            scalars = {name.lower(): value for name, value in dict(ALPHA=2, BETA=-1).items() if name in macros}
            shape = dict(M=150, N=200, K=136) | scalars
            if "RESIDUAL" in macros:
                shape |= dict(LDR=203)
            if "BETA" in macros or "SPLITS" in more:
                shape |= dict(LDC=200)
            yield Case(kernel, shape, defines)


def warp_epilogue_cases():
    """Operands in all orders, gaps in c and in the residual."""
    orders = ((1, 1), *((a_along, b_along) for a_along, b_along, _ in ORDERS))
    for macros, (a_along, b_along) in itertools.product(EPILOGUES, orders):
        defines = dict(A_ALONG_K=a_along, B_ALONG_K=b_along, OUT="f32", **{macro: 1 for macro in macros})
        m, n, k = 133, 70, 90
        shape = dict(M=m, N=n, K=k, LDA=k if a_along else m, LDB=k if b_along else n, LDC=n)
        if "RESIDUAL" in macros:
            shape |= dict(LDR=n + 3)
        scalars = {name.lower(): value for name, value in dict(ALPHA=2, BETA=-1).items() if name in macros}
        yield Case("gemm_sm80", shape | scalars, defines, arch="sm_80")


def ragged_epilogue_cases():
    """Rows of a and of the residual with gaps."""
    for (pad_a, pad_b, pad_c), macros in itertools.product(RAGGED, EPILOGUES):
        defines = dict(TILE_N=64, STAGES=2, BLOCKS=3, PAD_A=pad_a, PAD_B=pad_b, PAD_C=pad_c)
        defines |= {macro: 1 for macro in macros}
        k = 133 if pad_a and pad_b else 136
        shape = dict(M=150, N=199 if pad_c else 200, K=k)
        if pad_a:
            shape |= dict(LDA=k + 2)
        if pad_b:
            shape |= dict(LDB=k)
        if pad_a or pad_b:
            shape |= dict(KP=up(k, 8))
        if pad_c or "BETA" in macros:
            shape |= dict(LDC=shape["N"])
        if "RESIDUAL" in macros:
            shape |= dict(LDR=203)
        scalars = {name.lower(): value for name, value in dict(ALPHA=2, BETA=-1).items() if name in macros}
        yield Case("gemm_ragged_sm90", shape | scalars, defines)


def forward_attention():
    return itertools.starmap(Case, itertools.chain(attention_cases.forward_cases(), attention_cases.option_cases()))


def backward_attention():
    return itertools.starmap(Case, attention_cases.backward_cases())


def with_fills(cases):
    for case, fill in zip(cases, itertools.cycle(FILLS)):
        yield replace(case, options=(*case.options, "--fill", fill))


def all_kinds():
    dense = (dense_cases(), skinny_cases(), scaled_cases(), ragged_cases(), warp_cases())
    return (*dense, forward_attention(), backward_attention())


class Kernels(unittest.TestCase):
    def sweep(self, what, cases, options=()):
        cases = [replace(case, options=case.options + options) for case in cases]
        chosen = cases if ALL else cases[::SAMPLE]
        with ThreadPoolExecutor(JOBS) as pool:
            mistakes = [m for m in pool.map(mistake_of, chosen) if m]
        print(f"{what}: {len(chosen)} of {len(cases)} runs, {len(mistakes)} wrong", flush=True)
        self.assertFalse(mistakes, "\n".join(mistakes[:5]))

    def test_dense(self):
        self.sweep("gemm_sm90", with_fills(dense_cases()))

    def test_skinny(self):
        self.sweep("gemm_skinny_sm90", with_fills(skinny_cases()))

    def test_block_scaled(self):
        self.sweep("gemm_block_scaled_sm90", with_fills(scaled_cases()))

    def test_ragged(self):
        self.sweep("gemm_ragged_sm90", with_fills(ragged_cases()))

    def test_warps(self):
        self.sweep("gemm_sm80", with_fills(warp_cases()))

    def test_epilogues(self):
        self.sweep("epilogues", with_fills(epilogue_cases()))
        self.sweep("ragged epilogues", with_fills(ragged_epilogue_cases()))
        self.sweep("warp epilogues", with_fills(warp_epilogue_cases()))

    def test_turned(self):
        self.sweep("turned", with_fills(turned_cases()))

    def test_attention(self):
        self.sweep("attention_sm90", with_fills(forward_attention()))

    def test_attention_gradients(self):
        self.sweep("attention's gradients", backward_attention())

    def test_depths_of_gradients_in_any_order(self):
        check = [KILN, "check", str(KERNELS / "attention_backward_sm90.co"), "--arch", "sm_90a", "-DDETERMINISTIC=false"]
        for depth, error in ((32, ""), (64, ""), (96, "error[requires-false]"), (128, ""), (192, "error[requires-false]")):
            code, _, err = execute([*check, f"-DD={depth}"])
            self.assertEqual((code, err.partition(":")[0]), (int(error != ""), error), depth)

    def test_every_kernel_is_here(self):
        elsewhere = {"attention_decode_sm90", "attention_varlen_backward_sm90", "attention_varlen_sm90"}
        elsewhere |= {"attention_f8_sm90", "transpose_f8_sm90", "gemm_grouped_sm90", "gemm_k_grouped_sm90", "gemm_pingpong_sm90"}
        found = {case.kernel for kind in all_kinds() for case in kind} | {"gemm_sparse_sm90"} | elsewhere
        self.assertEqual(found, {path.stem for path in KERNELS.glob("*.co")})
        self.assertEqual(found - elsewhere, {name.split()[0] for name in MISTAKES})

    def test_other_orders_of_execution(self):
        cases = [case for kind in all_kinds() for case in list(kind)[1::13]]
        self.sweep("8 schedules", cases, ("--schedules", "8"))


# ---- numbers that come out exact ----

class OnFiles(unittest.TestCase):
    """Inputs from files, results compared number by number."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-kernels-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.chance = random.Random(7)

    def matrix(self, name, dtype, rows, cols, shape=None):
        """Random numbers, also in a file `name`.npy."""
        numbers = [self.chance.choices(list(NUMBERS[dtype]), k=cols) for _ in range(rows)]
        bits = [[NUMBERS[dtype][v] for v in row] for row in numbers]
        save(self.folder / f"{name}.npy", dtype, bits, shape)
        return numbers

    def result(self, kernel, shape, defines, inputs, cols, unwritten=0):
        files = [f"--in={name}={self.folder / name}.npy" for name in inputs]
        out = f"--out=c={self.folder / 'c'}.npy"
        mistake = mistake_of(Case(kernel, shape, defines, (*files, out), unwritten=unwritten))
        self.assertFalse(mistake, mistake)
        return load(self.folder / "c.npy", defines.get("OUT", "f32"), cols)

    def with_epilogue(self, sums):
        """relu(2 x - c + bias) + residual of each sum x, with gaps in the residual; and the dimensions and the
        inputs of a run that computes it."""
        m, n = len(sums), len(sums[0])
        more = {}
        for name, rows, cols in (("bias", 1, n), ("c", m, n), ("residual", m, n + 4)):
            more[name] = [self.chance.choices((-3.0, -1.0, 0.5, 2.0), k=cols) for _ in range(rows)]
            save(self.folder / f"{name}.npy", "f32", more[name], (n,) if name == "bias" else None)
        wanted = [[0.0] * n for _ in range(m)]
        for row, col in itertools.product(range(m), range(n)):
            total = 2 * sums[row][col] - more["c"][row][col] + more["bias"][0][col]
            wanted[row][col] = max(total, 0.0) + more["residual"][row][col]
        return wanted, dict(LDC=n, LDR=n + 4, alpha=2, beta=-1), tuple(more)

    def check(self, kernel, shape, defines, inputs, sums):
        """The sums by themselves, and what an epilogue makes of those in f32."""
        n = len(sums[0])
        self.assertTrue(self.result(kernel, shape, defines, inputs, n) == sums, "other numbers")
        if defines["OUT"] == "s32": return
        wanted, more, names = self.with_epilogue(sums)
        defines = defines | {part: 1 for part in ALL_PARTS}
        found = self.result(kernel, shape | more, defines, inputs + names, n)
        self.assertTrue(found == wanted, "other numbers behind the epilogue")

    def scaled(self, sizes, defines, kernel="gemm_block_scaled_sm90"):
        m, n, k = sizes
        a, b = self.matrix("a", "f8_e4m3", m, k), self.matrix("b", "f8_e4m3", n, k)
        blocks, panels = up(k, 128) // 128, up(n, 128) // 128
        scale = lambda rows, cols: [self.chance.choices((0.5, 1.0, 2.0, -4.0), k=cols) for _ in range(rows)]
        a_scale, b_scale = scale(blocks, m), scale(panels, blocks)
        save(self.folder / "a_scale.npy", "f32", a_scale)
        save(self.folder / "b_scale.npy", "f32", b_scale)
        wanted = [[0.0] * n for _ in range(m)]
        for (row, x), (col, y) in itertools.product(enumerate(a), enumerate(b)):
            for block in range(blocks):
                part = slice(128 * block, 128 * block + 128)
                factor = a_scale[block][row] * b_scale[col // 128][block]
                wanted[row][col] += factor * sum(map(int.__mul__, x[part], y[part]))
        shape = dict(M=m, N=n, K=k, KB=blocks, NB=panels, **(dict(LDC=n) if "SPLITS" in defines else {}))
        self.check(kernel, shape, defines, ("a", "a_scale", "b", "b_scale"), wanted)

    def sparse(self, dtype, sizes, defines, kernel="gemm_sparse_sm90"):
        """`kiln prune` makes the operand, its metadata, and the dense matrix that it stands for."""
        m, n, k = sizes
        self.matrix("a", dtype, m, k)
        b = self.matrix("b", dtype, n, k)
        files = [str(self.folder / f"{name}.npy") for name in ("a", "packed", "metadata", "dense")]
        outputs = ["-o", files[1], "--metadata", files[2], "--dense", files[3]]
        code, _, err = execute([KILN, "prune", files[0], *outputs, "--type", dtype, "--form", "u32"])
        self.assertEqual(code, 0, err)
        numbers = {bits: number for number, bits in NUMBERS[dtype].items()}
        dense = [[numbers[v] for v in row] for row in load(Path(files[3]), dtype, k)]
        wanted = [[float(sum(map(int.__mul__, x, y))) for y in b] for x in dense]
        words = len(load(Path(files[2]), "u32", 1)) // m
        shape = dict(M=m, N=n, K=k, P=k // 2, W=words)
        sums = "s32" if dtype == "s8" else "f32"
        defines = dict(DTYPE=dtype, OUT=sums, ACC=sums, BLOCKS=3, **defines)
        self.check(kernel, shape, defines, ("packed", "metadata", "b"), wanted)

    def ragged(self, sizes, defines, kernel="gemm_ragged_sm90"):
        """relu(2 a b^T - c + bias) + residual, with gaps in all but c."""
        m, n, k = sizes
        a, b = self.matrix("a", "f16", m, k + 3), self.matrix("b", "f16", n, k + 1)
        sums = [[float(sum(map(int.__mul__, x[:k], y[:k]))) for y in b] for x in a]
        wanted, more, names = self.with_epilogue(sums)
        shape = dict(M=m, N=n, K=k, LDA=k + 3, LDB=k + 1, KP=up(k, 64)) | more
        defines = dict(DTYPE="f16", OUT="f32", BLOCKS=3, **defines, **{part: 1 for part in ALL_PARTS})
        self.assertTrue(self.result(kernel, shape, defines, ("a", "b", *names), n) == wanted, "other numbers")


class Exact(OnFiles):
    def test_block_scaled(self):
        self.scaled((132, 136, 272), dict(OUT="f32", WARPGROUPS=2, STAGES=2, BLOCKS=3))
        self.scaled((196, 144, 128), dict(OUT="f32", WARPGROUPS=3, STAGES=2, BLOCKS=3))
        self.scaled((36, 136, 656), dict(OUT="f32", WARPGROUPS=1, STAGES=2, BLOCKS=3, SPLITS=4))
        if ALL:
            self.scaled((132, 264, 400), dict(OUT="f32", WARPGROUPS=2, STAGES=3, BLOCKS=2, SPLITS=3))
            self.scaled((260, 264, 656), dict(OUT="f32", WARPGROUPS=2, STAGES=3, BLOCKS=3, GROUP=2))

    def test_sparse(self):
        self.sparse("f16", (144, 72, 384), dict(HEIGHT=1, TILE_N=64, LINES=2, STAGES=2))
        self.sparse("f8_e4m3", (80, 104, 640), dict(HEIGHT=1, TILE_N=96, LINES=2, STAGES=2))
        self.sparse("f16", (16, 8, 128), dict(WARPGROUPS=3, HEIGHT=1, TILE_N=128, STAGES=2))
        self.sparse("f16", (400, 136, 384), dict(TILE_N=96, STAGES=4, GROUP=1))
        self.sparse("f8_e4m3", (272, 104, 384), dict(TILE_N=96, STAGES=3))
        self.sparse("f16", (272, 88, 384), dict(TILE_N=80, STAGES=3, PARTS=5))
        self.sparse("s8", (272, 104, 384), dict(TILE_N=96, STAGES=3))
        if ALL:
            self.sparse("f16", (272, 392, 512), dict(HEIGHT=1, TILE_N=192, LINES=2, STAGES=2, GROUP=2))
            self.sparse("f16", (528, 424, 640), dict(TILE_N=208, STAGES=3, GROUP=2))
            self.sparse("f16", (528, 424, 640), dict(TILE_N=200, STAGES=3, GROUP=2, PARTS=5))
            self.sparse("s8", (400, 136, 1152), dict(WARPGROUPS=3, HEIGHT=1, TILE_N=64, LINES=2, STAGES=2))
            self.sparse("f16", (272, 264, 640), dict(HEIGHT=1, TILE_N=256, STAGES=3))
            self.sparse("f16", (528, 136, 640), dict(TILE_N=128, LINES=2, STAGES=2))
            self.sparse("f8_e4m3", (400, 136, 1152), dict(WARPGROUPS=3, HEIGHT=1, TILE_N=64, LINES=2, STAGES=2))
            self.sparse("f8_e4m3", (528, 136, 1152), dict(TILE_N=128, STAGES=5))

    def test_ragged_epilogue(self):
        self.ragged((133, 67, 71), dict(WARPGROUPS=2, TILE_N=64, STAGES=2))


# ---- mistakes ----

RING = (
    ("wait full[stage];", "", "race"),
    ("wait empty[stage];", "", "phase-overrun"),
    ("trigger empty[stage];", "", "deadlock"),
)
PERSISTENT = (
    ("stage = (round * steps + k) % STAGES;", "stage = k % STAGES;", "deadlock"),
    ("rows = tiles_m - first < GROUP ? tiles_m - first : GROUP;", "rows = GROUP;", "unwritten"),
)
# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = {
    **attention_cases.MISTAKES,
    "gemm_sm90": (
        ("wait full[stage];", "", "race"),
        *RING[1:],
        *PERSISTENT,
        ("j * PARTS + part)", "j * PARTS)", "unwritten"),
        ("i * W + w, j", "i * W, j", "unwritten"),
        ("wait left;", "", "race"),
        ("wait done[w];", "", "uninitialised-read"),
        ("trigger left[w];", "", "deadlock"),
        ("sum.subspan(_, C).at(_, part)", "sum.subspan(_, C).at(_, 0)", "result-outside"),
        ("AC).at(w, 0)", "AC).at(0, 0)", "axis-unread"),
    ),
    "gemm_ragged_sm90": (
        *RING,
        *PERSISTENT,
        ("j * 2 + HALF)", "j * 2)", "unwritten"),
        ("tile_m * WARPGROUPS + p, tile_n", "tile_m * WARPGROUPS, tile_n", "race"),
        ("x.view(M, cols)", "x.view(M - 1, cols)", "grid-short"),
        ("i - blocks_a", "i", "output-unwritten"),
    ),
    "gemm_sm80": (
        PERSISTENT[1],
        ("rotate(a_now, a_next, a_last);", "", "error"),
        ("rotate(b_now, b_next, b_last);", "rotate(b_next, b_now, b_last);", "error"),
        ("(w_m * 4 + i, s)", "(w_m * 4, s)", "error"),
        ("(w_m * 4 + r, w_n * 2 + s)", "(w_m * 4 + r, w_n * 2)", "error"),
    ),
    "gemm_skinny_sm90": (
        *RING,
        ("first + k, k % STAGES", "k, k % STAGES", "result-outside"),
        ("foreach s in [S] x", "foreach s in [S - 1] x", "result-outside"),
        ("tile_n * WARPGROUPS + p, N", "tile_n * WARPGROUPS, N", "race"),
    ),
    "gemm_skinny_sm90 of parts from registers": (
        (".at(split, tile_m, tile_n * WARPGROUPS + p)", ".at(split, tile_m, tile_n * WARPGROUPS)", "mma-store-ambiguous"),
        (".at(split, tile_m, tile_n * WARPGROUPS + p)", ".at(0, tile_m, tile_n * WARPGROUPS + p)", "race"),
        ("mma.store.transp mc, partial", "if (p == 0) mma.store.transp mc, partial", "result-outside"),
    ),
    "gemm_skinny_sm90 of blocks that share": (
        ("trigger.cluster empty[stage];", "trigger empty[stage];", "race"),
        ("wait empty[stage];", "", "phase-overrun"),
        ("by [1, SHARERS, A_SHARERS] : cluster", "by [1, A_SHARERS, SHARERS] : cluster", "multicast-differs"),
        (".multicast b.subspan(D, C).at(j, k)", ".multicast b.subspan(D, C).at(j, i)", "multicast-differs"),
    ),
    "gemm_skinny_sm90 with two stages in flight": (
        ("wait full[next];", "", "race"),
        ("give_back<BLOCKS>(empty, k % S);", "give_back<BLOCKS>(empty, next);", "deadlock"),
        ("give_back<BLOCKS>(empty, k % S);", "", "deadlock"),
        ("mma.wait<1>;", "mma.wait<2>;", "race"),
        ("    mma.wait<0>;\n  }\n}", "  }\n}", "race"),
        ("foreach k in [count - 1]", "foreach k in [count - 2]", "result-outside"),
    ),
    "gemm_block_scaled_sm90": (
        ("wait full[stage];", "", "race"),
        *RING[1:],
        ("stage = (round * each + k) % STAGES;", "stage = k % STAGES;", "deadlock"),
        PERSISTENT[1],
        ("b_scale.at(tile_n, __min(first + k", "b_scale.at(0, __min(first + k", ""),
        ("subspan(1, ROWS).at(0, band * WARPGROUPS + p - 1)", "subspan(1, ROWS).at(0, 0)", ""),
        ("wait left;", "", "race"),
        ("trigger left[w];", "", "deadlock"),
        ("tile_m * TILE_M + buffer * ROWS", "tile_m * TILE_M", "race"),
    ),
    "gemm_block_scaled_sm90 in bands": (
        ("b_s[stage], band * WARPGROUPS + p - 1", "b_s[stage], p - 1", "grid-short"),
        (".at(0, band * WARPGROUPS + p - 1)", ".at(0, (1 - band) * WARPGROUPS + p - 1)", ""),
        ("mma.fill products, 0.0f;", "", ""),
        ("leave<1>(mc[band]", "leave<1>(mc[0]", "mma-never-stored"),
        ("tile_m * TILE_M + buffer * ROWS", "tile_m * TILE_M + (p - 1) * ROWS", "race"),
    ),
    "gemm_block_scaled_sm90 in parts": (
        ("foreach s in [S] x", "foreach s in [S - 1] x", ""),
        ("first = part % SPLITS * each;", "first = part % SPLITS;", "unfinished-at-exit"),
        ("steps - first < each ? steps - first : each", "each", "unfinished-at-exit"),
        (".at(split, i * W", ".at(0, i * W", "race"),
        ("b_scale.at(tile_n, __min(first + k", "b_scale.at(tile_n, __min(k", ""),
        (".at(first + k, tile_m) => scale_s", ".at(k, tile_m) => scale_s", ""),
    ),
    "gemm_sparse_sm90": (
        *RING,
        *PERSISTENT,
        ("wait left;", "", "race"),
        ("wait done[w];", "", "uninitialised-read"),
        ("trigger left[w];", "", "deadlock"),
        ("sum.subspan(_, C).at(_, part)", "sum.subspan(_, C).at(_, 0)", ""),
        ("WORDS).at(rows, k % TURN)", "WORDS).at(p - 1, k % TURN)", "grid-short"),
        ("WORDS).at(rows, k % TURN)", "WORDS).at(rows, 0)", ""),
        ("cdiv(STAGES - 1, TURN) + 1;", "cdiv(STAGES - 1, TURN);", "race"),
        ("tile_m * HEIGHT + h, tile_n", "tile_m * HEIGHT, tile_n", "race"),
        ("bias.at(col)", "bias.at(0)", "behind"),
    ),
}


RAGGED_EPILOGUE = (
    ("residual.at(row, col)", "residual.at(row, 0)"),
    ("__to<f32>(c.at(row, col))", "__to<f32>(c.at(0, col))"),
    ("tile_m * TILE_M + p * ROWS", "tile_m * TILE_M"),
    ("tile_n * TILE_N, N", "0, N"),
)


def with_included(path):
    """The file and those that it includes, and they, each once."""
    out = [path]
    for each in out:
        names = re.findall(r'^#include "(.+)"', each.read_text(encoding="utf-8"), re.MULTILINE)
        out += [found for name in names if (found := each.parent / name) not in out]
    return out


class Broken(OnFiles):
    def broken(self, kernel, change):
        """The path of the kernel with one text changed, in it or in a part that it includes."""
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        shutil.copytree(KERNELS / "parts", self.folder / "parts")
        shutil.copy(KERNELS / f"{kernel}.co", self.folder)
        for path in with_included(self.folder / f"{kernel}.co"):
            text = path.read_text(encoding="utf-8")
            if change[0] in text:
                path.write_text(text.replace(change[0], change[1], 1), encoding="utf-8")
                return self.folder / kernel
        self.fail(f"{kernel} has no {change[0]}")

    def compare(self, kernel, check, changes=None):
        for change in changes or MISTAKES[kernel]:
            with self.subTest(change):
                with self.assertRaises(AssertionError) as found:
                    check(self.broken(kernel, change))
                self.assertIn(change[2] or "other numbers", str(found.exception))


class NegativeControl(Broken):
    """Each mistake is found."""

    def expect_found(self, change, case):
        code, _, err = execute(case.argv())
        self.assertEqual(code, 1, err)
        self.assertIn(change[2], err)

    def test_dense(self):
        shape, defines = dict(M=330, N=136, K=264), dict(BLOCKS=3, TILE_N=128, STAGES=3, GROUP=2)
        for change in MISTAKES["gemm_sm90"]:
            with self.subTest(change):
                path = self.broken("gemm_sm90", change)
                self.expect_found(change, Case(path, shape, defines, ("--expect", PRODUCT)))

    def test_ragged(self):
        shape = dict(M=330, N=133, K=199, LDA=199, LDB=199, LDC=133, KP=200)
        defines = dict(BLOCKS=3, TILE_N=128, STAGES=3, GROUP=2)
        for change in MISTAKES["gemm_ragged_sm90"]:
            with self.subTest(change):
                path = self.broken("gemm_ragged_sm90", change)
                self.expect_found(change, Case(path, shape, defines, ("--expect", PRODUCT)))

    def test_ragged_epilogue(self):
        for before, after in RAGGED_EPILOGUE:
            with self.subTest(before), self.assertRaisesRegex(AssertionError, "other numbers|error.race"):
                path = self.broken("gemm_ragged_sm90", (before, after))
                self.ragged((133, 67, 71), dict(WARPGROUPS=2, TILE_N=64, STAGES=2), path)

    def test_warps(self):
        shape = dict(M=300, N=133, K=263, LDA=263, LDB=263, LDC=133)
        for change in MISTAKES["gemm_sm80"]:
            with self.subTest(change):
                case = Case(self.broken("gemm_sm80", change), shape, dict(GROUP=2), ("--expect", PRODUCT))
                self.expect_found(change, replace(case, arch="sm_80"))

    def test_skinny(self):
        shape, defines = dict(M=20, N=136, K=1000, LDC=136), dict(SPLITS=2, STAGES=2, WARPGROUPS=2)
        self.expect_all_found("gemm_skinny_sm90", shape, defines, PRODUCT)

    def test_skinny_of_parts_from_registers(self):
        shape, defines = dict(M=20, N=136, K=1000, LDC=136), dict(SPLITS=2, STAGES=2, WARPGROUPS=2, BUFFERED=0)
        self.expect_all_found("gemm_skinny_sm90 of parts from registers", shape, defines, PRODUCT)

    def test_skinny_of_blocks_that_share(self):
        shape, defines = dict(M=60, N=200, K=1000), dict(SHARERS=2, STAGES=2)
        self.expect_all_found("gemm_skinny_sm90 of blocks that share", shape, defines, PRODUCT)

    def test_skinny_with_two_stages_in_flight(self):
        shape, defines = dict(M=70, N=136, K=1000), dict(IN_FLIGHT=2, TILE_M=64, STAGES=3, PANELS=1)
        self.expect_all_found("gemm_skinny_sm90 with two stages in flight", shape, defines, PRODUCT)

    def expect_all_found(self, name, shape, defines, *options):
        kernel = name.split()[0]
        for change in MISTAKES[name]:
            with self.subTest(change):
                self.expect_found(change, Case(self.broken(kernel, change), shape, defines, ("--expect", *options)))

    def test_attention(self):
        shape = dict(B=1, S=400, T=450, H=3, HK=1, scale=0.088)
        defines = dict(BLOCKS=2, CAUSAL="true", D=64, TILE=64)
        self.expect_all_found("attention_sm90", shape, defines, attention_cases.CAUSAL_ATTENTION, "--check", "full")

    def test_attention_of_scores_that_grow(self):
        shape = dict(B=1, S=400, T=450, H=3, HK=1, scale=2.5)
        defines = dict(BLOCKS=2, CAUSAL="true", D=64, TILE=64, DTYPE="f16")
        expected = attention_cases.CAUSAL_ATTENTION
        self.expect_all_found("attention_sm90 of scores that grow", shape, defines, expected, "--check", "full")

    def test_attention_of_spare_weights(self):
        shape = dict(B=1, S=200, T=450, H=2, HK=1, scale=2.5)
        defines = dict(BLOCKS=2, D=64, TILE=64, DTYPE="f16", SPARE="true")
        self.expect_all_found("attention_sm90 of spare weights", shape, defines, attention_cases.attention(defines), "--check", "full")

    def test_attention_drawn(self):
        shape = dict(B=2, S=400, T=450, H=3, HK=1, scale=0.088)
        defines = dict(BLOCKS=2, CAUSAL="true", D=64, DRAWN="true", KEYS_TOGETHER=900)
        self.expect_all_found("attention_sm90 drawn", shape, defines, attention_cases.CAUSAL_ATTENTION)

    def test_attention_of_queries_without_keys(self):
        shape = dict(B=1, S=300, T=170, H=2, HK=1, scale=0.088)
        defines = dict(BLOCKS=2, CAUSAL="true", D=64, TILE=64)
        expected = attention_cases.CAUSAL_ATTENTION
        self.expect_all_found("attention_sm90 of queries without keys", shape, defines, expected, "--check", "full")

    def test_attention_in_clusters(self):
        shape = dict(B=1, S=400, T=450, H=3, HK=1, scale=0.088)
        defines = dict(BLOCKS=4, D=64, TILE=64, AHEAD=1, CLUSTER=2)
        expected = attention_cases.attention(defines)
        self.expect_all_found("attention_sm90 in clusters", shape, defines, expected, "--check", "full")

    def test_attention_with_options(self):
        shape = dict(B=1, S=400, T=450, H=2, HK=1, scale=0.3, left=150, right=30, soft_cap=1.5)
        defines = dict(BLOCKS=2, D=64, TILE=64, LEFT="true", RIGHT="true", SOFT_CAP="true")
        expected = attention_cases.attention(defines)
        self.expect_all_found("attention_sm90 with options", shape, defines, expected, "--check", "full")

    def test_attention_gradients(self):
        for name, (shape, defines) in attention_cases.BROKEN_GRADIENTS.items():
            with self.subTest(name):
                self.expect_all_found(name, shape, defines, attention_cases.gradients(defines))

    def test_block_scaled(self):
        defines = dict(OUT="f32", WARPGROUPS=2, STAGES=2, BLOCKS=3, GROUP=2)
        self.compare("gemm_block_scaled_sm90", lambda path: self.scaled((260, 136, 272), defines, path))

    def test_block_scaled_in_bands(self):
        defines = dict(OUT="f32", WARPGROUPS=2, BANDS=2, STAGES=2, BLOCKS=3, GROUP=2)
        check = lambda path: self.scaled((396, 136, 272), defines, path)
        self.compare("gemm_block_scaled_sm90", check, MISTAKES["gemm_block_scaled_sm90 in bands"])

    def test_block_scaled_in_parts(self):
        defines = dict(OUT="f32", WARPGROUPS=1, STAGES=2, BLOCKS=3, SPLITS=2)
        check = lambda path: self.scaled((20, 136, 528), defines, path)
        self.compare("gemm_block_scaled_sm90", check, MISTAKES["gemm_block_scaled_sm90 in parts"])

    def test_sparse(self):
        defines = dict(TILE_N=64, STAGES=4, GROUP=3)
        self.compare("gemm_sparse_sm90", lambda path: self.sparse("f16", (272, 72, 384), defines, path))


if __name__ == "__main__":
    unittest.main(verbosity=1)
