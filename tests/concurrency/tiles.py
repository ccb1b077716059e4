"""Every mistake of arithmetic that a statement with register tiles invites, one at a time.

    for word, edit in edits(source): ...        `source` as mutate.py has it

An operator of mutate.py makes a mistake of order, which races and deadlocks tell. These make one of meaning: a
rescale left out, a sum along the other dimension, a mask one column short, the scale of another block. They are
refused for the extents of their tiles, or a formula (formulas.py) finds the numbers wrong.
"""

import re
from dataclasses import dataclass

import statements
from statements import split_list

_TOKEN = re.compile(r"[A-Za-z_][\w.]*(?:<\w+>(?=\())?|\d[\w.]*|<=|>=|==|!=|&&|\|\||<<|>>|\S")
_PRECEDENCE = {"*": 5, "/": 5, "%": 5, "+": 4, "-": 4, "<<": 3, ">>": 3, "<": 2, "<=": 2, ">": 2, ">=": 2, "==": 1, "!=": 1}
_ENDS_AN_OPERAND = re.compile(r"[\w.>]*\w(?:<\w+>)?$|[)\]]$")
_ASSIGNED = re.compile(r"(\w+)\s*=(?!=)\s*")
_OF_TILES = re.compile(r"\b(?:frag\.(?:load|fill|store)|mma\.fill|mma\.store|__reduce_\w+|__scan_\w+|__index)\b")
_PARTS = ("?", ":", ",", ";", "=", "&&", "||", "&", "|", "frag.store", "frag.load")
_OTHER_OPERATOR = {"+": "-", "-": "+", "*": "/", "/": "*"}
_OTHER_EDGE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_OTHER_FUNCTION = {
    "__reduce_sum": "__reduce_max",
    "__reduce_max": "__reduce_min",
    "__reduce_argmax": "__reduce_argmin",
    "__exp": "__exp2f",
    "__exp2f": "__exp",
    "__log": "__log2",
    "__log2": "__log",
    "__max": "__min",
    "__rsqrt": "__sqrt",
    "__cos": "__sin",
    "__sin": "__cos",
    "__sigmoid": "__exp",
}
_LEFT_OUT = ("__exp", "__exp2f", "__log", "__log2", "__rsqrt", "__cos", "__sin", "__sigmoid")


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int
    depth: int


def _tokens(clean, start, end):
    found, depth = [], 0
    for word in _TOKEN.finditer(clean, start, end):
        depth -= word[0] in ")]}"
        found.append(Token(word[0], word.start(), word.end(), depth))
        depth += word[0] in "([{"
    return found


class _Tile:
    """A statement that computes with tiles, by its tokens."""

    def __init__(self, source, s):
        self.source, self.s = source, s
        assigned = _ASSIGNED.match(source.clean, s.start)
        self.name = assigned[1] if assigned else ""
        self.right = assigned.end() if assigned else s.start
        self.tokens = _tokens(source.clean, self.right, s.end)
        self.is_fill = any(token.text.startswith(("frag.fill", "mma.fill")) for token in self.tokens)

    def between(self, start, end):
        return self.source.text[start:end]

    def binary(self):
        """Each operation between two operands: its token, where the left one begins and where the right one ends."""
        for at, token in enumerate([] if self.is_fill else self.tokens):
            rank = _PRECEDENCE.get(token.text)
            if rank and at and _ENDS_AN_OPERAND.search(self.tokens[at - 1].text):
                yield token, self._left(at, rank), self._right(at, rank)

    def _left(self, at, rank):
        begin = self.tokens[at - 1]
        for before in reversed(self.tokens[:at]):
            if before.depth < self.tokens[at].depth or (before.depth == self.tokens[at].depth and self._parts(before, rank)):
                break
            begin = before
        return begin.start

    def _right(self, at, rank):
        end = self.tokens[at + 1]
        for n, behind in enumerate(self.tokens[at + 1 :]):
            same = behind.depth == self.tokens[at].depth
            if behind.depth < self.tokens[at].depth or (n and same and self._parts(behind, rank + 1)):
                break
            end = behind
        return end.end

    @staticmethod
    def _parts(token, rank):
        return token.text in _PARTS or _PRECEDENCE.get(token.text, 9) < rank

    def choices(self):
        """Each `c ? a : b`, as the places of the three."""
        for at, token in enumerate(self.tokens):
            if token.text != "?":
                continue
            here = lambda text: lambda one: one.depth == token.depth and one.text in text
            low = [one for one in self.tokens[:at] if one.depth < token.depth or here(",;=")(one)]
            frag = [one for one in self.tokens[:at] if one.text == "frag.store" and one.depth == token.depth]
            begin = max([self.right, *(one.end for one in low + frag)])
            colon = next(one for one in self.tokens[at:] if here(":")(one))
            end = next(one for one in self.tokens[at:] if one.depth < token.depth or here(",;")(one))
            yield (begin, token.start), (token.end, colon.start), (colon.end, end.start)


def _tile_statements(source):
    """The statements that make or store a tile, each with the tiles that have a name in front of it."""
    names = []
    for s in source.all:
        # A macro in front of a loop makes one statement of both: the loop's own are not known.
        if s.kind not in ("other", "fill", "store") or "{" in source.slice(s):
            continue
        tile = _Tile(source, s)
        words = {token.text for token in tile.tokens}
        if not _OF_TILES.search(source.clean, s.start, s.end) and not words & set(names):
            continue
        yield tile, tuple(names)
        if tile.name and tile.name not in names:
            names.append(tile.name)


def _is_update(tile, names):
    return tile.name in names


# ---- operators: each yields (place, ((start, end, new text), ...)) ----


def tile_not_updated(source):
    """A tile keeps what it had: no rescale, no mask, no division, no new maximum."""
    for tile, names in _tile_statements(source):
        if _is_update(tile, names):
            yield tile.s.start, ((tile.s.start, tile.s.end, ";"),)


def tile_not_stored(source):
    for tile, _ in _tile_statements(source):
        if not tile.name:
            yield tile.s.start, ((tile.s.start, tile.s.end, ";"),)


def tile_updated_late(source):
    """A tile gets its new value behind the next statement, which reads it."""
    for tile, names in _tile_statements(source):
        around = source.siblings(tile.s)
        behind = source.behind(tile.s)
        if not _is_update(tile, names) or not behind or around is None:
            continue
        if re.search(rf"\b{tile.name}\b", source.slice(behind[0])):
            text = source.text[tile.s.start : tile.s.end]
            yield tile.s.start, ((tile.s.start, tile.s.end, ";"), (behind[0].end, behind[0].end, f" {text}"))


def term_left_out(source):
    """One side of an operation: `l * alpha + r` is `l + r`, `l * alpha`, ..."""
    for tile, _ in _tile_statements(source):
        for operator, begin, end in tile.binary():
            if _PRECEDENCE[operator.text] > 2:
                yield operator.start, ((operator.start, end, ""),)
                yield operator.start, ((begin, operator.end, ""),)


def wrong_operator(source):
    for tile, _ in _tile_statements(source):
        for operator, _, _ in tile.binary():
            if operator.text in _OTHER_OPERATOR:
                yield operator.start, ((operator.start, operator.end, _OTHER_OPERATOR[operator.text]),)


def operands_exchanged(source):
    """Of what is subtracted or divided, and of a product of matrices."""
    for tile, _ in _tile_statements(source):
        for operator, begin, end in tile.binary():
            if operator.text in "-/":
                left, right = tile.between(begin, operator.start).strip(), tile.between(operator.end, end).strip()
                yield operator.start, ((begin, end, f"{right} {operator.text} ({left})"),)
    for s in source.of("product"):
        head = re.match(r"mma\.\w+\.\w+\s+", source.slice(s))
        if not head:
            continue
        base = s.start + head.end()
        parts = [(base + a, base + b) for a, b in split_list(source.clean[base : s.end - 1])]
        if len(parts) == 3:
            (_, (a, b), (c, d)) = parts
            yield s.start, ((a, b, source.text[c:d]), (c, d, source.text[a:b]))


def mask_at_the_wrong_edge(source):
    for tile, _ in _tile_statements(source):
        for operator, _, _ in tile.binary():
            if operator.text in _OTHER_EDGE:
                yield operator.start, ((operator.start, operator.end, _OTHER_EDGE[operator.text]),)


def mask_left_out(source):
    """Always the one, always the other, or the other way round."""
    for tile, _ in _tile_statements(source):
        for (begin, _), (a, b), (c, end) in tile.choices():
            yes, no = source.text[a:b].strip(), source.text[c:end].strip()
            yield begin, ((begin, end, f" {yes}"),)
            yield begin, ((a, b, f" {no} "), (c, end, f" {yes}"))


def wrong_dimension(source):
    """Rows for columns: of a reduction, a running sum or an index."""
    for tile, _ in _tile_statements(source):
        for at, token in enumerate(tile.tokens):
            if not re.match(r"__(?:reduce_\w+|scan_\w+|index)$", token.text):
                continue
            close = statements.closing(source.clean, tile.tokens[at + 1].start) - 1
            digit = source.clean[close - 1]
            yield token.start, ((close - 1, close, {"0": "1", "1": "0"}[digit]),)


def wrong_function(source):
    for tile, _ in _tile_statements(source):
        for token in tile.tokens:
            if token.text in _OTHER_FUNCTION:
                yield token.start, ((token.start, token.end, _OTHER_FUNCTION[token.text]),)


def function_left_out(source):
    for tile, _ in _tile_statements(source):
        for token in tile.tokens:
            if token.text in _LEFT_OUT:
                yield token.start, ((token.start, token.end, ""),)


def wrong_start(source):
    """A tile is filled with another number."""
    other = {"-inf": "inf", "0.0f": "1.0f", "0": "1", "1.0f": "2.0f"}
    for tile, _ in _tile_statements(source):
        found = re.search(r"\.fill\b.*?(-inf|[\d.]+f?)\s*;$", source.slice(tile.s))
        if found:
            place = tile.s.start + found.start(1)
            yield place, ((place, place + len(found[1]), other[found[1]]),)


def wrong_operand(source):
    """The tile that was named last, or the first, in another's place."""
    for tile, names in _tile_statements(source):
        for token in tile.tokens:
            others = [name for name in names if name != token.text]
            if token.text in names and others:
                yield token.start, ((token.start, token.end, others[-1]),)
                yield token.start, ((token.start, token.end, others[0]),)


def fraction_lost(source):
    """What becomes f32 passes through an integer of 8 bits."""
    for tile, _ in _tile_statements(source):
        for token in tile.tokens:
            if token.text == "__to<f32>" and "frag.load" in source.slice(tile.s):
                end = statements.closing(source.clean, token.end)
                yield token.start, ((token.end, token.end, "(__to<s8>"), (end, end, ")"))


def wrong_block(source):
    """A tile of another place: the first along a dimension, or the second where it is the first."""
    for s in source.of("other", "copy", "store"):
        if "{" in source.slice(s) or not re.search(r"\bfrag\.|\bmma\.store|\b(?:dma|tma)\.", source.slice(s)):
            continue
        for found in re.finditer(r"\.at\(", source.slice(s)):
            opener = s.start + found.end() - 1
            if "subspan(" not in source.clean[s.start : opener]:
                continue
            inside = source.clean[opener + 1 : statements.closing(source.clean, opener) - 1]
            for a, b in split_list(inside):
                new = "1" if inside[a:b] == "0" else "0"
                yield opener, ((opener + 1 + a, opener + 1 + b, new),)


OPERATORS = (
    tile_not_updated,
    tile_not_stored,
    tile_updated_late,
    term_left_out,
    wrong_operator,
    operands_exchanged,
    mask_at_the_wrong_edge,
    mask_left_out,
    wrong_dimension,
    wrong_function,
    function_left_out,
    wrong_start,
    wrong_operand,
    fraction_lost,
    wrong_block,
)


def edits(source):
    """(the operator's name, place, pieces) of each mistake, as mutate.py applies them."""
    for operator in OPERATORS:
        for place, pieces in operator(source):
            yield operator.__name__.replace("_", "-"), place, pieces
