#!/usr/bin/env python3
"""kiln.ops.attention of 8-bit floats on a GPU: values, factors, how tensors lie, graphs, streams, the operator and its cost.

    PYTHONPATH=build/release/python tests/gpu/attention_f8_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90. Weights are rounded to 4 significant bits, so that a comparison with fp64 of
random numbers alone would hide much. Values of most tests are therefore those of which every key shows:

- scores are whole numbers and the scale is log(2), so that weights are powers of two and no bit of them is lost
- value d of key j is not 0 where j % depth is d, so that an element of the result is a sum over few keys, all above 0

Random numbers are compared as well, each with the most that may be lost of it and all together with what is to be expected.
"""

import math
import sys
import unittest

import torch

import kiln
import kiln.torch
from torch_test import COSTS, microseconds, print_costs

DEVICE = "cuda"
F8, BF16 = torch.float8_e4m3fn, torch.bfloat16
DEPTHS = (64, 128, 256)
# Batch, queries, keys, heads and key heads. Lengths end within tiles; more keys than queries, and fewer; one of either.
SHAPES = (
    (2, 512, 512, 4, 4),
    (1, 300, 700, 6, 2),
    (3, 77, 1, 2, 1),
    (1, 1, 333, 8, 8),
    (1, 500, 200, 2, 2),
    (2, 129, 257, 4, 1),
)
MASKS = ({}, {"causal": True}, {"window": (100, 30)}, {"window": (0, 0)}, {"window": (257, -1)}, {"causal": True, "window": (300, -1)})
FACTORS = ("q_scale", "k_scale", "v_scale")
# What a matrix instruction of 8-bit floats may lose for each product, accumulator and sum, of the largest of them
# (src/target/mma.cpp), and how many products it adds up.
UNIT, STEP = 2.0**-13, 32
WEIGHT = 2.0**-4  # that a weight is off by where it is rounded
LEAST = 2.0**-18  # the same of small weights, of the largest one
RESULT = 2.0**-8  # of a result, where it is rounded to bf16


def draw(low, high, *shape):
    """Whole numbers from `low` up to `high`, without it."""
    return torch.randint(low, high, shape, device=DEVICE)


def telling(batch, queries, keys, heads, key_heads, depth):
    """q, k and v of which every key shows."""
    q = torch.zeros(batch, queries, heads, depth, device=DEVICE)
    q.scatter_(3, draw(0, depth, batch, queries, heads, 4), draw(0, 2, batch, queries, heads, 4).float() * 2 - 1)
    k = draw(-1, 2, batch, keys, key_heads, depth)
    j, d = torch.arange(keys, device=DEVICE), torch.arange(depth, device=DEVICE)
    size = 1 + (j // depth)[:, None, None] % 3 + torch.arange(key_heads, device=DEVICE)[:, None] % 4
    v = ((j[:, None, None] % depth == d) * size).expand(batch, -1, -1, -1)
    return tuple(each.float().to(F8) for each in (q, k, v))


def telling_factors(batch, key_heads):
    """Of q and k those whose product is 1 or 2, so that scores stay whole."""
    of_q = 2.0 ** draw(-3, 4, batch, key_heads).float()
    of_k = 2.0 ** draw(0, 2, batch, key_heads).float() / of_q
    return {"q_scale": of_q, "k_scale": of_k, "v_scale": torch.rand(batch, key_heads, device=DEVICE) + 0.25}


def random_tensors(batch, queries, keys, heads, key_heads, depth):
    shapes = ((queries, heads), (keys, key_heads), (keys, key_heads))
    return tuple(torch.randn(batch, *each, depth, device=DEVICE).to(F8) for each in shapes)


def random_factors(batch, key_heads):
    return {name: torch.rand(batch, key_heads, device=DEVICE) + 0.5 for name in FACTORS}


def seen_keys(rows, keys, causal=False, window=None):
    """Whether a query sees a key, [rows, keys]."""
    own = torch.arange(rows, device=DEVICE)[:, None] + keys - rows
    key, (left, right) = torch.arange(keys, device=DEVICE), window or (-1, -1)
    right = 0 if causal else right
    seen = torch.ones(rows, keys, dtype=torch.bool, device=DEVICE)
    if left >= 0:
        seen &= key >= own - left
    if right >= 0:
        seen &= key <= own + right
    return seen


class Exact:
    """In fp64: the result, the logarithms of sums, and what both may be off by."""

    def __init__(self, q, k, v, q_scale=None, k_scale=None, v_scale=None, scale=None, **mask):
        self.depth, self.keys = q.shape[3], k.shape[1]
        scale = self.depth**-0.5 if scale is None else scale
        group = q.shape[2] // k.shape[2]
        q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
        k, v = (each.repeat_interleave(group, 1) for each in (k, v))
        of_q, of_k, of_v = (1 if each is None else self.of_heads(each, group) for each in (q_scale, k_scale, v_scale))
        factor = scale * of_q * of_k
        scores = (factor * (q @ k.mT)).masked_fill(~seen_keys(q.shape[2], self.keys, **mask), -torch.inf)
        self.lse = torch.logsumexp(scores, -1)
        weights = torch.softmax(scores, -1).nan_to_num(0)
        self.of_largest = weights.amax(-1, keepdim=True)
        self.out = weights @ v * of_v
        self.size = weights @ v.abs() * abs(of_v)
        self.values = v.abs().sum(2, keepdim=True) * abs(of_v)
        self.squares = (weights**2 @ v**2) * of_v**2
        self.score_size = (factor * (q.abs() @ k.abs().mT)).amax(-1)

    @staticmethod
    def of_heads(factors, group):
        return factors.double().repeat_interleave(group, 1)[..., None, None]

    def laid(self, x):
        return x.transpose(1, 2)

    def near_telling(self, found):
        """Of tensors that `telling` makes: nothing is lost but where sums are added up and rounded."""
        out, lse = found
        steps = -(-self.keys // STEP)
        terms = -(-self.keys // self.depth)
        bound = (RESULT + UNIT * (terms + 2 * steps)) * self.out + 2.0**-20 * self.of_largest
        self.within(out, self.out, bound)
        self.same_lse(lse, torch.full_like(self.lse, 2.0**-14))

    def near(self, found):
        """Of any tensors."""
        out, lse = found
        of_score = self.lost(self.depth) * self.score_size[..., None]
        of_weight = torch.expm1(2 * of_score)
        worst = (WEIGHT + self.lost(self.keys)) * (1 + of_weight) + of_weight
        floor = LEAST * self.of_largest * self.values
        bound = worst * self.size + floor + of_weight * self.out.abs() + RESULT * self.out.abs() + 2.0**-20
        self.within(out, self.out, bound)
        self.same_lse(lse, of_score[..., 0] + 2.0**-12)
        # Errors of weights have either sign. Twice what they come to where each is as likely as any other.
        expected = 2 * (self.squares * WEIGHT**2 / 3 + (self.out * RESULT) ** 2).mean().sqrt().item()
        found = (out.double() - self.laid(self.out)).square().mean().sqrt().item()
        assert found <= expected + 2.0**-20, f"a mean error of {found}, and {expected} is likely"

    @staticmethod
    def lost(length):
        """What a sum of so many products loses at most, of the sum of magnitudes."""
        return -(-length // STEP) * (STEP + 2) * UNIT

    def within(self, out, wanted, bound):
        assert out.dtype == BF16 and out.shape == self.laid(wanted).shape, (out.dtype, out.shape)
        over = (out.double() - self.laid(wanted)).abs() - self.laid(bound)
        assert (over <= 0).all(), f"an element is {over.nan_to_num(torch.inf).max().item()} beyond its bound"

    def same_lse(self, lse, bound):
        assert lse.dtype == torch.float32 and lse.shape == self.lse.shape, (lse.dtype, lse.shape)
        assert torch.equal(lse == -torch.inf, self.lse == -torch.inf)
        seen = self.lse != -torch.inf
        over = ((lse.double() - self.lse).abs() - bound)[seen]
        assert (over <= 0).all(), f"a logarithm is {over.nan_to_num(torch.inf).max().item()} beyond its bound"


def check_telling(shape, factors=None, given=None, **how):
    """Computes it of tensors of which every key shows, or of `given`, which hold their numbers."""
    tensors = telling(*shape) if given is None else given
    factors = telling_factors(shape[0], shape[4]) if factors is None else factors
    found = kiln.ops.attention(*tensors, **factors, scale=math.log(2), return_lse=True, **how)
    how.pop("out", None)
    Exact(*tensors, **factors, scale=math.log(2), **how).near_telling(found)
    return found


class ValueTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_every_key(self):
        for depth in DEPTHS:
            for shape in SHAPES:
                for mask in MASKS:
                    with self.subTest(depth=depth, shape=shape, **mask):
                        check_telling((*shape, depth), **mask)

    def test_large_problems(self):
        """Of which blocks draw their work, and which other tiles are chosen for."""
        for depth in DEPTHS:
            for shape in ((1, 2048, 2048, 16, 4), (1, 4096, 4096, 9, 3), (1, 300, 9000, 4, 2)):
                for mask in ({}, {"causal": True}, {"window": (1000, 0)}):
                    with self.subTest(depth=depth, shape=shape, **mask):
                        check_telling((*shape, depth), **mask)

    def test_random_numbers(self):
        for depth in DEPTHS:
            for shape in (*SHAPES, (1, 1024, 1500, 4, 2)):
                for mask in MASKS:
                    with self.subTest(depth=depth, shape=shape, **mask):
                        tensors, factors = random_tensors(*shape, depth), random_factors(shape[0], shape[4])
                        found = kiln.ops.attention(*tensors, **factors, return_lse=True, **mask)
                        Exact(*tensors, **factors, **mask).near(found)

    def test_scales_and_large_scores(self):
        for depth in DEPTHS:
            tensors = random_tensors(1, 200, 300, 2, 2, depth)
            for scale in (0.01, 0.3):
                found = kiln.ops.attention(*tensors, scale=scale, return_lse=True)
                Exact(*tensors, scale=scale).near(found)
        # The largest numbers that there are, where one key has all the weight.
        q = torch.full((1, 64, 1, 64), 448.0, device=DEVICE).to(F8)
        k, v = q.clone(), torch.randn(1, 64, 1, 64, device=DEVICE).to(F8)
        k[:, 1:] = (-k[:, 1:].float()).to(F8)
        # At a scale where the exponent of a weight, which is rounded where the score is largest, is right to the last bit of a weight.
        found = kiln.ops.attention(q, k, v, scale=2.0**-16)
        torch.testing.assert_close(found.float(), v[:, :1].float().expand(-1, 64, -1, -1), rtol=0, atol=0)

    def test_factors_that_are_not_given(self):
        shape = (2, 130, 300, 4, 2, 128)
        all_of_them = telling_factors(2, 2)
        for names in ((), ("v_scale",), ("q_scale", "k_scale"), FACTORS):
            tensors, factors = telling(*shape), {name: all_of_them[name] for name in names}
            ones = {name: torch.ones(2, 2, device=DEVICE) for name in FACTORS}
            out, lse = check_telling(shape, factors, tensors)
            same = kiln.ops.attention(*tensors, **(ones | factors), scale=math.log(2), return_lse=True)
            self.assertTrue(torch.equal(out, same[0]) and torch.equal(lse, same[1]))

    def test_factors_are_of_each_head(self):
        """And read when it runs: the same tensors with other numbers."""
        shape, factors = (3, 130, 300, 6, 3, 64), telling_factors(3, 3)
        tensors = telling(*shape)
        for _ in range(3):
            check_telling(shape, factors, tensors)
            for name, each in telling_factors(3, 3).items():
                factors[name].copy_(each)
        factors["v_scale"].neg_()
        out = kiln.ops.attention(*tensors, **factors, scale=math.log(2))
        factors["v_scale"].neg_()
        self.assertTrue(torch.equal(-out, kiln.ops.attention(*tensors, **factors, scale=math.log(2))))

    def test_queries_that_see_no_key(self):
        out, lse = check_telling((1, 500, 200, 2, 2, 128), causal=True)
        self.assertEqual(out[:, :300].abs().max().item(), 0)
        self.assertTrue((lse[:, :, :300] == -torch.inf).all())

    def test_without_queries(self):
        q, k = torch.empty(1, 0, 2, 64, device=DEVICE).to(F8), torch.ones(1, 5, 2, 64, device=DEVICE).to(F8)
        self.assertEqual(kiln.ops.attention(q, k, k).shape, (1, 0, 2, 64))

    def test_results_are_the_same_again(self):
        tensors, factors = random_tensors(2, 3000, 3000, 4, 4, 128), random_factors(2, 4)
        for how in ({}, {"causal": True}):
            first = kiln.ops.attention(*tensors, **factors, **how)
            for _ in range(5):
                self.assertTrue(torch.equal(first, kiln.ops.attention(*tensors, **factors, **how)))


class LayoutTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_heads_before_rows(self):
        for depth in DEPTHS:
            tensors = telling(2, 300, 300, 4, 2, depth)
            turned = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in tensors]
            out = torch.zeros(2, 4, 300, depth, dtype=BF16, device=DEVICE).transpose(1, 2)
            factors = telling_factors(2, 2)
            found = check_telling((2, 300, 300, 4, 2, depth), factors, turned, causal=True, out=out)
            self.assertIs(found[0], out)
            apart = kiln.ops.attention(*tensors, **factors, causal=True, scale=math.log(2))
            self.assertTrue(torch.equal(out, apart))

    def test_slices_of_one_tensor(self):
        for depth in DEPTHS:
            bytes_of_each = [each.view(torch.uint8) for each in telling(2, 200, 200, 4, 4, depth)]
            packed = torch.stack(bytes_of_each, 2).view(F8)
            check_telling((2, 200, 200, 4, 4, depth), given=packed.unbind(2))
            batch_last = packed.permute(1, 2, 3, 0, 4).contiguous().permute(3, 0, 1, 2, 4)
            check_telling((2, 200, 200, 4, 4, depth), given=batch_last.unbind(2))

    def test_part_of_a_cache(self):
        """Behind the keys there are numbers that are none."""
        for keys in (500, 512, 513):
            q, k, v = telling(2, 1, keys, 4, 2, 128)
            caches = [torch.full((2, 1024, 2, 128), torch.nan, device=DEVICE).to(F8) for _ in range(2)]
            for cache, each in zip(caches, (k, v)):
                cache[:, :keys] = each
            check_telling((2, 1, keys, 4, 2, 128), given=(q, *(cache[:, :keys] for cache in caches)))

    def test_nothing_but_the_result_is_written(self):
        for depth in DEPTHS:
            wide = torch.full((2, 140, 2, depth + 8), 7.0, dtype=BF16, device=DEVICE)
            out = wide[:, 20:120, :, :depth]
            check_telling((2, 100, 130, 2, 2, depth), out=out)
            self.assertTrue((wide[..., depth:] == 7).all() and (wide[:, :20] == 7).all() and (wide[:, 120:] == 7).all())

    def test_refusals(self):
        q, factor = torch.ones(1, 64, 2, 64, device=DEVICE).to(F8), torch.ones(1, 2, device=DEVICE)
        wide, narrow = q.to(BF16), q[..., :32].contiguous()
        starts = torch.tensor([0, 64], dtype=torch.int32, device=DEVICE)
        for error, text, call in (
            (TypeError, "`q` holds f8_e4m3 and `v` bf16: all have one type", lambda: kiln.ops.attention(q, q, wide)),
            (TypeError, "`q` holds f8_e5m2, and attention takes", lambda: kiln.ops.attention(*[wide.to(torch.float8_e5m2)] * 3)),
            (TypeError, "`q` holds f8_e4m3 and `out` f8_e4m3: bf16 is needed", lambda: kiln.ops.attention(q, q, q, out=q.clone())),
            (TypeError, "`v_scale` is a factor of tensors of f8_e4m3", lambda: kiln.ops.attention(*[wide] * 3, v_scale=factor)),
            (TypeError, "`q_scale` is 0.5: a tensor f32", lambda: kiln.ops.attention(q, q, q, q_scale=0.5)),
            (ValueError, "`q_scale` lies in this CPU's memory", lambda: kiln.ops.attention(q, q, q, q_scale=factor.cpu())),
            (ValueError, r"`k_scale` is f32 \[2\], and a factor of each head", lambda: kiln.ops.attention(q, q, q, k_scale=factor[0])),
            (ValueError, "has to be without gaps", lambda: kiln.ops.attention(q, q, q, k_scale=factor[:, :1].expand(1, 2))),
            (ValueError, "a soft cap with tensors of f8_e4m3", lambda: kiln.ops.attention(q, q, q, soft_cap=5.0)),
            (ValueError, "a depth of 32, it takes 64, 128 and 256", lambda: kiln.ops.attention(narrow, narrow, narrow)),
            (TypeError, "attention_varlen takes bf16 and f16", lambda: kiln.ops.attention_varlen(*[q[0]] * 3, starts, starts)),
            (TypeError, "attention_decode takes bf16 and f16", lambda: kiln.ops.attention_decode(q, q, q, starts[1:])),
            (NotImplementedError, "of f8_e4m3 has no gradients", lambda: kiln.ops.attention(q.clone().requires_grad_(), q, q)),
            (NotImplementedError, "of f8_e4m3 has no gradients", lambda: kiln.ops.attention(q, q, q, q_scale=factor.clone().requires_grad_())),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                call()


class StreamTest(unittest.TestCase):
    SHAPE = (1, 500, 500, 4, 4, 128)

    def test_streams(self):
        stream, tensors, factors = torch.cuda.Stream(), telling(*self.SHAPE), telling_factors(1, 4)
        for some in (factors, {}):
            torch.cuda.synchronize()
            found = kiln.ops.attention(*tensors, **some, scale=math.log(2), return_lse=True, stream=stream)
            stream.synchronize()
            Exact(*tensors, **some, scale=math.log(2)).near_telling(found)
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100_000_000)
                found = kiln.ops.attention(*tensors, **some, scale=math.log(2), return_lse=True)
            self.assertFalse(stream.query())
            stream.synchronize()
            Exact(*tensors, **some, scale=math.log(2)).near_telling(found)

    def test_graphs(self):
        for some in (telling_factors(1, 4), {}):
            tensors, others = telling(*self.SHAPE), telling(*self.SHAPE)
            kiln.ops.attention(*tensors, **some, scale=math.log(2), causal=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = kiln.ops.attention(*tensors, **some, scale=math.log(2), causal=True, return_lse=True)
            for each, other in zip(tensors, others):
                each.copy_(other)
            if some:
                some["v_scale"].mul_(2)
            graph.replay()
            Exact(*tensors, **some, scale=math.log(2), causal=True).near_telling(found)
        with self.assertRaisesRegex(kiln.DeviceError, "attention is not prepared for these shapes"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                kiln.ops.attention(tensors[0][:, :3], *tensors[1:])


class OperatorTest(unittest.TestCase):
    def test_it_is_compiled_whole(self):
        tensors, factors = telling(2, 100, 80, 4, 2, 64), telling_factors(2, 2)
        for some in (factors, {"v_scale": factors["v_scale"]}, {}):
            wanted = kiln.ops.attention(*tensors, **some)
            fast = torch.compile(lambda *given, **more: kiln.ops.attention(*given, **more) * 2, fullgraph=True)
            torch.testing.assert_close(fast(*tensors, **some), wanted * 2, rtol=0, atol=0)
            out, _ = torch.ops.kiln.attention(*tensors, *(some.get(name) for name in FACTORS))
            self.assertTrue(torch.equal(out, wanted))
        # PyTorch cannot compare tensors of 8 bits, as its test of schemas does.
        tests = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        results = torch.library.opcheck(torch.ops.kiln.attention, (*tensors, *factors.values()), {"causal": True}, test_utils=tests)
        self.assertEqual(set(results.values()), {"SUCCESS"})

    def test_the_reference_is_near(self):
        tensors, factors = telling(2, 100, 80, 4, 2, 64), telling_factors(2, 2)
        given = [each.cpu() for each in tensors], {name: each.cpu() for name, each in factors.items()}
        found = kiln.ops.attention.reference(*given[0], **given[1], scale=math.log(2), return_lse=True)
        Exact(*tensors, **factors, scale=math.log(2)).near_telling([each.to(DEVICE) for each in found])


class CostTest(unittest.TestCase):
    def test_of_a_call(self):
        q, factor = torch.ones(1, 128, 1, 64, device=DEVICE).to(F8), torch.ones(1, 1, device=DEVICE)
        factors = {name: factor for name in FACTORS}
        COSTS.append(("kiln.ops.attention(q, k, v) of f8_e4m3", microseconds(lambda: kiln.ops.attention(q, q, q))))
        COSTS.append(("the same with factors", microseconds(lambda: kiln.ops.attention(q, q, q, **factors))))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    print_costs()
    sys.exit(0 if result.wasSuccessful() else 1)
