"""Every mistake of synchronisation that a line of a kernel invites, one at a time.

    for mutant in mutants(kernel, arrivals): mutant.name, mutant.operator, mutant.text

An operator is one kind of mistake: it looks at the statements of the kernel (statements.py) and yields
the edits that make it. `warps_1p1c:9:drop-wait` is the kernel with the wait of line 9 left out; where an
operator finds several places on a line, the second is `...:2`. Names change only when a kernel does.

`program_mutants` makes the same of the compiled program: `warps_1p1c:ir:no-barrier:1` is without the first
barrier that the compiler put in, and `round_trip_block:ir:read-wait:1` has a wait that is over when the store
has read its tile.
"""

import re
from dataclasses import dataclass

import statements
import tiles
from statements import split_list

_USES = ("copy", "product", "load", "store")
_COLLECTIVE = _USES + ("swap", "rotate")


@dataclass(frozen=True)
class Mutant:
    name: str
    operator: str
    text: str
    suffix: str = ".co"
    is_arithmetic: bool = False  # of tiles.py: formulas tell, not orders of execution


@dataclass(frozen=True)
class Edit:
    at: int  # where the mistake is, for the name
    pieces: tuple  # (start, end, new text), which do not overlap


@dataclass(frozen=True)
class Declared:
    """An event or a shared buffer."""

    name: str
    slots: str  # the text of its extent; "" for one
    ready: bool
    type: str  # of a buffer: element type and shape


class Source:
    """A kernel's text, and what an operator asks about it."""

    def __init__(self, text, arrivals):
        self.text = text
        self.clean = statements.blank(text)
        self.arrivals = arrivals  # by event: what the compiler inferred
        self.all = statements.statements(text)
        self.events = {e.name: e for s in self.of("event") for e in _events(self.slice(s))}
        self.buffers = {b.name: b for s in self.of("shared") for b in _buffers(self.slice(s))}

    def of(self, *kinds):
        return [s for s in self.all if s.kind in kinds]

    def slice(self, s):
        return self.clean[s.start : s.end]

    def head(self, s):
        return self.clean[s.start : s.head_end]

    def siblings(self, s):
        return s.parent.body if s.parent else [one for one in self.all if one.parent is None]

    def behind(self, s):
        around = self.siblings(s)
        return around[around.index(s) + 1 :]

    def before(self, s):
        around = self.siblings(s)
        return around[: around.index(s)]

    def inside(self, s):
        for one in s.body:
            yield one
            yield from self.inside(one)

    def references(self, s, names):
        """Each use of one of the names in the statement: (name, start, end, start and end of the index)."""
        for word in re.finditer(r"\b[A-Za-z_]\w*\b", self.head(s)):
            if word[0] not in names or self.clean[s.start + word.start() - 1] == ".":
                continue
            start, end = s.start + word.start(), s.start + word.end()
            index = re.compile(r"\[|\.at\(").match(self.clean, end)
            if not index or (index[0] == ".at(" and not names[word[0]].slots):
                yield word[0], start, end, None
                continue
            close = statements.closing(self.clean, index.end() - 1)
            yield word[0], start, close, (index.end(), close - 1, index[0] == "[")


def _stated(text):
    """Where the names of an `event<n> a, b;` begin, and its `<n>`."""
    found = re.match(r"(?:shared\s+)?event\s*(<[^>]*>)?\s*", text)
    return found.end(), found[1] or ""


def _events(text):
    found = re.match(r"(?:shared\s+)?event\s*(?:<[^>]*>)?", text)
    rest = text[found.end() : -1]
    for start, end in split_list(rest):
        part = re.match(r"(\w+)\s*(?:\[(.*)\])?\s*(=\s*ready)?$", rest[start:end])
        yield Declared(part[1], part[2] or "", bool(part[3]), "")


def _buffers(text):
    found = re.match(r"shared\s+(\w+\s*\[.*?\])\s*(\w.*);$", text, re.S)
    if not found:
        return
    for start, end in split_list(found[2]):
        part = re.match(r"(\w+)\s*(?:\[([^\]]*)\])?", found[2][start:end])
        yield Declared(part[1], part[2] or "", False, found[1])


# ---- edits ----


def _drop(s):
    return Edit(s.start, ((s.start, s.end, ";"),))


def _replace(start, end, text):
    return Edit(start, ((start, end, text),))


def _move(source, s, place):
    """The statement stands at `place` instead."""
    cut = (s.start, s.end, ";")
    return Edit(s.start, tuple(sorted([cut, (place, place, f" {source.text[s.start:s.end]} ")])))


def _operands(source, s, word):
    """The references of `wait a, b;` or `trigger a, b after f;` as places."""
    text = source.slice(s)
    first = re.match(word + r"(?:\.cluster)?\s*", text).end()
    last = re.search(r"\bafter\b|;$", text).start()
    return [(s.start + first + a, s.start + first + b) for a, b in split_list(text[first:last])]


def _drop_operand(source, s, word):
    """Without the statement if it names one thing, else without each. Threads' own copies land in their order:
    a wait for the youngest is a wait for all, so of those the last is left out."""
    operands = _operands(source, s, word)
    if len(operands) == 1:
        yield _drop(s)
        return
    events = list(source.references(s, source.events))
    in_order = not events and not re.search(r"\btma\.", source.clean)
    for index, (start, end) in enumerate(operands):
        if in_order and index + 1 < len(operands):
            continue
        if index == 0:
            yield _replace(start, operands[1][0], "")
        else:
            yield _replace(operands[index - 1][1], end, "")


def _uses_before(source, s):
    """The last statement in front of it that does something with shared memory (a warp's product does not)."""
    for one in reversed(source.before(s)):
        in_registers = one.kind == "product" and "group-4" not in source.clean
        in_registers = in_registers or re.match(r"\w+\s*=\s*\w+;$", source.slice(one))
        if one.kind in _USES + ("foreach", "other", "if") and not in_registers:
            return one
    return None


# ---- operators: what is left out ----


def _is_for_own_copies(source, s):
    """Whether a wait is for copies by the threads themselves (dma)."""
    names = re.findall(r"\w+", source.slice(s))[1:]
    by_others = any(re.search(rf"\b{name}\s*=\s*tma\.", source.clean) for name in names)
    return s.kind == "wait" and not list(source.references(s, source.events)) and not by_others


def _waits_for_younger(source, s):
    """Whether a wait for threads' own copies stands directly behind one: that is a wait for all."""
    behind = source.behind(s)
    return bool(behind) and _is_for_own_copies(source, s) and _is_for_own_copies(source, behind[0])


def drop_wait(source):
    for s in source.of("wait"):
        if _waits_for_younger(source, s):
            continue
        yield from _drop_operand(source, s, "wait")


def drop_trigger(source):
    for s in source.of("trigger"):
        yield from _drop_operand(source, s, "trigger")


def drop_barrier(source):
    yield from map(_drop, source.of("sync"))


def drop_commit(source):
    """Where the program waits by itself; elsewhere the compiler waits, with `mma.commit` or without."""
    if source.of("mma_wait"):
        yield from map(_drop, source.of("commit"))


def drop_product_wait(source):
    yield from map(_drop, source.of("mma_wait"))


def drop_exchange(source):
    yield from map(_drop, source.of("swap", "rotate"))


def drop_count(source):
    """A counter of slots does not count."""
    for s in source.of("count"):
        name = source.slice(s).split()[0]
        used = [one for one in source.of("wait", "trigger") if re.search(rf"\b{name}\b", source.slice(one))]
        if used:
            yield _drop(s)


def drop_ready(source):
    for s in source.of("event"):
        for found in re.finditer(r"\s*=\s*ready", source.slice(s)):
            yield _replace(s.start + found.start(), s.start + found.end(), "")


def drop_join(source):
    """The threads of an `inthreads` do not meet behind it."""
    for s in source.of("inthreads"):
        if not source.head(s).startswith("inthreads.async"):
            yield _replace(s.start, s.start + len("inthreads"), "inthreads.async")


def drop_cluster(source):
    """Only the own block is told."""
    for s in source.of("trigger"):
        if source.slice(s).startswith("trigger.cluster"):
            yield _replace(s.start, s.start + len("trigger.cluster"), "trigger")


def drop_after(source):
    """The trigger does not wait for one of its copies."""
    for s in source.of("trigger"):
        after = re.search(r"\bafter\b\s*", source.slice(s))
        if not after:
            continue
        names = source.slice(s)[after.end() : -1]
        parts = split_list(names)
        base = s.start + after.end()
        for index, (start, end) in enumerate(parts):
            if index:
                yield _replace(base + parts[index - 1][1], base + end, "")
            elif len(parts) > 1:
                yield _replace(base + start, base + parts[1][0], "")


# ---- operators: what stands elsewhere ----


def _slot(source, s, event):
    """The text of the event's index in a statement; None where it is not named."""
    for name, _, _, index in source.references(s, {event: source.events[event]}):
        return source.clean[index[0] : index[1]] if index else ""
    return None


def _is_needed_by(source, s, other):
    """Whether the statement may need what the wait `s` is for. It does not where it starts a copy that completes another
    slot of the same event, triggers that, or loads from a buffer that no copy of the event fills, nor, of threads' own
    copies, where it starts one and names none that is waited for."""
    is_copy = other.kind == "copy" and ".async" in source.slice(other)
    events = [name for name, *_ in source.references(s, source.events)]
    if events and other.kind == "load":
        filled = [c for c in source.of("copy") if any(True for _ in source.references(c, {e: source.events[e] for e in events}))]
        buffers = {name for c in filled for name, *_ in source.references(c, source.buffers)}
        return not buffers or any(True for _ in source.references(other, {b: source.buffers[b] for b in buffers}))
    if events and (is_copy or other.kind == "trigger"):
        return any(_slot(source, other, e) in (None, _slot(source, s, e)) for e in events)
    if events or not is_copy:
        return True
    if not re.match(r"\w+\s*=\s*dma\.", source.slice(other)):
        return True
    names = re.findall(r"\w+", source.slice(s))[1:]
    return any(re.search(rf"\b{name}\b", source.slice(other)) for name in names)


def late_wait(source):
    """A wait behind the next thing that needed it."""
    for s in source.of("wait", "mma_wait"):
        needs = [one for one in source.behind(s) if one.kind in _COLLECTIVE + ("foreach", "parallel", "trigger", "other", "if")]
        needs = [one for one in needs if not re.match(r"stage\s*=", source.slice(one))]
        if s.kind == "wait":
            if _waits_for_younger(source, s):
                continue
            needs = [one for one in needs if _is_needed_by(source, s, one)]
        if needs:
            yield _move(source, s, needs[0].end)


def early_trigger(source):
    """A trigger in front of the last thing that it says is done."""
    for s in source.of("trigger"):
        last = _uses_before(source, s)
        if last:
            yield _move(source, s, last.start)


def first_trigger(source):
    """A trigger at the beginning of its round."""
    for s in source.of("trigger"):
        around = source.siblings(s)
        begin = next((one for one in around if one.kind == "wait"), None)
        if begin and around.index(begin) < around.index(s):
            yield _move(source, s, begin.end)


def early_barrier(source):
    """A barrier in front of what it should stand behind."""
    for s in source.of("sync"):
        last = _uses_before(source, s)
        if last:
            yield _move(source, s, last.start)


def early_commit(source):
    """A group is closed before its products, where the program waits by itself."""
    for s in source.of("commit") if source.of("mma_wait") else []:
        before = [one for one in source.before(s) if one.kind in ("foreach", "product")]
        if before:
            yield _move(source, s, before[-1].start)


def early_exchange(source):
    """Names change places before their last use."""
    for s in source.of("swap", "rotate"):
        last = _uses_before(source, s)
        if last:
            yield _move(source, s, last.start)


def early_store(source):
    """The result goes out before the products or copies that it waits for."""
    for s in source.of("store"):
        waits = [one for one in source.before(s) if one.kind in ("mma_wait", "wait")]
        if waits and source.before(s)[-1] is waits[-1]:
            yield _move(source, s, waits[-1].start)


# ---- operators: what is there once too often ----


def wait_twice(source):
    """A generation is skipped. (To wait twice for a generation that is named, as `e.at(n)`, is no mistake.)"""
    for s in source.of("wait"):
        references = list(source.references(s, source.events))
        if references and not any(index and not index[2] for *_, index in references):
            yield Edit(s.start, ((s.end, s.end, " " + source.text[s.start : s.end]),))


def trigger_twice(source):
    for s in source.of("trigger"):
        text = source.text[s.start : s.end]
        if " after " not in text:
            yield Edit(s.start, ((s.end, s.end, " " + text),))


def add_ready(source):
    """Everything may be used at once, which nobody has filled yet."""
    for s in source.of("event"):
        text = source.slice(s)
        first, stated = _stated(text)
        for start, end in split_list(text[first:-1]):
            if "ready" not in text[first + start : first + end]:
                yield Edit(s.start, ((s.start + first + end, s.start + first + end, " = ready"),))


# ---- operators: a number is wrong ----


def _shifted(source, s, names, by):
    """The index moved by so many; of `[...]` modulo the extent."""
    for name, start, end, index in source.references(s, names):
        if index is None or not names[name].slots:
            continue
        old = source.text[index[0] : index[1]]
        if index[2]:
            new = f"({old} + {by}) % ({names[name].slots})"
        else:  # a wait for the next one in line would wait for this one as well
            new = f"{old} - {by}" if s.kind == "wait" else f"{old} + {by}"
        yield _replace(index[0], index[1], new)


def wrong_slot(source):
    """The next slot of an event, where it is waited for, triggered or bound to a copy."""
    bootstraps = [s for s, *_ in _bootstraps(source)]  # in another order, all the same
    for s in source.of("wait", "trigger", "copy"):
        if s not in bootstraps:
            yield from _shifted(source, s, source.events, 1)


def wrong_stage(source):
    """The next stage of a buffer, where it is filled or used."""
    for s in source.of("copy", "load", "product"):
        yield from _shifted(source, s, source.buffers, 1)


def wrong_choice(source):
    """The other of two buffers."""
    for s in source.of("copy", "load"):
        for found in re.finditer(r"\bselect\(", source.slice(s)):
            opener = s.start + found.end() - 1
            parts = split_list(source.clean[opener + 1 : statements.closing(source.clean, opener) - 1])
            start, end = (opener + 1 + place for place in parts[0])
            yield _replace(start, end, f"({source.text[start:end]} + 1) % {len(parts) - 1}")


def wrong_generation(source):
    """The right slot, a generation too late or too early."""
    for s in source.of("wait"):
        for name, _, _, index in source.references(s, source.events):
            if index and not index[2]:
                old = source.text[index[0] : index[1]]
                yield _replace(index[0], index[1], f"{old} + {source.events[name].slots}")
                yield _replace(index[0], index[1], f"{old} - {source.events[name].slots}")


def wrong_count(source):
    """An event that expects one arrival more or fewer than come."""
    for s in source.of("event"):
        text = source.slice(s)
        first, stated = _stated(text)
        parts = [text[first + a : first + b] for a, b in split_list(text[first:-1])]
        for index, part in enumerate(parts):
            arrivals = source.arrivals.get(re.match(r"\w+", part)[0], 0)
            for count in (arrivals + 1, arrivals - 1):
                if count > 0 and arrivals > 0:
                    rest = parts[:index] + parts[index + 1 :]
                    others = f" shared event{stated} {', '.join(rest)};" if rest else ""
                    yield _replace(s.start, s.end, f"shared event<{count}> {part};{others}")


def more_in_flight(source):
    """One group of products more may still be running."""
    for s in source.of("mma_wait"):
        number = re.search(r"\d+", source.slice(s))
        place = s.start + number.start()
        yield _replace(place, s.start + number.end(), str(int(number[0]) + 1))


def _has(source, s, *kinds):
    return any(one.kind in kinds for one in source.inside(s))


def wrong_trips(source):
    """A loop that loads or uses goes round once too seldom; one that meets others, once too often.

    Without events a trip more only adds zeros; where an `if` decides about each round it does nothing.
    """
    for s in source.of("foreach"):
        head = source.head(s)
        bounds = re.search(r"\bin\s+\[", head)
        if not _has(source, s, "wait", "trigger", "copy"):
            continue
        if bounds:
            end = s.start + statements.closing(head, bounds.end() - 1) - 1
            place = s.start + bounds.end()
            old = source.text[place:end]
            yield _replace(place, end, f"{old} - 1")
            if _has(source, s, "trigger") and s.body[-1].kind != "if":
                yield _replace(place, end, f"{old} + 1")
        limits = re.search(r"\((-?\d*):(-?\d*)\)", head)
        if limits:
            low, high = int(limits[1] or 0), int(limits[2] or 0)
            places = (s.start + limits.start(), s.start + limits.end())
            yield _replace(*places, f"({low + 1}:{high})")
            yield _replace(*places, f"({low}:{high - 1})")


def _bootstraps(source):
    """The triggers that hand out slots before the loop, with the region that has them."""
    for s in source.of("trigger"):
        loop = s.parent if s.parent and s.parent.kind == "foreach" and len(s.parent.body) == 1 else None
        whole = [r for r in source.references(s, source.events) if r[3] is None]
        top = loop or s
        if top.parent and top.parent.kind == "inthreads" and (loop or whole):
            yield s, loop, whole


def missing_bootstrap(source):
    """Nobody hands out the slots at first."""
    for s, loop, _ in _bootstraps(source):
        if loop:
            yield _drop(loop)


def bootstrap_short(source):
    """All slots but one are handed out at first."""
    for s, loop, whole in _bootstraps(source):
        if loop:
            head = source.head(loop)
            end = loop.start + head.rindex("]")
            yield _replace(end, end, " - 1")
        elif source.events[whole[0][0]].slots:
            name, _, end, _ = whole[0]
            word = source.clean[s.start : whole[0][1]]
            extent = source.events[name].slots
            yield _replace(s.start, end, f"foreach slot in [{extent} - 1] {word}{name}[slot]")


# ---- operators: a name is wrong ----


def wrong_event(source):
    """Another event is waited for, triggered or bound to a copy."""
    for s in source.of("wait", "trigger", "copy"):
        for name, start, _, _ in source.references(s, source.events):
            mine = source.events[name]
            for other in source.events.values():
                if other.name != name and other.slots == mine.slots:
                    yield _replace(start, start + len(name), other.name)
                    break


def wrong_buffer(source):
    """A copy fills, or leaves from, another buffer of the same type."""
    for s in source.of("copy"):
        for name, start, _, _ in source.references(s, source.buffers):
            mine = source.buffers[name]
            for other in source.buffers.values():
                if other.name != name and (other.type, other.slots) == (mine.type, mine.slots):
                    yield _replace(start, start + len(name), other.name)


def wrong_rotation(source):
    """Names go round the other way."""
    for s in source.of("rotate"):
        text = source.slice(s)
        opener = text.index("(")
        names = [text[opener + 1 :][a:b] for a, b in split_list(text[opener + 1 : text.rindex(")")])]
        yield _replace(s.start, s.end, f"rotate({', '.join(reversed(names))});")


def wrong_tile(source):
    """A copy moves half of the rows: fewer bytes than the event stands for."""
    for s in source.of("copy"):
        shape = re.search(r"\.subspan\(", source.slice(s))
        if not shape or ".async" not in source.slice(s):
            continue
        first = s.start + shape.end()
        inside = source.clean[first : statements.closing(source.clean, first - 1) - 1]
        start, end = split_list(inside)[0]
        yield _replace(first + start, first + end, f"({inside[start:end]}) / 2")


OPERATORS = (
    drop_wait,
    drop_trigger,
    drop_barrier,
    drop_commit,
    drop_product_wait,
    drop_exchange,
    drop_count,
    drop_ready,
    drop_join,
    drop_cluster,
    drop_after,
    late_wait,
    early_trigger,
    first_trigger,
    early_barrier,
    early_commit,
    early_exchange,
    early_store,
    wait_twice,
    trigger_twice,
    add_ready,
    wrong_slot,
    wrong_stage,
    wrong_choice,
    wrong_generation,
    wrong_count,
    more_in_flight,
    missing_bootstrap,
    bootstrap_short,
    wrong_trips,
    wrong_event,
    wrong_buffer,
    wrong_rotation,
    wrong_tile,
)


def _apply(text, edit):
    for start, end, new in sorted(edit.pieces, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _plain(text):
    """The text without what makes no difference: comments, blanks, empty statements."""
    return re.sub(r"(?<=[;{}]);+", "", re.sub(r"\s", "", statements.blank(text)))


def _edits(source, of_tiles):
    """(the operator's name, the edit, whether it is one of arithmetic)"""
    for operator in OPERATORS:
        for edit in operator(source):
            yield operator.__name__.replace("_", "-"), edit, False
    for word, place, pieces in tiles.edits(source) if of_tiles else ():
        yield word, Edit(place, pieces), True


def mutants(kernel, arrivals):
    """All mutants of a kernel, each text once. `arrivals` by event, as the compiler counted them."""
    text = kernel.text
    seen, names = {_plain(text)}, {}
    for word, edit, is_arithmetic in _edits(Source(text, arrivals), bool(kernel.meanings)):
        changed = _apply(text, edit)
        if _plain(changed) in seen:
            continue
        seen.add(_plain(changed))
        name = f"{kernel.name}:{text.count(chr(10), 0, edit.at) + 1}:{word}"
        names[name] = names.get(name, 0) + 1
        unique = name if names[name] == 1 else f"{name}:{names[name]}"
        yield Mutant(unique, word, changed, is_arithmetic=is_arithmetic)


# ---- what the compiler inferred ----

_INFERRED = {
    "no-barrier": r"barrier .*\binferred\b",
    "no-proxy-fence": r"proxy_fence\b",
    "no-product-fence": r"mma_fence\b",
    "no-commit": r"mma_commit$",
    "no-product-wait": r"mma_wait\b(?!.*\bstated\b)",
    "no-copy-wait": r"copy_wait\b",
    "no-bulk-wait": r"bulk_wait\b",
}


# What is weaker than what the compiler wrote: a pattern, and what stands there instead.
_WEAKER = {
    "read-wait": (r"^( *bulk_wait\b.*) landed", r"\1"),  # the bytes have been read, not written
    "wrong-fence": (r"^( *proxy_fence)( global)?$", lambda m: m[1] + ("" if m[2] else " global")),
    "warp-barrier": (r"^( *barrier level=)(?:block|group4)( inferred)$", r"\1group\2"),
    "fewer-arrivals": (r"^( *%\w+ = event .*\barrivals=)(\d+)", lambda m: m[1] + str(int(m[2]) - 1) if m[2] != "1" else m[0]),
    "fewer-bytes": (r"^( *trigger .*\bbytes=)(\d+)", lambda m: m[1] + str(int(m[2]) // 2)),
    "one-more-pending": (
        r"^( *(?:copy_wait|mma_wait|bulk_wait))( pending=\d+)?",
        lambda m: f"{m[1]} pending={int((m[2] or '=0').split('=')[1]) + 1}",
    ),
}


def _weaker(kernel, lines):
    for word, (pattern, weaker) in _WEAKER.items():
        changed = [(n, re.sub(pattern, weaker, line)) for n, line in enumerate(lines)]
        changed = [(n, line) for n, line in changed if line != lines[n]]
        for count, (place, line) in enumerate(changed, 1):
            text = "\n".join([*lines[:place], line, *lines[place + 1 :]])
            yield Mutant(f"{kernel.name}:ir:{word}:{count}", word, text, ".kir")


def program_mutants(kernel, program):
    """The compiled kernel without one of the orders that the compiler put in, or with a weaker one.
    `program`: its IR."""
    lines = program.split("\n")
    yield from _weaker(kernel, lines)
    for word, pattern in _INFERRED.items():
        places = [n for n, line in enumerate(lines) if re.match(r"\s*" + pattern, line)]
        # Of waits behind each other the last, for the fewest copies, is the one that counts.
        places = [n for n in places if "wait" not in word or lines[n].split()[0] not in lines[n + 1].split()[:1]]
        for count, place in enumerate(places, 1):
            text = "\n".join(lines[:place] + lines[place + 1 :])
            yield Mutant(f"{kernel.name}:ir:{word}:{count}", word, text, ".kir")
