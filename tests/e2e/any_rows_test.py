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


def run(kernel, shape, defines, *options, arch="sm_90a"):
    """The report, with the exit code and what was said."""
    argv = [KILN, "run", str(ROOT / "kernels" / f"{kernel}.co"), "--arch", arch, "--on", "sim", "--json"]
    argv += ["--shape", ",".join(f"{name}={size}" for name, size in shape.items())]
    argv += [f"-D{name}={value}" for name, value in defines.items()] + list(options)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
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


if __name__ == "__main__":
    unittest.main()
