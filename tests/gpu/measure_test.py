#!/usr/bin/env python3
"""`kernel.bench` and `kernel.tune` on a GPU.

    PYTHONPATH=build/release/python tests/gpu/measure_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90. What was measured is printed at the end.
"""

import sys
import unittest
from pathlib import Path

import torch

import kiln
from torch_test import AXPY, compiled, ones, randoms, softmax_kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOUND = []

STEPS = """template <[[tune(1, 4, 16)]] int EACH = 1, [[tune(32, 128, 2048)]] int THREADS = 128>
__co__ void scale(global f32 [N] x, f32 factor, global f32 [N] y) {
  parallel b by [cdiv(N, THREADS * EACH)], t by [THREADS] : thread {
    foreach i in [EACH] {
      if ((b * EACH + i) * THREADS + t < N) {
        y.at((b * EACH + i) * THREADS + t) = x.at((b * EACH + i) * THREADS + t) * factor;
      }
    }
  }
}
"""


class BenchTest(unittest.TestCase):
    def test_beside_pytorch(self):
        x, y = randoms(8192, 256), torch.zeros(8192, 256, dtype=torch.bfloat16, device="cuda")
        found = softmax_kernel().bench(x, y, baseline=lambda x, y: torch.softmax(x, 1))
        FOUND.append(("softmax of [8192, 256]", found))
        self.assertTrue(found.by_graphs)
        self.assertEqual(len(found.seconds), 9)
        self.assertGreater(found.median, 1e-6)
        self.assertLess(found.median, 1e-3)
        self.assertEqual(y.abs().sum().item(), 0)

    def test_a_function_against_itself(self):
        axpy = compiled(AXPY)
        x, y = ones(1 << 20), ones(1 << 20)
        other = axpy.prepare(x, 1.0, y)
        found = axpy.bench(x, 1.0, y, baseline=lambda x, a, y: other(x, a, y), check=False)
        FOUND.append(("axpy of 2^20 against itself", found))
        self.assertLess(abs(found.ratio - 1), 0.05)

    def test_a_function_that_no_graph_takes(self):
        axpy = compiled(AXPY)
        x, y = ones(1 << 22), ones(1 << 22)
        found = axpy.bench(x, 1.0, y, baseline=lambda x, a, y: (y + a * x.sum().item() / x.numel() * x,), repeats=3)
        self.assertFalse(found.by_graphs)
        self.assertGreater(found.ratio, 1)
        torch.randn(4, device="cuda")
        with self.assertRaisesRegex(AssertionError, "`y` differs"):
            axpy.bench(x, 1.0, y, baseline=lambda x, a, y: y)


class TuneTest(unittest.TestCase):
    def test_what_the_template_names_is_tried(self):
        x, y = randoms(1 << 22, dtype=torch.float32), ones(1 << 22)
        kernel = kiln.compile(source=STEPS).scale
        found = kernel.tune(x, 2.0, y, reference=lambda x, factor, y: x * factor)
        FOUND.append(("tune", found))
        self.assertEqual(len(found.candidates), 7)
        self.assertEqual(len(found.dropped), 3)  # 2048 threads
        self.assertLessEqual(found.candidates[0].seconds, found.candidates[1].seconds)
        found.best(x, 3.0, y)
        torch.testing.assert_close(y, x * 3)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    for name, each in FOUND:
        print(f"\n{name}:\n{each}")
    sys.exit(0 if result.wasSuccessful() else 1)
