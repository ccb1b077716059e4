"""The statements of a kernel's text, with their places, for programs that change one of them.

    for s in statements(text):
        print(s.kind, text[s.start:s.end])

Comments and strings are looked through, nested bodies are `s.body`. Only the forms of `.co` that the
kernels of this folder use are understood; another one raises SyntaxError, so that nothing is skipped.
"""

import re
from dataclasses import dataclass, field

_ATTRIBUTES = re.compile(r"(\[\[.*?\]\]\s*)*")
_HEADED = re.compile(r"(parallel|foreach|with|while|inthreads|if)\b")
_LEVEL = re.compile(r":\s*(?:block|cluster|group-4|group|thread)\b")
_OPENERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(eq=False)
class Statement:
    kind: str  # a word: wait, trigger, sync, copy, event, shared, swap, ..., or foreach, if, ...
    start: int
    end: int
    head_end: int  # of a statement with a body: where its header ends
    body: list = field(default_factory=list)
    parent: object = None

    def line(self, text):
        return text.count("\n", 0, self.start) + 1


def blank(text):
    """The text with comments and directives as blanks, place by place."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|^[ \t]*#(?:[^\n\\]|\\\n)*'
    return re.sub(
        pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S | re.M
    )


def closing(text, opener):
    """The place behind the bracket that closes the one at `opener`."""
    depth = 0
    for place in range(opener, len(text)):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place + 1
    raise SyntaxError(f"`{text[opener]}` at {opener} is not closed")


def split_list(text, separator=","):
    """The parts of a list, as (start, end), without surrounding blanks."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text + separator):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == separator and depth == 0:
            part = text[start:place]
            left = start + len(part) - len(part.lstrip())
            parts.append((left, left + len(part.strip())))
            start = place + 1
    return parts


def _skip(text, place):
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _kind(text):
    """The kind of a simple statement."""
    for word, pattern in (
        ("event", r"(?:shared\s+)?event\b"),
        ("shared", r"(?:shared|local)\b"),
        ("wait", r"wait\b"),
        ("trigger", r"trigger\b"),
        ("sync", r"sync\."),
        ("commit", r"mma\.commit"),
        ("mma_wait", r"mma\.wait"),
        ("store", r"mma\.store"),
        ("scale", r"mma\.scale"),
        ("any", r"\w+\s*=\s*(?:dma|tma)\.any"),
        ("copy", r"(?:\w+\s*=\s*)?(?:dma|tma)\."),
        ("swap", r"swap\b"),
        ("rotate", r"rotate\b"),
        ("load", r"\w+\s*=\s*mma\.load"),
        ("fill", r"\w+\s*=\s*mma\.fill"),
        ("product", r"(?:\w+\s*=\s*)?mma\.(?:row|col)"),
        ("count", r"\w+\s*\+="),
    ):
        if re.match(pattern, text):
            return word
    return "other"


class _Reader:
    def __init__(self, text):
        self.text = text

    def _header_end(self, word, place):
        text = self.text
        place += len(word)
        if word in ("if", "while", "inthreads"):
            return closing(text, text.index("(", place))
        if word == "parallel":
            return self._parallel_end(place)
        while True:  # items of a foreach or a with
            item = re.compile(r"\s*(?:\{[\w\s,]*\}|\w+)\s*").match(text, place)
            if not item:
                raise SyntaxError(f"a header at {place}")
            place = item.end()
            bounds = re.compile(r"in\s+").match(text, place)
            if bounds:
                place = bounds.end()
                if text[place] != "[":
                    raise SyntaxError(f"bounds without brackets at {place}")
            if text[place] in "([":
                place = closing(text, place)
            comma = re.compile(r"\s*,").match(text, place)
            if not comma:
                return place
            place = comma.end()

    def _parallel_end(self, place):
        """Behind the last level: `a by N : block, b by M : thread`."""
        while True:
            level = _LEVEL.search(self.text, place)
            if not level:
                raise SyntaxError(f"a parallel without a level at {place}")
            place = level.end()
            comma = re.compile(r"\s*,").match(self.text, place)
            if not comma:
                return place
            place = comma.end()

    def statement(self, place, parent):
        """(statement, place behind it) of the one at `place`."""
        text = self.text
        first = _ATTRIBUTES.match(text, place).end()  # [[threads(256)]] parallel ...
        headed = _HEADED.match(text, first)
        if headed:
            node = Statement(headed[1], place, 0, self._header_end(headed[1], first), parent=parent)
            node.end = self.body(node)
            return node
        if text[place] == "{":
            node = Statement("block", place, 0, place, parent=parent)
            node.end = self.body(node)
            return node
        depth = 0
        for end in range(place, len(text)):
            depth += (text[end] in "([{") - (text[end] in ")]}")
            if text[end] == ";" and depth == 0:
                kind = _kind(text[place : end + 1])
                return Statement(kind, place, end + 1, end + 1, parent=parent)
        raise SyntaxError(f"a statement at {place} has no end")

    def body(self, node):
        """Reads what belongs to a header; returns the place behind it."""
        place = _skip(self.text, node.head_end)
        if self.text[place] == "{":
            end = closing(self.text, place)
            node.body = self.several(place + 1, end - 1, node)
        else:
            only = self.statement(place, node)
            node.body, end = [only], only.end
        other = re.compile(r"\s*else\b\s*").match(self.text, end)
        if node.kind == "if" and other:
            branch = self.statement(other.end(), node)
            node.body, end = node.body + [branch], branch.end
        return end

    def several(self, place, end, parent):
        found = []
        while (place := _skip(self.text, place)) < end:
            node = self.statement(place, parent)
            found.append(node)
            place = node.end
        return found


def statements(text):
    """The statements of the file's tile functions, outermost first, each before those in its body."""
    clean = blank(text)
    found = []

    def walk(nodes):
        for node in nodes:
            found.append(node)
            walk(node.body)

    for function in re.finditer(r"\b__co__\b[^;{]*", clean):
        opener = clean.index("{", function.end())
        walk(_Reader(clean).several(opener + 1, closing(clean, opener) - 1, None))
    return found
