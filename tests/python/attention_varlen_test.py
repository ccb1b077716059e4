#!/usr/bin/env python3
"""kiln.ops.attention_varlen and its gradients without a GPU: what is computed, what is refused, and what the library is asked for.

    PYTHONPATH=build/release/python tests/python/attention_varlen_test.py --driver build/release/src/gemm/fake_cuda

As attention_test.py. On a GPU the same is tests/gpu/attention_varlen_test.py.
"""

import ctypes
import math
import unittest
from unittest import mock

import numpy as np

import launch_test
from attention_test import WAYS, expected_gradients, expected_of, paper_allocator, randoms
from launch_test import CudaArray, memory

import kiln
from kiln import _core

try:
    import torch

    import kiln.torch
except ImportError:
    torch = None


def wanted_of(q, k, v, starts_q, starts_k, **how):
    """Of each sequence by itself; rows of none are zeros, and minus infinity."""
    out, lse = np.zeros((*q.shape[:2], v.shape[2])), np.full((q.shape[1], q.shape[0]), -np.inf)
    for begin, end, first, last in zip(starts_q, starts_q[1:], starts_k, starts_k[1:]):
        found = expected_of(q[None, begin:end], k[None, first:last], v[None, first:last], **how)
        out[begin:end], lse[:, begin:end] = found[0][0], found[1][0]
    return out, lse


def wanted_gradients(dout, q, k, v, starts_q, starts_k, **how):
    made = [np.zeros(x.shape) for x in (q, k, v)]
    for begin, end, first, last in zip(starts_q, starts_q[1:], starts_k, starts_k[1:]):
        found = expected_gradients(*(x[None, begin:end] for x in (dout, q)), *(x[None, first:last] for x in (k, v)), **how)
        for x, part, rows in zip(made, found, (slice(begin, end), slice(first, last), slice(first, last))):
            x[rows] = part[0]
    return made


def starts_of(*lengths, front=0):
    return np.cumsum([front, *lengths], dtype=np.int32)


class FormulaTest(unittest.TestCase):
    def test_values(self):
        starts_q, starts_k = starts_of(5, 0, 7, 3, 6), starts_of(7, 4, 4, 0, 6, front=2)
        q, k, v = randoms(23, 4, 16), randoms(25, 2, 16, seed=1), randoms(25, 2, 24, seed=2)
        k[:2] = v[:2] = k[9:13] = v[9:13] = np.nan  # of no sequence, and of one without queries
        for *_, how in WAYS:
            out, lse = kiln.ops.attention_varlen.reference(q, k, v, starts_q, starts_k, return_lse=True, **how)
            wanted, wanted_lse = wanted_of(q, k, v, starts_q, starts_k, **how)
            self.assertEqual((out.dtype, lse.dtype), (np.float16, np.float32))
            np.testing.assert_allclose(out.astype(float), wanted, atol=2**-9)
            np.testing.assert_allclose(lse, wanted_lse, rtol=1e-5, atol=1e-5)

    def test_gradients(self):
        starts_q, starts_k = starts_of(5, 0, 7, 3, 6, front=1), starts_of(7, 4, 4, 0, 6, front=2)
        q, dout = randoms(24, 4, 16), randoms(24, 4, 16, seed=3)
        k, v = randoms(25, 2, 16, seed=1), randoms(25, 2, 16, seed=2)
        k[:2] = v[:2] = q[0] = np.nan
        for *_, how in WAYS:
            out, lse = kiln.ops.attention_varlen.reference(q, k, v, starts_q, starts_k, return_lse=True, **how)
            out[0] = dout[0] = lse[:, 0] = np.nan
            made = kiln.ops.attention_varlen_backward.reference(dout, q, k, v, out, lse, starts_q, starts_k, **how)
            for found, wanted in zip(made, wanted_gradients(dout, q, k, v, starts_q, starts_k, **how)):
                self.assertEqual((found.dtype, found.shape), (np.float16, wanted.shape))
                np.testing.assert_allclose(found.astype(float), wanted, atol=2**-6)

    def test_rows_of_no_sequence_stay(self):
        q, out = randoms(9, 2, 8), np.full((9, 2, 8), 7, np.float16)
        starts = starts_of(3, 4, front=1)
        self.assertIs(kiln.ops.attention_varlen.reference(q, q, q, starts, starts, out=out), out)
        self.assertTrue((out[[0, 8]] == 7).all())
        np.testing.assert_allclose(out[1:8].astype(float), wanted_of(q, q, q, starts, starts)[0][1:8], atol=2**-9)

    def test_numbers_beyond_the_rows(self):
        q = randoms(9, 2, 8)
        found = kiln.ops.attention_varlen.reference(q, q, q, *[np.array([-3, 4, 1 << 30], np.int32)] * 2)
        np.testing.assert_array_equal(found, kiln.ops.attention_varlen.reference(q, q, q, *[starts_of(4, 5)] * 2))


class RefusalTest(unittest.TestCase):
    """Without a driver: what is wrong is said before one is asked for."""

    def setUp(self):
        for each in (mock.patch.object(_core, "pointer_device", return_value=(0, "")), mock.patch.object(_core, "order", return_value="")):
            each.start()
            self.addCleanup(each.stop)
        self.q, self.k, self.starts = self.array(40, 4, 64), self.array(30, 2, 64), self.array(3, dtype=np.int32)

    def array(self, *shape, dtype=np.float16):
        return CudaArray(memory(*shape, dtype=dtype))

    def refused(self, error, text, q=None, k=None, v=None, starts_q=None, starts_k=None, **named):
        k = k or self.k
        with self.assertRaisesRegex(error, text):
            kiln.ops.attention_varlen(q or self.q, k, v or k, starts_q or self.starts, starts_k or self.starts, **named)

    def test_places_and_types(self):
        here = memory(40, 4, 64, dtype=np.float16)
        with self.assertRaisesRegex(ValueError, "`q` lies in this CPU's memory.*`kiln.ops.attention_varlen.reference`"):
            kiln.ops.attention_varlen(here, self.k, self.k, self.starts, self.starts)
        with self.assertRaisesRegex(TypeError, "`cu_seqlens_k` needs a tensor, and None"):
            kiln.ops.attention_varlen(self.q, self.k, self.k, self.starts, None)
        on_cpu = memory(3, dtype=np.int32)
        with self.assertRaisesRegex(ValueError, "`cu_seqlens_q` lies in this CPU's memory"):
            kiln.ops.attention_varlen(self.q, self.k, self.k, on_cpu, self.starts)
        self.refused(TypeError, "`q` holds f16 and `k` f32", k=self.array(30, 2, 64, dtype=np.float32))
        self.refused(TypeError, "`causal` is 1", causal=1)
        self.refused(ValueError, "`scale` is -1.0", scale=-1)

    def test_shapes(self):
        batch = self.array(2, 20, 4, 64)
        self.refused(ValueError, r"`q` has the shape \[2, 20, 4, 64\], and \[queries of all sequences.*`kiln.ops.attention`", batch)
        self.refused(ValueError, r"`k` has the shape .* and `v`", v=self.array(29, 2, 64))
        self.refused(ValueError, r"`q` .* has 64 elements of depth and `k` .* has 32", k=self.array(30, 2, 32))
        self.refused(ValueError, "`q` has 4 heads and `k` has 3", k=self.array(30, 3, 64))
        self.refused(ValueError, "`k` has the shape .*: one key", k=self.array(0, 2, 64))
        self.refused(ValueError, r"`out` has the shape \[40, 2, 64\], and \[40, 4, 64\]", out=self.array(40, 2, 64))

    def test_gradients(self):
        given = {"dout": self.q, "q": self.q, "k": self.k, "v": self.k, "out": self.q, "lse": self.array(4, 40, dtype=np.float32)}
        given |= {"cu_seqlens_q": self.starts, "cu_seqlens_k": self.starts}

        def refused(error, text, **others):
            with self.assertRaisesRegex(error, text):
                kiln.ops.attention_varlen_backward(**{**given, **others})

        refused(ValueError, r"`dout` has the shape \[39, 4, 64\], and \[40, 4, 64\]", dout=self.array(39, 4, 64))
        refused(TypeError, "`q` holds f16 and `dout` f32", dout=self.array(40, 4, 64, dtype=np.float32))
        refused(ValueError, r"`lse` is f32 \[40, 4\], and what attention_varlen gives", lse=self.array(40, 4, dtype=np.float32))
        refused(TypeError, "`lse` needs a tensor, and None", lse=None)
        refused(ValueError, "`cu_seqlens_q` is of 3 sequences", cu_seqlens_q=self.array(4, dtype=np.int32))

    def test_starts(self):
        self.refused(ValueError, r"`cu_seqlens_q` is s64 \[3\], and .* s32 \[sequences \+ 1\]", starts_q=self.array(3, dtype=np.int64))
        self.refused(ValueError, r"`cu_seqlens_k` is s32 \[1\], and where each", starts_k=self.array(1, dtype=np.int32))
        self.refused(ValueError, r"`cu_seqlens_k` is s32 \[3, 1\]", starts_k=self.array(3, 1, dtype=np.int32))
        self.refused(ValueError, "`cu_seqlens_q` is of 2 sequences and `cu_seqlens_k` of 4", starts_k=self.array(5, dtype=np.int32))

    @mock.patch("kiln._calls.allocator", return_value=lambda: None)
    def test_strides(self, _):
        spread = CudaArray(memory(6, dtype=np.int32)[::2])
        self.refused(ValueError, "`cu_seqlens_q` of shape .* has to be without gaps", starts_q=spread)
        wide = CudaArray(memory(40, 4, 128, dtype=np.float16)[..., :64])
        self.refused(ValueError, "`out` of shape .* has to be without gaps", out=wide)
        odd = CudaArray(memory(30, 2, 68, dtype=np.float16)[..., :64])
        self.refused(ValueError, "`k` of shape .* multiples of 16 bytes", k=odd)


class PaperVarlen:
    """Computes what kiln/attention.h says of a problem of sequences, from its fields and the operands' addresses alone."""

    workspace = 0

    def __init__(self, fields):
        self.fields = fields

    def at(self, address, shape, strides=None, dtype=np.float16):
        strides = strides or [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        elements = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
        kind = {np.float16: ctypes.c_uint16, np.int32: ctypes.c_int32, np.float32: ctypes.c_float}[dtype]
        flat = np.ctypeslib.as_array((kind * elements).from_address(address)).view(dtype)
        return np.lib.stride_tricks.as_strided(flat, shape, [flat.itemsize * step for step in strides])

    def launch(self, addresses, _workspace, _stream):
        given = self.fields
        rows = {"q": ("queries", "heads", "depth"), "k": ("keys", "key_heads", "depth"), "v": ("keys", "key_heads", "value_depth")}
        q, k, v = (
            self.at(addresses[i], [given[each] for each in rows[name]], [*given[name][1:], 1])
            for i, name in enumerate(("q", "k", "v"))
        )
        o = self.at(addresses[3], (given["queries"], given["heads"], given["value_depth"]))
        lse = self.at(addresses[4], (given["heads"], given["queries"]), dtype=np.float32)
        starts = [self.at(addresses[i], (given["sequences"] + 1,), dtype=np.int32) for i in (6, 7)]
        window = (given["left"], given["right"]) if given.get("window") else None
        how = dict(causal=given["causal"], scale=addresses[5], window=window, soft_cap=given["soft_cap"])
        o[...], lse[...] = wanted_of(q, k, v, *starts, **how)
        return 0, ""


class LayoutTest(unittest.TestCase):
    """However tensors lie, the library is told so: checked by one of paper."""

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_attention", lambda fields, device: (0, "", PaperVarlen(dict(fields))))
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_the_problem_is_that_of_the_tensors(self, *_):
        generator = np.random.default_rng(7)
        for number in range(30):
            lengths = [generator.integers(0, 9, 4) for _ in range(2)]
            starts = [memory(5, dtype=np.int32) for _ in range(2)]
            for each, length in zip(starts, lengths):
                each[...] = starts_of(*length)
            rows = int(max(starts[0][-1], starts[1][-1], 1))
            packed = memory(rows, 4, 3, 16, dtype=np.float16)  # q, k and v of a head side by side
            packed[...] = generator.standard_normal(packed.shape)
            q, k, v = (packed[:, :, i] for i in range(3))
            k, v = k[:, ::2], v[:, ::2]
            how = WAYS[number % len(WAYS)][2]
            wanted, wanted_lse = wanted_of(q, k, v, *starts, **how)
            arrays = [CudaArray(each) for each in (q, k, v, *starts)]
            made, lse = kiln.ops.attention_varlen(*arrays, return_lse=True, **how)
            np.testing.assert_allclose(made.array.astype(float), wanted, atol=2**-8)
            np.testing.assert_allclose(lse.array, wanted_lse, rtol=1e-5, atol=1e-5)
            out = CudaArray(memory(*q.shape, dtype=np.float16))
            self.assertIs(kiln.ops.attention_varlen(*arrays, out=out, **how), out)
            np.testing.assert_array_equal(made.array, out.array)
        with self.assertRaisesRegex(ValueError, "`out`, which attention writes, shares memory with `k`"):
            dense = CudaArray(memory(rows, 4, 16, dtype=np.float16))
            kiln.ops.attention_varlen(arrays[0], dense, dense, *arrays[3:], out=dense)


class LaunchTest(unittest.TestCase):
    """Over the driver of paper: real kernels, compiled by NVRTC, that nothing runs."""

    def setUp(self):
        if launch_test.DRIVER is None:
            self.skipTest("no --driver")
        launch_test.DRIVER.capturing = False
        launch_test.DRIVER.launch_status = 0
        patch = mock.patch("kiln._calls.allocator", paper_allocator)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_call_is_its_launch(self):
        array = lambda *shape, dtype=np.float16: CudaArray(memory(*shape, dtype=dtype))
        q, k, starts = array(300, 8, 64), array(280, 2, 64), array(5, dtype=np.int32)
        for _ in range(2):
            before = launch_test.DRIVER.launches
            out, lse = kiln.ops.attention_varlen(q, k, k, starts, starts, causal=True, return_lse=True)
            self.assertEqual(launch_test.DRIVER.launches, before + 1)
        self.assertEqual((out.array.shape, lse.array.shape), ((300, 8, 64), (8, 300)))
        launch_test.DRIVER.capturing = True
        kiln.ops.attention_varlen(q, k, k, starts, starts, causal=True)
        with self.assertRaisesRegex(kiln.DeviceError, "attention_varlen is not prepared for these shapes"):
            kiln.ops.attention_varlen(q, k, k, starts, starts, window=(7, 3))
        launch_test.DRIVER.capturing = False
        with self.assertRaisesRegex(ValueError, "a depth of 32, it takes 64, 96"):
            kiln.ops.attention_varlen(array(300, 8, 32), array(280, 2, 32), array(280, 2, 32), starts, starts)

    def test_gradients_are_three_launches(self):
        array = lambda *shape, dtype=np.float16: CudaArray(memory(*shape, dtype=dtype))
        q, k, starts, lse = array(300, 8, 64), array(280, 2, 64), array(5, dtype=np.int32), array(8, 300, dtype=np.float32)
        for _ in range(2):
            before = launch_test.DRIVER.launches
            made = kiln.ops.attention_varlen_backward(q, q, k, k, q, lse, starts, starts, causal=True)
            self.assertEqual(launch_test.DRIVER.launches, before + 3)
        self.assertEqual([each.array.shape for each in made], [(300, 8, 64), *[(280, 2, 64)] * 2])
        wide = array(300, 8, 192), array(280, 2, 192)
        with self.assertRaisesRegex(ValueError, "a depth of 192, it takes 64, 96, 128 and 256"):
            kiln.ops.attention_varlen_backward(wide[0], wide[0], wide[1], wide[1], wide[0], lse, starts, starts)

    def test_without_queries_nothing_is_launched(self):
        array = lambda *shape, dtype=np.float16: CudaArray(memory(*shape, dtype=dtype))
        q, k, starts = array(0, 8, 64), array(280, 2, 64), array(5, dtype=np.int32)
        before = launch_test.DRIVER.launches
        out, lse = kiln.ops.attention_varlen(q, k, k, starts, starts, return_lse=True)
        self.assertEqual((out.array.shape, lse.array.shape), ((0, 8, 64), (8, 0)))
        self.assertEqual(launch_test.DRIVER.launches, before)


@unittest.skipIf(torch is None, "no PyTorch")
class TorchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.q, self.k = torch.randn(30, 4, 16).to(torch.bfloat16), torch.randn(40, 2, 16).to(torch.bfloat16)
        self.starts = torch.tensor([0, 9, 9, 30], dtype=torch.int32), torch.tensor([0, 11, 15, 40], dtype=torch.int32)

    def test_the_operator_is_what_pytorch_expects(self):
        given = (self.q, self.k, self.k, *self.starts)
        for how in ({}, {"causal": True, "scale": 0.5}, {"window": [3, 1], "soft_cap": 2.0}):
            results = torch.library.opcheck(torch.ops.kiln.attention_varlen, given, how)
            self.assertEqual(set(results.values()), {"SUCCESS"})
        out, lse = torch.ops.kiln.attention_varlen(*given)
        self.assertEqual((out.shape, lse.shape), ((30, 4, 16), (4, 30)))
        q, k = self.q[9:].double().transpose(0, 1), self.k[15:].double().transpose(0, 1)
        wanted = torch.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)
        torch.testing.assert_close(out[9:].double(), wanted.transpose(0, 1), rtol=2**-7, atol=2**-7)

    def test_gradients(self):
        q, k = self.q.clone().requires_grad_(), self.k.clone().requires_grad_()
        slope = torch.randn(30, 4, 16).to(torch.bfloat16)
        out, lse = torch.ops.kiln.attention_varlen(q, k, k, *self.starts, causal=True)
        self.assertFalse(lse.requires_grad)
        out.backward(slope)
        self.assertTrue((k.grad[11:15] == 0).all())  # of the sequence without queries
        whole = q.detach()[9:].double().requires_grad_(), k.detach()[15:].double().requires_grad_()
        scores = torch.einsum("qhd,khd->hqk", whole[0], whole[1].repeat_interleave(2, 1)) / 4
        scores = scores.masked_fill(torch.ones(21, 25).tril(4) == 0, -torch.inf)
        wanted = torch.einsum("hqk,khd->qhd", scores.softmax(-1), whole[1].repeat_interleave(2, 1))
        wanted.backward(slope[9:].double())
        for found, exact in zip((q.grad[9:], k.grad[15:]), whole):
            torch.testing.assert_close(found.double(), exact.grad, rtol=2**-5, atol=2**-5)
        given = (slope, self.q, self.k, self.k, out.detach(), lse, *self.starts)
        results = torch.library.opcheck(torch.ops.kiln.attention_varlen_backward, given, {"causal": True})
        self.assertEqual(set(results.values()), {"SUCCESS"})

    def test_a_second_derivative_is_refused(self):
        q = self.q.clone().requires_grad_()
        out, _ = torch.ops.kiln.attention_varlen(q, self.k, self.k, *self.starts)
        (slope,) = torch.autograd.grad(out.float().square().sum(), q, create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "attention_varlen has no second derivatives: detach"):
            slope.sum().backward()


if __name__ == "__main__":
    launch_test.main()
