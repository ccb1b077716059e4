#!/usr/bin/env python3
"""`kiln cache`: what it says, what it keeps, and what it leaves alone.

    KILN=build/release/bin/kiln tests/e2e/cache_test.py [CASE]...

Compiling needs NVRTC, but no GPU: where there is none, `kiln cache warm` must say so with exit code 3, and
what builds on it is skipped.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = str(Path(os.environ.get("KILN", ROOT / "build/release/bin/kiln")).resolve())
EXAMPLE = ROOT / "examples/matmul_wmma.co"
VARIABLES = ("KILN_CACHE_DIR", "KILN_CACHE_BYTES_MAX", "XDG_CACHE_HOME", "HOME")
TWO_KERNELS = """
__co__ void fill(s32 [N]& out) {
  parallel b by N { out.at(b) = VALUE; }
}
__co__ void fill_again(s32 [N]& out) {
  parallel b by N { out.at(b) = VALUE + 1; }
}
"""


class Cache(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-cache-")
        self.addCleanup(scratch.cleanup)
        self.home = Path(scratch.name)
        self.folder = self.home / "kernels"
        self.program = self.home / "two.co"
        self.program.write_text(TWO_KERNELS, encoding="utf-8")

    def start(self, *arguments, **variables):
        env = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        env.update({"HOME": str(self.home), "KILN_CACHE_DIR": str(self.folder)}, **variables)
        argv = [KILN, "cache", *map(str, arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(argv, cwd=self.home, env=env, text=True, **pipes)

    def end(self, process):
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def cache(self, *arguments, **variables):
        return self.end(self.start(*arguments, **variables))

    def info(self, **variables):
        code, out, err = self.cache("info", **variables)
        self.assertEqual((code, err), (0, ""))
        return dict(line.split(maxsplit=1) for line in out.splitlines())

    def warm(self, *arguments):
        """What is said of each kernel; skips the test where there is no NVRTC."""
        code, out, err = self.cache("warm", *arguments)
        if code == 3 and "NVRTC" in err:
            self.assertEqual(out, "")
            self.skipTest(err.strip())
        self.assertEqual((code, err), (0, ""))
        return [line.rsplit(",", 1)[0] for line in out.splitlines()]

    def warm_two(self, value):
        return self.warm(self.program, "--arch", "sm_80", "-D", f"VALUE={value}")

    def entries(self):
        return sorted(self.folder.glob("*.kiln"))

    def test_a_folder_that_is_not_there_is_empty(self):
        expected = {"folder": str(self.folder), "entries": "0", "bytes": "0", "limit": str(512 << 20)}
        self.assertEqual(self.info(), expected)
        self.assertEqual(self.cache("clear"), (0, "removed 0 entries, 0 bytes\n", ""))
        self.assertFalse(self.folder.exists())

    def test_the_environment_says_where(self):
        self.assertEqual(self.info(KILN_CACHE_DIR="elsewhere")["folder"], "elsewhere")
        self.assertEqual(self.info(KILN_CACHE_BYTES_MAX="4096")["limit"], "4096")
        code, _, err = self.cache("info", KILN_CACHE_BYTES_MAX="1G")
        self.assertEqual(code, 3)
        self.assertIn("cannot use KILN_CACHE_BYTES_MAX `1G`", err)

    def test_it_can_be_switched_off(self):
        for off in ("", "off"):
            self.assertEqual(self.info(KILN_CACHE_DIR=off)["folder"], "none: the cache is off")
            code, out, err = self.cache("warm", EXAMPLE, KILN_CACHE_DIR=off)
            self.assertEqual((code, out), (3, ""))
            self.assertIn("it is switched off", err)
            self.assertEqual(self.cache("clear", KILN_CACHE_DIR=off)[0], 0)

    def test_each_kernel_is_compiled_once(self):
        first = ["fill for sm_80: compiled", "fill_again for sm_80: compiled"]
        again = ["fill for sm_80: in the cache already", "fill_again for sm_80: in the cache already"]
        self.assertEqual(self.warm_two(1), first)
        self.assertEqual(self.warm_two(1), again)
        self.assertEqual(self.warm_two(2), first)
        self.assertEqual(self.warm_two(1), again)
        size = sum(path.stat().st_size for path in self.folder.iterdir())
        self.assertEqual(self.info()["bytes"], str(size))
        self.assertEqual(self.info()["entries"], str(len(self.entries())))

    def test_damaged_entries_are_compiled_anew(self):
        self.warm_two(1)
        whole = {path: path.read_bytes() for path in self.entries()}
        for damage in (lambda b: b[:-1], lambda b: b"", lambda b: b[:-9] + bytes([b[-9] ^ 1]) + b[-8:]):
            for path, data in whole.items():
                path.write_bytes(damage(data))
            self.assertEqual([line.split(": ")[1] for line in self.warm_two(1)], ["compiled"] * 2)
            kernels = {p: d for p, d in whole.items() if len(d) > 1000}
            self.assertEqual({path: path.read_bytes() for path in kernels}, kernels)

    def test_processes_warm_it_together(self):
        self.warm_two(0)
        started = [
            self.start("warm", self.program, "--arch", "sm_80", "-D", f"VALUE={i % 3}") for i in range(8)
        ]
        for process in started:
            code, _, err = self.end(process)
            self.assertEqual((code, err), (0, ""))
        self.assertEqual([p.name for p in self.folder.iterdir() if p.suffix != ".kiln"], [])
        for i in range(3):
            self.assertEqual({line.split(": ")[1] for line in self.warm_two(i)}, {"in the cache already"})

    def test_clearing_leaves_other_files(self):
        self.warm_two(1)
        (self.folder / "notes.txt").write_text("mine", encoding="utf-8")
        count, size = self.info()["entries"], self.info()["bytes"]
        removed = f"removed {count} entries, {size} bytes\n"
        self.assertEqual(self.cache("clear"), (0, removed, ""))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["notes.txt"])

    def test_a_folder_that_cannot_be_made(self):
        self.warm_two(1)
        (self.home / "file").write_text("", encoding="utf-8")
        code, out, err = self.cache("warm", EXAMPLE, KILN_CACHE_DIR=str(self.home / "file/kernels"))
        self.assertEqual((code, out), (3, ""))
        self.assertIn("the cache does not keep `matmul", err)
        self.assertEqual(self.cache("info", KILN_CACHE_DIR=str(self.home / "file"))[0], 3)

    def test_what_is_wrong_is_said_as_ever(self):
        self.program.write_text("__co__ void k(s32 [N]& out) { nothing; }", encoding="utf-8")
        for code, *arguments in (
            (1, "warm", self.program),
            (2, "warm", EXAMPLE, "--arch", "sm_10"),
            (2, "warm"),
            (2,),
            (2, "info", "x"),
            (3, "warm", self.home / "missing.co"),
        ):
            self.assertEqual(self.cache(*arguments)[0], code, arguments)
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    unittest.main()
