#!/usr/bin/env python3
"""kiln.ops.attention_varlen and its gradients on a GPU: values of each sequence, what lies beside them, graphs, the operator, and what a call costs.

    PYTHONPATH=build/release/python tests/gpu/attention_varlen_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90.
"""

import itertools
import sys
import unittest

import torch

import kiln
import kiln.torch
from attention_test import DEPTHS, OPTIONS, expected_of, gradients_of, near, near_gradients, randoms
from torch_test import COSTS, microseconds, print_costs

# Queries and keys of each sequence: around tiles of both, nothing of either, one alone.
EDGES = ((1, 1), (63, 64), (128, 128), (0, 40), (129, 257), (192, 65), (5, 0), (300, 1000), (1, 127), (700, 300), (385, 384))


def starts_of(lengths, front=0):
    starts = torch.tensor([front, *lengths], dtype=torch.int32).cumsum(0)
    return starts.int().cuda()


class Packed:
    """Random sequences. Keys and values that none sees are not numbers."""

    def __init__(self, lengths, heads, key_heads, depth, value_depth=None, dtype=torch.bfloat16, front=0, back=0):
        self.lengths = lengths
        queries, keys = zip(*lengths)
        self.starts_q, self.starts_k = starts_of(queries), starts_of(keys, front)
        rows = front + sum(keys) + back
        self.q = randoms(sum(queries), heads, depth, dtype=dtype)
        self.k = randoms(rows, key_heads, depth, dtype=dtype)
        self.v = randoms(rows, key_heads, value_depth or depth, dtype=dtype)
        for x, nothing in ((self.k, torch.nan), (self.v, torch.inf)):
            x[:front] = nothing
            x[front + sum(keys) :] = nothing
            for (length, _), begin, end in zip(lengths, self.starts_k.tolist(), self.starts_k.tolist()[1:]):
                if length == 0:
                    x[begin:end] = nothing

    def expected(self, **how):
        out, lse = [], []
        bounds = zip(self.starts_q.tolist(), self.starts_q.tolist()[1:], self.starts_k.tolist(), self.starts_k.tolist()[1:])
        for begin, end, first, last in bounds:
            q, k, v = self.q[None, begin:end], self.k[None, first:last], self.v[None, first:last]
            if end > begin and last > first:
                found = expected_of(q, k, v, **how)
                out.append(found[0][0])
                lse.append(found[1][0])
            else:
                out.append(torch.zeros(end - begin, q.shape[2], v.shape[3], dtype=torch.double, device="cuda"))
                lse.append(torch.full((q.shape[2], end - begin), -torch.inf, dtype=torch.double, device="cuda"))
        return torch.cat(out), torch.cat(lse, 1)

    def attention(self, **how):
        return kiln.ops.attention_varlen(self.q, self.k, self.v, self.starts_q, self.starts_k, return_lse=True, **how)


class ValueTest(unittest.TestCase):
    def check(self, packed, **how):
        near(packed.attention(**how), packed.expected(**how), how.get("soft_cap", 0))

    def test_depths_and_masks(self):
        torch.manual_seed(0)
        for (depth, value_depth), dtype in itertools.product(DEPTHS, (torch.bfloat16, torch.float16)):
            packed = Packed(EDGES, 4, 2, depth, value_depth, dtype, front=3, back=5)
            for how in ({}, {"causal": True}, {"scale": 0.3}, *OPTIONS):
                with self.subTest(depth=depth, value_depth=value_depth, dtype=dtype, how=how):
                    self.check(packed, **how)

    def test_heads(self):
        for heads, key_heads in ((1, 1), (5, 5), (32, 8), (6, 1)):
            with self.subTest(heads=heads, key_heads=key_heads):
                self.check(Packed(EDGES, heads, key_heads, 128), causal=True)

    def test_many_sequences_and_long_ones(self):
        for causal in (False, True):
            self.check(Packed([(n % 7, n % 11) for n in range(2000)], 2, 1, 64), causal=causal)
            self.check(Packed([(5000, 6000), (10, 20), (3000, 3000)], 2, 1, 128), causal=causal)

    def test_random_lengths(self):
        generator = torch.Generator().manual_seed(5)
        for number in range(30):
            lengths = torch.randint(0, 600, (int(torch.randint(1, 20, (1,), generator=generator)), 2), generator=generator).tolist()
            depth, value_depth = DEPTHS[number % len(DEPTHS)]
            how = ({}, {"causal": True}, *OPTIONS)[number % 9]
            with self.subTest(lengths=lengths, depth=depth, how=how):
                self.check(Packed([*lengths, (1, 1)], 4, 2, depth, value_depth), **how)

    def test_rows_side_by_side(self):
        packed = torch.randn(1000, 3, 8, 128, device="cuda").bfloat16()
        starts = starts_of((300, 1, 699))
        q, k, v = packed.unbind(1)
        found = kiln.ops.attention_varlen(q, k, v, starts, starts, causal=True)
        dense = kiln.ops.attention_varlen(q.contiguous(), k.contiguous(), v.contiguous(), starts, starts, causal=True)
        self.assertTrue(torch.equal(found, dense))

    def test_equal_lengths_are_a_batch(self):
        q, k, v = randoms(4, 500, 8, 128), randoms(4, 500, 2, 128), randoms(4, 500, 2, 128)
        starts = starts_of((500,) * 4)
        for how in ({}, {"causal": True}, {"window": (100, 20)}):
            out, lse = kiln.ops.attention_varlen(*(x.flatten(0, 1) for x in (q, k, v)), starts, starts, return_lse=True, **how)
            wanted, wanted_lse = kiln.ops.attention(q, k, v, return_lse=True, **how)
            near((out, lse), (wanted.flatten(0, 1).double(), wanted_lse.transpose(0, 1).flatten(1).double()))

    def test_rows_of_no_sequence_stay(self):
        q = randoms(1000, 4, 128)
        out = torch.full_like(q, 7)
        starts = torch.tensor([130, 330, 330, 901], dtype=torch.int32, device="cuda")
        kiln.ops.attention_varlen(q, q, q, starts, starts, causal=True, out=out)
        self.assertTrue((out[:130] == 7).all() and (out[901:] == 7).all())
        self.assertFalse((out[130:901] == 7).all(-1).any())

    def test_results_are_the_same_again(self):
        packed = Packed(EDGES, 8, 2, 128)
        first = packed.attention(causal=True)
        for _ in range(10):
            for before, now in zip(first, packed.attention(causal=True)):
                self.assertTrue(torch.equal(before, now))


class GradientTest(unittest.TestCase):
    def check(self, packed, **how):
        out, lse = packed.attention(**how)
        dout = torch.randn_like(out)
        given = (dout, packed.q, packed.k, packed.v, out, lse, packed.starts_q, packed.starts_k)
        found = kiln.ops.attention_varlen_backward(*given, **how)
        for before, now in zip(found, kiln.ops.attention_varlen_backward(*given, **how)):
            rows = slice(packed.starts_k[0].item(), packed.starts_k[-1].item()) if len(before) == len(packed.k) else slice(None)
            self.assertTrue(torch.equal(before[rows], now[rows]))
        bounds = [each.tolist() for each in (packed.starts_q, packed.starts_k)]
        for begin, end, first, last in zip(bounds[0], bounds[0][1:], bounds[1], bounds[1][1:]):
            own = found[0][begin:end], found[1][first:last], found[2][first:last]
            if begin == end or first == last:
                self.assertFalse(any(each.any() for each in own))
                continue
            parts = (dout[None, begin:end], packed.q[None, begin:end], packed.k[None, first:last], packed.v[None, first:last])
            near_gradients([each[None] for each in own], gradients_of(*parts, **how))

    def test_depths_and_masks(self):
        torch.manual_seed(0)
        lengths = [(queries, keys) for queries, keys in EDGES if queries > 0]  # whose keys are numbers
        for depth, dtype in itertools.product((64, 96, 128, 256), (torch.bfloat16, torch.float16)):
            packed = Packed(lengths, 4, 2, depth, dtype=dtype, front=3, back=5)
            for how in ({}, {"causal": True}, {"scale": 0.3}, *OPTIONS):
                with self.subTest(depth=depth, dtype=dtype, how=how):
                    self.check(packed, **how)

    def test_heads_and_many_sequences(self):
        for heads, key_heads in ((1, 1), (5, 5), (32, 8), (6, 1)):
            self.check(Packed([(300, 300), (1, 70), (130, 129)], heads, key_heads, 128), causal=True)
        self.check(Packed([(n % 7 + 1, n % 11) for n in range(200)], 2, 1, 64), causal=True)

    def test_keys_without_queries(self):
        packed = Packed([(60, 60), (1, 1)], 4, 2, 64)
        packed.starts_q.copy_(torch.tensor([0, 0, 61], dtype=torch.int32))
        self.check(packed)

    def test_autograd(self):
        packed = Packed([(100, 130), (257, 64)], 4, 2, 128)
        wanting = [each.clone().requires_grad_() for each in (packed.q, packed.k, packed.v)]
        out = kiln.ops.attention_varlen(*wanting, packed.starts_q, packed.starts_k, causal=True)
        dout = torch.randn_like(out)
        out.backward(dout)
        _, lse = packed.attention(causal=True)
        given = (dout, packed.q, packed.k, packed.v, out.detach(), lse, packed.starts_q, packed.starts_k)
        for each, wanted in zip(wanting, kiln.ops.attention_varlen_backward(*given, causal=True)):
            self.assertTrue(torch.equal(each.grad, wanted))


class StreamTest(unittest.TestCase):
    def test_a_graph_sees_other_lengths(self):
        packed = Packed([(100, 200), (400, 300)], 8, 2, 128)
        packed.attention(causal=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = packed.attention(causal=True)
        for queries, keys in (((100, 400), (200, 300)), ((0, 500), (499, 1)), ((257, 243), (128, 372))):
            packed.starts_q.copy_(starts_of(queries))
            packed.starts_k.copy_(starts_of(keys))
            graph.replay()
            near(found, packed.expected(causal=True))


class OperatorTest(unittest.TestCase):
    def test_opcheck_and_compile(self):
        packed = Packed([(60, 60), (70, 70)], 4, 2, 64)
        given = (packed.q, packed.k, packed.v, packed.starts_q, packed.starts_k)
        results = torch.library.opcheck(torch.ops.kiln.attention_varlen, given, {"causal": True})
        self.assertEqual(set(results.values()), {"SUCCESS"})
        fast = torch.compile(lambda q, *rest: kiln.ops.attention_varlen(q * 2, *rest), fullgraph=True)
        torch.testing.assert_close(fast(*given), kiln.ops.attention_varlen(packed.q * 2, *given[1:]))


class CostTest(unittest.TestCase):
    def test_of_a_call(self):
        packed = Packed([(60, 60), (70, 70)], 4, 2, 64)
        COSTS.append(("kiln.ops.attention_varlen(...)", microseconds(packed.attention)))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    print_costs()
    sys.exit(0 if result.wasSuccessful() else 1)
