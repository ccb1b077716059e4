#!/usr/bin/env python3
"""What kiln.ops knows of a call again, and what it must not: kiln._calls and kiln._core.Launcher.

    PYTHONPATH=build/release/python tests/python/calls_test.py --driver build/release/src/gemm/fake_cuda

With a driver of paper (src/gemm/fake_cuda.cpp) and NVRTC; without the driver nothing is tested.
"""

import ctypes
import unittest
from unittest import mock

import numpy as np

import launch_test
from launch_test import CudaArray, FastArray, Float8Array, memory

import kiln
from kiln import _calls, _core, _launch

try:
    import torch
except ImportError:
    torch = None


def allocator(_like, _device, dtype, shape, _what):
    names = {"f16": np.float16, "f32": np.float32, "u8": np.uint8, "s32": np.int32, "bf16": np.uint16}
    return lambda: FastArray(memory(*shape, dtype=names[dtype]))


def array(*shape, dtype=np.float16, device=0):
    return FastArray(memory(*shape, dtype=dtype), device)


class PaperDriver(unittest.TestCase):
    """`launched` says whether a call came to Python, and that it was launched."""

    def setUp(self):
        if launch_test.DRIVER is None:
            self.skipTest("no --driver")
        launch_test.DRIVER.capturing = False
        launch_test.DRIVER.launch_status = 0
        self.missed, self.fields = 0, []
        for name in ("prepare_product", "prepare_attention", "prepare_attention_backward", "prepare_attention_decode"):
            self.patch(mock.patch.object(_core, name, self.counting(getattr(_core, name))))
        self.patch(mock.patch.object(_calls, "allocator", allocator))
        self.patch(mock.patch.object(_calls, "launch", self.seeing(_calls.launch)))

    def patch(self, patch):
        patch.start()
        self.addCleanup(patch.stop)

    def counting(self, prepare):
        def prepared(fields, device):
            self.fields.append(dict(fields))
            return prepare(fields, device)

        return prepared

    def seeing(self, launch):
        def seen(asked):
            self.missed += 1
            return launch(asked)

        return seen

    def launched(self, by, *arguments, **named):
        """(launches, calls that came to Python, problems prepared, the result)"""
        before = launch_test.DRIVER.launches, self.missed, len(self.fields)
        made = by(*arguments, **named)
        after = launch_test.DRIVER.launches, self.missed, len(self.fields)
        return *(new - old for new, old in zip(after, before)), made

    def new(self, *arguments, **named):
        launches, missed, prepared, made = self.launched(*arguments, **named)
        self.assertGreater(launches, 0)
        self.assertEqual((missed, prepared), (1, 1))
        return made

    def known(self, *arguments, **named):
        launches, missed, prepared, made = self.launched(*arguments, **named)
        self.assertGreater(launches, 0)
        self.assertEqual((missed, prepared), (0, 0))
        return made

    def looked_at(self, *arguments, **named):
        """Prepared already, but not a call that is known."""
        launches, missed, prepared, made = self.launched(*arguments, **named)
        self.assertGreater(launches, 0)
        self.assertEqual((missed, prepared), (1, 0))
        return made


class KnownTest(PaperDriver):
    def test_a_product_is_known_again(self):
        gemm = kiln.ops.gemm
        a, b, out = array(72, 40), array(40, 56), array(72, 56)
        self.assertEqual(self.new(gemm, a, b).shape, (72, 56))
        self.assertEqual(self.known(gemm, array(72, 40), b=array(40, 56), stream=None).shape, (72, 56))
        self.assertIs(self.new(gemm, a, b, out=out), out)
        self.assertIs(self.known(gemm, a, b, out=out), out)
        self.known(gemm, a, b, out=out, stream=launch_test.STREAM)
        self.looked_at(gemm, a, b, stream=launch_test.STREAM)  # whose result belongs to another stream, perhaps
        self.looked_at(gemm, a, b, out=out, tf32=np.False_)

    def test_a_key_has_everything(self):
        gemm = kiln.ops.gemm
        a, b, out = array(80, 48), array(48, 64), array(80, 64)
        self.new(gemm, a, b, out=out)
        wide, deep = FastArray(memory(80, 56, dtype=np.float16)[:, :48]), FastArray(memory(64, 48, dtype=np.float16).T)
        odd = array(80, 48)
        odd.array = memory(80 * 48 + 1, dtype=np.float16)[1:].reshape(80, 48)
        odd.tensor.data = odd.array.ctypes.data
        for more in (
            {"a": wide},
            {"b": deep},
            {"a": array(96, 48), "out": array(96, 64)},
            {"a": odd},
            {"out": array(80, 64, dtype=np.float32)},
            {"bias": array(64)},
            {"residual": array(80, 64)},
            {"activation": "relu"},
            {"activation": "silu"},
            {"alpha": 0.5},
            {"beta": 1.0},
            {"batch_invariant": True},
        ):
            given = {"a": a, "b": b, "out": out, **more}
            with self.subTest(more=more):
                self.new(gemm, **given)
                self.known(gemm, **given)
        self.known(gemm, a, b, out=out)
        self.known(gemm, a, b, out=out, alpha=3, beta=0, activation=None)  # as an integer, and with what is usual
        self.known(gemm, a, b, out=out, activation="".join(["si", "lu"]))
        x = array(80, 48, dtype=np.float32), array(48, 64, dtype=np.float32)
        with self.assertRaisesRegex(TypeError, "pass tf32=True"):
            gemm(*x)
        self.new(gemm, *x, tf32=True)
        with self.assertRaisesRegex(TypeError, "pass tf32=True"):
            gemm(*x)
        self.looked_at(gemm, a, array(48, 64, device=1), out=out)

    def test_what_is_wrong_is_said_as_before(self):
        gemm = kiln.ops.gemm
        a, b, out = array(88, 48), array(48, 64), array(88, 64)
        gemm(a, b, out=out)
        for error, text, given in (
            (TypeError, "missing 1 required positional argument: 'b'", dict(a=a)),
            (TypeError, "unexpected keyword argument 'c'", dict(a=a, b=b, c=1)),
            (TypeError, "`alpha` needs a number, and an object of str", dict(a=a, b=b, alpha="2")),
            (ValueError, "`alpha` = .* is outside", dict(a=a, b=b, alpha=2**70)),
            (ValueError, "`beta` is 1, and there is no `out`", dict(a=a, b=b, beta=1)),
            (ValueError, "`activation` is 'tanh'", dict(a=a, b=b, activation="tanh")),
            (ValueError, "`activation` is 'Relu'", dict(a=a, b=b, activation="Relu")),
            (TypeError, "`stream` is an object of str", dict(a=a, b=b, out=out, stream="one")),
        ):
            with self.assertRaisesRegex(error, text):
                gemm(**given)
        with self.assertRaisesRegex(TypeError, "positional"):
            gemm(a, b, None)
        launch_test.DRIVER.launch_status = 700
        with self.assertRaisesRegex(kiln.DeviceError, "CUDA_ERROR_OF_PAPER"):
            gemm(a, b, out=out)

    def test_addresses_are_looked_at_in_each_call(self):
        gemm, both = kiln.ops.gemm, memory(64, 160, dtype=np.float16)
        a, b, out = FastArray(both[:, :32]), array(32, 48), FastArray(both[:, 32:80])
        self.new(gemm, a, b, out=out)
        self.known(gemm, a, b, out=out)  # side by side
        self.known(gemm, a, b, out=FastArray(both[:, 96:144]))
        with self.assertRaisesRegex(ValueError, "`out`, which the product writes, shares memory with `a`"):
            gemm(a, b, out=FastArray(both[:, 16:64]))
        self.new(gemm, a, b, residual=out, out=out)
        self.known(gemm, a, b, residual=out, out=out)
        self.known(gemm, a, b, residual=FastArray(both[:, 96:144]), out=out)
        with self.assertRaisesRegex(ValueError, "shares memory with `residual`"):
            gemm(a, b, residual=FastArray(both[:, 40:88]), out=out)

    def test_all_kinds_of_products(self):
        a, w, rows = array(256, 128), FastArray(memory(3, 80, 128, dtype=np.float16).transpose(0, 2, 1)), array(3, dtype=np.int32)
        for apart in (False, True):
            given = dict(a=array(384, 128), b=w, rows_of_group=rows, apart=apart)
            self.new(kiln.ops.grouped_gemm, **given)
            self.known(kiln.ops.grouped_gemm, **given)
        tiles = array(2, dtype=np.int32)
        self.new(kiln.ops.grouped_gemm, a, w, tiles)
        tiles.tensor.byte_offset = 4  # read one by one
        self.known(kiln.ops.grouped_gemm, a, w, tiles)
        self.new(kiln.ops.k_grouped_gemm, a, array(128, 80), rows)
        self.known(kiln.ops.k_grouped_gemm, a, array(128, 80), rows)
        packed, metadata = array(256, 64), array(256, 4, dtype=np.int32)
        b = FastArray(memory(80, 128, dtype=np.float16).T)
        self.new(kiln.ops.sparse_gemm, packed, metadata, b)
        self.known(kiln.ops.sparse_gemm, packed, metadata, b=b)
        self.assertEqual(self.fields[-1]["flags"] & 256, 256)

    def test_attention_and_its_gradients(self):
        attention, backward = kiln.ops.attention, kiln.ops.attention_backward
        q, k = array(2, 72, 4, 64), array(2, 80, 2, 64)
        out = self.new(attention, q, k, k)
        self.assertEqual(out.shape, (2, 72, 4, 64))
        out, lse = self.looked_at(attention, q, k, k, return_lse=True)
        self.assertEqual((out.shape, lse.shape), ((2, 72, 4, 64), (2, 4, 72)))
        self.assertEqual(len(self.known(attention, q, k, k, return_lse=True)), 2)
        self.known(attention, q, k, k)
        self.new(attention, q, k, k, causal=True)
        self.new(attention, q, k, k, scale=0.5)
        self.known(attention, q, k, k, scale=0.25)
        for scale in (0, -1.0, float("inf"), float("nan")):
            with self.assertRaisesRegex(ValueError, "`scale` is .*: a finite number above 0"):
                attention(q, k, k, scale=scale)
        self.assertIs(self.new(attention, q, k, k, out=out), out)
        self.assertIs(self.known(attention, q, k, k, out=out), out)
        with self.assertRaisesRegex(ValueError, "`out`, which attention writes, shares memory with `q`"):
            attention(q, k, k, out=q)
        given = (q, q, k, k, out, lse)
        self.new(backward, *given)
        self.assertEqual([each.shape for each in self.known(backward, *given)], [(2, 72, 4, 64), *[(2, 80, 2, 64)] * 2])

    def test_attention_of_8_bits_is_known_again(self):
        attention = kiln.ops.attention
        q, k = (Float8Array(memory(2, rows, heads, 64, dtype=np.uint8)) for rows, heads in ((72, 4), (80, 2)))
        factor, other = array(2, 2, dtype=np.float32), array(2, 2, dtype=np.float32)
        out = self.new(attention, q, k, k)
        self.assertEqual((out.shape, out.array.dtype, self.fields[-1]["type"]), ((2, 72, 4, 64), np.uint16, "f8_e4m3"))
        self.known(attention, q, k, k, v_scale=None)
        self.new(attention, q, k, k, v_scale=factor)
        self.new(attention, q, k, k, k_scale=factor)
        self.new(attention, q, k, k, q_scale=factor, k_scale=other, v_scale=other)
        other.tensor.byte_offset = 4  # read one by one
        self.known(attention, q, k, k, q_scale=other, v_scale=factor, k_scale=factor)
        self.known(attention, q, k, k)
        wide = array(2, 72, 4, 64)
        for given in ((wide, k, k), (q, wide, k), (wide, wide, wide)):
            with self.assertRaises((TypeError, ValueError)):
                attention(*given, v_scale=factor)
        with self.assertRaisesRegex(ValueError, "`v_scale` is f32"):
            attention(q, k, k, v_scale=array(1, 2, dtype=np.float32))

    def test_windows_and_soft_caps_are_known_again(self):
        attention, backward = kiln.ops.attention, kiln.ops.attention_backward
        q, k, v = array(1, 136, 2, 128), array(1, 144, 2, 128), array(1, 144, 2, 128)
        out, lse = attention(q, k, v, return_lse=True)
        for by, given in ((attention, (q, k, v)), (backward, (out, q, k, v, out, lse))):
            by(*given)
            plain = self.fields[-1]
            self.assertEqual((plain["soft_cap"], plain.get("window")), (0, None))
            for more in ({"window": (8, 0)}, {"window": (8, 1)}, {"window": (-1, 4)}, {"soft_cap": 30.0}, {"soft_cap": 20.0}):
                with self.subTest(by=by, more=more):
                    self.new(by, *given, **more)
                    self.known(by, *given, **more)
                    left, right = more.get("window", (None, None))
                    told = {"soft_cap": more.get("soft_cap", 0)} | ({"window": True, "left": left, "right": right} if "window" in more else {})
                    self.assertEqual(self.fields[-1], plain | told)
            window = [8, 0]
            self.known(by, *given, window=window)
            window[1] = 1
            self.known(by, *given, window=window)
            window[1] = 2
            self.new(by, *given, window=window)
            self.looked_at(by, *given, soft_cap=30)
            self.known(by, *given, soft_cap=30)
            self.looked_at(by, *given, window=(np.int64(8), 0))
            self.looked_at(by, *given, soft_cap=np.float32(30))
            for wrong in ((8, 0.0), (True, 0), (8,), (8, 0, 0), 8, (2**70, -2)):
                with self.assertRaisesRegex((TypeError, ValueError), "`window` is"):
                    by(*given, window=wrong)
            with self.assertRaisesRegex(ValueError, "`soft_cap` is -1.0"):
                by(*given, soft_cap=-1)
            self.known(by, *given)
        values = array(1, 144, 2, 192), array(1, 144, 2, 128)
        self.assertEqual(self.new(attention, array(1, 136, 2, 192), *values).shape, (1, 136, 2, 128))
        self.assertEqual(self.known(attention, array(1, 136, 2, 192), *values).shape, (1, 136, 2, 128))

    def test_attention_over_a_cache(self):
        decode, lengths, table = kiln.ops.attention_decode, array(2, dtype=np.int32), array(2, 50, dtype=np.int32)
        q, cache = array(2, 1, 8, 64), array(120, 16, 2, 64)
        given = (q, cache, cache, lengths)
        self.assertEqual(self.new(decode, *given, table).shape, (2, 1, 8, 64))
        self.assertEqual(self.known(decode, *given, page_table=table).shape, (2, 1, 8, 64))
        lengths.tensor.byte_offset = 4  # read one by one
        out, lse = self.looked_at(decode, *given, table, return_lse=True)
        self.assertEqual((out.shape, lse.shape), ((2, 1, 8, 64), (2, 8, 1)))
        self.assertEqual(len(self.known(decode, *given, table, return_lse=True)), 2)
        lengths.tensor.byte_offset = 0
        self.new(decode, *given, table, causal=False)
        self.new(decode, *given, table, scale=0.5)
        self.known(decode, *given, table, scale=0.25)
        self.assertIs(self.new(decode, *given, table, out=out), out)
        self.assertIs(self.known(decode, *given, table, out=out), out)
        with self.assertRaisesRegex(ValueError, "`out`, which attention writes, shares memory with `q`"):
            decode(*given, table, out=q)
        rows = array(2, 80, 2, 64)
        self.new(decode, q, rows, rows, lengths)
        self.known(decode, q, rows, rows, lengths, None)

    def test_attention_of_sequences(self):
        varlen, starts = kiln.ops.attention_varlen, array(4, dtype=np.int32)
        q, k = array(88, 4, 64), array(96, 2, 64)
        given = (q, k, k, starts, starts)
        self.assertEqual(self.new(varlen, *given).shape, (88, 4, 64))
        self.assertEqual(self.known(varlen, *given).shape, (88, 4, 64))
        starts.tensor.byte_offset = 4  # read one by one
        out, lse = self.looked_at(varlen, *given, return_lse=True)
        self.assertEqual((out.shape, lse.shape), ((88, 4, 64), (4, 88)))
        self.assertEqual(len(self.known(varlen, *given, return_lse=True)), 2)
        starts.tensor.byte_offset = 0
        self.assertEqual(self.fields[-1]["sequences"], 3)
        self.new(varlen, q, k, k, *[array(5, dtype=np.int32)] * 2)
        self.assertEqual(self.fields[-1]["sequences"], 4)
        self.new(varlen, *given, window=(8, 0))
        self.known(varlen, *given, window=(8, 0))
        self.assertIs(self.new(varlen, *given, out=out), out)
        self.assertIs(self.known(varlen, *given, out=out), out)
        with self.assertRaisesRegex(ValueError, "`out`, which attention writes, shares memory with `q`"):
            varlen(*given, out=q)

    def numbers_of(self, count, by, *arguments, **named):
        """The first parameters of a call's first launch, as if they were of f32."""
        seen = []

        def see(launch):
            values = launch.contents.parameters
            seen.append(tuple(ctypes.cast(values[i], ctypes.POINTER(ctypes.c_float))[0] for i in range(0 if seen else count)))

        callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(launch_test.FakeLaunch))(see)
        launch_test.DRIVER.on_launch = ctypes.cast(callback, ctypes.c_void_p).value
        try:
            by(*arguments, **named)
        finally:
            launch_test.DRIVER.on_launch = 0
        return seen[0]

    def test_factors_and_scale_reach_the_kernel(self):
        a, b, out = array(104, 40), array(40, 56), array(104, 56)
        for by, alpha in ((self.new, 0.375), (self.known, 0.625), (self.known, 0.875)):
            self.assertIn(alpha, self.numbers_of(6, by, kiln.ops.gemm, a, b, out=out, alpha=alpha))
        q, k, lengths = array(1, 152, 2, 64), array(1, 160, 2, 64), array(1, dtype=np.int32)
        for by, scale in ((self.new, 0.375), (self.known, 0.625), (self.known, 0.875)):
            self.assertIn(scale, self.numbers_of(6, by, kiln.ops.attention, q, k, k, scale=scale))
            self.assertIn(scale, self.numbers_of(5, by, kiln.ops.attention_decode, array(1, 1, 2, 64), k, k, lengths, scale=scale))
        for soft_cap in (6.5, 7.5):
            for by, scale in ((self.new, 0.375), (self.known, 0.625)):
                numbers = self.numbers_of(7, by, kiln.ops.attention, q, k, k, scale=scale, soft_cap=soft_cap)
                self.assertEqual(numbers[5:], (scale, soft_cap))

    def test_other_tensors_are_read_in_python(self):
        a, b, out = (CudaArray(memory(*shape, dtype=np.float16)) for shape in ((112, 40), (40, 56), (112, 56)))
        self.new(kiln.ops.gemm, a, b, out=out)
        self.looked_at(kiln.ops.gemm, a, b, out=out)

        class Child(FastArray):
            """May behave otherwise."""

        fast = [FastArray(each.array) for each in (a, b, out)]
        self.looked_at(kiln.ops.gemm, *fast[:2], out=fast[2])
        self.known(kiln.ops.gemm, *fast[:2], out=fast[2])
        self.looked_at(kiln.ops.gemm, Child(a.array), fast[1], out=fast[2])

    def test_the_oldest_calls_are_forgotten(self):
        b, out = array(16, 16), array(1, 16)

        def row(step):
            """The problem does not depend on the step, but the key does."""
            return FastArray(memory(2, step, dtype=np.float16)[:1, :16])

        for step in range(16, 16 + 1024 + 1):
            kiln.ops.gemm(row(step), b, out=out)
        self.known(kiln.ops.gemm, row(16 + 1024), b, out=out)
        self.known(kiln.ops.gemm, row(17), b, out=out)
        self.assertEqual(self.launched(kiln.ops.gemm, row(16), b, out=out)[1], 1)

    def test_shapes_and_devices_are_told_apart(self):
        FastArray(memory(1))
        kiln.ops.gemm(array(8, 16), array(16, 16))  # so that the type is known
        x = array(4, 8)
        texts = {_core.seen((each, x, None)) for each in (x, array(8, 4), array(4, 8, device=1), array(4, 8, dtype=np.float32))}
        texts.add(_core.seen((FastArray(memory(4, 16, dtype=np.float16)[:, :8]), x, None)))
        texts.add(_core.seen((x, x, x)))
        self.assertEqual(len(texts), 6)
        self.assertNotIn(None, texts)
        self.assertEqual(_core.seen((array(4, 8), x, None)), _core.seen((x, x, None)))
        self.assertIsNone(_core.seen((x, memory(2))))


if torch is not None:

    class PaperTensor(torch.Tensor):
        """A tensor in this CPU's memory that says it is a GPU's."""

        __dlpack_c_exchange_api__ = None
        __torch_function__ = torch._C._disabled_torch_function_impl
        is_cuda = property(lambda self: True)
        device = property(lambda self: torch.device("cuda", 0))

        def get_device(self):
            return 0

    def paper(*shape, dtype=torch.float16):
        tensor = torch.zeros(*shape, dtype=dtype).as_subclass(PaperTensor)
        assert tensor.data_ptr() % 16 == 0
        return tensor


@unittest.skipIf(torch is None, "no PyTorch")
class TorchTest(PaperDriver):
    """Tensors of PyTorch by their attributes, as releases before 2.10 have them."""

    def setUp(self):
        super().setUp()
        _core.know_tensors((PaperTensor,), (torch.is_grad_enabled, lambda device: 77, torch.dtype))
        self.patch(mock.patch.object(_calls, "current_stream", lambda _: 77))
        self.patch(mock.patch.object(_calls, "allocator", self.allocator))
        self.patch(mock.patch.object(_launch, "_types", {*_launch._types, PaperTensor}))

    @staticmethod
    def allocator(_like, _device, dtype, shape, _what):
        return lambda: paper(*shape, dtype=_launch.torch_dtype(dtype))

    def test_tensors_of_pytorch(self):
        gemm, a, b = kiln.ops.gemm, paper(120, 48), paper(48, 64)
        self.assertEqual(self.new(gemm, a, b).shape, (120, 64))
        self.assertEqual(self.known(gemm, a, b).shape, (120, 64))
        self.new(gemm, a, paper(64, 48).T.as_subclass(PaperTensor))
        self.known(gemm, a, paper(64, 48).T.as_subclass(PaperTensor))
        self.new(gemm, a, b, dtype=torch.float32)
        self.assertEqual(self.known(gemm, a, b, dtype=torch.float32).dtype, torch.float32)
        self.assertIsNotNone(_core.seen((a, b)))
        q = paper(1, 72, 2, 64)
        self.new(kiln.ops.attention, q, q, q, scale=0.25)
        self.assertEqual(self.known(kiln.ops.attention, q, q, q, scale=0.5, return_lse=False).shape, q.shape)

    def test_gradients_are_seen_in_each_call(self):
        gemm, a, b = kiln.ops.gemm, paper(128, 48), paper(48, 64)
        self.new(gemm, a, b)
        wanted = paper(48, 64).requires_grad_()
        self.assertIsNone(_core.seen((a, wanted)))
        called, family = [], type(gemm._launches._family)
        with mock.patch.object(family, "call_operator", lambda _self, asked: called.append(asked) or (a,)):
            self.assertIs(gemm(a, wanted), a)
            self.assertEqual(len(called), 1)
            with torch.no_grad():
                self.known(gemm, a, wanted)
            self.known(gemm.unseen, a, wanted)
            self.assertEqual(len(called), 1)
        with self.assertRaisesRegex(ValueError, "`b` needs a gradient, and a product into `out` has none"):
            gemm(a, wanted, out=paper(128, 64))


@unittest.skipIf(torch is None, "no PyTorch")
class CompiledTest(unittest.TestCase):
    """The compiler of PyTorch sees operators: of tensors in this CPU's memory, which count as a GPU's here."""

    def compiled(self, function, *arguments):
        with mock.patch.object(_calls, "_is_torch_on_gpu", lambda value: isinstance(value, torch.Tensor)):
            return torch.compile(function, fullgraph=True, backend="aot_eager")(*arguments)

    def test_functions_are_compiled_whole(self):
        import kiln.torch

        x, w, bias = (torch.randn(*shape).to(torch.bfloat16) for shape in ((8, 16), (24, 16), (24,)))
        how = dict(bias=bias, activation="gelu", alpha=0.5)
        y = self.compiled(lambda x: kiln.ops.gemm(x * 2, w.T, **how) + 1, x)
        torch.testing.assert_close(y, kiln.ops.gemm.reference(x * 2, w.T, **how) + 1)
        wanted = x.clone().requires_grad_()
        self.compiled(lambda x: kiln.ops.gemm(x, w.T), wanted).sum().backward()
        self.assertEqual(wanted.grad.shape, x.shape)
        q = torch.randn(1, 8, 2, 64).to(torch.bfloat16)
        out, lse = self.compiled(lambda q: kiln.ops.attention(q, q, q, causal=True, return_lse=True), q)
        torch.testing.assert_close(out, kiln.ops.attention.reference(q, q, q, causal=True))
        made = self.compiled(lambda q: kiln.ops.attention_backward(q, q, q, q, out, lse, causal=True), q)
        self.assertEqual([each.shape for each in made], [q.shape] * 3)
        how = dict(window=(2, 1), soft_cap=0.5, scale=0.25)
        out = self.compiled(lambda q: kiln.ops.attention(q, q, q, **how), q)
        torch.testing.assert_close(out, kiln.ops.attention.reference(q, q, q, **how))
        made = self.compiled(lambda q: kiln.ops.attention_backward(q, q, q, q, out, lse, **how), q)
        self.assertEqual([each.shape for each in made], [q.shape] * 3)
        lengths = torch.tensor([5], dtype=torch.int32)
        out = self.compiled(lambda q: kiln.ops.attention_decode(q[:, :2], q, q, lengths, scale=0.25), q)
        torch.testing.assert_close(out, kiln.ops.attention_decode.reference(q[:, :2], q, q, lengths, scale=0.25))
        starts = torch.tensor([0, 3, 8], dtype=torch.int32)
        out = self.compiled(lambda q: kiln.ops.attention_varlen(q[0], q[0], q[0], starts, starts, causal=True), q)
        torch.testing.assert_close(out, kiln.ops.attention_varlen.reference(q[0], q[0], q[0], starts, starts, causal=True))
        packed, metadata = kiln.ops.prune(torch.randn(32, 64).to(torch.bfloat16))
        y = self.compiled(lambda b: kiln.ops.sparse_gemm(packed, metadata, b), torch.ones(64, 8, dtype=torch.bfloat16))
        self.assertEqual(y.shape, (32, 8))
        b, rows = torch.randn(2, 16, 32).to(torch.bfloat16), torch.tensor([3, 2], dtype=torch.int32)
        y = self.compiled(lambda a: kiln.ops.grouped_gemm(a, b, rows_of_group=rows), torch.randn(256, 16).to(torch.bfloat16))
        self.assertEqual(y.shape, (256, 32))


if __name__ == "__main__":
    launch_test.main()
