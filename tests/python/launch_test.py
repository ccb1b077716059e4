#!/usr/bin/env python3
"""Kernels of the package `kiln` on tensors of a GPU that is none: what is launched, and what is refused.

    PYTHONPATH=build/release/python tests/python/launch_test.py --driver build/release/src/gemm/fake_cuda

With a driver of paper (src/gemm/fake_cuda.cpp), whose memory is this CPU's, and NVRTC for the kernels. Without the
driver, only what needs none is tested.
"""

import argparse
import ctypes
import sys
import unittest
from unittest import mock
from pathlib import Path

import numpy as np

import kiln

ROOT = Path(__file__).resolve().parents[2]
DRIVER = None

SCALE = """__co__ void scale(global f32 [M, N] x, f32 factor, global f32 [M, N] y) {
  parallel i by [M] : block {
    parallel t by [1] : thread { foreach j in [N] { y.at(i, j) = x.at(i, j) * factor; } }
  }
}
"""
CHAIN = """__co__ auto chain(f32 [N] x) {
  f32 [N] sum {3.0f};
  parallel i by [N] : block {
    parallel t by [1] : thread { sum.at(i) = sum.at(i) + x.at(i); }
  }
  f32 [N] y;
  parallel i by [N] : block {
    parallel t by [1] : thread { y.at(i) = sum.at(i) * 2.0f; }
  }
  return y;
}
"""
FIRST = """__co__ void first(global s32 [N] y, int count) {
  parallel i by [count] : block {
    parallel t by [1] : thread { if (i < N) { y.at(i) = 1; } }
  }
}
"""


class FakeLaunch(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
    ]


class FakeCuda(ctypes.Structure):
    """Of src/gemm/fake_cuda.h."""

    _fields_ = [
        (name, ctypes.c_int)
        for name in (
            "allocations",
            "synchronisations",
            "modules",
            "modules_refused",
            "last_module",
            "maps",
            "launches",
            "pushes",
            "contexts_held",
        )
    ] + [
        ("capturing", ctypes.c_bool),
        ("launch_status", ctypes.c_int),
        ("events", ctypes.c_int),
        ("captured", ctypes.c_int),
        ("capture_status", ctypes.c_int),
        ("graphs_held", ctypes.c_int),
        ("graph_starts", ctypes.c_int),
        ("on_launch", ctypes.c_void_p),
    ]


class Tensor(ctypes.Structure):
    """DLTensor of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
CURRENT_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("managed_to_object", ctypes.c_void_p),
        ("tensor_from_object", FROM_OBJECT),
        ("current_stream", CURRENT_STREAM),
    ]


STREAM = 0x5700


@FROM_OBJECT
def tensor_from_object(value, out):
    value.reads += 1
    ctypes.memmove(out, ctypes.byref(value.tensor), ctypes.sizeof(Tensor))
    return 0


@CURRENT_STREAM
def current_stream(_kind, _device, out):
    out[0] = STREAM
    return 0


EXCHANGE_NAME, MANAGED_NAME = b"dlpack_exchange_api", b"dltensor"  # a capsule has its name by address
EXCHANGE = Exchange(1, 3, None, None, None, None, tensor_from_object, current_stream)
ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class CudaArray:
    """An array in memory that the driver of paper says is a GPU's."""

    def __init__(self, array, stream=1, read_only=False):
        self.array, self.stream, self.read_only = array, stream, read_only
        assert array.ctypes.data % 16 == 0

    @property
    def shape(self):
        return self.array.shape

    @property
    def __cuda_array_interface__(self):
        return {
            "data": (self.array.ctypes.data, self.read_only),
            "typestr": self.array.dtype.str,
            "shape": self.array.shape,
            "strides": None if self.array.flags.c_contiguous else self.array.strides,
            "stream": self.stream,
            "version": 3,
        }


class FastArray(CudaArray):
    """The same with DLPack's table of functions, as tensors of PyTorch have it."""

    __dlpack_c_exchange_api__ = ctypes.pythonapi.PyCapsule_New(
        ctypes.addressof(EXCHANGE), EXCHANGE_NAME, None
    )

    def __init__(self, array, device=0):
        super().__init__(array, stream=STREAM)
        self.reads = 0
        rank = array.ndim
        self.numbers = (ctypes.c_int64 * (2 * rank))(*array.shape, *(s // array.itemsize for s in array.strides))
        strides = ctypes.cast(ctypes.addressof(self.numbers) + 8 * rank, ctypes.POINTER(ctypes.c_int64))
        code = {"f": 2, "i": 0, "u": 1}[array.dtype.kind]
        shape = ctypes.cast(self.numbers, ctypes.POINTER(ctypes.c_int64))
        self.tensor = Tensor(
            array.ctypes.data, 2, device, rank, code, 8 * array.itemsize, 1, shape, strides, 0
        )


class Managed(ctypes.Structure):
    """DLManagedTensor of DLPack, which nobody frees."""

    _fields_ = [("tensor", Tensor), ("owner", ctypes.c_void_p), ("free", ctypes.c_void_p)]


class Float8Array(FastArray):
    """Of f8_e4m3, of which NumPy has the bits alone."""

    __dlpack_c_exchange_api__ = FastArray.__dlpack_c_exchange_api__

    def __init__(self, bits, device=0):
        super().__init__(bits, device)
        self.tensor.code = 10
        self.managed = Managed()

    def __dlpack_device__(self):
        return self.tensor.device_type, self.tensor.device

    def __dlpack__(self, stream=None, max_version=None):
        self.managed.tensor = self.tensor
        return ctypes.pythonapi.PyCapsule_New(ctypes.addressof(self.managed), MANAGED_NAME, None)


def memory(*shape, dtype=np.float32):
    """Zeros at a multiple of 256 bytes."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(count + 256, np.uint8)
    past = -raw.ctypes.data % 256
    return raw[past : past + count].view(dtype).reshape(shape)


def scale():
    return kiln.compile(source=SCALE, arch="sm_90a").scale


class WithoutDriverTest(unittest.TestCase):
    def test_a_missing_driver_is_one_error(self):
        if DRIVER is not None or Path("/dev/nvidia0").exists():
            self.skipTest("there is a driver")
        x, y = CudaArray(memory(4, 8)), CudaArray(memory(4, 8))
        with self.assertRaisesRegex(kiln.DeviceError, "the CUDA driver"):
            scale()(x, 2.0, y)

    def test_arrays_of_this_cpu_are_refused(self):
        x = memory(4, 8)
        with self.assertRaisesRegex(ValueError, "`x` lies in this CPU's memory.*`.simulate`"):
            scale()(x, 2.0, x)

    def test_what_is_no_argument(self):
        kernel = scale()
        x = CudaArray(memory(4, 8))
        with self.assertRaisesRegex(TypeError, "has 3 parameters, and 4 arguments"):
            kernel(x, 1, x, 2)
        with self.assertRaisesRegex(TypeError, "gives `x` twice"):
            kernel(x, 1, x=x)
        with self.assertRaisesRegex(TypeError, "`x` needs a tensor on a GPU, and an object of int"):
            kernel(1, 2, 3)
        with self.assertRaisesRegex(TypeError, "`factor` needs a number, and an object of str"):
            kernel(x, "1", x)
        with self.assertRaisesRegex(TypeError, "without a tensor"):
            kernel()

    def test_numbers_that_decide_are_known(self):
        kernel = kiln.compile(source=FIRST, arch="sm_90a").first
        self.assertEqual([each.is_deciding for each in kernel.parameters], [False, True])


class LaunchTest(unittest.TestCase):
    def setUp(self):
        if DRIVER is None:
            self.skipTest("no --driver")
        self.seen = []
        DRIVER.capturing = False
        DRIVER.launch_status = 0
        self.callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(FakeLaunch))(self.see)
        DRIVER.on_launch = 0

    def see(self, launch):
        self.seen.append(launch)

    def launches(self):
        return DRIVER.launches

    def test_a_second_call_does_not_come_to_python(self):
        kernel = scale()
        x, y = FastArray(memory(4, 8)), FastArray(memory(4, 8))
        kernel(x, 2.0, y)
        before, calls = self.launches(), []
        kernel._miss = lambda *given: calls.append(given)
        kernel(x, 3, y)
        kernel(x, y=y, factor=1.5)
        kernel(x, 3.0, y, stream=STREAM)
        kernel(FastArray(memory(4, 8)), 3.0, FastArray(memory(4, 8)), stream=None)
        self.assertEqual((self.launches() - before, calls), (4, []))
        kernel(FastArray(memory(5, 8)), 3.0, FastArray(memory(5, 8)))
        kernel(x, np.float32(2), y)
        kernel(CudaArray(memory(4, 8)), 3.0, y)
        self.assertEqual((self.launches() - before, len(calls)), (4, 3))

    def test_tensors_of_the_cuda_array_interface(self):
        kernel, modules = scale(), DRIVER.modules
        before = self.launches()
        kernel(CudaArray(memory(4, 8)), 2, CudaArray(memory(4, 8), stream=None))
        kernel(CudaArray(memory(2, 8)), np.float32(2), CudaArray(memory(2, 8), stream=77))
        self.assertEqual(self.launches() - before, 2)
        self.assertLessEqual(DRIVER.modules - modules, 1)

    def test_what_does_not_fit_launches_nothing(self):
        kernel, before = scale(), self.launches()
        for make in (FastArray, CudaArray):
            x, y = make(memory(4, 8)), make(memory(4, 8))
            with self.assertRaisesRegex(ValueError, "shape-conflict.*`M`|`M`"):
                kernel(x, 1, make(memory(5, 8)))
            with self.assertRaisesRegex(TypeError, "input-type"):
                kernel(x, 1, make(memory(4, 8, dtype=np.int32)))
            with self.assertRaisesRegex(ValueError, r"`x` of shape \[4, 8\] has strides \[16, 1\] and not \[8, 1\]"):
                kernel(make(memory(4, 16)[:, :8]), 1, y)
            kernel(x, 1, y)
            before = self.launches()
            with self.assertRaisesRegex(ValueError, "`y`, which the kernel writes, shares memory with `x`"):
                kernel(x, 1, x)
            odd = memory(4 * 8 + 4).ravel()
            if make is FastArray:
                tensor = make(memory(4, 8))
                tensor.tensor.byte_offset = 4
                with self.assertRaisesRegex(ValueError, "`x` begins 4 bytes past a multiple of 16"):
                    kernel(tensor, 1, y)
            self.assertEqual(odd.size, 36)
            with self.assertRaisesRegex(TypeError, "`factor`"):
                kernel(x, y=y)
            with self.assertRaisesRegex(TypeError, "stream"):
                kernel(x, 1, y, stream="one")
            self.assertEqual(self.launches(), before)
        with self.assertRaisesRegex(ValueError, "`y` is read-only"):
            kernel(CudaArray(memory(4, 8)), 1, CudaArray(memory(4, 8), read_only=True))

    def test_what_the_driver_says_is_an_error(self):
        kernel = scale()
        x, y = FastArray(memory(4, 8)), FastArray(memory(4, 8))
        kernel(x, 1, y)
        DRIVER.launch_status = 700
        for make in (FastArray, CudaArray):
            with self.assertRaisesRegex(kiln.DeviceError, "CUDA_ERROR_OF_PAPER"):
                kernel(make(memory(4, 8)), 1, make(memory(4, 8)))

    def test_a_captured_stream_needs_a_prepared_kernel(self):
        kernel = scale()
        x, y = FastArray(memory(4, 8)), FastArray(memory(4, 8))
        DRIVER.capturing = True
        with self.assertRaisesRegex(kiln.DeviceError, "not prepared for these shapes.*captured"):
            kernel(x, 1, y)
        kernel.prepare(x, 1, y)
        before = self.launches()
        kernel(x, 1, y)
        self.assertEqual(self.launches(), before + 1)

    def test_a_prepared_launch_takes_what_it_was_prepared_for(self):
        kernel = scale()
        x, y = FastArray(memory(4, 8)), FastArray(memory(4, 8))
        launch = kernel.prepare(x, 1, y)
        self.assertIn("x f32 [4, 8] on GPU 0", repr(launch))
        before = self.launches()
        launch(x, 2.0, y)
        launch(CudaArray(memory(4, 8)), 2.0, CudaArray(memory(4, 8)))
        self.assertEqual(self.launches(), before + 2)
        with self.assertRaisesRegex(ValueError, r"`x` as f32 \[4, 8\] on GPU 0, and f32 \[5, 8\] on GPU 0"):
            launch(FastArray(memory(5, 8)), 2.0, FastArray(memory(5, 8)))
        with self.assertRaisesRegex(TypeError, "nothing for `f32 factor`"):
            launch(x, y=y)
        with self.assertRaisesRegex(TypeError, "no tensor for `y`"):
            launch(x, 1)
        self.assertEqual(self.launches(), before + 2)

    def test_numbers_that_decide_have_a_plan_each(self):
        kernel = kiln.compile(source=FIRST, arch="sm_90a").first
        y = FastArray(memory(8, dtype=np.int32))
        for count in (3, 4, 3):
            kernel(y, count)
        self.assertEqual(len(kernel._plans), 2)
        launch = kernel.prepare(y, 3)
        with self.assertRaisesRegex(ValueError, "prepared for `count` = 3, and 5 is given"):
            launch(y, 5)

    def test_results_need_a_framework_that_allocates(self):
        kernel = kiln.compile(source=CHAIN, arch="sm_90a").chain
        with self.assertRaisesRegex(TypeError, "what the kernel returns cannot be allocated by"):
            kernel(FastArray(memory(8)))


TUNED = """template <[[tune(1, 2, 0)]] int STEP = 1>
__co__ void scale(global f32 [M, N] x, f32 factor, global f32 [M, N] y) {
  assert(STEP > 0, "no step");
  parallel i by [M] : block {
    parallel t by [1] : thread { foreach j in [N] { y.at(i, j) = x.at(i, j) * factor; } }
  }
}
"""


class CopiedArray(FastArray):
    """One that can be copied, as `bench` and `tune` do."""

    def copy(self):
        out = memory(*self.array.shape, dtype=self.array.dtype)
        out[...] = self.array
        return type(self)(out)

    @property
    def dtype(self):
        return self.array.dtype

    def get(self):
        return self.array


class MeasureTest(unittest.TestCase):
    """Over the driver of paper every batch takes 1 ms, and kernels compute nothing."""

    def setUp(self):
        if DRIVER is None:
            self.skipTest("no --driver")
        DRIVER.capturing = False
        DRIVER.launch_status = 0

    def test_a_kernel_is_measured_in_turns_with_a_function(self):
        x, y = CopiedArray(memory(4, 8)), CopiedArray(memory(4, 8))
        calls = []
        found = scale().bench(
            x, 2.0, y, baseline=lambda x, factor, y: calls.append(x), check=False, repeats=4, batch_seconds=1e-3
        )
        self.assertEqual((len(found.seconds), len(found.baseline_seconds)), (4, 4))
        self.assertEqual((found.by_graphs, found.sets, found.ratio, found.spread), (False, 512, 1.0, 0.0))
        self.assertGreater(len({id(each) for each in calls}), 2)
        self.assertNotIn(x, calls)
        self.assertIn("1.000 (spread 0.000)", str(found))
        self.assertIn("<td>baseline</td>", found._repr_html_())
        alone = scale().bench(x, 2.0, y, repeats=2, batch_seconds=1e-3)
        with self.assertRaisesRegex(ValueError, "without a baseline"):
            alone.ratio
        with self.assertRaisesRegex(AssertionError, "`y` differs"):
            scale().bench(x, 2.0, y, baseline=lambda x, factor, y: memory(4, 8) + 1)
        with self.assertRaisesRegex(ValueError, "`repeats` is 0"):
            scale().bench(x, 2.0, y, repeats=0)

    @mock.patch("kiln._tune._ROUNDS", ((1, 1e-3, 2), (3, 1e-3, 1)))
    def test_candidates_are_what_the_template_names(self):
        kernel = kiln.compile(source=TUNED, arch="sm_90a").scale
        x, y = CopiedArray(memory(4, 8)), CopiedArray(memory(4, 8))
        found = kernel.tune(x, 2.0, y)
        self.assertEqual([str(each) for each in found.candidates], ["as it is", "STEP=1", "STEP=2"])
        self.assertEqual([(str(each), each.dropped) for each in found.dropped], [("STEP=0", "assert-false")])
        self.assertIs(found.best, kernel)
        self.assertEqual(found.values, {})
        self.assertIn("3 measured; dropped 1: assert-false", str(found))
        self.assertEqual(len(kernel.tune(x, 2.0, y, over={"STEP": [3]}).candidates), 2)
        with self.assertRaisesRegex(ValueError, "names nothing to be tried.*over="):
            scale().tune(x, 2.0, y)
        with self.assertRaisesRegex(ValueError, "no candidate can be measured.*its result is wrong"):
            kernel.tune(x, 2.0, y, reference=lambda x, factor, y: memory(4, 8) + 1)


def main():
    global DRIVER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", type=Path, help="the folder of the driver of paper")
    options, others = parser.parse_known_args()
    if options.driver is not None and any(Path("/usr/local").glob("cuda*/lib*/libnvrtc.so*")):
        # Whoever looks for libcuda.so.1 from now on finds this one.
        library = ctypes.CDLL(str(options.driver / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        library.fake_cuda.restype = ctypes.POINTER(FakeCuda)
        DRIVER = library.fake_cuda().contents
    unittest.main(argv=[sys.argv[0], *others])


if __name__ == "__main__":
    main()
