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
from launch_test import CudaArray, Float8Array, memory

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


def seen_of(i, queries, keys, causal, window):
    """The keys that query i sees, as a slice."""
    own, (left, right) = i + keys - queries, window or (-1, -1)
    right = 0 if causal else right
    first, last = 0 if left == -1 else max(0, own - left), keys - 1 if right == -1 else min(keys - 1, own + right)
    return slice(first, max(first, last + 1))


def scores_of(q, k, scale, soft_cap):
    scores = (1 / math.sqrt(len(q)) if scale is None else scale) * k @ q
    return soft_cap * np.tanh(scores / soft_cap) if soft_cap else scores


def expected_of(q, k, v, causal=False, scale=None, window=None, soft_cap=None):
    """Row by row, as the formula says it."""
    q, k, v = (each.astype(float) for each in (q, k, v))
    out, lse = np.zeros((*q.shape[:3], v.shape[3])), np.full((q.shape[0], q.shape[2], q.shape[1]), -np.inf)
    for b, i, h in np.ndindex(*q.shape[:3]):
        seen = seen_of(i, q.shape[1], k.shape[1], causal, window)
        if seen.start == seen.stop:
            continue
        group = h // (q.shape[2] // k.shape[2])
        weights = np.exp(scores_of(q[b, i, h], k[b, seen, group], scale, soft_cap))
        out[b, i, h] = weights @ v[b, seen, group] / weights.sum()
        lse[b, h, i] = np.log(weights.sum())
    return out, lse


def e4m3_values():
    """The number that each byte is as f8_e4m3."""
    bits = np.arange(256)
    exponents, fractions = bits >> 3 & 15, bits & 7
    sizes = np.where(exponents == 0, fractions * 2.0**-9, (8 + fractions) * 2.0 ** (exponents - 10.0))
    values = np.where(bits < 128, sizes, -sizes)
    values[[0x7F, 0xFF]] = np.nan
    return values


E4M3 = e4m3_values()


def bf16_bits(values):
    """To the nearest, ties to even."""
    words = values.astype(np.float32).view(np.uint32)
    return (words + 0x7FFF + (words >> 16 & 1) >> 16).astype(np.uint16)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(float)


def meant(q, k, v, factors):
    """What q, k and v are with their factors, of which some may be None."""
    out = []
    for each, factor in zip((q, k, v), factors):
        ones = np.ones((k.shape[0], k.shape[2])) if factor is None else factor
        out.append(each * np.repeat(ones, each.shape[2] // k.shape[2], axis=1)[:, None, :, None])
    return out


# How attention is called in tests of values, and of how many queries and keys.
WAYS = (
    (5, 7, {}),
    (6, 6, {"causal": True, "scale": 0.3}),
    (7, 4, {"causal": True}),
    (3, 9, {"causal": True, "scale": 2.0}),
    (6, 8, {"window": (2, 1)}),
    (8, 5, {"window": (1, -1)}),
    (5, 8, {"window": (-1, 2), "soft_cap": 0.5}),
    (7, 7, {"window": (3, 9), "causal": True, "scale": 0.7, "soft_cap": 3.0}),
    (9, 4, {"window": [0, 0]}),
)


class FormulaTest(unittest.TestCase):
    def test_values(self):
        for queries, keys, how in WAYS:
            q = randoms(2, queries, 4, 16)
            k, v = randoms(2, keys, 2, 16, seed=1), randoms(2, keys, 2, 24, seed=2)
            out, lse = kiln.ops.attention.reference(q, k, v, return_lse=True, **how)
            wanted, wanted_lse = expected_of(q, k, v, **how)
            self.assertEqual((out.dtype, lse.dtype), (np.float16, np.float32))
            np.testing.assert_allclose(out.astype(float), wanted, atol=2**-9)
            np.testing.assert_allclose(lse, wanted_lse, rtol=1e-5, atol=1e-5)

    @unittest.skipIf(ml_dtypes is None, "no ml_dtypes")
    def test_values_of_8_bits(self):
        given = [randoms(2, rows, heads, 16, seed=rows).astype(ml_dtypes.float8_e4m3fn) for rows, heads in ((5, 4), (7, 2), (7, 2))]
        factors = [np.random.default_rng(4).uniform(0.5, 2, (3, 2, 2)).astype(np.float32)[i] for i in range(3)]
        for some in (factors, [None] * 3, [None, factors[1], None]):
            named = dict(zip(("q_scale", "k_scale", "v_scale"), some))
            out, lse = kiln.ops.attention.reference(*given, causal=True, return_lse=True, **named)
            wanted, wanted_lse = expected_of(*meant(*(each.astype(float) for each in given), some), causal=True)
            self.assertEqual((out.dtype, lse.dtype), (ml_dtypes.bfloat16, np.float32))
            np.testing.assert_allclose(out.astype(float), wanted, rtol=2**-8)
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


def expected_gradients(dout, q, k, v, causal=False, scale=None, window=None, soft_cap=None):
    """Row by row, as the formula says it, of the exact result."""
    out, lse = expected_of(q, k, v, causal, scale, window, soft_cap)
    dout, q, k, v = (each.astype(float) for each in (dout, q, k, v))
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    for b, i, h in np.ndindex(*q.shape[:3]):
        seen = seen_of(i, q.shape[1], k.shape[1], causal, window)
        if seen.start == seen.stop:
            continue
        group = h // (q.shape[2] // k.shape[2])
        scores = scores_of(q[b, i, h], k[b, seen, group], scale, soft_cap)
        weights = np.exp(scores - lse[b, h, i])
        slopes = weights * (v[b, seen, group] @ dout[b, i, h] - dout[b, i, h] @ out[b, i, h])
        if soft_cap:
            slopes *= 1 - (scores / soft_cap) ** 2
        dv[b, seen, group] += np.outer(weights, dout[b, i, h])
        dk[b, seen, group] += factor * np.outer(slopes, q[b, i, h])
        dq[b, i, h] = factor * slopes @ k[b, seen, group]
    return dq, dk, dv


class GradientFormulaTest(unittest.TestCase):
    def test_values(self):
        for queries, keys, how in WAYS:
            q, dout = randoms(2, queries, 4, 16), randoms(2, queries, 4, 24, seed=3)
            k, v = randoms(2, keys, 2, 16, seed=1), randoms(2, keys, 2, 24, seed=2)
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
        self.refused(TypeError, "`q` holds f32, and attention takes bf16, f16 and f8_e4m3$", wide, wide, wide)
        self.refused(TypeError, "`causal` is 1", x, x, x, causal=1)
        self.refused(TypeError, "`deterministic` is None: True or False", x, x, x, deterministic=None)
        for scale in (0, -1.0, math.inf, math.nan):
            self.refused(ValueError, "`scale` is .*: a finite number above 0", x, x, x, scale=scale)
        for soft_cap in (-1.0, math.inf, math.nan):
            self.refused(ValueError, "`soft_cap` is .*: a finite number above 0", x, x, x, soft_cap=soft_cap)
        for window in (3, (1, 2, 3), (1, 2.0), (True, 0), "12"):
            self.refused(TypeError, r"`window` is .*: a pair of integers \(left, right\)", x, x, x, window=window)
        self.refused(ValueError, r"`window` is \(-2, 0\): 0 and more keys", x, x, x, window=(-2, 0))

    def test_tensors_of_8_bits(self):
        q, k = (Float8Array(memory(2, rows, heads, 64, dtype=np.uint8)) for rows, heads in ((6, 4), (5, 2)))
        wide, factor = self.array(2, 6, 4, 64), self.array(2, 2, dtype=np.float32)
        self.refused(TypeError, "`q` holds f8_e4m3 and `v` f16: all have one type", q, k, self.array(2, 5, 2, 64))
        self.refused(TypeError, "`q` holds f8_e4m3 and `out` f16: bf16 is needed", q, k, k, out=wide)
        self.refused(TypeError, "`q` holds f8_e4m3 and `out` f8_e4m3: bf16 is needed", q, k, k, out=q)
        for name in ("q_scale", "k_scale", "v_scale"):
            self.refused(TypeError, f"`{name}` is 0.5: a tensor f32 .* or None where all are 1", q, k, k, **{name: 0.5})
            self.refused(TypeError, f"`{name}` is a factor of tensors of f8_e4m3, and `q` holds f16", *[wide] * 3, **{name: factor})
            text = rf"`{name}` is {{}}, and a factor of each head of `k`, f32 \[2, 2\], is needed"
            self.refused(ValueError, text.format(r"f32 \[2, 4\]"), q, k, k, **{name: self.array(2, 4, dtype=np.float32)})
            self.refused(ValueError, text.format(r"f32 \[2\]"), q, k, k, **{name: self.array(2, dtype=np.float32)})
            self.refused(ValueError, text.format(r"f16 \[2, 2\]"), q, k, k, **{name: self.array(2, 2)})
            for gaps in (memory(2, 4)[:, :2], memory(2, 2).T):
                self.refused(ValueError, f"`{name}` .* has to be without gaps", q, k, k, **{name: CudaArray(gaps)})
        with self.assertRaisesRegex(TypeError, "positional"):
            kiln.ops.attention(q, k, k, factor)
        odd = Float8Array(memory(2, 5, 2, 72, dtype=np.uint8)[..., :64])
        self.refused(ValueError, "of which 72 elements are 72 bytes, and multiples of 16 bytes", q, k, odd)

    def test_functions_of_16_bits_say_so(self):
        q = Float8Array(memory(2, 6, 4, 64, dtype=np.uint8))
        text = "`q` holds f8_e4m3, and {} takes bf16 and f16: convert all of them, only `attention` has 8 bits"
        out, lse = self.array(2, 6, 4, 64), self.array(2, 4, 6, dtype=np.float32)
        starts, lengths = self.array(2, dtype=np.int32), self.array(2, dtype=np.int32)
        rows = Float8Array(memory(6, 4, 64, dtype=np.uint8))
        with self.assertRaisesRegex(TypeError, text.format("attention_varlen")):
            kiln.ops.attention_varlen(rows, rows, rows, starts, starts)
        with self.assertRaisesRegex(TypeError, text.format("attention_decode")):
            kiln.ops.attention_decode(q, q, q, lengths)
        with self.assertRaisesRegex(TypeError, text.format("attention_backward")):
            kiln.ops.attention_backward(out, q, q, q, out, lse)

    def test_shapes(self):
        x = self.array(2, 6, 4, 64)
        self.refused(ValueError, r"`q` has the shape \[6, 4, 64\].*`.transpose\(1, 2\)`", self.array(6, 4, 64), x, x)
        self.refused(ValueError, r"`k` has the shape .* and `v` \[2, 5, 4, 64\]", x, x, self.array(2, 5, 4, 64))
        self.refused(ValueError, r"`out` has the shape \[2, 6, 4, 64\], and \[2, 6, 4, 32\]", x, x, self.array(2, 6, 4, 32), out=x)
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

    def shape_of(self, name):
        given = self.fields
        rows, heads = ("keys", "key_heads") if name[-1] in "kv" else ("queries", "heads")
        depth = "value_depth" if name in ("v", "o", "dout", "dv") else "depth"
        return tuple(given[each] for each in ("batch", rows, heads, depth))

    def tensor(self, name, address, dtype=np.float16):
        shape, element = self.shape_of(name), np.dtype(dtype).itemsize
        strides = (*self.fields.get(name, (math.prod(shape[1:]), math.prod(shape[2:]), shape[3])), 1)
        elements = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
        flat = np.ctypeslib.as_array((ctypes.c_uint8 * (element * elements)).from_address(address)).view(dtype)
        return np.lib.stride_tricks.as_strided(flat, shape, [element * each for each in strides])

    def how(self, scale):
        given = self.fields
        window = (given["left"], given["right"]) if given.get("window") else None
        return {"causal": given["causal"], "scale": scale, "window": window, "soft_cap": given["soft_cap"]}

    def launch(self, addresses, _workspace, _stream):
        q, k, v, o = (self.tensor(name, address) for name, address in zip("qkvo", addresses))
        out, lse = expected_of(q, k, v, **self.how(addresses[5]))
        o[...] = out
        flat = np.ctypeslib.as_array((ctypes.c_float * lse.size).from_address(addresses[4]))
        flat[...] = lse.reshape(-1)
        return 0, ""


class PaperAttentionOf8Bits(PaperAttention):
    """The same of tensors of 8 bits."""

    workspace = 80

    def factor(self, address):
        shape = (self.fields["batch"], self.fields["key_heads"])
        if address == 0:
            return None
        return np.ctypeslib.as_array((ctypes.c_float * math.prod(shape)).from_address(address)).reshape(shape)

    def launch(self, addresses, workspace, _stream):
        assert workspace != 0 and self.fields["type"] == "f8_e4m3"
        given = (E4M3[self.tensor(name, address, np.uint8)] for name, address in zip("qkv", addresses))
        out, lse = expected_of(*meant(*given, [self.factor(each) for each in addresses[8:]]), **self.how(addresses[5]))
        self.tensor("o", addresses[3], np.uint16)[...] = bf16_bits(out)
        np.ctypeslib.as_array((ctypes.c_float * lse.size).from_address(addresses[4]))[...] = lse.reshape(-1)
        return 0, ""


class PaperGradients(PaperAttention):
    """The same of gradients."""

    workspace = 48

    def launch(self, addresses, workspace, _stream):
        how = self.how(addresses[9])
        assert workspace != 0
        q, k, v, o = (self.tensor(name, address) for name, address in zip("qkvo", addresses))
        out, lse = expected_of(q, k, v, **how)
        np.testing.assert_allclose(o.astype(float), out, atol=2**-8)
        flat = np.ctypeslib.as_array((ctypes.c_float * lse.size).from_address(addresses[4]))
        np.testing.assert_allclose(flat.reshape(lse.shape), lse, rtol=1e-5, atol=1e-5)
        made = expected_gradients(self.tensor("dout", addresses[5]), q, k, v, **how)
        for name, address, each in zip(("dq", "dk", "dv"), addresses[6:], made):
            self.tensor(name, address)[...] = each
        return 0, ""


def paper_allocator(_like, _device, dtype, shape, _what):
    kinds = {"f16": np.float16, "f32": np.float32, "u8": np.uint8, "bf16": np.uint16}
    return lambda: CudaArray(memory(*shape, dtype=kinds[dtype]))


class LayoutTest(unittest.TestCase):
    """However tensors lie, the library is told so: checked by one of paper."""

    def lying(self, generator, *shape, dtype=np.float16):
        """Random elements, dimensions but the last in a random order, with gaps behind rows of a depth."""
        order = [int(each) for each in generator.permutation(3)]
        unit = 16 // np.dtype(dtype).itemsize
        whole = memory(*(shape[each] for each in order), shape[3] + unit * int(generator.integers(0, 3)), dtype=dtype)
        part = whole[..., : shape[3]].transpose(*np.argsort(order), 3)
        if dtype == np.uint8:  # e4m3, below 16
            part[...] = generator.integers(0, 0x58, shape) | generator.integers(0, 2, shape) << 7
            return Float8Array(part)
        part[...] = generator.standard_normal(shape)
        return CudaArray(part)

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch.object(_core, "prepare_attention", lambda fields, device: (0, "", PaperAttentionOf8Bits(dict(fields))))
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch("kiln._calls.know", lambda value: False)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_the_problem_of_8_bits_is_that_of_the_tensors(self, *_):
        generator = np.random.default_rng(9)
        for _ in range(40):
            batch, queries, keys, key_heads = (int(each) for each in generator.choice([1, 2, 5], 4))
            heads = key_heads * int(generator.integers(1, 3))
            depth = int(generator.choice([16, 32]))
            q = self.lying(generator, batch, queries, heads, depth, dtype=np.uint8)
            k, v = (self.lying(generator, batch, keys, key_heads, depth, dtype=np.uint8) for _ in range(2))
            factors = {}
            for name in generator.permutation(["q_scale", "k_scale", "v_scale"])[: int(generator.integers(0, 4))]:
                factors[str(name)] = memory(batch, key_heads)
                factors[str(name)][...] = generator.uniform(0.25, 2, (batch, key_heads))
            how = {"causal": bool(generator.integers(0, 2)), "scale": float(generator.choice([0.0625, 0.25]))}
            how |= {"window": tuple(int(each) for each in generator.integers(-1, 4, 2))}
            numbers = (E4M3[each.array] for each in (q, k, v))
            wanted, wanted_lse = expected_of(*meant(*numbers, [factors.get(each) for each in ("q_scale", "k_scale", "v_scale")]), **how)
            given = {name: CudaArray(each) for name, each in factors.items()}
            out, lse = kiln.ops.attention(q, k, v, return_lse=True, **given, **how)
            np.testing.assert_array_equal(out.array, bf16_bits(wanted))
            np.testing.assert_allclose(lse.array, wanted_lse, rtol=1e-5, atol=1e-5)

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
            heads = key_heads * int(generator.integers(1, 3))
            depth, values = (int(each) for each in generator.choice([8, 16], 2))
            q, out = (self.lying(generator, batch, queries, heads, each) for each in (depth, values))
            k, v = (self.lying(generator, batch, keys, key_heads, each) for each in (depth, values))
            how = {"causal": bool(generator.integers(0, 2)), "scale": float(generator.choice([0.25, 1.0]))}
            how |= {"window": tuple(int(each) for each in generator.integers(-1, 4, 2)), "soft_cap": float(generator.choice([0, 2]))}
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
            heads = key_heads * int(generator.integers(1, 3))
            depth, values = (int(each) for each in generator.choice([8, 16], 2))
            q, out, dout = (self.lying(generator, batch, queries, heads, each) for each in (depth, values, values))
            k, v = (self.lying(generator, batch, keys, key_heads, each) for each in (depth, values))
            how = {"causal": bool(generator.integers(0, 2)), "scale": float(generator.choice([0.25, 1.0]))}
            how |= {"window": tuple(int(each) for each in generator.integers(-1, 4, 2)), "soft_cap": float(generator.choice([0, 2]))}
            lse = memory(batch, heads, queries, dtype=np.float32)
            out.array[...], lse[...] = expected_of(q.array, k.array, v.array, **how)
            made = kiln.ops.attention_backward(dout, q, k, v, out, CudaArray(lse), **how)
            for each, wanted in zip(made, expected_gradients(dout.array, q.array, k.array, v.array, **how)):
                np.testing.assert_allclose(each.array.astype(float), wanted, rtol=2**-9, atol=2**-9)

    @mock.patch.object(_core, "pointer_device", return_value=(0, ""))
    @mock.patch.object(_core, "order", return_value="")
    @mock.patch.object(_core, "is_capturing", return_value=False)
    @mock.patch("kiln._calls.allocator", paper_allocator)
    @mock.patch.dict("kiln._calls._plans", clear=True)
    def test_sums_in_any_order_are_another_problem(self, *_):
        asked = []

        def prepare(fields, device):
            asked.append(fields["any_order"])
            return 0, "", PaperGradients(dict(fields))

        q, out, dout = (CudaArray(memory(1, 5, 2, 16, dtype=np.float16)) for _ in range(3))
        lse = CudaArray(memory(1, 2, 5, dtype=np.float32))
        out.array[...], lse.array[...] = expected_of(q.array, q.array, q.array)
        with mock.patch.object(_core, "prepare_attention_backward", prepare):
            for how in ({}, {"deterministic": False}, {"deterministic": True}):
                kiln.ops.attention_backward(dout, q, q, q, out, lse, **how)
        self.assertEqual(asked, [False, True])

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

    def test_a_call_of_8_bits_is_two_launches(self):
        seen = []

        @ctypes.CFUNCTYPE(None, ctypes.POINTER(launch_test.FakeLaunch))
        def see(launch):
            given, name = launch.contents, launch.contents.kernel.decode()
            # Behind the maps of q, k, the values across and the result.
            places = (4, 5, 6) if name.startswith("attention") else ()
            seen.append((name, [ctypes.cast(given.parameters[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in places]))

        launch_test.DRIVER.on_launch = ctypes.cast(see, ctypes.c_void_p).value
        self.addCleanup(lambda: setattr(launch_test.DRIVER, "on_launch", 0))
        q, k = (Float8Array(memory(2, rows, heads, 64, dtype=np.uint8)) for rows, heads in ((100, 4), (80, 2)))
        factors = [memory(2, 2) for _ in range(3)]
        named = dict(zip(("q_scale", "k_scale", "v_scale"), map(CudaArray, factors)))
        out, lse = kiln.ops.attention(q, k, k, return_lse=True, **named)
        self.assertEqual((out.array.shape, lse.array.shape), ((2, 100, 4, 64), (2, 4, 100)))
        self.assertEqual(out.array.dtype, np.uint16)
        self.assertEqual([name for name, _ in seen], ["transpose", "attention"])
        self.assertEqual(seen[1][1], [each.ctypes.data for each in factors])
        kiln.ops.attention(q, k, k, causal=True, v_scale=CudaArray(factors[2]))
        of_q, of_k, of_v = seen[-1][1]
        self.assertEqual((of_q, of_v), (of_k, factors[2].ctypes.data))
        with self.assertRaisesRegex(ValueError, "a soft cap with tensors of f8_e4m3.*: convert q, k and v"):
            kiln.ops.attention(q, k, k, soft_cap=5.0)
        narrow = Float8Array(memory(1, 9, 2, 96, dtype=np.uint8))
        with self.assertRaisesRegex(ValueError, "a depth of 96, it takes 64, 128 and 256"):
            kiln.ops.attention(narrow, narrow, narrow)

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
        q = self.array(1, 33, 2, 32)
        with self.assertRaisesRegex(ValueError, "a depth of 32, it takes 64, 96, 128, 192 with values of 128, 192 and 256"):
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

    def of_8_bits(self, rows, heads):
        return torch.randn(2, rows, heads, 16).to(torch.float8_e4m3fn)

    def test_tensors_of_8_bits(self):
        q, k, v = self.of_8_bits(5, 4), self.of_8_bits(7, 2), self.of_8_bits(7, 2)
        factors = [torch.rand(2, 2) + 0.5 for _ in range(3)]
        for some in (factors, [None, factors[1], None]):
            # PyTorch cannot compare tensors of 8 bits, as its test of schemas does.
            tests = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
            results = torch.library.opcheck(torch.ops.kiln.attention, (q, k, v, *some), {"causal": True}, test_utils=tests)
            self.assertEqual(set(results.values()), {"SUCCESS"})
            out, lse = torch.ops.kiln.attention(q, k, v, *some)
            parts = meant(*(each.double().numpy() for each in (q, k, v)), [None if each is None else each.numpy() for each in some])
            wanted, wanted_lse = expected_of(*parts)
            self.assertEqual((out.dtype, lse.dtype), (torch.bfloat16, torch.float32))
            np.testing.assert_allclose(out.double().numpy(), wanted, rtol=2**-8)
            np.testing.assert_allclose(lse.numpy(), wanted_lse, rtol=1e-5, atol=1e-5)
        made = torch.empty(2, 5, 4, 16, dtype=torch.bfloat16)
        self.assertIs(kiln.ops.attention.reference(q, k, v, q_scale=factors[0], out=made), made)
        fast = torch.compile(lambda *given: torch.ops.kiln.attention(*given)[0] * 2, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(fast(q, k, v, *factors), torch.ops.kiln.attention(q, k, v, *factors)[0] * 2)

    def test_tensors_of_8_bits_have_no_gradients(self):
        q, k, factor = self.of_8_bits(5, 4), self.of_8_bits(7, 2), torch.ones(2, 2)
        wanting = q.clone().requires_grad_()
        for given in ((wanting, k, k), (q, k, k, factor.clone().requires_grad_())):
            with self.assertRaisesRegex(NotImplementedError, "attention of f8_e4m3 has no gradients: detach `q`"):
                torch.ops.kiln.attention(*given)
            with torch.no_grad():
                torch.ops.kiln.attention(*given)

    def test_it_is_compiled_whole(self):
        q = torch.randn(1, 5, 2, 16).to(torch.bfloat16)
        fast = torch.compile(lambda q: torch.ops.kiln.attention(q, q, q)[0] * 2, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(fast(q), kiln.ops.attention.reference(q, q, q) * 2)

    def test_gradients_with_windows_and_soft_caps_are_those_of_pytorch(self):
        own = torch.arange(5)[:, None] + 2
        for window, soft_cap in (((2, 1), None), ((1, -1), 0.75), (None, 2.0)):
            made = [torch.randn(2, rows, 2, depth).to(torch.bfloat16) for rows, depth in ((5, 16), (7, 16), (7, 24))]
            given = [each.clone().requires_grad_() for each in made]
            out = kiln.ops.attention.reference(*made, window=window, soft_cap=soft_cap, scale=0.5)
            found, _ = torch.ops.kiln.attention(*given, window=window, soft_cap=soft_cap, scale=0.5)
            torch.testing.assert_close(found, out)
            slope = torch.randn_like(found)
            found.backward(slope)
            exact = [each.double().requires_grad_() for each in made]
            q, k, v = (each.transpose(1, 2) for each in exact)
            scores = 0.5 * q @ k.mT
            scores = soft_cap * torch.tanh(scores / soft_cap) if soft_cap else scores
            left, right = window or (-1, -1)
            seen = (torch.arange(7) >= own - (left if left >= 0 else 9)) & (torch.arange(7) <= own + (right if right >= 0 else 9))
            wanted = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1) @ v
            wanted.transpose(1, 2).backward(slope.double())
            for each, other in zip(given, exact):
                torch.testing.assert_close(each.grad.double(), other.grad, rtol=2**-6, atol=2**-5)

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
        for how in ({"causal": True}, {"window": [2, 1], "soft_cap": 3.0}):
            results = torch.library.opcheck(torch.ops.kiln.attention, wanting, how)
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
