#!/usr/bin/env python3
"""Writes docs/pictures/: the maps that the documents show, and a page that lists them.

    tests/tools/pictures.py --kiln build/release/bin/kiln [--check]

Every picture is what one `kiln map` command prints, or a terminal in which one command was typed (README shows
`race.svg`). --check writes nothing and says what is out of date: a picture that differs, one that is missing, one
that no longer has a command.
"""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import terminal  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
INDEX = "README.md"

# File name, the words of the command, and what it shows.
PICTURES = (
    ("m16n8k16.f32.f16.svg", ["m16n8k16.f32.f16"], "A, B and C of the 16x8x16 instruction"),
    ("m16n8k16.f32.f16.C.svg", ["m16n8k16.f32.f16", "--operand", "C"], "its accumulator alone"),
    (
        "m16n8k16.f32.f16.C.table.svg",
        ["m16n8k16.f32.f16", "--operand", "C", "--table"],
        "the same by thread: the (m,n) of each value",
    ),
    ("m16n8k8.f32.f16.svg", ["m16n8k8.f32.f16"], "A, B and C of the 16x8x8 instruction"),
    ("ldmatrix.x4.svg", ["ldmatrix.x4"], "four matrices, and who gives each row's address"),
    ("ldmatrix.x4.trans.svg", ["ldmatrix.x4.trans"], "the same, transposed on the way"),
    (
        "smem.plain.svg",
        ["(8,8):(8,1)", "--dtype", "16", "--access", "8:1"],
        "16-byte chunks of 128-byte rows: a column lies in four banks, 8 wavefronts",
    ),
    (
        "smem.swizzle128.svg",
        ["(8,8):(8,1)", "--dtype", "16", "--swizzle", "128", "--access", "8:1"],
        "the same tile swizzled: a column lies in all banks, 1 wavefront",
    ),
    (
        "smem.padded.svg",
        ["(8,8):(9,1)", "--dtype", "16", "--access", "8:1"],
        "the same tile with rows padded by one chunk: 1 wavefront, and 12% of the memory",
    ),
    (
        "smem.A.ldmatrix.svg",
        ["m16n8k16.f32.f16", "--operand", "A", "--access", "ldmatrix.x4"],
        "`ldmatrix.x4` of an unswizzled 16x16 tile: conflicts",
    ),
    (
        "smem.A.ldmatrix.swizzle32.svg",
        ["m16n8k16.f32.f16", "--operand", "A", "--swizzle", "32", "--access", "ldmatrix.x4"],
        "the same with the 32-byte swizzle: none",
    ),
    (
        "layout.nested.svg",
        ["((2,2),(2,4)):((1,4),(2,8))"],
        "the indices of a hierarchical layout: 2x2 blocks",
    ),
)

# File name, the words of a command that finds mistakes, and what it shows.
TERMINALS = (
    (
        "race.svg",
        ["run", "docs/early_release.co", "--arch", "sm_90a", "--shape", "M=64,N=64,K=448"]
        + ["--expect", "c[m,n] = a[m,k] * b[n,k]"],
        "a race in a product whose result is right: `docs/early_release.co` gives a stage back too early",
    ),
)


def draw(kiln, words):
    argv = [str(kiln), "map", *words, "--format", "svg"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def _said_in(words):
    """A command as it is typed, in lines that a picture has room for."""
    return shlex.join(["kiln", *words]).replace(" --expect", " \\\n      --expect")


def record(kiln, words, what):
    """The command, the summary, the first message and the count of messages; without the time that it took."""
    done = subprocess.run([str(kiln), *words], cwd=ROOT, capture_output=True, text=True, check=False)
    messages, count = done.stderr.rstrip("\n").split("\n\n"), []
    if len(messages) > 2:
        count = ["", f"... {messages[-1]}"]
    summary = re.sub(r": [\d.]+ m?s$", "", done.stdout.rstrip("\n"), flags=re.M).split("\n")
    lines = [f"$ {_said_in(words)}", *summary[:4], "", messages[0], *count]
    lines = [line for each in lines for line in each.split("\n")]
    return terminal.svg(lines, what.replace("`", ""))


def index():
    lines = [
        "# Pictures",
        "",
        "Drawn by kiln; to change one, change `tests/tools/pictures.py` and run `./dev docs`.",
        "How to read them: [who owns which element](../ownership.md).",
    ]
    commands = [(name, shlex.join(["kiln", "map", *words, "--format", "svg"]), what) for name, words, what in PICTURES]
    commands += [(name, shlex.join(["kiln", *words]), what) for name, words, what in TERMINALS]
    for name, command, what in commands:
        title = what[0].upper() + what[1:]
        lines += ["", f"## {name.removesuffix('.svg')}", "", f"{title}:", "", f"    {command}"]
        lines += ["", f"![{what.replace('`', '')}]({name})"]
    return "\n".join(lines) + "\n"


def wanted(kiln):
    """{file name: text} of the whole folder."""
    files = {name: draw(kiln, words) for name, words, _ in PICTURES}
    files.update({name: record(kiln, words, what) for name, words, what in TERMINALS})
    files[INDEX] = index()
    return files


def stale(files):
    """What is wrong with the folder, one line each."""
    present = {path.name for path in FOLDER.glob("*")}
    lines = [f"docs/pictures/{name}: no command draws it" for name in sorted(present - set(files))]
    for name, text in files.items():
        path = FOLDER / name
        if not path.exists():
            lines.append(f"docs/pictures/{name}: missing")
        elif path.read_text(encoding="utf-8") != text:
            lines.append(f"docs/pictures/{name}: out of date")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kiln", type=Path, required=True)
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    options = parser.parse_args()
    files = wanted(options.kiln.resolve())
    if options.check:
        problems = stale(files)
        print("\n".join(problems) or "docs/pictures: current")
        return 1 if problems else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"docs/pictures: {len(files) - 1} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
