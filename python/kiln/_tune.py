"""The fastest values of a kernel's template parameters, found by measuring."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kiln._launch import DeviceError
from kiln._measure import Contender, Field, _time, copies_of, copy_of, first_tensor
from kiln._report import html_table, text_table

if TYPE_CHECKING:
    from kiln._program import Kernel

_CANDIDATES_MAX = 1000
# Turns, seconds of a batch, and how many go on.
_ROUNDS = ((1, 1e-3, 24), (3, 5e-3, 8), (9, 2e-2, 1))
_SHOWN = 8


@dataclass
class Candidate:
    """Values of template parameters, and what became of them."""

    values: dict[str, str]  # none: the program as it is
    seconds: float | None = None  # of a call, the median of the last round that it was in
    dropped: str = ""  # why it was not measured
    kernel: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values.items()) or "as it is"


class Tuning:
    """What `kernel.tune` found. `best` is the fastest kernel, `values` are its template parameters'."""

    def __init__(self, candidates: list[Candidate]) -> None:
        measured = [each for each in candidates if each.seconds is not None]
        self.candidates = tuple(sorted(measured, key=lambda each: each.seconds or 0.0))
        self.dropped = tuple(each for each in candidates if each.dropped)

    @property
    def best(self) -> Kernel:
        return self.candidates[0].kernel

    @property
    def values(self) -> dict[str, str]:
        """For kiln.compile(..., **values)."""
        return dict(self.candidates[0].values)

    def _rows(self) -> list[list[str]]:
        return [[str(each), _time(each.seconds or 0.0)] for each in self.candidates[:_SHOWN]]

    def _notes(self) -> str:
        reasons: dict[str, int] = {}
        for each in self.dropped:
            reasons[each.dropped] = reasons.get(each.dropped, 0) + 1
        text = ", ".join(f"{count}: {reason}" for reason, count in reasons.items())
        return f"{len(self.candidates)} measured" + (f"; dropped {text}" if text else "")

    def __str__(self) -> str:
        return f"{text_table(('values', 'median'), self._rows())}\n{self._notes()}"

    def _repr_html_(self) -> str:
        return f"{html_table(('values', 'median'), self._rows())}<small>{self._notes()}</small>"


def tune(
    kernel: Kernel,
    arguments: Mapping[str, Any],
    over: Mapping[str, Iterable[Any]] | None,
    reference: Callable[..., Any] | None,
) -> Tuning:
    candidates = [Candidate({}, kernel=kernel), *candidates_of(kernel, over)]
    field = Field(first_tensor(kernel, arguments))
    expected = _Expected(kernel, arguments, reference)
    for each in candidates:
        _prepare(each, kernel, expected)
    left = [each for each in candidates if not each.dropped]
    if not left:
        raise ValueError("no candidate can be measured: " + "; ".join(f"{each}: {each.dropped}" for each in candidates))
    sets = copies_of(arguments, field.sets_for(arguments))
    for repeats, batch_seconds, keep in _ROUNDS:
        contenders = [Contender(_call_of(each, sets), len(sets), field) for each in left]
        seconds, _ = field.in_turn(contenders, repeats, batch_seconds)
        for each, row in zip(left, seconds):
            each.seconds = sorted(row)[len(row) // 2]
        left = sorted(left, key=lambda each: each.seconds or 0.0)[:keep]
    return Tuning(candidates)


def candidates_of(kernel: Kernel, over: Mapping[str, Iterable[Any]] | None) -> list[Candidate]:
    """Every combination, the last parameter's values changing fastest."""
    names = {name: [str(value) for value in values] for name, values in (over or kernel.tunables).items()}
    if not names:
        raise ValueError(
            f"kernel `{kernel.name}` names nothing to be tried, as `[[tune(2, 3, 4)]] int STAGES = 3` in its template "
            'does: give over={"STAGES": [2, 3, 4]}'
        )
    for name, values in names.items():
        if not values:
            raise ValueError(f"`over` has no value for `{name}`")
    rows = list(itertools.product(*names.values()))
    if len(rows) > _CANDIDATES_MAX:
        raise ValueError(f"{len(rows)} combinations, at most {_CANDIDATES_MAX} are tried: name fewer values")
    return [Candidate(dict(zip(names, row))) for row in rows]


class _Expected:
    """Runs candidates on copies of the arguments and compares their results."""

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Any], reference: Callable[..., Any] | None) -> None:
        self._arguments = arguments
        outputs = [each.name for each in kernel.parameters if each.is_written]

        def by_kernel(**given: Any) -> list[Any]:
            returned = kernel(**given)
            out = [given[name] for name in outputs]
            return out if kernel.result is None else [*out, returned]

        by_reference = reference
        if by_reference is None:
            self._results = by_kernel(**self.copies())
            by_reference = lambda *_: [copy_of(each) for each in self._results]
        self._reference = by_reference

    def copies(self) -> dict[str, Any]:
        return copies_of(self._arguments, 1)[0]

    def check(self, kernel: Kernel) -> None:
        from kiln import testing

        testing.check(kernel, self.copies(), reference=self._reference)


def _prepare(candidate: Candidate, kernel: Kernel, expected: _Expected) -> None:
    from kiln._program import CompileError

    try:
        if candidate.kernel is None:
            candidate.kernel = kernel._compiled.again(candidate.values)[kernel.name]
        expected.check(candidate.kernel)
    except CompileError as error:
        candidate.dropped = next((each.id for each in error.diagnostics if each.severity == "error"), "not compiled")
    except AssertionError:
        candidate.dropped = "its result is wrong"
    except KeyError:
        candidate.dropped = "the kernel is not there"
    except (ValueError, TypeError, DeviceError) as error:
        candidate.dropped = str(error).splitlines()[0]


def _call_of(candidate: Candidate, sets: list[dict[str, Any]]) -> Callable[[int], Any]:
    return lambda i: candidate.kernel(**sets[i])
