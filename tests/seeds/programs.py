"""The programs of the two tutorials, found in their texts and ported by includes and namespace only.

    found = programs.extract(Path("../shared/seeds"))
    found["hello_mma"].source          the program as its author wrote it, for CuTe
    programs.ported(found["hello_mma"].source)     the same, for kiln

A text holds prose around the program; the same tutorial comes in several forms: markdown, plain
text with damaged characters, without indentation, or all on one line (from which no program can be
had: its first `//` swallows the rest). The form that kept its indentation is taken, and of several
the one with the fewest damaged characters.
"""

import re
from dataclasses import dataclass
from pathlib import Path

# A kernel by which a program is recognised.
PROGRAMS = {"hello_mma": "mma_ownership_map", "global_gemm": "gemm_kernel"}

_FIRST_LINE = re.compile(r"^[ \t]*#include <cute/tensor\.hpp>[ \t]*$", re.M)
_MAIN = re.compile(r"^int main\(\)", re.M)
_CUTE_INCLUDE = re.compile(r"^[ \t]*#include <cute/[^>]*>[ \t]*\n", re.M)
_NAMESPACE = re.compile(r"^using namespace cute;", re.M)
# What UTF-8 read as another encoding leaves behind; the texts hold no Greek otherwise.
_DAMAGED = re.compile(r"[\u0370-\u03ff]")


@dataclass(frozen=True)
class Program:
    name: str
    path: Path
    source: str

    def intactness(self):
        indented = sum(line.startswith("  ") for line in self.source.split("\n"))
        return (indented, -len(_DAMAGED.findall(self.source)))


def seeds_folder(environment, root):
    """The folder of the texts, or None when this machine has none."""
    folder = Path(environment.get("KILN_SEEDS") or root.parent / "shared" / "seeds")
    return folder if any(folder.glob("*.txt")) else None


def _end_of_main(text, start):
    """One past the brace that closes main, or None."""
    depth = 0
    for at in range(text.index("{", start), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return None


def programs_in(text):
    """Each stretch of the text from the first include to the end of the next main."""
    found = []
    for first in _FIRST_LINE.finditer(text):
        main = _MAIN.search(text, first.start())
        end = _end_of_main(text, main.start()) if main else None
        if end:
            found.append(text[first.start() : end].lstrip() + "\n")
    return found


def extract(folder):
    """{name: Program}: the most intact form of each program that the folder's texts hold."""
    best = {}
    for path in sorted(folder.glob("*.txt")):
        for source in programs_in(path.read_text(encoding="utf-8", errors="replace")):
            for name, kernel in PROGRAMS.items():
                program = Program(name, path, source)
                if f"void {kernel}(" in source and (
                    name not in best or program.intactness() > best[name].intactness()
                ):
                    best[name] = program
    return best


def ported(source):
    """The program with kiln's one header for CuTe's, and kiln's namespace. Nothing else changes."""
    first = _CUTE_INCLUDE.search(source)
    rest = _CUTE_INCLUDE.sub("", source[first.end() :])
    text = source[: first.start()] + "#include <kiln/device/cute.cuh>\n" + rest
    text, changed = _NAMESPACE.subn("using namespace kiln::cute;", text)
    if changed != 1:
        raise ValueError(f"`using namespace cute;` stands {changed} times in the program")
    return text
