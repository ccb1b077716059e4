#!/usr/bin/env python3
"""Tests of the tools that judge the code: they find what is there and nothing else."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import batch  # noqa: E402
import changed  # noqa: E402
import cpp  # noqa: E402
import diagnostics_doc  # noqa: E402
import readme_numbers  # noqa: E402
import size  # noqa: E402
import terminal  # noqa: E402
import tree  # noqa: E402
import wheel  # noqa: E402

SAMPLE = r"""
#include <x>
namespace kiln { namespace {
// int not_a_function() { }
constexpr Row kRows[] = {
    {.name = "a { b", .n = {1, 2}},
};
struct [[nodiscard("call {")]] Box : Base {
  Box(int a, std::map<int, int> b) : a_(a), b_{b} {
    if (a) return;
  }
  bool operator==(const Box& other) const { return a_ == other.a_; }
  int a_ = 3;
  std::vector<int> b_{1, 2};
};
template <class T, class U>
[[nodiscard]] auto apply(std::span<const std::pair<T, U>> items, void (*f)(T, U)) -> Result<T, U> {
  for (int i = 0; i < 3; ++i) {
    if (i == 1) {
      while (true) {
        f({1, 2});
      }
    } else if (i == 2) {
      auto g = [&](int x) { return x; };
    }
  }
}
void straight() { char c = '{'; int n = 1'000; call("}"); }
}  // namespace
TEST(Box, Holds) { EXPECT_EQ(1, 1); }
}
"""


class Cpp(unittest.TestCase):
    def test_finds_functions(self):
        found = {f.name: f for f in cpp.functions(SAMPLE)}
        self.assertEqual(
            sorted(found), ["Box", "TEST(Box, Holds)", "apply", "operator==", "straight"]
        )
        self.assertEqual(found["Box"].parameters, 2)
        self.assertEqual((found["Box"].lines, found["Box"].line), (3, 9))
        self.assertEqual(found["apply"].parameters, 2)
        self.assertEqual(found["apply"].nesting, 3)
        self.assertEqual(found["apply"].lines, 12)
        self.assertFalse(found["straight"].branches)
        self.assertTrue(found["Box"].branches)

    def test_blank_keeps_offsets(self):
        self.assertEqual(len(cpp.blank(SAMPLE)), len(SAMPLE))
        self.assertEqual(cpp.blank(SAMPLE).count("\n"), SAMPLE.count("\n"))

    def test_raw_strings(self):
        text = 'const char* k = R"x(void f() { " )x";\nint g() { return 1; }\n'
        self.assertEqual([f.name for f in cpp.functions(text)], ["g"])


class Size(unittest.TestCase):
    KEY = ("function", "a.cpp", "f")

    def judge(self, value, exception=None, committed=None):
        exceptions = {} if exception is None else {self.KEY: exception}
        before = None if committed is None else {self.KEY: committed}
        return size.problems({self.KEY: (value, 1)}, exceptions, before)

    def test_limit(self):
        self.assertEqual(self.judge(70), [])
        self.assertEqual(self.judge(71), ["a.cpp:1: function f: 71, at most 70"])

    def test_exception_may_only_shrink(self):
        self.assertEqual(self.judge(84, 84, 84), [])
        self.assertIn("at most 84", self.judge(85, 84, 84)[0])
        self.assertIn("lower it from 84", self.judge(80, 84, 84)[0])
        self.assertIn("no longer needed", self.judge(70, 84, 84)[0])
        self.assertIn("may only shrink", self.judge(84, 84, 80)[0])

    def test_generated_files_may_be_long(self):
        text = "// The atoms.\n// Generated from src/target by `./dev docs`; not edited by hand.\n" + "\n" * 900
        kinds = lambda text: [key[0] for key, _, _ in size._cpp_sizes(Path("a.h"), text)]
        self.assertEqual(kinds(text), [])
        self.assertEqual(kinds("#pragma once\n" + text), ["file"])  # said anywhere, it would excuse anything


class Changed(unittest.TestCase):
    TESTS = {"sim_test": Path("src/sim"), "emit_test": Path("src/emit/cuda"), "fuzz_test": Path("tests/fuzz")}

    def test_a_folder_is_tested_when_a_file_in_it_differs(self):
        self.assertEqual(changed.chosen(self.TESTS, {"src/sim/testdata/a.co"}), ["sim_test"])
        self.assertEqual(changed.chosen(self.TESTS, {"src/emit/cuda/emit.cpp", "README.md"}), ["emit_test"])
        self.assertEqual(changed.chosen(self.TESTS, {"src/sema/sema.cpp"}), [])


BATCH_STAND_IN = r'''#!/usr/bin/env python3
"""`say X` says X, `die` ends the process by a signal, `hang` never answers."""
import os, signal, sys, time
def run(command, *rest):
    if command == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if command == "hang":
        time.sleep(60)
    return len(rest), f"{os.getpid()} {os.getcwd()} {' '.join(rest)}", "no error"
if sys.argv[1] != "--batch":
    code, out, err = run(*sys.argv[1:])
    print(out, end="")
    print(err, end="", file=sys.stderr)
    sys.exit(code)
def words(count):
    text = b""
    while text.count(b"\0") < count:
        text += sys.stdin.buffer.read(1)
    return text.decode().split("\0")[:-1]
while line := sys.stdin.buffer.readline():
    folder, *command = words(int(line))
    os.chdir(folder)
    code, *texts = run(*command)
    print(code, *map(len, texts), "\n", sep=" ", end="")
    print(*texts, sep="", end="", flush=True)
sys.exit(7 if os.path.exists(os.path.join(os.path.dirname(__file__), "leaks")) else 0)
'''


class Batch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(batch.finish)
        self.folder = os.path.realpath(scratch.name)
        self.kiln = Path(self.folder) / "kiln"
        self.kiln.write_text(BATCH_STAND_IN, encoding="utf-8")
        self.kiln.chmod(0o755)

    def run_one(self, *words, timeout=30):
        return batch.run([str(self.kiln), *words], self.folder, dict(os.environ), timeout)

    def test_commands_share_a_process(self):
        done = [self.run_one("say", "a", "b\nc"), self.run_one("say", "")]
        pids = {one.stdout.split()[0] for one in done}
        self.assertEqual(len(pids), 1)
        self.assertEqual([one.returncode for one in done], [2, 1])
        self.assertTrue(done[0].stdout.endswith(f" {self.folder} a b\nc"))
        self.assertEqual(done[0].stderr, "no error")
        self.assertEqual(batch.finish(), "")

    def test_what_kills_the_process_is_run_alone(self):
        self.run_one("say")
        self.assertEqual(self.run_one("die").returncode, -signal.SIGSEGV)
        self.assertEqual(self.run_one("say", "x").returncode, 1)

    def test_no_answer_in_time(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.run_one("hang", timeout=0.3)
        self.assertEqual(self.run_one("say", "x").returncode, 1)

    def test_what_a_process_finds_at_its_end_is_told(self):
        self.run_one("say")
        (Path(self.folder) / "leaks").touch()
        self.assertIn("ended with 7", batch.finish())


RENDERED = """\
warning[lossy]: a
  --> x.co:1:1

error[unknown-name]: unknown name `y`
  --> x.co:2:7
   |
 2 |   x = y;
   |       ^

2 errors
"""


class DiagnosticsDoc(unittest.TestCase):
    ROW = tree.CatalogueRow(Path("c.def"), 1, "UnknownName", "unknown-name", "error", "no `{}`")

    def test_expectations_are_taken_out(self):
        expected = "//    ^ error[unknown-name]: no\n//    = help: z\n"
        text = "// RUN: kiln check %s\n  x = y;\n" + expected + "// kept\n"
        self.assertEqual(diagnostics_doc.without_expectations(text), "  x = y;\n// kept\n")

    def test_finds_the_block_of_a_row(self):
        block = diagnostics_doc.block_of(RENDERED, self.ROW)
        self.assertTrue(block.startswith("error[unknown-name]: unknown name `y`\n"))
        self.assertTrue(block.endswith("   |       ^\n"))
        other = RENDERED.replace("error[", "note[")
        self.assertEqual(diagnostics_doc.block_of(other, self.ROW), "")

    def test_smallest_program_first(self):
        long, short, other = Path("long.co"), Path("short.co"), Path("other.co")
        expects = "//  ^ error[unknown-name]: no\n"
        tests = {long: "x = y; // more\n" + expects, short: "x;\n" + 9 * expects, other: "x;\n"}
        self.assertEqual(diagnostics_doc.candidates(self.ROW, tests), [short, long])

    def test_a_row_without_an_example_shows_its_message(self):
        self.assertIn("error[unknown-name]: no `...`", diagnostics_doc.section(self.ROW, None))


def result(suite, shape, ratio, **others):
    row = {"suite": suite, "shape": shape, "types": "f16", "ratio": ratio, "tflops": 100.0, **others}
    return json.dumps(row) + "\n"


class ReadmeNumbers(unittest.TestCase):
    def test_a_row_for_each_suite_in_their_order(self):
        text = result("llm", "M=16", 0.5) + result("dense", "M=1", 2.0) + result("dense", "M=2", 0.5)
        lines = readme_numbers.table({"bench/results/all.jsonl": text})[2:]
        self.assertEqual(len(lines), 2)
        self.assertIn("`kiln bench dense`", lines[0])
        self.assertIn("| 2 | 1.000 | 0.500 (M=2) | 100 |", lines[0])
        self.assertIn("`kiln bench llm`", lines[1])

    def test_of_a_problem_the_last_line_counts(self):
        text = result("dense", "M=1", 0.5) + result("dense", "M=1", 1.25, device="H200")
        line = readme_numbers.table({"a.jsonl": text})[2]
        self.assertIn("| H200 | 1 | 1.250 | 1.250 (M=1) | 100 |", line)

    def test_types_tell_problems_of_one_shape_apart(self):
        text = result("dense", "M=1", 0.5) + result("dense", "M=1", 2.0, types="bf16")
        self.assertIn("| 2 | 1.000 | 0.500 (M=1) |", readme_numbers.table({"a.jsonl": text})[2])

    def test_problems_without_a_baseline_are_said(self):
        text = result("fp8", "M=1", None) + result("fp8", "M=2", 0.9)
        line = readme_numbers.table({"a.jsonl": text})[2]
        self.assertIn("| 2, 1 with a baseline | 0.900 |", line)
        line = readme_numbers.table({"a.jsonl": result("fp8", "M=1", None)})[2]
        self.assertIn("| 1, 0 with a baseline | - | - | 100 |", line)

    def test_only_what_is_between_the_markers_changes(self):
        begin, end = readme_numbers.BEGIN, readme_numbers.END
        text = f"above\n{begin}\nold\n{end}\nbelow\n"
        changed = readme_numbers.replaced(text, ["new", "lines"])
        self.assertEqual(changed, f"above\n{begin}\nnew\nlines\n{end}\nbelow\n")
        self.assertEqual(readme_numbers.replaced(changed, ["new", "lines"]), changed)
        with self.assertRaises(SystemExit):
            readme_numbers.replaced("no markers\n", [])

    def test_the_headline_says_both_means_and_the_worst(self):
        where = {"device": "H200", "baseline": "cuBLASLt"}
        text = result("dense", "M=1", 2.0, **where) + result("dense", "M=2", 0.5, **where) + result("llm", "M=3", 1.5)
        said = " ".join(readme_numbers.headline({"a.jsonl": text}))
        self.assertIn("is 1.000 times as fast on 2 products", said)
        self.assertIn("1.500 times on 1 of language models", said)
        self.assertIn("is 0.500); the most is 100 TFLOP/s.", said)
        self.assertEqual(readme_numbers.headline({"a.jsonl": result("dense", "M=1", 2.0)}), [])

    def test_other_lines_are_refused(self):
        for text in ("{", "[]", '{"kernel": "gemm"}', '{"suite": "dens"}'):
            with self.assertRaises(SystemExit):
                readme_numbers.read_rows(text, "a.jsonl")


class Terminal(unittest.TestCase):
    def test_lines_are_escaped_and_places_coloured(self):
        text = terminal.svg(["$ kiln run a<b>.co", "  1 | a => b;", "    | ^ write"], "a & b")
        self.assertIn("<title>a &amp; b</title>", text)
        self.assertIn("kiln run a&lt;b&gt;.co", text)
        self.assertIn('fill="#ff6b68">^ write', text)
        self.assertEqual(text.count("<text "), 3)


class Wheel(unittest.TestCase):
    DYNAMIC = " 0x1 (NEEDED)  Shared library: [libc.so.6]\n 0x1 (NEEDED)  Shared library: [libstdc++.so.6]\n"

    def versions(self, *names):
        return "".join(f"  0x0010:   Name: {name}  Flags: none  Version: 5\n" for name in names)

    def test_what_ubuntu_22_has_is_fine(self):
        text = self.versions("GLIBC_2.2.5", "GLIBC_2.35", "GLIBCXX_3.4.30", "CXXABI_1.3.13", "GCC_3.0")
        self.assertEqual(wheel.mistakes_of_module(self.DYNAMIC, text), [])

    def test_newer_symbols_and_other_libraries_are_found(self):
        text = self.versions("GLIBC_2.38", "GLIBC_2.35", "GLIBCXX_3.4.31", "CXXABI_1.3.9", "FMT_9")
        found = wheel.mistakes_of_module(self.DYNAMIC + " 0x1 (NEEDED) Shared library: [libcuda.so.1]\n", text)
        self.assertEqual(
            found,
            [
                "needs libcuda.so.1, which a system need not have",
                "wants FMT_9, of which nothing is known",
                "wants GLIBC_2.38, at most GLIBC_2.35 is there",
                "wants GLIBCXX_3.4.31, at most GLIBCXX_3.4.30 is there",
            ],
        )

    def made(self, folder, python, module):
        path = Path(folder) / f"box-1.0-{python}-linux_x86_64.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(module, b"\x7fELF")
            archive.writestr("box-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {python}-linux_x86_64\n")
            archive.writestr("box-1.0.dist-info/RECORD", "box-1.0.dist-info/RECORD,,\n")
        return path

    def test_names_of_modules_and_of_the_wheel_agree(self):
        self.assertEqual(wheel.mistakes_of_name("box-1.0-cp312-abi3-linux_x86_64.whl", ["box/_core.abi3.so"]), [])
        usual = ["box/_core.cpython-311-x86_64-linux-gnu.so"]
        self.assertEqual(wheel.mistakes_of_name("box-1.0-cp311-cp311-linux_x86_64.whl", usual), [])
        found = wheel.mistakes_of_name("box-1.0-cp312-abi3-linux_x86_64.whl", usual)
        self.assertIn("its name lacks `.abi3.so`", found[0])

    def test_a_label_is_the_wheel_with_another_tag(self):
        with tempfile.TemporaryDirectory() as folder:
            made = wheel.label(self.made(folder, "cp312-abi3", "box/_core.abi3.so"))
            self.assertEqual([each.name for each in Path(folder).iterdir()], [made.name])
            self.assertEqual(made.name, "box-1.0-cp312-abi3-manylinux_2_35_x86_64.whl")
            with zipfile.ZipFile(made) as archive:
                self.assertIn(b"Tag: cp312-abi3-manylinux_2_35_x86_64", archive.read("box-1.0.dist-info/WHEEL"))
                record = archive.read("box-1.0.dist-info/RECORD").decode()
                self.assertEqual(len(record.splitlines()), 3)
                self.assertRegex(record, r"box/_core.abi3.so,sha256=[\w-]{43},4\n")
            self.assertEqual(wheel.label(made), made)

    def test_a_module_of_this_machine_is_read(self):
        compiler = shutil.which("cc")
        if compiler is None or shutil.which("readelf") is None:
            self.skipTest("no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            source, module = Path(folder) / "a.c", Path(folder) / "a.so"
            source.write_text("#include <math.h>\ndouble f(double x) { return exp(x); }\n")
            subprocess.run([compiler, "-shared", "-fPIC", "-o", module, source, "-lm"], check=True)
            texts = [wheel.readelf(option, module) for option in ("-d", "-V")]
            self.assertEqual(wheel.mistakes_of_module(*texts), [])
            self.assertIn("GLIBC_2", texts[1])


if __name__ == "__main__":
    unittest.main()
