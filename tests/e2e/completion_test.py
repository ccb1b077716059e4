#!/usr/bin/env python3
"""What `kiln completion` prints: each shell that is here reads it, and every option of the command line is in it.

    KILN=build/release/bin/kiln tests/e2e/completion_test.py [CASE]...
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = Path(os.environ.get("KILN", ROOT / "build/release/bin/kiln")).resolve()
# Completes the words that it is given, the last one unfinished.
BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() { :; }
_kiln
printf '%s\\n' "${COMPREPLY[@]}"
"""


def kiln(*words, expected=0):
    done = subprocess.run([KILN, *words], capture_output=True, text=True, check=False)
    assert done.returncode == expected, (words, done)
    return done.stdout if expected == 0 else done.stderr


def commands():
    """The words of each command: of `kiln`, of `kiln check`, of `kiln cache warm`."""
    out, left = [], [()]
    while left:
        path = left.pop()
        text = kiln(*path, "--help")
        out.append((path, text))
        below = re.search(r"(?m)^Subcommands:\n((?:  .*\n)+)", text)
        left += [(*path, name) for name in re.findall(r"(?m)^  (\w+) ", below[1])] if below else []
    return out


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls._folder.name)
        for reader in ("bash", "zsh", "fish", "man"):
            (cls.folder / reader).write_text(kiln("completion", reader))

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    def complete(self, *words):
        argv = ["bash", "--norc", "-c", BASH, "bash", self.folder / "bash", "kiln", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("ch"), ["check"])
        self.assertEqual(self.complete("cache", ""), ["warm", "info", "clear"])
        self.assertEqual(self.complete("cache", "warm", "--a"), ["--arch"])
        self.assertIn("--max-steps", self.complete("run", "x.co", "--m"))
        self.assertEqual(self.complete("run", "--on", "s"), ["sim"])
        self.assertIn("sm_90a", self.complete("check", "--arch", ""))
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish", "man"])

    def test_bash_completes_files(self):
        self.assertEqual(self.complete("check", "examples/attention.c"), ["examples/attention.co"])
        self.assertEqual(self.complete("emit", "-o", "exam"), ["examples"])
        self.assertEqual(self.complete("bench", "README"), ["README.md"])
        self.assertEqual(self.complete("bench", "den"), ["dense"])

    def test_shells_read_their_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell) is not None:
                subprocess.run([shell, "-n", self.folder / shell], check=True)

    def test_every_option_is_everywhere(self):
        texts = {reader: (self.folder / reader).read_text() for reader in ("bash", "zsh", "fish", "man")}
        texts["man"] = texts["man"].replace("\\-", "-")
        found = 0
        for path, text in commands():
            for name in re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", text):
                found += 1
                for reader, script in texts.items():
                    word = f"-l {name[2:]} " if reader == "fish" else name
                    self.assertTrue(word in script, f"{reader} lacks {word} of {path}")
        self.assertGreater(found, 60)

    def test_the_manual_page_has_no_warnings(self):
        if shutil.which("man") is None:
            self.skipTest("no man")
        done = subprocess.run(
            ["man", "--warnings", "-l", self.folder / "man"], capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat"}
        )
        self.assertEqual(done.stderr, "")
        self.assertIn("kiln cache warm FILE", done.stdout)

    def test_a_misspelt_option_is_told(self):
        for words, text in (
            (("check", "--arhc", "sm_80", "x.co"), "`--arhc` is no option of kiln check, did you mean `--arch`?"),
            (("run", "x.co", "--shedules=3"), "`--shedules` is no option of kiln run, did you mean `--schedules`?"),
            (("cache", "warm", "--archs"), "`--archs` is no option of kiln cache warm, did you mean `--arch`?"),
            (("--versoin",), "`--versoin` is no option of kiln, did you mean `--version`?"),
            (("run", "x.co", "--qqqqqq"), "--qqqqqq"),
        ):
            self.assertIn(text, kiln(*words, expected=2))
        # What stands behind `--` is the program's.
        self.assertNotIn("did you mean", kiln("run", "no.co", "--", "--arhc", expected=2))


if __name__ == "__main__":
    unittest.main()
