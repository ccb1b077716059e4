#!/usr/bin/env python3
"""Proves that the golden runner can fail: run against a small stand-in for kiln.

The stand-in reports an error for each word `bad`, a warning for each `odd`, and an error without a
place for each `lost`. `show` prints the lines that are no comments; `crash` dies by a signal.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = Path(__file__).resolve().parent / "run.py"

STAND_IN = r'''#!/usr/bin/env python3
import json, os, re, signal, sys, time
command, path = sys.argv[1], sys.argv[2]
lines = open(path, encoding="latin-1").read().split("\n")
if command == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if command == "sanitize":
    sys.exit("x.cpp:1: runtime error: signed integer overflow")
if command == "count":
    print(len(lines) * int(time.time() * 1e6))
    sys.exit(0)
if command == "show":
    print("\n".join(line for line in lines if line and not line.startswith("//")))
    sys.exit(0)
rows = []
rules = {"bad": ("error", "bad-word"), "odd": ("warning", "odd-word"), "lost": ("error", "lost-word")}
for number, line in enumerate(lines, 1):
    for match in re.finditer(r"\b(bad|odd|lost)\b", "" if line.startswith("//") else line):
        severity, name = rules[match[0]]
        placed = match[0] != "lost"
        rows.append(dict(id=name, severity=severity, file=path if placed else "",
                         line=number if placed else 0, column=match.start() + 1 if placed else 0,
                         message=f"the word `{match[0]}`", help="drop it" if placed else ""))
if "--json" in sys.argv:
    print(json.dumps(rows))
else:
    for row in rows:
        print(f"{row['severity']}[{row['id']}]: {row['message']}", file=sys.stderr)
        if row["line"]:
            print(f"  --> {path}:{row['line']}:{row['column']}\n   |\n 1 | ...", file=sys.stderr)
            print("   | " + " " * (row["column"] - 1) + "^^^", file=sys.stderr)
sys.exit(any(row["severity"] == "error" for row in rows))
'''

CHECK = "// RUN: kiln check %s\n"
CARET = (
    CHECK
    + "let x = bad;\n//      ^^^ error[bad-word]: the word `bad`\n//      = help: drop it\nlet y = 1;\n"
)


class Runner(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = Path(self.scratch.name)
        self.folder = self.root / "src" / "stage" / "testdata"
        self.folder.mkdir(parents=True)
        self.kiln = self.root / "kiln"
        self.kiln.write_text(STAND_IN, encoding="utf-8")
        self.kiln.chmod(0o755)

    def tearDown(self):
        self.scratch.cleanup()

    def run_golden(self, *options):
        argv = [sys.executable, RUNNER, "--kiln", self.kiln, "--root", self.root, *options]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="latin-1")

    def text(self, name):
        return (self.folder / name).read_text(encoding="latin-1")

    def assert_passes(self, name, text):
        self.write(name, text)
        done = self.run_golden()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("golden: 1 passed, 0 failed\n", done.stdout)

    def assert_fails(self, name, text, why):
        self.write(name, text)
        done = self.run_golden()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("golden: 0 passed, 1 failed\n", done.stdout)
        self.assertIn(why, done.stdout)

    def assert_blesses(self, name, before, after):
        self.write(name, before)
        done = self.run_golden("--bless")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.text(name), after)
        self.assert_passes(name, after)

    # Diagnostics.

    def test_right_carets_pass(self):
        self.assert_passes("fail_x.co", CARET)

    def test_wrong_message_fails(self):
        self.assert_fails("fail_x.co", CARET.replace("the word", "a word"), "+//      ^^^ error")

    def test_wrong_id_column_width_and_help_fail(self):
        for old, new in (
            ("bad-word", "sad-word"),
            ("  ^^^", " ^^^"),
            ("^^^", "^^"),
            ("drop it", "keep it"),
        ):
            self.assert_fails("fail_x.co", CARET.replace(old, new), "what it did")

    def test_missing_diagnostic_fails(self):
        self.assert_fails("fail_x.co", CARET.replace("= bad", "= god"), "-//      ^^^ error")

    def test_unexpected_diagnostic_fails(self):
        self.assert_fails("fail_x.co", CARET.replace("= 1", "= bad"), "+//      ^^^ error")

    def test_unexpected_warning_fails(self):
        self.assert_fails("x.co", CHECK + "an odd one\n", "+// ^^^ warning[odd-word]")

    def test_bless_repairs(self):
        wrong = CARET.replace("^^^ error[bad", "^ warning[sad") + "// DIAG: 7:1 error[old]: gone\n"
        self.assert_blesses("fail_x.co", wrong, CARET)

    def test_bless_shows_the_first_columns_by_number(self):
        after = CHECK + "bad\n// @1 ^^^ error[bad-word]: the word `bad`\n// = help: drop it\n"
        self.assert_blesses("fail_x.co", CHECK + "bad\n", after)

    def test_two_on_a_line_are_in_order_of_column(self):
        before = CHECK + "    bad odd\n"
        after = (
            before
            + "//  ^^^ error[bad-word]: the word `bad`\n//  = help: drop it\n"
            + "//      ^^^ warning[odd-word]: the word `odd`\n//      = help: drop it\n"
        )
        self.assert_blesses("fail_x.co", before, after)

    def test_no_carets_inside_a_continued_line(self):
        before = CHECK + "#define X bad \\\n  1\n"
        after = before + "// DIAG: 2:11 error[bad-word]: the word `bad`\n// HELP: drop it\n"
        self.assert_blesses("fail_x.co", before, after)

    def test_without_a_place(self):
        before = CHECK + "lost\n"
        self.assert_blesses(
            "fail_x.co", before, before + "// DIAG: - error[lost-word]: the word `lost`\n"
        )

    def test_trailing_lines_follow_the_lines_they_name(self):
        before = CHECK + "    bad\n#define X bad \\\n  1\n"
        done_to = CHECK + "    bad\n//  ^^^ error[bad-word]: the word `bad`\n//  = help: drop it\n"
        done_to += "#define X bad \\\n  1\n// DIAG: 5:11 error[bad-word]: the word `bad`\n"
        self.assert_blesses("fail_x.co", before, done_to + "// HELP: drop it\n")

    def test_unfinished_last_line_is_left_alone(self):
        after = CHECK + "// DIAG: 4:5 error[bad-word]: the word `bad`\n// HELP: drop it\nlet bad"
        self.assert_blesses("fail_x.co", CHECK + "let bad", after)

    def test_sections_are_files(self):
        text = "// RUN: kiln check b.co\n// --- b.co\nlet bad\n//  ^^^ error[bad-word]: the word `bad`\n"
        self.assert_passes("fail_x.co", text + "//  = help: drop it\n")

    # Names and exit codes.

    def test_error_in_a_file_not_named_fail(self):
        self.assert_fails("x.co", CARET, "exit 1, expected 0")

    def test_file_named_fail_without_error(self):
        self.assert_fails("fail_x.co", CHECK + "fine\n", "exit 0, expected 1")

    def test_exit_zero_in_a_file_named_fail(self):
        text = CHECK + "// EXIT: 0\nfine\n"
        self.assert_fails("fail_x.co", text, "if and only if it fails")

    def test_bless_does_not_hide_an_exit_code(self):
        self.write("x.co", CARET)
        done = self.run_golden("--bless")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit 1, expected 0", done.stdout)

    def test_no_run_line(self):
        self.assert_fails("x.co", "fine\n", "no `// RUN:` line")

    # Other output.

    def test_output_is_compared_whole(self):
        text = "// RUN: kiln show %s\na\nb\n"
        self.assert_passes("x.co", text + "// OUT: a\n// OUT: b\n")
        self.assert_fails("x.co", text + "// OUT: a\n", "+// OUT: b")
        self.assert_blesses("x.co", text, text + "// OUT: a\n// OUT: b\n")

    def test_check_lines_are_ordered(self):
        text = "// RUN: kiln show %s\na\nb\n"
        self.assert_passes("x.co", text + "// CHECK: a\n// CHECK: b\n")
        self.assert_fails("x.co", text + "// CHECK: b\n// CHECK: a\n", "CHECK not found after")
        self.assert_fails("x.co", text + "// CHECK-NOT: b\n", "CHECK-NOT is in the output: b")

    def test_sixty_lines_are_the_most(self):
        text = "// RUN: kiln show %s\n" + "a\n" * 61
        self.assert_fails("x.co", text, "61 lines of expected output")
        self.assertEqual(self.run_golden("--bless").returncode, 1)
        self.assertEqual(self.text("x.co"), text)

    # Crashes are never an expectation.

    def test_crash_fails_and_can_not_be_blessed(self):
        for command in ("crash", "sanitize"):
            text = f"// RUN: kiln {command} %s\n"
            self.assert_fails("fail_x.co", text, "crashed with exit")
            self.assertEqual(self.run_golden("--bless").returncode, 1)
            self.assertEqual(self.text("fail_x.co"), text)

    def test_bless_restores_what_does_not_settle(self):
        text = "// RUN: kiln count %s\n"
        self.write("x.co", text)
        self.assertIn("do not settle", self.run_golden("--bless").stdout)
        self.assertEqual(self.text("x.co"), text)

    def test_filter(self):
        self.write("fail_x.co", CARET)
        self.write("fail_y.co", CHECK)
        self.assertIn("golden: 1 passed, 0 failed", self.run_golden("fail_x").stdout)
        self.assertIn("golden: 1 passed, 1 failed", self.run_golden().stdout)


if __name__ == "__main__":
    unittest.main()
