#!/usr/bin/env python3
"""The library's kernel whose warpgroups take tiles in turns, and one mistake each.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/pingpong_kernels_test.py

As in kernels_test.py. A formula's bound is too wide for 8-bit floats that are no integers.
"""

import itertools
import unittest
from dataclasses import replace

import kernels_test as kernels
from kernels_test import BYTES, FILLS, ORDERS, PERSISTENT, PRODUCT, RING, TYPES, Case, depth_of, shapes, units_of, up

KERNEL = "gemm_pingpong_sm90"
ROWS = 128  # of a tile
# (columns, stages, parts of the result)
TILES = ((64, 4, 1), (96, 2, 2), (128, 3, 1), (176, 2, 1), (208, 3, 2))


def cases():
    tiles = [(tile, TYPES[0]) for tile in TILES] + list(zip(itertools.cycle(TILES[1:4]), TYPES[1:]))
    for (tile_n, stages, parts), (dtype, out, acc) in tiles:
        defines = dict(DTYPE=dtype, OUT=out, ACC=acc, TILE_N=tile_n, STAGES=stages, PARTS=parts)
        sizes = shapes(ROWS, tile_n, depth_of(dtype), stages, units_of(dtype, out))
        fills = itertools.cycle(FILLS)
        for shape, more in zip(sizes, itertools.cycle((dict(BLOCKS=1), dict(BLOCKS=3, GROUP=2)))):
            fill = "integers" if BYTES[dtype] == 1 else next(fills)
            options = ("--expect", PRODUCT, "--fill", fill)
            yield Case(KERNEL, shape, defines | more, options, BYTES[out] != 2)


def turned_cases():
    """Operands of 16 bits along m or n."""
    for (a_along, b_along, product), (tile_n, stages, parts) in itertools.product(ORDERS, ((128, 2, 1), (64, 3, 2))):
        defines = dict(TILE_N=tile_n, STAGES=stages, PARTS=parts, BLOCKS=3, A_ALONG_K=a_along, B_ALONG_K=b_along)
        for shape in shapes(ROWS, tile_n, 64, stages, (8, 8)):
            yield Case(KERNEL, shape | dict(M=up(shape["M"], 8)), defines, ("--expect", product))


def epilogue_cases():
    defines = dict(TILE_N=64, STAGES=2, BLOCKS=2, ALPHA=1, BETA=1, BIAS=1, RESIDUAL=1)
    scaled = "alpha * sum[k](a[m,k] * b[n,k]) + beta * c[m,n] + bias[n]"
    ways = (dict(RELU=1), f"max(0, {scaled})"), (dict(PARTS=2), scaled)
    for out, (more, formula) in itertools.product(("bf16", "f32"), ways):
        shape = dict(M=330, N=136, K=200, LDC=136, LDR=136, alpha=2, beta=-1)
        expected = ("--expect", f"c[m,n] = {formula} + residual[m,n]")
        yield Case(KERNEL, shape, defines | dict(OUT=out) | more, expected, True)


class Kernels(unittest.TestCase):
    sweep = kernels.Kernels.sweep

    def test_pingpong(self):
        self.sweep(KERNEL, cases())

    def test_turned(self):
        self.sweep("turned", kernels.with_fills(turned_cases()))

    def test_epilogues(self):
        self.sweep("epilogues", kernels.with_fills(epilogue_cases()))

    def test_other_orders_of_execution(self):
        self.sweep("8 schedules", list(cases())[1::13], ("--schedules", "8"))


# What is changed, and what is reported of it.
MISTAKES = (
    ("wait full.at(first);", "", "race"),
    ("wait full.at(at);", "", "race"),
    RING[1],
    PERSISTENT[1],
    ("trigger empty.at(at - 1);", "", "deadlock"),
    ("trigger empty.at(first + steps - 1);", "", "deadlock"),
    ("mma.wait<1>;", "mma.wait<2>;", "race"),
    ("trigger turn[(w + 1) % 2];", "", "deadlock"),
    ("if (w == 1) trigger turn[0];", "", "deadlock"),
    ("round = 2 * pair + w;", "round = 2 * pair;", "axis-unread"),
    ("wait done[round % 2];", "", "uninitialised-read"),
    ("trigger left[round % 2];", "", "deadlock"),
    ("tile_m * BANDS + part / PARTS", "tile_m * BANDS", "unwritten"),
    ("b_s[current], band);", "b_s[current], 0);", "result-outside"),
    ("tile < tiles", "tile + 1 < tiles", "unwritten"),
)


class NegativeControl(kernels.Broken):
    def test_mistakes(self):
        shape, defines = dict(M=330, N=136, K=264), dict(BLOCKS=2, TILE_N=64, STAGES=3, GROUP=2)
        for change in MISTAKES:
            with self.subTest(change):
                case = Case(self.broken(KERNEL, change), shape, defines, ("--expect", PRODUCT))
                code, _, said = kernels.execute(case.argv())
                self.assertEqual(code, 1, said)
                self.assertIn(change[2], said)

    def test_mistakes_of_the_epilogue(self):
        for case in epilogue_cases():
            change = ("row + band * ROWS", "row", "")
            code, _, said = kernels.execute(replace(case, kernel=self.broken(KERNEL, change)).argv())
            self.assertEqual(code, 1, said)


if __name__ == "__main__":
    unittest.main(verbosity=1)
