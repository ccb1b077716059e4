#!/usr/bin/env python3
"""kiln.ops.attention without a GPU: what is computed, what is refused, and what the library is asked for.

    PYTHONPATH=build/release/python tests/python/attention_test.py --driver build/release/src/gemm/fake_cuda

What is launched is seen with a driver of paper (src/gemm/fake_cuda.cpp) and NVRTC. What needs PyTorch is skipped without
it. On a GPU the same is tests/gpu/attention_test.py.
"""

import ctypes
import math
import unittest
from unittest import mock

import numpy as np

import launch_test
from launch_test import CudaArray, memory

import kiln
from kiln import _core

try:
    import torch

    import kiln.torch
except ImportError:
    torch = None


def randoms(*shape, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def expected_of(q, k, v, causal=False, scale=None):
    """Row by row, as the formula says it."""
    q, k, v = (each.astype(float) for each in (q, k, v))
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    out, lse = np.zeros(q.shape), np.full((q.shape[0], q.shape[2], q.shape[1]), -np.inf)
    for b, i, h in np.ndindex(*q.shape[:3]):
        seen = k.shape[1] if not causal else min(k.shape[1], i + k.shape[1] - q.shape[1] + 1)
        if seen <= 0:
            continue
        group = h // (q.shape[2] // k.shape[2])
        weights = np.exp(scale * k[b, :seen, group] @ q[b, i, h])
        out[b, i, h] = weights @ v[b, :seen, group] / weights.sum()
        lse[b, h, i] = np.log(weights.sum())
    return out, lse


class FormulaTest(unittest.TestCase):
    def test_values(self):
        for causal, queries, keys, scale in ((False, 5, 7, None), (True, 6, 6, 0.3), (True, 7, 4, None), (True, 3, 9, 2.0)):
            q = randoms(2, queries, 4, 16)
            k, v = randoms(2, keys, 2, 16, seed=1), randoms(2, keys, 2, 16, seed=2)
            out, lse = kiln.ops.attention.reference(q, k, v, causal=causal, scale=scale, return_lse=True)
            wanted, wanted_lse = expected_of(q, k, v, causal, scale)
            self.assertEqual((out.dtype, lse.dtype), (np.float16, np.float32))
            np.testing.assert_allclose(out.astype(float), wanted, atol=2**-9)
            np.testing.assert_allclose(lse, wanted_lse, rtol=1e-5, atol=1e-5)

    def test_out_receives_it(self):
        q = randoms(1, 4, 2, 8)
        out = np.empty_like(q)
        self.assertIs(kiln.ops.attention.reference(q, q, q, out=out), out)
        np.testing.assert_array_equal(out, kiln.ops.attention.reference(q, q, q))

    def test_large_scores(self):
        q = np.full((1, 2, 1, 8), 200, np.float16)
        out = kiln.ops.attention.reference(q, q, q)
        self.assertTrue((out == 200).all())


def expected_gradients(dout, q, k, v, causal=False, scale=None):
    """Row by row, as the formula says it, of the exact result."""
    out, lse = expected_of(q, k, v, causal, scale)
    dout, q, k, v = (each.astype(float) for each in (dout, q, k, v))
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(k.shape)
    for b, i, h in np.ndindex(*q.shape[:3]):
        seen = k.shape[1] if not causal else min(k.shape[1], i + k.shape[1] - q.shape[1] + 1)
        if seen <= 0:
            continue
        group = h // (q.shape[2] // k.shape[2])
        weights = np.exp(scale * k[b, :seen, group] @ q[b, i, h] - lse[b, h, i])
        slopes = weights * (v[b, :seen, group] @ dout[b, i, h] - dout[b, i, h] @ out[b, i, h])
        dv[b, :seen, group] += np.outer(weights, dout[b, i, h])
        dk[b, :seen, group] += scale * np.outer(slopes, q[b, i, h])
        dq[b, i, h] = scale * slopes @ k[b, :seen, group]
    return dq, dk, dv


class GradientFormulaTest(unittest.TestCase):
    def test_values(self):
        for causal, queries, keys, scale in ((False, 5, 7, None), (True, 6, 6, 0.3), (True, 7, 4, None), (True, 3, 9, 2.0)):
            q, dout = randoms(2, queries, 4, 16), randoms(2, queries, 4, 16, seed=3)
            k, v = randoms(2, keys, 2, 16, seed=1), randoms(2, keys, 2, 16, seed=2)
            how = {"causal": causal, "scale": scale}
            out, lse = kiln.ops.attention.reference(q, k, v, return_lse=True, **how)
            made = kiln.ops.attention_backward.reference(dout, q, k, v, out, lse, **how)
            for each, wanted in zip(made, expected_gradients(dout, q, k, v, **how)):
                self.assertEqual(each.dtype, np.float16)
                np.testing.assert_allclose(each.astype(float), wanted, atol=2**-6)

    def test_what_does_not_fit_is_refused(self):
        x, lse = randoms(1, 4, 2, 8), np.zeros((1, 2, 4), np.float32)
        back = kiln.ops.attention_backward.reference
        with self.assertRaisesRegex(ValueError, r"`dout` has the shape \[1, 3, 2, 8\], and \[1, 4, 2, 8\]"):
            back(x[:, :3], x, x, x, x, lse)
        with self.assertRaisesRegex(TypeError, "`q` holds f16 and `dout` f32"):
            back(x.astype(np.float32), x, x, x, x, lse)
        with self.assertRaisesRegex(ValueError, r"`lse` is f32 \[1, 4, 2\], .* f32 \[1, 2, 4\], is needed"):
            back(x, x, x, x, x, lse.transpose(0, 2, 1))
        with self.assertRaisesRegex(TypeError, "`lse` needs a tensor, and None"):
            back(x, x, x, x, x, None)


class RefusalTest(unittest.TestCase):
    """Without a driver: what is wrong is said before one is asked for."""

    def setUp(self):
        self.patches = [mock.patch.object(_core, "pointer_device", return_value=(0, "")),
                        mock.patch.object(_core, "order", return_value="")]
        for each in self.patches:
            each.start()

    def tearDown(self):
        for each in self.patches:
            each.stop()

    def array(self, *shape, dtype=np.float16):
        return CudaArray(memory(*shape, dtype=dtype))

    def refused(self, error, text, *arguments, **named):
        with self.assertRaisesRegex(error, text):
            kiln.ops.attention(*arguments, **named)

    def test_places(self):
        x = memory(1, 4, 2, 64, dtype=np.float16)
        self.refused(ValueError, "`q` lies in this CPU's memory.*`kiln.ops.attention.reference`", x, x, x)
        self.refused(TypeError, "`v` needs a tensor, and None", self.array(1, 4, 2, 64), self.array(1, 4, 2, 64), None)

    def test_types(self):
        x, wide, other = (self.array(1, 4, 2, 64, dtype=each) for each in (np.float16, np.float32, np.int8))
        self.refused(TypeError, "`q` holds f16 and `k` s8", x, other, x)
        self.refused(TypeError, "`q` holds f32, and attention takes bf16 and f16", wide, wide, wide)
        self.refused(TypeError, "`causal` is 1", x, x, x, causal=1)
        for scale in (0, -1.0, math.inf, math.nan):
            self.refused(ValueError, "`scale` is .*: a finite number above 0", x, x, x, scale=scale)

    def test_shapes(self):
        x = self.array(2, 6, 4, 64)
        self.refused(ValueError, r"`q` has the shape \[6, 4, 64\].*`.transpose\(1, 2\)`", self.array(6, 4, 64), x, x)
        self.refused(ValueError, r"`k` has the shape .* and `v` \[2, 5, 4, 64\]", x, x, self.array(2, 5, 4, 64))
        other = self.array(3, 6, 4, 64)
        self.refused(ValueError, r"has 2 batches and `k` .* has 3", x, other, other)
        other = self.array(2, 6, 4, 128)
        self.refused(ValueError, r"has 64 elements of depth and `k` .* has 128", x, other, other)
        other = self.array(2, 4, 6, 64)
        self.refused(ValueError, r"`q` has 4 heads and `k` has 6.*`.transpose\(1, 2\)`", x, other, other)
        other = self.array(2, 0, 4, 64)
        self.refused(ValueError, "one key and a depth of one are the least", x, other, other)
        self.refused(ValueError, r"`out` has the shape \[2, 6, 2, 64\], and \[2, 6, 4, 64\]", x, x, x, out=self.array(2, 6, 2, 64))

    @mock.patch("kiln._calls.allocator", return_value=lambda: None)
    def test_strides(self, _):
        x = self.array(2, 6, 4, 64)
        every_other = CudaArray(memory(2, 6, 4, 128, dtype=np.float16)[..., ::2])
        self.refused(ValueError, r"`q` of shape .* has strides .*, 2\], and the last one has to be 1", every_other, x, x)
        odd = CudaArray(memory(2, 6, 4, 68, dtype=np.float16)[..., :64])
        self.refused(ValueError, r"of which .* elements are .* bytes, and multiples of 16 bytes", x, odd, x)
        broadcast = CudaArray(np.lib.stride_tricks.as_strided(memory(2, 6, 1, 64, dtype=np.float16), (2, 6, 4, 64), (768, 128, 0, 2)))
        self.refused(ValueError, "above 0; pass `.contiguous\\(\\)`, and `k` and `v` with as many heads", x, broadcast, broadcast)


class PaperAttention:
    """Computes what kiln/attention.h says of a problem, from its fields and the operands' addresses alone."""

    workspace = 0

    def __init__(self, fields):
        self.fields = fields

    def tensor(self, address, rows, heads, spacing):
        given = self.fields
        shape = (given["batch"], rows, heads, given["depth"])
        strides = (*spacing, 1)
        elements = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
        flat = np.ctypeslib.as_array((ctypes.c_uint16 * elements).from_address(address)).view(np.float16)
        return np.lib.stride_tricks.as_strided(flat, shape, [2 * each for each in strides])

    def without_gaps(self):
        row = self.fields["heads"] * self.fields["depth"]
        return self.fields["queries"] * row, row, self.fields["depth"]

    def launch(self, addresses, _workspace, _stream):
        scale = addresses[5]
        given = {"o": self.without_gaps(), **self.fields}
        rows, heads = (given["queries"], given["keys"]), (given["heads"], given["key_heads"])
        q, k, v, o = (
            self.tensor(addresses[place], rows[which], heads[which], given["qkvo"[place]])
            for place, which in ((0, 0), (1, 1), (2, 1), (3, 0))
        )
        out, lse = expected_of(q, k, v, given["causal"], scale)
        o[...] = out
        flat = np.ctypeslib.as_array((ctypes.c_float * lse.size).from_address(addresses[4]))
        flat[...] = lse.reshape(-1)
        return 0, ""


class PaperGradients(PaperAttention):
    """The same of gradients."""

    workspace = 48

    def launch(self, addresses, workspace, _stream):
        scale = addresses[9]
        given = {"o": self.without_gaps(), "dout": self.without_gaps(), **self.fields}
        assert workspace != 0
        queries, keys = (given["queries"], given["heads"]), (given["keys"], given["key_heads"])
        dense = [(rows * heads * given["depth"], heads * given["depth"], given["depth"]) for rows, heads in (queries, keys)]
        q, k, v, o = (self.tensor(addresses[i], *(keys if name in "kv" else queries), given[name]) for i, name in enumerate("qkvo"))
        dout = self.tensor(addresses[5], *queries, given["dout"])
        out, lse = expected_of(q, k, v, given["causal"], scale)
        np.testing.assert_allclose(o.astype(float), out, atol=2**-8)
        flat = np.ctypeslib.as_array((ctypes.c_float * lse.size).from_address(addresses[4]))
        np.testing.assert_allclose(flat.reshape(lse.shape), lse, rtol=1e-5, atol=1e-5)
        made = expected_gradients(dout, q, k, v, given["causal"], scale)
        for place, each, spacing, what in zip((6, 7, 8), made, (dense[0], dense[1], dense[1]), (queries, keys, keys)):
            self.tensor(addresses[place], *what, spacing)[...] = each
        return 0, ""


def paper_allocator(_like, _device, dtype, shape, _what):
    return lambda: CudaArray(memory(*shape, dtype={"f16": np.float16, "f32": np.float32, "u8": np.uint8}[dtype]))


class LayoutTest(unittest.TestCase):
    """However tensors lie, the library is told so: checked by one of paper."""

    def lying(self, generator, *shape):
        """Random elements, dimensions but the last in a random order, with gaps behind rows of a depth."""
        order = [int(each) for each in generator.permutation(3)]
        whole = memory(*(shape[each] for each in order), shape[3] + 8 * int(generator.integers(0, 3)), dtype=np.float16)
        part = whole[..., : shape[3]].transpose(*np.argsort(order), 3)
        part[...] = generator.standard_normal(shape)
        return CudaArray(part)

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_attention", lambda fields, device: (0, "", PaperAttention(dict(fields))))
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_the_problem_is_that_of_the_tensors(self, *_):
        generator = np.random.default_rng(7)
        for _ in range(60):
            batch, queries, keys, key_heads = (int(each) for each in generator.choice([1, 2, 5], 4))
            heads, depth = key_heads * int(generator.integers(1, 3)), int(generator.choice([8, 16]))
            q, out = (self.lying(generator, batch, queries, heads, depth) for _ in range(2))
            k, v = (self.lying(generator, batch, keys, key_heads, depth) for _ in range(2))
            how = {"causal": bool(generator.integers(0, 2)), "scale": float(generator.choice([0.25, 1.0]))}
            wanted, wanted_lse = expected_of(q.array, k.array, v.array, **how)
            given, lse = kiln.ops.attention(q, k, v, out=out, return_lse=True, **how)
            self.assertIs(given, out)
            np.testing.assert_allclose(out.array.astype(float), wanted, atol=2**-8)
            np.testing.assert_allclose(lse.array, wanted_lse, rtol=1e-5, atol=1e-5)
            made = kiln.ops.attention(q, k, v, **how)
            np.testing.assert_array_equal(made.array, out.array)

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_attention_backward", lambda fields, device: (0, "", PaperGradients(dict(fields))))
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_the_problem_of_gradients_is_that_of_the_tensors(self, *_):
        generator = np.random.default_rng(8)
        for _ in range(40):
            batch, queries, keys, key_heads = (int(each) for each in generator.choice([1, 2, 5], 4))
            heads, depth = key_heads * int(generator.integers(1, 3)), int(generator.choice([8, 16]))
            q, out, dout = (self.lying(generator, batch, queries, heads, depth) for _ in range(3))
            k, v = (self.lying(generator, batch, keys, key_heads, depth) for _ in range(2))
            how = {"causal": bool(generator.integers(0, 2)), "scale": float(generator.choice([0.25, 1.0]))}
            lse = memory(batch, heads, queries, dtype=np.float32)
            out.array[...], lse[...] = expected_of(q.array, k.array, v.array, **how)
            made = kiln.ops.attention_backward(dout, q, k, v, out, CudaArray(lse), **how)
            for each, wanted in zip(made, expected_gradients(dout.array, q.array, k.array, v.array, **how)):
                np.testing.assert_allclose(each.array.astype(float), wanted, rtol=2**-9, atol=2**-9)

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_attention", lambda fields, device: (0, "", PaperAttention(dict(fields))))
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_memory_that_is_shared_is_refused(self, *_):
        packed = memory(2, 5, 8, 16, dtype=np.float16)
        packed[...] = randoms(2, 5, 8, 16)
        q, k, v, out = (CudaArray(packed[:, :, first : first + 2]) for first in (0, 2, 4, 6))
        wanted = expected_of(q.array, k.array, v.array)[0]
        kiln.ops.attention(q, k, v, out=out)
        np.testing.assert_allclose(out.array.astype(float), wanted, atol=2**-8)
        with self.assertRaisesRegex(ValueError, "`out`, which attention writes, shares memory with `v`"):
            kiln.ops.attention(q, k, v, out=CudaArray(packed[:, :, 5:7]))
        with self.assertRaisesRegex(ValueError, "shares memory with `q`"):
            kiln.ops.attention(q, k, v, out=q)


class LaunchTest(unittest.TestCase):
    def setUp(self):
        if launch_test.DRIVER is None:
            self.skipTest("no --driver")
        launch_test.DRIVER.capturing = False
        launch_test.DRIVER.launch_status = 0
        patch = mock.patch("kiln._calls.allocator", paper_allocator)
        patch.start()
        self.addCleanup(patch.stop)

    def array(self, *shape, dtype=np.float16):
        return CudaArray(memory(*shape, dtype=dtype))

    def launched(self, *arguments, **named):
        before = launch_test.DRIVER.launches
        given = kiln.ops.attention(*arguments, **named)
        self.assertEqual(launch_test.DRIVER.launches, before + 1)
        return given

    def test_a_call_is_one_launch(self):
        q, k = self.array(2, 100, 4, 64), self.array(2, 80, 2, 64)
        out, lse = self.launched(q, k, k, return_lse=True)
        self.assertEqual((out.array.shape, lse.array.shape), ((2, 100, 4, 64), (2, 4, 100)))
        turned = CudaArray(memory(2, 4, 100, 64, dtype=np.float16).transpose(0, 2, 1, 3))
        modules = launch_test.DRIVER.modules
        self.launched(turned, k, k, out=self.array(2, 100, 4, 64))
        self.assertEqual(launch_test.DRIVER.modules, modules)
        self.assertEqual(kiln.ops.attention(self.array(2, 0, 4, 64), k, k).array.shape, (2, 0, 4, 64))

    def test_a_captured_stream_needs_a_prepared_problem(self):
        q = self.array(1, 33, 2, 64)
        launch_test.DRIVER.capturing = True
        with self.assertRaisesRegex(kiln.DeviceError, "attention is not prepared for these shapes.*captured"):
            kiln.ops.attention(q, q, q)
        launch_test.DRIVER.capturing = False
        self.launched(q, q, q)
        launch_test.DRIVER.capturing = True
        self.launched(q, q, q)

    def test_what_the_library_refuses_is_said(self):
        q = self.array(1, 33, 2, 96)
        with self.assertRaisesRegex(ValueError, "a depth of 96, it takes 64, 128 and 256"):
            kiln.ops.attention(q, q, q)
        shifted = self.array(1, 33, 2, 128)
        shifted.array = shifted.array[..., 4:68]
        with self.assertRaisesRegex(ValueError, "q begins 8 bytes past a multiple of 16"):
            kiln.ops.attention(shifted, shifted, shifted)

    def test_gradients_are_three_launches(self):
        q, k = self.array(2, 100, 4, 64), self.array(2, 80, 2, 64)
        out, lse = kiln.ops.attention(q, k, k, return_lse=True)
        with mock.patch("kiln._calls.allocator", paper_allocator):
            before = launch_test.DRIVER.launches
            dq, dk, dv = kiln.ops.attention_backward(q, q, k, k, out, lse)
            self.assertEqual(launch_test.DRIVER.launches, before + 3)
            self.assertEqual([each.array.shape for each in (dq, dk, dv)], [(2, 100, 4, 64), *[(2, 80, 2, 64)] * 2])
            launch_test.DRIVER.capturing = True
            kiln.ops.attention_backward(q, q, k, k, out, lse)
            with self.assertRaisesRegex(kiln.DeviceError, "attention_backward is not prepared for these shapes"):
                kiln.ops.attention_backward(q, q, k, k, out, lse, causal=True)
            launch_test.DRIVER.capturing = False
            turned = CudaArray(memory(2, 100, 4, dtype=np.float32).transpose(0, 2, 1))
            with self.assertRaisesRegex(ValueError, "`lse` has strides .* none of its rows has gaps"):
                kiln.ops.attention_backward(q, q, k, k, out, turned)

    def test_the_kernel_is_told(self):
        from kiln._attention import kernel_of, options_of

        q = self.array(1, 33, 2, 64)
        text = kernel_of({"q": q, "k": q, "v": q}, options_of(True, None))
        self.assertRegex(text, "attention_sm90 -D BLOCKS=132 -D CAUSAL=true .*-D D=64 -D DTYPE=f16")


@unittest.skipIf(torch is None, "no PyTorch")
class TorchTest(unittest.TestCase):
    def test_the_operator_is_what_pytorch_expects(self):
        q, k = (torch.randn(2, rows, heads, 16).to(torch.bfloat16) for rows, heads in ((5, 4), (7, 2)))
        results = torch.library.opcheck(torch.ops.kiln.attention, (q, k, k), {"causal": True})
        self.assertEqual(set(results.values()), {"SUCCESS"})
        out, lse = torch.ops.kiln.attention(q, k, k, scale=0.5)
        wanted = torch.nn.functional.scaled_dot_product_attention(
            *(each.double().transpose(1, 2) for each in (q, k, k)), scale=0.5, enable_gqa=True
        )
        torch.testing.assert_close(out.double(), wanted.transpose(1, 2), rtol=2**-7, atol=2**-7)
        self.assertEqual((lse.shape, lse.dtype), ((2, 4, 5), torch.float32))

    def test_it_is_compiled_whole(self):
        q = torch.randn(1, 5, 2, 16).to(torch.bfloat16)
        fast = torch.compile(lambda q: torch.ops.kiln.attention(q, q, q)[0] * 2, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(fast(q), kiln.ops.attention.reference(q, q, q) * 2)

    def test_gradients_are_those_of_pytorch(self):
        for causal in (False, True):
            made = [torch.randn(2, rows, heads, 16).to(torch.bfloat16) for rows, heads in ((5, 4), (7, 2), (7, 2))]
            given = [each.clone().requires_grad_() for each in made]
            out, lse = torch.ops.kiln.attention(*given, causal=causal, scale=0.5)
            self.assertFalse(lse.requires_grad)
            slope = torch.randn_like(out)
            out.backward(slope)
            exact = [each.double().requires_grad_() for each in made]
            wanted = torch.nn.functional.scaled_dot_product_attention(
                *(each.transpose(1, 2) for each in exact),
                attn_mask=torch.ones(5, 7, dtype=torch.bool).tril(2) if causal else None,
                scale=0.5,
                enable_gqa=True,
            )
            wanted.transpose(1, 2).backward(slope.double())
            for each, other in zip(given, exact):
                torch.testing.assert_close(each.grad.double(), other.grad, rtol=2**-6, atol=2**-5)

    def test_the_operator_of_gradients_is_what_pytorch_expects(self):
        q, k = (torch.randn(2, rows, heads, 16).to(torch.bfloat16) for rows, heads in ((5, 4), (7, 2)))
        wanting = (q.clone().requires_grad_(), k.clone().requires_grad_(), k.clone().requires_grad_())
        results = torch.library.opcheck(torch.ops.kiln.attention, wanting, {"causal": True})
        self.assertEqual(set(results.values()), {"SUCCESS"})
        out, lse = torch.ops.kiln.attention(q, k, k)
        results = torch.library.opcheck(torch.ops.kiln.attention_backward, (out, q, k, k, out, lse))
        self.assertEqual(set(results.values()), {"SUCCESS"})

    def test_slopes_of_any_strides(self):
        q = torch.randn(1, 5, 2, 16).to(torch.bfloat16).requires_grad_()
        out, _ = torch.ops.kiln.attention(q, q, q)
        out.sum().backward()  # a slope that is one number everywhere
        found = q.grad.clone()
        q.grad = None
        out, _ = torch.ops.kiln.attention(q, q, q)
        out.backward(torch.ones_like(out))
        torch.testing.assert_close(found, q.grad)

    def test_a_second_derivative_is_refused(self):
        q = torch.randn(1, 5, 2, 16).to(torch.bfloat16).requires_grad_()
        out, _ = torch.ops.kiln.attention(q, q, q)
        (slope,) = torch.autograd.grad(out.sum(), q, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "kiln.ops.attention has no second derivatives: detach"):
            slope.sum().backward()

    def test_tensors_of_this_cpu_are_refused_by_ops(self):
        x = torch.ones(1, 4, 2, 64, dtype=torch.bfloat16)
        with self.assertRaisesRegex(ValueError, "`q` lies in this CPU's memory"):
            kiln.ops.attention(x, x, x)
        self.assertTrue((kiln.ops.attention.reference(x, x, x) == 1).all())


if __name__ == "__main__":
    launch_test.main()
