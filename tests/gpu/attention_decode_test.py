#!/usr/bin/env python3
"""kiln.ops.attention_decode on a GPU: values, how caches lie, graphs, the operator, and what a call costs.

    PYTHONPATH=build/release/python tests/gpu/attention_decode_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90.
"""

import sys
import unittest

import torch

import kiln
import kiln.torch
from attention_test import expected_of, near, randoms
from torch_test import COSTS, microseconds, print_costs


class Cache:
    """Random keys and values, not a number where they are not in use; the table names no page there."""

    def __init__(self, lengths, page_size, each, key_heads, depth, dtype=torch.bfloat16):
        batch = len(lengths)
        pages = batch * each
        shape = (pages, 2, page_size, key_heads, depth)
        both = torch.full(shape, torch.nan, device="cuda", dtype=dtype)
        self.k, self.v = both[:, 0], both[:, 1]
        self.lengths = torch.tensor(lengths, dtype=torch.int32, device="cuda")
        self.table = torch.full((batch, each), -1, dtype=torch.int32, device="cuda")
        self.keys = []  # of each sequence, [1, keys, key heads, depth] twice
        order = torch.randperm(pages, device="cuda").int()
        for b, length in enumerate(lengths):
            used = -(-length // page_size)
            self.table[b, :used] = order[b * each : b * each + used]
            own = [randoms(1, length, key_heads, depth, dtype=dtype) for _ in range(2)]
            for cache, numbers in zip((self.k, self.v), own):
                places = torch.arange(length, device="cuda")
                cache[self.table[b, places // page_size].long(), places % page_size] = numbers[0]
            self.keys.append(own)

    def expected(self, q, **how):
        rows = [expected_of(q[b : b + 1], k, v, **how) for b, (k, v) in enumerate(self.keys)]
        return torch.cat([out for out, _ in rows]), torch.cat([lse for _, lse in rows])

    def attention(self, q, **how):
        return kiln.ops.attention_decode(q, self.k, self.v, self.lengths, self.table, return_lse=True, **how)


class ValueTest(unittest.TestCase):
    def check(self, cache, heads, queries=1, **how):
        depth, dtype = cache.k.shape[3], cache.k.dtype
        q = randoms(len(cache.keys), queries, heads, depth, dtype=dtype)
        near(cache.attention(q, **how), cache.expected(q, **{"causal": True, **how}))

    def test_shapes(self):
        torch.manual_seed(0)
        for depth in (64, 128, 256):
            for dtype in (torch.bfloat16, torch.float16):
                for page_size in (8, 16, 48, 64, 256):
                    for queries, causal in ((1, True), (4, True), (4, False)):
                        with self.subTest(depth=depth, dtype=dtype, page_size=page_size, queries=queries, causal=causal):
                            each = -(-2000 // page_size)
                            cache = Cache((2000, 1, 777, 64), page_size, each, 2, depth, dtype)
                            self.check(cache, 8, queries, causal=causal)

    def test_heads(self):
        for heads, key_heads in ((1, 1), (32, 32), (32, 8), (128, 1)):
            with self.subTest(heads=heads, key_heads=key_heads):
                self.check(Cache((3000, 500), 64, 47, key_heads, 128), heads, 2)

    def test_many_sequences_and_long_ones(self):
        self.check(Cache(tuple(range(1, 401, 2)), 16, 25, 8, 128), 32)
        self.check(Cache((100_000,), 64, 1563, 8, 128), 32)

    def test_without_keys(self):
        self.check(Cache((0, 300, 2, 0), 64, 5, 2, 128), 8, 4)

    def test_rows_of_each_sequence(self):
        q, k, v = randoms(3, 1, 8, 128), randoms(3, 1000, 2, 128), randoms(3, 1000, 2, 128)
        lengths = torch.tensor([1000, 3, 500], dtype=torch.int32, device="cuda")
        out, lse = kiln.ops.attention_decode(q, k, v, lengths, return_lse=True)
        rows = [expected_of(q[b : b + 1], k[b : b + 1, :n], v[b : b + 1, :n]) for b, n in enumerate(lengths.tolist())]
        near((out, lse), (torch.cat([row for row, _ in rows]), torch.cat([row for _, row in rows])))

    def test_results_are_the_same_again(self):
        cache, q = Cache((5000, 3000), 64, 80, 8, 128), randoms(2, 1, 32, 128)
        first, _ = cache.attention(q)
        for _ in range(10):
            self.assertTrue(torch.equal(first, cache.attention(q)[0]))


class StreamTest(unittest.TestCase):
    def test_a_graph_sees_lengths_that_grow(self):
        cache, q = Cache((900, 700), 64, 20, 8, 128), randoms(2, 1, 32, 128)
        cache.attention(q)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = cache.attention(q)
        for length in (900, 890, 1):
            cache.lengths.fill_(min(length, 700))
            cache.keys = [[x[:, : min(length, 700)] for x in own] for own in cache.keys]
            graph.replay()
            near(found, cache.expected(q))


class OperatorTest(unittest.TestCase):
    def test_opcheck_and_compile(self):
        cache, q = Cache((100, 80), 16, 7, 2, 64), randoms(2, 1, 8, 64)
        given = (q, cache.k, cache.v, cache.lengths, cache.table)
        results = torch.library.opcheck(torch.ops.kiln.attention_decode, given)
        self.assertEqual(set(results.values()), {"SUCCESS"})
        fast = torch.compile(lambda q, *rest: kiln.ops.attention_decode(q * 2, *rest), fullgraph=True)
        torch.testing.assert_close(fast(*given), kiln.ops.attention_decode(q * 2, *given[1:]))


class CostTest(unittest.TestCase):
    def test_of_a_call(self):
        cache, q = Cache((100, 80), 16, 7, 2, 64), randoms(2, 1, 8, 64)
        COSTS.append(("kiln.ops.attention_decode(...)", microseconds(lambda: cache.attention(q))))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    print_costs()
    sys.exit(0 if result.wasSuccessful() else 1)
