#!/usr/bin/env python3
"""kiln.ops.attention on a GPU: values, how tensors lie, graphs, streams, the operator, and what a call costs.

    PYTHONPATH=build/release/python tests/gpu/attention_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90.
"""

import sys
import unittest

import torch

import kiln
import kiln.torch
from torch_test import COSTS, microseconds, print_costs

# Of keys and of values.
DEPTHS = ((64, 64), (96, 96), (128, 128), (192, 128), (192, 192), (256, 256))
OPTIONS = (
    {"window": (100, 30)},
    {"window": (0, 0)},
    {"window": (257, -1)},
    {"window": (-1, 70), "soft_cap": 2.0},
    {"window": (128, 0), "soft_cap": 5.0},
    {"causal": True, "soft_cap": 5.0},
    {"causal": True, "window": (300, -1)},
)
TOLERANCES = {torch.bfloat16: 2**-7, torch.float16: 2**-10}


def randoms(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def seen_keys(rows, keys, causal, window):
    """Whether a query sees a key, [rows, keys]."""
    own = torch.arange(rows, device="cuda")[:, None] + keys - rows
    key, (left, right) = torch.arange(keys, device="cuda"), window or (-1, -1)
    right = 0 if causal else right
    seen = torch.ones(rows, keys, dtype=torch.bool, device="cuda")
    if left >= 0:
        seen &= key >= own - left
    if right >= 0:
        seen &= key <= own + right
    return seen


def expected_of(q, k, v, causal=False, scale=None, window=None, soft_cap=None):
    """In fp64 on the GPU: the result and the logarithms of sums."""
    scale = q.shape[3] ** -0.5 if scale is None else scale
    group = q.shape[2] // k.shape[2]
    q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
    k, v = (each.repeat_interleave(group, 1) for each in (k, v))
    scores = scale * q @ k.mT
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    scores = scores.masked_fill(~seen_keys(*scores.shape[-2:], causal, window), -torch.inf)
    return (torch.softmax(scores, -1).nan_to_num(0) @ v).transpose(1, 2), torch.logsumexp(scores, -1)


def near(found, expected, soft_cap=0):
    (out, lse), (wanted, wanted_lse) = found, expected
    assert out.shape == wanted.shape and lse.shape == wanted_lse.shape
    difference = (out.double() - wanted).abs().max().item()
    lost = soft_cap * 2**-11  # of a score, by the tangent
    assert difference <= (TOLERANCES[out.dtype] + 2 * lost) * max(1, wanted.abs().max().item()), difference
    assert torch.equal(lse == -torch.inf, wanted_lse == -torch.inf)
    both = torch.where(lse == -torch.inf, 0, lse), torch.where(wanted_lse == -torch.inf, 0, wanted_lse)
    difference = (both[0].double() - both[1]).abs().max().item()
    assert difference <= 2**-12 + lost, difference


def gradients_of(dout, q, k, v, causal=False, scale=None, window=None, soft_cap=None):
    """In fp64 on the GPU: dq, dk and dv, and how far each element may be from it.

    Weights, ds and the result of the forward pass are rounded to the tensors' type, each gradient once more, numbers below
    its least normal one by up to half of its least one; an exponent
    is off by what lse is, and by what the sums of a product lose in f32. The tangent of a soft cap is off by 2^-11 of itself.
    """
    scale = q.shape[3] ** -0.5 if scale is None else scale
    unit = {torch.bfloat16: 2**-8, torch.float16: 2**-11}[q.dtype]
    least = {torch.bfloat16: 2**-134, torch.float16: 2**-25}[q.dtype]
    batch, rows, heads, _ = q.shape
    keys, key_heads = k.shape[1:3]
    out, lse = expected_of(q, k, v, causal, scale, window, soft_cap)
    dout, q, k, v, out = (each.double().transpose(1, 2) for each in (dout, q, k, v, out))
    k, v = (each.repeat_interleave(heads // key_heads, 1) for each in (k, v))
    scores = scale * q @ k.mT
    tangents = torch.tanh(scores / soft_cap) if soft_cap else torch.zeros_like(scores)
    scores = soft_cap * tangents if soft_cap else scores
    weights = torch.exp(scores - torch.where(lse == -torch.inf, 0, lse)[..., None])
    weights = weights * seen_keys(rows, keys, causal, window)
    steep = weights * (dout @ v.mT - (dout * out).sum(-1, keepdim=True))
    slopes = steep * (1 - tangents**2)
    lost = unit + 2**-12 + 2**-20 * scale * (q.abs() @ k.mT.abs()) + 2**-10 * (soft_cap or 0)
    of_weights = weights * lost + least * (weights > 0)
    of_products = 2**-20 * (dout.abs() @ v.mT.abs()) + (unit + 2**-20) * (dout * out).abs().sum(-1, keepdim=True)
    of_slopes = slopes.abs() * lost + least * (weights > 0) + weights * of_products + 2**-9 * steep.abs() * tangents**2

    def of_heads(x):
        return x.view(batch, key_heads, heads // key_heads, keys, -1).sum(2)

    sizes = [scale * slopes.abs() @ k.abs(), of_heads(scale * slopes.mT.abs() @ q.abs()), of_heads(weights.mT @ dout.abs())]
    values = [scale * slopes @ k, of_heads(scale * slopes.mT @ q), of_heads(weights.mT @ dout)]
    bounds = [scale * of_slopes @ k.abs(), of_heads(scale * of_slopes.mT @ q.abs()), of_heads(of_weights.mT @ dout.abs())]
    bounds = [bound + 2**-18 * size + unit * value.abs() + 2**-24 for bound, size, value in zip(bounds, sizes, values)]
    return [(value.transpose(1, 2), bound.transpose(1, 2)) for value, bound in zip(values, bounds)]


def near_gradients(found, expected):
    for name, each, (value, bound) in zip(("dq", "dk", "dv"), found, expected):
        assert each.shape == value.shape and each.isfinite().all(), name
        worst = ((each.double() - value).abs() / bound).max().item()
        assert worst <= 1, f"{name}: an error of {worst} times its bound"


class GradientTest(unittest.TestCase):
    def gradients(self, dout, q, k, v, **how):
        out, lse = kiln.ops.attention(q, k, v, return_lse=True, **how)
        return kiln.ops.attention_backward(dout, q, k, v, out, lse, **how)

    def test_shapes(self):
        torch.manual_seed(0)
        shapes = ((2, 512, 512, 4, 4), (1, 300, 700, 6, 2), (3, 77, 1, 2, 1), (1, 1, 333, 8, 8), (1, 500, 200, 2, 2))
        for depth in (64, 96, 128, 256):
            for dtype in (torch.bfloat16, torch.float16):
                for batch, queries, keys, heads, key_heads in shapes:
                    for causal in (False, True):
                        with self.subTest(depth=depth, dtype=dtype, queries=queries, keys=keys, causal=causal):
                            q, dout = (randoms(batch, queries, heads, depth, dtype=dtype) for _ in range(2))
                            k, v = (randoms(batch, keys, key_heads, depth, dtype=dtype) for _ in range(2))
                            found = self.gradients(dout, q, k, v, causal=causal)
                            near_gradients(found, gradients_of(dout, q, k, v, causal))

    def test_windows_and_soft_caps(self):
        torch.manual_seed(1)
        for queries, keys in ((512, 512), (300, 900), (500, 200), (1, 333)):
            for depth in (64, 96, 128, 256):
                for how in OPTIONS:
                    with self.subTest(depth=depth, queries=queries, keys=keys, **how):
                        q, dout = (randoms(2, queries, 4, depth) for _ in range(2))
                        k, v = (randoms(2, keys, 2, depth) for _ in range(2))
                        near_gradients(self.gradients(dout, q, k, v, **how), gradients_of(dout, q, k, v, **how))

    def test_queries_that_see_no_key(self):
        q, dout, k, v = (randoms(1, rows, 2, 128) for rows in (500, 500, 200, 200))
        dq, _, _ = self.gradients(dout, q, k, v, causal=True)
        self.assertEqual(dq[:, :300].abs().max().item(), 0)

    def test_without_queries(self):
        q, k = randoms(1, 0, 2, 64), randoms(1, 5, 2, 64)
        for each, like in zip(self.gradients(q, q, k, k), (q, k, k)):
            self.assertTrue(torch.equal(each, torch.zeros_like(like)))

    def test_scales_and_large_scores(self):
        q, k, v, dout = (randoms(1, 300, 2, 64) for _ in range(4))
        for scale in (0.01, 1.0, 4.0):
            near_gradients(self.gradients(dout, q, k, v, scale=scale), gradients_of(dout, q, k, v, scale=scale))

    def test_results_are_the_same_again(self):
        q, k, v, dout = (randoms(2, 1000, heads, 128) for heads in (8, 2, 2, 8))
        first = self.gradients(dout, q, k, v, causal=True)
        for _ in range(5):
            for one, other in zip(first, self.gradients(dout, q, k, v, causal=True)):
                self.assertTrue(torch.equal(one, other))

    def test_heads_before_rows(self):
        q, k, v, dout = (randoms(2, heads, 300, 128).transpose(1, 2) for heads in (4, 2, 2, 4))
        apart = [each.contiguous() for each in (dout, q, k, v)]
        for one, other in zip(self.gradients(dout, q, k, v), self.gradients(*apart)):
            self.assertTrue(torch.equal(one, other))

    def test_graphs_and_streams(self):
        q, k, v, dout = (randoms(1, 500, 4, 128) for _ in range(4))
        self.gradients(dout, q, k, v)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = self.gradients(dout, q, k, v)
        q.normal_()
        graph.replay()
        near_gradients(found, gradients_of(dout, q, k, v))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            found = self.gradients(dout, q, k, v)
        stream.synchronize()
        near_gradients(found, gradients_of(dout, q, k, v))


class ValueTest(unittest.TestCase):
    def test_windows_and_soft_caps(self):
        torch.manual_seed(1)
        for queries, keys in ((512, 512), (300, 1500), (3000, 3000), (500, 200), (1, 333)):
            for depth, values in DEPTHS:
                for how in OPTIONS:
                    with self.subTest(depth=depth, queries=queries, keys=keys, **how):
                        q = randoms(2, queries, 4, depth)
                        k, v = randoms(2, keys, 2, depth), randoms(2, keys, 2, values)
                        found = kiln.ops.attention(q, k, v, return_lse=True, **how)
                        near(found, expected_of(q, k, v, **how), how.get("soft_cap", 0))

    def test_shapes(self):
        torch.manual_seed(0)
        for depth, values in DEPTHS:
            for dtype in (torch.bfloat16, torch.float16):
                for batch, queries, keys, heads, key_heads in ((2, 512, 512, 4, 4), (1, 300, 700, 6, 2), (3, 77, 1, 2, 1), (1, 1, 333, 8, 8)):
                    for causal in (False, True):
                        with self.subTest(depth=depth, dtype=dtype, queries=queries, keys=keys, causal=causal):
                            q = randoms(batch, queries, heads, depth, dtype=dtype)
                            k, v = (randoms(batch, keys, key_heads, each, dtype=dtype) for each in (depth, values))
                            found = kiln.ops.attention(q, k, v, causal=causal, return_lse=True)
                            near(found, expected_of(q, k, v, causal))

    def test_queries_that_see_no_key(self):
        q, k, v = randoms(1, 500, 2, 128), randoms(1, 200, 2, 128), randoms(1, 200, 2, 128)
        out, lse = kiln.ops.attention(q, k, v, causal=True, return_lse=True)
        near((out, lse), expected_of(q, k, v, True))
        self.assertEqual(out[:, :300].abs().max().item(), 0)
        self.assertTrue((lse[:, :, :300] == -torch.inf).all())

    def test_scales(self):
        q, k, v = (randoms(1, 200, 2, 64) for _ in range(3))
        for scale in (0.01, 1.0):
            near(kiln.ops.attention(q, k, v, scale=scale, return_lse=True), expected_of(q, k, v, scale=scale))

    def test_results_are_the_same_again(self):
        q, k, v = (randoms(2, 1000, 4, 128) for _ in range(3))
        first = kiln.ops.attention(q, k, v, causal=True)
        for _ in range(5):
            self.assertTrue(torch.equal(first, kiln.ops.attention(q, k, v, causal=True)))

    def test_nothing_but_the_result_is_written(self):
        q, k, v = (randoms(2, 100, 2, 64) for _ in range(3))
        wide = torch.full((2, 140, 2, 64 + 8), 7.0, dtype=torch.bfloat16, device="cuda")
        out = wide[:, 20:120, :, :64]
        self.assertIs(kiln.ops.attention(q, k, v, out=out), out)
        near((out, expected_of(q, k, v)[1].float()), expected_of(q, k, v))
        self.assertTrue((wide[..., 64:] == 7).all() and (wide[:, :20] == 7).all() and (wide[:, 120:] == 7).all())


class LayoutTest(unittest.TestCase):
    def test_heads_before_rows(self):
        for depth in (64, 128, 256):
            q, k, v = (randoms(2, heads, 300, depth).transpose(1, 2) for heads in (4, 2, 2))
            out = torch.zeros(2, 4, 300, depth, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
            if depth == 256:  # where the result leaves from registers
                with self.assertRaisesRegex(ValueError, "it needs the tensor without gaps"):
                    kiln.ops.attention(q, k, v, causal=True, out=out)
                out = out.contiguous()
            found = kiln.ops.attention(q, k, v, causal=True, out=out, return_lse=True)
            near(found, expected_of(q, k, v, True))
            apart = kiln.ops.attention(*(each.contiguous() for each in (q, k, v)), causal=True)
            self.assertTrue(torch.equal(out, apart))

    def test_slices_of_one_tensor(self):
        packed = randoms(2, 200, 3, 4, 128)
        q, k, v = packed.unbind(2)
        near(kiln.ops.attention(q, k, v, return_lse=True), expected_of(q, k, v))
        batch_last = randoms(200, 4, 2, 128).permute(2, 0, 1, 3)
        near(kiln.ops.attention(batch_last, batch_last, batch_last, return_lse=True), expected_of(batch_last, batch_last, batch_last))

    def test_part_of_a_cache(self):
        cache = randoms(2, 1024, 2, 128)
        q, k = randoms(2, 1, 4, 128), cache[:, :500]
        near(kiln.ops.attention(q, k, k, return_lse=True), expected_of(q, k, k))

    def test_refusals(self):
        q = randoms(1, 64, 2, 64)
        for error, text, call in (
            (ValueError, "`k` lies in this CPU's memory", lambda: kiln.ops.attention(q, q.cpu(), q)),
            (TypeError, "`q` holds bf16 and `v` f16", lambda: kiln.ops.attention(q, q, q.half())),
            (ValueError, "the last one has to be 1", lambda: kiln.ops.attention(q.mT, q.mT, q.mT)),
            (ValueError, "shares memory with `q`", lambda: kiln.ops.attention(q, q.clone(), q.clone(), out=q)),
            (ValueError, "a depth of 32, it takes 64, 96, 128", lambda: kiln.ops.attention(*[q[..., :32].contiguous()] * 3)),
            (ValueError, "above 0; pass", lambda: kiln.ops.attention(q, *[q[:, :, :1].expand(1, 64, 2, 64)] * 2)),
            (ValueError, "needs a gradient, and attention into `out` has none", lambda: kiln.ops.attention(q.clone().requires_grad_(), q, q, out=q.clone())),
        ):
            with self.assertRaisesRegex(error, text):
                call()


class StreamTest(unittest.TestCase):
    def test_streams(self):
        q, k, v = (randoms(1, 500, 4, 128) for _ in range(3))
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        out, lse = kiln.ops.attention(q, k, v, stream=stream, return_lse=True)
        stream.synchronize()
        near((out, lse), expected_of(q, k, v))
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            v.fill_(1)
            out = kiln.ops.attention(q, k, v)
        self.assertFalse(stream.query())
        stream.synchronize()
        torch.testing.assert_close(out.float(), torch.ones_like(out, dtype=torch.float32), rtol=2**-7, atol=0)

    def test_graphs(self):
        q, k, v = (randoms(1, 500, 4, 128) for _ in range(3))
        kiln.ops.attention(q, k, v, causal=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = kiln.ops.attention(q, k, v, causal=True, return_lse=True)
        q.normal_()
        graph.replay()
        near(found, expected_of(q, k, v, True))
        with self.assertRaisesRegex(kiln.DeviceError, "attention is not prepared for these shapes"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                kiln.ops.attention(q[:, :3], k, v)


class OperatorTest(unittest.TestCase):
    def test_opcheck_and_compile(self):
        q, k = randoms(2, 100, 4, 64), randoms(2, 80, 2, 64)
        results = torch.library.opcheck(torch.ops.kiln.attention, (q, k, k), {"causal": True})
        self.assertEqual(set(results.values()), {"SUCCESS"})
        fast = torch.compile(lambda q, k: kiln.ops.attention(q * 2, k, k), fullgraph=True)
        torch.testing.assert_close(fast(q, k), kiln.ops.attention(q * 2, k, k))

    def test_gradients(self):
        made = [randoms(2, rows, heads, 64) for rows, heads in ((100, 4), (80, 2), (80, 2))]
        given = [each.clone().requires_grad_() for each in made]
        results = torch.library.opcheck(torch.ops.kiln.attention, tuple(given), {"causal": True})
        self.assertEqual(set(results.values()), {"SUCCESS"})
        for run in (kiln.ops.attention, torch.compile(kiln.ops.attention, fullgraph=True)):
            out = run(*given, causal=True)
            dout = torch.randn_like(out)
            found = torch.autograd.grad(out, given, dout)
            near_gradients(found, gradients_of(dout, *made, causal=True))
        out = kiln.ops.attention(*given)
        found = torch.autograd.grad(out.sum(), given)  # a slope without memory of its own
        near_gradients(found, gradients_of(torch.ones_like(out), *made))
        with torch.no_grad():
            self.assertFalse(kiln.ops.attention(*given).requires_grad)


class CostTest(unittest.TestCase):
    def test_of_a_call(self):
        q, k, v, out = (randoms(1, 128, 1, 64) for _ in range(4))
        COSTS.append(("kiln.ops.attention(q, k, v)", microseconds(lambda: kiln.ops.attention(q, k, v))))
        COSTS.append(("kiln.ops.attention(q, k, v, out=out)", microseconds(lambda: kiln.ops.attention(q, k, v, out=out))))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    print_costs()
    sys.exit(0 if result.wasSuccessful() else 1)
