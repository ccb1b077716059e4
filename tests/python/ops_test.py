#!/usr/bin/env python3
"""kiln.ops and kiln.torch.Linear without a GPU: what is computed, what is refused, and what the library is asked for.

    PYTHONPATH=build/release/python tests/python/ops_test.py --driver build/release/src/gemm/fake_cuda

What is launched is seen with a driver of paper (src/gemm/fake_cuda.cpp) and NVRTC. What needs PyTorch is skipped without
it. On a GPU the same is tests/gpu/ops_test.py.
"""

import ctypes
import unittest
from unittest import mock

import numpy as np

import launch_test
from launch_test import CudaArray, memory

import kiln
from kiln import _core

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch

    import kiln.torch
except ImportError:
    torch = None


def randoms(*shape, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class FormulaTest(unittest.TestCase):
    def near(self, found, expected, tolerance=2**-10):
        expected = np.asarray(expected, np.float64)
        self.assertEqual(found.shape, expected.shape)
        difference = np.abs(np.asarray(found, np.float64) - expected).max(initial=0)
        self.assertLessEqual(difference, tolerance * max(1.0, np.abs(expected).max(initial=0)))

    def test_a_product_with_everything(self):
        a, b, bias = randoms(20, 24), randoms(24, 12, seed=1), randoms(12, seed=2)
        residual, out = randoms(20, 12, seed=3), randoms(20, 12, seed=4)
        sums = 0.5 * a.astype(float) @ b.astype(float) + 2 * out.astype(float) + bias
        expected = np.maximum(sums, 0) + residual
        given = kiln.ops.gemm.reference(
            a, b, bias=bias, residual=residual, activation="relu", alpha=0.5, beta=2.0, out=out
        )
        self.assertIs(given, out)
        self.near(out, expected)
        self.assertEqual(kiln.ops.gemm.reference(a, b, dtype="f32").dtype, np.float32)
        self.near(kiln.ops.gemm.reference(a, b, dtype=np.float32), a.astype(float) @ b.astype(float), 1e-6)

    def test_activations(self):
        x = np.linspace(-4, 4, 17, dtype=np.float16)[:, None]
        one = np.ones((1, 1), np.float16)
        wide = x.astype(float)
        self.near(kiln.ops.gemm.reference(x, one, activation="silu", dtype="f32"), wide / (1 + np.exp(-wide)), 1e-6)
        gelu = kiln.ops.gemm.reference(x, one, activation="gelu", dtype="f32")
        self.assertAlmostEqual(float(gelu[12, 0]), 1.9544997, 6)  # of 2
        with self.assertRaisesRegex(ValueError, "`activation` is 'tanh': there are 'none', 'relu'"):
            kiln.ops.gemm.reference(x, one, activation="tanh")

    def test_batches_and_rows_of_several_dimensions(self):
        a, b = randoms(3, 4, 8), randoms(3, 8, 5, seed=1)
        self.near(kiln.ops.gemm.reference(a, b), a.astype(float) @ b.astype(float))
        self.near(kiln.ops.gemm.reference(a, b[0]), a.astype(float) @ b[0].astype(float))

    def test_tf32_and_integers(self):
        x = np.array([[1 + 2**-10 + 2**-12]], np.float32)
        self.assertEqual(kiln.ops.gemm.reference(x, np.ones((1, 1), np.float32), tf32=True)[0, 0], np.float32(1 + 2**-10))
        whole = np.full((2, 4), -128, np.int8)
        self.assertEqual(kiln.ops.gemm.reference(whole, whole.T).tolist(), [[65536] * 2] * 2)

    def test_groups(self):
        a, b, bias = randoms(300, 8), randoms(2, 8, 5, seed=1), randoms(2, 5, seed=2)
        tiles = np.array([1, -1, 0], np.int32)
        out = np.full((300, 5), 7, np.float16)
        kiln.ops.grouped_gemm.reference(a, b, tiles, bias=bias, out=out)
        wide = a.astype(float)
        self.near(out[:128], wide[:128] @ b[1].astype(float) + bias[1])
        self.assertTrue((out[128:256] == 7).all())
        self.near(out[256:], wide[256:] @ b[0].astype(float) + bias[0])

    def test_groups_by_rows(self):
        a, b, bias = randoms(512, 8), randoms(4, 8, 5, seed=1), randoms(4, 5, seed=2)
        wide = a.astype(float)
        cases = ((False, [0, 130, -1, 500], [1, 1, 3, 3]), (True, [0, 3, 300, 1], [None, 1, 2, 3]))
        for apart, rows, of_tile in cases:
            out = np.full((512, 5), 7, np.float16)
            rows = np.array(rows, np.int32)
            kiln.ops.grouped_gemm.reference(a, b, rows_of_group=rows, apart=apart, bias=bias, out=out)
            for tile, group in enumerate(of_tile):
                part = slice(128 * tile, 128 * tile + 128)
                sums = np.full((128, 5), 7.0) if group is None else wide[part] @ b[group].astype(float) + bias[group]
                self.near(out[part], sums)
        with self.assertRaisesRegex(ValueError, "500 rows for 4 groups apart.*: give it 512"):
            kiln.ops.grouped_gemm.reference(a[:500], b, rows_of_group=np.zeros(4, np.int32), apart=True)
        tiles, rows = np.zeros(4, np.int32), np.zeros(4, np.int32)
        for given, text in (
            ({}, "and neither is given"),
            (dict(group_of_tile=tiles, rows_of_group=rows), "and both are given"),
            (dict(group_of_tile=tiles, apart=True), "`apart` is about groups"),
            (dict(group_of_tile=tiles, b_scale=bias), "`b_scale` is given alone"),
        ):
            with self.assertRaisesRegex(TypeError, text):
                kiln.ops.grouped_gemm.reference(a, b, **given)

    def test_groups_along_k(self):
        a, b, rows = randoms(6, 400), randoms(400, 5, seed=1), np.array([130, 0, 7], np.int32)
        out = np.full((3, 6, 5), 7, np.float32)
        kiln.ops.k_grouped_gemm.reference(a, b, rows, out=out, beta=2.0)
        for group, part in enumerate((slice(0, 130), slice(0, 0), slice(256, 263))):
            self.near(out[group], a[:, part].astype(float) @ b[part].astype(float) + 14)
        with self.assertRaisesRegex(TypeError, "`rows_of_group` needs a tensor"):
            kiln.ops.k_grouped_gemm.reference(a, b, None)
        if ml_dtypes is None:
            return
        a, b = a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e4m3fn)
        a_scale, b_scale = randoms(4, 6, dtype=np.float32), randoms(4, 5, dtype=np.float32)
        found = kiln.ops.k_grouped_gemm.reference(a, b, rows, a_scale=a_scale, b_scale=b_scale, dtype="f32")
        wide = (a[:, 256:263].astype(float) * a_scale[2][:, None]) @ (b[256:263].astype(float) * b_scale[2])
        self.near(found[2], wide, 1e-5)

    def test_groups_with_scale_factors(self):
        if ml_dtypes is None:
            self.skipTest("no ml_dtypes")
        a, b = (randoms(*shape, dtype=ml_dtypes.float8_e4m3fn) for shape in ((256, 200), (2, 200, 130)))
        a_scale, b_scale = randoms(2, 256, dtype=np.float32), randoms(2, 2, 2, dtype=np.float32)
        scales = dict(a_scale=a_scale, b_scale=b_scale, dtype="f32")
        found = kiln.ops.grouped_gemm.reference(a, b, np.array([1, 0], np.int32), **scales)
        for part, group in ((slice(128), 1), (slice(128, 256), 0)):
            alone = (a[part], b[group], np.ascontiguousarray(a_scale[:, part]), b_scale[group])
            self.near(found[part], kiln.ops.block_scaled_gemm.reference(*alone, dtype="f32"), 1e-6)

    def test_scale_factors(self):
        if ml_dtypes is None:
            self.skipTest("no ml_dtypes")
        a, b = (randoms(*shape, dtype=ml_dtypes.float8_e4m3fn) for shape in ((6, 200), (200, 130)))
        a_scale, b_scale = randoms(2, 6, dtype=np.float32), randoms(2, 2, dtype=np.float32)
        scaled_a = a.astype(float) * np.repeat(a_scale, 128, 0)[:200].T
        scaled_b = b.astype(float) * np.repeat(np.repeat(b_scale, 128, 1)[:, :200], 128, 0)[:130].T
        given = kiln.ops.block_scaled_gemm.reference(a, b, a_scale, b_scale, dtype="f32")
        self.near(given, scaled_a @ scaled_b, 1e-5)

    def test_a_sparse_factor_is_what_pruning_keeps(self):
        for dtype in (np.float16, np.int8):
            weights = (10 * randoms(32, 64, dtype=np.float32)).astype(dtype)
            b = randoms(64, 5, dtype=np.float32, seed=1).astype(dtype)
            packed, metadata = kiln.ops.prune(weights)
            groups = weights.reshape(32, 16, 4).astype(float)
            smallest = np.argsort(-np.abs(groups), axis=2, kind="stable")[..., 2:]
            np.put_along_axis(groups, smallest, 0, axis=2)
            self.assertEqual((packed.shape, metadata.shape, metadata.dtype), ((32, 32), (32, 2), np.uint32))
            found = kiln.ops.sparse_gemm.reference(packed, metadata, b)
            self.near(found, groups.reshape(32, 64) @ b.astype(float))
        with self.assertRaisesRegex(ValueError, r"`weights` is \[30, 64\]: rows are a multiple of 16"):
            kiln.ops.prune(randoms(30, 64))
        with self.assertRaisesRegex(TypeError, "no matrix unit takes it sparse"):
            kiln.ops.prune(randoms(32, 64, dtype=np.float32))


class RefusalTest(unittest.TestCase):
    """Without a driver: what is wrong is said before one is asked for."""

    def refused(self, error, text, *arguments, by=kiln.ops.gemm, **named):
        with self.assertRaisesRegex(error, text):
            by(*arguments, **named)

    def setUp(self):
        self.patches = [mock.patch.object(_core, "pointer_device", return_value=(0, "")),
                        mock.patch.object(_core, "order", return_value="")]
        for each in self.patches:
            each.start()
        self.a, self.b = CudaArray(memory(4, 16, dtype=np.float16)), CudaArray(memory(16, 8, dtype=np.float16))

    def tearDown(self):
        for each in self.patches:
            each.stop()

    def matrix(self, *shape, dtype=np.float16):
        return CudaArray(memory(*shape, dtype=dtype))

    def test_places(self):
        x = memory(4, 4, dtype=np.float16)
        self.refused(ValueError, "`a` lies in this CPU's memory, and kiln.ops.gemm runs on a GPU.*gemm.reference`", x, x)
        self.refused(TypeError, "`b` needs a tensor on a GPU, and an object of list", self.a, [[1.0]])

    def test_types(self):
        other = self.matrix(16, 8, dtype=np.int8)
        self.refused(TypeError, "`a` holds f16 and `b` s8", self.a, other)
        wide = self.matrix(4, 4, dtype=np.float32)
        self.refused(TypeError, "pass tf32=True, or bf16", wide, wide)
        self.refused(TypeError, "`a` holds f64, and factors are of bf16", *[self.matrix(4, 4, dtype=np.float64)] * 2)
        self.refused(TypeError, "`bias` holds f32, and f16 is needed", self.a, self.b, bias=self.matrix(8, dtype=np.float32))
        self.refused(TypeError, "`dtype` is complex64", self.a, self.b, dtype="complex64")
        self.refused(TypeError, "`out` holds f16, and `dtype` asks for f32", self.a, self.b, out=self.matrix(4, 8), dtype="f32")

    def test_what_is_no_argument(self):
        for by in (kiln.ops.gemm, kiln.ops.gemm.reference):
            self.refused(TypeError, "`b` needs a tensor, and None is given", np.ones((2, 2), np.float16), None, by=by)
            self.refused(TypeError, "`alpha` needs a number, and an object of list", self.a, self.b, alpha=[1], by=by)
            self.refused(TypeError, "`beta` needs a number, and None", self.a, self.b, beta=None, by=by)
        packed = self.matrix(4, 16)
        self.refused(TypeError, "`metadata` needs a tensor, and None", packed, None, self.b, by=kiln.ops.sparse_gemm)
        words = self.matrix(4, 1, dtype=np.uint32)
        self.refused(ValueError, r"`packed` of shape \[4, 16\] has 32 columns and `b` of shape \[16, 8\] has 16", packed, words, self.b, by=kiln.ops.sparse_gemm)
        self.refused(ValueError, r"`b` has the shape \[2, 16, 8\]: kiln.ops.sparse_gemm takes 2", packed, words, self.matrix(2, 16, 8), by=kiln.ops.sparse_gemm)
        self.refused(ValueError, r"`b` has the shape \[16, 8\], and needs 3", self.a, self.b, words, by=kiln.ops.grouped_gemm)

    def test_shapes(self):
        self.refused(ValueError, r"`a` of shape \[4, 16\] has 16 columns and `b` of shape \[8, 16\] has 8 rows.*`b.T`", self.a, self.matrix(8, 16))
        self.refused(ValueError, r"`out` has the shape \[8, 4\], and \[4, 8\] is needed", self.a, self.b, out=self.matrix(8, 4))
        self.refused(ValueError, r"`bias` has the shape \[4\], and \[8\]", self.a, self.b, bias=self.matrix(4))
        self.refused(ValueError, r"`a` has the shape \[16\], and needs 2", self.matrix(16), self.b)
        self.refused(ValueError, r"`a` of shape \[2, 4, 16\] and `b` of shape \[3, 16, 8\]", self.matrix(2, 4, 16), self.matrix(3, 16, 8))
        self.refused(ValueError, "`beta` is 1.0, and there is no `out`", self.a, self.b, beta=1.0)

    def test_strides(self):
        every_other = CudaArray(memory(4, 32, dtype=np.float16)[:, ::2])
        out = self.matrix(4, 8)
        self.refused(ValueError, r"`a` of shape \[4, 16\] has strides \[32, 2\].*contiguous", every_other, self.b, out=out)
        turned = CudaArray(memory(8, 4, dtype=np.float16).T)
        self.refused(ValueError, r"`out` of shape \[4, 8\] has strides \[1, 4\], and its neighbours", self.a, self.b, out=turned)
        apart = CudaArray(memory(4, 4, 16, dtype=np.float16)[:, ::2])
        self.refused(ValueError, r"which lie 32 and 64 and not 32 and 64|pass `.contiguous", every_other, self.b, out=out)
        folded = CudaArray(memory(4, 3, 16, dtype=np.float16)[:, :2])
        self.refused(ValueError, "lie 16 and 48 and not 16 and 32 apart", folded, self.b, out=self.matrix(4, 2, 8))
        self.assertEqual(apart.shape, (4, 2, 16))


class PaperProduct:
    """Computes what kiln/gemm.h says of a problem, from its fields and the operands' addresses alone."""

    workspace = 0

    def __init__(self, fields):
        self.fields = fields

    def matrix(self, address, rows, columns, step, strides):
        """[batch, rows, columns] of f16; `strides`: of the batch, and whether neighbours lie along columns."""
        stride, along = strides
        step = step or (columns if along else rows)
        inner = (step, 1) if along else (1, step)
        count = max(self.fields["batch"], self.fields.get("groups", 0), 1)
        elements = (count - 1) * stride + (rows - 1) * inner[0] + (columns - 1) * inner[1] + 1
        flat = np.ctypeslib.as_array((ctypes.c_uint16 * elements).from_address(address)).view(np.float16)
        return np.lib.stride_tricks.as_strided(flat, (count, rows, columns), [2 * each for each in (stride, *inner)])

    def launch(self, addresses, _workspace, _stream):
        given, (alpha, beta) = self.fields, addresses[10:]
        m, n, k, flags = given["m"], given["n"], given["k"], given["flags"]
        a = self.matrix(addresses[0], m, k, given["lda"], (given.get("stride_a", 0), not flags & 1))
        b = self.matrix(addresses[1], k, n, given["ldb"], (given.get("stride_b", 0), bool(flags & 2)))
        c = self.matrix(addresses[2], m, n, given.get("ldc", 0), (given.get("stride_c", m * n), True))
        value = alpha * (a.astype(float) @ b.astype(float)) + (beta * c if flags & 8 else 0)
        if flags & 16:
            value = value + self.matrix(addresses[3], 1, n, 0, (0, True))
        if flags & 32:
            value = value + self.matrix(addresses[4], m, n, given.get("ldr", 0), (given.get("stride_r", m * n), True))
        c[...] = value
        return 0, ""


class LayoutTest(unittest.TestCase):
    """However tensors lie, the library is told so: checked by one of paper."""

    def lying(self, generator, *shape):
        """Random elements of a random layout: rows apart, or along the other dimension."""
        batch, (rows, columns) = shape[:-2], shape[-2:]
        turned = generator.random() < 0.5
        inner, outer = (rows, columns) if turned else (columns, rows)
        whole = memory(*batch, outer, inner + int(generator.integers(0, 9)), dtype=np.float16)
        part = whole[..., :inner]
        part[...] = generator.standard_normal(part.shape)
        return CudaArray(np.swapaxes(part, -1, -2) if turned else part)

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_product", lambda fields, device: (0, "", PaperProduct(dict(fields))))
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_the_problem_is_that_of_the_tensors(self, *_):
        generator = np.random.default_rng(7)
        for _ in range(300):
            m, n, k = (int(each) for each in generator.choice([1, 2, 5, 16], 3))
            batch = (int(generator.integers(1, 4)),) if generator.random() < 0.4 else ()
            a = self.lying(generator, *batch, m, k)
            b = self.lying(generator, *(batch if generator.random() < 0.7 else ()), k, n)
            rows = memory(*batch, m, n + int(generator.integers(0, 5)), dtype=np.float16)[..., :n]
            out = CudaArray(rows)
            bias = CudaArray(generator.standard_normal(n).astype(np.float16)) if generator.random() < 0.5 else None
            residual = CudaArray(memory(*batch, m, n, dtype=np.float16)) if generator.random() < 0.5 else None
            if residual is not None:
                residual.array[...] = generator.standard_normal(residual.shape)
            rows[...] = generator.standard_normal(rows.shape)
            more = {"alpha": 0.5, "beta": float(generator.integers(0, 2))}
            arrays = {"bias": bias, "residual": residual}
            plain = {name: None if each is None else each.array for name, each in arrays.items()}
            expected = kiln.ops.gemm.reference(a.array, b.array, out=rows.copy(), **plain, **more)
            try:
                kiln.ops.gemm(a, b, out=out, **arrays, **more)
            except ValueError as error:
                self.assertRegex(str(error), "count as rows|one has to be 1")
                self.assertTrue(batch and len(b.shape) == 2, error)
                continue
            np.testing.assert_allclose(rows.astype(float), expected.astype(float), rtol=2**-9, atol=2**-9)


class LaunchTest(unittest.TestCase):
    def setUp(self):
        if launch_test.DRIVER is None:
            self.skipTest("no --driver")
        launch_test.DRIVER.capturing = False
        launch_test.DRIVER.launch_status = 0

    def launched(self, *arguments, by=kiln.ops.gemm, **named):
        seen = []
        prepare = _core.prepare_product

        def prepared(fields, device):
            seen.append(dict(fields))
            return prepare(fields, device)

        before = launch_test.DRIVER.launches
        with mock.patch.object(_core, "prepare_product", prepared):
            given = by(*arguments, **named)
        self.assertGreater(launch_test.DRIVER.launches, before)
        self.assertIs(given, named["out"])
        return seen[0] if seen else None

    def matrix(self, *shape, dtype=np.float16):
        return CudaArray(memory(*shape, dtype=dtype))

    def test_how_tensors_lie_is_what_the_library_is_told(self):
        a, b, out = self.matrix(64, 32), self.matrix(32, 48), self.matrix(64, 48)
        fields = self.launched(a, b, out=out)
        self.assertEqual((fields["m"], fields["n"], fields["k"], fields["flags"]), (64, 48, 32, 2))
        self.assertEqual((fields["type_a"], fields["type_c"], fields["ldb"]), ("f16", "f16", 48))
        self.assertIsNone(self.launched(a, b, out=out))  # known
        turned = CudaArray(memory(48, 40, dtype=np.float16)[:, :32].T)
        fields = self.launched(CudaArray(memory(32, 64, dtype=np.float16).T), turned, out=out, bias=self.matrix(48), alpha=2.0)
        self.assertEqual((fields["flags"], fields["lda"], fields["ldb"]), (1 | 4 | 16, 64, 40))
        fields = self.launched(self.matrix(2, 32, 32), b, out=self.matrix(2, 32, 48), activation="silu", beta=1.0)
        self.assertEqual((fields["m"], fields["batch"], fields["flags"], fields["activation"]), (64, 1, 2 | 8, 3))
        fields = self.launched(self.matrix(2, 64, 32), self.matrix(2, 32, 48), out=self.matrix(2, 64, 48))
        self.assertEqual((fields["batch"], fields["stride_a"], fields["stride_c"]), (2, 2048, 3072))

    def test_memory_that_is_shared_is_refused(self):
        both = memory(64, 80, dtype=np.float16)
        a, b, out = CudaArray(both[:, :32]), self.matrix(32, 48), CudaArray(both[:, 32:])
        self.launched(a, b, out=out)
        with self.assertRaisesRegex(ValueError, "`out`, which the product writes, shares memory with `a`"):
            kiln.ops.gemm(a, b, out=CudaArray(both[:, 24:72]))
        self.launched(a, b, residual=out, out=out)

    def test_a_captured_stream_needs_a_prepared_product(self):
        a, b, out = self.matrix(16, 32), self.matrix(32, 80), self.matrix(16, 80)
        launch_test.DRIVER.capturing = True
        with self.assertRaisesRegex(kiln.DeviceError, "gemm is not prepared for these shapes.*captured"):
            kiln.ops.gemm(a, b, out=out)
        launch_test.DRIVER.capturing = False
        self.launched(a, b, out=out)
        launch_test.DRIVER.capturing = True
        self.launched(a, b, out=out)

    def test_what_the_library_refuses_is_said(self):
        a, b, out = self.matrix(64, 32), self.matrix(2, 32, 48), self.matrix(64, 48)
        tiles = self.matrix(1, dtype=np.int32)
        with self.assertRaisesRegex(ValueError, "no kernel|does not"):
            kiln.ops.grouped_gemm(a, b, tiles, out=out)
        turned = CudaArray(memory(2, 48, 32, dtype=np.float16).transpose(0, 2, 1))
        fields = self.launched(a, turned, tiles, out=out, by=kiln.ops.grouped_gemm)
        self.assertEqual((fields["groups"], fields["stride_b"]), (2, 48 * 32))
        rows, more = self.matrix(2, dtype=np.int32), dict(out=out, by=kiln.ops.grouped_gemm)
        self.assertEqual(self.launched(a, turned, rows_of_group=rows, **more)["flags"], 512)
        a, out = self.matrix(256, 32), self.matrix(256, 48)
        more["out"] = out
        self.assertEqual(self.launched(a, turned, rows_of_group=rows, apart=True, **more)["flags"], 1024)
        a, b = self.matrix(64, 256), self.matrix(256, 48)
        more = dict(out=self.matrix(2, 64, 48), by=kiln.ops.k_grouped_gemm)
        self.assertEqual(self.launched(a, b, rows, **more)["flags"], 2048 + 2)


@unittest.skipIf(torch is None, "no PyTorch")
class TorchTest(unittest.TestCase):
    def test_gradients_are_those_of_pytorch(self):
        torch.manual_seed(0)
        for activation in (None, "relu", "gelu", "silu"):
            inputs = [torch.randn(*shape, dtype=torch.float32) for shape in ((3, 4, 8), (6, 8), (6,), (3, 4, 6))]
            grads = []
            for ours in (True, False):
                a, weight, bias, residual = (each.clone().requires_grad_() for each in inputs)
                if ours:
                    y = torch.ops.kiln.gemm(a, weight.T, bias, residual, activation=activation or "none", tf32=True)
                else:
                    y = torch.nn.functional.linear(a, weight, bias)
                    y = (y if activation is None else getattr(torch.nn.functional, activation)(y)) + residual
                y.square().sum().backward()
                grads.append([y, *(each.grad for each in (a, weight, bias, residual))])
            for left, right in zip(*grads):
                torch.testing.assert_close(left, right, rtol=2e-2, atol=2e-2)

    def test_gradients_of_batches_and_of_the_other_order(self):
        a, b = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 4, 5, requires_grad=True)
        y = torch.ops.kiln.gemm(a, b, tf32=True, alpha=2.0)
        y.sum().backward()
        slope = torch.full((2, 3, 5), 2.0)
        torch.testing.assert_close(a.grad, slope @ b.detach().mT, rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(b.grad, a.detach().mT @ slope, rtol=1e-2, atol=1e-2)

    def test_operators_are_what_pytorch_expects(self):
        a, w = torch.randn(4, 8, dtype=torch.bfloat16, requires_grad=True), torch.randn(6, 8, dtype=torch.bfloat16)
        bias = torch.randn(6, dtype=torch.bfloat16)
        results = torch.library.opcheck(torch.ops.kiln.gemm, (a, w.T, bias), {"activation": "gelu"})
        self.assertEqual(set(results.values()), {"SUCCESS"})
        tiles = torch.zeros(1, dtype=torch.int32)
        results = torch.library.opcheck(torch.ops.kiln.grouped_gemm, (a.detach(), w.T[None], tiles))
        self.assertEqual(set(results.values()), {"SUCCESS"})
        with self.assertRaisesRegex(NotImplementedError, "grouped_gemm has no gradient"):
            torch.ops.kiln.grouped_gemm(a, w.T[None], tiles).sum().backward()

    def test_a_layer_is_a_linear(self):
        plain = torch.nn.Linear(8, 6, dtype=torch.bfloat16)
        layer = kiln.torch.Linear.from_linear(plain, activation="relu")
        self.assertIs(layer.weight, plain.weight)
        self.assertIsInstance(layer, torch.nn.Linear)
        self.assertIn("activation='relu'", repr(layer))
        for x in (torch.randn(8), torch.randn(5, 8), torch.randn(2, 8, 3).mT, torch.randn(1, 8).expand(3, 8), torch.randn(0, 8)):
            x = x.to(torch.bfloat16)
            expected = torch.relu(torch.nn.functional.linear(x.float(), plain.weight.float(), plain.bias.float()))
            torch.testing.assert_close(layer(x).float(), expected, rtol=2**-7, atol=2**-7)
        layer.load_state_dict(torch.nn.Linear(8, 6).state_dict())
        double = kiln.torch.Linear(8, 6, dtype=torch.float64)
        self.assertTrue(torch.autograd.gradcheck(double, (torch.randn(3, 8, dtype=torch.float64, requires_grad=True),)))
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(kiln.torch.Linear(8, 6)(torch.randn(2, 8)).dtype, torch.bfloat16)
        with self.assertRaises(RuntimeError):
            layer(torch.randn(2, 7, dtype=torch.bfloat16))

    def test_a_layer_is_compiled_whole(self):
        layer = kiln.torch.Linear(8, 6, activation="gelu", dtype=torch.bfloat16)
        x = torch.randn(4, 8, dtype=torch.bfloat16, requires_grad=True)
        fast = torch.compile(lambda x: layer(x) * 2, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(fast(x), layer(x) * 2)
        fast(x).sum().backward()
        self.assertEqual(x.grad.shape, x.shape)

    def test_tensors_of_this_cpu_are_refused_by_ops(self):
        x = torch.ones(4, 4, dtype=torch.bfloat16)
        with self.assertRaisesRegex(ValueError, "`a` lies in this CPU's memory.*kiln.ops.gemm.reference"):
            kiln.ops.gemm(x, x)
        self.assertEqual(kiln.ops.gemm.reference(x, x).tolist(), [[4.0] * 4] * 4)

    def test_pruning(self):
        weights = torch.randn(16, 32).to(torch.bfloat16)
        packed, metadata = kiln.ops.prune(weights)
        self.assertEqual((packed.dtype, metadata.dtype), (torch.bfloat16, torch.int32))
        eye = torch.eye(32).to(torch.bfloat16)
        dense = kiln.ops.sparse_gemm.reference(packed, metadata, eye)
        self.assertTrue(((dense == weights) | (dense == 0)).all())
        self.assertEqual((dense != 0).sum().item(), 16 * 16)


if __name__ == "__main__":
    launch_test.main()
