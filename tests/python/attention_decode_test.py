#!/usr/bin/env python3
"""kiln.ops.attention_decode without a GPU: what is computed, what is refused, and what the library is asked for.

    PYTHONPATH=build/release/python tests/python/attention_decode_test.py --driver build/release/src/gemm/fake_cuda

As attention_test.py. On a GPU the same is tests/gpu/attention_decode_test.py.
"""

import ctypes
import math
import unittest
from unittest import mock

import numpy as np

import launch_test
from attention_test import expected_of, paper_allocator, randoms
from launch_test import CudaArray, memory

import kiln
from kiln import _core

try:
    import torch

    import kiln.torch
except ImportError:
    torch = None


def in_pages(generator, lengths, page_size, each, key_heads, depth):
    """A cache of pages in any order, not a number where it is not in use, and its table, of pages that are none there."""
    batch = len(lengths)
    k, v = (np.full((batch * each, page_size, key_heads, depth), np.nan, np.float16) for _ in range(2))
    table = np.full((batch, each), -1, np.int32)
    free = list(generator.permutation(batch * each))
    for b, length in enumerate(lengths):
        for t in range(length):
            if t % page_size == 0:
                table[b, t // page_size] = free.pop()
            for x in (k, v):
                x[table[b, t // page_size], t % page_size] = generator.standard_normal((key_heads, depth))
    return k, v, table


def of_sequence(cache, table, b, length):
    """Its keys, [1, keys, key heads, depth]."""
    pages = cache[[b]] if table is None else cache[table[b][table[b] >= 0]]
    return pages.reshape(1, -1, *cache.shape[2:])[:, :length]


def wanted_of(q, k, v, lengths, table=None, causal=True, scale=None):
    out, lse = np.zeros(q.shape), np.full((q.shape[0], q.shape[2], q.shape[1]), -np.inf)
    for b, length in enumerate(lengths):
        if length > 0:
            keys, values = (of_sequence(x, table, b, length) for x in (k, v))
            out[b], lse[b] = (x[0] for x in expected_of(q[[b]], keys, values, causal, scale))
    return out, lse


class FormulaTest(unittest.TestCase):
    def test_pages(self):
        generator = np.random.default_rng(3)
        lengths = np.array([9, 0, 16, 1], np.int32)
        k, v, table = in_pages(generator, lengths, 4, 5, 2, 16)
        for causal, queries, scale in ((True, 1, None), (True, 3, 0.3), (False, 2, 2.0)):
            q = randoms(4, queries, 6, 16)
            how = {"causal": causal, "scale": scale}
            out, lse = kiln.ops.attention_decode.reference(q, k, v, lengths, table, return_lse=True, **how)
            wanted, wanted_lse = wanted_of(q, k, v, lengths, table, **how)
            self.assertEqual((out.dtype, lse.dtype), (np.float16, np.float32))
            np.testing.assert_allclose(out.astype(float), wanted, atol=2**-9)
            np.testing.assert_allclose(lse, wanted_lse, rtol=1e-5, atol=1e-5)

    def test_rows_of_each_sequence(self):
        q, k, v = randoms(3, 2, 4, 8), randoms(3, 10, 2, 8, seed=1), randoms(3, 10, 2, 8, seed=2)
        lengths = np.array([10, 3, 25], np.int32)  # the last one has room for 10
        out = np.empty_like(q)
        self.assertIs(kiln.ops.attention_decode.reference(q, k, v, lengths, out=out), out)
        np.testing.assert_allclose(out.astype(float), wanted_of(q, k, v, [10, 3, 10])[0], atol=2**-9)


class RefusalTest(unittest.TestCase):
    """Without a driver: what is wrong is said before one is asked for."""

    def setUp(self):
        for each in (mock.patch.object(_core, "pointer_device", return_value=(0, "")), mock.patch.object(_core, "order", return_value="")):
            each.start()
            self.addCleanup(each.stop)
        self.lengths = self.array(2, dtype=np.int32)
        self.table = self.array(2, 3, dtype=np.int32)
        self.q = self.array(2, 1, 4, 64)

    def array(self, *shape, dtype=np.float16):
        return CudaArray(memory(*shape, dtype=dtype))

    def refused(self, error, text, *arguments, **named):
        with self.assertRaisesRegex(error, text):
            kiln.ops.attention_decode(*arguments, **named)

    def test_places_and_types(self):
        here, cache = memory(2, 1, 4, 64, dtype=np.float16), self.array(2, 16, 2, 64)
        self.refused(ValueError, "`q` lies in this CPU's memory.*`kiln.ops.attention_decode.reference`", here, cache, cache, self.lengths)
        self.refused(TypeError, "`lengths` needs a tensor, and None", self.q, cache, cache, None)
        wide = self.array(2, 16, 2, 64, dtype=np.float32)
        self.refused(TypeError, "`q` holds f16 and `k_cache` f32", self.q, wide, cache, self.lengths)
        self.refused(TypeError, "`causal` is 1", self.q, cache, cache, self.lengths, causal=1)

    def test_shapes(self):
        cache = self.array(2, 16, 2, 64)
        self.refused(ValueError, r"`q` has the shape \[2, 4, 64\], and \[batch, queries", self.array(2, 4, 64), cache, cache, self.lengths)
        self.refused(ValueError, r"`k_cache` has the shape .* and `v_cache`", self.q, cache, self.array(2, 8, 2, 64), self.lengths)
        other = self.array(2, 16, 3, 64)
        self.refused(ValueError, r"`q` has 4 heads and `k_cache` has 3", self.q, other, other, self.lengths)
        other = self.array(9, 16, 2, 64)
        self.refused(ValueError, "`q` has 2 batches and `k_cache` has 9: give as many, or a `page_table`", self.q, other, other, self.lengths)
        long = self.array(2, dtype=np.int64)
        self.refused(ValueError, r"`lengths` is s64 \[2\], and .* s32 \[2\]", self.q, cache, cache, long)
        self.refused(ValueError, r"`page_table` is s32 \[3, 2\]", self.q, other, other, self.lengths, self.array(3, 2, dtype=np.int32))
        self.refused(ValueError, r"`out` is f16 \[2, 1, 2, 64\]", self.q, cache, cache, self.lengths, out=self.array(2, 1, 2, 64))

    @mock.patch("kiln._calls.allocator", return_value=lambda: None)
    def test_strides(self, _):
        cache = self.array(2, 16, 2, 64)
        turned = CudaArray(memory(2, 4, 3, 64, dtype=np.float16).transpose(0, 2, 1, 3))
        self.refused(ValueError, r"`q` of shape .* has to be without gaps", turned, cache, cache, self.lengths)
        odd = CudaArray(memory(2, 16, 2, 68, dtype=np.float16)[..., :64])
        self.refused(ValueError, "`k_cache` of shape .* multiples of 16 bytes", self.q, odd, odd, self.lengths)


class PaperDecode:
    """Computes what kiln/attention_decode.h says of a problem, from its fields and the operands' addresses alone."""

    workspace = 48

    def __init__(self, fields):
        self.fields = fields

    def at(self, address, shape, strides=None, dtype=np.float16):
        strides = strides or [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        elements = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
        kind = {np.float16: ctypes.c_uint16, np.int32: ctypes.c_int32, np.float32: ctypes.c_float}[dtype]
        flat = np.ctypeslib.as_array((kind * elements).from_address(address)).view(dtype)
        return np.lib.stride_tricks.as_strided(flat, shape, [flat.itemsize * step for step in strides])

    def launch(self, addresses, workspace, _stream):
        assert workspace != 0
        given = self.fields
        batch, depth = given["batch"], given["depth"]
        paged = "page_size" in given
        cache = (given["pages"], given["page_size"]) if paged else (batch, given["keys"])
        cache += (given["key_heads"], depth)
        query = (batch, given["queries"], given["heads"], depth)
        q, o = self.at(addresses[0], query), self.at(addresses[5], query)
        k, v = (self.at(addresses[i], cache, [*given[name], 1]) for i, name in ((1, "k"), (2, "v")))
        lengths = self.at(addresses[3], (batch,), dtype=np.int32)
        assert paged == (addresses[4] != 0)
        table = self.at(addresses[4], (batch, given["pages_of_sequence"]), dtype=np.int32) if paged else None
        lse = self.at(addresses[6], (batch, given["heads"], given["queries"]), dtype=np.float32)
        o[...], lse[...] = wanted_of(q, k, v, lengths, table, given["causal"], addresses[7])
        return 0, ""


class LayoutTest(unittest.TestCase):
    """However tensors lie, the library is told so: checked by one of paper."""

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_attention_decode", lambda fields, device: (0, "", PaperDecode(dict(fields))))
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_the_problem_is_that_of_the_tensors(self, *_):
        generator = np.random.default_rng(7)
        for _ in range(40):
            batch, queries, key_heads = (int(each) for each in generator.choice([1, 2, 5], 3))
            heads, depth = key_heads * int(generator.integers(1, 3)), int(generator.choice([8, 16]))
            page_size, each = int(generator.choice([1, 4, 8])), int(generator.integers(1, 4))
            lengths = memory(batch, dtype=np.int32)
            lengths[...] = generator.integers(0, page_size * each + 1, batch)
            k, v, table = in_pages(generator, lengths, page_size, each, key_heads, depth)
            paged = bool(generator.integers(0, 2))
            if not paged:
                k, v, table = k[:batch], v[:batch], None
                k[...], v[...] = (generator.standard_normal(k.shape) for _ in range(2))
                lengths[...] = np.minimum(lengths, page_size)
            both = memory(len(k), 2, key_heads, page_size, depth, dtype=np.float16)  # keys and values of a page in one place
            both[:, 0], both[:, 1] = k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3)
            q = memory(batch, queries, heads, depth, dtype=np.float16)
            q[...] = generator.standard_normal(q.shape)
            tensors = [q, both[:, 0].transpose(0, 2, 1, 3), both[:, 1].transpose(0, 2, 1, 3), lengths]
            if paged:
                tensors.append(memory(*table.shape, dtype=np.int32))
                tensors[-1][...] = table
            how = {"causal": bool(generator.integers(0, 2)), "scale": float(generator.choice([0.25, 1.0]))}
            wanted, wanted_lse = wanted_of(q, k, v, lengths, table, **how)
            arrays = [CudaArray(each) for each in tensors]
            made, lse = kiln.ops.attention_decode(*arrays, return_lse=True, **how)
            np.testing.assert_allclose(made.array.astype(float), wanted, atol=2**-8)
            np.testing.assert_allclose(lse.array, wanted_lse, rtol=1e-5, atol=1e-5)
            out = CudaArray(memory(*q.shape, dtype=np.float16))
            self.assertIs(kiln.ops.attention_decode(*arrays, out=out, **how), out)
            np.testing.assert_array_equal(made.array, out.array)
            with self.assertRaisesRegex(ValueError, "`out`, which attention writes, shares memory with `q`"):
                kiln.ops.attention_decode(*arrays, out=arrays[0], **how)


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

    def test_a_call_is_its_launches(self):
        array = lambda *shape, dtype=np.float16: CudaArray(memory(*shape, dtype=dtype))
        lengths, table = array(2, dtype=np.int32), array(2, 50, dtype=np.int32)
        q, cache = array(2, 1, 8, 64), array(120, 16, 2, 64)
        for _ in range(2):
            before = launch_test.DRIVER.launches
            out, lse = kiln.ops.attention_decode(q, cache, cache, lengths, table, return_lse=True)
            self.assertEqual(launch_test.DRIVER.launches, before + 2)
        self.assertEqual((out.array.shape, lse.array.shape), ((2, 1, 8, 64), (2, 8, 1)))
        launch_test.DRIVER.capturing = True
        kiln.ops.attention_decode(q, cache, cache, lengths, table)
        with self.assertRaisesRegex(kiln.DeviceError, "attention_decode is not prepared for these shapes"):
            kiln.ops.attention_decode(q, cache, cache, lengths, table, scale=2.0)
        launch_test.DRIVER.capturing = False
        odd = array(120, 20, 2, 64)
        with self.assertRaisesRegex(ValueError, "pages of 20 keys, it takes multiples of 8"):
            kiln.ops.attention_decode(q, odd, odd, lengths, table)


@unittest.skipIf(torch is None, "no PyTorch")
class TorchTest(unittest.TestCase):
    def test_the_operator_is_what_pytorch_expects(self):
        q, cache = torch.randn(2, 1, 4, 16).to(torch.bfloat16), torch.randn(6, 8, 2, 16).to(torch.bfloat16)
        lengths = torch.tensor([9, 16], dtype=torch.int32)
        table = torch.tensor([[3, 1], [0, 5]], dtype=torch.int32)
        for given in ((q, cache, cache, lengths, table), (q, cache[:2], cache[:2], lengths)):
            results = torch.library.opcheck(torch.ops.kiln.attention_decode, given, {"scale": 0.5})
            self.assertEqual(set(results.values()), {"SUCCESS"})
        out, _ = torch.ops.kiln.attention_decode(q, cache, cache, lengths, table)
        keys = cache[table[1].long()].reshape(1, 16, 2, 16).double().transpose(1, 2)
        wanted = torch.nn.functional.scaled_dot_product_attention(q[1:].double().transpose(1, 2), keys, keys, enable_gqa=True)
        torch.testing.assert_close(out[1:].double(), wanted.transpose(1, 2), rtol=2**-7, atol=2**-7)

    def test_a_gradient_is_refused(self):
        q, cache = torch.randn(1, 1, 4, 16).to(torch.bfloat16).requires_grad_(), torch.randn(1, 8, 2, 16).to(torch.bfloat16)
        out, _ = torch.ops.kiln.attention_decode(q, cache, cache, torch.tensor([8], dtype=torch.int32))
        with self.assertRaisesRegex(NotImplementedError, "attention_decode has no gradients: detach"):
            out.sum().backward()


if __name__ == "__main__":
    launch_test.main()
