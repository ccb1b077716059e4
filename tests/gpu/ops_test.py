#!/usr/bin/env python3
"""kiln.ops and kiln.torch.Linear on a GPU: values, gradients, graphs, compilation, and what a call costs.

    PYTHONPATH=build/release/python tests/gpu/ops_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90. What CuPy is needed for is skipped without it.
"""

import sys
import unittest

import torch

import kiln
import kiln.torch
from torch_test import COSTS, microseconds, ones, print_costs, randoms

TOLERANCES = {torch.bfloat16: 2**-7, torch.float16: 2**-9, torch.float32: 2**-10}


def near(found, expected, tolerance=None):
    tolerance = TOLERANCES.get(found.dtype, 0) if tolerance is None else tolerance
    expected = expected.to(found.device, torch.float64)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    if found.numel() == 0:
        return
    difference = (found.double() - expected).abs().max().item()
    assert difference <= tolerance * max(1, expected.abs().max().item()), difference


class GemmTest(unittest.TestCase):
    def test_types_and_orders(self):
        for dtype in (torch.bfloat16, torch.float16):
            for m, n, k in ((128, 256, 512), (5, 72, 40), (77, 33, 130)):
                a, b = randoms(m, k, dtype=dtype), randoms(k, n, dtype=dtype)
                expected = a.double() @ b.double()
                for left in (a, a.T.contiguous().T):
                    for right in (b, b.T.contiguous().T):
                        near(kiln.ops.gemm(left, right), expected)
                near(kiln.ops.gemm(a, b, dtype=torch.float32), expected)
                wide = torch.zeros(m, n + 8, dtype=dtype, device="cuda")
                out = kiln.ops.gemm(a, b, out=wide[:, :n])
                near(out, expected)
                self.assertEqual(wide[:, n:].abs().sum().item(), 0)

    def test_epilogues(self):
        a, w, bias = randoms(100, 64), randoms(48, 64), randoms(48)
        residual, out = randoms(100, 48), randoms(100, 48)
        for activation in (None, "relu", "gelu", "silu"):
            given = {"bias": bias, "residual": residual, "activation": activation, "alpha": 0.5, "beta": 2.0}
            expected = kiln.ops.gemm.reference(a, w.T, out=out.cpu(), **given)
            near(kiln.ops.gemm(a, w.T, out=out.clone(), **given), expected)

    def test_other_types(self):
        a, b = randoms(64, 128, dtype=torch.float32), randoms(96, 128, dtype=torch.float32)
        near(kiln.ops.gemm(a, b.T, tf32=True), a.double() @ b.double().T, 2**-9)
        a, b = (torch.randint(-128, 128, (size, 128), dtype=torch.int8, device="cuda") for size in (64, 96))
        near(kiln.ops.gemm(a, b.T), a.double() @ b.double().T)
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            a, b = randoms(64, 128, dtype=torch.float32).to(dtype), randoms(96, 128, dtype=torch.float32).to(dtype)
            near(kiln.ops.gemm(a, b.T), a.double() @ b.double().T)

    def test_batches(self):
        a, b = randoms(3, 40, 64), randoms(3, 64, 24)
        near(kiln.ops.gemm(a, b), a.double() @ b.double())
        near(kiln.ops.gemm(a, b.mT.contiguous().mT), a.double() @ b.double())
        near(kiln.ops.gemm(a, b[0]), a.double() @ b[0].double())
        self.assertEqual(kiln.ops.gemm(a[:0], b[0]).shape, (0, 40, 24))

    def test_addresses_that_are_not_aligned(self):
        flat = randoms(64 * 64 + 1)
        a, b = flat[1:].view(64, 64), randoms(64, 64)
        near(kiln.ops.gemm(a, b), a.double() @ b.double())

    def test_batch_invariance(self):
        a, b = randoms(300, 512), randoms(512, 256)
        whole = kiln.ops.gemm(a, b, batch_invariant=True)
        for m in (1, 17, 128):
            self.assertTrue(torch.equal(kiln.ops.gemm(a[:m], b, batch_invariant=True), whole[:m]))

    def test_streams(self):
        a, b, stream = randoms(512, 512), randoms(512, 512), torch.cuda.Stream()
        torch.cuda.synchronize()
        out = kiln.ops.gemm(a, b, stream=stream)
        stream.synchronize()
        near(out, a.double() @ b.double())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            a.fill_(1)
            out = kiln.ops.gemm(a, b)
        self.assertFalse(stream.query())
        stream.synchronize()
        near(out, a.double() @ b.double())

    def test_graphs(self):
        a, w = randoms(64, 256), randoms(128, 256)
        kiln.ops.gemm(a, w.T, activation="silu")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = kiln.ops.gemm(a, w.T, activation="silu")
        a.normal_()
        graph.replay()
        near(y, torch.nn.functional.silu(a.double() @ w.double().T))
        with self.assertRaisesRegex(kiln.DeviceError, "gemm is not prepared for these shapes"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                kiln.ops.gemm(a[:3], w.T, activation="silu")

    def test_refusals(self):
        a = randoms(64, 64)
        for error, text, call in (
            (ValueError, "`b` lies in this CPU's memory", lambda: kiln.ops.gemm(a, a.cpu())),
            (TypeError, "`a` holds bf16 and `b` f16", lambda: kiln.ops.gemm(a, a.half())),
            (ValueError, r"`a` of shape \[64, 32\] has strides \[64, 2\]", lambda: kiln.ops.gemm(a[:, ::2], a[:32])),
            (ValueError, "64 columns and .* 32 rows", lambda: kiln.ops.gemm(a, a[:32])),
            (ValueError, "shares memory with `a`", lambda: kiln.ops.gemm(a, a.clone(), out=a)),
            (ValueError, "`a` needs a gradient, and a product into `out` has none", lambda: kiln.ops.gemm(a.clone().requires_grad_(), a, out=a.clone())),
            (TypeError, "tf32=True", lambda: kiln.ops.gemm(a.float(), a.float())),
        ):
            with self.assertRaisesRegex(error, text):
                call()


class OthersTest(unittest.TestCase):
    def test_groups(self):
        a, w, bias = randoms(512, 64), randoms(3, 96, 64), randoms(3, 96)
        tiles = torch.tensor([2, 0, -1, 2], dtype=torch.int32, device="cuda")
        out = ones(512, 96, dtype=torch.bfloat16)
        expected = kiln.ops.grouped_gemm.reference(a, w.mT, tiles, bias=bias, activation="relu", out=out.cpu())
        self.assertIs(kiln.ops.grouped_gemm(a, w.mT, tiles, bias=bias, activation="relu", out=out), out)
        near(out, expected)
        near(kiln.ops.grouped_gemm(a, w.mT, tiles)[:256], kiln.ops.grouped_gemm.reference(a, w.mT, tiles)[:256])

    def test_groups_by_rows(self):
        a, w, bias = randoms(1024, 64), randoms(4, 96, 64), randoms(4, 96)
        for apart in (False, True):
            for rows in ([0, 130, 0, 256], [3, 0, 0, 200], [0, 0, 0, 0]):
                rows = torch.tensor(rows, dtype=torch.int32, device="cuda")
                out = ones(1024, 96, dtype=torch.bfloat16)
                given = dict(rows_of_group=rows, apart=apart, bias=bias)
                expected = kiln.ops.grouped_gemm.reference(a, w.mT, **given, out=out.cpu())
                kiln.ops.grouped_gemm(a, w.mT, **given, out=out)
                counts = kiln.ops.grouped_gemm.reference(a, w.mT, **given, out=torch.full_like(out.cpu(), torch.nan))
                # Of a group's last tile what is behind its last row may stay as it is.
                begin = 0
                for group, count in enumerate(rows.tolist()):
                    begin = 256 * group if apart else begin
                    near(out[begin : begin + count], expected[begin : begin + count])
                    begin += -(-count // 128) * 128
                untouched = counts.isnan().all(dim=1)
                near(out[untouched.cuda()], expected[untouched])

    def test_groups_along_k(self):
        rows = torch.tensor([128, 0, 300, 128], dtype=torch.int32, device="cuda")
        y, x = randoms(640, 96), randoms(640, 64)
        y[428:512] = 0
        near(kiln.ops.k_grouped_gemm(y.T, x, rows), kiln.ops.k_grouped_gemm.reference(y.T, x, rows))
        out = ones(4, 96, 64, dtype=torch.float32)
        expected = kiln.ops.k_grouped_gemm.reference(y.T, x, rows, out=out.cpu(), beta=1.0)
        near(kiln.ops.k_grouped_gemm(y.T, x, rows, out=out, beta=1.0), expected)
        a, b = (each.T.contiguous().to(torch.float8_e4m3fn) for each in (y, x))
        scales = dict(a_scale=torch.rand(5, 96, device="cuda"), b_scale=torch.rand(5, 64, device="cuda"))
        expected = kiln.ops.k_grouped_gemm.reference(a, b.T, rows, **scales)
        near(kiln.ops.k_grouped_gemm(a, b.T, rows, **scales), expected)

    def test_groups_with_scale_factors(self):
        a = randoms(512, 512, dtype=torch.float32).to(torch.float8_e4m3fn)
        w = randoms(3, 256, 512, dtype=torch.float32).to(torch.float8_e4m3fn)
        a_scale, b_scale = torch.rand(4, 512, device="cuda"), torch.rand(3, 2, 4, device="cuda")
        tiles = torch.tensor([2, 0, 1, 2], dtype=torch.int32, device="cuda")
        rows = torch.tensor([128, 0, 300], dtype=torch.int32, device="cuda")
        for given, count in ((dict(group_of_tile=tiles), 512), (dict(rows_of_group=rows), 428)):
            given |= dict(a_scale=a_scale, b_scale=b_scale)
            expected = kiln.ops.grouped_gemm.reference(a, w.mT, **given)
            near(kiln.ops.grouped_gemm(a, w.mT, **given)[:count], expected[:count])

    def test_sparse(self):
        for dtype in (torch.bfloat16, torch.float16):
            weights, b = randoms(256, 256, dtype=dtype), randoms(256, 128, dtype=dtype)
            packed, metadata = kiln.ops.prune(weights.cpu())
            expected = kiln.ops.sparse_gemm.reference(packed, metadata, b.cpu())
            near(kiln.ops.sparse_gemm(packed.cuda(), metadata.cuda(), b.T.contiguous().T), expected)

    def test_scale_factors(self):
        a, b = (randoms(size, 512, dtype=torch.float32).to(torch.float8_e4m3fn) for size in (200, 256))
        a_scale, b_scale = torch.rand(4, 200, device="cuda"), torch.rand(2, 4, device="cuda")
        expected = kiln.ops.block_scaled_gemm.reference(a, b.T, a_scale, b_scale)
        near(kiln.ops.block_scaled_gemm(a, b.T, a_scale, b_scale), expected)

    def test_cupy(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        a, b = cupy.random.rand(64, 96).astype(cupy.float16), cupy.random.rand(96, 32).astype(cupy.float16)
        found = kiln.ops.gemm(a, b)
        self.assertIsInstance(found, cupy.ndarray)
        self.assertLess(float(abs(found.astype(cupy.float32) - a.astype(cupy.float32) @ b.astype(cupy.float32)).max()), 0.1)


class GradientTest(unittest.TestCase):
    def test_gradients_are_those_of_pytorch(self):
        for activation in (None, "relu", "gelu", "silu"):
            inputs = [randoms(*shape) for shape in ((2, 100, 64), (48, 64), (48,), (2, 100, 48))]
            grads = []
            for dtype in (torch.bfloat16, torch.float64):
                x, w, bias, residual = (each.detach().to(dtype, copy=True).requires_grad_() for each in inputs)
                if dtype == torch.bfloat16:
                    y = kiln.ops.gemm(x, w.T, bias=bias, residual=residual, activation=activation)
                else:
                    y = torch.nn.functional.linear(x, w, bias)
                    y = (y if activation is None else getattr(torch.nn.functional, activation)(y)) + residual
                (y * y).sum().backward()
                grads.append([y, *(each.grad for each in (x, w, bias, residual))])
            for found, right in zip(*grads):
                near(found.detach(), right.detach(), 2**-5)

    def test_opcheck(self):
        a, w = randoms(32, 64).requires_grad_(), randoms(48, 64)
        for named in ({}, {"activation": "gelu", "dtype": torch.float32}):
            results = torch.library.opcheck(torch.ops.kiln.gemm, (a, w.T), named, rtol=1e-2, atol=1e-2)
            self.assertEqual(set(results.values()), {"SUCCESS"})
        tiles = torch.zeros(1, dtype=torch.int32, device="cuda")
        results = torch.library.opcheck(torch.ops.kiln.grouped_gemm, (a.detach(), w.T[None], tiles))
        self.assertEqual(set(results.values()), {"SUCCESS"})

    def test_layers_in_a_model(self):
        plain = torch.nn.Sequential(
            torch.nn.Linear(64, 256, device="cuda", dtype=torch.bfloat16),
            torch.nn.GELU(),
            torch.nn.Linear(256, 64, device="cuda", dtype=torch.bfloat16),
        )
        ours = torch.nn.Sequential(
            kiln.torch.Linear.from_linear(plain[0], activation="gelu"), kiln.torch.Linear.from_linear(plain[2])
        )
        x = randoms(10, 64)
        with torch.no_grad():
            near(ours(x), plain.double()(x.double()))
        plain.to(torch.bfloat16)
        ours = torch.nn.Sequential(
            kiln.torch.Linear.from_linear(plain[0], activation="gelu"), kiln.torch.Linear.from_linear(plain[2])
        )
        self.assertIs(ours[0].weight, plain[0].weight)
        ours(x).sum().backward()
        found = plain[0].weight.grad.clone()
        plain.zero_grad()
        plain(x).sum().backward()
        near(found, plain[0].weight.grad, 2**-5)
        for mode in ("default", "reduce-overhead"):
            torch._dynamo.reset()
            fast = torch.compile(ours, fullgraph=True, mode=mode)
            with torch.no_grad():
                for _ in range(4):
                    near(fast(x), ours(x))
        torch._dynamo.reset()
        plain.zero_grad()
        torch.compile(ours, fullgraph=True)(x).sum().backward()
        near(plain[0].weight.grad, found, 2**-5)

    def test_layers_of_other_types(self):
        layer = kiln.torch.Linear(64, 48, device="cuda")
        x = randoms(10, 64, dtype=torch.float32)
        near(layer(x).detach(), torch.nn.functional.linear(x, layer.weight, layer.bias).detach(), 0)
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            expected = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
            near(layer(x).detach(), expected.detach(), 2**-8)
        finally:
            torch.set_float32_matmul_precision(before)
        with torch.autocast("cuda", torch.bfloat16):
            self.assertEqual(layer(x).dtype, torch.bfloat16)


class CostTest(unittest.TestCase):
    def test_costs(self):
        x, w, bias = randoms(16, 256), randoms(256, 256), randoms(256)
        out = torch.empty(16, 256, dtype=torch.bfloat16, device="cuda")
        layer, plain = kiln.torch.Linear(256, 256, device="cuda", dtype=torch.bfloat16), torch.nn.Linear(256, 256, device="cuda", dtype=torch.bfloat16)
        turned = w.T
        with torch.no_grad():
            for name, work in (
                ("kiln.ops.gemm(x, w.T)", lambda: kiln.ops.gemm(x, turned)),
                ("kiln.ops.gemm(x, w.T, bias=bias, out=out)", lambda: kiln.ops.gemm(x, turned, bias=bias, out=out)),
                ("torch.ops.kiln.gemm(x, w.T)", lambda: torch.ops.kiln.gemm(x, turned)),
                ("torch.matmul(x, w.T)", lambda: torch.matmul(x, turned)),
                ("kiln.torch.Linear", lambda: layer(x)),
                ("torch.nn.Linear", lambda: plain(x)),
            ):
                COSTS.append((name, microseconds(work, batch=100, rounds=21)))


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    print_costs()
    sys.exit(0 if result.wasSuccessful() else 1)
