#!/usr/bin/env python3
"""Kernels called from Python on a GPU: values, streams, graphs, operators, what is refused, and what a call costs.

    PYTHONPATH=build/release/python tests/gpu/torch_test.py [-v] [CASE]...

Needs PyTorch with CUDA and a GPU of sm_90. What CuPy, Numba, JAX or Triton is needed for is skipped without it. The
costs are printed at the end: medians of the time that a call takes on the CPU.
"""

import gc
import os
import statistics
import sys
import threading
import time
import unittest
from pathlib import Path

import torch

import kiln
import kiln.testing
import kiln.torch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

AXPY = """__co__ void axpy(global f32 [N] x, f32 a, global f32 [N] y) {
  parallel b by [cdiv(N, 128)], t by [128] : thread {
    if (b * 128 + t < N) { y.at(b * 128 + t) = y.at(b * 128 + t) + x.at(b * 128 + t) * a; }
  }
}
"""
MIX = """__co__ void mix(global f32 [N] q, global f32 [N] k, global f32 [N] v, global f32 [N] out, f32 scale) {
  parallel b by [cdiv(N, 128)], t by [128] : thread {
    if (b * 128 + t < N) {
      out.at(b * 128 + t) = q.at(b * 128 + t) * k.at(b * 128 + t) + v.at(b * 128 + t) * scale;
    }
  }
}
"""
CHAIN = """__co__ auto chain(f32 [N] x) {
  f32 [N] sum {3.0f};
  s64 [N] count {4294967298};
  parallel b by [cdiv(N, 128)], t by [128] : thread {
    if (b * 128 + t < N) {
      sum.at(b * 128 + t) = sum.at(b * 128 + t) + x.at(b * 128 + t);
      count.at(b * 128 + t) = count.at(b * 128 + t) - 4294967297;
    }
  }
  f32 [N] y;
  parallel b by [cdiv(N, 128)], t by [128] : thread {
    if (b * 128 + t < N) { y.at(b * 128 + t) = sum.at(b * 128 + t) * __to<f32>(count.at(b * 128 + t)); }
  }
  return y;
}
"""
GROW = """__co__ auto grow(f32 [N] x) {
  parallel b by [cdiv(N, 128)], t by [128] : thread {
    if (b * 128 + t < N) { x.at(b * 128 + t) = x.at(b * 128 + t) + 1.0f; }
  }
  return x;
}
"""
SQUARE = """__co__ void square(global f64 [N] x, global f64 [N] y) {
  parallel b by [cdiv(N, 128)], t by [128] : thread {
    if (b * 128 + t < N) { y.at(b * 128 + t) = x.at(b * 128 + t) * x.at(b * 128 + t); }
  }
}
"""
FIRST = """__co__ void first(global s32 [N] y, int count, int value) {
  parallel i by [count] : block {
    parallel t by [1] : thread { if (i < N) { y.at(i) = value; } }
  }
}
"""
COSTS = []


def compiled(source, **defines):
    return kiln.compile(source=source, **defines).kernels[0]


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype, device="cuda")


def randoms(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def softmax_kernel():
    return kiln.compile(EXAMPLES / "softmax.co", N=256).softmax


class ValuesTest(unittest.TestCase):
    def test_tensors_are_read_and_written(self):
        axpy = compiled(AXPY)
        for n in (1, 100, 5000):
            x, y = randoms(n, dtype=torch.float32), ones(n)
            expected = y + 2.5 * x
            self.assertIsNone(axpy(x, 2.5, y))
            torch.testing.assert_close(y, expected)
            axpy(x, y=y, a=-2.5)
            torch.testing.assert_close(y, ones(n), atol=1e-5, rtol=1e-5)

    def test_tensor_maps_are_those_of_the_addresses(self):
        kernel = kiln.compile(EXAMPLES / "matmul_1p1c.co").matmul_1p1c
        for m, n, k in ((256, 256, 256), (512, 384, 128)):
            for _ in range(3):
                a, b = randoms(m, k, dtype=torch.float16), randoms(n, k, dtype=torch.float16)
                out = torch.zeros(m, n, dtype=torch.float16, device="cuda")
                kernel(a, b, out)
                torch.testing.assert_close(out.float(), a.float() @ b.float().T, rtol=2**-8, atol=0.05)

    def test_attention(self):
        kernel = kiln.compile(EXAMPLES / "attention.co").attention
        q, k, v = (randoms(2, n, 128) for n in (100, 130, 130))
        o = torch.empty_like(q)
        kernel(q, k, v, o, c=0.1275)
        scores = q.float() @ k.float().transpose(1, 2) * 0.1275 / 1.44269504
        torch.testing.assert_close(o.float(), scores.softmax(-1) @ v.float(), rtol=2**-5, atol=2**-6)

    def test_host_parts_of_several_launches_with_buffers(self):
        chain = compiled(CHAIN)
        for n in (10, 1000):
            x = randoms(n, dtype=torch.float32)
            for _ in range(3):
                y = chain(x)
                self.assertEqual((y.shape, y.dtype, y.device), (x.shape, x.dtype, x.device))
                torch.testing.assert_close(y, x + 3)

    def test_what_is_passed_by_value_stays(self):
        x = randoms(300, dtype=torch.float32)
        before = x.clone()
        torch.testing.assert_close(compiled(GROW)(x), before + 1)
        torch.testing.assert_close(x, before)

    def test_numbers(self):
        first = compiled(FIRST)
        y = torch.zeros(8, dtype=torch.int32, device="cuda")
        for count, value in ((3, 5), (3, -7), (6, 9)):
            y.zero_()
            first(y, count, value)
            self.assertEqual(y.tolist(), [value] * count + [0] * (8 - count))

    def test_check_compares_with_a_function(self):
        x, y = randoms(10, 256), torch.empty(10, 256, dtype=torch.bfloat16, device="cuda")
        kiln.testing.check(softmax_kernel(), (x, y), reference=lambda x, y: torch.softmax(x.float(), 1))
        kiln.testing.check(softmax_kernel(), (x, y))
        with self.assertRaisesRegex(AssertionError, "`y` differs"):
            kiln.testing.check(softmax_kernel(), (x, y), reference=lambda x, y: torch.softmax(x.float(), 1) + 1)

    def test_parameters_of_modules_are_tensors(self):
        weight = torch.nn.Parameter(ones(64))
        y = ones(64)
        compiled(AXPY)(weight, 1.0, y)
        self.assertEqual(y.tolist(), [2.0] * 64)


class StreamTest(unittest.TestCase):
    def test_the_current_stream_is_taken_and_nothing_waits(self):
        axpy = compiled(AXPY)
        x, y = ones(1 << 20), ones(1 << 20)
        axpy.prepare(x, 1.0, y)
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        for how in ("current", "argument"):
            y.fill_(1)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)
                x.fill_(5)
            began = time.perf_counter()
            if how == "current":
                with torch.cuda.stream(stream):
                    axpy(x, 1.0, y)
            else:
                axpy(x, 1.0, y, stream=stream)
            took = time.perf_counter() - began
            self.assertFalse(stream.query())
            stream.synchronize()
            self.assertEqual(y[-1].item(), 6)
            self.assertLess(took, 0.05)
            x.fill_(1)

    def test_results_on_another_stream(self):
        chain, stream = compiled(CHAIN), torch.cuda.Stream()
        x = ones(1000)
        torch.cuda.synchronize()
        for _ in range(20):
            y = chain(x, stream=stream)
            stream.synchronize()
            self.assertEqual(y.sum().item(), 4000)

    def test_threads_with_streams(self):
        axpy, failures = compiled(AXPY), []

        def work(number):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                x, y = ones(1000 + number), ones(1000 + number)
                for _ in range(200):
                    axpy(x, 1.0, y)
                stream.synchronize()
                if y.sum().item() != 201 * (1000 + number):
                    failures.append(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class GraphTest(unittest.TestCase):
    def capture(self, work):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = work()
        return graph, out

    def test_a_prepared_kernel_is_captured(self):
        kernel = kiln.compile(EXAMPLES / "matmul_1p1c.co").matmul_1p1c
        a, b = (randoms(256, 256, dtype=torch.float16) for _ in range(2))
        out = torch.zeros(256, 256, dtype=torch.float16, device="cuda")
        kernel.prepare(a, b, out)
        graph, _ = self.capture(lambda: kernel(a, b, out))
        for _ in range(3):
            a.normal_()
            graph.replay()
            torch.testing.assert_close(out.float(), a.float() @ b.float().T, rtol=2**-8, atol=0.05)

    def test_results_and_workspaces_are_the_graphs(self):
        chain = compiled(CHAIN)
        x = ones(500)
        chain(x)
        graph, y = self.capture(lambda: chain(chain(x)))
        del chain
        gc.collect()
        for value in (1.0, 7.0):
            x.fill_(value)
            graph.replay()
            self.assertEqual(y.tolist(), [value + 6] * 500)

    def test_a_kernel_that_is_not_prepared_says_so(self):
        axpy = compiled(AXPY)
        x, y = ones(77), ones(77)
        with self.assertRaisesRegex(kiln.DeviceError, "not prepared for these shapes.*captured"):
            self.capture(lambda: axpy(x, 1.0, y))
        axpy(x, 1.0, y)
        self.assertEqual(y.sum().item(), 154)


class RefusalTest(unittest.TestCase):
    """What does not fit is an exception, and nothing is launched."""

    def refused(self, error, text, *arguments, kernel=None, **named):
        kernel = kernel or self.axpy
        with self.assertRaisesRegex(error, text):
            kernel(*arguments, **named)
        torch.cuda.synchronize()

    def setUp(self):
        self.axpy = compiled(AXPY)
        self.x, self.y = ones(64), ones(64)
        self.axpy(self.x, 0.0, self.y)

    def tearDown(self):
        self.assertEqual(self.y.tolist(), [1.0] * 64)

    def test_devices(self):
        self.refused(ValueError, "`x` lies on the device `cpu`", self.x.cpu(), 1.0, self.y)
        self.refused(ValueError, "`x` lies in this CPU's memory", self.x.cpu().numpy(), 1.0, self.y)
        if torch.cuda.device_count() > 1:
            self.refused(ValueError, "GPU 1 and `y` on GPU 0", self.x.to("cuda:1"), 1.0, self.y)

    def test_types(self):
        self.refused(TypeError, "input-type", self.x.half(), 1.0, self.y)
        self.refused(TypeError, "complex64", self.x.to(torch.complex64), 1.0, self.y)
        self.refused(TypeError, "needs a tensor on a GPU, and an object of list", [1.0], 1.0, self.y)
        self.refused(TypeError, "`a` needs a number, and None", self.x, None, self.y)

    def test_shapes(self):
        self.refused(ValueError, "N.*64", ones(65), 1.0, self.y)
        self.refused(ValueError, r"\[8, 8\]", self.x.view(8, 8), 1.0, self.y)
        self.refused(ValueError, "shape-range", ones(0), 1.0, ones(0))

    def test_strides(self):
        self.refused(ValueError, r"`x` of shape \[64\] has strides \[2\] and not \[1\].*contiguous", ones(128)[::2], 1.0, self.y)
        self.refused(ValueError, r"\[0\] and not \[1\]", ones(1).expand(64), 1.0, self.y)
        square = softmax_kernel()
        x = randoms(256, 256)
        self.refused(ValueError, r"strides \[1, 256\] and not \[256, 1\]", x.T, torch.empty_like(x), kernel=square)

    def test_memory(self):
        whole = ones(128)
        self.refused(ValueError, "`x` begins 4 bytes past a multiple of 16", whole[1:65], 1.0, self.y)
        self.refused(ValueError, "shares memory with `x`", self.y, 1.0, self.y)
        self.refused(ValueError, "shares memory with `x`", whole[:64], 1.0, whole[32:96])

    def test_names(self):
        self.refused(TypeError, "scalar-missing|`a`", self.x, y=self.y)
        self.refused(TypeError, "gives `x` twice", self.x, 1.0, x=self.x)
        self.refused(TypeError, "has 3 parameters, and 4", self.x, 1.0, self.y, 1)
        self.refused(TypeError, "`b`", self.x, 1.0, self.y, b=2)
        self.refused(TypeError, "a stream of PyTorch, CuPy or Numba", self.x, 1.0, self.y, stream="s")

    def test_prepared(self):
        launch = self.axpy.prepare(self.x, 1.0, self.y)
        self.refused(ValueError, r"prepared for `x` as f32 \[64\] on GPU 0, and f32 \[65\]", ones(65), 1.0, ones(65), kernel=launch)
        y = ones(64)
        launch(self.x, 2.0, y)
        self.assertEqual(y.tolist(), [3.0] * 64)


class OperatorTest(unittest.TestCase):
    def test_opcheck_compile_and_graphs(self):
        def keep(ctx, inputs, output):
            ctx.save_for_backward(output)

        def backward(ctx, slope):
            (y,) = ctx.saved_tensors
            return (slope - (slope * y).sum(1, keepdim=True)) * y

        softmax = kiln.torch.register("kiln_gpu::softmax", softmax_kernel(), backward=backward, setup_context=keep)
        x = randoms(10, 256).requires_grad_()
        self.assertEqual(set(torch.library.opcheck(torch.ops.kiln_gpu.softmax, (x,)).values()), {"SUCCESS"})
        expected = torch.softmax(x.detach().float(), 1) * 2
        for mode in ("default", "reduce-overhead"):
            torch._dynamo.reset()
            fast = torch.compile(lambda x: softmax(x) * 2, fullgraph=True, mode=mode)
            for _ in range(4):
                with torch.no_grad():
                    torch.testing.assert_close(fast(x.detach()).float(), expected, rtol=2**-6, atol=2**-9)
        torch._dynamo.reset()
        fast = torch.compile(lambda x: softmax(x) * 2, fullgraph=True)
        fast(x).sum().backward()
        self.assertEqual(x.grad.shape, x.shape)

    def test_operators_that_change_and_return(self):
        axpy = kiln.torch.register("kiln_gpu::axpy", compiled(AXPY))
        chain = kiln.torch.register("kiln_gpu::chain", compiled(CHAIN))
        y = ones(50)
        axpy(ones(50), 2.0, y)
        self.assertEqual(y.tolist(), [3.0] * 50)
        for op, arguments in ((torch.ops.kiln_gpu.axpy, (ones(50), 2.0, ones(50))), (torch.ops.kiln_gpu.chain, (ones(50),))):
            self.assertEqual(set(torch.library.opcheck(op, arguments).values()), {"SUCCESS"})
        fast = torch.compile(lambda x: chain(x + 1) * 2, fullgraph=True)
        self.assertEqual(fast(ones(50)).tolist(), [10.0] * 50)

    def test_gradcheck_of_a_backward(self):
        def keep(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        def backward(ctx, slope):
            return 2 * ctx.saved_tensors[0] * slope

        square = kiln.torch.register("kiln_gpu::square", compiled(SQUARE), backward=backward, setup_context=keep)
        x = torch.randn(30, dtype=torch.float64, device="cuda", requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(square, (x,)))


class OthersTest(unittest.TestCase):
    def test_cupy(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        axpy, chain = compiled(AXPY), compiled(CHAIN)
        x, y = cupy.ones(300, cupy.float32), cupy.ones(300, cupy.float32)
        for _ in range(3):
            axpy(x, 2.0, y)
        self.assertEqual(float(y.sum()), 7 * 300)
        result = chain(x)
        self.assertIsInstance(result, cupy.ndarray)
        self.assertEqual(float(result.sum()), 4 * 300)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            x.fill(2)
            axpy(x, 1.0, y)
            stream.synchronize()
        self.assertEqual(float(y.sum()), 9 * 300)
        z = ones(300)
        axpy(x, 1.0, z)
        torch.cuda.synchronize()
        self.assertEqual(z.sum().item(), 3 * 300)

    def test_numba(self):
        try:
            import numpy as np
            from numba import cuda
        except ImportError:
            self.skipTest("no Numba")
        if not cuda.is_available():
            self.skipTest("Numba sees no GPU")
        x = cuda.to_device(np.ones(300, np.float32))
        y = cuda.to_device(np.ones(300, np.float32))
        compiled(AXPY)(x, 2.0, y)
        self.assertEqual(y.copy_to_host().sum(), 900)
        self.assertEqual(compiled(CHAIN)(x).copy_to_host().sum(), 1200)

    def test_jax(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        try:
            import jax
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("no JAX")
        if jax.default_backend() != "gpu":
            self.skipTest("JAX sees no GPU")
        x, y = jnp.full(300, 2.0, jnp.float32), ones(300)
        axpy = compiled(AXPY)
        axpy(x, 2.0, y)
        torch.cuda.synchronize()
        self.assertEqual(y.sum().item(), 5 * 300)
        with self.assertRaisesRegex(TypeError, "`y` is an array of JAX, which must not change"):
            axpy(y, 1.0, x)


def microseconds(work, batch=200, rounds=31):
    """The median time of a call on the CPU; the GPU is never far behind."""
    for _ in range(20):
        work()
    seconds = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(batch):
            work()
        seconds.append((time.perf_counter() - began) / batch)
    torch.cuda.synchronize()
    return statistics.median(seconds) * 1e6


class CostTest(unittest.TestCase):
    """Four tensors and a number, of 1024 elements."""

    def setUp(self):
        self.mix = compiled(MIX)
        self.q, self.k, self.v, self.out = (ones(1024) for _ in range(4))

    def cost(self, name, work):
        COSTS.append((name, microseconds(work)))
        return COSTS[-1][1]

    def test_a_prepared_call(self):
        mix, q, k, v, out = self.mix, self.q, self.k, self.v, self.out
        launch = mix.prepare(q, k, v, out, 2.0)
        self.cost("kiln: mix(q, k, v, out, 2.0)", lambda: mix(q, k, v, out, 2.0))
        self.cost("kiln: mix(q, k, v, out, scale=2.0)", lambda: mix(q, k, v, out, scale=2.0))
        self.cost("kiln: mix.prepare(...)(q, k, v, out, 2.0)", lambda: launch(q, k, v, out, 2.0))
        chain = compiled(CHAIN)
        self.cost("kiln: chain(x), 2 fills, 2 launches, a result and a workspace", lambda: chain(q))
        operator = kiln.torch.register("kiln_gpu::mix", mix)
        self.cost("kiln: torch.ops.kiln_gpu.mix(q, k, v, 2.0)", lambda: operator(q, k, v, 2.0))

    def test_tensor_maps(self):
        kernel = kiln.compile(EXAMPLES / "matmul_1p1c.co").matmul_1p1c
        a, b, out = (randoms(256, 256, dtype=torch.float16) for _ in range(3))
        self.cost("kiln: matmul_1p1c(a, b, out), tensor maps", lambda: kernel(a, b, out))

    def test_of_pytorch(self):
        self.cost("torch.add(q, k, out=out)", lambda: torch.add(self.q, self.k, out=self.out))

    def test_of_cupy(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("no CuPy")
        q, k, v, out = (cupy.ones(1024, cupy.float32) for _ in range(4))
        self.cost("kiln: mix of arrays of CuPy", lambda: self.mix(q, k, v, out, 2.0))

    def test_of_triton(self):
        try:
            import triton
            import triton.language as tl
        except ImportError:
            self.skipTest("no Triton")
        globals()["tl"] = tl

        @triton.jit
        def mixed(q, k, v, out, n, scale, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            inside = at < n
            value = tl.load(q + at, inside) * tl.load(k + at, inside) + tl.load(v + at, inside) * scale
            tl.store(out + at, value, inside)

        q, k, v, out = self.q, self.k, self.v, self.out
        self.cost("Triton: mix[(8,)](q, k, v, out, 1024, 2.0, BLOCK=128)", lambda: mixed[(8,)](q, k, v, out, 1024, 2.0, BLOCK=128))


def print_costs():
    if not COSTS:
        return
    print(f"\na call on the CPU, median ({torch.cuda.get_device_name()}, PyTorch {torch.__version__}):")
    for name, cost in COSTS:
        print(f"  {cost:8.2f} us  {name}")


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        sys.exit(77)
    result = unittest.main(exit=False).result
    print_costs()
    sys.exit(0 if result.wasSuccessful() else 1)
