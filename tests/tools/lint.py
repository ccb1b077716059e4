#!/usr/bin/env python3
"""What a reviewer should not have to look for. Each check returns lines; none is a pass.

    tests/tools/lint.py [CHECK]...

clang-format has the last word on layout; size.py on sizes; this on everything else.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cpp  # noqa: E402
import tree  # noqa: E402

CPP = (".h", ".cpp", ".cu", ".cuh")
CLANG_FORMAT_MAJOR = 14  # the repository is formatted with this one; others differ in details
_TEXT = CPP + (".def", ".py", ".md", ".co", ".kir", ".txt", ".cmake", ".json", "")
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt|scratch)/\w")
_BANNER = re.compile(r"^\s*(?://|#)\s*[-=/*#]{8,}\s*$")
_INCLUDE = re.compile(r'^#include "([a-z_]+)/([^"]+)"', re.M)
_SOURCES = re.compile(r"SOURCES((?:\s+[\w./]+\.cpp)+)")


def clang_format():
    """Layout, by the tool. Another major version is told, not used: it would ask for other lines."""
    for name in (f"clang-format-{CLANG_FORMAT_MAJOR}", "clang-format"):
        if not shutil.which(name):
            continue
        version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
        if f"version {CLANG_FORMAT_MAJOR}." in version.stdout:
            break
    else:
        print(f"lint: layout not checked: it needs clang-format {CLANG_FORMAT_MAJOR}")
        return []
    paths = [str(p) for p in tree.files(*CPP)]
    argv = [name, "--dry-run", *paths]
    done = subprocess.run(argv, cwd=tree.ROOT, capture_output=True, text=True, check=False)
    bad = re.findall(r"^(\S+?):(\d+):\d+: warning: code should be clang-formatted", done.stderr, re.M)
    first = {path: line for path, line in reversed(bad)}
    return [f"{path}:{line}: not as `./dev fmt` would write it" for path, line in first.items()]


def headers_stand_alone():
    """Each header compiles as the only file of a program."""
    compiler = os.environ.get("CXX", "g++")
    flags = "-std=c++20 -fsyntax-only -x c++ -Isrc -Iinclude -DJSON_NOEXCEPTION=1".split()
    flags += [f"-I{p}" for p in sorted(tree.ROOT.glob("build/*/generated"))[:1]]
    paths = [p for p in tree.files(".h") if p.parts[0] in ("src", "include")]

    def compile_one(path):
        argv = [compiler, *flags, "-"]
        program = f'#include "{path}"\n'
        done = subprocess.run(
            argv + ["-I."], cwd=tree.ROOT, input=program, capture_output=True, text=True, check=False
        )
        first = re.search(r"^.*error: .*$", done.stderr, re.M)
        return f"{path}: {first[0] if first else done.stderr[:300]}" if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return [problem for problem in pool.map(compile_one, paths) if problem]


def headers_have_pragma_once():
    paths = (p for p in tree.files(".h", ".cuh"))
    return [f"{p}: no #pragma once" for p in paths if "#pragma once" not in tree.text(p)]


def files_open_with_a_comment():
    """A header says what it is for; its source may leave it to the header."""
    bad = (p for p in tree.files(".h", ".cuh") if not tree.text(p).startswith("//"))
    return [f"{p}:1: open with a comment that says what the file is for" for p in bad]


def no_stray_text():
    """Long dashes, paths of one machine, banner rows, disabled code, notes without an issue."""
    rules = (
        (re.compile("[\u2013\u2014]"), "a long dash"),
        (_MACHINE_PATH, "a path of one machine"),
        (_BANNER, "a banner row"),
        (re.compile(r"^\s*#\s*if\s+0\b"), "disabled code"),
        (re.compile(r"\b(?:TODO|FIXME)\b(?!\(#\d+\))"), "a note without its issue number"),
        (re.compile(r"[ \t]+$"), "space at the end of the line"),
    )
    lines = []
    for path in tree.files(*_TEXT):
        # docs/diagnostics.md is generated, and shows users' mistakes.
        exempt = ("LICENSE", "lint.py", "diagnostics.md")
        if path.name in exempt or {"testdata", "corpus"}.intersection(path.parts):
            continue
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            lines += [f"{path}:{number}: {what}" for rule, what in rules if rule.search(line)]
    return lines


def _stage(path, stages):
    """The folder among `stages` that a path below src/ lies in: "emit/cuda" of "emit/cuda/spell.h"; "" if in none."""
    return next((s for s in stages if str(path).startswith(s + "/")), "")


def _stages():
    """The folders of src/ that are libraries, from the ground up."""
    return re.findall(r"^add_subdirectory\(src/([a-z_/]+)\)", tree.text("CMakeLists.txt"), re.M)


def layers_point_up():
    """A folder of src/ includes only folders that stand above it in CMakeLists.txt."""
    stages = _stages()
    rank = {name: index for index, name in enumerate(stages)}
    lines = []
    for path in tree.files(".h", ".cpp"):
        own = _stage(path.relative_to("src"), stages) if path.parts[0] == "src" else ""
        if not own or path.stem.endswith("_test"):
            continue
        for included in map("/".join, _INCLUDE.findall(tree.text(path))):
            if rank.get(_stage(included, stages), -1) > rank[own]:
                lines.append(f"{path}: includes {included}, which stands below it")
    return lines


def includes_have_no_circles():
    """No file of src/ includes itself by way of others."""
    paths = [p for p in tree.files(".h", ".cuh") if p.parts[0] == "src"]
    graph = {
        str(p.relative_to("src")): [f"{a}/{b}" for a, b in _INCLUDE.findall(tree.text(p))] for p in paths
    }
    done, lines = set(), []

    def visit(name, above):
        if name in above:
            lines.append(f"src/{name}: includes itself: {' -> '.join([*above[above.index(name):], name])}")
        elif name not in done:
            for other in graph.get(name, ()):
                visit(other, [*above, name])
            done.add(name)

    for name in graph:
        visit(name, [])
    return lines


FOLDER_SHARE_MAX = 0.15  # of the lines of src/, without tests


def no_folder_is_the_house():
    """A folder of src/ that outgrows the others is two folders."""
    stages, lines = _stages(), {}
    for path in tree.files(".h", ".cpp", ".def"):
        if path.parts[0] == "src" and "test" not in path.stem:
            folder = _stage(path.relative_to("src"), stages)
            lines[folder] = lines.get(folder, 0) + tree.text(path).count("\n")
    most = FOLDER_SHARE_MAX * sum(lines.values())
    return [
        f"src/{folder}: {count} lines, more than {FOLDER_SHARE_MAX:.0%} of src"
        for folder, count in sorted(lines.items())
        if count > most
    ]


# What kiln offers for CUDA written by hand; emitted CUDA includes none of it.
_LIBRARY_HEADERS = "algorithm cute elements mma require tensor tiled_copy tiled_mma tuple".split()
_DEVICE_INCLUDE = re.compile(r'^#include "kiln/device/(\w+)\.cuh"', re.M)
_DEVICE_NAME = re.compile(r"^(?:struct|class|using|concept) (\w+)\b(?!::)", re.M)


def emitted_code_and_the_library_stand_apart():
    """No header of emitted CUDA includes the library's, and no name of kiln's is defined in both."""
    owners, lines = {}, []
    for path in tree.files(".cuh"):
        if path.parts[:3] != ("include", "kiln", "device"):
            continue
        text, library = tree.text(path), path.stem in _LIBRARY_HEADERS
        for other in _DEVICE_INCLUDE.findall(text):
            if not library and other in _LIBRARY_HEADERS:
                lines.append(f"{path}: includes {other}.cuh, which is for CUDA written by hand")
        own = "".join(re.findall(r"^namespace kiln \{$(.*?)^\}  // namespace kiln$", text, re.M | re.S))
        own = re.sub(r"^namespace \w+ \{$.*?^\}  // namespace \w+$", "", own, flags=re.M | re.S)
        for name in set(_DEVICE_NAME.findall(own)):
            owners.setdefault(name, {}).setdefault(library, path)
    for name, where in owners.items():
        if len(where) == 2:
            lines.append(f"{where[True]}: kiln::{name} is in {where[False]} too, for emitted CUDA")
    return lines


# Folders that spell, run or explain what the passes have decided.
_BACK_ENDS = ("emit", "explain", "sim")
_ARCH = "src/target/arch.h"
# Of target::Arch what decisions are made of: the capability, and the columns between these comments.
_LIMITS_OF_ARCH = re.compile(r"^  // Limits of one block\.$(.*?)^  // The reference part\.$", re.M | re.S)
_COLUMN = re.compile(r"^  [\w:<>, ]+ (\w+);", re.M)


def _decisive(arch):
    """What reads a limit or a feature of an architecture; a function of the table may."""
    section = _LIMITS_OF_ARCH.search(arch)
    columns = ["capability", "features", *_COLUMN.findall(section[1] if section else "")]
    return len(columns), re.compile(rf"(?:\.|->)({'|'.join(columns)})\b(?!\()|\b(Feature::\w+|oldest_arch)\b")


def back_ends_decide_nothing():
    """What reads the decided IR includes no pass and asks no limit or feature of the hardware."""
    count, decisive = _decisive(tree.text(_ARCH))
    lines = [] if count > 12 else [f"{_ARCH}: its limits are not where tests/tools/lint.py looks for them"]
    for path in tree.files(".h", ".cpp"):
        if path.parts[:1] != ("src",) or path.parts[1] not in _BACK_ENDS:
            continue
        if path.stem.endswith("_test"):
            continue
        text = tree.text(path)
        for folder, rest in _INCLUDE.findall(text):
            if folder == "passes":
                lines.append(f"{path}: includes passes/{rest}: read what it decided in the IR")
        for match in decisive.finditer(cpp.blank(text)):
            line = text.count("\n", 0, match.start()) + 1
            lines.append(f"{path}:{line}: `{match[1] or match[2]}`: let a pass decide by it, and read that")
    return lines


def heavy_headers_stay_out_of_headers():
    """But for what programs get that are built with `kiln build`: <iostream> is implied there."""
    lines = []
    for path in tree.files(".h"):
        if str(path).startswith(("include/kiln/co.h", "include/kiln/host/")):
            continue
        text = tree.text(path)
        for banned in ("<nlohmann/", "<CLI/", "<iostream>", "<regex>"):
            if f"#include {banned}" in text:
                lines.append(f"{path}: {banned} belongs in a .cpp file")
    return lines


def no_exceptions_in_the_compiler():
    lines = []
    for path in tree.files(".h", ".cpp"):
        if path.parts[0] == "src" and not path.stem.endswith("_test"):
            for match in re.finditer(r"\b(throw|try|dynamic_cast|typeid)\b", cpp.blank(tree.text(path))):
                line = tree.text(path).count("\n", 0, match.start()) + 1
                lines.append(f"{path}:{line}: `{match[0]}`: failures are values here")
    return lines


def catalogue_wording():
    """lower case, no full stop, ids that match names."""
    lines = []
    for row in tree.catalogue():
        where = f"{row.path}:{row.line}: {row.id}"
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", row.name).lower()
        if kebab.replace("-", "") != row.id.replace("-", ""):
            lines.append(f"{where}: does not spell `{row.name}`")
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row.id):
            lines.append(f"{where}: ids are lower case with hyphens")
        if row.message.endswith(".") and not row.message.endswith("..."):
            lines.append(f"{where}: no full stop")
        if re.match(r"[A-Z][a-z]", row.message):
            lines.append(f"{where}: messages begin in lower case")
    return lines


def source_lists_are_sorted():
    lines = []
    for path in tree.files(".txt"):
        for group in _SOURCES.findall(tree.text(path)):
            if group.split() != sorted(group.split()):
                lines.append(f"{path}: sort SOURCES{' '.join(group.split())[:60]}")
    return lines


CHECKS = (
    clang_format,
    headers_have_pragma_once,
    files_open_with_a_comment,
    no_stray_text,
    layers_point_up,
    includes_have_no_circles,
    no_folder_is_the_house,
    emitted_code_and_the_library_stand_apart,
    back_ends_decide_nothing,
    heavy_headers_stay_out_of_headers,
    no_exceptions_in_the_compiler,
    catalogue_wording,
    source_lists_are_sorted,
    headers_stand_alone,
)


def main():
    wanted = [c for c in CHECKS if not sys.argv[1:] or c.__name__ in sys.argv[1:]]
    count = 0
    for check in wanted:
        for line in check():
            count += 1
            print(f"{line}  [{check.__name__}]")
    print(f"lint: {len(wanted)} checks, {count} problems")
    return 1 if count or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
