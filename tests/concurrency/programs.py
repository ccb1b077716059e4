"""When two compiled programs are the same in all that they read, write and wait for.

    does_the_same(program, other)     both as `kiln ir` prints them

Each program is brought to a normal form, by rules that hold for every execution, and the forms are compared:

- Waits directly behind each other are one wait: the strictest.
- What only computes an index goes in front of a barrier, a fence or a wait.
- A barrier goes away when on every path to it, or on every path from it, another one that brings at least the same
  threads together stands between it and whatever touches memory. A trigger by a whole warp brings the warp together.
  Bulk copies are started by the thread that is elected for a trigger, and go on by themselves: a barrier in front of
  such a trigger orders nothing about them.
- A wait until a bulk store has landed is a wait until it has been read when nothing follows it.
- A wait for threads' own copies goes away when on every path to it another one, for at least as many of them, stands behind
  the last that was started. (A loop up to cdiv(K, n) has a trip, as a dimension is at least 1.)
- A proxy fence, which orders what threads have written before what products and bulk copies read, goes away when on every path
  from it another one comes before these, in a kernel without regions, whose threads all take that path.
- Where every wait for products is for all of them, a commit goes away when the next one behind it on the same straight
  line of code comes before any wait: both groups are waited for together.
- Which event a thread's own copies (cp.async) name, whether a barrier was inferred, and whether a region was joined
  (the barrier of a join stands behind it) say nothing that is executed.

`other` may also stand at a block barrier more where every thread comes by: it orders more, not less.
"""

import re
from dataclasses import dataclass, field

_WIDTH = {"group": 0, "group4": 1, "block": 2}
_WAITS = ("copy_wait", "mma_wait", "bulk_wait")
_INDEX = ("subview", "alias", "index", "const", "binary", "unary", "get")  # no effect, no memory
_SILENT = _INDEX + ("bind", "set", "fill", "event", "check", "assert")  # touches no memory that others touch
_LEAVES = {"break", "continue", "yield"}
_VIEWS = re.compile(r"\b(?:src|dst|view)=(%\w+)")


@dataclass
class Op:
    text: str
    regions: list = field(default_factory=list)  # of lists of operations
    parent: object = None  # the list that it stands in
    owner: object = None  # the operation whose region that is

    @property
    def kind(self):
        return re.sub(r"^%\w+ = ", "", self.text).split(" ")[0]

    @property
    def is_conditional(self):
        return self.owner is not None and self.owner.kind == "if"

    @property
    def is_silent(self):
        cell = self.kind == "alloc" and ("initial=" not in self.text or "cell<" in self.text)
        return self.kind in _SILENT or cell


def parsed(program):
    """The operations on the outermost level of the text, each with its regions."""
    top, around = [], []
    here, owner = top, None
    for line in map(str.strip, program.split("\n")):
        if line.startswith("}"):
            here, owner = around.pop()
        again = re.match(r"\} (\w+)=\{$", line)
        if again:
            around.append((here, owner))
            owner = here[-1]
            owner.text += f" {again[1]}="
        elif line and not line.startswith("}"):
            op = Op(re.sub(r"\{$", "", line), [], here, owner)
            here.append(op)
            if not line.endswith("{"):
                continue
            around.append((here, owner))
            owner = op
        else:
            continue
        owner.regions.append([])
        here = owner.regions[-1]
    return top


def everything(ops):
    for op in ops:
        yield op
        for region in op.regions:
            yield from everything(region)


def _loops(op):
    while op is not None:
        if op.kind in ("for", "loop"):
            yield id(op)
        op = op.owner


def _has_trips(loop):
    """Whether the loop goes round at least once."""
    upper = re.search(r" upper=(\d+) body=$", loop.text)
    return upper is not None and " lower=" not in loop.text and int(upper[1]) > 0


def _surely_runs(loop, dimensions):
    """Likewise, of a loop whose bounds may be known at the launch alone: from 0, or from a few below its end, to cdiv(K, n)."""
    found = re.search(r"(?: lower=max\(0, (.*?) - \d+\))? upper=(cdiv\((\w+), \d+\)) body=$", loop.text)
    lower_fits = found and (found[1] == found[2] if found[1] else " lower=" not in loop.text)
    return _has_trips(loop) or bool(lower_fits and found[3] in dimensions)


def _threads_of(region):
    number = lambda name: int((re.search(rf" {name}=(\d+)", region.text) or (0, 0))[1])
    return set(range(number("first"), number("first") + number("threads")))


class _Memory:
    """Which tensors of global memory are touched where."""

    def __init__(self, top):
        self.order = {id(op): n for n, op in enumerate(everything(top))}
        self.base, self.touches = {}, {}
        for op in everything(top):
            made = re.match(r"(%\w+) = (?:subview|alias) base=(%\w+)", op.text)
            if made:
                self.base[made[1]] = self.root(made[2])
            for name in _VIEWS.findall(op.text):
                self.touches.setdefault(self.root(name), []).append(op)
        head = next((op.text for op in top if op.kind == "func"), "")
        self.tensors = set(re.findall(r"global (%\w+):", head))

    def root(self, name):
        return self.base.get(name, name)

    def is_new_behind(self, op, barrier):
        """Whether it only touches tensors that nothing in front of the barrier can have touched."""
        names = {self.root(name) for name in _VIEWS.findall(op.text)}
        inside = set(_loops(barrier))
        earlier = (
            self.order[id(one)] < self.order[id(barrier)] or inside & set(_loops(one))
            for name in names
            for one in self.touches[name]
        )
        return op.kind == "store" and names <= self.tensors and not any(earlier)


class _Walk:
    """From a barrier along every path, forwards or backwards, to what touches memory or brings the threads together."""

    def __init__(self, barrier, memory, by_warps, forward):
        self.barrier, self.memory, self.by_warps, self.forward = barrier, memory, by_warps, forward
        self.width = re.search(r"level=(\w+)(.*)$", barrier.text)
        self.threads = None  # of the region that it stands in
        behind = barrier.parent[next(n for n, one in enumerate(barrier.parent) if one is barrier) + 1 :]
        self.is_of_elected = bool(behind) and behind[0].kind == "trigger" and "arrival=elected" in behind[0].text

    def meets(self, op):
        level = re.match(r"barrier level=(\w+)(.*)$", op.text)
        if level:  # of all threads, or of the same ones by their number
            return _WIDTH[level[1]] >= _WIDTH[self.width[1]] and level[2] in ("", self.width[2])
        return self.width[1] == "group" and op.kind == "trigger" and op.text.endswith("arrival=warp")

    def passes(self, op):
        """Whether nothing needs to be ordered that the operation does."""
        if op.is_silent:
            return True
        if not self.forward and self.is_of_elected and op.kind == "copy" and " bulk " in op.text:
            return True
        if self.forward:
            return op.kind in _WAITS + ("event_wait",) or self.memory.is_new_behind(op, self.barrier)
        return op.kind == "event_wait" and self.width[1] == "group" and self.by_warps and not op.is_conditional

    def along(self, ops):
        """`met`, `touched` or `through`."""
        for op in ops if self.forward else reversed(ops):
            if op is self.barrier or self.meets(op):
                return "met"
            if op.kind in _LEAVES and not self.forward:
                return "met"  # nothing comes on from there
            if op.regions:
                outcome = self.through(op)
            else:
                outcome = "through" if self.passes(op) else "touched"
            if outcome != "through":
                return outcome
        return "through"

    def through(self, op):
        if op.kind == "inthreads" and self.threads and not self.threads & _threads_of(op):
            return "through"  # others run it
        if op.kind not in ("for", "if"):  # parallel and inthreads: perhaps other threads
            inner = everything([one for region in op.regions for one in region])
            return "through" if all(one.is_silent for one in inner) else "touched"
        outcomes = [self.along(region) for region in op.regions]
        if "touched" in outcomes:
            return "touched"
        comes_by = outcomes == ["met", "met"] if op.kind == "if" else _has_trips(op) and outcomes == ["met"]
        return "met" if comes_by else "through"

    def is_idle(self):
        """Whether no path comes to what the barrier orders."""
        op = self.barrier
        if self.width is None:
            return False
        while op is not None:
            around, place = op.parent, next(n for n, one in enumerate(op.parent) if one is op)
            outcome = self.along(around[place + 1 :] if self.forward else around[:place])
            if outcome != "through":
                return outcome == "met"
            op = op.owner
            if op is None or op.text.startswith("parallel level=block"):
                return True  # where the kernel begins, or ends
            if op.kind == "inthreads":
                self.threads = _threads_of(op)
            if op.kind in ("for", "loop"):
                jumps = {one.kind for one in everything(around)} & _LEAVES
                if jumps & (_LEAVES if self.forward else {"continue"}):
                    return False
                if self.along(around) == "touched":  # the trip behind, or before
                    return False
        return True


def _without_idle_barriers(top):
    ops = list(everything(top))
    memory = _Memory(top)
    by_warps = not any(op.kind == "trigger" and "arrival=warp" not in op.text for op in ops)
    for op in ops:
        if op.kind == "barrier" and any(_Walk(op, memory, by_warps, way).is_idle() for way in (True, False)):
            op.parent[:] = [one for one in op.parent if one is not op]


def _pending(wait):
    return int((re.search(r"pending=(\d+)", wait.text) or (0, 0))[1])


def _copies_before(ops, wait, dimensions):
    """Backwards from the wait: `met` another one that says as much, `started` a copy, or `through`."""
    for op in reversed(ops):
        if op.kind == "copy_wait" and _pending(op) <= _pending(wait):
            return "met"
        if op.kind == "copy" and (" async" in op.text or " grouped" in op.text) and " bulk" not in op.text:
            return "started"
        if op.kind in _LEAVES:
            return "started"
        inside = [_copies_before(region, wait, dimensions) for region in op.regions]
        if "started" in inside:
            return "started"
        if op.kind == "for" and inside == ["met"] and _surely_runs(op, dimensions):
            return "met"
    return "through"


def _is_idle_wait(wait, dimensions):
    op = wait
    while op is not None:
        place = next(n for n, one in enumerate(op.parent) if one is op)
        outcome = _copies_before(op.parent[:place], wait, dimensions)
        if outcome != "through":
            return outcome == "met"
        op = op.owner
        if op is not None and op.kind not in ("if", "parallel"):
            return False
    return False


def _without_idle_waits(top):
    head = next((op.text for op in top if op.kind == "func"), "")
    dimensions = set(re.findall(r"\b[A-Za-z_]\w*\b", " ".join(re.findall(r"\[([^\]]*)\]", head))))
    idle = [op for op in everything(top) if op.kind == "copy_wait" and _is_idle_wait(op, dimensions)]
    for op in idle:
        op.parent[:] = [one for one in op.parent if one is not op]


def _after_fence(ops, fence):
    """Forwards from the fence: `met` another one, `touched` what it orders, or `through`."""
    is_global = fence.text.endswith(" global")  # which orders bulk copies alone
    for op in ops:
        if op.text == fence.text:
            return "met"
        if op.kind in _LEAVES | {"trigger", "inthreads"} or " bulk " in op.text or (op.kind == "mma" and not is_global):
            return "touched"
        inside = [_after_fence(region, fence) for region in op.regions]
        if "touched" in inside:
            return "touched"
        if inside == ["met"] and op.kind == "parallel" or inside == ["met", "met"]:
            return "met"
    return "through"


def _is_idle_fence(fence):
    op = fence
    while op is not None:
        place = next(n for n, one in enumerate(op.parent) if one is op)
        outcome = _after_fence(op.parent[place + 1 :], fence)
        if outcome != "through":
            return outcome == "met"
        op = op.owner
        if op is None or op.text.startswith("parallel level=block"):
            return True  # where the kernel ends
        if op.kind not in ("if", "for", "parallel"):
            return False
        if op.kind == "for" and _after_fence(op.regions[0], fence) == "touched":
            return False
    return True


def _without_idle_fences(top):
    idle = [op for op in everything(top) if op.kind == "proxy_fence" and _is_idle_fence(op)]
    for op in idle:
        op.parent[:] = [one for one in op.parent if one is not op]


def _ends_group(op):
    """Whether groups of products end or are waited for here, or a jump leaves the line of code."""
    return any(one.kind in _LEAVES | {"mma_commit", "mma_wait", "trigger"} for one in everything([op]))


def _without_idle_commits(top):
    ops = list(everything(top))
    if any(op.kind == "mma_wait" and re.search(r"pending=[1-9]", op.text) for op in ops):
        return
    for op in ops:
        if op.kind != "mma_commit":
            continue
        place = next(i for i, one in enumerate(op.parent) if one is op)
        line = iter(op.parent[place + 1 :])
        if next(filter(_ends_group, line), top[0]).kind == "mma_commit":
            op.parent[:] = [one for one in op.parent if one is not op]


def _strictest(waits):
    """One line for waits behind each other."""
    pending = [_pending(wait) for wait in waits]
    landed = [count for count, wait in zip(pending, waits) if " landed" in wait.text]
    out = f"{waits[0].kind} pending={min(pending)}"
    return out + (f" landed={min(landed)}" if landed else "")


def _in_order(ops):
    """With indices in front of barriers, and one wait for several."""
    out = []
    for op in ops:
        op.regions = [_in_order(region) for region in op.regions]
        place = len(out)
        while op.kind in _INDEX and place and out[place - 1].kind in _WAITS + ("barrier", "proxy_fence"):
            place -= 1
        out.insert(place, op)
    for kind in _WAITS:
        runs = [[]]
        for op in out:
            runs[-1].append(op) if op.kind == kind else runs.append([])
        for run in filter(None, runs):
            run[0].text = _strictest(run)
            for op in run[1:]:
                out = [one for one in out if one is not op]
    return out


def _lines(ops, depth=0):
    for op in ops:
        yield depth, op
        for region in op.regions:
            yield from _lines(region, depth + 1)


def _is_run_once(op):
    """Whether each thread of the kernel comes by once."""
    owner = op.owner
    while owner is not None and owner.kind in ("parallel", "func"):
        owner = owner.owner
    return owner is None


def normal_form(program):
    text = re.sub(r" (?:inferred|stated)\b", "", program)
    text = re.sub(r"^( *inthreads .*?) async\b", r"\1", text, flags=re.M)
    text = re.sub(r"^( *copy .*?) event=%\w+(?: slot=.*?)?(?= way=(?:async|gather|element) grouped)", r"\1", text, flags=re.M)
    top = parsed(text)
    _without_idle_barriers(top)
    _without_idle_commits(top)
    _without_idle_waits(top)
    _without_idle_fences(top)
    top = _in_order(top)
    lines = list(_lines(top))
    last = lines[-1][1]
    if last.kind == "bulk_wait" and _is_run_once(last):
        last.text = re.sub(r" landed.*", "", last.text)
    return [(depth, op.text, op) for depth, op in lines]


def does_the_same(program, other):
    wanted, rest = normal_form(program), normal_form(other)
    at = 0
    for depth, text, op in rest:
        if at < len(wanted) and wanted[at][:2] == (depth, text):
            at += 1
        elif text != "barrier level=block" or not _is_run_once(op):
            return False
    return at == len(wanted)
