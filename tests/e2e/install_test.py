#!/usr/bin/env python3
"""kiln as others get it: installed, found by CMake, and used by a program outside of the tree.

    KILN_RELEASE=build/release/bin/kiln tests/e2e/install_test.py [CASE]...

Installs that build (kiln and the library must be built) into a new folder, builds
examples/find_package from a copy, and runs it. The program multiplies matrices where there is a GPU
and says why not where there is none.
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
CANNOT_RUN = 3


def run(*argv, cwd=None, expected=0):
    done = subprocess.run(
        [str(arg) for arg in argv], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != expected:
        sys.stderr.write(done.stdout + done.stderr)
        raise AssertionError(f"{argv[0]} exits with {done.returncode}, expected {expected}")
    return done


def has_driver():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls._folder.name)
        cls.prefix = cls.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        # A copy, so that nothing beside it in the tree can be found.
        source = shutil.copytree(ROOT / "examples" / "find_package", cls.folder / "source")
        cls.example = cls.folder / "build"
        run("cmake", "-S", source, "-B", cls.example, f"-DCMAKE_PREFIX_PATH={cls.prefix}")
        run("cmake", "--build", cls.example)

    def test_shells_and_man_find_what_they_read(self):
        for path in (
            "bash-completion/completions/kiln",
            "zsh/site-functions/_kiln",
            "fish/vendor_completions.d/kiln.fish",
            "man/man1/kiln.1",
        ):
            self.assertIn("kiln", (self.prefix / "share" / path).read_text())

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def library(self):
        found = [path for path in self.prefix.glob("lib*/**/libkiln.so.*") if path.is_symlink()]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_the_example_multiplies_or_says_why_not(self):
        if has_driver():
            done = run(self.example / "example", cwd=self.folder)
            self.assertIn(" 0 of 156000 elements are wrong", done.stdout)
        else:
            done = run(self.example / "example", cwd=self.folder, expected=CANNOT_RUN)
            self.assertEqual(done.stdout, "")
            self.assertIn("this machine cannot run the example: ", done.stderr)
            self.assertIn("the CUDA driver", done.stderr)

    def test_headers_alone(self):
        done = run(self.example / "layouts")
        self.assertEqual(done.stdout, "element (1, 2) lies at 10\n")

    def test_the_library_shows_its_functions_and_nothing_else(self):
        done = run("nm", "-D", "--defined-only", self.library())
        names = sorted(line.split()[-1].split("@")[0] for line in done.stdout.splitlines())
        headers = (self.prefix / "include" / "kiln").glob("*.h")
        text = "".join(header.read_text() for header in headers)
        declared = sorted(set(re.findall(r"^KILN_API [^(;]*?(\w+)\(", text, re.MULTILINE)))
        self.assertIn("kiln_launch", declared)
        self.assertEqual(names, declared)

    def test_the_library_needs_nothing_that_is_not_everywhere(self):
        done = run("readelf", "-d", self.library())
        needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line]
        everywhere = ("libc.", "libm.", "libstdc++.", "libgcc_s.", "libdl.", "libpthread.", "ld-linux")
        self.assertEqual([name for name in needed if not name.startswith(everywhere)], [])

    def test_the_command_runs_where_it_is_installed(self):
        done = run(self.prefix / "bin" / "kiln", "--version", cwd=self.folder)
        self.assertIn("0.1", done.stdout)

    @unittest.skipUnless(shutil.which("pkg-config"), "there is no pkg-config")
    def test_pkg_config_and_the_header_for_cpp(self):
        folder = next(self.prefix.glob("lib*/**/pkgconfig"))
        env = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
        argv = ["pkg-config", "--cflags", "--libs", "kiln >= 0.1"]
        flags = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout.split()
        source = ROOT / "src" / "api" / "cpp_test.cpp"
        warnings = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        for compiler in filter(shutil.which, ("g++", "clang++")):
            program = self.folder / f"with_{compiler}"
            run(compiler, *warnings, source, *flags, "-pthread", "-o", program)
            run(program)

    def test_another_version_is_not_found(self):
        source = self.folder / "newer"
        source.mkdir()
        text = "cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES CXX)\n"
        (source / "CMakeLists.txt").write_text(text + "find_package(kiln 0.2 REQUIRED)\n")
        argv = ["cmake", "-S", source, "-B", self.folder / "newer_build"]
        done = run(*argv, f"-DCMAKE_PREFIX_PATH={self.prefix}", expected=1)
        self.assertIn("0.1.0", done.stderr)


if __name__ == "__main__":
    unittest.main()
