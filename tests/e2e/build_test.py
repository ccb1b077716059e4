#!/usr/bin/env python3
"""Whole programs: `kiln build` and `kiln run` of `.co` files with host code.

    KILN_RELEASE=build/release/bin/kiln tests/e2e/build_test.py [CASE]...

The programs are in tests/e2e/programs; with `_` in front no golden test is looked for in them. Needs a
host compiler, and libkiln where `kiln build` looks for it; the programs that are built are not
sanitized, so libkiln must not be. What a program asks of a GPU is tried on the driver of paper, which computes
nothing; that needs NVRTC.
"""

import ctypes
import os
import pty
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = Path(os.environ.get("KILN_RELEASE", ROOT / "build/release/bin/kiln")).resolve()
FAKE_CUDA = KILN.parents[1] / "src" / "gemm" / "fake_cuda"
PROGRAMS = Path(__file__).resolve().parent / "programs"


def kiln(*argv, cwd, expected=0, env=None):
    done = subprocess.run(
        [str(KILN), *[str(arg) for arg in argv]],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )
    if done.returncode != expected:
        sys.stderr.write(done.stdout + done.stderr)
        raise AssertionError(f"kiln {argv[0]} exits with {done.returncode}, expected {expected}")
    return done


def has_driver():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


def has_nvrtc():
    names = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]
    for name in names:
        try:
            return ctypes.CDLL(name) is not None
        except OSError:
            continue
    return False


class BuildTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def run_program(self, name, *arguments, expected=0):
        return kiln(
            "run", PROGRAMS / name, "--on", "sim", "--arch", "sm_90a", "--", *arguments,
            cwd=self.folder, expected=expected,
        )

    def test_a_product_is_verified_by_main(self):
        done = self.run_program("_product.co")
        self.assertEqual(done.stdout, "48 x 32: right\n")
        self.assertEqual(done.stderr, "")

    def test_metadata_are_packed_as_kernels_load_them(self):
        done = self.run_program("_sparse.co")
        self.assertEqual((done.stdout, done.stderr), ("right right\n", ""))

    def test_a_race_is_named_by_the_line_of_the_call(self):
        done = self.run_program("_race.co", expected=1)
        self.assertEqual(done.stdout, "main goes on\n")
        self.assertIn("_race.co:16: in this call of `reverse`\n", done.stderr)
        self.assertIn("error[race]: race on `tile[32]`", done.stderr)

    def test_arguments_and_the_exit_code_are_those_of_main(self):
        done = self.run_program("_arguments.co", "3", "4", expected=7)
        self.assertEqual(done.stdout, "2 arguments\n")

    def test_memory_of_the_device_and_of_the_host(self):
        done = self.run_program("_device_memory.co", expected=1)
        self.assertEqual(done.stdout, "sum 528\n")
        self.assertIn(
            "_device_memory.co:27: error: in this call of `sum` the memory of `x`, a `global` parameter, "
            "is memory of the host",
            done.stderr,
        )

    def test_memory_is_filled_with_numbers(self):
        self.write(
            "fill.co",
            "__co__ void f(f32 [4] x) {}\n"
            "int main() {\n  choreo::bf16 x[64];\n  float y[4];\n"
            "  choreo::utils::fill_random(x, 64, choreo::bf16(1.0f), choreo::bf16(2.0f));\n"
            "  choreo::utils::fill_n(y, 3, 7);\n"
            "  for (float v : x) choreo::choreo_assert(v >= 1.0f && v <= 2.0f, \"x\");\n"
            "  std::cout << (x[0] == x[2]) << y[2] << std::endl;\n}\n",
        )
        done = kiln("run", "fill.co", "--on", "sim", cwd=self.folder)
        self.assertEqual(done.stdout, "07\n")

    def test_extents_are_known_at_the_call(self):
        done = self.run_program("_extents.co")
        self.assertEqual(done.stdout, "4 8\n")

    def test_a_mistake_in_host_code_has_its_line(self):
        self.write("wrong.co", "__co__ void f(f32 [4] x) {\n}\n\nint main() {\n  return nothing;\n}\n")
        done = kiln("build", "wrong.co", "--on", "sim", "-o", "app", cwd=self.folder, expected=1)
        self.assertIn("wrong.co:5:", done.stderr)
        self.assertIn("error: the host compiler refuses wrong.co", done.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["wrong.co"])

    def test_a_terminal_sees_what_is_being_done(self):
        program = "__co__ void f(f32 [4] x) {\n}\n\nint main() {\n  return %s;\n}\n"
        for text, expected in ((program % "0", 0), (program % "nothing", 1)):
            self.write("app.co", text)
            ours, theirs = pty.openpty()
            done = subprocess.run([KILN, "build", "app.co", "--on", "sim"], cwd=self.folder, stderr=theirs, check=False)
            os.close(theirs)
            said = b""
            while not said.endswith((b"\r\x1b[K", b"app.co\r\n")):
                said += os.read(ours, 4096)
            os.close(ours)
            self.assertEqual(done.returncode, expected, said)
            self.assertIn(b"\r\x1b[Kcompiling tile functions\r\x1b[K", said)
            # The host compiler's words begin at the line's begin.
            self.assertRegex(said, rb"compiling host code\r(\r\x1b\[K$|[\x1b[mK01;]*app\.co)")

    def test_a_built_program_carries_its_kernels(self):
        program = self.folder / "program.co"
        program.write_text((PROGRAMS / "_product.co").read_text())
        kiln("build", "program.co", "--on", "sim", "-o", "app", "--", "-O1", cwd=self.folder)
        program.unlink()
        done = subprocess.run([self.folder / "app"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "48 x 32: right\n"), done.stderr)

    def test_defines_are_those_of_both_compilers(self):
        self.write(
            "size.co",
            "#define SIZE 32\n"
            "__co__ s32 [SIZE] ones() {\n  s32 [SIZE] x;\n"
            "  parallel t by SIZE : thread x.at(t) = 1;\n  return x;\n}\n"
            "int main() { std::cout << SIZE << \" \" << ones().shape()[0] << std::endl; }\n",
        )
        done = kiln("run", "size.co", "--on", "sim", "-D", "SIZE=64", cwd=self.folder)
        self.assertEqual(done.stdout, "64 64\n")

    def test_a_constant_is_the_same_to_both_compilers(self):
        self.write(
            "constant.co",
            "#ifdef WIDE\nconstexpr int N = 64;\n#else\nconstexpr int N = 32;\n#endif\n"
            "__co__ s32 [N] ones() {\n  s32 [N] x;\n"
            "  parallel t by N : thread x.at(t) = 1;\n  return x;\n}\n"
            "int main() { std::cout << N << \" \" << ones().shape()[0] << std::endl; }\n",
        )
        done = kiln("run", "constant.co", "--on", "sim", "-D", "WIDE=1", cwd=self.folder)
        self.assertEqual(done.stdout, "64 64\n")
        done = kiln("build", "constant.co", "--on", "sim", "-o", "app", "--", "-DWIDE", cwd=self.folder, expected=1)
        self.assertIn("tile functions were compiled with N = 32", done.stderr)

    def test_memory_of_two_parameters(self):
        self.write(
            "shared.co",
            "__co__ void f(global s32 [N] x, global s32 [N] y) {\n"
            "  parallel t by 32 : thread y.at(t) = x.at(31 - t);\n}\n"
            "int main() {\n  int* x = nullptr;\n  choreo::abend_true(cudaMalloc(&x, 48 * sizeof(int)));\n"
            "  f(choreo::make_spanview<1>(x, {32}), choreo::make_spanview<1>(x + 16, {32}));\n}\n",
        )
        done = kiln("run", "shared.co", "--on", "sim", cwd=self.folder, expected=1)
        self.assertIn("shared.co:7: in this call of `f`", done.stderr)
        self.assertIn("`y`, which the kernel writes, shares memory with `x`", done.stderr)

    def test_memory_comes_to_tile_functions_and_back(self):
        done = self.run_program("_transfers.co")
        self.assertEqual((done.stdout, done.stderr), ("moved 2.5\n", ""))

    def test_a_function_that_returns_its_parameter_returns_what_it_wrote(self):
        self.write(
            "grow.co",
            "__co__ auto grow(s32 [N] x) {\n"
            "  parallel t by [N] : thread x.at(t) = x.at(t) + 1;\n  return x;\n}\n"
            "int main() {\n  auto x = croq::make_spandata<croq::s32>(4);\n  auto y = grow(x);\n"
            "  std::cout << x[3] << y[3] << std::endl;\n}\n",
        )
        done = kiln("run", "grow.co", "--on", "sim", cwd=self.folder)
        self.assertEqual(done.stdout, "01\n")

    def test_a_pointer_to_a_tile_function_calls_it(self):
        done = self.run_program("_pointers.co", expected=1)
        self.assertEqual(done.stdout, "grow 5, twice 8, twice 8, one 1\n")
        # A call by a pointer has the place of the function, one by name its own.
        self.assertIn("_pointers.co:12: in this call of `unordered`\n", done.stderr)
        self.assertIn("_pointers.co:35: in this call of `unordered`\n", done.stderr)

    @unittest.skipIf(has_driver(), "there is a driver")
    def test_no_driver(self):
        done = kiln("run", PROGRAMS / "_product.co", "--on", "gpu", cwd=self.folder, expected=3)
        self.assertEqual(done.stdout, "")
        self.assertIn("error: this program needs a GPU: cannot open the CUDA driver: ", done.stderr)
        self.assertIn("`--on auto`", done.stderr)
        kiln("build", PROGRAMS / "_product.co", "-o", "app", cwd=self.folder)
        done = subprocess.run([self.folder / "app"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "48 x 32: right\n"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("note: tile functions are simulated: cannot open the CUDA driver", done.stderr)

    def test_cuda_of_the_program_is_simulated_by_what_it_says(self):
        done = self.run_program("_cuda.co")
        self.assertEqual((done.stdout, done.stderr), ("y[7] 97 97\n", ""))

    def test_cuda_that_says_nothing_is_refused_at_its_call(self):
        text = (PROGRAMS / "_cuda.co").read_text().replace("[[expect(w + 2)]] ", "")
        self.write("cuda.co", text)
        done = kiln("run", "cuda.co", "--on", "sim", cwd=self.folder, expected=1)
        self.assertEqual(done.stdout, "")
        line = 1 + text.split("f(x.view()")[0].count("\n")
        self.assertIn(f"cuda.co:{line}: in this call of `f`\n", done.stderr)
        self.assertIn("error[cuda-not-run]", done.stderr)
        kiln("build", "cuda.co", "--on", "gpu", "-o", "app", cwd=self.folder)

    def test_cuda_of_the_program_is_compiled_for_a_gpu(self):
        # The driver of paper computes nothing, but NVRTC compiles what it is given.
        done = self.on_paper("run", PROGRAMS / "_cuda.co", "--on", "gpu", expected=0)
        self.assertEqual((done.stdout, done.stderr), ("y[7] 0 97\n", ""))

    def on_paper(self, *argv, expected):
        """With a driver that computes nothing."""
        if has_driver() or not has_nvrtc() or not (FAKE_CUDA / "libcuda.so.1").exists():
            self.skipTest("there is a real driver, no NVRTC, or no driver of paper")
        folders = f"{FAKE_CUDA}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        return kiln(*argv, cwd=self.folder, expected=expected, env={"LD_LIBRARY_PATH": folders})

    def test_memory_is_copied_to_a_gpu_and_back(self):
        for on in ("gpu", "auto"):
            done = self.on_paper("run", PROGRAMS / "_transfers.co", "--on", on, "--", "paper", expected=0)
            self.assertEqual((done.stdout, done.stderr), ("moved 0\n", ""))

    def test_memory_of_the_host_is_refused_by_a_gpu(self):
        done = self.on_paper("run", PROGRAMS / "_device_memory.co", "--on", "gpu", expected=1)
        self.assertIn("_device_memory.co:27: error: in this call of `sum` the memory of `x`", done.stderr)

    def test_no_host_compiler(self):
        self.write("empty.co", "int main() {}\n")
        done = kiln("build", "empty.co", "--on", "sim", "--compiler", "no-such-compiler",
                    cwd=self.folder, expected=3)
        self.assertIn("cannot find the host compiler", done.stderr)
        self.assertIn("`--compiler`", done.stderr)
        done = kiln("build", "empty.co", "--on", "sim", cwd=self.folder, expected=3,
                    env={"CXX": "no-such-compiler"})
        self.assertIn("CXX", done.stderr)


if __name__ == "__main__":
    unittest.main()
