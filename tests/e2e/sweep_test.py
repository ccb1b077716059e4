#!/usr/bin/env python3
"""Runs kernels at many shapes on the simulator and holds every result against an einsum.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/sweep_test.py

The matrix product is run for every M, N and K in 1, 5, ... 33, with three fills, with one warp and
with four warps per block. A run must find nothing: no element outside its bound, no race, exit code
0. Kernels that are wrong on purpose show that the sweep would notice. KILN_RELEASE runs all shapes;
KILN, which has sanitizers and is slower, every SAMPLE-th. With KILN alone it runs all of them if it
is fast (SLOW_S for one small run). KILN_SWEEP=all or KILN_SWEEP=sample decides for both.

The three kernels of chapter 4 are run for every M, N and K in EDGES, those around the edges of their
tiles: all of them, some minutes a kernel, with KILN_SWEEP=all; else a tenth, the same in each run.
"""

import itertools
import json
import os
import random
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import batch  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SEEDS = ROOT.parent / "shared" / "seeds"
EXAMPLE = EXAMPLES / "matmul_wmma.co"
ORIGINAL = SEEDS / "ch4_wmma.co"
KERNELS = Path(__file__).resolve().parent / "testdata"
KILN = os.environ.get("KILN", str(ROOT / "build" / "release" / "bin" / "kiln"))
RELEASE = os.environ.get("KILN_RELEASE", "")

EXTENTS = range(1, 34, 4)
EDGES = (1, 7, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129)
EDGES_SEED = 4
FILLS = ("normal", "integers", "adversarial")
PRODUCT = "output[m,n] = lhs[m,k] * rhs[n,k]"
FOUR_WARPS = [f"-DTILE_{axis}=32" for axis in "MNK"]
COUNTS = ("races", "deadlocks", "uninitialised", "out_of_bounds")
JOBS = os.cpu_count() or 2
SLOW_S = 0.03
SAMPLE = 10
TIMEOUT_S = 60


def command(kernel, shape, options=(), arch="sm_80"):
    sizes = ",".join(f"{name}={size}" for name, size in shape.items())
    argv = [KILN, "run", str(kernel), "--arch", arch, "--on", "sim", "--json"]
    return argv + ["--shape", sizes, *options]


def run(argv):
    done = batch.run(argv, ROOT, os.environ, TIMEOUT_S)
    return done.returncode, done.stdout, done.stderr


def tearDownModule():
    said = batch.finish()
    assert not said, said


def mistake_of(argv, output):
    """'' when the run found nothing wrong with `output`, else what it found."""
    code, out, err = run(argv)
    if code != 0:
        return f"exit {code}: {' '.join(argv)}\n{err}"
    report = json.loads(out)
    compared = {row["name"]: row for row in report["outputs"]}
    if output not in compared:
        return f"no output `{output}`: {' '.join(argv)}"
    found = {name: report[name] for name in COUNTS if report[name] != 0}
    found |= {f"outside {name}": row["outside"] for name, row in compared.items() if row["outside"]}
    return f"{found}: {' '.join(argv)}" if found else ""


def is_slow():
    """Whether the binary has no speed to spare: the best of three small runs counts."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run(command(EXAMPLE, dict(M=17, N=17, K=17)))
        seconds.append(time.perf_counter() - start)
    return min(seconds) > SLOW_S


def sampled(cases):
    """Every SAMPLE-th case, the first and the last included; the stride meets every extent."""
    return cases[::SAMPLE] + ([] if len(cases) % SAMPLE == 1 else cases[-1:])


def plan():
    """Pairs of a binary and whether it gets a sample of the cases only."""
    choice = os.environ.get("KILN_SWEEP", "")
    if choice:
        return [(kiln, choice == "sample") for kiln in (KILN, RELEASE) if kiln]
    return [(KILN, True), (RELEASE, False)] if RELEASE else [(KILN, is_slow())]


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = plan()

    def sweep(self, what, cases, output):
        for kiln, sample in self.plan:
            with self.subTest(kiln):
                self.sweep_binary(what, [[kiln, *argv[1:]] for argv in cases], output, sample)

    def sweep_binary(self, what, cases, output, sample):
        chosen = sampled(cases) if sample else cases
        with ThreadPoolExecutor(JOBS) as pool:
            mistakes = [m for m in pool.map(lambda argv: mistake_of(argv, output), chosen) if m]
        part = "a sample" if sample else "all"
        counts = f"{len(chosen)} of {len(cases)} runs ({part}), {len(mistakes)} wrong"
        print(f"{what}: {counts}", flush=True)
        self.assertFalse(mistakes, "\n".join(mistakes[:3]))

    def matmul(self, what, kernel, defines=()):
        shapes = [dict(zip("MNK", sizes)) for sizes in itertools.product(EXTENTS, repeat=3)]
        cases = [
            command(kernel, shape, [*defines, "--fill", fill, "--expect", PRODUCT])
            for shape, fill in itertools.product(shapes, FILLS)
        ]
        self.sweep(what, cases, "output")

    def test_example_with_one_warp(self):
        self.matmul("matmul_wmma, one warp", EXAMPLE)

    def test_example_with_four_warps(self):
        self.matmul("matmul_wmma, four warps", EXAMPLE, FOUR_WARPS)

    @unittest.skipUnless(ORIGINAL.exists(), f"{ORIGINAL.name} is not beside this repository")
    def test_original_text_of_the_kernel(self):
        self.matmul("ch4_wmma, one warp", ORIGINAL)

    def test_example_under_other_orders_of_execution(self):
        shapes = [dict(zip("MNK", sizes)) for sizes in itertools.product((1, 17, 33), repeat=3)]
        options = ["--schedules", "8", "--expect", PRODUCT]
        cases = [
            command(EXAMPLE, shape, [*defines, *options])
            for shape, defines in itertools.product(shapes, ([], FOUR_WARPS))
        ]
        self.sweep("matmul_wmma, 8 schedules", cases, "output")

    def elementwise(self, kernel, output, options=(), **scalars):
        cases = [
            command(KERNELS / kernel, dict(N=size, **scalars), ["--fill", fill, *options])
            for size, fill in itertools.product(range(1, 200, 3), FILLS)
        ]
        self.sweep(kernel, cases, output)

    def test_axpy(self):
        self.elementwise("axpy.co", "y", a=-2.5)

    def test_reverse_through_shared_memory(self):
        self.elementwise("reverse_through_shared_memory.co", "z")

    def test_returned_buffer(self):
        options = ["--expect", "y[i] = 2 * x[i]"]
        self.elementwise("returned_buffer_matches_an_einsum.co", "y", options)

    def test_host_reference(self):
        options = ["--expect", "y[i] = 2 * x[i]"]
        self.elementwise("host_reference_matches_an_einsum.co", "y", options)


class Chapter4(unittest.TestCase):
    """Every M, N and K in EDGES, or a tenth of them, each with one fill."""

    def sweep(self, kernel, arch):
        chance = random.Random(EDGES_SEED)
        cases = []
        for sizes in itertools.product(EDGES, repeat=3):
            options = ["--fill", chance.choice(FILLS), "--expect", PRODUCT]
            cases.append([RELEASE or KILN, *command(kernel, dict(zip("MNK", sizes)), options, arch)[1:]])
        complete = os.environ.get("KILN_SWEEP", "") == "all"
        chosen = cases if complete else chance.sample(cases, len(cases) // SAMPLE)
        start = time.perf_counter()
        with ThreadPoolExecutor(JOBS) as pool:
            mistakes = [m for m in pool.map(lambda argv: mistake_of(argv, "output"), chosen) if m]
        took = f"{time.perf_counter() - start:.0f} s"
        print(f"{kernel.name}: {len(chosen)} of {len(cases)} shapes, {len(mistakes)} wrong, {took}", flush=True)
        self.assertFalse(mistakes, "\n".join(mistakes[:3]))

    def test_one_warp(self):
        self.sweep(EXAMPLE, "sm_80")

    def test_one_warpgroup(self):
        self.sweep(EXAMPLES / "matmul_wgmma.co", "sm_90a")

    def test_two_warpgroups(self):
        self.sweep(EXAMPLES / "matmul_wgmma_2group.co", "sm_90a")

    @unittest.skipUnless(SEEDS.exists(), "the original kernels are not beside this repository")
    def test_original_texts(self):
        for name, arch in (("wmma", "sm_80"), ("wgmma", "sm_90a"), ("wgmma_2group", "sm_90a")):
            with self.subTest(name):
                self.sweep(SEEDS / f"ch4_{name}.co", arch)


class NegativeControl(unittest.TestCase):
    """What the sweep would look like if something were wrong."""

    def outside(self, argv):
        code, out, err = run(argv)
        self.assertEqual(code, 1, err)
        self.assertIn("error[result-outside]", err)
        return json.loads(out)["outputs"][0]["outside"]

    def test_wrong_einsum_is_reported(self):
        shape = dict(M=33, N=17, K=33)
        for wrong in ("2 * lhs[m,k] * rhs[n,k]", "lhs[m,k]", "rhs[n,k]"):
            argv = command(EXAMPLE, shape, ["--expect", f"output[m,n] = {wrong}"])
            with self.subTest(wrong):
                self.assertGreater(self.outside(argv), 0)

    def test_transposed_operand_is_reported(self):
        options = ["--fill", "integers", "--expect", "output[m,n] = lhs[m,k] * rhs[k,n]"]
        self.assertGreater(self.outside(command(EXAMPLE, dict(M=16, N=16, K=16), options)), 0)

    def test_short_k_loop_is_found_by_the_einsum_only(self):
        kernel = KERNELS / "fail_k_loop_as_short_as_a_parameter_says.co"
        shape = dict(M=20, N=20, K=40, steps=2)
        self.assertEqual(mistake_of(command(kernel, shape), "output"), "")
        for fill in FILLS:
            options = ["--fill", fill, "--expect", PRODUCT]
            with self.subTest(fill):
                self.assertGreater(self.outside(command(kernel, shape, options)), 0)

    def test_missing_barrier_is_found(self):
        kernel = ROOT / "src/sim/testdata/fail_race_between_write_and_read_without_a_barrier.co"
        code, out, err = run([KILN, "run", str(kernel), "--arch", "sm_80", "--on", "sim", "--json"])
        self.assertEqual(code, 1)
        self.assertGreater(json.loads(out)["races"], 0)
        self.assertIn("error[race]", err)

    def test_tensors_larger_than_the_memory_are_refused(self):
        kernel = KERNELS / "elementwise_kernel_matches_an_einsum.co"
        code, _, err = run(command(kernel, dict(M=500_000, N=500_000)))
        self.assertEqual(code, 3)
        self.assertIn("error[tensors-too-large]", err)


if __name__ == "__main__":
    unittest.main(verbosity=1)
