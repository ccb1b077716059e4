#!/usr/bin/env python3
"""What `kiln` reads and writes when the world is against it: includes that lead out, pipes and devices, a full
disk, closed streams, Ctrl-C at any moment, and memory that ends.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/limits_test.py [CASE]...

Limits on address space need the release binary: a sanitized one reserves more than any.
"""

import os
import random
import resource
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = str(Path(os.environ.get("KILN", ROOT / "build/dev/bin/kiln")).resolve())
RELEASE = os.environ.get("KILN_RELEASE")
EXAMPLE = ROOT / "examples/matmul_wmma.co"
WRONG, ENVIRONMENT = 1, 3
SECRET = "MACRO_THAT_NOBODY_MAY_SEE"
USES = '#include "%s"\n__co__ void f(global f32 [N] y) { parallel b by N { y.at(b) = VALUE; } }\n'
VALUE = "#define VALUE 1.0f\n"


class Limits(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-limits-")
        self.addCleanup(scratch.cleanup)
        self.home = Path(scratch.name)
        self.inside = self.home / "inside"
        (self.inside / "parts").mkdir(parents=True)

    def kiln(self, *argv, binary=KILN, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run(
            [binary, *map(str, argv)],
            cwd=self.inside,
            env={**os.environ, "KILN_CACHE_DIR": "off"},
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
            **options,
        )
        return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()

    def check_include(self, name, *options):
        (self.inside / "f.co").write_text(USES % name, encoding="utf-8")
        return self.kiln("check", "f.co", "--arch", "sm_80", *options)

    def test_includes_inside_are_found(self):
        (self.inside / "value.co").write_text(VALUE, encoding="utf-8")
        (self.inside / "parts/to_value.co").write_text('#include "../value.co"\n', encoding="utf-8")
        (self.inside / "link.co").symlink_to("value.co")
        for name in ("value.co", "./parts/../value.co", "parts/to_value.co", "link.co"):
            with self.subTest(name):
                code, _, err = self.check_include(name)
                self.assertEqual(code, 0, err)

    def test_includes_that_lead_out_are_refused_and_not_shown(self):
        outside = self.home / "value.co"
        outside.write_text(f"{VALUE}{SECRET} (\n", encoding="utf-8")
        (self.inside / "link.co").symlink_to(outside)
        (self.inside / "folder").symlink_to(self.home)
        names = ["../value.co", str(outside), "parts/../../value.co", "link.co", "folder/value.co"]
        for name in [*names, "../missing.co", "/etc/missing.co"]:
            with self.subTest(name):
                code, _, err = self.check_include(name)
                self.assertEqual(code, WRONG, err)
                self.assertIn("leads out of the folder", err)
                self.assertNotIn(SECRET, err)

    def test_folders_of_the_command_line_may_be_included_from(self):
        (self.home / "value.co").write_text(VALUE, encoding="utf-8")
        for folder in ("..", str(self.home), str(self.home) + "/"):
            with self.subTest(folder):
                for name in ("value.co", "../value.co"):
                    code, _, err = self.check_include(name, "-I", folder)
                    self.assertEqual(code, 0, err)
        code, _, err = self.check_include("value.co", "-I", "parts")
        self.assertEqual(code, WRONG, err)

    def test_what_is_no_file_is_refused_without_waiting(self):
        os.mkfifo(self.inside / "pipe.co")
        (self.inside / "folder.co").mkdir()
        for name, what in (("pipe.co", "a pipe"), ("folder.co", "a folder")):
            with self.subTest(name):
                code, _, err = self.check_include(name)
                self.assertEqual(code, WRONG, err)
                self.assertIn(what, err)
                code, _, err = self.kiln("check", name)
                self.assertEqual(code, ENVIRONMENT, err)
                self.assertIn(what, err)
        code, _, err = self.kiln("check", "/dev/zero")
        self.assertEqual(code, ENVIRONMENT, err)
        self.assertIn("a device", err)
        shape = ("--arch", "sm_80", "--on", "sim", "--shape", "M=16,N=16,K=16")
        code, _, err = self.kiln("run", EXAMPLE, *shape, "--in", "lhs=pipe.co")
        self.assertEqual(code, ENVIRONMENT, err)
        self.assertIn("a pipe", err)

    def test_standard_input_may_be_a_pipe(self):
        program = EXAMPLE.read_bytes()
        code, _, err = self.kiln("check", "/dev/stdin", "--arch", "sm_80", stdin=None, input=program)
        self.assertEqual(code, 0, err)

    def emit(self, *options, **how):
        return self.kiln("emit", EXAMPLE, "--arch", "sm_80", *options, **how)

    def test_a_written_file_is_whole_and_stays_what_it_was(self):
        _, text, _ = self.emit()
        target = self.inside / "target.cu"
        target.write_text("old", encoding="utf-8")
        target.chmod(0o640)
        (self.inside / "link.cu").symlink_to("target.cu")
        code, _, err = self.emit("-o", "link.cu")
        self.assertEqual(code, 0, err)
        self.assertTrue((self.inside / "link.cu").is_symlink())
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)
        self.assertEqual(len(target.read_text(encoding="utf-8").splitlines()), len(text.splitlines()))

    def test_a_pipe_and_a_device_are_written_to(self):
        code, out, err = self.emit("-o", "/dev/stdout")
        self.assertEqual(code, 0, err)
        self.assertIn("__global__", out)
        os.mkfifo(self.inside / "pipe.cu")
        with subprocess.Popen(["cat", self.inside / "pipe.cu"], stdout=subprocess.PIPE) as reader:
            code, _, err = self.emit("-o", "pipe.cu")
            self.assertEqual(code, 0, err)
            self.assertIn(b"__global__", reader.communicate(timeout=60)[0])
        self.assertTrue((self.inside / "pipe.cu").is_fifo())

    def test_a_full_disk_leaves_the_old_file(self):
        target = self.inside / "target.cu"
        target.write_text("old", encoding="utf-8")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
        code, _, err = self.emit("-o", "target.cu", preexec_fn=limit)
        self.assertEqual(code, ENVIRONMENT, err)
        self.assertIn("cannot write `target.cu`", err)
        self.assertEqual(target.read_text(encoding="utf-8"), "old")
        self.assertEqual(self.names(), ["parts", "target.cu"])

    def test_a_closed_stream_is_no_other_file(self):
        for stream in (0, 1, 2):
            with self.subTest(stream):
                code, _, _ = self.emit("-o", "out.cu", preexec_fn=lambda s=stream: os.close(s))
                self.assertEqual(code, 0)
                text = (self.inside / "out.cu").read_text(encoding="utf-8")
                self.assertTrue(text.startswith("//"), text[:80])
        code, _, err = self.emit(preexec_fn=lambda: os.close(1))
        self.assertEqual(code, ENVIRONMENT, err)
        self.assertIn("standard output", err)

    def names(self):
        return sorted(path.name for path in self.inside.iterdir())

    def test_an_interrupt_leaves_no_part_of_a_file(self):
        shape = ("--shape", "M=512,N=512,K=64", "--out", "output=c.npy")
        argv = [KILN, "run", EXAMPLE, "--arch", "sm_80", "--on", "sim", *shape]
        whole = None
        generator = random.Random(1)
        for _ in range(40):
            process = subprocess.Popen(
                argv, cwd=self.inside, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            time.sleep(generator.uniform(0, 0.4))
            process.send_signal(generator.choice([signal.SIGINT, signal.SIGTERM]))
            process.communicate(timeout=60)
            self.assertIn(process.returncode, (0, -signal.SIGINT, -signal.SIGTERM))
            self.assertLessEqual(set(self.names()), {"parts", "c.npy"})
            if "c.npy" in self.names():
                size = (self.inside / "c.npy").stat().st_size
                whole = whole or size
                self.assertEqual(size, whole)
                (self.inside / "c.npy").unlink()

    @unittest.skipIf(RELEASE is None, "KILN_RELEASE is not set")
    def test_memory_that_ends_anywhere_is_one_line(self):
        release = str(Path(RELEASE).resolve())
        shape = ("--on", "sim", "--shape", "M=64,N=64,K=64", "--out", "output=c.npy")
        commands = {
            "check": ("check", EXAMPLE, "--arch", "sm_80"),
            "emit": ("emit", EXAMPLE, "--arch", "sm_80", "-o", "m.cu"),
            "explain": ("explain", EXAMPLE, "--arch", "sm_80", "--html", "-o", "m.html"),
            "run": ("run", EXAMPLE, "--arch", "sm_80", *shape),
        }
        for name, argv in commands.items():
            started = refused = fine = 0
            for kilobytes in range(9000, 24000, 96):
                limit = lambda k=kilobytes: resource.setrlimit(  # noqa: E731
                    resource.RLIMIT_AS, (k * 1024, k * 1024)
                )
                code, _, err = self.kiln(*argv, binary=release, preexec_fn=limit)
                if "shared libraries" in err or "cannot allocate memory" in err.lower() or code == 127:
                    continue  # the loader's own, before `main`
                if code == -signal.SIGSEGV and not started:
                    continue  # not even a stack
                started += 1
                with self.subTest(name, kilobytes=kilobytes):
                    self.assertIn(code, (0, ENVIRONMENT), err)
                    if code == ENVIRONMENT:
                        refused += 1
                        self.assertRegex(err, "out of memory|tensors-too-large")
                        self.assertEqual(self.names(), ["parts"])
                    fine += code == 0
                for written in ("m.cu", "m.html", "c.npy"):
                    (self.inside / written).unlink(missing_ok=True)
            with self.subTest(name):
                self.assertGreater(refused, 0)
                self.assertGreater(fine, 0)


if __name__ == "__main__":
    unittest.main()
