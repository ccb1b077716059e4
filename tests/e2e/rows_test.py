#!/usr/bin/env python3
"""Every row of the instruction table from its program to its result, without a GPU.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/rows_test.py

tests/gpu/rows.py makes a program for each row, tile request and suffix. Here the simulator runs them for every
architecture, and where nvcc is on the PATH it compiles what kiln emits for each row on the oldest architecture
that has it. Of a warpgroup's rows that differ in N alone, some are taken; KILN_SWEEP=all takes all.
"""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests" / "gpu" / "rows.py"
KILN = os.environ.get("KILN_RELEASE") or os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))
TIMEOUT_S = 600
ALL = os.environ.get("KILN_SWEEP", "") == "all"
TIMEOUT_ALL_S = 3600
OF_WARPS = ["m8n", "m16n"]
OF_WARPGROUPS = 2 * (12 * 32 + 4 * 18)
# A warpgroup has 16 combinations of types, dense and sparse, in each of these widths: the narrowest, one that no
# swizzle fits where the contraction goes down the rows, one after which integers take steps of 16, the widest.
SOME_N = [f"m64n{n}k" for n in (8, 24, 48, 256)]
# Rows by the oldest architecture that has them; a text is part of a row's name.
NEWEST = {
    "sm_80": ["f16.f16", "f32.f16", "bf16", "tf32", ".s8", ".u8", "m8n8k4.f64"],
    "sm_89": [".e4m3", ".e5m2"],
    "sm_90a": ["m16n8k4.f64", "m16n8k8.f64", "m16n8k16.f64", *(["m64"] if ALL else SOME_N[:2])],
}


def sweep(*arguments):
    done = subprocess.run(
        [sys.executable, str(ROWS), *arguments],
        env={**os.environ, "KILN": KILN},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_ALL_S if ALL else TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


class Rows(unittest.TestCase):
    def expect_rows(self, count, *arguments):
        code, text = sweep(*arguments)
        self.assertEqual(code, 0, text[-3000:])
        self.assertEqual(text.splitlines()[-1], f"rows passed {count}, failed 0")

    def test_each_row_multiplies_in_the_simulator(self):
        for arch, count in (("sm_80", 39), ("sm_86", 39), ("sm_89", 51)):
            with self.subTest(arch):
                self.expect_rows(count, "--on", "sim", "--arch", arch)
        self.expect_rows(54, "--on", "sim", "--arch", "sm_90a", *OF_WARPS)

    def test_each_row_of_a_warpgroup_multiplies_in_the_simulator(self):
        count = OF_WARPGROUPS if ALL else 2 * 16 * len(SOME_N)
        self.expect_rows(count, "--on", "sim", "--arch", "sm_90a", *(["m64"] if ALL else SOME_N))

    def test_a_wrong_program_is_noticed(self):
        """The sweep over all rows fails for programs that leave out the last step of K."""
        wrong = ROWS.read_text(encoding="utf-8").replace("foreach k in [cdiv(K, {k})]", "foreach k in [K / {k}]")
        self.assertNotEqual(wrong, ROWS.read_text(encoding="utf-8"))
        script = "import sys; exec(compile(sys.stdin.read(), 'rows.py', 'exec'), {'__name__': '__main__', '__file__': %r})"
        done = subprocess.run(
            [sys.executable, "-c", script % str(ROWS), "--on", "sim", "m16n8k4.f32.tf32"],
            input=wrong,
            env={**os.environ, "KILN": KILN},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "rows passed 0, failed 1")

    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_what_is_emitted_for_each_row_compiles(self):
        for (arch, texts), count in zip(NEWEST.items(), (39, 12, 3 + (OF_WARPGROUPS if ALL else 2 * 32))):
            with self.subTest(arch):
                self.expect_rows(count, "--on", "nvcc", "--arch", arch, *texts)


if __name__ == "__main__":
    unittest.main()
