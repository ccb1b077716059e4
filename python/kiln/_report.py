"""What kiln says of a program, of a run and of a kernel's cost: as text, as data, and in notebooks."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kiln import _core
from kiln._arrays import numpy_of

_COLOURS = {"error": "#c62828", "warning": "#b26a00", "note": "#1565c0"}


@dataclass(frozen=True)
class Diagnostic:
    """What kiln says of a program, of a run or of a call."""

    id: str
    severity: str  # "error", "warning" or "note"
    message: str
    help: str  # a way out; may be empty
    file: str  # "" where it has no place
    line: int  # from 1; 0 where it has no place
    column: int  # from 1, in bytes
    text: str  # all of it as a terminal shows it

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        place = f" <code>{html.escape(self.file)}:{self.line}:{self.column}</code>" if self.line else ""
        return (
            f'<details open><summary><b style="color:{_COLOURS[self.severity]}">{self.severity}[{self.id}]</b> '
            f"{html.escape(self.message)}{place}</summary>{_pre(self.text)}</details>"
        )


class Report:
    """What one run of a kernel gave. As text it is what `kiln run` shows of the simulator."""

    def __init__(self, core: _core.Report) -> None:
        self._text = core.text()
        found = core.findings()
        self._ok, self._races, self._deadlocks, self._uninitialised, self._outside, self._others = found
        self._diagnostics = diagnostics_of(core.diagnostics())
        result = core.result()
        self._result = None if result is None else numpy_of(*result)

    @property
    def ok(self) -> bool:
        """Whether the run came to its end and no error was found."""
        return self._ok

    @property
    def races(self) -> int:
        """Different pairs of places that race."""
        return self._races

    @property
    def deadlocks(self) -> int:
        return self._deadlocks

    @property
    def uninitialised_reads(self) -> int:
        return self._uninitialised

    @property
    def out_of_bounds(self) -> int:
        return self._outside

    @property
    def others(self) -> int:
        """Failed assertions, divisions by zero, divergence and the like."""
        return self._others

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found, each with its places; also warnings."""
        return self._diagnostics

    @property
    def result(self) -> Any:
        """What the kernel returned, an array or a number of NumPy; None when nothing."""
        return self._result

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<kiln.Report: {'ok' if self.ok else 'not ok'}, {self.races} races>"

    def _repr_html_(self) -> str:
        counts = [
            (self.races, "race", "races"),
            (self.deadlocks, "deadlock", "deadlocks"),
            (self.uninitialised_reads, "uninitialised read", "uninitialised reads"),
            (self.out_of_bounds, "access out of bounds", "accesses out of bounds"),
            (self.others, "other", "others"),
        ]
        found = ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)
        title, colour = (found or "not ok", _COLOURS["error"]) if not self.ok else ("ok", "#2e7d32")
        rest = self._text
        for each in self.diagnostics:
            rest = rest.replace(each.text.rstrip("\n"), "", 1)
        parts = [f'<b style="color:{colour}">{title}</b>', *(each._repr_html_() for each in self.diagnostics)]
        return f"<div>{''.join(parts)}{_pre(rest.strip())}</div>"


class Explanation:
    """What a kernel costs on a GPU. As text it is what `kiln explain` prints, in a notebook its page."""

    def __init__(self, text: str, data: str, page: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        self._text, self._data, self._page, self._diagnostics = text, data, page, diagnostics

    @property
    def data(self) -> dict[str, Any]:
        """The object of `kiln explain --json`."""
        return json.loads(self._data)

    @property
    def html(self) -> str:
        """A page that needs nothing but itself: when a block does what, what it costs, who holds what."""
        return self._page

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Warnings."""
        return self._diagnostics

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<kiln.Explanation: {self._text.splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self._page)}" title="kiln explain" '
            'style="width:100%;height:40em;border:1px solid #8884"></iframe>'
        )


def diagnostics_of(rows: Iterable[Any]) -> tuple[Diagnostic, ...]:
    return tuple(Diagnostic(*row) for row in rows)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{html.escape(each)}</th>" for each in head)]
    lines += ["".join(f"<td>{html.escape(each)}</td>" for each in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(each.ljust(width) for each, width in zip(line, widths)).rstrip() for line in lines)


def _pre(text: str) -> str:
    return f'<pre style="margin:0.3em 0 0.8em">{html.escape(text)}</pre>' if text else ""
