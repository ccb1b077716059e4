#!/usr/bin/env python3
"""kiln.torch and kiln.testing on tensors in this CPU's memory, where operators compute by the reference interpreter.

    PYTHONPATH=build/release/python tests/python/operator_test.py

What needs PyTorch is skipped without it. On a GPU the same is tests/gpu/torch_test.py.
"""

import unittest
from pathlib import Path

import numpy as np

import kiln
import kiln.testing

try:
    import torch

    import kiln.torch
except ImportError:
    torch = None

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = ROOT / "examples" / "softmax.co"

AXPY = """__co__ void axpy(global f32 [N] x, f32 a, global f32 [N] y) {
  parallel b by [cdiv(N, 32)], t by [32] : thread {
    if (b * 32 + t < N) { y.at(b * 32 + t) = y.at(b * 32 + t) + x.at(b * 32 + t) * a; }
  }
}
"""
TWICE = """__co__ auto twice(f32 [N] x) {
  f32 [N] y;
  parallel i by [N] : block {
    parallel t by [1] : thread { y.at(i) = x.at(i) * 2.0f; }
  }
  return y;
}
"""
HALVES = """__co__ void halves(global f32 [N] x, global f32 [cdiv(N, 2)] y, global f32 [P] z) {
  parallel i by [cdiv(N, 2)] : block {
    parallel t by [1] : thread { y.at(i) = x.at(2 * i); }
  }
  parallel i by [P] : block {
    parallel t by [1] : thread { z.at(i) = 1.0f; }
  }
}
"""


def compiled(source):
    return kiln.compile(source=source, arch="sm_90a").kernels[0]


class CheckTest(unittest.TestCase):
    def test_a_kernel_is_compared_with_a_function(self):
        x, y = np.arange(40, dtype=np.float32), np.ones(40, np.float32)
        kiln.testing.check(compiled(AXPY), (x, 2.0, y), reference=lambda x, a, y: y + a * x)
        np.testing.assert_array_equal(y, 1 + 2 * x)
        kiln.testing.check(compiled(AXPY), {"x": x, "a": 3.0, "y": y})
        kiln.testing.check(compiled(TWICE), [x], reference=lambda x: 2 * x)

    def test_a_difference_is_told(self):
        x, y = np.arange(40, dtype=np.float32), np.ones(40, np.float32)
        with self.assertRaisesRegex(AssertionError, r"`y` differs in 1 of 40 elements, first at \[39\]: 79, the ref"):
            kiln.testing.check(compiled(AXPY), (x, 2.0, y), reference=lambda x, a, y: y + a * x + (x == 39))
        with self.assertRaisesRegex(AssertionError, r"shape \[40\], and the reference has \[39\]"):
            kiln.testing.check(compiled(TWICE), [x], reference=lambda x: x[1:])
        with self.assertRaisesRegex(AssertionError, "1 outputs, and the reference gives 2"):
            kiln.testing.check(compiled(TWICE), [x], reference=lambda x: (x, x))


@unittest.skipIf(torch is None, "no PyTorch")
class OperatorTest(unittest.TestCase):
    def test_an_operator_with_a_gradient(self):
        kernel = kiln.compile(SOFTMAX, arch="sm_90a", N=256).softmax

        def keep(ctx, inputs, output):
            ctx.save_for_backward(output)

        def backward(ctx, slope):
            (y,) = ctx.saved_tensors
            return (slope - (slope * y).sum(1, keepdim=True)) * y

        softmax = kiln.torch.register("kiln_test::softmax", kernel, backward=backward, setup_context=keep)
        x = torch.randn(10, 256, dtype=torch.bfloat16, requires_grad=True)
        y = softmax(x)
        torch.testing.assert_close(y.float(), torch.softmax(x.float(), 1), rtol=2**-7, atol=2**-10)
        y.sum().backward()
        self.assertEqual(x.grad.shape, x.shape)
        results = torch.library.opcheck(torch.ops.kiln_test.softmax, (x,))
        self.assertEqual(set(results.values()), {"SUCCESS"})
        compiled_op = torch.compile(lambda x: softmax(x) * 2, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled_op(x), 2 * y)

    def test_what_is_read_and_written_changes(self):
        axpy = kiln.torch.register("kiln_test::axpy", compiled(AXPY))
        y = torch.ones(5)
        self.assertIsNone(axpy(torch.ones(5), 3.0, y))
        self.assertEqual(y.tolist(), [4] * 5)
        results = torch.library.opcheck(torch.ops.kiln_test.axpy, (torch.ones(5), 3.0, torch.ones(5)))
        self.assertEqual(set(results.values()), {"SUCCESS"})

    def test_what_is_returned(self):
        twice = kiln.torch.register("kiln_test::twice", compiled(TWICE))
        self.assertEqual(twice(torch.ones(5)).tolist(), [2] * 5)
        results = torch.library.opcheck(torch.ops.kiln_test.twice, (torch.ones(5),))
        self.assertEqual(set(results.values()), {"SUCCESS"})

    def test_shapes_come_from_dimensions_or_functions(self):
        halves = kiln.torch.register("kiln_test::halves", compiled(HALVES), outputs=["z", "y"])
        z, y = halves(torch.arange(7.0), P=3)
        self.assertEqual((z.tolist(), y.tolist()), ([1] * 3, [0, 2, 4, 6]))
        shapes = {"y": lambda x, P: [(x.shape[0] + 1) // 2], "z": lambda x, P: [P]}
        again = kiln.torch.register("kiln_test::halves_again", compiled(HALVES), outputs=shapes)
        y, z = again(torch.arange(6.0), P=2)
        self.assertEqual((z.tolist(), y.tolist()), ([1] * 2, [0, 2, 4]))
        with self.assertRaisesRegex(ValueError, "writes no parameter `x`; it writes `y`, `z`"):
            kiln.torch.register("kiln_test::wrong", compiled(HALVES), outputs="x")


if __name__ == "__main__":
    unittest.main()
