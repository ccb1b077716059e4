"""A golden file: source text that carries its own expectations as comments.

    // RUN: kiln check %s --arch sm_80
    __co__ void f() {
      x = y;
    //    ^ error[unknown-name]: unknown name `y`
    //    = help: did you mean `z`?
    }

`rendition(file, outcome)` writes the text the file should have, given what the commands did. A test
passes when that is the text it already has; blessing is writing it. CONTRIBUTING.md describes the
format. Text is handled as latin-1, so that one character is one byte, as in the compiler's columns.
"""

import re
from dataclasses import dataclass, field

GENERATED_LINES_MAX = 60

_KEY = re.compile(r"^// (RUN|EXIT|STYLE|CHECK|CHECK-NOT): (.*)$")
_TRAILING = re.compile(r"^// (OUT|ERR|DIAG|HELP):( .*)?$")
_CARET = re.compile(r"^//(?: @\d+)? *\^+ (error|warning|note)\[[a-z0-9-]+\]: ")
_CARET_HELP = re.compile(r"^// *= help: ")
_SECTION = re.compile(r"^// --- (\S+)$")
_HEADER_KEYS = ("RUN", "EXIT", "STYLE")
STYLES = ("caret", "trailing", "rendered")


class GoldenError(Exception):
    """The test file itself is malformed, or what the command did can not be an expectation."""


@dataclass
class Diagnostic:
    """One entry of `kiln check --json`, with the width of its underline from the rendered text."""

    id: str
    severity: str
    file: str
    line: int
    column: int
    message: str
    help: str
    width: int = 1

    def title(self):
        return f"{self.severity}[{self.id}]: {self.message}"


@dataclass
class Outcome:
    """What all RUN lines of a file did, together."""

    diagnostics: list = field(default_factory=list)
    out: str = ""
    err: str = ""
    exits: list = field(default_factory=list)


@dataclass
class GoldenFile:
    name: str
    lines: list
    runs: list
    exit: int
    style: str
    checks: list  # of (kind, text), in order
    sections: list  # of (name, first line, from 1); the file's own section comes first


def parse(name, text):
    """Reads the handwritten part of a test; raises GoldenError when it is malformed."""
    lines = text.split("\n")
    keys = {key: [] for key in ("RUN", "EXIT", "STYLE")}
    checks = []
    sections = [(name, 1)]
    for number, line in enumerate(lines, 1):
        if match := _KEY.match(line):
            if match[1] in keys:
                keys[match[1]].append(match[2].strip())
            else:
                checks.append((match[1], match[2]))
        elif match := _SECTION.match(line):
            sections.append((match[1], number + 1))
    if not keys["RUN"]:
        raise GoldenError("no `// RUN:` line")
    style = keys["STYLE"][0] if keys["STYLE"] else "caret"
    if style not in STYLES:
        raise GoldenError(f"unknown style `{style}`; one of {', '.join(STYLES)}")
    must_fail = name.startswith("fail_")
    code = int(keys["EXIT"][0]) if keys["EXIT"] else int(must_fail)
    if must_fail != (code != 0):
        raise GoldenError(f"a file is named fail_* if and only if it fails; EXIT is {code}")
    return GoldenFile(name, lines, keys["RUN"], code, style, checks, sections)


def section_texts(file):
    """[(file name, text)], expectations included, as the commands see them."""
    starts = [first - 1 for _, first in file.sections] + [len(file.lines) + 1]
    texts = []
    for index, (name, _) in enumerate(file.sections):
        end = starts[index + 1] - 1 if index + 1 < len(file.sections) else len(file.lines)
        texts.append((name, "\n".join(file.lines[starts[index] : end])))
    return texts


def _is_generated(lines, index):
    line = lines[index]
    if _TRAILING.match(line) or _CARET.match(line):
        return True
    return bool(_CARET_HELP.match(line)) and index > 0 and bool(_CARET.match(lines[index - 1]))


def _caret_lines(diagnostic):
    carets = "^" * diagnostic.width
    if diagnostic.column >= 3:
        lines = ["//" + " " * (diagnostic.column - 3) + f"{carets} {diagnostic.title()}"]
    else:
        lines = [f"// @{diagnostic.column} {carets} {diagnostic.title()}"]
    if diagnostic.help:
        indent = max(diagnostic.column - 3, 1)
        lines.append("//" + " " * indent + f"= help: {diagnostic.help}")
    return lines


def _trailing_lines(file, diagnostics, outcome):
    lines = []
    for diagnostic in diagnostics:
        place = f"{diagnostic.line}:{diagnostic.column}" if diagnostic.line else "-"
        if diagnostic.line and diagnostic.file != file.name:
            place = f"{diagnostic.file}:{place}"
        lines.append(f"// DIAG: {place} {diagnostic.title()}")
        if diagnostic.help:
            lines.append(f"// HELP: {diagnostic.help}")
    if not file.checks:
        lines += _block("OUT", outcome.out)
    lines += _block("ERR", outcome.err)
    return lines


def _block(key, text):
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return [f"// {key}: {line}".rstrip() for line in lines]


def _anchor(file, diagnostic, generated):
    """The index of the line the carets go under, or None where no comment can follow."""
    firsts = dict(file.sections)
    if file.style != "caret" or not diagnostic.line or diagnostic.file not in firsts:
        return None
    if any(line.startswith("#line") for line in file.lines):
        return None
    index = firsts[diagnostic.file] + diagnostic.line - 2
    last = len(file.lines) - 1  # the empty text after the final newline, or an unfinished line
    if index >= last or index in generated or file.lines[index].endswith("\\"):
        return None
    return index if diagnostic.column <= len(file.lines[index]) + 1 else None


def rendition(file, outcome):
    """The file's text with the expectations that `outcome` asks for."""
    generated = {i for i in range(len(file.lines)) if _is_generated(file.lines, i)}
    anchored = {}
    homeless = []
    for diagnostic in outcome.diagnostics:
        index = _anchor(file, diagnostic, generated)
        if index is None:
            homeless.append(diagnostic)
        else:
            anchored.setdefault(index, []).append(diagnostic)
    trailing = _trailing_lines(file, homeless, outcome)
    if len(trailing) > GENERATED_LINES_MAX:
        raise GoldenError(
            f"{len(trailing)} lines of expected output; at most {GENERATED_LINES_MAX} are kept: "
            "print less, or use CHECK lines"
        )
    kept = []
    for index, line in enumerate(file.lines):
        if index not in generated:
            kept.append(line)
        for diagnostic in sorted(anchored.get(index, []), key=lambda d: d.column):
            kept += _caret_lines(diagnostic)
    position = _trailing_position(kept)
    return "\n".join(kept[:position] + trailing + kept[position:])


def _trailing_position(kept):
    """At the end of the first section; after the header when the file's last line is unfinished."""
    for index, line in enumerate(kept):
        if _SECTION.match(line):
            return index
    if kept[-1] == "":
        return len(kept) - 1
    position = 0
    while position < len(kept):
        match = _KEY.match(kept[position])
        if not match or match[1] not in _HEADER_KEYS:
            break
        position += 1
    return position


def check_failures(file, outcome):
    """What is wrong that blessing can not repair: exit codes and CHECK lines."""
    failures = []
    for run, code in zip(file.runs, outcome.exits):
        if code != file.exit:
            failures.append(f"exit {code}, expected {file.exit}: {run}")
    position = 0
    for kind, text in file.checks:
        if kind == "CHECK-NOT":
            if text in outcome.out:
                failures.append(f"CHECK-NOT is in the output: {text}")
            continue
        found = outcome.out.find(text, position)
        if found < 0:
            where = "after the CHECK before it" if position else "in the output"
            failures.append(f"CHECK not found {where}: {text}")
        else:
            position = found + len(text)
    has_error = any(d.severity == "error" for d in outcome.diagnostics)
    if has_error and file.exit == 0:
        failures.append("an error was reported, but the file is not named fail_*")
    return failures
