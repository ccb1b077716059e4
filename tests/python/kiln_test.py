#!/usr/bin/env python3
"""The package `kiln`: programs compiled and simulated on arrays of NumPy.

    PYTHONPATH=build/release/python tests/python/kiln_test.py [CASE]...
"""

import copy
import pickle
import threading
import unittest
from pathlib import Path

import numpy as np

import kiln

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = ROOT / "examples" / "softmax.co"

AXPY = """__co__ void axpy(global f32 [N] x, f32 a, global f32 [N] y) {
  parallel b by [cdiv(N, 32)], t by [32] : thread {
    if (b * 32 + t < N) { y.at(b * 32 + t) = y.at(b * 32 + t) + x.at(b * 32 + t) * a; }
  }
}
"""
RACE = """__co__ void turn(global f32 [64] x, global f32 [64] y) {
  parallel b by [1] : block {
    shared f32 [64] s;
    parallel t by [64] : thread {
      s.at(t) = x.at(t);
      y.at(t) = s.at(63 - t);
    }
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


def softmax_of(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def axpy():
    return kiln.compile(source=AXPY, arch="sm_90a")


TUNED = """template <[[tune(32, 64)]] int STEP = 32, int WIDE = 1>
__co__ void scale(global f32 [M, N] x, f32 factor, global f32 [M, N] y) {
  parallel i by [M] : block {
    parallel t by [STEP] : thread {
      foreach j in [cdiv(N, STEP)] {
        if (j * STEP + t < N) { y.at(i, j * STEP + t) = x.at(i, j * STEP + t) * factor; }
      }
    }
  }
}
"""


class ExplainTest(unittest.TestCase):
    def test_arrays_or_numbers_or_nothing_say_the_shape(self):
        softmax = kiln.compile(SOFTMAX, arch="sm_90a", N=256).softmax
        told = softmax.explain(M=100)
        self.assertTrue(str(told).startswith("softmax on sm_90a"))
        self.assertEqual(told.data["shape"], {"M": 100})
        self.assertFalse(told.data["shape_assumed"])
        self.assertTrue(softmax.explain().data["shape_assumed"])
        x = np.zeros((100, 256), np.uint16)
        self.assertEqual(str(softmax.explain(x, x)), str(told))
        self.assertIn("<html", told.html)
        self.assertIn("<iframe srcdoc=", told._repr_html_())
        scale = kiln.compile(source=TUNED, arch="sm_90a").scale
        self.assertEqual(scale.explain(M=8, N=64, factor=2.5).data["shape"]["N"], 64)

    def test_what_does_not_fit(self):
        softmax = kiln.compile(SOFTMAX, arch="sm_90a", N=256).softmax
        with self.assertRaisesRegex(TypeError, "no dimension or scalar called `Q`"):
            softmax.explain(Q=3)
        with self.assertRaisesRegex(ValueError, "256"):
            softmax.explain(np.zeros((4, 255), np.uint16), np.zeros((4, 255), np.uint16))
        with self.assertRaisesRegex(ValueError, "out of bounds|out-of-bounds"):
            kiln.compile(source=TUNED.replace("if (j * STEP + t < N)", "if (true)"), arch="sm_90a").scale.explain(M=1, N=33, factor=1)


class NotebookTest(unittest.TestCase):
    def test_a_report_shows_what_was_found_with_its_lines(self):
        x = np.zeros(64, np.float32)
        shown = kiln.compile(source=RACE, arch="sm_90a").turn.simulate(x, x.copy())._repr_html_()
        self.assertIn("2 races, 1 uninitialised read</b>", shown)
        self.assertIn("error[race]", shown)
        self.assertIn("s.at(t) = x.at(t);", shown)
        self.assertIn("&lt;source&gt;:5:7", shown)
        self.assertEqual(shown.count("put `sync.shared;` between them"), 2)
        good = axpy().axpy.simulate(x, 1.0, x.copy())._repr_html_()
        self.assertIn(">ok</b>", good)

    def test_what_a_template_says_is_to_be_tried_is_known(self):
        scale = kiln.compile(source=TUNED, arch="sm_90a").scale
        self.assertEqual(scale.tunables, {"STEP": ("32", "64")})
        self.assertEqual(kiln.compile(source=TUNED, arch="sm_90a", STEP=64).scale.tunables, {})


class CompileTest(unittest.TestCase):
    def test_a_file_with_parameters(self):
        prog = kiln.compile(SOFTMAX, arch="sm_90a", N=256)
        self.assertEqual(prog.arch, "sm_90a")
        self.assertIn("__global__", prog.cuda)
        self.assertEqual([kernel.name for kernel in prog.kernels], ["softmax"])
        self.assertIs(prog.softmax, prog["softmax"])
        self.assertIn("softmax", dir(prog))
        x, y = prog.softmax.parameters
        self.assertEqual((x.name, x.dtype, x.dims, x.is_written), ("x", "bf16", ("M", "256"), False))
        self.assertEqual((y.name, y.is_tensor, y.is_written), ("y", True, True))
        self.assertEqual(prog.softmax.dimensions, ("M",))
        self.assertNotEqual(prog.cuda, kiln.compile(SOFTMAX, arch="sm_90a", defines={"N": 512}).cuda)

    def test_mistakes_are_diagnostics(self):
        text = "__co__ void f(global f32 [M] x) {\n  parallel i by [y.span(0)] : block {}\n}\n"
        with self.assertRaises(kiln.CompileError) as caught:
            kiln.compile("mine.co", source=text, arch="sm_80")
        first = caught.exception.diagnostics[0]
        self.assertEqual((first.id, first.severity), ("unknown-name", "error"))
        self.assertEqual((first.file, first.line, first.column), ("mine.co", 2, 18))
        self.assertIn("error[unknown-name]", str(caught.exception))
        self.assertIn(first.text.strip(), str(caught.exception))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(again.diagnostics, caught.exception.diagnostics)

    def test_what_is_no_program(self):
        with self.assertRaisesRegex(OSError, "nowhere.co"):
            kiln.compile("/nowhere.co")
        with self.assertRaisesRegex(ValueError, "sm_12"):
            kiln.compile(source=AXPY, arch="sm_12")
        with self.assertRaisesRegex(TypeError, "needs a file or source"):
            kiln.compile()
        with self.assertRaisesRegex(TypeError, "`N` is an object of list"):
            kiln.compile(SOFTMAX, N=[1])
        with self.assertRaisesRegex(AttributeError, "no kernel is called `axpi`"):
            axpy().axpi

    def test_threads_compile_and_simulate(self):
        prog, outs = axpy(), []

        def work():
            y = np.zeros(70, np.float32)
            kiln.compile(SOFTMAX, arch="sm_90a")
            prog.axpy.simulate(np.ones(70, np.float32), 2, y)
            outs.append(y)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(outs), 4)
        for y in outs:
            np.testing.assert_array_equal(y, 2)


class SimulateTest(unittest.TestCase):
    def test_arrays_are_read_and_written_in_place(self):
        x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
        report = axpy().axpy.simulate(x, y=y, a=3.0, schedules=4)
        self.assertTrue(report.ok, report)
        self.assertEqual((report.races, report.deadlocks, report.others), (0, 0, 0))
        self.assertIsNone(report.result)
        self.assertIn("axpy on sim (sm_90a), N=100: ", str(report))
        np.testing.assert_array_equal(y, 1 + 3 * np.arange(100))
        axpy().axpy.reference(x, 3, y)
        np.testing.assert_array_equal(y, 1 + 6 * np.arange(100))

    def test_races_are_found(self):
        x = np.ones(64, np.float32)
        report = kiln.compile(source=RACE, arch="sm_90a").turn.simulate(x, x.copy(), schedules=3)
        self.assertFalse(report.ok)
        self.assertGreaterEqual(report.races, 1)
        race = next(each for each in report.diagnostics if each.id == "race")
        self.assertEqual(race.file, "<source>")
        self.assertIn(race.line, (5, 6))
        self.assertIn("error[race]", str(report))
        self.assertEqual(report.races, sum(each.id == "race" for each in report.diagnostics))

    def test_what_a_kernel_returns(self):
        x = np.float32([[1, 2, 3]])[0]
        kernel = kiln.compile(source=TWICE, arch="sm_90a").twice
        self.assertEqual(kernel.result.dims, ("N",))
        result = kernel.simulate(x).result
        np.testing.assert_array_equal(result, np.float32([2, 4, 6]))
        self.assertEqual(result.dtype, np.float32)
        result[0] = 7  # it is the caller's

    def test_bf16_as_bits(self):
        x = np.random.default_rng(1).standard_normal((6, 256)).astype(np.float32)
        bits = (x.view(np.uint32) >> 16).astype(np.uint16)
        y = np.zeros_like(bits)
        report = kiln.compile(SOFTMAX, arch="sm_90a", N=256).softmax.simulate(bits, y)
        self.assertTrue(report.ok, report)
        as_f32 = (bits.astype(np.uint32) << 16).view(np.float32)
        got = (y.astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_allclose(got, softmax_of(as_f32), rtol=2**-7)

    @unittest.skipUnless(ml_dtypes, "needs ml_dtypes")
    def test_bf16_of_ml_dtypes(self):
        x = np.random.default_rng(2).standard_normal((6, 256)).astype(ml_dtypes.bfloat16)
        y = np.zeros_like(x)
        report = kiln.compile(SOFTMAX, arch="sm_90a", N=256).softmax.simulate(x, y)
        self.assertTrue(report.ok, report)
        np.testing.assert_allclose(y.astype(np.float32), softmax_of(x.astype(np.float32)), rtol=2**-7)

    def test_arrays_of_dlpack(self):
        class Other:
            """An array that only DLPack knows."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **how):
                return self.array.__dlpack__(**how)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        y = np.zeros(40, np.float32)
        report = axpy().axpy.simulate(Other(np.ones(40, np.float32)), 5, Other(y))
        self.assertTrue(report.ok, report)
        np.testing.assert_array_equal(y, 5)

    def test_arguments_that_do_not_fit(self):
        kernel = axpy().axpy
        x, y = np.ones(100, np.float32), np.ones(100, np.float32)
        frozen = y.copy()
        frozen.flags.writeable = False
        for kind, message, arguments, named in [
            (ValueError, "`N` is 100 by `x` and 90 by `y`", (x, 1, y[:90].copy()), {}),
            (ValueError, "`x` has shape \\[10, 10\\], parameter `x` is \\[N\\]", (x.reshape(10, 10), 1, y), {}),
            (TypeError, "`y` holds s32 .*parameter `y` is f32", (x, 1, y.astype(np.int32)), {}),
            (TypeError, "parameter `y` of kernel `axpy` has no value", (x, 1), {}),
            (TypeError, "parameter `a` of kernel `axpy` has no value", (x,), {"y": y}),
            (TypeError, "no dimension or scalar called `b`", (x, 1, y), {"b": 1}),
            (TypeError, "gives `x` twice", (x, 1, y), {"x": x}),
            (TypeError, "has 3 parameters, and 4 arguments", (x, 1, y, y), {}),
            (TypeError, "`f32 \\[N\\] x` needs an array, and an object of int", (1, 1, y), {}),
            (TypeError, "`a` needs a number, and None is given", (x, None, y), {}),
            (TypeError, "kiln has no type for", (x.astype(np.complex64), 1, y), {}),
            (ValueError, "array `x` has gaps", (np.ones(200, np.float32)[::2], 1, y), {}),
            (ValueError, "array `y` is read-only", (x, 1, frozen), {}),
            (ValueError, "`schedules` is 0", (x, 1, y), {"schedules": 0}),
        ]:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                kernel.simulate(*arguments, **named)
        np.testing.assert_array_equal(y, 1)

    def test_objects_live_as_long_as_they_are_used(self):
        kernel = copy.copy(axpy()).axpy
        y = np.zeros(3, np.float32)
        self.assertTrue(kernel.simulate(y + 1, 1, y).ok)


if __name__ == "__main__":
    unittest.main()
