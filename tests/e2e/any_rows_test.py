#!/usr/bin/env python3
"""Kernels of the library for rows that begin anywhere, in the simulator: prime extents, gaps, all fills.

    KILN=build/release/bin/kiln tests/e2e/any_rows_test.py [CASE]...

A run must find nothing: no element outside its bound, no race, deadlock, uninitialised or out-of-bounds
access, and every element of C written.
"""

import json
import os
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN_RELEASE") or os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
FILLS = ("normal", "integers", "adversarial")
COUNTS = ("races", "deadlocks", "uninitialised", "out_of_bounds")
PRODUCT = "c[m,n] = a[m,k] * b[n,k]"
TIMEOUT_S = 300


def execute(kernel, shape, defines, *options, arch):
    argv = [KILN, "run", str(ROOT / "kernels" / f"{kernel}.co"), "--arch", arch, "--on", "sim"]
    argv += ["--shape", ",".join(f"{name}={size}" for name, size in shape.items())]
    argv += [f"-D{name}={value}" for name, value in defines.items()] + list(options)
    return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def run(kernel, shape, defines, *options, arch="sm_90a"):
    """The exit code, the report and what was said."""
    done = execute(kernel, shape, defines, "--json", *options, arch=arch)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


class Ragged(unittest.TestCase):
    SMALL = {"BLOCKS": 3, "WARPGROUPS": 1, "TILE_N": 64, "STAGES": 2}

    def expect_clean(self, shape, defines, *options):
        code, report, said = run("gemm_ragged_sm90", shape, self.SMALL | defines, *options)
        self.assertEqual(code, 0, said)
        for name in COUNTS:
            self.assertEqual(report[name], 0, said)
        return said

    def test_every_fill_of_prime_extents(self):
        for fill in FILLS:
            for m, n, k in ((1, 1, 1), (67, 131, 127), (113, 61, 257)):
                line = 64 * (-(-k // 64))
                shape = {"M": m, "N": n, "K": k, "LDA": k, "LDB": k, "LDC": n, "KP": line}
                said = self.expect_clean(shape, {}, "--fill", fill, "--expect", PRODUCT)
                self.assertNotIn("output-unwritten", said)

    def test_gaps_between_rows_are_left_alone(self):
        shape = {"M": 67, "N": 61, "K": 127, "LDA": 131, "LDB": 129, "LDC": 63, "KP": 128}
        said = self.expect_clean(shape, {})
        # The gaps of C are all that nobody writes.
        self.assertIn(f"{67 * 2} of {67 * 63} elements never written", said)

    def test_an_epilogue_knows_the_gaps(self):
        parts = {name: 1 for name in ("ALPHA", "BETA", "BIAS", "RESIDUAL", "GELU")}
        for pad_c, n in ((0, 64), (1, 61)):
            shape = {"M": 67, "N": n, "K": 127, "LDA": 131, "LDB": 129, "LDC": n + 8, "LDR": n + 3, "KP": 128}
            said = self.expect_clean(shape | {"alpha": 2, "beta": -1}, parts | {"PAD_C": pad_c})
            self.assertIn(f"{67 * 8} of {67 * (n + 8)} elements never written", said)

    def test_only_what_is_not_aligned_is_copied(self):
        whole = {"M": 67, "N": 61, "K": 128, "LDA": 128, "LDB": 128, "LDC": 61, "KP": 128}
        for a in (0, 1):
            for b in (0, 1):
                shape = {name: size for name, size in whole.items()}
                if not a:
                    del shape["LDA"]
                if not b:
                    del shape["LDB"]
                if not a and not b:
                    del shape["KP"]
                self.expect_clean(shape, {"PAD_A": a, "PAD_B": b})
        aligned = {"M": 67, "N": 72, "K": 127, "LDA": 127, "LDB": 127, "KP": 128}
        self.expect_clean(aligned, {"PAD_C": 0})

    def test_other_types(self):
        for dtype, out, acc, size in (
            ("f16", "f32", "f32", 2),
            ("f8_e4m3", "bf16", "f32", 1),
            ("s8", "s32", "s32", 1),
            ("tf32", "f32", "f32", 4),
        ):
            line = 128 // size
            shape = {"M": 67, "N": 61, "K": 101, "LDA": 101, "LDB": 103, "LDC": 61, "KP": -(-101 // line) * line}
            self.expect_clean(shape, {"DTYPE": dtype, "OUT": out, "ACC": acc})

    def test_padded_rows_that_are_too_short_are_noticed(self):
        shape = {"M": 67, "N": 61, "K": 127, "LDA": 127, "LDB": 127, "LDC": 61, "KP": 64}
        code, _, said = run("gemm_ragged_sm90", shape, self.SMALL, "--expect", PRODUCT)
        self.assertEqual(code, 1, said)


class OfWarps(unittest.TestCase):
    """gemm_sm80, which copies nothing first."""

    def report(self, arch, shape, defines, *options):
        m, n, k, gap = shape
        sizes = {"M": m, "N": n, "K": k, "LDA": k + gap, "LDB": k + gap, "LDC": n + gap}
        code, report, said = run("gemm_sm80", sizes, defines, *options, arch=arch)
        self.assertEqual(code, 0, said)
        for name in COUNTS:
            self.assertEqual(report[name], 0, said)
        return report

    def test_every_fill_of_prime_extents(self):
        for fill in FILLS:
            for shape in ((1, 1, 1, 0), (131, 67, 127, 0), (61, 257, 65, 0)):
                self.report("sm_80", shape, {}, "--fill", fill, "--expect", PRODUCT, "--schedules", "3")

    def test_gaps_between_rows(self):
        self.report("sm_80", (67, 131, 100, 3), {})

    def test_types_and_tiles_on_each_architecture(self):
        for arch, defines in (
            ("sm_80", {"DTYPE": "bf16", "WARPS_M": 1, "WARPS_N": 4}),
            ("sm_86", {"DTYPE": "f16", "OUT": "f32", "WARPS_M": 2, "WARPS_N": 2}),
            ("sm_86", {"DTYPE": "tf32", "OUT": "f32", "WARPS_M": 1, "WARPS_N": 4}),
            ("sm_89", {"DTYPE": "f8_e4m3", "OUT": "bf16"}),
            ("sm_90a", {"DTYPE": "s8", "OUT": "s32", "ACC": "s32", "WARPS_N": 2}),
        ):
            self.report(arch, (67, 131, 199, 0), defines, "--expect", PRODUCT)

    def test_aligned_rows_are_copied_asynchronously_without_bank_conflicts(self):
        shape = {"M": 128, "N": 128, "K": 256, "LDA": 256, "LDB": 256, "LDC": 128}
        done = execute("gemm_sm80", shape, {}, arch="sm_80")
        self.assertIn(" 0 bank conflicts", done.stdout)
        # 16 bytes a lane: 2 operands of 128 x 256 elements.
        self.assertIn(f" {2 * 128 * 256 * 2 // (16 * 32)} cp.async.16", done.stdout)


if __name__ == "__main__":
    unittest.main()
