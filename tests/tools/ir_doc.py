#!/usr/bin/env python3
"""Writes docs/ir.md: every operation of the tile IR, from the declarations and from what kiln prints.

    tests/tools/ir_doc.py --kiln build/release/bin/kiln [--check]

The meaning of an operation and of its fields are the comments of src/ir/op.h; op.def has the order, the sections and
whatever further columns it declares. Who sets a field is observed: of all programs in examples/, the first dump of
`kiln ir --after all` in which an operation of that kind has it. The example is the shortest line of the last dump.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import generated  # noqa: E402
import tree  # noqa: E402

DOCUMENT = Path("docs/ir.md")
_ROW = re.compile(r"^KILN_OP\((\w+), \"(\w+)\"(?:, *(.*))?\)$")
_FIELD = re.compile(r'v\("(\w+)", s\.(\w+)\)')
_MEMBER = re.compile(r"^  [\w:<>*, ]+? \**(\w+)(?: = [^;]*)?;(?:\s*//\s*(.*))?$")
_STEP = re.compile(r"^// after (\S+)$")
_LINE = re.compile(r"^ *(?:%\w+ = )?(\w+)(?: (.*))?$")


def rows(text):
    """(section, struct, mnemonic, further columns) of each operation."""
    section, found = "", []
    for line in text.split("\n"):
        row = _ROW.match(line)
        if row:
            found.append((section, row[1], row[2], row[3] or ""))
        elif line.startswith("// ") and not line.startswith("// Every operation"):
            section = line[3:]
    return found


def _comment_above(lines, at):
    said = []
    while at > 0 and lines[at - 1].startswith("//") and not lines[at - 1].startswith("// ---"):
        at -= 1
        said.insert(0, lines[at][2:].strip())
    return " ".join(said)


def _members(lines):
    """[(member, comment, whether it is decided by a pass)]"""
    found, above, decided = [], [], False
    for line in lines:
        if line.lstrip().startswith("//"):
            words = line.strip()[2:].strip()
            if re.match(r"decided\b", words):
                decided, above = True, []
                words = re.sub(r"^decided[.:,]? ?", "", words)
            above.append(words)
            continue
        member = _MEMBER.match(line)
        if member:
            said = " ".join([*above, member[2] or ""]).strip()
            found.append([member[1], said, decided])
        elif found and line.startswith("  static"):
            break
        above = []
    return found


def structs(text):
    """{struct: (comment, {field: (comment, decided)})}, fields in the order in which they are printed."""
    lines, found = text.split("\n"), {}
    for at, line in enumerate(lines):
        start = re.match(r"^struct (\w+) \{$", line)
        if not start:
            continue
        end = next(i for i in range(at, len(lines)) if lines[i] == "};")
        body = lines[at + 1 : end]
        members = {name: (said, decided) for name, said, decided in _members(body)}
        names = _FIELD.findall("\n".join(body))
        fields = {printed: members.get(member, ("", False)) for printed, member in names}
        found[start[1]] = (_comment_above(lines, at), fields)
    return found


def _dumps(kiln):
    """For each example that compiles, its dumps as [(step, lines)]."""
    for path in sorted((tree.ROOT / "examples").glob("*.co")):
        for arch in ("sm_80", "sm_90a"):
            argv = [str(kiln), "ir", f"examples/{path.name}", "--arch", arch, "--after", "all"]
            done = subprocess.run(argv, cwd=tree.ROOT, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                continue
            steps = []
            for line in done.stdout.split("\n"):
                step = _STEP.match(line)
                if step:
                    steps.append((step[1], []))
                elif steps:
                    steps[-1][1].append(line)
            yield steps


def observed(kiln, known):
    """Steps in their order, {(mnemonic, field): first step}, {mnemonic: first step}, {mnemonic: example}."""
    order, fields, ops, examples = [], {}, {}, {}
    for steps in _dumps(kiln):
        order = [step for step, _ in steps] if len(steps) > len(order) else order
        for number, (_, lines) in enumerate(steps):
            for line in lines:
                match = _LINE.match(line)
                if not match or match[1] not in known:
                    continue
                name, words = match[1], re.sub(r'"[^"]*"', '""', match[2] or "")
                ops[name] = min(ops.get(name, number), number)
                for field in known[name]:
                    if re.search(rf"(?:^| ){field}(?:=| |$)", words):
                        fields[name, field] = min(fields.get((name, field), number), number)
                text = line.strip()
                if number == len(steps) - 1 and len(text) < len(examples.get(name, "x" * 1000)):
                    examples[name] = text
                elif name not in examples:
                    examples[name] = text
    return order, fields, ops, examples


def _cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def _operation(struct, name, more, said, seen):
    comment, declared = said.get(struct, ("", {}))
    order, fields, ops, examples = seen
    lines = [f"### {name}", ""]
    if comment:
        lines += [_cell(comment), ""]
    if more:
        lines += [f"Traits: `{more}`", ""]
    if name in ops and ops[name] > 0:
        lines += [f"In the examples first there after `{order[ops[name]]}`.", ""]
    if declared:
        lines += ["| field | set by | what |", "|---|---|---|"]
        for field, (what, decided) in declared.items():
            first = fields.get((name, field))
            who = f"`{order[first]}`" if first is not None else ("a pass" if decided else "`sema`")
            lines.append(f"| `{field}` | {who} | {_cell(what)} |")
        lines.append("")
    if name in examples:
        lines += ["```", examples[name], "```", ""]
    return lines


def document(kiln):
    said = structs("".join(tree.text(Path(f"src/ir/{name}.h")) for name in ("op_structure", "op", "op_cuda")))
    table = rows(tree.text(Path("src/ir/op.def")))
    known = {name: list(said.get(struct, ("", {}))[1]) for _, struct, name, _ in table}
    seen = observed(kiln, known)
    passes = ", ".join(f"`{step}`" for step in seen[0][1:])
    lines = [
        "# The operations of the tile IR",
        "",
        "Written by `./dev docs` from `src/ir/op.def`, the comments of `src/ir/op.h`, and the dumps of the programs in",
        "`examples/`: change those, not this page. What a stage may rely on is in [architecture.md](architecture.md).",
        "",
        f"`kiln ir FILE.co --after all` prints the IR after `sema` and after each pass: {passes}.",
        "What is printed can be read back. A field that has its default is not printed. *Set by* is the step after which",
        'some example first has the field; "a pass" where no example uses it.',
        "",
    ]
    section = None
    for where, struct, name, more in table:
        if where != section:
            section = where
            lines += [f"## {section}", ""]
        lines += _operation(struct, name, more, said, seen)
    return "\n".join(lines)


def is_current(kiln):
    return generated.is_current(DOCUMENT, document(kiln))


if __name__ == "__main__":
    sys.exit(generated.main(__doc__, DOCUMENT, document))
