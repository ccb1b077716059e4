#!/usr/bin/env python3
"""`kiln_add_kernels` of an installed kiln: kernels as functions of C and C++ in projects of CMake.

    KILN_RELEASE=build/release/bin/kiln tests/e2e/add_kernels_test.py [CASE]...

Installs that build into a new folder and builds examples/add_kernels from a copy, with machine code made
ahead where NVRTC is there, and without. Launches are tried on the driver of paper, which computes nothing
and shows them.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = Path(os.environ.get("KILN_RELEASE", ROOT / "build/release/bin/kiln")).resolve()
BUILD = KILN.parents[1]
FAKE_CUDA = BUILD / "src" / "gemm" / "fake_cuda"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def run(*argv, cwd=None, expected=0, env=None):
    done = subprocess.run(
        [str(arg) for arg in argv], cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, **(env or {})},
    )
    if done.returncode != expected:
        sys.stderr.write(done.stdout + done.stderr)
        raise AssertionError(f"{argv[0]} exits with {done.returncode}, expected {expected}")
    return done


def can_load(*names):
    for name in names:
        try:
            return ctypes.CDLL(name) is not None
        except OSError:
            continue
    return False


HAS_DRIVER = can_load("libcuda.so.1") and ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
HAS_NVRTC = can_load("libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so")

# The launches that the driver of paper sees, as lines.
SHOW = """
#include <dlfcn.h>
#include <cstdio>
#include "fake_cuda.h"
#include "kernels.co.h"
static void show(const FakeLaunch& launch) {
  std::printf("%s: %u x %u blocks of %u\\n", launch.kernel, launch.grid[0], launch.grid[1], launch.threads);
}
static FakeCuda* paper() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* fake = reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
  fake->on_launch = show;
  return fake;
}
"""

LAUNCHES = SHOW + """
alignas(256) static float x[64], y[64];
alignas(256) static unsigned short half[64];
int main() {
  FakeCuda* fake = paper();
  for (int i = 0; i < 2; ++i) {
    if (auto failed = scale(nullptr, {x, 64}, 2.0f, {y, 64})) return std::puts(failed.text.c_str()), 1;
  }
  if (auto failed = sums_of_rows(nullptr, {half, 4, 8}, {y, 4})) return std::puts(failed.text.c_str()), 1;
  std::printf("%d modules, %d launches\\n", fake->modules.load(), fake->launches.load());
  std::puts(scale(nullptr, {x, 64}, 2.0f, {y, 32}).text.c_str());
  std::puts(sums_of_rows(nullptr, {half, 4, 8}, {y, 8}).text.c_str());
  fake->capturing = true;
  std::puts(scale(nullptr, {x, 32}, 2.0f, {y, 32}).text.c_str());
  if (auto failed = scale(nullptr, {x, 64}, 2.0f, {y, 64})) return 1;
}
"""

IN_C = """
#include <stdio.h>
#include "kernels.co.h"
int main(void) {
  static _Alignas(256) float x[64];
  static _Alignas(256) float y[64];
  const kiln_status status = launch_scale(NULL, x, 2.0f, y, 64);
  puts(status == KILN_OK ? "launched" : kiln_last_error());
  puts(launch_scale(NULL, x, 2.0f, y, 0) == KILN_INVALID ? kiln_last_error() : "launched");
  return status == KILN_OK ? 0 : 1;
}
"""

# Calls of sums_of_rows(f16 [M, N]) -> f32 [M], and what the compiler says to them.
MISUSE = """
#include "kernels.co.h"
struct __half { unsigned short bits; };
struct __nv_bfloat16 { unsigned short bits; };
struct Mine { unsigned short bits; };
__half* half; const unsigned short* bits; Mine* mine; void* any;
__nv_bfloat16* brain; float* sums; const float* fixed; int n;
"""
GOOD_CALLS = ("{half, n, 8}, {sums, n}", "kiln::DeviceTensor<kiln::dtypes::f16, 2>(half, n, 8), {sums, n}", "{bits, n, 8L}, {any, n}", "{mine, n, 8u}, {sums, n}")
WRONG_CALLS = (
    ("{half, n}, {sums, n}", "a tensor has one extent for each dimension"),
    ("{half, n, 8.0}, {sums, n}", "extents are integers"),
    ("{brain, n, 8}, {sums, n}", "the pointer is to elements of another type"),
    ("{sums, n, 8}, {sums, n}", "the pointer is to elements of another type"),
    ("{half, n, 8}, {fixed, n}", "the kernel writes to a tensor that is const"),
    ("{half, n, 8}", "too few arguments"),
    ("{half, n, 8}, kiln::DeviceTensor<const float, 1>(sums, n)", "invalid initialization"),
)

CMAKE = """
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES %s)
find_package(kiln REQUIRED)
add_executable(app %s)
kiln_add_kernels(TARGET app FILES kernels.co ARCHS sm_90a DEFINES THREADS=32 AHEAD ${AHEAD})
target_include_directories(app PRIVATE %s)
target_link_libraries(app ${CMAKE_DL_LIBS})
target_compile_options(app PRIVATE -Wall -Wextra -Wpedantic -Werror)
%s
"""


class AddKernelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._shared = tempfile.TemporaryDirectory()
        cls.prefix = Path(cls._shared.name) / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls._shared.cleanup()

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)
        examples = ROOT / "examples"
        self.source = shutil.copytree(examples / "add_kernels", self.folder / "add_kernels")
        shutil.copytree(examples / "find_package", self.folder / "find_package")
        self.build = self.folder / "build"
        self.cache = self.folder / "cache"

    def configure(self, *options):
        run("cmake", "-S", self.source, "-B", self.build, f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)

    def make(self):
        return run("cmake", "--build", self.build).stdout

    def project(self, languages, name, text, more=""):
        """In the place of the example, a program of one file with the example's kernels."""
        (self.source / "main.cpp").unlink()
        (self.source / name).write_text(text)
        cmake = CMAKE % (languages, name, ROOT / "src" / "gemm", more)
        (self.source / "CMakeLists.txt").write_text(cmake)

    def on_paper(self, program, expected=0):
        if HAS_DRIVER or not (FAKE_CUDA / "libcuda.so.1").exists():
            self.skipTest("there is a real driver, or none of paper")
        folders = f"{FAKE_CUDA}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        env = {"LD_LIBRARY_PATH": folders, "KILN_CACHE_DIR": str(self.cache)}
        return run(program, cwd=self.folder, expected=expected, env=env).stdout

    def compilations(self):
        """Cubins that the program made when it ran."""
        files = [path.read_bytes() for path in self.cache.glob("*")] if self.cache.exists() else []
        return sum(b"\x7fELF" in text for text in files)

    def carried(self, folder="build/kiln_kernels/app"):
        return sorted(re.findall(r"^// (\w+ for sm_\w+)$", self.text(folder), re.MULTILINE))

    def text(self, folder):
        return "".join(path.read_text() for path in (self.folder / folder).glob("*.co.c*"))

    def test_the_example_computes_or_says_why_not(self):
        self.configure()
        self.make()
        done = run(self.build / "example", cwd=self.folder, expected=0 if HAS_DRIVER else 3)
        self.assertIn("simulated for sm_90a: right\n", done.stdout)
        self.assertEqual("on the GPU: right\n" in done.stdout, HAS_DRIVER)
        self.assertEqual("driver" in done.stderr, not HAS_DRIVER)
        if HAS_NVRTC:
            self.assertEqual(len(self.carried("build/kiln_kernels/example")), 4)

    def launches(self, ahead):
        self.project("CXX", "main.cpp", LAUNCHES)
        self.configure(f"-DAHEAD={ahead}")
        self.make()
        out = self.on_paper(self.build / "app").splitlines()
        self.assertEqual(out[:2], ["scale: 2 x 1 blocks of 32"] * 2)
        self.assertRegex(out[2], r"^sums_of_rows\w*: 4 x 8 blocks of 1$")
        self.assertRegex(out[3], r"^sums_of_rows\w*: 4 x 1 blocks of 1$")
        self.assertEqual(out[4], "2 modules, 4 launches")
        self.assertEqual(out[5], "`scale`: `y` has the shape [32], and its dimensions say [64]")
        self.assertEqual(out[6], "`sums_of_rows` returns a tensor of shape [4], and [8] is given for it")
        self.assertIn("the stream is captured; call it once before", out[7])
        self.assertEqual(out[8], "scale: 2 x 1 blocks of 32")

    @unittest.skipUnless(HAS_NVRTC, "there is no NVRTC")
    def test_machine_code_made_ahead_is_launched(self):
        self.launches("auto")
        self.assertEqual(self.carried(), ["scale for sm_90a", "sums_of_rows for sm_90a"])
        self.assertEqual(self.compilations(), 0)

    @unittest.skipUnless(NVCC, "there is no nvcc")
    def test_machine_code_by_nvcc_is_launched(self):
        self.launches("nvcc")
        self.assertEqual(len(self.carried()), 2)
        self.assertEqual(self.compilations(), 0)

    @unittest.skipUnless(HAS_NVRTC, "there is no NVRTC")
    def test_without_cuda_the_text_is_compiled_at_the_first_call(self):
        self.launches("no")
        self.assertEqual(self.carried(), [])
        self.assertEqual(self.compilations(), 2)

    @unittest.skipUnless(HAS_NVRTC, "there is no NVRTC")
    def test_a_program_in_c(self):
        more = "set_target_properties(app PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)"
        self.project("C", "main.c", IN_C, more)
        self.configure("-DAHEAD=nvrtc")
        self.make()
        out = self.on_paper(self.build / "app").splitlines()
        self.assertEqual(out, ["launched", "`scale`: dimension N is 0, and 1 is the least"])

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("gcc"), "there is no pkg-config or no gcc")
    def test_a_program_in_c_without_cmake(self):
        run(self.prefix / "bin" / "kiln", "emit", "kernels.co", "-D", "THREADS=32", "--arch", "sm_80",
            "--header", "kernels.co.h", cwd=self.source)
        (self.source / "main.c").write_text(IN_C)
        env = {"PKG_CONFIG_PATH": str(next(self.prefix.glob("lib*/**/pkgconfig")))}
        flags = run("pkg-config", "--cflags", "--libs", "kiln", env=env).stdout.split()
        strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        run("gcc", *strict, "main.c", "kernels.co.c", *flags, "-o", "app", cwd=self.source)
        if HAS_NVRTC:
            self.assertIn("launched\n", self.on_paper(self.source / "app"))

    def two_files_of_one_name(self, more):
        """`scale` of kernels.co, and of a file of its own that another call adds."""
        (self.source / "other.co").write_text(
            "\n__co__ void scale(global f32 [N] x) {\n"
            "  parallel i by [N] : block, t by 1 : thread x.at(i) = 2.0f;\n}\n"
        )
        main = SHOW.replace('#include "kernels.co.h"', '#include "kernels.co.h"\n#include "other.co.h"') + """
alignas(256) static float x[64], y[64];
int main() {
  paper();
  if (auto failed = scale(nullptr, {x, 64}, 2.0f, {y, 64})) return std::puts(failed.text.c_str()), 1;
  if (auto failed = my::own::scale(nullptr, {x, 8})) return std::puts(failed.text.c_str()), 1;
  return launch_my_own_scale(nullptr, x, 4);
}
"""
        call = f"kiln_add_kernels(TARGET app FILES other.co ARCHS sm_90a AHEAD ${{AHEAD}} {more})"
        self.project("CXX", "main.cpp", main, call)
        self.configure("-DAHEAD=no")

    @unittest.skipUnless(HAS_NVRTC, "there is no NVRTC")
    def test_a_namespace_keeps_kernels_of_one_name_apart(self):
        self.two_files_of_one_name("NAMESPACE my::own")
        self.make()
        out = self.on_paper(self.build / "app").splitlines()
        self.assertEqual(
            out, ["scale: 2 x 1 blocks of 32", "scale: 8 x 1 blocks of 1", "scale: 4 x 1 blocks of 1"]
        )

    def test_two_kernels_of_one_name_end_the_build_with_both_places(self):
        self.two_files_of_one_name("")
        done = subprocess.run(["cmake", "--build", self.build], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        said = " ".join((done.stdout + done.stderr).split())
        line = 1 + (self.source / "kernels.co").read_text().split("__co__ void scale")[0].count("\n")
        self.assertIn(f"`scale` at other.co:2, and at kernels.co:{line}; both are `launch_scale` in C", said)
        self.assertNotIn("main.cpp", said)

    def test_a_static_library_has_kernels(self):
        (self.source / "lib.cpp").write_text(
            '#include "kernels.co.h"\nint call() { return launch_scale(nullptr, nullptr, 1, nullptr, 0); }\n'
        )
        (self.source / "main.cpp").write_text("int call();\nint main() { return call() == 0; }\n")
        (self.source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(app LANGUAGES CXX)\n"
            "find_package(kiln REQUIRED)\nadd_library(parts STATIC lib.cpp)\n"
            "kiln_add_kernels(TARGET parts FILES kernels.co ARCHS sm_80 DEFINES THREADS=32 AHEAD no)\n"
            "add_executable(app main.cpp)\ntarget_link_libraries(app parts)\n"
        )
        self.configure()
        self.make()
        run(self.build / "app")

    def rebuilds(self, *options):
        self.configure("-DAHEAD=no", *options)
        self.make()
        source = self.build / "kiln_kernels" / "example" / "kernels.co.cpp"
        before = source.stat().st_mtime_ns
        self.make()
        self.assertEqual(source.stat().st_mtime_ns, before)
        for name in ("parts/offset.co", "kernels.co"):
            path = self.source / name
            path.write_text(path.read_text() + "// changed\n")
            self.make()
            self.assertNotEqual(source.stat().st_mtime_ns, before, name)
            before = source.stat().st_mtime_ns
        self.assertEqual(source.read_text().count("// changed"), 2)

    def test_a_changed_file_is_compiled_again(self):
        self.rebuilds("-G", "Unix Makefiles")

    @unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
    def test_a_changed_file_is_compiled_again_by_ninja(self):
        self.rebuilds("-G", "Ninja")

    def test_nothing_of_the_machine_is_carried(self):
        main = "int main() { return launch_scale(nullptr, nullptr, 1, nullptr, 1); }"
        self.project("CXX", "main.cpp", f'#include "kernels.co.h"\n{main}')
        self.configure("-DAHEAD=auto")
        self.make()
        made = self.build / "kiln_kernels" / "app"
        for path in [*made.glob("*.h"), *made.glob("*.cpp")]:
            self.assertNotIn(str(self.folder), path.read_text(), path.name)
            self.assertIn("kernels.co", path.read_text())
        program = (self.build / "app").read_bytes()
        self.assertIn(b"parts/offset.co", program)
        self.assertNotIn(bytes(self.folder), program)

    @unittest.skipUnless(shutil.which("g++"), "there is no g++")
    def test_wrong_calls_do_not_compile(self):
        run(KILN, "emit", "kernels.co", "-D", "THREADS=32", "--arch", "sm_90a", "--ahead", "no",
            "--header", "kernels.co.h", cwd=self.source)
        for calls, expected in (
            (GOOD_CALLS, []),
            ([call for call, _ in WRONG_CALLS], [said for _, said in WRONG_CALLS]),
        ):
            lines = [f"bool f{i}() {{ return !!sums_of_rows(nullptr, {call}); }}" for i, call in enumerate(calls)]
            (self.source / "call.cpp").write_text(MISUSE + "\n".join(lines))
            done = subprocess.run(
                ["g++", "-std=c++17", "-Wall", "-Wextra", "-fsyntax-only", f"-I{ROOT / 'include'}", "call.cpp"],
                cwd=self.source, capture_output=True, text=True, check=False,
            )
            errors = re.findall(r" error: (?:static assertion failed: )?(.*)", done.stderr)
            known = ("too few arguments", "invalid initialization")
            found = [next((words for words in known if words in error), error) for error in errors]
            self.assertEqual(sorted(found), sorted(expected), done.stderr)

    @unittest.skipUnless(NVCC, "there is no nvcc")
    def test_nvcc_takes_the_header_beside_those_of_cuda(self):
        run(KILN, "emit", "kernels.co", "-D", "THREADS=32", "--arch", "sm_90a", "--ahead", "no",
            "--header", "kernels.co.h", cwd=self.source)
        includes = ["kernels.co.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "kiln/device/tensor.cuh"]
        (self.source / "call.cu").write_text(
            "".join(f"#include <{name}>\n" for name in includes)
            + "bool call(cudaStream_t stream, __half* x, float* sums) {\n"
            + "  return !sums_of_rows(stream, {x, 4, 8}, {sums, 4});\n}\n"
        )
        run(NVCC, "-std=c++20", "-arch=sm_80", f"-I{ROOT / 'include'}", "-I.", "-c", "call.cu", "-o", "call.o",
            cwd=self.source)

    def test_a_mistake_ends_the_build_at_its_place(self):
        path = self.source / "kernels.co"
        path.write_text(path.read_text().replace("x.at(b # t) * factor", "x.at(b # t) * fact"))
        self.configure("-DAHEAD=no")
        done = subprocess.run(["cmake", "--build", self.build], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("error[unknown-name]: unknown name `fact`", done.stdout + done.stderr)
        self.assertIn(f"{path}:", done.stdout + done.stderr)

    def test_wrong_arguments_of_the_function_are_named(self):
        for arguments, said in (
            ("TARGET nothing FILES kernels.co", "TARGET `nothing` is no target"),
            ("TARGET example", "no FILES are named"),
            ("FAST TARGET example FILES kernels.co", "unknown arguments: FAST"),
            ("TARGET example FILES kernels.co", "has a file `kernels.co` already"),
        ):
            with self.subTest(arguments):
                path = self.source / "CMakeLists.txt"
                before = path.read_text()
                path.write_text(before + f"kiln_add_kernels({arguments})\n")
                done = run("cmake", "-S", self.source, "-B", self.build,
                           f"-DCMAKE_PREFIX_PATH={self.prefix}", expected=1)
                self.assertIn(said, " ".join(done.stderr.split()))
                path.write_text(before)


if __name__ == "__main__":
    unittest.main()
