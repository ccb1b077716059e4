#!/usr/bin/env python3
"""What no golden file can hold: huge, broken and unreadable input, and wrong command lines.

    KILN=build/dev/bin/kiln tests/e2e/hostile_input_test.py [CASE]...

Every refusal must be one error that names the culprit, with the exit code of its kind (1 the
program, 2 the command line, 3 the environment), in time, and it must leave no file behind.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import commands  # noqa: E402

KILN = str(Path(os.environ.get("KILN", ROOT / "build/dev/bin/kiln")).resolve())
MATMUL = (ROOT / "examples" / "matmul_wmma.co").read_text(encoding="utf-8")
FINE, WRONG_PROGRAM, WRONG_USAGE, WRONG_WORLD = range(4)
RUN = ["run", "m.co", "--arch", "sm_80", "--on", "sim"]
LIMIT_S = 20
HUGE = 10_000_000
MANY = 5000
_ERROR = re.compile(r"^error(?:\[([a-z0-9-]+)\])?: (.*)$", re.M)
_TOTAL = re.compile(r"^(\d+) errors?\b", re.M)
_CRASH = re.compile(r"Sanitizer|runtime error: |internal error|terminate called|check failed")


def in_kernel(statements):
    return f"__co__ void f(global f32 [M] a) {{ parallel p by M : block {{ {statements} }} }}\n"


def npy(dtype="<f2", shape="(16, 16)", data=b"\x00\x3c" * 256, version=b"\x01\x00"):
    """The bytes of a .npy file; every part may be wrong."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + data


class Hostile(unittest.TestCase):
    """Runs kiln in a folder of its own, which must look the same afterwards."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-hostile-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.written = {}
        self.write("m.co", MATMUL)

    def write(self, name, content):
        data = content.encode("utf-8") if isinstance(content, str) else content
        (self.folder / name).write_bytes(data)
        self.written[name] = data

    def kiln(self, *argv):
        """A finished run that did not crash, kept within LIMIT_S and left no file behind."""
        begin = time.monotonic()
        done = subprocess.run(
            [KILN, *argv],
            cwd=self.folder,
            env=commands.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=6 * LIMIT_S,
            check=False,
        )
        self.assertLess(time.monotonic() - begin, LIMIT_S, argv)
        self.assertIn(done.returncode, range(4), f"{argv}\n{done.stderr[-3000:]}")
        self.assertNotRegex(done.stderr[-20000:], _CRASH)
        self.assert_folder_unchanged()
        return done

    def assert_folder_unchanged(self):
        regular = [p for p in self.folder.rglob("*") if p.is_file()]
        found = {str(p.relative_to(self.folder)): p.read_bytes() for p in regular}
        self.assertEqual(sorted(found), sorted(self.written))
        self.assertTrue(all(found[name] == data for name, data in self.written.items()))

    def assert_one_error(self, done, code, identifier, *texts):
        """Exactly one error; `identifier` is its id, None for an error outside the catalogue."""
        shown = done.stderr[:3000]
        errors = _ERROR.findall(done.stderr)
        self.assertEqual([found for found, _ in errors], [identifier or ""], shown)
        self.assertEqual(done.returncode, code, shown)
        self.assertEqual(done.stdout, "")
        for text in texts:
            self.assertIn(text, errors[0][1])

    def refused(self, argv, code, error, *texts):
        """`error` is as it is printed, `error[some-id]` or `error`."""
        identifier = error[len("error[") : -1] if error != "error" else None
        with self.subTest(argv=" ".join(argv)[:200]):
            self.assert_one_error(self.kiln(*argv), code, identifier, *texts)

    def check(self, text, *options):
        self.write("t.co", text)
        return self.kiln("check", "t.co", "--arch", "sm_80", *options)

    def check_one_error(self, text, error, *texts):
        identifier = error[len("error[") : -1]
        self.assert_one_error(self.check(text), WRONG_PROGRAM, identifier, *texts)

    def check_fine(self, text):
        done = self.check(text)
        self.assertEqual((done.returncode, done.stderr), (FINE, ""))
        self.assertIn("fine for sm_80", done.stdout)


class Files(Hostile):
    def test_every_prefix_of_a_program_is_refused_calmly(self):
        refused = 0
        cuts = [len(MATMUL) * i // 40 for i in range(40)]
        for cut in cuts:
            with self.subTest(cut=cut):
                done = self.check(MATMUL[:cut])
                errors = _ERROR.findall(done.stderr)
                self.assertEqual(done.returncode, WRONG_PROGRAM)
                self.assertTrue(1 <= len(errors) <= 5, done.stderr)
                self.assertEqual(int(_TOTAL.findall(done.stderr)[-1]), len(errors))
                refused += 1
        self.assertEqual(refused, len(cuts))
        self.check_fine(MATMUL)

    def test_binary_files(self):
        noise = bytes((i * 7919 + i // 256) % 256 for i in range(65536))
        elf = b"\x7fELF\x02\x01\x01" + b"\0" * 64
        self.check_one_error(noise, "error[file-not-text]", "byte 0 is 0")
        self.check_one_error(elf, "error[file-not-text]", "byte 7 is 0")
        self.check_one_error(MATMUL.encode("utf-16"), "error[file-not-text]", "byte 3 is 0")

    def test_a_byte_order_mark_is_no_part_of_the_program(self):
        self.check_fine("\ufeff" + in_kernel("a.at(p) = 0.0f;"))
        done = self.check("\ufeff__co__ void f() { int n = ; }\n")
        self.assert_one_error(done, WRONG_PROGRAM, "unexpected-token", "found `;`")

    def test_paths_that_cannot_be_read(self):
        (self.folder / "loop.co").symlink_to("loop.co")
        (self.folder / "gone.co").symlink_to("nowhere.co")
        for path in ("none.co", "loop.co", "gone.co", "m.co/x", "."):
            for command in ("check", "run", "emit", "ir"):
                argv = [command, path, "--arch", "sm_80"]
                self.refused(argv, WRONG_WORLD, "error", f"cannot read `{path}`")

    def test_output_that_cannot_be_written_leaves_nothing(self):
        emit = ["emit", "m.co", "--arch", "sm_80", "-o"]
        self.refused(emit + ["none/m.cu"], WRONG_WORLD, "error", "cannot write `none/m.cu`")
        self.refused(emit + ["."], WRONG_WORLD, "error", "cannot write `.`")
        self.refused(emit + ["m.co/m.cu"], WRONG_WORLD, "error", "cannot write `m.co/m.cu`")

    def test_a_full_device_is_told(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        argv = ["emit", "m.co", "--arch", "sm_80", "-o", "/dev/full"]
        self.refused(argv, WRONG_WORLD, "error", "cannot write `/dev/full`")

    def test_a_refused_program_keeps_the_file_it_would_replace(self):
        self.write("old.cu", "// precious\n")
        self.write("bad.co", "__co__ void f() { int n = ; }\n")
        argv = ["emit", "bad.co", "--arch", "sm_80", "-o", "old.cu"]
        self.refused(argv, WRONG_PROGRAM, "error[unexpected-token]", "found `;`")
        argv = ["run", "bad.co", "--arch", "sm_80", "--on", "sim", "--out", "y=old.cu"]
        self.refused(argv, WRONG_PROGRAM, "error[unexpected-token]", "found `;`")


class Size(Hostile):
    def test_a_huge_line_of_nonsense(self):
        at_signs = in_kernel("@" * HUGE)
        self.check_one_error(at_signs, "error[unknown-character]", "`@@@@")
        words = in_kernel("qwerty " * (HUGE // 7))
        self.check_one_error(words, "error[unknown-statement]", "`qwerty`")
        digits = in_kernel("a.at(p) = " + "9" * HUGE + ";")
        self.check_one_error(digits, "error[integer-too-large]", "9999")

    def test_a_huge_line_that_is_fine(self):
        blank = " " * (HUGE // 2)
        comment = "/*" + "x" * (HUGE // 2) + "*/"
        self.check_fine(in_kernel(comment + blank + "a.at(p) = 0.0f; " * 2000))
        self.check_fine(in_kernel("f32 " + "x" * HUGE + " = 0.0f;"))

    def test_the_message_about_a_huge_line_is_short(self):
        for text, place in (("@" * HUGE, "1:61"), ("a.at(p) = " + "9" * HUGE + ";", "1:71")):
            done = self.check(in_kernel(text))
            self.assertEqual(done.returncode, WRONG_PROGRAM)
            self.assertIn(f"--> t.co:{place}\n", done.stderr)
            self.assertLess(len(done.stderr), 2000)

    def test_the_number_of_errors_shown_is_bounded(self):
        done = self.check(in_kernel("int n = ;\n" * 20000))
        self.assertEqual(done.returncode, WRONG_PROGRAM)
        self.assertEqual(len(_ERROR.findall(done.stderr)), 100)
        self.assertRegex(done.stderr, r"errors \(the first 100 shown\)\n$")


class Depth(Hostile):
    def test_nested_braces_and_parentheses(self):
        levels = "more than 256 levels"
        braces = in_kernel("{" * MANY + "}" * MANY)
        self.check_one_error(braces, "error[nesting-too-deep]", levels)
        value = "(" * MANY + "1.0f" + ")" * MANY
        self.check_one_error(in_kernel(f"a.at(p) = {value};"), "error[nesting-too-deep]", levels)
        condition = f"#if {'(' * MANY}1{')' * MANY}\n#endif\n"
        self.check_one_error(condition + in_kernel(""), "error[nesting-too-deep]", levels)
        self.check_fine(in_kernel("{" * 200 + "a.at(p) = 0.0f;" + "}" * 200))

    def test_conditionals_may_nest_freely(self):
        chosen = "#if 1\n" * MANY + in_kernel("a.at(p) = 0.0f;") + "#endif\n" * MANY
        self.check_fine(chosen)
        skipped = "#if 0\n" * MANY + "@ nothing\n" + "#endif\n" * MANY
        self.check_fine(skipped + in_kernel(""))

    def test_conditionals_without_an_end_are_all_reported(self):
        done = self.check("#if 1\n" * 50 + in_kernel(""))
        ids = [found for found, _ in _ERROR.findall(done.stderr)]
        self.assertEqual((done.returncode, ids), (WRONG_PROGRAM, ["endif-missing"] * 50))

    def test_macro_bombs(self):
        doubling = "".join(f"#define A{i} A{i + 1} + A{i + 1}\n" for i in range(100))
        doubling += "#define A100 1\n"
        large = "more than 1000000 tokens"
        use = in_kernel("int n = A0;")
        self.check_one_error(doubling + use, "error[macro-too-large]", large)
        condition = doubling + "#if A0\n#endif\n" + in_kernel("")
        self.check_one_error(condition, "error[macro-too-large]", large)
        calls = "#define F(x) x + x\n" + in_kernel("int n = " + "F(" * 40 + "1" + ")" * 40 + ";")
        self.check_one_error(calls, "error[macro-too-large]", large)

    def test_long_chains_of_macros(self):
        chain = "".join(f"#define A{i} A{i + 1}\n" for i in range(MANY)) + f"#define A{MANY} 1\n"
        use = in_kernel("int n = A0;")
        deep = "macro `A200` expands through more than 200 levels"
        self.check_one_error(chain + use, "error[macro-too-deep]", deep)
        self.check_fine(chain + in_kernel(f"int n = A{MANY - 100};"))

    def test_macros_and_files_that_name_themselves(self):
        self.check_fine("#define p p\n" + in_kernel("a.at(p) = 0.0f;"))
        self.check_one_error('#include "t.co"\n' + in_kernel("a.at(p) = 0.0f;"), "error[include-cycle]", "`t.co`")
        mutual = "#define p q\n#define q p\n"
        self.check_fine(mutual + in_kernel("a.at(p) = 0.0f;"))
        grows = "#define F(x) F(F(x))\n" + in_kernel("a.at(p) = F(1.0f);")
        self.check_one_error(grows, "error[function-unknown]", "`F`")


class Options(Hostile):
    def run_refused(self, extra, code, error, *texts, shape="M=16,N=16,K=16"):
        self.refused([*RUN, "--shape", shape, *extra], code, error, *texts)

    def test_the_base_of_these_tests_is_fine(self):
        done = self.kiln(*RUN, "--shape", "M=16,N=16,K=16")
        self.assertEqual((done.returncode, done.stderr), (FINE, ""))
        self.assertIn("output: 0 of 256 elements outside", done.stdout)

    def test_shapes_that_are_missing_or_malformed(self):
        missing, form = "error[shape-missing]", "error[option-form]"
        self.run_refused([], WRONG_USAGE, missing, "`K`", "`matmul_wmma`", shape="M=16,N=16")
        done = self.kiln(*RUN)
        self.assertEqual([i for i, _ in _ERROR.findall(done.stderr)], ["shape-missing"] * 3)
        for text in ("", "M", "M=16,,N=16", "=16"):
            self.run_refused([], WRONG_USAGE, form, f"`--shape {text}`", shape=text)
        unknown = "M=16,N=16,K=16,Q=4"
        self.run_refused([], WRONG_USAGE, "error[shape-unknown]", "`Q`", shape=unknown)

    def test_extents_that_are_no_extents(self):
        for value in ("99999999999", "9" * 40, "-1", "0", "2147483648"):
            texts = ["`M`", value, "1 to 2147483647"]
            shape = f"M={value},N=16,K=16"
            self.run_refused([], WRONG_USAGE, "error[shape-range]", *texts, shape=shape)
        for value in ("sixteen", "1.5", "0x10", "+16", "-"):
            texts = [f"`--shape M={value}`", "NAME=WHOLE_NUMBER"]
            shape = f"M={value},N=16,K=16"
            self.run_refused([], WRONG_USAGE, "error[option-form]", *texts, shape=shape)

    def test_tensors_that_no_machine_holds(self):
        most = 2147483647
        done = self.kiln(*RUN, "--shape", f"M={most},N={most},K={most}")
        errors = _ERROR.findall(done.stderr)
        self.assertEqual(done.returncode, WRONG_USAGE)
        self.assertEqual([i for i, _ in errors], ["shape-overflow"] * 3)
        for name, (_, message) in zip(("lhs", "rhs", "output"), errors):
            self.assertIn(f"`{name}` of f16 [{most}, {most}] needs more than", message)
        shape, size = "M=2000000,N=16,K=2000000", "[2000000, 2000000]"
        self.run_refused([], WRONG_USAGE, "error[shape-overflow]", "`lhs`", size, shape=shape)

    def test_names_that_are_unknown(self):
        kernel = ["--kernel", "nope"]
        self.run_refused(kernel, WRONG_USAGE, "error[kernel-unknown]", "`nope`")
        choice, archs = "error[option-choice]", "is not one of sm_80, "
        argv = ["run", "m.co", "--arch", "sm_99"]
        self.refused(argv, WRONG_USAGE, choice, "`--arch sm_99`", archs)
        self.run_refused(["--fill", "sand"], WRONG_USAGE, choice, "`--fill sand`", "adversarial")
        argv = ["run", "m.co", "--arch", "sm_80", "--on", "mars"]
        self.refused(argv, WRONG_USAGE, choice, "`--on mars`", "reference")
        self.run_refused(["--frobnicate"], WRONG_USAGE, "error", "--frobnicate")
        self.run_refused(["--seed", "x"], WRONG_USAGE, "error", "--seed", "x")
        self.run_refused(["--schedules", "0"], WRONG_USAGE, "error", "--schedules", "0", "1000000")
        self.refused(["frobnicate", "m.co"], WRONG_USAGE, "error", "`frobnicate`")
        guess = "did you mean `check`?"
        self.refused(["chekc", "m.co"], WRONG_USAGE, "error", "`chekc`", guess)
        self.refused([], WRONG_USAGE, "error")
        self.refused(["run"], WRONG_USAGE, "error", "FILE")

    def test_a_gpu_that_is_not_there_is_missed_before_any_work(self):
        argv = ["run", "m.co", "--arch", "sm_80", "--on", "gpu", "--shape", "M=4096,N=4096,K=4096"]
        with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""}):
            self.refused(argv, WRONG_WORLD, "error", "GPU")

    def test_expectations_that_cannot_be_read(self):
        cases = (
            ("output[m,n] =", "error[expect-syntax]", ["the end"]),
            ("output[m,n] = lhs[m,k] * rhs[n,k", "error[expect-syntax]", ["the end"]),
            ("output[m,n] = lhs[m,k] % rhs[n,k]", "error[expect-free-index]", ["`k`"]),
            ("output[m,n] = left[m,k] * rhs[n,k]", "error[expect-unknown-name]", ["`left`"]),
            ("lhs[m,k] = output[m,n] * rhs[n,k]", "error[expect-output]", ["`lhs`"]),
            ("output[m,n] = lhs[m] * rhs[n,m]", "error[expect-rank]", ["`lhs`", "2", "1"]),
        )
        for text, error, texts in cases:
            self.run_refused(["--expect", text], WRONG_USAGE, error, *texts)
        texts = ["`k`", "64 in `lhs`", "32 in `rhs`"]
        text, shape = "output[m,n] = lhs[m,k] * rhs[k,n]", "M=16,N=32,K=64"
        extent = "error[expect-extent]"
        self.run_refused(["--expect", text], WRONG_USAGE, extent, *texts, shape=shape)


class Inputs(Hostile):
    def refused_npy(self, data, code, error, *texts):
        self.write("x.npy", data)
        argv = [*RUN, "--shape", "M=16,N=16,K=16", "--in", "lhs=x.npy"]
        self.refused(argv, code, error, *texts)

    def test_the_base_of_these_tests_is_fine(self):
        self.write("x.npy", npy())
        done = self.kiln(*RUN, "--in", "lhs=x.npy", "--shape", "N=16")
        self.assertEqual((done.returncode, done.stderr), (FINE, ""))
        self.assertIn("M=16 K=16 N=16", done.stdout)

    def test_arrays_that_do_not_fit(self):
        wide = npy(dtype="<f4", data=bytes(1024))
        self.refused_npy(wide, WRONG_USAGE, "error[input-type]", "`x.npy`", "f32", "`lhs` is f16")
        flat = npy(shape="(256,)")
        texts = ["[256]", "`lhs` is [M, K]"]
        self.refused_npy(flat, WRONG_USAGE, "error[input-shape]", *texts)
        long = npy(shape="(16, 32)", data=bytes(1024))
        texts = ["`K` is 16", "32 by `--in lhs`"]
        self.refused_npy(long, WRONG_USAGE, "error[shape-conflict]", *texts)

    def test_files_that_are_no_arrays(self):
        whole = npy()
        cases = (
            (whole[:-200], ["[16, 16]", "512 bytes", "312"]),
            (whole + b"\0", ["512 bytes", "513"]),
            (whole[:40], ["cut off"]),
            (whole[:7], ["too short"]),
            (b"", ["too short"]),
            (b"PK\x03\x04" + bytes(1000), ["does not begin with"]),
            (npy(version=b"\x09\x00"), ["version is 9", "1 to 3"]),
            (npy(dtype=">f2"), ["`>f2`", "big endian"]),
            (npy(shape="(4611686018427387904, 16)"), ["4611686018427387904", "too large"]),
            (npy(shape="(-16, -16)"), ["`shape`"]),
            (npy(shape="(16, 16"), ["not a usable .npy file"]),
            (whole[:8] + b"\x10\0" + b"{{{{{{{{{{{{{{{\n" + bytes(512), ["header"]),
        )
        for data, texts in cases:
            self.refused_npy(data, WRONG_WORLD, "error", "`x.npy`", *texts)

    def test_arguments_of_in_and_out(self):
        base = [*RUN, "--shape", "M=16,N=16,K=16"]
        self.write("x.npy", npy())
        unknown = base + ["--in", "left=x.npy"]
        self.refused(unknown, WRONG_USAGE, "error[parameter-unknown]", "`left`")
        unknown = base + ["--in", "left=none.npy"]
        self.refused(unknown, WRONG_USAGE, "error[parameter-unknown]", "`left`")
        self.refused(base + ["--in", "lhs"], WRONG_USAGE, "error[option-form]", "`--in lhs`")
        for path in ("none.npy", ".", "m.co/x.npy"):
            argv = base + ["--in", f"lhs={path}"]
            self.refused(argv, WRONG_WORLD, "error", f"cannot read `{path}`")
        output = base + ["--out", "lhs=y.npy"]
        self.refused(output, WRONG_USAGE, "error[output-unknown]", "`lhs`")

    def test_a_result_that_cannot_be_written_leaves_nothing(self):
        base = [*RUN, "--shape", "M=16,N=16,K=16"]
        done = self.kiln(*base, "--out", "output=none/y.npy")
        self.assertEqual(done.returncode, WRONG_WORLD)
        self.assertEqual(len(_ERROR.findall(done.stderr)), 1)
        self.assertIn("cannot write `none/y.npy`", done.stderr)


if __name__ == "__main__":
    unittest.main()
